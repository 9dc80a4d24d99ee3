//! The connection's own entries: what a text may hold, what is known of columns, options, incremental values.

use iolite::engine::{Code, Connection, Switch, Value};
use std::rc::Rc;

#[test]
fn a_text_of_two_statements_is_refused_as_a_whole() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch("CREATE TABLE t(v); INSERT INTO t VALUES(1), (2)").unwrap();
    let e = c.execute("DELETE FROM t WHERE v=1; DELETE FROM t", &[]).unwrap_err();
    assert_eq!((e.code(), e.message()), (Code::Misuse, "the text has more than one statement"));
    assert_eq!(c.query("SELECT count(*) FROM t", &[]).unwrap()[0][0].to_int(), 2);
    assert!(c.query("SELECT 1; SELECT 2", &[]).is_err());
    // What cannot be read behind the first is an error, too; space and comments are not.
    assert!(c.execute("DELETE FROM t; nonsense", &[]).is_err());
    assert_eq!(c.query("SELECT 1; -- one\n ; /* two */ ", &[]).unwrap().len(), 1);
    assert_eq!(c.query("SELECT count(*) FROM t", &[]).unwrap()[0][0].to_int(), 2);
}

#[test]
fn options_are_one_list() {
    let c = Connection::open_in_memory().unwrap();
    let listed: Vec<String> =
        c.query("PRAGMA compile_options", &[]).unwrap().iter().map(|r| r[0].to_string_lossy()).collect();
    for (i, o) in listed.iter().enumerate() {
        let row = &c
            .query(&format!("SELECT sqlite_compileoption_get({i}), sqlite_compileoption_used('{o}')"), &[])
            .unwrap()[0];
        assert_eq!((row[0].to_string_lossy(), row[1].to_int()), (o.clone(), 1));
    }
    for missing in ["ENABLE_ICU", "ENABLE_STAT4"] {
        let row = &c.query(&format!("SELECT sqlite_compileoption_used('{missing}')"), &[]).unwrap()[0];
        assert_eq!(row[0].to_int(), 0, "{missing}");
    }
}

#[test]
fn the_progress_handler_stops_what_runs_long() {
    let c = Connection::open_in_memory().unwrap();
    let asked = Rc::new(std::cell::Cell::new(0));
    let count = asked.clone();
    c.progress_handler_every(
        10,
        Some(Rc::new(move || {
            count.set(count.get() + 1);
            count.get() > 100
        })),
    );
    let e = c.query(
        "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM n WHERE x<1000) SELECT count(*) FROM n",
        &[],
    );
    assert_eq!((e.unwrap_err().code(), asked.get()), (Code::Interrupt, 101));
}

#[test]
fn an_interrupted_change_takes_its_transaction_back() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(
        "CREATE TABLE t(a INTEGER PRIMARY KEY, b); BEGIN; INSERT INTO t \
         WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM n WHERE x<3000) SELECT x, x FROM n",
    )
    .unwrap();
    c.progress_handler_every(10, Some(Rc::new(|| true)));
    let stopped = |sql| c.query(sql, &[]).unwrap_err().code() == Code::Interrupt;
    assert!(stopped("SELECT count(*) FROM t AS a, t AS b WHERE a.b > b.b"));
    assert!(!c.is_autocommit());
    assert!(stopped("UPDATE t SET b = b + 1"));
    assert!(c.is_autocommit());
    c.progress_handler(None);
    assert!(c.query("SELECT * FROM t", &[]).unwrap().is_empty());
}

#[test]
fn a_blob_is_read_and_written_in_place() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(
        "CREATE TABLE t(a, b); INSERT INTO t VALUES('first', zeroblob(70000)), ('second', 'text')",
    )
    .unwrap();
    let mut b = c.blob_open(None, "t", "b", 1, true).unwrap();
    assert_eq!(b.len(), 70000);
    b.write(69_990, b"0123456789").unwrap();
    assert_eq!(b.write(69_991, b"0123456789").unwrap_err().code(), Code::Error);
    let mut out = [0; 4];
    b.read(69_994, &mut out).unwrap();
    assert_eq!(&out, b"4567");
    b.reopen(2).unwrap();
    b.write(0, b"T").unwrap();
    // Two handles, each of which changes its tree under the other one.
    let mut other = c.blob_open(Some("main"), "T", "A", 1, true).unwrap();
    other.write(0, b"F").unwrap();
    b.write(1, b"E").unwrap();
    other.write(1, b"I").unwrap();
    other.close().unwrap();
    b.close().unwrap();
    let rows = c.query(
        "SELECT a, b FROM t WHERE rowid=2 UNION ALL SELECT a, substr(b, -3) FROM t WHERE rowid=1",
        &[],
    );
    let rows: Vec<String> = rows.unwrap().iter().flatten().map(Value::to_string_lossy).collect();
    assert_eq!(rows, ["second", "TExt", "FIrst", "789"]);
    // Dropped without closing, and with a statement that read before the write.
    let mut reader = c.prepare("SELECT a FROM t").unwrap();
    reader.step().unwrap();
    drop({
        let mut b = c.blob_open(None, "t", "a", 2, true).unwrap();
        b.write(0, b"S").unwrap();
        b
    });
    reader.step().unwrap();
    assert_eq!(reader.row()[0].to_string_lossy(), "Second");
    drop(reader);
    // DROP TABLE and the like expire a handle.
    let mut b = c.blob_open(None, "t", "a", 1, false).unwrap();
    let _ = c.execute_batch("DROP TABLE t; CREATE TABLE u(x, y); INSERT INTO u VALUES('other', 'rows')");
    if c.query("SELECT 1 FROM t", &[]).is_err() {
        assert_eq!(b.read(0, &mut out).unwrap_err().code(), Code::Abort);
    }
}

#[test]
fn a_partial_index_keeps_its_condition() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(
        "CREATE TABLE t(a, b, c); CREATE INDEX i ON t(a) WHERE b > 'm'; INSERT INTO t VALUES(1, 'z', 'c')",
    )
    .unwrap();
    assert!(c.blob_open(None, "t", "b", 1, true).is_err());
    assert!(c.blob_open(None, "t", "b", 1, false).is_ok());
    assert!(c.blob_open(None, "t", "c", 1, true).is_ok());
}

#[test]
fn a_defensive_connection_keeps_its_file_sound() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch("CREATE TABLE t(v)").unwrap();
    assert!(c.switch(Switch::Defensive, Some(true)));
    let _ = c.execute_batch("PRAGMA writable_schema=1");
    assert!(c.execute_batch("UPDATE sqlite_schema SET sql='nonsense'").is_err());
    assert!(!c.switch(Switch::Defensive, Some(false)));
}

#[test]
fn the_last_characters_of_unicode_are_themselves() {
    let c = Connection::open_in_memory().unwrap();
    // Those by which bytes that are not UTF-8 are carried; in literals, in names, and in what the engine writes itself.
    c.execute_batch(
        "CREATE TABLE \"t\u{10ffe9}\"(a DEFAULT '\u{10ff80}'); INSERT INTO \"t\u{10ffe9}\" DEFAULT VALUES",
    )
    .unwrap();
    c.execute_batch("ALTER TABLE \"t\u{10ffe9}\" RENAME TO \"u\u{10ffff}\"; SELECT 1").unwrap();
    let row = &c.query("SELECT a, hex(a), '\u{10ffff}' FROM \"u\u{10ffff}\"; ", &[]).unwrap()[0];
    assert_eq!(*row[0].text_bytes().unwrap(), *"\u{10ff80}".as_bytes());
    assert_eq!(
        (row[1].to_string_lossy(), row[2].to_string_lossy()),
        ("F48FBE80".into(), "\u{10ffff}".into())
    );
    let name = &c.query("SELECT name FROM sqlite_schema", &[]).unwrap()[0][0];
    assert_eq!(name.to_string_lossy(), "u\u{10ffff}");
    // And bytes.
    let (mut s, used) = c.prepare_bytes(b"SELECT 'k\xe0v'; SELECT 2").unwrap().unwrap();
    assert_eq!((used, &*s.sql_bytes()), (13, &b"SELECT 'k\xe0v';"[..]));
    s.step().unwrap();
    assert_eq!(*s.row()[0].text_bytes().unwrap(), *b"k\xe0v");
    let e = c.prepare_bytes(b"SELECT '\xe0', nosuch").map(|_| ()).unwrap_err();
    assert_eq!(e.offset(), Some(12));
}
