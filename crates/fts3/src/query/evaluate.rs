//! Which rows a query finds, and where its phrases stand in them.

use super::hits::{self, Hits};
use super::near::Chain;
use super::{Phrase, parse};
use crate::index::Index;
use iolite_base::Result;
use std::rc::Rc;

/// How deep a query may be.
pub(super) const MAX_DEPTH: u32 = 12;

/// How phrases go together; phrases by their numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Expr {
    Phrase(usize),
    /// Phrases, and how many tokens may stand between each and the one before.
    Near(Vec<usize>, Vec<i64>),
    Not(Box<Expr>, Box<Expr>),
    All(Vec<Expr>),
    Any(Vec<Expr>),
}

impl Expr {
    /// Two phrases near each other, or one near the last of several; `None`: they are no phrases.
    pub(super) fn near(left: Expr, right: Expr, distance: i64) -> Option<Expr> {
        let Expr::Phrase(p) = right else { return None };
        match left {
            Expr::Phrase(first) => Some(Expr::Near(vec![first, p], vec![distance])),
            Expr::Near(mut phrases, mut distances) => {
                phrases.push(p);
                distances.push(distance);
                Some(Expr::Near(phrases, distances))
            }
            _ => None,
        }
    }

    pub(super) fn all(left: Expr, right: Expr) -> Expr {
        match left {
            Expr::All(mut list) => {
                list.push(right);
                Expr::All(list)
            }
            left => Expr::All(vec![left, right]),
        }
    }

    pub(super) fn any(left: Expr, right: Expr) -> Expr {
        match left {
            Expr::Any(mut list) => {
                list.push(right);
                Expr::Any(list)
            }
            left => Expr::Any(vec![left, right]),
        }
    }

    /// How deep it is as a tree of two branches each, as flat as can be.
    pub(super) fn depth(&self) -> u32 {
        match self {
            Expr::Phrase(_) => 0,
            Expr::Near(phrases, _) => phrases.len() as u32 - 1,
            Expr::Not(a, b) => 1 + a.depth().max(b.depth()),
            Expr::All(list) | Expr::Any(list) => {
                let most = list.iter().map(Expr::depth).max().unwrap_or(0);
                most + list.len().next_power_of_two().trailing_zeros()
            }
        }
    }
}

/// For each phrase and column, how often it stands there in all rows, and in how many.
pub(crate) type Totals = Vec<Vec<(u32, u32)>>;

/// A query that is answered.
pub(crate) struct Query {
    pub phrases: Vec<Phrase>,
    expr: Option<Expr>,
    hits: Vec<Hits>,
    /// The rows that it finds, in ascending order.
    pub rows: Rc<Vec<i64>>,
}

fn intersection(a: &[i64], b: &[i64]) -> Vec<i64> {
    let (mut small, mut large) = (a, b);
    if small.len() > large.len() {
        (small, large) = (large, small);
    }
    if small.len() * 16 < large.len() {
        return small.iter().copied().filter(|n| large.binary_search(n).is_ok()).collect();
    }
    let mut out = Vec::with_capacity(small.len());
    let mut at = 0;
    for n in small {
        while at < large.len() && large[at] < *n {
            at += 1;
        }
        if large.get(at) == Some(n) {
            out.push(*n);
        }
    }
    out
}

impl Query {
    /// Reads and answers a query.
    pub fn new(index: &Index, column: Option<usize>, language: i64, text: &[u8]) -> Result<Query> {
        let (phrases, expr) = parse(&index.store.config, column, language, text)?;
        let mut hits = Vec::new();
        for p in &phrases {
            hits.push(hits::of_phrase(index, language, p)?);
        }
        let mut q = Query { phrases, expr, hits, rows: Rc::default() };
        if let Some(e) = &q.expr {
            q.rows = q.rows_of(e);
        }
        Ok(q)
    }

    /// Whether there is anything to look for.
    pub fn is_empty(&self) -> bool {
        self.expr.is_none()
    }

    fn rows_of(&self, e: &Expr) -> Rc<Vec<i64>> {
        match e {
            Expr::Phrase(p) => self.hits[*p].rows.clone(),
            Expr::Near(phrases, _) => {
                let mut rows = self.hits[phrases[0]].rows.to_vec();
                for p in &phrases[1..] {
                    rows = intersection(&rows, &self.hits[*p].rows);
                }
                rows.retain(|docid| self.near(e, *docid).is_some());
                Rc::new(rows)
            }
            Expr::Not(a, b) => {
                let (a, b) = (self.rows_of(a), self.rows_of(b));
                Rc::new(a.iter().copied().filter(|n| b.binary_search(n).is_err()).collect())
            }
            Expr::All(list) => {
                let mut rows = self.rows_of(&list[0]);
                for e in &list[1..] {
                    rows = Rc::new(intersection(&rows, &self.rows_of(e)));
                }
                rows
            }
            Expr::Any(list) => {
                let mut rows: Vec<i64> = list.iter().flat_map(|e| self.rows_of(e).to_vec()).collect();
                rows.sort_unstable();
                rows.dedup();
                Rc::new(rows)
            }
        }
    }

    /// The places of phrases that have to be near each other in a row, if they are.
    fn near(&self, e: &Expr, docid: i64) -> Option<Vec<Vec<u64>>> {
        let Expr::Near(phrases, distances) = e else { return None };
        let sizes: Vec<i64> = phrases.iter().map(|p| self.phrases[*p].terms.len() as i64).collect();
        let mut lists: Vec<Vec<u64>> = phrases.iter().map(|p| self.hits[*p].at(docid).to_vec()).collect();
        if lists.iter().any(Vec::is_empty) {
            return None;
        }
        Chain { sizes: &sizes, distances }.trim(&mut lists).then_some(lists)
    }

    fn matches(&self, e: &Expr, docid: i64) -> bool {
        match e {
            Expr::Phrase(p) => !self.hits[*p].at(docid).is_empty(),
            Expr::Near(..) => self.near(e, docid).is_some(),
            Expr::Not(a, b) => self.matches(a, docid) && !self.matches(b, docid),
            Expr::All(list) => list.iter().all(|e| self.matches(e, docid)),
            Expr::Any(list) => list.iter().any(|e| self.matches(e, docid)),
        }
    }

    /// The phrases that can match: not those that must not.
    pub fn matchable(&self) -> Vec<usize> {
        fn visit(e: &Expr, out: &mut Vec<usize>) {
            match e {
                Expr::Phrase(p) => out.push(*p),
                Expr::Near(phrases, _) => out.extend(phrases),
                Expr::Not(a, _) => visit(a, out),
                Expr::All(list) | Expr::Any(list) => list.iter().for_each(|e| visit(e, out)),
            }
        }
        let mut out = Vec::new();
        if let Some(e) = &self.expr {
            visit(e, &mut out);
        }
        out
    }

    /// For each phrase its places in a row. `matching`: only of parts of the query that the row matches.
    pub fn places(&self, docid: i64, matching: bool) -> Vec<Vec<u64>> {
        let mut out = vec![Vec::new(); self.phrases.len()];
        if let Some(e) = &self.expr {
            self.gather(e, docid, matching, &mut out);
        }
        out
    }

    fn gather(&self, e: &Expr, docid: i64, matching: bool, out: &mut [Vec<u64>]) {
        if matching && !self.matches(e, docid) {
            return;
        }
        match e {
            Expr::Phrase(p) => out[*p] = self.hits[*p].at(docid).to_vec(),
            Expr::Near(phrases, _) => {
                for (p, list) in phrases.iter().zip(self.near(e, docid).unwrap_or_default()) {
                    out[*p] = list;
                }
            }
            Expr::Not(a, _) => self.gather(a, docid, matching, out),
            Expr::All(list) | Expr::Any(list) => {
                list.iter().for_each(|e| self.gather(e, docid, matching, out))
            }
        }
    }

    /// What is counted over all rows.
    pub fn totals(&self, columns: usize) -> Totals {
        let mut out = vec![vec![(0, 0); columns]; self.phrases.len()];
        if let Some(e) = &self.expr {
            self.count(e, &mut out);
        }
        out
    }

    fn count(&self, e: &Expr, out: &mut [Vec<(u32, u32)>]) {
        fn add(counts: &mut [(u32, u32)], places: &[u64]) {
            let mut last = None;
            for p in places {
                let column = (p >> 32) as usize;
                if let Some(c) = counts.get_mut(column) {
                    c.0 += 1;
                    c.1 += (last != Some(column)) as u32;
                }
                last = Some(column);
            }
        }
        match e {
            Expr::Phrase(p) => {
                let hits = &self.hits[*p];
                (0..hits.rows.len()).for_each(|i| add(&mut out[*p], hits.of(i)));
            }
            Expr::Near(phrases, _) => {
                for docid in self.rows_of(e).iter() {
                    for (p, list) in phrases.iter().zip(self.near(e, *docid).unwrap_or_default()) {
                        add(&mut out[*p], &list);
                    }
                }
            }
            Expr::Not(a, b) => {
                self.count(a, out);
                self.count(b, out);
            }
            Expr::All(list) | Expr::Any(list) => list.iter().for_each(|e| self.count(e, out)),
        }
    }
}
