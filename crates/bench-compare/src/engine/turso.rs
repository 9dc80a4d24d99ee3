//! Turso behind the face: the C face of `bridges/turso`, which `bench-compare fetch` builds.
//!
//! Pragmas that only iolite knows are passed over, as stock SQLite does by itself. A journal mode or a level of durability
//! that Turso does not take is an error, so that no figure stands under a setting that was not in force.

use crate::native::turso::{Api, Connection, Statement};
use iolite_bench::engine::{Database, Engine, Query, Result, Value, show};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Turso.
pub struct Turso(&'static Api);

struct Db(Connection);

struct Prepared<'d>(Statement<'d>);

/// The library's name.
pub const LIBRARY: &str = "libiolite_turso.so";

/// Pragmas of iolite. `wal_checkpoint(NOOP)` waits for a checkpoint that goes on beside; Turso makes none.
const PASSED_OVER: &[&str] =
    &["analytics", "checkpoint_thread", "plan_cache", "threads", "wal_checkpoint(NOOP)"];

fn places() -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> =
        std::env::var_os("IOLITE_BENCH_TURSO").map(PathBuf::from).into_iter().collect();
    out.push(super::cache().join(LIBRARY));
    out.push(LIBRARY.into());
    out
}

fn load(places: &[PathBuf]) -> std::result::Result<&'static Api, String> {
    let mut why = Vec::new();
    for p in places {
        match Api::load(p) {
            Ok(a) => return Ok(a),
            Err(e) => why.push(e.message),
        }
    }
    Err(why.join("; "))
}

impl Turso {
    /// Finds the library.
    pub fn find() -> Result<Turso> {
        static FOUND: OnceLock<std::result::Result<&'static Api, String>> = OnceLock::new();
        FOUND.get_or_init(|| load(&places())).clone().map(Turso).map_err(Into::into)
    }
}

impl Engine for Turso {
    fn name(&self) -> &'static str {
        "turso"
    }

    fn version(&self) -> String {
        format!("Turso {}", self.0.version())
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Database>> {
        Ok(Box::new(Db(self.0.connect(&path.to_string_lossy())?)))
    }
}

/// The pragma that a statement is, with what follows its name.
fn pragma(statement: &str) -> Option<(&str, &str)> {
    let s = statement.trim();
    let (word, rest) = s.split_at_checked(6)?;
    if !word.eq_ignore_ascii_case("pragma") {
        return None;
    }
    let rest = rest.trim();
    let end = rest.find(['=', '(']).unwrap_or(rest.len());
    Some((&rest[..end], &rest[end..]))
}

/// Whether a statement is a pragma that is passed over.
fn passed_over(statement: &str) -> bool {
    pragma(statement).is_some_and(|(name, rest)| {
        PASSED_OVER.iter().any(|p| *p == name || p.strip_prefix(name) == Some(rest))
    })
}

impl Db {
    /// Fails if a setting that was asked for is not in force.
    fn in_force(&self, statement: &str) -> Result<()> {
        let Some((name @ ("journal_mode" | "synchronous"), value)) = pragma(statement) else { return Ok(()) };
        let wanted = value.trim_start_matches('=').to_lowercase();
        let level = ["off", "normal", "full"].iter().position(|l| *l == wanted);
        let found = self.rows(&format!("PRAGMA {name}"))?;
        let found = found.first().map_or(String::new(), |r| show(r));
        if found.eq_ignore_ascii_case(&wanted) || level.is_some_and(|l| found == l.to_string()) {
            Ok(())
        } else {
            Err(format!("{name} is {found}, not {wanted}").into())
        }
    }
}

impl Database for Db {
    fn batch(&self, sql: &str) -> Result<()> {
        // Texts with pragmas have no quotes.
        if !sql.contains("PRAGMA") {
            return self.0.execute(sql).map_err(|e| e.at(sql));
        }
        for s in sql.split(';').filter(|s| !s.trim().is_empty() && !passed_over(s)) {
            self.0.execute(s).map_err(|e| e.at(s))?;
            self.in_force(s)?;
        }
        Ok(())
    }

    fn prepare<'d>(&'d self, sql: &str) -> Result<Box<dyn Query + 'd>> {
        Ok(Box::new(Prepared(self.0.prepare(sql).map_err(|e| e.at(sql))?)))
    }

    fn busy_timeout(&self, ms: u32) -> Result<()> {
        self.batch(&format!("PRAGMA busy_timeout={ms}"))
    }
}

impl Query for Prepared<'_> {
    fn run(&mut self, params: &[Value]) -> Result<i64> {
        self.0.run(params)
    }

    fn rows(&mut self, params: &[Value]) -> Result<Vec<Vec<Value>>> {
        self.0.rows(params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate;
    use iolite_bench::engine::{Stock, int, text};

    #[test]
    fn an_absent_library_is_named() {
        let e = load(&["/nowhere/libiolite_turso.so".into()]).err().unwrap();
        assert!(e.starts_with("absent: tried /nowhere/libiolite_turso.so ("), "{e}");
    }

    #[test]
    fn pragmas_of_iolite_are_passed_over() {
        for s in ["PRAGMA analytics=off", " pragma checkpoint_thread=off", "PRAGMA wal_checkpoint(NOOP)"] {
            assert!(passed_over(s), "{s}");
        }
        for s in [
            "PRAGMA journal_mode=WAL",
            "PRAGMA wal_checkpoint(TRUNCATE)",
            "PRAGMA wal_checkpoint",
            "SELECT 1",
        ] {
            assert!(!passed_over(s), "{s}");
        }
    }

    /// Where the library is there: the gate sees the same values from both, and a journal that Turso has not is refused.
    #[test]
    fn answers_pass_the_gate() {
        let Ok(turso) = Turso::find() else { return };
        let path = std::env::temp_dir().join(format!("iolite-turso-{}.db", std::process::id()));
        iolite_bench::cases::remove(&path);
        let mut all = Vec::new();
        for (name, db) in
            [("stock", Stock.open(Path::new(":memory:")).unwrap()), ("turso", turso.open(&path).unwrap())]
        {
            db.batch("CREATE TABLE t(a INTEGER PRIMARY KEY, b, c TEXT UNIQUE); INSERT INTO t VALUES(1, 'x;''', 'c')")
                .unwrap();
            let mut q = db.prepare("INSERT INTO t VALUES(?1, ?2, ?3)").unwrap();
            for (i, v) in
                [Value::Null, Value::Real(1.5), Value::Blob(vec![0, 255]), text("é")].into_iter().enumerate()
            {
                q.run(&[int(i as i64 + 2), v, text(i.to_string())]).unwrap();
            }
            let e = q.run(&[int(9), Value::Null, text("c")]).unwrap_err();
            assert_eq!(e.kind, iolite_bench::engine::Kind::Constraint, "{name}: {e}");
            drop(q);
            all.push((name, db.rows("SELECT a, b, c, typeof(b), length(b) FROM t").unwrap()));
            if name == "turso" {
                assert!(db.batch("PRAGMA journal_mode=DELETE").is_err());
                db.batch("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA analytics=off").unwrap();
            }
        }
        iolite_bench::cases::remove(&path);
        gate::equal("values", &all, false).unwrap();
        all[1].1[0][0] = int(2);
        assert!(gate::equal("values", &all, false).is_err());
    }
}
