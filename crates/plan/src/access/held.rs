//! Expressions whose values an index holds.
//!
//! An index on an expression has the expression's value in each entry, so a loop over its entries need not compute it, and
//! where the query reads nothing of the table beside such expressions and the index's columns, it need not read the table
//! (expridx page). Which indexes those are is found before the accesses are weighed, for tables that have such an index.
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
use std::rc::Rc;

/// Binds the expressions of an index to a source: one for each field, `None` for columns.
pub(super) fn bind(env: &Env<'_>, table: &Rc<Table>, id: TableId, index: &Index) -> Result<Vec<Option<Expr>>> {
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

/// Notes in each source what the indexes on expressions hold of what the arm, and any of the expressions in `extra`, read.
pub(crate) fn note(env: &Env<'_>, c: &mut Core, extra: &[OrderTerm]) -> Result<()> {
    let right = c.sources.iter().any(|s| s.join.right);
    let grouped = c.aggregate && !c.group_by.is_empty();
    for i in 0..c.sources.len() {
        let s = &c.sources[i];
        let SourceKind::Table { table, .. } = &s.kind else { continue };
        if right || s.indexed == iolite_sql::ast::Indexed::Not {
            continue;
        }
        let mut held = Vec::new();
        for index in table.indexes.borrow().iter().filter(|i| i.has_expr()) {
            let bound = bind(env, table, s.id, index)?.into_iter().enumerate();
            let exprs = bound.filter_map(|(n, e)| Some((n, e.filter(|e| !e.is_leaf())?)));
            let exprs: Rc<[_]> = exprs.collect();
            let stored = |c: &iolite_catalog::IndexColumn| match c.source {
                ColumnSource::Column(k) => table.columns[k].is_stored(),
                _ => true,
            };
            let has = |e: &Expr| match e {
                Expr::Column(c) if c.column == ROWID => table.has_rowid(),
                Expr::Column(c) => index.field_of(c.column as usize).is_some(),
                e => exprs.iter().any(|(_, of)| of.same(e)),
            };
            let order = extra.iter().map(|o| &o.expr);
            let suffices = table.has_rowid()
                && index.columns.iter().all(stored)
                && !walk::reads_beyond(c, order, s.id, &has);
            let (covers, nullable) = (suffices && !grouped && !s.join.left, s.join.left);
            held.push(Held { index: index.clone(), exprs: exprs.clone(), suffices, covers, nullable });
        }
        if !held.is_empty() {
            c.sources[i].held = held;
        }
    }
    Ok(())
}
