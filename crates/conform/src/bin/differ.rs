//! `differ --statements N --seed S --threads T [--only KIND] [--keep-going] [--alter] [--table-functions]
//! [--foreign-keys] [--wrong-names] [--plans] [--known FILE] [--show N] [--round R]`: compares
//! iolite with stock SQLite on generated statements. Prints each kind of difference once, most frequent first, as a
//! script for either shell, then what was covered. Exits with 1 if a difference is unexplained. `--round R` runs that
//! one round again. With `--plans`, rounds are about plans: EXPLAIN QUERY PLAN's trees are compared, then the answers.
//! `--replay FILE` runs a script, one statement a line, and prints the first difference;
//! with `--keep-going` all of them, and what the others answer; with `--on-file` in files rather than in memory.

use iolite_conform::differ::coverage::Coverage;
use iolite_conform::differ::explained::{EXPLAINED, explain};
use iolite_conform::differ::generate::Features;
use iolite_conform::differ::pair::Stmt;
use iolite_conform::differ::session::{Finding, round};
use iolite_conform::differ::{callables, plans, shrink};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Default)]
struct Options {
    statements: usize,
    seed: u64,
    threads: usize,
    only: Option<String>,
    keep_going: bool,
    on_file: bool,
    show: usize,
    features: Features,
    /// Rounds are about plans.
    plans: bool,
    replay: Option<String>,
    round: Option<u64>,
    /// Kinds of difference that do not count.
    known: Vec<String>,
}

struct Kind {
    count: usize,
    seed: u64,
    first: Finding,
}

#[derive(Default)]
struct Total {
    statements: usize,
    /// Plans compared, and how many of them differ.
    plans: (usize, usize),
    rounds: usize,
    coverage: Coverage,
    kinds: BTreeMap<String, Kind>,
    explained: BTreeMap<&'static str, usize>,
}

fn options() -> Options {
    let mut o = Options { statements: 20_000, seed: 1, threads: 2, show: 12, ..Options::default() };
    let mut args = std::env::args().skip(1);
    while let Some(a) = args.next() {
        let mut value = || args.next().unwrap_or_else(|| usage(&a));
        match a.as_str() {
            "--statements" => o.statements = value().parse().unwrap_or_else(|_| usage(&a)),
            "--seed" => o.seed = value().parse().unwrap_or_else(|_| usage(&a)),
            "--threads" => o.threads = value().parse().unwrap_or_else(|_| usage(&a)),
            "--show" => o.show = value().parse().unwrap_or_else(|_| usage(&a)),
            "--round" => o.round = Some(value().parse().unwrap_or_else(|_| usage(&a))),
            "--only" => o.only = Some(value()),
            "--replay" => o.replay = Some(value()),
            "--known" => {
                let text = std::fs::read_to_string(value()).unwrap_or_default();
                o.known = text.lines().map(String::from).collect();
            }
            "--keep-going" => o.keep_going = true,
            "--on-file" => o.on_file = true,
            "--plans" => o.plans = true,
            "--alter" => o.features.alter = true,
            "--foreign-keys" => o.features.foreign_keys = true,
            "--wrong-names" => o.features.wrong_names = true,
            "--table-functions" => o.features.table_functions = true,
            _ => usage(&a),
        }
    }
    o
}

fn usage(what: &str) -> ! {
    eprintln!("differ: what is meant by {what}?");
    std::process::exit(2);
}

fn folder(name: &str) -> PathBuf {
    let base =
        if PathBuf::from("/dev/shm").is_dir() { PathBuf::from("/dev/shm") } else { std::env::temp_dir() };
    base.join(format!("differ-{}-{name}", std::process::id()))
}

fn main() {
    let o = options();
    // Panics are findings; their texts are shown there.
    if o.replay.is_none() {
        std::panic::set_hook(Box::new(|_| {}));
    }
    if let Some(file) = &o.replay {
        let text = std::fs::read_to_string(file).unwrap_or_else(|e| usage(&format!("{file}: {e}")));
        let script: Vec<Stmt> = text.lines().filter(|l| !l.trim().is_empty()).map(Stmt::parse).collect();
        if o.keep_going {
            let mut pair = iolite_conform::differ::pair::Pair::new(&folder("replay"), !o.on_file);
            for s in &script {
                println!("-- {}", s.sql);
                match pair.run(s) {
                    Some(d) => println!("{}\n  stock: {}\n  ours:  {}", d.what, d.stock, d.ours),
                    None => println!("{}", pair.shown()),
                }
            }
            return;
        }
        match shrink::replay(&script, &folder("replay"), !o.on_file) {
            Some((i, d)) => println!(
                "{}\n{}\nstock: {}\nours:  {}",
                script.get(i).map_or("end", |s| &s.sql),
                d.what,
                d.stock,
                d.ours
            ),
            None => println!("no difference"),
        }
        return;
    }
    let functions = callables();
    let total = Mutex::new(Total::default());
    let next = AtomicUsize::new(0);
    std::thread::scope(|s| {
        for t in 0..if o.round.is_some() { 1 } else { o.threads } {
            let worker = std::thread::Builder::new().stack_size(64 << 20);
            let (o, functions, total, next) = (&o, &functions, &total, &next);
            let handle = worker.spawn_scoped(s, move || {
                let dir = folder(&t.to_string());
                loop {
                    let k = next.fetch_add(1, Ordering::Relaxed) as u64;
                    let seed = o.round.unwrap_or_else(|| o.seed.wrapping_mul(1_000_003) + k);
                    let r = match o.plans {
                        true => plans::round(seed, &dir),
                        false => round(seed, &dir, functions, o.features, o.only.as_deref()),
                    };
                    let mut total = total.lock().expect("no worker panics while it counts");
                    total.statements += r.statements;
                    total.plans.0 += r.plans;
                    total.plans.1 += r.findings.iter().filter(|f| f.difference.what == "plan").count();
                    total.rounds += 1;
                    total.coverage.add(&r.coverage);
                    for f in r.findings {
                        let last = f.script.last().expect("a finding has a statement");
                        if let Some(e) = explain(&f.script, &f.difference) {
                            *total.explained.entry(e.title).or_default() += 1;
                            continue;
                        }
                        let key = f.difference.signature(last.kind);
                        if o.known.contains(&key) {
                            continue;
                        }
                        let k = total.kinds.entry(key).or_insert_with(|| Kind {
                            count: 0,
                            seed,
                            first: f.clone(),
                        });
                        k.count += 1;
                        if f.script.len() < k.first.script.len() {
                            k.first = f;
                            k.seed = seed;
                        }
                    }
                    let stop = !o.keep_going && !total.kinds.is_empty();
                    if total.statements >= o.statements || stop || o.round.is_some() {
                        break;
                    }
                }
            });
            handle.expect("threads can be started");
        }
    });
    let total = total.into_inner().expect("all workers have ended");
    report(&o, total, &functions);
}

fn report(o: &Options, total: Total, functions: &[iolite_conform::differ::generate::Callable]) {
    let names: std::collections::BTreeSet<&'static str> = functions.iter().map(|f| f.name).collect();
    total.coverage.print(&names.into_iter().collect::<Vec<_>>());
    let mut kinds: Vec<(String, Kind)> = total.kinds.into_iter().collect();
    kinds.sort_by_key(|(_, k)| std::cmp::Reverse(k.count));
    for e in EXPLAINED {
        let n = total.explained.get(e.title).copied().unwrap_or(0);
        println!("\nexplained, {n} times: {} ({})", e.title, e.page);
    }
    println!(
        "\n{} rounds, {} statements, {} kinds of difference",
        total.rounds,
        total.statements,
        kinds.len()
    );
    if o.plans {
        println!("{} plans, {} of them differ", total.plans.0, total.plans.1);
    }
    for (key, k) in &kinds {
        println!("{:6}  {key} (round {})", k.count, k.seed);
    }
    let failed = !kinds.is_empty();
    let next = Mutex::new(kinds.into_iter().take(o.show));
    std::thread::scope(|s| {
        for t in 0..o.threads {
            let next = &next;
            let worker = std::thread::Builder::new().stack_size(64 << 20);
            let handle = worker.spawn_scoped(s, move || {
                loop {
                    let Some((key, k)) = next.lock().expect("no worker panics here").next() else { break };
                    let dir = folder(&format!("shrink{t}"));
                    let f = k.first;
                    let (script, d) = shrink::shrink(f.script, f.difference, &dir, f.in_memory);
                    let mut text = format!("\n==== {} x {key} (round {})\n", k.count, k.seed);
                    for s in &script {
                        text += &format!("{s}\n");
                    }
                    text += &format!(
                        "-- {}\n-- stock: {}\n-- ours:  {}",
                        d.what,
                        d.stock.trim_end(),
                        d.ours.trim_end()
                    );
                    println!("{text}");
                }
            });
            handle.expect("threads can be started");
        }
    });
    if failed {
        std::process::exit(1);
    }
}
