//! What searches keep in memory, while this connection and others change the file: answers are always those of the tables as they are, and
//! what was kept stays where something else changed.

use crate::draw::Draw;
use iolite::engine::Connection;

fn rows(c: &Connection, sql: &str) -> String {
    match c.query(sql, &[]) {
        Ok(rows) => format!("{rows:?}"),
        Err(e) => format!("error: {}", e.message()),
    }
}

fn vector(draw: &mut Draw) -> String {
    draw.vector(8, 1000)
}

fn text(draw: &mut Draw) -> String {
    let n = 1 + draw.below(12);
    (0..n).map(|_| format!("w{}", draw.below(9) * draw.below(9))).collect::<Vec<_>>().join(" ")
}

const TABLES: &str = "CREATE TABLE log(x);
    CREATE TABLE plain(id INTEGER PRIMARY KEY, v, s);
    CREATE VIRTUAL TABLE t USING fts5(s);
    CREATE VIRTUAL TABLE e USING vec0(id integer primary key, v float[8], chunk_size=64);
    CREATE VIRTUAL TABLE i USING vec0(id integer primary key, v float[8] index=ivf(train=100, lists=8, probes=64), chunk_size=64);";

/// A row of all tables.
fn put(c: &Connection, id: u64, vector: &str, text: &str) {
    let sql = format!(
        "SAVEPOINT put; DELETE FROM t WHERE rowid = {id}; DELETE FROM plain WHERE id = {id};
         DELETE FROM e WHERE id = {id}; DELETE FROM i WHERE id = {id};
         INSERT INTO plain VALUES({id}, vec_f32('{vector}'), '{text}'); INSERT INTO t(rowid, s) VALUES({id}, '{text}');
         INSERT INTO e VALUES({id}, '{vector}'); INSERT INTO i VALUES({id}, '{vector}'); RELEASE put"
    );
    c.execute_batch(&sql).unwrap();
}

fn check(c: &Connection, draw: &mut Draw, story: &[String]) {
    let (v, n) = (vector(draw), draw.below(9) * draw.below(9));
    let k = 1 + draw.below(8);
    let plain = format!("SELECT id, vec_distance_l2(v, '{v}') AS d FROM plain ORDER BY d, id LIMIT {k}");
    let expected = rows(c, &plain);
    for table in ["e", "i"] {
        let near = format!("SELECT id, distance FROM {table} WHERE v MATCH '{v}' AND k = {k}");
        assert_eq!(rows(c, &near), expected, "{near}\n{}", story.join("\n"));
    }
    let found = |order: &str| {
        format!("SELECT rowid, rank FROM t WHERE t MATCH 'w{n} OR w4' ORDER BY {order} LIMIT {k}")
    };
    // The setting as it is in the file, asked past what is kept of it.
    let call = c.query("SELECT v FROM t_config WHERE k = 'rank'", &[]).unwrap();
    let call = call.first().map_or("bm25()".into(), |r| r[0].to_string_lossy()).replace("bm25(", "bm25(t, ");
    let asked = found("2, 1").replace(" rank FROM", &format!(" {} FROM", call.replace(", )", ")")));
    let expected = rows(c, &asked);
    assert_eq!(rows(c, &found("+rank, rowid")), expected, "{asked}\n{}", story.join("\n"));
    assert_eq!(rows(c, &found("rank")), expected, "{}\n{}", found("rank"), story.join("\n"));
}

fn change(c: &Connection, draw: &mut Draw, story: &mut Vec<String>) {
    let id = 1 + draw.below(400);
    let batch = match draw.below(17) {
        0..=4 => "INSERT INTO log VALUES(zeroblob(900))".to_string(),
        5 => "DELETE FROM log WHERE rowid % 3 = 0".into(),
        6..=8 => {
            let (vector, text) = (vector(draw), text(draw));
            story.push(format!("put {id} {vector} {text}"));
            return put(c, id, &vector, &text);
        }
        9 => format!(
            "BEGIN; DELETE FROM t WHERE rowid = {id}; DELETE FROM plain WHERE id = {id}; \
             DELETE FROM e WHERE id = {id}; DELETE FROM i WHERE id = {id}; COMMIT"
        ),
        10 => {
            let v = vector(draw);
            format!(
                "BEGIN; UPDATE plain SET v = vec_f32('{v}') WHERE id = {id}; UPDATE e SET v = '{v}' WHERE id = {id}; \
                 UPDATE i SET v = '{v}' WHERE id = {id}; COMMIT"
            )
        }
        11 => "INSERT INTO t(t) VALUES('optimize')".into(),
        12 => "PRAGMA wal_checkpoint(RESTART)".into(),
        13 => "PRAGMA incremental_vacuum(20)".into(),
        14 => "VACUUM".into(),
        15 => format!("INSERT INTO t(t, rank) VALUES('rank', 'bm25({id}.0)')"),
        _ => "CREATE TABLE IF NOT EXISTS log2(x UNIQUE); INSERT INTO log2 VALUES(random()); DROP TABLE log2"
            .into(),
    };
    c.execute_batch(&batch).unwrap();
    story.push(batch);
}

#[test]
fn answers_are_of_the_tables_as_they_are() {
    let folder = std::env::temp_dir().join(format!("iolite-kept-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (n, mode) in ["wal", "delete", "wal", "truncate", "memory"].into_iter().enumerate() {
        let mut draw = Draw(n as u64 + 5);
        let file = folder.join(format!("{n}.db"));
        let name = file.to_str().unwrap();
        let first = match mode {
            "memory" => Connection::open_in_memory().unwrap(),
            _ => Connection::open(name).unwrap(),
        };
        let vacuum = ["PRAGMA auto_vacuum = incremental;", ""][n / 2 % 2];
        let sizes = "PRAGMA page_size = 1024; PRAGMA wal_autocheckpoint = 60; PRAGMA synchronous = off;";
        first.execute_batch(&format!("{sizes}{vacuum} PRAGMA journal_mode = {mode}; {TABLES}")).unwrap();
        first.execute_batch("BEGIN").unwrap();
        for id in 1..300 {
            let (vector, text) = (vector(&mut draw), text(&mut draw));
            put(&first, id, &vector, &text);
        }
        first.execute_batch("COMMIT").unwrap();
        let other = match mode {
            "memory" => None,
            _ => Some(Connection::open(name).unwrap()),
        };
        if let Some(other) = &other {
            other.execute_batch("PRAGMA wal_autocheckpoint = 60; PRAGMA synchronous = off").unwrap();
        }
        let mut story = Vec::new();
        (0..8).for_each(|_| check(&first, &mut draw, &story));
        for _ in 0..150 {
            let writer = other.as_ref().filter(|_| draw.below(2) == 0).unwrap_or(&first);
            match draw.below(8) {
                0 => {
                    // In a transaction that is taken back.
                    writer
                        .execute_batch("BEGIN; SAVEPOINT a; INSERT INTO log VALUES(zeroblob(9000))")
                        .unwrap();
                    check(writer, &mut draw, &story);
                    let (id, vector, text) = (1 + draw.below(400), vector(&mut draw), text(&mut draw));
                    if draw.below(2) == 0 {
                        put(writer, id, &vector, &text);
                        check(writer, &mut draw, &story);
                    }
                    if draw.below(2) == 0 {
                        let sql = format!("INSERT INTO t(t, rank) VALUES('rank', 'bm25({id}.5)')");
                        writer.execute_batch(&sql).unwrap();
                    }
                    if draw.below(2) == 0 {
                        check(writer, &mut draw, &story);
                    }
                    writer.execute_batch("ROLLBACK TO a").unwrap();
                    check(writer, &mut draw, &story);
                    writer.execute_batch(["ROLLBACK", "COMMIT"][draw.below(2) as usize]).unwrap();
                    story.push("a transaction".into());
                }
                1 if draw.below(4) == 0 => {
                    // The same rows in new tables.
                    let all = "DROP TABLE t; DROP TABLE e; DROP TABLE i; ALTER TABLE plain RENAME TO was;";
                    writer
                        .execute_batch(&format!(
                            "BEGIN; {all} {} INSERT INTO plain SELECT * FROM was WHERE id % 7; \
                             INSERT INTO t(rowid, s) SELECT id, s FROM plain; INSERT INTO e SELECT id, v FROM plain; \
                             INSERT INTO i SELECT id, v FROM plain; DROP TABLE was; COMMIT",
                            TABLES.split_once(';').unwrap().1
                        ))
                        .unwrap();
                    story.push("new tables".into());
                }
                _ => change(writer, &mut draw, &mut story),
            }
            for _ in 0..=draw.below(2) {
                check(&first, &mut draw, &story);
            }
            if let Some(other) = &other {
                check(other, &mut draw, &story);
            }
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn lists_of_rows_outlive_changes_of_other_tables() {
    let folder = std::env::temp_dir().join(format!("iolite-lists-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for mode in ["wal", "delete"] {
        let file = folder.join(format!("{mode}.db"));
        let c = Connection::open(file.to_str().unwrap()).unwrap();
        c.execute_batch(&format!("PRAGMA journal_mode = {mode}; PRAGMA wal_autocheckpoint = 20; {TABLES}"))
            .unwrap();
        let mut draw = Draw(1);
        c.execute_batch("BEGIN").unwrap();
        for id in 1..200 {
            let text = text(&mut draw);
            c.execute_batch(&format!("INSERT INTO t(rowid, s) VALUES({id}, '{text}')")).unwrap();
        }
        c.execute_batch("COMMIT").unwrap();
        let kept = || rows(&c, "SELECT rank FROM t('*kept')");
        let reads = || rows(&c, "SELECT rank FROM t('*reads')");
        let ask = || rows(&c, "SELECT rowid FROM t('w0') ORDER BY rank LIMIT 3");
        let answer = ask();
        let before = kept();
        assert_ne!(before, rows(&c, "SELECT 0"));
        for _ in 0..60 {
            c.execute_batch("INSERT INTO log VALUES(zeroblob(5000))").unwrap();
            c.execute_batch("BEGIN; INSERT INTO log VALUES(1)").unwrap();
            assert_eq!(ask(), answer);
            c.execute_batch("COMMIT").unwrap();
            let read = reads();
            assert_eq!(ask(), answer);
            assert_eq!(reads(), read);
            assert_eq!(kept(), before);
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn settings_are_taken_back_with_their_transaction() {
    let folder = std::env::temp_dir().join(format!("iolite-settings-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("x.db");
    let (c, other) = (
        Connection::open(file.to_str().unwrap()).unwrap(),
        Connection::open(file.to_str().unwrap()).unwrap(),
    );
    c.execute_batch(
        "CREATE VIRTUAL TABLE t USING fts5(a, b); INSERT INTO t VALUES('x', 'y x x x x'), ('x x', 'y'), ('z', 'z'), ('z z', 'z')",
    )
    .unwrap();
    let ask = |c: &Connection| rows(c, "SELECT rowid FROM t('x') ORDER BY rank");
    let set = |a: &str| format!("INSERT INTO t(t, rank) VALUES('rank', 'bm25({a})')");
    let plain = ask(&c);
    let turned = rows(&c, "SELECT rowid FROM t('x') ORDER BY bm25(t, 50, 0)");
    assert_ne!(plain, turned);
    for back in ["ROLLBACK", "ROLLBACK TO s; COMMIT"] {
        c.execute_batch(&format!("BEGIN; SAVEPOINT s; {}", set("50, 0"))).unwrap();
        assert_eq!(ask(&c), turned);
        c.execute_batch(back).unwrap();
        assert_eq!(ask(&c), plain, "{back}");
    }
    // Another change that gives the same number to what it sets.
    c.execute_batch(&format!("BEGIN; {}; ROLLBACK", set("0, 50"))).unwrap();
    other.execute_batch(&set("50, 0")).unwrap();
    assert_eq!(ask(&c), turned);
    drop((c, other));
    std::fs::remove_dir_all(folder).unwrap();
}
