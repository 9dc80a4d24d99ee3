//! Whole databases as bytes and as copies: serialize, deserialize, backup.
//!
//! What always holds: an image that is opened is a private database in memory, in the place of what was open under the
//! name; the file that was open there is closed and stays as it is. A database that a backup reads or writes is neither
//! detached nor replaced: [`Backup`] counts itself at both.

use crate::connection::{Attached, Connection};
use crate::memory::open_image;
use iolite_base::{Code, Error, Result, alloc};
use iolite_btree::{Btree, OpenOptions, TxnState};
use iolite_catalog::Schema;
use std::cell::Cell;
use std::rc::Rc;

/// What [`Connection::deserialize`] makes of an image.
#[derive(Clone, Copy, Debug)]
pub struct ImageOptions {
    /// The database cannot be written.
    pub read_only: bool,
    /// How many bytes it may grow to; `None`: as many as any database in memory.
    pub limit: Option<u64>,
}

/// A copy in progress, page by page.
pub struct Backup {
    inner: iolite_btree::Backup,
    holds: [Rc<Cell<u32>>; 2],
}

impl Backup {
    /// Copies up to `pages` pages (all, if negative). `true`: the backup is complete.
    pub fn step(&mut self, pages: i32) -> Result<bool> {
        self.inner.step(pages)
    }

    /// Pages of the source at the last step.
    pub fn page_count(&self) -> u32 {
        self.inner.page_count()
    }

    /// Pages still to copy.
    pub fn remaining(&self) -> u32 {
        self.inner.remaining()
    }
}

impl Drop for Backup {
    fn drop(&mut self) {
        for h in &self.holds {
            h.set(h.get() - 1);
        }
    }
}

impl Connection {
    /// A backup of a database of `from` into the database `name` of this connection.
    pub fn backup(&self, name: &str, from: &Connection, from_name: &str) -> Result<Backup> {
        let open = |c: &Connection, name: &str| {
            let at = c.0.database_number(name)?;
            let tree = c.0.btree_of(at)?;
            Ok::<_, Error>((tree, c.0.databases.borrow()[at].backups.clone()))
        };
        let (target, holds_target) = open(self, name)?;
        let (source, holds_source) = open(from, from_name)?;
        let inner = iolite_btree::Backup::new(&target, &source)?;
        let holds = [holds_source, holds_target];
        for h in &holds {
            h.set(h.get() + 1);
        }
        Ok(Backup { inner, holds })
    }

    /// The bytes that a file with the content of a database would have, as this connection sees it now.
    pub fn serialize(&self, database: &str) -> Result<Vec<u8>> {
        let b = self.btree(database)?;
        b.check_no_other_writes()?;
        if !self.is_autocommit() {
            // It is of the state that the transaction reads from now on.
            b.begin_read()?;
        } else if b.reading(|b| Ok(b.page_count()))? == 0 {
            // One that is not written yet begins here.
            self.execute_batch("BEGIN IMMEDIATE; COMMIT")?;
        }
        b.reading(image)
    }

    /// Closes what is open under the name of a database, and opens an image as a private database in memory in its place.
    /// `SQLITE_BUSY` while the database is in use. Whether the image is one is found out when it is first read.
    pub fn deserialize(&self, database: &str, image: Vec<u8>, options: ImageOptions) -> Result<()> {
        let inner = &self.0;
        let at = inner.database_number(database)?;
        if at == 1 {
            return Err(Error::sql("the temp database cannot be replaced"));
        }
        let busy = inner.btree_if_open(at).is_some_and(|b| b.txn_state() != TxnState::None);
        if busy || inner.databases.borrow()[at].backups.get() > 0 {
            return Err(Code::Busy.into());
        }
        let most = options.limit.unwrap_or(crate::memory::most().max(image.len() as u64));
        let (tree, limit) = open_image(&inner.vfs, image, most, &OpenOptions::default(), options.read_only)?;
        inner.settle(&tree)?;
        let name = inner.databases.borrow()[at].name.clone();
        let new = Attached { size_limit: Some(limit), ..Attached::new(&name, Some(tree)) };
        let mut old = std::mem::replace(&mut inner.databases.borrow_mut()[at], new);
        Rc::make_mut(&mut inner.catalog.borrow_mut()).schemas[at] = Rc::new(Schema::new(&name));
        if at == 0 {
            // Encodings and the like of the others depend on the main database.
            (1..inner.databases.borrow().len()).for_each(|db| inner.forget_schema(db));
        }
        inner.expire_statements();
        let columns = crate::column_store::closing(&mut old.columns, old.btree.as_ref());
        let closed = old.btree.map_or(Ok(()), Btree::close);
        if let Some(c) = columns {
            c.finish();
        }
        closed
    }

    /// How large a database that was opened from an image may become, in bytes; sets it if `bytes` is given. `None` for
    /// other databases.
    pub fn size_limit(&self, database: &str, bytes: Option<u64>) -> Result<Option<u64>> {
        let at = self.0.database_number(database)?;
        let limit = self.0.databases.borrow()[at].size_limit.clone();
        let Some(limit) = limit else { return Ok(None) };
        let b = self.0.btree_of(at)?;
        Ok(Some(limit.set(bytes, b.page_count() as u64 * b.page_size() as u64)))
    }
}

fn image(b: &Btree) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    alloc::reserve(&mut out, b.page_count() as usize * b.page_size() as usize)?;
    for p in 1..=b.page_count() {
        out.extend_from_slice(&b.read_page(p)?);
    }
    Ok(out)
}
