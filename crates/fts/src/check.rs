//! Whether an index has what it should have: a sum over all entries, which does not depend on their order.

use crate::config::{Config, Detail};
use crate::index::position::{Columns, Places, column_of, offset_of};
use crate::index::{Index, MAIN};
use crate::tokenize::prefix_len;
use iolite_base::hash::hash_bytes;
use iolite_base::{Code, Result};
use std::collections::HashSet;

/// The sum.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Sum {
    sum: u64,
    count: u64,
    detail: Detail,
}

impl Sum {
    pub fn new(config: &Config) -> Sum {
        Sum { sum: 0, count: 0, detail: config.detail }
    }

    fn add(&mut self, key: &[u8], rowid: i64, column: i32, offset: i32) {
        let mut h = hash_bytes(key);
        for n in [rowid as u64, column as u64, offset as u64] {
            h = (h ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
        self.sum = self.sum.wrapping_add(h);
        self.count += 1;
    }
}

/// The tokens of one row, where each counts once.
#[derive(Default)]
pub(crate) struct Document {
    /// Those whose places are not told apart.
    seen: HashSet<(Vec<u8>, u32)>,
    /// Where places are: those of the present one.
    here: Vec<Vec<u8>>,
    place: (u32, u32),
}

impl Document {
    /// Adds a token and its prefixes.
    pub fn token(
        &mut self,
        config: &Config,
        sum: &mut Sum,
        rowid: i64,
        token: &[u8],
        column: u32,
        offset: u32,
    ) {
        let (c, o) = match config.detail {
            Detail::Full => (column, offset),
            Detail::Column => (column, 0),
            Detail::None => (0, 0),
        };
        if self.place != (c, o) {
            self.place = (c, o);
            self.here.clear();
        }
        let prefixes = config.prefixes.iter().enumerate();
        let prefixes =
            prefixes.filter_map(|(i, n)| prefix_len(token, *n).map(|len| (MAIN + 1 + i as u8, len)));
        for (index, len) in std::iter::once((MAIN, token.len())).chain(prefixes) {
            let mut key = Vec::with_capacity(1 + len);
            key.push(index);
            key.extend_from_slice(&token[..len]);
            let new = match config.detail {
                Detail::Full => !self.here.contains(&key),
                _ => self.seen.insert((key.clone(), c)),
            };
            if new {
                sum.add(&key, rowid, c as i32, o as i32);
            }
            if config.detail == Detail::Full {
                self.here.push(key);
            }
        }
    }
}

/// The sum of an index; an error if its terms and rows are not in order.
pub(crate) fn of_index(index: &Index, sum: &mut Sum) -> Result<()> {
    let mut scan = index.scan(b"")?;
    let mut last: Option<(Vec<u8>, i64)> = None;
    while let Some(c) = scan.current() {
        let ordered = match &last {
            Some((term, rowid)) => (&c.term, c.rowid) > (term, *rowid),
            None => true,
        };
        if !ordered || c.term.is_empty() {
            return Err(Code::CorruptVtab.into());
        }
        let list = c.places()?;
        match sum.detail {
            Detail::Full => {
                Places::new(&list).for_each(|p| sum.add(&c.term, c.rowid, column_of(p), offset_of(p)));
            }
            Detail::Column => Columns::new(&list).for_each(|n| sum.add(&c.term, c.rowid, n as i32, 0)),
            Detail::None => sum.add(&c.term, c.rowid, 0, 0),
        }
        last = Some((c.term.clone(), c.rowid));
        scan.next()?;
    }
    Ok(())
}
