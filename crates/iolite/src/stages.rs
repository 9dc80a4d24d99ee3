//! All stages of one statement as text, as they are when it is compiled; ARCHITECTURE.md quotes some.

use crate::compile::Watch;
use crate::connection::Connection;
use iolite_base::{Error, Result};
use iolite_bytecode::Program;
use iolite_plan::StatementPlan;
use iolite_plan::bound::Select;
use std::cell::RefCell;
use std::fmt::Write;

/// What was seen between the stages.
struct Seen(RefCell<String>);

impl Watch for Seen {
    fn bound(&self, query: &Select) {
        let out = &mut *self.0.borrow_mut();
        let _ = writeln!(out, "bound query\n{}", iolite_plan::print::bound(query));
    }

    fn planned(&self, plan: &StatementPlan) {
        let out = &mut *self.0.borrow_mut();
        let _ = writeln!(out, "plan\n{}", iolite_plan::print::statement(plan));
    }
}

/// The life of the first statement of a text: AST, bound query, plan, program.
pub fn stages(conn: &Connection, sql: &str) -> Result<String> {
    let limits = conn.0.limits.borrow().clone();
    let Some((mut parsed, _)) = iolite_sql::parse_next(sql, &limits)? else {
        return Err(Error::sql("not a statement"));
    };
    let seen = Seen(RefCell::default());
    let ast = iolite_sql::print::parsed_explicit(&parsed);
    let mut program = Program::default();
    crate::compile::compile(conn, &mut parsed, sql, &mut program, Some(&seen))?;
    let mut out = format!(
        "text\n  {sql}\n\nAST, printed back with every operator in parentheses\n  {ast}\n\n{}program\n",
        seen.0.into_inner()
    );
    list(&program, &mut out);
    Ok(out)
}

fn list(program: &Program, out: &mut String) {
    for r in iolite_bytecode::explain(program) {
        let line = format!("  {:>3} {:<12} {:>3} {:>3} {:>3}  {}", r.addr, r.opcode, r.p1, r.p2, r.p3, r.p4);
        let _ = writeln!(out, "{}", line.trim_end());
    }
}
