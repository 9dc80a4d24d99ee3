//! The queue of a recursive query: rows go in at one end as records and come out at the other; or the least one comes out, by an order
//! that their first fields say, the number in which they came among these.
//!
//! A queue is in memory as long as it fits in `PRAGMA sort_memory`. Rows that come when it does not fit go to a transient
//! tree, which can leave memory. Without an order, so do all behind them until the tree is empty: the order stays. With one, the least row in
//! memory is a heap's top, and the tree's first is asked beside it.

use crate::cursor::{TreeCursor, VCursor};
use crate::env::Env;
use crate::machine::Vm;
use crate::ops::open;
use crate::sorter::prefix;
use iolite_base::{Code, Result};
use iolite_btree::InsertAt;
use iolite_bytecode::{Insn, P4};
use iolite_value::{KeyInfo, Value, compare};
use std::collections::VecDeque;
use std::rc::Rc;

/// A queue of rows.
#[derive(Default)]
pub(crate) struct Queue {
    /// The rows that come out first.
    front: VecDeque<Value>,
    bytes: usize,
    /// Those behind them, by numbers that grow.
    rest: Option<TreeCursor>,
    last: i64,
    /// The order.
    by: Option<Rc<KeyInfo>>,
    /// With an order, the rows in memory: none is less than the one at half its place.
    heap: Vec<Waiting>,
}

/// A row in memory that waits for those before it.
struct Waiting {
    /// What decides where it differs.
    prefix: u64,
    record: Value,
}

impl Waiting {
    fn bytes(&self) -> &[u8] {
        if let Value::Blob(b, _) = &self.record { b } else { &[] }
    }

    fn is_before(&self, other: &Waiting, key: &KeyInfo) -> Result<bool> {
        Ok(match self.prefix.cmp(&other.prefix) {
            o if o.is_ne() => o.is_lt(),
            _ => compare::records(self.bytes(), other.bytes(), key.fields.len(), key)?.is_lt(),
        })
    }
}

impl Queue {
    /// Puts a row of `n` bytes where it belongs.
    fn add_by(&mut self, key: &Rc<KeyInfo>, record: Value, n: usize, env: &dyn Env) -> Result<()> {
        let row = Waiting { prefix: 0, record };
        if self.bytes + n > env.sort_memory() {
            let t = match &mut self.rest {
                Some(t) => t,
                None => self.rest.insert(open::transient(env, Some(key.clone()))?),
            };
            let (new, fields) = (row.bytes(), key.fields.len());
            let mut order = |e: &[u8]| compare::records(e, new, fields, key);
            return t.cur.insert_entry(new, InsertAt::Unknown, &mut order);
        }
        self.heap.try_reserve(1).map_err(|_| Code::Nomem)?;
        self.heap.push(Waiting { prefix: prefix(key, row.bytes())?, ..row });
        self.bytes += n;
        let mut at = self.heap.len() - 1;
        while at > 0 {
            let above = (at - 1) / 2;
            if !self.heap[at].is_before(&self.heap[above], key)? {
                break;
            }
            self.heap.swap(at, above);
            at = above;
        }
        Ok(())
    }

    /// Takes the least row out.
    fn take_by(&mut self, key: &KeyInfo) -> Result<Option<Value>> {
        if let Some(t) = &mut self.rest {
            if t.cur.first()? {
                t.moved(true);
                let mut first = Waiting { prefix: 0, record: t.with_record(Value::blob)? };
                first.prefix = prefix(key, first.bytes())?;
                let kept = match self.heap.first() {
                    Some(top) => top.is_before(&first, key)?,
                    None => false,
                };
                if !kept {
                    t.cur.delete(false)?;
                    return Ok(Some(first.record));
                }
            } else {
                self.rest = None;
            }
        }
        if self.heap.is_empty() {
            return Ok(None);
        }
        let least = self.heap.swap_remove(0).record;
        self.bytes -= size(&least);
        let mut at = 0;
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            if left >= self.heap.len() {
                return Ok(Some(least));
            }
            let right_first = right < self.heap.len() && self.heap[right].is_before(&self.heap[left], key)?;
            let next = if right_first { right } else { left };
            if !self.heap[next].is_before(&self.heap[at], key)? {
                return Ok(Some(least));
            }
            self.heap.swap(at, next);
            at = next;
        }
    }
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
    let by = if let P4::KeyInfo(key) = &i.p4 { Some(key.clone()) } else { None };
    vm.f.cursors[i.p1 as usize] = Some(VCursor::Queue(Box::new(Queue { by, ..Queue::default() })));
}

/// Numbers the next row.
pub(crate) fn number(vm: &mut Vm, i: &Insn) -> Result<i64> {
    let q = queue(&mut vm.f.cursors, i.p1)?;
    q.last += 1;
    Ok(q.last)
}

/// Puts the record of a register at the end, or where it belongs.
pub(crate) fn add(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    let record = std::mem::take(&mut vm.f.regs[i.p2 as usize]);
    let q = queue(&mut vm.f.cursors, i.p1)?;
    let n = size(&record);
    if let Some(key) = q.by.clone() {
        return q.add_by(&key, record, n, env);
    }
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
    if let Some(key) = q.by.clone() {
        let Some(record) = q.take_by(&key)? else { return Ok(false) };
        vm.put(i.p3, record);
        return Ok(true);
    }
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
