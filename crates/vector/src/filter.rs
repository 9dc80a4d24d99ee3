//! Conditions on metadata columns: which places of a chunk they leave.

use crate::config::Type;
use crate::plan;
use crate::store::{Chunk, Store, eight};
use iolite_base::{Bytes, Code, Error, Result};
use iolite_value::Value;
use std::cmp::Ordering;

/// A condition on a metadata column.
pub(crate) struct Condition {
    column: usize,
    /// The comparison, as plans write it.
    op: u8,
    wanted: Wanted,
}

enum Wanted {
    /// Nothing compares with NULL.
    Nothing,
    Boolean(bool),
    Integers(Vec<i64>),
    Real(f64),
    Texts(Vec<Bytes>),
}

impl Condition {
    /// A comparison with a value, or with one of several.
    pub fn new(store: &Store, column: usize, op: u8, values: &[Value]) -> Result<Condition> {
        let ty = store.config.metadata.get(column).ok_or_else(|| Error::from(Code::Internal))?.ty;
        let values: Vec<&Value> = values.iter().filter(|v| !v.is_null()).collect();
        let wanted = match (ty, &values[..]) {
            (_, []) => Wanted::Nothing,
            (Type::Boolean, [v, ..]) => Wanted::Boolean(v.to_int() != 0),
            (Type::Float, [v, ..]) | (Type::Integer, [v @ Value::Real(_)]) => Wanted::Real(v.to_real()),
            (Type::Text, all) => Wanted::Texts(all.iter().map(|v| v.text_bytes()).collect::<Result<_>>()?),
            (_, all) => Wanted::Integers(all.iter().map(|v| v.to_int()).collect()),
        };
        Ok(Condition { column, op, wanted })
    }

    /// Takes the places out that it does not hold for.
    pub fn narrow(&self, store: &Store, chunk: &Chunk, left: &mut [bool]) -> Result<()> {
        if let Wanted::Nothing = self.wanted {
            left.fill(false);
            return Ok(());
        }
        let ty = store.config.metadata[self.column].ty;
        let data = store.metadata_chunk(self.column, chunk)?;
        for (at, left) in left.iter_mut().enumerate().filter(|(_, left)| **left) {
            *left = match &self.wanted {
                Wanted::Nothing => false,
                Wanted::Boolean(b) => {
                    let set = data[at / 8] >> (at % 8) & 1 != 0;
                    plan::holds(self.op, set.cmp(b))
                }
                Wanted::Integers(all) => {
                    let n = i64::from_le_bytes(eight(&data[8 * at..]));
                    all.iter().any(|w| plan::holds(self.op, n.cmp(w)))
                }
                Wanted::Real(w) => {
                    let order = match ty {
                        Type::Integer => {
                            iolite_value::compare::int_real(i64::from_le_bytes(eight(&data[8 * at..])), *w)
                        }
                        _ => f64::from_le_bytes(eight(&data[8 * at..]))
                            .partial_cmp(w)
                            .unwrap_or(Ordering::Less),
                    };
                    plan::holds(self.op, order)
                }
                Wanted::Texts(all) => {
                    let mut any = false;
                    for w in all {
                        any |= self.text_holds(store, &data[16 * at..16 * at + 16], chunk.rowid(at), w)?;
                    }
                    any
                }
            };
        }
        Ok(())
    }

    /// Whether it holds for a text, of which a chunk has the length and the first bytes: those may be enough.
    fn text_holds(&self, store: &Store, view: &[u8], rowid: i64, wanted: &[u8]) -> Result<bool> {
        let length = i32::from_le_bytes([view[0], view[1], view[2], view[3]]);
        if length > 12 {
            let n = wanted.len().min(12);
            let order = view[4..4 + n].cmp(&wanted[..n]);
            if order.is_ne() || n < 12 {
                return Ok(plan::holds(self.op, order.then(Ordering::Greater)));
            }
        }
        let text = store.text(self.column, view, rowid)?;
        Ok(plan::holds(self.op, text[..].cmp(wanted)))
    }
}
