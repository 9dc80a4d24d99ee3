//! INSERT, REPLACE, UPSERT.

use crate::context::{Codegen, Dest, Place};
use crate::trigger::Event;
use crate::write::{Cursors, Row, Writing};
use iolite_base::{Few, Result};
use iolite_bytecode::{ColumnMeta, Label, Opcode, p5};
use iolite_plan::Planner;
use iolite_plan::bind::{Binder, Insert, Rows, Upsert, UpsertTarget};
use iolite_plan::bound::*;
use iolite_sql::ast::{self, TriggerTime};
use iolite_value::Affinity;
use std::rc::Rc;

impl Codegen<'_> {
    /// An INSERT statement.
    pub fn statement_insert(&mut self, b: &mut Binder<'_>, s: &ast::Insert) -> Result<Few<ColumnMeta>> {
        let bound = b.insert(s)?;
        self.touch_databases(b.databases);
        self.insert(&bound)?;
        Ok(bound.out.into_iter().map(|c| c.meta).collect())
    }

    /// Plans the queries nested in expressions.
    pub fn plan_exprs<'e>(&mut self, list: impl Iterator<Item = &'e Expr>) -> Result<()> {
        let mut p = Planner::new(self.env);
        for e in list {
            p.nested(e)?;
        }
        self.take_plans(p);
        Ok(())
    }

    /// Codes an INSERT.
    pub fn insert(&mut self, s: &Insert) -> Result<()> {
        let t = &s.target;
        self.check_writable(t)?;
        self.counts_changes = true;
        self.write_database(t.db);
        let exprs = t.checks.iter().map(|c| &c.0).chain(t.generated.iter().map(|g| &g.1));
        let exprs = exprs.chain(t.defaults.iter().flatten()).chain(&s.returning);
        self.plan_exprs(exprs)?;
        if t.table.is_virtual() {
            return self.insert_virtual(s);
        }
        let is_view = t.table.is_view();
        let n = t.table.columns.len();
        let triggers = self.has_triggers(t, &Event::Insert);
        let returning = self.open_returning(&s.returning);

        // Rows first: a query that reads the table, or triggers that may, must be done before the first change.
        let mut source: Option<(i32, usize)> = None;
        let end = self.b.label();
        let next = self.b.label();
        let mut loop_top = None;
        match &s.rows {
            Rows::Select(q) => {
                let width = q.columns.len();
                let first = self.b.regs(width);
                let mut p = Planner::new(self.env);
                let plan = p.select(Select::clone(q))?;
                self.take_plans(p);
                let reads = self.reads_table(q, t);
                if reads || triggers {
                    let temp = self.b.cursor();
                    self.b.emit(Opcode::OpenEphemeral, temp, width as i32, 0);
                    self.query(&plan, &Dest::Table { cursor: temp })?;
                    source = Some((first, width));
                    loop_top = Some((temp, plan, true));
                } else {
                    let yield_reg = self.b.reg();
                    let start = self.b.emit(Opcode::InitCoroutine, yield_reg, 0, 0);
                    self.b.at(start).p3 = start as i32 + 1;
                    self.query(&plan, &Dest::Coroutine { yield_reg, first })?;
                    self.b.drop_temps();
                    self.b.emit(Opcode::EndCoroutine, yield_reg, 0, 0);
                    self.b.jump_here(start);
                    source = Some((first, width));
                    loop_top = Some((yield_reg, plan, false));
                }
            }
            Rows::Row(list) => self.plan_exprs(list.iter())?,
            Rows::Defaults => {}
        }
        for u in &s.upserts {
            if let Some((sets, filter)) = &u.action {
                self.plan_exprs(sets.iter().map(|x| &x.value).chain(filter))?;
            }
        }
        let sequence = self.sequence_of(t)?;
        let cursors = if is_view { None } else { Some(self.open_for_write(t, None)?) };
        let many = loop_top.is_some();
        let mut top = 0;
        if let Some((c, _, stored)) = &loop_top {
            if *stored {
                self.b.jump(Opcode::Rewind, *c, end, 0);
                top = self.b.here();
                let (first, width) = source.expect("a query has registers");
                for k in 0..width as i32 {
                    self.b.emit(Opcode::Column, *c, k, first + k);
                }
            } else {
                top = self.b.here();
                self.b.jump(Opcode::Yield, *c, end, 0);
            }
        }
        let rowid = self.b.reg();
        let first = self.b.regs(n);
        let row = Row { rowid, first };
        // What a trigger sees before is what is inserted then: the values are computed once.
        let mut computed = None;
        if triggers && self.has_triggers_at(t, &Event::Insert, TriggerTime::Before) || is_view {
            if let (Rows::Row(list), None) = (&s.rows, source) {
                let values = self.b.regs(list.len().max(1));
                for (k, e) in list.iter().enumerate() {
                    self.expr_to(e, values + k as i32)?;
                }
                source = Some((values, list.len()));
            }
            let values = self.b.regs(n);
            self.load_values(s, source, values)?;
            computed = Some(values);
            // NEW as it would be, the rowid -1 where it is not given.
            let before = Row { rowid: self.b.reg(), first: self.b.regs(n) };
            self.b.emit(Opcode::Copy, values, before.first, n as i32 - 1);
            match s.rowid {
                Some(k) => {
                    self.source_value(s, source, k, before.rowid)?;
                    let ok = self.b.label();
                    self.b.jump(Opcode::NotNull, before.rowid, ok, 0);
                    self.b.emit(Opcode::Integer, -1, before.rowid, 0);
                    self.b.place(ok);
                    if !is_view {
                        self.b.emit(Opcode::MustBeInt, before.rowid, 0, 0);
                    }
                }
                None => {
                    self.b.emit(Opcode::Integer, -1, before.rowid, 0);
                }
            }
            if !is_view {
                if let Some(a) = t.table.rowid_alias {
                    self.copy(before.rowid, before.first + a as i32);
                }
                self.shape_row(t, before, true)?;
            }
            let time = if is_view { TriggerTime::InsteadOf } else { TriggerTime::Before };
            self.fire(t, &Event::Insert, time, None, Some(before), next, s.or)?;
            if is_view {
                self.returning_row(t, &s.returning, before, returning)?;
            }
        }
        if let Some(cursors) = &cursors {
            match computed {
                Some(values) => {
                    self.b.emit(Opcode::Copy, values, first, n as i32 - 1);
                }
                None => self.load_values(s, source, first)?,
            }
            let mut fresh = false;
            if t.table.has_rowid() {
                fresh = self.new_rowid(s, source, rowid, cursors.table, sequence)?;
                if let Some(a) = t.table.rowid_alias {
                    self.copy(rowid, first + a as i32);
                }
            } else {
                self.b.emit(Opcode::Null, 0, rowid, 0);
            }
            let written = self.keep_as_written(s, row);
            self.shape_row(t, row, false)?;
            let done = self.insert_checked(s, cursors, row, written, fresh, next, returning)?;
            // RETURNING sees the row as it went in, whatever AFTER triggers do.
            self.returning_row(t, &s.returning, row, returning)?;
            if triggers {
                self.fire(t, &Event::Insert, TriggerTime::After, None, Some(row), next, s.or)?;
            }
            self.b.place(done);
        }
        self.b.place(next);
        if let Some((c, _, stored)) = &loop_top {
            if *stored {
                self.b.emit(Opcode::Next, *c, top as i32, 0);
            } else {
                self.b.emit(Opcode::Goto, 0, top as i32, 0);
            }
        }
        self.b.place(end);
        // RETURNING counts as a second change, where a constraint may stop the first.
        let may_stop = !t.checks.is_empty()
            || s.rowid.is_some()
            || t.table.strict
            || t.table.columns.iter().any(|c| c.not_null.is_some())
            || t.indexes.iter().any(|i| i.index.unique.is_some());
        if triggers || many || !s.returning.is_empty() && may_stop {
            self.needs_statement = true;
        }
        self.close_returning(s.returning.len(), returning);
        Ok(())
    }

    /// Whether a query reads the table.
    fn reads_table(&self, q: &Select, t: &iolite_plan::bind::Target) -> bool {
        fn select(q: &Select, name: &Rc<iolite_catalog::Table>) -> bool {
            q.cores.iter().any(|c| core(c, name))
        }
        fn core(c: &Core, t: &Rc<iolite_catalog::Table>) -> bool {
            c.sources.iter().any(|s| match &s.kind {
                SourceKind::Table { table, .. } => Rc::ptr_eq(table, t),
                SourceKind::Subquery(q) => {
                    select(&q.select, t)
                        || q.recursive.as_ref().is_some_and(|r| r.arms.iter().any(|a| core(a, t)))
                }
                SourceKind::Virtual { .. } => true,
                SourceKind::Working(_) => false,
            })
        }
        let mut hit = select(q, &t.table);
        iolite_plan::visit_select(q, &mut |e| {
            hit |= match e {
                Expr::Subquery(s, _) | Expr::Exists(s) => select(&s.select, &t.table),
                Expr::InSelect(i) => select(&i.select.select, &t.table),
                _ => false,
            }
        });
        hit
    }

    /// Value `k` of the source row.
    fn source_value(&mut self, s: &Insert, source: Option<(i32, usize)>, k: usize, to: i32) -> Result<()> {
        match (&s.rows, source) {
            (_, Some((first, _))) => {
                self.copy(first + k as i32, to);
                Ok(())
            }
            (Rows::Row(list), None) => self.expr_to(&list[k], to),
            _ => {
                self.b.emit(Opcode::Null, 0, to, 0);
                Ok(())
            }
        }
    }

    /// Loads all columns from the source row and the defaults.
    fn load_values(&mut self, s: &Insert, source: Option<(i32, usize)>, first: i32) -> Result<()> {
        let t = &s.target;
        for (i, from) in s.columns.iter().enumerate() {
            let to = first + i as i32;
            if t.table.rowid_alias == Some(i) || t.table.columns[i].generated.is_some() {
                self.b.emit(Opcode::Null, 0, to, 0);
                continue;
            }
            match from {
                Some(k) => self.source_value(s, source, *k, to)?,
                None => match t.defaults.get(i).cloned().flatten() {
                    Some(d) => self.expr_to(&d, to)?,
                    None => {
                        self.b.emit(Opcode::Null, 0, to, 0);
                    }
                },
            }
        }
        Ok(())
    }

    /// Computes the rowid; answers whether it is surely unused.
    fn new_rowid(
        &mut self,
        s: &Insert,
        source: Option<(i32, usize)>,
        rowid: i32,
        cursor: i32,
        sequence: i32,
    ) -> Result<bool> {
        let make = |g: &mut Self| {
            g.b.emit(Opcode::NewRowid, cursor, rowid, sequence);
        };
        let fresh = match s.rowid {
            None => {
                make(self);
                true
            }
            Some(k) => {
                let null = match (&s.rows, source) {
                    (Rows::Row(list), None) => match &list[k] {
                        Expr::Const(v) => Some(v.is_null()),
                        _ => None,
                    },
                    _ => None,
                };
                if null == Some(true) {
                    make(self);
                    // Clauses for a conflict, and triggers, are looked at although there cannot be one.
                    s.upserts.is_empty() && !self.replace_fires(&s.target)
                } else {
                    self.source_value(s, source, k, rowid)?;
                    if null.is_none() {
                        let given = self.b.label();
                        let over = self.b.label();
                        self.b.jump(Opcode::NotNull, rowid, given, 0);
                        make(self);
                        self.b.jump(Opcode::Goto, 0, over, 0);
                        self.b.place(given);
                        self.b.emit(Opcode::MustBeInt, rowid, 0, 0);
                        self.b.place(over);
                    } else {
                        self.b.emit(Opcode::MustBeInt, rowid, 0, 0);
                    }
                    false
                }
            }
        };
        if sequence != 0 {
            self.b.emit(Opcode::AutoincMax, sequence, rowid, 0);
        }
        Ok(fresh)
    }

    /// What `excluded` shows where the rowid is taken, and is looked for before all else: the values before the columns'
    /// affinities, but for whole numbers in REAL columns. `None`: the row itself.
    fn keep_as_written(&mut self, s: &Insert, row: Row) -> Option<Row> {
        let t = &s.target;
        let checked = !t.checks.is_empty() && !self.settings.ignore_checks;
        let first = constraints(&s.upserts).first().is_none_or(Option::is_none);
        let updates = matching_upsert(&s.upserts, None).is_some_and(|u| u.action.is_some());
        if !updates || !first || checked || t.table.strict || !t.generated.is_empty() || !t.table.has_rowid()
        {
            return None;
        }
        let n = t.table.columns.len();
        let written = Row { rowid: row.rowid, first: self.b.regs(n) };
        self.b.emit(Opcode::Copy, row.first, written.first, n as i32 - 1);
        for (i, c) in t.table.columns.iter().enumerate() {
            if c.affinity == Affinity::Real {
                self.b.emit(Opcode::RealAffinity, written.first + i as i32, 0, 0);
            }
        }
        Some(written)
    }

    /// Checks and inserts one row; answers a label to be placed behind what follows a successful insert.
    #[allow(clippy::too_many_arguments)]
    fn insert_checked(
        &mut self,
        s: &Insert,
        cursors: &Cursors,
        row: Row,
        written: Option<Row>,
        fresh: bool,
        next: Label,
        returning: Option<i32>,
    ) -> Result<Label> {
        let t = &s.target;
        let done = self.b.label();
        let upsert = |g: &mut Codegen<'_>, which: Option<usize>| -> Result<bool> {
            let Some(u) = matching_upsert(&s.upserts, which) else { return Ok(false) };
            let excluded = written.filter(|_| which.is_none()).unwrap_or(row);
            g.upsert(s, u, which, cursors, row, excluded, next, returning)?;
            Ok(true)
        };
        let named = constraints(&s.upserts);
        let w = Writing {
            target: t,
            cursors,
            new: row,
            old: None,
            or: s.or,
            changed: None,
            patch: false,
            key_changes: true,
            fresh_rowid: fresh,
            ignore: next,
            named: &named,
            upsert: if s.upserts.is_empty() { None } else { Some(&upsert) },
        };
        let records = self.check_constraints(&w)?;
        let mut flags = p5::COUNT_CHANGE | p5::LAST_ROWID;
        if fresh {
            flags |= p5::APPEND;
        }
        if self.settings.nested {
            flags &= !p5::LAST_ROWID & !p5::COUNT_CHANGE;
        }
        self.insert_row(&w, &records, flags)?;
        Ok(done)
    }

    #[allow(clippy::too_many_arguments)]
    fn upsert(
        &mut self,
        s: &Insert,
        u: &Upsert,
        which: Option<usize>,
        cursors: &Cursors,
        row: Row,
        excluded: Row,
        next: Label,
        returning: Option<i32>,
    ) -> Result<()> {
        let Some((sets, filter)) = &u.action else {
            self.b.jump(Opcode::Goto, 0, next, 0);
            return Ok(());
        };
        let t = &s.target;
        let w = Writing {
            target: t,
            cursors,
            new: row,
            old: None,
            or: s.or,
            changed: None,
            patch: false,
            key_changes: true,
            fresh_rowid: false,
            ignore: next,
            named: &[],
            upsert: None,
        };
        if let Some(k) = which {
            self.seek_conflicting(&w, k)?;
        }
        self.needs_statement = true;
        let place = self.row_place(excluded);
        self.at_place(u.excluded, place, |g| {
            let own = Place::Table {
                cursor: cursors.table,
                table: t.table.clone(),
                index: None,
                index_only: false,
            };
            if let Some(f) = filter {
                let f = f.clone();
                g.at_place(t.id, own, |g| g.jump_unless(&f, next, true))?;
            }
            // Whatever the statement's policy, the update of a conflicting row aborts where it conflicts itself.
            let or = Some(iolite_sql::ast::Conflict::Abort);
            g.update_current(t, sets, cursors, None, or, next, &s.returning, returning, true)
        })?;
        self.b.jump(Opcode::Goto, 0, next, 0);
        Ok(())
    }

    fn insert_virtual(&mut self, s: &Insert) -> Result<()> {
        self.unsupported(&format!("INSERT into virtual table {}", s.target.table.name))
    }
}

/// The constraints that the clauses name, in their order: a rowid (`None`) or an index.
fn constraints(list: &[Upsert]) -> Vec<Option<usize>> {
    let mut named: Vec<Option<usize>> = Vec::new();
    for u in list {
        let constraint = match &u.target {
            UpsertTarget::Any => continue,
            UpsertTarget::Rowid => None,
            UpsertTarget::Index(k) => Some(*k),
        };
        if !named.contains(&constraint) {
            named.push(constraint);
        }
    }
    named
}

/// The clause that is about this constraint.
fn matching_upsert(list: &[Upsert], which: Option<usize>) -> Option<&Upsert> {
    list.iter().find(|u| match (u.target, which) {
        (UpsertTarget::Any, _) => true,
        (UpsertTarget::Rowid, None) => true,
        (UpsertTarget::Index(k), Some(j)) => k == j,
        _ => false,
    })
}
