//! A node: one page of a tree (file format, section 1.6), and the cells on it.
//!
//! ```text
//! [100 bytes of file header on page 1]
//! kind 1 | first freeblock 2 | cells 2 | content start 2 | fragments 1 |
//! [right child 4] | cell pointers | gap | cell content, freeblocks between | reserved
//! ```
//!
//! What always holds for a [`Node`]: its kind fits its tree, and the pointers of all its cells lie inside the
//! page. What the pointers point to is checked when it is read; nothing here trusts a byte of the file.

use iolite_base::{Buf, Code, Error, Pgno, Result, be, varint};

/// What a tree is keyed by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TreeKind {
    /// By row number; the payload is data.
    Table,
    /// By the payload itself.
    Index,
}

/// The sizes that follow from page size and reserved bytes.
#[derive(Clone, Copy, Default, Debug)]
pub struct Layout {
    /// Page size less reserved bytes.
    pub usable: u32,
    /// The largest payload kept whole on a table leaf.
    pub max_table: u32,
    /// The largest payload kept whole on an index node.
    pub max_index: u32,
    /// The least part of an overflowing payload that stays on the node.
    pub min_local: u32,
}

impl Layout {
    /// The sizes for pages of which `usable` bytes may be used.
    pub fn new(usable: u32) -> Layout {
        Layout {
            usable,
            max_table: usable - 35,
            max_index: (usable - 12) * 64 / 255 - 23,
            min_local: (usable - 12) * 32 / 255 - 23,
        }
    }

    /// How much of a payload stays on the node.
    #[inline(always)]
    pub fn local(&self, kind: TreeKind, payload: u32) -> u32 {
        let max = match kind {
            TreeKind::Table => self.max_table,
            TreeKind::Index => self.max_index,
        };
        if payload <= max { payload } else { self.local_of_large(max, payload) }
    }

    #[inline(never)]
    fn local_of_large(&self, max: u32, payload: u32) -> u32 {
        let k = self.min_local + (payload - self.min_local) % (self.usable - 4);
        if k <= max { k } else { self.min_local }
    }
}

/// Table leaf.
pub const TABLE_LEAF: u8 = 0x0d;
/// Table interior.
pub const TABLE_INTERIOR: u8 = 0x05;
/// Index leaf.
pub const INDEX_LEAF: u8 = 0x0a;
/// Index interior.
pub const INDEX_INTERIOR: u8 = 0x02;

/// The byte that opens a node of this sort.
pub fn flag(kind: TreeKind, leaf: bool) -> u8 {
    match (kind, leaf) {
        (TreeKind::Table, true) => TABLE_LEAF,
        (TreeKind::Table, false) => TABLE_INTERIOR,
        (TreeKind::Index, true) => INDEX_LEAF,
        (TreeKind::Index, false) => INDEX_INTERIOR,
    }
}

/// The malformed-file error.
#[cold]
#[inline(never)]
pub fn corrupt() -> Error {
    Code::Corrupt.into()
}

/// Where the node's header begins.
#[inline(always)]
pub fn header_at(pgno: Pgno) -> usize {
    if pgno == 1 { 100 } else { 0 }
}

/// A page in a cursor's path, with what was read from its header.
#[derive(Clone)]
pub struct Node {
    /// The page.
    pub page: Buf,
    /// Its number.
    pub pgno: Pgno,
    /// Cells.
    pub ncell: u32,
    /// The cell (or, for an interior node, the child) that the cursor is on.
    pub idx: u32,
    /// Where the cell pointers begin.
    pub ptrs: u32,
    /// No children.
    pub leaf: bool,
}

impl Node {
    /// Reads a page's header.
    #[inline(always)]
    pub fn new(page: Buf, pgno: Pgno, kind: TreeKind, layout: &Layout) -> Result<Node> {
        match Node::head(&page, pgno, kind, layout) {
            Some((leaf, ncell, ptrs)) => Ok(Node { page, pgno, ncell, idx: 0, ptrs, leaf }),
            None => Err(corrupt()),
        }
    }

    /// What a page's header says: whether it is a leaf, how many cells, where their pointers begin. `None`: the page is no
    /// node of such a tree.
    #[inline(always)]
    pub fn head(page: &[u8], pgno: Pgno, kind: TreeKind, layout: &Layout) -> Option<(bool, u32, u32)> {
        let hdr = header_at(pgno);
        let (leaf, interior) = match kind {
            TreeKind::Table => (TABLE_LEAF, TABLE_INTERIOR),
            TreeKind::Index => (INDEX_LEAF, INDEX_INTERIOR),
        };
        let f = page[hdr];
        let leaf = if f == leaf {
            true
        } else if f == interior {
            false
        } else {
            return None;
        };
        let ncell = be::get_u16(page, hdr + 3) as u32;
        let ptrs = hdr as u32 + if leaf { 8 } else { 12 };
        if ptrs + 2 * ncell > layout.usable {
            return None;
        }
        Some((leaf, ncell, ptrs))
    }

    /// What its tree is keyed by.
    #[inline]
    pub fn kind(&self) -> TreeKind {
        match self.page[self.header()] {
            TABLE_LEAF | TABLE_INTERIOR => TreeKind::Table,
            _ => TreeKind::Index,
        }
    }

    /// Where the header begins.
    #[inline(always)]
    pub fn header(&self) -> usize {
        header_at(self.pgno)
    }

    /// For changing the page.
    #[inline(always)]
    pub fn frame(&self, layout: &Layout) -> Frame {
        Frame {
            hdr: self.header(),
            ptrs: self.ptrs as usize,
            ncell: self.ncell as usize,
            usable: layout.usable as usize,
        }
    }

    /// Where cell `i` begins.
    #[inline(always)]
    pub fn cell_at(&self, i: u32) -> usize {
        be::get_u16(&self.page, (self.ptrs + 2 * i) as usize) as usize
    }

    /// The child left of cell `i`; for `i == ncell`, the right child.
    #[inline(always)]
    pub fn child(&self, i: u32) -> Result<Pgno> {
        let at = if i >= self.ncell { self.header() + 8 } else { self.cell_at(i) };
        match self.page.get(at..at + 4) {
            Some(b) => Ok(be::get_u32(b, 0)),
            None => Err(corrupt()),
        }
    }

    /// Whether the length of a cell alone says that all of its payload lies on this node. (Of an interior node's cell the child comes
    /// first.)
    #[inline(always)]
    pub fn is_whole(&self, i: u32, kind: TreeKind, layout: &Layout) -> bool {
        let at = self.cell_at(i) + if self.leaf { 0 } else { 4 };
        let most = if kind == TreeKind::Table { layout.max_table } else { layout.max_index };
        match self.page.get(at..at + 2) {
            Some(&[a, _]) if a < 0x80 => a as u32 <= most,
            Some(&[a, b]) if b < 0x80 => (a as u32 & 0x7f) << 7 | b as u32 <= most,
            _ => false,
        }
    }

    /// Goes on to the next child; how many entries lie between: one in an interior node of an index, unless that child was the last.
    #[inline]
    pub fn passes_entry(&mut self, kind: TreeKind) -> u64 {
        self.idx += 1;
        (kind == TreeKind::Index && self.idx <= self.ncell) as u64
    }

    /// The first cell of a table node whose row number is not below that of `sought`; `ncell` if there is
    /// none. `range` is where row numbers of this node lie as far as is known; it only says where to look first.
    #[inline]
    pub fn search_rowid(&self, sought: &Sought, range: (i64, i64)) -> Result<u32> {
        if self.leaf { self.search::<true>(sought, range) } else { self.search::<false>(sought, range) }
    }

    /// Row numbers mostly follow each other without large gaps, so the place of one can be computed: the first cell
    /// looked at is the right one or next to it. Each look at a cell that is not in a near cache costs as much as the rest
    /// of the search, and halving looks at six of a full leaf.
    #[inline]
    fn search<const LEAF: bool>(&self, sought: &Sought, range: (i64, i64)) -> Result<u32> {
        let page: &[u8] = &self.page;
        let ptrs = self.ptrs as usize;
        let Some(pointers) = page.get(ptrs..ptrs + 2 * self.ncell as usize) else { return Err(corrupt()) };
        let (pointers, _) = pointers.as_chunks::<2>();
        let cell = |i: usize| u16::from_be_bytes(pointers[i]) as usize;
        let (mut low, mut high) = (0, pointers.len());
        if high > FEW
            && let Some(guess) = self.guess::<LEAF>(sought.rowid, range, &cell, high)
            && let Some(found) = quick_rowid::<LEAF>(page, cell(guess))
        {
            if found == sought.rowid {
                return Ok(guess as u32);
            }
            let up = found < sought.rowid;
            if up {
                low = guess + 1;
            } else {
                high = guess;
            }
            // A few steps of growing width away from it, then by halves between the last two.
            for step in [1, 2, 4] {
                if high - low < step {
                    break;
                }
                let at = if up { low + step - 1 } else { high - step };
                let Some(below) = is_below::<LEAF>(page, cell(at), sought) else { break };
                if below {
                    low = at + 1;
                } else {
                    high = at;
                }
                if below != up {
                    break;
                }
            }
        }
        while low < high {
            let mid = (low + high) / 2;
            let at = cell(mid);
            let below = match is_below::<LEAF>(page, at, sought) {
                Some(b) => b,
                None => self.is_below_at_end(at, sought)?,
            };
            if below {
                low = mid + 1;
            } else {
                high = mid;
            }
        }
        Ok(low as u32)
    }

    /// Where among `n` cells a row number should be, if they are spread evenly. `None`: not between them.
    #[inline]
    fn guess<const LEAF: bool>(
        &self,
        rowid: i64,
        range: (i64, i64),
        cell: &impl Fn(usize) -> usize,
        n: usize,
    ) -> Option<usize> {
        let (mut least, mut most) = range;
        if least == i64::MIN {
            least = quick_rowid::<LEAF>(&self.page, cell(0))?;
        }
        if most == i64::MAX {
            most = quick_rowid::<LEAF>(&self.page, cell(n - 1))?;
        }
        evenly_spread(rowid, (least, most), n)
    }

    /// The row numbers of the first and the last cell of a table node, as far as they are read easily.
    #[inline(never)]
    pub fn span(&self) -> (i64, i64) {
        let key = |i: u32| {
            let at = self.cell_at(i);
            if self.leaf { quick_rowid::<true>(&self.page, at) } else { quick_rowid::<false>(&self.page, at) }
        };
        if self.ncell == 0 {
            return (i64::MIN, i64::MAX);
        }
        (key(0).unwrap_or(i64::MIN), key(self.ncell - 1).unwrap_or(i64::MAX))
    }

    /// The range of row numbers below child `i` of an interior node, given the node's own.
    #[inline]
    pub fn range_of_child(&self, i: u32, range: (i64, i64)) -> (i64, i64) {
        let key = |i: u32| quick_rowid::<false>(&self.page, self.cell_at(i));
        let least = if i > 0 { key(i - 1).map_or(i64::MIN, |k| k.saturating_add(1)) } else { range.0 };
        let most = if i < self.ncell { key(i).unwrap_or(i64::MAX) } else { range.1 };
        (least, most)
    }

    #[cold]
    #[inline(never)]
    fn is_below_at_end(&self, at: usize, sought: &Sought) -> Result<bool> {
        Ok(self.rowid_slow(at)? < sought.rowid)
    }

    #[inline(never)]
    fn rowid_slow(&self, at: usize) -> Result<i64> {
        let mut pos = at + 4;
        if self.leaf {
            pos = at + self.page.get(at..).and_then(varint::get).ok_or_else(corrupt)?.1;
        }
        let v = self.page.get(pos..).and_then(varint::get).ok_or_else(corrupt)?;
        Ok(v.0 as i64)
    }
}

/// Which of `n` cells should have this row number, if those of the range are spread evenly.
#[inline]
fn evenly_spread(rowid: i64, (least, most): (i64, i64), n: usize) -> Option<usize> {
    if rowid < least || rowid > most {
        return None;
    }
    let (mut from, mut span) = (rowid.wrapping_sub(least) as u64, most.wrapping_sub(least) as u64);
    if span >> 47 != 0 {
        // So that the product fits.
        (from, span) = (from >> 17, span >> 17);
    }
    Some(((from * n as u64) / (span + 1)) as usize).filter(|g| *g < n)
}

/// Where the cell of a row should lie on a table's leaf, going by the range of row numbers alone.
#[inline]
pub fn likely_cell(page: &[u8], header: usize, rowid: i64, range: (i64, i64)) -> Option<usize> {
    let head = page.get(header..header + 8)?;
    let n = be::get_u16(head, 3) as usize;
    let pointer = header + 8 + 2 * evenly_spread(rowid, range, n)?;
    Some(be::get_u16(page.get(pointer..pointer + 2)?, 0) as usize)
}

/// Nodes of so many cells are searched by halves from the beginning.
const FEW: usize = 8;

/// The row number of the cell at `at`. `None`: its payload is very long.
#[inline(always)]
fn quick_rowid<const LEAF: bool>(page: &[u8], at: usize) -> Option<i64> {
    let last;
    let b: &[u8; 13] = match page.get(at..)?.first_chunk() {
        Some(b) => b,
        None => {
            last = last_bytes(page, at)?;
            &last
        }
    };
    let number: &[u8; 9] = if !LEAF {
        b[4..13].try_into().ok()?
    } else if b[0] < 0x80 {
        b[1..10].try_into().ok()?
    } else if b[1] < 0x80 {
        b[2..11].try_into().ok()?
    } else {
        return None;
    };
    Some(read_rowid(number).0)
}

/// The first bytes, up to 16, of a cell that begins in the last 16 of its page, where a node's first cell mostly lies, with zeros
/// behind them.
#[inline]
pub fn last_bytes<const N: usize>(page: &[u8], at: usize) -> Option<[u8; N]> {
    let end = u128::from_be_bytes(*page.last_chunk()?);
    let skipped = (at + 16).checked_sub(page.len())? as u32;
    let bytes: [u8; 16] = end.checked_shl(8 * skipped)?.to_be_bytes();
    bytes.first_chunk().copied()
}

/// Whether the row number of the cell at `at` is below the sought one. `None`: the cell is too near the
/// page's end to read eight bytes at once, or its payload is very long.
#[inline(always)]
fn is_below<const LEAF: bool>(page: &[u8], at: usize, sought: &Sought) -> Option<bool> {
    let b: &[u8; 13] = page.get(at..at + 13)?.try_into().ok()?;
    let (x, last) = if !LEAF {
        (u64::from_be_bytes(b[4..12].try_into().ok()?), b[12])
    } else if b[0] < 0x80 {
        // The payload's length comes first.
        (u64::from_be_bytes(b[1..9].try_into().ok()?), b[9])
    } else if b[1] < 0x80 {
        (u64::from_be_bytes(b[2..10].try_into().ok()?), b[10])
    } else {
        return None;
    };
    let ends = !x & 0x8080_8080_8080_8080;
    if ends == 0 {
        return Some(((varint::pack(x) << 8 | last as u64) as i64) < sought.rowid);
    }
    Some(x >> (56 - (ends.leading_zeros() & 0x38)) < sought.sortable)
}

/// A row number being sought, made ready for comparisons.
///
/// `sortable` is its varint's bytes, continuation bits and all: they sort as the numbers do, since a longer
/// varint is a greater number and equally long ones have the same continuation bits. So a step of the search
/// need not decode, which would take 15 instructions more. A varint of nine bytes is compared the slow way;
/// for a sought number of that length `sortable` says how it compares with all shorter ones.
pub struct Sought {
    rowid: i64,
    sortable: u64,
}

impl Sought {
    /// Ready to compare.
    #[inline]
    pub fn new(rowid: i64) -> Sought {
        if !(0..1 << 56).contains(&rowid) {
            return Sought { rowid, sortable: if rowid < 0 { 0 } else { u64::MAX } };
        }
        let x = rowid as u64;
        let x = (x & 0x0000_0000_0fff_ffff) | (x & 0x00ff_ffff_f000_0000) << 4;
        let x = (x & 0x0000_3fff_0000_3fff) | (x & 0x0fff_c000_0fff_c000) << 2;
        let x = (x & 0x007f_007f_007f_007f) | (x & 0x3f80_3f80_3f80_3f80) << 1;
        // All bytes but the last say that more follows.
        let used = 64 - ((x | 1).leading_zeros() & 0x38);
        Sought { rowid, sortable: x | (0x8080_8080_8080_8000 & (u64::MAX >> (64 - used))) }
    }
}

/// What a cell says.
#[derive(Clone, Copy, Default, Debug)]
pub struct Cell {
    /// The row number (tables).
    pub rowid: i64,
    /// Bytes of payload, overflow included.
    pub payload: u32,
    /// Of these, on the node.
    pub local: u32,
    /// Where they begin in the page.
    pub at: u32,
    /// Bytes of the cell before them: child, length, row number.
    pub head: u32,
}

impl Cell {
    /// Whether part of the payload is on overflow pages.
    #[inline(always)]
    pub fn overflows(&self) -> bool {
        self.local < self.payload
    }

    /// Bytes of the cell, child and overflow page numbers included.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u32 {
        self.head + self.local + if self.overflows() { 4 } else { 0 }
    }

    /// Bytes that the cell takes on its node: at least 4.
    pub fn size(&self) -> u32 {
        self.len().max(4)
    }

    /// Reads the cell at `at`. Interior table cells have a row number and no payload.
    #[inline(always)]
    pub fn read(page: &[u8], at: usize, kind: TreeKind, leaf: bool, layout: &Layout) -> Result<Cell> {
        if leaf {
            let quick = match kind {
                TreeKind::Table => Cell::table_leaf(page, at, layout),
                TreeKind::Index => Cell::index_leaf(page, at, layout),
            };
            if let Some(cell) = quick {
                return Ok(cell);
            }
        }
        Cell::read_any(page, at, kind, leaf, layout)
    }

    /// By far the most cells: on a table leaf, not overflowing, a length of at most two bytes, not at the
    /// very end of the page.
    #[inline(always)]
    pub fn table_leaf(page: &[u8], at: usize, layout: &Layout) -> Option<Cell> {
        let b: &[u8; 11] = page.get(at..at + 11)?.try_into().ok()?;
        let (payload, rowid, head) = if b[0] < 0x80 {
            let (rowid, n) = read_rowid(b[1..10].try_into().ok()?);
            (b[0] as u32, rowid, n + 1)
        } else if b[1] < 0x80 {
            let (rowid, n) = read_rowid(b[2..11].try_into().ok()?);
            ((b[0] as u32 & 0x7f) << 7 | b[1] as u32, rowid, n + 2)
        } else {
            return None;
        };
        let at = at as u32 + head;
        if payload > layout.max_table || at + payload > layout.usable {
            return None;
        }
        Some(Cell { rowid, payload, local: payload, at, head })
    }

    /// The length of the cell at `at`, as [`Cell::len`] has it.
    #[inline(always)]
    pub fn len_at(page: &[u8], at: usize, kind: TreeKind, leaf: bool, layout: &Layout) -> Result<u32> {
        if leaf
            && kind == TreeKind::Table
            && let Some(b) = page.get(at..at + 10)
            && let Ok(b) = <&[u8; 10]>::try_from(b)
            && (b[0] & b[1]) < 0x80
        {
            let two = b[0] >= 0x80;
            let payload = if two { (b[0] as u32 & 0x7f) << 7 | b[1] as u32 } else { b[0] as u32 };
            let x = if two { &b[2..10] } else { &b[1..9] };
            let x = u64::from_be_bytes(x.try_into().expect("eight bytes"));
            let ends = !x & 0x8080_8080_8080_8080;
            // Nine bytes if none of the first eight is the last.
            let n = 1 + if ends == 0 { 8 } else { ends.leading_zeros() / 8 };
            let len = 1 + two as u32 + n + payload;
            if payload <= layout.max_table && at as u32 + len <= layout.usable {
                return Ok(len);
            }
        }
        if leaf
            && kind == TreeKind::Index
            && let Some(cell) = Cell::index_leaf(page, at, layout)
        {
            return Ok(cell.head + cell.payload);
        }
        Ok(Cell::read(page, at, kind, leaf, layout)?.len())
    }

    /// The same for an index leaf.
    #[inline(always)]
    pub fn index_leaf(page: &[u8], at: usize, layout: &Layout) -> Option<Cell> {
        let b: &[u8; 2] = page.get(at..at + 2)?.try_into().ok()?;
        let (payload, head) = if b[0] < 0x80 {
            (b[0] as u32, 1)
        } else if b[1] < 0x80 {
            ((b[0] as u32 & 0x7f) << 7 | b[1] as u32, 2)
        } else {
            return None;
        };
        let at = at as u32 + head;
        if payload > layout.max_index || at + payload > layout.usable {
            return None;
        }
        Some(Cell { rowid: 0, payload, local: payload, at, head })
    }

    #[inline(never)]
    fn read_any(page: &[u8], at: usize, kind: TreeKind, leaf: bool, layout: &Layout) -> Result<Cell> {
        let mut pos = if leaf { at } else { at + 4 };
        let mut rowid = 0;
        if kind == TreeKind::Table && !leaf {
            let (v, n) = page.get(pos..).and_then(varint::get).ok_or_else(corrupt)?;
            return Ok(Cell {
                rowid: v as i64,
                payload: 0,
                local: 0,
                at: (pos + n) as u32,
                head: (4 + n) as u32,
            });
        }
        let (len, n) = page.get(pos..).and_then(varint::get).ok_or_else(corrupt)?;
        pos += n;
        if kind == TreeKind::Table {
            let (v, n) = page.get(pos..).and_then(varint::get).ok_or_else(corrupt)?;
            rowid = v as i64;
            pos += n;
        }
        if len > i32::MAX as u64 {
            return Err(corrupt());
        }
        let payload = len as u32;
        let local = layout.local(kind, payload);
        let cell = Cell { rowid, payload, local, at: pos as u32, head: (pos - at) as u32 };
        if at as u32 + cell.len() > layout.usable {
            return Err(corrupt());
        }
        Ok(cell)
    }

    /// The first overflow page.
    pub fn overflow(&self, page: &[u8]) -> Pgno {
        if self.overflows() { be::get_u32(page, (self.at + self.local) as usize) } else { 0 }
    }
}

/// A row number and its length.
#[inline(always)]
fn read_rowid(b: &[u8; 9]) -> (i64, u32) {
    if b[0] < 0x80 {
        return (b[0] as i64, 1);
    }
    if b[1] < 0x80 {
        return ((b[0] as i64 & 0x7f) << 7 | b[1] as i64, 2);
    }
    if b[2] < 0x80 {
        return ((b[0] as i64 & 0x7f) << 14 | (b[1] as i64 & 0x7f) << 7 | b[2] as i64, 3);
    }
    let [eight @ .., last] = *b;
    let x = u64::from_be_bytes(eight);
    match varint::of_eight(x) {
        Some((v, n)) => (v as i64, n as u32),
        None => ((varint::pack(x) << 8 | last as u64) as i64, 9),
    }
}

/// Where things are on a node that is being changed.
#[derive(Clone, Copy)]
pub struct Frame {
    /// Where the header begins.
    pub hdr: usize,
    /// Where the cell pointers begin.
    pub ptrs: usize,
    /// Cells.
    pub ncell: usize,
    /// Page size less reserved bytes.
    pub usable: usize,
}

impl Frame {
    /// Where the cell pointers end.
    pub fn end(&self) -> usize {
        self.ptrs + 2 * self.ncell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sought_numbers_sort_as_their_varints_do() {
        let mut last = 0;
        for shift in 1..55 {
            for v in [1i64 << shift, (1i64 << shift) + 1, (2i64 << shift) - 1] {
                let mut b = [0u8; 16];
                let n = varint::put(&mut b, v as u64);
                if n == 9 {
                    continue;
                }
                let want = u64::from_be_bytes(b[..8].try_into().unwrap()) >> (64 - 8 * n);
                let got = Sought::new(v).sortable;
                assert_eq!(got, want, "{v}");
                assert!(got >= last);
                last = got;
            }
        }
    }

    /// A table node with these row numbers.
    fn node(rowids: &[i64], leaf: bool) -> Node {
        let mut page = vec![0u8; 4096];
        let ptrs = if leaf { 8 } else { 12 };
        let mut end = page.len();
        for (i, r) in rowids.iter().enumerate() {
            let mut cell = if leaf { vec![2u8] } else { vec![0, 0, 0, 9] };
            varint::push(&mut cell, *r as u64);
            cell.extend(if leaf { &b"xy"[..] } else { b"" });
            end -= cell.len();
            page[end..end + cell.len()].copy_from_slice(&cell);
            page[ptrs + 2 * i..][..2].copy_from_slice(&(end as u16).to_be_bytes());
        }
        let page = Buf::copy_of(&page).unwrap();
        Node { page, pgno: 2, ncell: rowids.len() as u32, idx: 0, ptrs: ptrs as u32, leaf }
    }

    /// The first cell of a node mostly lies at the page's end: it is read there, too, or nothing could be computed.
    #[test]
    fn row_numbers_at_the_pages_end_are_read() {
        for leaf in [false, true] {
            for rowid in [0, 127, 128, 70_000, 1 << 40, -1] {
                let n = node(&[rowid], leaf);
                let read = if leaf { quick_rowid::<true> } else { quick_rowid::<false> };
                assert_eq!(read(&n.page, n.cell_at(0)), Some(rowid), "leaf {leaf}");
            }
            let n = node(&[1 << 40], leaf);
            let read = if leaf { quick_rowid::<true> } else { quick_rowid::<false> };
            assert_eq!(read(&n.page, 4096), None);
            assert_eq!(read(&n.page, 5000), None);
        }
    }

    #[test]
    fn a_computed_place_finds_what_a_walk_finds() {
        let mut x = 11u64;
        let mut draw = |n: u64| {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (x >> 33) % n
        };
        for round in 0..400 {
            let n = 1 + draw(200) as usize;
            let mut r: Vec<i64> = match round % 6 {
                0 => (0..n as i64).map(|i| 1_000 + i).collect(),
                1 => (0..n).map(|_| draw(500) as i64 - 250).collect(),
                2 => (0..n).map(|_| (draw(1 << 31) << 31) as i64).collect(),
                3 => (0..n).map(|_| (draw(1 << 31) << 33) as i64 ^ draw(2) as i64).collect(),
                // Two far apart clusters.
                4 => (0..n).map(|i| if i % 2 == 0 { i as i64 } else { i64::MAX - i as i64 }).collect(),
                _ => (0..n as u32).map(|i| 1i64 << (i % 62)).collect(),
            };
            r.sort_unstable();
            r.dedup();
            for leaf in [true, false] {
                let node = node(&r, leaf);
                for k in 0..60 {
                    let near = r[draw(r.len() as u64) as usize];
                    let sought = match k % 4 {
                        0 => near,
                        1 => near.saturating_add(1),
                        2 => near.saturating_sub(1),
                        _ => (draw(1 << 31) << 33) as i64,
                    };
                    let want = r.iter().filter(|v| **v < sought).count() as u32;
                    let (first, last) = (r[0], r[r.len() - 1]);
                    // What is said of the range may be little, right, or wrong.
                    for range in [
                        (i64::MIN, i64::MAX),
                        (first, last),
                        (first.saturating_sub(9), i64::MAX),
                        (i64::MIN, last.saturating_add(5)),
                        (sought, sought),
                        (last, first),
                    ] {
                        let got = node.search_rowid(&Sought::new(sought), range).unwrap();
                        assert_eq!(got, want, "{sought} in {r:?}, leaf {leaf}, {range:?}");
                    }
                }
            }
        }
    }
}
