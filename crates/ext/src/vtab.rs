//! Virtual tables (documentation page `vtab`): modules, their tables, the cursors over these.
//!
//! The life of a table:
//!
//! ```text
//! CREATE VIRTUAL TABLE     create --+
//! first use otherwise      connect -+-> best_index -> open -> filter -> (column, rowid, next)*
//!                                   |   participant().begin -> update* -> sync -> commit
//!                                   |   rename
//! DROP TABLE               destroy <+
//! schema forgotten, close  dropped <+
//! ```
//!
//! All of it may call the connection. What the engine does not call yet: `update`, `participant`, `rename`, `function`,
//! `integrity`, `is_shadow`. Until it does, virtual tables can be read, not written to.

use crate::{Function, Host, Participant};
use iolite_base::{Code, Error, Result};
use iolite_value::{Collation, Value};
use std::rc::Rc;

/// How a module may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ModuleKind {
    /// Through `CREATE VIRTUAL TABLE` only.
    Created,
    /// As a table of the module's own name too.
    Eponymous,
    /// Only as a table of the module's own name.
    EponymousOnly,
}

/// What a table is made of.
#[derive(Clone, Copy, Debug)]
pub struct TableArgs<'a> {
    /// The module's name.
    pub module: &'a str,
    /// The database's name.
    pub database: &'a str,
    /// The table's name.
    pub table: &'a str,
    /// The arguments in parentheses, as written.
    pub args: &'a [Box<str>],
}

/// Where a table may be named.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Trust {
    /// Anywhere, also in an untrusted schema.
    Innocuous,
    /// In the schema only if that is trusted.
    #[default]
    Normal,
    /// Not in triggers and views.
    DirectOnly,
}

/// A table as `create` and `connect` answer it.
#[derive(Clone)]
pub struct Declared {
    /// `CREATE TABLE x(...)`: the columns, hidden ones with the word `HIDDEN` in their type.
    pub declaration: String,
    /// Its code.
    pub table: Rc<dyn VirtualTable>,
    /// Where it may be named.
    pub trust: Trust,
}

impl Declared {
    /// A table that may be named where the schema is trusted.
    pub fn new(declaration: impl Into<String>, table: Rc<dyn VirtualTable>) -> Declared {
        Declared { declaration: declaration.into(), table, trust: Trust::Normal }
    }
}

/// A kind of virtual tables.
pub trait Module {
    /// How it may be used.
    fn kind(&self) -> ModuleKind {
        ModuleKind::Created
    }
    /// Makes a new table, with whatever it keeps in the database.
    fn create(&self, host: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<Declared> {
        self.connect(host, args)
    }
    /// Connects to a table that is there.
    fn connect(&self, host: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<Declared>;
    /// Whether `table_suffix` is the name of a table in which this module keeps what belongs to `table`.
    fn is_shadow(&self, _suffix: &str) -> bool {
        false
    }
}

/// Operators that a constraint can have, with SQLite's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum ConstraintOp {
    Eq = 2,
    Gt = 4,
    Le = 8,
    Lt = 16,
    Ge = 32,
    Match = 64,
    Like = 65,
    Glob = 66,
    Regexp = 67,
    Ne = 68,
    IsNot = 69,
    IsNotNull = 70,
    IsNull = 71,
    Is = 72,
    Limit = 73,
    Offset = 74,
}

/// A constraint `column op value` that a query has.
#[derive(Clone, Debug)]
pub struct Constraint {
    /// The column; -1 for the rowid. Without meaning for LIMIT and OFFSET.
    pub column: i32,
    /// The operator.
    pub op: ConstraintOp,
    /// The value is known when the cursor is filtered.
    pub usable: bool,
    /// How the query compares.
    pub collation: Collation,
    /// The value, if it stands in the text.
    pub value: Option<Value>,
}

/// An `ORDER BY` term.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderTerm {
    /// The column; -1 for the rowid.
    pub column: i32,
    /// Descending.
    pub desc: bool,
}

/// What the order of the rows is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OrderUse {
    /// ORDER BY: rows come sorted.
    #[default]
    Sorted,
    /// GROUP BY: rows that are alike in these columns come together.
    Grouped,
}

/// How a plan uses a constraint.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConstraintUse {
    /// The value's place among the arguments of `filter`, from 1; 0: not passed.
    pub arg: i32,
    /// The table checks it; the engine need not.
    pub omit: bool,
}

/// The question and answer of `best_index`.
#[derive(Clone, Debug, Default)]
pub struct IndexInfo {
    /// The query's constraints.
    pub constraints: Vec<Constraint>,
    /// The query's order, if it is one of this table's columns.
    pub order_by: Vec<OrderTerm>,
    /// What that order is for.
    pub order_use: OrderUse,
    /// Which columns are used; bit 63 stands for all from 63 on.
    pub columns_used: u64,
    /// Answer: one per constraint.
    pub usage: Vec<ConstraintUse>,
    /// Answer: a number for `filter`.
    pub index_num: i32,
    /// Answer: a text for `filter`.
    pub index_str: String,
    /// Answer: rows come in the asked order.
    pub ordered: bool,
    /// Answer: estimated cost in disk accesses.
    pub cost: f64,
    /// Answer: estimated rows.
    pub rows: i64,
    /// Answer: at most one row.
    pub unique: bool,
}

/// What becomes of a row that breaks a constraint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub enum OnConflict {
    Rollback,
    Ignore,
    Fail,
    #[default]
    Abort,
    Replace,
}

/// A change of one row.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The rowid of the row that is deleted or updated; none: a row is inserted.
    pub old: Option<&'a Value>,
    /// The row as it shall be, its rowid first (NULL: the table chooses one); none: the row is deleted.
    pub new: Option<(&'a Value, &'a [Value])>,
    /// What becomes of it if it breaks a constraint.
    pub conflict: OnConflict,
}

/// A virtual table.
pub trait VirtualTable {
    /// Chooses a plan. An `Err` with code `SQLITE_CONSTRAINT` means: not with these usable constraints.
    fn best_index(&self, info: &mut IndexInfo) -> Result<()>;
    /// Opens a cursor.
    fn open(&self) -> Result<Box<dyn VirtualCursor>>;
    /// Whether `update` does anything.
    fn writable(&self) -> bool {
        false
    }
    /// Changes a row; answers the rowid of an inserted one.
    fn update(&self, _change: &Change<'_>) -> Result<i64> {
        Err(Error::new(Code::Readonly, "table may not be modified"))
    }
    /// Who takes part in the transaction when the table is written to; nobody, if what it keeps is all in the database.
    fn participant(self: Rc<Self>) -> Option<Rc<dyn Participant>> {
        None
    }
    /// The table gets another name.
    fn rename(&self, _name: &str) -> Result<()> {
        Ok(())
    }
    /// The table is dropped, with whatever it keeps in the database.
    fn destroy(&self) -> Result<()> {
        Ok(())
    }
    /// A function that goes before the connection's where its argument is a column of this table.
    fn function(&self, _name: &str, _args: usize) -> Option<Rc<Function>> {
        None
    }
    /// What is wrong with what the table keeps, for `PRAGMA integrity_check`; `quick`: without looking at everything.
    fn integrity(&self, _quick: bool) -> Result<Option<String>> {
        Ok(None)
    }
}

/// A cursor over a virtual table.
pub trait VirtualCursor {
    /// Starts a scan.
    fn filter(&mut self, index_num: i32, index_str: &str, args: &[Value]) -> Result<()>;
    /// Moves on.
    fn next(&mut self) -> Result<()>;
    /// Whether the scan has ended.
    fn eof(&self) -> bool;
    /// A column of the present row.
    fn column(&self, n: usize) -> Result<Value>;
    /// The present row's id.
    fn rowid(&self) -> Result<i64>;
}
