//! Several segments read as one: of rows that more than one has, the newest segment's counts.

use super::segment::SegmentCursor;
use iolite_base::Result;
use std::cmp::Ordering;

/// Cursors over segments, newest first, read in the order of terms and rows.
pub(crate) struct Multi {
    cursors: Vec<SegmentCursor>,
    at: Option<usize>,
    backwards: bool,
    one_term: bool,
    /// Rows that are only taken out are passed over.
    skip_deleted: bool,
}

impl Multi {
    /// All terms of all cursors.
    pub fn scan(cursors: Vec<SegmentCursor>, skip_deleted: bool) -> Result<Multi> {
        let mut m = Multi { cursors, at: None, backwards: false, one_term: false, skip_deleted };
        m.settle()?;
        Ok(m)
    }

    /// The rows of the one term that all cursors stand on.
    pub fn one_term(cursors: Vec<SegmentCursor>, backwards: bool) -> Result<Multi> {
        let mut m = Multi { cursors, at: None, backwards, one_term: true, skip_deleted: true };
        m.cursors.retain(|c| !c.eof);
        m.settle()?;
        Ok(m)
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

    /// Finds the cursor whose row comes first; goes on while that row is one to pass over.
    fn settle(&mut self) -> Result<()> {
        loop {
            let mut best: Option<usize> = None;
            for (i, c) in self.cursors.iter().enumerate().filter(|(_, c)| !c.eof) {
                if best.is_none_or(|b| self.order(c, &self.cursors[b]) == Ordering::Less) {
                    best = Some(i);
                }
            }
            self.at = best;
            let Some(i) = best else { return Ok(()) };
            let c = &mut self.cursors[i];
            if !(self.skip_deleted && c.size == 0) && !c.is_tombstone()? {
                return Ok(());
            }
            self.step()?;
        }
    }

    /// Moves all cursors that are on the present row.
    fn step(&mut self) -> Result<()> {
        let Some(i) = self.at else { return Ok(()) };
        for k in 0..self.cursors.len() {
            if k > i && !self.cursors[k].eof && self.order(&self.cursors[k], &self.cursors[i]).is_eq() {
                self.cursors[k].next()?;
            }
        }
        self.cursors[i].next()
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
        let behind = |r: i64| if self.backwards { r > rowid } else { r < rowid };
        if self.current().is_none_or(|c| !behind(c.rowid)) {
            return Ok(());
        }
        for c in &mut self.cursors {
            if !c.eof && (if self.backwards { c.rowid > rowid } else { c.rowid < rowid }) {
                c.advance(rowid)?;
            }
        }
        self.settle()
    }
}
