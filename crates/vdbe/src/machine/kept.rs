//! What a machine keeps of runs that have ended, for those to come: memory of records, transient trees, frames of triggers.
//!
//! A statement that is run again mostly needs the same. A transient tree costs as much to make as a short statement to run, and
//! a trigger's frame is needed for each row. What always holds: what is kept holds no value, no page of a stored tree and no lock; a tree is
//! kept by nobody else, and emptied before it is used; there are few of each, and large ones are given back.

use super::Frame;
use crate::cursor::{TreeCursor, VCursor};
use iolite_base::{Buf, Result};
use iolite_btree::{Btree, TreeKind};
use iolite_ext::AuxData;
use iolite_value::Value;

/// How many records' memory is kept: a row's and those of a few indexes.
const MOST_RECORDS: usize = 8;
/// How many transient trees are kept, and how many pages each may have.
const MOST_TREES: usize = 4;
const MOST_PAGES: u32 = 8;
/// How many frames are kept.
const MOST_FRAMES: usize = 64;

/// A transient database with one tree, which nobody uses.
struct Tree {
    bt: Btree,
    root: u32,
    kind: TreeKind,
}

#[derive(Default)]
pub(crate) struct Kept {
    records: Vec<Buf>,
    trees: Vec<Tree>,
    /// By the number of the sub-program. Boxed, as those of a machine are: so none is moved.
    #[allow(clippy::vec_box)]
    frames: Vec<Vec<Box<Frame>>>,
    /// How many these are.
    kept: usize,
}

impl Kept {
    /// Memory for a record.
    pub fn record(&mut self) -> Option<Buf> {
        self.records.pop()
    }

    /// Takes memory back, if it can be used again.
    pub fn give_record(&mut self, b: Buf) {
        if self.records.len() < MOST_RECORDS
            && let Some(b) = b.spare()
        {
            self.records.push(b);
        }
    }

    /// A transient database with an empty tree of this kind.
    pub fn tree(&mut self, kind: TreeKind) -> Result<Option<(Btree, u32)>> {
        let Some(t) = self.trees.pop() else { return Ok(None) };
        t.bt.clear_tree(t.root, t.kind)?;
        if t.kind != kind {
            t.bt.change_kind(t.root, kind)?;
        }
        Ok(Some((t.bt, t.root)))
    }

    /// Takes back what a cursor on a transient tree had.
    fn give_tree(&mut self, t: TreeCursor) {
        let kind = t.cur.kind();
        let TreeCursor { cur, transient, .. } = t;
        drop(cur);
        if let Some((bt, root)) = transient
            && self.trees.len() < MOST_TREES
            && bt.page_count() <= MOST_PAGES
            && bt.is_alone()
        {
            self.trees.push(Tree { bt, root, kind });
        }
    }

    /// A frame that has run the sub-program with this number.
    pub fn frame(&mut self, number: usize) -> Option<Box<Frame>> {
        let frame = self.frames.get_mut(number)?.pop()?;
        self.kept -= 1;
        Some(frame)
    }

    /// Takes a frame back.
    pub fn give_frame(&mut self, mut f: Box<Frame>) {
        self.settle(&mut f);
        if self.kept == MOST_FRAMES {
            return;
        }
        self.kept += 1;
        if self.frames.len() <= f.number {
            self.frames.resize_with(f.number + 1, Vec::new);
        }
        self.frames[f.number].push(f);
    }

    /// Lets go of what belongs to a program.
    pub fn forget_programs(&mut self) {
        self.frames.clear();
        self.kept = 0;
    }

    /// Makes a frame as before its first instruction. Cursors on stored trees are kept, standing nowhere: the next run opens the
    /// same ones.
    pub fn settle(&mut self, f: &mut Frame) {
        f.pc = 0;
        for c in &mut f.cursors {
            match c {
                Some(VCursor::Tree(t)) if t.transient.is_none() => {
                    t.cur.clear();
                    t.moved(false);
                }
                Some(_) => {
                    if let Some(VCursor::Tree(t)) = c.take() {
                        self.give_tree(*t);
                    }
                }
                None => {}
            }
        }
        for r in &mut f.regs {
            match r {
                Value::Null => {}
                Value::Int(_) | Value::Real(_) | Value::Text(..) => *r = Value::Null,
                Value::Blob(..) => {
                    if let Value::Blob(b, _) = std::mem::take(r)
                        && self.records.len() < MOST_RECORDS
                    {
                        self.give_record(b.into_buf());
                    }
                }
            }
        }
        if !f.once.is_empty() {
            f.once.fill(0);
        }
        f.extra.states.clear();
        if !f.extra.row_sets.is_empty() {
            f.extra.row_sets.clear();
        }
        f.extra.blooms.clear();
        if !f.extra.lists.is_empty() {
            f.extra.lists.clear();
        }
        f.extra.tail = None;
        f.extra.aux.iter_mut().for_each(AuxData::clear);
        f.extra.aggregate_aux.clear();
    }
}
