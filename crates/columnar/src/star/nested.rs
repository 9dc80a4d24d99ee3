//! Queries nested in expressions, run.
//!
//! What depends on nothing outside is asked first of all ([`results_of`]). A condition with a query that depends on the row is
//! tested last, when all others have been: of the combinations of rows that are left the keys are collected, the nested
//! query is run for these keys alone, and each combination finds its answer by its key ([`Run::test_correlated`]). Keys are
//! integers; anything else ends with "not here".
//!
//! Of EXISTS with a further comparison, the least and the greatest of the compared column for each key say all:
//! `own <> x` holds for some row exactly if not both of them are x, `own < x` if the least is less.

use super::scope::JoinScope;
use crate::decline::DECLINED;
use crate::expr::batch::NONE;
use crate::expr::batch::{Batch, BatchRow, Ints, int_bounds};
use crate::expr::set::NestedResult;
use crate::expr::{Eval, Ex, NestedUse, Row};
use crate::kernel::Bits;
use crate::memory::room;
use crate::query::{Nested, NestedKind, Query};
use crate::runtime::Runtime;
use crate::star::scope::{Extra, Run, RunQuery};
use crate::star::split::JoinPlan;
use iolite_base::hash::FastMap;
use iolite_base::{Code, Result, alloc};
use iolite_plan::bound::CmpOp;
use iolite_value::Value;
use std::cell::RefCell;

/// Asks the nested queries that depend on nothing; `None`: not here.
pub(crate) fn results_of(
    q: &Query,
    rt: &dyn Runtime,
    params: &[Value],
    since: u64,
    run: RunQuery,
) -> Result<Option<Vec<NestedResult>>> {
    let mut out = Vec::new();
    for n in &q.nested {
        if !n.keys.is_empty() {
            out.push(NestedResult::Correlated);
            continue;
        }
        let wanted = if n.kind == NestedKind::Set { -1 } else { 1 };
        let Some(mut rows) = run(&n.query, rt, params, wanted, &Extra { since, ..Extra::default() })? else {
            return Ok(None);
        };
        let mut row = vec![Value::Null; n.query.result.len()];
        out.push(match n.kind {
            NestedKind::Scalar(c) => {
                let there = rows.next(&mut row)?;
                NestedResult::Value(row.into_iter().nth(c).filter(|_| there).unwrap_or_default())
            }
            NestedKind::Set => {
                let mut all = room(rows.len())?;
                while rows.next(&mut row)? {
                    all.extend(row.first_mut().map(std::mem::take));
                }
                NestedResult::Rows(all)
            }
            NestedKind::Exists => return Ok(None),
        });
    }
    Ok(Some(out))
}

/// Numbers for the keys of combinations.
struct Keys {
    /// Least value and span of each part.
    parts: Vec<(i64, i64)>,
    /// One part whose values lie close together: the number of a key is how many are below it.
    ranked: Option<(Bits, Vec<u32>)>,
    hashed: FastMap<i64, u32>,
    count: usize,
}

/// Keys of one part that span more are hashed.
const MOST_BITS: i64 = 1 << 28;

impl Keys {
    /// Numbers keys, and tells each combination's; `None`: they cannot be numbered.
    fn new(values: &[Ints]) -> Result<Option<(Keys, Vec<u32>)>> {
        let n = values.first().map_or(0, |v| v.values.len());
        let null = |i: usize| values.iter().any(|v| v.nulls.get(i).copied().unwrap_or(false));
        let (mut parts, mut product) = (Vec::new(), 1i64);
        for v in values {
            let there = || v.values.iter().enumerate().filter(|(i, _)| !null(*i)).map(|(_, v)| *v);
            let (min, max) = (there().min().unwrap_or(0), there().max().unwrap_or(0));
            let Some(span) = max.checked_sub(min).and_then(|s| s.checked_add(1)) else { return Ok(None) };
            match product.checked_mul(span).filter(|p| *p < 1 << 62) {
                Some(p) => product = p,
                None => return Ok(None),
            }
            parts.push((min, span));
        }
        let mut keys = Keys { parts, ranked: None, hashed: FastMap::default(), count: 0 };
        let mut ids: Vec<u32> = room(n)?;
        if let ([one], [(min, span)]) = (values, &keys.parts[..])
            && *span <= MOST_BITS.min((n as i64 * 64).max(1 << 20))
        {
            let mut bits = Bits::new(*span as usize)?;
            for (i, v) in one.values.iter().enumerate().filter(|(i, _)| !null(*i)) {
                debug_assert!(!null(i));
                keys.count += !bits.set((v - min) as usize) as usize;
            }
            let before = bits.counts()?;
            keys.ranked = Some((bits, before));
            ids.extend(one.values.iter().enumerate().map(|(i, v)| match null(i) {
                true => NONE,
                false => keys.find(std::iter::once(*v)),
            }));
            return Ok(Some((keys, ids)));
        }
        for i in 0..n {
            if null(i) {
                ids.push(NONE);
                continue;
            }
            let number = keys.number(values.iter().map(|v| v.values[i])).ok_or(Code::Internal)?;
            let next = keys.hashed.len() as u32;
            ids.push(*keys.hashed.entry(number).or_insert(next));
        }
        keys.count = keys.hashed.len();
        Ok(Some((keys, ids)))
    }

    fn number(&self, values: impl Iterator<Item = i64>) -> Option<i64> {
        let mut number = 0;
        for (v, (min, span)) in values.zip(&self.parts) {
            let d = v.checked_sub(*min).filter(|d| *d >= 0 && d < span)?;
            number = number * span + d;
        }
        Some(number)
    }

    /// The number of a key, if it is one of those.
    #[inline]
    fn find(&self, values: impl Iterator<Item = i64>) -> u32 {
        let Some(number) = self.number(values) else { return NONE };
        match &self.ranked {
            Some((bits, before)) if bits.has(number as usize) => bits.rank(number as usize, before) as u32,
            Some(_) => NONE,
            None => self.hashed.get(&number).copied().unwrap_or(NONE),
        }
    }

    /// The values of part `k`, as a set less the least.
    fn set(&self, k: usize, values: &[Ints]) -> Result<Option<(i64, Bits)>> {
        let (min, span) = self.parts[k];
        if span > MOST_BITS {
            return Ok(None);
        }
        let mut bits = Bits::new(span as usize)?;
        for (i, v) in values[k].values.iter().enumerate() {
            let d = v.wrapping_sub(min);
            if !values[k].nulls.get(i).copied().unwrap_or(false) && (0..span).contains(&d) {
                bits.set(d as usize);
            }
        }
        Ok(Some((min, bits)))
    }
}

/// What a nested query says of each combination.
struct Answers {
    number: usize,
    /// Each combination's key.
    ids: Vec<u32>,
    by_key: ByKey,
}

enum ByKey {
    /// Whether there is a row.
    Found(Vec<bool>),
    /// Least and greatest of the own column, and what each combination compares it with.
    Span { least: Vec<i64>, greatest: Vec<i64>, with: Ints, op: CmpOp },
    /// The value, and the one for no row.
    Values(Vec<Value>, Value),
}

impl Answers {
    fn holds(&self, i: usize) -> bool {
        let id = self.ids[i];
        match &self.by_key {
            ByKey::Found(f) => id != NONE && f[id as usize],
            ByKey::Span { least, greatest, with, op } => {
                if id == NONE || with.nulls.get(i).copied().unwrap_or(false) {
                    return false;
                }
                let (lo, hi, x) = (least[id as usize], greatest[id as usize], with.values[i]);
                lo <= hi
                    && match op {
                        CmpOp::Ne => lo != x || hi != x,
                        CmpOp::Lt => lo < x,
                        CmpOp::Le => lo <= x,
                        CmpOp::Gt => hi > x,
                        CmpOp::Ge => hi >= x,
                        CmpOp::Eq => false,
                    }
            }
            ByKey::Values(..) => false,
        }
    }

    fn value(&self, i: usize) -> Value {
        match &self.by_key {
            ByKey::Values(v, none) => match self.ids[i] {
                NONE => none.clone(),
                id => v[id as usize].clone(),
            },
            _ => Value::bool(self.holds(i)),
        }
    }
}

/// A combination of which nested queries have said something.
struct CorrelatedRow<'r> {
    row: BatchRow<'r>,
    /// Its place among all.
    at: usize,
    answers: &'r [Answers],
}

impl Row for CorrelatedRow<'_> {
    fn slot(&self, i: usize) -> Result<Value> {
        self.row.slot(i)
    }

    fn nested(&self, number: usize) -> Result<Value> {
        let a = self.answers.iter().find(|a| a.number == number).ok_or(Code::Internal)?;
        Ok(a.value(self.at))
    }
}

/// No rows at all, as aggregates see them.
struct NoRows<'q>(&'q Query);

impl Row for NoRows<'_> {
    fn slot(&self, _: usize) -> Result<Value> {
        Err(Code::Internal.into())
    }

    fn agg(&self, i: usize) -> Result<Value> {
        Ok(match &*self.0.aggs[i].function.name.to_ascii_lowercase() {
            "count" => Value::Int(0),
            "total" => Value::Real(0.0),
            _ => Value::Null,
        })
    }
}

/// The uses of nested queries in an expression.
fn uses<'e>(ex: &'e Ex, out: &mut Vec<&'e NestedUse>) {
    if let Ex::Nested(n) = ex {
        out.push(n);
    }
    ex.children(&mut |e| uses(e, out));
}

impl Run<'_> {
    /// Drops the combinations that fail the conditions with nested queries. `s` names no table that is scanned. `false`:
    /// not here.
    pub(crate) fn test_correlated(
        &self,
        d: &JoinPlan,
        s: &JoinScope<'_>,
        rows: &mut [Vec<u32>],
    ) -> Result<bool> {
        for cond in &d.correlated {
            let n = rows[self.outer].len();
            if n == 0 {
                return Ok(true);
            }
            let mut used = Vec::new();
            uses(cond, &mut used);
            let mut answers: Vec<Answers> = Vec::new();
            for u in used {
                match self.run_nested(u, s, rows)? {
                    Some(a) => answers.push(a),
                    None => return Ok(false),
                }
            }
            let mut flags: Vec<bool> = room(n)?;
            match (cond, &answers[..]) {
                (Ex::Nested(_), [a @ Answers { by_key: ByKey::Found(_) | ByKey::Span { .. }, .. }]) => {
                    flags.extend((0..n).map(|i| a.holds(i)));
                }
                (Ex::Not(e), [a @ Answers { by_key: ByKey::Found(_) | ByKey::Span { .. }, .. }])
                    if matches!(**e, Ex::Nested(_)) =>
                {
                    flags.extend((0..n).map(|i| !a.holds(i)));
                }
                _ => {
                    let mut at = 0;
                    self.each_batch(s, rows, &mut |batch| {
                        for i in 0..batch.outer.len() {
                            let row = CorrelatedRow { row: BatchRow { batch, i }, at, answers: &answers };
                            flags.push(s.eval.holds(cond, &row)?);
                            at += 1;
                        }
                        Ok(())
                    })?;
                }
            }
            for list in rows.iter_mut().filter(|l| !l.is_empty()) {
                let mut flag = flags.iter();
                list.retain(|_| flag.next().is_some_and(|f| *f));
            }
        }
        Ok(true)
    }

    /// The integers of an expression for all combinations; `None`: it is not one of integers.
    fn ints_of(&self, ex: &Ex, s: &JoinScope<'_>, rows: &[Vec<u32>]) -> Result<Option<Ints>> {
        if int_bounds(ex, s.cols, s.places, &|t| s.left[t]).is_none() {
            return Ok(None);
        }
        let (mut all, mut some) = (Ints::default(), Ints::default());
        self.each_batch(s, rows, &mut |b| {
            Ints::of(ex, b, &mut some)?;
            alloc::reserve(&mut all.values, some.values.len())?;
            if !some.nulls.is_empty() {
                all.nulls.resize(all.values.len(), false);
                all.nulls.extend_from_slice(&some.nulls);
            }
            all.values.extend_from_slice(&some.values);
            Ok(())
        })?;
        Ok(Some(all))
    }

    /// Runs a nested query for the keys of all combinations.
    fn run_nested(&self, u: &NestedUse, s: &JoinScope<'_>, rows: &[Vec<u32>]) -> Result<Option<Answers>> {
        let nested: &Nested = &self.q.nested[u.number];
        let mut values: Vec<Ints> = Vec::new();
        for a in &u.args {
            match self.ints_of(a, s, rows)? {
                Some(v) => values.push(v),
                None => return Ok(None),
            }
        }
        let with = if nested.other.is_some() { values.pop() } else { None };
        let Some((keys, ids)) = Keys::new(&values)? else { return Ok(None) };
        let mut restrict = Vec::new();
        for (k, slot) in nested.keys.iter().enumerate() {
            restrict.extend(keys.set(k, &values)?.map(|(base, bits)| (*slot, base, bits)));
        }
        let start = self.now();
        let by_key = match nested.kind {
            NestedKind::Exists => self.found(nested, &keys, with, restrict)?,
            NestedKind::Scalar(_) => self.values(nested, &keys, restrict, s.eval)?,
            NestedKind::Set => None,
        };
        if let Some(p) = self.rt.profile() {
            let spent = crate::profile::shown(self.now() - start);
            p.line(format!("NESTED QUERY: {} keys of {} rows, {spent}", keys.count, ids.len()));
        }
        Ok(by_key.map(|by_key| Answers { number: u.number, ids, by_key }))
    }

    fn found(
        &self,
        nested: &Nested,
        keys: &Keys,
        with: Option<Ints>,
        restrict: Vec<(usize, i64, Bits)>,
    ) -> Result<Option<ByKey>> {
        let mut found: Vec<bool> = room(keys.count)?;
        found.resize(if with.is_some() { 0 } else { keys.count }, false);
        let (mut least, mut greatest): (Vec<i64>, Vec<i64>) = (room(keys.count)?, room(keys.count)?);
        if with.is_some() {
            least.resize(keys.count, i64::MAX);
            greatest.resize(keys.count, i64::MIN);
        }
        let (mut parts, mut other) = (Vec::new(), Ints::default());
        parts.resize_with(nested.keys.len(), Ints::default);
        let sink = RefCell::new(|b: &Batch<'_>, s: &JoinScope<'_>| -> Result<()> {
            let known =
                |slot: usize| int_bounds(&Ex::Slot(slot), s.cols, s.places, &|t| s.left[t]).ok_or(DECLINED);
            for (k, out) in nested.keys.iter().zip(&mut parts) {
                known(*k)?;
                Ints::of(&Ex::Slot(*k), b, out)?;
            }
            if let Some((_, slot)) = nested.other {
                known(slot)?;
                Ints::of(&Ex::Slot(slot), b, &mut other)?;
            }
            for i in 0..b.outer.len() {
                if parts.iter().any(|p| p.nulls.get(i).copied().unwrap_or(false)) {
                    continue;
                }
                let id = keys.find(parts.iter().map(|p| p.values[i])) as usize;
                if id == NONE as usize {
                    continue;
                }
                if nested.other.is_none() {
                    found[id] = true;
                } else if !other.nulls.get(i).copied().unwrap_or(false) {
                    least[id] = least[id].min(other.values[i]);
                    greatest[id] = greatest[id].max(other.values[i]);
                }
            }
            Ok(())
        });
        let take = |b: &Batch<'_>, s: &JoinScope<'_>| (sink.borrow_mut())(b, s);
        let read = nested.keys.iter().copied().chain(nested.other.map(|(_, slot)| slot));
        let reads = read.fold(0, |m, slot| m | 1 << nested.query.slots[slot].table);
        let extra = Extra { since: self.extra.since, restrict, sink: Some(&take), reads, made: &[] };
        if (self.run_query)(&nested.query, self.rt, self.params, -1, &extra)?.is_none() {
            return Ok(None);
        }
        Ok(Some(match (nested.other, with) {
            (Some((op, _)), Some(with)) => ByKey::Span { least, greatest, with, op },
            _ => ByKey::Found(found),
        }))
    }

    fn values(
        &self,
        nested: &Nested,
        keys: &Keys,
        restrict: Vec<(usize, i64, Bits)>,
        eval: &Eval<'_>,
    ) -> Result<Option<ByKey>> {
        let q = &nested.query;
        let extra = Extra { since: self.extra.since, restrict, ..Extra::default() };
        let Some(mut rows) = (self.run_query)(q, self.rt, self.params, -1, &extra)? else { return Ok(None) };
        let mut empty = q.empty.clone().ok_or(Code::Internal)?;
        empty.bind(self.params, &[], eval)?;
        let none = eval.value(&empty, &NoRows(q))?;
        let mut values: Vec<Value> = room(keys.count)?;
        values.resize(keys.count, none.clone());
        let mut row = vec![Value::Null; q.result.len()];
        while rows.next(&mut row)? {
            let Some((value, own)) = row.split_last_mut() else { return Ok(None) };
            if own.iter().any(Value::is_null) {
                continue;
            }
            if !own.iter().all(|v| matches!(v, Value::Int(_))) {
                return Ok(None);
            }
            let id = keys.find(own.iter().map(Value::to_int));
            if id != NONE {
                values[id as usize] = std::mem::take(value);
            }
        }
        Ok(Some(ByKey::Values(values, none)))
    }
}
