//! What all code generation shares.

use iolite_base::hash::FastMap;
use iolite_base::{Error, Result};
use iolite_bytecode::{Builder, Opcode, P4, Program};
use iolite_catalog::{Index, Table};
use iolite_plan::Planner;
use iolite_plan::bind::Env;
use iolite_plan::bound::*;
use iolite_plan::plan::*;
use iolite_value::KeyInfo;
use std::rc::Rc;

/// Settings of the connection that change what programs do.
#[derive(Clone, Default)]
pub struct Settings {
    /// Schema generation per database: programs notice when it has changed.
    pub generations: Vec<u64>,
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
    /// Into a transient index, as a set, with affinities applied.
    Set { cursor: i32, affinities: Option<Rc<[iolite_value::Affinity]>> },
    /// Out of a transient index.
    Except { cursor: i32 },
    /// The first row into registers.
    Registers { first: i32 },
    /// Sets a register to 1.
    Exists { reg: i32 },
    /// Into the queue of a recursive query.
    Queue(Rc<QueueDest>),
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

/// What stands between the text of one statement and its program.
pub(crate) struct Codegen<'a> {
    pub env: &'a Env<'a>,
    pub settings: &'a Settings,
    pub b: Builder,
    pub plans: FastMap<SubId, SelectPlan>,
    pub places: FastMap<TableId, Place>,
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
    /// Databases touched: (number, written).
    pub databases: Vec<(usize, bool)>,
    /// Lines of EXPLAIN QUERY PLAN are wanted.
    pub notes: bool,
    pub notes_parent: i32,
    pub trigger: Option<crate::trigger::TriggerContext>,
    /// Set where columns of the table being written are read: text is copied out of pages.
    pub copy_columns: bool,
    pub needs_statement: bool,
    pub counts_changes: bool,
    /// Compiled triggers of this statement, by name and conflict policy: recursion refers to them.
    pub trigger_programs: Rc<std::cell::RefCell<crate::trigger::TriggerCache>>,
    pub subquery_count: i32,
    /// A table whose loop must run on this cursor, open for writing.
    pub write_cursor: Option<(TableId, i32)>,
    /// A recursive part is being coded: `Once` would be wrong inside, since its rows change.
    pub no_once: u32,
}

impl<'a> Codegen<'a> {
    pub fn new(env: &'a Env<'a>, settings: &'a Settings) -> Codegen<'a> {
        let mut b = Builder::default();
        b.emit(Opcode::Init, 0, 0, 0);
        Codegen {
            env,
            settings,
            b,
            plans: FastMap::default(),
            places: FastMap::default(),
            known: Vec::new(),
            aggs: FastMap::default(),
            constants: Vec::new(),
            subroutines: FastMap::default(),
            sub_rows: Vec::new(),
            case_bases: Vec::new(),
            ctes: FastMap::default(),
            databases: Vec::new(),
            notes: false,
            notes_parent: 0,
            trigger: None,
            copy_columns: false,
            needs_statement: false,
            counts_changes: false,
            trigger_programs: Default::default(),
            write_cursor: None,
            subquery_count: 0,
            no_once: 0,
        }
    }

    /// A program over the same environment for a trigger: nothing but the compiled triggers is shared.
    pub fn child(&self) -> Codegen<'a> {
        let mut c = Codegen::new(self.env, self.settings);
        c.trigger_programs = self.trigger_programs.clone();
        c
    }

    /// Takes over the plans of nested queries.
    pub fn take_plans(&mut self, p: Planner<'_>) {
        self.plans.extend(p.subplans);
    }

    /// Notes that a database is read.
    pub fn read_database(&mut self, db: usize) {
        if !self.databases.iter().any(|d| d.0 == db) {
            self.databases.push((db, false));
        }
    }

    /// Notes that a database is written.
    pub fn write_database(&mut self, db: usize) {
        match self.databases.iter_mut().find(|d| d.0 == db) {
            Some(d) => d.1 = true,
            None => self.databases.push((db, true)),
        }
    }

    /// Closes the program: `Halt`, then the prologue, to which `Init` jumps: transactions and constants.
    pub fn finish(mut self, limit: usize) -> Result<Program> {
        self.b.emit(Opcode::Halt, 0, 0, 0);
        self.b.jump_here(0);
        self.databases.sort_unstable();
        let (mut wrote, mut mask) = (false, 0u64);
        if self.trigger.is_none() {
            for (db, write) in std::mem::take(&mut self.databases) {
                let schema = &self.env.catalog.schemas[db];
                let generation = self.settings.generations.get(db).copied().unwrap_or(0);
                self.b.emit4(
                    Opcode::Transaction,
                    db as i32,
                    write as i32,
                    schema.cookie as i32,
                    P4::Int(generation as i64),
                );
                wrote |= write;
                mask |= 1 << db;
            }
        }
        let mut done = 0;
        while done < self.constants.len() {
            let (e, reg) = self.constants[done].clone();
            done += 1;
            self.expr_compute(&e, reg)?;
        }
        self.b.emit(Opcode::Goto, 0, 1, 0);
        let (needs_statement, counts) = (self.needs_statement, self.counts_changes);
        let subprograms =
            if self.trigger.is_none() { self.trigger_programs.borrow().programs() } else { Vec::new() };
        let mut p = self.b.finish(limit)?;
        p.subprograms = subprograms;
        p.needs_statement = needs_statement;
        p.counts_changes = counts;
        p.readonly = !wrote;
        p.databases = mask;
        Ok(p)
    }

    /// A line of EXPLAIN QUERY PLAN below the present parent; answers its number.
    pub fn note(&mut self, text: impl FnOnce() -> String) -> i32 {
        if !self.notes {
            return 0;
        }
        let id = self.b.here() as i32;
        self.b.emit4(Opcode::Explain, id, self.notes_parent, 0, P4::Name(text().into()));
        id
    }

    /// As [`Codegen::note`], and makes the line the parent of those that follow; answers the former parent.
    pub fn push_note(&mut self, text: impl FnOnce() -> String) -> i32 {
        let former = self.notes_parent;
        self.notes_parent = self.note(text);
        former
    }

    /// The instructions that yield all rows of a source.
    pub fn source_rows(&mut self, width: usize, source: iolite_ext::SourceFactory) {
        let cursor = self.b.cursor();
        let first = self.b.regs(width.max(1));
        self.b.emit4(Opcode::SourceOpen, cursor, 0, 0, P4::Source(source));
        let end = self.b.label();
        let top = self.b.here();
        self.b.jump(Opcode::SourceNext, cursor, end, first);
        self.b.p5(width as u16);
        if width > 0 {
            self.b.emit(Opcode::ResultRow, first, width as i32, 0);
        }
        self.b.emit(Opcode::Goto, 0, top as i32, 0);
        self.b.place(end);
    }

    /// An error for a form that is parsed but not compiled yet.
    pub fn unsupported<T>(&self, what: &str) -> Result<T> {
        Err(Error::sql(format!("{what} is not supported yet")))
    }
}
