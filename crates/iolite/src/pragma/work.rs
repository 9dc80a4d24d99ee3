//! Pragmas that do something: checks, statistics, vacuum, checkpoints, memory.

use super::words::{int32, number};
use super::{Call, Pragma, Rows, Schemas, Writes, int};
use iolite_base::{Result, alloc};
use iolite_btree::{CheckpointMode, TxnState};
use iolite_value::Value;

pub(super) static PRAGMAS: &[Pragma] = &[
    Pragma::new("foreign_key_check", |c| crate::foreign_keys::check(c.conn, c.schema, c.value))
        .columns(&["table", "rowid", "parent", "fkid"])
        .needs(Schemas::Main)
        .tested(|c| crate::foreign_keys::test(c.conn, c.schema, c.value)),
    Pragma::new("hard_heap_limit", hard_heap_limit),
    Pragma::new("incremental_vacuum", incremental_vacuum).columns(&[]).writes(Writes::Always),
    Pragma::new("integrity_check", |c| integrity_check(c, false)).needs(Schemas::Current).tested(one_table),
    Pragma::new("optimize", optimize).needs(Schemas::Changed),
    Pragma::new("quick_check", |c| integrity_check(c, true)).needs(Schemas::Current).tested(one_table),
    Pragma::new("shrink_memory", shrink_memory).columns(&[]),
    Pragma::new("soft_heap_limit", soft_heap_limit),
    Pragma::new("wal_checkpoint", wal_checkpoint)
        .columns(&["busy", "log", "checkpointed"])
        .writes(Writes::Always),
];

/// The limit can only be set, and lowered, here: it is the whole process's.
fn hard_heap_limit(c: &Call<'_>) -> Result<Rows> {
    let now = alloc::hard_limit(-1);
    if let Some(n) = c.value.map(number)
        && n > 0
        && (now == 0 || n < now)
    {
        alloc::hard_limit(n);
    }
    int(alloc::hard_limit(-1))
}

fn incremental_vacuum(c: &Call<'_>) -> Result<Rows> {
    let mut left = c.value.map_or(0, number);
    if left <= 0 {
        left = i64::MAX;
    }
    // A row without columns for each page, so that who steps through them vacuums step by step.
    let mut rows = Vec::new();
    c.writing(|b| {
        while left > 0 && b.incremental_vacuum()? {
            left -= 1;
            rows.push(Vec::new());
        }
        Ok(())
    })?;
    Ok(rows)
}

fn integrity_check(c: &Call<'_>, quick: bool) -> Result<Rows> {
    crate::check::run(c.conn, c.schema, c.value, c.number, quick)
}

/// A table that is to be checked alone is there.
fn one_table(c: &Call<'_>) -> Result<()> {
    crate::check::test(c.conn, c.schema, c.value, c.number)
}

fn optimize(c: &Call<'_>) -> Result<Rows> {
    const DEFAULT: i64 = 0xfffe;
    crate::analyze::optimize(c.conn, c.schema, c.value.map_or(DEFAULT, |v| int32(v).into()))
}

fn shrink_memory(c: &Call<'_>) -> Result<Rows> {
    for b in c.all()? {
        b.release_memory()?;
    }
    Ok(Vec::new())
}

fn soft_heap_limit(c: &Call<'_>) -> Result<Rows> {
    // What is no whole number changes nothing.
    let whole = |v: &&str| {
        let digits = v.trim_start_matches('-');
        match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            Some(hex) => u64::from_str_radix(hex, 16).is_ok(),
            None => digits.parse::<i64>().is_ok(),
        }
    };
    if let Some(v) = c.value.filter(whole) {
        alloc::soft_limit(number(v));
    }
    int(alloc::soft_limit(-1))
}

fn wal_checkpoint(c: &Call<'_>) -> Result<Rows> {
    let mode = match c.value.map(str::to_ascii_lowercase).as_deref() {
        Some("full") => CheckpointMode::Full,
        Some("restart") => CheckpointMode::Restart,
        Some("truncate") => CheckpointMode::Truncate,
        Some("noop") => CheckpointMode::Noop,
        _ => CheckpointMode::Passive,
    };
    let (mut busy, mut log, mut done) = (0, -1, -1);
    let list = if c.schema.is_some() { vec![c.btree()?] } else { c.all()? };
    for (i, b) in list.iter().enumerate() {
        if b.txn_state() == TxnState::Write {
            return Err(iolite_base::Code::Locked.into());
        }
        let r = b.checkpoint(mode)?;
        if r.busy {
            busy = 1;
        }
        if i == 0 {
            (log, done) = (r.log as i64, r.checkpointed as i64);
        }
    }
    Ok(vec![vec![Value::Int(busy), Value::Int(log), Value::Int(done)]])
}
