//! EXPLAIN: a program as rows.

use crate::{P4, Program};
use iolite_ext::Instruction;

/// The rows that `EXPLAIN` shows for a program, its sub-programs behind it.
pub fn explain(program: &Program) -> Vec<Instruction> {
    let mut rows = Vec::new();
    for p in std::iter::once(program).chain(program.subprograms.iter().map(|s| &**s)) {
        for (addr, i) in p.insns.iter().enumerate() {
            rows.push(Instruction {
                addr,
                opcode: i.op.name(),
                p1: i.p1,
                p2: i.p2,
                p3: i.p3,
                p4: p4_text(&i.p4),
                // How it is run is no part of what it does.
                p5: i.p5 & !crate::p5::THEN_COLUMN,
                subprogram: p.trigger.clone(),
            });
        }
    }
    rows
}

pub(crate) fn p4_text(p4: &P4) -> String {
    match p4 {
        P4::None => String::new(),
        P4::Int(i) => i.to_string(),
        P4::Real(r) => iolite_value::num::real_text(*r),
        P4::Bytes(b) => String::from_utf8_lossy(b).into_owned(),
        P4::Name(n) => n.to_string(),
        P4::VirtualPlan(p) => p.data.as_ref().map_or_else(|| p.text.to_string(), |d| d.shown()),
        P4::Value(v) => v.to_string_lossy(),
        P4::Collation(c) => format!("{}-8", c.name()),
        P4::KeyInfo(k) => {
            let fields: Vec<String> = k
                .fields
                .iter()
                .map(|f| {
                    let name = if f.coll.is_binary() { "B" } else { f.coll.name() };
                    format!(
                        "{}{}{}",
                        if f.desc { "-" } else { "" },
                        if f.nulls_large { "N." } else { "" },
                        name
                    )
                })
                .collect();
            format!("k({},{})", fields.len(), fields.join(","))
        }
        P4::Affinities(a) => a.iter().map(|a| a.letter()).collect(),
        P4::Function(f) => format!("{}({})", f.function.name, f.function.args),
        P4::Strict(_) => "strict".into(),
        P4::Patch(fields) => {
            let new = fields.iter().enumerate().filter(|(_, f)| f.register.is_some());
            format!("[{}]", new.map(|(k, _)| k.to_string()).collect::<Vec<_>>().join(","))
        }
        P4::VirtualTable(_) => "vtab".into(),
        P4::Source(_) => "source".into(),
        P4::Windows(w) => {
            let names =
                w.iter().flat_map(|p| &p.calls).map(|c| format!("{}({})", c.0.function.name, c.0.args));
            names.collect::<Vec<_>>().join(",")
        }
        P4::Rows(r) => format!("rows({})", r.len()),
        P4::Numbers(n) => {
            let list: Vec<String> = n.iter().map(|v| v.to_string()).collect();
            format!("[{}]", list.join(","))
        }
    }
}
