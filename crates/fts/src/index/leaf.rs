//! Leaves: pages of a segment with terms and their doclists, and where they are among the blocks.
//!
//! ```text
//! u16 first rowid that continues a doclist, or 0 | u16 size | content ... | offsets of terms
//! ```
//!
//! What always holds: a leaf's size is at least four and at most its length.

use super::position::varint;
use iolite_base::{Bytes, Result};

/// A leaf as it is stored.
#[derive(Clone)]
pub(crate) struct Leaf {
    pub bytes: Bytes,
    /// Where the content ends and the offsets of terms begin.
    pub size: usize,
}

impl Leaf {
    /// A stored leaf; `None`: it is damaged.
    pub fn new(bytes: Bytes) -> Option<Leaf> {
        let size = u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]) as usize;
        (size >= 4 && size <= bytes.len()).then_some(Leaf { bytes, size })
    }

    /// A doclist that is in memory.
    pub fn memory(doclist: &[u8]) -> Result<Leaf> {
        Ok(Leaf { bytes: Bytes::copy_of(doclist)?, size: doclist.len() })
    }

    /// Where the first rowid stands, if the leaf begins with a doclist that goes on.
    pub fn first_rowid(&self) -> Option<usize> {
        let at = u16::from_be_bytes([self.bytes[0], self.bytes[1]]) as usize;
        (at > 0).then_some(at)
    }

    /// Where the first term stands, and where the next offset is.
    pub fn first_term(&self) -> Option<(usize, usize)> {
        let mut at = self.size;
        let term = varint(&self.bytes, &mut at)?;
        Some((usize::try_from(term).ok()?, at))
    }
}

const PAGE_BITS: u32 = 31;
const HEIGHT_BITS: u32 = 5;
const SEGMENT_SHIFT: u32 = PAGE_BITS + HEIGHT_BITS + 1;

/// The block of a leaf.
pub(crate) fn leaf_id(segment: u32, page: u32) -> i64 {
    i64::from(segment) << SEGMENT_SHIFT | i64::from(page)
}

/// The block of a page of a doclist index.
pub(crate) fn skip_id(segment: u32, height: u32, page: u32) -> i64 {
    let skip = 1 << (PAGE_BITS + HEIGHT_BITS);
    leaf_id(segment, page) + skip + (i64::from(height) << PAGE_BITS)
}

/// The block of a page of tombstones.
pub(crate) fn tombstone_id(segment: u32, page: u32) -> i64 {
    leaf_id(segment + (1 << 16), page)
}
