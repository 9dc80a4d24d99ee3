//! Programs: instructions and what surrounds them.

use crate::Opcode;
use iolite_base::{Bytes, Few, Rows, SmallStr};
use iolite_ext::{Function, FunctionFlags, IndexData, VirtualTable};
use iolite_value::{Affinity, Collation, KeyInfo, Value, compare::KeyField};
use std::rc::Rc;

/// A parameter's name with its leading sign, or none for a bare `?`.
pub type VariableName = Option<SmallStr>;

/// One instruction.
#[derive(Clone, Debug)]
pub struct Insn {
    /// What to do.
    pub op: Opcode,
    /// Flags, see [`crate::p5`].
    pub p5: u16,
    /// First operand.
    pub p1: i32,
    /// Second operand: the address to jump to, for all that jump.
    pub p2: i32,
    /// Third operand.
    pub p3: i32,
    /// Fourth operand.
    pub p4: P4,
}

/// The fourth operand.
#[derive(Clone, Default)]
#[allow(missing_docs)]
pub enum P4 {
    #[default]
    None,
    Int(i64),
    Real(f64),
    Bytes(Bytes),
    Name(Rc<str>),
    Value(Rc<Value>),
    Collation(Rc<Collation>),
    KeyInfo(Rc<KeyInfo>),
    Affinities(Rc<[Affinity]>),
    Function(Rc<FunctionCall>),
    Strict(Rc<[StrictColumn]>),
    Patch(Rc<[PatchField]>),
    VirtualTable(Rc<dyn VirtualTable>),
    Source(iolite_ext::SourceFactory),
    /// A list of numbers: column maps, root pages.
    Numbers(Rc<[i64]>),
    Windows(Rc<[WindowPass]>),
    Rows(Rc<Rows<Given>>),
    VirtualPlan(Rc<VirtualPlan>),
}

/// What a virtual table's plan hands to its cursor beside the plan's number.
pub struct VirtualPlan {
    /// Its text.
    pub text: Rc<str>,
    /// What only the module can read.
    pub data: Option<Rc<dyn IndexData>>,
}

/// A field of a row as a statement's text gives it.
pub enum Given {
    /// A literal.
    Value(Value),
    /// The parameter with this number, from 1.
    Parameter(u32),
}

/// A field of the record that `PatchRecord` makes.
#[derive(Clone)]
pub struct PatchField {
    /// The register of its new value, counted from `p2` on; `None`: it stays as it is.
    pub register: Option<u16>,
    /// What it is if the former record ends before it.
    pub default: Value,
    /// A column of REAL affinity, whose whole numbers are stored as integers.
    pub real: bool,
}

/// One window over the rows of a list; numbers of columns are those of the rows as they were added.
#[derive(Clone)]
pub struct WindowPass {
    /// `PARTITION BY`.
    pub partition: Vec<(usize, Collation)>,
    /// `ORDER BY`.
    pub order: Vec<(usize, KeyField)>,
    /// How frames are counted.
    pub unit: FrameUnit,
    /// The frame's start.
    pub start: FrameEdge,
    /// The frame's end.
    pub end: FrameEdge,
    /// What is left out of the frame.
    pub exclude: FrameExclude,
    /// The functions, with their arguments' columns and that of their filter.
    pub calls: Vec<(Rc<FunctionCall>, Vec<usize>, Option<usize>)>,
}

impl WindowPass {
    /// The columns by which its rows are sorted: those of the partition, then those of the order.
    pub fn slots(&self) -> Vec<usize> {
        self.partition.iter().map(|(k, _)| *k).chain(self.order.iter().map(|(k, _)| *k)).collect()
    }

    /// Whether rows in its order are in that of another window, too.
    pub fn sorts_for(&self, other: &WindowPass) -> bool {
        self.slots().starts_with(&other.slots()) && self.fields().starts_with(&other.fields())
    }

    /// How these compare.
    pub fn fields(&self) -> Vec<KeyField> {
        let partition = self.partition.iter().map(|(_, c)| KeyField::ascending(c.clone()));
        partition.chain(self.order.iter().map(|(_, f)| f.clone())).collect()
    }
}

/// `ROWS`, `RANGE`, `GROUPS`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum FrameUnit {
    Rows,
    Range,
    Groups,
}

/// One end of a frame; offsets stand in registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum FrameEdge {
    UnboundedPreceding,
    Preceding(i32),
    CurrentRow,
    Following(i32),
    UnboundedFollowing,
}

/// `EXCLUDE`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum FrameExclude {
    /// No EXCLUDE.
    Nothing,
    NoOthers,
    CurrentRow,
    Group,
    Ties,
}

/// A function call: the function, how many arguments, the collating sequence it compares with.
#[derive(Clone)]
pub struct FunctionCall {
    /// The function.
    pub function: Rc<Function>,
    /// How many registers it reads.
    pub args: usize,
    /// For functions that compare.
    pub collation: Collation,
    /// A place of its own for values kept between calls.
    pub site: usize,
    /// The virtual table's cursor that it is called on.
    pub cursor: Option<usize>,
    /// The part of the schema in which it stands, in the words of the error message, if it must be pure.
    pub pure: Option<&'static str>,
    /// What it answers is given to a function of the user or a virtual table: a pointer stays one.
    pub passes: bool,
    /// Which arguments are parameters, as a bit set.
    pub bound: u32,
    /// Arguments that may be parameters: its place, and the number of the parameter.
    pub origins: Vec<(usize, usize)>,
}

/// A column of a STRICT table, for [`Opcode::TypeCheck`].
#[derive(Clone, Debug)]
pub struct StrictColumn {
    /// `table.column`, for the message.
    pub name: Rc<str>,
    /// The declared type.
    pub ty: StrictType,
}

/// Types of STRICT columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum StrictType {
    Any,
    Int,
    Integer,
    Real,
    Text,
    Blob,
}

impl StrictType {
    /// The name as written in messages.
    pub fn name(self) -> &'static str {
        match self {
            StrictType::Any => "ANY",
            StrictType::Int => "INT",
            StrictType::Integer => "INTEGER",
            StrictType::Real => "REAL",
            StrictType::Text => "TEXT",
            StrictType::Blob => "BLOB",
        }
    }
}

/// A result column, as the API describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnMeta {
    /// Its name.
    pub name: Rc<str>,
    /// The declared type, for columns of tables.
    pub decltype: Option<Rc<str>>,
    /// Database, table and column it comes from, if it is one.
    pub origin: Option<(Rc<str>, Rc<str>, Rc<str>)>,
}

/// A line of EXPLAIN QUERY PLAN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanLine {
    /// Its number, from 1.
    pub id: i32,
    /// The line below which it stands; 0: none.
    pub parent: i32,
    /// What it says.
    pub detail: String,
    /// The first line of a block that a row source runs: its number among those of the statement.
    pub source: Option<u32>,
}

/// A table that a statement reads or writes, where caches are shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLock {
    /// The database's number.
    pub db: usize,
    /// The root page of the tree with the table's rows.
    pub root: u32,
    /// It is written to.
    pub write: bool,
    /// Its name.
    pub name: Rc<str>,
}

impl P4 {
    /// A collating sequence that something is compared by and that nobody has registered.
    fn missing_collation(&self) -> Option<&Collation> {
        let of_call = |f: &'_ FunctionCall| {
            f.function.flags.has(FunctionFlags::NEEDS_COLLATION) && f.collation.is_missing()
        };
        let mut list: Box<dyn Iterator<Item = &Collation>> = match self {
            P4::Collation(c) => Box::new(std::iter::once(&**c)),
            P4::KeyInfo(k) => Box::new(k.fields.iter().map(|f| &f.coll)),
            P4::Function(f) if of_call(f) => Box::new(std::iter::once(&f.collation)),
            P4::Windows(list) => Box::new(list.iter().flat_map(|w| {
                let calls = w.calls.iter().filter(|c| of_call(&c.0)).map(|c| &c.0.collation);
                w.partition.iter().map(|x| &x.1).chain(w.order.iter().map(|x| &x.1.coll)).chain(calls)
            })),
            _ => return None,
        };
        list.find(|c| c.is_missing())
    }
}

impl Program {
    /// The name of a collating sequence that it or one of its triggers compares by and that nobody has registered.
    pub fn missing_collation(&self) -> Option<&str> {
        let own = self.insns.iter().find_map(|i| i.p4.missing_collation()).map(Collation::name);
        own.or_else(|| self.subprograms.iter().find_map(|p| p.missing_collation()))
    }
}

/// A compiled statement or trigger.
#[derive(Clone, Default)]
pub struct Program {
    /// The instructions; the first is `Init`.
    pub insns: Vec<Insn>,
    /// Registers used, numbered from 1 (register 0 is never used).
    pub registers: usize,
    /// Cursors used, numbered from 0.
    pub cursors: usize,
    /// How many function call sites there are.
    pub sites: usize,
    /// How many `Once` instructions there are.
    pub onces: usize,
    /// Result columns.
    pub columns: Few<ColumnMeta>,
    /// Parameters' names, by number less one.
    pub variables: Few<VariableName>,
    /// Writes nothing to any database file.
    pub readonly: bool,
    /// Changes database files by what it calls, or is of a kind that does, whatever it finds to do.
    pub changes_files: bool,
    /// Needs a statement journal: may fail after having changed something, and change several rows.
    pub needs_statement: bool,
    /// Programs of triggers, which `Program` instructions refer to by number; only in a statement's own program.
    pub subprograms: Vec<Rc<Program>>,
    /// The trigger's name, for a sub-program.
    pub trigger: Option<Rc<str>>,
    /// `EXPLAIN` (1) or `EXPLAIN QUERY PLAN` (2) stood before the statement.
    pub explain: u8,
    /// The lines of its plan, where somebody asks for them.
    pub plan: Vec<PlanLine>,
    /// Databases read or written, as a bit set.
    pub databases: u64,
    /// It depends on what the schemas say, and reads no database whose schema it would find changed.
    pub names_schema: bool,
    /// It opens cursors on virtual tables.
    pub opens_virtual: bool,
    /// It holds virtual tables that want to be let go of early.
    pub holds_tables: bool,
    /// It finds the one row that it reads or changes by a whole unique key: which values it compares decided nothing about it.
    pub finds_one: bool,
    /// Tables to be locked when it begins, those of its triggers included; none where no cache is shared.
    pub locks: Vec<TableLock>,
    /// The change counter belongs to DML: INSERT, UPDATE, DELETE.
    pub counts_changes: bool,
}

impl std::fmt::Debug for P4 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&crate::explain::p4_text(self))
    }
}
