//! The scan of the outer table: conditions and key sets thin out a selection block by block, what is left is joined.
//!
//! The steps stand in an order that follows what each of them was seen to let through, for what it takes. Windows of the
//! table whose columns have no room are decoded when the scan comes to them.

use super::loop_order::Take;
use super::probe::{InnerTables, test_rest};
use super::run::ONE_OF_SEVERAL;
use super::scope::JoinScope;
use super::scope::Run;
use super::split::{Join, JoinPlan};
use crate::decline::because;
use crate::expr::Ex;
use crate::expr::batch::Batch;
use crate::expr::columns::Kind;
use crate::expr::condition::Truth;
use crate::expr::filter::{self, Pred};
use crate::expr::scope::Scope;
use crate::kernel::{self, BATCH, BLOCK, FIRST_BLOCK, Selection};
use crate::memory::loose;
use crate::profile::Phases;
use crate::query::name_of;
use crate::sort;
use crate::store::decode::ColKey;
use iolite_base::Result;
use iolite_plan::plan::Grouping;
use iolite_value::Value;
use std::ops::Range;

/// A column's next block is asked for where so many of its codes in a cache line are likely to be looked at.
const FETCHED: f64 = 0.3;

/// What a condition takes for a row while all rows are looked at, as a share of what it takes in a list.
const DENSE_WORK: f64 = 0.1;

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
    /// Goes through the outer table; `take` is given joined rows until it answers `false`.
    pub(crate) fn scan(
        &self,
        d: &JoinPlan,
        preds: &[Vec<Pred>],
        s: &JoinScope<'_>,
        take: Take<'_>,
    ) -> Result<()> {
        let mut inners: InnerTables = s.inners.to_vec();
        let mut found: Option<Findings> = None;
        loop {
            let at = JoinScope { inners: &inners, scope: s.scope };
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
        d: &JoinPlan,
        own: &[Pred],
        s: &JoinScope<'_>,
        f: &mut dyn FnMut(Range<usize>, &JoinScope<'_>) -> Result<bool>,
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
                    let chunks = store.fetch(&bt, state, to, &wanted, &s.cols[self.outer].loaded)?;
                    held += chunks.iter().map(|c| c.bytes()).sum::<usize>();
                    cols[self.outer].loaded.parts[to].cols = chunks;
                }
                to += 1;
            }
            if !f(from..to, &JoinScope { scope: Scope { cols: &cols, ..s.scope }, inners: s.inners })? {
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
        d: &JoinPlan,
        preds: &[Vec<Pred>],
        s: &JoinScope<'_>,
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
            let (begun, mut took) = (clock(), 0);
            let more = self.join(d, s, &plain, needed, batch, &mut |joined| {
                phases.tested += joined.outer.len() as u64;
                if d.most_tested.is_some_and(|most| phases.tested > most) {
                    return Err(because(ONE_OF_SEVERAL));
                }
                test_rest(&d.tests, s, joined)?;
                if joined.outer.is_empty() {
                    return Ok(true);
                }
                let begun = clock();
                phases.taken += joined.outer.len() as u64;
                if d.most_joined.is_some_and(|most| phases.taken > most) {
                    return Err(because("a join that multiplies rows"));
                }
                let more = take(joined, s)?;
                took += clock() - begun;
                Ok(more)
            })?;
            phases.join += clock() - begun - took;
            phases.take += took;
            batch.outer.clear();
            Ok(more)
        };
        // A scan that ends soon begins with small blocks.
        let mut most = if d.ends_soon { FIRST_BLOCK } else { BLOCK };
        let mut upcoming = next()?;
        'parts: while let Some(k) = upcoming {
            upcoming = next()?;
            let part = &cols.loaded.parts[k];
            if own.iter().any(|p| p.excludes(part)) {
                phases.excluded += 1;
                continue;
            }
            // What all pass needs no filtering at length.
            let block = if steps.is_empty() { BATCH } else { BLOCK };
            let mut from = 0;
            while from < part.rows {
                let span = from..(from + block.min(most)).min(part.rows);
                most = (2 * most).min(BLOCK);
                let rank = |s: &Step| s.cost / (1.0001 - s.passed / s.seen);
                sort::few(&mut steps, |a, b| rank(a) > rank(b));
                let block = block.min(most);
                let following = match (span.end < part.rows, upcoming) {
                    (true, _) => Some((part, span.end..(span.end + block).min(part.rows))),
                    (false, Some(n)) => {
                        let n = &cols.loaded.parts[n];
                        Some((n, 0..block.min(n.rows)))
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
                        && let Some(codes) = filter::codes_of(&part.cols[col], span)
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
                                filter::int_in_set(&part.cols[col], span.clone(), base, bits, &mut sel);
                            }
                        }
                    }
                    step.seen += before as f64;
                    step.passed += sel.len() as f64;
                }
                sel.ahead.finish();
                phases.filter += clock() - begun;
                phases.selected += sel.len() as u64;
                let whole = sel.len() == span.len();
                let n = sel.len();
                let rows = if whole { &[][..] } else { sel.rows() };
                for first in (0..n).step_by(BATCH) {
                    let last = (first + BATCH).min(n);
                    batch.part = k;
                    batch.outer.clear();
                    batch.whole = whole;
                    if whole {
                        batch.outer.extend((from + first) as u32..(from + last) as u32);
                    } else {
                        batch.outer.extend(rows[first..last].iter().map(|i| from as u32 + *i as u32));
                    }
                    for col in &later {
                        let of = if whole { from + first..from + last } else { 0..part.rows };
                        match filter::codes_of(&part.cols[*col], &of) {
                            Some(codes) if whole => kernel::fetch_all(codes),
                            Some(codes) => kernel::fetch_some(codes, &batch.outer),
                            None => {}
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
    fn read_later(
        &self,
        d: &JoinPlan,
        s: &JoinScope<'_>,
        plain: &[Option<usize>],
        needed: u64,
    ) -> Vec<usize> {
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
        d: &JoinPlan,
        own: &[Pred],
        s: &JoinScope<'_>,
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
    pub(crate) fn report(&self, d: &JoinPlan, preds: &[Vec<Pred>], s: &JoinScope<'_>, found: &Findings) {
        let Some(p) = self.rt.profile() else { return };
        let q = self.q;
        let own = &preds[self.outer];
        let (steps, _) = self.steps(d, own, s, &self.plain_keys(d, s));
        for (step, (seen, passed)) in steps.iter().zip(&found.steps) {
            let what = match step.what {
                What::Pred(i) if i >= own.len() => "KEY RANGE".to_string(),
                What::Pred(i) => format!("FILTER {}", name_of(q, self.outer, &own[i], s.places)),
                What::Keys { join, .. } => format!("KEYS OF {}", q.tables[d.joins[join].table].table.name),
            };
            p.line(format!("{what}: {seen:.0} rows tested, {:.0} passed", passed.max(0.0)));
        }
        let name = &q.tables[self.outer].table.name;
        p.scanned(name, s.cols[self.outer].loaded.parts.len(), &found.phases);
    }

    /// For each join the column of the outer table that is its key, where it is one of integers.
    fn plain_keys(&self, d: &JoinPlan, s: &JoinScope<'_>) -> Vec<Option<usize>> {
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
    pub(crate) fn is_pure(&self, d: &JoinPlan, preds: &[Vec<Pred>], s: &JoinScope<'_>) -> bool {
        preds[self.outer].iter().all(Pred::is_pure)
            && self.plain_keys(d, s).iter().all(Option::is_some)
            && d.joins.iter().all(|j| s.inners[j.table].is_some())
            && d.tests.iter().all(Truth::is_pure)
    }
}
