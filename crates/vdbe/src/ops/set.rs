//! Sets of rows, for DISTINCT, UNION in recursive queries, and IN.
//!
//! A set is a hash table as long as it fits in `PRAGMA sort_memory`. Rows beyond that go to a transient tree, which can leave
//! memory; the table stays, so that a row is in one of the two.

use crate::cursor::{TreeCursor, VCursor};
use crate::env::Env;
use crate::hash::HashTable;
use crate::machine::Vm;
use crate::ops::open;
use crate::ops::seek::ByKey;
use iolite_base::{Buf, Code, Result};
use iolite_btree::InsertAt;
use iolite_bytecode::{Insn, P4};
use iolite_value::record;
use std::cmp::Ordering;

/// A set of rows.
pub(crate) struct Set {
    table: HashTable,
    rest: Option<TreeCursor>,
}

fn set(cursors: &mut [Option<VCursor>], n: i32) -> Result<&mut Set> {
    match &mut cursors[n as usize] {
        Some(VCursor::Set(s)) => Ok(s),
        _ => Err(Code::Internal.into()),
    }
}

pub(crate) fn open(vm: &mut Vm, i: &Insn) -> Result<()> {
    let key = match &i.p4 {
        P4::KeyInfo(k) => k.clone(),
        _ => set(&mut vm.f.cursors, i.p1)?.table.info().clone(),
    };
    let width = key.columns;
    let s = Set { table: HashTable::new(key, width, 0), rest: None };
    vm.f.cursors[i.p1 as usize] = Some(VCursor::Set(Box::new(s)));
    Ok(())
}

/// Adds a row; answers whether it was there.
#[inline]
pub(crate) fn add(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<bool> {
    let s = set(&mut vm.f.cursors, i.p1)?;
    let first = i.p3 as usize;
    let row = &vm.f.regs[first..first + s.table.width()];
    if s.rest.is_none() && s.table.bytes() <= env.sort_memory() {
        return s.table.find(row);
    }
    if s.table.has(row) {
        return Ok(true);
    }
    let info = s.table.info().clone();
    let t = match &mut s.rest {
        Some(t) => t,
        None => s.rest.insert(open::transient(env, Some(info.clone()))?),
    };
    let mut key = ByKey::new(row, &info, Ordering::Equal);
    let at = match t.cur.seek_key(&mut key)? {
        Some(Ordering::Equal) => return Ok(true),
        Some(o) => InsertAt::Here(o),
        None => InsertAt::Unknown,
    };
    let mut entry = Buf::with_capacity(64)?;
    record::encode_buf(row, vm.enc, |_| false, vm.max_length, &mut entry)?;
    t.cur.insert_entry(&entry, at, &mut key)?;
    Ok(false)
}

/// Whether a row is there.
#[inline]
pub(crate) fn has(vm: &mut Vm, i: &Insn) -> Result<bool> {
    let s = set(&mut vm.f.cursors, i.p1)?;
    let first = i.p3 as usize;
    let row = &vm.f.regs[first..first + s.table.width()];
    if s.table.has(row) {
        return Ok(true);
    }
    match &mut s.rest {
        None => Ok(false),
        Some(t) => {
            let mut key = ByKey::new(row, s.table.info(), Ordering::Equal);
            Ok(t.cur.seek_key(&mut key)? == Some(Ordering::Equal))
        }
    }
}

/// Whether no row is there.
pub(crate) fn is_empty(vm: &mut Vm, i: &Insn) -> Result<bool> {
    Ok(set(&mut vm.f.cursors, i.p1)?.table.bytes() == 0)
}
