//! Rows in memory, and the functions of one window over them.

use super::aggregate::Moving;
use super::partition::Partition;
use super::{aggregate, functions};
use crate::env::Env;
use iolite_base::{Code, Result, alloc};
use iolite_bytecode::WindowPass;
use iolite_ext::Implementation;
use iolite_value::order::{ValueRef, in_order};
use iolite_value::{Value, compare};
use std::ops::Range;

/// Rows of one width.
#[derive(Default)]
pub(super) struct Held {
    /// Row by row.
    cells: Vec<Value>,
    width: usize,
    pub len: usize,
    /// The numbers of the rows in the order of the window at work.
    pub order: Vec<u32>,
}

/// How far the functions of a window have come, by places in its order.
pub(super) struct Progress {
    /// Where the partition at work starts: those before it are complete.
    pub start: usize,
    /// The rows before it have their values.
    pub done: usize,
    /// What the functions keep from row to row of the partition at work.
    moving: Vec<Moving>,
}

impl Progress {
    /// At the beginning, for so many functions.
    pub fn new(calls: usize) -> Progress {
        Progress { start: 0, done: 0, moving: (0..calls).map(|_| Moving::default()).collect() }
    }
}

impl Held {
    /// Adds a row.
    pub fn add(&mut self, row: &[Value]) -> Result<()> {
        if self.len == u32::MAX as usize {
            return Err(Code::Nomem.into());
        }
        alloc::reserve(&mut self.cells, row.len())?;
        self.cells.extend_from_slice(row);
        self.width = row.len();
        self.len += 1;
        Ok(())
    }

    /// Memory held, texts and blobs apart.
    pub fn bytes(&self) -> usize {
        self.cells.len() * size_of::<Value>()
    }

    /// The row with a number.
    pub fn row(&self, number: usize) -> &[Value] {
        &self.cells[number * self.width..][..self.width]
    }

    /// The cells of the row with a number, which may be taken.
    pub fn cells_of(&mut self, number: usize) -> &mut [Value] {
        &mut self.cells[number * self.width..][..self.width]
    }

    /// The cells of all rows.
    pub fn cells(&self) -> &[Value] {
        &self.cells
    }

    /// The rows added last are behind the others, in the order in which they were added.
    pub fn extend_order(&mut self) -> Result<()> {
        let from = self.order.len();
        alloc::reserve(&mut self.order, self.len - from)?;
        self.order.extend(from as u32..self.len as u32);
        Ok(())
    }

    /// Drops the rows at the first `n` places, or fewer of them: those that are the first rows as well, whose number it
    /// returns.
    pub fn forget(&mut self, n: usize) -> usize {
        let (mut highest, mut dropped) = (0, 0);
        for (place, row) in self.order[..n].iter().enumerate() {
            highest = highest.max(*row as usize);
            if highest == place {
                dropped = place + 1;
            }
        }
        self.cells.drain(..dropped * self.width);
        self.order.drain(..dropped);
        self.order.iter_mut().for_each(|row| *row -= dropped as u32);
        self.len -= dropped;
        dropped
    }

    fn placed(&self, place: usize) -> &[Value] {
        self.row(self.order[place] as usize)
    }

    /// Brings the rows at some places into the order of a window.
    pub fn sort(&mut self, p: &WindowPass, places: Range<usize>) -> Result<()> {
        if p.partition.is_empty() && p.order.is_empty() {
            return Ok(());
        }
        let (slots, fields) = (p.slots(), p.fields());
        let cell = |k: u32, f: usize| ValueRef::from(&self.placed(places.start + k as usize)[slots[f]]);
        let mut sorted = in_order(places.len(), &fields, &cell)?;
        for k in &mut sorted {
            *k = self.order[places.start + *k as usize];
        }
        self.order[places].copy_from_slice(&sorted);
        Ok(())
    }

    /// Brings the rows behind the first `sorted` places into the order of a window. They were added in the order of its
    /// `delivered` leading terms; if they are not the `whole` list, those equal in these to the last one are left for later.
    /// Returns how many places are in order then.
    pub fn sort_further(
        &mut self,
        p: &WindowPass,
        delivered: usize,
        sorted: usize,
        whole: bool,
    ) -> Result<usize> {
        self.extend_order()?;
        let slots = p.slots();
        if delivered == slots.len() {
            return Ok(self.len);
        }
        let fields = p.fields();
        let leading = || slots.iter().zip(&fields).take(delivered);
        let alike = |a: &[Value], b: &[Value]| {
            leading().all(|(k, f)| compare::compare(&a[*k], &b[*k], &f.coll).is_eq())
        };
        let mut end = self.len;
        if !whole && end > sorted {
            end -= 1;
            while end > sorted && alike(self.placed(end - 1), self.placed(end)) {
                end -= 1;
            }
        }
        self.sort(p, sorted..end)?;
        Ok(end)
    }

    /// Computes a window's functions into their columns, by the numbers of the rows, as far as the rows at the first
    /// `known` places decide it: those are in the window's order, and `whole` if no others are behind them.
    pub fn compute(
        &self,
        p: &WindowPass,
        offsets: &(Value, Value),
        (known, whole): (usize, bool),
        progress: &mut Progress,
        columns: &mut [Vec<Value>],
        env: &dyn Env,
    ) -> Result<()> {
        let mut part = Partition::new(p, &self.cells, self.width);
        while progress.start < known {
            let start = progress.start;
            let mut end = start + 1;
            while end < known && same_partition(p, self.placed(end - 1), self.placed(end)) {
                end += 1;
            }
            let complete = whole || end < known;
            part.begin(&self.order[start..end], offsets)?;
            let from = progress.done - start;
            let places = from..part.settled(from, complete);
            for (((call, args, filter), column), moving) in
                p.calls.iter().zip(&mut *columns).zip(&mut progress.moving)
            {
                let places = places.clone();
                match &call.function.imp {
                    Implementation::Aggregate(_) => {
                        aggregate::over_frames(&part, places, call, args, *filter, moving, env, column)?;
                    }
                    Implementation::Inline(what) => {
                        functions::compute(&part, places, *what, args, env, column)?;
                    }
                    _ => return Err(Code::Internal.into()),
                }
                if complete {
                    *moving = Moving::default();
                }
            }
            progress.done = start + places.end;
            if !complete {
                break;
            }
            progress.start = end;
        }
        Ok(())
    }
}

/// Whether two rows are in one partition of a window.
pub(super) fn same_partition(p: &WindowPass, a: &[Value], b: &[Value]) -> bool {
    p.partition.iter().all(|(k, c)| compare::compare(&a[*k], &b[*k], c).is_eq())
}
