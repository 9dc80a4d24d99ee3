//! `bench-compare COMMAND`: iolite beside stock SQLite, DuckDB, Turso, LMDB, Berkeley DB and plain files.
//!
//! - `list`: the workloads. `engines`: which engines are there. `fetch`: gets those that are not.
//! - `run WORKLOAD... [--out FILE] [--repeat N] [--small] [--NAME VALUE]`: measures; `all` means each of them. An envelope
//!   that exists is added to; a workload in it is replaced.
//! - `compare A B`: two envelopes as a table. `report FILE... [--out HTML]`: one page. `targets FILE...`: its first table.
//! - `prepare-counts [SHAPE...] [--library FILE] [--siblings] [--keep DIR]`: instructions of preparing, by callgrind.
//! - `write-counts [STATEMENT...] [--library FILE] [--keep DIR] [--times]`: instructions of statements that change rows, in the same way.
//! - `worker ...`: what the commands run in processes of their own.

mod build;
mod compare;
mod engine;
mod envelope;
mod fetch;
mod gate;
mod html;
mod machine;
mod native;
mod report;
mod stats;
mod targets;
mod workload;

use envelope::Envelope;
use iolite_bench::engine::Result;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// What the user asked for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Words without a leading sign.
    pub words: Vec<String>,
    /// `--name value`, and `--name` alone.
    pub named: Vec<(String, Option<String>)>,
}

impl Options {
    fn parse(args: impl Iterator<Item = String>) -> Options {
        let mut o = Options::default();
        let mut args = args.peekable();
        while let Some(a) = args.next() {
            match a.strip_prefix("--") {
                None => o.words.push(a),
                Some(n) => {
                    let flag = n == "small";
                    let value = args.next_if(|v| !flag && !v.starts_with("--"));
                    o.named.push((n.into(), value));
                }
            }
        }
        o
    }

    /// Whether a name was given.
    pub fn has(&self, name: &str) -> bool {
        self.named.iter().any(|(n, _)| n == name)
    }

    /// A name's value.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.named.iter().find(|(n, _)| n == name).and_then(|(_, v)| v.as_deref())
    }

    /// A number: as given, else the second one for `--small`, else the first.
    pub fn number<T: std::str::FromStr + Copy>(&self, name: &str, full: T, small: T) -> T {
        let default = if self.has("small") { small } else { full };
        self.text(name).and_then(|v| v.parse().ok()).unwrap_or(default)
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let command = args.next().unwrap_or_default();
    let o = Options::parse(args);
    let done = match command.as_str() {
        "list" => {
            for w in workload::ALL {
                println!("{:10} v{}  {}", w.id, w.version, w.title);
            }
            Ok(())
        }
        "engines" => {
            for p in engine::presences() {
                println!("{:10} {}", p.name, p.version.or(p.absent).unwrap_or_default());
            }
            Ok(())
        }
        "fetch" => fetch::run(),
        "run" => run(&o),
        "compare" => compare::run(&o),
        "report" => report::run(&o),
        "targets" => read_all(&o.words).map(|e| print!("{}", targets::table(&e))),
        "prepare-counts" => workload::prepare::counts(&o),
        "prepare-worker" => workload::prepare::worker(&o),
        "write-counts" => workload::writes::counts(&o),
        "write-worker" => workload::writes::worker(&o),
        "worker" => workload::worker(&o),
        _ => Err(
            "usage: bench-compare list | engines | fetch | run WORKLOAD... | compare A B | report FILE..."
                .into(),
        ),
    };
    if let Err(e) = done {
        eprintln!("bench-compare: {e}");
        std::process::exit(1);
    }
}

/// Several envelopes as one; the first one's machine stands for all.
pub fn read_all(paths: &[String]) -> Result<Envelope> {
    let mut all = paths.iter().map(|p| Envelope::read(Path::new(p)));
    let mut first = all.next().ok_or("no envelope is named")??;
    for e in all {
        first.runs.extend(e?.runs);
    }
    Ok(first)
}

fn git(args: &[&str]) -> String {
    let out = Command::new("git").args(args).output();
    out.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string()).unwrap_or_default()
}

fn run(o: &Options) -> Result<()> {
    if o.words.is_empty() {
        return Err("no workload is named; see `bench-compare list`".into());
    }
    let out = PathBuf::from(o.text("out").unwrap_or("bench/envelope.json"));
    let mut e = if out.exists() { Envelope::read(&out)? } else { Envelope::default() };
    e.format = envelope::FORMAT;
    e.created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let args: Vec<String> = std::env::args().skip(1).collect();
    e.command.push(format!("bench-compare {}", args.join(" ")));
    e.commit = git(&["rev-parse", "HEAD"]);
    e.dirty =
        !git(&["status", "--porcelain", "--untracked-files=no", "--", "crates", "Cargo.toml"]).is_empty();
    e.profile =
        option_env!("PROFILE").unwrap_or(if cfg!(debug_assertions) { "dev" } else { "optimised" }).into();
    e.machine = machine::look()?;
    e.engines = engine::presences();
    for p in e.engines.iter().filter(|p| p.absent.is_some()) {
        eprintln!("{}: {}", p.name, p.absent.as_deref().unwrap_or(""));
    }
    let all = o.words.iter().any(|w| w == "all");
    for name in &o.words {
        if name != "all" && !workload::ALL.iter().any(|w| w.id == name) {
            return Err(format!("no such workload: {name}").into());
        }
    }
    for w in workload::ALL.iter().filter(|w| all || o.words.iter().any(|n| n == w.id)) {
        eprintln!("== {} v{}: {}", w.id, w.version, w.title);
        let mut run = envelope::Run {
            workload: w.id.into(),
            version: w.version,
            title: w.title.into(),
            ..envelope::Run::default()
        };
        run.scale = o
            .named
            .iter()
            .map(|(n, v)| format!("{n} {}", v.as_deref().unwrap_or("")).trim().into())
            .collect();
        run.load[0] = machine::load();
        let start = Instant::now();
        if let Err(err) = (w.run)(o, &mut run) {
            run.failures.push(err.message);
        }
        run.failures.iter().for_each(|f| eprintln!("  failure: {f}"));
        run.seconds = start.elapsed().as_secs_f64();
        run.load[1] = machine::load();
        e.runs.retain(|r| r.workload != w.id);
        e.runs.push(run);
        e.write(&out)?;
    }
    eprintln!("wrote {}", out.display());
    Ok(())
}
