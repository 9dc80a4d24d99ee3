//! Joined rows on their way from the scan to groups or results, and vectors of integers computed from them.

use crate::expr::columns::{Columns, Kind};
use crate::expr::scope::Places;
use crate::expr::scope::Scope;
use crate::expr::{Cmp, Ex, Row};
use crate::kernel::of_three;
use crate::store::chunk::{Chunk, Codes, Data, Field};
use iolite_base::{Code, Result, alloc};
use iolite_plan::bound::{BinOp, CmpOp};
use iolite_value::Value;

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

/// No row.
pub(crate) const NONE: u32 = u32::MAX;

/// No table is scanned: the rows of all are named by their numbers ([`Places::outer`]).
pub(crate) const NO_OUTER: usize = usize::MAX;

impl<'a> Batch<'a> {
    /// Some of the rows, by their places.
    pub fn only(&self, places: &[usize]) -> Batch<'a> {
        let pick = |rows: &Vec<u32>| match rows.is_empty() {
            true => Vec::new(),
            false => places.iter().map(|i| rows[*i]).collect(),
        };
        Batch {
            cols: self.cols,
            places: self.places,
            part: self.part,
            outer: pick(&self.outer),
            whole: false,
            inner: self.inner.iter().map(pick).collect(),
        }
    }
}

impl Batch<'_> {
    /// Calls `f` with the chunk of column `c` of table `t` and the place in it, for each row; `None`: a row of NULLs.
    #[inline(always)]
    pub fn each<'b>(&'b self, t: usize, c: usize, mut f: impl FnMut(Option<(&'b Chunk, usize)>)) {
        let cols = &self.cols[t];
        if t == self.places.outer {
            let chunk = &cols.loaded.parts[self.part].cols[c];
            self.outer.iter().for_each(|r| f(Some((chunk, *r as usize))));
            return;
        }
        for &row in &self.inner[t] {
            if row == NONE {
                f(None);
            } else {
                let (p, i) = cols.locate(row as usize);
                f(Some((&cols.loaded.parts[p].cols[c], i)));
            }
        }
    }
}

impl BatchRow<'_> {
    #[inline]
    fn field(&self, s: usize) -> Result<Field<'_>> {
        let b = self.batch;
        let (t, c) = b.places.at[s];
        let cols = &b.cols[t];
        let (part, i) = if t == b.places.outer {
            (b.part, b.outer[self.i] as usize)
        } else {
            match b.inner[t].get(self.i) {
                None => return Err(Code::Internal.into()),
                Some(&NONE) => return Ok(Field::Null),
                Some(&row) => cols.locate(row as usize),
            }
        };
        Ok(cols.loaded.parts[part].cols[c].field(i, &cols.loaded.dicts[c]))
    }
}

impl Row for BatchRow<'_> {
    fn there(&self, s: usize) -> Option<Field<'_>> {
        self.field(s).ok()
    }

    fn slot(&self, s: usize) -> Result<Value> {
        self.field(s)?.value()
    }

    fn slot_into(&self, s: usize, to: &mut Value) -> Result<()> {
        self.field(s)?.put(to)
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

    /// What is NULL in another one is NULL here, too.
    pub fn merge_nulls(&mut self, other: &Ints) {
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
            Ex::Mapped(m) => {
                let (t, c) = b.places.at[m.slot];
                let least = b.cols[t].bounds[c].0;
                let null = m.values.len() - 1;
                b.each(t, c, |place| {
                    let v = m.values[place.map_or(null, |(chunk, i)| few_code(chunk, i, least, null))];
                    if m.bounds.2 {
                        out.nulls.push(v.is_none());
                    }
                    out.values.push(v.unwrap_or(0));
                });
            }
            Ex::Neg(a) => {
                Ints::of(a, b, out)?;
                out.values.iter_mut().for_each(|v| *v = v.wrapping_neg());
            }
            Ex::Binary(op, x, y) => {
                Ints::of(x, b, out)?;
                if let Ex::Const(Value::Int(k)) = **y {
                    return with_constant(*op, k, &mut out.values);
                }
                let mut other = Ints::default();
                Ints::of(y, b, &mut other)?;
                let f = out.values.iter_mut().zip(&other.values);
                match op {
                    BinOp::Add => f.for_each(|(a, b)| *a = a.wrapping_add(*b)),
                    BinOp::Sub => f.for_each(|(a, b)| *a = a.wrapping_sub(*b)),
                    BinOp::Mul => f.for_each(|(a, b)| *a = a.wrapping_mul(*b)),
                    _ => return Err(Code::Internal.into()),
                }
                out.merge_nulls(&other);
            }
            _ => return Err(Code::Internal.into()),
        }
        Ok(())
    }
}

/// Applies an operator and a constant for which [`int_bounds`] vouches to all values.
fn with_constant(op: BinOp, k: i64, values: &mut [i64]) -> Result<()> {
    let f = values.iter_mut();
    match op {
        BinOp::Add => f.for_each(|a| *a = a.wrapping_add(k)),
        BinOp::Sub => f.for_each(|a| *a = a.wrapping_sub(k)),
        BinOp::Mul => f.for_each(|a| *a = a.wrapping_mul(k)),
        BinOp::Div => divide(k, values, |_, quotient| quotient),
        BinOp::Rem => divide(k, values, |a, quotient| a.wrapping_sub(quotient.wrapping_mul(k))),
        BinOp::BitAnd => f.for_each(|a| *a &= k),
        BinOp::ShiftRight => f.for_each(|a| *a >>= k),
        _ => return Err(Code::Internal.into()),
    }
    Ok(())
}

/// Divides all values by a constant; `f` makes of a value and its quotient what takes its place.
///
/// Values and divisors of 32 bits are multiplied by 2^64 / k, rounded up: the upper half of the product is the quotient,
/// since the error is below 1 / k for values below 2^32 (D. Lemire, O. Kaser, N. Kurz: Faster remainder by direct computation, 2019).
fn divide(k: i64, values: &mut [i64], f: impl Fn(i64, i64) -> i64) {
    let all = values.iter().fold(0, |all, a| all | *a);
    match u32::try_from(k) {
        Ok(divisor @ 2..) if u32::try_from(all).is_ok() => {
            let inverse = u64::MAX / divisor as u64 + 1;
            for a in values {
                *a = f(*a, ((*a as u128 * inverse as u128) >> 64) as i64);
            }
        }
        _ => values.iter_mut().for_each(|a| *a = f(*a, a.wrapping_div(k))),
    }
}

/// Which of a column's few values is in row `i`: the code, or the integer less the least; `null` is the place of NULL.
#[inline(always)]
pub(crate) fn few_code(chunk: &Chunk, i: usize, least: i64, null: usize) -> usize {
    match &chunk.data {
        Data::Dict { codes } => codes.get(i) as usize,
        _ => chunk.int(i).map_or(null, |v| (v - least) as usize),
    }
}

/// Reals, some of them NULL.
#[derive(Default)]
pub(crate) struct Reals {
    pub values: Vec<f64>,
    /// Empty: none is NULL.
    pub nulls: Vec<bool>,
}

impl Reals {
    /// The values of an expression for which [`is_real`] vouches.
    pub fn of(ex: &Ex, b: &Batch<'_>, s: &Scope<'_>, out: &mut Reals) -> Result<()> {
        let n = b.outer.len();
        out.values.clear();
        out.nulls.clear();
        alloc::reserve(&mut out.values, n)?;
        match ex {
            Ex::Const(Value::Real(r)) => out.values.resize(n, *r),
            Ex::Slot(slot) if b.cols[b.places.at[*slot].0].kinds[b.places.at[*slot].1] == Kind::Real => {
                let (t, c) = b.places.at[*slot];
                if t == b.places.outer
                    && let Data::Real { values, nulls: None } = &b.cols[t].loaded.parts[b.part].cols[c].data
                {
                    if b.whole {
                        let first = b.outer.first().map_or(0, |r| *r as usize);
                        out.values.extend_from_slice(&values[first..first + n]);
                    } else {
                        out.values.extend(b.outer.iter().map(|r| values[*r as usize]));
                    }
                    return Ok(());
                }
                b.each(t, c, |place| {
                    let v = place.and_then(|(chunk, i)| real_at(chunk, i));
                    if v.is_none() && out.nulls.is_empty() {
                        out.nulls.resize(n, false);
                    }
                    if v.is_none() {
                        out.nulls[out.values.len()] = true;
                    }
                    out.values.push(v.unwrap_or(0.0));
                });
            }
            Ex::Call { args, .. } if is_real(ex, s) => {
                Reals::of(&args[0], b, s, out)?;
                // As the scalar code does: a zero keeps its sign.
                out.values.iter_mut().for_each(|v| *v = if *v < 0.0 { -*v } else { *v });
            }
            Ex::Binary(op, x, y) if is_real(ex, s) => {
                Reals::of(x, b, s, out)?;
                let mut other = Reals::default();
                Reals::of(y, b, s, &mut other)?;
                let f = out.values.iter_mut().zip(&other.values);
                match op {
                    BinOp::Add => f.for_each(|(a, b)| *a += *b),
                    BinOp::Sub => f.for_each(|(a, b)| *a -= *b),
                    BinOp::Mul => f.for_each(|(a, b)| *a *= *b),
                    // A quotient by zero is NULL, as is everything that is no number.
                    _ => f.for_each(|(a, b)| *a = if *b == 0.0 { f64::NAN } else { *a / *b }),
                }
                if out.nulls.is_empty() {
                    out.nulls = other.nulls;
                } else if !other.nulls.is_empty() {
                    out.nulls.iter_mut().zip(&other.nulls).for_each(|(a, b)| *a |= *b);
                }
                if out.values.iter().any(|v| v.is_nan()) {
                    out.nulls.resize(n, false);
                    for (v, null) in out.values.iter_mut().zip(&mut out.nulls) {
                        *null |= v.is_nan();
                        *v = if v.is_nan() { 0.0 } else { *v };
                    }
                }
            }
            // An integer among reals counts as a real.
            _ => {
                let mut ints = Ints::default();
                Ints::of(ex, b, &mut ints)?;
                out.values.extend(ints.values.iter().map(|v| *v as f64));
                out.nulls = ints.nulls;
            }
        }
        Ok(())
    }
}

fn real_at(c: &crate::store::chunk::Chunk, i: usize) -> Option<f64> {
    match &c.data {
        Data::Real { values, nulls } if nulls.as_ref().is_none_or(|n| !n.has(i)) => Some(values[i]),
        _ => None,
    }
}

/// Whether the values of an expression are reals or NULL, and computed by nothing but the four operations and `abs`.
pub(crate) fn is_real(ex: &Ex, s: &Scope<'_>) -> bool {
    match ex {
        Ex::Const(Value::Real(_)) => true,
        Ex::Slot(i) => {
            let (t, c) = s.places.at[*i];
            s.cols[t].kinds[c] == Kind::Real
        }
        Ex::Binary(BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div, a, b) => {
            let int = |e: &Ex| int_bounds(e, s.cols, s.places, &|t| s.left[t]).is_some();
            is_real(a, s) && (is_real(b, s) || int(b)) || is_real(b, s) && int(a)
        }
        Ex::Call { function, args, .. } => match &args[..] {
            [a] => function.name.eq_ignore_ascii_case("abs") && is_real(a, s),
            _ => false,
        },
        _ => false,
    }
}

/// Integers within these bounds are reals that are as exact.
const EXACT: i64 = 1 << 53;

/// Whether [`compare_all`] can test a comparison.
pub(crate) fn is_vector(c: &Cmp, s: &Scope<'_>) -> bool {
    as_reals(c, s).is_some()
}

/// Whether both sides of a comparison are compared as reals, not as integers; `None`: neither.
fn as_reals(c: &Cmp, s: &Scope<'_>) -> Option<bool> {
    if c.null_eq || c.affinity == iolite_value::Affinity::Text {
        return None;
    }
    let int = |e: &Ex| int_bounds(e, s.cols, s.places, &|t| s.left[t]);
    let exact = |e: &Ex| is_real(e, s) || int(e).is_some_and(|(lo, hi, _)| -EXACT <= lo && hi <= EXACT);
    match int(&c.lhs).is_some() && int(&c.rhs).is_some() {
        true => Some(false),
        false => (exact(&c.lhs) && exact(&c.rhs)).then_some(true),
    }
}

/// Tests a comparison of integers or reals for all rows at once; the second list says where one side is NULL, and is empty where
/// none is. `None`: it is of other values.
pub(crate) fn compared(c: &Cmp, b: &Batch<'_>, s: &Scope<'_>) -> Result<Option<(Vec<bool>, Vec<bool>)>> {
    fn test<T: PartialOrd + Copy>(op: CmpOp, a: &[T], b: &[T]) -> Vec<bool> {
        let f = a.iter().zip(b);
        match op {
            CmpOp::Eq => f.map(|(x, y)| x == y).collect(),
            CmpOp::Ne => f.map(|(x, y)| x != y).collect(),
            CmpOp::Lt => f.map(|(x, y)| x < y).collect(),
            CmpOp::Le => f.map(|(x, y)| x <= y).collect(),
            CmpOp::Gt => f.map(|(x, y)| x > y).collect(),
            CmpOp::Ge => f.map(|(x, y)| x >= y).collect(),
        }
    }
    let (holds, nulls, more) = match as_reals(c, s) {
        None => return Ok(None),
        Some(false) => {
            let (mut x, mut y) = (Ints::default(), Ints::default());
            Ints::of(&c.lhs, b, &mut x)?;
            Ints::of(&c.rhs, b, &mut y)?;
            (test(c.op, &x.values, &y.values), x.nulls, y.nulls)
        }
        Some(true) => {
            let (mut x, mut y) = (Reals::default(), Reals::default());
            Reals::of(&c.lhs, b, s, &mut x)?;
            Reals::of(&c.rhs, b, s, &mut y)?;
            (test(c.op, &x.values, &y.values), x.nulls, y.nulls)
        }
    };
    let (mut nulls, more) = if nulls.is_empty() { (more, nulls) } else { (nulls, more) };
    nulls.iter_mut().zip(&more).for_each(|(a, b)| *a |= b);
    Ok(Some((holds, nulls)))
}

/// The rows for which a comparison of integers or reals holds; `None`: it is of other values.
pub(crate) fn compare_all(c: &Cmp, b: &Batch<'_>, s: &Scope<'_>) -> Result<Option<Vec<bool>>> {
    let Some((mut holds, nulls)) = compared(c, b, s)? else { return Ok(None) };
    holds.iter_mut().zip(&nulls).for_each(|(t, null)| *t &= !null);
    Ok(Some(holds))
}

/// The integers of a column.
fn gather(s: usize, b: &Batch<'_>, out: &mut Ints) {
    let (t, c) = b.places.at[s];
    let cols = &b.cols[t];
    let values = &mut out.values;
    if t != b.places.outer {
        b.each(t, c, |place| {
            let v = place.and_then(|(chunk, i)| chunk.int(i));
            if v.is_none() && out.nulls.is_empty() {
                out.nulls.resize(values.len(), false);
            }
            if v.is_none() || !out.nulls.is_empty() {
                out.nulls.push(v.is_none());
            }
            values.push(v.unwrap_or(0));
        });
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
                Codes::U4(_) if b.whole => {
                    // Blocks begin at even rows.
                    values.resize(rows.len(), 0);
                    let mut out = values.iter_mut();
                    codes.each_half(span, |v| {
                        if let Some(o) = out.next() {
                            *o = base + v as i64;
                        }
                    });
                }
                Codes::U4(_) => values.extend(rows.iter().map(|i| base + codes.get(*i as usize) as i64)),
                Codes::U8(c) if b.whole => values.extend(c[span].iter().map(|v| base + *v as i64)),
                Codes::U16(c) if b.whole => values.extend(c[span].iter().map(|v| base + *v as i64)),
                Codes::U24(c) if b.whole => values.extend(c[span].iter().map(|v| base + of_three(*v) as i64)),
                Codes::U32(c) if b.whole => values.extend(c[span].iter().map(|v| base + *v as i64)),
                Codes::U8(c) => values.extend(rows.iter().map(|i| base + c[*i as usize] as i64)),
                Codes::U16(c) => values.extend(rows.iter().map(|i| base + c[*i as usize] as i64)),
                Codes::U24(c) => values.extend(rows.iter().map(|i| base + of_three(c[*i as usize]) as i64)),
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
        Ex::Mapped(m) => Some(m.bounds),
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
        Ex::Binary(op @ (BinOp::Div | BinOp::Rem | BinOp::BitAnd | BinOp::ShiftRight), a, k) => {
            let Ex::Const(Value::Int(k)) = **k else { return None };
            let (lo, hi, null) = int_bounds(a, cols, places, nulls_of)?;
            match op {
                // A quotient by zero is NULL, one by -1 may be a real.
                BinOp::Div | BinOp::Rem if matches!(k, 0 | -1 | i64::MIN) => None,
                BinOp::Div => Some(((lo / k).min(hi / k), (lo / k).max(hi / k), null)),
                BinOp::Rem => Some((lo.max(1 - k.abs()).min(0), hi.min(k.abs() - 1).max(0), null)),
                BinOp::BitAnd if k >= 0 => Some((0, k, null)),
                BinOp::ShiftRight if (0..64).contains(&k) => Some((lo >> k, hi >> k, null)),
                _ => None,
            }
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
