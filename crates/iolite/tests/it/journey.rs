//! The journey of one statement, as ARCHITECTURE.md tells it.

use iolite::engine::{Connection, stages};

const SCHEMA: &str =
    "CREATE TABLE album(id INTEGER PRIMARY KEY, title TEXT, artist_id INTEGER, year INTEGER);
    CREATE TABLE artist(id INTEGER PRIMARY KEY, name TEXT);
    CREATE INDEX album_year ON album(year);";
const QUERY: &str = "SELECT title, name FROM album JOIN artist ON artist.id = artist_id WHERE year BETWEEN 1970 AND 1979 ORDER BY name";

#[test]
fn architecture_md_tells_what_happens() {
    let conn = Connection::open_in_memory().unwrap();
    conn.execute_batch(SCHEMA).unwrap();
    let now = stages(&conn, QUERY).unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ARCHITECTURE.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (before, rest) = text.split_once("```journey\n").expect("ARCHITECTURE.md has the block");
    let (shown, after) = rest.split_once("```").expect("the block ends");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, format!("{before}```journey\n{now}```{after}")).unwrap();
        return;
    }
    assert!(shown == now, "the journey has changed; UPDATE=1 refreshes ARCHITECTURE.md:\n{now}");
}
