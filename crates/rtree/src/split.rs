//! How the cells of a full node are shared out to two: the R*-tree's split.
//!
//! The cells are sorted along each dimension. The dimension is taken whose divisions have the smallest sum of margins, and in it
//! the division whose halves overlap least, then the one with the smallest area.

use crate::layout::{Cell, Layout};

/// The cells of the two nodes, in the order in which they are written, with their boxes (without ids).
pub(crate) struct Halves {
    pub left: Vec<Cell>,
    pub left_box: Cell,
    pub right: Vec<Cell>,
    pub right_box: Cell,
}

/// The numbers of cells in their order along a dimension; of equals the later one comes first.
fn sorted(cells: &[Cell], dimension: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..cells.len()).rev().collect();
    // Adding 0 makes both zeros the same.
    let key = |n: usize, k: usize| cells[n].bounds[2 * dimension + k] + 0.0;
    order.sort_by(|a, b| key(*a, 0).total_cmp(&key(*b, 0)).then_with(|| key(*a, 1).total_cmp(&key(*b, 1))));
    order
}

/// The box around cells, of which there is one at least.
fn around(layout: &Layout, cells: &[Cell], order: &[usize]) -> Cell {
    let mut all = cells[order[0]];
    for n in &order[1..] {
        layout.unite(&mut all, &cells[*n]);
    }
    all
}

/// The boxes around the first cells, for each number of them from 1, and around the rest behind them.
fn prefixes(layout: &Layout, cells: &[Cell], order: impl Iterator<Item = usize>) -> Vec<Cell> {
    let mut out: Vec<Cell> = Vec::with_capacity(cells.len());
    for n in order {
        let mut next = cells[n];
        if let Some(last) = out.last() {
            next = *last;
            layout.unite(&mut next, &cells[n]);
        }
        out.push(next);
    }
    out
}

/// Divides cells, of which there are more than `layout.least()` twice.
pub(crate) fn divide(layout: &Layout, cells: &[Cell]) -> Halves {
    let least = layout.least().max(1);
    let mut best: Option<(f64, Vec<usize>, usize)> = None;
    for dimension in 0..layout.dimensions {
        let order = sorted(cells, dimension);
        let firsts = prefixes(layout, cells, order.iter().copied());
        let lasts = prefixes(layout, cells, order.iter().rev().copied());
        let mut margins = 0.0;
        let mut chosen: Option<(f64, f64, usize)> = None;
        for n in least..=cells.len() - least {
            let (left, right) = (&firsts[n - 1], &lasts[cells.len() - n - 1]);
            margins += layout.margin(left);
            margins += layout.margin(right);
            let overlap = layout.overlap(left, right);
            let area = layout.area(left) + layout.area(right);
            let better = chosen.is_none_or(|(o, a, _)| overlap < o || overlap == o && area < a);
            if better {
                chosen = Some((overlap, area, n));
            }
        }
        let n = chosen.map_or(least, |c| c.2);
        if best.as_ref().is_none_or(|b| margins < b.0) {
            best = Some((margins, order, n));
        }
    }
    let (_, order, n) = best.unwrap_or((0.0, (0..cells.len()).collect(), least));
    let (left, right) = order.split_at(n);
    let taken = |part: &[usize]| part.iter().map(|n| cells[*n]).collect();
    Halves {
        left: taken(left),
        left_box: around(layout, cells, left),
        right: taken(right),
        right_box: around(layout, cells, right),
    }
}
