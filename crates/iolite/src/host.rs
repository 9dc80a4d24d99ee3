//! The connection as functions and modules see it: [`Host`].
//!
//! What they run while a statement writes is a part of that statement: it commits nothing, and what it changes is not counted.
//! Otherwise it is a statement like those of the user.

use crate::connection::{Connection, Inner};
use crate::statement::{Statement, Step};
use iolite_base::{Code, Encoding, Error, Limit, Result};
use iolite_ext::{Function, Host, NestedStatement};
use iolite_value::Value;
use std::rc::Rc;

impl Host for Inner {
    fn last_insert_rowid(&self) -> i64 {
        self.last_rowid.get()
    }

    fn changes(&self) -> i64 {
        self.changes.get()
    }

    fn total_changes(&self) -> i64 {
        self.total_changes.get()
    }

    fn limit(&self, which: Limit) -> i32 {
        self.limits.borrow().get(which)
    }

    fn encoding(&self) -> Encoding {
        self.encoding()
    }

    fn now_julian_ms(&self) -> i64 {
        // Fixed at the first question of a step.
        let t = self.statement_time.get();
        if t != 0 {
            return t;
        }
        let now = self.vfs.clock().unix_millis() + 210_866_760_000_000;
        self.statement_time.set(now);
        now
    }

    fn local_offset(&self, unix_seconds: i64) -> Result<i64> {
        Ok(self.vfs.clock().local_offset(unix_seconds))
    }

    fn random(&self, out: &mut [u8]) {
        self.random.borrow_mut().fill(out, self.vfs.entropy());
    }

    fn prepare(&self, sql: &str) -> Result<Box<dyn NestedStatement>> {
        let conn = self.handle()?;
        let part = self.txn.is_writing() || self.txn.is_nested();
        let _nested = part.then(|| self.txn.nest());
        let statement = conn.prepare(sql)?;
        Ok(Box::new(Nested { conn: conn.0, statement }))
    }

    fn page(&self, database: &str, number: u32) -> Result<Option<Vec<u8>>> {
        let b = self.btree_of(self.database_number(database)?)?;
        b.reading(|b| {
            if number == 0 || number > b.page_count() {
                return Ok(None);
            }
            let page = b.read_page(number)?;
            let mut out = iolite_base::alloc::zeroed(page.len())?;
            out.copy_from_slice(&page);
            Ok(Some(out))
        })
    }

    fn add_function(&self, function: Function) -> Result<()> {
        self.handle()?.create_function(function);
        Ok(())
    }
}

impl Inner {
    /// A handle on this connection.
    pub(crate) fn handle(&self) -> Result<Connection> {
        self.own.upgrade().map(Connection).ok_or_else(|| Error::from(Code::Misuse))
    }
}

/// A statement of a function's or module's own.
struct Nested {
    conn: Rc<Inner>,
    statement: Statement,
}

impl Nested {
    /// Runs `f` as a part of the statement that is writing, if there is one.
    fn within<T>(&mut self, f: impl FnOnce(&mut Statement) -> Result<T>) -> Result<T> {
        let conn = self.conn.clone();
        let part = conn.txn.is_writing() || conn.txn.is_nested();
        let _nested = part.then(|| conn.txn.nest());
        f(&mut self.statement)
    }
}

impl NestedStatement for Nested {
    fn columns(&self) -> Vec<String> {
        self.statement.columns().iter().map(|c| c.name.to_string()).collect()
    }

    fn bind(&mut self, n: usize, v: Value) -> Result<()> {
        self.statement.bind(n, v)
    }

    fn step(&mut self) -> Result<bool> {
        self.within(|s| Ok(s.step()? == Step::Row))
    }

    fn row(&self) -> &[Value] {
        self.statement.row()
    }

    fn reset(&mut self) -> Result<()> {
        self.within(Statement::reset)
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        let _ = self.reset();
    }
}
