//! Instructions that are too long for the interpreter's loop, by subject.

pub(crate) mod aggregate;
pub(crate) mod before;
pub(crate) mod compare;
pub(crate) mod filter;
pub(crate) mod function;
pub(crate) mod halt;
pub(crate) mod hash;
pub(crate) mod open;
pub(crate) mod queue;
pub(crate) mod row;
pub(crate) mod schema;
pub(crate) mod seek;
pub(crate) mod set;
pub(crate) mod sort;
pub(crate) mod strict;
pub(crate) mod virt;
pub(crate) mod window;
pub(crate) mod write;

use crate::cursor::{TreeCursor, VCursor};
use crate::machine::Vm;
use iolite_base::{Code, Result};
use iolite_value::Value;
use std::cmp::Ordering;

impl Vm {
    /// A cursor that must be on a tree.
    #[inline(always)]
    pub(crate) fn tree(&mut self, n: i32) -> Result<&mut TreeCursor> {
        match &mut self.f.cursors[n as usize] {
            Some(VCursor::Tree(t)) => Ok(t),
            _ => Err(Code::Internal.into()),
        }
    }

    /// Does the seek that a table cursor owes to an index cursor.
    #[inline]
    pub(crate) fn pay(&mut self, n: i32) -> Result<()> {
        let Some(VCursor::Tree(t)) = &mut self.f.cursors[n as usize] else { return Ok(()) };
        let Some(index) = t.deferred.take() else { return Ok(()) };
        if t.key.is_some() {
            return self.pay_by_key(n, index);
        }
        let id = match &mut self.f.cursors[index] {
            Some(VCursor::Tree(x)) => {
                x.settle()?;
                if x.null_row { None } else { Some(x.index_rowid()?) }
            }
            _ => None,
        };
        let Some(id) = id else {
            self.tree(n)?.moved(false);
            return Ok(());
        };
        let Ok([Some(VCursor::Tree(t)), Some(VCursor::Tree(x))]) =
            self.f.cursors.get_disjoint_mut([n as usize, index])
        else {
            return Err(Code::Internal.into());
        };
        match t.ahead.seek(&mut t.cur, &x.cur, id)? {
            Some(Ordering::Equal) => t.moved(true),
            _ => return Err(Code::CorruptIndex.into()),
        }
        Ok(())
    }

    /// The same for the cursor of a WITHOUT ROWID table, whose key is among the fields of the index.
    fn pay_by_key(&mut self, n: i32, index: usize) -> Result<()> {
        let enc = self.enc;
        let Ok([Some(VCursor::Tree(t)), Some(VCursor::Tree(x))]) =
            self.f.cursors.get_disjoint_mut([n as usize, index])
        else {
            return Err(Code::Internal.into());
        };
        x.settle()?;
        if x.null_row {
            t.moved(false);
            return Ok(());
        }
        let (Some(fields), Some(key)) = (t.key_fields.clone(), t.key.clone()) else {
            return Err(Code::Internal.into());
        };
        t.key_values.resize(fields.len(), Value::Null);
        for (field, value) in fields.iter().zip(&mut t.key_values) {
            if !x.field(*field as usize, enc, 0, value)? {
                return Err(Code::CorruptIndex.into());
            }
        }
        let at = t.cur.seek_key(&mut seek::ByKey::new(&t.key_values, &key, Ordering::Equal))?;
        match at {
            Some(Ordering::Equal) => t.moved(true),
            _ => return Err(Code::CorruptIndex.into()),
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn put(&mut self, n: i32, v: Value) {
        self.f.regs[n as usize] = v;
    }
}
