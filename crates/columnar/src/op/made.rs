//! The rows of a query in FROM as columns: such a table takes part in joins and groups as a stored one does.
//!
//! What always holds: row `n` is the `n`th row that the query answered; all columns are there, in one part.
//!
//! What it does not know: pages, and how the query was run.

use super::result::Answer;
use crate::memory::within;
use crate::store::Loaded;
use crate::store::Part;
use crate::store::chunk::{Chunk, Dict, Field};
use crate::store::decode::{Builder, ColKey, Spare};
use iolite_base::{Code, Result};
use iolite_value::Value;
use std::sync::Arc;

/// See the module's head.
pub(crate) struct Made {
    rows: usize,
    columns: Vec<(Arc<Chunk>, Arc<Dict>)>,
}

impl Made {
    /// Of an answer with so many columns.
    pub fn of(mut answer: Answer, width: usize) -> Result<Made> {
        let rows = answer.len();
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
        while answer.next(&mut row)? {
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

    /// How many leaves a stored table of so many rows might have.
    pub fn leaves(&self) -> usize {
        self.rows / 64 + 1
    }

    /// Some columns.
    pub fn loaded(&self, wanted: &[(ColKey, &Value)]) -> Result<Loaded> {
        let (mut cols, mut dicts) = (Vec::new(), Vec::new());
        for (key, _) in wanted {
            let column = key.field.and_then(|f| self.columns.get(f));
            let (chunk, dict) = column.ok_or(Code::Internal)?;
            cols.push(chunk.clone());
            dicts.push(dict.clone());
        }
        let parts = vec![Part { start: 0, rows: self.rows, cols, away: false }];
        Ok(Loaded { parts, dicts, rows: self.rows })
    }
}
