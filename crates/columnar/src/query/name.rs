//! Conditions as a profile shows them.

use super::Query;
use crate::expr::filter::Pred;
use crate::expr::scope::Places;

/// The column of table `outer` that a condition is about, and how it is tested.
pub(crate) fn name_of(q: &Query, outer: usize, p: &Pred, places: &Places) -> String {
    let column = |col: usize| {
        let slot = places.at.iter().position(|at| *at == (outer, col));
        let Some(s) = slot.and_then(|i| q.slots.get(i)) else { return "codes".to_string() };
        let table = &q.tables[s.table].table;
        match s.field {
            None => "rowid".to_string(),
            Some(f) => match table.field_of.iter().position(|x| *x == Some(f)) {
                Some(c) => table.columns[c].name.to_string(),
                None => "a column".to_string(),
            },
        }
    };
    match p {
        Pred::Range { col, .. } | Pred::RealRange { col, .. } => format!("{} BY RANGE", column(*col)),
        Pred::IntSet { col, .. } | Pred::DictSet { col, .. } | Pred::Entry { col, .. } => {
            format!("{} BY SET", column(*col))
        }
        Pred::Value { col, .. } => format!("{} BY ITS BYTES", column(*col)),
        Pred::Rows { .. } => "SEVERAL COLUMNS".to_string(),
        Pred::Any(_) => "ROW BY ROW".to_string(),
        Pred::Never => "NOTHING".to_string(),
    }
}
