//! Result rows: duplicates removed, sorted, cut. The values of all rows lie in one vector; when they take too much, they
//! go to a temporary file as a sorted run, and come back merged. Rows that are nothing but columns of a table stay columns, of
//! which a row's values are made when it is taken.

use super::made::Made;
use super::sort_key::sort_key;
use crate::expr::{Eval, Ex, Row};
use crate::memory::{within, work_size};
use crate::op::spill::{Head, Merge, Met, Once, Spill, push_image, push_value, take_value};
use crate::runtime::Runtime;
use crate::store::chunk::Field;
use iolite_base::{Result, alloc};
use iolite_value::compare::KeyField;
use iolite_value::order::in_order;
use iolite_value::{Collation, Value, compare};
use std::cmp::Ordering;
use std::ops::Range;

/// Collects result rows.
pub(crate) struct Rows<'q> {
    result: &'q [Ex],
    order: &'q [(Ex, KeyField)],
    distinct: Option<Seen<'q>>,
    /// Rows wanted; all if `None`.
    limit: Option<usize>,
    rows: usize,
    values: Vec<Value>,
    /// What rows are sorted by.
    keys: Vec<Value>,
    /// Bytes of texts and blobs among all these, or of such as were there.
    held: usize,
    /// The first key of the last row that is still wanted, if it is an integer.
    worst: Option<i64>,
    /// Its image ([`prefix`]).
    worst_image: Option<u64>,
    rt: Option<&'q dyn Runtime>,
    /// The runs that were written, and the rows in them.
    file: Option<Spill>,
    runs: Vec<Range<u64>>,
    written: usize,
    record: Vec<u8>,
}

/// The rows that came before: how they compare, and their values.
type Seen<'q> = (&'q [Collation], Once);

/// The rows of a query, ready to be taken.
pub struct Answer {
    width: usize,
    rows: usize,
    next: usize,
    from: From,
}

/// Where the rows of an answer are.
enum From {
    /// Row by row; `order` says where each row is: in order if `None`.
    Values {
        values: Vec<Value>,
        order: Option<Vec<u32>>,
    },
    Columns(Made),
    File(Box<Merged>),
}

/// Rows that come from a file.
struct Merged {
    merge: Merge<Vec<Value>>,
    row: Vec<Value>,
    fields: Vec<KeyField>,
}

impl Head for Vec<Value> {
    fn fill(&mut self, mut record: &[u8]) -> Result<()> {
        self.clear();
        while !record.is_empty() {
            alloc::reserve(self, 1)?;
            self.push(take_value(&mut record)?);
        }
        Ok(())
    }
}

/// Compares rows by their first values.
fn by_fields<'a>(x: &[Value], y: &[Value], fields: impl Iterator<Item = &'a KeyField>) -> Ordering {
    for ((x, y), f) in x.iter().zip(y).zip(fields) {
        let o = compare::compare(x, y, &f.coll);
        if o.is_ne() {
            return f.direct(o, x.is_null() || y.is_null());
        }
    }
    Ordering::Equal
}

impl<'q> Rows<'q> {
    /// Begins.
    pub fn new(
        result: &'q [Ex],
        order: &'q [(Ex, KeyField)],
        distinct: Option<&'q [Collation]>,
        limit: Option<usize>,
        rt: Option<&'q dyn Runtime>,
    ) -> Rows<'q> {
        let distinct = distinct.map(|c| (c, Once::default()));
        Rows {
            result,
            order,
            distinct,
            limit,
            rows: 0,
            values: Vec::new(),
            keys: Vec::new(),
            held: 0,
            worst: None,
            worst_image: None,
            rt,
            file: None,
            runs: Vec::new(),
            written: 0,
            record: Vec::new(),
        }
    }

    /// Whether no further row is wanted.
    pub fn full(&self) -> bool {
        self.order.is_empty() && self.limit.is_some_and(|n| self.rows + self.written >= n)
    }

    /// Takes all rows at once, in order: `fill` puts their values into a vector, or leaves it alone.
    pub fn take_all(
        &mut self,
        n: usize,
        fill: impl FnOnce(&[Ex], &mut Vec<Value>) -> Result<bool>,
    ) -> Result<bool> {
        let fits = within(n * self.result.len() * size_of::<Value>());
        if self.rows > 0 || self.distinct.is_some() || !self.order.is_empty() || self.limit.is_some() || !fits
        {
            return Ok(false);
        }
        let done = fill(self.result, &mut self.values)?;
        self.rows = if done { n } else { 0 };
        Ok(done)
    }

    /// Adds a row.
    pub fn add(&mut self, row: &dyn Row, eval: &Eval<'_>) -> Result<()> {
        if self.full() {
            return Ok(());
        }
        // A row that sorts behind the last one wanted need not be computed.
        if let (Some(worst), Some((e, f)), None) = (self.worst_image, self.order.first(), &self.distinct)
            && prefix(&eval.value(e, row)?, f) > worst
        {
            return Ok(());
        }
        let start = self.values.len();
        alloc::reserve(&mut self.values, self.result.len())?;
        for e in self.result {
            self.values.push(eval.value(e, row)?);
        }
        if let Some((colls, once)) = &mut self.distinct {
            let record = &mut self.record;
            record.clear();
            for (v, c) in self.values[start..].iter().zip(*colls) {
                push_image(record, v, c)?;
            }
            match once.meet(record, work_size())? {
                Met::New => {}
                Met::Before => {
                    self.values.truncate(start);
                    return Ok(());
                }
                Met::NoRoom => {
                    let mut payload = Vec::new();
                    for v in self.values.drain(start..) {
                        push_value(&mut payload, &v)?;
                    }
                    for (e, _) in self.order {
                        push_value(&mut payload, &eval.value(e, row)?)?;
                    }
                    return once.wait(self.rt, record, &payload);
                }
            }
        }
        alloc::reserve(&mut self.keys, self.order.len())?;
        for (e, _) in self.order {
            self.keys.push(eval.value(e, row)?);
        }
        self.added(start)
    }

    /// A row's values and keys are there, the values from `start` on.
    fn added(&mut self, start: usize) -> Result<()> {
        let bytes = |v: &Value| match v {
            Value::Text(b, _) | Value::Blob(b, _) => b.len(),
            _ => 0,
        };
        let keys = &self.keys[self.keys.len() - self.order.len()..];
        self.held += self.values[start..].iter().chain(keys).map(bytes).sum::<usize>();
        self.rows += 1;
        if let Some(n) = self.limit
            && !self.order.is_empty()
            && self.rows >= 2 * n + 1024
        {
            self.cut(n)?;
        }
        if !within((self.values.len() + self.keys.len()) * size_of::<Value>() + self.held) {
            self.write_run()?;
        }
        Ok(())
    }

    /// Writes the rows that are here as a run.
    fn write_run(&mut self) -> Result<()> {
        if let Some(rt) = self.rt {
            rt.check()?;
        }
        let (width, n) = (self.result.len(), self.order.len());
        let at = if n == 0 { (0..self.rows as u32).collect() } else { self.sorted()? };
        let mut file = match self.file.take() {
            Some(f) => f,
            None => Spill::new(self.rt)?,
        };
        let mut record = std::mem::take(&mut self.record);
        for i in at.into_iter().map(|i| i as usize).take(self.limit.unwrap_or(usize::MAX)) {
            record.clear();
            for v in self.keys[i * n..][..n].iter().chain(&self.values[i * width..][..width]) {
                push_value(&mut record, v)?;
            }
            file.add(&record)?;
        }
        self.runs.push(file.end_run()?);
        self.file = Some(file);
        self.record = record;
        self.written += self.rows;
        self.rows = 0;
        self.held = 0;
        self.values = Vec::new();
        self.keys = Vec::new();
        Ok(())
    }

    /// The rows' places, sorted; equal ones stay as they came.
    fn sorted(&self) -> Result<Vec<u32>> {
        let n = self.order.len();
        let fields: Vec<KeyField> = self.order.iter().map(|o| o.1.clone()).collect();
        in_order(self.rows, &fields, &|row, k| (&self.keys[row as usize * n + k]).into())
    }

    /// Where the first key of the sort is an integer column's and only the first rows are wanted: the value beyond which
    /// a row has no chance, and whether that means above it.
    pub fn limit_of_first(&self) -> Option<(i64, bool)> {
        let (_, f) = self.order.first()?;
        match (self.limit, self.worst) {
            (Some(_), Some(w)) if self.distinct.is_none() => Some((w, !f.desc)),
            _ => None,
        }
    }

    /// The first expression that rows are sorted by.
    pub fn first_key(&self) -> Option<&'q Ex> {
        self.order.first().map(|o| &o.0).filter(|_| self.limit.is_some())
    }

    /// Keeps the first `n` rows in order.
    fn cut(&mut self, n: usize) -> Result<()> {
        let mut at = self.sorted()?;
        at.truncate(n);
        let taken = |from: &mut Vec<Value>, width: usize| -> Result<Vec<Value>> {
            let mut out = crate::memory::room(n * width)?;
            for i in &at {
                out.extend(from[*i as usize * width..][..width].iter_mut().map(std::mem::take));
            }
            Ok(out)
        };
        self.values = taken(&mut self.values, self.result.len())?;
        self.keys = taken(&mut self.keys, self.order.len())?;
        self.rows = at.len();
        self.held = 0;
        let last = self.keys.chunks(self.order.len()).last().and_then(|k| k.first());
        self.worst_image = last.filter(|_| self.rows == n).map(|v| prefix(v, &self.order[0].1));
        self.worst = match self.keys.chunks(self.order.len()).last().and_then(|k| k.first()) {
            Some(Value::Int(i)) if self.rows == n => Some(*i),
            _ => None,
        };
        Ok(())
    }

    /// The rows.
    pub fn finish(mut self) -> Result<Answer> {
        if let Some((_, mut once)) = self.distinct.take() {
            let rt = self.rt;
            once.settle(rt, work_size(), &mut |mut record| {
                let start = self.values.len();
                for _ in self.result {
                    alloc::reserve(&mut self.values, 1)?;
                    self.values.push(take_value(&mut record)?);
                }
                for _ in self.order {
                    alloc::reserve(&mut self.keys, 1)?;
                    self.keys.push(take_value(&mut record)?);
                }
                self.added(start)
            })?;
        }
        let width = self.result.len();
        if self.file.is_some() {
            self.write_run()?;
        }
        let all = self.rows + self.written;
        let rows = self.limit.map_or(all, |n| n.min(all));
        if let Some(file) = self.file {
            let merge = Merge::new(file, &self.runs, work_size())?;
            let fields = self.order.iter().map(|o| o.1.clone()).collect();
            let from = From::File(Box::new(Merged { merge, row: Vec::new(), fields }));
            return Ok(Answer { width, rows, next: 0, from });
        }
        let order = if self.order.is_empty() { None } else { Some(self.sorted()?) };
        Ok(Answer { width, rows, next: 0, from: From::Values { values: self.values, order } })
    }
}

/// The image of a value ([`sort_key`]).
pub(crate) fn prefix(v: &Value, f: &KeyField) -> u64 {
    sort_key(Field::of(v), f)
}

impl Answer {
    /// Rows whose values lie one behind the other.
    pub fn of(values: Vec<Value>, width: usize, rows: usize) -> Answer {
        Answer { width, rows, next: 0, from: From::Values { values, order: None } }
    }

    /// Rows that lie in columns.
    pub(crate) fn of_columns(made: Made) -> Answer {
        Answer { width: made.columns().len(), rows: made.len(), next: 0, from: From::Columns(made) }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// All rows as columns, none of which was taken yet.
    pub(crate) fn into_columns(mut self) -> Result<Made> {
        let (rows, width) = (self.rows, self.width);
        match self.from {
            From::Columns(made) => Ok(made),
            _ => Made::collect(rows, width, &mut |row| self.next(row)),
        }
    }

    /// Puts the next row into `out`, or answers `false`.
    pub fn next(&mut self, out: &mut [Value]) -> Result<bool> {
        if self.next >= self.rows {
            return Ok(false);
        }
        let n = self.next;
        self.next += 1;
        let values = match &mut self.from {
            From::Columns(made) => {
                for (c, to) in out.iter_mut().enumerate().take(self.width) {
                    made.field(n, c).put(to)?;
                }
                return Ok(true);
            }
            From::File(merged) => {
                let Merged { merge, row, fields } = &mut **merged;
                if !merge.next(row, &|a, b| by_fields(a, b, fields.iter()))? {
                    return Ok(false);
                }
                row.get_mut(fields.len()..).unwrap_or_default()
            }
            From::Values { values, order } => {
                let row = order.as_ref().map_or(n, |o| o[n] as usize);
                &mut values[row * self.width..][..self.width]
            }
        };
        for (to, v) in out.iter_mut().zip(values) {
            *to = std::mem::take(v);
        }
        Ok(true)
    }
}
