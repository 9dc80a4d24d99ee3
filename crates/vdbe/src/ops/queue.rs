//! The queue of a recursive query: rows go in at one end as records and come out at the other.
//!
//! A queue is in memory as long as it fits in `PRAGMA sort_memory`. Rows that come when it does not fit go to a transient
//! tree, which can leave memory, and so do all behind them until the tree is empty: the order stays.

use crate::cursor::{TreeCursor, VCursor};
use crate::env::Env;
use crate::machine::Vm;
use crate::ops::open;
use iolite_base::{Code, Result};
use iolite_btree::InsertAt;
use iolite_bytecode::Insn;
use iolite_value::Value;
use std::collections::VecDeque;

/// A queue of rows.
#[derive(Default)]
pub(crate) struct Queue {
    /// The rows that come out first.
    front: VecDeque<Value>,
    bytes: usize,
    /// Those behind them, by numbers that grow.
    rest: Option<TreeCursor>,
    last: i64,
}

/// What a row in memory takes beside its bytes.
const ROW: usize = 64;

fn size(record: &Value) -> usize {
    ROW + if let Value::Blob(b, _) = record { b.len() } else { 0 }
}

fn queue(cursors: &mut [Option<VCursor>], n: i32) -> Result<&mut Queue> {
    match &mut cursors[n as usize] {
        Some(VCursor::Queue(q)) => Ok(q),
        _ => Err(Code::Internal.into()),
    }
}

pub(crate) fn open(vm: &mut Vm, i: &Insn) {
    vm.f.cursors[i.p1 as usize] = Some(VCursor::Queue(Box::default()));
}

/// Puts the record of a register at the end.
pub(crate) fn add(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    let record = std::mem::take(&mut vm.f.regs[i.p2 as usize]);
    let q = queue(&mut vm.f.cursors, i.p1)?;
    let n = size(&record);
    if q.rest.is_none() && q.bytes + n <= env.sort_memory() {
        q.front.try_reserve(1).map_err(|_| Code::Nomem)?;
        q.front.push_back(record);
        q.bytes += n;
        return Ok(());
    }
    let Value::Blob(record, _) = record else { return Err(Code::Internal.into()) };
    let t = match &mut q.rest {
        Some(t) => t,
        None => q.rest.insert(open::transient(env, None)?),
    };
    q.last += 1;
    t.cur.insert_row(q.last, &record, 0, InsertAt::Append)
}

/// Takes the first row into a register; `false`: there is none.
pub(crate) fn take(vm: &mut Vm, i: &Insn) -> Result<bool> {
    if let Value::Blob(b, _) = std::mem::take(&mut vm.f.regs[i.p3 as usize]) {
        vm.kept.give_record(b.into_buf());
    }
    let q = queue(&mut vm.f.cursors, i.p1)?;
    let record = match q.front.pop_front() {
        Some(record) => {
            q.bytes -= size(&record);
            record
        }
        None => {
            let Some(t) = &mut q.rest else { return Ok(false) };
            if !t.cur.first()? {
                q.rest = None;
                return Ok(false);
            }
            t.moved(true);
            let record = t.with_record(Value::blob)?;
            t.cur.delete(false)?;
            record
        }
    };
    vm.put(i.p3, record);
    Ok(true)
}
