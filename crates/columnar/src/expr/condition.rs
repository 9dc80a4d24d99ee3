//! Conditions on joined rows, or on several columns of one table, for all rows of a batch at once.
//!
//! What is computed is whether a condition holds: false and NULL are one. So a condition is taken apart at AND and OR
//! only, and NOT goes to the comparisons; what stands below is a set of values of one column, a comparison of integers, of reals, or of two columns of
//! texts, by ranks where there are few or else by their bytes, or the expression itself, row by row.

use crate::expr::asked::{ASKED_AT_ONCE, Asked};
use crate::expr::batch::{Batch, BatchRow, compare_all, few_code, is_vector};
use crate::expr::columns::Kind;
use crate::expr::scope::{OneField, Scope, few_values};
use crate::expr::test::Test;
use crate::expr::vector::{Node, bounds};
use crate::expr::{Cmp, Ex};
use crate::sort;
use crate::store::chunk::{Chunk, Data, Dict, Field};
use iolite_base::{Code, Result};
use iolite_plan::bound::CmpOp;
use std::cell::RefCell;
use std::sync::Arc;

/// A condition. See the module's head.
pub(crate) enum Truth {
    And(Box<Truth>, Box<Truth>),
    Or(Box<Truth>, Box<Truth>),
    /// By the value of a column that has few; the last one is NULL.
    Few {
        table: usize,
        col: usize,
        holds: Vec<bool>,
    },
    /// By the entry of a dictionary, which is asked when the first row has it; the last place is that of NULL.
    Entry {
        table: usize,
        col: usize,
        asked: RefCell<Asked>,
    },
    /// By the value of a column that has many, where it lies.
    Value {
        at: (usize, usize),
        test: Test,
    },
    /// Two columns of texts, by the places of their entries among all entries of both.
    Texts {
        op: CmpOp,
        a: (usize, usize),
        b: (usize, usize),
        ranks: [Vec<u32>; 2],
    },
    /// Two columns, by the bytes of their texts; the expression says what holds for others.
    Fields {
        op: CmpOp,
        a: (usize, usize),
        b: (usize, usize),
        ex: Ex,
    },
    /// Integers or reals.
    Compare(Cmp),
    /// A column is NULL, or is not.
    Null {
        at: (usize, usize),
        not: bool,
    },
    /// The same of computed integers.
    NullOf {
        node: Box<Node>,
        not: bool,
    },
    /// In all rows or in none.
    Always(bool),
    Any(Ex),
}

/// A condition that has a kernel is computed for each value of a column beforehand only if there are so few.
const MOST_TABLED: usize = 256;

/// The condition that holds where this one is false, and is NULL where this one is, without a NOT.
pub(crate) fn negated(ex: &Ex) -> Option<Ex> {
    let of = |c: &Cmp| Ex::Compare(Box::new(Cmp { op: c.op.negated(), ..c.clone() }));
    let not = |e: &Ex| Box::new(Ex::Not(Box::new(e.clone())));
    Some(match ex {
        Ex::Not(e) => (**e).clone(),
        Ex::Compare(c) => of(c),
        Ex::Between(lo, hi) => Ex::Or(Box::new(of(lo)), Box::new(of(hi))),
        Ex::And(a, b) => Ex::Or(not(a), not(b)),
        Ex::Or(a, b) => Ex::And(not(a), not(b)),
        Ex::IsNull(e, not) => Ex::IsNull(e.clone(), !not),
        _ => return None,
    })
}

/// Whether a condition is made of comparisons of integers or reals alone, and of columns that are NULL or not.
pub(crate) fn is_kernel(ex: &Ex, s: &Scope<'_>) -> bool {
    match ex {
        Ex::Not(e) => negated(e).is_some_and(|e| is_kernel(&e, s)),
        Ex::IsNull(e, _) => matches!(**e, Ex::Slot(_)) || has_ints(e, s),
        Ex::And(a, b) | Ex::Or(a, b) => is_kernel(a, s) && is_kernel(b, s),
        Ex::Between(lo, hi) => is_vector(lo, s) && is_vector(hi, s),
        Ex::Compare(c) => is_vector(c, s),
        _ => false,
    }
}

/// Whether an expression of the only table is integers or NULL, computed for a block at once.
fn has_ints(ex: &Ex, s: &Scope<'_>) -> bool {
    s.cols.len() == 1 && s.places.outer == 0 && bounds(ex, s).is_some()
}

/// The place of NULL.
const NULL: u32 = u32::MAX;

impl Truth {
    /// Takes a condition apart.
    pub fn of(ex: &Ex, s: &Scope<'_>) -> Result<Truth> {
        let both = |a: &Ex, b: &Ex| -> Result<(Box<Truth>, Box<Truth>)> {
            Ok((Box::new(Truth::of(a, s)?), Box::new(Truth::of(b, s)?)))
        };
        if let Some((slot, n)) = few_values(ex, s)
            && (n <= MOST_TABLED || !is_kernel(ex, s))
        {
            let (table, col) = s.places.at[slot];
            let alone = s.rt.is_none_or(|rt| rt.threads() < 2);
            if n > ASKED_AT_ONCE && alone && s.cols[table].kinds[col] == Kind::Dict {
                let asked = RefCell::new(Asked::new(Test::of(ex, s.eval), n)?);
                return Ok(Truth::Entry { table, col, asked });
            }
            return Ok(Truth::Few { table, col, holds: by_value(ex, table, col, n, s)? });
        }
        if let Some(slot) = ex.only_slot()
            && let at = s.places.at[slot]
            && matches!(s.cols[at.0].kinds[at.1], Kind::Dict | Kind::Mixed)
        {
            let test = Test::of(ex, s.eval);
            if test.is_known() {
                return Ok(Truth::Value { at, test });
            }
        }
        if let Ex::Not(e) = ex
            && let Some(positive) = negated(e)
        {
            return Truth::of(&positive, s);
        }
        match ex {
            Ex::IsNull(e, not) if let Ex::Slot(slot) = **e => {
                Ok(Truth::Null { at: s.places.at[slot], not: *not })
            }
            Ex::IsNull(e, not) if has_ints(e, s) => match bounds(e, s) {
                Some((_, _, false)) => Ok(Truth::Always(*not)),
                _ => Ok(Truth::NullOf { node: Box::new(Node::of(e, s)?), not: *not }),
            },
            Ex::And(a, b) => both(a, b).map(|(a, b)| Truth::And(a, b)),
            Ex::Or(a, b) => both(a, b).map(|(a, b)| Truth::Or(a, b)),
            Ex::Between(lo, hi) if is_vector(lo, s) && is_vector(hi, s) => {
                let compare = |c: &Cmp| Box::new(Truth::Compare(c.clone()));
                Ok(Truth::And(compare(lo), compare(hi)))
            }
            Ex::Compare(c) if is_vector(c, s) => Ok(Truth::Compare((**c).clone())),
            Ex::Compare(c) => match texts(c, s)? {
                Some(t) => Ok(t),
                None => Ok(fields(c, ex, s).unwrap_or_else(|| Truth::Any(ex.clone()))),
            },
            _ => Ok(Truth::Any(ex.clone())),
        }
    }

    /// Whether no expression is evaluated row by row.
    pub fn is_pure(&self) -> bool {
        match self {
            Truth::And(a, b) | Truth::Or(a, b) => a.is_pure() && b.is_pure(),
            Truth::Any(_) | Truth::Entry { .. } | Truth::Value { .. } => false,
            _ => true,
        }
    }

    /// For which rows it holds.
    pub fn test(&self, b: &Batch<'_>, s: &Scope<'_>) -> Result<Vec<bool>> {
        let n = b.outer.len();
        let mut out: Vec<bool> = crate::memory::room(n)?;
        match self {
            Truth::And(x, y) => {
                out = x.test(b, s)?;
                if out.contains(&true) {
                    out.iter_mut().zip(y.test(b, s)?).for_each(|(a, b)| *a &= b);
                }
            }
            Truth::Or(x, y) => {
                out = x.test(b, s)?;
                if out.contains(&false) {
                    out.iter_mut().zip(y.test(b, s)?).for_each(|(a, b)| *a |= b);
                }
            }
            Truth::Few { table, col, holds } => {
                let (least, null) = (b.cols[*table].bounds[*col].0, holds.len() - 1);
                b.each(*table, *col, |place| {
                    out.push(holds[place.map_or(null, |(chunk, i)| few_code(chunk, i, least, null))]);
                });
            }
            Truth::Entry { table, col, asked } => {
                let dict = &b.cols[*table].loaded.dicts[*col];
                let (mut asked, mut failed) = (asked.borrow_mut(), None);
                b.each(*table, *col, |place| {
                    let null = (dict.len(), Field::Null);
                    let (code, f) = place.map_or(null, |(chunk, i)| {
                        let code = few_code(chunk, i, 0, null.0);
                        (code, dict.get(code as u32))
                    });
                    out.push(asked.holds(code, f, s.eval).unwrap_or_else(|e| {
                        failed = Some(e);
                        false
                    }));
                });
                if let Some(e) = failed {
                    return Err(e);
                }
            }
            Truth::Value { at, test } => {
                let mut failed = None;
                b.each(at.0, at.1, |place| {
                    let f = field(b, *at, place).0;
                    out.push(test.holds(f, s.eval).unwrap_or_else(|e| {
                        failed = Some(e);
                        false
                    }));
                });
                if let Some(e) = failed {
                    return Err(e);
                }
            }
            Truth::Texts { op, a, b: with, ranks } => {
                let mut left: Vec<u32> = crate::memory::room(n)?;
                let rank = |place: Option<(&Chunk, usize)>, ranks: &[u32]| match place {
                    Some((chunk, i)) => match &chunk.data {
                        Data::Dict { codes } => ranks[codes.get(i) as usize],
                        _ => NULL,
                    },
                    None => NULL,
                };
                b.each(a.0, a.1, |place| left.push(rank(place, &ranks[0])));
                let mut left = left.into_iter();
                b.each(with.0, with.1, |place| {
                    let (x, y) = (left.next().unwrap_or(NULL), rank(place, &ranks[1]));
                    out.push(op.holds(x.cmp(&y)) && x != NULL && y != NULL);
                });
            }
            Truth::Fields { op, a, b: with, ex } => {
                let mut left: Vec<(Field<'_>, u32)> = crate::memory::room(n)?;
                b.each(a.0, a.1, |place| left.push(field(b, *a, place)));
                let same = Arc::ptr_eq(&b.cols[a.0].loaded.dicts[a.1], &b.cols[with.0].loaded.dicts[with.1]);
                let mut left = left.into_iter();
                let mut unknown = Vec::new();
                b.each(with.0, with.1, |place| {
                    let (x, x_code) = left.next().unwrap_or((Field::Null, NULL));
                    let (y, y_code) = field(b, *with, place);
                    out.push(match (x, y) {
                        (Field::Null, _) | (_, Field::Null) => false,
                        (Field::Text(_), Field::Text(_)) if same && x_code == y_code && x_code != NULL => {
                            matches!(op, CmpOp::Eq | CmpOp::Le | CmpOp::Ge)
                        }
                        (Field::Text(x), Field::Text(y)) => op.holds(x.cmp(y)),
                        _ => {
                            unknown.push(out.len());
                            false
                        }
                    });
                });
                for i in unknown {
                    out[i] = s.eval.holds(ex, &BatchRow { batch: b, i })?;
                }
            }
            Truth::Compare(c) => return compare_all(c, b, s)?.ok_or_else(|| Code::Internal.into()),
            Truth::Always(holds) => out.resize(n, *holds),
            Truth::NullOf { node, not } => {
                out = node.ints(b, s)?.nulls;
                out.resize(n, false);
                out.iter_mut().for_each(|null| *null ^= not);
            }
            Truth::Null { at, not } => {
                b.each(at.0, at.1, |place| {
                    out.push(matches!(field(b, *at, place).0, Field::Null) != *not);
                });
            }
            Truth::Any(ex) => {
                for i in 0..n {
                    out.push(s.eval.holds(ex, &BatchRow { batch: b, i })?);
                }
            }
        }
        Ok(out)
    }
}

/// The value of a column at a place, and the place of its entry if it is one of the dictionary.
#[inline(always)]
fn field<'b>(b: &'b Batch<'_>, at: (usize, usize), place: Option<(&'b Chunk, usize)>) -> (Field<'b>, u32) {
    let Some((chunk, i)) = place else { return (Field::Null, NULL) };
    let code = match &chunk.data {
        Data::Dict { codes } => codes.get(i),
        _ => NULL,
    };
    (chunk.field(i, &b.cols[at.0].loaded.dicts[at.1]), code)
}

/// A comparison of two columns that hold texts, or may.
fn fields(c: &Cmp, ex: &Ex, s: &Scope<'_>) -> Option<Truth> {
    let (Ex::Slot(x), Ex::Slot(y)) = (&c.lhs, &c.rhs) else { return None };
    let (a, b) = (s.places.at[*x], s.places.at[*y]);
    let texts = |at: (usize, usize)| matches!(s.cols[at.0].kinds[at.1], Kind::Dict | Kind::Mixed);
    let plain = !c.null_eq && !c.affinity.is_numeric() && c.collation.is_binary();
    (plain && texts(a) && texts(b)).then(|| Truth::Fields { op: c.op, a, b, ex: ex.clone() })
}

/// Whether a condition holds, by the value of its only column.
fn by_value(ex: &Ex, table: usize, col: usize, n: usize, s: &Scope<'_>) -> Result<Vec<bool>> {
    let cols = &s.cols[table];
    let mut out: Vec<bool> = crate::memory::room(n)?;
    match cols.kinds[col] {
        Kind::Dict => {
            each_entry(ex, &cols.loaded.dicts[col], s.eval, &mut |_, holds| out.push(holds))?;
            out.push(s.eval.holds(ex, &OneField(Field::Null))?);
        }
        _ => {
            let least = cols.bounds[col].0;
            for i in 0..n {
                let v = if i + 1 == n { Field::Null } else { Field::Int(least + i as i64) };
                out.push(s.eval.holds(ex, &OneField(v))?);
            }
        }
    }
    Ok(out)
}

/// Calls `f` with each entry of a dictionary and whether a condition on its column holds for it.
pub(crate) fn each_entry(
    ex: &Ex,
    dict: &Dict,
    eval: &crate::expr::Eval<'_>,
    f: &mut dyn FnMut(u32, bool),
) -> Result<()> {
    let test = Test::of(ex, eval);
    for code in 0..dict.len() as u32 {
        f(code, test.holds(dict.get(code), eval)?);
    }
    Ok(())
}

/// A comparison of two columns of texts.
fn texts(c: &Cmp, s: &Scope<'_>) -> Result<Option<Truth>> {
    let (Ex::Slot(x), Ex::Slot(y)) = (&c.lhs, &c.rhs) else { return Ok(None) };
    let (a, b) = (s.places.at[*x], s.places.at[*y]);
    let dict = |at: (usize, usize)| {
        (s.cols[at.0].kinds[at.1] == Kind::Dict).then(|| &s.cols[at.0].loaded.dicts[at.1])
    };
    let (Some(p), Some(q)) = (dict(a), dict(b)) else { return Ok(None) };
    let rows = s.cols[a.0].loaded.rows.max(s.cols[b.0].loaded.rows);
    if c.null_eq || c.affinity.is_numeric() || !c.collation.is_binary() || p.len() + q.len() > rows.max(1000)
    {
        return Ok(None);
    }
    let mut all: Vec<(&[u8], usize, u32)> = crate::memory::room(p.len() + q.len())?;
    let mut ranks = [vec![NULL; p.len()], vec![NULL; q.len()]];
    for (side, d) in [p, q].into_iter().enumerate() {
        for code in 0..d.len() as u32 {
            match d.get(code) {
                Field::Text(t) => all.push((t, side, code)),
                Field::Null => {}
                _ => return Ok(None),
            }
        }
    }
    let mut at: Vec<(u64, u32)> = crate::memory::room(all.len())?;
    at.extend(all.iter().enumerate().map(|(i, (t, ..))| (sort::first_bytes(t), i as u32)));
    sort::by_order(&mut at, &|x, y| all[x as usize].0.cmp(all[y as usize].0));
    let (mut rank, mut last) = (0, None);
    for (_, i) in at {
        let (text, side, code) = all[i as usize];
        rank += last.is_some_and(|l| l != text) as u32;
        last = Some(text);
        ranks[side][code as usize] = rank;
    }
    Ok(Some(Truth::Texts { op: c.op, a, b, ranks }))
}
