//! A walk over a tree: in depth, or as regions say; or one entry by its rowid.
//!
//! As long as a cursor stands on a row its tree may not be changed, since that may move what it still has to look at. It knows
//! entries; what rows are made of is its table's.

use crate::constraint::Constraint;
use crate::geometry::{Visit, Within};
use crate::layout::{self, Layout, MOST_DEPTH, MOST_DIMENSIONS, ROOT};
use crate::queue::{Point, Queue};
use crate::store::Store;
use iolite_base::{Bytes, Code, Result};
use iolite_value::Value;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What a table and its cursors share.
pub(crate) struct Shared {
    pub store: Store,
    pub layout: Layout,
    /// How many cursors stand on a row.
    pub standing: Cell<u32>,
}

impl Shared {
    /// Refuses a change while a cursor stands on a row.
    pub fn check_changeable(&self) -> Result<()> {
        if self.standing.get() > 0 { Err(Code::LockedVtab.into()) } else { Ok(()) }
    }

    fn node(&self, number: i64) -> Result<Bytes> {
        let bytes = self.store.node(number)?;
        self.layout.check(&bytes)?;
        if number == ROOT && layout::depth(&bytes) > MOST_DEPTH {
            return Err(Code::CorruptVtab.into());
        }
        Ok(bytes)
    }
}

/// A cursor.
pub(crate) struct Walk {
    shared: Rc<Shared>,
    constraints: Vec<Constraint>,
    queue: Queue,
    top_level: usize,
    standing: bool,
    auxiliary: RefCell<Option<Vec<Value>>>,
}

impl Walk {
    pub fn new(shared: &Rc<Shared>) -> Walk {
        Walk {
            shared: shared.clone(),
            constraints: Vec::new(),
            queue: Queue::default(),
            top_level: 0,
            standing: false,
            auxiliary: RefCell::default(),
        }
    }

    fn stand(&mut self, on: bool) {
        let n = self.shared.standing.get();
        match (self.standing, on) {
            (false, true) => self.shared.standing.set(n + 1),
            (true, false) => self.shared.standing.set(n - 1),
            _ => {}
        }
        self.standing = on;
    }

    /// Forgets where it was.
    pub fn reset(&mut self) {
        self.stand(false);
        (self.queue, self.constraints) = (Queue::default(), Vec::new());
        self.auxiliary.replace(None);
    }

    /// Goes to one entry.
    pub fn seek(&mut self, rowid: i64) -> Result<()> {
        self.reset();
        let Some(leaf) = self.shared.store.leaf_of(rowid)? else { return Ok(()) };
        let node = self.shared.node(leaf)?;
        let cell = self.shared.layout.position(&node, rowid)?;
        let (within, node) = (Within::Partly, Some(node));
        self.queue.push(Point { score: 0.0, level: 0, number: leaf, within, cell, node });
        self.stand(true);
        Ok(())
    }

    /// Starts a walk.
    pub fn start(&mut self, constraints: Vec<Constraint>) -> Result<()> {
        self.reset();
        let root = self.shared.node(ROOT)?;
        self.constraints = constraints;
        self.top_level = layout::depth(&root) as usize + 1;
        self.queue = Queue::new(self.top_level);
        let (level, node) = (self.top_level, Some(root));
        let within = Within::Partly;
        self.queue.push(Point { score: 0.0, level, number: ROOT, within, cell: 0, node });
        self.find()
    }

    pub fn next(&mut self) -> Result<()> {
        self.auxiliary.replace(None);
        self.queue.pop();
        self.find()
    }

    pub fn eof(&self) -> bool {
        !self.standing
    }

    /// Looks at cells until an entry is first in the queue.
    fn find(&mut self) -> Result<()> {
        let found = self.look();
        let on = found.is_ok() && self.queue.first().is_some();
        if !on {
            self.queue = Queue::default();
        }
        self.stand(on);
        found
    }

    fn look(&mut self) -> Result<()> {
        while let Some(point) = self.queue.first_mut().filter(|p| p.level > 0) {
            let node = match &point.node {
                Some(n) => n.clone(),
                None => {
                    let n = self.shared.node(point.number)?;
                    point.node = Some(n.clone());
                    n
                }
            };
            let (level, number) = (point.level, point.number);
            if point.cell >= layout::count(&node) {
                self.queue.pop();
                continue;
            }
            let cell = point.cell;
            point.cell += 1;
            let parent = (point.within, point.score);
            let Some((within, score)) = self.judge(&node, level, cell, parent)? else { continue };
            let below = if level > 1 { self.shared.layout.id(&node, cell) } else { number };
            if level > 1 && self.queue.has_node(below) {
                return Err(Code::CorruptVtab.into());
            }
            if cell + 1 >= layout::count(&node) {
                self.queue.pop();
            }
            let (cell, node) = if level > 1 { (0, None) } else { (cell, Some(node)) };
            self.queue.push(Point { score, level: level - 1, number: below, within, cell, node });
        }
        Ok(())
    }

    /// How much of a cell's box is looked for and its score; `None`: nothing.
    fn judge(
        &mut self,
        node: &Bytes,
        level: usize,
        cell: usize,
        parent: (Within, f64),
    ) -> Result<Option<(Within, f64)>> {
        let layout = self.shared.layout;
        let (mut within, mut score) = (Within::Fully, -1.0);
        for c in &mut self.constraints {
            match c {
                Constraint::Compared { how, coordinate, value } => {
                    let at = |k: usize| layout.coordinate(node, cell, k);
                    let k = *coordinate;
                    let passes = match level {
                        1 => how.holds(at(k), *value),
                        _ => how.may_hold(at(k & !1), at(k | 1), *value),
                    };
                    if !passes {
                        return Ok(None);
                    }
                }
                Constraint::Region { region, plain } => {
                    let bounds: [f64; 2 * MOST_DIMENSIONS] = layout.cell(node, cell).bounds;
                    let mut visit = Visit {
                        coordinates: &bounds[..2 * layout.dimensions],
                        queue: &self.queue.counts,
                        level: level as u32 - 1,
                        top_level: self.top_level as u32,
                        rowid: if level == 1 { layout.id(node, cell) } else { 0 },
                        parent_within: parent.0,
                        parent_score: parent.1,
                        within: parent.0,
                        score: parent.1,
                    };
                    region.visit(&mut visit)?;
                    if *plain {
                        score = 0.0;
                        if visit.within == Within::Not {
                            within = Within::Not;
                        }
                    } else {
                        within = within.min(visit.within);
                        if visit.score < score || score < 0.0 {
                            score = visit.score;
                        }
                    }
                    if within == Within::Not {
                        return Ok(None);
                    }
                }
            }
        }
        Ok(Some((within, if score < 0.0 { 0.0 } else { score })))
    }

    /// The present entry: its node and cell.
    fn entry(&self) -> Result<(&Bytes, usize)> {
        let point = self.queue.first().ok_or(Code::Abort)?;
        let node = point.node.as_ref().ok_or(Code::Abort)?;
        Ok((node, point.cell))
    }

    pub fn rowid(&self) -> Result<i64> {
        let (node, cell) = self.entry()?;
        Ok(self.shared.layout.id(node, cell))
    }

    /// Coordinate `k` of the present entry.
    pub fn coordinate(&self, k: usize) -> Result<f64> {
        let (node, cell) = self.entry()?;
        Ok(self.shared.layout.coordinate(node, cell, k))
    }

    /// Auxiliary column `k` of the present entry.
    pub fn auxiliary(&self, k: usize) -> Result<Value> {
        if let Some(row) = &*self.auxiliary.borrow() {
            return Ok(row.get(k).cloned().unwrap_or_default());
        }
        let rowid = self.rowid()?;
        let Some(row) = self.shared.store.auxiliary(rowid)? else { return Ok(Value::Null) };
        let v = row.get(k).cloned().unwrap_or_default();
        self.auxiliary.replace(Some(row));
        Ok(v)
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        self.stand(false);
    }
}
