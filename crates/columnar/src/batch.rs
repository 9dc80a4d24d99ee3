//! Joined rows on their way from the scan to groups or results, and vectors of integers computed from them.

use crate::chunk::{Codes, Data};
use crate::expr::{Ex, Row};
use crate::join::NONE;
use crate::pred::{Columns, Kind};
use iolite_base::{Code, Result, alloc};
use iolite_plan::bound::BinOp;
use iolite_value::Value;

/// Where each column in use is.
pub(crate) struct Places {
    /// Table and column of each slot.
    pub at: Vec<(usize, usize)>,
    /// For each table, the column of each slot.
    pub of_table: Vec<Vec<Option<usize>>>,
    /// The table that is scanned.
    pub outer: usize,
}

/// Some joined rows. All of them come from one part of the outer table.
pub(crate) struct Batch<'a> {
    pub cols: &'a [Columns],
    pub places: &'a Places,
    /// The part of the outer table.
    pub part: usize,
    /// Rows within that part.
    pub outer: Vec<u32>,
    /// They follow each other without a gap.
    pub whole: bool,
    /// For each table, the row (empty: not looked up); [`NONE`] is a row of NULLs.
    pub inner: Vec<Vec<u32>>,
}

/// One of the rows.
pub(crate) struct BatchRow<'b> {
    pub batch: &'b Batch<'b>,
    pub i: usize,
}

impl Columns {
    /// The part that a row of the table lies in, and where.
    #[inline]
    pub fn locate(&self, row: usize) -> (usize, usize) {
        let parts = &self.loaded.parts;
        if parts.len() == 1 {
            return (0, row);
        }
        let p = parts.partition_point(|p| p.start <= row) - 1;
        (p, row - parts[p].start)
    }
}

impl Row for BatchRow<'_> {
    fn slot(&self, s: usize) -> Result<Value> {
        let b = self.batch;
        let (t, c) = b.places.at[s];
        let cols = &b.cols[t];
        let (part, i) = if t == b.places.outer {
            (b.part, b.outer[self.i] as usize)
        } else {
            match b.inner[t].get(self.i) {
                None => return Err(Code::Internal.into()),
                Some(&NONE) => return Ok(Value::Null),
                Some(&row) => cols.locate(row as usize),
            }
        };
        cols.loaded.parts[part].cols[c].field(i, &cols.loaded.dicts[c]).value()
    }
}

/// Integers, some of them NULL.
#[derive(Default)]
pub(crate) struct Ints {
    pub values: Vec<i64>,
    /// Empty: none is NULL.
    pub nulls: Vec<bool>,
}

impl Ints {
    fn clear(&mut self, n: usize) -> Result<()> {
        self.values.clear();
        self.nulls.clear();
        alloc::reserve(&mut self.values, n)
    }

    fn merge_nulls(&mut self, other: &Ints) {
        if self.nulls.is_empty() {
            self.nulls.extend_from_slice(&other.nulls);
        } else if !other.nulls.is_empty() {
            self.nulls.iter_mut().zip(&other.nulls).for_each(|(a, b)| *a |= *b);
        }
    }

    /// The values of an expression for which [`int_bounds`] vouches.
    pub fn of(ex: &Ex, b: &Batch<'_>, out: &mut Ints) -> Result<()> {
        let n = b.outer.len();
        out.clear(n)?;
        match ex {
            Ex::Const(Value::Int(i)) => out.values.resize(n, *i),
            Ex::Slot(s) => gather(*s, b, out),
            Ex::Neg(a) => {
                Ints::of(a, b, out)?;
                out.values.iter_mut().for_each(|v| *v = v.wrapping_neg());
            }
            Ex::Binary(op, x, y) => {
                Ints::of(x, b, out)?;
                if let Ex::Const(Value::Int(k)) = **y {
                    let f = out.values.iter_mut();
                    match op {
                        BinOp::Add => f.for_each(|a| *a = a.wrapping_add(k)),
                        BinOp::Sub => f.for_each(|a| *a = a.wrapping_sub(k)),
                        _ => f.for_each(|a| *a = a.wrapping_mul(k)),
                    }
                    return Ok(());
                }
                let mut other = Ints::default();
                Ints::of(y, b, &mut other)?;
                let f = out.values.iter_mut().zip(&other.values);
                match op {
                    BinOp::Add => f.for_each(|(a, b)| *a = a.wrapping_add(*b)),
                    BinOp::Sub => f.for_each(|(a, b)| *a = a.wrapping_sub(*b)),
                    _ => f.for_each(|(a, b)| *a = a.wrapping_mul(*b)),
                }
                out.merge_nulls(&other);
            }
            _ => return Err(Code::Internal.into()),
        }
        Ok(())
    }
}

/// The integers of a column.
fn gather(s: usize, b: &Batch<'_>, out: &mut Ints) {
    let (t, c) = b.places.at[s];
    let cols = &b.cols[t];
    let values = &mut out.values;
    if t != b.places.outer {
        for &row in &b.inner[t] {
            let v = if row == NONE {
                None
            } else {
                let (p, i) = cols.locate(row as usize);
                cols.loaded.parts[p].cols[c].int(i)
            };
            if v.is_none() && out.nulls.is_empty() {
                out.nulls.resize(values.len(), false);
            }
            if v.is_none() || !out.nulls.is_empty() {
                out.nulls.push(v.is_none());
            }
            values.push(v.unwrap_or(0));
        }
        return;
    }
    let chunk = &cols.loaded.parts[b.part].cols[c];
    let rows = &b.outer;
    match &chunk.data {
        Data::Sequence { base } => values.extend(rows.iter().map(|i| base + *i as i64)),
        Data::Int { base, nulls, codes } => {
            let first = rows.first().map_or(0, |r| *r as usize);
            let span = first..first + rows.len();
            match codes {
                Codes::U8(c) if b.whole => values.extend(c[span].iter().map(|v| base + *v as i64)),
                Codes::U16(c) if b.whole => values.extend(c[span].iter().map(|v| base + *v as i64)),
                Codes::U32(c) if b.whole => values.extend(c[span].iter().map(|v| base + *v as i64)),
                Codes::U8(c) => values.extend(rows.iter().map(|i| base + c[*i as usize] as i64)),
                Codes::U16(c) => values.extend(rows.iter().map(|i| base + c[*i as usize] as i64)),
                Codes::U32(c) => values.extend(rows.iter().map(|i| base + c[*i as usize] as i64)),
            }
            if *nulls {
                out.nulls.extend(rows.iter().map(|i| codes.get(*i as usize) == 0));
            }
        }
        _ => {
            values.extend(rows.iter().map(|i| chunk.int(*i as usize).unwrap_or(0)));
            if chunk.may_be_null() {
                out.nulls.extend(rows.iter().map(|i| chunk.int(*i as usize).is_none()));
            }
        }
    }
}

/// Bounds of an expression whose values are integers or NULL and whose computation cannot overflow; and whether it may
/// be NULL. `nulls_of(t)`: rows of table `t` may be rows of NULLs.
pub(crate) fn int_bounds(
    ex: &Ex,
    cols: &[Columns],
    places: &Places,
    nulls_of: &dyn Fn(usize) -> bool,
) -> Option<(i64, i64, bool)> {
    match ex {
        Ex::Const(Value::Int(i)) => Some((*i, *i, false)),
        Ex::Slot(s) => {
            let (t, c) = places.at[*s];
            if cols[t].kinds[c] != Kind::Int {
                return None;
            }
            let (lo, hi) = cols[t].bounds[c];
            let null = cols[t].nullable[c] || nulls_of(t);
            // Of no value at all: NULLs, whose place holds zero.
            let (lo, hi) = if lo > hi { (0, 0) } else { (lo, hi) };
            // What stands in the place of a NULL takes part in the computation: just below the least.
            Some((if null { lo.checked_sub(1)?.min(0) } else { lo }, if null { hi.max(0) } else { hi }, null))
        }
        Ex::Neg(a) => {
            let (lo, hi, null) = int_bounds(a, cols, places, nulls_of)?;
            Some((hi.checked_neg()?, lo.checked_neg()?, null))
        }
        Ex::Binary(op, a, b) => {
            let (a, b) = (int_bounds(a, cols, places, nulls_of)?, int_bounds(b, cols, places, nulls_of)?);
            let null = a.2 || b.2;
            match op {
                BinOp::Add => Some((a.0.checked_add(b.0)?, a.1.checked_add(b.1)?, null)),
                BinOp::Sub => Some((a.0.checked_sub(b.1)?, a.1.checked_sub(b.0)?, null)),
                BinOp::Mul => {
                    let all = [
                        a.0.checked_mul(b.0)?,
                        a.0.checked_mul(b.1)?,
                        a.1.checked_mul(b.0)?,
                        a.1.checked_mul(b.1)?,
                    ];
                    Some((*all.iter().min()?, *all.iter().max()?, null))
                }
                _ => None,
            }
        }
        _ => None,
    }
}
