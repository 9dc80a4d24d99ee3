//! Virtual tables (documentation page `vtab`).

use iolite_base::{Error, Result};
use iolite_value::Value;
use std::any::Any;
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

/// A virtual table's implementation.
pub trait Module {
    /// How it may be used.
    fn kind(&self) -> ModuleKind;
    /// Attaches to a table: `args` are module, database, table, then the arguments as written. Answers the
    /// declaration (`CREATE TABLE x(...)`, hidden columns marked `HIDDEN`) and the table.
    fn connect(&self, conn: &dyn Any, args: &[&str]) -> Result<(String, Rc<dyn VirtualTable>)>;
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
#[derive(Clone, Copy, Debug)]
pub struct Constraint {
    /// The column; -1 for the rowid.
    pub column: i32,
    /// The operator.
    pub op: ConstraintOp,
    /// The value is known when the cursor is filtered.
    pub usable: bool,
}

/// An `ORDER BY` term.
#[derive(Clone, Copy, Debug)]
pub struct OrderTerm {
    /// The column; -1 for the rowid.
    pub column: i32,
    /// Descending.
    pub desc: bool,
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
    /// The query's order.
    pub order_by: Vec<OrderTerm>,
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

/// A virtual table.
pub trait VirtualTable {
    /// Chooses a plan. An `Err` with code `SQLITE_CONSTRAINT` means: not with these usable constraints.
    fn best_index(&self, info: &mut IndexInfo) -> Result<()>;
    /// Opens a cursor.
    fn open(&self) -> Result<Box<dyn VirtualCursor>>;
    /// INSERT, UPDATE, DELETE in the convention of `xUpdate`: one argument deletes that rowid; else old rowid (NULL
    /// for insert), new rowid, columns. Answers the new rowid.
    fn update(&self, _args: &[Value]) -> Result<i64> {
        Err(Error::new(iolite_base::Code::Readonly, "table may not be modified"))
    }
    /// Whether `update` does anything.
    fn writable(&self) -> bool {
        false
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
