//! Images of databases, with what may lie beside them: a log or a rollback journal. They are read, checked and written to.
//!
//! The input is the database; behind [`BETWEEN`] the log follows, behind another the journal.

#![no_main]

use iolite_fuzz::{on_disk, parts, rows, run, text, without_leak};
use libfuzzer_sys::fuzz_target;

/// What separates the files.
const BETWEEN: &[u8] = b"\n--next file--\n";

/// What is done to a table, `?` being its name.
const WORK: &str = "SELECT * FROM ?; SELECT count(*), min(rowid), max(rowid) FROM ?; INSERT INTO ? DEFAULT VALUES;
SELECT * FROM ? ORDER BY 1 DESC LIMIT 3; SELECT * FROM ? WHERE rowid = 3; UPDATE ? SET rowid = rowid + 100 WHERE rowid % 2;
DELETE FROM ? WHERE rowid % 3 = 1; ";

fuzz_target!(|input: &[u8]| {
    without_leak(|| {
        let names = ["a.db", "a.db-wal", "a.db-journal"];
        let files: Vec<_> =
            names.into_iter().zip(parts(input, BETWEEN)).filter(|f| !f.1.is_empty()).collect();
        let c = on_disk(&files);
        run(
            &c,
            "PRAGMA integrity_check; PRAGMA foreign_key_check; SELECT * FROM sqlite_schema; SELECT * FROM dbstat",
        );
        let named = rows(&c, "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') LIMIT 8", &[]);
        for name in named.unwrap_or_default() {
            let name = text(&name[0]).replace('"', "\"\"");
            run(&c, &WORK.replace('?', &format!("\"{name}\"")));
        }
        run(
            &c,
            "CREATE TABLE new_one(a, b UNIQUE); INSERT INTO new_one VALUES(1, zeroblob(3000)); ANALYZE; REINDEX",
        );
        run(
            &c,
            "PRAGMA wal_checkpoint; PRAGMA incremental_vacuum; DROP TABLE new_one; VACUUM; PRAGMA integrity_check",
        );
    });
});
