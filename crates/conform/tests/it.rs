//! Texts of statements with their answers: `tests/sql/NAME.sql`, one statement a line, and `NAME.out` beside it.
//! `UPDATE=1` writes the answers anew; each was compared with stock SQLite's when it was written, which the second
//! test repeats. Both are run in rows, and in columns wherever they can be.

use iolite_conform::differ::pair::{Pair, Stmt};
use std::path::{Path, PathBuf};

mod damage;
mod drawn;
mod fts;
mod fts3;
mod pages;
mod query_plans;
mod rtree;
mod sessions;

fn scripts() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sql");
    let mut out: Vec<PathBuf> = std::fs::read_dir(dir)
        .expect("the folder of scripts")
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "sql"))
        .collect();
    out.sort();
    assert!(!out.is_empty());
    out
}

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("a script");
    text.lines().filter(|l| !l.is_empty() && !l.starts_with("--")).map(String::from).collect()
}

fn answer(c: &iolite::engine::Connection, sql: &str) -> String {
    let show = |v: &iolite::engine::Value| match v {
        iolite::engine::Value::Null => "NULL".to_string(),
        iolite::engine::Value::Int(i) => i.to_string(),
        iolite::engine::Value::Real(r) => format!("{r:?}"),
        iolite::engine::Value::Text(b, _) => format!("'{}'", String::from_utf8_lossy(b).escape_debug()),
        iolite::engine::Value::Blob(b, _) => {
            format!("x'{}'", b.iter().map(|x| format!("{x:02x}")).collect::<String>())
        }
    };
    match c.query(sql, &[]) {
        Ok(rows) => {
            rows.iter().map(|r| r.iter().map(show).collect::<Vec<_>>().join("|") + "\n").collect::<String>()
        }
        Err(e) => format!("error {}: {}\n", e.code().number(), e.message()),
    }
}

#[test]
fn answers() {
    answers_with("auto");
}

#[test]
fn answers_in_columns() {
    answers_with("force");
}

fn answers_with(analytics: &str) {
    for path in scripts() {
        let c = iolite::engine::Connection::open_in_memory().expect("a database in memory opens");
        c.execute_batch(&format!("PRAGMA analytics = {analytics}")).expect("a setting");
        let mut got = String::new();
        for sql in lines(&path) {
            let answer = answer(&c, &sql);
            assert!(
                !answer.contains("incomplete input"),
                "a statement has one line: {}: {sql}",
                path.display()
            );
            got += &format!("> {sql}\n{answer}");
        }
        let out = path.with_extension("out");
        if std::env::var_os("UPDATE").is_some() && analytics == "auto" {
            std::fs::write(&out, &got).expect("the answers can be written");
        }
        let expected = std::fs::read_to_string(&out).unwrap_or_default();
        assert_eq!(got, expected, "{}", path.display());
    }
}

#[test]
fn answers_are_stocks() {
    let mut found = String::new();
    for path in scripts() {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let dir = std::env::temp_dir().join(format!("iolite-conform-{}-{name}", std::process::id()));
        let mut pair = Pair::new(&dir, true);
        for sql in lines(&path) {
            let ordered = sql.contains("ORDER BY");
            let different = pair.run(&Stmt { ordered, ..Stmt::plain("test", sql.clone()) });
            // How many rows of its own tables a change of such a table changes is not compared.
            let own = ["fts", "rtree_", "geopoly"].iter().any(|n| name.starts_with(n));
            if let Some(d) = different.filter(|d| d.what != "state" || !own) {
                found += &format!("{name}: {sql}\n{}\nstock: {}\nours:  {}\n", d.what, d.stock, d.ours);
            }
        }
    }
    assert!(found.is_empty(), "{found}");
}
