//! Splitting, merging and evening out nodes.
//!
//! A node that overflows or is less than a third full is rebuilt together with up to two neighbours: their
//! cells (and, but for table leaves, the dividing cells from the parent) form one list, which is laid out
//! over as many pages as it needs. That changes the parent's list of cells; if the parent no longer fits or
//! is underfull, the same happens one level up. The root, when it overflows, moves down into a new child;
//! when it has no cells left, its one child moves up.
//!
//! What always holds: lists of cells refer to images of the pages from before ([`Work`] holds them), so pages
//! may be rewritten in any order. At the right edge of the tree, where entries arrive in order, pages are
//! left full instead of half empty (see also `append`).

use crate::cursor::{Cursor, MAX_DEPTH};
use crate::node::*;
use crate::ptrmap;
use crate::room::*;
use iolite_base::{Buf, Code, Pgno, Result, alloc, be, varint};
use iolite_pager::SecureDelete;
use std::ops::Range;

/// One cell: where its bytes are.
#[derive(Clone, Copy)]
struct Piece {
    /// Which image, or `ARENA`.
    image: u32,
    at: u32,
    len: u32,
}

const ARENA: u32 = u32::MAX;

/// So many cells on a few neighbours can be spread evenly.
const MANY: usize = 24;

/// Copies `size` bytes, of which there are 4 to 64, as 16, 32 or 64, if both sides have so many. `false`: nothing was done.
#[inline(always)]
fn copy_short(from: &[u8], to: &mut [u8], size: usize) -> bool {
    match size {
        4..=16 => copy_first::<16>(from, to),
        17..=32 => copy_first::<32>(from, to),
        33..=64 => copy_first::<64>(from, to),
        _ => false,
    }
}

#[inline(always)]
fn copy_first<const N: usize>(from: &[u8], to: &mut [u8]) -> bool {
    match (from.first_chunk::<N>(), to.first_chunk_mut::<N>()) {
        (Some(from), Some(to)) => {
            *to = *from;
            true
        }
        _ => false,
    }
}

impl Piece {
    /// Bytes that the cell takes of a node.
    fn cost(&self) -> usize {
        (self.len as usize).max(4) + 2
    }
}

/// The bytes that pieces refer to.
#[derive(Default)]
struct Work {
    images: Vec<Buf>,
    arena: Vec<u8>,
}

impl Work {
    #[inline]
    fn bytes(&self, p: Piece) -> &[u8] {
        let from = p.at as usize;
        &self.image(p.image)[from..from + p.len as usize]
    }

    #[inline]
    fn image(&self, image: u32) -> &[u8] {
        if image == ARENA { &self.arena } else { &self.images[image as usize] }
    }

    fn put(&mut self, parts: &[&[u8]]) -> Result<Piece> {
        let at = self.arena.len();
        for p in parts {
            alloc::reserve(&mut self.arena, p.len())?;
            self.arena.extend_from_slice(p);
        }
        Ok(Piece { image: ARENA, at: at as u32, len: (self.arena.len() - at) as u32 })
    }

    /// A dividing cell with another left child.
    fn with_child(&mut self, child: Pgno, cell: Piece, skip: usize) -> Result<Piece> {
        let tail = self.bytes(cell)[skip..].to_vec();
        self.put(&[&child.to_be_bytes(), &tail])
    }

    fn cells_of(&mut self, node: &Node, kind: TreeKind, layout: &Layout) -> Result<Vec<Piece>> {
        let image = self.images.len() as u32;
        self.images.push(node.page.clone());
        let mut cells = Vec::new();
        alloc::reserve(&mut cells, node.ncell as usize + 4)?;
        let mut total = 0;
        let page: &[u8] = &node.page;
        let ptrs = node.ptrs as usize;
        let (pointers, _) = page[ptrs..ptrs + 2 * node.ncell as usize].as_chunks::<2>();
        // A payload of so many bytes is whole on an index leaf, and its length one byte.
        let short = if node.leaf && kind == TreeKind::Index { layout.max_index.min(0x7f) } else { 0 };
        let usable = &page[..layout.usable as usize];
        for p in pointers {
            let at = u16::from_be_bytes(*p) as usize;
            let len = match usable.get(at) {
                Some(&n) if (1..=short).contains(&(n as u32)) && at + (n as usize) < usable.len() => {
                    n as u32 + 1
                }
                _ => Cell::len_at(page, at, kind, node.leaf, layout)?,
            };
            let piece = Piece { image, at: at as u32, len };
            total += piece.cost();
            cells.push(piece);
        }
        // Cells that overlap could add up to more than a page.
        if total > layout.usable as usize {
            return Err(corrupt());
        }
        Ok(cells)
    }
}

/// A cell that is to replace cell `idx` of the interior node at `level` of the path.
struct Divider {
    level: usize,
    idx: u32,
    cell: Vec<u8>,
}

/// A node's cells and right child, to be.
struct Content {
    cells: Vec<Piece>,
    right: Pgno,
}

/// Which runs of cells go to which page, of `room` bytes, filled to `fill` bytes where that is possible.
/// Between two pages one cell is left out if `divided`.
fn distribute(
    costs: &[usize],
    room: usize,
    fill: usize,
    divided: bool,
    append: bool,
) -> Result<Vec<(usize, usize)>> {
    let n = costs.len();
    let mut pages: Vec<(usize, usize)> = Vec::new();
    let mut from = 0;
    loop {
        let (mut to, mut sum) = (from, 0);
        while to < n && (sum + costs[to] <= fill || (to == from && costs[to] <= room)) {
            sum += costs[to];
            to += 1;
        }
        if to == from && n > 0 && from < n {
            return Err(corrupt());
        }
        pages.push((from, to));
        if to == n {
            break;
        }
        from = to + divided as usize;
        if from >= n {
            pages.push((n, n));
            break;
        }
    }
    let size = |p: (usize, usize)| costs[p.0..p.1].iter().sum::<usize>();
    for i in (1..pages.len()).rev() {
        let (mut left, mut right) = (pages[i - 1], pages[i]);
        let (mut left_size, mut right_size) = (size(left), size(right));
        loop {
            if left.1 - left.0 < 2 {
                break;
            }
            let moved = costs[right.0 - 1];
            let given = costs[left.1 - 1];
            let must = right.0 == right.1;
            if !must && (append || right_size + moved > left_size - given) {
                break;
            }
            right.0 -= 1;
            left.1 -= 1;
            right_size += moved;
            left_size -= given;
        }
        if right.0 == right.1 {
            return Err(corrupt());
        }
        pages[i - 1] = left;
        pages[i] = right;
    }
    Ok(pages)
}

/// Many small cells evenly over pages of `room` bytes, an eighth of which stays free: spread over three pages without a
/// rest, the next insert would begin anew. (100,000 keys in no order: 1,245 rebuilds if a 32nd stays free and the pages
/// at the left are fuller, 508 so, for 2 percent more pages.) `None`: they are too unequal.
fn spread(costs: &[usize], room: usize, divided: bool) -> Option<Vec<(usize, usize)>> {
    let total: usize = costs.iter().sum();
    let wanted = total.div_ceil(room - room / 8);
    let n = wanted.max(1);
    let mut runs = Vec::with_capacity(n);
    let (mut from, mut before) = (0, 0);
    for k in 1..=n {
        let aim = total * k / n;
        let (mut to, mut sum) = (from, before);
        while to < costs.len() && (k == n || sum + costs[to] / 2 < aim) {
            sum += costs[to];
            to += 1;
        }
        if to == from || sum - before > room {
            return None;
        }
        runs.push((from, to));
        (from, before) = (to, sum);
        if divided && k < n {
            before += costs.get(to)?;
            from += 1;
        }
    }
    Some(runs)
}

/// A child of a node and those beside it with which it is rebuilt.
pub(crate) fn neighbours(mine: usize, children: usize) -> Range<usize> {
    let count = children.min(3);
    let start = mine.saturating_sub(1).min(children - count);
    start..start + count
}

impl Cursor {
    /// Puts `new_cell` at `idx` of the leaf on top of the path, which has no room for it.
    pub(crate) fn split(&mut self, idx: u32, rowid: i64) -> Result<()> {
        let (leaf, above) = self.path.split_last().ok_or(Code::Internal)?;
        let rightmost = above.iter().all(|n| n.idx == n.ncell);
        let append = idx == leaf.ncell && rightmost;
        if append && !above.is_empty() && self.append_leaf()? {
            return Ok(());
        }
        self.save_new_key(rowid);
        let mut work = Work::default();
        let level = self.path.len() - 1;
        let mut cells = work.cells_of(&self.path[level], self.kind, &self.layout)?;
        let piece = work.put(&[&self.new_cell])?;
        cells.insert(idx as usize, piece);
        self.rebalance(level, Content { cells, right: 0 }, work, None, append)?;
        self.after_balance()
    }

    /// Rebuilds around the leaf on top of the path, which is underfull.
    pub(crate) fn rebalance_leaf(&mut self) -> Result<()> {
        let mut work = Work::default();
        let level = self.path.len() - 1;
        let cells = work.cells_of(&self.path[level], self.kind, &self.layout)?;
        self.rebalance(level, Content { cells, right: 0 }, work, None, false)
    }

    /// Replaces a cell of an interior node, whatever its size.
    pub(crate) fn replace_interior(&mut self, level: usize, idx: u32, cell: &[u8]) -> Result<()> {
        self.apply_divider(Work::default(), Divider { level, idx, cell: cell.to_vec() })
    }

    /// The same, after the leaf on top of the path lost a cell.
    pub(crate) fn rebalance_with_divider(&mut self, level: usize, idx: u32, cell: Vec<u8>) -> Result<()> {
        let divider = Divider { level, idx, cell };
        let top = self.path.len() - 1;
        let n = &self.path[top];
        let usable = self.layout.usable as usize;
        let free = free_space(&n.page, n.frame(&self.layout))?;
        if free * 3 <= usable * 2 {
            return self.apply_divider(Work::default(), divider);
        }
        let mut work = Work::default();
        let cells = work.cells_of(n, self.kind, &self.layout)?;
        self.rebalance(top, Content { cells, right: 0 }, work, Some(divider), false)
    }

    fn apply_divider(&mut self, mut work: Work, divider: Divider) -> Result<()> {
        let level = divider.level;
        let node = self.path[level].clone();
        let mut cells = work.cells_of(&node, self.kind, &self.layout)?;
        let right = node.child(node.ncell)?;
        drop(node);
        cells[divider.idx as usize] = work.put(&[&divider.cell])?;
        let content = Content { cells, right };
        if level > 0 && self.fits(level, &content) {
            return self.write_node(level, &work, &content);
        }
        self.rebalance(level, content, work, None, false)
    }

    fn room(&self, level: usize) -> usize {
        let n = &self.path[level];
        self.layout.usable as usize - n.header() - if n.leaf { 8 } else { 12 }
    }

    fn fits(&self, level: usize, content: &Content) -> bool {
        content.cells.iter().map(Piece::cost).sum::<usize>() <= self.room(level)
    }

    fn rebalance(
        &mut self,
        mut level: usize,
        mut content: Content,
        mut work: Work,
        mut divider: Option<Divider>,
        mut append: bool,
    ) -> Result<()> {
        loop {
            if level == 0 {
                if self.fits(0, &content) {
                    self.write_root(work, content)?;
                    break;
                }
                self.push_root_down()?;
                level = 1;
            }
            let parent = self.path[level - 1].clone();
            append = append && parent.idx == parent.ncell;
            let replaced = match &divider {
                Some(d) if d.level == level - 1 => divider.take(),
                _ => None,
            };
            let rebuilt = self.rebuild_siblings(level, &parent, content, &mut work, replaced, append)?;
            drop(parent);
            level -= 1;
            content = match rebuilt {
                Some(c) => c,
                None => match self.underfull_content(level, &mut work)? {
                    Some(c) => c,
                    None => break,
                },
            };
            if level > 0 {
                let used: usize = content.cells.iter().map(Piece::cost).sum();
                let room = self.room(level);
                if used <= room && (room - used) * 3 <= self.layout.usable as usize * 2 {
                    self.write_node(level, &work, &content)?;
                    break;
                }
            }
        }
        match divider {
            Some(d) => self.apply_divider(Work::default(), d),
            None => Ok(()),
        }
    }

    /// The content of the node at `level`, if it has become too empty to stay as it is.
    fn underfull_content(&mut self, level: usize, work: &mut Work) -> Result<Option<Content>> {
        let node = self.load_at(level)?;
        let usable = self.layout.usable as usize;
        let free = free_space(&node.page, node.frame(&self.layout))?;
        let stays = if level == 0 { node.ncell > 0 } else { free * 3 <= usable * 2 };
        if stays {
            return Ok(None);
        }
        let cells = work.cells_of(&node, self.kind, &self.layout)?;
        Ok(Some(Content { cells, right: node.child(node.ncell)? }))
    }

    /// The node at `level` of the path as it is now.
    fn load_at(&mut self, level: usize) -> Result<Node> {
        let pgno = self.path[level].pgno;
        let page = self.bt.pager()?.get(pgno)?;
        Node::new(page, pgno, self.kind, &self.layout)
    }

    /// Lays the cells of the node at `level` and its neighbours out anew. The parent is changed in place if
    /// it has room (`None`), else what it is to hold is returned.
    fn rebuild_siblings(
        &mut self,
        level: usize,
        parent: &Node,
        content: Content,
        work: &mut Work,
        replaced: Option<Divider>,
        append: bool,
    ) -> Result<Option<Content>> {
        let (kind, layout) = (self.kind, self.layout);
        let me = &self.path[level];
        let (leaf, my_pgno) = (me.leaf, me.pgno);
        let divided = !(leaf && kind == TreeKind::Table);
        let parent_image = work.images.len() as u32;
        work.images.push(parent.page.clone());
        let children = parent.ncell as usize + 1;
        let mine = parent.idx as usize;
        if mine >= children {
            return Err(corrupt());
        }
        let siblings = if append { mine..mine + 1 } else { neighbours(mine, children) };
        let (start, count) = (siblings.start, siblings.len());
        // A divider that is itself about to change takes the long way.
        let whole = replaced.is_some();
        let mut up = Vec::new();
        if let Some(d) = replaced {
            up = work.cells_of(parent, kind, &layout)?;
            up[d.idx as usize] = work.put(&[&d.cell])?;
        }
        // All cells of these nodes in one list.
        let mut all: Vec<Piece> = Vec::new();
        let mut old: Vec<Pgno> = Vec::new();
        let mut last_right = 0;
        let mut content = Some(content);
        for i in start..start + count {
            let pgno = parent.child(i as u32)?;
            if pgno == parent.pgno || old.contains(&pgno) {
                return Err(corrupt());
            }
            old.push(pgno);
            let (cells, right) = if i == mine {
                if pgno != my_pgno {
                    return Err(corrupt());
                }
                let c = content.take().ok_or(Code::Internal)?;
                (c.cells, c.right)
            } else {
                let page = self.bt.pager()?.get(pgno)?;
                let node = Node::new(page, pgno, kind, &layout)?;
                if node.leaf != leaf {
                    return Err(corrupt());
                }
                let right = if leaf { 0 } else { node.child(node.ncell)? };
                (work.cells_of(&node, kind, &layout)?, right)
            };
            alloc::reserve(&mut all, cells.len() + 1)?;
            all.extend_from_slice(&cells);
            last_right = right;
            if i + 1 < start + count && divided {
                let d = match up.get(i) {
                    Some(&d) => d,
                    None => self.divider_at(parent, parent_image, i)?,
                };
                all.push(if leaf {
                    Piece { at: d.at + 4, len: d.len - 4, ..d }
                } else {
                    work.with_child(right, d, 4)?
                });
            }
        }
        let costs: Vec<usize> = all.iter().map(Piece::cost).collect();
        let room = layout.usable as usize - if leaf { 8 } else { 12 };
        let many = !append && all.len() >= MANY;
        let runs = match if many { spread(&costs, room, divided) } else { None } {
            Some(runs) => runs,
            None => {
                let slack = if many { room / 32 } else { 0 };
                distribute(&costs, room, room - slack, divided, append)?
            }
        };
        let mut pages = old.clone();
        while pages.len() < runs.len() {
            let (pgno, page) = self.bt.allocate_page(*pages.last().ok_or(Code::Internal)?)?;
            drop(page);
            if pages.contains(&pgno) || pgno == parent.pgno {
                return Err(corrupt());
            }
            pages.push(pgno);
        }
        for gone in pages.drain(runs.len()..) {
            self.bt.free_page(gone)?;
        }
        // In page order, so that a scan reads forward.
        pages.sort_unstable();
        let mut dividers: Vec<Piece> = Vec::new();
        for (j, &(from, to)) in runs.iter().enumerate() {
            let is_last = j + 1 == runs.len();
            let right = if leaf {
                0
            } else if is_last {
                last_right
            } else {
                be::get_u32(work.bytes(all[to]), 0)
            };
            self.write_page(pages[j], leaf, &all[from..to], right, work)?;
            if !is_last {
                let d = if !divided {
                    let last = work.bytes(all[to - 1]);
                    let cell = Cell::read(last, 0, kind, true, &Layout { usable: u32::MAX, ..layout })?;
                    let mut b = [0u8; 9];
                    let n = varint::put(&mut b, cell.rowid as u64);
                    work.put(&[&pages[j].to_be_bytes(), &b[..n]])?
                } else {
                    work.with_child(pages[j], all[to], if leaf { 0 } else { 4 })?
                };
                dividers.push(d);
            }
        }
        let last_page = *pages.last().ok_or(Code::Internal)?;
        let after = start + count - 1;
        if self.bt.has_ptrmap() {
            for &p in &pages {
                self.bt.put_ptrmap(p, ptrmap::NODE, parent.pgno)?;
                self.bt.put_children_ptrmap(p, kind)?;
            }
        }
        if !whole && self.change_parent(parent, start, after, &dividers, last_page, work)? {
            return Ok(None);
        }
        if !whole {
            up = work.cells_of(parent, kind, &layout)?;
        }
        let mut up_right = parent.child(parent.ncell)?;
        if after < up.len() {
            up[after] = work.with_child(last_page, up[after], 4)?;
        } else {
            up_right = last_page;
        }
        up.splice(start..after, dividers);
        Ok(Some(Content { cells: up, right: up_right }))
    }

    fn divider_at(&self, parent: &Node, image: u32, i: usize) -> Result<Piece> {
        let at = parent.cell_at(i as u32);
        let c = Cell::read(&parent.page, at, self.kind, false, &self.layout)?;
        Ok(Piece { image, at: at as u32, len: c.len() })
    }

    /// Replaces the dividing cells `start..after` of a parent by `dividers`, and the child behind them by
    /// `last`. `false`: it has no room; nothing was done.
    fn change_parent(
        &mut self,
        parent: &Node,
        start: usize,
        after: usize,
        dividers: &[Piece],
        last: Pgno,
        work: &Work,
    ) -> Result<bool> {
        let mut frame = parent.frame(&self.layout);
        let wipe = self.bt.secure_delete.get() != SecureDelete::Off;
        let mut sizes = Vec::with_capacity(after - start);
        for i in start..after {
            let at = parent.cell_at(i as u32);
            sizes.push(Cell::read(&parent.page, at, self.kind, false, &self.layout)?.size() as usize);
        }
        let free = free_space(&parent.page, frame)?;
        let gained: usize = sizes.iter().map(|s| s + 2).sum();
        let needed: usize = dividers.iter().map(Piece::cost).sum();
        if needed > free + gained {
            return Ok(false);
        }
        let mut pager = self.bt.pager()?;
        let mut page = pager.get(parent.pgno)?;
        pager.edit(parent.pgno, &mut page, |b| -> Result<()> {
            for size in sizes {
                remove_cell(b, frame, start, size, wipe)?;
                frame.ncell -= 1;
            }
            for (j, &d) in dividers.iter().enumerate() {
                if !insert_cell(b, frame, start + j, work.bytes(d))? {
                    return Err(corrupt());
                }
                frame.ncell += 1;
            }
            let behind = start + dividers.len();
            let pointer = frame.ptrs + 2 * behind;
            let at = if behind == frame.ncell { frame.hdr + 8 } else { be::get_u16(b, pointer) as usize };
            match b.get_mut(at..at + 4) {
                Some(child) => child.copy_from_slice(&last.to_be_bytes()),
                None => return Err(corrupt()),
            }
            Ok(())
        })??;
        drop(pager);
        if self.bt.has_ptrmap() {
            // All others are pointed to from where they were.
            let new = start as u32..(start + dividers.len()) as u32;
            self.bt.put_cells_ptrmap(parent.pgno, self.kind, new)?;
        }
        Ok(true)
    }

    /// Writes a node from scratch.
    fn write_page(&self, pgno: Pgno, leaf: bool, cells: &[Piece], right: Pgno, work: &Work) -> Result<()> {
        let hdr = header_at(pgno);
        let usable = self.layout.usable as usize;
        let ptrs = hdr + if leaf { 8 } else { 12 };
        let wipe = self.bt.secure_delete.get() != SecureDelete::Off;
        let flag = flag(self.kind, leaf);
        let mut pager = self.bt.pager()?;
        let mut page = pager.get(pgno)?;
        pager.edit(pgno, &mut page, |b| {
            make_empty(b, hdr, flag, usable);
            let total: usize = cells.iter().map(|c| c.cost() - 2).sum();
            let top = usable - total;
            // From the lowest place, where the last cell goes, upwards.
            let (mut at, mut i) = (top, cells.len());
            while i > 0 {
                // Cells that lie one before the other in their page move together.
                let lowest = cells[i - 1];
                let mut end = lowest.at + lowest.len;
                let mut from = i - 1;
                while from > 0 {
                    let c = cells[from - 1];
                    if c.image != lowest.image || c.at != end || c.len < 4 || lowest.len < 4 {
                        break;
                    }
                    end += c.len;
                    from -= 1;
                }
                let (source, start) = (work.image(lowest.image), lowest.at as usize);
                let size = (end - lowest.at) as usize;
                // What is copied too much is overwritten by what comes above. (A call for each of a thousand cells of 11 bytes was
                // half of this.)
                let quick = match (source.get(start..), b[..usable].get_mut(at..)) {
                    (Some(from), Some(to)) => copy_short(from, to, size),
                    _ => false,
                };
                if !quick {
                    let to = &mut b[at..at + size.max(4)];
                    to[..size].copy_from_slice(&source[start..start + size]);
                    to[size..].fill(0);
                }
                for k in (from..i).rev() {
                    be::put_u16(b, ptrs + 2 * k, at as u16);
                    at += (cells[k].len as usize).max(4);
                }
                i = from;
            }
            if wipe {
                b[ptrs + 2 * cells.len()..top].fill(0);
            }
            be::put_u16(b, hdr + 3, cells.len() as u16);
            be::put_u16(b, hdr + 5, top as u16);
            if !leaf {
                be::put_u32(b, hdr + 8, right);
            }
        })
    }

    fn write_node(&mut self, level: usize, work: &Work, content: &Content) -> Result<()> {
        let (pgno, leaf) = (self.path[level].pgno, self.path[level].leaf);
        self.write_page(pgno, leaf, &content.cells, content.right, work)?;
        if self.bt.has_ptrmap() {
            self.bt.put_children_ptrmap(pgno, self.kind)?;
        }
        Ok(())
    }

    /// Writes the root; without cells, its one child moves up into it if it fits.
    fn write_root(&mut self, mut work: Work, content: Content) -> Result<()> {
        let (root, leaf) = (self.path[0].pgno, self.path[0].leaf);
        if leaf || !content.cells.is_empty() {
            return self.write_node(0, &work, &content);
        }
        let child = content.right;
        let page = self.bt.pager()?.get(child)?;
        let node = Node::new(page, child, self.kind, &self.layout)?;
        let cells = work.cells_of(&node, self.kind, &self.layout)?;
        let used: usize = cells.iter().map(Piece::cost).sum();
        let room = self.layout.usable as usize - header_at(root) - if node.leaf { 8 } else { 12 };
        if used > room {
            // Page 1 has 100 bytes less than its child: it may have to stay an empty root above a full node.
            return self.write_node(0, &work, &content);
        }
        let right = if node.leaf { 0 } else { node.child(node.ncell)? };
        let leaf = node.leaf;
        drop(node);
        self.write_page(root, leaf, &cells, right, &work)?;
        self.bt.free_page(child)?;
        if self.bt.has_ptrmap() {
            self.bt.put_children_ptrmap(root, self.kind)?;
        }
        Ok(())
    }

    /// The root becomes an interior node above a new, empty node of its former sort.
    fn push_root_down(&mut self) -> Result<()> {
        if self.path.len() >= MAX_DEPTH {
            return Err(corrupt());
        }
        let (root, leaf) = (self.path[0].pgno, self.path[0].leaf);
        let usable = self.layout.usable as usize;
        let (pgno, mut page) = self.bt.allocate_page(root)?;
        let f = flag(self.kind, leaf);
        self.bt.pager()?.edit(pgno, &mut page, |b| make_empty(b, 0, f, usable))?;
        self.write_page(root, false, &[], pgno, &Work::default())?;
        if self.bt.has_ptrmap() {
            self.bt.put_ptrmap(pgno, ptrmap::NODE, root)?;
        }
        let page_one = self.bt.pager()?.get(root)?;
        self.path[0] = Node::new(page_one, root, self.kind, &self.layout)?;
        let child = Node::new(page, pgno, self.kind, &self.layout)?;
        self.path.insert(1, child);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{distribute, spread};

    #[test]
    fn many_cells_are_spread_evenly_and_no_page_is_too_full() {
        let mut x = 1u32;
        for n in (24..400).step_by(7) {
            for divided in [false, true] {
                let costs: Vec<usize> = (0..n)
                    .map(|_| {
                        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        8 + (x >> 24) as usize % 9
                    })
                    .collect();
                let runs = spread(&costs, 500, divided).unwrap();
                let sizes: Vec<usize> = runs.iter().map(|r| costs[r.0..r.1].iter().sum()).collect();
                let mut next = 0;
                for &(from, to) in &runs {
                    assert!(from == next && to > from, "{runs:?}");
                    next = to + divided as usize;
                }
                assert_eq!(runs.last().unwrap().1, n);
                let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
                assert!(*most <= 500 && most - least <= 40, "{sizes:?}");
            }
        }
    }

    #[test]
    fn runs_cover_all_cells_and_leave_dividers_out() {
        let costs = vec![10; 100];
        for divided in [false, true] {
            for append in [false, true] {
                let runs = distribute(&costs, 105, 105, divided, append).unwrap();
                let mut next = 0;
                for &(from, to) in &runs {
                    assert_eq!(from, next);
                    assert!(to > from && (to - from) * 10 <= 105);
                    next = to + divided as usize;
                }
                assert_eq!(runs.last().unwrap().1, 100);
            }
        }
    }

    #[test]
    fn a_cell_larger_than_the_filling_gets_a_page() {
        let runs = distribute(&[10, 10, 98, 10], 100, 90, false, false).unwrap();
        assert_eq!(runs, [(0, 2), (2, 3), (3, 4)]);
    }

    #[test]
    fn a_cell_appended_to_a_full_node_gets_a_node_of_its_own() {
        assert_eq!(distribute(&[10; 11], 100, 100, false, true).unwrap(), [(0, 10), (10, 11)]);
        assert_eq!(distribute(&[10; 11], 100, 100, true, true).unwrap(), [(0, 9), (10, 11)]);
        assert_eq!(distribute(&[10; 11], 100, 100, false, false).unwrap(), [(0, 6), (6, 11)]);
    }
}
