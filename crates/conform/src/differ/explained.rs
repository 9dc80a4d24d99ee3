//! Differences that are meant: each with the documentation page that leaves the outcome open or says why.

use super::pair::{Difference, Stmt};

/// One explanation.
pub struct Explained {
    /// In a few words.
    pub title: &'static str,
    /// The page, and what it says.
    pub page: &'static str,
    applies: fn(&Stmt, &Difference) -> bool,
}

/// All of them; at most ten.
pub const EXPLAINED: &[Explained] = &[];

/// The explanation of a difference, if there is one.
pub fn explain(s: &Stmt, d: &Difference) -> Option<&'static Explained> {
    EXPLAINED.iter().find(|e| (e.applies)(s, d))
}
