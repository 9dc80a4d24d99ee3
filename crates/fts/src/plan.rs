//! Which plan a query gets, and how the plan is told to the cursor.
//!
//! The text has one entry for each argument, in order: `M` and a column for `MATCH`, `r` for a ranking function, `L` and `G` with
//! a column for patterns, `=`, `<`, `>` for the rowid. LIMIT and OFFSET come behind them and are not named: programs see the text in
//! EXPLAIN QUERY PLAN, where stock has no letter for them.

use crate::config::Config;
use iolite_base::{Code, Error, Result};
use iolite_ext::{ConstraintOp, IndexInfo, TokenPatterns};
use iolite_value::Value;

/// Rows come by rank.
pub(crate) const BY_RANK: i32 = 0x20;
/// Rows come by rowid.
pub(crate) const BY_ROWID: i32 = 0x40;
/// The last row comes first.
pub(crate) const DESCENDING: i32 = 0x80;

/// An argument of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Argument {
    Match(u32),
    Rank,
    Like(u32),
    Glob(u32),
    Equal,
    AtMost,
    AtLeast,
}

/// The arguments that a plan's text says.
pub(crate) fn arguments(text: &str) -> Vec<Argument> {
    let b = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < b.len() {
        let kind = b[at];
        at += 1;
        let digits = b[at..].iter().take_while(|c| c.is_ascii_digit()).count();
        let column = text[at..at + digits].parse().unwrap_or(0);
        at += digits;
        out.push(match kind {
            b'M' => Argument::Match(column),
            b'L' => Argument::Like(column),
            b'G' => Argument::Glob(column),
            b'r' => Argument::Rank,
            b'=' => Argument::Equal,
            b'<' => Argument::AtMost,
            _ => Argument::AtLeast,
        });
    }
    out
}

/// How many rows of those that come by rank can be asked for, by the arguments behind those that are named: a row that a bound of the
/// rowid lets through may be left out by the engine, which knows whether it is one of `<` or of `<=`.
pub(crate) fn limit(named: &[Argument], args: &[Value]) -> Option<usize> {
    let (known, more) = args.split_at_checked(named.len())?;
    let mut rows = 0usize;
    for (a, v) in named.iter().zip(known) {
        match a {
            Argument::Match(_) | Argument::Rank | Argument::Equal => {}
            Argument::AtMost | Argument::AtLeast if matches!(v, Value::Int(_)) => rows += 1,
            // The engine leaves out whatever it likes.
            _ => return None,
        }
    }
    let (Value::Int(limit), rest) = more.split_first()? else { return None };
    let skipped = match rest.first() {
        None => 0,
        Some(Value::Int(n)) => usize::try_from(*n).unwrap_or(0),
        Some(_) => return None,
    };
    rows.checked_add(usize::try_from(*limit).ok()?)?.checked_add(skipped)
}

fn is_pattern(patterns: TokenPatterns, op: ConstraintOp) -> bool {
    match patterns {
        TokenPatterns::None => false,
        TokenPatterns::Glob => op == ConstraintOp::Glob,
        TokenPatterns::Like => matches!(op, ConstraintOp::Like | ConstraintOp::Glob),
    }
}

/// Chooses a plan.
pub(crate) fn choose(config: &Config, info: &mut IndexInfo) -> Result<()> {
    let columns = config.columns.len() as i32;
    let mut text = String::new();
    let (mut passed, mut matches) = (0, 0);
    let (mut ranked, mut equal) = (false, false);
    for i in 0..info.constraints.len() {
        let c = &info.constraints[i];
        let mut take = |info: &mut IndexInfo, omit: bool| {
            passed += 1;
            info.usage[i].arg = passed;
            info.usage[i].omit = omit;
        };
        if c.op == ConstraintOp::Match || c.op == ConstraintOp::Eq && c.column >= columns {
            if !c.usable || c.column < 0 {
                return Err(Code::Constraint.into());
            }
            if c.column == columns + 1 {
                if ranked {
                    continue;
                }
                ranked = true;
                text.push('r');
            } else {
                matches += 1;
                text += &format!("M{}", c.column);
            }
            take(info, true);
        } else if c.usable {
            if (0..columns).contains(&c.column) && is_pattern(config.patterns, c.op) {
                let letter = if c.op == ConstraintOp::Like { 'L' } else { 'G' };
                text += &format!("{letter}{}", c.column);
                take(info, false);
            } else if !equal && c.op == ConstraintOp::Eq && c.column < 0 {
                equal = true;
                text.push('=');
                take(info, true);
            }
        }
    }
    let (mut below, mut above) = (false, false);
    if !equal {
        for i in 0..info.constraints.len() {
            let c = &info.constraints[i];
            if !c.usable || c.column >= 0 {
                continue;
            }
            let (seen, letter) = match c.op {
                ConstraintOp::Lt | ConstraintOp::Le => (&mut below, '<'),
                ConstraintOp::Gt | ConstraintOp::Ge => (&mut above, '>'),
                _ => continue,
            };
            if !std::mem::replace(seen, true) {
                text.push(letter);
                passed += 1;
                info.usage[i].arg = passed;
            }
        }
    }
    let mut number = 0;
    if let [order, rest @ ..] = &info.order_by[..] {
        let alone = rest.is_empty();
        // Rows of one rank come by rowid in any case.
        let then_rowid = matches!(rest, [r] if r.column == -1 && !r.desc);
        if order.column == columns + 1 && matches > 0 && (alone || then_rowid) {
            number |= BY_RANK;
        } else if alone && order.column == -1 && (!order.desc || !config.is_contentless()) {
            number |= BY_ROWID;
        }
        if number != 0 {
            info.ordered = true;
            if order.desc {
                number |= DESCENDING;
            }
        }
    }
    if number & BY_RANK != 0 {
        take_limits(info, passed);
    }
    info.cost = match (equal, below && above, below || above, matches > 0) {
        (true, _, _, true) => 1000.0,
        (true, _, _, false) => 25.0,
        (_, true, _, true) => 5000.0,
        (_, true, _, false) => 750_000.0,
        (_, _, true, true) => 7500.0,
        (_, _, true, false) => 2_250_000.0,
        (_, _, _, true) => 10_000.0,
        _ => 3_000_000.0,
    };
    if equal {
        info.unique = true;
        info.rows = 1;
    } else {
        for _ in 1..matches {
            info.cost *= 0.4;
        }
        info.rows = (info.cost / 4.0) as i64;
    }
    info.index_num = number;
    info.index_str = text;
    Ok(())
}

/// Takes LIMIT and OFFSET, in this order, where all other conditions are taken. The engine obeys them, too.
fn take_limits(info: &mut IndexInfo, mut passed: i32) {
    let is_limit = |op| matches!(op, ConstraintOp::Limit | ConstraintOp::Offset);
    let mut both = info.constraints.iter().zip(&info.usage);
    if !both.all(|(c, u)| if is_limit(c.op) { c.usable } else { u.arg > 0 }) {
        return;
    }
    for op in [ConstraintOp::Limit, ConstraintOp::Offset] {
        if let Some(i) = info.constraints.iter().position(|c| c.op == op) {
            passed += 1;
            info.usage[i].arg = passed;
        }
    }
}

/// The strings that a value must have to match a pattern, as a query; `None`: the pattern has none that the index knows.
pub(crate) fn pattern_query(pattern: &[u8], glob: bool) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut run: Vec<u8> = Vec::new();
    let mut end = |run: &mut Vec<u8>| {
        if crate::tokenize::char_count(run) >= 3 {
            out.push(b'"');
            for b in run.iter() {
                out.push(*b);
                if *b == b'"' {
                    out.push(b'"');
                }
            }
            out.extend(b"\" ");
        }
        run.clear();
    };
    let mut at = 0;
    while let Some(&b) = pattern.get(at).filter(|b| **b != 0) {
        let special = if glob { matches!(b, b'*' | b'?' | b'[') } else { matches!(b, b'%' | b'_') };
        at += 1;
        if !special {
            run.push(b);
            continue;
        }
        end(&mut run);
        if glob && b == b'[' {
            if pattern.get(at) == Some(&b'^') {
                at += 1;
            }
            if pattern.get(at) == Some(&b']') {
                at += 1;
            }
            while pattern.get(at).is_some_and(|b| *b != b']') {
                at += 1;
            }
            at += 1;
        }
    }
    end(&mut run);
    (!out.is_empty()).then_some(out)
}

/// What is answered to a query of another kind than the table can answer.
pub(crate) fn only_full_text(table: &str) -> Error {
    Error::sql(format!("{table}: table does not support scanning"))
}
