//! Rebasing (documentation page `rebaser`): a changeset as if it had been made behind changes of somebody else, after it was
//! decided what wins.
//!
//! What was decided is written down as a changeset of its own: a DELETE, or an INSERT with the values that an INSERT or UPDATE
//! was to make; where the remote change won, it is marked as indirect. Here these are collected by row, a field at a time.

use crate::change::{Change, Op, Table};
use crate::group::Entry;
use crate::input::Input;
use crate::merge::over;
use crate::output::Output;
use crate::reader::Reader;
use crate::record::{self, REPLACED, UNDEFINED, is_defined};
use crate::rows::{self, Rows};
use iolite_base::{Code, Result};
use std::rc::Rc;

/// What was decided about conflicts.
#[derive(Default)]
pub struct Rebaser {
    tables: Vec<Entry>,
}

/// A record of which everything but the key was replaced.
fn replaced(table: &Table, record: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (i, f) in record::fields(record).enumerate() {
        out.extend_from_slice(if !is_defined(f) || table.is_key(i) { f } else { REPLACED });
    }
    out
}

/// A decision about a row, and a later one. Once a remote change won, what came before does not matter: all fields are
/// replaced. Behind a remote DELETE that won, the row is another one, and nothing is known about it.
fn later(first: Change, then: &Change) -> Option<Change> {
    if first.op == Op::Delete && first.indirect != 0 {
        return None;
    }
    let mut out = Vec::new();
    for (i, (a, b)) in record::fields(first.keyed()).zip(record::fields(then.keyed())).enumerate() {
        out.extend_from_slice(if then.table.is_key(i) {
            b
        } else if a == REPLACED || then.indirect != 0 {
            REPLACED
        } else if is_defined(b) {
            b
        } else {
            a
        });
    }
    let (old, new) = if then.op == Op::Insert { (Vec::new(), out) } else { (out, Vec::new()) };
    let indirect = first.indirect | then.indirect;
    Some(Change { table: then.table.clone(), op: then.op, indirect, old, new })
}

impl Rebaser {
    /// Nothing was decided.
    pub fn new() -> Rebaser {
        Rebaser::default()
    }

    /// Adds what was decided when a changeset was applied.
    pub fn configure(&mut self, input: Input<'_>) -> Result<()> {
        let mut reader = Reader::new(input, false);
        while let Some(c) = reader.next()? {
            let at = match self.tables.iter().position(|t| t.table.name.eq_ignore_ascii_case(&c.table.name)) {
                Some(at) => at,
                None => {
                    self.tables.push(Entry::around(c.table.clone(), Rows::default()));
                    self.tables.len() - 1
                }
            };
            let t = &mut self.tables[at];
            if c.table.patchset {
                return Err(Code::Error.into());
            }
            if c.table.keys != t.table.keys {
                return Err(Code::Schema.into());
            }
            let mut c = (*c).clone();
            if c.indirect != 0 && !t.has(&c) {
                c.old = replaced(&c.table, &c.old);
                c.new = replaced(&c.table, &c.new);
            }
            t.put_merged(c, later);
        }
        Ok(())
    }

    /// Writes `input`, rebased.
    pub fn rebase(&self, input: Input<'_>, out: &mut Output<'_>) -> Result<()> {
        let mut reader = Reader::new(input, false);
        let mut table: Option<Rc<Table>> = None;
        while let Some(c) = reader.next()? {
            if !table.as_ref().is_some_and(|t| Rc::ptr_eq(t, &c.table)) {
                if c.table.patchset {
                    return Err(Code::Error.into());
                }
                c.table.put(&mut out.bytes);
                table = Some(c.table.clone());
            }
            if let Some(c) = self.rebased(&c) {
                c.put(&mut out.bytes)?;
                out.written()?;
            }
        }
        Ok(())
    }

    /// A local change behind what was decided about its row; `None`: nothing is left of it.
    fn rebased(&self, local: &Change) -> Option<Change> {
        let mut local = local.clone();
        let Some(remote) = self.decision(&local) else { return Some(local) };
        match (local.op, remote.op) {
            (Op::Insert, Op::Insert) if remote.indirect != 0 => None,
            (Op::Insert, Op::Insert) => {
                local.op = Op::Update;
                local.old = remote.new.clone();
                Some(local)
            }
            (Op::Update, Op::Delete) if remote.indirect != 0 => None,
            (Op::Update, Op::Delete) => {
                local.op = Op::Insert;
                local.new = over(&local.new, &remote.old);
                local.old.clear();
                Some(local)
            }
            (Op::Update, _) => update(local, remote.keyed()),
            (Op::Delete, Op::Insert) => {
                let mut old = Vec::new();
                for (a, b) in record::fields(&remote.new).zip(record::fields(&local.old)) {
                    old.extend_from_slice(if is_defined(a) && a != REPLACED { a } else { b });
                }
                local.old = old;
                Some(local)
            }
            (Op::Delete, _) => None,
            _ => Some(local),
        }
    }

    fn decision(&self, local: &Change) -> Option<&Change> {
        let t = self.tables.iter().find(|t| t.table.name.eq_ignore_ascii_case(&local.table.name))?;
        if t.table.columns() != local.table.columns() {
            return None;
        }
        let key = |c: &Change| -> Vec<Vec<u8>> {
            rows::key(&t.table.keys, c.keyed()).map(<[u8]>::to_vec).collect()
        };
        let (hash, own) = (rows::hash(rows::key(&t.table.keys, local.keyed())), key(local));
        t.rows.get(hash, |c| key(c) == own)
    }
}

/// A local UPDATE behind remote values: those are what was before; fields that were replaced are not changed any more.
fn update(mut local: Change, remote: &[u8]) -> Option<Change> {
    let (mut old, mut new) = (Vec::new(), Vec::new());
    let mut changes = false;
    for (i, their) in record::fields(remote).enumerate() {
        let (was, is) = (record::field(&local.old, i), record::field(&local.new, i));
        let key = local.table.is_key(i);
        old.extend_from_slice(if key || !is_defined(their) {
            changes |= !key && is_defined(was);
            was
        } else if their != REPLACED && is_defined(was) {
            changes = true;
            their
        } else {
            UNDEFINED
        });
        new.extend_from_slice(if key || their != REPLACED { is } else { UNDEFINED });
    }
    (local.old, local.new) = (old, new);
    changes.then_some(local)
}
