//! What all code generation shares.

use iolite_base::hash::FastMap;
use iolite_base::{Error, Few, Result};
use iolite_bytecode::{Builder, Mark, Opcode, P4, Program};
use iolite_catalog::{Index, Table};
use iolite_plan::Planner;
use iolite_plan::bind::Env;
use iolite_plan::bound::*;
use iolite_plan::plan::*;
use iolite_value::KeyInfo;
use std::rc::Rc;

/// Where the lines of EXPLAIN QUERY PLAN are.
#[derive(Clone, Copy, Default)]
pub(crate) struct Notes {
    /// They are wanted.
    pub on: bool,
    /// The line below which the next one stands; 0: none.
    pub parent: i32,
    /// The line for which the present instructions work; 0: none.
    pub line: i32,
}

/// Settings of the connection that change what programs do.
#[derive(Clone, Default)]
pub struct Settings {
    /// Schema generation per database: programs notice when it has changed.
    pub generations: Rc<Vec<u64>>,
    /// `PRAGMA recursive_triggers`.
    pub recursive_triggers: bool,
    /// `PRAGMA count_changes`.
    pub count_changes: bool,
    /// `PRAGMA ignore_check_constraints`.
    pub ignore_checks: bool,
    /// `PRAGMA writable_schema`.
    pub writable_schema: bool,
    /// `PRAGMA reverse_unordered_selects`.
    pub reverse_unordered: bool,
    /// `PRAGMA lookahead_filters = off`: no Bloom filters.
    pub no_filters: bool,
    /// The statement runs as part of a schema change of the engine's own.
    pub nested: bool,
    /// Who may take whole arms over; none: all run as programs.
    pub door: Option<Rc<dyn crate::door::Door>>,
}

/// Where a table's present row is.
#[derive(Clone)]
pub(crate) enum Place {
    /// A cursor on a stored table; columns that an index holds are read from it if one is given.
    Table { cursor: i32, table: Rc<Table>, index: Option<(i32, Rc<Index>)>, index_only: bool },
    /// A cursor whose fields are the columns, `offset` fields behind.
    Fields { cursor: i32, offset: i32 },
    /// A cursor on an automatic index: the fields hold these columns, then the rowid.
    Auto { cursor: i32, columns: Vec<i32> },
    /// Registers: the rowid at `rowid` (0: none), column `i` at `first + i`.
    Registers { rowid: i32, first: i32 },
    /// A virtual table's cursor.
    Virtual { cursor: i32 },
}

/// Where rows of a query go.
#[derive(Clone)]
pub(crate) enum Dest {
    /// To the caller.
    Output,
    /// Into registers, then `Yield`.
    Coroutine { yield_reg: i32, first: i32 },
    /// Into a transient table.
    Table { cursor: i32 },
    /// Into a transient tree under the key of the row that is to be changed, which the first `keys` results are; a later
    /// row with the same key takes the place of an earlier one.
    Keyed { cursor: i32, keys: usize, rowid: bool },
    /// Into a transient index, as a set, with affinities applied.
    Set { cursor: i32, affinities: Option<Rc<[iolite_value::Affinity]>> },
    /// Into a set that is only asked what is in it, with affinities applied.
    Members { set: i32, affinities: Rc<[iolite_value::Affinity]> },
    /// Out of a transient index.
    Except { cursor: i32 },
    /// The first row into registers.
    Registers { first: i32 },
    /// Sets a register to 1.
    Exists { reg: i32 },
    /// Into the queue of a recursive query.
    Queue(Rc<QueueDest>),
    /// Into a list of rows for window functions.
    Window { cursor: i32 },
    /// Nowhere (a SELECT in a trigger).
    Discard,
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

/// Where the tables' present rows are: a list, since there are few.
#[derive(Default)]
pub struct Places(Few<(TableId, Place)>);

impl Places {
    /// Where the table's row is.
    pub fn get(&self, id: TableId) -> Option<&Place> {
        self.0.iter().find(|p| p.0 == id).map(|p| &p.1)
    }

    /// Says where it is; answers where it was.
    pub fn insert(&mut self, id: TableId, place: Place) -> Option<Place> {
        match self.0.iter_mut().find(|p| p.0 == id) {
            Some(p) => Some(std::mem::replace(&mut p.1, place)),
            None => {
                self.0.push((id, place));
                None
            }
        }
    }

    /// Forgets the table.
    pub fn remove(&mut self, id: TableId) -> Option<Place> {
        let at = self.0.iter().position(|p| p.0 == id)?;
        Some(self.0.several().swap_remove(at).1)
    }
}

/// What stands between the text of one statement and its program.
pub(crate) struct Codegen<'a> {
    pub env: &'a Env<'a>,
    pub settings: &'a Settings,
    pub b: Builder,
    pub plans: FastMap<SubId, SelectPlan>,
    pub places: Places,
    /// Expressions whose values stand in registers.
    pub known: Vec<(Expr, i32)>,
    pub aggs: FastMap<AggId, i32>,
    /// Constants loaded in the prologue.
    pub constants: Vec<(Expr, i32)>,
    pub subroutines: FastMap<SubId, Subroutine>,
    /// Rows of nested queries computed just before.
    pub sub_rows: Vec<(SubId, i32)>,
    pub case_bases: Vec<i32>,
    /// Stored common table expressions, by number: what stores them, `first` being the cursor.
    pub ctes: FastMap<u32, Subroutine>,
    /// Databases touched, a bit each.
    pub databases: u64,
    /// Those of them that are written.
    pub written: u64,
    pub notes: Notes,
    pub trigger: Option<crate::trigger::TriggerContext>,
    /// Set where columns of the table being written are read: text is copied out of pages.
    pub copy_columns: bool,
    pub needs_statement: bool,
    pub counts_changes: bool,
    /// Compiled triggers of this statement, by name and conflict policy: recursion refers to them.
    /// Tables with AUTOINCREMENT that the statement or its triggers insert into.
    pub sequences: std::cell::OnceCell<crate::autoincrement::Sequences>,
    pub trigger_programs: Option<Rc<std::cell::RefCell<crate::trigger::TriggerCache>>>,
    pub subquery_count: i32,
    /// A table whose loop must run on this cursor, open for writing.
    pub write_cursor: Option<(TableId, i32)>,
    /// `PRAGMA reverse_unordered_selects` holds for the loops being opened.
    pub scan_backwards: bool,
    /// A recursive part is being coded: `Once` would be wrong inside, since its rows change.
    pub no_once: u32,
    /// Sources that are asked in the prologue whether tables are small as they were.
    pub watches: Vec<iolite_ext::SourceFactory>,
}

impl<'a> Codegen<'a> {
    pub fn new(env: &'a Env<'a>, settings: &'a Settings) -> Codegen<'a> {
        let mut b = Builder::new();
        b.emit(Opcode::Init, 0, 0, 0);
        Codegen {
            env,
            settings,
            b,
            plans: FastMap::default(),
            places: Places::default(),
            known: Vec::new(),
            aggs: FastMap::default(),
            constants: Vec::new(),
            subroutines: FastMap::default(),
            sub_rows: Vec::new(),
            case_bases: Vec::new(),
            ctes: FastMap::default(),
            databases: 0,
            written: 0,
            notes: Notes::default(),
            trigger: None,
            copy_columns: false,
            needs_statement: false,
            counts_changes: false,
            trigger_programs: None,
            sequences: Default::default(),
            write_cursor: None,
            subquery_count: 0,
            no_once: 0,
            scan_backwards: false,
            watches: Vec::new(),
        }
    }

    /// A program over the same environment for a trigger: nothing but the compiled triggers is shared.
    pub fn child(&self) -> Codegen<'a> {
        let mut c = Codegen::new(self.env, self.settings);
        c.trigger_programs = self.trigger_programs.clone();
        c.sequences = self.sequences.get_or_init(Default::default).clone().into();
        c
    }

    /// Takes over the plans of nested queries.
    pub fn take_plans(&mut self, p: Planner<'_>) {
        self.plans.extend(p.subplans);
    }

    /// Notes that a database is read.
    pub fn read_database(&mut self, db: usize) {
        self.databases |= 1 << db;
    }

    /// Notes that a database is written.
    pub fn write_database(&mut self, db: usize) {
        self.databases |= 1 << db;
        self.written |= 1 << db;
    }

    /// Closes the program: `Halt`, then the prologue, to which `Init` jumps: transactions and constants.
    pub fn finish(&mut self, limit: usize, program: &mut Program) -> Result<()> {
        self.resume(0);
        self.b.emit(Opcode::Halt, 0, 0, 0);
        self.b.jump_here(0);
        let mask = if self.trigger.is_none() { self.databases } else { 0 };
        if mask != 0 {
            for db in (0..self.env.catalog.schemas.len()).filter(|db| mask & 1 << db != 0) {
                let write = self.written & 1 << db != 0;
                let schema = &self.env.catalog.schemas[db];
                let generation = self.settings.generations.get(db).copied().unwrap_or(0);
                self.b.emit4(
                    Opcode::Transaction,
                    db as i32,
                    write as i32,
                    schema.cookie as i32,
                    P4::Int(generation as i64),
                );
            }
        }
        for watch in std::mem::take(&mut self.watches) {
            let (cursor, on) = (self.b.cursor(), self.b.label());
            self.b.jump4(Opcode::SourceOpen, cursor, on, 0, P4::Source(watch));
            self.b.place(on);
        }
        if self.trigger.is_none() {
            self.read_sequences()?;
        }
        self.load_constants(0)?;
        self.b.emit(Opcode::Goto, 0, 1, 0);
        self.b.finish(limit, program)?;
        if self.trigger.is_none()
            && let Some(t) = &self.trigger_programs
        {
            program.subprograms = t.borrow().programs();
        }
        program.needs_statement = self.needs_statement;
        program.counts_changes = self.counts_changes;
        program.readonly = mask & self.written == 0;
        program.databases = mask;
        Ok(())
    }

    /// Computes the constants from number `first` on, and those that they need.
    pub fn load_constants(&mut self, first: usize) -> Result<()> {
        let mut next = first;
        while next < self.constants.len() {
            let (e, reg) = self.constants[next].clone();
            next += 1;
            self.expr_compute(&e, reg)?;
        }
        Ok(())
    }

    /// A line of EXPLAIN QUERY PLAN below the present parent; answers its number.
    pub fn note(&mut self, text: impl FnOnce() -> String) -> i32 {
        if !self.notes.on {
            return 0;
        }
        let id = self.b.here() as i32;
        let line = Mark::Line as i32;
        self.b.emit4(Opcode::Explain, id, self.notes.parent, line, P4::Name(text().into()));
        self.notes.line = id;
        id
    }

    /// As [`Codegen::note`], and makes the line the parent of those that follow, up to [`Codegen::pop_note`] with the answer.
    pub fn push_note(&mut self, text: impl FnOnce() -> String) -> Notes {
        let former = self.notes;
        self.notes.parent = self.note(text);
        former
    }

    /// Goes on with the lines where [`Codegen::push_note`] left them.
    pub fn pop_note(&mut self, former: Notes) {
        self.notes.parent = former.parent;
        self.resume(former.line);
    }

    /// What follows works for that line of the plan; 0: for none.
    pub fn resume(&mut self, line: i32) {
        if self.notes.on && self.notes.line != line {
            self.b.emit(Opcode::Explain, line, 0, Mark::Resume as i32);
            self.notes.line = line;
        }
    }

    /// A row of the present line of the plan begins here.
    pub fn row_begins(&mut self) {
        if self.notes.on {
            self.b.emit(Opcode::Explain, self.notes.line, 0, Mark::Row as i32);
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
