//! VACUUM: rebuilds a database tree by tree, densely, into a transient one, and takes its content over; VACUUM INTO
//! leaves it in a file of its own.
//!
//! Entries are copied as bytes, so nothing about them can change: rowids, encodings, what stock SQLite wrote. Only the
//! schema table's root pages are new.

use crate::connection::Connection;
use crate::control::constant;
use crate::open::{OpenFlags, target};
use iolite_base::hash::FastMap;
use iolite_base::{Code, Error, Result};
use iolite_btree::{AutoVacuum, Btree, InsertAt, OpenOptions, TreeKind};
use iolite_sql::ast::Expr;
use iolite_value::{Value, record};
use std::cmp::Ordering;

/// Meta values that travel: file format, cache size, encoding, user version, application id.
const META: [usize; 5] = [2, 3, 5, 6, 8];

/// Rebuilds a database.
pub(crate) fn vacuum(c: &Connection, schema: Option<&str>, into: Option<&Expr>) -> Result<()> {
    let inner = &c.0;
    if !inner.autocommit.get() {
        return Err(Error::sql("cannot VACUUM from within a transaction"));
    }
    if inner.running.get() > 1 {
        return Err(Error::sql("cannot VACUUM - SQL statements in progress"));
    }
    let db = schema.map_or(Ok(0), |s| inner.database_number(s))?;
    if db == 1 {
        return Ok(());
    }
    let from = inner.btree_of(db)?;
    match into {
        Some(e) => {
            let v = constant(c, e)?;
            if !matches!(v, Value::Text(..)) {
                return Err(Error::sql("non-text filename"));
            }
            vacuum_into(c, &from, &v.to_string_lossy())
        }
        None => {
            if from.is_memory() || from.is_transient() {
                return in_place(c, db, &from, from.page_size());
            }
            let wanted = inner.vacuum_page_size.get();
            let size = if wanted != 0 && from.journal_mode() != iolite_btree::JournalMode::Wal {
                wanted
            } else {
                from.page_size()
            };
            in_place(c, db, &from, size)
        }
    }
}

fn in_place(c: &Connection, db: usize, from: &Btree, page_size: u32) -> Result<()> {
    let inner = &c.0;
    from.begin_write(true)?;
    let done = (|| {
        if from.page_count() == 0 {
            return Ok(());
        }
        let options = OpenOptions { page_size, reserved: from.reserved(), ..OpenOptions::default() };
        let temp = Btree::open(inner.vfs.clone(), "", &options)?;
        temp.set_page_size(page_size, Some(from.reserved()))?;
        let mode = inner.vacuum_auto_vacuum.get().unwrap_or_else(|| from.auto_vacuum());
        if let Some(id) = rebuild(from, &temp, mode, 1)? {
            inner.last_rowid.set(id);
        }
        temp.commit()?;
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
    inner.vacuum_auto_vacuum.set(None);
    inner.forget_schema(db);
    Ok(())
}

fn vacuum_into(c: &Connection, from: &Btree, file: &str) -> Result<()> {
    let inner = &c.0;
    let t = target(file, OpenFlags::default())?;
    let mut options = t.options.clone();
    let wanted = inner.vacuum_page_size.get();
    options.page_size = if wanted != 0 { wanted } else { from.page_size() };
    if options.reserved == 0 {
        options.reserved = from.reserved();
    }
    let to = Btree::open(inner.vfs.clone(), &t.path, &options)?;
    from.begin_read()?;
    let done = (|| {
        to.begin_read()?;
        if to.page_count() > 0 {
            return Err(Error::sql("output file already exists"));
        }
        to.end_read();
        to.set_page_size(options.page_size, Some(options.reserved))?;
        if let Some(id) = rebuild(from, &to, from.auto_vacuum(), 0)? {
            inner.last_rowid.set(id);
        }
        to.commit()
    })();
    from.end_read();
    if done.is_err() {
        to.rollback(true)?;
    }
    let closed = to.close();
    done.and(closed)
}

/// Copies every tree of `from` into the empty database `to`; `bump` is added to the schema cookie. Answers what
/// `last_insert_rowid()` becomes: views and triggers are moved by an INSERT behind everything else.
fn rebuild(from: &Btree, to: &Btree, mode: AutoVacuum, bump: u32) -> Result<Option<i64>> {
    to.set_auto_vacuum(mode)?;
    let enc = from.encoding()?;
    to.set_encoding(enc);
    to.begin_write(false)?;
    let mut roots: FastMap<i64, u32> = FastMap::default();
    let mut schema = from.cursor(1, TreeKind::Table, false)?;
    let mut out = to.cursor(1, TreeKind::Table, true)?;
    let mut more = schema.first()?;
    let (mut count, mut without_tree) = (0, false);
    while more {
        let mut rec = iolite_base::alloc::zeroed(schema.payload_len() as usize)?;
        schema.read_payload(0, &mut rec)?;
        let mut row = record::decode(&rec, enc)?;
        count += 1;
        without_tree |= row.get(3).is_none_or(|r| r.to_int() == 0);
        if let Some(Value::Int(root)) = row.get(3).cloned()
            && root > 0
        {
            if roots.contains_key(&root) {
                return Err(Code::Corrupt.into());
            }
            let new = copy_tree(from, to, u32::try_from(root).map_err(|_| Code::Corrupt)?)?;
            roots.insert(root, new);
            row[3] = Value::Int(new as i64);
        }
        let mut rec = Vec::new();
        record::encode(&row, enc, &mut rec)?;
        out.insert_row(schema.rowid(), &rec, 0, InsertAt::Append)?;
        more = schema.next()?;
    }
    drop(out);
    for m in META {
        to.set_meta(m, from.meta(m)?)?;
    }
    to.set_meta(1, from.meta(1)?.wrapping_add(bump))?;
    Ok(without_tree.then_some(count))
}

fn copy_tree(from: &Btree, to: &Btree, root: u32) -> Result<u32> {
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
    while more {
        rec.clear();
        iolite_base::alloc::reserve(&mut rec, a.payload_len() as usize)?;
        rec.resize(a.payload_len() as usize, 0);
        a.read_payload(0, &mut rec)?;
        match kind {
            TreeKind::Table => b.insert_row(a.rowid(), &rec, 0, InsertAt::Append)?,
            // Entries come in their own order: each belongs behind all others.
            TreeKind::Index => b.insert_entry(&rec, InsertAt::Append, &mut |_| Ok(Ordering::Less))?,
        }
        more = a.next()?;
    }
    Ok(new)
}
