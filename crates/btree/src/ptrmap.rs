//! Pointer maps: for each page, what it is and who points to it (file format, section 1.8).

use crate::btree::Shared;
use crate::node::*;
use iolite_base::{Pgno, Result, be};
use std::ops::Range;

/// A root.
pub const ROOT: u8 = 1;
/// On the freelist.
pub const FREE: u8 = 2;
/// The first page of an overflow chain; the number is the node with the cell.
pub const OVERFLOW_FIRST: u8 = 3;
/// A later page of a chain; the number is the page before.
pub const OVERFLOW_NEXT: u8 = 4;
/// A node; the number is its parent.
pub const NODE: u8 = 5;

/// The map page that tells of `pgno` (itself, if it is a map page).
pub fn page_of(pgno: Pgno, usable: u32, lock_page: Pgno) -> Pgno {
    if pgno < 2 {
        return 0;
    }
    let per_map = usable / 5 + 1;
    let map = (pgno - 2) / per_map * per_map + 2;
    if map == lock_page { map + 1 } else { map }
}

impl Shared {
    /// Whether the page is a map page.
    pub(crate) fn is_ptrmap(&self, pgno: Pgno) -> Result<bool> {
        let lock = self.pager()?.lock_page();
        Ok(page_of(pgno, self.layout.get().usable, lock) == pgno)
    }

    /// Enters what a page is.
    pub(crate) fn put_ptrmap(&self, pgno: Pgno, kind: u8, parent: Pgno) -> Result<()> {
        let mut pager = self.pager()?;
        let map = page_of(pgno, self.layout.get().usable, pager.lock_page());
        if pgno < 2 || map == pgno || map == 0 {
            return Err(corrupt());
        }
        let at = 5 * (pgno - map - 1) as usize;
        let mut page = pager.get(map)?;
        if at + 5 > page.len() {
            return Err(corrupt());
        }
        if page[at] == kind && be::get_u32(&page, at + 1) == parent {
            return Ok(());
        }
        pager.edit(map, &mut page, |b| {
            b[at] = kind;
            be::put_u32(b, at + 1, parent);
        })
    }

    /// What a page is, and who points to it.
    pub(crate) fn get_ptrmap(&self, pgno: Pgno) -> Result<(u8, Pgno)> {
        let mut pager = self.pager()?;
        let map = page_of(pgno, self.layout.get().usable, pager.lock_page());
        if pgno < 2 || map == pgno {
            return Err(corrupt());
        }
        let at = 5 * (pgno - map - 1) as usize;
        let page = pager.get(map)?;
        if at + 5 > page.len() || !(ROOT..=NODE).contains(&page[at]) {
            return Err(corrupt());
        }
        Ok((page[at], be::get_u32(&page, at + 1)))
    }

    /// Enters for all children and chains of a node that they are pointed to from `pgno`.
    pub(crate) fn put_children_ptrmap(&self, pgno: Pgno, kind: TreeKind) -> Result<()> {
        self.put_cells_ptrmap(pgno, kind, 0..u32::MAX)
    }

    /// The same for those of some of its cells; behind all of them is the right child.
    pub(crate) fn put_cells_ptrmap(&self, pgno: Pgno, kind: TreeKind, cells: Range<u32>) -> Result<()> {
        let page = self.pager()?.get(pgno)?;
        let layout = self.layout.get();
        let node = Node::new(page, pgno, kind, &layout)?;
        for i in cells.start..cells.end.min(node.ncell) {
            let cell = Cell::read(&node.page, node.cell_at(i), kind, node.leaf, &layout)?;
            if cell.overflows() {
                self.put_ptrmap(cell.overflow(&node.page), OVERFLOW_FIRST, pgno)?;
            }
            if !node.leaf {
                self.put_ptrmap(node.child(i)?, NODE, pgno)?;
            }
        }
        if !node.leaf && cells.end > node.ncell {
            self.put_ptrmap(node.child(node.ncell)?, NODE, pgno)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_pages_stand_where_the_format_says() {
        // 512 bytes: 102 entries a map; maps at 2, 105, 208.
        assert_eq!(
            [2, 3, 104, 105, 106, 207, 208].map(|p| page_of(p, 512, 9999)),
            [2, 2, 2, 105, 105, 105, 208]
        );
        assert_eq!(page_of(106, 512, 105), 106, "the map steps aside for the lock-byte page");
    }
}
