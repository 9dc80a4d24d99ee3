//! The virtual tables that a connection has connected to.
//!
//! A connected table belongs to one definition in the catalog: when the schema is read again, it is connected anew. Nothing is
//! borrowed while code of modules runs.

use crate::connection::{Connection, Inner};
use iolite_base::{Code, Error, Result};
use iolite_catalog::{Table, TableKind};
use iolite_ext::{BuiltinModules, Declared, Host, Module, ModuleKind, TableArgs};
use iolite_plan::bind::{Connected, Connector, declared_table};
use std::cell::RefCell;
use std::rc::Rc;

/// What a connected table is made of.
enum Definition {
    /// A table of the catalog.
    Table(Rc<Table>),
    /// A module, under its own name.
    Module(Rc<dyn Module>, Box<str>),
}

/// The connected tables of a connection.
#[derive(Default)]
pub(crate) struct Tables {
    known: RefCell<Vec<(Definition, Rc<Connected>)>>,
    /// Tables whose module is making them at this moment.
    under_way: RefCell<Vec<Rc<str>>>,
}

/// The modules that every connection knows.
pub(crate) const BUILTIN: BuiltinModules = BuiltinModules { named, names };

fn named(name: &str) -> Option<Rc<dyn Module>> {
    match name.strip_prefix("pragma_") {
        Some(pragma) => crate::pragma::as_module(pragma),
        None => iolite_modules::named(name),
    }
}

fn names() -> Vec<String> {
    let own = iolite_modules::NAMES.iter().map(|n| n.to_string());
    own.chain(crate::pragma::module_names().map(|n| format!("pragma_{n}"))).collect()
}

impl Tables {
    fn find(&self, is: impl Fn(&Definition) -> bool) -> Option<Rc<Connected>> {
        self.known.borrow().iter().find(|(d, _)| is(d)).map(|(_, c)| c.clone())
    }

    /// Lets go of all tables.
    pub fn clear(&self) {
        let all = self.known.take();
        drop(all);
    }
}

impl Inner {
    /// The module of a table, and its arguments.
    fn module_of(&self, table: &Table) -> Result<(Rc<dyn Module>, Box<str>, Vec<Box<str>>)> {
        let TableKind::Virtual { module, args } = &table.kind else { return Err(Code::Internal.into()) };
        let registry = self.registry.borrow().clone();
        match registry.module(module) {
            Some(m) if m.kind() != ModuleKind::EponymousOnly => Ok((m, module.clone(), args.clone())),
            _ => Err(Error::sql(format!("no such module: {module}"))),
        }
    }

    /// Has a module make or connect a table.
    fn made(
        &self,
        name: &Rc<str>,
        module: &str,
        f: impl FnOnce(&Rc<dyn Host>) -> Result<Declared>,
    ) -> Result<Rc<Connected>> {
        let busy = self.vtabs.under_way.borrow().iter().any(|n| n == name);
        if busy {
            return Err(Error::sql(format!("vtable constructor called recursively: {name}")));
        }
        let host: Rc<dyn Host> = self.handle()?.0;
        self.vtabs.under_way.borrow_mut().push(name.clone());
        let made = f(&host);
        self.vtabs.under_way.borrow_mut().retain(|n| n != name);
        let made = made.map_err(|e| match e.has_message() {
            false => Error::new(e.code(), format!("vtable constructor failed: {name}")),
            true => e,
        })?;
        let table = declared_table(&made.declaration, module, name)?;
        Ok(Rc::new(Connected { table, vtab: made.table, trust: made.trust }))
    }

    /// Keeps a connected table, and lets go of those whose definition is gone.
    fn keep(&self, definition: Definition, c: &Rc<Connected>) {
        let catalog = self.catalog.borrow().clone();
        let registry = self.registry.borrow().clone();
        let lives = |d: &Definition| match d {
            Definition::Table(t) => {
                catalog.schemas.iter().any(|s| s.table(&t.name).is_some_and(|now| Rc::ptr_eq(now, t)))
            }
            Definition::Module(m, name) => registry.module(name).is_some_and(|now| Rc::ptr_eq(&now, m)),
        };
        let mut gone = Vec::new();
        let mut known = self.vtabs.known.borrow_mut();
        for k in (0..known.len()).rev() {
            if !lives(&known[k].0) {
                gone.push(known.swap_remove(k));
            }
        }
        known.push((definition, c.clone()));
        // The code of modules runs when tables go.
        drop(known);
        drop(gone);
    }

    /// The names of a table's database and of the table.
    fn names_of(&self, db: usize, table: &Table) -> Result<(Rc<str>, Rc<str>)> {
        let database = self.catalog.borrow().schemas.get(db).map(|s| s.name.clone());
        Ok((database.ok_or(Code::Internal)?, table.name.clone()))
    }

    /// A new virtual table is made: its row is in the schema table, its definition in the catalog.
    pub(crate) fn create_virtual(&self, db: usize, name: &str) -> Result<()> {
        let table = self.catalog.borrow().schemas[db].table(name).cloned().ok_or(Code::Internal)?;
        let (m, module, args) = self.module_of(&table)?;
        let (database, name) = self.names_of(db, &table)?;
        let c = self.made(&name, &module, |host| {
            let args = TableArgs { module: &module, database: &database, table: &name, args: &args };
            m.create(host, &args)
        })?;
        self.keep(Definition::Table(table), &c);
        Ok(())
    }

    /// A virtual table is dropped: its module takes away what it keeps.
    pub(crate) fn destroy_virtual(&self, db: usize, name: &str) -> Result<()> {
        let table = self.catalog.borrow().schemas[db].table(name).cloned();
        let Some(table) = table else { return Ok(()) };
        let c = self.connect_virtual(db, &table)?;
        c.vtab.destroy()?;
        self.vtabs
            .known
            .borrow_mut()
            .retain(|(d, _)| !matches!(d, Definition::Table(t) if Rc::ptr_eq(t, &table)));
        Ok(())
    }

    fn connect_virtual(&self, db: usize, table: &Rc<Table>) -> Result<Rc<Connected>> {
        if let Some(c) = self.vtabs.find(|d| matches!(d, Definition::Table(t) if Rc::ptr_eq(t, table))) {
            return Ok(c);
        }
        let (m, module, args) = self.module_of(table)?;
        let (database, name) = self.names_of(db, table)?;
        let c = self.made(&name, &module, |host| {
            let args = TableArgs { module: &module, database: &database, table: &name, args: &args };
            m.connect(host, &args)
        })?;
        self.keep(Definition::Table(table.clone()), &c);
        Ok(c)
    }
}

impl Connector for Connection {
    fn connect(&self, db: usize, table: &Rc<Table>) -> Result<Rc<Connected>> {
        self.0.connect_virtual(db, table)
    }

    fn eponymous(&self, name: &str) -> Result<Option<Rc<Connected>>> {
        let registry = self.0.registry.borrow().clone();
        let Some(m) = registry.module(name).filter(|m| m.kind() != ModuleKind::Created) else {
            return Ok(None);
        };
        if let Some(c) = self.0.vtabs.find(|d| matches!(d, Definition::Module(n, _) if Rc::ptr_eq(n, &m))) {
            return Ok(Some(c));
        }
        let name: Rc<str> = name.to_ascii_lowercase().into();
        let c = self.0.made(&name, &name, |host| {
            m.connect(host, &TableArgs { module: &name, database: "main", table: &name, args: &[] })
        })?;
        self.0.keep(Definition::Module(m, (&*name).into()), &c);
        Ok(Some(c))
    }
}
