//! Rows that were computed, as columns: of a query in FROM, which takes part in joins and groups as a stored table does, or a result
//! that waits to be taken.
//!
//! What always holds: row `n` is the `n`th row that the query answered; all columns are there, in one part. A column of texts
//! that was gathered from a table shares its dictionary: no text was copied.
//!
//! What it does not know: pages, and how the query was run.

use crate::expr::columns::Columns;
use crate::memory::within;
use crate::store::Loaded;
use crate::store::Part;
use crate::store::chunk::{Chunk, Dict, Field, Plain};
use crate::store::decode::{Builder, ColKey, Spare};
use iolite_base::{Code, Result, alloc};
use iolite_value::{Affinity, Value};
use std::ops::Range;
use std::sync::Arc;

/// A column: its values, and the dictionary that these may be entries of.
pub(crate) type Column = (Arc<Chunk>, Arc<Dict>);

/// See the module's head.
pub(crate) struct Made {
    rows: usize,
    columns: Vec<Column>,
}

/// A column of values that come one after the other.
pub(crate) fn column_of<'v>(values: impl ExactSizeIterator<Item = Field<'v>>) -> Result<Column> {
    let (mut dict, mut spare) = (Dict::default(), Spare::default());
    let mut b = Builder::new(false, false, &mut dict, values.len(), &mut spare)?;
    for f in values {
        b.push(f)?;
    }
    let chunk = b.finish(false, &mut spare)?;
    Ok((Arc::new(chunk), Arc::new(dict)))
}

/// The same where nearly all values are different, so that a dictionary of them would be of no use.
pub(crate) fn plain_column<'v>(values: impl Iterator<Item = Field<'v>>) -> Result<Column> {
    let mut out = Plain::default();
    for f in values {
        out.push(f)?;
    }
    Ok((Arc::new(Chunk::of_plain(out)?), Arc::new(Dict::default())))
}

/// The same of integers and NULLs.
pub(crate) fn int_column<'v>(values: impl Iterator<Item = Field<'v>>) -> Result<Column> {
    let (mut ints, mut nulls) = (Vec::new(), Vec::new());
    for f in values {
        if matches!(f, Field::Null) {
            alloc::reserve(&mut nulls, 1)?;
            nulls.push(ints.len() as u32);
        }
        alloc::reserve(&mut ints, 1)?;
        ints.push(if let Field::Int(i) = f { i } else { 0 });
    }
    Ok((Arc::new(Chunk::of_ints(&mut ints, &nulls)?), Arc::new(Dict::default())))
}

impl Made {
    /// Of columns of so many rows each.
    pub fn new(rows: usize, columns: Vec<Column>) -> Made {
        Made { rows, columns }
    }

    /// Of rows that come one after the other.
    pub fn collect(
        rows: usize,
        width: usize,
        next: &mut dyn FnMut(&mut [Value]) -> Result<bool>,
    ) -> Result<Made> {
        if !within(rows.saturating_mul(width) * size_of::<Value>()) {
            return Err(crate::decline::because("no room for the rows of a query in FROM"));
        }
        let mut dicts: Vec<Dict> = (0..width).map(|_| Dict::default()).collect();
        let mut spare = Spare::default();
        let mut builders = Vec::new();
        for d in &mut dicts {
            builders.push(Builder::new(false, false, d, rows, &mut spare)?);
        }
        let mut row = vec![Value::Null; width];
        while next(&mut row)? {
            for (b, v) in builders.iter_mut().zip(&row) {
                b.push(Field::of(v))?;
            }
        }
        let mut chunks = Vec::new();
        for b in builders {
            chunks.push(Arc::new(b.finish(false, &mut spare)?));
        }
        Ok(Made { rows, columns: chunks.into_iter().zip(dicts.into_iter().map(Arc::new)).collect() })
    }

    /// Some of the rows of several arms, which follow each other. A column whose affinity is REAL shows whole numbers as reals,
    /// whichever arm they come from: the affinity need not be that of an arm which is the only one that gave rows.
    pub fn of_parts(
        mut parts: Vec<Made>,
        arms: usize,
        affinities: &[Affinity],
        wanted: Range<usize>,
    ) -> Result<Made> {
        let all: usize = parts.iter().map(Made::len).sum();
        let wanted = wanted.start.min(all)..wanted.end.min(all);
        if wanted.len() == all
            && (arms == 1 || !affinities.contains(&Affinity::Real))
            && let [_] = &parts[..]
            && let Some(whole) = parts.pop()
        {
            return Ok(whole);
        }
        if !within(wanted.len().saturating_mul(affinities.len()) * size_of::<Value>()) {
            return Err(crate::decline::because("no room for the rows of a query in FROM"));
        }
        let mut columns = Vec::with_capacity(affinities.len());
        let mut spare = Spare::default();
        for (c, affinity) in affinities.iter().enumerate() {
            let mut dict = Dict::default();
            let mut b = Builder::new(false, false, &mut dict, wanted.len(), &mut spare)?;
            let mut first = 0;
            for part in &parts {
                let of = |n: usize| n.clamp(first, first + part.len()) - first;
                for row in of(wanted.start)..of(wanted.end) {
                    b.push(match part.field(row, c) {
                        Field::Int(i) if *affinity == Affinity::Real => Field::Real(i as f64),
                        other => other,
                    })?;
                }
                first += part.len();
            }
            let chunk = b.finish(false, &mut spare)?;
            columns.push((Arc::new(chunk), Arc::new(dict)));
        }
        Ok(Made { rows: wanted.len(), columns })
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Its columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// A value.
    #[inline]
    pub fn field(&self, row: usize, column: usize) -> Field<'_> {
        let (chunk, dict) = &self.columns[column];
        chunk.field(row, dict)
    }

    /// How many leaves a stored table of so many rows might have.
    pub fn leaves(&self) -> usize {
        self.rows / 64 + 1
    }

    /// Some columns.
    pub fn loaded(&self, wanted: &[(ColKey, &Value)]) -> Result<Loaded> {
        let mut columns = Vec::new();
        for (key, _) in wanted {
            let column = key.field.and_then(|f| self.columns.get(f));
            columns.push(column.ok_or(Code::Internal)?.clone());
        }
        Ok(self.of(columns))
    }

    /// All columns, as those of a table.
    pub fn as_table(&self) -> Columns {
        Columns::new(self.of(self.columns.clone()))
    }

    fn of(&self, columns: Vec<Column>) -> Loaded {
        let (cols, dicts) = columns.into_iter().unzip();
        let parts = vec![Part { start: 0, rows: self.rows, cols, away: false }];
        Loaded { parts, dicts, rows: self.rows }
    }
}
