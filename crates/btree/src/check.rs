//! `PRAGMA integrity_check` for pages: is every page used exactly once, and every tree well formed?
//!
//! What it finds is said in SQLite's words, since people search for them. The walk keeps its own stack and
//! visits no page twice, so a file cannot make it run deep or for ever.

use crate::btree::{Btree, Shared};
use crate::node::*;
use crate::ptrmap;
use crate::room::*;
use iolite_base::{Buf, Code, Error, Pgno, Result, alloc, be};

/// What is being looked at, which messages begin with.
#[derive(Clone, Copy)]
enum Place {
    Nowhere,
    Freelist,
    Page { root: Pgno, page: Pgno },
    RightChild { root: Pgno, page: Pgno },
    Cell { root: Pgno, page: Pgno, cell: u32 },
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Nowhere => Ok(()),
            Place::Freelist => f.write_str("Freelist: "),
            Place::Page { root, page } => write!(f, "Tree {root} page {page}: "),
            Place::RightChild { root, page } => write!(f, "Tree {root} page {page} right child: "),
            Place::Cell { root, page, cell } => write!(f, "Tree {root} page {page} cell {cell}: "),
        }
    }
}

struct Check<'a> {
    bt: &'a Shared,
    used: Vec<u8>,
    pages: Pgno,
    errors: Vec<String>,
    left: usize,
    layout: Layout,
    at: Place,
    /// Those of the tree at hand that were met.
    entries: u64,
    /// The bytes of the page at hand that are somebody's, a bit each.
    covered: Vec<u64>,
}

/// A page whose children are being visited.
struct Visit {
    node: Node,
    /// The cell to look at next, counted down; `ncell` stands for the right child.
    next: i64,
    max_key: i64,
    may_equal: bool,
    depth: Option<u32>,
    content: u32,
    failed: bool,
}

impl Btree {
    /// Checks the trees with these roots, the freelist, and that every page is used; a leading 0 among the
    /// roots: only the trees. At most `max_errors` findings; and for each root how many entries its tree has, as far as it can be
    /// read.
    pub fn integrity_check(&self, roots: &[Pgno], max_errors: usize) -> Result<(Vec<String>, Vec<u64>)> {
        let bt = &*self.0;
        self.begin_read()?;
        let pages = self.page_count();
        if pages == 0 {
            return Ok((Vec::new(), vec![0; roots.len()]));
        }
        let mut entries = Vec::with_capacity(roots.len());
        let partial = roots.first() == Some(&0);
        let mut c = Check {
            bt,
            used: alloc::zeroed(pages as usize / 8 + 1)?,
            pages,
            errors: Vec::new(),
            left: max_errors,
            layout: bt.layout.get(),
            at: Place::Nowhere,
            entries: 0,
            covered: alloc::zeroed_words(bt.layout.get().usable as usize / 64 + 1)?,
        };
        let lock = self.pager()?.lock_page();
        if lock <= pages {
            c.mark(lock);
        }
        if !partial {
            let p1 = bt.header_page()?;
            c.at = Place::Freelist;
            c.list(true, be::get_u32(&p1, 32), be::get_u32(&p1, 36))?;
            c.at = Place::Nowhere;
            let largest = be::get_u32(&p1, 52);
            if bt.has_ptrmap() {
                let most = roots.iter().copied().max().unwrap_or(0);
                if most != largest {
                    c.say(format!("max rootpage ({most}) disagrees with header ({largest})"));
                }
            } else if be::get_u32(&p1, 64) != 0 {
                c.say("incremental_vacuum enabled with a max rootpage of zero".into());
            }
        }
        for &root in roots {
            c.entries = 0;
            if root == 0 || c.left == 0 {
                entries.push(0);
                continue;
            }
            if bt.has_ptrmap() && root > 1 && !partial {
                c.pointer(root, ptrmap::ROOT, 0)?;
            }
            match c.tree(root) {
                Err(e) if !stops(&e) => c.say(format!("error code={}", e.code().number())),
                other => other?,
            }
            entries.push(c.entries);
        }
        c.at = Place::Nowhere;
        if !partial {
            for p in 1..=pages {
                if c.left == 0 {
                    break;
                }
                let map = bt.has_ptrmap() && bt.is_ptrmap(p)?;
                if !c.is_marked(p) && !map {
                    c.say(format!("Page {p}: never used"));
                }
                if c.is_marked(p) && map {
                    c.say(format!("Page {p}: pointer map referenced"));
                }
            }
        }
        Ok((c.errors, entries))
    }
}

impl Check<'_> {
    fn say(&mut self, text: String) {
        if self.left > 0 {
            self.left -= 1;
            self.errors.push(format!("{}{text}", self.at));
        }
    }

    fn is_marked(&self, p: Pgno) -> bool {
        self.used[p as usize / 8] & 1 << (p % 8) != 0
    }

    fn mark(&mut self, p: Pgno) {
        self.used[p as usize / 8] |= 1 << (p % 8);
    }

    /// Notes a use of a page. `false`: it cannot be used (again).
    fn refer(&mut self, p: Pgno) -> bool {
        if p == 0 || p > self.pages {
            self.say(format!("invalid page number {p}"));
            return false;
        }
        if self.is_marked(p) {
            self.say(format!("2nd reference to page {p}"));
            return false;
        }
        self.mark(p);
        true
    }

    /// A page, or `None` if it cannot be read for a reason that lies in the file.
    fn page(&mut self, p: Pgno) -> Result<Option<Buf>> {
        let got = self.bt.pager()?.get(p);
        match got {
            Ok(b) => Ok(Some(b)),
            Err(e) if stops(&e) => Err(e),
            Err(_) => Ok(None),
        }
    }

    fn pointer(&mut self, child: Pgno, kind: u8, parent: Pgno) -> Result<()> {
        match self.bt.get_ptrmap(child) {
            Err(e) if stops(&e) => Err(e),
            Err(_) => {
                self.say(format!("Failed to read ptrmap key={child}"));
                Ok(())
            }
            Ok((k, p)) => {
                if (k, p) != (kind, parent) {
                    self.say(format!(
                        "Bad ptr map entry key={child} expected=({kind},{parent}) got=({k},{p})"
                    ));
                }
                Ok(())
            }
        }
    }

    /// The freelist, or an overflow chain, of `expected` pages.
    fn list(&mut self, free: bool, first: Pgno, expected: u32) -> Result<()> {
        let mut left = expected;
        let mut next = first;
        let errors_before = self.errors.len();
        while next != 0 && self.left > 0 {
            if !self.refer(next) {
                break;
            }
            left = left.wrapping_sub(1);
            let Some(page) = self.page(next)? else {
                self.say(format!("failed to get page {next}"));
                break;
            };
            if free {
                let n = be::get_u32(&page, 4);
                if self.bt.has_ptrmap() {
                    self.pointer(next, ptrmap::FREE, 0)?;
                }
                if n > self.layout.usable / 4 - 2 {
                    self.say(format!("freelist leaf count too big on page {next}"));
                    left = left.wrapping_sub(1);
                } else {
                    for i in 0..n as usize {
                        let leaf = be::get_u32(&page, 8 + 4 * i);
                        if self.bt.has_ptrmap() {
                            self.pointer(leaf, ptrmap::FREE, 0)?;
                        }
                        self.refer(leaf);
                    }
                    left = left.wrapping_sub(n);
                }
            } else if self.bt.has_ptrmap() && left > 0 {
                self.pointer(be::get_u32(&page, 0), ptrmap::OVERFLOW_NEXT, next)?;
            }
            next = be::get_u32(&page, 0);
        }
        if left != 0 && self.errors.len() == errors_before {
            let what = if free { "size" } else { "overflow list length" };
            let got = expected.wrapping_sub(left);
            self.say(format!("{what} is {got} but should be {expected}"));
        }
        Ok(())
    }

    fn tree(&mut self, root: Pgno) -> Result<()> {
        let mut stack: Vec<Visit> = Vec::new();
        self.at = Place::Nowhere;
        let Some(frame) = self.enter(root, root, None, i64::MAX, true)? else { return Ok(()) };
        stack.push(frame);
        while let Some(f) = stack.last_mut() {
            if self.left == 0 {
                return Ok(());
            }
            if f.next < 0 {
                let done = stack.pop().expect("the loop saw it");
                let depth = done.depth.unwrap_or(0) + 1;
                if !done.failed {
                    self.coverage(&done)?;
                }
                if let Some(up) = stack.last_mut() {
                    self.leave(root, up, depth, done.max_key);
                }
                continue;
            }
            let i = f.next as u32;
            if i == f.node.ncell {
                // The right child of an interior node.
                f.next -= 1;
                let (pgno, max, parent) = (f.node.child(i)?, f.max_key, f.node.pgno);
                let leaf_kind = kind_of(&f.node);
                self.at = Place::RightChild { root, page: parent };
                if self.bt.has_ptrmap() {
                    self.pointer(pgno, ptrmap::NODE, parent)?;
                }
                if stack.len() >= crate::cursor::MAX_DEPTH {
                    return Ok(());
                }
                if let Some(child) = self.enter(root, pgno, Some(leaf_kind), max, true)? {
                    stack.push(child);
                }
                continue;
            }
            if let Some((child, max)) = self.cell(root, stack.last_mut().expect("not empty"), i)? {
                let kind = kind_of(&stack.last().expect("not empty").node);
                if stack.len() >= crate::cursor::MAX_DEPTH {
                    return Ok(());
                }
                if let Some(frame) = self.enter(root, child, Some(kind), max, true)? {
                    stack.push(frame);
                }
            }
        }
        Ok(())
    }

    /// Opens a page of a tree.
    fn enter(
        &mut self,
        root: Pgno,
        pgno: Pgno,
        kind: Option<TreeKind>,
        max_key: i64,
        may_equal: bool,
    ) -> Result<Option<Visit>> {
        if pgno == 0 || !self.refer(pgno) {
            return Ok(None);
        }
        self.at = Place::Page { root, page: pgno };
        let page = match self.bt.pager()?.get(pgno) {
            Ok(p) => p,
            Err(e) if stops(&e) => return Err(e),
            Err(e) => {
                let code = e.code().number();
                self.say(format!("unable to get the page. error code={code}"));
                return Ok(None);
            }
        };
        let hdr = header_at(pgno);
        let found = match page[hdr] {
            TABLE_LEAF | TABLE_INTERIOR => Some(TreeKind::Table),
            INDEX_LEAF | INDEX_INTERIOR => Some(TreeKind::Index),
            _ => None,
        };
        let node = match found {
            Some(k) if kind.is_none_or(|want| want == k) => {
                Node::new(page.clone(), pgno, k, &self.layout).ok()
            }
            _ => None,
        };
        let Some(node) = node else {
            self.say("btreeInitPage() returns error code 11".into());
            return Ok(None);
        };
        let first = node.ptrs as usize + 2 * node.ncell as usize;
        let content = content_start(&page, hdr);
        let free = free_space(&page, node.frame(&self.layout));
        if free.is_err() || content < first {
            self.say("free space corruption".into());
            return Ok(None);
        }
        if node.leaf || found == Some(TreeKind::Index) {
            self.entries += node.ncell as u64;
        }
        let next = if node.leaf { node.ncell as i64 - 1 } else { node.ncell as i64 };
        Ok(Some(Visit {
            node,
            next,
            max_key,
            may_equal,
            depth: None,
            content: content as u32,
            failed: false,
        }))
    }

    /// A child came back: all children of a node have the same depth, and keys fall from right to left.
    fn leave(&mut self, root: Pgno, up: &mut Visit, depth: u32, min_key: i64) {
        let i = up.next + 1;
        up.max_key = min_key;
        up.may_equal = false;
        if up.depth.is_some_and(|d| d != depth) {
            self.at = Place::Cell { root, page: up.node.pgno, cell: i as u32 };
            self.say("Child page depth differs".into());
        }
        up.depth = Some(depth);
    }

    /// Looks at one cell; returns the child below it.
    fn cell(&mut self, root: Pgno, f: &mut Visit, i: u32) -> Result<Option<(Pgno, i64)>> {
        f.next -= 1;
        let n = &f.node;
        self.at = Place::Cell { root, page: n.pgno, cell: i };
        let at = n.cell_at(i) as u32;
        let usable = self.layout.usable;
        if at < f.content || at > usable - 4 {
            let content = f.content;
            self.say(format!("Offset {at} out of range {content}..{}", usable - 4));
            f.failed = true;
            return Ok(None);
        }
        let kind = kind_of(n);
        let Ok(cell) = Cell::read(&n.page, at as usize, kind, n.leaf, &self.layout) else {
            self.say("Extends off end of page".into());
            f.failed = true;
            return Ok(None);
        };
        if at + cell.size() > usable {
            self.say("Extends off end of page".into());
            f.failed = true;
            return Ok(None);
        }
        if kind == TreeKind::Table {
            let wrong = if f.may_equal { cell.rowid > f.max_key } else { cell.rowid >= f.max_key };
            if wrong {
                self.say(format!("Rowid {} out of order", cell.rowid));
            }
            f.max_key = cell.rowid;
            f.may_equal = false;
        }
        let pgno = f.node.pgno;
        if cell.overflows() {
            let first = cell.overflow(&f.node.page);
            let pages = (cell.payload - cell.local).div_ceil(usable - 4);
            if self.bt.has_ptrmap() {
                self.pointer(first, ptrmap::OVERFLOW_FIRST, pgno)?;
            }
            self.list(false, first, pages)?;
        }
        if f.node.leaf {
            return Ok(None);
        }
        let child = f.node.child(i)?;
        if self.bt.has_ptrmap() {
            self.pointer(child, ptrmap::NODE, pgno)?;
        }
        Ok(Some((child, f.max_key)))
    }

    /// Every byte of the content area belongs to one cell, one freeblock, or the fragments.
    fn coverage(&mut self, f: &Visit) -> Result<()> {
        let n = &f.node;
        let said = n.page[n.header() + 7] as u32;
        let area = self.layout.usable - f.content;
        self.covered.fill(0);
        let (mut sum, mut apart) = (0, true);
        extents(n, &self.layout, |from, len| {
            sum += len;
            apart &= from >= f.content && cover(&mut self.covered, from, len);
        })?;
        if apart && sum + said == area {
            return Ok(());
        }
        self.say_coverage(f, said)
    }

    /// What is wrong with it: the first byte that is used twice, or the fragments.
    #[cold]
    fn say_coverage(&mut self, f: &Visit, said: u32) -> Result<()> {
        let mut list = Vec::new();
        extents(&f.node, &self.layout, |from, len| list.push((from, from + len - 1)))?;
        list.sort_unstable();
        let mut fragments = 0;
        let mut end = f.content - 1;
        let mut double = None;
        let last = list.len().saturating_sub(1);
        let mut is_last = false;
        for (k, (from, to)) in list.into_iter().enumerate() {
            if end >= from {
                (double, is_last) = (Some(from), k == last);
                break;
            }
            fragments += from - end - 1;
            end = to;
        }
        fragments += (self.layout.usable - end).wrapping_sub(1);
        let pgno = f.node.pgno;
        self.at = Place::Nowhere;
        if let Some(byte) = double {
            self.say(format!("Multiple uses for byte {byte} of page {pgno}"));
        }
        if (double.is_none() || is_last) && fragments != said {
            self.say(format!("Fragmentation of {fragments} bytes reported as {said} on page {pgno}"));
        }
        Ok(())
    }
}

/// Hands place and length of each cell and each freeblock of a page to `each`.
fn extents(n: &Node, layout: &Layout, mut each: impl FnMut(u32, u32)) -> Result<()> {
    let kind = kind_of(n);
    for i in 0..n.ncell {
        let at = n.cell_at(i);
        each(at as u32, Cell::read(&n.page, at, kind, n.leaf, layout)?.size());
    }
    let mut at = be::get_u16(&n.page, n.header() + 1) as usize;
    while at != 0 {
        each(at as u32, be::get_u16(&n.page, at + 2) as u32);
        at = be::get_u16(&n.page, at) as usize;
    }
    Ok(())
}

/// Marks `len` bytes from `from` on. `false`: one of them is marked already, or lies behind all.
#[inline]
fn cover(words: &mut [u64], from: u32, len: u32) -> bool {
    let (mut at, end) = (from as usize, from as usize + len as usize);
    let mut fresh = true;
    while at < end {
        let bit = at % 64;
        let n = (64 - bit).min(end - at);
        let mask = (u64::MAX >> (64 - n)) << bit;
        let Some(w) = words.get_mut(at / 64) else { return false };
        fresh &= *w & mask == 0;
        *w |= mask;
        at += n;
    }
    fresh
}

fn kind_of(n: &Node) -> TreeKind {
    match n.page[n.header()] {
        TABLE_LEAF | TABLE_INTERIOR => TreeKind::Table,
        _ => TreeKind::Index,
    }
}

/// Errors that are not the file's fault end the check.
fn stops(e: &Error) -> bool {
    e.code().primary() != Code::Corrupt
}
