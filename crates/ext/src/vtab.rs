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
//! All of it may call the connection. What always holds: nothing is asked of a table after `destroy` has answered; a cursor
//! is filtered before a row is asked of it, and not asked beyond its end.

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
    /// `update` leaves nothing behind where it answers `SQLITE_CONSTRAINT`, and carries out what [`Change::conflict`] says:
    /// the statement's `OR` policy counts then. Otherwise such an answer undoes the statement.
    pub heeds_conflicts: bool,
    /// It may read any database: a statement that names it is one that reads all of them.
    pub uses_all_schemas: bool,
}

impl Declared {
    /// A table that may be named where the schema is trusted.
    pub fn new(declaration: impl Into<String>, table: Rc<dyn VirtualTable>) -> Declared {
        let declaration = declaration.into();
        Declared { declaration, table, trust: Trust::Normal, heeds_conflicts: true, uses_all_schemas: false }
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
    /// The module itself, for those who know its type.
    fn as_any(&self) -> Option<&dyn std::any::Any> {
        None
    }
}

macro_rules! constraint_ops {
    ($($name:ident $code:literal,)*) => {
        /// Operators that a constraint can have.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(missing_docs)]
        pub enum ConstraintOp {
            $($name,)*
            /// A function of two arguments that the table has overloaded: its number, from 150.
            Function(u8),
        }

        impl ConstraintOp {
            /// SQLite's number.
            pub fn code(self) -> u8 {
                match self { $(ConstraintOp::$name => $code,)* ConstraintOp::Function(n) => n }
            }
        }
    };
}

constraint_ops! {
    Eq 2, Gt 4, Le 8, Lt 16, Ge 32, Match 64, Like 65, Glob 66, Regexp 67, Ne 68, IsNot 69, IsNotNull 70, IsNull 71, Is 72,
    Limit 73, Offset 74,
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
    /// It is an IN, whose values can be had all at once ([`ConstraintUse::list`]). Otherwise the cursor is filtered for each.
    pub is_in: bool,
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
    /// DISTINCT: of rows that are alike in these columns, one is enough; those that come need not come together.
    Distinct,
    /// DISTINCT and ORDER BY: of rows that are alike in these columns, one is enough, and they come sorted.
    DistinctSorted,
}

/// How a plan uses a constraint.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConstraintUse {
    /// The value's place among the arguments of `filter`, from 1; 0: not passed.
    pub arg: i32,
    /// The table checks it; the engine need not.
    pub omit: bool,
    /// The values of an IN are handed over at once: see [`FilterArgs::list`].
    pub list: bool,
}

/// The question and answer of `best_index`.
#[derive(Clone, Debug)]
pub struct IndexInfo {
    /// The query's constraints.
    pub constraints: Vec<Constraint>,
    /// The query's order, if it is one of this table's columns alone.
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
    /// Answer: what only the module can read, for [`FilterArgs::data`]. It lives as long as the plan.
    pub index_data: Option<Rc<dyn IndexData>>,
    /// Answer: rows come in the asked order.
    pub ordered: bool,
    /// Answer: estimated cost in disk accesses.
    pub cost: f64,
    /// Answer: estimated rows.
    pub rows: i64,
    /// Answer: at most one row.
    pub unique: bool,
}

impl IndexInfo {
    /// The plan's text as EXPLAIN shows it.
    pub fn shown(&self) -> String {
        self.index_data.as_ref().map_or_else(|| self.index_str.clone(), |d| d.shown())
    }
}

/// What a module keeps with a plan, and reads by itself.
pub trait IndexData: std::fmt::Debug {
    /// Itself, for the module.
    fn as_any(&self) -> &dyn std::any::Any;
    /// As EXPLAIN shows it, in place of the plan's text.
    fn shown(&self) -> String;
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
    /// What names the row that is deleted or updated: its rowid, or the primary key of a WITHOUT ROWID table; none: a row is
    /// inserted.
    pub old: Option<&'a Value>,
    /// The row as it shall be: first what will name it (NULL: the table chooses), then its columns; none: the row is deleted.
    pub new: Option<(&'a Value, &'a [Value])>,
    /// Of an update, a bit for each of the first 63 columns: not assigned, and [`VirtualCursor::column_unchanged`] gave no
    /// value.
    pub unchanged: u64,
    /// What becomes of it if it breaks a constraint.
    pub conflict: OnConflict,
}

impl Change<'_> {
    /// Whether the column stays as it is: its value here is NULL then, whatever it is in the table.
    pub fn is_unchanged(&self, column: usize) -> bool {
        column < 63 && self.unchanged & 1 << column != 0
    }
}

impl Default for IndexInfo {
    fn default() -> IndexInfo {
        IndexInfo {
            constraints: Vec::new(),
            order_by: Vec::new(),
            order_use: OrderUse::Sorted,
            columns_used: 0,
            usage: Vec::new(),
            index_num: 0,
            index_str: String::new(),
            index_data: None,
            ordered: false,
            // So much that any plan that says what it costs is cheaper.
            cost: 5e98,
            rows: 25,
            unique: false,
        }
    }
}

/// A function that goes before the connection's of the same name.
#[derive(Clone)]
pub struct Overload {
    /// The function.
    pub function: Rc<Function>,
    /// As a condition, with a column of the table as its first argument, it is offered as a constraint with this number
    /// (150 to 255).
    pub constraint: Option<u8>,
}

/// The values of the constraints that `best_index` has chosen, in the order that it gave them.
#[derive(Clone, Copy)]
pub struct FilterArgs<'a> {
    values: &'a [Value],
    lists: &'a [(usize, Vec<Value>)],
    data: Option<&'a Rc<dyn IndexData>>,
}

impl<'a> FilterArgs<'a> {
    /// Arguments of which those in `lists`, by their places, stand for several values.
    pub fn new(values: &'a [Value], lists: &'a [(usize, Vec<Value>)]) -> FilterArgs<'a> {
        FilterArgs { values, lists, data: None }
    }

    /// The same with what the plan has in [`IndexInfo::index_data`].
    pub fn with_data(self, data: Option<&'a Rc<dyn IndexData>>) -> FilterArgs<'a> {
        FilterArgs { data, ..self }
    }

    /// What the plan has in [`IndexInfo::index_data`].
    pub fn data(&self) -> Option<&'a Rc<dyn IndexData>> {
        self.data
    }

    /// The values of an IN that are handed over at once; the argument itself is NULL then.
    pub fn list(&self, n: usize) -> Option<&'a [Value]> {
        self.lists.iter().find(|l| l.0 == n).map(|l| &l.1[..])
    }
}

impl std::ops::Deref for FilterArgs<'_> {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        self.values
    }
}

/// A virtual table.
pub trait VirtualTable {
    /// Chooses a plan. An `Err` with code `SQLITE_CONSTRAINT` means: not with these usable constraints.
    fn best_index(&self, info: &mut IndexInfo) -> Result<()>;
    /// Opens a cursor.
    fn open(&self) -> Result<Box<dyn VirtualCursor>>;
    /// Whether it holds nothing that it should let go of early: a program that nobody runs may be kept with it.
    fn holds_nothing(&self) -> bool {
        false
    }
    /// Whether pointers of the program among a filter's arguments mean something to it; to others they are NULL.
    fn takes_pointers(&self) -> bool {
        false
    }
    /// Whether `update` does anything.
    fn writable(&self) -> bool {
        false
    }
    /// Changes a row; answers the rowid of an inserted one, which becomes `last_insert_rowid()`.
    fn update(&self, _change: &Change<'_>) -> Result<i64> {
        Err(Error::new(Code::Readonly, "table may not be modified"))
    }
    /// Who takes part in the transaction when the table is written to; nobody, if what it keeps is all in the database.
    fn participant(self: Rc<Self>) -> Option<Rc<dyn Participant>> {
        None
    }
    /// A cursor is open on it that must not lose its table: it cannot be dropped.
    fn is_busy(&self) -> bool {
        false
    }
    /// The table gets another name; afterwards it is connected anew.
    fn rename(&self, _name: &str) -> Result<()> {
        Ok(())
    }
    /// The table is dropped, with whatever it keeps in the database.
    fn destroy(&self) -> Result<()> {
        Ok(())
    }
    /// A function, its name in lower case, that goes before the connection's where its first argument (of `a LIKE b` and
    /// the like: the left one) is a column of this table. A call finds the column's cursor in its context.
    fn function(&self, _name: &str, _args: usize) -> Option<Overload> {
        None
    }
    /// Itself, for other modules of its kind.
    fn as_any(&self) -> Option<&dyn std::any::Any> {
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
    fn filter(&mut self, index_num: i32, index_str: &str, args: &FilterArgs<'_>) -> Result<()>;
    /// Moves on.
    fn next(&mut self) -> Result<()>;
    /// Whether the scan has ended.
    fn eof(&self) -> bool;
    /// A column of the present row.
    fn column(&self, n: usize) -> Result<Value>;
    /// A column of the present row that an UPDATE does not assign; `None`: it need not be known to keep it.
    fn column_unchanged(&self, n: usize) -> Result<Option<Value>> {
        self.column(n).map(Some)
    }
    /// The present row's id; of a WITHOUT ROWID table it is not asked for.
    fn rowid(&self) -> Result<i64>;
    /// Itself, for the functions of its module.
    fn as_any(&self) -> Option<&dyn std::any::Any> {
        None
    }
}
