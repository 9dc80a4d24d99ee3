//! Which plan a query gets, and how the plan is told to the cursor.

use crate::config::Config;
use iolite_ext::{ConstraintOp, IndexInfo};

/// All rows.
pub(crate) const SCAN: i32 = 0;
/// The row of a docid.
pub(crate) const BY_DOCID: i32 = 1;
/// Rows that a query finds in the column of this number less two; behind the last: in any.
pub(crate) const MATCH: i32 = 2;
/// The plan without what follows.
pub(crate) const PLAN: i32 = 0xffff;
/// Further arguments: the language, the least and the greatest docid.
pub(crate) const LANGUAGE: i32 = 0x10000;
pub(crate) const FROM: i32 = 0x20000;
pub(crate) const UP_TO: i32 = 0x40000;

/// Chooses a plan.
pub(crate) fn choose(config: &Config, info: &mut IndexInfo) {
    let columns = config.columns.len() as i32;
    info.index_num = SCAN;
    info.cost = 5_000_000.0;
    let (mut main, mut language, mut from, mut up_to) = (None, None, None, None);
    for (i, c) in info.constraints.iter().enumerate() {
        let is_match = c.op == ConstraintOp::Match && (0..=columns).contains(&c.column);
        if !c.usable {
            if c.op == ConstraintOp::Match {
                // A plan that cannot answer it: any other is better.
                info.index_num = SCAN;
                info.cost = 1e50;
                info.rows = 1 << 50;
                return;
            }
            continue;
        }
        let docid = c.column < 0 || c.column == columns + 1;
        if main.is_none() && c.op == ConstraintOp::Eq && docid {
            info.index_num = BY_DOCID;
            info.cost = 1.0;
            main = Some(i);
        }
        if is_match {
            info.index_num = MATCH + c.column;
            info.cost = 2.0;
            main = Some(i);
        }
        if c.op == ConstraintOp::Eq && c.column == columns + 2 {
            language = Some(i);
        }
        if docid {
            match c.op {
                ConstraintOp::Ge | ConstraintOp::Gt => from = Some(i),
                ConstraintOp::Le | ConstraintOp::Lt => up_to = Some(i),
                _ => {}
            }
        }
    }
    info.unique = info.index_num == BY_DOCID;
    let mut passed = 0;
    if let Some(i) = main {
        passed += 1;
        info.usage[i].arg = passed;
        info.usage[i].omit = true;
    }
    for (which, bit) in [(language, LANGUAGE), (from, FROM), (up_to, UP_TO)] {
        if let Some(i) = which {
            passed += 1;
            info.index_num |= bit;
            info.usage[i].arg = passed;
        }
    }
    if let [order] = info.order_by[..]
        && (order.column < 0 || order.column == columns + 1)
    {
        info.index_str = if order.desc { "DESC" } else { "ASC" }.into();
        info.ordered = true;
    }
}
