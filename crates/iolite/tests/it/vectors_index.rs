//! Inverted lists of `vec0` tables: histories of changes beside a scan, recall over seeds, filters, damage.

use crate::draw::Draw;
use iolite::engine::{Connection, Value};

/// Vectors around centres, which the seed names.
pub(crate) struct Cloud {
    centres: Vec<Vec<f32>>,
    draw: Draw,
}

impl Cloud {
    pub(crate) fn new(seed: u64, centres: usize, dimensions: usize) -> Cloud {
        let mut draw = Draw(seed);
        let centres = (0..centres).map(|_| (0..dimensions).map(|_| draw.unit() * 4.0).collect()).collect();
        Cloud { centres, draw }
    }

    pub(crate) fn vector(&mut self) -> Vec<f32> {
        let k = self.draw.below(self.centres.len() as u64) as usize;
        self.centres[k].iter().map(|c| c + self.draw.unit() + self.draw.unit()).collect()
    }

    pub(crate) fn value(&mut self) -> Value {
        let bytes: Vec<u8> = self.vector().iter().flat_map(|x| x.to_le_bytes()).collect();
        Value::blob(&bytes).unwrap()
    }
}

pub(crate) fn rows(c: &Connection, sql: &str, params: &[Value]) -> Vec<Vec<String>> {
    let all = c.query(sql, params).unwrap_or_else(|e| panic!("{sql}: {}", e.message()));
    all.iter().map(|r| r.iter().map(Value::to_string_lossy).collect()).collect()
}

pub(crate) fn one(c: &Connection, sql: &str) -> String {
    match c.query(sql, &[]) {
        Ok(rows) => rows.iter().flatten().map(Value::to_string_lossy).collect::<Vec<_>>().join(","),
        Err(e) => format!("error: {}", e.message()),
    }
}

fn recall(c: &Connection, cloud: &mut Cloud, searches: usize, more: &str) -> f64 {
    recall_beside(c, cloud, searches, more, ("", "AND probes = 0"))
}

/// How many of the nearest rows by a scan the index finds too, in parts; distances of those are the same. The last say which is which.
pub(crate) fn recall_beside(
    c: &Connection,
    cloud: &mut Cloud,
    searches: usize,
    more: &str,
    (index, scan): (&str, &str),
) -> f64 {
    let (mut found, mut all) = (0, 0);
    for _ in 0..searches {
        let q = [cloud.value()];
        let near = |more: &str| {
            rows(c, &format!("SELECT rowid, distance FROM t WHERE v MATCH ?1 AND k = 10 {more}"), &q)
        };
        let (scan, index) = (near(&format!("{more} {scan}")), near(&format!("{more} {index}")));
        assert_eq!(scan.len(), index.len());
        found += index.iter().filter(|r| scan.contains(r)).count();
        all += scan.len();
    }
    found as f64 / all.max(1) as f64
}

pub(crate) fn fill(c: &Connection, cloud: &mut Cloud, ids: std::ops::Range<i64>) {
    c.execute_batch("BEGIN").unwrap();
    for id in ids {
        c.query("INSERT INTO t(rowid, v) VALUES(?1, ?2)", &[Value::Int(id), cloud.value()]).unwrap();
    }
    c.execute_batch("COMMIT").unwrap();
}

/// Changes of a table `t(v float[24])` by two connections, drawn one after the other.
pub struct History {
    who: usize,
    next: i64,
    open: bool,
    /// Rows that one step adds, at the most.
    most: u64,
}

impl History {
    /// The table has rows below `next`.
    pub fn new(next: i64, most: u64) -> History {
        History { who: 0, next, open: false, most }
    }

    /// One step, and who made it; `more` makes what only this table knows.
    pub fn step<'c>(
        &mut self,
        both: &'c [Connection],
        cloud: &mut Cloud,
        draw: &mut Draw,
        more: impl FnOnce(&Connection, &mut Draw),
    ) -> &'c Connection {
        if !self.open && draw.below(3) == 0 {
            self.who = 1 - self.who;
        }
        let c = &both[self.who];
        match draw.below(9) {
            0 | 1 => {
                for _ in 0..draw.below(self.most) {
                    let row = [Value::Int(self.next), cloud.value()];
                    c.query("INSERT INTO t(rowid, v) VALUES(?1, ?2)", &row).unwrap();
                    self.next += 1;
                }
            }
            2 => {
                let (n, m) = (3 + draw.below(20), draw.below(3));
                c.execute_batch(&format!("DELETE FROM t WHERE rowid % {n} = {m}")).unwrap();
            }
            3 => {
                for _ in 0..30 {
                    let row = [cloud.value(), Value::Int(draw.below(self.next as u64) as i64)];
                    c.query("UPDATE t SET v = ?1 WHERE rowid = ?2", &row).unwrap();
                }
            }
            4 => {
                for _ in 0..30 {
                    let row = [Value::Int(draw.below(self.next as u64) as i64), cloud.value()];
                    c.query("INSERT OR REPLACE INTO t(rowid, v) VALUES(?1, ?2)", &row).unwrap();
                }
            }
            5 if !self.open => {
                c.execute_batch("BEGIN; SAVEPOINT s").unwrap();
                self.open = true;
            }
            5 => c.execute_batch("SAVEPOINT s").unwrap(),
            6 if self.open => c.execute_batch("ROLLBACK TO s").unwrap(),
            7 if self.open => {
                c.execute_batch(if draw.below(2) == 0 { "ROLLBACK" } else { "COMMIT" }).unwrap();
                self.open = false;
            }
            8 if !self.open && draw.below(3) == 0 => c.execute_batch("VACUUM").unwrap(),
            8 => more(c, draw),
            _ => {}
        }
        c
    }

    /// Commits what is open.
    pub fn end(self, both: &[Connection]) {
        if self.open {
            both[self.who].execute_batch("COMMIT").unwrap();
        }
    }
}

#[test]
fn options_are_read() {
    let c = Connection::open_in_memory().unwrap();
    let made = |args: &str| one(&c, &format!("CREATE VIRTUAL TABLE t USING vec0({args})"));
    for args in [
        "v float[8] index=ivf",
        "v float[8] index=ivf()",
        "v float[8] index=none",
        "v float[8] distance_metric=cosine index=ivf(lists=16, probes=4, train=100)",
        "v int8[8] index=ivf(train=0) distance_metric=l2, w bit[8]",
    ] {
        assert_eq!(made(args), "", "{args}");
        c.execute_batch("DROP TABLE t").unwrap();
        assert_eq!(one(&c, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 't%'"), "0", "{args}");
    }
    for args in [
        "v float[8] index=tree",
        "v float[8] index=ivf(lists)",
        "v float[8] index=ivf(lists=4,)",
        "v float[8] index=ivf(probes=0)",
        "v float[8] index=ivf(x=1)",
    ] {
        let told = format!("error: vec0 constructor error: could not parse vector column '{args}'");
        assert_eq!(made(args), told);
    }
    for args in ["v bit[8] index=ivf", "v float[8] distance_metric=l1 index=ivf"] {
        let told = format!(
            "error: vec0 constructor error: an index needs the distance metric l2 or cosine: '{args}'"
        );
        assert_eq!(made(args), told);
    }
    c.execute_batch("CREATE VIRTUAL TABLE t USING vec0(v float[8] index=ivf)").unwrap();
    let told = one(&c, "INSERT INTO t(t) VALUES('dance')");
    assert_eq!(told, "error: unknown command for a vec0 table: dance");
    let told = one(&c, "SELECT rowid FROM t WHERE v MATCH zeroblob(32) AND k = 1 AND probes > 3");
    assert_eq!(told, "error: probes can only be compared by 'probes = ?'.");
}

/// Without an index the tables are those of sqlite-vec, with the same columns.
#[test]
fn a_table_without_index_has_no_further_columns() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch("CREATE VIRTUAL TABLE t USING vec0(v float[8] index=none)").unwrap();
    assert_eq!(one(&c, "SELECT group_concat(name) FROM pragma_table_xinfo('t')"), "rowid,v,distance,k");
    assert_eq!(one(&c, "SELECT count(*) FROM sqlite_schema WHERE name LIKE '%ivf%'"), "0");
}

#[test]
fn most_of_the_nearest_rows_are_found() {
    for (seed, metric, dimensions) in [(1, "l2", 40), (2, "cosine", 64), (3, "l2", 100), (4, "cosine", 17)] {
        let c = Connection::open_in_memory().unwrap();
        let mut cloud = Cloud::new(seed, 60, dimensions);
        c.execute_batch(&format!(
            "CREATE VIRTUAL TABLE t USING vec0(v float[{dimensions}] distance_metric={metric} \
             index=ivf(train=2000, probes=8))"
        ))
        .unwrap();
        // The first lists are made on the way; more rows make more lists of them.
        fill(&c, &mut cloud, 0..6000);
        let lists = |c: &Connection| one(c, "SELECT count(*) - 1 FROM t_ivf_lists00").parse::<i64>().unwrap();
        assert!(lists(&c) > 8, "{}", lists(&c));
        let grown = recall(&c, &mut cloud, 40, "");
        assert!(grown >= 0.95, "{seed}: {grown}");
        c.execute_batch("INSERT INTO t(t) VALUES('rebuild')").unwrap();
        let rebuilt = recall(&c, &mut cloud, 40, "");
        assert!(rebuilt >= 0.95, "{seed}: {rebuilt}");
        assert_eq!(one(&c, "PRAGMA integrity_check"), "ok");
        // As many lists as there are: all that a scan finds, but for what the margin of codes hides.
        c.execute_batch("INSERT INTO t(t) VALUES('probes=1000')").unwrap();
        assert!(recall(&c, &mut cloud, 40, "") >= 0.99);
        c.execute_batch("INSERT INTO t(t) VALUES('probes=1')").unwrap();
        assert!(recall(&c, &mut cloud, 40, "") >= 0.3);
    }
}

#[test]
fn histories_of_changes_leave_what_a_scan_finds() {
    for seed in 0..4u64 {
        let dir = std::env::temp_dir().join(format!("iolite-vectors-index-{}-{seed}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("db");
        let open = || Connection::open(file.to_str().unwrap()).unwrap();
        let both = [open(), open()];
        if seed > 1 {
            both[0].execute_batch("PRAGMA journal_mode = wal").unwrap();
        }
        both[0]
            .execute_batch(
                "CREATE VIRTUAL TABLE t USING vec0(v float[24] index=ivf(lists=3, probes=100, train=0))",
            )
            .unwrap();
        let mut cloud = Cloud::new(seed, 9, 24);
        let mut draw = Draw(seed);
        fill(&both[0], &mut cloud, 0..500);
        both[0].execute_batch("INSERT INTO t(t) VALUES('rebuild')").unwrap();
        let mut history = History::new(500, 200);
        for step in 0..120 {
            let c = history.step(&both, &mut cloud, &mut draw, |c, draw| {
                if draw.below(4) == 0 {
                    c.execute_batch("INSERT INTO t(t) VALUES('rebuild')").unwrap();
                }
            });
            let found = recall(c, &mut cloud, 4, "");
            assert!(found >= 0.9, "seed {seed}, step {step}: {found}");
            if step % 10 == 0 {
                assert_eq!(one(c, "PRAGMA integrity_check"), "ok", "seed {seed}, step {step}");
            }
        }
        history.end(&both);
        for c in &both {
            assert!(recall(c, &mut cloud, 20, "") >= 0.97);
            assert_eq!(one(c, "PRAGMA integrity_check"), "ok");
        }
        both[0].execute_batch("ALTER TABLE t RENAME TO u; INSERT INTO u(u) VALUES('rebuild')").unwrap();
        both[0].execute_batch("DELETE FROM u").unwrap();
        let rest = "SELECT (SELECT sum(length(lists)) FROM u_ivf_places00), (SELECT count(*) FROM u_chunks)";
        assert_eq!(one(&both[0], rest), "NULL,0".replace("NULL", ""));
        assert_eq!(one(&both[0], "PRAGMA integrity_check"), "ok");
        drop(both);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

#[test]
fn filters_choose_before_the_nearest_are_counted() {
    let c = Connection::open_in_memory().unwrap();
    let mut cloud = Cloud::new(11, 40, 32);
    c.execute_batch(
        "CREATE VIRTUAL TABLE t USING vec0(p integer partition key, v float[32] index=ivf(train=0, probes=8), \
         m integer, n text); BEGIN",
    )
    .unwrap();
    for id in 0..5000i64 {
        let row = [Value::Int(id), Value::Int(id % 5), cloud.value(), Value::Int(id % 100)];
        c.query("INSERT INTO t(rowid, p, v, m, n) VALUES(?1, ?2, ?3, ?4, 'text ' || ?4)", &row).unwrap();
    }
    c.execute_batch("COMMIT; INSERT INTO t(t) VALUES('rebuild')").unwrap();
    for (filter, least) in [
        ("AND m < 50", 0.95),
        ("AND p = 3", 0.95),
        ("AND m = 7", 0.9),
        ("AND m = 7 AND n = 'text 7'", 0.9),
        ("AND m = 1000", 1.0),
        ("AND p = 1 AND m IN (1, 6, 11, 16)", 0.95),
        ("AND rowid IN (5, 9, 77, 4000, 12345)", 1.0),
        ("AND p = 0 AND rowid IN (5, 9, 77, 4000, 12345)", 1.0),
        ("AND distance > 6.5", 0.9),
        ("AND distance < 5.5", 0.9),
    ] {
        let found = recall(&c, &mut cloud, 25, filter);
        let found = if found.is_nan() || found == 0.0 && filter.contains("1000") { 1.0 } else { found };
        assert!(found >= least, "{filter}: {found}");
    }
}

/// Commands go by the table's name, whatever the key; `hybrid` and other columns work as without an index.
#[test]
fn commands_know_every_kind_of_key() {
    for (key, value) in [("id text primary key", "'k' || i"), ("id integer primary key", "i"), ("", "")] {
        let c = Connection::open_in_memory().unwrap();
        let comma = if key.is_empty() { "" } else { "," };
        c.execute_batch(&format!(
            "CREATE VIRTUAL TABLE t USING vec0({key}{comma} v float[4] index=ivf(train=0), w int8[8] distance_metric=cosine \
             index=ivf(train=300), +note text)"
        ))
        .unwrap();
        let names = if key.is_empty() { "" } else { "id," };
        c.execute_batch(&format!(
            "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM s WHERE i<2000) INSERT INTO t({names} v, w, note) \
             SELECT {value}{comma} '[' || i || ',1,2,' || (i * 7 % 100) || ']', vec_int8('[1,2,' || (i % 90) || ',4,5,6,7,8]'), 'n' || i FROM s"
        ))
        .unwrap();
        c.execute_batch("INSERT INTO t(t) VALUES('rebuild')").unwrap();
        let near = "SELECT note FROM t WHERE v MATCH '[77,1,2,39]' AND k = 1";
        assert_eq!(one(&c, near), "n77", "{key}");
        let near = "SELECT distance FROM t WHERE w MATCH vec_int8('[1,2,33,4,5,6,7,8]') AND k = 1";
        assert_eq!(one(&c, near), one(&c, &format!("{near} AND probes = 0")), "{key}");
        assert_eq!(one(&c, "PRAGMA integrity_check"), "ok");
    }
}

/// Vectors of which codes say nothing: no numbers, no length, all alike.
#[test]
fn odd_vectors_are_found_too() {
    for metric in ["l2", "cosine"] {
        let c = Connection::open_in_memory().unwrap();
        c.execute_batch(&format!(
            "CREATE VIRTUAL TABLE t USING vec0(v float[4] distance_metric={metric} index=ivf(train=0)); \
             WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM s WHERE i<3000) \
             INSERT INTO t(rowid, v) SELECT i, CASE i % 6 WHEN 0 THEN '[0,0,0,0]' WHEN 1 THEN '[nan,1,2,3]' \
             WHEN 2 THEN '[1e30,1e30,1,1]' WHEN 3 THEN '[inf,0,0,0]' ELSE '[1,2,3,4]' END FROM s"
        ))
        .unwrap();
        c.execute_batch("INSERT INTO t(t) VALUES('rebuild')").unwrap();
        c.execute_batch("INSERT INTO t(rowid, v) SELECT rowid + 5000, v FROM t WHERE rowid <= 1000").unwrap();
        for q in ["[1,2,3,4]", "[0,0,0,0]", "[nan,0,0,0]", "[1e30,1e30,1,1]", "[5,0,1,0]"] {
            let near = |probes: &str| {
                one(&c, &format!("SELECT distance FROM t WHERE v MATCH '{q}' AND k = 900 {probes}"))
            };
            assert_eq!(near(""), near("AND probes = 0"), "{metric} {q}");
        }
        assert_eq!(one(&c, "PRAGMA integrity_check"), "ok");
    }
}

#[test]
fn damaged_lists_are_errors() {
    let made = || {
        let c = Connection::open_in_memory().unwrap();
        let mut cloud = Cloud::new(5, 5, 16);
        c.execute_batch("CREATE VIRTUAL TABLE t USING vec0(v float[16] index=ivf(lists=4, train=0))")
            .unwrap();
        fill(&c, &mut cloud, 0..1000);
        c.execute_batch("INSERT INTO t(t) VALUES('rebuild')").unwrap();
        fill(&c, &mut cloud, 1000..1100);
        (c, cloud)
    };
    for damage in [
        "DELETE FROM t_ivf_lists00",
        "DELETE FROM t_ivf_lists00 WHERE list = 0",
        "DELETE FROM t_ivf_lists00 WHERE list = 3",
        "DELETE FROM t_ivf_lists00 WHERE list = 5",
        "INSERT INTO t_ivf_lists00 VALUES(9, x'00')",
        "UPDATE t_ivf_lists00 SET data = zeroblob(length(data))",
        "UPDATE t_ivf_lists00 SET data = x''",
        "UPDATE t_ivf_lists00 SET data = 5 WHERE list = 2",
        "DELETE FROM t_ivf_codes00",
        "DELETE FROM t_ivf_codes00 WHERE id = (SELECT max(id) FROM t_ivf_codes00)",
        "DELETE FROM t_ivf_codes00 WHERE id = (SELECT min(id) + 1048576 FROM t_ivf_codes00)",
        "UPDATE t_ivf_codes00 SET data = zeroblob(length(data))",
        "UPDATE t_ivf_codes00 SET data = 'text'",
        "UPDATE t_ivf_codes00 SET id = -id",
        "UPDATE t_ivf_codes00 SET data = CAST(substr(data, 1, 100) || x'ff' || substr(data, 102) AS BLOB)",
        "DELETE FROM t_chunks WHERE chunk_id = 2",
        "DELETE FROM t_chunks",
        "UPDATE t_chunks SET chunk_id = chunk_id + (1 << 60) WHERE chunk_id = 1",
        "UPDATE t_chunks SET validity = zeroblob(length(validity))",
        "UPDATE t_chunks SET rowids = zeroblob(length(rowids))",
        "DELETE FROM t_vector_chunks00",
    ] {
        let (c, mut cloud) = made();
        c.execute_batch(damage).unwrap();
        let near = c.query("SELECT rowid FROM t WHERE v MATCH ?1 AND k = 50", &[cloud.value()]);
        let message = near.err().map(|e| e.message().to_string());
        assert_eq!(message.as_deref(), Some("database disk image is malformed"), "{damage}");
        let looked_at = !damage.contains("vector_chunks");
        assert_eq!(one(&c, "PRAGMA integrity_check") != "ok", looked_at, "{damage}");
    }
    // Changes of a damaged index are errors or not, but no panics; a rebuild mends what lies in its own tables.
    for damage in [
        "DELETE FROM t_ivf_places00",
        "UPDATE t_ivf_places00 SET lists = zeroblob(length(lists))",
        "UPDATE t_ivf_places00 SET lists = x'ffffffff'",
        "UPDATE t_ivf_places00 SET lists = 'x'",
        "DELETE FROM t_ivf_codes00",
        "UPDATE t_ivf_codes00 SET data = zeroblob(length(data))",
        "DELETE FROM t_ivf_lists00 WHERE list > 2",
    ] {
        let (c, mut cloud) = made();
        c.execute_batch(damage).unwrap();
        for sql in ["DELETE FROM t WHERE rowid = 77", "DELETE FROM t WHERE rowid = 1050", "DELETE FROM t"] {
            let _ = c.execute_batch(sql);
        }
        for id in 5000..5400i64 {
            let _ = c.query("INSERT INTO t(rowid, v) VALUES(?1, ?2)", &[Value::Int(id), cloud.value()]);
        }
        c.execute_batch("INSERT INTO t(t) VALUES('rebuild')").unwrap();
        assert_eq!(one(&c, "PRAGMA integrity_check"), "ok", "{damage}");
    }
}

/// Making lists stops where it is told to, and leaves those that there were.
#[test]
fn a_rebuild_can_be_interrupted() {
    let c = Connection::open_in_memory().unwrap();
    let mut cloud = Cloud::new(5, 5, 16);
    c.execute_batch(
        "CREATE VIRTUAL TABLE t USING vec0(v float[16] index=ivf(lists=40, train=0), chunk_size=4096)",
    )
    .unwrap();
    fill(&c, &mut cloud, 0..3000);
    c.execute_batch("INSERT INTO t(t) VALUES('rebuild')").unwrap();
    let ivf = "SELECT sum(length(data)) + count(*) FROM t_ivf_codes00";
    let before = one(&c, ivf);
    for most in [5, 20, 40] {
        let asked = std::rc::Rc::new(std::cell::Cell::new(0));
        let counted = asked.clone();
        let stop = move || {
            counted.set(counted.get() + 1);
            counted.get() > most
        };
        c.progress_handler_every(1_000_000, Some(std::rc::Rc::new(stop)));
        assert_eq!(one(&c, "INSERT INTO t(t) VALUES('rebuild')"), "error: interrupted", "{most}");
        c.progress_handler(None);
        assert_eq!(one(&c, ivf), before);
    }
    assert!(recall(&c, &mut cloud, 20, "") >= 0.95);
}

/// `cargo test` builds the examples beside the tests.
#[test]
fn the_example_searches_a_folder() {
    let exe = std::env::current_exe().unwrap();
    let built = exe.parent().unwrap().parent().unwrap().join("examples/search_notes");
    if !built.exists() {
        println!("not run: the example was not built");
        return;
    }
    let dir = std::env::temp_dir().join(format!("iolite-search-notes-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let run = |question: &[&str]| {
        let out = std::process::Command::new(&built).arg(&dir).args(question).output().unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
    };
    for (name, body) in [
        (
            "engine.txt",
            "The analytical engine weaves algebraic patterns, as the loom weaves flowers and leaves.",
        ),
        ("garden.txt", "Roses want sun and a deep soil; prune them in spring."),
        ("sea.txt", "The tide comes twice a day, and the moon draws it."),
    ] {
        std::fs::write(dir.join(name), body).unwrap();
    }
    let first = run(&["weaving", "patterns"]);
    assert!(first.starts_with("3 new or changed\nengine.txt (words 1, vector 1)\n"), "{first}");
    std::fs::write(dir.join("sea.txt"), "Weaving nets is an old craft of patterns.").unwrap();
    let second = run(&["nets"]);
    assert!(second.starts_with("1 new or changed\nsea.txt (words 1, vector 1)\n"), "{second}");
    std::fs::remove_dir_all(&dir).unwrap();
}
