//! Sorting rows by several values: eight bytes at a time.
//!
//! Rows are sorted by an image of their first value; those whose images are equal by the next bytes of that value, or by
//! the next value, and so on. Most comparisons are those of two numbers, also where many rows have the same first values or
//! texts begin alike: 48,000 addresses in 50 groups took 40 ms by comparing rows.
//!
//! What always holds: rows come as a stable sort by [`compare_by`] would bring them. An image never decides what it does not
//! know: where values with equal images may differ and have no more bytes, they are compared.

use super::sort_key::sort_key;
use super::top::compare_by;
use crate::sort::first_bytes;
use crate::store::chunk::Field;
use iolite_base::Result;
use iolite_value::Collation;
use iolite_value::compare::KeyField;
use std::cell::Cell;
use std::cmp::Ordering;

/// Fewer rows than this are compared.
const FEW: usize = 12;
/// Smaller whole numbers have images of their own.
const EXACT: u64 = 1 << 50;

/// The value of a row by which it is sorted first, second, ...
pub(crate) type CellOf<'f, 'v> = &'f dyn Fn(u32, usize) -> Field<'v>;

/// Rows of equal values before the `field`th, of which `depth` bytes are equal as well.
struct Part {
    start: usize,
    end: usize,
    field: usize,
    depth: usize,
}

/// The places of so many rows, in order.
pub(crate) fn in_order(rows: usize, fields: &[KeyField], cell: CellOf<'_, '_>) -> Result<Vec<u32>> {
    let mut at: Vec<(u64, u32)> = crate::memory::room(rows)?;
    at.extend((0..rows as u32).map(|i| (0, i)));
    let failed = Cell::new(None);
    let mut parts = vec![Part { start: 0, end: rows, field: 0, depth: 0 }];
    while let Some(p) = parts.pop() {
        let list = &mut at[p.start..p.end];
        let Some(f) = fields.get(p.field) else {
            crate::sort::by_number(list);
            continue;
        };
        if list.len() < FEW {
            compared(list, &fields[p.field..], p.field, cell, &failed);
            continue;
        }
        for (image, row) in list.iter_mut() {
            *image = image_of(cell(*row, p.field), f, p.depth);
        }
        crate::sort::by_number(list);
        let mut start = 0;
        for run in list.chunk_by_mut(|a, b| a.0 == b.0) {
            let (from, n) = (p.start + start, run.len());
            start += n;
            if n < 2 {
                continue;
            }
            run.iter_mut().for_each(|r| r.0 = 0);
            match next(run, p.field, f, p.depth, cell) {
                Some((field, depth)) => parts.push(Part { start: from, end: from + n, field, depth }),
                None => compared(run, &fields[p.field..], p.field, cell, &failed),
            }
        }
    }
    match failed.take() {
        Some(e) => Err(e),
        None => Ok(at.into_iter().map(|a| a.1).collect()),
    }
}

/// What decides about values whose images are equal: their next bytes, or the next value. `None`: comparing them.
fn next(
    run: &[(u64, u32)],
    field: usize,
    f: &KeyField,
    depth: usize,
    cell: CellOf<'_, '_>,
) -> Option<(usize, usize)> {
    let behind = (field + 1, 0);
    let first = cell(run[0].1, field);
    let mut rest = run.iter().map(|r| cell(r.1, field));
    match first {
        Field::Null => rest.all(|v| matches!(v, Field::Null)).then_some(behind),
        Field::Int(_) => {
            rest.all(|v| matches!(v, Field::Int(i) if i.unsigned_abs() < EXACT)).then_some(behind)
        }
        Field::Real(x) => rest.all(|v| matches!(v, Field::Real(r) if r == x)).then_some(behind),
        Field::Text(_) if f.coll != Collation::Binary => None,
        Field::Text(b) | Field::Blob(b) => {
            let known = if depth == 0 { 7 } else { depth + 8 };
            let (mut same, mut more) = (true, false);
            for v in rest {
                let (Field::Text(x) | Field::Blob(x)) = v else { return None };
                same &= x.len() == b.len();
                more |= x.len() > known;
            }
            match (more, same) {
                (true, _) => Some((field, known)),
                // What the image at depth 0 leaves out of the eighth byte is not there.
                (false, true) => Some(behind),
                // Some end in zeros where others end.
                (false, false) => None,
            }
        }
    }
}

/// The image of a value, `depth` bytes of which are known to be those of the others.
fn image_of(v: Field<'_>, f: &KeyField, depth: usize) -> u64 {
    match v {
        Field::Text(b) | Field::Blob(b) if depth > 0 => {
            let image = first_bytes(b.get(depth..).unwrap_or(&[]));
            if f.desc { !image } else { image }
        }
        // Blobs sort by their bytes as texts do, behind them.
        Field::Blob(b) => {
            let image = 3 << 62 | first_bytes(b) >> 2;
            if f.desc { !image } else { image }
        }
        v => sort_key(v, f),
    }
}

/// Sorts rows by comparing the values from the `from`th on.
fn compared(
    list: &mut [(u64, u32)],
    fields: &[KeyField],
    from: usize,
    cell: CellOf<'_, '_>,
    failed: &Cell<Option<iolite_base::Error>>,
) {
    list.iter_mut().for_each(|r| r.0 = 0);
    crate::sort::by_order(list, &|a, b| {
        for (k, f) in fields.iter().enumerate() {
            match compare_by(cell(a, from + k), cell(b, from + k), f) {
                Ok(Ordering::Equal) => {}
                Ok(o) => return o,
                Err(e) => failed.set(Some(e)),
            }
        }
        Ordering::Equal
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_value::Value;

    /// Values that begin alike, end in zeros, are near each other, or are of several kinds.
    fn values() -> Vec<Value> {
        let mut all = vec![Value::Null, Value::Int(0), Value::real(0.0), Value::real(-0.0)];
        for i in [1, -1, 3, 4, i64::MAX, i64::MAX - 1, i64::MIN, 1 << 52, (1 << 52) + 1, (1 << 53) + 1] {
            all.push(Value::Int(i));
            all.push(Value::real(i as f64));
        }
        for n in [0, 1, 6, 7, 8, 9, 15, 16, 17, 40] {
            for end in ["", "\0", "\0\0", "a", "b", "A", "\u{e9}"] {
                let text = format!("{}{end}", "x".repeat(n));
                all.push(Value::text(&text).unwrap());
                all.push(Value::blob(text.as_bytes()).unwrap());
            }
        }
        all
    }

    #[test]
    fn rows_come_as_a_stable_sort_brings_them() {
        let values = values();
        let mut seed = 1u64;
        let mut draw = |n: usize| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize % n
        };
        for round in 0..300 {
            let kinds = [values.len(), 4, 12][round % 3];
            let rows: Vec<[&Value; 2]> = (0..[5, 40, 700][round / 3 % 3])
                .map(|_| [&values[draw(kinds)], &values[draw(values.len())]])
                .collect();
            let fields: Vec<KeyField> = (0..2)
                .map(|_| KeyField {
                    coll: [Collation::Binary, Collation::Binary, Collation::Nocase][draw(3)].clone(),
                    desc: draw(2) == 0,
                    nulls_large: draw(2) == 0,
                })
                .collect();
            let mut want: Vec<u32> = (0..rows.len() as u32).collect();
            want.sort_by(|a, b| {
                let (a, b) = (rows[*a as usize], rows[*b as usize]);
                let each = |k: usize| compare_by(Field::of(a[k]), Field::of(b[k]), &fields[k]).unwrap();
                each(0).then_with(|| each(1))
            });
            let got = in_order(rows.len(), &fields, &|r, k| Field::of(rows[r as usize][k])).unwrap();
            assert_eq!(got, want, "round {round}, {fields:?}");
        }
    }
}
