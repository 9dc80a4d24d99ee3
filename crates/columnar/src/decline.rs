//! How code in the midst of a run says that the engine declines: a value, or the room there is, is of a kind that it does
//! not know how to go on with. The block's loops answer then. Any other code is an error.

use iolite_base::{Code, Error};

/// The code of an error that says no more than that. No other part of the engine gives it.
pub(crate) const DECLINED: Code = Code::Notfound;

/// The error, with a reason to be counted.
#[cold]
pub(crate) fn because(reason: &'static str) -> Error {
    Error::new(DECLINED, reason)
}
