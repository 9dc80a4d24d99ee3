//! Choosing one access per source and the order of the loops: a beam search over partial paths.
//!
//! The search never explodes: at each of at most 64 steps a fixed number of paths survives. Whether a path also
//! delivers the wanted order is part of what is compared, so that an index in the right order can beat a sort.

use crate::access::{Candidate, OrderKey};
use crate::bound::*;
use crate::cost;
use crate::terms::Mask;

/// An order that the loops might deliver by themselves.
pub struct Wanted<'a> {
    /// The terms.
    pub terms: &'a [OrderTerm],
    /// Any direction and any sequence of the terms will do: for grouping.
    pub any: bool,
    /// Columns that conditions make constant.
    pub constant: &'a [(TableId, i32)],
}

/// The chosen path.
pub struct Path {
    /// Candidates, outermost first.
    pub loops: Vec<Candidate>,
    /// Which of them run backwards.
    pub reverse: Vec<bool>,
    /// The wanted order comes out.
    pub ordered: bool,
    /// Estimated rows.
    pub rows: f64,
}

#[derive(Clone)]
struct Partial {
    mask: Mask,
    cost: f64,
    /// The estimate that paths are compared by: with the sort that a path without the wanted order needs.
    total: i32,
    rows: f64,
    picks: Vec<(usize, usize)>,
    state: OrderState,
}

#[derive(Clone, Copy, PartialEq)]
enum OrderState {
    Done,
    Alive,
    Dead,
}

/// Finds the cheapest path found by the search.
pub fn search(
    sources: &[Source],
    candidates: &[Vec<Candidate>],
    wanted: Option<&Wanted<'_>>,
) -> Option<Path> {
    let n = sources.len();
    if let (1, [only]) = (n, candidates)
        && let [c] = &only[..]
    {
        let (state, reverse) = match wanted {
            Some(w) => order_state(sources, &[c], w),
            None => (OrderState::Dead, vec![false]),
        };
        let ordered = state == OrderState::Done;
        let reverse = if ordered { reverse } else { vec![false] };
        return Some(Path { loops: vec![c.clone()], reverse, ordered, rows: c.rows });
    }
    let any_right = sources.iter().any(|s| s.join.right);
    let before: Vec<Mask> = (0..n)
        .map(|i| {
            let all = (1u64 << i) - 1;
            if any_right || sources[i].join.left || sources[i].join.cross { all } else { 0 }
        })
        .collect();
    let width = match n {
        0 | 1 => 2,
        2 => 6,
        _ => 14,
    };
    let sort_cost = |rows: f64| wanted.map_or(0.0, |_| cost::sort(rows));
    let start =
        Partial { mask: 0, cost: 0.0, total: 0, rows: 1.0, picks: Vec::new(), state: OrderState::Alive };
    let mut beam = vec![start];
    for _ in 0..n {
        let mut next: Vec<Partial> = Vec::new();
        for p in &beam {
            for i in 0..n {
                if p.mask & 1 << i != 0 || before[i] & !p.mask != 0 {
                    continue;
                }
                for (k, c) in candidates[i].iter().enumerate() {
                    if c.needs & !p.mask != 0 {
                        continue;
                    }
                    let left = sources[i].join.left;
                    let rows = p.rows * if left { c.rows.max(1.0) } else { c.rows };
                    let cost = p.cost + c.setup + p.rows.max(1.0) * c.cost;
                    let state = match (wanted, p.state) {
                        (None, _) => OrderState::Dead,
                        (_, OrderState::Dead) => OrderState::Dead,
                        (Some(w), _) => {
                            let picks = p.picks.iter().copied().chain([(i, k)]);
                            let loops: Vec<&Candidate> = picks.map(|(i, k)| &candidates[i][k]).collect();
                            order_state(sources, &loops, w).0
                        }
                    };
                    let mask = p.mask | 1 << i;
                    let total = total(cost, rows, state, &sort_cost);
                    let new = Partial { mask, cost, total, rows, picks: Vec::new(), state };
                    if let Some(place) = place_for(&mut next, &new, width) {
                        *place = new;
                        place.picks.reserve_exact(n);
                        place.picks.extend(p.picks.iter().copied().chain([(i, k)]));
                    }
                }
            }
        }
        beam = next;
    }
    let best = beam.into_iter().min_by_key(|p| p.total)?;
    let loops: Vec<Candidate> = best.picks.iter().map(|&(i, k)| candidates[i][k].clone()).collect();
    let refs: Vec<&Candidate> = loops.iter().collect();
    let (state, reverse) = match wanted {
        Some(w) => order_state(sources, &refs, w),
        None => (OrderState::Dead, vec![false; n]),
    };
    let ordered = state == OrderState::Done;
    let reverse = if ordered { reverse } else { vec![false; n] };
    Some(Path { loops, reverse, ordered, rows: best.rows })
}

fn total(cost: f64, rows: f64, state: OrderState, sort_cost: &dyn Fn(f64) -> f64) -> i32 {
    estimate(cost + if state == OrderState::Dead { sort_cost(rows) } else { 0.0 })
}

/// A cost or a number of rows as coarsely as it is known, in steps of 7 percent: of paths as good as each other, the one
/// stays that takes the tables in the order in which they were written.
fn estimate(x: f64) -> i32 {
    (x.max(1.0).log2() * 10.0).round() as i32
}

/// Where a partial path belongs, unless one at least as good covers the same sources, or `width` better ones are there.
fn place_for<'l>(list: &'l mut Vec<Partial>, new: &Partial, width: usize) -> Option<&'l mut Partial> {
    let dead = new.state == OrderState::Dead;
    let like = |p: &Partial| p.mask == new.mask && (p.state == OrderState::Dead) == dead;
    if let Some(k) = list.iter().position(like) {
        let key = |p: &Partial| (p.total, estimate(p.rows));
        return if key(new) < key(&list[k]) { Some(&mut list[k]) } else { None };
    }
    if list.len() < width {
        list.push(new.clone());
        return list.last_mut();
    }
    let worst = (0..list.len()).max_by_key(|&k| list[k].total)?;
    if new.total < list[worst].total { Some(&mut list[worst]) } else { None }
}

/// How far a sequence of loops delivers the wanted order, and which of them must run backwards for it.
fn order_state(sources: &[Source], loops: &[&Candidate], w: &Wanted<'_>) -> (OrderState, Vec<bool>) {
    let mut reverse = vec![false; sources.len()];
    let mut done = vec![false; w.terms.len()];
    let is_constant = |t: &OrderTerm| match t.expr.without_collate() {
        Expr::Column(c) => w.constant.contains(&(c.table, c.column)),
        e => e.is_constant(),
    };
    for (d, t) in done.iter_mut().zip(w.terms) {
        *d = is_constant(t);
    }
    let mut placed: Vec<TableId> = Vec::new();
    for (n, c) in loops.iter().enumerate() {
        if done.iter().all(|d| *d) {
            return (OrderState::Done, reverse);
        }
        let s = &sources[c.source];
        placed.push(s.id);
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
            for (d, t) in done.iter_mut().zip(w.terms) {
                let mut inside = true;
                t.expr.tables(&mut |x| inside &= placed.contains(&x));
                if inside {
                    *d = true;
                }
            }
            continue;
        }
        if s.join.right {
            return (OrderState::Dead, reverse);
        }
        let mut direction: Option<bool> = None;
        let mut whole = true;
        for key in &c.order {
            let next = if w.any {
                (0..done.len()).find(|&t| !done[t] && key_is(&w.terms[t], key, s.id))
            } else {
                match (0..done.len()).find(|&t| !done[t]) {
                    Some(t) if key_is(&w.terms[t], key, s.id) => Some(t),
                    _ => None,
                }
            };
            let Some(t) = next else {
                if done.iter().all(|d| *d) {
                    return (OrderState::Done, reverse);
                }
                // A key that is constant does not disturb the order of those behind it.
                if key.column.is_some_and(|k| w.constant.contains(&(s.id, k))) {
                    continue;
                }
                whole = false;
                break;
            };
            if !w.any {
                let term = &w.terms[t];
                if term.nulls_large {
                    return (OrderState::Dead, reverse);
                }
                let back = term.desc != key.desc;
                match direction {
                    None => {
                        direction = Some(back);
                        reverse[n] = back;
                    }
                    Some(d) if d == back => {}
                    Some(_) => {
                        whole = false;
                        break;
                    }
                }
            }
            done[t] = true;
        }
        if done.iter().all(|d| *d) {
            return (OrderState::Done, reverse);
        }
        if !whole || !c.order_unique || c.order.is_empty() {
            return (OrderState::Dead, reverse);
        }
    }
    let state = if done.iter().all(|d| *d) { OrderState::Done } else { OrderState::Alive };
    (state, reverse)
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
