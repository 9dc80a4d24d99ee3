//! Histories: connections of both engines, long-lived, short-lived and killed in other processes, write, checkpoint,
//! vacuum, truncate, alter and restore one file in an order that a seed decides, in log and rollback modes. After each
//! step every table is read in rows and in columns within one transaction: the same. A sidecar stands beside the file all
//! the time and is in use. `IOLITE_COLUMN_HISTORIES=N` runs N of them; a failure names its seed.

use iolite_stock as stock;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// What another process does, told by variables.
const CHILD: &str = "IOLITE_HISTORY_CHILD";

fn fill(r: &mut Rng, rows: u64) -> String {
    let k = 1 + r.below(1000);
    format!(
        "INSERT INTO t(a, pad, b, r, v) WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < {rows})
           SELECT (i * {k}) % 50, CASE WHEN i % 97 = 3 THEN printf('%.*c', 900 + i, 'o') ELSE 'p' || i % 40 END,
             nullif(i % 9, 8), i * 0.5, CASE i % 4 WHEN 0 THEN i % 6 WHEN 1 THEN 'x' || i % 5 WHEN 2 THEN i / 3.0 END FROM c;"
    )
}

const SCHEMA: &str = "
CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, pad TEXT, b INTEGER, r REAL, v);
CREATE TABLE u(k INTEGER, s TEXT);";

/// Some statements that change something.
fn change(r: &mut Rng) -> String {
    let id = r.below(4000);
    match r.below(13) {
        0 => format!("UPDATE t SET a = {} WHERE id = {id}", r.below(99)),
        1 => format!("UPDATE t SET b = {} WHERE id % 997 = 3", r.below(9)),
        2 => format!("UPDATE t SET pad = printf('%.*c', {}, 'z') WHERE id = {id}", r.below(4000)),
        3 => format!("UPDATE t SET r = {}.25, v = NULL WHERE id % 301 = {}", r.below(50), r.below(301)),
        4 => format!("DELETE FROM t WHERE id BETWEEN {id} AND {}", id + r.below(60)),
        5 => {
            let n = 1 + r.below(300);
            fill(r, n)
        }
        6 => format!("INSERT INTO u SELECT id, pad FROM t WHERE id % {} = 0", 2 + r.below(9)),
        7 => format!("UPDATE u SET s = 'w{}' WHERE rowid % 53 = {}", r.below(9), r.below(53)),
        8 => "DELETE FROM u".into(),
        9 => {
            "BEGIN; CREATE TABLE w AS SELECT * FROM u; DROP TABLE u; ALTER TABLE w RENAME TO u; COMMIT".into()
        }
        10 if r.chance(30) => {
            format!("ALTER TABLE t ADD COLUMN n{} INTEGER DEFAULT {}", r.below(1 << 30), r.below(9))
        }
        11 if r.chance(20) => "DELETE FROM t".into(),
        12 => format!("INSERT OR REPLACE INTO t(id, a, pad, v) VALUES({id}, 1, 'r', 1.0)"),
        _ => format!("UPDATE t SET a = a + 1 WHERE id < {}", r.below(400)),
    }
}

fn answer(c: &iolite::engine::Connection, q: &str) -> Result<String, String> {
    c.query(q, &[]).map(|rows| rows.iter().map(|r| format!("{r:?}\n")).collect()).map_err(|e| e.to_string())
}

fn open(path: &Path) -> iolite::engine::Connection {
    let c = iolite::engine::Connection::open(&path.to_string_lossy()).unwrap();
    c.busy_timeout(100).unwrap();
    c
}

fn stock_open(path: &Path) -> stock::Connection {
    let s = stock::Connection::open(&path.to_string_lossy()).unwrap();
    s.execute_batch("PRAGMA busy_timeout=100").unwrap();
    s
}

/// Runs in a process of its own and does not come back to close what it opened.
#[test]
fn child() {
    let Ok(task) = std::env::var(CHILD) else { return };
    iolite::engine::set_column_segment_leaves(16);
    let mut words = task.splitn(3, ' ');
    let (what, seed) = (words.next().unwrap(), words.next().unwrap().parse().unwrap());
    let path = PathBuf::from(words.next().unwrap());
    let mut r = Rng(seed);
    match what {
        "stock" => {
            let s = stock_open(&path);
            for _ in 0..1 + r.below(6) {
                let _ = s.execute_batch(&change(&mut r));
            }
            let _ = s.execute_batch(&format!("PRAGMA cache_size=5; BEGIN; {}", change(&mut r)));
        }
        "iolite" => {
            let c = open(&path);
            for _ in 0..1 + r.below(6) {
                let _ = c.execute_batch(&change(&mut r));
                let _ = c.execute_batch("PRAGMA analytics=force; SELECT * FROM t; SELECT * FROM u");
            }
            if r.chance(60) {
                let _ = c.execute_batch("PRAGMA column_cache=persist");
            }
            if r.chance(50) {
                c.close().unwrap();
                std::process::exit(0);
            }
            let _ = c.execute_batch(&format!("PRAGMA cache_size=5; BEGIN; {}", change(&mut r)));
        }
        "closer" => {
            for _ in 0..1 + r.below(4) {
                let c = open(&path);
                let _ = c.execute_batch("PRAGMA column_cache=persist; PRAGMA analytics=force");
                let _ = c.execute_batch(&change(&mut r));
                let _ = c.execute_batch("SELECT * FROM t; SELECT * FROM u");
                let _ = c.close();
            }
            std::process::exit(0);
        }
        _ => {
            let s = stock_open(&path);
            for _ in 0..60 {
                let _ = s.execute_batch(&change(&mut r));
                if r.chance(10) {
                    let _ = s.execute_batch("PRAGMA wal_checkpoint(RESTART)");
                }
            }
            drop(s);
            std::process::exit(0);
        }
    }
    std::process::abort();
}

fn spawn(what: &str, seed: u64, path: &Path) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(CHILD, format!("{what} {seed} {}", path.display()))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

/// What columns were taken from, over a whole history.
#[derive(Default, Debug)]
struct Used {
    runs: u64,
    loaded: u64,
    decoded: u64,
    patched: u64,
    hashed: u64,
    published: u64,
    rejected: u64,
}

struct History {
    folder: PathBuf,
    path: PathBuf,
    r: Rng,
    seed: u64,
    own: Option<iolite::engine::Connection>,
    /// A reader that stays at its snapshot, and what it saw.
    old: Option<(iolite::engine::Connection, String)>,
    stock: Option<stock::Connection>,
    used: Used,
    log: Vec<String>,
}

impl History {
    fn new(seed: u64) -> History {
        let folder = std::env::temp_dir().join(format!("iolite-history-{seed}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("h.db");
        let mut h = History {
            path,
            folder,
            r: Rng(seed),
            seed,
            own: None,
            old: None,
            stock: None,
            used: Used::default(),
            log: Vec::new(),
        };
        let size = [512, 1024, 4096][h.r.below(3) as usize];
        let auto = [0, 0, 1][h.r.below(3) as usize];
        let mode = if h.r.chance(65) { "WAL" } else { "DELETE" };
        let s = stock_open(&h.path);
        s.execute_batch(&format!(
            "PRAGMA page_size={size}; PRAGMA auto_vacuum={auto}; PRAGMA journal_mode={mode}"
        ))
        .unwrap();
        s.execute_batch(SCHEMA).unwrap();
        s.execute_batch(&fill(&mut h.r, 2500)).unwrap();
        drop(s);
        h
    }

    fn conn(&mut self) -> &iolite::engine::Connection {
        let path = &self.path;
        self.own.get_or_insert_with(|| {
            let c = open(path);
            c.execute_batch("PRAGMA analytics=force; PRAGMA column_cache=persist; PRAGMA cache_size=30")
                .unwrap();
            c
        })
    }

    fn close_own(&mut self) {
        if let Some(c) = self.own.take() {
            let n = c.column_counters(0);
            self.used.runs += c.column_runs();
            self.used.loaded += n.loaded;
            self.used.decoded += n.decoded;
            self.used.patched += n.patched;
            self.used.hashed += n.hashed;
            self.used.published += n.published;
            self.used.rejected += n.rejected;
            assert_eq!(c.column_note(0), None, "seed {}, {:#?}", self.seed, self.log);
            let _ = c.close();
        }
    }

    fn close_all(&mut self) {
        if let Some((c, _)) = self.old.take() {
            let _ = c.close();
        }
        self.stock = None;
        self.close_own();
    }

    fn writer(&mut self, sql: &str) -> String {
        let path = self.path.clone();
        match self.r.below(4) {
            0 => format!("{:?}", self.conn().execute_batch(sql).is_ok()),
            1 => format!("{:?}", open(&path).execute_batch(sql).is_ok()),
            2 => format!("{:?}", stock_open(&path).execute_batch(sql).is_ok()),
            _ => {
                let s = self.stock.get_or_insert_with(|| stock_open(&path));
                format!("{:?}", s.execute_batch(sql).is_ok())
            }
        }
    }

    fn step(&mut self) {
        let what = self.r.below(32);
        let note = match what {
            0..=9 => {
                let sql = change(&mut self.r);
                let ok = self.writer(&sql);
                format!("{ok}: {sql}")
            }
            10 | 11 => {
                let mode = ["PASSIVE", "FULL", "RESTART", "TRUNCATE"][self.r.below(4) as usize];
                self.old = None;
                let sql = format!("PRAGMA wal_checkpoint({mode})");
                let ok = self.writer(&sql);
                format!("{ok}: {sql}")
            }
            12 => {
                self.old = None;
                let ok = self.writer("VACUUM");
                format!("{ok}: VACUUM")
            }
            13..=15 => {
                self.close_all();
                "close all".into()
            }
            16 => {
                self.close_own();
                "close own".into()
            }
            17 | 18 => {
                let what = if self.r.chance(50) { "stock" } else { "iolite" };
                let seed = self.r.below(1 << 30);
                if self.r.chance(50) {
                    self.close_all();
                }
                let _ = spawn(what, seed, &self.path).wait();
                format!("child {what} {seed}")
            }
            19 => {
                self.close_all();
                let s = stock_open(&self.path);
                let mode = if self.r.chance(50) { "WAL" } else { "DELETE" };
                let _ = s.execute_batch(&format!("PRAGMA journal_mode={mode}"));
                format!("mode {mode}")
            }
            20 => {
                let copy = self.folder.join("backup.db");
                let _ = std::fs::remove_file(&copy);
                let sql = format!("VACUUM INTO '{}'", copy.display());
                let ok = self.writer(&sql);
                format!("{ok}: backup")
            }
            21 | 22 => {
                self.close_all();
                let copy = self.folder.join("backup.db");
                if copy.exists() {
                    // Over the file, or in its place; what a log or journal said belongs to the former one.
                    for s in ["-wal", "-journal", "-shm"] {
                        let _ = std::fs::remove_file(format!("{}{s}", self.path.display()));
                    }
                    if self.r.chance(70) {
                        std::fs::copy(&copy, &self.path).unwrap();
                    } else {
                        let other = self.folder.join("other.db");
                        std::fs::copy(&copy, &other).unwrap();
                        std::fs::rename(&other, &self.path).unwrap();
                    }
                }
                "restore".into()
            }
            23 => {
                let c = open(&self.path);
                c.execute_batch("PRAGMA analytics=force; BEGIN").unwrap();
                let seen = answer(&c, "SELECT * FROM t").unwrap_or_default();
                self.old = Some((c, seen));
                "an old reader".into()
            }
            24 => {
                self.old = None;
                let seed = self.r.below(1 << 30);
                let mut writer = spawn("writer", seed, &self.path);
                for _ in 0..4 {
                    self.check("beside a writer");
                }
                let _ = writer.wait();
                format!("writer {seed}")
            }
            25 | 26 => {
                // The power goes: the log's end was not on the disk, or is something else now. What was written to the
                // sidecar may be of a later moment than what is left, or of an earlier one.
                self.writer("INSERT INTO u VALUES(1, 'before')");
                let side = |suffix: &str| format!("{}{suffix}", self.path.display());
                let read = |suffix: &str| std::fs::read(side(suffix)).ok();
                let (db, mut log, columns) = (read(""), read("-wal"), read("-col"));
                let journal = read("-journal");
                if self.r.chance(60) {
                    self.conn();
                    self.check("before the power goes");
                }
                self.close_all();
                if journal.is_some() {
                    return;
                }
                if let Some(log) = log.as_mut().filter(|l| l.len() > 32) {
                    let kept = 32 + self.r.below(log.len() as u64 - 31) as usize;
                    if self.r.chance(50) {
                        log[kept..].fill(0);
                    }
                    log.truncate(kept.max(if self.r.chance(50) { kept } else { log.len() }));
                }
                for (suffix, bytes) in [("", db), ("-wal", log), ("-shm", None)] {
                    let _ = std::fs::remove_file(format!("{}{suffix}", self.path.display()));
                    if let Some(b) = bytes {
                        std::fs::write(format!("{}{suffix}", self.path.display()), b).unwrap();
                    }
                }
                if let Some(c) = columns.filter(|_| self.r.chance(50)) {
                    std::fs::write(format!("{}-col", self.path.display()), c).unwrap();
                }
                "the power went".into()
            }
            27 => {
                // Several processes write the sidecar at once.
                self.close_all();
                let seeds: Vec<u64> = (0..3).map(|_| self.r.below(1 << 30)).collect();
                let mut all: Vec<_> = seeds.iter().map(|s| spawn("closer", *s, &self.path)).collect();
                all.iter_mut().for_each(|c| {
                    let _ = c.wait();
                });
                format!("closers {seeds:?}")
            }
            28 | 29 => {
                // Out of the log's mode and into it again, with one connection all the time, with a log or without one.
                self.old = None;
                if self.r.chance(50) {
                    self.close_all();
                }
                self.check("before the mode changes");
                if self.r.chance(70) {
                    self.stock = None;
                }
                let (first, second) = (change(&mut self.r), change(&mut self.r));
                let log = if self.r.chance(50) { "DELETE FROM u WHERE k = -1; " } else { "" };
                let vacuum = if self.r.chance(30) { "VACUUM; " } else { "" };
                let sql = format!(
                    "PRAGMA journal_mode=DELETE; {first}; {vacuum}PRAGMA journal_mode=WAL; {log}SELECT count(*) FROM t"
                );
                let own = self.r.chance(60);
                let ok =
                    if own { self.conn().execute_batch(&sql).is_ok() } else { self.writer(&sql) == "true" };
                if self.r.chance(50) {
                    self.check("after the mode changed");
                }
                if self.r.chance(30) {
                    self.conn();
                    let _ = self.conn().execute_batch(&format!("PRAGMA journal_mode=DELETE; {second}"));
                }
                format!("{ok} own {own}: {sql}")
            }
            30 => {
                // Moved away and back, or to another file.
                self.close_all();
                let other = self.folder.join("moved.db");
                if std::fs::metadata(format!("{}-wal", self.path.display())).is_err() {
                    if self.r.chance(50) {
                        std::fs::copy(&self.path, &other).unwrap();
                    } else {
                        std::fs::rename(&self.path, &other).unwrap();
                    }
                    std::fs::rename(&other, &self.path).unwrap();
                }
                "moved".into()
            }
            _ => {
                // Somebody cleans up, or damages what is only a cache.
                let side = format!("{}-col", self.path.display());
                if self.r.chance(50) {
                    let _ = std::fs::remove_file(&side);
                } else if let Ok(mut b) = std::fs::read(&side)
                    && b.len() > 16
                {
                    // Not the first bytes: what begins otherwise is somebody else's.
                    let at = 16 + self.r.below(b.len() as u64 - 16) as usize;
                    b[at] ^= 0x10;
                    let _ = std::fs::write(&side, b);
                }
                "the sidecar is damaged".into()
            }
        };
        self.log.push(note);
    }

    /// Reads every table both ways in one transaction.
    fn check(&mut self, when: &str) {
        let seed = self.seed;
        // Now and then within a write transaction, which may have changed something itself.
        let (writing, undone) = (self.r.chance(40), self.r.chance(50));
        let own = if writing && self.r.chance(60) { change(&mut self.r) } else { String::new() };
        if writing {
            self.log.push(format!("check while writing: {own}"));
        }
        let c = self.conn();
        let Ok(()) = c.execute_batch(if writing { "BEGIN IMMEDIATE" } else { "BEGIN" }) else { return };
        let _ = c.execute_batch(&own);
        let mut wrong = None;
        for table in ["t", "u"] {
            for q in [
                format!("SELECT * FROM {table}"),
                format!("SELECT count(*), total(length({table}.rowid)) FROM {table}"),
            ] {
                c.execute_batch("PRAGMA analytics=off").unwrap();
                let rows = answer(c, &q);
                c.execute_batch("PRAGMA analytics=force").unwrap();
                let before = c.column_runs();
                let columns = answer(c, &q);
                let waited =
                    [&rows, &columns].iter().any(|r| r.as_ref().is_err_and(|e| e.contains("locked")));
                if rows != columns && !waited {
                    wrong.get_or_insert(format!(
                        "{q}\nrows    {:.2000}\ncolumns {:.2000}",
                        format!("{rows:?}"),
                        format!("{columns:?}")
                    ));
                }
                if rows.is_ok() && c.column_runs() == before {
                    wrong.get_or_insert(format!("not in columns: {q}"));
                }
            }
        }
        let _ = c.execute_batch(if writing && undone { "ROLLBACK" } else { "COMMIT" });
        if let Some((old, seen)) = &self.old
            && answer(old, "SELECT * FROM t").as_ref() != Ok(seen)
        {
            wrong.get_or_insert("an old reader sees something new".into());
        }
        if let Some(w) = wrong {
            panic!("seed {seed}, {when}, after {:#?}\n{w}", self.log);
        }
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.old = None;
        self.own = None;
        self.stock = None;
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn columns_follow_rows_through_any_history() {
    iolite::engine::set_column_segment_leaves(16);
    let variable = |n: &str| std::env::var(n).ok().and_then(|v| v.parse::<u64>().ok());
    let (count, first) =
        (variable("IOLITE_COLUMN_HISTORIES").unwrap_or(6), variable("IOLITE_COLUMN_SEED").unwrap_or(1));
    let mut total = Used::default();
    for seed in first..first + count {
        let mut h = History::new(seed);
        for _ in 0..40 {
            h.check("at rest");
            h.step();
        }
        h.check("at the end");
        h.close_all();
        let u = &h.used;
        total.runs += u.runs;
        total.loaded += u.loaded;
        total.decoded += u.decoded;
        total.patched += u.patched;
        total.hashed += u.hashed;
        total.published += u.published;
        total.rejected += u.rejected;
    }
    println!("{total:?}");
    assert!(
        total.loaded > 20 * count && total.patched > count && total.hashed > count && total.published > count,
        "{total:?}"
    );
}
