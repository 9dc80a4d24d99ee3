//! Records at the edges of the format: what is read is what was written.

use iolite::engine::{Connection, Value};

#[test]
fn headers_that_continue_on_overflow_pages_belong_to_their_own_row() {
    let c = Connection::open_in_memory().unwrap();
    let columns: Vec<String> = (0..900).map(|n| format!("c{n}")).collect();
    let ones = vec!["1000"; 900].join(",");
    let texts = vec!["'text'"; 900].join(",");
    c.execute_batch(&format!(
        "PRAGMA page_size = 512; CREATE TABLE t({}); INSERT INTO t VALUES({ones}), ({texts}), ({ones})",
        columns.join(",")
    ))
    .unwrap();
    let rows = c.query("SELECT c0, c450, c899, c899 || c1 FROM t", &[]).unwrap();
    let seen: Vec<Vec<String>> = rows
        .iter()
        .map(|r| r.iter().map(|v| String::from_utf8_lossy(&v.text_bytes().unwrap()).into()).collect())
        .collect();
    assert_eq!(
        seen,
        [
            ["1000", "1000", "1000", "10001000"],
            ["text", "text", "text", "texttext"],
            ["1000", "1000", "1000", "10001000"]
        ]
    );
}

/// A large last value goes to its pages past the record.
#[test]
fn large_last_values_arrive_whole() {
    let bytes = |n: usize| (0..n).map(|i| (i * 7 + i / 251) as u8).collect::<Vec<u8>>();
    for (encoding, auto) in [("UTF-8", "NONE"), ("UTF-8", "FULL"), ("UTF-16le", "NONE")] {
        let c = Connection::open_in_memory().unwrap();
        c.execute_batch(&format!(
            "PRAGMA encoding = '{encoding}'; PRAGMA auto_vacuum = {auto};
             CREATE TABLE t(id INTEGER PRIMARY KEY, r REAL, a TEXT, b BLOB);
             CREATE TABLE log(what);
             CREATE TRIGGER before_t BEFORE INSERT ON t BEGIN INSERT INTO log VALUES(new.b); END;
             CREATE TRIGGER after_t AFTER UPDATE ON t BEGIN INSERT INTO log VALUES(old.b); END;
             CREATE TABLE words(k INTEGER, a TEXT)"
        ))
        .unwrap();
        let mut n = 0;
        for len in [10, 4050, 16_383, 16_384, 20_000, 100_000, 1_000_003] {
            let (value, other) = (bytes(len), bytes(30_000));
            let blob = |b: &[u8]| Value::blob(b).unwrap();
            n += 1;
            let put = |sql: &str, p: &[Value]| c.query(sql, p).unwrap();
            put("INSERT INTO t VALUES(?1, 2, ?2, ?3)", &[Value::Int(n), blob(&other), blob(&value)]);
            put("INSERT INTO words VALUES(?1, ?2)", &[Value::Int(n), Value::text(vec![b'x'; len]).unwrap()]);
            let read = |sql: &str| put(sql, &[Value::Int(n)]);
            let first = |sql: &str| match &read(sql)[0][0] {
                Value::Text(b, _) | Value::Blob(b, _) => b.to_vec(),
                _ => Vec::new(),
            };
            assert_eq!(first("SELECT b FROM t WHERE id = ?1"), value);
            assert_eq!(first("SELECT a FROM t WHERE id = ?1"), other);
            assert_eq!(first("SELECT a FROM words WHERE k = ?1"), vec![b'x'; len]);
            // Of another length, of the same length, from another row, and in place of a row.
            put("UPDATE t SET b = ?2, r = r + 0.5 WHERE id = ?1", &[Value::Int(n), blob(&value[1..])]);
            assert_eq!(first("SELECT b FROM t WHERE id = ?1 AND r = 2.5"), value[1..]);
            put("UPDATE t SET b = ?2 WHERE id = ?1", &[Value::Int(n), blob(&value[..len - 1])]);
            put("INSERT INTO t SELECT -id, r, a, b FROM t WHERE id = ?1", &[Value::Int(n)]);
            put("REPLACE INTO t SELECT id, r, a, b FROM t WHERE id = -?1", &[Value::Int(n)]);
            let same =
                read("SELECT count(*) FROM t WHERE abs(id) = ?1 AND b = (SELECT b FROM t WHERE id = ?1)");
            assert_eq!(same[0][0].to_int(), 2);
            assert_eq!(first("SELECT b FROM t WHERE id = ?1"), value[..len - 1]);
        }
        let logged = c.query("SELECT count(*), sum(length(what)) FROM log", &[]).unwrap();
        assert_eq!(logged[0][0].to_int(), 7 * 5);
        let e = c.query("INSERT INTO t VALUES(1, 2, 3, ?1)", &[Value::blob(&bytes(50_000)).unwrap()]);
        assert!(e.is_err());
        c.execute_batch("INSERT INTO words VALUES(0, 'short')").unwrap();
        assert_eq!(c.query("SELECT a FROM words WHERE k = 0", &[]).unwrap()[0][0].to_string_lossy(), "short");
        let check = c.query("PRAGMA integrity_check", &[]).unwrap();
        assert_eq!(check[0][0].to_string_lossy(), "ok");
    }
}

/// A value that a row is written with may have a subtype; that which is read back has none. Entries are those of the row as read.
#[test]
fn entries_of_computed_indexes_know_no_subtypes() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(
        "CREATE TABLE t(a, b, h AS (json_array(a, b)), s AS (json_array(b)) STORED);
         CREATE INDEX th ON t(h); CREATE INDEX te ON t(json_array(b));
         CREATE INDEX tp ON t(a) WHERE json_array(b) = '[\"[7]\"]';
         CREATE TABLE w(k, b PRIMARY KEY, h AS (json_array(b))) WITHOUT ROWID;
         CREATE INDEX wh ON w(h);
         CREATE TABLE source(b);
         CREATE TRIGGER source_w AFTER INSERT ON source BEGIN INSERT OR REPLACE INTO w(k, b) VALUES(1, new.b); END;
         INSERT INTO t(a, b) VALUES(1, json_array(7)), (2, 2);
         INSERT INTO t(a, b) SELECT 3, json_group_array(a) FROM t;
         UPDATE t SET b = json_array(7) WHERE a = 2;
         INSERT INTO w(k, b) VALUES(1, json('[5]'));
         INSERT INTO w(k, b) VALUES(2, '[5]') ON CONFLICT(b) DO UPDATE SET b = json_array(9);
         INSERT INTO source VALUES(json_array(4));
         UPDATE w SET b = json_array(k) WHERE h = '[\"[9]\"]';
         UPDATE t SET a = a + 10; UPDATE w SET k = k + 1; DELETE FROM w WHERE b = '[1]'; DELETE FROM t WHERE a = 13",
    )
    .unwrap();
    let all = |sql: &str| -> Vec<Vec<String>> {
        let rows = c.query(sql, &[]).unwrap();
        let text = |v: &Value| String::from_utf8_lossy(&v.text_bytes().unwrap()).into_owned();
        rows.iter().map(|r| r.iter().map(text).collect()).collect()
    };
    assert_eq!(all("PRAGMA integrity_check"), [["ok"]]);
    assert_eq!(all("SELECT a FROM t INDEXED BY th WHERE h = '[12,\"[7]\"]'"), [["12"]]);
    assert_eq!(all("SELECT a FROM t INDEXED BY te WHERE json_array(b) = '[\"[7]\"]'"), [["11"], ["12"]]);
    assert_eq!(all("SELECT a FROM t INDEXED BY tp WHERE json_array(b) = '[\"[7]\"]'"), [["11"], ["12"]]);
    assert_eq!(all("SELECT b FROM w INDEXED BY wh WHERE h = '[\"[4]\"]'"), [["[4]"]]);
}
