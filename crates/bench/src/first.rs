//! The first runs of one query on a file that is there: nothing was prepared or read by this process before. What cold
//! costs are measured with, under callgrind too (N = 0 is what opening takes).

use iolite_bench::engine::{Result, find};
use std::path::Path;
use std::time::Instant;

/// Runs `sql` N times on a new connection each, and prints what each took, in milliseconds.
pub fn run(engine: &str, file: &str, settings: &str, sql: &str, n: usize) -> Result<()> {
    let e = find(engine)?;
    if n == 0 {
        e.open(Path::new(file))?.batch(settings)?;
    }
    for _ in 0..n {
        let db = e.open(Path::new(file))?;
        db.batch(settings)?;
        let start = Instant::now();
        let rows = db.rows(sql)?.len();
        println!("{:.3} ms, {rows} rows", start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(())
}
