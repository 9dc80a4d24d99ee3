//! Prepared statements.

use crate::compile::compile_text;
use crate::connection::{Connection, Inner};
use crate::listing::{Listing, Ran};
use crate::running::Running;
use crate::txn::{Outcome, RowCounts};
use iolite_base::{Code, Error, Limit, Result, raw_text};
use iolite_bytecode::{ColumnMeta, Program};
use iolite_ext::{Instruction, StatementFacts};
use iolite_sql::ast::ExplainMode;
use iolite_value::Value;
use iolite_vdbe::{Action, Outcome as Stop, Profile, Vm};
use std::cell::Cell;
use std::rc::Rc;

/// What a step ended with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A row is there.
    Row,
    /// The statement has run to its end.
    Done,
}

/// What a statement counts (`sqlite3_stmt_status`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatementCounter {
    /// Steps forward through all of a table or index.
    FullScanSteps,
    /// Sorts.
    Sorts,
    /// Rows put into automatic indexes.
    AutoIndexRows,
    /// Instructions of its program.
    Instructions,
    /// How often it was compiled anew.
    Recompiled,
    /// How often it was run.
    Runs,
    /// Rows that a Bloom filter let pass.
    FilterMisses,
    /// Rows that a Bloom filter kept out.
    FilterHits,
}

/// A prepared statement.
pub struct Statement {
    conn: Rc<Inner>,
    sql: Rc<str>,
    vm: Machine,
    run: Option<Running>,
    /// EXPLAIN's rows instead of the program's.
    listing: Option<Listing>,
    done: bool,
    writes: bool,
    /// A function of the user has panicked in it: what it has done so far is undone when it ends.
    unwound: Cell<bool>,
    /// Compiled anew when the schema has changed.
    renews: bool,
    runs: u64,
    recompiled: u64,
    /// The program's parameters are literals of the text: nobody else knows of them.
    literals: bool,
    /// What is asked for instead of what the text says.
    explains: Option<ExplainMode>,
    /// What a program was compiled for that depends on schemas and begins no transaction: it does not look by itself.
    generations: Option<Rc<Vec<u64>>>,
    /// The connection's count of expiries when it was compiled; [`STALE`] where its schema has turned out to be another.
    expiry: u64,
    /// A lock that it needs to begin was another's. The run goes on: the next step tries to begin again.
    waits: Option<Error>,
}

/// The expiry of a statement whose schema has turned out to be another.
const STALE: u64 = u64::MAX;

/// The statement's machine; there until the statement is dropped, when its memory goes to the connection's next one.
struct Machine(Option<Box<Vm>>);

impl std::ops::Deref for Machine {
    type Target = Vm;

    #[inline]
    fn deref(&self) -> &Vm {
        self.0.as_deref().expect("a statement has its machine")
    }
}

impl std::ops::DerefMut for Machine {
    #[inline]
    fn deref_mut(&mut self) -> &mut Vm {
        self.0.as_deref_mut().expect("a statement has its machine")
    }
}

/// Says, when it is dropped, that a panic goes through a step. A step that returns forgets it.
struct Unwinding<'s>(&'s Cell<bool>);

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

/// How often a statement is compiled anew because the schema has changed under it.
const MAX_RETRY: u32 = 50;

impl Statement {
    pub(crate) fn new(conn: &Connection, sql: &str, program: Rc<Program>) -> Result<Statement> {
        let writes = !program.readonly;
        let listing = match program.explain {
            0 => None,
            kind => Some(Listing::new(&program, kind)?),
        };
        let generations = program.names_schema.then(|| conn.0.generations.borrow().clone());
        let vm = match conn.0.spare_vm.take() {
            Some(mut vm) => {
                vm.renew(program);
                vm
            }
            None => Box::new(Vm::new(program)),
        };
        let vm = Machine(Some(vm));
        Ok(Statement {
            conn: conn.0.clone(),
            sql: sql.into(),
            vm,
            run: None,
            listing,
            done: false,
            writes,
            unwound: Cell::new(false),
            renews: true,
            runs: 0,
            recompiled: 0,
            literals: false,
            explains: None,
            generations,
            expiry: conn.0.expired.get(),
            waits: None,
        })
    }

    /// A statement whose program has parameters in the place of its text's literals, which are `values`.
    pub(crate) fn with_values(
        conn: &Connection,
        sql: &str,
        program: Rc<Program>,
        values: Vec<Value>,
    ) -> Result<Statement> {
        let mut s = Statement::new(conn, sql, program)?;
        debug_assert_eq!(s.vm.params.len(), values.len());
        s.vm.params = values;
        s.literals = true;
        Ok(s)
    }

    /// Answers `SQLITE_SCHEMA` when the schema has changed, instead of being compiled anew.
    pub fn keep_program(&mut self) {
        self.renews = false;
    }

    /// The statement's text.
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// The statement's text as it was given: bytes that need not be UTF-8.
    pub fn sql_bytes(&self) -> std::borrow::Cow<'_, [u8]> {
        iolite_base::raw_text::decode(&self.sql)
    }

    /// The connection.
    pub fn connection(&self) -> Connection {
        Connection(self.conn.clone())
    }

    /// The compiled program.
    pub fn program(&self) -> &Program {
        self.vm.program()
    }

    /// The program as EXPLAIN lists it.
    pub fn explain(&self) -> Vec<Instruction> {
        iolite_bytecode::explain(self.vm.program())
    }

    /// Whether the statement leaves all database files as they are.
    pub fn is_readonly(&self) -> bool {
        !self.writes && !self.vm.program().changes_files
    }

    /// What a counter says; sets it back to zero if `reset`.
    pub fn counter(&mut self, which: StatementCounter, reset: bool) -> u64 {
        self.vm.settle_counters();
        let c = &mut self.vm.counters;
        let cell = match which {
            StatementCounter::FullScanSteps => &mut c.fullscan_steps,
            StatementCounter::Sorts => &mut c.sorts,
            StatementCounter::AutoIndexRows => &mut c.auto_index_rows,
            StatementCounter::Instructions => &mut c.vm_steps,
            StatementCounter::Recompiled => &mut self.recompiled,
            StatementCounter::Runs => {
                self.runs += std::mem::take(&mut c.triggers);
                &mut self.runs
            }
            StatementCounter::FilterMisses => &mut c.filter_misses,
            StatementCounter::FilterHits => &mut c.filter_hits,
        };
        if reset { std::mem::take(cell) } else { *cell }
    }

    /// What is known about it.
    pub fn facts(&mut self) -> StatementFacts {
        use StatementCounter as C;
        StatementFacts {
            sql: raw_text::decode(&self.sql).into_owned(),
            columns: self.columns().len(),
            readonly: self.is_readonly(),
            busy: self.is_busy(),
            full_scan_steps: self.counter(C::FullScanSteps, false),
            sorts: self.counter(C::Sorts, false),
            auto_index_rows: self.counter(C::AutoIndexRows, false),
            instructions: self.counter(C::Instructions, false),
            recompiled: self.counter(C::Recompiled, false),
            runs: self.counter(C::Runs, false),
            memory: self.memory_used(),
        }
    }

    /// About how many bytes its program takes.
    pub fn memory_used(&self) -> usize {
        let p = self.vm.program();
        let programs = std::iter::once(p).chain(&p.subprograms);
        let instructions: usize = programs.map(|p| p.insns.len()).sum();
        size_of::<Statement>() + self.sql.len() + instructions * size_of::<iolite_bytecode::Insn>()
    }

    /// Whether the statement counts the rows that it changes.
    pub fn counts_changes(&self) -> bool {
        self.vm.program().counts_changes
    }

    /// How many parameters there are.
    pub fn parameter_count(&self) -> usize {
        self.bindings().len()
    }

    /// A parameter's name, with its leading sign.
    pub fn parameter_name(&self, i: usize) -> Option<&str> {
        self.vm.program().variables.get(i.checked_sub(1)?)?.as_deref()
    }

    /// The number of the parameter with this name.
    pub fn parameter_index(&self, name: &str) -> Option<usize> {
        self.vm.program().variables.iter().position(|v| v.as_deref() == Some(name)).map(|i| i + 1)
    }

    /// Sets a parameter, counted from 1.
    pub fn bind(&mut self, i: usize, v: Value) -> Result<()> {
        let length = if let Value::Text(b, _) | Value::Blob(b, _) = &v { b.len() } else { 0 };
        *self.binding(i, length)? = v;
        Ok(())
    }

    /// The place of a parameter's value, by its number from 1, for a value of so many bytes.
    #[inline]
    pub fn binding(&mut self, i: usize, length: usize) -> Result<&mut Value> {
        if length > 0 && length > self.conn.limits.borrow().get(Limit::Length) as usize {
            return Err(Code::Toobig.into());
        }
        let all = self.bindings_mut()?;
        i.checked_sub(1).and_then(|i| all.get_mut(i)).ok_or_else(|| Code::Range.into())
    }

    /// The parameters' values, to be changed where they stay: a text's memory can take the next text.
    #[inline]
    pub fn bindings_mut(&mut self) -> Result<&mut [Value]> {
        match self.is_busy() {
            true => Err(Error::new(Code::Misuse, "bind on a busy prepared statement")),
            false if self.literals => Ok(&mut []),
            false => Ok(&mut self.vm.params),
        }
    }

    /// Sets all parameters to NULL.
    pub fn clear_bindings(&mut self) {
        if !self.literals {
            self.vm.params.fill(Value::Null);
        }
    }

    /// The parameters' values.
    pub fn bindings(&self) -> &[Value] {
        if self.literals { &[] } else { &self.vm.params }
    }

    /// How many columns a row has.
    pub fn column_count(&self) -> usize {
        self.columns().len()
    }

    /// The result columns.
    pub fn columns(&self) -> &[ColumnMeta] {
        match &self.listing {
            Some(l) => &l.names,
            None => &self.vm.program().columns,
        }
    }

    /// A column's name.
    pub fn column_name(&self, i: usize) -> Option<&str> {
        self.columns().get(i).map(|c| &*c.name)
    }

    /// The values of the present row; empty if there is none.
    #[inline]
    pub fn row(&self) -> &[Value] {
        match &self.listing {
            Some(l) => l.next.checked_sub(1).and_then(|i| l.rows.get(i)).map_or(&[], |r| r),
            None => self.vm.row(),
        }
    }

    /// Whether rows of EXPLAIN have been listed since the last reset.
    pub fn is_listing(&self) -> bool {
        self.listing.as_ref().is_some_and(|l| l.next > 0)
    }

    /// The last rowid that was made for a row of its own.
    pub(crate) fn made_rowid(&self) -> i64 {
        self.vm.made_rowid
    }

    /// Whether the statement is between a step and its reset.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.run.is_some() && !self.done && !self.unwound.get()
    }

    /// Runs to the next row or to the end. After the end, or an error, the next call starts anew.
    pub fn step(&mut self) -> Result<Step> {
        if self.listing.as_ref().is_some_and(|l| l.next == 0 && l.analyzes.is_some()) {
            self.analyze()?;
        }
        if let Some(l) = &mut self.listing {
            if l.next < l.rows.len() {
                l.next += 1;
                return Ok(Step::Row);
            }
            l.next = 0;
            if l.analyzes.is_none() && self.vm.program().counts_changes {
                // What is not run has changed nothing.
                self.conn.changes.set(0);
            }
            return Ok(Step::Done);
        }
        self.advance()
    }

    /// As [`Statement::step`], but answers `None` where the schema turned out to be another: the statement has been compiled anew, and the next
    /// step begins. `tries`: how often that has happened.
    pub fn try_step(&mut self, tries: &mut u32) -> Result<Option<Step>> {
        if self.listing.is_some() { self.step().map(Some) } else { self.run_on(tries) }
    }

    /// Compiles it anew if it has expired since: what it depends on, beside the schemas, is another now. One that runs goes on as it is.
    pub fn renew(&mut self) -> Result<()> {
        if self.done || self.unwound.get() {
            self.reset()?;
        }
        if self.run.is_some() || self.listing.is_some() || self.expiry == self.conn.expired.get() {
            return Ok(());
        }
        if !self.renews {
            return Err(Code::Schema.into());
        }
        if self.sql.is_empty() { Ok(()) } else { self.recompile() }
    }

    /// Runs the statement to its end, with probes, and adds to the plan what was learned.
    fn analyze(&mut self) -> Result<()> {
        let Some(mut l) = self.listing.take() else { return Ok(()) };
        let conn = self.conn.clone();
        let pages = || conn.pages_read();
        let plain = self.vm.program().clone();
        let (program, sites) = iolite_bytecode::probed(&plain);
        let program = Rc::new(program);
        self.exchange(program.clone());
        self.vm.profile = Some(Box::new(Profile::new(sites.len(), pages)));
        let outer = conn.profile.replace(Some(Vec::new()));
        let clock = || conn.vfs.clock().monotonic_nanos();
        let (start, mut rows) = (clock(), 0);
        let ended = loop {
            match self.advance() {
                Ok(Step::Row) => rows += 1,
                other => break other,
            }
        };
        let nanos = clock() - start;
        let columns = conn.profile.replace(outer).unwrap_or_default();
        let mut profile = self.vm.profile.take().unwrap_or_default();
        profile.end(pages());
        // A program that was compiled anew under way has no probes.
        if Rc::ptr_eq(self.vm.program(), &program) {
            self.exchange(plain);
        }
        let plan = &program.plan;
        let ran = Ran { rows, nanos, plan, columns, sites: &sites, costs: profile.costs() };
        let added = l.add(&ran);
        self.listing = Some(l);
        ended.and(added)
    }

    /// As [`Statement::step`], for the program itself.
    fn advance(&mut self) -> Result<Step> {
        let mut tries = 0;
        loop {
            if let Some(step) = self.run_on(&mut tries)? {
                return Ok(step);
            }
        }
    }

    /// Goes on with the run, or begins one; `None` as [`Statement::try_step`] says.
    fn run_on(&mut self, tries: &mut u32) -> Result<Option<Step>> {
        self.renew()?;
        if self.run.is_none() {
            if self.be_current()? {
                return Ok(None);
            }
            self.start();
        }
        self.waits = None;
        let run = self.run.as_ref().expect("just started");
        self.conn.statement_time.set(0);
        self.vm.check_every(self.conn.progress_every.get());
        let unwinding = Unwinding(&self.unwound);
        // Only then anybody asks.
        let stepping = self.conn.settings.defensive().then(|| self.conn.txn.step());
        // Asked here as well, for between two rows a program may be too short to ask.
        let stop = match self.conn.interrupt.load(std::sync::atomic::Ordering::Relaxed) {
            false => self.vm.step(run),
            true => Err(Code::Interrupt.into()),
        };
        drop(stepping);
        std::mem::forget(unwinding);
        match stop {
            Ok(Stop::Row) => Ok(Some(Step::Row)),
            Ok(Stop::Done) => {
                self.finish(None, false)?;
                Ok(Some(Step::Done))
            }
            Err(e) if run.waits.get() && e.code().primary() == Code::Busy => {
                self.vm.reset();
                self.waits = Some(e.clone());
                Err(e)
            }
            Err(e) => {
                // What it found in trees that were taken back under it says nothing about the file.
                let astray = run.is_undone() && e.code().primary() == Code::Corrupt;
                let e = if astray { Code::AbortRollback.into() } else { e };
                let again = self.conn.growth.take_again() || run.stale.get();
                let stale = again && e.code() == Code::Schema;
                let action = self.vm.action;
                let again = stale && *tries < MAX_RETRY && self.renews;
                let ended = self.finish(Some((&e, action)), again);
                if stale {
                    self.expiry = STALE;
                }
                if again {
                    *tries += 1;
                    self.vm.reset();
                    self.done = false;
                    self.recompile()?;
                    return Ok(None);
                }
                // What goes wrong while it is undone matters less than why; what FAIL would have kept, and the commit does
                // not, more: but the words stay if that has none.
                Err(match ended {
                    Err(_) if !matches!(action, Action::Fail) => e,
                    Err(end) if end.has_message() => end,
                    Err(end) => Error::new(end.code(), e.message()),
                    Ok(()) => e,
                })
            }
        }
    }

    /// Compiles a statement that begins no transaction again if a schema has changed since: others find that out when theirs
    /// begins. Answers whether it did.
    fn be_current(&mut self) -> Result<bool> {
        let Some(then) = &self.generations else { return Ok(false) };
        let now = self.conn.generations.borrow().clone();
        if Rc::ptr_eq(then, &now) || *then == now {
            return Ok(false);
        }
        self.expiry = STALE;
        if !self.renews {
            return Err(Code::Schema.into());
        }
        if self.sql.is_empty() {
            return Ok(false);
        }
        self.recompile()?;
        Ok(true)
    }

    fn start(&mut self) {
        self.runs += 1;
        let c = &self.conn;
        if c.txn.running() == 0 {
            c.interrupt.store(false, std::sync::atomic::Ordering::Relaxed);
            c.uncounted.set(0);
        }
        c.txn.enter(self.writes);
        self.run = Some(Running {
            conn: c.clone(),
            needs_statement: self.vm.program().needs_statement,
            savepoint: Cell::new(None),
            stale: Cell::new(false),
            reads: Cell::new(false),
            waits: Cell::new(false),
            expires: Cell::new(false),
            undone: self.writes.then(|| c.txn.undone()),
            deferred: c.txn.deferred(),
        });
    }

    /// Ends the run: the transaction undoes what must be undone, and commits what may be committed.
    fn finish(&mut self, error: Option<(&Error, Action)>, again: bool) -> Result<()> {
        let Some(run) = self.run.take() else { return Ok(()) };
        self.done = true;
        if run.expires.get() && self.expiry != STALE {
            // Others expire by what it has changed.
            self.expiry = run.conn.expired.get();
        }
        let vm = &self.vm;
        let intact = !run.is_undone();
        let (own, total, settled) = (vm.changes, vm.total_changes, vm.settled_changes);
        let rows = RowCounts { own, begun: vm.begun, total, settled };
        let outcome = Outcome {
            error,
            writes: self.writes,
            mark: run.savepoint.get().filter(|_| intact),
            deferred: (self.writes && intact).then_some(run.deferred),
            rows: vm.program().counts_changes.then_some(rows),
            again,
        };
        if error.is_some() {
            // The machine's cursors must be gone before trees are rolled back under them.
            self.vm.reset();
        } else if self.vm.program().opens_virtual {
            self.vm.close_virtual();
        }
        let txn = &run.conn.txn;
        let result = txn.end_statement(&*run.conn, &outcome);
        if txn.is_alone() {
            // Cursors leave their pages before the snapshot is given up.
            self.vm.reset();
        }
        txn.leave(&*run.conn, self.writes, run.reads.get());
        result
    }

    /// Compiles the text again; parameters are kept.
    fn recompile(&mut self) -> Result<()> {
        if self.sql.is_empty() {
            // Made without a text: whoever made it makes it anew.
            return Err(Code::Schema.into());
        }
        let conn = Connection(self.conn.clone());
        let now = self.conn.expired.get();
        let program = compile_text(&conn, &self.sql, self.explains, None)?;
        self.expiry = now;
        self.generations = program.names_schema.then(|| self.conn.generations.borrow().clone());
        self.writes = !program.readonly;
        self.recompiled += 1;
        let counters = self.vm.counters;
        if std::mem::take(&mut self.literals) {
            self.vm.params.clear();
        }
        self.exchange(Rc::new(program));
        self.vm.counters = counters;
        Ok(())
    }

    /// From now on the statement is run (0), or its program (1) or plan (2) is listed, whatever its text begins with.
    /// `SQLITE_BUSY` while it runs. Parameters are kept.
    pub fn set_explain(&mut self, mode: u8) -> Result<()> {
        let mode = match mode {
            0 => ExplainMode::None,
            1 => ExplainMode::Program,
            2 => ExplainMode::QueryPlan,
            _ => return Err(Code::Error.into()),
        };
        if self.run.is_some() && !self.done || self.is_listing() {
            return Err(Code::Busy.into());
        }
        if self.sql.is_empty() {
            return Err(Code::Error.into());
        }
        self.explains = Some(mode);
        let recompiled = self.recompiled;
        self.recompile()?;
        self.recompiled = recompiled;
        self.listing = match self.vm.program().explain {
            0 => None,
            kind => Some(Listing::new(self.vm.program(), kind)?),
        };
        Ok(())
    }

    /// Goes on with another program of the same text, not started; parameters are kept.
    fn exchange(&mut self, program: Rc<Program>) {
        let params = std::mem::take(&mut self.vm.params);
        self.vm.retire(&self.conn.no_program);
        self.vm.renew(program);
        for (to, from) in self.vm.params.iter_mut().zip(params) {
            *to = from;
        }
    }

    /// Ends the present run, so that the statement can be run again. Parameters keep their values.
    pub fn reset(&mut self) -> Result<()> {
        if let Some(l) = &mut self.listing {
            l.next = 0;
        }
        let unwound = self.unwound.take().then(|| Error::from(Code::Abort));
        let failed = unwound.or_else(|| self.waits.take());
        let error = failed.as_ref().map(|e| (e, Action::Abort));
        let r = if self.run.is_some() { self.finish(error, false) } else { Ok(()) };
        self.vm.reset();
        self.done = false;
        r
    }
}

/// A statement that does not run and does not hold its connection: parameters are kept.
pub(crate) struct Parked {
    sql: Rc<str>,
    vm: Option<Box<Vm>>,
    listing: Option<Listing>,
    writes: bool,
    renews: bool,
    runs: u64,
    recompiled: u64,
    literals: bool,
    explains: Option<ExplainMode>,
    generations: Option<Rc<Vec<u64>>>,
    expiry: u64,
}

impl Statement {
    /// Takes a statement apart, after its run if there is one.
    pub(crate) fn park(mut self) -> (Parked, Result<()>) {
        let reset = self.reset();
        let parked = Parked {
            sql: self.sql.clone(),
            vm: self.vm.0.take(),
            listing: self.listing.take(),
            writes: self.writes,
            renews: self.renews,
            runs: self.runs,
            recompiled: self.recompiled,
            literals: self.literals,
            explains: self.explains,
            generations: self.generations.take(),
            expiry: self.expiry,
        };
        (parked, reset)
    }
}

impl Parked {
    /// The parameters' values.
    pub fn params(&mut self) -> &mut [Value] {
        match &mut self.vm {
            Some(vm) if !self.literals => &mut vm.params,
            _ => &mut [],
        }
    }

    /// The result columns.
    pub fn columns(&self) -> &[ColumnMeta] {
        match (&self.listing, &self.vm) {
            (Some(l), _) => &l.names,
            (None, Some(vm)) => &vm.program().columns,
            (None, None) => &[],
        }
    }

    /// The statement, ready to run.
    pub fn wake(&mut self, conn: Rc<Inner>) -> Statement {
        Statement {
            conn,
            sql: self.sql.clone(),
            vm: Machine(self.vm.take()),
            run: None,
            listing: self.listing.take(),
            done: false,
            writes: self.writes,
            unwound: Cell::new(false),
            renews: self.renews,
            runs: self.runs,
            recompiled: self.recompiled,
            literals: self.literals,
            explains: self.explains,
            generations: self.generations.take(),
            expiry: self.expiry,
            waits: None,
        }
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        if self.vm.0.is_none() {
            // It was parked.
            return;
        }
        // Whatever goes wrong at this point, the next use of the connection reports.
        let _ = self.reset();
        if let Some(mut vm) = self.vm.0.take()
            && vm.is_small()
        {
            vm.retire(&self.conn.no_program);
            self.conn.spare_vm.set(Some(vm));
        }
    }
}
