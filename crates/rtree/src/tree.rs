//! Changes of a tree: entries put in and taken out.
//!
//! A [`Tree`] lives for one change. Nodes are read when they are needed, changed here and written at the end; only a new node is
//! written at once, since its number is needed. What always holds: the parent that a node has here has a cell for it, or the
//! tree is damaged; a way from parent to parent has an end.

use crate::layout::{self, Cell, Layout, MOST_DEPTH, ROOT};
use crate::split::{self, Halves};
use crate::store::Store;
use iolite_base::{Code, Result};
use std::collections::BTreeMap;

/// A node at hand.
struct Node {
    bytes: Vec<u8>,
    changed: bool,
    /// Not known of a leaf that was found by an entry; the root has none.
    parent: Option<i64>,
}

/// A node that was dissolved: its cells go back into the tree, at this height above the leaves.
struct Dissolved {
    bytes: Vec<u8>,
    height: u16,
}

/// A tree that is changed.
pub(crate) struct Tree<'a> {
    store: &'a Store,
    layout: Layout,
    nodes: BTreeMap<i64, Node>,
    depth: u16,
    dissolved: Vec<Dissolved>,
}

/// More parents one behind another than a tree can have.
const TOO_FAR: usize = 100;

fn corrupt<T>() -> Result<T> {
    Err(Code::CorruptVtab.into())
}

impl<'a> Tree<'a> {
    pub fn open(store: &'a Store, layout: Layout) -> Result<Tree<'a>> {
        let mut tree = Tree { store, layout, nodes: BTreeMap::new(), depth: 0, dissolved: Vec::new() };
        tree.load(ROOT, None)?;
        tree.depth = layout::depth(&tree.node(ROOT)?.bytes);
        if tree.depth > MOST_DEPTH {
            return corrupt();
        }
        Ok(tree)
    }

    /// Puts an entry in, whose rowid no other entry has.
    pub fn insert(&mut self, cell: &Cell) -> Result<()> {
        let leaf = self.choose(cell, 0)?;
        self.put(leaf, cell, 0)
    }

    /// Takes an entry out, if it is there.
    pub fn delete(&mut self, rowid: i64) -> Result<()> {
        if let Some(leaf) = self.store.leaf_of(rowid)? {
            self.load(leaf, None)?;
            let at = self.layout.position(&self.node(leaf)?.bytes, rowid)?;
            self.take(leaf, at, 0)?;
        }
        self.store.delete_rowid(rowid)?;
        let root = &self.node(ROOT)?.bytes;
        if self.depth > 0 && layout::count(root) == 1 {
            // The only child's cells become the root's.
            let child = self.layout.id(root, 0);
            self.load(child, Some(ROOT))?;
            self.dissolve(child, self.depth - 1)?;
            self.set_depth(self.depth - 1)?;
        }
        while let Some(node) = self.dissolved.pop() {
            for n in 0..layout::count(&node.bytes) {
                let cell = self.layout.cell(&node.bytes, n);
                let into = self.choose(&cell, node.height)?;
                self.put(into, &cell, node.height)?;
            }
        }
        Ok(())
    }

    /// Writes what was changed, the root last.
    pub fn finish(self) -> Result<()> {
        for (number, node) in self.nodes.iter().rev().filter(|n| n.1.changed) {
            self.store.write_node(*number, &node.bytes)?;
        }
        Ok(())
    }

    fn node(&self, number: i64) -> Result<&Node> {
        self.nodes.get(&number).ok_or_else(|| Code::CorruptVtab.into())
    }

    /// A node to be changed.
    fn change(&mut self, number: i64) -> Result<&mut Node> {
        let Some(node) = self.nodes.get_mut(&number) else { return corrupt() };
        node.changed = true;
        Ok(node)
    }

    /// Has a node at hand, whose parent is this one, if that is known.
    fn load(&mut self, number: i64, parent: Option<i64>) -> Result<()> {
        if parent.is_some() && number == ROOT {
            return corrupt();
        }
        if let Some(node) = self.nodes.get_mut(&number) {
            if parent.is_some() && node.parent.is_some() && node.parent != parent {
                return corrupt();
            }
            node.parent = node.parent.or(parent);
            return Ok(());
        }
        let bytes = self.store.node(number)?;
        self.layout.check(&bytes)?;
        self.nodes.insert(number, Node { bytes: bytes.to_vec(), changed: false, parent });
        Ok(())
    }

    fn set_depth(&mut self, depth: u16) -> Result<()> {
        self.depth = depth;
        layout::set_depth(&mut self.change(ROOT)?.bytes, depth);
        Ok(())
    }

    /// The node, at this height above the leaves, that a cell goes into.
    fn choose(&mut self, cell: &Cell, height: u16) -> Result<i64> {
        let mut at = ROOT;
        for _ in height..self.depth {
            let next = self.child_for(at, cell)?;
            self.load(next, Some(at))?;
            at = next;
        }
        Ok(at)
    }

    /// The child that a cell goes into: the smallest that has it in it already; else the one that grows least, then the smallest.
    fn child_for(&self, node: i64, cell: &Cell) -> Result<i64> {
        let (layout, bytes) = (&self.layout, &self.node(node)?.bytes);
        let children = || (0..layout::count(bytes)).map(|n| layout.cell(bytes, n));
        let mut holder: Option<(f64, i64)> = None;
        for child in children().filter(|c| layout.contains(c, cell)) {
            let area = layout.area(&child);
            if holder.is_none_or(|h| area < h.0) {
                holder = Some((area, child.id));
            }
        }
        if let Some((_, id)) = holder {
            return Ok(id);
        }
        let mut best: Option<(f64, f64, i64)> = None;
        for child in children() {
            let (growth, area) = (layout.growth(&child, cell), layout.area(&child));
            if best.is_none_or(|(g, a, _)| growth < g || growth == g && area < a) {
                best = Some((growth, area, child.id));
            }
        }
        best.map(|b| b.2).ok_or_else(|| Code::CorruptVtab.into())
    }

    /// Puts a cell into a node at this height.
    fn put(&mut self, number: i64, cell: &Cell, height: u16) -> Result<()> {
        if height > 0
            && let Some(child) = self.nodes.get_mut(&cell.id)
        {
            child.parent = Some(number);
        }
        let layout = self.layout;
        if !layout.push(&mut self.change(number)?.bytes, cell) {
            return self.split(number, cell, height);
        }
        self.widen(number, cell)?;
        self.remember(cell.id, number, height)
    }

    /// Writes down where a cell is: an entry, or a child.
    fn remember(&mut self, id: i64, node: i64, height: u16) -> Result<()> {
        if height == 0 {
            return self.store.set_leaf(id, node);
        }
        if let Some(child) = self.nodes.get_mut(&id) {
            child.parent = Some(node);
        }
        self.store.set_parent(id, node)
    }

    /// The parent of a node and which of its cells is the node's; `None`: it has no parent.
    fn above(&self, number: i64) -> Result<Option<(i64, usize)>> {
        let Some(parent) = self.node(number)?.parent else { return Ok(None) };
        let at = self.layout.position(&self.node(parent)?.bytes, number)?;
        Ok(Some((parent, at)))
    }

    /// Makes the boxes above a node so large that they have a cell in them.
    fn widen(&mut self, number: i64, cell: &Cell) -> Result<()> {
        let (layout, mut node) = (self.layout, number);
        for _ in 0..=TOO_FAR {
            let Some((parent, at)) = self.above(node)? else { return Ok(()) };
            let mut around = layout.cell(&self.node(parent)?.bytes, at);
            if !layout.contains(&around, cell) {
                layout.unite(&mut around, cell);
                layout.put(&mut self.change(parent)?.bytes, at, &around);
            }
            node = parent;
        }
        corrupt()
    }

    /// Makes the boxes above a node fit what they have in them.
    fn tighten(&mut self, number: i64) -> Result<()> {
        let (layout, mut node) = (self.layout, number);
        for _ in 0..=TOO_FAR {
            let Some((parent, at)) = self.above(node)? else { return Ok(()) };
            let bytes = &self.node(node)?.bytes;
            let mut around = layout.cell(bytes, 0);
            for n in 1..layout::count(bytes) {
                layout.unite(&mut around, &layout.cell(bytes, n));
            }
            around.id = node;
            layout.put(&mut self.change(parent)?.bytes, at, &around);
            node = parent;
        }
        corrupt()
    }

    /// Puts a cell into a node that is full: half of its cells go into a new one beside it. The root keeps its number, and what
    /// it had goes into two new nodes below it.
    fn split(&mut self, number: i64, cell: &Cell, height: u16) -> Result<()> {
        let layout = self.layout;
        let node = self.node(number)?;
        let parent = node.parent;
        let mut cells: Vec<Cell> =
            (0..layout::count(&node.bytes)).map(|n| layout.cell(&node.bytes, n)).collect();
        cells.push(*cell);
        let Halves { left, mut left_box, right, mut right_box } = split::divide(&layout, &cells);
        let filled = |cells: &[Cell]| {
            let mut bytes = vec![0; layout.node_size];
            cells.iter().for_each(|c| {
                layout.push(&mut bytes, c);
            });
            bytes
        };
        let over = if number == ROOT { ROOT } else { parent.ok_or(Code::CorruptVtab)? };
        let mut add = |cells: &[Cell]| -> Result<i64> {
            let bytes = filled(cells);
            let added = self.store.add_node(&bytes)?;
            self.nodes.insert(added, Node { bytes, changed: false, parent: Some(over) });
            Ok(added)
        };
        right_box.id = add(&right)?;
        if number == ROOT {
            left_box.id = add(&left)?;
            let root = self.change(ROOT)?;
            root.bytes[2..].fill(0);
            self.set_depth(self.depth + 1)?;
            self.put(ROOT, &left_box, height + 1)?;
        } else {
            left_box.id = number;
            self.change(number)?.bytes = filled(&left);
            let at = layout.position(&self.node(over)?.bytes, number)?;
            layout.put(&mut self.change(over)?.bytes, at, &left_box);
            self.widen(over, &left_box)?;
        }
        self.put(over, &right_box, height + 1)?;
        for c in &right {
            self.remember(c.id, right_box.id, height)?;
        }
        if number == ROOT {
            for c in &left {
                self.remember(c.id, left_box.id, height)?;
            }
        } else if !right.iter().any(|c| c.id == cell.id) {
            self.remember(cell.id, number, height)?;
        }
        Ok(())
    }

    /// Finds the parents of a node, up to the root.
    fn find_parents(&mut self, number: i64) -> Result<()> {
        let mut way = vec![number];
        let mut node = number;
        while node != ROOT {
            let parent = match self.node(node)?.parent {
                Some(p) => p,
                None => self.store.parent_of(node)?.ok_or(Code::CorruptVtab)?,
            };
            if way.contains(&parent) || way.len() > TOO_FAR {
                return corrupt();
            }
            self.load(parent, None)?;
            if let Some(n) = self.nodes.get_mut(&node) {
                n.parent = Some(parent);
            }
            way.push(parent);
            node = parent;
        }
        Ok(())
    }

    /// Takes a cell out of a node at this height. A node that has too few left is dissolved.
    fn take(&mut self, number: i64, at: usize, height: u16) -> Result<()> {
        self.find_parents(number)?;
        let layout = self.layout;
        let node = self.change(number)?;
        layout.remove(&mut node.bytes, at);
        if node.parent.is_none() {
            return Ok(());
        }
        if layout::count(&node.bytes) < layout.least() {
            return self.dissolve(number, height);
        }
        self.tighten(number)
    }

    /// Takes a node out of the tree; its cells wait for another place.
    fn dissolve(&mut self, number: i64, height: u16) -> Result<()> {
        let Some((parent, at)) = self.above(number)? else { return corrupt() };
        self.take(parent, at, height + 1)?;
        self.store.delete_node(number)?;
        if let Some(node) = self.nodes.remove(&number) {
            self.dissolved.push(Dissolved { bytes: node.bytes, height });
        }
        Ok(())
    }
}
