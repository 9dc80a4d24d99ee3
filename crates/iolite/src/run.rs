//! From text to statements: the one place where the stages are joined.

use crate::connection::{Connection, Inner};
use crate::plans::Sharing;
use crate::statement::Statement;
use iolite_base::{Error, Limit, Limits, Result};
use iolite_bytecode::{ColumnMeta, Program};
use iolite_codegen::Settings;
use iolite_plan::StatementPlan;
use iolite_plan::bind::Env;
use iolite_plan::bound::Select;
use iolite_plan::statement::Body;
use iolite_sql::Lifted;
use iolite_sql::ast::{BeginMode, ExplainMode, Parsed, Stmt};
use iolite_value::Value;
use std::cell::Cell;
use std::rc::Rc;

/// Prepares the first statement of a text.
pub(crate) fn prepare_next<'s>(conn: &Connection, sql: &'s str) -> Result<Option<(Statement, &'s str)>> {
    let next = prepare_any(conn, sql)?;
    if !conn.0.settings.comments() && !conn.0.txn.is_nested() {
        let text = next.as_ref().map_or(sql, |(_, rest)| &sql[..sql.len() - rest.len()]);
        if let Some(at) = iolite_sql::first_comment(text) {
            let comment = &text[at.start as usize..at.end as usize];
            return Err(Error::sql(format!("unrecognized token: \"{comment}\"")).at(at.start));
        }
    }
    Ok(next)
}

fn prepare_any<'s>(conn: &Connection, sql: &'s str) -> Result<Option<(Statement, &'s str)>> {
    let c = &conn.0;
    // What the engine runs for itself is compiled by other rules.
    // Programs are shared by those that nobody asks for only.
    let own = c.txn.is_nested() || c.has_authorizer() || c.no_virtual.get();
    c.check_schema_locks()?;
    if !own && let Some((program, used)) = c.plans.borrow().find(sql, &c.generations.borrow()) {
        return Ok(Some((Statement::new(conn, &sql[..used], program)?, &sql[used..])));
    }
    let limits = c.limits.borrow().clone();
    if sql.len() > limits.get(Limit::SqlLength) as usize {
        return Err(Error::new(iolite_base::Code::Toobig, "statement too long"));
    }
    let shares = !own && c.plans.borrow().size() > 0;
    let lifted = if shares { iolite_sql::lifted(sql) } else { None };
    if let Some(l) = &lifted
        && let Some(s) = prepare_lifted(conn, sql, l, &limits)?
    {
        return Ok(Some((s, &sql[l.used..])));
    }
    // Used where it is: it is large.
    let mut next = iolite_sql::parse_next(sql, &limits)?;
    let Some((parsed, used)) = &mut next else { return Ok(None) };
    let mut program = Rc::default();
    compile(conn, parsed, sql, Rc::get_mut(&mut program).expect("nobody else has it"), None)?;
    if !own && !program.holds_tables && crate::plans::lasting(parsed) {
        let mut plans = c.plans.borrow_mut();
        plans.keep(sql, *used, &program, &c.generations.borrow());
        if let Some(l) = &lifted
            && plans.sharing(&l.text).is_none()
        {
            plans.note_sharing(&l.text, Sharing::Seen);
        }
    }
    let (text, rest) = sql.split_at(*used);
    Ok(Some((Statement::new(conn, text, program)?, rest)))
}

/// Prepares a statement by the program of its text with parameters in the place of literals. `None`: the literals may
/// decide how rows are found, no other of its kind came yet, or something is wrong with it, of which its own text tells best.
fn prepare_lifted(conn: &Connection, sql: &str, l: &Lifted, limits: &Limits) -> Result<Option<Statement>> {
    let c = &conn.0;
    let sharing = match l.stored {
        true => Some(Sharing::Shared),
        false => c.plans.borrow().sharing(&l.text),
    };
    if !matches!(sharing, Some(Sharing::Seen | Sharing::Shared)) {
        return Ok(None);
    }
    let most = limits.get(Limit::Length) as usize;
    let mut values = Vec::with_capacity(l.literals.len());
    for (literal, negative) in &l.literals {
        match iolite_plan::bind::literal_value(literal, *negative) {
            Ok(Value::Text(b, _) | Value::Blob(b, _)) if b.len() > most => return Ok(None),
            Ok(v) => values.push(v),
            Err(_) => return Ok(None),
        }
    }
    // Truth values and their like are thought to be frequent: the plan for others may not fit them.
    let frequent = !l.stored && values.iter().any(|v| matches!(v, Value::Int(-1..=1)));
    if frequent && sharing == Some(Sharing::Seen) {
        return Ok(None);
    }
    let found = match sharing {
        Some(Sharing::Shared) => c.plans.borrow().find(&l.text, &c.generations.borrow()),
        _ => None,
    };
    let program = match found {
        Some((program, _)) => program,
        None => {
            let program = shared_program(conn, &sql[..l.used], l, sharing == Some(Sharing::Shared))?;
            let what = if program.is_some() { Sharing::Shared } else { Sharing::Refused };
            let mut plans = c.plans.borrow_mut();
            // Behind the program: where that is the first of new generations, all that was noted is forgotten with it.
            if let Some(program) = &program
                && !program.holds_tables
            {
                plans.keep(&l.text, l.text.len(), program, &c.generations.borrow());
            }
            if !l.stored {
                plans.note_sharing(&l.text, what);
            }
            match program {
                Some(program) => program,
                None => return Ok(None),
            }
        }
    };
    if frequent && !program.finds_one {
        return Ok(None);
    }
    Statement::with_values(conn, &sql[..l.used], program, values).map(Some)
}

/// Compiles the text with parameters in the place of literals, for all statements of this kind. `None`: they do not share.
fn shared_program(conn: &Connection, own: &str, l: &Lifted, decided: bool) -> Result<Option<Rc<Program>>> {
    let shape = Shape::default();
    let Ok(program) = compile_watched(conn, &l.text, Some(&shape)).map(Rc::new) else { return Ok(None) };
    if decided || program.finds_one {
        return Ok(Some(program));
    }
    let Some(shared) = shape.0.get() else { return Ok(None) };
    let as_written = Shape::default();
    compile_watched(conn, own, Some(&as_written))?;
    Ok((as_written.0.get() == Some(shared)).then_some(program))
}

/// Learns in which way a statement finds its rows.
#[derive(Default)]
struct Shape(Cell<Option<u64>>);

impl Watch for Shape {
    fn bound(&self, _: &Select) {}

    fn planned(&self, plan: &StatementPlan) {
        self.0.set(plan.shape());
    }
}

/// Compiles the only statement of a text; `explains` stands for what its beginning says.
pub(crate) fn compile_text_as(
    conn: &Connection,
    sql: &str,
    explains: Option<ExplainMode>,
) -> Result<Program> {
    let limits = conn.0.limits.borrow().clone();
    let mut program = Program::default();
    match iolite_sql::parse_next(sql, &limits)? {
        Some((mut parsed, _)) => {
            parsed.explain = explains.unwrap_or(parsed.explain);
            compile(conn, &mut parsed, sql, &mut program, None)?;
        }
        None => return Err(Error::sql("not a statement")),
    }
    Ok(program)
}

fn compile_watched(conn: &Connection, sql: &str, watch: Option<&dyn Watch>) -> Result<Program> {
    let limits = conn.0.limits.borrow().clone();
    let mut program = Program::default();
    match iolite_sql::parse_next(sql, &limits)? {
        Some((mut parsed, _)) => compile(conn, &mut parsed, sql, &mut program, watch)?,
        None => return Err(Error::sql("not a statement")),
    }
    Ok(program)
}

/// Runs `f` with what binding needs.
pub(crate) fn with_env<T>(conn: &Connection, f: impl FnOnce(&Env<'_>) -> Result<T>) -> Result<T> {
    let c = &conn.0;
    // Copies of handles, so that nothing of the connection is borrowed while names are looked up.
    let catalog = c.catalog.borrow().clone();
    let registry = c.registry.borrow().clone();
    let limits = c.limits.borrow().clone();
    let env = Env {
        catalog: &catalog,
        registry: &registry,
        limits: &limits,
        encoding: c.encoding(),
        quoted_strings: c.settings.double_quoted_strings(),
        connector: conn,
        full_column_names: c.settings.full_column_names(),
        short_column_names: c.settings.short_column_names(),
        automatic_index: c.settings.automatic_index(),
        triggers: c.settings.triggers(),
        views: c.settings.views(),
        trusted_schema: c.settings.trusted_schema(),
        recursive_triggers: c.settings.recursive_triggers(),
        foreign_keys: c.settings.foreign_keys() && !c.txn.is_nested(),
        key_actions: c.settings.key_actions(),
        ignore_checks: c.settings.ignore_checks(),
        writable_schema: c.settings.writable_schema() && !c.settings.defensive(),
        lookahead_filters: c.settings.lookahead_filters(),
        explained: false,
        own: c.txn.is_nested(),
        missing_collations: false,
        authorizer: None,
        virtual_tables: !c.no_virtual.get() || c.txn.is_nested(),
        protects_shadows: c.protects_shadows(),
        watch: None,
    };
    f(&env)
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
    if needs_schema(&parsed.stmt) && !matches!(parsed.stmt, Stmt::Pragma { .. }) {
        conn.0.load_schemas()?;
    }
    if conn.0.sharing.is_some() && conn.0.look_again() {
        // Those who share a cache share what is known of its schema.
        conn.0.load_schemas()?;
    }
    conn.0.check_schema_locks()?;
    let by_missing = |p: &mut Program| {
        *p = Program::default();
        compile_once(conn, parsed, text, (p, true), watch)
    };
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
            by_missing(p)?;
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
    conn.0.name_locks(p);
    Ok(())
}

/// Whether a statement is of a kind that changes files otherwise than by its program's transaction (`sqlite3_stmt_readonly`).
fn changes_files(s: &Stmt) -> bool {
    match s {
        Stmt::Begin(mode) => !matches!(mode, BeginMode::Deferred),
        Stmt::Pragma { name, value } => crate::pragma::changes_files(&name.name.text, value.is_some()),
        Stmt::CreateTable(_) | Stmt::Drop { .. } | Stmt::Vacuum { .. } => true,
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
    let left_out = match authorizer {
        Some(a) => !crate::authorize::before(conn.0.catalog.borrow().clone(), a, &parsed.stmt)?,
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
        crate::authorize::after(conn.0.catalog.borrow().clone(), a, &parsed.stmt)?;
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

/// Runs a program of the engine's own; its rows go to `out`, `most` of them at the most, also if it fails.
pub(crate) fn program_rows(
    conn: &Connection,
    program: Program,
    most: usize,
    out: &mut Vec<Vec<Value>>,
) -> Result<()> {
    let _nested = conn.0.txn.nest();
    let mut s = Statement::new(conn, "", Rc::new(program))?;
    while out.len() < most && s.step()? == crate::statement::Step::Row {
        out.push(s.row().to_vec());
    }
    s.reset()
}

/// Runs SQL of the engine's own, in the transaction and savepoint of the statement that asks.
pub(crate) fn exec_nested(conn: &Rc<Inner>, sql: &str) -> Result<()> {
    nested_rows(conn, sql, &[]).map(|_| ())
}

/// As [`exec_nested`], with parameters; answers the rows.
pub(crate) fn nested_rows(conn: &Rc<Inner>, sql: &str, params: &[Value]) -> Result<Vec<Vec<Value>>> {
    let _nested = conn.txn.nest();
    Connection(conn.clone()).query(sql, params)
}
