//! ATTACH and DETACH.

use crate::connection::{Attached, Connection};
use crate::control::constant;
use crate::open::{OpenFlags, target};
use iolite_base::{Code, Error, Limit, Result};
use iolite_btree::{Btree, TxnState};
use iolite_catalog::Schema;
use iolite_sql::ast::Expr;
use std::rc::Rc;

/// Attaches a file under a name.
pub(crate) fn attach(c: &Connection, file: &Expr, name: &Expr) -> Result<()> {
    let file = constant(c, file)?.to_string_lossy();
    let name = constant(c, name)?.to_string_lossy();
    let inner = &c.0;
    let max = inner.limits.borrow().get(Limit::Attached) as usize;
    if inner.databases.borrow().len() >= max + 2 {
        return Err(Error::sql(format!("too many attached databases - max {max}")));
    }
    if inner.catalog.borrow().database(&name).is_some() {
        return Err(Error::sql(format!("database {name} is already in use")));
    }
    let t = target(&file, OpenFlags::default())?;
    let b = Btree::open(inner.vfs.clone(), &t.path, &t.options).map_err(|e| {
        if e.has_message() { e } else { Error::new(e.code(), format!("unable to open database: {file}")) }
    })?;
    b.set_encoding(inner.encoding());
    match inner.busy.borrow().clone() {
        Some(h) => b.set_busy_handler(Some(h))?,
        None => b.set_busy_timeout(inner.busy_timeout.get())?,
    }
    b.set_lock_lease(inner.lock_lease.get())?;
    b.set_checkpoint_thread(inner.checkpoint_thread.get())?;
    b.set_large_value_direct(inner.large_value_direct.get())?;
    let path = if b.is_memory() || b.is_transient() {
        String::new()
    } else {
        b.file_name().to_string_lossy().into_owned()
    };
    inner.databases.borrow_mut().push(Attached {
        name: (&*name).into(),
        btree: Some(b),
        file: path,
        columns: Default::default(),
    });
    Rc::make_mut(&mut inner.catalog.borrow_mut()).schemas.push(Rc::new(Schema::new(&name)));
    Rc::make_mut(&mut inner.generations.borrow_mut()).push(0);
    inner.expire_statements();
    let at = inner.databases.borrow().len() - 1;
    if let Err(e) = inner.load_schema(at) {
        remove(c, at)?;
        return Err(match e.code() {
            Code::Notadb | Code::Cantopen => Error::new(e.code(), e.message().to_string()),
            _ => e,
        });
    }
    Ok(())
}

fn remove(c: &Connection, at: usize) -> Result<()> {
    let inner = &c.0;
    // With the generation that goes counted in.
    inner.expire_statements();
    let mut d = inner.databases.borrow_mut().remove(at);
    Rc::make_mut(&mut inner.catalog.borrow_mut()).schemas.remove(at);
    Rc::make_mut(&mut inner.generations.borrow_mut()).remove(at);
    let columns = crate::columns::closing(&mut d);
    let closed = d.btree.map_or(Ok(()), Btree::close);
    if let Some(c) = columns {
        c.finish();
    }
    closed
}

/// Detaches a database.
pub(crate) fn detach(c: &Connection, name: &Expr) -> Result<()> {
    let name = constant(c, name)?.to_string_lossy();
    let inner = &c.0;
    let Some(at) = inner.catalog.borrow().database(&name) else {
        return Err(Error::sql(format!("no such database: {name}")));
    };
    if at < 2 {
        return Err(Error::sql(format!("cannot detach database {name}")));
    }
    let state = inner.btree_if_open(at).map_or(TxnState::None, |b| b.txn_state());
    if state != TxnState::None {
        return Err(Error::sql(format!("database {name} is locked")));
    }
    remove(c, at)
}
