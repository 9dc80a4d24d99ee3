//! The records of a leaf page: where the wanted fields lie, found once for records that begin alike.
//!
//! What always holds: nothing outside of the page is read, whatever its bytes are; a damaged page is an error.
//!
//! What it does not know: what becomes of the fields.

use super::*;

/// What the reading of leaves needs to know.
pub(super) struct Pages<'a> {
    pub bt: Option<&'a Btree>,
    pub layout: Layout,
    /// A payload that lies on several pages.
    pub whole: Vec<u8>,
    pub fields: Vec<(usize, usize)>,
    pub rowids: Vec<usize>,
    pub wanted: &'a [Wanted<'a>],
    /// What the last plain record was like.
    pub shape: Shape,
    /// Fields of plain records of a leaf that no builder has yet: for each field room for all cells.
    pub spots: Vec<Spot>,
    pub cells: usize,
    /// How many such records.
    pub found: usize,
    /// Where the fields of a record begin.
    pub begins: [u32; 128],
    /// The header's bytes up to the last wanted field's type, if these are few.
    pub mask: Option<u128>,
    /// Records of this leaf that did not begin like the one before, and leaves until that is asked again.
    pub unlike: usize,
    pub until: usize,
}

/// Where records of a leaf mostly begin unlike the one before, that is not asked in so many leaves that follow.
pub(super) const NOT_ASKED: usize = 15;

/// A field of a leaf: its type, of one byte, in the uppermost byte, and where it begins: a page has at most 65,536 bytes.
pub(super) type Spot = u32;

/// Records that begin alike have their fields at the same places.
#[derive(Default)]
pub(super) struct Shape {
    /// The first bytes of the header, up to the last wanted field's type.
    pub mask: u128,
    pub head: u128,
    /// The wanted fields, from the record's beginning, and where the last one ends.
    pub spots: Vec<Spot>,
    pub end: usize,
}

impl Pages<'_> {
    /// Appends the rows of a leaf; answers how many.
    pub(super) fn leaf(&mut self, page: &[u8], pgno: Pgno, builders: &mut [Builder<'_>]) -> Result<u32> {
        let (hdr, ncell) = leaf_header(page, pgno, &self.layout)?;
        let room = ncell * self.fields.len();
        self.spots.clear();
        alloc::reserve(&mut self.spots, room)?;
        self.spots.resize(room, 0);
        (self.cells, self.found) = (ncell, 0);
        self.until = match self.until {
            0 if self.unlike * 4 > ncell => NOT_ASKED,
            n => n.saturating_sub(1),
        };
        self.unlike = 0;
        for i in 0..ncell {
            let at = be::get_u16(page, hdr + 8 + 2 * i) as usize;
            // By far the most rows: short, whole on the leaf.
            if let Some(c) = Cell::table_leaf(page, at, &self.layout) {
                for &b in &self.rowids {
                    builders[b].push(Field::Int(c.rowid))?;
                }
                let (from, len) = (c.at as usize, c.payload as usize);
                if !self.fields.is_empty() && !self.plain_record(page, from, len)? {
                    self.pass_on(page, builders)?;
                    let local = page.get(from..from + len).ok_or_else(corrupt)?;
                    record_fields(local, local, &self.fields, self.wanted, builders)?;
                }
                continue;
            }
            let cell = Cell::read(page, at, TreeKind::Table, true, &self.layout)?;
            for &b in &self.rowids {
                builders[b].push(Field::Int(cell.rowid))?;
            }
            let local = page.get(cell.at as usize..(cell.at + cell.local) as usize).ok_or_else(corrupt)?;
            if self.fields.is_empty() {
                continue;
            }
            self.pass_on(page, builders)?;
            if cell.overflows() && reaches_out(local, &self.fields) {
                let bt = self.bt.ok_or(Code::Internal)?;
                bt.raw_payload(page, &cell, &mut self.whole)?;
                record_fields(&self.whole, local, &self.fields, self.wanted, builders)?;
            } else {
                record_fields(local, local, &self.fields, self.wanted, builders)?;
            }
        }
        self.pass_on(page, builders)?;
        Ok(ncell as u32)
    }

    /// Gives the builders the fields that were found, a column at a time.
    pub(super) fn pass_on(&mut self, page: &[u8], builders: &mut [Builder<'_>]) -> Result<()> {
        if self.found > 0 {
            for (spots, &(_, b)) in self.spots.chunks_exact(self.cells).zip(&self.fields) {
                builders[b].push_all(page, &spots[..self.found])?;
            }
            self.found = 0;
        }
        Ok(())
    }

    /// Notes the fields of a record at `at` that is of the last shape.
    #[inline(always)]
    pub(super) fn note(&mut self, at: usize) {
        let mut to = self.found;
        for s in &self.shape.spots {
            self.spots[to] = s + at as u32;
            to += self.cells;
        }
        self.found += 1;
    }

    /// Finds the wanted fields of a record like most: all of it on the leaf, types of one byte, no field missing. `false`: it
    /// is another one.
    #[inline(always)]
    pub(super) fn plain_record(&mut self, page: &[u8], at: usize, len: usize) -> Result<bool> {
        if let (Some(mask), Some(head)) = (self.mask, page.get(at..).and_then(|p| p.first_chunk::<16>())) {
            let head = u128::from_le_bytes(*head);
            if self.until == 0 && self.shape.mask != 0 && head & mask == self.shape.head {
                if self.shape.end > len {
                    return Err(corrupt());
                }
                self.note(at);
                return Ok(true);
            }
            self.unlike += 1;
            if let Some(begins) = heads::begins(head, mask) {
                return self.short_head(at, len, head, begins);
            }
        }
        self.other_shape(page, at, len)
    }

    /// The same for a record of which it is known where the wanted fields begin.
    #[inline(always)]
    fn short_head(&mut self, at: usize, len: usize, head: u128, begins: [u8; heads::HEAD]) -> Result<bool> {
        let types = head.to_le_bytes();
        let last = self.fields.last().map_or(0, |f| f.0);
        if (types[0] as usize) < last + 2 {
            // A field is missing.
            return Ok(false);
        }
        let end = begins[last + 1] as usize;
        if end > len {
            return Err(corrupt());
        }
        let spots = self.spots.iter_mut().skip(self.found).step_by(self.cells);
        for (&(want, _), to) in self.fields.iter().zip(spots) {
            *to = (types[want + 1] as u32) << 24 | (begins[want] as u32 + at as u32);
        }
        self.found += 1;
        if self.until == 0 {
            for (&(want, _), spot) in self.fields.iter().zip(&mut self.shape.spots) {
                *spot = (types[want + 1] as u32) << 24 | begins[want] as u32;
            }
            self.shape.mask = self.mask.unwrap_or(0);
            self.shape.head = head & self.shape.mask;
            self.shape.end = end;
        }
        Ok(true)
    }

    /// The same for a record that does not begin like the one before.
    fn other_shape(&mut self, page: &[u8], at: usize, len: usize) -> Result<bool> {
        let Some(&first) = page.get(at) else { return Ok(false) };
        let header = first as usize;
        let Some(types) = page.get(at + 1..at + header) else { return Ok(false) };
        let last = self.fields.last().map_or(0, |f| f.0);
        if first >= 0x80 || last >= types.len() {
            return Ok(false);
        }
        let shape = &mut self.shape;
        shape.mask = 0;
        // Where each field begins, and whether a type takes more than one byte.
        let (mut body, mut long) = (header, 0);
        for (t, begins) in types[..=last].iter().zip(&mut self.begins) {
            *begins = body as u32;
            body += LENGTHS[*t as usize & 127] as usize;
            long |= t;
        }
        if long >= 0x80 {
            return Ok(false);
        }
        for (&(want, _), spot) in self.fields.iter().zip(&mut shape.spots) {
            *spot = (types[want] as u32) << 24 | self.begins[want];
        }
        // What is wanted lies in the record.
        if body > len || at + len > page.len() {
            return Err(corrupt());
        }
        shape.end = body;
        if let (Some(head), true) = (page[at..].first_chunk::<16>(), last + 2 <= 16) {
            shape.mask = u128::MAX >> (128 - 8 * (last + 2));
            shape.head = u128::from_le_bytes(*head) & shape.mask;
        }
        self.note(at);
        Ok(true)
    }
}

/// The field of a spot.
#[inline(always)]
pub(super) fn field_at(page: &[u8], spot: Spot) -> Result<Field<'_>> {
    let (t, from) = ((spot >> 24) as usize, (spot & 0xff_ffff) as usize);
    let n = LENGTHS[t & 127] as usize;
    Ok(match t {
        1..=6 => Field::Int(int_at(page, t, from)?),
        8 | 9 => Field::Int(t as i64 - 8),
        7 => match record::read_real(page.get(from..from + n).ok_or_else(corrupt)?) {
            r if r.is_nan() => Field::Null,
            r => Field::Real(r),
        },
        0 | 10 | 11 => Field::Null,
        _ => {
            let bytes = page.get(from..from + n).ok_or_else(corrupt)?;
            if t & 1 == 0 { Field::Blob(bytes) } else { Field::Text(bytes) }
        }
    })
}

/// An integer of type 1 to 6, 8 or 9, without a jump by its type; `None`: it is none, or lies at the page's end.
#[inline(always)]
pub(super) fn int_of(page: &[u8], spot: Spot) -> Option<i64> {
    let (t, from) = (spot >> 24, (spot & 0xff_ffff) as usize);
    let n = LENGTHS[t as usize & 127] as u32;
    let x = page.get(from..)?.first_chunk::<8>()?;
    if t > 9 || 0b11_0111_1110 >> t & 1 == 0 {
        return None;
    }
    // The bytes of the number, and whatever follows them, shifted out again: all of them for 0 and 1.
    let v = i64::from_be_bytes(*x) >> ((64 - 8 * n) & 63);
    Some(if n == 0 { (t == 9) as i64 } else { v })
}

/// An integer of type 1 to 6.
#[inline(always)]
fn int_at(page: &[u8], t: usize, from: usize) -> Result<i64> {
    match page.get(from..).and_then(|p| p.first_chunk::<8>()) {
        // The bytes of the number, and whatever follows them, shifted out again.
        Some(x) => Ok(i64::from_be_bytes(*x) >> (64 - 8 * LENGTHS[t & 127] as u32)),
        None => page.get(from..).and_then(|p| record::read_int(t as u64, p)).ok_or_else(corrupt),
    }
}

/// Where a leaf's header begins, and how many cells there are.
pub(crate) fn leaf_header(page: &[u8], pgno: Pgno, layout: &Layout) -> Result<(usize, usize)> {
    let hdr = if pgno == 1 { 100 } else { 0 };
    if page[hdr] != TABLE_LEAF {
        return Err(corrupt());
    }
    let ncell = be::get_u16(page, hdr + 3) as usize;
    if hdr + 8 + 2 * ncell > layout.usable as usize {
        return Err(corrupt());
    }
    Ok((hdr, ncell))
}

/// Body bytes of the serial types that take one byte of header.
pub(super) const LENGTHS: [u8; 128] = {
    let mut t = [0; 128];
    let mut i = 0;
    while i < 128 {
        t[i] = record::serial_len(i as u64) as u8;
        i += 1;
    }
    t
};

/// Whether a wanted field of a record does not lie within `local`, the part of the record on its leaf.
pub(super) fn reaches_out(local: &[u8], fields: &[(usize, usize)]) -> bool {
    let Some(&(last, _)) = fields.last() else { return false };
    let Some((header, mut at)) = varint::get(local).filter(|h| h.0 <= local.len() as u64) else {
        return true;
    };
    let (header, mut body) = (header as usize, header);
    for _ in 0..=last {
        if at >= header {
            break;
        }
        let Some((t, n)) = varint::get(&local[at..header]) else { return true };
        at += n;
        body = body.saturating_add(record::serial_len(t) as u64);
    }
    body > local.len() as u64
}

/// Appends the wanted fields of one record to their builders. `local` is the part of the record on its leaf.
#[inline]
fn record_fields(
    payload: &[u8],
    local: &[u8],
    fields: &[(usize, usize)],
    wanted: &[Wanted<'_>],
    builders: &mut [Builder<'_>],
) -> Result<()> {
    let (header, mut at) = match payload.first() {
        Some(&b) if b < 0x80 => (b as usize, 1),
        _ => match varint::get(payload) {
            Some((h, n)) if h <= payload.len() as u64 => (h as usize, n),
            _ => return Err(corrupt()),
        },
    };
    if header > payload.len() || header < at {
        return Err(corrupt());
    }
    let spilled = header > local.len();
    let mut body = header;
    let mut field = 0;
    for &(want, b) in fields {
        let mut found = None;
        while at < header {
            let t = match payload[at] {
                v if v < 0x80 => {
                    at += 1;
                    v as u64
                }
                _ => {
                    let (t, n) = varint::get(&payload[at..header]).ok_or_else(corrupt)?;
                    at += n;
                    t
                }
            };
            let len = record::serial_len(t);
            let from = body;
            body += len;
            field += 1;
            if field > want {
                found = Some((t, from, len));
                break;
            }
        }
        let builder = &mut builders[b];
        builder.pure &= !spilled;
        let Some((t, from, len)) = found else {
            builder.push(wanted[b].default)?;
            continue;
        };
        if from + len > local.len() {
            builder.pure = false;
        }
        let bytes = payload.get(from..from + len).ok_or_else(corrupt)?;
        let f = match t {
            0 | 10 | 11 => Field::Null,
            7 => match record::read_real(bytes) {
                r if r.is_nan() => Field::Null,
                r => Field::Real(r),
            },
            1..=9 => Field::Int(record::read_int(t, bytes).ok_or_else(corrupt)?),
            _ if t & 1 == 0 => Field::Blob(bytes),
            _ => Field::Text(bytes),
        };
        builder.push(f)?;
    }
    Ok(())
}
