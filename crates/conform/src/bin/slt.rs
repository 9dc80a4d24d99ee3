//! `slt [--quick] PATH...`: runs sqllogictest scripts, files or folders; without a path, the folder that the variable
//! IOLITE_SLT names. IOLITE_ANALYTICS (off, auto, force) chooses which queries run in columns. Prints executed, skipped and failed counts; exits with 1 if anything failed.

use iolite_conform::slt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

fn main() {
    let mut quick = false;
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut shown = 5;
    for a in std::env::args().skip(1) {
        match a.as_str() {
            "--quick" => quick = true,
            "--all" => shown = usize::MAX,
            _ => paths.push(a.into()),
        }
    }
    if paths.is_empty()
        && let Some(p) = std::env::var_os("IOLITE_SLT")
    {
        paths.push(p.into());
    }
    if paths.is_empty() {
        eprintln!("slt: no scripts: name files or folders, or set IOLITE_SLT");
        std::process::exit(2);
    }
    let mut files = Vec::new();
    for p in &paths {
        collect(p, &mut files);
    }
    files.sort();
    if quick {
        // Every fifth of the small ones: a few minutes' worth of everything.
        files.retain(|f| std::fs::metadata(f).is_ok_and(|m| m.len() < 1_500_000));
        files = files.into_iter().step_by(3).collect();
    }
    let next = AtomicUsize::new(0);
    let total = Mutex::new((0usize, 0usize, 0usize));
    let in_columns = std::sync::atomic::AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|s| {
        for _ in 0..threads {
            let worker = std::thread::Builder::new().stack_size(64 << 20);
            let handle = worker.spawn_scoped(s, || {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(f) = files.get(i) else { break };
                    let start = Instant::now();
                    let text = match std::fs::read_to_string(f) {
                        Ok(t) => t,
                        Err(e) => {
                            println!("{}: {e}", f.display());
                            continue;
                        }
                    };
                    let r = slt::run(&text);
                    in_columns.fetch_add(r.in_columns, Ordering::Relaxed);
                    let mut t = total.lock().expect("no worker panics while it counts");
                    t.0 += r.executed;
                    t.1 += r.skipped;
                    t.2 += r.failures.len();
                    println!(
                        "{}: {} executed, {} skipped, {} failed, {:.1} s",
                        f.display(),
                        r.executed,
                        r.skipped,
                        r.failures.len(),
                        start.elapsed().as_secs_f64()
                    );
                    for (line, why) in r.failures.iter().take(shown) {
                        println!("  line {line}: {why}");
                    }
                }
            });
            if let Err(e) = handle {
                eprintln!("slt: {e}");
            }
        }
    });
    let (executed, skipped, failed) = *total.lock().expect("all workers have ended");
    println!("{} files: {executed} executed, {skipped} skipped, {failed} failed", files.len());
    println!("{} arms of queries ran in columns", in_columns.load(Ordering::Relaxed));
    println!("{} passed, {failed} failed", executed - failed);
    if failed > 0 || executed == 0 {
        std::process::exit(1);
    }
}

fn collect(p: &Path, out: &mut Vec<PathBuf>) {
    if p.is_dir() {
        let Ok(list) = std::fs::read_dir(p) else { return };
        for e in list.flatten() {
            collect(&e.path(), out);
        }
    } else if p.extension().is_some_and(|e| e == "test") || p.is_file() {
        out.push(p.to_path_buf());
    }
}
