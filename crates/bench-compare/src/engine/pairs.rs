//! Key-value stores behind one small face: LMDB, Berkeley DB, and the SQL engines with a two-column table.
//!
//! A store is made in one of three configurations of the workload; each insert outside of a batch commits alone. Keys are
//! 64-bit integers or 24 bytes, values 100 bytes.

use crate::native::{berkeley, lmdb};
use iolite_bench::engine::{Database, Engine, Query, Result, Value};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The configurations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Config {
    /// Nothing outlives the process.
    Transient,
    /// A file without a journal.
    Persistent,
    /// Durable transactions of 1,000 inserts, rollback journal in the SQL engines.
    Transactional,
    /// The same with a write-ahead log in the SQL engines.
    TransactionalWal,
}

/// A store.
pub trait Store {
    /// Begins a batch.
    fn begin(&mut self) -> Result<()>;
    /// Commits it.
    fn commit(&mut self) -> Result<()>;
    /// Inserts a pair.
    fn insert(&mut self, key: u64, value: &[u8]) -> Result<()>;
    /// Reads a value; answers its length, if it is there.
    fn select(&mut self, key: u64) -> Result<Option<u64>>;
}

/// A key of 24 bytes.
pub fn long_key(key: u64) -> [u8; 24] {
    let mut out = [b'k'; 24];
    out[..16].copy_from_slice(format!("{key:016x}").as_bytes());
    out
}

/// LMDB, if it is there.
pub fn lmdb() -> Result<&'static lmdb::Api> {
    let names = named("IOLITE_BENCH_LMDB", &["liblmdb.so.0", "liblmdb.so"]);
    lmdb::Api::load(&names)
}

/// Berkeley DB, if it is there.
pub fn berkeley() -> Result<&'static berkeley::Api> {
    let names = named("IOLITE_BENCH_BERKELEY", &["libdb-5.3.so"]);
    berkeley::Api::load(&names)
}

fn named(variable: &str, names: &[&str]) -> Vec<String> {
    let mut out: Vec<String> = std::env::var(variable).ok().into_iter().collect();
    for n in names {
        let kept = super::cache().join("usr/lib/x86_64-linux-gnu").join(n);
        out.push(kept.to_string_lossy().into_owned());
        out.push(n.to_string());
    }
    out
}

/// A SQL engine as a store. Statements borrow the database, so both are given by the caller.
pub struct SqlStore<'d> {
    db: &'d dyn Database,
    insert: Box<dyn Query + 'd>,
    select: Box<dyn Query + 'd>,
    long: bool,
}

/// The statements that open a SQL engine's store.
pub fn sql_settings(c: Config, long: bool) -> (&'static str, &'static str) {
    let settings = match c {
        Config::Transient => "PRAGMA journal_mode=OFF; PRAGMA cache_size=-65536;",
        Config::Persistent => {
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=-65536;"
        }
        Config::Transactional => {
            "PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL; PRAGMA cache_size=-65536;"
        }
        Config::TransactionalWal => {
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-65536;"
        }
    };
    let table = if long {
        "CREATE TABLE kv(k BLOB PRIMARY KEY, v BLOB)"
    } else {
        "CREATE TABLE kv(k INTEGER PRIMARY KEY, v BLOB)"
    };
    (settings, table)
}

/// Opens a SQL engine's database for a configuration.
pub fn sql_open(e: &dyn Engine, path: &Path, c: Config, long: bool) -> Result<Box<dyn Database>> {
    let db = e.open(if c == Config::Transient { Path::new("") } else { path })?;
    let (settings, table) = sql_settings(c, long);
    db.batch(settings)?;
    db.batch(table)?;
    Ok(db)
}

impl<'d> SqlStore<'d> {
    /// A store over a database that [`sql_open`] made.
    pub fn new(db: &'d dyn Database, long: bool) -> Result<SqlStore<'d>> {
        let insert = db.prepare("INSERT INTO kv VALUES(?1, ?2)")?;
        let select = db.prepare("SELECT v FROM kv WHERE k = ?1")?;
        Ok(SqlStore { db, insert, select, long })
    }

    fn key(&self, key: u64) -> Value {
        if self.long { Value::Blob(long_key(key).to_vec()) } else { Value::Int(key as i64) }
    }
}

impl Store for SqlStore<'_> {
    fn begin(&mut self) -> Result<()> {
        self.db.batch("BEGIN")
    }

    fn commit(&mut self) -> Result<()> {
        self.db.batch("COMMIT")
    }

    fn insert(&mut self, key: u64, value: &[u8]) -> Result<()> {
        let k = self.key(key);
        self.insert.run(&[k, Value::Blob(value.to_vec())]).map(|_| ())
    }

    fn select(&mut self, key: u64) -> Result<Option<u64>> {
        let k = self.key(key);
        self.select.run(&[k]).map(|n| (n > 0).then_some(n as u64))
    }
}

enum LmdbTxn {
    None,
    Read(lmdb::Txn),
    Write(lmdb::Txn),
}

/// LMDB as a store.
pub struct LmdbStore {
    txn: LmdbTxn,
    env: Rc<lmdb::Env>,
    long: bool,
}

impl LmdbStore {
    /// Opens one; without syncs unless transactional.
    pub fn open(path: &Path, c: Config, long: bool) -> Result<LmdbStore> {
        let durable = matches!(c, Config::Transactional | Config::TransactionalWal);
        let flags = if durable { 0 } else { lmdb::NO_SYNC };
        let env = lmdb()?.open(path, flags, if long { 0 } else { lmdb::INTEGER_KEY })?;
        Ok(LmdbStore { txn: LmdbTxn::None, env, long })
    }
}

fn lmdb_key(long: bool, key: u64) -> ([u8; 24], usize) {
    if long {
        return (long_key(key), 24);
    }
    let mut k = [0; 24];
    k[..8].copy_from_slice(&key.to_ne_bytes());
    (k, 8)
}

impl Store for LmdbStore {
    fn begin(&mut self) -> Result<()> {
        self.txn = LmdbTxn::None;
        self.txn = LmdbTxn::Write(self.env.begin(false)?);
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.txn, LmdbTxn::None) {
            LmdbTxn::Write(t) => t.commit(),
            _ => Ok(()),
        }
    }

    fn insert(&mut self, key: u64, value: &[u8]) -> Result<()> {
        let (k, n) = lmdb_key(self.long, key);
        if let LmdbTxn::Write(t) = &mut self.txn {
            return t.put(&k[..n], value);
        }
        self.txn = LmdbTxn::None;
        let mut t = self.env.begin(false)?;
        t.put(&k[..n], value)?;
        t.commit()
    }

    /// Each read is a transaction of its own, renewed as LMDB's documentation advises.
    fn select(&mut self, key: u64) -> Result<Option<u64>> {
        let (k, n) = lmdb_key(self.long, key);
        match &mut self.txn {
            LmdbTxn::Read(t) => t.renew()?,
            _ => self.txn = LmdbTxn::Read(self.env.begin(true)?),
        }
        let (LmdbTxn::Read(t) | LmdbTxn::Write(t)) = &self.txn else { return Ok(None) };
        Ok(t.get(&k[..n])?.map(|v| v.len() as u64))
    }
}

/// Berkeley DB as a store.
pub struct BerkeleyStore {
    db: berkeley::Db,
    batch: Option<berkeley::Txn>,
    long: bool,
}

impl BerkeleyStore {
    /// Opens one in a folder of its own.
    pub fn open(folder: &Path, c: Config, long: bool) -> Result<BerkeleyStore> {
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir_all(folder)?;
        let file: PathBuf = folder.join("kv.db");
        let file = file.to_string_lossy();
        // As much cache as the SQL engines are given.
        let cache = 64 << 20;
        let api = berkeley()?;
        let db = match c {
            Config::Transient => api.open(None, None, cache)?,
            Config::Persistent => api.open(None, Some(&file), cache)?,
            _ => api.open(Some(folder), Some("kv.db"), cache)?,
        };
        Ok(BerkeleyStore { db, batch: None, long })
    }

    fn key(&self, key: u64) -> ([u8; 24], usize) {
        if self.long {
            return (long_key(key), 24);
        }
        let mut k = [0; 24];
        k[..8].copy_from_slice(&key.to_be_bytes());
        (k, 8)
    }
}

impl Store for BerkeleyStore {
    fn begin(&mut self) -> Result<()> {
        self.batch = Some(self.db.begin()?);
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.batch.take().map_or(Ok(()), |t| t.commit())
    }

    fn insert(&mut self, key: u64, value: &[u8]) -> Result<()> {
        let (k, n) = self.key(key);
        match &self.batch {
            Some(t) => self.db.put(t, &k[..n], value),
            None => {
                let t = self.db.begin()?;
                self.db.put(&t, &k[..n], value)?;
                t.commit()
            }
        }
    }

    fn select(&mut self, key: u64) -> Result<Option<u64>> {
        let (k, n) = self.key(key);
        let mut into = [0u8; 128];
        let none = berkeley::Txn::none();
        Ok(self.db.get(&none, &k[..n], &mut into)?.map(|n| n as u64))
    }
}
