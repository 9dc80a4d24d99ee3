//! The columns that a query reads of a table, over all segments: their kinds and bounds, and rows by number.

use crate::expr::Row;
use crate::store::chunk::{Data, Dict, Field, Shape};
use crate::store::{Loaded, Part};
use iolite_base::{Code, Result};
use iolite_value::Value;

/// Of what kind a column's values are, over all segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Int,
    Real,
    Dict,
    Mixed,
}

/// A table's columns together with what is known of each.
#[derive(Clone)]
pub(crate) struct Columns {
    pub loaded: Loaded,
    pub kinds: Vec<Kind>,
    /// Least and greatest integer of each column; `(1, 0)` if there is none.
    pub bounds: Vec<(i64, i64)>,
    pub nullable: Vec<bool>,
    /// For each run of [`JUMP`] rows the part in which it begins.
    jump: Vec<u32>,
}

/// Rows for which there is one entry in the index of parts.
const JUMP: usize = 4096;

impl Columns {
    /// Looks the columns over.
    pub fn new(loaded: Loaded) -> Columns {
        let n = loaded.dicts.len();
        let (mut kinds, mut bounds, mut nullable) = (Vec::new(), Vec::new(), Vec::new());
        for c in 0..n {
            let mut kind = None;
            let (mut min, mut max, mut null) = (i64::MAX, i64::MIN, false);
            for p in loaded.parts.iter().filter(|p| p.rows > 0) {
                let chunk = &p.cols[c];
                null |= chunk.may_be_null();
                let k = match &chunk.data {
                    Data::Dict { .. } | Data::Away(Shape::Dict) => Kind::Dict,
                    Data::Plain(_) | Data::Away(Shape::Plain) => Kind::Mixed,
                    Data::Real { .. } | Data::Away(Shape::Real { .. }) => Kind::Real,
                    _ => {
                        if chunk.min <= chunk.max {
                            min = min.min(chunk.min);
                            max = max.max(chunk.max);
                        }
                        Kind::Int
                    }
                };
                kind = match kind {
                    None => Some(k),
                    Some(o) if o == k => Some(k),
                    _ => Some(Kind::Mixed),
                };
            }
            kinds.push(kind.unwrap_or(Kind::Int));
            bounds.push(if min <= max { (min, max) } else { (1, 0) });
            nullable.push(null);
        }
        let mut jump = Vec::new();
        for (i, p) in loaded.parts.iter().enumerate() {
            while jump.len() * JUMP < p.start + p.rows {
                jump.push(i as u32);
            }
        }
        Columns { loaded, kinds, bounds, nullable, jump }
    }

    /// The part that a row of the table lies in, and where.
    #[inline]
    pub fn locate(&self, row: usize) -> (usize, usize) {
        let parts = &self.loaded.parts;
        let mut p = self.jump[row / JUMP] as usize;
        while row - parts[p].start >= parts[p].rows {
            p += 1;
        }
        (p, row - parts[p].start)
    }

    /// Row `i` of part `p`, as a row of this table alone.
    pub fn row<'a>(&'a self, part: &'a Part, i: usize, col_of: &'a [Option<usize>]) -> TableRow<'a> {
        TableRow { part, i, dicts: &self.loaded.dicts, col_of }
    }
}

/// One row of one table.
pub(crate) struct TableRow<'a> {
    part: &'a Part,
    i: usize,
    dicts: &'a [std::sync::Arc<Dict>],
    /// The column of each slot, if it is one of this table.
    col_of: &'a [Option<usize>],
}

impl TableRow<'_> {
    #[inline]
    fn field(&self, s: usize) -> Result<Field<'_>> {
        let c = self.col_of[s].ok_or(Code::Internal)?;
        Ok(self.part.cols[c].field(self.i, &self.dicts[c]))
    }
}

impl Row for TableRow<'_> {
    fn there(&self, s: usize) -> Option<Field<'_>> {
        self.field(s).ok()
    }

    fn slot(&self, s: usize) -> Result<Value> {
        self.field(s)?.value()
    }

    fn slot_into(&self, s: usize, to: &mut Value) -> Result<()> {
        self.field(s)?.put(to)
    }
}
