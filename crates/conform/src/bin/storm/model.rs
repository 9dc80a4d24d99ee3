//! The database of a round, and what must hold in each state of it.
//!
//! Each transaction writes one row of `ledger`, with its writer and number, and changes rows of `t`; triggers keep the sums. So
//! a state is whole if the sums hold by table and by index, if each writer's numbers have no gap, if no acknowledged one is
//! missing, and if none is there that was not begun.

use crate::handle::{Handle, Result};
use crate::shared::{Shared, WRITERS};

/// The tables. `doit` takes a transaction as one statement: writer, number, kind of change, two arguments.
pub const SCHEMA: &str = "
CREATE TABLE t(id INTEGER PRIMARY KEY, k INTEGER, ver INTEGER, pad TEXT); CREATE INDEX t_k ON t(k);
CREATE TABLE ledger(w INTEGER, n INTEGER, PRIMARY KEY(w, n));
CREATE TABLE sums(rows, k, ver); INSERT INTO sums VALUES(0, 0, 0);
CREATE TABLE num(i INTEGER PRIMARY KEY);
WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 64) INSERT INTO num SELECT i FROM c;
CREATE VIEW doit AS SELECT 1 w, 1 n, 1 kind, 1 x, 1 y;
CREATE TRIGGER ti AFTER INSERT ON t BEGIN UPDATE sums SET rows = rows + 1, k = k + new.k, ver = ver + new.ver; END;
CREATE TRIGGER td AFTER DELETE ON t BEGIN UPDATE sums SET rows = rows - 1, k = k - old.k, ver = ver - old.ver; END;
CREATE TRIGGER tu AFTER UPDATE ON t BEGIN UPDATE sums SET k = k + new.k - old.k, ver = ver + new.ver - old.ver; END;
CREATE TRIGGER d INSTEAD OF INSERT ON doit BEGIN
  INSERT INTO ledger VALUES(new.w, new.n);
  INSERT INTO t(k, ver, pad) SELECT abs(new.n * 7919 + new.w * 31 + i * 17) % 1000, 0, printf('%.*c', new.y + i, 'A')
    FROM num WHERE i <= new.x AND new.kind = 0;
  UPDATE t SET ver = ver + 1, pad = printf('%.*c', length(pad) % 900 + 3, char(65 + (ver + 1) % 26))
    WHERE new.kind = 1 AND k BETWEEN new.x AND new.y;
  DELETE FROM t WHERE new.kind = 2 AND k BETWEEN new.x AND new.y;
  UPDATE t SET k = k + 1 WHERE new.kind = 3 AND k BETWEEN new.x AND new.y;
END;
INSERT INTO doit VALUES(63, 1, 0, 60, 50); INSERT INTO doit VALUES(63, 2, 0, 60, 900)";

const STATE: &str = "SELECT (SELECT count(*) FROM t NOT INDEXED), (SELECT count(*) FROM t INDEXED BY t_k), s.rows,
  (SELECT coalesce(sum(k), 0) FROM t NOT INDEXED), (SELECT coalesce(sum(k), 0) FROM t INDEXED BY t_k), s.k,
  (SELECT coalesce(sum(ver), 0) FROM t NOT INDEXED), s.ver, s.ver,
  (SELECT count(*) FROM t NOT INDEXED WHERE pad <> printf('%.*c', length(pad), char(65 + ver % 26))),
  (SELECT group_concat(w || ':' || c || ':' || m) FROM (SELECT w, count(*) c, max(n) m FROM ledger GROUP BY w))
  FROM sums s";

/// What is known of a state beforehand.
pub struct Known {
    /// These transactions are in it at least.
    at_least: Vec<i64>,
    /// A writer whose own transaction is open: it sees what it has not committed.
    pub open: Option<usize>,
}

impl Known {
    /// The state is one of now.
    pub fn of_now(shared: &Shared) -> Known {
        Known { at_least: (0..WRITERS).map(|w| shared.acknowledged(w)).collect(), open: None }
    }

    /// The state may have been held on to for some time.
    pub fn of_some_time(open: Option<usize>) -> Known {
        Known { at_least: vec![0; WRITERS], open }
    }
}

/// Reads the state; answers what is wrong with it.
pub fn check(db: &Handle, known: &Known, shared: &Shared) -> Result<Option<String>> {
    let row = db.row(STATE)?;
    let [numbers @ .., bad, ledger] = &row[..] else { return Ok(Some("no row of sums".into())) };
    for part in numbers.chunks(3) {
        if part.iter().any(|n| *n != part[0]) {
            return Ok(Some(format!("half of a transaction: {row:?}")));
        }
    }
    if bad != "0" {
        return Ok(Some(format!("{bad} torn texts")));
    }
    let mut last = [0; WRITERS];
    for entry in ledger.split(',').filter(|e| !e.is_empty()) {
        let mut parts = entry.split(':').map(|n| n.parse::<i64>().unwrap_or(-1));
        let (Some(w), Some(count), Some(max)) = (parts.next(), parts.next(), parts.next()) else {
            return Ok(Some(format!("a ledger that cannot be read: {ledger}")));
        };
        if count != max {
            return Ok(Some(format!("writer {w} has {count} of {max} transactions")));
        }
        if let Some(l) = last.get_mut(w as usize) {
            *l = max;
        }
    }
    for (w, n) in last.iter().enumerate().take(WRITERS - 1) {
        if *n < known.at_least[w] {
            return Ok(Some(format!(
                "LOST: writer {w} has {n} transactions, {} were acknowledged",
                known.at_least[w]
            )));
        }
        if known.open != Some(w) && *n > shared.begun(w) {
            return Ok(Some(format!(
                "writer {w} shows {n} transactions and has begun to commit {}",
                shared.begun(w)
            )));
        }
    }
    Ok(None)
}

/// What a writer has there; for one who does not know what became of its last transaction.
pub fn last_of(db: &Handle, writer: usize) -> Result<i64> {
    let row = db.row(&format!("SELECT coalesce(max(n), 0) FROM ledger WHERE w = {writer}"))?;
    Ok(row.first().and_then(|n| n.parse().ok()).unwrap_or(-1))
}
