//! Lists: of tables, columns, indexes and foreign keys, of databases, and of what the connection knows.

use super::{Call, Pragma, Rows, Schemas, all, opt_text, text};
use iolite_base::Result;
use iolite_catalog::{ColumnSource, TableKind};
use iolite_ext::FunctionFlags;
use iolite_sql::ast::ForeignKeyAction;
use iolite_value::Value;
use std::rc::Rc;

pub(super) static PRAGMAS: &[Pragma] = &[
    Pragma::new("collation_list", collation_list).columns(&["seq", "name"]),
    Pragma::new("compile_options", compile_options),
    Pragma::new("database_list", database_list).columns(&["seq", "name", "file"]),
    Pragma::new("foreign_key_list", foreign_key_list)
        .columns(&["id", "seq", "table", "from", "to", "on_update", "on_delete", "match"])
        .needs(Schemas::OfTable),
    Pragma::new("function_list", function_list).columns(&["name", "builtin", "type", "enc", "narg", "flags"]),
    Pragma::new("index_info", |c| index_info(c, false))
        .columns(&["seqno", "cid", "name"])
        .needs(Schemas::Current),
    Pragma::new("index_list", index_list)
        .columns(&["seq", "name", "unique", "origin", "partial"])
        .needs(Schemas::OfTable),
    Pragma::new("index_xinfo", |c| index_info(c, true))
        .columns(&["seqno", "cid", "name", "desc", "coll", "key"])
        .needs(Schemas::Current),
    Pragma::new("module_list", module_list).columns(&["name"]),
    Pragma::new("pragma_list", pragma_list).columns(&["name"]),
    Pragma::new("table_info", |c| table_info(c, false))
        .columns(&["cid", "name", "type", "notnull", "dflt_value", "pk"])
        .needs(Schemas::OfTable),
    Pragma::new("table_list", table_list)
        .columns(&["schema", "name", "type", "ncol", "wr", "strict"])
        .needs(Schemas::Current),
    Pragma::new("table_xinfo", |c| table_info(c, true))
        .columns(&["cid", "name", "type", "notnull", "dflt_value", "pk", "hidden"])
        .needs(Schemas::OfTable),
];

fn collation_list(c: &Call<'_>) -> Result<Rows> {
    let names = c.inner().registry.borrow().collation_names();
    names.iter().enumerate().map(|(i, n)| Ok(vec![Value::Int(i as i64), text(n)?])).collect()
}

fn compile_options(_: &Call<'_>) -> Result<Rows> {
    iolite_func::COMPILE_OPTIONS.iter().map(|o| Ok(vec![text(o)?])).collect()
}

fn database_list(c: &Call<'_>) -> Result<Rows> {
    let dbs = c.inner().databases.borrow();
    let mut out = Vec::new();
    for (i, d) in dbs.iter().enumerate() {
        if d.btree.is_some() {
            out.push(vec![Value::Int(i as i64), text(&d.name)?, Value::text(&d.file)?]);
        }
    }
    Ok(out)
}

fn foreign_key_list(c: &Call<'_>) -> Result<Rows> {
    let Some(t) = c.table() else { return Ok(Vec::new()) };
    let mut out = Vec::new();
    for (id, f) in t.foreign_keys.iter().rev().enumerate() {
        for (seq, col) in f.columns.iter().enumerate() {
            out.push(vec![
                Value::Int(id as i64),
                Value::Int(seq as i64),
                text(&f.parent)?,
                text(&t.columns[*col].name)?,
                opt_text(f.parent_columns.get(seq).map(|p| &**p))?,
                text(action_name(f.on_update))?,
                text(action_name(f.on_delete))?,
                // MATCH is read, and then means nothing.
                text("NONE")?,
            ]);
        }
    }
    Ok(out)
}

fn action_name(a: ForeignKeyAction) -> &'static str {
    match a {
        ForeignKeyAction::NoAction => "NO ACTION",
        ForeignKeyAction::Restrict => "RESTRICT",
        ForeignKeyAction::SetNull => "SET NULL",
        ForeignKeyAction::SetDefault => "SET DEFAULT",
        ForeignKeyAction::Cascade => "CASCADE",
    }
}

fn function_list(c: &Call<'_>) -> Result<Rows> {
    let registry = c.inner().registry.borrow();
    let mut list = registry.functions();
    list.sort_by(|a, b| (&a.name, a.args).cmp(&(&b.name, b.args)));
    list.iter()
        .map(|f| {
            let kind = match (f.is_aggregate(), f.flags.has(FunctionFlags::WINDOW)) {
                (true, true) => "w",
                (true, false) => "a",
                _ => "s",
            };
            let flags = [
                (FunctionFlags::DETERMINISTIC, 0x800),
                (FunctionFlags::DIRECT_ONLY, 0x8_0000),
                (FunctionFlags::SUBTYPE, 0x10_0000),
                (FunctionFlags::INNOCUOUS, 0x20_0000),
            ];
            let flags = flags.iter().filter(|(flag, _)| f.flags.has(*flag)).map(|(_, bit)| bit).sum();
            Ok(vec![
                text(&f.name.to_ascii_lowercase())?,
                Value::Int(!registry.is_added(f) as i64),
                text(kind)?,
                text("utf8")?,
                Value::Int(f.args as i64),
                Value::Int(flags),
            ])
        })
        .collect()
}

fn index_info(c: &Call<'_>, extended: bool) -> Result<Rows> {
    let Some(name) = c.value else { return Ok(Vec::new()) };
    let catalog = c.inner().catalog.borrow();
    let found = catalog.index(c.schema, name);
    let (db, index) = match found {
        Some(x) => x,
        None => match catalog.table(c.schema, name).and_then(|(db, t)| t.primary_index().map(|i| (db, i))) {
            Some(x) => x,
            None => return Ok(Vec::new()),
        },
    };
    let Some(t) = catalog.schemas[db].table(&index.table) else { return Ok(Vec::new()) };
    let n = if extended { index.columns.len() } else { index.key_len };
    let is_table = t.primary_index().is_some_and(|p| Rc::ptr_eq(&p, &index));
    let mut out = Vec::new();
    for (i, col) in index.columns[..n].iter().enumerate() {
        let (cid, name) = match &col.source {
            ColumnSource::Column(k) => (*k as i64, text(&t.columns[*k].name)?),
            ColumnSource::Rowid => (-1, Value::Null),
            ColumnSource::Expr(_) => (-2, Value::Null),
        };
        let mut row = vec![Value::Int(i as i64), Value::Int(cid), name];
        if extended {
            row.push(Value::Int(col.desc as i64));
            // What a primary key carries along is said as the table has it, though nothing is compared by it.
            let carried = match &col.source {
                ColumnSource::Column(k) if i >= index.key_len && is_table => {
                    t.columns[*k].collation.as_deref()
                }
                _ => None,
            };
            row.push(text(col.collation.as_deref().or(carried).unwrap_or("BINARY"))?);
            row.push(Value::Int((i < index.key_len) as i64));
        }
        out.push(row);
    }
    Ok(out)
}

fn index_list(c: &Call<'_>) -> Result<Rows> {
    let Some(t) = c.table() else { return Ok(Vec::new()) };
    let mut out = Vec::new();
    for (i, x) in t.indexes.borrow().iter().enumerate() {
        let origin = match x.origin {
            iolite_catalog::IndexOrigin::Create => "c",
            iolite_catalog::IndexOrigin::Unique => "u",
            iolite_catalog::IndexOrigin::PrimaryKey => "pk",
        };
        out.push(vec![
            Value::Int(i as i64),
            text(&x.name)?,
            Value::Int(x.unique.is_some() as i64),
            text(origin)?,
            Value::Int(x.filter.is_some() as i64),
        ]);
    }
    Ok(out)
}

fn module_list(c: &Call<'_>) -> Result<Rows> {
    c.inner().registry.borrow().module_names().iter().map(|n| Ok(vec![text(n)?])).collect()
}

fn pragma_list(_: &Call<'_>) -> Result<Rows> {
    let mut names: Vec<&str> = all().map(|p| p.name).collect();
    names.sort_unstable();
    names.iter().map(|n| Ok(vec![text(n)?])).collect()
}

fn table_info(c: &Call<'_>, extended: bool) -> Result<Rows> {
    let Some(name) = c.value else { return Ok(Vec::new()) };
    let columns = crate::describe::columns(c.conn, c.schema, name)?;
    let mut out = Vec::new();
    let mut cid = 0;
    for col in columns {
        if col.hidden != 0 && !extended {
            continue;
        }
        let mut row = vec![
            Value::Int(cid),
            text(&col.name)?,
            text(&col.decltype)?,
            Value::Int(col.not_null as i64),
            opt_text(col.default.as_deref())?,
            Value::Int(col.pk as i64),
        ];
        if extended {
            row.push(Value::Int(col.hidden as i64));
        }
        out.push(row);
        cid += 1;
    }
    Ok(out)
}

fn table_list(c: &Call<'_>) -> Result<Rows> {
    let schemas = c.inner().catalog.borrow().schemas.clone();
    let mut out = Vec::new();
    for s in &schemas {
        if c.schema.is_some_and(|n| !n.eq_ignore_ascii_case(&s.name)) {
            continue;
        }
        for t in s.all_tables() {
            let shown = match (t.root.get(), &*t.name) {
                (1, "sqlite_master") => "sqlite_schema".to_string(),
                (1, _) => "sqlite_temp_schema".to_string(),
                _ => t.name.to_string(),
            };
            // The schema table is asked for by its old name, as it is kept.
            if c.value.is_some_and(|n| !n.eq_ignore_ascii_case(&t.name)) {
                continue;
            }
            let kind = if t.is_view() {
                "view"
            } else if t.is_virtual() {
                "virtual"
            } else if iolite_plan::bind::shadow_of(s, &c.inner().registry.borrow(), &t.name).is_some() {
                "shadow"
            } else {
                "table"
            };
            let ncol = if t.is_view() || t.is_virtual() {
                match crate::describe::columns(c.conn, Some(&s.name), &t.name) {
                    Ok(v) => v.len(),
                    // A view that names its columns has them, unless what it reads is missing.
                    Err(e) => match &t.kind {
                        TableKind::View { names, .. } if !e.message().starts_with("no such") => names.len(),
                        _ => 0,
                    },
                }
            } else {
                t.columns.len()
            };
            out.push(vec![
                text(&s.name)?,
                text(&shown)?,
                text(kind)?,
                Value::Int(ncol as i64),
                Value::Int((!t.has_rowid() && !t.is_view() && !t.is_virtual()) as i64),
                Value::Int(t.strict as i64),
            ]);
        }
    }
    Ok(out)
}
