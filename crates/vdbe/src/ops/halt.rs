//! How a program ends: well, by the error of a constraint, or for the program of a trigger by going on in its caller.

use crate::env::Env;
use crate::machine::{Action, Outcome, Vm};
use iolite_base::{Code, Error, Result};
use iolite_bytecode::{Insn, P4, p5};

/// The error of a `Halt` or `HaltIfNull`.
#[cold]
pub(crate) fn constraint(vm: &mut Vm, i: &Insn, text: Option<String>) -> Error {
    let code = Code::from_number(i.p1 as u32).unwrap_or(Code::Error);
    vm.action = match i.p2 {
        1 => Action::Rollback,
        // What was written stays only if it keeps the foreign keys.
        3 if vm.violations > 0 => {
            vm.action = Action::Abort;
            return Error::new(Code::ConstraintForeignkey, "FOREIGN KEY constraint failed");
        }
        3 => Action::Fail,
        _ => Action::Abort,
    };
    let detail = match (&i.p4, text) {
        (_, Some(t)) => t,
        (P4::Name(n), None) => n.to_string(),
        _ => return code.into(),
    };
    let kind = match i.p5 {
        p5::NOT_NULL => "NOT NULL",
        p5::UNIQUE => "UNIQUE",
        p5::CHECK => "CHECK",
        p5::FOREIGN_KEY => "FOREIGN KEY",
        _ => return Error::new(code, detail),
    };
    Error::new(code, format!("{kind} constraint failed: {detail}"))
}

/// Ends the program: what its statement is told. `None`: the program that called it goes on.
pub(crate) fn halt(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<Option<Outcome>> {
    if i.p1 == 0 {
        if i.p2 == 4 && !vm.callers.is_empty() {
            // RAISE(IGNORE): the caller goes on where its instruction says.
            vm.leave(env);
            let at = vm.f.pc;
            vm.f.pc = vm.f.program.insns[at].p2 as usize;
            return Ok(None);
        }
        if vm.leave(env) {
            vm.f.pc += 1;
            return Ok(None);
        }
        return Ok(Some(Outcome::Done));
    }
    let text = if i.p3 != 0 { Some(vm.f.regs[i.p3 as usize].to_string_lossy()) } else { None };
    let e = constraint(vm, i, text);
    let one = vm.callers.is_empty() && vm.changes == 1 && i.p5 & p5::WAS_INSERTED == 0;
    if one && e.code() == Code::ConstraintForeignkey {
        // The one row was refused, though that is found out behind it: it was not inserted.
        env.set_last_insert_rowid(vm.rowid_before);
    }
    Err(e)
}
