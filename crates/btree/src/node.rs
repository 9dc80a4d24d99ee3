//! A node: one page of a tree (file format, section 1.6), and the cells on it.
//!
//! ```text
//! [100 bytes of file header on page 1] | kind 1 | first freeblock 2 | cells 2 | content start 2 | fragments 1 |
//! [right child 4] | cell pointers | gap | cell content, freeblocks between | reserved
//! ```
//!
//! What always holds for a [`Node`]: its kind fits its tree, and the pointers of all its cells lie inside the page. What the pointers
//! point to is checked when it is read; nothing here trusts a byte of the file.

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
    if std::env::var_os("IOTRACE").is_some() {
        eprintln!("{}", std::backtrace::Backtrace::force_capture());
    }
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
    #[inline]
    pub fn new(page: Buf, pgno: Pgno, kind: TreeKind, layout: &Layout) -> Result<Node> {
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
            return Err(corrupt());
        };
        let ncell = be::get_u16(&page, hdr + 3) as u32;
        let ptrs = hdr as u32 + if leaf { 8 } else { 12 };
        if ptrs + 2 * ncell > layout.usable {
            return Err(corrupt());
        }
        Ok(Node { page, pgno, ncell, idx: 0, ptrs, leaf })
    }

    /// Where the header begins.
    #[inline(always)]
    pub fn header(&self) -> usize {
        header_at(self.pgno)
    }

    /// Where cell `i` begins.
    #[inline(always)]
    pub fn cell_at(&self, i: u32) -> usize {
        be::get_u16(&self.page, (self.ptrs + 2 * i) as usize) as usize
    }

    /// The child left of cell `i`; for `i == ncell`, the right child.
    #[inline]
    pub fn child(&self, i: u32) -> Result<Pgno> {
        let at = if i >= self.ncell { self.header() + 8 } else { self.cell_at(i) };
        match self.page.get(at..at + 4) {
            Some(b) => Ok(be::get_u32(b, 0)),
            None => Err(corrupt()),
        }
    }

    /// The row number of cell `i` of an interior table node.
    #[inline(always)]
    pub fn interior_rowid(&self, i: u32) -> Result<i64> {
        let at = self.cell_at(i) + 4;
        match self.page.get(at..).and_then(varint::get) {
            Some((v, _)) => Ok(v as i64),
            None => Err(corrupt()),
        }
    }

    /// The row number of cell `i` of a table leaf.
    #[inline(always)]
    pub fn leaf_rowid(&self, i: u32) -> Result<i64> {
        let Some(mut b) = self.page.get(self.cell_at(i)..) else { return Err(corrupt()) };
        let mut n = 0;
        // Skip the payload's length.
        loop {
            match b {
                [x, rest @ ..] => {
                    b = rest;
                    n += 1;
                    if *x < 0x80 || n == 9 {
                        break;
                    }
                }
                [] => return Err(corrupt()),
            }
        }
        match varint::get(b) {
            Some((v, _)) => Ok(v as i64),
            None => Err(corrupt()),
        }
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
    /// Bytes of the cell on the node, child and overflow page numbers included, at least 4.
    pub size: u32,
}

impl Cell {
    /// Whether part of the payload is on overflow pages.
    #[inline(always)]
    pub fn overflows(&self) -> bool {
        self.local < self.payload
    }

    /// Reads the cell at `at`. Interior table cells have a row number and no payload.
    #[inline(always)]
    pub fn read(page: &[u8], at: usize, kind: TreeKind, leaf: bool, layout: &Layout) -> Result<Cell> {
        let mut pos = if leaf { at } else { at + 4 };
        let mut rowid = 0;
        if kind == TreeKind::Table && !leaf {
            let (v, n) = page.get(pos..).and_then(varint::get).ok_or_else(corrupt)?;
            let size = (4 + n) as u32;
            return Ok(Cell { rowid: v as i64, payload: 0, local: 0, at: (pos + n) as u32, size });
        }
        let (len, n) = match page.get(pos..).and_then(varint::get) {
            Some(x) => x,
            None => return Err(corrupt()),
        };
        pos += n;
        if kind == TreeKind::Table {
            match page.get(pos..).and_then(varint::get) {
                Some((v, n)) => {
                    rowid = v as i64;
                    pos += n;
                }
                None => return Err(corrupt()),
            }
        }
        if len > i32::MAX as u64 {
            return Err(corrupt());
        }
        let payload = len as u32;
        let local = layout.local(kind, payload);
        let end = pos as u32 + local + if local < payload { 4 } else { 0 };
        if end > layout.usable {
            return Err(corrupt());
        }
        Ok(Cell { rowid, payload, local, at: pos as u32, size: (end - at as u32).max(4) })
    }

    /// The first overflow page.
    pub fn overflow(&self, page: &[u8]) -> Pgno {
        if self.overflows() { be::get_u32(page, (self.at + self.local) as usize) } else { 0 }
    }
}

/// Free bytes of a node: the gap, the freeblocks, the fragments. Checks the freeblock list.
pub fn free_space(page: &[u8], hdr: usize, ptrs: usize, ncell: usize, usable: usize) -> Result<usize> {
    let first = ptrs + 2 * ncell;
    let top = content_start(page, hdr);
    if top < first || top > usable {
        return Err(corrupt());
    }
    let mut free = top - first + page[hdr + 7] as usize;
    let mut at = be::get_u16(page, hdr + 1) as usize;
    let mut last_end = top;
    while at != 0 {
        if at < last_end || at + 4 > usable {
            return Err(corrupt());
        }
        let next = be::get_u16(page, at) as usize;
        let size = be::get_u16(page, at + 2) as usize;
        if size < 4 || at + size > usable {
            return Err(corrupt());
        }
        free += size;
        // Blocks less than four bytes apart would have been joined, but such files exist; overlap is an error.
        last_end = at + size;
        at = next;
    }
    if free > usable - first {
        return Err(corrupt());
    }
    Ok(free)
}

/// Where cell content begins; zero stands for 65536.
#[inline]
pub fn content_start(page: &[u8], hdr: usize) -> usize {
    match be::get_u16(page, hdr + 5) as usize {
        0 => 65536,
        n => n,
    }
}

fn set_content_start(page: &mut [u8], hdr: usize, at: usize) {
    be::put_u16(page, hdr + 5, at as u16);
}

/// Makes a page an empty node.
pub fn make_empty(page: &mut [u8], hdr: usize, flag: u8, usable: usize) {
    let end = hdr + if flag == TABLE_LEAF || flag == INDEX_LEAF { 8 } else { 12 };
    page[hdr..end].fill(0);
    page[hdr] = flag;
    set_content_start(page, hdr, usable);
}

/// Puts `cell` in as number `idx` of a node with room for it (`free_space` says so).
pub fn insert_cell(
    page: &mut [u8],
    hdr: usize,
    ptrs: usize,
    ncell: usize,
    idx: usize,
    cell: &[u8],
    usable: usize,
) -> Result<()> {
    let size = cell.len().max(4);
    let at = allocate(page, hdr, ptrs, ncell, size, usable)?;
    page[at..at + cell.len()].copy_from_slice(cell);
    page[at + cell.len()..at + size].fill(0);
    let p = ptrs + 2 * idx;
    page.copy_within(p..ptrs + 2 * ncell, p + 2);
    be::put_u16(page, p, at as u16);
    be::put_u16(page, hdr + 3, ncell as u16 + 1);
    Ok(())
}

/// Finds `size` bytes for a cell, leaving two for its pointer.
fn allocate(
    page: &mut [u8],
    hdr: usize,
    ptrs: usize,
    ncell: usize,
    size: usize,
    usable: usize,
) -> Result<usize> {
    let first = ptrs + 2 * ncell + 2;
    let mut top = content_start(page, hdr);
    if top > usable || top < first - 2 {
        return Err(corrupt());
    }
    if be::get_u16(page, hdr + 1) != 0 && first <= top {
        // First fit among the freeblocks.
        let mut link = hdr + 1;
        let mut at = be::get_u16(page, link) as usize;
        while at != 0 {
            if at + 4 > usable || at < top {
                return Err(corrupt());
            }
            let block = be::get_u16(page, at + 2) as usize;
            if at + block > usable {
                return Err(corrupt());
            }
            if block >= size {
                let rest = block - size;
                if rest < 4 {
                    // A format rule: at most 60 fragmented bytes on a page.
                    if page[hdr + 7] as usize + rest <= 57 {
                        page.copy_within(at..at + 2, link);
                        page[hdr + 7] += rest as u8;
                        return Ok(at);
                    }
                } else {
                    be::put_u16(page, at + 2, rest as u16);
                    return Ok(at + rest);
                }
            }
            link = at;
            let next = be::get_u16(page, at) as usize;
            if next != 0 && next <= at {
                return Err(corrupt());
            }
            at = next;
        }
    }
    if first + size > top {
        defragment(page, hdr, ptrs, ncell, usable)?;
        top = content_start(page, hdr);
        if first + size > top {
            return Err(corrupt());
        }
    }
    top -= size;
    set_content_start(page, hdr, top);
    Ok(top)
}

/// Moves all cells to the end of the page, so that all free space is the gap.
fn defragment(page: &mut [u8], hdr: usize, ptrs: usize, ncell: usize, usable: usize) -> Result<()> {
    let layout = Layout::new(usable as u32);
    let (kind, leaf) = match page[hdr] {
        TABLE_LEAF => (TreeKind::Table, true),
        TABLE_INTERIOR => (TreeKind::Table, false),
        INDEX_LEAF => (TreeKind::Index, true),
        _ => (TreeKind::Index, false),
    };
    let old = Buf::copy_of(page)?;
    let mut top = usable;
    for i in 0..ncell {
        let at = be::get_u16(&old, ptrs + 2 * i) as usize;
        let size = Cell::read(&old, at, kind, leaf, &layout)?.size as usize;
        if at + size > usable || top < ptrs + 2 * ncell + size {
            return Err(corrupt());
        }
        top -= size;
        page[top..top + size].copy_from_slice(&old[at..at + size]);
        be::put_u16(page, ptrs + 2 * i, top as u16);
    }
    be::put_u16(page, hdr + 1, 0);
    page[hdr + 7] = 0;
    set_content_start(page, hdr, top);
    Ok(())
}

/// Takes cell `idx`, whose content is `size` bytes at `at`, off a node.
pub fn remove_cell(
    page: &mut [u8],
    hdr: usize,
    ptrs: usize,
    ncell: usize,
    idx: usize,
    size: usize,
    usable: usize,
    wipe: bool,
) -> Result<()> {
    let at = be::get_u16(page, ptrs + 2 * idx) as usize;
    release(page, hdr, ptrs + 2 * ncell, at, size, usable, wipe)?;
    if ncell == 1 {
        // The last one: the page is as good as new.
        be::put_u16(page, hdr + 1, 0);
        be::put_u16(page, hdr + 3, 0);
        page[hdr + 7] = 0;
        set_content_start(page, hdr, usable);
        return Ok(());
    }
    let p = ptrs + 2 * idx;
    page.copy_within(p + 2..ptrs + 2 * ncell, p);
    be::put_u16(page, hdr + 3, ncell as u16 - 1);
    Ok(())
}

/// Gives `size` bytes at `at` back: as a freeblock, joined with its neighbours, or to the gap.
fn release(
    page: &mut [u8],
    hdr: usize,
    ptrs_end: usize,
    at: usize,
    size: usize,
    usable: usize,
    wipe: bool,
) -> Result<()> {
    let top = content_start(page, hdr);
    if at < ptrs_end || at < top || at + size > usable {
        return Err(corrupt());
    }
    if wipe {
        page[at..at + size].fill(0);
    }
    let (mut start, mut end) = (at, at + size);
    let mut link = hdr + 1;
    let mut next = be::get_u16(page, link) as usize;
    let mut before = 0;
    while next != 0 && next < at {
        if next + 4 > usable || (link != hdr + 1 && next <= link) {
            return Err(corrupt());
        }
        before = next;
        link = next;
        next = be::get_u16(page, next) as usize;
    }
    let mut fragments = page[hdr + 7] as usize;
    if next != 0 {
        if next + 4 > usable || next < end {
            return Err(corrupt());
        }
        if next < end + 4 {
            let gap = next - end;
            if gap > fragments {
                return Err(corrupt());
            }
            fragments -= gap;
            end = next + be::get_u16(page, next + 2) as usize;
            if end > usable {
                return Err(corrupt());
            }
            next = be::get_u16(page, next) as usize;
        }
    }
    if before != 0 {
        let before_end = before + be::get_u16(page, before + 2) as usize;
        if before_end > start {
            return Err(corrupt());
        }
        if before_end + 4 > start {
            let gap = start - before_end;
            if gap > fragments {
                return Err(corrupt());
            }
            fragments -= gap;
            start = before;
        }
    }
    page[hdr + 7] = fragments as u8;
    if start == top {
        if before != 0 && start != before {
            return Err(corrupt());
        }
        be::put_u16(page, hdr + 1, next as u16);
        set_content_start(page, hdr, end);
        return Ok(());
    }
    if start == before {
        be::put_u16(page, start, next as u16);
    } else {
        be::put_u16(page, link, start as u16);
        be::put_u16(page, start, next as u16);
    }
    be::put_u16(page, start + 2, (end - start) as u16);
    Ok(())
}
