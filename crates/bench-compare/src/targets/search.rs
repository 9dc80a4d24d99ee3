//! The targets of search: W10, W11, W12.

use super::{Found, NOT_RUN, Outcome, inverse, outcome};
use crate::envelope::{Envelope, Run};
use crate::stats::Ratio;

fn value(run: Option<&Run>, case: &str, engine: &str, by: f64, unit: &'static str) -> Found {
    let row = run.and_then(|r| r.rows.iter().find(|r| r.case == case && r.engine == engine));
    row.map_or(NOT_RUN, |r| {
        let s = r.summary;
        Found::AtMost(Ratio { value: s.median * by, low: s.q1 * by, high: s.q3 * by }, unit)
    })
}

/// As [`value`], where the run has so many rows: other sizes are other cases.
fn sized(run: Option<&Run>, size: &str, (case, engine): (&str, &str), by: f64, unit: &'static str) -> Found {
    let row = run.and_then(|r| r.row(case, size, engine));
    match row {
        Some(r) if r.more => {
            let s = r.summary;
            Found::Lead(Ratio { value: s.median * by, low: s.q1 * by, high: s.q3 * by })
        }
        Some(r) => {
            let s = r.summary;
            Found::AtMost(Ratio { value: s.median * by, low: s.q1 * by, high: s.q3 * by }, unit)
        }
        None => NOT_RUN,
    }
}

fn beside(run: Option<&Run>, case: &str, other: &str, unit: &'static str) -> Found {
    let Some(run) = run else { return NOT_RUN };
    let lead = run.rows.iter().find(|r| r.case == case && r.engine == "iolite");
    let lead = lead.and_then(|r| run.lead(case, &r.config, "iolite", other));
    inverse(lead.map_or(NOT_RUN, Found::Lead), unit)
}

/// Adds them.
pub(super) fn add(e: &Envelope, out: &mut Vec<Outcome>) {
    let v = e.run("vectors");
    let case = "W10: ten nearest, exact";
    out.push(outcome("W10: ten nearest of 10,000 x 384, exact", 0.06, value(v, case, "iolite", 1e-3, "ms")));
    for (other, unit) in [("usearch", "times usearch's time"), ("hnswlib", "times hnswlib's time")] {
        out.push(outcome(&format!("W10: the same beside {other}"), 1.0 / 3.0, beside(v, case, other, unit)));
    }
    let million = "1000000 x 128";
    let (near, inserts) = ("ten nearest, recall of 0.95", "rows inserted, 500 in a transaction");
    for (engine, index, time, build) in
        [("iolite, lists", "lists", 120.0, 15.0), ("iolite, graph", "a graph", 80.0, 90.0)]
    {
        for (what, case, want, by, unit) in [
            (format!("ten nearest by {index}, recall of 0.95"), near, time, 1.0, "us"),
            (format!("recall by {index}"), "recall", 0.95, 1.0, ""),
            (format!("build of {index}"), "build", build, 1.0, "s"),
            (format!("inserts by the thousand, {index}"), inserts, 5.0, 1e-3, ""),
            (format!("size with {index}"), "size beside the vectors' bytes", 1.3, 1.0, "times"),
        ] {
            let found = sized(v, million, (case, engine), by, unit);
            out.push(outcome(&format!("A million x 128: {what}"), want, found));
        }
    }
    let exact = sized(v, million, ("ten nearest, exact", "iolite"), 1e-3, "ms");
    out.push(outcome("A million x 128: ten nearest, exact", 4.0, exact));
    let t = e.run("text");
    for words in 1..=3 {
        let case = format!("W11: ten best, {words} words");
        out.push(outcome(&case, 0.3, value(t, &case, "iolite", 1e-3, "ms")));
    }
    let common = t.and_then(|r| r.row("ten best of a common word", "100000 matches", "iolite"));
    let common = common.map_or(NOT_RUN, |_| value(t, "ten best of a common word", "iolite", 1e-3, "ms"));
    out.push(outcome("Ten best of a word with 100,000 matches", 0.5, common));
    let hybrid = value(t, "W12: ten best of both", "iolite", 1e-3, "ms");
    out.push(outcome("W12: ten best of texts and vectors", 1.0, hybrid));
}
