//! What the parts of a star join know of its tables.

use super::build::InnerTable;
use crate::expr::scope::Scope;
use std::ops::Deref;
use std::sync::Arc;

/// Where rows and their columns are, and the inner tables by key.
#[derive(Clone, Copy)]
pub(crate) struct JoinScope<'a> {
    pub scope: Scope<'a>,
    /// For each table, its rows by key; `None` for the scanned one, and where columns were laid beside that.
    pub inners: &'a [Option<Arc<InnerTable>>],
}

impl<'a> Deref for JoinScope<'a> {
    type Target = Scope<'a>;

    fn deref(&self) -> &Scope<'a> {
        &self.scope
    }
}
