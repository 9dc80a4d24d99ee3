//! Tokens to AST, by recursive descent, with precedence climbing for expressions.
//!
//! What always holds: one token of lookahead, `tok`, is read but not consumed; `prev` is the end of the last
//! consumed token. `depth` counts the nesting that SQLite's own parser stack would hold and is checked before
//! each descent, as is the thread's stack where the nesting is deep; `height` is the height of the expression
//! parsed last, as SQLite counts it. Errors carry SQLite's texts and the offending token's offset.
//! Names are not looked up here; what is checked beyond the grammar is what SQLite's grammar actions check
//! without a schema.

mod ddl;
mod dml;
mod expr;
mod select;
mod window;

pub(crate) use expr::unhex;

use crate::ast::*;
use crate::lexer::{Lexer, Token, is_space};
use crate::token::T;
use iolite_base::{Code, Error, Few, Limit, Limits, Result, SmallStr};
use std::sync::OnceLock;

static HAS_STACK: OnceLock<fn() -> bool> = OnceLock::new();

/// Says how to ask whether the thread's stack is enough to go deeper; stored texts are parsed on whatever thread needs them,
/// so this holds for the process. Nobody asks before it is said.
pub fn watch_stack(has: fn() -> bool) {
    // The first one stays: all say the same.
    let _ = HAS_STACK.set(has);
}

/// Parses the first statement in `text`. The second part of the answer is how many bytes were used, the
/// semicolon included; `None` means that nothing but space, comments and semicolons is left.
pub fn parse_next(text: &str, limits: &Limits) -> Result<Option<(Parsed, usize)>> {
    let mut p = Parser::new(text, limits);
    while p.tok.kind == T::Semi {
        p.bump();
    }
    if p.tok.kind == T::Eof {
        return Ok(None);
    }
    let parsed = p.statement()?;
    let used = match p.tok.kind {
        T::Semi | T::Eof => p.tok.end as usize,
        _ => return Err(p.unexpected()),
    };
    if used > p.sql_length {
        return Err(Error::new(Code::Toobig, "statement too long"));
    }
    Ok(Some((parsed, used)))
}

/// Parses text that is one statement, as stored in a schema.
pub fn parse_stmt(text: &str) -> Result<Parsed> {
    let limits = Limits::default();
    match parse_next(text, &limits)? {
        Some((parsed, used)) => {
            let mut rest = Parser::at(text, used, &limits);
            while rest.tok.kind == T::Semi {
                rest.bump();
            }
            if rest.tok.kind != T::Eof { Err(rest.unexpected()) } else { Ok(parsed) }
        }
        None => Err(Error::sql("incomplete input")),
    }
}

/// Parses text that is one expression.
pub fn parse_expr(text: &str) -> Result<Expr> {
    let limits = Limits::default();
    let mut p = Parser::new(text, &limits);
    let e = p.expr()?;
    if p.tok.kind != T::Eof { Err(p.unexpected()) } else { Ok(e) }
}

pub(crate) struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    /// The token to be consumed next.
    tok: Token,
    /// The end of the token consumed last.
    prev: u32,
    depth: u32,
    depth_limit: u32,
    height: u32,
    height_limit: u32,
    variable_limit: u32,
    sql_length: usize,
    limits: &'a Limits,
    variables: Few<Option<SmallStr>>,
    /// The name that the last `CONSTRAINT` gave. SQLite lets it stick to later `CHECK`s.
    constraint_name: Option<Name>,
    in_trigger: bool,
    /// How many queries have ended.
    selects: u32,
    /// An error that counts only if the rest of the statement parses.
    late_error: Option<Error>,
}

/// The depth that a text may have however low `SQLITE_LIMIT_PARSER_DEPTH` is: the stack with which SQLite's parser starts.
const LEAST_DEPTH: u32 = 50;

impl<'a> Parser<'a> {
    fn new(text: &'a str, limits: &'a Limits) -> Parser<'a> {
        Parser::at(text, 0, limits)
    }

    fn at(text: &'a str, pos: usize, limits: &'a Limits) -> Parser<'a> {
        let mut lexer = Lexer::new(text.as_bytes(), pos);
        let tok = lexer.token();
        Parser {
            text,
            lexer,
            tok,
            prev: pos as u32,
            depth: 0,
            depth_limit: limits.get(Limit::ParserDepth) as u32,
            height: 0,
            height_limit: limits.get(Limit::ExprDepth) as u32,
            variable_limit: limits.get(Limit::VariableNumber) as u32,
            sql_length: limits.get(Limit::SqlLength) as usize,
            limits,
            variables: Few::new(),
            constraint_name: None,
            in_trigger: false,
            selects: 0,
            late_error: None,
        }
    }

    // Tokens.

    /// Consumes the present token.
    #[inline]
    fn bump(&mut self) {
        self.prev = self.tok.end;
        self.tok = self.lexer.token();
    }

    /// Consumes the present token if it is of this kind.
    #[inline]
    fn eat(&mut self, kind: T) -> bool {
        let hit = self.tok.kind == kind;
        if hit {
            self.bump();
        }
        hit
    }

    /// Consumes a token of this kind, or fails.
    #[inline]
    fn expect(&mut self, kind: T) -> Result<()> {
        if self.tok.kind != kind {
            return Err(self.unexpected());
        }
        self.bump();
        Ok(())
    }

    /// The kind of the token after the present one.
    fn peek(&self) -> T {
        let mut ahead = self.lexer;
        ahead.token().kind
    }

    /// The kinds of the two tokens after the present one.
    fn peek2(&self) -> (T, T) {
        let mut ahead = self.lexer;
        let first = ahead.token().kind;
        (first, ahead.token().kind)
    }

    /// A cheap look at the first byte after the present token and the space behind it: whether it may be a dot,
    /// or a comment that leads to one. Lexing ahead after every name would cost a tenth of a short statement.
    #[inline]
    fn dot_may_follow(&self) -> bool {
        let rest = &self.text.as_bytes()[self.tok.end as usize..];
        let next = rest.iter().find(|&&b| !is_space(b));
        matches!(next, Some(b'.' | b'-' | b'/' | 0xef))
    }

    #[inline]
    fn raw(&self, t: Token) -> &'a str {
        &self.text[t.start as usize..t.end as usize]
    }

    /// The span from `start` to the end of the token consumed last.
    #[inline]
    fn since(&self, start: u32) -> Span {
        Span { start, end: self.prev }
    }

    /// The span from `start` up to the present token, without the space around it. SQLite names result
    /// columns by it, so a comment after the expression belongs to it.
    fn up_to_here(&self, start: u32) -> Span {
        let b = self.text.as_bytes();
        let (mut s, mut e) = (start as usize, self.tok.start as usize);
        while e > s && is_space(b[e - 1]) {
            e -= 1;
        }
        while s < e && is_space(b[s]) {
            s += 1;
        }
        Span { start: s as u32, end: e as u32 }
    }

    // Errors.

    /// The error for the present token, which nothing accepts here.
    #[cold]
    fn unexpected(&self) -> Error {
        self.unexpected_at(self.tok)
    }

    #[cold]
    fn unexpected_at(&self, t: Token) -> Error {
        let raw = self.raw(t);
        match t.kind {
            T::Eof => Error::sql("incomplete input"),
            T::Illegal => {
                let e = Error::sql(format!("unrecognized token: \"{raw}\""));
                if only_separators_wrong(raw) { e.nowhere() } else { e.at(t.start) }
            }
            _ => Error::sql(format!("near \"{raw}\": syntax error")).at(t.start),
        }
    }

    /// Counts `cost` more entries of nesting. Undone by [`Parser::leave`]; an error ends the parse anyway.
    #[inline]
    fn enter(&mut self, cost: u32) -> Result<()> {
        self.depth += cost;
        if self.depth > LEAST_DEPTH { self.may_go_deeper() } else { Ok(()) }
    }

    #[inline(never)]
    fn may_go_deeper(&self) -> Result<()> {
        if self.depth > self.depth_limit || HAS_STACK.get().is_some_and(|has| !has()) {
            return Err(Error::sql("Recursion limit"));
        }
        Ok(())
    }

    #[inline]
    fn leave(&mut self, cost: u32) {
        self.depth -= cost;
    }

    // Names.

    #[inline]
    fn take_name(&mut self) -> Name {
        let name = self.make_name(self.tok);
        self.bump();
        name
    }

    fn make_name(&self, t: Token) -> Name {
        let raw = self.raw(t);
        let span = Span { start: t.start, end: t.end };
        let quote = match raw.as_bytes()[0] {
            b'"' => Quote::Double,
            b'[' => Quote::Bracket,
            b'`' => Quote::Backtick,
            b'\'' => Quote::Single,
            _ => return Name { text: raw.into(), quote: Quote::None, span },
        };
        Name { text: unquote(raw), quote, span }
    }

    /// An object's name: identifier, string, or a keyword that may stand for one.
    #[inline]
    fn name(&mut self) -> Result<Name> {
        if self.tok.kind.is_nm() { Ok(self.take_name()) } else { Err(self.unexpected()) }
    }

    /// `name` or `schema.name`.
    fn qualified(&mut self) -> Result<QualifiedName> {
        let name = self.name()?;
        if self.eat(T::Dot) {
            return Ok(QualifiedName { schema: Some(name), name: self.name()? });
        }
        Ok(QualifiedName { schema: None, name })
    }

    /// `(name, name, ...)`, the parenthesis still ahead.
    fn name_list(&mut self) -> Result<Vec<Name>> {
        self.expect(T::LParen)?;
        let mut names = Vec::new();
        loop {
            names.push(self.name()?);
            if !self.eat(T::Comma) {
                break;
            }
        }
        self.expect(T::RParen)?;
        Ok(names)
    }

    /// `(name, ...)` if there is one. In these lists the grammar takes collations and directions, for the sake
    /// of very old schemas, only to refuse them.
    fn column_name_list_opt(&mut self) -> Result<Vec<Name>> {
        let mut names = Vec::new();
        if !self.eat(T::LParen) {
            return Ok(names);
        }
        loop {
            let name = self.name()?;
            let mut extra = false;
            if self.eat(T::Collate) {
                self.ids()?;
                extra = true;
            }
            extra |= self.eat(T::Asc) || self.eat(T::Desc);
            if extra {
                if !matches!(self.tok.kind, T::Comma | T::RParen) {
                    return Err(self.unexpected());
                }
                return Err(Error::sql(format!("syntax error after column name \"{}\"", name.text)));
            }
            names.push(name);
            if !self.eat(T::Comma) {
                break;
            }
        }
        self.expect(T::RParen)?;
        Ok(names)
    }

    fn ids(&mut self) -> Result<Name> {
        if self.tok.kind.is_ids() { Ok(self.take_name()) } else { Err(self.unexpected()) }
    }

    fn if_exists(&mut self) -> Result<bool> {
        let hit = self.eat(T::If);
        if hit {
            self.expect(T::Exists)?;
        }
        Ok(hit)
    }

    fn if_not_exists(&mut self) -> Result<bool> {
        let hit = self.eat(T::If);
        if hit {
            self.expect(T::Not)?;
            self.expect(T::Exists)?;
        }
        Ok(hit)
    }

    // Statements.

    fn statement(&mut self) -> Result<Parsed> {
        let start = self.tok.start;
        let explain = self.explain()?;
        let stmt = self.command()?;
        let span = self.since(start);
        if let Some(e) = self.late_error.take()
            && matches!(self.tok.kind, T::Semi | T::Eof)
        {
            return Err(e);
        }
        let variables = std::mem::take(&mut self.variables);
        Ok(Parsed { explain, stmt, span, variables, selects: self.selects })
    }

    fn explain(&mut self) -> Result<ExplainMode> {
        if !self.eat(T::Explain) {
            return Ok(ExplainMode::None);
        }
        if self.eat(T::Query) {
            self.expect(T::Plan)?;
            return Ok(ExplainMode::QueryPlan);
        }
        if self.tok.kind == T::Analyze && self.analyze_means_run() {
            self.bump();
            return Ok(ExplainMode::Analyze);
        }
        Ok(ExplainMode::Program)
    }

    /// `EXPLAIN ANALYZE` before a statement is iolite's own; `EXPLAIN ANALYZE`, `EXPLAIN ANALYZE t` explain
    /// the statement `ANALYZE`.
    fn analyze_means_run(&self) -> bool {
        match self.peek2() {
            (T::Replace | T::With, second) => !matches!(second, T::Eof | T::Semi | T::Dot),
            (first, _) => matches!(
                first,
                T::Select | T::Values | T::Insert | T::Update | T::Delete | T::Create | T::Alter | T::Drop
            ),
        }
    }

    fn command(&mut self) -> Result<Stmt> {
        let kind = self.tok.kind;
        match kind {
            T::Select | T::Values => Ok(Stmt::Select(self.select()?)),
            T::With | T::Insert | T::Replace | T::Update | T::Delete => self.with_or_change(),
            T::Create => self.create(),
            T::Alter => self.alter(),
            T::Drop => self.drop_object(),
            T::Begin => self.begin(),
            T::Commit | T::End => {
                self.bump();
                self.transaction_name()?;
                Ok(Stmt::Commit)
            }
            T::Rollback => {
                self.bump();
                self.transaction_name()?;
                if self.eat(T::To) {
                    self.eat(T::Savepoint);
                    return Ok(Stmt::RollbackTo(self.name()?));
                }
                Ok(Stmt::Rollback)
            }
            T::Savepoint => {
                self.bump();
                Ok(Stmt::Savepoint(self.name()?))
            }
            T::Release => {
                self.bump();
                self.eat(T::Savepoint);
                Ok(Stmt::Release(self.name()?))
            }
            T::Attach => {
                self.bump();
                self.eat(T::Database);
                let file = Box::new(self.expr()?);
                self.expect(T::As)?;
                let name = Box::new(self.expr()?);
                let key = if self.eat(T::Key) { Some(Box::new(self.expr()?)) } else { None };
                Ok(Stmt::Attach { file, name, key })
            }
            T::Detach => {
                self.bump();
                self.eat(T::Database);
                Ok(Stmt::Detach(Box::new(self.expr()?)))
            }
            T::Pragma => self.pragma(),
            T::Analyze => {
                self.bump();
                Ok(Stmt::Analyze(self.qualified_opt()?))
            }
            T::Reindex => {
                self.bump();
                Ok(Stmt::Reindex(self.qualified_opt()?))
            }
            T::Vacuum => {
                self.bump();
                let schema = if self.tok.kind.is_nm() { Some(self.take_name()) } else { None };
                let into = if self.eat(T::Into) { Some(Box::new(self.expr()?)) } else { None };
                Ok(Stmt::Vacuum { schema, into })
            }
            _ => Err(self.unexpected()),
        }
    }

    fn qualified_opt(&mut self) -> Result<Option<QualifiedName>> {
        if self.tok.kind.is_nm() { Ok(Some(self.qualified()?)) } else { Ok(None) }
    }

    fn begin(&mut self) -> Result<Stmt> {
        self.bump();
        let mode = match self.tok.kind {
            T::Deferred => BeginMode::Deferred,
            T::Immediate => BeginMode::Immediate,
            T::Exclusive => BeginMode::Exclusive,
            T::Id if self.raw(self.tok).eq_ignore_ascii_case("concurrent") => BeginMode::Concurrent,
            _ => {
                self.transaction_name()?;
                return Ok(Stmt::Begin(BeginMode::Deferred));
            }
        };
        self.bump();
        self.transaction_name()?;
        Ok(Stmt::Begin(mode))
    }

    /// `[TRANSACTION [name]]`: the name has no meaning.
    fn transaction_name(&mut self) -> Result<()> {
        if self.eat(T::Transaction) && self.tok.kind.is_nm() {
            self.bump();
        }
        Ok(())
    }

    /// The present token, a number without digit separators, not consumed.
    fn simple_number(&self) -> Result<&str> {
        let raw = self.raw(self.tok);
        let good = matches!(self.tok.kind, T::Int | T::Float) && !raw.contains('_');
        if good { Ok(raw) } else { Err(self.unexpected()) }
    }

    fn pragma(&mut self) -> Result<Stmt> {
        self.bump();
        let name = self.qualified()?;
        let call = match self.tok.kind {
            T::Eq => false,
            T::LParen => true,
            _ => return Ok(Stmt::Pragma { name, value: None }),
        };
        self.bump();
        let number = matches!(self.tok.kind, T::Plus | T::Minus | T::Int | T::Float);
        let text: Box<str> = match self.tok.kind {
            T::Plus | T::Minus => {
                let minus = self.tok.kind == T::Minus;
                self.bump();
                let digits = self.simple_number()?;
                if minus { format!("-{digits}").into() } else { digits.into() }
            }
            T::Int | T::Float => self.simple_number()?.into(),
            T::On | T::Delete | T::Default => self.raw(self.tok).into(),
            kind if kind.is_nm() => self.make_name(self.tok).text.as_str().into(),
            _ => return Err(self.unexpected()),
        };
        self.bump();
        if call {
            self.expect(T::RParen)?;
        }
        Ok(Stmt::Pragma { name, value: Some(PragmaValue { text, call, number }) })
    }
}

/// Whether a token would be a number but for the places of its digit separators.
fn only_separators_wrong(raw: &str) -> bool {
    let number = raw.starts_with(|c: char| c.is_ascii_digit() || c == '.') && raw.contains('_');
    let letters = ["x_", "X_", "e_", "E_"].iter().any(|w| raw.contains(w));
    number && !letters && Lexer::new(plain_number(raw).as_bytes(), 0).token().kind != T::Illegal
}

/// A number without its digit separators.
pub(crate) fn plain_number(raw: &str) -> SmallStr {
    if raw.contains('_') { raw.replace('_', "").into() } else { raw.into() }
}

/// The content of a quoted token, doubled quotes undone.
pub(crate) fn unquote<S: for<'s> std::convert::From<&'s str> + std::convert::From<String>>(raw: &str) -> S {
    let b = raw.as_bytes();
    let quote = b[0];
    let inner = &raw[1..raw.len() - 1];
    if quote == b'[' || memchr::memchr(quote, inner.as_bytes()).is_none() {
        return inner.into();
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(p) = memchr::memchr(quote, rest.as_bytes()) {
        out.push_str(&rest[..p + 1]);
        rest = &rest[p + 2..];
    }
    out.push_str(rest);
    out.into()
}
