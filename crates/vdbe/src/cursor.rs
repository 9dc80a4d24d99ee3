//! The machine's cursors: on trees, on one record, on sorters, hashes, virtual tables, row sources.
//!
//! A tree cursor decodes its row's header lazily and remembers how far it got. A table cursor may owe a seek to an
//! index cursor (`deferred`); whoever touches it pays first.

use crate::hash::HashTable;
use crate::lookahead::Lookahead;
use crate::ops::queue::Queue;
use crate::ops::set::Set;
use crate::sorter::Sorter;
use iolite_base::{Buf, Bytes, Code, Encoding, Result, varint};
use iolite_btree::{Ahead, Btree, Cursor};
use iolite_bytecode::p5;
use iolite_ext::{RowSource, VirtualCursor};
use iolite_value::{KeyInfo, Value, record, utf16};
use std::rc::Rc;

/// A cursor.
pub(crate) enum VCursor {
    Tree(Box<TreeCursor>),
    Pseudo(PseudoCursor),
    Sorter(Sorter),
    Hash(HashTable),
    Lookahead(Lookahead),
    Set(Box<Set>),
    Queue(Box<Queue>),
    /// The module's cursor is not there while its code runs.
    Virtual {
        cursor: Option<Box<dyn VirtualCursor>>,
        null_row: bool,
    },
    Source(Box<dyn RowSource>),
    Window(Box<crate::window::Rows>),
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
    /// Of a WITHOUT ROWID table: the fields of that index which are its key, and room for their values.
    pub key_fields: Option<Rc<[i64]>>,
    pub key_values: Vec<Value>,
    /// What is expected of that index cursor.
    pub ahead: Ahead,
    pub cache: RowCache,
    /// Where the last probe for a key ended: the entry there compared with the key. Forgotten when the cursor moves.
    pub probe: Option<std::cmp::Ordering>,
    /// The row number that was probed for.
    pub probed: i64,
    /// It goes through all of a stored tree.
    pub whole: bool,
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

/// How far a record's header is decoded, for fields that [`near_field`] does not find.
#[derive(Default)]
pub(crate) struct RowCache {
    /// The decoding of this record has begun.
    started: bool,
    /// Serial type and start of the first `known` fields; beyond, what an earlier record left.
    fields: Vec<(u32, u32)>,
    known: usize,
    /// Where the next header byte is, where the header ends, where the next field starts.
    header_at: u32,
    header_end: u32,
    body_at: u32,
    /// A header that reaches beyond what lies in the page.
    long_header: Vec<u8>,
    /// Zeros, for blobs of which only the length is looked at.
    zeros: Option<Bytes>,
}

/// The flags of a `Column` of which only the bytes are counted.
const BYTES: u16 = p5::SIZE | p5::KIND;

/// What decoding up to a field found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Known,
    /// The record is shorter.
    Missing,
    /// The header ends beyond what is at hand.
    Far,
}

/// Lengths of the serial types that take one byte; nothing for the bytes that begin longer ones.
const SHORT: [u8; 256] = {
    let mut t = [0u8; 256];
    let mut i = 0;
    while i < 128 {
        t[i] = record::serial_len(i as u64) as u8;
        i += 1;
    }
    t
};

/// So many fields behind the one that is read are decoded with it.
const AHEAD: usize = 15;

impl RowCache {
    /// A blob of so many zeros.
    fn zeros(&mut self, size: usize) -> Result<Value> {
        let zeros = match self.zeros.take().filter(|z| z.len() >= size) {
            Some(z) => z,
            None => Buf::zeroed(size)?.into_bytes(),
        };
        let blob = zeros.slice(0, size);
        self.zeros = Some(zeros);
        Ok(Value::Blob(blob, 0))
    }

    /// Another record is the cursor's now.
    #[inline(always)]
    pub fn reset(&mut self) {
        self.started = false;
        self.known = 0;
    }

    /// Starts on a record of which `local` is at hand.
    #[inline(always)]
    fn start(&mut self, local: &[u8], total: usize) -> Result<()> {
        let (len, n) = match local.first() {
            Some(b) if *b < 0x80 => (*b as u64, 1),
            // An empty record: all fields are missing.
            None => (0, 0),
            Some(_) => varint::get(local).ok_or(Code::Corrupt)?,
        };
        if len > total as u64 || len < n as u64 || len > 98_307 * 3 {
            return Err(Code::Corrupt.into());
        }
        self.header_at = n as u32;
        self.header_end = len as u32;
        self.body_at = len as u32;
        self.started = true;
        Ok(())
    }

    /// Decodes up to `field`, which is not known yet, of a record of `total` bytes of which `local` is at hand.
    fn decode(&mut self, local: &[u8], field: usize, total: usize) -> Result<Field> {
        if !self.started {
            self.long_header.clear();
            self.start(local, total)?;
        }
        let Some(header) = local.get(..self.header_end as usize) else { return Ok(Field::Far) };
        // Whoever reads one field after the other reads more of them. (What is wrong with those is said when they are read.)
        if self.known == field && field > 0 && self.decode_header(header, field + AHEAD, total).is_ok() {
            return Ok(if self.known > field { Field::Known } else { Field::Missing });
        }
        self.decode_header(header, field, total)
    }

    #[inline(always)]
    fn decode_header(&mut self, header: &[u8], field: usize, total: usize) -> Result<Field> {
        if self.fields.len() <= field {
            self.grow(field);
        }
        let mut at = self.header_at as usize;
        let mut known = self.known;
        let fields = &mut self.fields[..=field];
        let mut body = self.body_at as u64;
        while known <= field {
            let rest = header.get(at..).unwrap_or(&[]);
            let short = short_types(rest, field + 1 - known);
            for (f, &t) in fields[known..].iter_mut().zip(&rest[..short]) {
                *f = (t as u32, body as u32);
                body += SHORT[t as usize] as u64;
            }
            known += short;
            at += short;
            if known > field || short == rest.len() {
                break;
            }
            let (t, n) = long_type(&rest[short..])?;
            fields[known] = (t, body as u32);
            body += record::serial_len(t as u64) as u64;
            at += n;
            known += 1;
        }
        // Fields only grow the sum: if the last one lies within the record, all do.
        if body > total as u64 {
            return Err(Code::Corrupt.into());
        }
        self.header_at = at as u32;
        self.body_at = body as u32;
        self.known = known;
        Ok(if known > field { Field::Known } else { Field::Missing })
    }

    #[cold]
    fn grow(&mut self, field: usize) {
        self.fields.resize(field + 1, (0, 0));
    }
}

/// How many of the first `most` types are a byte each.
#[inline(always)]
fn short_types(types: &[u8], most: usize) -> usize {
    let types = types.get(..most).unwrap_or(types);
    let (words, rest) = types.as_chunks::<8>();
    for (i, w) in words.iter().enumerate() {
        let long = u64::from_le_bytes(*w) & 0x8080_8080_8080_8080;
        if long != 0 {
            return 8 * i + long.trailing_zeros() as usize / 8;
        }
    }
    8 * words.len() + rest.iter().take_while(|t| **t < 0x80).count()
}

/// Fields before this one are found in the header anew each time, which takes less than keeping what was found.
const NEAR: usize = 16;

/// Before this one, in its first eight bytes, which need no further look at how long it is.
const NEXT: usize = 4;

/// Serial type, start and length of field `n`, less than [`NEAR`], of the record of which `len` bytes lie at `page[off..]`. `None`: it is
/// not there, or a type takes more than a byte, or it is not whole in the page.
#[inline(always)]
fn near_field(page: &[u8], off: usize, len: usize, n: usize) -> Option<(u32, usize, usize)> {
    let header = page.get(off..)?;
    if n < NEXT {
        let [head, types @ ..] = header.first_chunk::<8>()?;
        near_type(*head, &types[..n], types[n], len)
    } else {
        let [head, before @ .., t] = header.get(..n + 2)? else { return None };
        near_type(*head, before, *t, len)
    }
}

/// The same, of a header of `head` bytes, with the types of the fields before and of the field itself.
#[inline(always)]
fn near_type(head: u8, before: &[u8], t: u8, len: usize) -> Option<(u32, usize, usize)> {
    let mut at = head as usize;
    if at < before.len() + 2 {
        return None;
    }
    let mut all = head | t;
    for t in before {
        all |= t;
        at += SHORT[*t as usize] as usize;
    }
    let size = SHORT[t as usize] as usize;
    (all < 0x80 && at + size <= len).then_some((t as u32, at, size))
}

/// Reads field `n` of the record of which `len` bytes lie at `buf[off..]`, if it is one of those that [`near_field`] finds, and an
/// number, NULL or text or blob in the encoding of values. It goes to its place at once: a value handed on as a whole is read back in
/// other words than it was written in, for which the processor waits.
#[inline(always)]
pub(crate) fn near_value(
    buf: &Buf,
    off: usize,
    len: usize,
    n: usize,
    enc: Encoding,
    copy: bool,
    out: &mut Value,
) -> bool {
    if n >= NEAR {
        return false;
    }
    let page: &[u8] = buf;
    let Some((t, at, size)) = near_field(page, off, len, n) else { return false };
    match t {
        1..=6 => {
            let Some(i) = int_at(page, off + at, t, size) else { return false };
            match out {
                Value::Int(before) => *before = i,
                _ => *out = Value::Int(i),
            }
        }
        0 => *out = Value::Null,
        8 | 9 => *out = Value::Int(t as i64 - 8),
        7 => {
            let Some(b) = page.get(off + at..).and_then(|b| b.first_chunk::<8>()) else { return false };
            *out = Value::real(f64::from_be_bytes(*b));
        }
        12.. if copy && (t & 1 == 0 || enc == Encoding::Utf8) => {
            let Some(bytes) = page.get(off + at..off + at + size) else { return false };
            // Without memory for it, whoever reads it in another way says so.
            let done = if t & 1 == 0 { out.set_blob(bytes) } else { out.set_text(bytes) };
            return done.is_ok();
        }
        12.. if !copy && t & 1 == 0 => *out = Value::Blob(buf.slice(off + at, size), 0),
        12.. if !copy && enc == Encoding::Utf8 => *out = Value::Text(buf.slice(off + at, size), 0),
        _ => return false,
    }
    true
}

/// Field `n` of the record of which `len` bytes lie at `page[off..]`, if it is one of those that [`near_field`] finds, and an integer.
#[inline(always)]
pub(crate) fn near_int(page: &[u8], off: usize, len: usize, n: usize) -> Option<i64> {
    if n >= NEAR {
        return None;
    }
    match near_field(page, off, len, n)? {
        (t @ 1..=6, at, size) => int_at(page, off + at, t, size),
        (t @ 8..=9, ..) => Some(t as i64 - 8),
        _ => None,
    }
}

/// The integer of serial type `t`, 1 to 6, and of `size` bytes.
#[inline(always)]
fn int_at(page: &[u8], at: usize, t: u32, size: usize) -> Option<i64> {
    match page.get(at..).and_then(|b| b.first_chunk::<8>()) {
        // The bytes behind the field are shifted out.
        Some(b) => Some(i64::from_be_bytes(*b) >> (64 - 8 * size)),
        None => last_int(page, at, t),
    }
}

/// An integer at the page's end.
#[inline(never)]
fn last_int(page: &[u8], at: usize, t: u32) -> Option<i64> {
    record::read_int(t as u64, page.get(at..)?)
}

/// A serial type of more than one byte, and its length.
#[inline(never)]
fn long_type(header: &[u8]) -> Result<(u32, usize)> {
    let (t, n) = varint::get(header).ok_or(Code::Corrupt)?;
    Ok((u32::try_from(t).map_err(|_| Code::Corrupt)?, n))
}

impl TreeCursor {
    pub fn new(cur: Cursor, db: usize, key: Option<Rc<KeyInfo>>) -> TreeCursor {
        let mut c = TreeCursor {
            cur,
            db,
            key,
            null_row: true,
            deferred: None,
            key_fields: None,
            key_values: Vec::new(),
            ahead: Ahead::default(),
            cache: RowCache::default(),
            probe: None,
            probed: 0,
            whole: false,
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

    /// It stands on a row that can be read as it is: nothing is to be found first.
    #[inline(always)]
    pub fn is_on_row(&self) -> bool {
        !self.null_row && self.deferred.is_none() && !self.cur.is_stale()
    }

    /// The cursor has been moved.
    #[inline]
    pub fn moved(&mut self, valid: bool) {
        self.null_row = !valid;
        self.deferred = None;
        self.cache.reset();
        self.probe = None;
    }

    /// Finds the row again if somebody wrote to the tree; a row that is gone reads as NULLs.
    #[inline]
    pub fn settle(&mut self) -> Result<()> {
        if self.cur.is_stale() {
            self.cache.reset();
            self.probe = None;
            if self.cur.restore()? {
                self.null_row = true;
            }
        }
        Ok(())
    }

    /// Reads field `n` of the row into `out`; `false` if the record is shorter. `how`: what the flags of a `Column` say.
    #[inline(always)]
    pub fn field(&mut self, n: usize, enc: Encoding, how: u16, out: &mut Value) -> Result<bool> {
        let (buf, off, len) = self.cur.local();
        if near_value(buf, off, len, n, enc, how & p5::COPY != 0, out) {
            return Ok(true);
        }
        self.any_field(n, enc, how, out)
    }

    /// The same for fields that [`near_value`] leaves.
    #[inline(never)]
    fn any_field(&mut self, n: usize, enc: Encoding, how: u16, out: &mut Value) -> Result<bool> {
        let (buf, off, len) = self.cur.local();
        let near = if n < NEAR { near_field(buf, off, len, n) } else { None };
        let (t, at) = match near {
            Some((t, at, _)) => (t, at as u32),
            None => {
                if n >= self.cache.known {
                    let total = self.cur.payload_len() as usize;
                    match self.cache.decode(&buf[off..off + len], n, total)? {
                        Field::Known => {}
                        Field::Missing => return Ok(false),
                        Field::Far => return self.far_field(n, enc, how, out),
                    }
                }
                self.cache.fields[n]
            }
        };
        let (from, size) = (at as usize, record::serial_len(t as u64));
        if from + size > len {
            *out = self.read_far(t, at, enc, how)?;
        } else if how & p5::COPY != 0 && t >= 12 && (t & 1 == 0 || enc == Encoding::Utf8) {
            let bytes = &buf[off + from..off + from + size];
            match t & 1 {
                0 => out.set_blob(bytes)?,
                _ => out.set_text(bytes)?,
            }
        } else if t >= 12 && t & 1 != 0 && enc != Encoding::Utf8 {
            utf16::decode_into(&buf[off + from..off + from + size], enc, out)?;
        } else {
            *out = record::value_in(t as u64, buf, off + from, size, enc)?;
        }
        Ok(true)
    }

    /// A field of a record whose header does not end in the page.
    #[cold]
    fn far_field(&mut self, n: usize, enc: Encoding, how: u16, out: &mut Value) -> Result<bool> {
        let total = self.cur.payload_len() as usize;
        if self.cache.long_header.is_empty() {
            let mut h = iolite_base::alloc::zeroed(self.cache.header_end as usize)?;
            self.cur.read_payload(0, &mut h)?;
            self.cache.long_header = h;
        }
        let header = std::mem::take(&mut self.cache.long_header);
        let found = self.cache.decode_header(&header, n, total);
        self.cache.long_header = header;
        if found? != Field::Known {
            return Ok(false);
        }
        let (t, at) = self.cache.fields[n];
        *out = self.read_far(t, at, enc, how)?;
        Ok(true)
    }

    /// A field that reaches into overflow pages, or a value that is like it in all that is looked at.
    #[cold]
    fn read_far(&mut self, t: u32, at: u32, enc: Encoding, how: u16) -> Result<Value> {
        let size = record::serial_len(t as u64);
        let there = at as usize + size <= self.cur.payload_len() as usize;
        match how & BYTES {
            p5::KIND if there && t >= 12 && t & 1 == 0 => return Value::blob(&[]),
            p5::KIND if there && t >= 12 => return Value::text(""),
            p5::SIZE if there && t >= 12 && t & 1 == 0 => return self.cache.zeros(size),
            BYTES if there && t >= 12 && (t & 1 == 0 || enc == Encoding::Utf8) => {
                return self.cache.zeros(size);
            }
            _ => {}
        }
        // With a zero behind it, which C gets to see.
        let mut b = iolite_base::Buf::with_capacity(size + 1)?;
        // NULL, 0 and 1 stand in the header: nobody goes to the page that they would be in.
        if size > 0 {
            self.cur.append_payload(at, size, &mut b)?;
        }
        b.push(&[0]);
        record::value_in(t as u64, &b, 0, size, enc)
    }

    /// Calls `f` with the whole record.
    #[inline]
    pub fn with_record<T>(&mut self, f: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        let total = self.cur.payload_len() as usize;
        let (buf, off, len) = self.cur.local();
        if len == total {
            return f(&buf[off..off + len]);
        }
        let mut b = iolite_base::Buf::with_capacity(total)?;
        self.cur.append_payload(0, total, &mut b)?;
        f(&b)
    }

    /// The rowid at the end of an index entry.
    pub fn index_rowid(&mut self) -> Result<i64> {
        let columns = self.key.as_ref().map_or(0, |k| k.columns);
        let mut v = Value::Null;
        match (self.field(columns.wrapping_sub(1), Encoding::Utf8, 0, &mut v)?, v) {
            (true, Value::Int(i)) => Ok(i),
            _ => Err(Code::CorruptIndex.into()),
        }
    }
}

impl PseudoCursor {
    /// Field `n` of the record.
    #[inline]
    pub fn field(&mut self, data: &Bytes, n: usize, enc: Encoding) -> Result<Option<Value>> {
        let near = if n < NEAR { near_field(data, 0, data.len(), n) } else { None };
        let (t, at) = match near {
            Some((t, at, _)) => (t, at as u32),
            None => {
                if n >= self.cache.known && self.cache.decode(data, n, data.len())? != Field::Known {
                    return Ok(None);
                }
                self.cache.fields[n]
            }
        };
        let size = record::serial_len(t as u64);
        Ok(Some(match t {
            0..=11 => record::value_of(t as u64, &data[at as usize..at as usize + size], enc)?,
            _ if t & 1 == 0 => Value::Blob(data.slice(at as usize, size), 0),
            _ if enc == Encoding::Utf8 => Value::Text(data.slice(at as usize, size), 0),
            _ => record::value_of(t as u64, &data[at as usize..at as usize + size], enc)?,
        }))
    }
}
