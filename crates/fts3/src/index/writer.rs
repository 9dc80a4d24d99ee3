//! A segment as it is written whole: leaves as they become full, then the nodes above them.

use super::Index;
use super::node::{Node, common};
use super::segment::Entry;
use crate::store::{Sql, Store};
use crate::varint;
use iolite_base::{Bytes, Result};
use iolite_value::Value;

/// What a node's height and first child may take: room for them is counted before they are known.
const HEAD: usize = 1 + varint::MAX;

/// One layer above the leaves: its nodes but for their heads, left to right.
#[derive(Default)]
struct Layer(Vec<Node>);

/// Writes a segment.
pub(crate) struct Writer<'a> {
    index: &'a Index,
    node_size: usize,
    leaf: Node,
    first: i64,
    next: i64,
    layers: Vec<Layer>,
    size: i64,
}

/// Writes a row of `%_segdir`.
pub(super) fn write_entry(store: &Store, e: &Entry) -> Result<()> {
    let end = match e.size {
        0 => Value::Int(e.end),
        n => Value::text(format!("{} {n}", e.end))?,
    };
    let [level, idx, start, leaves_end] = [e.level, e.idx, e.start, e.leaves_end].map(Value::Int);
    store.run(Sql::WriteSegment, &[level, idx, start, leaves_end, end, Value::blob(&e.root)?])
}

impl<'a> Writer<'a> {
    pub fn new(index: &'a Index) -> Result<Writer<'a>> {
        let next = index.next_block()?;
        let node_size = index.node_size()?;
        let leaf = Node::default();
        Ok(Writer { index, node_size, leaf, first: next, next, layers: Vec::new(), size: 0 })
    }

    /// Adds a term, greater than those before.
    pub fn add(&mut self, term: &[u8], list: &[u8]) -> Result<()> {
        let mut space = self.leaf.space(term, Some(list));
        if self.leaf.terms > 0 && self.leaf.bytes.len() + space > self.node_size {
            self.index.store.write(self.next, Some(&self.leaf.bytes))?;
            self.index.leaves.set(self.index.leaves.get() + 1);
            self.next += 1;
            let shortest = term.get(..common(&self.leaf.last, term) + 1).ok_or_else(super::corrupt)?;
            self.add_above(0, shortest);
            self.leaf.terms = 0;
        }
        if self.leaf.terms == 0 {
            self.leaf.start(0, None);
            space = self.leaf.space(term, Some(list));
        }
        self.leaf.append(term, Some(list));
        self.size += space as i64;
        Ok(())
    }

    /// Adds a term between two nodes of the layer below.
    fn add_above(&mut self, layer: usize, term: &[u8]) {
        if layer == self.layers.len() {
            self.layers.push(Layer(vec![Node::default()]));
        }
        let nodes = &mut self.layers[layer].0;
        if let Some(node) = nodes.last_mut() {
            let fits = HEAD + node.bytes.len() + node.space(term, None) <= self.node_size;
            if node.terms == 0 || fits {
                node.append(term, None);
                return;
            }
        }
        nodes.push(Node::default());
        self.add_above(layer + 1, term);
    }

    /// Writes what is left, and the segment into `%_segdir`. Answers its size.
    pub fn finish(mut self, level: i64, idx: i64) -> Result<i64> {
        let store = &self.index.store;
        self.index.leaves.set(self.index.leaves.get() + 1);
        let mut entry = Entry {
            level,
            idx,
            start: 0,
            leaves_end: 0,
            end: 0,
            size: self.size,
            root: Bytes::copy_of(&[])?,
        };
        if self.layers.is_empty() {
            entry.root = Bytes::copy_of(&self.leaf.bytes)?;
            write_entry(store, &entry)?;
            return Ok(self.size);
        }
        store.write(self.next, Some(&self.leaf.bytes))?;
        (entry.start, entry.leaves_end) = (self.first, self.next);
        let mut child = self.first;
        self.next += 1;
        let top = self.layers.len() - 1;
        for (height, layer) in self.layers.iter().enumerate() {
            let below = self.next;
            for node in &layer.0 {
                let mut bytes = vec![height as u8 + 1];
                varint::push(&mut bytes, child as u64);
                bytes.extend_from_slice(&node.bytes);
                child += node.terms + 1;
                if height == top {
                    entry.root = Bytes::copy_of(&bytes)?;
                } else {
                    store.write(self.next, Some(&bytes))?;
                    self.next += 1;
                }
            }
            child = below;
        }
        entry.end = self.next - 1;
        write_entry(store, &entry)?;
        Ok(self.size)
    }
}
