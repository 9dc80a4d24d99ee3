//! Several segments read as one: of rows that more than one has, the newest segment's counts.
//!
//! A tournament: each inner node of a tree knows which of the cursors under it comes first. Where two meet on the same row, the
//! older moves on at once.

use super::segment::SegmentCursor;
use iolite_base::Result;
use std::cmp::Ordering;

/// So many rows are passed over one by one.
const STEPS: usize = 3;

/// Cursors over segments, newest first, read in the order of terms and rows.
pub(crate) struct Multi {
    cursors: Vec<SegmentCursor>,
    /// For each inner node, from 1, the cursor that comes first under it.
    first: Vec<usize>,
    /// How many leaves the tree has: a power of two.
    leaves: usize,
    at: Option<usize>,
    backwards: bool,
    one_term: bool,
    /// Rows that are only taken out are passed over.
    skip_deleted: bool,
}

impl Multi {
    fn new(
        cursors: Vec<SegmentCursor>,
        backwards: bool,
        one_term: bool,
        skip_deleted: bool,
    ) -> Result<Multi> {
        let leaves = cursors.len().next_power_of_two().max(2);
        let first = vec![0; leaves];
        let mut m = Multi { cursors, first, leaves, at: None, backwards, one_term, skip_deleted };
        m.play_all()?;
        m.settle()?;
        Ok(m)
    }

    /// All terms of all cursors.
    pub fn scan(cursors: Vec<SegmentCursor>, skip_deleted: bool) -> Result<Multi> {
        Multi::new(cursors, false, false, skip_deleted)
    }

    /// The rows of the one term that all cursors stand on.
    pub fn one_term(mut cursors: Vec<SegmentCursor>, backwards: bool) -> Result<Multi> {
        cursors.retain(|c| !c.eof);
        Multi::new(cursors, backwards, true, true)
    }

    /// The cursor that has the present row; `None`: the end.
    #[inline]
    pub fn current(&self) -> Option<&SegmentCursor> {
        self.at.map(|i| &self.cursors[i])
    }

    /// All cursors.
    pub fn cursors(&self) -> &[SegmentCursor] {
        &self.cursors
    }

    fn order(&self, a: &SegmentCursor, b: &SegmentCursor) -> Ordering {
        let terms = if self.one_term { Ordering::Equal } else { a.term.cmp(&b.term) };
        let rows = || a.rowid.cmp(&b.rowid);
        terms.then_with(|| if self.backwards { rows().reverse() } else { rows() })
    }

    /// Compares the cursors under a node. Answers the older one where both are on the same row.
    fn play(&mut self, node: usize) -> Option<usize> {
        let half = self.leaves / 2;
        let (a, b) = match node >= half {
            true => ((node - half) * 2, (node - half) * 2 + 1),
            false => (self.first[node * 2], self.first[node * 2 + 1]),
        };
        let there = |n: usize| self.cursors.get(n).filter(|c| !c.eof);
        self.first[node] = match (there(a), there(b)) {
            (None, _) => b,
            (_, None) => a,
            (Some(x), Some(y)) => match self.order(x, y) {
                Ordering::Equal => return Some(b),
                Ordering::Less => a,
                Ordering::Greater => b,
            },
        };
        None
    }

    /// Compares anew from the cursor's place up to a node.
    fn play_up(&mut self, cursor: usize, to: usize) -> Result<()> {
        let mut node = (self.leaves + cursor) / 2;
        while node >= to.max(1) {
            if let Some(older) = self.play(node) {
                self.cursors[older].next()?;
                node = self.leaves + older;
            }
            node /= 2;
        }
        Ok(())
    }

    fn play_all(&mut self) -> Result<()> {
        for node in (1..self.leaves).rev() {
            if let Some(older) = self.play(node) {
                self.cursors[older].next()?;
                self.play_up(older, node)?;
            }
        }
        Ok(())
    }

    /// Notes the cursor whose row comes first; goes on while that row is one to pass over.
    fn settle(&mut self) -> Result<()> {
        loop {
            let n = self.first[1];
            let skip = self.skip_deleted;
            let Some(c) = self.cursors.get_mut(n).filter(|c| !c.eof) else {
                self.at = None;
                return Ok(());
            };
            self.at = Some(n);
            if !(skip && c.size == 0 || c.is_tombstone()?) {
                return Ok(());
            }
            self.step()?;
        }
    }

    /// Moves the cursor that is on the present row.
    fn step(&mut self) -> Result<()> {
        let Some(n) = self.at else { return Ok(()) };
        self.cursors[n].next()?;
        self.play_up(n, 1)
    }

    /// Moves on.
    pub fn next(&mut self) -> Result<()> {
        if self.one_term && self.cursors.len() == 1 {
            let c = &mut self.cursors[0];
            loop {
                c.next()?;
                if c.eof {
                    self.at = None;
                    return Ok(());
                }
                if c.size > 0 && !c.is_tombstone()? {
                    return Ok(());
                }
            }
        }
        self.step()?;
        self.settle()
    }

    /// Moves on to a row or to the first behind it. Only with one term.
    pub fn advance(&mut self, rowid: i64) -> Result<()> {
        let backwards = self.backwards;
        let behind = |r: i64| if backwards { r > rowid } else { r < rowid };
        // Mostly the row is close: steps cost less than to seek in all cursors.
        for _ in 0..STEPS {
            if self.current().is_none_or(|c| !behind(c.rowid)) {
                return Ok(());
            }
            self.next()?;
        }
        if self.current().is_none_or(|c| !behind(c.rowid)) {
            return Ok(());
        }
        for c in &mut self.cursors {
            if !c.eof && behind(c.rowid) {
                c.advance(rowid)?;
            }
        }
        self.play_all()?;
        self.settle()
    }
}
