//! Window functions over rows that were made: columns are added to them.
//!
//! Only the numbers of the rows are sorted. For each window they are sorted by what parts them and by its order, keeping what the
//! windows behind it in the list have done, so that rows come out in the order of the first. A function's values are
//! computed by place in that order: ranks and rows further up or down from where partitions and peers begin; counts and sums
//! of integers from running totals, whatever the frame; least and greatest values by a list of those that may yet be it;
//! all other aggregates by the functions' own code, which takes rows in and out as the frame moves.
//!
//! What always holds: values are those of programs (`vdbe::window`). Neither end of a frame ever moves back within a partition.
//!
//! What it does not know: frames with EXCLUDE, or of a computed width.

use super::gather::gather;
use super::made::{Column, Made, column_of};
use super::sum::{SumKind, sum_kind};
use super::top::compare_by;
use crate::decline::because;
use crate::expr::Eval;
use crate::expr::batch::NONE;
use crate::expr::columns::{Columns, Kind};
use crate::memory::{filled, listed, room, within};
use crate::query::window::{Edge, FrameSpec, What, WindowCall, WindowSpec};
use crate::runtime::Runtime;
use crate::store::chunk::{Chunk, Data, Dict, Field};
use iolite_base::{Code, Result};
use iolite_ext::{Aggregate, AuxData, Context, FunctionFlags, Implementation};
use iolite_value::Value;
use iolite_value::compare::KeyField;
use iolite_value::order::in_order;
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// How often an interruption is looked for.
const CHECK_EVERY: usize = 1 << 16;

/// The rows with the windows' functions behind their columns, in the order of the first window. `used`: columns that somebody
/// reads.
pub(crate) fn extend(
    made: &Made,
    windows: &[WindowSpec],
    used: &[bool],
    rt: &dyn Runtime,
    eval: &Eval<'_>,
) -> Result<Made> {
    let (n, width) = (made.len(), made.columns().len());
    // Numbers, frames, and running totals.
    if n >= NONE as usize || !within(n.saturating_mul(40)) {
        return Err(because("no room for the rows of a window"));
    }
    let cols = made.as_table();
    let mut order: Rc<Vec<u32>> = Rc::new(listed(0..n as u32)?);
    let mut results: Vec<(Rc<Vec<u32>>, Vec<Column>)> = Vec::new();
    for (k, w) in windows.iter().enumerate().rev() {
        rt.check()?;
        if !w.keys.is_empty() && !windows.get(k + 1).is_some_and(|behind| w.sorts_like(behind)) {
            order = Rc::new(sorted(&cols, &w.keys, &order)?);
        }
        rt.check()?;
        results.push((order.clone(), Window::new(&cols, w, &order)?.columns(rt, eval)?));
    }
    let in_place = order.iter().enumerate().all(|(i, row)| i == *row as usize);
    let mut out = Vec::with_capacity(used.len());
    for (c, column) in made.columns().iter().enumerate() {
        let wanted = used.get(c) == Some(&true);
        out.push(if in_place || !wanted { column.clone() } else { gather(&cols, c, &order)? });
    }
    for (own, columns) in results.into_iter().rev() {
        if Rc::ptr_eq(&own, &order) {
            out.extend(columns);
            continue;
        }
        // From the places of its window to the numbers of the rows, and on to the places of the first.
        let mut place_of = filled(n, NONE)?;
        own.iter().enumerate().for_each(|(place, row)| place_of[*row as usize] = place as u32);
        let places = listed(order.iter().map(|row| place_of[*row as usize]))?;
        let table = Made::new(n, columns).as_table();
        for c in 0..table.kinds.len() {
            out.push(gather(&table, c, &places)?);
        }
    }
    debug_assert_eq!(out.len(), width + windows.iter().map(|w| w.calls.len()).sum::<usize>());
    Ok(Made::new(n, out))
}

fn chunk_of(cols: &Columns, c: usize) -> (&Chunk, &Dict) {
    (&cols.loaded.parts[0].cols[c], &cols.loaded.dicts[c])
}

/// The numbers of the rows in the order of some columns; those that sort alike stay as they are.
fn sorted(cols: &Columns, keys: &[(usize, KeyField)], order: &[u32]) -> Result<Vec<u32>> {
    let fields: Vec<KeyField> = keys.iter().map(|k| k.1.clone()).collect();
    let columns: Vec<(&Chunk, &Dict)> = keys.iter().map(|k| chunk_of(cols, k.0)).collect();
    let mut out = in_order(order.len(), &fields, &|place, k| {
        let (chunk, dict) = columns[k];
        chunk.field(order[place as usize] as usize, dict).as_ref()
    })?;
    for place in &mut out {
        *place = order[*place as usize];
    }
    Ok(out)
}

/// Marks the places whose rows differ in some column from those before.
fn mark(cols: &Columns, keys: &[(usize, KeyField)], order: &[u32], marks: &mut [bool]) -> Result<()> {
    fn each<T: PartialEq>(order: &[u32], marks: &mut [bool], of: impl Fn(usize) -> T) {
        let mut last = of(order[0] as usize);
        for (mark, row) in marks.iter_mut().zip(order) {
            let v = of(*row as usize);
            *mark |= v != last;
            last = v;
        }
    }
    if order.is_empty() {
        return Ok(());
    }
    for (c, f) in keys {
        let (chunk, dict) = chunk_of(cols, *c);
        match &chunk.data {
            _ if chunk.is_int() => each(order, marks, |row| chunk.int(row)),
            Data::Dict { codes } if f.coll.is_binary() && dict.is_plain() => {
                each(order, marks, |row| codes.get(row));
            }
            _ => {
                let field = |row: u32| chunk.field(row as usize, dict);
                for (mark, rows) in marks[1..].iter_mut().zip(order.windows(2)) {
                    *mark |= compare_by(field(rows[0]), field(rows[1]), f)?.is_ne();
                }
            }
        }
    }
    Ok(())
}

/// The ranges between marks.
fn ranges(marks: &[bool]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from;
        if start == marks.len() {
            return None;
        }
        let more = marks[start + 1..].iter().position(|m| *m);
        from = more.map_or(marks.len(), |k| start + 1 + k);
        Some(start..from)
    })
}

/// A window at work.
struct Window<'a> {
    cols: &'a Columns,
    spec: &'a WindowSpec,
    /// The numbers of the rows, by place.
    order: &'a [u32],
    /// Where partitions begin, and where groups of peers do.
    parts: Vec<bool>,
    peers: Vec<bool>,
    /// The frame of each place, if a function asks for it.
    frames: Vec<(u32, u32)>,
}

/// The values of a function, by place.
enum Out {
    /// Integers and which of them are NULL.
    Ints(Vec<i64>, Vec<u32>),
    Reals(Vec<f64>, Vec<u32>),
    /// Those of a column in other rows.
    Rows(usize, Vec<u32>),
    Values(Vec<Value>),
}

impl<'a> Window<'a> {
    fn new(cols: &'a Columns, spec: &'a WindowSpec, order: &'a [u32]) -> Result<Window<'a>> {
        let mut parts = filled(order.len(), false)?;
        mark(cols, &spec.keys[..spec.parts], order, &mut parts)?;
        let mut peers = listed(parts.iter().copied())?;
        mark(cols, &spec.keys[spec.parts..], order, &mut peers)?;
        let mut w = Window { cols, spec, order, parts, peers, frames: Vec::new() };
        if spec.calls.iter().any(|c| matches!(c.what, What::First | What::Last | What::Aggregate)) {
            w.frames = w.framed(spec.frame)?;
        }
        Ok(w)
    }

    /// The frame of each place.
    fn framed(&self, f: FrameSpec) -> Result<Vec<(u32, u32)>> {
        let mut out = room(self.order.len())?;
        for part in ranges(&self.parts) {
            let (s, e) = (part.start, part.end);
            for own in ranges(&self.peers[part]) {
                let peers = s + own.start..s + own.end;
                for at in peers.clone() {
                    let (first, behind) = if f.by_rows { (at, at + 1) } else { (peers.start, peers.end) };
                    let lo = match f.start {
                        Edge::First => s,
                        Edge::Preceding(k) => at.saturating_sub(k).max(s),
                        Edge::Current => first,
                        Edge::Following(k) => at.saturating_add(k).min(e),
                        Edge::Last => e,
                    };
                    let hi = match f.end {
                        Edge::First => s,
                        Edge::Preceding(k) if at - s < k => s,
                        Edge::Preceding(k) => at - k + 1,
                        Edge::Current => behind,
                        Edge::Following(k) => at.saturating_add(k).saturating_add(1).min(e),
                        Edge::Last => e,
                    };
                    out.push((lo as u32, hi.max(lo) as u32));
                }
            }
        }
        Ok(out)
    }

    /// The functions' columns, by place.
    fn columns(&self, rt: &dyn Runtime, eval: &Eval<'_>) -> Result<Vec<Column>> {
        let mut out = Vec::new();
        for call in &self.spec.calls {
            rt.check()?;
            let plain = |chunk: Chunk| (Arc::new(chunk), Arc::new(Dict::default()));
            out.push(match self.call(call, rt, eval)? {
                Out::Ints(mut values, nulls) => plain(Chunk::of_ints(&mut values, &nulls)?),
                Out::Reals(values, nulls) => plain(Chunk::of_reals(values, &nulls)?),
                Out::Rows(c, rows) => gather(self.cols, c, &rows)?,
                Out::Values(values) => column_of(values.iter().map(Field::of))?,
            });
        }
        Ok(out)
    }

    fn call(&self, call: &WindowCall, rt: &dyn Runtime, eval: &Eval<'_>) -> Result<Out> {
        let n = self.order.len();
        let row = |at: u32| self.order[at as usize];
        Ok(match call.what {
            What::RowNumber => {
                let mut v = room(n)?;
                ranges(&self.parts).for_each(|p| v.extend(1..=p.len() as i64));
                Out::Ints(v, Vec::new())
            }
            What::Rank | What::DenseRank => {
                let mut v: Vec<i64> = room(n)?;
                for p in ranges(&self.parts) {
                    for (k, own) in ranges(&self.peers[p]).enumerate() {
                        let rank = if call.what == What::Rank { own.start } else { k } as i64 + 1;
                        v.extend(own.map(|_| rank));
                    }
                }
                Out::Ints(v, Vec::new())
            }
            What::PercentRank | What::CumeDist => {
                let mut v: Vec<f64> = room(n)?;
                for p in ranges(&self.parts) {
                    let n = p.len();
                    for own in ranges(&self.peers[p]) {
                        let share = match call.what {
                            What::CumeDist => own.end as f64 / n as f64,
                            _ if n < 2 => 0.0,
                            _ => own.start as f64 / (n - 1) as f64,
                        };
                        v.extend(own.map(|_| share));
                    }
                }
                Out::Reals(v, Vec::new())
            }
            What::Shifted(by) => {
                let mut rows: Vec<u32> = room(n)?;
                for p in ranges(&self.parts) {
                    let there = |at: usize| usize::try_from(at as i64 - by).ok().filter(|k| p.contains(k));
                    rows.extend(p.clone().map(|at| there(at).map_or(NONE, |k| row(k as u32))));
                }
                Out::Rows(call.args[0], rows)
            }
            What::First | What::Last => {
                let place = |lo: u32, hi: u32| if call.what == What::First { lo } else { hi - 1 };
                let one = |&(lo, hi): &(u32, u32)| if lo < hi { row(place(lo, hi)) } else { NONE };
                Out::Rows(call.args[0], listed(self.frames.iter().map(one))?)
            }
            What::Aggregate => self.aggregate(call, rt, eval)?,
        })
    }

    fn aggregate(&self, call: &WindowCall, rt: &dyn Runtime, eval: &Eval<'_>) -> Result<Out> {
        let flags = call.function.flags;
        let name = call.function.name.to_ascii_lowercase();
        let counts = flags.has(FunctionFlags::COUNT) || name == "count";
        let max = flags.has(FunctionFlags::MAX);
        match (&call.args[..], call.filter) {
            ([], None) if counts => {
                let v = listed(self.frames.iter().map(|(lo, hi)| (hi - lo) as i64))?;
                return Ok(Out::Ints(v, Vec::new()));
            }
            ([c], None) if counts => {
                let (chunk, dict) = chunk_of(self.cols, *c);
                let null = |row: u32| matches!(chunk.field(row as usize, dict), Field::Null);
                let n = self.totals(|row| !null(row) as i64)?;
                return Ok(Out::Ints(listed(self.between(&n))?, Vec::new()));
            }
            ([c], None) if self.cols.kinds[*c] == Kind::Int => {
                if let Some(kind) = sum_kind(&name)
                    && let Some(sums) = self.sums(*c, kind)?
                {
                    return Ok(sums);
                }
            }
            _ => {}
        }
        if (flags.has(FunctionFlags::MIN) || max) && call.filter.is_none() && call.args.len() == 1 {
            let (chunk, dict) = chunk_of(self.cols, call.args[0]);
            let same = chunk.is_int() || matches!(chunk.data, Data::Dict { .. }) && dict.is_plain();
            // Of values that are equal and not the same the first one counts where the frame only grows.
            if same && call.collation.is_binary() || self.spec.frame.start != Edge::First {
                return Ok(Out::Rows(call.args[0], self.extremes(call, max, rt)?));
            }
        }
        self.by_function(call, rt, eval).map(Out::Values)
    }

    /// The totals of a number over the places before each one, and over all.
    fn totals(&self, of: impl Fn(u32) -> i64) -> Result<Vec<i64>> {
        let mut out = room(self.order.len() + 1)?;
        let mut sum = 0i64;
        out.push(0);
        for row in self.order {
            sum += of(*row);
            out.push(sum);
        }
        Ok(out)
    }

    /// What is between the ends of each frame.
    fn between<'t>(&'t self, totals: &'t [i64]) -> impl ExactSizeIterator<Item = i64> + 't {
        self.frames.iter().map(|(lo, hi)| totals[*hi as usize] - totals[*lo as usize])
    }

    /// Sums of integers; `None`: they may overflow.
    fn sums(&self, c: usize, kind: SumKind) -> Result<Option<Out>> {
        let (lo, hi) = self.cols.bounds[c];
        let most = (lo as i128).abs().max((hi as i128).abs());
        if lo <= hi && most * (self.order.len() as i128) >= 1 << 62 {
            return Ok(None);
        }
        let (chunk, _) = chunk_of(self.cols, c);
        let sums = self.totals(|row| chunk.int(row as usize).unwrap_or(0))?;
        let counts = match chunk.may_be_null() {
            true => Some(self.totals(|row| chunk.int(row as usize).is_some() as i64)?),
            false => None,
        };
        let mut nulls: Vec<u32> = Vec::new();
        let n = |at: usize| {
            let (lo, hi) = self.frames[at];
            match &counts {
                Some(c) => c[hi as usize] - c[lo as usize],
                None => (hi - lo) as i64,
            }
        };
        if kind != SumKind::Total {
            nulls.extend((0..self.order.len()).filter(|at| n(*at) == 0).map(|at| at as u32));
        }
        let sums = self.between(&sums);
        Ok(Some(match kind {
            SumKind::Sum => Out::Ints(listed(sums)?, nulls),
            SumKind::Total => Out::Reals(listed(sums.map(|v| v as f64))?, nulls),
            SumKind::Avg => {
                let share = |(at, v): (usize, i64)| v as f64 / n(at).max(1) as f64;
                Out::Reals(listed(sums.enumerate().map(share))?, nulls)
            }
        }))
    }

    /// The rows of the least or the greatest values. Of equal ones the last one counts.
    fn extremes(&self, call: &WindowCall, max: bool, rt: &dyn Runtime) -> Result<Vec<u32>> {
        let (chunk, dict) = chunk_of(self.cols, call.args[0]);
        let by = KeyField::ascending(call.collation.clone());
        let value = |at: u32| chunk.field(self.order[at as usize] as usize, dict);
        let mut out = room(self.order.len())?;
        let mut candidates: VecDeque<u32> = VecDeque::new();
        let mut seen = 0;
        for (at, (lo, hi)) in self.frames.iter().enumerate() {
            if at % CHECK_EVERY == 0 {
                rt.check()?;
            }
            if self.parts[at] {
                candidates.clear();
            }
            for new in seen.max(*lo)..*hi {
                let v = value(new);
                if matches!(v, Field::Null) {
                    continue;
                }
                while let Some(back) = candidates.back() {
                    let o = compare_by(value(*back), v, &by)?;
                    if if max { o.is_gt() } else { o.is_lt() } {
                        break;
                    }
                    candidates.pop_back();
                }
                candidates.push_back(new);
            }
            seen = seen.max(*hi);
            while candidates.front().is_some_and(|r| r < lo) {
                candidates.pop_front();
            }
            out.push(candidates.front().map_or(NONE, |at| self.order[*at as usize]));
        }
        Ok(out)
    }

    /// By the function's own code.
    fn by_function(&self, call: &WindowCall, rt: &dyn Runtime, eval: &Eval<'_>) -> Result<Vec<Value>> {
        let Implementation::Aggregate(make) = &call.function.imp else { return Err(Code::Internal.into()) };
        let (mut aux, mut value_aux) = (AuxData::default(), AuxData::default());
        let args: Vec<(&Chunk, &Dict)> = call.args.iter().map(|c| chunk_of(self.cols, *c)).collect();
        let filter = call.filter.map(|c| chunk_of(self.cols, c));
        let mut given = vec![Value::Null; args.len()];
        let mut take = |state: &mut dyn Aggregate, at: usize, into: bool| -> Result<()> {
            let row = self.order[at] as usize;
            if let Some((chunk, dict)) = filter
                && chunk.field(row, dict).value()?.truth() != Some(true)
            {
                return Ok(());
            }
            for (to, (chunk, dict)) in given.iter_mut().zip(&args) {
                chunk.field(row, dict).put(to)?;
            }
            if into && state.quick_step(&given) {
                return Ok(());
            }
            let (host, collation) = (eval.host(), &call.collation);
            let mut ctx = Context { host, collation, aux: &mut aux, pure: None, cursor: None };
            if into { state.step(&mut ctx, &given) } else { state.inverse(&mut ctx, &given) }
        };
        let mut out: Vec<Value> = room(self.order.len())?;
        let mut state = make();
        let mut held = 0..0;
        for at in 0..self.order.len() {
            if at % CHECK_EVERY == 0 {
                rt.check()?;
            }
            let (lo, hi) = (self.frames[at].0 as usize, self.frames[at].1 as usize);
            if at == 0 || self.parts[at] {
                state = make();
                held = at..at;
            } else if self.frames[at] == self.frames[at - 1] {
                out.push(out[at - 1].clone());
                continue;
            }
            (held.start..lo.min(held.end)).try_for_each(|k| take(&mut *state, k, false))?;
            // Rows before a first frame that begins late go through the state.
            let mut oldest = held.end;
            for k in held.end..hi {
                take(&mut *state, k, true)?;
                if oldest < lo && k + 1 < hi && k + 1 - oldest >= hi - lo {
                    take(&mut *state, oldest, false)?;
                    oldest += 1;
                }
            }
            (oldest..lo).try_for_each(|k| take(&mut *state, k, false))?;
            held = lo..hi.max(held.end.max(lo));
            let (host, collation) = (eval.host(), &call.collation);
            let mut ctx = Context { host, collation, aux: &mut value_aux, pure: None, cursor: None };
            out.push(state.value(&mut ctx)?);
        }
        Ok(out)
    }
}
