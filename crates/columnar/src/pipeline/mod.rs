//! From a block of a plan to rows: whether it is one for columns, its compilation, the choice of this run, and the run.
//!
//! [`compile`] makes a [`Query`](crate::query::Query) of a block, or gives the reason why it stays in rows. A run asks [`cost`]
//! first; then the operators for a single table ([`single`]) try, then the star path; what both decline is left to rows.

pub(crate) mod compile;
pub(crate) mod cost;
mod eligible;
pub(crate) mod single;

pub use eligible::pays;

use crate::decline::{DECLINED, because};
use crate::expr::{Eval, Ex};
use crate::op::made::Made;
use crate::op::result::Answer;
use crate::op::window;
use crate::profile::shown;
use crate::query::{InFrom, Query, TableSpec};
use crate::runtime::Runtime;
use crate::star;
use iolite_base::{Code, Error, Result};
use iolite_value::{Affinity, Value};

/// Why a run has no rows.
#[derive(Default)]
pub(crate) struct Refusal {
    /// The reason, if it is known.
    pub why: Option<String>,
    /// It lies in values.
    pub of_values: bool,
}

/// Runs a query that began at `begun`, those in FROM first; `None`: `refusal` has the reason.
pub(crate) fn run(
    q: &Query,
    rt: &dyn Runtime,
    params: &[Value],
    wanted: i64,
    begun: u64,
    refusal: &mut Refusal,
) -> Result<Option<Answer>> {
    let mut made: Vec<Option<Made>> = Vec::new();
    for (n, t) in q.tables.iter().enumerate() {
        let Some(from) = &t.query else {
            made.push(None);
            continue;
        };
        let start = rt.profile().map_or(0, |_| rt.nanos());
        let Some(rows) = rows_of(t, from, rt, params, begun, refusal)? else { return Ok(None) };
        if let Some(p) = rt.profile() {
            p.line(format!("ROWS OF {}: {}, {}", t.table.name, rows.len(), shown(rt.nanos() - start)));
        }
        match windows_of(q, n, rows, rt) {
            Ok(m) => made.push(Some(m)),
            Err(e) => return refusal.note(e).map(|()| None),
        }
    }
    for general in [true, false] {
        let run = match general {
            true => single::run(q, rt, params, wanted, begun, &made),
            false => star::run::run(q, rt, params, wanted, begun, &made),
        };
        match run {
            Ok(Some(rows)) => return Ok(Some(rows)),
            Ok(None) => {}
            Err(e) => refusal.note(e)?,
        }
    }
    Ok(None)
}

/// The rows of a query in FROM: those of its arms, one after the other, within its bounds.
fn rows_of(
    spec: &TableSpec,
    from: &InFrom,
    rt: &dyn Runtime,
    params: &[Value],
    begun: u64,
    refusal: &mut Refusal,
) -> Result<Option<Made>> {
    let bound = |e: &Option<Ex>| match e {
        None => Some(None),
        Some(Ex::Const(Value::Int(n))) => Some(Some(*n)),
        Some(Ex::Param(i)) => {
            params.get(*i).and_then(|v| if let Value::Int(n) = v { Some(Some(*n)) } else { None })
        }
        Some(_) => None,
    };
    let (Some(limit), Some(offset)) = (bound(&from.limit), bound(&from.offset)) else {
        // Other values are converted, or are an error.
        return refusal.note(because("a query in FROM whose LIMIT is no integer")).map(|()| None);
    };
    let skip = usize::try_from(offset.unwrap_or(0)).unwrap_or(0);
    let take = limit.and_then(|n| usize::try_from(n).ok());
    let last = take.map_or(usize::MAX, |n| n.saturating_add(skip));
    let (mut arms, mut rows) = (Vec::with_capacity(from.arms.len()), 0);
    for arm in &from.arms {
        if rows >= last {
            break;
        }
        let wanted = if last == usize::MAX { -1 } else { (last - rows) as i64 };
        let Some(answer) = run(arm, rt, params, wanted, begun, refusal)? else { return Ok(None) };
        match answer.into_columns() {
            Ok(made) => {
                rows += made.len();
                arms.push(made);
            }
            Err(e) => return refusal.note(e).map(|()| None),
        }
    }
    let affinities: Vec<Affinity> = spec.table.columns.iter().map(|c| c.affinity).collect();
    match Made::of_parts(arms, from.arms.len(), &affinities, skip..last) {
        Ok(made) => Ok(Some(made)),
        Err(e) => refusal.note(e).map(|()| None),
    }
}

/// The rows of a table's query with its windows' functions.
fn windows_of(q: &Query, table: usize, made: Made, rt: &dyn Runtime) -> Result<Made> {
    let windows = &q.tables[table].windows;
    if windows.is_empty() {
        return Ok(made);
    }
    let start = rt.profile().map_or(0, |_| rt.nanos());
    let mut used = vec![false; made.columns().len()];
    for slot in q.slots.iter().filter(|s| s.table == table) {
        if let Some(used) = slot.field.and_then(|f| used.get_mut(f)) {
            *used = true;
        }
    }
    let out = window::extend(&made, windows, &used, rt, &Eval::new(rt.host()))?;
    if let Some(p) = rt.profile() {
        let calls: usize = windows.iter().map(|w| w.calls.len()).sum();
        p.line(format!("WINDOWS: {calls} functions over {} rows, {}", out.len(), shown(rt.nanos() - start)));
    }
    Ok(out)
}

impl Refusal {
    /// Notes an error after which the loops answer; any other one is given back.
    fn note(&mut self, e: Error) -> Result<()> {
        if is_of_values(&e) {
            // What is wrong with the query's values, its loops find where it is to be found.
            self.of_values = true;
            self.why.get_or_insert("values that are an error".to_string());
        } else if e.code() == DECLINED {
            let reason = if e.has_message() { e.message() } else { "no room" };
            self.why.get_or_insert(reason.to_string());
        } else {
            return Err(e);
        }
        Ok(())
    }
}

/// Whether an error is one that SQL gives for values, such as an integer overflow.
fn is_of_values(e: &Error) -> bool {
    matches!(e.code().primary(), Code::Error | Code::Toobig | Code::Mismatch | Code::Range)
}
