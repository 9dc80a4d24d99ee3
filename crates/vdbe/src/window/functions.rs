//! The functions that exist over windows only: ranks, `ntile`, `lag` and `lead`, `first_value` and its kin.

use super::CHECK_EVERY;
use super::partition::Partition;
use crate::env::Env;
use iolite_base::{Code, Error, Result};
use iolite_bytecode::FrameExclude;
use iolite_ext::Inline;
use iolite_value::arith::{Arith, arith};
use iolite_value::{Affinity, Value};
use std::ops::Range;

/// Puts the values of a function for the rows at some places of a partition into its column.
pub(super) fn compute(
    p: &Partition,
    places: Range<usize>,
    what: Inline,
    args: &[usize],
    env: &dyn Env,
    column: &mut [Value],
) -> Result<()> {
    for at in places {
        if at % CHECK_EVERY == CHECK_EVERY - 1 {
            env.check_after(CHECK_EVERY)?;
        }
        column[p.rows[at] as usize] = value(p, what, args, at)?;
    }
    Ok(())
}

fn value(p: &Partition, what: Inline, args: &[usize], at: usize) -> Result<Value> {
    let n = p.rows.len();
    Ok(match what {
        Inline::RowNumber => Value::Int(at as i64 + 1),
        Inline::Rank => Value::Int(p.peers(p.group(at)).start as i64 + 1),
        Inline::DenseRank => Value::Int(p.group(at) as i64 + 1),
        Inline::PercentRank if n < 2 => Value::Real(0.0),
        Inline::PercentRank => Value::Real(p.peers(p.group(at)).start as f64 / (n - 1) as f64),
        Inline::CumeDist => Value::Real(p.peers(p.group(at)).end as f64 / n as f64),
        Inline::Ntile => ntile(n, at, &arg(p, 0, args, 0))?,
        Inline::Lag | Inline::Lead => shifted(p, at, what == Inline::Lag, args),
        Inline::FirstValue => in_frame(p, p.frame(at).next(), args),
        Inline::LastValue => in_frame(p, p.frame(at).next_back(), args),
        // A number is looked at for each row of a frame from which rows are excluded.
        Inline::NthValue if p.pass.exclude != FrameExclude::Nothing && p.frame(at).next().is_none() => {
            Value::Null
        }
        Inline::NthValue => in_frame(p, p.frame(at).nth(number(&arg(p, at, args, 1))?), args),
        _ => return Err(Code::Internal.into()),
    })
}

/// An argument of the call for the row at a place; NULL if it has none.
fn arg(p: &Partition, at: usize, args: &[usize], k: usize) -> Value {
    args.get(k).map_or(Value::Null, |slot| p.row(at)[*slot].clone())
}

fn in_frame(p: &Partition, at: Option<usize>, args: &[usize]) -> Value {
    at.map_or(Value::Null, |at| arg(p, at, args, 0))
}

/// The number of `nth_value`, from zero.
fn number(v: &Value) -> Result<usize> {
    let mut v = v.clone();
    Affinity::Numeric.apply(&mut v)?;
    match v {
        Value::Int(k) if k > 0 => Ok(usize::try_from(k - 1).unwrap_or(usize::MAX)),
        Value::Real(r) if r >= 1.0 && r == r.trunc() => Ok(r as usize - 1),
        _ => Err(Error::sql("second argument to nth_value must be a positive integer")),
    }
}

fn ntile(rows: usize, at: usize, tiles: &Value) -> Result<Value> {
    let tiles = tiles.to_int();
    if tiles <= 0 {
        return Err(Error::sql("argument of ntile must be a positive integer"));
    }
    let (n, at) = (rows as i64, at as i64);
    // The first `large` tiles have a row more than the others.
    let (size, large) = (n / tiles, n % tiles);
    let in_large = large * (size + 1);
    let tile = if at < in_large { at / (size + 1) } else { large + (at - in_large) / size.max(1) };
    Ok(Value::Int(tile + 1))
}

/// `lag` and `lead`: a value from a row further up or down, wherever the frame is.
fn shifted(p: &Partition, at: usize, up: bool, args: &[usize]) -> Value {
    match shifted_from(p, at, up, args).filter(|k| *k < p.rows.len()) {
        Some(k) => arg(p, k, args, 0),
        None => arg(p, at, args, 2),
    }
}

/// The place from which `lag` (`up`) or `lead` takes its value, if there may be such a row.
pub(super) fn shifted_from(p: &Partition, at: usize, up: bool, args: &[usize]) -> Option<usize> {
    let by = match args.len() {
        1 => Value::Int(1),
        _ => arg(p, at, args, 1),
    };
    match arith(if up { Arith::Sub } else { Arith::Add }, &Value::Int(at as i64), &by) {
        Value::Int(k) => usize::try_from(k).ok(),
        Value::Real(r) if r >= 0.0 && r == r.trunc() => Some(r as usize),
        _ => None,
    }
}
