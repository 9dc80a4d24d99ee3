//! AUTOINCREMENT (documentation page `autoinc`): the largest rowid that each table ever had, kept in `sqlite_sequence`.
//!
//! While a statement runs, the numbers belong to the run, not to a program: an INSERT and the triggers that insert into
//! the same table take turns in one sequence, and a number that a trigger took for a row that was then ignored is not
//! given again. They are read before the statement begins and written when it has ended, for every table that it or one
//! of its triggers could insert into, whether it did or not. A statement that fails writes nothing.

use crate::context::Codegen;
use iolite_base::Result;
use iolite_bytecode::{Opcode, P4};
use iolite_plan::statement::Sequence;

impl Codegen<'_> {
    /// Reads all sequences of the statement.
    pub fn read_sequences(&mut self) -> Result<()> {
        for (k, s) in self.sequences.iter().enumerate() {
            let (row, found) = (self.b.reg(), self.b.reg());
            let cursor = self.sequence_cursor(k);
            // It is written when the statement ends: a cursor for reading would hold the page, which is copied then.
            self.b.emit4(Opcode::OpenWrite, cursor, s.root as i32, s.db as i32, P4::Int(2));
            self.find_sequence(cursor, row, s, |g| {
                g.b.emit(Opcode::Column, cursor, 1, found);
                g.b.emit(Opcode::Cast, found, b'D' as i32, 0);
                g.b.emit(Opcode::AutoincMax, k as i32 + 1, found, 0);
            })?;
        }
        Ok(())
    }

    /// Writes all sequences of the statement, in rows of their own where there are none yet.
    pub fn write_sequences(&mut self) -> Result<()> {
        for (k, s) in self.sequences.iter().enumerate() {
            let (cursor, row) = (self.sequence_cursor(k), self.b.reg());
            self.find_sequence(cursor, row, s, |_| {})?;
            let known = self.b.label();
            self.b.jump(Opcode::NotNull, row, known, 0);
            self.b.emit(Opcode::NewRowid, cursor, row, 0);
            self.b.place(known);
            let pair = self.b.regs(3);
            self.b.load_text(&s.table, pair)?;
            self.b.emit(Opcode::AutoincRead, k as i32 + 1, pair + 1, 0);
            self.b.emit(Opcode::MakeRecord, pair, 2, pair + 2);
            self.b.emit(Opcode::Insert, cursor, pair + 2, row);
        }
        Ok(())
    }

    /// The cursor on `sqlite_sequence` of a sequence.
    fn sequence_cursor(&mut self, k: usize) -> i32 {
        while self.sequence_cursors.len() <= k {
            let cursor = self.b.cursor();
            self.sequence_cursors.push(cursor);
        }
        self.sequence_cursors[k]
    }

    /// Looks for the table's row in `sqlite_sequence`: its rowid goes to `row` and `found` is coded for it, or `row` is NULL.
    fn find_sequence(
        &mut self,
        cursor: i32,
        row: i32,
        s: &Sequence,
        found: impl FnOnce(&mut Self),
    ) -> Result<()> {
        self.b.emit(Opcode::Null, 0, row, 0);
        let (name, other) = (self.b.reg(), self.b.reg());
        self.b.load_text(&s.table, name)?;
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
