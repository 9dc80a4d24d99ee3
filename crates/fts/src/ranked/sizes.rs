//! How many tokens each row has, of all rows of a table: what `%_docsize` says, summed over columns, in memory.

use super::list::seek;
use crate::storage::Storage;
use iolite_base::{Result, alloc};

/// What is taken for a row whose size cannot be read.
const UNKNOWN: u32 = u32::MAX;
/// More bytes than these are not kept.
const MOST_BYTES: usize = 64 << 20;

/// Sizes by rowid. The bytes are counted for as long as it is there.
#[derive(Default)]
pub(super) struct Sizes {
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
        let mut fits = true;
        storage.each_size(&mut |rowid, size| {
            if !fits {
                return Ok(());
            }
            if s.sizes.is_empty() {
                s.first = rowid;
            }
            alloc::reserve(&mut s.sizes, 1)?;
            if s.rows.is_empty() && s.first.checked_add(s.sizes.len() as i64) != Some(rowid) {
                // Rows before this one followed each other.
                alloc::reserve(&mut s.rows, s.sizes.len() + 1)?;
                let first = s.first;
                s.rows.extend((0..s.sizes.len() as i64).map(|n| first + n));
                s.rows.push(rowid);
            } else if !s.rows.is_empty() {
                alloc::reserve(&mut s.rows, 1)?;
                s.rows.push(rowid);
            }
            s.sizes.push(size.and_then(|n| u32::try_from(n).ok()).unwrap_or(UNKNOWN));
            fits = s.sizes.len() * 12 <= MOST_BYTES;
            Ok(())
        })?;
        s.rows.shrink_to_fit();
        s.sizes.shrink_to_fit();
        let bytes = s.bytes();
        alloc::claim(bytes)?;
        s.claimed = bytes;
        Ok(fits.then_some(s))
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
