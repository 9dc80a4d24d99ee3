//! Web mix: posts, users and tags; four reads for each write; processes and threads, each with a connection of its own.
//!
//! Closed loop for throughput; then open loop, where requests arrive at half of what the slower engine managed and a latency
//! begins when the request was due, so that waiting in line counts. Writes alone with the knobs of the tuning guide, a ladder
//! of cache sizes.

use super::{again, compare, in_turn, place};
use crate::Options;
use crate::envelope::Run;
use crate::stats;
use iolite_bench::cases;
use iolite_bench::engine::{Database, Kind, Query, Result, find, int, text};
use iolite_bench::random::Random;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const SCHEMA: &str = "
CREATE TABLE users(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, created_at INTEGER, updated_at INTEGER);
CREATE TABLE posts(id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL, content TEXT, created_at INTEGER,
  updated_at INTEGER);
CREATE TABLE user_posts(id INTEGER PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL REFERENCES users(id),
  post_id INTEGER NOT NULL REFERENCES posts(id), created_at INTEGER);
CREATE TABLE tags(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, created_at INTEGER);
CREATE TABLE posts_tags(id INTEGER PRIMARY KEY AUTOINCREMENT, post_id INTEGER NOT NULL REFERENCES posts(id),
  tag_id INTEGER NOT NULL REFERENCES tags(id), created_at INTEGER);
CREATE INDEX users_created ON users(created_at);
CREATE INDEX posts_created ON posts(created_at);
CREATE INDEX user_posts_user ON user_posts(user_id, post_id);
CREATE INDEX user_posts_post ON user_posts(post_id);
CREATE INDEX posts_tags_post ON posts_tags(post_id, tag_id);
";
const USERS: i64 = 4_000;
const TAGS: i64 = 200;
const POSTS: i64 = 15_000;
/// When the first row was made; one row a second.
const EPOCH: i64 = 1_700_000_000;

const STATEMENTS: [&str; 7] = [
    "SELECT p.id, p.title, p.created_at FROM user_posts up JOIN posts p ON p.id = up.post_id WHERE up.user_id = ?1 \
     ORDER BY p.created_at DESC LIMIT 100 OFFSET ?2",
    "SELECT id, title, content FROM posts WHERE created_at >= ?1 AND created_at < ?2 ORDER BY created_at LIMIT 100",
    "SELECT p.title, p.content, u.name, t.name FROM posts p LEFT JOIN user_posts up ON up.post_id = p.id \
     LEFT JOIN users u ON u.id = up.user_id LEFT JOIN posts_tags pt ON pt.post_id = p.id LEFT JOIN tags t ON t.id = pt.tag_id \
     WHERE p.id = ?1",
    "SELECT id, name FROM users WHERE created_at >= ?1 AND created_at < ?2 ORDER BY created_at LIMIT 100",
    "INSERT INTO posts(title, content, created_at, updated_at) VALUES(?1, ?2, ?3, ?3)",
    "INSERT INTO user_posts(user_id, post_id, created_at) VALUES(?1, ?2, ?3)",
    "INSERT INTO posts_tags(post_id, tag_id, created_at) VALUES(?1, ?2, ?3)",
];

const TUNED: &str = "PRAGMA busy_timeout=5000; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-65536; \
                     PRAGMA temp_store=MEMORY; PRAGMA foreign_keys=ON;";

/// Measures.
pub fn run(o: &Options, run: &mut Run) -> Result<()> {
    let counts: Vec<usize> = match o.text("workers") {
        Some(l) => l.split(',').filter_map(|n| n.parse().ok()).collect(),
        None => vec![1, 2, 4, 8],
    };
    gate(run)?;
    for e in ["stock", "iolite"] {
        run.set("connection kept", e, TUNED, "consistent; the last commits may be lost");
    }
    for &n in &counts {
        for processes in [true, false] {
            let job = Job { processes, workers: n, settings: TUNED.into(), keep: true, writes: 20 };
            let label = format!("{n} {}, connection kept", if processes { "processes" } else { "threads" });
            if let Err(e) = both(o, run, &job, &label, true) {
                run.failures.push(format!("{label}: {e}"));
            }
        }
    }
    for &n in counts.iter().filter(|n| [1, 4].contains(*n)) {
        let job = Job { processes: true, workers: n, settings: TUNED.into(), keep: false, writes: 20 };
        if let Err(e) = both(o, run, &job, &format!("{n} processes, connection per request"), false) {
            run.failures.push(format!("connection per request: {e}"));
        }
    }
    knobs(o, run);
    if !counts.contains(&64) {
        run.missing.push("16 and 64 workers: ask with `--workers 16,64`; the machine has two cores".into());
    }
    Ok(())
}

/// Writes alone with one setting after the other, four processes; the mixed load with caches from 8 MB to 1 GB.
fn knobs(o: &Options, run: &mut Run) {
    let wal = "PRAGMA busy_timeout=5000; PRAGMA journal_mode=WAL;";
    let list = [
        ("writes: untuned", "PRAGMA busy_timeout=0;".to_string()),
        ("writes: busy_timeout 400", "PRAGMA busy_timeout=400;".into()),
        ("writes: busy_timeout 2000", "PRAGMA busy_timeout=2000;".into()),
        ("writes: busy_timeout 5000", "PRAGMA busy_timeout=5000;".into()),
        ("writes: WAL FULL", wal.to_string()),
        ("writes: WAL NORMAL", format!("{wal} PRAGMA synchronous=NORMAL;")),
        (
            "writes: autocheckpoint 2000",
            format!("{wal} PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=2000;"),
        ),
        (
            "writes: autocheckpoint 4000",
            format!("{wal} PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=4000;"),
        ),
        ("writes: mmap 1 GB", format!("{wal} PRAGMA synchronous=NORMAL; PRAGMA mmap_size=1073741824;")),
        ("mixed: cache 8 MB", format!("{TUNED} PRAGMA cache_size=-8192;")),
        ("mixed: cache 256 MB", format!("{TUNED} PRAGMA cache_size=-262144;")),
        ("mixed: cache 1 GB", format!("{TUNED} PRAGMA cache_size=-1048576;")),
    ];
    for (label, settings) in list {
        for e in ["stock", "iolite"] {
            let keeps = if settings.contains("NORMAL") {
                "consistent; the last commits may be lost"
            } else {
                "each commit"
            };
            run.set(label, e, &settings, keeps);
        }
        let writes = if label.starts_with("writes") { 100 } else { 20 };
        let job = Job { processes: true, workers: 4, settings, keep: true, writes };
        if let Err(e) = both(o, run, &job, label, false) {
            run.failures.push(format!("{label}: {e}"));
        }
    }
}

/// A client with its statements.
struct Client<'d> {
    db: &'d dyn Database,
    statements: Vec<Box<dyn Query + 'd>>,
}

impl<'d> Client<'d> {
    fn new(db: &'d dyn Database) -> Result<Client<'d>> {
        Ok(Client { db, statements: STATEMENTS.iter().map(|s| db.prepare(s)).collect::<Result<_>>()? })
    }

    /// One request; answers the sum of what it read.
    fn request(&mut self, r: &mut Random, write: bool) -> Result<i64> {
        let st = &mut self.statements;
        if !write {
            let at = EPOCH + r.range(0, POSTS - 200);
            return match r.range(0, 3) {
                0 => st[0].run(&[int(r.range(1, USERS)), int(0)]),
                1 => st[1].run(&[int(at), int(at + 100)]),
                2 => st[2].run(&[int(r.range(1, POSTS))]),
                _ => {
                    let at = EPOCH + r.range(0, USERS - 200);
                    st[3].run(&[int(at), int(at + 100)])
                }
            };
        }
        let (user, now) = (r.range(1, USERS), EPOCH + POSTS);
        let (title, content) = (text(r.letters(30)), text(r.letters(400)));
        let tags = [r.range(1, TAGS), r.range(1, TAGS)];
        self.db.batch("BEGIN IMMEDIATE")?;
        let done = (|| -> Result<()> {
            let st = &mut self.statements;
            st[4].run(&[title, content, int(now)])?;
            let id = self.db.rows("SELECT last_insert_rowid()")?;
            let id = id[0][0].clone();
            st[5].run(&[int(user), id.clone(), int(now)])?;
            for t in tags {
                st[6].run(&[id.clone(), int(t), int(now)])?;
            }
            self.db.batch("COMMIT")
        })();
        if done.is_err() {
            let _ = self.db.batch("ROLLBACK");
        }
        done.map(|()| 0)
    }
}

fn seed(path: &Path) -> Result<()> {
    let db = find("stock")?.open(path)?;
    db.batch(SCHEMA)?;
    let mut r = Random(31);
    let mut i = 0;
    db.load("users", 4, &mut |row| {
        i += 1;
        row.extend([int(i), text(format!("user {i}")), int(EPOCH + i - 1), int(EPOCH + i - 1)]);
        i <= USERS
    })?;
    i = 0;
    db.load("tags", 3, &mut |row| {
        i += 1;
        row.extend([int(i), text(format!("tag {i}")), int(EPOCH)]);
        i <= TAGS
    })?;
    i = 0;
    db.load("posts", 5, &mut |row| {
        i += 1;
        row.extend([
            int(i),
            text(r.letters(30)),
            text(r.letters(400)),
            int(EPOCH + i - 1),
            int(EPOCH + i - 1),
        ]);
        i <= POSTS
    })?;
    i = 0;
    db.load("user_posts", 4, &mut |row| {
        i += 1;
        row.extend([int(i), int(r.range(1, USERS)), int(i), int(EPOCH + i)]);
        i <= POSTS
    })?;
    i = 0;
    db.load("posts_tags", 4, &mut |row| {
        i += 1;
        row.extend([int(i), int(r.range(1, POSTS)), int(r.range(1, TAGS)), int(EPOCH + i)]);
        i <= 15_800
    })?;
    db.batch("ANALYZE")
}

fn fresh(name: &str, settings: &str) -> Result<PathBuf> {
    let master = cases::directory().join("web-1.db");
    if !master.exists() {
        std::fs::create_dir_all(cases::directory())?;
        let part = master.with_extension("part");
        cases::remove(&part);
        seed(&part)?;
        std::fs::rename(part, &master)?;
    }
    let path = place(&format!("web-{name}"))?;
    std::fs::copy(master, &path)?;
    find(name)?.open(&path)?.batch(settings)?;
    Ok(path)
}

/// 1,000 requests of one client answer the same and leave the same behind.
fn gate(run: &mut Run) -> Result<()> {
    let mut sums = Vec::new();
    let mut seats = Vec::new();
    for name in ["stock", "iolite"] {
        let path = fresh(name, TUNED)?;
        let db = find(name)?.open(&path)?;
        let mut c = Client::new(&*db)?;
        let mut r = Random(3);
        let mut sum = 0i64;
        for _ in 0..1_000 {
            let write = r.range(0, 99) < 20;
            sum = sum.wrapping_add(c.request(&mut r, write).map_err(|e| e.at(name))?);
        }
        drop(c);
        sums.push(sum);
        seats.push(super::Seat { name: name.into(), db, path });
    }
    if sums[0] != sums[1] {
        return Err(format!("answers of 1,000 requests differ: {sums:?}").into());
    }
    compare(
        &seats,
        "posts",
        "SELECT count(*), max(id), sum(length(content)), max(content) FROM posts",
        false,
    )?;
    compare(&seats, "links", "SELECT post_id, tag_id FROM posts_tags ORDER BY id", false)?;
    run.gates.push("answers of 1,000 requests and what they leave behind are equal".into());
    seats.into_iter().for_each(super::Seat::remove);
    Ok(())
}

/// How requests are made.
#[derive(Serialize, Deserialize, Clone, Debug)]
struct Job {
    processes: bool,
    workers: usize,
    settings: String,
    keep: bool,
    /// Percent of requests that write.
    writes: i64,
}

/// What a worker does.
#[derive(Serialize, Deserialize, Clone, Debug)]
struct Task {
    engine: String,
    path: PathBuf,
    job: Job,
    seed: u64,
    /// When to begin, in microseconds since 1970.
    begin: u64,
    seconds: f64,
    /// Requests a second; 0: as many as there can be.
    rate: f64,
}

/// What a worker saw: latencies in microseconds, errors by kind.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
struct Seen {
    reads: Vec<f64>,
    writes: Vec<f64>,
    busy: u64,
    other: u64,
    message: String,
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as u64)
}

fn work(t: &Task) -> Result<Seen> {
    let e = find(&t.engine)?;
    let open = || -> Result<Box<dyn Database>> {
        let db = e.open(&t.path)?;
        db.batch(&t.job.settings)?;
        Ok(db)
    };
    let kept = if t.job.keep { Some(open()?) } else { None };
    let mut client = kept.as_ref().map(|db| Client::new(&**db)).transpose()?;
    let mut r = Random(t.seed);
    let mut seen = Seen::default();
    std::thread::sleep(Duration::from_micros(t.begin.saturating_sub(now())));
    let start = Instant::now();
    let mut due = start;
    loop {
        if t.rate > 0.0 {
            // Arrivals at random, on average at the rate.
            due += Duration::from_secs_f64(-(1.0 - r.unit()).ln() / t.rate);
            if let Some(wait) = due.checked_duration_since(Instant::now()) {
                std::thread::sleep(wait);
            }
        } else {
            due = Instant::now();
        }
        if (due - start).as_secs_f64() >= t.seconds {
            return Ok(seen);
        }
        let write = r.range(0, 99) < t.job.writes;
        let done = match &mut client {
            Some(c) => c.request(&mut r, write),
            None => open().and_then(|db| Client::new(&*db)?.request(&mut r, write)),
        };
        match done {
            Ok(_) => {
                let us = due.elapsed().as_secs_f64() * 1e6;
                if write { seen.writes.push(us) } else { seen.reads.push(us) }
            }
            Err(e) if e.kind == Kind::Busy => seen.busy += 1,
            Err(e) => {
                seen.other += 1;
                seen.message = e.message;
            }
        }
    }
}

/// All workers of a job at once.
fn together(engine: &str, path: &Path, job: &Job, turn: usize, seconds: f64, rate: f64) -> Result<Vec<Seen>> {
    let begin = now() + 150_000 + 20_000 * job.workers as u64;
    let tasks: Vec<Task> = (0..job.workers)
        .map(|w| Task {
            engine: engine.into(),
            path: path.into(),
            job: job.clone(),
            seed: (turn * 100 + w) as u64,
            begin,
            seconds,
            rate: rate / job.workers as f64,
        })
        .collect();
    let one = |t: &Task| -> Result<Seen> {
        if !job.processes {
            return work(t);
        }
        let text = serde_json::to_string(t).map_err(|e| e.to_string())?;
        let out = again(&["web".into(), text])?;
        serde_json::from_str(&out).map_err(|e| e.to_string().into())
    };
    std::thread::scope(|s| {
        let hands: Vec<_> = tasks.iter().map(|t| s.spawn(move || one(t))).collect();
        hands.into_iter().map(|h| h.join().unwrap_or_else(|_| Err("a worker panicked".into()))).collect()
    })
}

/// A worker in a process of its own.
pub fn worker(o: &Options) -> Result<()> {
    let text = o.words.get(1).ok_or("a task is wanted")?;
    let task: Task = serde_json::from_str(text).map_err(|e| e.to_string())?;
    // Asked for by hand: the threads of a job in a process of their own, for a profiler.
    if !task.job.processes && task.job.workers > 1 {
        let all = together(&task.engine, &task.path, &task.job, 0, task.seconds, 0.0)?;
        let done: usize = all.iter().map(|s| s.reads.len() + s.writes.len()).sum();
        println!("{} requests a second", done as f64 / task.seconds);
        return Ok(());
    }
    let seen = work(&task)?;
    println!("{}", serde_json::to_string(&seen).map_err(|e| e.to_string())?);
    Ok(())
}

/// Both engines in turn: throughput, and if `open` latencies at an equal rate.
fn both(o: &Options, run: &mut Run, job: &Job, label: &str, open: bool) -> Result<()> {
    let turns = o.number("repeat", 5, 3);
    let seconds: f64 = o.number("seconds", 1.0, 0.4);
    let names = ["stock", "iolite"];
    let paths = names.map(|n| fresh(n, &job.settings));
    let [a, b] = paths;
    let paths = [a?, b?];
    let mut closed = [Seen::default(), Seen::default()];
    let rates = in_turn(2, turns, |k, t| {
        let all = together(names[k], &paths[k], job, t, seconds, 0.0)?;
        let done: usize = all.iter().map(|s| s.reads.len() + s.writes.len()).sum();
        all.into_iter().for_each(|s| add(&mut closed[k], s));
        Ok(done as f64 / seconds)
    })?;
    let slower = rates.iter().map(|r| stats::summary(r).median).fold(f64::MAX, f64::min);
    for (k, samples) in rates.into_iter().enumerate() {
        run.more("requests", label, names[k], "req/s", samples);
        if let Some(r) = run.rows.last_mut() {
            r.percentiles = percentiles(&mut closed[k].writes);
        }
        let c = &closed[k];
        if c.busy + c.other > 0 {
            run.texts.push((
                format!("errors, {label}, {}", names[k]),
                format!("busy {}, other {} {}", c.busy, c.other, c.message),
            ));
        }
        if c.other > 0 {
            run.failures.push(format!("{label}: {}: {} errors: {}", names[k], c.other, c.message));
        }
    }
    if open && slower > 0.0 {
        let mut seen = [Seen::default(), Seen::default()];
        let p99 = in_turn(2, turns, |k, t| {
            let mut here = Seen::default();
            for s in together(names[k], &paths[k], job, 50 + t, seconds, slower / 2.0)? {
                add(&mut here, s);
            }
            let mut all: Vec<f64> = here.reads.iter().chain(&here.writes).copied().collect();
            all.sort_by(f64::total_cmp);
            add(&mut seen[k], here);
            Ok(stats::quantile(&all, 0.99))
        })?;
        for (k, samples) in p99.into_iter().enumerate() {
            run.less("p99", label, names[k], "us", samples);
            for (what, list) in [
                ("read latency, open loop", &mut seen[k].reads),
                ("write latency, open loop", &mut seen[k].writes),
            ] {
                let p = percentiles(list);
                let samples = vec![stats::quantile(list, 0.5)];
                run.less(what, label, names[k], "us", samples);
                if let Some(r) = run.rows.last_mut() {
                    r.percentiles = p;
                }
            }
        }
    }
    for (k, p) in paths.iter().enumerate() {
        let ok = find(names[k])?.open(p)?.rows("PRAGMA integrity_check")?;
        if iolite_bench::engine::show(&ok[0]) != "ok" {
            run.failures.push(format!(
                "{label}: {}: integrity_check: {}",
                names[k],
                iolite_bench::engine::show(&ok[0])
            ));
        }
        cases::remove(p);
    }
    Ok(())
}

fn add(to: &mut Seen, s: Seen) {
    to.reads.extend(s.reads);
    to.writes.extend(s.writes);
    to.busy += s.busy;
    to.other += s.other;
    if !s.message.is_empty() {
        to.message = s.message;
    }
}

fn percentiles(list: &mut [f64]) -> Vec<(f64, f64)> {
    list.sort_by(f64::total_cmp);
    [0.5, 0.99, 0.999].map(|s| (s, stats::quantile(list, s))).to_vec()
}
