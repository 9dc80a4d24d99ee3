//! Differences that are meant: each with the documentation page that leaves the outcome open or says why.

use super::pair::{Difference, Stmt};

/// One explanation.
pub struct Explained {
    /// In a few words.
    pub title: &'static str,
    /// The page, and what it says.
    pub page: &'static str,
    /// From then on the databases differ: the round ends.
    pub diverges: bool,
    applies: fn(&[Stmt], &Difference) -> bool,
}

/// All of them; at most ten.
pub const EXPLAINED: &[Explained] = &[
    Explained {
        title: "a whole number of a REAL column is a real",
        page: "datatype3, section 2: a REAL column forces integer values into floating point, and that they are stored \
               as integers is invisible; stock shows the integer where it reads a register instead of the row \
               (excluded., RETURNING, coalesce() of an outer join's column)",
        diverges: false,
        applies: |_, d| d.what == "rows" && d.ours.contains(".0") && whole(&d.ours) == whole(&d.stock),
    },
    Explained {
        title: "journal_mode = OFF and a statement that fails",
        page: "pragma, journal_mode: without a journal ROLLBACK behaves in an undefined way",
        diverges: true,
        applies: |script, d| d.failed && script.iter().any(|s| s.sql == "PRAGMA journal_mode = OFF"),
    },
    Explained {
        title: "which of several missing tables is named",
        page: "c3ref/errcode: the wording of messages is for people; stock goes on after a view that names a dropped \
               table, and names what it misses last",
        diverges: false,
        applies: |_, d| {
            let missing = |s: &str| s.starts_with("error 1: no such table: ");
            missing(&d.stock) && missing(&d.ours)
        },
    },
    Explained {
        title: "a LEFT JOIN with LIKE on an indexed column in ON",
        page: "lang_select, section 2.1: a LEFT JOIN adds a row of NULLs for each left row without a match; stock loses \
               those rows where ON has a LIKE that an index with the LIKE's collation serves",
        diverges: false,
        applies: |script, d| {
            let sql = &script.last().map_or("", |s| &s.sql);
            let like = script.iter().any(|s| s.sql.contains("LIKE '"));
            d.what == "rows" && sql.contains("LEFT JOIN") && like && d.stock.is_empty()
        },
    },
    Explained {
        title: "a statement that fails in its middle, where stock expects none to fail",
        page: "lang_conflict, ABORT: the statement's earlier changes are backed out; stock leaves the rows before a rowid \
               that is no integer or a value that a STRICT table refuses, and before triggers that recur too deeply under \
               OR IGNORE",
        diverges: true,
        applies: |_, d| {
            let (code, text) = d.before.as_ref().map_or((0, ""), |(c, t)| (*c, t.as_str()));
            let midway = matches!(code, 20 | 3091) || text == "too many levels of trigger recursion";
            matches!(d.what, "rows" | "state") && midway
        },
    },
    Explained {
        title: "the columns of a view whose tables are gone",
        page: "pragma, table_info and table_list: they tell of what the schema defines; stock remembers the columns that a \
               temporary view had before its tables went",
        diverges: false,
        applies: |script, d| {
            let sql = script.last().map_or("", |s| &s.sql);
            let gone = script.iter().any(|s| s.sql.starts_with("DROP TABLE") || s.sql.starts_with("ROLLBACK"));
            let asks = ["PRAGMA table_list", "table_info(", "table_xinfo("].iter().any(|w| sql.contains(w));
            asks && gone && (d.what == "rows" || d.ours.contains("no such table"))
        },
    },
    Explained {
        title: "a rowid chosen at random",
        page: "autoinc, section 2: where the largest rowid is taken, rowids are tried at random",
        diverges: true,
        applies: |_, d| d.what == "state" && random_rowids(&d.stock, &d.ours),
    },
];

/// Whether two states differ in nothing but `last_insert_rowid()`, and both look as drawn by lot.
fn random_rowids(a: &str, b: &str) -> bool {
    let parts = |s: &str| -> Vec<String> { s.split(", ").map(String::from).collect() };
    let (a, b) = (parts(a), parts(b));
    let drawn = |s: &str| s.parse::<i64>().is_ok_and(|n| n > 1 << 40 && n < i64::MAX);
    a.len() == 4 && b.len() == 4 && drawn(&a[2]) && drawn(&b[2]) && [0, 1, 3].iter().all(|&k| a[k] == b[k])
}

fn whole(rows: &str) -> String {
    rows.replace(".0", "")
}

/// The explanation of a difference, if there is one.
pub fn explain(script: &[Stmt], d: &Difference) -> Option<&'static Explained> {
    EXPLAINED.iter().find(|e| (e.applies)(script, d))
}
