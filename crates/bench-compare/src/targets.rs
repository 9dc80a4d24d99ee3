//! The targets of the engine's issues about speed, each with what an envelope says about it. A target without figures is open, not left out.

mod search;

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

impl Outcome {
    /// For a missed target: what was tried, and what stands in the way by the profile.
    pub fn behind(&self) -> &'static str {
        let of = BEHIND.iter().find(|b| self.what.starts_with(b.0));
        of.filter(|_| self.verdict == "missed").map_or("", |b| b.1)
    }
}

/// By the beginning of a target's name: what stands behind it where it is missed. `docs/performance.md` tells it at length.
const BEHIND: &[(&str, &str)] = &[
    (
        "UPDATE by key, commit each, WAL NORMAL, checkpoints",
        "half of the processor time is the kernel's: pwrite 19 %, telling it to write early 18 %, locks 7.5 % (stock 14 %). Tried: not writing \
         early, which is faster at best and slower in the median",
    ),
    ("W5: read and UPDATE in turn, WAL NORMAL, checkpoints", "as the UPDATE with checkpoints in its thread"),
    (
        "W9: ",
        "1,600 instructions a row, of them two seeks 60 %. Tried: first cells guessed, spans of roots kept, copies without overlap (17.1 to \
         16.0 million instructions, 2.3 to 1.8 ms)",
    ),
    (
        "bulk insert",
        "keys of the unique index come in no order: 12 % of the time waits for memory in their search, 16 % of the instructions are the \
         interpreter's, 9 % seeks, 8 % records. Tried: cursors that begin where the last stood, cells spread evenly (883 to 737 million \
         instructions, stock 764)",
    ),
    (
        "UPDATE by key, commit each, WAL FULL",
        "two or three frames are written where the bare write has one; the spread of the disk's syncs is wider than the difference",
    ),
    ("insert of one row, commit each, WAL FULL", "as the UPDATE"),
    (
        "TATP, WAL NORMAL",
        "six tenths of the time are writes, of which the kernel takes half (pwrite, four lock calls). Tried: records patched instead of \
         decoded and encoded (UPDATE of one of 34 columns), rows found by a unique index deleted where they are found",
    ),
    (
        "TATP, DELETE FULL, one client",
        "the same syncs in the same order are four fifths of the time; the rest is lost in their spread",
    ),
    (
        "TATP, 8 threads",
        "two cores: 50 us of processor time for a commit and the four reads before it, 30 us of each sync. Tried: waking each waiter alone, \
         syncs that wait for those about to append only where syncs are long, pages shared across lives of the log. The write queue's \
         thread waits for each sync",
    ),
    (
        "Web mix, a connection for each request",
        "schema and statements are compiled for each request: 1.22 times stock's instructions, 1.76 before built-in functions were made when \
         asked for, and schema and statistics read in one go with fewer allocations",
    ),
    (
        "Web mix",
        "both cores are busy to 90 %: caches, and pages that others have changed. Tried: word of changed pages across lives of the log, pages \
         shared by connections: a ninth of the preads is left",
    ),
    (
        "Key-value: worst cell beside SQLite",
        "the same two lock calls, stat and pread as stock's; a search in the index, then in the table. Tried: search by a key's first \
         eight bytes",
    ),
    (
        "Key-value: worst transactional cell",
        "a SELECT alone in rollback mode takes two lock calls, a stat and a pread, 3.6 us, which the file format asks for; the log mode is \
         measured beside it",
    ),
    ("Key-value: point read", "as beside Berkeley DB: the locks of rollback mode"),
    (
        "Blob of 10 MB: read",
        "one copy of 10 MB, which takes what the memory gives. Tried: values without a copy between page and caller",
    ),
    (
        "Blob of 100 KB: write, WAL",
        "39 us of processor time a write without the sync: 14 us pwrite, copies, checksum; a checkpoint every 38 writes. Two copies and \
         the clearing of pages are gone",
    ),
    ("Blob of 100 KB: write, DELETE", "three syncs against one"),
    ("Blob of 100 KB: read", "locks, stat and the first page before the blob, which a file does not need"),
    (
        "CSV import",
        "a quarter of the inserting thread's time is the interpreter's, a quarter the making of records, a tenth binding. Tried: values bound \
         where they stay, runs of variables and affinities, numbers read eight digits at a time (10,540 to 6,530 instructions a row)",
    ),
    (
        "Library, stripped",
        "compiled for speed; 3.9 MB are code, 0.6 tables for unwinding. Tried: whole-program LTO, folding of equal functions, opt-level 2; \
         the small build is its own row",
    ),
    (
        "Library built small, stripped, without",
        "opt-level z, no unwinding, packed relocations; what is left is code, and 0.2 MB of tables of the standard library",
    ),
    (
        "SSB, warm, one thread, no derived codes: geometric mean beside stock",
        "a scan waits for memory. Tried: gathers, sets as bytes, blocks of 2,048 to 16,384 rows, prefetching into either cache",
    ),
    (
        "SSB, cold process",
        "decoding the leaves: the only pass that stock makes as well. Tried: 16 field types at once, memory used again",
    ),
];

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
            want: format!("{want}"),
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

/// A lead as the share of time that is needed.
fn inverse(f: Found, unit: &'static str) -> Found {
    match f {
        Found::Lead(r) => {
            Found::AtMost(Ratio { value: 1.0 / r.value, low: 1.0 / r.high, high: 1.0 / r.low }, unit)
        }
        other => other,
    }
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
        ("update-alone", 1.5),
        ("insert-alone", 1.5),
        ("w5-alone", 1.5),
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
        let d = row.and_then(|r| {
            difference(r.row(title, "", "iolite"), r.row(title, "", "bare write and fdatasync"))
        });
        let what = format!("{title}: above a bare write and fdatasync");
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
    let queue = tatp.and_then(|r| {
        let row = r.rows.iter().find(|r| eight(r) && r.engine == "iolite, queue")?;
        r.lead(&row.case, &row.config, &row.engine, "stock")
    });
    let what = "TATP, 8 threads, WAL FULL, writes through the write queue";
    out.push(outcome(what, 4.0, queue.map_or(NOT_RUN, Found::Lead)));
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
    for n in [1, 4] {
        out.push(outcome(
            &format!("Web mix, a connection for each request, {n} processes"),
            1.0,
            lead(web, "requests", &format!("{n} processes, connection per request"), "stock"),
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
    let behind = worst(kv, "lmdb", |r| r.case == "select" && r.config.contains("64-bit"));
    let behind = inverse(behind, "times LMDB's");
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
    for config in ["WAL", "DELETE"] {
        let full = format!("{config} FULL");
        let of = |case: &str, other: &str| lead(blob, case, &full, other);
        out.push(outcome(&format!("Blob of 10 MB: read, {config}"), 3.0, of("10 MB: read", "stock")));
        out.push(outcome(&format!("Blob of 10 MB: write, {config}"), 1.5, of("10 MB: write", "stock")));
        out.push(outcome(&format!("Blob of 100 KB: read, {config}"), 1.0, of("100 KB: read", "stock")));
        out.push(outcome(&format!("Blob of 100 KB: write, {config}"), 1.0, of("100 KB: write", "stock")));
        let beside_file = inverse(of("100 KB: write", "file"), "times the file's");
        out.push(outcome(&format!("Blob of 100 KB: write, {config}, beside a file"), 1.3, beside_file));
        let beside_file = inverse(of("100 KB: read", "file"), "times the file's");
        out.push(outcome(&format!("Blob of 100 KB: read, {config}, beside a file"), 1.3, beside_file));
    }
    out.push(outcome(
        "Blob of 10 MB: write with large_value_direct",
        3.0,
        lead(blob, "10 MB: write with large_value_direct", "WAL FULL", "stock"),
    ));
    out.push(outcome(
        "CSV import of lineorder by the shell",
        3.0,
        lead(e.run("load"), "CSV import", "", "stock"),
    ));
    for (what, config, want) in [
        ("Library, stripped, without columnar and search", "without columns", 2.0),
        ("Library, stripped, with columnar", "", 3.0),
        ("Library built small, stripped, without columnar and search", "small, without columns", 2.0),
        ("Library built small, stripped, with columnar", "small", 3.0),
    ] {
        let size = e.run("footprint").and_then(|r| r.row("library, stripped", config, "iolite")).map_or(
            NOT_RUN,
            |r| {
                let m = r.summary.median;
                Found::AtMost(Ratio { value: m, low: m, high: m }, "MB")
            },
        );
        out.push(outcome(what, want, size));
    }
    analytics(e, &mut out);
    search::add(e, &mut out);
    out
}

/// The least lead over all cases of a run that are chosen by name, with the case.
fn least_of<'r>(
    run: &'r Run,
    config: &str,
    own: &str,
    other: &str,
    choose: impl Fn(&str) -> bool,
) -> Option<(Ratio, &'r str)> {
    let rows = run.rows.iter().filter(|r| r.engine == own && r.config == config && choose(&r.case));
    rows.filter_map(|r| Some((run.lead(&r.case, config, own, other)?, r.case.as_str())))
        .min_by(|a, b| a.0.value.total_cmp(&b.0.value))
}

/// A lead of geometric means: its spread is that of the queries' leads.
fn mean_lead(run: Option<&Run>, config: &str, other: &str) -> Found {
    let Some(run) = run else { return NOT_RUN };
    let Some(mean) = run.lead("geometric mean", config, "iolite", other) else { return NOT_RUN };
    let query = |case: &str| case != "geometric mean" && case != "load";
    let each = run.rows.iter().filter(|r| r.engine == "iolite" && r.config == config && query(&r.case));
    let leads: Vec<f64> =
        each.filter_map(|r| run.lead(&r.case, config, "iolite", other)).map(|l| l.value).collect();
    let s = stats::summary(&leads);
    Found::Lead(Ratio { value: mean.value, low: s.q1, high: s.q3 })
}

/// The targets of the columns' issue.
fn analytics(e: &Envelope, out: &mut Vec<Outcome>) {
    let ssb = e.run("ssb");
    let worst_query = |run: Option<&Run>, config: &str, other: &str| {
        let least = run.and_then(|r| least_of(r, config, "iolite", other, |c| c != "geometric mean"));
        least.map_or((NOT_RUN, String::new()), |(r, case)| (Found::Lead(r), format!(" ({case})")))
    };
    let what = "SSB, warm, one thread, no derived codes: geometric mean beside DuckDB";
    out.push(outcome(what, 10.0, mean_lead(ssb, "warm", "duckdb")));
    let (found, which) = worst_query(ssb, "warm", "duckdb");
    let what = format!("SSB, warm, one thread, no derived codes: worst query{which} beside DuckDB");
    out.push(outcome(&what, 5.0, found));
    let what = "SSB, warm, one thread, no derived codes: geometric mean beside stock";
    out.push(outcome(what, 100.0, mean_lead(ssb, "warm", "stock")));
    let (found, which) = worst_query(ssb, "cold process", "stock");
    out.push(outcome(&format!("SSB, cold process: worst query{which} beside stock"), 1.0, found));
    let large = e.run("ssb-large").filter(|r| r.scale.iter().any(|s| s == "scale factor 10"));
    let two = large.and_then(|r| r.lead("geometric mean", "warm", "iolite, 2 threads", "iolite"));
    out.push(outcome("SSB, scale 10: two threads beside one", 1.7, two.map_or(NOT_RUN, Found::Lead)));
    let memory = large.and_then(|r| r.row("greatest memory", "", "iolite")).map_or(NOT_RUN, |r| {
        let m = r.summary.median;
        Found::AtMost(Ratio { value: m, low: m, high: m }, "MB")
    });
    out.push(outcome("SSB, scale 10: memory", 2000.0, memory));
    let suite = e.run("suite");
    for case in [
        "W7: SUM of integers",
        "W8: GROUP BY, 10 groups",
        "W8: GROUP BY, 1,000 groups",
        "W8: GROUP BY, 100,000 groups",
    ] {
        out.push(outcome(&format!("{case}, beside DuckDB"), 1.5, lead(suite, case, "", "duckdb")));
    }
    let tpch = e.run("tpch");
    let answers = tpch.map_or(NOT_RUN, |r| {
        let right = r.gates.iter().filter(|g| g.starts_with('Q')).count() as f64;
        Found::Lead(Ratio { value: right / 22.0, low: right, high: 22.0 })
    });
    let mut o = outcome("TPC-H: answers equal in all engines", 1.0, answers);
    if tpch.is_some() {
        o.reached = format!("{} of 22", o.spread.split('.').next().unwrap_or(""));
        (o.want, o.spread) = ("22 of 22".into(), String::new());
    }
    out.push(o);
    let behind = inverse(mean_lead(tpch, "", "duckdb"), "times DuckDB's time");
    out.push(outcome("TPC-H, one thread: geometric mean beside DuckDB", 1.5, behind));
    let (found, which) = worst_query(tpch, "", "stock");
    out.push(outcome(&format!("TPC-H: worst query{which} beside stock"), 1.0, found));
    let events = e.run("events").filter(|r| r.scale.iter().any(|s| s == "1000000 rows"));
    let what = "Events, a million, warm: geometric mean beside DuckDB";
    out.push(outcome(what, 2.0, mean_lead(events, "warm", "duckdb")));
    for (config, other, want) in
        [("warm", "duckdb", 0.8), ("warm", "stock", 1.0), ("cold process", "stock", 1.0)]
    {
        let (found, which) = worst_query(events, config, other);
        let what = format!("Events, a million, {config}: worst question{which} beside {other}");
        out.push(outcome(&what, want, found));
    }
    let config = "cold process, columns in the sidecar";
    let what = format!("Events, a million, {config}: geometric mean beside DuckDB");
    out.push(outcome(&what, 1.0, mean_lead(events, config, "duckdb")));
    let cpu = e.run("mixed").and_then(|r| {
        let of = |engine: &str| r.row("writer's processor time a commit", "writer and one reader", engine);
        stats::ratio(&of("iolite auto")?.samples, &of("iolite off")?.samples)
    });
    let what = "Mixed load: writer's processor time a commit, columns auto beside off";
    out.push(outcome(what, 1.05, cpu.map_or(NOT_RUN, |r| Found::AtMost(r, "times"))));
}

/// The table in Markdown.
pub fn table(e: &Envelope) -> String {
    let heads = "| target | wanted | reached | spread | verdict | tried, and what stands in the way |\n|---|---|---|---|---|---|\n";
    let mut out = String::from(heads);
    for o in outcomes(e) {
        let Outcome { what, want, reached, spread, verdict } = &o;
        out.push_str(&format!("| {what} | {want} | {reached} | {spread} | {verdict} | {} |\n", o.behind()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

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
        assert_eq!(first.behind(), "");
        assert_eq!((first.verdict, first.reached.as_str()), ("met", "2.60 times"));
    }

    #[test]
    fn what_stands_behind_a_missed_target_is_said_of_a_target_that_there_is() {
        let all = outcomes(&Envelope::default());
        for (of, _) in BEHIND {
            assert!(all.iter().any(|o| o.what.starts_with(of)), "{of}");
        }
        let missed = Outcome {
            verdict: "missed",
            want: String::new(),
            reached: String::new(),
            spread: String::new(),
            what: "W9: a join".into(),
        };
        assert!(missed.behind().contains("seeks"));
    }

    #[test]
    fn every_missed_target_of_the_present_report_says_what_stands_behind_it() {
        let present = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/envelope.json");
        for o in outcomes(&Envelope::read(&present).unwrap()) {
            assert!(o.verdict != "missed" || !o.behind().is_empty(), "{}", o.what);
        }
    }
}
