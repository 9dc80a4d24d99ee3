//! Window functions over a list of rows (documentation page `windowfunctions`).
//!
//! The rows stay where they were put; what is sorted are their numbers. For each window they are sorted by partition and
//! order, keeping what the windows behind it in the list have done, so that rows come out in the order of the first. A
//! function's values go into a column of their own, by the number of the row.
//!
//! What always holds: a row's number is its place in the list as it was filled. All rows are in memory, counted.

mod aggregate;
mod functions;
mod partition;

use crate::env::Env;
use iolite_base::{Code, Result, alloc};
use iolite_bytecode::WindowPass;
use iolite_ext::Implementation;
use iolite_value::compare::KeyField;
use iolite_value::order::{ValueRef, in_order};
use iolite_value::{Value, compare};
use partition::Partition;

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
}

impl Rows {
    /// Adds a row. All have the same width.
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

    /// The values of the next row, which leave the list, and behind them those of the functions.
    pub fn next(&mut self) -> Option<impl Iterator<Item = Value>> {
        let row = *self.order.get(self.at)? as usize;
        self.at += 1;
        let own = &mut self.cells[row * self.width..][..self.width];
        let behind = self.results.iter_mut().map(move |column| &mut column[row]);
        Some(own.iter_mut().chain(behind).map(std::mem::take))
    }

    /// Computes all functions. `offsets` are those of the frames.
    pub fn run(&mut self, passes: &[WindowPass], offsets: &[(Value, Value)], env: &dyn Env) -> Result<()> {
        alloc::reserve(&mut self.order, self.len)?;
        self.order.extend(0..self.len as u32);
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
        let slots: Vec<usize> =
            p.partition.iter().map(|(k, _)| *k).chain(p.order.iter().map(|(k, _)| *k)).collect();
        let ascending = p.partition.iter().map(|(_, c)| KeyField::ascending(c.clone()));
        let fields: Vec<KeyField> = ascending.chain(p.order.iter().map(|(_, f)| f.clone())).collect();
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

fn same_partition(p: &WindowPass, a: &[Value], b: &[Value]) -> bool {
    p.partition.iter().all(|(k, c)| compare::compare(&a[*k], &b[*k], c).is_eq())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(rows: &mut Rows) -> Option<Value> {
        rows.next().map(|mut r| r.next().unwrap())
    }

    #[test]
    fn rows_come_out_as_they_went_in_without_windows() {
        let mut rows = Rows::default();
        rows.add(&[Value::Int(2)]).unwrap();
        rows.add(&[Value::Int(1)]).unwrap();
        rows.order = vec![0, 1];
        assert!(matches!(first(&mut rows), Some(Value::Int(2))));
        assert!(matches!(first(&mut rows), Some(Value::Int(1))));
        assert!(first(&mut rows).is_none());
    }
}
