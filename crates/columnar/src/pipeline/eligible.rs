//! Whether a block is one for columns, as far as its plan says: asked of every block of every statement, so it looks at
//! little. How large the tables are is not known here.

use crate::expr::vector::is_kernel;
use iolite_ext::{Function, FunctionFlags, Implementation};
use iolite_plan::bound::{Agg, BinOp, Expr, Held, InSelect, SourceKind};
use iolite_plan::executor::Block;
use iolite_plan::plan::*;

/// So many rows of a range of an index are worth being looked for in columns, where one row comes of all or they are sorted.
const LONG: f64 = 1000.0;

/// Whether columns are likely to pay for a block if its tables are large: it begins with a scan, and something is computed
/// from many rows, or many rows are sorted.
#[inline]
pub fn pays(block: &Block<'_>) -> bool {
    let c = block.core;
    let input = c.window.as_ref().map_or(c, |w| &w.input);
    if input.levels.iter().any(finds_computed) {
        return false;
    }
    if let Some(w) = &c.window {
        return (scans(&w.input, block.nested) || ranges(&w.input)) && w.input.levels.iter().all(is_known);
    }
    let sorts = !block.order.is_empty() && c.delivered == 0;
    let distinct = c.distinct == Distinct::Set && !block.limited;
    let one = c.grouping == Grouping::All;
    let all = c.grouping == Grouping::Hash
        || block.whole
        || one && adds(c)
        || (one || sorts || distinct) && is_long(c);
    if !(scans(c, block.nested) || all && ranges(c)) || !c.levels.iter().all(is_known) || only_calls(c) {
        return false;
    }
    let reduces = c.grouping != Grouping::None || matches!(c.distinct, Distinct::Adjacent | Distinct::Set);
    reduces || if block.limited { sorts } else { tests(c) }
}

/// Whether what is done with each row of a table is to call functions that no kernel knows: a program is as fast at that, and
/// has nothing to decode.
fn only_calls(c: &CorePlan) -> bool {
    let calls = |a: &Agg| a.args.iter().any(|e| e.any(&mut is_unknown));
    c.grouping == Grouping::All && c.levels.len() == 1 && !tests(c) && c.aggs.iter().any(calls)
}

/// Whether an expression is a call of a function that no kernel knows, or joins texts of several columns.
fn is_unknown(e: &Expr) -> bool {
    let scalar = |f: &Function| matches!(f.imp, Implementation::Scalar(_));
    let columns = |e: &Expr| e.any(&mut |e| matches!(e, Expr::Column(_)));
    match e {
        Expr::Call(c) => scalar(&c.function) && !is_kernel(&c.function.name),
        Expr::Binary(BinOp::Concat, a, b) => columns(a) && columns(b),
        _ => false,
    }
}

/// Whether a loop finds the values of such calls in its index, where columns would call the functions for all rows.
fn finds_computed(l: &Level) -> bool {
    let Some((index, _)) = l.index().filter(|_| !l.source.held.is_empty()) else { return false };
    let sought = !matches!(l.access, Access::IndexScan { .. });
    let calls = |h: &Held| (h.suffices || sought) && h.exprs.iter().any(|(_, e)| e.any(&mut is_unknown));
    l.source.held_by(index).is_some_and(|h| calls(h))
}

/// Whether a block begins with a scan, or with keys that a block finds which does.
#[inline]
fn scans(core: &CorePlan, nested: &NestedPlans) -> bool {
    use Access::*;
    match core.levels.first().map(|l| &l.access) {
        Some(Scan { .. } | IndexScan { .. } | RowidRange { .. } | Auto { .. }) => true,
        Some(RowidEq { eq: EqTerm::InSelect(i, _), .. }) => finds_keys(i, nested),
        Some(Index(a)) => a.eq.iter().any(|e| matches!(e, EqTerm::InSelect(i, _) if finds_keys(i, nested))),
        _ => false,
    }
}

/// Whether a block begins with a range of an index, that may be long.
fn ranges(core: &CorePlan) -> bool {
    matches!(core.levels.first(), Some(l) if matches!(&l.access, Access::Index(a) if !a.one_row))
}

/// Whether values of the rows are added up or compared: it may be worth while however few rows the first loop is thought to find.
fn adds(core: &CorePlan) -> bool {
    core.aggs.iter().any(|a| !a.function.flags.has(FunctionFlags::COUNT))
}

/// Whether the first loop is thought to find many rows.
fn is_long(core: &CorePlan) -> bool {
    core.levels.first().is_some_and(|l| l.rows >= LONG)
}

/// Whether the values of IN are found by scans.
fn finds_keys(i: &InSelect, nested: &NestedPlans) -> bool {
    nested.get(i.select.id).is_some_and(|p| p.cores.iter().all(|c| scans(c, nested)))
}

/// Whether the rows of a loop are known in columns.
fn is_known(l: &Level) -> bool {
    !l.source.join.right
        && match (&l.source.kind, &l.query) {
            (SourceKind::Table { .. }, _) => true,
            (_, Some(q)) => is_plain(q),
            _ => false,
        }
}

/// Whether a query in FROM is one whose rows can be made.
fn is_plain(q: &FromPlan) -> bool {
    let known = |c: &CorePlan| !c.levels.is_empty() && !c.count_only && c.levels.iter().all(is_known);
    let one = |c: &CorePlan| known(c.window.as_ref().map_or(c, |w| &w.input));
    !q.correlated && q.recursive.is_none() && q.select.merge.is_none() && q.select.cores.iter().all(one)
}

/// Whether rows have to meet a condition.
fn tests(c: &CorePlan) -> bool {
    let all = |l: &Level| matches!(l.access, Access::Scan { .. } | Access::IndexScan { .. });
    c.levels.iter().any(|l| !l.on.is_empty() || !l.filter.is_empty() || !all(l))
}
