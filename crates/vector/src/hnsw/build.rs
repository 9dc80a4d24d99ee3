//! How the nodes of a graph are linked.
//!
//! ```text
//! some of those that wait --> each looks for its neighbours (threads) --> one after the other is linked, both ways
//! ```
//!
//! A walk finds what is near; of that a node is linked to those that are not nearer to one another than to it: so links lead in all directions. Each
//! of them is linked back, and chooses anew where that makes too many.
//!
//! What always holds: the graph is the same however many threads look.

use super::graph::{Asked, Graph, NONE, Near, Scratch};
use super::links::MOST_LEVELS;
use crate::dot::will_want;
use crate::ivf::draw;
use iolite_base::{Code, Result};
use iolite_os::background::without_signals;
use std::collections::VecDeque;

/// One node of so many, and no more than so many, are linked at once.
const TOGETHER: usize = 32;
const AT_ONCE: usize = 1024;
/// A thread looks for the neighbours of so many nodes at the least.
const FEW: usize = 64;

impl Graph {
    /// The neighbours of something, chosen from nodes by their distance from it. Those that are where it is itself say nothing of others: they
    /// are a quarter at the most.
    fn choose(&self, from: &[Near], most: usize, asked: &mut Asked, s: &mut Scratch) -> Vec<u32> {
        // Those that are elsewhere, and those that are not.
        let (mut apart, mut same): (Vec<u32>, Vec<u32>) = (Vec::with_capacity(most), Vec::new());
        for near in from {
            if apart.len() + same.len() == most {
                break;
            }
            if near.distance <= 0.0 {
                if same.len() < most.div_ceil(4) {
                    same.push(near.node);
                }
                continue;
            }
            self.asked(near.node, asked);
            self.measure(asked, &apart, &mut s.sums, &mut s.distances);
            if s.distances.iter().all(|d| *d > near.distance) {
                apart.push(near.node);
            }
        }
        same.append(&mut apart);
        same
    }

    /// Leads links around nodes that are gone: whoever had one of them as a neighbour gets the neighbours of that, and its children.
    pub fn bridge(&mut self, is_gone: impl Fn(u32) -> bool, s: &mut Scratch) {
        let mut asked = Asked::default();
        for node in (0..self.linked() as u32).filter(|n| !is_gone(*n)) {
            for level in 0..=self.levels(node) {
                let own = self.links.of(node, level);
                if !own.iter().any(|n| is_gone(*n)) {
                    continue;
                }
                let (mut children, others) = own.split_at(self.links.children(node, level));
                let (mut kept, mut near) = (Vec::new(), others.to_vec());
                // Children of children that are gone, and so on.
                let mut left = children.to_vec();
                while let Some(child) = left.pop() {
                    if !is_gone(child) {
                        kept.push(child);
                        continue;
                    }
                    (children, _) = self.links.of(child, level).split_at(self.links.children(child, level));
                    left.extend_from_slice(children);
                    near.extend_from_slice(self.links.of(child, level));
                }
                for gone in others.iter().filter(|n| is_gone(**n)) {
                    near.extend_from_slice(self.links.of(*gone, level));
                }
                kept.truncate(self.links.room(level));
                near.retain(|n| *n != node && !is_gone(*n) && !kept.contains(n));
                near.sort_unstable();
                near.dedup();
                self.asked(node, &mut asked);
                self.set_nearest(node, level, (&kept, &near), &mut asked, s);
            }
        }
    }

    /// Sets the links of a node, which is what is asked for: to children, and to others that are chosen.
    fn set_nearest(
        &mut self,
        node: u32,
        level: usize,
        (children, others): (&[u32], &[u32]),
        asked: &mut Asked,
        s: &mut Scratch,
    ) {
        others.iter().for_each(|n| will_want(self.bytes_of(*n as usize)));
        let mut distances = std::mem::take(&mut s.distances);
        self.measure(asked, others, &mut s.sums, &mut distances);
        let near = |(node, distance): (&u32, &f32)| Near { distance: *distance, node: *node };
        let mut near: Vec<Near> = others.iter().zip(&distances).map(near).collect();
        s.distances = distances;
        near.sort_by(|a, b| a.distance.total_cmp(&b.distance));
        let chosen = self.choose(&near, self.links.room(level) - children.len(), asked, s);
        self.links.set(node, level, &[children, &chosen].concat(), children.len());
    }

    /// How many levels a node gets.
    fn drawn_levels(&self, node: u32) -> usize {
        let mut seed = (u64::from(node) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (0..MOST_LEVELS).take_while(|_| draw(&mut seed, self.links.m) == 0).count()
    }

    /// Makes the first node that waits one without links: there is nothing to be found.
    fn pass_over(&mut self) -> Result<()> {
        self.links.add(0).map(|_| ())
    }

    /// Links some of the nodes that wait, `most` at the most: the first ones, but for those that are to be passed over. Few are linked at once while
    /// few are linked, since they do not see one another; and the same number however many threads there are.
    pub fn link(
        &mut self,
        most: usize,
        threads: usize,
        pass_over: impl Fn(u32) -> bool,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let first = self.linked();
        let n = (first / TOGETHER + 1).min(most).min(AT_ONCE).min(self.len() - first);
        let all = first as u32..(first + n) as u32;
        let nodes: Vec<u32> = all.clone().filter(|n| self.is_usual(*n) && !pass_over(*n)).collect();
        let mut neighbours = self.look(&nodes, threads, scratch).into_iter();
        let mut nodes = nodes.into_iter().peekable();
        for node in all {
            if nodes.next_if_eq(&node).is_some() {
                self.join(node, &neighbours.next().unwrap_or_default(), scratch)?;
            } else {
                self.pass_over()?;
            }
        }
        Ok(())
    }

    /// The neighbours that nodes are to have, by level, the lowest first.
    fn look(&self, nodes: &[u32], threads: usize, scratch: &mut Scratch) -> Vec<Vec<Vec<u32>>> {
        let own = |nodes: &[u32], s: &mut Scratch| -> Vec<_> {
            nodes.iter().map(|node| self.neighbours(*node, s)).collect()
        };
        let threads = threads.min(nodes.len() / FEW).max(1);
        let mut parts = nodes.chunks(nodes.len().div_ceil(threads).max(1));
        let mine = parts.next().unwrap_or_default();
        std::thread::scope(|scope| {
            let mut running = Vec::new();
            for part in parts {
                let work = move || own(part, &mut Scratch::default());
                let named = std::thread::Builder::new().name("iolite-graph".into());
                running.push((part, without_signals(|| named.spawn_scoped(scope, work))));
            }
            let mut all = own(mine, scratch);
            for (part, thread) in running {
                // Where no thread can be had, this one does its work.
                let done = thread.ok().and_then(|t| t.join().ok());
                all.extend(done.unwrap_or_else(|| own(part, scratch)));
            }
            all
        })
    }

    /// The neighbours of one.
    fn neighbours(&self, node: u32, s: &mut Scratch) -> Vec<Vec<u32>> {
        if self.entry == NONE {
            return Vec::new();
        }
        let mut asked = Asked::default();
        let mut other = Asked::default();
        self.asked(node, &mut asked);
        let levels = self.drawn_levels(node).min(self.levels(self.entry));
        let mut all = vec![Vec::new(); levels + 1];
        s.begin(self.breadth, 1);
        self.descend(&asked, levels, s);
        for level in (0..=levels).rev() {
            let from = std::mem::take(&mut s.found);
            s.begin(self.breadth, 1);
            s.found = from;
            self.walk(&asked, level, s);
            let from = std::mem::take(&mut s.found);
            all[level] = self.choose(&from, self.links.m, &mut other, s);
            s.found = from;
        }
        all
    }

    /// Links the first node that waits with its neighbours on each level.
    fn join(&mut self, node: u32, neighbours: &[Vec<u32>], s: &mut Scratch) -> Result<()> {
        let levels = self.drawn_levels(node);
        if !self.links.add(levels)? {
            return Err(Code::Nomem.into());
        }
        let mut other = Asked::default();
        for (level, chosen) in neighbours.iter().enumerate() {
            self.links.set(node, level, chosen, 0);
            if level == 0 {
                chosen.iter().for_each(|n| will_want(self.links.all_lowest(*n)));
            }
            let parent = if level == 0 { self.parent(chosen) } else { None };
            for near in chosen {
                self.link_back(*near, (node, parent == Some(*near)), level, &mut other, s);
            }
            if let Some(parent) = parent.filter(|p| !chosen.contains(p)) {
                self.link_back(parent, (node, true), level, &mut other, s);
            }
        }
        if self.entry == NONE || levels > self.levels(self.entry) {
            self.entry = node;
        }
        Ok(())
    }

    /// The parent of a node with these neighbours: the nearest of them with room for a child, or else of their descendants, of which some have none.
    fn parent(&self, neighbours: &[u32]) -> Option<u32> {
        let mut line: VecDeque<u32> = neighbours.iter().copied().collect();
        while let Some(node) = line.pop_front() {
            let children = self.links.children(node, 0);
            if children < self.links.m / 2 {
                return Some(node);
            }
            line.extend(&self.links.of(node, 0)[..children]);
        }
        None
    }

    /// Adds a link, to a child or another, and chooses anew where they are too many.
    fn link_back(
        &mut self,
        node: u32,
        (to, is_child): (u32, bool),
        level: usize,
        asked: &mut Asked,
        s: &mut Scratch,
    ) {
        let mut all = self.links.of(node, level).to_vec();
        let mut children = self.links.children(node, level);
        if is_child {
            all.insert(children, to);
            children += 1;
        } else {
            all.push(to);
        }
        if all.len() > self.links.room(level) {
            self.asked(node, asked);
            self.set_nearest(node, level, all.split_at(children), asked, s);
        } else {
            self.links.set(node, level, &all, children);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::code::Coded;
    use super::*;
    use crate::ivf::draw;

    /// A graph of vectors around some places; of each of the first ones there are several.
    fn made(m: usize, alike: usize, threads: usize) -> Graph {
        let (mut seed, mut graph) = (1, Graph::new(24, m, 40));
        let mut centres = vec![0f32; 20 * 24];
        centres.iter_mut().for_each(|c| *c = draw(&mut seed, 1000) as f32 / 250.0);
        let (mut coded, mut s) = (Coded::default(), Scratch::default());
        for n in 0..1500 {
            let c = &centres[24 * draw(&mut seed, 20)..][..24];
            let x: Vec<f32> = c.iter().map(|c| c + draw(&mut seed, 2000) as f32 / 1000.0).collect();
            coded.make(&x, true);
            for _ in 0..if n < 20 { alike } else { 1 } {
                graph.push(&coded).unwrap();
            }
        }
        while graph.linked() < graph.len() {
            graph.link(usize::MAX, threads, |_| false, &mut s).unwrap();
        }
        graph
    }

    /// How many nodes of the lowest level links lead to.
    fn reached(graph: &Graph, from: u32) -> usize {
        let (mut seen, mut left) = (vec![false; graph.linked()], vec![from]);
        seen[from as usize] = true;
        while let Some(node) = left.pop() {
            for to in graph.links().of(node, 0) {
                if !std::mem::replace(&mut seen[*to as usize], true) {
                    left.push(*to);
                }
            }
        }
        seen.into_iter().filter(|s| *s).count()
    }

    #[test]
    fn every_node_can_be_come_to() {
        for (m, alike) in [(2, 1), (4, 1), (16, 1), (4, 50), (16, 100), (4, 400)] {
            let graph = made(m, alike, 1);
            assert_eq!(reached(&graph, 0), graph.len(), "{m}, {alike}");
        }
    }

    #[test]
    fn threads_make_the_same_graph() {
        let (one, three) = (made(8, 3, 1), made(8, 3, 3));
        for node in 0..one.len() as u32 {
            assert_eq!(one.levels(node), three.levels(node));
            for level in 0..=one.levels(node) {
                assert_eq!(one.links().of(node, level), three.links().of(node, level));
            }
        }
    }
}
