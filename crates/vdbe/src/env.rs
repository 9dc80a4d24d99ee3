use iolite_base::Pgno;
use iolite_base::Result;
use iolite_btree::Btree;
use iolite_bytecode::TableLock;
use iolite_ext::{Host, RowChange, VirtualTable};
use iolite_value::Value;
use std::rc::Rc;

/// A change of a row that is about to be made. Rows are a rowid, 0 where there is none, and the fields of the record.
pub struct RowBefore {
    /// What is done.
    pub change: RowChange,
    /// The database's number.
    pub db: usize,
    /// The root page of the tree that holds the table's rows.
    pub root: Pgno,
    /// How many programs wait for the one that does it: triggers.
    pub depth: usize,
    /// The row as it is; none for an INSERT.
    pub old: Option<(i64, Vec<Value>)>,
    /// The row as it will be; none for a DELETE.
    pub new: Option<(i64, Vec<Value>)>,
}

/// What a running program asks of its connection.
pub trait Env: Host {
    /// A trigger's statement begins: who traces statements is told its text, a comment.
    fn trace(&self, text: &str);
    /// `SQLITE_ABORT_ROLLBACK` once what the statement changed was taken back under it.
    fn go_on(&self) -> Result<()>;
    /// A database's trees.
    fn btree(&self, db: usize) -> Result<Btree>;
    /// A private transient database.
    fn transient(&self) -> Result<Btree>;
    /// A temporary file, gone when it is closed.
    fn temporary_file(&self) -> Result<Box<dyn iolite_os::File>>;
    /// Bytes that a sorter may hold before it writes to a temporary file; `usize::MAX`: it never does.
    fn sort_memory(&self) -> usize;
    /// Begins a transaction (`write`: 0 read, 1 write, 2 exclusive) and checks that the schema is still the one the
    /// program was compiled for: `SQLITE_SCHEMA` if not.
    fn begin(&self, db: usize, write: i32, cookie: u32, generation: u64) -> Result<()>;
    /// Locks a table against others who share the cache, until the transaction ends.
    fn lock_table(&self, lock: &TableLock) -> Result<()>;
    /// Sets a meta value; a changed schema cookie is the catalog's, too.
    fn set_meta(&self, db: usize, i: usize, v: u32) -> Result<()>;
    /// Reads the schema rows about a table into the catalog; all rows if `None`.
    fn parse_schema(&self, db: usize, table: Option<&str>) -> Result<()>;
    /// Removes a table from the catalog.
    fn drop_table(&self, db: usize, name: &str);
    /// A virtual table is about to be written to: it joins the transaction.
    fn begin_virtual(&self, table: &Rc<dyn VirtualTable>) -> Result<()>;
    /// Has the module of a new virtual table make it.
    fn create_virtual(&self, db: usize, name: &str) -> Result<()>;
    /// Has the module of a virtual table take away what it keeps.
    fn destroy_virtual(&self, db: usize, name: &str) -> Result<()>;
    /// Removes an index from the catalog.
    fn drop_index(&self, db: usize, name: &str);
    /// Removes a trigger from the catalog.
    fn drop_trigger(&self, db: usize, name: &str);
    /// A tree's root has moved: the schema table and the catalog follow.
    fn move_root(&self, db: usize, from: u32, to: u32) -> Result<()>;
    /// Whether other statements of the connection are reading or writing right now.
    fn others_read(&self) -> bool;
    /// Runs SQL of the engine's own within the present statement.
    fn exec_nested(&self, sql: &str) -> Result<()>;
    /// A statement of a trigger has ended: it has changed `n` rows, which `changes()` tells of, and `more` rows are to be counted
    /// by `total_changes()`.
    fn settle_changes(&self, n: i64, more: i64);
    /// Sets `last_insert_rowid()`.
    fn set_last_insert_rowid(&self, rowid: i64);
    /// Whether all foreign keys are deferred: `PRAGMA defer_foreign_keys`.
    fn defers_keys(&self) -> bool;
    /// Violations of deferred foreign keys in the transaction.
    fn deferred(&self) -> i64;
    /// Counts so many more of them.
    fn count_deferred(&self, n: i64, by_pragma: bool);
    /// Whether anybody wants to know of changes before they are made.
    fn watches_before(&self) -> bool;
    /// A row is about to be changed.
    fn before_change(&self, change: &RowBefore);
    /// A row has given way to another one (`REPLACE`).
    fn row_replaced(&self, db: usize, table: &str, rowid: i64);
    /// A row has changed.
    fn row_changed(&self, change: RowChange, db: usize, table: &str, rowid: i64);
    /// Pages read so far from files, by all databases, those of sorters and the like not included.
    fn pages_read(&self) -> u64;
    /// Whether anybody wants to know of changed rows.
    fn watches_rows(&self) -> bool;
}
