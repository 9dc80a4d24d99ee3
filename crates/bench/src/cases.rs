//! The measured cases: a database, a statement, parameters.

use crate::engine::{Engine, Param, Query, Result};
use std::path::PathBuf;

/// A case.
pub struct Case {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, for tables.
    pub title: &'static str,
    /// Which data it runs on.
    pub data: Data,
    /// Pragmas after opening.
    pub pragmas: &'static str,
    /// How often the measured part runs under callgrind.
    pub rounds: usize,
    /// Makes the measured part.
    run: fn(&Engine, usize) -> Result<i64>,
}

/// Data sets, made once per engine-neutral file by stock SQLite.
#[derive(Clone, Copy, PartialEq)]
pub enum Data {
    /// `kv2`: 100,000 rows, unique index on `secondary`.
    Kv,
    /// `v`: 1,000,000 rows of integers and groups.
    Numbers,
    /// `customers`, `orders`: 10,000 rows each.
    Join,
    /// An empty file.
    Empty,
}

struct Random(u64);

impl Random {
    fn next(&mut self, n: u64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n) as i64
    }
}

/// All cases.
pub const CASES: &[Case] = &[
    Case {
        name: "point",
        title: "point read by rowid",
        data: Data::Kv,
        pragmas: TUNED,
        rounds: 2000,
        run: |e, n| each(e, "SELECT payload FROM kv2 WHERE id = ?1", n, 100_000, |k| vec![Param::Int(k + 1)]),
    },
    Case {
        name: "point-small-cache",
        title: "point read by rowid, table larger than the cache",
        data: Data::Kv,
        pragmas: "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=200;",
        rounds: 2000,
        run: |e, n| each(e, "SELECT payload FROM kv2 WHERE id = ?1", n, 100_000, |k| vec![Param::Int(k + 1)]),
    },
    Case {
        name: "unique",
        title: "read by unique index",
        data: Data::Kv,
        pragmas: TUNED,
        rounds: 2000,
        run: |e, n| {
            each(e, "SELECT payload FROM kv2 WHERE secondary = ?1", n, 100_000, |k| vec![Param::Int(k * 7)])
        },
    },
    Case {
        name: "range",
        title: "range scan of 1,000 rows by index",
        data: Data::Kv,
        pragmas: TUNED,
        rounds: 20,
        run: |e, n| {
            each(e, "SELECT id, payload FROM kv2 WHERE secondary BETWEEN ?1 AND ?2", n, 99_000, |k| {
                vec![Param::Int(k * 7), Param::Int((k + 999) * 7)]
            })
        },
    },
    Case {
        name: "insert",
        title: "bulk insert of 100,000 rows in one transaction",
        data: Data::Empty,
        pragmas: TUNED,
        rounds: 1,
        run: |e, _| {
            e.batch(
                "CREATE TABLE kv2(id INTEGER PRIMARY KEY, secondary INTEGER, payload TEXT); \
                 CREATE UNIQUE INDEX kv2s ON kv2(secondary); BEGIN",
            )?;
            let mut q = e.prepare("INSERT INTO kv2(secondary, payload) VALUES(?1, ?2)")?;
            let text = "x".repeat(64);
            for i in 0..100_000 {
                q.run(&[Param::Int(i * 7), Param::Text(text.clone())])?;
            }
            drop(q);
            e.batch("COMMIT")?;
            Ok(0)
        },
    },
    Case {
        name: "update",
        title: "UPDATE by rowid",
        data: Data::Kv,
        pragmas: TUNED,
        rounds: 2000,
        run: |e, n| {
            e.batch("BEGIN")?;
            let s = each(e, "UPDATE kv2 SET payload = 'changed' || ?1 WHERE id = ?1", n, 100_000, |k| {
                vec![Param::Int(k + 1)]
            })?;
            e.batch("ROLLBACK")?;
            Ok(s)
        },
    },
    Case {
        name: "point-rollback",
        title: "point read by rowid, rollback journal",
        data: Data::Kv,
        pragmas: "PRAGMA journal_mode=DELETE; PRAGMA cache_size=-65536;",
        rounds: 2000,
        run: |e, n| each(e, "SELECT payload FROM kv2 WHERE id = ?1", n, 100_000, |k| vec![Param::Int(k + 1)]),
    },
    Case {
        name: "update-one",
        title: "UPDATE by rowid, a transaction each",
        data: Data::Kv,
        pragmas: TUNED,
        rounds: 2000,
        run: |e, n| {
            each(
                e,
                "UPDATE kv2 SET payload = 'changed' || (?1 + total_changes()) WHERE id = ?1",
                n,
                100_000,
                |k| vec![Param::Int(k + 1)],
            )
        },
    },
    Case {
        name: "insert-one",
        title: "insert of a row, a transaction each",
        data: Data::Kv,
        pragmas: TUNED,
        rounds: 2000,
        run: |e, n| {
            each(
                e,
                "INSERT INTO kv2(secondary, payload) VALUES(700000 + last_insert_rowid() * 7, 'row ' || ?1)",
                n,
                100_000,
                |k| vec![Param::Int(k)],
            )
        },
    },
    Case {
        name: "sum",
        title: "SUM over 1,000,000 rows",
        data: Data::Numbers,
        pragmas: TUNED,
        rounds: 1,
        run: |e, n| each(e, "SELECT SUM(v) FROM nums", n, 1, |_| vec![]),
    },
    Case {
        name: "group",
        title: "GROUP BY with 1,000 groups over 1,000,000 rows",
        data: Data::Numbers,
        pragmas: TUNED,
        rounds: 1,
        run: |e, n| each(e, "SELECT g, COUNT(*) FROM nums GROUP BY g", n, 1, |_| vec![]),
    },
    Case {
        name: "join",
        title: "two-table join by primary key, 10,000 rows",
        data: Data::Join,
        pragmas: TUNED,
        rounds: 2,
        run: |e, n| {
            each(
                e,
                "SELECT SUM(o.amount), COUNT(c.name) FROM orders o JOIN customers c ON c.id = o.customer_id",
                n,
                1,
                |_| vec![],
            )
        },
    },
    Case {
        name: "prepare",
        title: "preparing a point query",
        data: Data::Kv,
        pragmas: TUNED,
        rounds: 1000,
        run: |e, n| {
            for _ in 0..n {
                drop(e.prepare("SELECT payload FROM kv2 WHERE id = ?1")?);
            }
            Ok(0)
        },
    },
];

const TUNED: &str =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-65536;";

fn each(e: &Engine, sql: &str, n: usize, range: u64, params: impl Fn(i64) -> Vec<Param>) -> Result<i64> {
    let mut q: Query<'_> = e.prepare(sql)?;
    let mut r = Random(42);
    let mut sum = 0i64;
    for _ in 0..n {
        sum = sum.wrapping_add(q.run(&params(r.next(range)))?);
    }
    Ok(sum)
}

/// The case with this name.
pub fn find(name: &str) -> Result<&'static Case> {
    CASES.iter().find(|c| c.name == name).ok_or_else(|| format!("no such case: {name}"))
}

/// A directory of this process for database files.
pub fn directory() -> PathBuf {
    std::env::temp_dir().join("iolite-bench")
}

/// Makes a fresh copy of a case's database and opens it.
pub fn set_up(engine: &str, c: &Case) -> Result<Engine> {
    let dir = directory();
    std::fs::create_dir_all(&dir).map_err(|e| e.to_string())?;
    let path = dir.join(format!("{}-{}-{}.db", engine, c.name, std::process::id()));
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
    let name = match c.data {
        Data::Empty => None,
        Data::Kv => Some("kv"),
        Data::Numbers => Some("numbers"),
        Data::Join => Some("join"),
    };
    if let Some(n) = name {
        let master = dir.join(format!("{n}-1.db"));
        if !master.exists() {
            make(n, &master)?;
        }
        std::fs::copy(&master, &path).map_err(|e| e.to_string())?;
    }
    let e = Engine::open(engine, &path.to_string_lossy())?;
    e.batch(c.pragmas)?;
    Ok(e)
}

/// Removes what [`set_up`] made.
pub fn tear_down(engine: &str, c: &Case) {
    let path = directory().join(format!("{}-{}-{}.db", engine, c.name, std::process::id()));
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
}

fn make(name: &str, path: &std::path::Path) -> Result<()> {
    let part = path.with_extension("part");
    let _ = std::fs::remove_file(&part);
    let e = Engine::open("stock", &part.to_string_lossy())?;
    e.batch(match name {
        "kv" => {
            "CREATE TABLE kv2(id INTEGER PRIMARY KEY, secondary INTEGER, payload TEXT); BEGIN; \
             WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM c WHERE i<99999) \
             INSERT INTO kv2 SELECT i+1, i*7, printf('%064d', i) FROM c; COMMIT; \
             CREATE UNIQUE INDEX kv2s ON kv2(secondary)"
        }
        "numbers" => {
            "CREATE TABLE nums(id INTEGER PRIMARY KEY, v INTEGER, g INTEGER); BEGIN; \
             WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM c WHERE i<999999) \
             INSERT INTO nums SELECT i, (i*7919)%100003, (i*31)%1000 FROM c; COMMIT"
        }
        _ => {
            "CREATE TABLE customers(id INTEGER PRIMARY KEY, name TEXT); \
             CREATE TABLE orders(id INTEGER PRIMARY KEY, customer_id INTEGER, amount INTEGER); BEGIN; \
             WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM c WHERE i<9999) \
             INSERT INTO customers SELECT i, 'name'||i FROM c; \
             WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM c WHERE i<9999) \
             INSERT INTO orders SELECT i, (i*7919)%10000, i%500 FROM c; COMMIT"
        }
    })?;
    drop(e);
    std::fs::rename(&part, path).map_err(|e| e.to_string())
}

/// Sets a case up and runs its measured part.
pub fn step(engine: &str, case: &str, n: usize) -> Result<()> {
    let c = find(case)?;
    let e = set_up(engine, c)?;
    // What is read once is read before: schema, first pages.
    if c.data != Data::Empty {
        measured(&e, c, 1)?;
    }
    if n > 0 {
        measured(&e, c, n)?;
    }
    drop(e);
    tear_down(engine, c);
    Ok(())
}

/// Runs the measured part.
pub fn measured(e: &Engine, c: &Case, n: usize) -> Result<i64> {
    (c.run)(e, n)
}
