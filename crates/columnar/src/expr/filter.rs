//! Conditions on one table, brought into the form in which they cost least: ranges of codes, sets of codes, and for
//! what is left the expression itself, row by row.
//!
//! A condition on one column of a dictionary is computed once for each entry, by the same code that would compute it
//! for each row, if the dictionary is large not before a row has the entry; so is one on an integer column of few values. NULL does not pass.

use crate::expr::asked::{ASKED_AT_ONCE, Asked};
use crate::expr::batch::Batch;
use crate::expr::columns::{Columns, Kind};
use crate::expr::condition::{Truth, each_entry, is_kernel};
use crate::expr::scope::{OneField, Places, Scope};
use crate::expr::test::Test;
use crate::expr::{Eval, Ex};
use crate::kernel::{self, Bits, Selection, Slice};
use crate::store::Part;
use crate::store::chunk::{Chunk, Codes, Data, Field, Nulls};
use iolite_base::{Code, Result};
use iolite_plan::bound::CmpOp;
use iolite_value::{Affinity, Value};
use std::cell::{Cell, RefCell};
use std::ops::Range;

/// An integer column of at most so many different values has conditions computed for each of them.
const FEW_VALUES: i64 = 1024;

/// Sets become bits where these span no more than this.
const MOST_MEMBERS: i64 = 1 << 28;

/// A condition in its best form.
pub(crate) enum Pred {
    /// The integer is in the range (or, with `not`, is there and is not in it).
    Range { col: usize, lo: i64, hi: i64, not: bool },
    /// The integer, less `base`, is in the set.
    IntSet { col: usize, base: i64, set: Bits },
    /// The entry of the dictionary is in the set.
    DictSet { col: usize, set: Bits },
    /// The entry of the dictionary passes a test, which it is put to when the first row has it.
    Entry { col: usize, asked: RefCell<Asked>, rows: Cell<usize> },
    /// The real is in the range.
    RealRange { col: usize, lo: f64, hi: f64, lo_in: bool, hi_in: bool },
    /// What the value itself says, where it lies.
    Value { col: usize, test: Test },
    /// Several columns, many rows at once.
    Rows { truth: Truth, places: Places },
    /// Whatever the expression says.
    Any(Ex),
    /// Never.
    Never,
}

impl Pred {
    /// Brings a condition on one table into form. `alone`: one thread tests it.
    pub fn of(
        ex: &Ex,
        cols: &Columns,
        col_of: &[Option<usize>],
        eval: &Eval<'_>,
        alone: bool,
    ) -> Result<Pred> {
        if let Ex::Const(v) = ex
            && v.truth() != Some(true)
        {
            return Ok(Pred::Never);
        }
        let Some(col) = ex.only_slot().and_then(|s| col_of[s]) else {
            return Pred::rows(ex, cols, col_of, eval);
        };
        match cols.kinds[col] {
            Kind::Int => {
                if let Some(p) = int_range(ex, col) {
                    return Ok(p);
                }
                let (min, max) = cols.bounds[col];
                if let Some(values) = int_list(ex) {
                    let (lo, hi) = (
                        values.iter().copied().min().unwrap_or(1),
                        values.iter().copied().max().unwrap_or(0),
                    );
                    if hi.checked_sub(lo).is_some_and(|d| d < 1 << 20) {
                        let mut set = Bits::new((hi - lo + 1) as usize)?;
                        values.iter().for_each(|v| {
                            set.set((v - lo) as usize);
                        });
                        return Ok(Pred::IntSet { col, base: lo, set });
                    }
                }
                if let Some((base, set)) = int_members(ex, min, max)? {
                    return Ok(Pred::IntSet { col, base, set });
                }
                let few = max.checked_sub(min).is_some_and(|d| d < FEW_VALUES);
                if min > max || !few || cols.nullable[col] && eval.holds(ex, &OneField(Field::Null))? {
                    return Pred::vectors(ex, cols, col_of, eval);
                }
                let mut set = Bits::new((max - min + 1) as usize)?;
                for v in min..=max {
                    if eval.holds(ex, &OneField(Field::Int(v)))? {
                        set.set((v - min) as usize);
                    }
                }
                Ok(Pred::IntSet { col, base: min, set })
            }
            Kind::Dict => {
                let dict = &cols.loaded.dicts[col];
                if dict.len() > cols.loaded.rows.max(1000) {
                    return Ok(Pred::Any(ex.clone()));
                }
                if alone && dict.len() > ASKED_AT_ONCE {
                    let asked = RefCell::new(Asked::new(Test::of(ex, eval), dict.len())?);
                    return Ok(Pred::Entry { col, asked, rows: Cell::new(0) });
                }
                let mut set = Bits::new(dict.len())?;
                each_entry(ex, dict, eval, &mut |code, holds| {
                    if holds {
                        set.set(code as usize);
                    }
                })?;
                Ok(Pred::DictSet { col, set })
            }
            Kind::Real => match real_range(ex, col) {
                Some(p) => Ok(p),
                None => Pred::vectors(ex, cols, col_of, eval),
            },
            Kind::Mixed => {
                let test = Test::of(ex, eval);
                Ok(if test.is_known() { Pred::Value { col, test } } else { Pred::Any(ex.clone()) })
            }
        }
    }

    /// A condition over vectors of rows.
    fn rows(ex: &Ex, cols: &Columns, col_of: &[Option<usize>], eval: &Eval<'_>) -> Result<Pred> {
        let at = col_of.iter().map(|c| (0, c.unwrap_or(0))).collect();
        let places = Places { at, of_table: vec![col_of.to_vec()], outer: 0 };
        let truth = Truth::of(ex, &alone(cols, &places, eval))?;
        Ok(Pred::Rows { truth, places })
    }

    /// A condition over vectors if kernels know all of it, or else row by row.
    fn vectors(ex: &Ex, cols: &Columns, col_of: &[Option<usize>], eval: &Eval<'_>) -> Result<Pred> {
        let at = col_of.iter().map(|c| (0, c.unwrap_or(0))).collect();
        let places = Places { at, of_table: vec![col_of.to_vec()], outer: 0 };
        match is_kernel(ex, &alone(cols, &places, eval)) {
            true => Pred::rows(ex, cols, col_of, eval),
            false => Ok(Pred::Any(ex.clone())),
        }
    }

    /// The same conditions, of which those that are ranges of one column are one.
    pub fn joined(list: Vec<Pred>) -> Vec<Pred> {
        let mut out: Vec<Pred> = Vec::new();
        for p in list {
            if !out.iter_mut().any(|o| o.take_range(&p)) {
                out.push(p);
            }
        }
        out
    }

    /// Becomes the range that lies in both, if both are ranges of one column.
    fn take_range(&mut self, other: &Pred) -> bool {
        match (self, other) {
            (
                Pred::Range { col, lo, hi, not: false },
                Pred::Range { col: c, lo: least, hi: most, not: false },
            ) if col == c => {
                *lo = (*lo).max(*least);
                *hi = (*hi).min(*most);
                true
            }
            (
                Pred::RealRange { col, lo, hi, lo_in, hi_in },
                Pred::RealRange { col: c, lo: least, hi: most, lo_in: least_in, hi_in: most_in },
            ) if col == c => {
                // Of equal bounds the one counts that leaves itself out.
                if least > lo || least == lo && !least_in {
                    (*lo, *lo_in) = (*least, *least_in);
                }
                if most < hi || most == hi && !most_in {
                    (*hi, *hi_in) = (*most, *most_in);
                }
                true
            }
            _ => false,
        }
    }

    /// Whether no expression is evaluated row by row.
    pub fn is_pure(&self) -> bool {
        match self {
            Pred::Any(_) | Pred::Value { .. } | Pred::Entry { .. } => false,
            Pred::Rows { truth, .. } => truth.is_pure(),
            _ => true,
        }
    }

    /// How dear the condition is for a row, in no unit.
    pub fn cost(&self) -> f64 {
        match self {
            Pred::Never => 0.0,
            Pred::Range { .. } => 0.5,
            Pred::IntSet { .. } | Pred::DictSet { .. } | Pred::RealRange { .. } => 2.0,
            Pred::Rows { truth, .. } if truth.is_pure() => 10.0,
            Pred::Value { test, .. } if test.is_comparison() => 8.0,
            Pred::Entry { asked, .. } if asked.borrow().is_comparison() => 8.0,
            Pred::Value { .. } | Pred::Entry { .. } | Pred::Rows { .. } => 50.0,
            Pred::Any(_) => 200.0,
        }
    }

    /// The column whose codes are looked at, if there is just one.
    pub fn column(&self) -> Option<usize> {
        match self {
            Pred::Range { col, .. } | Pred::IntSet { col, .. } | Pred::DictSet { col, .. } => Some(*col),
            _ => None,
        }
    }

    /// Whether a whole part has no row that passes.
    pub fn excludes(&self, part: &Part) -> bool {
        match self {
            Pred::Never => true,
            Pred::Range { col, lo, hi, not: false } => {
                let c = &part.cols[*col];
                lo > hi || c.min > *hi || c.max < *lo
            }
            _ => false,
        }
    }

    /// Narrows the selection among the rows `span` of a part.
    pub fn select(
        &self,
        cols: &Columns,
        number: usize,
        span: Range<usize>,
        col_of: &[Option<usize>],
        eval: &Eval<'_>,
        sel: &mut Selection,
    ) -> Result<()> {
        let from = span.start;
        let part = &cols.loaded.parts[number];
        match self {
            Pred::Never => {
                sel.clear();
                Ok(())
            }
            Pred::Range { col, lo, hi, not } => {
                int_in_range(&part.cols[*col], span, *lo, *hi, *not, sel);
                Ok(())
            }
            Pred::IntSet { col, base, set } => {
                int_in_set(&part.cols[*col], span, *base, set, sel);
                Ok(())
            }
            Pred::DictSet { col, set } => {
                match &part.cols[*col].data {
                    Data::Dict { codes } => kernel::member(slice(codes, &span), 0, set, sel),
                    _ => return Err(Code::Internal.into()),
                }
                Ok(())
            }
            Pred::Entry { col, asked, rows } => {
                let Data::Dict { codes } = &part.cols[*col].data else { return Err(Code::Internal.into()) };
                let (dict, mut asked) = (&cols.loaded.dicts[*col], asked.borrow_mut());
                rows.set(rows.get() + sel.len());
                // Most entries have been met by now: with the rest, the set is whole.
                if rows.get() > dict.len() {
                    kernel::member(slice(codes, &span), 0, asked.all(dict, eval)?, sel);
                    return Ok(());
                }
                sel.try_retain(|i| {
                    let code = codes.get(from + i);
                    asked.holds(code as usize, dict.get(code), eval)
                })
            }
            Pred::RealRange { col, lo, hi, lo_in, hi_in } => {
                let Data::Real { values, nulls } = &part.cols[*col].data else {
                    return Err(Code::Internal.into());
                };
                // Where a bound is left out, the next real is in.
                let (least, most) =
                    (if *lo_in { *lo } else { lo.next_up() }, if *hi_in { *hi } else { hi.next_down() });
                if !lo_in && *lo == f64::INFINITY || !hi_in && *hi == f64::NEG_INFINITY {
                    sel.clear();
                    return Ok(());
                }
                kernel::range_f64(&values[span], least, most, sel);
                keep_known(nulls.as_ref(), from, sel);
                Ok(())
            }
            Pred::Value { col, test } => {
                let (chunk, dict) = (&part.cols[*col], &cols.loaded.dicts[*col]);
                let mut last = None;
                sel.try_retain(|i| {
                    let code = match &chunk.data {
                        Data::Dict { codes } => Some(codes.get(from + i)),
                        _ => None,
                    };
                    if let Some((_, holds)) = last.filter(|l: &(u32, bool)| Some(l.0) == code) {
                        return Ok(holds);
                    }
                    let holds = test.holds(chunk.field(from + i, dict), eval)?;
                    last = code.map(|c| (c, holds));
                    Ok(holds)
                })
            }
            Pred::Rows { truth, places } => {
                let batch = Batch {
                    cols: std::slice::from_ref(cols),
                    places,
                    part: number,
                    outer: sel.rows().iter().map(|i| (from + *i as usize) as u32).collect(),
                    whole: sel.len() == span.len(),
                    inner: Vec::new(),
                };
                let mut holds = truth.test(&batch, &alone(cols, places, eval))?.into_iter();
                sel.retain(|_| holds.next().unwrap_or(false));
                Ok(())
            }
            Pred::Any(ex) => sel.try_retain(|i| eval.holds(ex, &cols.row(part, from + i, col_of))),
        }
    }
}

/// A table by itself, as table 0.
fn alone<'a>(cols: &'a Columns, places: &'a Places, eval: &'a Eval<'a>) -> Scope<'a> {
    Scope {
        cols: std::slice::from_ref(cols),
        places,
        eval,
        in_order: false,
        most_rows: None,
        left: &[false],
        rt: None,
    }
}

/// The codes of some rows of a chunk that has codes.
pub(crate) fn codes_of<'c>(c: &'c Chunk, span: &Range<usize>) -> Option<Slice<'c>> {
    match &c.data {
        Data::Int { codes, .. } | Data::Dict { codes } => Some(slice(codes, span)),
        _ => None,
    }
}

/// The codes of some rows.
pub(crate) fn slice<'c>(codes: &'c Codes, span: &Range<usize>) -> Slice<'c> {
    match codes {
        // Blocks begin at even rows.
        Codes::U4(c) => Slice::U4(&c[span.start / 2..span.end.div_ceil(2)], span.len()),
        Codes::U8(c) => Slice::U8(&c[span.clone()]),
        Codes::U16(c) => Slice::U16(&c[span.clone()]),
        Codes::U24(c) => Slice::U24(&c[span.clone()]),
        Codes::U32(c) => Slice::U32(&c[span.clone()]),
    }
}

fn int_in_range(c: &Chunk, span: Range<usize>, lo: i64, hi: i64, not: bool, sel: &mut Selection) {
    let from = span.start;
    let inside = lo <= hi && c.min <= c.max && c.min <= hi && c.max >= lo;
    if !not && !inside {
        sel.clear();
        return;
    }
    let all = if not { !inside } else { lo <= c.min && c.max <= hi };
    if all && !c.may_be_null() {
        return;
    }
    match &c.data {
        Data::Int { base, nulls, codes } => {
            let codes = slice(codes, &span);
            if inside {
                let lo = (lo.max(c.min) - base) as u32;
                let hi = (hi.min(c.max) - base) as u32;
                debug_assert!(!nulls || lo > 0);
                match not {
                    false => kernel::range(codes, lo, hi, sel),
                    true => kernel::outside(codes, lo, hi, sel),
                }
            }
            if *nulls && not {
                kernel::range(codes, 1, u32::MAX, sel);
            }
        }
        Data::Wide { values, nulls } => {
            match not {
                false => kernel::range_i64(&values[span], lo, hi, sel),
                true => kernel::outside_i64(&values[span], lo, hi, sel),
            }
            keep_known(nulls.as_ref(), from, sel);
        }
        _ => sel.retain(|i| c.int(from + i).is_some_and(|v| (lo <= v && v <= hi) != not)),
    }
}

/// Keeps the rows that are not NULL; the block begins at row `from` of the chunk.
fn keep_known(nulls: Option<&Nulls>, from: usize, sel: &mut Selection) {
    if let Some(nulls) = nulls {
        sel.retain(|i| !nulls.has(from + i));
    }
}

/// Selects the rows whose integer, less `base`, is in a set.
pub(crate) fn int_in_set(c: &Chunk, span: Range<usize>, base: i64, set: &Bits, sel: &mut Selection) {
    let from = span.start;
    if let Data::Int { base: own, nulls, codes } = &c.data
        && let Some(shift) = own.checked_sub(base)
        && shift.unsigned_abs() < 1 << 40
    {
        // Code 0 is NULL: its number, one below the least, must not be in the set.
        if !nulls || !usize::try_from(shift).is_ok_and(|s| set.has(s)) {
            kernel::member(slice(codes, &span), shift, set, sel);
            return;
        }
    }
    sel.retain(|i| {
        c.int(from + i)
            .and_then(|v| v.checked_sub(base))
            .is_some_and(|v| usize::try_from(v).is_ok_and(|v| set.has(v)))
    });
}

/// The number with which an integer column is compared, if it is one.
fn number(v: &Value, aff: Affinity) -> Option<Value> {
    if aff == Affinity::Text {
        return None;
    }
    let mut v = v.clone();
    if aff.is_numeric() {
        Affinity::Numeric.apply(&mut v).ok()?;
    }
    matches!(v, Value::Int(_) | Value::Real(_)).then_some(v)
}

/// `column op v` for integers as a range.
fn compare_range(op: CmpOp, v: &Value) -> Option<(i64, i64, bool)> {
    const EMPTY: (i64, i64, bool) = (1, 0, false);
    let (below, floor) = match v {
        Value::Int(i) => (*i, Some(*i)),
        Value::Real(r) => {
            if *r >= 9.3e18 || *r <= -9.3e18 {
                return None;
            }
            let f = r.floor();
            let i = f as i64;
            if iolite_value::compare::int_real(i, f).is_ne() {
                return None;
            }
            (i, (f == *r).then_some(i))
        }
        _ => return None,
    };
    // `below` is the greatest integer that is not greater than v, `floor` is v if v is an integer.
    Some(match (op, floor) {
        (CmpOp::Eq, Some(i)) => (i, i, false),
        (CmpOp::Eq, None) => EMPTY,
        (CmpOp::Ne, Some(i)) => (i, i, true),
        (CmpOp::Ne, None) => (1, 0, true),
        (CmpOp::Le, _) | (CmpOp::Lt, None) => (i64::MIN, below, false),
        (CmpOp::Lt, Some(i)) => match i.checked_sub(1) {
            Some(h) => (i64::MIN, h, false),
            None => EMPTY,
        },
        (CmpOp::Ge, Some(i)) => (i, i64::MAX, false),
        (CmpOp::Gt, _) | (CmpOp::Ge, None) => match below.checked_add(1) {
            Some(l) => (l, i64::MAX, false),
            None => EMPTY,
        },
    })
}

fn int_range(ex: &Ex, col: usize) -> Option<Pred> {
    match ex {
        Ex::Compare(c) => {
            let (op, v) = c.with_constant()?;
            if v.is_null() {
                return Some(Pred::Never);
            }
            let (lo, hi, not) = compare_range(op, &number(v, c.affinity)?)?;
            Some(Pred::Range { col, lo, hi, not })
        }
        Ex::Between(a, b) => {
            let (op, v) = a.with_constant()?;
            let (lo, hi, not) = compare_range(op, &number(v, a.affinity)?)?;
            let (below, w) = b.with_constant()?;
            let (l2, h2, n2) = compare_range(below, &number(w, b.affinity)?)?;
            if not || n2 {
                return None;
            }
            Some(Pred::Range { col, lo: lo.max(l2), hi: hi.min(h2), not: false })
        }
        Ex::Not(e) => match int_range(e, col)? {
            Pred::Range { lo, hi, not, .. } => Some(Pred::Range { col, lo, hi, not: !not }),
            other => Some(other),
        },
        _ => None,
    }
}

/// The integers of an IN list, or of a disjunction of equalities.
fn int_list(ex: &Ex) -> Option<Vec<i64>> {
    match ex {
        Ex::In { not: false, lhs, list, affinity, .. } if matches!(**lhs, Ex::Slot(_)) => {
            let mut out = Vec::new();
            for e in list {
                let Ex::Const(v) = e else { return None };
                match number(v, *affinity)? {
                    Value::Int(i) => out.push(i),
                    _ => return None,
                }
            }
            Some(out)
        }
        Ex::Or(a, b) => {
            let mut out = int_list(a)?;
            out.extend(int_list(b)?);
            Some(out)
        }
        Ex::Compare(c) => {
            let (op, v) = c.with_constant()?;
            match (op, number(v, c.affinity)?) {
                (CmpOp::Eq, Value::Int(i)) => Some(vec![i]),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The values of a column between bounds that are in the set behind IN, or are not, less the number before them.
fn int_members(ex: &Ex, min: i64, max: i64) -> Result<Option<(i64, Bits)>> {
    let Ex::InSet(u) = ex else { return Ok(None) };
    let (Some(set), Ex::Slot(_)) = (&u.set, &u.lhs) else { return Ok(None) };
    if min > max || !set.only_ints() {
        return Ok(None);
    }
    let within = || set.ints.iter().copied().filter(|v| (min..=max).contains(v));
    // What is not listed lies anywhere between the bounds.
    let (base, last) = match u.not {
        true => (min, max),
        false => within().fold((max, min), |(lo, hi), v| (lo.min(v), hi.max(v))),
    };
    if base > last {
        return Ok(Some((base, Bits::new(1)?)));
    }
    let Some(span) = last.checked_sub(base).filter(|s| *s < MOST_MEMBERS) else { return Ok(None) };
    let mut bits = Bits::new(span as usize + 1)?;
    if u.not {
        (base..=last).filter(|v| !set.ints.contains(v)).for_each(|v| {
            bits.set((v - base) as usize);
        });
    } else {
        within().for_each(|v| {
            bits.set((v - base) as usize);
        });
    }
    Ok(Some((base, bits)))
}

fn real_range(ex: &Ex, col: usize) -> Option<Pred> {
    let bound = |op: CmpOp, v: &Value, aff: Affinity| {
        let r = match number(v, aff)? {
            Value::Real(r) => r,
            // Integers beyond this are not reals exactly.
            Value::Int(i) if i.unsigned_abs() < 1 << 52 => i as f64,
            _ => return None,
        };
        let inf = f64::INFINITY;
        Some(match op {
            CmpOp::Eq => (r, r, true, true),
            CmpOp::Lt => (-inf, r, true, false),
            CmpOp::Le => (-inf, r, true, true),
            CmpOp::Gt => (r, inf, false, true),
            CmpOp::Ge => (r, inf, true, true),
            CmpOp::Ne => return None,
        })
    };
    match ex {
        Ex::Compare(c) => {
            let (op, v) = c.with_constant()?;
            let (lo, hi, lo_in, hi_in) = bound(op, v, c.affinity)?;
            Some(Pred::RealRange { col, lo, hi, lo_in, hi_in })
        }
        Ex::Between(a, b) => {
            let (op, v) = a.with_constant()?;
            let (below, w) = b.with_constant()?;
            if op != CmpOp::Ge || below != CmpOp::Le {
                return None;
            }
            let (lo, ..) = bound(op, v, a.affinity)?;
            let (_, hi, ..) = bound(below, w, b.affinity)?;
            Some(Pred::RealRange { col, lo, hi, lo_in: true, hi_in: true })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_integers_says_what_the_comparison_says() {
        let values = [
            Value::Int(3),
            Value::Int(i64::MIN),
            Value::Int(i64::MAX),
            Value::Real(2.5),
            Value::Real(-2.5),
            Value::Real(3.0),
            Value::Real(1e300),
            Value::Real(9.223_372_036_854_776e18),
            Value::Real(-9.223_372_036_854_776e18),
        ];
        let ops = [CmpOp::Eq, CmpOp::Ne, CmpOp::Lt, CmpOp::Le, CmpOp::Gt, CmpOp::Ge];
        for v in &values {
            for op in ops {
                let Some((lo, hi, not)) = compare_range(op, v) else { continue };
                for i in [i64::MIN, i64::MIN + 1, -3, -2, 2, 3, 4, i64::MAX - 1, i64::MAX] {
                    let o = iolite_value::compare::compare(&Value::Int(i), v, &Default::default());
                    assert_eq!((lo <= i && i <= hi) != not, op.holds(o), "{i} {op:?} {v:?}");
                }
            }
        }
    }
    #[test]
    fn ranges_of_one_column_become_one_that_says_what_both_say() {
        let range = |lo, hi| Pred::Range { col: 1, lo, hi, not: false };
        let bounds = [(0, 5), (3, 9), (5, 5), (6, i64::MAX), (i64::MIN, 2)];
        for (a, b) in bounds.iter().flat_map(|a| bounds.iter().map(move |b| (a, b))) {
            let one = Pred::joined(vec![range(a.0, a.1), range(b.0, b.1)]);
            let [Pred::Range { lo, hi, .. }] = one[..] else { panic!("not one") };
            for v in -1..12 {
                assert_eq!(lo <= v && v <= hi, a.0 <= v && v <= a.1 && b.0 <= v && v <= b.1);
            }
        }
        let holds = |p: &Pred, v: f64| match *p {
            Pred::RealRange { lo, hi, lo_in, hi_in, .. } => {
                (v > lo || lo_in && v == lo) && (v < hi || hi_in && v == hi)
            }
            _ => panic!("another condition"),
        };
        for i in 0..256 {
            let bit = |n: i32| i >> n & 1 != 0;
            let real = |lo: bool, hi: bool, lo_in, hi_in| {
                let (lo, hi) = (if lo { 1.0 } else { 0.0 }, if hi { 2.0 } else { 1.0 });
                Pred::RealRange { col: 0, lo, hi, lo_in, hi_in }
            };
            let (a, b) = (real(bit(0), bit(1), bit(2), bit(3)), real(bit(4), bit(5), bit(6), bit(7)));
            let both = [-0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5].map(|v| holds(&a, v) && holds(&b, v));
            let one = Pred::joined(vec![a, b]);
            assert_eq!(one.len(), 1);
            assert_eq!([-0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5].map(|v| holds(&one[0], v)), both);
        }
        let not = Pred::Range { col: 1, lo: 2, hi: 3, not: true };
        let other = Pred::Range { col: 2, lo: 2, hi: 3, not: false };
        assert_eq!(Pred::joined(vec![range(0, 5), not, other, range(1, 9)]).len(), 3);
    }
}
