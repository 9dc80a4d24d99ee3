//! Plans of INSERT, UPDATE and DELETE: all that is decided about a change of rows before a program is made.
//!
//! A [`Feed`] gives rows, a [`Pass`] says whether they are changed as they come or collected first (and why), a
//! [`Verb`] what happens to each. What is asked of a new row is a list of [`Test`]s in their order; what happens
//! beside a change is a list of [`RowAction`]s. What this does not know: registers, cursors, instructions.

use crate::bind::{KeyRole, Set, Target};
use crate::bound::{Expr, OutColumn, TableId};
use crate::plan::{CorePlan, SelectPlan, VtabHandle};
use iolite_sql::ast::Conflict;
use std::rc::Rc;

/// The plan of an INSERT, UPDATE or DELETE.
pub struct ModifyPlan {
    /// The table or view.
    pub target: Target,
    /// Where rows come from.
    pub feed: Feed,
    /// When they are changed.
    pub pass: Pass,
    /// What happens to each.
    pub verb: Verb,
    /// What happens to rows that REPLACE deletes.
    pub replaced: Removal,
    /// `RETURNING`.
    pub returning: Vec<Expr>,
    /// What RETURNING yields.
    pub out: Vec<OutColumn>,
}

impl ModifyPlan {
    /// The name of the column in which `PRAGMA count_changes` has it answer.
    pub fn counted(&self) -> &'static str {
        match &self.verb {
            Verb::Insert(_) => "rows inserted",
            Verb::Update(_) => "rows updated",
            Verb::Delete(_) => "rows deleted",
            Verb::Virtual(w) => match w.change {
                VirtualChange::Insert { .. } => "rows inserted",
                VirtualChange::Update { .. } => "rows updated",
                VirtualChange::Delete => "rows deleted",
            },
        }
    }
}

/// Where the rows of a change come from.
pub enum Feed {
    /// One row of expressions.
    Row(Vec<Expr>),
    /// One row of defaults.
    Defaults,
    /// A query.
    Query(Box<SelectPlan>),
    /// Rows of the target: their keys (of a view: all columns), then the assigned values if `given`.
    Found {
        /// How they are found.
        rows: Box<CorePlan>,
        /// How many results are the key.
        keys: usize,
        /// The assigned values are computed with the key.
        given: bool,
    },
    /// All rows of the target, unseen: its trees are emptied.
    Everything,
}

/// When rows are changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pass {
    /// Each when it comes.
    One,
    /// When all have been collected, in the order in which they came.
    Collected(Why),
    /// When the keys of all have been collected, in the order of their keys.
    KeysFirst(Why),
}

/// Why rows are collected first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// The feed reads the table that is changed.
    ReadsTarget,
    /// Triggers may do anything meanwhile.
    Triggers,
    /// A row may be found by several partners of a join.
    Join,
    /// The row's own key may change.
    KeyChanges,
    /// REPLACE may delete rows still to come.
    Replace,
    /// A nested query may read the table.
    NestedQuery,
    /// RETURNING yields after all changes.
    Returning,
    /// The rows are found in an order that the change disturbs.
    Access,
    /// A view has no rows of its own.
    View,
}

/// What happens to each row.
pub enum Verb {
    /// It is inserted.
    Insert(Box<InsertPlan>),
    /// It becomes another.
    Update(Box<Change>),
    /// It is deleted.
    Delete(Removal),
    /// The code of a virtual table is told of it.
    Virtual(Box<VirtualWrite>),
}

/// A change of a virtual table's rows.
pub struct VirtualWrite {
    /// The table's code.
    pub vtab: Rc<VtabHandle>,
    /// What happens if a row breaks a constraint.
    pub conflict: Conflict,
    /// The table carries that out; otherwise such a row undoes the statement.
    pub heeds: bool,
    /// What it is told.
    pub change: VirtualChange,
}

/// What a virtual table is told of a row.
pub enum VirtualChange {
    /// It is inserted.
    Insert {
        /// For each column, its place in the row of the feed; none: NULL.
        columns: Vec<Option<usize>>,
        /// The rowid's place in the row of the feed.
        rowid: Option<usize>,
    },
    /// It becomes another. A column without an assignment keeps what it has.
    Update {
        /// The assignments.
        sets: Vec<Set>,
    },
    /// It is deleted.
    Delete,
}

/// How a row is inserted.
pub struct InsertPlan {
    /// For each column, its place in the row of the feed.
    pub columns: Vec<Option<usize>>,
    /// The rowid's place in the row of the feed.
    pub rowid: Option<usize>,
    /// Where the rowid comes from.
    pub key: NewKey,
    /// The table's sequence ([`super::StatementPlan::sequences`]), from 1; 0: none.
    pub sequence: usize,
    /// The values are computed before the row is: triggers see them first.
    pub early: bool,
    /// What happens before (of a view: instead).
    pub before: Vec<RowAction>,
    /// What is asked of the row, in this order.
    pub tests: Vec<Test>,
    /// The values as written are kept for `excluded`.
    pub keeps_written: bool,
    /// `ON CONFLICT` clauses.
    pub upserts: Vec<UpsertPlan>,
    /// What happens after.
    pub after: Vec<RowAction>,
}

/// Where the rowid of a new row comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NewKey {
    /// There is none.
    None,
    /// It is made, and surely unused.
    Made,
    /// It is made, but looked for like a given one.
    MadeAndTested,
    /// It is given, and not NULL.
    Given,
    /// It is given, or made where NULL is.
    GivenOrMade,
}

/// An `ON CONFLICT` clause.
pub struct UpsertPlan {
    /// The number by which expressions refer to the row that was to be inserted.
    pub excluded: TableId,
    /// What becomes of the row that is there; none: nothing.
    pub action: Option<UpsertAction>,
}

/// `DO UPDATE`.
pub struct UpsertAction {
    /// `WHERE`.
    pub filter: Option<Expr>,
    /// The change.
    pub change: Change,
}

/// How a row becomes another: by UPDATE, or by DO UPDATE.
pub struct Change {
    /// The assignments.
    pub sets: Vec<Set>,
    /// Columns that get another value, those computed from assigned ones included.
    pub changed: Vec<bool>,
    /// The rowid or primary key may change.
    pub key_changes: bool,
    /// Indexes of the target that have to be touched.
    pub touched: Vec<bool>,
    /// How much of the old row is read.
    pub old: OldRow,
    /// Types of a STRICT table are checked where a BEFORE trigger sees the row.
    pub typed_early: bool,
    /// What happens before (of a view: instead).
    pub before: Vec<RowAction>,
    /// What is asked of the new row, in this order.
    pub tests: Vec<Test>,
    /// The old row is sought again behind the tests.
    pub reseeks: bool,
    /// What happens after.
    pub after: Vec<RowAction>,
}

/// How much of the old row an UPDATE reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OldRow {
    /// All of it: somebody asks for it as a whole.
    Whole,
    /// Columns as they are needed.
    AsNeeded,
    /// Nothing: the new record is made out of the old one.
    Patched,
}

/// What happens around the deletion of a row.
#[derive(Default)]
pub struct Removal {
    /// Before (of a view: instead).
    pub before: Vec<RowAction>,
    /// After.
    pub after: Vec<RowAction>,
}

impl Removal {
    /// Whether nothing happens.
    pub fn is_plain(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }

    /// Whether violations of foreign keys are counted behind it at the most.
    pub fn only_counts(&self) -> bool {
        self.before.is_empty() && self.after.iter().all(|a| matches!(a, RowAction::Count { .. }))
    }
}

/// What happens beside a change of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowAction {
    /// A trigger, by its number in [`super::StatementPlan::triggers`].
    Trigger(usize),
    /// The action of a foreign key: a trigger that may always call itself.
    Key {
        /// Its number in [`super::StatementPlan::triggers`].
        trigger: usize,
        /// It refuses what violates the key at once: not where `PRAGMA defer_foreign_keys` has them all deferred.
        restricts: bool,
    },
    /// Violations of a foreign key are counted.
    Count {
        /// As what the row is asked about.
        role: KeyRole,
        /// The key's place in the target's keys of this role.
        key: usize,
        /// Which row.
        row: Which,
        /// They come; or they go, where there are any.
        adds: bool,
        /// What the row became is left out.
        without_new: bool,
    },
}

/// The row before a change, or after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// Before.
    Old,
    /// After.
    New,
}

/// What is asked of a new row, or done on the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Test {
    /// A NULL in the column gives way to the default (REPLACE).
    Default {
        /// The column.
        column: usize,
    },
    /// Generated columns are computed again: defaults took the place of NULLs.
    Generate,
    /// The column is not NULL.
    NotNull {
        /// The column.
        column: usize,
        /// What happens otherwise; never REPLACE.
        policy: Conflict,
    },
    /// Values have the types that a STRICT table declares.
    Types,
    /// A `CHECK`, by its place in the target.
    Check {
        /// Its place.
        check: usize,
        /// What happens otherwise; never REPLACE.
        policy: Conflict,
    },
    /// No other row has the rowid.
    Rowid {
        /// What happens otherwise.
        conflict: OnConflict,
    },
    /// The entry of an index is made; nothing is asked.
    Entry {
        /// The index's place in the target.
        index: usize,
    },
    /// The entry of an index is made; no other row has its key.
    Unique {
        /// The index's place in the target.
        index: usize,
        /// What happens otherwise.
        conflict: OnConflict,
    },
    /// Whatever REPLACE's triggers have done, nothing is in the way still.
    Again,
    /// The parent that a foreign key names is there: asked before the row is written, where no other row can mend it.
    Parent {
        /// The key's place among those of which the target is the child.
        key: usize,
    },
}

impl Test {
    /// Whether another row may have to go for the new one.
    pub fn may_replace(&self) -> bool {
        let replaces = OnConflict::Policy(Conflict::Replace);
        matches!(self, Test::Rowid { conflict } | Test::Unique { conflict, .. } if *conflict == replaces)
    }
}

/// What happens when another row is in the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnConflict {
    /// The policy of the constraint or of the statement.
    Policy(Conflict),
    /// An `ON CONFLICT` clause, by its place in [`InsertPlan::upserts`].
    Upsert(usize),
}
