//! The format of nodes and cells, and the arithmetic of boxes.
//!
//! ```text
//! node   depth (u16, of the root only) | count of cells (u16) | cells | nothing meant, to the node's size
//! cell   id (i64) | smallest and largest coordinate (4 bytes each), for each dimension
//! ```
//!
//! All is big-endian. The id of a cell is the entry's rowid in a leaf, the child's number elsewhere. Coordinates are 32-bit
//! reals or integers, both of which an `f64` holds as they are. It does not know where nodes are kept.

use iolite_base::{Code, Result};

/// How many dimensions a tree may have.
pub(crate) const MOST_DIMENSIONS: usize = 5;
/// How many cells a node has at most, where the page would have room for more.
pub(crate) const MOST_CELLS: usize = 51;
/// A root that claims more levels is damaged.
pub(crate) const MOST_DEPTH: u16 = 40;
/// A smaller root is damaged.
pub(crate) const LEAST_NODE: i64 = 512 - 64;
/// The root's number.
pub(crate) const ROOT: i64 = 1;

const HEADER: usize = 4;

/// What coordinates are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CoordKind {
    Real,
    Int,
}

/// What the nodes of a tree look like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub dimensions: usize,
    pub kind: CoordKind,
    pub node_size: usize,
}

/// A cell: an id and its box, smallest and largest coordinate in turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub id: i64,
    pub bounds: [f64; 2 * MOST_DIMENSIONS],
}

/// The depth that a root has written down.
pub(crate) fn depth(node: &[u8]) -> u16 {
    node.first_chunk().map_or(0, |b| u16::from_be_bytes(*b))
}

/// How many cells a node has.
pub(crate) fn count(node: &[u8]) -> usize {
    node.get(2..4).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]) as usize)
}

pub(crate) fn set_depth(node: &mut [u8], depth: u16) {
    node[..2].copy_from_slice(&depth.to_be_bytes());
}

fn set_count(node: &mut [u8], count: usize) {
    node[2..4].copy_from_slice(&(count as u16).to_be_bytes());
}

impl Layout {
    /// The size of nodes in a database with this page size.
    pub fn node_size_for(dimensions: usize, page_size: i64) -> usize {
        let full = HEADER + MOST_CELLS * (8 + 8 * dimensions);
        usize::try_from(page_size - 64).unwrap_or(0).min(full)
    }

    pub fn cell_size(&self) -> usize {
        8 + 8 * self.dimensions
    }

    /// How many cells fit into a node.
    pub fn capacity(&self) -> usize {
        (self.node_size - HEADER) / self.cell_size()
    }

    /// A node with fewer cells is dissolved.
    pub fn least(&self) -> usize {
        self.capacity() / 3
    }

    /// Whether bytes are a node.
    pub fn check(&self, node: &[u8]) -> Result<()> {
        if node.len() != self.node_size || count(node) > self.capacity() {
            return Err(Code::CorruptVtab.into());
        }
        Ok(())
    }

    fn place(&self, n: usize) -> usize {
        HEADER + n * self.cell_size()
    }

    /// The id of cell `n`, which must be there.
    pub fn id(&self, node: &[u8], n: usize) -> i64 {
        let at = self.place(n);
        node[at..].first_chunk().map_or(0, |b| i64::from_be_bytes(*b))
    }

    /// Which cell has this id.
    pub fn position(&self, node: &[u8], id: i64) -> Result<usize> {
        let found = (0..count(node)).find(|n| self.id(node, *n) == id);
        found.ok_or_else(|| Code::CorruptVtab.into())
    }

    /// Coordinate `k` of cell `n`.
    pub fn coordinate(&self, node: &[u8], n: usize, k: usize) -> f64 {
        let at = self.place(n) + 8 + 4 * k;
        let b: [u8; 4] = node[at..].first_chunk().copied().unwrap_or_default();
        match self.kind {
            CoordKind::Real => f32::from_be_bytes(b) as f64,
            CoordKind::Int => i32::from_be_bytes(b) as f64,
        }
    }

    /// Cell `n`.
    pub fn cell(&self, node: &[u8], n: usize) -> Cell {
        let mut bounds = [0.0; 2 * MOST_DIMENSIONS];
        for (k, v) in bounds[..2 * self.dimensions].iter_mut().enumerate() {
            *v = self.coordinate(node, n, k);
        }
        Cell { id: self.id(node, n), bounds }
    }

    /// Puts a cell where one is.
    pub fn put(&self, node: &mut [u8], n: usize, cell: &Cell) {
        let at = self.place(n);
        node[at..at + 8].copy_from_slice(&cell.id.to_be_bytes());
        for (k, v) in cell.bounds[..2 * self.dimensions].iter().enumerate() {
            let b = match self.kind {
                CoordKind::Real => (*v as f32).to_be_bytes(),
                CoordKind::Int => (*v as i32).to_be_bytes(),
            };
            node[at + 8 + 4 * k..][..4].copy_from_slice(&b);
        }
    }

    /// Adds a cell; false: the node is full.
    pub fn push(&self, node: &mut [u8], cell: &Cell) -> bool {
        let n = count(node);
        if n >= self.capacity() {
            return false;
        }
        self.put(node, n, cell);
        set_count(node, n + 1);
        true
    }

    /// Takes a cell out; those behind it move up, and what stood last stays behind the end.
    pub fn remove(&self, node: &mut [u8], n: usize) {
        let last = count(node);
        node.copy_within(self.place(n + 1)..self.place(last), self.place(n));
        set_count(node, last - 1);
    }

    /// The length of each side, from the last dimension to the first, as it is computed with the coordinates' own precision.
    fn sides<'a>(&'a self, c: &'a Cell) -> impl Iterator<Item = f64> + 'a {
        c.bounds[..2 * self.dimensions].chunks(2).rev().map(|d| match self.kind {
            CoordKind::Real => (d[1] as f32 - d[0] as f32) as f64,
            CoordKind::Int => d[1] - d[0],
        })
    }

    /// The area of a box, or its volume.
    pub fn area(&self, c: &Cell) -> f64 {
        self.sides(c).fold(1.0, |area, side| area * side)
    }

    /// The sum of a box's sides.
    pub fn margin(&self, c: &Cell) -> f64 {
        c.bounds[..2 * self.dimensions].chunks(2).rev().fold(0.0, |sum, d| sum + (d[1] - d[0]))
    }

    /// Makes `c` so large that it has `other` in it. Of equals, which zeros of both signs are, that of `other` is taken.
    pub fn unite(&self, c: &mut Cell, other: &Cell) {
        for (k, v) in c.bounds[..2 * self.dimensions].iter_mut().enumerate() {
            let keep = if k % 2 == 0 { *v < other.bounds[k] } else { *v > other.bounds[k] };
            if !keep {
                *v = other.bounds[k];
            }
        }
    }

    /// How much larger `c` becomes by `other`.
    pub fn growth(&self, c: &Cell, other: &Cell) -> f64 {
        let mut both = *c;
        self.unite(&mut both, other);
        self.area(&both) - self.area(c)
    }

    /// Whether `inner` lies in `c`.
    pub fn contains(&self, c: &Cell, inner: &Cell) -> bool {
        (0..2 * self.dimensions)
            .step_by(2)
            .all(|k| !(inner.bounds[k] < c.bounds[k] || inner.bounds[k + 1] > c.bounds[k + 1]))
    }

    /// The area that two boxes have in common.
    pub fn overlap(&self, a: &Cell, b: &Cell) -> f64 {
        let mut area = 1.0;
        for k in (0..2 * self.dimensions).step_by(2) {
            let low = if a.bounds[k] > b.bounds[k] { a.bounds[k] } else { b.bounds[k] };
            let high = if a.bounds[k + 1] < b.bounds[k + 1] { a.bounds[k + 1] } else { b.bounds[k + 1] };
            if high < low {
                return 0.0;
            }
            area *= high - low;
        }
        area
    }
}

/// The largest 32-bit real that is not above `v`, or one step below it; coordinates are rounded so that boxes only grow.
pub(crate) fn rounded_down(v: f64) -> f64 {
    let near = v as f32;
    if near as f64 <= v { near as f64 } else { (v * (1.0 - STEP * v.signum())) as f32 as f64 }
}

/// The smallest 32-bit real that is not below `v`, or one step above it.
pub(crate) fn rounded_up(v: f64) -> f64 {
    let near = v as f32;
    if near as f64 >= v { near as f64 } else { (v * (1.0 + STEP * v.signum())) as f32 as f64 }
}

const STEP: f64 = 1.0 / 8388608.0;
