//! Files with a few bytes changed: `PRAGMA integrity_check` and `quick_check` find something wrong where stock SQLite does,
//! and nothing where it does not. `IOLITE_DAMAGES=N` tries N files.

use iolite_stock as stock;
use std::path::Path;

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

const SCHEMA: &str = "
PRAGMA page_size = 512;
CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT NOT NULL, c INT, d REAL, e BLOB);
CREATE INDEX tb ON t(b);
CREATE INDEX tc ON t(c, d) WHERE c > 5;
CREATE UNIQUE INDEX te ON t(c + a * 100, b COLLATE nocase);
CREATE TABLE w(k TEXT, n INT, v, PRIMARY KEY(k, n DESC)) WITHOUT ROWID;
CREATE INDEX wv ON w(v);
CREATE TABLE alone(k INT, n TEXT, PRIMARY KEY(k, n)) WITHOUT ROWID;
CREATE TABLE s(x INT, y TEXT, z ANY, g INT AS (x * 2), UNIQUE(y)) STRICT;
CREATE INDEX sg ON s(g);
CREATE TABLE plain(p, q CHECK(q <> 1000));
WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
  INSERT INTO t SELECT i, 'text ' || i % 7, i % 20, i / 3.0, CASE WHEN i % 15 = 0 THEN zeroblob(900) ELSE NULL END FROM n;
INSERT INTO w SELECT 'k' || a % 9, a, b FROM t;
INSERT INTO alone SELECT a % 13, 'n' || a FROM t;
INSERT INTO s SELECT a, 'y' || a, CASE a % 3 WHEN 0 THEN d ELSE b END FROM t WHERE a < 40;
INSERT INTO plain SELECT a + 3, d FROM t;
DELETE FROM t WHERE a BETWEEN 20 AND 30;
DROP TABLE IF EXISTS none;";

/// `Ok`: what was said; `Err`: the error.
type Said = Result<Vec<String>, String>;

fn of_stock(path: &str, sql: &str) -> Said {
    let c = stock::Connection::open(path).map_err(|e| e.message)?;
    let rows = c.query(sql).map_err(|e| e.message)?;
    Ok(rows
        .iter()
        .map(|r| match &r[0] {
            stock::Value::Text(b) => String::from_utf8_lossy(b).into_owned(),
            other => format!("{other:?}"),
        })
        .collect())
}

fn of_ours(path: &str, sql: &str) -> Said {
    let c = iolite::engine::Connection::open(path).map_err(|e| e.message().to_string())?;
    let rows = c.query(sql, &[]).map_err(|e| e.message().to_string())?;
    Ok(rows.iter().map(|r| r[0].to_string_lossy()).collect())
}

fn is_ok(s: &Said) -> bool {
    s.as_ref().is_ok_and(|l| l.len() == 1 && l[0] == "ok")
}

fn damaged(base: &[u8], seed: u64) -> Vec<u8> {
    let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut file = base.to_vec();
    for _ in 0..1 + rng.below(3) {
        // The pages of the schema are left alone: what they say may be anything.
        let at = loop {
            let at = rng.below(file.len() as u64) as usize;
            let page = &base[at / 512 * 512..at / 512 * 512 + 512];
            let schema = page.windows(7).any(|w| w == b"CREATE " || w == b"sqlite_");
            if !(100..512).contains(&at) && !(16..24).contains(&at) && !schema {
                break at;
            }
        };
        file[at] = match rng.below(4) {
            0 => file[at].wrapping_add(1),
            1 => file[at] ^ 1 << rng.below(8),
            2 => 0,
            _ => rng.below(256) as u8,
        };
    }
    file
}

#[test]
fn damage_is_seen_where_stock_sees_it() {
    let dir = std::env::temp_dir().join(format!("iolite-damage-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let path = |n: &str| dir.join(n).to_string_lossy().into_owned();
    let base_at = path("base.db");
    stock::Connection::open(&base_at).and_then(|c| c.execute_batch(SCHEMA)).expect("stock makes the file");
    let base = std::fs::read(Path::new(&base_at)).expect("the file is there");
    let n: u64 = std::env::var("IOLITE_DAMAGES").ok().and_then(|v| v.parse().ok()).unwrap_or(400);
    let mut differ = Vec::new();
    let (mut errors, mut stricter) = (0, 0);
    let mut found = 0;
    for seed in 0..n {
        let file = damaged(&base, seed);
        for sql in ["PRAGMA integrity_check", "PRAGMA quick_check"] {
            let (a, b) = (path("stock.db"), path("ours.db"));
            std::fs::write(&a, &file).expect("a file");
            std::fs::write(&b, &file).expect("a file");
            let (want, got) = (of_stock(&a, sql), of_ours(&b, sql));
            found += !is_ok(&want) as usize;
            errors += (want.is_ok() && got.is_err()) as usize;
            // A record whose header has no length, or ends with its body amiss, reads as NULLs in stock here and there.
            if is_ok(&want) && got.as_ref().is_ok_and(|l| *l == ["database disk image is malformed"]) {
                stricter += 1;
                continue;
            }
            if is_ok(&want) != is_ok(&got) || want.is_ok() && got.is_err() {
                differ.push(format!("seed {seed} {sql}\nstock: {want:?}\nours:  {got:?}"));
            }
        }
    }
    let _ = std::fs::remove_dir_all(&dir);
    assert!(found > n as usize / 4, "hardly any damage: {found}");
    assert!(stricter <= n / 100, "{stricter} records of {n} files that only stock can read");
    assert!(differ.is_empty(), "{} of {n} differ, {errors} errors:\n{}", differ.len(), differ.join("\n"));
}
