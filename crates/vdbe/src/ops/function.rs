//! Scalar functions.

use crate::cursor::VCursor;
use crate::env::Env;
use crate::machine::Vm;
use iolite_base::{Code, Encoding, Result};
use iolite_bytecode::{FunctionCall, Insn, P4};
use iolite_ext::{AuxData, Context, FunctionFlags, Host, Implementation};
use iolite_value::{POINTER, Value};

pub(crate) fn call(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    let P4::Function(f) = &i.p4 else { return Err(Code::Internal.into()) };
    let recoded = f.function.flags.has(FunctionFlags::TEXTS) && vm.enc != Encoding::Utf8;
    let out = match &f.function.imp {
        Implementation::Scalar(c) if f.cursor.is_none() && !recoded => {
            let first = i.p2 as usize;
            let (args, aux) = (&vm.f.regs[first..first + f.args], &mut vm.f.extra.aux[f.site]);
            aux.constant_args = i.p1 as u32;
            aux.bound_args = f.bound;
            let pure = f.pure.map(|place| (&*f.function.name, place));
            let out = c(&mut Context { host: env, collation: &f.collation, pure, aux, cursor: None }, args);
            aux.end_call();
            out
        }
        _ => call_any(vm, i, f, recoded, env),
    };
    let mut v = out?;
    if let Value::Blob(_, POINTER) = v
        && !f.passes
    {
        v = Value::Null;
    }
    if let Value::Text(b, _) | Value::Blob(b, _) = &v
        && b.len() > vm.max_length
    {
        return Err(Code::Toobig.into());
    }
    vm.put(i.p3, v);
    Ok(())
}

/// Whether two values are the same, class and all.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Real(a), Value::Real(b)) => a.to_bits() == b.to_bits(),
        (Value::Text(a, _), Value::Text(b, _)) | (Value::Blob(a, _), Value::Blob(b, _)) => a[..] == b[..],
        _ => false,
    }
}

/// A call of the user's, one that reads a virtual table's cursor, or one whose arguments are of another encoding.
fn call_any(vm: &mut Vm, i: &Insn, f: &FunctionCall, recoded: bool, env: &dyn Env) -> Result<Value> {
    let first = i.p2 as usize;
    let texts: Option<Vec<Value>> = if recoded {
        let args = vm.f.regs[first..first + f.args].iter();
        Some(args.map(|v| v.blob_as_text(vm.enc)).collect::<Result<_>>()?)
    } else {
        None
    };
    // Kept values live with the call site; taken out, so that a function that calls back finds no borrow.
    let mut aux: AuxData = match vm.f.extra.aux.get_mut(f.site) {
        Some(a) => std::mem::take(a),
        None => AuxData::default(),
    };
    aux.constant_args = i.p1 as u32;
    aux.bound_args = f.bound;
    for (k, parameter) in &f.origins {
        let arg = &vm.f.regs[first + k];
        if vm.params.get(parameter - 1).is_some_and(|p| same(p, arg)) {
            aux.bound_args |= 1 << k;
        }
    }
    let host: &dyn Host = env;
    let pure = f.pure.map(|place| (&*f.function.name, place));
    let taken = f.cursor.and_then(|c| vm.f.cursors[c].take());
    let cursor = match &taken {
        Some(VCursor::Virtual { cursor: Some(cursor), null_row: false }) => Some(&**cursor),
        _ => None,
    };
    let mut ctx = Context { host, collation: &f.collation, pure, aux: &mut aux, cursor };
    let args = match &texts {
        Some(t) => t,
        None => &vm.f.regs[first..first + f.args],
    };
    let out = match &f.function.imp {
        Implementation::Scalar(c) => c(&mut ctx, args),
        Implementation::User(u) => u.call(&mut ctx, args),
        _ => Err(Code::Internal.into()),
    };
    if let Some(c) = f.cursor {
        vm.f.cursors[c] = taken;
    }
    aux.end_call();
    if let Some(a) = vm.f.extra.aux.get_mut(f.site) {
        *a = aux;
    }
    // A call may take as long as thousands of instructions: an interrupt is looked for behind each.
    if matches!(f.function.imp, Implementation::User(_)) && env.check_after(0).is_err() {
        vm.ask_soon();
    }
    out
}
