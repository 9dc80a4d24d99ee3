//! The targets of the rows' issue, each with what an envelope says about it. A target without figures is open, not left out.

use crate::envelope::{Envelope, Row, Run};
use crate::html::figure;
use crate::stats::{self, Ratio};
use iolite_bench::cases;

/// A target and what was reached.
pub struct Outcome {
    /// What it is about.
    pub what: String,
    /// What is wanted.
    pub want: String,
    /// What was reached.
    pub reached: String,
    /// Between which quartiles.
    pub spread: String,
    /// `met`, `missed`, `missing`.
    pub verdict: &'static str,
}

/// What a comparison gave: a lead to be at least, or a figure to be at most.
enum Found {
    Lead(Ratio),
    AtMost(Ratio, &'static str),
    Nothing(&'static str),
}

fn outcome(what: &str, want: f64, found: Found) -> Outcome {
    let verdict = |ok: bool| if ok { "met" } else { "missed" };
    let what = what.to_string();
    match found {
        Found::Lead(r) => Outcome {
            what,
            want: format!("at least {want} times"),
            reached: format!("{} times", figure(r.value)),
            spread: format!("{} to {}", figure(r.low), figure(r.high)),
            verdict: verdict(r.value >= want),
        },
        Found::AtMost(r, unit) => Outcome {
            what,
            want: format!("at most {want} {unit}"),
            reached: format!("{} {unit}", figure(r.value)),
            spread: format!("{} to {}", figure(r.low), figure(r.high)),
            verdict: verdict(r.value <= want),
        },
        Found::Nothing(why) => Outcome {
            what,
            want: if want > 0.0 { format!("{want} times") } else { String::new() },
            reached: why.into(),
            spread: String::new(),
            verdict: "missing",
        },
    }
}

const NOT_RUN: Found = Found::Nothing("not measured in this run");

fn lead(run: Option<&Run>, case: &str, config: &str, other: &str) -> Found {
    run.and_then(|r| r.lead(case, config, "iolite", other)).map_or(NOT_RUN, Found::Lead)
}

/// The worst lead among the cases that are chosen.
fn worst(run: Option<&Run>, other: &str, choose: impl Fn(&Row) -> bool) -> Found {
    let Some(run) = run else { return NOT_RUN };
    let own = run.rows.iter().filter(|r| r.engine == "iolite" && choose(r));
    let leads = own.filter_map(|r| run.lead(&r.case, &r.config, "iolite", other));
    leads.min_by(|a, b| a.value.total_cmp(&b.value)).map_or(NOT_RUN, Found::Lead)
}

/// `a - b` of samples taken in the same turn.
fn difference(a: Option<&Row>, b: Option<&Row>) -> Option<Ratio> {
    let (a, b) = (a?, b?);
    let d: Vec<f64> = a.samples.iter().zip(&b.samples).map(|(a, b)| a - b).collect();
    let s = stats::summary(&d);
    Some(Ratio { value: s.median, low: s.q1, high: s.q3 })
}

/// All targets.
pub fn outcomes(e: &Envelope) -> Vec<Outcome> {
    let mut out = Vec::new();
    let row = e.run("row");
    for (case, want) in [
        ("point", 2.5),
        ("unique", 2.0),
        ("point-delete", 1.5),
        ("unique-delete", 1.5),
        ("update-normal", 1.5),
        ("insert-normal", 1.5),
        ("w5", 1.5),
        ("join", 1.5),
        ("insert", 1.5),
        ("index-integer", 1.5),
        ("index-text", 1.5),
        ("range", 1.5),
        ("sum", 1.5),
        ("group", 5.0),
    ] {
        let title = cases::find_case(case).map_or(case, |c| c.title);
        out.push(outcome(title, want, lead(row, title, "", "stock")));
    }
    for case in ["update-full", "insert-full"] {
        let title = cases::find_case(case).map_or(case, |c| c.title);
        let d = row
            .and_then(|r| difference(r.row(title, "", "iolite"), r.row(title, "", "append and fdatasync")));
        let what = format!("{title}: above a bare append and fdatasync");
        out.push(outcome(&what, 10.0, d.map_or(NOT_RUN, |d| Found::AtMost(d, "us"))));
    }
    let tatp = e.run("tatp");
    for (config, want) in [("WAL NORMAL", 2.0), ("DELETE FULL", 1.0)] {
        let found = worst(tatp, "stock", |r| {
            r.case == "transactions" && r.config.starts_with(config) && !r.config.contains("threads")
        });
        out.push(outcome(&format!("TATP, {config}, one client"), want, found));
    }
    let same = tatp.map_or(NOT_RUN, |r| {
        let calls = |engine: &str| {
            let (_, t) = r.texts.iter().find(|(n, _)| n.ends_with(&format!("DELETE FULL, {engine}")))?;
            let n = |name: &str| {
                let p = t.split(", ").find_map(|p| p.strip_prefix(name));
                p.and_then(|p| p.trim().parse::<f64>().ok()).unwrap_or(0.0)
            };
            Some(n("fdatasync ") + n("fsync "))
        };
        match (calls("iolite"), calls("stock")) {
            (Some(a), Some(b)) if b > 0.0 => {
                Found::AtMost(Ratio { value: a / b, low: a / b, high: a / b }, "times stock's syncs")
            }
            _ => NOT_RUN,
        }
    });
    out.push(outcome("TATP, DELETE FULL: syncs, by strace", 1.0, same));
    let eight = |r: &Row| r.case == "transactions" && r.config.contains("8 threads");
    out.push(outcome("TATP, 8 threads, WAL FULL", 4.0, worst(tatp, "stock", eight)));
    let web = e.run("web");
    for n in [2, 4, 8] {
        let config = format!("{n} processes, connection kept");
        out.push(outcome(&format!("Web mix, {n} processes"), 1.5, lead(web, "requests", &config, "stock")));
        out.push(outcome(
            &format!("Web mix, {n} processes, p99 of open loop"),
            1.0,
            lead(web, "p99", &config, "stock"),
        ));
    }
    for n in [2, 4, 8] {
        let config = format!("{n} threads, connection kept");
        out.push(outcome(
            &format!("Web mix, {n} threads of one process"),
            2.0,
            lead(web, "requests", &config, "stock"),
        ));
    }
    let kv = e.run("kv");
    let plain = |r: &Row| r.case == "insert" || r.case == "select";
    out.push(outcome("Key-value: worst cell beside SQLite", 1.0, worst(kv, "stock", plain)));
    let safe = |r: &Row| plain(r) && r.config.starts_with("transactional");
    out.push(outcome(
        "Key-value: worst transactional cell beside Berkeley DB",
        1.0,
        worst(kv, "berkeley", safe),
    ));
    let behind = match worst(kv, "lmdb", |r| r.case == "select" && r.config.contains("64-bit")) {
        Found::Lead(r) => Found::AtMost(
            Ratio { value: 1.0 / r.value, low: 1.0 / r.high, high: 1.0 / r.low },
            "times LMDB's",
        ),
        other => other,
    };
    out.push(outcome("Key-value: point read, worst cell", 2.0, behind));
    let growth = kv.map_or(NOT_RUN, |r| {
        let of = |n: &str| {
            r.rows.iter().find(|x| {
                x.engine == "iolite"
                    && x.case == "insert, last tenth"
                    && x.config == format!("transient, 64-bit keys, {n}")
            })
        };
        match (of("50000"), of("5000")) {
            (Some(a), Some(b)) => stats::ratio(&a.samples, &b.samples)
                .map_or(NOT_RUN, |r| Found::AtMost(r, "times (50,000 rows beside 5,000)")),
            _ => NOT_RUN,
        }
    });
    out.push(outcome("Key-value: autocommit into a transient database as it grows", 1.5, growth));
    let blob = e.run("blob");
    out.push(outcome("Blob of 10 MB: read, WAL", 3.0, lead(blob, "10 MB: read", "WAL FULL", "stock")));
    out.push(outcome("Blob of 10 MB: write, WAL", 1.5, lead(blob, "10 MB: write", "WAL FULL", "stock")));
    out.push(outcome(
        "Blob of 10 MB: write with large_value_direct",
        3.0,
        Found::Nothing("the pragma does not exist yet"),
    ));
    out.push(outcome("Blob of 100 KB: read, WAL", 1.0, lead(blob, "100 KB: read", "WAL FULL", "stock")));
    out.push(outcome("Blob of 100 KB: write, WAL", 1.0, lead(blob, "100 KB: write", "WAL FULL", "stock")));
    let beside_file = match lead(blob, "100 KB: write", "WAL FULL", "file") {
        Found::Lead(r) => Found::AtMost(
            Ratio { value: 1.0 / r.value, low: 1.0 / r.high, high: 1.0 / r.low },
            "times the file's",
        ),
        other => other,
    };
    out.push(outcome("Blob of 100 KB: write, WAL, beside a file", 1.3, beside_file));
    out.push(outcome(
        "CSV import of lineorder by the shell",
        3.0,
        lead(e.run("load"), "CSV import", "", "stock"),
    ));
    out.push(outcome(
        "Write queue and group commit",
        0.0,
        Found::Nothing("`Database::writer()` does not exist yet"),
    ));
    let size = e.run("footprint").and_then(|r| r.row("library, stripped", "", "iolite"));
    let size = size.map_or(NOT_RUN, |r| {
        let m = r.summary.median;
        Found::AtMost(Ratio { value: m, low: m, high: m }, "MB (with columnar; there is no switch)")
    });
    out.push(outcome("Library, stripped", 2.0, size));
    out
}

/// The table in Markdown.
pub fn table(e: &Envelope) -> String {
    let mut out = String::from("| target | wanted | reached | spread | verdict |\n|---|---|---|---|---|\n");
    for o in outcomes(e) {
        out.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            o.what, o.want, o.reached, o.spread, o.verdict
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_without_figures_is_missing_and_one_with_them_is_judged() {
        let mut e = Envelope::default();
        assert!(outcomes(&e).iter().all(|o| o.verdict == "missing"));
        let mut run = Run { workload: "row".into(), ..Run::default() };
        let title = cases::find_case("point").unwrap().title;
        run.less(title, "", "iolite", "us", vec![1.0, 1.0, 1.0]);
        run.less(title, "", "stock", "us", vec![2.6, 2.5, 2.7]);
        e.runs.push(run);
        let first = &outcomes(&e)[0];
        assert_eq!((first.verdict, first.reached.as_str()), ("met", "2.60 times"));
    }
}
