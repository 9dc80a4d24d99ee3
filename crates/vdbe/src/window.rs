//! Window functions over a list of rows (documentation page `windowfunctions`).
//!
//! For each window the rows are sorted by partition and order, keeping what the windows behind it in the list have done,
//! so that rows come out in the order of the first. Frames are half-open ranges of a partition's rows, `EXCLUDE` apart;
//! both ends only ever move forward from row to row, so an aggregate takes in and takes out each row once, unless rows are
//! excluded or it cannot take out (`min`, `max`): then it is computed anew where the frame has lost rows.
//!
//! All rows are in memory.

use crate::env::Env;
use crate::ops::aggregate::{arguments, make, with_context};
use iolite_base::{Code, Error, Result, alloc};
use iolite_bytecode::{FrameEdge, FrameExclude, FrameUnit, FunctionCall, WindowPass};
use iolite_ext::{Aggregate, AuxData, FunctionFlags, Implementation, Inline};
use iolite_value::arith::{Arith, arith};
use iolite_value::compare::KeyField;
use iolite_value::order::{ValueRef, in_order};
use iolite_value::{Affinity, Value, compare};
use std::cmp::Ordering;
use std::ops::Range;
use std::rc::Rc;

/// The rows, with the values of functions behind what was added.
#[derive(Default)]
pub(crate) struct Rows {
    rows: Vec<Vec<Value>>,
    at: usize,
}

/// How often an interruption is looked for.
const CHECK_EVERY: usize = 256;

impl Rows {
    /// Adds a row.
    pub fn add(&mut self, row: Vec<Value>) -> Result<()> {
        alloc::reserve(&mut self.rows, 1)?;
        self.rows.push(row);
        Ok(())
    }

    /// The next row, which leaves the list.
    pub fn next(&mut self) -> Option<Vec<Value>> {
        let row = self.rows.get_mut(self.at)?;
        self.at += 1;
        Some(std::mem::take(row))
    }

    /// Computes all functions. `offsets` are those of the frames.
    pub fn run(&mut self, passes: &[WindowPass], offsets: &[(Value, Value)], env: &dyn Env) -> Result<()> {
        let width = self.rows.first().map_or(0, Vec::len);
        let calls: usize = passes.iter().map(|p| p.calls.len()).sum();
        for r in &mut self.rows {
            r.resize(width + calls, Value::Null);
        }
        // The last window's values stand last.
        let mut out = width + calls;
        for (p, offsets) in passes.iter().zip(offsets).rev() {
            out -= p.calls.len();
            self.sort(p)?;
            let mut start = 0;
            while start < self.rows.len() {
                let first = &self.rows[start];
                let len = self.rows[start..].iter().take_while(|r| same_partition(p, first, r)).count();
                let part = Partition::new(p, &self.rows[start..start + len], offsets)?;
                let mut values = Vec::with_capacity(p.calls.len());
                for c in &p.calls {
                    values.push(part.function(c, env)?);
                }
                for (k, list) in values.into_iter().enumerate() {
                    for (r, v) in self.rows[start..start + len].iter_mut().zip(list) {
                        r[out + k] = v;
                    }
                }
                start += len;
            }
        }
        Ok(())
    }

    fn sort(&mut self, p: &WindowPass) -> Result<()> {
        if p.partition.is_empty() && p.order.is_empty() {
            return Ok(());
        }
        let slots: Vec<usize> =
            p.partition.iter().map(|(k, _)| *k).chain(p.order.iter().map(|(k, _)| *k)).collect();
        let ascending = p.partition.iter().map(|(_, c)| KeyField::ascending(c.clone()));
        let fields: Vec<KeyField> = ascending.chain(p.order.iter().map(|(_, f)| f.clone())).collect();
        let cell = |row: u32, k: usize| ValueRef::from(&self.rows[row as usize][slots[k]]);
        let order = in_order(self.rows.len(), &fields, &cell)?;
        let mut sorted = Vec::new();
        alloc::reserve(&mut sorted, order.len())?;
        sorted.extend(order.into_iter().map(|row| std::mem::take(&mut self.rows[row as usize])));
        self.rows = sorted;
        Ok(())
    }
}

fn same_partition(p: &WindowPass, a: &[Value], b: &[Value]) -> bool {
    p.partition.iter().all(|(k, c)| compare::compare(&a[*k], &b[*k], c).is_eq())
}

/// How two rows stand in a window's order.
fn order(p: &WindowPass, a: &[Value], b: &[Value]) -> Ordering {
    for (k, f) in &p.order {
        let o = compare::compare(&a[*k], &b[*k], &f.coll);
        if o.is_ne() {
            return f.direct(o, a[*k].is_null() || b[*k].is_null());
        }
    }
    Ordering::Equal
}

/// The rows of one partition, in order.
struct Partition<'a> {
    pass: &'a WindowPass,
    rows: &'a [Vec<Value>],
    /// Where each group of peers starts; the number of rows at the end.
    groups: Vec<usize>,
    /// The group of each row.
    group_of: Vec<usize>,
    /// The frame of each row, excluded rows not taken out.
    frames: Vec<Range<usize>>,
}

impl<'a> Partition<'a> {
    fn new(pass: &'a WindowPass, rows: &'a [Vec<Value>], offsets: &(Value, Value)) -> Result<Partition<'a>> {
        let mut groups = Vec::new();
        let mut group_of = Vec::with_capacity(rows.len());
        for (i, r) in rows.iter().enumerate() {
            if i == 0 || order(pass, &rows[i - 1], r).is_ne() {
                groups.push(i);
            }
            group_of.push(groups.len() - 1);
        }
        groups.push(rows.len());
        let mut p = Partition { pass, rows, groups, group_of, frames: Vec::new() };
        p.frames = p.find_frames(offsets)?;
        Ok(p)
    }

    fn find_frames(&self, offsets: &(Value, Value)) -> Result<Vec<Range<usize>>> {
        let start = self.offset(self.pass.start, &offsets.0, "starting")?;
        let end = self.offset(self.pass.end, &offsets.1, "ending")?;
        let n = self.rows.len();
        let mut out: Vec<Range<usize>> = Vec::with_capacity(n);
        let (mut lo, mut hi) = (0, 0);
        for i in 0..n {
            // Neither end moves back, so each search goes on where the last one ended.
            lo = self.edge(self.pass.start, &start, i, false, lo);
            hi = self.edge(self.pass.end, &end, i, true, hi);
            out.push(lo..hi.max(lo));
        }
        Ok(out)
    }

    /// A frame's offset, checked.
    fn offset(&self, e: FrameEdge, v: &Value, which: &str) -> Result<Value> {
        if !matches!(e, FrameEdge::Preceding(_) | FrameEdge::Following(_)) {
            return Ok(Value::Null);
        }
        let mut v = v.clone();
        Affinity::Numeric.apply(&mut v)?;
        let range = self.pass.unit == FrameUnit::Range;
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

    /// Where the frame of row `i` starts, or (`end`) ends; no earlier than `from`.
    fn edge(&self, e: FrameEdge, offset: &Value, i: usize, end: bool, from: usize) -> usize {
        let n = self.rows.len();
        let step = |back: bool| {
            let k = usize::try_from(offset.to_int()).unwrap_or(usize::MAX);
            match self.pass.unit {
                FrameUnit::Rows if back => match (i.checked_sub(k), end) {
                    (Some(at), true) => at + 1,
                    (Some(at), false) => at,
                    (None, _) => 0,
                },
                FrameUnit::Rows => i.saturating_add(k).saturating_add(end as usize).min(n),
                _ => {
                    let last = self.groups.len() - 1;
                    let g = self.group_of[i];
                    match back {
                        true => match (g.checked_sub(k), end) {
                            (Some(g), true) => self.groups[g + 1],
                            (Some(g), false) => self.groups[g],
                            (None, _) => 0,
                        },
                        false => self.groups[g.saturating_add(k).saturating_add(end as usize).min(last)],
                    }
                }
            }
        };
        match e {
            FrameEdge::UnboundedPreceding => 0,
            FrameEdge::UnboundedFollowing => n,
            FrameEdge::CurrentRow if self.pass.unit == FrameUnit::Rows => i + end as usize,
            FrameEdge::CurrentRow => self.groups[self.group_of[i] + end as usize],
            FrameEdge::Preceding(_) | FrameEdge::Following(_) => {
                let back = matches!(e, FrameEdge::Preceding(_));
                if self.pass.unit == FrameUnit::Range {
                    self.range_edge(offset, i, back, end, from)
                } else {
                    step(back)
                }
            }
        }
    }

    /// As [`Partition::edge`], for RANGE with an offset: by the value of the only ORDER BY term.
    fn range_edge(&self, offset: &Value, i: usize, back: bool, end: bool, from: usize) -> usize {
        let (k, field) = &self.pass.order[0];
        let own = &self.rows[i][*k];
        let limit = match own {
            Value::Int(_) | Value::Real(_) => {
                let op = if back != field.desc { Arith::Sub } else { Arith::Add };
                arith(op, own, offset)
            }
            // Nothing can be added to these: their frame is their peers.
            other => other.clone(),
        };
        let before = |v: &Value| {
            let o = compare::compare(v, &limit, &field.coll);
            let o = field.direct(o, v.is_null() || limit.is_null());
            o.is_lt() || end && o.is_eq()
        };
        let start = from.min(self.rows.len());
        start + self.rows[start..].iter().take_while(|r| before(&r[*k])).count()
    }

    /// A function's value for each row.
    fn function(
        &self,
        c: &(Rc<FunctionCall>, Vec<usize>, Option<usize>),
        env: &dyn Env,
    ) -> Result<Vec<Value>> {
        let (call, args, filter) = c;
        match &call.function.imp {
            Implementation::Aggregate(_) => self.aggregate(call, args, *filter, env),
            Implementation::Inline(what) => self.own_function(*what, args),
            _ => Err(Code::Internal.into()),
        }
    }

    fn arg(&self, row: usize, args: &[usize], k: usize) -> Value {
        args.get(k).map_or(Value::Null, |slot| self.rows[row][*slot].clone())
    }

    fn own_function(&self, what: Inline, args: &[usize]) -> Result<Vec<Value>> {
        let n = self.rows.len();
        let mut out = Vec::with_capacity(n);
        for i in 0..n {
            let g = self.group_of[i];
            let (first, behind) = (self.groups[g], self.groups[g + 1]);
            out.push(match what {
                Inline::RowNumber => Value::Int(i as i64 + 1),
                Inline::Rank => Value::Int(first as i64 + 1),
                Inline::DenseRank => Value::Int(g as i64 + 1),
                Inline::PercentRank if n < 2 => Value::Real(0.0),
                Inline::PercentRank => Value::Real(first as f64 / (n - 1) as f64),
                Inline::CumeDist => Value::Real(behind as f64 / n as f64),
                Inline::Ntile => self.ntile(i, &self.arg(0, args, 0))?,
                Inline::Lag | Inline::Lead => self.shifted(i, what == Inline::Lag, args),
                Inline::FirstValue => self.nth(i, args, 0, false),
                Inline::LastValue => self.nth(i, args, 0, true),
                Inline::NthValue => {
                    let mut k = self.arg(i, args, 1);
                    Affinity::Numeric.apply(&mut k)?;
                    match k {
                        Value::Int(k) if k > 0 => {
                            self.nth(i, args, usize::try_from(k - 1).unwrap_or(usize::MAX), false)
                        }
                        Value::Real(r) if r >= 1.0 && r == r.trunc() => {
                            self.nth(i, args, r as usize - 1, false)
                        }
                        _ => {
                            let text = "second argument to nth_value must be a positive integer";
                            return Err(Error::sql(text));
                        }
                    }
                }
                _ => return Err(Code::Internal.into()),
            });
        }
        Ok(out)
    }

    fn ntile(&self, i: usize, tiles: &Value) -> Result<Value> {
        let tiles = tiles.to_int();
        if tiles <= 0 {
            return Err(Error::sql("argument of ntile must be a positive integer"));
        }
        let (n, i) = (self.rows.len() as i64, i as i64);
        // The first `large` tiles have a row more than the others.
        let (size, large) = (n / tiles, n % tiles);
        let in_large = large * (size + 1);
        Ok(Value::Int(if i < in_large {
            1 + i / (size + 1)
        } else {
            1 + large + (i - in_large) / size.max(1)
        }))
    }

    /// `lag` and `lead`: a value from a row further up or down, wherever the frame is.
    fn shifted(&self, i: usize, up: bool, args: &[usize]) -> Value {
        let by = match args.len() {
            1 => Value::Int(1),
            _ => self.arg(i, args, 1),
        };
        let at = arith(if up { Arith::Sub } else { Arith::Add }, &Value::Int(i as i64), &by);
        let at = match at {
            Value::Int(k) => usize::try_from(k).ok(),
            Value::Real(r) if r >= 0.0 && r == r.trunc() => Some(r as usize),
            _ => None,
        };
        match at.filter(|k| *k < self.rows.len()) {
            Some(k) => self.arg(k, args, 0),
            None => self.arg(i, args, 2),
        }
    }

    /// Value number `k` of the frame, or its last.
    fn nth(&self, i: usize, args: &[usize], k: usize, last: bool) -> Value {
        let mut rows = self.frame(i);
        let row = if last { rows.last() } else { rows.nth(k) };
        row.map_or(Value::Null, |r| self.arg(r, args, 0))
    }

    /// The rows in the frame of row `i`.
    fn frame(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        self.frames[i].clone().filter(move |r| !self.is_excluded(i, *r))
    }

    fn is_excluded(&self, i: usize, r: usize) -> bool {
        let peers = self.group_of[r] == self.group_of[i];
        match self.pass.exclude {
            FrameExclude::NoOthers => false,
            FrameExclude::CurrentRow => r == i,
            FrameExclude::Group => peers,
            FrameExclude::Ties => peers && r != i,
        }
    }

    fn aggregate(
        &self,
        call: &FunctionCall,
        args: &[usize],
        filter: Option<usize>,
        env: &dyn Env,
    ) -> Result<Vec<Value>> {
        let excludes = self.pass.exclude != FrameExclude::NoOthers;
        let flags = call.function.flags;
        let takes_out = !flags.has(FunctionFlags::MIN) && !flags.has(FunctionFlags::MAX);
        let passes = |r: usize| filter.is_none_or(|k| self.rows[r][k].truth() == Some(true));
        let enc = env.encoding();
        let mut aux = AuxData::default();
        let mut values: Vec<Value> = Vec::with_capacity(args.len());
        let mut take = |state: &mut dyn Aggregate, r: usize, into: bool| -> Result<()> {
            values.clear();
            values.extend(args.iter().map(|k| self.rows[r][*k].clone()));
            let values = arguments(call, &values, enc)?;
            with_context(call, env, &mut aux, |c| {
                if into { state.step(c, &values) } else { state.inverse(c, &values) }
            })
        };
        let mut out: Vec<Value> = Vec::with_capacity(self.rows.len());
        let mut state = make(call)?;
        let mut held: Range<usize> = 0..0;
        let mut value_aux = AuxData::default();
        for (i, frame) in self.frames.iter().enumerate() {
            if i % CHECK_EVERY == 0 {
                env.check_interrupt()?;
            }
            if i > 0 && *frame == self.frames[i - 1] && !excludes {
                out.push(out[i - 1].clone());
                continue;
            }
            let lost = frame.start > held.start && held.start < held.end;
            if excludes || lost && !takes_out {
                state = make(call)?;
                for r in self.frame(i).filter(|r| passes(*r)) {
                    take(&mut *state, r, true)?;
                }
            } else {
                for r in held.start..frame.start.min(held.end) {
                    if passes(r) {
                        take(&mut *state, r, false)?;
                    }
                }
                for r in held.end.max(frame.start)..frame.end {
                    if passes(r) {
                        take(&mut *state, r, true)?;
                    }
                }
            }
            held = frame.start..frame.end.max(held.end.max(frame.start));
            out.push(with_context(call, env, &mut value_aux, |c| state.value(c))?);
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_out_as_they_went_in_without_windows() {
        let mut rows = Rows::default();
        rows.add(vec![Value::Int(2)]).unwrap();
        rows.add(vec![Value::Int(1)]).unwrap();
        assert!(matches!(rows.next().as_deref(), Some([Value::Int(2)])));
        assert!(matches!(rows.next().as_deref(), Some([Value::Int(1)])));
        assert!(rows.next().is_none());
    }
}
