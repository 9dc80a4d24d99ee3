//! The tables in which an FTS5 table keeps what belongs to it, and the statements that read and write them.
//!
//! Statements are prepared when they are first needed and kept. A statement is taken out while it runs: what it runs may come
//! back here. It does not know what blocks contain.

use crate::config::{Config, Content};
use crate::words;
use iolite_base::{Bytes, Code, Error, Result};
use iolite_ext::{Changes, Host, NestedStatement, ReadNote, WasRead};
use iolite_value::Value;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

/// The statements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sql {
    ReadBlock,
    WriteBlock,
    DeleteBlocks,
    SeekPage,
    InsertPage,
    DeletePages,
    DeletePage,
    ReadContent,
    InsertContent,
    ReplaceContent,
    DeleteContent,
    ReadSize,
    SizesBetween,
    WriteSize,
    DeleteSize,
    WriteConfig,
    ReadConfig,
}

const STATEMENTS: usize = Sql::ReadConfig as usize + 1;

/// The record of the averages.
pub(crate) const AVERAGES: i64 = 1;
/// The record of the structure.
pub(crate) const STRUCTURE: i64 = 10;

/// The tables of one FTS5 table.
pub(crate) struct Store {
    pub config: Rc<Config>,
    /// How long blocks are that were read.
    longest: Cell<usize>,
    host: Weak<dyn Host>,
    kept: RefCell<[Option<Box<dyn NestedStatement>>; STATEMENTS]>,
    /// How many blocks were read.
    pub reads: Cell<i64>,
    /// Statements of its own are running: marks that are set for them say nothing of what is kept back.
    running: Cell<u32>,
}

impl Store {
    pub fn new(config: Rc<Config>, host: &Rc<dyn Host>) -> Store {
        Store {
            config,
            longest: Cell::new(0),
            host: Rc::downgrade(host),
            kept: RefCell::default(),
            reads: Cell::new(0),
            running: Cell::new(0),
        }
    }

    /// Whether statements of its own are running.
    pub fn is_running(&self) -> bool {
        self.running.get() > 0
    }

    /// The connection.
    pub fn host(&self) -> Result<Rc<dyn Host>> {
        self.host.upgrade().ok_or_else(|| Code::Misuse.into())
    }

    /// What has changed in `_data` and `_docsize`: see [`Host::changed_since`]. (`_idx` never changes alone.)
    pub fn changes(&self, note: &mut ReadNote) -> Option<Changes> {
        let table = |what: &str, longest| WasRead { table: format!("{}_{what}", self.config.table), longest };
        // Sizes are numbers of up to 5 bytes, one for each column.
        let mut read =
            vec![table("data", self.longest.get()), table("docsize", 5 * self.config.columns.len() + 10)];
        read.truncate(if self.config.column_size { 2 } else { 1 });
        self.host().ok()?.changed_since(&self.config.database, &read, note)
    }

    fn text(&self, which: Sql) -> String {
        let c = &self.config;
        let (data, idx) = (c.shadow("data"), c.shadow("idx"));
        let marks = |n: usize| vec!["?"; n].join(",");
        match which {
            Sql::ReadBlock => format!("SELECT block FROM {data} WHERE id=?"),
            Sql::WriteBlock => format!("REPLACE INTO {data}(id, block) VALUES(?,?)"),
            Sql::DeleteBlocks => format!("DELETE FROM {data} WHERE id>=? AND id<=?"),
            Sql::SeekPage => {
                format!("SELECT pgno FROM {idx} WHERE segid=? AND term<=? ORDER BY term DESC LIMIT 1")
            }
            Sql::InsertPage => format!("INSERT INTO {idx}(segid,term,pgno) VALUES(?,?,?)"),
            Sql::DeletePages => format!("DELETE FROM {idx} WHERE segid=?"),
            Sql::DeletePage => format!("DELETE FROM {idx} WHERE segid=? AND pgno/2=?"),
            Sql::ReadContent => {
                let (columns, from, id) = self.content();
                format!("SELECT {columns} FROM {from} T WHERE T.{id}=?")
            }
            Sql::InsertContent | Sql::ReplaceContent => {
                let verb = if which == Sql::InsertContent { "INSERT" } else { "REPLACE" };
                let n = 1 + self.content_columns().count() + self.locale_columns().count();
                format!("{verb} INTO {} VALUES({})", c.shadow("content"), marks(n))
            }
            Sql::DeleteContent => format!("DELETE FROM {} WHERE id=?", c.shadow("content")),
            Sql::ReadSize => {
                let origin = if c.contentless_delete { ", origin" } else { "" };
                format!("SELECT sz{origin} FROM {} WHERE id=?", c.shadow("docsize"))
            }
            Sql::SizesBetween => {
                format!("SELECT id, sz FROM {} WHERE id BETWEEN ? AND ? ORDER BY id", c.shadow("docsize"))
            }
            Sql::WriteSize => {
                let extra = if c.contentless_delete { ",?" } else { "" };
                format!("REPLACE INTO {} VALUES(?,?{extra})", c.shadow("docsize"))
            }
            Sql::DeleteSize => format!("DELETE FROM {} WHERE id=?", c.shadow("docsize")),
            Sql::WriteConfig => format!("REPLACE INTO {} VALUES(?,?)", c.shadow("config")),
            Sql::ReadConfig => format!("SELECT k, v FROM {}", c.shadow("config")),
        }
    }

    /// The columns of the table that `%_content` has, by their numbers.
    pub fn content_columns(&self) -> impl Iterator<Item = usize> + '_ {
        let all = self.config.content == Content::Own;
        let columns = self.config.columns.iter().enumerate();
        columns.filter(move |(_, c)| all || !c.indexed).map(|(i, _)| i)
    }

    /// The columns whose locales it has.
    pub fn locale_columns(&self) -> impl Iterator<Item = usize> + '_ {
        let all = self.config.locale && self.config.content == Content::Own;
        self.config.columns.iter().enumerate().filter(move |(_, c)| all && c.indexed).map(|(i, _)| i)
    }

    /// What is read of the rows' table, its name, and the name of its rowid. Answers as many values as there are columns, and
    /// where locales are kept once more as many.
    pub fn content(&self) -> (String, String, String) {
        let c = &self.config;
        if c.content == Content::External {
            let id = words::name(&c.external_rowid);
            let columns: String =
                c.columns.iter().map(|column| format!(", T.{}", words::name(&column.name))).collect();
            let from = format!("{}.{}", words::name(&c.database), words::name(&c.external));
            return (format!("T.{id}{columns}"), from, id);
        }
        let mut columns = "T.id".to_string();
        let kept: Vec<usize> = self.content_columns().collect();
        for i in 0..c.columns.len() {
            columns += &if kept.contains(&i) { format!(", T.c{i}") } else { ", NULL".into() };
        }
        if c.locale && c.content == Content::Own {
            for (i, column) in c.columns.iter().enumerate() {
                columns += &if column.indexed { format!(", T.l{i}") } else { ", NULL".into() };
            }
        }
        (columns, c.shadow("content"), "id".into())
    }

    /// A statement that is not kept here.
    pub fn prepare(&self, sql: &str) -> Result<Box<dyn NestedStatement>> {
        self.host()?.prepare(sql)
    }

    /// Runs a statement with these parameters; `f` is given each row.
    pub fn each(&self, which: Sql, params: &[Value], f: impl FnMut(&[Value]) -> Result<()>) -> Result<()> {
        self.run_with(which, params, f).map(drop)
    }

    /// As [`Store::each`]; answers the rowid that an INSERT has made.
    fn run_with(
        &self,
        which: Sql,
        params: &[Value],
        mut f: impl FnMut(&[Value]) -> Result<()>,
    ) -> Result<i64> {
        let kept = self.kept.borrow_mut()[which as usize].take();
        let mut s = match kept {
            Some(s) => s,
            None => self.prepare(&self.text(which))?,
        };
        for (i, v) in params.iter().enumerate() {
            s.bind(i + 1, v.clone())?;
        }
        self.running.set(self.running.get() + 1);
        let run = loop {
            match s.step() {
                Ok(true) => {
                    if let Err(e) = f(s.row()) {
                        break Err(e);
                    }
                }
                Ok(false) => break Ok(()),
                Err(e) => break Err(e),
            }
        };
        let made = s.made_rowid();
        let reset = s.reset();
        self.running.set(self.running.get() - 1);
        run?;
        self.kept.borrow_mut()[which as usize] = Some(s);
        reset.map(|()| made)
    }

    /// Runs a statement that has no rows.
    pub fn run(&self, which: Sql, params: &[Value]) -> Result<()> {
        self.each(which, params, |_| Ok(()))
    }

    /// Runs an INSERT: the rowid that was made for the row.
    pub fn insert(&self, which: Sql, params: &[Value]) -> Result<i64> {
        self.run_with(which, params, |_| Ok(()))
    }

    /// The first row that a statement answers.
    pub fn row(&self, which: Sql, params: &[Value]) -> Result<Option<Vec<Value>>> {
        let mut found = None;
        self.each(which, params, |row| {
            found.get_or_insert_with(|| row.to_vec());
            Ok(())
        })?;
        Ok(found)
    }

    /// Lets go of all statements.
    pub fn forget_statements(&self) {
        let kept = self.kept.take();
        drop(kept);
    }

    /// A block; `None`: there is none.
    pub fn find(&self, id: i64) -> Result<Option<Bytes>> {
        self.reads.set(self.reads.get() + 1);
        let mut block = None;
        self.each(Sql::ReadBlock, &[Value::Int(id)], |row| {
            block = match row.first() {
                Some(Value::Blob(b, _) | Value::Text(b, _)) => Some(b.clone()),
                _ => None,
            };
            Ok(())
        })?;
        let len = block.as_ref().map_or(0, |b| b.len());
        self.longest.set(self.longest.get().max(len));
        Ok(block)
    }

    /// A block that has to be there.
    pub fn block(&self, id: i64) -> Result<Bytes> {
        self.find(id)?.ok_or_else(|| self.corrupt_block(id))
    }

    /// Writes a block.
    pub fn write(&self, id: i64, block: &[u8]) -> Result<()> {
        self.run(Sql::WriteBlock, &[Value::Int(id), Value::blob(block)?])
    }

    /// Writes the cookie, with which the structure record begins.
    pub fn set_cookie(&self, cookie: u32) -> Result<()> {
        let table = format!("{}_data", self.config.table);
        let value = (&*self.config.database, &*table, "block");
        self.host()?.write_blob(value, STRUCTURE, 0, &cookie.to_be_bytes())
    }

    /// Deletes the blocks from one to another.
    pub fn delete(&self, first: i64, last: i64) -> Result<()> {
        self.run(Sql::DeleteBlocks, &[Value::Int(first), Value::Int(last)])
    }

    /// What is answered where a block is not what it should be.
    #[cold]
    pub fn corrupt_block(&self, id: i64) -> Error {
        let table = &self.config.table;
        Error::new(
            Code::CorruptVtab,
            format!("fts5: corruption found reading blob {id} from table \"{table}\""),
        )
    }

    /// What is answered where a leaf cannot be read on.
    #[cold]
    pub fn corrupt_page(&self, segment: u32, page: u32) -> Error {
        let table = &self.config.table;
        Error::new(
            Code::CorruptVtab,
            format!("fts5: corruption on page {page}, segment {segment}, table \"{table}\""),
        )
    }

    /// What is answered where parts of the index do not fit.
    #[cold]
    pub fn corrupt(&self) -> Error {
        Error::new(Code::CorruptVtab, format!("fts5: corruption in table \"{}\"", self.config.table))
    }
}
