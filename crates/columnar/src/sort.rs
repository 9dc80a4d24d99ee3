//! Sorting, once for all: of the standard library's sorts each kind of element costs some kilobytes of code.

pub(crate) use iolite_value::order::{by_number, first_bytes};
use std::cmp::Ordering;

/// Sorts places by their numbers, and where these are equal by comparison of the places; places that are equal even so stay
/// as they are numbered.
#[inline(never)]
pub(crate) fn by_order(list: &mut [(u64, u32)], order: &dyn Fn(u32, u32) -> Ordering) {
    list.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| order(a.1, b.1)).then_with(|| a.1.cmp(&b.1)));
}

/// Sorts a list that is short, or nearly in order.
pub(crate) fn few<T>(list: &mut [T], mut behind: impl FnMut(&T, &T) -> bool) {
    for i in 1..list.len() {
        let mut at = i;
        while at > 0 && behind(&list[at - 1], &list[at]) {
            list.swap(at - 1, at);
            at -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_are_ordered_by_comparison_then_by_place() {
        let texts = ["b", "a", "b", "c"];
        let mut at = [(1, 3), (0, 2), (1, 1), (1, 0), (0, 0)];
        by_order(&mut at, &|x, y| texts[x as usize].cmp(texts[y as usize]));
        assert_eq!(at, [(0, 0), (0, 2), (1, 1), (1, 0), (1, 3)]);
        let mut list = [(2, 'a'), (1, 'b'), (2, 'c'), (0, 'd'), (1, 'e')];
        few(&mut list, |a, b| a.0 > b.0);
        assert_eq!(list, [(0, 'd'), (1, 'b'), (1, 'e'), (2, 'a'), (2, 'c')]);
    }
}
