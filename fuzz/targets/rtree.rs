//! Nodes of R*Trees as they come: searched, checked, changed.
//!
//! Of the input the first byte says which of the nodes 1 to 3 the rest is; a further node follows behind [`BETWEEN`].

#![no_main]

use iolite::engine::Value;
use iolite_fuzz::{in_memory, parts, rows, run, without_leak};
use libfuzzer_sys::fuzz_target;

/// What separates nodes.
const BETWEEN: &[u8] = b"\n--next node--\n";

const SETUP: &str = "CREATE VIRTUAL TABLE r USING rtree(id, x0, x1, y0, y1, +note);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150)
  INSERT INTO r SELECT i, i, i + 2, i * 7 % 50, i * 7 % 50 + 3, 'note ' || i FROM n;
CREATE VIRTUAL TABLE g USING geopoly(note); INSERT INTO g SELECT geopoly_regular(i, i, 2, 4), i FROM (SELECT 1 i UNION VALUES(5), (9))";

fuzz_target!(|input: &[u8]| {
    without_leak(|| {
        let c = in_memory(SETUP);
        c.switch(iolite::engine::Switch::Defensive, Some(false));
        for node in parts(input, BETWEEN) {
            let Some((which, data)) = node.split_first() else { continue };
            let given = [Value::blob(data).expect("memory"), Value::Int((*which % 3 + 1) as i64)];
            rows(&c, "UPDATE r_node SET data = ?1 WHERE nodeno = ?2", &given);
            rows(&c, "UPDATE g_node SET data = ?1 WHERE nodeno = ?2", &given);
            rows(
                &c,
                "SELECT rtreenode(2, ?1), rtreedepth(?1), geopoly_json(?1), geopoly_area(?1)",
                &given[..1],
            );
        }
        run(
            &c,
            "SELECT rtreecheck('r'); SELECT * FROM r; SELECT id FROM r WHERE x0 > 10 AND y1 < 40; SELECT * FROM r WHERE id = 7",
        );
        run(
            &c,
            "SELECT * FROM g WHERE geopoly_overlap(_shape, '[[0,0],[9,0],[9,9],[0,0]]'); PRAGMA integrity_check",
        );
        run(
            &c,
            "INSERT INTO r VALUES(1000, 5, 6, 7, 8, 'new'); UPDATE r SET x1 = x1 + 1 WHERE id < 9; DELETE FROM r WHERE id % 2",
        );
        run(
            &c,
            "INSERT INTO r SELECT id + 2000, x0, x1, y0, y1, note FROM r; DELETE FROM r; DROP TABLE r; DROP TABLE g",
        );
    });
});
