//! The write queue: jobs of all threads run on one connection, in batches that are committed together.
//!
//! ```text
//! submit -> | bounded queue | -> BEGIN IMMEDIATE; (SAVEPOINT; job; RELEASE or ROLLBACK TO) ...; COMMIT -> answers
//! ```
//!
//! SQLite's writers are serial: threads that write through connections of their own wait for each other's locks and pay
//! one sync each. Here a batch is what has arrived while the one before it was committed, so a sync is shared by as many
//! jobs as there are waiting threads.
//!
//! What always holds:
//! - A job's answer is given when its batch has been committed, or when it is settled that it has no part in it. What it
//!   answered with success is as durable as it asked for: the strictest wish of a batch is the batch's.
//! - A job that fails leaves nothing behind, and the others of its batch do not notice. Where a job takes the whole
//!   transaction down (`OR ROLLBACK`, a full disk), the others run again: a job is a closure that can be called twice.
//! - A failed commit is every job's answer, and nothing of the batch is there.
//! - The queue is bounded: [`Writer::submit`] waits for room, [`Writer::try_submit`] answers `SQLITE_BUSY`.
//! - Jobs run in the order in which they came. The thread ends when the last [`Writer`] is gone and the queue is empty.
//! - A queue belongs to the process that started it: a forked child does not have its thread, and is answered `SQLITE_MISUSE`.
//!
//! It knows nothing of what jobs do. A job must not wait for another job of the same queue: it would wait for itself.

use crate::api::Connection;
use crate::connection::Connection as Engine;
use crate::control;
use iolite_base::{Code, Error, Result};
use iolite_btree::SyncMode;
use iolite_os::background::without_signals;
use iolite_sql::ast::BeginMode;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// How much of a crash a job's changes survive once it is answered.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("iolite-doc-durability-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// # let path = dir.join("my.db").to_str().unwrap().to_string();
/// # use iolite::{Database, Durability, JobOptions, WriterOptions};
/// let db = Database::open(&path)?;
/// db.connect()?.execute_batch("CREATE TABLE t(a)")?;
/// let writer = db.writer()?;
/// let options = JobOptions { durability: Durability::Normal, ..JobOptions::default() };
/// writer.submit(options, |c| c.execute("INSERT INTO t VALUES (1)", []))?.wait()?;
/// # drop(writer);
/// # drop(db);
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), iolite::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Durability {
    /// As `PRAGMA synchronous = NORMAL`: in WAL mode, the crash of the program, and all but the last commits in a loss of
    /// power.
    Normal,
    /// As `PRAGMA synchronous = FULL`: a loss of power.
    Full,
}

/// How a queue works.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("iolite-doc-options-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// # let path = dir.join("my.db").to_str().unwrap().to_string();
/// # use iolite::{Database, Durability, JobOptions, WriterOptions};
/// let db = Database::open(&path)?;
/// let writer = db.writer_with(WriterOptions { batch: 10, ..WriterOptions::default() })?;
/// # drop(writer);
/// # drop(db);
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), iolite::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct WriterOptions {
    /// Jobs that may wait; more must wait outside.
    pub capacity: usize,
    /// Jobs of one batch at most.
    pub batch: usize,
    /// For how long a batch may take in jobs: programs of other processes wait for its end.
    pub batch_time: Duration,
}

impl Default for WriterOptions {
    fn default() -> WriterOptions {
        WriterOptions { capacity: 1024, batch: 256, batch_time: Duration::from_millis(20) }
    }
}

/// What a job wishes.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("iolite-doc-job-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// # let path = dir.join("my.db").to_str().unwrap().to_string();
/// # use iolite::{Database, Durability, JobOptions, WriterOptions};
/// let db = Database::open(&path)?;
/// db.connect()?.execute_batch("CREATE TABLE t(a)")?;
/// let writer = db.writer()?;
/// use std::time::{Duration, Instant};
///
/// let soon = JobOptions { deadline: Some(Instant::now() + Duration::from_secs(60)), ..JobOptions::default() };
/// writer.submit(soon, |c| c.execute("INSERT INTO t VALUES (1)", []))?.wait()?;
/// # drop(writer);
/// # drop(db);
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), iolite::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct JobOptions {
    /// What its success promises.
    pub durability: Durability,
    /// If it has not begun by then, it does not run, and its answer is `SQLITE_BUSY`.
    pub deadline: Option<Instant>,
}

impl Default for JobOptions {
    fn default() -> JobOptions {
        JobOptions { durability: Durability::Full, deadline: None }
    }
}

/// A hold on a write queue; clones are holds on the same one. Dropping the last one waits for the jobs in the queue.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("iolite-doc-writer-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// # let path = dir.join("my.db").to_str().unwrap().to_string();
/// # use iolite::{Database, Durability, JobOptions, WriterOptions};
/// let db = Database::open(&path)?;
/// db.connect()?.execute_batch("CREATE TABLE t(a)")?;
/// let writer = db.writer()?;
/// std::thread::scope(|s| {
///     for n in 0..4 {
///         let writer = writer.clone();
///         s.spawn(move || writer.run(move |c| c.execute("INSERT INTO t VALUES (?1)", [n])));
///     }
/// });
/// drop(writer);
/// let n: i64 = db.connect()?.query_row("SELECT count(*) FROM t", [], |row| row.get(0))?;
/// assert_eq!(n, 4);
/// # drop(db);
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), iolite::Error>(())
/// ```
pub struct Writer(Arc<Queue>);

/// The answer to come.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("iolite-doc-ticket-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// # let path = dir.join("my.db").to_str().unwrap().to_string();
/// # use iolite::{Database, Durability, JobOptions, WriterOptions};
/// let db = Database::open(&path)?;
/// db.connect()?.execute_batch("CREATE TABLE t(a)")?;
/// let writer = db.writer()?;
/// let tickets: Vec<_> = (0..3)
///     .map(|n| writer.submit(JobOptions::default(), move |c| c.execute("INSERT INTO t VALUES (?1)", [n])))
///     .collect::<Result<_, _>>()?;
/// for ticket in tickets {
///     ticket.wait()?;
/// }
/// # drop(writer);
/// # drop(db);
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), iolite::Error>(())
/// ```
pub struct Ticket<T> {
    slot: Arc<Slot<T>>,
    forks: u32,
}

struct Slot<T>(Mutex<Answer<T>>);

struct Answer<T> {
    value: Option<Result<T>>,
    /// Who sleeps until it is there. Waking nobody would be a system call as well.
    sleeper: Option<Thread>,
}

impl<T> Slot<T> {
    fn give(&self, value: Result<T>) {
        let mut a = lock(&self.0);
        a.value = Some(value);
        let sleeper = a.sleeper.take();
        drop(a);
        if let Some(t) = sleeper {
            t.unpark();
        }
    }
}

impl<T> Ticket<T> {
    /// Waits for the answer.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("iolite-doc-wait-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let path = dir.join("my.db").to_str().unwrap().to_string();
    /// # use iolite::{Database, Durability, JobOptions, WriterOptions};
    /// let db = Database::open(&path)?;
    /// db.connect()?.execute_batch("CREATE TABLE t(a)")?;
    /// let writer = db.writer()?;
    /// let ticket = writer.submit(JobOptions::default(), |_| Ok(1))?;
    /// assert_eq!(ticket.wait()?, 1);
    /// # drop(writer);
    /// # drop(db);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn wait(self) -> Result<T> {
        if self.forks != iolite_os::forks() {
            std::mem::forget(self);
            return Err(inherited());
        }
        let slot = &self.slot.0;
        loop {
            let mut a = lock(slot);
            if let Some(value) = a.value.take() {
                return value;
            }
            a.sleeper = Some(thread::current());
            drop(a);
            thread::park();
        }
    }

    /// Whether the answer is there.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("iolite-doc-ready-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let path = dir.join("my.db").to_str().unwrap().to_string();
    /// # use iolite::{Database, Durability, JobOptions, WriterOptions};
    /// let db = Database::open(&path)?;
    /// db.connect()?.execute_batch("CREATE TABLE t(a)")?;
    /// let writer = db.writer()?;
    /// let ticket = writer.submit(JobOptions::default(), |_| Ok(()))?;
    /// drop(writer);
    /// assert!(ticket.is_ready());
    /// # drop(db);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn is_ready(&self) -> bool {
        self.forks == iolite_os::forks() && lock(&self.slot.0).value.is_some()
    }
}

/// A queue and what its thread and its holders share.
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Something to do, or nothing any more.
    work: Condvar,
    /// Room for more.
    room: Condvar,
    options: WriterOptions,
    /// How many forks there had been when it was started.
    forks: u32,
}

/// What a forked child is told.
fn inherited() -> Error {
    Error::new(Code::Misuse, "the write queue is another process's")
}

struct State {
    jobs: VecDeque<Job>,
    holders: usize,
    /// The thread sleeps until there is work.
    idle: bool,
    /// How many wait for room.
    outside: usize,
    /// The thread is gone, or going.
    ended: bool,
    thread: Option<JoinHandle<()>>,
}

struct Job {
    work: Box<dyn Work>,
    options: JobOptions,
}

/// A job without its type.
trait Work: Send {
    fn run(&mut self, c: &Connection) -> Result<()>;
    fn answer(&mut self, r: Result<()>);
}

struct Typed<T, F> {
    f: F,
    value: Option<T>,
    answered: bool,
    slot: Arc<Slot<T>>,
}

impl<T: Send, F: FnMut(&Connection) -> Result<T> + Send> Work for Typed<T, F> {
    fn run(&mut self, c: &Connection) -> Result<()> {
        self.value = None;
        let ran = catch_unwind(AssertUnwindSafe(|| (self.f)(c)));
        self.value = Some(ran.unwrap_or_else(|_| Err(Error::new(Code::Abort, "the job panicked")))?);
        Ok(())
    }

    fn answer(&mut self, r: Result<()>) {
        let value = self.value.take();
        self.answered = true;
        self.slot.give(r.and_then(|()| value.ok_or(Code::Internal.into())));
    }
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Writer {
    /// Starts a queue. `SQLITE_CANTOPEN` and others if the database cannot be opened.
    pub(crate) fn start(
        open: impl FnOnce() -> Result<Connection> + Send + 'static,
        options: WriterOptions,
    ) -> Result<(Writer, Weak<Queue>)> {
        let queue = Arc::new(Queue {
            state: Mutex::new(State {
                jobs: VecDeque::new(),
                holders: 1,
                idle: false,
                outside: 0,
                ended: false,
                thread: None,
            }),
            work: Condvar::new(),
            room: Condvar::new(),
            options: WriterOptions {
                capacity: options.capacity.max(1),
                batch: options.batch.max(1),
                ..options
            },
            forks: iolite_os::forks(),
        });
        let weak = Arc::downgrade(&queue);
        let (said, heard) = std::sync::mpsc::channel();
        let own = queue.clone();
        let named = std::thread::Builder::new().name("iolite-writer".into());
        let thread = without_signals(|| {
            named.spawn(move || {
                let opened = open();
                // Nobody listens only if the starting thread is gone.
                let _ = said.send(opened.as_ref().map(|_| ()).map_err(Error::clone));
                if let Ok(c) = opened {
                    own.run(&c);
                }
            })
        })
        .map_err(|e| Error::new(Code::Nomem, format!("no thread for the write queue: {e}")))?;
        lock(&queue.state).thread = Some(thread);
        let writer = Writer(queue);
        heard.recv().map_err(|_| Error::from(Code::Internal))??;
        Ok((writer, weak))
    }

    /// Another hold; none if the queue is ending.
    pub(crate) fn join(queue: Arc<Queue>) -> Option<Writer> {
        if queue.is_inherited() {
            return None;
        }
        {
            let mut s = lock(&queue.state);
            if s.holders == 0 || s.ended {
                return None;
            }
            s.holders += 1;
        }
        Some(Writer(queue))
    }

    /// Hands in a job, waiting for room in the queue, and answers at once. The job is called on the queue's thread,
    /// inside a transaction that it must not end; it may be called again if another job has taken that down.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("iolite-doc-submit-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let path = dir.join("my.db").to_str().unwrap().to_string();
    /// # use iolite::{Database, Durability, JobOptions, WriterOptions};
    /// let db = Database::open(&path)?;
    /// db.connect()?.execute_batch("CREATE TABLE t(a)")?;
    /// let writer = db.writer()?;
    /// let ticket = writer.submit(JobOptions::default(), |c| c.execute("INSERT INTO t VALUES (1)", []))?;
    /// // Something else can be done here.
    /// ticket.wait()?;
    /// # drop(writer);
    /// # drop(db);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn submit<T, F>(&self, options: JobOptions, job: F) -> Result<Ticket<T>>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T> + Send + 'static,
    {
        self.hand_in(options, job, true)
    }

    /// As [`Writer::submit`], but `SQLITE_BUSY` where the queue is full.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("iolite-doc-try-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let path = dir.join("my.db").to_str().unwrap().to_string();
    /// # use iolite::{Database, Durability, JobOptions, WriterOptions};
    /// let db = Database::open(&path)?;
    /// db.connect()?.execute_batch("CREATE TABLE t(a)")?;
    /// let writer = db.writer()?;
    /// let ticket = writer.try_submit(JobOptions::default(), |c| c.execute("INSERT INTO t VALUES (1)", []))?;
    /// ticket.wait()?;
    /// # drop(writer);
    /// # drop(db);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn try_submit<T, F>(&self, options: JobOptions, job: F) -> Result<Ticket<T>>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T> + Send + 'static,
    {
        self.hand_in(options, job, false)
    }

    /// Hands in a job and waits for its answer.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("iolite-doc-run-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let db = iolite::Database::open(dir.join("my.db").to_str().unwrap())?;
    /// let writer = db.writer()?;
    /// writer.run(|c| c.execute_batch("CREATE TABLE t(a)"))?;
    /// assert_eq!(writer.run(|c| c.execute("INSERT INTO t VALUES (1), (2)", []))?, 2);
    /// # drop((writer, db));
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn run<T, F>(&self, job: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T> + Send + 'static,
    {
        self.submit(JobOptions::default(), job)?.wait()
    }

    /// How many jobs wait.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("iolite-doc-waiting-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let path = dir.join("my.db").to_str().unwrap().to_string();
    /// # use iolite::{Database, Durability, JobOptions, WriterOptions};
    /// let db = Database::open(&path)?;
    /// db.connect()?.execute_batch("CREATE TABLE t(a)")?;
    /// let writer = db.writer()?;
    /// writer.run(|_| Ok(()))?;
    /// assert_eq!(writer.waiting(), 0);
    /// # drop(writer);
    /// # drop(db);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn waiting(&self) -> usize {
        if self.0.is_inherited() { 0 } else { lock(&self.0.state).jobs.len() }
    }

    fn hand_in<T, F>(&self, options: JobOptions, f: F, wait: bool) -> Result<Ticket<T>>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T> + Send + 'static,
    {
        if self.0.is_inherited() {
            return Err(inherited());
        }
        let full = || Error::new(Code::Busy, "the write queue is full");
        let mut s = lock(&self.0.state);
        while s.jobs.len() >= self.0.options.capacity && !s.ended {
            if !wait {
                return Err(full());
            }
            let left = match options.deadline {
                None => Duration::from_secs(3600),
                Some(d) => d.checked_duration_since(Instant::now()).ok_or_else(full)?,
            };
            s.outside += 1;
            s = self.0.room.wait_timeout(s, left).unwrap_or_else(PoisonError::into_inner).0;
            s.outside -= 1;
        }
        if s.ended {
            return Err(Error::new(Code::Misuse, "the write queue has ended"));
        }
        let slot = Arc::new(Slot(Mutex::new(Answer { value: None, sleeper: None })));
        let work = Box::new(Typed { f, value: None, answered: false, slot: slot.clone() });
        s.jobs.push_back(Job { work, options });
        let idle = std::mem::take(&mut s.idle);
        drop(s);
        if idle {
            self.0.work.notify_one();
        }
        Ok(Ticket { slot, forks: self.0.forks })
    }
}

impl Clone for Writer {
    fn clone(&self) -> Writer {
        if !self.0.is_inherited() {
            lock(&self.0.state).holders += 1;
        }
        Writer(self.0.clone())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.0.is_inherited() {
            return;
        }
        let thread = {
            let mut s = lock(&self.0.state);
            s.holders -= 1;
            if s.holders > 0 {
                return;
            }
            s.thread.take()
        };
        self.0.work.notify_all();
        // A job may have held the last writer: its thread does not wait for itself.
        if let Some(t) = thread
            && t.thread().id() != std::thread::current().id()
        {
            // Panics of jobs are caught: the thread ends in good order.
            let _ = t.join();
        }
    }
}

/// Whatever ends the thread: nobody waits for ever.
struct Ending<'q>(&'q Queue);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let left = {
            let mut s = lock(&self.0.state);
            s.ended = true;
            std::mem::take(&mut s.jobs)
        };
        self.0.room.notify_all();
        for mut j in left {
            j.work.answer(Err(Error::new(Code::Misuse, "the write queue has ended")));
        }
    }
}

impl<T, F> Drop for Typed<T, F> {
    fn drop(&mut self) {
        if !self.answered {
            self.slot.give(Err(Code::Internal.into()));
        }
    }
}

impl Queue {
    fn is_inherited(&self) -> bool {
        self.forks != iolite_os::forks()
    }

    fn run(&self, c: &Connection) {
        let _ending = Ending(self);
        loop {
            let mut batch = Vec::new();
            {
                let mut s = lock(&self.state);
                while s.jobs.is_empty() {
                    if s.holders == 0 {
                        return;
                    }
                    s.idle = true;
                    s = self.work.wait(s).unwrap_or_else(PoisonError::into_inner);
                }
                self.take(&mut s, &mut batch, self.options.batch);
            }
            self.batch(c, batch);
        }
    }

    /// Moves up to `most` jobs from the queue to the batch.
    fn take(&self, s: &mut State, batch: &mut Vec<Job>, most: usize) {
        let n = most.min(s.jobs.len());
        batch.extend(s.jobs.drain(..n));
        if n > 0 && s.outside > 0 {
            self.room.notify_all();
        }
    }

    /// Runs jobs in one transaction, takes in those that arrive meanwhile, commits, and answers all.
    fn batch(&self, c: &Connection, mut jobs: Vec<Job>) {
        'again: while !jobs.is_empty() {
            let strictest = jobs.iter().map(|j| j.options.durability).max().unwrap_or(Durability::Full);
            if let Err(e) = begin(&c.engine, strictest) {
                for mut j in jobs {
                    j.work.answer(Err(e.clone()));
                }
                return;
            }
            let until = Instant::now() + self.options.batch_time;
            let mut at = 0;
            while at < jobs.len() {
                let job = &mut jobs[at];
                let late = job.options.deadline.is_some_and(|d| Instant::now() >= d);
                let ran = match late {
                    true => Err(Error::new(Code::Busy, "the job's deadline has passed")),
                    false => in_savepoint(c, &mut *job.work),
                };
                if !intact(c) {
                    // The transaction is gone, and with it what the others did. They run again, without this one.
                    let broke = Error::new(Code::Misuse, "a job must not end the transaction of its batch");
                    let mut job = jobs.remove(at);
                    job.work.answer(Err(ran.err().unwrap_or(broke)));
                    c.engine.0.txn.hold(false);
                    continue 'again;
                }
                match ran {
                    Ok(()) => at += 1,
                    Err(e) => jobs.remove(at).work.answer(Err(e)),
                }
                if at == jobs.len() && at < self.options.batch && Instant::now() < until {
                    // Those that wait for less than this batch promises may come along.
                    let mut s = lock(&self.state);
                    let more = s.jobs.iter().take_while(|j| j.options.durability <= strictest).count();
                    self.take(&mut s, &mut jobs, more.min(self.options.batch - at));
                }
            }
            let done = match jobs.is_empty() {
                true => end(&c.engine, control::rollback),
                false => end(&c.engine, control::commit),
            };
            for mut j in jobs {
                j.work.answer(done.clone());
            }
            return;
        }
    }
}

/// Begins a batch. This, its end and the savepoints of jobs are called, not said in SQL: no text is looked up for them.
fn begin(c: &Engine, durability: Durability) -> Result<()> {
    c.btree("main")?.set_synchronous(match durability {
        Durability::Normal => SyncMode::Normal,
        Durability::Full => SyncMode::Full,
    })?;
    control::begin(c, BeginMode::Immediate)?;
    c.0.txn.hold(true);
    Ok(())
}

/// Ends the transaction, if there is one still. A commit that fails leaves nothing.
fn end(c: &Engine, how: fn(&Engine) -> Result<()>) -> Result<()> {
    c.0.txn.hold(false);
    if c.is_autocommit() {
        return Ok(());
    }
    let done = how(c);
    if done.is_err() && !c.is_autocommit() {
        control::rollback(c)?;
    }
    done
}

const SAVEPOINT: &str = "iolite_job";

/// Runs a job; what it did is taken back if it fails.
fn in_savepoint(c: &Connection, work: &mut dyn Work) -> Result<()> {
    let txn = &c.engine.0.txn;
    txn.savepoint(&*c.engine.0, SAVEPOINT)?;
    let ran = work.run(c);
    let held = txn.begins_with(SAVEPOINT);
    if c.is_autocommit() || !held {
        // Nothing is left to take back, or it cannot be told what: `intact` sees it.
        end(&c.engine, control::rollback)?;
        return ran;
    }
    if ran.is_err() {
        txn.rollback_to(&*c.engine.0, SAVEPOINT)?;
    }
    txn.release(&*c.engine.0, SAVEPOINT)?;
    ran
}

/// Whether the batch's transaction is still there.
fn intact(c: &Connection) -> bool {
    !c.is_autocommit()
}
