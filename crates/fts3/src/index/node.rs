//! Nodes of segments: terms, each without what it has in common with the one before, in leaves with their lists.

use super::corrupt;
use crate::varint;
use iolite_base::Result;
use std::ops::Range;

/// How many bytes two terms have in common at their beginning.
pub(crate) fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Walks through the terms of a node.
#[derive(Default)]
pub(crate) struct Walk {
    at: usize,
    leaf: bool,
    first: bool,
    /// The node to the left of the present term, of an interior node; behind the end: the last node.
    pub child: i64,
    pub term: Vec<u8>,
    /// Where the present term's list is, of a leaf.
    pub list: Range<usize>,
}

impl Walk {
    /// Before the first term.
    pub fn new(node: &[u8]) -> Result<Walk> {
        let mut w = Walk { first: true, ..Walk::default() };
        let height = varint::get(node, &mut w.at).ok_or_else(corrupt)?;
        w.leaf = height == 0;
        if !w.leaf {
            w.child = varint::get(node, &mut w.at).ok_or_else(corrupt)? as i64;
        }
        Ok(w)
    }

    /// To the next term; false: there is none.
    pub fn next(&mut self, node: &[u8]) -> Result<bool> {
        let first = std::mem::replace(&mut self.first, false);
        if !first && !self.leaf {
            self.child = self.child.wrapping_add(1);
        }
        if self.at >= node.len() {
            return Ok(false);
        }
        let number = |at: &mut usize| {
            varint::get(node, at).and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= node.len())
        };
        let prefix = if first { 0 } else { number(&mut self.at).ok_or_else(corrupt)? };
        let suffix = number(&mut self.at).ok_or_else(corrupt)?;
        let bytes = node.get(self.at..self.at + suffix).ok_or_else(corrupt)?;
        if prefix > self.term.len() || suffix == 0 {
            return Err(corrupt());
        }
        self.term.truncate(prefix);
        self.term.extend_from_slice(bytes);
        self.at += suffix;
        if self.leaf {
            let n = number(&mut self.at).ok_or_else(corrupt)?;
            if self.at + n > node.len() {
                return Err(corrupt());
            }
            self.list = self.at..self.at + n;
            self.at += n;
        }
        Ok(true)
    }
}

/// A node that terms are appended to.
#[derive(Default)]
pub(crate) struct Node {
    pub bytes: Vec<u8>,
    /// The last term.
    pub last: Vec<u8>,
    /// How many terms it has.
    pub terms: i64,
}

impl Node {
    /// How many bytes a term would take beside what it has in common with the last one, and those for its list.
    pub fn space(&self, term: &[u8], list: Option<&[u8]>) -> usize {
        let prefix = common(&self.last, term);
        let suffix = term.len() - prefix;
        let n = varint::len(prefix as u64) + varint::len(suffix as u64) + suffix;
        n + list.map_or(0, |l| varint::len(l.len() as u64) + l.len())
    }

    /// Begins a node of this height; an interior one with its first child.
    pub fn start(&mut self, height: u8, child: Option<i64>) {
        self.bytes.clear();
        self.last.clear();
        self.terms = 0;
        self.bytes.push(height);
        if let Some(c) = child {
            varint::push(&mut self.bytes, c as u64);
        }
    }

    /// Appends a term, and its list in a leaf. The node is begun.
    pub fn append(&mut self, term: &[u8], list: Option<&[u8]>) {
        let prefix = if self.terms == 0 { 0 } else { common(&self.last, term) };
        if self.terms > 0 {
            varint::push(&mut self.bytes, prefix as u64);
        }
        let suffix = &term[prefix..];
        varint::push(&mut self.bytes, suffix.len() as u64);
        self.bytes.extend_from_slice(suffix);
        if let Some(l) = list {
            varint::push(&mut self.bytes, l.len() as u64);
            self.bytes.extend_from_slice(l);
        }
        self.last.clear();
        self.last.extend_from_slice(term);
        self.terms += 1;
    }
}
