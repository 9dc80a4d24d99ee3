//! FTS3 and FTS4 on both engines: drawn histories give the same answers and the same blocks, also where the engines take turns
//! on one file; damaged indexes are errors. `IOLITE_FTS3_ROUNDS=N` draws N histories, from `IOLITE_FTS3_SEED` on.

mod history;

use crate::drawn::{Draw, rounds};
use history::History;
use iolite_conform::differ::pair::{Pair, Stmt};
use iolite_conform::engine::Db;
use iolite_stock as stock;
use iolite_testkit::Scratch;

/// The tables in which all is kept, as queries.
const BLOCKS: [&str; 4] = [
    "SELECT level, idx, start_block, leaves_end_block, end_block, hex(root) FROM t_segdir ORDER BY level, idx",
    "SELECT blockid, hex(block) FROM t_segments ORDER BY blockid",
    "SELECT docid, hex(size) FROM t_docsize ORDER BY docid",
    "SELECT id, value FROM t_stat ORDER BY id",
];

#[test]
fn histories_answer_as_on_stock() {
    let mut found = String::new();
    for seed in rounds("FTS3", 25) {
        let dir = std::env::temp_dir().join(format!("iolite-fts3-{}-{seed}", std::process::id()));
        let mut pair = Pair::new(&dir, true);
        let mut h = History::new(seed);
        for _ in 0..200 {
            h.step(true);
        }
        h.end();
        let made = h.statements.get(1).cloned().unwrap_or_default();
        let last = BLOCKS.iter().map(|b| b.to_string());
        for sql in h.statements.into_iter().chain(last) {
            let ordered = sql.contains("ORDER BY");
            let different = pair.run(&Stmt { ordered, ..Stmt::plain("fts3", sql.clone()) });
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
    for seed in rounds("FTS3", 6) {
        let scratch = Scratch::new();
        let (alone, shared) = (scratch.name("alone.db"), scratch.name("shared.db"));
        let mut h = History::new(seed);
        for turn in 0..6 {
            for _ in 0..40 {
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
    "SELECT count(*) FROM t WHERE t MATCH 'w* OR one'",
    "SELECT docid FROM t WHERE t MATCH 'one two' ORDER BY docid DESC",
    "SELECT docid FROM t WHERE t MATCH '\"one two\"'",
    "SELECT snippet(t), offsets(t), matchinfo(t, 'pcnalsxyb') FROM t WHERE t MATCH 'two NEAR one'",
    "SELECT count(*) FROM v",
    "INSERT INTO t(t) VALUES ('integrity-check')",
    "INSERT INTO t VALUES ('one two w5 w6')",
    "DELETE FROM t WHERE docid = 7",
    "UPDATE t SET a = 'two' WHERE docid = 9",
    "INSERT INTO t(t) VALUES ('merge=3,2')",
    "INSERT INTO t(t) VALUES ('merge=100,2')",
    "INSERT INTO t(t) VALUES ('optimize')",
    "PRAGMA integrity_check",
    "INSERT INTO t(t) VALUES ('rebuild')",
    "SELECT count(*) FROM t WHERE t MATCH 'one'",
];

#[test]
fn damaged_indexes_are_errors() {
    for seed in rounds("FTS3", 60) {
        let mut d = Draw(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1);
        let c = iolite::engine::Connection::open_in_memory().expect("a database opens");
        c.execute_batch(&format!(
            "PRAGMA page_size = 512;
             CREATE VIRTUAL TABLE t USING fts4(a, prefix='1', order={});
             CREATE VIRTUAL TABLE v USING fts4aux(t);",
            d.of(&["asc", "desc"])
        ))
        .expect("a table");
        for i in 0..40 {
            let words: String = (0..i * 2).map(|j| format!(" w{}", i * j % 97)).collect();
            c.execute_batch(&format!("INSERT INTO t VALUES ('one two{words} one')")).expect("a row");
        }
        c.execute_batch("INSERT INTO t(t) VALUES ('merge=6,3')").expect("a merge");
        for (table, key, column) in
            [("t_segments", "blockid", "block"), ("t_segdir", "rowid", "root"), ("t_stat", "id", "value")]
        {
            let rows = c.query(&format!("SELECT {key}, {column} FROM {table}"), &[]).expect("blocks");
            for _ in 0..d.below(3) {
                let row = &rows[d.below(rows.len())];
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
                let id = row[0].to_int();
                c.execute_batch(&format!("UPDATE {table} SET {column} = x'{hex}' WHERE {key} = {id}"))
                    .expect("a change");
            }
        }
        for _ in 0..d.below(4) {
            let column = d.of(&["start_block", "leaves_end_block", "end_block", "level", "idx"]);
            let value = d.of(&[
                "-1",
                "0",
                "3",
                "1 << 59",
                "1 << 62",
                "9223372036854775807",
                "-9223372036854775808",
                "'7 -5'",
                "x'ff'",
                "NULL",
            ]);
            let rows =
                d.of(&["(SELECT max(rowid) FROM t_segdir)", "(SELECT min(rowid) FROM t_segdir)", "rowid"]);
            let _ = c.execute_batch(&format!("UPDATE t_segdir SET {column} = {value} WHERE rowid = {rows}"));
        }
        for sql in PROBES {
            if let Err(e) = c.query(sql, &[]) {
                let known = matches!(e.code().primary().number(), 1 | 11 | 13 | 19);
                assert!(known, "seed {seed}: {sql}: {} {}", e.code().number(), e.message());
            }
        }
    }
}

/// Segments whose level is no number are counted as those of a level that has none.
#[test]
fn a_merge_of_levels_that_are_no_numbers_ends() {
    let c = iolite::engine::Connection::open_in_memory().expect("a database opens");
    c.execute_batch(
        "CREATE VIRTUAL TABLE t USING fts4(a); INSERT INTO t VALUES ('one'); INSERT INTO t VALUES ('two')",
    )
    .expect("a table");
    c.execute_batch("UPDATE t_segdir SET level = x'ff'").expect("a change");
    let done = c.execute_batch("INSERT INTO t(t) VALUES ('merge=3,2')");
    assert_eq!(done.map_err(|e| e.code().number()), Err(267));
}
