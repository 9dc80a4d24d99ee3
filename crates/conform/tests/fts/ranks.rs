//! Rows by rank: those that are found from what is kept in memory are those that going through the index finds, whoever has changed
//! the table in between, and those of stock. `IOLITE_RANKS_ROUNDS=N` draws N histories.

use crate::drawn::{Draw, rounds};
use iolite::engine::{Connection, Value};
use iolite_conform::differ::pair::{Pair, Stmt};
use iolite_testkit::Scratch;

/// A word by Zipf's law.
fn word(d: &mut Draw) -> String {
    let top = 1 << d.below(9);
    format!("w{}", d.below(top))
}

fn words(d: &mut Draw, n: usize, between: &str) -> String {
    (0..n).map(|_| word(d)).collect::<Vec<_>>().join(between)
}

/// A query that is answered from lists, or one that is not.
fn query(d: &mut Draw, columns: bool) -> String {
    let n = 1 + d.below(4);
    let q = match d.below(13) {
        0 => word(d),
        1..4 => words(d, n, " OR "),
        4 => words(d, n, " AND "),
        5 => format!("{} {}", word(d), word(d)),
        6 => format!("({}) NOT {}", words(d, n, " OR "), word(d)),
        7 => format!("({}) NOT ({})", words(d, n, " AND "), words(d, 2, " OR ")),
        8 => format!("w{}*", d.below(30)),
        9 => format!("\"{} {}\" OR {}", word(d), word(d), word(d)),
        11 => format!("NEAR({}, {})", words(d, 2, " "), d.below(6)),
        10 => format!("{} AND ({})", word(d), words(d, n, " OR ")),
        _ => format!("^{} OR w{}*", word(d), d.below(9)),
    };
    if columns && d.one_in(4) { format!("{{{}}} : ({q})", d.of(&["a", "b"])) } else { q }
}

/// A whole statement for it.
fn ranked(d: &mut Draw, table: &str, q: &str) -> String {
    let rank = d.of(&["", "", "", " AND rank MATCH 'bm25(2.0, 0.5)'", " AND rank MATCH 'bm25(0, 1)'"]);
    let bounds =
        d.of(&["", "", "", " AND t.rowid > 40", " AND t.rowid BETWEEN 20 AND 900"]).replace("t.", "");
    let order = d.of(&["rank", "rank", "rank", "rank, rowid", "rank DESC", "rank DESC, rowid"]);
    let limit = d.of(&[
        "",
        " LIMIT 1",
        " LIMIT 10",
        " LIMIT 10",
        " LIMIT 5 OFFSET 7",
        " LIMIT 100",
        " LIMIT 1000",
        " LIMIT 0",
    ]);
    let columns = d.of(&[
        "rowid, rank",
        "rowid, rank",
        "rowid, rank",
        "rowid, bm25(t)",
        "rowid, highlight(t, 0, '[', ']')",
    ]);
    format!("SELECT {columns} FROM {table} WHERE t MATCH '{q}'{rank}{bounds} ORDER BY {order}{limit}")
}

#[test]
fn ranks_are_those_of_stock() {
    let mut found = String::new();
    for seed in rounds("RANKS", 12) {
        let dir = std::env::temp_dir().join(format!("iolite-ranks-{}-{seed}", std::process::id()));
        let mut pair = Pair::new(&dir, true);
        let mut d = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        d.below(2);
        let options = d.of(&[
            "",
            "",
            ", prefix='1 2'",
            ", content=''",
            ", content='', contentless_delete=1",
            ", columnsize=0",
            ", detail=column",
            ", detail=none",
            ", tokendata=1",
        ]);
        let gone = !options.contains("content=''") || options.contains("delete");
        let confined = options != ", detail=none";
        let mut statements = vec![format!("CREATE VIRTUAL TABLE t USING fts5(a, b{options})")];
        if seed.is_multiple_of(3) && confined {
            statements.push("INSERT INTO t(t, rank) VALUES ('secure-delete', 1)".into());
        }
        let insert = |d: &mut Draw, id: usize| {
            let (n, m) = (d.below(30), d.below(3));
            format!(
                "INSERT INTO t(rowid, a, b) VALUES ({id}, '{}', '{}')",
                words(d, n, " "),
                words(d, m, " ")
            )
        };
        let far = d.one_in(4);
        let id = |n: usize| if far { n * 7919 } else { n };
        let rows = [30, 300, 1500][d.below(3)];
        statements.push("BEGIN".into());
        statements.extend((1..=rows).map(|n| insert(&mut d, id(n))));
        statements.push("COMMIT".into());
        let mut next = rows + 1;
        for _ in 0..40 {
            for _ in 0..1 + d.below(3) {
                let q = query(&mut d, confined);
                for _ in 0..1 + d.below(3) {
                    let sql = ranked(&mut d, "t", &q);
                    // Where no places are kept, texts that are not there are not marked.
                    if gone || !sql.contains("highlight") {
                        statements.push(sql);
                    }
                }
            }
            match d.below(6) {
                0 => {
                    statements.push(insert(&mut d, id(next)));
                    next += 1;
                }
                1 if gone => {
                    statements.push(format!("DELETE FROM t WHERE rowid = {}", id(1 + d.below(next))))
                }
                2 => statements
                    .push(d.of(&["BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s"]).into()),
                3 => statements.push("INSERT INTO t(t) VALUES ('optimize')".into()),
                _ => {}
            }
        }
        for sql in statements {
            let ordered = sql.contains("ORDER BY");
            let different = pair.run(&Stmt { ordered, ..Stmt::plain("fts", sql.clone()) });
            if let Some(x) = different.filter(|x| x.what != "state") {
                found +=
                    &format!("{seed}: {options}\n{sql}\n{}\nstock: {}\nours:  {}\n", x.what, x.stock, x.ours);
                break;
            }
        }
        let _ = std::fs::remove_dir_all(dir);
    }
    assert!(found.is_empty(), "{found}");
}

fn bits(rows: Vec<Vec<Value>>) -> Vec<(i64, u64)> {
    rows.iter().map(|r| (r[0].to_int(), r[1].to_real().to_bits())).collect()
}

/// Asks for rows by rank, twice, and through the index.
fn check(c: &Connection, table: &str, what: &str) {
    let name = table.rsplit('.').next().unwrap_or(table);
    for q in ["one", "one OR w3 OR w7", "one AND w2", "w* NOT w5", "\"one w1\" OR w4"] {
        let rows = |order: &str| {
            let sql = format!("SELECT rowid, rank FROM {table} WHERE {name} MATCH '{q}'{order}");
            bits(c.query(&sql, &[]).unwrap_or_else(|e| panic!("{what}: {sql}: {}", e.message())))
        };
        let mut all = rows("");
        all.sort_by(|a, b| f64::from_bits(a.1).total_cmp(&f64::from_bits(b.1)).then(a.0.cmp(&b.0)));
        assert_eq!(rows(" ORDER BY rank"), all, "{what}: {q}");
        all.truncate(6);
        for _ in 0..2 {
            assert_eq!(rows(" ORDER BY rank LIMIT 6"), all, "{what}: {q}");
        }
    }
}

/// What a connection that has asked before answers, which has to be what a new one does. A connection that has itself written a setting around
/// the commands goes on with the one that it knows, as with stock: functions are named here.
fn check_beside_a_new_one(c: &Connection, path: &str, what: &str) {
    check(c, "t", what);
    let new = open(path);
    for sql in [
        "SELECT rowid, rank FROM t('one OR w3') WHERE rank MATCH 'bm25()' ORDER BY rank LIMIT 9",
        "SELECT rowid, bm25(t) FROM t('one OR w3') ORDER BY rowid",
        "SELECT rowid, rank FROM t('w2 AND one') WHERE rank MATCH 'bm25(3.0)' ORDER BY rank",
    ] {
        let rows = |c: &Connection| bits(c.query(sql, &[]).expect("rows"));
        assert_eq!(rows(c), rows(&new), "{what}: {sql}");
    }
}

/// Changes that whoever is connected may make, each of which changes ranks.
const CHANGES: &[&str] = &[
    "INSERT INTO t VALUES ('one one w3 w7', 'w2')",
    "DELETE FROM t WHERE rowid = 3",
    "UPDATE t SET a = 'one w2 one w5' WHERE rowid = 9",
    "UPDATE t_docsize SET sz = x'0101' WHERE id = 5",
    "INSERT INTO t(t, rank) VALUES ('rank', 'bm25(5.0, 0.5)')",
    "INSERT INTO t(t) VALUES ('optimize')",
    "UPDATE t_content SET c0 = 'one one one w7' WHERE id = 11",
    "INSERT INTO t(t) VALUES ('rebuild')",
    // Settings are read again when a command has changed one.
    "UPDATE t_config SET v = 'bm25(1.0, 9.0)' WHERE k = 'rank'; INSERT INTO t(t, rank) VALUES ('automerge', 3)",
    "UPDATE t_data SET block = x'2082008200' WHERE id = 1",
    "INSERT INTO other VALUES (1)",
    "DELETE FROM t_docsize WHERE id > 30; INSERT INTO t_docsize SELECT id, x'0905' FROM t_content WHERE id > 30",
    "INSERT INTO t(t) VALUES ('rebuild'); DELETE FROM t WHERE rowid > 20; INSERT INTO t VALUES ('one w3', 'w3')",
];

fn make(table: &str) -> String {
    let mut d = Draw(7);
    let mut sql = format!("CREATE VIRTUAL TABLE {table} USING fts5(a, b); BEGIN;");
    for _ in 0..60 {
        let (n, m) = (1 + d.below(12), d.below(4));
        sql += &format!(
            "INSERT INTO {table} VALUES ('one {}', '{}');",
            words(&mut d, n, " "),
            words(&mut d, m, " ")
        );
    }
    sql + "COMMIT"
}

/// Settings of files.
const MODES: &[&str] = &[
    "PRAGMA journal_mode = DELETE",
    "PRAGMA journal_mode = WAL",
    "PRAGMA journal_mode = PERSIST",
    "PRAGMA encoding = 'UTF-16le'; PRAGMA journal_mode = WAL",
    "PRAGMA encoding = 'UTF-16be'; PRAGMA journal_mode = TRUNCATE",
];

fn open(path: &str) -> Connection {
    let c = Connection::open(path).expect("the file opens");
    c.busy_timeout(5000).expect("a timeout");
    c
}

#[test]
fn what_others_change_is_seen() {
    for mode in MODES {
        let scratch = Scratch::new();
        let path = scratch.name("a.db");
        let c = open(&path);
        c.execute_batch(&format!("{mode}; {}; CREATE TABLE other(x)", make("t"))).expect("a table");
        let other = open(&path);
        for sql in CHANGES {
            check(&c, "t", &format!("{mode}, before {sql}"));
            other.execute_batch(sql).expect("a change");
            check_beside_a_new_one(&c, &path, &format!("{mode}, after {sql}"));
            check(&other, "t", &format!("{mode}, {sql} by itself"));
        }
    }
}

#[test]
fn what_stock_changes_in_another_process_is_seen() {
    for mode in MODES {
        let scratch = Scratch::new();
        let path = scratch.name("a.db");
        let c = open(&path);
        c.execute_batch(&format!("{mode}; {}; CREATE TABLE other(x)", make("t"))).expect("a table");
        for sql in CHANGES {
            check(&c, "t", &format!("{mode}, before {sql}"));
            let what = format!("{mode}, after {sql}");
            let said = scratch.stock("a.db", sql);
            assert!(!said.contains("rror"), "{what}: {said}");
            check_beside_a_new_one(&c, &path, &what);
        }
    }
}

#[test]
fn what_a_transaction_changes_is_seen_and_what_it_takes_back_is_gone() {
    for mode in MODES.iter().chain(&["PRAGMA locking_mode = EXCLUSIVE", "PRAGMA journal_mode = MEMORY"]) {
        let scratch = Scratch::new();
        let c = open(&scratch.name("a.db"));
        c.execute_batch(&format!("{mode}; {}; CREATE TABLE other(x)", make("t"))).expect("a table");
        transactions(&c, "t", mode);
        if !mode.contains("EXCLUSIVE") {
            check_beside_a_new_one(&c, &scratch.name("a.db"), mode);
        }
    }
    let c = Connection::open_in_memory().expect("a database");
    c.execute_batch(&format!("{}; CREATE TABLE other(x)", make("t"))).expect("a table");
    transactions(&c, "t", "in memory");
    let c = Connection::open_in_memory().expect("a database");
    c.execute_batch(&format!("CREATE TEMP TABLE other(x); {}", make("temp.t"))).expect("a table");
    transactions(&c, "temp.t", "temporary");
    let scratch = Scratch::new();
    let c = Connection::open_in_memory().expect("a database");
    let attach = format!("ATTACH '{}' AS x; CREATE TABLE x.other(y); {}", scratch.name("b.db"), make("x.t"));
    c.execute_batch(&attach).expect("a table");
    transactions(&c, "x.t", "attached");
}

#[test]
fn a_file_in_the_place_of_another_one_is_another_one() {
    let scratch = Scratch::new();
    let c = Connection::open_in_memory().expect("a database");
    // Both have the same counters of changes.
    for (file, word) in [("a.db", "one"), ("b.db", "w3"), ("a.db", "one"), ("b.db", "w3")] {
        c.execute_batch(&format!("ATTACH '{}' AS x", scratch.name(file))).expect("a file");
        let made = c.execute_batch("CREATE VIRTUAL TABLE x.t USING fts5(a, b)").is_ok();
        if made {
            c.execute_batch(&format!(
                "INSERT INTO x.t VALUES ('one', ''), ('{word} one w3', 'one'), ('w7 {word}', '')"
            ))
            .expect("rows");
        }
        check(&c, "x.t", file);
        c.execute_batch("DETACH x").expect("it goes");
    }
}

fn transactions(c: &Connection, table: &str, what: &str) {
    let run = |sql: &str| c.execute_batch(sql).unwrap_or_else(|e| panic!("{what}: {sql}: {}", e.message()));
    for sql in CHANGES {
        check(c, table, &format!("{what}, before {sql}"));
        for (begin, end) in
            [("BEGIN", "ROLLBACK"), ("SAVEPOINT s", "ROLLBACK TO s; RELEASE s"), ("BEGIN", "COMMIT")]
        {
            run(begin);
            check(c, table, &format!("{what}, in {begin}"));
            run(sql);
            check(c, table, &format!("{what}, in {begin} after {sql}"));
            run("SAVEPOINT u");
            run("INSERT INTO t VALUES ('one w3 w3', 'one')");
            check(c, table, &format!("{what}, in a savepoint after {sql}"));
            run("ROLLBACK TO u");
            check(c, table, &format!("{what}, back from a savepoint after {sql}"));
            run(end);
            check(c, table, &format!("{what}, after {sql} and {end}"));
        }
    }
}

#[test]
fn a_table_tells_which_queries_were_ranked_from_lists() {
    let c = Connection::open_in_memory().expect("a database");
    c.execute_batch(&format!(
        "{}; CREATE VIRTUAL TABLE c USING fts5(a, detail=column); INSERT INTO c VALUES ('one')",
        make("t")
    ))
    .expect("tables");
    let tells = |table: &str, what: &str| {
        let sql = format!("SELECT {table} FROM {table} WHERE {table} MATCH '*{what}'");
        c.query(&sql, &[]).expect("a number")[0][0].to_int()
    };
    for (table, sql, more) in [
        ("t", "SELECT rowid FROM t('one OR w1 NOT w2') ORDER BY rank LIMIT 3", 1),
        ("t", "SELECT rowid FROM t('\"one w1\" w2*') ORDER BY rank", 1),
        (
            "t",
            "SELECT rowid FROM t('NEAR(one w1)') WHERE rank MATCH 'bm25(1, 5)' ORDER BY rank DESC, rowid",
            1,
        ),
        ("t", "SELECT rowid FROM t('one') ORDER BY rowid", 0),
        ("t", "SELECT rowid FROM t('one') ORDER BY bm25(t)", 0),
        ("t", "SELECT rowid FROM t('one') WHERE rank MATCH 'bm25(-1)' ORDER BY rank", 0),
        ("c", "SELECT rowid FROM c('one') ORDER BY rank", 0),
    ] {
        let before = tells(table, "ranked");
        c.query(sql, &[]).unwrap_or_else(|e| panic!("{sql}: {}", e.message()));
        assert_eq!(tells(table, "ranked") - before, more, "{sql}");
    }
    assert!(tells("t", "kept") > 0);
    // Of another state nothing is kept.
    c.execute_batch("CREATE TABLE other(x)").expect("a table");
    c.query("SELECT rowid FROM t('w7') ORDER BY rank LIMIT 1", &[]).expect("rows");
    assert!(tells("t", "kept") < 2000);
}

#[test]
fn a_word_before_one_with_many_pages_has_its_own_rows() {
    let c = Connection::open_in_memory().expect("a database");
    c.execute_batch(
        "CREATE VIRTUAL TABLE t USING fts5(a, prefix='1'); INSERT INTO t(t, rank) VALUES ('pgsz', 64); BEGIN",
    )
    .expect("a table");
    for n in 1..=600 {
        let last = if n == 5 || n == 500 { " zz" } else { "" };
        c.execute_batch(&format!("INSERT INTO t VALUES ('a{n} w w w{last}')")).expect("a row");
    }
    // In the index `zz` is the last word, and the prefixes come next.
    c.execute_batch("COMMIT; INSERT INTO t(t) VALUES ('optimize')").expect("one segment");
    for (sql, rows) in [
        ("SELECT rowid FROM t('zz') WHERE rowid > 100", "[500]"),
        ("SELECT rowid FROM t('zz AND w') ORDER BY rowid", "[5, 500]"),
        ("SELECT rowid FROM t('zz AND a500')", "[500]"),
        ("SELECT rowid FROM t('zz') WHERE rowid < 300 ORDER BY rowid DESC", "[5]"),
    ] {
        let found: Vec<i64> = c.query(sql, &[]).expect("rows").iter().map(|r| r[0].to_int()).collect();
        assert_eq!(format!("{found:?}"), rows, "{sql}");
    }
}

#[test]
fn a_cursor_goes_on_in_the_state_in_which_it_began() {
    let c = Connection::open_in_memory().expect("a database");
    c.execute_batch(&make("t")).expect("a table");
    let sql = "SELECT rowid, rank FROM t WHERE t MATCH 'one OR w1' ORDER BY rank";
    // Twice, so that lists are kept; joined, so that nobody says how many rows are wanted.
    c.execute_batch("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 100) INSERT INTO t SELECT 'one w1', x FROM n")
        .expect("more rows");
    let expected = bits(c.query(sql, &[]).expect("rows"));
    assert!(expected.len() > 150);
    let mut s = c.prepare(sql).expect("a query");
    let mut found = Vec::new();
    while s.step().expect("a row") == iolite::engine::Step::Row {
        let rowid = s.row()[0].to_int();
        found.push((rowid, s.row()[1].to_real().to_bits()));
        c.execute("DELETE FROM t WHERE rowid = ?1", &[Value::Int(rowid)]).expect("a row goes");
    }
    assert_eq!(found, expected);
    assert!(c.query(sql, &[]).expect("no rows").is_empty());
}
