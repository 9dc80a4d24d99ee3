//! Window functions over a list of rows (documentation page `windowfunctions`).
//!
//! The rows stay where they were put; what is sorted are their numbers. For each window they are sorted by partition and
//! order, keeping what the windows behind it in the list have done, so that rows come out in the order of the first. A
//! function's values go into a column of their own, by the number of the row.
//!
//! What always holds: a row's number is its place in the list as it was filled. More rows than a sorter holds go through
//! sorters instead (`spill`).

mod aggregate;
mod functions;
mod held;
mod partition;
mod spill;

use crate::env::Env;
use held::Held;
use iolite_base::Result;
use iolite_bytecode::WindowPass;
use iolite_value::Value;
use spill::Spilled;
use std::rc::Rc;

/// By so much a row in memory is larger than the record that a sorter holds.
const WIDER: usize = 4;

/// How often an interruption is looked for.
const CHECK_EVERY: usize = 256;

/// The rows, and what the functions made of them.
pub(crate) struct Rows {
    passes: Rc<[WindowPass]>,
    held: Held,
    /// A column for each function.
    results: Vec<Vec<Value>>,
    /// How many have come out.
    at: usize,
    /// Bytes of texts and blobs that are held.
    bytes: usize,
    /// The rows, if they had no room.
    spilled: Option<Box<Spilled>>,
}

impl Rows {
    /// An empty list.
    pub fn new(passes: Rc<[WindowPass]>) -> Rows {
        Rows { passes, held: Held::default(), results: Vec::new(), at: 0, bytes: 0, spilled: None }
    }

    /// The windows.
    pub fn passes(&self) -> Rc<[WindowPass]> {
        self.passes.clone()
    }

    /// Adds a row. All have the same width.
    pub fn add(&mut self, row: &[Value], env: &dyn Env) -> Result<()> {
        if let Some(s) = &mut self.spilled {
            return s.add(row, env);
        }
        self.held.add(row)?;
        self.bytes += row.iter().map(heap_bytes).sum::<usize>();
        if self.bytes.saturating_add(self.held.bytes()) / WIDER > env.sort_memory() {
            let held = std::mem::take(&mut self.held);
            self.spilled = Some(Box::new(Spilled::new(&held, self.passes.clone(), env)?));
        }
        Ok(())
    }

    /// Computes all functions. `offsets` are those of the frames.
    pub fn run(&mut self, offsets: Vec<(Value, Value)>, env: &dyn Env) -> Result<()> {
        if let Some(s) = &mut self.spilled {
            return s.run(offsets, env);
        }
        self.held.begin()?;
        let mut results = Vec::new();
        for (k, p) in self.passes.iter().enumerate().rev() {
            if !self.passes.get(k + 1).is_some_and(|behind| p.sorts_like(behind)) {
                self.held.sort(p)?;
            }
            results.push(self.held.compute(p, &offsets[k], env)?);
        }
        self.results = results.into_iter().rev().flatten().collect();
        Ok(())
    }

    /// Puts the next row into `to`, the values of the functions behind its own; false if there is none.
    pub fn next(&mut self, to: &mut [Value], env: &dyn Env) -> Result<bool> {
        if let Some(s) = &mut self.spilled {
            return s.next(to, env);
        }
        let Some(row) = self.held.order.get(self.at) else { return Ok(false) };
        let row = *row as usize;
        self.at += 1;
        let behind = self.results.iter_mut().map(|column| &mut column[row]);
        let values = self.held.cells_of(row).iter_mut().chain(behind);
        to.iter_mut().zip(values).for_each(|(r, v)| *r = std::mem::take(v));
        Ok(true)
    }
}

/// What a value takes beside itself.
fn heap_bytes(v: &Value) -> usize {
    match v {
        Value::Text(b, _) | Value::Blob(b, _) => b.len(),
        _ => 0,
    }
}
