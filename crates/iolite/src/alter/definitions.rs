//! The definitions of a schema: read from its table, and bound, so that it is known where each name stands.

use super::text::{Edit, unquoted};
use crate::binding::with_env;
use crate::connection::Connection;
use iolite_base::{Error, Result};
use iolite_plan::bind::{Binder, Env, NameUse, Restriction, TriggerScope};
use iolite_sql::ast::{self, ColumnConstraintKind, Span, Stmt, TriggerEvent};
use iolite_sql::print::{quote_name, quote_text};
use iolite_value::Value;

/// A row of the schema table that has a text.
pub(super) struct SchemaRow {
    pub rowid: i64,
    pub kind: String,
    pub name: String,
    pub table: String,
    pub sql: String,
}

impl SchemaRow {
    pub fn table_is(&self, name: &str) -> bool {
        self.table.eq_ignore_ascii_case(name)
    }

    /// What is wrong with it; `what`: since when, or nothing.
    pub fn complaint(&self, what: &str, e: &Error) -> Error {
        let space = if what.is_empty() { "" } else { " " };
        Error::sql(format!("error in {} {}{space}{what}: {}", self.kind, self.name, e.message()))
    }
}

pub(super) fn schema_rows(c: &Connection, db: usize) -> Result<Vec<SchemaRow>> {
    rows_where(c, db, "", &[])
}

/// Those of a table, its indexes and its triggers.
pub(super) fn schema_rows_of(c: &Connection, db: usize, table: &str) -> Result<Vec<SchemaRow>> {
    let name = Value::text(iolite_base::raw_text::decode(table))?;
    rows_where(c, db, " AND tbl_name=?1 COLLATE NOCASE", &[name])
}

fn rows_where(c: &Connection, db: usize, wanted: &str, params: &[Value]) -> Result<Vec<SchemaRow>> {
    if c.0.btree_if_open(db).is_none() {
        return Ok(Vec::new());
    }
    let schema = quote_name(&c.0.catalog.borrow().schemas[db].name).into_owned();
    let sql = format!(
        "SELECT rowid,type,name,tbl_name,sql FROM {schema}.sqlite_master WHERE sql IS NOT NULL{wanted}"
    );
    let rows = c.nested_rows(&sql, params)?;
    Ok(rows
        .into_iter()
        .map(|r| SchemaRow {
            rowid: r[0].to_int(),
            kind: r[1].to_string_lossy(),
            name: r[2].text_carried().into_owned(),
            table: r[3].text_carried().into_owned(),
            sql: r[4].text_carried().into_owned(),
        })
        .collect())
}

/// Edits that write texts in double quotes with single ones.
pub(super) fn single_quotes(sql: &str, quoted: Vec<Span>) -> Vec<Edit> {
    let single = |s: Span| {
        // A quote behind it would become part of it.
        let space = if sql[s.end as usize..].starts_with('\'') { " " } else { "" };
        (s, format!("{}{space}", quote_text(&unquoted(s.of(sql)))))
    };
    quoted.into_iter().map(single).collect()
}

/// What words in double quotes are that name nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    /// Texts, where the connection has them so.
    Texts,
    /// Names: all texts have got single quotes, and what has none named a column that is gone.
    Names,
}

/// Whether what is wrong with the schema does not matter: who may write into it may have written anything.
pub(super) fn forgives(c: &Connection) -> bool {
    c.0.settings.writable_schema() && !c.0.settings.defensive()
}

/// Binds a definition, and answers where names of tables and columns stand in it, and texts in double quotes.
pub(super) fn bind_definition(
    c: &Connection,
    db: usize,
    row: &SchemaRow,
    quotes: Quotes,
) -> Result<(Vec<NameUse>, Vec<Span>)> {
    let parsed = iolite_sql::parse_stmt(&row.sql)?;
    with_env(c, |env| {
        let env = &Env { quoted_strings: env.quoted_strings && quotes == Quotes::Texts, ..*env };
        let mut b = Binder::new(env, &row.sql);
        b.log = Some(Vec::new());
        match &parsed.stmt {
            Stmt::CreateView(v) => b.view_query(db, &row.name, &v.select)?,
            Stmt::CreateIndex(i) => {
                if let Some(t) = env.catalog.schemas[db].table(&i.table.text).cloned() {
                    for term in &i.columns {
                        b.table_expr(&t, 0, &term.expr)?;
                    }
                    if let Some(f) = &i.filter {
                        b.table_expr(&t, 0, f)?;
                    }
                }
            }
            Stmt::CreateTable(def) => {
                if let (Some(t), ast::CreateTableBody::Columns { columns, constraints, .. }) =
                    (env.catalog.schemas[db].table(&def.name.name.text).cloned(), &def.body)
                {
                    for col in columns {
                        for k in &col.constraints {
                            match &k.kind {
                                ColumnConstraintKind::Check(e, _) => {
                                    b.restricted_expr(&t, 0, e, Restriction::Check)?;
                                }
                                ColumnConstraintKind::Generated { expr: e, .. } => {
                                    b.restricted_expr(&t, 0, e, Restriction::Generated)?;
                                }
                                _ => {}
                            }
                        }
                    }
                    for k in constraints {
                        if let ast::TableConstraintKind::Check { expr, .. } = &k.kind {
                            b.restricted_expr(&t, 0, expr, Restriction::Check)?;
                        }
                    }
                }
            }
            Stmt::CreateTrigger(tr) => {
                let on = tr.table.schema.as_ref().map(|s| &*s.text);
                let found = match on {
                    Some(s) => env.catalog.table(Some(s), &tr.table.name.text),
                    None => env.catalog.schemas[db]
                        .table(&tr.table.name.text)
                        .map(|t| (db, t.clone()))
                        .or_else(|| env.catalog.table(None, &tr.table.name.text)),
                };
                let Some((table_db, t)) = found else {
                    return Err(Error::sql(format!("no such table: main.{}", tr.table.name.text)));
                };
                // What a view's own text names belongs to the view.
                let rows = Binder::new(env, &row.sql).trigger_rows(table_db, &t)?;
                b.trigger = Some(TriggerScope {
                    table: rows,
                    old: !matches!(tr.event, TriggerEvent::Insert),
                    new: !matches!(tr.event, TriggerEvent::Delete),
                    db,
                    table_db,
                });
                if let Some(w) = &tr.when {
                    b.expr(w)?;
                }
                for (stmt, _) in &tr.body {
                    match stmt {
                        Stmt::Select(s) => drop(b.select(s)?),
                        Stmt::Insert(s) => drop(b.insert(s)?),
                        Stmt::Update(s) => drop(b.update(s)?),
                        Stmt::Delete(s) => drop(b.delete(s)?),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        Ok((b.log.take().unwrap_or_default(), b.quoted))
    })
}
