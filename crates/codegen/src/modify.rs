//! INSERT, UPDATE, DELETE: one skeleton for all.
//!
//! Rows come from the plan's feed, one after the other, in the loop or out of a transient table in which they were
//! collected first; `insert`, `update` and `delete` code what happens to each. What this does not know: why rows are
//! collected, which tests are due, which triggers fire; all that is in the plan.

use crate::context::{Along, Codegen, Dest, Place, Row, internal};
use crate::loops::Loops;
use iolite_base::Result;
use iolite_bytecode::{Label, Opcode, P4, p5};
use iolite_plan::bind::{Target, TargetIndex};
use iolite_plan::bound::Expr;
use iolite_plan::plan::{Access, CorePlan};
use iolite_plan::statement::modify::*;
use iolite_value::KeyInfo;
use std::rc::Rc;

/// The cursors of a table being written.
#[derive(Clone, Default)]
pub(crate) struct Cursors {
    /// The table (or the primary key's index).
    pub table: i32,
    /// One per index of the target; the table's own for the one that is the table.
    pub indexes: Vec<i32>,
}

/// What all rows of a change have in common.
pub(crate) struct Modification<'m> {
    pub plan: &'m ModifyPlan,
    /// Of a view there are none.
    pub cursors: Cursors,
    /// Where a row goes that is done, or ignored.
    pub next: Label,
    /// The transient table for the rows of RETURNING.
    pub returning: Option<i32>,
}

impl Modification<'_> {
    pub fn target(&self) -> &Target {
        &self.plan.target
    }

    /// The index whose cursor stands at the entry of the row that the loop has found, to delete it there.
    pub fn along_index(&self) -> Option<usize> {
        let (Feed::Found { rows, .. }, Pass::One, Verb::Delete(r)) =
            (&self.plan.feed, self.plan.pass, &self.plan.verb)
        else {
            return None;
        };
        let Access::Index(a) = &rows.levels[0].access else { return None };
        let of = |i: &TargetIndex| !i.is_table && Rc::ptr_eq(&i.index, &a.index);
        self.target().indexes.iter().position(of).filter(|_| r.only_counts() && self.returning.is_none())
    }
}

/// Where rows come from, once the feed is coded.
enum Rows {
    /// There is one.
    One,
    /// From a co-routine, into these registers.
    Coroutine { yield_reg: i32, first: i32, width: usize },
    /// Out of a transient table: of an INSERT into these registers.
    Stored { cursor: i32, first: i32, width: usize },
    /// From the loops themselves.
    Loops,
}

impl Rows {
    /// The registers in which a row of a query stands, and how many they are.
    fn registers(&self) -> Option<(i32, usize)> {
        match self {
            Rows::Coroutine { first, width, .. } | Rows::Stored { first, width, .. } => {
                Some((*first, *width))
            }
            Rows::One | Rows::Loops => None,
        }
    }

    /// The transient table in which rows were collected.
    fn found(&self) -> Option<i32> {
        match self {
            Rows::Stored { cursor, .. } => Some(*cursor),
            _ => None,
        }
    }
}

/// How the loop over the rows closes; used where it is made.
#[allow(clippy::large_enum_variant)]
enum Closing {
    Nothing,
    Goto(usize),
    Next(i32, usize),
    Loops(Loops),
}

impl Codegen<'_> {
    /// Codes a change of rows.
    pub fn modify(&mut self, m: &ModifyPlan) -> Result<()> {
        let returning = self.open_returning(&m.returning);
        let end = self.b.label();
        if matches!(m.feed, Feed::Everything) {
            self.clear(&m.target);
            self.b.place(end);
            return Ok(());
        }
        let rows = self.feed(m)?;
        let cursors = if !m.target.is_stored() {
            Cursors::default()
        } else {
            let only = match (&m.verb, m.pass) {
                (Verb::Update(c), Pass::One) if !c.reseeks => Some(&c.touched[..]),
                _ => None,
            };
            self.open_for_write(&m.target, only)?
        };
        let mut work = Modification { plan: m, cursors, next: end, returning };
        let closing = self.open_rows(&rows, &mut work, end)?;
        match &m.verb {
            Verb::Insert(i) => self.insert_row(&work, i, rows.registers())?,
            Verb::Update(c) => self.update_found(&work, c, rows.found())?,
            Verb::Delete(r) => self.delete_found(&work, r, rows.found())?,
            Verb::Virtual(v) => self.change_virtual(&work, v, rows.registers(), rows.found(), end)?,
        }
        match closing {
            Closing::Loops(mut loops) => self.close_loops(&mut loops)?,
            other => {
                self.b.place(work.next);
                match other {
                    Closing::Goto(top) => {
                        self.b.emit(Opcode::Goto, 0, top as i32, 0);
                    }
                    Closing::Next(cursor, top) => {
                        self.b.emit(Opcode::Next, cursor, top as i32, 0);
                    }
                    _ => {}
                }
            }
        }
        self.b.place(end);
        if self.counts_keys && !self.in_trigger {
            let one = match &m.verb {
                Verb::Insert(i) => {
                    let fires = |a: &RowAction| matches!(a, RowAction::Trigger(..));
                    matches!(m.feed, Feed::Row(_) | Feed::Defaults)
                        && !i.tests.iter().any(Test::may_replace)
                        && i.upserts.iter().all(|u| u.action.is_none())
                        && !i.before.iter().chain(&i.after).any(fires)
                }
                _ => true,
            };
            // SQLite refuses a row before it is inserted only where nothing else can happen meanwhile.
            self.check_keys(!one || !m.returning.is_empty());
        }
        self.close_returning(m.returning.len(), returning);
        Ok(())
    }

    /// Everything goes: trees are emptied as wholes, the count comes from the table's.
    fn clear(&mut self, t: &Target) {
        let own = t.table.primary_index();
        for i in t.indexes.iter().filter(|i| !i.is_table) {
            self.b.emit(Opcode::Clear, i.index.root.get() as i32, t.db as i32, 0);
        }
        let root = own.map_or(t.table.root.get(), |i| i.root.get());
        self.b.emit4(Opcode::Clear, root as i32, t.db as i32, 1, P4::Name(t.table.name.clone()));
    }

    /// Codes what comes before the first change: rows that are collected, a query that runs beside.
    fn feed(&mut self, m: &ModifyPlan) -> Result<Rows> {
        Ok(match (&m.feed, m.pass) {
            (Feed::Row(_) | Feed::Defaults | Feed::Everything, _) => Rows::One,
            (Feed::Query(plan), pass) => {
                let width = plan.columns.len();
                let first = self.b.regs(width);
                if pass != Pass::One {
                    let cursor = self.b.cursor();
                    self.b.emit(Opcode::OpenEphemeral, cursor, width as i32, 0);
                    self.query(plan, &Dest::Table { cursor, affinities: None })?;
                    return Ok(Rows::Stored { cursor, first, width });
                }
                let yield_reg = self.b.reg();
                let start = self.b.emit(Opcode::InitCoroutine, yield_reg, 0, 0);
                self.b.at(start).p3 = start as i32 + 1;
                self.query(plan, &Dest::Coroutine { yield_reg, first })?;
                self.b.drop_temps();
                self.b.emit(Opcode::EndCoroutine, yield_reg, 0, 0);
                self.b.jump_here(start);
                Rows::Coroutine { yield_reg, first, width }
            }
            (Feed::Found { .. }, Pass::One) => Rows::Loops,
            (Feed::Found { rows, keys, .. }, pass) => {
                let cursor = match (pass, &m.verb) {
                    (_, Verb::Virtual(v)) if *keys == 0 => self.virtual_rows(&m.target, v, rows)?,
                    (Pass::KeysFirst(_), _) => self.rows_by_key(&m.target, rows, *keys)?,
                    _ => self.rows_as_found(rows)?,
                };
                Rows::Stored { cursor, first: 0, width: rows.result.len() }
            }
        })
    }

    /// Opens the loop over the rows.
    fn open_rows(&mut self, rows: &Rows, w: &mut Modification<'_>, end: Label) -> Result<Closing> {
        w.next = self.b.label();
        Ok(match rows {
            Rows::One => Closing::Nothing,
            Rows::Coroutine { yield_reg, .. } => {
                let top = self.b.here();
                self.b.jump(Opcode::Yield, *yield_reg, end, 0);
                Closing::Goto(top)
            }
            Rows::Stored { cursor, first, width } => {
                self.b.jump(Opcode::Rewind, *cursor, end, 0);
                let top = self.b.here();
                match &w.plan.feed {
                    Feed::Found { .. } => {}
                    _ => {
                        for k in 0..*width as i32 {
                            self.b.emit(Opcode::Column, *cursor, k, first + k);
                        }
                    }
                }
                Closing::Next(*cursor, top)
            }
            Rows::Loops => {
                let Feed::Found { rows, .. } = &w.plan.feed else { return Ok(Closing::Nothing) };
                let index =
                    w.along_index().map(|k| (w.target().indexes[k].index.clone(), w.cursors.indexes[k]));
                let along = Along { id: w.target().id, table: w.cursors.table, index };
                self.along = w.target().is_stored().then_some(along);
                let loops = self.open_loops(rows)?;
                self.along = None;
                w.next = self.innermost_next(&loops);
                Closing::Loops(loops)
            }
        })
    }

    /// Collects the rows to change in a transient table, in the order in which they are found.
    fn rows_as_found(&mut self, plan: &CorePlan) -> Result<i32> {
        let cursor = self.b.cursor();
        self.b.emit(Opcode::OpenEphemeral, cursor, plan.result.len() as i32, 0);
        let done = self.b.label();
        self.core(plan, &[], Default::default(), &Dest::Table { cursor, affinities: None }, done)?;
        self.b.place(done);
        Ok(cursor)
    }

    /// Collects the rows to change in a transient tree, in the order of their keys, which stand first.
    fn rows_by_key(&mut self, t: &Target, plan: &CorePlan, keys: usize) -> Result<i32> {
        let cursor = self.b.cursor();
        let width = plan.result.len();
        let rowid = t.table.has_rowid();
        let info = match t.indexes.iter().find(|i| i.is_table) {
            Some(pk) => {
                let fields = pk.key.fields[..keys].to_vec();
                P4::KeyInfo(Rc::new(KeyInfo { enc: self.encoding, fields, columns: width }))
            }
            None if !rowid => P4::KeyInfo(KeyInfo::plain(width, self.encoding)),
            None => P4::None,
        };
        self.b.emit4(Opcode::OpenEphemeral, cursor, width as i32, 0, info);
        let done = self.b.label();
        self.core(plan, &[], Default::default(), &Dest::Keyed { cursor, keys, rowid }, done)?;
        self.b.place(done);
        Ok(cursor)
    }

    /// Opens a table and its indexes for writing. `only`: indexes that are needed, all if `None`.
    pub fn open_for_write(&mut self, t: &Target, only: Option<&[bool]>) -> Result<Cursors> {
        let table = self.b.cursor();
        self.open_cursor(table, t.db, &t.table, t.binding.as_deref(), Opcode::OpenWrite)?;
        let mut indexes = Vec::with_capacity(t.indexes.len());
        for (k, i) in t.indexes.iter().enumerate() {
            if i.is_table {
                indexes.push(table);
                continue;
            }
            let c = self.b.cursor();
            if only.is_none_or(|o| o[k]) {
                let root = i.index.root.get() as i32;
                self.b.emit4(Opcode::OpenWrite, c, root, t.db as i32, P4::KeyInfo(i.key.clone()));
            }
            indexes.push(c);
        }
        Ok(Cursors { table, indexes })
    }

    /// Runs `f` while the table's row is at `place`.
    pub fn at_place<T>(
        &mut self,
        id: u32,
        place: Place,
        f: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let former = self.places.insert(id, place);
        let out = f(self);
        match former {
            Some(p) => self.places.insert(id, p),
            None => self.places.remove(id),
        };
        out
    }

    /// What happens beside a change of a row. `ignore`: where RAISE(IGNORE) goes.
    pub fn act(
        &mut self,
        actions: &[RowAction],
        t: &Target,
        (old, new): (Option<Row>, Option<Row>),
        ignore: Label,
    ) -> Result<()> {
        if actions.is_empty() {
            return Ok(());
        }
        let mut params = None;
        for action in actions {
            match *action {
                RowAction::Count { role, key, row, adds, without_new } => {
                    let test = t.keys.test(role, key);
                    let row = if row == Which::Old { old } else { new };
                    let row = row.ok_or_else(|| internal("a foreign key asks about no row"))?;
                    let new = new.unwrap_or(row);
                    self.count_violations(&t.keys, test, (row, new), adds, without_new)?;
                }
                RowAction::Trigger(number) => {
                    let params = *params.get_or_insert_with(|| self.trigger_params(t, (old, new)));
                    self.fire(number, params, ignore, self.settings.recursive_triggers)?;
                }
                RowAction::Key { trigger, restricts } => {
                    let params = *params.get_or_insert_with(|| self.trigger_params(t, (old, new)));
                    let done = self.b.label();
                    if restricts {
                        self.b.jump(Opcode::FkIfDeferred, 0, done, 0);
                    }
                    self.fire(trigger, params, ignore, true)?;
                    self.b.place(done);
                }
            }
        }
        Ok(())
    }

    /// Parameters of a trigger's program: old rowid, old columns, new rowid, new columns.
    fn trigger_params(&mut self, t: &Target, (old, new): (Option<Row>, Option<Row>)) -> i32 {
        let n = t.table.columns.len();
        let params = self.b.regs(2 * (n + 1));
        for (k, row) in [old, new].into_iter().enumerate() {
            let base = params + (k * (n + 1)) as i32;
            if let Some(r) = row {
                self.copy(r.rowid, base);
                for c in 0..n as i32 {
                    self.copy(r.first + c, base + 1 + c);
                }
            }
        }
        params
    }

    /// Opens a transient table for the rows of RETURNING.
    fn open_returning(&mut self, list: &[Expr]) -> Option<i32> {
        if list.is_empty() {
            return None;
        }
        let cursor = self.b.cursor();
        self.b.emit(Opcode::OpenEphemeral, cursor, list.len() as i32, 0);
        Some(cursor)
    }

    /// Computes RETURNING for one row.
    pub fn returning_row(&mut self, w: &Modification<'_>, row: Row) -> Result<()> {
        let Some(cursor) = w.returning else { return Ok(()) };
        let list = &w.plan.returning;
        let first = self.b.regs(list.len());
        self.in_returning = true;
        let done = self.at_place(w.target().id, Place::of_row(row), |g| g.expr_list(list, first));
        self.in_returning = false;
        done?;
        let end = self.b.label();
        self.deliver(&Dest::Table { cursor, affinities: None }, first, list.len(), end)?;
        self.b.place(end);
        Ok(())
    }

    /// Yields the rows of RETURNING after all changes.
    fn close_returning(&mut self, n: usize, cursor: Option<i32>) {
        let Some(cursor) = cursor else { return };
        let first = self.b.regs(n);
        let over = self.b.label();
        self.b.jump(Opcode::Rewind, cursor, over, 0);
        let top = self.b.here();
        for k in 0..n as i32 {
            self.b.emit(Opcode::Column, cursor, k, first + k);
        }
        self.b.emit(Opcode::ResultRow, first, n as i32, 0);
        self.b.emit(Opcode::Next, cursor, top as i32, 0);
        self.b.place(over);
    }

    /// Reads fields of a transient table into new registers; answers the first.
    pub fn fields(&mut self, cursor: i32, from: usize, n: usize) -> i32 {
        let first = self.b.regs(n);
        for k in 0..n as i32 {
            self.b.emit(Opcode::Column, cursor, from as i32 + k, first + k);
        }
        first
    }

    /// Flags of the instruction that puts a new row into its table.
    pub fn insert_flags(&self, fresh: bool) -> u16 {
        let counted = if self.settings.nested { 0 } else { p5::COUNT_CHANGE | p5::LAST_ROWID };
        if fresh { counted | p5::APPEND } else { counted }
    }
}

/// What happens after a change of a row in two parts: what foreign keys do comes before RETURNING, whose queries see it;
/// triggers come after it.
pub(crate) fn after(actions: &[RowAction]) -> (&[RowAction], &[RowAction]) {
    let first = actions.iter().position(|a| matches!(a, RowAction::Trigger(_)));
    actions.split_at(first.unwrap_or(actions.len()))
}
