//! What the planner thinks of the loops of a block, as far as the choice between rows and columns needs it.
//!
//! What it does not know: columns.

use iolite_plan::plan::{Access, Bloom, CorePlan, Distinct, Grouping, Level};

/// Nanoseconds for a row that is sought.
pub(crate) const SEEK: f64 = 800.0;
/// For the next entry of an index, or the next row.
const STEP: f64 = 85.0;
/// For the next entry of an index that covers the query.
pub(crate) const ENTRY: f64 = 40.0;
/// For a value of an index that is sought behind the one before it.
const PASSED: f64 = 450.0;
/// For a row that a Bloom filter is asked about.
const ASKED: f64 = 40.0;
/// For a row of the result, and for each of its aggregates.
const ROW: f64 = 30.0;
/// For a row whose group is looked up.
const GROUPED: f64 = 300.0;

/// What the loops of an arm are estimated to take.
#[derive(Clone, Copy, Default)]
pub(crate) struct Loops {
    /// They begin with all rows of their first table.
    pub scans: bool,
    /// They are one, which goes through an index and seeks each row of the table by it.
    pub jumps: bool,
    /// All else, in nanoseconds.
    pub rest: f64,
    /// How often the innermost one goes round.
    pub rounds: f64,
    /// Rows that come out of the first one.
    pub first: f64,
    /// The first one walks a range of rowids.
    pub ranges: bool,
    /// It does, and there is no other.
    pub walks: bool,
    /// The first one seeks rows by an index; nanoseconds for each.
    pub seeks: bool,
    pub each: f64,
    /// The only one seeks one value after the other.
    pub passes: bool,
    /// They deliver one group, one of the different rows, or one row with its windows' values after the other: whoever wants
    /// few need not go through all.
    pub streams: bool,
    /// How wide the entries of a covering index are beside the table's rows; 1 where the table is scanned.
    pub width: f64,
}

impl Loops {
    /// Those of a plan.
    pub fn of(c: &CorePlan) -> Loops {
        let (mut rest, mut rounds, mut scans) = (0.0, 1.0f64, false);
        for (i, l) in c.levels.iter().enumerate() {
            let all = matches!(l.access, Access::Scan { .. } | Access::IndexScan { .. });
            match (i, all) {
                // Each row of the table is sought by itself.
                (_, _) if matches!(l.access, Access::IndexScan { covering: false, .. }) => {
                    rest = f64::INFINITY
                }
                (0, true) => scans = true,
                // Again and again through a whole table: never the faster way.
                (_, true) => rest += f64::INFINITY,
                _ if l.bloom != Bloom::None => rest += rounds * (ASKED + l.rows * SEEK),
                _ => rest += rounds * (SEEK + (l.rows - 1.0).max(0.0) * found(l)),
            }
            rounds *= l.rows.max(0.01);
        }
        let grouped = if c.grouping == Grouping::Hash { GROUPED } else { 0.0 };
        rest += rounds * (ROW * (1 + c.aggs.len()) as f64 + grouped);
        if let Some(p) = c.passes {
            (scans, rest) = (false, p.values * PASSED);
        }
        let ranges = matches!(c.levels.first(), Some(l) if matches!(l.access, Access::RowidRange { .. }));
        let walks = ranges && c.levels.len() == 1;
        let jumps =
            matches!(&c.levels[..], [l] if matches!(l.access, Access::IndexScan { covering: false, .. }));
        let seeks = matches!(c.levels.first(), Some(l) if matches!(l.access, Access::Index(_)));
        let streams =
            c.grouping == Grouping::Ordered || matches!(c.distinct, Distinct::Unique | Distinct::Adjacent);
        let windows = c.window.as_ref().is_some_and(|w| w.delivered().is_some());
        let first = c.levels.first().map_or(1.0, |l| l.rows.max(0.01));
        let width = c.levels.first().map_or(1.0, width);
        let each = c.levels.first().map_or(SEEK, found);
        let (passes, streams) = (c.passes.is_some(), streams || windows);
        Loops { scans, jumps, rest, rounds, first, ranges, walks, seeks, each, passes, streams, width }
    }
}

/// Nanoseconds for each further row that a search finds.
fn found(l: &Level) -> f64 {
    match &l.access {
        Access::Index(a) if a.covering => ENTRY,
        Access::RowidRange { .. } => STEP,
        _ => SEEK,
    }
}

/// The width of what a scan goes through, beside that of the table.
fn width(l: &Level) -> f64 {
    match (&l.access, l.source.table()) {
        (Access::IndexScan { index, covering: true, .. }, Some((_, t))) => {
            ((index.columns.len() + 1) as f64 / t.columns.len().max(1) as f64).clamp(0.08, 1.0)
        }
        _ => 1.0,
    }
}
