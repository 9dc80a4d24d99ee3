//! Copies of whole databases, while they are in use.

use super::connection::Connection;
use crate::engine;
use iolite_base::{Code, Result};
use std::marker::PhantomData;
use std::path::Path;
use std::time::Duration;

/// A copy in progress.
///
/// ```
/// use iolite::{Backup, Connection};
/// use std::time::Duration;
///
/// let from = Connection::open_in_memory()?;
/// from.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES (1)")?;
/// let mut to = Connection::open_in_memory()?;
/// let mut steps = 0;
/// {
///     let mut backup = Backup::new(&from, &mut to)?;
///     backup.run_to_completion(1, Duration::ZERO, |_| steps += 1)?;
/// }
/// assert!(steps > 1);
/// assert_eq!(to.query_row("SELECT a FROM t", [], |row| row.get::<_, i64>(0))?, 1);
/// # Ok::<(), iolite::Error>(())
/// ```
pub struct Backup<'from, 'to> {
    backup: engine::Backup,
    connections: PhantomData<(&'from Connection, &'to Connection)>,
}

/// How far a [`Backup`] is.
///
/// ```
/// let p = iolite::Progress { remaining: 3, pagecount: 10 };
/// assert_eq!(p.pagecount - p.remaining, 7);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Pages that are still to be copied.
    pub remaining: u32,
    /// Pages that the source has.
    pub pagecount: u32,
}

/// How a step of a [`Backup`] ended.
///
/// ```
/// # use iolite::{Backup, Connection, StepResult};
/// # let from = Connection::open_in_memory()?;
/// # let mut to = Connection::open_in_memory()?;
/// # from.execute_batch("CREATE TABLE t(a)")?;
/// let mut backup = Backup::new(&from, &mut to)?;
/// assert_eq!(backup.step(1)?, StepResult::More);
/// assert_eq!(backup.step(1)?, StepResult::Done);
/// # Ok::<(), iolite::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StepResult {
    /// All is copied.
    Done,
    /// There is more.
    More,
    /// Others held a lock: nothing was copied.
    Busy,
    /// The source is being written by its own connection: nothing was copied.
    Locked,
}

impl<'from, 'to> Backup<'from, 'to> {
    /// A copy of the main database of `from` over that of `to`.
    ///
    /// ```
    /// # use iolite::{Backup, Connection, StepResult};
    /// # let from = Connection::open_in_memory()?;
    /// # let mut to = Connection::open_in_memory()?;
    /// from.execute_batch("CREATE TABLE t(a)")?;
    /// Backup::new(&from, &mut to)?.step(-1)?;
    /// assert!(to.table_exists(None, "t")?);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn new(from: &'from Connection, to: &'to mut Connection) -> Result<Backup<'from, 'to>> {
        Backup::new_with_names(from, "main", to, "main")
    }

    /// As [`Backup::new`], for any databases of the connections.
    ///
    /// ```
    /// # use iolite::{Backup, Connection, StepResult};
    /// # let from = Connection::open_in_memory()?;
    /// # let mut to = Connection::open_in_memory()?;
    /// from.execute_batch("ATTACH ':memory:' AS side; CREATE TABLE side.t(a)")?;
    /// Backup::new_with_names(&from, "side", &mut to, "main")?.step(-1)?;
    /// assert!(to.table_exists(None, "t")?);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn new_with_names(
        from: &'from Connection,
        from_name: &str,
        to: &'to mut Connection,
        to_name: &str,
    ) -> Result<Backup<'from, 'to>> {
        let backup = to.engine.backup(to_name, &from.engine, from_name)?;
        Ok(Backup { backup, connections: PhantomData })
    }

    /// Copies so many pages; a negative number: all that are left.
    ///
    /// ```
    /// # use iolite::{Backup, Connection, StepResult};
    /// # let from = Connection::open_in_memory()?;
    /// # let mut to = Connection::open_in_memory()?;
    /// assert_eq!(Backup::new(&from, &mut to)?.step(-1)?, StepResult::Done);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn step(&mut self, pages: i32) -> Result<StepResult> {
        match self.backup.step(pages) {
            Ok(true) => Ok(StepResult::Done),
            Ok(false) => Ok(StepResult::More),
            Err(e) if e.code().primary() == Code::Busy => Ok(StepResult::Busy),
            Err(e) if e.code().primary() == Code::Locked => Ok(StepResult::Locked),
            Err(e) => Err(e),
        }
    }

    /// How far it is, as of the last step.
    ///
    /// ```
    /// # use iolite::{Backup, Connection, StepResult};
    /// # let from = Connection::open_in_memory()?;
    /// # let mut to = Connection::open_in_memory()?;
    /// from.execute_batch("CREATE TABLE t(a)")?;
    /// let mut backup = Backup::new(&from, &mut to)?;
    /// backup.step(1)?;
    /// assert_eq!((backup.progress().remaining, backup.progress().pagecount), (1, 2));
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn progress(&self) -> Progress {
        Progress { remaining: self.backup.remaining(), pagecount: self.backup.page_count() }
    }

    /// Copies all, `pages_per_step` at a time, and pauses between: others write meanwhile. `progress` is told after each step.
    ///
    /// ```
    /// # use iolite::{Backup, Connection, StepResult};
    /// # let from = Connection::open_in_memory()?;
    /// # let mut to = Connection::open_in_memory()?;
    /// use std::time::Duration;
    ///
    /// Backup::new(&from, &mut to)?.run_to_completion(100, Duration::from_millis(1), |p| {
    ///     println!("{} of {} pages left", p.remaining, p.pagecount);
    /// })?;
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn run_to_completion(
        &mut self,
        pages_per_step: i32,
        pause: Duration,
        mut progress: impl FnMut(Progress),
    ) -> Result<()> {
        loop {
            let step = self.step(pages_per_step)?;
            progress(self.progress());
            if step == StepResult::Done {
                return Ok(());
            }
            std::thread::sleep(pause);
        }
    }
}

impl Connection {
    /// Copies a database to a file, and tells `progress` of each hundred pages.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("iolite-doc-backup-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let mut db = iolite::Connection::open_in_memory()?;
    /// db.execute_batch("CREATE TABLE t(a)")?;
    /// db.backup("main", dir.join("copy.db"), |p| println!("{} pages left", p.remaining))?;
    /// db.execute_batch("DROP TABLE t")?;
    /// db.restore("main", dir.join("copy.db"), |_| ())?;
    /// assert!(db.table_exists(None, "t")?);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn backup(
        &self,
        database: &str,
        file: impl AsRef<Path>,
        progress: impl FnMut(Progress),
    ) -> Result<()> {
        let mut to = Connection::open(file)?;
        let mut backup = Backup::new_with_names(self, database, &mut to, "main")?;
        backup.run_to_completion(PAGES, PAUSE, progress)
    }

    /// Copies a file over a database.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("iolite-doc-restore-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # iolite::Connection::open(dir.join("old.db"))?.execute_batch("CREATE TABLE t(a)")?;
    /// let mut db = iolite::Connection::open_in_memory()?;
    /// db.restore("main", dir.join("old.db"), |_| ())?;
    /// assert!(db.table_exists(None, "t")?);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn restore(
        &mut self,
        database: &str,
        file: impl AsRef<Path>,
        progress: impl FnMut(Progress),
    ) -> Result<()> {
        let from =
            Connection::open_with_flags(file, crate::OpenFlags { create: false, ..Default::default() })?;
        let mut backup = Backup::new_with_names(&from, "main", self, database)?;
        backup.run_to_completion(PAGES, PAUSE, progress)
    }
}

/// Pages of one step, and the time that others have between steps.
const PAGES: i32 = 100;
const PAUSE: Duration = Duration::from_millis(1);
