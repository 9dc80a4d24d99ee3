//! Stopping a statement from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stops what runs on a connection. It can be sent, shared and cloned, and may outlive the connection.
///
/// ```
/// let db = iolite::Connection::open_in_memory()?;
/// let handle = db.get_interrupt_handle();
/// db.create_scalar_function("stop", 0, Default::default(), move |_| {
///     handle.interrupt();
///     Ok(1)
/// })?;
/// let endless = "WITH RECURSIVE n(i) AS (SELECT stop() UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";
/// let e = db.query_row(endless, [], |row| row.get::<_, i64>(0)).unwrap_err();
/// assert_eq!(e.code(), iolite::Code::Interrupt);
/// # Ok::<(), iolite::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct InterruptHandle(Arc<AtomicBool>);

impl InterruptHandle {
    pub(super) fn new(flag: Arc<AtomicBool>) -> InterruptHandle {
        InterruptHandle(flag)
    }

    /// Makes running statements end with `SQLITE_INTERRUPT`.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// // What begins later is not stopped.
    /// db.get_interrupt_handle().interrupt();
    /// db.execute_batch("SELECT 1")?;
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn interrupt(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
