//! The connection as functions and modules see it: [`Host`].
//!
//! What they run while a statement writes is a part of that statement: it commits nothing, and what it changes is not counted.
//! Otherwise it is a statement like those of the user.

use crate::blob::Blob;
use crate::connection::{Connection, Inner};
use crate::statement::{Parked, Statement, Step};
use iolite_base::{Code, Encoding, Error, Limit, Result};
use iolite_catalog::TableKind;
use iolite_ext::{
    Changes, Function, Host, Instruction, NestedBlob, NestedStatement, Piece, ReadNote, StatementFacts,
    VirtualTable, WasRead,
};
use iolite_plan::bind::Connector;
use iolite_value::Value;
use std::rc::{Rc, Weak};

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

    fn check_interrupt(&self) -> Result<()> {
        self.interrupted()
    }

    fn check_after(&self, steps: usize) -> Result<()> {
        self.interrupted_after(steps)
    }

    fn threads(&self) -> usize {
        usize::try_from(self.settings.threads()).unwrap_or(0).clamp(1, crate::settings::MOST_THREADS)
    }

    fn random(&self, out: &mut [u8]) {
        self.random.borrow_mut().fill(out, self.vfs.entropy());
    }

    fn prepare(&self, sql: &str) -> Result<Box<dyn NestedStatement>> {
        let conn = self.handle()?;
        let statement = conn.prepare(sql)?;
        let (parked, reset) = statement.park();
        reset?;
        Ok(Box::new(Nested { conn: Rc::downgrade(&conn.0), state: State::Parked(parked) }))
    }

    fn columns_of(&self, sql: &str) -> Result<Vec<String>> {
        Ok(self.handle()?.unasked(|_| self.prepare(sql))?.columns())
    }

    fn changed_since(&self, database: &str, tables: &[WasRead], note: &mut ReadNote) -> Option<Changes> {
        self.changes_of(self.database_number(database).ok()?, tables, note)
    }

    fn changed_within(&self, database: &str, tables: &[WasRead], note: &ReadNote) -> Option<Changes> {
        self.changes_within(self.database_number(database).ok()?, tables, note)
    }

    fn page_count(&self, database: &str) -> Result<u32> {
        self.btree_of(self.database_number(database)?)?.reading(|b| Ok(b.page_count()))
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

    fn read_blob(&self, value: (&str, &str, &str), rowid: i64, offset: usize, out: &mut [u8]) -> Result<()> {
        let (database, table, column) = value;
        self.handle()?.blob_open(Some(database), table, column, rowid, false)?.read(offset, out)
    }

    fn open_blob(&self, value: (&str, &str, &str), rowid: i64) -> Result<Box<dyn NestedBlob>> {
        let (database, table, column) = value;
        Ok(Box::new(self.handle()?.blob_open(Some(database), table, column, rowid, false)?))
    }

    fn read_pieces(&self, database: &str, pieces: &[Piece], out: &mut [u8]) -> Result<()> {
        let b = self.btree_of(self.database_number(database)?)?;
        b.reading(|b| {
            let mut out = out;
            for p in pieces {
                let page = b.read_page(p.page)?;
                let from = page.get(p.at as usize..).and_then(|rest| rest.get(..p.len as usize));
                let (to, rest) = out.split_at_mut_checked(p.len as usize).ok_or(Code::Misuse)?;
                to.copy_from_slice(from.ok_or(Code::Corrupt)?);
                out = rest;
            }
            Ok(())
        })
    }

    fn write_blob(&self, value: (&str, &str, &str), rowid: i64, offset: usize, bytes: &[u8]) -> Result<()> {
        let (database, table, column) = value;
        let mut blob = self.handle()?.blob_open(Some(database), table, column, rowid, true)?;
        blob.write(offset, bytes)?;
        blob.close()
    }

    fn put_back_last_insert_rowid(&self, rowid: i64) {
        self.last_rowid.set(rowid);
    }

    fn virtual_table(&self, database: &str, name: &str) -> Result<Option<Rc<dyn VirtualTable>>> {
        let db = self.database_number(database)?;
        self.be_current(Some(database), false)?;
        let table = self.catalog.borrow().schemas.get(db).and_then(|s| s.table(name).cloned());
        match table {
            Some(t) if matches!(t.kind, TableKind::Virtual { .. }) => {
                Ok(Some(self.handle()?.connect(db, &t)?.vtab.clone()))
            }
            _ => Ok(None),
        }
    }

    fn deferred_violations(&self) -> i64 {
        self.txn.deferred()
    }

    fn set_deferred_violations(&self, n: i64) {
        self.txn.defer(n - self.txn.deferred());
    }

    fn opener(&self) -> usize {
        self.opener.get()
    }

    fn without_key_actions(&self, on: bool) -> bool {
        let was = self.settings.key_actions.replace(!on);
        if was != on {
            self.expire_statements();
        }
        was
    }

    fn instructions(&self, statement: &Value) -> Result<Option<Vec<Instruction>>> {
        match statement {
            Value::Text(..) => Ok(Some(self.handle()?.prepare(&statement.text_carried())?.explain())),
            Value::Blob(..) => {
                let list = self.statements.borrow().clone();
                list.map_or(Ok(None), |l| l.instructions(statement))
            }
            _ => Ok(None),
        }
    }

    fn statements(&self) -> Vec<StatementFacts> {
        let list = self.statements.borrow().clone();
        list.map_or_else(Vec::new, |l| l.facts())
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

impl NestedBlob for Blob {
    fn go_to(&mut self, rowid: i64) -> Result<()> {
        self.reopen(rowid)
    }

    fn read(&mut self, offset: usize, out: &mut [u8]) -> Result<()> {
        Blob::read(self, offset, out)
    }

    fn pieces(&mut self, offset: usize, len: usize) -> Result<Vec<Piece>> {
        let mut all = Vec::new();
        Blob::pieces(self, offset, len, |page, at, len| all.push(Piece { page, at, len }))?;
        Ok(all)
    }
}

/// A statement of a function's or module's own. It holds the connection while it runs.
struct Nested {
    conn: Weak<Inner>,
    state: State,
}

#[allow(clippy::large_enum_variant)]
enum State {
    Parked(Parked),
    Running(Statement),
    /// Being taken from one of the others to the other.
    Between,
}

impl Nested {
    /// Runs `f` as a part of the statement that is writing, if there is one.
    fn within<T>(&mut self, f: impl FnOnce(&mut Statement) -> Result<T>) -> Result<T> {
        let conn = self.conn.upgrade().ok_or(Code::Misuse)?;
        let mut s = match std::mem::replace(&mut self.state, State::Between) {
            State::Parked(mut p) => p.wake(conn.clone()),
            State::Running(s) => s,
            State::Between => return Err(Code::Misuse.into()),
        };
        let answer = f(&mut s);
        self.state = State::Running(s);
        answer
    }

    fn park(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.state, State::Between) {
            State::Running(s) => {
                let (parked, reset) = s.park();
                self.state = State::Parked(parked);
                reset
            }
            other => {
                self.state = other;
                Ok(())
            }
        }
    }
}

impl NestedStatement for Nested {
    fn columns(&self) -> Vec<String> {
        let columns = match &self.state {
            State::Parked(p) => p.columns(),
            State::Running(s) => s.columns(),
            State::Between => &[],
        };
        columns.iter().map(|c| c.name.to_string()).collect()
    }

    fn bind(&mut self, n: usize, v: Value) -> Result<()> {
        match &mut self.state {
            State::Parked(p) => match n.checked_sub(1).and_then(|i| p.params().get_mut(i)) {
                Some(p) => {
                    *p = v;
                    Ok(())
                }
                None => Err(Code::Range.into()),
            },
            State::Running(s) => s.bind(n, v),
            State::Between => Err(Code::Misuse.into()),
        }
    }

    fn step(&mut self) -> Result<bool> {
        let primary = self.conn.upgrade().is_some_and(|c| c.primary_codes.get());
        self.within(|s| match s.step() {
            Err(e) if primary && e.code() != e.code().primary() => Err(match e.has_message() {
                true => Error::new(e.code().primary(), e.message()),
                false => e.code().primary().into(),
            }),
            step => Ok(step? == Step::Row),
        })
    }

    fn row(&self) -> &[Value] {
        match &self.state {
            State::Running(s) => s.row(),
            _ => &[],
        }
    }

    fn made_rowid(&self) -> i64 {
        match &self.state {
            State::Running(s) => s.made_rowid(),
            _ => 0,
        }
    }

    fn reset(&mut self) -> Result<()> {
        self.park()
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        let _ = self.park();
        if let (State::Parked(p), Some(conn)) = (&mut self.state, self.conn.upgrade()) {
            // Its memory goes to the connection's next statement.
            drop(p.wake(conn));
        }
    }
}
