//! Which tables a program locks where connections share a cache (documentation page `sharedcache`, 2.2).
//!
//! They are read off the finished program: a cursor on an index is one on its table, for whoever writes to the table may write to
//! any of its indexes. What always holds: a program and its triggers name each table once; a table that is also written to is
//! locked for writing. Trees that the program itself makes are nobody else's yet, and are not named.

use crate::connection::Inner;
use iolite_base::{Code, Error, Result};
use iolite_bytecode::{Insn, Opcode, Program, TableLock, p5};
use iolite_catalog::{Schema, Table};
use std::rc::Rc;

impl Inner {
    /// Has a program name the tables that it locks.
    pub fn name_locks(&self, program: &mut Program) {
        if self.sharing.is_none() {
            return;
        }
        let catalog = self.catalog.borrow().clone();
        let mut locks = Vec::new();
        let all = std::iter::once(&*program).chain(program.subprograms.iter().map(|p| &**p));
        for i in all.flat_map(|p| &p.insns) {
            let Some((db, root, write)) = opened(i) else { continue };
            let Some((root, name)) = catalog.schemas.get(db).and_then(|s| table_of(s, root)) else {
                continue;
            };
            note(&mut locks, TableLock { db, root, write, name });
        }
        program.locks = locks;
    }

    /// Locks a table for the connection's transaction.
    pub fn lock_table(&self, lock: &TableLock) -> Result<()> {
        if !lock.write && self.settings.read_uncommitted() {
            return Ok(());
        }
        let Some(b) = self.btree_if_open(lock.db) else { return Ok(()) };
        b.lock_table(lock.root, lock.write).map_err(|e| match e.code() {
            Code::LockedSharedcache => {
                Error::new(e.code(), format!("database table is locked: {}", lock.name))
            }
            _ => e,
        })
    }

    /// Locks all tables of a database for reading.
    pub fn lock_tables_to_read(&self, db: usize) -> Result<()> {
        if self.sharing.is_none() {
            return Ok(());
        }
        let schema = self.catalog.borrow().schemas[db].clone();
        schema.all_tables().filter(|t| rows_of(t) != 0).try_for_each(|t| {
            self.lock_table(&TableLock { db, root: rows_of(t), write: false, name: t.name.clone() })
        })
    }

    /// Nothing is compiled while somebody who shares a cache changes its schema.
    pub fn check_schema_locks(&self) -> Result<()> {
        if self.sharing.is_none() {
            return Ok(());
        }
        for d in self.databases.borrow().iter() {
            if let Some(Err(e)) = d.btree.as_ref().map(|b| b.check_schema_lock()) {
                return Err(Error::new(e.code(), format!("database schema is locked: {}", d.name)));
            }
        }
        Ok(())
    }
}

/// The database, the root page, and whether it is written to, of an instruction that opens or empties a tree of the catalog's.
fn opened(i: &Insn) -> Option<(usize, u32, bool)> {
    let (db, root) = match i.op {
        Opcode::OpenRead | Opcode::OpenWrite if i.p5 & p5::ROOT_IN_REGISTER == 0 => (i.p3, i.p2),
        Opcode::Clear if i.p2 >= 0 => (i.p2, i.p1),
        _ => return None,
    };
    Some((usize::try_from(db).ok()?, u32::try_from(root).ok()?, i.op != Opcode::OpenRead))
}

/// The table to which a tree belongs: its rows' root page, and its name.
fn table_of(schema: &Schema, root: u32) -> Option<(u32, Rc<str>)> {
    schema.all_tables().find_map(|t| {
        let own = rows_of(t);
        let is = own == root || t.indexes.borrow().iter().any(|i| i.root.get() == root);
        is.then(|| (own, t.name.clone()))
    })
}

/// The root page of the tree with a table's rows; 0 where there is none.
fn rows_of(t: &Table) -> u32 {
    t.primary_index().map_or(t.root.get(), |i| i.root.get())
}

fn note(locks: &mut Vec<TableLock>, lock: TableLock) {
    match locks.iter_mut().find(|l| l.db == lock.db && l.root == lock.root) {
        Some(l) => l.write |= lock.write,
        None => locks.push(lock),
    }
}
