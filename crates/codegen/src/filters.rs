//! Bloom filters over the keys of inner tables: filled once in a run.
//!
//! Those of automatic indexes are filled while the index is built, which is when its loop is first entered: until then they let
//! all rows pass. Those of stored tables are filled where they are first asked, by a scan that tests the table's own
//! conditions. Those of stored tables that are asked for columns of the loop's own row are asked together, by one
//! instruction, in an order that follows what they let through. Which filters there are and where they are asked is in
//! the plan.

use crate::context::{Codegen, Place, internal};
use crate::loops::Open;
use iolite_base::Result;
use iolite_bytecode::{Label, Opcode, P4};
use iolite_catalog::{ColumnSource, IndexColumn};
use iolite_plan::bound::*;
use iolite_plan::explain::Role;
use iolite_plan::plan::*;
use iolite_value::{Affinity, Collation};

impl Codegen<'_> {
    /// Fills and asks the filters of these inner levels at the head of the loop of `outer`; where there is surely no partner,
    /// goes to `next`.
    pub(crate) fn ask_filters(
        &mut self,
        outer: &Level,
        inner: &mut dyn Iterator<Item = (&Level, &mut Open)>,
        next: Label,
    ) -> Result<()> {
        let mut together = Vec::new();
        let mut others = Vec::new();
        for (l, o) in inner {
            match self.field_of_key(outer, l) {
                Some((cursor, field)) => together.push((l, cursor, field)),
                None => others.push((l, o)),
            }
        }
        if let Some((_, row, _)) = together.first() {
            let row = *row;
            let filters = self.b.cursor();
            let once = self.b.emit(Opcode::Once, 0, 0, 0);
            self.b.emit(Opcode::FilterOpen, filters, together.len() as i32, 0);
            for (set, (l, ..)) in together.iter().enumerate() {
                self.fill_from_table(l, |g, cursor| {
                    let most = P4::Int(most_keys(l).into());
                    g.b.emit4(Opcode::FilterRowid, filters, set as i32, cursor, most);
                    Ok(())
                })?;
            }
            self.b.jump_here(once);
            let fields = together.iter().map(|(.., field)| i64::from(*field)).collect();
            self.b.jump4(Opcode::FilterRow, filters, next, row, P4::Numbers(fields));
        }
        for (l, o) in others {
            self.ask_filter(l, o, next)?;
        }
        Ok(())
    }

    /// The cursor of the outer level's table and the field, or -1 for the rowid, that is the inner level's rowid.
    fn field_of_key(&self, outer: &Level, inner: &Level) -> Option<(i32, i32)> {
        let Access::RowidEq { eq: EqTerm::Eq { value: Expr::Column(c), .. }, .. } = &inner.access else {
            return None;
        };
        match self.places.get(c.table) {
            Some(Place::Table { cursor, table, index: None, .. }) if c.table == outer.source.id => {
                let field = match c.column {
                    ROWID => Some(-1),
                    k if table.rowid_alias == Some(k as usize) => Some(-1),
                    k => table.field_of[k as usize].map(|f| f as i32),
                };
                field.map(|f| (*cursor, f))
            }
            _ => None,
        }
    }

    /// Fills and asks the filter of an inner level; where there is surely no partner, goes to `next`.
    fn ask_filter(&mut self, l: &Level, o: &mut Open, next: Label) -> Result<()> {
        match &l.access {
            Access::Auto { eq, .. } => {
                let filter = self.b.reg();
                let base = self.auto_key(eq, l, next)?;
                o.asked = Some((base, filter));
                self.ask(filter, base, eq.len(), next);
            }
            Access::RowidEq { eq: EqTerm::Eq { value, .. }, .. } => {
                let filter = self.b.reg();
                let once = self.b.emit(Opcode::Once, 0, 0, 0);
                self.b.emit(Opcode::FilterBegin, filter, most_keys(l), 0);
                self.fill_from_table(l, |g, cursor| {
                    let key = g.b.reg();
                    g.b.emit(Opcode::Rowid, cursor, key, 0);
                    g.b.emit4(Opcode::FilterAdd, filter, 0, key, P4::Int(1));
                    Ok(())
                })?;
                self.b.jump_here(once);
                let key = self.b.reg();
                self.expr_to(value, key)?;
                self.b.jump(Opcode::IsNull, key, next, 0);
                self.apply_affinity(key, &[Affinity::Integer]);
                self.ask(filter, key, 1, next);
            }
            Access::Index(a) => {
                let Some((_, table)) = l.source.table() else { return Ok(()) };
                let (filter, n) = (self.b.reg(), a.eq.len());
                let once = self.b.emit(Opcode::Once, 0, 0, 0);
                let columns: Vec<Expr> = a.index.columns[..n].iter().filter_map(|c| column(l, c)).collect();
                self.b.emit(Opcode::FilterBegin, filter, most_keys(l), 0);
                self.fill_from_table(l, |g, cursor| {
                    let key = g.b.regs(n);
                    let place = Place::of_source(cursor, &l.source, table);
                    g.at_place(l.source.id, place, |g| g.expr_list(&columns, key))?;
                    g.b.emit4(Opcode::FilterAdd, filter, 0, key, P4::Int(n as i64));
                    Ok(())
                })?;
                self.b.jump_here(once);
                let key = self.b.regs(n);
                for (k, eq) in a.eq.iter().enumerate() {
                    let EqTerm::Eq { value, null_ok, .. } = eq else {
                        return Err(internal("a filter over no value"));
                    };
                    self.expr_to(value, key + k as i32)?;
                    if !null_ok {
                        self.b.jump(Opcode::IsNull, key + k as i32, next, 0);
                    }
                }
                self.apply_affinity(key, &a.eq_affinities(table));
                self.ask(filter, key, n, next);
            }
            _ => {}
        }
        Ok(())
    }

    /// Goes to `to` if the filter has surely not seen the key.
    pub(crate) fn ask(&mut self, filter: i32, key: i32, n: usize, to: Label) {
        self.b.jump4(Opcode::Filter, filter, to, key, P4::Int(n as i64));
    }

    /// Goes through those rows of a table that its own conditions let pass; `add` says what becomes of each.
    fn fill_from_table(&mut self, l: &Level, add: impl FnOnce(&mut Self, i32) -> Result<()>) -> Result<()> {
        let Some((db, table)) = l.source.table() else { return Ok(()) };
        let former = self.begin(l, Role::Filter);
        let cursor = self.b.cursor();
        self.open_cursor(cursor, db, table, l.source.binding.as_deref(), Opcode::OpenRead)?;
        let (done, next) = (self.b.label(), self.b.label());
        self.b.jump(Opcode::Rewind, cursor, done, 0);
        let top = self.b.here();
        let place = Place::of_source(cursor, &l.source, table);
        self.at_place(l.source.id, place, |g| {
            g.jump_unless_each(&mut l.filter.iter().filter(|e| e.belongs_to(l.source.id)), next)
        })?;
        add(self, cursor)?;
        self.b.place(next);
        self.b.emit(Opcode::Next, cursor, top as i32, 0);
        self.b.place(done);
        self.b.emit(Opcode::Close, cursor, 0, 0);
        self.resume(former);
        Ok(())
    }
}

/// About as many keys as a filter of this level gets at the most; 0 if nothing is known.
pub(crate) fn most_keys(l: &Level) -> i32 {
    l.rows_at_most().clamp(0.0, 1e9) as i32
}

/// A column of an index as one of the level's table.
fn column(l: &Level, c: &IndexColumn) -> Option<Expr> {
    let ((_, table), ColumnSource::Column(k)) = (l.source.table()?, &c.source) else { return None };
    Some(Expr::Column(ColumnRef {
        table: l.source.id,
        column: if table.rowid_alias == Some(*k) { ROWID } else { *k as i32 },
        affinity: table.columns[*k].affinity,
        collation: Collation::Binary,
    }))
}
