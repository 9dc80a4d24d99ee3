//! Groups and their aggregates.
//!
//! A group's number is computed from one small number for each key: a code, an integer less the least, the number of a
//! combination of an inner table's columns, or what a dictionary of computed values says. Where the product of these is
//! small, the states are arrays indexed by it; else it is looked up in a hash table. Sums of integers for which bounds
//! prove that no partial sum can overflow are added without looking; everything else is computed by the functions
//! themselves, row by row, in the order of the rows.

mod bare;
mod count;
mod number;
mod result;
mod waiting;

use crate::decline::DECLINED;
use crate::expr::batch::NONE;
use crate::expr::batch::{Batch, Ints, Reals};
use crate::expr::columns::Kind;
use crate::expr::scope::{NullRow, few_values};
use crate::expr::{Ex, Row};
use crate::memory::work_size;
use crate::op::spill::Partitions;
use crate::query::{AggSpec, Query};
use crate::sort;
use crate::star::aggregate::{Acc, zeros};
use crate::star::build::{AWAY, InnerTable};
use crate::star::scope::JoinScope;
use crate::store::chunk::{Data, Dict, Field};
use iolite_base::hash::FastMap;
use iolite_base::{Code, Result, alloc};
use iolite_value::order::in_order;
use iolite_value::{Collation, Value, compare};
use number::{RealCodes, plain_numbers};
use std::sync::Arc;

/// The most groups whose states are arrays by number.
const DENSE: u64 = 1 << 22;

/// How many times the rows of its largest table a join is thought to give, for which arrays are made.
const MULTIPLIED: u64 = 4;

/// What an aggregate of such a group takes, at most.
const DENSE_WIDTH: usize = 24;

/// Rows of an inner table whose combinations of keys are numbered before any is met.
const MOST_NUMBERED: usize = 1 << 16;

/// So many are numbered however few rows are likely to be met.
const FEW_NUMBERED: usize = 1 << 10;

/// Where some of the keys come from.
enum Source {
    /// Columns of an inner table: each row's combination has a number.
    InnerTable {
        table: usize,
        keys: Vec<usize>,
        /// By row of the inner table.
        numbers: Vec<u32>,
        /// Each combination's values.
        values: Vec<Vec<Value>>,
        /// The combination of a row of NULLs.
        null: u32,
    },
    /// Columns of a table whose rowid is among them: a row's number says all.
    Row { table: usize, keys: Vec<usize> },
    /// An integer column.
    Int { key: usize, table: usize, col: usize, min: i64, nullable: bool },
    /// A column with a dictionary. The number behind its entries is that of a row of NULLs.
    Dict { key: usize, table: usize, col: usize },
    /// Computed from one column that has few values, once for each.
    Mapped { key: usize, slot: usize, map: Vec<u32>, dict: Dict },
    /// Anything.
    Any { key: usize, dict: Dict, reals: RealCodes },
}

/// The groups of a query.
pub(crate) struct Groups<'q> {
    pub(crate) q: &'q Query,
    pub(crate) keys: Vec<Ex>,
    pub(crate) aggs: Vec<(Vec<Ex>, Option<Ex>)>,
    sources: Vec<Source>,
    radix: Vec<u64>,
    /// States are arrays by number.
    pub(crate) dense: bool,
    /// The source of each key, and the key's place in it.
    key_at: Vec<(usize, usize)>,
    pub(crate) st: State,
    /// The tables of the columns beside the groups.
    picks: Vec<usize>,
    /// Rows of groups for which there was no room: the row of each table.
    waiting: Option<Partitions>,
    noted: Vec<usize>,
    /// How often these rows have waited before.
    level: u32,
}

/// What grows as rows come in.
#[derive(Default)]
pub(crate) struct State {
    index: Index,
    /// Rows of each group.
    pub rows: Vec<i64>,
    pub accs: Vec<Acc>,
    numbers: Vec<u64>,
    pub at: Vec<u32>,
    pub ints: Ints,
    pub reals: Reals,
    /// The most groups.
    most: usize,
    /// Rows of a batch at which an extreme changed, where somebody asks.
    pub hits: Vec<bool>,
    /// For each group the rows that stand for it, one for each table of the columns beside the groups.
    picked: Vec<u32>,
    /// How many such tables.
    picks: usize,
    /// Rows of a batch that have no number: a value of a key is not among those that are known, and there is no room.
    lost: Vec<bool>,
}

/// Group numbers that lie far apart, by a hash table.
#[derive(Default)]
struct Index {
    slots: Vec<u32>,
    numbers: Vec<u64>,
    /// Numbers were given one after the other: a number is its group.
    direct: bool,
}

impl Index {
    /// The group of a number; of a new one if there are fewer than `most`, else [`NONE`].
    #[inline]
    fn find(&mut self, number: u64, most: usize) -> Result<u32> {
        if self.direct {
            return self.next(number, most);
        }
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
        if self.numbers.len() >= most {
            return Ok(NONE);
        }
        alloc::reserve(&mut self.numbers, 1)?;
        self.numbers.push(number);
        self.slots[at] = self.numbers.len() as u32;
        Ok(self.numbers.len() as u32 - 1)
    }

    /// The same where numbers are groups: the next one is a new one.
    #[inline(always)]
    fn next(&mut self, number: u64, most: usize) -> Result<u32> {
        let known = self.numbers.len();
        if number as usize >= known {
            if number as usize != known || known >= most {
                return Ok(NONE);
            }
            alloc::reserve(&mut self.numbers, 1)?;
            self.numbers.push(number);
        }
        Ok(number as u32)
    }

    #[inline(always)]
    fn home(number: u64) -> usize {
        let m = number.wrapping_add(1) as u128 * 0x9e37_79b9_7f4a_7c15;
        ((m as u64) ^ (m >> 64) as u64) as usize
    }

    fn grow(&mut self) -> Result<()> {
        let n = (self.slots.len() * 2).max(1024);
        let mut slots = crate::memory::room(n)?;
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

/// Groups that there is room for in any case.
const LEAST_GROUPS: usize = 16;

/// How many rows of the table that is scanned are likely to find one in each inner table, by the share of these that their own
/// conditions left.
fn likely_rows(s: &JoinScope<'_>) -> f64 {
    let Some(outer) = s.cols.get(s.places.outer) else { return f64::INFINITY };
    let share = |(t, inner): (usize, &Option<Arc<InnerTable>>)| match inner {
        Some(i) if !s.left[t] && i.is_whole() => i.passed.len() as f64 / s.cols[t].loaded.rows.max(1) as f64,
        _ => 1.0,
    };
    outer.loaded.rows as f64 * s.inners.iter().enumerate().map(share).product::<f64>()
}

impl<'q> Groups<'q> {
    /// Prepares. `None`: the form is not known here.
    pub fn new(
        q: &'q Query,
        keys: Vec<Ex>,
        aggs: Vec<(Vec<Ex>, Option<Ex>)>,
        s: &JoinScope<'_>,
    ) -> Result<Option<Groups<'q>>> {
        let mut g = Groups {
            q,
            keys,
            aggs,
            sources: Vec::new(),
            radix: Vec::new(),
            dense: true,
            key_at: Vec::new(),
            st: State::default(),
            picks: Vec::new(),
            waiting: None,
            noted: Vec::new(),
            level: 0,
        };
        if !q.bare.is_empty() && (!s.in_order || s.cols.iter().any(|c| c.loaded.streams())) {
            return Ok(None);
        }
        for slot in &q.bare {
            let t = s.places.at[*slot].0;
            if !g.picks.contains(&t) {
                g.picks.push(t);
            }
        }
        g.find_sources(s)?;
        // What a dictionary numbers has no gaps.
        g.st.index.direct = matches!(g.sources[..], [Source::Any { .. }]);
        g.key_at = (0..g.keys.len()).map(|k| g.source_of(k)).collect();
        let mut product: u64 = 1;
        for r in &g.radix {
            match product.checked_mul((*r).max(1)) {
                Some(p) => product = p,
                None => return Ok(None),
            }
        }
        // A join gives about as many rows as its largest table has, seldom many times as many.
        let largest = s.cols.iter().map(|c| c.loaded.rows as u64).max().unwrap_or(0);
        let rows = s.most_rows.unwrap_or(u64::MAX).min(MULTIPLIED * largest);
        g.dense = product <= DENSE.min(rows.saturating_mul(2).max(1 << 16))
            && product as usize * DENSE_WIDTH * (1 + q.aggs.len()) <= work_size().max(1 << 12)
            && !g.sources.iter().any(|s| matches!(s, Source::Any { .. }));
        let n = if g.dense { product as usize } else { 0 };
        g.st.rows = zeros(n);
        for i in 0..q.aggs.len() {
            match g.accumulator(&q.aggs[i], i, s, n) {
                Some(a) => g.st.accs.push(a),
                None => return Ok(None),
            }
        }
        // Of the index: a number, and two to four places.
        let width = 8 + 8 + 16 + 4 * g.picks.len() + g.st.accs.iter().map(Acc::width).sum::<usize>();
        g.st.picks = g.picks.len();
        g.st.picked = vec![AWAY; n * g.picks.len()];
        g.st.most = if g.dense { n } else { (work_size() / width).max(LEAST_GROUPS) };
        Ok(Some(g))
    }

    fn find_sources(&mut self, s: &JoinScope<'_>) -> Result<()> {
        let outer = s.places.outer;
        let likely = likely_rows(s);
        for (k, ex) in self.keys.clone().iter().enumerate() {
            let mut tables: Vec<usize> = Vec::new();
            ex.slots(&mut |i| {
                let t = s.places.at[i].0;
                if !tables.contains(&t) {
                    tables.push(t);
                }
            });
            if let [t] = tables[..] {
                let known = self.sources.iter_mut().find_map(|x| match x {
                    Source::InnerTable { table, keys, .. } | Source::Row { table, keys } if *table == t => {
                        Some(keys)
                    }
                    _ => None,
                });
                if let Some(keys) = known {
                    keys.push(k);
                    continue;
                }
                if self.by_row(t, s) {
                    self.sources.push(Source::Row { table: t, keys: vec![k] });
                    continue;
                }
                // Of a large table few combinations may be met: they are not all numbered beforehand.
                let inner = s.inners.get(t).and_then(Option::as_ref);
                let few = |n: usize| n < FEW_NUMBERED || n < MOST_NUMBERED && n as f64 <= 4.0 * likely;
                let small = inner.is_some_and(|i| few(i.passed.len()) && i.is_whole());
                if t != outer && small {
                    self.sources.push(Source::InnerTable {
                        table: t,
                        keys: vec![k],
                        numbers: Vec::new(),
                        values: Vec::new(),
                        null: 0,
                    });
                    continue;
                }
            }
            let plain = match ex {
                Ex::Slot(i) => Some(s.places.at[*i]),
                _ => None,
            };
            let any = Source::Any { key: k, dict: Dict::default(), reals: RealCodes::default() };
            let source = match plain {
                Some((table, col)) if s.cols[table].kinds[col] == Kind::Int => {
                    let (min, max) = s.cols[table].bounds[col];
                    let nullable = s.cols[table].nullable[col] || s.left[table];
                    match max.checked_sub(min).filter(|d| *d < 1 << 40) {
                        Some(_) => Source::Int { key: k, table, col, min, nullable },
                        None => any,
                    }
                }
                Some((table, col)) if s.cols[table].kinds[col] == Kind::Dict => {
                    Source::Dict { key: k, table, col }
                }
                _ => match few_values(ex, s) {
                    Some((slot, n)) if tables.len() == 1 => {
                        Source::Mapped { key: k, slot, map: vec![NONE; n], dict: Dict::default() }
                    }
                    _ => any,
                },
            };
            self.sources.push(source);
        }
        for i in 0..self.sources.len() {
            let radix = self.number_source(i, s)?;
            self.radix.push(radix);
        }
        Ok(())
    }

    /// Whether the rows of a table tell its keys apart, and there are several of these.
    fn by_row(&self, t: usize, s: &JoinScope<'_>) -> bool {
        if s.cols[t].loaded.streams() {
            return false;
        }
        let (mut keys, mut rowid) = (0, false);
        for ex in &self.keys {
            let mut own = None;
            ex.slots(&mut |i| own = Some(own.unwrap_or(true) && s.places.at[i].0 == t));
            keys += own.unwrap_or(false) as usize;
            // A derived column lies beside another table than its own.
            rowid |= matches!(ex, Ex::Slot(i)
                if s.places.at[*i].0 == t && self.q.slots[*i].table == t && self.q.slots[*i].field.is_none());
        }
        rowid && keys > 1
    }

    /// Numbers the combinations of an inner table; answers how many numbers a source has.
    fn number_source(&mut self, i: usize, s: &JoinScope<'_>) -> Result<u64> {
        let own = &self.keys;
        Ok(match &mut self.sources[i] {
            Source::Row { table, .. } => s.cols[*table].loaded.rows as u64 + s.left[*table] as u64,
            Source::Int { table, col, min, nullable, .. } => {
                let max = s.cols[*table].bounds[*col].1;
                (max - *min + 1).max(0) as u64 + *nullable as u64
            }
            Source::Dict { table, col, .. } => {
                s.cols[*table].loaded.dicts[*col].len() as u64 + s.left[*table] as u64
            }
            Source::Mapped { map, .. } => map.len() as u64,
            Source::Any { .. } => 1 << 18,
            Source::InnerTable { table, keys, numbers, values, null } => {
                let cols = &s.cols[*table];
                let inner = s.inners[*table].as_ref().ok_or(Code::Internal)?;
                *numbers = crate::memory::room(cols.loaded.rows)?;
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
                                of_code[raw] = dict.code(f)?.ok_or(DECLINED)?;
                            }
                            code = of_code[raw];
                        }
                        if code == NONE {
                            let v = s.eval.value(&own[*k], &cols.row(part, r, &s.places.of_table[*table]))?;
                            code = dict.code(Field::of(&v))?.ok_or(DECLINED)?;
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
                // A row of NULLs may be one of the combinations.
                let row: Result<Vec<Value>> = keys.iter().map(|k| s.eval.value(&own[*k], &NullRow)).collect();
                let row = row?;
                let same = |v: &Vec<Value>| {
                    v.iter()
                        .zip(&row)
                        .all(|(a, b)| identical(a, b) && compare::compare(a, b, &Collation::Binary).is_eq())
                };
                *null = match values.iter().position(same) {
                    Some(n) => n as u32,
                    None => {
                        values.push(row);
                        values.len() as u32 - 1
                    }
                };
                values.len() as u64
            }
        })
    }

    /// Takes rows in.
    pub fn add(&mut self, b: &Batch<'_>, s: &JoinScope<'_>) -> Result<()> {
        if self.keys.is_empty() && self.picks.is_empty() && self.st.one_group(b)? {
            return Ok(());
        }
        if self.keys.is_empty() {
            self.st.at.clear();
            alloc::reserve(&mut self.st.at, b.outer.len())?;
            self.st.at.resize(b.outer.len(), 0);
            self.st.rows[0] += b.outer.len() as i64;
        } else {
            if let Some((codes, shift)) = self.counted_codes(b, s) {
                return self.st.count_codes(codes, shift);
            }
            self.st.begin(b.outer.len(), self.dense)?;
            for i in 0..self.sources.len() {
                self.number_rows(i, b, s)?;
            }
            if !self.st.place(self.dense)? {
                return self.add_some(b, s);
            }
        }
        self.accumulate_all(b, s)
    }

    fn accumulate_all(&mut self, b: &Batch<'_>, s: &JoinScope<'_>) -> Result<()> {
        let follows = !self.picks.is_empty() && self.q.aggs.iter().any(AggSpec::is_extreme);
        self.st.hits.clear();
        self.st.hits.resize(if follows { b.outer.len() } else { 0 }, false);
        for k in 0..self.st.accs.len() {
            // Of several extremes the last one names the row.
            if self.q.aggs[k].is_extreme() {
                self.st.hits.fill(false);
            }
            if !self.st.accumulate_ints(k, b)? {
                self.accumulate(k, b, s)?;
            }
        }
        if !self.picks.is_empty() {
            self.pick(follows, b, s);
        }
        Ok(())
    }

    /// Whether rows can be taken in without evaluating expressions row by row, and in any order: by several threads.
    pub fn is_pure(&self) -> bool {
        let source = |s: &Source| !matches!(s, Source::Mapped { .. } | Source::Any { .. });
        self.picks.is_empty() && self.sources.iter().all(source) && self.st.accs.iter().all(Acc::is_pure)
    }

    /// Groups whose states are arrays: how many; otherwise 0.
    pub fn dense_groups(&self) -> usize {
        if self.dense { self.st.rows.len() } else { 0 }
    }

    /// An empty state for a thread of its own; only where [`Groups::is_pure`].
    pub fn another_state(&self, of: usize) -> Result<State> {
        let accs = self.st.accs.iter().filter_map(Acc::another).collect();
        let most = if self.dense { self.st.most } else { self.st.most / of };
        let mut st = State { accs, most, ..State::default() };
        st.grow(self.dense_groups())?;
        Ok(st)
    }

    /// Takes rows in, in a state of its own; only where [`Groups::is_pure`].
    pub fn add_to(&self, st: &mut State, b: &Batch<'_>, s: &JoinScope<'_>) -> Result<()> {
        if self.keys.is_empty() && st.one_group(b)? {
            return Ok(());
        }
        if let Some((codes, shift)) = self.counted_codes(b, s) {
            return st.count_codes(codes, shift);
        }
        st.begin(b.outer.len(), self.dense)?;
        for (source, radix) in self.sources.iter().zip(&self.radix) {
            let known = match self.dense {
                true => plain_numbers(source, *radix, &mut st.at, b, s)?,
                false => plain_numbers(source, *radix, &mut st.numbers, b, s)?,
            };
            if !known {
                return Err(DECLINED.into());
            }
        }
        if !st.place(self.dense)? {
            // One thread has to do, and lets rows wait.
            return Err(DECLINED.into());
        }
        for k in 0..st.accs.len() {
            if !st.accumulate_ints(k, b)? {
                return Err(DECLINED.into());
            }
        }
        Ok(())
    }

    /// Takes in what another thread has collected.
    pub fn merge(&mut self, other: State) -> Result<()> {
        let from = if self.dense { other.rows.len() } else { other.index.numbers.len() };
        let mut to: Vec<u32> = crate::memory::room(from)?;
        for i in 0..from {
            to.push(if self.dense {
                i as u32
            } else {
                self.st.index.find(other.index.numbers[i], usize::MAX)?
            });
        }
        let groups = if self.dense { from } else { self.st.index.numbers.len() };
        if groups > self.st.rows.len() {
            self.st.grow(groups)?;
        }
        for (t, n) in to.iter().zip(&other.rows) {
            self.st.rows[*t as usize] += n;
        }
        for (own, o) in self.st.accs.iter_mut().zip(&other.accs) {
            own.merge(o, &to);
        }
        Ok(())
    }
}

impl State {
    /// Before rows get their numbers.
    fn begin(&mut self, n: usize, dense: bool) -> Result<()> {
        self.lost.clear();
        self.at.clear();
        alloc::reserve(&mut self.at, n)?;
        self.numbers.clear();
        if dense {
            // A number is its group.
            self.at.resize(n, 0);
        } else {
            alloc::reserve(&mut self.numbers, n)?;
            self.numbers.resize(n, 0);
        }
        Ok(())
    }

    /// Finds the groups of the numbers, and counts rows; `false`: for some there is no room.
    fn place(&mut self, dense: bool) -> Result<bool> {
        let mut room = true;
        if !dense {
            if self.index.direct {
                for number in &self.numbers {
                    let group = self.index.next(*number, self.most)?;
                    room &= group != NONE;
                    self.at.push(group);
                }
            } else {
                // Rows of one group often follow each other.
                let (mut last, mut group) = (None, 0);
                for number in &self.numbers {
                    if last != Some(*number) {
                        group = self.index.find(*number, self.most)?;
                        last = Some(*number);
                        room &= group != NONE;
                    }
                    self.at.push(group);
                }
            }
            if !self.lost.is_empty() {
                room = false;
                self.at.iter_mut().zip(&self.lost).filter(|l| *l.1).for_each(|(g, _)| *g = NONE);
            }
            let groups = self.index.numbers.len();
            if groups > self.rows.len() {
                self.grow(groups)?;
            }
        }
        if !room {
            self.at.iter().filter(|g| **g != NONE).for_each(|g| self.rows[*g as usize] += 1);
            return Ok(false);
        }
        count::groups(&self.at, &mut self.rows);
        Ok(true)
    }

    fn grow(&mut self, groups: usize) -> Result<()> {
        let more = groups - self.rows.len();
        alloc::reserve(&mut self.rows, more)?;
        self.rows.resize(groups, 0);
        self.picked.resize(groups * self.picks, AWAY);
        self.accs.iter_mut().for_each(|a| a.grow(groups));
        Ok(())
    }
}

/// Whether two values that compare equal are the same.
fn identical(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Text(x, _), Value::Text(y, _)) => x[..] == y[..],
        (Value::Real(x), Value::Real(y)) => x.to_bits() == y.to_bits(),
        _ => a.class() == b.class(),
    }
}
