//! ATTACH and DETACH.

use crate::connection::{Attached, Connection, Inner};
use crate::open::target;
use iolite_base::{Code, Error, Limit, Result};
use iolite_btree::{Btree, TxnState};
use iolite_catalog::Schema;
use iolite_value::Value;
use std::rc::Rc;

/// Attaches a file under a name.
pub(crate) fn attach(c: &Connection, file: &Value, name: &Value) -> Result<()> {
    let file = file.text_bytes()?;
    let name = name.text_carried();
    let inner = &c.0;
    let max = inner.limits.borrow().get(Limit::Attached) as usize;
    if inner.databases.borrow().len() >= max + 2 {
        return Err(Error::sql(format!("too many attached databases - max {max}")));
    }
    if inner.catalog.borrow().database(&name).is_some() {
        return Err(Error::sql(format!("database {name} is already in use")));
    }
    // What is wrong with a name is an error of the statement.
    let mut t =
        target(&file, inner.open_flags, &inner.vfs).map_err(|e| Error::sql(e.message().to_string()))?;
    let write = inner.settings.attach_write();
    t.options.read_only |= !write;
    t.options.create &= write && inner.settings.attach_create();
    let cache = if inner.sharing.is_some() { t.cache_name()? } else { None };
    let shared = cache.or_else(|| t.shared.clone());
    if shared.is_some() && inner.databases.borrow().iter().any(|d| d.shared == shared) {
        // Two transactions of one connection on one database would wait for each other.
        return Err(Error::sql("database is already attached"));
    }
    let b = t.open(inner.sharing.as_ref()).map_err(|e| {
        let file = String::from_utf8_lossy(&file);
        if e.has_message() { e } else { Error::new(e.code(), format!("unable to open database: {file}")) }
    })?;
    inner.settle(&b)?;
    inner.settle_vacuum(&b, &Rc::from(&*name));
    inner.databases.borrow_mut().push(Attached { shared, ..Attached::new(&name, Some(b)) });
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
    let d = inner.databases.borrow_mut().remove(at);
    Rc::make_mut(&mut inner.catalog.borrow_mut()).schemas.remove(at);
    Rc::make_mut(&mut inner.generations.borrow_mut()).remove(at);
    close(d)
}

fn close(mut d: Attached) -> Result<()> {
    let columns = crate::column_store::closing(&mut d.columns, d.btree.as_ref());
    let closed = d.btree.map_or(Ok(()), Btree::close);
    if let Some(c) = columns {
        c.finish();
    }
    closed
}

/// Lets the database of temporary tables go, which is in no transaction; its next use makes another.
pub(crate) fn close_temp(inner: &Inner) -> Result<()> {
    inner.expire_statements();
    let d = std::mem::replace(&mut inner.databases.borrow_mut()[1], Attached::new("temp", None));
    inner.edit_schema(1, |s| *s = Schema::new("temp"));
    close(d)
}

/// Detaches a database.
pub(crate) fn detach(c: &Connection, name: &Value) -> Result<()> {
    let name = name.text_carried();
    let inner = &c.0;
    // There is no database of temporary tables before the first of them.
    let known =
        inner.catalog.borrow().database(&name).filter(|at| *at != 1 || inner.btree_if_open(1).is_some());
    let Some(at) = known else {
        return Err(Error::sql(format!("no such database: {name}")));
    };
    if at < 2 {
        return Err(Error::sql(format!("cannot detach database {name}")));
    }
    let state = inner.btree_if_open(at).map_or(TxnState::None, |b| b.txn_state());
    if state != TxnState::None || inner.databases.borrow()[at].backups.get() > 0 {
        return Err(Error::sql(format!("database {name} is locked")));
    }
    remove(c, at)
}
