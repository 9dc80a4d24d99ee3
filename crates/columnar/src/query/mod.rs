//! A query as the engine runs it: tables, columns in use, conditions, groups, aggregates, result and order.
//!
//! What always holds: expressions name columns by their number in [`Query::slots`]; conditions are all those of the block,
//! those by which its loops find rows included. Of the planner's loops only the order of rows and the estimates are kept.
//!
//! What it does not know: how it is run, and whether its tables fit the engine.

mod bound;
pub(crate) mod loops;
mod name;
pub(crate) mod window;

pub(crate) use bound::{Aggregated, Bound};
pub(crate) use name::name_of;

use crate::expr::Ex;
use crate::store::decode::ColKey;
use iolite_base::hash::FastHasher;
use iolite_catalog::Table;
use iolite_ext::{Function, FunctionFlags};
use iolite_plan::bound::*;
use iolite_plan::plan::*;
use iolite_value::compare::KeyField;
use iolite_value::{Collation, Value};
use loops::Loops;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use window::WindowSpec;

/// A table that takes part.
pub(crate) struct TableSpec {
    pub db: usize,
    /// Its columns; of a query in FROM those of its result.
    pub table: Rc<Table>,
    /// A query in FROM, which is run first.
    pub query: Option<InFrom>,
    /// Windows over the rows of that query; rows come out in the order of the first.
    pub windows: Vec<WindowSpec>,
    pub id: TableId,
    /// The right side of a LEFT JOIN.
    pub left: bool,
}

/// A column in use.
pub(crate) struct SlotSpec {
    pub table: usize,
    /// The record's field; `None` for the rowid.
    pub field: Option<usize>,
    /// REAL affinity: integers stand for reals.
    pub real: bool,
    /// What a record that ends before the field stands for.
    pub default: Value,
}

impl SlotSpec {
    /// The name of its chunks.
    pub fn key(&self) -> ColKey {
        let default = crate::store::chunk::Field::of(&self.default).hash();
        ColKey { field: self.field, real: self.real, default }
    }
}

/// In which order a level of the planner's loops delivers the rows that belong to one row of the levels around it.
#[derive(Clone)]
pub(crate) struct LevelOrder {
    /// Columns (by number in [`Query::order_slots`]) and whether they descend; behind them the rows' own order.
    pub by: Vec<(usize, bool)>,
    /// Rows come backwards.
    pub reverse: bool,
    /// There is one row at most.
    pub one: bool,
    /// Texts among these columns are ordered by their bytes.
    pub binary: bool,
}

/// A condition.
#[derive(Clone)]
pub(crate) struct Cond {
    pub ex: Ex,
    /// The LEFT JOIN to whose ON clause it belongs.
    pub on: Option<usize>,
}

/// An aggregate.
pub(crate) struct AggSpec {
    pub function: Rc<Function>,
    pub args: Vec<Ex>,
    pub distinct: Option<Collation>,
    pub filter: Option<Ex>,
    pub collation: Collation,
}

impl AggSpec {
    /// Whether the row that changes its value is the one that stands for the group.
    pub fn is_extreme(&self) -> bool {
        self.function.flags.has(FunctionFlags::MIN) || self.function.flags.has(FunctionFlags::MAX)
    }
}

/// An arm, ready to be run.
pub(crate) struct Query {
    pub tables: Vec<TableSpec>,
    pub slots: Vec<SlotSpec>,
    pub conds: Vec<Cond>,
    /// With the first table scanned and the others looked up, rows come in the order of the planner's loops.
    pub in_order: bool,
    /// The order of the planner's loops, level by level, if it can be told from the rows.
    pub loop_order: Option<Vec<LevelOrder>>,
    /// Columns that are used for nothing but that.
    pub order_slots: Vec<SlotSpec>,
    pub grouping: Grouping,
    pub keys: Vec<Ex>,
    /// Which key decides first about the order of groups, which second, and so on.
    pub key_order: Vec<usize>,
    pub key_fields: Vec<KeyField>,
    pub aggs: Vec<AggSpec>,
    /// Columns beside the groups: those of the row at which a `min` or `max` last changed, or else of the first one.
    pub bare: Vec<usize>,
    pub having: Option<Ex>,
    pub result: Vec<Ex>,
    pub distinct: Option<Vec<Collation>>,
    pub order: Vec<(Ex, KeyField)>,
    /// Not all rows may be wanted.
    pub limited: bool,
    /// What the planner thinks of its loops.
    pub loops: Loops,
    /// So many of the conditions are those by which the first loop finds its rows.
    pub sought: usize,
    /// The loops begin with rows sought by the values of a nested query.
    pub by_keys: bool,
    /// Queries in its expressions.
    pub nested: Vec<Nested>,
    /// Of one that is nested and has a row for each key: the value where there is no row.
    pub empty: Option<Ex>,
}

/// A query in FROM.
pub(crate) struct InFrom {
    /// Its arms, whose rows follow each other (UNION ALL).
    pub arms: Vec<Query>,
    /// LIMIT and OFFSET: constants or parameters.
    pub limit: Option<Ex>,
    pub offset: Option<Ex>,
}

impl InFrom {
    /// All rows of one query.
    pub fn all_of(query: Query) -> InFrom {
        InFrom { arms: vec![query], limit: None, offset: None }
    }

    /// How many of its arms' rows are wanted at the most, if LIMIT says so.
    pub fn last(&self, params: &[Value]) -> Option<f64> {
        let known = |e: &Ex| match e {
            Ex::Const(Value::Int(n)) => Some(*n),
            Ex::Param(i) => params.get(*i).and_then(|v| if let Value::Int(n) = v { Some(*n) } else { None }),
            _ => None,
        };
        let limit = self.limit.as_ref().and_then(known).filter(|n| *n >= 0)?;
        let offset = self.offset.as_ref().map_or(Some(0), known)?;
        Some(limit as f64 + offset.max(0) as f64)
    }
}

impl Query {
    /// A number for the query among those of its file; the same text has the same one.
    pub fn fingerprint(&self) -> u64 {
        let mut h = FastHasher::default();
        self.each_table(&mut |t, nested| (t.table.root.get(), nested).hash(&mut h));
        for q in self.tables.iter().flat_map(|t| &t.query) {
            q.arms.iter().for_each(|a| a.fingerprint().hash(&mut h));
            [&q.limit, &q.offset].map(|e| e.as_ref().map(Ex::fingerprint)).hash(&mut h);
        }
        for w in self.tables.iter().flat_map(|t| &t.windows) {
            w.keys.iter().for_each(|(c, f)| (c, f.desc).hash(&mut h));
            w.calls.iter().for_each(|c| (&c.function.name, &c.args, c.filter).hash(&mut h));
        }
        for s in self.slots.iter().chain(&self.order_slots) {
            (s.table, s.field, s.real).hash(&mut h);
        }
        let aggs = self.aggs.iter().flat_map(|a| a.args.iter().chain(&a.filter));
        let order = self.order.iter().map(|o| &o.0);
        let all = self.conds.iter().map(|c| &c.ex).chain(&self.keys).chain(aggs).chain(&self.having);
        all.chain(&self.result).chain(order).for_each(|e| e.fingerprint().hash(&mut h));
        self.aggs.iter().for_each(|a| (&a.function.name, a.distinct.is_some()).hash(&mut h));
        (self.grouping as u8, self.distinct.is_some(), self.in_order, self.limited).hash(&mut h);
        self.nested.iter().for_each(|n| n.query.fingerprint().hash(&mut h));
        h.finish()
    }

    /// Calls `f` with each stored table of this query and of those within it.
    pub fn each_table(&self, f: &mut dyn FnMut(&TableSpec, bool)) {
        for t in &self.tables {
            match &t.query {
                Some(q) => q.arms.iter().for_each(|a| a.each_table(&mut |t, _| f(t, true))),
                None => f(t, false),
            }
        }
        for n in &self.nested {
            n.query.each_table(&mut |t, _| f(t, true));
        }
    }
}

/// A nested query.
pub(crate) struct Nested {
    pub query: Query,
    pub kind: NestedKind,
    /// Own columns that must be equal to the first operands of its use.
    pub keys: Vec<usize>,
    /// A comparison of an own column with the operand behind them.
    pub other: Option<(CmpOp, usize)>,
}

/// What is wanted of it.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum NestedKind {
    /// A column of its first row.
    Scalar(usize),
    /// Whether there is a row.
    Exists,
    /// All rows, as a set.
    Set,
}

/// The tables whose columns an expression reads.
pub(crate) fn tables_of(q: &Query, e: &Ex) -> u64 {
    let mut mask = 0;
    e.slots(&mut |s| mask |= 1 << q.slots[s].table);
    mask
}
