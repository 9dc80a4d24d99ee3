//! From a parsed statement to its plan: binds, then plans, and notes what the whole statement uses.

use crate::bind::{Binder, Env};
use crate::bound::Select;
use crate::compiler::Compiler;
use crate::control;
use crate::plan::SelectPlan;
use crate::planner::Planner;
use crate::statement::control::Control;
use crate::statement::modify::ModifyPlan;
use crate::statement::{Body, StatementPlan};
use iolite_base::{Code, Result};
use iolite_catalog::{Index, Table};
use iolite_sql::ast::{self, Parsed, Stmt};
use std::rc::Rc;

impl Compiler<'_> {
    /// A query.
    fn query(&mut self, s: &ast::Select, text: &str, out: &mut StatementPlan) -> Result<()> {
        out.body = Body::Query(SelectPlan::with_one_arm());
        let Body::Query(plan) = &mut out.body else { return Ok(()) };
        let mut bound = Select::with_one_arm();
        let mut b = Binder::new(self.env, text);
        b.selects = out.selects;
        b.is_query();
        let done = b.select_into(s, &mut bound);
        if b.leaves_out() {
            out.body = StatementPlan::default().body;
            return Ok(());
        }
        done?;
        self.env.show_bound(&bound);
        Planner::after(self.env, &b, &mut out.nested).reads_only().select_into(&mut bound, plan)?;
        self.databases |= b.databases;
        out.selects = b.selects;
        Ok(())
    }

    /// INSERT, UPDATE or DELETE.
    fn modify(&mut self, stmt: &Stmt, text: &str, out: &mut StatementPlan) -> Result<ModifyPlan> {
        let nested = &mut out.nested;
        let mut b = Binder::new(self.env, text);
        b.selects = out.selects;
        let plan = match stmt {
            Stmt::Insert(s) => {
                let bound = b.insert(s)?;
                self.insert(bound, Planner::after(self.env, &b, nested))
            }
            Stmt::Update(s) => {
                let bound = b.update(s)?;
                self.update(bound, Planner::after(self.env, &b, nested))
            }
            Stmt::Delete(s) => {
                let bound = b.delete(s)?;
                self.delete(bound, Planner::after(self.env, &b, nested))
            }
            _ => Err(Code::Internal.into()),
        };
        self.databases |= b.databases;
        out.selects = b.selects;
        plan
    }
}

/// Plans a statement of `text`, into a plan that is as [`StatementPlan::default`] makes it.
pub fn compile(parsed: &Parsed, text: &str, env: &Env<'_>, out: &mut StatementPlan) -> Result<()> {
    let mut c = Compiler::new(env);
    out.selects = parsed.selects;
    match &parsed.stmt {
        Stmt::Select(s) => c.query(s, text, out)?,
        Stmt::Insert(_) | Stmt::Update(_) | Stmt::Delete(_) => {
            out.body = Body::Modify(Box::new(c.modify(&parsed.stmt, text, out)?));
        }
        Stmt::CreateTable(_)
        | Stmt::CreateIndex(_)
        | Stmt::CreateView(_)
        | Stmt::CreateTrigger(_)
        | Stmt::CreateVirtualTable(_)
        | Stmt::Drop { .. }
        | Stmt::Reindex(_) => {
            let mut binder = Binder::new(env, text);
            let plan = c.define(&mut binder, &parsed.stmt, parsed.span.of(text), &mut out.nested)?;
            c.databases |= binder.databases;
            out.body = Body::Define(plan);
        }
        stmt => {
            let (kind, given) = control::of_statement(stmt, env.catalog)?;
            out.body = Body::Control(c.control(kind, given, text, &mut out.nested)?);
        }
    }
    c.finish(out);
    Ok(())
}

/// A plan that does nothing, into one that is as [`StatementPlan::default`] makes it.
pub fn idle(env: &Env<'_>, out: &mut StatementPlan) {
    Compiler::new(env).finish(out);
}

/// The plan of work that the connection carries out in databases that it reads and writes.
pub fn work(env: &Env<'_>, reads: &[usize], writes: &[usize]) -> StatementPlan {
    let mut c = Compiler::new(env);
    let mut out = StatementPlan { body: Body::Control(Control::work()), ..StatementPlan::default() };
    reads.iter().for_each(|db| c.databases |= 1 << db);
    writes.iter().for_each(|db| c.writes(*db));
    c.undo = !writes.is_empty();
    c.finish(&mut out);
    out
}

/// The plan that tells of each row of a table whether it meets the CHECK constraints (if they are asked for), its computed columns, and
/// its entries in these of the table's indexes, which are in the catalog's order.
pub fn row_check(
    env: &Env<'_>,
    db: usize,
    table: &Rc<Table>,
    checks: bool,
    indexes: &[Rc<Index>],
) -> Result<StatementPlan> {
    let mut c = Compiler::new(env);
    let mut out = StatementPlan::default();
    let mut target = Binder::new(env, "").target(db, table)?;
    if !checks {
        target.checks.clear();
    }
    target.indexes.retain(|t| indexes.iter().any(|i| Rc::ptr_eq(i, &t.index)));
    c.databases |= 1 << db;
    out.body = Body::RowCheck(Box::new(target));
    c.finish(&mut out);
    Ok(out)
}
