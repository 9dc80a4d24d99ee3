//! The transactions that a simulation runs, and the one who runs them.
//!
//! A script is a list of steps; each is one SQL text that commits at most once, or an act of the
//! surroundings: closing and opening again, a second connection that reads. Pages are small and the cache
//! holds few of them, so that transactions spill and every structure of the file is touched within a few
//! hundred writes.

use crate::disk::{Disk, Event};
use crate::searches;
use crate::state::{AUX, MAIN, OTHERS, dump};
use iolite::engine::{Connection, OpenFlags};
use std::sync::Arc;

/// `PRAGMA journal_mode`, by name.
pub const MODES: [&str; 6] = ["delete", "truncate", "persist", "memory", "off", "wal"];
/// Those in which a commit over several files is one.
pub const FILES: [&str; 4] = ["delete", "truncate", "persist", "wal"];
/// `PRAGMA synchronous`, by number.
pub const SYNCS: [&str; 4] = ["off", "normal", "full", "extra"];

/// What a script is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Tables, indexes, maintenance; with `Setting::others`: several files.
    Rows,
    /// Large values, with `PRAGMA large_value_direct`.
    Large,
    /// Full text and vectors: what lies beside the rows in shadow tables and in memory.
    Search,
}

/// Under which settings a script runs.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// One of [`MODES`].
    pub mode: &'static str,
    /// One of [`SYNCS`].
    pub sync: &'static str,
    /// `PRAGMA auto_vacuum`.
    pub auto_vacuum: u8,
    /// `PRAGMA locking_mode=EXCLUSIVE`: locks are kept, the index of a log is private.
    pub exclusive: bool,
    /// What the script is about.
    pub subject: Subject,
    /// Journal modes of the databases attached: where there are any, transactions are over all of them.
    pub others: &'static [&'static str],
    /// What all random choices hang on.
    pub seed: u64,
}

/// A step of a script.
#[derive(Clone, Debug)]
pub enum Act {
    /// Statements. At most one transaction commits.
    Sql(String),
    /// Closes all connections and opens the first one again.
    Reopen,
    /// A second connection begins to read, and goes on.
    OpenReader,
    /// It ends.
    CloseReader,
}

fn sql(text: &str) -> Act {
    Act::Sql(text.to_string())
}

/// An expression for a large value: so many bytes of one letter. Its chain is long enough to go to the file at once, on a
/// freelist that holds one of its length.
pub fn large(letter: &str) -> String {
    format!("CAST(printf('%.*c', 80000, {letter}) AS BLOB)")
}

impl Setting {
    /// Whether a rollback journal lies in a file.
    pub fn has_journal_file(&self) -> bool {
        matches!(self.mode, "delete" | "truncate" | "persist")
    }

    /// The journal mode of a database.
    fn mode_of(&self, db: &str) -> &'static str {
        let other = OTHERS.iter().position(|o| o.0 == db);
        other.and_then(|i| self.others.get(i)).copied().unwrap_or(self.mode)
    }

    /// The pragmas that a connection needs anew after each opening.
    fn pragmas(&self, db: &str) -> String {
        let locking = if self.exclusive { "exclusive" } else { "normal" };
        format!(
            "PRAGMA {db}.locking_mode={locking}; PRAGMA {db}.page_size=512; PRAGMA {db}.auto_vacuum={}; PRAGMA {db}.cache_size=6; \
             PRAGMA {db}.synchronous={}; PRAGMA {db}.journal_mode={};",
            self.auto_vacuum,
            self.sync,
            self.mode_of(db)
        )
    }

    /// The script. `quick`: the share of it that every change of the code should pass.
    pub fn script(&self, quick: bool) -> Vec<Act> {
        match self.subject {
            Subject::Rows if !self.others.is_empty() => self.files_script(),
            Subject::Rows => self.rows_script(quick),
            Subject::Large => self.large_script(),
            Subject::Search => self.search_script(quick),
        }
    }

    /// A script of transactions over several files, each in its own mode.
    fn files_script(&self) -> Vec<Act> {
        let mut s = vec![sql("CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b BLOB)")];
        for (name, file) in &OTHERS[..self.others.len()] {
            s.push(Act::Sql(format!("ATTACH '{file}' AS {name}; {}", self.pragmas(name))));
            s.push(Act::Sql(format!("CREATE TABLE {name}.t(id INTEGER PRIMARY KEY, a TEXT, b BLOB)")));
        }
        let all = || std::iter::once("main").chain(OTHERS[..self.others.len()].iter().map(|o| o.0));
        let each = |text: &str| all().map(|db| text.replace("DB", db)).collect::<String>();
        let both = |text: &str| Act::Sql(format!("BEGIN; {}COMMIT", each(text)));
        s.extend([
            both("INSERT INTO DB.t(a, b) VALUES('one', x'01'), ('two', zeroblob(40)); "),
            // Larger than the cache: spills.
            both(
                "WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 30) \
                 INSERT INTO DB.t SELECT i, 'row ' || i, zeroblob(90) FROM n; ",
            ),
            Act::Sql(format!(
                "SAVEPOINT s; {} SAVEPOINT u; {} ROLLBACK TO u; {} RELEASE s",
                each("UPDATE DB.t SET a = 'changed' WHERE id < 15; "),
                each("DELETE FROM DB.t; "),
                each("INSERT INTO DB.t(a) VALUES('after'); ")
            )),
            Act::Sql(format!("BEGIN; {}ROLLBACK", each("UPDATE DB.t SET a = 'gone'; "))),
            // All of it is spilled when the commit begins.
            both("UPDATE DB.t SET b = zeroblob(300); SELECT count(*) FROM DB.t; "),
            both("DELETE FROM DB.t WHERE id > 12; "),
            sql("INSERT INTO t(a) VALUES('alone')"),
        ]);
        s
    }

    /// A script about large values that go to the file at once. The cache holds more than the half of one.
    fn large_script(&self) -> Vec<Act> {
        let put = |letter: &str| format!("UPDATE t SET b = {} WHERE id = 1", large(&format!("'{letter}'")));
        let act = |text: String| Act::Sql(text);
        let reader = |a: Act| if self.exclusive { sql("SELECT 1") } else { a };
        vec![
            sql("PRAGMA cache_size=100; CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b BLOB)"),
            sql("INSERT INTO t(id, a) VALUES(1, 'one'), (2, 'two')"),
            // The first ones go to the log, and leave free pages.
            act(put("a")),
            act(put("b")),
            sql("PRAGMA wal_checkpoint(RESTART)"),
            // The log begins anew, and goes on.
            act(put("c")),
            act(put("d")),
            sql("UPDATE t SET a = 'changed' WHERE id = 2"),
            act(format!("BEGIN; {}; ROLLBACK", put("e"))),
            act(format!(
                "BEGIN; {}; SAVEPOINT s; {}; ROLLBACK TO s; {}; COMMIT",
                put("f"),
                put("g"),
                put("h")
            )),
            sql("PRAGMA wal_checkpoint(PASSIVE)"),
            reader(Act::OpenReader),
            // Beside a reader of the same state, and of an older one.
            act(put("i")),
            act(put("j")),
            Act::CloseReader,
            // The pages change their use: to rows, and back.
            sql("BEGIN; UPDATE t SET b = NULL WHERE id = 1; \
                 WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 60) \
                 INSERT INTO t SELECT i, 'row', zeroblob(400) FROM n; COMMIT"),
            sql("DELETE FROM t WHERE id > 5"),
            sql("PRAGMA wal_checkpoint(TRUNCATE)"),
            act(put("k")),
            act(put("l")),
            Act::Reopen,
            sql("PRAGMA cache_size=100"),
            act(put("m")),
        ]
    }

    /// A script about tables of texts and of vectors, exact, with lists and with a graph. Chunks are small, and so are the numbers of rows from which on
    /// indexes are made.
    fn search_script(&self, quick: bool) -> Vec<Act> {
        // Row `i` of each table; vectors lie apart.
        let rows = |from: i64, to: i64| {
            let numbers = format!(
                "WITH RECURSIVE n(i) AS (SELECT {from} UNION ALL SELECT i + 1 FROM n WHERE i < {to}) "
            );
            let vector = "'[' || (i * 7 % 13) || ',' || (i * 5 % 11) || ',' || (i % 3) || ',' || i || ']'";
            format!(
                "{numbers} INSERT INTO f(rowid, body) SELECT i, 'all w' || i % 7 || ' x' || i % 3 || ' row' || i FROM n; \
                 {numbers} INSERT INTO exact(rowid, e, year, title) SELECT i, {vector}, i % 4, 'no ' || i FROM n; \
                 {numbers} INSERT INTO lists(rowid, e) SELECT i, {vector} FROM n; \
                 {numbers} INSERT INTO graph(rowid, e) SELECT i, {vector} FROM n; "
            )
        };
        let each = |text: &str| ["exact", "lists", "graph"].map(|t| text.replace("VEC", t)).concat();
        let mut s = vec![
            sql(
                "BEGIN; CREATE VIRTUAL TABLE f USING fts5(body); INSERT INTO f(f, rank) VALUES('pgsz', 64); COMMIT",
            ),
            sql(
                "BEGIN; CREATE VIRTUAL TABLE exact USING vec0(e float[4], year integer, +title text, chunk_size=8); \
                 CREATE VIRTUAL TABLE lists USING vec0(e float[4] index=ivf(train=12, lists=3, probes=2), chunk_size=8); \
                 CREATE VIRTUAL TABLE graph USING vec0(e float[4] distance_metric=cosine index=hnsw(train=12, m=4), chunk_size=8); \
                 COMMIT",
            ),
            Act::Sql(format!("BEGIN; {}COMMIT", rows(1, 5))),
            Act::Sql(format!("BEGIN; {}COMMIT", rows(10, 30))),
            Act::Sql(format!(
                "BEGIN; {} SAVEPOINT s; {} DELETE FROM f; {} ROLLBACK TO s; {} RELEASE s; COMMIT",
                rows(40, 41),
                each("DELETE FROM VEC; "),
                rows(50, 52),
                rows(42, 43)
            )),
            Act::Sql(format!(
                "BEGIN; {}UPDATE f SET body = 'gone'; ROLLBACK",
                each("DELETE FROM VEC WHERE rowid > 3; ")
            )),
            sql("UPDATE f SET body = 'all changed w1' WHERE rowid % 5 = 0"),
            sql("UPDATE lists SET e = '[9, 9, 9, 9]' WHERE rowid = 12"),
            sql(
                "BEGIN; DELETE FROM exact WHERE rowid IN (2, 11, 12); DELETE FROM lists WHERE rowid IN (2, 13); \
                 DELETE FROM graph WHERE rowid < 4; DELETE FROM f WHERE rowid BETWEEN 3 AND 11; COMMIT",
            ),
            sql("INSERT INTO lists(lists) VALUES('rebuild')"),
            sql("INSERT INTO graph(graph) VALUES('rebuild')"),
            Act::Reopen,
            Act::Sql(format!("BEGIN; {}COMMIT", rows(60, 62))),
        ];
        if self.mode == "wal" {
            s.extend([
                sql("PRAGMA wal_checkpoint(RESTART)"),
                sql("UPDATE exact SET e = '[1, 2, 3, 4]', year = 5 WHERE rowid = 4"),
            ]);
        }
        if quick {
            return s;
        }
        s.extend([
            sql("INSERT INTO f(f) VALUES('optimize')"),
            Act::Sql(format!("BEGIN; {}COMMIT", rows(70, 90))),
            sql("INSERT INTO graph(graph) VALUES('optimize')"),
            // A statement that fails half-way is taken back alone.
            sql("BEGIN; INSERT OR IGNORE INTO exact(rowid, e, year) VALUES(100, '[1, 1, 1, 1]', 1), (100, '[2, 2, 2, 2]', 2); \
                 INSERT OR REPLACE INTO lists(rowid, e) VALUES(70, '[0, 0, 0, 1]'); COMMIT"),
            sql("INSERT INTO f(f, rank) VALUES('secure-delete', 1)"),
            sql("DELETE FROM f WHERE rowid % 2"),
            Act::Sql(format!("BEGIN; {}COMMIT", each("DELETE FROM VEC WHERE rowid BETWEEN 15 AND 75; "))),
            sql("VACUUM"),
            // A rebuilt index keeps the settings' number only where they were read before, with both engines.
            sql("SELECT count(*) FROM f WHERE f MATCH 'all'; INSERT INTO f(f) VALUES('rebuild')"),
            Act::Sql(format!("BEGIN; {}COMMIT", rows(200, 203))),
            sql("ALTER TABLE lists RENAME TO renamed"),
            sql("BEGIN; DROP TABLE renamed; DROP TABLE graph; INSERT INTO f(body) VALUES('all after'); COMMIT"),
            Act::Reopen,
        ]);
        s
    }

    /// A script about tables and indexes, with all that maintains a file.
    fn rows_script(&self, quick: bool) -> Vec<Act> {
        let mut s = vec![
            sql(
                "BEGIN; CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b BLOB); CREATE INDEX ta ON t(a); COMMIT",
            ),
            sql("INSERT INTO t(a, b) VALUES('one', x'01'), ('two', zeroblob(40)), ('three', NULL)"),
            sql("UPDATE t SET a = a || '-changed' WHERE id = 2"),
            sql("INSERT INTO t(a, b) VALUES('large', CAST(printf('%.*c', 1800, 'x') AS BLOB))"),
            sql(
                "BEGIN; INSERT INTO t(a) VALUES('kept'); SAVEPOINT s; UPDATE t SET a = 'lost', b = zeroblob(600); \
                 DELETE FROM t WHERE id = 1; ROLLBACK TO s; INSERT INTO t(a) VALUES('after'); RELEASE s; COMMIT",
            ),
            sql("DELETE FROM t WHERE id = 4"),
            sql("BEGIN; UPDATE t SET a = 'gone'; ROLLBACK"),
            // Larger than the cache: spills.
            sql("BEGIN; WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 40) \
                 INSERT INTO t SELECT i, 'row ' || (i * 7919 % 1000), CAST(printf('%.*c', 90, 'y') AS BLOB) FROM n; \
                 UPDATE t SET b = CAST(printf('%.*c', 60, 'z') AS BLOB) WHERE id % 3 = 0; COMMIT"),
            // A statement that fails half-way is taken back alone.
            sql("BEGIN; INSERT INTO t(id, a) VALUES(100, 'stays'); \
                 INSERT OR IGNORE INTO t(id, a) VALUES(101, 'x'), (100, 'y'); COMMIT"),
        ];
        if self.mode == "wal" {
            s.extend([
                sql("PRAGMA wal_checkpoint(PASSIVE)"),
                sql("UPDATE t SET a = 'p' || id WHERE id < 15"),
                if self.exclusive { sql("SELECT 1") } else { Act::OpenReader },
                sql("INSERT INTO t(id, a) VALUES(200, 'beside a reader')"),
                sql("PRAGMA wal_checkpoint(PASSIVE)"),
                sql("UPDATE t SET b = zeroblob(700) WHERE id = 200"),
                Act::CloseReader,
                sql("PRAGMA wal_checkpoint(FULL)"),
                sql("DELETE FROM t WHERE id BETWEEN 20 AND 25"),
                sql("PRAGMA wal_checkpoint(RESTART)"),
                sql("INSERT INTO t(a) VALUES('after restart')"),
                sql("UPDATE t SET a = 'again' WHERE id = 200"),
                sql("PRAGMA wal_checkpoint(TRUNCATE)"),
                sql("INSERT INTO t(a) VALUES('after truncate')"),
            ]);
        }
        s.push(Act::Reopen);
        s.push(sql("INSERT INTO t(a, b) VALUES('reopened', zeroblob(30))"));
        if quick {
            return s;
        }
        s.extend([
            sql("BEGIN; CREATE TABLE w(k TEXT PRIMARY KEY, v) WITHOUT ROWID; \
                 INSERT INTO w SELECT a, id FROM t WHERE id > 30 GROUP BY a; ALTER TABLE t ADD COLUMN c DEFAULT 5; COMMIT"),
            sql("UPDATE t SET c = id, a = a || c WHERE id % 2"),
            // The rows of the windows go through sorters, with temporary files.
            sql("PRAGMA sort_memory = 4096; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150) \
                 SELECT sum(r) FROM (SELECT rank() OVER (PARTITION BY i % 7 ORDER BY x) \
                 + length(max(x) OVER (ORDER BY i DESC ROWS 3 PRECEDING)) AS r \
                 FROM (SELECT i, printf('%.*c', 90 + i % 5, 'w') || t.a AS x FROM n LEFT JOIN t ON t.id = n.i % 40)); \
                 PRAGMA sort_memory = 67108864"),
            sql("BEGIN; DROP INDEX ta; DELETE FROM t WHERE id BETWEEN 10 AND 30; COMMIT"),
        ]);
        if self.auto_vacuum == 2 {
            s.push(sql("PRAGMA incremental_vacuum(4)"));
        }
        s.extend([
            sql("INSERT INTO w VALUES('key', zeroblob(900)), ('other', 1.5)"),
            sql("BEGIN; DELETE FROM w; DROP TABLE w; PRAGMA user_version = 7; COMMIT"),
            sql("VACUUM"),
            sql("INSERT INTO t(a) VALUES('after vacuum')"),
            sql("CREATE INDEX tb ON t(b, a)"),
        ]);
        // With synchronous=OFF, SQLite writes no super-journal either: the files commit one after the other.
        if self.has_journal_file() && self.sync != "off" {
            s.push(Act::Sql(format!(
                "ATTACH '{AUX}' AS aux; {} CREATE TABLE aux.x(a, b UNIQUE)",
                self.pragmas("aux")
            )));
            s.extend([
                sql("BEGIN; INSERT INTO x VALUES(1, 'both'); UPDATE t SET a = 'both' WHERE id = 3; COMMIT"),
                sql("BEGIN; INSERT INTO x VALUES(2, zeroblob(900)); INSERT INTO t(a) VALUES('both again'); COMMIT"),
                // All of both is spilled, and journaled, when the commit begins.
                sql("BEGIN; PRAGMA user_version = 8; PRAGMA aux.user_version = 8; UPDATE x SET b = zeroblob(800 + a); \
                     UPDATE t SET b = zeroblob(200); SELECT count(*), sum(length(b)) FROM t; \
                     SELECT count(*), sum(length(b)) FROM x; COMMIT"),
                sql("UPDATE x SET a = 9"),
                sql("BEGIN; DELETE FROM x WHERE a = 9; DELETE FROM t WHERE id = 3; COMMIT"),
                sql("INSERT INTO t(a) VALUES('alone')"),
            ]);
        }
        if self.mode != "wal" {
            s.push(sql("PRAGMA page_size = 1024; VACUUM"));
            s.push(sql("INSERT INTO t(a, b) VALUES('large pages', zeroblob(2000))"));
        }
        // From mode to mode and back.
        s.push(Act::Reopen);
        let other = if self.mode == "wal" { "delete" } else { "wal" };
        s.extend([
            sql("UPDATE t SET a = 'before the change' WHERE id > 30"),
            Act::Sql(format!("PRAGMA journal_mode={other}")),
            sql("UPDATE t SET a = 'other mode' WHERE id > 32"),
            sql("INSERT INTO t(a) VALUES('other mode, too')"),
            Act::Sql(format!("PRAGMA journal_mode={}", self.mode)),
            sql("UPDATE t SET a = 'first mode' WHERE id > 34"),
            sql("DELETE FROM t WHERE id = 33"),
            Act::Reopen,
        ]);
        s
    }
}

/// One who runs steps on a disk.
pub struct Runner {
    /// The disk.
    pub disk: Arc<Disk>,
    /// The connection that writes.
    pub conn: Option<Connection>,
    reader: Option<Connection>,
    setting: Setting,
}

impl Runner {
    /// Nothing is opened yet: the first step does it.
    pub fn new(disk: Arc<Disk>, setting: Setting) -> Runner {
        Runner { disk, conn: None, reader: None, setting }
    }

    /// Opens the connection, unless it is open.
    pub fn connection(&mut self) -> iolite::Result<Connection> {
        if let Some(c) = &self.conn {
            return Ok(c.clone());
        }
        let c = Connection::open_on(self.disk.clone(), MAIN, OpenFlags::default())?;
        let settle = || -> iolite::Result<()> {
            for (name, file) in OTHERS {
                if self.disk.content(file.as_ref()).is_some_and(|f| !f.is_empty()) {
                    c.execute_batch(&format!("ATTACH '{file}' AS {name}"))?;
                    c.execute_batch(&self.setting.pragmas(name))?;
                }
            }
            c.execute_batch(&self.setting.pragmas("main"))?;
            if self.setting.mode == "wal" {
                // A lease that no test is long enough for: locks go only when somebody needs them.
                c.execute_batch("PRAGMA wal_autocheckpoint = 30; PRAGMA lock_lease_ms = 60000")?;
            }
            if self.setting.subject == Subject::Large {
                c.execute_batch("PRAGMA large_value_direct = on")?;
            }
            Ok(())
        };
        settle()?;
        self.conn = Some(c.clone());
        Ok(c)
    }

    /// Runs one step.
    pub fn run(&mut self, act: &Act) -> iolite::Result<()> {
        match act {
            Act::Sql(text) => self.connection()?.execute_batch(text),
            Act::Reopen => {
                self.reader = None;
                if let Some(c) = self.conn.take() {
                    c.close()?;
                }
                self.connection().map(|_| ())
            }
            Act::OpenReader => {
                let c = Connection::open_on(self.disk.clone(), MAIN, OpenFlags::default())?;
                c.execute_batch("BEGIN; SELECT count(*) FROM t")?;
                self.reader = Some(c);
                Ok(())
            }
            Act::CloseReader => {
                self.reader = None;
                Ok(())
            }
        }
    }

    /// Closes all connections, come what may.
    pub fn end(&mut self) {
        self.reader = None;
        self.conn = None;
    }

    /// What its databases contain.
    pub fn content(&mut self) -> Result<String, String> {
        let c = self.connection().map_err(|e| format!("{e:?}"))?;
        if self.setting.subject == Subject::Search {
            searches::check(&c)?;
        }
        dump(&c)
    }
}

/// A run without faults: what happened, and the states in between.
pub struct Record {
    /// All events.
    pub events: Vec<Event>,
    /// The content after each step; the first is that of no file at all.
    pub states: Vec<String>,
    /// The steps.
    pub steps: Vec<Act>,
    /// Under which settings.
    pub setting: Setting,
}

/// Runs a script from an empty disk.
pub fn record(disk: Arc<Disk>, setting: Setting, steps: Vec<Act>) -> Result<Record, String> {
    let mut runner = Runner::new(disk.clone(), setting);
    let mut states = vec![String::new()];
    for (i, act) in steps.iter().enumerate() {
        disk.mark(Event::Begin(i + 1));
        runner.run(act).map_err(|e| format!("step {} {act:?}: {e:?}", i + 1))?;
        disk.mark(Event::Ack(i + 1));
        states.push(runner.content().map_err(|e| format!("reading after step {}: {e}", i + 1))?);
    }
    drop(runner);
    Ok(Record { events: disk.take_events(), states, steps, setting })
}
