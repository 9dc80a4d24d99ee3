//! Groups and their aggregates.
//!
//! A group's number is computed from one small number for each key: a code, an integer less the least, the number of a
//! combination of an inner table's columns, or what a dictionary of computed values says. Where the product of these is
//! small, the states are arrays indexed by it; else it is looked up in a hash table. Sums of integers for which bounds
//! prove that no partial sum can overflow are added without looking; everything else is computed by the functions
//! themselves, row by row, in the order of the rows.

use crate::ask::{AggSpec, Query};
use crate::batch::{Batch, BatchRow, Ints, Places, int_bounds};
use crate::chunk::{Codes, Data, Dict, Field};
use crate::expr::{Eval, Ex, Row};
use crate::join::{Inner, NONE};
use crate::pred::{Columns, Kind};
use iolite_base::hash::{FastMap, FastSet};
use iolite_base::{Code, Result, alloc};
use iolite_ext::{Aggregate, AuxData, Context, FunctionFlags, Implementation};
use iolite_value::{Collation, Value, compare};

/// The most groups whose states are arrays by number.
const DENSE: u64 = 1 << 22;

/// Where some of the keys come from.
enum Source {
    /// Columns of an inner table: each row's combination has a number.
    Inner {
        table: usize,
        keys: Vec<usize>,
        /// By row of the inner table.
        numbers: Vec<u32>,
        /// Each combination's values.
        values: Vec<Vec<Value>>,
        /// The combination of a row of NULLs.
        null: u32,
    },
    /// An integer column of the outer table.
    Int { key: usize, col: usize, min: i64, nullable: bool },
    /// A column of the outer table with a dictionary.
    Dict { key: usize, col: usize },
    /// Anything.
    Any { key: usize, dict: Dict },
}

/// How an aggregate is computed.
enum Acc {
    /// `count(*)`, and `count(x)` where x is never NULL.
    Rows,
    /// `count(x)`.
    Count { ex: Ex, n: Vec<i64> },
    /// `sum`, `total`, `avg` of integers.
    Sum { ex: Ex, sum: Vec<i64>, n: Option<Vec<i64>>, kind: SumKind },
    /// `min`, `max` of integers.
    Best { ex: Ex, best: Vec<i64>, seen: Vec<bool>, max: bool },
    /// By the function's own code.
    Any { states: Vec<Option<Box<dyn Aggregate>>>, seen: FastSet<(u32, u32)>, dict: Dict },
}

#[derive(Clone, Copy, PartialEq)]
enum SumKind {
    Sum,
    Total,
    Avg,
}

/// The groups of a query.
pub(crate) struct Groups<'q> {
    q: &'q Query,
    keys: Vec<Ex>,
    aggs: Vec<(Vec<Ex>, Option<Ex>)>,
    sources: Vec<Source>,
    radix: Vec<u64>,
    /// States are arrays by number.
    dense: bool,
    index: Index,
    /// Rows of each group.
    rows: Vec<i64>,
    accs: Vec<Acc>,
    numbers: Vec<u64>,
    at: Vec<u32>,
    ints: Ints,
}

/// Group numbers that lie far apart, by a hash table.
#[derive(Default)]
struct Index {
    slots: Vec<u32>,
    numbers: Vec<u64>,
}

impl Index {
    #[inline]
    fn find(&mut self, number: u64) -> Result<u32> {
        if (self.numbers.len() + 1) * 2 > self.slots.len() {
            self.grow()?;
        }
        let mask = self.slots.len() - 1;
        let mut at = Index::home(number) & mask;
        loop {
            match self.slots[at] {
                0 => break,
                g if self.numbers[g as usize - 1] == number => return Ok(g - 1),
                _ => at = (at + 1) & mask,
            }
        }
        alloc::reserve(&mut self.numbers, 1)?;
        self.numbers.push(number);
        self.slots[at] = self.numbers.len() as u32;
        Ok(self.numbers.len() as u32 - 1)
    }

    #[inline(always)]
    fn home(number: u64) -> usize {
        let m = number.wrapping_add(1) as u128 * 0x9e37_79b9_7f4a_7c15;
        ((m as u64) ^ (m >> 64) as u64) as usize
    }

    fn grow(&mut self) -> Result<()> {
        let n = (self.slots.len() * 2).max(1024);
        let mut slots = crate::chunk::room(n)?;
        slots.resize(n, 0u32);
        for (i, number) in self.numbers.iter().enumerate() {
            let mut at = Index::home(*number) & (n - 1);
            while slots[at] != 0 {
                at = (at + 1) & (n - 1);
            }
            slots[at] = i as u32 + 1;
        }
        self.slots = slots;
        Ok(())
    }
}

/// What building groups needs to know.
pub(crate) struct Setting<'a> {
    pub cols: &'a [Columns],
    pub places: &'a Places,
    pub inners: &'a [Option<Inner>],
    pub eval: &'a Eval<'a>,
    /// Rows come in the order of the planner's loops.
    pub in_order: bool,
    /// Each outer row meets at most one inner row of each table.
    pub single: bool,
}

fn zeros(n: usize) -> Vec<i64> {
    vec![0; n]
}

impl<'q> Groups<'q> {
    /// Prepares. `None`: the form is not known here.
    pub fn new(
        q: &'q Query,
        keys: Vec<Ex>,
        aggs: Vec<(Vec<Ex>, Option<Ex>)>,
        s: &Setting<'_>,
    ) -> Result<Option<Groups<'q>>> {
        let mut g = Groups {
            q,
            keys,
            aggs,
            sources: Vec::new(),
            radix: Vec::new(),
            dense: true,
            index: Index::default(),
            rows: Vec::new(),
            accs: Vec::new(),
            numbers: Vec::new(),
            at: Vec::new(),
            ints: Ints::default(),
        };
        g.find_sources(s)?;
        let mut product: u64 = 1;
        for r in &g.radix {
            match product.checked_mul((*r).max(1)) {
                Some(p) => product = p,
                None => return Ok(None),
            }
        }
        let outer = s.cols[s.places.outer].loaded.rows as u64;
        g.dense = product <= DENSE.min((outer * 2).max(1 << 16))
            && !g.sources.iter().any(|s| matches!(s, Source::Any { .. }));
        let n = if g.dense { product as usize } else { 0 };
        g.rows = zeros(n);
        for i in 0..q.aggs.len() {
            match g.accumulator(&q.aggs[i], i, s, n) {
                Some(a) => g.accs.push(a),
                None => return Ok(None),
            }
        }
        Ok(Some(g))
    }

    fn find_sources(&mut self, s: &Setting<'_>) -> Result<()> {
        let outer = s.places.outer;
        for (k, ex) in self.keys.clone().iter().enumerate() {
            let mut tables: Vec<usize> = Vec::new();
            ex.slots(&mut |i| {
                let t = s.places.at[i].0;
                if !tables.contains(&t) {
                    tables.push(t);
                }
            });
            match tables[..] {
                [t] if t != outer => {
                    let known = self.sources.iter_mut().find_map(|x| match x {
                        Source::Inner { table, keys, .. } if *table == t => Some(keys),
                        _ => None,
                    });
                    match known {
                        Some(keys) => keys.push(k),
                        None => self.sources.push(Source::Inner {
                            table: t,
                            keys: vec![k],
                            numbers: Vec::new(),
                            values: Vec::new(),
                            null: 0,
                        }),
                    }
                    continue;
                }
                _ => {}
            }
            let plain = match ex {
                Ex::Slot(i) if tables == [outer] => Some(s.places.at[*i].1),
                _ => None,
            };
            let cols = &s.cols[outer];
            let source = match plain {
                Some(col) if cols.kinds[col] == Kind::Int => {
                    let (min, max) = cols.bounds[col];
                    let span = max.checked_sub(min).filter(|d| *d < 1 << 40);
                    match span {
                        Some(_) => Source::Int { key: k, col, min, nullable: cols.nullable[col] },
                        None => Source::Any { key: k, dict: Dict::default() },
                    }
                }
                Some(col) if cols.kinds[col] == Kind::Dict => Source::Dict { key: k, col },
                _ => Source::Any { key: k, dict: Dict::default() },
            };
            self.sources.push(source);
        }
        for i in 0..self.sources.len() {
            let radix = self.number_source(i, s)?;
            self.radix.push(radix);
        }
        Ok(())
    }

    /// Numbers the combinations of an inner table; answers how many numbers a source has.
    fn number_source(&mut self, i: usize, s: &Setting<'_>) -> Result<u64> {
        let own = &self.keys;
        Ok(match &mut self.sources[i] {
            Source::Int { col, min, nullable, .. } => {
                let max = s.cols[s.places.outer].bounds[*col].1;
                (max - *min + 1).max(0) as u64 + *nullable as u64
            }
            Source::Dict { col, .. } => s.cols[s.places.outer].loaded.dicts[*col].len() as u64,
            Source::Any { .. } => 1 << 18,
            Source::Inner { table, keys, numbers, values, null } => {
                let cols = &s.cols[*table];
                let inner = s.inners[*table].as_ref().ok_or(Code::Internal)?;
                *numbers = crate::chunk::room(cols.loaded.rows)?;
                numbers.resize(cols.loaded.rows, 0);
                let mut combine: FastMap<(u32, u32), u32> = FastMap::default();
                // One key after the other: the number so far and the key's own make a new one.
                for (n, k) in keys.iter().enumerate() {
                    let mut now: Vec<Vec<Value>> = Vec::new();
                    let mut dict = Dict::default();
                    // Numbers of entries of the column's own dictionary, where the key is such a column.
                    let plain = match &own[*k] {
                        Ex::Slot(slot) => Some(s.places.at[*slot].1),
                        _ => None,
                    };
                    let mut of_code: Vec<u32> = match plain {
                        Some(c) if cols.kinds[c] == Kind::Dict => vec![NONE; cols.loaded.dicts[c].len()],
                        _ => Vec::new(),
                    };
                    combine.clear();
                    for &row in &inner.passed {
                        let (p, r) = cols.locate(row as usize);
                        let part = &cols.loaded.parts[p];
                        let mut code = NONE;
                        if let (Some(c), false) = (plain, of_code.is_empty())
                            && let Data::Dict { codes } = &part.cols[c].data
                        {
                            let raw = codes.get(r) as usize;
                            if of_code[raw] == NONE {
                                let f = cols.loaded.dicts[c].get(raw as u32);
                                of_code[raw] = dict.code(f)?.ok_or(Code::Internal)?;
                            }
                            code = of_code[raw];
                        }
                        if code == NONE {
                            let v = s.eval.value(&own[*k], &cols.row(part, r, &s.places.of_table[*table]))?;
                            code = dict.code(Field::of(&v))?.ok_or(Code::Internal)?;
                        }
                        let before = numbers[row as usize];
                        if n == 0 {
                            numbers[row as usize] = code;
                            continue;
                        }
                        let next = combine.len() as u32;
                        let number = *combine.entry((before, code)).or_insert(next);
                        if number == next {
                            let mut v = values[before as usize].clone();
                            v.push(dict.get(code).value()?);
                            now.push(v);
                        }
                        numbers[row as usize] = number;
                    }
                    if n == 0 {
                        for c in 0..dict.len() as u32 {
                            now.push(vec![dict.get(c).value()?]);
                        }
                    }
                    *values = now;
                }
                *null = values.len() as u32;
                if s.cols.len() > *table {
                    let row: Result<Vec<Value>> =
                        keys.iter().map(|k| s.eval.value(&own[*k], &NullRow)).collect();
                    values.push(row?);
                }
                values.len() as u64
            }
        })
    }

    fn accumulator(&self, a: &AggSpec, i: usize, s: &Setting<'_>, n: usize) -> Option<Acc> {
        let name = a.function.name.to_ascii_lowercase();
        let (args, filter) = &self.aggs[i];
        let plain = a.distinct.is_none() && filter.is_none();
        let nulls_of = |t: usize| self.q.tables[t].left;
        if plain && a.function.flags.has(FunctionFlags::COUNT) && args.is_empty() {
            return Some(Acc::Rows);
        }
        if plain && args.len() == 1 {
            let bounds = int_bounds(&args[0], s.cols, s.places, &nulls_of);
            let ex = || args[0].clone();
            match (&*name, bounds) {
                ("count", Some((_, _, false))) => return Some(Acc::Rows),
                ("count", Some(_)) => return Some(Acc::Count { ex: ex(), n: zeros(n) }),
                ("sum" | "total" | "avg", Some((lo, hi, null))) if s.single => {
                    let rows = s.cols[s.places.outer].loaded.rows as i128;
                    let most = (lo as i128).abs().max((hi as i128).abs());
                    if most * rows < 1 << 62 {
                        let kind = match &*name {
                            "sum" => SumKind::Sum,
                            "total" => SumKind::Total,
                            _ => SumKind::Avg,
                        };
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
        let counts = name == "count";
        if !s.in_order && !counts {
            return None;
        }
        let mut states = Vec::new();
        states.resize_with(n, || None);
        Some(Acc::Any { states, seen: FastSet::default(), dict: Dict::default() })
    }

    /// Takes rows in.
    pub fn add(&mut self, b: &Batch<'_>, s: &Setting<'_>) -> Result<()> {
        let n = b.outer.len();
        self.numbers.clear();
        alloc::reserve(&mut self.numbers, n)?;
        self.numbers.resize(n, 0);
        for i in 0..self.sources.len() {
            self.number_rows(i, b, s)?;
        }
        self.at.clear();
        alloc::reserve(&mut self.at, n)?;
        if self.dense {
            self.at.extend(self.numbers.iter().map(|n| *n as u32));
        } else {
            for number in &self.numbers {
                let g = self.index.find(*number)?;
                self.at.push(g);
            }
            let groups = self.index.numbers.len();
            if groups > self.rows.len() {
                self.grow(groups)?;
            }
        }
        for g in &self.at {
            self.rows[*g as usize] += 1;
        }
        for k in 0..self.accs.len() {
            self.accumulate(k, b, s)?;
        }
        Ok(())
    }

    fn grow(&mut self, groups: usize) -> Result<()> {
        let more = groups - self.rows.len();
        alloc::reserve(&mut self.rows, more)?;
        self.rows.resize(groups, 0);
        for a in &mut self.accs {
            match a {
                Acc::Rows => {}
                Acc::Count { n, .. } => n.resize(groups, 0),
                Acc::Sum { sum, n, .. } => {
                    sum.resize(groups, 0);
                    if let Some(n) = n {
                        n.resize(groups, 0);
                    }
                }
                Acc::Best { best, seen, .. } => {
                    best.resize(groups, 0);
                    seen.resize(groups, false);
                }
                Acc::Any { states, .. } => states.resize_with(groups, || None),
            }
        }
        Ok(())
    }

    /// Adds the numbers of one source.
    fn number_rows(&mut self, i: usize, b: &Batch<'_>, s: &Setting<'_>) -> Result<()> {
        let radix = self.radix[i];
        let out = &mut self.numbers;
        let outer = s.places.outer;
        match &mut self.sources[i] {
            Source::Inner { table, numbers, null, .. } => {
                let null = *null as u64;
                for (o, row) in out.iter_mut().zip(&b.inner[*table]) {
                    let n = if *row == NONE { null } else { numbers[*row as usize] as u64 };
                    *o = *o * radix + n;
                }
            }
            Source::Int { col, min, nullable, .. } => {
                let chunk = &s.cols[outer].loaded.parts[b.part].cols[*col];
                let one = *nullable as u64;
                if let (Data::Int { base, nulls: false, codes }, false) = (&chunk.data, *nullable) {
                    let shift = (base - *min) as u64;
                    let rows = out.iter_mut().zip(&b.outer);
                    match codes {
                        Codes::U8(c) => {
                            rows.for_each(|(o, r)| *o = *o * radix + shift + c[*r as usize] as u64)
                        }
                        Codes::U16(c) => {
                            rows.for_each(|(o, r)| *o = *o * radix + shift + c[*r as usize] as u64)
                        }
                        Codes::U32(c) => {
                            rows.for_each(|(o, r)| *o = *o * radix + shift + c[*r as usize] as u64)
                        }
                    }
                } else {
                    for (o, r) in out.iter_mut().zip(&b.outer) {
                        let n = chunk.int(*r as usize).map_or(0, |v| (v - *min) as u64 + one);
                        *o = *o * radix + n;
                    }
                }
            }
            Source::Dict { col, .. } => {
                let chunk = &s.cols[outer].loaded.parts[b.part].cols[*col];
                let Data::Dict { codes } = &chunk.data else { return Err(Code::Internal.into()) };
                for (o, r) in out.iter_mut().zip(&b.outer) {
                    *o = *o * radix + codes.get(*r as usize) as u64;
                }
            }
            Source::Any { key, dict } => {
                for (j, o) in out.iter_mut().enumerate() {
                    let v = s.eval.value(&self.keys[*key], &BatchRow { batch: b, i: j })?;
                    let code = dict.code(Field::of(&v))?.ok_or(Code::Internal)?;
                    *o = *o * radix + code as u64;
                }
            }
        }
        Ok(())
    }

    fn accumulate(&mut self, k: usize, b: &Batch<'_>, s: &Setting<'_>) -> Result<()> {
        let (at, ints) = (&self.at, &mut self.ints);
        match &mut self.accs[k] {
            Acc::Rows => {}
            Acc::Count { ex, n } => {
                Ints::of(ex, b, ints)?;
                for (i, g) in at.iter().enumerate() {
                    n[*g as usize] += !ints.nulls.get(i).copied().unwrap_or(false) as i64;
                }
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
                        continue;
                    }
                    if !seen[g] || (*max && *v > best[g]) || (!*max && *v < best[g]) {
                        best[g] = *v;
                        seen[g] = true;
                    }
                }
            }
            Acc::Any { states, seen, dict } => {
                let (args, filter) = &self.aggs[k];
                let spec = &self.q.aggs[k];
                let Implementation::Aggregate(make) = &spec.function.imp else {
                    return Err(Code::Internal.into());
                };
                let mut aux = AuxData::default();
                let mut given = Vec::with_capacity(args.len());
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
                        let code = distinct_code(dict, &given[0], coll)?;
                        if !seen.insert((*g, code)) {
                            continue;
                        }
                    }
                    let state = states[*g as usize].get_or_insert_with(|| make());
                    let mut ctx = Context { host: s.eval.host, collation: &spec.collation, aux: &mut aux };
                    state.step(&mut ctx, &given)?;
                }
            }
        }
        Ok(())
    }

    /// The groups in the order of their keys: keys, and the aggregates' values. `None`: two groups compare equal
    /// though their keys differ, so that they are one group to everybody else.
    #[allow(clippy::type_complexity)]
    pub fn finish(mut self, s: &Setting<'_>) -> Result<Option<Vec<(Vec<Value>, Vec<Value>)>>> {
        let all = self.q.keys.is_empty();
        if all && self.rows.is_empty() {
            self.grow(1)?;
        }
        let mut out: Vec<(Vec<Value>, Vec<Value>)> = Vec::new();
        for g in 0..self.rows.len() {
            if self.rows[g] == 0 && !all {
                continue;
            }
            let number = if self.dense || all { g as u64 } else { self.index.numbers[g] };
            let keys = self.keys_of(number, s)?;
            let mut values = Vec::with_capacity(self.accs.len());
            for k in 0..self.accs.len() {
                values.push(self.value(k, g, s)?);
            }
            alloc::reserve(&mut out, 1)?;
            out.push((keys, values));
        }
        let fields = &self.q.key_fields;
        let order = |a: &[Value], b: &[Value]| {
            for ((x, y), f) in a.iter().zip(b).zip(fields) {
                let o = compare::compare(x, y, &f.coll);
                if o.is_ne() {
                    return f.direct(o, x.is_null() || y.is_null());
                }
            }
            std::cmp::Ordering::Equal
        };
        out.sort_by(|a, b| order(&a.0, &b.0));
        if out.windows(2).any(|w| order(&w[0].0, &w[1].0).is_eq()) {
            return Ok(None);
        }
        Ok(Some(out))
    }

    fn keys_of(&self, mut number: u64, s: &Setting<'_>) -> Result<Vec<Value>> {
        let mut out = vec![Value::Null; self.q.keys.len()];
        for (source, radix) in self.sources.iter().zip(&self.radix).rev() {
            let n = number % radix;
            number /= radix;
            match source {
                Source::Inner { keys, values, .. } => {
                    for (k, v) in keys.iter().zip(&values[n as usize]) {
                        out[*k] = v.clone();
                    }
                }
                Source::Int { key, min, nullable, .. } => {
                    let n = n as i64 - *nullable as i64;
                    if n >= 0 {
                        out[*key] = Value::Int(min + n);
                    }
                }
                Source::Dict { key, col } => {
                    out[*key] = s.cols[s.places.outer].loaded.dicts[*col].get(n as u32).value()?;
                }
                Source::Any { key, dict } => out[*key] = dict.get(n as u32).value()?,
            }
        }
        Ok(out)
    }

    fn value(&mut self, k: usize, g: usize, s: &Setting<'_>) -> Result<Value> {
        Ok(match &mut self.accs[k] {
            Acc::Rows => Value::Int(self.rows[g]),
            Acc::Count { n, .. } => Value::Int(n[g]),
            Acc::Sum { sum, n, kind, .. } => {
                let n = n.as_ref().map_or(self.rows[g], |n| n[g]);
                match kind {
                    SumKind::Total => Value::Real(sum[g] as f64),
                    _ if n == 0 => Value::Null,
                    SumKind::Sum => Value::Int(sum[g]),
                    SumKind::Avg => Value::real(sum[g] as f64 / n as f64),
                }
            }
            Acc::Best { best, seen, .. } => {
                if seen[g] {
                    Value::Int(best[g])
                } else {
                    Value::Null
                }
            }
            Acc::Any { states, .. } => {
                let spec = &self.q.aggs[k];
                let Implementation::Aggregate(make) = &spec.function.imp else {
                    return Err(Code::Internal.into());
                };
                let mut aux = AuxData::default();
                let mut ctx = Context { host: s.eval.host, collation: &spec.collation, aux: &mut aux };
                states[g].get_or_insert_with(|| make()).finish(&mut ctx)?
            }
        })
    }
}

/// A number that values share exactly if they compare equal.
pub(crate) fn distinct_code(dict: &mut Dict, v: &Value, coll: &Collation) -> Result<u32> {
    let folded;
    let f = match v {
        Value::Real(r) => {
            let i = *r as i64;
            if iolite_value::compare::int_real(i, *r).is_eq() { Field::Int(i) } else { Field::Real(*r) }
        }
        Value::Text(t, _) => match coll {
            Collation::Nocase => {
                folded = t.to_ascii_lowercase();
                Field::Text(&folded)
            }
            Collation::Rtrim => {
                let n = t.iter().rposition(|c| *c != b' ').map_or(0, |i| i + 1);
                Field::Text(&t[..n])
            }
            _ => Field::Text(t),
        },
        other => Field::of(other),
    };
    Ok(dict.code(f)?.ok_or(Code::Internal)?)
}

/// A row of NULLs.
struct NullRow;

impl Row for NullRow {
    fn slot(&self, _: usize) -> Result<Value> {
        Ok(Value::Null)
    }
}
