//! Who is asked or told of what a connection does: busy and progress handlers, hooks, listeners, the authorizer.

use super::{Connection, Inner, Tracer, VacuumPages};
use iolite_base::{Code, Result};
use iolite_btree::BusyHandler;
use iolite_ext::{ChangeListener, Participant, PreupdateListener, StatementList};
use std::rc::Rc;
use std::sync::atomic::Ordering;

impl Connection {
    /// Says who lists the statements that were prepared on it.
    pub fn set_statement_list(&self, list: Option<Rc<dyn StatementList>>) {
        *self.0.statements.borrow_mut() = list;
    }

    /// Says who is told of what is allowed and may be a mistake.
    pub fn set_log(&self, log: Option<crate::connection::Log>) {
        self.0.log.set(log);
    }

    /// Waits up to `ms` milliseconds for locks.
    pub fn busy_timeout(&self, ms: u32) -> Result<()> {
        self.0.settings.busy_timeout.set(ms);
        *self.0.busy.borrow_mut() = None;
        for d in self.0.databases.borrow().iter() {
            if let Some(b) = &d.btree {
                b.set_busy_timeout(ms)?;
            }
        }
        Ok(())
    }

    /// Calls `handler` with the number of tries so far while a lock is held by others; `false` gives up.
    pub fn busy_handler(&self, handler: Option<BusyHandler>) -> Result<()> {
        self.0.settings.busy_timeout.set(0);
        *self.0.busy.borrow_mut() = handler.clone();
        for d in self.0.databases.borrow().iter() {
            if let Some(b) = &d.btree {
                b.set_busy_handler(handler.clone())?;
            }
        }
        Ok(())
    }

    /// Asks the handler that was set, or the time limit, whether a lock is worth another attempt, and waits meanwhile.
    pub fn ask_busy_handler(&self, attempts: u32) -> bool {
        let handler = self.0.busy.borrow().clone();
        match handler.or_else(|| self.btree("main").ok()?.busy_handler()) {
            Some(handler) => handler(attempts),
            None => false,
        }
    }

    /// Sets who is asked, before a commit to a database with `auto_vacuum=full`, how many free pages go.
    pub fn vacuum_pages(&self, ask: Option<VacuumPages>) {
        *self.0.vacuum_pages.borrow_mut() = ask;
        for d in self.0.databases.borrow().iter() {
            if let Some(b) = &d.btree {
                self.0.settle_vacuum(b, &d.name);
            }
        }
    }

    /// Sets who is told of the statements of triggers.
    pub fn trace_triggers(&self, tell: Option<Tracer>) {
        *self.0.tracer.borrow_mut() = tell;
    }

    /// Calls `f` now and then during long statements; `true` interrupts.
    pub fn progress_handler(&self, f: Option<Rc<dyn Fn() -> bool>>) {
        self.progress_handler_every(0, f);
    }

    /// As [`Connection::progress_handler`], about once in `instructions` of a program; 0: as often as is good.
    pub fn progress_handler_every(&self, instructions: u32, f: Option<Rc<dyn Fn() -> bool>>) {
        self.0.progress_every.set(if f.is_none() { 0 } else { instructions });
        *self.0.progress.borrow_mut() = f;
    }

    /// Whether what names a collating sequence that nobody has registered fails, so that somebody can be asked for it. Otherwise only
    /// what compares by it does.
    pub fn ask_for_collations(&self, on: bool) {
        self.0.collations_asked_for.set(on);
    }

    /// Calls `f` before each commit; `true` turns it into a rollback.
    pub fn commit_hook(&self, f: Option<Rc<dyn Fn() -> bool>>) {
        self.0.txn.set_commit_hook(f);
    }

    /// Calls `f` after each rollback.
    pub fn rollback_hook(&self, f: Option<Rc<dyn Fn()>>) {
        self.0.txn.set_rollback_hook(f);
    }

    /// Takes something that keeps changes of its own into the transaction. `SQLITE_MISUSE` if there is none.
    pub fn join_transaction(&self, p: &Rc<dyn Participant>) -> Result<()> {
        self.0.txn.join(p)
    }

    /// Counts violations of deferred foreign keys, `n` more or fewer. Above zero, nothing is committed.
    pub fn count_deferred_violations(&self, n: i64) {
        self.0.txn.defer(n);
    }

    /// Tells `l` from now on what becomes of transactions.
    pub fn add_change_listener(&self, l: Rc<dyn ChangeListener>) {
        self.0.txn.listen(l);
    }

    /// Calls `f` after each commit that a log has taken, with the name of the database and the log's frames.
    pub fn wal_hook(&self, f: Option<Rc<crate::txn::WalHook>>) {
        self.0.txn.set_wal_hook(f);
    }

    /// As [`Connection::wal_hook`], and commits have no log copied back any more: a program does so in `f`, or not at all. The next
    /// setting of automatic checkpoints ends that.
    pub fn checkpoint_hook(&self, f: Option<Rc<crate::txn::WalHook>>) -> Result<()> {
        self.set_autocheckpoint(0)?;
        self.0.txn.set_wal_hook(f);
        self.0.txn.set_checkpointed_by_hook(true);
        Ok(())
    }

    /// From how many frames of a log on a commit has it copied back (`PRAGMA wal_autocheckpoint`); 0: never.
    pub fn set_autocheckpoint(&self, frames: u32) -> Result<()> {
        if self.0.txn.set_checkpointed_by_hook(false) {
            self.0.txn.set_wal_hook(None);
        }
        self.0.settings.autocheckpoint.set(frames);
        for b in self.0.open_trees() {
            b.set_wal_autocheckpoint(frames);
        }
        Ok(())
    }

    /// Calls `f` before each change of a row of a table, but not of the schema and other tables of the engine's own.
    pub fn preupdate_hook(&self, f: Option<Rc<crate::preupdate::PreupdateHook>>) {
        self.0.preupdate.set_hook(f);
    }

    /// Tells `l` of each change of a row of a table before it is made, until it is removed. The statistics of ANALYZE are such
    /// rows, other tables of the engine's own are not.
    pub fn add_preupdate_listener(&self, l: Rc<dyn PreupdateListener>) {
        self.0.preupdate.add(l);
    }

    /// Tells `l` of no more changes.
    pub fn remove_preupdate_listener(&self, l: &Rc<dyn PreupdateListener>) {
        self.0.preupdate.remove(l);
    }

    /// Calls `f` for each changed row with database, table and rowid.
    #[allow(clippy::type_complexity)]
    pub fn update_hook(&self, f: Option<Rc<dyn Fn(iolite_vdbe::RowChange, &str, &str, i64)>>) {
        *self.0.update_hook.borrow_mut() = f;
    }

    /// Has somebody asked for what statements do when they are compiled; all are compiled anew.
    pub fn set_authorizer(&self, a: Option<Rc<dyn iolite_ext::Authorizer>>) {
        let asks = a.is_some();
        let former = std::mem::replace(&mut *self.0.authorizer.borrow_mut(), a);
        drop(former);
        if asks {
            self.0.expire_statements();
        }
    }

    /// Runs `f`, during which nobody is asked for what statements do: they are none of the user's.
    pub fn unasked<T>(&self, f: impl FnOnce(&Connection) -> T) -> T {
        let kept = self.0.authorizer.take();
        let out = f(self);
        *self.0.authorizer.borrow_mut() = kept;
        out
    }
}

impl Inner {
    /// Whether the running statement shall stop: an error then.
    pub fn interrupted(&self) -> Result<()> {
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(Code::Interrupt.into());
        }
        let p = self.progress.borrow().clone();
        if let Some(p) = p
            && p()
        {
            return Err(Code::Interrupt.into());
        }
        Ok(())
    }

    /// As [`Inner::interrupted`], after work that stands for so many instructions, and that no program counts: who wants to be
    /// asked more rarely is not asked each time.
    pub fn interrupted_after(&self, steps: usize) -> Result<()> {
        let every = self.progress_every.get() as usize;
        let done = self.uncounted.get() + steps;
        self.uncounted.set(if done < every { done } else { 0 });
        if done < every && !self.interrupt.load(Ordering::Relaxed) { Ok(()) } else { self.interrupted() }
    }
}
