//! Dictionaries: the different values of a column, which all segments of it share.
//!
//! What always holds: an entry that was added never changes, and no value has two; 1 and 1.0 are two values.

use super::*;
use crate::memory::room;

/// The distinct values of a column, numbered in the order in which they were met. Values that compare equal but are not
/// the same (1 and 1.0) have numbers of their own.
#[derive(Clone, Default)]
pub(crate) struct Dict {
    pub(super) entries: Vec<Entry>,
    pub(super) bytes: Vec<u8>,
    /// Open addressing: a hash, and 0 (empty) or number + 1.
    pub(super) index: Vec<(u32, u32)>,
    /// An entry for rows without a value, where no row had a NULL when it was added.
    pub(super) null: Option<u32>,
    /// Some row has a NULL.
    pub(super) has_null: bool,
}

/// A dictionary does not grow beyond this many entries, or bytes: values that are nearly all different are not worth
/// one.
static DICT_ENTRIES: AtomicUsize = AtomicUsize::new(1 << 18);
const DICT_BYTES: usize = 32 << 20;

/// Sets how many entries a dictionary has at most from now on, in all stores of the process: tests want small ones.
pub fn set_dictionary_entries(n: usize) {
    DICT_ENTRIES.store(n, Relaxed);
}

impl Dict {
    /// How many values.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// About what it takes.
    pub fn held(&self) -> usize {
        self.bytes.len() + self.entries.len() * size_of::<Entry>() + self.index.len() * 8
    }

    /// A value.
    #[inline]
    pub fn get(&self, code: u32) -> Field<'_> {
        field_of(&self.entries[code as usize], &self.bytes)
    }

    /// Whether SQL takes no two entries for equal: there are not both integers and reals.
    pub fn is_plain(&self) -> bool {
        let has = |k: Kind| self.entries.iter().any(|e| e.kind == k);
        !has(Kind::Real) || !has(Kind::Int) && self.find(Field::Real(-0.0)).is_none()
    }

    /// The number of a value, which is added if it is new; `None`: the dictionary is full.
    #[inline]
    pub fn code(&mut self, f: Field<'_>) -> Result<Option<u32>> {
        if matches!(f, Field::Null) {
            self.has_null = true;
        }
        self.code_of(f)
    }

    /// The entry that stands for "no row", if there is one that no row uses.
    pub fn added_null(&self) -> Option<u32> {
        if self.has_null { None } else { self.null }
    }

    /// Adds such an entry; `None`: rows use it.
    pub fn add_null(&mut self) -> Result<Option<u32>> {
        if self.has_null {
            return Ok(None);
        }
        self.null = self.code_of(Field::Null)?;
        Ok(self.null)
    }

    /// The number of a value, if it has one.
    pub fn find(&self, f: Field<'_>) -> Option<u32> {
        if self.index.is_empty() { None } else { self.look(f.parts()).ok() }
    }

    #[inline]
    pub(super) fn code_of(&mut self, f: Field<'_>) -> Result<Option<u32>> {
        if self.index.is_empty() {
            self.index = vec![(0, 0); 64];
        }
        let parts = f.parts();
        match self.look(parts) {
            Ok(n) => Ok(Some(n)),
            Err((at, hash)) => self.add(at, hash, parts),
        }
    }

    /// The number of a value, or its place in the index and its hash.
    #[inline(always)]
    pub(super) fn look(
        &self,
        (kind, data, bytes): (Kind, u64, &[u8]),
    ) -> std::result::Result<u32, (usize, u32)> {
        let hash = quick_hash(kind, data, bytes);
        let mask = self.index.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let (h, n) = self.index[at];
            if n == 0 {
                break;
            }
            if h == hash {
                let e = &self.entries[n as usize - 1];
                let same = match kind {
                    Kind::Text | Kind::Blob => {
                        e.len as usize == bytes.len()
                            && same_bytes(&self.bytes[e.data as usize..][..bytes.len()], bytes)
                    }
                    _ => e.data == data,
                };
                if same && e.kind == kind {
                    return Ok(n - 1);
                }
            }
            at = (at + 1) & mask;
        }
        Err((at, hash))
    }

    /// A new value, whose place in the index is `at`.
    #[cold]
    fn add(&mut self, at: usize, hash: u32, parts: (Kind, u64, &[u8])) -> Result<Option<u32>> {
        let (kind, data, bytes) = parts;
        if self.entries.len() >= DICT_ENTRIES.load(Relaxed) || self.bytes.len() + bytes.len() > DICT_BYTES {
            return Ok(None);
        }
        let n = self.entries.len() as u32;
        let data = if matches!(kind, Kind::Text | Kind::Blob) { self.bytes.len() as u64 } else { data };
        alloc::reserve(&mut self.bytes, bytes.len())?;
        alloc::reserve(&mut self.entries, 1)?;
        self.bytes.extend_from_slice(bytes);
        self.entries.push(Entry { kind, len: bytes.len() as u32, data });
        self.index[at] = (hash, n + 1);
        if self.entries.len() * 2 > self.index.len() {
            self.grow()?;
        }
        Ok(Some(n))
    }

    fn grow(&mut self) -> Result<()> {
        let n = self.index.len() * 2;
        let mut index = room(n)?;
        index.resize(n, (0, 0));
        for slot in self.index.iter().filter(|s| s.1 != 0) {
            let mut at = slot.0 as usize & (n - 1);
            while index[at].1 != 0 {
                at = (at + 1) & (n - 1);
            }
            index[at] = *slot;
        }
        self.index = index;
        Ok(())
    }
}
