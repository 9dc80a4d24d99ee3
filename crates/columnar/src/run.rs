//! Running a query: one table is scanned, the others are looked up.
//!
//! Conditions on single tables are brought into form first; inner tables become maps from key to row. Then the outer
//! table goes by in blocks: cheap conditions and the maps' key sets thin out a selection, in an order that follows what
//! each of them was seen to let through; what is left is joined, tested by the other conditions, and goes to groups or
//! to result rows. Before the last row is computed nothing leaves, so that any doubt on the way ends with "not here"
//! and a program runs the query instead.

use crate::acc::order_free;
use crate::ask::{AggSpec, Cond, NestedKind, Query};
use crate::batch::{Batch, BatchRow, Ints, NO_OUTER, Places, int_bounds};
use crate::cost;
use crate::decode::ColKey;
use crate::derive;
use crate::divide::{Division, Join, tables_of};
use crate::evict::loose;
use crate::expr::{Eval, Ex};
use crate::group::{Groups, Setting};
use crate::join::AWAY;
use crate::kernel::{self, BLOCK, Bits, Selection};
use crate::lookup::{Inners, test_rest};
use crate::nested::{self, Said};
use crate::order::{Take, is_natural, tables_in_order};
use crate::pred::{self, Columns, Kind, Pred};
use crate::profile::{Phases, Profile, shown};
use crate::rows::{Answer, Rows};
use crate::sort;
use crate::store::{FEW_LEAVES, Loaded, Store, TableState};
use crate::truth::Truth;
use iolite_base::{Limit, Result};
use iolite_btree::Btree;
use iolite_ext::Host;
use iolite_plan::plan::Grouping;
use iolite_value::{Affinity, Value};
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

/// What a run asks of its connection.
pub trait Runtime {
    /// For functions.
    fn host(&self) -> &dyn Host;
    /// A database's trees.
    fn btree(&self, db: usize) -> Result<Btree>;
    /// A database's columns.
    fn store(&self, db: usize) -> Result<Arc<Store>>;
    /// Whether to stop: an error then.
    fn check(&self) -> Result<()>;
    /// Small tables, too.
    fn force(&self) -> bool;
    /// A file for what does not fit into memory; `None`: there is none to be had.
    fn temporary(&self) -> Result<Option<Box<dyn iolite_os::File>>> {
        Ok(None)
    }
    /// Whether columns of inner tables may be laid beside outer ones.
    fn derives(&self) -> bool {
        true
    }
    /// How many threads a large scan may use.
    fn threads(&self) -> usize {
        1
    }
    /// Where to write down what is done, if somebody asks.
    fn profile(&self) -> Option<&Profile> {
        None
    }
    /// The time, for that.
    fn nanos(&self) -> u64 {
        0
    }
}

/// A column's next block is asked for where so many of its codes in a cache line are likely to be looked at.
const FETCHED: f64 = 0.3;

/// What a condition takes for a row while all rows are looked at, as a share of what it takes in a list.
const DENSE_WORK: f64 = 0.1;

/// An aggregate's arguments, and the condition of its FILTER.
type Aggregated = (Vec<Ex>, Option<Ex>);

/// The expressions of a query with parameters put in.
pub(crate) struct Bound {
    pub conds: Vec<Cond>,
    keys: Vec<Ex>,
    aggs: Vec<Aggregated>,
    pub having: Option<Ex>,
    pub result: Vec<Ex>,
    pub order: Vec<(Ex, iolite_value::compare::KeyField)>,
}

impl Bound {
    fn new(q: &Query, params: &[Value], said: &[Said], eval: &Eval<'_>) -> Result<Bound> {
        let bind = |e: &Ex| -> Result<Ex> {
            let mut e = e.clone();
            e.bind(params, said, eval)?;
            Ok(e)
        };
        let list = |l: &[Ex]| -> Result<Vec<Ex>> { l.iter().map(bind).collect() };
        let opt = |e: &Option<Ex>| -> Result<Option<Ex>> { e.as_ref().map(bind).transpose() };
        Ok(Bound {
            conds: q.conds.iter().map(|c| Ok(Cond { ex: bind(&c.ex)?, on: c.on })).collect::<Result<_>>()?,
            keys: list(&q.keys)?,
            aggs: q.aggs.iter().map(|a| Ok((list(&a.args)?, opt(&a.filter)?))).collect::<Result<_>>()?,
            having: opt(&q.having)?,
            result: list(&q.result)?,
            order: q.order.iter().map(|(e, f)| Ok((bind(e)?, f.clone()))).collect::<Result<_>>()?,
        })
    }
}

/// How a query is run that another one asks.
#[derive(Default)]
pub(crate) struct Extra<'e> {
    /// When the whole query began: columns that were used since do not make room for others.
    pub since: u64,
    /// Columns of integers of which only some values are wanted: those in the set, less the base.
    pub restrict: Vec<(usize, i64, Bits)>,
    /// Takes joined rows in the place of the result, in any order.
    #[allow(clippy::type_complexity)]
    pub sink: Option<&'e dyn Fn(&Batch<'_>, &Setting<'_>) -> Result<()>>,
}

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

/// The result rows, or `None`: not here.
pub(crate) fn run(q: &Query, rt: &dyn Runtime, params: &[Value], wanted: i64) -> Result<Option<Answer>> {
    if !rt.force() && (most_leaves(q, rt)? < FEW_LEAVES || cost::better_in_rows(q, rt, params)?) {
        return Ok(None);
    }
    run_in(q, rt, params, wanted, &Extra { since: Store::moment(), ..Extra::default() })
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
    for t in &q.tables {
        let bt = rt.btree(t.db)?;
        states.push(rt.store(t.db)?.table(&bt, t.table.root.get())?);
    }
    if q.by_keys && !rt.force() {
        // Rows found by the keys of a small set are better looked up.
        let own = states.iter().map(|s| s.leaves()).max().unwrap_or(0);
        let mut least = usize::MAX;
        for n in q.nested.iter().filter(|n| n.kind == NestedKind::Set) {
            least = least.min(most_leaves(&n.query, rt)?);
        }
        if least.saturating_mul(16) < own {
            return Ok(None);
        }
    }
    let Some(said) = nested::said(q, rt, params, extra.since)? else { return Ok(None) };
    let eval = Eval {
        host: rt.host(),
        max: rt.host().limit(Limit::Length).max(0) as usize,
        bases: RefCell::default(),
    };
    let bound = Bound::new(q, params, &said, &eval)?;
    let whole = (0..q.tables.len()).filter(|t| !q.tables[*t].left);
    let mut outers: Vec<usize> = whole.max_by_key(|t| states[*t].leaves()).into_iter().collect();
    if !outers.contains(&0) && !q.tables[0].left {
        outers.push(0);
    }
    for outer in outers {
        let limit = usize::try_from(wanted).ok();
        let mut r = Run { q, rt, eval: &eval, bound: &bound, params, extra, outer };
        if let Some(rows) = r.with_outer(&states, limit)? {
            return Ok(Some(rows));
        }
    }
    Ok(None)
}

pub(crate) struct Run<'a> {
    pub q: &'a Query,
    pub rt: &'a dyn Runtime,
    pub eval: &'a Eval<'a>,
    pub bound: &'a Bound,
    pub params: &'a [Value],
    pub extra: &'a Extra<'a>,
    pub outer: usize,
}

/// Something that thins out a selection early.
struct Step {
    what: What,
    /// In no unit.
    cost: f64,
    seen: f64,
    passed: f64,
    /// What `passed` began with.
    guess: f64,
    /// Its place among the steps before they are put in order.
    number: usize,
    /// What it takes for a row of a block, as a share of what a row of a list takes.
    work: f64,
}

/// What a scan was like.
#[derive(Default)]
pub(crate) struct Findings {
    phases: Phases,
    /// Of each step, rows tested and passed.
    steps: Vec<(f64, f64)>,
    /// No further row is wanted.
    ended: bool,
}

impl Findings {
    /// Adds what another thread found; times are those of this one.
    pub fn add(&mut self, o: &Findings) {
        let (p, q) = (&mut self.phases, &o.phases);
        p.vectors += q.vectors;
        p.excluded += q.excluded;
        p.rows += q.rows;
        p.selected += q.selected;
        p.taken += q.taken;
        for (a, b) in self.steps.iter_mut().zip(&o.steps) {
            (a.0, a.1) = (a.0 + b.0, a.1 + b.1);
        }
    }
}

impl What {
    /// What `seen` begins with.
    fn begins_with(&self) -> f64 {
        match self {
            What::Pred(_) => 3.0,
            What::Keys { .. } => 4.0,
        }
    }
}

enum What {
    Pred(usize),
    /// The keys of an inner table.
    Keys {
        join: usize,
        col: usize,
    },
}

impl Run<'_> {
    fn with_outer(&mut self, states: &[Arc<TableState>], limit: Option<usize>) -> Result<Option<Answer>> {
        let q = self.q;
        let Some(mut d) = self.divide() else { return Ok(None) };
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
        let stream = |t: usize| t == self.outer && once && d.late.is_empty();
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
        // Where the order of rows matters and the scan does not deliver it, the rows of some tables must be known.
        let early = Setting {
            cols: &cols,
            places: &places,
            inners: &[],
            eval: self.eval,
            in_order: false,
            most_rows: None,
            left: &left,
            rt: Some(self.rt),
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
        self.combine(&mut d, &cols, &places);
        let mut preds: Vec<Vec<Pred>> = Vec::new();
        for (t, c) in cols.iter().enumerate() {
            let list: Result<Vec<Pred>> =
                d.local[t].iter().map(|e| Pred::of(e, c, &places.of_table[t], self.eval)).collect();
            let mut list = list?;
            sort::few(&mut list, |a, b| a.cost() > b.cost());
            preds.push(list);
        }
        preds[self.outer].extend(matched);
        for (slot, base, bits) in &self.extra.restrict {
            let (t, col) = places.at[*slot];
            if cols[t].kinds[col] != Kind::Int {
                return Ok(None);
            }
            preds[t].push(Pred::IntSet { col, base: *base, set: bits.clone() });
        }
        let Some(inners) = self.build_inners(&d, &cols, &places, &mut preds)? else { return Ok(None) };
        let single = inners.iter().flatten().all(|i| i.unique() && i.is_whole());
        let whole = inners.iter().flatten().all(|i| i.is_whole());
        // Several matches come in the order of the loops only if the tables are joined in it.
        let as_loops = single || d.joins.iter().map(|j| j.table).is_sorted();
        let mut setting = Setting {
            cols: &cols,
            places: &places,
            inners: &inners,
            eval: self.eval,
            in_order: natural && as_loops && whole,
            most_rows: single.then_some(cols[self.outer].loaded.rows as u64),
            left: &left,
            rt: Some(self.rt),
        };
        d.tests = d.rest.iter().map(|e| Truth::of(e, &setting)).collect::<Result<_>>()?;
        let sort = ordered && !setting.in_order;
        let collect = sort || !d.late.is_empty();
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
                setting.places = &replayed;
                setting.in_order = true;
                setting.most_rows = Some(0);
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
            let at = Setting { places: &replayed, in_order: true, most_rows, ..setting };
            return self.waiting_groups(groups, waiting, &at, limit);
        }
        let Some(mut order) = groups.order(&setting)? else { return Ok(None) };
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
        let table = &self.q.tables[t];
        let (store, start) = (self.rt.store(table.db)?, self.now());
        let before = store.counters.of_loading();
        let loaded =
            store.load(&self.rt.btree(table.db)?, state, wanted, self.extra.since, stream, &|| {
                self.rt.check()
            })?;
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
        s: &Setting<'_>,
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
        d: &mut Division,
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
            d.local[t].iter().chain(&d.rest).chain(&d.late).for_each(&mut note);
            d.joins.iter().filter(|o| o.table != t).flat_map(|o| &o.others).for_each(&mut note);
            self.bound.keys.iter().for_each(&mut note);
            q.bare.iter().for_each(|s| note(&Ex::Slot(*s)));
            self.bound.aggs.iter().for_each(|(a, f)| a.iter().chain(f).for_each(&mut note));
            self.bound.result.iter().chain(self.bound.order.iter().map(|o| &o.0)).for_each(&mut note);
            plain &= !q.tables[t].left;
            let g = derive::Ground {
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
    pub(crate) fn needed(&self, d: &Division) -> u64 {
        let q = self.q;
        let mut mask = d.keep | q.bare.iter().fold(0, |m, s| m | 1 << q.slots[*s].table);
        let all = d
            .rest
            .iter()
            .chain(&d.late)
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

    /// Goes through the outer table; `take` is given joined rows until it answers `false`.
    pub(crate) fn scan(
        &self,
        d: &Division,
        preds: &[Vec<Pred>],
        s: &Setting<'_>,
        take: Take<'_>,
    ) -> Result<()> {
        let mut inners: Inners = s.inners.to_vec();
        let mut found: Option<Findings> = None;
        loop {
            let at = Setting { inners: &inners, ..*s };
            let mut ended = false;
            self.each_window(d, &preds[self.outer], &at, &mut |parts, s| {
                let mut parts = parts.clone();
                let next = &mut || -> Result<Option<usize>> {
                    self.rt.check()?;
                    Ok(parts.next())
                };
                let this = self.scan_parts(d, preds, s, true, next, take)?;
                ended |= this.ended;
                match &mut found {
                    Some(f) => f.add(&this),
                    None => found = Some(this),
                }
                Ok(!ended)
            })?;
            if ended || !self.next_share(d, preds, s, &mut inners)? {
                break;
            }
        }
        if let Some(f) = found {
            self.report(d, preds, s, &f);
        }
        Ok(())
    }

    /// Calls `f` with runs of parts whose columns are here, until it answers `false`; those that stayed away are brought as
    /// many at a time as may be held.
    #[allow(clippy::type_complexity)]
    fn each_window(
        &self,
        d: &Division,
        own: &[Pred],
        s: &Setting<'_>,
        f: &mut dyn FnMut(Range<usize>, &Setting<'_>) -> Result<bool>,
    ) -> Result<()> {
        let parts = &s.cols[self.outer].loaded.parts;
        let Some(state) = &d.state else {
            f(0..parts.len(), s)?;
            return Ok(());
        };
        let spec = &self.q.tables[self.outer];
        let (store, bt) = (self.rt.store(spec.db)?, self.rt.btree(spec.db)?);
        let slots = self.q.slots.iter().filter(|s| s.table == self.outer);
        let wanted: Vec<(ColKey, &Value)> = slots.map(|s| (s.key(), &s.default)).collect();
        let mut from = 0;
        while from < parts.len() {
            let here = parts[from..].iter().take_while(|p| !p.away).count();
            if here > 0 {
                if !f(from..from + here, s)? {
                    return Ok(());
                }
                from += here;
                continue;
            }
            let mut cols = s.cols.to_vec();
            let (mut to, mut held) = (from, 0);
            while to < parts.len() && parts[to].away && (to == from || held < loose() / 2) {
                self.rt.check()?;
                if !own.iter().any(|p| p.excludes(&parts[to])) {
                    let chunks = store.fetch(&bt, state, to, &wanted)?;
                    held += chunks.iter().map(|c| c.bytes()).sum::<usize>();
                    cols[self.outer].loaded.parts[to].cols = chunks;
                }
                to += 1;
            }
            if !f(from..to, &Setting { cols: &cols, ..*s })? {
                return Ok(());
            }
            from = to;
        }
        Ok(())
    }

    /// The same for the parts that `next` names. Unless it is `watched`, nothing is asked of the connection, and no
    /// expression is evaluated where [`Run::is_pure`] says so.
    pub(crate) fn scan_parts(
        &self,
        d: &Division,
        preds: &[Vec<Pred>],
        s: &Setting<'_>,
        watched: bool,
        next: &mut dyn FnMut() -> Result<Option<usize>>,
        take: Take<'_>,
    ) -> Result<Findings> {
        let clock = || if watched { self.now() } else { 0 };
        let q = self.q;
        let cols = &s.cols[self.outer];
        let of = &s.places.of_table[self.outer];
        let own = &preds[self.outer];
        let plain = self.plain_keys(d, s);
        let (mut steps, ranges) = self.steps(d, own, s, &plain);
        let needed = self.needed(d);
        let later = self.read_later(d, s, &plain, needed);
        let empty = || Batch {
            cols: s.cols,
            places: s.places,
            part: 0,
            outer: Vec::new(),
            whole: false,
            inner: vec![Vec::new(); q.tables.len()],
        };
        // Rows that were selected wait until those of the next block are, while what they need is fetched.
        let (mut batch, mut ready) = (empty(), empty());
        let mut sel = Selection::new();
        let mut phases = Phases::default();
        let mut ended = false;
        let mut pass = |batch: &mut Batch<'_>, phases: &mut Phases| -> Result<bool> {
            if batch.outer.is_empty() {
                return Ok(true);
            }
            let begun = clock();
            self.join(d, s, &plain, needed, batch)?;
            test_rest(&d.tests, s, batch)?;
            let joined = clock();
            phases.join += joined - begun;
            phases.taken += batch.outer.len() as u64;
            let more = batch.outer.is_empty() || take(batch, s)?;
            phases.take += clock() - joined;
            batch.outer.clear();
            Ok(more)
        };
        let mut upcoming = next()?;
        'parts: while let Some(k) = upcoming {
            upcoming = next()?;
            let part = &cols.loaded.parts[k];
            if own.iter().any(|p| p.excludes(part)) {
                phases.excluded += 1;
                continue;
            }
            let rank = |s: &Step| s.cost / (1.0001 - s.passed / s.seen);
            sort::few(&mut steps, |a, b| rank(a) > rank(b));
            let mut from = 0;
            while from < part.rows {
                let span = from..(from + BLOCK).min(part.rows);
                let following = match (span.end < part.rows, upcoming) {
                    (true, _) => Some((part, span.end..(span.end + BLOCK).min(part.rows))),
                    (false, Some(n)) => {
                        let n = &cols.loaded.parts[n];
                        Some((n, 0..BLOCK.min(n.rows)))
                    }
                    _ => None,
                };
                let begun = clock();
                phases.vectors += 1;
                phases.rows += span.len() as u64;
                sel.fill(span.len());
                // What the steps look at in the next block is asked for by and by, by each as much as it takes time.
                sel.ahead.clear();
                let (mut share, mut work) = (1.0, 0.0);
                for step in steps.iter_mut() {
                    let col = match &step.what {
                        What::Pred(i) => own.get(*i).unwrap_or_else(|| &ranges[*i - own.len()]).column(),
                        What::Keys { col, .. } => Some(*col),
                    };
                    if let (Some((part, span)), Some(col)) = (&following, col)
                        && let Some(codes) = pred::codes_of(&part.cols[col], span)
                        && share * codes.in_a_line() as f64 > FETCHED
                    {
                        sel.ahead.add(codes);
                    }
                    step.work = if work == 0.0 { DENSE_WORK } else { share };
                    work += step.work;
                    share *= step.passed / step.seen;
                }
                for step in &mut steps {
                    let before = sel.len();
                    if before == 0 {
                        break;
                    }
                    sel.ahead.allot(step.work / work);
                    work -= step.work;
                    match step.what {
                        What::Pred(i) => own.get(i).unwrap_or_else(|| &ranges[i - own.len()]).select(
                            cols,
                            k,
                            span.clone(),
                            of,
                            self.eval,
                            &mut sel,
                        )?,
                        What::Keys { join, col } => {
                            let inner = s.inners[d.joins[join].table].as_ref();
                            if let Some((bits, base)) = inner.and_then(|i| i.bits.as_ref().zip(i.base())) {
                                pred::int_in_set(&part.cols[col], span.clone(), base, bits, &mut sel);
                            }
                        }
                    }
                    step.seen += before as f64;
                    step.passed += sel.len() as f64;
                }
                sel.ahead.finish();
                phases.filter += clock() - begun;
                phases.selected += sel.len() as u64;
                if sel.len() > 0 {
                    batch.part = k;
                    batch.outer.clear();
                    batch.whole = sel.len() == span.len();
                    batch.outer.extend(sel.rows().iter().map(|i| from as u32 + *i as u32));
                    for col in &later {
                        if let Some(codes) = pred::codes_of(&part.cols[*col], &(0..part.rows)) {
                            kernel::fetch_some(codes, &batch.outer);
                        }
                    }
                    if !pass(&mut ready, &mut phases)? {
                        ended = true;
                        break 'parts;
                    }
                    std::mem::swap(&mut batch, &mut ready);
                }
                from = span.end;
            }
        }
        ended |= !pass(&mut ready, &mut phases)?;
        let mut found = Findings { phases, steps: vec![(0.0, 0.0); steps.len()], ended };
        for step in &steps {
            // Each began with a guess.
            found.steps[step.number] = (step.seen - step.what.begins_with(), step.passed - step.guess);
        }
        Ok(found)
    }

    /// Columns of the outer table that are read where rows were selected, and not before.
    fn read_later(&self, d: &Division, s: &Setting<'_>, plain: &[Option<usize>], needed: u64) -> Vec<usize> {
        let mut out: Vec<usize> = Vec::new();
        let mut note = |e: &Ex| {
            e.slots(&mut |i| {
                let (t, c) = s.places.at[i];
                if t == self.outer && !out.contains(&c) {
                    out.push(c);
                }
            });
        };
        d.rest.iter().for_each(&mut note);
        for (j, plain) in d.joins.iter().zip(plain) {
            if plain.is_none() || needed & 1 << j.table != 0 {
                j.others.iter().for_each(&mut note);
            }
        }
        if !d.collects {
            self.bound.keys.iter().for_each(&mut note);
            self.bound.aggs.iter().for_each(|(a, f)| a.iter().chain(f).for_each(&mut note));
            if self.q.grouping == Grouping::None {
                self.bound.result.iter().chain(self.bound.order.iter().map(|o| &o.0)).for_each(&mut note);
            }
        }
        out
    }

    /// What thins out a selection early: conditions, key ranges (which come with it), and keys of inner tables.
    fn steps(
        &self,
        d: &Division,
        own: &[Pred],
        s: &Setting<'_>,
        plain: &[Option<usize>],
    ) -> (Vec<Step>, Vec<Pred>) {
        let q = self.q;
        let cols = &s.cols[self.outer];
        let mut steps: Vec<Step> = Vec::new();
        for (i, p) in own.iter().enumerate() {
            steps.push(Step {
                what: What::Pred(i),
                cost: p.cost(),
                seen: 3.0,
                passed: 1.0,
                guess: 1.0,
                number: 0,
                work: 0.0,
            });
        }
        let mut ranges: Vec<Pred> = Vec::new();
        for (k, j) in d.joins.iter().enumerate() {
            let Some(inner) = &s.inners[j.table] else { continue };
            if let (Some(col), Some(bits), false) = (plain[k], &inner.bits, q.tables[j.table].left) {
                // A range of codes is tested faster than a large set, and often leaves little of it to test.
                let (lo, hi) = inner.bounds;
                let (min, max) = cols.bounds[col];
                if bits.len() > 2048 && (hi - lo).max(0) as f64 * 1.5 < (max - min) as f64 {
                    let what = What::Pred(own.len() + ranges.len());
                    ranges.push(Pred::Range { col, lo, hi, not: false });
                    steps.push(Step {
                        what,
                        cost: 0.5,
                        seen: 3.0,
                        passed: 1.0,
                        guess: 1.0,
                        number: 0,
                        work: 0.0,
                    });
                }
                let cost = if bits.len() <= 2048 { 0.7 } else { 5.0 };
                let share = inner.passed.len() as f64 / (bits.len() as f64).max(1.0);
                let what = What::Keys { join: k, col };
                let guess = 4.0 * share.min(1.0);
                steps.push(Step { what, cost, seen: 4.0, passed: guess, guess, number: 0, work: 0.0 });
            }
        }
        steps.iter_mut().enumerate().for_each(|(i, s)| s.number = i);
        (steps, ranges)
    }

    /// Writes down what a scan was like.
    pub(crate) fn report(&self, d: &Division, preds: &[Vec<Pred>], s: &Setting<'_>, found: &Findings) {
        let Some(p) = self.rt.profile() else { return };
        let q = self.q;
        let own = &preds[self.outer];
        let (steps, _) = self.steps(d, own, s, &self.plain_keys(d, s));
        for (step, (seen, passed)) in steps.iter().zip(&found.steps) {
            let what = match step.what {
                What::Pred(i) if i >= own.len() => "KEY RANGE".to_string(),
                What::Pred(i) => format!("FILTER {}", self.name_of(&own[i], s.places)),
                What::Keys { join, .. } => format!("KEYS OF {}", q.tables[d.joins[join].table].table.name),
            };
            p.line(format!("{what}: {seen:.0} rows tested, {:.0} passed", passed.max(0.0)));
        }
        let name = &q.tables[self.outer].table.name;
        p.scanned(name, s.cols[self.outer].loaded.parts.len(), &found.phases);
    }

    /// For each join the column of the outer table that is its key, where it is one of integers.
    fn plain_keys(&self, d: &Division, s: &Setting<'_>) -> Vec<Option<usize>> {
        let cols = &s.cols[self.outer];
        let of = |j: &Join| match j.other() {
            Some(k) if s.places.at[k].0 == self.outer => {
                Some(s.places.at[k].1).filter(|c| cols.kinds[*c] == Kind::Int)
            }
            _ => None,
        };
        d.joins.iter().map(of).collect()
    }

    /// Whether a scan evaluates no expression row by row: only codes and integers are looked at.
    pub(crate) fn is_pure(&self, d: &Division, preds: &[Vec<Pred>], s: &Setting<'_>) -> bool {
        preds[self.outer].iter().all(Pred::is_pure)
            && self.plain_keys(d, s).iter().all(Option::is_some)
            && d.joins.iter().all(|j| s.inners[j.table].is_some())
            && d.tests.iter().all(Truth::is_pure)
    }

    /// The column that a condition is about.
    fn name_of(&self, p: &Pred, places: &Places) -> String {
        let column = |col: usize| {
            let slot = places.at.iter().position(|at| *at == (self.outer, col));
            let Some(s) = slot.map(|i| &self.q.slots[i]) else { return "codes".to_string() };
            let table = &self.q.tables[s.table].table;
            match s.field {
                None => "rowid".to_string(),
                Some(f) => match table.field_of.iter().position(|x| *x == Some(f)) {
                    Some(c) => table.columns[c].name.to_string(),
                    None => "a column".to_string(),
                },
            }
        };
        match p {
            Pred::Range { col, .. } | Pred::RealRange { col, .. } => format!("{} BY RANGE", column(*col)),
            Pred::IntSet { col, .. } | Pred::DictSet { col, .. } => format!("{} BY SET", column(*col)),
            Pred::Like { col, .. } => format!("{} BY PATTERN", column(*col)),
            Pred::Rows { .. } => "SEVERAL COLUMNS".to_string(),
            Pred::Any(_) => "ROW BY ROW".to_string(),
            Pred::Never => "NOTHING".to_string(),
        }
    }
}
