//! One loop's access: positions its cursor and says how the loop goes on.
//!
//! A range over an index must not see NULLs, which sort before all else: where one end is open on the NULL side, a
//! NULL key closes it.

use crate::context::{Codegen, Place, internal};
use crate::loops::{InLoop, Open, Prepared, Step};
use iolite_base::Result;
use iolite_bytecode::{Label, Opcode, P4, p5};
use iolite_catalog::{ColumnSource, Table};
use iolite_plan::bound::*;
use iolite_plan::explain::Role;
use iolite_plan::plan::*;
use iolite_value::{Affinity, Collation, KeyInfo};
use std::rc::Rc;

/// The rows of a table that an OR has passed on: by their rowids, or by the keys of a table without.
enum Seen {
    Rowids { set: i32, rowid: i32 },
    Keys { set: i32, fields: i32, first: i32 },
}

impl Codegen<'_> {
    /// Emits the start of a level's loop.
    pub(crate) fn open_access(&mut self, l: &Level, p: &Prepared, o: &mut Open) -> Result<()> {
        if matches!(l.source.kind, SourceKind::Working(_)) && !l.source.join.right {
            return Ok(());
        }
        if let Some((yield_reg, ..)) = p.coroutine {
            let top = self.b.here();
            self.b.jump(Opcode::Yield, yield_reg, o.exit, 0);
            o.step = Step::Goto { top };
            return Ok(());
        }
        self.one_access(&l.access, l, p, o)
    }

    pub(crate) fn one_access(
        &mut self,
        access: &Access,
        l: &Level,
        p: &Prepared,
        o: &mut Open,
    ) -> Result<()> {
        let table = match &l.source.kind {
            SourceKind::Table { table, .. } => Some(table.clone()),
            _ => None,
        };
        let cursor = p.table_cursor.unwrap_or(-1);
        match access {
            Access::Scan { reverse } => {
                let turns = table.is_some() || l.query.as_ref().is_some_and(|q| !q.forward);
                let reverse = *reverse || self.scan_backwards && turns;
                self.full_scan(cursor, reverse, o);
            }
            Access::IndexScan { index, reverse, .. } => {
                let icur = p.index_cursor.ok_or_else(|| internal("no index cursor"))?;
                self.full_scan(icur, *reverse || self.scan_backwards, o);
                let t = table.ok_or_else(|| internal("an index without a table"))?;
                if icur != cursor && (!l.is_index_only() || p.own_rows_only) {
                    self.fetch_row(icur, index, cursor, &t)?;
                }
            }
            Access::RowidEq { eq, reverse } => {
                let reg = self.b.reg();
                self.eq_value(eq, reg, *reverse || self.scan_backwards, o)?;
                if matches!(eq, EqTerm::InSelect(..)) {
                    self.skip_repeated_part(std::slice::from_ref(eq), 0, reg, o);
                }
                self.b.jump(Opcode::SeekRowid, cursor, o.next, reg);
            }
            Access::RowidRange { lo, hi, reverse } => {
                self.rowid_range(cursor, lo, hi, *reverse || self.scan_backwards, o)?;
            }
            Access::Index(a) => {
                let icur = p.index_cursor.ok_or_else(|| internal("no index cursor"))?;
                let t = table.ok_or_else(|| internal("an index without a table"))?;
                if a.nulls_apart {
                    return self.nulls_apart(a, (icur, cursor), &t, l, p, o);
                }
                let turned = self.scan_backwards.then(|| IndexAccess { reverse: true, ..(**a).clone() });
                self.index_range(icur, turned.as_ref().unwrap_or(&**a), &t, o)?;
                if icur != cursor && (!l.is_index_only() || p.own_rows_only) {
                    self.fetch_row(icur, &a.index, cursor, &t)?;
                }
            }
            Access::Or(branches) => self.or_access(branches, l, p, o)?,
            Access::Auto { .. } => self.auto_index(l, p, o)?,
            Access::Virtual { vtab, info, args } => self.virtual_scan(cursor, vtab, info, args, o)?,
        }
        Ok(())
    }

    fn full_scan(&mut self, cursor: i32, reverse: bool, o: &mut Open) {
        let (start, op) = if reverse { (Opcode::Last, Opcode::Prev) } else { (Opcode::Rewind, Opcode::Next) };
        self.b.jump(start, cursor, o.exit, 0);
        let top = self.b.here();
        o.step = Step::Next { op, cursor, top };
    }

    /// Computes what a key field equals into `reg`, opening a loop over the values of IN, from the greatest to the least
    /// if `down`.
    pub(crate) fn eq_value(&mut self, eq: &EqTerm, reg: i32, down: bool, o: &mut Open) -> Result<()> {
        let out = o.in_exit();
        match eq {
            EqTerm::Eq { value, null_ok, .. } => {
                self.expr_to(value, reg)?;
                if !null_ok && !value.surely_not_null() {
                    self.b.jump(Opcode::IsNull, reg, out, 0);
                }
            }
            EqTerm::IsNull => {
                self.b.emit(Opcode::Null, 0, reg, 0);
            }
            EqTerm::Any => return Err(internal("a skip-scan without its index")),
            EqTerm::InSelect(s, field) if *field > 0 => {
                let row = o.ins.last().filter(|l| l.rows_of.is_some_and(|r| r.0 == s.select.id));
                let (cursor, next) =
                    row.map(|l| (l.cursor, l.next)).ok_or_else(|| internal("a row that has not begun"))?;
                self.b.emit(Opcode::Column, cursor, *field as i32, reg);
                self.b.jump(Opcode::IsNull, reg, next, 0);
            }
            EqTerm::InList(_) | EqTerm::InSelect(..) => {
                let (cursor, field) = self.in_values(eq)?;
                let rows_of = match eq {
                    EqTerm::InSelect(s, _) if s.lhs.len() > 1 => {
                        let last = self.b.regs(s.lhs.len());
                        self.b.emit(Opcode::Null, 0, last, last + s.lhs.len() as i32 - 1);
                        Some((s.select.id, last))
                    }
                    _ => None,
                };
                self.in_loop(cursor, field, reg, down, o);
                if let Some(l) = o.ins.last_mut() {
                    l.rows_of = rows_of;
                }
            }
        }
        Ok(())
    }

    /// Behind term `k`, where the values of the terms lie from `first` on: if it ends the part of a row that is sought, goes on
    /// where that part is that of the row before. Rows come sorted.
    fn skip_repeated_part(&mut self, terms: &[EqTerm], k: usize, first: i32, o: &mut Open) {
        let (EqTerm::InSelect(s, field), Some(l)) = (&terms[k], o.ins.last()) else { return };
        let Some((_, last)) = l.rows_of else { return };
        let goes_on = matches!(terms.get(k + 1), Some(EqTerm::InSelect(_, n)) if n == &(field + 1));
        let held = field + 1;
        if goes_on || held == s.lhs.len() {
            return;
        }
        let now = first + (k + 1 - held) as i32;
        let (next, differs) = (l.next, self.b.label());
        for (k, collation) in s.collations[..held].iter().enumerate() {
            let p4 = if *collation == Collation::Binary {
                P4::None
            } else {
                P4::Collation(Rc::new(collation.clone()))
            };
            let (op, to, flags) = match k + 1 == held {
                true => (Opcode::Eq, next, 0),
                false => (Opcode::Ne, differs, p5::JUMP_IF_NULL),
            };
            self.b.jump4(op, last + k as i32, to, now + k as i32, p4);
            self.b.p5(flags);
        }
        self.b.place(differs);
        self.b.emit(Opcode::Copy, now, last, held as i32 - 1);
    }

    /// The cursor on the values of an IN, and which field they are.
    pub(crate) fn in_values(&mut self, eq: &EqTerm) -> Result<(i32, i32)> {
        match eq {
            EqTerm::InList(list) if list.list.iter().all(Expr::is_constant) => Ok((self.list_set(list)?, 0)),
            EqTerm::InList(list) => {
                let c = self.b.cursor();
                self.fill_list_set(list, c)?;
                Ok((c, 0))
            }
            EqTerm::InSelect(s, field) => Ok((self.select_set(s)?, *field as i32)),
            EqTerm::Eq { .. } | EqTerm::IsNull | EqTerm::Any => {
                Err(internal("one value in the place of several"))
            }
        }
    }

    fn in_loop(&mut self, cursor: i32, field: i32, reg: i32, down: bool, o: &mut Open) {
        let out = o.in_exit();
        let (start, step) = match down {
            true => (Opcode::Last, Opcode::Prev),
            false => (Opcode::Rewind, Opcode::Next),
        };
        self.b.jump(start, cursor, out, 0);
        let top = self.b.here();
        self.b.emit(Opcode::Column, cursor, field, reg);
        let next = self.b.label();
        self.b.jump(Opcode::IsNull, reg, next, 0);
        o.ins.push(InLoop { cursor, top, next, step, rows_of: None, skips: None });
    }

    /// Begins a loop over the values of the first fields of an index, into registers from `first` on. The cursor goes from
    /// each to the next by a seek.
    fn skip_scan(&mut self, cursor: i32, fields: usize, first: i32, down: bool, o: &mut Open) {
        let (start, step) = match down {
            true => (Opcode::Last, Opcode::SeekLT),
            false => (Opcode::Rewind, Opcode::SeekGT),
        };
        self.b.jump(start, cursor, o.exit, 0);
        let top = self.b.here();
        for k in 0..fields as i32 {
            self.b.emit(Opcode::Column, cursor, k, first + k);
        }
        let next = self.b.label();
        o.ins.push(InLoop { cursor, top, next, step, rows_of: None, skips: Some((first, fields)) });
    }

    fn rowid_range(
        &mut self,
        cursor: i32,
        lo: &Option<Box<Bound>>,
        hi: &Option<Box<Bound>>,
        reverse: bool,
        o: &mut Open,
    ) -> Result<()> {
        let (start, stop) = if reverse { (hi, lo) } else { (lo, hi) };
        let mut stop_reg = None;
        if let Some(b) = stop {
            let reg = self.b.reg();
            self.expr_to(&b.value, reg)?;
            self.b.jump(Opcode::IsNull, reg, o.exit, 0);
            stop_reg = Some((reg, b.inclusive));
        }
        match start {
            Some(b) => {
                let reg = self.b.reg();
                self.expr_to(&b.value, reg)?;
                self.b.jump(Opcode::IsNull, reg, o.exit, 0);
                let op = match (reverse, b.inclusive) {
                    (false, true) => Opcode::SeekGE,
                    (false, false) => Opcode::SeekGT,
                    (true, true) => Opcode::SeekLE,
                    (true, false) => Opcode::SeekLT,
                };
                self.b.jump(op, cursor, o.exit, reg);
            }
            None => {
                self.b.jump(if reverse { Opcode::Last } else { Opcode::Rewind }, cursor, o.exit, 0);
            }
        }
        let top = self.b.here();
        let op = if reverse { Opcode::Prev } else { Opcode::Next };
        o.step = Step::Next { op, cursor, top };
        o.stop = stop_reg.map(|(reg, inclusive)| (reg, 1, inclusive));
        if let Some((reg, inclusive)) = stop_reg {
            let id = self.b.reg();
            self.b.emit(Opcode::Rowid, cursor, id, 0);
            let op = match (reverse, inclusive) {
                (false, true) => Opcode::Gt,
                (false, false) => Opcode::Ge,
                (true, true) => Opcode::Lt,
                (true, false) => Opcode::Le,
            };
            self.b.jump(op, reg, o.exit, id);
            self.b.p5((Affinity::Numeric as u16 - b'@' as u16) & p5::AFFINITY_MASK);
        }
        Ok(())
    }

    pub(crate) fn index_range(
        &mut self,
        cursor: i32,
        a: &IndexAccess,
        t: &Rc<Table>,
        o: &mut Open,
    ) -> Result<()> {
        let n = a.eq.len();
        let longest = key_fields(&a.lo).max(key_fields(&a.hi));
        let base = self.b.regs(n + longest);
        let affinities = a.eq_affinities(t);
        let skipped = a.eq.iter().take_while(|e| matches!(e, EqTerm::Any)).count();
        if skipped > 0 {
            self.skip_scan(cursor, skipped, base, a.reverse, o);
        }
        for (k, eq) in a.eq.iter().enumerate().skip(skipped) {
            self.eq_value(eq, base + k as i32, a.reverse != a.key.fields[k].desc, o)?;
            if matches!(eq, EqTerm::InSelect(..)) {
                self.skip_repeated_part(&a.eq, k, base, o);
            }
        }
        self.apply_affinity(base, &affinities);
        let exit = o.in_exit();
        let range = a.lo.is_some() || a.hi.is_some() || a.not_null;
        let desc = range && a.key.fields[n].desc;
        // The end at which NULLs stand, in the index's order.
        let (nulls_first, nulls_last) = (range && !desc, range && desc);
        let (start, stop) = if a.reverse { (&a.hi, &a.lo) } else { (&a.lo, &a.hi) };
        let (null_start, null_stop) =
            if a.reverse { (nulls_last, nulls_first) } else { (nulls_first, nulls_last) };
        // The far end first: its registers must outlive the loop.
        let stop_base = if range { self.b.regs(n + key_fields(stop)) } else { base };
        let mut stop_fields = n;
        let mut stop_inclusive = true;
        if range {
            match stop {
                Some(b) => {
                    self.bound_values(b, stop_base + n as i32, a, t, exit)?;
                    stop_fields = n + key_fields(stop);
                    stop_inclusive = b.inclusive;
                }
                None if null_stop => {
                    self.b.emit(Opcode::Null, 0, stop_base + n as i32, 0);
                    stop_fields = n + 1;
                    stop_inclusive = false;
                }
                None => {}
            }
            if stop_fields > 0 && n > 0 {
                self.b.emit(Opcode::Copy, base, stop_base, n as i32 - 1);
            }
        }
        let (mut fields, mut inclusive) = (n, true);
        match start {
            Some(b) => {
                self.bound_values(b, base + n as i32, a, t, exit)?;
                fields = n + key_fields(start);
                inclusive = b.inclusive;
            }
            None if null_start => {
                self.b.emit(Opcode::Null, 0, base + n as i32, 0);
                fields = n + 1;
                inclusive = false;
            }
            None => {}
        }
        if a.one_row {
            // All of a unique key: the entry is there or not, nothing follows it.
            self.b.jump4(Opcode::NotFound, cursor, exit, base, P4::Int(n as i64));
            o.step = Step::Once;
            return Ok(());
        }
        if fields == 0 {
            self.b.jump(if a.reverse { Opcode::Last } else { Opcode::Rewind }, cursor, exit, 0);
        } else {
            let op = match (a.reverse, inclusive) {
                (false, true) => Opcode::SeekGE,
                (false, false) => Opcode::SeekGT,
                (true, true) => Opcode::SeekLE,
                (true, false) => Opcode::SeekLT,
            };
            self.b.jump4(op, cursor, exit, base, P4::Int(fields as i64));
        }
        let top = self.b.here();
        o.stop = Some((stop_base, stop_fields, stop_inclusive)).filter(|s| s.1 > 0);
        if stop_fields > 0 {
            let op = match (a.reverse, stop_inclusive) {
                (false, true) => Opcode::IdxGT,
                (false, false) => Opcode::IdxGE,
                (true, true) => Opcode::IdxLT,
                (true, false) => Opcode::IdxLE,
            };
            self.b.jump4(op, cursor, exit, stop_base, P4::Int(stop_fields as i64));
        }
        o.step = Step::Next { op: if a.reverse { Opcode::Prev } else { Opcode::Next }, cursor, top };
        Ok(())
    }

    /// Computes the values of a bound into registers from `first` on.
    fn bound_values(&mut self, b: &Bound, first: i32, a: &IndexAccess, t: &Table, exit: Label) -> Result<()> {
        self.expr_to(&b.value, first)?;
        if !b.value.surely_not_null() {
            self.b.jump(Opcode::IsNull, first, exit, 0);
        }
        for (k, (value, _)) in b.behind().iter().enumerate() {
            self.expr_to(value, first + 1 + k as i32)?;
        }
        let converted = std::iter::once((&b.value, b.convert)).chain(b.behind().iter().map(|m| (&m.0, m.1)));
        let affinity = |(k, (value, convert)): (usize, (&Expr, bool))| match convert {
            true => a.field_affinity(t, a.eq.len() + k, value),
            false => Affinity::Blob,
        };
        let affinities: Vec<Affinity> = converted.enumerate().map(affinity).collect();
        self.apply_affinity(first, &affinities);
        Ok(())
    }

    /// From an index entry to the table's row.
    fn fetch_row(
        &mut self,
        icur: i32,
        index: &Rc<iolite_catalog::Index>,
        cursor: i32,
        t: &Rc<Table>,
    ) -> Result<()> {
        if t.has_rowid() {
            self.b.emit(Opcode::DeferredSeek, icur, 0, cursor);
            return Ok(());
        }
        let pk = t.primary_index().ok_or_else(|| internal("no primary key"))?;
        let mut fields = Vec::with_capacity(pk.key_len);
        for column in &pk.columns[..pk.key_len] {
            let ColumnSource::Column(c) = column.source else {
                return Err(internal("an expression in a primary key"));
            };
            let f = index.field_of(c).ok_or_else(|| internal("an index without the primary key"))?;
            fields.push(f as i64);
        }
        self.b.emit4(Opcode::DeferredSeek, icur, 0, cursor, P4::Numbers(fields.into()));
        Ok(())
    }

    /// The entries of an index in two passes, of which one finds those that have a NULL in the field behind the equal ones. The
    /// body is a subroutine.
    fn nulls_apart(
        &mut self,
        a: &IndexAccess,
        (icur, cursor): (i32, i32),
        t: &Rc<Table>,
        l: &Level,
        p: &Prepared,
        o: &mut Open,
    ) -> Result<()> {
        let rest = IndexAccess { not_null: true, nulls_apart: false, ..a.clone() };
        let eq = a.eq.iter().cloned().chain([EqTerm::IsNull]).collect();
        let nulls = IndexAccess { eq, nulls_apart: false, ..a.clone() };
        // From the greatest to the least, the NULLs come first.
        let down = a.reverse != a.key.fields[a.eq.len()].desc;
        let passes = if down { [nulls, rest] } else { [rest, nulls] };
        let (body_return, body) = (self.b.reg(), self.b.label());
        for pass in &passes {
            let mut sub = Open::plain(self);
            self.index_range(icur, pass, t, &mut sub)?;
            if icur != cursor && (!l.is_index_only() || p.own_rows_only) {
                self.fetch_row(icur, &a.index, cursor, t)?;
            }
            self.b.jump(Opcode::Gosub, body_return, body, 0);
            self.close_level(sub)?;
        }
        self.passes_end(o, body_return, body);
        Ok(())
    }

    /// Several accesses to one table: each finds rows, a row found before is skipped, the body is a subroutine.
    fn or_access(&mut self, branches: &[OrBranch], l: &Level, p: &Prepared, o: &mut Open) -> Result<()> {
        let (SourceKind::Table { table, .. } | SourceKind::Virtual { table, .. }) = &l.source.kind else {
            return Err(internal("OR access on no table"));
        };
        let cursor = p.table_cursor.ok_or_else(|| internal("no table cursor"))?;
        let body_return = self.b.reg();
        let seen = self.open_seen(l, table)?;
        let body = self.b.label();
        let own = self.present_line();
        for (k, br) in branches.iter().enumerate() {
            self.begin(br, Role::Index);
            self.begin(br, Role::Branch);
            let mut sub = Open::plain(self);
            let mut sp = *p;
            let own = table.primary_index();
            let of_table =
                matches!(&br.access, Access::Index(a) if own.is_some_and(|o| Rc::ptr_eq(&o, &a.index)));
            if of_table {
                sp.index_cursor = Some(cursor);
            } else if let (Access::Index(a), SourceKind::Table { db, .. }) = (&br.access, &l.source.kind) {
                let c = self.b.cursor();
                let root = a.index.root.get() as i32;
                self.b.emit4(Opcode::ReopenIdx, c, root, *db as i32, P4::KeyInfo(a.key.clone()));
                sp.index_cursor = Some(c);
            }
            self.one_access(&br.access, l, &sp, &mut sub)?;
            self.row_begins();
            // The body reads the table's own cursor.
            let (place, number) = match &l.source.kind {
                SourceKind::Virtual { .. } => (Place::Virtual { cursor }, Opcode::VRowid),
                _ => (Place::of_source(cursor, &l.source, table), Opcode::Rowid),
            };
            self.places.insert(l.source.id, place);
            self.jump_unless_all(&br.filter, sub.next)?;
            match &seen {
                Seen::Rowids { set, rowid } => {
                    self.b.emit(number, cursor, *rowid, 0);
                    self.b.jump4(Opcode::RowSetTest, *set, sub.next, *rowid, P4::Int(k as i64));
                }
                Seen::Keys { set, fields, first } => {
                    for n in 0..*fields {
                        self.b.emit(Opcode::Column, cursor, n, first + n);
                    }
                    self.b.jump(Opcode::SetAdd, *set, sub.next, *first);
                }
            }
            self.b.jump(Opcode::Gosub, body_return, body, 0);
            self.close_level(sub)?;
        }
        self.resume(own);
        self.passes_end(o, body_return, body);
        Ok(())
    }

    /// Behind several passes over a table: what follows is their body, a subroutine.
    fn passes_end(&mut self, o: &mut Open, body_return: i32, body: Label) {
        let exit = o.exit;
        self.b.jump(Opcode::Goto, 0, exit, 0);
        self.b.place(body);
        o.or_body = Some(body_return);
        o.step = Step::Once;
    }

    /// Begins to note the rows that the branches of an OR find.
    fn open_seen(&mut self, l: &Level, table: &Table) -> Result<Seen> {
        if table.has_rowid() {
            let (set, rowid) = (self.b.reg(), self.b.reg());
            self.b.emit(Opcode::Null, 0, set, 0);
            return Ok(Seen::Rowids { set, rowid });
        }
        let own = l.source.binding.as_ref().and_then(|b| b.key.clone());
        let own = own.ok_or_else(|| internal("no key description"))?;
        let key = KeyInfo { columns: own.fields.len(), ..(*own).clone() };
        let (set, fields) = (self.b.cursor(), key.columns);
        let first = self.b.regs(fields);
        self.b.emit4(Opcode::SetOpen, set, 0, 0, P4::KeyInfo(Rc::new(key)));
        Ok(Seen::Keys { set, fields: fields as i32, first })
    }

    /// Fills an automatic index, once in a run unless its query depends on what is outside, and the filter over its keys.
    pub(crate) fn build_auto_index(&mut self, l: &Level, p: &Prepared, bloom: Option<i32>) -> Result<()> {
        let Access::Auto { eq, key, columns, filter } = &l.access else { return Ok(()) };
        let icur = p.index_cursor.ok_or_else(|| internal("no cursor for an automatic index"))?;
        let source = p.table_cursor.ok_or_else(|| internal("no cursor to index"))?;
        let id = l.source.id;
        // While it is built, columns come from the table itself.
        let place = match &l.source.kind {
            SourceKind::Table { table, .. } => Place::of_source(source, &l.source, table),
            _ => Place::Fields { cursor: source, offset: 0 },
        };
        self.places.insert(id, place);
        let build_once = l.query.as_ref().is_none_or(|q| !q.correlated);
        let at = if build_once { Some(self.b.emit(Opcode::Once, 0, 0, 0)) } else { None };
        let former = self.begin(l, Role::Filter);
        let n = columns.len();
        self.b.emit4(Opcode::OpenAutoindex, icur, n as i32 + 1, 0, P4::KeyInfo(key.clone()));
        // Entries that come in order are appended, which takes less than finding a place for each.
        let sorter = self.b.cursor();
        self.b.emit4(Opcode::SorterOpen, sorter, n as i32 + 1, 0, P4::KeyInfo(key.clone()));
        if let Some(bloom) = bloom {
            self.b.emit(Opcode::FilterBegin, bloom, crate::filters::most_keys(l), 0);
        }
        let done = self.b.label();
        self.b.jump(Opcode::Rewind, source, done, 0);
        let top = self.b.here();
        let next = self.b.label();
        self.jump_unless_all(filter, next)?;
        let first = self.b.regs(n + 1);
        for (k, c) in columns.iter().enumerate() {
            let of_query = match &l.source.kind {
                SourceKind::Subquery(q) => q.select.columns.get(*c as usize),
                _ => None,
            };
            let affinity = of_query.map_or(Affinity::Blob, |x| x.affinity);
            let col = ColumnRef { table: id, column: *c, affinity, collation: Collation::Binary };
            self.column(&col, first + k as i32)?;
        }
        // What tells equal entries apart.
        match &l.source.kind {
            SourceKind::Table { table, .. } if !table.has_rowid() => {
                self.b.emit(Opcode::Sequence, icur, first + n as i32, 0);
            }
            _ => {
                self.b.emit(Opcode::Rowid, source, first + n as i32, 0);
            }
        }
        if let Some(bloom) = bloom {
            self.b.emit4(Opcode::FilterAdd, bloom, 0, first, P4::Int(eq.len() as i64));
        }
        let record = self.b.temp();
        self.b.emit(Opcode::MakeRecord, first, n as i32 + 1, record);
        self.b.emit(Opcode::SorterInsert, sorter, record, 0);
        self.b.p5(p5::AUTO_INDEX);
        self.b.free_temp(record);
        self.b.place(next);
        self.b.emit(Opcode::Next, source, top as i32, 0);
        self.b.place(done);
        let over = self.b.label();
        self.b.jump(Opcode::SorterSort, sorter, over, 0);
        self.b.p5(p5::AUTO_INDEX);
        self.b.jump4(Opcode::SorterFill, sorter, over, icur, P4::Int(0));
        self.b.place(over);
        self.b.emit(Opcode::Close, sorter, 0, 0);
        self.resume(former);
        if let Some(at) = at {
            self.b.jump_here(at);
        }
        self.places.insert(id, Place::Auto { cursor: icur, columns: columns.to_vec() });
        Ok(())
    }

    /// Computes the key to seek in an automatic index; goes to `null` where it is NULL. Answers its first register.
    pub(crate) fn auto_key(&mut self, eq: &[(i32, EqTerm)], l: &Level, null: Label) -> Result<i32> {
        let base = self.b.regs(eq.len());
        let mut affinities = Vec::new();
        for (n, (c, e)) in eq.iter().enumerate() {
            let EqTerm::Eq { value, convert, null_ok } = e else {
                return Err(internal("an automatic index on something else than an equality"));
            };
            let reg = base + n as i32;
            self.expr_to(value, reg)?;
            if !null_ok && !value.surely_not_null() {
                self.b.jump(Opcode::IsNull, reg, null, 0);
            }
            let column = match &l.source.kind {
                SourceKind::Table { table, .. } if *c >= 0 => table.columns[*c as usize].affinity,
                SourceKind::Subquery(q) => {
                    q.select.columns.get(*c as usize).map_or(Affinity::Blob, |x| x.affinity)
                }
                _ => Affinity::Blob,
            };
            affinities.push(if *convert { sought(column) } else { Affinity::Blob });
        }
        self.apply_affinity(base, &affinities);
        Ok(base)
    }

    fn auto_index(&mut self, l: &Level, p: &Prepared, o: &mut Open) -> Result<()> {
        let Access::Auto { eq, .. } = &l.access else { return Err(internal("no automatic index")) };
        let icur = p.index_cursor.ok_or_else(|| internal("no cursor for an automatic index"))?;
        let base = match o.asked {
            Some((base, bloom)) => {
                self.build_auto_index(l, p, Some(bloom))?;
                base
            }
            None => {
                let bloom = (l.bloom != Bloom::None).then(|| self.b.reg());
                self.build_auto_index(l, p, bloom)?;
                let base = self.auto_key(eq, l, o.exit)?;
                if let Some(bloom) = bloom {
                    self.ask(bloom, base, eq.len(), o.exit);
                }
                base
            }
        };
        o.cursors = [Some(icur), None];
        let k = P4::Int(eq.len() as i64);
        self.b.jump4(Opcode::SeekGE, icur, o.exit, base, k.clone());
        let top = self.b.here();
        self.b.jump4(Opcode::IdxGT, icur, o.exit, base, k);
        o.step = Step::Next { op: Opcode::Next, cursor: icur, top };
        Ok(())
    }
}

/// How many fields of a key an end of a range takes: one for NULL where it is open.
fn key_fields(b: &Option<Bound>) -> usize {
    1 + b.as_ref().map_or(0, |b| b.behind().len())
}
