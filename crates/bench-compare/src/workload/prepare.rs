//! How long preparing takes, over fifty statement shapes from point reads to joins of eight tables, on the tables of TATP, the
//! Star Schema Benchmark and TPC-H. Nothing is run; a shape that one engine does not understand is a failure.

use super::{Seat, TUNED, TUNED_KEEPS, in_turn, tatp_data, timed, tpch_data, tpch_queries};
use crate::Options;
use crate::envelope::Run;
use crate::stats;
use iolite_bench::engine::{Result, find};
use iolite_bench::random::Random;
use iolite_bench::ssb;

const SHAPES: &[(&str, &str)] = &[
    ("constant", "SELECT 1"),
    ("point by key", "SELECT vlr_location FROM subscriber WHERE s_id = ?1"),
    ("point, all columns", "SELECT * FROM subscriber WHERE s_id = ?1"),
    ("point by unique index", "SELECT s_id FROM subscriber WHERE sub_nbr = ?1"),
    (
        "point by two columns",
        "SELECT data1, data2, data3, data4 FROM access_info WHERE s_id = ?1 AND ai_type = ?2",
    ),
    ("range by key", "SELECT s_id FROM subscriber WHERE s_id BETWEEN ?1 AND ?2"),
    ("IN list", "SELECT s_id FROM subscriber WHERE s_id IN (1, 2, 3, 4, 5, 6, 7, 8)"),
    ("OR of keys", "SELECT s_id FROM subscriber WHERE s_id = 1 OR s_id = 5 OR sub_nbr = 'x'"),
    ("count", "SELECT count(*) FROM subscriber"),
    (
        "aggregates",
        "SELECT count(*), sum(bit_1), avg(hex_1), min(vlr_location), max(vlr_location) FROM subscriber",
    ),
    ("group", "SELECT bit_1, count(*) FROM subscriber GROUP BY bit_1"),
    (
        "group, having, order",
        "SELECT hex_1, hex_2, sum(bit_1) AS s FROM subscriber GROUP BY hex_1, hex_2 HAVING s > 2 ORDER BY s DESC",
    ),
    ("distinct", "SELECT DISTINCT hex_1, hex_2 FROM subscriber"),
    ("order, limit", "SELECT s_id FROM subscriber ORDER BY vlr_location DESC LIMIT 10 OFFSET 5"),
    (
        "join of two",
        "SELECT s.sub_nbr, a.data1 FROM subscriber s JOIN access_info a ON a.s_id = s.s_id WHERE s.s_id = ?1",
    ),
    (
        "TATP destination",
        "SELECT cf.numberx FROM special_facility AS sf, call_forwarding AS cf WHERE sf.s_id = ? AND sf.sf_type = ? AND sf.is_active = 1 AND cf.s_id = sf.s_id AND cf.sf_type = sf.sf_type AND cf.start_time <= ? AND ? < cf.end_time",
    ),
    (
        "join of three",
        "SELECT count(*) FROM subscriber s, special_facility f, call_forwarding c WHERE f.s_id = s.s_id AND c.s_id = f.s_id AND c.sf_type = f.sf_type",
    ),
    (
        "LEFT JOIN of four",
        "SELECT s.sub_nbr, a.data1, f.data_a, c.numberx FROM subscriber s LEFT JOIN access_info a ON a.s_id = s.s_id LEFT JOIN special_facility f ON f.s_id = s.s_id LEFT JOIN call_forwarding c ON c.s_id = f.s_id AND c.sf_type = f.sf_type WHERE s.s_id = ?1",
    ),
    (
        "self join",
        "SELECT a.s_id FROM subscriber a JOIN subscriber b ON b.s_id = a.s_id + 1 WHERE a.bit_1 <> b.bit_1",
    ),
    (
        "nested query",
        "SELECT s_id FROM subscriber WHERE vlr_location = (SELECT max(vlr_location) FROM subscriber)",
    ),
    (
        "correlated",
        "SELECT s_id, (SELECT count(*) FROM access_info a WHERE a.s_id = s.s_id) FROM subscriber s WHERE s_id < 10",
    ),
    (
        "EXISTS",
        "SELECT s_id FROM subscriber s WHERE EXISTS (SELECT 1 FROM call_forwarding c WHERE c.s_id = s.s_id)",
    ),
    (
        "IN query",
        "SELECT s_id FROM subscriber WHERE s_id IN (SELECT s_id FROM special_facility WHERE data_a > 200)",
    ),
    (
        "query in FROM",
        "SELECT t, n FROM (SELECT ai_type AS t, count(*) AS n FROM access_info GROUP BY ai_type) WHERE n > 3",
    ),
    (
        "WITH",
        "WITH x AS (SELECT s_id, bit_1 FROM subscriber WHERE hex_1 = 3) SELECT bit_1, count(*) FROM x GROUP BY 1",
    ),
    (
        "WITH RECURSIVE",
        "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 10) SELECT sum(i) FROM c",
    ),
    ("UNION ALL", "SELECT s_id FROM access_info UNION ALL SELECT s_id FROM special_facility"),
    (
        "UNION, order",
        "SELECT s_id FROM access_info UNION SELECT s_id FROM special_facility ORDER BY 1 LIMIT 3",
    ),
    ("EXCEPT", "SELECT s_id FROM subscriber EXCEPT SELECT s_id FROM call_forwarding"),
    ("window", "SELECT s_id, row_number() OVER (PARTITION BY hex_1 ORDER BY vlr_location) FROM subscriber"),
    (
        "two windows",
        "SELECT s_id, rank() OVER (ORDER BY hex_1), sum(bit_1) OVER (PARTITION BY hex_1 ORDER BY s_id ROWS 3 PRECEDING) FROM subscriber",
    ),
    (
        "CASE",
        "SELECT CASE WHEN bit_1 = 1 THEN 'a' WHEN bit_2 = 1 THEN 'b' ELSE 'c' END FROM subscriber WHERE s_id = ?1",
    ),
    (
        "functions",
        "SELECT upper(substr(sub_nbr, 3, 5)), abs(vlr_location), coalesce(bit_1, 0), length(sub_nbr) FROM subscriber",
    ),
    ("LIKE", "SELECT s_id FROM subscriber WHERE sub_nbr LIKE '00000%'"),
    ("date functions", "SELECT strftime('%Y-%m', d_datekey, 'unixepoch'), date('now') FROM date"),
    (
        "wide condition",
        "SELECT s_id FROM subscriber WHERE bit_1 = 1 AND bit_2 = 0 AND bit_3 = 1 AND hex_1 > 3 AND hex_2 < 9 AND byte2_1 BETWEEN 4 AND 200 AND (hex_3 = 1 OR hex_4 = 2)",
    ),
    ("INSERT", "INSERT INTO call_forwarding VALUES(?, ?, ?, ?, ?)"),
    (
        "INSERT of three rows",
        "INSERT INTO call_forwarding VALUES(1, 1, 0, 1, 'a'), (1, 1, 8, 9, 'b'), (1, 1, 16, 17, 'c')",
    ),
    (
        "INSERT from SELECT",
        "INSERT INTO access_info SELECT s_id + 1000000, ai_type, data1, data2, data3, data4 FROM access_info",
    ),
    (
        "UPSERT",
        "INSERT INTO access_info VALUES(1, 1, 1, 1, 'a', 'b') ON CONFLICT(s_id, ai_type) DO UPDATE SET data1 = excluded.data1 + 1",
    ),
    ("REPLACE", "INSERT OR REPLACE INTO special_facility VALUES(1, 1, 1, 1, 1, 'x')"),
    ("RETURNING", "UPDATE subscriber SET bit_1 = 1 WHERE s_id = ?1 RETURNING bit_1, bit_2"),
    ("UPDATE by key", "UPDATE subscriber SET vlr_location = ?1 WHERE s_id = ?2"),
    ("UPDATE by index", "UPDATE subscriber SET vlr_location = ?1 WHERE sub_nbr = ?2"),
    (
        "UPDATE from a query",
        "UPDATE subscriber SET bit_1 = (SELECT max(is_active) FROM special_facility f WHERE f.s_id = subscriber.s_id) WHERE s_id < 100",
    ),
    ("DELETE by key", "DELETE FROM call_forwarding WHERE s_id = ? AND sf_type = ? AND start_time = ?"),
    (
        "DELETE by query",
        "DELETE FROM call_forwarding WHERE s_id IN (SELECT s_id FROM special_facility WHERE is_active = 0)",
    ),
];

/// Measures.
pub fn run(o: &Options, run: &mut Run) -> Result<()> {
    let turns = o.number("repeat", 9, 5);
    let rounds = o.number("rounds", 200, 50);
    let names = ["stock", "iolite"];
    let mut seats = Vec::new();
    for n in names {
        run.set("", n, TUNED, TUNED_KEEPS);
        let s = Seat::open(&*find(n)?, n, "prepare", TUNED)?;
        // What is measured is compiling: no program may be found by its text.
        s.db.batch("PRAGMA plan_cache = 0")?;
        tatp_data::load(&*s.db, 1_000)?;
        s.db.batch(ssb::SCHEMA)?;
        s.db.batch("ALTER TABLE part RENAME TO ssb_part; ALTER TABLE supplier RENAME TO ssb_supplier; ALTER TABLE customer RENAME TO ssb_customer")?;
        s.db.batch(tpch_data::SCHEMA)?;
        s.db.batch("ANALYZE")?;
        seats.push(s);
    }
    let mut shapes: Vec<(String, String)> = SHAPES.iter().map(|s| (s.0.into(), s.1.into())).collect();
    let rename = |s: &str| {
        s.replace(" part", " ssb_part")
            .replace(" supplier", " ssb_supplier")
            .replace("customer, lineorder", "ssb_customer, lineorder")
    };
    if let Some((_, q)) = ssb::queries(&mut Random(7)).into_iter().find(|q| q.0 == "Q2.1") {
        shapes.push(("SSB Q2.1".into(), rename(&q)));
    }
    for i in [5, 8] {
        shapes.push((format!("TPC-H Q{i}"), tpch_queries::QUERIES[i - 1].into()));
    }
    let mut logs = [Vec::new(), Vec::new()];
    for (title, sql) in &shapes {
        let columns = seats.iter().map(|s| s.db.prepare(sql).map(|_| ())).collect::<Result<Vec<_>>>();
        if let Err(e) = columns {
            run.failures.push(format!("{title}: {e}"));
            continue;
        }
        let t = in_turn(2, turns, |k, _| {
            let ((), s) = timed(|| (0..rounds).try_for_each(|_| seats[k].db.prepare(sql).map(drop)))?;
            Ok(s * 1e6 / rounds as f64)
        })?;
        for (k, samples) in t.into_iter().enumerate() {
            logs[k].push(stats::summary(&samples).median);
            run.less(title, "", names[k], "us", samples);
        }
    }
    run.gates.push(format!("{} shapes are understood by both engines", logs[0].len()));
    for (k, l) in logs.iter().enumerate() {
        run.less("geometric mean of all shapes", "", names[k], "us", vec![stats::geometric(l)]);
    }
    seats.into_iter().for_each(Seat::remove);
    Ok(())
}
