//! Rows by their keys, in the order in which changesets hold them.
//!
//! The order is that of a table of chains: a key's hash names its chain, a newer row stands before an older one, and when
//! there are half as many rows as chains, their number is doubled and the rows are put in anew in the order of the old
//! chains. Programs compare changesets as bytes, so this is a part of the format in all but name.

use crate::record;

/// Rows in chains, the newest of each last.
pub(crate) struct Rows<T> {
    chains: Vec<Vec<T>>,
    len: usize,
}

impl<T> Default for Rows<T> {
    fn default() -> Rows<T> {
        Rows { chains: Vec::new(), len: 0 }
    }
}

/// The least number of chains.
const CHAINS: usize = 256;

/// Mixes a number into a hash.
fn mix(h: u32, n: u32) -> u32 {
    (h << 3) ^ h ^ n
}

/// The hash of a rowid, which has no class.
pub(crate) fn hash_of_rowid(id: i64) -> u32 {
    mix(mix(0, id as u32), (id >> 32) as u32)
}

/// The hash of a key: its fields in the order of the columns.
pub(crate) fn hash<'f>(key: impl Iterator<Item = &'f [u8]>) -> u32 {
    key.fold(0, |h, field| {
        let h = mix(h, field[0] as u32);
        match (field[0], field.get(1..9).and_then(|w| <[u8; 8]>::try_from(w).ok())) {
            (1 | 2, Some(word)) => {
                let n = u64::from_be_bytes(word);
                mix(mix(h, n as u32), (n >> 32) as u32)
            }
            _ => {
                let used = iolite_base::varint::get(&field[1..]).map_or(0, |v| v.1);
                field[1 + used..].iter().fold(h, |h, b| mix(h, *b as u32))
            }
        }
    })
}

/// The fields of a record's key.
pub(crate) fn key<'r>(keys: &'r [u8], record: &'r [u8]) -> impl Iterator<Item = &'r [u8]> {
    record::fields(record).zip(keys).filter(|(_, k)| **k != 0).map(|(f, _)| f)
}

impl<T> Rows<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    /// Makes room for another row: `hash` is that of a row.
    pub fn grow(&mut self, hash: impl Fn(&T) -> u32) {
        if !self.chains.is_empty() && self.len < self.chains.len() / 2 {
            return;
        }
        let n = (self.chains.len() * 2).max(CHAINS);
        let mut chains: Vec<Vec<T>> = Vec::new();
        chains.resize_with(n, Vec::new);
        for row in std::mem::take(&mut self.chains).into_iter().flat_map(|c| c.into_iter().rev()) {
            let at = hash(&row) as usize % n;
            chains[at].push(row);
        }
        self.chains = chains;
    }

    fn chain(&mut self, hash: u32) -> Option<&mut Vec<T>> {
        let n = self.chains.len();
        self.chains.get_mut(hash as usize % n.max(1))
    }

    /// The row with this hash for which `is` holds.
    pub fn find(&mut self, hash: u32, is: impl Fn(&T) -> bool) -> Option<&mut T> {
        self.chain(hash)?.iter_mut().rev().find(|r| is(r))
    }

    /// As [`Rows::find`], to be looked at.
    pub fn get(&self, hash: u32, is: impl Fn(&T) -> bool) -> Option<&T> {
        let chain = self.chains.get(hash as usize % self.chains.len().max(1))?;
        chain.iter().rev().find(|r| is(r))
    }

    /// As [`Rows::find`], and takes it out.
    pub fn take(&mut self, hash: u32, is: impl Fn(&T) -> bool) -> Option<T> {
        let chain = self.chain(hash)?;
        let at = chain.iter().rposition(is)?;
        let row = chain.remove(at);
        self.len -= 1;
        Some(row)
    }

    /// Puts a row in, after [`Rows::grow`].
    pub fn put(&mut self, hash: u32, row: T) {
        if let Some(c) = self.chain(hash) {
            c.push(row);
            self.len += 1;
        }
    }

    /// All rows in their order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chains.iter().flat_map(|c| c.iter().rev())
    }

    /// All rows in their order, to be changed but for their keys.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.chains.iter_mut().flat_map(|c| c.iter_mut().rev())
    }

    /// The `n`th row of chain `chain`, and where the next one stands.
    pub fn at(&self, (chain, n): (usize, usize)) -> Option<(&T, (usize, usize))> {
        for c in chain..self.chains.len() {
            let skip = if c == chain { n } else { 0 };
            if let Some(i) = self.chains[c].len().checked_sub(skip + 1) {
                return Some((&self.chains[c][i], (c, skip + 1)));
            }
        }
        None
    }
}
