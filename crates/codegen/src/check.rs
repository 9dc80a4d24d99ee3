//! The part of `PRAGMA integrity_check` that needs programs: each row of a table must be found in each of its indexes.
//!
//! The rows of the program are `(index, row)` for a row that is missing from an index, where `row` is the rowid, or the
//! row's number in a WITHOUT ROWID table, and `index` counts the table's indexes in the catalog's order.

use crate::context::{Codegen, Place};
use iolite_base::Result;
use iolite_bytecode::{Opcode, P4};
use iolite_catalog::ColumnSource;
use iolite_plan::bind::Target;
use iolite_value::Affinity;

impl Codegen<'_> {
    /// Codes the check.
    pub fn look_rows_up(&mut self, t: &Target) -> Result<()> {
        let table = self.b.cursor();
        self.open_cursor(table, t.db, &t.table, t.binding.as_deref(), Opcode::OpenRead)?;
        let place = Place::of_target(table, t);
        let (one, number, out) = (self.b.reg(), self.b.reg(), self.b.regs(2));
        self.b.emit(Opcode::Integer, 1, one, 0);
        self.b.emit(Opcode::Integer, 0, number, 0);
        let mut opened = Vec::new();
        for (k, i) in t.indexes.iter().enumerate().filter(|(_, i)| !i.is_table) {
            let cursor = self.b.cursor();
            let root = i.index.root.get() as i32;
            self.b.emit4(Opcode::OpenRead, cursor, root, t.db as i32, P4::KeyInfo(i.key.clone()));
            opened.push((k, cursor));
        }
        let done = self.b.label();
        self.b.jump(Opcode::Rewind, table, done, 0);
        let top = self.b.here();
        self.b.emit(Opcode::Add, one, number, number);
        for (k, cursor) in opened {
            let i = &t.indexes[k];
            let next = self.b.label();
            if let Some(f) = &i.filter {
                self.at_place(t.id, place.clone(), |g| g.jump_unless(f, next, true))?;
            }
            let (first, n) = self.index_entry(t, i, place.clone())?;
            // Columns are compared as they are stored.
            let of_expr = |k: usize| match (&i.index.columns[k].source, i.expr(k)) {
                (ColumnSource::Expr(_), Some(e)) if e.affinity() != Affinity::None => e.affinity(),
                _ => Affinity::Blob,
            };
            let affinities: Vec<Affinity> = (0..n).map(of_expr).collect();
            if affinities.iter().any(|a| *a != Affinity::Blob) {
                self.b.emit4(Opcode::Affinity, first, n as i32, 0, P4::Affinities(affinities.into()));
            }
            self.b.jump4(Opcode::Found, cursor, next, first, P4::Int(n as i64));
            self.b.emit(Opcode::Integer, k as i32, out, 0);
            if t.table.has_rowid() {
                self.b.emit(Opcode::Rowid, table, out + 1, 0);
            } else {
                self.copy(number, out + 1);
            }
            self.b.emit(Opcode::ResultRow, out, 2, 0);
            self.b.place(next);
        }
        self.b.emit(Opcode::Next, table, top as i32, 0);
        self.b.place(done);
        Ok(())
    }
}
