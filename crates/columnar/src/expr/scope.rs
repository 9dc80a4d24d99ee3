//! Where rows and their columns are: what computing expressions over blocks of rows needs to know.

use crate::expr::columns::{Columns, Kind};
use crate::expr::{Eval, Ex, Row};
use crate::runtime::Runtime;
use crate::store::chunk::Field;
use iolite_base::Result;
use iolite_value::Value;

/// Where each column in use is.
pub(crate) struct Places {
    /// Table and column of each slot.
    pub at: Vec<(usize, usize)>,
    /// For each table, the column of each slot.
    pub of_table: Vec<Vec<Option<usize>>>,
    /// The table that is scanned.
    pub outer: usize,
}

/// What computing expressions over rows needs to know.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub cols: &'a [Columns],
    pub places: &'a Places,
    pub eval: &'a Eval<'a>,
    /// Rows come in the order of the planner's loops.
    pub in_order: bool,
    /// How many rows there are at most, if that is known.
    pub most_rows: Option<u64>,
    /// Which tables may be rows of NULLs.
    pub left: &'a [bool],
    /// For temporary files.
    pub rt: Option<&'a dyn Runtime>,
}

/// The only column of an expression and how many values it may have, if these are few.
pub(crate) fn few_values(ex: &Ex, s: &Scope<'_>) -> Option<(usize, usize)> {
    const FEW: i64 = 1 << 16;
    let slot = ex.only_slot()?;
    let (t, c) = s.places.at[slot];
    let cols = &s.cols[t];
    let n = match cols.kinds[c] {
        // The last place is that of NULL.
        Kind::Dict => cols.loaded.dicts[c].len() as i64 + 1,
        Kind::Int => {
            let (lo, hi) = cols.bounds[c];
            if lo > hi { 1 } else { hi.checked_sub(lo)?.checked_add(2)? }
        }
        _ => return None,
    };
    (n <= FEW && n <= cols.loaded.rows as i64 + 2).then_some((slot, n as usize))
}

/// A row of which one column is looked at, where its value lies.
pub(crate) struct OneField<'a>(pub(crate) Field<'a>);

impl Row for OneField<'_> {
    fn slot(&self, _: usize) -> Result<Value> {
        self.0.value()
    }

    fn slot_into(&self, _: usize, to: &mut Value) -> Result<()> {
        self.0.put(to)
    }

    fn there(&self, _: usize) -> Option<Field<'_>> {
        Some(self.0)
    }
}

/// A row of NULLs.
pub(crate) struct NullRow;

impl Row for NullRow {
    fn slot(&self, _: usize) -> Result<Value> {
        Ok(Value::Null)
    }
}
