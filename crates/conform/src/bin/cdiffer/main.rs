//! `cdiffer --sequences N --seed S [--jobs J] [--known FILE] [--show N]`: drawn sequences of C calls on stock's library
//! and on ours, call by call. Prints each kind of difference once, most frequent first, as a short script. Exits with 1 if one is not
//! in the file of known ones.
//! `cdiffer --replay FILE` runs a script and prints what both answer; `--sequence K` the sequence of that number.
//!
//! Sequences are run by child processes of this program: one that crashes or hangs is a finding, too.

mod api;
mod callbacks;
mod draw;
mod pair;
mod side;

use pair::{Found, Known, Libraries};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};

struct Options {
    sequences: u64,
    seed: u64,
    jobs: u64,
    show: usize,
    known: Option<String>,
    replay: Option<String>,
    sequence: Option<u64>,
    /// For a child: the first number and the distance to the next.
    worker: Option<(u64, u64)>,
    shrink: Option<(String, String)>,
    rest: Vec<String>,
}

fn usage(what: &str) -> ! {
    eprintln!("cdiffer: what is meant by {what}?");
    std::process::exit(2);
}

fn options() -> Options {
    let mut o = Options {
        sequences: 2_000,
        seed: 1,
        jobs: 2,
        show: 20,
        known: None,
        replay: None,
        sequence: None,
        worker: None,
        shrink: None,
        rest: Vec::new(),
    };
    let mut args = std::env::args().skip(1);
    while let Some(a) = args.next() {
        let mut value = || args.next().unwrap_or_else(|| usage(&a));
        fn number(v: String) -> u64 {
            v.parse().unwrap_or_else(|_| usage(&v))
        }
        match a.as_str() {
            "--sequences" => o.sequences = number(value()),
            "--seed" => o.seed = number(value()),
            "--jobs" => o.jobs = number(value()).max(1),
            "--show" => o.show = number(value()) as usize,
            "--known" => o.known = Some(value()),
            "--replay" => o.replay = Some(value()),
            "--sequence" => o.sequence = Some(number(value())),
            "--worker" => o.worker = Some((number(value()), number(value()))),
            "--shrink" => o.shrink = Some((value(), value())),
            _ => usage(&a),
        }
    }
    if let Some(k) = &o.known {
        o.rest.extend(["--known".into(), k.clone()]);
    }
    o
}

fn folder(name: &str) -> PathBuf {
    let base =
        if PathBuf::from("/dev/shm").is_dir() { PathBuf::from("/dev/shm") } else { std::env::temp_dir() };
    base.join(format!("cdiffer-{}-{name}", std::process::id()))
}

/// A child of this program.
fn child(o: &Options, args: &[String]) -> Command {
    let mut c = Command::new(std::env::current_exe().expect("this program's own path"));
    c.args(args).args(&o.rest).stderr(Stdio::null());
    c
}

/// A kind of difference.
struct Kind {
    count: u64,
    first: u64,
}

/// Runs every `jobs`-th sequence in children, one after the other where they end early.
fn job(o: &Options, j: u64, kinds: &std::sync::Mutex<BTreeMap<String, Kind>>) {
    let mut next = j;
    while next < o.sequences {
        let args = [
            "--worker",
            &next.to_string(),
            &o.jobs.to_string(),
            "--seed",
            &o.seed.to_string(),
            "--sequences",
            &o.sequences.to_string(),
        ];
        let mut c =
            child(o, &args.map(String::from)).stdout(Stdio::piped()).spawn().expect("this program starts");
        let out = BufReader::new(c.stdout.take().expect("it is piped"));
        let mut at = next;
        let add = |kind: &str, at: u64| {
            let mut kinds = kinds.lock().expect("no job panics while it counts");
            kinds.entry(kind.into()).or_insert(Kind { count: 0, first: at }).count += 1;
        };
        for line in out.lines().map_while(Result::ok) {
            match line.split_once('\t') {
                Some(("at", n)) => at = n.parse().unwrap_or(at),
                Some(("found", kind)) => add(kind, at),
                _ => {}
            }
        }
        let status = c.wait().expect("the child was started");
        if status.success() {
            break;
        }
        add(&format!("ended: {status}"), at);
        next = at + o.jobs;
    }
}

fn shrunk(o: &Options, kind: &str, at: u64) -> String {
    let args = ["--shrink", kind, &at.to_string(), "--seed", &o.seed.to_string()];
    let mut out = String::new();
    if let Ok(mut c) = child(o, &args.map(String::from)).stdout(Stdio::piped()).spawn() {
        let _ = c.stdout.take().expect("it is piped").read_to_string(&mut out);
        let _ = c.wait();
    }
    out
}

fn main() {
    let o = options();
    let known = Known::read(o.known.as_deref());
    let number = |k: u64| o.seed.wrapping_mul(1_000_003) + k;
    if let Some((first, by)) = o.worker {
        let l = Libraries::load();
        let dir = folder("work");
        for k in (first..o.sequences).step_by(by as usize) {
            println!("at\t{k}");
            pair::within_time();
            let script = draw::sequence(number(k));
            if let Some(f) = pair::first_difference(&l, &script, &dir, &known) {
                println!("found\t{}", f.kind);
            }
        }
        let _ = std::fs::remove_dir_all(&dir);
        return;
    }
    if let Some((kind, at)) = &o.shrink {
        let script = draw::sequence(number(at.parse().unwrap_or(0)));
        let dir = folder("shrink");
        let (script, found) = if kind.starts_with("ended") {
            (pair::shrink(script, |s| ends_early(&o, s, &dir).then_some(s.len())), None)
        } else {
            let l = Libraries::load();
            let test = |s: &[String]| pair::first_difference(&l, s, &dir, &known).filter(|f| f.kind == *kind);
            let script = pair::shrink(script, |s| test(s).map(|f| f.line + 1));
            let found = test(&script);
            (script, found)
        };
        for l in script {
            println!("{l}");
        }
        if let Some(Found { name, stock, ours, .. }) = found {
            println!("-- {name}\n-- stock: {stock}\n-- ours:  {ours}");
        }
        let _ = std::fs::remove_dir_all(&dir);
        return;
    }
    if o.replay.is_some() || o.sequence.is_some() {
        let script = match (&o.replay, o.sequence) {
            (Some(file), _) => {
                let text = std::fs::read_to_string(file).unwrap_or_else(|e| usage(&format!("{file}: {e}")));
                text.lines().filter(|l| !l.is_empty() && !l.starts_with("--")).map(String::from).collect()
            }
            (_, k) => draw::sequence(number(k.unwrap_or(0))),
        };
        pair::show(&Libraries::load(), &script, &folder("replay"));
        return;
    }
    let kinds = std::sync::Mutex::new(BTreeMap::new());
    std::thread::scope(|s| {
        for j in 0..o.jobs {
            let (o, kinds) = (&o, &kinds);
            s.spawn(move || job(o, j, kinds));
        }
    });
    let mut kinds: Vec<(String, Kind)> =
        kinds.into_inner().expect("all jobs have ended").into_iter().collect();
    kinds.sort_by_key(|(_, k)| std::cmp::Reverse(k.count));
    println!("{} sequences, {} kinds of difference", o.sequences, kinds.len());
    for (kind, k) in &kinds {
        println!("{:6}  {kind}", k.count);
    }
    for (kind, k) in kinds.iter().take(o.show) {
        println!("\n==== {} x {kind} (sequence {})\n{}", k.count, k.first, shrunk(&o, kind, k.first));
    }
    if !kinds.is_empty() {
        std::process::exit(1);
    }
}

/// Whether the process that runs this script ends by a signal.
fn ends_early(o: &Options, script: &[String], dir: &std::path::Path) -> bool {
    let _ = std::fs::create_dir_all(dir);
    let file = dir.join("script");
    if std::fs::write(&file, script.join("\n")).is_err() {
        return false;
    }
    let args = ["--replay".to_string(), file.to_string_lossy().into_owned()];
    child(o, &args).stdout(Stdio::null()).status().is_ok_and(|s| !s.success())
}
