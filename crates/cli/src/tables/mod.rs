//! Virtual tables of the shell: files of delimited text, and words that complete what is typed.

mod completion;
mod csv;

use iolite::engine::Connection;
use std::rc::Rc;

/// Adds them to a connection.
pub fn register(c: &Connection) {
    c.create_module("csv", Rc::new(csv::Csv));
    c.create_module("completion", Rc::new(completion::Completion));
}
