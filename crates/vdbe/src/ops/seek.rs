//! Finding entries.

use crate::cursor::{TreeCursor, VCursor};
use crate::machine::Vm;
use iolite_base::{Code, Result};
use iolite_btree::EntryOrder;
use iolite_bytecode::{Insn, Opcode, P4};
use iolite_value::compare::{self, Probe};
use iolite_value::{Affinity, Collation, KeyInfo, Value, num};
use std::cmp::Ordering::{self, Equal, Greater, Less};
use std::rc::Rc;

/// A key as the trees want it.
pub(crate) struct ByKey<'a>(Probe<'a>);

impl<'a> ByKey<'a> {
    pub fn new(fields: &'a [Value], info: &'a KeyInfo, tie: Ordering) -> ByKey<'a> {
        ByKey(Probe::new(fields, info, tie))
    }
}

impl EntryOrder for ByKey<'_> {
    #[inline(always)]
    fn order(&mut self, entry: &[u8]) -> Result<Ordering> {
        self.0.compare(entry)
    }

    #[inline(always)]
    fn first_int(&self) -> Option<i64> {
        self.0.first_int()
    }

    #[inline(always)]
    fn second_int(&self) -> Option<i64> {
        self.0.second_int()
    }

    #[inline(always)]
    fn first_text(&self, from: usize) -> Option<u64> {
        self.0.first_text(from)
    }

    #[inline]
    fn text_against(&self, prefix: &[u8]) -> Ordering {
        self.0.text_against(prefix)
    }
}

/// DeferredSeek: the table's cursor owes a seek to that of the index.
#[inline]
pub(crate) fn deferred(vm: &mut Vm, i: &Insn) -> Result<()> {
    let t = vm.tree(i.p3)?;
    t.deferred = Some(i.p1 as usize);
    if let P4::Numbers(fields) = &i.p4
        && t.key_fields.as_ref().is_none_or(|f| !Rc::ptr_eq(f, fields))
    {
        t.key_fields = Some(fields.clone());
    }
    t.null_row = false;
    t.cache.reset();
    Ok(())
}

/// SeekRowid, NotExists: whether the row is there.
#[inline]
pub(crate) fn rowid(vm: &mut Vm, i: &Insn) -> Result<bool> {
    let id = match &vm.f.regs[i.p3 as usize] {
        Value::Int(v) => *v,
        other => {
            let mut v = other.clone();
            Affinity::Numeric.apply(&mut v)?;
            match v {
                Value::Int(v) => v,
                _ => {
                    vm.tree(i.p1)?.moved(false);
                    return Ok(false);
                }
            }
        }
    };
    let t = vm.tree(i.p1)?;
    let at = t.cur.seek_rowid(id)?;
    let found = at == Some(Equal);
    t.moved(found);
    (t.probe, t.probed) = (at, id);
    Ok(found)
}

/// SeekGE and its kin.
pub(crate) fn range(vm: &mut Vm, i: &Insn) -> Result<bool> {
    let Some(VCursor::Tree(t)) = &mut vm.f.cursors[i.p1 as usize] else {
        return Err(Code::Internal.into());
    };
    let regs = &vm.f.regs;
    let t: &mut TreeCursor = t;
    t.whole = false;
    let Some(key) = t.key.as_deref() else {
        let found = table_range(t, &regs[i.p3 as usize], i.op)?;
        t.moved(found);
        return Ok(found);
    };
    let n = if let P4::Int(n) = i.p4 { n as usize } else { 1 };
    let fields = &regs[i.p3 as usize..i.p3 as usize + n];
    // Entries that begin with the key count as beyond it or before it, so that the seek ends at the right edge.
    let tie = if matches!(i.op, Opcode::SeekGE | Opcode::SeekLT) { Greater } else { Less };
    let at = t.cur.seek_key(&mut ByKey::new(fields, key, tie))?;
    let forward = matches!(i.op, Opcode::SeekGE | Opcode::SeekGT);
    let found = match (at, forward) {
        (None, _) => false,
        // Behind all entries the cursor stays, so that the next key is compared with the last one first.
        (Some(Less), true) => !t.cur.is_last() && t.cur.next()?,
        (Some(Greater), false) => t.cur.prev()?,
        _ => true,
    };
    t.moved(found);
    Ok(found)
}

/// A range's start among rowids; the key may be any value.
fn table_range(t: &mut TreeCursor, key: &Value, op: Opcode) -> Result<bool> {
    let mut v = key.clone();
    Affinity::Numeric.apply(&mut v)?;
    let forward = matches!(op, Opcode::SeekGE | Opcode::SeekGT);
    let (id, op) = match v {
        Value::Int(id) => (id, op),
        Value::Real(r) => {
            // The nearest integer on the side that keeps the meaning.
            if r >= 9_223_372_036_854_775_808.0 {
                return if forward { Ok(false) } else { t.cur.last() };
            }
            if r < -9_223_372_036_854_775_808.0 {
                return if forward { t.cur.first() } else { Ok(false) };
            }
            let whole = num::real_to_int(r);
            let op = match compare::int_real(whole, r) {
                Equal => op,
                // whole < r: what is > r or >= r is > whole; what is < r or <= r is <= whole.
                Less => {
                    if forward {
                        Opcode::SeekGT
                    } else {
                        Opcode::SeekLE
                    }
                }
                Greater => {
                    if forward {
                        Opcode::SeekGE
                    } else {
                        Opcode::SeekLT
                    }
                }
            };
            (whole, op)
        }
        Value::Null => return Ok(false),
        // Text and blobs are larger than all numbers.
        _ => return if forward { Ok(false) } else { t.cur.last() },
    };
    let at = t.cur.seek_rowid(id)?;
    Ok(match (at, op) {
        (None, _) => false,
        (Some(Less), Opcode::SeekGE | Opcode::SeekGT) | (Some(Equal), Opcode::SeekGT) => t.cur.next()?,
        (Some(Greater), Opcode::SeekLE | Opcode::SeekLT) | (Some(Equal), Opcode::SeekLT) => t.cur.prev()?,
        _ => true,
    })
}

/// Found, NotFound, NoConflict: whether the index has an entry that begins with the key.
#[inline]
pub(crate) fn found(vm: &mut Vm, i: &Insn) -> Result<bool> {
    let Some(VCursor::Tree(t)) = &mut vm.f.cursors[i.p1 as usize] else {
        return Err(Code::Internal.into());
    };
    let n = if let P4::Int(n) = i.p4 { n as usize } else { 1 };
    let fields = &vm.f.regs[i.p3 as usize..i.p3 as usize + n];
    let t: &mut TreeCursor = t;
    let key = t.key.as_deref().ok_or(Code::Internal)?;
    let at = t.cur.seek_key(&mut ByKey::new(fields, key, Equal))?;
    let hit = at == Some(Equal);
    t.moved(hit);
    t.probe = at;
    Ok(hit)
}

/// Counts the entries from the cursor's on that lie on its leaf within the bound.
pub(crate) fn count_run(vm: &mut Vm, i: &Insn) -> Result<()> {
    let passed = pass(vm, i, u32::MAX, false)?;
    let mut n = passed;
    if passed > 0 && is_beyond(vm, i)? {
        // Where the cursor was is within, where it is now lies beyond.
        let (mut within, mut at, mut beyond) = (0, passed, passed);
        while beyond - within > 1 {
            let mid = within + (beyond - within) / 2;
            pass(vm, i, at.abs_diff(mid), mid < at)?;
            at = mid;
            match is_beyond(vm, i)? {
                true => beyond = mid,
                false => within = mid,
            }
        }
        pass(vm, i, at - within, true)?;
        n = within;
    }
    if let Value::Int(all) = &mut vm.f.regs[i.p2 as usize] {
        *all += i64::from(n) + 1;
    }
    Ok(())
}

/// Goes over entries of the leaf, and says how many.
fn pass(vm: &mut Vm, i: &Insn, most: u32, back: bool) -> Result<u32> {
    let t = vm.tree(i.p1)?;
    let n = t.cur.pass(most, back)?;
    if n > 0 {
        t.moved(true);
    }
    Ok(n)
}

/// Whether the cursor's entry lies beyond the bound of a run that is counted.
fn is_beyond(vm: &mut Vm, i: &Insn) -> Result<bool> {
    let P4::Int(n @ 1..) = i.p4 else { return Ok(false) };
    let fields = &vm.f.regs[i.p3 as usize..i.p3 as usize + n as usize];
    let Some(VCursor::Tree(t)) = &mut vm.f.cursors[i.p1 as usize] else {
        return Err(Code::Internal.into());
    };
    let o = match &t.key {
        Some(key) => {
            let key = key.clone();
            t.with_record(|entry| Probe::new(fields, &key, Equal).compare(entry))?
        }
        None => {
            let rowid = Value::Int(t.cur.rowid());
            let numeric = Affinity::Numeric;
            // What is compared with NULL ends the loop before it begins.
            compare::under(&rowid, &fields[0], numeric, false, &Collation::Binary)?.ok_or(Code::Internal)?
        }
    };
    Ok(o.is_gt() || i.p5 == 1 && o.is_eq())
}

/// IdxGE and its kin.
#[inline]
pub(crate) fn index_compare(vm: &mut Vm, i: &Insn) -> Result<bool> {
    let Some(VCursor::Tree(t)) = &mut vm.f.cursors[i.p1 as usize] else {
        return Err(Code::Internal.into());
    };
    t.settle()?;
    let n = if let P4::Int(n) = i.p4 { n as usize } else { 1 };
    let fields = &vm.f.regs[i.p3 as usize..i.p3 as usize + n];
    let key = t.key.clone().ok_or(Code::Internal)?;
    let o: Ordering = t.with_record(|entry| Probe::new(fields, &key, Equal).compare(entry))?;
    Ok(match i.op {
        Opcode::IdxGE => o.is_ge(),
        Opcode::IdxGT => o.is_gt(),
        Opcode::IdxLE => o.is_le(),
        _ => o.is_lt(),
    })
}
