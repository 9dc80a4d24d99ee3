//! Plan trees: how a bound query will be run. Plain data: printed, costed, and run by more than one executor.

use crate::bound::*;
use iolite_base::{Few, Rows};
use iolite_catalog::{ColumnSource, Index, Table};
use iolite_ext::{IndexInfo, SourceFactory, VirtualTable};
use iolite_sql::ast::{self, CompoundOp};
use iolite_value::compare::KeyField;
use iolite_value::{Affinity, Collation, KeyInfo};
use std::cell::OnceCell;
use std::rc::Rc;

/// The plan of a whole query.
#[derive(Clone, Debug, Default)]
pub struct SelectPlan {
    /// The arms.
    pub cores: Few<CorePlan>,
    /// `ORDER BY`.
    pub order_by: Vec<OrderTerm>,
    /// How arms of a compound are merged; all follow each other where none are.
    pub merge: Option<Box<MergePlan>>,
    /// The loops already deliver that order.
    pub ordered: bool,
    /// `LIMIT`.
    pub limit: Option<Expr>,
    /// `OFFSET`.
    pub offset: Option<Expr>,
    /// What comes out.
    pub columns: Few<OutColumn>,
    /// Only its first row is wanted.
    pub one_row: bool,
    /// Estimated rows.
    pub rows: f64,
    /// Where `x IN` this query can be looked up without the query being run.
    pub lookup: Option<Box<Lookup>>,
}

/// What holds the values of a query that gives a column of a table as it is, in an order to seek them by.
#[derive(Clone, Debug)]
pub enum Lookup {
    /// The table's rowids.
    Rowids,
    /// An index that begins with the column; whether that may be NULL.
    Index(Rc<Index>, Rc<KeyInfo>, bool),
}

impl SelectPlan {
    /// An empty plan with one empty arm.
    #[inline]
    pub fn with_one_arm() -> SelectPlan {
        SelectPlan { cores: Few::one(CorePlan::default()), ..SelectPlan::default() }
    }
}

/// Arms of a compound that are merged.
#[derive(Clone, Debug)]
pub struct MergePlan {
    /// The operators between all arms.
    pub ops: Vec<CompoundOp>,
    /// In which pairs.
    pub root: Merge,
    /// So many of the first arms.
    pub arms: usize,
    /// What the rows of each arm have to be sorted by; nothing where it delivers its order.
    pub orders: Vec<Vec<OrderTerm>>,
}

/// An arm, or a pair of merged ones.
#[derive(Clone, Debug)]
pub enum Merge {
    /// An arm, by its number.
    Arm(usize),
    /// Two sides.
    Both(Box<MergedPair>),
}

/// Two sides whose sorted rows are merged.
#[derive(Clone, Debug)]
pub struct MergedPair {
    /// How.
    pub op: CompoundOp,
    /// The result columns by which both are sorted; all of them, unless it is UNION ALL.
    pub by: Vec<(usize, KeyField)>,
    /// How the columns of rows compare of which equal ones count once.
    pub same: Vec<Collation>,
    /// The left side.
    pub left: Merge,
    /// The right side.
    pub right: Merge,
}

impl SelectPlan {
    /// What the rows of an arm of a compound have to be sorted by.
    pub fn arm_order(&self, arm: usize) -> &[OrderTerm] {
        self.merge.as_ref().map_or(&[], |m| &m.orders[arm])
    }
}

/// The plans of queries nested in expressions, by their numbers.
#[derive(Default, Debug)]
pub struct NestedPlans(Vec<(SubId, SelectPlan)>);

impl NestedPlans {
    /// The plan of a query.
    pub fn get(&self, id: SubId) -> Option<&SelectPlan> {
        self.0.iter().find(|p| p.0 == id).map(|p| &p.1)
    }

    /// Whether the query has a plan.
    pub fn contains(&self, id: SubId) -> bool {
        self.get(id).is_some()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a plan.
    pub fn insert(&mut self, id: SubId, plan: SelectPlan) {
        self.0.push((id, plan));
    }

    /// All plans, in the order in which they were made.
    pub fn iter(&self) -> impl Iterator<Item = (SubId, &SelectPlan)> {
        self.0.iter().map(|(id, p)| (*id, p))
    }
}

/// The plan of one arm.
#[derive(Clone, Debug, Default)]
pub struct CorePlan {
    /// Rows of a `VALUES` arm.
    pub values: Rows<Expr>,
    /// Nested loops, outermost first.
    pub levels: Few<Level>,
    /// Conditions that no table takes part in.
    pub constant: Vec<Expr>,
    /// How groups are formed.
    pub grouping: Grouping,
    /// Keys of groups.
    pub group_by: Vec<Expr>,
    /// Aggregates to compute.
    pub aggs: Vec<Agg>,
    /// Condition on groups.
    pub having: Option<Expr>,
    /// How duplicates are removed.
    pub distinct: Distinct,
    /// Nobody asked for an order of the rows, not even to group them.
    pub unordered: bool,
    /// So many leading terms of ORDER BY in whose order the loops deliver the rows, where that is not the whole.
    pub delivered: usize,
    /// Each run of the innermost loop, for one value of IN, delivers its rows in the order of ORDER BY.
    pub inner_ordered: bool,
    /// What comes out.
    pub result: Few<Expr>,
    /// The only loop seeks the next distinct result, or the next distinct argument of the only aggregate.
    pub passes: Option<Passes>,
    /// Directions in which the keys of hashed groups are to be sorted (GROUP BY and ORDER BY as one).
    pub group_desc: Vec<bool>,
    /// The first row decides: `min` or `max` over loops in that order.
    pub first_row_only: bool,
    /// The only aggregate with DISTINCT gets equal arguments next to each other within a group.
    pub arguments_adjacent: bool,
    /// `min` or `max` is the only aggregate: EXPLAIN QUERY PLAN calls the scans for it searches, as SQLite does.
    pub extreme: bool,
    /// `count(*)` over one whole table: no loop, the tree is counted.
    pub count_only: bool,
    /// `count(*)` over a range of an index or of rowids that nothing else is asked of: a leaf's entries are counted at once.
    pub count_runs: bool,
    /// Window functions: where rows come from; the loops and groups above are empty then.
    pub window: Option<Box<WindowPlan>>,
    /// Who runs it, where that is not simply its loops: decided when the statement is planned.
    pub executor: OnceCell<Box<RunBy>>,
    /// Estimated rows.
    pub rows: f64,
}

/// How a block is run that its loops do not simply run.
#[derive(Clone, Debug)]
pub enum RunBy {
    /// By its loops, for a reason that the user wants to hear.
    Declined(Box<str>),
    /// By its loops while its tables are small: the source never opens. When they are small no longer, it ends the
    /// statement's run before it has begun, and the statement is compiled anew.
    WhileSmall(SourceFactory),
    /// By a source; by its loops where that declines.
    Source(SourceRun),
}

/// How a source runs a block.
#[derive(Clone, Debug)]
pub struct SourceRun {
    /// Makes the source. It is given the number of rows wanted (negative: all), then the values of `params`.
    pub source: SourceFactory,
    /// What the source needs to know from outside.
    pub params: Vec<Expr>,
    /// What it does, for EXPLAIN QUERY PLAN.
    pub lines: Vec<String>,
    /// Its number among the sources of the statement.
    pub number: u32,
    /// The loops run where the index that the first of them seeks leads to so few entries.
    pub few: Option<u32>,
}

/// Window functions over the rows of an arm.
#[derive(Clone, Debug)]
pub struct WindowPlan {
    /// What yields the rows: the values that windows and result need.
    pub input: CorePlan,
    /// The number under which the result reads those values and, behind them, the functions'.
    pub table: TableId,
    /// The windows; rows come out in the order of the first.
    pub windows: Vec<WindowPass>,
}

impl WindowPlan {
    /// Where one order serves all windows and the loops deliver it, at least by its leading terms: how many of these. Rows
    /// come out before all are read then.
    pub fn delivered(&self) -> Option<usize> {
        let (last, others) = self.windows.split_last()?;
        let (terms, alike) =
            (last.partition.len() + last.order.len(), others.iter().all(|w| last.sorts_for(w)));
        (alike && (last.delivered > 0 || terms == 0)).then_some(last.delivered)
    }
}

/// One window over rows of values; numbers are those of the input's results.
#[derive(Clone, Debug)]
pub struct WindowPass {
    /// `PARTITION BY`.
    pub partition: Vec<(usize, Collation)>,
    /// `ORDER BY`.
    pub order: Vec<(usize, OrderTerm)>,
    /// So many of the terms of both come out of the loops.
    pub delivered: usize,
    /// The frame.
    pub frame: Frame,
    /// The functions.
    pub calls: Vec<PassCall>,
}

impl WindowPass {
    /// Whether rows in its order are in that of another window, too.
    fn sorts_for(&self, other: &WindowPass) -> bool {
        let mut own = self.sorted_by();
        other.sorted_by().all(|t| own.next().is_some_and(|o| o == t))
    }

    /// What its rows are sorted by, and how.
    fn sorted_by(&self) -> impl Iterator<Item = (usize, &Collation, bool, bool)> {
        let partition = self.partition.iter().map(|(k, c)| (*k, c, false, false));
        partition.chain(self.order.iter().map(|(k, t)| (*k, &t.collation, t.desc, t.nulls_large)))
    }
}

/// A function over a window.
#[derive(Clone, Debug)]
pub struct PassCall {
    /// The call as bound.
    pub call: WindowCall,
    /// Its arguments.
    pub args: Vec<usize>,
    /// Its filter.
    pub filter: Option<usize>,
}

/// How equal results become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Distinct {
    /// They may stand more than once.
    #[default]
    No,
    /// There are none.
    Unique,
    /// They come next to each other.
    Adjacent,
    /// A set is asked for each.
    Set,
}

/// A loop along an index that goes from a row to the next that differs in the first fields, by seeking it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Passes {
    /// How many fields.
    pub fields: usize,
    /// How many different values they are estimated to have.
    pub values: f64,
}

/// How groups are formed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Grouping {
    /// No aggregation.
    #[default]
    None,
    /// One group of all rows.
    All,
    /// Equal keys arrive next to each other.
    Ordered,
    /// Groups are looked up by key.
    Hash,
}

/// One loop.
#[derive(Clone, Debug)]
pub struct Level {
    /// The table.
    pub source: Source,
    /// The plan of a query in FROM.
    pub query: Option<Box<FromPlan>>,
    /// How its rows are found.
    pub access: Access,
    /// Of a table on the right side of a RIGHT JOIN: how it is read once more for the rows without a match.
    pub again: Option<Box<Access>>,
    /// For the right side of an outer join: conditions that make a row a match.
    pub on: Vec<Expr>,
    /// Conditions tested as soon as this level's row is there.
    pub filter: Vec<Expr>,
    /// The Bloom filter over its keys.
    pub bloom: Bloom,
    /// Estimated rows that come out for each row that comes in.
    pub rows: f64,
}

/// A Bloom filter over the keys by which a loop's table is sought.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Bloom {
    /// There is none.
    #[default]
    None,
    /// It is asked before each seek.
    AtSeek,
    /// It is asked at the head of a loop around, by its number.
    Early(usize),
}

impl Level {
    /// The index along which the loop runs, and whether it holds all that is read of the table.
    pub fn index(&self) -> Option<(&Rc<Index>, bool)> {
        match &self.access {
            Access::IndexScan { index, covering, .. } => Some((index, *covering)),
            Access::Index(a) => Some((&a.index, a.covering)),
            _ => None,
        }
    }

    /// The conditions of the partial index along which the loop runs.
    pub fn said(&self) -> &[Expr] {
        self.index().and_then(|(i, _)| self.source.held_by(i)).map_or(&[], |h| &h.said)
    }

    /// Whether a condition is one of these.
    pub fn is_said(&self, e: &Expr) -> bool {
        self.said().iter().any(|of| of.same(e))
    }

    /// Whether the loop reads its index alone. Where more than columns is read from it, the table stays at hand for what is
    /// asked for in another form.
    pub fn is_index_only(&self) -> bool {
        let alone =
            |(i, covering): (&Rc<Index>, bool)| covering && self.source.held_by(i).is_none_or(|h| h.plain);
        self.index().is_some_and(alone) && !self.source.join.right
    }

    /// About as many rows as there are at the most, whatever conditions say: 0 if unknown.
    pub fn rows_at_most(&self) -> f64 {
        match (self.source.table(), &self.query) {
            (Some((_, t)), _) => t.rows.get(),
            (None, Some(q)) => q.select.rows,
            (None, None) => 0.0,
        }
    }
}

/// The plan of a query in FROM.
#[derive(Clone, Debug)]
pub struct FromPlan {
    /// The query; the initial part of a recursive one.
    pub select: SelectPlan,
    /// The recursive part.
    pub recursive: Option<RecursivePlan>,
    /// Runs interleaved with its reader instead of being stored first.
    pub coroutine: bool,
    /// Its rows come in their own order whatever `PRAGMA reverse_unordered_selects` says: SQLite interleaves such a query
    /// with its reader wherever it stands.
    pub forward: bool,
    /// SQLite runs it interleaved with its reader, or fills an automatic index from it as it goes.
    pub interleaved: bool,
    /// Uses of the same common table expression share what was stored.
    pub cte: Option<u32>,
    /// Depends on tables of enclosing queries.
    pub correlated: bool,
}

impl FromPlan {
    /// Estimated rows.
    pub fn rows_at_all(&self) -> f64 {
        if self.recursive.is_some() { crate::cost::QUERY_ROWS } else { self.select.rows.max(1.0) }
    }
}

/// The recursive part of a plan.
#[derive(Clone, Debug)]
pub struct RecursivePlan {
    /// Number of the working table.
    pub id: TableId,
    /// The recursive arms.
    pub arms: Vec<CorePlan>,
    /// `UNION`.
    pub distinct: bool,
    /// Order of the queue.
    pub order_by: Vec<OrderTerm>,
    /// `LIMIT`.
    pub limit: Option<Expr>,
    /// `OFFSET`.
    pub offset: Option<Expr>,
}

/// How rows of a table are found.
#[derive(Clone, Debug)]
pub enum Access {
    /// All rows in rowid order (or, for stored queries, as stored).
    Scan {
        /// Backwards.
        reverse: bool,
    },
    /// All rows by an index that holds every column needed.
    IndexScan {
        /// The index.
        index: Rc<Index>,
        /// Its key description.
        key: Rc<KeyInfo>,
        /// Backwards.
        reverse: bool,
        /// No column outside the index is needed.
        covering: bool,
    },
    /// The row with this rowid, or the rows with these.
    RowidEq {
        /// The rowid; with IN several, one after the other.
        eq: EqTerm,
        /// From the greatest to the least.
        reverse: bool,
    },
    /// Rowids in a range.
    RowidRange {
        /// Lower end.
        lo: Option<Box<Bound>>,
        /// Upper end.
        hi: Option<Box<Bound>>,
        /// Backwards.
        reverse: bool,
    },
    /// Entries of an index with equal first fields and a range in the next.
    Index(Box<IndexAccess>),
    /// Several accesses, rows found once only.
    Or(Vec<OrBranch>),
    /// An index made for the run of the statement.
    Auto {
        /// Columns of the key with what they must equal.
        eq: Vec<(i32, EqTerm)>,
        /// Key description: the equality columns, then what else is needed, then the rowid.
        key: Rc<KeyInfo>,
        /// Columns held, in order.
        columns: Vec<i32>,
        /// Conditions that rows must satisfy to enter the index.
        filter: Vec<Expr>,
    },
    /// A virtual table.
    Virtual {
        /// Its code.
        vtab: Rc<VtabHandle>,
        /// The chosen plan.
        info: Box<IndexInfo>,
        /// Arguments of the filter call.
        args: Vec<VirtualArg>,
    },
}

impl Access {
    /// Whether rows of a stored table are found by values that a key, or its first fields, must equal.
    pub fn seeks_key(&self) -> bool {
        match self {
            Access::RowidEq { .. } => true,
            Access::Index(a) => a.eq.iter().any(|e| !matches!(e, EqTerm::Any)),
            _ => false,
        }
    }

    /// Whether all rows of a table are read, as stored or by an index that is there.
    pub fn is_whole(&self) -> bool {
        match self {
            Access::Scan { .. } | Access::IndexScan { .. } => true,
            Access::Index(a) => a.is_whole(),
            _ => false,
        }
    }
}

/// An argument with which a virtual table's cursor is filtered.
#[derive(Clone, Debug)]
pub struct VirtualArg {
    /// Its value; of an IN, the cursor is filtered for each.
    pub value: EqTerm,
    /// The values of the IN are handed over at once.
    pub list: bool,
    /// Of an IN whose values come one by one: the rows for one of them must equal it, or they would come for others, too. The
    /// right side stands for the value.
    pub recheck: Option<Box<Compare>>,
}

/// A virtual table's code, printable.
pub struct VtabHandle(pub Rc<dyn VirtualTable>);

impl std::fmt::Debug for VtabHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("virtual table")
    }
}

/// Access by an index.
#[derive(Clone, Debug)]
pub struct IndexAccess {
    /// The index.
    pub index: Rc<Index>,
    /// Its key description.
    pub key: Rc<KeyInfo>,
    /// What the first fields equal.
    pub eq: Vec<EqTerm>,
    /// Lower end of the next field, in the index's order.
    pub lo: Option<Bound>,
    /// Upper end of the next field, in the index's order.
    pub hi: Option<Bound>,
    /// Where there is neither end: NULLs in the next field are passed over.
    pub not_null: bool,
    /// Likewise: NULLs in the next field come at the other end than the index has them.
    pub nulls_apart: bool,
    /// Backwards.
    pub reverse: bool,
    /// No column outside the index is needed.
    pub covering: bool,
    /// At most one entry.
    pub one_row: bool,
}

impl IndexAccess {
    /// The affinities that the values of the first fields get before they are sought.
    pub fn eq_affinities(&self, t: &Table) -> Vec<Affinity> {
        let of = |(k, eq): (usize, &EqTerm)| match eq {
            EqTerm::Eq { value, convert: true, .. } => self.field_affinity(t, k, value),
            _ => Affinity::Blob,
        };
        self.eq.iter().enumerate().map(of).collect()
    }

    /// All entries of an index, in its order.
    pub fn whole(index: Rc<Index>, key: Rc<KeyInfo>, reverse: bool, covering: bool) -> IndexAccess {
        let (eq, lo, hi) = (Vec::new(), None, None);
        let (not_null, nulls_apart, one_row) = (false, false, false);
        IndexAccess { index, key, eq, lo, hi, not_null, nulls_apart, reverse, covering, one_row }
    }

    /// Whether it goes through all entries.
    pub fn is_whole(&self) -> bool {
        self.eq.is_empty() && self.lo.is_none() && self.hi.is_none() && !self.not_null
    }

    /// The affinity that a value to be sought in a field gets.
    pub fn field_affinity(&self, t: &Table, field: usize, value: &Expr) -> Affinity {
        sought(match &self.index.columns[field].source {
            ColumnSource::Column(c) => t.columns[*c].affinity,
            ColumnSource::Rowid => Affinity::Integer,
            // The value meets the expression's affinity; others than CAST have none.
            ColumnSource::Expr(e) => match &**e {
                ast::Expr::Cast(_, ty) => Affinity::of_type(&ast::unquoted_type(&ty.text)),
                _ => value.affinity(),
            },
        })
    }
}

/// The affinity with which a value is sought in a column. Numbers are sought as they are: REAL would round an integer
/// beyond 2^53, which compares exactly where it stands.
pub fn sought(column: Affinity) -> Affinity {
    if column.is_numeric() { Affinity::Numeric } else { column }
}

/// What a key field equals.
#[derive(Clone, Debug)]
pub enum EqTerm {
    /// `= e`, or `IS e` where NULL may match.
    Eq {
        /// The value.
        value: Expr,
        /// `IS`.
        null_ok: bool,
        /// Apply the column's affinity to the value.
        convert: bool,
    },
    /// `IN (list)`.
    InList(Box<InList>),
    /// One field of `(...) IN (select)`; the fields behind it in the same row are the terms behind, with the same subquery. Not
    /// all need be there: the row remains to be compared then.
    InSelect(Box<InSelect>, usize),
    /// `IS NULL`.
    IsNull,
    /// Each value that there is, one after the other: a skip-scan. Such fields begin the key.
    Any,
}

/// One end of a range.
#[derive(Clone, Debug)]
pub struct Bound {
    /// The value.
    pub value: Expr,
    /// The value itself belongs to the range.
    pub inclusive: bool,
    /// Apply the column's affinity to the value.
    pub convert: bool,
    /// Of a comparison of rows: more of the row. The range is inclusive then, and the rows found are compared as a whole: a
    /// NULL among the values says nothing about those that it stands before.
    pub row: Option<Box<RowEnd>>,
}

/// An end of a range of rows.
#[derive(Clone, Debug)]
pub struct RowEnd {
    /// Values of the fields behind the first, each with whether it is converted.
    pub fields: Vec<(Expr, bool)>,
}

impl Bound {
    /// The fields behind the first.
    pub fn behind(&self) -> &[(Expr, bool)] {
        self.row.as_ref().map_or(&[], |r| &r.fields)
    }

    /// All its values.
    pub fn values(&self) -> impl Iterator<Item = &Expr> {
        std::iter::once(&self.value).chain(self.behind().iter().map(|m| &m.0))
    }
}

/// One access of [`Access::Or`].
#[derive(Clone, Debug)]
pub struct OrBranch {
    /// The access.
    pub access: Access,
    /// The whole disjunct, tested on each row found.
    pub filter: Vec<Expr>,
}
