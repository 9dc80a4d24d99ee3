//! What programs depend on besides their plan.

use crate::door::Door;
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
    /// `PRAGMA lookahead_filters = off`: no Bloom filters.
    pub no_filters: bool,
    /// The statement runs as part of a schema change of the engine's own.
    pub nested: bool,
    /// Who may take whole arms over; none: all run as programs.
    pub door: Option<Rc<dyn Door>>,
    /// Somebody asks how the statement is run: programs say which instructions work for which line of the plan.
    pub explained: bool,
    /// The most instructions that a program may have; 0: no limit.
    pub most_instructions: usize,
}
