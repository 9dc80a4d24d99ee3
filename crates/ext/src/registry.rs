use crate::{Function, Module};
use iolite_base::Encoding;
use iolite_base::hash::FastMap;
use iolite_value::{Collate, Collation, Custom};
use std::rc::Rc;

/// The functions, collating sequences and modules of one connection.
#[derive(Default, Clone)]
pub struct Registry {
    functions: FastMap<Box<str>, Vec<Rc<Function>>>,
    collations: FastMap<Box<str>, Rc<Custom>>,
    modules: FastMap<Box<str>, Rc<dyn Module>>,
}

fn key(name: &str) -> Box<str> {
    name.to_ascii_lowercase().into()
}

impl Registry {
    /// Adds a function or replaces the one of the same name and number of arguments.
    pub fn add_function(&mut self, f: Function) {
        let list = self.functions.entry(key(&f.name)).or_default();
        list.retain(|g| g.args != f.args);
        list.push(Rc::new(f));
    }

    /// Removes a function.
    pub fn remove_function(&mut self, name: &str, args: i16) {
        if let Some(list) = self.functions.get_mut(&*key(name)) {
            list.retain(|g| g.args != args);
        }
    }

    /// The function to call for this name and number of arguments: an exact match first, then one that takes
    /// any number.
    pub fn function(&self, name: &str, args: usize) -> Option<Rc<Function>> {
        let list = self.list(name)?;
        let open = |f: &&Rc<Function>| match f.args {
            -1 => true,
            // -3: one or more, -4: two or more.
            n if n < 0 => args >= (-n - 2) as usize,
            _ => false,
        };
        list.iter().find(|f| f.args == args as i16).or_else(|| list.iter().find(open)).cloned()
    }

    /// Whether any function has this name.
    pub fn has_function(&self, name: &str) -> bool {
        self.list(name).is_some_and(|l| !l.is_empty())
    }

    fn list(&self, name: &str) -> Option<&Vec<Rc<Function>>> {
        let mut low = [0u8; 32];
        if let Some(buf) = low.get_mut(..name.len()) {
            buf.copy_from_slice(name.as_bytes());
            buf.make_ascii_lowercase();
            return self.functions.get(std::str::from_utf8(buf).ok()?);
        }
        self.functions.get(&*key(name))
    }

    /// All functions, in no order.
    pub fn functions(&self) -> impl Iterator<Item = &Rc<Function>> {
        self.functions.values().flatten()
    }

    /// Adds or replaces a collating sequence; `None` removes it.
    pub fn set_collation(&mut self, name: &str, c: Option<Rc<dyn Collate>>) {
        match c {
            Some(c) => {
                self.collations.insert(key(name), Rc::new(Custom { name: name.into(), code: c }));
            }
            None => {
                self.collations.remove(&*key(name));
            }
        }
    }

    /// A collating sequence by name.
    pub fn collation(&self, name: &str, enc: Encoding) -> Option<Collation> {
        if self.collations.is_empty() {
            return Collation::builtin(name, enc);
        }
        match self.collations.get(&*key(name)) {
            Some(c) => Some(Collation::Custom(c.clone())),
            None => Collation::builtin(name, enc),
        }
    }

    /// Names of all collating sequences, users' first.
    pub fn collation_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.collations.values().map(|c| c.name.to_string()).collect();
        names.sort();
        for b in ["RTRIM", "NOCASE", "BINARY"] {
            if !names.iter().any(|n| n.eq_ignore_ascii_case(b)) {
                names.push(b.into());
            }
        }
        names
    }

    /// Adds or replaces a module.
    pub fn add_module(&mut self, name: &str, m: Rc<dyn Module>) {
        self.modules.insert(key(name), m);
    }

    /// A module by name.
    pub fn module(&self, name: &str) -> Option<Rc<dyn Module>> {
        self.modules.get(&*key(name)).cloned()
    }

    /// Names of all modules.
    pub fn module_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.modules.keys().map(|k| k.to_string()).collect();
        names.sort();
        names
    }
}
