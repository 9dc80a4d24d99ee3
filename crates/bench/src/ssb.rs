//! The Star Schema Benchmark: a generator for any scale, the 13 queries, and their times beside stock SQLite's.
//!
//! Distributions follow the specification; where it is silent the choice is ours: a fixed seed, lines of one order share
//! date and customer, prices come from the part's key. Constants of the queries are drawn anew for each repetition, the
//! same for both engines, and every answer of iolite is compared with stock's.

use crate::engine::{Engine, Result};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A linear congruential generator: the same numbers everywhere.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// From `lo` to `hi`, both included.
    fn range(&mut self, lo: i64, hi: i64) -> i64 {
        lo + (self.next() % (hi - lo + 1) as u64) as i64
    }
}

const REGIONS: [&str; 5] = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];
const NATIONS: [[&str; 5]; 5] = [
    ["ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"],
    ["ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"],
    ["CHINA", "INDIA", "INDONESIA", "JAPAN", "VIETNAM"],
    ["FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"],
    ["EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"],
];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const COLORS: [&str; 10] =
    ["almond", "antique", "azure", "beige", "blush", "chiffon", "coral", "cornsilk", "frosted", "ghost"];
const MODES: [&str; 7] = ["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"];
const PRIORITIES: [&str; 5] = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECI", "5-LOW"];
const SEGMENTS: [&str; 5] = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"];

/// The city: nine letters of the nation and a digit.
fn city(nation: &str, digit: i64) -> String {
    format!("{nation:<9.9}{digit}")
}

const SCHEMA: &str = "
CREATE TABLE lineorder(lo_orderkey INTEGER, lo_linenumber INTEGER, lo_custkey INTEGER, lo_partkey INTEGER,
  lo_suppkey INTEGER, lo_orderdate INTEGER, lo_orderpriority TEXT, lo_shippriority TEXT, lo_quantity INTEGER,
  lo_extendedprice INTEGER, lo_ordtotalprice INTEGER, lo_discount INTEGER, lo_revenue INTEGER,
  lo_supplycost INTEGER, lo_tax INTEGER, lo_commitdate INTEGER, lo_shipmode TEXT);
CREATE TABLE part(p_partkey INTEGER PRIMARY KEY, p_name TEXT, p_mfgr TEXT, p_category TEXT, p_brand1 TEXT,
  p_color TEXT, p_type TEXT, p_size INTEGER, p_container TEXT);
CREATE TABLE supplier(s_suppkey INTEGER PRIMARY KEY, s_name TEXT, s_address TEXT, s_city TEXT, s_nation TEXT,
  s_region TEXT, s_phone TEXT);
CREATE TABLE customer(c_custkey INTEGER PRIMARY KEY, c_name TEXT, c_address TEXT, c_city TEXT, c_nation TEXT,
  c_region TEXT, c_phone TEXT, c_mktsegment TEXT);
CREATE TABLE date(d_datekey INTEGER PRIMARY KEY, d_date TEXT, d_dayofweek TEXT, d_month TEXT, d_year INTEGER,
  d_yearmonthnum INTEGER, d_yearmonth TEXT, d_daynuminweek INTEGER, d_daynuminmonth INTEGER,
  d_daynuminyear INTEGER, d_monthnuminyear INTEGER, d_weeknuminyear INTEGER, d_sellingseason TEXT,
  d_holidayfl TEXT, d_weekdayfl TEXT);
";

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + (year % 4 == 0) as i64,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Inserts rows that `next` writes as SQL values, many to a statement.
fn insert(
    db: &Engine,
    table: &str,
    rows: i64,
    mut next: impl FnMut(i64, &mut String) -> std::fmt::Result,
) -> Result<()> {
    let mut sql = String::new();
    for i in 0..rows {
        sql.push_str(if sql.is_empty() { "" } else { "," });
        next(i, &mut sql).map_err(|e| e.to_string())?;
        if i % 100 == 99 || i + 1 == rows {
            db.batch(&format!("INSERT INTO {table} VALUES {sql}"))?;
            sql.clear();
        }
    }
    Ok(())
}

/// Makes a database of a scale.
pub fn load(db: &Engine, sf: f64) -> Result<i64> {
    let mut r = Rng(42);
    db.batch("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;")?;
    db.batch(SCHEMA)?;
    db.batch("BEGIN")?;
    let parts = (200_000.0 * (1.0 + sf.max(1.0).log2().floor()) * sf.min(1.0)) as i64;
    let suppliers = (2_000.0 * sf).max(20.0) as i64;
    let customers = (30_000.0 * sf).max(50.0) as i64;
    let mut dates = Vec::new();
    let mut rows = Vec::new();
    for y in 1992..=1998 {
        let mut in_year = 0;
        for m in 1..=12 {
            for d in 1..=days_of(y, m) {
                in_year += 1;
                let key = y * 10_000 + m * 100 + d;
                let n = dates.len() as i64;
                dates.push(key);
                rows.push(format!(
                    "({key},'{} {d}, {y}','{}','{}',{y},{},'{}{y}',{},{d},{in_year},{m},{},'{}','{}','{}')",
                    MONTHS[m as usize - 1],
                    ["Wed", "Thu", "Fri", "Sat", "Sun", "Mon", "Tue"][n as usize % 7],
                    MONTHS[m as usize - 1],
                    y * 100 + m,
                    MONTHS[m as usize - 1],
                    (n + 3) % 7 + 1,
                    (in_year - 1) / 7 + 1,
                    ["Winter", "Spring", "Summer", "Fall", "Christmas"]
                        [(m as usize - 1) / 3 + (m == 12) as usize],
                    (m == 12 && d == 25) as i64,
                    ((n + 3) % 7 < 5) as i64,
                ));
            }
        }
    }
    insert(db, "date", rows.len() as i64, |i, s| s.write_str(&rows[i as usize]))?;
    insert(db, "part", parts, |i, s| {
        let (m, c, b) = (r.range(1, 5), r.range(1, 5), r.range(1, 40));
        let (x, y) = (r.range(0, 9) as usize, r.range(0, 9) as usize);
        write!(
            s,
            "({},'{} {}','MFGR#{m}','MFGR#{m}{c}','MFGR#{m}{c}{b}','{}','STANDARD TYPE {}',{},'BOX {}')",
            i + 1,
            COLORS[x],
            COLORS[y],
            COLORS[x],
            r.range(1, 150),
            r.range(1, 50),
            r.range(1, 40)
        )
    })?;
    let place = |r: &mut Rng| {
        let (a, b, d) = (r.range(0, 4) as usize, r.range(0, 4) as usize, r.range(0, 9));
        (city(NATIONS[a][b], d), NATIONS[a][b], REGIONS[a])
    };
    insert(db, "supplier", suppliers, |i, s| {
        let (c, n, g) = place(&mut r);
        write!(s, "({0},'Supplier#{0:09}','address {1}','{c}','{n}','{g}','{2}')", i + 1, r.next(), r.next())
    })?;
    insert(db, "customer", customers, |i, s| {
        let (c, n, g) = place(&mut r);
        let m = SEGMENTS[r.range(0, 4) as usize];
        write!(
            s,
            "({0},'Customer#{0:09}','address {1}','{c}','{n}','{g}','{2}','{m}')",
            i + 1,
            r.next(),
            r.next()
        )
    })?;
    let total = (6_000_000.0 * sf) as i64;
    let (mut order, mut line, mut lines) = (0, 0, 0);
    let (mut cust, mut date, mut prio) = (0, 0, 0);
    insert(db, "lineorder", total, |_, s| {
        if line == lines {
            (order, line, lines) = (order + 1, 0, r.range(1, 7));
            cust = r.range(1, customers);
            date = r.range(0, dates.len() as i64 - 1);
            prio = r.range(0, 4);
        }
        line += 1;
        let part = r.range(1, parts);
        let (quantity, discount) = (r.range(1, 50), r.range(0, 10));
        let price = 90_000 + (part / 10) % 20_001 + 100 * (part % 1_000);
        let extended = price * quantity;
        let commit = dates[((date + r.range(30, 90)) as usize).min(dates.len() - 1)];
        write!(
            s,
            "({order},{line},{cust},{part},{},{},'{}','0',{quantity},{extended},{},{discount},{},{},{},{commit},'{}')",
            r.range(1, suppliers),
            dates[date as usize],
            PRIORITIES[prio as usize],
            extended * 3,
            extended * (100 - discount) / 100,
            6 * price / 10,
            r.range(0, 8),
            MODES[r.range(0, 6) as usize],
        )
    })?;
    db.batch("COMMIT")?;
    db.batch("ANALYZE")?;
    db.batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(total)
}

/// The 13 queries with constants drawn anew.
fn queries(r: &mut Rng) -> Vec<(&'static str, String)> {
    let year = |r: &mut Rng| r.range(1993, 1997);
    let pick = |r: &mut Rng| (r.range(0, 4) as usize, r.range(0, 4) as usize);
    let mut out = Vec::new();
    let d = r.range(1, 8);
    let y = year(r);
    out.push((
        "Q1.1",
        format!(
            "SELECT sum(lo_extendedprice*lo_discount) AS revenue FROM lineorder, date WHERE lo_orderdate = d_datekey \
             AND d_year = {y} AND lo_discount BETWEEN {d} AND {} AND lo_quantity < 25",
            d + 2
        ),
    ));
    let d = r.range(1, 8);
    let ym = year(r) * 100 + r.range(1, 12);
    out.push((
        "Q1.2",
        format!(
            "SELECT sum(lo_extendedprice*lo_discount) AS revenue FROM lineorder, date WHERE lo_orderdate = d_datekey \
             AND d_yearmonthnum = {ym} AND lo_discount BETWEEN {d} AND {} AND lo_quantity BETWEEN 26 AND 35",
            d + 2
        ),
    ));
    let d = r.range(1, 8);
    let (w, y) = (r.range(2, 50), year(r));
    out.push((
        "Q1.3",
        format!(
            "SELECT sum(lo_extendedprice*lo_discount) AS revenue FROM lineorder, date WHERE lo_orderdate = d_datekey \
             AND d_weeknuminyear = {w} AND d_year = {y} AND lo_discount BETWEEN {d} AND {} \
             AND lo_quantity BETWEEN 26 AND 35",
            d + 2
        ),
    ));
    let two = |cond: String, region: &str| {
        format!(
            "SELECT sum(lo_revenue), d_year, p_brand1 FROM lineorder, date, part, supplier \
             WHERE lo_orderdate = d_datekey AND lo_partkey = p_partkey AND lo_suppkey = s_suppkey AND {cond} \
             AND s_region = '{region}' GROUP BY d_year, p_brand1 ORDER BY d_year, p_brand1"
        )
    };
    let (m, c) = (r.range(1, 5), r.range(1, 5));
    let region = |r: &mut Rng| REGIONS[r.range(0, 4) as usize];
    let g = region(r);
    out.push(("Q2.1", two(format!("p_category = 'MFGR#{m}{c}'"), g)));
    let (m, c, b) = (r.range(1, 5), r.range(1, 5), r.range(10, 32));
    let g = region(r);
    out.push(("Q2.2", two(format!("p_brand1 BETWEEN 'MFGR#{m}{c}{b}' AND 'MFGR#{m}{c}{}'", b + 7), g)));
    let g = region(r);
    out.push(("Q2.3", two(format!("p_brand1 = 'MFGR#{m}{c}{b}'"), g)));
    let three = |columns: &str, cond: String| {
        format!(
            "SELECT {columns}, d_year, sum(lo_revenue) AS revenue FROM customer, lineorder, supplier, date \
             WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey AND {cond} \
             GROUP BY {columns}, d_year ORDER BY d_year ASC, revenue DESC"
        )
    };
    let g = region(r);
    let years = "d_year >= 1992 AND d_year <= 1997";
    out.push((
        "Q3.1",
        three("c_nation, s_nation", format!("c_region = '{g}' AND s_region = '{g}' AND {years}")),
    ));
    let (a, b) = pick(r);
    let n = NATIONS[a][b];
    out.push(("Q3.2", three("c_city, s_city", format!("c_nation = '{n}' AND s_nation = '{n}' AND {years}"))));
    let cities = |r: &mut Rng| {
        let (a, b) = (r.range(0, 4) as usize, r.range(0, 4) as usize);
        let d = r.range(0, 4);
        (city(NATIONS[a][b], d), city(NATIONS[a][b], d + 5))
    };
    let (x, z) = cities(r);
    let of = |x: &str, z: &str| format!("(c_city='{x}' OR c_city='{z}') AND (s_city='{x}' OR s_city='{z}')");
    out.push(("Q3.3", three("c_city, s_city", format!("{} AND {years}", of(&x, &z)))));
    let (x, z) = cities(r);
    let month = format!("{}{}", MONTHS[r.range(0, 11) as usize], year(r));
    out.push(("Q3.4", three("c_city, s_city", format!("{} AND d_yearmonth = '{month}'", of(&x, &z)))));
    let four = |columns: &str, cond: String| {
        format!(
            "SELECT {columns}, sum(lo_revenue - lo_supplycost) AS profit FROM date, customer, supplier, part, lineorder \
             WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey \
             AND lo_orderdate = d_datekey AND {cond} GROUP BY {columns} ORDER BY {columns}"
        )
    };
    let g = region(r);
    let m = r.range(1, 4);
    let mfgr = format!("(p_mfgr = 'MFGR#{m}' OR p_mfgr = 'MFGR#{}')", m + 1);
    out.push(("Q4.1", four("d_year, c_nation", format!("c_region = '{g}' AND s_region = '{g}' AND {mfgr}"))));
    let g = region(r);
    let y = r.range(1992, 1997);
    let both = format!("(d_year = {y} OR d_year = {})", y + 1);
    out.push((
        "Q4.2",
        four(
            "d_year, s_nation, p_category",
            format!("c_region = '{g}' AND s_region = '{g}' AND {both} AND {mfgr}"),
        ),
    ));
    let (a, b) = pick(r);
    let (m, c) = (r.range(1, 5), r.range(1, 5));
    out.push((
        "Q4.3",
        four(
            "d_year, s_city, p_brand1",
            format!(
                "c_region = '{}' AND s_nation = '{}' AND {both} AND p_category = 'MFGR#{m}{c}'",
                REGIONS[a], NATIONS[a][b]
            ),
        ),
    ));
    out
}

/// A query's rows as text, and how long it took in milliseconds.
fn answer(db: &Engine, sql: &str) -> Result<(String, f64)> {
    let start = Instant::now();
    let rows = db.rows(sql)?;
    let ms = start.elapsed().as_secs_f64() * 1e3;
    Ok((rows, ms))
}

fn median(v: &mut [f64]) -> f64 {
    v.sort_by(f64::total_cmp);
    v.get(v.len() / 2).copied().unwrap_or(0.0)
}

/// Runs the benchmark: `--sf N`, `--repeat N`, `--file PATH` (kept, and used if it is there), `--no-stock`.
pub fn run(args: &[&str]) -> Result<()> {
    let value = |name: &str| args.iter().position(|a| *a == name).and_then(|i| args.get(i + 1)).copied();
    let sf: f64 = value("--sf").and_then(|v| v.parse().ok()).unwrap_or(1.0);
    let repeat: usize = value("--repeat").and_then(|v| v.parse().ok()).unwrap_or(5);
    let with_stock = !args.contains(&"--no-stock");
    let (path, keep) = match value("--file") {
        Some(p) => (PathBuf::from(p), true),
        None => (std::env::temp_dir().join(format!("iolite-ssb-{}.db", std::process::id())), false),
    };
    let name = path.to_string_lossy().into_owned();
    if !Path::new(&path).exists() {
        let db = Engine::open("iolite", &name)?;
        let start = Instant::now();
        let rows = load(&db, sf)?;
        println!("loaded {rows} lineorder rows in {:.1} s", start.elapsed().as_secs_f64());
    }
    let done = measure(&name, repeat, with_stock);
    if !keep {
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{name}{suffix}"));
        }
    }
    done
}

fn measure(name: &str, repeat: usize, with_stock: bool) -> Result<()> {
    let iolite = Engine::open("iolite", name)?;
    let stock = Engine::open("stock", name)?;
    for db in [&iolite, &stock] {
        db.batch("PRAGMA cache_size=-65536; PRAGMA temp_store=MEMORY;")?;
    }
    let mut r = Rng(7);
    let mut cold = Vec::new();
    for (_, sql) in queries(&mut r) {
        cold.push(answer(&iolite, &sql)?.1);
    }
    let n = cold.len();
    let (mut ours, mut theirs) = (vec![Vec::new(); n], vec![Vec::new(); n]);
    let mut names = Vec::new();
    for _ in 0..repeat {
        names.clear();
        for (k, (query, sql)) in queries(&mut r).into_iter().enumerate() {
            names.push(query);
            let (rows, ms) = answer(&iolite, &sql)?;
            ours[k].push(ms);
            if with_stock {
                let (want, ms) = answer(&stock, &sql)?;
                theirs[k].push(ms);
                if rows != want {
                    return Err(format!("{query}: answers differ\n{sql}\niolite:\n{rows}\nstock:\n{want}"));
                }
            }
        }
    }
    println!("| query | first ms | iolite ms | least | greatest | stock ms | stock / iolite |");
    println!("|---|---|---|---|---|---|---|");
    let (mut log_ours, mut log_theirs, mut sum) = (0.0, 0.0, 0.0);
    for k in 0..n {
        let (a, b) = (median(&mut ours[k]), median(&mut theirs[k]));
        let (least, most) = (ours[k][0], ours[k][ours[k].len() - 1]);
        log_ours += a.ln();
        log_theirs += b.max(1e-9).ln();
        sum += a;
        println!(
            "| {} | {:.1} | {a:.2} | {least:.2} | {most:.2} | {b:.1} | {:.0} |",
            names[k],
            cold[k],
            b / a
        );
    }
    let (a, b) = ((log_ours / n as f64).exp(), (log_theirs / n as f64).exp());
    println!("| geometric mean | | {a:.2} | | | {b:.1} | {:.0} |", b / a);
    println!(
        "\nsum of medians {sum:.1} ms; answers compared with stock: {}",
        if with_stock { "yes" } else { "no" }
    );
    Ok(())
}
