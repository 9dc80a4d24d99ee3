//! The first rows of an order, or all of them: a list that is cut when it has grown, and what a newcomer has to beat.
//!
//! What always holds: of rows that sort alike those that were pushed first come first.

use crate::expr::vector::Vector;
use crate::store::chunk::Field;
use iolite_base::{Result, alloc};
use iolite_value::compare::{KeyField, compare};
use iolite_value::order::in_order;
use iolite_value::{Collation, Value};
use std::cmp::Ordering;

/// A value that rows are sorted by: one that lies in a column, or a computed one.
#[derive(Clone)]
pub(crate) enum Cell<'a> {
    There(Field<'a>),
    Made(Value),
}

impl Cell<'_> {
    /// Its field.
    #[inline]
    pub fn field(&self) -> Field<'_> {
        match self {
            Cell::There(f) => *f,
            Cell::Made(v) => Field::of(v),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Cell::Made(Value::Text(b, _) | Value::Blob(b, _)) => b.len(),
            _ => 0,
        }
    }
}

/// Compares two values as an order does.
#[inline]
pub(crate) fn compare_by(a: Field<'_>, b: Field<'_>, f: &KeyField) -> Result<Ordering> {
    let o = match (a, b) {
        (Field::Int(x), Field::Int(y)) => x.cmp(&y),
        (Field::Real(x), Field::Real(y)) => x.partial_cmp(&y).unwrap_or(Ordering::Equal),
        (Field::Text(x), Field::Text(y)) if f.coll == Collation::Binary => x.cmp(y),
        _ => compare(&a.value()?, &b.value()?, &f.coll),
    };
    Ok(f.direct(o, matches!(a, Field::Null) || matches!(b, Field::Null)))
}

/// See the module's head.
pub(crate) struct Top<'a> {
    fields: Vec<KeyField>,
    limit: Option<usize>,
    ids: Vec<u32>,
    cells: Vec<Cell<'a>>,
    /// The last one that is in, once there are enough.
    worst: Vec<Cell<'a>>,
    held: usize,
}

impl<'a> Top<'a> {
    /// Begins.
    pub fn new(fields: Vec<KeyField>, limit: Option<usize>) -> Top<'a> {
        Top { fields, limit, ids: Vec::new(), cells: Vec::new(), worst: Vec::new(), held: 0 }
    }

    /// Memory held.
    pub fn bytes(&self) -> usize {
        self.ids.len() * (4 + self.fields.len() * size_of::<Cell<'_>>()) + self.held
    }

    /// Whether a row has no chance, by the number that it is sorted by first: row `i` of these.
    #[inline]
    pub fn is_behind(&self, first: &Vector<'_>, i: usize) -> bool {
        let desc = self.fields[0].desc;
        let (nulls, order) = match (first, self.worst.first().map(Cell::field)) {
            (Vector::Ints(v), Some(Field::Int(w))) => (&v.nulls, v.values[i].partial_cmp(&w)),
            (Vector::Reals(v), Some(Field::Real(w))) => (&v.nulls, v.values[i].partial_cmp(&w)),
            _ => return false,
        };
        nulls.get(i) != Some(&true) && order == Some(if desc { Ordering::Less } else { Ordering::Greater })
    }

    /// Offers a row, whose values `cell` makes one by one as they are needed.
    pub fn push(&mut self, id: u32, cell: &mut dyn FnMut(usize) -> Result<Cell<'a>>) -> Result<()> {
        let n = self.fields.len();
        let mut known: Option<Cell<'a>> = None;
        let mut from = 0;
        if let Some(first) = self.worst.first() {
            let mut at = 0;
            let mut last = cell(0)?;
            let mut o = compare_by(last.field(), first.field(), &self.fields[0])?;
            while o.is_eq() && at + 1 < n {
                if at == 0 && n > 1 {
                    known = Some(last);
                }
                at += 1;
                last = cell(at)?;
                o = compare_by(last.field(), self.worst[at].field(), &self.fields[at])?;
            }
            if o.is_ge() {
                return Ok(());
            }
            if at == 0 {
                known = Some(last);
            }
        }
        alloc::reserve(&mut self.cells, n)?;
        if let Some(c) = known {
            self.held += c.bytes();
            self.cells.push(c);
            from = 1;
        }
        for i in from..n {
            let c = cell(i)?;
            self.held += c.bytes();
            self.cells.push(c);
        }
        alloc::reserve(&mut self.ids, 1)?;
        self.ids.push(id);
        match self.limit {
            Some(k) if self.ids.len() >= 2 * k + 256 => self.cut(k),
            _ => Ok(()),
        }
    }

    /// The places of the rows in order.
    fn sorted(&self) -> Result<Vec<u32>> {
        let n = self.fields.len();
        in_order(self.ids.len(), &self.fields, &|row, k| self.cells[row as usize * n + k].field().as_ref())
    }

    fn cut(&mut self, k: usize) -> Result<()> {
        let n = self.fields.len();
        let at = self.sorted()?;
        let mut cells = crate::memory::room((2 * k + 256) * n)?;
        for i in at.iter().take(k) {
            cells.extend_from_slice(&self.cells[*i as usize * n..][..n]);
        }
        self.ids = at.iter().take(k).map(|i| self.ids[*i as usize]).collect();
        self.cells = cells;
        self.held = self.cells.iter().map(Cell::bytes).sum();
        if self.ids.len() == k && k > 0 {
            self.worst = self.cells[(k - 1) * n..].to_vec();
        }
        Ok(())
    }

    /// The rows, in order.
    pub fn finish(self) -> Result<Vec<u32>> {
        let at = self.sorted()?;
        let n = self.limit.unwrap_or(usize::MAX);
        Ok(at.into_iter().take(n).map(|i| self.ids[i as usize]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ones_are_those_of_a_whole_stable_sort() {
        let field = |desc| KeyField { coll: Collation::Binary, desc, nulls_large: false };
        for limit in [None, Some(0), Some(1), Some(7), Some(400)] {
            for (a, b) in [(false, false), (true, false), (false, true)] {
                let rows: Vec<(i64, i64)> = (0..5000).map(|i| (i * 7919 % 50, i * 31 % 40)).collect();
                let mut t = Top::new(vec![field(a), field(b)], limit);
                for (i, r) in rows.iter().enumerate() {
                    let mut cell = |k: usize| Ok(Cell::There(Field::Int(if k == 0 { r.0 } else { r.1 })));
                    t.push(i as u32, &mut cell).unwrap();
                }
                let mut want: Vec<u32> = (0..5000).collect();
                let dir = |o: Ordering, d: bool| if d { o.reverse() } else { o };
                want.sort_by(|x, y| {
                    let (x, y) = (rows[*x as usize], rows[*y as usize]);
                    dir(x.0.cmp(&y.0), a).then(dir(x.1.cmp(&y.1), b))
                });
                want.truncate(limit.unwrap_or(usize::MAX));
                assert_eq!(t.finish().unwrap(), want);
            }
        }
    }
}
