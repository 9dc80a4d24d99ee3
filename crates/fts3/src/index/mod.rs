//! The inverted index: terms, and for each the rows and places where it stands.
//!
//! ```text
//! pending -> writer -> segment (a tree of blocks) -> merge -> a segment of the next level
//!                                                 \-> incremental: the same, some blocks at a time
//! ```
//!
//! Of a row that several segments have, the newest counts; a row without places is one that was deleted.

mod incremental;
mod merge;
mod node;
mod pending;
mod rows;
mod segment;
mod writer;

pub(crate) use merge::Multi;
use pending::Pending;
pub(crate) use rows::{Rows, place, places};
pub(crate) use segment::Source;

use crate::store::{Sql, Store};
use iolite_base::{Code, Error, Result};
use iolite_value::Value;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// How many levels an index has.
pub(crate) const LEVELS: i64 = 1024;
/// How many segments a level has before they are merged.
const MERGED: i64 = 16;
/// How much is kept back before it is written.
const MAX_PENDING: usize = 1 << 20;

/// The records of `%_stat`.
pub(crate) const TOTALS: i64 = 0;
const HINT: i64 = 1;
const AUTOMERGE: i64 = 2;

#[cold]
pub(crate) fn corrupt() -> Error {
    Code::CorruptVtab.into()
}

/// The index of one table: its terms, and those of each prefix length.
pub(crate) struct Index {
    pub store: Rc<Store>,
    pending: RefCell<Vec<Pending>>,
    bytes: Cell<usize>,
    /// The row that is being written, whether it is being deleted, its language.
    row: Cell<(i64, bool, i64)>,
    /// Leaves written in this transaction.
    leaves: Cell<i64>,
    /// How many segments incremental merging wants; `None`: not known yet.
    automerge: Cell<Option<i64>>,
    /// Whether there is a table `%_stat`; `None`: not known yet.
    pub has_stat: Cell<Option<bool>>,
    node_size: Cell<usize>,
}

impl Index {
    pub fn new(store: &Rc<Store>) -> Index {
        let pending = (0..store.config.prefixes.len()).map(|_| Pending::default()).collect();
        Index {
            store: store.clone(),
            pending: RefCell::new(pending),
            bytes: Cell::new(0),
            row: Cell::new((0, false, 0)),
            leaves: Cell::new(0),
            automerge: Cell::new(None),
            has_stat: Cell::new((store.config.version == 4).then_some(true)),
            node_size: Cell::new(0),
        }
    }

    /// The size that nodes have.
    fn node_size(&self) -> Result<usize> {
        if self.node_size.get() == 0 {
            let sql = format!("PRAGMA {}.page_size", crate::words::name(&self.store.config.database));
            let rows = self.store.query(&sql)?;
            let n = rows.first().and_then(|r| r.first()).map_or(1024, Value::to_int);
            self.node_size.set((n - 35).max(64) as usize);
        }
        Ok(self.node_size.get())
    }

    /// A transaction begins.
    pub fn begin(&self) -> Result<()> {
        self.leaves.set(0);
        if self.has_stat.get().is_none() {
            let c = &self.store.config;
            let sql = format!(
                "SELECT 1 FROM {}.sqlite_schema WHERE type='table' AND name={}",
                crate::words::name(&c.database),
                crate::words::literal(&format!("{}_stat", c.table))
            );
            self.has_stat.set(Some(!self.store.query(&sql)?.is_empty()));
        }
        Ok(())
    }

    /// The number of the next block.
    fn next_block(&self) -> Result<i64> {
        let next = self.store.number(Sql::NextBlock, &[])?.unwrap_or(1);
        if next < segment::LARGEST { Ok(next) } else { Err(corrupt()) }
    }

    /// The number under which a level of one of the indexes is kept.
    pub fn level(&self, language: i64, index: usize, level: i64) -> i64 {
        let n = self.store.config.prefixes.len() as i64;
        language.wrapping_mul(n).wrapping_add(index as i64).wrapping_mul(LEVELS).wrapping_add(level)
    }

    /// A row is about to be written, or deleted.
    pub fn begin_row(&self, docid: i64, deleted: bool, language: i64) -> Result<()> {
        let (last, last_deleted, last_language) = self.row.get();
        let back = docid < last || docid == last && !last_deleted;
        if back || language != last_language || self.bytes.get() > MAX_PENDING {
            self.flush()?;
        }
        self.row.set((docid, deleted, language));
        Ok(())
    }

    /// Adds a token of the row; without a column: one that it no longer has.
    pub fn add(&self, token: &[u8], place: Option<(usize, i64)>) {
        let docid = self.row.get().0;
        let mut pending = self.pending.borrow_mut();
        let mut more = 0;
        for (p, n) in pending.iter_mut().zip(&self.store.config.prefixes) {
            match *n {
                0 => more += p.add(token, docid, place),
                n if n <= token.len() => more += p.add(&token[..n], docid, place),
                _ => {}
            }
        }
        self.bytes.set(self.bytes.get() + more);
    }

    /// Whether something is kept back.
    pub fn has_pending(&self) -> bool {
        self.pending.borrow().first().is_some_and(|p| !p.is_empty())
    }

    /// Forgets what is kept back.
    pub fn forget(&self) {
        self.pending.borrow_mut().iter_mut().for_each(Pending::clear);
        self.bytes.set(0);
    }

    /// Writes what is kept back.
    pub fn flush(&self) -> Result<()> {
        let language = self.row.get().2;
        for i in 0..self.store.config.prefixes.len() {
            self.merge_pending(language, i)?;
        }
        if self.has_stat.get() == Some(true) && self.automerge.get().is_none() && self.leaves.get() > 0 {
            let n = self.store.number(Sql::ReadStat, &[Value::Int(AUTOMERGE)])?.unwrap_or(0);
            self.automerge.set(Some(if n == 1 { MERGED / 2 } else { n }));
        }
        self.forget();
        Ok(())
    }

    /// The transaction is about to be committed.
    pub fn sync(&self) -> Result<()> {
        self.flush()?;
        let wanted = self.automerge.get().unwrap_or(0);
        const LEAST: i64 = 64;
        if self.leaves.get() > LEAST / 16 && wanted != 0 {
            let deepest = self.store.number(Sql::DeepestLevel, &[])?.unwrap_or(0);
            let work = self.leaves.get() * deepest;
            let work = work + work / 2;
            if work > LEAST {
                self.merge_some(work, wanted)?;
            }
        }
        Ok(())
    }

    /// Makes `%_stat`, if there is none.
    pub fn need_stat(&self) -> Result<()> {
        if self.has_stat.get() != Some(true) {
            let t = self.store.config.shadow("stat");
            let sql = format!("CREATE TABLE IF NOT EXISTS {t}(id INTEGER PRIMARY KEY, value BLOB)");
            // The mark that stock sets for that statement has what is kept back written first.
            if self.has_pending() {
                self.flush()?;
            }
            self.store.query(&sql)?;
            self.has_stat.set(Some(true));
        }
        Ok(())
    }

    /// Sets how many segments of a level are merged at each commit; 0: none.
    pub fn set_automerge(&self, n: i64) -> Result<()> {
        let n = if n == 1 || n > MERGED { MERGED / 2 } else { n };
        self.automerge.set(Some(n));
        self.need_stat()?;
        self.store.run(Sql::WriteStat, &[Value::Int(AUTOMERGE), Value::Int(n)])
    }

    /// The languages of which there are segments, and that of what is kept back.
    pub fn languages(&self) -> Result<Vec<i64>> {
        let mut out = Vec::new();
        let n = self.store.config.prefixes.len() as i64;
        self.store.each(Sql::Languages, &[Value::Int(self.row.get().2), Value::Int(n)], |row| {
            out.push(row[0].to_int());
            Ok(())
        })?;
        Ok(out)
    }

    /// Merges everything; true: of an index there was but one segment.
    pub fn optimize(&self) -> Result<bool> {
        let mut done = false;
        self.flush()?;
        for language in self.languages()? {
            for i in 0..self.store.config.prefixes.len() {
                done |= self.merge_all(language, i)?;
            }
        }
        self.forget();
        Ok(done)
    }
}
