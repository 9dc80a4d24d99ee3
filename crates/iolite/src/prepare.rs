//! From text to statements.
//!
//! A text that was prepared lately has its program kept, and so have texts that differ in their literals alone, where these do not decide
//! how rows are found ([`crate::plans`]). What the engine runs for itself (*nested* statements) is compiled by other rules, is
//! not kept, and ends no transaction.

use crate::compile::{Watch, compile, compile_text};
use crate::connection::Connection;
use crate::plans::{Sharing, lasting};
use crate::statement::{Statement, Step};
use iolite_base::{Code, Error, Limit, Limits, Result, raw_text};
use iolite_bytecode::Program;
use iolite_plan::StatementPlan;
use iolite_plan::bound::Select;
use iolite_sql::Lifted;
use iolite_value::Value;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::atomic::Ordering;

impl Connection {
    /// Prepares the first statement of `sql`; answers it and the text behind it. `None` if there is only space.
    pub fn prepare_next<'s>(&self, sql: &'s str) -> Result<Option<(Statement, &'s str)>> {
        let own = &sql[..own_length(sql.as_bytes())];
        // What the engine runs for itself carries bytes on purpose.
        if raw_text::may_carry(own.as_bytes()) && !self.0.txn.is_nested() {
            let prepared = self.prepare_bytes(own.as_bytes())?;
            return Ok(prepared.map(|(s, used)| (s, sql.get(used..).unwrap_or_default())));
        }
        let prepared = prepare_text(self, own)?;
        Ok(prepared.map(|(s, rest)| (s, &sql[own.len() - rest.len()..])))
    }

    /// As [`Connection::prepare_next`], for bytes that need not be UTF-8: literals and names keep theirs. Answers the
    /// statement and the length of its text.
    pub fn prepare_bytes(&self, sql: &[u8]) -> Result<Option<(Statement, usize)>> {
        // An interrupt lasts until nothing runs any more; what is prepared until then is interrupted, too.
        match self.0.txn.running() {
            0 => self.0.interrupt.store(false, Ordering::Relaxed),
            _ if self.0.interrupt.load(Ordering::Relaxed) => return Err(Code::Interrupt.into()),
            _ => {}
        }
        let text = raw_text::encode(&sql[..own_length(sql)]);
        // An offset into the text as it was given.
        let given = |at: usize| text.get(..at).map_or(at, |t| raw_text::decode(t).len());
        match prepare_text(self, &text) {
            Ok(None) => Ok(None),
            Ok(Some((s, rest))) => Ok(Some((s, given(text.len() - rest.len())))),
            Err(e) => match e.offset() {
                Some(at) if matches!(text, std::borrow::Cow::Owned(_)) => {
                    Err(Error::new(e.code(), e.message()).at(given(at as usize) as u32))
                }
                _ => Err(e),
            },
        }
    }

    /// Prepares a text of exactly one statement; `SQLITE_MISUSE` if there are several. The program of a text that was prepared lately is used again
    /// (`PRAGMA plan_cache` says how many are kept).
    pub fn prepare(&self, sql: &str) -> Result<Statement> {
        match self.prepare_next(sql)? {
            Some((s, rest)) => {
                // What runs half of a text says nothing of the other half.
                if !rest.is_empty() && iolite_sql::parse_next(rest, &self.0.limits.borrow())?.is_some() {
                    return Err(Error::new(Code::Misuse, "the text has more than one statement"));
                }
                Ok(s)
            }
            None => Err(Error::new(Code::Misuse, "not a statement")),
        }
    }

    /// Runs all statements of a text, dropping their rows.
    pub fn execute_batch(&self, sql: &str) -> Result<()> {
        let mut rest = sql;
        while let Some((mut s, tail)) = self.prepare_next(rest)? {
            while s.step()? == Step::Row {}
            s.reset()?;
            rest = tail;
        }
        Ok(())
    }

    /// Runs one statement with parameters; answers how many rows it changed.
    pub fn execute(&self, sql: &str, params: &[Value]) -> Result<i64> {
        let mut s = self.prepare(sql)?;
        for (i, v) in params.iter().enumerate() {
            s.bind(i + 1, v.clone())?;
        }
        while s.step()? == Step::Row {}
        s.reset()?;
        Ok(self.changes())
    }

    /// All rows of a query.
    pub fn query(&self, sql: &str, params: &[Value]) -> Result<Vec<Vec<Value>>> {
        let mut s = self.prepare(sql)?;
        for (i, v) in params.iter().enumerate() {
            s.bind(i + 1, v.clone())?;
        }
        let mut out = Vec::new();
        while s.step()? == Step::Row {
            out.push(s.row().to_vec());
        }
        s.reset()?;
        Ok(out)
    }

    /// Runs SQL of the engine's own, in the transaction and savepoint of the statement that asks.
    pub(crate) fn exec_nested(&self, sql: &str) -> Result<()> {
        self.nested_rows(sql, &[]).map(|_| ())
    }

    /// As [`Connection::exec_nested`], with parameters; answers the rows.
    pub(crate) fn nested_rows(&self, sql: &str, params: &[Value]) -> Result<Vec<Vec<Value>>> {
        let _nested = self.0.txn.nest();
        self.query(sql, params)
    }

    /// Runs a program of the engine's own; its rows go to `f`, until that says that it has enough.
    pub(crate) fn for_rows(
        &self,
        program: Program,
        f: &mut dyn FnMut(&[Value]) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let _nested = self.0.txn.nest();
        let mut s = Statement::new(self, "", Rc::new(program))?;
        while s.step()? == Step::Row {
            if f(s.row())?.is_break() {
                break;
            }
        }
        s.reset()
    }
}

/// How much of a text is looked at: of a long one the first statement alone. A script of many statements is gone through once by who
/// prepares one after the other, and not once for each.
fn own_length(sql: &[u8]) -> usize {
    const LONG: usize = 1024;
    let first = if sql.len() > LONG { iolite_sql::first_end(sql) } else { None };
    first.unwrap_or(sql.len())
}

/// Prepares the first statement of a text.
fn prepare_text<'s>(conn: &Connection, sql: &'s str) -> Result<Option<(Statement, &'s str)>> {
    let next = prepare_any(conn, sql)?;
    if !conn.0.settings.comments() && !conn.0.txn.is_nested() {
        let text = next.as_ref().map_or(sql, |(_, rest)| &sql[..sql.len() - rest.len()]);
        if let Some(at) = iolite_sql::first_comment(text) {
            let comment = &text[at.start as usize..at.end as usize];
            return Err(Error::sql(format!("unrecognized token: \"{comment}\"")).at(at.start));
        }
    }
    Ok(next)
}

fn prepare_any<'s>(conn: &Connection, sql: &'s str) -> Result<Option<(Statement, &'s str)>> {
    let c = &conn.0;
    // What the engine runs for itself is compiled by other rules.
    // Programs are shared by those that nobody asks for only.
    let own = c.txn.is_nested() || c.has_authorizer() || c.no_virtual.get();
    c.check_schema_locks()?;
    if !own && let Some((program, used)) = c.plans.borrow().find(sql, &c.generations.borrow()) {
        return Ok(Some((Statement::new(conn, &sql[..used], program)?, &sql[used..])));
    }
    let limits = c.limits.borrow().clone();
    if sql.len() > limits.get(Limit::SqlLength) as usize {
        return Err(Error::new(Code::Toobig, "statement too long"));
    }
    let shares = !own && c.plans.borrow().size() > 0;
    let lifted = if shares { iolite_sql::lifted(sql) } else { None };
    if let Some(l) = &lifted
        && let Some(s) = prepare_lifted(conn, sql, l, &limits)?
    {
        return Ok(Some((s, &sql[l.used..])));
    }
    // Used where it is: it is large.
    let mut next = iolite_sql::parse_next(sql, &limits)?;
    let Some((parsed, used)) = &mut next else { return Ok(None) };
    let mut program = Rc::default();
    compile(conn, parsed, sql, Rc::get_mut(&mut program).expect("nobody else has it"), None)?;
    if !own && !program.holds_tables && lasting(parsed) {
        let mut plans = c.plans.borrow_mut();
        plans.keep(sql, *used, &program, &c.generations.borrow());
        if let Some(l) = &lifted
            && plans.sharing(&l.text).is_none()
        {
            plans.note_sharing(&l.text, Sharing::Seen);
        }
    }
    let (text, rest) = sql.split_at(*used);
    Ok(Some((Statement::new(conn, text, program)?, rest)))
}

/// Prepares a statement by the program of its text with parameters in the place of literals. `None`: the literals may
/// decide how rows are found, no other of its kind came yet, or something is wrong with it, of which its own text tells best.
fn prepare_lifted(conn: &Connection, sql: &str, l: &Lifted, limits: &Limits) -> Result<Option<Statement>> {
    let c = &conn.0;
    let sharing = match l.stored {
        true => Some(Sharing::Shared),
        false => c.plans.borrow().sharing(&l.text),
    };
    if !matches!(sharing, Some(Sharing::Seen | Sharing::Shared)) {
        return Ok(None);
    }
    let most = limits.get(Limit::Length) as usize;
    let mut values = Vec::with_capacity(l.literals.len());
    for (literal, negative) in &l.literals {
        match iolite_plan::bind::literal_value(literal, *negative) {
            Ok(Value::Text(b, _) | Value::Blob(b, _)) if b.len() > most => return Ok(None),
            Ok(v) => values.push(v),
            Err(_) => return Ok(None),
        }
    }
    // Truth values and their like are thought to be frequent: the plan for others may not fit them.
    let frequent = !l.stored && values.iter().any(|v| matches!(v, Value::Int(-1..=1)));
    if frequent && sharing == Some(Sharing::Seen) {
        return Ok(None);
    }
    let found = match sharing {
        Some(Sharing::Shared) => c.plans.borrow().find(&l.text, &c.generations.borrow()),
        _ => None,
    };
    let program = match found {
        Some((program, _)) => program,
        None => {
            let program = shared_program(conn, &sql[..l.used], l, sharing == Some(Sharing::Shared))?;
            let what = if program.is_some() { Sharing::Shared } else { Sharing::Refused };
            let mut plans = c.plans.borrow_mut();
            // Behind the program: where that is the first of new generations, all that was noted is forgotten with it.
            if let Some(program) = &program
                && !program.holds_tables
            {
                plans.keep(&l.text, l.text.len(), program, &c.generations.borrow());
            }
            if !l.stored {
                plans.note_sharing(&l.text, what);
            }
            match program {
                Some(program) => program,
                None => return Ok(None),
            }
        }
    };
    if frequent && !program.finds_one {
        return Ok(None);
    }
    Statement::with_values(conn, &sql[..l.used], program, values).map(Some)
}

/// Compiles the text with parameters in the place of literals, for all statements of this kind. `None`: they do not share.
fn shared_program(conn: &Connection, own: &str, l: &Lifted, decided: bool) -> Result<Option<Rc<Program>>> {
    let shape = Shape::default();
    let Ok(program) = compile_text(conn, &l.text, None, Some(&shape)).map(Rc::new) else { return Ok(None) };
    if decided || program.finds_one {
        return Ok(Some(program));
    }
    let Some(shared) = shape.0.get() else { return Ok(None) };
    let as_written = Shape::default();
    compile_text(conn, own, None, Some(&as_written))?;
    Ok((as_written.0.get() == Some(shared)).then_some(program))
}

/// Learns in which way a statement finds its rows.
#[derive(Default)]
struct Shape(Cell<Option<u64>>);

impl Watch for Shape {
    fn bound(&self, _: &Select) {}

    fn planned(&self, plan: &StatementPlan) {
        self.0.set(plan.shape());
    }
}
