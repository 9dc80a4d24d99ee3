//! RENAME TABLE and RENAME COLUMN: the places where a name stands, in all definitions, are rewritten.

use super::Job;
use super::definitions::{Quotes, SchemaRow, bind_definition, forgives, schema_rows, single_quotes};
use super::text::{Edit, apply};
use crate::connection::Connection;
use iolite_base::Result;
use iolite_catalog::Table;
use iolite_sql::ast::{self, ColumnConstraintKind, Name, Quote, Stmt, TriggerEvent};
use iolite_sql::print::{quote_name, quote_text};
use std::rc::Rc;

/// The new name as it is written in place of one that was written so: bare where both are.
fn written(new: &Name, quote: Quote) -> String {
    let plain = quote == Quote::None && new.quote == Quote::None;
    let new = &*new.text;
    if plain && quote_name(new) == new {
        new.to_string()
    } else {
        format!("\"{}\"", new.replace('"', "\"\""))
    }
}

fn foreign_targets(t: &ast::CreateTable) -> Vec<&Name> {
    let ast::CreateTableBody::Columns { columns, constraints, .. } = &t.body else { return Vec::new() };
    let own = columns.iter().flat_map(|c| &c.constraints).filter_map(|k| match &k.kind {
        ColumnConstraintKind::References(f) => Some(&f.table),
        _ => None,
    });
    let others = constraints.iter().filter_map(|k| match &k.kind {
        ast::TableConstraintKind::ForeignKey { target, .. } => Some(&target.table),
        _ => None,
    });
    own.chain(others).collect()
}

impl Job {
    /// The definitions in a database that may name the table: those of temp only if they are views or triggers, where it is not there.
    fn rows_that_refer(&self, c: &Connection, db: usize) -> Result<Vec<SchemaRow>> {
        let mut rows = schema_rows(c, db)?;
        rows.retain(|r| db == self.db || matches!(&*r.kind, "view" | "trigger"));
        Ok(rows)
    }

    /// Whether a row of a database defines a trigger on the table.
    fn is_own_trigger(&self, c: &Connection, db: usize, row: &SchemaRow) -> bool {
        let triggers = c.0.catalog.borrow().triggers_of(self.db, &self.table);
        row.kind == "trigger"
            && triggers.iter().any(|(d, t)| *d == db && t.name.eq_ignore_ascii_case(&row.name))
    }

    pub(super) fn rename_column(&self, c: &Connection, i: usize, new: &Name) -> Result<()> {
        let old = self.table.columns[i].name.clone();
        let same = |t: &Rc<Table>| Rc::ptr_eq(t, &self.table);
        for db in [self.db, 1] {
            let mut changes = Vec::new();
            for row in self.rows_that_refer(c, db)? {
                let (uses, quoted) = match bind_definition(c, db, &row, Quotes::Texts) {
                    Err(_) if forgives(c) => continue,
                    Err(e) => return Err(row.complaint("", &e)),
                    Ok(bound) => bound,
                };
                let mut edits = single_quotes(&row.sql, quoted);
                let renamed = uses
                    .iter()
                    .filter(|u| u.column == Some(i) && same(&u.table))
                    .map(|u| (u.span, written(new, u.quote)));
                edits.extend(renamed);
                self.definition_columns(&row, self.is_own_trigger(c, db, &row), (&old, new), &mut edits)?;
                if !edits.is_empty() {
                    changes.push((row.rowid, apply(&row.sql, edits)));
                }
            }
            self.store(c, db, changes)?;
            if self.db == 1 {
                break;
            }
        }
        self.settle(c, "after rename", Quotes::Names)
    }

    /// Places where a column is named by the definition itself: its own, keys, foreign keys, UPDATE OF.
    fn definition_columns(
        &self,
        row: &SchemaRow,
        own_trigger: bool,
        (old, new): (&str, &Name),
        edits: &mut Vec<Edit>,
    ) -> Result<()> {
        let mut hit = |n: &Name| {
            if n.text.eq_ignore_ascii_case(old) {
                edits.push((n.span, written(new, n.quote)));
            }
        };
        let parsed = iolite_sql::parse_stmt(&row.sql)?;
        match &parsed.stmt {
            Stmt::CreateTable(t) => {
                let own = t.name.name.text.eq_ignore_ascii_case(&self.table.name);
                let ast::CreateTableBody::Columns { columns, constraints, .. } = &t.body else {
                    return Ok(());
                };
                let target = |f: &ast::ForeignKeyTarget, hit: &mut dyn FnMut(&Name)| {
                    if f.table.text.eq_ignore_ascii_case(&self.table.name) {
                        f.columns.iter().for_each(hit);
                    }
                };
                for col in columns {
                    if own {
                        hit(&col.name);
                    }
                    for k in &col.constraints {
                        if let ColumnConstraintKind::References(f) = &k.kind {
                            target(f, &mut hit);
                        }
                    }
                }
                for k in constraints {
                    match &k.kind {
                        ast::TableConstraintKind::ForeignKey { columns, target: f } => {
                            if own {
                                columns.iter().for_each(&mut hit);
                            }
                            target(f, &mut hit);
                        }
                        ast::TableConstraintKind::PrimaryKey { columns, .. }
                        | ast::TableConstraintKind::Unique { columns, .. }
                            if own =>
                        {
                            for term in columns {
                                let mut e = &term.expr;
                                while let ast::Expr::Collate(inner, _) = e {
                                    e = inner;
                                }
                                if let ast::Expr::Column { column, .. } = e {
                                    hit(column);
                                }
                            }
                        }
                        _ => {}
                    }
                }
            }
            Stmt::CreateTrigger(t) if own_trigger => {
                if let TriggerEvent::Update(of) = &t.event {
                    of.iter().for_each(&mut hit);
                }
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn rename_table(&self, c: &Connection, new: &Name) -> Result<()> {
        let old = self.table.name.clone();
        let same = |t: &Rc<Table>| Rc::ptr_eq(t, &self.table);
        for db in [self.db, 1] {
            let (mut changes, mut triggers) = (Vec::new(), Vec::new());
            for row in self.rows_that_refer(c, db)? {
                let legacy = c.0.settings.legacy_alter_table();
                let uses = match bind_definition(c, db, &row, Quotes::Texts) {
                    _ if legacy => Vec::new(),
                    Err(_) if forgives(c) => Vec::new(),
                    Ok((u, _)) => u,
                    Err(e) => return Err(row.complaint("", &e)),
                };
                let mut edits: Vec<Edit> = uses
                    .iter()
                    .filter(|u| u.column.is_none() && same(&u.table))
                    .map(|u| (u.span, format!("\"{}\"", new.text.replace('"', "\"\""))))
                    .collect();
                let mut hit = |n: &Name| {
                    if n.text.eq_ignore_ascii_case(&old) {
                        // Names of tables are always written in quotes.
                        edits.push((n.span, format!("\"{}\"", new.text.replace('"', "\"\""))));
                    }
                };
                match &iolite_sql::parse_stmt(&row.sql)?.stmt {
                    Stmt::CreateTable(t) => {
                        hit(&t.name.name);
                        if !legacy || c.0.settings.foreign_keys() {
                            foreign_targets(t).into_iter().for_each(&mut hit);
                        }
                    }
                    Stmt::CreateVirtualTable(t) => hit(&t.name.name),
                    Stmt::CreateIndex(i) => hit(&i.table),
                    Stmt::CreateTrigger(t) if self.is_own_trigger(c, db, &row) => {
                        hit(&t.table.name);
                        triggers.push(row.rowid);
                    }
                    _ => {}
                }
                if !edits.is_empty() {
                    changes.push((row.rowid, apply(&row.sql, edits)));
                }
            }
            self.store(c, db, changes)?;
            let schema = quote_name(&c.0.catalog.borrow().schemas[db].name).into_owned();
            let (q_old, q_new) = (quote_text(&old), quote_text(&new.text));
            if db == self.db {
                c.exec_nested(
                    &format!(
                        "UPDATE {schema}.sqlite_master SET tbl_name={q_new}, name=CASE WHEN type='table' THEN {q_new} \
                         WHEN name LIKE 'sqliteX_autoindex%' ESCAPE 'X' AND type='index' THEN 'sqlite_autoindex_' || {q_new} || substr(name,{}) \
                         ELSE name END WHERE tbl_name={q_old} COLLATE nocase AND (type='table' OR type='index' OR type='trigger')",
                        old.chars().count() + 18
                    ),
                )?;
                if c.0.catalog.borrow().schemas[db].table("sqlite_sequence").is_some() {
                    c.exec_nested(&format!(
                        "UPDATE {schema}.sqlite_sequence SET name={q_new} WHERE name={q_old}"
                    ))?;
                }
            } else {
                for rowid in triggers {
                    let sql =
                        format!("UPDATE {schema}.sqlite_master SET tbl_name={q_new} WHERE rowid={rowid}");
                    c.exec_nested(&sql)?;
                }
            }
            if self.db == 1 {
                break;
            }
        }
        if self.table.is_virtual() {
            c.0.rename_virtual(self.db, &self.table, &new.text)?;
        }
        if c.0.settings.legacy_alter_table() {
            // Views and triggers are left as they are, whatever they mean now.
            return self.reload(c);
        }
        self.settle(c, "after rename", Quotes::Texts)
    }
}
