//! What a walk still has to look at, in the order of scores; of equal scores the lower level goes first.
//!
//! It is a heap with one place in front of it, which a walk in depth alone hardly ever leaves. Where scores and levels are alike,
//! the places in the heap decide, and rows come in the order in which SQLite has them.

use crate::geometry::Within;
use iolite_base::Bytes;

/// A node whose cells are being looked at, or an entry, which is a row (level 0).
#[derive(Clone)]
pub(crate) struct Point {
    pub score: f64,
    pub level: usize,
    /// The node: itself, or that of the entry.
    pub number: i64,
    pub within: Within,
    /// The next cell, or the entry's.
    pub cell: usize,
    /// The node's bytes, once they were needed.
    pub node: Option<Bytes>,
}

impl Point {
    fn before(&self, other: &Point) -> bool {
        before((self.score, self.level), (other.score, other.level))
    }
}

fn before(a: (f64, usize), b: (f64, usize)) -> bool {
    a.0 < b.0 || a.0 == b.0 && a.1 < b.1
}

/// The points that wait.
#[derive(Default)]
pub(crate) struct Queue {
    front: Option<Point>,
    heap: Vec<Point>,
    /// How many wait, by their levels.
    pub counts: Vec<u32>,
}

impl Queue {
    /// An empty queue for levels up to this one.
    pub fn new(top_level: usize) -> Queue {
        Queue { front: None, heap: Vec::new(), counts: vec![0; top_level + 1] }
    }

    pub fn first(&self) -> Option<&Point> {
        self.front.as_ref().or(self.heap.first())
    }

    pub fn first_mut(&mut self) -> Option<&mut Point> {
        match &mut self.front {
            Some(p) => Some(p),
            None => self.heap.first_mut(),
        }
    }

    /// Whether the node of this number is waiting.
    pub fn has_node(&self, number: i64) -> bool {
        self.front.iter().chain(&self.heap).any(|p| p.level > 0 && p.number == number)
    }

    fn count(&mut self, level: usize, up: bool) {
        if let Some(n) = self.counts.get_mut(level) {
            *n = if up { n.saturating_add(1) } else { n.saturating_sub(1) };
        }
    }

    /// Puts a point into the heap at the place for what has this rank.
    fn enqueue(&mut self, point: Point, rank: (f64, usize)) {
        let mut at = self.heap.len();
        self.heap.push(point);
        while at > 0 {
            let parent = (at - 1) / 2;
            let p = &self.heap[parent];
            if !before(rank, (p.score, p.level)) {
                break;
            }
            self.heap.swap(at, parent);
            at = parent;
        }
    }

    pub fn push(&mut self, point: Point) {
        self.count(point.level, true);
        let rank = (point.score, point.level);
        if self.first().is_some_and(|f| !before(rank, (f.score, f.level))) {
            return self.enqueue(point, rank);
        }
        // What was in front goes to where the new one would have gone.
        if let Some(p) = self.front.replace(point) {
            self.enqueue(p, rank);
        }
    }

    pub fn pop(&mut self) {
        if let Some(p) = self.front.take() {
            return self.count(p.level, false);
        }
        let Some(last) = self.heap.pop() else { return };
        let Some(first) = self.heap.first_mut() else { return self.count(last.level, false) };
        let gone = std::mem::replace(first, last);
        self.count(gone.level, false);
        let mut at = 0;
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let h = &self.heap;
            let next = if right < h.len() && h[right].before(&h[left]) { right } else { left };
            if next >= h.len() || !h[next].before(&h[at]) {
                return;
            }
            self.heap.swap(at, next);
            at = next;
        }
    }
}
