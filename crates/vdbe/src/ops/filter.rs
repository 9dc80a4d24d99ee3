//! Bloom filters and lookahead filters.

use crate::bloom::Bloom;
use crate::cursor::VCursor;
use crate::hash::hash_value;
use crate::lookahead::{Key, Lookahead};
use crate::machine::Vm;
use iolite_base::Result;
use iolite_bytecode::{Insn, P4};
use iolite_value::{Affinity, Collation, Value};
use std::hash::Hasher;

/// A filter has room for this many keys, however few are foretold.
const FEWEST_KEYS: i32 = 1024;

fn hash(vm: &Vm, i: &Insn) -> u64 {
    let n = if let P4::Int(n) = i.p4 { n as usize } else { 1 };
    let mut h = iolite_base::hash::FastHasher::default();
    for v in &vm.f.regs[i.p3 as usize..i.p3 as usize + n] {
        hash_value(v, &Collation::Binary, &mut h);
    }
    h.finish()
}

pub(crate) fn begin(vm: &mut Vm, i: &Insn) -> Result<()> {
    vm.f.extra.blooms.insert(i.p1, Bloom::new(i.p2.max(FEWEST_KEYS) as usize)?);
    vm.put(i.p1, Value::Int(1));
    Ok(())
}

pub(crate) fn add(vm: &mut Vm, i: &Insn) {
    let h = hash(vm, i);
    if let Some(b) = vm.f.extra.blooms.get_mut(&i.p1) {
        b.add(h);
    }
}

/// Whether a key may have been added; while nobody has begun to fill the filter, any may.
pub(crate) fn may_have(vm: &Vm, i: &Insn) -> bool {
    vm.f.extra.blooms.get(&i.p1).is_none_or(|b| b.may_have(hash(vm, i)))
}

pub(crate) fn open(vm: &mut Vm, i: &Insn) {
    vm.f.cursors[i.p1 as usize] = Some(VCursor::Lookahead(Lookahead::new(i.p2 as usize)));
}

pub(crate) fn add_rowid(vm: &mut Vm, i: &Insn) -> Result<()> {
    let most = if let P4::Int(n) = i.p4 { n.max(0) as usize } else { 0 };
    if let Ok([Some(VCursor::Lookahead(f)), Some(VCursor::Tree(t))]) =
        vm.f.cursors.get_disjoint_mut([i.p1 as usize, i.p3 as usize])
    {
        f.add(i.p2 as usize, t.cur.rowid(), most)?;
    }
    Ok(())
}

/// Whether the row of cursor p3 may have a partner in every set of filter p1.
#[inline(always)]
pub(crate) fn row_may_match(vm: &mut Vm, i: &Insn) -> Result<bool> {
    let enc = vm.enc;
    let (P4::Numbers(columns), Ok([Some(VCursor::Lookahead(f)), Some(VCursor::Tree(t))])) =
        (&i.p4, vm.f.cursors.get_disjoint_mut([i.p1 as usize, i.p3 as usize]))
    else {
        return Ok(true);
    };
    if t.null_row || t.deferred.is_some() || t.cur.is_stale() {
        return Ok(true);
    }
    let mut value = Value::Null;
    f.may_match(|set| {
        let column = columns[set];
        if column < 0 {
            return Ok(Key::Is(t.cur.rowid()));
        }
        if !t.field(column as usize, enc, 0, &mut value)? {
            return Ok(Key::Unknown);
        }
        match &value {
            Value::Int(k) => Ok(Key::Is(*k)),
            v => as_rowid(v),
        }
    })
}

/// The rowid that equals a value, as a search by rowid takes it.
#[cold]
fn as_rowid(v: &Value) -> Result<Key> {
    let mut v = v.clone();
    Affinity::Integer.apply(&mut v)?;
    Ok(if let Value::Int(k) = v { Key::Is(k) } else { Key::None })
}
