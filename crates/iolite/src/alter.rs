//! ALTER TABLE (documentation page `lang_altertable`).
//!
//! The schema keeps definitions as texts, so a change of the schema is a change of texts: definitions are parsed, names
//! are looked up by the binder, which notes where each stands, and just those places are rewritten. After a change of names or columns
//! every definition is read and bound again; one that no longer makes sense undoes the whole statement.

use crate::connection::Connection;
use crate::control::work_program;
use crate::run::{exec_nested, nested_rows, with_env};
use iolite_base::{Code, Error, Result};
use iolite_btree::{InsertAt, TreeKind};
use iolite_bytecode::Program;
use iolite_catalog::Table;
use iolite_plan::bind::{Binder, Env, NameUse, Restriction, TriggerScope};
use iolite_sql::ast::{
    self, AlterAction, AlterTable, ColumnConstraintKind, Name, Quote, Span, Stmt, TriggerEvent,
};
use iolite_sql::lexer::Lexer;
use iolite_sql::print::{expr as print_expr, quote_name, quote_text};
use iolite_sql::token::T;
use iolite_value::{Value, record};
use std::cmp::Ordering;
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
            _ => "virtual tables may not be altered".to_string(),
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

/// A replacement in a text.
type Edit = (Span, String);

fn apply(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|e| e.0.start);
    edits.dedup_by_key(|e| e.0.start);
    let mut out = String::with_capacity(text.len() + 16);
    let mut at = 0;
    for (span, new) in edits {
        // Those that are cut out one behind the other share what lies between them.
        out.push_str(&text[at..(span.start as usize).max(at)]);
        out.push_str(&new);
        at = at.max(span.end as usize);
    }
    out.push_str(&text[at..]);
    out
}

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
            AlterAction::AddColumn(def) => self.check_new_column(def)?,
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

    fn check_new_column(&self, def: &ast::ColumnDef) -> Result<()> {
        if self.table.column(&def.name.text).is_some() {
            return Err(Error::sql(format!("duplicate column name: {}", def.name.text)));
        }
        let has = |f: &dyn Fn(&ColumnConstraintKind) -> bool| def.constraints.iter().any(|c| f(&c.kind));
        if has(&|k| matches!(k, ColumnConstraintKind::PrimaryKey { .. })) {
            return Err(Error::sql("Cannot add a PRIMARY KEY column"));
        }
        if has(&|k| matches!(k, ColumnConstraintKind::Unique(_))) {
            return Err(Error::sql("Cannot add a UNIQUE column"));
        }
        if has(&|k| matches!(k, ColumnConstraintKind::Generated { stored: true, .. })) {
            return Err(Error::sql("cannot add a STORED column"));
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
            nested_rows(
                &c.0,
                &text,
                &[Value::text(iolite_base::raw_text::decode(&sql))?, Value::Int(rowid)],
            )?;
        }
        Ok(())
    }

    /// Makes the change known, and binds every definition again.
    fn settle(&self, c: &Connection, what: &str) -> Result<()> {
        self.reload(c)?;
        self.verify(c, what, |_| true)
    }

    /// Makes the change known: cookie and catalog.
    fn reload(&self, c: &Connection) -> Result<()> {
        let b = c.0.btree_of(self.db)?;
        let cookie = b.meta(1)?.wrapping_add(1);
        b.set_meta(1, cookie)?;
        c.0.load_schema(self.db)?;
        if c.0.btree_if_open(1).is_some() && self.db != 1 {
            c.0.load_schema(1)?;
        }
        Ok(())
    }

    /// Binds views, triggers and what tables carry, of those that are `asked` for; the first complaint names its object.
    fn verify(&self, c: &Connection, what: &str, asked: impl Fn(&SchemaRow) -> bool) -> Result<()> {
        for db in [self.db, 1] {
            for row in schema_rows(c, db)?.into_iter().filter(&asked) {
                if let Err(e) = bind_definition(c, db, &row) {
                    let space = if what.is_empty() { "" } else { " " };
                    let (kind, name) = (&row.kind, &row.name);
                    return Err(Error::sql(format!("error in {kind} {name}{space}{what}: {}", e.message())));
                }
            }
            if self.db == 1 {
                break;
            }
        }
        Ok(())
    }

    fn rename_column(&self, c: &Connection, i: usize, new: &Name) -> Result<()> {
        let old = self.table.columns[i].name.clone();
        let same = |t: &Rc<Table>| Rc::ptr_eq(t, &self.table);
        for db in [self.db, 1] {
            let mut changes = Vec::new();
            for row in schema_rows(c, db)? {
                let (uses, quoted) = bind_definition(c, db, &row).map_err(|e| {
                    Error::sql(format!("error in {} {}: {}", row.kind, row.name, e.message()))
                })?;
                let mut edits = single_quotes(&row.sql, quoted);
                let renamed = uses
                    .iter()
                    .filter(|u| u.column == Some(i) && same(&u.table))
                    .map(|u| (u.span, written(new, u.quote)));
                edits.extend(renamed);
                self.definition_columns(&row, &old, new, &mut edits)?;
                if !edits.is_empty() {
                    changes.push((row.rowid, apply(&row.sql, edits)));
                }
            }
            self.store(c, db, changes)?;
            if self.db == 1 {
                break;
            }
        }
        self.settle(c, "after rename")
    }

    /// Places where a column is named by the definition itself: its own, keys, foreign keys, UPDATE OF.
    fn definition_columns(
        &self,
        row: &SchemaRow,
        old: &str,
        new: &Name,
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
            Stmt::CreateTrigger(t) if t.table.name.text.eq_ignore_ascii_case(&self.table.name) => {
                if let TriggerEvent::Update(of) = &t.event {
                    of.iter().for_each(&mut hit);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn rename_table(&self, c: &Connection, new: &Name) -> Result<()> {
        let old = self.table.name.clone();
        let same = |t: &Rc<Table>| Rc::ptr_eq(t, &self.table);
        for db in [self.db, 1] {
            let mut changes = Vec::new();
            for row in schema_rows(c, db)? {
                let legacy = c.0.settings.legacy_alter_table();
                let uses = match bind_definition(c, db, &row) {
                    _ if legacy => Vec::new(),
                    Ok((u, _)) => u,
                    Err(e) => {
                        return Err(Error::sql(format!(
                            "error in {} {}: {}",
                            row.kind,
                            row.name,
                            e.message()
                        )));
                    }
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
                        if db == self.db {
                            hit(&t.name.name);
                        }
                        if !legacy || c.0.settings.foreign_keys() {
                            foreign_targets(t).into_iter().for_each(&mut hit);
                        }
                    }
                    Stmt::CreateVirtualTable(t) if db == self.db => hit(&t.name.name),
                    Stmt::CreateIndex(i) if db == self.db => hit(&i.table),
                    Stmt::CreateTrigger(t) if row.table_is(&old) => hit(&t.table.name),
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
                exec_nested(
                    &c.0,
                    &format!(
                        "UPDATE {schema}.sqlite_master SET tbl_name={q_new}, name=CASE WHEN type='table' THEN {q_new} \
                         WHEN name LIKE 'sqliteX_autoindex%' ESCAPE 'X' AND type='index' THEN 'sqlite_autoindex_' || {q_new} || substr(name,{}) \
                         ELSE name END WHERE tbl_name={q_old} COLLATE nocase AND (type='table' OR type='index' OR type='trigger')",
                        old.chars().count() + 18
                    ),
                )?;
                if c.0.catalog.borrow().schemas[db].table("sqlite_sequence").is_some() {
                    exec_nested(
                        &c.0,
                        &format!("UPDATE {schema}.sqlite_sequence SET name={q_new} WHERE name={q_old}"),
                    )?;
                }
            } else {
                exec_nested(
                    &c.0,
                    &format!(
                        "UPDATE {schema}.sqlite_master SET tbl_name={q_new} WHERE tbl_name={q_old} COLLATE nocase AND type='trigger'"
                    ),
                )?;
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
        self.settle(c, "after rename")
    }

    fn own_row(&self, c: &Connection) -> Result<i64> {
        let rows = schema_rows(c, self.db)?;
        let own = rows.iter().find(|r| r.kind == "table" && r.name.eq_ignore_ascii_case(&self.table.name));
        own.map(|r| r.rowid).ok_or_else(|| Code::Corrupt.into())
    }

    fn add_column(&self, c: &Connection, def: &ast::ColumnDef) -> Result<()> {
        let (sql, create) = self.definition()?;
        let ast::CreateTableBody::Columns { columns, .. } = &create.body else {
            return Err(Code::Corrupt.into());
        };
        // Before what ends the columns, behind blanks and comments.
        let end = columns.last().map_or(0, |d| d.span.end);
        let end = end + blanks(&sql[end as usize..]) as u32;
        // All up to the end of the statement, comments too.
        let next = Lexer::new(self.text.as_bytes(), def.span.end as usize).token();
        let stop = if next.kind == T::Semi { next.start } else { self.text.len() as u32 };
        let text = Span { start: def.span.start, end: stop }
            .of(&self.text)
            .trim_end_matches([' ', '\n', '\t', '\r']);
        let new = apply(&sql, vec![(Span { start: end, end }, format!(", {text}"))]);
        // Is it a good definition at all?
        let complaint = |e: Error| {
            Error::sql(format!("error in table {} after add column: {}", self.table.name, e.message()))
        };
        let parsed = iolite_sql::parse_stmt(&new).map_err(complaint)?;
        if let Stmt::CreateTable(t) = &parsed.stmt {
            iolite_catalog::table_from_ast(t, &new, 2).map_err(complaint)?;
        }
        self.check_default(c, def)?;
        self.store(c, self.db, vec![(self.own_row(c)?, new)])?;
        let b = c.0.btree_of(self.db)?;
        if b.meta(2)? < 3 {
            b.set_meta(2, 3)?;
        }
        self.reload(c)?;
        self.verify(c, "after add column", |row| row.kind == "table" && row.table_is(&self.table.name))?;
        // Rows that exist must satisfy the new column's constraints.
        let table = format!("{}.{}", self.schema_name(c), quote_name(&self.table.name));
        for k in &def.constraints {
            let (cond, message) = match &k.kind {
                ColumnConstraintKind::Check(e, _) => {
                    (format!("NOT ({})", print_expr(e)), "CHECK constraint failed")
                }
                ColumnConstraintKind::NotNull(_) if is_generated(def) => {
                    (format!("{} IS NULL", quote_name(&def.name.text)), "NOT NULL constraint failed")
                }
                _ => continue,
            };
            let rows = nested_rows(&c.0, &format!("SELECT 1 FROM {table} WHERE {cond} LIMIT 1"), &[])?;
            if !rows.is_empty() {
                return Err(Error::sql(message));
            }
        }
        if self.table.strict {
            self.check_strict(c, def, &table)?;
        }
        Ok(())
    }

    /// The default of a column that was added to a STRICT table must be of its type where there are rows.
    fn check_strict(&self, c: &Connection, def: &ast::ColumnDef, table: &str) -> Result<()> {
        let name = quote_name(&def.name.text);
        let rows = nested_rows(&c.0, &format!("SELECT typeof({name}) FROM {table} LIMIT 1"), &[])?;
        let Some(found) = rows.first().map(|r| r[0].to_string_lossy()) else { return Ok(()) };
        let t = def.ty.as_ref().map_or(String::new(), |t| t.text.to_ascii_lowercase());
        let wanted = if t == "int" { "integer" } else { &*t };
        if found == wanted || found == "null" || wanted == "any" {
            return Ok(());
        }
        Err(Error::sql("type mismatch on DEFAULT"))
    }

    fn check_default(&self, c: &Connection, def: &ast::ColumnDef) -> Result<()> {
        let default = def.constraints.iter().find_map(|k| match &k.kind {
            ColumnConstraintKind::Default(e, _) => Some(e),
            _ => None,
        });
        let value = match default {
            None => Some(Value::Null),
            Some(e) => literal_value(e),
        };
        let table = format!("{}.{}", self.schema_name(c), quote_name(&self.table.name));
        let has_rows = || -> Result<bool> {
            Ok(!nested_rows(&c.0, &format!("SELECT 1 FROM {table} LIMIT 1"), &[])?.is_empty())
        };
        for k in &def.constraints {
            match &k.kind {
                ColumnConstraintKind::NotNull(_)
                    if !is_generated(def) && matches!(value, Some(Value::Null)) && has_rows()? =>
                {
                    return Err(Error::sql("Cannot add a NOT NULL column with default value NULL"));
                }
                ColumnConstraintKind::References(_)
                    if c.0.settings.foreign_keys() && !matches!(value, Some(Value::Null)) && has_rows()? =>
                {
                    return Err(Error::sql("Cannot add a REFERENCES column with non-NULL default value"));
                }
                _ => {}
            }
        }
        if value.is_none() && has_rows()? {
            return Err(Error::sql("Cannot add a column with non-constant default"));
        }
        Ok(())
    }

    fn drop_column(&self, c: &Connection, i: usize) -> Result<()> {
        let (sql, create) = self.definition()?;
        let ast::CreateTableBody::Columns { columns, .. } = &create.body else {
            return Err(Code::Corrupt.into());
        };
        // A schema that makes no sense before is not changed, and texts in double quotes become plain ones.
        self.verify(c, "", |_| true)?;
        let mut own = Vec::new();
        for db in [self.db, 1] {
            let mut changes = Vec::new();
            for row in schema_rows(c, db)? {
                let (_, quoted) = bind_definition(c, db, &row)?;
                if db == self.db && row.kind == "table" && row.name.eq_ignore_ascii_case(&self.table.name) {
                    own = single_quotes(&row.sql, quoted);
                } else if !quoted.is_empty() {
                    changes.push((row.rowid, apply(&row.sql, single_quotes(&row.sql, quoted))));
                }
            }
            self.store(c, db, changes)?;
            if self.db == 1 {
                break;
            }
        }
        let span = if i + 1 < columns.len() {
            Span { start: columns[i].span.start, end: columns[i + 1].span.start }
        } else {
            // From the comma before it to what follows.
            let comma = Lexer::new(sql.as_bytes(), columns[i - 1].span.end as usize).token();
            let next = Lexer::new(sql.as_bytes(), columns[i].span.end as usize).token();
            Span { start: comma.start, end: next.start }
        };
        own.retain(|(s, _)| s.end <= span.start || s.start >= span.end);
        own.push((span, String::new()));
        let new = apply(&sql, own);
        if let Stmt::CreateTable(t) = &iolite_sql::parse_stmt(&new)?.stmt {
            iolite_catalog::table_from_ast(t, &new, 2).map_err(|e| {
                Error::sql(format!("error in table {} after drop column: {}", self.table.name, e.message()))
            })?;
        }
        let indexes = self.table.indexes.borrow().clone();
        let uses = |x: &iolite_catalog::Index| {
            x.columns[..x.key_len]
                .iter()
                .any(|k| matches!(k.source, iolite_catalog::ColumnSource::Column(c) if c == i))
        };
        if let Some(x) = indexes.iter().find(|x| uses(x)) {
            let (index, column) = (&x.name, &self.table.columns[i].name);
            return Err(Error::sql(format!(
                "error in index {index} after drop column: no such column: {column}"
            )));
        }
        let field = self.table.field_of[i];
        self.store(c, self.db, vec![(self.own_row(c)?, new)])?;
        self.settle(c, "after drop column")?;
        match field {
            Some(f) => self.remove_field(c, f),
            None => Ok(()),
        }
    }

    /// Takes a field out of every record of the table.
    fn remove_field(&self, c: &Connection, field: usize) -> Result<()> {
        let b = c.0.btree_of(self.db)?;
        let enc = c.0.encoding();
        let primary = self.table.primary_index();
        let (root, kind) = match &primary {
            Some(i) => (i.root.get(), TreeKind::Index),
            None => (self.table.root.get(), TreeKind::Table),
        };
        // Records are read from one tree while a new one grows; then the old root takes the new content.
        let temp = iolite_btree::Btree::ephemeral(c.0.vfs.clone())?;
        let new_root = temp.create_tree(kind)?;
        let mut from = b.cursor(root, kind, false)?;
        let mut to = temp.cursor(new_root, kind, true)?;
        let mut more = from.first()?;
        let real: Vec<bool> = self.real_fields(field);
        while more {
            let mut rec = iolite_base::alloc::zeroed(from.payload_len() as usize)?;
            from.read_payload(0, &mut rec)?;
            let mut values = record::decode(&rec, enc)?;
            if field < values.len() {
                values.remove(field);
            }
            let mut out = Vec::new();
            record::encode_with(&values, enc, |k| real.get(k) == Some(&true), &mut out)?;
            match kind {
                TreeKind::Table => to.insert_row(from.rowid(), &out, 0, InsertAt::Append)?,
                TreeKind::Index => {
                    to.insert_entry(&out, InsertAt::Append, &mut |_: &[u8]| Ok(Ordering::Less))?
                }
            }
            more = from.next()?;
        }
        drop(from);
        b.clear_tree(root, kind)?;
        let mut back = b.cursor(root, kind, true)?;
        let mut more = to.first()?;
        while more {
            let mut rec = iolite_base::alloc::zeroed(to.payload_len() as usize)?;
            to.read_payload(0, &mut rec)?;
            match kind {
                TreeKind::Table => back.insert_row(to.rowid(), &rec, 0, InsertAt::Append)?,
                TreeKind::Index => {
                    back.insert_entry(&rec, InsertAt::Append, &mut |_: &[u8]| Ok(Ordering::Less))?
                }
            }
            more = to.next()?;
        }
        Ok(())
    }

    /// Which fields belong to REAL columns, the dropped one left out.
    fn real_fields(&self, dropped: usize) -> Vec<bool> {
        self.table
            .storage
            .iter()
            .enumerate()
            .filter(|(f, _)| *f != dropped)
            .map(|(_, c)| self.table.columns[*c].affinity == iolite_value::Affinity::Real)
            .collect()
    }

    fn drop_constraint(&self, c: &Connection, n: &Name) -> Result<()> {
        let sql = self.sql()?;
        let new = without_constraint(&sql, &n.text)?;
        self.store(c, self.db, vec![(self.own_row(c)?, new)])?;
        self.reload(c)
    }

    fn drop_not_null(&self, c: &Connection, i: usize) -> Result<()> {
        let (sql, create) = self.definition()?;
        let ast::CreateTableBody::Columns { columns, .. } = &create.body else {
            return Err(Code::Corrupt.into());
        };
        let edits: Vec<Edit> = columns[i]
            .constraints
            .iter()
            .filter(|k| matches!(k.kind, ColumnConstraintKind::NotNull(_)))
            .map(|k| cut(&sql, k.span))
            .collect();
        if edits.is_empty() {
            return Ok(());
        }
        let new = apply(&sql, edits);
        self.store(c, self.db, vec![(self.own_row(c)?, new)])?;
        self.reload(c)
    }

    fn set_not_null(&self, c: &Connection, i: usize, span: Span) -> Result<()> {
        let (sql, create) = self.definition()?;
        let ast::CreateTableBody::Columns { columns, .. } = &create.body else {
            return Err(Code::Corrupt.into());
        };
        let name = quote_name(&self.table.columns[i].name).into_owned();
        let table = format!("{}.{}", self.schema_name(c), quote_name(&self.table.name));
        let rows = nested_rows(&c.0, &format!("SELECT 1 FROM {table} WHERE {name} IS NULL LIMIT 1"), &[])?;
        if !rows.is_empty() {
            return Err(Error::new(Code::Constraint, "constraint failed"));
        }
        let mut edits: Vec<Edit> = columns[i]
            .constraints
            .iter()
            .filter(|k| matches!(k.kind, ColumnConstraintKind::NotNull(_)))
            .map(|k| cut(&sql, k.span))
            .collect();
        let end = next_token(&sql, columns[i].span.end);
        edits.push((Span { start: end, end }, format!(" {}", span.of(&self.text).trim())));
        let new = apply(&sql, edits);
        self.store(c, self.db, vec![(self.own_row(c)?, new)])?;
        self.reload(c)
    }

    fn add_check(&self, c: &Connection, name: Option<&Name>, e: &ast::Expr, span: Span) -> Result<()> {
        let (sql, create) = self.definition()?;
        let ast::CreateTableBody::Columns { columns, constraints, .. } = &create.body else {
            return Err(Code::Corrupt.into());
        };
        if let Some(n) = name
            && without_constraint(&sql, &n.text)
                .map_or_else(|e| !e.message().starts_with("no such"), |_| true)
        {
            return Err(Error::sql(format!("constraint {} already exists", n.text)));
        }
        let table = format!("{}.{}", self.schema_name(c), quote_name(&self.table.name));
        let rows = nested_rows(
            &c.0,
            &format!("SELECT 1 FROM {table} WHERE ({}) IS NOT TRUE LIMIT 1", print_expr(e)),
            &[],
        )?;
        if !rows.is_empty() {
            return Err(Error::new(Code::Constraint, "constraint failed"));
        }
        let end = constraints.last().map(|k| k.span.end).or(columns.last().map(|d| d.span.end)).unwrap_or(0);
        let end = next_token(&sql, end);
        let text = span.of(&self.text).trim();
        let new = apply(&sql, vec![(Span { start: end, end }, format!(", {text}"))]);
        self.store(c, self.db, vec![(self.own_row(c)?, new)])?;
        self.reload(c)
    }
}

/// Where the token begins that follows: what is added stands before it, behind space and comments.
fn next_token(text: &str, end: u32) -> u32 {
    Lexer::new(text.as_bytes(), end as usize).token().start
}

/// Takes a span of a definition out, with the space and the comments around it; of two commas that meet, the first goes, too.
fn cut(text: &str, span: Span) -> Edit {
    let next = Lexer::new(text.as_bytes(), span.end as usize).token();
    let mut tokens = Lexer::new(text.as_bytes(), 0);
    let mut before = tokens.token();
    loop {
        let t = tokens.token();
        if t.start >= span.start {
            break;
        }
        before = t;
    }
    let ends = matches!(next.kind, T::Comma | T::RParen);
    let start = if ends && before.kind == T::Comma { before.start } else { before.end };
    let space = if ends || start < before.end { "" } else { " " };
    (Span { start, end: next.start.max(span.end) }, space.into())
}

/// The definition of a table without the first constraint of this name: with its body if that is CHECK or NOT NULL, or the
/// name alone where it names something that is no constraint.
fn without_constraint(sql: &str, name: &str) -> Result<String> {
    let mut tokens = Lexer::new(sql.as_bytes(), 0);
    let mut depth = 0;
    loop {
        let t = tokens.token();
        match t.kind {
            T::Eof | T::Illegal => return Err(Error::sql(format!("no such constraint: {name}"))),
            T::LParen => depth += 1,
            T::RParen => depth -= 1,
            T::Constraint if depth == 1 => {
                let own = tokens.token();
                if !unquoted(&sql[own.start as usize..own.end as usize]).eq_ignore_ascii_case(name) {
                    continue;
                }
                let mut end = own.end;
                let mut body = tokens;
                match body.token().kind {
                    T::Unique | T::Primary | T::References | T::Foreign | T::Null => {
                        return Err(Error::sql(format!("constraint may not be dropped: {name}")));
                    }
                    T::Not | T::Check => end = behind_conflict(&mut body),
                    _ => {}
                }
                return Ok(apply(sql, vec![cut(sql, Span { start: t.start, end })]));
            }
            _ => {}
        }
    }
}

/// Where a CHECK or NOT NULL ends whose first word was read: behind its parentheses or its second word, and behind
/// `ON CONFLICT`.
fn behind_conflict(body: &mut Lexer<'_>) -> u32 {
    let mut depth = 0;
    let mut end;
    loop {
        let t = body.token();
        end = t.end;
        match t.kind {
            T::LParen => depth += 1,
            T::RParen => depth -= 1,
            _ => {}
        }
        if depth <= 0 || t.kind == T::Eof {
            break;
        }
    }
    let mut more = *body;
    if more.token().kind == T::On && more.token().kind == T::Conflict {
        end = more.token().end;
    }
    end
}

/// A name as it is meant.
fn unquoted(raw: &str) -> String {
    let (open, close) = match raw.as_bytes().first() {
        Some(b'[') => ('[', ']'),
        Some(q @ (b'"' | b'\'' | b'`')) => (*q as char, *q as char),
        _ => return raw.into(),
    };
    let inner = raw.strip_prefix(open).and_then(|r| r.strip_suffix(close)).unwrap_or(raw);
    if open == '[' { inner.into() } else { inner.replace(&format!("{close}{close}"), &close.to_string()) }
}

fn is_generated(def: &ast::ColumnDef) -> bool {
    def.constraints.iter().any(|k| matches!(k.kind, ColumnConstraintKind::Generated { .. }))
}

/// A default that is a literal, perhaps signed.
fn literal_value(e: &ast::Expr) -> Option<Value> {
    match e {
        ast::Expr::Literal(ast::Literal::Null, _) => Some(Value::Null),
        ast::Expr::Literal(
            ast::Literal::CurrentDate | ast::Literal::CurrentTime | ast::Literal::CurrentTimestamp,
            _,
        ) => None,
        ast::Expr::Literal(..) => Some(Value::Int(1)),
        ast::Expr::Unary(ast::UnaryOp::Neg | ast::UnaryOp::Plus, a) => literal_value(a),
        ast::Expr::Column { .. } => Some(Value::Int(1)),
        _ => None,
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

/// A row of the schema table that has a text.
struct SchemaRow {
    rowid: i64,
    kind: String,
    name: String,
    table: String,
    sql: String,
}

impl SchemaRow {
    fn table_is(&self, name: &str) -> bool {
        self.table.eq_ignore_ascii_case(name)
    }
}

fn schema_rows(c: &Connection, db: usize) -> Result<Vec<SchemaRow>> {
    if c.0.btree_if_open(db).is_none() {
        return Ok(Vec::new());
    }
    let schema = quote_name(&c.0.catalog.borrow().schemas[db].name).into_owned();
    let sql =
        format!("SELECT rowid,type,name,tbl_name,sql FROM {schema}.sqlite_master WHERE sql IS NOT NULL");
    let rows = nested_rows(&c.0, &sql, &[])?;
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
fn single_quotes(sql: &str, quoted: Vec<Span>) -> Vec<Edit> {
    let single = |s: Span| {
        // A quote behind it would become part of it.
        let space = if sql[s.end as usize..].starts_with('\'') { " " } else { "" };
        (s, format!("{}{space}", quote_text(&unquoted(s.of(sql)))))
    };
    quoted.into_iter().map(single).collect()
}

/// Binds a definition, and answers where names of tables and columns stand in it, and texts in double quotes.
fn bind_definition(c: &Connection, db: usize, row: &SchemaRow) -> Result<(Vec<NameUse>, Vec<Span>)> {
    let parsed = iolite_sql::parse_stmt(&row.sql)?;
    with_env(c, |env| {
        let mut b = Binder::new(env, &row.sql);
        b.log = Some(Vec::new());
        match &parsed.stmt {
            Stmt::CreateView(v) => {
                b.select(&v.select)?;
            }
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
                                ColumnConstraintKind::Check(e, _)
                                | ColumnConstraintKind::Generated { expr: e, .. } => {
                                    b.table_expr(&t, 0, e)?;
                                }
                                _ => {}
                            }
                        }
                    }
                    for k in constraints {
                        if let ast::TableConstraintKind::Check { expr, .. } = &k.kind {
                            b.table_expr(&t, 0, expr)?;
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
                let scope = || TriggerScope {
                    table: t.clone(),
                    old: !matches!(tr.event, TriggerEvent::Insert),
                    new: !matches!(tr.event, TriggerEvent::Delete),
                    db,
                    table_db,
                };
                // The rows of a trigger on a view have the view's columns, which only binding the view tells; its
                // statements are bound when it fires.
                if t.is_view() {
                    return Ok((b.log.take().unwrap_or_default(), b.quoted));
                }
                b.trigger = Some(scope());
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

/// How many bytes of blanks and comments a text begins with.
fn blanks(text: &str) -> usize {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\n', '\t', '\r', '\x0c']);
        let ends = if rest.starts_with("--") { "\n" } else { "*/" };
        if !rest.starts_with("--") && !rest.starts_with("/*") {
            return text.len() - rest.len();
        }
        rest = rest[2..].split_once(ends).map_or("", |r| r.1);
    }
}
