//! `times FILE [--rounds N]`: how long queries take here and on stock SQLite, both in memory and in turn.
//!
//! FILE is like those of `tests/plans`: a first paragraph that is run, then queries, one a line. Of each, the median of the
//! rounds on either side is told, and their ratio: above 1, stock is faster. Where the trees of EXPLAIN QUERY PLAN differ, both
//! stand below.

use iolite::engine::Step;
use std::time::Instant;

fn main() {
    let mut args = std::env::args().skip(1);
    let (mut file, mut rounds) = (None, 7);
    while let Some(a) = args.next() {
        match a.as_str() {
            "--rounds" => rounds = args.next().and_then(|n| n.parse().ok()).unwrap_or_else(|| usage()),
            _ => file = Some(a),
        }
    }
    let text = std::fs::read_to_string(file.unwrap_or_else(|| usage())).unwrap_or_else(|_| usage());
    let (setup, queries) = text.split_once("\n\n").unwrap_or_else(|| usage());
    let own = iolite::engine::Connection::open_in_memory().expect("a database in memory opens");
    let stock = iolite_stock::Connection::open(":memory:").expect("a database in memory opens");
    own.execute_batch(setup).expect("the setup runs");
    stock.execute_batch(setup).expect("the setup runs on stock");
    println!("ratio    ours ms   stock ms");
    for sql in queries.lines().filter(|l| !l.is_empty() && !l.starts_with("--")) {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            ours.push(timed(|| run_own(&own, sql)));
            theirs.push(timed(|| run_stock(&stock, sql)));
        }
        let (a, b) = (median(ours), median(theirs));
        println!("{:5.2} {a:10.3} {b:10.3}  {sql}", a / b);
        let (a, b) = (plan_own(&own, sql), plan_stock(&stock, sql));
        if a != b {
            println!("  ours:  {}\n  stock: {}", a.join(" / "), b.join(" / "));
        }
    }
}

fn usage() -> ! {
    eprintln!("usage: times FILE [--rounds N]");
    std::process::exit(2);
}

/// Milliseconds.
fn timed(f: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    f();
    begin.elapsed().as_secs_f64() * 1000.0
}

fn median(mut list: Vec<f64>) -> f64 {
    list.sort_by(f64::total_cmp);
    list[list.len() / 2]
}

fn run_own(c: &iolite::engine::Connection, sql: &str) {
    let mut s = c.prepare(sql).expect("the query is one");
    while s.step().expect("the query runs") == Step::Row {}
}

fn run_stock(c: &iolite_stock::Connection, sql: &str) {
    let mut s = c.prepare(sql).expect("the query is one on stock");
    while s.step().expect("the query runs on stock") {}
}

fn plan_own(c: &iolite::engine::Connection, sql: &str) -> Vec<String> {
    let rows = c.query(&format!("EXPLAIN QUERY PLAN {sql}"), &[]).expect("the query has a plan");
    rows.iter().map(|r| r[3].to_string_lossy()).collect()
}

fn plan_stock(c: &iolite_stock::Connection, sql: &str) -> Vec<String> {
    let rows = c.query(&format!("EXPLAIN QUERY PLAN {sql}")).expect("the query has a plan on stock");
    let text = |v: &iolite_stock::Value| match v {
        iolite_stock::Value::Text(t) => String::from_utf8_lossy(t).into_owned(),
        _ => String::new(),
    };
    rows.iter().map(|r| text(&r[3])).collect()
}
