//! The measured cases of the row engine: a database, pragmas, statements, parameters.
//!
//! Columns are off in all of them (`PRAGMA analytics = off`, which stock SQLite ignores), so that rows are what is measured.

use crate::engine::{Database, Engine, Result, Value, find, int, text};
use crate::random::Random;
use std::path::{Path, PathBuf};

/// A case.
pub struct Case {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, for tables.
    pub title: &'static str,
    /// Which data it runs on.
    pub data: Data,
    /// Whether each sample gets a copy of its own.
    pub fresh: bool,
    /// Pragmas after opening.
    pub pragmas: &'static str,
    /// How often the measured part runs under callgrind.
    pub rounds: usize,
    /// How often in one timed sample.
    pub timed: usize,
    /// Operations in one round, by which times are divided.
    pub each: usize,
    /// A query whose answer must be equal afterwards; empty if the sums of the answers say enough.
    pub check: &'static str,
    /// Makes the measured part.
    run: fn(&dyn Database, Turn) -> Result<i64>,
}

/// What one call of a measured part is told.
#[derive(Clone, Copy)]
pub struct Turn {
    /// How many rounds.
    pub rounds: usize,
    /// Which call it is: keys and values are drawn anew for each, since an UPDATE that changes nothing costs stock SQLite
    /// no commit.
    pub number: usize,
}

/// Data sets, made once per engine-neutral file by stock SQLite.
#[derive(Clone, Copy, PartialEq)]
pub enum Data {
    /// `kv2`: 100,000 rows, unique index on `secondary`, whose order is not that of the keys.
    Kv,
    /// `kv2` without the index.
    Plain,
    /// `v`: 1,000,000 rows of integers and groups.
    Numbers,
    /// `customers`, `orders`: 10,000 rows each.
    Join,
    /// `b`: a value of 10 MB and one of 100 KB.
    Blobs,
    /// An empty file.
    Empty,
}

macro_rules! pragmas {
    ($journal:literal, $sync:literal, $cache:literal) => {
        concat!(
            "PRAGMA journal_mode=",
            $journal,
            "; PRAGMA synchronous=",
            $sync,
            "; PRAGMA temp_store=MEMORY; PRAGMA cache_size=",
            $cache,
            "; PRAGMA analytics=off;"
        )
    };
}

const TUNED: &str = pragmas!("WAL", "NORMAL", "-65536");
const WAL_FULL: &str = pragmas!("WAL", "FULL", "-65536");
const DELETE: &str = pragmas!("DELETE", "FULL", "-65536");
/// No thread checkpoints beside the commits: what one thread alone does. (Stock SQLite ignores the pragma.)
const ALONE: &str = concat!(pragmas!("WAL", "NORMAL", "-65536"), "PRAGMA checkpoint_thread=off;");
const SMALL: &str = pragmas!("WAL", "NORMAL", "200");

const KEYED: &str = "SELECT payload FROM kv2 WHERE id = ?1";
const BY_INDEX: &str = "SELECT payload FROM kv2 WHERE secondary = ?1";
const UPDATE: &str = "UPDATE kv2 SET payload = ?2 WHERE id = ?1";
const SUMS: &str =
    "SELECT count(*), sum(id), sum(secondary), sum(length(payload)), min(payload), max(payload) FROM kv2";

fn keyed(e: &dyn Database, t: Turn) -> Result<i64> {
    each(e, KEYED, t, 100_000, |k| vec![int(k + 1)])
}

fn by_index(e: &dyn Database, t: Turn) -> Result<i64> {
    each(e, BY_INDEX, t, 100_000, |k| vec![int(k)])
}

fn range(e: &dyn Database, t: Turn) -> Result<i64> {
    each(e, "SELECT id, payload FROM kv2 WHERE secondary BETWEEN ?1 AND ?2", t, 99_000, |k| {
        vec![int(k), int(k + 999)]
    })
}

fn update(e: &dyn Database, t: Turn) -> Result<i64> {
    each(e, UPDATE, t, 100_000, |k| vec![int(k + 1), text(format!("{:032}{k:032}", t.number + 1))])
}

fn insert(e: &dyn Database, t: Turn) -> Result<i64> {
    let first = e.rows("SELECT coalesce(max(id), 0) FROM kv2")?;
    let Some([Value::Int(first)]) = first.first().map(Vec::as_slice) else { return Err("no key".into()) };
    let mut q = e.prepare("INSERT INTO kv2(secondary, payload) VALUES(?1, ?2)")?;
    for i in 0..t.rounds as i64 {
        q.run(&[int(first + i), payload(i)])?;
    }
    Ok(0)
}

const BLOB_SUMS: &str = "SELECT id, length(v), hex(substr(v, 1, 20)), hex(substr(v, -20)) FROM b";

fn blob_write(e: &dyn Database, t: Turn, id: i64, bytes: usize) -> Result<i64> {
    let mut q = e.prepare("UPDATE b SET v = ?1 WHERE id = ?2")?;
    let mut value = Value::Blob(vec![0; bytes]);
    for i in 0..t.rounds {
        if let Value::Blob(b) = &mut value {
            // One byte of each page differs from what was there.
            b.iter_mut().step_by(4_000).for_each(|x| *x = x.wrapping_add(1 + (t.number + i) as u8 % 100));
        }
        q.run(&[value.clone(), int(id)])?;
    }
    Ok(0)
}

fn read_update(e: &dyn Database, t: Turn) -> Result<i64> {
    let (mut read, mut write) = (e.prepare(KEYED)?, e.prepare(UPDATE)?);
    let mut r = Random(42 + t.number as u64);
    let mut sum = 0i64;
    for _ in 0..t.rounds / 2 {
        sum = sum.wrapping_add(read.run(&[int(r.range(1, 100_000))])?);
        let k = r.range(1, 100_000);
        write.run(&[int(k), text(format!("{:032}{k:032}", t.number + 1))])?;
    }
    Ok(sum)
}

/// Text of 64 characters that ends in `n`. Formatting it would cost a third of what is measured.
pub fn payload(n: i64) -> Value {
    let (mut b, mut n) = ([b'0'; 64], n);
    for c in b.iter_mut().rev().take(20) {
        *c = b'0' + (n % 10) as u8;
        n /= 10;
    }
    Value::Text(b.to_vec())
}

fn bulk(e: &dyn Database, _: Turn) -> Result<i64> {
    e.batch(
        "CREATE TABLE kv2(id INTEGER PRIMARY KEY, secondary INTEGER, payload TEXT); \
         CREATE UNIQUE INDEX kv2s ON kv2(secondary); BEGIN",
    )?;
    let mut q = e.prepare("INSERT INTO kv2(secondary, payload) VALUES(?1, ?2)")?;
    for i in 0..100_000 {
        q.run(&[int(i * 48_271 % 100_000), payload(i)])?;
    }
    drop(q);
    e.batch("COMMIT")?;
    Ok(0)
}

/// All cases.
pub const CASES: &[Case] = &[
    Case { title: "point read by key, WAL", run: keyed, ..read("point", TUNED) },
    Case { title: "point read by key, DELETE", run: keyed, ..read("point-delete", DELETE) },
    Case {
        title: "point read by key, table larger than the cache",
        run: keyed,
        ..read("point-small-cache", SMALL)
    },
    Case { title: "unique index lookup, WAL", run: by_index, ..read("unique", TUNED) },
    Case { title: "unique index lookup, DELETE", run: by_index, ..read("unique-delete", DELETE) },
    Case {
        title: "range scan of 1,000 rows by index",
        rounds: 20,
        timed: 100,
        run: range,
        ..read("range", TUNED)
    },
    Case {
        title: "bulk insert of 100,000 rows in one transaction",
        data: Data::Empty,
        run: bulk,
        ..once("insert", TUNED)
    },
    Case {
        title: "CREATE INDEX on 100,000 integers",
        run: |e, _| e.batch("CREATE UNIQUE INDEX kv2s ON kv2(secondary)").map(|()| 0),
        ..once("index-integer", TUNED)
    },
    Case {
        title: "CREATE INDEX on 100,000 texts",
        run: |e, _| e.batch("CREATE INDEX kv2p ON kv2(payload, secondary)").map(|()| 0),
        ..once("index-text", TUNED)
    },
    Case {
        title: "UPDATE by key inside a transaction",
        run: |e, t| {
            e.batch("BEGIN")?;
            let s = update(e, t)?;
            e.batch("COMMIT")?;
            Ok(s)
        },
        ..write("update", TUNED, 20_000)
    },
    Case {
        title: "UPDATE by key, commit each, WAL NORMAL",
        run: update,
        ..write("update-normal", TUNED, 5_000)
    },
    Case {
        title: "UPDATE by key, commit each, WAL FULL",
        run: update,
        ..write("update-full", WAL_FULL, 1_000)
    },
    Case {
        title: "UPDATE by key, commit each, DELETE FULL",
        run: update,
        ..write("update-delete", DELETE, 300)
    },
    Case {
        title: "insert of one row, commit each, WAL NORMAL",
        run: insert,
        ..write("insert-normal", TUNED, 5_000)
    },
    Case {
        title: "insert of one row, commit each, WAL FULL",
        run: insert,
        ..write("insert-full", WAL_FULL, 1_000)
    },
    Case {
        title: "insert of one row, commit each, DELETE FULL",
        run: insert,
        ..write("insert-delete", DELETE, 300)
    },
    Case {
        title: "UPDATE that changes nothing, commit each, WAL NORMAL",
        run: |e, t| each(e, UPDATE, t, 100_000, |k| vec![int(k + 1), payload(k)]),
        ..write("update-same", TUNED, 5_000)
    },
    Case { title: "W5: read and UPDATE in turn, WAL NORMAL", run: read_update, ..write("w5", TUNED, 5_000) },
    Case {
        title: "UPDATE by key, commit each, WAL NORMAL, checkpoints in the committing thread",
        run: update,
        ..write("update-alone", ALONE, 5_000)
    },
    Case {
        title: "insert of one row, commit each, WAL NORMAL, checkpoints in the committing thread",
        run: insert,
        ..write("insert-alone", ALONE, 5_000)
    },
    Case {
        title: "W5: read and UPDATE in turn, WAL NORMAL, checkpoints in the committing thread",
        run: read_update,
        ..write("w5-alone", ALONE, 5_000)
    },
    Case {
        title: "SUM over 1,000,000 rows",
        data: Data::Numbers,
        rounds: 1,
        timed: 1,
        run: |e, t| each(e, "SELECT SUM(v) FROM nums", t, 1, |_| vec![]),
        ..read("sum", TUNED)
    },
    Case {
        title: "GROUP BY with 1,000 groups over 1,000,000 rows",
        data: Data::Numbers,
        rounds: 1,
        timed: 1,
        run: |e, t| each(e, "SELECT g, COUNT(*) FROM nums GROUP BY g", t, 1, |_| vec![]),
        ..read("group", TUNED)
    },
    Case {
        title: "W9: two-table join by key, 10,000 rows",
        data: Data::Join,
        rounds: 2,
        timed: 5,
        run: |e, t| {
            let sql =
                "SELECT SUM(o.amount), COUNT(c.name) FROM orders o JOIN customers c ON c.id = o.customer_id";
            each(e, sql, t, 1, |_| vec![])
        },
        ..read("join", TUNED)
    },
    Case {
        title: "read of a blob of 10 MB from the file",
        data: Data::Blobs,
        rounds: 5,
        timed: 20,
        run: |e, t| each(e, "SELECT v FROM b WHERE id = 1", t, 1, |_| vec![]),
        ..read("blob-read", TUNED)
    },
    Case {
        title: "read of a blob of 10 MB from the cache",
        data: Data::Blobs,
        rounds: 5,
        timed: 20,
        run: |e, t| {
            // What was just written is cached.
            if t.number == 0 {
                blob_write(e, Turn { rounds: 1, ..t }, 1, 10_000_000)?;
            }
            each(e, "SELECT v FROM b WHERE id = 1", t, 1, |_| vec![])
        },
        ..read("blob-cached", TUNED)
    },
    Case {
        title: "UPDATE of a blob of 10 MB, WAL NORMAL",
        data: Data::Blobs,
        rounds: 2,
        timed: 4,
        check: BLOB_SUMS,
        run: |e, t| blob_write(e, t, 1, 10_000_000),
        ..read("blob-write", TUNED)
    },
    Case {
        title: "UPDATE of a blob of 100 KB, WAL NORMAL",
        data: Data::Blobs,
        rounds: 50,
        timed: 200,
        check: BLOB_SUMS,
        run: |e, t| blob_write(e, t, 2, 100_000),
        ..read("blob-write-small", TUNED)
    },
    Case {
        title: "preparing a point query, compiled each time",
        pragmas: concat!(pragmas!("WAL", "NORMAL", "-65536"), "PRAGMA plan_cache=0;"),
        rounds: 1000,
        run: |e, t| {
            for _ in 0..t.rounds {
                drop(e.prepare(KEYED)?);
            }
            Ok(0)
        },
        ..read("prepare", TUNED)
    },
    Case {
        title: "preparing a point query whose text was prepared before",
        rounds: 1000,
        run: |e, t| {
            for _ in 0..t.rounds {
                drop(e.prepare(KEYED)?);
            }
            Ok(0)
        },
        ..read("prepare-again", TUNED)
    },
];

/// What reading cases have in common.
const fn read(name: &'static str, pragmas: &'static str) -> Case {
    Case {
        name,
        title: "",
        data: Data::Kv,
        fresh: false,
        pragmas,
        rounds: 2000,
        timed: 20_000,
        each: 1,
        check: "",
        run: keyed,
    }
}

/// What writing cases have in common.
const fn write(name: &'static str, pragmas: &'static str, timed: usize) -> Case {
    Case { rounds: timed / 10, timed, check: SUMS, run: update, ..read(name, pragmas) }
}

/// What cases have in common that run once on each copy of the data.
const fn once(name: &'static str, pragmas: &'static str) -> Case {
    Case { data: Data::Plain, fresh: true, rounds: 1, timed: 1, check: SUMS, ..read(name, pragmas) }
}

fn each(e: &dyn Database, sql: &str, t: Turn, range: i64, params: impl Fn(i64) -> Vec<Value>) -> Result<i64> {
    let mut q = e.prepare(sql)?;
    let mut r = Random(42 + t.number as u64);
    let mut sum = 0i64;
    for _ in 0..t.rounds {
        sum = sum.wrapping_add(q.run(&params(r.range(0, range - 1)))?);
    }
    Ok(sum)
}

/// The case with this name.
pub fn find_case(name: &str) -> Result<&'static Case> {
    CASES.iter().find(|c| c.name == name).ok_or_else(|| format!("no such case: {name}").into())
}

/// Where database files are made: `IOLITE_BENCH_DIR`, or a folder among the temporary ones.
pub fn directory() -> PathBuf {
    std::env::var_os("IOLITE_BENCH_DIR")
        .map_or_else(|| std::env::temp_dir().join("iolite-bench"), PathBuf::from)
}

/// Removes a database with all that belongs to it.
pub fn remove(path: &Path) {
    for suffix in ["", "-wal", "-shm", "-journal", ".wal"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
}

fn place(engine: &str, c: &Case) -> PathBuf {
    directory().join(format!("{engine}-{}-{}.db", c.name, std::process::id()))
}

/// Makes a fresh copy of a case's database and opens it.
pub fn set_up(engine: &dyn Engine, c: &Case) -> Result<Box<dyn Database>> {
    let dir = directory();
    std::fs::create_dir_all(&dir)?;
    let path = place(engine.name(), c);
    remove(&path);
    let name = match c.data {
        Data::Empty => None,
        Data::Kv => Some("kv"),
        Data::Plain => Some("plain"),
        Data::Numbers => Some("numbers"),
        Data::Join => Some("join"),
        Data::Blobs => Some("blobs"),
    };
    if let Some(n) = name {
        let master = dir.join(format!("{n}-2.db"));
        if !master.exists() {
            make(n, &master)?;
        }
        std::fs::copy(&master, &path)?;
    }
    let e = engine.open(&path)?;
    e.batch(c.pragmas)?;
    Ok(e)
}

/// Removes what [`set_up`] made.
pub fn tear_down(engine: &dyn Engine, c: &Case) {
    remove(&place(engine.name(), c));
}

fn make(name: &str, path: &Path) -> Result<()> {
    const KV: &str = "CREATE TABLE kv2(id INTEGER PRIMARY KEY, secondary INTEGER, payload TEXT); \
         WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM c WHERE i<99999) \
         INSERT INTO kv2 SELECT i+1, i*48271%100000, printf('%064d', i) FROM c;";
    let part = path.with_extension(format!("part-{}", std::process::id()));
    let _ = std::fs::remove_file(&part);
    let e = find("stock")?.open(&part)?;
    e.batch(&match name {
        "kv" => format!("{KV} CREATE UNIQUE INDEX kv2s ON kv2(secondary)"),
        "plain" => KV.to_string(),
        "numbers" => "CREATE TABLE nums(id INTEGER PRIMARY KEY, v INTEGER, g INTEGER); \
             WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM c WHERE i<999999) \
             INSERT INTO nums SELECT i, (i*7919)%100003, (i*7907)%1000 FROM c"
            .to_string(),
        "blobs" => "CREATE TABLE b(id INTEGER PRIMARY KEY, v BLOB); \
             INSERT INTO b VALUES(1, zeroblob(10000000)), (2, zeroblob(100000))"
            .to_string(),
        _ => "CREATE TABLE customers(id INTEGER PRIMARY KEY, name TEXT); \
             CREATE TABLE orders(id INTEGER PRIMARY KEY, customer_id INTEGER, amount INTEGER); \
             WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM c WHERE i<9999) \
             INSERT INTO customers SELECT i, 'name'||i FROM c; \
             WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM c WHERE i<9999) \
             INSERT INTO orders SELECT i, (i*7919)%10000, i%500 FROM c"
            .to_string(),
    })?;
    drop(e);
    Ok(std::fs::rename(&part, path)?)
}

/// Sets a case up and runs its measured part.
pub fn step(engine: &str, case: &str, n: usize) -> Result<()> {
    let c = find_case(case)?;
    let engine = find(engine)?;
    let e = set_up(&*engine, c)?;
    // What is read once is read before: schema, first pages.
    if !c.fresh {
        measured(&*e, c, Turn { rounds: 1, number: 0 })?;
    }
    if n > 0 {
        measured(&*e, c, Turn { rounds: n, number: 1 })?;
    }
    drop(e);
    tear_down(&*engine, c);
    Ok(())
}

/// Runs the measured part.
pub fn measured(e: &dyn Database, c: &Case, t: Turn) -> Result<i64> {
    (c.run)(e, t)
}

/// A case's samples: seconds per operation of each engine, one entry a repetition, taken in turn.
///
/// Fails if answers differ, or what the engines have made of their databases.
pub fn sample(engines: &[&dyn Engine], c: &Case, repeats: usize) -> Result<Vec<Vec<f64>>> {
    let mut times = vec![Vec::new(); engines.len()];
    let check = |e: &dyn Database| match c.check {
        "" => Ok(Vec::new()),
        sql => e.rows(sql),
    };
    let equal = |what: &str, all: &[String]| match all.iter().position(|s| *s != all[0]) {
        None => Ok(()),
        Some(k) => Err(format!("{}: {what} differ: {} and {}", c.name, all[0], all[k])),
    };
    let time = |e: &dyn Database, number: usize| -> Result<f64> {
        // A large request makes the allocator join what was freed in small pieces: what the other engine left (a million
        // rows of a sorter: 0.2 s) is not to be paid in this one's time.
        drop(std::hint::black_box(Vec::<u8>::with_capacity(64 << 10)));
        let t = std::time::Instant::now();
        measured(e, c, Turn { rounds: c.timed, number })?;
        let taken = t.elapsed().as_secs_f64() / (c.timed * c.each) as f64;
        // A checkpoint that goes on beside is waited for here, not by the other engine's sample. This mode copies nothing.
        e.batch("PRAGMA wal_checkpoint(NOOP)")?;
        Ok(taken)
    };
    if c.fresh {
        for i in 0..repeats {
            let mut seen = Vec::new();
            for (k, engine) in engines.iter().enumerate() {
                let e = set_up(*engine, c)?;
                if c.data != Data::Empty {
                    e.rows("SELECT count(*) FROM kv2")?;
                }
                times[k].push(time(&*e, i)?);
                if i == 0 {
                    seen.push(format!("{:?}", check(&*e)?));
                }
                drop(e);
                tear_down(*engine, c);
            }
            equal("contents", &seen)?;
        }
    } else {
        let open: Vec<_> = engines.iter().map(|e| set_up(*e, c)).collect::<Result<_>>()?;
        let warm =
            |e: &dyn Database| measured(e, c, Turn { rounds: c.timed, number: 0 }).map(|s| s.to_string());
        equal("answers", &open.iter().map(|e| warm(&**e)).collect::<Result<Vec<_>>>()?)?;
        for i in 1..=repeats {
            for (k, e) in open.iter().enumerate() {
                times[k].push(time(&**e, i)?);
            }
        }
        let seen = open.iter().map(|e| check(&**e).map(|r| format!("{r:?}")));
        equal("contents", &seen.collect::<Result<Vec<_>>>()?)?;
        drop(open);
        engines.iter().for_each(|e| tear_down(*e, c));
    }
    Ok(times)
}
