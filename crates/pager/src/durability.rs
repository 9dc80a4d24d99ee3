//! How far bytes have come, as types: a later state is only made from an earlier one.
//!
//! ```text
//! rollback journal:  records Written -> journal Synced -> database Written -> Truncatable
//! write-ahead log:   frames Written  -> log Synced     -> header Published -> backfilled      -> Truncatable
//! ```
//!
//! With `synchronous=OFF` a step is taken as done when it was asked for: the token says that the order was
//! kept, not that a disk turned.

/// A journal's records can be relied on: the database may be overwritten.
#[must_use]
pub struct Synced(());

impl Synced {
    /// Made by the journal once it is sealed.
    pub(crate) fn of_journal() -> Synced {
        Synced(())
    }
}

/// The database file holds the whole transaction.
#[must_use]
pub struct Written(());

impl Written {
    /// The pages went over originals that a sealed journal holds.
    pub(crate) fn over(_journal: &Synced) -> Written {
        Written(())
    }

    /// The database was synced.
    pub(crate) fn synced(self) -> Truncatable {
        Truncatable(())
    }
}

/// Nobody needs the journal any more: it may be ended, which commits.
#[must_use]
pub struct Truncatable(());
