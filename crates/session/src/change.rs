//! A change of one row, and the table that it belongs to, as a changeset says it.

use crate::record::{self, UNDEFINED};
use iolite_base::{Result, raw_text};
use iolite_value::Value;
use std::rc::Rc;

/// What is done with a row. The numbers are those of the format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Op {
    Delete = 9,
    Insert = 18,
    Update = 23,
}

impl Op {
    /// The operation with this number.
    pub fn from_number(n: u8) -> Option<Op> {
        match n {
            9 => Some(Op::Delete),
            18 => Some(Op::Insert),
            23 => Some(Op::Update),
            _ => None,
        }
    }
}

/// A table, as a changeset describes it before the changes of its rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// Its name; bytes that are not UTF-8 are carried along (`iolite_base::raw_text`).
    pub name: String,
    /// For each column its place in the primary key, from 1, or 0.
    pub keys: Vec<u8>,
    /// The changes are those of a patchset.
    pub patchset: bool,
}

impl Table {
    /// How many columns it has.
    pub fn columns(&self) -> usize {
        self.keys.len()
    }

    /// Whether column `n` belongs to the key.
    pub fn is_key(&self, n: usize) -> bool {
        self.keys.get(n).is_some_and(|k| *k != 0)
    }

    /// Writes it.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.push(if self.patchset { b'P' } else { b'T' });
        record::put_varint(out, self.keys.len() as u64);
        out.extend_from_slice(&self.keys);
        out.extend_from_slice(&raw_text::decode(&self.name));
        out.push(0);
    }
}

/// A change of one row.
///
/// Each record has one field for each column, or is empty where the operation has none. Fields are where the documentation
/// says that `sqlite3changeset_old` and `sqlite3changeset_new` find them, in patchsets, too: those hold the key of
/// an UPDATE among the new values, and for a DELETE nothing but the key.
#[derive(Clone, Debug)]
pub struct Change {
    /// The table.
    pub table: Rc<Table>,
    /// What is done.
    pub op: Op,
    /// Not zero: done by triggers, or said to be indirect.
    pub indirect: u8,
    pub(crate) old: Vec<u8>,
    pub(crate) new: Vec<u8>,
}

impl Change {
    /// The value of column `n` before, if the change has it.
    pub fn old_value(&self, n: usize) -> Result<Option<Value>> {
        record::value(self.old_field(n))
    }

    /// The value of column `n` behind it, if the change has it.
    pub fn new_value(&self, n: usize) -> Result<Option<Value>> {
        record::value(record::field(&self.new, n))
    }

    /// The field of column `n` before. A value that is said to have been, but not what became of it, says nothing.
    pub(crate) fn old_field(&self, n: usize) -> &[u8] {
        let lost = self.op == Op::Update
            && !self.table.patchset
            && !self.table.is_key(n)
            && !record::is_defined(record::field(&self.new, n));
        if lost { UNDEFINED } else { record::field(&self.old, n) }
    }

    /// The record that holds the key.
    pub(crate) fn keyed(&self) -> &[u8] {
        if self.op == Op::Insert { &self.new } else { &self.old }
    }

    /// Whether it is an UPDATE that gives no column a value.
    pub(crate) fn is_empty(&self) -> bool {
        self.op == Op::Update && record::fields(&self.new).all(|f| !record::is_defined(f))
    }

    /// Writes it.
    pub(crate) fn put(&self, out: &mut Vec<u8>) -> Result<()> {
        iolite_base::alloc::reserve(out, 2 + self.old.len() + self.new.len())?;
        out.extend_from_slice(&[self.op as u8, self.indirect]);
        match self.op {
            Op::Insert => out.extend_from_slice(&self.new),
            Op::Delete if self.table.patchset => {
                let keys = record::fields(&self.old).enumerate().filter(|(i, _)| self.table.is_key(*i));
                keys.for_each(|(_, f)| out.extend_from_slice(f));
            }
            Op::Delete => out.extend_from_slice(&self.old),
            Op::Update if self.table.patchset => {
                for (i, (old, new)) in record::fields(&self.old).zip(record::fields(&self.new)).enumerate() {
                    out.extend_from_slice(if self.table.is_key(i) && !record::is_defined(new) {
                        old
                    } else {
                        new
                    });
                }
            }
            Op::Update => {
                out.extend_from_slice(&self.old);
                out.extend_from_slice(&self.new);
            }
        }
        Ok(())
    }
}
