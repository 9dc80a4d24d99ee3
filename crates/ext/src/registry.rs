//! What a connection knows by name.

use crate::{Function, Module};
use iolite_base::Encoding;
use iolite_base::hash::FastMap;
use iolite_value::{Collate, Collation, Custom};
use std::cell::RefCell;
use std::rc::Rc;

/// Functions that every connection knows. They are made when their name is first asked for: a connection that lives for one
/// request uses few of them.
#[derive(Clone, Copy)]
pub struct Builtins {
    /// The functions of this name, in lower case.
    pub named: fn(&str) -> Vec<Rc<Function>>,
    /// All names, in lower case.
    pub names: fn() -> Vec<&'static str>,
}

/// A module that was added, with its name as it was given.
type Added = (Box<str>, Rc<dyn Module>);

/// The functions, collating sequences and modules of one connection.
#[derive(Default, Clone)]
pub struct Registry {
    builtins: Option<Builtins>,
    /// By name in lower case. A name that has an entry has all its functions there, built-in ones too.
    functions: RefCell<FastMap<Box<str>, Vec<Rc<Function>>>>,
    /// Those that were added, by name in lower case: they go before built-in ones, also with fewer words about arguments.
    own: FastMap<Box<str>, Vec<Rc<Function>>>,
    /// By name in lower case; `None` hides the built-in one of this name.
    collations: FastMap<Box<str>, Option<Rc<Custom>>>,
    builtin_modules: Option<BuiltinModules>,
    /// Those of them that were asked for, by name.
    made_modules: RefCell<FastMap<Box<str>, Rc<dyn Module>>>,
    modules: FastMap<Box<str>, Added>,
    /// The built-in ones that are left, if others were removed.
    kept_builtin: Option<Vec<Box<str>>>,
}

/// Modules that every connection knows. They are made when their name is first asked for.
#[derive(Clone, Copy)]
pub struct BuiltinModules {
    /// The module of this name, in lower case.
    pub named: fn(&str) -> Option<Rc<dyn Module>>,
    /// All names, in lower case.
    pub names: fn() -> Vec<String>,
}

fn key(name: &str) -> Box<str> {
    name.to_ascii_lowercase().into()
}

impl Registry {
    /// A registry that knows these functions.
    pub fn new(builtins: Builtins) -> Registry {
        Registry { builtins: Some(builtins), ..Registry::default() }
    }

    /// Adds a function or replaces the one of the same name and number of arguments.
    pub fn add_function(&mut self, f: Function) {
        let key = key(&f.name);
        self.with(&key, |_| ());
        let f = Rc::new(f);
        let list = self.functions.get_mut().entry(key.clone()).or_default();
        for list in [list, self.own.entry(key).or_default()] {
            list.retain(|g| g.args != f.args);
            list.push(f.clone());
        }
    }

    /// Removes a function.
    pub fn remove_function(&mut self, name: &str, args: i16) {
        let key = key(name);
        self.with(&key, |_| ());
        for list in [self.functions.get_mut().get_mut(&key), self.own.get_mut(&key)].into_iter().flatten() {
            list.retain(|g| g.args != args);
        }
    }

    /// The function to call for this name and number of arguments: of those that were added, then of the built-in ones, an
    /// exact match first, then one that takes any number.
    pub fn function(&self, name: &str, args: usize) -> Option<Rc<Function>> {
        let open = |f: &&Rc<Function>| match f.args {
            -1 => true,
            // -3: one or more, -4: two or more.
            n if n < 0 => args >= (-n - 2) as usize,
            _ => false,
        };
        let best = |list: &[Rc<Function>]| {
            list.iter().find(|f| f.args == args as i16).or_else(|| list.iter().find(open)).cloned()
        };
        if !self.own.is_empty()
            && let Some(f) = self.own.get(&key(name)).and_then(|list| best(list))
        {
            return Some(f);
        }
        self.named(name, best)
    }

    /// Whether any function has this name.
    pub fn has_function(&self, name: &str) -> bool {
        self.named(name, |l| !l.is_empty())
    }

    /// Whether a function of this name is for just this number of arguments, -1: any.
    pub fn has_function_of(&self, name: &str, args: i16) -> bool {
        self.named(name, |list| list.iter().any(|f| f.args == args))
    }

    /// Asks the functions of a name.
    fn named<T>(&self, name: &str, ask: impl FnOnce(&[Rc<Function>]) -> T) -> T {
        let mut low = [0u8; 32];
        if let Some(buf) = low.get_mut(..name.len()) {
            buf.copy_from_slice(name.as_bytes());
            buf.make_ascii_lowercase();
            if let Ok(low) = std::str::from_utf8(buf) {
                return self.with(low, ask);
            }
        }
        self.with(&key(name), ask)
    }

    /// Asks the functions of a name in lower case, which get their entry if they have none yet.
    fn with<T>(&self, name: &str, ask: impl FnOnce(&[Rc<Function>]) -> T) -> T {
        if let Some(list) = self.functions.borrow().get(name) {
            return ask(list);
        }
        let made = self.builtins.map(|b| (b.named)(name)).unwrap_or_default();
        let answer = ask(&made);
        if !made.is_empty() {
            self.functions.borrow_mut().insert(name.into(), made);
        }
        answer
    }

    /// All functions, in no order.
    pub fn functions(&self) -> Vec<Rc<Function>> {
        for name in self.builtins.map(|b| (b.names)()).unwrap_or_default() {
            self.with(name, |_| ());
        }
        self.functions.borrow().values().flatten().cloned().collect()
    }

    /// Whether a function was added, in contrast to those built in.
    pub fn is_added(&self, f: &Rc<Function>) -> bool {
        self.own.get(&key(&f.name)).is_some_and(|list| list.iter().any(|g| Rc::ptr_eq(f, g)))
    }

    /// Adds or replaces a collating sequence; `None` removes it.
    pub fn set_collation(&mut self, name: &str, c: Option<Rc<dyn Collate>>) {
        match c {
            Some(c) => {
                self.collations.insert(key(name), Some(Rc::new(Custom { name: name.into(), code: c })));
            }
            None => {
                self.collations.remove(&*key(name));
            }
        }
    }

    /// From now on there is no collating sequence of this name, not even the built-in one.
    pub fn hide_collation(&mut self, name: &str) {
        self.collations.insert(key(name), None);
    }

    /// A collating sequence by name.
    pub fn collation(&self, name: &str, enc: Encoding) -> Option<Collation> {
        if self.collations.is_empty() {
            return Collation::builtin(name, enc);
        }
        match self.collations.get(&*key(name)) {
            Some(c) => c.clone().map(Collation::Custom),
            None => Collation::builtin(name, enc),
        }
    }

    /// Names of all collating sequences, users' first.
    pub fn collation_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.collations.values().flatten().map(|c| c.name.to_string()).collect();
        names.sort();
        for b in ["RTRIM", "NOCASE", "BINARY"] {
            if !names.iter().any(|n| n.eq_ignore_ascii_case(b)) {
                names.push(b.into());
            }
        }
        names
    }

    /// Lets the connection know these modules, beside those that are added.
    pub fn set_builtin_modules(&mut self, modules: BuiltinModules) {
        self.builtin_modules = Some(modules);
    }

    /// Adds or replaces a module; answers the one that it replaces.
    pub fn add_module(&mut self, name: &str, m: Rc<dyn Module>) -> Option<Rc<dyn Module>> {
        self.modules.insert(key(name), (name.into(), m)).map(|(_, m)| m)
    }

    /// Removes a module that was added, and answers it.
    pub fn remove_module(&mut self, name: &str) -> Option<Rc<dyn Module>> {
        self.modules.remove(&*key(name)).map(|(_, m)| m)
    }

    /// Removes the modules that are not in the list, built-in ones too, but for those of the PRAGMAs; answers those that
    /// were added.
    pub fn retain_modules(&mut self, keep: &[String]) -> Vec<Rc<dyn Module>> {
        let stays = |name: &str| keep.iter().any(|k| k.eq_ignore_ascii_case(name));
        let gone = self.modules.extract_if(|name, _| !stays(name)).map(|(_, (_, m))| m).collect();
        self.made_modules.get_mut().retain(|name, _| stays(name));
        self.kept_builtin = Some(keep.iter().map(|k| key(k)).collect());
        gone
    }

    fn is_builtin_kept(&self, name: &str) -> bool {
        name.starts_with("pragma_")
            || self.kept_builtin.as_ref().is_none_or(|k| k.iter().any(|k| **k == *name))
    }

    /// A module by name: of those that were added, then of the built-in ones.
    pub fn module(&self, name: &str) -> Option<Rc<dyn Module>> {
        let key = key(name);
        if let Some((_, m)) = self.modules.get(&*key) {
            return Some(m.clone());
        }
        if let Some(m) = self.made_modules.borrow().get(&*key) {
            return Some(m.clone());
        }
        let made =
            self.builtin_modules.filter(|_| self.is_builtin_kept(&key)).and_then(|b| (b.named)(&key))?;
        self.made_modules.borrow_mut().insert(key, made.clone());
        Some(made)
    }

    /// Names of all modules.
    pub fn module_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.modules.values().map(|(name, _)| name.to_string()).collect();
        let builtin = self.builtin_modules.map(|b| (b.names)()).unwrap_or_default();
        let stays = |n: &String| self.is_builtin_kept(n) && !self.modules.contains_key(&**n);
        names.extend(builtin.into_iter().filter(stays));
        names.sort();
        names
    }
}
