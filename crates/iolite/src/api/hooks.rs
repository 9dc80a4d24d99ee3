//! Functions of a program that a connection calls: around commits and changed rows, while it waits or works long, and for
//! each statement.
//!
//! A hook that is called while it runs, since it uses the connection, is passed over.

use super::connection::{Connection, Profile, Trace};
use iolite_base::Result;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// What happened to a row.
///
/// ```
/// assert_ne!(iolite::Action::Insert, iolite::Action::Delete);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Action {
    Insert,
    Update,
    Delete,
}

/// A closure that may be called while it runs: then the answer is `busy`.
fn once_at_a_time<F, T>(f: F, busy: T) -> impl Fn(&mut dyn FnMut(&mut F) -> T) -> T
where
    T: Copy,
{
    let f = RefCell::new(f);
    move |call| f.try_borrow_mut().map_or(busy, |mut f| call(&mut f))
}

impl Connection {
    /// Calls `hook` before each commit; `true` turns it into a rollback.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// db.commit_hook(Some(|| true));
    /// assert!(db.execute("CREATE TABLE t(a)", []).is_err());
    /// db.commit_hook(None::<fn() -> bool>);
    /// db.execute("CREATE TABLE t(a)", [])?;
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn commit_hook<F: FnMut() -> bool + Send + 'static>(&self, hook: Option<F>) {
        self.engine.commit_hook(hook.map(|f| {
            let f = once_at_a_time(f, false);
            Rc::new(move || f(&mut |f| f())) as Rc<dyn Fn() -> bool>
        }));
    }

    /// Calls `hook` after each rollback of something that was changed.
    ///
    /// ```
    /// # let mut db = iolite::Connection::open_in_memory()?;
    /// let (say, hear) = std::sync::mpsc::channel();
    /// db.rollback_hook(Some(move || drop(say.send(()))));
    /// let tx = db.transaction()?;
    /// tx.execute("CREATE TABLE t(a)", [])?;
    /// tx.rollback()?;
    /// assert!(hear.try_recv().is_ok());
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn rollback_hook<F: FnMut() + Send + 'static>(&self, hook: Option<F>) {
        self.engine.rollback_hook(hook.map(|f| {
            let f = once_at_a_time(f, ());
            Rc::new(move || f(&mut |f| f())) as Rc<dyn Fn()>
        }));
    }

    /// Calls `hook` for each changed row with database, table and rowid.
    ///
    /// ```
    /// # use iolite::Action;
    /// # let db = iolite::Connection::open_in_memory()?;
    /// db.execute("CREATE TABLE t(a)", [])?;
    /// let (say, hear) = std::sync::mpsc::channel();
    /// db.update_hook(Some(move |action, _db: &str, table: &str, rowid| {
    ///     drop(say.send((action, table.to_string(), rowid)));
    /// }));
    /// db.execute("INSERT INTO t VALUES ('x')", [])?;
    /// assert_eq!(hear.recv().unwrap(), (Action::Insert, "t".to_string(), 1));
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn update_hook<F: FnMut(Action, &str, &str, i64) + Send + 'static>(&self, hook: Option<F>) {
        use iolite_vdbe::RowChange;
        type Hook = dyn Fn(RowChange, &str, &str, i64);
        self.engine.update_hook(hook.map(|f| {
            let f = RefCell::new(f);
            Rc::new(move |change: RowChange, db: &str, table: &str, rowid: i64| {
                let action = match change {
                    RowChange::Insert => Action::Insert,
                    RowChange::Update => Action::Update,
                    RowChange::Delete => Action::Delete,
                };
                if let Ok(mut f) = f.try_borrow_mut() {
                    f(action, db, table, rowid);
                }
            }) as Rc<Hook>
        }));
    }

    /// Calls `hook` after commits that grew the log of a database in WAL mode: with the name of the database and the frames that the
    /// log has now.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("iolite-doc-wal-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// let db = iolite::Connection::open(dir.join("my.db"))?;
    /// db.execute_batch("PRAGMA journal_mode = WAL")?;
    /// let (say, hear) = std::sync::mpsc::channel();
    /// db.wal_hook(Some(move |database: &str, frames| drop(say.send((database.to_string(), frames)))));
    /// db.execute("CREATE TABLE t(a)", [])?;
    /// let (database, frames) = hear.try_recv().unwrap();
    /// assert!(database == "main" && frames >= 2);
    /// # drop(db);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn wal_hook<F: FnMut(&str, u32) + Send + 'static>(&self, hook: Option<F>) {
        type Hook = dyn Fn(&str, u32);
        self.engine.wal_hook(hook.map(|f| {
            let f = RefCell::new(f);
            Rc::new(move |database: &str, frames: u32| {
                if let Ok(mut f) = f.try_borrow_mut() {
                    f(database, frames);
                }
            }) as Rc<Hook>
        }));
    }

    /// Calls `handler` about once in `instructions` of a long statement; `true` interrupts it.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// db.progress_handler(1000, Some(|| true));
    /// let long = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";
    /// let e = db.query_row(long, [], |row| row.get::<_, i64>(0)).unwrap_err();
    /// assert_eq!(e.code(), iolite::Code::Interrupt);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn progress_handler<F: FnMut() -> bool + Send + 'static>(
        &self,
        instructions: u32,
        handler: Option<F>,
    ) {
        let handler = handler.map(|f| {
            let f = once_at_a_time(f, false);
            Rc::new(move || f(&mut |f| f())) as Rc<dyn Fn() -> bool>
        });
        self.engine.progress_handler_every(instructions, handler);
    }

    /// Calls `handler` with the number of tries so far while others hold a lock; `false` gives up. It takes the place of the timeout.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// db.busy_handler(Some(|tries| tries < 3))?;
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn busy_handler<F: FnMut(u32) -> bool + Send + 'static>(&self, handler: Option<F>) -> Result<()> {
        self.engine.busy_handler(handler.map(|f| {
            let f = RefCell::new(f);
            Rc::new(move |tries: u32| f.try_borrow_mut().is_ok_and(|mut f| f(tries)))
                as Rc<dyn Fn(u32) -> bool>
        }))
    }

    /// Calls `f` with the text of each statement that begins to run.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let (say, hear) = std::sync::mpsc::channel();
    /// db.trace(Some(move |sql: &str| drop(say.send(sql.to_string()))));
    /// db.execute("CREATE TABLE t(a)", [])?;
    /// assert_eq!(hear.recv().unwrap(), "CREATE TABLE t(a)");
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn trace<F: FnMut(&str) + Send + 'static>(&self, f: Option<F>) {
        *self.trace.borrow_mut() = f.map(|f| Rc::new(RefCell::new(f)) as Trace);
        self.note_traced();
    }

    /// Calls `f` with the text of each statement that has ended, and how long it took.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let db = iolite::Connection::open_in_memory()?;
    /// let (say, hear) = std::sync::mpsc::channel();
    /// db.profile(Some(move |sql: &str, took: Duration| drop(say.send((sql.to_string(), took)))));
    /// db.query_row("SELECT 1", [], |_| Ok(()))?;
    /// assert_eq!(hear.recv().unwrap().0, "SELECT 1");
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn profile<F: FnMut(&str, Duration) + Send + 'static>(&self, f: Option<F>) {
        *self.profile.borrow_mut() = f.map(|f| Rc::new(RefCell::new(f)) as Profile);
        self.note_traced();
    }

    fn note_traced(&self) {
        self.traced.set(self.trace.borrow().is_some() || self.profile.borrow().is_some());
    }

    pub(super) fn tell_start(&self, sql: &str) {
        let f = self.trace.borrow().clone();
        if let Some(Ok(mut f)) = f.as_ref().map(|f| f.try_borrow_mut()) {
            f(sql);
        }
    }

    pub(super) fn tell_end(&self, sql: &str, took: Duration) {
        let f = self.profile.borrow().clone();
        if let Some(Ok(mut f)) = f.as_ref().map(|f| f.try_borrow_mut()) {
            f(sql, took);
        }
    }
}
