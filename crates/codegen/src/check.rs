//! The part of `PRAGMA integrity_check` that needs programs: what each row of a table says about CHECK constraints, computed columns
//! and index entries.
//!
//! The program gives a row for each row of the table, in the table's order: for each CHECK constraint whether the row meets it (0 or 1);
//! each column that is computed; and for each index whether it has an entry (0 or 1) and the fields of that entry. What of it is in the
//! file, who checks finds out.

use crate::context::{Codegen, Place};
use crate::write::row_column;
use iolite_base::Result;
use iolite_bytecode::{Opcode, P4};
use iolite_catalog::ColumnSource;
use iolite_plan::bind::Target;
use iolite_value::Affinity;

impl Codegen<'_> {
    /// Codes it.
    pub fn rows_to_check(&mut self, t: &Target) -> Result<()> {
        let table = self.b.cursor();
        self.open_cursor(table, t.db, &t.table, t.binding.as_deref(), Opcode::OpenRead)?;
        let place = Place::of_target(table, t);
        let computed: Vec<usize> =
            (0..t.table.columns.len()).filter(|c| !t.table.columns[*c].is_stored()).collect();
        let fields: usize = t.indexes.iter().map(|i| 1 + i.index.columns.len()).sum();
        let width = t.checks.len() + computed.len() + fields;
        let out = self.b.regs(width.max(1));
        let done = self.b.label();
        self.b.jump(Opcode::Rewind, table, done, 0);
        let top = self.b.here();
        let mut to = out;
        for (check, _) in &t.checks {
            let holds = self.b.label();
            self.b.emit(Opcode::Integer, 1, to, 0);
            self.at_place(t.id, place.clone(), |g| g.jump_if(check, holds, true))?;
            self.b.emit(Opcode::Integer, 0, to, 0);
            self.b.place(holds);
            to += 1;
        }
        for c in computed {
            self.at_place(t.id, place.clone(), |g| g.column(&row_column(t, c as i32), to))?;
            to += 1;
        }
        for i in &t.indexes {
            let none = self.b.label();
            self.b.emit(Opcode::Integer, 0, to, 0);
            if let Some(f) = &i.filter {
                self.at_place(t.id, place.clone(), |g| g.jump_unless(f, none, true))?;
            }
            let (first, n) = self.index_entry(t, i, place.clone())?;
            for k in 0..n {
                let (from, at) = (first + k as i32, to + 1 + k as i32);
                self.copy(from, at);
                // Columns are compared as they are stored.
                let of_expr = match (&i.index.columns[k].source, i.expr(k)) {
                    (ColumnSource::Expr(_), Some(e)) => e.affinity(),
                    _ => Affinity::None,
                };
                if of_expr != Affinity::None {
                    let affinities = vec![of_expr];
                    self.b.emit4(Opcode::Affinity, at, 1, 0, P4::Affinities(affinities.into()));
                }
            }
            self.b.emit(Opcode::Integer, 1, to, 0);
            self.b.place(none);
            to += 1 + n as i32;
        }
        self.b.emit(Opcode::ResultRow, out, width as i32, 0);
        self.b.emit(Opcode::Next, table, top as i32, 0);
        self.b.place(done);
        Ok(())
    }
}
