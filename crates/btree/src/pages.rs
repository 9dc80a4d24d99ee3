//! Raw pages of a tree, for readers that decode whole leaves at once.

use crate::btree::Btree;
use iolite_base::{Buf, Pgno, Result};
use iolite_os::Vfs;
use iolite_pager::{Base, ClosingNote, Mark};
use std::path::PathBuf;
use std::sync::Arc;

pub use crate::node::{Cell, Layout, TABLE_INTERIOR, TABLE_LEAF};

impl Btree {
    /// A page as the present transaction sees it.
    #[inline]
    pub fn raw_page(&self, pgno: Pgno) -> Result<Buf> {
        self.0.pager()?.get(pgno)
    }

    /// The payload of a cell of `page`, collected from there and from its overflow pages.
    pub fn raw_payload(&self, page: &[u8], cell: &Cell, out: &mut Vec<u8>) -> Result<()> {
        self.0.whole_payload(page, cell, out)
    }

    /// Reads `n` consecutive pages from the file at once, past the cache. `false`: some of them are elsewhere.
    pub fn raw_pages(&self, first: Pgno, n: usize, out: &mut Vec<u8>) -> Result<bool> {
        self.0.pager()?.read_run(first, n, out)
    }

    /// The sizes that follow from page size and reserved bytes.
    pub fn layout(&self) -> Layout {
        self.0.layout.get()
    }

    /// Which state is read: see [`Mark`].
    pub fn mark(&self) -> Option<Mark> {
        self.0.pager().ok()?.mark()
    }

    /// Within a write transaction: the state from which it began, and the pages that it has changed; `None` if that cannot
    /// be told.
    pub fn began_from(&self) -> Option<(Mark, Vec<Pgno>)> {
        self.0.pager().ok()?.began_from().map(|(m, p)| (m, p.to_vec()))
    }

    /// How many pages [`Btree::began_from`] would name.
    pub fn changed_pages(&self) -> usize {
        self.0.pager().ok().and_then(|p| p.began_from().map(|(_, pages)| pages.len())).unwrap_or(0)
    }

    /// The pages that differ between `then` and the state being read (or, within a write transaction, the one from which
    /// it began); `None` if that cannot be told.
    pub fn changed_since(&self, then: &Mark) -> Result<Option<Vec<Pgno>>> {
        self.0.pager()?.changed_since(then)
    }

    /// The file, as device and inode, if it can be told apart from others.
    pub fn identity(&self) -> Option<(u64, u64)> {
        self.0.pager().ok()?.identity().map(|i| (i.device, i.inode))
    }

    /// What names the state that is read for other processes and later times: see [`Base`].
    pub fn base(&self, wait: bool) -> Result<Option<Base>> {
        self.0.pager()?.base(wait)
    }

    /// The pages that differ between a state of another time and the one being read; `None` if that cannot be told.
    pub fn changed_since_base(&self, mark: &Mark, base: &Base) -> Result<Option<Vec<Pgno>>> {
        self.0.pager()?.changed_since_base(mark, base)
    }

    /// Asks to be told when the last connection has folded the log into the file.
    pub fn note_closing(&self, note: ClosingNote) -> Result<()> {
        self.0.pager()?.note_closing(note);
        Ok(())
    }

    /// Where the file lies: its VFS and its full name.
    pub fn place(&self) -> Option<(Arc<dyn Vfs>, PathBuf)> {
        let p = self.0.pager().ok()?;
        p.identity().map(|_| (p.vfs().clone(), p.path().to_owned()))
    }
}
