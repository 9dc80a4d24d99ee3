//! Incremental access to one value: a [`Blob`] reads and overwrites parts of a text or blob where it is stored.
//!
//! ```text
//!   open ----> on a row ----> (reopen: on another row) ----> closed: commits as a statement does
//!                 |
//!                 +-- the row was changed, or the transaction taken back ----> expired: only SQLITE_ABORT
//! ```
//!
//! A handle is a statement in the midst of its run, with one cursor: it keeps the snapshot (or, for writing, the write
//! transaction) that it began with, and outside of BEGIN its end is the commit. What always holds: bytes go straight
//! between the caller and the pages, whatever the size of the value; no index, no trigger, no hook hears of them, which is
//! why columns that an index, a foreign key or a generated column may depend on are refused. Whether the row was changed is
//! learned from the machine, which tells of each row that it writes, and from the cursor, which notices that its tree was
//! changed and then must find the same record again.

use crate::connection::{Connection, Inner};
use crate::statement::{Statement, Step};
use crate::watched::Watched;
use iolite_base::{Code, Error, Result, alloc, same_name, varint};
use iolite_btree::{Btree, Cursor, TreeKind, TxnState};
use iolite_bytecode::TableLock;
use iolite_catalog::{ColumnSource, Table, TableKind};
use std::cell::Cell;
use std::cmp::Ordering;
use std::rc::Rc;

/// An open text or blob.
pub struct Blob {
    place: Place,
    watched: Rc<Watched>,
    /// None once the handle has expired.
    open: Option<Open>,
}

/// Where values of a handle are.
struct Place {
    conn: Rc<Inner>,
    btree: Btree,
    table: Rc<Table>,
    root: u32,
    /// The record's field.
    field: usize,
    writes: bool,
    /// The schema's generation that `table` and `field` are right in.
    generation: Cell<u64>,
}

struct Open {
    /// Dropped first: no cursor may stand anywhere when the transaction ends.
    cursor: Cursor,
    statement: Statement,
    /// Where the value lies in the record.
    offset: u32,
    len: u32,
    /// The record's header: another one is another record.
    header: Vec<u8>,
}

/// How often opening begins anew because the schema has changed.
const MAX_RETRY: u32 = 50;

impl Connection {
    /// Opens the value in `column` of the row `rowid`, for reading or for overwriting. Without a database, the table is
    /// looked for in all of them.
    pub fn blob_open(
        &self,
        database: Option<&str>,
        table: &str,
        column: &str,
        rowid: i64,
        write: bool,
    ) -> Result<Blob> {
        let mut tries = 0;
        loop {
            match self.blob_open_once((database, table, column), rowid, write) {
                Err(e) if e.code() == Code::Schema && tries < MAX_RETRY => tries += 1,
                other => return other,
            }
        }
    }

    fn blob_open_once(&self, name: (Option<&str>, &str, &str), rowid: i64, writes: bool) -> Result<Blob> {
        let inner = &self.0;
        inner.load_schemas()?;
        let (db, table, column) = match find(inner, name, writes) {
            // The catalog may be out of date: somebody else may have made what is named.
            Err(e) if e.code() == Code::Error && inner.look_again() => {
                inner.load_schemas()?;
                find(inner, name, writes)?
            }
            found => found?,
        };
        let field = table.field_of[column].ok_or(Code::Internal)?;
        let mut program = crate::work::holding_program(self, db, writes)?;
        // Nothing of it is ever undone alone.
        program.needs_statement = false;
        let root = table.root.get();
        if inner.sharing.is_some() {
            program.locks = vec![TableLock { db, root, write: writes, name: table.name.clone() }];
        }
        let mut statement = Statement::new(self, "", Rc::new(program))?;
        if statement.step()? != Step::Row {
            return Err(Code::Internal.into());
        }
        let btree = inner.btree_of(db)?;
        let cursor = btree.cursor(root, TreeKind::Table, writes)?;
        let watched = Rc::new(Watched {
            database: inner.databases.borrow()[db].name.clone(),
            table: table.name.clone(),
            rowid: Cell::new(rowid),
            changed: Cell::new(false),
        });
        let generation = Cell::new(inner.generations.borrow()[db]);
        let place = Place { conn: inner.clone(), btree, table, root, field, writes, generation };
        let open = Open { cursor, statement, offset: 0, len: 0, header: Vec::new() };
        let mut blob = Blob { place, watched, open: Some(open) };
        blob.go_to(rowid)?;
        inner.watched.borrow_mut().push(blob.watched.clone());
        Ok(blob)
    }
}

/// The table and the column that may be opened.
fn find(
    inner: &Inner,
    (database, name, column): (Option<&str>, &str, &str),
    writes: bool,
) -> Result<(usize, Rc<Table>, usize)> {
    let catalog = inner.catalog.borrow().clone();
    let Some((db, table)) = catalog.table(database, name) else {
        let place = database.map_or(String::new(), |d| format!("{d}."));
        return Err(Error::sql(format!("no such table: {place}{name}")));
    };
    let refused = |what: &str| Err(Error::sql(format!("cannot open {what}: {name}")));
    match &table.kind {
        TableKind::Rowid => {}
        TableKind::WithoutRowid => return refused("table without rowid"),
        TableKind::View { .. } => return refused("view"),
        _ => return refused("virtual table"),
    }
    if table.columns.iter().any(|c| c.generated.is_some()) {
        return refused("table with generated columns");
    }
    let Some(at) = table.columns.iter().position(|c| same_name(&c.name, column)) else {
        return Err(Error::sql(format!("no such column: \"{column}\"")));
    };
    if writes {
        let refused = |why: &str| Err(Error::sql(format!("cannot open {why} column for writing")));
        if inner.settings.foreign_keys() && table.foreign_keys.iter().any(|f| f.columns.contains(&at)) {
            return refused("foreign key");
        }
        // An expression may mention any column.
        let indexed = |source: &ColumnSource| match source {
            ColumnSource::Column(c) => *c == at,
            ColumnSource::Rowid => table.rowid_alias == Some(at),
            ColumnSource::Expr(_) => true,
        };
        let in_index = |i: &iolite_catalog::Index| {
            let condition = i.filter.as_ref().map(|f| iolite_sql::print::expr(f).to_ascii_lowercase());
            condition.is_some_and(|c| c.contains(&column.to_ascii_lowercase()))
                || i.columns[..i.key_len].iter().any(|c| indexed(&c.source))
        };
        if table.indexes.borrow().iter().any(|i| in_index(i)) {
            return refused("indexed");
        }
        if table.root.get() == 1 && !inner.settings.writable_schema() {
            return Err(Error::sql(format!("table {} may not be modified", table.name)));
        }
    }
    Ok((db, table, at))
}

impl Blob {
    /// How many bytes the value has; 0 for a handle that has expired.
    pub fn len(&self) -> usize {
        self.open.as_ref().map_or(0, |o| o.len as usize)
    }

    /// Whether the value has no bytes, or the handle has expired.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads bytes from `offset` on. `SQLITE_ERROR` beyond the value, `SQLITE_ABORT` once the handle has expired.
    pub fn read(&mut self, offset: usize, out: &mut [u8]) -> Result<()> {
        let at = self.range(offset, out.len())?;
        let open = self.current()?;
        let done = open.cursor.read_payload(open.offset + at, out);
        self.noting(done)
    }

    /// Where bytes lie in the file, in the state that is being read: page, place on it and number of bytes of each part.
    pub(crate) fn pieces(&mut self, offset: usize, len: usize, f: impl FnMut(u32, u32, u32)) -> Result<()> {
        let at = self.range(offset, len)?;
        let open = self.current()?;
        let done = open.cursor.payload_pieces(open.offset + at, len as u32, f);
        self.noting(done)
    }

    /// Overwrites bytes from `offset` on; the value's length stays. As [`Blob::read`], and `SQLITE_READONLY` for a handle
    /// that was opened for reading.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<()> {
        let at = self.range(offset, bytes.len())?;
        let writes = self.place.writes;
        self.current()?;
        if !writes {
            return Err(Code::Readonly.into());
        }
        if self.place.conn.watches_before() {
            self.announce()?;
        }
        let open = self.open.as_mut().ok_or(Code::Abort)?;
        let done = open.cursor.write_payload(open.offset + at, bytes);
        self.noting(done)
    }

    /// Tells who wants to know that the value is about to be written to.
    fn announce(&mut self) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let mut record = alloc::zeroed(open.cursor.payload_len() as usize)?;
        open.cursor.read_payload(0, &mut record)?;
        let (p, w) = (&self.place, &self.watched);
        let fields = iolite_value::record::decode(&record, p.conn.encoding())?;
        p.conn.tell_blob_write(&w.database, &p.table, p.field, w.rowid.get(), &fields);
        Ok(())
    }

    /// Moves the handle to another row of the same table. If that has no text or blob there, the handle expires.
    pub fn reopen(&mut self, rowid: i64) -> Result<()> {
        // That the row left behind was changed does not matter here, that the transaction is gone does.
        if self.open.is_none() || !self.has_transaction() {
            self.expire();
            return Err(Code::Abort.into());
        }
        self.watched.changed.set(false);
        let moved = self.check_schema().and_then(|()| self.go_to(rowid));
        if moved.is_err() {
            self.expire();
        }
        moved
    }

    /// Closes the handle. What was written is committed, unless a transaction is open; if that fails, it is taken back.
    pub fn close(mut self) -> Result<()> {
        self.end()
    }

    /// `offset` within the value, if `len` bytes from there on lie in it.
    fn range(&self, offset: usize, len: usize) -> Result<u32> {
        let inside = offset.checked_add(len).is_some_and(|end| end <= self.len());
        match &self.open {
            None => Err(Code::Abort.into()),
            Some(_) if inside => Ok(offset as u32),
            Some(_) => Err(Code::Error.into()),
        }
    }

    fn has_transaction(&self) -> bool {
        let state = self.place.btree.txn_state();
        if self.place.writes { state == TxnState::Write } else { state != TxnState::None }
    }

    /// Whether the table is still what it was.
    fn check_schema(&self) -> Result<()> {
        let p = &self.place;
        let catalog = p.conn.catalog.borrow().clone();
        let Some(db) = catalog.database(&self.watched.database) else { return Err(Code::Abort.into()) };
        let generation = p.conn.generations.borrow().get(db).copied();
        if generation == Some(p.generation.get()) {
            return Ok(());
        }
        let now = catalog.schemas[db].table(&self.watched.table);
        let column = |t: &Table| {
            let at = t.field_of.iter().position(|f| *f == Some(p.field));
            at.map(|at| t.columns[at].name.clone())
        };
        let same = now.is_some_and(|t| t.root.get() == p.root && column(t) == column(&p.table));
        if !same {
            return Err(Code::Abort.into());
        }
        p.generation.set(generation.unwrap_or_default());
        Ok(())
    }

    /// The open handle with its cursor on the row as it was, or expiry.
    fn current(&mut self) -> Result<&mut Open> {
        if !self.has_transaction() {
            self.expire();
            return Err(Code::AbortRollback.into());
        }
        let found = if !self.watched.changed.get() {
            self.check_schema().and_then(|()| self.found_again())
        } else {
            Err(Code::Abort.into())
        };
        if let Err(e) = found {
            self.expire();
            return Err(e);
        }
        self.open.as_mut().ok_or_else(|| Code::Abort.into())
    }

    /// Seeks the row again if its tree was changed: the same record must be there.
    fn found_again(&mut self) -> Result<()> {
        let field = self.place.field;
        let Some(open) = &mut self.open else { return Err(Code::Abort.into()) };
        if !open.cursor.is_stale() && open.cursor.is_valid() {
            return Ok(());
        }
        if open.cursor.seek_rowid(self.watched.rowid.get())? != Some(Ordering::Equal) {
            return Err(Code::Abort.into());
        }
        let (header, offset, len) = locate(&mut open.cursor, field)?;
        if (offset, len) != (open.offset, open.len) || header != open.header {
            return Err(Code::Abort.into());
        }
        Ok(())
    }

    fn go_to(&mut self, rowid: i64) -> Result<()> {
        let field = self.place.field;
        let Some(open) = &mut self.open else { return Err(Code::Abort.into()) };
        if open.cursor.seek_rowid(rowid)? != Some(Ordering::Equal) {
            return Err(Error::sql(format!("no such rowid: {rowid}")));
        }
        (open.header, open.offset, open.len) = locate(&mut open.cursor, field)?;
        self.watched.rowid.set(rowid);
        Ok(())
    }

    /// Passes on how an access went; one that found the row gone ends the handle.
    fn noting(&mut self, done: Result<()>) -> Result<()> {
        if done.as_ref().is_err_and(|e| e.code() == Code::Abort) {
            self.expire();
        }
        done
    }

    fn expire(&mut self) {
        // The caller hears of the expiry; what was written before it is kept or lost with the transaction.
        let _ = self.end();
    }

    fn end(&mut self) -> Result<()> {
        self.place.conn.watched.borrow_mut().retain(|w| !Rc::ptr_eq(w, &self.watched));
        match self.open.take() {
            None => Ok(()),
            Some(Open { cursor, mut statement, .. }) => {
                drop(cursor);
                statement.reset()
            }
        }
    }
}

impl Drop for Blob {
    fn drop(&mut self) {
        // Whoever wants to know how it ends calls `close`.
        let _ = self.end();
    }
}

/// The header of the record that a cursor stands on, and where its field number `field` lies: offset and length.
fn locate(cursor: &mut Cursor, field: usize) -> Result<(Vec<u8>, u32, u32)> {
    let payload = cursor.payload_len();
    let mut head = [0; 9];
    let n = head.len().min(payload as usize);
    cursor.read_payload(0, &mut head[..n])?;
    let (len, mut at) = varint::get(&head[..n]).ok_or(Code::Corrupt)?;
    if len > payload as u64 || (len as usize) < at {
        return Err(Code::Corrupt.into());
    }
    let mut header = alloc::zeroed(len as usize)?;
    cursor.read_payload(0, &mut header)?;
    let (mut kind, mut offset) = (0, len);
    // A record may end before its table does: what is missing is a default, which is stored nowhere.
    for i in 0..=field {
        let Some((t, n)) = header.get(at..).filter(|h| !h.is_empty()).and_then(varint::get) else {
            kind = 0;
            break;
        };
        at += n;
        if i == field {
            kind = t;
        } else {
            offset = offset.saturating_add(iolite_value::record::serial_len(t) as u64);
        }
    }
    let class = match kind {
        0 => "null",
        7 => "real",
        1..=11 => "integer",
        _ => {
            let len = (kind - 12) / 2;
            if offset.saturating_add(len) > payload as u64 {
                return Err(Code::Corrupt.into());
            }
            return Ok((header.to_vec(), offset as u32, len as u32));
        }
    };
    Err(Error::sql(format!("cannot open value of type {class}")))
}

impl Inner {
    /// Takes note of a changed row: handles on it expire.
    pub fn blob_row_changed(&self, db: usize, table: &str, rowid: i64) {
        let databases = self.databases.borrow();
        let Some(d) = databases.get(db) else { return };
        for w in self.watched.borrow().iter() {
            if w.rowid.get() == rowid && w.database == d.name && same_name(&w.table, table) {
                w.changed.set(true);
            }
        }
    }
}
