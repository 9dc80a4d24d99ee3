//! FTS5 on both engines: drawn histories give the same answers and the same blocks, also where the engines take turns on one
//! file; damaged indexes are errors. `IOLITE_FTS_ROUNDS=N` draws N histories, from `IOLITE_FTS_SEED` on.

mod history;
mod ranks;

use crate::drawn::{Draw, rounds};
use history::History;
use iolite_conform::differ::pair::{Pair, Stmt};
use iolite_conform::engine::Db;
use iolite_stock as stock;
use iolite_testkit::Scratch;

/// The tables in which all is kept, as queries.
const BLOCKS: [&str; 3] = [
    "SELECT id, hex(block) FROM t_data ORDER BY id",
    "SELECT segid, hex(term), pgno FROM t_idx ORDER BY segid, term",
    "SELECT k, v FROM t_config ORDER BY k",
];

#[test]
fn histories_answer_as_on_stock() {
    let mut found = String::new();
    for seed in rounds("FTS", 25) {
        let dir = std::env::temp_dir().join(format!("iolite-fts-{}-{seed}", std::process::id()));
        let mut pair = Pair::new(&dir, true);
        let mut h = History::new(seed);
        for _ in 0..150 {
            h.step(true);
        }
        h.end();
        let made = h.statements.iter().find(|s| s.contains("fts5(")).cloned().unwrap_or_default();
        let last = BLOCKS.iter().map(|b| b.to_string());
        for sql in h.statements.into_iter().chain(last) {
            let ordered = sql.contains("ORDER BY");
            let different = pair.run(&Stmt { ordered, ..Stmt::plain("fts", sql.clone()) });
            // How many rows of its own tables a command changes is not compared.
            if let Some(d) = different.filter(|d| d.what != "state") {
                found +=
                    &format!("{seed}: {made}\n{sql}\n{}\nstock: {}\nours:  {}\n", d.what, d.stock, d.ours);
                break;
            }
        }
        let _ = std::fs::remove_dir_all(dir);
    }
    assert!(found.is_empty(), "{found}");
}

/// Rows leave long doclists in place. What is found is what a table has that marks rows as deleted: stock sometimes goes on in the
/// next term where the leaf that it looks for has no rows any more. The blocks are those of stock.
#[test]
fn long_doclists_lose_rows_in_place() {
    for seed in rounds("FTS", 8) {
        let scratch = Scratch::new();
        let (ours, theirs) = (scratch.name("ours.db"), scratch.name("theirs.db"));
        let c = iolite::engine::Connection::open(&ours).expect("the file opens");
        let s = stock::Connection::open(&theirs).expect("the file opens");
        let mut d = Draw(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        d.below(2);
        let change = |sql: &str| {
            c.execute_batch(sql).expect("a change");
            s.execute_batch(sql).expect("a change on stock");
        };
        change("PRAGMA synchronous = OFF");
        let detail = d.of(&["full", "full", "column", "none"]);
        for table in ["t", "marks"] {
            change(&format!("CREATE VIRTUAL TABLE {table} USING fts5(a, b, detail={detail})"));
        }
        change("INSERT INTO t(t, rank) VALUES ('secure-delete', 1)");
        change(&format!("INSERT INTO t(t, rank) VALUES ('pgsz', {})", d.of(&["32", "40", "64", "200"])));
        change("BEGIN");
        let mut rows: Vec<usize> = (1..=100 + d.below(300)).collect();
        for id in &rows {
            let mut text = || {
                let n = d.below(12);
                (0..n)
                    .map(|_| d.of(&["all", "all", "allow", "half", "rare", "z"]))
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            let (a, b) = (text(), text());
            for table in ["t", "marks"] {
                change(&format!("INSERT INTO {table}(rowid, a, b) VALUES ({}, 'all {a}', '{b}')", id * 3));
            }
        }
        change("COMMIT");
        change("BEGIN");
        let (count, side) = (rows.len(), d.below(3));
        while rows.len() > count / 20 {
            for _ in 0..1 + d.below(8) {
                let at = [0, rows.len().saturating_sub(1), d.below(rows.len() + 1)][side];
                if at < rows.len() {
                    let id = rows.remove(at) * 3;
                    change(&format!("DELETE FROM t WHERE rowid = {id}"));
                    change(&format!("DELETE FROM marks WHERE rowid = {id}"));
                }
            }
            if d.one_in(4) {
                change("COMMIT");
                change("BEGIN");
            }
            let q =
                d.of(&["all", "half AND all", "rare AND all", "al*", "z AND half", "allow", "half NOT all"]);
            let (order, from) = (d.of(&["", " DESC"]), d.below(count * 3));
            let found = |table: &str| {
                let sql =
                    format!("SELECT rowid FROM {table}('{q}') WHERE rowid > {from} ORDER BY rowid{order}");
                c.query(&sql, &[]).expect("rows").iter().map(|r| r[0].to_int()).collect::<Vec<_>>()
            };
            assert_eq!(found("t"), found("marks"), "seed {seed}, {q} from {from}{order}");
        }
        change("COMMIT");
        change("INSERT INTO t(t) VALUES ('integrity-check')");
        drop((c, s));
        assert_eq!(dump(&ours), dump(&theirs), "seed {seed}");
    }
}

fn dump(path: &str) -> String {
    let c = stock::Connection::open(path).expect("stock opens the file");
    let check = c.query("INSERT INTO t(t) VALUES ('integrity-check')");
    let mut out = format!("{:?}\n", check.map_err(|e| e.message));
    for sql in BLOCKS {
        out += &format!("{:?}\n", c.query(sql).map_err(|e| e.message));
    }
    out
}

#[test]
fn engines_take_turns_on_a_file() {
    for seed in rounds("FTS", 6) {
        let scratch = Scratch::new();
        let (alone, shared) = (scratch.name("alone.db"), scratch.name("shared.db"));
        let mut h = History::new(seed);
        for turn in 0..6 {
            for _ in 0..25 {
                h.step(false);
            }
            h.end();
            let statements = std::mem::take(&mut h.statements);
            for (path, engine) in [(&alone, "stock"), (&shared, ["iolite", "stock"][turn % 2])] {
                let db = Db::open(engine, path).expect("the file opens");
                let _ = db.run("PRAGMA synchronous = OFF");
                for sql in &statements {
                    // What is refused is refused by both.
                    let _ = db.run(sql);
                }
            }
            assert_eq!(dump(&alone), dump(&shared), "seed {seed}, turn {turn}");
        }
    }
}

/// Statements that go through an index from all sides.
const PROBES: &[&str] = &[
    "SELECT count(*), max(rank) FROM t('w* OR one')",
    "SELECT rowid FROM t('one AND two') ORDER BY rowid DESC",
    "SELECT rowid FROM t('\"one two\"')",
    "SELECT snippet(t, 0, '[', ']', '..', 5) FROM t('two') ORDER BY rank",
    "SELECT count(*) FROM v",
    "INSERT INTO t(t) VALUES ('integrity-check')",
    "INSERT INTO t VALUES ('one two w5 w6')",
    "DELETE FROM t WHERE rowid = 7",
    "UPDATE t SET a = 'two' WHERE rowid = 9",
    "INSERT INTO t(t, rank) VALUES ('merge', -3)",
    "INSERT INTO t(t) VALUES ('optimize')",
    "PRAGMA integrity_check",
    "INSERT INTO t(t) VALUES ('rebuild')",
    "SELECT count(*) FROM t('one')",
];

#[test]
fn damaged_indexes_are_errors() {
    for seed in rounds("FTS", 60) {
        let mut d = Draw(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let c = iolite::engine::Connection::open_in_memory().expect("a database opens");
        c.execute_batch(&format!(
            "CREATE VIRTUAL TABLE t USING fts5(a, prefix='1', detail={});
             CREATE VIRTUAL TABLE v USING fts5vocab(t, col);
             INSERT INTO t(t, rank) VALUES ('pgsz', 64);
             INSERT INTO t(t, rank) VALUES ('crisismerge', 4);",
            d.of(&["full", "column", "none"])
        ))
        .expect("a table");
        for i in 0..30 {
            let sql = format!("INSERT INTO t VALUES ('one two w{} w{} one two three w{}')", i % 5, i, i * 7);
            c.execute_batch(&sql).expect("a row");
        }
        if seed.is_multiple_of(2) {
            c.execute_batch("INSERT INTO t(t, rank) VALUES ('secure-delete', 1)").expect("a setting");
        }
        let sql = "SELECT id, block FROM t_data UNION ALL SELECT id, sz FROM t_docsize";
        let blocks = c.query(sql, &[]).expect("blocks");
        for _ in 0..1 + d.below(3) {
            let row = &blocks[d.below(blocks.len())];
            let mut bytes = row[1].bytes().map(|b| b.to_vec()).unwrap_or_default();
            match d.below(4) {
                0 => bytes.truncate(d.below(bytes.len() + 1)),
                1 => bytes.push(d.below(256) as u8),
                _ if bytes.is_empty() => {}
                _ => {
                    let at = d.below(bytes.len());
                    bytes[at] = d.below(256) as u8;
                }
            }
            let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
            let sql = format!("UPDATE t_data SET block = x'{hex}' WHERE id = {}", row[0].to_int());
            c.execute_batch(&sql).expect("a change");
        }
        for sql in PROBES {
            if let Err(e) = c.query(sql, &[]) {
                let known = matches!(e.code().primary().number(), 1 | 11 | 13 | 19);
                assert!(known, "seed {seed}: {sql}: {} {}", e.code().number(), e.message());
            }
        }
    }
}

/// Histories with `secure-delete` after which stock's own index is not what the rows say, or has what was deleted: the setting, then
/// the statements.
#[test]
fn what_is_erased_is_gone() {
    let many = vec!["w"; 130].join(" ");
    let long = [
        format!("INSERT INTO t(rowid, a) VALUES (1, '{many} secret')"),
        format!("UPDATE t SET a = '{many} open' WHERE rowid = 1"),
        "DELETE FROM t WHERE rowid = 1".into(),
    ]
    .join(";");
    let below = [
        "INSERT INTO t(t, rank) VALUES ('secure-delete', 0)".to_string(),
        "INSERT INTO t(t, rank) VALUES ('automerge', 0)".into(),
        "INSERT INTO t(t, rank) VALUES ('usermerge', 2)".into(),
        "INSERT INTO t(t, rank) VALUES ('pgsz', 32)".into(),
        "BEGIN".into(),
        "INSERT INTO t(rowid, a) VALUES (1, 'x secret')".into(),
        (2..60)
            .map(|i| format!("INSERT INTO t(rowid, a) VALUES ({i}, 'x w{i} v{i}')"))
            .collect::<Vec<_>>()
            .join(";"),
        "COMMIT".into(),
        "INSERT INTO t(t) VALUES ('optimize')".into(),
        "DELETE FROM t WHERE rowid = 1".into(),
        "INSERT INTO t(rowid, a) VALUES (1, 'x')".into(),
        "INSERT INTO t(t, rank) VALUES ('merge', 5)".into(),
        "INSERT INTO t(t, rank) VALUES ('secure-delete', 1)".into(),
        "DELETE FROM t WHERE rowid = 1".into(),
    ]
    .join(";");
    let pending = "INSERT INTO t(rowid, a) VALUES (1, 'x y');
        BEGIN; UPDATE t SET a = 'x z' WHERE rowid = 1; INSERT INTO t(rowid, a) VALUES (5, 'x'); COMMIT";
    let marks = "INSERT INTO t(t, rank) VALUES ('secure-delete', 0);
        INSERT INTO t(rowid, a) VALUES (1, 'x y'); INSERT INTO t(rowid, a) VALUES (9, 'x y');
        UPDATE t SET a = 'x z' WHERE rowid = 1;
        INSERT INTO t(t, rank) VALUES ('secure-delete', 1);
        DELETE FROM t WHERE rowid = 1";
    for (detail, history) in [("full", &*long), ("full", &*below), ("none", pending), ("none", marks)] {
        let scratch = Scratch::new();
        let path = scratch.name("erased.db");
        let c = iolite::engine::Connection::open(&path).expect("the file opens");
        c.execute_batch(&format!("CREATE VIRTUAL TABLE t USING fts5(a, detail={detail})")).expect("a table");
        c.execute_batch("INSERT INTO t(t, rank) VALUES ('secure-delete', 1)").expect("a setting");
        c.execute_batch(history).expect("a history");
        let rows = |sql: &str| format!("{:?}", c.query(sql, &[]).expect("rows"));
        assert_eq!(
            rows("SELECT rowid FROM t('x')"),
            rows("SELECT id FROM t_content WHERE c0 LIKE '%x%'"),
            "{detail}: {history}"
        );
        c.query("INSERT INTO t(t) VALUES ('integrity-check')", &[]).expect("a sound index");
        drop(c);
        assert!(dump(&path).starts_with("Ok"), "{detail}: {history}");
        if history == long {
            let s = stock::Connection::open(&path).expect("stock opens the file");
            let left =
                s.query("SELECT count(*) FROM t_data WHERE id > 10 AND length(block) > 4").expect("a count");
            assert_eq!(format!("{left:?}"), "[[Int(0)]]");
        }
    }
}
