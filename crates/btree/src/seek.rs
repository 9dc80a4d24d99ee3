//! Finding entries.
//!
//! Within a node the search runs on the raw bytes of the cells (module `search` for indexes). From where the cursor already stands, the
//! cheap cases come first: the same row, the one after it, anything beyond the last.

use crate::cursor::{Cursor, EntryOrder, Pos};
use crate::node::*;
use crate::search::{self, Span};
use iolite_base::{Code, Pgno, Result};
use std::cmp::Ordering;

/// How often the present leaf may be the wrong one in a row before it is not tried any more, once it was the right one often enough.
const NEAREST: i8 = 2;

impl Cursor {
    /// Goes to the row, or next to where it would be: how the entry that the cursor stands on compares with
    /// `rowid`. `None`: the tree is empty.
    #[inline]
    pub fn seek_rowid(&mut self, rowid: i64) -> Result<Option<Ordering>> {
        self.take_over();
        if self.pos == Pos::Valid && self.skip == 0 && self.current() {
            if self.cell.rowid == rowid {
                return Ok(Some(Ordering::Equal));
            }
            if self.cell.rowid < rowid {
                if self.is_last() {
                    return Ok(Some(Ordering::Less));
                }
                if self.cell.rowid.wrapping_add(1) == rowid
                    && let Some(n) = self.path.last()
                    && n.idx + 1 < n.ncell
                {
                    self.next()?;
                    return Ok(Some(self.cell.rowid.cmp(&rowid)));
                }
            }
        }
        if self.tries_leaf()
            && let Some(found) = self.seek_rowid_near(rowid)?
        {
            return Ok(Some(found));
        }
        let before = self.top();
        let found = self.seek_rowid_from_root(rowid);
        self.learn(before);
        found
    }

    /// Looks at the leaf on which the cursor stands, or stood last, before the root: where changes come close to each other, that is most
    /// often the right one. `None`: it is not.
    #[inline(never)]
    fn seek_rowid_near(&mut self, rowid: i64) -> Result<Option<Ordering>> {
        let Some(n) = self.leaf_at_hand() else { return Ok(None) };
        let range = n.span();
        if range.0 > rowid || rowid > range.1 || range.0 == i64::MIN || range.1 == i64::MAX {
            self.strays();
            return Ok(None);
        }
        self.stays();
        self.seek_in_leaf(&Sought::new(rowid), rowid, range)
    }

    /// The leaf at the end of the path, if that is as good as new.
    fn leaf_at_hand(&self) -> Option<&Node> {
        let fits = self.pos != Pos::Saved && self.current() && self.path.len() > 1;
        self.path.last().filter(|n| fits && n.leaf && n.ncell > 1)
    }

    /// Whether the leaf at hand is worth a look: whether it mostly was, of late. Where another cursor left its path, that is asked of the
    /// tree: the statements on it may be far apart, and the places of one of them close to each other.
    #[inline(always)]
    fn tries_leaf(&self) -> bool {
        self.near >= 0 && (!self.taken_over || self.tree.near.get() >= 0)
    }

    /// It was the right one.
    #[inline]
    fn stays(&mut self) {
        if std::mem::take(&mut self.taken_over) {
            self.tree.near.set((self.tree.near.get() + 1).min(NEAREST));
        }
        self.near = (self.near + 1).min(NEAREST);
        self.disarm();
        self.skip = 0;
        self.pos = Pos::Invalid;
    }

    /// It was the wrong one. Where another cursor left it, that says nothing of how far apart this one's own places are: the entry that an
    /// UPDATE puts in mostly belongs where the one was that it took away.
    #[inline]
    fn strays(&mut self) {
        match std::mem::take(&mut self.taken_over) {
            true => self.tree.near.set(self.tree.near.get() - 1),
            false => self.near -= 1,
        }
    }

    /// The page at the end of the path; 0: there is none.
    #[inline(always)]
    fn top(&self) -> Pgno {
        self.path.last().map_or(0, |n| n.pgno)
    }

    /// Where the leaf was not looked at, and would have been the right one, the next one is looked at again.
    #[inline(always)]
    fn learn(&mut self, before: Pgno) {
        let first = std::mem::take(&mut self.taken_over);
        if self.near != -1 && !first || self.top() != before {
            return;
        }
        if first && self.tree.near.get() < 0 {
            self.tree.near.set(0);
        }
        if self.near == -1 {
            self.near = 0;
        }
    }

    fn seek_rowid_from_root(&mut self, rowid: i64) -> Result<Option<Ordering>> {
        self.go_to_root()?;
        self.pos = Pos::Invalid;
        let sought = Sought::new(rowid);
        let mut range = (i64::MIN, i64::MAX);
        let mut cells = self.span_of_root();
        loop {
            let n = self.path.last_mut().ok_or(Code::Internal)?;
            if n.leaf {
                return self.seek_in_leaf(&sought, rowid, cells);
            }
            // The first cell whose row number is not below: rows up to and including it are left of it.
            let low = n.search_rowid(&sought, cells)?;
            n.idx = low;
            range = n.range_of_child(low, range);
            cells = range;
            let pgno = n.child(low)?;
            self.descend(pgno)?;
        }
    }

    #[inline(always)]
    pub(crate) fn seek_in_leaf(
        &mut self,
        sought: &Sought,
        rowid: i64,
        range: (i64, i64),
    ) -> Result<Option<Ordering>> {
        let depth = self.path.len();
        let n = self.path.last_mut().ok_or(Code::Internal)?;
        if n.ncell == 0 {
            return if depth == 1 { Ok(None) } else { Err(corrupt()) };
        }
        let low = n.search_rowid(sought, range)?;
        n.idx = low.min(n.ncell - 1);
        self.read_cell()?;
        Ok(Some(self.cell.rowid.cmp(&rowid)))
    }

    /// Goes to an entry for which `cmp` (entry against key) answers `Equal`, or next to where it would be:
    /// how the entry that the cursor stands on compares. `None`: the tree is empty.
    pub fn seek_key<F>(&mut self, cmp: &mut F) -> Result<Option<Ordering>>
    where
        F: EntryOrder,
    {
        self.take_over();
        if self.is_last() && self.kind == TreeKind::Index {
            // Appending in order is common enough to ask the last entry first.
            let n = self.path.last().ok_or(Code::Internal)?;
            let last = n.idx;
            if self.compare_cell(last, cmp)? == Ordering::Less && self.is_last() {
                return Ok(Some(Ordering::Less));
            }
        }
        if self.tree.appended.get() && self.kind == TreeKind::Index && self.last()? {
            // So is appending by statement after statement, each with a cursor that stands nowhere yet.
            let n = self.path.last().ok_or(Code::Internal)?;
            let last = n.idx;
            if self.compare_cell(last, cmp)? == Ordering::Less && self.is_last() {
                return Ok(Some(Ordering::Less));
            }
            self.tree.appended.set(false);
        }
        if self.tries_leaf()
            && let Some(found) = self.seek_key_near(cmp)?
        {
            return Ok(Some(found));
        }
        let before = self.top();
        // A comparison may run user code, and that may write to this tree: then begin again.
        for _ in 0..100 {
            self.go_to_root()?;
            self.pos = Pos::Invalid;
            let found = self.seek_key_below(cmp, Span::default());
            if self.current() {
                self.learn(before);
                return found;
            }
            self.disarm();
        }
        Err(Code::Locked.into())
    }

    /// As [`Cursor::seek_rowid_near`].
    #[inline(never)]
    fn seek_key_near<F>(&mut self, cmp: &mut F) -> Result<Option<Ordering>>
    where
        F: EntryOrder,
    {
        if self.leaf_at_hand().is_none() {
            return Ok(None);
        }
        let mut span = Span::default();
        let n = self.path.last().ok_or(Code::Internal)?;
        let within = search::is_within(&self.bt, &self.layout, n, &mut self.whole, cmp, &mut span)?;
        // A comparison may run user code, and that may write to this tree.
        if !within || !self.current() {
            self.strays();
            return Ok(None);
        }
        self.stays();
        let found = self.seek_key_below(cmp, span);
        if self.current() {
            return found;
        }
        self.disarm();
        Ok(None)
    }

    /// From the top of the path downwards.
    fn seek_key_below<F>(&mut self, cmp: &mut F, mut span: Span) -> Result<Option<Ordering>>
    where
        F: EntryOrder,
    {
        loop {
            let n = self.path.last().ok_or(Code::Internal)?;
            let leaf = n.leaf;
            if leaf && n.ncell == 0 {
                return if self.path.len() == 1 { Ok(None) } else { Err(corrupt()) };
            }
            let (at, equal) = search::search(&self.bt, &self.layout, n, &mut self.whole, cmp, &mut span)?;
            let n = self.path.last_mut().ok_or(Code::Internal)?;
            if equal {
                n.idx = at;
                self.read_cell()?;
                return Ok(Some(Ordering::Equal));
            }
            if leaf {
                // The entry at `at` is greater, unless all are less.
                let c = if at == n.ncell { Ordering::Less } else { Ordering::Greater };
                n.idx = at.min(n.ncell - 1);
                self.read_cell()?;
                return Ok(Some(c));
            }
            n.idx = at;
            let pgno = n.child(at)?;
            self.descend(pgno)?;
        }
    }

    /// Compares cell `i` of the top node with the key.
    fn compare_cell<F>(&mut self, i: u32, cmp: &mut F) -> Result<Ordering>
    where
        F: EntryOrder,
    {
        let n = self.path.last().ok_or(Code::Internal)?;
        search::compare_any(&self.bt, &self.layout, n, n.cell_at(i), &mut self.whole, cmp)
    }
}
