//! Comparisons: of two values, with the jump that follows from it, and of two rows of them.

use crate::machine::Vm;
use iolite_base::{Encoding, Result};
use iolite_bytecode::{Insn, Opcode, P4, p5};
use iolite_value::{Affinity, Collation, Value, compare};
use std::cmp::Ordering;

/// Compare: how two rows of registers lie to each other, for the jumps that follow.
pub(crate) fn keys(vm: &mut Vm, i: &Insn) {
    let P4::KeyInfo(key) = &i.p4 else { return };
    let (a, b) = (i.p1 as usize, i.p2 as usize);
    let mut out = Ordering::Equal;
    for (k, f) in key.fields.iter().take(i.p3 as usize).enumerate() {
        let (x, y) = (&vm.f.regs[a + k], &vm.f.regs[b + k]);
        let o = match (x, y) {
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            _ => compare::compare(x, y, &f.coll),
        };
        if o.is_ne() {
            out = f.direct(o, x.is_null() || y.is_null());
            break;
        }
    }
    vm.f.compare = out;
}

/// Whether a comparison's jump is taken.
#[inline]
pub(crate) fn jumps(vm: &Vm, i: &Insn) -> Result<bool> {
    let (lhs, rhs) = (&vm.f.regs[i.p3 as usize], &vm.f.regs[i.p1 as usize]);
    let o = match (lhs, rhs) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Real(a), Value::Real(b)) if a < b => Ordering::Less,
        (Value::Real(a), Value::Real(b)) if a > b => Ordering::Greater,
        (Value::Text(a, _), Value::Text(b, _)) if are_bytes(i) && vm.enc == Encoding::Utf8 => {
            match i.op {
                // That their lengths differ is enough.
                Opcode::Eq | Opcode::Ne if a.len() != b.len() => Ordering::Less,
                _ => a[..].cmp(&b[..]),
            }
        }
        _ => match slow(lhs, rhs, i, vm.enc)? {
            Some(o) => o,
            None => return Ok(i.p5 & p5::JUMP_IF_NULL != 0),
        },
    };
    Ok(match i.op {
        Opcode::Eq => o.is_eq(),
        Opcode::Ne => o.is_ne(),
        Opcode::Lt => o.is_lt(),
        Opcode::Le => o.is_le(),
        Opcode::Gt => o.is_gt(),
        _ => o.is_ge(),
    })
}

/// Whether texts are compared by their bytes, as they are: under no collation, and no affinity that makes numbers of them.
#[inline(always)]
fn are_bytes(i: &Insn) -> bool {
    let letter = (i.p5 & p5::AFFINITY_MASK) as u8 + b'@';
    matches!(i.p4, P4::None) && letter <= Affinity::Text.letter() as u8
}

/// Compares values that are not both integers; `None` if one is NULL and that decides.
#[inline(never)]
fn slow(lhs: &Value, rhs: &Value, i: &Insn, enc: Encoding) -> Result<Option<Ordering>> {
    let binary = if enc == Encoding::Utf8 { Collation::Binary } else { Collation::Binary16(enc) };
    let coll = if let P4::Collation(c) = &i.p4 { &**c } else { &binary };
    let aff = Affinity::from_letter((i.p5 & p5::AFFINITY_MASK) as u8 + b'@');
    compare::under(lhs, rhs, aff, i.p5 & p5::NULL_EQ != 0, coll)
}
