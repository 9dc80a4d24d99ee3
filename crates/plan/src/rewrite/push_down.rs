//! Pushing conditions down: what is asked of the columns of a query in FROM that cannot be flattened is asked of its rows
//! before they are grouped, merged or numbered (documentation page `optoverview`, section 12).
//!
//! The condition stays where it was as well. Comparisons of columns with constants go down where that saves work: they hold for
//! all of the values that are equal, of which a group or a set shows one. In an arm of a compound a comparison has the affinity
//! of what the arm gives, as in SQLite. Where arms differ in that, any condition goes down, for fewer rows may come out so.

use super::renumber::renumber_queries;
use super::substitute::replace_in_expr;
use crate::bound::*;
use crate::expr::{comparison_affinity, list_affinity};
use iolite_base::Rows;
use iolite_catalog::{ColumnSource, Index};
use iolite_ext::FunctionFlags;
use iolite_sql::ast::CompoundOp;
use iolite_value::Collation;
use std::rc::Rc;

/// Pushes down what can be pushed in `core`, after flattening.
pub fn push_down(core: &mut Core, numbers: &mut Numbers) {
    if core.filter.is_empty() || core.sources.iter().any(|s| s.join.right) {
        return;
    }
    for i in 0..core.sources.len() {
        let s = &core.sources[i];
        let SourceKind::Subquery(q) = &s.kind else { continue };
        if !open(q) {
            continue;
        }
        let (id, left) = (s.id, s.join.left);
        // Of the right side of an outer join, only its own ON says which rows come.
        let place = |f: &Filter| if left { f.on == Some(id) } else { f.on.is_none() };
        let several = q.select.cores.len() > 1;
        let form = |e: &Expr| simple(e, &is_side, true) || several && movable(e);
        let asks = |f: &&Filter| place(f) && form(&f.expr) && only_about(&f.expr, id);
        let terms: Vec<Expr> = core.filter.iter().filter(asks).map(|f| f.expr.clone()).collect();
        let SourceKind::Subquery(q) = &mut core.sources[i].kind else { continue };
        if !terms.is_empty() {
            // It has rows of its own now.
            (q.cte, q.uses) = (None, None);
        }
        for t in terms {
            let pushed = push(&t, &mut q.select, id, numbers);
            // A set is made for each place where it is asked.
            if pushed && !left && matches!(t, Expr::InSelect(_)) {
                let others = std::mem::take(&mut core.filter).into_iter();
                core.filter = others.filter(|f| f.on.is_some() || !f.expr.same(&t)).collect();
            }
        }
    }
}

/// Whether conditions may go into the query at all.
fn open(q: &FromQuery) -> bool {
    q.recursive.is_none()
        && !q.is_shared()
        && q.materialize != Some(true)
        && q.misfit.is_none()
        && q.outer.is_empty()
        && q.select.limit.is_none()
        && q.select.offset.is_none()
        && q.select.cores.iter().all(|c| c.values.len() < 2 && (!c.aggregate || c.windows.is_empty()))
}

/// Comparisons of columns and constants, and what AND, OR and NOT make of them; with `sets`, IN (SELECT ...) that depends on nothing
/// outside as well.
fn simple(e: &Expr, side: &dyn Fn(&Expr) -> bool, sets: bool) -> bool {
    match e {
        Expr::InSelect(i) => sets && i.select.outer.is_empty() && i.lhs.iter().all(side),
        Expr::Compare(c) => side(&c.lhs) && side(&c.rhs),
        Expr::Between { lo, hi } => [lo, hi].iter().all(|c| side(&c.lhs) && side(&c.rhs)),
        Expr::InList(l) => side(&l.lhs) && l.list.iter().all(side),
        Expr::IsNull(a) | Expr::NotNull(a) => side(a),
        Expr::Not(a) => simple(a, side, sets),
        Expr::And(a, b) | Expr::Or(a, b) => simple(a, side, sets) && simple(b, side, sets),
        _ => false,
    }
}

fn is_side(e: &Expr) -> bool {
    matches!(e.without_collate(), Expr::Column(_) | Expr::Const(_) | Expr::Param(_))
}

/// What arithmetic makes of columns and constants: computed twice it costs less than a row that is passed on. Of values that
/// are equal it may make different ones.
fn is_computed(e: &Expr) -> bool {
    match e {
        Expr::Binary(_, a, b) => is_computed(a) && is_computed(b),
        Expr::Neg(a) | Expr::Plus(a) | Expr::BitNot(a) => is_computed(a),
        other => is_side(other),
    }
}

/// Whether it reads the columns of this source and of no other.
fn only_about(e: &Expr, id: TableId) -> bool {
    let (mut own, mut others) = (false, false);
    e.tables(&mut |t| if t == id { own = true } else { others = true });
    own && !others
}

/// Whether an arm may find rows by a set in a condition: an index, or the table itself, begins with a column that is to be in it.
fn finds_by_set(term: &Expr, id: TableId, arm: &Core) -> bool {
    let begins = |e: &Expr| {
        let Expr::Column(lhs) = e else { return false };
        let result = usize::try_from(lhs.column).ok().and_then(|k| arm.result.get(k));
        let Some(Expr::Column(c)) = result.filter(|_| lhs.table == id) else { return false };
        let own = usize::try_from(c.column).ok();
        arm.sources.iter().filter(|s| s.id == c.table).filter_map(Source::table).any(|(_, table)| {
            let first =
                |i: &Rc<Index>| matches!(i.columns[0].source, ColumnSource::Column(k) if Some(k) == own);
            own.is_none() || table.rowid_alias == own || table.indexes.borrow().iter().any(first)
        })
    };
    term.any(&mut |x| matches!(x, Expr::InSelect(i) if !i.not && i.lhs.iter().any(begins)))
}

/// Whether no row comes out of the query any more of which the condition does not hold.
fn push(term: &Expr, select: &mut Select, id: TableId, numbers: &mut Numbers) -> bool {
    let mut columns: Vec<usize> = Vec::new();
    let mut known = true;
    term.any(&mut |x| {
        if let Expr::Column(c) = x {
            match usize::try_from(c.column) {
                Ok(k) => columns.push(k),
                Err(_) => known = false,
            }
        }
        false
    });
    // Values that are equal under another collating sequence are not equal to all.
    let sets = select.ops.iter().any(|op| *op != CompoundOp::UnionAll);
    let arms = &select.cores;
    if !known {
        return false;
    }
    let differ = differ(arms, &columns);
    // SQLite leaves it outside then, where it compares in one way.
    let apart = sets && differ && !arms.iter().all(all_binary);
    let plain = |arm: &Core| !arm.aggregate && !arm.distinct && arm.windows.is_empty();
    let all_rows = !sets && arms.len() > 1 && arms.iter().all(plain);
    // A set is made for each arm: that pays where rows are sought by it.
    let worth = simple(term, &is_side, false)
        || all_rows && simple(term, &is_computed, false)
        || simple(term, &is_side, true) && arms.iter().any(|arm| finds_by_set(term, id, arm));
    let pays = !apart && worth && arms.iter().all(|arm| columns.iter().all(|&k| fits(arm, k, sets, term)));
    let shows = || differ && arms.iter().all(|arm| columns.iter().all(|&k| follows(arm, k, sets)));
    if !pays && !shows() {
        return false;
    }
    for arm in select.cores.iter_mut() {
        // One row of VALUES is a SELECT without FROM, which a condition can leave out.
        arm.values = Rows::default();
        let mut expr = term.clone();
        renumber_queries(&mut expr, numbers);
        let results = &arm.result;
        replace_in_expr(&mut expr, &|c| {
            let k = usize::try_from(c.column).ok().filter(|_| c.table == id)?;
            results.get(k).cloned()
        });
        compare_as_there(&mut expr);
        // Beside its groups, SQLite does not ask it of the rows of a compound within.
        if arm.aggregate && (!pays || arm.sources.iter().any(is_mixed)) {
            arm.having = Some(match arm.having.take() {
                Some(h) => Expr::And(Box::new(h), Box::new(expr)),
                None => expr,
            });
        } else {
            arm.filter.push(Filter { expr, on: None });
        }
    }
    all_rows && pays && !differ
}

/// Whether the arms of a compound compare some of these columns in different ways: then what is asked of it goes into the arms
/// even where nothing is saved, since some rows only pass there, or do not.
fn differ(arms: &[Core], columns: &[usize]) -> bool {
    let affinity = |arm: &Core, k: usize| arm.result.get(k).map(Expr::affinity);
    columns.iter().any(|&k| arms.iter().any(|arm| affinity(arm, k) != affinity(&arms[0], k)))
}

/// Whether a source is a compound whose arms compare in different ways.
fn is_mixed(s: &Source) -> bool {
    let SourceKind::Subquery(q) = &s.kind else { return false };
    let width = q.select.cores.first().map_or(0, |c| c.result.len());
    differ(&q.select.cores, &(0..width).collect::<Vec<_>>())
}

/// Whether a condition can be asked of other columns than it was made for: it has no queries but sets that depend on nothing
/// outside, and nothing that belongs to its place.
fn movable(e: &Expr) -> bool {
    !e.any(&mut |x| match x {
        Expr::Subquery(..) | Expr::Exists(_) | Expr::Agg(..) | Expr::IfNotNullRow(..) => true,
        Expr::InSelect(i) => !i.select.outer.is_empty(),
        other => is_fixed(other),
    })
}

/// Whether an expression, what it contains aside, is computed once for a row or not at all.
fn is_fixed(e: &Expr) -> bool {
    match e {
        Expr::Call(c) => !c.function.flags.has(FunctionFlags::DETERMINISTIC),
        Expr::Window(..) | Expr::Raise(..) => true,
        _ => false,
    }
}

/// Whether a condition on column `k` may be asked of an arm's rows or groups.
fn follows(arm: &Core, k: usize, sets: bool) -> bool {
    let Some(e) = arm.result.get(k) else { return false };
    !e.any(&mut is_fixed) && arm.windows.is_empty() && (!sets || all_binary(arm))
}

/// Whether an arm's values are equal only where they are the same.
fn all_binary(arm: &Core) -> bool {
    arm.result.iter().all(|e| e.collation().is_none_or(|c| c.0.is_binary()))
}

/// Gives comparisons the affinity that their new sides have: an arm's column may be another one's expression.
fn compare_as_there(e: &mut Expr) {
    e.children_mut(&mut |x| compare_as_there(x));
    let again = |c: &mut Compare| c.affinity = comparison_affinity(&c.lhs, &c.rhs);
    match e {
        Expr::Compare(c) => again(c),
        Expr::RowOrder(fields) => fields.iter_mut().for_each(again),
        Expr::Between { lo, hi } => {
            if let Expr::CaseBase(affinity, _) = &mut hi.lhs {
                *affinity = lo.lhs.affinity();
            }
            [lo, hi].into_iter().for_each(|c| again(c));
        }
        Expr::Case { base: Some(base), arms, .. } => {
            for (when, _) in arms {
                if let Expr::Compare(c) = when {
                    if let Expr::CaseBase(affinity, _) = &mut c.lhs {
                        *affinity = base.affinity();
                    }
                    again(c);
                }
            }
        }
        Expr::InList(l) => l.affinity = list_affinity(&l.lhs),
        Expr::InSelect(i) => i.meet(),
        _ => {}
    }
}

/// Whether column `k` of an arm has one value in all of the rows that come to one, or values that are alike to `term`, and is
/// cheap to compute again.
fn fits(arm: &Core, k: usize, sets: bool, term: &Expr) -> bool {
    let Some(e) = arm.result.get(k) else { return false };
    let costly = e.any(&mut |x| match x {
        Expr::Call(c) => !c.function.flags.has(FunctionFlags::DETERMINISTIC),
        Expr::Agg(..) | Expr::Window(..) | Expr::Subquery(..) | Expr::Exists(_) | Expr::InSelect(_) => true,
        Expr::IfNotNullRow(..) | Expr::Raise(..) => true,
        _ => false,
    });
    let binary = |e: &Expr| e.collation().is_none_or(|c| c.0.is_binary() || compares_by(term, &c.0));
    let merged = sets || arm.distinct || arm.aggregate || !arm.windows.is_empty();
    if costly || merged && !binary(e) {
        return false;
    }
    let among =
        |list: &[Expr]| list.iter().any(|g| g.without_collate().same(e.without_collate()) && binary(g));
    (!arm.aggregate || among(&arm.group_by)) && arm.windows.iter().all(|w| among(&w.partition))
}

/// Whether each comparison in a condition goes by this collating sequence.
fn compares_by(term: &Expr, collation: &Collation) -> bool {
    !term.any(&mut |x| match x {
        Expr::Compare(c) => c.collation != *collation,
        Expr::Between { lo, hi } => lo.collation != *collation || hi.collation != *collation,
        Expr::InList(l) => l.collation != *collation,
        _ => false,
    })
}
