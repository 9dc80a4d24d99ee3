//! Aggregates: columns of states, one place for each group, and what is read from them.
//!
//! What always holds: a value is the one that the function's own code would give for the group's rows in the order of the
//! table. Sums of integers are added freely only where bounds prove that no partial sum overflows; aggregates of the same
//! column share states, and a sum of `x + 5` is that of `x`.
//!
//! What it does not know: keys, and how rows come to have groups.

use super::distinct::Distinct;
use super::top::compare_by;
use crate::decline::because;
use crate::expr::Ex;
use crate::expr::batch::{Batch, Ints, NONE, Reals, is_real};
use crate::expr::columns::Kind;
use crate::expr::condition::Truth;
use crate::expr::scope::Scope;
use crate::expr::vector::{Node, Vector, bounds, column};
use crate::kernel::Bits;
use crate::op::sum::{FreeSum, RealSum, SumKind, WideSum, add_runs, sum_kind};
use crate::query::AggSpec;
use crate::store::chunk::{Data, Field};
use iolite_base::{Code, Result};
use iolite_ext::{Aggregate, AuxData, Context, FunctionFlags, Implementation};
use iolite_plan::bound::BinOp;
use iolite_value::Value;
use iolite_value::compare::KeyField;
use std::rc::Rc;

/// States of one kind, a place for each group.
enum State<'a> {
    Rows(Vec<i64>),
    Count {
        node: Node,
        n: Vec<i64>,
    },
    Ints {
        node: Node,
        sum: Vec<i64>,
    },
    /// The same of integers some of which are NULL, and how many are not.
    Known {
        node: Node,
        sum: Vec<i64>,
        n: Vec<i64>,
    },
    Reals {
        ex: Node,
        sums: Vec<RealSum>,
    },
    /// The same where rows may come in another order than they should, ...
    FreeReals {
        ex: Node,
        sums: Vec<FreeSum>,
    },
    /// ... and of integers that are large.
    Wide {
        node: Node,
        sums: Vec<WideSum>,
        kind: SumKind,
    },
    BestInt {
        node: Node,
        best: Vec<i64>,
        seen: Vec<bool>,
        max: bool,
    },
    BestReal {
        node: Node,
        best: Vec<f64>,
        seen: Vec<bool>,
        max: bool,
    },
    /// The least or the greatest value of a column, and the row that has it; whether integers and reals were met.
    Best {
        slot: usize,
        best: Vec<Option<Field<'a>>>,
        rows: Vec<u32>,
        max: bool,
        met: (bool, bool),
    },
    /// The same without groups where the column has a dictionary.
    Codes {
        slot: usize,
        seen: Bits,
        max: bool,
    },
    Distinct(Box<Distinct>),
    Any(Box<Any>),
}

/// By the function's own code.
struct Any {
    make: Rc<dyn Fn() -> Box<dyn Aggregate>>,
    states: Vec<Option<Box<dyn Aggregate>>>,
    args: Vec<Node>,
    collation: iolite_value::Collation,
    /// Of DISTINCT: what was there.
    distinct: Option<Distinct>,
}

/// Where an aggregate's value is.
enum Agg {
    Number(usize),
    Sum { sum: usize, n: usize, plus: i64, kind: SumKind },
    Value(usize),
}

/// The aggregates of a query. See the module's head.
pub(crate) struct States<'a> {
    list: Vec<State<'a>>,
    /// The condition of each state's FILTER.
    filters: Vec<Option<Truth>>,
    aggs: Vec<Agg>,
    /// There are no keys: one group.
    one: bool,
    groups: usize,
}

const BINARY: KeyField = KeyField { coll: iolite_value::Collation::Binary, desc: false, nulls_large: false };

/// `x + k` as x and k.
fn split(ex: &Ex) -> (&Ex, i64) {
    match ex {
        Ex::Binary(BinOp::Add, a, b) => match (&**a, &**b) {
            (Ex::Const(Value::Int(k)), x) | (x, Ex::Const(Value::Int(k))) => (x, *k),
            _ => (ex, 0),
        },
        Ex::Binary(BinOp::Sub, a, b) => match (&**a, &**b) {
            (x, Ex::Const(Value::Int(k))) if *k > i64::MIN => (x, -k),
            _ => (ex, 0),
        },
        _ => (ex, 0),
    }
}

impl<'a> States<'a> {
    /// Of aggregates with their arguments and filters. `free`: rows may come in another order than they should.
    pub fn new(
        specs: &[AggSpec],
        bound: &[(Vec<Ex>, Option<Ex>)],
        one: bool,
        free: bool,
        s: &Scope<'_>,
    ) -> Result<States<'a>> {
        let mut x = States { list: Vec::new(), filters: Vec::new(), aggs: Vec::new(), one, groups: 0 };
        // Which states are of which column, for further aggregates.
        let mut sums: Vec<(usize, usize)> = Vec::new();
        for (spec, (args, filter)) in specs.iter().zip(bound) {
            let filter = filter.as_ref().map(|f| Truth::of(f, s)).transpose()?;
            let agg = x.agg(spec, args, filter, free, s, &mut sums)?;
            x.aggs.push(agg);
        }
        if one {
            x.grow(1);
        }
        Ok(x)
    }

    fn add(&mut self, state: State<'a>, filter: Option<Truth>) -> usize {
        self.list.push(state);
        self.filters.push(filter);
        self.list.len() - 1
    }

    /// The state that counts rows.
    fn rows(&mut self) -> usize {
        let known =
            self.list.iter().zip(&self.filters).position(|(l, f)| matches!(l, State::Rows(_)) && f.is_none());
        known.unwrap_or_else(|| self.add(State::Rows(Vec::new()), None))
    }

    fn agg(
        &mut self,
        spec: &AggSpec,
        args: &[Ex],
        filter: Option<Truth>,
        free: bool,
        s: &Scope<'_>,
        sums: &mut Vec<(usize, usize)>,
    ) -> Result<Agg> {
        let name = spec.function.name.to_ascii_lowercase();
        let is_count = spec.function.flags.has(FunctionFlags::COUNT) || name == "count";
        let bounds = |e: &Ex| bounds(e, s);
        let rows = s.most_rows.unwrap_or(u64::MAX >> 1) as i128;
        let proven =
            |(lo, hi, _): (i64, i64, bool)| (lo as i128).abs().max((hi as i128).abs()) * rows < 1 << 62;
        if let Some(coll) = &spec.distinct {
            let [ex] = args else {
                return Err(because("an aggregate that depends on the order of an index"));
            };
            let distinct = Distinct::new(ex, coll, self.one, is_count, s)?;
            if is_count {
                return Ok(Agg::Number(self.add(State::Distinct(Box::new(distinct)), filter)));
            }
            // Which of equal values comes first, and what is made of them one after the other, hangs on the order.
            let same = match &*name {
                "min" | "max" => spec.collation.is_binary() && coll.is_binary() && is_exact(ex, s),
                "sum" | "total" | "avg" => bounds(ex).is_some_and(proven),
                _ => false,
            };
            if free && !same {
                return Err(because("an aggregate that depends on the order of an index"));
            }
            return self.any(spec, args, Some(distinct), filter, s);
        }
        if is_count && args.is_empty() {
            return Ok(Agg::Number(match filter {
                None => self.rows(),
                some => self.add(State::Rows(Vec::new()), some),
            }));
        }
        let [ex] = args else {
            return if free {
                Err(because("an aggregate that depends on the order of an index"))
            } else {
                self.any(spec, args, None, filter, s)
            };
        };
        let all = bounds(ex);
        if is_count {
            return Ok(Agg::Number(match (all, filter) {
                (Some((_, _, false)), None) => self.rows(),
                (_, filter) => self.add(State::Count { node: Node::of(ex, s)?, n: Vec::new() }, filter),
            }));
        }
        match (sum_kind(&name), all) {
            (Some(kind), Some(b)) if proven(b) => {
                let (base, plus) = match (split(ex), &filter) {
                    ((x, k), None) if bounds(x).is_some_and(proven) => (x, k),
                    _ => (ex, 0),
                };
                let slot = if let (Ex::Slot(i), None) = (base, &filter) { Some(*i) } else { None };
                let nulls = bounds(base).is_some_and(|b| b.2);
                if let Some((_, state)) = slot.and_then(|i| sums.iter().find(|x| x.0 == i)) {
                    let sum = *state;
                    let n = if nulls { sum } else { self.rows() };
                    return Ok(Agg::Sum { sum, n, plus, kind });
                }
                if filter.is_some() {
                    // What it lets through has to be counted beside.
                    return self.any(spec, args, None, filter, s);
                }
                if let Some(i) = slot {
                    sums.push((i, self.list.len()));
                }
                if !nulls {
                    let sum = self.add(State::Ints { node: Node::of(base, s)?, sum: Vec::new() }, None);
                    return Ok(Agg::Sum { sum, n: self.rows(), plus, kind });
                }
                let state = State::Known { node: Node::of(base, s)?, sum: Vec::new(), n: Vec::new() };
                let sum = self.add(state, None);
                return Ok(Agg::Sum { sum, n: sum, plus, kind });
            }
            (Some(_), _) if is_real(ex, s) && !free => {
                let state = State::Reals { ex: Node::of(ex, s)?, sums: Vec::new() };
                let sum = self.add(state, filter);
                let kind = sum_kind(&name).ok_or(Code::Internal)?;
                return Ok(Agg::Sum { sum, n: usize::MAX, plus: 0, kind });
            }
            (Some(kind), _) if is_real(ex, s) => {
                let sum = self.add(State::FreeReals { ex: Node::of(ex, s)?, sums: Vec::new() }, filter);
                return Ok(Agg::Sum { sum, n: usize::MAX, plus: 0, kind });
            }
            (Some(kind), Some(_)) if free => {
                let sum = self.add(State::Wide { node: Node::of(ex, s)?, sums: Vec::new(), kind }, filter);
                return Ok(Agg::Sum { sum, n: usize::MAX, plus: 0, kind });
            }
            _ => {}
        }
        if let ("min" | "max", Some(_)) = (&*name, all) {
            let max = name == "max";
            let state = State::BestInt { node: Node::of(ex, s)?, best: Vec::new(), seen: Vec::new(), max };
            return Ok(Agg::Value(self.add(state, filter)));
        }
        // Of zeros of two signs the first one is taken.
        if let ("min" | "max", true, false) = (&*name, is_real(ex, s), free) {
            let (node, max) = (Node::of(ex, s)?, name == "max");
            let state = State::BestReal { node, best: Vec::new(), seen: Vec::new(), max };
            return Ok(Agg::Value(self.add(state, filter)));
        }
        if let ("min" | "max", Ex::Slot(slot), true) = (&*name, ex, spec.collation.is_binary()) {
            let (t, c) = s.places.at[*slot];
            let max = name == "max";
            let dict = &s.cols[t].loaded.dicts[c];
            let plain = s.cols[t].kinds[c] == Kind::Dict && dict.is_plain();
            if self.one && plain {
                let seen = Bits::new(dict.len())?;
                return Ok(Agg::Value(self.add(State::Codes { slot: *slot, seen, max }, filter)));
            }
            if plain || s.cols[t].kinds[c] != Kind::Real || !free {
                let state =
                    State::Best { slot: *slot, best: Vec::new(), rows: Vec::new(), max, met: (false, false) };
                return Ok(Agg::Value(self.add(state, filter)));
            }
        }
        if free {
            return Err(because("an aggregate that depends on the order of an index"));
        }
        self.any(spec, args, None, filter, s)
    }

    fn any(
        &mut self,
        spec: &AggSpec,
        args: &[Ex],
        distinct: Option<Distinct>,
        filter: Option<Truth>,
        s: &Scope<'_>,
    ) -> Result<Agg> {
        let Implementation::Aggregate(make) = &spec.function.imp else { return Err(Code::Internal.into()) };
        let args: Result<Vec<Node>> = args.iter().map(|a| Node::of(a, s)).collect();
        let (make, collation) = (make.clone(), spec.collation.clone());
        let any = Any { make, states: Vec::new(), args: args?, collation, distinct };
        Ok(Agg::Value(self.add(State::Any(Box::new(any)), filter)))
    }

    /// Memory held.
    pub fn bytes(&self) -> usize {
        let of = |l: &State<'_>| match l {
            State::Rows(_) | State::Count { .. } | State::Ints { .. } => self.groups * 8,
            State::BestInt { .. } | State::BestReal { .. } => self.groups * 9,
            State::Known { .. } => self.groups * 16,
            State::Reals { .. } => self.groups * 24,
            State::Best { .. } => self.groups * 28,
            State::FreeReals { .. } => self.groups * size_of::<FreeSum>(),
            State::Wide { .. } => self.groups * size_of::<WideSum>(),
            State::Codes { .. } => 0,
            State::Distinct(d) => d.bytes(),
            // A function's own state lies elsewhere.
            State::Any(a) => self.groups * 96 + a.distinct.as_ref().map_or(0, Distinct::bytes),
        };
        self.list.iter().map(of).sum()
    }

    /// Room for so many groups.
    pub fn grow(&mut self, groups: usize) {
        self.groups = groups;
        for l in &mut self.list {
            match l {
                State::Rows(n) | State::Count { n, .. } => n.resize(groups, 0),
                State::Ints { sum, .. } => sum.resize(groups, 0),
                State::Known { sum, n, .. } => {
                    sum.resize(groups, 0);
                    n.resize(groups, 0);
                }
                State::Reals { sums, .. } => sums.resize(groups, RealSum::default()),
                State::FreeReals { sums, .. } => sums.resize(groups, FreeSum::default()),
                State::Wide { sums, .. } => sums.resize(groups, WideSum::default()),
                State::BestInt { best, seen, .. } => {
                    best.resize(groups, 0);
                    seen.resize(groups, false);
                }
                State::BestReal { best, seen, .. } => {
                    best.resize(groups, 0.0);
                    seen.resize(groups, false);
                }
                State::Best { best, rows, .. } => {
                    best.resize(groups, None);
                    rows.resize(groups, NONE);
                }
                State::Codes { .. } => {}
                State::Distinct(d) => d.n.resize(groups, 0),
                State::Any(a) => {
                    a.states.resize_with(groups, || None);
                    if let Some(d) = &mut a.distinct {
                        d.n.resize(groups, 0);
                    }
                }
            }
        }
    }

    /// Takes in a block of rows, whose groups are `at`.
    pub fn push(&mut self, b: &Batch<'a>, at: &[u32], s: &Scope<'_>) -> Result<()> {
        for (state, filter) in self.list.iter_mut().zip(&self.filters) {
            let Some(f) = filter else {
                state.push(b, at, self.one, s)?;
                continue;
            };
            let holds = f.test(b, s)?;
            let places: Vec<usize> = (0..holds.len()).filter(|i| holds[*i]).collect();
            if !places.is_empty() {
                // Without keys there are no numbers of groups.
                let kept: Vec<u32> = places.iter().filter_map(|i| at.get(*i)).copied().collect();
                state.push(&b.only(&places), &kept, self.one, s)?;
            }
        }
        Ok(())
    }

    /// Whether rows in another order could have given something else.
    pub fn depends_on_order(&self) -> bool {
        self.list.iter().any(|l| match l {
            State::Best { met, .. } => *met == (true, true),
            State::FreeReals { sums, .. } => sums.iter().any(|s| s.value().is_none()),
            State::Wide { sums, kind: SumKind::Sum, .. } => sums.iter().any(|s| s.whole().is_none()),
            State::Wide { sums, .. } => sums.iter().any(|s| s.real().is_none()),
            _ => false,
        })
    }

    /// The value of an aggregate in a group.
    pub fn value(&mut self, agg: usize, g: usize, s: &Scope<'_>) -> Result<Value> {
        Ok(match &self.aggs[agg] {
            Agg::Number(i) => match &self.list[*i] {
                State::Rows(n) | State::Count { n, .. } => Value::Int(n[g]),
                State::Distinct(d) => Value::Int(d.count(g, self.one, s)),
                _ => return Err(Code::Internal.into()),
            },
            Agg::Sum { sum, n, plus, kind } => {
                let real = |value: f64, n: i64| match kind {
                    SumKind::Total => Value::real(value),
                    _ if n == 0 => Value::Null,
                    SumKind::Sum => Value::real(value),
                    SumKind::Avg => Value::real(value / n as f64),
                };
                // A sum that is not proven is not asked for.
                let (sum, n) = match (&self.list[*sum], self.list.get(*n)) {
                    (State::Reals { sums, .. }, _) => return Ok(real(sums[g].value(), sums[g].count())),
                    (State::FreeReals { sums, .. }, _) => {
                        let value = sums[g].value().ok_or(Code::Internal)?;
                        return Ok(real(value, sums[g].count()));
                    }
                    (State::Wide { sums, kind: SumKind::Sum, .. }, _) => {
                        (sums[g].whole().ok_or(Code::Internal)?, sums[g].count())
                    }
                    (State::Wide { sums, .. }, _) => {
                        let value = sums[g].real().ok_or(Code::Internal)?;
                        return Ok(real(value, sums[g].count()));
                    }
                    (State::Ints { sum, .. }, Some(State::Rows(n))) => (sum[g], n[g]),
                    (State::Known { sum, n, .. }, _) => (sum[g], n[g]),
                    _ => return Err(Code::Internal.into()),
                };
                let sum = sum + plus * n;
                match kind {
                    SumKind::Total => Value::Real(sum as f64),
                    _ if n == 0 => Value::Null,
                    SumKind::Sum => Value::Int(sum),
                    SumKind::Avg => Value::real(sum as f64 / n as f64),
                }
            }
            Agg::Value(i) => match &mut self.list[*i] {
                State::BestInt { best, seen, .. } => {
                    if seen[g] {
                        Value::Int(best[g])
                    } else {
                        Value::Null
                    }
                }
                State::BestReal { best, seen, .. } => match seen[g] {
                    true => Value::real(best[g]),
                    false => Value::Null,
                },
                State::Best { best, .. } => best[g].map_or(Ok(Value::Null), Field::value)?,
                State::Codes { slot, seen, max } => {
                    let (t, c) = s.places.at[*slot];
                    let dict = &s.cols[t].loaded.dicts[c];
                    let mut best: Option<Field<'_>> = None;
                    for code in (0..dict.len()).filter(|c| seen.has(*c)) {
                        better(&mut best, dict.get(code as u32), *max)?;
                    }
                    best.map_or(Ok(Value::Null), Field::value)?
                }
                State::Any(a) => {
                    let mut aux = AuxData::default();
                    let mut ctx = Context {
                        host: s.eval.host(),
                        collation: &a.collation,
                        aux: &mut aux,
                        pure: None,
                        cursor: None,
                    };
                    let make = &a.make;
                    a.states[g].get_or_insert_with(|| make()).value(&mut ctx)?
                }
                _ => return Err(Code::Internal.into()),
            },
        })
    }

    /// Computes what may fail in some group: an error is one of the query, whether the group is wanted or not.
    pub fn check(&mut self, s: &Scope<'_>) -> Result<()> {
        for agg in 0..self.aggs.len() {
            if let Agg::Value(i) = self.aggs[agg]
                && matches!(self.list[i], State::Any(_))
            {
                (0..self.groups).try_for_each(|g| self.value(agg, g, s).map(|_| ()))?;
            }
        }
        Ok(())
    }

    /// The column and the rows that have the values of an aggregate, if they are those of rows; [`NONE`] is NULL.
    pub fn rows_of(&self, agg: usize) -> Option<(usize, &[u32])> {
        match self.aggs.get(agg)? {
            Agg::Value(i) => match &self.list[*i] {
                State::Best { slot, rows, .. } => Some((*slot, rows)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The values of an aggregate as integers, if they are held as such and none is NULL.
    pub fn numbers(&self, agg: usize) -> Option<&[i64]> {
        match self.aggs.get(agg)? {
            Agg::Number(i) => match &self.list[*i] {
                State::Rows(n) | State::Count { n, .. } => Some(n),
                State::Distinct(d) if !self.one => Some(&d.n),
                _ => None,
            },
            Agg::Sum { sum, plus: 0, kind: SumKind::Sum, n } => match (&self.list[*sum], self.list.get(*n)) {
                // The one group of all rows is there without any.
                (State::Ints { sum, .. }, Some(State::Rows(n))) if !self.one || n[0] > 0 => Some(sum),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Takes a value if it is the better one, and answers whether it was; NULL never is.
#[inline]
fn better<'a>(best: &mut Option<Field<'a>>, f: Field<'a>, max: bool) -> Result<bool> {
    if matches!(f, Field::Null) {
        return Ok(false);
    }
    let take = match best {
        None => true,
        Some(b) => {
            let o = compare_by(f, *b, &BINARY)?;
            if max { o.is_gt() } else { o.is_lt() }
        }
    };
    if take {
        *best = Some(f);
    }
    Ok(take)
}

/// Counts the rows of a block that `here` lets through, by group.
fn count(n: &mut [i64], rows: usize, at: &[u32], one: bool, here: impl Fn(usize) -> bool) {
    match one {
        true => n[0] += (0..rows).map(|i| here(i) as i64).sum::<i64>(),
        false => at.iter().enumerate().for_each(|(i, g)| n[*g as usize] += here(i) as i64),
    }
}

/// Adds a block's integers, by group.
fn add(sum: &mut [i64], values: &[i64], at: &[u32], one: bool) {
    match one {
        true => sum[0] += values.iter().sum::<i64>(),
        false => at.iter().zip(values).for_each(|(g, x)| sum[*g as usize] += x),
    }
}

/// Takes the better ones of a block's numbers, by group; of equal ones the first stays.
fn extremes<T: Copy + PartialOrd>(
    (values, nulls): (&[T], &[bool]),
    at: &[u32],
    one: bool,
    max: bool,
    best: &mut [T],
    seen: &mut [bool],
) {
    for (i, x) in values.iter().enumerate() {
        let g = if one { 0 } else { at[i] as usize };
        let null = nulls.get(i) == Some(&true);
        if !null && (!seen[g] || if max { *x > best[g] } else { *x < best[g] }) {
            best[g] = *x;
            seen[g] = true;
        }
    }
}

impl<'a> State<'a> {
    fn push(&mut self, b: &Batch<'a>, at: &[u32], one: bool, s: &Scope<'_>) -> Result<()> {
        match self {
            State::Rows(n) if one => n[0] += b.outer.len() as i64,
            State::Rows(n) => at.iter().for_each(|g| n[*g as usize] += 1),
            State::Count { node, n } => match node.values(b, s)? {
                Vector::Ints(Ints { nulls, .. }) | Vector::Reals(Reals { nulls, .. }) => {
                    let here = |i: usize| nulls.get(i) != Some(&true);
                    count(n, b.outer.len(), at, one, here);
                }
                v => count(n, b.outer.len(), at, one, |i| !matches!(v.get(i), Field::Null)),
            },
            State::Known { node, sum, n } => {
                let Vector::Ints(v) = node.values(b, s)? else { return Err(Code::Internal.into()) };
                if v.nulls.is_empty() {
                    count(n, v.values.len(), at, one, |_| true);
                    add(sum, &v.values, at, one);
                    return Ok(());
                }
                for (i, (x, null)) in v.values.iter().zip(&v.nulls).enumerate() {
                    let g = if one { 0 } else { at[i] as usize };
                    let known = !null as i64;
                    n[g] += known;
                    sum[g] += x & -known;
                }
            }
            State::Ints { node, sum } => {
                let Vector::Ints(v) = node.values(b, s)? else { return Err(Code::Internal.into()) };
                add(sum, &v.values, at, one);
            }
            State::Reals { ex, sums } => {
                let Vector::Reals(v) = ex.values(b, s)? else { return Err(Code::Internal.into()) };
                match (one, v.nulls.is_empty()) {
                    (true, true) => sums[0].add_all(&v.values),
                    (false, true) => add_runs(sums, at, &v.values),
                    (_, false) => {
                        for (i, (x, null)) in v.values.iter().zip(&v.nulls).enumerate() {
                            let g = if one { 0 } else { at[i] as usize };
                            if !null {
                                sums[g].add(*x);
                            }
                        }
                    }
                }
            }
            State::FreeReals { ex, sums } => {
                let Vector::Reals(v) = ex.values(b, s)? else { return Err(Code::Internal.into()) };
                for (i, x) in v.values.iter().enumerate() {
                    if v.nulls.get(i) != Some(&true) {
                        sums[if one { 0 } else { at[i] as usize }].add(*x);
                    }
                }
            }
            State::Wide { node, sums, .. } => {
                let Vector::Ints(v) = node.values(b, s)? else { return Err(Code::Internal.into()) };
                for (i, x) in v.values.iter().enumerate() {
                    if v.nulls.get(i) != Some(&true) {
                        sums[if one { 0 } else { at[i] as usize }].add(*x);
                    }
                }
            }
            State::BestInt { node, best, seen, max } => {
                if let (true, Node::Ints(Ex::Slot(slot)), true) = (one, &*node, seen[0]) {
                    // A segment that has no better one need not be looked at.
                    let (t, c) = b.places.at[*slot];
                    let chunk = &b.cols[t].loaded.parts[b.part].cols[c];
                    if if *max { chunk.max <= best[0] } else { chunk.min >= best[0] } {
                        return Ok(());
                    }
                }
                let Vector::Ints(v) = node.values(b, s)? else { return Err(Code::Internal.into()) };
                extremes((&v.values, &v.nulls), at, one, *max, best, seen);
            }
            State::BestReal { node, best, seen, max } => {
                let Vector::Reals(v) = node.values(b, s)? else { return Err(Code::Internal.into()) };
                extremes((&v.values, &v.nulls), at, one, *max, best, seen);
            }
            State::Best { slot, best, rows, max, met } => {
                let start = b.cols[0].loaded.parts[b.part].start as u32;
                for (i, f) in column(*slot, b)?.into_iter().enumerate() {
                    met.0 |= matches!(f, Field::Int(_));
                    met.1 |= matches!(f, Field::Real(_));
                    let g = if one { 0 } else { at[i] as usize };
                    if better(&mut best[g], f, *max)? {
                        rows[g] = start + b.outer[i];
                    }
                }
            }
            State::Codes { slot, seen, .. } => {
                let (t, c) = b.places.at[*slot];
                let Data::Dict { codes } = &b.cols[t].loaded.parts[b.part].cols[c].data else {
                    return Err(Code::Internal.into());
                };
                codes.each(&b.outer, |code| {
                    seen.set(code as usize);
                });
            }
            State::Distinct(d) => d.push(b, at, s, &mut |_, _| Ok(()))?,
            State::Any(a) => a.push(b, at, one, s)?,
        }
        Ok(())
    }
}

impl Any {
    fn push(&mut self, b: &Batch<'_>, at: &[u32], one: bool, s: &Scope<'_>) -> Result<()> {
        let Any { make, states, args, collation, distinct } = self;
        let mut vectors = Vec::new();
        for a in args.iter() {
            vectors.push(a.values(b, s)?);
        }
        if let (true, None, [v]) = (one, &distinct, &vectors[..])
            && let Some(list) = v.whole_ints()
            && states[0].get_or_insert_with(|| make()).step_ints(&list)
        {
            return Ok(());
        }
        let mut aux = AuxData::default();
        let mut given: Vec<Value> = vec![Value::Null; vectors.len()];
        let mut step = |i: usize, g: u32| -> Result<()> {
            for (to, v) in given.iter_mut().zip(&mut vectors) {
                v.take(i, to)?;
            }
            let state = states[g as usize].get_or_insert_with(|| make());
            if state.quick_step(&given) {
                return Ok(());
            }
            let mut ctx = Context { host: s.eval.host(), collation, aux: &mut aux, pure: None, cursor: None };
            state.step(&mut ctx, &given)
        };
        match distinct {
            Some(d) => d.push(b, at, s, &mut |i, g| step(i, g)),
            None => (0..b.outer.len()).try_for_each(|i| step(i, if one { 0 } else { at[i] })),
        }
    }
}

/// Whether values that compare equal are the same: integers, or a dictionary's texts.
fn is_exact(ex: &Ex, s: &Scope<'_>) -> bool {
    let texts = |slot: usize| {
        let (t, c) = s.places.at[slot];
        s.cols[t].kinds[c] == Kind::Dict && s.cols[t].loaded.dicts[c].is_plain()
    };
    bounds(ex, s).is_some() || matches!(ex, Ex::Slot(slot) if texts(*slot))
}
