//! Plans become programs.
//!
//! [`emit`] takes the plan of a statement, whatever it is, and decides nothing. [`Codegen`] holds what every statement kind needs: the builder, where each table's present row is, which
//! expressions already stand in registers. `expr` and `cond` compute and test, `loops` opens and closes the
//! nested loops of a plan, `select` and its helpers deliver rows to a [`Dest`]; `modify` is the loop
//! of all statements that change rows, `virtual_table` what is special about tables of modules, `define` the steps of those that change the schema. What it does not know: names,
//! catalogs, how a plan was found; how instructions are carried out.
#![forbid(unsafe_code)]

mod access;
mod aggregate;
mod autoincrement;
mod check;
mod compound;
mod cond;
mod context;
mod define;
mod delete;
mod expr;
mod filters;
mod foreign_keys;
mod insert;
mod loops;
mod merge;
mod modify;
mod ordered_agg;
mod recursive;
mod select;
mod settings;
mod source;
mod subquery;
mod trigger;
mod update;
mod virtual_table;
mod window;
mod write;

pub use settings::Settings;

use context::{Codegen, Dest};
use iolite_base::{Code, Result};
use iolite_bytecode::{ColumnMeta, Opcode, Program};
use iolite_ext::SourceFactory;
use iolite_plan::StatementPlan;
use iolite_plan::explain::Lines;
use iolite_plan::statement::Body;
use iolite_plan::statement::define::Step;
use std::rc::Rc;

/// Makes the program of a statement that reads or changes rows, or changes the schema, out of an empty one. With the lines
/// of its plan, the program says for which of them its instructions work.
pub fn emit(
    plan: &StatementPlan,
    settings: &Settings,
    lines: Option<&Lines>,
    program: &mut Program,
) -> Result<()> {
    let mut g = Codegen::new(plan, settings);
    if let Some(lines) = lines {
        g.mark_lines(lines);
    }
    match &plan.body {
        Body::Query(q) => g.query(q, &Dest::Output)?,
        Body::Modify(m) => {
            program.counts_changes = true;
            let counts = settings.counts_rows && m.returning.is_empty();
            if counts && m.target.table.is_view() {
                // What INSTEAD OF triggers do is no change of the statement's own.
                let count = g.b.reg();
                g.b.emit(Opcode::Integer, 0, count, 0);
                g.counted = Some(count);
            }
            g.modify(m)?;
            if counts {
                let count = g.counted.unwrap_or_else(|| {
                    let count = g.b.reg();
                    g.b.emit(Opcode::ChangeCount, 0, count, 0);
                    count
                });
                g.b.emit(Opcode::ResultRow, count, 1, 0);
            }
        }
        Body::Define(d) => {
            program.counts_changes = d.steps.iter().any(|s| matches!(s, Step::Empty { .. }));
            g.define(d)?;
        }
        Body::RowCheck(t) => g.rows_to_check(t)?,
        // What the connection carries out is a row source: see `emit_work`.
        Body::Control(_) => return Err(Code::Internal.into()),
    }
    g.write_sequences()?;
    let most = settings.most_instructions;
    g.finish(if most == 0 { usize::MAX } else { most }, program)?;
    program.needs_statement = plan.undo;
    for t in &plan.triggers {
        let sub = trigger::program(plan, t, settings)?;
        program.holds_tables |= sub.holds_tables;
        program.subprograms.push(Rc::new(sub));
    }
    Ok(())
}

/// Makes a program that yields the rows of a source. It computes the row of expressions that the plan holds each time it
/// runs, with its parameters, and gives the source their values.
pub fn emit_work(
    plan: &StatementPlan,
    settings: &Settings,
    columns: &[&str],
    source: SourceFactory,
) -> Result<Program> {
    let mut g = Codegen::new(plan, settings);
    let (mut first, mut count) = (0, 0);
    if let Body::Control(c) = &plan.body
        && let Some((row, width)) = &c.row
    {
        (first, count) = (g.b.regs(*width), *width);
        g.query(row, &Dest::Registers { first })?;
    }
    g.source_rows(columns.len(), source, first, count);
    let mut p = Program::default();
    g.finish(usize::MAX, &mut p)?;
    p.needs_statement = plan.undo;
    p.columns = columns.iter().map(|c| ColumnMeta { name: (*c).into(), ..Default::default() }).collect();
    Ok(p)
}
