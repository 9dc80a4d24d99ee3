//! Expressions over a block of rows: integers, reals, or values of any kind, one for each row.
//!
//! What always holds: each form gives what the scalar code gives. A kernel that meets a value that it does not know (one that is
//! no text, a time of another form) leaves that row to the scalar code.
//!
//! What it does not know: groups, orders.

use crate::expr::batch::{Batch, BatchRow, Ints, Reals, compared, int_bounds, is_real, is_vector};
use crate::expr::condition::Truth;
use crate::expr::scope::{OneField, Scope, few_values};
use crate::expr::{Cmp, Ex};
use crate::store::chunk::{Data, Field};
use iolite_base::{Code, Result, alloc};
use iolite_plan::bound::BinOp;
use iolite_value::{Affinity, Value, utf8};
use std::borrow::Cow;
use std::cell::RefCell;

/// Of a column with a dictionary entries are computed once where there are so many times the rows.
const FEW: u64 = 2;

/// An expression, brought into a form.
pub(crate) enum Node {
    /// Integers that cannot overflow, or NULL.
    Ints(Ex),
    /// Reals or NULL.
    Reals(Ex),
    /// A column.
    Column(usize),
    Const(Value),
    /// `length` of a text.
    Length(Box<Node>, Ex),
    /// `substr(x, from + 1, len)`.
    Part {
        of: Box<Node>,
        from: usize,
        len: usize,
        ex: Ex,
    },
    /// `substr(x, from + 1, len)` of a computed length.
    Begin {
        of: Box<Node>,
        from: usize,
        len: Box<Node>,
        ex: Ex,
    },
    /// Where a text stands in another one, plus a constant.
    Find {
        of: Box<Node>,
        what: Vec<u8>,
        plus: i64,
        ex: Ex,
    },
    /// A part of a text that is a time.
    Clock {
        of: Box<Node>,
        from: usize,
        to: usize,
        ex: Ex,
    },
    /// A text of digits as an integer.
    Digits(Box<Node>, Ex),
    /// The first one whose condition holds; whether all are integers or NULL.
    Case(Vec<(Truth, Node)>, Option<Box<Node>>, bool),
    /// Whether a comparison of integers or reals holds, as an integer.
    Holds(Cmp),
    /// `abs` of integers.
    Abs(Box<Node>),
    /// `min` or `max` of several integers.
    Best {
        of: Vec<Node>,
        max: bool,
    },
    /// What one column of a dictionary decides, with what it is for the entries that rows have had.
    OfEntry {
        ex: Ex,
        slot: usize,
        known: RefCell<Vec<Option<Value>>>,
    },
    Any(Ex),
}

/// The values of a block.
pub(crate) enum Vector<'v> {
    Ints(Ints),
    Reals(Reals),
    Fields(Vec<Field<'v>>),
    Values(Vec<Value>),
}

impl Vector<'_> {
    /// Puts the value of a row, which nobody looks at again, in the place of another.
    #[inline]
    pub fn take(&mut self, i: usize, to: &mut Value) -> Result<()> {
        match self {
            Vector::Values(v) => std::mem::swap(&mut v[i], to),
            other => other.get(i).put(to)?,
        }
        Ok(())
    }

    /// The values, if all are integers.
    pub fn whole_ints(&self) -> Option<Cow<'_, [i64]>> {
        match self {
            Vector::Ints(v) if v.nulls.is_empty() => Some(Cow::Borrowed(&v.values)),
            Vector::Fields(list) => {
                let ints = list.iter().map(|f| if let Field::Int(i) = f { Some(*i) } else { None });
                ints.collect::<Option<Vec<i64>>>().map(Cow::Owned)
            }
            _ => None,
        }
    }

    /// The value of a row.
    #[inline]
    pub fn get(&self, i: usize) -> Field<'_> {
        match self {
            Vector::Ints(v) if v.nulls.get(i) == Some(&true) => Field::Null,
            Vector::Ints(v) => Field::Int(v.values[i]),
            Vector::Reals(v) if v.nulls.get(i) == Some(&true) => Field::Null,
            Vector::Reals(v) => Field::Real(v.values[i]),
            Vector::Fields(f) => f[i],
            Vector::Values(v) => Field::of(&v[i]),
        }
    }
}

/// The integer that a constant is.
fn number(e: &Ex) -> Option<usize> {
    match e {
        Ex::Const(Value::Int(n)) if (0..1 << 20).contains(n) => Some(*n as usize),
        _ => None,
    }
}

/// Where a part of a time stands in a text like `2025-07-01 12:30:00`.
fn place_of(format: &[u8]) -> Option<(usize, usize)> {
    Some(match format {
        b"%Y" => (0, 4),
        b"%m" => (5, 7),
        b"%d" => (8, 10),
        b"%H" => (11, 13),
        b"%M" => (14, 16),
        b"%S" => (17, 19),
        b"%Y-%m" => (0, 7),
        b"%Y-%m-%d" | b"%F" => (0, 10),
        b"%H:%M" | b"%R" => (11, 16),
        b"%H:%M:%S" | b"%T" => (11, 19),
        b"%Y-%m-%d %H:%M" => (0, 16),
        b"%Y-%m-%d %H:%M:%S" => (0, 19),
        _ => return None,
    })
}

/// Whether a text is a time that stands for itself: no day that only some months have.
fn is_time(t: &[u8]) -> bool {
    let Ok(t) = <&[u8; 19]>::try_from(t) else { return false };
    let two = |i: usize| {
        let (a, b) = (t[i].wrapping_sub(b'0'), t[i + 1].wrapping_sub(b'0'));
        if a < 10 && b < 10 { a * 10 + b } else { 255 }
    };
    let marks = t[4] == b'-' && t[7] == b'-' && t[10] == b' ' && t[13] == b':' && t[16] == b':';
    let day = two(8);
    let date = two(0) < 100 && two(2) < 100 && (1..=12).contains(&two(5));
    let short = [2, 4, 6, 9, 11].contains(&two(5));
    let days = day >= 1 && (day <= 28 || day <= 31 && !short || day == 30 && two(5) != 2);
    marks && date && days && two(11) < 24 && two(14) < 60 && two(17) < 60
}

/// Whether calls of a function may be computed for a block at once: [`Node::of`] says which.
pub(crate) fn is_kernel(name: &str) -> bool {
    const KERNELS: [&str; 8] = ["length", "substr", "substring", "instr", "strftime", "abs", "min", "max"];
    KERNELS.iter().any(|k| name.eq_ignore_ascii_case(k))
}

impl Node {
    /// Brings an expression into form.
    pub fn of(ex: &Ex, s: &Scope<'_>) -> Result<Node> {
        Ok(match Node::formed(ex, s)? {
            Node::Any(ex) => match few_values(&ex, s) {
                Some((slot, n)) if s.most_rows.is_none_or(|rows| n as u64 * FEW <= rows) => {
                    let mut known = crate::memory::room(n)?;
                    known.resize_with(n, || None);
                    Node::OfEntry { ex, slot, known: RefCell::new(known) }
                }
                _ => Node::Any(ex),
            },
            formed => formed,
        })
    }

    fn formed(ex: &Ex, s: &Scope<'_>) -> Result<Node> {
        if int_bounds(ex, s.cols, s.places, &|t| s.left[t]).is_some() {
            return Ok(Node::Ints(ex.clone()));
        }
        if is_real(ex, s) {
            return Ok(Node::Reals(ex.clone()));
        }
        Ok(match ex {
            Ex::Const(v) => Node::Const(v.clone()),
            Ex::Slot(i) => Node::Column(*i),
            Ex::Compare(c) if is_vector(c, s) => Node::Holds((**c).clone()),
            Ex::Call { function, args, .. } => {
                let name = function.name.to_ascii_lowercase();
                match (&*name, &args[..]) {
                    ("abs", [a]) if bounds(ex, s).is_some() => Node::Abs(Box::new(Node::of(a, s)?)),
                    ("min" | "max", of) if bounds(ex, s).is_some() => {
                        let of = of.iter().map(|a| Node::of(a, s)).collect::<Result<_>>()?;
                        Node::Best { of, max: name == "max" }
                    }
                    ("length", [a]) => Node::Length(Box::new(Node::of(a, s)?), ex.clone()),
                    ("substr" | "substring", [a, from, len]) => match (number(from), number(len)) {
                        (Some(from @ 1..), Some(len)) => {
                            Node::Part { of: Box::new(Node::of(a, s)?), from: from - 1, len, ex: ex.clone() }
                        }
                        (Some(from @ 1..), None) => match Node::of(len, s)? {
                            len @ Node::Find { .. } => {
                                let of = Box::new(Node::of(a, s)?);
                                Node::Begin { of, from: from - 1, len: Box::new(len), ex: ex.clone() }
                            }
                            _ => Node::Any(ex.clone()),
                        },
                        _ => Node::Any(ex.clone()),
                    },
                    ("substr" | "substring", [a, from]) => match number(from) {
                        Some(from @ 1..) => {
                            let of = Box::new(Node::of(a, s)?);
                            Node::Part { of, from: from - 1, len: usize::MAX >> 1, ex: ex.clone() }
                        }
                        _ => Node::Any(ex.clone()),
                    },
                    ("instr", [a, Ex::Const(Value::Text(what, _))])
                        if what.is_ascii() && !what.is_empty() =>
                    {
                        Node::Find {
                            of: Box::new(Node::of(a, s)?),
                            what: what.to_vec(),
                            plus: 0,
                            ex: ex.clone(),
                        }
                    }
                    ("strftime", [Ex::Const(Value::Text(format, _)), a]) => match place_of(format) {
                        Some((from, to)) => {
                            Node::Clock { of: Box::new(Node::of(a, s)?), from, to, ex: ex.clone() }
                        }
                        None => Node::Any(ex.clone()),
                    },
                    _ => Node::Any(ex.clone()),
                }
            }
            Ex::Binary(op @ (BinOp::Add | BinOp::Sub), a, b) => match (Node::of(a, s)?, &**b) {
                (Node::Find { of, what, plus: 0, .. }, Ex::Const(Value::Int(k)))
                    if k.unsigned_abs() < 1 << 30 =>
                {
                    let plus = if *op == BinOp::Add { *k } else { -k };
                    Node::Find { of, what, plus, ex: ex.clone() }
                }
                _ => Node::Any(ex.clone()),
            },
            Ex::Cast(a, Affinity::Integer) => match Node::of(a, s)? {
                of @ (Node::Clock { .. } | Node::Part { .. }) => Node::Digits(Box::new(of), ex.clone()),
                _ => Node::Any(ex.clone()),
            },
            Ex::Case { base: None, arms, otherwise } => {
                let mut list = Vec::new();
                for (when, then) in arms {
                    list.push((Truth::of(when, s)?, Node::of(then, s)?));
                }
                let otherwise = otherwise.as_ref().map(|o| Node::of(o, s)).transpose()?;
                // What may fail is computed for the rows that want it alone.
                let plain =
                    |n: &Node| matches!(n, Node::Ints(_) | Node::Reals(_) | Node::Column(_) | Node::Const(_));
                let ints = bounds(ex, s).is_some();
                match ints || list.iter().map(|l| &l.1).chain(&otherwise).all(plain) {
                    true => Node::Case(list, otherwise.map(Box::new), ints),
                    false => Node::Any(ex.clone()),
                }
            }
            _ => Node::Any(ex.clone()),
        })
    }

    /// The values for a block.
    pub fn values<'v>(&'v self, b: &Batch<'v>, s: &Scope<'_>) -> Result<Vector<'v>> {
        let n = b.outer.len();
        Ok(match self {
            Node::Ints(ex) => {
                let mut out = Ints::default();
                Ints::of(ex, b, &mut out)?;
                Vector::Ints(out)
            }
            Node::Reals(ex) => {
                let mut out = Reals::default();
                Reals::of(ex, b, s, &mut out)?;
                Vector::Reals(out)
            }
            Node::Column(slot) => Vector::Fields(column(*slot, b)?),
            Node::Const(v) => Vector::Fields(vec![Field::of(v); n]),
            Node::Length(of, ex) => match of.values(b, s)? {
                Vector::Ints(mut v) => {
                    v.values.iter_mut().for_each(|i| *i = digits(*i));
                    Vector::Ints(v)
                }
                texts => ints(&texts, ex, b, s, |t| Some(utf8::length(t) as i64))?,
            },
            Node::Holds(c) => {
                let (holds, nulls) = compared(c, b, s)?.ok_or(Code::Internal)?;
                Vector::Ints(Ints { values: holds.into_iter().map(i64::from).collect(), nulls })
            }
            Node::Abs(of) => {
                let mut v = of.ints(b, s)?;
                v.values.iter_mut().for_each(|i| *i = i.wrapping_abs());
                Vector::Ints(v)
            }
            Node::Best { of, max } => {
                let mut best = Ints::default();
                for (k, node) in of.iter().enumerate() {
                    let v = node.ints(b, s)?;
                    if k == 0 {
                        best = v;
                        continue;
                    }
                    best.merge_nulls(&v);
                    let pick = best.values.iter_mut().zip(&v.values);
                    match max {
                        true => pick.for_each(|(a, b)| *a = (*a).max(*b)),
                        false => pick.for_each(|(a, b)| *a = (*a).min(*b)),
                    }
                }
                Vector::Ints(best)
            }
            Node::Case(arms, otherwise, true) => {
                // The first condition that holds has the last word.
                let mut out = match otherwise {
                    Some(o) => o.ints(b, s)?,
                    None => Ints { values: vec![0; n], nulls: vec![true; n] },
                };
                for (when, then) in arms.iter().rev() {
                    let holds = when.test(b, s)?;
                    let v = then.ints(b, s)?;
                    if !v.nulls.is_empty() && out.nulls.is_empty() {
                        out.nulls.resize(n, false);
                    }
                    out.values.iter_mut().zip(&v.values).zip(&holds).for_each(|((o, v), h)| {
                        *o = if *h { *v } else { *o };
                    });
                    for (i, null) in out.nulls.iter_mut().enumerate() {
                        *null = if holds[i] { v.nulls.get(i) == Some(&true) } else { *null };
                    }
                }
                Vector::Ints(out)
            }
            Node::Find { of, what, plus, ex } => {
                let find = memchr::memmem::Finder::new(what);
                ints(&of.values(b, s)?, ex, b, s, |t| {
                    Some(find.find(t).map_or(0, |at| ordinal(t, at)) + plus)
                })?
            }
            Node::Begin { of, from, len, ex } => {
                let lens = len.values(b, s)?;
                cut(of, ex, b, s, |i, t| match lens.get(i) {
                    Field::Int(n) if n >= 0 => Some(utf8::part(t, *from, n as usize)),
                    _ => None,
                })?
            }
            Node::Part { of, from, len, ex } => cut(of, ex, b, s, |_, t| Some(utf8::part(t, *from, *len)))?,
            Node::Clock { of, from, to, ex } => cut(of, ex, b, s, |_, t| is_time(t).then_some((*from, *to)))?,
            Node::Digits(of, ex) => ints(&of.values(b, s)?, ex, b, s, |t| {
                let digits = (1..10).contains(&t.len()) && t.iter().all(u8::is_ascii_digit);
                digits.then(|| t.iter().fold(0, |v, d| v * 10 + (d - b'0') as i64))
            })?,
            Node::Case(arms, otherwise, false) => {
                let mut chosen = vec![None; n];
                for (k, (when, _)) in arms.iter().enumerate() {
                    let holds = when.test(b, s)?;
                    chosen
                        .iter_mut()
                        .zip(holds)
                        .filter(|(c, h)| c.is_none() && *h)
                        .for_each(|(c, _)| *c = Some(k));
                }
                let mut values = Vec::new();
                for (_, then) in arms {
                    values.push(then.values(b, s)?);
                }
                let rest = otherwise.as_ref().map(|o| o.values(b, s)).transpose()?;
                let mut out: Vec<Value> = crate::memory::room(n)?;
                let all_there = values.iter().chain(&rest).all(|v| matches!(v, Vector::Fields(_)));
                if all_there {
                    let fields = |v: &Vector<'v>, i: usize| match v {
                        Vector::Fields(f) => f[i],
                        _ => Field::Null,
                    };
                    let pick = |(i, c): (usize, &Option<usize>)| match c {
                        Some(k) => fields(&values[*k], i),
                        None => rest.as_ref().map_or(Field::Null, |r| fields(r, i)),
                    };
                    return Ok(Vector::Fields(chosen.iter().enumerate().map(pick).collect()));
                }
                for (i, c) in chosen.iter().enumerate() {
                    out.push(match c {
                        Some(k) => values[*k].get(i).value()?,
                        None => rest.as_ref().map_or(Ok(Value::Null), |r| r.get(i).value())?,
                    });
                }
                Vector::Values(out)
            }
            Node::OfEntry { ex, slot, known } => match entries(ex, *slot, &mut known.borrow_mut(), b, s)? {
                Some(v) => v,
                None => each(ex, b, s)?,
            },
            Node::Any(ex) => each(ex, b, s)?,
        })
    }

    /// The values of an expression for which [`bounds`] vouches, or of a constant NULL.
    pub fn ints(&self, b: &Batch<'_>, s: &Scope<'_>) -> Result<Ints> {
        let n = b.outer.len();
        match self {
            Node::Const(Value::Null) => Ok(Ints { values: vec![0; n], nulls: vec![true; n] }),
            other => match other.values(b, s)? {
                Vector::Ints(v) => Ok(v),
                _ => Err(Code::Internal.into()),
            },
        }
    }
}

/// How many characters an integer has as a text.
fn digits(i: i64) -> i64 {
    i.unsigned_abs().checked_ilog10().map_or(1, |n| n as i64 + 1) + (i < 0) as i64
}

/// The values of a column.
pub(crate) fn column<'v>(slot: usize, b: &Batch<'v>) -> Result<Vec<Field<'v>>> {
    let (t, c) = b.places.at[slot];
    let loaded = &b.cols[t].loaded;
    let (chunk, dict) = (&*loaded.parts[b.part].cols[c], &*loaded.dicts[c]);
    let mut out = crate::memory::room(b.outer.len())?;
    match &chunk.data {
        Data::Plain(p) => out.extend(b.outer.iter().map(|r| p.get(*r as usize))),
        Data::Dict { codes } => codes.each(&b.outer, |code| out.push(dict.get(code))),
        _ => out.extend(b.outer.iter().map(|r| chunk.field(*r as usize, dict))),
    }
    Ok(out)
}

/// An expression row by row.
fn each<'v>(ex: &Ex, b: &Batch<'_>, s: &Scope<'_>) -> Result<Vector<'v>> {
    let mut out = crate::memory::room(b.outer.len())?;
    for i in 0..b.outer.len() {
        out.push(s.eval.value(ex, &BatchRow { batch: b, i })?);
    }
    Ok(Vector::Values(out))
}

/// An expression of one column, computed for entries of its dictionary that are not `known` yet. `None`: it has none here.
fn entries<'v>(
    ex: &Ex,
    slot: usize,
    known: &mut [Option<Value>],
    b: &Batch<'_>,
    s: &Scope<'_>,
) -> Result<Option<Vector<'v>>> {
    let (t, c) = b.places.at[slot];
    let loaded = &b.cols[t].loaded;
    let Data::Dict { codes } = &loaded.parts[b.part].cols[c].data else { return Ok(None) };
    let dict = &loaded.dicts[c];
    let n = b.outer.len();
    let mut of: Vec<u32> = crate::memory::room(n)?;
    codes.each(&b.outer, |code| of.push(code));
    let (mut ints, mut nulls) = (true, false);
    for code in &of {
        let place = known.get_mut(*code as usize).ok_or(Code::Internal)?;
        let v = match place {
            Some(v) => v,
            None => place.insert(s.eval.value(ex, &OneField(dict.get(*code)))?),
        };
        ints &= matches!(v, Value::Int(_) | Value::Null);
        nulls |= v.is_null();
    }
    let of = of.iter().map(|code| known[*code as usize].as_ref().unwrap_or(&Value::Null));
    if ints {
        let int = |v: &Value| if let Value::Int(i) = v { *i } else { 0 };
        let nulls = if nulls { of.clone().map(Value::is_null).collect() } else { Vec::new() };
        let mut values = crate::memory::room(n)?;
        values.extend(of.map(int));
        return Ok(Some(Vector::Ints(Ints { values, nulls })));
    }
    let mut values = crate::memory::room(n)?;
    values.extend(of.cloned());
    Ok(Some(Vector::Values(values)))
}

/// Parts of texts; `place` says which, or that the scalar code is to say.
fn cut<'v>(
    of: &'v Node,
    ex: &Ex,
    b: &Batch<'v>,
    s: &Scope<'_>,
    place: impl Fn(usize, &[u8]) -> Option<(usize, usize)>,
) -> Result<Vector<'v>> {
    let n = b.outer.len();
    let texts = of.values(b, s)?;
    if let Vector::Fields(list) = &texts {
        let mut out = crate::memory::room(n)?;
        for (i, f) in list.iter().enumerate() {
            match f {
                Field::Text(t) => match place(i, t) {
                    Some((from, to)) => out.push(Field::Text(&t[from..to])),
                    None => break,
                },
                _ => break,
            }
        }
        if out.len() == n {
            return Ok(Vector::Fields(out));
        }
    }
    let mut out = crate::memory::room(n)?;
    for i in 0..n {
        out.push(match texts.get(i) {
            Field::Text(t) if place(i, t).is_some() => {
                let (from, to) = place(i, t).unwrap_or((0, 0));
                Value::text(&t[from..to])?
            }
            _ => s.eval.value(ex, &BatchRow { batch: b, i })?,
        });
    }
    Ok(Vector::Values(out))
}

/// What `instr` says of a match at a byte: the number of its character, from 1.
fn ordinal(t: &[u8], at: usize) -> i64 {
    let later = t[..at].iter().skip(1).filter(|&b| b & 0xc0 != 0x80).count();
    later as i64 + 1 + (at > 0) as i64
}

/// Integers of texts; where `of` has no answer, the scalar code has.
fn ints<'v>(
    texts: &Vector<'_>,
    ex: &Ex,
    b: &Batch<'v>,
    s: &Scope<'_>,
    of: impl Fn(&[u8]) -> Option<i64>,
) -> Result<Vector<'v>> {
    let n = b.outer.len();
    let mut out = Ints::default();
    alloc::reserve(&mut out.values, n)?;
    for i in 0..n {
        let known = match texts.get(i) {
            Field::Text(t) => of(t),
            _ => None,
        };
        let v = match known {
            Some(v) => v,
            None => match s.eval.value(ex, &BatchRow { batch: b, i })? {
                Value::Int(v) => v,
                Value::Null => {
                    out.nulls.resize(n, false);
                    out.nulls[i] = true;
                    0
                }
                _ => return Err(Code::Internal.into()),
            },
        };
        out.values.push(v);
    }
    Ok(Vector::Ints(out))
}

/// Bounds of an expression whose values are integers or NULL, and whether some may be NULL: [`Node::of`] makes integers of it.
pub(crate) fn bounds(ex: &Ex, s: &Scope<'_>) -> Option<(i64, i64, bool)> {
    let known = |ex: &Ex| int_bounds(ex, s.cols, s.places, &|t| s.left[t]);
    match ex {
        Ex::Call { function, args, .. } => match (&*function.name.to_ascii_lowercase(), &args[..]) {
            ("length", [_]) => Some((0, i32::MAX as i64, true)),
            ("abs", [a]) => {
                let (lo, hi, null) = bounds(a, s)?;
                let most = lo.checked_neg()?.max(hi);
                Some((if lo > 0 { lo } else { 0 }, most.max(0), null))
            }
            (name @ ("min" | "max"), [first, others @ ..]) if !others.is_empty() => {
                let (mut lo, mut hi, mut null) = bounds(first, s)?;
                for e in others {
                    let (a, b, n) = bounds(e, s)?;
                    (lo, hi) = if name == "max" { (lo.max(a), hi.max(b)) } else { (lo.min(a), hi.min(b)) };
                    null |= n;
                }
                Some((lo, hi, null))
            }
            _ => None,
        },
        Ex::Compare(c) if is_vector(c, s) => {
            let null = |e: &Ex| known(e).is_none_or(|b| b.2);
            Some((0, 1, null(&c.lhs) || null(&c.rhs)))
        }
        Ex::Case { base: None, arms, otherwise } => {
            let mut all: Option<(i64, i64)> = None;
            let mut null = otherwise.is_none();
            for e in arms.iter().map(|a| &a.1).chain(otherwise.as_deref()) {
                if matches!(e, Ex::Const(Value::Null)) {
                    null = true;
                    continue;
                }
                let (lo, hi, n) = bounds(e, s)?;
                null |= n;
                all = Some(all.map_or((lo, hi), |(a, b)| (a.min(lo), b.max(hi))));
            }
            let (lo, hi) = all?;
            // A place of NULL holds zero.
            Some(if null { (lo.min(0), hi.max(0), true) } else { (lo, hi, false) })
        }
        _ => known(ex),
    }
}
