//! What programs depend on besides their plan.

use std::rc::Rc;

/// Settings of the connection that change what programs do.
#[derive(Clone, Default)]
pub struct Settings {
    /// Schema generation per database: programs notice when it has changed.
    pub generations: Rc<Vec<u64>>,
    /// `PRAGMA recursive_triggers`.
    pub recursive_triggers: bool,
    /// `PRAGMA reverse_unordered_selects`.
    pub reverse_unordered: bool,
    /// `PRAGMA count_changes`: a change of rows answers how many there were.
    pub counts_rows: bool,
    /// The statement runs as part of a schema change of the engine's own.
    pub nested: bool,
    /// The most instructions that a program may have; 0: no limit.
    pub most_instructions: usize,
}
