//! Aggregates whose state belongs to a register: NULL there means "no row yet".

use crate::env::Env;
use crate::machine::Vm;
use iolite_base::{Code, Encoding, Result};
use iolite_bytecode::{FunctionCall, Insn, Opcode, P4};
use iolite_ext::{Aggregate, AuxData, Context, FunctionFlags, Host, Implementation};
use iolite_value::Value;
use std::borrow::Cow;

/// A fresh state.
pub(crate) fn make(f: &FunctionCall) -> Result<Box<dyn Aggregate>> {
    match &f.function.imp {
        Implementation::Aggregate(make) => Ok(make()),
        _ => Err(Code::Internal.into()),
    }
}

/// Runs `g` with a context for the call. Aggregates keep nothing but their state: `aux` is empty before and after.
#[inline]
pub(crate) fn with_context<T>(
    f: &FunctionCall,
    env: &dyn Env,
    aux: &mut AuxData,
    g: impl FnOnce(&mut Context<'_>) -> T,
) -> T {
    let host: &dyn Host = env;
    let out = g(&mut Context { host, collation: &f.collation, pure: None, aux, cursor: None });
    aux.end_call();
    out
}

fn call(i: &Insn) -> Result<&FunctionCall> {
    match &i.p4 {
        P4::Function(f) => Ok(f),
        _ => Err(Code::Internal.into()),
    }
}

/// The state that belongs to a register, made if there is none yet. A statement is not re-entered while it runs, so the
/// state may stay in its place during the call.
fn state<'s>(
    states: &'s mut Vec<Option<Box<dyn Aggregate>>>,
    marker: &mut Value,
    reg: i32,
    f: &FunctionCall,
) -> Result<&'s mut Box<dyn Aggregate>> {
    let at = reg as usize;
    if !matches!(marker, Value::Int(_)) || states.get(at).is_none_or(Option::is_none) {
        begin(states, marker, at, f)?;
    }
    states[at].as_mut().ok_or_else(|| Code::Internal.into())
}

#[inline(never)]
fn begin(
    states: &mut Vec<Option<Box<dyn Aggregate>>>,
    marker: &mut Value,
    at: usize,
    f: &FunctionCall,
) -> Result<()> {
    if states.len() <= at {
        states.resize_with(at + 1, || None);
    }
    states[at] = Some(make(f)?);
    *marker = Value::Int(1);
    Ok(())
}

/// What an aggregate is given in a database of texts in `enc`: where it reads texts, blobs that spell them in UTF-8.
#[inline]
pub(crate) fn arguments<'a>(f: &FunctionCall, args: &'a [Value], enc: Encoding) -> Result<Cow<'a, [Value]>> {
    if enc == Encoding::Utf8 || !f.function.flags.has(FunctionFlags::TEXTS) {
        return Ok(Cow::Borrowed(args));
    }
    args.iter().map(|v| v.blob_in_utf8(enc)).collect::<Result<_>>().map(Cow::Owned)
}

/// Does the steps that `insns` begins with, as far as they need nothing but a state and values; how many they were.
#[inline(always)]
pub(crate) fn quick_steps(
    states: &mut [Option<Box<dyn Aggregate>>],
    regs: &[Value],
    insns: &[Insn],
) -> usize {
    let mut done = 0;
    for i in insns {
        if i.op == Opcode::AggStep
            && i.p1 == 0
            && let P4::Function(f) = &i.p4
            && let Some(Some(s)) = states.get_mut(i.p3 as usize)
            && let Value::Int(_) = regs[i.p3 as usize]
            && s.quick_step(&regs[i.p2 as usize..i.p2 as usize + f.args])
        {
            done += 1;
        } else {
            break;
        }
    }
    done
}

#[inline]
pub(crate) fn step(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    let f = call(i)?;
    let frame = &mut vm.f;
    let (first, at) = (i.p2 as usize, i.p3 as usize);
    if let Some(Some(s)) = frame.extra.states.get_mut(at)
        && let Value::Int(_) = frame.regs[at]
        && s.quick_step(&frame.regs[first..first + f.args])
    {
        if i.p1 != 0 && s.changed() {
            vm.put(i.p1, Value::Int(1));
        }
        return Ok(());
    }
    let s = state(&mut frame.extra.states, &mut frame.regs[at], i.p3, f)?;
    let args = arguments(f, &frame.regs[first..first + f.args], vm.enc)?;
    with_context(f, env, &mut frame.extra.aggregate_aux, |c| s.step(c, &args))?;
    if i.p1 != 0 && s.changed() {
        vm.put(i.p1, Value::Int(1));
    }
    Ok(())
}

pub(crate) fn finish(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    let f = call(i)?;
    let frame = &mut vm.f;
    let s = state(&mut frame.extra.states, &mut frame.regs[i.p1 as usize], i.p1, f)?;
    let v = with_context(f, env, &mut frame.extra.aggregate_aux, |c| s.finish(c))?;
    frame.extra.states[i.p1 as usize] = None;
    vm.put(i.p1, v);
    Ok(())
}
