//! The machine's cursors: on trees, on one record, on sorters, hashes, virtual tables, row sources.
//!
//! A tree cursor decodes its row's header lazily and remembers how far it got. A table cursor may owe a seek to an
//! index cursor (`deferred`); whoever touches it pays first.

use crate::hash::HashTable;
use crate::sorter::Sorter;
use iolite_base::{Bytes, Code, Encoding, Result, varint};
use iolite_btree::{Btree, Cursor};
use iolite_ext::{RowSource, VirtualCursor};
use iolite_value::{KeyInfo, Value, record};
use std::rc::Rc;

/// A cursor.
pub(crate) enum VCursor {
    Tree(Box<TreeCursor>),
    Pseudo(PseudoCursor),
    Sorter(Sorter),
    Hash(HashTable),
    Virtual { cursor: Box<dyn VirtualCursor>, null_row: bool },
    Source(Box<dyn RowSource>),
}

/// A cursor on a tree.
pub(crate) struct TreeCursor {
    pub cur: Cursor,
    /// Database number; `usize::MAX` for transient trees.
    pub db: usize,
    /// Of an index: how its fields compare.
    pub key: Option<Rc<KeyInfo>>,
    /// Stands on a row of NULLs.
    pub null_row: bool,
    /// The index cursor that knows where this one should be.
    pub deferred: Option<usize>,
    pub cache: RowCache,
    /// Where the last probe for a key ended: the entry there compared with the key. Forgotten when the cursor moves.
    pub probe: Option<std::cmp::Ordering>,
    /// `Sequence` counter.
    pub sequence: i64,
    /// The transient database, kept alive; cursors on the same one share it.
    pub transient: Option<(Btree, u32)>,
}

/// A cursor on one record in a register.
pub(crate) struct PseudoCursor {
    pub reg: usize,
    pub null_row: bool,
    pub cache: RowCache,
}

/// How far a record's header is decoded.
#[derive(Default)]
pub(crate) struct RowCache {
    pub valid: bool,
    /// Where the next header byte is, where the header ends, where the next field starts.
    header_at: u32,
    header_end: u32,
    body_at: u32,
    /// Serial type and start of each field decoded.
    fields: Vec<(u32, u32)>,
    /// A header that reaches beyond what lies in the page.
    long_header: Vec<u8>,
}

/// Lengths of the serial types that take one byte.
const SHORT: [u8; 128] = {
    let mut t = [0u8; 128];
    let mut i = 0;
    while i < 128 {
        t[i] = record::serial_len(i as u64) as u8;
        i += 1;
    }
    t
};

impl RowCache {
    #[inline]
    pub fn reset(&mut self) {
        self.valid = false;
    }

    /// Starts on a new record of which `local` is at hand.
    #[inline]
    fn start(&mut self, local: &[u8], total: usize) -> Result<()> {
        self.fields.clear();
        self.valid = true;
        let (len, n) = match local.first() {
            Some(b) if *b < 0x80 => (*b as u64, 1),
            // An empty record: all fields are missing.
            None => (0, 0),
            Some(_) => varint::get(local).ok_or(Code::Corrupt)?,
        };
        if len > total as u64 || len < n as u64 || len > 98_307 * 3 {
            self.valid = false;
            return Err(Code::Corrupt.into());
        }
        self.header_at = n as u32;
        self.header_end = len as u32;
        self.body_at = len as u32;
        Ok(())
    }

    /// Decodes up to `field`; answers its type and start, or `None` if the record is shorter. `header` holds at least
    /// the header.
    #[inline]
    fn locate(&mut self, header: &[u8], field: usize, total: usize) -> Result<Option<(u32, u32)>> {
        if let Some(f) = self.fields.get(field) {
            return Ok(Some(*f));
        }
        self.decode(header, field, total)
    }

    fn decode(&mut self, header: &[u8], field: usize, total: usize) -> Result<Option<(u32, u32)>> {
        let header = &header[..self.header_end as usize];
        let mut at = self.header_at as usize;
        let mut body = self.body_at as u64;
        let mut last = (0, 0);
        let mut known = self.fields.len();
        while known <= field {
            let Some(&b) = header.get(at) else {
                self.header_at = at as u32;
                self.body_at = body as u32;
                return Ok(None);
            };
            if b < 0x80 {
                at += 1;
                last = (b as u32, body as u32);
                body += SHORT[b as usize] as u64;
            } else {
                let (t, n) = varint::get(&header[at..]).ok_or(Code::Corrupt)?;
                at += n;
                if t > u32::MAX as u64 {
                    return Err(Code::Corrupt.into());
                }
                last = (t as u32, body as u32);
                body += record::serial_len(t) as u64;
            }
            if body > total as u64 {
                return Err(Code::Corrupt.into());
            }
            self.fields.push(last);
            known += 1;
        }
        self.header_at = at as u32;
        self.body_at = body as u32;
        Ok(Some(last))
    }
}

impl TreeCursor {
    pub fn new(cur: Cursor, db: usize, key: Option<Rc<KeyInfo>>) -> TreeCursor {
        let mut c = TreeCursor {
            cur,
            db,
            key,
            null_row: true,
            deferred: None,
            cache: RowCache::default(),
            probe: None,
            sequence: 0,
            transient: None,
        };
        if let Some(k) = &c.key {
            let info = k.clone();
            let n = info.fields.len();
            c.cur.set_compare(Rc::new(move |a, b| iolite_value::compare::records(a, b, n, &info)));
        }
        c
    }

    /// The cursor has been moved.
    #[inline]
    pub fn moved(&mut self, valid: bool) {
        self.null_row = !valid;
        self.deferred = None;
        self.cache.valid = false;
        self.probe = None;
    }

    /// Finds the row again if somebody wrote to the tree; a row that is gone reads as NULLs.
    #[inline]
    pub fn settle(&mut self) -> Result<()> {
        if self.cur.is_stale() {
            self.cache.valid = false;
            if self.cur.restore()? {
                self.null_row = true;
            }
        }
        Ok(())
    }

    /// Reads field `n` of the row into `out`; `false` if the record is shorter. `copy`: hold no page.
    #[inline(always)]
    pub fn field(&mut self, n: usize, enc: Encoding, copy: bool, out: &mut Value) -> Result<bool> {
        let total = self.cur.payload_len() as usize;
        let (buf, off, len) = self.cur.local();
        let local = &buf[off..off + len];
        if !self.cache.valid {
            self.cache.start(local, total)?;
        }
        if self.cache.header_end as usize > len {
            return self.far_field(n, enc, total, out);
        }
        let Some((t, at)) = self.cache.locate(local, n, total)? else { return Ok(false) };
        let at = at as usize;
        match t {
            0 => *out = Value::Null,
            8 => *out = Value::Int(0),
            9 => *out = Value::Int(1),
            1..=6 => match record::read_int(t as u64, local.get(at..).unwrap_or(&[])) {
                Some(i) if at + SHORT[t as usize] as usize <= len => *out = Value::Int(i),
                _ => *out = self.read_far(t, at as u32, SHORT[t as usize] as usize, enc)?,
            },
            _ => {
                let size = record::serial_len(t as u64);
                if at + size > len {
                    *out = self.read_far(t, at as u32, size, enc)?;
                } else if copy && t >= 12 {
                    *out = record::value_of(t as u64, &local[at..at + size], enc)?;
                } else {
                    *out = record::value_in(t as u64, buf, off + at, size, enc)?;
                }
            }
        }
        Ok(true)
    }

    /// A field of a record whose header does not end in the page.
    #[cold]
    fn far_field(&mut self, n: usize, enc: Encoding, total: usize, out: &mut Value) -> Result<bool> {
        if self.cache.long_header.is_empty() {
            let mut h = iolite_base::alloc::zeroed(self.cache.header_end as usize)?;
            self.cur.read_payload(0, &mut h)?;
            self.cache.long_header = h;
        }
        let header = std::mem::take(&mut self.cache.long_header);
        let found = self.cache.locate(&header, n, total);
        self.cache.long_header = header;
        let Some((t, at)) = found? else { return Ok(false) };
        *out = self.read_far(t, at, record::serial_len(t as u64), enc)?;
        Ok(true)
    }

    /// A field that reaches into overflow pages.
    #[cold]
    fn read_far(&mut self, t: u32, at: u32, size: usize, enc: Encoding) -> Result<Value> {
        let mut b = iolite_base::alloc::zeroed(size)?;
        self.cur.read_payload(at, &mut b)?;
        record::value_of(t as u64, &b, enc)
    }

    /// Calls `f` with the whole record.
    #[inline]
    pub fn with_record<T>(&mut self, f: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        let total = self.cur.payload_len() as usize;
        let (buf, off, len) = self.cur.local();
        if len == total {
            return f(&buf[off..off + len]);
        }
        let mut b = iolite_base::alloc::zeroed(total)?;
        self.cur.read_payload(0, &mut b)?;
        f(&b)
    }

    /// The rowid at the end of an index entry.
    pub fn index_rowid(&mut self) -> Result<i64> {
        let columns = self.key.as_ref().map_or(0, |k| k.columns);
        let mut v = Value::Null;
        match (self.field(columns.wrapping_sub(1), Encoding::Utf8, false, &mut v)?, v) {
            (true, Value::Int(i)) => Ok(i),
            _ => Err(Code::CorruptIndex.into()),
        }
    }
}

impl PseudoCursor {
    /// Field `n` of the record.
    #[inline]
    pub fn field(&mut self, data: &Bytes, n: usize, enc: Encoding) -> Result<Option<Value>> {
        if !self.cache.valid {
            self.cache.start(data, data.len())?;
        }
        let Some((t, at)) = self.cache.locate(data, n, data.len())? else { return Ok(None) };
        let size = record::serial_len(t as u64);
        Ok(Some(match t {
            0..=11 => record::value_of(t as u64, &data[at as usize..at as usize + size], enc)?,
            _ if t & 1 == 0 => Value::Blob(data.slice(at as usize, size), 0),
            _ if enc == Encoding::Utf8 => Value::Text(data.slice(at as usize, size), 0),
            _ => record::value_of(t as u64, &data[at as usize..at as usize + size], enc)?,
        }))
    }
}
