//! How large tables are: the one place where that is asked for the columnar engine.
//!
//! A table is large when it has as many leaves as columns need to pay ([`Store::is_large`]). Preparing a statement may
//! not read pages to find that out, so it goes by what is known: whether the table was large when it was last looked at,
//! or by its statistics. A block whose tables all seem small is not compiled for columns, which would take longer than
//! running it in rows; it is watched instead ([`watch`]): before each run its tables are looked at, and when one has
//! grown, the statement is compiled anew.

use super::engine::store;
use crate::column_store::At;
use crate::connection::Inner;
use iolite_base::{Code, Few, Result};
use iolite_catalog::Table;
use iolite_ext::SourceFactory;
use std::rc::{Rc, Weak};

/// Tables of fewer rows, by their statistics, are taken for small: a leaf seldom has fewer than 60.
const FEW_ROWS: f64 = 4_000.0;

/// Which of these tables is large, if one is: to be asked within a read transaction. What cannot be read now is found by the
/// loops, if they come there.
pub(super) fn large(conn: &Inner, tables: &[At]) -> Option<At> {
    let is_large = |(db, root): At| -> Result<bool> {
        let bt = conn.btree_of(db)?;
        store(conn, db, &bt)?.is_large(&bt, root)
    };
    tables.iter().copied().find(|at| is_large(*at).unwrap_or(false))
}

/// Whether a table is small at present.
pub(super) fn is_small(conn: &Inner, at: At) -> bool {
    let asked = conn.btree_of(at.0).and_then(|bt| bt.reading(|_| Ok(large(conn, &[at]).is_none())));
    asked.unwrap_or(true)
}

/// Whether a table is small, as far as can be told without reading.
pub(super) fn seems_small(conn: &Inner, db: usize, table: &Table) -> bool {
    let at = (db, table.root.get());
    if conn.growth.has_grown(at) {
        return false;
    }
    let dbs = conn.databases.borrow();
    match dbs.get(db).and_then(|d| d.columns.get()).and_then(|s| s.was_large(at.1)) {
        Some(large) => !large,
        None => {
            let rows = table.rows.get();
            rows != iolite_catalog::DEFAULT_ROWS && rows < FEW_ROWS
        }
    }
}

/// What looks at small tables before each run.
pub(super) fn watch(conn: Weak<Inner>, tables: Few<At>) -> SourceFactory {
    SourceFactory(Rc::new(move |_, _| {
        let Some(conn) = conn.upgrade() else { return Err(Code::Misuse.into()) };
        match large(&conn, &tables) {
            None => Ok(None),
            Some(at) => {
                conn.growth.note(at);
                conn.expire_statements();
                Err(Code::Schema.into())
            }
        }
    }))
}
