//! Vectors as they come, and damaged tables of them: exact, in lists, as a graph.
//!
//! The parts of an input are separated by [`BETWEEN`]: a vector that is looked for; then values, of which the first byte says what they replace.

#![no_main]

use iolite::engine::{Switch, Value};
use iolite_fuzz::{in_memory, parts, rows, run, text, without_leak};
use libfuzzer_sys::fuzz_target;

/// What separates the parts.
const BETWEEN: &[u8] = b"\n--next part--\n";

const SETUP: &str = "
CREATE VIRTUAL TABLE exact USING vec0(e float[4] distance_metric=cosine, year integer, +title text, chunk_size = 8);
CREATE VIRTUAL TABLE lists USING vec0(e float[4] index=ivf(lists=3, probes=2), chunk_size = 8);
CREATE VIRTUAL TABLE graph USING vec0(e float[4] index=hnsw(ef_search=8), chunk_size = 8);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
  INSERT INTO exact(rowid, e, year, title) SELECT i, vec_f32('[' || i || ',' || (i * 7 % 5) || ',2,' || (i * 3 % 11) || ']'), i % 3, 'no ' || i FROM n;
INSERT INTO lists(rowid, e) SELECT rowid, e FROM exact; INSERT INTO graph(rowid, e) SELECT rowid, e FROM exact;
DELETE FROM exact WHERE rowid % 9 = 4; DELETE FROM lists WHERE rowid % 9 = 4; DELETE FROM graph WHERE rowid % 9 = 4";

const CALLS: [&str; 9] = [
    "vec_to_json(?1)",
    "vec_length(?1)",
    "vec_type(?1)",
    "vec_normalize(?1)",
    "vec_quantize_binary(?1)",
    "vec_slice(?1, 1, 3)",
    "vec_distance_l2(?1, '[1,2,3,4]')",
    "vec_add(?1, ?1)",
    "vec_to_json(vec_bit(?1))",
];

fuzz_target!(|input: &[u8]| {
    without_leak(|| {
        let c = in_memory(SETUP);
        c.switch(Switch::Defensive, Some(false));
        let all = parts(input, BETWEEN);
        for part in &all[1..] {
            let [which, data @ ..] = part else { continue };
            // Any value of any shadow table.
            let shadow = rows(&c, "SELECT m.name, p.name FROM sqlite_schema m, pragma_table_info(m.name) p
                WHERE m.type = 'table' AND m.name GLOB '*[a-z]_*' AND m.sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY 1, 2", &[]);
            let Some(shadow) = shadow.filter(|s| !s.is_empty()) else { continue };
            let place = &shadow[*which as usize % shadow.len()];
            let (table, column) = (text(&place[0]), text(&place[1]));
            let sql = format!(
                "UPDATE \"{table}\" SET \"{column}\" = ?1 WHERE rowid = (SELECT min(rowid) FROM \"{table}\")"
            );
            rows(&c, &sql, &[Value::blob(data).expect("memory")]);
        }
        for sought in [Value::text(all[0]), Value::blob(all[0])].map(|v| v.expect("memory")) {
            let sought = [sought];
            CALLS.iter().for_each(|f| drop(rows(&c, &format!("SELECT {f}"), &sought)));
            rows(&c, "SELECT * FROM vec_each(?1)", &sought);
            for table in ["exact", "lists", "graph"] {
                rows(&c, &format!("SELECT rowid, distance FROM {table} WHERE e MATCH ?1 AND k = 5"), &sought);
                rows(&c, &format!("INSERT INTO {table}(e) VALUES(?1)"), &sought);
            }
        }
        for table in ["exact", "lists", "graph"] {
            run(&c, &format!("SELECT * FROM {table}; SELECT rowid FROM {table} WHERE e MATCH '[1,2,3,4]' AND k = 50;
                INSERT INTO {table}(rowid, e) VALUES(500, '[4,3,2,1]'); UPDATE {table} SET e = '[0,0,1,1]' WHERE rowid = 5;
                DELETE FROM {table} WHERE rowid % 2; PRAGMA integrity_check; DROP TABLE {table}"));
        }
    });
});
