//! ALTER TABLE (documentation page `lang_altertable`).
//!
//! The schema keeps definitions as texts, so a change of the schema is a change of texts: definitions are parsed, names
//! are looked up by the binder, which notes where each stands, and just those places are rewritten. After a change of names or columns
//! every definition is read and bound again; one that no longer makes sense undoes the whole statement.

mod columns;
mod constraints;
mod definitions;
mod rename;
mod text;

use crate::binding::with_env;
use crate::connection::Connection;
use crate::work::work_program;
use definitions::{Quotes, SchemaRow, bind_definition, forgives, schema_rows, schema_rows_of};
use iolite_base::{Code, Error, Result};
use iolite_btree::TxnState;
use iolite_bytecode::Program;
use iolite_catalog::Table;
use iolite_plan::bind::{Binder, Env, Restriction};
use iolite_sql::ast::{self, AlterAction, AlterTable, Name, Stmt};
use iolite_sql::print::quote_name;
use iolite_value::Value;
use std::rc::Rc;

/// Compiles ALTER TABLE.
pub(crate) fn compile(conn: &Connection, a: &AlterTable, text: &str) -> Result<Program> {
    let schema = a.table.schema.as_ref().map(|s| &*s.text);
    let name = &*a.table.name.text;
    let found = conn.0.catalog.borrow().table(schema, name);
    let Some((db, t)) = found else {
        let shown = schema.map_or(name.to_string(), |s| format!("{s}.{name}"));
        return Err(Error::sql(format!("no such table: {shown}")));
    };
    with_env(conn, |env| check_alterable(env, db, &t, &a.action))?;
    let job = Job { db, table: t.clone(), action: a.action.clone(), text: text.to_string() };
    job.check(conn)?;
    work_program(conn, &[], Rc::new(move |c| job.run(c).map(|()| Vec::new())), &[db])
}

fn check_alterable(env: &Env<'_>, db: usize, t: &Table, action: &AlterAction) -> Result<()> {
    let name = &t.name;
    let system = t.root.get() == 1 || name.to_ascii_lowercase().starts_with("sqlite_");
    if system || env.is_protected(db, t) {
        return Err(Error::sql(format!("table {name} may not be altered")));
    }
    if t.is_view() {
        return Err(Error::sql(match action {
            AlterAction::RenameTable(_) => format!("view {name} may not be altered"),
            AlterAction::RenameColumn(..) => format!("cannot rename columns of view \"{name}\""),
            AlterAction::AddColumn(_) => "Cannot add a column to a view".to_string(),
            AlterAction::DropColumn(_) => format!("cannot drop column from view \"{name}\""),
            _ => format!("cannot edit constraints of view \"{name}\""),
        }));
    }
    if let AlterAction::RenameTable(new) = action
        && env.is_protected_name(&new.text)
    {
        return Err(Error::sql(format!("object name reserved for internal use: {}", new.text)));
    }
    if t.is_virtual() && !matches!(action, AlterAction::RenameTable(_)) {
        return Err(Error::sql(match action {
            AlterAction::AddColumn(_) => "virtual tables may not be altered".to_string(),
            AlterAction::RenameColumn(..) => format!("cannot rename columns of virtual table \"{name}\""),
            AlterAction::DropColumn(_) => format!("cannot drop column from virtual table \"{name}\""),
            _ => format!("cannot edit constraints of virtual table \"{name}\""),
        }));
    }
    Ok(())
}

struct Job {
    db: usize,
    table: Rc<Table>,
    action: AlterAction,
    /// The statement's text.
    text: String,
}

impl Job {
    fn column(&self, n: &Name) -> Result<usize> {
        let missing =
            || Error::sql(format!("no such column: \"{}\"", n.span.of(&self.text))).at(n.span.start);
        self.table.column(&n.text).ok_or_else(missing)
    }

    fn schema_name(&self, c: &Connection) -> String {
        quote_name(&c.0.catalog.borrow().schemas[self.db].name).into_owned()
    }

    fn sql(&self) -> Result<String> {
        self.table.sql.as_ref().map(|s| s.to_string()).ok_or_else(|| Code::Corrupt.into())
    }

    fn definition(&self) -> Result<(String, Box<ast::CreateTable>)> {
        let sql = self.sql()?;
        match iolite_sql::parse_stmt(&sql)?.stmt {
            Stmt::CreateTable(c) => Ok((sql, c)),
            _ => Err(Code::Corrupt.into()),
        }
    }

    /// Complaints that need no look at the data.
    fn check(&self, c: &Connection) -> Result<()> {
        match &self.action {
            AlterAction::RenameTable(new) => {
                let schema = c.0.catalog.borrow().schemas[self.db].clone();
                if schema.table(&new.text).is_some() || schema.index(&new.text).is_some() {
                    return Err(Error::sql(format!(
                        "there is already another table or index with this name: {}",
                        new.text
                    )));
                }
                if new.text.len() >= 7 && new.text.as_bytes()[..7].eq_ignore_ascii_case(b"sqlite_") {
                    return Err(Error::sql(format!("object name reserved for internal use: {}", new.text)));
                }
            }
            AlterAction::RenameColumn(old, new) => {
                let i = self.column(old)?;
                if self.table.column(&new.text).is_some_and(|k| k != i) {
                    return Err(Error::sql(format!(
                        "error in table {} after rename: duplicate column name: {}",
                        self.table.name, new.text
                    )));
                }
            }
            AlterAction::DropColumn(n) => {
                let i = self.column(n)?;
                let col = &self.table.columns[i];
                if col.pk > 0 {
                    return Err(Error::sql(format!("cannot drop PRIMARY KEY column: \"{}\"", n.text)));
                }
                if col.unique {
                    return Err(Error::sql(format!("cannot drop UNIQUE column: \"{}\"", n.text)));
                }
                if self.table.columns.len() <= 1 {
                    return Err(Error::sql(format!(
                        "cannot drop column \"{}\": no other columns exist",
                        n.text
                    )));
                }
            }
            AlterAction::AddColumn(def) => self.check_new_column(c, def)?,
            AlterAction::DropNotNull(n) | AlterAction::SetNotNull { column: n, .. } => {
                if self.table.column(&n.text).is_none() {
                    return Err(Error::sql(format!("no such column: {}", n.text)));
                }
            }
            AlterAction::AddCheck { expr, .. } => with_env(c, |env| {
                Binder::new(env, &self.text)
                    .restricted_expr(&self.table, 0, expr, Restriction::Check)
                    .map(|_| ())
            })?,
            AlterAction::DropConstraint(_) => {}
        }
        Ok(())
    }

    fn run(&self, c: &Connection) -> Result<()> {
        match &self.action {
            AlterAction::RenameTable(new) => self.rename_table(c, new),
            AlterAction::RenameColumn(old, new) => self.rename_column(c, self.column(old)?, new),
            AlterAction::AddColumn(def) => self.add_column(c, def),
            AlterAction::DropColumn(n) => self.drop_column(c, self.column(n)?),
            AlterAction::DropConstraint(n) => self.drop_constraint(c, n),
            AlterAction::DropNotNull(n) => self.drop_not_null(c, self.column(n)?),
            AlterAction::SetNotNull { column, span, .. } => self.set_not_null(c, self.column(column)?, *span),
            AlterAction::AddCheck { name, expr, span, .. } => self.add_check(c, name.as_ref(), expr, *span),
        }
    }

    /// Stores new texts, and reads the schema anew.
    fn store(&self, c: &Connection, db: usize, changes: Vec<(i64, String)>) -> Result<()> {
        let schema = quote_name(&c.0.catalog.borrow().schemas[db].name).into_owned();
        for (rowid, sql) in changes {
            let text = format!("UPDATE {schema}.sqlite_master SET sql=?1 WHERE rowid=?2");
            c.nested_rows(&text, &[Value::text(iolite_base::raw_text::decode(&sql))?, Value::Int(rowid)])?;
        }
        Ok(())
    }

    /// Makes the change known, and binds every definition again.
    fn settle(&self, c: &Connection, what: &str, quotes: Quotes) -> Result<()> {
        let since = if what == "after rename" { "" } else { what };
        self.reload_indexes(c, since)?;
        self.verify(c, what, quotes, |_| true)
    }

    /// As [`Job::reload`], where a text in double quotes that an index is on has become a column that is not there.
    fn reload_indexes(&self, c: &Connection, since: &str) -> Result<()> {
        self.reload(c).map_err(|e| {
            let Some(rest) = e.message().strip_prefix("malformed database schema (") else { return e };
            let Some((index, wrong)) = rest.split_once(") - ") else { return e };
            let space = if since.is_empty() { "" } else { " " };
            Error::sql(format!("error in index {index}{space}{since}: {wrong}"))
        })
    }

    /// Makes the change known: cookies, by which a rollback is noticed, and catalog.
    fn reload(&self, c: &Connection) -> Result<()> {
        let renew = |db: usize| {
            let b = c.0.btree_of(db)?;
            b.set_meta(1, b.meta(1)?.wrapping_add(1))?;
            c.0.forget_schema(db);
            c.0.load_schema(db)
        };
        renew(self.db)?;
        match c.0.btree_if_open(1).filter(|_| self.db != 1) {
            // Texts of temporary views and triggers may have changed, too.
            Some(temp) if temp.txn_state() == TxnState::Write => renew(1),
            Some(_) => c.0.load_schema(1),
            None => Ok(()),
        }
    }

    /// Binds views, triggers and what tables carry, of those that are `asked` for; the first complaint names its object.
    fn verify(
        &self,
        c: &Connection,
        what: &str,
        quotes: Quotes,
        asked: impl Fn(&SchemaRow) -> bool,
    ) -> Result<()> {
        if forgives(c) {
            return Ok(());
        }
        let holds_statements = |row: &SchemaRow| matches!(&*row.kind, "view" | "trigger");
        let bound = |row: &SchemaRow| !(holds_statements(row) && c.0.settings.legacy_alter_table());
        for db in [self.db, 1] {
            for row in schema_rows(c, db)?.into_iter().filter(bound).filter(&asked) {
                // As with stock, statements keep theirs, whatever they were.
                let quotes = if holds_statements(&row) { Quotes::Texts } else { quotes };
                if let Err(e) = bind_definition(c, db, &row, quotes) {
                    return Err(row.complaint(what, &e));
                }
            }
            if self.db == 1 {
                break;
            }
        }
        Ok(())
    }

    fn own_row(&self, c: &Connection) -> Result<i64> {
        let rows = schema_rows_of(c, self.db, &self.table.name)?;
        let own = rows.iter().find(|r| r.kind == "table" && r.name.eq_ignore_ascii_case(&self.table.name));
        own.map(|r| r.rowid).ok_or_else(|| Code::Corrupt.into())
    }
}
