//! Incremental access to one value: read, overwritten and walked through like a file.

use super::connection::Connection;
use crate::engine;
use iolite_base::{Error, Result};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;

/// An open text or blob. Its size cannot be changed. Once its row is changed otherwise, it answers errors (`SQLITE_ABORT`).
///
/// ```
/// use std::io::{Read, Seek, SeekFrom, Write};
///
/// let db = iolite::Connection::open_in_memory()?;
/// db.execute_batch("CREATE TABLE file(content BLOB); INSERT INTO file VALUES (zeroblob(8))")?;
/// let mut blob = db.blob_open("main", "file", "content", db.last_insert_rowid(), false)?;
/// blob.write_all(b"abc").unwrap();
/// blob.seek(SeekFrom::End(-2)).unwrap();
/// blob.write_all(b"yz").unwrap();
/// assert!(blob.write_all(b"!").is_err());
/// blob.rewind().unwrap();
/// let mut all = Vec::new();
/// blob.read_to_end(&mut all).unwrap();
/// assert_eq!(all, b"abc\0\0\0yz");
/// blob.close()?;
/// # Ok::<(), iolite::Error>(())
/// ```
pub struct Blob<'conn> {
    blob: engine::Blob,
    at: u64,
    conn: PhantomData<&'conn Connection>,
}

impl Connection {
    /// Opens a text or blob of a row.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// db.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES ('text')")?;
    /// assert_eq!(db.blob_open("main", "t", "a", 1, true)?.len(), 4);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn blob_open(
        &self,
        database: &str,
        table: &str,
        column: &str,
        rowid: i64,
        read_only: bool,
    ) -> Result<Blob<'_>> {
        let blob = self.engine.blob_open(Some(database), table, column, rowid, !read_only)?;
        Ok(Blob { blob, at: 0, conn: PhantomData })
    }
}

impl Blob<'_> {
    /// How many bytes the value has.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// # db.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES ('abc')")?;
    /// assert_eq!(db.blob_open("main", "t", "a", 1, true)?.len(), 3);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.blob.len()
    }

    /// Whether it has none.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// # db.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES ('abc')")?;
    /// assert!(!db.blob_open("main", "t", "a", 1, true)?.is_empty());
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.blob.is_empty()
    }

    /// Goes to another row of the same table, and to the beginning of the value there.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// db.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES ('a'), ('bc')")?;
    /// let mut blob = db.blob_open("main", "t", "a", 1, true)?;
    /// blob.reopen(2)?;
    /// assert_eq!(blob.len(), 2);
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn reopen(&mut self, rowid: i64) -> Result<()> {
        self.at = 0;
        self.blob.reopen(rowid)
    }

    /// Closes it. What was written is committed, unless a transaction is open.
    ///
    /// ```
    /// # let db = iolite::Connection::open_in_memory()?;
    /// # db.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES ('abc')")?;
    /// use std::io::Write;
    ///
    /// let mut blob = db.blob_open("main", "t", "a", 1, false)?;
    /// blob.write_all(b"x").unwrap();
    /// blob.close()?;
    /// assert_eq!(db.query_row("SELECT a FROM t", [], |row| row.get::<_, String>(0))?, "xbc");
    /// # Ok::<(), iolite::Error>(())
    /// ```
    pub fn close(self) -> Result<()> {
        self.blob.close()
    }

    /// How many of `n` bytes there are from here on.
    fn left(&self, n: usize) -> usize {
        (self.len() as u64).saturating_sub(self.at).min(n as u64) as usize
    }
}

fn error(e: Error) -> io::Error {
    io::Error::other(e)
}

impl Read for Blob<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.left(out.len());
        if n > 0 {
            self.blob.read(self.at as usize, &mut out[..n]).map_err(error)?;
            self.at += n as u64;
        }
        Ok(n)
    }
}

impl Write for Blob<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.left(bytes.len());
        if n > 0 {
            self.blob.write(self.at as usize, &bytes[..n]).map_err(error)?;
            self.at += n as u64;
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Blob<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (from, by) = match to {
            SeekFrom::Start(n) => (n, 0),
            SeekFrom::Current(n) => (self.at, n),
            SeekFrom::End(n) => (self.len() as u64, n),
        };
        let to = from.checked_add_signed(by);
        self.at = to.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "before the beginning"))?;
        Ok(self.at)
    }
}
