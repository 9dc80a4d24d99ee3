//! Columns of some rows of a table, in any order.
//!
//! What always holds: a value comes out as what it was; entries of a dictionary stay entries of it.
//!
//! What it does not know: which rows, and why.

use super::made::Column;
use crate::expr::batch::NONE;
use crate::expr::columns::{Columns, Kind};
use crate::memory::room;
use crate::store::chunk::{Chunk, Data, Dict, Field, Plain};
use iolite_base::{Code, Result, alloc};
use std::sync::Arc;

/// Column `c` in these rows; [`NONE`] is NULL.
pub(crate) fn gather(cols: &Columns, c: usize, rows: &[u32]) -> Result<Column> {
    let dict = &cols.loaded.dicts[c];
    let none = || Arc::new(Dict::default());
    Ok(match cols.kinds[c] {
        Kind::Int => {
            let (mut values, nulls) = numbers(cols, c, rows, Chunk::int)?;
            (Arc::new(Chunk::of_ints(&mut values, &nulls)?), none())
        }
        Kind::Real => {
            let (values, nulls) = numbers(cols, c, rows, |chunk, i| chunk.real_bits(i).map(f64::from_bits))?;
            (Arc::new(Chunk::of_reals(values, &nulls)?), none())
        }
        Kind::Dict => {
            let mut dict = dict.clone();
            let mut null = dict.find(Field::Null);
            if null.is_none() && rows.contains(&NONE) {
                null = Arc::make_mut(&mut dict).code(Field::Null)?;
                if null.is_none() {
                    return plain(cols, c, rows);
                }
            }
            let mut codes: Vec<u32> = room(rows.len())?;
            for row in rows {
                codes.push(match at(cols, c, *row) {
                    None => null.ok_or(Code::Internal)?,
                    Some((Chunk { data: Data::Dict { codes }, .. }, i)) => codes.get(i),
                    Some(_) => return Err(Code::Internal.into()),
                });
            }
            (Arc::new(Chunk::of_codes(&codes)?), dict)
        }
        Kind::Mixed => return plain(cols, c, rows),
    })
}

/// Numbers in these rows, and which of them are NULL.
fn numbers<T: Default>(
    cols: &Columns,
    c: usize,
    rows: &[u32],
    of: impl Fn(&Chunk, usize) -> Option<T>,
) -> Result<(Vec<T>, Vec<u32>)> {
    let (mut values, mut nulls) = (room(rows.len())?, Vec::new());
    for row in rows {
        let v = at(cols, c, *row).and_then(|(chunk, i)| of(chunk, i));
        if v.is_none() {
            alloc::reserve(&mut nulls, 1)?;
            nulls.push(values.len() as u32);
        }
        values.push(v.unwrap_or_default());
    }
    Ok((values, nulls))
}

/// The part that a row lies in, and where.
#[inline(always)]
fn at(cols: &Columns, c: usize, row: u32) -> Option<(&Chunk, usize)> {
    if row == NONE {
        return None;
    }
    let (p, i) = cols.locate(row as usize);
    Some((&cols.loaded.parts[p].cols[c], i))
}

fn plain(cols: &Columns, c: usize, rows: &[u32]) -> Result<Column> {
    let dict = &cols.loaded.dicts[c];
    let mut out = Plain::default();
    for row in rows {
        out.push(at(cols, c, *row).map_or(Field::Null, |(chunk, i)| chunk.field(i, dict)))?;
    }
    Ok((Arc::new(Chunk::of_plain(out)?), Arc::new(Dict::default())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::made::{Made, column_of};
    use iolite_value::Value;

    #[test]
    fn values_come_out_as_they_were_in_the_order_that_was_asked_for() {
        let text = |t: &str| Value::text(t.as_bytes()).unwrap();
        let columns = [
            vec![Value::Int(5), Value::Null, Value::Int(-7), Value::Int(1 << 60)],
            vec![Value::Real(0.5), Value::Real(-0.0), Value::Null, Value::Real(1e300)],
            vec![text("a"), text("b"), text("a"), Value::Int(1)],
            vec![Value::Int(1), Value::Real(1.0), text("1"), Value::blob(b"1").unwrap()],
            vec![Value::Null; 4],
        ];
        let made = columns.iter().map(|c| column_of(c.iter().map(Field::of)).unwrap()).collect();
        let table = Made::new(4, made).as_table();
        for rows in [vec![], vec![3, 1, 0, 2], vec![2, NONE, 2, 0], vec![NONE; 3]] {
            for (c, values) in columns.iter().enumerate() {
                let column = gather(&table, c, &rows).unwrap();
                let out = Made::new(rows.len(), vec![column]);
                for (n, row) in rows.iter().enumerate() {
                    let want = values.get(*row as usize).map_or(Field::Null, Field::of);
                    assert!(out.field(n, 0).is_same(want), "column {c}, row {row}");
                }
            }
        }
    }
}
