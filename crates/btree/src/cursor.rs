//! Cursors: a position in a tree, and moving it.
//!
//! What always holds for a cursor in state `Valid` whose generation is that of its tree: its path leads from
//! the root to the node with the present entry, each node as it is in the page table, `cell` describes the
//! entry. A cursor whose generation is older stands on images that nobody changed (writers copy pages that
//! others hold), so its key can still be read and sought anew. Only overflow pages may have been reused:
//! therefore a cursor on an index entry that overflows leaves word in the tree's list of slots, and whoever
//! writes to the tree saves its key first.

use crate::btree::Shared;
use crate::node::*;
use crate::room::make_empty;
use crate::run::{Run, ask_later};
use iolite_base::{Buf, Code, Pgno, Result, be};
use std::cell::{Cell as StdCell, RefCell};
use std::cmp::Ordering;
use std::rc::Rc;

/// Compares two whole records of an index: an entry with a key. Needed where a cursor must find its place
/// again.
pub type KeyCompare = Rc<dyn Fn(&[u8], &[u8]) -> Result<Ordering>>;

/// How an entry of an index compares with what is sought. Closures will do; a type of its own can have its comparison
/// compiled into the search.
pub trait EntryOrder {
    /// The entry against the key.
    fn order(&mut self, entry: &[u8]) -> Result<Ordering>;

    /// The key's first field, if it is an integer and in ascending order: entries that begin with a smaller integer come
    /// before the key then, those with a larger one after it, and `order` need not be asked.
    #[inline]
    fn first_int(&self) -> Option<i64> {
        None
    }

    /// Its second field, in the same way: of entries that begin with the same integer.
    #[inline]
    fn second_int(&self) -> Option<i64> {
        None
    }

    /// The [`beginning`](iolite_base::be::beginning) of what follows the first `from` bytes of the key's first field, if it is a
    /// text in the ascending order of its bytes and has so many: entries that begin with a text are told apart by that, and `order` is
    /// asked where it is the same.
    #[inline]
    fn first_text(&self, from: usize) -> Option<u64> {
        let _ = from;
        None
    }

    /// That text against all texts that begin with `prefix`: before them, one of them, behind them.
    #[inline]
    fn text_against(&self, prefix: &[u8]) -> Ordering {
        let _ = prefix;
        Ordering::Equal
    }
}

impl<F: FnMut(&[u8]) -> Result<Ordering>> EntryOrder for F {
    fn order(&mut self, entry: &[u8]) -> Result<Ordering> {
        self(entry)
    }
}

/// What the caller knows about the place of a new entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InsertAt {
    /// Nothing.
    Unknown,
    /// It comes after all others. In a table this is looked at; of an index entry it must be so.
    Append,
    /// The cursor was just placed by a seek for this key, with this result.
    Here(Ordering),
}

impl Parked {
    /// Lets go of its pages; the room for a path stays.
    pub fn forget(&mut self) {
        self.path.clear();
    }
}

/// What the cursors of one tree share.
pub struct Tree {
    /// Rises with every change of the tree, and when its pages may have changed otherwise.
    pub generation: StdCell<u32>,
    /// Cursors standing on entries that overflow.
    pub slots: RefCell<Vec<Slot>>,
    /// How many of the slots hold a position.
    pub armed: StdCell<u32>,
    /// The last entry inserted came behind all others: the next one may, too.
    pub appended: StdCell<bool>,
    /// How well the first seeks of cursors that took a parked path over have ended on its leaf: not at all if negative.
    pub near: StdCell<i8>,
    /// Where the last cursor that was let go of stood: the next one on this tree begins there.
    pub parked: RefCell<Parked>,
    /// It stands in the list of trees that may have a parked path.
    pub listed: StdCell<bool>,
}

/// A path that no cursor uses. With an empty path, there is none.
#[derive(Default)]
pub struct Parked {
    path: Vec<Node>,
    cell: Cell,
    /// It leads to an entry, which `cell` describes; else only its pages are of use.
    valid: bool,
    /// The tree's when the path was left: once it is another, the path is void.
    generation: u32,
}

/// Where a cursor on an overflowing entry stands.
#[derive(Default)]
pub struct Slot {
    pub used: bool,
    pub at: Option<(Buf, Cell)>,
    pub key: Option<Vec<u8>>,
}

/// The cache has so many pages for each parked path.
const PAGES_PER_PATH: usize = 64;

/// Deeper trees are taken for damaged: at 512 bytes a page, 20 levels hold more than any file can.
pub(crate) const MAX_DEPTH: usize = 20;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pos {
    /// On no entry.
    Invalid,
    /// On the entry that the path leads to, as far as the generation says.
    Valid,
    /// The key is saved; the path is not to be used.
    Saved,
}

/// A position in a tree. See the module's head.
pub struct Cursor {
    pub(crate) bt: Rc<Shared>,
    pub(crate) tree: Rc<Tree>,
    pub(crate) root: Pgno,
    pub(crate) kind: TreeKind,
    pub(crate) write: bool,
    /// The count of the trees' trips when it was opened.
    pub(crate) trips: u32,
    /// Likewise of changes of the schema that were taken back.
    cuts: u32,
    pub(crate) layout: Layout,
    pub(crate) pos: Pos,
    /// 1: `next` need not move, the cursor already stands on the following entry. -1: the same for `prev`.
    pub(crate) skip: i8,
    pub(crate) generation: u32,
    pub(crate) cell: Cell,
    pub(crate) path: Vec<Node>,
    /// The row numbers of the root's first and last cells, and the generation under which the cursor sought last.
    pub(crate) root_span: Option<(i64, i64)>,
    pub(crate) root_span_of: Option<u32>,
    pub(crate) saved_rowid: i64,
    pub(crate) saved_key: Vec<u8>,
    pub(crate) slot: Option<usize>,
    pub(crate) armed: bool,
    pub(crate) compare: Option<KeyCompare>,
    /// Whole payloads that lie on several pages, for comparisons.
    pub(crate) whole: Vec<u8>,
    /// The cell being written.
    pub(crate) new_cell: Vec<u8>,
    /// The overflow pages of the present entry as far as they were walked; valid for `chain_of`.
    pub(crate) chain: Vec<Pgno>,
    pub(crate) chain_of: Pgno,
    pub(crate) chain_generation: u32,
    /// The leaves that it goes through in order.
    pub(crate) run: Run,
    /// How well seeks have ended on the leaf on which the one before ended: not at all if negative. Of a reading cursor nobody asks.
    pub(crate) near: i8,
    /// The path is that of another cursor, and no place was looked for in it yet.
    pub(crate) taken_over: bool,
}

impl Cursor {
    pub(crate) fn new(bt: Rc<Shared>, tree: Rc<Tree>, root: Pgno, kind: TreeKind, write: bool) -> Cursor {
        let layout = bt.layout.get();
        let generation = tree.generation.get();
        let (trips, cuts) = (bt.trips.get(), bt.cuts.get());
        Cursor {
            bt,
            tree,
            root,
            kind,
            write,
            trips,
            cuts,
            layout,
            pos: Pos::Invalid,
            skip: 0,
            generation,
            cell: Cell::default(),
            path: Vec::with_capacity(4),
            root_span: None,
            root_span_of: None,
            saved_rowid: 0,
            saved_key: Vec::new(),
            slot: None,
            armed: false,
            compare: None,
            whole: Vec::new(),
            new_cell: Vec::new(),
            chain: Vec::new(),
            chain_of: 0,
            chain_generation: 0,
            run: Run::default(),
            near: if write { 0 } else { i8::MIN },
            taken_over: false,
        }
    }

    /// Sets how records compare: an index cursor needs it to find its place again after others wrote.
    pub fn set_compare(&mut self, compare: KeyCompare) {
        self.compare = Some(compare);
    }

    /// Whether it may write.
    #[inline]
    pub(crate) fn may_write(&self) -> Result<()> {
        if !self.write {
            return Err(Code::Readonly.into());
        }
        if self.trips != self.bt.trips.get() {
            return Err(Code::AbortRollback.into());
        }
        Ok(())
    }

    /// The root page of the tree.
    pub fn root(&self) -> Pgno {
        self.root
    }

    /// What the tree is keyed by.
    pub fn kind(&self) -> TreeKind {
        self.kind
    }

    /// Whether the cursor was opened for writing.
    pub fn is_writable(&self) -> bool {
        self.write
    }

    /// Whether the cursor stands on an entry (perhaps one that is to be found again: see
    /// [`Cursor::restore`]).
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.pos != Pos::Invalid
    }

    /// Whether somebody changed the tree since the cursor was placed, so that [`Cursor::restore`] is due.
    #[inline]
    pub fn is_stale(&self) -> bool {
        self.pos == Pos::Saved || (self.pos == Pos::Valid && self.generation != self.tree.generation.get())
    }

    /// On an entry, its path as good as new, nothing to look out for.
    #[inline(always)]
    fn is_settled(&self) -> bool {
        u32::from_ne_bytes([self.pos as u8, self.skip as u8, self.armed as u8, 0])
            == u32::from_ne_bytes([Pos::Valid as u8, 0, 0, 0])
            && self.current()
    }

    #[inline(always)]
    pub(crate) fn current(&self) -> bool {
        self.generation == self.tree.generation.get()
    }

    /// Fetches a page as a node of this tree.
    #[inline]
    pub(crate) fn load(&self, pgno: Pgno) -> Result<Node> {
        if self.path.len() >= MAX_DEPTH {
            return Err(corrupt());
        }
        let page = self.bt.pager()?.get(pgno)?;
        Node::new(page, pgno, self.kind, &self.layout)
    }

    /// Goes down to a child: its node joins the path. (It is made where it stays: moved there, its fields were read back as
    /// wider words than they had been written as, for which the processor waits.)
    #[inline]
    pub(crate) fn descend(&mut self, pgno: Pgno) -> Result<()> {
        if self.path.len() >= MAX_DEPTH {
            return Err(corrupt());
        }
        let page = self.bt.pager()?.get(pgno)?;
        let Some((leaf, ncell, ptrs)) = Node::head(&page, pgno, self.kind, &self.layout) else {
            return Err(corrupt());
        };
        self.path.push(Node { page, pgno, ncell, idx: 0, ptrs, leaf });
        Ok(())
    }

    /// Leaves only the root in the path, fetching it if it is not there or not current.
    #[inline]
    pub(crate) fn go_to_root(&mut self) -> Result<()> {
        self.disarm();
        self.skip = 0;
        if self.current() && !self.path.is_empty() {
            self.path.truncate(1);
            self.path[0].idx = 0;
            return Ok(());
        }
        self.path.clear();
        self.pos = Pos::Invalid;
        if self.cuts != self.bt.cuts.get() {
            return Err(Code::AbortRollback.into());
        }
        self.layout = self.bt.layout.get();
        self.generation = self.tree.generation.get();
        let root = match self.load(self.root) {
            Err(_) if self.root == 1 && self.bt.pager()?.db_size() == 0 => self.missing_root()?,
            other => other?,
        };
        self.path.push(root);
        Ok(())
    }

    /// Where the row numbers in the cells of the root lie, on which the path begins. They are kept from the second seek on a tree
    /// that does not change: a single one looks for itself.
    #[inline(always)]
    pub(crate) fn span_of_root(&mut self) -> (i64, i64) {
        match self.root_span {
            Some(span) if self.root_span_of == Some(self.generation) => span,
            _ => self.look_at_root(),
        }
    }

    #[inline(never)]
    fn look_at_root(&mut self) -> (i64, i64) {
        let again = self.root_span_of.replace(self.generation) == Some(self.generation);
        self.root_span = if again { self.path.first().map(Node::span) } else { None };
        self.root_span.unwrap_or((i64::MIN, i64::MAX))
    }

    /// A database without pages reads as one with an empty schema.
    #[cold]
    fn missing_root(&self) -> Result<Node> {
        let mut page = [0u8; 512];
        make_empty(&mut page, 100, TABLE_LEAF, 512);
        Node::new(Buf::copy_of(&page)?, 1, self.kind, &self.layout)
    }

    /// Reads the cell that the path leads to.
    #[inline(always)]
    pub(crate) fn read_cell(&mut self) -> Result<bool> {
        let Some(n) = self.path.last() else { return Ok(false) };
        if n.idx >= n.ncell {
            return Err(corrupt());
        }
        let (page, at): (&[u8], usize) = (&n.page, n.cell_at(n.idx));
        let quick = match (n.leaf, self.kind) {
            (true, TreeKind::Table) => Cell::table_leaf(page, at, &self.layout),
            (true, TreeKind::Index) => Cell::index_leaf(page, at, &self.layout),
            _ => None,
        };
        if let Some(cell) = quick {
            // By far the most seeks end here, on a cell that does not overflow.
            self.cell = cell;
            self.pos = Pos::Valid;
            return Ok(true);
        }
        self.cell = Cell::read(page, at, self.kind, n.leaf, &self.layout)?;
        self.pos = Pos::Valid;
        if self.kind == TreeKind::Index && self.cell.overflows() {
            self.arm();
        }
        Ok(true)
    }

    /// Leaves word that the cursor stands on an entry that overflows.
    #[cold]
    fn arm(&mut self) {
        let Some(n) = self.path.last() else { return };
        let mut slots = self.tree.slots.borrow_mut();
        let i = match self.slot {
            Some(i) => i,
            None => {
                let i = match slots.iter().position(|s| !s.used) {
                    Some(i) => i,
                    None => {
                        slots.push(Slot::default());
                        slots.len() - 1
                    }
                };
                slots[i].used = true;
                self.slot = Some(i);
                i
            }
        };
        slots[i].at = Some((n.page.clone(), self.cell));
        slots[i].key = None;
        if !self.armed {
            self.armed = true;
            self.tree.armed.set(self.tree.armed.get() + 1);
        }
    }

    #[inline(always)]
    pub(crate) fn disarm(&mut self) {
        if self.armed {
            self.disarm_slow();
        }
    }

    #[cold]
    fn disarm_slow(&mut self) {
        self.armed = false;
        self.tree.armed.set(self.tree.armed.get() - 1);
        if let Some(i) = self.slot {
            let mut slots = self.tree.slots.borrow_mut();
            slots[i].at = None;
            slots[i].key = None;
        }
    }

    /// A writing cursor that stands nowhere takes over where the last one on this tree stood, if nothing has changed since:
    /// a statement that runs again and again finds its pages in its hands. (Five pages of a table and its index are
    /// looked up for a row inserted into both otherwise. Reads mostly go elsewhere the next time: nothing is gained.)
    #[inline(always)]
    pub(crate) fn take_over(&mut self) {
        if self.write && self.path.is_empty() && self.pos == Pos::Invalid {
            self.take_parked();
        }
    }

    fn take_parked(&mut self) {
        let mut parked = self.tree.parked.borrow_mut();
        let Some(root) = parked.path.first() else { return };
        let fits = parked.generation == self.tree.generation.get()
            && root.pgno == self.root
            && root.kind() == self.kind;
        if !fits {
            parked.path.clear();
            return;
        }
        std::mem::swap(&mut parked.path, &mut self.path);
        self.taken_over = true;
        self.cell = parked.cell;
        self.generation = parked.generation;
        self.layout = self.bt.layout.get();
        self.pos = if parked.valid { Pos::Valid } else { Pos::Invalid };
        self.skip = 0;
    }

    /// Leaves the path for the next cursor. The pages of parked paths cannot be evicted, so a small cache has none;
    /// nor has page 1, which commits change: a page that somebody holds is copied then.
    fn park(&mut self) {
        if !self.tree.listed.get() {
            let most = self.bt.pager.try_borrow().map_or(0, |p| p.cache_target() / PAGES_PER_PATH);
            if self.root == 1 || most == 0 {
                return;
            }
            self.bt.list_parked(&self.tree, most);
        }
        let mut parked = self.tree.parked.borrow_mut();
        parked.path.clear();
        std::mem::swap(&mut parked.path, &mut self.path);
        parked.cell = self.cell;
        parked.valid = self.pos == Pos::Valid && self.skip == 0;
        parked.generation = self.generation;
    }

    /// Goes to the first entry. `false`: there is none.
    pub fn first(&mut self) -> Result<bool> {
        self.take_over();
        self.run = Run::default();
        self.go_to_root()?;
        self.pos = Pos::Invalid;
        let root = &self.path[0];
        if root.leaf && root.ncell == 0 {
            return Ok(false);
        }
        self.descend_left()?;
        self.read_cell()
    }

    /// Goes to the last entry. `false`: there is none.
    pub fn last(&mut self) -> Result<bool> {
        self.take_over();
        if self.is_last() {
            return Ok(true);
        }
        self.run = Run::default();
        self.go_to_root()?;
        self.pos = Pos::Invalid;
        let root = &self.path[0];
        if root.leaf && root.ncell == 0 {
            return Ok(false);
        }
        self.descend_right()?;
        self.read_cell()
    }

    /// Whether the cursor is known to stand on the last entry. `false` may also mean that it has to be
    /// sought.
    #[inline]
    pub fn is_last(&self) -> bool {
        if self.pos != Pos::Valid || !self.current() || self.skip != 0 {
            return false;
        }
        let Some((leaf, above)) = self.path.split_last() else { return false };
        leaf.leaf && leaf.idx + 1 == leaf.ncell && above.iter().all(|n| n.idx == n.ncell)
    }

    /// Down from the top of the path: its child `idx`, then always the left one.
    pub(crate) fn descend_left(&mut self) -> Result<()> {
        loop {
            let n = self.path.last().ok_or(Code::Internal)?;
            if n.leaf {
                return if n.ncell == 0 { Err(corrupt()) } else { Ok(()) };
            }
            let pgno = n.child(n.idx)?;
            self.descend(pgno)?;
        }
    }

    /// Down from the top of the path, always right.
    pub(crate) fn descend_right(&mut self) -> Result<()> {
        loop {
            let n = self.path.last_mut().ok_or(Code::Internal)?;
            if n.leaf {
                if n.ncell == 0 {
                    return Err(corrupt());
                }
                n.idx = n.ncell - 1;
                return Ok(());
            }
            n.idx = n.ncell;
            let pgno = n.child(n.ncell)?;
            self.descend(pgno)?;
        }
    }

    /// Goes to the following entry. `false`: there is none, and the cursor stands nowhere.
    #[inline(always)]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool> {
        if self.is_settled()
            && let Some(n) = self.path.last_mut()
            && n.leaf
            && n.idx + 1 < n.ncell
        {
            let page: &[u8] = &n.page;
            let at = be::get_u16(page, (n.ptrs + 2 * n.idx + 2) as usize) as usize;
            let quick = match self.kind {
                TreeKind::Table => Cell::table_leaf(page, at, &self.layout),
                TreeKind::Index => Cell::index_leaf(page, at, &self.layout),
            };
            if let Some(cell) = quick {
                n.idx += 1;
                self.cell = cell;
                return Ok(true);
            }
        }
        self.next_slow()
    }

    /// Goes on through the entries of the present leaf as long as `each` wants another one, `most` at most; how many there were. None
    /// is left out: where this ends, [`Cursor::next`] goes on.
    #[inline(always)]
    pub fn walk(&mut self, most: u32, mut each: impl FnMut(&Buf, &Cell) -> bool) -> Result<u32> {
        self.walk_leaf(most, |page, cell| (true, each(page, cell)))
    }

    /// The same, up to the entry before the first that `each` does not want.
    #[inline(always)]
    pub fn walk_while(&mut self, most: u32, mut each: impl FnMut(&Buf, &Cell) -> bool) -> Result<u32> {
        self.walk_leaf(most, |page, cell| {
            let wanted = each(page, cell);
            (wanted, wanted)
        })
    }

    /// Goes through the entries behind the cursor on its leaf: whether each is gone to, and whether there is to be another.
    #[inline(always)]
    fn walk_leaf(&mut self, most: u32, mut each: impl FnMut(&Buf, &Cell) -> (bool, bool)) -> Result<u32> {
        if !self.is_settled() {
            return Ok(0);
        }
        let Some(n) = self.path.last_mut() else { return Ok(0) };
        let page: &[u8] = &n.page;
        let (from, end) = (n.idx + 1, n.ncell.min(n.idx.saturating_add(1).saturating_add(most)));
        if !n.leaf || from >= end {
            return Ok(0);
        }
        let Some(pointers) = page.get((n.ptrs + 2 * from) as usize..(n.ptrs + 2 * end) as usize) else {
            return Ok(0);
        };
        let mut cells = 0;
        for pointer in pointers.as_chunks::<2>().0 {
            let at = u16::from_be_bytes(*pointer) as usize;
            let quick = match self.kind {
                TreeKind::Table => Cell::table_leaf(page, at, &self.layout),
                TreeKind::Index => Cell::index_leaf(page, at, &self.layout),
            };
            let Some(cell) = quick else { break };
            let (taken, goes_on) = each(&n.page, &cell);
            cells += u32::from(taken);
            if !goes_on {
                break;
            }
        }
        n.idx += cells;
        if cells > 0 {
            // Read again, once: kept up for each entry, it is a third of what the walk does.
            self.read_cell()?;
        }
        Ok(cells)
    }

    /// Passes over entries of the present leaf without looking at them, `most` at most, so that the cursor stands on the last of them; how
    /// many there were. `back`: those before, instead of those behind.
    pub fn pass(&mut self, most: u32, back: bool) -> Result<u32> {
        if !self.is_settled() {
            return Ok(0);
        }
        let Some(n) = self.path.last_mut() else { return Ok(0) };
        let passed = most.min(if back { n.idx } else { n.ncell.saturating_sub(n.idx + 1) });
        if !n.leaf || passed == 0 {
            return Ok(0);
        }
        n.idx = if back { n.idx - passed } else { n.idx + passed };
        self.read_cell()?;
        Ok(passed)
    }

    /// Leaves are gone through in order: the one that was left, and the child to come.
    fn goes_on(&mut self, left: Pgno, back: bool) {
        if let Some(n) = self.path.last()
            && let Some(next) = self.run.goes_on(n, left)
            && let Ok(mut pager) = self.bt.pager()
        {
            self.run.read_ahead(&mut pager, n, next, back);
        }
    }

    #[inline(never)]
    fn next_slow(&mut self) -> Result<bool> {
        if self.is_stale() {
            self.restore()?;
        }
        if self.pos == Pos::Invalid {
            return Ok(false);
        }
        if std::mem::replace(&mut self.skip, 0) > 0 {
            return Ok(true);
        }
        self.disarm();
        if let Some(n) = self.path.last_mut() {
            n.idx += 1;
            if n.leaf && n.idx < n.ncell {
                return self.read_cell();
            }
            if !n.leaf {
                self.goes_on(self.run.left, false);
                self.descend_left()?;
                return self.read_cell();
            }
        }
        loop {
            // The root stays: whoever begins anew need not load it.
            if self.path.len() < 2 {
                self.pos = Pos::Invalid;
                return Ok(false);
            }
            let left = self.path.pop();
            let Some(n) = self.path.last_mut() else { return Err(Code::Internal.into()) };
            if n.idx >= n.ncell {
                continue;
            }
            let left = left.filter(|l| l.leaf).map_or(0, |l| l.pgno);
            match self.kind {
                TreeKind::Table => {
                    n.idx += 1;
                    self.goes_on(left, false);
                    self.descend_left()?;
                }
                TreeKind::Index => self.run.left = left,
            }
            return self.read_cell();
        }
    }

    /// Goes to the entry before. `false`: there is none, and the cursor stands nowhere.
    #[inline]
    pub fn prev(&mut self) -> Result<bool> {
        if self.is_settled()
            && let Some(n) = self.path.last_mut()
            && n.leaf
            && n.idx > 0
        {
            n.idx -= 1;
            return self.read_cell();
        }
        self.prev_slow()
    }

    #[inline(never)]
    fn prev_slow(&mut self) -> Result<bool> {
        if self.is_stale() {
            self.restore()?;
        }
        if self.pos == Pos::Invalid {
            return Ok(false);
        }
        if std::mem::replace(&mut self.skip, 0) < 0 {
            return Ok(true);
        }
        self.disarm();
        if let Some(n) = self.path.last_mut() {
            if !n.leaf {
                // On an interior entry: the one before is the last below its left child.
                let pgno = n.child(n.idx)?;
                self.goes_on(self.run.left, true);
                self.descend(pgno)?;
                self.descend_right()?;
                return self.read_cell();
            }
            if n.idx > 0 {
                n.idx -= 1;
                return self.read_cell();
            }
        }
        loop {
            // The root stays: whoever begins anew need not load it.
            if self.path.len() < 2 {
                self.pos = Pos::Invalid;
                return Ok(false);
            }
            let left = self.path.pop();
            let Some(n) = self.path.last_mut() else { return Err(Code::Internal.into()) };
            if n.idx == 0 {
                continue;
            }
            n.idx -= 1;
            let pgno = n.child(n.idx)?;
            let left = left.filter(|l| l.leaf).map_or(0, |l| l.pgno);
            match self.kind {
                TreeKind::Table => {
                    self.goes_on(left, true);
                    self.descend(pgno)?;
                    self.descend_right()?;
                }
                TreeKind::Index => self.run.left = left,
            }
            return self.read_cell();
        }
    }

    /// Finds the cursor's place again after somebody wrote. `true`: the entry is gone; the cursor stands on a
    /// neighbour, and `next` and `prev` go on from where the entry was.
    pub fn restore(&mut self) -> Result<bool> {
        if !self.is_stale() {
            return Ok(self.skip != 0);
        }
        if self.pos == Pos::Valid {
            self.save_key()?;
        }
        let found = match self.kind {
            TreeKind::Table => {
                let rowid = self.saved_rowid;
                self.forget_path();
                self.seek_rowid(rowid)?
            }
            TreeKind::Index => {
                let key = std::mem::take(&mut self.saved_key);
                self.forget_path();
                let compare = self.compare.clone().ok_or(Code::Internal)?;
                let found = self.seek_key(&mut |entry: &[u8]| compare(entry, &key));
                self.saved_key = key;
                found?
            }
        };
        match found {
            None => {
                self.pos = Pos::Invalid;
                Ok(true)
            }
            Some(Ordering::Equal) => Ok(false),
            Some(Ordering::Less) => {
                self.skip = -1;
                Ok(true)
            }
            Some(Ordering::Greater) => {
                self.skip = 1;
                Ok(true)
            }
        }
    }

    fn forget_path(&mut self) {
        self.disarm();
        self.path.clear();
        self.pos = Pos::Invalid;
    }

    /// Saves the key of the present entry; the path is given up.
    pub(crate) fn save_key(&mut self) -> Result<()> {
        if self.pos != Pos::Valid {
            return Ok(());
        }
        self.saved_rowid = self.cell.rowid;
        if self.kind == TreeKind::Index {
            let slot_key = match (self.armed, self.slot) {
                (true, Some(i)) => self.tree.slots.borrow_mut()[i].key.take(),
                _ => None,
            };
            match slot_key {
                Some(key) => self.saved_key = key,
                None => {
                    let mut key = std::mem::take(&mut self.saved_key);
                    let n = self.path.last().ok_or(Code::Internal)?;
                    let done = self.bt.whole_payload(&n.page, &self.cell, &mut key);
                    self.saved_key = key;
                    done?;
                }
            }
        }
        self.disarm();
        self.pos = Pos::Saved;
        Ok(())
    }

    /// The row number of the entry.
    #[inline(always)]
    pub fn rowid(&self) -> i64 {
        if self.pos == Pos::Saved { self.saved_rowid } else { self.cell.rowid }
    }

    /// Bytes of payload, overflow included.
    #[inline(always)]
    pub fn payload_len(&self) -> u32 {
        self.cell.payload
    }

    /// The page that the cursor stands on, or stood on last.
    #[inline(always)]
    pub fn top_page(&self) -> Option<&Buf> {
        self.path.last().map(|n| &n.page)
    }

    /// The part of the payload that lies in the page: page, position, length. Panics if the cursor stands
    /// nowhere.
    #[inline(always)]
    pub fn local(&self) -> (&Buf, usize, usize) {
        let n = self.path.last().expect("a cursor on an entry");
        (&n.page, self.cell.at as usize, self.cell.local as usize)
    }

    /// The whole payload at the cursor, in place of what `out` holds. No more is asked for than the file can hold.
    pub fn read_entry(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let n = self.cell.payload as usize;
        let file = self.bt.pager()?.db_size() as u64 * self.bt.layout.get().usable as u64;
        if n as u64 > file {
            return Err(corrupt());
        }
        out.clear();
        iolite_base::alloc::reserve(out, n)?;
        let (page, at, local) = self.local();
        out.extend_from_slice(&page[at..at + local]);
        if local < n {
            out.resize(n, 0);
            self.read_payload(local as u32, &mut out[local..])?;
        }
        Ok(())
    }

    /// Lets go of the place and all pages; the next cursor on this tree may find them where this one stood.
    #[inline(always)]
    pub fn clear(&mut self) {
        if !self.path.is_empty() || self.pos != Pos::Invalid {
            self.let_go();
        }
        self.skip = 0;
        self.cell = Cell::default();
    }

    /// As [`Cursor::clear`], and it may write again: as if it were opened now.
    pub fn renew(&mut self) {
        self.clear();
        self.trips = self.bt.trips.get();
        self.cuts = self.bt.cuts.get();
    }

    fn let_go(&mut self) {
        if self.write && self.pos != Pos::Saved && !self.armed && self.current() && !self.path.is_empty() {
            self.park();
        }
        self.forget_path();
    }

    /// Counts the entries of the tree. The cursor stands nowhere afterwards.
    pub fn count(&mut self) -> Result<u64> {
        self.run = Run::default();
        self.go_to_root()?;
        self.pos = Pos::Invalid;
        let mut n = 0u64;
        loop {
            let top = self.path.last().ok_or(Code::Internal)?;
            // Of a leaf all, of an interior node those between leaves that are at hand.
            n += if top.leaf { top.ncell as u64 } else { self.count_at_hand()? };
            let mut left = 0;
            while self.path.last().is_some_and(|top| top.leaf || top.idx > top.ncell) {
                left = self.path.pop().filter(|node| node.leaf).map_or(0, |node| node.pgno);
                let Some(up) = self.path.last_mut() else { return Ok(n) };
                n += up.passes_entry(self.kind);
            }
            self.goes_on(left, false);
            let top = self.path.last().ok_or(Code::Internal)?;
            let pgno = top.child(top.idx)?;
            self.descend(pgno)?;
        }
    }

    /// Goes on through the children of the node at the top of the path as long as they are leaves at hand, and counts their entries
    /// and those between them. No page is held for that.
    fn count_at_hand(&mut self) -> Result<u64> {
        let top = self.path.last_mut().ok_or(Code::Internal)?;
        let pager = self.bt.pager()?;
        let mut n = 0;
        while top.idx <= top.ncell {
            let pgno = top.child(top.idx)?;
            let head = pager.peek(pgno).and_then(|page| Node::head(page, pgno, self.kind, &self.layout));
            let Some((true, entries, _)) = head else { break };
            ask_later(&pager, top, false);
            n += entries as u64 + top.passes_entry(self.kind);
        }
        Ok(n)
    }

    /// About how many entries the tree has, from the path down to its first one: each page there counts for all of its level.
    pub fn estimate(&mut self) -> Result<u64> {
        if !self.first()? {
            return Ok(0);
        }
        Ok(self.path.iter().fold(1u64, |n, node| n.saturating_mul(below(node))))
    }

    /// About how many leaves the tree has, likewise.
    pub fn estimate_leaves(&mut self) -> Result<u64> {
        if !self.first()? {
            return Ok(0);
        }
        let inner = self.path.iter().filter(|n| !n.leaf);
        Ok(inner.fold(1u64, |n, node| n.saturating_mul(below(node))))
    }
}

/// How many entries or pages lie under a page.
fn below(n: &Node) -> u64 {
    n.ncell as u64 + !n.leaf as u64
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.disarm();
        if let Some(i) = self.slot {
            self.tree.slots.borrow_mut()[i] = Slot::default();
        }
    }
}
