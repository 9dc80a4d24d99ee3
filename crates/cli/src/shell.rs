//! The shell's state, and how it runs statements.
//!
//! What always holds: the database is opened when it is first needed; results go to `out`, complaints to standard
//! error; a new file gets the tuned settings right before its first write, so that opening changes nothing on disk.

use crate::output::{self, Output};
use crate::print::Printer;
use crate::report;
use crate::signal::Interrupts;
use crate::style::{Mode, Style};
use iolite::engine::{Connection, Error, OpenFlags, Statement, Step, Value};
use std::io::{IsTerminal, Write};
use std::time::Instant;

/// Where a text came from: it decides how errors are introduced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The command line.
    Argument,
    /// The given line of a script.
    Line(usize),
    /// A person at the prompt.
    Prompt,
}

/// EXPLAIN QUERY PLAN before each statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Eqp {
    Off,
    On,
    Full,
}

/// The shell.
pub struct Shell {
    conn: Option<Connection>,
    /// The file's name as given.
    pub file: String,
    /// Open for reading only.
    pub read_only: bool,
    /// Do not create the file.
    pub must_exist: bool,
    /// sqlite3's defaults instead of the tuned ones.
    pub compat: bool,
    /// A new file waits for its first write to be put into WAL mode.
    tune_first_write: bool,
    /// How results look.
    pub style: Style,
    /// The style to go back to after the next statement.
    pub style_after: Option<Style>,
    /// Where results go.
    pub out: Output,
    /// What `.output` was given.
    pub out_name: String,
    /// `.once`: go back to standard output after the next statement.
    pub once: bool,
    /// Stop at the first error.
    pub bail: bool,
    /// Print input before running it.
    pub echo: bool,
    /// Print the time each statement took.
    pub timer: bool,
    /// Print how many rows were changed.
    pub changes: bool,
    /// Print memory figures.
    pub stats: bool,
    /// Print each statement before it runs.
    pub trace: bool,
    /// EXPLAIN QUERY PLAN.
    pub eqp: Eqp,
    /// Lay out EXPLAIN's rows.
    pub explain: bool,
    /// Values for parameters, by name.
    pub parameters: Vec<(String, Value)>,
    /// The prompts.
    pub prompt: (String, String),
    /// Someone sits before it.
    pub interactive: bool,
    /// Ctrl-C.
    pub interrupts: Interrupts,
    /// Errors so far.
    pub errors: usize,
    /// How deep `.read` is nested.
    pub depth: usize,
    /// `.log`.
    pub log: Option<Output>,
    /// Waits for locks, in milliseconds.
    pub timeout: Option<u32>,
}

impl Shell {
    /// A shell for the database of this name.
    pub fn new(file: &str) -> Shell {
        Shell {
            conn: None,
            file: file.into(),
            read_only: false,
            must_exist: false,
            compat: false,
            tune_first_write: false,
            style: Style::batch(),
            style_after: None,
            out: Output::stdout(),
            out_name: "stdout".into(),
            once: false,
            bail: false,
            echo: false,
            timer: false,
            changes: false,
            stats: false,
            trace: false,
            eqp: Eqp::Off,
            explain: true,
            parameters: Vec::new(),
            prompt: ("iolite> ".into(), "   ...> ".into()),
            interactive: false,
            interrupts: Interrupts::catch(),
            errors: 0,
            depth: 0,
            log: None,
            timeout: None,
        }
    }

    /// The connection, opened now if it was not.
    pub fn conn(&mut self) -> Result<Connection, Error> {
        if let Some(c) = &self.conn {
            return Ok(c.clone());
        }
        let name = if self.file.is_empty() { ":memory:" } else { &self.file };
        let flags = OpenFlags { read_only: self.read_only, create: !self.must_exist, ..OpenFlags::default() };
        let c = Connection::open_with(name, flags)?;
        self.adopt(c.clone());
        Ok(c)
    }

    /// The connection if it is open.
    pub fn conn_if_open(&self) -> Option<&Connection> {
        self.conn.as_ref()
    }

    fn adopt(&mut self, c: Connection) {
        self.interrupts.watch(c.interrupt_handle());
        crate::command::functions::register(&c);
        crate::tables::register(&c);
        let transient = self.file.is_empty() || self.file == ":memory:";
        self.tune_first_write = !self.compat && !transient && !self.read_only;
        if !self.compat {
            // Settings of the connection only; the file learns nothing of them.
            let _ = c.busy_timeout(5000);
            let _ = c.execute_batch("PRAGMA cache_size=-65536");
        }
        if let Some(ms) = self.timeout {
            let _ = c.busy_timeout(ms);
        }
        self.conn = Some(c);
    }

    /// Closes the database and names the next one.
    pub fn reopen(&mut self, file: &str) {
        self.close();
        self.file = file.into();
    }

    /// Closes the database.
    pub fn close(&mut self) {
        if let Some(c) = self.conn.take()
            && let Err(e) = c.close()
        {
            self.complain(&format!("Error: closing the database: {}", e.message()));
        }
    }

    /// Prints a message to standard error, behind all results so far.
    pub fn complain(&mut self, text: &str) {
        let _ = self.out.flush();
        eprintln!("{text}");
    }

    /// Prints a line to the results.
    pub fn say(&mut self, text: &str) {
        if let Err(e) = writeln!(self.out, "{text}") {
            output::failed(&e);
        }
    }

    /// Prints the error message of a statement.
    pub fn report(&mut self, e: &Error, sql: &str, at: Origin, preparing: bool) {
        self.errors += 1;
        let mut text = report::marked(e, sql);
        // sqlite3's shell names SQLITE_ERROR by its message alone, also when a statement runs.
        let kind = match (at, preparing) {
            (Origin::Argument, true) => "Error: in prepare, ".to_string(),
            (Origin::Argument, false) => "Error: stepping, ".to_string(),
            (Origin::Line(n), true) => format!("Parse error near line {n}: "),
            (Origin::Line(n), false) => format!("Runtime error near line {n}: "),
            (Origin::Prompt, true) => "Parse error: ".to_string(),
            (Origin::Prompt, false) => "Runtime error: ".to_string(),
        };
        text.insert_str(0, &kind);
        if let Some(log) = &mut self.log {
            let _ = writeln!(log, "({}) {}", e.code().number(), e.message()).and_then(|()| log.flush());
        }
        self.complain(&text);
    }

    /// Opens the database if need be; says why if that fails.
    pub fn ensure_open(&mut self) -> Option<Connection> {
        match self.conn() {
            Ok(c) => Some(c),
            Err(e) => {
                self.errors += 1;
                let text = format!("Error: unable to open database \"{}\": {}", self.file, e.message());
                self.complain(&text);
                None
            }
        }
    }

    /// Runs all statements of a text. `Err` is the code of the first error, which has been reported.
    pub fn run_sql(&mut self, sql: &str, at: Origin) -> Result<(), i32> {
        let Some(conn) = self.ensure_open() else { return Err(1) };
        let before = Instant::now();
        let cpu = crate::signal::cpu_times();
        let mut rest = sql;
        let mut result = Ok(());
        loop {
            let r = match conn.prepare_next(rest) {
                Ok(None) => break,
                Ok(Some((mut s, tail))) => {
                    let text = rest;
                    rest = tail;
                    self.run_statement(&conn, &mut s).map_err(|e| (e, text, false))
                }
                Err(e) => Err((e, rest, true)),
            };
            if let Err((e, text, preparing)) = r {
                self.report(&e, text, at, preparing);
                result = Err(e.code().primary().number() as i32);
                break;
            }
            if rest.trim().is_empty() {
                break;
            }
        }
        self.after(&conn, before, cpu);
        result
    }

    /// What comes behind a line of statements: counters, and the end of `.once`.
    fn after(&mut self, conn: &Connection, before: Instant, cpu: (f64, f64)) {
        if self.changes {
            let line = format!("changes: {}   total_changes: {}", conn.changes(), conn.total_changes());
            self.say(&line);
        }
        if self.stats {
            let line = format!(
                "Memory Used:                         {} (max {}) bytes",
                iolite_base::alloc::used(),
                iolite_base::alloc::highwater(false)
            );
            self.say(&line);
        }
        if self.timer {
            let now = crate::signal::cpu_times();
            let real = before.elapsed().as_secs_f64();
            let line = format!("Run Time: real {real:.3} user {:.6} sys {:.6}", now.0 - cpu.0, now.1 - cpu.1);
            self.say(&line);
        }
        self.end_once();
        if let Err(e) = self.out.flush() {
            output::failed(&e);
        }
    }

    /// Takes back what `.once` and `.mode --once` set.
    pub fn end_once(&mut self) {
        if let Some(s) = self.style_after.take() {
            self.style = s;
        }
        if std::mem::take(&mut self.once) {
            self.set_output("stdout");
        }
    }

    /// Sends the results elsewhere.
    pub fn set_output(&mut self, name: &str) -> bool {
        let old = std::mem::replace(&mut self.out, Output::Off);
        if let Err(e) = old.close() {
            let text = format!("Error: cannot write \"{}\": {e}", self.out_name);
            self.complain(&text);
            self.errors += 1;
        }
        match Output::open(name) {
            Ok(o) => {
                self.out = o;
                self.out_name = if name.is_empty() { "stdout".into() } else { name.into() };
                true
            }
            Err(e) => {
                self.out = Output::stdout();
                self.out_name = "stdout".into();
                let text = match name.strip_prefix('|') {
                    Some(command) => format!("Error: cannot open pipe \"{command}\": {e}"),
                    None => format!("Error: cannot write to \"{name}\": {e}"),
                };
                self.complain(&text);
                false
            }
        }
    }

    fn run_statement(&mut self, conn: &Connection, s: &mut Statement) -> Result<(), Error> {
        let text = s.sql().trim().to_string();
        if self.trace {
            self.say(text.trim_start());
        }
        if self.eqp != Eqp::Off && s.program().explain == 0 {
            self.explain_first(conn, &text)?;
        }
        self.tune(conn, s, &text);
        for i in 1..=s.parameter_count() {
            let name = s.parameter_name(i).map_or_else(|| format!("?{i}"), str::to_string);
            let value = self.parameters.iter().find(|(n, _)| *n == name).map(|(_, v)| v.clone());
            s.bind(i, value.unwrap_or_default())?;
        }
        let progress = crate::progress::Spinner::of(self.interactive, &text);
        let done = self.print_rows(s);
        drop(progress);
        let reset = s.reset();
        done?;
        reset
    }

    fn print_rows(&mut self, s: &mut Statement) -> Result<(), Error> {
        let explain = s.program().explain;
        if self.explain && matches!(explain, 2 | 3) {
            return crate::plan::print_query_plan(self, s);
        }
        if self.explain && explain == 1 {
            return crate::plan::print_program(self, s);
        }
        let mut printer: Option<Printer> = None;
        let mut result = Ok(());
        loop {
            match s.step() {
                Ok(Step::Row) => {}
                Ok(Step::Done) => break,
                Err(e) => {
                    result = Err(e);
                    break;
                }
            }
            let p = printer.get_or_insert_with(|| {
                let names =
                    (0..s.column_count()).map(|i| s.column_name(i).unwrap_or("").to_string()).collect();
                Printer::new(&self.style, names)
            });
            if let Err(e) = p.row(&mut self.out, s.row()) {
                output::failed(&e);
            }
            if self.interrupts.pending() {
                self.interrupts.take();
                result = Err(iolite::Code::Interrupt.into());
                break;
            }
        }
        let p = match printer {
            None if self.style.mode == Mode::Count && s.column_count() > 0 && result.is_ok() => {
                Some(Printer::new(&self.style, Vec::new()))
            }
            p => p,
        };
        if let Some(p) = p
            && let Err(e) = p.end(&mut self.out)
        {
            output::failed(&e);
        }
        result
    }

    fn explain_first(&mut self, conn: &Connection, text: &str) -> Result<(), Error> {
        let mut q = conn.prepare(&format!("EXPLAIN QUERY PLAN {text}"))?;
        crate::plan::print_query_plan(self, &mut q)?;
        if self.eqp == Eqp::Full {
            let mut q = conn.prepare(&format!("EXPLAIN {text}"))?;
            crate::plan::print_program(self, &mut q)?;
        }
        Ok(())
    }

    /// Puts a new file into WAL mode right before its first write.
    fn tune(&mut self, conn: &Connection, s: &Statement, text: &str) {
        if !self.tune_first_write {
            return;
        }
        let word = text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or("");
        if word.eq_ignore_ascii_case("pragma") {
            if text.to_ascii_lowercase().contains("journal_mode") && text.contains('=') {
                self.tune_first_write = false;
            }
            return;
        }
        let begins = ["begin", "savepoint"].iter().any(|w| word.eq_ignore_ascii_case(w));
        if s.is_readonly() && !begins {
            return;
        }
        self.tune_now(conn);
    }

    /// As for the first write of a new file; for commands that write by themselves.
    pub fn tune_now(&mut self, conn: &Connection) {
        if !std::mem::take(&mut self.tune_first_write) || !conn.is_autocommit() {
            return;
        }
        let empty = |c: &Connection| {
            let rows = c.query("PRAGMA page_count", &[]);
            matches!(rows.ok()?.first()?.first()?, Value::Int(0)).then_some(())
        };
        if empty(conn).is_some() {
            // Where WAL cannot be had, the file stays in the default mode.
            let _ = conn.execute_batch("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
        }
    }

    /// Whether colours and such make sense.
    pub fn decorates(&self) -> bool {
        self.interactive && std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
    }
}
