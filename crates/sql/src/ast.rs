//! The abstract syntax tree: what the text says, before any name is looked up.
//!
//! One type per form of the grammar. What always holds: every [`Span`] lies inside the text that was parsed,
//! on character boundaries; identifiers are already unquoted; parentheses leave no node of their own, except
//! that a parenthesised list of two or more becomes [`Expr::Row`].

use iolite_base::{Few, Rows, SmallStr};
use std::borrow::Cow;
use std::rc::Rc;

/// A half-open range of byte offsets into the statement's text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The text this span covers.
    pub fn of(self, text: &str) -> &str {
        &text[self.start as usize..self.end as usize]
    }
}

/// How an identifier was written; double-quoted ones may turn out to be string literals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Quote {
    /// Bare.
    #[default]
    None,
    /// `"name"`.
    Double,
    /// `[name]`.
    Bracket,
    /// `` `name` ``.
    Backtick,
    /// `'name'`, where the grammar takes a string for a name.
    Single,
}

/// An identifier, unquoted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Name {
    /// The identifier itself.
    pub text: SmallStr,
    /// How it was written.
    pub quote: Quote,
    /// Where it was written.
    pub span: Span,
}

impl Name {
    /// With the quotes that it had.
    pub fn written(&self) -> Cow<'_, str> {
        let (open, close) = match self.quote {
            Quote::None => return Cow::Borrowed(&self.text),
            Quote::Double => ('"', '"'),
            Quote::Bracket => ('[', ']'),
            Quote::Backtick => ('`', '`'),
            Quote::Single => ('\'', '\''),
        };
        let mut out = String::from(open);
        for c in self.text.chars() {
            out.push(c);
            if c == close {
                out.push(c);
            }
        }
        out.push(close);
        Cow::Owned(out)
    }
}

/// `schema.name`.
#[derive(Clone, PartialEq, Debug)]
pub struct QualifiedName {
    /// The database, if named.
    pub schema: Option<Name>,
    /// The object.
    pub name: Name,
}

impl QualifiedName {
    /// Where it begins.
    pub fn place(&self) -> Option<u32> {
        Some(self.schema.as_ref().unwrap_or(&self.name).span.start)
    }
}

/// A literal value. Numbers keep their text: whether `9223372036854775808` may be an integer depends on the
/// minus sign before it, and defaults are printed as written.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum Literal {
    Null,
    /// Decimal or `0x` digits, underscores removed.
    Integer(SmallStr),
    /// A number with point or exponent, underscores removed.
    Real(SmallStr),
    /// The string's content, quotes undone.
    Text(SmallStr),
    Blob(Box<[u8]>),
    True,
    False,
    CurrentDate,
    CurrentTime,
    CurrentTimestamp,
}

/// Prefix operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum UnaryOp {
    Neg,
    Plus,
    BitNot,
    Not,
}

/// Infix operators without a form of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum BinaryOp {
    Or,
    And,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// `IS`, `IS NOT DISTINCT FROM`.
    Is,
    /// `IS NOT`, `IS DISTINCT FROM`.
    IsNot,
    BitAnd,
    BitOr,
    ShiftLeft,
    ShiftRight,
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Concat,
    /// `->`
    Arrow,
    /// `->>`
    ArrowText,
}

/// Pattern operators: each is a function call `like(pattern, text[, escape])` underneath.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum LikeOp {
    Like,
    Glob,
    Regexp,
    Match,
}

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// A constant as written.
    Literal(Literal, Span),
    /// A parameter: its number (from 1; parameters get numbers in the order of the text), and its name with
    /// the leading `?`, `:`, `@`, `#` or `$` unless it is a bare `?`.
    Variable {
        /// The parameter's number, from 1.
        number: u32,
        /// `?5`, `:a`, `@a`, `$a::b(c)`.
        name: Option<SmallStr>,
        /// Where it stands.
        span: Span,
    },
    /// `[[schema.]table.]column`. A bare word that is no keyword is one of these, too.
    Column {
        /// Database.
        schema: Option<Box<Name>>,
        /// Table or alias.
        table: Option<Box<Name>>,
        /// Column.
        column: Name,
    },
    /// A prefix operator.
    Unary(UnaryOp, Box<Expr>),
    /// An infix operator.
    Binary(BinaryOp, Box<(Expr, Expr)>),
    /// `e ISNULL`, `e IS NULL` is a [`BinaryOp::Is`].
    IsNull(Box<Expr>),
    /// `e NOTNULL`, `e NOT NULL`.
    NotNull(Box<Expr>),
    /// `lhs [NOT] LIKE rhs [ESCAPE e]` and its kin.
    Like {
        /// Which operator.
        op: LikeOp,
        /// `NOT` before it.
        not: bool,
        /// The text.
        lhs: Box<Expr>,
        /// The pattern.
        rhs: Box<Expr>,
        /// The escape character.
        escape: Option<Box<Expr>>,
        /// Where the operator stands.
        at: u32,
    },
    /// `e [NOT] BETWEEN lo AND hi`.
    Between {
        /// `NOT`.
        not: bool,
        /// The tested value.
        e: Box<Expr>,
        /// Lower bound.
        lo: Box<Expr>,
        /// Upper bound.
        hi: Box<Expr>,
    },
    /// `lhs [NOT] IN ...`.
    In {
        /// `NOT`.
        not: bool,
        /// The tested value or row.
        lhs: Box<Expr>,
        /// The set.
        rhs: Box<InSet>,
        /// Where `IN` stands.
        at: u32,
    },
    /// `EXISTS (select)`.
    Exists(Box<Select>),
    /// `(select)` as a value or row.
    Subquery(Box<Select>, Span),
    /// `CASE [base] WHEN .. THEN .. [ELSE ..] END`.
    Case {
        /// The value compared with each `WHEN`.
        base: Option<Box<Expr>>,
        /// `WHEN`, `THEN`.
        arms: Vec<(Expr, Expr)>,
        /// `ELSE`.
        otherwise: Option<Box<Expr>>,
    },
    /// `CAST(e AS type)`.
    Cast(Box<Expr>, TypeName),
    /// `e COLLATE name`.
    Collate(Box<Expr>, Name),
    /// A function call: scalar, aggregate or window.
    Call(Box<Call>),
    /// `(a, b, ...)`, at least two.
    Row(Vec<Expr>, Span),
    /// `RAISE(...)`, in trigger bodies.
    Raise(RaiseKind, Option<Box<Expr>>, Span),
}

impl Expr {
    /// Where SQLite tells that something is wrong with the expression: at its leftmost name or constant, if it begins with one.
    pub fn place(&self) -> Option<u32> {
        match self {
            Expr::Literal(_, span) | Expr::Variable { span, .. } => Some(span.start),
            Expr::Column { schema, table, column } => {
                Some(schema.as_deref().or(table.as_deref()).unwrap_or(column).span.start)
            }
            Expr::Call(c) => Some(c.name.span.start),
            Expr::Like { at, .. } => Some(*at),
            Expr::Unary(_, e)
            | Expr::IsNull(e)
            | Expr::NotNull(e)
            | Expr::Cast(e, _)
            | Expr::Collate(e, _) => e.place(),
            Expr::Binary(_, sides) => sides.0.place(),
            Expr::Between { e, .. } | Expr::In { lhs: e, .. } => e.place(),
            Expr::Case { base, .. } => base.as_ref()?.place(),
            Expr::Exists(_) | Expr::Subquery(..) | Expr::Row(..) | Expr::Raise(..) => None,
        }
    }
}

/// A function call.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// The function's name.
    pub name: Name,
    /// `DISTINCT` before the arguments.
    pub distinct: bool,
    /// `f(*)`; then `args` is empty.
    pub star: bool,
    /// The arguments.
    pub args: Vec<Expr>,
    /// `ORDER BY` inside the parentheses; for `WITHIN GROUP (ORDER BY e)` see `within_group`.
    pub order_by: Vec<SortTerm>,
    /// The call was written with `WITHIN GROUP (ORDER BY e)` (ordered-set aggregates); `order_by` holds `e`.
    pub within_group: bool,
    /// `FILTER (WHERE e)`.
    pub filter: Option<Expr>,
    /// `OVER ...`.
    pub over: Option<Over>,
    /// From the name to the closing parenthesis.
    pub span: Span,
}

/// `OVER name` or `OVER (definition)`.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum Over {
    Name(Name),
    Window(Box<Window>),
}

/// A window definition.
#[derive(Clone, PartialEq, Debug)]
pub struct Window {
    /// The window this one is based on.
    pub base: Option<Name>,
    /// `PARTITION BY`.
    pub partition_by: Vec<Expr>,
    /// `ORDER BY`.
    pub order_by: Vec<SortTerm>,
    /// The frame, if written.
    pub frame: Option<Frame>,
}

/// A frame specification.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct Frame {
    pub unit: FrameUnit,
    pub start: FrameBound,
    /// `CURRENT ROW` where only a start was written.
    pub end: FrameBound,
    pub exclude: FrameExclude,
}

/// `ROWS`, `RANGE`, `GROUPS`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum FrameUnit {
    Rows,
    Range,
    Groups,
}

/// One end of a frame.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Box<Expr>),
    CurrentRow,
    Following(Box<Expr>),
    UnboundedFollowing,
}

/// `EXCLUDE ...`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub enum FrameExclude {
    /// Nothing is written.
    #[default]
    Nothing,
    /// The same rows, but what aggregates make of them is computed anew for each frame.
    NoOthers,
    CurrentRow,
    Group,
    Ties,
}

/// The right side of `IN`.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum InSet {
    List(Vec<Expr>),
    Select(Box<Select>),
    /// `IN schema.table`, `IN function(args)`.
    Table {
        table: QualifiedName,
        args: Option<Vec<Expr>>,
    },
}

/// `RAISE` kinds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum RaiseKind {
    Ignore,
    Rollback,
    Abort,
    Fail,
}

/// A type name as written in a column definition or cast: its words joined by single spaces, with the
/// parenthesised numbers, such as `VARCHAR(10)`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeName {
    /// The text, from the first word to the closing parenthesis.
    pub text: Box<str>,
    /// Where it was written.
    pub span: Span,
}

/// A type's text; of one that begins with a quote what stands in these quotes.
pub fn unquoted_type(text: &str) -> Cow<'_, str> {
    let close = match text.as_bytes().first() {
        Some(b'[') => b']',
        Some(q @ (b'"' | b'\'' | b'`')) => *q,
        _ => return text.into(),
    };
    let mut out = String::new();
    let mut rest = &text[1..];
    while let Some(p) = memchr::memchr(close, rest.as_bytes()) {
        out.push_str(&rest[..p]);
        rest = &rest[p + 1..];
        if rest.as_bytes().first() != Some(&close) {
            break;
        }
        out.push(close as char);
        rest = &rest[1..];
    }
    out.into()
}

/// One term of `ORDER BY` or of an index.
#[derive(Clone, PartialEq, Debug)]
pub struct SortTerm {
    /// What is sorted by.
    pub expr: Expr,
    /// `ASC`, `DESC` as written.
    pub order: Option<SortOrder>,
    /// `NULLS FIRST`, `NULLS LAST` as written.
    pub nulls: Option<NullsOrder>,
}

/// Direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum SortOrder {
    Asc,
    Desc,
}

/// Place of NULLs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum NullsOrder {
    First,
    Last,
}

/// A whole query: `WITH`, one or more cores joined by compound operators, `ORDER BY`, `LIMIT`.
#[derive(Clone, PartialEq, Debug)]
pub struct Select {
    /// `WITH`.
    pub with: Option<With>,
    /// The first core.
    pub first: SelectCore,
    /// Further cores, left to right.
    pub compounds: Vec<(CompoundOp, SelectCore)>,
    /// `ORDER BY` of the whole.
    pub order_by: Vec<SortTerm>,
    /// `LIMIT`; for `LIMIT a, b` this is `b`.
    pub limit: Option<Expr>,
    /// `OFFSET`; for `LIMIT a, b` this is `a`.
    pub offset: Option<Expr>,
    /// From `SELECT`, `VALUES` or `WITH` to the end.
    pub span: Span,
    /// Its number among the queries of the statement, as SQLite counts them: by their ends, each core for itself.
    pub number: u32,
}

/// Compound operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum CompoundOp {
    Union,
    UnionAll,
    Intersect,
    Except,
}

/// One arm of a compound.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum SelectCore {
    Query(Box<Query>),
    /// Rows of equal width.
    Values(Rows<Expr>),
}

/// `SELECT ... FROM ... WHERE ... GROUP BY ... HAVING ... WINDOW ...`.
#[derive(Clone, Default, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct Query {
    pub distinct: bool,
    pub columns: Few<ResultColumn>,
    pub from: Option<From>,
    pub filter: Option<Expr>,
    pub group_by: Vec<Expr>,
    pub having: Option<Expr>,
    pub windows: Vec<(Name, Window)>,
}

/// One entry of a result list (also of `RETURNING`).
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum ResultColumn {
    Expr {
        expr: Expr,
        alias: Option<Name>,
        /// The expression's text: the column's name where there is no alias.
        span: Span,
    },
    /// `*`
    Star(Span),
    /// `table.*`
    TableStar(Name),
}

/// A `FROM` clause: tables joined left to right. Nested joins are [`TableKind::Join`].
#[derive(Clone, PartialEq, Debug)]
pub struct From {
    /// The first table.
    pub first: Table,
    /// The others, each with how it joins.
    pub joins: Vec<Join>,
    /// Of one in parentheses: its number among the queries of the statement.
    pub number: u32,
}

/// A join with everything to its left.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct Join {
    pub op: JoinOp,
    pub natural: bool,
    pub table: Table,
    pub constraint: JoinConstraint,
}

/// Join operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum JoinOp {
    Comma,
    /// `JOIN`, `INNER JOIN`.
    Inner,
    Cross,
    Left,
    Right,
    Full,
}

/// `ON`, `USING`.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum JoinConstraint {
    None,
    On(Expr),
    Using(Vec<Name>),
}

/// One table of a `FROM` clause.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct Table {
    pub kind: TableKind,
    pub alias: Option<Name>,
}

/// What a table of a `FROM` clause is.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum TableKind {
    Named {
        name: QualifiedName,
        indexed: Indexed,
    },
    /// A table-valued function.
    Function {
        name: QualifiedName,
        args: Vec<Expr>,
    },
    Subquery(Box<Select>),
    Join(Box<From>),
}

/// `INDEXED BY`, `NOT INDEXED`.
#[derive(Clone, PartialEq, Debug, Default)]
#[allow(missing_docs)]
pub enum Indexed {
    #[default]
    Any,
    By(Name),
    Not,
}

/// `WITH [RECURSIVE]`.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct With {
    pub recursive: bool,
    pub tables: Vec<Rc<Cte>>,
}

/// One common table expression.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct Cte {
    pub name: Name,
    pub columns: Vec<Name>,
    /// `Some(true)`: `MATERIALIZED`; `Some(false)`: `NOT MATERIALIZED`.
    pub materialized: Option<bool>,
    pub select: Select,
}

/// `OR ROLLBACK` and its kin; `ON CONFLICT` of constraints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[allow(missing_docs)]
pub enum Conflict {
    Rollback,
    Abort,
    Fail,
    Ignore,
    Replace,
}

/// `INSERT`, `REPLACE`.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct Insert {
    pub with: Option<With>,
    pub or: Option<Conflict>,
    pub table: QualifiedName,
    pub alias: Option<Name>,
    pub columns: Vec<Name>,
    pub source: InsertSource,
    pub upserts: Vec<Upsert>,
    pub returning: Few<ResultColumn>,
}

/// Where inserted rows come from.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum InsertSource {
    /// `VALUES` too.
    Select(Box<Select>),
    DefaultValues,
}

/// One `ON CONFLICT` clause.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct Upsert {
    /// The conflict target: index terms, and the predicate of a partial index. Empty: any.
    pub target: Vec<SortTerm>,
    pub target_filter: Option<Expr>,
    /// `None`: `DO NOTHING`.
    pub action: Option<UpsertUpdate>,
}

/// `DO UPDATE SET ... WHERE ...`.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct UpsertUpdate {
    pub sets: Vec<Assignment>,
    pub filter: Option<Expr>,
}

/// `column = e`, or `(c1, c2) = row`.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct Assignment {
    /// More than one, or one in parentheses: a row assignment.
    pub columns: Vec<Name>,
    pub value: Expr,
}

/// `UPDATE`.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct Update {
    pub with: Option<With>,
    pub or: Option<Conflict>,
    pub table: QualifiedName,
    pub alias: Option<Name>,
    pub indexed: Indexed,
    pub sets: Vec<Assignment>,
    pub from: Option<From>,
    pub filter: Option<Expr>,
    pub returning: Few<ResultColumn>,
    pub order_by: Vec<SortTerm>,
    pub limit: Option<Expr>,
    pub offset: Option<Expr>,
}

/// `DELETE`.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct Delete {
    pub with: Option<With>,
    pub table: QualifiedName,
    pub alias: Option<Name>,
    pub indexed: Indexed,
    pub filter: Option<Expr>,
    pub returning: Few<ResultColumn>,
    pub order_by: Vec<SortTerm>,
    pub limit: Option<Expr>,
    pub offset: Option<Expr>,
}

/// `CREATE TABLE`.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct CreateTable {
    pub temp: bool,
    pub if_not_exists: bool,
    pub name: QualifiedName,
    pub body: CreateTableBody,
}

/// What follows the name in `CREATE TABLE`.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum CreateTableBody {
    Columns { columns: Vec<ColumnDef>, constraints: Vec<TableConstraint>, without_rowid: bool, strict: bool },
    As(Box<Select>),
}

/// A column definition.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct ColumnDef {
    pub name: Name,
    pub ty: Option<TypeName>,
    pub constraints: Vec<ColumnConstraint>,
    /// The whole definition's text.
    pub span: Span,
}

/// A column constraint with its name.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct ColumnConstraint {
    pub name: Option<Name>,
    pub kind: ColumnConstraintKind,
    pub span: Span,
}

/// Column constraints.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum ColumnConstraintKind {
    PrimaryKey {
        order: Option<SortOrder>,
        conflict: Option<Conflict>,
        autoincrement: bool,
    },
    /// `NULL`: accepted, without effect.
    Null(Option<Conflict>),
    NotNull(Option<Conflict>),
    Unique(Option<Conflict>),
    /// The span covers the expression without its parentheses.
    Check(Expr, Span),
    /// The span covers the value as written, parentheses included.
    Default(Expr, Span),
    Collate(Name),
    References(ForeignKeyTarget),
    /// `[NOT] DEFERRABLE ...` standing alone: belongs to the `REFERENCES` before it.
    Deferrable(bool),
    Generated {
        expr: Expr,
        stored: bool,
        span: Span,
    },
}

/// A table constraint with its name.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct TableConstraint {
    pub name: Option<Name>,
    pub kind: TableConstraintKind,
    pub span: Span,
}

/// Table constraints.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum TableConstraintKind {
    PrimaryKey { columns: Vec<SortTerm>, autoincrement: bool, conflict: Option<Conflict> },
    Unique { columns: Vec<SortTerm>, conflict: Option<Conflict> },
    Check { expr: Expr, span: Span, conflict: Option<Conflict> },
    ForeignKey { columns: Vec<Name>, target: ForeignKeyTarget },
}

/// `REFERENCES table(columns) ...`.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct ForeignKeyTarget {
    pub table: Name,
    pub columns: Vec<Name>,
    pub on_delete: ForeignKeyAction,
    pub on_update: ForeignKeyAction,
    /// `DEFERRABLE INITIALLY DEFERRED`.
    pub deferred: bool,
    /// The word after `MATCH`, which has no effect.
    pub matching: Option<Name>,
}

/// `ON DELETE`, `ON UPDATE` actions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub enum ForeignKeyAction {
    #[default]
    NoAction,
    Restrict,
    SetNull,
    SetDefault,
    Cascade,
}

/// `CREATE INDEX`.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct CreateIndex {
    pub unique: bool,
    pub if_not_exists: bool,
    pub name: QualifiedName,
    pub table: Name,
    pub columns: Vec<SortTerm>,
    pub filter: Option<Expr>,
}

/// `CREATE VIEW`.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct CreateView {
    pub temp: bool,
    pub if_not_exists: bool,
    pub name: QualifiedName,
    pub columns: Vec<Name>,
    pub select: Box<Select>,
}

/// `CREATE TRIGGER`.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct CreateTrigger {
    pub temp: bool,
    pub if_not_exists: bool,
    pub name: QualifiedName,
    pub time: TriggerTime,
    pub event: TriggerEvent,
    pub table: QualifiedName,
    pub when: Option<Expr>,
    /// `INSERT`, `UPDATE`, `DELETE` or `SELECT` statements, each with its text's span.
    pub body: Vec<(Stmt, Span)>,
}

/// When a trigger fires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum TriggerTime {
    Before,
    After,
    InsteadOf,
}

/// What fires a trigger.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum TriggerEvent {
    Delete,
    Insert,
    /// `UPDATE [OF columns]`; empty: any column.
    Update(Vec<Name>),
}

/// `CREATE VIRTUAL TABLE`.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct CreateVirtualTable {
    pub if_not_exists: bool,
    pub name: QualifiedName,
    pub module: Name,
    /// The arguments' texts, trimmed.
    pub args: Vec<Box<str>>,
}

/// `ALTER TABLE`.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct AlterTable {
    pub table: QualifiedName,
    pub action: AlterAction,
}

/// What `ALTER TABLE` does (constraint forms: new in 3.53).
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum AlterAction {
    RenameTable(Name),
    RenameColumn(Name, Name),
    AddColumn(Box<ColumnDef>),
    DropColumn(Name),
    DropConstraint(Name),
    /// `ALTER COLUMN c DROP NOT NULL`.
    DropNotNull(Name),
    /// `ALTER COLUMN c SET NOT NULL [ON CONFLICT ..]`; the span covers `NOT NULL ...`.
    SetNotNull {
        column: Name,
        conflict: Option<Conflict>,
        span: Span,
    },
    /// `ADD [CONSTRAINT n] CHECK (e) [ON CONFLICT ..]`; the outer span covers the whole constraint.
    AddCheck {
        name: Option<Name>,
        expr: Expr,
        expr_span: Span,
        conflict: Option<Conflict>,
        span: Span,
    },
}

/// What `DROP` names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum ObjectKind {
    Table,
    View,
    Index,
    Trigger,
}

/// Transaction modes of `BEGIN`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub enum BeginMode {
    #[default]
    Deferred,
    Immediate,
    Exclusive,
    /// iolite's own: `BEGIN CONCURRENT`.
    Concurrent,
}

/// `EXPLAIN` before a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub enum ExplainMode {
    #[default]
    None,
    Program,
    QueryPlan,
    /// iolite's own: `EXPLAIN ANALYZE`.
    Analyze,
}

/// The value of a PRAGMA.
#[derive(Clone, PartialEq, Debug)]
pub struct PragmaValue {
    /// The value as text: keywords and names as written, strings unquoted, numbers with their sign.
    pub text: Box<str>,
    /// Written as `PRAGMA name(value)` rather than with `=`.
    pub call: bool,
    /// It is a number.
    pub number: bool,
}

/// A statement.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum Stmt {
    Select(Box<Select>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    CreateTable(Box<CreateTable>),
    CreateIndex(Box<CreateIndex>),
    CreateView(Box<CreateView>),
    CreateTrigger(Box<CreateTrigger>),
    CreateVirtualTable(Box<CreateVirtualTable>),
    AlterTable(Box<AlterTable>),
    Drop { kind: ObjectKind, if_exists: bool, name: QualifiedName },
    Begin(BeginMode),
    Commit,
    Rollback,
    Savepoint(Name),
    Release(Name),
    RollbackTo(Name),
    Attach { file: Box<Expr>, name: Box<Expr>, key: Option<Box<Expr>> },
    Detach(Box<Expr>),
    Pragma { name: QualifiedName, value: Option<PragmaValue> },
    Analyze(Option<QualifiedName>),
    Reindex(Option<QualifiedName>),
    Vacuum { schema: Option<Name>, into: Option<Box<Expr>> },
}

/// One parsed statement with what surrounds it.
#[derive(Clone, PartialEq, Debug)]
pub struct Parsed {
    /// `EXPLAIN` before it.
    pub explain: ExplainMode,
    /// The statement.
    pub stmt: Stmt,
    /// The statement's text, without the semicolon and the space around it.
    pub span: Span,
    /// Names of the parameters, by number less one; `None` for bare `?` and for unused numbers.
    pub variables: Few<Option<SmallStr>>,
    /// How many queries it has, as SQLite counts them.
    pub selects: u32,
}
