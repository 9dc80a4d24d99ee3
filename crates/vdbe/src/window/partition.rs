//! One partition: its rows in order, their peers, and the frame of each.
//!
//! Places count from the start of the partition. Frames are half-open ranges of places, `EXCLUDE` apart; both ends only ever
//! move forward from row to row. Peers and frames are found only for functions that ask for them; the lists are used again
//! for the next partition.

use super::functions;
use iolite_base::{Error, Result};
use iolite_bytecode::{FrameEdge, FrameExclude, FrameUnit, WindowPass};
use iolite_ext::{Implementation, Inline};
use iolite_value::arith::{Arith, arith};
use iolite_value::{Affinity, Value, compare};
use std::ops::Range;

/// The rows of one partition, in order.
pub(super) struct Partition<'a> {
    pub pass: &'a WindowPass,
    cells: &'a [Value],
    width: usize,
    /// The numbers of its rows.
    pub rows: &'a [u32],
    /// Where each group of peers starts; the number of rows at the end.
    groups: Vec<u32>,
    /// The group of each row.
    group_of: Vec<u32>,
    frames: Vec<Range<usize>>,
    needs: Needs,
}

/// What the functions of a window ask for.
struct Needs {
    groups: bool,
    frames: bool,
}

impl Needs {
    fn of(p: &WindowPass) -> Needs {
        use Inline::{FirstValue, Lag, LastValue, Lead, NthValue, Ntile, RowNumber};
        let mut needs = Needs { groups: false, frames: false };
        for (call, ..) in &p.calls {
            match &call.function.imp {
                Implementation::Inline(RowNumber | Ntile | Lag | Lead) => {}
                Implementation::Inline(FirstValue | LastValue | NthValue) => needs.frames = true,
                Implementation::Inline(_) => needs.groups = true,
                _ => needs.frames = true,
            }
        }
        let by_rows = p.unit == FrameUnit::Rows;
        let alone = !matches!(p.exclude, FrameExclude::Group | FrameExclude::Ties);
        needs.groups |= needs.frames && !(by_rows && alone);
        needs
    }
}

impl<'a> Partition<'a> {
    pub fn new(pass: &'a WindowPass, cells: &'a [Value], width: usize) -> Partition<'a> {
        Partition {
            pass,
            cells,
            width,
            rows: &[],
            groups: Vec::new(),
            group_of: Vec::new(),
            frames: Vec::new(),
            needs: Needs::of(pass),
        }
    }

    /// Goes to the partition that consists of `rows`.
    pub fn begin(&mut self, rows: &'a [u32], offsets: &(Value, Value)) -> Result<()> {
        self.rows = rows;
        if self.needs.groups {
            self.find_groups();
        }
        if self.needs.frames {
            self.find_frames(offsets)?;
        }
        Ok(())
    }

    pub fn row(&self, at: usize) -> &'a [Value] {
        &self.cells[self.rows[at] as usize * self.width..][..self.width]
    }

    /// Up to where its rows, from `from` on, have values that no later row changes; `complete`: there is no later row.
    pub fn settled(&self, from: usize, complete: bool) -> usize {
        let n = self.rows.len();
        if complete { n } else { (from..n).find(|at| !self.is_settled(*at)).unwrap_or(n) }
    }

    fn is_settled(&self, at: usize) -> bool {
        use Inline::{CumeDist, DenseRank, Lag, Lead, Ntile, PercentRank, Rank, RowNumber};
        self.pass.calls.iter().all(|(call, args, _)| match &call.function.imp {
            Implementation::Inline(RowNumber | Rank | DenseRank) => true,
            Implementation::Inline(what @ (Lag | Lead)) => {
                functions::shifted_from(self, at, *what == Lag, args).is_none_or(|k| k < self.rows.len())
            }
            Implementation::Inline(PercentRank | CumeDist | Ntile) => false,
            _ => self.frame_is_settled(at),
        })
    }

    fn frame_is_settled(&self, at: usize) -> bool {
        let n = self.rows.len();
        let by_place = self.pass.unit == FrameUnit::Rows
            && matches!(self.pass.end, FrameEdge::CurrentRow | FrameEdge::Preceding(_));
        let peers = matches!(self.pass.exclude, FrameExclude::Group | FrameExclude::Ties);
        (by_place || self.frames[at].end < n) && !(peers && self.peers(self.group(at)).end == n)
    }

    /// The number of the group of peers that a row is in.
    pub fn group(&self, at: usize) -> usize {
        self.group_of[at] as usize
    }

    /// The places of a group of peers.
    pub fn peers(&self, group: usize) -> Range<usize> {
        self.groups[group] as usize..self.groups[group + 1] as usize
    }

    /// The frame of a row, excluded rows not taken out.
    pub fn whole_frame(&self, at: usize) -> Range<usize> {
        self.frames[at].clone()
    }

    /// The rows in the frame of a row. What is excluded lies together, so that a frame is of three ranges at most, and its n-th row is
    /// found without those before it.
    pub fn frame(&self, at: usize) -> impl DoubleEndedIterator<Item = usize> + '_ {
        let whole = self.whole_frame(at);
        let (excluded, kept) = match self.pass.exclude {
            FrameExclude::Nothing | FrameExclude::NoOthers => (0..0, None),
            FrameExclude::CurrentRow => (at..at + 1, None),
            FrameExclude::Group => (self.peers(self.group(at)), None),
            FrameExclude::Ties => (self.peers(self.group(at)), Some(at)),
        };
        let before = whole.start..excluded.start.clamp(whole.start, whole.end);
        let after = excluded.end.clamp(whole.start, whole.end)..whole.end;
        before.chain(kept.filter(|k| whole.contains(k))).chain(after)
    }

    fn find_groups(&mut self) {
        self.groups.clear();
        self.group_of.clear();
        for at in 0..self.rows.len() {
            if at == 0 || !self.are_peers(self.row(at - 1), self.row(at)) {
                self.groups.push(at as u32);
            }
            self.group_of.push(self.groups.len() as u32 - 1);
        }
        self.groups.push(self.rows.len() as u32);
    }

    fn are_peers(&self, a: &[Value], b: &[Value]) -> bool {
        self.pass.order.iter().all(|(k, f)| compare::compare(&a[*k], &b[*k], &f.coll).is_eq())
    }

    fn find_frames(&mut self, offsets: &(Value, Value)) -> Result<()> {
        let start = self.offset(self.pass.start, &offsets.0, "starting")?;
        let end = self.offset(self.pass.end, &offsets.1, "ending")?;
        let mut frames = std::mem::take(&mut self.frames);
        frames.clear();
        let (mut lo, mut hi) = (0, 0);
        for at in 0..self.rows.len() {
            // Neither end moves back, so each search goes on where the last one ended.
            lo = self.edge(self.pass.start, &start, at, false, lo);
            hi = self.edge(self.pass.end, &end, at, true, hi);
            frames.push(lo..hi.max(lo));
        }
        self.frames = frames;
        Ok(())
    }

    /// A frame's offset, checked.
    fn offset(&self, e: FrameEdge, v: &Value, which: &str) -> Result<Value> {
        if !matches!(e, FrameEdge::Preceding(_) | FrameEdge::Following(_)) {
            return Ok(Value::Null);
        }
        let mut v = v.clone();
        let range = self.pass.unit == FrameUnit::Range;
        // A whole number written as a real is added as one.
        if !range || matches!(v, Value::Text(..)) {
            Affinity::Numeric.apply(&mut v)?;
        }
        let good = match &v {
            Value::Int(i) => *i >= 0,
            Value::Real(r) if range => *r >= 0.0,
            Value::Real(r) => *r >= 0.0 && *r == r.trunc() && *r < 9.2e18,
            _ => false,
        };
        if !good {
            let what = if range { "number" } else { "integer" };
            return Err(Error::sql(format!("frame {which} offset must be a non-negative {what}")));
        }
        Ok(if range { v } else { Value::Int(v.to_int()) })
    }

    /// Where the frame of a row starts, or (`end`) ends; no earlier than `from`.
    fn edge(&self, e: FrameEdge, offset: &Value, at: usize, end: bool, from: usize) -> usize {
        match e {
            FrameEdge::UnboundedPreceding => 0,
            FrameEdge::UnboundedFollowing => self.rows.len(),
            FrameEdge::CurrentRow if self.pass.unit == FrameUnit::Rows => at + end as usize,
            FrameEdge::CurrentRow => self.groups[self.group(at) + end as usize] as usize,
            FrameEdge::Preceding(_) | FrameEdge::Following(_) => {
                let back = matches!(e, FrameEdge::Preceding(_));
                match self.pass.unit {
                    FrameUnit::Range => self.range_edge(offset, at, back, end, from),
                    FrameUnit::Rows => steps(offset, at, back, end, self.rows.len()),
                    FrameUnit::Groups => {
                        let last = self.groups.len() - 1;
                        self.groups[steps(offset, self.group(at), back, end, last)] as usize
                    }
                }
            }
        }
    }

    /// As [`Partition::edge`], for RANGE with an offset: by the value of the only ORDER BY term. As in SQLite the offset is always put
    /// upon the value that comes first: sums of floating-point numbers, infinities and what overflows decide by that.
    fn range_edge(&self, offset: &Value, at: usize, back: bool, end: bool, from: usize) -> usize {
        let (k, _) = &self.pass.order[0];
        let own = &self.row(at)[*k];
        let beyond = |other: &Value| match (back, end) {
            (true, false) => self.reaches(other, offset, own, Reach::Least),
            (true, true) => self.reaches(other, offset, own, Reach::More),
            (false, false) => self.reaches(own, offset, other, Reach::Most),
            (false, true) => !self.reaches(own, offset, other, Reach::Least),
        };
        (from..self.rows.len()).find(|r| beyond(&self.row(*r)[*k])).unwrap_or(self.rows.len())
    }

    /// Whether a value with the offset upon it comes to stand at another, in the order of the window.
    fn reaches(&self, value: &Value, offset: &Value, other: &Value, how: Reach) -> bool {
        let field = &self.pass.order[0].1;
        let holds = |v: &Value| {
            let o = compare::compare(v, other, &field.coll);
            match (field.direct(o, v.is_null() || other.is_null()), how) {
                (o, Reach::Least) => o.is_ge(),
                (o, Reach::More) => o.is_gt(),
                (o, Reach::Most) => o.is_le(),
            }
        };
        // Nothing can be added to NULL, texts and blobs.
        if !matches!(value, Value::Int(_) | Value::Real(_)) {
            return holds(value);
        }
        if how == Reach::Least && holds(value) {
            return true;
        }
        let sum = arith(if field.desc { Arith::Sub } else { Arith::Add }, value, offset);
        holds(&sum)
    }
}

/// Where a value with the offset upon it stands: at another value or behind it, behind it, at it or before it.
#[derive(Clone, Copy, PartialEq)]
enum Reach {
    Least,
    More,
    Most,
}

/// `offset` rows or groups from number `at` of `n`: where the frame starts, or (`end`) ends.
fn steps(offset: &Value, at: usize, back: bool, end: bool, n: usize) -> usize {
    let k = usize::try_from(offset.to_int()).unwrap_or(usize::MAX);
    match back {
        true => at.checked_sub(k).map_or(0, |at| at + end as usize),
        false => at.saturating_add(k).saturating_add(end as usize).min(n),
    }
}
