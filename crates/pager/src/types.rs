//! The words in which callers speak to the pager.

use std::rc::Rc;

/// `PRAGMA journal_mode`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JournalMode {
    /// The journal file is deleted at commit.
    Delete,
    /// Its header is zeroed.
    Persist,
    /// There is none: no rollback after a spill.
    Off,
    /// It is cut to nothing.
    Truncate,
    /// It is kept in memory: a crash during commit corrupts the file.
    Memory,
    /// A write-ahead log instead of a journal.
    Wal,
}

impl JournalMode {
    /// The word of the pragma.
    pub fn name(self) -> &'static str {
        match self {
            JournalMode::Delete => "delete",
            JournalMode::Persist => "persist",
            JournalMode::Off => "off",
            JournalMode::Truncate => "truncate",
            JournalMode::Memory => "memory",
            JournalMode::Wal => "wal",
        }
    }

    /// The mode with this name, in any case.
    pub fn from_name(name: &str) -> Option<JournalMode> {
        use JournalMode::*;
        [Delete, Persist, Off, Truncate, Memory, Wal]
            .into_iter()
            .find(|m| m.name().get(..name.len()).is_some_and(|n| n.eq_ignore_ascii_case(name)))
    }
}

/// `PRAGMA synchronous`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SyncMode {
    /// Never sync.
    Off = 0,
    /// Sync where a crash could corrupt.
    Normal = 1,
    /// Sync every commit.
    Full = 2,
    /// And the directory after deleting a journal.
    Extra = 3,
}

/// `PRAGMA locking_mode`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockingMode {
    /// Locks are given up after each transaction.
    Normal,
    /// Locks are kept.
    Exclusive,
}

/// How far a checkpoint goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CheckpointMode {
    /// Copy nothing, only report.
    Noop,
    /// Copy what can be copied without waiting.
    Passive,
    /// Wait for writers, and for readers of old snapshots.
    Full,
    /// And for all readers of the log, so that the next writer starts it anew.
    Restart,
    /// And cut the log to nothing.
    Truncate,
}

/// What a checkpoint did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CheckpointResult {
    /// It could not go as far as asked since somebody was in the way.
    pub busy: bool,
    /// Frames in the log; -1 without a log.
    pub log: i32,
    /// Of these, copied into the database; -1 without a log.
    pub checkpointed: i32,
}

/// Asked with the number of earlier attempts whether to try a busy lock again.
pub type BusyHandler = Rc<dyn Fn(u32) -> bool>;

/// `PRAGMA secure_delete`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SecureDelete {
    /// Deleted content stays where it was until overwritten.
    Off,
    /// It is overwritten with zeros.
    On,
    /// It is overwritten where that costs no further writes.
    Fast,
}

/// Which files a transaction is committed to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Commit<'a> {
    /// This one alone.
    Alone,
    /// Others as well: the first half leaves nothing that can fail to the second, which is called once all files are
    /// ready.
    Together {
        /// The file that lists the rollback journals, as bytes of a name.
        super_journal: Option<&'a [u8]>,
    },
}

/// The state of a connection's transaction on one database.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TxnState {
    /// None.
    None,
    /// Reading.
    Read,
    /// Writing.
    Write,
}

/// How to open a database.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Open for reading only.
    pub read_only: bool,
    /// Create the file if it is missing.
    pub create: bool,
    /// Keep everything in memory, whatever the name.
    pub memory: bool,
    /// Nobody changes the file: no locks, no journals are looked for.
    pub immutable: bool,
    /// Take no locks.
    pub nolock: bool,
    /// Refuse a name on whose way a symbolic link is.
    pub nofollow: bool,
    /// Share one session with other connections of the process (`cache=shared`).
    pub shared_cache: bool,
    /// The page size of a new database.
    pub page_size: u32,
    /// Bytes left free at the end of each page of a new database.
    pub reserved: u8,
    /// Pages to keep in memory; negative: KiB. SQLite's `cache_size`.
    pub cache_size: i32,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions {
            read_only: false,
            create: true,
            memory: false,
            immutable: false,
            nolock: false,
            nofollow: false,
            shared_cache: false,
            page_size: 4096,
            reserved: 0,
            cache_size: -2000,
        }
    }
}

/// Counters of one session (`sqlite3_db_status`).
#[derive(Clone, Copy, Default, Debug)]
pub struct CacheStats {
    /// Pages found in the private table.
    pub hits: u64,
    /// Pages fetched from elsewhere.
    pub misses: u64,
    /// Pages written.
    pub writes: u64,
    /// Pages written before commit for want of room.
    pub spills: u64,
}
