//! Opening cursors.

use crate::cursor::{PseudoCursor, RowCache, TreeCursor, VCursor};
use crate::env::Env;
use crate::machine::Vm;
use iolite_base::{Code, Pgno, Result};
use iolite_btree::{Btree, TreeKind};
use iolite_bytecode::{Insn, Opcode, P4, p5};
use iolite_value::KeyInfo;
use std::rc::Rc;

pub(crate) fn table(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    let root = if i.p5 & p5::ROOT_IN_REGISTER != 0 {
        vm.f.regs[i.p2 as usize].to_int() as Pgno
    } else {
        i.p2 as Pgno
    };
    let write = i.op == Opcode::OpenWrite;
    if let Some(VCursor::Tree(t)) = &mut vm.f.cursors[i.p1 as usize]
        && t.cur.root() == root
        && t.cur.is_writable() == write
        && t.db == i.p3 as usize
    {
        // Left by an earlier run; what it is a cursor on cannot have changed without a new program.
        env.go_on()?;
        t.cur.renew();
        t.moved(false);
        return Ok(());
    }
    let bt = env.btree(i.p3 as usize)?;
    let (kind, key) = match &i.p4 {
        P4::KeyInfo(k) => (TreeKind::Index, Some(k.clone())),
        _ => (TreeKind::Table, None),
    };
    let cur = bt.cursor(root, kind, write)?;
    let c = TreeCursor::new(cur, i.p3 as usize, key);
    vm.f.cursors[i.p1 as usize] = Some(VCursor::Tree(Box::new(c)));
    Ok(())
}

pub(crate) fn reopen(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    if let Some(VCursor::Tree(t)) = &mut vm.f.cursors[i.p1 as usize]
        && t.cur.root() == i.p2 as Pgno
        && t.db == i.p3 as usize
    {
        t.moved(false);
        return Ok(());
    }
    table(vm, i, env)
}

pub(crate) fn ephemeral(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    // Opened again: emptied, which is cheaper than a new one.
    if let Some(VCursor::Tree(t)) = &mut vm.f.cursors[i.p1 as usize]
        && let Some((bt, root)) = &t.transient
    {
        bt.clear_tree(*root, t.cur.kind())?;
        t.cur.clear();
        t.moved(false);
        t.sequence = 0;
        return Ok(());
    }
    let key = if let P4::KeyInfo(k) = &i.p4 { Some(k.clone()) } else { None };
    let c = match vm.kept.tree(kind_of(&key))? {
        Some((bt, root)) => on_transient(bt, root, key)?,
        None => transient(env, key)?,
    };
    vm.f.cursors[i.p1 as usize] = Some(VCursor::Tree(Box::new(c)));
    Ok(())
}

/// What kind of tree there is on a transient database: an index if there is a key, else a table.
fn kind_of(key: &Option<Rc<KeyInfo>>) -> TreeKind {
    if key.is_some() { TreeKind::Index } else { TreeKind::Table }
}

/// A cursor on a new transient tree.
pub(crate) fn transient(env: &dyn Env, key: Option<Rc<KeyInfo>>) -> Result<TreeCursor> {
    let bt = env.transient()?;
    let root = bt.create_tree(kind_of(&key))?;
    on_transient(bt, root, key)
}

fn on_transient(bt: Btree, root: Pgno, key: Option<Rc<KeyInfo>>) -> Result<TreeCursor> {
    let kind = kind_of(&key);
    let cur = bt.cursor(root, kind, true)?;
    let mut c = TreeCursor::new(cur, usize::MAX, key);
    c.transient = Some((bt, root));
    Ok(c)
}

pub(crate) fn duplicate(vm: &mut Vm, i: &Insn) -> Result<()> {
    let from = vm.tree(i.p2)?;
    let (bt, root) = from.transient.clone().ok_or(Code::Internal)?;
    let key = from.key.clone();
    let cur = bt.cursor(root, from.cur.kind(), true)?;
    let mut c = TreeCursor::new(cur, usize::MAX, key);
    c.transient = Some((bt, root));
    vm.f.cursors[i.p1 as usize] = Some(VCursor::Tree(Box::new(c)));
    Ok(())
}

pub(crate) fn pseudo(vm: &mut Vm, i: &Insn) {
    let c = PseudoCursor { reg: i.p2 as usize, null_row: false, cache: RowCache::default() };
    vm.f.cursors[i.p1 as usize] = Some(VCursor::Pseudo(c));
}
