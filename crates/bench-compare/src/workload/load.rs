//! Loading and maintenance: CSV import of SSB's `lineorder` by the shells (`iolite`, `sqlite3`) and by DuckDB; then, on the
//! loaded tables, indexes, VACUUM, checks, checkpoint, copies, dump and replay, sorting.

use super::{Seat, compare, in_turn, place, timed};
use crate::Options;
use crate::engine::DuckDb;
use crate::envelope::Run;
use iolite_bench::cases;
use iolite_bench::engine::{Engine, Result, Value, find};
use iolite_bench::ssb;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SETTINGS: &str = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-65536;";

/// Measures.
pub fn run(o: &Options, run: &mut Run) -> Result<()> {
    let sf: f64 = o.number("sf", 0.5, 0.05);
    run.scale.push(format!("scale factor {sf}"));
    for e in ["stock", "iolite"] {
        run.set("", e, SETTINGS, "consistent; the last commits may be lost");
    }
    import(o, run, sf)?;
    maintain(o, run, sf)
}

fn table() -> &'static str {
    ssb::SCHEMA.split(';').next().unwrap_or("")
}

fn write_csv(path: &Path, sf: f64) -> Result<u64> {
    let mut f = std::io::BufWriter::new(std::fs::File::create(path)?);
    let mut t = ssb::tables(sf).pop().ok_or("no table")?;
    let (mut row, mut n) = (Vec::new(), 0);
    while (t.rows)(&mut row) {
        for (i, v) in row.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            match v {
                Value::Int(x) => write!(f, "{comma}{x}")?,
                Value::Text(t) => write!(f, "{comma}{}", String::from_utf8_lossy(t))?,
                _ => write!(f, "{comma}")?,
            }
        }
        writeln!(f)?;
        row.clear();
        n += 1;
    }
    f.flush()?;
    Ok(n)
}

/// Our shell: named by `--shell`, or beside this program.
fn own_shell(o: &Options) -> Option<PathBuf> {
    let beside = std::env::current_exe().ok()?.with_file_name("iolite");
    let p = o.text("shell").map_or(beside, PathBuf::from);
    p.exists().then_some(p)
}

fn shell(program: &Path, db: &Path, script: &str) -> Result<String> {
    let mut c = Command::new(program)
        .arg(db)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("{}: {e}", program.display()))?;
    c.stdin.take().ok_or("no input")?.write_all(script.as_bytes())?;
    let out = c.wait_with_output()?;
    let errors = String::from_utf8_lossy(&out.stderr);
    if !out.status.success() || !errors.trim().is_empty() {
        return Err(format!("{}: {}", program.display(), errors.trim()).into());
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

fn import(o: &Options, run: &mut Run, sf: f64) -> Result<()> {
    let csv = cases::directory().join(format!("lineorder-{}.csv", std::process::id()));
    std::fs::create_dir_all(cases::directory())?;
    let rows = write_csv(&csv, sf)?;
    let Some(own) = own_shell(o) else {
        run.missing.push(
            "CSV import: the shell is not beside this program (`cargo build --release -p iolite-cli`)".into(),
        );
        return Ok(());
    };
    let mut programs = vec![("stock", PathBuf::from("sqlite3")), ("iolite", own)];
    let duck = DuckDb::find(1).ok();
    if duck.is_some() {
        programs.push(("duckdb", PathBuf::new()));
    }
    let version = Command::new("sqlite3").arg("--version").output();
    let version = version.map(|v| String::from_utf8_lossy(&v.stdout).trim().to_string()).unwrap_or_default();
    run.set("CSV import", "stock", &format!("the system's shell, {version}"), "as above");
    let sums = "SELECT count(*), sum(lo_revenue), sum(lo_orderkey), min(lo_shipmode), max(lo_orderpriority) FROM lineorder";
    let mut seen: Vec<Option<Vec<Vec<Value>>>> = vec![None; programs.len()];
    let turns = o.number("repeat", 3, 3);
    let done = in_turn(programs.len(), turns, |k, _| {
        let (name, program) = &programs[k];
        let path = place(&format!("import-{name}"))?;
        let s = if let (Some(d), "duckdb") = (&duck, *name) {
            let db = d.open(&path)?;
            db.batch(table())?;
            let sql = format!("COPY lineorder FROM '{}' (HEADER false)", csv.display());
            let s = timed(|| db.batch(&sql))?.1;
            seen[k] = Some(db.rows(sums)?);
            s
        } else {
            let script = format!("{SETTINGS}\n{};\n.import --csv {} lineorder\n", table(), csv.display());
            let s = timed(|| shell(program, &path, &script))?.1;
            seen[k] = Some(find("stock")?.open(&path)?.rows(sums)?);
            s
        };
        cases::remove(&path);
        Ok(s)
    });
    let _ = std::fs::remove_file(&csv);
    let done = done?;
    let answers: Vec<_> = programs.iter().zip(seen).filter_map(|(p, s)| Some((p.0, s?))).collect();
    crate::gate::equal("CSV import", &answers, false)?;
    run.gates.push(format!("CSV import: sums over {rows} rows equal"));
    for (k, samples) in done.into_iter().enumerate() {
        run.less("CSV import", "", programs[k].0, "s", samples);
    }
    Ok(())
}

const STEPS: &[(&str, &str)] = &[
    ("CREATE INDEX on an integer", "CREATE INDEX i1 ON lineorder(lo_partkey)"),
    ("CREATE INDEX on a text", "CREATE INDEX i2 ON lineorder(lo_shipmode)"),
    ("CREATE INDEX on three columns", "CREATE INDEX i3 ON lineorder(lo_orderdate, lo_custkey, lo_suppkey)"),
    ("wal_checkpoint(TRUNCATE)", "PRAGMA wal_checkpoint(TRUNCATE)"),
    ("ANALYZE", "ANALYZE"),
    ("integrity_check", "PRAGMA integrity_check"),
    ("quick_check", "PRAGMA quick_check"),
    ("UPDATE of a tenth", "UPDATE lineorder SET lo_tax = lo_tax + 1 WHERE lo_discount = 4"),
    ("DELETE of a tenth", "DELETE FROM lineorder WHERE lo_discount = 5"),
    ("VACUUM", "VACUUM"),
    (
        "sorting all rows by two columns",
        "SELECT max(n) FROM (SELECT row_number() OVER (ORDER BY lo_extendedprice, lo_custkey) AS n FROM lineorder)",
    ),
];

fn maintain(o: &Options, run: &mut Run, sf: f64) -> Result<()> {
    let turns = o.number("repeat", 3, 2);
    let names = ["stock", "iolite"];
    let mut times = vec![vec![Vec::new(); STEPS.len() + 1]; 2];
    let mut wrong: Vec<String> = Vec::new();
    for t in 0..turns {
        let mut seats = Vec::new();
        for name in names {
            let s = Seat::open(&*find(name)?, name, "maintain", SETTINGS)?;
            s.db.batch(table())?;
            let mut rows = ssb::tables(sf / 2.0).pop().ok_or("no table")?;
            s.db.load("lineorder", rows.columns, &mut *rows.rows)?;
            seats.push(s);
        }
        for (i, (title, sql)) in STEPS.iter().enumerate() {
            let mut answers = Vec::new();
            let order = if t % 2 == 0 { [0, 1] } else { [1, 0] };
            for k in order {
                match timed(|| seats[k].db.rows(sql)) {
                    Ok((rows, s)) => {
                        times[k][i].push(s * 1e3);
                        answers.push((names[k], rows));
                    }
                    Err(e) => wrong.push(format!("{title}: {}: {e}", names[k])),
                }
            }
            // What a checkpoint answers, and how the log was filled, is the engine's own business.
            if !title.starts_with("wal_")
                && let Err(e) = crate::gate::equal(title, &answers, false)
            {
                wrong.push(e.message);
            }
        }
        for (k, s) in seats.iter().enumerate() {
            let to = place(&format!("copy-{}", names[k]))?;
            let sql = format!("VACUUM INTO '{}'", to.display());
            match timed(|| s.db.batch(&sql)) {
                Ok((_, s)) => times[k][STEPS.len()].push(s * 1e3),
                Err(e) => wrong.push(format!("VACUUM INTO: {}: {e}", names[k])),
            }
            cases::remove(&to);
        }
        if let Err(e) =
            compare(&seats, "contents", "SELECT count(*), sum(lo_tax), sum(lo_revenue) FROM lineorder", false)
        {
            wrong.push(e.message);
        }
        if t + 1 == turns {
            dump(o, run, &seats)?;
        }
        seats.into_iter().for_each(Seat::remove);
    }
    wrong.sort();
    wrong.dedup();
    run.failures.extend(wrong);
    run.gates.push("maintenance: answers of each step and contents at the end equal".into());
    let titles = STEPS.iter().map(|s| s.0).chain(["copy by VACUUM INTO"]);
    for (i, title) in titles.enumerate() {
        for k in 0..2 {
            if !times[k][i].is_empty() {
                run.less(title, "", names[k], "ms", std::mem::take(&mut times[k][i]));
            }
        }
    }
    run.missing.push("sorting with worker threads: there are none in iolite".into());
    run.missing.push("the backup API: copies are measured as VACUUM INTO".into());
    if sf < 3.4 {
        run.missing.push(format!(
            "sorting 10,000,000 rows: {:.0} are sorted at this scale; ask with `--sf 3.4`",
            sf * 3e6
        ));
    }
    Ok(())
}

/// `.dump` by each shell and its replay.
fn dump(o: &Options, run: &mut Run, seats: &[Seat]) -> Result<()> {
    let Some(own) = own_shell(o) else { return Ok(()) };
    let mut answers = Vec::new();
    for (s, program) in seats.iter().zip([PathBuf::from("sqlite3"), own]) {
        let to = place(&format!("replay-{}", s.name))?;
        let (text, seconds) = match timed(|| shell(&program, &s.path, ".dump\n")) {
            Ok(x) => x,
            Err(e) => {
                run.failures.push(format!(".dump: {e}"));
                continue;
            }
        };
        run.less(".dump", "", &s.name, "ms", vec![seconds * 1e3]);
        match timed(|| shell(&program, &to, &format!("{SETTINGS}\n{text}"))) {
            Ok((_, s2)) => run.less("replay of the dump", "", &s.name, "ms", vec![s2 * 1e3]),
            Err(e) => run.failures.push(format!("replay: {e}")),
        }
        let sums = "SELECT count(*), sum(lo_tax), sum(lo_revenue), max(lo_shipmode) FROM lineorder";
        answers.push((s.name.as_str(), find("stock")?.open(&to)?.rows(sums)?));
        cases::remove(&to);
    }
    if let Err(e) = crate::gate::equal(".dump and replay", &answers, false) {
        run.failures.push(e.message);
    }
    Ok(())
}
