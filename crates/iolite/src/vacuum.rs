//! VACUUM: rebuilds a database tree by tree, densely, into a transient one, and takes its content over; VACUUM INTO
//! leaves it in a file of its own.
//!
//! Entries are copied as bytes, so nothing about them can change: rowids, encodings, what stock SQLite wrote. Only the
//! schema table is new: its root pages, and its order, which is that in which stock makes everything anew.

use crate::connection::{Connection, Inner};
use crate::open::{OpenFlags, target};
use iolite_base::hash::FastMap;
use iolite_base::{Code, Error, Result};
use iolite_btree::{AutoVacuum, Btree, InsertAt, JournalMode, OpenOptions, TreeKind};
use iolite_os::Note;
use iolite_value::{Value, record};
use std::cmp::Ordering;

/// Meta values that travel: file format, cache size, encoding, user version, application id.
const META: [usize; 5] = [2, 3, 5, 6, 8];

/// Rebuilds a database.
pub(crate) fn vacuum(c: &Connection, schema: Option<&str>, into: Option<&Value>) -> Result<()> {
    let inner = &c.0;
    if !inner.txn.is_autocommit() {
        return Err(Error::sql("cannot VACUUM from within a transaction"));
    }
    if !inner.txn.is_alone() {
        return Err(Error::sql("cannot VACUUM - SQL statements in progress"));
    }
    let db = schema.map_or(Ok(0), |s| inner.database_number(s))?;
    if db == 1 {
        return Ok(());
    }
    inner.check_query_only()?;
    let from = inner.btree_of(db)?;
    match into {
        Some(v) => {
            if !matches!(v, Value::Text(..)) {
                return Err(Error::sql("non-text filename"));
            }
            vacuum_into(c, db, &from, &v.text_bytes()?)
        }
        None => in_place(c, db, &from),
    }
}

impl Inner {
    /// The size of pages that VACUUM in place gives a database: the one that was asked for, where it can change.
    fn page_size_by_vacuum(&self, b: &Btree) -> u32 {
        let wanted = self.vacuum_page_size.get();
        let fixed = b.is_memory() || b.is_transient() || b.journal_mode() == JournalMode::Wal;
        if wanted == 0 || fixed { b.page_size() } else { wanted }
    }

    /// The bytes at the end of each page that VACUUM sets aside.
    fn reserved_by_vacuum(&self, db: usize, b: &Btree) -> u8 {
        self.vacuum_reserved.get().filter(|(of, _)| *of == db).map_or(b.reserved(), |(_, n)| n)
    }
}

impl Connection {
    /// How many bytes at the end of each page are set aside from the next VACUUM on; sets that if `n` is given and answers
    /// what it was.
    pub fn reserve_at_vacuum(&self, database: &str, n: Option<u8>) -> Result<u8> {
        let db = self.0.database_number(database)?;
        let b = self.btree(database)?;
        let old = self.0.reserved_by_vacuum(db, &b);
        if let Some(n) = n {
            self.0.vacuum_reserved.set(Some((db, n)));
            b.set_page_size(b.page_size(), Some(n))?;
        }
        Ok(old)
    }
}

fn in_place(c: &Connection, db: usize, from: &Btree) -> Result<()> {
    let inner = &c.0;
    from.begin_write(true)?;
    let autoincrement = |table: &str| has_autoincrement(inner, db, table);
    let done = (|| {
        if from.page_count() == 0 {
            return Ok(());
        }
        // Root pages that were known may be those of other tables by now, and the size of pages and the journal mode others
        // may have changed, too: nothing is asked before the transaction has begun.
        inner.know(db)?;
        let page_size = inner.page_size_by_vacuum(from);
        let reserved = inner.reserved_by_vacuum(db, from);
        let options = OpenOptions { page_size, reserved, ..OpenOptions::default() };
        let temp = Btree::open(inner.vfs.clone(), "", &options)?;
        temp.set_page_size(page_size, Some(reserved))?;
        let mode = inner.vacuum_auto_vacuum.get().unwrap_or_else(|| from.auto_vacuum());
        let numbered = |root| !renumbered(inner, db, root);
        if inner.settings.reset_database() {
            // Beginning to write makes the first page.
            temp.begin_write(false)?;
        } else if let Some(id) = rebuild(from, &temp, mode, &numbered, &autoincrement)? {
            inner.last_rowid.set(id);
        }
        temp.commit()?;
        let size = temp.page_count() as u64 * temp.page_size() as u64;
        from.with_files(|file, _| file.map_or(Ok(()), |f| f.notify(Note::Overwrite(size))))??;
        let copied = from.replace_content(&temp);
        temp.close()?;
        copied
    })();
    if let Err(e) = done.and_then(|()| from.commit()) {
        // What goes wrong while it is undone matters less than why.
        let _ = from.rollback(true);
        return Err(e);
    }
    inner.vacuum_page_size.set(0);
    inner.vacuum_reserved.set(inner.vacuum_reserved.get().filter(|(of, _)| *of != db));
    inner.vacuum_auto_vacuum.set(None);
    inner.forget_schema(db);
    inner.txn.tell_of_log(&**inner, db, from);
    Ok(())
}

fn vacuum_into(c: &Connection, db: usize, from: &Btree, file: &[u8]) -> Result<()> {
    let inner = &c.0;
    let flags = OpenFlags { uri: inner.open_flags.uri, ..OpenFlags::default() };
    let t = target(file, flags, &inner.vfs)?;
    let mut options = t.options.clone();
    let reading = from.read_guard()?;
    let wanted = inner.vacuum_page_size.get();
    options.page_size = if wanted != 0 { wanted } else { from.page_size() };
    if options.reserved == 0 {
        options.reserved = inner.reserved_by_vacuum(db, from);
    }
    let to = Btree::open(t.vfs.clone(), &t.path, &options).map_err(|e| {
        let file = String::from_utf8_lossy(file);
        if e.has_message() { e } else { Error::new(e.code(), format!("unable to open database: {file}")) }
    })?;
    inner.lock_tables_to_read(db)?;
    inner.know(db)?;
    let autoincrement = |table: &str| has_autoincrement(inner, db, table);
    let done = (|| {
        if to.reading(|to| Ok(to.page_count()))? > 0 {
            return Err(Error::sql("output file already exists"));
        }
        to.set_page_size(options.page_size, Some(options.reserved))?;
        if let Some(id) = rebuild(from, &to, from.auto_vacuum(), &|_| true, &autoincrement)? {
            inner.last_rowid.set(id);
        }
        to.commit()
    })();
    drop(reading);
    if done.is_err() {
        to.rollback(true)?;
    }
    let closed = to.close();
    done.and(closed)
}

/// Copies every tree of `from` into the empty database `to`. Answers what
/// `last_insert_rowid()` becomes: views and triggers are moved by an INSERT behind everything else. `numbered`: the table
/// with this root page keeps its rowids. `autoincrement`: the table with this name has AUTOINCREMENT.
fn rebuild(
    from: &Btree,
    to: &Btree,
    mode: AutoVacuum,
    numbered: &dyn Fn(u32) -> bool,
    autoincrement: &dyn Fn(&str) -> bool,
) -> Result<Option<i64>> {
    to.set_auto_vacuum(mode)?;
    let enc = from.encoding()?;
    to.set_encoding(enc);
    to.begin_write(false)?;
    let mut roots: FastMap<i64, u32> = FastMap::default();
    let mut out = to.cursor(1, TreeKind::Table, true)?;
    let (mut count, mut without_tree) = (0, false);
    for mut row in arranged(schema_rows(from)?, autoincrement) {
        count += 1;
        without_tree |= row.get(3).is_none_or(|r| r.to_int() == 0);
        if let Some(Value::Int(root)) = row.get(3).cloned()
            && root > 0
        {
            if roots.contains_key(&root) {
                return Err(Code::Corrupt.into());
            }
            let at = u32::try_from(root).map_err(|_| Code::Corrupt)?;
            let new = copy_tree(from, to, at, numbered(at))?;
            roots.insert(root, new);
            row[3] = Value::Int(new as i64);
        }
        let mut rec = Vec::new();
        record::encode(&row, enc, &mut rec)?;
        out.insert_row(count, &rec, 0, InsertAt::Append)?;
    }
    drop(out);
    for m in META {
        to.set_meta(m, from.meta(m)?)?;
    }
    to.set_meta(1, from.meta(1)?)?;
    Ok(without_tree.then_some(count))
}

/// The rows of the schema table.
fn schema_rows(from: &Btree) -> Result<Vec<Vec<Value>>> {
    let enc = from.encoding()?;
    let mut schema = from.cursor(1, TreeKind::Table, false)?;
    let mut rows = Vec::new();
    let mut more = schema.first()?;
    while more {
        let mut rec = iolite_base::alloc::zeroed(schema.payload_len() as usize)?;
        schema.read_payload(0, &mut rec)?;
        rows.push(record::decode(&rec, enc)?);
        more = schema.next()?;
    }
    Ok(rows)
}

/// The order in which stock makes everything anew: tables, each with the indexes that its constraints need and the first
/// with AUTOINCREMENT with `sqlite_sequence`, which goes where no table needs it; then indexes; then what has no tree.
fn arranged(rows: Vec<Vec<Value>>, autoincrement: &dyn Fn(&str) -> bool) -> Vec<Vec<Value>> {
    let text = |r: &[Value], i: usize| r.get(i).map(|v| v.to_string_lossy()).unwrap_or_default();
    let has_tree = |r: &[Value]| r.get(3).is_some_and(|v| v.to_int() > 0);
    let is_table = |r: &[Value]| text(r, 0) == "table" && has_tree(r);
    let is_sequence = |r: &[Value]| is_table(r) && text(r, 1) == "sqlite_sequence";
    let is_auto = |r: &[Value]| text(r, 0) == "index" && r.get(4).is_none_or(Value::is_null);
    let tables: Vec<String> = rows.iter().filter(|r| is_table(r)).map(|r| text(r, 1)).collect();
    let first = tables.iter().position(|t| autoincrement(t));
    // Place among the tables, then within what belongs to a table.
    let place = |r: &Vec<Value>| -> (usize, u8) {
        let of =
            |name: &str| tables.iter().position(|t| t.eq_ignore_ascii_case(name)).unwrap_or(tables.len());
        match () {
            _ if is_sequence(r) => (first.unwrap_or(tables.len()), 2),
            _ if is_table(r) => (of(&text(r, 1)), 0),
            _ if is_auto(r) => (of(&text(r, 2)), 1),
            _ if has_tree(r) => (tables.len() + 1, 0),
            _ => (tables.len() + 2, 0),
        }
    };
    let mut rows: Vec<_> = rows.into_iter().filter(|r| first.is_some() || !is_sequence(r)).collect();
    rows.sort_by_key(place);
    rows
}

/// Whether VACUUM gives the rows of the table with this root page new rowids: those of tables with neither an INTEGER
/// PRIMARY KEY nor an index, as stock does (documentation page `lang_vacuum`).
fn renumbered(c: &Inner, db: usize, root: u32) -> bool {
    let catalog = c.catalog.borrow();
    let found = catalog.schemas[db].tables().find(|t| t.root.get() == root);
    found.is_some_and(|t| t.has_rowid() && t.rowid_alias.is_none() && t.indexes.borrow().is_empty())
}

fn has_autoincrement(c: &Inner, db: usize, table: &str) -> bool {
    c.catalog.borrow().schemas[db].table(table).is_some_and(|t| t.autoincrement)
}

fn copy_tree(from: &Btree, to: &Btree, root: u32, numbered: bool) -> Result<u32> {
    let page = from.read_page(root)?;
    let kind = match page.first() {
        Some(2 | 10) => TreeKind::Index,
        Some(5 | 13) => TreeKind::Table,
        _ => return Err(Code::Corrupt.into()),
    };
    drop(page);
    let new = to.create_tree(kind)?;
    let mut a = from.cursor(root, kind, false)?;
    let mut b = to.cursor(new, kind, true)?;
    let mut rec = Vec::new();
    let mut more = a.first()?;
    let mut rows = 0;
    while more {
        rows += 1;
        rec.clear();
        iolite_base::alloc::reserve(&mut rec, a.payload_len() as usize)?;
        rec.resize(a.payload_len() as usize, 0);
        a.read_payload(0, &mut rec)?;
        match kind {
            TreeKind::Table => {
                let rowid = if numbered { a.rowid() } else { rows };
                b.insert_row(rowid, &rec, 0, InsertAt::Append)?
            }
            // Entries come in their own order: each belongs behind all others.
            TreeKind::Index => b.insert_entry(&rec, InsertAt::Append, &mut |_: &[u8]| Ok(Ordering::Less))?,
        }
        more = a.next()?;
    }
    Ok(new)
}
