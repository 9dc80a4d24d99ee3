//! The pages of a table's tree, and which of its rows lie on those that have changed: for what is derived from rows and kept.
//!
//! An [`Extent`] is found from the root down, by interior pages alone. Where values may go on beyond their leaves, and that matters, leaves
//! and chains are read as well.
//!
//! What always holds: a row that [`Extent::follow`] does not name is there as it was, or was not there and is not. For a page that
//! is found from the root down in one state, and that no page on the way to differs from another state, was found there too.
//! Whoever follows without such pages of values cannot tell of values that go beyond their leaves. What is not known is who changed what.

use crate::btree::Btree;
use crate::node::{Cell, Layout, Node, TreeKind, corrupt};
use iolite_base::{Buf, Pgno, Result, alloc, be};
use std::ops::RangeInclusive;
use std::rc::Rc;

/// Deeper trees are taken for damaged.
const MAX_DEPTH: usize = 20;
/// So many bytes a record has beside its longest value, at the most.
const BESIDE: usize = 11;
/// Pages of a chain are read so many at once, where they follow each other.
const AT_ONCE: u32 = 64;

/// Which rows of a tree may be others than they were.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RowsChanged {
    /// None.
    Nothing,
    /// Those with keys in these ranges, ascending.
    Some(Vec<RangeInclusive<i64>>),
    /// Perhaps all.
    All,
}

/// See the module's head.
#[derive(Clone, Default, Debug)]
pub struct Extent {
    root: Pgno,
    /// Values are followed beyond their leaves.
    deep: bool,
    interior: Vec<Pgno>,
    /// In the order of keys, each with the greatest key that may be on it.
    leaves: Vec<(Pgno, i64)>,
    /// The same by page, with their places.
    by_page: Vec<(Pgno, u32)>,
    /// Pages that follow each other, with the row whose value they hold: first page, how many, key.
    beyond: Vec<(Pgno, u32, i64)>,
}

impl Extent {
    /// Finds the pages of a table's tree, with those on which values go on, if some as long as that may do so.
    pub fn read(bt: &Btree, root: Pgno, longest: usize) -> Result<Extent> {
        let mut e = Extent { root, deep: go_on(bt, longest), ..Extent::default() };
        e.walk(bt)?;
        if e.deep {
            for at in 0..e.leaves.len() {
                e.read_beyond(bt, at, &[i64::MIN..=i64::MAX])?;
            }
            e.beyond.sort_unstable();
        }
        Ok(e)
    }

    /// Whether it has the pages of all values that are not longer.
    pub fn is_for(&self, bt: &Btree, longest: usize) -> bool {
        self.deep || !go_on(bt, longest)
    }

    /// Whether one of these pages is one of the tree's.
    pub fn has_any(&self, pages: &[Pgno]) -> bool {
        pages.iter().any(|p| self.is_interior(*p) || self.leaf(*p).is_some() || self.row_beyond(*p).is_some())
    }

    /// The tree at the state that is read now, and which rows differ, where `changed` names the pages that differ between the two
    /// states. `was_read`: this was found at the former one, and otherwise at the present one.
    pub fn follow(
        self: &Rc<Extent>,
        bt: &Btree,
        changed: &[Pgno],
        was_read: bool,
    ) -> Result<(Rc<Extent>, RowsChanged)> {
        let mut shape = false;
        let (mut places, mut keys) = (Vec::new(), Vec::new());
        for p in changed {
            shape |= self.is_interior(*p);
            places.extend(self.leaf(*p));
            keys.extend(self.row_beyond(*p));
        }
        if !shape && places.is_empty() && keys.is_empty() {
            return Ok((self.clone(), RowsChanged::Nothing));
        }
        if shape && !was_read {
            return Ok((self.clone(), RowsChanged::All));
        }
        places.sort_unstable();
        places.dedup();
        let mut ranges: Vec<_> = keys.iter().map(|k| *k..=*k).collect();
        if !shape {
            ranges.extend(places.iter().map(|at| self.range(*at)));
            let ranges = merged(ranges);
            if !was_read || !self.deep {
                return Ok((self.clone(), RowsChanged::Some(ranges)));
            }
            let mut now = Extent::clone(self);
            now.beyond.retain(|b| !ranges.iter().any(|r| r.contains(&b.2)));
            for at in 0..now.leaves.len() {
                now.read_beyond(bt, at, &ranges)?;
            }
            now.beyond.sort_unstable();
            return Ok((Rc::new(now), RowsChanged::Some(ranges)));
        }
        let mut now = Extent { root: self.root, deep: self.deep, ..Extent::default() };
        now.walk(bt)?;
        for at in 0..now.leaves.len() {
            let as_it_was =
                |then: usize| self.range(then) == now.range(at) && places.binary_search(&then).is_err();
            if !self.leaf(now.leaves[at].0).is_some_and(as_it_was) {
                ranges.push(now.range(at));
            }
        }
        let ranges = merged(ranges);
        if self.deep {
            now.beyond = self.beyond.clone();
            now.beyond.retain(|b| !ranges.iter().any(|r| r.contains(&b.2)));
            for at in 0..now.leaves.len() {
                now.read_beyond(bt, at, &ranges)?;
            }
            now.beyond.sort_unstable();
        }
        Ok((Rc::new(now), RowsChanged::Some(ranges)))
    }

    fn is_interior(&self, p: Pgno) -> bool {
        self.interior.binary_search(&p).is_ok()
    }

    /// The place of a leaf.
    fn leaf(&self, p: Pgno) -> Option<usize> {
        self.by_page.binary_search_by_key(&p, |l| l.0).ok().map(|i| self.by_page[i].1 as usize)
    }

    /// The row whose value goes on there.
    fn row_beyond(&self, p: Pgno) -> Option<i64> {
        let at = self.beyond.partition_point(|b| b.0 <= p).checked_sub(1)?;
        let (first, n, key) = self.beyond[at];
        (p - first < n).then_some(key)
    }

    /// The keys that may be on a leaf.
    fn range(&self, at: usize) -> RangeInclusive<i64> {
        let first = match at {
            0 => i64::MIN,
            at => self.leaves[at - 1].1.saturating_add(1),
        };
        first..=self.leaves[at].1
    }

    fn walk(&mut self, bt: &Btree) -> Result<()> {
        let most = bt.page_count() as usize;
        let layout = bt.layout();
        // Pages still to visit, with depth and greatest key; the next one last.
        let mut open = vec![(self.root, 0, i64::MAX)];
        // Above leaves, all children are leaves: they need not be read to know.
        let mut leaf_depth = None;
        while let Some((pgno, depth, last)) = open.pop() {
            if depth > MAX_DEPTH || self.leaves.len() + self.interior.len() > most {
                return Err(corrupt());
            }
            if leaf_depth == Some(depth) {
                alloc::reserve(&mut self.leaves, 1)?;
                self.leaves.push((pgno, last));
                continue;
            }
            let node = Node::new(bt.raw_page(pgno)?, pgno, TreeKind::Table, &layout)?;
            if node.leaf {
                leaf_depth = Some(depth);
                self.leaves.push((pgno, last));
                continue;
            }
            self.interior.push(pgno);
            open.push((node.child(node.ncell)?, depth + 1, last));
            for i in (0..node.ncell).rev() {
                open.push((node.child(i)?, depth + 1, cell_of(&node, i, &layout)?.rowid));
            }
        }
        self.interior.sort_unstable();
        alloc::reserve(&mut self.by_page, self.leaves.len())?;
        self.by_page.extend(self.leaves.iter().enumerate().map(|(at, l)| (l.0, at as u32)));
        self.by_page.sort_unstable();
        Ok(())
    }

    /// Finds the pages on which values of a leaf go on, of rows in these ranges.
    fn read_beyond(&mut self, bt: &Btree, at: usize, rows: &[RangeInclusive<i64>]) -> Result<()> {
        let of_leaf = self.range(at);
        if !rows.iter().any(|r| r.start() <= of_leaf.end() && of_leaf.start() <= r.end()) {
            return Ok(());
        }
        let (pgno, layout) = (self.leaves[at].0, bt.layout());
        let node = Node::new(bt.raw_page(pgno)?, pgno, TreeKind::Table, &layout)?;
        if !node.leaf {
            return Err(corrupt());
        }
        for i in 0..node.ncell {
            let cell = cell_of(&node, i, &layout)?;
            if cell.overflows() && rows.iter().any(|r| r.contains(&cell.rowid)) {
                self.chain_of(bt, &node, &cell)?;
            }
        }
        Ok(())
    }

    /// Finds the pages on which the value of a cell goes on.
    fn chain_of(&mut self, bt: &Btree, node: &Node, cell: &Cell) -> Result<()> {
        let layout = bt.layout();
        let first = node.page.get((cell.at + cell.local) as usize..).and_then(|b| b.first_chunk());
        let first = u32::from_be_bytes(*first.ok_or_else(corrupt)?);
        let mut left = (cell.payload - cell.local).div_ceil(layout.usable - 4);
        let (mut next, most) = (first, bt.page_count());
        let mut pages = Vec::new();
        while left > 0 {
            if next < 2 || next > most {
                return Err(corrupt());
            }
            let n = left.min(AT_ONCE).min(most - next + 1);
            let size = bt.page_size() as usize;
            // Those that follow each other, as far as they say so.
            let mut taken = 0;
            let run = n > 1 && bt.raw_pages(next, n as usize, &mut pages)?;
            let mut one: Option<Buf> = None;
            let after = loop {
                let page = if run {
                    &pages[taken as usize * size..][..size]
                } else {
                    &one.insert(bt.raw_page(next)?)[..]
                };
                let after = be::get_u32(page, 0);
                taken += 1;
                if !run || taken == n || after != next + taken {
                    break after;
                }
            };
            alloc::reserve(&mut self.beyond, 1)?;
            match self.beyond.last_mut() {
                Some(b) if b.2 == cell.rowid && b.0.checked_add(b.1) == Some(next) => b.1 += taken,
                _ => self.beyond.push((next, taken, cell.rowid)),
            }
            left -= taken;
            next = after;
        }
        Ok(())
    }
}

/// Whether values as long as that may go on beyond their leaves. Beside them a record has its header, and other short values.
fn go_on(bt: &Btree, longest: usize) -> bool {
    longest.saturating_add(BESIDE) > bt.layout().max_table as usize
}

fn cell_of(node: &Node, i: u32, layout: &Layout) -> Result<Cell> {
    Cell::read(&node.page, node.cell_at(i), TreeKind::Table, node.leaf, layout)
}

/// Ranges in ascending order, none of which touches another.
fn merged(mut ranges: Vec<RangeInclusive<i64>>) -> Vec<RangeInclusive<i64>> {
    ranges.sort_unstable_by_key(|r| *r.start());
    let mut out: Vec<RangeInclusive<i64>> = Vec::new();
    for r in ranges {
        match out.last_mut() {
            Some(last) if *r.start() <= last.end().saturating_add(1) => {
                *last = *last.start()..=*last.end().max(r.end());
            }
            _ => out.push(r),
        }
    }
    out
}
