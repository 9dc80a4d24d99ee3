//! The cost model: one unit is about one step of a cursor.
//!
//! The relations between the numbers follow what SQLite's documentation tells of its planner (pages
//! `queryplanner-ng`, `optoverview`); absolute values mean nothing.

use iolite_catalog::{Column, ColumnSource, Index, IndexColumn, Table};

/// Reading one row of a table in a full scan, relative to a step in an index.
pub const TABLE_ROW: f64 = 3.0;

/// Finding the first entry in a tree of `rows` entries.
pub fn seek(rows: f64) -> f64 {
    (rows.max(2.0)).log2()
}

/// Sorting `rows` rows, each compared with those of `kept` that are kept.
pub fn sort(rows: f64, kept: f64) -> f64 {
    let n = rows.max(2.0);
    n * kept.clamp(2.0, n).log2() * 2.0
}

/// What a sort that keeps some of its rows costs beside what its comparisons do.
pub const LIMITED: f64 = 2.0;

/// How much of that is left where rows come in groups that are in order already: when the groups so far have enough rows, the run ends. (SQLite thinks it to
/// be half as much again.)
pub const EARLY: f64 = 0.5;

/// One step in an index over a table: nearly a step in the table where its entries are thought to be as long as the
/// rows, less the shorter they are; and whether they are shorter.
pub fn index_step(index: &Index, table: &Table) -> (f64, bool) {
    *index.step.get_or_init(|| {
        let (entry, row) = (entry_width(index, table), row_width(table));
        // In tenths of a doubling, cut off as SQLite does: an entry that is shorter by little makes a step of its own.
        let tenths = 1 + 15 * tenths(4 * entry) / tenths(4 * row);
        ((f64::from(tenths) / 10.0).exp2().min(TABLE_ROW), entry < row)
    })
}

/// The logarithm to base 2 of a number from 4 on, in tenths, by its first four bits.
fn tenths(x: u32) -> u32 {
    let doublings = x.ilog2();
    let eighths = (x << 3 >> doublings) & 7;
    10 * doublings + [0, 2, 3, 5, 6, 7, 8, 9][eighths as usize]
}

fn entry_width(index: &Index, table: &Table) -> u32 {
    let of = |c: &IndexColumn| match c.source {
        ColumnSource::Column(k) => width(&table.columns[k]),
        _ => 1,
    };
    index.columns.iter().map(of).sum()
}

fn row_width(table: &Table) -> u32 {
    table.columns.iter().map(width).sum::<u32>() + table.rowid_alias.is_none() as u32
}

/// A column's width in units of four bytes: as declared, else 16 bytes for what may be text.
fn width(c: &Column) -> u32 {
    if c.decltype.is_empty() || c.affinity.is_numeric() {
        return 1;
    }
    let from = c.decltype.find(|c: char| c.is_ascii_digit()).unwrap_or(c.decltype.len());
    let digits = c.decltype[from..].split(|c: char| !c.is_ascii_digit()).next();
    let bytes = digits.and_then(|d| d.parse().ok()).unwrap_or(16u32);
    (bytes / 4 + 1).min(255)
}

/// Each one-sided bound leaves a quarter of the rows.
pub const RANGE: f64 = 0.25;

/// A range that ends on both sides leaves so much of what each of its ends would.
pub const CLOSED_RANGE: f64 = 0.25;

/// A full scan is dearer than its steps say: it throws other pages out of the cache.
pub const SCAN_PENALTY: f64 = 1.0;

/// A skip-scan pays where each value that is passed over has so many entries, as SQLite's documentation says (page
/// `optoverview`, section 6).
pub const SKIPPED_ROWS: f64 = 18.0;

/// Seeking the next of the distinct results pays where so many entries have each alike.
pub const PASSED_ROWS: f64 = 12.0;

/// A seek of a skip-scan: the next value is sought as well.
pub const SKIP: f64 = 1.4;

/// Rows expected where there were none when they were counted.
pub const FEW_ROWS: f64 = 10.0;

/// How much of the rows a condition leaves that drives no index: an equality with a small constant says less than
/// one with another value.
pub fn residual(equality: Option<Option<i64>>) -> f64 {
    match equality {
        Some(Some(-1..=1)) => 0.5,
        Some(_) => 0.25,
        None => RESIDUAL,
    }
}

/// How much of the rows a condition leaves of which nothing is known.
pub const RESIDUAL: f64 = 0.93;

/// Building an automatic index over `rows` rows.
pub fn auto_index_setup(rows: f64, stored: bool) -> f64 {
    let n = rows.max(2.0);
    n * n.log2() * if stored { 0.35 } else { 7.0 }
}

/// A nested query that depends on those around is not thought to run more often: what an automatic index costs is to be
/// paid back by then.
pub const MOST_RUNS: f64 = 28.0;

/// Rows expected from a lookup in an automatic index.
pub const AUTO_INDEX_ROWS: f64 = 20.0;

/// Rows expected from a query in FROM of which nothing better is known.
pub const QUERY_ROWS: f64 = 1000.0;
