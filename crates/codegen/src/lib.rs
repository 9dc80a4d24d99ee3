//! Plan trees become programs.
//!
//! [`Codegen`] holds what every statement kind needs: the builder, where each table's present row is, which
//! expressions already stand in registers. `expr` and `cond` compute and test, `loops` opens and closes the
//! nested loops of a plan, `select` and its helpers deliver rows to a [`Dest`]; one file per kind of statement that
//! writes. What it does not know: how instructions are carried out.
#![forbid(unsafe_code)]

mod access;
mod aggregate;
mod autoincrement;
mod check;
mod compound;
mod cond;
mod context;
mod ddl;
mod delete;
mod door;
mod expr;
mod filters;
mod insert;
mod loops;
mod ordered_agg;
mod recursive;
mod select;
mod subquery;
mod trigger;
mod update;
mod window;
mod write;

pub use check::index_check;
pub use context::Settings;
pub use door::{Ask, Door, Offer, Taken};

use context::Codegen;
use iolite_base::{Limit, Result};
use iolite_bytecode::Program;
use iolite_ext::SourceFactory;
use iolite_plan::bind::{Binder, Env};
use iolite_sql::ast::{ExplainMode, Expr, Parsed, Stmt};

/// Compiles a statement that reads or changes rows, or defines or drops a schema object, into an empty program. False: a
/// statement that the connection carries out by itself (transactions, ATTACH, PRAGMA, VACUUM, ALTER TABLE ...).
pub fn compile(
    parsed: &Parsed,
    text: &str,
    env: &Env<'_>,
    settings: &Settings,
    program: &mut Program,
) -> Result<bool> {
    let mut g = Codegen::new(env, settings);
    g.notes.on = matches!(parsed.explain, ExplainMode::QueryPlan | ExplainMode::Analyze);
    let mut binder = Binder::new(env, text);
    let columns = match &parsed.stmt {
        Stmt::Select(s) => g.statement_select(&mut binder, s)?,
        Stmt::Insert(s) => g.statement_insert(&mut binder, s)?,
        Stmt::Update(s) => g.statement_update(&mut binder, s)?,
        Stmt::Delete(s) => g.statement_delete(&mut binder, s)?,
        Stmt::CreateTable(c) => g.create_table(&mut binder, c, parsed.span.of(text))?,
        Stmt::CreateIndex(c) => g.create_index(&mut binder, c, parsed.span.of(text))?,
        Stmt::CreateView(c) => g.create_view(&mut binder, c, parsed.span.of(text))?,
        Stmt::CreateTrigger(c) => g.create_trigger(&mut binder, c, parsed.span.of(text))?,
        Stmt::Drop { kind, if_exists, name } => g.drop_object(*kind, *if_exists, name)?,
        Stmt::Reindex(what) => g.reindex(&mut binder, what.as_ref())?,
        _ => return Ok(false),
    };
    g.write_sequences()?;
    g.finish(env.limits.get(Limit::VdbeOp) as usize, program)?;
    program.columns = columns;
    Ok(true)
}

/// A program that yields the rows of a source. `reads` and `writes` are the databases that it begins to read
/// and to write first. `given` are
/// expressions of a statement, with its text: the program computes them each time it runs, with its parameters, and gives
/// the source their values.
pub fn source_program(
    env: &Env<'_>,
    settings: &Settings,
    columns: &[&str],
    source: SourceFactory,
    (reads, writes): (&[usize], &[usize]),
    given: (Vec<Expr>, &str),
) -> Result<Program> {
    let mut g = Codegen::new(env, settings);
    let count = given.0.len();
    let first = match count {
        0 => 0,
        _ => g.row_registers(given.0, given.1)?,
    };
    for db in reads {
        g.touch_databases(1 << db);
    }
    for db in writes {
        g.write_database(*db);
        g.needs_statement = true;
    }
    g.source_rows(columns.len(), source, first, count);
    let mut p = Program::default();
    g.finish(usize::MAX, &mut p)?;
    p.columns = columns
        .iter()
        .map(|c| iolite_bytecode::ColumnMeta { name: (*c).into(), ..Default::default() })
        .collect();
    Ok(p)
}
