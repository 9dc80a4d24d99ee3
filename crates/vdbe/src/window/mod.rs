//! Window functions over a list of rows (documentation page `windowfunctions`).
//!
//! The rows stay where they were put; what is sorted are their numbers. For each window they are sorted by partition and
//! order, keeping what the windows behind it in the list have done, so that rows come out in the order of the first. A
//! function's values go into a column of their own, by the number of the row.
//!
//! What always holds: a row's number is its place in the list as it was filled. Rows that take more than a sorter may are
//! stored in sorters instead (`spill`).

mod aggregate;
mod functions;
mod partition;
mod spill;

use crate::env::Env;
use iolite_base::{Code, Result, alloc};
use iolite_bytecode::WindowPass;
use iolite_ext::Implementation;
use iolite_value::order::{ValueRef, in_order};
use iolite_value::{Value, compare};
use partition::Partition;
use spill::Stored;

/// How often an interruption is looked for.
const CHECK_EVERY: usize = 256;

/// The rows, and what the functions made of them.
#[derive(Default)]
pub(crate) struct Rows {
    /// Row by row.
    cells: Vec<Value>,
    width: usize,
    len: usize,
    /// A column for each function.
    results: Vec<Vec<Value>>,
    /// The rows in the order in which they come out.
    order: Vec<u32>,
    at: usize,
    /// Bytes of texts and blobs.
    bytes: usize,
    /// The rows that had no room.
    stored: Option<Box<Stored>>,
    /// Where a function's value is in a stored row.
    places: Vec<usize>,
}

impl Rows {
    /// Adds a row. All have the same width.
    pub fn add(&mut self, row: &[Value], env: &dyn Env) -> Result<()> {
        if self.stored.is_none() {
            self.hold(row)?;
            self.bytes += row.iter().map(heap_bytes).sum::<usize>();
            if self.bytes.saturating_add(self.cells.len() * size_of::<Value>()) > env.sort_memory() {
                self.store(env)?;
            }
            return Ok(());
        }
        self.stored.as_mut().map_or(Ok(()), |s| s.add(row, &[], env))
    }

    fn hold(&mut self, row: &[Value]) -> Result<()> {
        if self.len == u32::MAX as usize {
            return Err(Code::Nomem.into());
        }
        alloc::reserve(&mut self.cells, row.len())?;
        self.cells.extend_from_slice(row);
        self.width = row.len();
        self.len += 1;
        Ok(())
    }

    /// Stores what is held.
    fn store(&mut self, env: &dyn Env) -> Result<()> {
        let mut stored = Stored::new(env);
        (0..self.len).try_for_each(|i| stored.add(&self.cells[i * self.width..][..self.width], &[], env))?;
        (self.cells, self.len) = (Vec::new(), 0);
        self.stored = Some(Box::new(stored));
        Ok(())
    }

    /// Puts the next row into `to`, the values of the functions behind its own; false if there is none.
    pub fn next(&mut self, to: &mut [Value]) -> Result<bool> {
        if let Some(s) = &mut self.stored {
            let Some(mut row) = s.next()? else { return Ok(false) };
            let (own, behind) = to.split_at_mut(self.width);
            for (r, k) in behind.iter_mut().zip(&self.places) {
                *r = std::mem::take(&mut row[self.width + k]);
            }
            own.iter_mut().zip(row).for_each(|(r, v)| *r = v);
            return Ok(true);
        }
        let Some(row) = self.order.get(self.at) else { return Ok(false) };
        let row = *row as usize;
        self.at += 1;
        let own = &mut self.cells[row * self.width..][..self.width];
        let behind = self.results.iter_mut().map(|column| &mut column[row]);
        to.iter_mut().zip(own.iter_mut().chain(behind)).for_each(|(r, v)| *r = std::mem::take(v));
        Ok(true)
    }

    fn as_they_are(&mut self) -> Result<()> {
        alloc::reserve(&mut self.order, self.len)?;
        self.order.extend(0..self.len as u32);
        Ok(())
    }

    /// Computes all functions. `offsets` are those of the frames.
    pub fn run(&mut self, passes: &[WindowPass], offsets: &[(Value, Value)], env: &dyn Env) -> Result<()> {
        if let Some(s) = self.stored.take() {
            // The values of the last window stand first.
            let calls = |p: &[WindowPass]| p.iter().map(|p| p.calls.len()).sum::<usize>();
            for (k, p) in passes.iter().enumerate() {
                let behind = calls(&passes[k + 1..]);
                self.places.extend((0..p.calls.len()).map(|i| behind + i));
            }
            self.stored = Some(Box::new(s.run(self.width, passes, offsets, env)?));
            return Ok(());
        }
        self.as_they_are()?;
        let mut results = Vec::new();
        for (p, offsets) in passes.iter().zip(offsets).rev() {
            self.sort(p)?;
            results.push(self.pass(p, offsets, env)?);
        }
        self.results = results.into_iter().rev().flatten().collect();
        Ok(())
    }

    fn row(&self, place: usize) -> &[Value] {
        &self.cells[self.order[place] as usize * self.width..][..self.width]
    }

    fn sort(&mut self, p: &WindowPass) -> Result<()> {
        if p.partition.is_empty() && p.order.is_empty() {
            return Ok(());
        }
        let (slots, fields) = (p.slots(), p.fields());
        let cell = |place: u32, k: usize| ValueRef::from(&self.row(place as usize)[slots[k]]);
        let mut sorted = in_order(self.len, &fields, &cell)?;
        for place in &mut sorted {
            *place = self.order[*place as usize];
        }
        self.order = sorted;
        Ok(())
    }

    /// The columns of one window's functions.
    fn pass(&self, p: &WindowPass, offsets: &(Value, Value), env: &dyn Env) -> Result<Vec<Vec<Value>>> {
        let mut columns = Vec::with_capacity(p.calls.len());
        for _ in &p.calls {
            let mut column: Vec<Value> = Vec::new();
            alloc::reserve(&mut column, self.len)?;
            column.resize(self.len, Value::Null);
            columns.push(column);
        }
        let mut part = Partition::new(p, &self.cells, self.width);
        let mut start = 0;
        while start < self.len {
            let mut end = start + 1;
            while end < self.len && same_partition(p, self.row(end - 1), self.row(end)) {
                end += 1;
            }
            part.begin(&self.order[start..end], offsets)?;
            for ((call, args, filter), column) in p.calls.iter().zip(&mut columns) {
                match &call.function.imp {
                    Implementation::Aggregate(_) => {
                        aggregate::over_frames(&part, call, args, *filter, env, column)?;
                    }
                    Implementation::Inline(what) => functions::compute(&part, *what, args, env, column)?,
                    _ => return Err(Code::Internal.into()),
                }
            }
            start = end;
        }
        Ok(columns)
    }
}

/// What a value takes beside itself.
fn heap_bytes(v: &Value) -> usize {
    match v {
        Value::Text(b, _) | Value::Blob(b, _) => b.len(),
        _ => 0,
    }
}

fn same_partition(p: &WindowPass, a: &[Value], b: &[Value]) -> bool {
    p.partition.iter().all(|(k, c)| compare::compare(&a[*k], &b[*k], c).is_eq())
}
