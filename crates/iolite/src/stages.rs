//! All stages of one statement as text: what `cargo xtask stages` prints and ARCHITECTURE.md quotes.

use crate::connection::Connection;
use crate::run::with_env;
use iolite_base::Result;
use iolite_plan::Planner;
use iolite_plan::bind::Binder;
use iolite_sql::ast::Stmt;
use std::fmt::Write;

/// The journey of a SELECT: AST, bound query, plan, program. Other statements show their AST and program.
pub fn stages(conn: &Connection, sql: &str) -> Result<String> {
    let mut out = String::new();
    let parsed = iolite_sql::parse_stmt(sql)?;
    let _ = writeln!(out, "text\n  {sql}\n");
    let _ = writeln!(
        out,
        "AST, printed back with every operator in parentheses\n  {}\n",
        iolite_sql::print::parsed_explicit(&parsed)
    );
    if let Stmt::Select(s) = &parsed.stmt {
        conn.0.load_schemas()?;
        with_env(conn, |env| {
            let bound = Binder::new(env, sql).select(s)?;
            let _ = writeln!(out, "bound query");
            for c in &bound.cores {
                for s in &c.sources {
                    let _ = writeln!(out, "  table {}: {:?} as {}", s.id, s.kind, s.name);
                }
                for f in &c.filter {
                    let _ = writeln!(out, "  filter {}", f.expr);
                }
                for (e, k) in c.result.iter().zip(&bound.columns) {
                    let _ = writeln!(out, "  result {} = {e}", k.meta.name);
                }
            }
            let plan = Planner::new(env).select(bound)?;
            let _ = writeln!(out, "\nplan");
            for (c, l) in plan.cores.iter().flat_map(|c| c.levels.iter().map(move |l| (c, l))) {
                let _ = writeln!(out, "  {}", iolite_plan::print::level(l, c.extreme));
                for f in &l.filter {
                    let _ = writeln!(out, "    then test {f}");
                }
            }
            if !plan.order_by.is_empty() && !plan.ordered {
                let _ = writeln!(out, "  sort");
            }
            Ok(())
        })?;
    }
    let s = conn.prepare(sql)?;
    let _ = writeln!(out, "\nprogram");
    for r in s.explain() {
        let line = format!("  {:>3} {:<12} {:>3} {:>3} {:>3}  {}", r.addr, r.opcode, r.p1, r.p2, r.p3, r.p4);
        let _ = writeln!(out, "{}", line.trim_end());
    }
    Ok(out)
}
