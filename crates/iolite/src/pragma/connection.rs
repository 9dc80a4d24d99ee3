//! Settings of a connection.

use super::words::{int32, number as parse_number, truth, whole};
use super::{Call, Pragma, Rows, int, one, text};
use crate::settings::{Analytics, Settings};
use iolite_base::{Error, Result};
use iolite_btree::TxnState;
use std::cell::Cell;
use std::rc::Rc;

pub(super) static PRAGMAS: &[Pragma] = &[
    Pragma::new("analytics", analytics),
    Pragma::new("analysis_limit", |c| number(c, |s| &s.analysis_limit)),
    Pragma::new("busy_timeout", busy_timeout).columns(&["timeout"]),
    Pragma::new("case_sensitive_like", case_sensitive_like).columns(&[]),
    Pragma::new("defer_foreign_keys", defer_foreign_keys).silent(),
    Pragma::new("foreign_keys", foreign_keys).silent(),
    Pragma::new("plan_cache", plan_cache),
    Pragma::new("sort_memory", |c| number(c, |s| &s.sort_memory)),
    Pragma::new("temp_store", temp_store).silent(),
    Pragma::new("threads", |c| number(c, |s| &s.threads)),
    Pragma::new("writable_schema", writable_schema).silent(),
];

/// Sets a flag, and answers it. Statements are prepared anew where it changes.
pub(super) fn flag(c: &Call<'_>, cell: &Cell<bool>) -> Result<Rows> {
    if let Some(on) = c.value.map(truth)
        && cell.replace(on) != on
    {
        c.inner().expire_statements();
    }
    int(cell.get() as i64)
}

fn number(c: &Call<'_>, get: fn(&Settings) -> &Cell<i64>) -> Result<Rows> {
    let cell = get(&c.inner().settings);
    // What is no number, or negative, only asks what it is.
    if let Some(n) = c.value.and_then(whole).filter(|n| *n >= 0) {
        cell.set(n & i64::from(i32::MAX));
    }
    int(cell.get())
}

fn defer_foreign_keys(c: &Call<'_>) -> Result<Rows> {
    let txn = &c.inner().txn;
    let rows = flag(c, txn.defer_foreign_keys())?;
    if c.value.is_some() && !txn.defer_foreign_keys().get() {
        txn.forget_deferred_by_pragma();
    }
    Ok(rows)
}

/// Nothing within a transaction.
fn foreign_keys(c: &Call<'_>) -> Result<Rows> {
    let value = c.value.filter(|_| c.inner().txn.is_autocommit());
    flag(&Call { value, ..*c }, &c.inner().settings.foreign_keys)
}

/// `reset` also reads what was written into the schema tables.
fn writable_schema(c: &Call<'_>) -> Result<Rows> {
    let inner = c.inner();
    let value = c.value.filter(|_| !inner.settings.defensive());
    let rows = flag(&Call { value, ..*c }, &inner.settings.writable_schema)?;
    if value.is_some() {
        inner.settle_salvaging()?;
    }
    if value.is_some_and(|v| v.eq_ignore_ascii_case("reset")) {
        (0..inner.databases.borrow().len()).for_each(|db| inner.forget_schema(db));
    }
    Ok(rows)
}

/// Which queries run in columns: `off`, `auto`, `force`.
fn analytics(c: &Call<'_>) -> Result<Rows> {
    let cell = &c.inner().settings.analytics;
    if let Some(v) = c.value {
        let mode = match v.to_ascii_lowercase().as_str() {
            "force" => Analytics::Force,
            "auto" => Analytics::Auto,
            other if truth(other) => Analytics::Auto,
            _ => Analytics::Off,
        };
        if cell.replace(mode) != mode {
            c.inner().expire_statements();
        }
    }
    one(text(cell.get().name())?)
}

fn busy_timeout(c: &Call<'_>) -> Result<Rows> {
    if let Some(v) = c.value {
        c.conn.busy_timeout(int32(v).max(0) as u32)?;
    }
    int(c.inner().settings.busy_timeout() as i64)
}

/// Functions stay as they are while another statement runs, which may call them; SQLite does not say so either.
fn case_sensitive_like(c: &Call<'_>) -> Result<Rows> {
    if let Some(v) = c.value
        && c.inner().txn.running() <= 1
    {
        let on = truth(v);
        iolite_func::set_case_sensitive_like(Rc::make_mut(&mut c.inner().registry.borrow_mut()), on);
        c.inner().expire_statements();
    }
    Ok(Vec::new())
}

/// How many programs are kept for texts that are prepared again.
fn plan_cache(c: &Call<'_>) -> Result<Rows> {
    let mut plans = c.inner().plans.borrow_mut();
    if let Some(v) = c.value {
        plans.resize(parse_number(v).max(0) as usize);
    }
    int(plans.size() as i64)
}

fn temp_store(c: &Call<'_>) -> Result<Rows> {
    if let Some(v) = c.value {
        let n = match v.to_ascii_lowercase().as_str() {
            "file" => 1,
            "memory" => 2,
            n => match n.as_bytes().first() {
                Some(b @ b'0'..=b'2') => i64::from(b - b'0'),
                _ => 0,
            },
        };
        let inner = c.inner();
        if n != inner.settings.temp_store() {
            // Temporary tables do not move: they go.
            if let Some(temp) = inner.btree_if_open(1) {
                if !inner.txn.is_autocommit() || temp.txn_state() != TxnState::None {
                    let what = "temporary storage cannot be changed from within a transaction";
                    return Err(Error::sql(what));
                }
                crate::attach::close_temp(inner)?;
            }
            inner.settings.temp_store.set(n);
        }
    }
    int(c.inner().settings.temp_store())
}
