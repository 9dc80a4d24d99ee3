//! What code behind the traits may ask of the connection that it runs on.

use crate::{Function, Instruction, StatementFacts, VirtualTable};
use iolite_base::{Encoding, Error, Limit, Result};
use iolite_value::Value;
use std::any::Any;
use std::ops::RangeInclusive;
use std::rc::Rc;

/// At which state tables were read ([`Host::changed_since`]). A new one: at none.
pub type ReadNote = Option<Box<dyn Any>>;

/// A table of which something is kept that was read.
#[derive(Clone, Debug)]
pub struct WasRead {
    /// Its name.
    pub table: String,
    /// What is kept depends on no value that is longer. (Where values go on beyond their leaves, more is to be looked at.)
    pub longest: usize,
}

/// Which rows of a table may be others than they were; all others are there as they were, or neither were nor are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Changed {
    /// None.
    Nothing,
    /// Those with rowids in these ranges, ascending.
    Rows(Vec<RangeInclusive<i64>>),
    /// Perhaps all.
    All,
}

/// What has changed since a note was made, of the tables that it was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Changes {
    /// Nothing of them.
    Nothing,
    /// For each table.
    Tables(Vec<Changed>),
}

impl Changes {
    /// Of one of the tables.
    pub fn of(&self, table: usize) -> Changed {
        match self {
            Changes::Nothing => Changed::Nothing,
            Changes::Tables(all) => all.get(table).cloned().unwrap_or(Changed::All),
        }
    }
}

/// A statement that a module or a function runs on its connection, within the statement that it serves.
///
/// It holds the connection open while it runs, from the first step to the reset or the end; in between a table may keep it.
pub trait NestedStatement {
    /// The names of its columns.
    fn columns(&self) -> Vec<String>;
    /// Sets parameter `n`, from 1.
    fn bind(&mut self, n: usize, v: Value) -> Result<()>;
    /// Goes to the next row; `false` at the end.
    fn step(&mut self) -> Result<bool>;
    /// The present row.
    fn row(&self) -> &[Value];
    /// Of an INSERT that has run: the last rowid that was made for a row of its own.
    fn made_rowid(&self) -> i64;
    /// Back to the beginning; parameters stay.
    fn reset(&mut self) -> Result<()>;
}

/// A text or blob that is read in parts where it is stored, of one row after another. It holds the connection open while it is there.
pub trait NestedBlob {
    /// Goes to another row of the same table.
    fn go_to(&mut self, rowid: i64) -> Result<()>;
    /// Reads bytes from `offset` on.
    fn read(&mut self, offset: usize, out: &mut [u8]) -> Result<()>;
    /// Where bytes lie in the file: for [`Host::read_pieces`], as long as the row and what its value lies on have not changed ([`Host::changed_since`]).
    fn pieces(&mut self, offset: usize, len: usize) -> Result<Vec<Piece>>;
}

/// Bytes on a page of a database's file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The page's number.
    pub page: u32,
    /// Where they begin on it.
    pub at: u32,
    /// How many they are.
    pub len: u32,
}

/// The connection, as functions and modules see it. Who needs it longer than for a call keeps a `Weak` of it: the connection
/// owns its tables.
pub trait Host {
    /// `last_insert_rowid()`.
    fn last_insert_rowid(&self) -> i64;
    /// `changes()`.
    fn changes(&self) -> i64;
    /// `total_changes()`.
    fn total_changes(&self) -> i64;
    /// A run-time limit.
    fn limit(&self, which: Limit) -> i32;
    /// The main database's text encoding.
    fn encoding(&self) -> Encoding;
    /// The statement's time: milliseconds since the Julian epoch (noon, 4714-11-24 BC, UTC). The same for all
    /// calls within one step of a statement.
    fn now_julian_ms(&self) -> i64;
    /// The local time zone's offset from UTC, in seconds, at a moment given in seconds since 1970 (UTC).
    fn local_offset(&self, unix_seconds: i64) -> Result<i64>;
    /// An error, if the statement that is running shall stop (`sqlite3_interrupt`, progress handler). Work that takes long asks now and
    /// then.
    fn check_interrupt(&self) -> Result<()>;
    /// The same after work that stands for so many instructions, and that no program counts: a progress handler that is to be
    /// asked rarely is not asked each time.
    fn check_after(&self, steps: usize) -> Result<()> {
        let _ = steps;
        self.check_interrupt()
    }
    /// How many threads work may use that takes long, its own among them.
    fn threads(&self) -> usize {
        1
    }
    /// Fills `out` with random bytes.
    fn random(&self, out: &mut [u8]);
    /// Prepares a statement to be run within the present one: it takes part in its transaction and savepoint, its changes are
    /// not counted and hooks do not see them. A host without a database refuses.
    fn prepare(&self, _sql: &str) -> Result<Box<dyn NestedStatement>> {
        Err(Error::sql("there is no database to ask"))
    }
    /// The names of the columns that a statement answers. Nobody is asked whether it may be run.
    fn columns_of(&self, sql: &str) -> Result<Vec<String>> {
        Ok(self.prepare(sql)?.columns())
    }
    /// Runs a statement; answers its rows.
    fn query(&self, sql: &str, params: &[Value]) -> Result<Vec<Vec<Value>>> {
        let mut s = self.prepare(sql)?;
        for (i, v) in params.iter().enumerate() {
            s.bind(i + 1, v.clone())?;
        }
        let mut rows = Vec::new();
        while s.step()? {
            rows.push(s.row().to_vec());
        }
        s.reset()?;
        Ok(rows)
    }
    /// How many pages a database's file has.
    fn page_count(&self, _database: &str) -> Result<u32> {
        Err(Error::sql("there is no database to read"))
    }
    /// The content of a page of a database's file; `None` beyond its end. For modules that tell what a file is made of.
    fn page(&self, _database: &str, _number: u32) -> Result<Option<Vec<u8>>> {
        Err(Error::sql("there is no database to read"))
    }
    /// What has changed in tables since `note` was made for them, which is of the present state afterwards: whoever committed, in
    /// whatever process. (Without tables: whether anything of the database has changed.) `None` where that cannot be told, as where
    /// the present transaction has changed them; then the note stays what it was. What is found is right for as long as the
    /// statement runs that asks, and does not write.
    fn changed_since(&self, _database: &str, _tables: &[WasRead], _note: &mut ReadNote) -> Option<Changes> {
        None
    }
    /// What differs between the state of which `note` is and what is read now, with all that the present transaction has changed. The note stays what
    /// it was. `None`: that cannot be told.
    fn changed_within(&self, _database: &str, _tables: &[WasRead], _note: &ReadNote) -> Option<Changes> {
        None
    }
    /// Reads bytes of a text or blob where it is stored, from `offset` on: the value in `(database, table, column)` of a row.
    fn read_blob(
        &self,
        _value: (&str, &str, &str),
        _rowid: i64,
        _offset: usize,
        _out: &mut [u8],
    ) -> Result<()> {
        Err(Error::sql("there is no database to read"))
    }
    /// The value in `(database, table, column)` of a row, for reads of many rows: as [`Host::read_blob`], without looking the table up for each.
    fn open_blob(&self, _value: (&str, &str, &str), _rowid: i64) -> Result<Box<dyn NestedBlob>> {
        Err(Error::sql("there is no database to read"))
    }
    /// Reads bytes that [`NestedBlob::pieces`] has found and that are valid still, one part after another.
    fn read_pieces(&self, _database: &str, _pieces: &[Piece], _out: &mut [u8]) -> Result<()> {
        Err(Error::sql("there is no database to read"))
    }
    /// Overwrites bytes of a text or blob where it is stored; as [`Host::read_blob`]. It takes part in the statement that is
    /// running; neither hooks nor triggers hear of it.
    fn write_blob(
        &self,
        _value: (&str, &str, &str),
        _rowid: i64,
        _offset: usize,
        _bytes: &[u8],
    ) -> Result<()> {
        Err(Error::sql("there is no database to write"))
    }
    /// Sets `last_insert_rowid()`: a table that writes its own rows late leaves no trace of that.
    fn put_back_last_insert_rowid(&self, _rowid: i64) {}
    /// A virtual table of the connection, connected; `None`: the database has no such virtual table.
    fn virtual_table(&self, _database: &str, _name: &str) -> Result<Option<Rc<dyn VirtualTable>>> {
        Ok(None)
    }
    /// How many foreign keys are violated and have to be mended before a commit.
    fn deferred_violations(&self) -> i64 {
        0
    }
    /// Sets that number: violations that were said to be as they shall be.
    fn set_deferred_violations(&self, _n: i64) {}
    /// Foreign keys have no actions from now on, as if all were `NO ACTION`, or have them again; answers what was before.
    fn without_key_actions(&self, _on: bool) -> bool {
        false
    }
    /// What the program that opened the connection knows it by; 0: by nothing.
    fn opener(&self) -> usize {
        0
    }
    /// The instructions of a statement: of its text, or of the prepared one that a pointer names; `None` for anything else.
    fn instructions(&self, _statement: &Value) -> Result<Option<Vec<Instruction>>> {
        Ok(None)
    }
    /// The statements that the program using the connection has prepared, the newest first, where somebody keeps a list.
    fn statements(&self) -> Vec<StatementFacts> {
        Vec::new()
    }
    /// Adds a function to the connection; statements that are prepared from now on know it.
    fn add_function(&self, _function: Function) -> Result<()> {
        Err(Error::sql("there is no connection to know the function"))
    }
}
