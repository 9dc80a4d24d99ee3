//! Aggregates (documentation page `lang_aggfunc`): count, sum and its kin, min, max, group_concat.

use crate::entry::{Entry, aggregate};
use crate::scalar::{limit, too_big};
use crate::{PURE, WINDOWED};
use iolite_base::{Error, Result, alloc};
use iolite_ext::{Aggregate, Context, FunctionFlags};
use iolite_value::{Value, compare};
use std::cmp::Ordering;
use std::collections::VecDeque;

/// `count(*)`, `count(x)`.
#[derive(Default)]
struct Count(i64);

impl Aggregate for Count {
    fn step(&mut self, _: &mut Context<'_>, args: &[Value]) -> Result<()> {
        self.quick_step(args);
        Ok(())
    }

    fn quick_step(&mut self, args: &[Value]) -> bool {
        self.0 += !args.first().is_some_and(Value::is_null) as i64;
        true
    }

    fn inverse(&mut self, _: &mut Context<'_>, args: &[Value]) -> Result<()> {
        self.0 -= !args.first().is_some_and(Value::is_null) as i64;
        Ok(())
    }

    fn value(&mut self, _: &mut Context<'_>) -> Result<Value> {
        Ok(Value::Int(self.0))
    }
}

/// The running state of `sum`, `total` and `avg`: an exact integer while all inputs are integers and fit, then a
/// compensated sum (Kahan, Babuska, Neumaier), as SQLite has it since 3.43.
#[derive(Default)]
struct Sum {
    sum: f64,
    error: f64,
    int: i64,
    count: i64,
    /// The sum is in `sum` and `error` from now on.
    approximate: bool,
    /// An integer did not fit, and no real has been seen.
    overflow: bool,
}

impl Sum {
    fn add(&mut self, r: f64) {
        let s = self.sum;
        let t = s + r;
        // Which is greater is chosen without a jump: of numbers of both signs nobody could guess it.
        let (great, small) = if s.abs() > r.abs() { (s, r) } else { (r, s) };
        self.error += (great - t) + small;
        self.sum = t;
    }

    /// Adds an integer; a large one in two parts, each of which is a real exactly.
    fn add_int(&mut self, i: i64) {
        if small(i) {
            self.add(i as f64);
        } else {
            let low = i % 16_384;
            self.add((i - low) as f64);
            self.add(low as f64);
        }
    }

    fn start_approximate(&mut self) {
        self.approximate = true;
        let i = std::mem::take(&mut self.int);
        let low = if small(i) { 0 } else { i % 16_384 };
        self.sum = (i - low) as f64;
        self.error = low as f64;
    }

    /// Numbers.
    #[inline(always)]
    fn quick_step(&mut self, v: &Value) -> bool {
        match v {
            Value::Int(i) => self.take_int(*i),
            Value::Real(r) => self.take_real(*r),
            _ => return false,
        }
        true
    }

    #[inline(always)]
    fn take_int(&mut self, i: i64) {
        self.count += 1;
        match self.int.checked_add(i) {
            Some(sum) if !self.approximate => self.int = sum,
            _ => self.take_large(i),
        }
    }

    /// An integer whose sum is a real already, or is one from now on.
    #[inline(never)]
    fn take_large(&mut self, i: i64) {
        if !self.approximate {
            self.overflow = true;
            self.start_approximate();
        }
        self.add_int(i);
    }

    #[inline(always)]
    fn take_real(&mut self, r: f64) {
        self.count += 1;
        if !self.approximate {
            self.start_approximate();
        }
        self.overflow = false;
        self.add(r);
    }

    /// Integers one after the other.
    fn take_ints(&mut self, list: &[i64]) {
        let mut rest = list.iter();
        if !self.approximate {
            for i in rest.by_ref() {
                self.take_int(*i);
                if self.approximate {
                    break;
                }
            }
        }
        self.count += rest.len() as i64;
        // What a sum waits for is the one before: nothing of it is in memory meanwhile.
        let mut own = Sum { sum: self.sum, error: self.error, ..Sum::default() };
        rest.for_each(|i| own.add_int(*i));
        (self.sum, self.error) = (own.sum, own.error);
    }

    fn step(&mut self, v: &Value) -> Result<()> {
        match v {
            Value::Null => {}
            Value::Int(i) => self.take_int(*i),
            Value::Real(r) => self.take_real(*r),
            // Text that is an integer counts as one.
            _ => match crate::math::number(v)? {
                Some(Value::Int(i)) => self.take_int(i),
                _ => self.take_real(v.to_real()),
            },
        }
        Ok(())
    }

    fn inverse(&mut self, v: &Value) -> Result<()> {
        let number = match v {
            Value::Null => return Ok(()),
            _ => crate::math::number(v)?,
        };
        self.count -= 1;
        match (self.approximate, number) {
            (false, n) => {
                let i = n.map_or(0, |n| n.to_int());
                match self.int.checked_sub(i) {
                    Some(rest) => self.int = rest,
                    None => {
                        // What is left does not fit, though what was there did.
                        self.start_approximate();
                        self.add_int(i.saturating_neg());
                    }
                }
            }
            (true, Some(Value::Int(i))) => match i.checked_neg() {
                Some(i) => self.add_int(i),
                None => {
                    self.add_int(i64::MAX);
                    self.add_int(1);
                }
            },
            (true, _) => self.add(-v.to_real()),
        }
        Ok(())
    }

    fn real(&self) -> f64 {
        if !self.approximate {
            self.int as f64
        } else if !self.error.is_finite() {
            self.sum
        } else {
            self.sum + self.error
        }
    }
}

/// Whether an integer is less than 2^52 in magnitude.
fn small(i: i64) -> bool {
    i.unsigned_abs() < 1 << 52
}

macro_rules! sum_kind {
    ($name:ident, $value:expr) => {
        #[derive(Default)]
        struct $name(Sum);

        impl Aggregate for $name {
            fn step(&mut self, _: &mut Context<'_>, args: &[Value]) -> Result<()> {
                self.0.step(&args[0])
            }

            fn quick_step(&mut self, args: &[Value]) -> bool {
                self.0.quick_step(&args[0])
            }

            fn step_ints(&mut self, list: &[i64]) -> bool {
                self.0.take_ints(list);
                true
            }

            fn inverse(&mut self, _: &mut Context<'_>, args: &[Value]) -> Result<()> {
                self.0.inverse(&args[0])
            }

            fn value(&mut self, _: &mut Context<'_>) -> Result<Value> {
                let value: fn(&Sum) -> Result<Value> = $value;
                value(&self.0)
            }
        }
    };
}

sum_kind!(SumFunction, |s| {
    if s.count == 0 {
        Ok(Value::Null)
    } else if !s.approximate {
        Ok(Value::Int(s.int))
    } else if s.overflow {
        Err(Error::sql("integer overflow"))
    } else {
        Ok(Value::real(s.real()))
    }
});
sum_kind!(Total, |s| Ok(Value::real(s.real())));
sum_kind!(Average, |s| Ok(if s.count == 0 { Value::Null } else { Value::real(s.real() / s.count as f64) }));

/// `min(x)`, `max(x)`: the best so far. As window functions over frames that lose rows, the compiler keeps the
/// rows itself (see the flags MIN and MAX).
struct Best {
    best: Value,
    better: fn(Ordering) -> bool,
    /// The last row is the one whose bare columns count: it gave the best value, or nothing but NULLs came so far.
    changed: bool,
}

impl Aggregate for Best {
    fn step(&mut self, ctx: &mut Context<'_>, args: &[Value]) -> Result<()> {
        let v = &args[0];
        self.changed = self.best.is_null()
            || !v.is_null() && (self.better)(compare::compare(v, &self.best, ctx.collation));
        if self.changed && !v.is_null() {
            self.best = v.clone();
        }
        Ok(())
    }

    fn quick_step(&mut self, args: &[Value]) -> bool {
        let (Value::Int(v), Value::Int(best)) = (&args[0], &mut self.best) else { return false };
        self.changed = (self.better)(v.cmp(best));
        if self.changed {
            *best = *v;
        }
        true
    }

    fn changed(&self) -> bool {
        self.changed
    }

    fn value(&mut self, _: &mut Context<'_>) -> Result<Value> {
        Ok(self.best.clone())
    }
}

/// `group_concat(x[, separator])`, `string_agg(x, separator)`.
///
/// What leaves a frame is cut off in front by its length and that of a separator. As with SQLite, a text that became empty so
/// begins anew: no separator is put before the next value, though empty values may be left.
#[derive(Default)]
struct Concat {
    text: Vec<u8>,
    /// Where the text starts: rows that left the frame lie before.
    start: usize,
    /// Rows in the frame that are not NULL.
    rows: usize,
    /// A separator goes before the next value.
    goes_on: bool,
    /// The length of the separator of the value that the text began with; all are taken to have it until one has not.
    length: usize,
    /// The lengths one by one, from then on.
    lengths: Option<VecDeque<usize>>,
}

impl Concat {
    fn is_empty(&self) -> bool {
        self.start == self.text.len()
    }

    fn note_separator(&mut self, n: usize) {
        if self.lengths.is_some() || n != self.length {
            let same = || std::iter::repeat_n(self.length, self.rows.saturating_sub(1)).collect();
            self.lengths.get_or_insert_with(same).push_back(n);
        }
    }
}

impl Aggregate for Concat {
    fn step(&mut self, ctx: &mut Context<'_>, args: &[Value]) -> Result<()> {
        if args[0].is_null() {
            return Ok(());
        }
        let b = args[0].text_bytes_in(ctx.host.encoding())?;
        let separator = match args.get(1) {
            None => None,
            Some(v) => Some(v.text_bytes_in(ctx.host.encoding())?),
        };
        let separator = separator.as_deref().unwrap_or(b",");
        if self.text.len() - self.start + separator.len() + b.len() > limit(ctx) {
            return Err(too_big());
        }
        alloc::reserve(&mut self.text, separator.len() + b.len())?;
        if self.goes_on {
            self.text.extend_from_slice(separator);
            self.note_separator(separator.len());
        } else {
            self.length = separator.len();
        }
        self.text.extend_from_slice(&b);
        self.rows += 1;
        self.goes_on = true;
        Ok(())
    }

    fn inverse(&mut self, ctx: &mut Context<'_>, args: &[Value]) -> Result<()> {
        if args[0].is_null() {
            return Ok(());
        }
        self.rows = self.rows.saturating_sub(1);
        let mut gone = args[0].text_bytes_in(ctx.host.encoding())?.len();
        if self.rows > 0 {
            gone += match &mut self.lengths {
                Some(each) => each.pop_front().unwrap_or(0),
                None => self.length,
            };
        }
        self.start = (self.start + gone).min(self.text.len());
        if self.is_empty() {
            self.text.clear();
            self.start = 0;
            self.goes_on = false;
            self.lengths = None;
        } else if self.start > 4096 && self.start > self.text.len() / 2 {
            self.text.drain(..self.start);
            self.start = 0;
        }
        Ok(())
    }

    fn value(&mut self, _: &mut Context<'_>) -> Result<Value> {
        match self.rows == 0 && self.is_empty() {
            true => Ok(Value::Null),
            false => Value::text(&self.text[self.start..]),
        }
    }
}

fn make<A: Aggregate + Default + 'static>() -> Box<dyn Aggregate> {
    Box::new(A::default())
}

fn make_min() -> Box<dyn Aggregate> {
    Box::new(Best { best: Value::Null, better: Ordering::is_lt, changed: false })
}

fn make_max() -> Box<dyn Aggregate> {
    Box::new(Best { best: Value::Null, better: Ordering::is_gt, changed: false })
}

const COLLATED: FunctionFlags = WINDOWED.and(FunctionFlags::NEEDS_COLLATION).and(PURE);

/// Of those that read blobs as numbers, by the texts that they spell.
const SPELLED: FunctionFlags = WINDOWED.and(FunctionFlags::TEXTS);

/// The table.
pub(crate) const TABLE: &[Entry] = &[
    aggregate("count", 0, WINDOWED.and(FunctionFlags::COUNT), make::<Count>, &["1; NULL; 2 | count() => 3"]),
    aggregate("count", 1, WINDOWED, make::<Count>, &["1; NULL; 2 | count(x) => 2", "| count(x) => 0"]),
    aggregate(
        "sum",
        1,
        SPELLED,
        make::<SumFunction>,
        &[
            "1; NULL; 2 | sum(x) => 3",
            "1; 2.5 | sum(x) => 3.5",
            "'1'; '2' | sum(x) => 3",
            "'a'; 1 | sum(x) => 1.0",
            "NULL | sum(x) => NULL",
            "9223372036854775807; 1 | sum(x) => error: integer overflow",
            "9223372036854775807; 1; 0.5 | sum(x) => 9.2233720368547758e+18",
            "0.1; 0.2; 0.3; -0.6 | sum(x) => 2.7755575615628914e-17",
            "1e308; 1e308; -1e308 | sum(x) => Inf",
        ],
    ),
    aggregate("total", 1, SPELLED, make::<Total>, &["1; 2 | total(x) => 3.0", "| total(x) => 0.0"]),
    aggregate("avg", 1, SPELLED, make::<Average>, &["1; 2; NULL | avg(x) => 1.5", "| avg(x) => NULL"]),
    aggregate(
        "min",
        1,
        COLLATED.and(FunctionFlags::MIN),
        make_min,
        &["2; NULL; 1 | min(x) => 1", "| min(x) => NULL"],
    ),
    aggregate("max", 1, COLLATED.and(FunctionFlags::MAX), make_max, &["2; 'a'; 1 | max(x) => 'a'"]),
    aggregate(
        "group_concat",
        1,
        WINDOWED,
        make::<Concat>,
        &[
            "1; NULL; 'b' | group_concat(x) => '1,b'",
            "NULL | group_concat(x) => NULL",
            "'' | group_concat(x) => ''",
        ],
    ),
    aggregate("group_concat", 2, WINDOWED, make::<Concat>, &["1; 2 | group_concat(x, '--') => '1--2'"]),
    aggregate("string_agg", 2, WINDOWED, make::<Concat>, &["1; 2 | string_agg(x, NULL) => '12'"]),
];
