//! Checkpoints beside the committing threads: one thread per process copies logs into databases.
//!
//! A thousand small commits at `synchronous=NORMAL` end in a checkpoint whose two syncs take as long as the commits
//! themselves. A connection that may (`PRAGMA checkpoint_thread`) leaves a [`Job`] at the desk instead. The keeper opens the
//! database and its log anew, as any other connection would, copies what it can beside those who write, again while much was
//! added meanwhile, and takes a turn among the writers of the process for the last frames, so that the log can begin anew.
//!
//! ```text
//! connection   ask ------> Waiting ------> Running ------> (nothing)
//!                             |               |
//! connection   rest: taken back   waited for  +
//! ```
//!
//! What always holds: at most one job per database waits or runs; a job's files are closed when it has ended; after
//! [`rest`] none waits or runs that was left before. So connections that want the database for themselves (the last one to
//! close, one that leaves WAL mode) rest first, and so does an explicit checkpoint, which would find itself in the way.
//! The thread starts with the first job. A forked child has none (`iolite_os::background`), and a desk of its own: what the
//! parent left is the parent's. Files of a VFS that does not say that threads may open them are left alone.

use crate::shared::Database;
use crate::types::{CheckpointMode, SyncMode};
use crate::wal::{Role, Wal};
use iolite_base::{Code, Result};
use iolite_os::{File, FileId, FileKind, LockLevel, OpenFlags, PerProcess, Vfs, background};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A job takes its turn when no more than this part of the threshold is left to copy,
const FEW: u32 = 32;
/// or the log holds so many times the threshold.
const LONG: u32 = 4;
/// From so many times the threshold on, the committing thread copies: jobs do not get through.
pub const LOST: u32 = 8;
/// How long a job waits for its turn.
const PATIENCE: Duration = Duration::from_millis(20);
/// How often it looks for a last frame that may be copied, and how long it waits in between.
const TRIES: u32 = 5;
const MOMENT: Duration = Duration::from_micros(20);

/// A log to be copied.
pub struct Job {
    /// Whose log.
    pub database: Arc<Database>,
    /// How to open it.
    pub vfs: Arc<dyn Vfs>,
    /// The database's file and what proves it to be the same one.
    pub path: PathBuf,
    /// See `path`.
    pub id: FileId,
    /// The log's file.
    pub wal_path: PathBuf,
    /// As the database has it.
    pub page_size: u32,
    /// `None`: nothing is synced.
    pub sync: Option<SyncMode>,
    /// The threshold, `PRAGMA wal_autocheckpoint`.
    pub frames: u32,
}

static HOUSE: PerProcess<House> = PerProcess::new();

#[derive(Default)]
struct House {
    desk: Mutex<Desk>,
    /// A job was left.
    bell: Condvar,
    /// A job has ended.
    ended: Condvar,
}

#[derive(Default)]
struct Desk {
    waiting: VecDeque<Job>,
    running: Option<Arc<Database>>,
    /// The keeper's thread was started.
    kept: bool,
}

/// Leaves a job, unless there is one for the database. `false`: no thread can be had.
pub fn ask(job: Job) -> bool {
    let me = std::process::id();
    if job.database.asked.load(Relaxed) == me {
        return true;
    }
    let house = HOUSE.get();
    let mut desk = house.desk();
    // Another session may have asked meanwhile: there is one job for a database, which one of them takes back.
    if job.database.asked.load(Relaxed) == me {
        return true;
    }
    if !desk.kept {
        if !background::keep_house("iolite-checkpoint", || house.keep()) {
            return false;
        }
        desk.kept = true;
    }
    job.database.asked.store(me, Relaxed);
    desk.waiting.push_back(job);
    drop(desk);
    house.bell.notify_one();
    true
}

/// Takes back or waits for what was left for a database.
pub fn rest(database: &Arc<Database>) {
    let Some(house) = HOUSE.existing() else { return };
    if database.asked.load(Relaxed) != std::process::id() {
        return;
    }
    let mut desk = house.desk();
    if let Some(i) = desk.waiting.iter().position(|j| Arc::ptr_eq(&j.database, database)) {
        desk.waiting.remove(i);
        database.asked.store(0, Relaxed);
        return;
    }
    while desk.running.as_ref().is_some_and(|d| Arc::ptr_eq(d, database)) {
        desk = house.ended.wait(desk).unwrap_or_else(PoisonError::into_inner);
    }
}

impl House {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the keeper does all day.
    fn keep(&self) {
        let mut desk = self.desk();
        loop {
            let Some(job) = desk.waiting.pop_front() else {
                desk = self.bell.wait(desk).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let database = job.database.clone();
            desk.running = Some(database.clone());
            drop(desk);
            // What cannot be copied now is copied later: nobody's commit fails for it. A panic must not leave those waiting
            // who rest.
            let done = catch_unwind(AssertUnwindSafe(|| job.run()));
            if matches!(&done, Ok(Err(e)) if e.code() == Code::IoerrFsync) {
                database.fail();
            }
            desk = self.desk();
            desk.running = None;
            database.asked.store(0, Relaxed);
            self.ended.notify_all();
        }
    }
}

impl Job {
    fn run(self) -> Result<()> {
        if self.database.has_failed() {
            return Ok(());
        }
        let open = |path, kind| {
            self.vfs.open(Some(path), OpenFlags { create: false, ..OpenFlags::read_write(kind) })
        };
        let file = open(&self.path, FileKind::MainDb)?;
        // Another file may lie under the name by now.
        if file.identity() != Some(self.id) || file.is_read_only() {
            return Ok(());
        }
        file.lock(LockLevel::Shared)?;
        let log = open(&self.wal_path, FileKind::Wal)?;
        let mut wal = Wal::new(log, false, self.vfs.clone());
        wal.chain = Some(self.database.chain());
        wal.shared = Some(self.database.clone());
        let done = self.copy(&mut wal, &*file);
        wal.close(&*file, false);
        let _ = file.unlock(LockLevel::None);
        done
    }

    fn copy(&self, wal: &mut Wal, file: &dyn File) -> Result<()> {
        let pass =
            |wal: &mut Wal, mode| wal.checkpoint(file, mode, self.sync, None, self.page_size, &|_| None);
        let mut seen = pass(wal, CheckpointMode::Noop)?;
        if !wal.begin_copying(file) {
            return Ok(());
        }
        let done = pass(wal, CheckpointMode::Passive).and_then(|r| {
            seen = r;
            let left = (r.log - r.checkpointed) as u32;
            let soon = left > self.frames / FEW && (r.log as u32) < LONG * self.frames;
            if left == 0 || soon || wal.await_turn(file, Role::Copier, PATIENCE).is_err() {
                return Ok(());
            }
            // Who has just committed may still hold its read mark for a moment.
            for _ in 0..TRIES {
                seen = pass(wal, CheckpointMode::Passive)?;
                if seen.checkpointed >= seen.log {
                    break;
                }
                self.vfs.clock().sleep(MOMENT);
            }
            wal.leave_turn();
            Ok(())
        });
        wal.leave_turn();
        wal.end_copying();
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Share;
    use iolite_os::MemoryVfs;

    #[test]
    fn two_who_ask_at_once_leave_one_job() {
        let id = FileId { device: 4, inode: u64::MAX };
        let share = Share::join(id, 4096);
        let database = share.database();
        let house = HOUSE.get();
        let mut desk = house.desk();
        // Nobody takes the jobs.
        desk.kept = true;
        std::thread::scope(|s| {
            let both = [(); 2].map(|()| {
                s.spawn(|| {
                    ask(Job {
                        database: database.clone(),
                        vfs: Arc::new(MemoryVfs::with_name("none")),
                        path: PathBuf::new(),
                        id,
                        wal_path: PathBuf::new(),
                        page_size: 4096,
                        sync: None,
                        frames: 1000,
                    })
                })
            });
            std::thread::sleep(Duration::from_millis(100));
            drop(desk);
            assert!(both.into_iter().all(|t| t.join().unwrap()));
        });
        assert_eq!(house.desk().waiting.len(), 1);
        rest(database);
        assert_eq!(house.desk().waiting.len(), 0);
    }
}
