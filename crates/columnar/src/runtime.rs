//! What a run asks of its connection: trees, columns, time, files, and whether to stop.

use crate::profile::Profile;
use crate::store::Store;
use iolite_base::Result;
use iolite_btree::Btree;
use iolite_ext::Host;
use std::sync::Arc;

/// What a run asks of its connection.
pub trait Runtime {
    /// For functions.
    fn host(&self) -> &dyn Host;
    /// A database's trees.
    fn btree(&self, db: usize) -> Result<Btree>;
    /// A database's columns.
    fn store(&self, db: usize) -> Result<Arc<Store>>;
    /// Whether to stop: an error then.
    fn check(&self) -> Result<()>;
    /// Small tables, too.
    fn force(&self) -> bool;
    /// A file for what does not fit into memory; `None`: there is none to be had.
    fn temporary(&self) -> Result<Option<Box<dyn iolite_os::File>>> {
        Ok(None)
    }
    /// Whether columns of inner tables may be laid beside outer ones.
    fn derives(&self) -> bool {
        true
    }
    /// How many threads a large scan may use.
    fn threads(&self) -> usize {
        1
    }
    /// Where to write down what is done, if somebody asks.
    fn profile(&self) -> Option<&Profile> {
        None
    }
    /// The time, for that.
    fn nanos(&self) -> u64 {
        0
    }
}
