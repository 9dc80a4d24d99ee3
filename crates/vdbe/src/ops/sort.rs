//! Sorters.

use crate::cursor::VCursor;
use crate::env::Env;
use crate::machine::Vm;
use crate::sorter::Sorter;
use iolite_base::{Buf, Code, Result};
use iolite_btree::Ordered;
use iolite_bytecode::{Insn, P4, p5};
use iolite_value::Value;
use std::cell::Cell;

fn sorter(vm: &mut Vm, n: i32) -> Result<&mut Sorter> {
    match &mut vm.f.cursors[n as usize] {
        Some(VCursor::Sorter(s)) => Ok(s),
        _ => Err(Code::Internal.into()),
    }
}

pub(crate) fn open(vm: &mut Vm, i: &Insn, env: &dyn Env) {
    let limit = match (i.p3, &vm.f.regs[i.p3 as usize]) {
        (0, _) => None,
        (_, Value::Int(n)) if *n > 0 => usize::try_from(*n).ok().filter(|n| *n < 1 << 20),
        _ => None,
    };
    if let P4::KeyInfo(k) = &i.p4 {
        vm.f.cursors[i.p1 as usize] = Some(VCursor::Sorter(Sorter::new(k.clone(), limit, env.sort_memory())));
    }
}

pub(crate) fn reset(vm: &mut Vm, i: &Insn) -> Result<()> {
    sorter(vm, i.p1)?.reset();
    Ok(())
}

#[inline(never)]
pub(crate) fn insert(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    let Some(VCursor::Sorter(s)) = &mut vm.f.cursors[i.p1 as usize] else {
        return Err(Code::Internal.into());
    };
    if s.is_full() {
        if !s.has_file() {
            s.set_file(env.temporary_file()?);
        }
        s.spill()?;
    }
    vm.counters.auto_index_rows += u64::from(i.p5 & p5::AUTO_INDEX != 0);
    match &vm.f.regs[i.p2 as usize] {
        Value::Blob(b, _) => s.insert(b),
        _ => Err(Code::Internal.into()),
    }
}

/// Whether a record with the key in some registers would be kept.
#[inline(never)]
pub(crate) fn wants(vm: &mut Vm, i: &Insn) -> Result<bool> {
    let P4::Int(n) = i.p4 else { return Err(Code::Internal.into()) };
    let Some(VCursor::Sorter(s)) = &mut vm.f.cursors[i.p1 as usize] else {
        return Err(Code::Internal.into());
    };
    s.wants(&vm.f.regs[i.p3 as usize..][..n as usize])
}

pub(crate) fn sort(vm: &mut Vm, i: &Insn) -> Result<bool> {
    sorter(vm, i.p1)?.sort()
}

/// What a sorter holds, up to the first key that comes twice.
struct Feed<'s> {
    sorter: &'s mut Sorter,
    /// The fields of the key that may not be equal; 0: all may.
    unique: usize,
    repeated: bool,
    taken: &'s Cell<usize>,
}

impl Ordered for Feed<'_> {
    #[inline]
    fn entry(&self) -> Result<&[u8]> {
        self.sorter.record()
    }

    #[inline]
    fn advance(&mut self) -> Result<bool> {
        self.taken.set(self.taken.get() + 1);
        if !self.sorter.next()? {
            return Ok(false);
        }
        self.repeated = self.unique > 0 && self.sorter.repeats(self.unique)?;
        Ok(!self.repeated)
    }
}

/// Fills an index from a sorter. `false`: a key came twice.
pub(crate) fn fill(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<bool> {
    let unique = if let P4::Int(n) = i.p4 { n as usize } else { 0 };
    let Some(VCursor::Sorter(mut sorter)) = vm.f.cursors[i.p1 as usize].take() else {
        return Err(Code::Internal.into());
    };
    if unique > 0 {
        // The first one is what the second is compared with.
        sorter.repeats(unique)?;
    }
    let taken = Cell::new(0);
    let mut feed = Feed { sorter: &mut sorter, unique, repeated: false, taken: &taken };
    let t = vm.tree(i.p3)?;
    let mut seen = 0;
    let between = || env.check_after(taken.get() - std::mem::replace(&mut seen, taken.get()));
    let filled = t.cur.append_all(&mut feed, between);
    t.moved(false);
    let repeated = feed.repeated;
    vm.counters.vm_steps += taken.get() as u64;
    vm.f.cursors[i.p1 as usize] = Some(VCursor::Sorter(sorter));
    filled.map(|()| !repeated)
}

pub(crate) fn data(vm: &mut Vm, i: &Insn) -> Result<()> {
    // The register's former record gives its memory.
    let mut buf = match std::mem::take(&mut vm.f.regs[i.p2 as usize]) {
        Value::Blob(b, _) => b.into_buf(),
        _ => Buf::with_capacity(64)?,
    };
    let record = sorter(vm, i.p1)?.record()?;
    buf.reuse_filled(record.len())?.copy_from_slice(record);
    vm.put(i.p2, Value::Blob(buf.into_bytes(), 0));
    if let Some(VCursor::Pseudo(p)) = &mut vm.f.cursors[i.p3 as usize] {
        p.cache.reset();
        p.null_row = false;
    }
    Ok(())
}
