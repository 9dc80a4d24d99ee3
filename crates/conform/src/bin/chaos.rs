//! `chaos [--seconds N] [--seed S] [--round R]`: processes of both engines open the same files, work, close, and are killed
//! (SIGKILL) or stopped for a while (SIGSTOP) at random.
//!
//! A round has a folder of its own with two databases, in WAL or in rollback mode, or changing between the two. Four processes
//! work on them; each connection draws its settings (engine, journal mode, `synchronous`, cache, locking mode, attached
//! database, leases, checkpoint thread, direct writes of large values) and its transactions (savepoints, spills, large values,
//! blob handles, VACUUM, copies, online backups, checkpoints). Before a COMMIT a process notes its number in a file of its own, and afterwards what
//! became of it. A round is drawn from the seed and its number: `--round` runs that one again (what the processes meet
//! when is the scheduler's).
//!
//! What must hold: in every snapshot the accounts add up, by table and by index; every acknowledged transaction is in every
//! file that it changed, and none that was rolled back; where both files are in rollback modes and synced, one that was killed
//! in between is in both or in neither; stock finds the files in order; nothing but BUSY is ever answered; nobody waits longer than
//! [`LONGEST`].

use iolite_conform::differ::rng::Rng;
use iolite_conform::engine::{Db, Trouble};
use iolite_conform::rounds::{self, Counts};
use iolite_testkit::{Child as Forked, continue_process, stop_process};
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Processes at a time.
const WORKERS: usize = 4;
/// How long a round lasts.
const ROUND: Duration = Duration::from_secs(3);
/// How long a statement may take: busy timeouts, and stops of those who are in the way.
const LONGEST: Duration = Duration::from_secs(20);
const BUSY_TIMEOUT: u32 = 2000;
const ACCOUNTS: i64 = 100;
const TOTAL: i64 = ACCOUNTS * 1000;
const FILES: [&str; 2] = ["a.db", "b.db"];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if let ["worker", dir, seed, name] = args[..] {
        let done = work(Path::new(dir), seed.parse().unwrap_or(0), name);
        if let Err(e) = done {
            eprintln!("{name}: {e}");
            return ExitCode::FAILURE;
        }
        return ExitCode::SUCCESS;
    }
    rounds::run("chaos", &args, play)
}

/// What a round is about.
struct Round {
    /// `wal`, `rollback` or `mixed`, for each file.
    modes: [&'static str; 2],
    auto_vacuum: usize,
    page_size: usize,
    /// Connections attach the other file, so that transactions have lists of journals. Stock keeps to journals that are
    /// deleted then: where it finds one of a list that is gone, and is to keep the file, it leaves the list's name in it,
    /// and its next ROLLBACK does nothing (`docs/decisions.md` shows it with stock's processes alone).
    attaches: bool,
}

impl Round {
    fn draw(seed: u64) -> Round {
        let mut rng = Rng::new(seed);
        let mut mode = || *rng.pick(&["wal", "wal", "rollback", "rollback", "rollback", "mixed"]);
        let modes = [mode(), mode()];
        let (auto_vacuum, page_size) = (rng.below(3), *rng.pick(&[512, 1024, 4096]));
        Round { modes, auto_vacuum, page_size, attaches: rng.chance(60) }
    }
}

fn round_seed(seed: u64, round: u64) -> u64 {
    seed.wrapping_mul(1_000_003).wrapping_add(round)
}

fn play(dir: &Path, seed: u64, round: u64, counts: &mut Counts) -> Result<(), String> {
    let seed = round_seed(seed, round);
    let about = Round::draw(seed);
    let _ = fs::remove_dir_all(dir);
    fs::create_dir_all(dir).map_err(|e| e.to_string())?;
    fs::write(dir.join("seed"), seed.to_string()).map_err(|e| e.to_string())?;
    for (file, mode) in FILES.iter().zip(about.modes) {
        prepare(&dir.join(file), &about, mode)?;
    }
    let mut rng = Rng::new(seed ^ 0xc4a0);
    let mut generation = 0;
    let mut start = |i: usize| -> Result<Child, String> {
        generation += 1;
        let name = format!("p{i}g{generation}");
        let errors = File::create(dir.join(format!("{name}.err"))).map_err(|e| e.to_string())?;
        Command::new(std::env::current_exe().map_err(|e| e.to_string())?)
            .args(["worker", &dir.to_string_lossy(), &(seed ^ generation << 20).to_string(), &name])
            .stdin(Stdio::null())
            .stderr(errors)
            .spawn()
            .map_err(|e| e.to_string())
    };
    let mut workers: Vec<Child> = (0..WORKERS).map(&mut start).collect::<Result<_, _>>()?;
    let mut stopped: HashMap<usize, Instant> = HashMap::new();
    let begun = Instant::now();
    let mut count = |what: &str| *counts.entry(what.to_string()).or_default() += 1;
    while begun.elapsed() < ROUND {
        std::thread::sleep(Duration::from_millis(2 + rng.below(60) as u64));
        stopped.retain(|&i, until| {
            let over = Instant::now() >= *until;
            if over {
                continue_process(workers[i].id());
            }
            !over
        });
        let i = rng.below(WORKERS);
        if let Ok(Some(status)) = workers[i].try_wait() {
            // Its time was over by itself: only an error is worth a word.
            if !status.success() {
                break;
            }
            workers[i] = start(i)?;
        } else if rng.chance(25) {
            stop_process(workers[i].id());
            stopped.insert(i, Instant::now() + Duration::from_millis(5 + rng.below(200) as u64));
            count("stops");
        } else if rng.chance(70) {
            stopped.remove(&i);
            let _ = workers[i].kill();
            let _ = workers[i].wait();
            count("kills");
            workers[i] = start(i)?;
        }
    }
    for i in stopped.into_keys() {
        continue_process(workers[i].id());
    }
    File::create(dir.join("stop")).map_err(|e| e.to_string())?;
    let last = Instant::now() + 2 * LONGEST;
    let mut hung = 0;
    for w in &mut workers {
        while w.try_wait().is_ok_and(|s| s.is_none()) && Instant::now() < last {
            std::thread::sleep(Duration::from_millis(5));
        }
        if w.try_wait().is_ok_and(|s| s.is_none()) {
            hung += 1;
            let _ = w.kill();
            let _ = w.wait();
        }
    }
    let mut wrong = Vec::new();
    if hung > 0 {
        wrong.push(format!("{hung} processes did not come to an end"));
    }
    for e in fs::read_dir(dir).map_err(|e| e.to_string())?.flatten() {
        let name = e.file_name().to_string_lossy().into_owned();
        if name.ends_with(".err") {
            let text = fs::read_to_string(e.path()).unwrap_or_default();
            text.lines().for_each(|l| wrong.push(l.to_string()));
        } else if name.ends_with(".drawn") {
            for l in fs::read_to_string(e.path()).unwrap_or_default().lines() {
                *counts.entry(l.to_string()).or_default() += 1;
            }
        }
    }
    // The first to open may have to recover: each engine in turn.
    let engines = if rng.chance(50) { ["iolite", "stock"] } else { ["stock", "iolite"] };
    for engine in engines {
        if let Err(e) = verify(dir, engine, &about) {
            wrong.push(format!("{engine}: {e}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("modes {:?}\n{}", about.modes, wrong.join("\n"))) }
}

/// A database with its accounts, made by stock.
fn prepare(path: &Path, about: &Round, mode: &str) -> Result<(), String> {
    let c = iolite_stock::Connection::open(&path.to_string_lossy()).map_err(|e| e.message)?;
    let mode = if mode == "wal" { "wal" } else { "delete" };
    c.execute_batch(&format!(
        "PRAGMA page_size={}; PRAGMA auto_vacuum={}; PRAGMA journal_mode={mode};
         CREATE TABLE acc(id INTEGER PRIMARY KEY, v INTEGER, pad TEXT); CREATE INDEX acc_v ON acc(v);
         WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < {ACCOUNTS})
           INSERT INTO acc SELECT i, 1000, hex(zeroblob(60)) FROM n;
         CREATE TABLE ledger(who TEXT, n INTEGER, PRIMARY KEY(who, n));
         CREATE TABLE big(id INTEGER PRIMARY KEY, n INTEGER, data BLOB); INSERT INTO big VALUES(1, 100, x'41'), (2, 100, x'41'), (3, 100, x'41');
         CREATE TABLE junk(a, b); CREATE INDEX junk_b ON junk(b)",
        about.page_size, about.auto_vacuum
    ))
    .map_err(|e| e.message)
}

/// One snapshot: accounts by table and by index, and large values, must agree.
fn snapshot(db: &str) -> String {
    format!(
        "SELECT (SELECT sum(v) FROM {db}.acc NOT INDEXED), (SELECT count(*) FROM {db}.acc), \
         (SELECT sum(v) FROM {db}.acc INDEXED BY acc_v), \
         (SELECT count(*) FROM {db}.big WHERE data <> CAST(printf('%.*c', n / 100, char(65 + n % 100)) AS BLOB))"
    )
}

const SOUND: [i64; 4] = [TOTAL, ACCOUNTS, TOTAL, 0];

fn verify(dir: &Path, engine: &str, about: &Round) -> Result<(), String> {
    let db = Db::open(engine, &dir.join(FILES[0]).to_string_lossy())?;
    let told = |what: &'static str| move |e: Trouble| format!("{what}: {e:?}");
    // A forked child may outlive its killed parent, and be the last to close a log.
    db.run(&format!("PRAGMA busy_timeout = {BUSY_TIMEOUT}")).map_err(told("a setting"))?;
    db.run(&format!("ATTACH '{}' AS b", dir.join(FILES[1]).display())).map_err(told("attach"))?;
    for name in ["main", "b"] {
        let found = db.numbers(&snapshot(name)).map_err(told("at the end"))?;
        if found != SOUND {
            return Err(format!("{name} does not add up at the end: {found:?}"));
        }
    }
    let checked = match &db {
        Db::Stock(c) => {
            let rows = c.query("PRAGMA integrity_check").map_err(|e| e.message)?;
            matches!(&rows[..], [r] if r[..] == [iolite_stock::Value::Text(b"ok".to_vec())])
                .then_some(())
                .ok_or(format!("{rows:?}"))
        }
        Db::Iolite(c) => {
            let rows = c.query("PRAGMA integrity_check", &[]).map_err(|e| e.to_string())?;
            let text: Vec<String> = rows.iter().map(|r| r[0].to_string_lossy().to_string()).collect();
            if text == ["ok"] { Ok(()) } else { Err(text.join("; ")) }
        }
    };
    checked.map_err(|e| format!("integrity_check: {e}"))?;
    let one_decision = about.modes == ["rollback", "rollback"];
    for e in fs::read_dir(dir).map_err(|e| e.to_string())?.flatten() {
        let name = e.file_name().to_string_lossy().into_owned();
        let Some(who) = name.strip_suffix(".notes") else { continue };
        let notes = fs::read_to_string(e.path()).map_err(|e| e.to_string())?;
        let mut fates: BTreeMap<i64, (char, String)> = BTreeMap::new();
        // What a kill cut short is no note.
        for line in notes.split_inclusive('\n').filter(|l| l.ends_with('\n')) {
            let mut words = line.split_whitespace();
            let (Some(fate), Some(n)) = (words.next(), words.next().and_then(|n| n.parse().ok())) else {
                return Err(format!("a note that cannot be read: {line}"));
            };
            let fate = fate.chars().next().unwrap_or('?');
            let files = words.next().map(str::to_owned);
            let entry = fates.entry(n).or_insert((fate, String::new()));
            entry.0 = fate;
            entry.1 = files.unwrap_or(std::mem::take(&mut entry.1));
        }
        let mut there = [Vec::new(), Vec::new()];
        for (list, name) in there.iter_mut().zip(["main", "b"]) {
            *list = all(&db, &format!("SELECT n FROM {name}.ledger WHERE who = '{who}'"))?;
        }
        for (n, (fate, files)) in fates {
            let seen: Vec<bool> = [("a", 0), ("b", 1)]
                .into_iter()
                .filter(|(f, _)| files.contains(f))
                .map(|(_, i)| there[i].contains(&n))
                .collect();
            let right = match fate {
                'a' => seen.iter().all(|s| *s),
                'r' => seen.iter().all(|s| !*s),
                _ => !one_decision || files.contains('!') || seen.iter().all(|s| *s == seen[0]),
            };
            if !right {
                let meant = match fate {
                    'a' => "acknowledged",
                    'r' => "rolled back",
                    _ => "under way when it was killed",
                };
                return Err(format!("transaction {n} of {who} on {files}, {meant}, is there: {seen:?}"));
            }
        }
    }
    Ok(())
}

fn all(db: &Db, sql: &str) -> Result<Vec<i64>, String> {
    Ok(match db {
        Db::Iolite(c) => {
            let rows = c.query(sql, &[]).map_err(|e| e.to_string())?;
            rows.iter().map(|r| r[0].to_int()).collect()
        }
        Db::Stock(c) => {
            let rows = c.query(sql).map_err(|e| e.message)?;
            rows.iter().map(|r| if let iolite_stock::Value::Int(n) = r[0] { n } else { -1 }).collect()
        }
    })
}

/// What a process does: connections one after the other, on one thread or two.
fn work(dir: &Path, seed: u64, name: &str) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let engine = if rng.chance(45) { "stock" } else { "iolite" };
    // Two threads of one process: what they share within it.
    let threads = if engine == "iolite" && rng.chance(40) { 2 } else { 1 };
    let about = Round::draw(round_of(dir)?);
    std::thread::scope(|s| {
        let all: Vec<_> = (0..threads)
            .map(|t| {
                let (rng, about) = (Rng::new(seed ^ (t + 1) << 40), &about);
                let who = format!("{name}t{t}");
                s.spawn(move || Worker::new(dir, &who, engine, rng, about)?.run(threads > 1))
            })
            .collect();
        all.into_iter().try_for_each(|t| t.join().map_err(|_| "a panic".to_string())?)
    })
}

/// The round's seed, which is noted in its folder.
fn round_of(dir: &Path) -> Result<u64, String> {
    let path = dir.join("seed");
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    text.trim().parse().map_err(|_| "the round's seed cannot be read".into())
}

struct Worker<'a> {
    dir: &'a Path,
    who: &'a str,
    engine: &'static str,
    rng: Rng,
    about: &'a Round,
    notes: File,
    drawn: File,
    number: i64,
    /// The process has another thread that works.
    threads: bool,
}

/// What a connection was drawn to be.
struct Session {
    db: Db,
    /// Its main database, and whether the other one is attached.
    main: usize,
    attached: bool,
    /// `synchronous=OFF` on one of them: neither engine lists the journals of a commit then.
    off: bool,
}

impl<'a> Worker<'a> {
    fn new(
        dir: &'a Path,
        who: &'a str,
        engine: &'static str,
        rng: Rng,
        about: &'a Round,
    ) -> Result<Worker<'a>, String> {
        let make = |kind: &str| File::create(dir.join(format!("{who}.{kind}"))).map_err(|e| e.to_string());
        Ok(Worker {
            dir,
            who,
            engine,
            rng,
            about,
            notes: make("notes")?,
            drawn: make("drawn")?,
            number: 0,
            threads: false,
        })
    }

    fn drew(&self, what: &str) {
        let _ = (&self.drawn).write_all(format!("{} {what}\n", self.engine).as_bytes());
    }

    fn over(&self) -> bool {
        self.dir.join("stop").exists()
    }

    fn run(mut self, threads: bool) -> Result<(), String> {
        self.threads = threads;
        if threads {
            self.drew("threads");
        }
        while !self.over() {
            let session = match self.open() {
                Ok(s) => s,
                Err(Trouble::Busy) => continue,
                Err(Trouble::Other(e)) => return Err(format!("opening: {e}")),
            };
            self.drew("connections");
            for _ in 0..1 + self.rng.below(40) {
                if self.over() {
                    break;
                }
                let begun = Instant::now();
                match self.act(&session) {
                    Ok(()) | Err(Trouble::Busy) => {}
                    Err(Trouble::Other(e)) => return Err(e),
                }
                if begun.elapsed() > LONGEST {
                    return Err(format!("waited for {:?}", begun.elapsed()));
                }
            }
            if self.rng.chance(20) {
                std::thread::sleep(Duration::from_millis(self.rng.below(20) as u64));
            }
        }
        Ok(())
    }

    /// Runs statements that may be busy: says which one went wrong otherwise.
    fn run_on(&self, db: &Db, sql: &str) -> Result<(), Trouble> {
        db.run(sql).map_err(|e| match e {
            // Stock's answer where a neighbour removes the list of a transaction's journals in the midst of its recovery
            // (`docs/decisions.md` shows it with stock's processes alone). In WAL mode there is no such list.
            Trouble::Other(e)
                if self.engine == "stock"
                    && e.contains("code: 14,")
                    && !self.about.modes.contains(&"wal") =>
            {
                self.drew("stock met a list of journals that was gone");
                Trouble::Busy
            }
            Trouble::Other(e) => Trouble::Other(format!("{}: {sql:.300}: {e}", self.engine)),
            busy => busy,
        })
    }

    fn open(&mut self) -> Result<Session, Trouble> {
        let main = self.rng.below(2);
        let path = |i: usize| self.dir.join(FILES[i]).to_string_lossy().into_owned();
        let db = Db::open(self.engine, &path(main)).map_err(Trouble::Other)?;
        db.run(&format!("PRAGMA busy_timeout = {BUSY_TIMEOUT}"))?;
        let attached = self.about.attaches && self.rng.chance(55);
        let deletes = self.about.attaches && self.engine == "stock";
        if attached {
            self.run_on(&db, &format!("ATTACH '{}' AS other", path(1 - main)))?;
            self.drew("attach");
        }
        let mut settings = Vec::new();
        let mut off = false;
        for (name, file) in [("main", main), ("other", 1 - main)] {
            if name == "other" && !attached {
                continue;
            }
            let sync = self.rng.below(4);
            off |= sync == 0;
            settings.push(format!("{name}.synchronous = {sync}"));
            let cache = *self.rng.pick(&[1, 3, 10, 100, 2000]);
            if cache <= 10 {
                self.drew("small cache");
            }
            settings.push(format!("{name}.cache_size = {cache}"));
            let mode = match self.about.modes[file] {
                "wal" => "wal",
                "rollback" if deletes => "delete",
                "rollback" => self.rng.pick(&["delete", "truncate", "persist"]),
                // Others may be in the way of a change: that is no error.
                _ if deletes => self.rng.pick(&["wal", "delete"]),
                _ => self.rng.pick(&["wal", "delete", "truncate", "persist"]),
            };
            self.drew(&format!("journal_mode {mode}"));
            settings.push(format!("{name}.journal_mode = {mode}"));
        }
        if !attached && !deletes && self.rng.chance(12) {
            settings.insert(0, "locking_mode = exclusive".into());
            self.drew("exclusive locking mode");
        }
        if self.engine == "iolite" {
            let lease = *self.rng.pick(&[0, 0, 10, 200]);
            settings.push(format!("lock_lease_ms = {lease}"));
            let (thread, direct) = (self.rng.below(2), self.rng.chance(40) as u8);
            settings.push(format!("checkpoint_thread = {thread}"));
            settings.push(format!("large_value_direct = {direct}"));
            for (on, what) in
                [(lease > 0, "lease"), (thread > 0, "checkpoint thread"), (direct > 0, "direct")]
            {
                if on {
                    self.drew(what);
                }
            }
        }
        settings.push(format!("wal_autocheckpoint = {}", self.rng.pick(&[0, 5, 50, 1000])));
        for s in settings {
            match self.run_on(&db, &format!("PRAGMA {s}")) {
                Ok(()) | Err(Trouble::Busy) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(Session { db, main, attached, off })
    }

    fn act(&mut self, s: &Session) -> Result<(), Trouble> {
        let name = if s.attached && self.rng.chance(50) { "other" } else { "main" };
        match self.rng.below(100) {
            0..60 => self.transaction(s),
            60..63 => self.back_up(s, name),
            63..66 => self.read_blob(s, name),
            66..67 if self.engine == "iolite" && !self.threads => self.fork(s, name),
            66..80 => {
                self.drew("reads");
                let found = s.db.numbers(&snapshot(name))?;
                if found != SOUND {
                    return Err(Trouble::Other(format!("{} reads what never was: {found:?}", self.engine)));
                }
                Ok(())
            }
            80..86 => {
                self.drew("repeated reads");
                let sum = format!("SELECT sum(id * v) FROM {name}.acc");
                s.db.run("BEGIN")?;
                let seen = s.db.numbers(&sum).and_then(|one| {
                    std::thread::sleep(Duration::from_micros(self.rng.below(3000) as u64));
                    let two = s.db.numbers(&sum)?;
                    if one == two {
                        return Ok(());
                    }
                    Err(Trouble::Other(format!("{}: a snapshot changed: {one:?} {two:?}", self.engine)))
                });
                let ended = s.db.run("COMMIT");
                seen.and(ended)
            }
            86..92 => {
                let mode = *self.rng.pick(&["PASSIVE", "FULL", "RESTART", "TRUNCATE"]);
                self.drew("checkpoints");
                self.run_on(&s.db, &format!("PRAGMA {name}.wal_checkpoint({mode})")).or_else(locked_is_busy)
            }
            92..94 => {
                self.drew("incremental vacuum");
                self.run_on(&s.db, &format!("PRAGMA {name}.incremental_vacuum(3)"))
            }
            94..95 => {
                self.drew("vacuum");
                self.run_on(&s.db, &format!("VACUUM {name}"))
            }
            95..97 => self.copy(s, name),
            97..98 => {
                self.drew("integrity checks");
                let found = s.db.numbers(&format!("PRAGMA {name}.integrity_check"))?;
                // Numbers of texts: "ok" is 0 for us and -1 by the oracle's wrapper.
                if found.len() == 1 { Ok(()) } else { Err(Trouble::Other(format!("{found:?}"))) }
            }
            _ => {
                std::thread::sleep(Duration::from_micros(self.rng.below(5000) as u64));
                Ok(())
            }
        }
    }

    /// A copy by VACUUM INTO is a snapshot.
    fn copy(&mut self, s: &Session, name: &str) -> Result<(), Trouble> {
        self.drew("copies");
        let to = self.dir.join(format!("{}.copy", self.who));
        let _ = fs::remove_file(&to);
        self.run_on(&s.db, &format!("VACUUM {name} INTO '{}'", to.display()))?;
        let copy = Db::open(self.engine, &to.to_string_lossy()).map_err(Trouble::Other)?;
        let found = copy.numbers(&snapshot("main"))?;
        drop(copy);
        let _ = fs::remove_file(&to);
        if found == SOUND {
            Ok(())
        } else {
            Err(Trouble::Other(format!("a copy does not add up: {found:?}")))
        }
    }

    /// An online backup is a snapshot, whatever its source does between the steps.
    fn back_up(&mut self, s: &Session, name: &str) -> Result<(), Trouble> {
        let to = self.dir.join(format!("{}.backup", self.who));
        let _ = fs::remove_file(&to);
        let pages = *self.rng.pick(&[1, 3, 10, 100, -1]);
        let own = self.rng.chance(30);
        let (mut rng, mut steps) = (Rng::new(self.rng.next()), 0);
        let done = s.db.back_up(name, &to.to_string_lossy(), pages, || {
            steps += 1;
            if own && steps % 5 == 0 {
                // Its own connection changes the source meanwhile.
                let (a, b) = (1 + rng.below(50), 51 + rng.below(50));
                let _ = s.db.run(&format!(
                    "UPDATE {name}.acc SET v = v + iif(id = {a}, 1, -1) WHERE id IN ({a}, {b})"
                ));
            }
            std::thread::sleep(Duration::from_micros(rng.below(300) as u64));
            steps < 400
        })?;
        if !done {
            return Ok(());
        }
        self.drew("online backups");
        let copy = Db::open(self.engine, &to.to_string_lossy()).map_err(Trouble::Other)?;
        let found = copy.numbers(&snapshot("main"))?;
        drop(copy);
        let _ = fs::remove_file(&to);
        if found == SOUND {
            Ok(())
        } else {
            Err(Trouble::Other(format!("{}: a backup does not add up: {found:?}", self.engine)))
        }
    }

    /// A forked child uses the connection, which is idle, and then drops it, or opens one of its own.
    fn fork(&mut self, s: &Session, name: &str) -> Result<(), Trouble> {
        self.drew("forks");
        let (own, path) = (self.rng.chance(30), self.dir.join(FILES[s.main]));
        let child = Forked::fork(|| {
            let opened = own.then(|| Db::open("iolite", &path.to_string_lossy()));
            let found = match &opened {
                Some(Ok(db)) => db.numbers(&snapshot("main")),
                Some(Err(_)) => return false,
                None => s.db.numbers(&snapshot(name)),
            };
            match found {
                Err(Trouble::Busy) => true,
                Ok(found) => found == SOUND,
                Err(Trouble::Other(e)) => {
                    eprintln!("in a forked child: {e}");
                    false
                }
            }
        });
        if child.wait() { Ok(()) } else { Err(Trouble::Other("a forked child failed".into())) }
    }

    /// A large value, read through a handle in one transaction with the number that tells of it.
    fn read_blob(&mut self, s: &Session, name: &str) -> Result<(), Trouble> {
        self.drew("blobs read");
        let (id, by) = (1 + self.rng.below(3) as i64, *self.rng.pick(&[1000, 4096, 65_536]));
        s.db.run("BEGIN")?;
        let read = s.db.numbers(&format!("SELECT n FROM {name}.big WHERE id = {id}")).and_then(|n| {
            let data = s.db.value((name, "big", "data", id), by)?;
            let n = n.first().copied().unwrap_or(-1);
            let right = data.len() as i64 == n / 100 && data.iter().all(|b| *b as i64 == 65 + n % 100);
            let told = || format!("{}: a blob of {} bytes is not what {n} tells of", self.engine, data.len());
            if right { Ok(()) } else { Err(Trouble::Other(told())) }
        });
        let ended = s.db.run("COMMIT");
        read.and(ended)
    }

    fn note(&mut self, fate: char, files: &str) -> Result<(), Trouble> {
        let line = format!("{fate} {} {files}\n", self.number);
        self.notes.write_all(line.as_bytes()).map_err(|e| Trouble::Other(e.to_string()))
    }

    fn transaction(&mut self, s: &Session) -> Result<(), Trouble> {
        self.number += 1;
        let begin = *self.rng.pick(&["BEGIN", "BEGIN IMMEDIATE", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"]);
        self.run_on(&s.db, begin)?;
        let both = s.attached && self.rng.chance(60);
        let names = match (both, s.attached && self.rng.chance(50)) {
            (true, _) => vec![("main", s.main), ("other", 1 - s.main)],
            (false, true) => vec![("other", 1 - s.main)],
            (false, false) => vec![("main", s.main)],
        };
        let mut files: String = names.iter().map(|n| ["a", "b"][n.1]).collect();
        if s.off {
            files.push('!');
        }
        let done = names.iter().try_for_each(|(name, _)| self.changes(&s.db, name));
        let done = done.and_then(|()| self.note('b', &files)).and_then(|()| self.commit(&s.db));
        match done {
            Ok(true) => {
                self.drew(if both { "commits over two files" } else { "commits" });
                self.note('a', &files)
            }
            Ok(false) => {
                self.drew("rollbacks");
                self.note('r', &files)
            }
            Err(e) => {
                // An error may have rolled it back already.
                let _ = s.db.run("ROLLBACK");
                self.note('r', &files)?;
                Err(e)
            }
        }
    }

    /// `false`: it was rolled back.
    fn commit(&mut self, db: &Db) -> Result<bool, Trouble> {
        if self.rng.chance(8) {
            self.run_on(db, "ROLLBACK")?;
            return Ok(false);
        }
        for _ in 0..3 {
            match self.run_on(db, "COMMIT") {
                Err(Trouble::Busy) => {}
                other => return other.map(|()| true),
            }
        }
        self.run_on(db, "ROLLBACK")?;
        Ok(false)
    }

    fn changes(&mut self, db: &Db, name: &str) -> Result<(), Trouble> {
        let account = |rng: &mut Rng| 1 + rng.below(ACCOUNTS as usize);
        let spoil = |rng: &mut Rng| {
            format!("UPDATE {name}.acc SET v = v + 7, pad = hex(randomblob(60)) WHERE id > {}", rng.below(90))
        };
        if self.rng.chance(30) {
            self.drew("savepoints");
            let text = spoil(&mut self.rng);
            self.run_on(db, &format!("SAVEPOINT s; {text}; ROLLBACK TO s; RELEASE s"))?;
        }
        for _ in 0..1 + self.rng.below(3) {
            let (from, to, by) = (account(&mut self.rng), account(&mut self.rng), self.rng.below(50));
            self.run_on(
                db,
                &format!(
                    "UPDATE {name}.acc SET v = v - {by} WHERE id = {from}; UPDATE {name}.acc SET v = v + {by} WHERE id = {to}"
                ),
            )?;
        }
        if self.rng.chance(25) {
            self.drew("large values");
            let (id, letter) = (1 + self.rng.below(3), self.rng.below(26));
            let len = *self.rng.pick(&[1, 300, 5000, 70_000, 200_000]);
            self.run_on(
                db,
                &format!(
                    "UPDATE {name}.big SET n = {len} * 100 + {letter}, data = CAST(printf('%.*c', {len}, char(65 + {letter})) AS BLOB) \
                     WHERE id = {id}"
                ),
            )?;
        }
        if self.rng.chance(15) {
            self.drew("blobs written");
            let (id, letter) = (1 + self.rng.below(3) as i64, self.rng.below(26));
            let by = *self.rng.pick(&[1000, 4096, 65_536]);
            db.overwrite((name, "big", "data", id), b'A' + letter as u8, by)?;
            self.run_on(db, &format!("UPDATE {name}.big SET n = n / 100 * 100 + {letter} WHERE id = {id}"))?;
        }
        if self.rng.chance(20) {
            self.drew("spills");
            let rows = 20 + self.rng.below(300);
            let sql = match self.rng.below(3) {
                0 => format!("DELETE FROM {name}.junk"),
                1 => format!("UPDATE {name}.junk SET b = a"),
                _ => format!(
                    "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) \
                     INSERT INTO {name}.junk SELECT i, hex(randomblob(40)) FROM n"
                ),
            };
            self.run_on(db, &sql)?;
        }
        self.run_on(db, &format!("INSERT INTO {name}.ledger VALUES('{}', {})", self.who, self.number))
    }
}

/// A checkpoint within somebody's transaction on the same file is refused with SQLITE_LOCKED.
fn locked_is_busy(e: Trouble) -> Result<(), Trouble> {
    match e {
        Trouble::Other(t) if t.contains("database table is locked") => Err(Trouble::Busy),
        other => Err(other),
    }
}
