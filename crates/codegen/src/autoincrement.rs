//! AUTOINCREMENT (documentation page `autoinc`): the largest rowid that each table ever had, kept in `sqlite_sequence`.
//!
//! While a statement runs, the numbers belong to the run, not to a program: an INSERT and the triggers that insert into
//! the same table take turns in one sequence, and a number that a trigger took for a row that was then ignored is not
//! given again. They are read before the statement begins and written when it has ended, for every table that it or one
//! of its triggers could insert into, whether it did or not. A statement that fails writes nothing.

use crate::context::Codegen;
use iolite_base::{Code, Result};
use iolite_bytecode::{Opcode, P4};
use iolite_plan::bind::Target;
use std::cell::RefCell;
use std::rc::Rc;

/// The tables whose numbers a statement takes, with their databases; a statement's triggers share its list.
pub(crate) type Sequences = Rc<RefCell<Vec<(usize, Rc<str>)>>>;

impl Codegen<'_> {
    /// The number, from 1, by which instructions refer to a table's sequence; 0 for a table without AUTOINCREMENT.
    pub fn sequence_of(&mut self, t: &Target) -> Result<i32> {
        if !t.table.autoincrement {
            return Ok(0);
        }
        if self.env.catalog.schemas[t.db].table("sqlite_sequence").is_none() {
            return Err(Code::CorruptSequence.into());
        }
        let mut list = self.sequences.get_or_init(Default::default).borrow_mut();
        let at = list.iter().position(|(d, n)| *d == t.db && *n == t.table.name);
        Ok(match at {
            Some(k) => k as i32 + 1,
            None => {
                list.push((t.db, t.table.name.clone()));
                list.len() as i32
            }
        })
    }

    /// Reads all sequences of the statement.
    pub fn read_sequences(&mut self) -> Result<()> {
        let Some(list) = self.sequences.get().map(|s| s.borrow().clone()) else { return Ok(()) };
        for (k, (db, table)) in list.iter().enumerate() {
            let (cursor, row, found) = (self.b.cursor(), self.b.reg(), self.b.reg());
            self.find_sequence(Opcode::OpenRead, cursor, row, (*db, table), |g| {
                g.b.emit(Opcode::Column, cursor, 1, found);
                g.b.emit(Opcode::Cast, found, b'D' as i32, 0);
                g.b.emit(Opcode::AutoincMax, k as i32 + 1, found, 0);
            })?;
            self.b.emit(Opcode::Close, cursor, 0, 0);
        }
        Ok(())
    }

    /// Writes all sequences of the statement, in rows of their own where there are none yet.
    pub fn write_sequences(&mut self) -> Result<()> {
        let Some(list) = self.sequences.get().map(|s| s.borrow().clone()) else { return Ok(()) };
        for (k, (db, table)) in list.iter().enumerate() {
            let (cursor, row) = (self.b.cursor(), self.b.reg());
            self.find_sequence(Opcode::OpenWrite, cursor, row, (*db, table), |_| {})?;
            let known = self.b.label();
            self.b.jump(Opcode::NotNull, row, known, 0);
            self.b.emit(Opcode::NewRowid, cursor, row, 0);
            self.b.place(known);
            let pair = self.b.regs(3);
            self.b.load_text(table, pair)?;
            self.b.emit(Opcode::AutoincRead, k as i32 + 1, pair + 1, 0);
            self.b.emit(Opcode::MakeRecord, pair, 2, pair + 2);
            self.b.emit(Opcode::Insert, cursor, pair + 2, row);
            self.b.emit(Opcode::Close, cursor, 0, 0);
        }
        Ok(())
    }

    /// Opens `sqlite_sequence` and looks for the table's row: its rowid goes to `row` and `found` is coded for it, or
    /// `row` is NULL.
    fn find_sequence(
        &mut self,
        open: Opcode,
        cursor: i32,
        row: i32,
        (db, table): (usize, &str),
        found: impl FnOnce(&mut Self),
    ) -> Result<()> {
        let sequence = self.env.catalog.schemas[db].table("sqlite_sequence");
        let root = sequence.ok_or(Code::CorruptSequence)?.root.get() as i32;
        self.b.emit4(open, cursor, root, db as i32, P4::Int(2));
        self.b.emit(Opcode::Null, 0, row, 0);
        let (name, other) = (self.b.reg(), self.b.reg());
        self.b.load_text(table, name)?;
        let (over, skip) = (self.b.label(), self.b.label());
        self.b.jump(Opcode::Rewind, cursor, over, 0);
        let top = self.b.here();
        self.b.emit(Opcode::Column, cursor, 0, other);
        self.b.jump(Opcode::Ne, name, skip, other);
        self.b.emit(Opcode::Rowid, cursor, row, 0);
        found(self);
        self.b.jump(Opcode::Goto, 0, over, 0);
        self.b.place(skip);
        self.b.emit(Opcode::Next, cursor, top as i32, 0);
        self.b.place(over);
        Ok(())
    }
}
