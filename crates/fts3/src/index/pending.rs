//! Terms and rows that are kept back until the transaction ends, or until they are many.

use super::segment::Source;
use crate::varint;
use std::collections::HashMap;

#[derive(Default)]
struct List {
    bytes: Vec<u8>,
    docid: i64,
    column: usize,
    position: i64,
}

/// What one index keeps back.
#[derive(Default)]
pub(crate) struct Pending {
    lists: HashMap<Box<[u8]>, List>,
}

/// What a term costs beside its bytes, as stock counts it.
const ENTRY: usize = 40;

impl Pending {
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    pub fn clear(&mut self) {
        self.lists.clear();
    }

    /// Adds a token; without a place: a row that no longer has it. Answers how many bytes that takes.
    pub fn add(&mut self, token: &[u8], docid: i64, place: Option<(usize, i64)>) -> usize {
        if let Some(list) = self.lists.get_mut(token) {
            let before = list.bytes.len();
            list.add(docid, false, place);
            return list.bytes.len() - before;
        }
        let mut list = List::default();
        list.add(docid, true, place);
        let n = list.bytes.len() + token.len() + ENTRY;
        self.lists.insert(token.into(), list);
        n
    }

    /// The terms from `from` on, in order: all of them, those that begin with it, or it alone.
    pub fn sorted(&self, source: &Source) -> Vec<(Vec<u8>, Vec<u8>)> {
        let ended = |term: &[u8], list: &List| {
            let mut bytes = list.bytes.clone();
            bytes.push(0);
            (term.to_vec(), bytes)
        };
        if let Source::Term(t) = source {
            return self.lists.get(&t[..]).map(|l| ended(t, l)).into_iter().collect();
        }
        let wanted = self.lists.iter().filter(|e| source.wants(e.0));
        let mut out: Vec<_> = wanted.map(|(t, l)| ended(t, l)).collect();
        out.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        out
    }
}

impl List {
    fn add(&mut self, docid: i64, first: bool, place: Option<(usize, i64)>) {
        if first || self.docid != docid {
            if !first {
                self.bytes.push(0);
            }
            varint::push(&mut self.bytes, docid.wrapping_sub(self.docid) as u64);
            (self.docid, self.column, self.position) = (docid, 0, 0);
        }
        if let Some((column, position)) = place {
            if column != self.column {
                self.bytes.push(1);
                varint::push(&mut self.bytes, column as u64);
                (self.column, self.position) = (column, 0);
            }
            varint::push(&mut self.bytes, (2 + position - self.position) as u64);
            self.position = position;
        }
    }
}
