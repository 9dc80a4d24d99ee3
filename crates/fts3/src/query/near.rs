//! `NEAR`: of phrases in a row, the places that are near those of their neighbours.

/// A chain of phrases: their numbers of tokens, and how many tokens may stand between each and the one before.
pub(super) struct Chain<'a> {
    pub sizes: &'a [i64],
    pub distances: &'a [i64],
}

/// Keeps the places that are near one of `to`.
fn trim(places: &mut Vec<u64>, size: i64, to: &[u64], to_size: i64, distance: i64) {
    // A place's column is above its position: nothing is near beyond a column's end.
    let near = |p: &u64| {
        let from = p.saturating_sub((distance + size) as u64).max(*p >> 32 << 32);
        let until = p.saturating_add((distance + to_size) as u64).min(*p | 0xffff_ffff);
        let at = to.partition_point(|t| *t < from);
        to[at..].iter().take_while(|t| **t <= until).any(|t| t != p)
    };
    places.retain(near);
}

impl Chain<'_> {
    /// Leaves in each list what is near; false: nothing is, and the lists mean nothing.
    pub fn trim(&self, lists: &mut [Vec<u64>]) -> bool {
        let n = lists.len();
        for i in 1..n {
            let (before, rest) = lists.split_at_mut(i);
            trim(&mut rest[0], self.sizes[i], &before[i - 1], self.sizes[i - 1], self.distances[i - 1]);
            if rest[0].is_empty() {
                return false;
            }
        }
        for i in (0..n - 1).rev() {
            let (before, rest) = lists.split_at_mut(i + 1);
            trim(&mut before[i], self.sizes[i], &rest[0], self.sizes[i + 1], self.distances[i]);
            if before[i].is_empty() {
                return false;
            }
        }
        true
    }
}
