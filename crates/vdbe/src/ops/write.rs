//! Changing trees.

use crate::cursor::{TreeCursor, VCursor};
use crate::env::Env;
use crate::machine::Vm;
use crate::ops::seek::ByKey;
use iolite_base::{Buf, Bytes, Code, Pgno, Result};
use iolite_btree::InsertAt;
use iolite_bytecode::{Insn, P4, p5};
use iolite_ext::RowChange;
use iolite_value::Value;
use iolite_value::compare;
use std::cmp::Ordering;

pub(crate) fn new_rowid(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    let floor = if i.p3 > 0 { Some(*vm.sequence(i.p3)) } else { None };
    let t = vm.tree(i.p1)?;
    let last = if t.cur.last()? { Some(t.cur.rowid()) } else { None };
    t.moved(false);
    let mut id = match last {
        None => 1,
        Some(i64::MAX) => {
            if floor.is_some() {
                return Err(Code::Full.into());
            }
            random_rowid(t, env)?
        }
        Some(n) => n + 1,
    };
    if let Some(f) = floor {
        if f == i64::MAX {
            return Err(Code::Full.into());
        }
        id = id.max(f + 1);
        *vm.sequence(i.p3) = id;
    }
    if vm.callers.is_empty() {
        vm.made_rowid = id;
    }
    vm.put(i.p2, Value::Int(id));
    Ok(())
}

/// The largest rowid is taken: try others at random.
#[cold]
fn random_rowid(t: &mut TreeCursor, env: &dyn Env) -> Result<i64> {
    for _ in 0..100 {
        let mut b = [0u8; 8];
        env.random(&mut b);
        let id = (i64::from_le_bytes(b) & (i64::MAX >> 1)) + 1;
        let found = t.cur.seek_rowid(id)?;
        t.moved(false);
        if found != Some(Ordering::Equal) {
            return Ok(id);
        }
    }
    Err(Code::Full.into())
}

/// A tree that sub-programs may not write to.
pub(crate) struct Lock {
    db: usize,
    root: Pgno,
    /// How many programs were waiting for the one that locked it.
    depth: usize,
}

pub(crate) fn lock(vm: &mut Vm, i: &Insn) -> Result<()> {
    let depth = vm.callers.len();
    let t = vm.tree(i.p1)?;
    let lock = Lock { db: t.db, root: t.cur.root(), depth };
    vm.locked.push(lock);
    Ok(())
}

/// Refuses to write through a cursor whose tree a calling program has locked.
#[inline]
fn check_locks(vm: &mut Vm, cursor: i32) -> Result<()> {
    if vm.locked.is_empty() {
        return Ok(());
    }
    let depth = vm.callers.len();
    let t = vm.tree(cursor)?;
    let (db, root, stored) = (t.db, t.cur.root(), t.transient.is_none());
    let locked = |l: &Lock| stored && (l.db, l.root) == (db, root) && l.depth < depth;
    if vm.locked.iter().any(locked) { Err(Code::ConstraintPinned.into()) } else { Ok(()) }
}

/// Registers let go of the page that a cursor is about to change, if they alone keep it from being changed in place: what they read
/// there is copied. (A condition or a value of an UPDATE that was a text had the page copied for each row.)
#[inline]
fn let_go(t: &TreeCursor, regs: &mut [Value]) -> Result<()> {
    match t.cur.top_page() {
        // The page table holds it, and the cursor.
        Some(page) if page.refs() > 2 => copy_out(page, regs),
        _ => Ok(()),
    }
}

#[inline(never)]
fn copy_out(page: &Buf, regs: &mut [Value]) -> Result<()> {
    /// Of this size values are not copied: a page is not much larger.
    const LARGE: usize = 1024;
    /// Where so many are is remembered.
    const FEW: usize = 4;
    // Beside the page table and the cursor.
    let holders = page.refs() - 2;
    let (mut places, mut n) = ([0; FEW], 0);
    for (k, r) in regs.iter().enumerate() {
        match r {
            Value::Text(b, _) | Value::Blob(b, _) if b.buf().same(page) => {
                if b.len() > LARGE {
                    return Ok(());
                }
                if let Some(place) = places.get_mut(n) {
                    *place = k;
                }
                n += 1;
                if n == holders {
                    break;
                }
            }
            _ => {}
        }
    }
    // Where somebody else holds it, it is copied whatever they do.
    if n < holders {
        return Ok(());
    }
    let own = |r: &mut Value| -> Result<()> {
        match r {
            Value::Text(b, _) | Value::Blob(b, _) if b.buf().same(page) => *b = Bytes::copy_of(b)?,
            _ => {}
        }
        Ok(())
    };
    match places.get(..n) {
        Some(places) => places.iter().try_for_each(|k| own(&mut regs[*k])),
        None => regs.iter_mut().try_for_each(own),
    }
}

pub(crate) fn insert(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    check_locks(vm, i.p1)?;
    if vm.announces && matches!(i.p4, P4::Name(_)) {
        super::before::insert(vm, i, env)?;
    }
    let id = vm.f.regs[i.p3 as usize].to_int();
    let Some(VCursor::Tree(t)) = &mut vm.f.cursors[i.p1 as usize] else {
        return Err(Code::Internal.into());
    };
    let_go(t, &mut vm.f.regs)?;
    let Value::Blob(rec, _) = &vm.f.regs[i.p2 as usize] else {
        return Err(Code::Internal.into());
    };
    let at = match t.probe.take() {
        _ if i.p5 & p5::APPEND != 0 => InsertAt::Append,
        // The test of the row number stands where the row belongs, unless the tree has changed since.
        Some(o) if t.probed == id && o.is_ne() && !t.cur.is_stale() => InsertAt::Here(o),
        _ => InsertAt::Unknown,
    };
    match vm.f.extra.tail.take() {
        None => t.cur.insert_row(id, rec, 0, at)?,
        Some(tail) => t.cur.insert_large(id, rec, &tail, at)?,
    }
    t.cache.reset();
    t.null_row = false;
    t.deferred = None;
    let db = t.db;
    vm.begun |= db != usize::MAX;
    if i.p5 & p5::COUNT_CHANGE != 0 {
        vm.changes += 1;
        vm.total_changes += 1;
    }
    if i.p5 & p5::LAST_ROWID != 0 {
        env.set_last_insert_rowid(id);
    }
    if let P4::Name(table) = &i.p4
        && env.watches_rows()
    {
        let change = if i.p5 & p5::IS_UPDATE != 0 { RowChange::Update } else { RowChange::Insert };
        env.row_changed(change, db, table, id);
    }
    Ok(())
}

pub(crate) fn delete(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    check_locks(vm, i.p1)?;
    vm.pay(i.p1)?;
    let t = vm.tree(i.p1)?;
    t.settle()?;
    if t.null_row {
        return Ok(());
    }
    if vm.announces && matches!(i.p4, P4::Name(_)) {
        super::before::delete(vm, i, env)?;
    }
    let written_over = i.p5 & p5::WRITTEN_OVER != 0 && !vm.announces;
    let Some(VCursor::Tree(t)) = &mut vm.f.cursors[i.p1 as usize] else {
        return Err(Code::Internal.into());
    };
    let_go(t, &mut vm.f.regs)?;
    let id = if t.key.is_none() { Some(t.cur.rowid()) } else { None };
    if !written_over {
        t.cur.delete(i.p5 & p5::SAVE_POSITION != 0)?;
        t.cache.reset();
    }
    let db = t.db;
    vm.begun |= db != usize::MAX;
    if i.p5 & p5::COUNT_CHANGE != 0 {
        vm.changes += 1;
        vm.total_changes += 1;
    }
    if let (P4::Name(table), Some(id)) = (&i.p4, id)
        && i.p5 & p5::IS_UPDATE == 0
        && env.watches_rows()
    {
        match i.p5 & p5::COUNT_CHANGE {
            0 => env.row_replaced(db, table, id),
            _ => env.row_changed(RowChange::Delete, db, table, id),
        }
    }
    Ok(())
}

pub(crate) fn index_insert(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    check_locks(vm, i.p1)?;
    if vm.announces && i.p5 & p5::IS_ROW != 0 {
        super::before::insert(vm, i, env)?;
    }
    let Some(VCursor::Tree(t)) = &mut vm.f.cursors[i.p1 as usize] else {
        return Err(Code::Internal.into());
    };
    let Value::Blob(rec, _) = &vm.f.regs[i.p2 as usize] else {
        return Err(Code::Internal.into());
    };
    let t: &mut TreeCursor = t;
    let key = t.key.as_deref().ok_or(Code::Internal)?;
    let at = match t.probe.take() {
        _ if i.p5 & p5::APPEND != 0 => InsertAt::Append,
        _ if i.p5 & p5::AT_ENTRY != 0 && !t.cur.is_stale() => InsertAt::Here(Ordering::Equal),
        // The uniqueness check stands where the entry belongs, unless the tree has changed since.
        Some(o) if i.p5 & p5::USE_SEEK != 0 && o.is_ne() && !t.cur.is_stale() => InsertAt::Here(o),
        _ => InsertAt::Unknown,
    };
    match i.p4 {
        P4::Int(n) => {
            let fields = &vm.f.regs[i.p3 as usize..i.p3 as usize + n as usize];
            let mut key = ByKey::new(fields, key, Ordering::Equal);
            let at = match i.p5 & p5::KEEP {
                0 => at,
                _ => match t.cur.seek_key(&mut key)? {
                    Some(Ordering::Equal) => {
                        t.moved(false);
                        return Ok(());
                    }
                    Some(o) => InsertAt::Here(o),
                    None => InsertAt::Unknown,
                },
            };
            t.cur.insert_entry(rec, at, &mut key)?;
        }
        _ => {
            let n = key.fields.len();
            t.cur.insert_entry(rec, at, &mut |e: &[u8]| compare::records(e, rec, n, key))?;
        }
    }
    t.cache.reset();
    vm.begun |= t.db != usize::MAX;
    if i.p5 & p5::IS_ROW != 0 && i.p5 & p5::COUNT_CHANGE != 0 {
        vm.changes += 1;
        vm.total_changes += 1;
    }
    Ok(())
}

pub(crate) fn index_delete(vm: &mut Vm, i: &Insn) -> Result<()> {
    check_locks(vm, i.p1)?;
    let Some(VCursor::Tree(t)) = &mut vm.f.cursors[i.p1 as usize] else {
        return Err(Code::Internal.into());
    };
    let fields = &vm.f.regs[i.p2 as usize..i.p2 as usize + i.p3 as usize];
    let t: &mut TreeCursor = t;
    let key = t.key.as_deref().ok_or(Code::Internal)?;
    let at = t.cur.seek_key(&mut ByKey::new(fields, key, Ordering::Equal))?;
    if at == Some(Ordering::Equal) {
        let_go(t, &mut vm.f.regs)?;
        t.cur.delete(false)?;
        vm.begun |= t.db != usize::MAX;
    } else if i.p5 & p5::MUST_EXIST != 0 {
        return Err(Code::CorruptIndex.into());
    }
    t.moved(false);
    Ok(())
}
