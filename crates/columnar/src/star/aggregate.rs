//! Aggregates: what is kept of each group, and how a batch of rows is added.

use crate::expr::batch::NONE;
use crate::expr::batch::{Batch, BatchRow, Ints, Reals, int_bounds, is_real};
use crate::expr::columns::Kind;
use crate::expr::scope::{OneField, few_values};
use crate::expr::{Ex, Mapped};
use crate::kernel::Bits;
use crate::kernel::of_three;
use crate::memory::work_size;
use crate::op::spill::{Met, Once, push_image, push_value, take_u32, take_value};
use crate::op::sum::{RealSum, SumKind, add_runs, sum_kind};
use crate::query::AggSpec;
use crate::star::group::{Groups, State};
use crate::star::scope::JoinScope;
use crate::store::chunk::{Codes, Data, Field};
use iolite_base::hash::FastMap;
use iolite_base::{Code, Result};
use iolite_ext::{Aggregate, AuxData, Context, FunctionFlags, Implementation};
use iolite_value::{Collation, Value};
use std::rc::Rc;

/// How an aggregate is computed.
pub(crate) enum Acc {
    /// `count(*)`, and `count(x)` where x is never NULL.
    Rows,
    /// `count(x)`.
    Count { ex: Ex, n: Vec<i64> },
    /// `count(DISTINCT x)` where x has few values and there are few groups: a bit for each group and value.
    Distinct { what: Few, span: usize, bits: Bits, n: Vec<i64> },
    /// `sum`, `total`, `avg` of integers.
    Sum { ex: Ex, sum: Vec<i64>, n: Option<Vec<i64>>, kind: SumKind },
    /// `sum`, `total`, `avg` of reals, in the order of the rows.
    Reals { ex: Ex, sums: Vec<RealSum>, kind: SumKind },
    /// `min`, `max` of reals.
    BestReal { ex: Ex, best: Vec<f64>, seen: Vec<bool>, max: bool },
    /// `min`, `max` of integers.
    Best { ex: Ex, best: Vec<i64>, seen: Vec<bool>, max: bool },
    /// By the function's own code; with DISTINCT, which values each group has had.
    Any { states: Vec<Option<Box<dyn Aggregate>>>, once: Once },
}

/// Values as small numbers.
pub(crate) enum Few {
    /// Integers less the least.
    Ints { ex: Ex, least: i64 },
    /// A number for each entry of a column's dictionary; [`NONE`] is NULL.
    Entries { table: usize, col: usize, numbers: Vec<u32> },
}

/// Whether an aggregate comes to the same in whatever order its rows come.
pub(crate) fn order_free(spec: &AggSpec, (args, filter): &(Vec<Ex>, Option<Ex>), s: &JoinScope<'_>) -> bool {
    let name = spec.function.name.to_ascii_lowercase();
    let int = |e: &Ex| int_bounds(e, s.cols, s.places, &|t| s.left[t]).is_some() || mapped(e, s).is_some();
    match &*name {
        "count" => true,
        _ if spec.distinct.is_some() || filter.is_some() => false,
        "sum" | "total" | "avg" | "min" | "max" => args.len() == 1 && args.iter().all(int),
        _ => false,
    }
}

/// So many zeros.
pub(crate) fn zeros(n: usize) -> Vec<i64> {
    vec![0; n]
}

impl Acc {
    /// About what a group takes.
    pub fn width(&self) -> usize {
        match self {
            Acc::Rows => 0,
            Acc::Count { .. } | Acc::Distinct { .. } => 8,
            Acc::Sum { .. } => 16,
            Acc::Reals { .. } => size_of::<RealSum>(),
            Acc::BestReal { .. } | Acc::Best { .. } => 9,
            // A function's own state lies elsewhere.
            Acc::Any { .. } => 96,
        }
    }

    /// Room for so many groups.
    pub fn grow(&mut self, groups: usize) {
        match self {
            Acc::Rows => {}
            Acc::Count { n, .. } | Acc::Distinct { n, .. } => n.resize(groups, 0),
            Acc::Sum { sum, n, .. } => {
                sum.resize(groups, 0);
                if let Some(n) = n {
                    n.resize(groups, 0);
                }
            }
            Acc::Reals { sums, .. } => sums.resize(groups, RealSum::default()),
            Acc::BestReal { best, seen, .. } => {
                best.resize(groups, 0.0);
                seen.resize(groups, false);
            }
            Acc::Best { best, seen, .. } => {
                best.resize(groups, 0);
                seen.resize(groups, false);
            }
            Acc::Any { states, .. } => states.resize_with(groups, || None),
        }
    }
}

impl Acc {
    /// Whether rows may come in any order, and nothing is evaluated row by row.
    pub fn is_pure(&self) -> bool {
        matches!(self, Acc::Rows | Acc::Count { .. } | Acc::Sum { .. } | Acc::Best { .. })
    }

    /// The same without any group; only where [`Acc::is_pure`].
    pub fn another(&self) -> Option<Acc> {
        Some(match self {
            Acc::Rows => Acc::Rows,
            Acc::Count { ex, .. } => Acc::Count { ex: ex.clone(), n: Vec::new() },
            Acc::Sum { ex, n, kind, .. } => {
                Acc::Sum { ex: ex.clone(), sum: Vec::new(), n: n.as_ref().map(|_| Vec::new()), kind: *kind }
            }
            Acc::Best { ex, max, .. } => {
                Acc::Best { ex: ex.clone(), best: Vec::new(), seen: Vec::new(), max: *max }
            }
            _ => return None,
        })
    }

    /// Adds what another one holds: its group `i` is group `to[i]` here.
    pub fn merge(&mut self, other: &Acc, to: &[u32]) {
        let add = |own: &mut Vec<i64>, o: &Vec<i64>| {
            to.iter().zip(o).for_each(|(t, v)| own[*t as usize] += v);
        };
        match (self, other) {
            (Acc::Count { n, .. }, Acc::Count { n: o, .. }) => add(n, o),
            (Acc::Sum { sum, n, .. }, Acc::Sum { sum: os, n: on, .. }) => {
                add(sum, os);
                if let (Some(n), Some(o)) = (n, on) {
                    add(n, o);
                }
            }
            (Acc::Best { best, seen, max, .. }, Acc::Best { best: ob, seen: os, .. }) => {
                for ((t, v), s) in to.iter().zip(ob).zip(os) {
                    let g = *t as usize;
                    if *s && (!seen[g] || (*max && *v > best[g]) || (!*max && *v < best[g])) {
                        best[g] = *v;
                        seen[g] = true;
                    }
                }
            }
            _ => {}
        }
    }
}

impl Groups<'_> {
    /// How an aggregate is best computed; `None`: not here.
    pub fn accumulator(&self, a: &AggSpec, i: usize, s: &JoinScope<'_>, n: usize) -> Option<Acc> {
        let name = a.function.name.to_ascii_lowercase();
        let (args, filter) = &self.aggs[i];
        let mapped = if args.len() == 1 { mapped(&args[0], s).map(|m| [m]) } else { None };
        let args = mapped.as_ref().map_or(&args[..], |m| &m[..]);
        let plain = a.distinct.is_none() && filter.is_none();
        let nulls_of = |t: usize| s.left[t];
        if plain && a.function.flags.has(FunctionFlags::COUNT) && args.is_empty() {
            return Some(Acc::Rows);
        }
        if plain && args.len() == 1 {
            let bounds = int_bounds(&args[0], s.cols, s.places, &nulls_of);
            let ex = || args[0].clone();
            match (&*name, bounds) {
                ("count", Some((_, _, false))) => return Some(Acc::Rows),
                ("count", Some(_)) => return Some(Acc::Count { ex: ex(), n: zeros(n) }),
                ("sum" | "total" | "avg", Some((lo, hi, null))) => {
                    let most = (lo as i128).abs().max((hi as i128).abs());
                    if s.most_rows.is_some_and(|rows| most * (rows as i128) < 1 << 62) {
                        let kind = sum_kind(&name)?;
                        return Some(Acc::Sum { ex: ex(), sum: zeros(n), n: null.then(|| zeros(n)), kind });
                    }
                }
                ("min" | "max", Some(_)) => {
                    let max = name == "max";
                    return Some(Acc::Best { ex: ex(), best: zeros(n), seen: vec![false; n], max });
                }
                _ => {}
            }
        }
        if plain
            && s.in_order
            && let (Some(kind), [ex]) = (sum_kind(&name), args)
            && is_real(ex, s)
        {
            return Some(Acc::Reals { ex: ex.clone(), sums: vec![RealSum::default(); n], kind });
        }
        if plain
            && s.in_order
            && matches!(&*name, "min" | "max")
            && let [ex] = args
            && is_real(ex, s)
        {
            let max = name == "max";
            return Some(Acc::BestReal { ex: ex.clone(), best: vec![0.0; n], seen: vec![false; n], max });
        }
        if let (true, Some(coll), None, [ex]) = (name == "count" && n > 0, &a.distinct, filter, args)
            && let Some(acc) = few_distinct(ex, coll, n, s)
        {
            return Some(acc);
        }
        let counts = name == "count";
        if !s.in_order && !counts {
            return None;
        }
        let mut states = Vec::new();
        states.resize_with(n, || None);
        Some(Acc::Any { states, once: Once::default() })
    }

    /// Adds a batch to aggregate `k`.
    pub fn accumulate(&mut self, k: usize, b: &Batch<'_>, s: &JoinScope<'_>) -> Result<()> {
        let State { at, reals, accs, hits, .. } = &mut self.st;
        match &mut accs[k] {
            Acc::Reals { ex, sums, .. } => {
                Reals::of(ex, b, s, reals)?;
                if reals.nulls.is_empty() {
                    match &mut sums[..] {
                        [one] if self.keys.is_empty() => one.add_all(&reals.values),
                        _ => add_runs(sums, at, &reals.values),
                    }
                    return Ok(());
                }
                for (i, (g, v)) in at.iter().zip(&reals.values).enumerate() {
                    if !reals.nulls[i] {
                        sums[*g as usize].add(*v);
                    }
                }
            }
            Acc::BestReal { ex, best, seen, max } => {
                Reals::of(ex, b, s, reals)?;
                for (i, (g, v)) in at.iter().zip(&reals.values).enumerate() {
                    let g = *g as usize;
                    let null = reals.nulls.get(i).copied().unwrap_or(false);
                    let better = !null && (!seen[g] || (*max && *v > best[g]) || (!*max && *v < best[g]));
                    if let Some(h) = hits.get_mut(i) {
                        *h |= better || null && !seen[g];
                    }
                    if better {
                        best[g] = *v;
                        seen[g] = true;
                    }
                }
            }
            Acc::Any { states, once } => {
                let (args, filter) = &self.aggs[k];
                let spec = &self.q.aggs[k];
                let Implementation::Aggregate(make) = &spec.function.imp else {
                    return Err(Code::Internal.into());
                };
                let mut aux = AuxData::default();
                let mut given = Vec::with_capacity(args.len());
                let (mut image, mut payload) = (Vec::new(), Vec::new());
                for (i, g) in at.iter().enumerate() {
                    let row = BatchRow { batch: b, i };
                    if let Some(f) = filter
                        && !s.eval.holds(f, &row)?
                    {
                        continue;
                    }
                    given.clear();
                    for a in args {
                        given.push(s.eval.value(a, &row)?);
                    }
                    if let Some(coll) = &spec.distinct {
                        image.clear();
                        image.extend_from_slice(&g.to_le_bytes());
                        push_image(&mut image, &given[0], coll)?;
                        match once.meet(&image, work_size())? {
                            Met::New => {}
                            Met::Before => continue,
                            Met::NoRoom => {
                                payload.clear();
                                payload.extend_from_slice(&g.to_le_bytes());
                                push_value(&mut payload, &given[0])?;
                                once.wait(s.rt, &image, &payload)?;
                                continue;
                            }
                        }
                    }
                    let state = states[*g as usize].get_or_insert_with(|| make());
                    let mut ctx = Context {
                        host: s.eval.host(),
                        collation: &spec.collation,
                        aux: &mut aux,
                        pure: None,
                        cursor: None,
                    };
                    state.step(&mut ctx, &given)?;
                    if let Some(h) = hits.get_mut(i) {
                        *h |= spec.is_extreme() && state.changed();
                    }
                }
            }
            _ => return Err(Code::Internal.into()),
        }
        Ok(())
    }

    /// Steps the aggregates with DISTINCT by the values that had to wait.
    pub fn settle(&mut self, s: &JoinScope<'_>) -> Result<()> {
        for (spec, acc) in self.q.aggs.iter().zip(&mut self.st.accs) {
            let Acc::Any { states, once } = acc else { continue };
            let Implementation::Aggregate(make) = &spec.function.imp else {
                return Err(Code::Internal.into());
            };
            let mut aux = AuxData::default();
            once.settle(s.rt, work_size(), &mut |mut record| {
                let g = take_u32(&mut record)? as usize;
                let state = states.get_mut(g).ok_or(Code::Internal)?.get_or_insert_with(|| make());
                let given = [take_value(&mut record)?];
                let mut ctx = Context {
                    host: s.eval.host(),
                    collation: &spec.collation,
                    aux: &mut aux,
                    pure: None,
                    cursor: None,
                };
                state.step(&mut ctx, &given)
            })?;
        }
        Ok(())
    }

    #[inline]
    pub fn value(&self, k: usize, g: usize) -> Result<Value> {
        Ok(match &self.st.accs[k] {
            Acc::Rows => Value::Int(self.st.rows[g]),
            Acc::Count { n, .. } | Acc::Distinct { n, .. } => Value::Int(n[g]),
            Acc::Sum { sum, n, kind, .. } => {
                let n = n.as_ref().map_or(self.st.rows[g], |n| n[g]);
                match kind {
                    SumKind::Total => Value::Real(sum[g] as f64),
                    _ if n == 0 => Value::Null,
                    SumKind::Sum => Value::Int(sum[g]),
                    SumKind::Avg => Value::real(sum[g] as f64 / n as f64),
                }
            }
            Acc::Reals { sums, kind, .. } => match kind {
                SumKind::Total => Value::real(sums[g].value()),
                _ if sums[g].count() == 0 => Value::Null,
                SumKind::Sum => Value::real(sums[g].value()),
                SumKind::Avg => Value::real(sums[g].value() / sums[g].count() as f64),
            },
            Acc::BestReal { best, seen, .. } => {
                if seen[g] {
                    Value::Real(best[g])
                } else {
                    Value::Null
                }
            }
            Acc::Best { best, seen, .. } => {
                if seen[g] {
                    Value::Int(best[g])
                } else {
                    Value::Null
                }
            }
            Acc::Any { .. } => return Err(Code::Internal.into()),
        })
    }

    /// The values of aggregate `k` in some groups, if they are not asked of a function.
    pub fn values_of(&self, k: usize, groups: &[u32], take: &mut dyn FnMut(Value)) -> Result<bool> {
        match &self.st.accs[k] {
            Acc::Any { .. } => return Ok(false),
            Acc::Rows => groups.iter().for_each(|g| take(Value::Int(self.st.rows[*g as usize]))),
            Acc::Sum { sum, n: None, kind: SumKind::Sum, .. } if !self.keys.is_empty() => {
                groups.iter().for_each(|g| take(Value::Int(sum[*g as usize])));
            }
            _ => {
                for g in groups {
                    take(self.value(k, *g as usize)?);
                }
            }
        }
        Ok(true)
    }

    /// Keeps the groups for which a comparison of an aggregate with a constant holds. `false`: it is something else.
    pub fn keep_having(&self, having: &Ex, groups: &mut Vec<u32>) -> Result<bool> {
        let Ex::Compare(c) = having else { return Ok(false) };
        let (Ex::Agg(k), Ex::Const(with)) = (&c.lhs, &c.rhs) else { return Ok(false) };
        // A function may fail on a group for which the condition does not hold.
        if self.st.accs.iter().any(|a| matches!(a, Acc::Any { .. })) {
            return Ok(false);
        }
        let mut failed = None;
        groups.retain(|g| {
            let holds = self.value(*k, *g as usize).and_then(|v| c.test(&v, with));
            holds.unwrap_or_else(|e| {
                failed = Some(e);
                None
            }) == Some(true)
        });
        failed.map_or(Ok(true), Err)
    }

    pub fn finished(&mut self, k: usize, g: usize, s: &JoinScope<'_>) -> Result<Value> {
        let Acc::Any { states, .. } = &mut self.st.accs[k] else { return self.value(k, g) };
        let spec = &self.q.aggs[k];
        let Implementation::Aggregate(make) = &spec.function.imp else {
            return Err(Code::Internal.into());
        };
        let mut aux = AuxData::default();
        let mut ctx = Context {
            host: s.eval.host(),
            collation: &spec.collation,
            aux: &mut aux,
            pure: None,
            cursor: None,
        };
        states[g].get_or_insert_with(|| make()).finish(&mut ctx)
    }
}

impl State {
    /// Takes rows in where there is but one group, if all aggregates can do so as a whole.
    pub fn one_group(&mut self, b: &Batch<'_>) -> Result<bool> {
        if !self.accs.iter().all(|a| matches!(a, Acc::Rows | Acc::Sum { n: None, .. })) {
            return Ok(false);
        }
        self.rows[0] += b.outer.len() as i64;
        for a in &mut self.accs {
            if let Acc::Sum { ex, sum, .. } = a {
                match ex {
                    Ex::Slot(slot) if b.whole && b.places.at[*slot].0 == b.places.outer => {
                        sum[0] += sum_run(b, b.places.at[*slot].1);
                    }
                    _ => {
                        Ints::of(ex, b, &mut self.ints)?;
                        sum[0] += self.ints.values.iter().sum::<i64>();
                    }
                }
            }
        }
        Ok(true)
    }

    /// Adds a batch to aggregate `k`, if it is one of integers.
    pub fn accumulate_ints(&mut self, k: usize, b: &Batch<'_>) -> Result<bool> {
        let State { at, ints, accs, hits, .. } = self;
        match &mut accs[k] {
            Acc::Rows => {}
            Acc::Count { ex, n } => {
                Ints::of(ex, b, ints)?;
                for (i, g) in at.iter().enumerate() {
                    n[*g as usize] += !ints.nulls.get(i).copied().unwrap_or(false) as i64;
                }
            }
            Acc::Distinct { what: Few::Ints { ex, least }, span, bits, n } => {
                Ints::of(ex, b, ints)?;
                for (i, (g, v)) in at.iter().zip(&ints.values).enumerate() {
                    let (g, null) = (*g as usize, ints.nulls.get(i).copied().unwrap_or(false));
                    if !null {
                        n[g] += !bits.set(g * *span + (v - *least) as usize) as i64;
                    }
                }
            }
            Acc::Distinct { what: Few::Entries { table, col, numbers }, span, bits, n } => {
                let mut at = at.iter();
                b.each(*table, *col, |place| {
                    let number = match place.map(|(chunk, i)| (&chunk.data, i)) {
                        Some((Data::Dict { codes }, i)) => numbers[codes.get(i) as usize],
                        _ => NONE,
                    };
                    if let (Some(g), true) = (at.next(), number != NONE) {
                        n[*g as usize] += !bits.set(*g as usize * *span + number as usize) as i64;
                    }
                });
            }
            Acc::Sum { ex, sum, n, .. } => {
                Ints::of(ex, b, ints)?;
                if ints.nulls.is_empty() {
                    for (g, v) in at.iter().zip(&ints.values) {
                        sum[*g as usize] += v;
                    }
                    if let Some(n) = n {
                        at.iter().for_each(|g| n[*g as usize] += 1);
                    }
                } else if let Some(n) = n {
                    for ((g, v), null) in at.iter().zip(&ints.values).zip(&ints.nulls) {
                        if !null {
                            sum[*g as usize] += v;
                            n[*g as usize] += 1;
                        }
                    }
                } else {
                    return Err(Code::Internal.into());
                }
            }
            Acc::Best { ex, best, seen, max } => {
                Ints::of(ex, b, ints)?;
                for (i, (g, v)) in at.iter().zip(&ints.values).enumerate() {
                    let g = *g as usize;
                    if ints.nulls.get(i).copied().unwrap_or(false) {
                        if let Some(h) = hits.get_mut(i) {
                            *h |= !seen[g];
                        }
                        continue;
                    }
                    if !seen[g] || (*max && *v > best[g]) || (!*max && *v < best[g]) {
                        best[g] = *v;
                        seen[g] = true;
                        if let Some(h) = hits.get_mut(i) {
                            *h = true;
                        }
                    }
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// `count(DISTINCT ex)` in `n` groups by bits, if these are not many.
fn few_distinct(ex: &Ex, coll: &Collation, n: usize, s: &JoinScope<'_>) -> Option<Acc> {
    // The bits are to cost less than the rows do.
    let rows = s.cols.iter().map(|c| c.loaded.rows).max().unwrap_or(0);
    let most = (rows * 16).max(1 << 16).min(work_size().saturating_mul(8));
    let (what, span) = if let Some((lo, hi, _)) = int_bounds(ex, s.cols, s.places, &|t| s.left[t]) {
        let span = usize::try_from(hi.checked_sub(lo)?).ok()?.checked_add(1)?;
        (Few::Ints { ex: ex.clone(), least: lo }, span)
    } else {
        let Ex::Slot(slot) = ex else { return None };
        let (table, col) = s.places.at[*slot];
        if s.cols[table].kinds[col] != Kind::Dict {
            return None;
        }
        let dict = &s.cols[table].loaded.dicts[col];
        let mut known: FastMap<Vec<u8>, u32> = FastMap::default();
        let mut numbers: Vec<u32> = Vec::with_capacity(dict.len());
        let text = |code: u32| matches!(dict.get(code), Field::Text(_) | Field::Null);
        let plain = coll.is_binary() && (0..dict.len() as u32).all(text);
        for code in 0..dict.len() as u32 {
            let f = dict.get(code);
            if matches!(f, Field::Null) {
                numbers.push(NONE);
            } else if plain {
                numbers.push(code);
            } else {
                let mut image = Vec::new();
                push_image(&mut image, &f.value().ok()?, coll).ok()?;
                let next = known.len() as u32;
                numbers.push(*known.entry(image).or_insert(next));
            }
        }
        let span = if plain { dict.len() } else { known.len() }.max(1);
        (Few::Entries { table, col, numbers }, span)
    };
    let len = span.checked_mul(n).filter(|l| *l <= most)?;
    Some(Acc::Distinct { what, span, bits: Bits::new(len).ok()?, n: zeros(n) })
}

/// The sum of a column of integers over consecutive rows.
fn sum_run(b: &Batch<'_>, col: usize) -> i64 {
    let chunk = &b.cols[b.places.outer].loaded.parts[b.part].cols[col];
    let first = b.outer.first().map_or(0, |r| *r as usize);
    let span = first..first + b.outer.len();
    match &chunk.data {
        Data::Int { base, nulls: false, codes } => {
            let sum: u64 = match codes {
                Codes::U4(_) => {
                    let mut sum = 0;
                    codes.each_half(span, |v| sum += v as u64);
                    sum
                }
                Codes::U8(c) => c[span].iter().map(|v| *v as u64).sum(),
                Codes::U16(c) => c[span].iter().map(|v| *v as u64).sum(),
                Codes::U24(c) => c[span].iter().map(|v| of_three(*v) as u64).sum(),
                Codes::U32(c) => c[span].iter().map(|v| *v as u64).sum(),
            };
            sum as i64 + base * b.outer.len() as i64
        }
        _ => span.filter_map(|i| chunk.int(i)).sum(),
    }
}

/// The expression by value of its only column, where that has few and all results are integers or NULL.
fn mapped(ex: &Ex, s: &JoinScope<'_>) -> Option<Ex> {
    const FEW: usize = 4096;
    let known = matches!(ex, Ex::Slot(_)) || int_bounds(ex, s.cols, s.places, &|t| s.left[t]).is_some();
    let (slot, n) = few_values(ex, s)?;
    let (t, c) = s.places.at[slot];
    if known || n > FEW {
        return None;
    }
    let cols = &s.cols[t];
    let mut values = Vec::with_capacity(n);
    let (mut lo, mut hi, mut null) = (0, 0, false);
    for i in 0..n {
        let v = match cols.kinds[c] {
            // The last place is that of NULL.
            _ if i + 1 == n => Field::Null,
            Kind::Dict => cols.loaded.dicts[c].get(i as u32),
            _ => Field::Int(cols.bounds[c].0 + i as i64),
        };
        match s.eval.value(ex, &OneField(v)).ok()? {
            Value::Int(v) => {
                (lo, hi) = (v.min(lo), v.max(hi));
                values.push(Some(v));
            }
            Value::Null => {
                null = true;
                values.push(None);
            }
            _ => return None,
        }
    }
    Some(Ex::Mapped(Rc::new(Mapped { slot, values, bounds: (lo, hi, null) })))
}
