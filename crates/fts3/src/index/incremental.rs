//! Incremental merging: of a level's oldest segments, the first terms move to a segment of the next level that is written some
//! blocks at a time. Its blocks' numbers are reserved: as many for each of its layers as it may have leaves.
//!
//! What always holds: between two calls each term of the level is in one of the two, and the new segment is whole as far as it
//! goes. Which merges go on is noted in `%_stat`: pairs of a level and how many segments are left of it.

use super::merge::Multi;
use super::node::{Node, Walk, common};
use super::segment::{Entry, LARGEST, Segment, Source};
use super::writer::write_entry;
use super::{HINT, Index, LEVELS, corrupt};
use crate::store::Sql;
use crate::varint;
use iolite_base::{Bytes, Result};
use iolite_value::Value;

/// How many layers an appendable segment can have.
const LAYERS: usize = 16;

/// The segment that is written.
struct Output {
    level: i64,
    idx: i64,
    start: i64,
    end: i64,
    /// How many leaves it may have.
    leaves: i64,
    size: i64,
    size_unknown: bool,
    /// Blocks written.
    work: i64,
    /// The nodes that are appended to, and their blocks' numbers.
    layers: Vec<(i64, Node)>,
}

/// The last pair of the notes, which is taken off.
fn pop(notes: &mut Vec<u8>) -> Result<(i64, i64)> {
    let back = |end: usize| {
        let mut at = end.checked_sub(1)?;
        while at > 0 && notes[at - 1] & 0x80 != 0 {
            at -= 1;
        }
        Some(at)
    };
    let second = back(notes.len()).ok_or_else(corrupt)?;
    let first = back(second).ok_or_else(corrupt)?;
    let mut at = first;
    let level = varint::get(notes, &mut at).ok_or_else(corrupt)?;
    let segments = varint::get(notes, &mut at).ok_or_else(corrupt)?;
    notes.truncate(first);
    Ok((level as i64, segments as i64 & 0x7fff_ffff))
}

impl Index {
    /// Merges levels that have at least `least` segments, until about `work` blocks are written.
    pub fn merge_some(&self, work: i64, least: i64) -> Result<()> {
        let value = self.store.row(Sql::ReadStat, &[Value::Int(HINT)])?;
        let bytes = value.and_then(|r| r.first().and_then(|v| v.bytes().cloned()));
        let mut notes = bytes.map_or_else(Vec::new, |b| b.to_vec());
        let mut changed = false;
        let levels = LEVELS * self.store.config.prefixes.len() as i64;
        let mut left = work;
        while left > 0 {
            let row = self.store.row(Sql::MergeLevel, &[Value::Int(least.max(2))])?;
            let mut found = row.map(|r| (r[0].to_int(), r[1].to_int()));
            let mut noted = false;
            if !notes.is_empty() {
                let mut rest = notes.clone();
                let (level, segments) = pop(&mut rest)?;
                if found.is_none_or(|f| f.0 % levels >= level % levels) {
                    let most = least.max(found.map_or(-1, |f| f.1));
                    found = Some((level, most.min(segments)));
                    notes = rest;
                    (noted, changed) = (true, true);
                }
            }
            let Some((level, count)) = found.filter(|f| f.1 > 0) else { break };
            if !(0..LARGEST).contains(&level) {
                return Err(corrupt());
            }
            let entries = self.level_entries(level)?;
            if (entries.len() as i64) < count {
                // A note may be older than the segments; what was counted just now is there, unless levels are no numbers.
                if noted {
                    continue;
                }
                return Err(corrupt());
            }
            let last = self.store.number(Sql::MaxIndex, &[Value::Int(level + 1)])?;
            let idx = last.map_or(0, |n| n.saturating_add(1));
            let mut segments = Vec::new();
            for e in entries.into_iter().take(count as usize) {
                segments.push(Segment::open(&self.store, e, &Source::From(Vec::new()))?);
            }
            // Where nothing older is left, nothing is left to be deleted.
            let oldest = idx == 0 || noted && idx == 1;
            let drop_empty = oldest && !self.has_deeper(level + 1)?;
            let mut input = Multi::new(&self.store, Source::From(Vec::new()), segments, drop_empty);
            let empty = !input.next()?;
            let mut out = if noted && idx > 0 {
                match self.load_output(level + 1, idx - 1, &input.term)? {
                    Some(out) => out,
                    None => continue,
                }
            } else {
                self.new_output(level, idx, count)?
            };
            if out.leaves <= 0 {
                return Err(corrupt());
            }
            let mut more = !empty;
            while more {
                self.append(&mut out, &input.term, &input.list)?;
                more = input.next()?;
                if out.work >= left {
                    break;
                }
            }
            left -= 1 + out.work;
            let rest = self.chomp(level, &input)?;
            if rest != 0 {
                changed = true;
                varint::push(&mut notes, level as u64);
                varint::push(&mut notes, rest as u64);
                out.size = -out.size;
            }
            let (size, unknown) = (out.size, out.size_unknown);
            self.release(out)?;
            if rest == 0 && !unknown {
                self.promote(level + 1, size)?;
            }
        }
        if changed {
            self.store.run(Sql::WriteStat, &[Value::Int(HINT), Value::blob(&notes)?])?;
        }
        Ok(())
    }

    /// Whether there are deeper levels than this one. The first level of the next index counts, as with stock.
    fn has_deeper(&self, level: i64) -> Result<bool> {
        let next = level - level.rem_euclid(LEVELS) + LEVELS;
        Ok(self.store.number(Sql::MaxLevel, &[Value::Int(level + 1), Value::Int(next)])?.is_some())
    }

    fn new_output(&self, level: i64, idx: i64, count: i64) -> Result<Output> {
        let leaves = self.store.number(Sql::LeafEstimate, &[Value::Int(level), Value::Int(count)])?;
        let leaves = leaves.unwrap_or(0).clamp(0, 1 << 40);
        let start = self.next_block()?;
        let end = start - 1 + leaves * LAYERS as i64;
        self.store.write(end, None)?;
        let layers = (0..LAYERS as i64).map(|i| (start + i * leaves, Node::default())).collect();
        Ok(Output {
            level: level + 1,
            idx,
            start,
            end,
            leaves,
            size: 0,
            size_unknown: false,
            work: 0,
            layers,
        })
    }

    /// A segment that was begun, to go on with terms from this one on; `None`: it cannot be gone on with.
    fn load_output(&self, level: i64, idx: i64, term: &[u8]) -> Result<Option<Output>> {
        let Some(row) = self.store.row(Sql::Segment, &[Value::Int(level), Value::Int(idx)])? else {
            return Ok(None);
        };
        let e = Entry::of(&row)?;
        if self.store.row(Sql::IsReserved, &[Value::Int(e.end)])?.is_none() {
            return Ok(None);
        }
        let leaf = self.store.block(e.leaves_end)?;
        if self.last_of(&leaf)?.term[..] >= *term {
            return Ok(None);
        }
        let leaves = (e.end - e.start + 1) / LAYERS as i64;
        let height = e.root.first().map_or(0, |h| *h as usize);
        if !(1..LAYERS).contains(&height) {
            return Err(corrupt());
        }
        let mut layers: Vec<(i64, Node)> =
            (0..LAYERS as i64).map(|i| (e.start + i * leaves, Node::default())).collect();
        let mut bytes = e.root.to_vec();
        for i in (0..=height).rev() {
            let last = self.last_of(&bytes)?;
            let (child, terms) = (last.child, i64::from(!last.term.is_empty()));
            layers[i].1 = Node { bytes: std::mem::take(&mut bytes), last: last.term, terms };
            if i > 0 {
                layers[i - 1].0 = child;
                bytes = self.store.block(child)?.to_vec();
            }
        }
        Ok(Some(Output {
            level,
            idx,
            start: e.start,
            end: e.end,
            leaves,
            size: e.size.abs(),
            size_unknown: e.size == 0,
            work: 0,
            layers,
        }))
    }

    /// Behind the last term of a node.
    fn last_of(&self, node: &[u8]) -> Result<Walk> {
        let mut walk = Walk::new(node)?;
        while walk.next(node)? {}
        Ok(walk)
    }

    fn append(&self, out: &mut Output, term: &[u8], list: &[u8]) -> Result<()> {
        let node_size = self.node_size()?;
        let (block, leaf) = &mut out.layers[0];
        let shared = common(&leaf.last, term);
        if shared >= term.len() {
            return Err(corrupt());
        }
        let mut space = leaf.space(term, Some(list));
        let full = !leaf.bytes.is_empty() && leaf.bytes.len() + space > node_size;
        if full && *block < out.start + out.leaves {
            self.store.write(*block, Some(&leaf.bytes))?;
            out.work += 1;
            let child = *block;
            *block += 1;
            *leaf = Node::default();
            space = leaf.space(term, Some(list));
            self.push_up(out, child, &term[..shared + 1], node_size)?;
        }
        out.size += space as i64;
        let leaf = &mut out.layers[0].1;
        if leaf.bytes.is_empty() {
            leaf.start(0, None);
        }
        leaf.append(term, Some(list));
        Ok(())
    }

    /// Adds a term above the leaves, behind the node `child`.
    fn push_up(&self, out: &mut Output, mut child: i64, term: &[u8], node_size: usize) -> Result<()> {
        for (height, (block, node)) in out.layers.iter_mut().enumerate().skip(1) {
            if common(&node.last, term) >= term.len() {
                return Err(corrupt());
            }
            if node.terms == 0 || node.bytes.len() + node.space(term, None) <= node_size {
                if node.bytes.is_empty() {
                    node.start(height as u8, Some(child));
                }
                node.append(term, None);
                return Ok(());
            }
            self.store.write(*block, Some(&node.bytes))?;
            node.start(height as u8, Some(child + 1));
            child = *block;
            *block += 1;
        }
        Err(corrupt())
    }

    /// Takes out of the inputs what is in the new segment now. Answers how many inputs are left.
    fn chomp(&self, level: i64, input: &Multi) -> Result<i64> {
        let mut left = 0;
        for s in input.segments.iter().rev() {
            let Some(e) = &s.entry else { continue };
            if s.ended() {
                self.delete_segment(e)?;
            } else {
                self.cut(e, s.term())?;
                left += 1;
            }
        }
        if left != input.segments.len() as i64 {
            for (i, e) in self.level_entries(level)?.iter().enumerate() {
                if e.idx != i as i64 {
                    self.store.run(Sql::Renumber, &[i as i64, level, e.idx].map(Value::Int))?;
                }
            }
        }
        Ok(left)
    }

    /// A segment without the terms before this one.
    fn cut(&self, e: &Entry, term: &[u8]) -> Result<()> {
        let (root, mut child) = cut_node(&e.root, term)?;
        let mut first = 0;
        let mut height = root[0];
        while child != 0 {
            let block = self.store.block(child)?;
            let below = *block.first().ok_or_else(corrupt)?;
            if below >= height {
                return Err(corrupt());
            }
            height = below;
            let (bytes, next) = cut_node(&block, term)?;
            self.store.write(child, Some(&bytes))?;
            (first, child) = (child, next);
        }
        if first != 0 {
            self.store.run(Sql::DeleteBlocks, &[Value::Int(e.start), Value::Int(first - 1)])?;
        }
        let params = [Value::Int(first), Value::blob(&root)?, Value::Int(e.level), Value::Int(e.idx)];
        self.store.run(Sql::CutSegment, &params)
    }

    /// Writes what is left of the new segment, and its entry.
    fn release(&self, mut out: Output) -> Result<()> {
        let Some(mut root) = (0..LAYERS).rev().find(|i| !out.layers[*i].1.bytes.is_empty()) else {
            return Ok(());
        };
        if root == 0 {
            // A segment with blocks of its own needs a root above them.
            let child = out.layers[0].0;
            out.layers[1].1.start(1, Some(child));
            root = 1;
        }
        for (block, node) in out.layers[..root].iter().filter(|l| !l.1.bytes.is_empty()) {
            self.store.write(*block, Some(&node.bytes))?;
        }
        let entry = Entry {
            level: out.level,
            idx: out.idx,
            start: out.start,
            leaves_end: out.layers[0].0,
            end: out.end,
            size: out.size,
            root: Bytes::copy_of(&out.layers[root].1.bytes)?,
        };
        write_entry(&self.store, &entry)
    }
}

/// A node without the terms before this one, and the first child that it still has; 0 for a leaf.
fn cut_node(bytes: &[u8], term: &[u8]) -> Result<(Vec<u8>, i64)> {
    let height = *bytes.first().ok_or_else(corrupt)?;
    let leaf = height == 0;
    let mut walk = Walk::new(bytes)?;
    let mut node = Node::default();
    let mut child = 0;
    let begin = |node: &mut Node, child: i64| node.start(height, (!leaf).then_some(child));
    while walk.next(bytes)? {
        if node.bytes.is_empty() {
            if walk.term[..] < *term || !leaf && walk.term[..] == *term {
                continue;
            }
            begin(&mut node, walk.child);
            child = walk.child;
        }
        node.append(&walk.term, leaf.then(|| &bytes[walk.list.clone()]));
    }
    if node.bytes.is_empty() {
        begin(&mut node, walk.child);
        child = walk.child;
    }
    Ok((node.bytes, if leaf { 0 } else { child }))
}
