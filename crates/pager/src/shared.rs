//! What the sessions of a process share about one file: committed pages, whether a sync ever failed, whose turn it is to
//! write to its log.
//!
//! A cached page is named by the state of the file it belongs to (its *era*) and a frame number. In the
//! rollback modes an era is the 16 bytes of the header that change with every commit, and the frame is 0. In
//! WAL mode an era is one life of the log, known by its salts, and the frame is the newest one of the page at
//! the reader's snapshot, even if it was copied into the database meanwhile; 0 means that the log has none.
//! "As it is in the file" is not a name: a checkpoint changes the file.
//!
//! What always holds: pages here are immutable; all belong to the present era; the count of bytes is that of
//! the pages. All take as many bytes as the caches of the sessions may, up to a limit: who asks for a small cache gets a
//! small one in company, too. A session that is alone shares nothing, and pays nothing. Pages enter at the back of a queue;
//! at its front, one that was used meanwhile goes round once more, the others leave: a long scan pushes out
//! its own pages.

use crate::commits::Commits;
use crate::wal::{chain::Chain, direct};
use iolite_base::{PageData, Pgno, hash::FastMap};
use iolite_os::{FileId, PerProcess};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicUsize,
    Ordering::{AcqRel, Relaxed},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The most bytes that the shared pages of one file take.
const MOST: usize = 64 << 20;

/// Which state of the file pages belong to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Era {
    /// Bytes 24 to 39 of a file without a log.
    Journal([u8; 16]),
    /// The salts of a log.
    Log([u8; 8]),
}

/// One file, as all sessions of the process on it see it.
pub struct Database {
    sessions: AtomicUsize,
    /// Bytes that their caches may take together.
    room: AtomicUsize,
    failed: AtomicBool,
    cache: Mutex<Cache>,
    commits: Mutex<Commits>,
    chain: Arc<Chain>,
    /// The process in which a checkpoint was left to its thread and has not ended; 0: none.
    pub(crate) asked: AtomicU32,
}

#[derive(Default)]
struct Cache {
    era: Option<Era>,
    /// Counts eras: what a session holds on to between calls.
    serial: u64,
    /// The log's frames up to this one tell of no page of the file that changed and is here still (module `direct`).
    looked_at: u32,
    pages: FastMap<(Pgno, u32), Entry>,
    queue: VecDeque<(Pgno, u32)>,
    bytes: usize,
    /// The log's former life, its present one, and the pages of the former's frames.
    former: Option<(Era, Era, Arc<[Pgno]>)>,
}

struct Entry {
    page: Arc<PageData>,
    used: bool,
}

impl Database {
    /// The writers on the file's log.
    pub fn chain(&self) -> Arc<Chain> {
        self.chain.clone()
    }

    /// See [`Share::in_company`].
    #[inline]
    pub fn in_company(&self) -> bool {
        self.sessions.load(Relaxed) > 1
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The page of a frame of that era, if it is there: for those who copy frames.
    pub fn page(&self, era: Era, pgno: Pgno, frame: u32) -> Option<Arc<PageData>> {
        let c = self.cache();
        if c.era != Some(era) {
            return None;
        }
        c.pages.get(&(pgno, frame)).map(|e| e.page.clone())
    }

    /// A log is about to begin anew; `frames` are the pages of its frames, all of which the file of `size` pages holds. The
    /// newest ones are those of the file then, and belong to the new era: else each life of a log would begin by
    /// reading from the file what the one before has changed.
    pub fn begin_anew(&self, old: Era, new: Era, frames: Vec<Pgno>, size: Pgno) {
        let mut c = self.cache();
        let frames: Arc<[Pgno]> = frames.into();
        c.former = Some((old, new, frames.clone()));
        if c.era != Some(old) {
            return;
        }
        c.serial += 1;
        c.era = Some(new);
        if direct::told(frames.get(c.looked_at as usize..).unwrap_or_default()) {
            c.forget_file();
        }
        c.looked_at = 0;
        let mut met: FastMap<Pgno, ()> = FastMap::default();
        // From the last one on: where a page is met first, that is its newest frame.
        for (i, &pgno) in frames.iter().enumerate().rev() {
            let entry = c.pages.remove(&(pgno, i as u32 + 1));
            let newest = met.insert(pgno, ()).is_none();
            if newest {
                c.remove((pgno, 0));
            }
            match entry {
                Some(e) if newest && pgno <= size => {
                    c.pages.insert((pgno, 0), e);
                    c.queue.push_back((pgno, 0));
                }
                Some(e) => c.bytes -= e.page.len(),
                None => {}
            }
        }
    }

    /// The pages of all frames of the log's life `old`, if it was followed by `new` and this process saw that.
    pub fn former_frames(&self, old: Era, new: Era) -> Option<Arc<[Pgno]>> {
        self.cache().former.as_ref().filter(|f| (f.0, f.1) == (old, new)).map(|f| f.2.clone())
    }

    /// See [`Share::fail`].
    pub fn fail(&self) {
        self.failed.store(true, Relaxed);
    }

    /// See [`Share::has_failed`].
    pub fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
    }
}

/// A session's hold on its [`Database`].
pub struct Share {
    database: Arc<Database>,
    left: bool,
    room: usize,
}

impl Share {
    /// Joins the sessions of a file, with a cache of `room` bytes.
    pub fn join(id: FileId, room: usize) -> Share {
        static ALL: PerProcess<Mutex<HashMap<FileId, Weak<Database>>>> = PerProcess::new();
        let mut all = ALL.get().lock().unwrap_or_else(PoisonError::into_inner);
        let db = match all.get(&id).and_then(Weak::upgrade) {
            Some(db) => db,
            None => {
                all.retain(|_, w| w.strong_count() > 0);
                let db = Arc::new(Database {
                    sessions: AtomicUsize::new(0),
                    room: AtomicUsize::new(0),
                    failed: AtomicBool::new(false),
                    cache: Mutex::default(),
                    commits: Mutex::default(),
                    chain: Arc::default(),
                    asked: AtomicU32::new(0),
                });
                all.insert(id, Arc::downgrade(&db));
                db
            }
        };
        db.sessions.fetch_add(1, Relaxed);
        db.room.fetch_add(room, Relaxed);
        Share { database: db, left: false, room }
    }

    /// The session's cache may take so many bytes from now on.
    pub fn set_room(&mut self, room: usize) {
        if !self.left {
            self.database.room.fetch_add(room, Relaxed);
            self.database.room.fetch_sub(self.room, Relaxed);
        }
        self.room = room;
    }

    /// The file, as all its sessions see it.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Says that this session is about to end. `true`: it was the last one.
    pub fn leave(&mut self) -> bool {
        let left = std::mem::replace(&mut self.left, true);
        if !left {
            self.database.room.fetch_sub(self.room, Relaxed);
            let others = self.database.sessions.fetch_sub(1, AcqRel) - 1;
            if others <= 1 {
                self.cache().clear();
            }
            return others == 0;
        }
        false
    }

    /// The writers on the file's log.
    pub fn chain(&self) -> Arc<Chain> {
        self.database.chain()
    }

    /// What commits of this process changed in the file, without a log.
    pub fn commits(&self) -> MutexGuard<'_, Commits> {
        self.database.commits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is anybody to share with.
    #[inline]
    pub fn in_company(&self) -> bool {
        self.database.in_company()
    }

    /// A sync failed: what the disk holds is not known any more, and asking again proves nothing.
    pub fn fail(&self) {
        self.database.fail();
    }

    /// Whether a sync failed since the first session of now joined.
    pub fn has_failed(&self) -> bool {
        self.database.has_failed()
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.database.cache()
    }

    /// Up to which frame of that log somebody has looked for pages of the file that were changed (module `direct`).
    pub fn looked_at(&self, era: Era) -> u32 {
        let c = self.cache();
        if c.era == Some(era) { c.looked_at } else { 0 }
    }

    /// The serial of an era. Pages of another one are let go; and those of the file, if a commit wrote to it: in a log, the
    /// frames behind the first number up to the second were looked at, and tell of it or not.
    pub fn enter(&self, era: Era, news: Option<(u32, u32, bool)>) -> u64 {
        let mut c = self.cache();
        let (from, to, told) = news.unwrap_or_default();
        if c.era != Some(era) {
            c.clear();
            c.era = Some(era);
            c.serial += 1;
            c.looked_at = to;
        } else if c.looked_at < to {
            if told || c.looked_at < from {
                c.forget_file();
                c.serial += 1;
            }
            c.looked_at = to;
        }
        c.serial
    }

    /// A page, if it is there.
    pub fn get(&self, serial: u64, pgno: Pgno, frame: u32) -> Option<Arc<PageData>> {
        let mut c = self.cache();
        if c.serial != serial {
            return None;
        }
        let e = c.pages.get_mut(&(pgno, frame))?;
        e.used = true;
        Some(e.page.clone())
    }

    /// Puts a page in.
    pub fn put(&self, serial: u64, pgno: Pgno, frame: u32, page: &Arc<PageData>) {
        let most = self.database.room.load(Relaxed).min(MOST);
        let mut c = self.cache();
        if c.serial == serial {
            c.put(pgno, frame, page, most);
        }
    }

    /// Puts in those of a scan's pages, each with serial, number and frame, for which there is room: nothing leaves for them.
    pub fn offer(&self, pages: &[(u64, Pgno, u32, Arc<PageData>)]) {
        if pages.is_empty() {
            return;
        }
        let most = self.database.room.load(Relaxed).min(MOST);
        let mut c = self.cache();
        for (serial, pgno, frame, page) in pages {
            if c.serial == *serial && c.bytes + page.len() <= most {
                c.put(*pgno, *frame, page, most);
            }
        }
    }

    /// A commit in a rollback mode: the pages it did not change belong to the new era as well.
    pub fn advance(&self, serial: u64, era: Era, changed: &[Pgno]) {
        let mut c = self.cache();
        if c.serial != serial {
            return;
        }
        for &p in changed {
            c.remove((p, 0));
        }
        c.era = Some(era);
        c.serial += 1;
    }
}

impl Cache {
    fn clear(&mut self) {
        self.pages.clear();
        self.queue.clear();
        self.bytes = 0;
    }

    /// Lets the pages go that are those of the file.
    fn forget_file(&mut self) {
        let Cache { pages, bytes, .. } = self;
        pages.retain(|key, e| {
            let stays = key.1 != 0;
            if !stays {
                *bytes -= e.page.len();
            }
            stays
        });
    }

    fn remove(&mut self, key: (Pgno, u32)) {
        // Its place in the queue stays, and is passed over when its turn comes.
        if let Some(e) = self.pages.remove(&key) {
            self.bytes -= e.page.len();
        }
    }

    fn put(&mut self, pgno: Pgno, frame: u32, page: &Arc<PageData>, most: usize) {
        if self.pages.contains_key(&(pgno, frame)) {
            return;
        }
        while self.bytes + page.len() > most || self.queue.len() > 4 * self.pages.len() + 64 {
            let Some(key) = self.queue.pop_front() else { break };
            let Some(e) = self.pages.get_mut(&key) else { continue };
            if std::mem::take(&mut e.used) {
                self.queue.push_back(key);
            } else {
                self.remove(key);
            }
        }
        self.bytes += page.len();
        self.pages.insert((pgno, frame), Entry { page: page.clone(), used: false });
        self.queue.push_back((pgno, frame));
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_belong_to_their_era() {
        let id = FileId { device: 1, inode: u64::MAX };
        let (a, b) = (Share::join(id, 1 << 20), Share::join(id, 1 << 20));
        assert!(a.in_company());
        let s = a.enter(Era::Log([1; 8]), None);
        let page = PageData::copy_of(&[9; 512]).unwrap();
        a.put(s, 7, 3, &page);
        assert!(b.get(s, 7, 3).is_some());
        assert!(b.get(s, 7, 4).is_none());
        assert_eq!(b.enter(Era::Log([1; 8]), None), s);
        let t = b.enter(Era::Journal([0; 16]), None);
        assert!(a.get(s, 7, 3).is_none() && a.get(t, 7, 3).is_none());
        a.put(s, 7, 3, &page);
        assert!(b.get(t, 7, 3).is_none(), "what is put under an old era is lost");
        a.put(t, 7, 0, &page);
        a.put(t, 8, 0, &page);
        a.advance(t, Era::Journal([1; 16]), &[8]);
        let u = a.enter(Era::Journal([1; 16]), None);
        assert!(a.get(u, 7, 0).is_some() && a.get(u, 8, 0).is_none());
    }

    #[test]
    fn shared_pages_take_no_more_than_the_caches_of_the_sessions() {
        let id = FileId { device: 3, inode: u64::MAX };
        let (mut a, b) = (Share::join(id, 4 * 512), Share::join(id, 2 * 512));
        let s = a.enter(Era::Log([1; 8]), None);
        let page = PageData::copy_of(&[9; 512]).unwrap();
        let held = |a: &Share| (1..=40).filter(|p| a.get(s, *p, 0).is_some()).count();
        (1..=20).for_each(|p| a.put(s, p, 0, &page));
        assert_eq!(held(&a), 6);
        let scanned: Vec<_> = (21..=40).map(|p| (s, p, 0, page.clone())).collect();
        a.offer(&scanned);
        assert!(a.get(s, 21, 0).is_none(), "a scan pushes nothing out");
        a.set_room(512);
        (21..=40).for_each(|p| b.put(s, p, 0, &page));
        assert_eq!(held(&a), 3);
    }

    #[test]
    fn a_log_that_begins_anew_leaves_what_the_file_has() {
        let id = FileId { device: 2, inode: u64::MAX };
        let (a, old, new) = (Share::join(id, 1 << 20), Era::Log([1; 8]), Era::Log([2; 8]));
        let page = |n: u8| PageData::copy_of(&[n; 512]).unwrap();
        let s = a.enter(old, None);
        // The log's frames are of the pages 5, 6, 5, 7, 8, 11. The newest of 7 and of 8 is not here; 11 was cut off.
        for (pgno, frame, n) in [
            (5, 0, 1),
            (5, 1, 2),
            (5, 3, 3),
            (6, 2, 4),
            (6, 0, 5),
            (7, 0, 6),
            (8, 0, 7),
            (9, 0, 8),
            (11, 6, 9),
        ] {
            a.put(s, pgno, frame, &page(n));
        }
        a.database.begin_anew(Era::Log([9; 8]), new, vec![5, 6, 5, 7, 8], 10);
        assert!(a.get(s, 9, 0).is_some(), "another log is meant");
        a.database.begin_anew(old, new, vec![5, 6, 5, 7, 8, 11], 10);
        assert!(a.get(s, 9, 0).is_none(), "the era has changed");
        let t = a.enter(new, None);
        assert_ne!(s, t);
        let first = |pgno, frame| a.get(t, pgno, frame).map(|p| p[0]);
        assert_eq!((first(5, 0), first(6, 0), first(9, 0)), (Some(3), Some(4), Some(8)));
        assert_eq!((first(7, 0), first(8, 0), first(11, 0)), (None, None, None));
        assert!([(5, 1), (5, 3), (6, 2)].iter().all(|&(p, f)| first(p, f).is_none()));
        assert_eq!(a.database.cache().bytes, 3 * 512);
        assert_eq!(a.database.former_frames(old, new).as_deref(), Some(&[5, 6, 5, 7, 8, 11][..]));
        assert!(a.database.former_frames(new, old).is_none());
        assert!(a.database.page(new, 5, 0).is_some() && a.database.page(old, 5, 0).is_none());
    }
}
