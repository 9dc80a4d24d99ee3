//! Plans in words: what EXPLAIN QUERY PLAN says of a loop, in SQLite's wording (documentation page `eqp`); `explain` makes
//! a tree of it. `statement` has a longer form.

mod statement;

pub use statement::{bound, statement};

use crate::access::covers;
use crate::bound::*;
use crate::plan::*;
use iolite_catalog::{ColumnSource, Index, IndexColumn, IndexOrigin, Table};

/// The line for one loop; `extreme`: its arm looks for a least or greatest value.
pub fn level(l: &Level, extreme: bool) -> String {
    let mut out = match &l.access {
        // That NULLs do not count for an extreme goes without saying.
        Access::Index(a) if extreme && a.not_null => {
            joined(&Access::Index(Box::new(IndexAccess { not_null: false, ..(**a).clone() })), l)
        }
        access => joined(access, l),
    };
    if extreme && out.starts_with("SCAN ") {
        out.replace_range(..4, "SEARCH");
        if l.source.table().is_some_and(|(_, t)| !t.has_rowid()) && !out.contains(" INDEX ") {
            out.push_str(" USING PRIMARY KEY");
        }
    }
    out
}

/// The line for one of several accesses in a loop. Rows are read where the table has them, whatever the index holds: that it
/// holds all is only said.
pub fn branch(b: &OrBranch, l: &Level) -> String {
    let (Access::Index(a), Some((_, table))) = (&b.access, l.source.table()) else {
        return joined(&b.access, l);
    };
    let mut said = (**a).clone();
    said.covering = covers(&l.source, table, &a.index);
    joined(&Access::Index(Box::new(said)), l)
}

fn joined(a: &Access, l: &Level) -> String {
    let mut name = source_name(&l.source);
    if l.source.exists.is_some() {
        name.push_str(" EXISTS");
    }
    let mut out = access(a, &l.source, &name);
    // Several accesses say it each for itself.
    if l.source.join.left && !matches!(a, Access::Or(_)) {
        out.push_str(" LEFT-JOIN");
    }
    out
}

/// The line for the filter over a loop's keys.
pub fn bloom_filter(l: &Level) -> String {
    let conds = match &l.access {
        Access::Auto { eq, .. } => {
            let conds: Vec<String> =
                eq.iter().map(|(c, _)| format!("{}=?", column_name(&l.source, *c))).collect();
            conds.join(" AND ")
        }
        Access::Index(a) => {
            let name = |c: &IndexColumn| match c.source {
                ColumnSource::Column(c) => Some(format!("{}=?", column_name(&l.source, c as i32))),
                _ => None,
            };
            let conds: Vec<String> = a.index.columns[..a.eq.len()].iter().filter_map(name).collect();
            conds.join(" AND ")
        }
        _ => {
            let alias = l.source.table().and_then(|(_, t)| t.rowid_alias.map(|c| t.columns[c].name.clone()));
            alias.map_or_else(|| "rowid=?".to_string(), |name| format!("{name}=?"))
        }
    };
    format!("BLOOM FILTER ON {} ({conds})", source_name(&l.source))
}

/// The line for one way of finding rows.
pub fn access(a: &Access, source: &Source, name: &str) -> String {
    let table = match &source.kind {
        SourceKind::Table { table, .. } | SourceKind::Virtual { table, .. } => Some(table),
        _ => None,
    };
    match a {
        Access::Scan { .. } => format!("SCAN {name}"),
        Access::IndexScan { index, covering, .. } => index_scan(name, table.map(|t| &**t), index, *covering),
        Access::Index(a) if a.is_whole() => index_scan(name, table.map(|t| &**t), &a.index, a.covering),
        Access::RowidEq { .. } => format!("SEARCH {name} USING INTEGER PRIMARY KEY (rowid=?)"),
        Access::RowidRange { lo, hi, .. } => {
            let mut conds = Vec::new();
            if lo.is_some() {
                conds.push("rowid>?");
            }
            if hi.is_some() {
                conds.push("rowid<?");
            }
            format!("SEARCH {name} USING INTEGER PRIMARY KEY ({})", conds.join(" AND "))
        }
        Access::Index(i) => {
            let word = if is_primary(&i.index) && table.is_some_and(|t| !t.has_rowid()) {
                "PRIMARY KEY".to_string()
            } else if i.covering {
                format!("COVERING INDEX {}", i.index.name)
            } else {
                format!("INDEX {}", i.index.name)
            };
            format!("SEARCH {name} USING {word} ({})", conditions(i, table.map(|t| &**t)))
        }
        Access::Or(_) => "MULTI-INDEX OR".to_string(),
        Access::Auto { eq, filter, .. } => {
            let conds: Vec<String> =
                eq.iter().map(|(c, _)| format!("{}=?", column_name(source, *c))).collect();
            let partial = if filter.is_empty() { "" } else { "PARTIAL " };
            format!("SEARCH {name} USING AUTOMATIC {partial}COVERING INDEX ({})", conds.join(" AND "))
        }
        Access::Virtual { info, .. } => {
            format!("SCAN {name} VIRTUAL TABLE INDEX {}:{}", info.index_num, info.shown())
        }
    }
}

fn index_scan(name: &str, table: Option<&Table>, index: &Index, covering: bool) -> String {
    if is_primary(index) && table.is_some_and(|t| !t.has_rowid()) {
        return format!("SCAN {name}");
    }
    let word = if covering { "COVERING INDEX" } else { "INDEX" };
    format!("SCAN {name} USING {word} {}", index.name)
}

fn is_primary(i: &Index) -> bool {
    i.origin == IndexOrigin::PrimaryKey
}

/// The name of what a source reads, whatever it is called where it is read.
pub fn own_name(s: &Source) -> String {
    match &s.kind {
        SourceKind::Table { table, .. } | SourceKind::Virtual { table, .. } => table.name.to_string(),
        SourceKind::Subquery(q) if matches!(q.label, Label::Name(_)) => q.label.to_string(),
        _ => source_name(s),
    }
}

/// The name under which a source is shown.
pub fn source_name(s: &Source) -> String {
    match &s.shown {
        Some(a) => a.to_string(),
        None => match &s.kind {
            SourceKind::Subquery(q) if s.name.is_empty() => q.label.to_string(),
            _ => s.name.to_string(),
        },
    }
}

fn conditions(a: &IndexAccess, table: Option<&Table>) -> String {
    let field = |n: usize| match &a.index.columns[n].source {
        ColumnSource::Column(c) => table.map_or_else(|| "?".into(), |t| t.columns[*c].name.to_string()),
        ColumnSource::Rowid => "rowid".to_string(),
        ColumnSource::Expr(_) => "<expr>".to_string(),
    };
    let sought = |(n, e): (usize, &EqTerm)| match e {
        EqTerm::Any => format!("ANY({})", field(n)),
        _ => format!("{}=?", field(n)),
    };
    let mut out: Vec<String> = a.eq.iter().enumerate().map(sought).collect();
    let n = a.eq.len();
    let (mut lo, mut hi) = (a.lo.as_ref(), a.hi.as_ref());
    if (lo.is_some() || hi.is_some()) && a.key.fields[n].desc {
        std::mem::swap(&mut lo, &mut hi);
    }
    // A rowid behind the columns goes without saying.
    let named = |k: &usize| !matches!(a.index.columns[*k].source, ColumnSource::Rowid);
    if a.not_null {
        out.push(format!("{}>?", field(n)));
    }
    for (bound, op) in [(lo, '>'), (hi, '<')] {
        let Some(b) = bound else { continue };
        let mut fields: Vec<String> = (n..=n + b.behind().len()).filter(named).map(field).collect();
        if fields.is_empty() {
            fields.push("rowid".into());
        }
        out.push(match &fields[..] {
            [one] => format!("{one}{op}?"),
            several => format!("({}){op}({})", several.join(","), vec!["?"; several.len()].join(",")),
        });
    }
    out.join(" AND ")
}

fn column_name(s: &Source, c: i32) -> String {
    match &s.kind {
        SourceKind::Table { table, .. } | SourceKind::Virtual { table, .. } if c >= 0 => {
            table.columns[c as usize].name.to_string()
        }
        SourceKind::Subquery(q) if c >= 0 => {
            q.select.columns.get(c as usize).map_or_else(String::new, |o| o.meta.name.to_string())
        }
        _ => "rowid".into(),
    }
}
