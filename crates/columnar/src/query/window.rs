//! Windows of a query: which rows a function sees, and which functions there are.
//!
//! What always holds: columns are those of the query's only table, which another query makes; the functions' values stand behind
//! its columns, window by window.

use iolite_ext::Function;
use iolite_value::Collation;
use iolite_value::compare::KeyField;
use std::rc::Rc;

/// A window and the functions over it.
pub(crate) struct WindowSpec {
    /// What rows are sorted by: so many columns that part them, then those of ORDER BY.
    pub keys: Vec<(usize, KeyField)>,
    pub parts: usize,
    pub frame: FrameSpec,
    pub calls: Vec<WindowCall>,
}

impl WindowSpec {
    /// Whether rows in the order of another window are in its order, too.
    pub fn sorts_like(&self, other: &WindowSpec) -> bool {
        self.keys == other.keys
    }
}

/// Which rows around the present one are seen.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct FrameSpec {
    /// Ends count rows; otherwise groups of peers.
    pub by_rows: bool,
    pub start: Edge,
    pub end: Edge,
}

/// One end of a frame.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Edge {
    First,
    Preceding(usize),
    Current,
    Following(usize),
    Last,
}

/// A function over a window.
pub(crate) struct WindowCall {
    pub what: What,
    /// Columns.
    pub args: Vec<usize>,
    /// Of FILTER.
    pub filter: Option<usize>,
    pub function: Rc<Function>,
    pub collation: Collation,
}

/// What it computes.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum What {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    /// So many rows up (below zero: down).
    Shifted(i64),
    First,
    Last,
    Aggregate,
}
