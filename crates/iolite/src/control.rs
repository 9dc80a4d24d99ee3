//! Statements that the connection carries out by itself: transactions, ATTACH, PRAGMA, VACUUM, ALTER TABLE, ANALYZE.
//!
//! Each becomes a program with one row source, which does the work when the program is first stepped. Expressions that
//! such a statement contains (ATTACH, DETACH, VACUUM INTO) are part of that program: it computes them, with its
//! parameters, and the work gets their values.

use crate::connection::{Connection, Inner};
use crate::run::with_env;
use iolite_base::{Code, Error, Result};
use iolite_bytecode::Program;
use iolite_ext::{RowSource, SourceFactory};
use iolite_sql::ast::{BeginMode, Expr, Literal, Parsed, Stmt};
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

/// Work that is given the values of the statement's expressions.
type WorkOn = Rc<dyn Fn(&Connection, &[Value]) -> Result<Vec<Vec<Value>>>>;

/// A program that does `work` when it is stepped, in a transaction that writes to the databases in `writes`.
pub(crate) fn work_program(
    conn: &Connection,
    columns: &[&str],
    work: Work,
    writes: &[usize],
) -> Result<Program> {
    program(conn, columns, Rc::new(move |c, _| work(c)), (&[], writes), (Vec::new(), ""))
}

fn program(
    conn: &Connection,
    columns: &[&str],
    work: WorkOn,
    access: (&[usize], &[usize]),
    given: (Vec<Expr>, &str),
) -> Result<Program> {
    let weak: Weak<Inner> = Rc::downgrade(&conn.0);
    let factory = SourceFactory(Rc::new(move |_, values| {
        let Some(inner) = weak.upgrade() else { return Err(Code::Misuse.into()) };
        // Statements that it runs on the way do not end what it has begun to read.
        let reader = inner.txn.reader();
        let rows = work(&Connection(inner.clone()), values)?;
        drop(reader);
        Ok(Some(Box::new(Rows { rows: rows.into_iter() }) as Box<dyn RowSource>))
    }));
    let settings = conn.0.settings();
    with_env(conn, |env| iolite_codegen::source_program(env, &settings, columns, factory, access, given))
}

/// A program that holds a transaction on a database: it yields one row, and ends when it is reset.
pub(crate) fn holding_program(conn: &Connection, db: usize, writes: bool) -> Result<Program> {
    let row: WorkOn = Rc::new(|_, _| Ok(vec![vec![Value::Null]]));
    let db = &[db][..];
    program(conn, &["row"], row, if writes { (&[], db) } else { (db, &[]) }, (Vec::new(), ""))
}

fn action(conn: &Connection, f: impl Fn(&Connection) -> Result<()> + 'static) -> Result<Program> {
    work_program(conn, &[], Rc::new(move |c| f(c).map(|()| Vec::new())), &[])
}

/// As [`action`], on the values of expressions of a text.
fn action_on(
    conn: &Connection,
    given: (Vec<Expr>, &str),
    f: impl Fn(&Connection, &[Value]) -> Result<()> + 'static,
) -> Result<Program> {
    program(conn, &[], Rc::new(move |c, values| f(c, values).map(|()| Vec::new())), (&[], &[]), given)
}

/// An operand of ATTACH and DETACH, where a bare word stands for itself: `ATTACH file AS name`.
fn operand(e: &Expr) -> Expr {
    match e {
        Expr::Column { schema: None, table: None, column } => {
            Expr::Literal(Literal::Text((*column.text).into()), column.span)
        }
        other => other.clone(),
    }
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
            action(conn, move |c| c.0.txn.savepoint(&c.0, &n))
        }
        Stmt::Release(n) => {
            let n = n.text.clone();
            action(conn, move |c| c.0.txn.release(&c.0, &n))
        }
        Stmt::RollbackTo(n) => {
            let n = n.text.clone();
            action(conn, move |c| c.0.txn.rollback_to(&c.0, &n))
        }
        Stmt::Pragma { name, value } => crate::pragma::compile(conn, name, value.as_ref()),
        Stmt::Attach { file, name, .. } => {
            action_on(conn, (vec![operand(file), operand(name)], text), |c, v| {
                crate::attach::attach(c, &v[0], &v[1])
            })
        }
        Stmt::Detach(name) => {
            action_on(conn, (vec![operand(name)], text), |c, v| crate::attach::detach(c, &v[0]))
        }
        Stmt::Vacuum { schema, into } => {
            let schema = schema.as_ref().map(|s| s.text.to_string());
            let into = into.as_deref().cloned().into_iter().collect();
            action_on(conn, (into, text), move |c, v| crate::vacuum::vacuum(c, schema.as_deref(), v.first()))
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
    if !inner.txn.is_autocommit() {
        return Err(Error::sql("cannot start a transaction within a transaction"));
    }
    match mode {
        BeginMode::Deferred => {}
        BeginMode::Concurrent => return Err(Error::sql("BEGIN CONCURRENT is not supported yet")),
        BeginMode::Immediate | BeginMode::Exclusive => {
            let n = inner.databases.borrow().len();
            let mut begun: Vec<iolite_btree::Btree> = Vec::new();
            for db in 0..n {
                let Some(b) = inner.btree_if_open(db) else { continue };
                let was = b.txn_state();
                let taken = match b.is_read_only() {
                    true => b.begin_read(),
                    false => inner.begin_write(&b, mode == BeginMode::Exclusive),
                };
                if let Err(e) = taken {
                    // No transaction begins: the locks taken on the way there are nobody's.
                    for b in begun {
                        b.rollback(inner.txn.is_alone())?;
                    }
                    return Err(e);
                }
                if was != iolite_btree::TxnState::Write {
                    begun.push(b);
                }
            }
        }
    }
    inner.txn.open();
    Ok(())
}

/// `COMMIT`.
pub(crate) fn commit(c: &Connection) -> Result<()> {
    let inner = &c.0;
    if inner.txn.is_autocommit() {
        return Err(Error::sql("cannot commit - no transaction is active"));
    }
    if inner.txn.is_held() {
        return Err(Error::sql("cannot commit - the write queue does"));
    }
    if inner.txn.is_writing() {
        return Err(Error::new(Code::Busy, "cannot commit transaction - SQL statements in progress"));
    }
    inner.txn.commit(inner)
}

/// `ROLLBACK`.
pub(crate) fn rollback(c: &Connection) -> Result<()> {
    if c.0.txn.is_autocommit() {
        return Err(Error::sql("cannot rollback - no transaction is active"));
    }
    if c.0.txn.is_held() {
        return Err(Error::sql("cannot rollback - a job of the write queue fails to be taken back"));
    }
    c.0.txn.rollback(&c.0)
}
