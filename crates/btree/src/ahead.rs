//! Asking for the rows to come: while an index is read in order and each entry leads to a row of a large table, the
//! pages with the next rows are asked of memory in time.
//!
//! A thousand rows at random places of a table of 100,000 took 307 ns each, of which the processor waited 170 for the
//! head of the leaf, the cell's pointer and the cell, one after the other. Entries that follow on the same index leaf say
//! now which rows will be wanted: for the one [`FAR`] places on the leaf is looked up and its head asked for, for
//! the one [`NEAR`] places on, whose leaf has arrived, the cell.
//!
//! What always holds: these are hints. Nothing is read from a file, no cursor moves, and what is damaged ends the
//! looking ahead.

use crate::cursor::{Cursor, Pos};
use crate::node::*;
use iolite_base::{Pgno, Result, bytes::prefetch};
use std::cmp::Ordering;

/// How many entries ahead a leaf is looked up.
const FAR: u32 = 4;
/// How many entries ahead its cell is asked for.
const NEAR: u32 = 2;
/// After so many neighbours in a row more are expected.
const RUN: u32 = 3;
/// After so many rows on one leaf the next are expected there, too: the index has the table's order.
const STAYS: u32 = 2;
/// Tables of fewer levels lie in a near cache anyway (a megabyte and a half).
const LEVELS: usize = 3;
/// Bytes of a page's head and its first pointers.
const HEAD: usize = 192;
/// Bytes around a cell that are asked for.
const AROUND: usize = 64;
/// Deeper trees are left alone.
const LEVELS_MOST: usize = 4;

/// After so many looks it is asked how many leaves were not at hand: where that is one in [`AWAY`] or more, the table does not
/// fit the cache, ...
const LOOKS: u32 = 32;
const AWAY: u32 = 4;
/// ... and so many rows are sought without a look ahead.
const QUIET: u32 = 480;

/// Rows that are remembered: those between the present one and the one that is looked up.
const RING: usize = 8;

/// Where a row to come is to be found.
struct Expected {
    rowid: i64,
    /// Of the tree when that was looked up.
    generation: u32,
    /// The interior nodes on the way, and which child of each.
    way: [(Pgno, u32); LEVELS_MOST],
    levels: usize,
    leaf: Pgno,
    /// Row numbers that the leaf may have.
    range: (i64, i64),
}

/// What one cursor on a table expects of the index that leads it.
#[derive(Default)]
pub struct Ahead {
    place: (Pgno, u32),
    run: u32,
    /// The table's leaf on which the last row was, and how many rows in a row were on it.
    leaf: Pgno,
    stays: u32,
    /// Looks since that was last asked, leaves among them that were not at hand, and rows that go without on that account.
    looks: u32,
    away: u32,
    quiet: u32,
    /// By the place of their entry.
    expected: [Option<Expected>; RING],
}

impl Ahead {
    /// Goes to the row of the entry on which the index's cursor stands, as [`Cursor::seek_rowid`] does.
    #[inline]
    pub fn seek(&mut self, table: &mut Cursor, index: &Cursor, rowid: i64) -> Result<Option<Ordering>> {
        let Some(n) = index.path.last() else { return table.seek_rowid(rowid) };
        let place = (n.pgno, n.idx);
        let follows = place == (self.place.0, self.place.1 + 1) || (n.idx == 0 && self.run > 0);
        self.run = if follows { self.run + 1 } else { 0 };
        self.place = place;
        let leaf = table.path.last().map_or(0, |n| n.pgno);
        self.stays = if leaf == self.leaf { self.stays + 1 } else { 0 };
        self.leaf = leaf;
        if self.run < RUN
            || self.stays >= STAYS
            || !(LEVELS..=LEVELS_MOST + 1).contains(&table.path.len())
            || !n.leaf
        {
            return table.seek_rowid(rowid);
        }
        self.look(table, n);
        match self.expected[n.idx as usize % RING].take() {
            Some(e) if e.rowid == rowid && table.current() && e.generation == table.generation => {
                table.seek_expected(&e)
            }
            _ => table.seek_rowid(rowid),
        }
    }

    #[inline]
    fn look(&mut self, table: &Cursor, index: &Node) {
        if self.quiet > 0 {
            self.quiet -= 1;
            return;
        }
        if !table.current() {
            return;
        }
        if let Some(e) = &self.expected[(index.idx + NEAR) as usize % RING] {
            table.ask_for_cell(e);
        }
        let at = index.idx + FAR;
        let Some(rowid) = rowid_at(index, at) else { return };
        let found = table.ask_for_leaf(rowid);
        self.looks += 1;
        self.away += found.is_none() as u32;
        if self.looks == LOOKS {
            if self.away * AWAY >= LOOKS {
                self.quiet = QUIET;
                self.expected = Default::default();
            }
            (self.looks, self.away) = (0, 0);
        }
        self.expected[at as usize % RING] = found;
    }
}

/// The row number at the end of entry `i`, if it is short.
#[inline]
fn rowid_at(index: &Node, i: u32) -> Option<i64> {
    if i >= index.ncell {
        return None;
    }
    let page: &[u8] = &index.page;
    let [len, rest @ ..] = page.get(index.cell_at(i)..)? else { return None };
    if *len > 0x7f {
        return None;
    }
    let entry = rest.get(..*len as usize)?;
    let header = entry.get(..*entry.first()? as usize)?;
    let bytes = match header.last()? {
        t @ 1..=4 => *t as usize,
        5 => 6,
        6 => 8,
        8 => return Some(0),
        9 => return Some(1),
        _ => return None,
    };
    let mut word = [0; 8];
    word[..bytes].copy_from_slice(entry.get(entry.len().checked_sub(bytes)?..)?);
    Some(i64::from_be_bytes(word) >> (64 - 8 * bytes))
}

impl Cursor {
    /// Looks up the leaf for a row, along pages that are at hand, and asks for its head.
    #[inline]
    fn ask_for_leaf(&self, rowid: i64) -> Option<Expected> {
        let pager = self.bt.pager().ok()?;
        let sought = Sought::new(rowid);
        let mut range = (i64::MIN, i64::MAX);
        let levels = self.path.len() - 1;
        let mut way = [(0, 0); LEVELS_MOST];
        let mut below: Option<Node> = None;
        for (level, step) in way.iter_mut().enumerate().take(levels) {
            // The present row's way is mostly the same but for the leaf.
            let n = match &below {
                Some(n) if n.pgno != self.path[level].pgno => n,
                _ => &self.path[level],
            };
            let at = n.search_rowid(&sought, range).ok()?;
            range = n.range_of_child(at, range);
            *step = (n.pgno, at);
            let pgno = n.child(at).ok()?;
            let page = pager.peek(pgno)?;
            if level + 1 == levels {
                prefetch(page.get(..HEAD)?);
                return Some(Expected { rowid, generation: self.generation, way, levels, leaf: pgno, range });
            }
            let node = Node::new(page.clone(), pgno, self.kind, &self.layout).ok()?;
            if node.leaf {
                return None;
            }
            below = Some(node);
        }
        None
    }

    /// Asks for the cell of a row on a leaf.
    #[inline]
    fn ask_for_cell(&self, e: &Expected) {
        let Ok(pager) = self.bt.pager() else { return };
        let Some(page) = pager.peek(e.leaf) else { return };
        let page: &[u8] = page;
        if let Some(at) = likely_cell(page, header_at(e.leaf), e.rowid, e.range) {
            let from = at.saturating_sub(AROUND);
            prefetch(page.get(from..(at + 2 * AROUND).min(page.len())).unwrap_or(&[]));
        }
    }

    /// Goes to a row along the way that was looked up; the tree is as it was then.
    fn seek_expected(&mut self, e: &Expected) -> Result<Option<Ordering>> {
        self.disarm();
        self.skip = 0;
        self.pos = Pos::Invalid;
        self.path.truncate(e.levels);
        for (level, &(pgno, idx)) in e.way[..e.levels].iter().enumerate() {
            if self.path.get(level).is_none_or(|n| n.pgno != pgno) {
                self.path.truncate(level);
                self.descend(pgno)?;
            }
            self.path[level].idx = idx;
        }
        self.descend(e.leaf)?;
        if self.path.last().is_none_or(|n| !n.leaf) {
            return Err(corrupt());
        }
        self.seek_in_leaf(&Sought::new(e.rowid), e.rowid, e.range)
    }
}
