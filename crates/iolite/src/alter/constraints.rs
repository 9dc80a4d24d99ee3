//! ADD and DROP CONSTRAINT, SET and DROP NOT NULL: parts of a table's text are cut out or put in, with the space, the comments
//! and the comma that belong to them.

use super::Job;
use super::text::{Edit, apply, cut, next_token, unquoted};
use crate::connection::Connection;
use iolite_base::{Code, Error, Result};
use iolite_sql::ast::{self, ColumnConstraintKind, Name, Span};
use iolite_sql::lexer::Lexer;
use iolite_sql::print::{expr as print_expr, quote_name};
use iolite_sql::token::T;

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

impl Job {
    pub(super) fn drop_constraint(&self, c: &Connection, n: &Name) -> Result<()> {
        let sql = self.sql()?;
        let new = without_constraint(&sql, &n.text)?;
        self.store(c, self.db, vec![(self.own_row(c)?, new)])?;
        self.reload(c)
    }

    pub(super) fn drop_not_null(&self, c: &Connection, i: usize) -> Result<()> {
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

    pub(super) fn set_not_null(&self, c: &Connection, i: usize, span: Span) -> Result<()> {
        let (sql, create) = self.definition()?;
        let ast::CreateTableBody::Columns { columns, .. } = &create.body else {
            return Err(Code::Corrupt.into());
        };
        let name = quote_name(&self.table.columns[i].name).into_owned();
        let table = format!("{}.{}", self.schema_name(c), quote_name(&self.table.name));
        let rows = c.nested_rows(&format!("SELECT 1 FROM {table} WHERE {name} IS NULL LIMIT 1"), &[])?;
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

    pub(super) fn add_check(
        &self,
        c: &Connection,
        name: Option<&Name>,
        e: &ast::Expr,
        span: Span,
    ) -> Result<()> {
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
        let rows = c.nested_rows(
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
