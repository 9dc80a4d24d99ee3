//! Queries: from loops to rows at their destination.
//!
//! A [`Sink`] stands between the loops (or groups) that produce rows and the destination: it removes duplicates, sorts,
//! applies LIMIT and OFFSET.

use crate::context::{Codegen, Dest};
use iolite_base::{Result, Rows};
use iolite_bytecode::{Given, Label, Opcode, P4, p5};
use iolite_plan::bound::*;
use iolite_plan::explain::{Part, Role};
use iolite_plan::plan::*;
use iolite_value::{Collation, KeyInfo, Value};
use std::rc::Rc;

/// Registers of LIMIT and OFFSET.
#[derive(Clone, Copy, Default)]
pub(crate) struct Limits {
    pub limit: Option<i32>,
    pub offset: Option<i32>,
    /// Their sum: how many rows a sorter must keep.
    pub both: Option<i32>,
}

/// What stands between rows and their destination.
pub(crate) struct Sink<'p> {
    result: &'p [Expr],
    pub order: Order<'p>,
    sorter: Option<Sorter>,
    distinct: Option<Duplicates>,
    limits: Limits,
    dest: &'p Dest,
    /// Behind everything: where to go when enough rows have come out.
    end: Label,
    first: i32,
    /// The cursor of the only loop, of which each row is one of the result, and whether it goes backwards: rows that OFFSET skips are passed
    /// over.
    of_each: Option<(i32, bool)>,
    /// Where to go from a row behind which the present run of the innermost loop has none that is wanted.
    beyond: Option<Label>,
    /// The order tells any two groups apart: they may come as they are.
    pub groups_in_any_order: bool,
}

/// How a sink knows a result that it has seen.
enum Duplicates {
    /// By the set of all.
    Set { cursor: i32 },
    /// By the one before, if there was one.
    Before { last: i32, started: i32, collations: Vec<Collation> },
}

struct Sorter {
    cursor: i32,
    /// The sorter's field of each result column.
    fields: Vec<usize>,
    /// Result columns that are stored behind the keys.
    extra: Vec<usize>,
    /// Rows come in the order of the leading terms: those equal there are sorted by themselves.
    blocks: Option<Blocks>,
}

/// Sorting of rows that are partly sorted, a block of rows equal in the leading terms at a time.
struct Blocks {
    terms: usize,
    /// The present block's leading terms.
    last: i32,
    started: i32,
    /// Where the subroutine that emits a block returns to, and its place.
    back: i32,
    emit: Label,
}

/// An ORDER BY that a sink has to bring about.
#[derive(Clone, Copy)]
pub struct Order<'p> {
    /// The terms.
    pub terms: &'p [OrderTerm],
    /// So many leading ones in whose order the rows come already, fewer than all.
    pub delivered: usize,
}

impl<'p> From<&'p [OrderTerm]> for Order<'p> {
    fn from(terms: &'p [OrderTerm]) -> Order<'p> {
        Order { terms, delivered: 0 }
    }
}

impl Order<'_> {
    /// The place of a term in a record: those that are compared come first.
    fn field(&self, term: usize) -> usize {
        let sorted = self.terms.len() - self.delivered;
        if term < self.delivered { sorted + term } else { term - self.delivered }
    }
}

impl Sink<'_> {
    /// The register that says how many of the first rows are wanted, where all of them go on as they come.
    pub fn first_rows(&self) -> Option<i32> {
        self.limits.both.filter(|_| self.sorter.is_none() && self.distinct.is_none())
    }
}

impl Codegen<'_> {
    /// Codes a query.
    pub fn query(&mut self, plan: &SelectPlan, dest: &Dest) -> Result<()> {
        match plan.limit {
            None if plan.one_row => self.limited_query(plan, Some(&Expr::int(1)), dest),
            _ => self.limited_query(plan, plan.limit.as_ref(), dest),
        }
    }

    fn limited_query(&mut self, plan: &SelectPlan, limit: Option<&Expr>, dest: &Dest) -> Result<()> {
        let end = self.b.label();
        if plan.cores.len() > 1 {
            self.compound(plan, limit, dest, end)?;
        } else {
            let limits = self.limits(limit, plan.offset.as_ref(), end)?;
            let order = if plan.ordered { &[][..] } else { &plan.order_by[..] };
            self.core(&plan.cores[0], order, limits, dest, end)?;
        }
        self.b.place(end);
        Ok(())
    }

    /// Computes LIMIT and OFFSET.
    pub fn limits(&mut self, limit: Option<&Expr>, offset: Option<&Expr>, end: Label) -> Result<Limits> {
        let mut out = Limits::default();
        let Some(l) = limit else { return Ok(out) };
        let reg = self.b.reg();
        match l {
            Expr::Const(Value::Int(n)) => {
                self.b.load_int(*n, reg);
                if *n == 0 {
                    self.b.jump(Opcode::Goto, 0, end, 0);
                }
            }
            e => {
                self.expr_to(e, reg)?;
                self.b.emit(Opcode::MustBeInt, reg, 0, 0);
                self.b.jump(Opcode::IfNot, reg, end, 0);
            }
        }
        out.limit = Some(reg);
        out.both = Some(reg);
        if let Some(o) = offset {
            let off = self.b.reg();
            self.expr_to(o, off)?;
            self.b.emit(Opcode::MustBeInt, off, 0, 0);
            let both = self.b.reg();
            self.b.emit(Opcode::OffsetLimit, reg, both, off);
            out.offset = Some(off);
            out.both = Some(both);
        }
        Ok(out)
    }

    /// Codes one arm.
    pub fn core(
        &mut self,
        c: &CorePlan,
        order: &[OrderTerm],
        limits: Limits,
        dest: &Dest,
        end: Label,
    ) -> Result<()> {
        if !c.values.is_empty() {
            return self.values(c, order, limits, dest, end);
        }
        match c.executor.get().map(|r| &**r) {
            None | Some(RunBy::Declined(_)) => {}
            Some(RunBy::WhileSmall(watch)) => self.watch(watch),
            Some(RunBy::Source(run)) => return self.by_source(run, c, order, limits, dest, end),
        }
        self.by_loops(c, order, limits, dest, end)
    }

    /// Codes one arm as nested loops.
    pub fn by_loops(
        &mut self,
        c: &CorePlan,
        order: &[OrderTerm],
        limits: Limits,
        dest: &Dest,
        end: Label,
    ) -> Result<()> {
        if let Some(w) = &c.window {
            return self.windowed(c, w, order, limits, dest, end);
        }
        let delivered = if c.grouping == Grouping::None { c.delivered.min(order.len()) } else { 0 };
        // Of many groups few are wanted: their own order is only for ties.
        let first_groups = c.grouping == Grouping::Hash && limits.both.is_some() && !order.is_empty();
        let by_keys = (first_groups && matches!(c.distinct, Distinct::No | Distinct::Unique))
            .then(|| [order, &self.order_of_groups(c)].concat());
        let order = Order { terms: by_keys.as_deref().unwrap_or(order), delivered };
        let mut sink = self.open_sink(&c.result, order, c.distinct, limits, dest, end)?;
        sink.groups_in_any_order = by_keys.is_some();
        match c.grouping {
            Grouping::None => {
                if c.levels.is_empty() {
                    self.begin(c, Role::Block);
                }
                let mut loops = self.open_loops(c)?;
                let next = self.innermost_next(&loops);
                sink.of_each = loops.passable(&c.levels);
                sink.beyond = if c.inner_ordered { loops.inner_end() } else { None };
                self.sink_row(&mut sink, next)?;
                self.close_loops(&mut loops)?;
            }
            _ => self.aggregate(c, &mut sink)?,
        }
        self.close_sink(sink, Part::new(c, Role::Order))
    }

    fn values(
        &mut self,
        c: &CorePlan,
        order: &[OrderTerm],
        limits: Limits,
        dest: &Dest,
        end: Label,
    ) -> Result<()> {
        self.begin(c, Role::Block);
        // ORDER BY of a VALUES list names columns: each row brings its own expressions.
        let width = c.result.len();
        let first = self.b.regs(width);
        let stand_in: Vec<Expr> =
            (0..width).map(|k| Expr::TriggerColumn(dummy_column(k), usize::MAX - k)).collect();
        let mut terms = order.to_vec();
        for t in &mut terms {
            if let Some(k) = t.column {
                t.expr = stand_in[k].clone();
            }
        }
        let mut sink = self.open_sink(&stand_in, Order::from(&terms[..]), Distinct::No, limits, dest, end)?;
        let mut at = 0;
        while let Some(row) = c.values.get(at) {
            let given = c.values.iter().skip(at).take_while(|r| r.iter().all(is_given)).count();
            let all = (given >= FEW_ROWS).then(|| {
                let counter = self.b.reg();
                self.b.emit(Opcode::Integer, 0, counter, 0);
                let fields = c.values.iter().skip(at).take(given).flatten().map(given_field).collect();
                let rows = P4::Rows(Rc::new(Rows::new(width, fields)));
                let over = self.b.label();
                (self.b.jump4(Opcode::GivenRow, counter, over, first, rows), over)
            });
            if all.is_none() {
                self.expr_list(row, first)?;
            }
            let before = self.known.len();
            for (k, e) in stand_in.iter().enumerate() {
                self.known.push((e.clone(), first + k as i32));
            }
            let next = self.b.label();
            self.sink_row(&mut sink, next)?;
            self.b.place(next);
            self.known.truncate(before);
            if let Some((top, over)) = all {
                self.b.emit(Opcode::Goto, 0, top as i32, 0);
                self.b.place(over);
            }
            at += if all.is_some() { given } else { 1 };
        }
        self.close_sink(sink, Part::new(c, Role::Order))
    }

    /// Opens what a sink needs before the loops.
    pub fn open_sink<'p>(
        &mut self,
        result: &'p [Expr],
        order: Order<'p>,
        distinct: Distinct,
        limits: Limits,
        dest: &'p Dest,
        end: Label,
    ) -> Result<Sink<'p>> {
        let width = result.len();
        let first = match dest {
            // Rows that are computed and then skipped must not be seen.
            Dest::Registers { .. } if distinct != Distinct::No => self.b.regs(width.max(1)),
            Dest::Coroutine { first, .. } | Dest::Registers { first } => *first,
            _ => self.b.regs(width.max(1)),
        };
        let collations = result.iter().map(|e| e.collation().map_or(self.binary(), |c| c.0));
        let distinct = match distinct {
            Distinct::No | Distinct::Unique => None,
            Distinct::Adjacent => {
                let collations = collations.collect();
                let (last, started) = (self.b.regs(width), self.b.reg());
                self.b.emit(Opcode::Integer, 0, started, 0);
                Some(Duplicates::Before { last, started, collations })
            }
            Distinct::Set => {
                let key = KeyInfo::ascending(collations, self.encoding);
                let cursor = self.b.cursor();
                self.b.emit4(Opcode::SetOpen, cursor, 0, 0, P4::KeyInfo(key));
                Some(Duplicates::Set { cursor })
            }
        };
        let sorter = if order.terms.is_empty() {
            None
        } else {
            let cursor = self.b.cursor();
            let mut fields = vec![0; width];
            let mut extra = Vec::new();
            for (k, e) in result.iter().enumerate() {
                match order.terms.iter().position(|t| t.column == Some(k) && is_by(t, e)) {
                    Some(i) => fields[k] = order.field(i),
                    None => {
                        fields[k] = order.terms.len() + extra.len();
                        extra.push(k);
                    }
                }
            }
            let total = order.terms.len() + extra.len();
            let key = self.order_key(&order.terms[order.delivered..], total);
            self.b.emit4(
                Opcode::SorterOpen,
                cursor,
                total as i32,
                limits.both.unwrap_or(0),
                P4::KeyInfo(key),
            );
            let blocks = (order.delivered > 0).then(|| {
                let (last, started) = (self.b.regs(order.delivered), self.b.reg());
                self.b.emit(Opcode::Integer, 0, started, 0);
                Blocks { terms: order.delivered, last, started, back: self.b.reg(), emit: self.b.label() }
            });
            Some(Sorter { cursor, fields, extra, blocks })
        };
        Ok(Sink {
            result,
            order,
            sorter,
            distinct,
            limits,
            dest,
            end,
            first,
            of_each: None,
            beyond: None,
            groups_in_any_order: false,
        })
    }

    /// The key description of an ORDER BY.
    pub fn order_key(&self, order: &[OrderTerm], columns: usize) -> Rc<KeyInfo> {
        let fields = order.iter().map(OrderTerm::key_field).collect();
        Rc::new(KeyInfo { enc: self.encoding, fields, columns })
    }

    /// BINARY in this database.
    pub fn binary(&self) -> Collation {
        if self.encoding == iolite_base::Encoding::Utf8 {
            Collation::Binary
        } else {
            Collation::Binary16(self.encoding)
        }
    }

    /// The row whose result stands in registers from `first` on.
    pub fn sink_result(&mut self, s: &mut Sink<'_>, first: i32, next: Label) -> Result<()> {
        s.first = first;
        self.sink_row(s, next)
    }

    /// One row: computes the result and passes it on; jumps to `next` if the row is dropped.
    pub fn sink_row(&mut self, s: &mut Sink<'_>, next: Label) -> Result<()> {
        let width = s.result.len();
        let result = s.result;
        if s.sorter.is_none() && s.distinct.is_none() && s.limits.offset.is_some() {
            // A skipped row is not computed.
            match (s.limits.offset, s.of_each) {
                (Some(off), Some((cursor, back))) => {
                    self.b.jump(Opcode::PassRows, cursor, next, off);
                    self.b.p5(back as u16);
                }
                _ => self.skip_offset(s, next),
            }
        }
        let computed = !matches!(s.dest, Dest::Exists { .. }) || s.distinct.is_some() || s.sorter.is_some();
        let all = s.sorter.is_none() || s.distinct.is_some();
        if computed && all {
            let direct = matches!(s.dest, Dest::Output) && s.sorter.is_none() && s.distinct.is_none();
            if direct {
                self.output_list(result, s.first)?;
            } else {
                self.expr_list(result, s.first)?;
            }
        }
        match &s.distinct {
            None => {}
            Some(Duplicates::Set { cursor }) => {
                self.b.jump(Opcode::SetAdd, *cursor, next, s.first);
            }
            Some(Duplicates::Before { last, started, collations }) => {
                self.skip_repeated(s.first, *last, *started, collations, next);
            }
        }
        if let Some(sorter) = &s.sorter {
            let n = s.order.terms.len();
            let total = n + sorter.extra.len();
            let base = self.b.regs(total);
            let cursor = sorter.cursor;
            for (i, t) in s.order.terms.iter().enumerate() {
                let to = base + s.order.field(i) as i32;
                match t.column {
                    Some(k) if all && is_by(t, &result[k]) => self.copy(s.first + k as i32, to),
                    _ => self.expr_to(&t.expr, to)?,
                }
            }
            // What is not among the rows wanted is not computed any further; of a nested query that is a value, it is, as in
            // SQLite. Emitting a block writes over the result's registers: they are read before.
            let late = !all && s.limits.both.is_some() && !matches!(s.dest, Dest::Registers { .. });
            let extra = |g: &mut Self| {
                sorter.extra.iter().enumerate().try_for_each(|(i, k)| {
                    let to = base + (n + i) as i32;
                    if all {
                        g.copy(s.first + *k as i32, to);
                        return Ok(());
                    }
                    g.expr_to(&result[*k], to)
                })
            };
            if !late {
                extra(self)?;
            }
            if let Some(b) = &sorter.blocks {
                self.begin_block(b, base + s.order.field(0) as i32, &s.order.terms[..b.terms]);
            }
            if s.limits.both.is_some() {
                let fields = (n - s.order.delivered) as i64;
                let to = s.beyond.unwrap_or(next);
                self.b.jump4(Opcode::SorterSkip, cursor, to, base, P4::Int(fields));
            }
            if late {
                extra(self)?;
            }
            let record = self.b.temp();
            self.b.emit(Opcode::MakeRecord, base, total as i32, record);
            self.b.emit(Opcode::SorterInsert, cursor, record, 0);
            self.b.free_temp(record);
            return Ok(());
        }
        if s.distinct.is_some() {
            self.skip_offset(s, next);
        }
        self.deliver(s.dest, s.first, width, s.end)?;
        self.count_limit(s);
        Ok(())
    }

    /// Jumps to `next` if the result in registers from `now` on is that of the row before.
    pub fn skip_repeated(
        &mut self,
        now: i32,
        last: i32,
        started: i32,
        collations: &[Collation],
        next: Label,
    ) {
        let (differs, again) = (self.b.label(), self.b.label());
        self.b.jump(Opcode::If, started, again, 0);
        self.b.emit(Opcode::Integer, 1, started, 0);
        self.b.jump(Opcode::Goto, 0, differs, 0);
        self.b.place(again);
        for (k, collation) in collations.iter().enumerate() {
            let (op, to) = match k + 1 == collations.len() {
                true => (Opcode::Eq, next),
                false => (Opcode::Ne, differs),
            };
            let p4 = if *collation == Collation::Binary {
                P4::None
            } else {
                P4::Collation(Rc::new(collation.clone()))
            };
            self.b.jump4(op, last + k as i32, to, now + k as i32, p4);
            self.b.p5(p5::NULL_EQ);
        }
        self.b.place(differs);
        self.b.emit(Opcode::Copy, now, last, collations.len() as i32 - 1);
    }

    /// Emits the block of rows before if this row, whose leading terms lie at `now`, is not of it.
    fn begin_block(&mut self, b: &Blocks, now: i32, terms: &[OrderTerm]) {
        let (differs, same, fresh) = (self.b.label(), self.b.label(), self.b.label());
        self.b.jump(Opcode::IfNot, b.started, fresh, 0);
        let key = self.order_key(terms, terms.len());
        self.b.emit4(Opcode::Compare, b.last, now, b.terms as i32, P4::KeyInfo(key));
        let (d, e) = (self.b.raw(differs), self.b.raw(same));
        self.b.emit(Opcode::Jump, d, e, d);
        self.b.place(differs);
        self.b.jump(Opcode::Gosub, b.back, b.emit, 0);
        self.b.place(fresh);
        self.b.emit(Opcode::Copy, now, b.last, b.terms as i32 - 1);
        self.b.emit(Opcode::Integer, 1, b.started, 0);
        self.b.place(same);
    }

    fn skip_offset(&mut self, s: &Sink<'_>, next: Label) {
        if let Some(off) = s.limits.offset {
            self.b.jump(Opcode::IfPos, off, next, 1);
        }
    }

    fn count_limit(&mut self, s: &Sink<'_>) {
        // A destination that takes one row has its own way to stop.
        if let Some(l) = s.limits.limit {
            self.b.jump(Opcode::DecrJumpZero, l, s.end, 0);
        }
    }

    /// Emits sorted rows; `sorting`: what they are part of.
    pub fn close_sink(&mut self, s: Sink<'_>, sorting: Part) -> Result<()> {
        let Some(sorter) = &s.sorter else { return Ok(()) };
        self.begin_part(sorting);
        let width = s.result.len();
        let total = s.order.terms.len() + sorter.extra.len();
        let (pseudo, record) = (self.b.cursor(), self.b.reg());
        let (over, all) = (self.b.label(), self.b.label());
        if let Some(b) = &sorter.blocks {
            self.b.jump(Opcode::Gosub, b.back, b.emit, 0);
            self.b.jump(Opcode::Goto, 0, all, 0);
            self.b.place(b.emit);
        }
        self.b.emit(Opcode::OpenPseudo, pseudo, record, total as i32);
        self.b.jump(Opcode::SorterSort, sorter.cursor, over, 0);
        let top = self.b.here();
        self.row_begins();
        let next = self.b.label();
        self.skip_offset(&s, next);
        self.b.emit(Opcode::SorterData, sorter.cursor, record, pseudo);
        if !matches!(s.dest, Dest::Exists { .. }) {
            for (k, f) in sorter.fields.iter().enumerate() {
                self.b.emit(Opcode::Column, pseudo, *f as i32, s.first + k as i32);
            }
        }
        self.deliver(s.dest, s.first, width, s.end)?;
        self.count_limit(&s);
        self.b.place(next);
        self.b.emit(Opcode::SorterNext, sorter.cursor, top as i32, 0);
        self.b.place(over);
        if let Some(b) = &sorter.blocks {
            self.b.emit(Opcode::ResetSorter, sorter.cursor, 0, 0);
            self.b.emit(Opcode::Return, b.back, 0, 0);
        }
        self.b.place(all);
        Ok(())
    }

    /// Hands a row in registers to its destination.
    pub fn deliver(&mut self, dest: &Dest, first: i32, width: usize, end: Label) -> Result<()> {
        let n = width as i32;
        match dest {
            Dest::Output => {
                self.b.emit(Opcode::ResultRow, first, n, 0);
            }
            Dest::Coroutine { yield_reg, first: to } => {
                for k in 0..n {
                    self.copy(first + k, to + k);
                }
                let at = self.b.here() as i32 + 1;
                self.b.emit(Opcode::Yield, *yield_reg, at, 0);
            }
            Dest::Table { cursor, affinities } => {
                let (record, rowid) = (self.b.temp(), self.b.temp());
                let p4 = affinities.clone().map_or(P4::None, P4::Affinities);
                self.b.emit4(Opcode::MakeRecord, first, n, record, p4);
                self.b.emit(Opcode::NewRowid, *cursor, rowid, 0);
                self.b.emit(Opcode::Insert, *cursor, record, rowid);
                self.b.p5(iolite_bytecode::p5::APPEND);
                self.b.free_temp(record);
                self.b.free_temp(rowid);
            }
            Dest::Keyed { cursor, keys, rowid } => {
                let record = self.b.temp();
                self.b.emit(Opcode::MakeRecord, first, n, record);
                if *rowid {
                    self.b.emit(Opcode::Insert, *cursor, record, first);
                } else {
                    let fresh = self.b.label();
                    self.b.jump4(Opcode::NotFound, *cursor, fresh, first, P4::Int(*keys as i64));
                    self.b.emit(Opcode::Delete, *cursor, 0, 0);
                    self.b.place(fresh);
                    self.b.emit4(Opcode::IdxInsert, *cursor, record, first, P4::Int(width as i64));
                }
                self.b.free_temp(record);
            }
            Dest::Set { cursor, affinities } => {
                let record = self.b.temp();
                let p4 = affinities.clone().map_or(P4::None, P4::Affinities);
                self.b.emit4(Opcode::MakeRecord, first, n, record, p4);
                // Of equal rows that look different, the first is the one that shows.
                self.b.emit4(Opcode::IdxInsert, *cursor, record, first, P4::Int(width as i64));
                self.b.p5(iolite_bytecode::p5::KEEP);
                self.b.free_temp(record);
            }
            Dest::Members { set, affinities } => {
                self.apply_affinity(first, affinities);
                let next = self.b.label();
                self.b.jump(Opcode::SetAdd, *set, next, first);
                self.b.place(next);
            }
            Dest::Registers { first: to } => {
                for k in 0..n {
                    self.copy(first + k, to + k);
                }
                self.b.jump(Opcode::Goto, 0, end, 0);
            }
            Dest::Exists { reg } => {
                self.b.emit(Opcode::Integer, 1, *reg, 0);
                self.b.jump(Opcode::Goto, 0, end, 0);
            }
            Dest::Queue(q) => self.enqueue(q, first, width)?,
            Dest::Window { cursor, step } => {
                self.b.emit(Opcode::WindowRow, *cursor, first, n);
                if let Some((back, rows)) = step {
                    let early = self.b.label();
                    self.b.jump(Opcode::WindowRun, *cursor, early, 0);
                    self.b.jump(Opcode::Gosub, *back, *rows, 0);
                    self.returned();
                    self.b.place(early);
                }
            }
            Dest::Discard => {}
        }
        Ok(())
    }
}

/// Of so many rows that stand in the text, the program has them as a list.
const FEW_ROWS: usize = 4;

/// Whether the value of an expression is in the text or a parameter's.
fn is_given(e: &Expr) -> bool {
    matches!(e, Expr::Const(_) | Expr::Param(_))
}

fn given_field(e: &Expr) -> Given {
    match e {
        Expr::Param(n) => Given::Parameter(*n),
        Expr::Const(v) => Given::Value(v.clone()),
        _ => Given::Value(Value::Null),
    }
}

fn dummy_column(k: usize) -> ColumnRef {
    ColumnRef {
        table: 0,
        column: k as i32,
        affinity: iolite_value::Affinity::None,
        collation: Collation::Binary,
    }
}

/// Whether an ORDER BY term that names a result column has its value: what changes with each call is computed once.
fn is_by(t: &OrderTerm, result: &Expr) -> bool {
    t.expr.same(result) || result.changes_by_call()
}
