//! From bound queries to plan trees.

use crate::access::{self, Accesses, Asked, Candidate};
use crate::bind::{Binder, Env};
use crate::bloom;
use crate::bound::*;
use crate::bounds;
use crate::cost;
use crate::distinct;
use crate::join_order::{self, Path, Wanted, What};
use crate::lookup;
use crate::merge;
use crate::plan::*;
use crate::point::{self, Point};
use crate::rewrite::exists;
use crate::rewrite::fixed_columns;
use crate::rewrite::flatten::{self, Around};
use crate::rewrite::having;
use crate::rewrite::not_null;
use crate::rewrite::outer_join;
use crate::rewrite::push_down;
use crate::rewrite::union_all;
use crate::terms::{self, Mask, Term};
use crate::walk;
use crate::window;
use iolite_base::{Encoding, Error, Few, Result};
use iolite_ext::{ConstraintOp, FunctionFlags, OrderUse};
use iolite_sql::ast::CompoundOp;
use iolite_value::{Affinity, Collation, Value};
use std::mem::swap;

/// Plans queries; those nested in expressions go to the statement's list, by their numbers.
pub(crate) struct Planner<'a> {
    env: &'a Env<'a>,
    /// The rows found are to be changed: they are visited in the table's order unless an index is sought.
    changing: bool,
    /// LIMIT and OFFSET of the query whose only arm is planned next, where a module is told them.
    limits: Option<(Expr, Option<Expr>)>,
    /// Its LIMIT, where that is a number.
    most: Option<f64>,
    /// No expression holds a query: none is searched for one.
    flat: bool,
    /// The statement changes no rows.
    reads_only: bool,
    /// The numbers that the statement has used.
    numbers: Numbers,
    /// How often the query that is being planned is thought to run.
    runs: f64,
    /// Rows of the queries around a nested one that depends on them: it runs for each.
    rows_around: f64,
    /// Plans of nested queries.
    subplans: &'a mut NestedPlans,
}

impl<'a> Planner<'a> {
    /// A planner for what `binder` has bound.
    pub fn after(env: &'a Env<'a>, binder: &Binder<'_>, subplans: &'a mut NestedPlans) -> Planner<'a> {
        Planner {
            env,
            changing: false,
            limits: None,
            most: None,
            flat: !binder.has_subqueries(),
            reads_only: false,
            numbers: binder.numbers(),
            runs: 1.0,
            rows_around: 1.0,
            subplans,
        }
    }

    /// The statement changes nothing: what a query would give can be looked up where it is stored.
    pub fn reads_only(mut self) -> Planner<'a> {
        self.reads_only = true;
        self
    }

    /// Plans the rows that an UPDATE or DELETE changes, into an empty plan.
    pub fn rows_to_change(&mut self, rows: &mut Core, out: &mut CorePlan) -> Result<()> {
        self.changing = true;
        self.core(rows, &mut Vec::new(), true, out).map(|_| ())
    }

    /// Plans a query.
    fn select(&mut self, mut s: Select) -> Result<SelectPlan> {
        let mut out = SelectPlan::with_one_arm();
        self.select_into(&mut s, &mut out)?;
        Ok(out)
    }

    /// As [`Planner::select`]: takes the query's parts, fills in a plan that is as [`SelectPlan::with_one_arm`] makes it.
    pub fn select_into(&mut self, s: &mut Select, out: &mut SelectPlan) -> Result<()> {
        if s.cores.iter().any(|c| c.sources.iter().any(is_query)) {
            self.expand(s);
        }
        for e in s.limit.iter().chain(&s.offset) {
            self.nested(e)?;
        }
        if s.cores.len() > 1 || !s.cores[0].values.is_empty() {
            return self.arms(s, out);
        }
        swap(&mut out.limit, &mut s.limit);
        swap(&mut out.offset, &mut s.offset);
        swap(&mut out.columns, &mut s.columns);
        swap(&mut out.order_by, &mut s.order_by);
        let plan = &mut out.cores[0];
        self.most = match out.limit {
            Some(Expr::Const(Value::Int(n))) if n >= 0 => Some(n as f64),
            _ => None,
        };
        if let (Some(limit), [source]) = (&out.limit, &s.cores[0].sources[..])
            && virtual_table(source)
        {
            self.limits = Some((limit.clone(), out.offset.clone()));
        }
        out.ordered = self.core(&mut s.cores[0], &mut out.order_by, true, plan)?;
        if plan.levels.first().is_some_and(skips_rows) {
            out.offset = None;
        }
        out.rows = match &out.limit {
            Some(Expr::Const(Value::Int(n))) if *n >= 0 => plan.rows.min(*n as f64),
            _ => plan.rows,
        };
        Ok(())
    }

    /// Compounds in FROM become arms of the query itself.
    #[inline(never)]
    fn expand(&mut self, s: &mut Select) {
        flatten::take_limit(s);
        if union_all::count(s, &mut self.numbers) {
            self.flat = false;
            return;
        }
        while let [core] = &mut s.cores[..] {
            let order_by = &mut s.order_by;
            flatten::flatten(core, Around { order_by, only: true, changing: false });
            // A view that was within another may have a limit, too.
            let had = s.limit.is_some();
            flatten::take_limit(s);
            if s.limit.is_some() == had {
                break;
            }
        }
        union_all::expand(s, &mut self.numbers);
        flatten::hand_down_order(s);
    }

    /// The arms of a compound, and the rows of VALUES.
    #[inline(never)]
    fn arms(&mut self, s: &mut Select, out: &mut SelectPlan) -> Result<()> {
        let mut merge = if s.cores.len() > 1 { merge::of(s, &self.binary()) } else { None };
        swap(&mut out.limit, &mut s.limit);
        swap(&mut out.offset, &mut s.offset);
        swap(&mut out.columns, &mut s.columns);
        swap(&mut out.order_by, &mut s.order_by);
        let counted = s.ops.iter().all(|o| *o == CompoundOp::UnionAll);
        // The terms of a compound's ORDER BY are columns of its arms, whose queries are planned with these, after flattening.
        for o in out.order_by.iter().filter(|o| o.column.is_none()) {
            self.nested(&o.expr)?;
        }
        out.cores = Few::with_capacity(s.cores.len());
        let counted = counted && out.order_by.is_empty() && out.offset.is_none();
        for (k, c) in s.cores.iter_mut().enumerate() {
            // No arm has to give more rows than are wanted of all.
            if let ([source], true) = (&c.sources[..], counted)
                && virtual_table(source)
            {
                self.limits = out.limit.clone().map(|l| (l, None));
            }
            out.cores.push(CorePlan::default());
            let plan = out.cores.last_mut().expect("just added");
            let mut order = merge.as_mut().map_or_else(Vec::new, |m| std::mem::take(&mut m.orders[k]));
            let ordered = self.core(c, &mut order, false, plan)?;
            if let Some(m) = merge.as_mut().filter(|_| !ordered && plan.values.len() != 1) {
                m.orders[k] = order;
            }
        }
        out.merge = merge.map(Box::new);
        out.rows = out.cores.iter().map(|p| p.rows).sum();
        Ok(())
    }

    /// Plans the queries nested in an expression.
    pub fn nested(&mut self, e: &Expr) -> Result<()> {
        if self.flat {
            return Ok(());
        }
        let mut found = Vec::new();
        let _ = e.walk(&mut |x| {
            match x {
                Expr::Subquery(s, _) | Expr::Exists(s) => {
                    found.push((s.clone(), matches!(x, Expr::Exists(_)), None))
                }
                Expr::InSelect(i) => found.push((i.select.clone(), false, Some(i.clone()))),
                _ => {}
            }
            std::ops::ControlFlow::Continue(())
        });
        for (s, exists, member) in found {
            if self.subplans.contains(s.id) {
                continue;
            }
            let mut select = s.select.clone();
            if exists {
                // Whether there is a row does not depend on order, duplicates or what is selected.
                select.order_by.clear();
                if select.cores.len() == 1 && !select.cores[0].aggregate {
                    select.cores[0].distinct = false;
                }
            }
            let runs = if s.outer.is_empty() { 1.0 } else { self.rows_around.clamp(1.0, cost::MOST_RUNS) };
            let former = (std::mem::replace(&mut self.runs, runs), self.rows_around);
            let planned = self.select(select);
            (self.runs, self.rows_around) = former;
            let mut plan = planned?;
            plan.one_row = member.is_none();
            if let Some(i) = member.filter(|_| self.reads_only) {
                plan.lookup = lookup::find(self.env, &i, &plan)?.map(Box::new);
            }
            self.subplans.insert(s.id, plan);
        }
        Ok(())
    }

    /// BINARY in this database.
    fn binary(&self) -> Collation {
        match self.env.encoding {
            Encoding::Utf8 => Collation::Binary,
            other => Collation::Binary16(other),
        }
    }

    /// Plans one of several arms.
    fn arm(&mut self, core: &mut Core, plan: &mut CorePlan) -> Result<()> {
        self.core(core, &mut Vec::new(), false, plan).map(|_| ())
    }

    /// Plans one arm, whose parts go to `plan`; `order_by` is that of the query, if this is its only arm. Answers whether
    /// the loops deliver it.
    fn core(
        &mut self,
        core: &mut Core,
        order_by: &mut Vec<OrderTerm>,
        only: bool,
        plan: &mut CorePlan,
    ) -> Result<bool> {
        let changing = std::mem::take(&mut self.changing);
        let (mut limits, mut most) = (self.limits.take(), self.most.take());
        if !core.values.is_empty() {
            for e in core.values.fields() {
                self.nested(e)?;
            }
            plan.rows = core.values.len() as f64;
            plan.values = std::mem::take(&mut core.values);
            plan.result = std::mem::take(&mut core.result);
            return Ok(false);
        }
        flatten::flatten(core, Around { order_by, only, changing });
        if let Some(wrong) = core.sources.iter().find_map(Source::misfit) {
            return Err(Error::sql(wrong));
        }
        outer_join::strengthen(core);
        if !changing {
            outer_join::omit(core, order_by);
        }
        push_down::push_down(core, &mut self.numbers);
        if !changing && !self.flat {
            exists::join(core);
        }
        // The engine itself asks whether what is declared holds.
        if !self.env.own {
            not_null::simplify(core, order_by);
        }
        fixed_columns::conclude(core);
        having::to_rows(core);
        if let Some(point) = point::find(self.env, core)? {
            self.point(plan, core, order_by, point)?;
            // A row alone is in every order.
            return Ok(!order_by.is_empty());
        }
        walk::mark_used(core, order_by.iter().map(|o| &o.expr));
        access::held::note(self.env, core, order_by)?;
        // Behind window functions, rows are ordered anew.
        let mut windows = std::mem::take(&mut core.windows);
        let mut final_order = if windows.is_empty() { Vec::new() } else { std::mem::take(order_by) };
        window::sorted_by_first(&core.result, &mut windows, &final_order);
        let first_pass = windows.last().map_or_else(Vec::new, |w| window::input_order(w, &self.binary()));
        let input_order = if core.aggregate { &[][..] } else { &first_pass[..] };

        plan.grouping = match (core.aggregate, core.group_by.is_empty()) {
            (false, _) => Grouping::None,
            (true, true) => Grouping::All,
            (true, false) => Grouping::Hash,
        };
        plan.extreme = windows.is_empty() && is_extreme(core);
        let min_max = if windows.is_empty() { self.min_max(core) } else { None };
        plan.unordered = min_max.is_none()
            && core.group_by.is_empty()
            && (core.aggregate || order_by.is_empty() && !core.distinct);
        let terms = terms::analyse(core);
        if bounds::exclude_all(&terms, &core.sources) {
            plan.constant.push(Expr::int(0));
        }
        if core.aggregate || core.distinct || !windows.is_empty() {
            limits = None;
        }
        if core.aggregate || !windows.is_empty() {
            most = None;
        }
        plan.distinct = match core.distinct {
            false => Distinct::No,
            true if windows.is_empty() && distinct::is_redundant(core, &terms) => Distinct::Unique,
            true => Distinct::Set,
        };
        let may_be_adjacent = plan.distinct == Distinct::Set && !core.aggregate && windows.is_empty();
        let results = if may_be_adjacent { distinct::terms(core) } else { Vec::new() };
        // Queries in FROM first: their size matters for the order of the loops.
        let queries = self.queries_in_from(core)?;
        let mut path = if core.sources.is_empty() {
            Path { ordered: true, rows: 1.0, ..Path::default() }
        } else {
            let order = if windows.is_empty() { &order_by[..] } else { input_order };
            // A module is not told of a window's order: it may refuse orders that it cannot give.
            let offered = windows.is_empty();
            let order = (order, offered, limits, most);
            self.loops(core, &terms, order, &results, min_max.as_ref(), (&queries, changing))?
        };
        if path.adjacent {
            plan.distinct = Distinct::Adjacent;
            plan.passes = distinct::passes(core, &core.result, &path.loops);
        }
        plan.arguments_adjacent = path.arguments;
        if let (true, Some(argument)) = (path.arguments, distinct::lone_argument(core)) {
            plan.passes = distinct::passes(core, std::slice::from_ref(argument), &path.loops);
        }
        if core.distinct && windows.is_empty() && path.loops.iter().all(|c| c.one_row) {
            plan.distinct = Distinct::Unique;
        }
        // The rows of a right side without a match come last, whatever the loops' order.
        path.ordered &= !core.sources.iter().any(|s| s.join.right);
        let mut ordered = path.ordered && plan.grouping == Grouping::None && !order_by.is_empty();
        let sorted = if path.ordered { input_order.len() } else { path.delivered };
        plan.delivered = if windows.is_empty() { path.delivered } else { 0 };
        plan.inner_ordered = path.inner && !core.aggregate && windows.is_empty();
        plan.unordered &= input_order.is_empty() || sorted == 0;
        match plan.grouping {
            Grouping::All => plan.first_row_only = min_max.is_some() && path.ordered,
            Grouping::Hash => {
                plan.group_desc = vec![false; core.group_by.len()];
                let like_order = group_order(&core.group_by, order_by, &self.binary());
                if path.ordered {
                    plan.grouping = Grouping::Ordered;
                    ordered = path.sorted && !order_by.is_empty();
                } else if let Some(desc) = like_order {
                    for (g, d) in plan.group_desc.iter_mut().zip(&desc) {
                        *g = *d;
                    }
                    ordered = !order_by.is_empty();
                } else {
                    // As many terms: groups take over the directions, which decides about ties.
                    let wanted = if windows.is_empty() { &order_by[..] } else { &first_pass[..] };
                    if wanted.len() == core.group_by.len() {
                        plan.group_desc = wanted.iter().map(|o| o.desc).collect();
                    }
                }
            }
            _ => {}
        }
        if core.distinct && ordered && plan.grouping != Grouping::None {
            ordered = order_by.is_empty();
        }
        let counts = windows.is_empty() && counts_rows(core);
        self.rows_around = self.runs * path.rows;
        plan.rows = match plan.grouping {
            Grouping::None => path.rows,
            Grouping::All => 1.0,
            _ => (path.rows * 0.25).max(1.0),
        };
        self.levels(plan, core, path, queries, terms, changing)?;
        plan.count_only = counts && counts_all(plan);
        plan.count_runs = counts && !plan.count_only && counts_ranges(plan);
        swap(&mut plan.group_by, &mut core.group_by);
        swap(&mut plan.aggs, &mut core.aggs);
        swap(&mut plan.having, &mut core.having);
        swap(&mut plan.result, &mut core.result);
        if plan.grouping == Grouping::Hash {
            crate::subtypes::strip_grouped(plan);
        }
        if !self.flat {
            let of_aggs = plan
                .aggs
                .iter()
                .flat_map(|a| a.args.iter().chain(&a.filter).chain(a.order_by.iter().map(|o| &o.expr)));
            let of_order = order_by.iter().chain(&final_order).map(|o| &o.expr);
            for e in plan
                .group_by
                .iter()
                .chain(&plan.having)
                .chain(&plan.result)
                .chain(&plan.constant)
                .chain(of_aggs)
                .chain(windows.iter().flat_map(WindowDef::exprs))
                .chain(of_order)
            {
                self.nested(e)?;
            }
        }
        if !windows.is_empty() {
            let ordered = window::orders(&windows, &final_order, &self.binary());
            *plan = window::split(std::mem::take(plan), windows, &mut final_order, &self.binary());
            if let Some(pass) = plan.window.as_mut().and_then(|w| w.windows.last_mut()) {
                pass.delivered = sorted.min(input_order.len());
            }
            *order_by = final_order;
            return Ok(ordered);
        }
        Ok(ordered)
    }

    /// `min(e)` or `max(e)` as the only aggregate of an ungrouped query: the first row in order decides.
    fn min_max(&self, core: &mut Core) -> Option<Vec<OrderTerm>> {
        if !is_extreme(core) || core.sources.iter().any(|s| s.join.right) {
            return None;
        }
        let a = &core.aggs[0];
        let max = a.function.flags.has(FunctionFlags::MAX);
        let expr = a.args[0].clone();
        if expr.is_constant() {
            return None;
        }
        let own = |c: &ColumnRef| core.sources.iter().any(|s| s.id == c.table);
        let mut results = core.result.iter().chain(&core.having);
        let bare = results.any(|e| e.any(&mut |x| matches!(x, Expr::Column(c) if own(c))));
        let only = !bare && core.having.is_none();
        if only && !max {
            core.filter.push(Filter { expr: Expr::NotNull(Box::new(expr.clone())), on: None });
        }
        // A row is needed for the other results even where there is nothing but NULL.
        let nulls_large = !max && !only;
        let collation = a.collation.clone();
        Some(vec![OrderTerm { expr, column: None, desc: max, nulls_large, collation }])
    }

    #[allow(clippy::type_complexity)]
    #[inline(always)]
    fn loops(
        &mut self,
        core: &Core,
        terms: &[Term],
        (order_by, offered, limits, most): (&[OrderTerm], bool, Option<(Expr, Option<Expr>)>, Option<f64>),
        results: &[OrderTerm],
        min_max: Option<&Vec<OrderTerm>>,
        (queries, changing): (&[Option<Box<FromPlan>>], bool),
    ) -> Result<Path> {
        let constant = constants(core, terms);
        let (group_terms, argument);
        let wanted = if let Some(m) = min_max {
            Some(Wanted { terms: m, what: What::Order, part: false, most, constant: &constant })
        } else if core.aggregate && !core.group_by.is_empty() {
            group_terms = core.group_by.iter().map(distinct::term).collect::<Vec<_>>();
            Some(Wanted { terms: &group_terms, what: What::Groups, part: false, most, constant: &constant })
        } else if !order_by.is_empty() && !core.aggregate {
            Some(Wanted {
                terms: order_by,
                what: What::Order,
                most,
                part: !core.sources.iter().any(|s| s.join.right),
                constant: &constant,
            })
        } else if let (Some(a), [_]) = (distinct::argument(core), &core.aggs[..]) {
            argument = [distinct::term(a)];
            Some(Wanted { terms: &argument, what: What::Groups, part: false, most, constant: &constant })
        } else if !results.is_empty() {
            let part = !core.sources.iter().any(|s| s.join.right);
            Some(Wanted { terms: results, what: What::Distinct, part, most, constant: &constant })
        } else {
            None
        };
        // Groups take over the directions of as many ORDER BY terms, whatever these are, and a module is told them so.
        let directed = match &wanted {
            Some(Wanted { what: What::Groups, terms, .. }) if order_by.len() == terms.len() => {
                let term = |(g, o): (&OrderTerm, &OrderTerm)| OrderTerm { desc: o.desc, ..g.clone() };
                terms.iter().zip(order_by).map(term).collect()
            }
            _ => Vec::new(),
        };
        let of_rows =
            |_: &&Wanted<'_>| offered && (!core.aggregate || !core.group_by.is_empty() || min_max.is_some());
        let asked = wanted.as_ref().filter(of_rows).map(|w| {
            let purpose = match w.what {
                What::Distinct => OrderUse::Distinct,
                What::Groups => OrderUse::Grouped,
                What::Order if !results.is_empty() => OrderUse::DistinctSorted,
                What::Order => OrderUse::Sorted,
            };
            Asked { terms: if directed.is_empty() { w.terms } else { &directed }, purpose }
        });
        let before = join_order::before(&core.sources);
        let a = Accesses {
            env: self.env,
            sources: &core.sources,
            terms,
            queries,
            before: &before,
            changing: changing && core.sources.len() == 1,
            asked,
            ordered: wanted.is_some(),
            order_counts: wanted.is_some() || distinct::argument(core).is_some(),
            limits: limits.as_ref().map(|(limit, offset)| (limit, offset.as_ref())),
        };
        let mut candidates: Few<Vec<Candidate>> = Few::with_capacity(core.sources.len());
        for i in 0..core.sources.len() {
            candidates.push(a.of(i)?);
        }
        let path = join_order::search(&core.sources, candidates, wanted.as_ref(), self.runs);
        let mut path = path.ok_or_else(|| Error::sql("no query solution"))?;
        if core.sources.iter().any(|s| s.join.right) {
            for (i, list) in a.unmatched()? {
                let found = join_order::search(&core.sources[i..=i], Few::one(list), None, 1.0);
                path.again.extend(found.and_then(|mut p| p.loops.pop()).map(|c| (i, Some(c.access))));
            }
        }
        let grouped = core.aggregate && !core.group_by.is_empty();
        if path.ordered && grouped && group_order(&core.group_by, order_by, &self.binary()).is_some() {
            let w = Wanted { terms: order_by, what: What::Order, part: false, most, constant: &constant };
            if let Some(reverse) = join_order::directions(&core.sources, &path.loops, &w) {
                (path.reverse, path.sorted) = (reverse, true);
            }
        }
        path.adjacent = match &wanted {
            _ if results.is_empty() || core.sources.iter().any(|s| s.join.right) => false,
            Some(Wanted { what: What::Distinct, .. }) => std::mem::take(&mut path.ordered),
            _ => {
                let w =
                    Wanted { terms: results, what: What::Distinct, part: false, most, constant: &constant };
                join_order::delivers(&core.sources, &path.loops, &w)
            }
        };
        if matches!(&wanted, Some(Wanted { what: What::Distinct, .. })) {
            path.delivered = 0;
        }
        // Groups that come one after the other, and in each the arguments.
        if let Some(a) = distinct::argument(core)
            && (path.ordered || core.group_by.is_empty())
            && !core.sources.iter().any(|s| s.join.right)
        {
            let terms: Vec<OrderTerm> = core.group_by.iter().chain([a]).map(distinct::term).collect();
            let w = Wanted { terms: &terms, what: What::Groups, part: false, most, constant: &constant };
            path.arguments = join_order::delivers(&core.sources, &path.loops, &w);
        }
        Ok(path)
    }

    /// Plans the queries in FROM, by the places of their sources. Of these only the columns are left.
    fn queries_in_from(&mut self, core: &mut Core) -> Result<Few<Option<Box<FromPlan>>>> {
        let mut out = Few::with_capacity(core.sources.len());
        for i in 0..core.sources.len() {
            let shared = match &core.sources[i].kind {
                SourceKind::Subquery(q) => shared_cte(core, q),
                _ => false,
            };
            let s = &mut core.sources[i];
            out.push(match &mut s.kind {
                SourceKind::Subquery(q) => Some(Box::new(self.query_in_from(q, &s.used, shared)?)),
                _ => None,
            });
        }
        Ok(out)
    }

    /// `shared`: another source reads the same rows, and other columns of them.
    fn query_in_from(&mut self, q: &mut FromQuery, used: &NumberSet, shared: bool) -> Result<FromPlan> {
        let columns = q.select.columns.clone();
        let drops = q.recursive.is_none() && !shared && q.materialize != Some(true) && q.outer.is_empty();
        let mut select = std::mem::replace(&mut q.select, Select { columns, ..Select::default() });
        let late = if drops { drop_unread(&mut select, used) } else { Vec::new() };
        for e in select.cores.iter_mut().flat_map(|c| c.values.fields_mut().iter_mut().chain(&mut c.result)) {
            *e = std::mem::replace(e, Expr::int(0)).as_column();
        }
        if q.recursive.is_some() {
            select.order_by.clear();
        }
        let mut plan = self.select(select)?;
        for k in late.into_iter().filter(|k| !plan.order_by.iter().any(|o| o.column == Some(*k))) {
            let results = plan.cores.iter_mut().filter_map(|c| c.result.get_mut(k));
            results.for_each(|e| *e = Expr::Const(Value::Null));
        }
        let recursive = match &mut q.recursive {
            None => None,
            Some(r) => {
                let mut arms = Vec::with_capacity(r.arms.len());
                for mut a in std::mem::take(&mut r.arms) {
                    arms.push(CorePlan::default());
                    self.arm(&mut a, arms.last_mut().expect("just added"))?;
                }
                for e in r.limit.iter().chain(&r.offset) {
                    self.nested(e)?;
                }
                Some(RecursivePlan {
                    id: r.id,
                    arms,
                    distinct: r.distinct,
                    order_by: r.order_by.clone(),
                    limit: r.limit.clone(),
                    offset: r.offset.clone(),
                })
            }
        };
        let (coroutine, forward, interleaved) = (false, false, false);
        let correlated = !q.outer.is_empty();
        Ok(FromPlan { select: plan, recursive, coroutine, forward, interleaved, cte: q.cte, correlated })
    }

    /// The plan for the row that [`point::find`] found.
    fn point(
        &mut self,
        plan: &mut CorePlan,
        core: &mut Core,
        order_by: &[OrderTerm],
        mut point: Point,
    ) -> Result<()> {
        if point.is_unsettled() {
            walk::mark_used(core, order_by.iter().map(|o| &o.expr));
            point.settle(&core.sources[0]);
        }
        let (used, access) = point.into_access();
        self.access_exprs(&access)?;
        let source = core.sources[0].id;
        let mut filter = Vec::new();
        for (n, f) in std::mem::take(&mut core.filter).into_iter().enumerate() {
            if used.contains(&n) {
                continue;
            }
            self.nested(&f.expr)?;
            let mut constant = true;
            f.expr.tables(&mut |t| constant &= t != source);
            if constant { plan.constant.push(f.expr) } else { filter.push(f.expr) }
        }
        // Cheap conditions first.
        let last = crate::expr::tested_last(&filter);
        filter.sort_by_key(last);
        swap(&mut plan.result, &mut core.result);
        (plan.distinct, plan.rows) = (if core.distinct { Distinct::Unique } else { Distinct::No }, 1.0);
        if !self.flat {
            let of_order = order_by.iter().map(|o| &o.expr);
            for e in plan.constant.iter().chain(&plan.result).chain(of_order) {
                self.nested(e)?;
            }
        }
        let (source, on) = (std::mem::take(&mut core.sources).into_only(), Vec::new());
        let (query, again, bloom, rows) = (None, None, Bloom::None, 1.0);
        plan.levels = Few::one(Level { source, query, access, again, on, filter, bloom, rows });
        Ok(())
    }

    /// Turns the path into levels and hands each condition to the level where it is tested. Takes the arm's sources.
    #[inline(always)]
    fn levels(
        &mut self,
        plan: &mut CorePlan,
        core: &mut Core,
        path: Path,
        mut queries: Few<Option<Box<FromPlan>>>,
        terms: Vec<Term>,
        changing: bool,
    ) -> Result<()> {
        for (i, q) in queries.iter_mut().enumerate() {
            let (Some(q), source) = (q, &core.sources[i]) else { continue };
            let SourceKind::Subquery(bound) = &source.kind else { continue };
            q.forward = match changing {
                true => !q.select.order_by.is_empty() && q.select.limit.is_none(),
                false => interleaved(core, i),
            };
            q.coroutine = !changing
                && !is_materialized(source)
                && !source.join.left
                && !source.join.right
                && !shared_cte(core, bound);
        }
        let positions = |is: fn(&JoinKind) -> bool| -> Mask {
            core.sources.iter().enumerate().fold(0, |m, (i, s)| m | u64::from(is(&s.join)) << i)
        };
        let (right, outer) = (positions(|j| j.right), positions(|j| j.left || j.right));
        let all = core.sources.len();
        let Path { loops, reverse, apart, mut again, .. } = path;
        let as_written = loops.iter().enumerate().all(|(l, c)| l == c.source);
        let given = std::mem::take(&mut core.sources);
        let (mut in_turn, by_place) = match as_written {
            true => (Some(given.into_iter()), Few::new()),
            false => (None, given),
        };
        let (mut used, mut place) = (NumberSet::default(), [0u8; Mask::BITS as usize]);
        plan.levels = Few::with_capacity(loops.len());
        for (l, c) in loops.into_iter().enumerate() {
            place[c.source] = l as u8;
            used.extend(&c.used);
            let moved = in_turn.as_mut().and_then(Iterator::next);
            let source = moved.unwrap_or_else(|| by_place[c.source].clone());
            if let Some(s) = &source.exists {
                // An executor may have it as the condition that it was.
                self.nested(&Expr::Exists(s.clone()))?;
            }
            let mut query = queries[c.source].take();
            if let Some(q) = &mut query {
                q.coroutine &= l == 0 && matches!(c.access, Access::Scan { .. });
                q.interleaved = if changing { q.coroutine } else { q.forward };
            }
            let mut access = c.access;
            if apart >> l & 1 != 0 {
                if let Access::IndexScan { index, key, reverse, covering } = access {
                    access = Access::Index(Box::new(IndexAccess::whole(index, key, reverse, covering)));
                }
                if let Access::Index(a) = &mut access {
                    a.nulls_apart = true;
                }
            }
            if reverse >> l & 1 != 0 {
                match &mut access {
                    Access::Scan { reverse }
                    | Access::IndexScan { reverse, .. }
                    | Access::RowidEq { reverse, .. }
                    | Access::RowidRange { reverse, .. } => *reverse = true,
                    Access::Index(a) => a.reverse = true,
                    _ => {}
                }
            }
            self.access_exprs(&access)?;
            let (on, filter) = (Vec::new(), Vec::new());
            let again = again.iter_mut().find(|a| a.0 == c.source).and_then(|a| a.1.take()).map(Box::new);
            if let Some(a) = &again {
                self.access_exprs(a)?;
            }
            let (bloom, rows) = (Bloom::None, c.rows);
            plan.levels.push(Level { source, query, access, again, on, filter, bloom, rows });
        }
        let level_of = |source: usize| place[source] as usize;
        for (n, t) in terms.into_iter().enumerate() {
            if let (Some(from), Some(form), false) = (t.narrows, t.forms.first(), used.contains(n)) {
                let own = level_of(form.source);
                if own < level_of(from) {
                    plan.levels[own].filter.push(t.expr);
                    continue;
                }
            }
            let on = t.on.filter(|p| outer >> p & 1 != 0).map(level_of);
            let said =
                |(k, l): (usize, &Level)| on.map_or(!l.source.join.left, |p| p == k) && l.is_said(&t.expr);
            if t.derived || used.contains(n) || plan.levels.iter().enumerate().any(said) {
                continue;
            }
            self.nested(&t.expr)?;
            if let Some(p) = t.on.filter(|p| outer >> p & 1 != 0) {
                plan.levels[level_of(p)].on.push(t.expr);
                continue;
            }
            // WHERE decides about the rows without a match of a RIGHT JOIN, too, ON about those of the joins before it.
            let before = right & t.on.map_or(Mask::MAX, |p| Mask::MAX >> (Mask::BITS as usize - 1 - p));
            let floor = (before != 0).then(|| level_of(before.ilog2() as usize));
            // Where a RIGHT JOIN follows, a condition of ON does not decide about all rows.
            let partial = t.on.is_some() && right != before;
            let once = all == 0 || !t.expr.changes_by_call();
            if t.mask == 0 && (t.on.is_none() || floor.is_none()) && !partial && once {
                plan.constant.push(t.expr);
                continue;
            }
            let mut at = floor.unwrap_or(0);
            let mut left = t.mask;
            while left != 0 {
                at = at.max(level_of(left.trailing_zeros() as usize));
                left &= left - 1;
            }
            plan.levels[at].filter.push(t.expr);
        }
        let (mut outer_rows, mut filters, mut worth) = (1.0, false, 0);
        for l in 0..plan.levels.len() {
            let level = &mut plan.levels[l];
            // Cheap conditions first: what an index says before what the row has to be fetched for.
            let index = access::fetches_by(level);
            if level.filter.len() > 1 && (index.is_some() || !self.flat) {
                let index = index.cloned();
                let last = crate::expr::tested_last(&level.filter);
                level.filter.sort_by_key(|e| match &index {
                    _ if !self.flat && last(e) => 2,
                    Some(i) if access::is_within(e, &level.source, i) => 0,
                    _ => 1,
                });
            }
            if self.env.lookahead_filters {
                let pays = l > 0 && bloom::pays(level, outer_rows);
                worth |= u64::from(pays) << l;
                filters |= pays || matches!(level.access, Access::Auto { .. });
            }
            outer_rows *= level.rows.max(1.0);
        }
        if filters {
            bloom::settle(&mut plan.levels, worth);
        }
        Ok(())
    }

    /// Plans the queries nested in an access.
    fn access_exprs(&mut self, a: &Access) -> Result<()> {
        match a {
            Access::RowidEq { eq, .. } => self.eq_exprs(eq)?,
            Access::Index(i) => {
                for e in &i.eq {
                    self.eq_exprs(e)?;
                }
                for e in i.lo.iter().chain(&i.hi).flat_map(Bound::values) {
                    self.nested(e)?;
                }
            }
            Access::RowidRange { lo, hi, .. } => {
                for b in lo.iter().chain(hi) {
                    self.nested(&b.value)?;
                }
            }
            Access::Auto { eq, filter, .. } => {
                for (_, e) in eq {
                    self.eq_exprs(e)?;
                }
                self.all_nested(filter)?;
            }
            Access::Virtual { args, .. } => {
                for a in args {
                    self.eq_exprs(&a.value)?;
                }
            }
            Access::Or(branches) => {
                for b in branches {
                    self.access_exprs(&b.access)?;
                    self.all_nested(&b.filter)?;
                }
            }
            Access::Scan { .. } | Access::IndexScan { .. } => {}
        }
        Ok(())
    }

    fn eq_exprs(&mut self, e: &EqTerm) -> Result<()> {
        match e {
            EqTerm::Eq { value, .. } => self.nested(value),
            EqTerm::InList(l) => self.all_nested(&l.list),
            EqTerm::InSelect(s, _) => self.nested(&Expr::InSelect(s.clone())),
            EqTerm::IsNull | EqTerm::Any => Ok(()),
        }
    }

    /// Plans the queries nested in expressions.
    pub fn all_nested<'e>(&mut self, list: impl IntoIterator<Item = &'e Expr>) -> Result<()> {
        if self.flat {
            return Ok(());
        }
        list.into_iter().try_for_each(|e| self.nested(e))
    }
}

fn is_query(s: &Source) -> bool {
    matches!(s.kind, SourceKind::Subquery(_))
}

/// Whether a source is a virtual table.
fn virtual_table(s: &Source) -> bool {
    matches!(s.kind, SourceKind::Virtual { .. })
}

/// Whether the module of a virtual table leaves out the rows that OFFSET says.
fn skips_rows(l: &Level) -> bool {
    let Access::Virtual { info, .. } = &l.access else { return false };
    let mut both = info.constraints.iter().zip(&info.usage);
    both.any(|(c, u)| c.op == ConstraintOp::Offset && u.arg > 0 && u.omit)
}

/// Puts NULL for the columns of a query in FROM that nobody reads, where that changes nothing else. Answers which can be left out
/// once the loops are chosen: which rows are within a limit may hang on what these deliver, and then they are those that read the
/// columns.
fn drop_unread(select: &mut Select, used: &NumberSet) -> Vec<usize> {
    let sets = select.ops.iter().any(|o| *o != CompoundOp::UnionAll);
    let whole = |c: &Core| c.aggregate || c.distinct || !c.windows.is_empty();
    if sets || !select.ops.is_empty() && !select.order_by.is_empty() || select.cores.iter().any(whole) {
        return Vec::new();
    }
    let mut late = Vec::new();
    let limited = select.limit.is_some();
    for i in (0..select.columns.len()).filter(|i| !used.contains(*i)) {
        let column = |c: &Core| matches!(c.result.get(i), Some(Expr::Column(_)));
        if limited && select.cores.iter().any(column) {
            late.push(i);
            continue;
        }
        for c in &mut select.cores {
            for row in c.values.iter_mut().chain(std::iter::once(&mut c.result[..])) {
                if let Some(e) = row.get_mut(i) {
                    *e = Expr::Const(Value::Null);
                }
            }
        }
    }
    late
}

/// Whether the query is a common table expression AS MATERIALIZED.
fn is_materialized(s: &Source) -> bool {
    matches!(&s.kind, SourceKind::Subquery(q) if q.materialize == Some(true))
}

/// Whether the same common table expression is used elsewhere: in the statement, or by another source if it depends on the row.
fn shared_cte(core: &Core, q: &FromQuery) -> bool {
    let same = |s: &&Source| matches!(&s.kind, SourceKind::Subquery(x) if x.cte == q.cte);
    q.is_shared() || q.cte.is_some() && core.sources.iter().filter(same).count() > 1
}

/// Whether the arm is not grouped and its only aggregate is `min(e)` or `max(e)`.
fn is_extreme(core: &Core) -> bool {
    let [a] = &core.aggs[..] else { return false };
    let either = [FunctionFlags::MIN, FunctionFlags::MAX].iter().any(|f| a.function.flags.has(*f));
    core.group_by.is_empty() && either && a.args.len() == 1 && a.filter.is_none()
}

/// Whether SQLite runs the query in FROM interleaved with its reader: the first query of the list, with nothing but inner
/// joins before it.
fn interleaved(core: &Core, at: usize) -> bool {
    let SourceKind::Subquery(q) = &core.sources[at].kind else { return false };
    let stored = q.materialize.unwrap_or_else(|| shared_cte(core, q));
    let outer = |s: &Source| s.join.left || s.join.right || s.join.cross;
    !stored
        && !core.sources.iter().any(|s| s.join.right)
        && !core.sources[..=at].iter().any(outer)
        && !core.sources[..at].iter().any(is_query)
}

/// The ORDER BY's directions, if it names the leading GROUP BY terms in their order.
fn group_order(group_by: &[Expr], order_by: &[OrderTerm], binary: &Collation) -> Option<Vec<bool>> {
    if order_by.len() != group_by.len() {
        return None;
    }
    let fits = order_by.iter().zip(group_by).all(|(o, g)| {
        let own = g.collation().map(|c| c.0);
        !o.nulls_large && o.expr.same(g) && o.collation == *own.as_ref().unwrap_or(binary)
    });
    fits.then(|| order_by.iter().map(|o| o.desc).collect())
}

/// Columns that a condition fixes.
fn constants(core: &Core, terms: &[Term]) -> Vec<(TableId, i32)> {
    let mut out = Vec::new();
    for t in terms {
        if t.on.is_some_and(|p| core.sources[p].join.left || core.sources[p].join.right) {
            continue;
        }
        for f in &t.forms {
            let fixed = match &f.op {
                // What another sequence takes for equal may still have an order, and so may what is converted to be equal.
                crate::terms::Op::Eq { .. } => {
                    let own = f.lhs.affinity();
                    let as_stored = f.affinity <= Affinity::Blob
                        || f.affinity == own
                        || f.affinity.is_numeric() && own.is_numeric();
                    as_stored && f.collation.is_binary() && f.value.is_constant()
                }
                crate::terms::Op::IsNull => true,
                _ => false,
            };
            if let Some(c) = f.column
                && fixed
                && f.needs == 0
                && !core.sources[f.source].join.left
            {
                out.push((core.sources[f.source].id, c));
            }
        }
    }
    out
}

/// `SELECT count(*) FROM table`: the tree's entries are counted without looking at them.
fn counts_rows(core: &Core) -> bool {
    core.aggregate
        && core.group_by.is_empty()
        && core.sources.len() == 1
        && core.sources[0].table().is_some()
        && core.aggs.len() == 1
        && core.aggs[0].function.flags.has(FunctionFlags::COUNT)
        && core.aggs[0].args.is_empty()
        && core.aggs[0].filter.is_none()
        && core.having.is_none()
        && !core.result.iter().any(|e| e.any(&mut |x| matches!(x, Expr::Column(_))))
}

/// Whether the only loop goes through ranges of a tree, forwards, and tests nothing else.
fn counts_ranges(plan: &CorePlan) -> bool {
    let [l] = &plan.levels[..] else { return false };
    let ranges = match &l.access {
        Access::Index(a) => a.covering && !a.one_row && !a.reverse && !a.nulls_apart,
        Access::RowidRange { reverse, .. } => !reverse,
        _ => false,
    };
    let inner = !l.source.join.left && !l.source.join.right && l.bloom == Bloom::None;
    ranges && inner && l.filter.is_empty() && l.on.is_empty() && plan.passes.is_none()
}

/// Whether the only loop goes through a whole tree and tests nothing: what a partial index has is no longer to be tested.
fn counts_all(plan: &CorePlan) -> bool {
    let whole = |l: &Level| {
        let scans = matches!(l.access, Access::Scan { .. } | Access::IndexScan { .. });
        scans && l.filter.is_empty() && l.on.is_empty()
    };
    plan.constant.is_empty() && plan.levels.iter().all(whole)
}
