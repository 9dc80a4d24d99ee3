//! The Star Schema Benchmark beside stock SQLite: constants drawn anew for each repetition, the same for both engines, every
//! answer of iolite compared with stock's.

use iolite_bench::engine::{Database, Result, find, show};
use iolite_bench::random::Random;
use iolite_bench::ssb;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A query's rows as text, and how long it took in milliseconds.
fn answer(db: &dyn Database, sql: &str) -> Result<(String, f64)> {
    let start = Instant::now();
    let rows: String = db.rows(sql)?.iter().map(|r| show(r) + "\n").collect();
    let ms = start.elapsed().as_secs_f64() * 1e3;
    Ok((rows, ms))
}

fn median(v: &mut [f64]) -> f64 {
    v.sort_by(f64::total_cmp);
    v.get(v.len() / 2).copied().unwrap_or(0.0)
}

/// Runs the benchmark: `--sf N`, `--repeat N`, `--file PATH` (kept, and used if it is there), `--no-stock`, `--settings
/// PRAGMAS` for iolite alone.
pub fn run(args: &[&str]) -> Result<()> {
    let value = |name: &str| args.iter().position(|a| *a == name).and_then(|i| args.get(i + 1)).copied();
    let sf: f64 = value("--sf").and_then(|v| v.parse().ok()).unwrap_or(1.0);
    let repeat: usize = value("--repeat").and_then(|v| v.parse().ok()).unwrap_or(5);
    let with_stock = !args.contains(&"--no-stock");
    let (path, keep) = match value("--file") {
        Some(p) => (PathBuf::from(p), true),
        None => (std::env::temp_dir().join(format!("iolite-ssb-{}.db", std::process::id())), false),
    };
    let name = path.to_string_lossy().into_owned();
    if !Path::new(&path).exists() {
        let db = find("iolite")?.open(&path)?;
        let start = Instant::now();
        db.batch("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;")?;
        let rows = ssb::load(&*db, sf)?;
        db.batch("ANALYZE; PRAGMA wal_checkpoint(TRUNCATE)")?;
        println!("loaded {rows} lineorder rows in {:.1} s", start.elapsed().as_secs_f64());
    }
    let done = measure(&name, repeat, with_stock, value("--settings").unwrap_or_default());
    if !keep {
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{name}{suffix}"));
        }
    }
    done
}

fn measure(name: &str, repeat: usize, with_stock: bool, own: &str) -> Result<()> {
    let iolite = find("iolite")?.open(Path::new(name))?;
    let stock = find("stock")?.open(Path::new(name))?;
    for db in [&iolite, &stock] {
        db.batch("PRAGMA cache_size=-65536; PRAGMA temp_store=MEMORY;")?;
    }
    iolite.batch(own)?;
    let mut r = Random(7);
    let mut cold = Vec::new();
    for (_, sql) in ssb::queries(&mut r) {
        cold.push(answer(&*iolite, &sql)?.1);
    }
    let n = cold.len();
    let (mut ours, mut theirs) = (vec![Vec::new(); n], vec![Vec::new(); n]);
    let mut names = Vec::new();
    for _ in 0..repeat {
        names.clear();
        for (k, (query, sql)) in ssb::queries(&mut r).into_iter().enumerate() {
            names.push(query);
            let (rows, ms) = answer(&*iolite, &sql)?;
            ours[k].push(ms);
            if with_stock {
                let (want, ms) = answer(&*stock, &sql)?;
                theirs[k].push(ms);
                if rows != want {
                    return Err(
                        format!("{query}: answers differ\n{sql}\niolite:\n{rows}\nstock:\n{want}").into()
                    );
                }
            }
        }
    }
    println!("| query | first ms | iolite ms | least | greatest | stock ms | stock / iolite |");
    println!("|---|---|---|---|---|---|---|");
    let (mut log_ours, mut log_theirs, mut sum) = (0.0, 0.0, 0.0);
    for k in 0..n {
        let (a, b) = (median(&mut ours[k]), median(&mut theirs[k]));
        let (least, most) = (ours[k][0], ours[k][ours[k].len() - 1]);
        log_ours += a.ln();
        log_theirs += b.max(1e-9).ln();
        sum += a;
        println!(
            "| {} | {:.1} | {a:.2} | {least:.2} | {most:.2} | {b:.1} | {:.0} |",
            names[k],
            cold[k],
            b / a
        );
    }
    let (a, b) = ((log_ours / n as f64).exp(), (log_theirs / n as f64).exp());
    println!("| geometric mean | | {a:.2} | | | {b:.1} | {:.0} |", b / a);
    println!(
        "\nsum of medians {sum:.1} ms; answers compared with stock: {}",
        if with_stock { "yes" } else { "no" }
    );
    Ok(())
}
