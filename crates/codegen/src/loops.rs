//! Nested loops: opening them outside in, closing them inside out.
//!
//! Between [`Codegen::open_loops`] and [`Codegen::close_loops`] stands the body, run once for each row of the join.
//! A register whose value must survive the body is never a temporary: the body may be a co-routine's.
//!
//! Outer joins. A LEFT JOIN level keeps a flag "some row matched"; when its loop ends without, its cursors stand on a
//! row of NULLs and the body runs once more from just behind the match. A RIGHT JOIN level notes which rows matched
//! and makes everything inside it a subroutine, which is called again at the very end for those that did not.

use crate::context::{Codegen, Dest, Place, internal};
use iolite_base::{Few, Result};
use iolite_bytecode::{Label, Opcode, P4};
use iolite_catalog::{Index, Table};
use iolite_plan::bound::*;
use iolite_plan::explain::{Part, Role};
use iolite_plan::plan::*;
use iolite_value::KeyInfo;
use std::rc::Rc;

/// Open loops.
pub(crate) struct Loops {
    levels: Few<Open>,
    /// Behind all loops: where to go when no further row is wanted.
    pub end: Label,
}

/// What [`Codegen::prepare`] has opened for a level.
#[derive(Default, Clone, Copy)]
pub(crate) struct Prepared {
    /// The table's own cursor.
    pub table_cursor: Option<i32>,
    /// The index's cursor.
    pub index_cursor: Option<i32>,
    /// Yield register, first register, width.
    pub coroutine: Option<(i32, i32, usize)>,
    /// Columns are read from the table's cursor even where an index holds them.
    pub own_rows_only: bool,
    /// Of a RIGHT JOIN: the set of rows that have found a match.
    pub matched: Option<i32>,
    /// The rows of its query are stored when the loop begins for the first time: there may be no row around it.
    stored_late: bool,
}

/// One open loop.
pub(crate) struct Open {
    /// Where the next row is sought.
    pub next: Label,
    /// Behind the loop.
    pub exit: Label,
    /// Of a loop that ends with its first row: where that row is done.
    done: Option<Label>,
    /// How the loop closes.
    pub step: Step,
    /// Where its range ends.
    pub stop: Option<Stop>,
    /// So many fields of the index make a result: behind a row that gave one the next that differs is sought.
    passes: usize,
    /// Loops over the values of IN, outermost first; a skip-scan is the outermost.
    pub ins: Vec<InLoop>,
    /// The LEFT JOIN's flag, and where a row of NULLs enters.
    left: Option<(i32, usize)>,
    right: Option<Box<Right>>,
    /// Cursors to set to a row of NULLs.
    pub cursors: [Option<i32>; 2],
    /// Registers to set to NULL likewise: first, count.
    null_registers: Option<(i32, usize)>,
    pub prepared: Prepared,
    /// Where the key of an automatic index already stands, of which its filter has been asked, and the filter.
    pub asked: Option<(i32, i32)>,
    /// The body is a subroutine with this return register (multi-index OR).
    pub or_body: Option<i32>,
    /// Its line of the plan.
    pub line: i32,
}

pub(crate) struct InLoop {
    pub cursor: i32,
    pub top: usize,
    pub next: Label,
    /// `Next` or `Prev`, or a seek.
    pub step: Opcode,
    /// The query that gives the values, where they are rows of several, and where the row before is.
    pub rows_of: Option<(SubId, i32)>,
    /// Of a skip-scan: the registers of the present values and how many they are. `step` seeks what is behind them.
    pub skips: Option<(i32, usize)>,
}

/// The bound at which a loop ends: registers, how many of them, and whether it is within.
pub(crate) type Stop = (i32, usize, bool);

impl Loops {
    /// The cursor of the innermost loop, which goes through a range, and where that ends.
    pub fn range(&self) -> Option<(i32, Option<Stop>)> {
        match self.levels.last()? {
            Open { step: Step::Next { cursor, .. }, stop, .. } => Some((*cursor, *stop)),
            _ => None,
        }
    }
}

impl Open {
    /// A loop without anything around it.
    pub fn plain(g: &mut Codegen<'_>) -> Open {
        Open {
            next: g.b.label(),
            exit: g.b.label(),
            done: None,
            step: Step::Once,
            stop: None,
            passes: 0,
            ins: Vec::new(),
            left: None,
            right: None,
            cursors: [None; 2],
            null_registers: None,
            prepared: Prepared::default(),
            asked: None,
            or_body: None,
            line: g.present_line(),
        }
    }

    /// Where to go when the present key has no (more) entries: the next value of the innermost IN, or out.
    pub fn in_exit(&self) -> Label {
        self.ins.last().map_or(self.exit, |i| i.next)
    }
}

#[derive(Clone)]
pub(crate) struct Right {
    table_cursor: i32,
    matched: i32,
    return_reg: i32,
    subroutine: usize,
    /// The registers of what names the row.
    key: i32,
    width: usize,
    /// Where they come from.
    named_by: RowKey,
    /// How a table is read once more: as a loop of its own, or by a module.
    again: Option<Box<Level>>,
    /// Where the loop itself goes on.
    outer_next: Label,
    /// Its line about rows without a match.
    unmatched: Part,
}

/// What names a row of the right side of a join.
#[derive(Clone)]
enum RowKey {
    Rowid,
    /// The first fields of an index that is the table.
    Fields,
    VirtualRowid,
    /// Columns of a virtual table.
    VirtualColumns(Vec<i32>),
}

pub(crate) enum Step {
    /// No loop: one row at the most.
    Once,
    Next {
        op: Opcode,
        cursor: i32,
        top: usize,
    },
    Goto {
        top: usize,
    },
}

impl Loops {
    /// Where the present run of the innermost loop ends, for one value of IN.
    pub fn inner_end(&self) -> Option<Label> {
        let inner = self.levels.last()?;
        (inner.or_body.is_none() && inner.right.is_none()).then(|| inner.in_exit())
    }

    /// The cursor of the only loop, if each of its rows comes through and the next one is that of the next entry; and whether it goes
    /// backwards.
    pub fn passable(&self, levels: &[Level]) -> Option<(i32, bool)> {
        let ([l], [o]) = (levels, &self.levels[..]) else { return None };
        let inner =
            l.filter.is_empty() && l.on.is_empty() && matches!(l.source.kind, SourceKind::Table { .. });
        let plain = o.ins.is_empty() && o.passes == 0 && o.done.is_none() && o.or_body.is_none();
        match (&l.access, &o.step) {
            (Access::Index(a), _) if a.nulls_apart => None,
            (
                Access::Scan { .. } | Access::IndexScan { .. } | Access::RowidRange { .. } | Access::Index(_),
                Step::Next { op: op @ (Opcode::Next | Opcode::Prev), cursor, .. },
            ) if inner && plain => Some((*cursor, *op == Opcode::Prev)),
            _ => None,
        }
    }
}

impl Codegen<'_> {
    /// Opens all loops of an arm; conditions that need no table are tested first.
    pub fn open_loops(&mut self, c: &CorePlan) -> Result<Loops> {
        let levels = &c.levels[..];
        let end = self.b.label();
        for e in &c.constant {
            self.jump_unless(e, end, true)?;
        }
        let mut out = Loops { levels: Few::with_capacity(levels.len()), end };
        let outer_rows = levels.iter().any(|l| l.source.join.right);
        for (depth, l) in levels.iter().enumerate() {
            let mut o = Open::plain(self);
            o.prepared = self.prepare(l, depth > 0 && !outer_rows)?;
            if l.source.join.right && depth > 0 {
                o.prepared.matched = Some(self.open_matched(l)?);
            }
            out.levels.push(o);
        }
        self.end_at_empty(levels, &out);
        let backwards = self.settings.reverse_unordered && c.unordered;
        let former = std::mem::replace(&mut self.scan_backwards, backwards);
        for (depth, l) in levels.iter().enumerate() {
            self.open_level(l, &mut out.levels[depth])?;
            let next = out.levels[depth].next;
            let here = |l: &Level| l.bloom == Bloom::Early(depth);
            if levels.iter().any(here) {
                let inner = levels.iter().zip(out.levels.iter_mut());
                self.ask_filters(l, &mut inner.filter(|(l, _)| here(l)), next)?;
            }
        }
        self.scan_backwards = former;
        if let Some(l) = out.levels.last_mut() {
            l.passes = c.passes.map_or(0, |p| p.fields);
        }
        Ok(out)
    }

    /// Where an inner table that is scanned is empty, there is no row: the loops around it need not begin.
    fn end_at_empty(&mut self, levels: &[Level], loops: &Loops) {
        if levels.iter().any(|l| l.source.join.right) {
            return;
        }
        for (l, o) in levels.iter().zip(loops.levels.iter()).skip(1) {
            if let (Access::Scan { .. }, SourceKind::Table { .. }, false, Some(cursor)) =
                (&l.access, &l.source.kind, l.source.join.left, o.prepared.table_cursor)
            {
                self.b.jump(Opcode::Rewind, cursor, loops.end, 0);
            }
        }
    }

    /// Where to go for the next row of the innermost loop.
    pub fn innermost_next(&self, loops: &Loops) -> Label {
        loops.levels.last().map_or(loops.end, |l| l.done.unwrap_or(l.next))
    }

    /// The table cursor and place of a level's table, for statements that write.
    pub fn close_loops(&mut self, loops: &mut Loops) -> Result<()> {
        let mut rights = Vec::new();
        let nulls: Vec<_> = match loops.levels.iter().any(|l| l.right.is_some()) {
            true => loops.levels.iter().map(|l| (l.cursors, l.null_registers)).collect(),
            false => Vec::new(),
        };
        while let Some(l) = loops.levels.pop() {
            let depth = loops.levels.len();
            if let Some(r) = &l.right {
                rights.push((depth, r.clone()));
            }
            self.close_level(l)?;
        }
        // Rows of the right sides without a match, the leftmost such join first.
        rights.reverse();
        for (depth, right) in rights {
            let former = self.begin_part(right.unmatched);
            for (cursors, regs) in &nulls[..depth] {
                for c in cursors.iter().flatten() {
                    self.b.emit(Opcode::NullRow, *c, 0, 0);
                }
                if let Some((first, n)) = regs {
                    self.b.emit(Opcode::Null, 0, *first, first + *n as i32 - 1);
                }
            }
            let mut rows = Open::plain(self);
            match &right.again {
                Some(l) => self.read_once_more(l, right.table_cursor, &mut rows)?,
                None => {
                    self.b.jump(Opcode::Rewind, right.table_cursor, rows.exit, 0);
                    let top = self.b.here();
                    rows.step = Step::Next { op: Opcode::Next, cursor: right.table_cursor, top };
                }
            }
            self.row_begins();
            self.key_of_row(&right);
            let unmatched = self.b.label();
            self.b.jump(Opcode::SetMissing, right.matched, unmatched, right.key);
            self.b.jump(Opcode::Goto, 0, rows.next, 0);
            self.b.place(unmatched);
            self.b.emit(Opcode::Gosub, right.return_reg, right.subroutine as i32, 0);
            self.close_level(rows)?;
            self.resume(former);
        }
        self.b.place(loops.end);
        Ok(())
    }

    /// Begins to read a table once more, with the cursor on its rows.
    fn read_once_more(&mut self, l: &Level, cursor: i32, rows: &mut Open) -> Result<()> {
        let index = match &l.access {
            Access::IndexScan { index, key, .. } => Some((index, key)),
            Access::Index(a) => Some((&a.index, &a.key)),
            _ => None,
        };
        let index_cursor = match (index, &l.source.kind) {
            (Some((index, key)), SourceKind::Table { db, table }) if !is_primary(table, index) => {
                let (c, root) = (self.b.cursor(), index.root.get() as i32);
                self.b.emit4(Opcode::ReopenIdx, c, root, *db as i32, P4::KeyInfo(key.clone()));
                c
            }
            _ => cursor,
        };
        let p =
            Prepared { table_cursor: Some(cursor), index_cursor: Some(index_cursor), ..Prepared::default() };
        self.one_access(&l.access, l, &p, rows)?;
        let (Some((index, _)), SourceKind::Table { table, .. }, true) =
            (index, &l.source.kind, index_cursor != cursor)
        else {
            return Ok(());
        };
        // What the index says of a row is asked before the row is fetched.
        let place = Place::of_source(cursor, &l.source, table);
        if let Place::Table { cursor, table, binding, index_only, held, .. } = place.clone() {
            let index = Some((index_cursor, index.clone()));
            self.places.insert(l.source.id, Place::Table { cursor, table, binding, index, index_only, held });
        }
        let own: Vec<&Expr> = l.filter.iter().filter(|e| e.belongs_to(l.source.id)).collect();
        for e in own {
            self.jump_unless(e, rows.next, true)?;
        }
        self.places.insert(l.source.id, place);
        Ok(())
    }

    /// Opens the set of rows of a right side that have found a match, anew in each run of the query.
    fn open_matched(&mut self, l: &Level) -> Result<i32> {
        let m = self.b.cursor();
        let width = row_key_width(l);
        let key = KeyInfo::plain(width, self.encoding);
        self.b.emit4(Opcode::SetOpen, m, 0, 0, P4::KeyInfo(key));
        Ok(m)
    }

    /// What names the row under the cursor.
    fn key_of_row(&mut self, r: &Right) {
        let (cursor, key) = (r.table_cursor, r.key);
        match &r.named_by {
            RowKey::Rowid => {
                self.b.emit(Opcode::Rowid, cursor, key, 0);
            }
            RowKey::VirtualRowid => {
                self.b.emit(Opcode::VRowid, cursor, key, 0);
            }
            RowKey::Fields => {
                for k in 0..r.width as i32 {
                    self.b.emit(Opcode::Column, cursor, k, key + k);
                }
            }
            RowKey::VirtualColumns(columns) => {
                for (k, c) in columns.iter().enumerate() {
                    self.b.emit(Opcode::VColumn, cursor, *c, key + k as i32);
                }
            }
        }
    }

    /// From a row that gave a result to the next that differs in the first fields of the loop's index.
    fn seek_beyond(&mut self, fields: usize, cursor: i32, (step, top): (Opcode, usize), exit: Label) {
        let first = self.b.regs(fields);
        for k in 0..fields as i32 {
            self.b.emit(Opcode::Column, cursor, k, first + k);
        }
        let seek = if step == Opcode::Prev { Opcode::SeekLT } else { Opcode::SeekGT };
        self.b.jump4(seek, cursor, exit, first, P4::Int(fields as i64));
        self.b.emit(Opcode::Goto, 0, top as i32, 0);
    }

    pub(crate) fn close_level(&mut self, l: Open) -> Result<()> {
        if l.passes > 0
            && let Step::Next { op, cursor, top } = l.step
        {
            self.seek_beyond(l.passes, cursor, (op, top), l.exit);
        }
        if let Some(done) = l.done {
            self.b.place(done);
            self.b.jump(Opcode::Goto, 0, l.exit, 0);
        }
        self.b.place(l.next);
        self.resume(l.line);
        if let Some(r) = &l.right {
            // Everything inside is done for this row.
            self.b.emit(Opcode::Return, r.return_reg, 0, 1);
            self.b.place(r.outer_next);
        }
        if let Some(ret) = l.or_body {
            self.b.emit(Opcode::Return, ret, 0, 1);
        }
        match l.step {
            Step::Once => {}
            Step::Next { op, cursor, top } => {
                self.b.emit(op, cursor, top as i32, 0);
            }
            Step::Goto { top } => {
                self.b.emit(Opcode::Goto, 0, top as i32, 0);
            }
        }
        for i in l.ins.into_iter().rev() {
            self.b.place(i.next);
            match i.skips {
                None => self.b.emit(i.step, i.cursor, i.top as i32, 0),
                Some((first, fields)) => {
                    self.b.jump4(i.step, i.cursor, l.exit, first, P4::Int(fields as i64));
                    self.b.emit(Opcode::Goto, 0, i.top as i32, 0)
                }
            };
        }
        self.b.place(l.exit);
        if let Some((flag, entry)) = l.left {
            let done = self.b.label();
            self.b.jump(Opcode::IfPos, flag, done, 0);
            for c in l.cursors.iter().flatten() {
                self.b.emit(Opcode::NullRow, *c, 0, 0);
            }
            if let Some((first, n)) = l.null_registers {
                self.b.emit(Opcode::Null, 0, first, first + n as i32 - 1);
            }
            if let Some(ret) = l.or_body {
                self.b.emit(Opcode::Gosub, ret, entry as i32, 0);
            } else {
                self.b.emit(Opcode::Goto, 0, entry as i32, 0);
            }
            self.b.place(done);
        }
        Ok(())
    }

    /// Opens cursors, stores queries unless that may be done `late`: everything done once before the loops.
    fn prepare(&mut self, l: &Level, late: bool) -> Result<Prepared> {
        let id = l.source.id;
        Ok(match &l.source.kind {
            SourceKind::Table { db, table } => {
                let p = self.open_table(l, *db, table)?;
                let index_only = p.table_cursor.is_none();
                let index = l.index().map(|(i, _)| i.clone());
                let index = p.index_cursor.zip(index).filter(|_| !l.source.join.right && !p.own_rows_only);
                let held = index.as_ref().and_then(|(_, i)| l.source.held_by(i)).cloned();
                self.reads_held |= held.is_some();
                let place = match &l.access {
                    Access::Auto { columns, .. } => {
                        Place::Auto { cursor: p.index_cursor.unwrap_or(0), columns: columns.clone() }
                    }
                    _ => Place::Table {
                        cursor: p.table_cursor.unwrap_or(-1),
                        table: table.clone(),
                        binding: l.source.binding.clone(),
                        index,
                        held,
                        index_only,
                    },
                };
                if !matches!(l.access, Access::Auto { .. }) {
                    self.places.insert(id, place);
                }
                p
            }
            SourceKind::Subquery(_) => {
                let q = l.query.as_deref().ok_or_else(|| internal("a query in FROM without a plan"))?;
                if q.coroutine {
                    let width = q.select.columns.len();
                    let (yield_reg, first) = (self.b.reg(), self.b.regs(width));
                    self.coroutine(q, yield_reg, first)?;
                    self.places.insert(id, Place::Registers { rowid: 0, first });
                    return Ok(Prepared {
                        coroutine: Some((yield_reg, first, width)),
                        ..Prepared::default()
                    });
                }
                let cursor = self.b.cursor();
                let stored_late = late && !q.correlated;
                if !stored_late {
                    self.materialize(q, cursor)?;
                }
                self.places.insert(id, Place::Fields { cursor, offset: 0 });
                let index_cursor = matches!(l.access, Access::Auto { .. }).then(|| self.b.cursor());
                Prepared { table_cursor: Some(cursor), index_cursor, stored_late, ..Prepared::default() }
            }
            SourceKind::Working(w) => {
                let place = self.places.get(*w).cloned().ok_or_else(|| internal("no working table"))?;
                let Place::Fields { cursor: current, offset } = place else {
                    return Err(internal("a working table that is no row"));
                };
                if !l.source.join.right {
                    self.places.insert(id, place);
                    return Ok(Prepared::default());
                }
                // Whether its row has found a partner is told by the rowid: it becomes a table of one row.
                let (cursor, record, rowid) = (self.b.cursor(), self.b.temp(), self.b.temp());
                self.b.emit(Opcode::OpenEphemeral, cursor, 0, 0);
                self.b.emit(Opcode::RowData, current, record, 0);
                self.b.emit(Opcode::NewRowid, cursor, rowid, 0);
                self.b.emit(Opcode::Insert, cursor, record, rowid);
                self.b.free_temp(record);
                self.b.free_temp(rowid);
                self.places.insert(id, Place::Fields { cursor, offset });
                Prepared { table_cursor: Some(cursor), ..Prepared::default() }
            }
            SourceKind::Virtual { vtab, .. } => {
                let cursor = self.b.cursor();
                self.opens_virtual = true;
                self.holds_tables |= !vtab.holds_nothing();
                self.b.emit4(Opcode::VOpen, cursor, 0, 0, P4::VirtualTable(vtab.clone()));
                self.places.insert(id, Place::Virtual { cursor });
                Prepared { table_cursor: Some(cursor), ..Prepared::default() }
            }
        })
    }

    fn open_table(&mut self, l: &Level, db: usize, table: &Rc<Table>) -> Result<Prepared> {
        let mut p = Prepared::default();
        let along = self.along.clone().filter(|w| w.id == l.source.id);
        let given = along.as_ref().map(|w| w.table);
        let index_only = l.is_index_only() && given.is_none();
        p.own_rows_only = given.is_some();
        // An index that is the table itself needs no second cursor.
        let index = match &l.access {
            Access::IndexScan { index, key, .. } => Some((index, key)),
            Access::Index(a) => Some((&a.index, &a.key)),
            _ => None,
        };
        let own = index.filter(|(i, _)| is_primary(table, i));
        if let Some((i, key)) = own {
            let c = match given {
                Some(c) => c,
                None => {
                    let (c, root) = (self.b.cursor(), i.root.get() as i32);
                    self.b.emit4(Opcode::OpenRead, c, root, db as i32, P4::KeyInfo(key.clone()));
                    c
                }
            };
            p.table_cursor = Some(c);
            p.index_cursor = Some(c);
            return Ok(p);
        }
        if let Some(c) = given {
            p.table_cursor = Some(c);
        } else if !index_only {
            let c = self.b.cursor();
            self.open_cursor(c, db, table, l.source.binding.as_deref(), Opcode::OpenRead)?;
            p.table_cursor = Some(c);
        }
        if let Some((i, key)) = index {
            let along = along.and_then(|w| w.index).filter(|(own, _)| Rc::ptr_eq(own, i));
            p.index_cursor = Some(match along {
                Some((_, c)) => c,
                None => {
                    let (c, root) = (self.b.cursor(), i.root.get() as i32);
                    self.b.emit4(Opcode::OpenRead, c, root, db as i32, P4::KeyInfo(key.clone()));
                    c
                }
            });
        }
        if matches!(l.access, Access::Auto { .. }) {
            p.index_cursor = Some(self.b.cursor());
        }
        Ok(p)
    }

    /// Opens a cursor on a table's own tree.
    pub fn open_cursor(
        &mut self,
        c: i32,
        db: usize,
        table: &Rc<Table>,
        binding: Option<&TableBinding>,
        op: Opcode,
    ) -> Result<()> {
        match table.primary_index() {
            Some(pk) => {
                let key =
                    binding.and_then(|b| b.key.clone()).ok_or_else(|| internal("no key description"))?;
                self.b.emit4(op, c, pk.root.get() as i32, db as i32, P4::KeyInfo(key));
            }
            None => {
                let width = table.storage.len() as i64;
                self.b.emit4(op, c, table.root.get() as i32, db as i32, P4::Int(width));
            }
        }
        Ok(())
    }

    /// Stores a query's rows in a transient table.
    fn materialize(&mut self, q: &FromPlan, cursor: i32) -> Result<()> {
        let once = !q.correlated;
        if once && let Some(c) = q.cte.and_then(|n| self.ctes.get(n).copied()) {
            // The place where it was first wanted may not have been reached.
            self.b.emit(Opcode::Gosub, c.return_reg, c.address, 0);
            self.b.emit(Opcode::OpenDup, cursor, c.first, 0);
            return Ok(());
        }
        let width = q.select.columns.len();
        let shared = if once { q.cte } else { None };
        let mut over = None;
        let mut return_reg = 0;
        let mut address = 0;
        if shared.is_some() {
            return_reg = self.b.reg();
            let call = self.b.emit(Opcode::Gosub, return_reg, 0, 0);
            over = Some(self.b.emit(Opcode::Goto, 0, 0, 0));
            self.b.jump_here(call);
            address = self.b.here() as i32;
        }
        let at = if once { Some(self.b.emit(Opcode::Once, 0, 0, 0)) } else { None };
        self.b.emit(Opcode::OpenEphemeral, cursor, width as i32, 0);
        let former = self.begin(q, Role::Stored);
        self.stored_rows(q, &Dest::Table { cursor, affinities: None })?;
        self.resume(former);
        if let Some(at) = at {
            self.b.jump_here(at);
        }
        if let (Some(n), Some(over)) = (shared, over) {
            self.b.emit(Opcode::Return, return_reg, 0, 0);
            self.b.jump_here(over);
            self.ctes.insert(n, crate::context::Subroutine { address, return_reg, first: cursor });
        }
        Ok(())
    }

    fn coroutine(&mut self, q: &FromPlan, yield_reg: i32, first: i32) -> Result<()> {
        let start = self.b.emit(Opcode::InitCoroutine, yield_reg, 0, 0);
        let entry = self.b.here();
        self.b.at(start).p3 = entry as i32;
        let former = self.begin(q, Role::Stored);
        let temps = self.b.drop_temps();
        self.stored_rows(q, &Dest::Coroutine { yield_reg, first })?;
        self.b.drop_temps();
        for t in temps {
            self.b.free_temp(t);
        }
        self.resume(former);
        self.b.emit(Opcode::EndCoroutine, yield_reg, 0, 0);
        self.b.jump_here(start);
        Ok(())
    }

    /// The rows of a query in FROM.
    fn stored_rows(&mut self, q: &FromPlan, dest: &Dest) -> Result<()> {
        match &q.recursive {
            None => self.query(&q.select, dest),
            Some(r) => self.recursive(q, r, dest),
        }
    }

    fn open_level(&mut self, l: &Level, o: &mut Open) -> Result<()> {
        let p = o.prepared;
        let own_index = p.index_cursor.filter(|c| Some(*c) != p.table_cursor);
        o.cursors = [p.table_cursor, own_index];
        let left_flag = if l.source.join.left {
            let flag = self.b.reg();
            self.b.emit(Opcode::Integer, 0, flag, 0);
            Some(flag)
        } else {
            None
        };
        if let Some((_, first, n)) = p.coroutine {
            o.null_registers = Some((first, n));
        }
        if let (true, Some(q), Some(cursor)) = (p.stored_late, l.query.as_deref(), p.table_cursor) {
            let once = self.b.emit(Opcode::Once, 0, 0, 0);
            self.materialize(q, cursor)?;
            self.b.jump_here(once);
        }
        self.begin(l, Role::Loop);
        o.line = self.present_line();
        self.open_access(l, &p, o)?;
        self.resume(o.line);
        self.row_begins();
        self.jump_unless_all(&l.on, o.next)?;
        if let Some(m) = p.matched {
            let cursor = p.table_cursor.ok_or_else(|| internal("a RIGHT JOIN without a table cursor"))?;
            let width = row_key_width(l);
            let key = self.b.regs(width);
            let seen = self.b.label();
            let access = match (&l.access, &l.again) {
                (access @ Access::Virtual { .. }, _) => Some(access),
                (_, again) => again.as_deref(),
            };
            let again = access.map(|access| Box::new(Level { access: access.clone(), ..l.clone() }));
            let mut right = Right {
                table_cursor: cursor,
                matched: m,
                return_reg: 0,
                subroutine: 0,
                key,
                width,
                named_by: row_key(l),
                again,
                outer_next: o.exit,
                unmatched: Part::new(l, Role::Unmatched),
            };
            self.key_of_row(&right);
            self.b.jump(Opcode::SetAdd, m, seen, key);
            self.b.place(seen);
            if let Some(flag) = left_flag {
                let entry = self.b.here();
                self.b.emit(Opcode::Integer, 1, flag, 0);
                o.left = Some((flag, entry));
            }
            let return_reg = self.b.reg();
            let call = self.b.emit(Opcode::Gosub, return_reg, 0, 0);
            let next = o.next;
            self.b.jump(Opcode::Goto, 0, next, 0);
            self.b.jump_here(call);
            let subroutine = self.b.here();
            // Inside the subroutine, "next" means to return.
            let outer_next = std::mem::replace(&mut o.next, self.b.label());
            self.jump_unless_all(&l.filter, o.next)?;
            (right.return_reg, right.subroutine, right.outer_next) = (return_reg, subroutine, outer_next);
            o.right = Some(Box::new(right));
            return Ok(());
        }
        if let Some(flag) = left_flag {
            let entry = self.b.here();
            self.b.emit(Opcode::Integer, 1, flag, 0);
            o.left = Some((flag, entry));
        }
        self.jump_unless_all(&l.filter, o.next)?;
        if l.source.exists.is_some() {
            o.done = Some(self.b.label());
        }
        Ok(())
    }
}

fn row_key(l: &Level) -> RowKey {
    match &l.source.kind {
        SourceKind::Virtual { table, .. } if !table.has_rowid() => {
            let key = table.columns.iter().enumerate().filter(|(_, c)| c.pk > 0);
            RowKey::VirtualColumns(key.map(|(k, _)| k as i32).collect())
        }
        SourceKind::Virtual { .. } => RowKey::VirtualRowid,
        SourceKind::Table { table, .. } if !table.has_rowid() => RowKey::Fields,
        _ => RowKey::Rowid,
    }
}

/// How many values name a row: one rowid, or the primary key of a WITHOUT ROWID table.
fn row_key_width(l: &Level) -> usize {
    match (row_key(l), l.source.table()) {
        (RowKey::VirtualColumns(columns), _) => columns.len(),
        (RowKey::Fields, Some((_, t))) => t.primary_index().map_or(1, |k| k.key_len),
        _ => 1,
    }
}

fn is_primary(t: &Table, i: &Index) -> bool {
    !t.has_rowid() && i.origin == iolite_catalog::IndexOrigin::PrimaryKey
}
