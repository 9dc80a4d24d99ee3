//! What INSERT, UPDATE and DELETE do: `insert`, `update` and `delete` decide; `tests` says what is asked of a new row, and
//! in which order. What comes out is a [`crate::statement::modify::ModifyPlan`].

mod delete;
mod foreign_keys;
mod insert;
mod tests;
mod update;

use crate::bind::Target;
use iolite_base::Error;

/// The complaint about a change that virtual tables do not know yet.
fn unsupported(what: &str, t: &Target) -> Error {
    Error::sql(format!("{what} virtual table {} is not supported yet", t.table.name))
}
