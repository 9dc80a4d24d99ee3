//! Programs whose work is the connection's: one row source, which does it when the program is first stepped.

use crate::binding::with_env;
use crate::connection::{Connection, Inner};
use iolite_base::{Code, Result};
use iolite_bytecode::Program;
use iolite_ext::{RowSource, SourceFactory};
use iolite_plan::StatementPlan;
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
    let plan = with_env(conn, |env| Ok(iolite_plan::work(env, &[], writes)))?;
    program(conn, &plan, columns, Rc::new(move |c, _| work(c)))
}

pub(crate) fn program(
    conn: &Connection,
    plan: &StatementPlan,
    columns: &[&str],
    work: WorkOn,
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
    iolite_codegen::emit_work(plan, &conn.0.codegen_settings(), columns, factory)
}

/// A program that holds a transaction on a database: it yields one row, and ends when it is reset.
pub(crate) fn holding_program(conn: &Connection, db: usize, writes: bool) -> Result<Program> {
    let row: WorkOn = Rc::new(|_, _| Ok(vec![vec![Value::Null]]));
    let db = &[db][..];
    let (reads, writes) = if writes { (&[][..], db) } else { (db, &[][..]) };
    let plan = with_env(conn, |env| Ok(iolite_plan::work(env, reads, writes)))?;
    program(conn, &plan, &["row"], row)
}
