//! Rows that are too many for memory: they go through sorters, and come back a partition at a time.
//!
//! Until the windows are run, rows are only stored. Then each window's sorter, the last one's first, brings them in its
//! order; the rows of one partition are in memory, its functions are computed, and the rows go on with their values to the
//! sorter of the window before. The first window's rows are stored as they come, and read one by one.
//!
//! What always holds: a record is the key of the sorter that it is in, then the row as it was added, then the values of the
//! windows that were computed, the last window's first. What one partition takes is not limited.

use super::{Rows, same_partition};
use crate::env::Env;
use crate::sorter::Sorter;
use iolite_base::{Encoding, Result};
use iolite_bytecode::WindowPass;
use iolite_value::compare::{KeyField, KeyInfo};
use iolite_value::{Value, record};
use std::rc::Rc;

/// Rows in a sorter.
pub(super) struct Stored {
    sorter: Sorter,
    /// The fields that stand before a row.
    slots: Vec<usize>,
    enc: Encoding,
    record: Vec<u8>,
    fields: Vec<Value>,
    /// The sorter stands on the row that is read next.
    stands: bool,
}

impl Stored {
    /// Rows that come out as they went in.
    pub fn new(env: &dyn Env) -> Stored {
        Stored::by(Vec::new(), Vec::new(), env)
    }

    /// Rows that come out in the order of a window.
    fn of(p: &WindowPass, env: &dyn Env) -> Stored {
        Stored::by(p.slots(), p.fields(), env)
    }

    fn by(slots: Vec<usize>, fields: Vec<KeyField>, env: &dyn Env) -> Stored {
        let enc = env.encoding();
        let key = KeyInfo { enc, columns: fields.len(), fields };
        let sorter = Sorter::new(Rc::new(key), None, env.sort_memory());
        Stored { sorter, slots, enc, record: Vec::new(), fields: Vec::new(), stands: false }
    }

    /// Adds a row of some cells and what was computed for it.
    pub fn add(&mut self, cells: &[Value], more: &[Value], env: &dyn Env) -> Result<()> {
        self.fields.clear();
        self.fields.extend(self.slots.iter().map(|k| cells[*k].clone()));
        self.fields.extend_from_slice(cells);
        self.fields.extend_from_slice(more);
        self.record.clear();
        record::encode(&self.fields, self.enc, &mut self.record)?;
        if self.sorter.is_full() {
            if !self.sorter.has_file() {
                self.sorter.set_file(env.temporary_file()?);
            }
            self.sorter.spill()?;
        }
        self.sorter.insert(&self.record)
    }

    /// All rows are there: they are read from now on.
    pub fn begin(&mut self) -> Result<()> {
        self.stands = self.sorter.sort()?;
        Ok(())
    }

    /// The next row.
    pub fn next(&mut self) -> Result<Option<Vec<Value>>> {
        if !self.stands {
            return Ok(None);
        }
        let mut row = record::decode(self.sorter.record()?, self.enc)?;
        row.drain(..self.slots.len());
        self.stands = self.sorter.next()?;
        Ok(Some(row))
    }

    /// Computes the functions of all windows for rows of `width` cells: the rows in the order of the first window, the values
    /// of its functions behind the cells.
    pub fn run(
        mut self,
        width: usize,
        passes: &[WindowPass],
        offsets: &[(Value, Value)],
        env: &dyn Env,
    ) -> Result<Stored> {
        self.begin()?;
        let mut source = self;
        for (k, p) in passes.iter().enumerate().rev() {
            let mut sorted = Stored::of(p, env);
            while let Some(row) = source.next()? {
                env.check_interrupt()?;
                sorted.add(&row, &[], env)?;
            }
            sorted.begin()?;
            let mut computed = Stored::new(env);
            let mut next = sorted.next()?;
            while let Some(first) = next.take() {
                let mut part = Partition::new(width, first)?;
                loop {
                    next = sorted.next()?;
                    match next.take() {
                        Some(row) if same_partition(p, &part.first, &row) => part.add(&row)?,
                        other => {
                            next = other;
                            break;
                        }
                    }
                }
                part.compute(p, &offsets[k], env, &mut computed)?;
            }
            computed.begin()?;
            source = computed;
        }
        Ok(source)
    }
}

/// The rows of one partition, and what was computed for them.
struct Partition {
    width: usize,
    first: Vec<Value>,
    rows: Rows,
    more: Vec<Value>,
}

impl Partition {
    fn new(width: usize, first: Vec<Value>) -> Result<Partition> {
        let mut part = Partition { width, rows: Rows::default(), more: Vec::new(), first: Vec::new() };
        part.add(&first)?;
        part.first = first;
        Ok(part)
    }

    fn add(&mut self, row: &[Value]) -> Result<()> {
        let (cells, more) = row.split_at(self.width);
        iolite_base::alloc::reserve(&mut self.more, more.len())?;
        self.more.extend_from_slice(more);
        self.rows.hold(cells)
    }

    fn compute(
        mut self,
        p: &WindowPass,
        offsets: &(Value, Value),
        env: &dyn Env,
        to: &mut Stored,
    ) -> Result<()> {
        self.rows.as_they_are()?;
        let columns = self.rows.pass(p, offsets, env)?;
        let before = self.more.len() / self.rows.len;
        for i in 0..self.rows.len {
            let mut more = self.more[i * before..][..before].to_vec();
            more.extend(columns.iter().map(|c| c[i].clone()));
            to.add(self.rows.row(i), &more, env)?;
        }
        Ok(())
    }
}
