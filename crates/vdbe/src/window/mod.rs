//! Window functions over a list of rows (documentation page `windowfunctions`).
//!
//! The rows stay where they were put; what is sorted are their numbers. For each window they are sorted by partition and
//! order, keeping what the windows behind it in the list have done, so that rows come out in the order of the first. A
//! function's values go into a column of their own, by the number of the row.
//!
//! Where one order serves all windows, values are computed in steps, each over more rows than the one before, and a row
//! comes out as soon as no later row can change its values: a reader that wants few rows gets them early. Where the
//! input comes in that order, or in that of its leading terms, a step begins before the input has ended ([`Rows::is_due`]),
//! and rows that have come out are forgotten with their partition.
//!
//! What always holds: a row's number is its place in the list as it was filled, forgotten rows apart. The first `sorted`
//! places are in the windows' order, those before `known` were looked at, those before `settled` have their values, those
//! before `at` have come out: `at <= settled <= known <= sorted <= held.len`. More rows than a sorter holds go through
//! sorters instead (`spill`).

mod aggregate;
mod functions;
mod held;
mod partition;
mod spill;

use crate::env::Env;
use held::{Held, Progress};
use iolite_base::{Result, alloc};
use iolite_bytecode::WindowPass;
use iolite_value::Value;
use spill::Spilled;
use std::rc::Rc;

/// By so much a row in memory is larger than the record that a sorter holds.
const WIDER: usize = 4;

/// How often an interruption is looked for.
const CHECK_EVERY: usize = 256;

/// The rows of a first step.
const FIRST_STEP: usize = 64;

/// By so much a step is larger than the one before.
const GROWTH: usize = 8;

/// So many rows of a new partition make a step at the most.
const MOST_AHEAD: usize = 4096;

/// The rows, and what the functions made of them.
pub(crate) struct Rows {
    passes: Rc<[WindowPass]>,
    /// The input comes in the order of so many leading terms of all windows.
    delivered: Option<usize>,
    held: Held,
    offsets: Vec<(Value, Value)>,
    /// A column for each function.
    results: Vec<Vec<Value>>,
    /// How far each window has come.
    progress: Vec<Progress>,
    sorted: usize,
    known: usize,
    settled: usize,
    /// How many have come out.
    at: usize,
    /// All rows are there.
    whole: bool,
    /// With so many rows held the next step begins.
    due: usize,
    /// The rows beside those of the partition at work that make a step.
    ahead: usize,
    /// Bytes of texts and blobs that are held.
    bytes: usize,
    /// The rows, if they had no room.
    spilled: Option<Box<Spilled>>,
    /// So many of the rows that had no room have come out before.
    skip: usize,
}

impl Rows {
    /// An empty list. `delivered`: how many leading terms of the windows the order of the input is by, if one order serves
    /// all windows and a step may begin before all rows are there.
    pub fn new(passes: Rc<[WindowPass]>, delivered: Option<usize>) -> Rows {
        let progress = passes.iter().map(|p| Progress::new(p.calls.len())).collect();
        let results = vec![Vec::new(); passes.iter().map(|p| p.calls.len()).sum()];
        Rows {
            passes,
            delivered,
            held: Held::default(),
            offsets: Vec::new(),
            results,
            progress,
            sorted: 0,
            known: 0,
            settled: 0,
            at: 0,
            whole: false,
            due: FIRST_STEP,
            ahead: FIRST_STEP,
            bytes: 0,
            spilled: None,
            skip: 0,
        }
    }

    /// The windows.
    pub fn passes(&self) -> Rc<[WindowPass]> {
        self.passes.clone()
    }

    /// Takes in the offsets of the windows' frames. No row has come out yet.
    pub fn set_offsets(&mut self, offsets: Vec<(Value, Value)>) {
        self.offsets = offsets;
    }

    /// Adds a row. All have the same width.
    pub fn add(&mut self, row: &[Value], env: &dyn Env) -> Result<()> {
        if let Some(s) = &mut self.spilled {
            return s.add(row, env);
        }
        self.held.add(row)?;
        self.bytes += row.iter().map(heap_bytes).sum::<usize>();
        if self.takes_much(env) {
            self.forget();
            if self.takes_much(env) {
                let held = std::mem::take(&mut self.held);
                self.skip = self.at;
                self.spilled = Some(Box::new(Spilled::new(&held, self.passes.clone(), env)?));
            }
        }
        Ok(())
    }

    fn takes_much(&self, env: &dyn Env) -> bool {
        self.bytes.saturating_add(self.held.bytes()) / WIDER > env.sort_memory()
    }

    /// Whether rows may come out before others are added.
    pub fn is_due(&self) -> bool {
        self.held.len >= self.due && self.delivered.is_some() && self.spilled.is_none()
    }

    /// Rows are fetched next, of those added so far: all there are, if it is the `whole` list.
    pub fn begin(&mut self, whole: bool, env: &dyn Env) -> Result<()> {
        self.whole = whole;
        if let Some(s) = &mut self.spilled {
            s.run(std::mem::take(&mut self.offsets), env)?;
            return Ok(());
        }
        for column in &mut self.results {
            extend(column, self.held.len)?;
        }
        if let (Some(terms), Some(last)) = (self.delivered, self.passes.last()) {
            self.sorted = self.held.sort_further(last, terms, self.sorted, whole)?;
            return Ok(());
        }
        let (all, one_order) = (self.held.len, self.one_order());
        self.held.extend_order()?;
        for k in (0..self.passes.len()).rev() {
            if !self.passes.get(k + 1).is_some_and(|behind| behind.sorts_for(&self.passes[k])) {
                self.held.sort(&self.passes[k], 0..all)?;
            }
            if !one_order {
                self.compute(k, (all, true), env)?;
                (self.known, self.settled) = (all, all);
            }
        }
        self.sorted = all;
        Ok(())
    }

    /// Whether the order of the last window is that of all.
    fn one_order(&self) -> bool {
        let Some((last, others)) = self.passes.split_last() else { return true };
        others.iter().all(|p| last.sorts_for(p))
    }

    /// Computes the functions of a window as far as the rows known decide it; returns how far that is.
    fn compute(&mut self, pass: usize, known: (usize, bool), env: &dyn Env) -> Result<usize> {
        let before = self.passes[..pass].iter().map(|p| p.calls.len()).sum::<usize>();
        let p = &self.passes[pass];
        let columns = &mut self.results[before..][..p.calls.len()];
        let progress = &mut self.progress[pass];
        self.held.compute(p, &self.offsets[pass], known, progress, columns, env)?;
        Ok(progress.done)
    }

    /// Looks at more rows.
    fn step(&mut self, env: &dyn Env) -> Result<()> {
        self.known = self.sorted.min((self.known * GROWTH).max(FIRST_STEP));
        let known = (self.known, self.whole && self.known == self.held.len);
        self.settled = self.known;
        for pass in 0..self.passes.len() {
            self.settled = self.settled.min(self.compute(pass, known, env)?);
        }
        Ok(())
    }

    /// Puts the next row into `to`, the values of the functions behind its own; false if there is none, or none so far.
    pub fn next(&mut self, to: &mut [Value], env: &dyn Env) -> Result<bool> {
        if let Some(s) = &mut self.spilled {
            while self.skip > 0 && s.next(to, env)? {
                self.skip -= 1;
            }
            return s.next(to, env);
        }
        while self.at == self.settled {
            // The end of the list decides values that the rows known left open.
            let ends = self.whole && self.settled < self.known;
            if self.known == self.sorted && !ends {
                self.rest();
                return Ok(false);
            }
            self.step(env)?;
        }
        let row = self.held.order[self.at] as usize;
        // Later frames may have a row whose partition goes on, and the sorters the rows of a list that goes on.
        let taken = self.whole && self.at < self.done();
        self.at += 1;
        let behind = self.results.iter_mut().map(|column| &mut column[row]);
        let values = self.held.cells_of(row).iter_mut().chain(behind);
        to.iter_mut().zip(values).for_each(|(r, v)| *r = if taken { std::mem::take(v) } else { v.clone() });
        Ok(true)
    }

    /// The rows before this place are in partitions that are complete.
    fn done(&self) -> usize {
        self.progress.iter().map(|p| p.start).min().unwrap_or(0)
    }

    /// More rows are to be added: forgets what nobody will ask for, and says when the next step begins.
    fn rest(&mut self) {
        if self.whole {
            return;
        }
        self.forget();
        self.ahead = (self.ahead * GROWTH).min(MOST_AHEAD);
        self.due = (self.held.len * GROWTH).max(self.held.len + self.ahead);
    }

    /// Forgets rows that have come out and are in no frame of the others.
    fn forget(&mut self) {
        let n = self.held.forget(self.done().min(self.at));
        if n == 0 {
            return;
        }
        for column in &mut self.results {
            column.drain(..n);
        }
        for p in &mut self.progress {
            p.start -= n;
            p.done -= n;
        }
        for place in [&mut self.sorted, &mut self.known, &mut self.settled, &mut self.at] {
            *place -= n;
        }
        self.bytes = self.held.cells().iter().map(heap_bytes).sum();
    }
}

/// So many columns of so many values, which are NULL so far.
fn columns(n: usize, len: usize) -> Result<Vec<Vec<Value>>> {
    let mut columns = vec![Vec::new(); n];
    columns.iter_mut().try_for_each(|c| extend(c, len))?;
    Ok(columns)
}

fn extend(column: &mut Vec<Value>, len: usize) -> Result<()> {
    alloc::reserve(column, len - column.len())?;
    column.resize(len, Value::Null);
    Ok(())
}

/// What a value takes beside itself.
fn heap_bytes(v: &Value) -> usize {
    match v {
        Value::Text(b, _) | Value::Blob(b, _) => b.len(),
        _ => 0,
    }
}
