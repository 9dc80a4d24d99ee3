//! A graph of vectors' codes, in which a walk from link to link comes to the nearest ones (HNSW: hierarchical navigable small world).
//!
//! ```text
//! level 2   o - - - - - - - - - o            one node of m^2, m links each at the most
//! level 1   o - - o - - - - o - o - - o      one of m
//! level 0   o-o-o-o-o-o-o-o-o-o-o-o-o-o-o    all, 2 m links each at the most
//!           `--- linked ------------' `-- waiting
//! ```
//!
//! A walk begins at the top, goes to the nearest of the neighbours as long as one is nearer, and then down. On level 0 it keeps the nearest nodes
//! that it has seen, so many as its breadth, and looks at the neighbours of each. How nodes are linked is told in `build`.
//!
//! Codes are those of `hnsw::code`, in memory behind one another; what a walk looks at next is asked for before it is needed.
//!
//! What always holds: links are numbers of nodes that are linked; a node that codes say nothing of is never found. The same nodes in the same order make the same graph on every machine. Which
//! rows nodes stand for, and whether they are still there, is not known here.

use super::code::{BESIDE, Coded};
use super::links::Links;
use crate::dot::{HALF, RUN, Run, nibble_products_at, total, unpack, will_want};
use iolite_base::{Result, alloc};

/// Marks a found node whose neighbours have been looked at. There are fewer nodes.
const DONE: u32 = 1 << 31;
/// Nothing, where numbers of nodes stand.
pub(super) const NONE: u32 = u32::MAX;
/// So many nodes that wait are looked at together.
const GROUP: usize = 256;
/// Nodes and their links.
pub(crate) struct Graph {
    pub(super) runs: usize,
    /// The breadth of the walk that looks for a new node's neighbours.
    pub(super) breadth: usize,
    /// A node's code, scale and square, so many bytes.
    stride: usize,
    nodes: Vec<u8>,
    /// Those of linked nodes.
    pub(super) links: Links,
    /// Where walks begin: a node of the most levels.
    pub(super) entry: u32,
}

/// What a walk is to come near to.
#[derive(Default)]
pub(crate) struct Asked {
    pub runs: Vec<Run<i8>>,
    pub scale: f32,
    /// The square of its length.
    pub square: f32,
    /// What products are too large by.
    pub shift: i32,
}

/// A node and the estimate of the square of its distance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Near {
    pub distance: f32,
    pub node: u32,
}

/// What walks need room for.
#[derive(Default)]
pub(crate) struct Scratch {
    /// The nodes that were found, nearest first.
    pub found: Vec<Near>,
    /// How many there may be, and of how many the estimates may be the same.
    breadth: usize,
    alike: usize,
    /// A hash table of the nodes that were seen.
    seen: Vec<u32>,
    known: usize,
    next: Vec<u32>,
    pub(super) sums: Vec<i32>,
    pub(super) distances: Vec<f32>,
}

impl Scratch {
    /// Begins a walk of a breadth; of rows that are alike so many are wanted.
    pub fn begin(&mut self, breadth: usize, alike: usize) {
        self.found.clear();
        self.breadth = breadth;
        self.alike = alike.max(breadth.div_ceil(2));
        self.seen.clear();
        self.seen.resize((32 * breadth).next_power_of_two(), NONE);
        self.known = 0;
    }

    /// Notes that a node was seen; false: it was seen before.
    #[inline(always)]
    fn see(&mut self, node: u32) -> bool {
        let mask = self.seen.len() - 1;
        let mut at = (node.wrapping_mul(0x9e37_79b1) >> 8) as usize & mask;
        loop {
            match self.seen[at] {
                NONE => break,
                there if there == node => return false,
                _ => at = (at + 1) & mask,
            }
        }
        self.seen[at] = node;
        self.known += 1;
        if 2 * self.known > self.seen.len() {
            let twice = vec![NONE; 2 * self.seen.len()];
            self.known = 0;
            for node in std::mem::replace(&mut self.seen, twice).into_iter().filter(|n| *n != NONE) {
                self.see(node);
            }
        }
        true
    }

    /// Adds what is nearer than the last; answers at which place.
    #[inline(always)]
    fn offer(&mut self, near: Near) -> Option<usize> {
        let last = if self.found.len() < self.breadth { f32::INFINITY } else { self.found.last()?.distance };
        // What is no number is no node that codes say something of.
        if near.distance.partial_cmp(&last) != Some(std::cmp::Ordering::Less) {
            return None;
        }
        // Most are among the last.
        let mut at = self.found.len();
        while at > 0 && self.found[at - 1].distance > near.distance {
            at -= 1;
        }
        // Of those that are alike, not all: they would leave no room for others.
        if at >= self.alike && self.found[at - self.alike].distance == near.distance {
            return None;
        }
        if self.found.len() == self.breadth {
            self.found.pop();
        }
        self.found.insert(at, near);
        Some(at)
    }
}

impl Graph {
    /// One without nodes.
    pub fn new(dimensions: usize, m: usize, breadth: usize) -> Graph {
        let runs = dimensions.div_ceil(RUN);
        Graph {
            runs,
            breadth,
            stride: runs * HALF + BESIDE,
            nodes: Vec::new(),
            links: Links::new(m),
            entry: NONE,
        }
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len() / self.stride
    }

    /// How many of them are linked, or were passed over.
    pub fn linked(&self) -> usize {
        self.links.len()
    }

    /// About how many bytes so many nodes take.
    pub fn bytes(&self, nodes: usize) -> usize {
        nodes * (self.stride + 4 * (self.links.room(0) + 1) + 4 + 8)
    }

    /// Puts links that were stored in the place of none: nodes that are not there yet have nothing to be found until they are
    /// [set](Graph::set).
    pub fn restore(&mut self, links: Links) -> Result<()> {
        let mut nothing = Coded::default();
        nothing.make(&vec![0.0; self.runs * RUN], false);
        self.reserve(links.len())?;
        for _ in 0..links.len() {
            self.push(&nothing)?;
        }
        self.links = links;
        Ok(())
    }

    /// Makes a node that of a vector.
    pub fn set(&mut self, node: usize, coded: &Coded) {
        let (code, beside) = self.nodes[node * self.stride..][..self.stride].split_at_mut(self.runs * HALF);
        code.copy_from_slice(&coded.code);
        beside.copy_from_slice(&coded.beside());
    }

    /// Looks for the node where walks begin, among all that are linked.
    pub fn find_entry(&mut self) {
        let usual = (0..self.linked() as u32).filter(|n| self.is_usual(*n));
        self.entry = usual.max_by_key(|n| (self.levels(*n), u32::MAX - n)).unwrap_or(NONE);
    }

    /// Makes room for more nodes.
    pub fn reserve(&mut self, more: usize) -> Result<()> {
        alloc::reserve(&mut self.nodes, more * self.stride)
    }

    /// Adds a node, which waits.
    pub fn push(&mut self, coded: &Coded) -> Result<()> {
        alloc::reserve(&mut self.nodes, self.stride)?;
        self.nodes.extend_from_slice(&coded.code);
        self.nodes.extend_from_slice(&coded.beside());
        Ok(())
    }

    /// Whether a node is what would be made of this.
    pub fn is(&self, node: usize, coded: &Coded) -> bool {
        let (code, beside) = self.bytes_of(node).split_at(self.runs * HALF);
        *code == coded.code && *beside == coded.beside()
    }

    /// A node's code, with what stands beside it.
    #[inline(always)]
    pub fn bytes_of(&self, node: usize) -> &[u8] {
        &self.nodes[node * self.stride..][..self.stride]
    }

    /// A node's scale and square.
    #[inline(always)]
    pub fn beside(&self, node: u32) -> (f32, f32) {
        Coded::read_beside(&self.nodes[node as usize * self.stride + self.runs * HALF..])
    }

    pub(super) fn is_usual(&self, node: u32) -> bool {
        !self.beside(node).0.is_nan()
    }

    /// A node as something to come near to.
    pub(super) fn asked(&self, node: u32, out: &mut Asked) {
        let (scale, square) = self.beside(node);
        out.runs.resize(self.runs, Run([0; RUN]));
        unpack(self.bytes_of(node as usize), &mut out.runs);
        (out.scale, out.square, out.shift) = (scale, square, 8 * total(&out.runs));
    }

    /// How many links a node has on a level.
    pub fn m(&self) -> usize {
        self.links.m
    }

    /// The links of linked nodes.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// On how many levels above the lowest a linked node is.
    pub(super) fn levels(&self, node: u32) -> usize {
        self.links.levels(node)
    }

    /// Estimates of the squares of nodes' distances.
    pub(super) fn measure(&self, q: &Asked, nodes: &[u32], sums: &mut Vec<i32>, out: &mut Vec<f32>) {
        nibble_products_at((&self.nodes, self.stride), nodes, &q.runs, sums);
        out.clear();
        out.resize(nodes.len(), 0.0);
        for (i, node) in nodes.iter().enumerate() {
            let (scale, square) = self.beside(*node);
            out[i] = q.square + square - 2.0 * q.scale * scale * (sums[i] - q.shift) as f32;
        }
    }

    /// Goes down to a level, always to the nearest; the node there is what was found.
    pub(super) fn descend(&self, q: &Asked, to: usize, s: &mut Scratch) {
        let mut best = Near { distance: f32::INFINITY, node: self.entry };
        self.measure(q, &[self.entry], &mut s.sums, &mut s.distances);
        best.distance = s.distances[0];
        for level in (to + 1..=self.levels(self.entry)).rev() {
            loop {
                let links = self.links.of(best.node, level);
                links.iter().for_each(|n| will_want(self.bytes_of(*n as usize)));
                self.measure(q, links, &mut s.sums, &mut s.distances);
                let before = best.node;
                for (node, distance) in links.iter().zip(&s.distances) {
                    if *distance < best.distance {
                        best = Near { distance: *distance, node: *node };
                    }
                }
                if best.node == before {
                    break;
                }
            }
        }
        s.found.push(best);
    }

    /// Looks at the neighbours of all that is found, until none is nearer.
    pub(super) fn walk(&self, q: &Asked, level: usize, s: &mut Scratch) {
        for at in 0..s.found.len() {
            s.see(s.found[at].node);
        }
        let mut at = 0;
        while let Some(here) = s.found.get_mut(at) {
            at += 1;
            if here.node & DONE != 0 {
                continue;
            }
            let node = here.node;
            here.node |= DONE;
            let mut next = std::mem::take(&mut s.next);
            next.clear();
            for n in self.links.of(node, level) {
                if s.see(*n) {
                    will_want(self.bytes_of(*n as usize));
                    next.push(*n);
                }
            }
            if let Some(after) = s.found.get(at).filter(|_| level == 0) {
                will_want(self.links.all_lowest(after.node & !DONE));
            }
            let mut distances = std::mem::take(&mut s.distances);
            self.measure(q, &next, &mut s.sums, &mut distances);
            for (node, distance) in next.iter().zip(&distances) {
                if let Some(place) = s.offer(Near { distance: *distance, node: *node }) {
                    at = at.min(place);
                }
            }
            (s.next, s.distances) = (next, distances);
        }
        s.found.iter_mut().for_each(|f| f.node &= !DONE);
    }

    /// Finds the nearest of the linked nodes, about as many as the walk that was [begun](Scratch::begin) is broad.
    pub fn nearest(&self, q: &Asked, s: &mut Scratch) {
        if self.entry != NONE {
            self.descend(q, 0, s);
            self.walk(q, 0, s);
        }
    }

    /// Adds those that wait, as far as they are near.
    pub fn nearest_waiting(&self, q: &Asked, s: &mut Scratch) {
        let (mut next, mut distances) = (std::mem::take(&mut s.next), std::mem::take(&mut s.distances));
        for from in (self.linked()..self.len()).step_by(GROUP) {
            next.clear();
            next.extend(from as u32..self.len().min(from + GROUP) as u32);
            self.measure(q, &next, &mut s.sums, &mut distances);
            for (node, distance) in next.iter().zip(&distances) {
                s.offer(Near { distance: *distance, node: *node });
            }
        }
        (s.next, s.distances) = (next, distances);
    }
}
