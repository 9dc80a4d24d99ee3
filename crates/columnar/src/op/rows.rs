//! Rows that are no groups: which ones, in which order, and late their values.
//!
//! What always holds: only positions are kept until it is known which rows are wanted; then the columns that nothing but the
//! result reads are looked at, from what is loaded, or from the rows' own leaves where these are few.
//!
//! What it does not know: conditions.

use super::gather::gather;
use super::made::{Column, Made, column_of};
use super::source::{Loaded, Source};
use super::top::{Cell, Top};
use crate::decline::because;
use crate::expr::batch::{Batch, BatchRow};
use crate::expr::scope::Scope;
use crate::expr::vector::{Node, column};
use crate::expr::{Ex, Row};
use crate::memory::within;
use crate::op::result::Answer;
use crate::store::chunk::Field;
use iolite_base::{Result, alloc};
use iolite_value::Value;
use iolite_value::compare::KeyField;

/// Of so many leaves at most one is decoded for single rows.
pub(crate) const SPARSE: usize = 8;

/// Collects positions.
pub(crate) enum Picked<'a> {
    /// As they come, up to a number.
    InOrder(Vec<u32>, usize),
    Sorted(Top<'a>, Vec<Ex>),
}

impl<'a> Picked<'a> {
    /// Begins.
    pub fn new(order: &[(Ex, KeyField)], limit: Option<usize>) -> Picked<'a> {
        match order {
            [] => Picked::InOrder(Vec::new(), limit.unwrap_or(usize::MAX)),
            _ => {
                let fields = order.iter().map(|o| o.1.clone()).collect();
                Picked::Sorted(Top::new(fields, limit), order.iter().map(|o| o.0.clone()).collect())
            }
        }
    }

    /// Takes in a block; whether more rows are wanted.
    pub fn push(&mut self, b: &Batch<'a>, s: &Scope<'_>) -> Result<bool> {
        let start = b.cols[0].loaded.parts[b.part].start as u32;
        match self {
            Picked::InOrder(rows, most) => {
                let n = b.outer.len().min(*most - rows.len());
                alloc::reserve(rows, n)?;
                rows.extend(b.outer[..n].iter().map(|r| start + r));
                if !within(rows.len() * size_of::<u32>()) {
                    return Err(because("no room for rows"));
                }
                Ok(rows.len() < *most)
            }
            Picked::Sorted(top, order) => {
                let by = Node::of(&order[0], s)?;
                let numbers = match by {
                    Node::Ints(_) | Node::Reals(_) => Some(by.values(b, s)?),
                    _ => None,
                };
                let first = match order[0] {
                    Ex::Slot(slot) if numbers.is_none() => Some(column(slot, b)?),
                    _ => None,
                };
                for (i, row) in b.outer.iter().enumerate() {
                    if numbers.as_ref().is_some_and(|v| top.is_behind(v, i)) {
                        continue;
                    }
                    top.push(start + row, &mut |k| match (&order[k], &first) {
                        (_, Some(list)) if k == 0 => Ok(Cell::There(list[i])),
                        (Ex::Slot(slot), _) => {
                            let c = b.places.at[*slot].1;
                            let loaded = &b.cols[0].loaded;
                            Ok(Cell::There(
                                loaded.parts[b.part].cols[c].field(*row as usize, &loaded.dicts[c]),
                            ))
                        }
                        (e, _) => Ok(Cell::Made(s.eval.value(e, &BatchRow { batch: b, i })?)),
                    })?;
                }
                match within(top.bytes()) {
                    true => Ok(true),
                    false => Err(because("no room for rows")),
                }
            }
        }
    }

    /// The positions.
    pub fn finish(self) -> Result<Vec<u32>> {
        match self {
            Picked::InOrder(rows, _) => Ok(rows),
            Picked::Sorted(top, _) => top.finish(),
        }
    }
}

/// The values of a result for rows at positions. `late`: columns that are not loaded.
pub(crate) fn project(
    src: &Source<'_>,
    l: &Loaded,
    rows: &[u32],
    result: &[Ex],
    late: &[bool],
) -> Result<Answer> {
    let width = result.len();
    if !late.contains(&true) && result.iter().all(|e| matches!(e, Ex::Slot(_) | Ex::Const(_))) {
        let begun = src.now();
        let made = columns_of(src, l, rows, result)?;
        src.note(begun, &|| format!("PROJECT: {} rows in columns", rows.len()));
        return Ok(Answer::of_columns(made));
    }
    if !within(rows.len() * width * size_of::<Value>()) {
        return Err(because("no room for rows"));
    }
    let mut values: Vec<Value> = crate::memory::room(rows.len() * width)?;
    let eval = src.eval;
    let add = |values: &mut Vec<Value>, row: &dyn Row| -> Result<()> {
        for e in result {
            values.push(eval.value(e, row)?);
        }
        Ok(())
    };
    if !late.contains(&true) {
        let begun = src.now();
        for (i, r) in rows.iter().enumerate() {
            if i % 65_536 == 0 {
                src.rt.check()?;
            }
            add(&mut values, &l.row(*r))?;
        }
        src.note(begun, &|| format!("PROJECT: {} rows", rows.len()));
        return Ok(Answer::of(values, width, rows.len()));
    }
    let mut all = late.to_vec();
    result.iter().for_each(|e| e.slots(&mut |s| all[s] = true));
    let leaves = src.leaves();
    let few = rows.len() * SPARSE <= leaves || src.leaves_of(l, rows).is_some_and(|n| n * SPARSE <= leaves);
    if few || rows.len() < 64 {
        values.resize(rows.len() * width, Value::Null);
        src.fetch(l, rows, &all, &mut |n, row| {
            for (to, e) in values[n * width..][..width].iter_mut().zip(result) {
                *to = eval.value(e, &row)?;
            }
            Ok(())
        })?;
        return Ok(Answer::of(values, width, rows.len()));
    }
    let whole = src.load(&all)?;
    for r in rows {
        add(&mut values, &whole.row(*r))?;
    }
    Ok(Answer::of(values, width, rows.len()))
}

/// The same of nothing but columns and constants.
fn columns_of(src: &Source<'_>, l: &Loaded, rows: &[u32], result: &[Ex]) -> Result<Made> {
    let cols = &l.cols[0];
    if !within(rows.len() * result.len() * size_of::<u64>()) {
        return Err(because("no room for rows"));
    }
    // All rows of a single part, in their order: the columns are the table's own.
    let whole = cols.loaded.parts.len() == 1
        && rows.len() == cols.loaded.rows
        && rows.iter().enumerate().all(|(i, r)| i == *r as usize);
    let mut out: Vec<Column> = Vec::new();
    for (n, e) in result.iter().enumerate() {
        src.rt.check()?;
        if let Some(same) =
            result[..n].iter().position(|x| matches!((x, e), (Ex::Slot(a), Ex::Slot(b)) if a == b))
        {
            out.push(out[same].clone());
            continue;
        }
        out.push(match e {
            Ex::Slot(slot) => {
                let c = l.places.at[*slot].1;
                match whole {
                    true => (cols.loaded.parts[0].cols[c].clone(), cols.loaded.dicts[c].clone()),
                    false => gather(cols, c, rows)?,
                }
            }
            Ex::Const(v) => column_of(std::iter::repeat_n(Field::of(v), rows.len()))?,
            _ => return Err(iolite_base::Code::Internal.into()),
        });
    }
    Ok(Made::new(rows.len(), out))
}
