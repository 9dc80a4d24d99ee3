//! Telling of changes of rows before they are made (`sqlite3_preupdate_hook`).
//!
//! Only runs of connections where somebody wants to know come here. Rows are read as their records hold them: what a column
//! is, the connection knows.

use crate::cursor::{TreeCursor, VCursor};
use crate::env::{Env, RowBefore};
use crate::machine::Vm;
use iolite_base::{Code, Encoding, Pgno, Result};
use iolite_btree::{Btree, TreeKind};
use iolite_bytecode::{Insn, P4, p5};
use iolite_ext::RowChange;
use iolite_value::{Value, compare, record};
use std::cmp::Ordering;

/// A row as its record holds it: its rowid, 0 where there is none, and its fields.
pub(crate) type Stored = (i64, Vec<Value>);

/// The row under a cursor.
fn stored(t: &mut TreeCursor, enc: Encoding) -> Result<Stored> {
    let id = if t.cur.kind() == TreeKind::Table { t.cur.rowid() } else { 0 };
    let mut fields = Vec::new();
    let mut value = Value::Null;
    while t.field(fields.len(), enc, p5::COPY, &mut value)? {
        fields.push(std::mem::take(&mut value));
    }
    Ok((id, fields))
}

/// The record of an `Insert` or `IdxInsert` is about to be written.
#[cold]
pub(crate) fn insert(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    let (enc, depth) = (vm.enc, vm.callers.len());
    let left = vm.leaving.take();
    let Some(VCursor::Tree(t)) = &mut vm.f.cursors[i.p1 as usize] else {
        return Err(Code::Internal.into());
    };
    let Value::Blob(rec, _) = &vm.f.regs[i.p2 as usize] else {
        return Err(Code::Internal.into());
    };
    let t: &mut TreeCursor = t;
    let has_rowid = t.cur.kind() == TreeKind::Table;
    let id = if has_rowid { vm.f.regs[i.p3 as usize].to_int() } else { 0 };
    let mut whole = rec.to_vec();
    if let Some(tail) = vm.f.extra.tail.as_ref().filter(|_| has_rowid) {
        whole.extend_from_slice(tail);
    }
    let new = Some((id, record::decode(&whole, enc)?));
    let mut old = None;
    if i.p5 & p5::IS_UPDATE != 0 {
        old = left;
        if old.is_none() {
            let at = match t.key.clone() {
                None => t.cur.seek_rowid(id)?,
                Some(key) => {
                    let n = key.fields.len();
                    t.cur.seek_key(&mut |e: &[u8]| compare::records(e, &whole, n, &key))?
                }
            };
            t.moved(at == Some(Ordering::Equal));
            if at == Some(Ordering::Equal) {
                old = Some(stored(t, enc)?);
            }
        }
    }
    let change = if old.is_some() { RowChange::Update } else { RowChange::Insert };
    env.before_change(&RowBefore { change, db: t.db, root: t.cur.root(), depth, old, new });
    Ok(())
}

/// The row under a cursor is about to be deleted; as the first half of an UPDATE, it is kept for the second.
#[cold]
pub(crate) fn delete(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    let (enc, depth) = (vm.enc, vm.callers.len());
    let t = vm.tree(i.p1)?;
    let (db, root) = (t.db, t.cur.root());
    let old = Some(stored(t, enc)?);
    if i.p5 & p5::IS_UPDATE != 0 {
        vm.leaving = old;
        return Ok(());
    }
    env.before_change(&RowBefore { change: RowChange::Delete, db, root, depth, old, new: None });
    Ok(())
}

/// All rows of a tree are about to be deleted.
#[cold]
/// Who is told of each row before is told of it as gone, too, though all go at once.
pub(crate) fn clear(
    vm: &Vm,
    tree: (&Btree, usize, Pgno),
    kind: TreeKind,
    i: &Insn,
    env: &dyn Env,
) -> Result<()> {
    let (bt, db, root) = tree;
    let mut t = TreeCursor::new(bt.cursor(root, kind, false)?, db, None);
    let mut more = t.cur.first()?;
    while more {
        t.moved(true);
        let old = Some(stored(&mut t, vm.enc)?);
        let depth = vm.callers.len();
        env.before_change(&RowBefore { change: RowChange::Delete, db, root, depth, old, new: None });
        if let (P4::Name(table), TreeKind::Table, true) = (&i.p4, kind, env.watches_rows()) {
            env.row_changed(RowChange::Delete, db, table, t.cur.rowid());
        }
        more = t.cur.next()?;
    }
    Ok(())
}
