//! Running a query: one table is scanned, the others are looked up.
//!
//! Conditions on single tables are brought into form first; inner tables become maps from key to row. Then the outer
//! table goes by in blocks: cheap conditions and the maps' key sets thin out a selection, in an order that follows what
//! each of them was seen to let through; what is left is joined, tested by the other conditions, and goes to groups or
//! to result rows. Before the last row is computed nothing leaves, so that any doubt on the way ends with "not here"
//! and a program runs the query instead.

use super::scope::{Extra, JoinScope, Run};
use crate::decline::because;
use crate::expr::batch::{Batch, BatchRow, Ints, NO_OUTER, int_bounds};
use crate::expr::columns::{Columns, Kind};
use crate::expr::condition::Truth;
use crate::expr::filter::Pred;
use crate::expr::scope::{Places, Scope};
use crate::expr::{Eval, Ex};
use crate::op::made::Made;
use crate::op::result::{Answer, Rows};
use crate::profile::shown;
use crate::query::tables_of;
use crate::query::{AggSpec, Aggregated, Bound, NestedKind, Query};
use crate::runtime::Runtime;
use crate::star::aggregate::order_free;
use crate::star::build::AWAY;
use crate::star::derive;
use crate::star::group::Groups;
use crate::star::loop_order::{is_natural, tables_in_order};
use crate::star::nested;
use crate::star::split::JoinPlan;
use crate::store::decode::ColKey;
use crate::store::{LoadRequest, Loaded, TableState};
use iolite_base::Result;
use iolite_plan::plan::Grouping;
use iolite_value::{Affinity, Value};
use std::sync::Arc;

/// A join whose rows are passed on gives at most so many times the rows of its largest table, and these.
const MULTIPLIED: u64 = 4;
const FEW_JOINED: u64 = 1 << 16;
/// Pairs of rows that meet one equality of several, for each row of the largest table: loops seek by all of them.
const TESTED: u64 = 32;
const FEW_TESTED: u64 = 1 << 16;
/// Why such a join is left to loops.
pub(crate) const ONE_OF_SEVERAL: &str = "a join that finds many rows by one equality of several";

/// A query that wants no more rows, in whatever order, may end early.
const FEW_WANTED: usize = 1000;

/// The most leaves that a table of the query, or of those nested in it, has.
fn most_leaves(q: &Query, rt: &dyn Runtime) -> Result<usize> {
    let (mut most, mut failed) = (0, None);
    q.each_table(&mut |t, _| {
        let state = || rt.store(t.db)?.table(&rt.btree(t.db)?, t.table.root.get());
        match state() {
            Ok(s) => most = most.max(s.leaves()),
            Err(e) => failed = Some(e),
        }
    });
    failed.map_or(Ok(most), Err)
}

/// The result rows of a query that began at `since`, or `None`: not here.
pub(crate) fn run(
    q: &Query,
    rt: &dyn Runtime,
    params: &[Value],
    wanted: i64,
    since: u64,
    made: &[Option<Made>],
) -> Result<Option<Answer>> {
    run_in(q, rt, params, wanted, &Extra { since, made, ..Extra::default() })
}

/// The same, for a query that asks a nested one.
pub(crate) fn run_in(
    q: &Query,
    rt: &dyn Runtime,
    params: &[Value],
    wanted: i64,
    extra: &Extra<'_>,
) -> Result<Option<Answer>> {
    if q.tables.len() > 60 {
        return Ok(None);
    }
    let mut states = Vec::new();
    for (t, spec) in q.tables.iter().enumerate() {
        states.push(match (&spec.query, extra.made.get(t)) {
            (None, _) => rt.store(spec.db)?.table(&rt.btree(spec.db)?, spec.table.root.get())?,
            (Some(_), Some(Some(_))) => TableState::none(),
            // Nobody has run it.
            (Some(_), _) => return Ok(None),
        });
    }
    let leaves = |t: usize| match extra.made.get(t) {
        Some(Some(m)) => m.leaves(),
        _ => states[t].leaves(),
    };
    if q.by_keys && !rt.force() {
        // Rows found by the keys of a small set are better looked up.
        let own = (0..states.len()).map(leaves).max().unwrap_or(0);
        let mut least = usize::MAX;
        for n in q.nested.iter().filter(|n| n.kind == NestedKind::Set) {
            least = least.min(most_leaves(&n.query, rt)?);
        }
        if least.saturating_mul(16) < own {
            return Ok(None);
        }
    }
    let Some(results) = nested::results_of(q, rt, params, extra.since, run_in)? else { return Ok(None) };
    let eval = Eval::new(rt.host());
    let bound = Bound::new(q, params, &results, &eval)?;
    let whole = (0..q.tables.len()).filter(|t| !q.tables[*t].left);
    let mut outers: Vec<usize> = whole.max_by_key(|t| leaves(*t)).into_iter().collect();
    if !outers.contains(&0) && !q.tables[0].left {
        outers.push(0);
    }
    for outer in outers {
        let limit = usize::try_from(wanted).ok();
        let mut r = Run { q, rt, eval: &eval, bound: &bound, params, extra, outer, run_query: run_in };
        if let Some(rows) = r.run_scanning(&states, limit)? {
            return Ok(Some(rows));
        }
    }
    Ok(None)
}

impl Run<'_> {
    fn run_scanning(&mut self, states: &[Arc<TableState>], limit: Option<usize>) -> Result<Option<Answer>> {
        let q = self.q;
        let Some(mut d) = self.split() else { return Ok(None) };
        let mut places = Places {
            at: vec![(0, 0); q.slots.len()],
            of_table: vec![vec![None; q.slots.len()]; q.tables.len()],
            outer: self.outer,
        };
        // Sums of reals and all that is no aggregate depend on the order of rows.
        let real = |e: &Ex| {
            let mut any = false;
            e.slots(&mut |s| any |= q.slots[s].real);
            any
        };
        let wants_order = self.extra.sink.is_none()
            && (q.grouping == Grouping::None
                || !q.bare.is_empty()
                || self.bound.aggs.iter().any(|(a, _)| a.iter().any(real)));
        // Rows that are collected are read again by their numbers; others go by once, and so may their columns.
        let once = !wants_order || self.outer == 0 && q.in_order;
        let stream = |t: usize| t == self.outer && once && d.correlated.is_empty();
        let mut cols = Vec::new();
        let mut names: Vec<Vec<ColKey>> = Vec::new();
        for (t, state) in states.iter().enumerate() {
            let mut wanted: Vec<(ColKey, &Value)> = Vec::new();
            for (s, slot) in q.slots.iter().enumerate().filter(|(_, s)| s.table == t) {
                places.at[s] = (t, wanted.len());
                places.of_table[t][s] = Some(wanted.len());
                wanted.push((slot.key(), &slot.default));
            }
            if wants_order {
                self.load_with_order(t, state, &wanted, stream(t))?;
            }
            let loaded = self.load(t, state, &wanted, stream(t))?;
            if loaded.rows >= AWAY as usize {
                return Ok(None);
            }
            cols.push(Columns::new(loaded));
            names.push(wanted.iter().map(|w| w.0).collect());
        }
        let left: Vec<bool> = q.tables.iter().map(|t| t.left).collect();
        // So many rows come out of the joins at the most; one of NULLs stands for no match.
        let all = cols.iter().try_fold(1u64, |n, c| n.checked_mul(c.loaded.rows as u64 + 1));
        // Where the order of rows matters and the scan does not deliver it, the rows of some tables must be known.
        let early = JoinScope {
            scope: Scope {
                cols: &cols,
                places: &places,
                eval: self.eval,
                in_order: false,
                most_rows: all,
                left: &left,
                rt: Some(self.rt),
            },
            inners: &[],
        };
        let free = |a: &Aggregated, spec: &AggSpec| order_free(spec, a, &early);
        let any_order = q.grouping != Grouping::None
            && q.bare.is_empty()
            && self.bound.aggs.iter().zip(&q.aggs).all(|(a, spec)| free(a, spec));
        let ordered = self.extra.sink.is_none() && !any_order;
        if ordered {
            d.levels = self.levels(states)?;
        }
        let natural = self.outer == 0 && (q.in_order || d.levels.as_deref().is_some_and(is_natural));
        if ordered && !natural {
            match &d.levels {
                Some(l) => d.keep = tables_in_order(l),
                None => return Ok(None),
            }
        }
        let (start, joins) = (self.now(), d.joins.len());
        let streams = cols[self.outer].loaded.streams();
        d.state = streams.then(|| states[self.outer].clone());
        let matched = match streams {
            true => Vec::new(),
            false => self.derive(&mut d, states, &names, &mut cols, &mut places)?,
        };
        if let Some(p) = self.rt.profile()
            && d.joins.len() < joins
        {
            p.line(format!(
                "DERIVED CODES for {} joins, {}",
                joins - d.joins.len(),
                shown(self.now() - start)
            ));
        }
        self.choose_keys(&mut d, &cols, &places);
        self.combine(&mut d, &cols, &places);
        let mut preds: Vec<Vec<Pred>> = Vec::new();
        preds.resize_with(cols.len(), Vec::new);
        preds[self.outer].extend(matched);
        for (slot, base, bits) in &self.extra.restrict {
            let (t, col) = places.at[*slot];
            if cols[t].kinds[col] != Kind::Int {
                return Ok(None);
            }
            preds[t].push(Pred::IntSet { col, base: *base, set: bits.clone() });
        }
        let Some(inners) = self.build_inners(&d, &cols, &places, &mut preds)? else { return Ok(None) };
        let joins_none = self.joins_none(&inners);
        match joins_none {
            true => preds[self.outer] = vec![Pred::Never],
            false => self.form(self.outer, &d, &cols, &places, &mut preds)?,
        }
        let single = inners.iter().flatten().all(|i| i.unique() && i.is_whole());
        let whole = inners.iter().flatten().all(|i| i.is_whole());
        let natural = natural
            || self.outer == 0
                && d.levels.clone().is_some_and(|mut l| {
                    self.settle_levels(&mut l, &d, &inners);
                    is_natural(&l)
                });
        // Several matches come in the order of the loops only if the tables are joined in it.
        let as_loops = single || d.joins.iter().map(|j| j.table).is_sorted();
        let in_order = natural && as_loops && whole;
        if !in_order {
            self.unique_first(&mut d, &inners);
        }
        let mut setting = JoinScope {
            scope: Scope {
                cols: &cols,
                places: &places,
                eval: self.eval,
                in_order,
                most_rows: if single { Some(cols[self.outer].loaded.rows as u64) } else { all },
                left: &left,
                rt: Some(self.rt),
            },
            inners: &inners,
        };
        // The loops pass on what they join as they find it, and somebody may stop them.
        let passes = q.grouping == Grouping::None && q.distinct.is_none() && self.bound.order.is_empty();
        let most = cols.iter().map(|c| c.loaded.rows as u64).max().unwrap_or(0);
        if passes && limit.is_none() && self.extra.sink.is_none() && !self.rt.force() {
            d.most_joined = Some(MULTIPLIED * most + FEW_JOINED);
        }
        if !self.rt.force()
            && self.extra.sink.is_none()
            && let Some(pairs) = self.pairs_by_part(&d, &cols, &places)
        {
            let most = TESTED * most + FEW_TESTED;
            if pairs > most {
                return Err(because(ONE_OF_SEVERAL));
            }
            d.most_tested = Some(most);
        }
        let rest = if joins_none { &[][..] } else { &d.rest[..] };
        d.tests = rest.iter().map(|e| Truth::of(e, &setting)).collect::<Result<_>>()?;
        d.few = d.joins.iter().map(|j| self.few_keys(j, &setting)).collect();
        let sort = ordered && !setting.in_order;
        let collect = sort || !d.correlated.is_empty();
        d.ends_soon = q.grouping == Grouping::None
            && self.bound.order.is_empty()
            && !collect
            && limit.is_some_and(|n| n <= FEW_WANTED);
        if let Some(sink) = self.extra.sink {
            if collect {
                let done = self.scan_sorted(&mut d, &preds, &setting, states, sort, &mut |b, s| {
                    sink(b, s)?;
                    Ok(true)
                })?;
                if !done {
                    return Ok(None);
                }
            } else {
                self.scan(&d, &preds, &setting, &mut |b, s| {
                    sink(b, s)?;
                    Ok(true)
                })?;
            }
            return Rows::new(&[], &[], None, None, None).finish().map(Some);
        }
        if q.grouping == Grouping::None {
            let distinct = q.distinct.as_deref();
            let mut rows = Rows::new(&self.bound.result, &self.bound.order, distinct, limit, Some(self.rt));
            if !collect {
                let mut ints = Ints::default();
                self.scan(&d, &preds, &setting, &mut |b, s| self.take_rows(&mut rows, b, s, &mut ints))?;
            } else {
                let mut ints = Ints::default();
                let done = self.scan_sorted(&mut d, &preds, &setting, states, sort, &mut |b, s| {
                    self.take_rows(&mut rows, b, s, &mut ints)
                })?;
                if !done {
                    return Ok(None);
                }
            }
            return self.result(rows).map(Some);
        }
        let (keys, aggs) = (self.bound.keys.clone(), self.bound.aggs.clone());
        let made = match collect {
            true => None,
            false => Groups::new(q, keys.clone(), aggs.clone(), &setting)?,
        };
        let replayed = Places { at: places.at.clone(), of_table: places.of_table.clone(), outer: NO_OUTER };
        let mut groups = match made {
            Some(mut groups) => {
                if !self.scan_in_threads(&d, &preds, &setting, &mut groups)? {
                    self.scan(&d, &preds, &setting, &mut |b, s| {
                        groups.add(b, s)?;
                        Ok(true)
                    })?;
                }
                groups
            }
            None if setting.in_order && !collect || streams => return Ok(None),
            None => {
                let mut made = None;
                let mut unknown = false;
                // What could not be added up without an order can be in that of the loops.
                let sort = sort || !collect;
                let done = self.scan_sorted(&mut d, &preds, &setting, states, sort, &mut |b, s| {
                    if made.is_none() && !unknown {
                        made = Groups::new(q, keys.clone(), aggs.clone(), s)?;
                        unknown = made.is_none();
                    }
                    if let Some(g) = &mut made {
                        g.add(b, s)?;
                    }
                    Ok(!unknown)
                })?;
                setting.scope.places = &replayed;
                setting.scope.in_order = true;
                setting.scope.most_rows = Some(0);
                match made {
                    Some(g) => g,
                    None if !done || unknown => return Ok(None),
                    None => match Groups::new(q, keys, aggs, &setting)? {
                        Some(g) => g,
                        None => return Ok(None),
                    },
                }
            }
        };
        let start = self.now();
        groups.settle(&setting)?;
        if let Some(waiting) = groups.take_waiting()? {
            let most_rows = Some(waiting.count);
            let at = JoinScope {
                scope: Scope { places: &replayed, in_order: true, most_rows, ..setting.scope },
                inners: setting.inners,
            };
            return self.waiting_groups(groups, waiting, &at, limit);
        }
        let in_order = self.bound.having.is_none() && self.bound.order.is_empty() && q.distinct.is_none();
        let Some(mut order) = groups.order(limit.filter(|_| in_order), &setting)? else { return Ok(None) };
        let all = order.len();
        let mut having = self.bound.having.as_ref();
        if let Some(h) = having
            && groups.keep_having(h, &mut order)?
        {
            having = None;
        }
        if let Some(p) = self.rt.profile() {
            p.line(format!("GROUPS: {all}, sorted in {}", shown(self.now() - start)));
        }
        let mut rows =
            Rows::new(&self.bound.result, &self.bound.order, q.distinct.as_deref(), limit, Some(self.rt));
        if having.is_none()
            && rows.take_all(order.len(), |result, out| groups.results(result, &order, &setting, out))?
        {
            return self.result(rows).map(Some);
        }
        for g in order {
            let row = groups.row(g, &setting)?;
            if let Some(h) = having
                && !self.eval.holds(h, &row)?
            {
                continue;
            }
            rows.add(&row, self.eval)?;
            if rows.full() {
                break;
            }
        }
        self.result(rows).map(Some)
    }

    /// Reads columns of a table.
    /// `stream`: where there is no room, segment by segment.
    pub(crate) fn load(
        &self,
        t: usize,
        state: &TableState,
        wanted: &[(ColKey, &Value)],
        stream: bool,
    ) -> Result<Loaded> {
        if let Some(Some(made)) = self.extra.made.get(t) {
            return made.loaded(wanted);
        }
        let table = &self.q.tables[t];
        let (store, start) = (self.rt.store(table.db)?, self.now());
        let before = store.counters.of_loading();
        let (bt, since, check) = (self.rt.btree(table.db)?, self.extra.since, &|| self.rt.check());
        let request = LoadRequest { since, threads: self.rt.threads(), force: self.rt.force(), check };
        let threads = store.decode_together(&bt, state, wanted, &request)?;
        if let (Some(p), 2..) = (self.rt.profile(), threads) {
            p.line(format!("DECODED WITH {threads} THREADS"));
        }
        let loaded = store.load(&bt, state, wanted, since, stream, check)?;
        if let Some(p) = self.rt.profile() {
            let now = store.counters.of_loading();
            p.loaded(&table.table.name, &loaded, before, now, self.now() - start);
        }
        Ok(loaded)
    }

    /// Where columns have to be decoded, those that make the order of the loops are decoded with them: they would be
    /// wanted next, and every leaf read once more.
    fn load_with_order(
        &self,
        t: usize,
        state: &TableState,
        wanted: &[(ColKey, &Value)],
        stream: bool,
    ) -> Result<()> {
        let order = self.q.order_slots.iter().filter(|s| s.table == t);
        let order: Vec<(ColKey, &Value)> = order.map(|s| (s.key(), &s.default)).collect();
        let names = |w: &[(ColKey, &Value)]| w.iter().map(|w| w.0).collect::<Vec<ColKey>>();
        if state.keep && state.missing(&names(wanted)) > 0 && state.missing(&names(&order)) > 0 {
            let mut all = wanted.to_vec();
            for o in order {
                if all.iter().all(|w| w.0 != o.0) {
                    all.push(o);
                }
            }
            self.load(t, state, &all, stream)?;
        }
        Ok(())
    }

    /// Passes joined rows on to the result.
    fn take_rows(
        &self,
        rows: &mut Rows<'_>,
        b: &Batch<'_>,
        s: &JoinScope<'_>,
        ints: &mut Ints,
    ) -> Result<bool> {
        let first = rows
            .first_key()
            .filter(|e| int_bounds(e, s.cols, s.places, &|t| s.left[t]).is_some_and(|b| !b.2));
        ints.values.clear();
        if let Some(e) = first {
            Ints::of(e, b, ints)?;
        }
        for i in 0..b.outer.len() {
            if let (Some((worst, above)), Some(v)) = (rows.limit_of_first(), ints.values.get(i))
                && (if above { *v > worst } else { *v < worst })
            {
                continue;
            }
            rows.add(&BatchRow { batch: b, i }, self.eval)?;
        }
        Ok(!rows.full())
    }

    /// The time, if somebody asks what takes it.
    pub(crate) fn now(&self) -> u64 {
        self.rt.profile().map_or(0, |_| self.rt.nanos())
    }

    pub(crate) fn result(&self, rows: Rows<'_>) -> Result<Answer> {
        let start = self.now();
        let answer = rows.finish()?;
        if let Some(p) = self.rt.profile() {
            p.line(format!("RESULT: {} rows, {}", answer.len(), shown(self.now() - start)));
        }
        Ok(answer)
    }

    /// Replaces joins by columns laid beside the outer table, where that is possible; answers the conditions that
    /// matches exist.
    fn derive(
        &self,
        d: &mut JoinPlan,
        states: &[Arc<TableState>],
        names: &[Vec<ColKey>],
        cols: &mut [Columns],
        places: &mut Places,
    ) -> Result<Vec<Pred>> {
        let q = self.q;
        let store = self.rt.store(q.tables[self.outer].db)?;
        let mut matched = Vec::new();
        let mut k = 0;
        while k < d.joins.len() {
            let j = &d.joins[k];
            let t = j.table;
            let fk = match j.other() {
                Some(s) if places.at[s].0 == self.outer && j.affinity != Affinity::Text => {
                    Some(places.at[s].1).filter(|_| d.keep & 1 << t == 0 && self.rt.derives())
                }
                _ => None,
            };
            // What else is used of the table; a column of it may be the key of another join.
            let mut slots: Vec<usize> = Vec::new();
            let mut plain = d.local[t].iter().all(|e| e.only_slot().is_some());
            let mut note = |e: &Ex| {
                e.slots(&mut |s| {
                    if q.slots[s].table == t && !slots.contains(&s) {
                        slots.push(s);
                    }
                });
            };
            d.local[t].iter().chain(&d.rest).chain(&d.correlated).for_each(&mut note);
            d.joins.iter().filter(|o| o.table != t).flat_map(|o| &o.others).for_each(&mut note);
            self.bound.keys.iter().for_each(&mut note);
            q.bare.iter().for_each(|s| note(&Ex::Slot(*s)));
            self.bound.aggs.iter().for_each(|(a, f)| a.iter().chain(f).for_each(&mut note));
            self.bound.result.iter().chain(self.bound.order.iter().map(|o| &o.0)).for_each(&mut note);
            plain &= !q.tables[t].left;
            let g = derive::Inputs {
                q,
                outer: self.outer,
                states,
                keys: names,
                eval: self.eval,
                store: &store,
                force: self.rt.force(),
            };
            if let (Some(fk), true) = (fk, plain)
                && let Some(pred) = derive::derive(&g, t, places.at[j.slots[0]].1, fk, &slots, cols, places)?
            {
                matched.extend(pred);
                let moved = std::mem::take(&mut d.local[t]);
                d.local[self.outer].extend(moved);
                d.joins.remove(k);
                // What hung on a column of this table hangs on the outer one now.
                k = 0;
                continue;
            }
            k += 1;
        }
        Ok(matched)
    }

    /// Which inner tables are looked at behind the join.
    pub(crate) fn needed(&self, d: &JoinPlan) -> u64 {
        let q = self.q;
        let mut mask = d.keep | self.extra.reads | q.bare.iter().fold(0, |m, s| m | 1 << q.slots[*s].table);
        let all = d
            .rest
            .iter()
            .chain(&d.correlated)
            .chain(d.joins.iter().flat_map(|j| &j.others))
            .chain(&self.bound.keys);
        for e in all.chain(self.bound.aggs.iter().flat_map(|(a, f)| a.iter().chain(f))) {
            mask |= tables_of(q, e);
        }
        if q.grouping == Grouping::None {
            for e in self.bound.result.iter().chain(self.bound.order.iter().map(|o| &o.0)) {
                mask |= tables_of(q, e);
            }
        }
        mask
    }
}
