//! Which arguments of a function of the user may be parameters of the statement, as they were bound (`sqlite3_value_frombind`).
//!
//! A parameter stays one while its value goes from register to register; a record forgets it. Registers are followed without regard
//! to the order in which the program runs, so what is found is what may be: the machine compares the values.

use crate::{Insn, Opcode, P4};
use iolite_ext::Implementation;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Fills in [`crate::FunctionCall::origins`].
pub(crate) fn trace(insns: &mut [Insn]) {
    let called =
        |i: &Insn| matches!(&i.p4, P4::Function(f) if matches!(f.function.imp, Implementation::User(_)));
    if !insns.iter().any(|i| i.op == Opcode::Variable) || !insns.iter().any(called) {
        return;
    }
    let mut held: BTreeMap<i32, BTreeSet<i32>> = BTreeMap::new();
    for i in insns.iter().filter(|i| i.op == Opcode::Variable) {
        held.entry(i.p2).or_default().insert(i.p1);
    }
    let moves: Vec<(i32, i32)> = insns
        .iter()
        .flat_map(|i| match (i.op, &i.p4) {
            (Opcode::SCopy, _) => vec![(i.p1, i.p2)],
            (Opcode::Copy, _) => (0..=i.p3).map(|k| (i.p1 + k, i.p2 + k)).collect(),
            // What a function answers may be what it was given.
            (Opcode::Function, P4::Function(f)) if called(i) => {
                (0..f.args as i32).map(|k| (i.p2 + k, i.p3)).collect()
            }
            _ => Vec::new(),
        })
        .collect();
    let mut grows = true;
    while grows {
        grows = false;
        for (from, to) in &moves {
            let Some(known) = held.get(from).cloned() else { continue };
            let there = held.entry(*to).or_default();
            let before = there.len();
            there.extend(known);
            grows |= there.len() > before;
        }
    }
    for i in insns.iter_mut().filter(|i| called(i)) {
        let first = i.p2;
        let P4::Function(f) = &mut i.p4 else { continue };
        let origins: Vec<(usize, usize)> = (0..f.args.min(31))
            .flat_map(|k| held.get(&(first + k as i32)).into_iter().flatten().map(move |p| (k, *p as usize)))
            .collect();
        if !origins.is_empty() {
            Rc::make_mut(f).origins = origins;
        }
    }
}
