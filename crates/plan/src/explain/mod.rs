//! EXPLAIN QUERY PLAN: the tree of lines that tells what a plan does, in SQLite's wording and order (documentation page
//! `eqp`).
//!
//! Lines stand in the order in which work is written down for the first time: queries in FROM, then the loops, each with
//! the nested queries that are computed in it, then what becomes of groups and rows, sorting last. A nested query is told
//! of once, where it is first needed. What triggers do is told behind all else, and only who asks for it is; how the parents of a
//! foreign key are looked up is not told.
//!
//! [`Lines::of`] answers which line tells of a part of the plan, so that a program can say for which line it works. Parts
//! are known by their addresses: the answer holds as long as the plan stays where it is. Nothing of this is made for a
//! statement that nobody wants explained.

mod block;
mod change;

use crate::bound::*;
use crate::plan::*;
use crate::print;
use crate::statement::define::Step;
use crate::statement::{Body, StatementPlan, TriggerPlan, TriggerStep};
use iolite_base::hash::FastMap;
use iolite_bytecode::PlanLine;

/// What a line tells of a part of a plan. A part and the first of its own parts may have one address: each kind of part has
/// roles of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// Of a query: that it is nested in an expression, or a compound.
    Query,
    /// Of a block: that it is an arm of a compound, has one constant row, is run by a source.
    Block,
    /// Of a block: sorting its rows.
    Order,
    /// Of a block: forming its groups.
    Groups,
    /// Of a block: its window functions.
    Windows,
    /// Of a window: the rows that come out of it.
    Window,
    /// Of a loop: how rows are found.
    Loop,
    /// Of a loop: the filter over its keys.
    Filter,
    /// Of a loop: rows without a match.
    Unmatched,
    /// Of one of several accesses in a loop: its place among them.
    Index,
    /// Of one of several accesses in a loop: how rows are found.
    Branch,
    /// Of a query in FROM: how it is stored.
    Stored,
    /// Of a recursive query: what it begins with.
    Setup,
    /// Of a recursive query: the step.
    Step,
}

/// A part of a plan in one of its roles.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Part(usize, Role);

impl Part {
    /// A part, known by its address.
    pub fn new<T>(part: &T, role: Role) -> Part {
        Part(std::ptr::from_ref(part).addr(), role)
    }
}

/// The lines that tell of a plan.
#[derive(Default)]
pub struct Lines {
    /// All of them; a line stands behind that which it belongs to.
    pub list: Vec<PlanLine>,
    parts: FastMap<Part, i32>,
}

impl Lines {
    /// The number of the line that tells of a part, if one does.
    pub fn of(&self, part: Part) -> Option<i32> {
        self.parts.get(&part).copied()
    }
}

/// Tells what a plan does. `triggers`: also what each trigger does that may fire.
pub fn explain(plan: &StatementPlan, triggers: bool) -> Lines {
    let mut t = Teller {
        nested: &plan.nested,
        lines: Lines::default(),
        parent: 0,
        told: Vec::new(),
        stored: Vec::new(),
        in_with: false,
        selects: plan.selects,
        counts_keys: plan.counts_keys,
        updates: false,
        list: false,
    };
    match &plan.body {
        Body::Query(q) => t.query(q),
        Body::Modify(m) => t.modify(m),
        Body::Define(d) => {
            for step in &d.steps {
                match step {
                    Step::Store { query, .. } => t.query(query),
                    Step::Empty { rows, .. } => t.modify(rows),
                    _ => {}
                }
            }
        }
        Body::Control(_) | Body::RowCheck(_) => {}
    }
    if triggers {
        plan.triggers.iter().for_each(|p| t.trigger(p));
    }
    t.lines
}

struct Teller<'p> {
    nested: &'p NestedPlans,
    lines: Lines,
    /// The line below which the next one stands; 0: none.
    parent: i32,
    /// Nested queries that were told of.
    told: Vec<SubId>,
    /// Common table expressions that were.
    stored: Vec<u32>,
    /// The query stands in a common table expression: SQLite makes another plan of VALUES there, and has other words.
    in_with: bool,
    /// How many queries the statement has, by SQLite's count: those that are made of others are numbered on.
    selects: u32,
    /// The statement may violate foreign keys for a while.
    counts_keys: bool,
    /// The rows of the loop are to be updated: they are read where the table has them, whatever an index holds.
    updates: bool,
    /// The rows of the query are a list that values are looked up in.
    list: bool,
}

/// What the rows of a nested query are for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// A value, or whether there is a row.
    Value,
    /// A loop seeks each of them.
    Sought,
    /// Values are looked up among them.
    Tested,
}

impl<'p> Teller<'p> {
    /// A line; answers its number.
    fn line(&mut self, detail: impl Into<String>) -> i32 {
        let id = self.lines.list.len() as i32 + 1;
        self.lines.list.push(PlanLine { id, parent: self.parent, detail: detail.into(), source: None });
        id
    }

    /// A line that tells of a part.
    fn line_of<T>(&mut self, part: &T, role: Role, detail: impl Into<String>) -> i32 {
        let id = self.line(detail);
        self.lines.parts.entry(Part::new(part, role)).or_insert(id);
        id
    }

    /// What a trigger does, behind a line with its name.
    fn trigger(&mut self, p: &'p TriggerPlan) {
        self.nested = &p.nested;
        (self.told, self.stored) = (Vec::new(), Vec::new());
        self.line(format!("-- TRIGGER {}", p.trigger.name));
        self.exprs(&p.when);
        for step in &p.steps {
            match step {
                TriggerStep::Query(q) => self.query(q),
                TriggerStep::Modify(m) => self.modify(m),
            }
        }
    }

    /// Has the lines that `f` makes stand below line `id`.
    fn below(&mut self, id: i32, f: impl FnOnce(&mut Self)) {
        let former = std::mem::replace(&mut self.parent, id);
        f(self);
        self.parent = former;
    }

    /// The nested queries of expressions, in the order in which they are computed.
    fn exprs<'e>(&mut self, list: impl IntoIterator<Item = &'e Expr>) {
        if !self.nested.is_empty() {
            list.into_iter().for_each(|e| self.expr(e));
        }
    }

    fn expr(&mut self, e: &Expr) {
        match e {
            Expr::Subquery(s, _) | Expr::Exists(s) => self.nested_query(s, Use::Value),
            Expr::InSelect(i) => {
                self.nested_query(&i.select, Use::Tested);
                self.exprs(&i.lhs);
            }
            other => other.children(&mut |c| self.expr(c)),
        }
    }

    fn nested_query(&mut self, s: &Subquery, of: Use) {
        let Some(plan) = self.nested.get(s.id).filter(|_| !self.told.contains(&s.id)) else { return };
        self.told.push(s.id);
        if let (Some(l), Use::Tested) = (&plan.lookup, of) {
            let table = || print::own_name(&plan.cores[0].levels[0].source);
            let detail = match &**l {
                Lookup::Rowids => format!("USING ROWID SEARCH ON TABLE {} FOR IN-OPERATOR", table()),
                Lookup::Index(index, ..) => format!("USING INDEX {} FOR IN-OPERATOR", index.name),
            };
            self.line_of(plan, Role::Query, detail);
            return;
        }
        let depends = if s.outer.is_empty() { "" } else { "CORRELATED " };
        let kind = if of == Use::Value { "SCALAR" } else { "LIST" };
        let id = self.line_of(plan, Role::Query, format!("{depends}{kind} SUBQUERY {}", s.number));
        let list = of == Use::Tested && s.outer.is_empty();
        let former = (std::mem::replace(&mut self.list, list), std::mem::take(&mut self.updates));
        self.below(id, |t| t.query(plan));
        (self.list, self.updates) = former;
    }

    /// A query.
    fn query(&mut self, q: &'p SelectPlan) {
        match &q.cores[..] {
            [core] => {
                let order = if q.ordered { &[][..] } else { &q.order_by[..] };
                self.block(core, order, [&q.limit, &q.offset]);
            }
            _ => self.compound(q),
        }
    }

    fn compound(&mut self, q: &'p SelectPlan) {
        self.exprs(q.limit.iter().chain(&q.offset));
        let Some(m) = &q.merge else {
            let list = self.list;
            let id = self.line_of(q, Role::Query, "COMPOUND QUERY");
            self.below(id, |t| t.arms(q, 0, list));
            self.list = false;
            return;
        };
        let list = std::mem::take(&mut self.list);
        self.merged(q, &m.root, true, list);
        self.arms(q, m.arms, list);
    }

    /// The arms from one on that follow each other.
    fn arms(&mut self, q: &'p SelectPlan, first: usize, list: bool) {
        for (k, core) in q.cores.iter().enumerate().skip(first) {
            self.list = list;
            self.arm(q, k, core, if k == 0 { "LEFT-MOST SUBQUERY" } else { "UNION ALL" });
        }
    }

    fn arm(&mut self, q: &'p SelectPlan, k: usize, core: &'p CorePlan, detail: &str) {
        let id = self.line_of(core, Role::Block, detail);
        self.below(id, |t| t.block(core, q.arm_order(k), [&None, &None]));
    }

    /// Arms that are merged; `whole`: they begin the compound; `list`: into a list.
    fn merged(&mut self, q: &'p SelectPlan, m: &'p Merge, whole: bool, list: bool) {
        let Merge::Both(pair) = m else { return };
        let detail = match pair.op {
            CompoundOp::Union => "MERGE (UNION)",
            CompoundOp::UnionAll => "MERGE (UNION ALL)",
            CompoundOp::Except => "MERGE (EXCEPT)",
            CompoundOp::Intersect => "MERGE (INTERSECT)",
        };
        let id = if whole { self.line_of(q, Role::Query, detail) } else { self.line(detail) };
        self.below(id, |t| {
            for (side, word) in [(&pair.left, "LEFT"), (&pair.right, "RIGHT")] {
                match side {
                    Merge::Arm(k) => t.arm(q, *k, &q.cores[*k], word),
                    Merge::Both(_) => {
                        let id = t.line(word);
                        t.below(id, |t| t.merged(q, side, false, false));
                    }
                }
            }
            // What comes from either side is added at a place of its own.
            t.members(list);
            t.members(list && matches!(pair.op, CompoundOp::Union | CompoundOp::UnionAll));
        });
    }
}
