//! What all code generation shares.

use crate::settings::Settings;
use iolite_base::{Encoding, Error, Few, Result};
use iolite_bytecode::{Builder, Mark, Opcode, P4, Program};
use iolite_catalog::{ColumnSource, Index, Table};
use iolite_plan::StatementPlan;
use iolite_plan::bind::{Target, TargetIndex};
use iolite_plan::bound::*;
use iolite_plan::explain::{Lines, Part, Role};
use iolite_plan::plan::{NestedPlans, VtabHandle};
use iolite_plan::statement::{DatabaseUse, Sequence, TriggerPlan};
use iolite_value::KeyInfo;
use std::rc::Rc;

/// Which line of EXPLAIN QUERY PLAN instructions work for, in a program that is to be profiled.
pub(crate) struct Marks<'p> {
    lines: &'p Lines,
    /// The present line; 0: none.
    line: i32,
}

/// A row in registers.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    /// The rowid (of a rowid table).
    pub rowid: i32,
    /// Column `i` is in `first + i`.
    pub first: i32,
}

/// Where a table's present row is.
#[derive(Clone)]
pub(crate) enum Place {
    /// A cursor on a stored table; columns that an index holds are read from it if one is given.
    Table {
        cursor: i32,
        table: Rc<Table>,
        binding: Option<Rc<TableBinding>>,
        index: Option<(i32, Rc<Index>)>,
        /// Expressions whose values are in fields of the index.
        held: Option<Rc<Held>>,
        index_only: bool,
    },
    /// A cursor whose fields are the columns, `offset` fields behind.
    Fields { cursor: i32, offset: i32 },
    /// A cursor on an automatic index: the fields hold these columns, then the rowid.
    Auto { cursor: i32, columns: Vec<i32> },
    /// Registers: the rowid at `rowid` (0: none), column `i` at `first + i`.
    Registers { rowid: i32, first: i32 },
    /// A virtual table's cursor.
    Virtual { cursor: i32 },
}

impl Place {
    /// The row under the cursor of a table that is written.
    pub fn of_target(cursor: i32, t: &Target) -> Place {
        let (table, binding) = (t.table.clone(), t.binding.clone());
        Place::Table { cursor, table, binding, index: None, held: None, index_only: false }
    }

    /// The row under the cursor of a table that is read.
    pub fn of_source(cursor: i32, s: &Source, table: &Rc<Table>) -> Place {
        let (table, binding) = (table.clone(), s.binding.clone());
        Place::Table { cursor, table, binding, index: None, held: None, index_only: false }
    }

    /// A row in registers.
    pub fn of_row(r: Row) -> Place {
        Place::Registers { rowid: r.rowid, first: r.first }
    }

    /// The first of the registers in which the columns of an index stand in a row already.
    pub fn entry(&self, t: &Target, i: &TargetIndex) -> Option<i32> {
        let Place::Registers { first, .. } = self else { return None };
        let column = |c: &iolite_catalog::IndexColumn| match c.source {
            ColumnSource::Column(k) if t.table.rowid_alias != Some(k) => Some(k),
            _ => None,
        };
        let from = column(i.index.columns.first()?)?;
        let in_a_row = i.index.columns.iter().enumerate().all(|(n, c)| column(c) == Some(from + n));
        in_a_row.then_some(*first + from as i32)
    }
}

/// Where rows of a query go.
#[derive(Clone)]
pub(crate) enum Dest {
    /// To the caller.
    Output,
    /// Into registers, then `Yield`.
    Coroutine { yield_reg: i32, first: i32 },
    /// Into a transient table, or a new one with affinities applied.
    Table { cursor: i32, affinities: Option<Rc<[iolite_value::Affinity]>> },
    /// Into a transient tree under the key of the row that is to be changed, which the first `keys` results are; a later
    /// row with the same key takes the place of an earlier one.
    Keyed { cursor: i32, keys: usize, rowid: bool },
    /// Into a transient index, as a set, with affinities applied.
    Set { cursor: i32, affinities: Option<Rc<[iolite_value::Affinity]>> },
    /// Into a set that is only asked what is in it, with affinities applied.
    Members { set: i32, affinities: Rc<[iolite_value::Affinity]> },
    /// The first row into registers.
    Registers { first: i32 },
    /// Sets a register to 1.
    Exists { reg: i32 },
    /// Into the queue of a recursive query.
    Queue(Rc<QueueDest>),
    /// Into a list of rows for window functions. Where rows may come out of it before all are there, `step` is the subroutine
    /// that passes them on, and the register with its return address.
    Window { cursor: i32, step: Option<(i32, iolite_bytecode::Label)> },
    /// Nowhere (a SELECT in a trigger).
    Discard,
}

/// Cursors, open for writing, on which the loop over a table runs.
#[derive(Clone)]
pub(crate) struct Along {
    pub id: TableId,
    pub table: i32,
    /// That of an index, if the loop goes along this one.
    pub index: Option<(Rc<iolite_catalog::Index>, i32)>,
}

/// The queue of a recursive query.
pub(crate) struct QueueDest {
    pub cursor: i32,
    /// Set of all rows seen, for UNION.
    pub distinct: Option<i32>,
    /// Order of the queue: result columns, and the key description of `[keys, sequence]`.
    pub order: Vec<(usize, usize)>,
    pub key: Option<Rc<KeyInfo>>,
}

/// A register that may have to be given back.
#[derive(Clone, Copy)]
pub(crate) struct Val {
    pub reg: i32,
    pub temp: bool,
}

/// A nested query that was coded as a subroutine.
#[derive(Clone, Copy)]
pub(crate) struct Subroutine {
    pub address: i32,
    pub return_reg: i32,
    pub first: i32,
}

/// An expression that the prologue computes.
#[derive(Clone)]
pub(crate) struct Constant {
    pub expr: Expr,
    /// Of how many expressions it consists: those of other sizes are others.
    pub size: usize,
    pub reg: i32,
}

/// Values by number: a list, since a statement has few of each.
pub struct Numbered<T>(Few<(u32, T)>);

/// Where the tables' present rows are.
pub type Places = Numbered<Place>;

impl<T> Default for Numbered<T> {
    fn default() -> Numbered<T> {
        Numbered(Few::new())
    }
}

impl<T> Numbered<T> {
    /// The value of a number.
    pub fn get(&self, id: u32) -> Option<&T> {
        self.0.iter().find(|p| p.0 == id).map(|p| &p.1)
    }

    /// All of them.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|p| &p.1)
    }

    /// Sets it; answers what it was.
    pub fn insert(&mut self, id: u32, value: T) -> Option<T> {
        match self.0.iter_mut().find(|p| p.0 == id) {
            Some(p) => Some(std::mem::replace(&mut p.1, value)),
            None => {
                self.0.push((id, value));
                None
            }
        }
    }

    /// Forgets it.
    pub fn remove(&mut self, id: u32) -> Option<T> {
        let at = self.0.iter().position(|p| p.0 == id)?;
        Some(self.0.several().swap_remove(at).1)
    }
}

/// What stands between the plan of one statement and its program.
pub(crate) struct Codegen<'p> {
    pub settings: &'p Settings,
    pub encoding: Encoding,
    pub b: Builder,
    /// The plans of nested queries.
    pub nested: &'p NestedPlans,
    /// The triggers, by the numbers of their programs.
    pub triggers: &'p [TriggerPlan],
    /// The tables whose rowids the statement counts on.
    pub sequences: &'p [Sequence],
    /// Their cursors on `sqlite_sequence`.
    pub sequence_cursors: Vec<i32>,
    databases: &'p [DatabaseUse],
    virtual_tables: &'p [Rc<VtabHandle>],
    pub places: Places,
    /// Expressions whose values stand in registers.
    pub known: Vec<(Expr, i32)>,
    pub aggs: Numbered<i32>,
    /// Constants loaded in the prologue.
    pub constants: Vec<Constant>,
    /// What is coded is part of a large constant.
    pub inline: bool,
    pub subroutines: Numbered<Subroutine>,
    /// Rows of nested queries computed just before.
    pub sub_rows: Vec<(SubId, i32)>,
    pub case_bases: Vec<i32>,
    /// Stored common table expressions, by number: what stores them, `first` being the cursor.
    pub ctes: Numbered<Subroutine>,
    pub marks: Option<Marks<'p>>,
    /// The program is a trigger's.
    pub in_trigger: bool,
    /// RETURNING is computed: `last_insert_rowid()` and its like differ from row to row.
    pub in_returning: bool,
    /// What the call computed next answers is an argument, see [`Codegen::argument_to`].
    pub passes: bool,
    /// The tables' places have indexes that hold expressions.
    pub reads_held: bool,
    /// What is computed next goes to a function that sees subtypes, which no index holds.
    pub subtypes: bool,
    /// Violations of foreign keys are counted.
    pub counts_keys: bool,
    /// Where rows of a view that are changed are counted, for `PRAGMA count_changes`.
    pub counted: Option<i32>,
    /// Set where columns of the table being written are read: text is copied out of pages.
    pub copy_columns: bool,
    /// A table whose loop must run on these cursors, open for writing.
    pub along: Option<Along>,
    /// `PRAGMA reverse_unordered_selects` holds for the loops being opened.
    pub scan_backwards: bool,
    /// There are cursors on virtual tables.
    pub opens_virtual: bool,
    /// Some of them want to be let go of early.
    pub holds_tables: bool,
    /// Sources that are asked in the prologue whether tables are small as they were.
    pub watches: Vec<iolite_ext::SourceFactory>,
}

impl<'p> Codegen<'p> {
    /// A row of a view has been changed.
    pub fn count_row(&mut self) {
        if let Some(count) = self.counted {
            let one = self.b.reg();
            self.b.emit(Opcode::Integer, 1, one, 0);
            self.b.emit(Opcode::Add, one, count, count);
        }
    }

    pub fn new(plan: &'p StatementPlan, settings: &'p Settings) -> Codegen<'p> {
        let mut b = Builder::new();
        b.emit(Opcode::Init, 0, 0, 0);
        Codegen {
            settings,
            encoding: plan.encoding,
            b,
            nested: &plan.nested,
            triggers: &plan.triggers,
            sequences: &plan.sequences,
            sequence_cursors: Vec::new(),
            counted: None,
            databases: &plan.databases,
            virtual_tables: &plan.virtual_tables,
            places: Places::default(),
            known: Vec::new(),
            aggs: Numbered::default(),
            constants: Vec::new(),
            inline: false,
            subroutines: Numbered::default(),
            sub_rows: Vec::new(),
            case_bases: Vec::new(),
            ctes: Numbered::default(),
            marks: None,
            in_trigger: false,
            in_returning: false,
            passes: false,
            reads_held: false,
            subtypes: false,
            counts_keys: plan.counts_keys,
            copy_columns: false,
            along: None,
            scan_backwards: false,
            opens_virtual: false,
            holds_tables: plan.virtual_tables.iter().any(|t| !t.0.holds_nothing()),
            watches: Vec::new(),
        }
    }

    /// Closes the program: `Halt`, then the prologue, to which `Init` jumps: transactions and constants.
    pub fn finish(&mut self, limit: usize, program: &mut Program) -> Result<()> {
        self.resume(0);
        self.b.emit(Opcode::Halt, 0, 0, 0);
        self.b.jump_here(0);
        let databases = if self.in_trigger { &[] } else { self.databases };
        for d in databases {
            let generation = self.settings.generations.get(d.db).copied().unwrap_or(0);
            let (db, written, cookie) = (d.db as i32, d.written as i32, d.cookie as i32);
            self.b.emit4(Opcode::Transaction, db, written, cookie, P4::Int(generation as i64));
        }
        for t in if self.in_trigger { &[] } else { self.virtual_tables } {
            self.b.emit4(Opcode::VBegin, 0, 0, 0, P4::VirtualTable(t.0.clone()));
        }
        for watch in std::mem::take(&mut self.watches) {
            let (cursor, on) = (self.b.cursor(), self.b.label());
            self.b.jump4(Opcode::SourceOpen, cursor, on, 0, P4::Source(watch));
            self.b.place(on);
        }
        if !self.in_trigger {
            self.read_sequences()?;
        }
        self.load_constants(0)?;
        self.b.emit(Opcode::Goto, 0, 1, 0);
        self.b.finish(limit, program)?;
        program.readonly = !databases.iter().any(|d| d.written);
        (program.opens_virtual, program.holds_tables) = (self.opens_virtual, self.holds_tables);
        program.databases = databases.iter().fold(0, |mask, d| mask | 1 << d.db);
        Ok(())
    }

    /// Computes the constants from number `first` on, and those that they need.
    pub fn load_constants(&mut self, first: usize) -> Result<()> {
        let mut next = first;
        while next < self.constants.len() {
            let Constant { expr, size, reg } = self.constants[next].clone();
            next += 1;
            self.compute_constant(&expr, size, reg)?;
        }
        Ok(())
    }

    /// Has the program say for which of these lines its instructions work.
    pub fn mark_lines(&mut self, lines: &'p Lines) {
        self.marks = Some(Marks { lines, line: 0 });
    }

    /// What follows works for the line that tells of a part of the plan, if one does; answers the line before it, for
    /// [`Codegen::resume`].
    pub fn begin<T>(&mut self, part: &T, role: Role) -> i32 {
        self.begin_part(Part::new(part, role))
    }

    /// As [`Codegen::begin`].
    pub fn begin_part(&mut self, part: Part) -> i32 {
        let Some(m) = &mut self.marks else { return 0 };
        let former = m.line;
        if let Some(line) = m.lines.of(part) {
            m.line = line;
            self.b.emit(Opcode::Explain, line, 0, Mark::Line as i32);
        }
        former
    }

    /// The present line; 0: none.
    pub fn present_line(&self) -> i32 {
        self.marks.as_ref().map_or(0, |m| m.line)
    }

    /// What follows works for that line of the plan; 0: for none.
    pub fn resume(&mut self, line: i32) {
        if let Some(m) = &mut self.marks
            && m.line != line
        {
            m.line = line;
            self.b.emit(Opcode::Explain, line, 0, Mark::Resume as i32);
        }
    }

    /// What follows works for the present line again, after a subroutine that worked for another.
    pub fn returned(&mut self) {
        if let Some(m) = &self.marks {
            self.b.emit(Opcode::Explain, m.line, 0, Mark::Resume as i32);
        }
    }

    /// A row of the present line of the plan begins here.
    pub fn row_begins(&mut self) {
        if let Some(m) = &self.marks {
            self.b.emit(Opcode::Explain, m.line, 0, Mark::Row as i32);
        }
    }

    /// The instructions that yield all rows of a source, which is given the values of `given` registers from `from` on.
    pub fn source_rows(&mut self, width: usize, source: iolite_ext::SourceFactory, from: i32, given: usize) {
        let cursor = self.b.cursor();
        let first = self.b.regs(width.max(1));
        self.b.emit4(Opcode::SourceOpen, cursor, 0, from, P4::Source(source));
        self.b.p5(given as u16);
        let end = self.b.label();
        let top = self.b.here();
        self.b.jump(Opcode::SourceNext, cursor, end, first);
        self.b.p5(width as u16);
        self.b.emit(Opcode::ResultRow, first, width as i32, 0);
        self.b.emit(Opcode::Goto, 0, top as i32, 0);
        self.b.place(end);
    }

    /// An error for a form that is parsed but not compiled yet.
    pub fn unsupported<T>(&self, what: &str) -> Result<T> {
        Err(Error::sql(format!("{what} is not supported yet")))
    }
}

/// An error that no statement should ever see.
pub(crate) fn internal(what: &str) -> Error {
    Error::new(iolite_base::Code::Internal, format!("code generation: {what}"))
}
