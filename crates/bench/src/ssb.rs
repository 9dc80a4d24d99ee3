//! The Star Schema Benchmark: a generator for any scale and the 13 queries.
//!
//! Distributions follow the specification; where it is silent the choice is ours: a fixed seed for each table, lines of one
//! order share date and customer, prices come from the part's key. Constants of the queries are drawn from a generator that
//! the caller keeps, so that repetitions ask for different things and all engines for the same.

use crate::engine::{Database, Result, Source, Value, int, text};
use crate::random::Random;

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

/// The tables. DuckDB understands the text too.
pub const SCHEMA: &str = "
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

/// A table to be filled.
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// How many columns it has.
    pub columns: usize,
    /// Its rows.
    pub rows: Box<Source<'static>>,
}

fn counted(rows: i64, mut next: impl FnMut(i64, &mut Vec<Value>) + 'static) -> Box<Source<'static>> {
    let mut i = 0;
    Box::new(move |row| {
        if i == rows {
            return false;
        }
        next(i, row);
        i += 1;
        true
    })
}

fn date_keys() -> Vec<(i64, i64, i64, i64)> {
    let mut out = Vec::new();
    for y in 1992..=1998 {
        let mut in_year = 0;
        for m in 1..=12 {
            for d in 1..=days_of(y, m) {
                in_year += 1;
                out.push((y, m, d, in_year));
            }
        }
    }
    out
}

fn date() -> Table {
    let days = date_keys();
    let rows = counted(days.len() as i64, move |n, row| {
        let (y, m, d, in_year) = days[n as usize];
        let month = MONTHS[m as usize - 1];
        let season = (m as usize - 1) / 3 + (m == 12) as usize;
        row.extend([
            int(y * 10_000 + m * 100 + d),
            text(format!("{month} {d}, {y}")),
            text(["Wed", "Thu", "Fri", "Sat", "Sun", "Mon", "Tue"][n as usize % 7]),
            text(month),
            int(y),
            int(y * 100 + m),
            text(format!("{month}{y}")),
            int((n + 3) % 7 + 1),
            int(d),
            int(in_year),
            int(m),
            int((in_year - 1) / 7 + 1),
            text(["Winter", "Spring", "Summer", "Fall", "Christmas"][season]),
            text(((m == 12 && d == 25) as i64).to_string()),
            text((((n + 3) % 7 < 5) as i64).to_string()),
        ]);
    });
    Table { name: "date", columns: 15, rows }
}

fn part(parts: i64) -> Table {
    let mut r = Random(101);
    let rows = counted(parts, move |i, row| {
        let (m, c, b) = (r.range(1, 5), r.range(1, 5), r.range(1, 40));
        let (x, y) = (r.range(0, 9) as usize, r.range(0, 9) as usize);
        row.extend([
            int(i + 1),
            text(format!("{} {}", COLORS[x], COLORS[y])),
            text(format!("MFGR#{m}")),
            text(format!("MFGR#{m}{c}")),
            text(format!("MFGR#{m}{c}{b}")),
            text(COLORS[x]),
            text(format!("STANDARD TYPE {}", r.range(1, 150))),
            int(r.range(1, 50)),
            text(format!("BOX {}", r.range(1, 40))),
        ]);
    });
    Table { name: "part", columns: 9, rows }
}

/// Suppliers and customers: a name, an address, a place, a phone.
fn people(r: &mut Random, i: i64, kind: &str, row: &mut Vec<Value>) {
    let (a, b, d) = (r.range(0, 4) as usize, r.range(0, 4) as usize, r.range(0, 9));
    row.extend([
        int(i + 1),
        text(format!("{kind}#{:09}", i + 1)),
        text(format!("address {}", r.next())),
        text(city(NATIONS[a][b], d)),
        text(NATIONS[a][b]),
        text(REGIONS[a]),
        text(r.next().to_string()),
    ]);
}

fn lineorder(total: i64, parts: i64, suppliers: i64, customers: i64) -> Table {
    let mut r = Random(104);
    let dates: Vec<i64> = date_keys().iter().map(|(y, m, d, _)| y * 10_000 + m * 100 + d).collect();
    let (mut order, mut line, mut lines) = (0, 0, 0);
    let (mut cust, mut date, mut prio) = (0, 0, 0);
    let rows = counted(total, move |_, row| {
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
        row.extend([
            int(order),
            int(line),
            int(cust),
            int(part),
            int(r.range(1, suppliers)),
            int(dates[date as usize]),
            text(PRIORITIES[prio as usize]),
            text("0"),
            int(quantity),
            int(extended),
            int(extended * 3),
            int(discount),
            int(extended * (100 - discount) / 100),
            int(6 * price / 10),
            int(r.range(0, 8)),
            int(commit),
            text(MODES[r.range(0, 6) as usize]),
        ]);
    });
    Table { name: "lineorder", columns: 17, rows }
}

/// The five tables at a scale, dimensions first.
pub fn tables(sf: f64) -> Vec<Table> {
    let parts = (200_000.0 * (1.0 + sf.max(1.0).log2().floor()) * sf.min(1.0)) as i64;
    let suppliers = (2_000.0 * sf).max(20.0) as i64;
    let customers = (30_000.0 * sf).max(50.0) as i64;
    let (mut s, mut c) = (Random(102), Random(103));
    let supplier = counted(suppliers, move |i, row| people(&mut s, i, "Supplier", row));
    let customer = counted(customers, move |i, row| {
        people(&mut c, i, "Customer", row);
        row.push(text(SEGMENTS[c.range(0, 4) as usize]));
    });
    vec![
        date(),
        part(parts),
        Table { name: "supplier", columns: 7, rows: supplier },
        Table { name: "customer", columns: 8, rows: customer },
        lineorder((6_000_000.0 * sf) as i64, parts, suppliers, customers),
    ]
}

/// Makes a database of a scale; answers the rows of `lineorder`.
pub fn load(db: &dyn Database, sf: f64) -> Result<u64> {
    db.batch(SCHEMA)?;
    let mut n = 0;
    for mut t in tables(sf) {
        n = db.load(t.name, t.columns, &mut *t.rows)?;
    }
    Ok(n)
}

/// The 13 queries with constants drawn anew.
pub fn queries(r: &mut Random) -> Vec<(&'static str, String)> {
    let year = |r: &mut Random| r.range(1993, 1997);
    let pick = |r: &mut Random| (r.range(0, 4) as usize, r.range(0, 4) as usize);
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
    let region = |r: &mut Random| REGIONS[r.range(0, 4) as usize];
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
    let cities = |r: &mut Random| {
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
