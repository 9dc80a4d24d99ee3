//! Marks in a transaction: named savepoints, and those of statements above them.
//!
//! A named savepoint that began the transaction has no mark: going back to it takes all changes back, and the locks stay.

use super::{Owner, Savepoint, State, Transaction};
use iolite_base::{Code, Error, Result};
use iolite_btree::Btree;
use std::cell::Cell;

impl Transaction {
    /// How many marks there are, those of statements included.
    pub fn depth(&self) -> usize {
        self.named_marks() + self.statement_marks.get()
    }

    /// All marks of statements are gone.
    pub(super) fn forget_statement_marks(&self) {
        self.statement_marks.set(0);
        self.ended_marks.borrow_mut().clear();
    }

    fn named_marks(&self) -> usize {
        self.savepoints.borrow().len() - self.savepoint_began.get() as usize
    }

    /// Brings a database that has just begun to write to the present depth.
    pub fn catch_up(&self, b: &Btree) -> Result<()> {
        (0..self.depth()).try_for_each(|n| b.savepoint_open(n))
    }

    /// The mark of a statement that may have to be undone alone, set in a database that it is about to write to. `mark` keeps it
    /// until the statement ends.
    pub fn mark_statement(&self, mark: &Cell<Option<usize>>, b: &Btree) -> Result<()> {
        // Alone and without a transaction, it is undone by taking all back.
        if self.is_autocommit() && self.running.get() <= 1 {
            return Ok(());
        }
        let n = match mark.get() {
            Some(n) => n,
            None => {
                let n = self.depth();
                // What participants write now is older than the mark.
                self.tell_savepoint(n)?;
                self.statement_marks.set(self.statement_marks.get() + 1);
                mark.set(Some(n));
                self.check();
                n
            }
        };
        b.savepoint_open(n)
    }

    /// `SAVEPOINT name`.
    pub fn savepoint(&self, c: &impl Owner, name: &str) -> Result<()> {
        if self.is_writing() {
            return Err(Error::new(Code::Busy, "cannot open savepoint - SQL statements in progress"));
        }
        if self.is_autocommit() {
            self.state.set(State::Open);
            self.savepoint_began.set(true);
        } else {
            let n = self.depth();
            // What participants write now is older than the savepoint.
            self.tell_savepoint(n)?;
            for b in c.open_trees() {
                b.savepoint_open(n)?;
            }
        }
        let deferred = self.deferred.get();
        self.savepoints.borrow_mut().push(Savepoint {
            name: name.into(),
            deferred,
            by_pragma: self.by_pragma.get(),
        });
        self.check();
        Ok(())
    }

    /// Whether the outermost savepoint has this name.
    pub fn begins_with(&self, name: &str) -> bool {
        self.savepoints.borrow().first().is_some_and(|s| &*s.name == name)
    }

    fn find(&self, name: &str) -> Result<usize> {
        let list = self.savepoints.borrow();
        list.iter()
            .rposition(|s| s.name.eq_ignore_ascii_case(name))
            .ok_or_else(|| Error::sql(format!("no such savepoint: {name}")))
    }

    /// `RELEASE name`. Of the savepoint that began the transaction: the commit.
    pub fn release(&self, c: &impl Owner, name: &str) -> Result<()> {
        let at = self.find(name)?;
        if self.is_writing() {
            return Err(Error::new(Code::Busy, "cannot release savepoint - SQL statements in progress"));
        }
        if at == 0 && self.savepoint_began.get() {
            return self.commit(c);
        }
        let n = at - self.savepoint_began.get() as usize;
        for b in c.open_trees() {
            b.savepoint_release(n)?;
        }
        self.savepoints.borrow_mut().truncate(at);
        self.check();
        self.tell_marked(n as i32, |p, n| p.release(n))
    }

    /// `ROLLBACK TO name`: the savepoint stays open.
    pub fn rollback_to(&self, c: &impl Owner, name: &str) -> Result<()> {
        let at = self.find(name)?;
        let n = at.checked_sub(self.savepoint_began.get() as usize);
        self.undone.set(self.undone.get().wrapping_add(1));
        // Those of statements lie above the named ones.
        self.forget_statement_marks();
        let schemas = self.cookies(c);
        if let Err(e) = self.undo_to(c, n) {
            // Neither done nor undone: only the whole can be taken back now.
            let _ = self.rollback(c);
            return Err(e);
        }
        let (deferred, by_pragma) = {
            let savepoint = &self.savepoints.borrow()[at];
            (savepoint.deferred, savepoint.by_pragma)
        };
        self.deferred.set(deferred);
        self.by_pragma.set(by_pragma);
        self.savepoints.borrow_mut().truncate(at + 1);
        self.check();
        let told = self.tell_marked(n.map_or(-1, |n| n as i32), |p, n| p.rollback_to(n));
        self.cut_readers(c, &schemas);
        c.check_schemas();
        told
    }

    /// Takes changes of trees back to mark `n`, or all; the transaction goes on.
    fn undo_to(&self, c: &impl Owner, n: Option<usize>) -> Result<()> {
        for b in c.open_trees() {
            b.trip_writers();
            match n {
                Some(n) => b.savepoint_rollback(n)?,
                // The locks stay: nobody may write before this transaction goes on.
                None => b.rollback_changes()?,
            }
        }
        Ok(())
    }
}
