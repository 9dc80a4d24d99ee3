//! How many tokens each row has, of all rows of a table: what `%_docsize` says, summed over columns, in memory.

use super::Kept;
use super::list::seek;
use crate::storage::Storage;
use iolite_base::{Result, alloc};
use std::cell::{Cell, RefCell};
use std::ops::{Range, RangeInclusive};
use std::rc::Rc;

/// So often it is asked whether sizes of all rows are to be read.
const STEP: i64 = 64;

/// What is taken for a row whose size cannot be read.
const UNKNOWN: u32 = u32::MAX;
/// More bytes than these are not kept.
const MOST_BYTES: usize = 64 << 20;

/// Sizes by rowid. The bytes are counted for as long as it is there.
#[derive(Default)]
pub(crate) struct Sizes {
    /// The rows, ascending; empty where they are `first`, `first + 1` and so on.
    rows: Vec<i64>,
    first: i64,
    sizes: Vec<u32>,
    claimed: usize,
}

impl Drop for Sizes {
    fn drop(&mut self) {
        alloc::release(self.claimed);
    }
}

impl Sizes {
    /// Whether a table of so many rows is small enough.
    pub fn fit(rows: i64) -> bool {
        usize::try_from(rows).is_ok_and(|n| n <= MOST_BYTES / 12)
    }

    /// Reads all.
    pub fn read(storage: &Storage) -> Result<Option<Sizes>> {
        let mut s = Sizes::default();
        s.add(storage, i64::MIN..=i64::MAX)?;
        s.end()
    }

    /// Those of the present state, where only rows in these ranges differ.
    pub fn follow(&self, storage: &Storage, changed: &[RangeInclusive<i64>]) -> Result<Option<Sizes>> {
        let mut s = Sizes::default();
        let mut from = 0;
        for range in changed {
            let to = from + self.place(*range.start(), from);
            s.take_over(self, from..to)?;
            s.add(storage, range.clone())?;
            from = match range.end().checked_add(1) {
                Some(next) => to + self.place(next, to),
                None => self.sizes.len(),
            };
        }
        s.take_over(self, from..self.sizes.len())?;
        s.end()
    }

    /// How many rows from the `from`-th on are before `rowid`.
    fn place(&self, rowid: i64, from: usize) -> usize {
        if !self.rows.is_empty() {
            return self.rows[from..].partition_point(|r| *r < rowid);
        }
        let at = (i128::from(rowid) - i128::from(self.first)).clamp(from as i128, self.sizes.len() as i128);
        at as usize - from
    }

    fn take_over(&mut self, other: &Sizes, places: Range<usize>) -> Result<()> {
        alloc::reserve(&mut self.sizes, places.len())?;
        for at in places {
            self.push(
                other.rows.get(at).copied().unwrap_or(other.first.wrapping_add(at as i64)),
                other.sizes[at],
            )?;
        }
        Ok(())
    }

    fn push(&mut self, rowid: i64, size: u32) -> Result<()> {
        if self.sizes.is_empty() {
            self.first = rowid;
        }
        alloc::reserve(&mut self.sizes, 1)?;
        if self.rows.is_empty() && self.first.checked_add(self.sizes.len() as i64) != Some(rowid) {
            // Rows before this one followed each other.
            alloc::reserve(&mut self.rows, self.sizes.len() + 1)?;
            let first = self.first;
            self.rows.extend((0..self.sizes.len() as i64).map(|n| first + n));
            self.rows.push(rowid);
        } else if !self.rows.is_empty() {
            alloc::reserve(&mut self.rows, 1)?;
            self.rows.push(rowid);
        }
        self.sizes.push(size);
        Ok(())
    }

    fn add(&mut self, storage: &Storage, range: RangeInclusive<i64>) -> Result<()> {
        storage.each_size(range, &mut |rowid, size| {
            if self.sizes.len() * 12 > MOST_BYTES {
                return Ok(());
            }
            self.push(rowid, size.and_then(|n| u32::try_from(n).ok()).unwrap_or(UNKNOWN))
        })
    }

    /// All rows are there; `None`: they are too many.
    fn end(mut self) -> Result<Option<Sizes>> {
        self.rows.shrink_to_fit();
        self.sizes.shrink_to_fit();
        let bytes = self.bytes();
        alloc::claim(bytes)?;
        self.claimed = bytes;
        Ok((self.sizes.len() * 12 <= MOST_BYTES).then_some(self))
    }

    /// How many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.rows.capacity() * 8 + self.sizes.capacity() * 4
    }

    /// The size of a row, if it is known. `at` is where the last one was found: rows are asked for in ascending order.
    #[inline]
    pub fn find(&self, rowid: i64, at: &mut usize) -> Option<u32> {
        let n = if self.rows.is_empty() {
            usize::try_from(rowid.wrapping_sub(self.first)).ok()?
        } else {
            *at = seek(&self.rows, *at, rowid);
            (*self.rows.get(*at)? == rowid).then_some(*at)?
        };
        self.sizes.get(n).copied().filter(|n| *n != UNKNOWN)
    }
}

/// Sizes of rows that a cursor asks for one after the other. It is one query, of one state.
#[derive(Default)]
pub(crate) struct Asked {
    times: Cell<i64>,
    /// The last row that was found, and where.
    last: Cell<(i64, usize)>,
    sizes: RefCell<Option<Rc<Sizes>>>,
}

impl Asked {
    /// The size of a row, if it is known without reading it.
    pub fn find(&self, kept: &Kept, storage: &Storage, rowid: i64) -> Option<i64> {
        let n = self.times.get();
        self.times.set(n + 1);
        let mut sizes = self.sizes.borrow().clone();
        if sizes.is_none() && n % STEP == 0 {
            sizes = kept.sizes(storage, n, STEP);
            self.sizes.replace(sizes.clone());
        }
        let sizes = sizes?;
        let (last, mut at) = self.last.get();
        if rowid < last {
            at = 0;
        }
        let found = sizes.find(rowid, &mut at);
        self.last.set((rowid, at));
        found.map(i64::from)
    }
}
