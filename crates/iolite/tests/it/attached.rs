//! ATTACH, DETACH and VACUUM INTO: what names may be, and what an attached database takes over from its connection.

use iolite::{Connection, Value};
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
