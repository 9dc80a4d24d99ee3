//! The links of a graph's nodes.
//!
//! ```text
//! a list:   how many, how many of them are children | children ... | others ... | room
//! ```
//!
//! A node is the child of the nearest of its first neighbours on the lowest level, whose link to it stays: so each node can be come to.
//!
//! What always holds: a node has a list on each of its levels, and no list is longer than its room. Which nodes they lead to is the
//! graph's matter.

use iolite_base::{Result, alloc};

/// No node is on more levels above the lowest.
pub(crate) const MOST_LEVELS: usize = 12;
/// Upper lists may have so many numbers more than the lowest ones.
const FIRST: usize = 1 << 16;
/// A node that is on the lowest level alone.
const LOW: u32 = u32::MAX;
/// Where the number of children begins in that of links.
const CHILDREN: u32 = 16;

/// The links of nodes.
#[derive(Default)]
pub(crate) struct Links {
    pub m: usize,
    /// On the lowest level: how many links, and room for 2 m of them.
    lowest: Vec<u32>,
    /// Where a node's part of `upper` begins.
    starts: Vec<u32>,
    /// On how many levels a node is above the lowest; for each how many links, and room for m of them.
    upper: Vec<u32>,
}

impl Links {
    pub fn new(m: usize) -> Links {
        Links { m, ..Links::default() }
    }

    /// Adds a node that is on so many levels above the lowest; false: these are too many, for one or for all together. (Of nodes as they are drawn, upper
    /// lists have less than the lowest, but for the first ones.)
    pub fn add(&mut self, levels: usize) -> Result<bool> {
        let room = if levels == 0 { 0 } else { 1 + levels * (self.m + 1) };
        let most = (self.lowest.len() + FIRST).min(LOW as usize);
        if levels > MOST_LEVELS || self.upper.len() + room > most {
            return Ok(false);
        }
        alloc::reserve(&mut self.lowest, 2 * self.m + 1)?;
        alloc::reserve(&mut self.starts, 1)?;
        alloc::reserve(&mut self.upper, room)?;
        self.lowest.resize(self.lowest.len() + 2 * self.m + 1, 0);
        self.starts.push(if levels == 0 { LOW } else { self.upper.len() as u32 });
        if levels > 0 {
            self.upper.push(levels as u32);
            self.upper.resize(self.upper.len() + room - 1, 0);
        }
        Ok(true)
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// How many links a node has room for.
    pub fn room(&self, level: usize) -> usize {
        if level == 0 { 2 * self.m } else { self.m }
    }

    #[inline(always)]
    pub fn all_lowest(&self, node: u32) -> &[u32] {
        &self.lowest[node as usize * (2 * self.m + 1)..][..2 * self.m + 1]
    }

    #[inline(always)]
    fn above(&self, node: u32, level: usize) -> usize {
        self.starts[node as usize] as usize + 1 + (level - 1) * (self.m + 1)
    }

    /// A node's links on a level, on which it is.
    #[inline(always)]
    pub fn of(&self, node: u32, level: usize) -> &[u32] {
        let all = match level {
            0 => self.all_lowest(node),
            _ => &self.upper[self.above(node, level)..][..self.m + 1],
        };
        &all[1..=(all[0] & ((1 << CHILDREN) - 1)) as usize]
    }

    /// How many of them, the first ones, lead to children.
    pub fn children(&self, node: u32, level: usize) -> usize {
        let (at, list) = match level {
            0 => (node as usize * (2 * self.m + 1), &self.lowest),
            _ => (self.above(node, level), &self.upper),
        };
        (list[at] >> CHILDREN) as usize
    }

    /// Whether links on each level lead to nodes that are on it, and to children that are younger: so that no line of them is endless.
    pub fn are_sound(&self) -> bool {
        let list = |node: u32, level: usize| {
            let list = self.of(node, level);
            list.iter().all(|to| (*to as usize) < self.len() && self.levels(*to) >= level)
                && list[..self.children(node, level)].iter().all(|child| *child > node)
        };
        (0..self.len() as u32).all(|node| (0..=self.levels(node)).all(|level| list(node, level)))
    }

    /// On how many levels above the lowest a node is.
    pub fn levels(&self, node: u32) -> usize {
        match self.starts[node as usize] {
            LOW => 0,
            start => self.upper[start as usize] as usize,
        }
    }

    /// Sets a node's links on a level, on which it is, the first of which lead to children; they are not more than there is room for.
    pub fn set(&mut self, node: u32, level: usize, links: &[u32], children: usize) {
        let (at, list) = match level {
            0 => (node as usize * (2 * self.m + 1), &mut self.lowest),
            _ => (self.above(node, level), &mut self.upper),
        };
        list[at] = links.len() as u32 | (children as u32) << CHILDREN;
        list[at + 1..][..links.len()].copy_from_slice(links);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_astray_are_noticed() {
        let made = |level: usize, links: &[u32], children: usize| {
            let mut l = Links::new(2);
            for levels in [0, 1, 1] {
                assert!(l.add(levels).unwrap());
            }
            l.set(1, level, links, children);
            l.are_sound()
        };
        assert!(made(0, &[2, 0], 1));
        assert!(made(1, &[2], 0));
        assert!(!made(0, &[3], 0));
        assert!(!made(1, &[0], 0));
        assert!(!made(0, &[0, 2], 1));
        assert!(!made(0, &[1], 1));
        let mut l = Links::new(2);
        assert!(!l.add(13).unwrap());
        let added = (0..100_000).take_while(|_| l.add(12).unwrap()).count();
        assert!(added < 10_000, "{added}");
    }
}
