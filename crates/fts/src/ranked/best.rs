//! The best rows of lists in memory, by the sum of their parts of the score.
//!
//! What always holds: a score is the sum over the query's phrases in their order, as `bm25` adds it, so it is the same to the bit. A row is
//! left out only where a sum of greatest values, enlarged by more than rounding can make of it, does not exceed the score of the last
//! row that is still among the best; rows are looked at in ascending order, so that of equal ones the first stay.

use super::list::{BLOCK, List, seek};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::rc::Rc;

/// Rows are added up in windows of so many rowids: half of the fastest cache.
const WINDOW: usize = 2048;
/// Windows pay where at least one of so many rowids is in a list.
const SPARSE: u64 = 64;
/// In windows with fewer rows than these, the rows are noted.
const FEW: usize = WINDOW / 16;
/// What a bound that was summed in another order is multiplied by.
const SLACK: f64 = 1.0 + 1e-9;

/// A query over lists by the numbers of its phrases.
pub(super) enum Tree {
    Nothing,
    Leaf(usize),
    And(Vec<Tree>),
    Or(Vec<Tree>),
    Not(Box<[Tree; 2]>),
}

/// A row with its score.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Hit {
    pub score: f64,
    pub rowid: i64,
}

impl Eq for Hit {}

impl Ord for Hit {
    /// The better one is less.
    fn cmp(&self, other: &Hit) -> Ordering {
        other.score.total_cmp(&self.score).then(self.rowid.cmp(&other.rowid))
    }
}

impl PartialOrd for Hit {
    fn partial_cmp(&self, other: &Hit) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The best rows so far.
struct Best {
    k: usize,
    heap: BinaryHeap<Hit>,
}

impl Best {
    /// A score must be above it.
    #[inline]
    fn least(&self) -> f64 {
        if self.heap.len() < self.k {
            f64::NEG_INFINITY
        } else {
            self.heap.peek().map_or(f64::INFINITY, |h| h.score)
        }
    }

    fn add(&mut self, hit: Hit) {
        if self.heap.len() == self.k {
            self.heap.pop();
        }
        self.heap.push(hit);
    }
}

/// A part of a query as it goes from row to row. `now` is the row that it stands on; none: it is at its end.
enum Walk<'l> {
    Nothing,
    Leaf { list: &'l List, phrase: usize, at: usize },
    And { parts: Vec<Walk<'l>>, now: Option<i64> },
    Or { parts: Vec<Walk<'l>>, now: Option<i64> },
    Not { pair: Box<[Walk<'l>; 2]>, now: Option<i64> },
}

impl Walk<'_> {
    /// Goes on to the first row that is not before `to`.
    fn seek(&mut self, to: i64) -> Option<i64> {
        match self {
            Walk::Nothing => None,
            Walk::Leaf { list, at, .. } => {
                *at = seek(&list.rows, *at, to);
                list.rows.get(*at).copied()
            }
            Walk::And { parts, now } => {
                let mut target = to;
                'rows: loop {
                    for p in parts.iter_mut() {
                        *now = p.seek(target);
                        let found = (*now)?;
                        if found > target {
                            target = found;
                            continue 'rows;
                        }
                    }
                    *now = Some(target);
                    return *now;
                }
            }
            Walk::Or { parts, now } => {
                *now = parts.iter_mut().filter_map(|p| p.seek(to)).min();
                *now
            }
            Walk::Not { pair, now } => {
                let [left, right] = &mut **pair;
                let mut target = to;
                loop {
                    *now = left.seek(target);
                    let found = (*now)?;
                    if right.seek(found) != Some(found) {
                        return *now;
                    }
                    *now = None;
                    target = found.checked_add(1)?;
                }
            }
        }
    }

    /// The values of the phrases that count in a row on which the whole query stands.
    fn values(&self, row: i64, out: &mut [f64]) {
        match self {
            Walk::Nothing => {}
            Walk::Leaf { list, phrase, at } if list.rows.get(*at) == Some(&row) => {
                out[*phrase] = list.values[*at];
            }
            Walk::And { parts, now } | Walk::Or { parts, now } if *now == Some(row) => {
                parts.iter().for_each(|p| p.values(row, out));
            }
            Walk::Not { pair, now } if *now == Some(row) => pair[0].values(row, out),
            _ => {}
        }
    }
}

/// A query with its lists.
pub(super) struct Search {
    pub tree: Tree,
    /// One for each phrase; none where it has no part in the query.
    pub lists: Vec<Option<Rc<List>>>,
    /// The first and the last rowid.
    pub bounds: (i64, i64),
}

impl Search {
    fn walk<'l>(&'l self, t: &'l Tree) -> Walk<'l> {
        let all = |l: &'l [Tree]| l.iter().map(|t| self.walk(t)).collect();
        match t {
            Tree::Nothing => Walk::Nothing,
            Tree::Leaf(phrase) => match &self.lists[*phrase] {
                Some(list) => Walk::Leaf { list, phrase: *phrase, at: 0 },
                None => Walk::Nothing,
            },
            Tree::And(l) => Walk::And { parts: all(l), now: None },
            Tree::Or(l) => Walk::Or { parts: all(l), now: None },
            Tree::Not(pair) => {
                Walk::Not { pair: Box::new([self.walk(&pair[0]), self.walk(&pair[1])]), now: None }
            }
        }
    }

    /// Calls `f` with each row that matches and what the lists say of it, until that is an error.
    pub fn each<E>(&self, mut f: impl FnMut(i64, &[f64]) -> Result<(), E>) -> Result<(), E> {
        let mut walk = self.walk(&self.tree);
        let mut values = vec![0.0; self.lists.len()];
        let mut next = Some(self.bounds.0);
        while let Some(row) = next.and_then(|n| walk.seek(n)).filter(|r| *r <= self.bounds.1) {
            values.fill(0.0);
            walk.values(row, &mut values);
            f(row, &values)?;
            next = row.checked_add(1);
        }
        Ok(())
    }

    /// All rows, the best first; `worst`: the last first, and of equal ones still those that come first.
    pub fn all(&self, worst: bool) -> Vec<Hit> {
        let mut hits = Vec::new();
        let Ok(()) = self.each(|rowid, values| {
            hits.push(Hit { score: values.iter().fold(0.0, |a, b| a + b), rowid });
            Ok::<(), std::convert::Infallible>(())
        });
        sort(&mut hits, worst);
        hits
    }

    /// How many rows match.
    pub fn count_matches(&self) -> usize {
        let mut walk = self.walk(&self.tree);
        let (mut n, mut next) = (0, Some(self.bounds.0));
        while let Some(row) = next.and_then(|n| walk.seek(n)).filter(|r| *r <= self.bounds.1) {
            n += 1;
            next = row.checked_add(1);
        }
        n
    }

    /// At most how many rows match.
    pub fn at_most(&self) -> usize {
        self.count(&self.tree)
    }

    fn count(&self, t: &Tree) -> usize {
        match t {
            Tree::Nothing => 0,
            Tree::Leaf(p) => self.lists[*p].as_ref().map_or(0, |l| l.rows.len()),
            Tree::And(l) => l.iter().map(|t| self.count(t)).min().unwrap_or(0),
            Tree::Or(l) => l.iter().map(|t| self.count(t)).sum(),
            Tree::Not(pair) => self.count(&pair[0]),
        }
    }

    /// The best `k` rows, the best first. All lists that count are scored.
    pub fn best(&self, k: usize) -> Vec<Hit> {
        let mut best = Best { k, heap: BinaryHeap::new() };
        if k == 0 {
            return Vec::new();
        }
        let (wanted, unwanted) = match &self.tree {
            Tree::Not(pair) => (&pair[0], Some(&pair[1])),
            t => (t, None),
        };
        let mut not = unwanted.map(|t| self.walk(t));
        let mut passes = |row: i64| not.as_mut().is_none_or(|n| n.seek(row) != Some(row));
        let leaves = |l: &[Tree]| -> Option<Vec<usize>> {
            l.iter().map(|t| if let Tree::Leaf(p) = t { Some(*p) } else { None }).collect()
        };
        match wanted {
            Tree::Leaf(p) => self.of_one(*p, &mut best, &mut passes),
            Tree::And(l) if leaves(l).is_some() => {
                self.of_all(leaves(l).unwrap_or_default(), &mut best, &mut passes);
            }
            Tree::Or(l) if leaves(l).is_some_and(|p| self.is_dense(&p)) => {
                self.of_any(leaves(l).unwrap_or_default(), &mut best, &mut passes);
            }
            _ => {
                let Ok(()) = self.each(|rowid, values| {
                    let score = values.iter().fold(0.0, |a, b| a + b);
                    if score > best.least() {
                        best.add(Hit { score, rowid });
                    }
                    Ok::<(), std::convert::Infallible>(())
                });
            }
        }
        best.heap.into_sorted_vec()
    }

    /// Of one phrase: blocks whose greatest value is too small are passed over.
    fn of_one(&self, phrase: usize, best: &mut Best, passes: &mut dyn FnMut(i64) -> bool) {
        let Some(list) = &self.lists[phrase] else { return };
        let (from, to) = self.range(list);
        let mut at = from;
        while at < to {
            let end = (at / BLOCK + 1) * BLOCK;
            let end = end.min(to);
            if list.tops[at / BLOCK] > best.least() {
                let mut least = best.least();
                for i in at..end {
                    if list.values[i] > least && passes(list.rows[i]) {
                        best.add(Hit { score: list.values[i], rowid: list.rows[i] });
                        least = best.least();
                    }
                }
            }
            at = end;
        }
    }

    /// The numbers of a list's rows within the bounds.
    fn range(&self, list: &List) -> (usize, usize) {
        let from = list.rows.partition_point(|r| *r < self.bounds.0);
        (from, list.rows.partition_point(|r| *r <= self.bounds.1).max(from))
    }

    /// Of rows that have all phrases: the rarest leads; its blocks and rows that are too small even with the greatest values of the
    /// others are passed over.
    fn of_all(&self, mut phrases: Vec<usize>, best: &mut Best, passes: &mut dyn FnMut(i64) -> bool) {
        phrases.sort_unstable();
        let lists: Option<Vec<&List>> = phrases.iter().map(|p| self.lists[*p].as_deref()).collect();
        let Some(lists) = lists else { return };
        let Some(lead) = (0..lists.len()).min_by_key(|i| lists[*i].rows.len()) else { return };
        let others: f64 = (0..lists.len()).filter(|i| *i != lead).map(|i| lists[i].top).sum();
        let first = lists[lead];
        let (mut n, to) = self.range(first);
        let mut at = vec![0; lists.len()];
        let mut least = best.least();
        'rows: while n < to {
            if (first.tops[n / BLOCK] + others) * SLACK <= least {
                n = (n / BLOCK + 1) * BLOCK;
                continue;
            }
            let (row, i) = (first.rows[n], n);
            n += 1;
            if (first.values[i] + others) * SLACK <= least {
                continue;
            }
            let mut score = 0.0;
            for (k, list) in lists.iter().enumerate() {
                if k == lead {
                    score += first.values[i];
                    continue;
                }
                at[k] = seek(&list.rows, at[k], row);
                match list.rows.get(at[k]) {
                    Some(r) if *r == row => score += list.values[at[k]],
                    Some(r) => {
                        n = seek(&first.rows, n, *r);
                        continue 'rows;
                    }
                    None => return,
                }
            }
            if score > least && passes(row) {
                best.add(Hit { score, rowid: row });
                least = best.least();
            }
        }
    }

    /// Whether the lists' rows lie close enough for windows, where no value is zero.
    fn is_dense(&self, phrases: &[usize]) -> bool {
        let lists =
            || phrases.iter().filter_map(|p| self.lists[*p].as_deref()).filter(|l| !l.rows.is_empty());
        let total: u64 = lists().map(|l| l.rows.len() as u64).sum();
        let first = lists().map(|l| l.rows[0]).min().unwrap_or(0);
        let last = lists().map(|l| l.rows[l.rows.len() - 1]).max().unwrap_or(0);
        lists().all(|l| l.least > 0.0) && last.abs_diff(first) / SPARSE <= total
    }

    /// Of rows that have any of the phrases. Values are added up in windows; phrases that alone cannot lift a row among the best
    /// are looked up only for rows that others have.
    fn of_any(&self, mut phrases: Vec<usize>, best: &mut Best, passes: &mut dyn FnMut(i64) -> bool) {
        phrases.sort_unstable();
        let lists: Vec<&List> = phrases.iter().filter_map(|p| self.lists[*p].as_deref()).collect();
        let n = lists.len();
        let mut at: Vec<usize> = lists.iter().map(|l| self.range(l).0).collect();
        let mut to = vec![0; n];
        let mut by_top: Vec<usize> = (0..n).collect();
        by_top.sort_by(|a, b| lists[*a].top.total_cmp(&lists[*b].top));
        let mut lifts = vec![true; n];
        let mut sums = vec![0.0f64; WINDOW];
        let mut noted: Vec<u16> = Vec::new();
        loop {
            let mut least = best.least();
            let mut small = 0.0;
            for i in &by_top {
                small += lists[*i].top;
                lifts[*i] = small * SLACK > least;
            }
            let next = (0..n).filter(|i| lifts[*i]).filter_map(|i| lists[i].rows.get(at[i])).min();
            let Some(&start) = next.filter(|r| **r <= self.bounds.1) else { return };
            let last = start.saturating_add(WINDOW as i64 - 1).min(self.bounds.1);
            let (mut bound, mut rest, mut few) = (0.0, 0.0, 0);
            for i in 0..n {
                let rows = &lists[i].rows;
                at[i] = seek(rows, at[i], start);
                to[i] = match last.checked_add(1) {
                    Some(end) => seek(rows, at[i], end),
                    None => rows.len(),
                };
                let top = lists[i].top_of(at[i], to[i]);
                bound += top;
                if lifts[i] {
                    few += to[i] - at[i];
                } else {
                    rest += top;
                }
            }
            if bound * SLACK <= least {
                at.copy_from_slice(&to);
                continue;
            }
            noted.clear();
            for i in (0..n).filter(|i| lifts[*i]) {
                let (rows, values) = (&lists[i].rows[at[i]..to[i]], &lists[i].values[at[i]..to[i]]);
                for (row, value) in rows.iter().zip(values) {
                    let place = (row - start) as usize % WINDOW;
                    if few < FEW && sums[place] == 0.0 {
                        noted.push(place as u16);
                    }
                    sums[place] += value;
                }
            }
            let mut look = |place: usize, sum: f64| {
                if rest == 0.0 && sum <= least || (sum + rest) * SLACK <= least {
                    return;
                }
                let row = start + place as i64;
                // Places come in ascending order: a list is gone through once for a window.
                let mut value = |i: usize| {
                    let rows = &lists[i].rows[..to[i]];
                    at[i] = seek(rows, at[i], row);
                    if rows.get(at[i]) == Some(&row) { lists[i].values[at[i]] } else { 0.0 }
                };
                let score = if rest == 0.0 { sum } else { (0..n).fold(0.0, |s, i| s + value(i)) };
                if score > least && passes(row) {
                    best.add(Hit { score, rowid: row });
                    least = best.least();
                }
            };
            if few < FEW {
                noted.sort_unstable();
                for place in &noted {
                    look(usize::from(*place), std::mem::take(&mut sums[usize::from(*place)]));
                }
            } else {
                let used = (last - start) as usize + 1;
                for (place, sum) in sums[..used].iter().enumerate() {
                    if *sum != 0.0 {
                        look(place, *sum);
                    }
                }
                sums[..used].fill(0.0);
            }
            at.copy_from_slice(&to);
        }
    }
}

/// Sorts rows: see [`Search::all`].
pub(super) fn sort(hits: &mut [Hit], worst: bool) {
    match worst {
        false => hits.sort_unstable(),
        true => hits.sort_unstable_by(|a, b| a.score.total_cmp(&b.score).then(a.rowid.cmp(&b.rowid))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random.
    struct Draw(u64);

    impl Draw {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % n
        }
    }

    /// A list in which one of `every` rows is, rows being `far` apart.
    fn list(d: &mut Draw, rows: i64, every: u64, far: i64, coarse: bool) -> Rc<List> {
        let mut l = List::default();
        for n in 1..=rows {
            if d.below(every) == 0 {
                l.rows.push(n * far - 1000);
                l.values.push(if coarse {
                    (1 + d.below(3)) as f64
                } else {
                    1.0 + d.below(1 << 30) as f64 / 1e9
                });
            }
        }
        l.tops = l.values.chunks(BLOCK).map(|b| b.iter().fold(0.0, |a: f64, b| a.max(*b))).collect();
        l.top = l.tops.iter().fold(0.0, |a, b| a.max(*b));
        l.least = l.values.iter().fold(f64::INFINITY, |a, b| a.min(*b));
        l.scored = true;
        Rc::new(l)
    }

    fn leaves(l: &[usize]) -> Vec<Tree> {
        l.iter().map(|p| Tree::Leaf(*p)).collect()
    }

    #[test]
    fn the_best_rows_are_the_first_of_all() {
        for seed in 0..120 {
            let mut d = Draw(seed * 7919 + 1);
            let far = [1, 1, 50, 100_000, i64::MAX / 20_000][d.below(5) as usize];
            let coarse = d.below(2) == 0;
            let rows = [200, 3000, 9000][d.below(3) as usize];
            let lists: Vec<Rc<List>> = (0..4)
                .map(|_| {
                    let every = [1, 2, 7, 60, 900, 20_000][d.below(6) as usize];
                    list(&mut d, rows, every, far, coarse)
                })
                .collect();
            let not = |wanted, unwanted| Tree::Not(Box::new([wanted, unwanted]));
            let trees = [
                Tree::Leaf(0),
                Tree::Or(leaves(&[0, 1, 2, 3])),
                Tree::Or(leaves(&[3, 1])),
                Tree::And(leaves(&[0, 1, 2])),
                not(Tree::Or(leaves(&[0, 1])), Tree::Leaf(2)),
                not(Tree::And(leaves(&[1, 2])), Tree::Or(leaves(&[0, 3]))),
                Tree::Or(vec![Tree::And(leaves(&[0, 1])), not(Tree::Leaf(2), Tree::Leaf(3))]),
                Tree::And(vec![Tree::Leaf(0), Tree::Or(leaves(&[1, 2, 3])), Tree::Or(vec![])]),
                Tree::And(vec![Tree::Leaf(0), Tree::Or(leaves(&[1, 2, 3]))]),
                not(Tree::Leaf(1), Tree::Nothing),
            ];
            for (t, tree) in trees.into_iter().enumerate() {
                for bounds in [(i64::MIN, i64::MAX), (far * 40 - 1000, far * (rows - 30) - 1001), (5, 4)] {
                    let lists = lists.iter().map(|l| Some(l.clone())).collect();
                    let search = Search { tree: copy(&tree), lists, bounds };
                    let all = search.all(false);
                    assert!(all.is_sorted() && all.len() <= search.at_most());
                    assert_eq!(all.len(), search.count_matches());
                    for k in [0, 1, 10, 300, 100_000] {
                        assert_eq!(
                            search.best(k),
                            all[..k.min(all.len())],
                            "seed {seed}, tree {t}, {bounds:?}, {k}"
                        );
                    }
                }
            }
        }
    }

    fn copy(t: &Tree) -> Tree {
        match t {
            Tree::Nothing => Tree::Nothing,
            Tree::Leaf(p) => Tree::Leaf(*p),
            Tree::And(l) => Tree::And(l.iter().map(copy).collect()),
            Tree::Or(l) => Tree::Or(l.iter().map(copy).collect()),
            Tree::Not(p) => Tree::Not(Box::new([copy(&p[0]), copy(&p[1])])),
        }
    }
}
