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
    Backup {
        db: usize,
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

const SETTINGS: &[&str] = &[
    "PRAGMA locking_mode = normal",
    "PRAGMA {db}.locking_mode = normal",
    "PRAGMA {db}.locking_mode = exclusive",
    "PRAGMA locking_mode = exclusive",
    "PRAGMA {db}.synchronous = 0",
    "PRAGMA {db}.synchronous = 1",
    "PRAGMA {db}.synchronous = 2",
    "PRAGMA {db}.synchronous = 3",
    "PRAGMA {db}.cache_size = 1",
    "PRAGMA {db}.cache_size = 3",
    "PRAGMA {db}.cache_size = 10",
    "PRAGMA {db}.cache_size = -100",
    "PRAGMA {db}.cache_size = 2000",
    "PRAGMA cache_spill = off",
    "PRAGMA cache_spill = on",
    "PRAGMA {db}.cache_spill = 5",
    "PRAGMA {db}.mmap_size = 0",
    "PRAGMA {db}.mmap_size = 65536",
    "PRAGMA {db}.mmap_size = 100000000",
    "PRAGMA temp_store = 1",
    "PRAGMA temp_store = 2",
    "PRAGMA wal_autocheckpoint = 0",
    "PRAGMA wal_autocheckpoint = 1",
    "PRAGMA wal_autocheckpoint = 10",
    "PRAGMA wal_autocheckpoint = 1000",
    "PRAGMA {db}.journal_size_limit = 0",
    "PRAGMA {db}.journal_size_limit = 5000",
    "PRAGMA {db}.journal_size_limit = -1",
    "PRAGMA {db}.secure_delete = 0",
    "PRAGMA {db}.secure_delete = 1",
    "PRAGMA {db}.secure_delete = fast",
    "PRAGMA lock_lease_ms = 0",
    "PRAGMA lock_lease_ms = 5",
    "PRAGMA lock_lease_ms = 60000",
    "PRAGMA analytics = off",
    "PRAGMA analytics = force",
    "PRAGMA analytics = auto",
    "PRAGMA checkpoint_thread = off",
    "PRAGMA checkpoint_thread = on",
    "PRAGMA large_value_direct = on",
    "PRAGMA large_value_direct = off",
    "PRAGMA query_only = on",
    "PRAGMA query_only = off",
    "PRAGMA query_only = off",
    "PRAGMA read_uncommitted = on",
    "PRAGMA read_uncommitted = off",
    "PRAGMA cell_size_check = on",
    "PRAGMA shrink_memory",
    "PRAGMA {db}.application_id = 77",
    "PRAGMA {db}.data_version",
    "PRAGMA {db}.journal_mode",
    "PRAGMA {db}.auto_vacuum = 0",
    "PRAGMA {db}.auto_vacuum = 1",
    "PRAGMA {db}.auto_vacuum = 2",
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

const BEGINS: &[&str] = &["BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"];

const MODES: &[&str] =
    &["wal", "wal", "wal", "delete", "delete", "truncate", "truncate", "persist", "persist", "memory", "off"];

fn how(rng: &mut Rng) -> How {
    let from = rng.below(1000) as i64;
    let to = from + rng.below(300) as i64;
    let len = *rng.pick(&[3, 40, 200, 900, 3000]);
    match rng.below(10) {
        0..4 => How::Add { rows: rng.below(40) as i64, len },
        4..7 => How::Churn { from, to, len },
        7..8 => How::Delete { from, to },
        _ => How::Raise { of: 1 + rng.below(9) as i64 },
    }
}

fn vacuum(rng: &mut Rng) -> String {
    match rng.below(8) {
        0..2 => "VACUUM {db}".into(),
        2..4 => format!("PRAGMA {{db}}.page_size = {}; VACUUM {{db}}", rng.pick(&[512, 1024, 2048, 4096])),
        4 => format!("PRAGMA {{db}}.auto_vacuum = {}; VACUUM {{db}}", rng.below(3)),
        5 => "PRAGMA {db}.incremental_vacuum".into(),
        _ => "PRAGMA {db}.incremental_vacuum(3)".into(),
    }
}

/// A step of a connection.
fn op(rng: &mut Rng) -> Op {
    let db = rng.below(2);
    let picked = |rng: &mut Rng, list: &[&str]| Op::Run { db, text: rng.pick(list).to_string() };
    match rng.below(100) {
        0..5 => Op::Open { main: rng.below(2), attach: rng.chance(40) },
        5..7 => Op::Close,
        7 => Op::Attach,
        8 => Op::Detach,
        9..20 => Op::Mode { db, mode: MODES[rng.below(MODES.len())] },
        20..33 => picked(rng, SETTINGS),
        33..38 => picked(rng, SCHEMA),
        38..42 => Op::Run { db, text: vacuum(rng) },
        42..44 => Op::Run {
            db,
            text: format!(
                "PRAGMA {{db}}.wal_checkpoint({})",
                rng.pick(&["PASSIVE", "FULL", "RESTART", "TRUNCATE"])
            ),
        },
        44..50 => Op::Begin(rng.pick::<&str>(BEGINS)),
        50..54 => Op::Commit,
        54..56 => Op::Rollback,
        56..59 => Op::Savepoint,
        59..62 => Op::Back { level: rng.below(3), release: rng.chance(50) },
        62..77 => Op::Write { db, both: rng.chance(25), how: how(rng) },
        77..88 => Op::Read { db },
        88..90 => Op::Check { db },
        90..93 => Op::Hold { db },
        93 => Op::Backup { db },
        94..96 => Op::More(*rng.pick(&[1, 5, -1])),
        96..98 => Op::Finish,
        98 => Op::Copy { db, image: rng.chance(50) },
        _ => Op::Kill,
    }
}

/// A step of a connection that is probably in a transaction.
fn within(rng: &mut Rng) -> Op {
    let db = rng.below(2);
    match rng.below(20) {
        0..7 => Op::Write { db, both: rng.chance(25), how: how(rng) },
        7..10 => Op::Savepoint,
        10..13 => Op::Back { level: rng.below(3), release: rng.chance(40) },
        13..16 => Op::Read { db },
        16 => Op::Hold { db },
        17 => Op::Run { db, text: rng.pick(SCHEMA).to_string() },
        18 => Op::Run { db, text: rng.pick(SETTINGS).to_string() },
        _ => Op::Commit,
    }
}

/// A history of so many steps, for so many agents with two connections each.
pub fn history(rng: &mut Rng, steps: usize, agents: usize) -> Vec<(Actor, Op)> {
    let actor = |rng: &mut Rng| (rng.below(agents), rng.below(2));
    let mut list = Vec::new();
    for who in (0..agents).flat_map(|agent| [(agent, 0), (agent, 1)]) {
        if who.1 == 0 || rng.chance(50) {
            list.push((who, Op::Open { main: rng.below(2), attach: rng.chance(40) }));
        }
    }
    let (mut who, mut begun) = ((0, 0), vec![[false; 2]; agents]);
    while list.len() < steps {
        // Several steps of one connection make transactions.
        if rng.chance(45) {
            who = actor(rng);
        }
        let begun = &mut begun[who.0][who.1];
        let drawn = if *begun && rng.chance(60) { within(rng) } else { op(rng) };
        match drawn {
            Op::Begin(_) => *begun = true,
            Op::Commit | Op::Rollback | Op::Kill | Op::Close => *begun = false,
            _ => {}
        }
        let pauses =
            !matches!(drawn, Op::Kill | Op::Hold { .. } | Op::Backup { .. } | Op::Finish) && rng.chance(12);
        if !pauses {
            list.push((who, drawn));
            continue;
        }
        let before = if rng.chance(70) { rng.below(16) } else { rng.below(120) };
        let mut during = Vec::new();
        for _ in 0..rng.below(6) {
            during.push((actor(rng), op(rng)));
        }
        list.push((who, Op::Pause { op: Box::new(drawn), before, during, kill: rng.chance(40) }));
    }
    list
}
