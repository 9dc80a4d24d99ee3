//! The module `fts5`, and what a connection may add to it: tokenizers and auxiliary functions.

use crate::auxiliary::{self, Auxiliary};
use crate::config::Config;
use crate::table::Table;
use crate::tokenize;
use iolite_base::{Code, Error, Result};
use iolite_ext::{BuiltinModules, Declared, Host, Module, TableArgs, TokenizerKind, Trust};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Auxiliary functions by their names.
type Named = Vec<(String, Rc<dyn Auxiliary>)>;

/// The module. Tables that are connected later know what was added.
#[derive(Default)]
pub struct Fts5 {
    tokenizers: RefCell<Vec<(String, Rc<dyn TokenizerKind>)>>,
    functions: Rc<RefCell<Named>>,
    cursors: Rc<Cell<i64>>,
}

impl Fts5 {
    /// Adds a kind of tokenizers, before the built-in one of the same name.
    pub fn add_tokenizer(&self, name: &str, kind: Rc<dyn TokenizerKind>) {
        let mut list = self.tokenizers.borrow_mut();
        list.retain(|t| !t.0.eq_ignore_ascii_case(name));
        list.push((name.to_string(), kind));
    }

    /// The kind of tokenizers of this name.
    pub fn tokenizer(&self, name: &str) -> Option<Rc<dyn TokenizerKind>> {
        let own =
            self.tokenizers.borrow().iter().find(|t| t.0.eq_ignore_ascii_case(name)).map(|t| t.1.clone());
        own.or_else(|| tokenize::builtin(name))
    }

    /// Adds an auxiliary function, before the built-in one of the same name.
    pub fn add_function(&self, name: &str, f: Rc<dyn Auxiliary>) {
        let mut list = self.functions.borrow_mut();
        list.retain(|t| !t.0.eq_ignore_ascii_case(name));
        list.push((name.to_ascii_lowercase(), f));
    }

    fn table(&self, host: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<(Rc<Table>, String)> {
        let config = Config::parse(args.database, args.table, args.args, &|n| self.tokenizer(n))?;
        let declaration = config.declaration();
        let added = self.functions.clone();
        let functions = move |name: &str| {
            let own = added.borrow().iter().find(|f| f.0 == name).map(|f| f.1.clone());
            own.or_else(|| auxiliary::builtin(name))
        };
        Ok((Table::new(config, host, Rc::new(functions), self.cursors.clone()), declaration))
    }
}

fn declared(table: Rc<Table>, declaration: String) -> Result<Declared> {
    if !table.is_declarable() {
        return Err(Error::from(Code::Error));
    }
    Ok(Declared { trust: Trust::Innocuous, ..Declared::new(declaration, table) })
}

impl Module for Fts5 {
    fn create(&self, host: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<Declared> {
        let (table, declaration) = self.table(host, args)?;
        table.create()?;
        table.connect()?;
        declared(table, declaration)
    }

    fn connect(&self, host: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<Declared> {
        let (table, declaration) = self.table(host, args)?;
        table.connect()?;
        declared(table, declaration)
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }

    fn is_shadow(&self, suffix: &str) -> bool {
        ["config", "content", "data", "docsize", "idx"].iter().any(|s| suffix.eq_ignore_ascii_case(s))
    }
}

/// The modules of this crate, made when they are asked for.
pub const BUILTIN: BuiltinModules = BuiltinModules { named, names };

fn names() -> Vec<String> {
    vec!["fts5".into(), "fts5vocab".into()]
}

fn named(name: &str) -> Option<Rc<dyn Module>> {
    Some(match name {
        "fts5" => Rc::new(Fts5::default()),
        "fts5vocab" => Rc::new(crate::vocabulary::Vocabulary),
        _ => return None,
    })
}
