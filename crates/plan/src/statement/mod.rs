//! The plan of a whole statement: all that is decided between its text and its program.
//!
//! Plain data. Numbers in it (tables, aggregates, nested queries) are unique within the statement, and within each
//! trigger's body, which has nested queries of its own.

pub mod control;
pub mod define;
pub mod modify;

use crate::bind::Target;
use crate::bound::Expr;
use crate::plan::{NestedPlans, SelectPlan, VtabHandle};
use control::Control;
use define::DefinePlan;
use iolite_base::{Encoding, Few};
use iolite_bytecode::ColumnMeta;
use iolite_catalog::Trigger;
use iolite_sql::ast::Conflict;
use modify::ModifyPlan;
use std::rc::Rc;

/// The plan of one statement.
pub struct StatementPlan {
    /// What it does.
    pub body: Body,
    /// The plans of the queries nested in its expressions.
    pub nested: NestedPlans,
    /// What triggers do, by the numbers that row actions name.
    pub triggers: Vec<TriggerPlan>,
    /// Tables with AUTOINCREMENT that the statement or its triggers insert into, by number less one.
    pub sequences: Vec<Sequence>,
    /// How many queries it has, by SQLite's count.
    pub selects: u32,
    /// Virtual tables that the statement or its triggers write to, in the order in which they join the transaction.
    pub virtual_tables: Vec<Rc<VtabHandle>>,
    /// The databases that it reads or writes, in their order.
    pub databases: Few<DatabaseUse>,
    /// The encoding of texts.
    pub encoding: Encoding,
    /// It may fail when it has changed something already: then it is taken back alone.
    pub undo: bool,
    /// Violations of foreign keys are counted: at its end there must be none.
    pub counts_keys: bool,
}

/// What a statement does. Queries are filled in where they stay: they are most of what is compiled.
#[allow(clippy::large_enum_variant)]
pub enum Body {
    /// Yields the rows of a query.
    Query(SelectPlan),
    /// Changes rows of a table or view.
    Modify(Box<ModifyPlan>),
    /// Changes the schema.
    Define(DefinePlan),
    /// Is carried out by the connection.
    Control(Control),
    /// Tells what each row of a table should be, for `PRAGMA integrity_check`.
    RowCheck(Box<Target>),
}

impl Default for StatementPlan {
    /// A plan that does nothing.
    #[inline]
    fn default() -> Self {
        StatementPlan {
            body: Body::Define(DefinePlan { steps: Vec::new() }),
            nested: NestedPlans::default(),
            triggers: Vec::new(),
            sequences: Vec::new(),
            selects: 0,
            virtual_tables: Vec::new(),
            databases: Few::new(),
            encoding: Encoding::Utf8,
            undo: false,
            counts_keys: false,
        }
    }
}

impl StatementPlan {
    /// Takes names and types of the rows that come out.
    #[inline]
    pub fn take_columns(&mut self) -> Few<ColumnMeta> {
        match &mut self.body {
            Body::Query(q) => std::mem::take(&mut q.columns).into_iter().map(|c| c.meta).collect(),
            Body::Modify(m) => std::mem::take(&mut m.out).into_iter().map(|c| c.meta).collect(),
            _ => Few::new(),
        }
    }
}

/// A database that a statement uses.
#[derive(Clone, Copy, Debug)]
pub struct DatabaseUse {
    /// Its number.
    pub db: usize,
    /// It is written.
    pub written: bool,
    /// The schema cookie for which the plan holds.
    pub cookie: u32,
}

/// A table with AUTOINCREMENT.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Its database.
    pub db: usize,
    /// Its name.
    pub table: Rc<str>,
    /// Root page of the database's `sqlite_sequence`.
    pub root: u32,
}

/// What one trigger does under one `OR` policy.
pub struct TriggerPlan {
    /// The trigger.
    pub trigger: Rc<Trigger>,
    /// The policy of the statement that fires it, which overrules those of the statements in the body.
    pub or: Option<Conflict>,
    /// `WHEN`.
    pub when: Option<Expr>,
    /// The statements.
    pub steps: Vec<TriggerStep>,
    /// The plans of the queries nested in all of these.
    pub nested: NestedPlans,
}

/// One statement of a trigger's body.
pub enum TriggerStep {
    /// A query; its rows go nowhere, but what they compute (RAISE) is computed.
    Query(Box<SelectPlan>),
    /// A change of rows.
    Modify(Box<ModifyPlan>),
}
