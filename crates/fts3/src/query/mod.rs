//! Queries: read from their text, answered by the index, looked at row by row.

mod evaluate;
mod hits;
mod near;
mod parser;

pub(crate) use evaluate::{Query, Totals};
use parser::parse;

/// A token of a phrase.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Term {
    pub text: Vec<u8>,
    /// All terms that begin so.
    pub prefix: bool,
    /// At the beginning of a column only.
    pub first: bool,
}

/// Tokens that stand one behind the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Phrase {
    pub terms: Vec<Term>,
    /// The column in which it has to stand.
    pub column: Option<usize>,
}
