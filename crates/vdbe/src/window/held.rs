//! Rows in memory, and the functions of one window over them.

use super::partition::Partition;
use super::{aggregate, functions};
use crate::env::Env;
use iolite_base::{Code, Result, alloc};
use iolite_bytecode::WindowPass;
use iolite_ext::Implementation;
use iolite_value::order::{ValueRef, in_order};
use iolite_value::{Value, compare};

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

    /// All rows are there: they are in the order in which they were added.
    pub fn begin(&mut self) -> Result<()> {
        alloc::reserve(&mut self.order, self.len)?;
        self.order.extend(0..self.len as u32);
        Ok(())
    }

    fn placed(&self, place: usize) -> &[Value] {
        self.row(self.order[place] as usize)
    }

    /// Brings the rows into the order of a window.
    pub fn sort(&mut self, p: &WindowPass) -> Result<()> {
        if p.partition.is_empty() && p.order.is_empty() {
            return Ok(());
        }
        let (slots, fields) = (p.slots(), p.fields());
        let cell = |place: u32, k: usize| ValueRef::from(&self.placed(place as usize)[slots[k]]);
        let mut sorted = in_order(self.len, &fields, &cell)?;
        for place in &mut sorted {
            *place = self.order[*place as usize];
        }
        self.order = sorted;
        Ok(())
    }

    /// The columns of a window's functions, by the numbers of the rows. They are in its order.
    pub fn compute(
        &self,
        p: &WindowPass,
        offsets: &(Value, Value),
        env: &dyn Env,
    ) -> Result<Vec<Vec<Value>>> {
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
            while end < self.len && same_partition(p, self.placed(end - 1), self.placed(end)) {
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

/// Whether two rows are in one partition of a window.
pub(super) fn same_partition(p: &WindowPass, a: &[Value], b: &[Value]) -> bool {
    p.partition.iter().all(|(k, c)| compare::compare(&a[*k], &b[*k], c).is_eq())
}
