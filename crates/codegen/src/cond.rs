//! Conditions as jumps, and IN.

use crate::context::{Codegen, Dest, internal};
use iolite_base::Result;
use iolite_bytecode::{Label, Opcode, P4, p5};
use iolite_plan::bound::*;
use iolite_plan::explain::Role;
use iolite_plan::plan::{Lookup, SelectPlan};
use iolite_value::{Affinity, Collation, KeyInfo};
use std::rc::Rc;

impl Codegen<'_> {
    /// Jumps to `to` if `e` is true; if it is NULL, jumps if `null_jumps`.
    pub fn jump_if(&mut self, e: &Expr, to: Label, null_jumps: bool) -> Result<()> {
        match e {
            // What NULL leaves open the other side decides.
            Expr::And(a, b) => {
                let over = self.b.label();
                self.jump_unless(a, over, !null_jumps)?;
                self.jump_if(b, to, null_jumps)?;
                self.b.place(over);
            }
            Expr::Or(a, b) => {
                self.jump_if(a, to, null_jumps)?;
                self.jump_if(b, to, null_jumps)?;
            }
            Expr::Between { lo, hi } => {
                let over = self.b.label();
                let x = self.expr(&lo.lhs)?;
                self.jump_compared(x.reg, lo, lo.op.negated(), over, !null_jumps)?;
                self.jump_compared(x.reg, hi, hi.op, to, null_jumps)?;
                self.done(x);
                self.b.place(over);
            }
            Expr::InList(i) => self.jump_in(e, i.not, to, null_jumps)?,
            Expr::InSelect(i) => self.jump_in(e, i.not, to, null_jumps)?,
            Expr::Not(a) => self.jump_unless(a, to, null_jumps)?,
            Expr::IsTruth { e, truth, not } if truth != not => self.jump_if(e, to, *not)?,
            Expr::IsTruth { e, not, .. } => self.jump_unless(e, to, *not)?,
            Expr::RowOrder(fields) => self.jump_if(&Expr::row_order(fields), to, null_jumps)?,
            Expr::Compare(c) => {
                let x = self.expr(&c.lhs)?;
                self.jump_compared(x.reg, c, c.op, to, null_jumps)?;
                self.done(x);
            }
            Expr::IsNull(a) | Expr::NotNull(a) => {
                let from = self.b.here();
                let v = self.expr(a)?;
                self.looks_only_at(from, p5::KIND);
                let op = if matches!(e, Expr::IsNull(_)) { Opcode::IsNull } else { Opcode::NotNull };
                self.b.jump(op, v.reg, to, 0);
                self.done(v);
            }
            _ => {
                let v = self.expr(e)?;
                self.b.jump(Opcode::If, v.reg, to, null_jumps as i32);
                self.done(v);
            }
        }
        Ok(())
    }

    /// Jumps to `to` if the left side of `c`, which is in a register, stands in relation `op` to its right side.
    #[inline(always)]
    fn jump_compared(&mut self, x: i32, c: &Compare, op: CmpOp, to: Label, null_jumps: bool) -> Result<()> {
        let y = self.expr(&c.rhs)?;
        let at = self.emit_compare(c, op, x, y.reg, null_jumps);
        self.b.at(at).p2 = self.b.raw(to);
        self.done(y);
        Ok(())
    }

    /// Jumps to `to` unless all of these are true.
    #[inline]
    pub fn jump_unless_all(&mut self, all: &[Expr], to: Label) -> Result<()> {
        if all.is_empty() { Ok(()) } else { self.jump_unless_each(&mut all.iter(), to) }
    }

    /// The same. A column that is compared several times in a row, as by BETWEEN, is read once.
    pub fn jump_unless_each(&mut self, all: &mut dyn Iterator<Item = &Expr>, to: Label) -> Result<()> {
        let mut rest = all.peekable();
        while let Some(e) = rest.next() {
            let Expr::Compare(first) = e else {
                self.jump_unless(e, to, true)?;
                continue;
            };
            let x = self.expr(&first.lhs)?;
            let mut now = first;
            loop {
                self.jump_compared(x.reg, now, now.op.negated(), to, true)?;
                let again = rest.next_if(|e| {
                    matches!(e, Expr::Compare(c) if matches!(c.lhs, Expr::Column(_)) && c.lhs.same(&first.lhs))
                });
                let Some(Expr::Compare(c)) = again else { break };
                now = c;
            }
            self.done(x);
        }
        Ok(())
    }

    /// Jumps to `to` unless `e` is true; if it is NULL, jumps if `null_jumps`.
    pub fn jump_unless(&mut self, e: &Expr, to: Label, null_jumps: bool) -> Result<()> {
        match e {
            Expr::And(a, b) => {
                self.jump_unless(a, to, null_jumps)?;
                self.jump_unless(b, to, null_jumps)?;
            }
            Expr::Or(a, b) => {
                let over = self.b.label();
                self.jump_if(a, over, !null_jumps)?;
                self.jump_unless(b, to, null_jumps)?;
                self.b.place(over);
            }
            Expr::Not(a) => self.jump_if(a, to, null_jumps)?,
            Expr::IsTruth { e, truth, not } if truth != not => self.jump_unless(e, to, !not)?,
            Expr::IsTruth { e, not, .. } => self.jump_if(e, to, !not)?,
            Expr::RowOrder(fields) if null_jumps => self.jump_unless_ordered(fields, to)?,
            Expr::RowOrder(fields) => self.jump_unless(&Expr::row_order(fields), to, false)?,
            Expr::Compare(c) => {
                let x = self.expr(&c.lhs)?;
                self.jump_compared(x.reg, c, c.op.negated(), to, null_jumps)?;
                self.done(x);
            }
            Expr::Between { lo, hi } => {
                let x = self.expr(&lo.lhs)?;
                for c in [lo, hi] {
                    self.jump_compared(x.reg, c, c.op.negated(), to, null_jumps)?;
                }
                self.done(x);
            }
            Expr::IsNull(a) | Expr::NotNull(a) => {
                let from = self.b.here();
                let v = self.expr(a)?;
                self.looks_only_at(from, p5::KIND);
                let op = if matches!(e, Expr::IsNull(_)) { Opcode::NotNull } else { Opcode::IsNull };
                self.b.jump(op, v.reg, to, 0);
                self.done(v);
            }
            Expr::InList(i) => self.jump_in(e, !i.not, to, null_jumps)?,
            Expr::InSelect(i) => self.jump_in(e, !i.not, to, null_jumps)?,
            _ => {
                let v = self.expr(e)?;
                self.b.jump(Opcode::IfNot, v.reg, to, null_jumps as i32);
                self.done(v);
            }
        }
        Ok(())
    }

    /// Jumps to `to` unless a row surely stands before or behind another, as the comparisons of its fields say.
    fn jump_unless_ordered(&mut self, fields: &[Compare], to: Label) -> Result<()> {
        let [before @ .., last] = fields else { return Ok(()) };
        let yes = self.b.label();
        for c in before {
            let (x, y) = (self.expr(&c.lhs)?, self.expr(&c.rhs)?);
            let at = self.emit_compare(c, c.op, x.reg, y.reg, false);
            self.b.at(at).p2 = self.b.raw(yes);
            let at = self.emit_compare(c, CmpOp::Ne, x.reg, y.reg, true);
            self.b.at(at).p2 = self.b.raw(to);
            self.done(y);
            self.done(x);
        }
        let x = self.expr(&last.lhs)?;
        self.jump_compared(x.reg, last, last.op.negated(), to, true)?;
        self.done(x);
        self.b.place(yes);
        Ok(())
    }

    /// Jumps to `to` if the value is in the list or query of IN, or if it is not (`missing`); if that is not known, jumps if
    /// `null_jumps`.
    fn jump_in(&mut self, e: &Expr, missing: bool, to: Label, null_jumps: bool) -> Result<()> {
        let over = self.b.label();
        let null = if null_jumps { to } else { over };
        let no = if missing { to } else { over };
        match e {
            Expr::InList(i) => self.in_list_jump(i, no, null)?,
            Expr::InSelect(i) => self.in_select_jump(i, no, null)?,
            _ => return Err(internal("IN without a list")),
        }
        if !missing {
            self.b.jump(Opcode::Goto, 0, to, 0);
        }
        self.b.place(over);
        Ok(())
    }

    /// IN as a value: 1, 0 or NULL.
    pub fn in_value(&mut self, e: &Expr, target: i32) -> Result<()> {
        let (no, null, end) = (self.b.label(), self.b.label(), self.b.label());
        let not = match e {
            Expr::InList(i) => {
                self.in_list_jump(i, no, null)?;
                i.not
            }
            Expr::InSelect(i) => {
                self.in_select_jump(i, no, null)?;
                i.not
            }
            _ => false,
        };
        self.b.emit(Opcode::Integer, !not as i32, target, 0);
        self.b.jump(Opcode::Goto, 0, end, 0);
        self.b.place(no);
        self.b.emit(Opcode::Integer, not as i32, target, 0);
        self.b.jump(Opcode::Goto, 0, end, 0);
        self.b.place(null);
        self.b.emit(Opcode::Null, 0, target, 0);
        self.b.place(end);
        Ok(())
    }

    /// Falls through if the value is in the list; jumps to `no` if it is not, to `null` if that is unknown.
    fn in_list_jump(&mut self, i: &InList, no: Label, null: Label) -> Result<()> {
        let constant = i.list.iter().all(Expr::is_constant);
        if constant && i.list.len() > 2 {
            let set = self.list_members(i)?;
            let reg = self.expr_owned(&i.lhs)?;
            self.apply_affinity(reg, &[i.affinity]);
            let members = Members { set, some: true, nulls: !i.list.iter().all(Expr::surely_not_null) };
            self.ask_members(members, reg, 1, no, null);
            self.b.free_temp(reg);
            return Ok(());
        }
        let x = self.expr_owned(&i.lhs)?;
        if i.affinity > Affinity::Blob {
            self.apply_affinity(x, &[i.affinity]);
        }
        let yes = self.b.label();
        let tells = no != null;
        let track = tells && !i.list.iter().all(Expr::surely_not_null);
        let null_seen = if track { self.b.temp() } else { 0 };
        if track {
            self.b.emit(Opcode::Integer, 0, null_seen, 0);
        }
        for item in &i.list {
            let y = self.expr(item)?;
            let c = Compare {
                op: CmpOp::Eq,
                null_eq: false,
                affinity: i.affinity,
                collation: i.collation.clone(),
                lhs: Expr::int(0),
                rhs: Expr::int(0),
            };
            let at = self.emit_compare(&c, CmpOp::Eq, x, y.reg, false);
            self.b.at(at).p2 = self.b.raw(yes);
            if track && !item.surely_not_null() {
                let not_null = self.b.emit(Opcode::NotNull, y.reg, 0, 0);
                self.b.emit(Opcode::Integer, 1, null_seen, 0);
                self.b.jump_here(not_null);
            }
            self.done(y);
        }
        if tells {
            self.b.jump(Opcode::IsNull, x, null, 0);
        }
        if track {
            self.b.jump(Opcode::If, null_seen, null, 0);
            self.b.free_temp(null_seen);
        }
        self.b.jump(Opcode::Goto, 0, no, 0);
        self.b.place(yes);
        self.b.free_temp(x);
        Ok(())
    }

    /// The members of a constant list, added once.
    fn list_members(&mut self, i: &InList) -> Result<i32> {
        let set = self.b.cursor();
        let once = self.b.emit(Opcode::Once, 0, 0, 0);
        let key = self.key_of(std::slice::from_ref(&i.collation));
        self.b.emit4(Opcode::SetOpen, set, 0, 0, key);
        let value = self.b.temp();
        for item in &i.list {
            self.expr_to(item, value)?;
            self.apply_affinity(value, &[i.affinity]);
            let next = self.b.label();
            self.b.jump(Opcode::SetAdd, set, next, value);
            self.b.place(next);
        }
        self.b.free_temp(value);
        self.b.jump_here(once);
        Ok(set)
    }

    /// The description of rows that compare like this.
    fn key_of(&self, collations: &[Collation]) -> P4 {
        P4::KeyInfo(KeyInfo::ascending(collations.iter().cloned(), self.encoding))
    }

    /// Asks whether `n` registers are a member: falls through if they are. Several registers are asked for only where `no` and
    /// `null` are one.
    fn ask_members(&mut self, m: Members, first: i32, n: usize, no: Label, null: Label) {
        if no == null {
            // Unknown counts as no.
            for k in 0..n as i32 {
                self.b.jump(Opcode::IsNull, first + k, no, 0);
            }
            self.b.jump(Opcode::SetMissing, m.set, no, first);
            return;
        }
        let (yes, asked_null, missing) = (self.b.label(), self.b.label(), self.b.label());
        self.b.jump(Opcode::IsNull, first, asked_null, 0);
        self.b.jump(Opcode::SetMissing, m.set, missing, first);
        self.b.jump(Opcode::Goto, 0, yes, 0);
        // Nothing is in an empty set, not even NULL.
        self.b.place(asked_null);
        if !m.some {
            self.b.jump(Opcode::SetEmpty, m.set, no, 0);
        }
        self.b.jump(Opcode::Goto, 0, null, 0);
        self.b.place(missing);
        if m.nulls {
            let r = self.b.temp();
            self.b.emit(Opcode::Null, 0, r, 0);
            self.b.jump(Opcode::SetMissing, m.set, no, r);
            self.b.free_temp(r);
            self.b.jump(Opcode::Goto, 0, null, 0);
        } else {
            self.b.jump(Opcode::Goto, 0, no, 0);
        }
        self.b.place(yes);
    }

    /// The set of a constant list, built once.
    pub fn list_set(&mut self, i: &InList) -> Result<i32> {
        let cursor = self.b.cursor();
        let once = self.b.emit(Opcode::Once, 0, 0, 0);
        self.fill_list_set(i, cursor)?;
        self.b.jump_here(once);
        Ok(cursor)
    }

    /// Fills a transient index with the values of a list.
    pub fn fill_list_set(&mut self, i: &InList, cursor: i32) -> Result<()> {
        let key = self.key_of(std::slice::from_ref(&i.collation));
        self.b.emit4(Opcode::OpenEphemeral, cursor, 1, 0, key);
        let (value, record) = (self.b.temp(), self.b.temp());
        let affinity = P4::Affinities(Rc::from([i.affinity]));
        for item in &i.list {
            self.expr_to(item, value)?;
            self.b.emit4(Opcode::MakeRecord, value, 1, record, affinity.clone());
            self.b.emit4(Opcode::IdxInsert, cursor, record, value, P4::Int(1));
        }
        self.b.free_temp(value);
        self.b.free_temp(record);
        Ok(())
    }

    /// Applies affinities to consecutive registers.
    pub fn apply_affinity(&mut self, first: i32, affinities: &[Affinity]) {
        if affinities.iter().any(|a| *a > Affinity::Blob) {
            let n = affinities.len() as i32;
            self.b.emit4(Opcode::Affinity, first, n, 0, P4::Affinities(Rc::from(affinities)));
        }
    }

    fn in_select_jump(&mut self, i: &InSelect, no: Label, null: Label) -> Result<()> {
        let n = i.lhs.len();
        let plan = self.plan_of(&i.select)?;
        if let Some(l) = &plan.lookup {
            return self.look_up(i, plan, l, no, null);
        }
        // Whether a row that is not there differs for sure is asked of each of the rows, unless it does not matter.
        let hashed = n == 1 || no == null;
        let cursor = if hashed { self.select_members(i)? } else { self.select_set(i)? };
        let first = self.b.regs(n);
        self.expr_list(&i.lhs, first)?;
        self.apply_affinity(first, &i.affinities);
        if hashed {
            self.ask_members(Members { set: cursor, some: false, nulls: true }, first, n, no, null);
            return Ok(());
        }
        self.ask_rows(cursor, first, &i.collations, no, null);
        Ok(())
    }

    /// Looks a value up in the table or index that holds what the query would give.
    fn look_up(&mut self, i: &InSelect, plan: &SelectPlan, l: &Lookup, no: Label, null: Label) -> Result<()> {
        let former = self.begin(plan, Role::Query);
        let level = &plan.cores[0].levels[0];
        let (db, table) = level.source.table().ok_or_else(|| internal("IN without a table"))?;
        let cursor = self.b.cursor();
        let once = self.b.emit(Opcode::Once, 0, 0, 0);
        match l {
            Lookup::Rowids => self.open_cursor(cursor, db, table, None, Opcode::OpenRead)?,
            Lookup::Index(index, key, _) => {
                let root = index.root.get() as i32;
                self.b.emit4(Opcode::OpenRead, cursor, root, db as i32, P4::KeyInfo(key.clone()));
            }
        }
        self.b.jump_here(once);
        self.resume(former);
        let value = self.b.regs(1);
        self.expr_list(&i.lhs, value)?;
        self.apply_affinity(value, &i.affinities);
        let (missing, asked_null, yes) = (self.b.label(), self.b.label(), self.b.label());
        self.b.jump(Opcode::IsNull, value, asked_null, 0);
        match l {
            Lookup::Rowids => self.b.jump(Opcode::SeekRowid, cursor, missing, value),
            Lookup::Index(..) => self.b.jump4(Opcode::NotFound, cursor, missing, value, P4::Int(1)),
        };
        self.b.jump(Opcode::Goto, 0, yes, 0);
        // Nothing is in an empty table, not even NULL.
        self.b.place(asked_null);
        if no != null {
            self.b.jump(Opcode::Rewind, cursor, no, 0);
        }
        self.b.jump(Opcode::Goto, 0, null, 0);
        self.b.place(missing);
        if let (Lookup::Index(_, _, true), true) = (l, no != null) {
            let r = self.b.temp();
            self.b.emit(Opcode::Null, 0, r, 0);
            self.b.jump4(Opcode::Found, cursor, null, r, P4::Int(1));
            self.b.free_temp(r);
        }
        self.b.jump(Opcode::Goto, 0, no, 0);
        self.b.place(yes);
        Ok(())
    }

    /// The members that a nested query gives: added once if it depends on nothing outside.
    fn select_members(&mut self, i: &InSelect) -> Result<i32> {
        let set = self.b.cursor();
        let affinities = Rc::from(&i.affinities[..]);
        self.fill_once(i, |g| {
            g.fill_from_select(i, Opcode::SetOpen, set, &Dest::Members { set, affinities })
        })?;
        Ok(set)
    }

    fn fill_once(&mut self, i: &InSelect, fill: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let once = i.select.outer.is_empty() && !self.in_trigger;
        let at = if once { Some(self.b.emit(Opcode::Once, 0, 0, 0)) } else { None };
        fill(self)?;
        if let Some(at) = at {
            self.b.jump_here(at);
        }
        Ok(())
    }

    /// The set of a nested query: built once if it depends on nothing outside.
    pub fn select_set(&mut self, i: &InSelect) -> Result<i32> {
        let cursor = self.b.cursor();
        self.fill_once(i, |g| g.fill_select_set(i, cursor))?;
        Ok(cursor)
    }

    /// Fills a transient index with the rows of a nested query.
    pub fn fill_select_set(&mut self, i: &InSelect, cursor: i32) -> Result<()> {
        let dest = Dest::Set { cursor, affinities: Some(Rc::from(&i.affinities[..])) };
        self.fill_from_select(i, Opcode::OpenEphemeral, cursor, &dest)
    }

    fn fill_from_select(&mut self, i: &InSelect, open: Opcode, cursor: i32, dest: &Dest) -> Result<()> {
        let key = self.key_of(&i.collations);
        self.b.emit4(open, cursor, i.lhs.len() as i32, 0, key);
        let plan = self.plan_of(&i.select)?;
        let former = self.begin(plan, Role::Query);
        self.query(plan, dest)?;
        self.resume(former);
        Ok(())
    }

    /// Looks several registers up in a transient index: falls through if found.
    fn ask_rows(&mut self, cursor: i32, first: i32, collations: &[Collation], no: Label, null: Label) {
        let n = collations.len();
        let yes = self.b.label();
        let some_null = self.b.label();
        for k in 0..n as i32 {
            self.b.jump(Opcode::IsNull, first + k, some_null, 0);
        }
        self.b.jump4(Opcode::Found, cursor, yes, first, P4::Int(n as i64));
        // Not found, or something is NULL: it is unknown if there is a row that differs in no field for sure.
        self.b.place(some_null);
        self.b.jump(Opcode::Rewind, cursor, no, 0);
        let top = self.b.here();
        let next = self.b.label();
        let r = self.b.temp();
        for (k, coll) in collations.iter().enumerate() {
            self.b.emit(Opcode::Column, cursor, k as i32, r);
            let p4 = P4::Collation(Rc::new(coll.clone()));
            let at = self.b.jump4(Opcode::Ne, r, next, first + k as i32, p4);
            debug_assert!(at > 0);
            self.b.p5((Affinity::Blob as u16 - b'@' as u16) & p5::AFFINITY_MASK);
        }
        self.b.free_temp(r);
        self.b.jump(Opcode::Goto, 0, null, 0);
        self.b.place(next);
        self.b.emit(Opcode::Next, cursor, top as i32, 0);
        self.b.jump(Opcode::Goto, 0, no, 0);
        self.b.place(yes);
    }
}

/// Something that a value may be in.
struct Members {
    set: i32,
    /// It is surely not empty.
    some: bool,
    /// NULL may be among them.
    nulls: bool,
}
