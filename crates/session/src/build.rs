//! A change that is made up value by value, and added to a group (documentation page `sqlite3changegroup_change_begin`).

use crate::change::{Change, Op};
use crate::group::Group;
use crate::record::{self, UNDEFINED, is_defined};
use iolite_base::{Code, Error, Result};
use iolite_ext::Host;
use iolite_value::Value;

/// A change that is being made up, for one of the group's tables.
pub(crate) struct Draft {
    at: usize,
    op: Op,
    indirect: bool,
    old: Vec<Option<Vec<u8>>>,
    new: Vec<Option<Vec<u8>>>,
}

fn invalid(what: impl std::fmt::Display) -> Error {
    Error::sql(format!("invalid change: {what}"))
}

impl Group {
    /// Begins a change of a row of `table`.
    pub fn begin_change(
        &mut self,
        op: u8,
        table: &str,
        indirect: bool,
        host: Option<&dyn Host>,
    ) -> Result<()> {
        if self.draft.is_some() {
            return Err(Code::Misuse.into());
        }
        let op = Op::from_number(op).ok_or(Code::Error)?;
        let found = match self.find(table) {
            Some(at) => Some(at),
            None => self.from_schema(table, host)?,
        };
        let at = found.ok_or_else(|| Error::sql(format!("no such table: {table}")))?;
        let n = self.tables[at].table.columns();
        self.draft = Some(Draft { at, op, indirect, old: vec![None; n], new: vec![None; n] });
        Ok(())
    }

    /// Gives column `n` a value, before or behind the change.
    pub fn change_value(&mut self, new: bool, n: i64, v: &Value) -> Result<()> {
        let d = self.draft.as_mut().ok_or(Code::Misuse)?;
        if d.op == if new { Op::Delete } else { Op::Insert } {
            return Err(Code::Error.into());
        }
        let row = if new { &mut d.new } else { &mut d.old };
        let field = usize::try_from(n).ok().and_then(|n| row.get_mut(n)).ok_or(Code::Range)?;
        *field = Some(record::encoded(v)?);
        Ok(())
    }

    /// Ends the change: adds it, or forgets it with `discard` and if something is wrong with it.
    pub fn finish_change(&mut self, discard: bool) -> Result<()> {
        let Some(d) = self.draft.take().filter(|_| !discard) else { return Ok(()) };
        let patchset = self.is_patchset();
        let entry = &mut self.tables[d.at];
        let table = entry.table.clone();
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for (i, (a, b)) in d.old.iter().zip(&d.new).enumerate() {
            let (was, is) = (a.as_deref().unwrap_or(UNDEFINED), b.as_deref().unwrap_or(UNDEFINED));
            let key = table.is_key(i);
            let kept = key || !patchset;
            match d.op {
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
        entry.put(Change { table, op: d.op, indirect: d.indirect as u8, old, new });
        Ok(())
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
