//! Reads one segment, or what is pending in memory: terms in order, for each its rows in order.
//!
//! A cursor stands on a term and one of its rows. It may be confined to one term, and then also go backwards. Lists of places
//! are not looked at until they are asked for. It does not know of newer segments that hide its rows.

use super::leaf::{Leaf, leaf_id, skip_id};
use super::position::{push, varint};
use super::structure::Segment;
use super::tombstone;
use crate::config::Detail;
use crate::store::{Sql, Store};
use iolite_base::{Error, Result};
use iolite_value::Value;
use std::borrow::Cow;
use std::rc::Rc;

/// Terms with their doclists, in order.
pub(crate) type Doclists = Rc<Vec<(Vec<u8>, Vec<u8>)>>;

enum Source {
    Disk(Segment),
    Memory { lists: Doclists, at: usize },
}

/// A row of a doclist, for going backwards.
#[derive(Clone, Copy)]
struct Entry {
    rowid: i64,
    deleted: bool,
    size: usize,
    data: usize,
}

/// Where an entry stands.
pub(crate) struct Spot {
    pub segment: Segment,
    pub page: u32,
    pub leaf: Leaf,
    /// Where its places begin.
    pub data: usize,
    /// Where they end: behind the leaf if they go on in the next.
    pub next: usize,
    /// Where the doclist ends in this leaf.
    pub end: usize,
    /// It takes the row out of older segments.
    pub deleted: bool,
    pub term: Vec<u8>,
    /// The leaf in which the term stands, and where its doclist begins there.
    pub term_page: u32,
    pub term_rows: usize,
}

/// Pages that are still to be read when going backwards.
struct Back {
    /// Pages with the place of their first row; the last is the next.
    pages: Vec<(u32, usize)>,
    /// Rows of the present page before the present row.
    rows: Vec<Entry>,
}

/// A cursor. See the module's head.
pub(crate) struct SegmentCursor {
    store: Rc<Store>,
    detail: Detail,
    source: Source,
    leaf: Leaf,
    page: u32,
    /// Where the offset of the next term stands.
    footer: usize,
    /// No term was read of this leaf yet: its first is not compressed.
    fresh: bool,
    /// The present term.
    pub term: Vec<u8>,
    /// The present row.
    pub rowid: i64,
    /// The entry takes the row out of older segments.
    pub deleted: bool,
    /// The length of the list of places. Where no places are kept: 1 if the row has the term.
    pub size: usize,
    data: usize,
    /// Where the doclist ends in this leaf.
    end: usize,
    /// There is nothing more.
    pub eof: bool,
    one_term: bool,
    /// The term has an index of its doclist's pages.
    skips: bool,
    /// The leaf in which the term stands.
    term_page: u32,
    /// Where its doclist begins there.
    term_rows: usize,
    /// That index: pages and their first rows.
    skip: Option<Vec<(u32, i64)>>,
    back: Option<Back>,
    tombstones: Option<tombstone::Reader>,
}

impl SegmentCursor {
    fn new(store: &Rc<Store>, source: Source) -> Result<SegmentCursor> {
        Ok(SegmentCursor {
            store: store.clone(),
            detail: store.config.detail,
            source,
            leaf: Leaf::memory(&[])?,
            page: 0,
            footer: 0,
            fresh: true,
            term: Vec::new(),
            rowid: 0,
            deleted: false,
            size: 0,
            data: 0,
            end: 0,
            eof: false,
            one_term: false,
            skips: false,
            term_page: 0,
            term_rows: 0,
            skip: None,
            back: None,
            tombstones: None,
        })
    }

    /// A cursor over all of a segment.
    pub fn scan(store: &Rc<Store>, segment: &Segment) -> Result<SegmentCursor> {
        let mut c = SegmentCursor::new(store, Source::Disk(*segment))?;
        c.tombstones = tombstone::Reader::new(segment);
        match segment.first {
            0 => c.eof = true,
            first => {
                c.load(first)?;
                c.read_first_term()?;
            }
        }
        Ok(c)
    }

    /// A cursor over all of a segment from the first term on that is `term` or more.
    pub fn scan_from(store: &Rc<Store>, segment: &Segment, term: &[u8]) -> Result<SegmentCursor> {
        let mut c = SegmentCursor::new(store, Source::Disk(*segment))?;
        c.tombstones = tombstone::Reader::new(segment);
        c.seek(term, false)?;
        Ok(c)
    }

    /// A cursor over the rows of one term.
    pub fn term(store: &Rc<Store>, segment: &Segment, term: &[u8], backwards: bool) -> Result<SegmentCursor> {
        let mut c = SegmentCursor::new(store, Source::Disk(*segment))?;
        c.tombstones = tombstone::Reader::new(segment);
        c.one_term = true;
        c.seek(term, true)?;
        if backwards && !c.eof {
            c.turn()?;
        }
        Ok(c)
    }

    /// A cursor over what is in memory, from the first term on that is `from` or more.
    pub fn memory(store: &Rc<Store>, lists: Doclists, from: &[u8]) -> Result<SegmentCursor> {
        let at = lists.partition_point(|l| &*l.0 < from);
        let mut c = SegmentCursor::new(store, Source::Memory { lists, at })?;
        c.memory_term()?;
        Ok(c)
    }

    /// A cursor over the rows that one term has in memory.
    pub fn memory_one(
        store: &Rc<Store>,
        term: &[u8],
        list: Vec<u8>,
        backwards: bool,
    ) -> Result<SegmentCursor> {
        let lists = Rc::new(vec![(term.to_vec(), list)]);
        let mut c = SegmentCursor::memory(store, lists, b"")?;
        c.one_term = true;
        if backwards && !c.eof {
            c.turn()?;
        }
        Ok(c)
    }

    fn segment(&self) -> u32 {
        match &self.source {
            Source::Disk(s) => s.id,
            Source::Memory { .. } => 0,
        }
    }

    /// Where the present row's entry stands; `None`: in memory.
    pub fn spot(&self) -> Option<Spot> {
        let Source::Disk(segment) = self.source else { return None };
        Some(Spot {
            segment,
            page: self.page,
            leaf: self.leaf.clone(),
            data: self.data,
            next: self.data + if self.detail == Detail::None { 0 } else { self.size },
            end: self.end,
            deleted: self.deleted,
            term: self.term.clone(),
            term_page: self.term_page,
            term_rows: self.term_rows,
        })
    }

    /// The leaf with the present term without what stands before it, and its number; `None`: there is no term any more. The
    /// cursor stands on the term's first row.
    pub fn cut(&self) -> Result<Option<(u32, Vec<u8>)>> {
        let Source::Disk(s) = &self.source else { return Ok(None) };
        if self.eof {
            return Ok(None);
        }
        let id = leaf_id(s.id, self.term_page);
        let old = Leaf::new(self.store.block(id)?).ok_or_else(|| self.store.corrupt_block(id))?;
        let mut out = vec![0; 4];
        push(&mut out, self.term.len() as u64);
        out.extend_from_slice(&self.term);
        out.extend_from_slice(&old.bytes[self.term_rows.min(old.size)..old.size]);
        let size = out.len();
        out[2..4].copy_from_slice(&(size as u16).to_be_bytes());
        push(&mut out, 4);
        if self.page == self.term_page && self.end < old.size {
            push(&mut out, (size - (old.size - self.end) - 4) as u64);
            out.extend_from_slice(&old.bytes[self.footer.min(old.bytes.len())..]);
        }
        Ok(Some((self.term_page, out)))
    }

    #[cold]
    fn corrupt(&self) -> Error {
        self.store.corrupt_page(self.segment(), self.page)
    }

    fn load(&mut self, page: u32) -> Result<()> {
        let id = leaf_id(self.segment(), page);
        self.leaf = Leaf::new(self.store.block(id)?).ok_or_else(|| self.store.corrupt_block(id))?;
        self.page = page;
        self.fresh = true;
        self.footer = self.leaf.size;
        self.end = match self.leaf.first_term() {
            Some((at, next)) => {
                self.footer = next;
                if at < 4 || at >= self.leaf.size {
                    return Err(self.corrupt());
                }
                at
            }
            None => self.leaf.size,
        };
        Ok(())
    }

    /// Goes to the next leaf; false: there is none.
    fn next_leaf(&mut self) -> Result<bool> {
        match &self.source {
            Source::Disk(s) if self.page < s.last => {
                let page = self.page + 1;
                self.load(page)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    #[inline]
    fn number(&self, at: &mut usize) -> Result<u64> {
        varint(&self.leaf.bytes[..self.leaf.size], at).ok_or_else(|| self.corrupt())
    }

    /// Goes to the first term of the present leaf or of one behind it.
    fn read_first_term(&mut self) -> Result<()> {
        loop {
            if self.end < self.leaf.size {
                return self.read_term(self.end);
            }
            if !self.next_leaf()? {
                self.eof = true;
                return Ok(());
            }
        }
    }

    /// Reads the term at an offset, and its first row.
    fn read_term(&mut self, at: usize) -> Result<()> {
        let rows = self.read_key(at)?;
        self.begin_doclist(rows)
    }

    fn begin_doclist(&mut self, mut at: usize) -> Result<()> {
        self.term_page = self.page;
        self.term_rows = at;
        self.skip = None;
        while at >= self.leaf.size {
            // The term is the last thing that had room.
            if !self.next_leaf()? {
                return Err(self.corrupt());
            }
            at = 4;
        }
        self.rowid = self.number(&mut at)? as i64;
        self.read_header(at)
    }

    /// Reads a term; answers where its doclist begins.
    fn read_key(&mut self, mut at: usize) -> Result<usize> {
        let keep = if std::mem::take(&mut self.fresh) { 0 } else { self.number(&mut at)? as usize };
        let n = self.number(&mut at)? as usize;
        if keep > self.term.len() || n == 0 || n > self.leaf.size - at {
            return Err(self.corrupt());
        }
        self.term.truncate(keep);
        self.term.extend_from_slice(&self.leaf.bytes[at..at + n]);
        // Where the next one begins this doclist ends.
        let term_at = self.end;
        self.end = match varint(&self.leaf.bytes, &mut self.footer) {
            Some(delta) => {
                let next = term_at.saturating_add(delta as usize);
                if next >= self.leaf.size || next <= at + n {
                    return Err(self.corrupt());
                }
                next
            }
            None => self.leaf.size,
        };
        Ok(at + n)
    }

    /// Reads what stands between a rowid and its places.
    #[inline]
    fn read_header(&mut self, mut at: usize) -> Result<()> {
        if self.detail == Detail::None {
            (self.deleted, self.size) = (false, 1);
            let zero = |at: usize| at < self.end && self.leaf.bytes[at] == 0;
            if zero(at) {
                at += 1;
                (self.deleted, self.size) = (true, 0);
                if zero(at) {
                    at += 1;
                    self.size = 1;
                }
            }
        } else {
            let n = self.number(&mut at)?;
            self.deleted = n & 1 != 0;
            self.size = usize::try_from(n >> 1).map_err(|_| self.corrupt())?;
            // More than that no leaves can have.
            if self.size > 1 << 31 {
                return Err(self.corrupt());
            }
        }
        self.data = at;
        Ok(())
    }

    fn memory_term(&mut self) -> Result<()> {
        let Source::Memory { lists, at } = &self.source else { return Ok(()) };
        let Some((term, list)) = lists.get(*at) else {
            self.eof = true;
            return Ok(());
        };
        self.leaf = Leaf::memory(list)?;
        self.term = term.clone();
        self.end = list.len();
        self.begin_doclist(0)
    }

    /// The next row, or the first of the next term.
    pub fn next(&mut self) -> Result<()> {
        if self.back.is_some() {
            return self.next_back();
        }
        let mut at = self.data + self.size * (self.detail != Detail::None) as usize;
        while at > self.leaf.size {
            // The list of places goes on in the next leaf.
            let rest = at - self.leaf.size;
            if !self.next_leaf()? {
                return Err(self.corrupt());
            }
            at = 4 + rest;
            if at <= self.leaf.size
                && let Some(first) = self.leaf.first_rowid()
            {
                return self.continue_at(first);
            }
        }
        if at < self.end {
            let delta = self.number(&mut at)?;
            self.rowid = self.rowid.wrapping_add(delta as i64);
            return self.read_header(at);
        }
        self.after_leaf_part()
    }

    /// A row at the place that a leaf's head says.
    fn continue_at(&mut self, first: usize) -> Result<()> {
        if first < 4 || first >= self.leaf.size {
            return Err(self.corrupt());
        }
        let mut at = first;
        self.rowid = self.number(&mut at)? as i64;
        self.read_header(at)
    }

    /// The doclist's part in this leaf is over.
    fn after_leaf_part(&mut self) -> Result<()> {
        if let Source::Memory { at, .. } = &mut self.source {
            *at += 1;
            if self.one_term {
                self.eof = true;
                return Ok(());
            }
            return self.memory_term();
        }
        if self.end < self.leaf.size {
            return self.next_term();
        }
        loop {
            if !self.next_leaf()? {
                self.eof = true;
                return Ok(());
            }
            if let Some(first) = self.leaf.first_rowid() {
                return self.continue_at(first);
            }
            if self.end < self.leaf.size {
                return self.next_term();
            }
        }
    }

    fn next_term(&mut self) -> Result<()> {
        if self.one_term {
            self.eof = true;
            return Ok(());
        }
        self.read_term(self.end)
    }

    /// Goes to a term, or, unless it must be just this one, to the first behind it.
    fn seek(&mut self, term: &[u8], exact: bool) -> Result<()> {
        let Source::Disk(s) = &self.source else { return Ok(()) };
        let (id, first) = (s.id, s.first);
        self.eof = true;
        if first == 0 {
            return Ok(());
        }
        let row = self.store.row(Sql::SeekPage, &[Value::Int(id.into()), Value::blob(term)?])?;
        let found = row.and_then(|r| r.first().map(Value::to_int)).unwrap_or(i64::from(first) << 1);
        self.skips = found & 1 != 0;
        let page = u32::try_from(found >> 1).unwrap_or(0).max(first);
        self.load(page)?;
        loop {
            if self.end >= self.leaf.size {
                // No more terms here.
                if exact || !self.next_leaf()? {
                    return Ok(());
                }
                self.skips = false;
                continue;
            }
            let rows = self.read_key(self.end)?;
            match self.term.as_slice().cmp(term) {
                std::cmp::Ordering::Less => continue,
                std::cmp::Ordering::Greater if exact => return Ok(()),
                _ => {
                    self.eof = false;
                    // The index of pages that a leaf may have is that of its last term.
                    self.skips &= self.end >= self.leaf.size;
                    return self.begin_doclist(rows);
                }
            }
        }
    }

    /// The index of the doclist's pages.
    fn load_skips(&mut self) -> Result<()> {
        let mut list = Vec::new();
        if let (Source::Disk(s), true) = (&self.source, self.skips) {
            let (id, last) = (s.id, s.last);
            let mut page = self.term_page;
            'pages: loop {
                let block_id = skip_id(id, 0, page);
                let block = self.store.block(block_id)?;
                let mut at = 1;
                let first = varint(&block, &mut at);
                let rowid = varint(&block, &mut at);
                let (Some(first), Some(rowid)) = (first, rowid) else {
                    return Err(self.store.corrupt_block(block_id));
                };
                let Ok(mut leaf) = u32::try_from(first) else { return Err(self.corrupt()) };
                let mut rowid = rowid as i64;
                list.push((leaf, rowid));
                while let Some(delta) = varint(&block, &mut at) {
                    leaf += 1;
                    if leaf > last {
                        break 'pages;
                    }
                    if delta != 0 {
                        rowid = rowid.wrapping_add(delta as i64);
                        list.push((leaf, rowid));
                    }
                }
                // A page that is not the root has others behind it.
                page += 1;
                if block[0] & 1 == 0 || self.store.find(skip_id(id, 0, page))?.is_none() {
                    break;
                }
            }
            list.retain(|l| l.0 > self.term_page && l.0 <= last);
        }
        self.skip = Some(list);
        Ok(())
    }

    /// Goes on to the first row that is `rowid` or behind it, which the present one is not. Only with one term.
    pub fn advance(&mut self, rowid: i64) -> Result<()> {
        if self.back.is_some() {
            if let (Some(back), Some(skip)) = (&mut self.back, &self.skip) {
                let first = |page: u32| skip.binary_search_by_key(&page, |s| s.0).ok().map(|i| skip[i].1);
                let here = back.rows.first().is_some_and(|e| e.rowid > rowid) || back.rows.is_empty();
                while here && back.pages.len() > 1 && first(back.pages[back.pages.len() - 1].0) > Some(rowid)
                {
                    back.pages.pop();
                    back.rows.clear();
                }
            }
            while !self.eof && self.rowid > rowid {
                self.next_back()?;
            }
            return Ok(());
        }
        if self.skips {
            if self.skip.is_none() {
                self.load_skips()?;
            }
            let mut list = self.skip.take().unwrap_or_default();
            self.skip_to(rowid, &mut list)?;
            self.skip = Some(list);
        }
        while !self.eof && self.rowid < rowid {
            self.next()?;
        }
        Ok(())
    }

    /// Goes on to the last leaf of which the index says that its first row is not behind `rowid`. Leaves that have no rows any more
    /// are taken out of the index.
    fn skip_to(&mut self, rowid: i64, list: &mut Vec<(u32, i64)>) -> Result<()> {
        let here = (self.page, self.footer, self.end, self.fresh);
        let leaf = self.leaf.clone();
        let mut at = list.partition_point(|s| s.1 <= rowid);
        while at > 0 && list[at - 1].0 > here.0 {
            at -= 1;
            self.load(list[at].0)?;
            if let Some(first) = self.leaf.first_rowid() {
                return self.continue_at(first);
            }
            list.remove(at);
        }
        self.leaf = leaf;
        (self.page, self.footer, self.end, self.fresh) = here;
        Ok(())
    }

    /// Goes backwards from now on, beginning with the last row of the term.
    fn turn(&mut self) -> Result<()> {
        let start = (self.page, self.data);
        let first_row = Entry { rowid: self.rowid, deleted: self.deleted, size: self.size, data: self.data };
        let mut pages = vec![start];
        self.load_skips()?;
        let list = self.skip.clone().unwrap_or_default();
        if !list.is_empty() {
            pages.extend(list.iter().filter(|l| l.0 > start.0).map(|l| (l.0, 0)));
        } else if self.end == self.leaf.size && matches!(self.source, Source::Disk(_)) {
            while self.next_leaf()? {
                if self.leaf.first_rowid().is_some() {
                    pages.push((self.page, 0));
                }
                if self.end < self.leaf.size {
                    break;
                }
            }
        }
        self.back = Some(Back { pages, rows: Vec::new() });
        self.term_first(first_row);
        self.next_back()
    }

    /// Remembers the first row, whose rowid stands behind the term.
    fn term_first(&mut self, e: Entry) {
        (self.rowid, self.deleted, self.size, self.data) = (e.rowid, e.deleted, e.size, e.data);
    }

    fn next_back(&mut self) -> Result<()> {
        loop {
            let Some(back) = &mut self.back else { return Ok(()) };
            if let Some(e) = back.rows.pop() {
                self.term_first(e);
                return Ok(());
            }
            let Some((page, data)) = back.pages.pop() else {
                self.eof = true;
                return Ok(());
            };
            let mut rows = Vec::new();
            if data > 0 || matches!(self.source, Source::Memory { .. }) {
                // The page of the term: the first row is read again from its term.
                self.reread_term()?;
            } else {
                self.load(page)?;
                // Rows may have been taken out since the index of pages was written.
                let Some(first) = self.leaf.first_rowid() else { continue };
                self.continue_at(first)?;
            }
            let places = self.detail != Detail::None;
            loop {
                rows.push(Entry {
                    rowid: self.rowid,
                    deleted: self.deleted,
                    size: self.size,
                    data: self.data,
                });
                let mut at = self.data + if places { self.size } else { 0 };
                if at >= self.end {
                    break;
                }
                let delta = self.number(&mut at)?;
                self.rowid = self.rowid.wrapping_add(delta as i64);
                self.read_header(at)?;
            }
            if let Some(back) = &mut self.back {
                back.rows = rows;
            }
        }
    }

    /// Back to the term's first row.
    fn reread_term(&mut self) -> Result<()> {
        if let Source::Memory { lists, at } = &self.source {
            self.leaf = Leaf::memory(&lists[*at].1)?;
            self.end = self.leaf.size;
            let mut at = 0;
            self.rowid = self.number(&mut at)? as i64;
            return self.read_header(at);
        }
        let term = std::mem::take(&mut self.term);
        let skip = self.skip.take();
        let done = self.seek(&term, true);
        self.skip = skip;
        done
    }

    /// The list of places of the present row.
    pub fn places(&self) -> Result<Cow<'_, [u8]>> {
        if self.detail == Detail::None {
            return Ok(Cow::Borrowed(&[]));
        }
        let end = self.data + self.size;
        if end <= self.leaf.size {
            return Ok(Cow::Borrowed(&self.leaf.bytes[self.data..end]));
        }
        let Source::Disk(s) = &self.source else { return Err(self.corrupt()) };
        let mut out = self.leaf.bytes[self.data.min(self.leaf.size)..self.leaf.size].to_vec();
        let mut page = self.page;
        while out.len() < self.size {
            page += 1;
            if page > s.last {
                return Err(self.corrupt());
            }
            let id = leaf_id(s.id, page);
            let leaf = Leaf::new(self.store.block(id)?).ok_or_else(|| self.store.corrupt_block(id))?;
            let n = (self.size - out.len()).min(leaf.size - 4);
            out.extend_from_slice(&leaf.bytes[4..4 + n]);
        }
        Ok(Cow::Owned(out))
    }

    /// Calls `f` with the rows of the one term from the present one on: whether they have it, and their places.
    pub fn each(&mut self, mut f: impl FnMut(i64, bool, &[u8]) -> Result<()>) -> Result<()> {
        while !self.eof {
            if self.tombstones.is_none() && self.detail != Detail::None {
                // Rows that lie whole in this leaf, without asking for each where it is.
                let bytes = &self.leaf.bytes[..self.end.min(self.leaf.size)];
                let (mut rowid, mut size, mut data) = (self.rowid, self.size, self.data);
                while let Some(places) = bytes.get(data..data + size) {
                    f(rowid, size > 0, places)?;
                    let mut at = data + size;
                    let next =
                        varint(bytes, &mut at).zip(varint(bytes, &mut at)).filter(|n| n.1 >> 1 < 1 << 31);
                    let Some((delta, head)) = next else { break };
                    rowid = rowid.wrapping_add(delta as i64);
                    (size, data) = ((head >> 1) as usize, at);
                    (self.rowid, self.deleted, self.size, self.data) = (rowid, head & 1 != 0, size, data);
                }
                if self.data + self.size <= bytes.len() {
                    self.next()?;
                    continue;
                }
            }
            let there = self.size > 0 && !self.is_tombstone()?;
            f(self.rowid, there, &self.places()?)?;
            self.next()?;
        }
        Ok(())
    }

    /// Whether the present row is marked as deleted beside the segment.
    pub fn is_tombstone(&mut self) -> Result<bool> {
        match &mut self.tombstones {
            Some(t) => t.has(&self.store, self.rowid),
            None => Ok(false),
        }
    }
}
