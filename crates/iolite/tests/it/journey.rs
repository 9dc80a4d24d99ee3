//! The journeys of statements, as ARCHITECTURE.md tells them.

use iolite::engine::{Connection, stages};

const SCHEMA: &str =
    "CREATE TABLE album(id INTEGER PRIMARY KEY, title TEXT, artist_id INTEGER, year INTEGER);
    CREATE TABLE artist(id INTEGER PRIMARY KEY, name TEXT);
    CREATE INDEX album_year ON album(year);";
const LOG: &str = "CREATE TABLE log(id INTEGER PRIMARY KEY, what TEXT);
    CREATE TRIGGER renamed AFTER UPDATE OF title ON album BEGIN INSERT INTO log(what) VALUES(old.title); END;";
const QUERY: &str = "SELECT title, name FROM album JOIN artist ON artist.id = artist_id WHERE year BETWEEN 1970 AND 1979 ORDER BY name";
const WRITE: &str = "UPDATE album SET title = upper(title) WHERE year = 1977";

/// Holds what stands between the fences of a block of ARCHITECTURE.md against what happens now.
fn compare(text: &str, block: &str, now: &str) -> String {
    let fence = format!("```{block}\n");
    let (before, rest) = text.split_once(&fence).expect("ARCHITECTURE.md has the block");
    let (shown, after) = rest.split_once("```").expect("the block ends");
    if std::env::var_os("UPDATE").is_none() {
        assert!(shown == now, "the journey has changed; UPDATE=1 refreshes ARCHITECTURE.md:\n{now}");
    }
    format!("{before}{fence}{now}```{after}")
}

#[test]
fn architecture_md_tells_what_happens() {
    let conn = Connection::open_in_memory().unwrap();
    // Loops alone: builds without columns make this program, too.
    conn.execute_batch("PRAGMA analytics = off").unwrap();
    conn.execute_batch(SCHEMA).unwrap();
    let query = stages(&conn, QUERY).unwrap();
    conn.execute_batch(LOG).unwrap();
    let write = stages(&conn, WRITE).unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ARCHITECTURE.md");
    let text = std::fs::read_to_string(path).unwrap();
    let told = compare(&compare(&text, "journey", &query), "write", &write);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, told).unwrap();
    }
}
