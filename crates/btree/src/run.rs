//! Leaves in a row: a cursor that goes through a tree in order has the leaves to come read together.
//!
//! A table that was filled in order lies in the file in order. After [`BEGIN`] leaves in a row more are expected, and
//! those that follow each other in the file are read at once: few first, then more, so that a scan which ends soon has
//! read no more in vain than it used.
//!
//! Leaves that are cached wait for the processor's memory instead, twice each (where the page is; the page): both are asked for
//! some leaves before.
//!
//! What always holds: this is a hint. The children of an interior node are read ahead, never moved to.

use crate::node::Node;
use iolite_base::Pgno;
use iolite_pager::{Pager, Scan};
use std::ops::Range;

/// Leaves in a row before the next are read ahead.
const BEGIN: u32 = 3;
/// Pages that are read ahead first, and the most.
const FEW: Pgno = 4;
const MOST: Pgno = 32;

/// So many leaves before a cached one is reached its place is asked for, and then the page.
const PLACE_AHEAD: u32 = 8;
const PAGE_AHEAD: u32 = 4;

/// See the module's head.
#[derive(Default)]
pub(crate) struct Run {
    /// The leaf that was left last, while the cursor is on an entry between two leaves of an index.
    pub left: Pgno,
    /// The leaf that the run came to last; 0: any.
    leaf: Pgno,
    /// How many it has gone through.
    leaves: u32,
    scan: Scan,
    /// How many pages were asked for last.
    size: Pgno,
}

impl Run {
    /// The cursor has left a leaf (0: an interior node), and is about to go down to the child at which it stands in `n`; whether
    /// that is one to be read ahead, with others.
    #[inline]
    pub fn goes_on(&mut self, n: &Node, left: Pgno) -> Option<Pgno> {
        let next = n.child(n.idx).ok()?;
        if left == 0 {
            // The run may go on below the next interior node.
            self.leaf = 0;
            return None;
        }
        if self.leaf != left && self.leaf != 0 {
            *self = Run { leaf: next, ..Run::default() };
            return None;
        }
        self.leaf = next;
        self.leaves += 1;
        (self.leaves >= BEGIN && !self.scan.has_read(next)).then_some(next)
    }

    /// Reads a child ahead if it is not cached, and those that follow it in the tree and in the file. If it is, later ones are
    /// asked of memory.
    #[inline(never)]
    pub fn read_ahead(&mut self, pager: &mut Pager, n: &Node, next: Pgno, back: bool) {
        if pager.peek(next).is_some() {
            return ask_later(pager, n, back);
        }
        self.size = (self.size * 2).clamp(FEW, MOST);
        let pages = in_row(n, next, self.size, back);
        pager.read_ahead(pages, back, &mut self.scan);
    }
}

/// Asks memory for children some places behind the one at which `n` stands.
#[inline]
pub(crate) fn ask_later(pager: &Pager, n: &Node, back: bool) {
    let later = |by| n.child(if back { n.idx.wrapping_sub(by) } else { n.idx.saturating_add(by) }).ok();
    if let Some(place) = later(PLACE_AHEAD) {
        pager.ask_for_place(place);
    }
    if let Some(page) = later(PAGE_AHEAD) {
        pager.ask_for_page(page);
    }
}

/// The pages of the children from the one at which `n` stands that lie in a row, `most` at most.
fn in_row(n: &Node, next: Pgno, most: Pgno, back: bool) -> Range<Pgno> {
    let follows = |k: &Pgno| {
        let (at, page) = match back {
            true => (n.idx.checked_sub(*k), next.checked_sub(*k)),
            false => (n.idx.checked_add(*k), next.checked_add(*k)),
        };
        at.filter(|at| *at <= n.ncell).and_then(|at| n.child(at).ok()).is_some_and(|c| Some(c) == page)
    };
    let count = 1 + (1..most).take_while(follows).count() as Pgno;
    if back { next - (count - 1)..next.saturating_add(1) } else { next..next.saturating_add(count) }
}
