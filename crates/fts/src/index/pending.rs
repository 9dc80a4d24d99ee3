//! What was added to the index and is not written yet: for each term a doclist, as a segment has it.
//!
//! The row that was added last is still open in a doclist: the length of its list of places is put in front when another row
//! comes, or when the doclist is read.

use super::MAIN;
use super::position::push;
use super::segment::Doclists;
use crate::config::Detail;
use iolite_base::hash::FastMap;
use iolite_base::varint;
use std::rc::Rc;

/// What an entry is counted for beside its bytes.
const ENTRY: usize = 48;

/// The first room of a doclist: for a rowid and a few places.
const FIRST: usize = 24;

/// The doclist of a term.
#[derive(Default)]
struct Entry {
    list: Vec<u8>,
    rowid: i64,
    /// Where the length of the open list of places will stand.
    size_at: usize,
    deleted: bool,
    content: bool,
    column: i32,
    offset: u32,
}

impl Entry {
    fn open(&mut self, detail: Detail) {
        self.size_at = self.list.len();
        self.column = if detail == Detail::Full { 0 } else { -1 };
        self.offset = 0;
        if detail != Detail::None {
            self.list.push(0);
        }
    }

    /// Puts the length in front of the open list.
    fn close(&mut self, detail: Detail) {
        close_list(&mut self.list, self.size_at, self.deleted, self.content, detail);
        (self.deleted, self.content) = (false, false);
    }
}

fn close_list(list: &mut Vec<u8>, size_at: usize, deleted: bool, content: bool, detail: Detail) {
    if detail == Detail::None {
        if deleted {
            list.push(0);
            if content {
                list.push(0);
            }
        }
        return;
    }
    let n = list.len() - size_at - 1;
    let head = (n * 2 + deleted as usize) as u64;
    if head < 0x80 {
        list[size_at] = head as u8;
    } else {
        let mut bytes = [0; 9];
        let len = varint::put(&mut bytes, head);
        list.splice(size_at..=size_at, bytes[..len].iter().copied());
    }
}

/// All of it.
pub(crate) struct Pending {
    /// For each index, from the main one on, its terms.
    indexes: Vec<FastMap<Box<[u8]>, Entry>>,
    /// About how much memory it takes, as stock counts it: that decides when it is written.
    pub bytes: usize,
}

/// A term's doclist with its key.
pub(crate) type Keyed = (Vec<u8>, Vec<u8>);

impl Pending {
    /// Nothing, for so many indexes.
    pub fn new(count: usize) -> Pending {
        Pending { indexes: (0..count).map(|_| FastMap::default()).collect(), bytes: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.indexes[0].is_empty()
    }

    pub fn clear(&mut self) {
        self.indexes.iter_mut().for_each(|m| drop(std::mem::take(m)));
        self.bytes = 0;
    }

    /// Adds a token of a row to an index. `at`: column and offset; none: the row is deleted.
    #[inline]
    pub fn add(&mut self, detail: Detail, index: usize, token: &[u8], rowid: i64, at: Option<(u32, u32)>) {
        let map = &mut self.indexes[index];
        let mut before = 0;
        let entry = match map.get_mut(token) {
            Some(e) => {
                before = e.list.len();
                if e.rowid != rowid {
                    e.close(detail);
                    let delta = rowid.wrapping_sub(e.rowid) as u64;
                    push(&mut e.list, delta);
                    e.rowid = rowid;
                    e.open(detail);
                }
                e
            }
            None => {
                self.bytes += ENTRY + token.len() + 1;
                let e = map.entry(token.into()).or_default();
                e.list = Vec::with_capacity(FIRST);
                push(&mut e.list, rowid as u64);
                e.rowid = rowid;
                e.open(detail);
                e
            }
        };
        match at {
            None => entry.deleted = true,
            Some((column, offset)) => match detail {
                Detail::None => entry.content = true,
                Detail::Full => {
                    if column as i32 != entry.column {
                        entry.list.push(1);
                        push(&mut entry.list, column.into());
                        entry.column = column as i32;
                        entry.offset = 0;
                    }
                    push(&mut entry.list, u64::from(offset.wrapping_sub(entry.offset)) + 2);
                    entry.offset = offset;
                }
                Detail::Column => {
                    if column as i32 != entry.column {
                        entry.column = column as i32;
                        push(&mut entry.list, u64::from(column - entry.offset) + 2);
                        entry.offset = column;
                    }
                }
            },
        }
        self.bytes += entry.list.len() - before;
    }

    /// The doclist of a term.
    pub fn doclist(&self, detail: Detail, key: &[u8]) -> Option<Vec<u8>> {
        let (first, token) = key.split_first()?;
        let index = usize::from(first.wrapping_sub(MAIN));
        self.indexes.get(index)?.get(token).map(|e| closed(e, detail))
    }

    /// All terms with their doclists, in order, that begin with a key.
    pub fn doclists(&self, detail: Detail, prefix: &[u8]) -> Doclists {
        let mut lists = Vec::new();
        for (i, map) in self.indexes.iter().enumerate() {
            let first = MAIN + i as u8;
            if prefix.first().is_some_and(|p| *p != first) {
                continue;
            }
            let found = map.iter().filter(|(k, _)| k.starts_with(prefix.get(1..).unwrap_or_default()));
            lists.extend(found.map(|(k, e)| (keyed(first, k), closed(e, detail))));
        }
        lists.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Rc::new(lists)
    }

    /// Takes out all, in order.
    pub fn take(&mut self, detail: Detail) -> Vec<Keyed> {
        self.bytes = 0;
        let mut all = Vec::new();
        for (i, map) in self.indexes.iter_mut().enumerate() {
            let start = all.len();
            all.extend(std::mem::take(map).into_iter().map(|(k, mut e)| {
                e.close(detail);
                (keyed(MAIN + i as u8, &k), e.list)
            }));
            all[start..].sort_unstable_by(|a, b| a.0.cmp(&b.0));
        }
        all
    }
}

fn keyed(first: u8, token: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(token.len() + 1);
    key.push(first);
    key.extend_from_slice(token);
    key
}

/// The doclist with its open list closed.
fn closed(e: &Entry, detail: Detail) -> Vec<u8> {
    let mut list = e.list.clone();
    close_list(&mut list, e.size_at, e.deleted, e.content, detail);
    list
}
