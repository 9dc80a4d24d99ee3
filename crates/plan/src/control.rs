//! What statements ask of the connection: transactions, ATTACH, PRAGMA, VACUUM, ALTER TABLE, ANALYZE.

use crate::bind::Binder;
use crate::bound::Select;
use crate::compiler::Compiler;
use crate::plan::{NestedPlans, SelectPlan};
use crate::planner::Planner;
use crate::statement::control::{Control, ControlKind};
use iolite_base::{Error, Result, Rows};
use iolite_catalog::Catalog;
use iolite_sql::ast::{self, Expr, Literal, Stmt};

/// What a statement asks of the connection, and the expressions that it contains.
pub(crate) fn of_statement(stmt: &Stmt, catalog: &Catalog) -> Result<(ControlKind, Vec<Expr>)> {
    let name = |n: &ast::Name| n.text.as_str().into();
    let kind = match stmt {
        Stmt::Begin(mode) => ControlKind::Begin(*mode),
        Stmt::Commit => ControlKind::Commit,
        Stmt::Rollback => ControlKind::Rollback,
        Stmt::Savepoint(n) => ControlKind::Savepoint(name(n)),
        Stmt::Release(n) => ControlKind::Release(name(n)),
        Stmt::RollbackTo(n) => ControlKind::RollbackTo(name(n)),
        Stmt::Pragma { name, value } => ControlKind::Pragma(name.clone(), value.clone()),
        Stmt::Attach { file, name, .. } => {
            return Ok((ControlKind::Attach, vec![operand(file), operand(name)]));
        }
        Stmt::Detach(name) => return Ok((ControlKind::Detach, vec![operand(name)])),
        Stmt::Vacuum { schema, into } => {
            if let Some(s) = schema.as_ref().filter(|s| catalog.database(&s.text).is_none()) {
                return Err(Error::sql(format!("unknown database {}", s.text)).at(s.span.start));
            }
            let given = into.as_deref().cloned().into_iter().collect();
            return Ok((ControlKind::Vacuum(schema.as_ref().map(name)), given));
        }
        Stmt::AlterTable(a) => ControlKind::AlterTable(a.clone()),
        Stmt::Analyze(what) => ControlKind::Analyze(what.clone()),
        _ => return Err(Error::sql("this statement is not supported yet")),
    };
    Ok((kind, Vec::new()))
}

/// An operand of ATTACH and DETACH, where a bare word stands for itself: `ATTACH file AS name`.
fn operand(e: &Expr) -> Expr {
    match e {
        Expr::Column { schema: None, table: None, column } => {
            Expr::Literal(Literal::Text((*column.text).into()), column.span)
        }
        other => other.clone(),
    }
}

impl Compiler<'_> {
    /// The plan of what the connection carries out, given the values of expressions of `text`, which refer to no table.
    pub fn control(
        &mut self,
        kind: ControlKind,
        given: Vec<Expr>,
        text: &str,
        nested: &mut NestedPlans,
    ) -> Result<Control> {
        if given.is_empty() {
            return Ok(Control { kind, row: None });
        }
        let width = given.len();
        let s = ast::Select {
            with: None,
            first: ast::SelectCore::Values(Rows::one(given)),
            compounds: Vec::new(),
            order_by: Vec::new(),
            limit: None,
            offset: None,
            span: ast::Span::default(),
            number: 0,
        };
        let mut binder = Binder::new(self.env, text);
        let mut bound = Select::with_one_arm();
        binder.select_into(&s, &mut bound)?;
        let mut plan = SelectPlan::with_one_arm();
        Planner::after(self.env, &binder, nested).select_into(&mut bound, &mut plan)?;
        self.databases |= binder.databases;
        Ok(Control { kind, row: Some((Box::new(plan), width)) })
    }
}
