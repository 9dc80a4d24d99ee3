//! Expressions into registers.

use crate::context::{Codegen, Constant, Place, Val, internal};
use iolite_base::{Error, Result};
use iolite_bytecode::{FunctionCall, Opcode, P4, p5};
use iolite_catalog::{Column, Table};
use iolite_ext::{Function, FunctionFlags, Implementation, Inline};
use iolite_plan::bound::*;
use iolite_value::{Affinity, Collation, Value};
use std::rc::Rc;

/// A field of an index that has an expression's value.
struct HeldField {
    cursor: i32,
    field: i32,
    /// The cursor may stand on a row of NULLs.
    nullable: bool,
}

impl Codegen<'_> {
    /// The register of an expression that already stands in one.
    fn known_register(&self, e: &Expr) -> Option<i32> {
        if self.known.is_empty() {
            return None;
        }
        self.known.iter().rev().find(|(k, _)| k.same(e)).map(|(_, r)| *r)
    }

    /// Where in an index the value of an expression can be read.
    fn held(&self, e: &Expr) -> Option<HeldField> {
        if !self.reads_held || matches!(e, Expr::Column(_) | Expr::Const(_) | Expr::Param(_)) {
            return None;
        }
        let at = self.places.values().find_map(|p| match p {
            Place::Table { index: Some((cursor, _)), held: Some(held), .. } => {
                let (field, _) = held.exprs.iter().find(|(_, of)| of.same(e))?;
                Some(HeldField { cursor: *cursor, field: *field as i32, nullable: held.nullable })
            }
            _ => None,
        })?;
        // Columns in registers are those of a row that the cursor has left.
        let left = e.any(&mut |x| matches!(x, Expr::Column(_)) && self.known_register(x).is_some());
        let shows = self.subtypes && (e.may_have_subtype() || self.reads_computed(e));
        (!left && !shows).then_some(at)
    }

    /// Whether an expression reads a virtual column, whose value may have a subtype as well.
    fn reads_computed(&self, e: &Expr) -> bool {
        e.any(&mut |x| match x {
            Expr::Column(c) => match self.places.get(c.table) {
                Some(Place::Table { table, .. }) => {
                    let column = usize::try_from(c.column).ok().and_then(|k| table.columns.get(k));
                    column.is_some_and(is_virtual_generated)
                }
                _ => false,
            },
            _ => false,
        })
    }

    /// Computes what a function sees: whether with subtypes, its flags say.
    pub fn with_arguments<T>(&mut self, of: &Function, f: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.subtypes;
        self.subtypes |= of.flags.has(FunctionFlags::SUBTYPE);
        let done = f(self);
        self.subtypes = before;
        done
    }

    /// Computes `e` into some register; where its value already stands in one, that one.
    pub fn expr(&mut self, e: &Expr) -> Result<Val> {
        if let Some(reg) = self.known_register(e) {
            return Ok(Val { reg, temp: false });
        }
        match e {
            Expr::Column(c) => {
                if let Some(Place::Registers { rowid, first }) = self.places.get(c.table)
                    && (c.affinity != Affinity::Real || c.column == ROWID)
                {
                    let reg = if c.column == ROWID { *rowid } else { first + c.column };
                    return Ok(Val { reg, temp: false });
                }
            }
            Expr::Agg(id, _) => {
                if let Some(reg) = self.aggs.get(*id) {
                    return Ok(Val { reg: *reg, temp: false });
                }
            }
            Expr::CaseBase(..) => {
                if let Some(reg) = self.case_bases.last() {
                    return Ok(Val { reg: *reg, temp: false });
                }
            }
            Expr::Collate(inner, _) | Expr::Plus(inner) => return self.expr(inner),
            _ => {}
        }
        if !self.inline && hoistable(e) {
            return Ok(Val { reg: self.constant(e), temp: false });
        }
        let reg = self.b.temp();
        self.expr_to(e, reg)?;
        Ok(Val { reg, temp: true })
    }

    /// Gives a register of [`Codegen::expr`] back.
    pub fn done(&mut self, v: Val) {
        if v.temp {
            self.b.free_temp(v.reg);
        }
    }

    /// Has the prologue compute a constant in its register: a large one as a whole, without registers for its parts.
    pub fn compute_constant(&mut self, e: &Expr, size: usize, reg: i32) -> Result<()> {
        let before = std::mem::replace(&mut self.inline, size > MOST_PARTS);
        let done = self.expr_compute(e, reg);
        self.inline = before;
        done
    }

    /// The register that holds a constant during the whole run.
    pub fn constant(&mut self, e: &Expr) -> i32 {
        let size = e.size();
        if let Some(c) = self.constants.iter().find(|c| c.size == size && c.expr.same(e)) {
            return c.reg;
        }
        let reg = self.b.reg();
        self.constant_in(e, reg);
        reg
    }

    /// Has the prologue compute a constant into a register that nothing else writes to.
    fn constant_in(&mut self, e: &Expr, reg: i32) {
        // Parts come before the whole: the prologue computes in this order.
        let size = e.size();
        let negates = |e: &Expr| matches!(e, Expr::Neg(_));
        if negates(e) || size > MOST_PARTS && e.any(&mut |part| negates(part)) {
            self.constant(&Expr::int(0));
        }
        if size <= MOST_PARTS {
            e.children(&mut |part| {
                let mut part = part;
                while let Expr::Collate(inner, _) | Expr::Plus(inner) = part {
                    part = inner;
                }
                self.constant(part);
            });
        }
        self.constants.push(Constant { expr: e.clone(), size, reg });
    }

    /// Computes `e` into a register of one's own, which may be changed.
    pub fn expr_owned(&mut self, e: &Expr) -> Result<i32> {
        let reg = self.b.temp();
        self.expr_to(e, reg)?;
        Ok(reg)
    }

    /// Computes a list into consecutive registers.
    pub fn expr_list(&mut self, list: &[Expr], first: i32) -> Result<()> {
        for (i, e) in list.iter().enumerate() {
            self.expr_to(e, first + i as i32)?;
        }
        Ok(())
    }

    /// Computes the columns of a row that goes to the program at once: there, a pointer of the program is one.
    pub fn output_list(&mut self, list: &[Expr], first: i32) -> Result<()> {
        for (i, e) in list.iter().enumerate() {
            match hoistable(e) && !matches!(e, Expr::Param(_)) {
                true => self.expr_to(e, first + i as i32)?,
                false => self.argument_to(e, first + i as i32)?,
            }
        }
        Ok(())
    }

    /// Computes `e` into `target`.
    pub fn expr_to(&mut self, e: &Expr, target: i32) -> Result<()> {
        if let Some(reg) = self.known_register(e) {
            self.copy(reg, target);
            return Ok(());
        }
        if let Expr::Plus(inner) | Expr::Collate(inner, _) = e {
            return self.expr_to(inner, target);
        }
        let leaf = matches!(e, Expr::Const(_) | Expr::Param(_) | Expr::TriggerColumn(..));
        if !leaf && !self.inline && hoistable(e) {
            let reg = self.constant(e);
            self.copy(reg, target);
            return Ok(());
        }
        self.expr_compute(e, target)
    }

    pub fn copy(&mut self, from: i32, to: i32) {
        if from != to {
            self.b.emit(Opcode::SCopy, from, to, 0);
        }
    }

    /// Computes `e` into `target` without looking whether it is known.
    pub fn expr_compute(&mut self, e: &Expr, target: i32) -> Result<()> {
        if let Some(entry) = self.held(e) {
            return self.read_held(e, entry, target);
        }
        self.expr_of_row(e, target)
    }

    /// Reads the value of an expression from an index.
    fn read_held(&mut self, e: &Expr, of: HeldField, target: i32) -> Result<()> {
        let none = of.nullable.then(|| {
            let none = self.b.label();
            self.b.jump(Opcode::IfNullRow, of.cursor, none, target);
            none
        });
        self.b.emit(Opcode::Column, of.cursor, of.field, target);
        if e.affinity() == Affinity::Real {
            self.b.emit(Opcode::RealAffinity, target, 0, 0);
        }
        let Some(none) = none else { return Ok(()) };
        let end = self.b.label();
        self.b.jump(Opcode::Goto, 0, end, 0);
        self.b.place(none);
        self.expr_of_row(e, target)?;
        self.b.place(end);
        Ok(())
    }

    fn expr_of_row(&mut self, e: &Expr, target: i32) -> Result<()> {
        match e {
            Expr::Const(v) => self.load(v, target),
            Expr::Param(n) => {
                self.b.emit(Opcode::Variable, *n as i32, target, 0);
            }
            Expr::Column(c) => self.column(c, target)?,
            Expr::TriggerColumn(_, slot) => {
                self.b.emit(Opcode::Param, *slot as i32, target, 0);
                self.trigger_real(e, target);
            }
            Expr::Plus(a) | Expr::Collate(a, _) => self.expr_to(a, target)?,
            Expr::Neg(a) => {
                let zero = self.constant(&Expr::int(0));
                let v = self.expr(a)?;
                self.b.emit(Opcode::Subtract, v.reg, zero, target);
                self.done(v);
            }
            Expr::BitNot(a) => self.unary(Opcode::BitNot, a, target)?,
            Expr::Not(a) => self.unary(Opcode::Not, a, target)?,
            Expr::Binary(op, a, b) => {
                let (x, y) = (self.expr(a)?, self.expr(b)?);
                let code = match op {
                    BinOp::Add => Opcode::Add,
                    BinOp::Sub => Opcode::Subtract,
                    BinOp::Mul => Opcode::Multiply,
                    BinOp::Div => Opcode::Divide,
                    BinOp::Rem => Opcode::Remainder,
                    BinOp::Concat => Opcode::Concat,
                    BinOp::BitAnd => Opcode::BitAnd,
                    BinOp::BitOr => Opcode::BitOr,
                    BinOp::ShiftLeft => Opcode::ShiftLeft,
                    BinOp::ShiftRight => Opcode::ShiftRight,
                };
                self.b.emit(code, y.reg, x.reg, target);
                self.done(y);
                self.done(x);
            }
            Expr::And(..) | Expr::Or(..) => self.logic(e, target)?,
            Expr::RowOrder(fields) => self.expr_to(&Expr::row_order(fields), target)?,
            Expr::Compare(c) => {
                let (x, y) = (self.expr(&c.lhs)?, self.expr(&c.rhs)?);
                self.compare_value(c, x.reg, y.reg, target);
                self.done(y);
                self.done(x);
            }
            Expr::Between { lo, hi } => {
                let x = self.expr(&lo.lhs)?;
                let (a, b) = (self.b.temp(), self.b.temp());
                let y = self.expr(&lo.rhs)?;
                self.compare_value(lo, x.reg, y.reg, a);
                self.done(y);
                let y = self.expr(&hi.rhs)?;
                self.compare_value(hi, x.reg, y.reg, b);
                self.done(y);
                self.b.emit(Opcode::And, a, b, target);
                self.b.free_temp(a);
                self.b.free_temp(b);
                self.done(x);
            }
            Expr::IsNull(a) | Expr::NotNull(a) => {
                let from = self.b.here();
                let v = self.expr(a)?;
                self.looks_only_at(from, p5::KIND);
                let op = if matches!(e, Expr::IsNull(_)) { Opcode::IsNull } else { Opcode::NotNull };
                let out = if v.reg == target { self.b.temp() } else { target };
                self.b.emit(Opcode::Integer, 1, out, 0);
                let at = self.b.emit(op, v.reg, 0, 0);
                self.b.emit(Opcode::Integer, 0, out, 0);
                self.b.jump_here(at);
                if out != target {
                    self.copy(out, target);
                    self.b.free_temp(out);
                }
                self.done(v);
            }
            Expr::IsTruth { e: inner, truth, not } => {
                let v = self.expr(inner)?;
                // x IS TRUE is 0 for NULL; x IS NOT TRUE is 1; likewise for FALSE.
                let invert = !*truth;
                let null_result = *not;
                let flip = invert != *not;
                self.b.emit4(Opcode::IsTrue, v.reg, target, null_result as i32, P4::Int(flip as i64));
                self.done(v);
            }
            Expr::InList(_) | Expr::InSelect(_) => self.in_value(e, target)?,
            Expr::Case { base, arms, otherwise } => {
                self.case(base.as_deref(), arms, otherwise.as_deref(), target)?
            }
            Expr::CaseBase(..) => {
                let reg = *self.case_bases.last().ok_or_else(|| internal("CASE base outside CASE"))?;
                self.copy(reg, target);
            }
            Expr::Cast(a, aff) => {
                self.expr_to(a, target)?;
                self.b.emit(Opcode::Cast, target, aff.letter() as i32, 0);
            }
            Expr::Call(c) => self.call(c, target)?,
            Expr::Agg(id, _) => {
                let reg = *self.aggs.get(*id).ok_or_else(|| Error::sql("misuse of aggregate"))?;
                self.copy(reg, target);
            }
            Expr::Subquery(s, n) => self.scalar_subquery(s, *n, target)?,
            Expr::Exists(s) => self.exists(s, target)?,
            Expr::Window(..) => return Err(internal("a window function in the place of its value")),
            Expr::Row(_) => return Err(Error::sql("row value misused")),
            Expr::Raise(kind, message) => self.raise(*kind, message.as_deref())?,
            Expr::NoSubtype(inner) => {
                self.expr_to(inner, target)?;
                self.b.emit(Opcode::ClrSubtype, target, 0, 0);
            }
            Expr::Merged(inner) => self.expr_to(inner, target)?,
            Expr::IfNotNullRow(t, inner) => {
                let cursor = match self.places.get(*t) {
                    Some(Place::Table { cursor, index, index_only, .. }) => match index {
                        Some((c, _)) if *index_only => Some(*c),
                        _ => Some(*cursor),
                    },
                    Some(
                        Place::Fields { cursor, .. } | Place::Auto { cursor, .. } | Place::Virtual { cursor },
                    ) => Some(*cursor),
                    _ => None,
                };
                let end = self.b.label();
                if let Some(c) = cursor {
                    self.b.jump(Opcode::IfNullRow, c, end, target);
                }
                // Constants inside must be computed here, not in the prologue's register.
                self.expr_to(inner, target)?;
                self.b.place(end);
            }
        }
        Ok(())
    }

    fn trigger_real(&mut self, e: &Expr, target: i32) {
        if let Expr::TriggerColumn(c, _) = e
            && c.affinity == Affinity::Real
        {
            self.b.emit(Opcode::RealAffinity, target, 0, 0);
        }
    }

    fn unary(&mut self, op: Opcode, a: &Expr, target: i32) -> Result<()> {
        let v = self.expr(a)?;
        self.b.emit(op, v.reg, target, 0);
        self.done(v);
        Ok(())
    }

    /// Loads a constant.
    pub fn load(&mut self, v: &Value, target: i32) {
        match v {
            Value::Null => {
                self.b.emit(Opcode::Null, 0, target, 0);
            }
            Value::Int(i) => self.b.load_int(*i, target),
            Value::Real(r) => {
                self.b.emit4(Opcode::Real, 0, target, 0, P4::Real(*r));
            }
            Value::Text(b, _) => {
                self.b.emit4(Opcode::String8, 0, target, 0, P4::Bytes(b.clone()));
            }
            Value::Blob(b, _) => {
                self.b.emit4(Opcode::Blob, b.len() as i32, target, 0, P4::Bytes(b.clone()));
            }
        }
    }

    /// AND and OR: the right side is not computed where the left decides.
    fn logic(&mut self, e: &Expr, target: i32) -> Result<()> {
        let (a, b, and) = match e {
            Expr::And(a, b) => (a, b, true),
            Expr::Or(a, b) => (a, b, false),
            _ => return Err(internal("not a conjunction")),
        };
        let x = self.expr(a)?;
        let out = self.b.temp();
        let skip = if iolite_plan::has_subquery(b) {
            // Worth a jump: a nested query may not have to run.
            let at = self.b.emit(if and { Opcode::IfNot } else { Opcode::If }, x.reg, 0, 0);
            Some(at)
        } else {
            None
        };
        let y = self.expr(b)?;
        self.b.emit(if and { Opcode::And } else { Opcode::Or }, x.reg, y.reg, out);
        self.done(y);
        if let Some(at) = skip {
            let end = self.b.emit(Opcode::Goto, 0, 0, 0);
            self.b.jump_here(at);
            self.b.emit(Opcode::Integer, !and as i32, out, 0);
            self.b.jump_here(end);
        }
        self.done(x);
        self.copy(out, target);
        self.b.free_temp(out);
        Ok(())
    }

    /// `r[target] = r[x] op r[y]` as 1, 0 or NULL.
    fn compare_value(&mut self, c: &Compare, x: i32, y: i32, target: i32) {
        let out = if target == x || target == y { self.b.temp() } else { target };
        self.b.emit(Opcode::Integer, 1, out, 0);
        let at = self.emit_compare(c, c.op, x, y, false);
        if c.null_eq {
            self.b.emit(Opcode::Integer, 0, out, 0);
        } else {
            self.b.emit(Opcode::ZeroOrNull, x, out, y);
        }
        self.b.jump_here(at);
        if out != target {
            self.copy(out, target);
            self.b.free_temp(out);
        }
    }

    /// Emits the jump of a comparison, target open.
    pub fn emit_compare(&mut self, c: &Compare, op: CmpOp, x: i32, y: i32, jump_if_null: bool) -> usize {
        let code = match op {
            CmpOp::Eq => Opcode::Eq,
            CmpOp::Ne => Opcode::Ne,
            CmpOp::Lt => Opcode::Lt,
            CmpOp::Le => Opcode::Le,
            CmpOp::Gt => Opcode::Gt,
            CmpOp::Ge => Opcode::Ge,
        };
        let p4 = if c.collation == Collation::Binary {
            P4::None
        } else {
            P4::Collation(Rc::new(c.collation.clone()))
        };
        let at = self.b.emit4(code, y, 0, x, p4);
        let mut flags = (c.affinity as u16).saturating_sub(b'@' as u16) & p5::AFFINITY_MASK;
        if c.null_eq {
            flags |= p5::NULL_EQ;
        } else if jump_if_null {
            flags |= p5::JUMP_IF_NULL;
        }
        self.b.p5(flags);
        at
    }

    fn case(
        &mut self,
        base: Option<&Expr>,
        arms: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
        target: i32,
    ) -> Result<()> {
        let end = self.b.label();
        let base_reg = match base {
            Some(b) => {
                let reg = self.b.reg();
                self.expr_to(b, reg)?;
                self.case_bases.push(reg);
                true
            }
            None => false,
        };
        let out = self.b.temp();
        for (when, then) in arms {
            let next = self.b.label();
            self.jump_unless(when, next, true)?;
            self.expr_to(then, out)?;
            self.b.jump(Opcode::Goto, 0, end, 0);
            self.b.place(next);
        }
        match otherwise {
            Some(e) => self.expr_to(e, out)?,
            None => {
                self.b.emit(Opcode::Null, 0, out, 0);
            }
        }
        self.b.place(end);
        if base_reg {
            self.case_bases.pop();
        }
        self.copy(out, target);
        self.b.free_temp(out);
        Ok(())
    }

    fn call(&mut self, c: &Call, target: i32) -> Result<()> {
        if let Implementation::Inline(i) = c.function.imp {
            return self.inline(i, c, target);
        }
        // A constant call is computed once, where it first stands, so that its errors come only if it is reached.
        let flags = c.function.flags;
        let steady = flags.has(FunctionFlags::DETERMINISTIC)
            || flags.has(FunctionFlags::SLOW_CHANGE) && !self.in_returning;
        let constant = steady && c.args.iter().all(Expr::is_constant);
        if constant && !self.in_trigger {
            let reg = self.b.reg();
            let once = self.b.emit(Opcode::Once, 0, 0, 0);
            self.emit_call(c, reg)?;
            self.b.jump_here(once);
            self.copy(reg, target);
            return Ok(());
        }
        self.emit_call(c, target)
    }

    /// Computes what a function of the user or a virtual table is given: there, a pointer of the program is one.
    pub fn argument_to(&mut self, e: &Expr, target: i32) -> Result<()> {
        match e {
            // Of a call whose value is known there is nothing but the value.
            Expr::Call(_) if self.known_register(e).is_some() || self.held(e).is_some() => {
                self.expr_to(e, target)
            }
            Expr::Param(n) => {
                self.b.emit(Opcode::Variable, *n as i32, target, 1);
                Ok(())
            }
            Expr::Call(c) if matches!(c.function.imp, Implementation::User(_)) => {
                self.passes = true;
                self.call(c, target)
            }
            Expr::Column(_) => {
                let from = self.b.here();
                self.expr_to(e, target)?;
                self.flag_alone(from, Opcode::VColumn, p5::PASSES);
                Ok(())
            }
            _ => self.expr_to(e, target),
        }
    }

    /// If all the code since `from` is one that reads a column: it is read for those of its properties alone.
    pub fn looks_only_at(&mut self, from: usize, what: u16) {
        self.flag_alone(from, Opcode::Column, what);
    }

    /// Adds a flag to all the code since `from`, if that is one instruction of this kind.
    fn flag_alone(&mut self, from: usize, op: Opcode, flag: u16) {
        if self.b.here() == from + 1 {
            let i = self.b.at(from);
            i.p5 |= if i.op == op { flag } else { 0 };
        }
    }

    fn emit_call(&mut self, c: &Call, target: i32) -> Result<()> {
        if c.function.flags.has(FunctionFlags::UNKNOWN) {
            return Err(Function::unknown_error(&c.function.name));
        }
        let passes = std::mem::take(&mut self.passes);
        let n = c.args.len();
        let first = self.b.regs(n.max(1));
        self.with_arguments(&c.function, |g| {
            c.args.iter().zip(first..).try_for_each(|(a, reg)| match c.function.imp {
                Implementation::User(_) => g.argument_to(a, reg),
                _ if hoistable(a) => {
                    g.constant_in(a, reg);
                    Ok(())
                }
                _ => {
                    let from = g.b.here();
                    g.expr_to(a, reg)?;
                    g.looks_only_at(from, looked_at(&c.function.name));
                    Ok(())
                }
            })
        })?;
        let (mut constant, mut bound) = (0u32, 0u32);
        for (i, a) in c.args.iter().enumerate().take(31) {
            if is_parameter(a) {
                bound |= 1 << i;
            }
            if a.is_constant() {
                constant |= 1 << i;
            }
        }
        let site = self.b.site();
        let cursor = match c.overloaded.and_then(|t| self.places.get(t)) {
            Some(Place::Virtual { cursor }) => Some(*cursor as usize),
            _ => None,
        };
        let call = FunctionCall {
            cursor,
            function: c.function.clone(),
            args: n,
            collation: c.collation.clone(),
            site,
            pure: c.pure,
            passes,
            bound,
            origins: Vec::new(),
        };
        self.b.emit4(Opcode::Function, constant as i32, first, target, P4::Function(Rc::new(call)));
        Ok(())
    }

    fn inline(&mut self, i: Inline, c: &Call, target: i32) -> Result<()> {
        match i {
            Inline::Coalesce => {
                let end = self.b.label();
                let out = self.b.temp();
                for (k, a) in c.args.iter().enumerate() {
                    self.expr_to(a, out)?;
                    if k + 1 < c.args.len() {
                        self.b.jump(Opcode::NotNull, out, end, 0);
                    }
                }
                self.b.place(end);
                self.copy(out, target);
                self.b.free_temp(out);
            }
            Inline::Iif => {
                // iif(c1, v1, c2, v2, ..., otherwise).
                let arms: Vec<(Expr, Expr)> =
                    c.args.chunks_exact(2).map(|p| (p[0].clone(), p[1].clone())).collect();
                let otherwise = if c.args.len() % 2 == 1 { c.args.last() } else { None };
                self.case(None, &arms, otherwise, target)?;
            }
            Inline::Nullif => {
                let out = self.b.temp();
                self.expr_to(&c.args[0], out)?;
                let y = self.expr(&c.args[1])?;
                let cmp = Compare {
                    op: CmpOp::Ne,
                    null_eq: false,
                    affinity: Affinity::Blob,
                    collation: c.collation.clone(),
                    lhs: c.args[0].clone(),
                    rhs: c.args[1].clone(),
                };
                let at = self.emit_compare(&cmp, CmpOp::Ne, out, y.reg, true);
                self.b.emit(Opcode::Null, 0, out, 0);
                self.b.jump_here(at);
                self.done(y);
                self.copy(out, target);
                self.b.free_temp(out);
            }
            Inline::Likelihood | Inline::Likely => self.expr_to(&c.args[0], target)?,
            Inline::SqliteOffset => {
                self.b.emit(Opcode::Null, 0, target, 0);
            }
            other => return self.unsupported(&format!("{other:?}")),
        }
        Ok(())
    }

    /// Reads a column.
    pub fn column(&mut self, c: &ColumnRef, target: i32) -> Result<()> {
        let Some(place) = self.places.get(c.table).cloned() else {
            return Err(internal("a column of a table that has no cursor"));
        };
        match place {
            Place::Registers { rowid, first } => {
                let from = if c.column == ROWID { rowid } else { first + c.column };
                if from == 0 {
                    self.b.emit(Opcode::Null, 0, target, 0);
                } else {
                    self.copy(from, target);
                    self.as_real(c, target);
                }
            }
            Place::Fields { cursor, offset } => {
                if c.column == ROWID {
                    self.b.emit(Opcode::Rowid, cursor, target, 0);
                } else {
                    self.b.emit(Opcode::Column, cursor, c.column + offset, target);
                    self.as_real(c, target);
                }
            }
            Place::Auto { cursor, columns } => {
                let field = columns.iter().position(|k| *k == c.column).unwrap_or(columns.len());
                self.b.emit(Opcode::Column, cursor, field as i32, target);
            }
            Place::Virtual { cursor } => {
                if c.column == ROWID {
                    self.b.emit(Opcode::VRowid, cursor, target, 0);
                } else {
                    self.b.emit(Opcode::VColumn, cursor, c.column, target);
                }
            }
            Place::Table { cursor, table, binding, index, index_only, held } => {
                if let Some((_, value)) = held.iter().flat_map(|h| &*h.fixed).find(|f| f.0 == c.column) {
                    return self.expr_to(&Expr::Const(value.clone()), target);
                }
                if let Some((icur, ix)) = &index {
                    if c.column == ROWID {
                        if table.has_rowid() {
                            self.b.emit(Opcode::IdxRowid, *icur, target, 0);
                            return Ok(());
                        }
                    } else if let Some(f) = ix.field_of(c.column as usize)
                        && (index_only || f < ix.columns.len())
                    {
                        // A row of a WITHOUT ROWID table may be older than its last columns.
                        let p4 = if !table.has_rowid() && ix.origin == iolite_catalog::IndexOrigin::PrimaryKey
                        {
                            absent(&table, c.column as usize)
                        } else {
                            P4::None
                        };
                        self.b.emit4(Opcode::Column, *icur, f as i32, target, p4);
                        if table.columns[c.column as usize].affinity == Affinity::Real {
                            self.b.emit(Opcode::RealAffinity, target, 0, 0);
                        }
                        return Ok(());
                    }
                }
                let computed = c.column >= 0
                    && table.rowid_alias != Some(c.column as usize)
                    && is_virtual_generated(&table.columns[c.column as usize]);
                if computed {
                    // A row of NULLs has no values to compute with: the column is NULL, too.
                    let end = self.b.label();
                    let at = index.as_ref().filter(|_| index_only).map_or(cursor, |(i, _)| *i);
                    self.b.jump(Opcode::IfNullRow, at, end, target);
                    self.table_column(cursor, &table, binding.as_deref(), c.column, target)?;
                    self.b.place(end);
                    return Ok(());
                }
                self.table_column(cursor, &table, binding.as_deref(), c.column, target)?;
            }
        }
        Ok(())
    }

    /// A query's column of affinity REAL shows whole numbers as reals, whichever arm they come from.
    fn as_real(&mut self, c: &ColumnRef, target: i32) {
        if c.affinity == Affinity::Real && c.column != ROWID {
            self.b.emit(Opcode::RealAffinity, target, 0, 0);
        }
    }

    /// Reads a column of a table from its own cursor.
    fn table_column(
        &mut self,
        cursor: i32,
        t: &Rc<Table>,
        binding: Option<&TableBinding>,
        column: i32,
        target: i32,
    ) -> Result<()> {
        if column == ROWID || t.rowid_alias == Some(column as usize) {
            self.b.emit(Opcode::Rowid, cursor, target, 0);
            return Ok(());
        }
        let col = &t.columns[column as usize];
        let Some(field) = t.field_of[column as usize] else {
            return self.computed_column(t, binding, column as usize, target);
        };
        self.b.emit4(Opcode::Column, cursor, field as i32, target, absent(t, column as usize));
        if self.copy_columns {
            self.b.p5(p5::COPY);
        }
        if col.affinity == Affinity::Real {
            self.b.emit(Opcode::RealAffinity, target, 0, 0);
        }
        Ok(())
    }

    /// Computes a generated column that is not stored.
    fn computed_column(
        &mut self,
        t: &Rc<Table>,
        binding: Option<&TableBinding>,
        column: usize,
        target: i32,
    ) -> Result<()> {
        let found = binding.and_then(|b| b.computed.iter().find(|(c, _)| *c == column));
        let e = match found {
            Some((_, Ok(e))) => e,
            Some((_, Err(e))) => return Err(e.clone()),
            None => return Err(internal("a column that is stored nowhere")),
        };
        let known = std::mem::take(&mut self.known);
        let r = self.expr_to(e, target);
        self.known = known;
        r?;
        let affinity = t.columns[column].affinity;
        if affinity > Affinity::Blob {
            self.b.emit4(Opcode::Affinity, target, 1, 0, P4::Affinities(Rc::from([affinity])));
        }
        Ok(())
    }
}

/// What a record that ends before the column stands for: rows older than an ALTER TABLE ADD COLUMN.
fn absent(t: &Table, column: usize) -> P4 {
    t.absent_value(column).map_or(P4::None, |v| P4::Value(v.clone()))
}

fn is_virtual_generated(c: &Column) -> bool {
    !c.is_stored()
}

/// Of as many expressions a constant may consist whose parts are constants of their own: each of these is compared with others and copied,
/// with all that is below it.
const MOST_PARTS: usize = 32;

/// Whether the expression is a constant that the prologue may compute: it cannot fail and costs little.
fn hoistable(e: &Expr) -> bool {
    match e {
        // The rows of a trigger stay what they are while its program runs.
        Expr::Const(_) | Expr::Param(_) | Expr::TriggerColumn(..) => true,
        Expr::Binary(_, a, b) => hoistable(a) && hoistable(b),
        Expr::Neg(a)
        | Expr::BitNot(a)
        | Expr::Not(a)
        | Expr::Plus(a)
        | Expr::Collate(a, _)
        | Expr::Cast(a, _) => hoistable(a),
        Expr::Compare(c) => hoistable(&c.lhs) && hoistable(&c.rhs) && c.collation.is_binary(),
        Expr::IsNull(a) | Expr::NotNull(a) => hoistable(a),
        _ => false,
    }
}

/// What a built-in function looks at of its argument, as flags of a `Column`; 0: all.
fn looked_at(function: &str) -> u16 {
    match function {
        "length" => p5::SIZE,
        "octet_length" => p5::SIZE | p5::KIND,
        "typeof" => p5::KIND,
        _ => 0,
    }
}

/// Whether a value is a parameter's, as it was bound or under CAST.
fn is_parameter(e: &Expr) -> bool {
    match e {
        Expr::Param(_) => true,
        Expr::Plus(a) | Expr::Collate(a, _) | Expr::Cast(a, _) => is_parameter(a),
        _ => false,
    }
}
