//! Which plan a query gets: a row by its rowid, or a walk with constraints on coordinates.

use crate::constraint;
use iolite_ext::{ConstraintOp, IndexInfo};

/// One row by its rowid.
pub(crate) const BY_ROWID: i32 = 1;
/// A walk.
pub(crate) const WALK: i32 = 2;

/// How many rows a table is taken to have as long as ANALYZE has not looked.
const ROWS: i64 = 1_048_576;
/// How many it has at least.
const LEAST_ROWS: i64 = 100;
/// So many constraints are used at most.
const MOST: usize = 20;

/// The estimate for what ANALYZE has found.
pub(crate) fn estimate(analyzed: Option<i64>) -> i64 {
    analyzed.map_or(ROWS, |n| n.max(LEAST_ROWS))
}

/// Chooses the plan of an R*Tree with so many coordinates and about so many rows.
pub(crate) fn choose(info: &mut IndexInfo, coordinates: usize, rows: i64) {
    let region = info.constraints.iter().any(|c| c.usable && c.op == ConstraintOp::Match);
    let mut text = String::new();
    let mut used = 0;
    for (k, c) in info.constraints.iter().enumerate() {
        if !c.usable || used >= MOST {
            continue;
        }
        if !region && c.column <= 0 && c.op == ConstraintOp::Eq {
            info.usage[..k].fill(Default::default());
            info.usage[k].arg = 1;
            (info.index_num, info.cost, info.rows, info.unique) = (BY_ROWID, 30.0, 1, true);
            return;
        }
        let coordinate = c.column > 0 && c.column as usize <= coordinates;
        if !coordinate && c.op != ConstraintOp::Match {
            continue;
        }
        let Some((letter, omit)) = constraint::letter(c.op) else { continue };
        used += 1;
        text.push(letter);
        text.push((c.column - 1 + i32::from(b'0')) as u8 as char);
        (info.usage[k].arg, info.usage[k].omit) = (used as i32, omit);
    }
    let rows = rows >> used;
    (info.index_num, info.index_str) = (WALK, text);
    (info.cost, info.rows) = (6.0 * rows as f64, rows);
}
