//! A change that is made up value by value, and added to a group (documentation page `sqlite3changegroup_change_begin`).

use crate::change::{Change, Op, Table};
use crate::record::{self, UNDEFINED, is_defined};
use iolite_base::{Code, Error, Result};
use iolite_value::Value;
use std::rc::Rc;

/// A change that is being made up, for one of the group's tables.
pub(crate) struct Draft {
    pub at: usize,
    op: Op,
    indirect: bool,
    old: Vec<Option<Vec<u8>>>,
    new: Vec<Option<Vec<u8>>>,
}

fn invalid(what: impl std::fmt::Display) -> Error {
    Error::sql(format!("invalid change: {what}"))
}

impl Draft {
    /// Of a row of the group's table `at`, which has `columns`.
    pub fn new(at: usize, op: Op, indirect: bool, columns: usize) -> Draft {
        Draft { at, op, indirect, old: vec![None; columns], new: vec![None; columns] }
    }

    /// Gives column `n` a value, before or behind the change.
    pub fn set(&mut self, new: bool, n: i64, v: &Value) -> Result<()> {
        if self.op == if new { Op::Delete } else { Op::Insert } {
            return Err(Code::Error.into());
        }
        let row = if new { &mut self.new } else { &mut self.old };
        let field = usize::try_from(n).ok().and_then(|n| row.get_mut(n)).ok_or(Code::Range)?;
        *field = Some(record::encoded(v)?);
        Ok(())
    }

    /// The change, unless something is wrong with it.
    pub fn finish(self, table: Rc<Table>, patchset: bool) -> Result<Change> {
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for (i, (a, b)) in self.old.iter().zip(&self.new).enumerate() {
            let (was, is) = (a.as_deref().unwrap_or(UNDEFINED), b.as_deref().unwrap_or(UNDEFINED));
            let key = table.is_key(i);
            let kept = key || !patchset;
            match self.op {
                Op::Update => {
                    updated(i, key, patchset, was, is)?;
                    old.extend_from_slice(if kept { was } else { UNDEFINED });
                    new.extend_from_slice(is);
                }
                Op::Delete => {
                    if kept {
                        whole(i, key, was)?;
                    }
                    old.extend_from_slice(if kept { was } else { UNDEFINED });
                }
                Op::Insert => {
                    whole(i, key, is)?;
                    new.extend_from_slice(is);
                }
            }
        }
        Ok(Change { table, op: self.op, indirect: self.indirect as u8, old, new })
    }
}

/// A field of a row that is inserted or deleted.
fn whole(i: usize, key: bool, field: &[u8]) -> Result<()> {
    if !is_defined(field) {
        return Err(invalid(format_args!("column {i} is undefined")));
    }
    if key && field == [5] { Err(invalid("null value in PK")) } else { Ok(()) }
}

/// A field of a row that is changed.
fn updated(i: usize, key: bool, patchset: bool, was: &[u8], is: &[u8]) -> Result<()> {
    let (before, behind) = (is_defined(was), is_defined(is));
    if key {
        return match was {
            [5] => Err(invalid("null value in PK of old.* record")),
            _ if !before => Err(invalid("undefined value in PK of old.* record")),
            _ if behind => Err(invalid("defined value in PK of new.* record")),
            _ => Ok(()),
        };
    }
    if before == behind || patchset {
        return Ok(());
    }
    let word = |d: bool| if d { "defined" } else { "undefined" };
    let (a, b) = (word(before), word(behind));
    Err(invalid(format_args!("column {i} - old.* value is {a} but new.* is {b}")))
}
