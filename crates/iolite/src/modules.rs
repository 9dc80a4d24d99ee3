//! How a connection has modules make its virtual tables, connect to them, destroy them. Nothing is borrowed while they do.

use crate::connection::{Connection, Inner};
use crate::vtabs::Definition;
use iolite_base::{Code, Error, Result};
use iolite_catalog::{Table, TableKind};
use iolite_ext::{Declared, Host, Module, ModuleKind, TableArgs, VirtualTable};
use iolite_plan::bind::{Connected, Connector, declared_table};
use std::rc::Rc;

/// A module with its name, and the arguments of a table.
type ModuleOf<'t> = (Rc<dyn Module>, &'t str, &'t [Box<str>]);

impl Inner {
    /// The module of a table, and its arguments.
    fn module_of<'t>(&self, table: &'t Table) -> Result<ModuleOf<'t>> {
        let TableKind::Virtual { module, args, .. } = &table.kind else { return Err(Code::Internal.into()) };
        let registry = self.registry.borrow().clone();
        match registry.module(module) {
            Some(m) if m.kind() != ModuleKind::EponymousOnly => Ok((m, module, args)),
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
            let text = format!("vtable constructor called recursively: {name}");
            return Err(Error::new(Code::Locked, text));
        }
        let host: Rc<dyn Host> = self.handle()?.0;
        self.vtabs.under_way.borrow_mut().push(name.clone());
        let made = f(&host);
        self.vtabs.under_way.borrow_mut().retain(|n| n != name);
        let made = made.map_err(|e| match e.has_message() {
            false if e.code() == Code::Nomem => e,
            false => Error::new(e.code(), format!("vtable constructor failed: {name}")),
            true => e,
        })?;
        let table = declared_table(&made.declaration, module, name, made.table.writable())?;
        let Declared { table: vtab, trust, heeds_conflicts, uses_all_schemas, .. } = made;
        Ok(Rc::new(Connected { table, vtab, trust, heeds_conflicts, uses_all_schemas }))
    }

    fn keep_virtual(&self, definition: Definition, c: &Rc<Connected>) {
        self.sweep_virtual();
        self.vtabs.keep(definition, c);
    }

    /// Lets go of tables whose definition is gone.
    pub(crate) fn sweep_virtual(&self) {
        let (catalog, registry) = (self.catalog.borrow().clone(), self.registry.borrow().clone());
        self.vtabs.forget_gone(&catalog, &registry);
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
        let c = self.made(&name, module, |host| {
            let args = TableArgs { module, database: &database, table: &name, args };
            m.create(host, &args)
        })?;
        if let Some(p) = c.vtab.clone().participant() {
            self.txn.join_made(&p);
        }
        self.keep_virtual(Definition::Table(table), &c);
        Ok(())
    }

    /// A virtual table is about to be written to.
    pub(crate) fn begin_virtual(&self, table: &Rc<dyn VirtualTable>) -> Result<()> {
        if self.txn.is_syncing() {
            return Err(Code::Locked.into());
        }
        match table.clone().participant() {
            Some(p) if p.joins_by_writing() => self.txn.join(&p),
            _ => Ok(()),
        }
    }

    /// A virtual table gets another name; it is connected anew when it is used.
    pub(crate) fn rename_virtual(&self, db: usize, table: &Rc<Table>, name: &str) -> Result<()> {
        let table = self.connect_virtual(db, table)?;
        // What the module renames in turn is not looked at for what else it breaks.
        let legacy = self.settings.legacy_alter_table.replace(true);
        let renamed = table.vtab.rename(name);
        self.settings.legacy_alter_table.set(legacy);
        renamed
    }

    /// Lets go of all virtual tables, as if all transactions were taken back: the connection is about to be closed.
    pub(crate) fn forget_virtual(&self) {
        self.plans.borrow_mut().clear();
        self.vtabs.clear();
        self.txn.abandon();
    }

    /// Whether shadow tables are to be protected from what is compiled now: not from modules.
    pub(crate) fn protects_shadows(&self) -> bool {
        self.settings.defensive() && !self.txn.is_stepping() && self.vtabs.under_way.borrow().is_empty()
    }

    /// A virtual table is dropped: its module takes away what it keeps.
    pub(crate) fn destroy_virtual(&self, db: usize, name: &str) -> Result<()> {
        let table = self.catalog.borrow().schemas[db].table(name).cloned();
        let Some(table) = table else { return Ok(()) };
        let c = self.connect_virtual(db, &table)?;
        if c.vtab.is_busy() {
            return Err(Code::Locked.into());
        }
        let destroying = self.txn.destroy();
        c.vtab.destroy()?;
        drop(destroying);
        if let Some(p) = c.vtab.clone().participant() {
            self.txn.quit(&p);
        }
        self.vtabs.forget(&table);
        Ok(())
    }

    /// The code of a table of the catalog.
    pub(crate) fn connect_virtual(&self, db: usize, table: &Rc<Table>) -> Result<Rc<Connected>> {
        if let Some(c) = self.vtabs.find(|d| matches!(d, Definition::Table(t) if Rc::ptr_eq(t, table))) {
            return Ok(c);
        }
        let (m, module, args) = self.module_of(table)?;
        let (database, name) = self.names_of(db, table)?;
        let c = self.made(&name, module, |host| {
            let args = TableArgs { module, database: &database, table: &name, args };
            m.connect(host, &args)
        })?;
        self.keep_virtual(Definition::Table(table.clone()), &c);
        Ok(c)
    }
}

impl Connector for Connection {
    fn warn(&self, code: Code, text: &dyn Fn() -> String) {
        if let Some(log) = self.0.log.get() {
            log(code, text);
        }
    }

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
        self.0.keep_virtual(Definition::Module(m, (&*name).into()), &c);
        Ok(Some(c))
    }
}
