//! The virtual tables that a connection has connected to.
//!
//! A connected table belongs to one definition in the catalog: when the schema is read again, it is connected anew.

use iolite_catalog::{Catalog, Table};
use iolite_ext::{Module, Registry};
use iolite_plan::bind::Connected;
use std::cell::RefCell;
use std::rc::Rc;

/// What a connected table is made of.
pub(crate) enum Definition {
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
    pub under_way: RefCell<Vec<Rc<str>>>,
}

impl Tables {
    /// The first table whose definition is such.
    pub fn find(&self, is: impl Fn(&Definition) -> bool) -> Option<Rc<Connected>> {
        self.known.borrow().iter().find(|(d, _)| is(d)).map(|(_, c)| c.clone())
    }

    /// Lets go of all tables.
    pub fn clear(&self) {
        let all = self.known.take();
        drop(all);
    }

    /// Lets go of a table.
    pub fn forget(&self, table: &Rc<Table>) {
        self.sweep(|d| !matches!(d, Definition::Table(t) if Rc::ptr_eq(t, table)));
    }

    /// Keeps a connected table.
    pub fn keep(&self, definition: Definition, c: &Rc<Connected>) {
        self.known.borrow_mut().push((definition, c.clone()));
    }

    /// Lets go of tables whose definition is gone.
    pub fn forget_gone(&self, catalog: &Catalog, registry: &Registry) {
        self.sweep(|d| match d {
            Definition::Table(t) => {
                catalog.schemas.iter().any(|s| s.table(&t.name).is_some_and(|now| Rc::ptr_eq(now, t)))
            }
            Definition::Module(m, name) => registry.module(name).is_some_and(|now| Rc::ptr_eq(&now, m)),
        });
    }

    fn sweep(&self, stays: impl Fn(&Definition) -> bool) {
        let all = self.known.take();
        let (kept, gone): (Vec<_>, Vec<_>) = all.into_iter().partition(|(d, _)| stays(d));
        self.known.replace(kept);
        // The code of modules runs when tables go: nothing is borrowed then.
        drop(gone);
    }
}
