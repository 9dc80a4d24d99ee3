//! Rows that are too many for memory: they go through sorters, and come back a partition at a time.
//!
//! Each window has a sorter, which brings the rows in its order; they are added to the last window's. The rows of one
//! partition are in memory, its functions are computed, and the rows go on with their values to the sorter of the window
//! before. Those of the first window come out instead.
//!
//! What always holds: a record is the key of the sorter that it is in, then the row as it was added, then the values of the
//! windows that were computed, the last window's first. What one partition takes is not limited.

use super::columns;
use super::held::{Held, Progress, same_partition};
use crate::env::Env;
use crate::sorter::Sorter;
use iolite_base::{Code, Encoding, Result, alloc};
use iolite_bytecode::WindowPass;
use iolite_value::compare::KeyInfo;
use iolite_value::{Value, record};
use std::rc::Rc;

/// All rows.
pub(super) struct Spilled {
    passes: Rc<[WindowPass]>,
    width: usize,
    /// The rows, by the window whose turn it is.
    rows: Sorted,
    offsets: Vec<(Value, Value)>,
    /// Where the values of the functions are behind a row.
    places: Vec<usize>,
    /// The partition that comes out.
    part: Option<Part>,
}

impl Spilled {
    /// The rows held so far, to which others are added.
    pub fn new(held: &Held, passes: Rc<[WindowPass]>, env: &dyn Env) -> Result<Spilled> {
        let rows = Sorted::new(passes.last().ok_or(Code::Internal)?, env);
        let mut x = Spilled { passes, width: 0, rows, offsets: Vec::new(), places: Vec::new(), part: None };
        (0..held.len).try_for_each(|i| x.add(held.row(i), env))?;
        Ok(x)
    }

    /// Adds a row.
    pub fn add(&mut self, row: &[Value], env: &dyn Env) -> Result<()> {
        self.width = row.len();
        self.rows.add(row, &[], env)
    }

    /// Computes the functions of all windows but the first.
    pub fn run(&mut self, offsets: Vec<(Value, Value)>, env: &dyn Env) -> Result<()> {
        let passes = self.passes.clone();
        let calls = |p: &[WindowPass]| p.iter().map(|p| p.calls.len()).sum::<usize>();
        for (k, p) in passes.iter().enumerate() {
            let behind = calls(&passes[k + 1..]);
            self.places.extend((0..p.calls.len()).map(|i| behind + i));
        }
        self.rows.begin()?;
        for k in (1..passes.len()).rev() {
            let mut before = Sorted::new(&passes[k - 1], env);
            while let Some(mut part) = self.rows.partition(&passes[k], self.width)? {
                part.compute(&passes[k], &offsets[k], env)?;
                while let Some((row, more)) = part.next() {
                    before.add(row, &more, env)?;
                }
            }
            before.begin()?;
            self.rows = before;
        }
        self.offsets = offsets;
        Ok(())
    }

    /// Puts the next row into `to`, the values of the functions behind its own; false if there is none.
    pub fn next(&mut self, to: &mut [Value], env: &dyn Env) -> Result<bool> {
        loop {
            if let Some((row, mut more)) = self.part.as_mut().and_then(Part::next) {
                let (own, behind) = to.split_at_mut(self.width);
                own.iter_mut().zip(row).for_each(|(r, v)| *r = std::mem::take(v));
                behind.iter_mut().zip(&self.places).for_each(|(r, k)| *r = std::mem::take(&mut more[*k]));
                return Ok(true);
            }
            self.part = self.rows.partition(&self.passes[0], self.width)?;
            match &mut self.part {
                Some(part) => part.compute(&self.passes[0], &self.offsets[0], env)?,
                None => return Ok(false),
            }
        }
    }
}

/// Rows in the order of a window.
struct Sorted {
    sorter: Sorter,
    /// The fields that stand before a row.
    slots: Vec<usize>,
    enc: Encoding,
    record: Vec<u8>,
    fields: Vec<Value>,
    /// The row that is read next.
    ahead: Option<Vec<Value>>,
}

impl Sorted {
    fn new(p: &WindowPass, env: &dyn Env) -> Sorted {
        let (enc, fields) = (env.encoding(), p.fields());
        let key = KeyInfo { enc, columns: fields.len(), fields };
        let sorter = Sorter::new(Rc::new(key), None, env.sort_memory());
        Sorted { sorter, slots: p.slots(), enc, record: Vec::new(), fields: Vec::new(), ahead: None }
    }

    /// Adds a row and what was computed for it.
    fn add(&mut self, row: &[Value], more: &[Value], env: &dyn Env) -> Result<()> {
        self.fields.clear();
        self.fields.extend(self.slots.iter().map(|k| row[*k].clone()));
        self.fields.extend_from_slice(row);
        self.fields.extend_from_slice(more);
        self.record.clear();
        record::encode(&self.fields, self.enc, &mut self.record)?;
        if self.sorter.is_full() {
            env.check_after(super::CHECK_EVERY)?;
            if !self.sorter.has_file() {
                self.sorter.set_file(env.temporary_file()?);
            }
            self.sorter.spill()?;
        }
        self.sorter.insert(&self.record)
    }

    /// All rows are there: they are read from now on.
    fn begin(&mut self) -> Result<()> {
        self.ahead = if self.sorter.sort()? { Some(self.read()?) } else { None };
        Ok(())
    }

    fn read(&self) -> Result<Vec<Value>> {
        let mut row = record::decode(self.sorter.record()?, self.enc)?;
        row.drain(..self.slots.len());
        Ok(row)
    }

    /// The rows of the next partition, of `width` cells.
    fn partition(&mut self, p: &WindowPass, width: usize) -> Result<Option<Part>> {
        let Some(mut last) = self.ahead.take() else { return Ok(None) };
        let mut part = Part { width, ..Part::default() };
        loop {
            part.add(&last)?;
            if !self.sorter.next()? {
                break;
            }
            let row = self.read()?;
            if !same_partition(p, &last, &row) {
                self.ahead = Some(row);
                break;
            }
            last = row;
        }
        Ok(Some(part))
    }
}

/// The rows of one partition, in order.
#[derive(Default)]
struct Part {
    width: usize,
    rows: Held,
    /// What was computed by the windows behind, row by row.
    more: Vec<Value>,
    /// What this window computes, a column for each function.
    columns: Vec<Vec<Value>>,
    /// How many have come out.
    at: usize,
}

impl Part {
    fn add(&mut self, row: &[Value]) -> Result<()> {
        let (cells, more) = row.split_at(self.width);
        alloc::reserve(&mut self.more, more.len())?;
        self.more.extend_from_slice(more);
        self.rows.add(cells)
    }

    fn compute(&mut self, p: &WindowPass, offsets: &(Value, Value), env: &dyn Env) -> Result<()> {
        self.rows.extend_order()?;
        self.columns = columns(p.calls.len(), self.rows.len)?;
        let (known, mut progress) = ((self.rows.len, true), Progress::new(p.calls.len()));
        self.rows.compute(p, offsets, known, &mut progress, &mut self.columns, env)
    }

    /// The next row, and all that was computed for it.
    fn next(&mut self) -> Option<(&mut [Value], Vec<Value>)> {
        let at = self.at;
        if at == self.rows.len {
            return None;
        }
        self.at += 1;
        let before = self.more.len() / self.rows.len;
        let former = self.more[at * before..][..before].iter_mut();
        let own = self.columns.iter_mut().map(|c| &mut c[at]);
        let more = former.chain(own).map(std::mem::take).collect();
        Some((self.rows.cells_of(at), more))
    }
}
