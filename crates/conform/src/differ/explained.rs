//! Differences that are meant: each with the documentation page that leaves the outcome open or says why.

use super::pair::{Difference, Stmt};

/// One explanation.
pub struct Explained {
    /// In a few words.
    pub title: &'static str,
    /// The page, and what it says.
    pub page: &'static str,
    applies: fn(&[Stmt], &Difference) -> bool,
}

/// All of them; at most ten.
pub const EXPLAINED: &[Explained] = &[
    Explained {
        title: "a whole number of a REAL column is a real",
        page: "datatype3, section 2: a REAL column forces integer values into floating point, and that they are stored \
               as integers is invisible; stock shows the integer where it reads a register instead of the row \
               (excluded., RETURNING, coalesce() of an outer join's column)",
        applies: |_, d| d.what == "rows" && d.ours.contains(".0") && whole(&d.ours) == whole(&d.stock),
    },
    Explained {
        title: "journal_mode = OFF and a statement that fails",
        page: "pragma, journal_mode: without a journal ROLLBACK behaves in an undefined way",
        applies: |script, _| script.iter().any(|s| s.sql == "PRAGMA journal_mode = OFF"),
    },
    Explained {
        title: "which of several missing tables is named",
        page: "c3ref/errcode: the wording of messages is for people; stock goes on after a view that names a dropped \
               table, and names what it misses last",
        applies: |_, d| {
            let missing = |s: &str| s.starts_with("error 1: no such table: ");
            missing(&d.stock) && missing(&d.ours)
        },
    },
    Explained {
        title: "rowids after VACUUM",
        page: "lang_vacuum: it may change the rowids of tables without an INTEGER PRIMARY KEY; stock numbers them anew",
        applies: |script, d| {
            matches!(d.what, "rows" | "state")
                && script.iter().any(|s| s.kind == "vacuum")
                && script.last().is_some_and(|s| s.sql.contains("rowid"))
        },
    },
];

fn whole(rows: &str) -> String {
    rows.replace(".0", "")
}

/// The explanation of a difference, if there is one.
pub fn explain(script: &[Stmt], d: &Difference) -> Option<&'static Explained> {
    EXPLAINED.iter().find(|e| (e.applies)(script, d))
}
