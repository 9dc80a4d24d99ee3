//! W10, vectors: the ten nearest of 10,000 of 384 dimensions by cosine, exactly; and of a million of 128 dimensions, exactly, by lists, and by the
//! graphs of other libraries, each with the least effort that finds 95 of a hundred of the nearest.
//!
//! Vectors lie around centres in a space of 16 dimensions that is turned into the larger one, with a little noise in all: as embeddings do.

use super::{Seat, TUNED, TUNED_KEEPS, in_turn, place, timed};
use crate::Options;
use crate::engine::libraries::{Library, Searched, sqlite_vec};
use crate::envelope::Run;
use crate::gate;
use iolite_bench::engine::{Database, Engine, Iolite, Result, Value, int};
use iolite_bench::random::Random;
use std::path::PathBuf;
use std::time::Instant;

const FACTORS: usize = 16;
const K: usize = 10;
/// So many rows are inserted in a turn.
const BATCHES: usize = 2000;
/// What has to be found of the nearest rows.
const RECALL: f64 = 0.95;
/// As rows name iolite's searches among many vectors.
const LISTS: &str = "iolite, lists";
const GRAPH: &str = "iolite, graph";
const EXACT: &str = "iolite";
/// Lists looked at, and the breadth of graphs' searches.
const EFFORTS: [usize; 15] = [4, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 64, 96, 128, 256];

/// Draws vectors.
pub struct Cloud {
    random: Random,
    dimensions: usize,
    basis: Vec<f32>,
    centres: Vec<f32>,
}

impl Cloud {
    /// From a seed.
    pub fn new(seed: u64, dimensions: usize, centres: usize) -> Cloud {
        let mut c = Cloud { random: Random(seed), dimensions, basis: Vec::new(), centres: Vec::new() };
        c.basis = (0..FACTORS * dimensions).map(|_| c.normal() * 0.25).collect();
        c.centres = (0..FACTORS * centres).map(|_| c.normal()).collect();
        c
    }

    fn normal(&mut self) -> f32 {
        (0..6).map(|_| self.random.unit() as f32).sum::<f32>() * 1.414 - 4.242
    }

    /// A vector.
    pub fn vector(&mut self) -> Vec<f32> {
        let centres = self.centres.len() / FACTORS;
        let at = self.random.range(0, centres as i64 - 1) as usize * FACTORS;
        let mut x: Vec<f32> = (0..self.dimensions).map(|_| (self.random.unit() as f32 - 0.5) * 0.2).collect();
        for j in 0..FACTORS {
            let z = self.centres[at + j] + self.normal() * 0.5;
            let basis = &self.basis[j * self.dimensions..][..self.dimensions];
            x.iter_mut().zip(basis).for_each(|(x, b)| *x += z * b);
        }
        x
    }
}

/// A vector as a parameter.
pub fn blob(x: &[f32]) -> Value {
    Value::Blob(x.iter().flat_map(|x| x.to_le_bytes()).collect())
}

/// Vectors and queries, in memory and as files for the libraries.
struct Data {
    vectors: Vec<Vec<f32>>,
    queries: Vec<Value>,
    /// More vectors of the same kind.
    more: Vec<Vec<f32>>,
    files: (PathBuf, PathBuf),
}

impl Data {
    fn draw(rows: usize, dimensions: usize, queries: usize, more: usize) -> Result<Data> {
        let mut cloud = Cloud::new(7, dimensions, (rows / 100).clamp(10, 10_000));
        let vectors: Vec<Vec<f32>> = (0..rows).map(|_| cloud.vector()).collect();
        let asked: Vec<Vec<f32>> = (0..queries).map(|_| cloud.vector()).collect();
        let more = (0..more).map(|_| cloud.vector()).collect();
        let write = |name: &str, all: &[Vec<f32>]| -> Result<PathBuf> {
            let path = place(name)?;
            let bytes: Vec<u8> = all.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
            std::fs::write(&path, bytes)?;
            Ok(path)
        };
        let files = (write("vectors", &vectors)?, write("queries", &asked)?);
        Ok(Data { queries: asked.iter().map(|x| blob(x)).collect(), vectors, more, files })
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.files.0);
        let _ = std::fs::remove_file(&self.files.1);
    }
}

/// Searches all queries.
fn search(db: &dyn Database, queries: &[Value], more: &str) -> Result<Searched> {
    let sql = format!("SELECT rowid, distance FROM t WHERE v MATCH ? AND k = {K} {more}");
    let mut q = db.prepare(&sql)?;
    let mut s = Searched { times: Vec::new(), found: Vec::new() };
    for v in queries {
        let start = Instant::now();
        let rows = q.rows(std::slice::from_ref(v))?;
        s.times.push(start.elapsed().as_secs_f64() * 1e6);
        let id = |r: &Vec<Value>| if let Some(Value::Int(n)) = r.first() { *n } else { -1 };
        s.found.push(rows.iter().map(id).collect());
    }
    Ok(s)
}

fn median(s: &Searched) -> f64 {
    crate::stats::summary(&s.times).median
}

/// Which part of the nearest rows was found.
fn recall(found: &Searched, exact: &Searched) -> f64 {
    let pairs = found.found.iter().zip(&exact.found);
    let hits: usize = pairs.map(|(a, b)| b.iter().filter(|x| a.contains(x)).count()).sum();
    hits as f64 / exact.found.iter().map(Vec::len).sum::<usize>().max(1) as f64
}

/// A database with the vectors.
fn fill(e: &dyn Engine, name: &str, data: &Data, column: &str, batch: usize) -> Result<(Seat, f64)> {
    let seat = Seat::open(e, name, "vectors", TUNED)?;
    seat.db.batch(&format!("CREATE VIRTUAL TABLE t USING vec0(v {column})"))?;
    let (_, seconds) = timed(|| insert(&*seat.db, 0, &data.vectors, batch))?;
    Ok((seat, seconds))
}

fn insert(db: &dyn Database, first: i64, vectors: &[Vec<f32>], batch: usize) -> Result<()> {
    let mut q = db.prepare("INSERT INTO t(rowid, v) VALUES(?, ?)")?;
    for (n, part) in vectors.chunks(batch).enumerate() {
        db.batch("BEGIN")?;
        for (i, x) in part.iter().enumerate() {
            q.run(&[int(first + (n * batch + i) as i64), blob(x)])?;
        }
        db.batch("COMMIT")?;
    }
    Ok(())
}

/// Measures.
pub fn run(o: &Options, run: &mut Run) -> Result<()> {
    exact(o, run)?;
    many(o, run)
}

/// Exact searches beside one another.
fn exact(o: &Options, run: &mut Run) -> Result<()> {
    let (rows, dimensions) = (o.number("rows", 10_000, 10_000), o.number("dimensions", 384, 384));
    let data = Data::draw(rows, dimensions, 200, 0)?;
    let config = format!("{rows} x {dimensions}, cosine");
    let column = format!("float[{dimensions}] distance_metric=cosine");
    let mut seats = vec![fill(&Iolite, "iolite", &data, &column, 5000)?.0];
    match sqlite_vec() {
        Ok(e) => seats.push(fill(&e, "sqlite-vec", &data, &column, 5000)?.0),
        Err(e) => run.missing.push(format!("sqlite-vec: {}", e.message)),
    }
    for s in &seats {
        run.set("", &s.name, TUNED, TUNED_KEEPS);
    }
    let mut libraries = start(run, &data, dimensions, "cosine");
    let mut first = Vec::new();
    for s in &seats {
        let rows = |v: &Value| {
            let sql = format!("SELECT rowid, distance FROM t WHERE v MATCH ? AND k = {K}");
            s.db.prepare(&sql)?.rows(std::slice::from_ref(v))
        };
        let all: Result<Vec<_>> = data.queries.iter().map(rows).collect();
        first.push((s.name.as_str(), all?.concat()));
    }
    gate::equal("ten nearest", &first, false)?;
    run.gates.push("ten nearest: rows and distances equal in iolite and sqlite-vec".into());
    let truth = search(&*seats[0].db, &data.queries, "")?;
    for l in &mut libraries {
        let found = recall(&l.1.search(None)?, &truth);
        run.texts.push((format!("{}, exact", l.0), format!("finds {found:.4} of iolite's rows")));
    }
    let turns = o.number("repeat", 9, 5);
    let samples = in_turn(seats.len() + libraries.len(), turns, |e, _| match seats.get(e) {
        Some(s) => Ok(median(&search(&*s.db, &data.queries, "")?)),
        None => Ok(median(&libraries[e - seats.len()].1.search(None)?)),
    })?;
    let names = seats.iter().map(|s| s.name.clone()).chain(libraries.iter().map(|l| l.0.clone()));
    for (name, samples) in names.zip(samples) {
        run.less("W10: ten nearest, exact", &config, &name, "us", samples);
    }
    seats.into_iter().for_each(Seat::remove);
    Ok(())
}

fn start(run: &mut Run, data: &Data, dimensions: usize, metric: &str) -> Vec<(String, Library)> {
    let mut all = Vec::new();
    for name in ["usearch", "hnswlib"] {
        match Library::start(name, (&data.files.0, &data.files.1), dimensions, metric, K) {
            Ok(l) => all.push((name.to_string(), l)),
            Err(e) => run.missing.push(format!("{name}: {}", e.message)),
        }
    }
    all
}

/// The least effort that finds enough; its recall.
fn effort(mut f: impl FnMut(usize) -> Result<Searched>, truth: &Searched) -> Result<(usize, f64)> {
    let mut best = (0, 0.0);
    for n in EFFORTS {
        best = (n, recall(&f(n)?, truth));
        if best.1 >= RECALL {
            break;
        }
    }
    Ok(best)
}

/// A table with an index: lists or a graph.
struct Indexed<'a> {
    seat: Seat,
    data: &'a Data,
    /// The column by which a query says how much is looked at.
    effort: &'static str,
    /// As the run's rows call it.
    name: &'static str,
}

impl<'a> Indexed<'a> {
    /// Fills a table and makes its index.
    fn new(
        run: &mut Run,
        data: &'a Data,
        config: &str,
        (index, name): (&str, &'static str),
        effort: &'static str,
    ) -> Result<Indexed<'a>> {
        let dimensions = data.vectors.first().map_or(0, Vec::len);
        let column = format!("float[{dimensions}] index={index}");
        let (seat, seconds) = fill(&Iolite, name, data, &column, 5000)?;
        let rate = vec![data.vectors.len() as f64 / seconds];
        run.more("rows inserted before there is an index", config, name, "rows/s", rate);
        let (_, build) = timed(|| seat.db.batch("INSERT INTO t(t) VALUES('rebuild')"))?;
        run.less("build", config, name, "s", vec![build]);
        seat.db.batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
        let bytes = data.vectors.len() * dimensions * 4;
        let size = std::fs::metadata(&seat.path)?.len() as f64 / bytes as f64;
        run.less("size beside the vectors' bytes", config, name, "times", vec![size]);
        Ok(Indexed { seat, data, effort, name })
    }

    fn search(&self, n: usize) -> Result<Searched> {
        search(&*self.seat.db, &self.data.queries, &format!("AND {} = {n}", self.effort))
    }

    /// The least effort that finds enough.
    fn effort(&self, run: &mut Run, config: &str, truth: &Searched) -> Result<usize> {
        let (n, found) = effort(|n| self.search(n), truth)?;
        run.more("recall", config, self.name, "part", vec![found]);
        run.texts.push((self.name.into(), format!("{} = {n}", self.effort)));
        // What is looked at for the first time is read; what is reported is what comes after.
        self.search(n)?;
        Ok(n)
    }

    /// Inserts more rows, and checks the file.
    fn insert(self, run: &mut Run, config: &str) -> Result<()> {
        let mut rates = Vec::new();
        let rows = self.data.vectors.len();
        for (turn, more) in self.data.more.chunks(BATCHES).enumerate() {
            let (_, seconds) = timed(|| insert(&*self.seat.db, (rows + BATCHES * turn) as i64, more, 500))?;
            rates.push(more.len() as f64 / seconds);
        }
        run.more("rows inserted, 500 in a transaction", config, self.name, "rows/s", rates);
        let check = self.seat.db.rows("PRAGMA integrity_check")?;
        if check != [[Value::Text(b"ok".to_vec())]] {
            run.failures.push(format!("integrity check, {}: {check:?}", self.name));
        }
        self.seat.remove();
        Ok(())
    }
}

/// Lists and graphs.
fn many(o: &Options, run: &mut Run) -> Result<()> {
    let (rows, dimensions) = (o.number("many", 1_000_000, 100_000), 128);
    let turns = o.number("repeat", 7, 5);
    let data = Data::draw(rows, dimensions, 200, turns * BATCHES)?;
    let config = format!("{rows} x {dimensions}");
    let lists = Indexed::new(run, &data, &config, ("ivf(train=0)", LISTS), "probes")?;
    let truth = lists.search(0)?;
    let probes = lists.effort(run, &config, &truth)?;
    let graph = Indexed::new(run, &data, &config, ("hnsw(train=0)", GRAPH), "ef")?;
    let ef = graph.effort(run, &config, &truth)?;
    let mut libraries = if o.has("no-graphs") { Vec::new() } else { start(run, &data, dimensions, "l2") };
    let mut efforts = Vec::new();
    for l in &mut libraries {
        let seconds = l.1.build(2)?;
        run.less("build", &config, &l.0, "s, two threads", vec![seconds]);
        let (n, found) = effort(|n| l.1.search(Some(n)), &truth)?;
        run.more("recall", &config, &l.0, "part", vec![found]);
        run.texts.push((l.0.clone(), format!("breadth of {n}")));
        efforts.push(n);
    }
    let exact = || search(&*lists.seat.db, &data.queries[..20], "AND probes = 0");
    exact()?;
    // Each goes through its queries twice: what the one before it left in the processor's caches is nobody's.
    let mut once = |e: usize| match e {
        0 => Ok(median(&lists.search(probes)?)),
        1 => Ok(median(&graph.search(ef)?)),
        2 => Ok(median(&exact()?)),
        e => Ok(median(&libraries[e - 3].1.search(Some(efforts[e - 3]))?)),
    };
    let samples = in_turn(3 + efforts.len(), turns, |e, _| once(e).and_then(|_| once(e)))?;
    let names = [LISTS, GRAPH, EXACT].into_iter().chain(libraries.iter().map(|l| &*l.0));
    for (name, samples) in names.zip(samples) {
        let case = if name == EXACT { "ten nearest, exact" } else { "ten nearest, recall of 0.95" };
        run.less(case, &config, name, "us", samples);
    }
    drop(libraries);
    lists.insert(run, &config)?;
    graph.insert(run, &config)
}
