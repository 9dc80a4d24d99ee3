//! Bloom filters.

use crate::bloom::Bloom;
use crate::hash::hash_value;
use crate::machine::Vm;
use iolite_base::Result;
use iolite_bytecode::{Insn, P4};
use iolite_value::{Collation, Value};
use std::hash::Hasher;

fn hash(vm: &Vm, i: &Insn) -> u64 {
    let n = if let P4::Int(n) = i.p4 { n as usize } else { 1 };
    let mut h = iolite_base::hash::FastHasher::default();
    for v in &vm.f.regs[i.p3 as usize..i.p3 as usize + n] {
        hash_value(v, &Collation::Binary, &mut h);
    }
    h.finish()
}

pub(crate) fn add(vm: &mut Vm, i: &Insn) -> Result<()> {
    let h = hash(vm, i);
    match vm.f.blooms.get_mut(&i.p1) {
        Some(b) => b.add(h),
        None => {
            let mut b = Bloom::new(i.p2.max(1024) as usize)?;
            b.add(h);
            vm.f.blooms.insert(i.p1, b);
            vm.put(i.p1, Value::Int(1));
        }
    }
    Ok(())
}

pub(crate) fn may_have(vm: &Vm, i: &Insn) -> bool {
    vm.f.blooms.get(&i.p1).is_none_or(|b| b.may_have(hash(vm, i)))
}
