use iolite_base::Result;
use iolite_btree::Btree;
use iolite_ext::{Host, RowChange};

/// What a running program asks of its connection.
pub trait Env: Host {
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
    /// Sets a meta value; a changed schema cookie is the catalog's, too.
    fn set_meta(&self, db: usize, i: usize, v: u32) -> Result<()>;
    /// Reads the schema rows about a table into the catalog; all rows if `None`.
    fn parse_schema(&self, db: usize, table: Option<&str>) -> Result<()>;
    /// Removes a table from the catalog.
    fn drop_table(&self, db: usize, name: &str);
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
    /// Sets `changes()`: a statement of a trigger has ended.
    fn set_changes(&self, n: i64);
    /// Sets `last_insert_rowid()`.
    fn set_last_insert_rowid(&self, rowid: i64);
    /// Whether the statement shall stop: `sqlite3_interrupt`, progress handler. Asked now and then.
    fn check_interrupt(&self) -> Result<()>;
    /// A row has changed.
    fn row_changed(&self, change: RowChange, db: usize, table: &str, rowid: i64);
    /// Pages read so far from files, by all databases, those of sorters and the like not included.
    fn pages_read(&self) -> u64;
    /// Whether anybody wants to know of changed rows.
    fn watches_rows(&self) -> bool;
}
