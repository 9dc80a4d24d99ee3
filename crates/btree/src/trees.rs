//! Making, emptying and dropping whole trees.

use crate::btree::{Btree, Shared};
use crate::cursor::MAX_DEPTH;
use crate::node::*;
use crate::ptrmap;
use crate::room::*;
use iolite_base::{Code, Pgno, Result};

impl Btree {
    /// Makes an empty tree; returns its root page.
    pub fn create_tree(&self, kind: TreeKind) -> Result<Pgno> {
        let bt = &*self.0;
        if self.pager()?.state() < iolite_pager::State::WriterLocked {
            return Err(Code::Readonly.into());
        }
        let root = if bt.has_ptrmap() { self.root_place()? } else { bt.allocate_page(0)?.0 };
        let usable = bt.layout.get().usable as usize;
        let mut pager = self.pager()?;
        let mut page = pager.get(root)?;
        pager.edit(root, &mut page, |b| make_empty(b, 0, flag(kind, true), usable))?;
        Ok(root)
    }

    /// Deletes all entries of a tree; returns how many there were.
    pub fn clear_tree(&self, root: Pgno, kind: TreeKind) -> Result<u64> {
        let bt = &*self.0;
        let tree = bt.tree(root);
        bt.save_slots(&tree)?;
        tree.generation.set(tree.generation.get().wrapping_add(1));
        bt.clear_nodes(root, kind)
    }

    /// Makes an empty tree one of another kind. No cursor is open on it.
    pub fn change_kind(&self, root: Pgno, kind: TreeKind) -> Result<()> {
        let bt = &*self.0;
        let usable = bt.layout.get().usable as usize;
        bt.trees.borrow_mut().remove(&root);
        let mut pager = self.pager()?;
        let mut page = pager.get(root)?;
        pager.edit(root, &mut page, |b| make_empty(b, header_at(root), flag(kind, true), usable))
    }

    /// Drops a tree. In a database with pointer maps, roots stay together at the beginning: then the last
    /// root may have moved into the place of this one, and its former place is returned.
    pub fn drop_tree(&self, root: Pgno) -> Result<Option<Pgno>> {
        let bt = &*self.0;
        if root < 2 {
            return Err(corrupt());
        }
        let kind = {
            let page = self.pager()?.get(root)?;
            match page[0] {
                TABLE_LEAF | TABLE_INTERIOR => TreeKind::Table,
                INDEX_LEAF | INDEX_INTERIOR => TreeKind::Index,
                _ => return Err(corrupt()),
            }
        };
        self.clear_tree(root, kind)?;
        if !bt.has_ptrmap() {
            bt.free_page(root)?;
            return Ok(None);
        }
        self.drop_root(root)
    }
}

impl Shared {
    /// Frees all pages of a tree but its root, which becomes an empty leaf.
    fn clear_nodes(&self, root: Pgno, kind: TreeKind) -> Result<u64> {
        let layout = self.layout.get();
        let mut entries = 0u64;
        let load = |pgno: Pgno| -> Result<Node> {
            let page = self.pager()?.get(pgno)?;
            Node::new(page, pgno, kind, &layout)
        };
        let mut path = vec![load(root)?];
        while let Some(n) = path.last_mut() {
            if !n.leaf && n.idx <= n.ncell {
                let child = n.child(n.idx)?;
                n.idx += 1;
                if path.len() >= MAX_DEPTH {
                    return Err(corrupt());
                }
                path.push(load(child)?);
                continue;
            }
            let Some(n) = path.pop() else { break };
            if n.leaf || kind == TreeKind::Index {
                entries += n.ncell as u64;
                for i in 0..n.ncell {
                    if !n.is_whole(i, kind, &layout) {
                        let cell = Cell::read(&n.page, n.cell_at(i), kind, n.leaf, &layout)?;
                        self.free_chain(&n.page, &cell)?;
                    }
                }
            }
            if n.pgno != root {
                self.free_page(n.pgno)?;
            }
        }
        let mut pager = self.pager()?;
        let mut page = pager.get(root)?;
        pager.edit(root, &mut page, |b| {
            make_empty(b, header_at(root), flag(kind, true), layout.usable as usize)
        })?;
        Ok(entries)
    }

    /// Enters a root into the pointer map.
    pub(crate) fn put_root(&self, root: Pgno) -> Result<()> {
        self.put_ptrmap(root, ptrmap::ROOT, 0)
    }
}
