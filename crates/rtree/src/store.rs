//! The shadow tables of one R*Tree, and the statements that read and write them.
//!
//! Statements are prepared when they are first needed and kept. A statement is taken out while it runs: what it runs may come
//! back here. It does not know what nodes contain.

use crate::words;
use iolite_base::{Bytes, Code, Error, Result};
use iolite_ext::{Host, NestedStatement};
use iolite_value::Value;
use std::cell::RefCell;
use std::rc::{Rc, Weak};

/// The statements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sql {
    ReadNode,
    WriteNode,
    DeleteNode,
    ReadRowid,
    WriteRowid,
    DeleteRowid,
    ReadParent,
    WriteParent,
    DeleteParent,
    ReadRow,
    WriteAuxiliary,
}

const STATEMENTS: usize = Sql::WriteAuxiliary as usize + 1;

/// The shadow tables of one table.
pub(crate) struct Store {
    pub database: String,
    pub table: String,
    /// How many auxiliary columns the rows have.
    pub auxiliary: usize,
    /// How many of them stay as they are where NULL is written.
    pub kept_if_null: usize,
    host: Weak<dyn Host>,
    kept: RefCell<[Option<Box<dyn NestedStatement>>; STATEMENTS]>,
}

/// The names of the tables behind that of their owner.
pub(crate) const SUFFIXES: [&str; 3] = ["node", "parent", "rowid"];

impl Store {
    pub fn new(
        host: &Rc<dyn Host>,
        (database, table): (&str, &str),
        auxiliary: usize,
        kept_if_null: usize,
    ) -> Store {
        let (database, table) = (database.to_string(), table.to_string());
        let (host, kept) = (Rc::downgrade(host), RefCell::default());
        Store { database, table, auxiliary, kept_if_null, host, kept }
    }

    /// The connection.
    pub fn host(&self) -> Result<Rc<dyn Host>> {
        self.host.upgrade().ok_or_else(|| Code::Misuse.into())
    }

    /// A shadow table, quoted.
    fn shadow(&self, suffix: &str) -> String {
        words::table(&self.database, &format!("{}_{suffix}", self.table))
    }

    fn run_text(&self, sql: &str) -> Result<Vec<Vec<Value>>> {
        self.host()?.query(sql, &[])
    }

    /// The page size of the database.
    pub fn page_size(&self) -> Result<i64> {
        let rows = self.run_text(&format!("PRAGMA {}.page_size", words::name(&self.database)))?;
        Ok(rows.first().and_then(|r| r.first()).map_or(0, Value::to_int))
    }

    /// Makes the tables, with an empty root.
    pub fn create(&self, node_size: usize) -> Result<()> {
        let more: String = (0..self.auxiliary).map(|k| format!(",a{k}")).collect();
        let (rowid, node, parent) = (self.shadow("rowid"), self.shadow("node"), self.shadow("parent"));
        self.run_text(&format!("CREATE TABLE {rowid}(rowid INTEGER PRIMARY KEY,nodeno{more})"))?;
        self.run_text(&format!("CREATE TABLE {node}(nodeno INTEGER PRIMARY KEY,data)"))?;
        self.run_text(&format!("CREATE TABLE {parent}(nodeno INTEGER PRIMARY KEY,parentnode)"))?;
        self.run_text(&format!("INSERT INTO {node}VALUES(1,zeroblob({node_size}))"))?;
        Ok(())
    }

    /// The size of the root, if there is one.
    pub fn root_size(&self) -> Result<i64> {
        let rows =
            self.run_text(&format!("SELECT length(data) FROM {} WHERE nodeno=1", self.shadow("node")))?;
        Ok(rows.first().and_then(|r| r.first()).map_or(0, Value::to_int))
    }

    /// How many rows ANALYZE has found, if it has looked.
    pub fn analyzed_rows(&self) -> Option<i64> {
        let stat = words::table(&self.database, "sqlite_stat1");
        let host = self.host().ok()?;
        let sql = format!("SELECT stat FROM {stat} WHERE tbl=?1");
        let rows = host.query(&sql, &[Value::text(format!("{}_rowid", self.table)).ok()?]).ok()?;
        Some(rows.first().and_then(|r| r.first()).map_or(0, Value::to_int))
    }

    pub fn rename(&self, to: &str) -> Result<()> {
        for suffix in SUFFIXES {
            let to = words::name(&format!("{to}_{suffix}"));
            self.run_text(&format!("ALTER TABLE {} RENAME TO {to}", self.shadow(suffix)))?;
        }
        Ok(())
    }

    pub fn destroy(&self) -> Result<()> {
        drop(self.kept.take());
        for suffix in ["node", "rowid", "parent"] {
            self.run_text(&format!("DROP TABLE {}", self.shadow(suffix)))
                .map_err(|e| Error::from(e.code()))?;
        }
        Ok(())
    }

    fn text(&self, which: Sql) -> String {
        let (node, rowid, parent) = (self.shadow("node"), self.shadow("rowid"), self.shadow("parent"));
        match which {
            Sql::ReadNode => format!("SELECT data FROM {node} WHERE nodeno=?1"),
            Sql::WriteNode => format!("INSERT OR REPLACE INTO {node} VALUES(?1,?2)"),
            Sql::DeleteNode => format!("DELETE FROM {node} WHERE nodeno=?1"),
            Sql::ReadRowid => format!("SELECT nodeno FROM {rowid} WHERE rowid=?1"),
            Sql::WriteRowid if self.auxiliary == 0 => {
                format!("INSERT OR REPLACE INTO {rowid} VALUES(?1,?2)")
            }
            Sql::WriteRowid => format!(
                "INSERT INTO {rowid}(rowid,nodeno)VALUES(?1,?2)ON CONFLICT(rowid)DO UPDATE SET nodeno=excluded.nodeno"
            ),
            Sql::DeleteRowid => format!("DELETE FROM {rowid} WHERE rowid=?1"),
            Sql::ReadParent => format!("SELECT parentnode FROM {parent} WHERE nodeno=?1"),
            Sql::WriteParent => format!("INSERT OR REPLACE INTO {parent} VALUES(?1,?2)"),
            Sql::DeleteParent => format!("DELETE FROM {parent} WHERE nodeno=?1"),
            Sql::ReadRow => format!("SELECT * FROM {rowid} WHERE rowid=?1"),
            Sql::WriteAuxiliary => {
                let set = |k: usize| match k < self.kept_if_null {
                    true => format!("a{k}=coalesce(?{},a{k})", k + 2),
                    false => format!("a{k}=?{}", k + 2),
                };
                let all: Vec<String> = (0..self.auxiliary).map(set).collect();
                format!("UPDATE {rowid} SET {} WHERE rowid=?1", all.join(","))
            }
        }
    }

    /// Runs a statement with these parameters; answers what `f` makes of the first row, if there is one.
    fn row<T>(&self, which: Sql, params: &[Value], f: impl FnOnce(&[Value]) -> T) -> Result<Option<T>> {
        let kept = self.kept.borrow_mut()[which as usize].take();
        let mut s = match kept {
            Some(s) => s,
            None => self.host()?.prepare(&self.text(which))?,
        };
        for (i, v) in params.iter().enumerate() {
            s.bind(i + 1, v.clone())?;
        }
        let found = s.step()?.then(|| f(s.row()));
        s.reset()?;
        self.kept.borrow_mut()[which as usize] = Some(s);
        Ok(found)
    }

    fn run(&self, which: Sql, params: &[Value]) -> Result<()> {
        self.row(which, params, |_| ()).map(|_| ())
    }

    /// A node's bytes. That it has none is damage, and so is that its table is gone.
    pub fn node(&self, number: i64) -> Result<Bytes> {
        let bytes = |row: &[Value]| match row.first() {
            Some(Value::Blob(b, _) | Value::Text(b, _)) => Some(b.clone()),
            _ => None,
        };
        match self.row(Sql::ReadNode, &[Value::Int(number)], bytes) {
            Ok(found) => found.flatten().ok_or_else(|| Code::CorruptVtab.into()),
            Err(e) if e.code() == Code::Error => Err(Code::CorruptVtab.into()),
            Err(e) => Err(e),
        }
    }

    pub fn write_node(&self, number: i64, bytes: &[u8]) -> Result<()> {
        self.run(Sql::WriteNode, &[Value::Int(number), Value::blob(bytes)?])
    }

    /// Writes a new node; answers its number.
    pub fn add_node(&self, bytes: &[u8]) -> Result<i64> {
        self.run(Sql::WriteNode, &[Value::Null, Value::blob(bytes)?])?;
        Ok(self.host()?.last_insert_rowid())
    }

    /// Takes a node out, with what is known of its parent.
    pub fn delete_node(&self, number: i64) -> Result<()> {
        self.run(Sql::DeleteNode, &[Value::Int(number)])?;
        self.run(Sql::DeleteParent, &[Value::Int(number)])
    }

    fn number(&self, which: Sql, key: i64) -> Result<Option<i64>> {
        self.row(which, &[Value::Int(key)], |row| row.first().map_or(0, Value::to_int))
    }

    /// The leaf that has an entry.
    pub fn leaf_of(&self, rowid: i64) -> Result<Option<i64>> {
        self.number(Sql::ReadRowid, rowid)
    }

    pub fn set_leaf(&self, rowid: i64, leaf: i64) -> Result<()> {
        self.run(Sql::WriteRowid, &[Value::Int(rowid), Value::Int(leaf)])
    }

    /// A rowid that no entry has; it is an entry from now on.
    pub fn new_rowid(&self) -> Result<i64> {
        self.run(Sql::WriteRowid, &[Value::Null, Value::Null])?;
        Ok(self.host()?.last_insert_rowid())
    }

    pub fn delete_rowid(&self, rowid: i64) -> Result<()> {
        self.run(Sql::DeleteRowid, &[Value::Int(rowid)])
    }

    /// The parent of a node.
    pub fn parent_of(&self, node: i64) -> Result<Option<i64>> {
        self.number(Sql::ReadParent, node)
    }

    pub fn set_parent(&self, node: i64, parent: i64) -> Result<()> {
        self.run(Sql::WriteParent, &[Value::Int(node), Value::Int(parent)])
    }

    /// The auxiliary columns of a row, if it is there.
    pub fn auxiliary(&self, rowid: i64) -> Result<Option<Vec<Value>>> {
        self.row(Sql::ReadRow, &[Value::Int(rowid)], |row| row.get(2..).unwrap_or(&[]).to_vec())
    }

    /// Writes the auxiliary columns of a row.
    pub fn set_auxiliary(&self, rowid: i64, values: impl Iterator<Item = Value>) -> Result<()> {
        let params: Vec<Value> = std::iter::once(Value::Int(rowid)).chain(values).collect();
        self.run(Sql::WriteAuxiliary, &params)
    }
}
