//! The lines of one block: its queries in FROM, its loops, its groups, its order.

use super::{Role, Teller, Use};
use crate::bound::*;
use crate::plan::*;
use crate::print;

impl<'p> Teller<'p> {
    /// One block. `order`: what its rows have to be sorted by; `limits`: how many of them are wanted.
    pub(super) fn block(&mut self, c: &'p CorePlan, order: &'p [OrderTerm], limits: [&'p Option<Expr>; 2]) {
        let listed = std::mem::take(&mut self.list) && order.is_empty();
        if !c.values.is_empty() {
            self.exprs(limits.into_iter().flatten());
            self.values(c);
            self.members(listed);
            return self.sorted(c, 0, order);
        }
        match c.executor.get().map(|r| &**r) {
            Some(RunBy::Source(run)) => {
                self.exprs(limits.into_iter().flatten());
                return self.source(c, run);
            }
            Some(RunBy::Declined(why)) => {
                self.line(format!("IN ROWS: {why}"));
            }
            Some(RunBy::WhileSmall(_)) | None => {}
        }
        if let Some(w) = &c.window {
            self.exprs(limits.into_iter().flatten());
            self.windows(c, w, &w.windows);
            self.exprs(&c.result);
            self.exprs(order.iter().map(|t| &t.expr));
            self.members(listed);
            self.distinct(c);
            return self.sorted(c, 0, order);
        }
        c.levels.iter().for_each(|l| self.query_in_from(l));
        self.exprs(limits.into_iter().flatten());
        if c.grouping == Grouping::All && !c.count_only {
            self.aggregate_trees(c);
        }
        if c.levels.is_empty() {
            self.exprs(&c.constant);
            self.line_of(c, Role::Block, "SCAN CONSTANT ROW");
        }
        for (depth, l) in c.levels.iter().enumerate() {
            let constant = if depth == 0 { &c.constant[..] } else { &[] };
            self.level(l, constant, c.extreme && !c.count_only, c.count_only);
            // Filters over stored tables are filled before the loop that asks them goes on.
            let here =
                |l: &&Level| l.bloom == Bloom::Early(depth) && !matches!(l.access, Access::Auto { .. });
            for l in c.levels.iter().filter(here) {
                self.line_of(l, Role::Filter, print::bloom_filter(l));
            }
        }
        let of_order = order.iter().map(|t| &t.expr);
        let of_aggregates = c
            .aggs
            .iter()
            .flat_map(|a| a.filter.iter().chain(a.order_by.iter().map(|t| &t.expr)).chain(&a.args));
        match c.grouping {
            Grouping::None => {
                self.exprs(c.result.iter().chain(of_order));
                self.members(listed);
                self.unmatched(c);
            }
            grouping => {
                if grouping == Grouping::Hash {
                    self.line_of(c, Role::Groups, "USE TEMP B-TREE FOR GROUP BY");
                }
                self.exprs(c.group_by.iter().chain(of_aggregates));
                self.unmatched(c);
                self.exprs(c.having.iter().chain(&c.result).chain(of_order));
                if grouping != Grouping::All {
                    self.aggregate_trees(c);
                }
                self.members(listed);
            }
        }
        self.distinct(c);
        let delivered = if c.grouping == Grouping::None { c.delivered.min(order.len()) } else { 0 };
        self.sorted(c, delivered, order);
    }

    /// What a source does in the place of the loops.
    fn source(&mut self, c: &CorePlan, run: &SourceRun) {
        let mut lines = run.lines.iter();
        let Some(first) = lines.next() else { return };
        self.line_of(c, Role::Block, first.as_str());
        if let Some(l) = self.lines.list.last_mut() {
            l.source = Some(run.number);
        }
        lines.for_each(|l| {
            self.line(l.as_str());
        });
    }

    fn values(&mut self, c: &'p CorePlan) {
        let detail = match rows_of_values(c) {
            Some(n) if !self.in_with => values_clause(n),
            _ if c.values.len() == 1 => "SCAN CONSTANT ROW".to_string(),
            _ => format!("SCAN {} CONSTANT ROWS", c.values.len()),
        };
        self.line_of(c, Role::Block, detail);
        self.exprs(c.values.fields().iter());
    }

    /// The sets for aggregates over distinct values, and the lists for those over sorted ones.
    fn aggregate_trees(&mut self, c: &CorePlan) {
        for a in &c.aggs {
            if a.distinct && !c.arguments_adjacent {
                self.line(format!("USE TEMP B-TREE FOR {}(DISTINCT)", a.function.name));
            }
            if !a.order_by.is_empty() {
                self.line(format!("USE TEMP B-TREE FOR {}(ORDER BY)", a.function.name));
            }
        }
    }

    /// The rows are members of a list, by whose hashes values are looked up: SQLite has a filter before the list.
    pub(super) fn members(&mut self, listed: bool) {
        if listed {
            self.line("CREATE BLOOM FILTER");
        }
    }

    fn distinct(&mut self, c: &CorePlan) {
        if c.distinct == Distinct::Set {
            self.line("USE TEMP B-TREE FOR DISTINCT");
        }
    }

    fn sorted(&mut self, c: &CorePlan, delivered: usize, order: &[OrderTerm]) {
        self.sort(c, delivered, order.len());
    }

    /// Sorting by so many terms, of which the first ones come out already.
    fn sort<T>(&mut self, part: &T, delivered: usize, terms: usize) {
        let detail = match (delivered, terms - delivered) {
            (_, 0) => return,
            (0, _) => "USE TEMP B-TREE FOR ORDER BY".to_string(),
            (_, 1) => "USE TEMP B-TREE FOR LAST TERM OF ORDER BY".to_string(),
            (_, n) => format!("USE TEMP B-TREE FOR LAST {n} TERMS OF ORDER BY"),
        };
        self.line_of(part, Role::Order, detail);
    }

    /// Window functions: for each window, the rows are sorted in a query of their own, and scanned. Those of the first
    /// window come last: theirs is the order in which the rows come out.
    fn windows(&mut self, c: &'p CorePlan, w: &'p WindowPlan, windows: &'p [WindowPass]) {
        let [pass, within @ ..] = windows else { return self.block(&w.input, &[], [&None, &None]) };
        self.selects += 1;
        let name = format!("(subquery-{})", self.selects);
        let id = self.line_of(c, Role::Windows, format!("CO-ROUTINE {name}"));
        self.below(id, |t| {
            t.windows(c, w, within);
            t.sort(pass, pass.delivered, pass.partition.len() + pass.order.len());
        });
        self.line_of(pass, Role::Window, format!("SCAN {name}"));
        self.exprs(frame_exprs(&pass.frame));
    }

    fn query_in_from(&mut self, l: &'p Level) {
        let Some(q) = l.query.as_deref() else { return };
        if !q.correlated
            && let Some(n) = q.cte
        {
            if !q.coroutine && self.stored.contains(&n) {
                return;
            }
            self.stored.push(n);
        }
        if values_in_from(l).is_some() {
            return;
        }
        let word = if q.interleaved { "CO-ROUTINE" } else { "MATERIALIZE" };
        let id = self.line_of(q, Role::Stored, format!("{word} {}", print::own_name(&l.source)));
        let former = self.in_with;
        self.in_with |= q.cte.is_some();
        self.below(id, |t| match &q.recursive {
            None => t.query(&q.select),
            Some(r) => {
                t.exprs(r.limit.iter().chain(&r.offset));
                let setup = t.line_of(r, Role::Setup, "SETUP");
                t.below(setup, |t| t.query(&q.select));
                let step = t.line_of(r, Role::Step, "RECURSIVE STEP");
                t.below(step, |t| t.recursive_arms(r));
            }
        });
        self.in_with = former;
    }

    fn recursive_arms(&mut self, r: &'p RecursivePlan) {
        let [arm] = &r.arms[..] else {
            let all = self.line("COMPOUND QUERY");
            return self.below(all, |t| {
                for (k, arm) in r.arms.iter().enumerate() {
                    let detail = if k == 0 { "LEFT-MOST SUBQUERY" } else { "UNION ALL" };
                    let id = t.line_of(arm, Role::Block, detail);
                    t.below(id, |t| t.block(arm, &[], [&None, &None]));
                }
            });
        };
        self.block(arm, &[], [&None, &None]);
    }

    /// One loop; `constant`: conditions that are tested once; `counted`: its rows are counted, and no more.
    fn level(&mut self, l: &'p Level, constant: &'p [Expr], extreme: bool, counted: bool) {
        if l.bloom != Bloom::None && matches!(l.access, Access::Auto { .. }) {
            self.line_of(l, Role::Filter, print::bloom_filter(l));
        }
        let detail = match values_in_from(l) {
            Some(n) => values_clause(n),
            None if self.updates => print::level(l, extreme).replace(" COVERING INDEX ", " INDEX "),
            // All rows of a table are counted by its name.
            None if counted => print::access(&l.access, &l.source, &print::own_name(&l.source)),
            None => print::level(l, extreme),
        };
        let id = self.line_of(l, Role::Loop, detail);
        if let Access::Or(branches) = &l.access {
            self.below(id, |t| {
                for (k, b) in branches.iter().enumerate() {
                    let index = t.line_of(b, Role::Index, format!("INDEX {}", k + 1));
                    t.below(index, |t| {
                        t.access(&b.access);
                        t.line_of(b, Role::Branch, print::branch(b, l));
                    });
                    t.exprs(&b.filter);
                }
            });
        } else {
            self.access(&l.access);
        }
        self.exprs(constant.iter().chain(&l.on).chain(&l.filter));
    }

    /// The nested queries in what rows are sought by.
    fn access(&mut self, a: &Access) {
        if self.nested.is_empty() {
            return;
        }
        match a {
            Access::Scan { .. } | Access::IndexScan { .. } | Access::Or(_) => {}
            Access::RowidEq { eq, .. } => self.sought(eq),
            Access::RowidRange { lo, hi, .. } => self.exprs(lo.iter().chain(hi).map(|b| &b.value)),
            Access::Index(i) => {
                i.eq.iter().for_each(|e| self.sought(e));
                self.exprs(i.lo.iter().chain(&i.hi).flat_map(Bound::values));
            }
            Access::Auto { eq, filter, .. } => {
                self.exprs(filter);
                eq.iter().for_each(|(_, e)| self.sought(e));
            }
            Access::Virtual { args, .. } => args.iter().for_each(|a| self.sought(&a.value)),
        }
    }

    fn sought(&mut self, e: &EqTerm) {
        match e {
            EqTerm::Eq { value, .. } => self.expr(value),
            EqTerm::InList(l) => self.exprs(&l.list),
            EqTerm::InSelect(s, _) => self.nested_query(&s.select, Use::Sought),
            EqTerm::IsNull | EqTerm::Any => {}
        }
    }

    /// The rows of right sides that found no match.
    fn unmatched(&mut self, c: &'p CorePlan) {
        for l in c.levels.iter().filter(|l| l.source.join.right) {
            let id = self.line_of(l, Role::Unmatched, format!("RIGHT-JOIN {}", print::own_name(&l.source)));
            self.below(id, |t| {
                let name = print::source_name(&l.source);
                t.line(match &l.again {
                    Some(a) => print::access(a, &l.source, &name),
                    None => format!("SCAN {name}"),
                });
            });
        }
    }
}

/// How many rows a VALUES clause of several constant rows has.
fn rows_of_values(c: &CorePlan) -> Option<usize> {
    let constant = c.values.len() > 1 && c.values.fields().iter().all(Expr::is_constant);
    constant.then_some(c.values.len())
}

fn values_clause(n: usize) -> String {
    format!("SCAN {n}-ROW VALUES CLAUSE")
}

/// The same of one that stands in FROM: its rows are scanned where they stand.
fn values_in_from(l: &Level) -> Option<usize> {
    let q = l.query.as_deref()?;
    let [core] = &q.select.cores[..] else { return None };
    let plain =
        q.cte.is_none() && q.recursive.is_none() && q.select.order_by.is_empty() && q.select.limit.is_none();
    rows_of_values(core).filter(|_| plain && matches!(l.access, Access::Scan { .. }))
}

fn frame_exprs(f: &Frame) -> impl Iterator<Item = &Expr> {
    [&f.start, &f.end].into_iter().filter_map(|b| match b {
        FrameBound::Preceding(e) | FrameBound::Following(e) => Some(e),
        _ => None,
    })
}
