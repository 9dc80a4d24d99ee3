//! Texts of statements, on a small database that has a table of each kind. Behind it the database is whole.

#![no_main]

use iolite_fuzz::{in_memory, integrity, run, without_leak};
use libfuzzer_sys::fuzz_target;

const SETUP: &str = "
CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT COLLATE NOCASE, c REAL, d, UNIQUE(b, c));
CREATE TABLE w(k TEXT, n INTEGER, v BLOB, PRIMARY KEY(k, n DESC)) WITHOUT ROWID;
CREATE TABLE s(a INT NOT NULL CHECK(a > 0), b TEXT, g TEXT AS (a || b) STORED, FOREIGN KEY(a) REFERENCES t) STRICT;
CREATE INDEX t_d ON t(d, lower(b)) WHERE c IS NOT NULL;
CREATE VIEW v AS SELECT t.a, b, n FROM t LEFT JOIN w ON w.k = t.b;
CREATE TRIGGER t_new AFTER INSERT ON t BEGIN INSERT INTO w VALUES(new.b, new.a, new.d) ON CONFLICT DO NOTHING; END;
CREATE TRIGGER v_new INSTEAD OF INSERT ON v BEGIN INSERT INTO t(a, b) VALUES(new.a, new.b); END;
CREATE VIRTUAL TABLE f USING fts5(x, y, prefix = 2);
CREATE VIRTUAL TABLE r USING rtree(id, x0, x1, +note);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30)
  INSERT INTO t SELECT i, 'row ' || i, i / 3.0, CASE i % 3 WHEN 0 THEN x'00ff' WHEN 1 THEN i ELSE NULL END FROM n;
INSERT INTO s(a, b) SELECT a, b FROM t WHERE a < 9;
INSERT INTO f SELECT b, c FROM t;
INSERT INTO r SELECT a, c, c + 1, b FROM t;
";

/// Behind these, `integrity_check` may rightly complain.
const EXCUSES: [&str; 4] = ["ignore_check", "case_sensitive", "journal_mode", "integrity"];

fuzz_target!(|input: &[u8]| {
    let Ok(sql) = std::str::from_utf8(input) else { return };
    without_leak(|| {
        let c = in_memory(SETUP);
        run(&c, sql);
        let lower = sql.to_lowercase();
        if !EXCUSES.iter().any(|e| lower.contains(e))
            && let Some(found) = integrity(&c)
        {
            assert_eq!(found, "ok");
        }
    });
});
