//! Making, emptying and dropping trees.

use crate::env::Env;
use crate::machine::Vm;
use iolite_base::{Code, Pgno, Result};
use iolite_btree::TreeKind;
use iolite_bytecode::Insn;
use iolite_value::Value;

pub(crate) fn create(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    let kind = if i.p3 == 1 { TreeKind::Table } else { TreeKind::Index };
    let root = env.btree(i.p1 as usize)?.create_tree(kind)?;
    vm.put(i.p2, Value::Int(root as i64));
    Ok(())
}

pub(crate) fn destroy(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    if env.others_read() {
        // Their cursors would go on in a tree that is no more, or is another one by now.
        return Err(Code::Locked.into());
    }
    let moved = env.btree(i.p3 as usize)?.drop_tree(i.p1 as Pgno)?;
    vm.put(i.p2, Value::Int(moved.unwrap_or(0) as i64));
    Ok(())
}

/// With p2 = -1, p1 is a cursor on a transient tree.
pub(crate) fn clear(vm: &mut Vm, i: &Insn, env: &dyn Env) -> Result<()> {
    if i.p2 < 0 {
        let t = vm.tree(i.p1)?;
        let (bt, root) = t.transient.clone().ok_or(Code::Internal)?;
        bt.clear_tree(root, t.cur.kind())?;
        t.cur.clear();
        t.moved(false);
        return Ok(());
    }
    let bt = env.btree(i.p2 as usize)?;
    // The kind of a tree stands in its root page; the caller does not know it for WITHOUT ROWID tables.
    let root = i.p1 as Pgno;
    let page = bt.read_page(root)?;
    let at = if root == 1 { 100 } else { 0 };
    let kind = match page.get(at) {
        Some(2 | 10) => TreeKind::Index,
        _ => TreeKind::Table,
    };
    drop(page);
    if vm.announces && i.p3 != 0 {
        super::before::clear(vm, (&bt, i.p2 as usize, root), kind, i, env)?;
    }
    let n = bt.clear_tree(root, kind)?;
    if i.p3 != 0 {
        vm.changes += n as i64;
        vm.total_changes += n as i64;
    }
    Ok(())
}
