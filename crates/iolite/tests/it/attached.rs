//! ATTACH, DETACH and VACUUM INTO: what names may be, and what an attached database takes over from its connection.

use iolite::engine::{Code, Connection, OpenFlags, Value};
use std::path::PathBuf;

/// A folder that is removed with its content.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("iolite-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(s: &str) -> Value {
    Value::text(s).unwrap()
}

fn databases(c: &Connection) -> String {
    let rows = c.query("SELECT name, file FROM pragma_database_list", &[]);
    let rows = rows.or_else(|_| c.query("PRAGMA database_list", &[])).unwrap();
    rows.iter().map(|r| r[r.len() - 2].to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[test]
fn names_may_be_parameters() {
    let dir = Folder::new("attach-parameters");
    let c = Connection::open(&dir.file("main.db")).unwrap();
    let (a, b) = (dir.file("a.db"), dir.file("b.db"));
    c.execute("ATTACH DATABASE ? AS aux", &[text(&a)]).unwrap();
    // Numbers and names in any order, and expressions of them.
    c.execute("ATTACH ?2 AS (?1 || :x)", &[text("n"), text(&b), text("1")]).unwrap();
    assert_eq!(databases(&c), "main aux n1");
    c.execute_batch("CREATE TABLE aux.t(v); INSERT INTO aux.t VALUES(5)").unwrap();
    c.execute("DETACH :name", &[text("aux")]).unwrap();
    assert_eq!(databases(&c), "main n1");
    let other = Connection::open(&a).unwrap();
    assert_eq!(other.query("SELECT v FROM t", &[]).unwrap()[0][0].to_int(), 5);
    // The same statement again, with other values.
    let mut s = c.prepare("ATTACH ? AS ?").unwrap();
    for name in ["p", "q"] {
        s.bind(1, text(&a)).unwrap();
        s.bind(2, text(name)).unwrap();
        s.step().unwrap();
        s.reset().unwrap();
    }
    assert_eq!(databases(&c), "main n1 p q");
    assert_eq!(c.query("SELECT v FROM q.t", &[]).unwrap()[0][0].to_int(), 5);
    other.execute("VACUUM INTO ?", &[text(&dir.file("copy.db"))]).unwrap();
    other.execute("VACUUM INTO (SELECT ?1 || v FROM t)", &[text(&dir.file("copy"))]).unwrap();
    for name in ["copy.db", "copy5"] {
        let copy = Connection::open(&dir.file(name)).unwrap();
        assert_eq!(copy.query("SELECT v FROM t", &[]).unwrap()[0][0].to_int(), 5);
    }
    let message = |r: iolite::Result<i64>| r.unwrap_err().message().to_string();
    assert_eq!(message(other.execute("VACUUM INTO ?", &[])), "non-text filename");
    assert_eq!(message(c.execute("VACUUM INTO name", &[])), "no such column: name");
    assert_eq!(message(c.execute("ATTACH a.b AS x", &[])), "no such column: a.b");
}

#[test]
fn bare_words_stand_for_themselves() {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch("ATTACH \":memory:\" AS x; ATTACH ':memory:' AS 'y'; ATTACH (SELECT ':memory:') AS z")
        .unwrap();
    c.execute_batch("DETACH \"y\"").unwrap();
    assert_eq!(databases(&c), "main x z");
}

#[test]
fn a_connection_for_reading_attaches_for_reading() {
    let dir = Folder::new("attach-read-only");
    for name in ["main.db", "a.db"] {
        Connection::open(&dir.file(name)).unwrap().execute_batch("CREATE TABLE t(v)").unwrap();
    }
    let flags = OpenFlags { read_only: true, create: false, ..OpenFlags::default() };
    let c = Connection::open_with(&dir.file("main.db"), flags).unwrap();
    c.execute("ATTACH ? AS a", &[text(&dir.file("a.db"))]).unwrap();
    let code = |sql: &str| c.execute_batch(sql).unwrap_err().code();
    assert_eq!(code("INSERT INTO a.t VALUES(1)"), Code::Readonly);
    assert_eq!(code(&format!("ATTACH '{}' AS n", dir.file("new.db"))), Code::Cantopen);
    assert_eq!(code(&format!("ATTACH 'file:{}?mode=rwc' AS n", dir.file("new.db"))), Code::Error);
    assert!(!std::fs::exists(dir.file("new.db")).unwrap());
    // What is in memory may be written, and the copy of VACUUM INTO is a file of its own.
    c.execute_batch("CREATE TEMP TABLE q(v); INSERT INTO q VALUES(1)").unwrap();
    c.execute("VACUUM INTO ?", &[text(&dir.file("copy.db"))]).unwrap();
}

#[test]
fn query_only_holds_for_every_write() {
    let dir = Folder::new("query-only");
    let c = Connection::open(&dir.file("main.db")).unwrap();
    c.execute_batch("CREATE TABLE t(v); CREATE INDEX i ON t(v); PRAGMA query_only=1").unwrap();
    for sql in [
        "INSERT INTO t VALUES(1)",
        "PRAGMA user_version=5",
        "PRAGMA application_id=5",
        "PRAGMA schema_version=5",
        "PRAGMA incremental_vacuum",
        "PRAGMA temp.user_version=6",
        "VACUUM",
        "VACUUM INTO 'x'",
        "CREATE TEMP TABLE q(v)",
        "BEGIN IMMEDIATE",
        "ANALYZE",
        "REINDEX",
        "ALTER TABLE t RENAME TO u",
        "DROP TABLE t",
    ] {
        let e = c.execute_batch(sql).map(|_| sql).unwrap_err();
        assert_eq!(
            (e.code(), e.message()),
            (Code::Readonly, "attempt to write a readonly database"),
            "{sql}"
        );
    }
    c.execute_batch("SELECT count(*) FROM t; PRAGMA query_only=0; INSERT INTO t VALUES(1)").unwrap();
}

#[test]
fn a_named_database_in_memory_is_shared() {
    let open = |name: &str| Connection::open(name).unwrap();
    let name = "file:attached-test?mode=memory&cache=shared";
    let (a, b) = (open(name), open(name));
    a.execute_batch("CREATE TABLE t(v); INSERT INTO t VALUES(1)").unwrap();
    let count = |c: &Connection| c.query("SELECT count(*) FROM t", &[]).unwrap()[0][0].to_int();
    assert_eq!(count(&b), 1);
    // Another thread, and another way to name it.
    std::thread::scope(|s| {
        s.spawn(|| {
            let c = Connection::open(":memory:").unwrap();
            c.busy_timeout(5000).unwrap();
            c.execute("ATTACH ? AS x", &[text(name)]).unwrap();
            c.execute_batch("INSERT INTO x.t VALUES(2)").unwrap();
            assert_eq!(databases(&c), "main x");
            assert_eq!(c.file_name("x").unwrap(), b"");
            let e = c.execute("ATTACH ? AS y", &[text(name)]).unwrap_err();
            assert_eq!(e.message(), "database is already attached");
        });
    });
    assert_eq!((count(&a), count(&b)), (2, 2));
    // What is not committed is not seen, and a reader keeps its snapshot.
    a.execute_batch("BEGIN; INSERT INTO t VALUES(3)").unwrap();
    assert_eq!((count(&a), count(&b)), (3, 2));
    b.execute_batch("BEGIN; SELECT * FROM t").unwrap();
    assert_eq!(a.execute_batch("COMMIT").unwrap_err().code(), Code::Busy);
    assert_eq!(count(&b), 2);
    b.execute_batch("COMMIT").unwrap();
    a.execute_batch("COMMIT").unwrap();
    assert_eq!(count(&b), 3);
    // It has no log and no journal file.
    assert_eq!(a.query("PRAGMA journal_mode=WAL", &[]).unwrap()[0][0].to_string_lossy(), "memory");
    for sql in ["BEGIN; DELETE FROM t; ROLLBACK", "VACUUM"] {
        a.execute_batch(sql).unwrap();
    }
    assert_eq!(count(&b), 3);
    // It ends with its last connection; others by that name without sharing are their own.
    assert!(open("file:attached-test?mode=memory").query("SELECT * FROM t", &[]).is_err());
    drop(a);
    assert_eq!(count(&b), 3);
    drop(b);
    assert!(open(name).query("SELECT * FROM t", &[]).is_err());
    let (a, b) = (open("file:/attached?vfs=memdb"), open("file:/attached?vfs=memdb"));
    a.execute_batch("CREATE TABLE t(v)").unwrap();
    assert_eq!(count(&b), 0);
}

#[test]
fn files_and_shared_memory_commit_together() {
    let dir = Folder::new("attach-mixed");
    let c = Connection::open(&dir.file("main.db")).unwrap();
    c.execute_batch("ATTACH 'file:mixed-test?mode=memory&cache=shared' AS m").unwrap();
    c.execute("ATTACH ? AS f", &[text(&dir.file("f.db"))]).unwrap();
    c.execute_batch("CREATE TABLE t(v); CREATE TABLE m.t(v); CREATE TABLE f.t(v)").unwrap();
    c.execute_batch(
        "BEGIN; INSERT INTO main.t VALUES(1); INSERT INTO m.t VALUES(1); INSERT INTO f.t VALUES(1); COMMIT",
    )
    .unwrap();
    c.execute_batch("BEGIN; DELETE FROM main.t; DELETE FROM m.t; DELETE FROM f.t; ROLLBACK").unwrap();
    for db in ["main", "m", "f"] {
        assert_eq!(c.query(&format!("SELECT count(*) FROM {db}.t"), &[]).unwrap()[0][0].to_int(), 1);
    }
    let mut names: Vec<_> = std::fs::read_dir(&dir.0).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["f.db", "main.db"]);
}

#[cfg(unix)]
#[test]
fn file_names_are_bytes() {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let dir = Folder::new("attach-bytes");
    let folder = dir.0.join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir(&folder).unwrap();
    let name = |n: &str| folder.join(n).into_os_string().into_vec();
    let c = Connection::open_interruptible(&name("m.db"), OpenFlags::default(), Default::default(), None)
        .unwrap();
    let at = Value::text(name("a.db")).unwrap();
    c.execute("ATTACH ? AS a", std::slice::from_ref(&at)).unwrap();
    c.execute_batch("CREATE TABLE t(v); CREATE TABLE a.t(v); PRAGMA a.journal_mode=WAL").unwrap();
    c.execute_batch("BEGIN; INSERT INTO t VALUES(1); INSERT INTO a.t VALUES(1); COMMIT").unwrap();
    let listed = c.query("PRAGMA database_list", &[]).unwrap();
    assert_eq!(*listed[1][2].text_bytes().unwrap(), *name("a.db"));
    assert_eq!(c.file_name("main").unwrap(), name("m.db"));
    c.execute("VACUUM INTO ?", &[Value::text(name("v.db")).unwrap()]).unwrap();
    let mut found: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect();
    found.sort();
    assert_eq!(found, ["a.db", "a.db-shm", "a.db-wal", "m.db", "v.db"]);
    c.close().unwrap();
    // A URI says the byte by its number.
    let uri = format!("file:{}/caf%e9/a.db", dir.0.to_str().unwrap());
    let c = Connection::open(&uri).unwrap();
    assert_eq!(c.query("SELECT v FROM t", &[]).unwrap()[0][0].to_int(), 1);
}

/// Root pages that a connection knows may be those of other tables when it copies them.
#[test]
fn vacuum_copies_the_tables_that_others_have_made() {
    let dir = Folder::new("vacuum-others");
    let (path, copy) = (dir.file("shared.db"), dir.file("copy.db"));
    let a = Connection::open(&path).unwrap();
    a.execute_batch("CREATE TABLE k(n INTEGER PRIMARY KEY); CREATE TABLE p(x)").unwrap();
    let b = Connection::open(":memory:").unwrap();
    b.execute("ATTACH ? AS other", &[text(&path)]).unwrap();
    let c = Connection::open(&path).unwrap();
    b.query("SELECT * FROM other.p", &[]).unwrap();
    c.query("SELECT * FROM p", &[]).unwrap();
    a.execute_batch(
        "DROP TABLE k; CREATE TABLE q(x); DROP TABLE p; CREATE TABLE k(n INTEGER PRIMARY KEY);
         INSERT INTO k VALUES(5), (7); INSERT INTO q VALUES('a'), ('b')",
    )
    .unwrap();
    let keys = |c: &Connection| {
        let rows = c.query("SELECT n FROM k", &[]).unwrap();
        rows.iter().map(|r| r[0].to_int()).collect::<Vec<_>>()
    };
    c.execute("VACUUM INTO ?", &[text(&copy)]).unwrap();
    assert_eq!(keys(&Connection::open(&copy).unwrap()), [5, 7]);
    b.execute("VACUUM other", &[]).unwrap();
    assert_eq!(keys(&a), [5, 7]);
}

#[test]
fn vacuum_keeps_the_size_of_pages_that_others_have_set() {
    let dir = Folder::new("vacuum-pages");
    let (path, copy) = (dir.file("shared.db"), dir.file("copy.db"));
    let (a, b) = (Connection::open(&path).unwrap(), Connection::open(&path).unwrap());
    a.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES(zeroblob(20000))").unwrap();
    b.query("SELECT length(x) FROM t", &[]).unwrap();
    let size =
        |c: &Connection| c.query("SELECT page_size FROM pragma_page_size", &[]).unwrap()[0][0].to_int();
    a.execute_batch("PRAGMA page_size = 512; VACUUM").unwrap();
    b.execute("VACUUM INTO ?", &[text(&copy)]).unwrap();
    assert_eq!(size(&Connection::open(&copy).unwrap()), 512);
    a.execute_batch("PRAGMA page_size = 1024; VACUUM").unwrap();
    b.execute_batch("VACUUM").unwrap();
    assert_eq!(size(&Connection::open(&path).unwrap()), 1024);

    // With a log the size stays, also for one that has not yet seen the log.
    a.query("PRAGMA journal_mode = wal", &[]).unwrap();
    b.execute_batch("PRAGMA page_size = 2048; VACUUM").unwrap();
    assert_eq!(size(&Connection::open(&path).unwrap()), 1024);
}
