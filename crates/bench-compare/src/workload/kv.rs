//! SQLite as a key-value database: N inserts in random order, then N reads in the same order, in three configurations, beside
//! Berkeley DB and LMDB. In the first two each insert commits alone; in the last a thousand share a transaction.

use super::place;
use crate::Options;
use crate::engine::pairs::{
    BerkeleyStore, Config, LmdbStore, SqlStore, Store, berkeley, lmdb, sql_open, sql_settings,
};
use crate::envelope::Run;
use crate::stats;
use iolite_bench::cases;
use iolite_bench::engine::{Result, find};
use iolite_bench::random::mix;
use std::time::Instant;

const CONFIGS: &[(Config, &str, &str)] = &[
    (Config::Transient, "transient", "nothing"),
    (Config::Persistent, "persistent", "nothing after a crash"),
    (Config::Transactional, "transactional", "each transaction"),
    (Config::TransactionalWal, "transactional, log", "each transaction"),
];

/// Measures.
pub fn run(o: &Options, run: &mut Run) -> Result<()> {
    let sizes: &[u64] = if o.has("small") { &[5_000, 50_000] } else { &[5_000, 50_000, 500_000] };
    let mut engines = vec!["stock", "iolite"];
    engines.extend(berkeley().is_ok().then_some("berkeley"));
    engines.extend(lmdb().is_ok().then_some("lmdb"));
    // `--engine NAME`, `--only TEXT` (part of a cell's name): for a profiler.
    engines.retain(|e| o.text("engine").is_none_or(|only| only == *e));
    for (config, label, keeps) in CONFIGS {
        for long in [false, true] {
            for e in &engines {
                let text = match *e {
                    "berkeley" => match config {
                        Config::Transient => "no environment, no file name, 64 MB cache".to_string(),
                        Config::Persistent => "no environment, 64 MB cache".into(),
                        _ => "environment with lock, log, memory pool, transactions; 64 MB cache".into(),
                    },
                    "lmdb" => match config {
                        Config::Transient | Config::Persistent => "MDB_NOSYNC".into(),
                        _ => "defaults".into(),
                    },
                    _ => {
                        let (settings, table) = sql_settings(*config, long);
                        format!("{settings} {table}")
                    }
                };
                run.set(label, e, &text, keeps);
            }
            for n in sizes {
                // Stock's autocommit into a transient database costs more with each page; it is measured once at most.
                let slow = *config == Config::Transient && *n > 50_000;
                let mut engines = engines.clone();
                if slow && !o.has("slow") {
                    run.missing.push(format!(
                        "{label}, {n}, {} keys: stock needs minutes; ask for it with --slow",
                        if long { "24-byte" } else { "64-bit" }
                    ));
                    engines.retain(|e| *e != "stock");
                }
                let turns = if slow && o.has("slow") { 1 } else { o.number("repeat", 5, 3) };
                let what = format!("{label}, {} keys, {n}", if long { "24-byte" } else { "64-bit" });
                if o.text("only").is_some_and(|only| !what.starts_with(only)) {
                    continue;
                }
                if let Err(e) = one(run, &engines, *config, long, *n, turns, &what) {
                    run.failures.push(format!("{what}: {e}"));
                }
            }
        }
    }
    Ok(())
}

struct Times {
    insert: f64,
    select: f64,
    /// Microseconds an insert of the last tenth.
    last: f64,
}

fn work(store: &mut dyn Store, config: Config, n: u64) -> Result<Times> {
    let batch = matches!(config, Config::Transactional | Config::TransactionalWal);
    let key = |i: u64| mix(i) >> 1;
    let mut value = [0u8; 100];
    let start = Instant::now();
    let mut last = start;
    for i in 0..n {
        if i == n - n / 10 {
            last = Instant::now();
        }
        if batch && i % 1_000 == 0 {
            store.begin()?;
        }
        let x = mix(i ^ 0x5555);
        value.chunks_mut(8).for_each(|c| c.copy_from_slice(&x.to_le_bytes()[..c.len()]));
        store.insert(key(i), &value)?;
        if batch && (i % 1_000 == 999 || i + 1 == n) {
            store.commit()?;
        }
    }
    let (insert, tail) = (start.elapsed().as_secs_f64(), last.elapsed().as_secs_f64());
    let start = Instant::now();
    let mut sum = 0;
    for i in 0..n {
        sum += store.select(key(i))?.ok_or_else(|| format!("key {i} is missing"))?;
    }
    let select = start.elapsed().as_secs_f64();
    if sum != n * 100 {
        return Err(format!("values of {sum} bytes, not {}", n * 100).into());
    }
    if store.select(key(n) ^ 1)?.is_some() {
        return Err("a key that was never inserted is found".into());
    }
    let us = 1e6 / n as f64;
    Ok(Times { insert: insert * us, select: select * us, last: tail * 1e6 / (n / 10) as f64 })
}

fn once(engine: &str, config: Config, long: bool, n: u64) -> Result<Times> {
    let path = place(&format!("kv-{engine}"))?;
    let done = match engine {
        "lmdb" => {
            let t = work(&mut LmdbStore::open(&path, config, long)?, config, n);
            let _ = std::fs::remove_file(format!("{}-lock", path.display()));
            t
        }
        "berkeley" => {
            let folder = path.with_extension("folder");
            let t = work(&mut BerkeleyStore::open(&folder, config, long)?, config, n);
            let _ = std::fs::remove_dir_all(folder);
            t
        }
        _ => {
            let db = sql_open(&*find(engine)?, &path, config, long)?;
            work(&mut SqlStore::new(&*db, long)?, config, n)
        }
    };
    cases::remove(&path);
    done.map_err(|e| e.at(engine))
}

fn one(
    run: &mut Run,
    engines: &[&str],
    config: Config,
    long: bool,
    n: u64,
    turns: usize,
    what: &str,
) -> Result<()> {
    let mut select = vec![Vec::new(); engines.len()];
    let mut last = vec![Vec::new(); engines.len()];
    let insert = super::in_turn_apart(engines.len(), turns, |k, _| {
        let t = once(engines[k], config, long, n)?;
        select[k].push(t.select);
        last[k].push(t.last);
        Ok(t.insert)
    })?;
    run.gates.push(format!("{what}: all keys found, with values of their length"));
    for (k, e) in engines.iter().enumerate() {
        if config == Config::Transient {
            let r = stats::summary(&last[k]).median / stats::summary(&insert[k]).median;
            eprintln!("  last tenth of inserts costs {r:.2} times the mean");
        }
        run.less("insert", what, e, "us", insert[k].clone());
        run.less("select", what, e, "us", std::mem::take(&mut select[k]));
        run.less("insert, last tenth", what, e, "us", std::mem::take(&mut last[k]));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Forgetful(std::collections::HashMap<u64, usize>);

    impl Store for Forgetful {
        fn begin(&mut self) -> Result<()> {
            Ok(())
        }

        fn commit(&mut self) -> Result<()> {
            Ok(())
        }

        fn insert(&mut self, key: u64, value: &[u8]) -> Result<()> {
            if self.0.len() != 50 {
                self.0.insert(key, value.len());
            }
            Ok(())
        }

        fn select(&mut self, key: u64) -> Result<Option<u64>> {
            Ok(self.0.get(&key).map(|n| *n as u64))
        }
    }

    #[test]
    fn a_lost_key_is_noticed() {
        assert!(work(&mut Forgetful(Default::default()), Config::Transient, 40).is_ok());
        assert!(work(&mut Forgetful(Default::default()), Config::Transient, 100).is_err());
    }
}
