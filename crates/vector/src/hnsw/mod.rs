//! A graph of a column of vectors (HNSW), in memory.
//!
//! ```text
//! nearest -> memory -> graph, build -> links, code      a search: a walk through the graph, then the vectors that look near
//!               `----> stored                           what is in the file of a graph, so that it need not be made anew
//! ```
//!
//! What always holds: it is made of the rows of the table and of nothing else, and belongs to one state of them. An answer has the distances
//! of the vectors as they are stored: only which rows are looked at depends on the graph.

mod build;
mod code;
mod graph;
mod links;
mod memory;
mod nearest;
mod stored;

use crate::store::Store;
use iolite_base::{Error, Result};
use std::cell::RefCell;

pub(crate) use memory::Graphs;
pub(crate) use nearest::nearest;

/// What is inserted into the column of the table's name.
pub(crate) fn command(store: &Store, graphs: &RefCell<Graphs>, text: &[u8]) -> Result<()> {
    let anew = match text {
        b"rebuild" => true,
        b"optimize" => false,
        _ => {
            let text = String::from_utf8_lossy(text);
            return Err(Error::sql(format!("unknown command for a vec0 table: {text}")));
        }
    };
    for column in store.config.with_graphs() {
        // Taken out while it is used: reading the table may run a search within this.
        let mut taken = graphs.take();
        let built = taken.build(store, column, anew);
        graphs.replace(taken);
        built?;
    }
    Ok(())
}

/// What is wrong with the stored graph of a column, if something is.
pub(crate) fn check(store: &Store, column: usize) -> Result<Option<String>> {
    Ok(stored::is_damaged(store, column)?.then(|| "its links cannot be read".into()))
}
