//! Room on a node: how it is given to cells and taken back (file format, section 1.6).
//!
//! Cells are put at the low end of the content, which grows towards their pointers; between the two is the gap. What a removed
//! cell leaves becomes a freeblock in a list by place, or part of one beside it, and fewer than four bytes are a fragment. The
//! gap is used first, then the first freeblock that is large enough; then few freeblocks are closed up, or the page is
//! laid out anew.
//!
//! What always holds: the list is checked wherever it is walked, and no place lies beyond the page. What this does not know: the
//! order of cells, and which page it is.

use crate::node::*;
use iolite_base::{Buf, Result, be};

/// Free bytes of a node: the gap, the freeblocks, the fragments. Checks the freeblock list.
pub fn free_space(page: &[u8], frame: Frame) -> Result<usize> {
    let Frame { hdr, usable, .. } = frame;
    let first = frame.end();
    let top = content_start(page, hdr);
    let Some(page) = page.get(..usable).filter(|_| top >= first && top <= usable) else {
        return Err(corrupt());
    };
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
        // Blocks less than four bytes apart would have been joined, but such files exist; overlap is an
        // error.
        last_end = at + size;
        at = next;
    }
    if free > usable - first {
        return Err(corrupt());
    }
    Ok(free)
}

/// Whether the gap alone has so many bytes.
#[inline]
pub fn has_gap(page: &[u8], frame: Frame, bytes: usize) -> bool {
    (frame.end() + bytes..=frame.usable).contains(&content_start(page, frame.hdr))
}

/// Where cell content begins; zero stands for 65536.
#[inline]
pub fn content_start(page: &[u8], hdr: usize) -> usize {
    match be::get_u16(page, hdr + 5) as usize {
        0 => 65536,
        n => n,
    }
}

/// Sets it.
#[inline]
pub fn set_content_start(page: &mut [u8], hdr: usize, at: usize) {
    be::put_u16(page, hdr + 5, at as u16);
}

/// Makes a page an empty node.
pub fn make_empty(page: &mut [u8], hdr: usize, flag: u8, usable: usize) {
    let end = hdr + if flag == TABLE_LEAF || flag == INDEX_LEAF { 8 } else { 12 };
    page[hdr..end].fill(0);
    page[hdr] = flag;
    set_content_start(page, hdr, usable);
}

/// Puts `cell` in as number `idx` of a node. `false`: it has no room for it, and nothing was done.
pub fn insert_cell(page: &mut [u8], frame: Frame, idx: usize, cell: &[u8]) -> Result<bool> {
    let Frame { hdr, ptrs, ncell, .. } = frame;
    let size = cell.len().max(4);
    let Some(at) = allocate(page, frame, size)? else { return Ok(false) };
    page[at..at + cell.len()].copy_from_slice(cell);
    page[at + cell.len()..at + size].fill(0);
    let p = ptrs + 2 * idx;
    page.copy_within(p..ptrs + 2 * ncell, p + 2);
    be::put_u16(page, p, at as u16);
    be::put_u16(page, hdr + 3, ncell as u16 + 1);
    Ok(true)
}

/// Finds `size` bytes for a cell, leaving two for its pointer. `None`: there are not so many. All freeblocks are walked through only where
/// none of them is large enough.
fn allocate(page: &mut [u8], frame: Frame, size: usize) -> Result<Option<usize>> {
    let Frame { hdr, usable, .. } = frame;
    let first = frame.end() + 2;
    let mut top = content_start(page, hdr);
    if top > usable || top < first - 2 || usable > page.len() {
        return Err(corrupt());
    }
    // The gap first: it needs no search, and freeblocks that are left alone may grow together.
    if first + size > top {
        if first <= top
            && let Some(at) = first_fit(page, frame, top, size)?
        {
            return Ok(Some(at));
        }
        if free_space(page, frame)? < size + 2 {
            return Ok(None);
        }
        top = close_freeblocks(page, frame, top).unwrap_or(top);
        if first + size > top {
            defragment(page, frame)?;
            top = content_start(page, hdr);
        }
        if first + size > top {
            return Err(corrupt());
        }
    }
    top -= size;
    set_content_start(page, hdr, top);
    Ok(Some(top))
}

/// Takes `size` bytes of the first freeblock that has so many.
fn first_fit(page: &mut [u8], frame: Frame, top: usize, size: usize) -> Result<Option<usize>> {
    let Frame { hdr, usable, .. } = frame;
    let page = &mut page[..usable];
    let mut link = hdr + 1;
    let mut at = be::get_u16(page, link) as usize;
    if at != 0 && at < top {
        return Err(corrupt());
    }
    while at != 0 {
        if at + 4 > usable {
            return Err(corrupt());
        }
        let block = be::get_u16(page, at + 2) as usize;
        if block >= size {
            if at + block > usable {
                return Err(corrupt());
            }
            let rest = block - size;
            if rest < 4 {
                // A format rule: at most 60 fragmented bytes on a page.
                if page[hdr + 7] as usize + rest <= 57 {
                    page.copy_within(at..at + 2, link);
                    page[hdr + 7] += rest as u8;
                    return Ok(Some(at));
                }
            } else {
                be::put_u16(page, at + 2, rest as u16);
                return Ok(Some(at + rest));
            }
        }
        link = at;
        let next = be::get_u16(page, at) as usize;
        if next != 0 && next <= at {
            return Err(corrupt());
        }
        at = next;
    }
    Ok(None)
}

/// Moves what lies between the gap and the last freeblock over the freeblocks, so that their space is the gap's; fragments
/// stay. Returns where content begins then. `None`: there are none, or too many for this to be quicker than
/// [`defragment`], and nothing was done.
fn close_freeblocks(page: &mut [u8], frame: Frame, top: usize) -> Option<usize> {
    const MOST: usize = 4;
    let Frame { hdr, ptrs, ncell, .. } = frame;
    // Where each begins and ends; those that are not there begin and end at 0.
    let (mut blocks, mut n) = ([(0, 0); MOST], 0);
    let (mut at, mut before) = (be::get_u16(page, hdr + 1) as usize, top);
    while at != 0 {
        let end = at + be::get_u16(page.get(at..at + 4)?, 2) as usize;
        if n == MOST || at < before || end > frame.usable {
            return None;
        }
        blocks[n] = (at, end);
        (n, before) = (n + 1, end);
        at = be::get_u16(page, at) as usize;
    }
    if n == 0 {
        return None;
    }
    // What has moved over a block still lies before the next one.
    for (start, end) in &blocks[..n] {
        let (start, size) = (*start as u16, (end - start) as u16);
        for p in page[ptrs..ptrs + 2 * ncell].as_chunks_mut::<2>().0 {
            let at = u16::from_be_bytes(*p);
            *p = at.wrapping_add(if at < start { size } else { 0 }).to_be_bytes();
        }
    }
    let mut moved = 0;
    for k in (0..n).rev() {
        let (start, end) = blocks[k];
        moved += end - start;
        let from = if k == 0 { top } else { blocks[k - 1].1 };
        page.copy_within(from..start, from + moved);
    }
    // No copy of a cell stays that nobody would wipe when it is deleted.
    page[top..top + moved].fill(0);
    be::put_u16(page, hdr + 1, 0);
    set_content_start(page, hdr, top + moved);
    Some(top + moved)
}

/// Moves all cells to the end of the page, so that all free space is the gap.
fn defragment(page: &mut [u8], frame: Frame) -> Result<()> {
    let Frame { hdr, ptrs, ncell, usable } = frame;
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
        let size = Cell::read(&old, at, kind, leaf, &layout)?.size() as usize;
        if at + size > usable || top < ptrs + 2 * ncell + size {
            return Err(corrupt());
        }
        top -= size;
        page[top..top + size].copy_from_slice(&old[at..at + size]);
        be::put_u16(page, ptrs + 2 * i, top as u16);
    }
    page[ptrs + 2 * ncell..top].fill(0);
    be::put_u16(page, hdr + 1, 0);
    page[hdr + 7] = 0;
    set_content_start(page, hdr, top);
    Ok(())
}

/// Takes cell `idx`, which takes `size` bytes, off a node.
pub fn remove_cell(page: &mut [u8], frame: Frame, idx: usize, size: usize, wipe: bool) -> Result<()> {
    let Frame { hdr, ptrs, ncell, usable } = frame;
    let at = be::get_u16(page, ptrs + 2 * idx) as usize;
    release(page, frame, at, size, wipe)?;
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
fn release(page: &mut [u8], frame: Frame, at: usize, size: usize, wipe: bool) -> Result<()> {
    let Frame { hdr, usable, .. } = frame;
    let top = content_start(page, hdr);
    if at < frame.end() || at < top || at + size > usable || usable > page.len() {
        return Err(corrupt());
    }
    let page = &mut page[..usable];
    if wipe {
        page[at..at + size].fill(0);
    }
    let (mut start, mut end) = (at, at + size);
    let mut link = hdr + 1;
    let mut next = be::get_u16(page, link) as usize;
    let mut before = 0;
    if next != 0 && next < top {
        return Err(corrupt());
    }
    // They rise, so that none comes before the first: its place was looked at.
    while next != 0 && next < at {
        if next <= before {
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
