//! The full-text index: terms and, for each, the rows and places that have it.
//!
//! What is added stays in memory until the transaction is about to be committed, a savepoint is opened, rows come out of order,
//! or it has become too much; then it becomes a segment. A term's key begins with the number of its index: `0` has all tokens,
//! those behind it prefixes of so many characters.

mod erase;
mod leaf;
mod merge;
mod multi;
mod pending;
pub(crate) mod position;
mod rows;
mod segment;
mod structure;
mod tombstone;
mod writer;

pub(crate) use multi::Multi;
pub(crate) use rows::Rows;

use crate::config::{Config, Detail};
use crate::store::{AVERAGES, STRUCTURE, Sql, Store};
use crate::tokenize::prefix_len;
use iolite_base::{Bytes, Error, Result};
use pending::Pending;
use position::varint;
use segment::SegmentCursor;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use structure::{Level, Segment, Structure};
use writer::SegmentWriter;

/// The index of all tokens.
pub(crate) const MAIN: u8 = b'0';
/// Longer tokens are cut.
pub(crate) const LONGEST_TOKEN: usize = 32768;

/// An entry of a doclist in memory, behind its rowid.
struct Entry {
    /// The row is taken out of older segments.
    deleted: bool,
    /// It has the term.
    content: bool,
    /// Where its places begin, and where it ends.
    places: usize,
    end: usize,
}

impl Entry {
    fn read(list: &[u8], at: usize, detail: Detail) -> Option<Entry> {
        if detail == Detail::None {
            let zeros = list[at..].iter().take(2).take_while(|b| **b == 0).count();
            return Some(Entry {
                deleted: zeros > 0,
                content: zeros != 1,
                places: at + zeros,
                end: at + zeros,
            });
        }
        let mut places = at;
        let n = varint(list, &mut places)?;
        let end = places.checked_add((n >> 1) as usize).filter(|end| *end <= list.len())?;
        Some(Entry { deleted: n & 1 != 0, content: end > places, places, end })
    }
}

/// An index.
pub(crate) struct Index {
    pub config: Rc<Config>,
    pub store: Rc<Store>,
    pending: RefCell<Pending>,
    /// The structure record as it was read last, and what it says.
    known: RefCell<Option<(Bytes, Rc<Structure>)>>,
    row: Cell<i64>,
    deleting: Cell<bool>,
    pending_rows: Cell<u64>,
    /// Rows that were marked as deleted since the last flush.
    marked: Cell<i64>,
    /// Rises with every change.
    generation: Cell<u64>,
    /// Settings may have been taken back, with the cookie that names them: another change may bear the same.
    settings_unsure: Cell<bool>,
}

impl Index {
    pub fn new(store: &Rc<Store>) -> Index {
        Index {
            config: store.config.clone(),
            store: store.clone(),
            pending: RefCell::new(Pending::new(1 + store.config.prefixes.len())),
            known: RefCell::new(None),
            row: Cell::new(0),
            deleting: Cell::new(false),
            pending_rows: Cell::new(0),
            marked: Cell::new(0),
            generation: Cell::new(0),
            settings_unsure: Cell::new(false),
        }
    }

    /// A number that rises with every change made here.
    pub fn generation(&self) -> u64 {
        self.generation.get()
    }

    fn changed(&self) {
        self.generation.set(self.generation.get() + 1);
    }

    /// What is known of the file may be no longer so.
    pub fn forget(&self) {
        self.known.take();
        self.changed();
    }

    /// The structure as it is in the file now. Settings are read again if they have changed.
    pub fn structure(&self) -> Result<Rc<Structure>> {
        let record = self.store.block(STRUCTURE)?;
        if let Some((known, s)) = &*self.known.borrow()
            && **known == *record
        {
            return Ok(s.clone());
        }
        let decoded = Structure::decode(&record);
        let (cookie, mut s) = decoded.ok_or_else(|| self.store.corrupt_block(STRUCTURE))?;
        if self.config.contentless_delete {
            s.origin = s.origin.max(1);
        }
        if cookie != self.config.settings.cookie.get() || self.settings_unsure.get() {
            self.load_settings(cookie)?;
        }
        let s = Rc::new(s);
        *self.known.borrow_mut() = Some((record, s.clone()));
        self.changed();
        Ok(s)
    }

    /// Reads the settings.
    pub fn load_settings(&self, cookie: u32) -> Result<()> {
        let mut rows = Vec::new();
        self.store.each(Sql::ReadConfig, &[], |row| {
            rows.push(row.to_vec());
            Ok(())
        })?;
        self.config.load(&rows, cookie)?;
        self.settings_unsure.set(false);
        Ok(())
    }

    fn save(&self, s: &Structure) -> Result<()> {
        let record = s.encode(self.config.settings.cookie.get());
        self.store.write(STRUCTURE, &record)?;
        *self.known.borrow_mut() = Some((Bytes::copy_of(&record)?, Rc::new(s.clone())));
        self.changed();
        Ok(())
    }

    /// The settings have changed: so that other connections see it, the record gets another cookie.
    pub fn raise_cookie(&self) -> Result<()> {
        self.structure()?;
        let cookie = &self.config.settings.cookie;
        cookie.set(cookie.get().wrapping_add(1));
        self.store.set_cookie(cookie.get())
    }

    /// An empty index.
    pub fn clear(&self) -> Result<()> {
        self.drop_pending();
        self.store.write(AVERAGES, b"")?;
        let origin = self.config.contentless_delete as u64;
        self.save(&Structure { origin, ..Structure::default() })
    }

    /// What was written may be no more.
    pub fn rollback(&self) {
        self.drop_pending();
        self.settings_unsure.set(true);
    }

    /// What is pending will not be.
    fn drop_pending(&self) {
        self.pending.borrow_mut().clear();
        self.pending_rows.set(0);
        self.marked.set(0);
        self.forget();
    }

    /// A row is about to be added or taken out.
    pub fn begin_row(&self, rowid: i64, deleting: bool) -> Result<()> {
        let again = rowid < self.row.get() || rowid == self.row.get() && !self.deleting.get();
        if again || self.pending.borrow().bytes > self.config.settings.hash_size.get() {
            self.flush()?;
        }
        self.row.set(rowid);
        self.deleting.set(deleting);
        if !deleting {
            self.pending_rows.set(self.pending_rows.get() + 1);
        }
        self.changed();
        Ok(())
    }

    /// The number of the flush that pending rows will be from.
    pub fn origin(&self) -> Result<u64> {
        Ok(self.structure()?.origin)
    }

    /// Adds a token of the row that was begun. `at`: column and offset; none: the row is taken out.
    pub fn add(&self, token: &[u8], at: Option<(u32, u32)>) {
        let (detail, rowid) = (self.config.detail, self.row.get());
        let mut pending = self.pending.borrow_mut();
        pending.add(detail, 0, token, rowid, at);
        for (i, n) in self.config.prefixes.iter().enumerate() {
            if let Some(len) = prefix_len(token, *n) {
                pending.add(detail, 1 + i, &token[..len], rowid, at);
            }
        }
    }

    /// Marks a row of a contentless table as deleted.
    pub fn mark_deleted(&self, origin: u64, rowid: i64) -> Result<()> {
        let mut s = (*self.structure()?).clone();
        let (mut found, mut grown) = (false, false);
        for level in s.levels.iter_mut().rev() {
            for g in level.segments.iter_mut().rev() {
                if g.origin.0 <= origin && origin <= g.origin.1 {
                    if !found {
                        g.tombstones += 1;
                    }
                    self.marked.set(self.marked.get() + 1);
                    found = true;
                    let pages = g.tombstone_pages;
                    tombstone::add(&self.store, g, rowid)?;
                    grown |= pages != g.tombstone_pages;
                }
            }
        }
        if grown {
            return self.save(&s);
        }
        // How many there are is written with the next flush.
        if let Some(known) = &mut *self.known.borrow_mut() {
            known.1 = Rc::new(s);
        }
        self.changed();
        Ok(())
    }

    /// Whether anything is pending.
    pub fn has_pending(&self) -> bool {
        !self.pending.borrow().is_empty()
    }

    /// Whether anything is kept back: rows, or how many of them are marked as deleted.
    pub fn has_unwritten(&self) -> bool {
        self.has_pending() || self.marked.get() != 0 || self.pending_rows.get() != 0
    }

    /// Writes what is pending.
    pub fn flush(&self) -> Result<()> {
        if self.pending.borrow().is_empty() && self.marked.get() == 0 {
            return Ok(());
        }
        let mut s = (*self.structure()?).clone();
        let marked = self.marked.replace(0);
        let rows = self.pending_rows.replace(0);
        let lists = self.pending.borrow_mut().take(self.config.detail);
        let mut last = 0;
        if !lists.is_empty() {
            let id = s.free_id().ok_or_else(|| Error::from(iolite_base::Code::Full))?;
            last = self.write_segment(&s, id, &lists)?;
            if last > 0 {
                if s.levels.is_empty() {
                    s.levels.push(Level::default());
                }
                let mut g = Segment { id, first: 1, last, ..Segment::default() };
                if s.origin > 0 {
                    g.origin = (s.origin, s.origin);
                    g.entries = rows;
                    s.origin += 1;
                }
                s.levels[0].segments.push(g);
                s.promote(0);
            }
        }
        self.automerge(&mut s, i64::from(last) + marked)?;
        self.crisismerge(&mut s)?;
        self.save(&s)?;
        if s.origin > 0 {
            // The number of the next flush is found anew from the segments that are left.
            self.known.take();
        }
        Ok(())
    }

    fn write_segment(&self, structure: &Structure, id: u32, lists: &[pending::Keyed]) -> Result<u32> {
        let corrupt = || self.store.corrupt();
        let secure = self.config.settings.secure_delete.get();
        let mut w = SegmentWriter::new(&self.store, id, 1);
        for (term, list) in lists {
            // Entries that are taken out in place leave nothing here, and perhaps nothing of the term.
            let mut begun = !secure;
            if begun {
                w.term(term)?;
                if w.whole_doclist(list) {
                    continue;
                }
            }
            let mut at = 0;
            let mut rowid = 0i64;
            while at < list.len() {
                let delta = varint(list, &mut at).ok_or_else(corrupt)?;
                rowid = rowid.wrapping_add(delta as i64);
                let entry = Entry::read(list, at, self.config.detail).ok_or_else(corrupt)?;
                let erased = secure && entry.deleted;
                if erased {
                    self.erase(structure, term, rowid)?;
                }
                if !erased || entry.content {
                    if !begun {
                        w.term(term)?;
                        begun = true;
                    }
                    w.row_here(rowid)?;
                    let mut from = at;
                    if erased {
                        from = entry.places;
                        if self.config.detail != Detail::None {
                            w.number(((entry.end - from) * 2) as u64);
                        }
                    }
                    let rest = &list[from..entry.end];
                    if self.config.detail == Detail::None {
                        rest.iter().for_each(|n| w.number((*n).into()));
                        if w.is_full() {
                            w.flush_leaf()?;
                        }
                    } else {
                        w.pending_places(rest)?;
                    }
                }
                at = entry.end;
            }
        }
        w.finish()
    }

    /// Cursors over all segments and over what is pending, newest first, all terms of which begin with `prefix`, or come behind.
    fn cursors_from(&self, prefix: &[u8]) -> Result<Vec<SegmentCursor>> {
        let structure = self.structure()?;
        // As with stock, which closes its lists for that: the row that was taken out last is not put in again before a flush.
        self.deleting.set(false);
        let lists = self.pending.borrow().doclists(self.config.detail, prefix);
        let mut cursors = Vec::new();
        if !lists.is_empty() {
            cursors.push(SegmentCursor::memory(&self.store, lists, prefix)?);
        }
        for g in structure.newest_first() {
            cursors.push(SegmentCursor::scan_from(&self.store, g, prefix)?);
        }
        Ok(cursors)
    }

    /// All terms from `key` on, with their rows. Terms in memory are only those that begin with it.
    pub fn scan(&self, key: &[u8]) -> Result<Multi> {
        Multi::scan(self.cursors_from(key)?, true)
    }

    fn one_term(&self, key: &[u8], backwards: bool) -> Result<Multi> {
        let structure = self.structure()?;
        let list = self.pending.borrow().doclist(self.config.detail, key);
        let mut cursors = Vec::new();
        if let Some(list) = list {
            cursors.push(SegmentCursor::memory_one(&self.store, key, list, backwards)?);
        }
        for g in structure.newest_first() {
            cursors.push(SegmentCursor::term(&self.store, g, key, backwards)?);
        }
        Multi::one_term(cursors, backwards)
    }

    /// Where the rows of a token have one doclist in each segment: its key.
    fn key_of(&self, token: &[u8], prefix: bool) -> Option<Vec<u8>> {
        let mut key = vec![MAIN];
        key.extend_from_slice(token);
        if prefix {
            let chars = crate::tokenize::char_count(token);
            let i = self.config.prefixes.iter().position(|n| *n == chars)?;
            key[0] = MAIN + 1 + i as u8;
        }
        (prefix || !self.config.tokendata).then_some(key)
    }

    /// Calls `f` with what each segment says of a token's rows, the oldest segment first, each in the order of rows: the row, whether it
    /// has the token, and the places. What a newer segment says of a row counts. False: the token has no doclist of its own.
    pub fn each_entry(
        &self,
        token: &[u8],
        prefix: bool,
        mut f: impl FnMut(i64, bool, &[u8]) -> Result<()>,
    ) -> Result<bool> {
        let Some(key) = self.key_of(token, prefix) else { return Ok(false) };
        let structure = self.structure()?;
        let segments: Vec<&Segment> = structure.newest_first().collect();
        for g in segments.into_iter().rev() {
            SegmentCursor::term(&self.store, g, &key, false)?.each(&mut f)?;
        }
        let list = self.pending.borrow().doclist(self.config.detail, &key);
        if let Some(list) = list {
            SegmentCursor::memory_one(&self.store, &key, list, false)?.each(&mut f)?;
        }
        Ok(true)
    }

    /// The rows that have a token, or one that begins with it; `columns`: in one of these.
    pub fn rows(&self, token: &[u8], prefix: bool, backwards: bool, columns: Option<&[u32]>) -> Result<Rows> {
        let columns = columns.map(<[u32]>::to_vec);
        if let Some(key) = self.key_of(token, prefix) {
            return Rows::of(self.one_term(&key, backwards)?, columns, self.config.detail);
        }
        let mut key = vec![MAIN];
        key.extend_from_slice(token);
        let mut scan = self.scan(&key)?;
        let mut rows = rows::Gathered::default();
        while let Some(c) = scan.current().filter(|c| c.term.starts_with(&key)) {
            // With `tokendata`, what follows a zero byte does not count.
            if prefix || c.term.len() == key.len() || c.term[key.len()] == 0 {
                rows.add(c.rowid, &c.places()?, columns.as_deref(), self.config.detail);
            }
            scan.next()?;
        }
        Ok(rows.finish(self.config.detail, backwards))
    }
}
