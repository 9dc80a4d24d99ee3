//! Statements that the connection carries out by itself: transactions, ATTACH, PRAGMA, VACUUM, ALTER TABLE, ANALYZE.
//!
//! Each becomes a program with one row source, which does the work when the program is first stepped.

use crate::connection::{Connection, Inner};
use crate::run::with_env;
use iolite_base::{Code, Error, Result};
use iolite_bytecode::Program;
use iolite_ext::{RowSource, SourceFactory};
use iolite_sql::ast::{BeginMode, Parsed, Stmt};
use iolite_value::Value;
use std::rc::{Rc, Weak};

/// Rows computed at once.
pub(crate) struct Rows {
    rows: std::vec::IntoIter<Vec<Value>>,
}

impl RowSource for Rows {
    fn next(&mut self, out: &mut [Value]) -> Result<bool> {
        match self.rows.next() {
            Some(row) => {
                for (to, v) in out.iter_mut().zip(row) {
                    *to = v;
                }
                Ok(true)
            }
            None => Ok(false),
        }
    }
}

/// The work behind a statement: answers its rows.
pub(crate) type Work = Rc<dyn Fn(&Connection) -> Result<Vec<Vec<Value>>>>;

/// A program that does `work` when it is stepped, in a transaction that writes to the databases in `writes`.
pub(crate) fn work_program(
    conn: &Connection,
    columns: &[&str],
    work: Work,
    writes: &[usize],
) -> Result<Program> {
    let weak: Weak<Inner> = Rc::downgrade(&conn.0);
    let factory = SourceFactory(Rc::new(move |_, _| {
        let Some(inner) = weak.upgrade() else { return Err(Code::Misuse.into()) };
        // Statements that it runs on the way do not end what it has begun to read.
        inner.reading.set(inner.reading.get() + 1);
        let rows = work(&Connection(inner.clone()));
        inner.reading.set(inner.reading.get() - 1);
        let rows = rows?;
        Ok(Some(Box::new(Rows { rows: rows.into_iter() }) as Box<dyn RowSource>))
    }));
    let settings = conn.0.settings();
    with_env(conn, |env| iolite_codegen::source_program(env, &settings, columns, factory.clone(), writes))
}

fn action(conn: &Connection, f: impl Fn(&Connection) -> Result<()> + 'static) -> Result<Program> {
    work_program(conn, &[], Rc::new(move |c| f(c).map(|()| Vec::new())), &[])
}

/// The value of an expression that refers to no table.
pub(crate) fn constant(conn: &Connection, e: &iolite_sql::ast::Expr) -> Result<Value> {
    // A bare word stands for itself: `ATTACH file AS name`.
    if let iolite_sql::ast::Expr::Column { schema: None, table: None, column } = e {
        return Value::text(&*column.text);
    }
    let text = format!("SELECT {}", iolite_sql::print::expr(e));
    let rows = conn.query(&text, &[])?;
    Ok(rows.into_iter().next().and_then(|r| r.into_iter().next()).unwrap_or_default())
}

/// Compiles a statement of this kind.
pub(crate) fn compile(conn: &Connection, parsed: &Parsed, text: &str) -> Result<Program> {
    match &parsed.stmt {
        Stmt::Begin(mode) => {
            let mode = *mode;
            action(conn, move |c| begin(c, mode))
        }
        Stmt::Commit => action(conn, commit),
        Stmt::Rollback => action(conn, rollback),
        Stmt::Savepoint(n) => {
            let n = n.text.clone();
            action(conn, move |c| c.0.savepoint(&n))
        }
        Stmt::Release(n) => {
            let n = n.text.clone();
            action(conn, move |c| c.0.release(&n))
        }
        Stmt::RollbackTo(n) => {
            let n = n.text.clone();
            action(conn, move |c| c.0.rollback_to(&n))
        }
        Stmt::Pragma { name, value } => crate::pragma::compile(conn, name, value.as_ref()),
        Stmt::Attach { file, name, .. } => {
            let (file, name) = ((**file).clone(), (**name).clone());
            action(conn, move |c| crate::attach::attach(c, &file, &name))
        }
        Stmt::Detach(name) => {
            let name = (**name).clone();
            action(conn, move |c| crate::attach::detach(c, &name))
        }
        Stmt::Vacuum { schema, into } => {
            let schema = schema.as_ref().map(|s| s.text.to_string());
            let into = into.as_deref().cloned();
            action(conn, move |c| crate::vacuum::vacuum(c, schema.as_deref(), into.as_ref()))
        }
        Stmt::AlterTable(a) => crate::alter::compile(conn, a, text),
        Stmt::Analyze(what) => {
            let what = what.clone();
            crate::analyze::compile(conn, what.as_ref())
        }
        Stmt::CreateVirtualTable(c) => {
            Err(Error::sql(format!("CREATE VIRTUAL TABLE is not supported yet: {}", c.name.name.text)))
        }
        _ => Err(Error::sql("this statement is not supported yet")),
    }
}

/// `BEGIN`.
pub(crate) fn begin(c: &Connection, mode: BeginMode) -> Result<()> {
    let inner = &c.0;
    if !inner.autocommit.get() {
        return Err(Error::sql("cannot start a transaction within a transaction"));
    }
    match mode {
        BeginMode::Deferred => {}
        BeginMode::Concurrent => return Err(Error::sql("BEGIN CONCURRENT is not supported yet")),
        BeginMode::Immediate | BeginMode::Exclusive => {
            let n = inner.databases.borrow().len();
            for db in 0..n {
                let Some(b) = inner.btree_if_open(db) else { continue };
                if b.is_read_only() {
                    b.begin_read()?;
                } else {
                    b.begin_write(mode == BeginMode::Exclusive)?;
                }
            }
        }
    }
    inner.autocommit.set(false);
    Ok(())
}

/// `COMMIT`.
pub(crate) fn commit(c: &Connection) -> Result<()> {
    let inner = &c.0;
    if inner.autocommit.get() {
        return Err(Error::sql("cannot commit - no transaction is active"));
    }
    if inner.held.get() {
        return Err(Error::sql("cannot commit - the write queue does"));
    }
    if inner.writing.get() > 0 {
        return Err(Error::new(Code::Busy, "cannot commit transaction - SQL statements in progress"));
    }
    inner.autocommit.set(true);
    if let Err(e) = inner.commit_all() {
        if e.code().primary() == Code::Busy {
            inner.autocommit.set(false);
        } else {
            // What goes wrong while it is undone matters less than why.
            let _ = inner.rollback_all();
        }
        return Err(e);
    }
    Ok(())
}

/// `ROLLBACK`.
pub(crate) fn rollback(c: &Connection) -> Result<()> {
    if c.0.autocommit.get() {
        return Err(Error::sql("cannot rollback - no transaction is active"));
    }
    if c.0.held.get() {
        return Err(Error::sql("cannot rollback - a job of the write queue fails to be taken back"));
    }
    c.0.rollback_all()
}
