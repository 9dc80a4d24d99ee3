//! What a constructor of a virtual table says while it runs. It knows nothing of connections: these keep it.

use iolite::engine::Trust;

/// What a constructor has said so far.
#[derive(Default)]
pub(crate) struct Making {
    pub declaration: Option<String>,
    /// The column that names the rows, if there are no rowids.
    pub key: Option<usize>,
    pub writable: bool,
    pub heeds_conflicts: bool,
    pub trust: Trust,
    pub all_schemas: bool,
}
