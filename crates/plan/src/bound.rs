//! Bound queries: names have become table and column numbers; affinities, collations and functions are known.
//!
//! What always holds: a [`TableId`] is unique within a statement, nested queries included, so that a correlated
//! column needs no more than its table's number; an [`Expr::Agg`] names an aggregate by a number that is unique
//! likewise.

use iolite_base::{Few, Result, Rows};
use iolite_bytecode::ColumnMeta;
use iolite_catalog::{Index, Table};
use iolite_ext::Function;
use iolite_sql::ast;
pub use iolite_sql::ast::{CompoundOp, Conflict, FrameExclude, FrameUnit, RaiseKind};
use iolite_value::compare::KeyField;
use iolite_value::{Affinity, Collation, KeyInfo, Value};
use std::cell::Cell;
use std::rc::Rc;

/// A table occurrence's number within a statement.
pub type TableId = u32;
/// An aggregate's number within a statement.
pub type AggId = u32;
/// A subquery's number within a statement.
pub type SubId = u32;

/// The last numbers of a statement that are taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers {
    /// Of tables.
    pub table: TableId,
    /// Of aggregates and window functions.
    pub agg: AggId,
    /// Of nested queries.
    pub sub: SubId,
    /// How many queries there are, as SQLite counts them.
    pub selects: u32,
}

/// The column number that stands for the rowid.
pub const ROWID: i32 = -1;

/// A column of a table occurrence.
#[derive(Clone, Debug)]
pub struct ColumnRef {
    /// Which table.
    pub table: TableId,
    /// Which column; [`ROWID`] for the rowid.
    pub column: i32,
    /// Its affinity.
    pub affinity: Affinity,
    /// Its collating sequence.
    pub collation: Collation,
}

/// Operators with two operands and no comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Concat,
    BitAnd,
    BitOr,
    ShiftLeft,
    ShiftRight,
}

/// Comparison operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum CmpOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl CmpOp {
    /// Whether it holds for operands that compare so.
    #[inline]
    pub fn holds(self, o: std::cmp::Ordering) -> bool {
        match self {
            CmpOp::Eq => o.is_eq(),
            CmpOp::Ne => o.is_ne(),
            CmpOp::Lt => o.is_lt(),
            CmpOp::Le => o.is_le(),
            CmpOp::Gt => o.is_gt(),
            CmpOp::Ge => o.is_ge(),
        }
    }

    /// The operator with its sides exchanged.
    pub fn swapped(self) -> CmpOp {
        match self {
            CmpOp::Lt => CmpOp::Gt,
            CmpOp::Le => CmpOp::Ge,
            CmpOp::Gt => CmpOp::Lt,
            CmpOp::Ge => CmpOp::Le,
            other => other,
        }
    }

    /// The operator that holds where this one does not (NULL aside).
    pub fn negated(self) -> CmpOp {
        match self {
            CmpOp::Eq => CmpOp::Ne,
            CmpOp::Ne => CmpOp::Eq,
            CmpOp::Lt => CmpOp::Ge,
            CmpOp::Ge => CmpOp::Lt,
            CmpOp::Gt => CmpOp::Le,
            CmpOp::Le => CmpOp::Gt,
        }
    }
}

/// A comparison.
#[derive(Clone, Debug)]
pub struct Compare {
    /// The operator.
    pub op: CmpOp,
    /// `IS`, `IS NOT`: NULL is a value like others.
    pub null_eq: bool,
    /// The affinity applied to both sides before.
    pub affinity: Affinity,
    /// The collating sequence.
    pub collation: Collation,
    /// Left side.
    pub lhs: Expr,
    /// Right side.
    pub rhs: Expr,
}

/// A bound expression.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Expr {
    Const(Value),
    /// A parameter, by number.
    Param(u32),
    Column(ColumnRef),
    /// `+e`: the value without the column's index and affinity.
    Plus(Box<Expr>),
    Neg(Box<Expr>),
    BitNot(Box<Expr>),
    Not(Box<Expr>),
    Binary(BinOp, Box<Expr>, Box<Expr>),
    Compare(Box<Compare>),
    /// `(a, b) < (c, d)` and the like: the first fields that differ decide. The last comparison has the operator as it was
    /// written, those before it the strict one.
    RowOrder(Vec<Compare>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    IsNull(Box<Expr>),
    NotNull(Box<Expr>),
    /// `e IS [NOT] TRUE/FALSE`.
    IsTruth {
        e: Box<Expr>,
        truth: bool,
        not: bool,
    },
    /// `e BETWEEN lo AND hi`: the two comparisons share their left side, which is evaluated once. In `hi` a `CaseBase` may stand
    /// for it.
    Between {
        lo: Box<Compare>,
        hi: Box<Compare>,
    },
    InList(Box<InList>),
    InSelect(Box<InSelect>),
    Case {
        base: Option<Box<Expr>>,
        arms: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    /// What a `CASE base` compares against in its arms, and a BETWEEN the second time: the value of the base, already in a register.
    CaseBase(Affinity, Collation),
    Cast(Box<Expr>, Affinity),
    Collate(Box<Expr>, Collation),
    Call(Box<Call>),
    /// An aggregate's result.
    Agg(AggId, Affinity),
    /// A window function's result.
    Window(AggId, Affinity),
    /// Column `n` of a subquery's single row.
    Subquery(Rc<Subquery>, usize),
    Exists(Rc<Subquery>),
    /// A list in parentheses where a row value may stand.
    Row(Vec<Expr>),
    Raise(ast::RaiseKind, Option<Box<Expr>>),
    /// `OLD.c`, `NEW.c` of the trigger being compiled: parameter number, affinity, collation.
    TriggerColumn(ColumnRef, usize),
    /// The value while the table's cursor stands on a row, NULL while it stands on a row of NULLs (a flattened
    /// right side of a LEFT JOIN).
    IfNotNullRow(TableId, Box<Expr>),
    /// The value without its subtype, as if it had been stored: a column of a query in FROM.
    NoSubtype(Box<Expr>),
    /// The column that USING or NATURAL makes of two in a RIGHT or FULL JOIN: a CASE, with affinity and collating sequence of
    /// its first column.
    Merged(Box<Expr>),
}

/// `lhs IN (list)`.
#[derive(Clone, Debug)]
pub struct InList {
    /// NOT IN.
    pub not: bool,
    /// The tested value.
    pub lhs: Expr,
    /// The list.
    pub list: Vec<Expr>,
    /// Applied to both sides.
    pub affinity: Affinity,
    /// The left side's collating sequence.
    pub collation: Collation,
}

/// `row IN (select)`.
#[derive(Clone, Debug)]
pub struct InSelect {
    /// NOT IN.
    pub not: bool,
    /// The tested values.
    pub lhs: Vec<Expr>,
    /// The set.
    pub select: Rc<Subquery>,
    /// Affinity per field.
    pub affinities: Vec<Affinity>,
    /// Collating sequence per field.
    pub collations: Vec<Collation>,
}

/// A scalar function call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The function.
    pub function: Rc<Function>,
    /// Arguments.
    pub args: Vec<Expr>,
    /// For functions that compare.
    pub collation: Collation,
    /// The part of the schema in which it stands, in the words of the error message, if it must be pure.
    pub pure: Option<&'static str>,
    /// The virtual table that has overloaded the function: the call sees its cursor.
    pub overloaded: Option<TableId>,
}

/// A nested query in an expression.
#[derive(Debug)]
pub struct Subquery {
    /// Its number.
    pub id: SubId,
    /// Its number by SQLite's count, for people.
    pub number: u32,
    /// The query.
    pub select: Select,
    /// Tables of enclosing queries that it refers to.
    pub outer: Vec<TableId>,
}

/// A whole query.
#[derive(Clone, Debug, Default)]
pub struct Select {
    /// The arms; more than one for a compound.
    pub cores: Few<Core>,
    /// Operators between the arms.
    pub ops: Vec<ast::CompoundOp>,
    /// `ORDER BY`.
    pub order_by: Vec<OrderTerm>,
    /// `LIMIT`.
    pub limit: Option<Expr>,
    /// `OFFSET`.
    pub offset: Option<Expr>,
    /// What comes out.
    pub columns: Few<OutColumn>,
}

impl Select {
    /// An empty query with one empty arm.
    #[inline]
    pub fn with_one_arm() -> Select {
        Select { cores: Few::one(Core::default()), ..Select::default() }
    }
}

/// A result column.
#[derive(Clone, Debug)]
pub struct OutColumn {
    /// Name, declared type, origin.
    pub meta: ColumnMeta,
    /// The name was given with AS.
    pub aliased: bool,
    /// A star stands for it: ORDER BY finds it by its name, though several tables may have one like it.
    pub starred: bool,
    /// The name under which queries around it see it, where that is another: COLLATE does not count, and a column
    /// is called as it is written.
    pub inner_name: Option<Rc<str>>,
    /// The name as a column of a view or of CREATE TABLE AS, where that is another: COLLATE and `likely()` do not count.
    pub stored_name: Option<Rc<str>>,
    /// Of a compound: the same of the last arm, which is what queries around it see.
    pub last: Option<Box<ColumnMeta>>,
    /// Affinity for those who read it as a table's column.
    pub affinity: Affinity,
    /// Collating sequence.
    pub collation: Collation,
}

/// One arm of a query.
#[derive(Clone, Debug, Default)]
pub struct Core {
    /// `FROM`, flattened into a list.
    pub sources: Few<Source>,
    /// `WHERE`, and `ON` of inner joins, as a conjunction.
    pub filter: Few<Filter>,
    /// `GROUP BY`.
    pub group_by: Vec<Expr>,
    /// The arm aggregates: it has GROUP BY or an aggregate function.
    pub aggregate: bool,
    /// `HAVING`.
    pub having: Option<Expr>,
    /// Aggregates of this arm.
    pub aggs: Vec<Agg>,
    /// Its windows with the functions over each.
    pub windows: Vec<WindowDef>,
    /// `DISTINCT`.
    pub distinct: bool,
    /// What comes out.
    pub result: Few<Expr>,
    /// A `VALUES` arm: rows; then all else is empty.
    pub values: Rows<Expr>,
}

/// One conjunct of the filter.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The condition.
    pub expr: Expr,
    /// The source whose `ON` clause it comes from, if that source is outer-joined or the clause belongs to a
    /// join before one.
    pub on: Option<TableId>,
}

/// An aggregate function call.
#[derive(Clone, Debug)]
pub struct Agg {
    /// Its number.
    pub id: AggId,
    /// The function.
    pub function: Rc<Function>,
    /// Arguments.
    pub args: Vec<Expr>,
    /// `DISTINCT`.
    pub distinct: bool,
    /// `FILTER`.
    pub filter: Option<Expr>,
    /// `ORDER BY` inside.
    pub order_by: Vec<OrderTerm>,
    /// The collating sequence of its first argument that has one.
    pub collation: Collation,
}

/// A window and the functions over it.
#[derive(Clone, Debug)]
pub struct WindowDef {
    /// `PARTITION BY`.
    pub partition: Vec<Expr>,
    /// `ORDER BY`.
    pub order: Vec<OrderTerm>,
    /// The frame.
    pub frame: Frame,
    /// The functions.
    pub calls: Vec<WindowCall>,
}

/// A window function call.
#[derive(Clone, Debug)]
pub struct WindowCall {
    /// Its number, of the same kind as an aggregate's.
    pub id: AggId,
    /// The function.
    pub function: Rc<Function>,
    /// Arguments.
    pub args: Vec<Expr>,
    /// `FILTER`.
    pub filter: Option<Expr>,
    /// The collating sequence of its first argument that has one.
    pub collation: Collation,
}

/// Which rows around the present one a function sees.
#[derive(Clone, Debug)]
pub struct Frame {
    /// `ROWS`, `RANGE`, `GROUPS`.
    pub unit: ast::FrameUnit,
    /// Its start.
    pub start: FrameBound,
    /// Its end.
    pub end: FrameBound,
    /// `EXCLUDE`.
    pub exclude: ast::FrameExclude,
}

/// One end of a frame.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Expr),
    CurrentRow,
    Following(Expr),
    UnboundedFollowing,
}

/// A sort term.
#[derive(Clone, Debug)]
pub struct OrderTerm {
    /// What is sorted by.
    pub expr: Expr,
    /// The result column it is, if it is one.
    pub column: Option<usize>,
    /// Descending.
    pub desc: bool,
    /// NULLs count as larger than all else.
    pub nulls_large: bool,
    /// How it compares.
    pub collation: Collation,
}

impl OrderTerm {
    /// The field of a key in this order.
    pub fn key_field(&self) -> KeyField {
        KeyField { coll: self.collation.clone(), desc: self.desc, nulls_large: self.nulls_large }
    }
}

/// A set of small numbers: of a table's columns, of an arm's terms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NumberSet {
    /// 0 to 63, a bit each: nearly always all there are.
    low: u64,
    /// 64 and above.
    high: Vec<u64>,
}

impl NumberSet {
    /// A set of one number.
    pub fn one(n: usize) -> NumberSet {
        NumberSet::from_iter([n])
    }

    /// The numbers below `n`.
    pub fn first(n: usize) -> NumberSet {
        (0..n).collect()
    }

    /// Adds a number.
    pub fn insert(&mut self, n: usize) {
        match n.checked_sub(64) {
            None => self.low |= 1 << n,
            Some(c) => {
                if self.high.len() <= c / 64 {
                    self.high.resize(c / 64 + 1, 0);
                }
                self.high[c / 64] |= 1 << (c % 64);
            }
        }
    }

    /// Whether a number is in it.
    #[inline]
    pub fn contains(&self, n: usize) -> bool {
        match n.checked_sub(64) {
            None => self.low >> n & 1 != 0,
            Some(c) => self.high.get(c / 64).is_some_and(|w| w >> (c % 64) & 1 != 0),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.low == 0 && self.high.iter().all(|w| *w == 0)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.words().map(|w| w.count_ones() as usize).sum()
    }

    /// Adds those of another set.
    pub fn extend(&mut self, other: &NumberSet) {
        self.low |= other.low;
        if !other.high.is_empty() {
            other.iter().filter(|n| *n > 63).for_each(|n| self.insert(n));
        }
    }

    /// Whether another set has all of them.
    pub fn is_within(&self, other: &NumberSet) -> bool {
        self.low & !other.low == 0 && (self.high.is_empty() || self.iter().all(|n| other.contains(n)))
    }

    fn words(&self) -> impl Iterator<Item = u64> {
        std::iter::once(self.low).chain(self.high.iter().copied())
    }

    /// The numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.words().enumerate().flat_map(|(k, word)| {
            let next = |w: &u64| Some(w & (w - 1)).filter(|w| *w != 0);
            let left = std::iter::successors(Some(word).filter(|w| *w != 0), next);
            left.map(move |w| k * 64 + w.trailing_zeros() as usize)
        })
    }
}

impl FromIterator<usize> for NumberSet {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> NumberSet {
        let mut s = NumberSet::default();
        numbers.into_iter().for_each(|n| s.insert(n));
        s
    }
}

/// How a source joins with what is to its left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct JoinKind {
    /// Rows of the left side without a match are kept.
    pub left: bool,
    /// Rows of this source without a match are kept.
    pub right: bool,
    /// `CROSS JOIN`: keep the order.
    pub cross: bool,
}

/// A table occurrence in FROM.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its number.
    pub id: TableId,
    /// What it is.
    pub kind: SourceKind,
    /// The name it goes by: alias or table name.
    pub name: Rc<str>,
    /// The name by which people see it, where it is another: an alias, or the table's as it was written.
    pub shown: Option<Rc<str>>,
    /// How it joins.
    pub join: JoinKind,
    /// The `EXISTS` that it stands for: its first row that fits is the only one.
    pub exists: Option<Rc<Subquery>>,
    /// `INDEXED BY`, `NOT INDEXED`.
    pub indexed: ast::Indexed,
    /// Columns that are used.
    pub used: NumberSet,
    /// The rowid is used.
    pub rowid_used: bool,
    /// What the table's partial indexes and those on expressions hold of its rows.
    pub held: Vec<Rc<Held>>,
    /// What reading its rows takes beyond the table's definition.
    pub binding: Option<Rc<TableBinding>>,
}

/// What an index holds of its table's rows beyond columns.
#[derive(Clone, Debug)]
pub struct Held {
    /// The index.
    pub index: Rc<Index>,
    /// Expressions, bound to the source, with the fields that have their values.
    pub exprs: Rc<[(usize, Expr)]>,
    /// The conditions of a partial index: true for all rows that have an entry.
    pub said: Rc<[Expr]>,
    /// Columns that have the same value in all rows that have an entry.
    pub fixed: Rc<[(i32, Value)]>,
    /// The index's columns are all that the query reads of the table.
    pub plain: bool,
    /// They are, with all of this.
    pub suffices: bool,
    /// SQLite says so, too: it looks neither into groups nor at the conditions of a partial index that give no column one value.
    pub covers: bool,
    /// The row may be one of NULLs, which has no entry.
    pub nullable: bool,
}

/// What reading the rows of a stored table takes beyond its definition, bound for one occurrence of it.
#[derive(Debug)]
pub struct TableBinding {
    /// The key description of a WITHOUT ROWID table.
    pub key: Option<Rc<KeyInfo>>,
    /// Generated columns that are computed when read. What cannot be bound is an error where it is read.
    pub computed: Vec<(usize, Result<Expr>)>,
}

/// What a source is.
#[derive(Clone)]
pub enum SourceKind {
    /// A table of a database.
    Table {
        /// Database number.
        db: usize,
        /// The table.
        table: Rc<Table>,
    },
    /// A query in FROM, a view, a common table expression.
    Subquery(Box<FromQuery>),
    /// The rows of the last step, within a recursive query: the number of the enclosing [`Recursive`] source.
    Working(TableId),
    /// A virtual table.
    Virtual {
        /// Database number.
        db: usize,
        /// The table's schema.
        table: Rc<Table>,
        /// Its code.
        vtab: Rc<dyn iolite_ext::VirtualTable>,
    },
}

/// A query used as a table.
#[derive(Clone, Debug)]
pub struct FromQuery {
    /// The query; of a recursive one, the initial part.
    pub select: Select,
    /// The recursive part.
    pub recursive: Option<Box<Recursive>>,
    /// `MATERIALIZED` / `NOT MATERIALIZED`, or used more than once.
    pub materialize: Option<bool>,
    /// Uses of the same common table expression share this number.
    pub cte: Option<u32>,
    /// How many there are in the statement, once it is bound.
    pub uses: Option<Rc<Cell<u32>>>,
    /// Tables of enclosing queries that it refers to.
    pub outer: Vec<TableId>,
    /// What it is called, for people.
    pub label: Label,
    /// A view whose query has not as many columns as the view has names: what is wrong. It is an error only where
    /// the view is really read.
    pub misfit: Option<Rc<str>>,
}

/// What a query in FROM is called, whatever its alias: a number is SQLite's count.
#[derive(Clone, Debug)]
pub enum Label {
    /// A view or common table expression that has an alias here.
    Name(Rc<str>),
    /// A query in parentheses.
    Query(u32),
    /// A join in parentheses.
    Join(u32),
}

impl Default for Label {
    fn default() -> Label {
        Label::Query(0)
    }
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Label::Name(name) => f.write_str(name),
            Label::Query(n) => write!(f, "(subquery-{n})"),
            Label::Join(n) => write!(f, "(join-{n})"),
        }
    }
}

impl FromQuery {
    /// Whether its rows are those of other places of the statement, too.
    pub fn is_shared(&self) -> bool {
        self.outer.is_empty() && self.uses.as_ref().is_some_and(|n| n.get() > 1)
    }

    /// A query without recursion that may be materialized or not.
    pub fn plain(select: Select) -> FromQuery {
        FromQuery {
            select,
            recursive: None,
            materialize: None,
            cte: None,
            uses: None,
            outer: Vec::new(),
            label: Label::default(),
            misfit: None,
        }
    }
}

/// The recursive part of a recursive common table expression.
#[derive(Clone, Debug)]
pub struct Recursive {
    /// The number by which [`SourceKind::Working`] refers to it.
    pub id: TableId,
    /// The arms that refer to the table itself.
    pub arms: Vec<Core>,
    /// `UNION` rather than `UNION ALL`.
    pub distinct: bool,
    /// Order in which rows leave the queue.
    pub order_by: Vec<OrderTerm>,
    /// `LIMIT`.
    pub limit: Option<Expr>,
    /// `OFFSET`.
    pub offset: Option<Expr>,
}

impl std::fmt::Debug for SourceKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SourceKind::Table { table, .. } => write!(f, "Table({})", table.name),
            SourceKind::Subquery(q) => write!(f, "{q:?}"),
            SourceKind::Working(id) => write!(f, "Working({id})"),
            SourceKind::Virtual { table, .. } => write!(f, "Virtual({})", table.name),
        }
    }
}

impl Source {
    /// What one of its table's indexes holds beyond columns.
    pub fn held_by(&self, index: &Index) -> Option<&Rc<Held>> {
        self.held.iter().find(|h| std::ptr::eq(&*h.index, index))
    }

    /// What is wrong with the number of a view's columns.
    pub fn misfit(&self) -> Option<&str> {
        match &self.kind {
            SourceKind::Subquery(q) => q.misfit.as_deref(),
            _ => None,
        }
    }

    /// The table, if it is one stored in a database.
    pub fn table(&self) -> Option<(usize, &Rc<Table>)> {
        match &self.kind {
            SourceKind::Table { db, table } => Some((*db, table)),
            _ => None,
        }
    }
}
