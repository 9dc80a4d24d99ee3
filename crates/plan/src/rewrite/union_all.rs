//! UNION ALL in FROM: a query over one becomes a compound itself, an arm for each of its arms (documentation page
//! `optoverview`, section 11, rules 17 to 20). Each arm then has indexes, and can be flattened.
//!
//! What this does not know: whether an arm can be flattened (`flatten`); where it cannot, it is run as a query in FROM.

use super::flatten::{self, Around};
use super::renumber::renumber;
use crate::bound::*;
use iolite_base::Few;
use iolite_ext::FunctionFlags;
use iolite_value::Collation;

/// Makes an arm of each arm of the compounds in FROM, where that means the same.
pub fn expand(s: &mut Select, numbers: &mut Numbers) {
    let rows_follow = s.order_by.is_empty() && s.ops.iter().all(|o| *o == CompoundOp::UnionAll);
    if s.cores.len() > 1 && !rows_follow {
        return;
    }
    let mut k = 0;
    while k < s.cores.len() {
        let core = &s.cores[k];
        let found = (0..core.sources.len()).find(|&i| is_one(&core.sources[i]) && fits(core, i, &s.order_by));
        match found {
            // What stands in an arm may be a compound itself: it is looked at next.
            Some(i) => spread(s, k, i, numbers),
            None => k += 1,
        }
    }
}

/// Whether a source is a compound of nothing but UNION ALL.
fn is_one(s: &Source) -> bool {
    let SourceKind::Subquery(q) = &s.kind else { return false };
    q.select.cores.len() > 1 && q.select.ops.iter().all(|o| *o == CompoundOp::UnionAll)
}

/// Whether the arm around means the same as one arm for each of the compound's.
pub(super) fn fits(core: &Core, i: usize, order_by: &[OrderTerm]) -> bool {
    let s = &core.sources[i];
    let SourceKind::Subquery(q) = &s.kind else { return false };
    let closed = q.recursive.is_some() || q.materialize == Some(true) || q.misfit.is_some();
    let cut = q.select.limit.is_some() || q.select.offset.is_some();
    if closed || cut || !q.select.order_by.is_empty() || s.join.left || s.join.cross {
        return false;
    }
    if core.aggregate
        || core.distinct
        || !core.windows.is_empty()
        || core.sources.iter().any(|x| x.join.right)
    {
        return false;
    }
    let plain = |c: &Core| {
        !c.aggregate
            && !c.distinct
            && c.windows.is_empty()
            && c.values.is_empty()
            && !c.sources.is_empty()
            && !c.sources.iter().any(|x| x.join.right)
    };
    if !q.select.cores.iter().all(plain) {
        return false;
    }
    // A column that is not alike in all arms would compare in another way.
    let first = &q.select.cores[0].result;
    let alike = |c: &Core| {
        c.result.iter().zip(first.iter()).all(|(a, b)| {
            let collation = |e: &Expr| e.collation().map_or(Collation::Binary, |c| c.0);
            a.affinity() == b.affinity() && collation(a) == collation(b)
        })
    };
    if !q.select.cores.iter().all(alike) {
        return false;
    }
    // What sorts the whole must be a column of the compound, and a result.
    order_by.iter().all(|o| {
        let result = o.column.and_then(|k| core.result.get(k));
        matches!(result, Some(Expr::Column(c)) if c.table == s.id)
    })
}

/// `SELECT count(*) FROM` such a compound becomes the sum of its arms' counts. Answers whether it did.
pub fn count(s: &mut Select, numbers: &mut Numbers) -> bool {
    let [core] = &mut s.cores[..] else { return false };
    let ([source], [agg], [Expr::Agg(id, affinity)]) = (&core.sources[..], &core.aggs[..], &core.result[..])
    else {
        return false;
    };
    let all = agg.function.flags.has(FunctionFlags::COUNT) && agg.args.is_empty() && agg.filter.is_none();
    let plain = core.filter.is_empty() && core.group_by.is_empty() && core.having.is_none() && !core.distinct;
    if !all || !plain || agg.id != *id || !core.windows.is_empty() || !is_one(source) {
        return false;
    }
    let SourceKind::Subquery(q) = &source.kind else { return false };
    let whole = q.select.limit.is_none() && q.select.offset.is_none() && q.recursive.is_none();
    let counted = |c: &Core| !c.aggregate && !c.distinct && c.windows.is_empty() && !c.sources.is_empty();
    if !whole || q.materialize == Some(true) || q.misfit.is_some() || !q.select.cores.iter().all(counted) {
        return false;
    }
    let (agg, affinity, column) = (agg.clone(), *affinity, s.columns[0].clone());
    let (outer, arms) = (q.outer.clone(), q.select.cores.len() as u32);
    let number = |k: u32| match q.label {
        Label::Query(last) if last > 0 => (last + 1 + k).saturating_sub(arms),
        // The last arm of a view is counted first.
        _ => numbers.selects + arms - 1 - k,
    };
    let shown: Vec<u32> = (0..arms).map(number).collect();
    let mut core = std::mem::take(core);
    let SourceKind::Subquery(q) = &mut core.sources[0].kind else { return false };
    let mut sum: Option<Expr> = None;
    for (arm, number) in std::mem::take(&mut q.select.cores).into_iter().zip(shown) {
        numbers.agg += 1;
        numbers.sub += 1;
        let one = Core {
            aggregate: true,
            aggs: vec![Agg { id: numbers.agg, ..agg.clone() }],
            result: Few::one(Expr::Agg(numbers.agg, affinity)),
            ..arm
        };
        let select = Select { cores: Few::one(one), columns: Few::one(column.clone()), ..Select::default() };
        let query = Subquery { id: numbers.sub, number, select, outer: outer.clone() };
        let value = Expr::Subquery(std::rc::Rc::new(query), 0);
        sum = Some(match sum {
            None => value,
            Some(before) => Expr::Binary(BinOp::Add, Box::new(before), Box::new(value)),
        });
    }
    s.order_by.clear();
    s.cores = Few::one(Core { result: sum.into_iter().collect(), ..Core::default() });
    true
}

/// Puts an arm for each arm of the compound at `i` into the place of arm `k`.
fn spread(s: &mut Select, k: usize, i: usize, numbers: &mut Numbers) {
    let mut around = std::mem::take(&mut s.cores[k]);
    let SourceKind::Subquery(q) = &mut around.sources[i].kind else { return };
    let compound = std::mem::take(&mut q.select);
    let columns = compound.columns;
    let arms = compound.cores.len();
    let mut made = Vec::with_capacity(arms);
    for (n, arm) in compound.cores.into_iter().enumerate() {
        let mut copy = around.clone();
        if let SourceKind::Subquery(q) = &mut copy.sources[i].kind {
            q.select = Select { cores: Few::one(arm), columns: columns.clone(), ..Select::default() };
            // Uses of a common table expression share its rows, and here each has others.
            (q.cte, q.uses) = (None, None);
        }
        if n > 0 {
            renumber(&mut copy, numbers);
        }
        let order_by = &mut Vec::new();
        flatten::flatten(&mut copy, Around { order_by, only: false, changing: false });
        made.push(copy);
    }
    let mut cores: Vec<Core> = std::mem::take(&mut s.cores).into_iter().collect();
    cores.splice(k..=k, made);
    s.cores = cores.into();
    s.ops.splice(k..k, std::iter::repeat_n(CompoundOp::UnionAll, arms - 1));
}
