//! What is wrong with the rows of a table, row by row, in the order in which SQLite tells it: the row's place, its columns, CHECK
//! constraints, and for each index whether the row's entry is there, ends with the row's number, holds the row's values, and is not
//! followed by an equal one.
//!
//! What a row should be comes from a program (`codegen::check`), which walks the table beside this walk. An entry is sought by halving
//! alone, from the root: in a tree out of order another search could find what SQLite's does not.
//! Messages name a row by its number in the walk.

use super::Check;
use super::rows::{Walk, complaint};
use crate::binding::with_env;
use iolite_base::{Code, Result, varint};
use iolite_btree::{Btree, Cursor, TreeKind};
use iolite_catalog::{ColumnSource, Index, Table};
use iolite_value::compare::{Probe, compare};
use iolite_value::{Collation, KeyInfo, Value, record};
use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::rc::Rc;

/// An index that rows are looked up in.
struct Lookup {
    index: Rc<Index>,
    key: Rc<KeyInfo>,
    cursor: Cursor,
    entry: Vec<u8>,
}

impl Check<'_> {
    /// Looks at each row, and for it into these indexes.
    pub(super) fn detail(
        &mut self,
        db: usize,
        b: &Btree,
        t: &Rc<Table>,
        indexes: &[Rc<Index>],
    ) -> Result<()> {
        let mut lookups = Vec::new();
        for index in indexes {
            let key = self.key(t, index)?;
            let cursor = b.cursor(index.root.get(), TreeKind::Index, false)?;
            lookups.push(Lookup { index: index.clone(), key, cursor, entry: Vec::new() });
        }
        let checks = !self.conn.0.settings.ignore_checks();
        let plan = with_env(self.conn, |env| iolite_plan::row_check(env, db, t, checks, indexes))?;
        let mut program = iolite_bytecode::Program::default();
        iolite_codegen::emit(&plan, &self.conn.0.codegen_settings(), None, &mut program)?;
        let mut walk = Walk::new(self, b, t)?;
        let mut number = 0;
        let conn = self.conn;
        conn.for_rows(program, &mut |should| {
            if !walk.next()? {
                return Err(Code::Corrupt.into());
            }
            self.another()?;
            number += 1;
            self.row(t, checks, &walk, should, number, &mut lookups)?;
            Ok(if self.left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })
    }

    fn row(
        &mut self,
        t: &Table,
        checks: bool,
        walk: &Walk,
        should: &[Value],
        number: i64,
        lookups: &mut [Lookup],
    ) -> Result<()> {
        if walk.is_out_of_order()? {
            self.say(format!("row not in PRIMARY KEY order for {}", t.name));
        }
        let (verdicts, rest) = should.split_at(if checks { t.checks.len() } else { 0 });
        let computed = t.columns.iter().filter(|c| !c.is_stored()).count();
        let (computed, mut entries) = rest.split_at(computed);
        for r in &walk.rules {
            let wrong = match r.stored {
                Some(at) => walk.refused(r, at)?,
                None => {
                    let before = t.columns[..r.column].iter().filter(|c| !c.is_stored()).count();
                    r.refuses_value(&computed[before])?
                }
            };
            if let Some(wrong) = wrong {
                self.say(complaint(t, r.column, wrong));
            }
        }
        // One complaint, however many are not met.
        if verdicts.iter().any(|v| v.to_int() == 0) {
            self.say(format!("CHECK constraint failed in {}", t.name));
        }
        for l in lookups {
            let (entry, others) = entries.split_at(1 + l.index.columns.len());
            entries = others;
            if entry[0].to_int() != 0 {
                self.look_up(t, l, &entry[1..], number)?;
            }
        }
        Ok(())
    }

    /// Looks one row up in one index.
    fn look_up(&mut self, t: &Table, l: &mut Lookup, fields: &[Value], number: i64) -> Result<()> {
        let index = &l.index;
        let probe = Probe::new(fields, &l.key, Ordering::Equal);
        l.cursor.clear();
        if l.cursor.seek_key(&mut |entry: &[u8]| probe.compare(entry))? != Some(Ordering::Equal) {
            self.say(format!("row {number} missing from index {}", index.name));
            return Ok(());
        }
        l.cursor.read_entry(&mut l.entry)?;
        if t.has_rowid() {
            let expected = fields.last().map_or(0, Value::to_int);
            if last_int(&l.entry).ok_or(Code::Corrupt)? != expected {
                self.say(format!("rowid not at end-of-record for row {number} of index {}", index.name));
            }
        }
        if differs(l, fields)? {
            self.say(format!("row {number} values differ from index {}", index.name));
        }
        let may_be_null = |c: &ColumnSource| match c {
            ColumnSource::Column(k) => t.columns[*k].not_null.is_none(),
            ColumnSource::Rowid | ColumnSource::Expr(_) => true,
        };
        let unique = index.unique.is_some() && {
            let mut declared = index.columns.iter().zip(fields).take(index.key_len);
            !declared.any(|(c, v)| v.is_null() && may_be_null(&c.source))
        };
        if unique && l.cursor.next()? {
            l.cursor.read_entry(&mut l.entry)?;
            let key = Probe::new(&fields[..index.key_len], &l.key, Ordering::Equal);
            if key.compare(&l.entry)? != Ordering::Greater {
                self.say(format!("non-unique entry in index {}", index.name));
            }
        }
        Ok(())
    }
}

/// Whether an entry that a collating sequence calls equal to a row's has other values.
fn differs(l: &Lookup, fields: &[Value]) -> Result<bool> {
    let mut header = record::Header::new(&l.entry)?;
    for (k, v) in fields.iter().enumerate().take(l.index.key_len) {
        let Some((serial, bytes)) = header.next(&l.entry)? else { break };
        let binary = matches!(l.key.fields[k].coll, Collation::Binary | Collation::Binary16(_));
        if binary || v.is_null() || serial == 0 {
            continue;
        }
        let stored = record::value_of(serial, bytes, l.key.enc)?;
        if compare(&stored, v, &Collation::Binary) != Ordering::Equal {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The integer at the end of a record, whose type the last byte of its header says.
fn last_int(rec: &[u8]) -> Option<i64> {
    let (head, _) = varint::get(rec)?;
    let head = usize::try_from(head).ok().filter(|h| (3..=rec.len()).contains(h))?;
    let serial = u64::from(rec[head - 1]);
    if !matches!(serial, 1..=6 | 8 | 9) {
        return None;
    }
    let at = rec.len().checked_sub(record::serial_len(serial)).filter(|at| *at >= head)?;
    record::read_int(serial, &rec[at..])
}
