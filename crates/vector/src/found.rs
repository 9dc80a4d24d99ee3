//! Rows that a search has found, and the order of their distances: a distance that is no number comes last, rows of one distance by rowid.

use crate::store::Place;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A row that was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub distance: f64,
    pub rowid: i64,
    pub place: Place,
}

impl Ord for Found {
    fn cmp(&self, other: &Found) -> Ordering {
        let nan = self.distance.is_nan().cmp(&other.distance.is_nan());
        let near = self.distance.partial_cmp(&other.distance).unwrap_or(Ordering::Equal);
        nan.then(near).then(self.rowid.cmp(&other.rowid))
    }
}

impl PartialOrd for Found {
    fn partial_cmp(&self, other: &Found) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Found {
    fn eq(&self, other: &Found) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Found {}

/// Adds a row to the `k` nearest, if it is one of them.
pub(crate) fn keep(heap: &mut BinaryHeap<Found>, k: usize, found: Found) {
    if heap.len() < k {
        heap.push(found);
    } else if heap.peek().is_some_and(|worst| found < *worst) {
        heap.pop();
        heap.push(found);
    }
}
