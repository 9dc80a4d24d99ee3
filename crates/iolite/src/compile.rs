//! From text to programs: the one place where the stages are joined.

use crate::binding::with_env;
use crate::connection::Connection;
use iolite_base::{Code, Error, Limit, Result};
use iolite_bytecode::{ColumnMeta, Program};
use iolite_codegen::Settings;
use iolite_plan::StatementPlan;
use iolite_plan::bind::Env;
use iolite_plan::bound::Select;
use iolite_plan::statement::Body;
use iolite_sql::ast::{BeginMode, ExplainMode, ObjectKind, Parsed, Stmt};

/// Compiles the only statement of a text. `explains` stands for what its beginning says.
pub(crate) fn compile_text(
    conn: &Connection,
    sql: &str,
    explains: Option<ExplainMode>,
    watch: Option<&dyn Watch>,
) -> Result<Program> {
    let limits = conn.0.limits.borrow().clone();
    let mut program = Program::default();
    match iolite_sql::parse_next(sql, &limits)? {
        Some((mut parsed, _)) => {
            parsed.explain = explains.unwrap_or(parsed.explain);
            compile(conn, &mut parsed, sql, &mut program, watch)?;
        }
        None => return Err(Error::sql("not a statement")),
    }
    Ok(program)
}

fn needs_schema(s: &Stmt) -> bool {
    !matches!(
        s,
        Stmt::Begin(_)
            | Stmt::Commit
            | Stmt::Rollback
            | Stmt::Savepoint(_)
            | Stmt::Release(_)
            | Stmt::RollbackTo(_)
    )
}

/// Whether a statement is a query that names no table.
fn names_nothing(s: &Stmt) -> bool {
    let Stmt::Select(query) = s else { return false };
    let mut names = 0;
    let mut note = |_: &_| names += 1;
    iolite_sql::walk::TableNames::new(&mut note).select(query);
    names == 0
}

/// Whether the connection carries a statement out by itself, and looks names up for it.
fn carries_out(s: &Stmt) -> bool {
    matches!(s, Stmt::Pragma { .. } | Stmt::AlterTable(_) | Stmt::Analyze(_))
}

/// Sees the values between the stages of a statement.
pub(crate) trait Watch {
    /// A query has been bound.
    fn bound(&self, query: &Select);
    /// The statement has been planned.
    fn planned(&self, plan: &StatementPlan);
}

/// Compiles a statement into an empty program.
pub(crate) fn compile(
    conn: &Connection,
    parsed: &mut Parsed,
    text: &str,
    p: &mut Program,
    watch: Option<&dyn Watch>,
) -> Result<()> {
    conn.0.check_schema_locks()?;
    if needs_schema(&parsed.stmt) && !matches!(parsed.stmt, Stmt::Pragma { .. }) {
        match conn.0.load_schemas() {
            // Who names nothing does not mind that a schema cannot be read.
            Err(_) if names_nothing(&parsed.stmt) => {}
            loaded => loaded?,
        }
    }
    if conn.0.sharing.is_some() && conn.0.look_again() {
        // Those who share a cache share what is known of its schema.
        conn.0.load_schemas()?;
    }
    conn.0.check_schema_locks()?;
    match compile_once(conn, parsed, text, (p, false), watch) {
        // The catalog may be out of date: somebody else may have made what the text names.
        Err(e) if e.code() == iolite_base::Code::Error && conn.0.look_again() => {
            conn.0.load_schemas()?;
            *p = Program::default();
            compile_once(conn, parsed, text, (p, false), watch)?;
        }
        // Nobody is asked for it any more.
        Err(e)
            if e.code() == iolite_base::Code::ErrorMissingCollseq && !conn.0.collations_asked_for.get() =>
        {
            *p = Program::default();
            compile_once(conn, parsed, text, (p, true), watch)?;
        }
        other => other?,
    }
    p.variables = std::mem::take(&mut parsed.variables);
    p.explain = match parsed.explain {
        ExplainMode::None => 0,
        ExplainMode::Program => 1,
        ExplainMode::QueryPlan => 2,
        ExplainMode::Analyze => 3,
    };
    p.changes_files = changes_files(&parsed.stmt);
    p.names_schema = p.databases == 0 && (p.opens_virtual || carries_out(&parsed.stmt));
    conn.0.name_locks(p);
    Ok(())
}

/// Whether a statement is of a kind that changes files otherwise than by its program's transaction (`sqlite3_stmt_readonly`).
fn changes_files(s: &Stmt) -> bool {
    match s {
        Stmt::Begin(mode) => !matches!(mode, BeginMode::Deferred),
        Stmt::Pragma { name, value } => crate::pragma::changes_files(&name.name.text, value.is_some()),
        // A trigger that is not there takes nothing.
        Stmt::Drop { kind: ObjectKind::Trigger, .. } => false,
        Stmt::CreateTable(_)
        | Stmt::CreateIndex(_)
        | Stmt::CreateView(_)
        | Stmt::Drop { .. }
        | Stmt::Vacuum { .. } => true,
        _ => false,
    }
}

/// The stages, one after the other: a parsed statement is planned, it is chosen who runs its blocks, and the plan becomes
/// a program. `missing`: it may name collating sequences that nobody has registered, as long as it compares nothing by them.
fn compile_once(
    conn: &Connection,
    parsed: &Parsed,
    text: &str,
    (p, missing): (&mut Program, bool),
    watch: Option<&dyn Watch>,
) -> Result<()> {
    let mut settings = conn.0.codegen_settings();
    let mut plan = StatementPlan::default();
    let explained = matches!(parsed.explain, ExplainMode::QueryPlan | ExplainMode::Analyze);
    let authorizer = conn.0.asked_authorizer();
    let authorizer = authorizer.as_deref();
    // A copy, so that nothing is borrowed while the program is asked: it may run statements.
    let catalog = conn.0.catalog.borrow().clone();
    let left_out = match authorizer {
        Some(a) => !crate::authorize::before(catalog, a, &parsed.stmt)?,
        None => false,
    };
    if left_out {
        return with_env(conn, |env| {
            iolite_plan::idle(env, &mut plan);
            iolite_codegen::emit(&plan, &settings, None, p)
        });
    }
    with_env(conn, |env| {
        let defines = matches!(
            parsed.stmt,
            Stmt::CreateTable(_) | Stmt::CreateIndex(_) | Stmt::CreateTrigger(_) | Stmt::CreateView(_)
        );
        let strings = if defines { conn.0.settings.double_quoted_definitions() } else { env.quoted_strings };
        let env = &Env { quoted_strings: strings, authorizer, missing_collations: missing, ..*env };
        settings.most_instructions = env.limits.get(Limit::VdbeOp) as usize;
        match watch {
            None if !explained => iolite_plan::compile(parsed, text, env, &mut plan),
            _ => {
                let bound = |q: &Select| watch.iter().for_each(|w| w.bound(q));
                let env = Env { watch: Some(&bound), explained, ..*env };
                iolite_plan::compile(parsed, text, &env, &mut plan)
            }
        }
    })?;
    if let Some(a) = authorizer {
        let catalog = conn.0.catalog.borrow().clone();
        crate::authorize::after(catalog, a, &parsed.stmt, text)?;
    }
    if !missing {
        crate::columns::choose(conn, &plan, explained)?;
    }
    if let Some(w) = watch {
        w.planned(&plan);
    }
    if let Body::Control(_) = plan.body {
        *p = crate::control::compile(conn, &plan, text)?;
        return Ok(());
    }
    match explained {
        true => emit_explained(conn, &plan, &settings, parsed.explain, p)?,
        false => iolite_codegen::emit(&plan, &settings, None, p)?,
    }
    if missing && let Some(name) = p.missing_collation() {
        return Err(iolite_plan::bind::missing_collation(name));
    }
    p.columns = plan.take_columns();
    let most = conn.0.limits.borrow().get(Limit::Length) as usize;
    if p.columns.iter().any(|c| c.name.len() > most) {
        return Err(Code::Toobig.into());
    }
    if settings.counts_rows
        && p.columns.is_empty()
        && let Body::Modify(m) = &plan.body
    {
        p.columns.push(ColumnMeta { name: m.counted().into(), ..Default::default() });
    }
    p.finds_one = plan.finds_one();
    Ok(())
}

/// The program of a statement whose plan is asked for, with the lines that tell of it.
#[cold]
fn emit_explained(
    conn: &Connection,
    plan: &StatementPlan,
    settings: &Settings,
    explain: ExplainMode,
    p: &mut Program,
) -> Result<()> {
    let triggers = explain == ExplainMode::QueryPlan && conn.0.settings.trigger_plans();
    let lines = iolite_plan::explain::explain(plan, triggers);
    let marked = (explain == ExplainMode::Analyze).then_some(&lines);
    iolite_codegen::emit(plan, settings, marked, p)?;
    p.plan = lines.list;
    Ok(())
}
