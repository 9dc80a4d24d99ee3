//! What a running program sees of its connection.

use crate::connection::{Connection, Inner};
use crate::preupdate::{STATISTICS, by_column};
use crate::running::Running;
use iolite_base::{Code, Encoding, Limit, Result};
use iolite_btree::{Btree, TxnState};
use iolite_catalog::Table;
use iolite_ext::{Function, Host, Instruction, NestedStatement, Preupdate, StatementFacts, VirtualTable};
use iolite_os::{FileKind, OpenFlags};
use iolite_value::Value;
use iolite_vdbe::{Env, RowBefore, RowChange};
use std::rc::Rc;

/// To what runs, the connection is the host.
macro_rules! connection_answers {
    ($($name:ident($($arg:ident: $type:ty),*) $(-> $out:ty)?;)*) => {
        impl Host for Running {
            $(fn $name(&self, $($arg: $type),*) $(-> $out)? {
                Host::$name(&*self.conn, $($arg),*)
            })*
        }
    };
}

connection_answers! {
    last_insert_rowid() -> i64;
    changes() -> i64;
    total_changes() -> i64;
    limit(which: Limit) -> i32;
    encoding() -> Encoding;
    now_julian_ms() -> i64;
    local_offset(unix_seconds: i64) -> Result<i64>;
    check_interrupt() -> Result<()>;
    check_after(steps: usize) -> Result<()>;
    threads() -> usize;
    random(out: &mut [u8]);
    opener() -> usize;
    prepare(sql: &str) -> Result<Box<dyn NestedStatement>>;
    page(database: &str, number: u32) -> Result<Option<Vec<u8>>>;
    instructions(statement: &Value) -> Result<Option<Vec<Instruction>>>;
    statements() -> Vec<StatementFacts>;
    add_function(function: Function) -> Result<()>;
}

impl Env for Running {
    fn trace(&self, text: &str) {
        let tell = self.conn.tracer.borrow().clone();
        if let Some(tell) = tell {
            tell(text);
        }
    }

    fn go_on(&self) -> Result<()> {
        if self.is_undone() { Err(Code::AbortRollback.into()) } else { Ok(()) }
    }

    fn btree(&self, db: usize) -> Result<Btree> {
        self.go_on()?;
        self.conn.btree_of(db)
    }

    fn transient(&self) -> Result<Btree> {
        Btree::ephemeral(self.conn.vfs.clone())
    }

    fn temporary_file(&self) -> Result<Box<dyn iolite_os::File>> {
        self.conn.vfs.open(None, OpenFlags::read_write(FileKind::Temp))
    }

    fn sort_memory(&self) -> usize {
        // PRAGMA temp_store = MEMORY.
        let settings = &self.conn.settings;
        if settings.temp_store() == 2 { usize::MAX } else { settings.sort_memory().max(4096) as usize }
    }

    fn begin(&self, db: usize, write: i32, cookie: u32, generation: u64) -> Result<()> {
        self.go_on()?;
        let c = &self.conn;
        if !self.reads.replace(true) {
            c.txn.note_reader();
        }
        if db >= c.databases.borrow().len() {
            // It was detached.
            self.stale.set(true);
            return Err(Code::Schema.into());
        }
        let b = if write > 0 || db != 1 {
            c.btree_of(db)?
        } else {
            match c.btree_if_open(db) {
                Some(b) => b,
                None => return Ok(()),
            }
        };
        if write > 0 {
            c.check_query_only()?;
        }
        let was = b.txn_state();
        self.waits.set(true);
        if write == 0 {
            b.begin_read()?;
        } else {
            b.begin_write(write > 1)?;
        }
        self.waits.set(false);
        if write > 0 && was != TxnState::Write {
            c.txn.catch_up(&b)?;
        }
        if b.meta(1)? != cookie {
            // Another connection, or another process, has changed the schema.
            if c.catalog.borrow().schemas[db].cookie == cookie {
                c.forget_schema(db);
            }
            self.stale.set(true);
            return Err(Code::Schema.into());
        }
        if c.generations.borrow().get(db).copied() != Some(generation) {
            self.stale.set(true);
            return Err(Code::Schema.into());
        }
        if write > 0 && self.needs_statement {
            c.txn.mark_statement(&self.savepoint, &b)?;
        }
        Ok(())
    }

    fn lock_table(&self, lock: &iolite_bytecode::TableLock) -> Result<()> {
        self.conn.lock_table(lock)
    }

    fn set_meta(&self, db: usize, i: usize, v: u32) -> Result<()> {
        self.go_on()?;
        const SCHEMA_FORMAT: usize = 2;
        let v = if i == SCHEMA_FORMAT && self.conn.settings.legacy_format() { 1 } else { v };
        self.conn.btree_of(db)?.set_meta(i, v)?;
        match i {
            1 => {
                self.expires.set(db == 1);
                self.conn.edit_schema(db, |s| s.cookie = v);
            }
            2 => self.conn.edit_schema(db, |s| s.format = v),
            _ => {}
        }
        Ok(())
    }

    fn parse_schema(&self, db: usize, table: Option<&str>) -> Result<()> {
        self.conn.parse_schema_rows(db, table)
    }

    fn drop_table(&self, db: usize, name: &str) {
        self.conn.edit_schema(db, |s| s.remove_table(name));
    }

    fn begin_virtual(&self, table: &Rc<dyn VirtualTable>) -> Result<()> {
        self.conn.begin_virtual(table)
    }

    fn create_virtual(&self, db: usize, name: &str) -> Result<()> {
        self.conn.create_virtual(db, name)
    }

    fn destroy_virtual(&self, db: usize, name: &str) -> Result<()> {
        self.conn.destroy_virtual(db, name)
    }

    fn drop_index(&self, db: usize, name: &str) {
        self.conn.edit_schema(db, |s| s.remove_index(name));
    }

    fn drop_trigger(&self, db: usize, name: &str) {
        self.conn.edit_schema(db, |s| s.remove_trigger(name));
    }

    fn move_root(&self, db: usize, from: u32, to: u32) -> Result<()> {
        let name = self.conn.catalog.borrow().schemas[db].name.clone();
        let schema = iolite_sql::print::quote_name(&name).into_owned();
        self.conn.edit_schema(db, |s| s.move_root(from, to));
        self.exec_nested(&format!("UPDATE {schema}.sqlite_master SET rootpage={to} WHERE rootpage={from}"))
    }

    fn others_read(&self) -> bool {
        // What the engine runs for itself reads on behalf of a statement that waits for it.
        self.conn.txn.others_read()
    }

    fn exec_nested(&self, sql: &str) -> Result<()> {
        Connection(self.conn.clone()).exec_nested(sql)
    }

    fn settle_changes(&self, n: i64, more: i64) {
        self.conn.changes.set(n);
        if !self.conn.txn.is_nested() {
            self.conn.total_changes.set(self.conn.total_changes.get() + more);
        }
    }

    fn set_last_insert_rowid(&self, rowid: i64) {
        self.conn.last_rowid.set(rowid);
    }

    fn watches_before(&self) -> bool {
        self.conn.preupdate.any()
    }

    fn before_change(&self, change: &RowBefore) {
        self.conn.tell_before(change);
    }

    fn row_replaced(&self, db: usize, table: &str, rowid: i64) {
        self.conn.blob_row_changed(db, table, rowid);
        if !self.conn.txn.is_nested() {
            let name = self.conn.schema_name(db);
            self.conn.txn.row_changed(RowChange::Delete, &name, table, rowid);
        }
    }

    fn row_changed(&self, change: RowChange, db: usize, table: &str, rowid: i64) {
        self.conn.blob_row_changed(db, table, rowid);
        if self.conn.txn.is_nested() {
            return;
        }
        let name = self.conn.schema_name(db);
        let hook = self.conn.update_hook.borrow().clone();
        if let Some(h) = hook {
            h(change, &name, table, rowid);
        }
        self.conn.txn.row_changed(change, &name, table, rowid);
    }

    fn pages_read(&self) -> u64 {
        self.conn.pages_read()
    }

    fn defers_keys(&self) -> bool {
        self.conn.txn.defer_foreign_keys().get()
    }

    fn deferred(&self) -> i64 {
        self.conn.txn.deferred()
    }

    fn count_deferred(&self, n: i64, by_pragma: bool) {
        self.conn.txn.defer(n);
        if by_pragma {
            self.conn.txn.defer_by_pragma(n);
        }
    }

    fn watches_rows(&self) -> bool {
        let c = &self.conn;
        c.update_hook.borrow().is_some() || !c.watched.borrow().is_empty() || c.txn.has_listeners()
    }
}

impl Inner {
    /// The name of a database.
    fn schema_name(&self, db: usize) -> Rc<str> {
        let name = self.catalog.borrow().schemas.get(db).map(|s| s.name.clone());
        name.unwrap_or_else(|| "main".into())
    }
}

impl Inner {
    /// Tells of a change if somebody wants to know.
    pub fn tell_before(&self, change: &RowBefore) {
        let catalog = self.catalog.borrow().clone();
        let Some(schema) = catalog.schemas.get(change.db) else { return };
        let root = change.root;
        let holds = |t: &Table| t.primary_index().map_or(t.root.get(), |i| i.root.get()) == root;
        let Some(table) = schema.tables().find(|t| holds(t)) else { return };
        if self.txn.is_nested() && !table.name.eq_ignore_ascii_case(STATISTICS) {
            return;
        }
        let rowid = |r: &Option<(i64, Vec<Value>)>| r.as_ref().map(|r| r.0);
        let (old, new) = (rowid(&change.old), rowid(&change.new));
        let row =
            |r: &Option<(i64, Vec<Value>)>| r.as_ref().map(|(id, fields)| by_column(table, *id, fields));
        self.tell_preupdate(&Preupdate {
            change: change.change,
            database: schema.name.clone(),
            table: table.name.clone(),
            columns: table.columns.len(),
            old_rowid: old.or(new).unwrap_or(0),
            new_rowid: new.or(old).unwrap_or(0),
            depth: change.depth,
            old: row(&change.old),
            new: row(&change.new),
            blob_column: None,
        });
    }

    /// Tells of a write by incremental access to field `field` of a row with these fields.
    pub fn tell_blob_write(&self, database: &str, table: &Table, field: usize, rowid: i64, fields: &[Value]) {
        self.tell_preupdate(&Preupdate {
            change: RowChange::Delete,
            database: database.into(),
            table: table.name.clone(),
            columns: table.columns.len(),
            old_rowid: rowid,
            new_rowid: rowid,
            depth: 0,
            old: Some(by_column(table, rowid, fields)),
            new: None,
            blob_column: table.storage.get(field).copied(),
        });
    }

    /// Whether somebody wants to know of changes before they are made.
    pub fn watches_before(&self) -> bool {
        self.preupdate.any()
    }

    fn tell_preupdate(&self, p: &Preupdate) {
        self.preupdate.tell(self, p);
    }
}
