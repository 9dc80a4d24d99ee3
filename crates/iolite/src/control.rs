//! Statements that the connection carries out by itself: transactions, ATTACH, PRAGMA, VACUUM, ALTER TABLE, ANALYZE.
//!
//! Each becomes a program with one row source, which does the work when the program is first stepped. Expressions that
//! such a statement contains (ATTACH, DETACH, VACUUM INTO) are part of that program: it computes them, with its
//! parameters, and the work gets their values.

use crate::connection::Connection;
use crate::work::program;
use iolite_base::{Code, Error, Result};
use iolite_bytecode::Program;
use iolite_plan::StatementPlan;
use iolite_plan::statement::Body;
use iolite_plan::statement::control::ControlKind;
use iolite_sql::ast::BeginMode;
use iolite_value::Value;
use std::rc::Rc;

/// What such a statement does, given the values of its expressions.
type Action = Box<dyn Fn(&Connection, &[Value]) -> Result<()>>;

/// Compiles a statement of this kind.
pub(crate) fn compile(conn: &Connection, plan: &StatementPlan, text: &str) -> Result<Program> {
    let Body::Control(control) = &plan.body else { return Err(Code::Internal.into()) };
    let on = |f: Action| program(conn, plan, &[], Rc::new(move |c, v| f(c, v).map(|()| Vec::new())));
    match &control.kind {
        ControlKind::Begin(mode) => {
            let mode = *mode;
            on(Box::new(move |c, _| begin(c, mode)))
        }
        ControlKind::Commit => on(Box::new(|c, _| commit(c))),
        ControlKind::Rollback => on(Box::new(|c, _| rollback(c))),
        ControlKind::Savepoint(n) => {
            let n = n.clone();
            on(Box::new(move |c, _| c.0.txn.savepoint(&*c.0, &n)))
        }
        ControlKind::Release(n) => {
            let n = n.clone();
            on(Box::new(move |c, _| c.0.txn.release(&*c.0, &n)))
        }
        ControlKind::RollbackTo(n) => {
            let n = n.clone();
            on(Box::new(move |c, _| c.0.txn.rollback_to(&*c.0, &n)))
        }
        ControlKind::Attach => on(Box::new(|c, v| crate::attach::attach(c, &v[0], &v[1]))),
        ControlKind::Detach => on(Box::new(|c, v| crate::attach::detach(c, &v[0]))),
        ControlKind::Vacuum(schema) => {
            let schema = schema.clone();
            on(Box::new(move |c, v| crate::vacuum::vacuum(c, schema.as_deref(), v.first())))
        }
        ControlKind::Pragma(name, value) => crate::pragma::compile(conn, name, value.as_ref()),
        ControlKind::AlterTable(a) => crate::alter::compile(conn, a, text),
        ControlKind::Analyze(what) => crate::analyze::compile(conn, what.as_ref()),
        ControlKind::Work => Err(Code::Internal.into()),
    }
}

/// `BEGIN`.
pub(crate) fn begin(c: &Connection, mode: BeginMode) -> Result<()> {
    let inner = &c.0;
    let within = !inner.txn.is_autocommit();
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
                    if within {
                        return Err(e);
                    }
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
    // As in SQLite, the locks come first: a transaction that is open has them from now on.
    if within {
        return Err(Error::sql("cannot start a transaction within a transaction"));
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
    inner.txn.commit(&**inner)
}

/// `ROLLBACK`.
pub(crate) fn rollback(c: &Connection) -> Result<()> {
    if c.0.txn.is_autocommit() {
        return Err(Error::sql("cannot rollback - no transaction is active"));
    }
    if c.0.txn.is_held() {
        return Err(Error::sql("cannot rollback - a job of the write queue fails to be taken back"));
    }
    c.0.txn.rollback(&*c.0)
}
