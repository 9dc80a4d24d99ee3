//! W7 and W8: SUM, and GROUP BY with 10, 1,000 and 100,000 groups, over 1,000,000 rows; both engines interleaved, answers
//! compared.

use iolite_bench::engine::{Result, find};
use std::path::Path;
use std::time::Instant;

const QUERIES: &[(&str, &str)] = &[
    ("SUM", "SELECT sum(v) FROM w"),
    ("SUM of reals", "SELECT sum(r) FROM w"),
    ("10 groups", "SELECT a, count(*) FROM w GROUP BY a"),
    ("1,000 groups", "SELECT b, count(*) FROM w GROUP BY b"),
    ("100,000 groups", "SELECT c, count(*) FROM w GROUP BY c"),
    ("first 10 of an order", "SELECT id, v FROM w ORDER BY v DESC, id LIMIT 10"),
    ("filter and average", "SELECT count(*), avg(r * 2) FROM w WHERE r BETWEEN 10 AND 20 AND v % 3 = 1"),
];

/// Runs and prints a table.
pub fn run() -> Result<()> {
    let memory = Path::new(":memory:");
    let engines = [find("iolite")?.open(memory)?, find("stock")?.open(memory)?];
    for e in &engines {
        e.batch(
            "CREATE TABLE w(id INTEGER PRIMARY KEY, v INTEGER, a INTEGER, b INTEGER, c INTEGER, r REAL);
             INSERT INTO w WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 1000000)
               SELECT i, i * 7919 % 1000, i * 104729 % 10, i * 7907 % 1000, i * 2654435761 % 100003,
                 i * 31 % 1000 / 10.0 FROM c;",
        )?;
    }
    println!("| query | first ms | iolite ms | stock ms | stock / iolite |");
    println!("|---|---|---|---|---|");
    for (name, sql) in QUERIES {
        let mut times = [Vec::new(), Vec::new()];
        let mut sums = [0, 0];
        let mut statements = [engines[0].prepare(sql)?, engines[1].prepare(sql)?];
        for _ in 0..11 {
            for (k, s) in statements.iter_mut().enumerate() {
                let start = Instant::now();
                sums[k] = s.run(&[])?;
                times[k].push(start.elapsed().as_secs_f64() * 1e3);
            }
        }
        if sums[0] != sums[1] {
            return Err(format!("{name}: answers differ").into());
        }
        let first = times[0][0];
        let middle = times.map(|mut t| {
            t.remove(0);
            t.sort_by(f64::total_cmp);
            t[t.len() / 2]
        });
        println!(
            "| {name} | {first:.1} | {:.2} | {:.1} | {:.0} |",
            middle[0],
            middle[1],
            middle[1] / middle[0]
        );
    }
    Ok(())
}
