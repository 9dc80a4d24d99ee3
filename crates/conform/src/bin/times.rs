//! `times FILE [--rounds N]`, `times --drawn N [--seed S] [--over R] [--changes]`, `times --shop N [--seed S] [--over R] [--analyze]`,
//! `times --grown N [--over R]`: how long statements take here and on stock SQLite, both in memory and in turn. Above 1, stock is faster.
//!
//! FILE is like those of `tests/plans`: a first paragraph that is run, then queries, one a line. Of each, the median of the
//! rounds on either side is told, and their ratio; where the trees of EXPLAIN QUERY PLAN differ, both stand below.
//!
//! With `--drawn`, N rounds of schemas and statements are drawn. Of those that take longer here than R times stock's time (1.3),
//! the worst are told with the script that repeats them, as FILE has it; with `--changes` of INSERT, UPDATE and DELETE alone. Times
//! there are the least of the rounds, of a statement that was prepared before; what a change did is rolled back.
//!
//! With `--shop`, N questions about tables of 300,000 rows are drawn (module `shop`), with `--analyze` after ANALYZE.
//!
//! With `--grown`, scripts of size N and 2 N are run (module `growth`; some 1,000): what takes R times stock's time at either size is told
//! with the ratio at both, so that one sees what grows faster here.

use iolite::engine::{Connection, Statement, Step};
use iolite_conform::differ::drawn::Drawer;
use iolite_conform::differ::{growth, shop};
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: times FILE [--rounds N] | --drawn N [--seed S] [--over R] [--changes] | --shop N [--seed S] [--over R] [--analyze] | --grown N [--over R]";

fn main() {
    let mut args = std::env::args().skip(1);
    let (mut file, mut rounds, mut drawn, mut asked, mut grown) = (None, 7, None, None, None);
    let (mut seed, mut over, mut changes, mut analyze) = (1, 1.3, false, false);
    while let Some(a) = args.next() {
        let mut number = || args.next().and_then(|n| n.parse::<f64>().ok()).unwrap_or_else(|| usage());
        match a.as_str() {
            "--rounds" => rounds = number() as usize,
            "--drawn" => drawn = Some(number() as u64),
            "--shop" => asked = Some(number() as u64),
            "--grown" => grown = Some(number() as usize),
            "--analyze" => analyze = true,
            "--seed" => seed = number() as u64,
            "--over" => over = number(),
            "--changes" => changes = true,
            _ => file = Some(a),
        }
    }
    match (file, drawn, asked, grown) {
        (Some(file), None, None, None) => of_file(&file, rounds),
        (None, Some(n), None, None) => of_drawn(seed * 1_000_003, n, over, changes),
        (None, None, Some(n), None) => of_shop(seed, n, over, analyze),
        (None, None, None, Some(n)) => of_grown(n, over),
        _ => usage(),
    }
}

fn usage() -> ! {
    eprintln!("{USAGE}");
    std::process::exit(2);
}

/// A database of each engine.
struct Both {
    own: Connection,
    /// What takes longer here is interrupted.
    deadline: Rc<Cell<Instant>>,
    stock: iolite_stock::Connection,
}

impl Both {
    fn new(setup: &str) -> Both {
        let own = Connection::open_in_memory().expect("a database in memory opens");
        let stock = iolite_stock::Connection::open(":memory:").expect("a database in memory opens");
        own.execute_batch(setup).expect("the setup runs");
        stock.execute_batch(setup).expect("the setup runs on stock");
        let deadline = Rc::new(Cell::new(Instant::now() + WHOLE));
        let watched = deadline.clone();
        own.progress_handler(Some(Rc::new(move || Instant::now() > watched.get())));
        Both { own, stock, deadline }
    }

    /// The plans, a line a step, if they differ.
    fn plans(&self, sql: &str) -> Option<(String, String)> {
        let ours = self.own.query(&format!("EXPLAIN QUERY PLAN {sql}"), &[]).ok()?;
        let theirs = self.stock.query(&format!("EXPLAIN QUERY PLAN {sql}")).ok()?;
        let text = |v: &iolite_stock::Value| match v {
            iolite_stock::Value::Text(t) => String::from_utf8_lossy(t).into_owned(),
            _ => String::new(),
        };
        let ours = ours.iter().map(|r| r[3].to_string_lossy()).collect::<Vec<_>>().join(" / ");
        let theirs = theirs.iter().map(|r| text(&r[3])).collect::<Vec<_>>().join(" / ");
        (ours != theirs).then_some((ours, theirs))
    }
}

fn of_file(file: &str, rounds: usize) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|_| usage());
    let (setup, queries) = text.split_once("\n\n").unwrap_or_else(|| usage());
    let both = Both::new(setup);
    println!("ratio    ours ms   stock ms");
    for sql in queries.lines().filter(|l| !l.is_empty() && !l.starts_with("--")) {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            ours.push(timed(|| {
                let mut s = both.own.prepare(sql).expect("the query is one");
                while s.step().expect("the query runs") == Step::Row {}
            }));
            theirs.push(timed(|| {
                let mut s = both.stock.prepare(sql).expect("the query is one on stock");
                while s.step().expect("the query runs on stock") {}
            }));
        }
        let (a, b) = (median(ours), median(theirs));
        println!("{:5.2} {a:10.3} {b:10.3}  {sql}", a / b);
        if let Some((ours, stock)) = both.plans(sql) {
            println!("  ours:  {ours}\n  stock: {stock}");
        }
    }
}

/// Milliseconds.
fn timed(f: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    f();
    begin.elapsed().as_secs_f64() * 1000.0
}

fn median(mut list: Vec<f64>) -> f64 {
    list.sort_by(f64::total_cmp);
    list[list.len() / 2]
}

/// Statements of a drawn schema.
const STATEMENTS: usize = 40;
/// Rows that a query is asked for at most.
const ROWS: usize = 50_000;
/// What stock may take for all rounds of a statement, in thousands of instructions.
const STEPS: i64 = 10_000;

/// What a statement may take here, and what is done before any is timed.
const LONGEST: Duration = Duration::from_secs(2);
const WHOLE: Duration = Duration::from_secs(600);

/// A statement that was slower.
struct Slow {
    ours: f64,
    stock: f64,
    setup: String,
    sql: String,
    plans: Option<(String, String)>,
}

fn of_drawn(seed: u64, rounds: u64, over: f64, changes: bool) {
    let mut told = Told { over, ..Told::default() };
    for round in 0..rounds {
        let mut d = Drawer::new(seed + round, &[300, 2000, 20_000]).alike();
        let setup = d.schema().join(";\n");
        let both = Both::new(&setup);
        for _ in 0..STATEMENTS {
            let q = d.query();
            if (q.kind == "change") != changes {
                continue;
            }
            told.time(&both, &setup, q.sql, changes);
        }
    }
    told.tell();
}

fn of_shop(seed: u64, questions: u64, over: f64, analyze: bool) {
    let both = Both::new(shop::TABLES);
    if analyze {
        both.own.execute_batch("ANALYZE").expect("tables are analysed");
        both.stock.execute_batch("ANALYZE").expect("tables are analysed on stock");
    }
    let (mut told, mut asker) = (Told { over, ..Told::default() }, shop::Asker::new(seed));
    for _ in 0..questions {
        told.time(&both, "", asker.query(), false);
    }
    told.tell();
}

/// Runs each script of the size and of twice the size, each on new databases.
fn of_grown(size: usize, over: f64) {
    let (small, large) = (growth::scripts(size), growth::scripts(2 * size));
    let mut slow = Vec::new();
    let told = small.len();
    for (s, l) in small.into_iter().zip(large) {
        let ((ours, stock), (ours_twice, stock_twice)) = (script_times(&s), script_times(&l));
        let ratios = (ours / stock, ours_twice / stock_twice);
        if ratios.0.max(ratios.1) > over {
            slow.push((ratios, ours_twice, stock_twice, s.title));
        }
    }
    slow.sort_by(|a, b| b.0.1.total_cmp(&a.0.1));
    for ((once, twice), ours, stock, title) in &slow {
        println!("{once:6.2} {twice:6.2} {ours:10.2} {stock:10.2}  {title}");
    }
    println!("{told} scripts, {} slower", slow.len());
}

/// Milliseconds of a script's work here and on stock: the lesser of two runs. What fails or takes too long here counts as endless.
fn script_times(s: &growth::Script) -> (f64, f64) {
    let run = || {
        let both = Both::new(&s.setup);
        both.deadline.set(Instant::now() + LONGEST * 10);
        let mut fails = false;
        let ours = timed(|| fails = both.own.execute_batch(&s.work).is_err());
        let stock = timed(|| both.stock.execute_batch(&s.work).expect(s.title));
        (if fails { f64::INFINITY } else { ours }, stock)
    };
    let (a, b) = (run(), run());
    (a.0.min(b.0), a.1.min(b.1))
}

/// What was timed so far.
#[derive(Default)]
struct Told {
    over: f64,
    slow: Vec<Slow>,
    told: u32,
    logs: f64,
}

impl Told {
    fn time(&mut self, both: &Both, setup: &str, sql: String, change: bool) {
        let Some((ours, stock)) = both_times(both, &sql, change) else { return };
        self.told += 1;
        self.logs += (ours / stock).ln();
        // Less than that is the measuring itself.
        if ours > stock * self.over + 0.002 {
            let plans = both.plans(&sql);
            self.slow.push(Slow { ours, stock, setup: setup.to_string(), sql, plans });
        }
    }

    fn tell(mut self) {
        self.slow.sort_by(|a, b| (b.ours / b.stock).total_cmp(&(a.ours / a.stock)));
        for s in &self.slow {
            println!("{:5.2} {:10.4} {:10.4}  {}", s.ours / s.stock, s.ours, s.stock, s.sql);
            if let Some((ours, stock)) = &s.plans {
                println!("  ours:  {ours}\n  stock: {stock}");
            }
            if !s.setup.is_empty() {
                println!("  {}", s.setup.replace('\n', "\n  "));
            }
        }
        let mean = (self.logs / f64::from(self.told.max(1))).exp();
        println!(
            "{} statements, {} slower; geometric mean {mean:.2} of stock's time",
            self.told,
            self.slow.len()
        );
    }
}

/// Milliseconds here and on stock: the least of some rounds. `None` if stock takes too many steps, or refuses.
fn both_times(both: &Both, sql: &str, change: bool) -> Option<(f64, f64)> {
    both.stock.limit_steps(STEPS);
    let mut theirs = both.stock.prepare(sql).ok()?;
    let mut ours = both.own.prepare(sql).expect("what stock prepares is prepared");
    let (mut a, mut b) = (f64::MAX, f64::MAX);
    let begin = Instant::now();
    for round in 0..30 {
        if change {
            both.own.execute_batch("BEGIN").expect("no transaction is open");
            both.stock.execute_batch("BEGIN").expect("no transaction is open on stock");
        }
        let mut refused = false;
        let t = timed(|| refused = drain_stock(&mut theirs));
        both.deadline.set(Instant::now() + LONGEST);
        let u = timed(|| drain(&mut ours));
        theirs.reset();
        let _ = ours.reset();
        if change {
            both.own.execute_batch("ROLLBACK").expect("a transaction is open");
            both.stock.execute_batch("ROLLBACK").expect("a transaction is open on stock");
        }
        if refused {
            return None;
        }
        // Columns are read in the first round and copied in the second.
        if round > 1 {
            (a, b) = (a.min(u), b.min(t));
        }
        if round > 2 && begin.elapsed() > Duration::from_millis(150) {
            break;
        }
    }
    Some((a, b))
}

fn drain(s: &mut Statement) {
    for _ in 0..ROWS {
        match s.step() {
            Ok(Step::Row) => {}
            _ => break,
        }
    }
}

/// Whether stock refused.
fn drain_stock(s: &mut iolite_stock::Statement) -> bool {
    for _ in 0..ROWS {
        match s.step() {
            Ok(true) => {}
            Ok(false) => break,
            Err(_) => return true,
        }
    }
    false
}
