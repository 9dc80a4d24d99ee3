//! What the tests share: scratch directories, records, the sqlite3 shell.

use iolite_base::{Pgno, varint};
use iolite_btree::{Btree, InsertAt, JournalMode, OpenOptions, TreeKind};
use iolite_os::{UnixVfs, Vfs};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A directory that is removed with its content.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        static N: AtomicU32 = AtomicU32::new(0);
        let name = format!("iolite-btree-{}-{}", std::process::id(), N.fetch_add(1, Relaxed));
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn vfs() -> Arc<dyn Vfs> {
    Arc::new(UnixVfs::new())
}

pub fn open(path: &str, opts: &OpenOptions) -> Btree {
    Btree::open(vfs(), path, opts).unwrap()
}

/// One column of a record.
pub enum Col<'a> {
    Int(i64),
    Text(&'a str),
    Blob(&'a [u8]),
}

/// A record in the file format.
pub fn record(cols: &[Col]) -> Vec<u8> {
    let mut types = Vec::new();
    let mut body = Vec::new();
    for c in cols {
        match c {
            Col::Int(v) => {
                varint::push(&mut types, 6);
                body.extend_from_slice(&v.to_be_bytes());
            }
            Col::Text(s) => {
                varint::push(&mut types, 13 + 2 * s.len() as u64);
                body.extend_from_slice(s.as_bytes());
            }
            Col::Blob(b) => {
                varint::push(&mut types, 12 + 2 * b.len() as u64);
                body.extend_from_slice(b);
            }
        }
    }
    let mut out = Vec::new();
    let len = types.len() + 1;
    varint::push(&mut out, if len < 128 { len } else { len + 1 } as u64);
    out.extend_from_slice(&types);
    out.extend_from_slice(&body);
    out
}

/// Puts a table or index into the schema, so that stock SQLite sees it.
pub fn declare(bt: &Btree, kind: &str, name: &str, table: &str, root: Pgno, sql: &str) {
    let mut c = bt.cursor(1, TreeKind::Table, true).unwrap();
    let rowid = if c.last().unwrap() { c.rowid() + 1 } else { 1 };
    let rec =
        record(&[Col::Text(kind), Col::Text(name), Col::Text(table), Col::Int(root as i64), Col::Text(sql)]);
    c.insert_row(rowid, &rec, 0, InsertAt::Append).unwrap();
    let cookie = bt.meta(1).unwrap();
    bt.set_meta(1, cookie + 1).unwrap();
    bt.set_meta(2, 4).unwrap();
    bt.set_meta(5, 1).unwrap();
}

/// Turns a new database to WAL mode and makes its only tree, as a table of stock SQLite's.
pub fn logged_tree(bt: &Btree) -> Pgno {
    bt.set_journal_mode(JournalMode::Wal).unwrap();
    bt.begin_write(false).unwrap();
    let root = bt.create_tree(TreeKind::Table).unwrap();
    declare(bt, "table", "t", "t", root, "CREATE TABLE t(a)");
    bt.commit().unwrap();
    root
}

/// How many entries a tree has now.
pub fn count(bt: &Btree, root: Pgno) -> u64 {
    bt.begin_read().unwrap();
    let n = bt.cursor(root, TreeKind::Table, false).unwrap().count().unwrap();
    bt.end_read();
    n
}

/// The answer of the sqlite3 shell; `None` if there is none on this machine.
pub fn shell(path: &str, sql: &str) -> Option<String> {
    let out = Command::new("sqlite3").arg("-batch").arg(path).arg(sql).output().ok()?;
    let text = String::from_utf8_lossy(&out.stdout).trim().to_owned();
    let err = String::from_utf8_lossy(&out.stderr).trim().to_owned();
    Some(if err.is_empty() { text } else { format!("{text}\n{err}") })
}

/// Stock SQLite finds nothing wrong with the file.
pub fn check_with_shell(path: &str) {
    if let Some(said) = shell(path, "PRAGMA integrity_check") {
        assert_eq!(said, "ok", "{path}");
    }
}

/// Numbers that look random and are the same each time.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.next() as u8).collect()
    }
}
