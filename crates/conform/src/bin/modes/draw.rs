//! The steps of a history, as drawn: each makes sense in any state, or is passed over, so that steps can be left out.

use iolite_conform::differ::rng::Rng;

/// A connection: agent and slot.
pub type Actor = (usize, usize);

/// One step.
#[derive(Clone, Debug)]
pub enum Op {
    /// Opens one of the files, with the other one attached or without.
    Open {
        main: usize,
        attach: bool,
    },
    Close,
    Attach,
    Detach,
    /// A statement that changes nothing that is counted, with `{db}` for the database.
    Run {
        db: usize,
        text: String,
    },
    /// The same for `PRAGMA journal_mode`.
    Mode {
        db: usize,
        mode: &'static str,
    },
    Begin(&'static str),
    Commit,
    Rollback,
    Savepoint,
    /// Back to a savepoint, counted from the innermost; and whether it is released then.
    Back {
        level: usize,
        release: bool,
    },
    /// A counted change of one database or both.
    Write {
        db: usize,
        both: bool,
        how: How,
    },
    Read {
        db: usize,
    },
    Check {
        db: usize,
    },
    /// A query that is left open, and its end.
    Hold {
        db: usize,
    },
    /// Into a file with content in pages of this size, which reserve other bytes, or a new one.
    Backup {
        db: usize,
        onto: Option<u32>,
    },
    More(i32),
    Finish,
    /// VACUUM INTO, or an image in memory.
    Copy {
        db: usize,
        image: bool,
    },
    /// Kills the process, which starts anew without connections.
    Kill,
    /// The step of another kind is held before its n-th call, and others are made meanwhile; then it goes on or is killed.
    Pause {
        op: Box<Op>,
        before: usize,
        during: Vec<(Actor, Op)>,
        kill: bool,
    },
}

/// A change of rows that keeps the sums.
#[derive(Clone, Debug)]
pub enum How {
    Add { rows: i64, len: i64 },
    Churn { from: i64, to: i64, len: i64 },
    Delete { from: i64, to: i64 },
    Raise { of: i64 },
}

const LOCKING: &[&str] = &[
    "PRAGMA {db}.locking_mode = exclusive",
    "PRAGMA locking_mode = exclusive",
    "PRAGMA {db}.locking_mode = normal",
    "PRAGMA locking_mode = normal",
    "PRAGMA locking_mode = normal; SELECT count(*) FROM {db}.ledger",
    "PRAGMA locking_mode = normal; SELECT count(*) FROM {db}.ledger",
];

/// Other settings by subject.
const SETTINGS: &[&[&str]] = &[
    &[
        "PRAGMA {db}.synchronous = 0",
        "PRAGMA {db}.synchronous = 1",
        "PRAGMA {db}.synchronous = 2",
        "PRAGMA {db}.synchronous = 3",
    ],
    &[
        "PRAGMA {db}.cache_size = 1",
        "PRAGMA {db}.cache_size = 3",
        "PRAGMA {db}.cache_size = 10",
        "PRAGMA {db}.cache_size = -100",
        "PRAGMA {db}.cache_size = 2000",
    ],
    &[
        "PRAGMA cache_spill = off",
        "PRAGMA cache_spill = on",
        "PRAGMA {db}.cache_spill = 5",
        "PRAGMA {db}.cache_size = 5",
    ],
    &["PRAGMA {db}.mmap_size = 0", "PRAGMA {db}.mmap_size = 65536", "PRAGMA {db}.mmap_size = 100000000"],
    &["PRAGMA temp_store = 1", "PRAGMA temp_store = 2"],
    &[
        "PRAGMA wal_autocheckpoint = 0",
        "PRAGMA wal_autocheckpoint = 1",
        "PRAGMA wal_autocheckpoint = 10",
        "PRAGMA wal_autocheckpoint = 1000",
    ],
    &[
        "PRAGMA {db}.journal_size_limit = 0",
        "PRAGMA {db}.journal_size_limit = 5000",
        "PRAGMA {db}.journal_size_limit = -1",
    ],
    &["PRAGMA {db}.secure_delete = 0", "PRAGMA {db}.secure_delete = 1", "PRAGMA {db}.secure_delete = fast"],
    &[
        "PRAGMA lock_lease_ms = 0",
        "PRAGMA lock_lease_ms = 5",
        "PRAGMA lock_lease_ms = 60000",
        "PRAGMA checkpoint_thread = off",
        "PRAGMA checkpoint_thread = on",
    ],
    &["PRAGMA analytics = off", "PRAGMA analytics = force", "PRAGMA analytics = auto"],
    &["PRAGMA large_value_direct = on", "PRAGMA large_value_direct = off"],
    &["PRAGMA query_only = on", "PRAGMA query_only = off", "PRAGMA query_only = off"],
    &["PRAGMA read_uncommitted = on", "PRAGMA read_uncommitted = off"],
    &[
        "PRAGMA cell_size_check = on",
        "PRAGMA shrink_memory",
        "PRAGMA {db}.data_version",
        "PRAGMA {db}.journal_mode",
    ],
    &["PRAGMA {db}.application_id = 77", "PRAGMA {db}.application_id = 78"],
    &["PRAGMA {db}.auto_vacuum = 0", "PRAGMA {db}.auto_vacuum = 1", "PRAGMA {db}.auto_vacuum = 2"],
];

const SCHEMA: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS {db}.x(a, b)",
    "DROP TABLE IF EXISTS {db}.x",
    "WITH RECURSIVE c(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM c WHERE i < 60) INSERT INTO {db}.x SELECT i, hex(zeroblob(90)) FROM c",
    "DELETE FROM {db}.x",
    "CREATE TABLE IF NOT EXISTS {db}.y AS SELECT id, pad FROM {db}.t",
    "DROP TABLE IF EXISTS {db}.y",
    "CREATE INDEX IF NOT EXISTS {db}.t_ver ON t(ver, pad)",
    "DROP INDEX IF EXISTS {db}.t_ver",
    "ALTER TABLE {db}.t ADD COLUMN extra DEFAULT 5",
    "ALTER TABLE {db}.t DROP COLUMN extra",
    "ALTER TABLE {db}.t DROP COLUMN extra",
    "REINDEX",
    "ANALYZE {db}",
    "CREATE TRIGGER IF NOT EXISTS {db}.g AFTER INSERT ON ledger BEGIN UPDATE t SET pad = pad WHERE id % 9 = 0; END",
    "DROP TRIGGER IF EXISTS {db}.g",
];

/// Sizes of pages.
pub const PAGES: &[u32] = &[512, 1024, 4096, 4096, 65536];

const MODES: &[&str] = &["wal", "delete", "truncate", "persist", "memory", "off"];

/// What the histories of one round are made of. Each round draws a few things of all, which then meet often.
struct Flavour {
    actors: Vec<Actor>,
    one_file: bool,
    settings: Vec<&'static str>,
    modes: Vec<&'static str>,
    /// How often each kind of step is drawn.
    weights: [usize; KINDS.len()],
    pauses: usize,
}

/// The kinds of steps, and how often each is drawn of a hundred or so.
const KINDS: &[(Kind, usize)] = &[
    (Kind::Open, 5),
    (Kind::Close, 2),
    (Kind::Attach, 2),
    (Kind::Mode, 11),
    (Kind::Locking, 5),
    (Kind::Setting, 10),
    (Kind::Schema, 5),
    (Kind::Vacuum, 4),
    (Kind::Checkpoint, 3),
    (Kind::Begin, 6),
    (Kind::End, 6),
    (Kind::Savepoint, 5),
    (Kind::Write, 17),
    (Kind::Read, 15),
    (Kind::Check, 2),
    (Kind::Held, 8),
    (Kind::Copy, 2),
    (Kind::Kill, 1),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Open,
    Close,
    Attach,
    Mode,
    Locking,
    Setting,
    Schema,
    Vacuum,
    Checkpoint,
    Begin,
    End,
    Savepoint,
    Write,
    Read,
    Check,
    Held,
    Copy,
    Kill,
}

impl Flavour {
    fn draw(rng: &mut Rng, agents: usize) -> Flavour {
        let mut actors: Vec<Actor> = (0..agents).flat_map(|a| [(a, 0), (a, 1)]).collect();
        for _ in 0..rng.below(actors.len() - 1) {
            actors.remove(rng.below(actors.len()));
        }
        let some = 1 + rng.below(5);
        // Syncs and caches are what most depends on.
        let families =
            (0..some).map(|_| if rng.chance(30) { rng.below(3) } else { rng.below(SETTINGS.len()) });
        let settings =
            families.collect::<Vec<_>>().into_iter().flat_map(|f| SETTINGS[f].iter().copied()).collect();
        let modes = (0..1 + rng.below(4)).map(|_| MODES[rng.below(MODES.len())]).collect();
        let mut weights = [0; KINDS.len()];
        for ((_, often), w) in KINDS.iter().zip(&mut weights) {
            *w = often * rng.pick(&[0, 0, 1, 1, 4]);
        }
        for ((kind, often), w) in KINDS.iter().zip(&mut weights) {
            if matches!(kind, Kind::Open | Kind::Write | Kind::Read) {
                *w = (*w).max(*often);
            }
        }
        Flavour {
            actors,
            one_file: rng.chance(50),
            settings,
            modes,
            weights,
            pauses: *rng.pick(&[0, 0, 5, 20]),
        }
    }
}

fn how(rng: &mut Rng) -> How {
    let from = rng.below(1000) as i64;
    let to = from + rng.below(300) as i64;
    let len = *rng.pick(&[3, 40, 200, 900, 3000]);
    match rng.below(10) {
        // One that leaves the file's size and its free pages as they are shows in the change counter alone.
        0..4 => How::Add { rows: *rng.pick(&[0, 0, 1, 3, 40]), len },
        4..7 => How::Churn { from, to, len },
        7..8 => How::Delete { from, to },
        _ => How::Raise { of: 1 + rng.below(9) as i64 },
    }
}

fn vacuum(rng: &mut Rng) -> String {
    match rng.below(8) {
        0..2 => "VACUUM {db}".into(),
        2..4 => format!("PRAGMA {{db}}.page_size = {}; VACUUM {{db}}", rng.pick(PAGES)),
        4 => format!("PRAGMA {{db}}.auto_vacuum = {}; VACUUM {{db}}", rng.below(3)),
        5 => "PRAGMA {db}.incremental_vacuum".into(),
        _ => "PRAGMA {db}.incremental_vacuum(3)".into(),
    }
}

impl Flavour {
    /// A step of a connection.
    fn op(&self, rng: &mut Rng) -> Op {
        let db = if self.one_file { 0 } else { rng.below(2) };
        let run = |text: String| Op::Run { db, text };
        match KINDS[rng.weighted(self.weights.iter().copied())].0 {
            Kind::Open => self.open(rng),
            Kind::Close => Op::Close,
            Kind::Attach => rng.pick(&[Op::Attach, Op::Detach]).clone(),
            Kind::Mode => Op::Mode { db, mode: self.modes[rng.below(self.modes.len())] },
            Kind::Locking => run(rng.pick(LOCKING).to_string()),
            Kind::Setting => run(rng.pick(&self.settings).to_string()),
            Kind::Schema => run(rng.pick(SCHEMA).to_string()),
            Kind::Vacuum => run(vacuum(rng)),
            Kind::Checkpoint => run(format!(
                "PRAGMA {{db}}.wal_checkpoint({})",
                rng.pick(&["PASSIVE", "FULL", "RESTART", "TRUNCATE"])
            )),
            Kind::Begin => Op::Begin(rng.pick::<&str>(&["BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])),
            Kind::End => rng.pick(&[Op::Commit, Op::Commit, Op::Rollback]).clone(),
            Kind::Savepoint if rng.chance(50) => Op::Savepoint,
            Kind::Savepoint => Op::Back { level: rng.below(3), release: rng.chance(50) },
            Kind::Write => Op::Write { db, both: rng.chance(25), how: how(rng) },
            Kind::Read => Op::Read { db },
            Kind::Check => Op::Check { db },
            Kind::Held => match rng.below(8) {
                0..3 => Op::Hold { db },
                3 => Op::Backup { db, onto: rng.chance(50).then(|| *rng.pick(PAGES)) },
                4..6 => Op::More(*rng.pick(&[1, 5, -1])),
                _ => Op::Finish,
            },
            Kind::Copy => Op::Copy { db, image: rng.chance(50) },
            Kind::Kill => Op::Kill,
        }
    }

    fn open(&self, rng: &mut Rng) -> Op {
        match self.one_file {
            true => Op::Open { main: 0, attach: false },
            false => Op::Open { main: rng.below(2), attach: rng.chance(40) },
        }
    }

    /// A step of a connection that is probably in a transaction.
    fn within(&self, rng: &mut Rng) -> Op {
        let db = if self.one_file { 0 } else { rng.below(2) };
        match rng.below(20) {
            0..7 => Op::Write { db, both: rng.chance(25), how: how(rng) },
            7..10 => Op::Savepoint,
            10..13 => Op::Back { level: rng.below(3), release: rng.chance(40) },
            13..16 => Op::Read { db },
            16 => Op::Hold { db },
            17 => self.op(rng),
            _ => Op::Commit,
        }
    }
}

/// A history of so many steps, for so many agents with two connections each.
pub fn history(rng: &mut Rng, steps: usize, agents: usize) -> Vec<(Actor, Op)> {
    let flavour = Flavour::draw(rng, agents);
    let mut list: Vec<_> = flavour.actors.iter().map(|who| (*who, flavour.open(rng))).collect();
    let (mut who, mut begun) = (flavour.actors[0], vec![[false; 2]; agents]);
    while list.len() < steps {
        // Several steps of one connection make transactions.
        if rng.chance(45) {
            who = *rng.pick(&flavour.actors);
        }
        let begun = &mut begun[who.0][who.1];
        let drawn = if *begun && rng.chance(60) { flavour.within(rng) } else { flavour.op(rng) };
        match drawn {
            Op::Begin(_) => *begun = true,
            Op::Commit | Op::Rollback | Op::Kill | Op::Close => *begun = false,
            _ => {}
        }
        let pauses = !matches!(drawn, Op::Kill | Op::Hold { .. } | Op::Backup { .. } | Op::Finish);
        if !pauses || !rng.chance(flavour.pauses) {
            list.push((who, drawn));
            continue;
        }
        let before = if rng.chance(70) { rng.below(16) } else { rng.below(120) };
        let mut during = Vec::new();
        for _ in 0..rng.below(6) {
            during.push((*rng.pick(&flavour.actors), flavour.op(rng)));
        }
        list.push((who, Op::Pause { op: Box::new(drawn), before, during, kill: rng.chance(40) }));
    }
    list
}
