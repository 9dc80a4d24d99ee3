//! ADD COLUMN and DROP COLUMN: what a new column must satisfy, and rows without a dropped one.

use super::Job;
use super::definitions::{Quotes, SchemaRow, bind_definition, forgives, schema_rows, single_quotes};
use super::text::{apply, blanks};
use crate::binding::with_env;
use crate::connection::Connection;
use iolite_base::{Code, Error, Limit, Result};
use iolite_btree::{Cursor, InsertAt, TreeKind};
use iolite_plan::bind::Binder;
use iolite_sql::ast::{self, ColumnConstraintKind, Span, Stmt};
use iolite_sql::lexer::Lexer;
use iolite_sql::print::{expr as print_expr, quote_name};
use iolite_sql::token::T;
use iolite_value::{Value, record};
use std::cmp::Ordering;

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

/// Whether what is wrong with a definition shows when the schema is read: before all that is wrong with views and triggers.
fn is_read(row: &SchemaRow) -> bool {
    matches!(&*row.kind, "table" | "index")
}

impl Job {
    pub(super) fn check_new_column(&self, c: &Connection, def: &ast::ColumnDef) -> Result<()> {
        let most = c.0.limits.borrow().get(Limit::Column) as usize;
        if self.table.columns.len() >= most {
            // The name that SQLite has for it at this moment.
            return Err(Error::sql(format!("too many columns on sqlite_altertab_{}", self.table.name)));
        }
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
        for k in &def.constraints {
            match &k.kind {
                ColumnConstraintKind::Default(e, _) if !iolite_catalog::constant_default(e) => {
                    let name = &def.name.text;
                    return Err(Error::sql(format!("default value of column [{name}] is not constant")));
                }
                ColumnConstraintKind::Collate(name) => {
                    with_env(c, |env| Binder::new(env, &self.text).collation(&name.text).map(drop))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn add_column(&self, c: &Connection, def: &ast::ColumnDef) -> Result<()> {
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
        self.verify(c, "after add column", Quotes::Texts, |row| {
            row.kind == "table" && row.table_is(&self.table.name)
        })?;
        // Rows that exist must satisfy the new column's constraints, and have nothing stored for it.
        let table = format!("{}.{}", self.schema_name(c), quote_name(&self.table.name));
        for k in &def.constraints {
            let (cond, message) = match &k.kind {
                ColumnConstraintKind::Generated { stored: true, .. } => {
                    ("1".to_string(), "cannot add a STORED column")
                }
                ColumnConstraintKind::Check(e, _) => {
                    (format!("NOT ({})", print_expr(e)), "CHECK constraint failed")
                }
                ColumnConstraintKind::NotNull(_) if is_generated(def) => {
                    (format!("{} IS NULL", quote_name(&def.name.text)), "NOT NULL constraint failed")
                }
                _ => continue,
            };
            let rows = c.nested_rows(&format!("SELECT 1 FROM {table} WHERE {cond} LIMIT 1"), &[])?;
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
        let rows = c.nested_rows(&format!("SELECT typeof({name}) FROM {table} LIMIT 1"), &[])?;
        let Some(found) = rows.first().map(|r| r[0].to_string_lossy()) else { return Ok(()) };
        let t = def.ty.as_ref().map_or(String::new(), |t| t.text.to_ascii_lowercase());
        let wanted = if t == "int" { "integer" } else { &*t };
        if found == wanted || found == "null" || wanted == "any" {
            return Ok(());
        }
        Err(Error::sql("type mismatch on DEFAULT"))
    }

    fn check_default(&self, c: &Connection, def: &ast::ColumnDef) -> Result<()> {
        // The last one counts.
        let default = def.constraints.iter().rev().find_map(|k| match &k.kind {
            ColumnConstraintKind::Default(e, _) => Some(e),
            _ => None,
        });
        let value = match default {
            None => Some(Value::Null),
            Some(e) => literal_value(e),
        };
        let table = format!("{}.{}", self.schema_name(c), quote_name(&self.table.name));
        let has_rows = || -> Result<bool> {
            Ok(!c.nested_rows(&format!("SELECT 1 FROM {table} LIMIT 1"), &[])?.is_empty())
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

    pub(super) fn drop_column(&self, c: &Connection, i: usize) -> Result<()> {
        let (sql, create) = self.definition()?;
        let ast::CreateTableBody::Columns { columns, .. } = &create.body else {
            return Err(Code::Corrupt.into());
        };
        // A schema that makes no sense before is not changed, and texts in double quotes become plain ones.
        self.verify(c, "", Quotes::Texts, |_| true)?;
        let mut own = Vec::new();
        for db in [self.db, 1] {
            let mut changes = Vec::new();
            for row in schema_rows(c, db)? {
                let (_, quoted) = match bind_definition(c, db, &row, Quotes::Texts) {
                    Err(_) if forgives(c) => continue,
                    bound => bound?,
                };
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
        let lost: Vec<_> = indexes.iter().filter(|x| uses(x)).map(|x| x.name.clone()).collect();
        let field = self.table.field_of[i];
        self.store(c, self.db, vec![(self.own_row(c)?, new)])?;
        let mut before = schema_rows(c, self.db)?;
        let first = before.iter().position(|r| r.kind == "index" && lost.iter().any(|x| r.name == **x));
        if let Some(at) = first {
            // The statement fails, if not by what stands before that index: without those indexes the schema can be read.
            let SchemaRow { name: first, sql, .. } = before.split_off(at).swap_remove(0);
            let schema = self.schema_name(c);
            for name in &lost {
                let text = format!("DELETE FROM {schema}.sqlite_master WHERE type='index' AND name=?1");
                c.nested_rows(&text, &[Value::text(iolite_base::raw_text::decode(name))?])?;
            }
            self.reload(c)?;
            let read = |row: &SchemaRow| is_read(row) && before.iter().any(|b| b.rowid == row.rowid);
            self.verify(c, "after drop column", Quotes::Names, read)?;
            let column = &self.table.columns[i].name;
            let why = match is_quoted(&sql, column) {
                true => iolite_plan::bind::missing_quoted(column),
                false => Error::sql(format!("no such column: {column}")),
            };
            return Err(Error::sql(format!("error in index {first} after drop column: {}", why.message())));
        }
        self.reload_indexes(c, "after drop column")?;
        self.verify(c, "after drop column", Quotes::Names, is_read)?;
        self.verify(c, "after drop column", Quotes::Names, |row| !is_read(row))?;
        match field {
            Some(f) => self.remove_field(c, f),
            None => Ok(()),
        }
    }

    /// Takes a field out of every record of the table.
    fn remove_field(&self, c: &Connection, field: usize) -> Result<()> {
        let b = c.0.btree_of(self.db)?;
        let (mut old, mut new) = (Vec::new(), Vec::new());
        let Some(primary) = self.table.primary_index() else {
            let mut rows = b.cursor(self.table.root.get(), TreeKind::Table, true)?;
            let mut more = rows.first()?;
            while more {
                read_record(&mut rows, &mut old)?;
                if record::without(&old, field, &mut new)? {
                    rows.insert_row(rows.rowid(), &new, 0, InsertAt::Here(Ordering::Equal))?;
                }
                more = rows.next()?;
            }
            return Ok(());
        };
        let (root, kind) = (primary.root.get(), TreeKind::Index);
        // Records are read from one tree while a new one grows; then the old root takes the new content.
        let temp = iolite_btree::Btree::ephemeral(c.0.vfs.clone())?;
        let new_root = temp.create_tree(kind)?;
        let mut from = b.cursor(root, kind, false)?;
        let mut to = temp.cursor(new_root, kind, true)?;
        let mut more = from.first()?;
        while more {
            read_record(&mut from, &mut old)?;
            let entry = if record::without(&old, field, &mut new)? { &new } else { &old };
            to.insert_entry(entry, InsertAt::Append, &mut |_: &[u8]| Ok(Ordering::Less))?;
            more = from.next()?;
        }
        drop(from);
        b.clear_tree(root, kind)?;
        let mut back = b.cursor(root, kind, true)?;
        let mut more = to.first()?;
        while more {
            read_record(&mut to, &mut old)?;
            back.insert_entry(&old, InsertAt::Append, &mut |_: &[u8]| Ok(Ordering::Less))?;
            more = to.next()?;
        }
        Ok(())
    }
}

/// The record on which a cursor stands.
fn read_record(from: &mut Cursor, record: &mut Vec<u8>) -> Result<()> {
    let len = from.payload_len() as usize;
    record.clear();
    iolite_base::alloc::reserve(record, len)?;
    record.resize(len, 0);
    from.read_payload(0, record)
}

/// Whether an index names a column of its table in double quotes.
fn is_quoted(index: &str, column: &str) -> bool {
    let Ok(parsed) = iolite_sql::parse_stmt(index) else { return false };
    let Stmt::CreateIndex(i) = &parsed.stmt else { return false };
    i.columns.iter().any(|c| {
        let mut e = &c.expr;
        while let ast::Expr::Collate(inner, _) = e {
            e = inner;
        }
        matches!(e, ast::Expr::Column { table: None, column: n, .. }
            if n.quote == ast::Quote::Double && n.text.eq_ignore_ascii_case(column))
    })
}
