//! `median`, `percentile` and their kin (documentation page `percentile`).
//!
//! The values are kept; they are sorted when the first answer is asked for, and stay sorted from then on if more
//! rows come, as they do in a window.

use crate::WINDOWED;
use crate::entry::{Entry, aggregate};
use iolite_base::{Error, Result, alloc};
use iolite_ext::{Aggregate, Context, FunctionFlags};
use iolite_value::Value;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Median,
    Percentile,
    Continuous,
    Discrete,
}

struct Percentile {
    kind: Kind,
    values: Vec<f64>,
    sorted: bool,
    /// The fraction, between 0 and 1, once a row has come.
    fraction: Option<f64>,
}

impl Percentile {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Median => "median",
            Kind::Percentile => "percentile",
            Kind::Continuous => "percentile_cont",
            Kind::Discrete => "percentile_disc",
        }
    }

    fn fraction(&mut self, args: &[Value]) -> Result<()> {
        let most = if self.kind == Kind::Percentile { 100.0 } else { 1.0 };
        let fraction = match args.get(1) {
            None => 0.5,
            Some(v) => match crate::math::number(v)?.map(|n| n.to_real()) {
                Some(p) if (0.0..=most).contains(&p) => p / most,
                _ => {
                    let name = self.name();
                    return Err(Error::sql(format!(
                        "the fraction argument to {name}() is not between 0.0 and {most:.1}"
                    )));
                }
            },
        };
        let first = *self.fraction.get_or_insert(fraction);
        if (first - fraction).abs() > 0.001 {
            let name = self.name();
            return Err(Error::sql(format!(
                "the fraction argument to {name}() is not the same for all input rows"
            )));
        }
        Ok(())
    }

    fn input(&self, v: &Value) -> Result<Option<f64>> {
        let r = match v {
            Value::Null => return Ok(None),
            Value::Int(i) => *i as f64,
            Value::Real(r) => *r,
            _ => return Err(Error::sql(format!("input to {}() is not numeric", self.name()))),
        };
        if r.is_infinite() {
            return Err(Error::sql(format!("Inf input to {}()", self.name())));
        }
        Ok(Some(r))
    }

    fn place(&self, r: f64) -> usize {
        self.values.partition_point(|v| *v < r)
    }
}

impl Aggregate for Percentile {
    fn step(&mut self, _: &mut Context<'_>, args: &[Value]) -> Result<()> {
        self.fraction(args)?;
        let Some(r) = self.input(&args[0])? else { return Ok(()) };
        alloc::reserve(&mut self.values, 1)?;
        if self.sorted {
            self.values.insert(self.place(r), r);
        } else {
            self.values.push(r);
        }
        Ok(())
    }

    fn inverse(&mut self, _: &mut Context<'_>, args: &[Value]) -> Result<()> {
        let Some(r) = self.input(&args[0])? else { return Ok(()) };
        if !self.sorted {
            self.values.sort_unstable_by(f64::total_cmp);
            self.sorted = true;
        }
        let at = self.place(r);
        if at < self.values.len() {
            self.values.remove(at);
        }
        Ok(())
    }

    fn value(&mut self, _: &mut Context<'_>) -> Result<Value> {
        let Some(last) = self.values.len().checked_sub(1) else { return Ok(Value::Null) };
        if !self.sorted {
            self.values.sort_unstable_by(f64::total_cmp);
            self.sorted = true;
        }
        let at = self.fraction.unwrap_or(0.5) * last as f64;
        let low = at as usize;
        let v = self.values[low];
        if self.kind == Kind::Discrete || at == low as f64 || low == last {
            return Ok(Value::real(v));
        }
        Ok(Value::real(v + (self.values[low + 1] - v) * (at - low as f64)))
    }
}

fn make(kind: Kind) -> Box<dyn Aggregate> {
    Box::new(Percentile { kind, values: Vec::new(), sorted: false, fraction: None })
}

const ORDERED: FunctionFlags = WINDOWED.and(FunctionFlags::ORDERED_SET);

/// The table.
pub(crate) const TABLE: &[Entry] = &[
    aggregate(
        "median",
        1,
        ORDERED,
        || make(Kind::Median),
        &[
            "3; 1; NULL; 2 | median(x) => 2.0",
            "1; 2 | median(x) => 1.5",
            "NULL | median(x) => NULL",
            "'1' | median(x) => error: input to median() is not numeric",
            "9e999 | median(x) => error: Inf input to median()",
        ],
    ),
    aggregate(
        "percentile",
        2,
        ORDERED,
        || make(Kind::Percentile),
        &[
            "1; 2; 3; 4; 5 | percentile(x, 25) => 2.0",
            "1; 2 | percentile(x, 10) => 1.1",
            "1 | percentile(x, 101) => error: the fraction argument to percentile() is not between 0.0 and 100.0",
            "1; 2 | percentile(x, x * 10) => error: the fraction argument to percentile() is not the same for all input rows",
        ],
    ),
    aggregate(
        "percentile_cont",
        2,
        ORDERED,
        || make(Kind::Continuous),
        &["1; 2 | percentile_cont(x, 0.5) => 1.5"],
    ),
    aggregate(
        "percentile_disc",
        2,
        ORDERED,
        || make(Kind::Discrete),
        &["1; 2 | percentile_disc(x, 0.5) => 1.0"],
    ),
];
