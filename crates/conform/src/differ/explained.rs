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
               (excluded., RETURNING, coalesce() of an outer join's column, a generated column), and may store it elsewhere",
        diverges: true,
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
        title: "an outer join with LIKE on an indexed column in ON",
        page: "lang_select, section 2.1: an outer join adds a row of NULLs for each row without a match; stock loses \
               those rows where ON has a LIKE that an index with the LIKE's collation serves",
        diverges: true,
        applies: |script, d| {
            // Both in the statement itself, or in a view.
            let joins = ["LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "OUTER JOIN"];
            let both = |s: &Stmt| joins.iter().any(|j| s.sql.contains(j)) && s.sql.contains(" LIKE ");
            let outer_like = script.last().is_some_and(both)
                || script.iter().filter(|s| s.kind == "create view").any(both);
            // Aggregates of no rows are NULL; what was to be inserted is counted, and a NULL may be refused.
            let lost = d.what == "rows"
                && (d.stock.is_empty() || d.stock.trim_end().split('|').all(|v| v == "NULL"));
            let refused =
                d.what == "error" && d.stock == "ok" && d.ours.contains("NOT NULL constraint failed");
            outer_like && (lost || refused || d.what == "state")
        },
    },
    Explained {
        title: "a statement that fails in its middle, where stock expects none to fail",
        page: "lang_conflict, ABORT: the statement's earlier changes are backed out; stock leaves the rows before a rowid \
               that is no integer or a value that a STRICT table refuses, and before triggers that recur too deeply under \
               OR IGNORE; lang_transaction, section 3: after SQLITE_FULL, the whole transaction may be rolled back, as \
               stock does under OR IGNORE and REPLACE",
        diverges: true,
        applies: |_, d| {
            let (code, text) = d.before.as_ref().map_or((0, ""), |(c, t)| (*c, t.as_str()));
            let midway = matches!(code, 13 | 20 | 3091) || text == "too many levels of trigger recursion";
            matches!(d.what, "rows" | "state") && midway
        },
    },
    Explained {
        title: "the columns of a view whose tables are gone",
        page: "pragma, table_info and table_list: they tell of what the schema defines; stock remembers the columns that a \
               temporary view had before its tables went, and refuses to change such a view before it looks for them",
        diverges: false,
        applies: |script, d| {
            let sql = script.last().map_or("", |s| &s.sql);
            let ends = ["DROP TABLE", "DROP VIEW", "ROLLBACK"];
            let gone = script.iter().any(|s| ends.iter().any(|w| s.sql.starts_with(w)));
            let asks = ["PRAGMA table_list", "table_info(", "table_xinfo(", "INDEXED BY nosuch"]
                .iter()
                .any(|w| sql.contains(w));
            let refused = d.stock.contains(" because it is a view");
            (asks || refused) && gone && (d.what == "rows" || d.ours.contains("no such table"))
        },
    },
    Explained {
        title: "NULL in a set that a descending index holds",
        page: "lang_expr, the IN and NOT IN operators: the result is NULL where the set holds a NULL and not the value; \
               stock looks for the NULL at the front of the index, and a descending index has it at the end",
        diverges: true,
        applies: |script, d| {
            // In the statement itself, in a view or trigger, or in what changed the table that is dumped.
            let asks = |s: &Stmt| s.sql.contains(" IN ");
            let inside = |s: &Stmt| matches!(s.kind, "create view" | "create trigger") && asks(s);
            let dumped = script.last().is_some_and(|s| s.kind == "dump");
            let refused =
                d.what == "error" && [&d.stock, &d.ours].iter().any(|s| s.contains("constraint failed"));
            (refused || matches!(d.what, "rows" | "state"))
                && (script.last().is_some_and(asks) || script.iter().any(|s| inside(s) || dumped && asks(s)))
                && script.iter().any(|s| descending_first(&s.sql))
        },
    },
    Explained {
        title: "a condition on UNION ALL in FROM with a RIGHT or FULL JOIN in one of its arms",
        page: "lang_select, section 2.2: rows for which the WHERE clause is not true are left out; stock flattens such a query, and \
               shows rows of other arms for which it is not",
        diverges: true,
        applies: |script, d| d.what == "rows" && filters_arms_with_outer_joins(script),
    },
    Explained {
        title: "a rowid chosen at random",
        page: "autoinc, section 2: where the largest rowid is taken, rowids are tried at random",
        diverges: true,
        applies: |script, d| {
            let told = script.last().is_some_and(|s| s.sql.contains("RETURNING") || s.kind == "dump");
            (d.what == "state" || d.what == "rows" && told) && random_rowids(&d.stock, &d.ours)
        },
    },
    Explained {
        title: "which of several equal values stands for them",
        page: "lang_select, sections 2.5, 2.6 and 3: rows are grouped, and duplicates removed, where values are equal, as 1 \
               and 1.0 are, and 'a' and 'A' under NOCASE; no page says which of them is shown",
        diverges: false,
        applies: |script, d| {
            let words = [" UNION ", " EXCEPT ", " INTERSECT ", " DISTINCT ", " GROUP BY "];
            let removes = |s: &Stmt| words.iter().any(|w| s.sql.contains(w));
            let last = script.last();
            let views = || script.iter().filter(|s| s.kind == "create view").any(removes);
            d.what == "rows"
                && last.is_some_and(|s| removes(s) || s.sql.contains("view") && views())
                && equal_values(&d.stock, &d.ours)
        },
    },
];

/// Whether the rows are the same but for values that compare equal.
fn equal_values(a: &str, b: &str) -> bool {
    let equal = |x: &str, y: &str| match (x.parse::<f64>(), y.parse::<f64>()) {
        (Ok(p), Ok(q)) => p == q,
        _ => {
            let text = |s: &str| s.trim_matches('\'').trim_end().to_ascii_lowercase();
            text(x) == text(y)
        }
    };
    // In the order of the values' text, another of them may stand elsewhere.
    let rows = |s: &str| -> Vec<String> {
        let mut lines: Vec<String> = s.lines().map(str::to_ascii_lowercase).collect();
        lines.sort();
        lines.join("|").split('|').map(String::from).collect()
    };
    let (a, b) = (rows(a), rows(b));
    a.len() == b.len() && a.iter().zip(&b).all(|(x, y)| equal(x, y))
}

/// Whether the last statement filters a query in FROM, of its own or a view, that has UNION ALL and such a join.
fn filters_arms_with_outer_joins(script: &[Stmt]) -> bool {
    let Some((last, before)) = script.split_last() else { return false };
    let arms =
        |s: &str| s.contains(" UNION ALL ") && [" RIGHT JOIN ", " FULL "].iter().any(|w| s.contains(w));
    let view = |s: &&Stmt| s.kind == "create view" && s.sql.contains(" UNION ALL ");
    let mut all = last.sql.clone();
    before.iter().filter(view).for_each(|s| all += &s.sql);
    [" WHERE ", " ON "].iter().any(|w| last.sql.contains(w)) && arms(&all)
}

/// Whether a statement makes an index whose first field descends.
fn descending_first(sql: &str) -> bool {
    let Some(list) = sql.strip_prefix("CREATE").and_then(|s| s.split_once('(')) else { return false };
    let first = list.1.split([',', ')']).next().unwrap_or("");
    sql.contains("INDEX") && first.contains("DESC") || sql.contains("PRIMARY KEY") && sql.contains("DESC")
}

/// Whether the two differ in nothing but numbers that look drawn by lot.
fn random_rowids(a: &str, b: &str) -> bool {
    let parts = |s: &str| -> Vec<String> { s.split([',', ' ', '|', '\n']).map(String::from).collect() };
    let (a, b) = (parts(a), parts(b));
    let drawn = |s: &str| s.parse::<i64>().is_ok_and(|n| n > 1 << 40 && n < i64::MAX);
    a.len() == b.len() && a.iter().zip(&b).all(|(x, y)| x == y || drawn(x) && drawn(y))
}

fn whole(rows: &str) -> String {
    rows.replace(".0", "")
}

/// The explanation of a difference, if there is one.
pub fn explain(script: &[Stmt], d: &Difference) -> Option<&'static Explained> {
    EXPLAINED.iter().find(|e| (e.applies)(script, d))
}
