//! Graphs of `vec0` tables (`index=hnsw`): histories of changes beside a scan, recall over seeds, filters, damage.

use crate::draw::Draw;
use crate::vectors_index::{Cloud, History, fill, one, recall_beside, rows};
use iolite::engine::{Connection, Value};

fn recall(c: &Connection, cloud: &mut Cloud, searches: usize, more: &str) -> f64 {
    recall_beside(c, cloud, searches, more, ("", "AND ef = 0"))
}

fn recall_of(c: &Connection, cloud: &mut Cloud, searches: usize, ef: &str) -> f64 {
    recall_beside(c, cloud, searches, "", (ef, "AND ef = 0"))
}

/// Asks so often that what is kept in memory is there.
fn warm(c: &Connection, cloud: &mut Cloud) {
    for _ in 0..8 {
        rows(c, "SELECT rowid FROM t WHERE v MATCH ?1 AND k = 10", &[cloud.value()]);
    }
}

struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let dir = std::env::temp_dir().join(format!("iolite-vectors-graph-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Folder(dir)
    }

    fn open(&self) -> Connection {
        Connection::open(self.0.join("db").to_str().unwrap()).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn options_are_read() {
    let c = Connection::open_in_memory().unwrap();
    let made = |args: &str| one(&c, &format!("CREATE VIRTUAL TABLE t USING vec0({args})"));
    for args in [
        "v float[8] index=hnsw",
        "v float[8] index=hnsw()",
        "v float[8] distance_metric=cosine index=hnsw(m=8, ef_construction=50, ef_search=20, train=100)",
        "v int8[8] index=hnsw(train=0) distance_metric=l2, w float[8] index=ivf",
    ] {
        assert_eq!(made(args), "", "{args}");
        c.execute_batch("DROP TABLE t").unwrap();
        assert_eq!(one(&c, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 't%'"), "0", "{args}");
    }
    for args in [
        "v float[8] index=hnsw(m)",
        "v float[8] index=hnsw(m=1)",
        "v float[8] index=hnsw(m=65)",
        "v float[8] index=hnsw(ef_search=0)",
        "v float[8] index=hnsw(ef_construction=5000)",
        "v float[8] index=hnsw(lists=4)",
    ] {
        let told = format!("error: vec0 constructor error: could not parse vector column '{args}'");
        assert_eq!(made(args), told);
    }
    assert_eq!(
        made("v bit[8] index=hnsw"),
        "error: vec0 constructor error: an index needs the distance metric l2 or cosine: 'v bit[8] index=hnsw'"
    );
    c.execute_batch("CREATE VIRTUAL TABLE t USING vec0(v float[8] index=hnsw)").unwrap();
    assert_eq!(one(&c, "SELECT group_concat(name) FROM pragma_table_xinfo('t')"), "rowid,v,distance,k,ef,t");
    let told = one(&c, "INSERT INTO t(t) VALUES('dance')");
    assert_eq!(told, "error: unknown command for a vec0 table: dance");
    let told = one(&c, "SELECT rowid FROM t WHERE v MATCH zeroblob(32) AND k = 1 AND ef > 3");
    assert_eq!(told, "error: ef can only be compared by 'ef = ?'.");
}

#[test]
fn most_of_the_nearest_rows_are_found() {
    for (seed, metric, dimensions) in [(1, "l2", 40), (2, "cosine", 64), (3, "l2", 100), (4, "cosine", 17)] {
        let folder = Folder::new(&format!("recall-{seed}"));
        let c = folder.open();
        let mut cloud = Cloud::new(seed, 60, dimensions);
        c.execute_batch(&format!(
            "CREATE VIRTUAL TABLE t USING vec0(v float[{dimensions}] distance_metric={metric} index=hnsw(train=2000))"
        ))
        .unwrap();
        fill(&c, &mut cloud, 0..4000);
        // Before the graph is made, while it is made, and all at once.
        assert!(recall(&c, &mut cloud, 5, "") >= 1.0);
        for _ in 0..10 {
            let found = recall(&c, &mut cloud, 10, "");
            assert!(found >= 0.95, "{seed}: {found}");
        }
        c.execute_batch("INSERT INTO t(t) VALUES('rebuild')").unwrap();
        let rebuilt = recall(&c, &mut cloud, 40, "");
        assert!(rebuilt >= 0.97, "{seed}: {rebuilt}");
        // Rows that come later wait, and are looked at.
        fill(&c, &mut cloud, 4000..5000);
        let grown = recall(&c, &mut cloud, 40, "");
        assert!(grown >= 0.97, "{seed}: {grown}");
        // Another connection begins with what was stored, which is older than the table.
        let other = folder.open();
        warm(&other, &mut cloud);
        let stored = recall(&other, &mut cloud, 40, "");
        assert!(stored >= 0.97, "{seed}: {stored}");
        other.execute_batch("INSERT INTO t(t) VALUES('optimize')").unwrap();
        for c in [&c, &other, &folder.open()] {
            warm(c, &mut cloud);
            let found = recall(c, &mut cloud, 40, "");
            assert!(found >= 0.97, "{seed}: {found}");
        }
        assert!(recall_of(&c, &mut cloud, 40, "AND ef = 400") >= 0.99);
        assert!(recall_of(&c, &mut cloud, 40, "AND ef = 1") >= 0.3);
        assert_eq!(one(&c, "PRAGMA integrity_check"), "ok");
    }
}

/// Rows that lie on one another, of which there are more than a node has links.
#[test]
fn rows_that_are_alike_do_not_cut_others_off() {
    let c = Connection::open_in_memory().unwrap();
    let mut cloud = Cloud::new(3, 30, 24);
    c.execute_batch("CREATE VIRTUAL TABLE t USING vec0(v float[24] index=hnsw(m=8, train=0)); BEGIN")
        .unwrap();
    for id in 0..30 {
        let row = [Value::Int(id * 100), cloud.value()];
        c.query(
            "WITH RECURSIVE s(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM s WHERE i < 79) \
             INSERT INTO t(rowid, v) SELECT ?1 + i, ?2 FROM s",
            &row,
        )
        .unwrap();
    }
    c.execute_batch("COMMIT").unwrap();
    fill(&c, &mut cloud, 10_000..11_000);
    c.execute_batch("INSERT INTO t(t) VALUES('rebuild')").unwrap();
    // By distances: which of the rows that are alike are found is by rowid only among those that were looked at.
    let (mut found, mut all) = (0, 0);
    for _ in 0..50 {
        let q = [cloud.value()];
        let near = |more: &str| -> Vec<f64> {
            let sql = format!("SELECT distance FROM t WHERE v MATCH ?1 AND k = 10 {more}");
            rows(&c, &sql, &q).iter().map(|r| r[0].parse().unwrap()).collect()
        };
        let (graph, scan) = (near("AND ef = 400"), near("AND ef = 0"));
        found += graph.iter().filter(|d| **d <= scan[9]).count();
        all += 10;
    }
    assert!(found * 100 >= all * 97, "{found} of {all}");
    // A search for one of them finds as many of its kind as it is asked for.
    let alike = "SELECT count(*) FROM (SELECT distance FROM t WHERE v MATCH (SELECT v FROM t WHERE rowid = 500) \
                 AND k = 60 AND ef = 60) WHERE distance < 0.001";
    assert_eq!(one(&c, alike), "60");
}

#[test]
fn histories_of_changes_leave_what_a_scan_finds() {
    for seed in 0..4u64 {
        let folder = Folder::new(&format!("history-{seed}"));
        let both = [folder.open(), folder.open()];
        if seed > 1 {
            both[0].execute_batch("PRAGMA journal_mode = wal").unwrap();
        }
        both[0]
            .execute_batch(
                "CREATE VIRTUAL TABLE t USING vec0(v float[24] index=hnsw(train=200, ef_search=60))",
            )
            .unwrap();
        let mut cloud = Cloud::new(seed, 9, 24);
        let mut draw = Draw(seed);
        fill(&both[0], &mut cloud, 0..1000);
        for c in &both {
            warm(c, &mut cloud);
        }
        let mut history = History::new(1000, 100);
        for step in 0..150 {
            let c = history.step(&both, &mut cloud, &mut draw, |c, draw| {
                if draw.below(4) == 0 {
                    let command = if draw.below(2) == 0 { "rebuild" } else { "optimize" };
                    c.execute_batch(&format!("INSERT INTO t(t) VALUES('{command}')")).unwrap();
                } else if draw.below(2) == 0 {
                    // A vector is changed where it lies, as by a program that knows nothing of graphs.
                    c.execute_batch(
                        "UPDATE t_vector_chunks00 SET vectors = CAST(substr(vectors, 97) || substr(vectors, 1, 96) \
                         AS BLOB) WHERE rowid = (SELECT min(rowid) FROM t_vector_chunks00)",
                    )
                    .unwrap();
                }
            });
            let found = recall(c, &mut cloud, 5, "");
            assert!(found >= 0.9, "seed {seed}, step {step}: {found}");
            if step % 10 == 0 {
                assert_eq!(one(c, "PRAGMA integrity_check"), "ok", "seed {seed}, step {step}");
            }
        }
        history.end(&both);
        for c in both.iter().chain([&folder.open()]) {
            warm(c, &mut cloud);
            let found = recall(c, &mut cloud, 20, "");
            assert!(found >= 0.97, "seed {seed}: {found}");
        }
        both[0].execute_batch("ALTER TABLE t RENAME TO u; INSERT INTO u(u) VALUES('rebuild')").unwrap();
        both[0].execute_batch("DELETE FROM u; INSERT INTO u(u) VALUES('optimize')").unwrap();
        assert_eq!(one(&both[0], "SELECT rowid FROM u WHERE v MATCH zeroblob(96) AND k = 3"), "");
        assert_eq!(one(&both[0], "PRAGMA integrity_check"), "ok");
    }
}

#[test]
fn filters_choose_before_the_nearest_are_counted() {
    let c = Connection::open_in_memory().unwrap();
    let mut cloud = Cloud::new(11, 40, 32);
    c.execute_batch(
        "CREATE VIRTUAL TABLE t USING vec0(p integer partition key, v float[32] index=hnsw(train=0), \
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
        ("AND m < 50 AND distance < 5", 0.9),
    ] {
        let found = recall(&c, &mut cloud, 25, filter);
        let found = if found.is_nan() || found == 0.0 && filter.contains("1000") { 1.0 } else { found };
        assert!(found >= least, "{filter}: {found}");
    }
}

/// Lists and a graph in one table; commands and knobs reach the one that they mean; any key, other columns, `hybrid`.
#[test]
fn a_graph_stands_beside_lists() {
    for (key, value) in [("id text primary key", "'k' || i"), ("id integer primary key", "i"), ("", "")] {
        let c = Connection::open_in_memory().unwrap();
        let comma = if key.is_empty() { "" } else { "," };
        c.execute_batch(&format!(
            "CREATE VIRTUAL TABLE t USING vec0({key}{comma} v float[4] index=ivf(train=0), w int8[8] \
             distance_metric=cosine index=hnsw(train=0), +note text)"
        ))
        .unwrap();
        let names = if key.is_empty() { "" } else { "id," };
        c.execute_batch(&format!(
            "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM s WHERE i<2000) INSERT INTO t({names} v, w, note) \
             SELECT {value}{comma} '[' || i || ',1,2,' || (i * 7 % 100) || ']', vec_int8('[1,2,' || (i % 90) || ',4,5,6,7,8]'), 'n' || i FROM s"
        ))
        .unwrap();
        for command in ["rebuild", "optimize", "probes=3"] {
            assert_eq!(one(&c, &format!("INSERT INTO t(t) VALUES('{command}')")), "");
            let near = "SELECT note FROM t WHERE v MATCH '[77,1,2,39]' AND k = 1";
            assert_eq!(one(&c, near), "n77", "{key}");
            assert_eq!(one(&c, &format!("{near} AND probes = 5 AND ef = 3")), "n77", "{key}");
            let near = "SELECT distance FROM t WHERE w MATCH vec_int8('[1,2,33,4,5,6,7,8]') AND k = 1";
            assert_eq!(one(&c, near), one(&c, &format!("{near} AND ef = 0 AND probes = 1")), "{key}");
        }
        assert_eq!(one(&c, "PRAGMA integrity_check"), "ok");
    }
}

/// Vectors of which codes say nothing: no numbers, no length, all alike.
#[test]
fn odd_vectors_are_found_too() {
    for metric in ["l2", "cosine"] {
        for one_in in [6, 90] {
            let c = Connection::open_in_memory().unwrap();
            c.execute_batch(&format!(
                "CREATE VIRTUAL TABLE t USING vec0(v float[4] distance_metric={metric} index=hnsw(train=0)); \
                 WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM s WHERE i<3000) \
                 INSERT INTO t(rowid, v) SELECT i, CASE i % {one_in} WHEN 0 THEN '[0,0,0,0]' WHEN 1 THEN '[nan,1,2,3]' \
                 WHEN 2 THEN '[1e30,1e30,1,1]' WHEN 3 THEN '[inf,0,0,0]' ELSE '[1,2,3,4]' END FROM s"
            ))
            .unwrap();
            c.execute_batch("INSERT INTO t(t) VALUES('rebuild')").unwrap();
            c.execute_batch("INSERT INTO t(rowid, v) SELECT rowid + 5000, v FROM t WHERE rowid <= 1000")
                .unwrap();
            for q in ["[1,2,3,4]", "[0,0,0,0]", "[nan,0,0,0]", "[1e30,1e30,1,1]", "[5,0,1,0]"] {
                for k in [1, 10, 900] {
                    let near = |more: &str| {
                        one(&c, &format!("SELECT distance FROM t WHERE v MATCH '{q}' AND k = {k} {more}"))
                    };
                    assert_eq!(near(""), near("AND ef = 0"), "{metric} {q}");
                }
            }
            assert_eq!(one(&c, "PRAGMA integrity_check"), "ok");
        }
    }
}

/// What is stored of a graph is needed by nothing: any damage to it costs no answer.
#[test]
fn damaged_links_cost_no_answer() {
    for damage in [
        "DELETE FROM t_hnsw_links00",
        "DROP TABLE t_hnsw_links00",
        "DELETE FROM t_hnsw_links00 WHERE id = 0",
        "DELETE FROM t_hnsw_links00 WHERE id = 3",
        "DELETE FROM t_hnsw_links00 WHERE id = (SELECT max(id) FROM t_hnsw_links00)",
        "INSERT INTO t_hnsw_links00 SELECT max(id) + 1, max(data) FROM t_hnsw_links00",
        "UPDATE t_hnsw_links00 SET data = zeroblob(length(data))",
        "UPDATE t_hnsw_links00 SET data = x''",
        "UPDATE t_hnsw_links00 SET data = 5 WHERE id = 2",
        "UPDATE t_hnsw_links00 SET id = -id",
        "UPDATE t_hnsw_links00 SET data = CAST(substr(data, 1, 30) || x'ff' || substr(data, 32) AS BLOB)",
        "UPDATE t_hnsw_links00 SET data = (SELECT data FROM t_hnsw_links00 WHERE id = 1) WHERE id = 2",
    ] {
        let folder = Folder::new("damage");
        let mut cloud = Cloud::new(5, 5, 16);
        let c = folder.open();
        c.execute_batch("CREATE VIRTUAL TABLE t USING vec0(v float[16] index=hnsw(train=500))").unwrap();
        fill(&c, &mut cloud, 0..2000);
        c.execute_batch("INSERT INTO t(t) VALUES('rebuild')").unwrap();
        c.execute_batch(damage).unwrap();
        let other = folder.open();
        for c in [&c, &other] {
            warm(c, &mut cloud);
            let found = recall(c, &mut cloud, 20, "");
            assert!(found >= 0.95, "{damage}: {found}");
        }
        // Nothing stored is nothing wrong.
        let seen = damage != "DELETE FROM t_hnsw_links00";
        let checked = one(&c, "PRAGMA integrity_check");
        assert_eq!(checked != "ok", seen, "{damage}: {checked}");
        c.execute_batch("INSERT INTO t(t) VALUES('rebuild')").unwrap();
        assert_eq!(one(&c, "PRAGMA integrity_check"), "ok", "{damage}");
    }
}

/// A rebuild stops where it is told to, and leaves the table as it was.
#[test]
fn a_rebuild_can_be_interrupted() {
    let c = Connection::open_in_memory().unwrap();
    let mut cloud = Cloud::new(5, 5, 16);
    c.execute_batch("CREATE VIRTUAL TABLE t USING vec0(v float[16] index=hnsw(train=500))").unwrap();
    fill(&c, &mut cloud, 0..3000);
    c.execute_batch("INSERT INTO t(t) VALUES('rebuild')").unwrap();
    let before = one(&c, "SELECT sum(length(data)) FROM t_hnsw_links00");
    let asked = std::rc::Rc::new(std::cell::Cell::new(0));
    let counted = asked.clone();
    c.progress_handler(Some(std::rc::Rc::new(move || {
        counted.set(counted.get() + 1);
        counted.get() > 40
    })));
    assert_eq!(one(&c, "INSERT INTO t(t) VALUES('rebuild')"), "error: interrupted");
    c.progress_handler(None);
    assert_eq!(one(&c, "SELECT sum(length(data)) FROM t_hnsw_links00"), before);
    assert!(recall(&c, &mut cloud, 20, "") >= 0.95);
}
