//! STRICT tables (documentation page `stricttables`).

use crate::machine::Vm;
use iolite_base::{Code, Error, Result};
use iolite_bytecode::{Insn, P4, StrictType};
use iolite_value::{Affinity, Value};

pub(crate) fn check(vm: &mut Vm, i: &Insn) -> Result<()> {
    let P4::Strict(columns) = &i.p4 else { return Ok(()) };
    for (k, c) in columns.iter().enumerate() {
        let v = &mut vm.f.regs[i.p1 as usize + k];
        let affinity = match c.ty {
            StrictType::Any => continue,
            StrictType::Int | StrictType::Integer => Affinity::Integer,
            StrictType::Real => Affinity::Real,
            StrictType::Text => Affinity::Text,
            StrictType::Blob => Affinity::Blob,
        };
        affinity.apply(v)?;
        let fits = matches!(
            (c.ty, &*v),
            (_, Value::Null)
                | (StrictType::Int | StrictType::Integer, Value::Int(_))
                | (StrictType::Real, Value::Real(_) | Value::Int(_))
                | (StrictType::Text, Value::Text(..))
                | (StrictType::Blob, Value::Blob(..))
        );
        if !fits {
            let class = v.class().name().to_ascii_uppercase();
            let class = if class == "INTEGER" { "INT".to_string() } else { class };
            return Err(Error::new(
                Code::ConstraintDatatype,
                format!("cannot store {class} value in {} column {}", c.ty.name(), c.name),
            ));
        }
    }
    Ok(())
}
