//! The inverse of a changeset: what takes it back.

use crate::change::{Change, Op};
use crate::corrupt;
use crate::input::Input;
use crate::output::Output;
use crate::reader::Reader;
use crate::record::{self, UNDEFINED};
use iolite_base::Result;
use std::rc::Rc;

/// Writes the inverse of `input`, whose changes stay in their order. A patchset has none.
pub fn invert(input: Input<'_>, out: &mut Output<'_>) -> Result<()> {
    let mut reader = Reader::new(input, false);
    let mut table = None;
    while let Some(c) = reader.next()? {
        if c.table.patchset {
            return Err(corrupt());
        }
        if !table.as_ref().is_some_and(|t| Rc::ptr_eq(t, &c.table)) {
            c.table.put(&mut out.bytes);
            table = Some(c.table.clone());
        }
        inverse(&c).put(&mut out.bytes)?;
        out.written()?;
    }
    Ok(())
}

fn inverse(c: &Change) -> Change {
    let (op, old, new) = match c.op {
        Op::Insert => (Op::Delete, c.new.clone(), Vec::new()),
        Op::Delete => (Op::Insert, Vec::new(), c.old.clone()),
        Op::Update => {
            let (mut old, mut new) = (Vec::new(), Vec::new());
            for (i, was) in record::fields(&c.old).enumerate() {
                let key = c.table.is_key(i);
                old.extend_from_slice(if key { was } else { record::field(&c.new, i) });
                new.extend_from_slice(if key { UNDEFINED } else { c.old_field(i) });
            }
            (Op::Update, old, new)
        }
    };
    Change { table: c.table.clone(), op, indirect: c.indirect, old, new }
}
