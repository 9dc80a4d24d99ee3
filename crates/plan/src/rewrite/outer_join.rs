//! Outer joins that need not be: a LEFT JOIN whose NULL rows a later condition rejects is an inner join; one whose
//! right side nobody reads, and which can match once at the most, is nothing (documentation page `optoverview`,
//! sections 13 and 17).

use crate::access::compares_alike;
use crate::bound::*;
use iolite_catalog::ColumnSource;
use iolite_ext::Implementation;
use iolite_sql::ast;
use iolite_value::Value;

/// Turns LEFT JOINs into inner joins where conditions reject rows of NULLs, RIGHT JOINs likewise, and FULL JOINs into
/// what is left of them. Where no RIGHT JOIN is left, the conditions of an inner join are those of WHERE.
///
/// Each source is looked at once, from left to right, as SQLite does: what becomes an inner join behind a LEFT JOIN makes none of
/// that, since the order of the loops, which is that of the rows, hangs on it.
pub fn strengthen(core: &mut Core) {
    for i in 0..core.sources.len() {
        let id = core.sources[i].id;
        let rejected = |f: &Filter| counts(core, f, i) && rejects_null(&f.expr, id);
        if core.sources[i].join.left && core.filter.iter().any(rejected) {
            core.sources[i].join.left = false;
        }
        // A row of a right side without a match has NULLs in all that stands before it.
        let rejects = |f: &Filter| f.on.is_none() && rejects_null(&f.expr, id);
        if core.sources[i + 1..].iter().any(|s| s.join.right) && core.filter.iter().any(rejects) {
            core.sources.iter_mut().skip(i + 1).for_each(|s| s.join.right = false);
        }
    }
    if core.sources.iter().any(|s| s.join.right) {
        return;
    }
    let sources = &core.sources;
    for f in core.filter.iter_mut() {
        f.on = f.on.filter(|on| sources.iter().any(|s| s.id == *on && s.join.left));
    }
}

/// Leaves out LEFT JOINs whose right sides nobody reads, and which make of a row one row: because at most one row of the
/// right side fits, or because rows that are alike become one afterwards.
pub fn omit(core: &mut Core, order_by: &[OrderTerm]) {
    if core.aggregate || core.sources.len() < 2 || core.sources.iter().any(|s| s.join.right) {
        return;
    }
    for i in (1..core.sources.len()).rev() {
        let s = &core.sources[i];
        let SourceKind::Table { table, .. } = &s.kind else { continue };
        if s.join.left
            && is_served(&s.indexed, table)
            && (core.distinct && core.windows.is_empty() || fits_once(core, s.id, table))
            && !is_read(core, order_by, s.id)
        {
            let id = s.id;
            core.sources.several().remove(i);
            core.filter = std::mem::take(&mut core.filter).into_iter().filter(|f| f.on != Some(id)).collect();
        }
    }
}

/// Whether the index that a source is to be read by, if any, can be read whatever the conditions say: otherwise there is no plan, which is
/// an error.
fn is_served(indexed: &ast::Indexed, table: &iolite_catalog::Table) -> bool {
    let ast::Indexed::By(name) = indexed else { return true };
    let indexes = table.indexes.borrow();
    indexes.iter().any(|i| i.name.eq_ignore_ascii_case(&name.text) && i.filter.is_none())
}

/// Whether anything but its own ON reads the source.
fn is_read(core: &Core, order_by: &[OrderTerm], id: TableId) -> bool {
    let filters = core.filter.iter().filter(|f| f.on != Some(id)).map(|f| &f.expr);
    let windows = core.windows.iter().flat_map(WindowDef::exprs);
    let order = order_by.iter().map(|o| &o.expr);
    let mut read = false;
    for e in core.result.iter().chain(filters).chain(windows).chain(order) {
        e.tables(&mut |t| read |= t == id);
    }
    // Arguments of table-valued functions and queries that depend on other sources.
    let beside = core.sources.iter().filter(|s| s.id != id);
    read || beside.into_iter().any(|s| !matches!(s.kind, SourceKind::Table { .. }))
}

/// Whether ON says what the rowid, or all columns of a unique index, equal.
fn fits_once(core: &Core, id: TableId, table: &iolite_catalog::Table) -> bool {
    let equals = |column: i32, good: &dyn Fn(&Compare) -> bool| {
        core.filter.iter().filter(|f| f.on == Some(id)).any(|f| {
            let Expr::Compare(c) = &f.expr else { return false };
            let is_it = |e: &Expr| matches!(e, Expr::Column(x) if x.table == id && x.column == column);
            let value = match (is_it(&c.lhs), is_it(&c.rhs)) {
                (true, false) => &c.rhs,
                (false, true) => &c.lhs,
                _ => return false,
            };
            let mut known = c.op == CmpOp::Eq && !c.null_eq && good(c);
            value.tables(&mut |t| known &= t != id);
            known
        })
    };
    if table.has_rowid() && equals(ROWID, &|_| true) {
        return true;
    }
    table.indexes.borrow().iter().any(|index| {
        index.unique.is_some()
            && index.filter.is_none()
            && index.columns[..index.key_len].iter().all(|k| match k.source {
                ColumnSource::Column(c) => {
                    let own = table.columns[c].affinity;
                    let name = k.collation.as_deref().unwrap_or("BINARY");
                    equals(c as i32, &|e| {
                        compares_alike(e.affinity, own) && e.collation.name().eq_ignore_ascii_case(name)
                    })
                }
                _ => false,
            })
    })
}

/// Whether a condition is tested on rows that the join at place `at` has already made: that of WHERE, or of an inner join behind it
/// where no RIGHT JOIN follows.
fn counts(core: &Core, f: &Filter, at: usize) -> bool {
    let Some(on) = f.on else { return true };
    let behind = &core.sources[at + 1..];
    behind.iter().any(|s| s.id == on && !s.join.left) && !behind.iter().any(|s| s.join.right)
}

/// Whether the condition cannot be true while all columns of `table` are NULL.
pub fn rejects_null(e: &Expr, table: TableId) -> bool {
    match e {
        Expr::Compare(c) if !c.null_eq => null_if(&c.lhs, table) || null_if(&c.rhs, table),
        Expr::RowOrder(fields) => null_if(&fields[0].lhs, table) || null_if(&fields[0].rhs, table),
        Expr::NotNull(x) => null_if(x, table),
        Expr::IsTruth { e, truth: true, not: false } => rejects_null(e, table) || null_if(e, table),
        Expr::And(a, b) => rejects_null(a, table) || rejects_null(b, table),
        Expr::Or(a, b) => rejects_null(a, table) && rejects_null(b, table),
        Expr::Between { lo, hi } => {
            null_if(&lo.lhs, table) || null_if(&lo.rhs, table) && null_if(&hi.rhs, table)
        }
        // `NULL NOT IN ()` is true.
        Expr::InList(i) => !i.list.is_empty() && null_if(&i.lhs, table),
        Expr::InSelect(i) => !i.not && i.lhs.iter().any(|l| null_if(l, table)),
        Expr::Not(x) => match &**x {
            Expr::Compare(c) if !c.null_eq => null_if(&c.lhs, table) || null_if(&c.rhs, table),
            Expr::Call(_) => null_if(x, table),
            Expr::Or(..) | Expr::And(..) => rejects_as_false(x, table),
            _ => false,
        },
        Expr::Call(c) if crate::terms::said_truth(e).is_some() => rejects_null(&c.args[0], table),
        other => null_if(other, table),
    }
}

/// Whether all that AND and OR combine is NULL, and so not false, while all columns of `table` are NULL.
fn rejects_as_false(e: &Expr, table: TableId) -> bool {
    match e {
        Expr::Or(a, b) | Expr::And(a, b) => rejects_as_false(a, table) && rejects_as_false(b, table),
        Expr::Compare(c) if !c.null_eq => null_if(&c.lhs, table) || null_if(&c.rhs, table),
        _ => false,
    }
}

/// Whether the value is NULL while all columns of `table` are NULL.
fn null_if(e: &Expr, table: TableId) -> bool {
    match e {
        Expr::Column(c) => c.table == table,
        Expr::IfNotNullRow(t, _) => *t == table,
        Expr::Plus(x) | Expr::Neg(x) | Expr::BitNot(x) | Expr::Collate(x, _) | Expr::Cast(x, _) => {
            null_if(x, table)
        }
        Expr::Binary(_, a, b) => null_if(a, table) || null_if(b, table),
        Expr::Compare(c) if !c.null_eq => null_if(&c.lhs, table) || null_if(&c.rhs, table),
        // What a program registers under these names may do anything.
        Expr::Call(c) if matches!(c.function.imp, Implementation::User(_)) => false,
        Expr::Call(c) if matches!(&*c.function.name, "length" | "abs" | "upper" | "lower") => {
            c.args.iter().any(|a| null_if(a, table))
        }
        // Beside a blob they are false, whatever the other side is.
        Expr::Call(c) if matches!(&*c.function.name, "like" | "glob") => {
            let known = |a: &Expr| matches!(a, Expr::Const(v) if !matches!(v, Value::Blob(..)));
            let null = |a: &Expr| null_if(a, table);
            c.args.iter().any(null) && c.args.iter().all(|a| null(a) || known(a))
        }
        _ => false,
    }
}
