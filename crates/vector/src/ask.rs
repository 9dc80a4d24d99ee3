//! What an index of a column is asked for, and the rows that it finds.
//!
//! What always holds: which rows are measured is the index's matter; a distance that is answered is that of the vector as it is stored.

use crate::found::{Found, keep};
use crate::kernel::{LANES, Metric, Query};
use crate::store::Place;
use iolite_base::Result;
use std::collections::BinaryHeap;

/// Whether a row may be found, of a table of so many; none: asking for more costs as much as a scan.
pub(crate) type Filter<'a> = dyn FnMut(Place, usize) -> Result<Option<bool>> + 'a;

/// What is looked for.
pub(crate) struct Ask<'a> {
    pub column: usize,
    pub query: &'a Query<'a>,
    pub k: usize,
    /// How much is to be looked at, in the index's own measure, if the query says it.
    pub effort: Option<usize>,
    pub filter: Option<&'a mut Filter<'a>>,
    /// Whether a distance is one that is wanted.
    pub holds: &'a dyn Fn(f64) -> bool,
    /// No smaller distance is wanted.
    pub least: f64,
}

/// A row that is to be measured, with its vector.
pub(crate) struct Row {
    pub place: Place,
    pub rowid: i64,
    pub vector: Vec<u8>,
}

/// A distance in the measure of estimates, which are squares.
pub(crate) fn square(metric: Metric, d: f64) -> f32 {
    match metric {
        Metric::Cosine => 2.0 * d as f32,
        _ => (d * d.abs()) as f32,
    }
}

/// The nearest rows so far.
#[derive(Default)]
pub(crate) struct Nearest {
    heap: BinaryHeap<Found>,
    /// Whether a row of a [group](Nearest::measure_group) was farther away than any that is wanted.
    pub beyond: bool,
}

impl Nearest {
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// The greatest of the distances that were found, in the measure of estimates, with what rounding may hide; endless while there are
    /// fewer than wanted.
    pub fn worst(&self, metric: Metric, k: usize) -> f32 {
        let worst = self.heap.peek().filter(|_| self.heap.len() == k);
        let d = square(metric, worst.map_or(f64::INFINITY, |f| f.distance));
        if d.is_nan() { f32::INFINITY } else { d * 1.000_01 + 1e-6 }
    }

    /// Measures a row.
    pub fn measure(&mut self, ask: &Ask<'_>, place: Place, rowid: i64, vector: &[u8]) {
        self.add(ask, place, rowid, ask.query.distance(vector));
    }

    /// Measures some rows together, which come by their nearness.
    pub fn measure_group(&mut self, ask: &Ask<'_>, group: &[Option<Row>; LANES]) {
        let first = group[0].as_ref().map_or(&[][..], |g| &g.vector);
        let vectors = std::array::from_fn(|i| group[i].as_ref().map_or(first, |g| &g.vector[..]));
        for (row, distance) in group.iter().zip(ask.query.distances(vectors)) {
            if let Some(row) = row {
                let added = self.add(ask, row.place, row.rowid, distance);
                self.beyond |= !added && distance >= ask.least;
            }
        }
    }

    /// Adds a row; false: its distance is none that is wanted.
    fn add(&mut self, ask: &Ask<'_>, place: Place, rowid: i64, distance: f64) -> bool {
        let holds = (ask.holds)(distance);
        if holds {
            keep(&mut self.heap, ask.k, Found { distance, rowid, place });
        }
        holds
    }

    /// The rows, nearest first.
    pub fn into_sorted(self) -> Vec<Found> {
        self.heap.into_sorted_vec()
    }
}
