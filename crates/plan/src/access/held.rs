//! What an index holds of a row beyond columns: the values of expressions, and that the conditions of a partial index are met.
//!
//! A loop over the entries of an index on an expression need not compute it (expridx page), one over those of a partial index
//! need not test its conditions, and knows the columns that these give one value (partialindex page). Where the query reads
//! nothing of the table beside these and the index's columns, the table need not be read. Which indexes those are is found
//! before the accesses are weighed, for tables that have such an index.
//!
//! What always holds: an expression is looked for as a whole, in the form in which the index has it. A row that an outer join
//! fills with NULLs has no entry: there, the value is that of the expression over NULLs. No entry has a subtype, so functions
//! that see subtypes are not given what is held for one that sets them.
//!
//! What it does not know: which access is chosen, how an entry is read.

use crate::bind::{Binder, Env};
use crate::bound::*;
use crate::walk;
use iolite_base::Result;
use iolite_catalog::{ColumnSource, Index, Table};
use iolite_value::{Affinity, Collation, Value};
use std::rc::Rc;

/// Binds the expressions of an index to a source: one for each field, `None` for columns.
pub(super) fn bind(
    env: &Env<'_>,
    table: &Rc<Table>,
    id: TableId,
    index: &Index,
) -> Result<Vec<Option<Expr>>> {
    let mut b = binder(env);
    let mut bound = |c: &iolite_catalog::IndexColumn| match &c.source {
        ColumnSource::Expr(e) => b.table_expr(table, id, e).map(|e| Some(e.without_collate().clone())),
        _ => Ok(None),
    };
    index.columns.iter().map(&mut bound).collect()
}

/// What binds the expressions of definitions: nobody is asked whether they are allowed.
pub(super) fn binder<'e>(env: &'e Env<'_>) -> Binder<'e> {
    let mut b = Binder::new(env, "");
    b.ask_nobody();
    b.carried = true;
    b
}

/// Notes in each source what its partial indexes and those on expressions hold of what the arm, and any of the expressions in
/// `extra`, read.
pub(crate) fn note(env: &Env<'_>, c: &mut Core, extra: &[OrderTerm]) -> Result<()> {
    let right = c.sources.iter().any(|s| s.join.right);
    for i in 0..c.sources.len() {
        let s = &c.sources[i];
        let SourceKind::Table { table, .. } = &s.kind else { continue };
        if right || s.indexed == iolite_sql::ast::Indexed::Not {
            continue;
        }
        let mut held = Vec::new();
        for index in table.indexes.borrow().iter().filter(|i| i.has_expr() || i.filter.is_some()) {
            held.push(Rc::new(of_index(env, c, s, table, index, extra)?));
        }
        if !held.is_empty() {
            c.sources[i].held = held;
        }
    }
    Ok(())
}

fn of_index(
    env: &Env<'_>,
    c: &Core,
    s: &Source,
    table: &Rc<Table>,
    index: &Rc<Index>,
    extra: &[OrderTerm],
) -> Result<Held> {
    let bound = bind(env, table, s.id, index)?.into_iter().enumerate();
    // What reads no column is the same expression wherever it stands, also where the index is not read.
    let reads = |e: &Expr| !e.is_leaf() && e.any(&mut |x| matches!(x, Expr::Column(_)));
    let exprs: Rc<[_]> = bound.filter_map(|(n, e)| Some((n, e.filter(reads)?))).collect();
    let mut said = Vec::new();
    if let Some(f) = &index.filter {
        binder(env).table_expr(table, s.id, f)?.conjuncts(&mut said);
    }
    // A BETWEEN stands in a query as a whole or as two comparisons.
    let ends: Vec<Expr> = said.iter().filter_map(Expr::ends).flatten().collect();
    said.extend(ends);
    let nullable = s.join.left;
    let fixed: Rc<[_]> = said.iter().filter(|_| !nullable).filter_map(|e| fixed(e, table)).collect();
    let plain = super::covers(s, table, index);
    let stored = |c: &iolite_catalog::IndexColumn| match c.source {
        ColumnSource::Column(k) => table.columns[k].is_stored(),
        _ => true,
    };
    let has = |e: &Expr| match e {
        Expr::Column(c) if c.column == ROWID => table.has_rowid(),
        Expr::Column(c) => {
            index.field_of(c.column as usize).is_some() || fixed.iter().any(|(k, _)| *k == c.column)
        }
        e => exprs.iter().any(|(_, of)| of.same(e)),
    };
    let knows = |e: &Expr| has(e) || said.iter().any(|of| of.same(e));
    let within = |held: &dyn Fn(&Expr) -> bool| {
        let order = extra.iter().map(|o| &o.expr);
        index.columns.iter().all(stored) && !walk::reads_beyond(c, order, s.id, held)
    };
    let suffices = plain || within(&knows);
    let grouped = c.aggregate && !c.group_by.is_empty() && !exprs.is_empty();
    let covers = plain || suffices && !grouped && !nullable && (said.is_empty() || within(&has));
    let said = said.into();
    Ok(Held { index: index.clone(), exprs, said, fixed, plain, suffices, covers, nullable })
}

/// The column that a condition of a partial index gives one value.
fn fixed(e: &Expr, table: &Table) -> Option<(i32, Value)> {
    let Expr::Compare(c) = e else { return None };
    let (Expr::Column(column), Expr::Const(v)) = (c.lhs.without_collate(), c.rhs.without_collate()) else {
        return None;
    };
    let affinity = table.columns.get(usize::try_from(column.column).ok()?)?.affinity;
    // Of numbers that are equal, and of texts that a collating sequence takes for equal, the column has one.
    let one = match v {
        Value::Int(_) => matches!(affinity, Affinity::Integer | Affinity::Numeric),
        Value::Text(..) => affinity == Affinity::Text && c.collation == Collation::Binary,
        _ => false,
    };
    (c.op == CmpOp::Eq && one).then(|| (column.column, v.clone()))
}
