//! Plays a history: sends each step to its process, and knows what every read may show.
//!
//! Changes are counted by numbers. `sure` are those whose commit was acknowledged, or seen by anybody; `maybe` those that a
//! kill met in the midst; `flying` those that a held process is about to commit. A read outside of transactions shows all of the first, any of the others,
//! and nothing else; within a transaction it shows what was there at its first read, and the transaction's own. Beside the
//! ledger of numbers there are rows and their sums, by table and by index, which tell of pages of two states.

use crate::draw::{Actor, How, Op};
use iolite_testkit::traced::{Held, hold_before, let_go};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long an order may take.
const LONGEST: Duration = Duration::from_secs(20);
/// Others are never waited for in vain for longer.
const BUSY_TIMEOUT: u32 = 3;
const FILES: [&str; 2] = ["a.db", "b.db"];
const NAMES: [&str; 2] = ["main", "other"];

type Set = BTreeSet<i64>;

/// How a history ended that did not fail.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    Passed,
    /// A transaction without a journal could not be finished: nothing is promised.
    Void,
}

/// Refused where other answers would be wrong.
const TOLD: &[&str] = &[
    "no such column",
    "no such table",
    "no such index",
    "duplicate column",
    "transaction",
    "statements in progress",
    "no such savepoint",
    "is locked",
    "already in use",
    "no such database",
    "unknown database",
    "already exists",
];

#[derive(Default)]
struct Book {
    sure: Set,
    maybe: Set,
    flying: Set,
}

#[derive(Default)]
struct Conn {
    open: bool,
    main: usize,
    attached: bool,
    txn: bool,
    pending: Vec<(usize, i64)>,
    savepoints: Vec<usize>,
    /// What its snapshot of a file shows, without its own, once that was read.
    snapshot: [Option<Set>; 2],
    /// What was sure of each file when its transaction or held statement began.
    floor: [Set; 2],
    /// `memory` or `off` was set for a file: nothing is promised to one that is killed, or takes anything back.
    mode: [&'static str; 2],
    held: usize,
    dirty: bool,
}

impl Conn {
    fn file(&self, db: usize) -> usize {
        if db == 0 { self.main } else { 1 - self.main }
    }

    fn without_journal(&self) -> bool {
        self.mode.contains(&"off")
    }

    fn own(&self, file: usize) -> Set {
        self.pending.iter().filter(|p| p.0 == file).map(|p| p.1).collect()
    }
}

struct Frame {
    slot: usize,
    what: Kept,
}

enum Kept {
    /// So many rows are expected.
    Rows(Option<i64>),
    Backup {
        file: usize,
        path: PathBuf,
        floor: Set,
    },
}

struct Agent {
    engine: &'static str,
    /// Its two connections share their caches: what one reads, the other one does.
    shares: bool,
    child: Child,
    orders: std::process::ChildStdin,
    answers: Receiver<String>,
    conns: [Conn; 2],
    frames: Vec<Frame>,
}

struct Reply {
    code: u32,
    auto: bool,
    head: String,
    text: String,
}

/// What was asked, for when the answer comes.
enum Asked {
    Open { main: usize, attach: bool },
    Close,
    Attach(bool),
    Any,
    Mode(usize),
    Begin,
    Commit,
    Rollback,
    Savepoint,
    Back { at: usize, release: bool },
    Write { n: i64, files: Vec<usize>, alone: bool },
    Read { file: usize },
    Check,
    Hold { file: usize },
    Backup { file: usize, path: PathBuf },
    More,
    Finish,
    Copy { file: usize, path: PathBuf },
}

pub struct Play {
    dir: PathBuf,
    agents: Vec<Agent>,
    books: [Book; 2],
    number: i64,
    files: usize,
    /// What was sure when the step that is made was ordered.
    since: [Set; 2],
    /// Which agent is held at one of its calls.
    paused: Option<usize>,
    pub story: Vec<String>,
    pub counts: std::collections::BTreeMap<String, u64>,
}

type Done = Result<(), String>;

impl Agent {
    fn start(engine: &'static str, shares: bool) -> Agent {
        // Itself, also if its file was built anew meanwhile. That it does not start says nothing of databases.
        let mut child = Command::new("/proc/self/exe")
            .args(["agent", engine])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process for an engine");
        let orders = child.stdin.take().expect("it was piped");
        let out = child.stdout.take().expect("it was piped");
        let (send, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines() {
                if line.is_ok_and(|l| send.send(l).is_err()) {
                    break;
                }
            }
        });
        let conns = Default::default();
        Agent { engine, shares, child, orders, answers, conns, frames: Vec::new() }
    }

    fn answer(&mut self) -> Result<Reply, String> {
        let line = match self.answers.recv_timeout(LONGEST) {
            Ok(line) => line,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => return Err("hang: no answer".into()),
            Err(_) => return Err(format!("crash: the process ended: {:?}", self.child.wait())),
        };
        let mut words = line.splitn(4, '\t');
        let mut word = || words.next().unwrap_or("").to_string();
        Ok(Reply { code: word().parse().unwrap_or(1), auto: word() == "1", head: word(), text: word() })
    }
}

/// What is counted of a database, in one snapshot; the ledger last.
fn sums(db: &str) -> String {
    let version = if db == "main" { "(SELECT user_version FROM pragma_user_version)" } else { "s.version" };
    format!(
        "SELECT (SELECT count(*) FROM {db}.t NOT INDEXED), (SELECT count(*) FROM {db}.t INDEXED BY t_k), s.rows, \
         (SELECT coalesce(sum(k), 0) FROM {db}.t NOT INDEXED), (SELECT coalesce(sum(k), 0) FROM {db}.t INDEXED BY t_k), s.k, \
         (SELECT coalesce(sum(ver), 0) FROM {db}.t NOT INDEXED), s.ver, {version}, s.version, \
         (SELECT count(*) FROM {db}.t NOT INDEXED WHERE pad <> printf('%.*c', length(pad), char(65 + ver % 26))), \
         (SELECT group_concat(n) FROM (SELECT n FROM {db}.ledger ORDER BY n)) FROM {db}.sums s"
    )
}

/// The ledger of a row of sums, if they agree.
fn agreed(row: &str) -> Result<Set, String> {
    let words: Vec<&str> = row.split('|').collect();
    let [a, b, c, d, e, f, g, h, i, j, "0", list] = words[..] else {
        return Err(format!("half done: {row}"));
    };
    if (a, b, d, e, g, i) != (b, c, e, f, h, j) {
        return Err(format!("half done: {row}"));
    }
    Ok(list.split(',').filter_map(|n| n.parse().ok()).collect())
}

/// The statements of a change.
fn body(db: &str, n: i64, how: &How) -> String {
    let changes = match *how {
        How::Add { rows, len } => {
            let k = |i: i64| (n * 7919 + i * 31) % 1000;
            let sum: i64 = (0..rows).map(k).sum();
            format!(
                "WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < {rows}) \
                 INSERT INTO {db}.t(id, k, ver, pad) SELECT {n} * 1000 + i, ({n} * 7919 + i * 31) % 1000, 0, \
                 printf('%.*c', {len} + i, 'A') FROM c WHERE i < {rows}; \
                 UPDATE {db}.sums SET rows = rows + {rows}, k = k + {sum};"
            )
        }
        How::Churn { from, to, len } => format!(
            "UPDATE {db}.t SET ver = ver + 1, pad = printf('%.*c', {len}, char(65 + (ver + 1) % 26)) WHERE k BETWEEN {from} AND {to}; \
             UPDATE {db}.sums SET ver = ver + changes();"
        ),
        How::Delete { from, to } => {
            let of = format!("FROM {db}.t WHERE k BETWEEN {from} AND {to}");
            format!(
                "UPDATE {db}.sums SET rows = rows - (SELECT count(*) {of}), k = k - (SELECT coalesce(sum(k), 0) {of}), \
                 ver = ver - (SELECT coalesce(sum(ver), 0) {of}); DELETE {of};"
            )
        }
        How::Raise { of } => format!(
            "UPDATE {db}.t SET k = k + 1 WHERE id % 9 < {of}; UPDATE {db}.sums SET k = k + changes();"
        ),
    };
    // A change of the first page is seen without the change counter, so that most do without.
    let version = match n % 4 {
        0 => format!("PRAGMA {db}.user_version = {n}; UPDATE {db}.sums SET version = {n};"),
        _ => String::new(),
    };
    format!("INSERT INTO {db}.ledger VALUES({n}); {changes} {version}")
}

/// A database as it is at first, made by stock.
fn prepare(path: &Path, reserved: i32, pragmas: &str) -> Done {
    let c = iolite_stock::Connection::open(&path.to_string_lossy()).map_err(|e| e.message)?;
    c.reserve(reserved);
    c.execute_batch(&format!(
        "{pragmas}; CREATE TABLE t(id INTEGER PRIMARY KEY, k INTEGER, ver INTEGER, pad TEXT); CREATE INDEX t_k ON t(k);
         CREATE TABLE ledger(n INTEGER PRIMARY KEY); CREATE TABLE sums(rows, k, ver, version); INSERT INTO sums VALUES(0, 0, 0, 0); BEGIN; {} COMMIT",
        body("main", 1, &How::Add { rows: 120, len: 100 })
    ))
    .map_err(|e| e.message)
}

impl Play {
    /// A folder with two databases, and the processes.
    pub fn new(
        dir: &Path,
        files: &[(i32, String); 2],
        engines: &[(&'static str, bool)],
    ) -> Result<Play, String> {
        let _ = std::fs::remove_dir_all(dir);
        std::fs::create_dir_all(dir).map_err(|e| e.to_string())?;
        for (file, (reserved, pragmas)) in FILES.iter().zip(files) {
            prepare(&dir.join(file), *reserved, pragmas)?;
        }
        let book = || Book { sure: [1].into(), ..Book::default() };
        Ok(Play {
            dir: dir.into(),
            agents: engines.iter().map(|(e, shares)| Agent::start(e, *shares)).collect(),
            books: [book(), book()],
            number: 1,
            files: 0,
            since: Default::default(),
            paused: None,
            story: Vec::new(),
            counts: Default::default(),
        })
    }

    fn count(&mut self, what: String) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn conn(&mut self, (agent, slot): Actor) -> &mut Conn {
        &mut self.agents[agent].conns[slot]
    }

    /// Sends an order of a connection, without waiting.
    fn send(&mut self, (agent, slot): Actor, order: &str) {
        self.since = self.books.each_ref().map(|b| b.sure.clone());
        let a = &mut self.agents[agent];
        self.story.push(format!("{agent}.{slot} {}: {}", a.engine, order.replace('\t', " ")));
        let _ = a.orders.write_all(format!("{slot}\t{order}\n").as_bytes());
    }

    fn answer(&mut self, who: Actor) -> Result<Reply, String> {
        let r = self.agents[who.0].answer()?;
        let text: String = r.text.chars().take(300).collect();
        self.story.push(format!(
            "    -> {} {} {} {text}",
            r.code,
            if r.auto { "" } else { "in txn" },
            r.head
        ));
        Ok(r)
    }

    fn ask(&mut self, who: Actor, order: &str) -> Result<Reply, String> {
        self.send(who, order);
        self.answer(who)
    }

    /// Makes a step. `Err` is what must not be.
    pub fn step(&mut self, who: Actor, op: &Op) -> Result<End, String> {
        if self.paused == Some(who.0) {
            return Ok(End::Passed);
        }
        match op {
            Op::Kill => self.kill(who.0),
            Op::Pause { op, before, during, kill } => self.pause(who, op, *before, during, *kill),
            _ => {
                let Some((order, asked)) = self.order(who, op) else { return Ok(End::Passed) };
                let reply = self.ask(who, &order)?;
                self.absorb(who, asked, reply)
            }
        }
    }

    /// Whether its process may be killed, and is promised something then.
    fn may_be_killed(&self, agent: usize, asked: Option<&Asked>) -> bool {
        let writes = |c: &Conn| asked.is_some() || !c.pending.is_empty() || c.txn;
        !self.agents[agent].conns.iter().any(|c| c.mode.iter().any(|m| !m.is_empty()) && writes(c))
    }

    fn kill(&mut self, agent: usize) -> Result<End, String> {
        if self.may_be_killed(agent, None) {
            self.story.push(format!("{agent}: killed"));
            self.end(agent);
        }
        Ok(End::Passed)
    }

    /// Ends the process, and starts it anew.
    fn end(&mut self, agent: usize) {
        let a = &mut self.agents[agent];
        let _ = a.child.kill();
        let _ = a.child.wait();
        let (engine, shares) = (a.engine, a.shares);
        self.agents[agent] = Agent::start(engine, shares);
        self.count(format!("{engine} kills"));
    }

    fn pause(
        &mut self,
        who: Actor,
        op: &Op,
        before: usize,
        during: &[(Actor, Op)],
        kill: bool,
    ) -> Result<End, String> {
        let Some((order, asked)) = self.order(who, op) else { return Ok(End::Passed) };
        if self.paused.is_some() {
            let reply = self.ask(who, &order)?;
            return self.absorb(who, asked, reply);
        }
        let pid = self.agents[who.0].child.id();
        let mut held = Held::Silent;
        {
            let this = &mut *self;
            let sent = &mut held;
            *sent = hold_before(pid, before, || this.send(who, &order));
        }
        if held != Held::Before {
            let reply = self.answer(who)?;
            return self.absorb(who, asked, reply);
        }
        self.story.push(format!("  held before its call {before}"));
        self.count(format!("{} held", self.agents[who.0].engine));
        let flying: Vec<(usize, i64)> = match &asked {
            Asked::Commit => self.conn(who).pending.clone(),
            Asked::Write { n, files, alone: true } => files.iter().map(|f| (*f, *n)).collect(),
            _ => Vec::new(),
        };
        for (file, n) in &flying {
            self.books[*file].flying.insert(*n);
        }
        let since = self.since.clone();
        self.paused = Some(who.0);
        let mut ended = Ok(End::Passed);
        for (who, op) in during {
            let begun = Instant::now();
            ended = self.step(*who, op);
            // Who waits for a recovery that is held waits for ten seconds, each time.
            if !matches!(ended, Ok(End::Passed)) || begun.elapsed() > Duration::from_secs(1) {
                break;
            }
        }
        self.paused = None;
        let killed = kill && self.may_be_killed(who.0, Some(&asked));
        for (file, n) in &flying {
            // One that was seen is sure already.
            if self.books[*file].flying.remove(n) && killed {
                self.books[*file].maybe.insert(*n);
            }
        }
        if killed {
            self.story.push(format!("{}: killed there", who.0));
            self.end(who.0);
            return ended;
        }
        let_go(pid);
        self.story.push(format!("  {}.{} goes on", who.0, who.1));
        self.since = since;
        let reply = self.answer(who)?;
        let refused = reply.code != 0;
        for (file, n) in &flying {
            if refused && self.books[*file].sure.contains(n) {
                return Err(format!("seen and refused: {n} of {}", FILES[*file]));
            }
        }
        let end = self.absorb(who, asked, reply)?;
        if matches!(ended, Ok(End::Passed)) { Ok(end) } else { ended }
    }

    /// The order of a step, and what is asked by it. `None`: it makes no sense now.
    fn order(&mut self, who: Actor, op: &Op) -> Option<(String, Asked)> {
        let (shares, stock) = (self.agents[who.0].shares, self.agents[who.0].engine == "stock");
        let path = |file: usize| match self.dir.join(FILES[file]).display() {
            path if shares => format!("file:{path}?cache=shared"),
            path => path.to_string(),
        };
        let (paths, frames) = ([path(0), path(1)], self.agents[who.0].frames.len());
        let (dir, fresh) = (self.dir.clone(), self.files + 1);
        let in_backup = self.has_backup(who.0);
        let in_frame = self.agents[who.0].frames.last().map(|f| f.slot);
        let c = self.conn(who);
        if let Op::Open { main, attach } = *op {
            return (!c.open).then(|| (format!("open\t{}", paths[main]), Asked::Open { main, attach }));
        }
        if !c.open {
            return None;
        }
        let name = |db: usize| (db == 0 || c.attached).then_some(NAMES[db]);
        let sql = |text: String| format!("sql\t{text}");
        let bare = c.without_journal();
        Some(match op {
            Op::Close if c.held == 0 && (!bare || !c.txn) => ("close".into(), Asked::Close),
            Op::Attach if !c.attached => {
                (sql(format!("ATTACH '{}' AS other", paths[1 - c.main])), Asked::Attach(true))
            }
            Op::Detach if c.attached => (sql("DETACH other".into()), Asked::Attach(false)),
            Op::Run { db, text } => {
                // Whoever asks to see what is not committed does.
                if bare && !text.starts_with("PRAGMA") || shares && text.contains("read_uncommitted") {
                    return None;
                }
                (sql(text.replace("{db}", name(*db)?)), Asked::Any)
            }
            // Stock reads past a dead neighbour's journal in this mode.
            Op::Mode { mode: "off", .. } if stock => return None,
            Op::Mode { db, mode } => {
                (sql(format!("PRAGMA {}.journal_mode = {mode}", name(*db)?)), Asked::Mode(c.file(*db)))
            }
            Op::Begin(text) if !c.txn && !bare => (sql(text.to_string()), Asked::Begin),
            Op::Commit if c.txn => (sql("COMMIT".into()), Asked::Commit),
            Op::Rollback if c.txn && (!bare || c.pending.is_empty()) => {
                (sql("ROLLBACK".into()), Asked::Rollback)
            }
            Op::Savepoint if c.txn && !bare => {
                (sql(format!("SAVEPOINT s{}", c.savepoints.len())), Asked::Savepoint)
            }
            Op::Back { level, release } if c.txn && !bare => {
                let at = c.savepoints.len().checked_sub(1 + level)?;
                let then = if *release { format!("; RELEASE s{at}") } else { String::new() };
                (sql(format!("ROLLBACK TO s{at}{then}")), Asked::Back { at, release: *release })
            }
            Op::Write { db, both, how } => {
                if bare && (c.txn || c.held > 0) {
                    return None;
                }
                let dbs = if *both && c.attached { vec![0, 1] } else { vec![*db] };
                name(dbs[dbs.len() - 1])?;
                let (files, alone) = (dbs.iter().map(|db| c.file(*db)).collect(), !c.txn);
                self.number += 1;
                let n = self.number;
                let all: String = dbs.iter().map(|db| body(NAMES[*db], n, how)).collect();
                let text = match (alone, bare) {
                    (true, true) => format!("BEGIN EXCLUSIVE; {all} COMMIT"),
                    (true, false) => format!("BEGIN IMMEDIATE; {all} COMMIT"),
                    (false, _) => format!("SAVEPOINT w; {all} RELEASE w"),
                };
                (sql(text), Asked::Write { n, files, alone })
            }
            Op::Read { db } => (sql(sums(name(*db)?)), Asked::Read { file: c.file(*db) }),
            Op::Check { db } => (sql(format!("PRAGMA {}.integrity_check", name(*db)?)), Asked::Check),
            Op::Hold { db } if frames < 3 => {
                let (db, file) = (name(*db)?, c.file(*db));
                (
                    format!(
                        "hold\tSELECT (SELECT rows FROM {db}.sums), (SELECT group_concat(n) FROM {db}.ledger), id, k FROM {db}.t"
                    ),
                    Asked::Hold { file },
                )
            }
            Op::Backup { db, onto } if frames < 3 => {
                let path = dir.join(format!("{fresh}.backup"));
                if let Some(size) = onto {
                    let before = iolite_stock::Connection::open(&path.to_string_lossy()).ok()?;
                    before.reserve(16);
                    let sql =
                        format!("PRAGMA page_size = {size}; CREATE TABLE x AS SELECT zeroblob(90000) AS b");
                    before.execute_batch(&sql).ok()?;
                }
                let order = format!("backup\t{}\t{}", name(*db)?, path.display());
                let file = c.file(*db);
                self.files = fresh;
                (order, Asked::Backup { file, path })
            }
            Op::More(n) if in_backup => (format!("more\t{n}"), Asked::More),
            Op::Finish if in_frame == Some(who.1) => ("finish".into(), Asked::Finish),
            Op::Copy { db, image } if !c.txn => {
                let (db, file) = (name(*db)?, c.file(*db));
                let path = dir.join(format!("{fresh}.copy"));
                let order = match image {
                    true => format!("image\t{db}\t{}", path.display()),
                    false => sql(format!("VACUUM {db} INTO '{}'", path.display())),
                };
                self.files += 1;
                (order, Asked::Copy { file, path })
            }
            _ => return None,
        })
    }

    fn has_backup(&self, agent: usize) -> bool {
        matches!(self.agents[agent].frames.last(), Some(Frame { what: Kept::Backup { .. }, .. }))
    }

    /// Takes an answer in.
    fn absorb(&mut self, who: Actor, asked: Asked, reply: Reply) -> Result<End, String> {
        let engine = self.agents[who.0].engine;
        let done = reply.code == 0;
        let passes = match reply.code & 0xff {
            0 | 5 | 6 => true,
            4 => true,
            8 => reply.code == 8,
            // Somebody is held in the midst of a recovery.
            15 => self.paused.is_some(),
            1 => TOLD.iter().any(|t| reply.text.contains(t)),
            _ => false,
        };
        if !passes {
            return Err(format!("error {}: {engine}: {}: {}", reply.code, reply.head, reply.text));
        }
        self.count(format!("{engine} {} {}", name_of(&asked), if done { "done" } else { "refused" }));
        let (was, now) = (self.conn(who).txn, !reply.auto);
        // Who shares a cache may begin in the other one's snapshot.
        let shares = self.agents[who.0].shares;
        let floor = if shares { Default::default() } else { self.since.clone() };
        if let Asked::Write { n, files, alone } = &asked {
            return self.written(who, *n, files, *alone, reply);
        }
        if was && !now {
            self.over(who, done && matches!(asked, Asked::Commit));
        }
        let twin = shares.then(|| self.agents[who.0].conns[1 - who.1].mode);
        let c = &mut self.agents[who.0].conns[who.1];
        c.txn = now;
        match asked {
            Asked::Open { main, attach } if done => {
                *c = Conn { open: true, main, mode: twin.unwrap_or_default(), ..Conn::default() };
                self.ask(who, &format!("sql\tPRAGMA busy_timeout = {BUSY_TIMEOUT}"))?;
                return if attach { self.step(who, &Op::Attach) } else { Ok(End::Passed) };
            }
            Asked::Close => *c = Conn::default(),
            Asked::Attach(on) if done => {
                c.attached = on;
                c.mode[1 - c.main] = twin.map_or("", |m| m[1 - c.main]);
                c.snapshot[1 - c.main] = None;
            }
            Asked::Mode(file) if done => {
                c.mode[file] = match &reply.text[..] {
                    "off" => "off",
                    "memory" => "memory",
                    _ => "",
                };
                if shares {
                    let mode = c.mode[file];
                    self.agents[who.0].conns[1 - who.1].mode[file] = mode;
                }
            }
            Asked::Begin if done && c.held == 0 => (c.floor, c.snapshot) = (floor, [None, None]),
            Asked::Savepoint if done => c.savepoints.push(c.pending.len()),
            Asked::Back { at, release } => {
                c.dirty = true;
                if done {
                    c.pending.truncate(c.savepoints[at]);
                    c.savepoints.truncate(at + !release as usize);
                } else if now {
                    return self.give_up(who);
                }
            }
            Asked::Read { file } if done => {
                let seen =
                    agreed(&reply.text).map_err(|e| format!("{e} ({engine} reads {})", FILES[file]))?;
                self.seen(who, file, seen)?;
            }
            Asked::Check if done && reply.text != "ok" => {
                return Err(format!("integrity_check: {engine}: {}", reply.text));
            }
            Asked::Hold { file } if done => {
                let words: Vec<&str> = reply.text.split('|').collect();
                let rows = (words.len() == 4).then(|| words[0].parse().unwrap_or(-1));
                if c.held == 0 {
                    c.dirty = false;
                    if !c.txn {
                        (c.floor, c.snapshot) = (floor, [None, None]);
                    }
                }
                c.held += 1;
                self.agents[who.0].frames.push(Frame { slot: who.1, what: Kept::Rows(rows) });
                if words.len() == 4 {
                    let seen = words[1].split(',').filter_map(|n| n.parse().ok()).collect();
                    self.seen(who, file, seen)?;
                }
            }
            Asked::Backup { file, path } if done => {
                // A snapshot that it has may be an older one.
                let bound = c.txn || c.held > 0 || shares;
                let floor = if bound { Set::new() } else { self.since[file].clone() };
                c.held += 1;
                // What a backup reads of its connection's snapshots is its own affair.
                (c.floor, c.snapshot) = (Default::default(), [None, None]);
                self.agents[who.0]
                    .frames
                    .push(Frame { slot: who.1, what: Kept::Backup { file, path, floor } });
            }
            Asked::Finish => {
                c.held -= 1;
                let dirty = c.dirty;
                match self.agents[who.0].frames.pop().map(|f| f.what) {
                    Some(Kept::Rows(Some(rows))) if done && !dirty && reply.text != rows.to_string() => {
                        return Err(format!("half done: {engine}: {} rows instead of {rows}", reply.text));
                    }
                    Some(Kept::Backup { file, path, floor }) if done && reply.text == "1" => {
                        self.copied(&path, file, &floor)?;
                    }
                    _ => {}
                }
            }
            Asked::Copy { file, path } if done => {
                let floor = match c.held > 0 {
                    _ if shares => Set::new(),
                    true => c.floor[file].clone(),
                    false => self.since[file].clone(),
                };
                self.copied(&path, file, &floor)?;
            }
            _ => {}
        }
        Ok(End::Passed)
    }

    /// A copy shows one state of the file since `floor`.
    fn copied(&mut self, path: &Path, file: usize, floor: &Set) -> Done {
        let told = |e: iolite_stock::Error| format!("copy: {e:?}");
        let c = iolite_stock::Connection::open(&path.to_string_lossy()).map_err(told)?;
        // Who made the copy may be just closing it.
        c.busy_timeout(2000);
        let row = c.query(&sums("main")).map_err(told)?;
        let text: Vec<String> = row.first().into_iter().flatten().map(crate::agent::text).collect();
        let seen = agreed(&text.join("|")).map_err(|e| format!("copy: {e}"))?;
        drop(c);
        let _ = std::fs::remove_file(path);
        self.within(file, &seen, floor, "copy")
    }

    /// A transaction has ended.
    fn over(&mut self, who: Actor, committed: bool) {
        let c = &mut self.agents[who.0].conns[who.1];
        let pending = std::mem::take(&mut c.pending);
        c.savepoints.clear();
        c.dirty = true;
        c.snapshot = [None, None];
        for (file, n) in pending.into_iter().filter(|_| committed) {
            self.books[file].sure.insert(n);
        }
        // What a statement that is still held shows is at least what was there when it began.
    }

    /// Takes a transaction back that is in a state that nobody knows.
    fn give_up(&mut self, who: Actor) -> Result<End, String> {
        if self.conn(who).without_journal() {
            return Ok(End::Void);
        }
        let r = self.ask(who, "sql\tROLLBACK")?;
        if r.code != 0 {
            return Err(format!("error {}: ROLLBACK: {}", r.code, r.text));
        }
        self.over(who, false);
        self.conn(who).txn = false;
        Ok(End::Passed)
    }

    fn written(
        &mut self,
        who: Actor,
        n: i64,
        files: &[usize],
        alone: bool,
        reply: Reply,
    ) -> Result<End, String> {
        let (done, txn) = (reply.code == 0, !reply.auto);
        let floor = if self.agents[who.0].shares { Default::default() } else { self.since.clone() };
        let pending = files.iter().map(|f| (*f, n));
        let c = &mut self.agents[who.0].conns[who.1];
        c.dirty = true;
        match (alone, done) {
            (true, true) => {
                c.snapshot = [None, None];
                for (file, n) in pending {
                    self.books[file].sure.insert(n);
                }
            }
            (true, false) if !txn => {
                // Without a journal nothing is taken back.
                if c.without_journal() && reply.head != "BEGIN" {
                    return Ok(End::Void);
                }
            }
            (true, false) if reply.head == "COMMIT" && !c.without_journal() => {
                c.txn = true;
                (c.floor, c.snapshot) = (floor, [None, None]);
                c.pending.extend(pending);
            }
            (true, false) => {
                c.txn = true;
                return self.give_up(who);
            }
            (false, true) => c.pending.extend(pending),
            (false, false) if !txn => {
                self.over(who, false);
                self.conn(who).txn = false;
            }
            (false, false) => {
                if reply.head != "SAVEPOINT" && self.ask(who, "sql\tROLLBACK TO w; RELEASE w")?.code != 0 {
                    return self.give_up(who);
                }
            }
        }
        Ok(End::Passed)
    }

    /// What a connection saw is what it must see.
    fn seen(&mut self, who: Actor, file: usize, all: Set) -> Done {
        let (engine, shares) = (self.agents[who.0].engine, self.agents[who.0].shares);
        let twin = &self.agents[who.0].conns[1 - who.1];
        let follows = shares && (twin.txn || twin.held > 0);
        let c = &mut self.agents[who.0].conns[who.1];
        let own = c.own(file);
        if !own.is_subset(&all) {
            return Err(format!("lost: {engine} does not see its own {own:?} in {all:?}"));
        }
        let seen: Set = all.difference(&own).copied().collect();
        let bound = c.txn || c.held > 0;
        if bound && let Some(before) = &c.snapshot[file] {
            if *before != seen {
                let (lost, new): (Vec<_>, Vec<_>) =
                    (before.difference(&seen).collect(), seen.difference(before).collect());
                return Err(format!(
                    "changed: {engine}: a snapshot of {}: less {lost:?}, more {new:?}",
                    FILES[file]
                ));
            }
            return Ok(());
        }
        if c.txn {
            c.snapshot[file] = Some(seen.clone());
        }
        let floor = match bound {
            _ if follows => Set::new(),
            true => c.floor[file].clone(),
            false => self.since[file].clone(),
        };
        self.within(file, &seen, &floor, engine)
    }

    fn within(&mut self, file: usize, seen: &Set, floor: &Set, who: &str) -> Done {
        let book = &mut self.books[file];
        let lost: Vec<i64> = floor.difference(seen).copied().collect();
        if !lost.is_empty() {
            return Err(format!("stale: {who} does not see {lost:?} in {}", FILES[file]));
        }
        for n in seen {
            if book.maybe.remove(n) || book.flying.remove(n) {
                book.sure.insert(*n);
            } else if !book.sure.contains(n) {
                return Err(format!("never: {who} sees {n} in {}, which nobody committed", FILES[file]));
            }
        }
        Ok(())
    }

    /// Ends all processes, those in `kills` at once, and has both engines look at what is left.
    pub fn finish(mut self, kills: &[bool], first: &str) -> (Done, Play) {
        let done = self.last_look(kills, first);
        (done, self.drop_all().1)
    }

    /// Ends all processes without a look.
    pub fn drop_all(mut self) -> (Done, Play) {
        for a in &mut self.agents {
            let _ = a.child.kill();
            let _ = a.child.wait();
        }
        (Ok(()), self)
    }

    fn last_look(&mut self, kills: &[bool], first: &str) -> Done {
        for (i, kill) in kills.iter().enumerate() {
            let risky =
                self.agents[i].conns.iter().any(|c| c.without_journal() && c.txn && !c.pending.is_empty());
            if *kill && self.may_be_killed(i, None) {
                self.kill(i)?;
            } else if risky {
                return Ok(());
            } else {
                while let Some(slot) = self.agents[i].frames.last().map(|f| f.slot) {
                    self.step((i, slot), &Op::Finish)?;
                }
                for slot in 0..2 {
                    self.step((i, slot), &Op::Close)?;
                }
            }
        }
        self.agents.iter_mut().for_each(|a| {
            let _ = a.child.kill();
            let _ = a.child.wait();
        });
        let engines = if first == "stock" { ["stock", "iolite"] } else { ["iolite", "stock"] };
        for engine in engines {
            self.agents[0] = Agent::start(engine, false);
            for main in 0..2 {
                self.step((0, 0), &Op::Open { main, attach: false })?;
                for op in [Op::Read { db: 0 }, Op::Check { db: 0 }, Op::Read { db: 0 }] {
                    let Some((order, asked)) = self.order((0, 0), &op) else { continue };
                    let reply = self.ask((0, 0), &order)?;
                    if reply.code != 0 {
                        return Err(format!("error {} at the end: {engine}: {}", reply.code, reply.text));
                    }
                    self.absorb((0, 0), asked, reply)?;
                }
                self.step((0, 0), &Op::Close)?;
            }
            let _ = self.agents[0].child.kill();
            let _ = self.agents[0].child.wait();
        }
        Ok(())
    }
}

fn name_of(asked: &Asked) -> &'static str {
    match asked {
        Asked::Open { .. } => "open",
        Asked::Close => "close",
        Asked::Attach(_) => "attach, detach",
        Asked::Any => "settings, schema, vacuum, checkpoints",
        Asked::Mode(_) => "journal_mode",
        Asked::Begin => "begin",
        Asked::Commit => "commit",
        Asked::Rollback => "rollback",
        Asked::Savepoint => "savepoint",
        Asked::Back { .. } => "rollback to",
        Asked::Write { .. } => "writes",
        Asked::Read { .. } => "reads",
        Asked::Check => "integrity checks",
        Asked::Hold { .. } => "held statements",
        Asked::Backup { .. } => "backups",
        Asked::More => "backup steps",
        Asked::Finish => "finished statements, backups",
        Asked::Copy { .. } => "copies",
    }
}
