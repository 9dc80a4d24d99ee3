//! Choosing one access per source and the order of the loops: a beam search over partial paths.
//!
//! The search never explodes: at each of at most 64 steps a fixed number of paths survives. Whether a path also
//! delivers the wanted order is part of what is compared, so that an index in the right order can beat a sort.

use crate::access::{Candidate, OrderKey};
use crate::bound::*;
use crate::cost;
use crate::plan::{Access, EqTerm};
use crate::terms::Mask;
use iolite_base::Few;

/// An order that the loops might deliver by themselves.
pub struct Wanted<'a> {
    /// The terms.
    pub terms: &'a [OrderTerm],
    /// What for.
    pub what: What,
    /// Its leading terms alone are of use, too.
    pub part: bool,
    /// So many rows are taken at the most, where LIMIT is a number.
    pub most: Option<f64>,
    /// Columns that conditions make constant.
    pub constant: &'a [(TableId, i32)],
}

impl Wanted<'_> {
    /// What sorting so many rows costs, when so many leading terms of the order come out by themselves.
    fn sort(&self, rows: f64, delivered: usize) -> f64 {
        let left = 1.0 - delivered as f64 / self.terms.len() as f64;
        left * match self.most {
            Some(most) if delivered > 0 => cost::sort(rows, most) * cost::LIMITED * cost::EARLY,
            Some(most) => cost::sort(rows, most) * cost::LIMITED,
            // Half of them are thought to be equal to others.
            None if self.what == What::Distinct => cost::sort(rows, rows / 2.0),
            None => cost::sort(rows, rows),
        }
    }
}

/// What an order is wanted for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// To come out.
    Order,
    /// Groups: any direction and any sequence of the terms will do.
    Groups,
    /// Equal results next to each other: any sequence of the terms will do, as SQLite has it with their directions alike and
    /// without constants among them.
    Distinct,
}

/// The chosen path.
#[derive(Default)]
pub struct Path {
    /// Candidates, outermost first.
    pub loops: Vec<Candidate>,
    /// Which of them run backwards.
    pub reverse: Mask,
    /// In which of them NULLs of the first key come at the other end.
    pub apart: Mask,
    /// The wanted order comes out.
    pub ordered: bool,
    /// Where groups were wanted: they come out in the query's order, too.
    pub sorted: bool,
    /// So many leading terms of it come out, where that is not the whole.
    pub delivered: usize,
    /// Each run of the innermost loop delivers the wanted order, for one value of IN.
    pub inner: bool,
    /// Equal results come next to each other.
    pub adjacent: bool,
    /// Within a group, equal arguments of the aggregate with DISTINCT come next to each other.
    pub arguments: bool,
    /// How tables on the right sides of RIGHT JOINs are read once more, by their sources.
    pub again: Vec<(usize, Option<Access>)>,
    /// Estimated rows.
    pub rows: f64,
}

/// A partial path: one loop more than one of the partial paths that are a loop shorter.
#[derive(Clone, Copy)]
struct Partial {
    mask: Mask,
    cost: f64,
    /// The estimate that paths are compared by: with the sort that a path without the wanted order needs.
    total: i32,
    rows: f64,
    /// The source of the last loop and which of its candidates.
    pick: (usize, usize),
    /// The partial path that is a loop shorter.
    from: usize,
    state: OrderState,
    /// Leading terms of the wanted order that come out.
    delivered: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum OrderState {
    Done,
    Alive,
    Dead,
}

/// Finds the cheapest path found by the search. `runs`: how often the whole is thought to run.
pub fn search(
    sources: &[Source],
    mut candidates: Few<Vec<Candidate>>,
    wanted: Option<&Wanted<'_>>,
    runs: f64,
) -> Option<Path> {
    if let (1, [only]) = (sources.len(), &mut candidates[..]) {
        let k = best_of_one(sources, only, wanted, runs)?;
        only.swap(0, k);
        only.truncate(1);
        let rows = only[0].rows;
        return Some(path(sources, std::mem::take(only), wanted, rows));
    }
    // How many rows come out hangs on the query, not on the path: a sort is as dear for all paths, however they estimate it.
    let mut sorted = 0.0;
    if wanted.is_some() {
        let (chosen, rows) = cheapest(sources, &candidates, None, 0.0, runs)?;
        sorted = rows;
        // What is sought by a key before all else is not read as a whole instead, whatever a sort is thought to cost.
        for (i, k) in chosen.into_iter().rev() {
            if !candidates[i][k].access.seeks_key() {
                break;
            }
            candidates[i].retain(|c| !c.access.is_whole());
        }
    }
    let (chosen, rows) = cheapest(sources, &candidates, wanted, sorted, runs)?;
    let loops = chosen.into_iter().rev().map(|(i, k)| candidates[i].swap_remove(k)).collect();
    Some(path(sources, loops, wanted, rows / runs))
}

/// The sources that come before each in any order of the loops, beside those that it asks for.
pub fn before(sources: &[Source]) -> Few<Mask> {
    // What stands to the left of a RIGHT JOIN, and its right side, come as written and before all else.
    let settled = sources.iter().rposition(|s| s.join.right).map_or(0, |last| last + 1);
    let mut out = Few::with_capacity(sources.len());
    // Nothing written behind a CROSS JOIN comes before what is written to its left.
    let mut crossed = 0;
    for (i, Source { join, .. }) in sources.iter().enumerate() {
        let all = (1u64 << i) - 1;
        if join.cross || i == settled && i > 0 {
            crossed = all;
        }
        out.push(if i < settled || join.left || join.cross { all } else { crossed });
    }
    out
}

/// The loops of the cheapest path, innermost first, each as its source and which of the candidates; and the rows that come out in all runs. `sorted`: so
/// many are sorted, where the wanted order does not come out.
fn cheapest(
    sources: &[Source],
    candidates: &[Vec<Candidate>],
    wanted: Option<&Wanted<'_>>,
    sorted: f64,
    runs: f64,
) -> Option<(Vec<(usize, usize)>, f64)> {
    let n = sources.len();
    let before: Few<Mask> = before(sources);
    let width = match n {
        ..=2 => 6,
        _ => 14,
    };
    let start = Partial {
        mask: 0,
        cost: 0.0,
        total: 0,
        rows: runs,
        pick: (0, 0),
        from: 0,
        state: OrderState::Alive,
        delivered: 0,
    };
    // The partial paths, the shorter ones first; those of the length that is looked at now begin at `beam`.
    let mut paths = Vec::with_capacity(1 + n * width);
    paths.push(start);
    let mut beam = 0;
    let mut loops: Vec<&Candidate> = Vec::new();
    let mut order = Order::default();
    for _ in 0..n {
        let next = paths.len();
        for from in beam..next {
            let p = paths[from];
            if wanted.is_some() && p.state != OrderState::Dead {
                loops.clear();
                loops.extend(picks(&paths, from).map(|(i, k)| &candidates[i][k]));
                loops.reverse();
            }
            for i in 0..n {
                if p.mask & 1 << i != 0 || before[i] & !p.mask != 0 {
                    continue;
                }
                for (k, c) in candidates[i].iter().enumerate() {
                    // An index that is built for the outermost loop is sought once.
                    if c.needs & !p.mask != 0
                        || p.mask == 0 && runs <= 1.0 && matches!(c.access, Access::Auto { .. })
                    {
                        continue;
                    }
                    let left = sources[i].join.left;
                    let rows = p.rows * if left { c.rows.max(1.0) } else { c.rows };
                    let cost = p.cost + c.setup + p.rows.max(1.0) * c.cost;
                    let (state, delivered) = match (wanted, p.state) {
                        (None, _) | (_, OrderState::Dead) => (OrderState::Dead, p.delivered),
                        (Some(w), _) => {
                            loops.push(c);
                            order.find(sources, &loops, w);
                            loops.pop();
                            (order.state, order.delivered)
                        }
                    };
                    let mask = p.mask | 1 << i;
                    let sort = match wanted {
                        Some(w) if state == OrderState::Dead => w.sort(sorted, delivered),
                        _ => 0.0,
                    };
                    let total = estimate(cost + sort);
                    let new = Partial { mask, cost, total, rows, pick: (i, k), from, state, delivered };
                    match place_for(&paths[next..], &new, width) {
                        Some(place) if next + place == paths.len() => paths.push(new),
                        Some(place) => paths[next + place] = new,
                        None => {}
                    }
                }
            }
        }
        beam = next;
    }
    let (at, best) = paths.iter().enumerate().skip(beam).min_by_key(|(_, p)| p.total)?;
    Some((picks(&paths, at).collect(), best.rows))
}

/// The loops of a partial path, innermost first.
fn picks(paths: &[Partial], at: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut at = at;
    std::iter::from_fn(move || {
        let p = &paths[at];
        at = p.from;
        (p.mask != 0).then_some(p.pick)
    })
}

/// The access to an only source, as the search finds it: the best of those that deliver the wanted order and the best of the
/// others, with the sort that these need; of equals the first.
fn best_of_one(
    sources: &[Source],
    list: &[Candidate],
    wanted: Option<&Wanted<'_>>,
    runs: f64,
) -> Option<usize> {
    if let [_] = list {
        return Some(0);
    }
    // As in a search among several: a sort is as dear for all.
    let sorted = match wanted {
        Some(_) => list[best_of_one(sources, list, None, runs)?].rows,
        None => 0.0,
    };
    let mut best: [Option<([f64; 3], usize)>; 2] = [None; 2];
    let mut first = 0;
    let mut order = Order::default();
    for (k, c) in list.iter().enumerate().filter(|(_, c)| c.needs == 0) {
        let (dead, sort) = match wanted {
            None => (true, 0.0),
            Some(w) => {
                order.find(sources, &[c], w);
                let dead = order.state == OrderState::Dead;
                (dead, if dead { w.sort(sorted, order.delivered) } else { 0.0 })
            }
        };
        let cost = c.setup / runs + c.cost;
        let key = [cost + sort, c.rows, cost];
        match best[dead as usize] {
            None => {
                if best == [None; 2] {
                    first = dead as usize;
                }
                best[dead as usize] = Some((key, k));
            }
            Some((least, _)) if !precedes(key, least) => {}
            Some(_) => best[dead as usize] = Some((key, k)),
        }
    }
    match (best[first], best[1 - first]) {
        (Some(a), Some(b)) if is_less(b.0[0], a.0[0]) => Some(b.1),
        (a, _) => a.map(|a| a.1),
    }
}

/// Whether the first of some estimates that are not alike is less.
fn precedes(a: [f64; 3], b: [f64; 3]) -> bool {
    a.iter()
        .zip(&b)
        .find_map(|(a, b)| if is_less(*a, *b) { Some(true) } else { is_less(*b, *a).then_some(false) })
        == Some(true)
}

/// Whether an estimate is less than another, as coarsely as they are known.
fn is_less(a: f64, b: f64) -> bool {
    // Most differ by more than a step.
    let (a, b) = (a.max(1.0), b.max(1.0));
    a < b && (a * 1.08 < b || estimate(a) < estimate(b))
}

/// Whether loops deliver an order as they are.
pub fn delivers(sources: &[Source], loops: &[Candidate], wanted: &Wanted<'_>) -> bool {
    let mut order = Order::default();
    order.find(sources, &loops.iter().collect::<Vec<_>>(), wanted);
    order.state == OrderState::Done
}

/// Whether each run of the innermost loop delivers an order, for one value of each field that IN compares, and whether it has to run
/// backwards for it.
fn inner_delivers(sources: &[Source], loops: &[Candidate], wanted: &Wanted<'_>) -> Option<bool> {
    let last = loops.last()?;
    let Access::Index(a) = &last.access else { return None };
    if wanted.what != What::Order || sources.iter().any(|s| s.join.right || s.exists.is_some()) {
        return None;
    }
    let single = |e: &&EqTerm| !matches!(e, EqTerm::Eq { .. } | EqTerm::IsNull);
    let mut inner = last.clone();
    inner.order.drain(..a.eq.iter().filter(single).count().min(inner.order.len()));
    inner.unique_keys = None;
    let mut order = Order::default();
    order.find(sources, &[&inner], wanted);
    (order.state == OrderState::Done && order.apart == 0).then_some(order.reverse != 0)
}

/// Which loops must run backwards to deliver an order, where they can.
pub fn directions(sources: &[Source], loops: &[Candidate], wanted: &Wanted<'_>) -> Option<Mask> {
    let mut order = Order::default();
    order.find(sources, &loops.iter().collect::<Vec<_>>(), wanted);
    (order.state == OrderState::Done).then_some(order.reverse)
}

fn path(sources: &[Source], loops: Vec<Candidate>, wanted: Option<&Wanted<'_>>, rows: f64) -> Path {
    let mut order = Order::default();
    if let Some(w) = wanted {
        let refs: Vec<&Candidate> = loops.iter().collect();
        order.find(sources, &refs, w);
    }
    let ordered = order.state == OrderState::Done;
    let delivered = if ordered { 0 } else { order.delivered };
    let (mut reverse, mut apart) = (order.reverse, order.apart);
    if !ordered && delivered == 0 {
        (reverse, apart) = (0, 0);
    }
    let whole = wanted.filter(|_| !ordered && delivered == 0);
    let inner = whole.and_then(|w| inner_delivers(sources, &loops, w));
    if inner == Some(true) {
        reverse = 1 << (loops.len() - 1);
    }
    let inner = inner.is_some();
    Path { loops, reverse, apart, ordered, delivered, inner, rows, ..Path::default() }
}

/// A cost or a number of rows as coarsely as it is known, in steps of 7 percent: of paths as good as each other, the one
/// stays that takes the tables in the order in which they were written.
fn estimate(x: f64) -> i32 {
    (x.max(1.0).log2() * 10.0).round() as i32
}

/// Where a partial path belongs in a list, the end included, unless one at least as good covers the same sources, or `width` better
/// ones are there.
fn place_for(list: &[Partial], new: &Partial, width: usize) -> Option<usize> {
    // Whether a path has to be sorted is settled, or later loops decide it.
    let open = new.state == OrderState::Alive;
    let like = |p: &Partial| p.mask == new.mask && (p.state == OrderState::Alive) == open;
    if let Some(k) = list.iter().position(like) {
        let (own, other) = (new.total, list[k].total);
        let finer = |p: &Partial| (estimate(p.rows), estimate(p.cost));
        let better = own < other || own == other && finer(new) < finer(&list[k]);
        return better.then_some(k);
    }
    if list.len() < width {
        return Some(list.len());
    }
    let worst = (0..list.len()).max_by_key(|&k| list[k].total)?;
    (new.total < list[worst].total).then_some(worst)
}

/// What a sequence of loops delivers of the wanted order. One serves for many sequences.
struct Order {
    state: OrderState,
    delivered: usize,
    /// Which loops must run backwards for it.
    reverse: Mask,
    /// In which NULLs must come at the other end.
    apart: Mask,
    /// Which terms come out.
    done: Vec<bool>,
}

impl Default for Order {
    fn default() -> Order {
        let (reverse, apart, done) = (0, 0, Vec::new());
        Order { state: OrderState::Dead, delivered: 0, reverse, apart, done }
    }
}

impl Order {
    fn find(&mut self, sources: &[Source], loops: &[&Candidate], w: &Wanted<'_>) {
        self.done.clear();
        self.done.resize(w.terms.len(), false);
        (self.reverse, self.apart) = (0, 0);
        let loops_turned = (&mut self.reverse, &mut self.apart);
        self.state = order_state(sources, loops, w, loops_turned, &mut self.done);
        self.delivered = if w.part { self.done.iter().take_while(|d| **d).count() } else { 0 };
    }
}

/// How far a sequence of loops delivers the wanted order, which terms of it, and which loops must run backwards for it.
fn order_state(
    sources: &[Source],
    loops: &[&Candidate],
    w: &Wanted<'_>,
    (reverse, apart): (&mut Mask, &mut Mask),
    done: &mut [bool],
) -> OrderState {
    let is_constant = |t: &OrderTerm| match t.expr.without_collate() {
        Expr::Column(c) => w.constant.contains(&(c.table, c.column)),
        e => w.what != What::Distinct && e.is_constant(),
    };
    for (d, t) in done.iter_mut().zip(w.terms) {
        *d = is_constant(t);
    }
    for (n, c) in loops.iter().enumerate() {
        if done.iter().all(|d| *d) {
            return OrderState::Done;
        }
        let s = &sources[c.source];
        if s.exists.is_some() {
            continue;
        }
        // What is constant for each run of this loop.
        for (d, t) in done.iter_mut().zip(w.terms) {
            if let Expr::Column(col) = t.expr.without_collate()
                && col.table == s.id
                && c.constant.contains(&col.column)
                && !*d
            {
                // Only the next term may be skipped, unless the sequence does not matter.
                *d = true;
            }
        }
        if c.one_row {
            settled(sources, &loops[..=n], w, done);
            continue;
        }
        if s.join.right {
            return OrderState::Dead;
        }
        let mut direction: Option<bool> = None;
        let mut whole = true;
        // SQLite does not look for equal rows next to each other in a query in FROM.
        let keys = if c.one_way && w.what == What::Distinct { &[][..] } else { &c.order[..] };
        for (n_keys, key) in keys.iter().enumerate() {
            let next = if w.what != What::Order {
                (0..done.len()).find(|&t| !done[t] && key_is(&w.terms[t], key, s.id))
            } else {
                match (0..done.len()).find(|&t| !done[t]) {
                    Some(t) if key_is(&w.terms[t], key, s.id) => Some(t),
                    _ => None,
                }
            };
            let Some(t) = next else {
                if done.iter().all(|d| *d) {
                    return OrderState::Done;
                }
                // A key that is constant does not disturb the order of those behind it.
                if key.column.is_some_and(|k| w.constant.contains(&(s.id, k))) {
                    continue;
                }
                whole = false;
                break;
            };
            if w.what != What::Groups {
                let term = &w.terms[t];
                if term.nulls_large && !key.never_null {
                    if !c.splits_nulls || n_keys > 0 || w.what != What::Order {
                        return OrderState::Dead;
                    }
                    *apart |= 1 << n;
                }
                let back = term.desc != key.desc;
                if back && c.one_way {
                    whole = false;
                    break;
                }
                match direction {
                    None => {
                        direction = Some(back);
                        // Either way round, equal results are next to each other.
                        *reverse |= Mask::from(back && w.what == What::Order) << n;
                    }
                    Some(d) if d == back => {}
                    Some(_) => {
                        whole = false;
                        break;
                    }
                }
            }
            done[t] = true;
            // Rows that differ in all that came so far: nothing behind decides.
            if key.column == Some(ROWID) || c.unique_keys == Some(n_keys + 1) {
                settled(sources, &loops[..=n], w, done);
            }
        }
        if done.iter().all(|d| *d) {
            return OrderState::Done;
        }
        if !whole || !c.order_unique || c.order.is_empty() {
            return OrderState::Dead;
        }
    }
    if done.iter().all(|d| *d) { OrderState::Done } else { OrderState::Alive }
}

/// Takes the terms over the tables of some loops as delivered.
fn settled(sources: &[Source], loops: &[&Candidate], w: &Wanted<'_>, done: &mut [bool]) {
    for (d, t) in done.iter_mut().zip(w.terms) {
        let mut inside = !t.expr.changes_by_call();
        t.expr.tables(&mut |x| inside &= loops.iter().any(|l| sources[l.source].id == x));
        *d |= inside;
    }
}

fn key_is(t: &OrderTerm, key: &OrderKey, table: TableId) -> bool {
    match (t.expr.without_collate(), key.column, &key.expr) {
        (Expr::Column(c), Some(k), _) => {
            c.table == table && c.column == k && (k == ROWID || t.collation == key.collation)
        }
        (e, None, Some(x)) => e.same(x) && t.collation == key.collation,
        _ => false,
    }
}
