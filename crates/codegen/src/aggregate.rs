//! Aggregation: one group, groups next to each other, or groups looked up by key.
//!
//! Columns outside of aggregates ("bare" columns) come from the group's first row; with a `min` or `max`, from the
//! row that gave it (documentation page `lang_select`, section 2.5); of several, the last one counts.

use crate::context::{Codegen, internal};
use crate::select::Sink;
use iolite_base::Result;
use iolite_bytecode::{FunctionCall, Opcode, P4};
use iolite_ext::{Function, FunctionFlags, Implementation};
use iolite_plan::bound::*;
use iolite_plan::explain::Role;
use iolite_plan::plan::*;
use iolite_value::{Affinity, Collation, KeyInfo};
use std::rc::Rc;

/// One aggregate being computed.
struct Acc {
    agg: Agg,
    call: Rc<FunctionCall>,
    /// Register of the result; of the state too, unless groups are hashed.
    reg: i32,
    /// First argument register.
    args: i32,
    /// How values seen are known, for DISTINCT.
    distinct: Option<Seen>,
    arg_exprs: Vec<Expr>,
}

/// How DISTINCT knows the values that it has seen.
enum Seen {
    /// By their set, under this cursor.
    Set(i32),
    /// By the one before, if there was one: equal ones come next to each other.
    Before { last: i32, started: i32, collation: [Collation; 1] },
}

/// Whether bare columns come from the row that gave its result.
fn follows_value(a: &Acc) -> bool {
    of_one_row(&a.agg.function)
}

fn of_one_row(f: &Function) -> bool {
    f.flags.has(FunctionFlags::MIN) || f.flags.has(FunctionFlags::MAX)
}

/// Where the states are.
#[derive(Clone, Copy, PartialEq)]
enum States {
    Registers,
    /// In hash aggregation `cursor`.
    Hash {
        cursor: i32,
    },
}

/// Whether a function that sees subtypes takes part, beside those within keys of groups.
fn sees_subtypes(e: &Expr, keys: &[Expr]) -> bool {
    if keys.iter().any(|k| k.same(e)) {
        return false;
    }
    let mut any = matches!(e, Expr::Call(c) if c.function.flags.has(FunctionFlags::SUBTYPE));
    e.children(&mut |x| any = any || sees_subtypes(x, keys));
    any
}

impl Codegen<'_> {
    /// Codes the loops and groups of an aggregating arm.
    pub fn aggregate(&mut self, c: &CorePlan, sink: &mut Sink<'_>) -> Result<()> {
        if c.count_only {
            return self.count_only(c, sink);
        }
        let mut accs = Vec::new();
        for a in &c.aggs {
            accs.push(self.accumulator(a, c)?);
        }
        let bare = self.bare_columns(c, sink);
        let bare_regs = self.b.regs(bare.len().max(1));
        // Keys and extremes keep the subtypes of what they are made of: a function may see them, unless it is all of a key.
        let sees = |e: &Expr| sees_subtypes(e, &c.group_by);
        let before = self.subtypes;
        self.subtypes |=
            c.result.iter().chain(&c.having).any(sees) || sink.order.terms.iter().any(|t| sees(&t.expr));
        let done = match c.grouping {
            Grouping::All => self.one_group(c, &accs, &bare, bare_regs, sink),
            Grouping::Ordered => self.ordered_groups(c, &accs, &bare, bare_regs, sink),
            _ => self.hashed_groups(c, &accs, &bare, bare_regs, sink),
        };
        self.subtypes = before;
        done
    }

    fn count_only(&mut self, c: &CorePlan, sink: &mut Sink<'_>) -> Result<()> {
        let level = &c.levels[0];
        let SourceKind::Table { db, table } = &level.source.kind else {
            return self.unsupported("count of a query");
        };
        let cursor = self.b.cursor();
        self.begin(level, Role::Loop);
        let end = self.b.label();
        for e in &c.constant {
            self.jump_unless(e, end, true)?;
        }
        match &level.access {
            Access::IndexScan { index, key, .. } => {
                let root = index.root.get() as i32;
                self.b.emit4(Opcode::OpenRead, cursor, root, *db as i32, P4::KeyInfo(key.clone()));
            }
            _ => self.open_cursor(cursor, *db, table, level.source.binding.as_deref(), Opcode::OpenRead)?,
        }
        let reg = self.b.reg();
        self.b.emit(Opcode::Count, cursor, reg, 0);
        self.b.emit(Opcode::Close, cursor, 0, 0);
        self.b.place(end);
        self.aggs.insert(c.aggs[0].id, reg);
        let next = self.b.label();
        self.sink_row(sink, next)?;
        self.b.place(next);
        Ok(())
    }

    /// Ranges of a tree, a leaf at a time.
    fn count_runs(&mut self, c: &CorePlan, sink: &mut Sink<'_>) -> Result<()> {
        let reg = self.b.reg();
        self.b.emit(Opcode::Integer, 0, reg, 0);
        let mut loops = self.open_loops(c)?;
        let (cursor, stop) = loops.range().ok_or_else(|| internal("no range"))?;
        let (first, fields, within) = stop.unwrap_or((0, 0, true));
        self.b.emit4(Opcode::CountRun, cursor, reg, first, P4::Int(fields as i64));
        self.b.p5(!within as u16);
        self.close_loops(&mut loops)?;
        self.aggs.insert(c.aggs[0].id, reg);
        self.output_group(c, &[], 0, None, sink)
    }

    fn accumulator(&mut self, a: &Agg, c: &CorePlan) -> Result<Acc> {
        let mut function = a.function.clone();
        let mut arg_exprs = a.args.clone();
        if !a.order_by.is_empty()
            && let Implementation::Aggregate(make) = &a.function.imp
        {
            // Rows are collected and sorted before the real function sees them.
            let key = self.order_key(&a.order_by, a.order_by.len());
            if let Some(f) = key.fields.iter().find(|f| f.coll.is_missing()) {
                return Err(iolite_plan::bind::missing_collation(f.coll.name()));
            }
            let wrapped = crate::ordered_agg::wrap(&a.function, make.clone(), key);
            function = Rc::new(wrapped);
            let mut all: Vec<Expr> = a.order_by.iter().map(|t| t.expr.clone()).collect();
            all.append(&mut arg_exprs);
            arg_exprs = all;
        }
        let n = arg_exprs.len();
        let site = self.b.site();
        let call = FunctionCall {
            function,
            args: n,
            collation: a.collation.clone(),
            site,
            pure: None,
            passes: false,
            bound: 0,
            origins: Vec::new(),
            cursor: None,
        };
        let distinct = if a.distinct {
            let own = a.args[0].collation().map_or(self.binary(), |c| c.0);
            Some(if c.arguments_adjacent {
                Seen::Before { last: self.b.reg(), started: self.b.reg(), collation: [own] }
            } else {
                let cursor = self.b.cursor();
                // The group's number stands before the argument.
                let group = (c.grouping == Grouping::Hash).then(Collation::default);
                let key = KeyInfo::ascending(group.into_iter().chain([own]), self.encoding);
                self.b.emit4(Opcode::SetOpen, cursor, 0, 0, P4::KeyInfo(key));
                Seen::Set(cursor)
            })
        } else {
            None
        };
        // One register before the arguments: the group's number for DISTINCT.
        let args = self.b.regs(n + 1) + 1;
        Ok(Acc { agg: a.clone(), call: Rc::new(call), reg: self.b.reg(), args, distinct, arg_exprs })
    }

    /// Columns of the arm's own tables that are read outside of aggregates and are no group key. A key of which a group
    /// may hold several forms (letters of both cases, 1 and 1.0) is among them where an extreme names the row.
    fn bare_columns(&self, c: &CorePlan, sink: &Sink<'_>) -> Vec<Expr> {
        let own: Vec<TableId> = c.levels.iter().map(|l| l.source.id).collect();
        let mut out: Vec<Expr> = Vec::new();
        let by_extreme = c.aggs.iter().any(|a| of_one_row(&a.function));
        let fixed = |g: &&Expr| {
            let typed = matches!(g.affinity(), Affinity::Integer | Affinity::Real | Affinity::Text);
            !by_extreme || typed && g.collation().is_none_or(|k| k.0 == self.binary())
        };
        let group: &Vec<Expr> = &c.group_by.iter().filter(fixed).cloned().collect();
        fn visit(e: &Expr, own: &[TableId], group: &[Expr], out: &mut Vec<Expr>) {
            if group.iter().any(|g| g.same(e)) {
                return;
            }
            match e {
                Expr::Column(k) if own.contains(&k.table) => {
                    if !out.iter().any(|o| o.same(e)) {
                        out.push(e.clone());
                    }
                }
                Expr::Subquery(s, _) | Expr::Exists(s) => nested(&s.select, own, group, out),
                Expr::InSelect(i) => {
                    nested(&i.select.select, own, group, out);
                    i.lhs.iter().for_each(|l| visit(l, own, group, out));
                }
                other => other.children(&mut |x| visit(x, own, group, out)),
            }
        }
        fn nested(s: &Select, own: &[TableId], group: &[Expr], out: &mut Vec<Expr>) {
            iolite_plan::visit_select(s, &mut |e| {
                if let Expr::Column(k) = e
                    && own.contains(&k.table)
                    && !group.iter().any(|g| g.same(e))
                    && !out.iter().any(|o| o.same(e))
                {
                    out.push(e.clone());
                }
            });
        }
        for e in c.result.iter().chain(&c.having).chain(sink.order.terms.iter().map(|t| &t.expr)) {
            visit(e, &own, group, &mut out);
        }
        out
    }

    fn one_group(
        &mut self,
        c: &CorePlan,
        accs: &[Acc],
        bare: &[Expr],
        bare_regs: i32,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        if c.count_runs && !(self.settings.reverse_unordered && c.unordered) {
            return self.count_runs(c, sink);
        }
        let captured = self.b.reg();
        self.reset(accs, bare, bare_regs, captured);
        let mut loops = self.open_loops(c)?;
        self.accumulate(accs, bare, bare_regs, captured, States::Registers)?;
        if c.first_row_only {
            let end = loops.end;
            self.b.jump(Opcode::Goto, 0, end, 0);
        }
        self.close_loops(&mut loops)?;
        for a in accs {
            self.b.emit4(Opcode::AggFinal, a.reg, a.call.args as i32, 0, P4::Function(a.call.clone()));
            self.aggs.insert(a.agg.id, a.reg);
        }
        self.output_group(c, bare, bare_regs, None, sink)
    }

    fn reset(&mut self, accs: &[Acc], bare: &[Expr], bare_regs: i32, captured: i32) {
        for a in accs {
            self.b.emit(Opcode::Null, 0, a.reg, 0);
            match &a.distinct {
                Some(Seen::Set(cursor)) => self.b.emit(Opcode::SetOpen, *cursor, 0, 0),
                Some(Seen::Before { started, .. }) => self.b.emit(Opcode::Integer, 0, *started, 0),
                None => continue,
            };
        }
        if !bare.is_empty() {
            self.b.emit(Opcode::Null, 0, bare_regs, bare_regs + bare.len() as i32 - 1);
        }
        let waits = accs.iter().any(|a| follows_value(a) && a.agg.filter.is_some());
        self.b.emit(Opcode::Integer, (waits && !bare.is_empty()) as i32, captured, 0);
    }

    /// Feeds the present row to all aggregates.
    fn accumulate(
        &mut self,
        accs: &[Acc],
        bare: &[Expr],
        bare_regs: i32,
        captured: i32,
        states: States,
    ) -> Result<()> {
        let follows = !bare.is_empty() && accs.iter().any(follows_value);
        // Where a filter may leave out all rows, the group's first one stands in: `captured` is set when it comes.
        let filtered = accs.iter().any(|a| follows_value(a) && a.agg.filter.is_some());
        let first_counts = filtered && states == States::Registers;
        // A value that was there before is not looked at, and what the last one said holds on, as in SQLite.
        let holds_on =
            states == States::Registers && accs.iter().any(|a| follows_value(a) && a.distinct.is_some());
        if follows && !first_counts && !holds_on {
            self.b.emit(Opcode::Integer, 0, captured, 0);
        }
        let group = if matches!(states, States::Hash { .. }) && accs.iter().any(|a| a.distinct.is_some()) {
            let g = self.b.temp();
            if let States::Hash { cursor } = states {
                self.b.emit(Opcode::HashGroup, cursor, g, 0);
            }
            Some(g)
        } else {
            None
        };
        for (k, a) in accs.iter().enumerate() {
            let skip = self.b.label();
            if let Some(f) = &a.agg.filter {
                self.jump_unless(f, skip, true)?;
            }
            let value = a.args + (a.arg_exprs.len() - a.agg.args.len()) as i32;
            // Rows that are sorted first lose what is no value.
            let pointers = a.agg.function.flags.has(FunctionFlags::POINTERS) && a.agg.order_by.is_empty();
            self.with_arguments(&a.agg.function, |g| {
                a.arg_exprs.iter().zip(a.args..).try_for_each(|(e, target)| match pointers {
                    true => g.argument_to(e, target),
                    false => g.expr_to(e, target),
                })
            })?;
            if let Some(Seen::Before { last, started, collation }) = &a.distinct {
                self.skip_repeated(value, *last, *started, collation, skip);
            }
            if let Some(Seen::Set(d)) = a.distinct {
                let first = match group {
                    Some(g) => {
                        // The pair (group, value) in consecutive registers.
                        let pair = self.b.regs(2);
                        self.copy(g, pair);
                        self.copy(value, pair + 1);
                        pair
                    }
                    None => value,
                };
                self.b.jump(Opcode::SetAdd, d, skip, first);
            }
            let hit = if follows && follows_value(a) { captured } else { 0 };
            if hit != 0 && (holds_on && !first_counts || accs[..k].iter().any(follows_value)) {
                self.b.emit(Opcode::Integer, 0, captured, 0);
            }
            match states {
                States::Registers => {
                    self.b.emit4(Opcode::AggStep, hit, a.args, a.reg, P4::Function(a.call.clone()));
                }
                States::Hash { cursor } => {
                    self.b.emit4(Opcode::HashStep, cursor, a.args, k as i32, P4::Function(a.call.clone()));
                    self.b.p5(hit as u16);
                }
            }
            self.b.place(skip);
        }
        if let Some(g) = group {
            self.b.free_temp(g);
        }
        if !bare.is_empty() {
            match states {
                States::Registers => {
                    let at = if follows {
                        self.b.emit(Opcode::IfNot, captured, 0, 0)
                    } else {
                        self.b.emit(Opcode::If, captured, 0, 0)
                    };
                    self.expr_list(bare, bare_regs)?;
                    if !follows {
                        self.b.emit(Opcode::Integer, 1, captured, 0);
                    } else if first_counts {
                        self.b.emit(Opcode::Integer, 0, captured, 0);
                    }
                    self.b.jump_here(at);
                }
                States::Hash { cursor } => {
                    if follows {
                        let at = self.b.emit(Opcode::IfNot, captured, 0, 0);
                        self.store_bare(bare, accs.len(), cursor)?;
                        self.b.jump_here(at);
                    }
                }
            }
        }
        Ok(())
    }

    fn store_bare(&mut self, bare: &[Expr], slots: usize, cursor: i32) -> Result<()> {
        for (k, e) in bare.iter().enumerate() {
            let v = self.expr(e)?;
            self.b.emit(Opcode::HashStore, cursor, v.reg, (slots + k) as i32);
            self.done(v);
        }
        Ok(())
    }

    /// Tests HAVING and passes the group's row on.
    fn output_group(
        &mut self,
        c: &CorePlan,
        bare: &[Expr],
        bare_regs: i32,
        keys: Option<i32>,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let before = self.known.len();
        if let Some(keys) = keys {
            for (k, e) in c.group_by.iter().enumerate() {
                self.known.push((e.clone(), keys + k as i32));
            }
        }
        for (k, e) in bare.iter().enumerate() {
            self.known.push((e.clone(), bare_regs + k as i32));
        }
        // Nested queries coded here read registers, not cursors: their subroutines must not be shared with others.
        let next = self.b.label();
        if let Some(h) = &c.having {
            self.jump_unless(h, next, true)?;
        }
        self.sink_row(sink, next)?;
        self.b.place(next);
        self.known.truncate(before);
        Ok(())
    }

    /// The order in which groups come.
    pub fn order_of_groups(&self, c: &CorePlan) -> Vec<OrderTerm> {
        let term = |(i, e): (usize, &Expr)| OrderTerm {
            expr: e.clone(),
            column: c.result.iter().position(|r| r.same(e)),
            desc: c.group_desc.get(i).copied().unwrap_or(false),
            nulls_large: false,
            collation: e.collation().map_or(self.binary(), |x| x.0),
        };
        c.group_by.iter().enumerate().map(term).collect()
    }

    fn group_key(&self, c: &CorePlan) -> Rc<KeyInfo> {
        self.order_key(&self.order_of_groups(c), c.group_by.len())
    }

    fn ordered_groups(
        &mut self,
        c: &CorePlan,
        accs: &[Acc],
        bare: &[Expr],
        bare_regs: i32,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let n = c.group_by.len();
        let (now, keys) = (self.b.regs(n), self.b.regs(n));
        let (started, captured, ret) = (self.b.reg(), self.b.reg(), self.b.reg());
        let output = self.b.label();
        self.b.emit(Opcode::Integer, 0, started, 0);
        self.reset(accs, bare, bare_regs, captured);
        let mut loops = self.open_loops(c)?;
        self.expr_list(&c.group_by, now)?;
        let (differs, same, fresh) = (self.b.label(), self.b.label(), self.b.label());
        self.b.jump(Opcode::IfNot, started, fresh, 0);
        self.b.emit4(Opcode::Compare, keys, now, n as i32, P4::KeyInfo(self.group_key(c)));
        let (d, e) = (self.b.raw(differs), self.b.raw(same));
        self.b.emit(Opcode::Jump, d, e, d);
        self.b.place(differs);
        self.b.jump(Opcode::Gosub, ret, output, 0);
        self.reset(accs, bare, bare_regs, captured);
        self.b.place(fresh);
        self.b.emit(Opcode::Copy, now, keys, n as i32 - 1);
        self.b.emit(Opcode::Integer, 1, started, 0);
        self.b.place(same);
        self.accumulate(accs, bare, bare_regs, captured, States::Registers)?;
        self.close_loops(&mut loops)?;
        let over = self.b.label();
        self.b.jump(Opcode::IfNot, started, over, 0);
        self.b.jump(Opcode::Gosub, ret, output, 0);
        self.b.jump(Opcode::Goto, 0, over, 0);
        self.b.place(output);
        for a in accs {
            self.b.emit4(Opcode::AggFinal, a.reg, a.call.args as i32, 0, P4::Function(a.call.clone()));
            self.aggs.insert(a.agg.id, a.reg);
        }
        self.output_group(c, bare, bare_regs, Some(keys), sink)?;
        self.b.emit(Opcode::Return, ret, 0, 0);
        self.b.place(over);
        Ok(())
    }

    fn hashed_groups(
        &mut self,
        c: &CorePlan,
        accs: &[Acc],
        bare: &[Expr],
        bare_regs: i32,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let n = c.group_by.len();
        let cursor = self.b.cursor();
        let keys = self.b.regs(n);
        let captured = self.b.reg();
        let slots = accs.len() + bare.len();
        let key = self.group_key(c);
        // The first groups of the order are the first rows, unless HAVING drops some.
        let wanted = sink.first_rows().filter(|_| c.having.is_none());
        let wanted = wanted.and_then(|reg| u16::try_from(reg).ok());
        self.b.emit4(Opcode::HashOpen, cursor, n as i32, slots as i32, P4::KeyInfo(key));
        self.b.p5(wanted.unwrap_or(0));
        let mut loops = self.open_loops(c)?;
        self.expr_list(&c.group_by, keys)?;
        if wanted.is_some() {
            let next = self.innermost_next(&loops);
            self.b.jump(Opcode::HashBeyond, cursor, next, keys);
        }
        let known = self.b.label();
        self.b.jump(Opcode::HashFind, cursor, known, keys);
        self.store_bare(bare, accs.len(), cursor)?;
        self.b.place(known);
        self.accumulate(accs, bare, bare_regs, captured, States::Hash { cursor })?;
        self.close_loops(&mut loops)?;
        self.begin(c, Role::Groups);
        let over = self.b.label();
        let first = if sink.groups_in_any_order { Opcode::HashFirst } else { Opcode::HashSort };
        self.b.jump(first, cursor, over, 0);
        let top = self.b.here();
        self.row_begins();
        self.b.emit(Opcode::HashKey, cursor, keys, 0);
        for (k, a) in accs.iter().enumerate() {
            self.b.emit4(Opcode::HashSlot, cursor, a.reg, k as i32, P4::Function(a.call.clone()));
            self.aggs.insert(a.agg.id, a.reg);
        }
        for k in 0..bare.len() {
            self.b.emit(Opcode::HashSlot, cursor, bare_regs + k as i32, (accs.len() + k) as i32);
        }
        self.output_group(c, bare, bare_regs, Some(keys), sink)?;
        self.b.emit(Opcode::HashNext, cursor, top as i32, 0);
        self.b.place(over);
        Ok(())
    }
}
