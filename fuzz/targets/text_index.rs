//! Queries and damaged indexes of FTS5 and FTS4.
//!
//! The parts of an input are separated by [`BETWEEN`]: a query; then blocks, of which the first byte says which is replaced.

#![no_main]

use iolite::engine::{Switch, Value};
use iolite_fuzz::{in_memory, parts, rows, run, without_leak};
use libfuzzer_sys::fuzz_target;

/// What separates the parts.
const BETWEEN: &[u8] = b"\n--next part--\n";

const SETUP: &str = "
CREATE VIRTUAL TABLE f USING fts5(x, y, prefix = '1 3'); CREATE VIRTUAL TABLE o USING fts4(x, y, prefix='1 3', languageid='l');
CREATE VIRTUAL TABLE p USING fts5(x, detail = column, content = '', contentless_delete = 1, tokenize = 'trigram');
INSERT INTO f(f, rank) VALUES('pgsz', 64);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
  INSERT INTO f SELECT 'the ' || (i % 7) || ' words of row ' || i, 'and ' || (i * 13 % 40) || ' more' FROM n;
DELETE FROM f WHERE rowid % 10 = 3; INSERT INTO o(x, y) SELECT x, y FROM f; DELETE FROM o WHERE docid % 9 = 1;
INSERT INTO p(x) SELECT x FROM f; DELETE FROM p WHERE rowid % 7 = 2;
CREATE VIRTUAL TABLE vr USING fts5vocab(f, row); CREATE VIRTUAL TABLE vi USING fts5vocab(f, instance);
CREATE VIRTUAL TABLE oa USING fts4aux(o)";

const BLOCKS: [&str; 7] = [
    "UPDATE f_data SET block = ?1 WHERE id = (SELECT id FROM f_data ORDER BY id DESC LIMIT 1 OFFSET ?2)",
    "UPDATE f_data SET block = ?1 WHERE id = 10 AND ?2",
    "UPDATE f_idx SET pgno = length(?1) WHERE rowid % 16 = ?2",
    "UPDATE f_docsize SET sz = ?1 WHERE id % 16 = ?2",
    "UPDATE o_segments SET block = ?1 WHERE blockid = ?2 + 1",
    "UPDATE o_segdir SET root = ?1 WHERE idx = ?2 % 4",
    "UPDATE p_data SET block = ?1 WHERE id = (SELECT id FROM p_data ORDER BY id DESC LIMIT 1 OFFSET ?2)",
];

const SEARCHES: [&str; 7] = [
    "SELECT rowid, rank, highlight(f, 0, '<', '>'), snippet(f, -1, '<', '>', '..', 5), bm25(f, 2, 1) FROM f WHERE f MATCH ?1 ORDER BY rank LIMIT 20",
    "SELECT * FROM f(?1) ORDER BY rowid DESC",
    "SELECT rowid FROM f WHERE x MATCH ?1 AND rowid > 7",
    "SELECT docid, snippet(o), offsets(o), matchinfo(o, 'pcnalsxyb') FROM o WHERE o MATCH ?1",
    "SELECT docid FROM o WHERE x MATCH ?1 AND l = 0 ORDER BY docid DESC",
    "SELECT rowid FROM p WHERE p MATCH ?1",
    "SELECT rowid FROM p WHERE x LIKE '%' || ?1 || '%'",
];

fuzz_target!(|input: &[u8]| {
    without_leak(|| {
        let c = in_memory(SETUP);
        c.switch(Switch::Defensive, Some(false));
        let all = parts(input, BETWEEN);
        for block in &all[1..] {
            let [which, data @ ..] = block else { continue };
            let sql = BLOCKS[*which as usize % BLOCKS.len()];
            rows(&c, sql, &[Value::blob(data).expect("memory"), Value::Int(*which as i64 / 16)]);
        }
        let query = [Value::text(all[0]).expect("memory")];
        SEARCHES.iter().for_each(|s| drop(rows(&c, s, &query)));
        run(
            &c,
            "SELECT * FROM vr; SELECT * FROM vi; SELECT * FROM oa; SELECT * FROM f WHERE f MATCH 'th* OR 1*'",
        );
        run(
            &c,
            "INSERT INTO f(f) VALUES('integrity-check'); INSERT INTO o(o) VALUES('integrity-check'); PRAGMA integrity_check",
        );
        run(
            &c,
            "INSERT INTO f(rowid, x, y) VALUES(500, 'new words', 'the row'); UPDATE f SET x = 'words' WHERE rowid = 7; DELETE FROM f WHERE rowid = 9",
        );
        run(
            &c,
            "INSERT INTO o(x) VALUES('new words'); UPDATE o SET x = 'words' WHERE docid = 7; DELETE FROM o WHERE docid = 9; DELETE FROM p WHERE rowid = 8",
        );
        run(
            &c,
            "INSERT INTO f(f, rank) VALUES('merge', -16); INSERT INTO o(o) VALUES('merge=8,2'); INSERT INTO p(p) VALUES('optimize')",
        );
        run(&c, "INSERT INTO f(f) VALUES('optimize'); INSERT INTO o(o) VALUES('optimize')");
        if all.len() == 1 {
            return;
        }
        run(
            &c,
            "INSERT INTO f(f) VALUES('rebuild'); INSERT INTO o(o) VALUES('rebuild'); DROP TABLE f; DROP TABLE o",
        );
    });
});
