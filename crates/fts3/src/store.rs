//! The tables in which an FTS3 table keeps what belongs to it, and the statements that read and write them.
//!
//! Statements are prepared when they are first needed and kept. A statement is taken out while it runs: what it runs may come
//! back here. It does not know what blocks contain.

use crate::config::{Config, Content};
use crate::words;
use iolite_base::{Bytes, Code, Result};
use iolite_ext::{Host, NestedStatement};
use iolite_value::Value;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

macro_rules! statements {
    ($($name:ident,)*) => {
        /// The statements.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Sql { $($name,)* }
        const STATEMENTS: usize = [$(Sql::$name,)*].len();
    };
}

statements! {
    ReadBlock, WriteBlock, NextBlock, DeleteBlocks, IsReserved,
    Segments, SegmentsBetween, Segment, WriteSegment, DeleteSegment, CutSegment, MaxIndex, MaxLevel, DeepestLevel,
    CountSegments, LeafEstimate, MergeLevel, Languages, Renumber, Promote, Promoted,
    ReadContent, InsertContent, DeleteContent, IsLastRow,
    ReadSize, WriteSize, DeleteSize, ReadStat, WriteStat,
}

/// The tables of one FTS3 table.
pub(crate) struct Store {
    pub config: Rc<Config>,
    host: Weak<dyn Host>,
    kept: RefCell<[Option<Box<dyn NestedStatement>>; STATEMENTS]>,
    /// Statements of its own are running: marks that are set for them say nothing of what is kept back.
    running: Cell<u32>,
}

impl Store {
    pub fn new(config: Rc<Config>, host: &Rc<dyn Host>) -> Store {
        Store {
            config,
            host: Rc::downgrade(host),
            kept: RefCell::new([const { None }; STATEMENTS]),
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

    fn text(&self, which: Sql) -> String {
        let c = &self.config;
        let t = |suffix: &str| c.shadow(suffix);
        let (blocks, dir) = (t("segments"), t("segdir"));
        const ENTRY: &str = "level, idx, start_block, leaves_end_block, end_block, root";
        match which {
            Sql::ReadBlock => format!("SELECT block FROM {blocks} WHERE blockid=?"),
            Sql::WriteBlock => format!("REPLACE INTO {blocks}(blockid, block) VALUES(?,?)"),
            Sql::NextBlock => format!("SELECT coalesce(max(blockid), 0) + 1 FROM {blocks}"),
            Sql::DeleteBlocks => format!("DELETE FROM {blocks} WHERE blockid BETWEEN ? AND ?"),
            Sql::IsReserved => format!("SELECT 1 FROM {blocks} WHERE blockid=? AND block IS NULL"),
            Sql::Segments => format!("SELECT {ENTRY} FROM {dir} WHERE level=? ORDER BY idx"),
            Sql::SegmentsBetween => {
                format!("SELECT {ENTRY} FROM {dir} WHERE level BETWEEN ? AND ? ORDER BY level DESC, idx ASC")
            }
            Sql::Segment => format!("SELECT {ENTRY} FROM {dir} WHERE level=? AND idx=?"),
            Sql::WriteSegment => format!("REPLACE INTO {dir} VALUES(?,?,?,?,?,?)"),
            Sql::DeleteSegment => format!("DELETE FROM {dir} WHERE level=? AND idx=?"),
            Sql::CutSegment => format!("UPDATE {dir} SET start_block=?, root=? WHERE level=? AND idx=?"),
            Sql::MaxIndex => format!("SELECT max(idx) FROM {dir} WHERE level=?"),
            Sql::MaxLevel => format!("SELECT max(level) FROM {dir} WHERE level BETWEEN ? AND ?"),
            Sql::DeepestLevel => format!("SELECT max(level % 1024) FROM {dir}"),
            Sql::CountSegments => format!("SELECT count(*) FROM {dir} WHERE level=?"),
            Sql::LeafEstimate => format!(
                "SELECT 2 * total(leaves_end_block - start_block + 1) FROM {dir} WHERE level=? AND idx<?"
            ),
            Sql::MergeLevel => format!(
                "SELECT level, count(*) AS n FROM {dir} GROUP BY level HAVING n>=? \
                 ORDER BY (level % 1024) ASC, n DESC LIMIT 1"
            ),
            Sql::Languages => format!("SELECT ? UNION SELECT level / (1024 * ?) FROM {dir}"),
            Sql::Renumber => format!("UPDATE {dir} SET idx=? WHERE level=? AND idx=?"),
            Sql::Promote => format!("UPDATE {dir} SET level=-1, idx=? WHERE level=? AND idx=?"),
            Sql::Promoted => format!("UPDATE {dir} SET level=? WHERE level=-1"),
            Sql::ReadContent => self.rows("WHERE rowid=?"),
            Sql::InsertContent => {
                let f = c.compress.as_deref().unwrap_or_default();
                let mark = if f.is_empty() { ",?".into() } else { format!(",{}(?)", words::name(f)) };
                let language = if c.language.is_some() { ",?" } else { "" };
                format!("INSERT INTO {} VALUES(?{}{language})", t("content"), mark.repeat(c.columns.len()))
            }
            Sql::DeleteContent => format!("DELETE FROM {} WHERE docid=?", t("content")),
            Sql::IsLastRow => {
                format!("SELECT NOT EXISTS(SELECT docid FROM {} WHERE rowid!=?)", t("content"))
            }
            Sql::ReadSize => format!("SELECT size FROM {} WHERE docid=?", t("docsize")),
            Sql::WriteSize => format!("REPLACE INTO {} VALUES(?,?)", t("docsize")),
            Sql::DeleteSize => format!("DELETE FROM {} WHERE docid=?", t("docsize")),
            Sql::ReadStat => format!("SELECT value FROM {} WHERE id=?", t("stat")),
            Sql::WriteStat => format!("REPLACE INTO {} VALUES(?,?)", t("stat")),
        }
    }

    /// The query for the rows of the content: docid, columns, and the language if rows have one.
    pub fn rows(&self, condition: &str) -> String {
        let c = &self.config;
        let mut columns = String::new();
        let (id, from) = match &c.content {
            Content::Own => {
                let f = c.uncompress.as_deref().map(words::name).unwrap_or_default();
                for (i, column) in c.columns.iter().enumerate() {
                    columns += &format!(", {f}(x.{})", words::name(&format!("c{i}{}", column.name)));
                }
                ("docid", c.shadow("content"))
            }
            Content::External(table) => {
                for column in &c.columns {
                    columns += &format!(", x.{}", words::name(&column.name));
                }
                ("rowid", format!("{}.{}", words::name(&c.database), words::name(table)))
            }
        };
        match (&c.language, &c.content) {
            (None, _) => {}
            (Some(_), Content::Own) => columns += ", x.langid",
            (Some(l), _) => columns += &format!(", x.{}", words::name(l)),
        }
        format!("SELECT {id}{columns} FROM {from} AS x {condition}")
    }

    /// Runs a statement with these parameters; `f` is given each row.
    pub fn each(
        &self,
        which: Sql,
        params: &[Value],
        mut f: impl FnMut(&[Value]) -> Result<()>,
    ) -> Result<()> {
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
                Err(e) => break Err(e.code().into()),
            }
        };
        let reset = s.reset();
        self.running.set(self.running.get() - 1);
        if run.is_ok() {
            self.kept.borrow_mut()[which as usize] = Some(s);
            return reset;
        }
        run
    }

    /// Runs a statement that has no rows.
    pub fn run(&self, which: Sql, params: &[Value]) -> Result<()> {
        self.each(which, params, |_| Ok(()))
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

    /// The number that a statement answers; `None`: NULL, or no row.
    pub fn number(&self, which: Sql, params: &[Value]) -> Result<Option<i64>> {
        let row = self.row(which, params)?;
        Ok(row.and_then(|r| r.first().filter(|v| !v.is_null()).map(Value::to_int)))
    }

    /// A statement that is not kept. What the user sees of an error is its code: he has not named these tables.
    pub fn prepare(&self, sql: &str) -> Result<Box<dyn NestedStatement>> {
        self.host()?.prepare(sql).map_err(|e| e.code().into())
    }

    /// Runs a statement that is not kept.
    pub fn query(&self, sql: &str) -> Result<Vec<Vec<Value>>> {
        self.running.set(self.running.get() + 1);
        let answer = self.host().and_then(|h| h.query(sql, &[]));
        self.running.set(self.running.get() - 1);
        answer.map_err(|e| e.code().into())
    }

    /// Lets go of all statements.
    pub fn forget_statements(&self) {
        let kept = std::mem::replace(&mut *self.kept.borrow_mut(), [const { None }; STATEMENTS]);
        drop(kept);
    }

    /// A block that has to be there.
    pub fn block(&self, id: i64) -> Result<Bytes> {
        let mut block = None;
        self.each(Sql::ReadBlock, &[Value::Int(id)], |row| {
            block = row.first().and_then(|v| v.bytes().cloned());
            Ok(())
        })?;
        block.ok_or_else(|| Code::CorruptVtab.into())
    }

    /// Writes a block; `None` reserves its number.
    pub fn write(&self, id: i64, block: Option<&[u8]>) -> Result<()> {
        let block = block.map_or(Ok(Value::Null), Value::blob)?;
        self.run(Sql::WriteBlock, &[Value::Int(id), block])
    }
}
