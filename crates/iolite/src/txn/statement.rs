//! Statements in a transaction: how one enters it, and what its end means.

use super::{Owner, Transaction};
use iolite_base::{Code, Error, Result};
use iolite_vdbe::Action;

/// How a statement's run ended.
pub(crate) struct Outcome<'e> {
    /// What went wrong, and what is to be undone then.
    pub error: Option<(&'e Error, Action)>,
    pub writes: bool,
    /// Its mark, if it has one: not where changes were taken back under it, and marks with them.
    pub mark: Option<usize>,
    /// The counter of deferred foreign keys when it began; `None` where it is not this statement's to set back, for it only
    /// reads, or its changes were taken back under it.
    pub deferred: Option<i64>,
    /// The rows that it changed, if it counts them.
    pub rows: Option<RowCounts>,
    /// It is compiled anew and run again: nobody hears of this run.
    pub again: bool,
}

/// Rows that a statement has changed.
pub(crate) struct RowCounts {
    /// By itself.
    pub own: i64,
    /// It has written to a tree.
    pub begun: bool,
    /// With those of its triggers.
    pub total: i64,
    /// Those of triggers that had ended: they are counted already.
    pub settled: i64,
}

impl Outcome<'_> {
    /// Whether what it did is to be undone.
    fn fails(&self) -> bool {
        matches!(self.error, Some((_, Action::Abort)))
    }

    /// Whether the whole transaction is taken back, not the statement alone.
    fn ends_transaction(&self) -> bool {
        let Some((e, action)) = self.error else { return false };
        // Where memory or room was short for one statement, or a file beside the database could not be opened, undoing that
        // one helps, if it can be undone.
        let severe = match e.code().primary() {
            Code::Nomem | Code::Full | Code::Cantopen => self.mark.is_none(),
            Code::Ioerr | Code::Interrupt => true,
            // A row that grew too long, in a statement that nothing else could stop, so that it has no mark: half of it may not stay.
            Code::Toobig => self.mark.is_none() && self.rows.as_ref().is_some_and(|r| r.own > 0 || r.begun),
            _ => false,
        };
        action == Action::Rollback || severe && self.writes
    }
}

impl Transaction {
    /// A statement begins to run.
    #[inline]
    pub fn enter(&self, writes: bool) {
        self.running.set(self.running.get() + 1);
        if writes {
            self.writing.set(self.writing.get() + 1);
        }
        self.check();
    }

    /// Whether at most one statement runs.
    #[inline]
    pub fn is_alone(&self) -> bool {
        self.running.get() <= 1
    }

    /// A statement has ended: undoes what must be undone, commits what may be committed. Its cursors must be gone if it failed.
    pub fn end_statement(&self, c: &impl Owner, run: &Outcome<'_>) -> Result<()> {
        let mut whole = run.ends_transaction();
        let mut result = Ok(());
        if whole {
            result = self.rollback(c);
        } else if run.error.is_some() || run.mark.is_some() {
            result = self.end_mark(c, run);
            if run.fails() && result.is_err() {
                // Neither done nor undone: only the whole can be taken back now.
                whole = true;
                let _ = self.rollback(c);
            }
        }
        let nested = self.is_nested();
        let mut taken_back = false;
        let ends = self.is_autocommit() && !nested && !self.syncing.get() && self.writing.get() <= 1;
        if run.writes && ends && !whole {
            let done = match (run.fails(), run.again) {
                (false, _) => self.commit(c),
                (true, false) => self.rollback(c),
                (true, true) => self.rollback_untold(c),
            };
            if done.is_err() {
                taken_back = !run.fails();
                result = done;
            }
        }
        if let Some(rows) = run.rows.as_ref().filter(|_| !nested && !run.again) {
            let undone = whole || run.fails() || taken_back;
            let own = if undone { 0 } else { rows.own };
            // What a failed trigger program had begun does not count, what it had finished does.
            let total = match (undone, run.error.is_some()) {
                (true, _) => 0,
                (_, true) => rows.own,
                _ => rows.total - rows.settled,
            };
            c.count_rows(own, total);
        }
        result
    }

    /// Closes a statement's mark; goes back to it first if the statement failed.
    fn end_mark(&self, c: &impl Owner, run: &Outcome<'_>) -> Result<()> {
        let fails = run.fails();
        if let Some(n) = run.deferred.filter(|_| fails) {
            self.deferred.set(n);
            self.by_pragma.set(self.by_pragma.get().min(n));
        }
        let Some(n) = run.mark else { return Ok(()) };
        let undone = if fails { self.back_to_mark(c, n) } else { Ok(()) };
        self.ended_marks.borrow_mut().push(n);
        let closed = self.close_ended_marks(c, undone.is_ok());
        self.check();
        undone.and(closed)?;
        if fails {
            c.check_schemas();
        }
        Ok(())
    }

    /// Takes back what was changed since mark `n`. The marks above it are of statements that go on.
    fn back_to_mark(&self, c: &impl Owner, n: usize) -> Result<()> {
        let mut result = Ok(());
        c.each_tree(|_, b| {
            if result.is_ok() {
                result = b.savepoint_rollback(n);
            }
        });
        let top = self.depth() - 1;
        c.each_tree(|_, b| {
            if result.is_ok() && top > n {
                result = b.savepoint_open(top);
            }
        });
        result?;
        self.tell_marked(n as i32, |p, n| p.rollback_to(n))
    }

    /// Closes the marks of statements that have ended, from the top, as far as no others lie above. `told`: participants hear
    /// of it.
    fn close_ended_marks(&self, c: &impl Owner, told: bool) -> Result<()> {
        let mut result = Ok(());
        loop {
            let top = self.depth().wrapping_sub(1);
            let ended = self.ended_marks.borrow().iter().position(|n| *n == top);
            let Some(k) = ended else { return result };
            self.ended_marks.borrow_mut().swap_remove(k);
            self.statement_marks.set(self.statement_marks.get().saturating_sub(1));
            let mut released = Ok(());
            c.each_tree(|_, b| {
                let done = b.savepoint_release(top);
                if released.is_ok() {
                    released = done;
                }
            });
            result = result.and(released);
            if told && result.is_ok() {
                result = self.tell_marked(top as i32, |p, n| p.release(n));
            }
        }
    }

    /// A statement that has ended leaves. `reads`: it had begun to read or write databases.
    pub fn leave(&self, c: &impl Owner, writes: bool, reads: bool) {
        let less = |count: &std::cell::Cell<u32>| count.set(count.get().saturating_sub(1));
        less(&self.running);
        if reads {
            less(&self.reading);
        }
        if writes {
            less(&self.writing);
        }
        self.check();
        // Statements that read no database need no snapshot.
        let idle = self.running.get() == 0 || self.reading.get() == 0 && !self.is_nested();
        if idle && self.is_autocommit() {
            c.end_reads();
        }
        if self.is_autocommit() {
            c.conclude();
        }
    }
}
