//! The programs of small statements, over the schema with which plans are tested: `programs/NAME.sql`, and
//! `NAME.program` beside it; in `sources`, where somebody else runs blocks.

use iolite_bytecode::Program;
use iolite_plan::StatementPlan;
use iolite_testkit::{Planning, golden};
use std::fmt::Write;
use std::path::Path;

fn list(p: &Program, out: &mut String) {
    for r in iolite_bytecode::explain(p) {
        let line = format!("  {:>3} {:<12} {:>3} {:>3} {:>3}  {}", r.addr, r.opcode, r.p1, r.p2, r.p3, r.p4);
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

fn program(plan: &StatementPlan) -> String {
    let mut p = Program::default();
    iolite_codegen::emit(plan, &iolite_codegen::Settings::default(), None, &mut p).expect("a program");
    let mut out = String::new();
    list(&p, &mut out);
    out
}

#[test]
fn plans_become_the_programs_that_they_became_before() {
    let planning = Planning::new(include_str!("../../plan/tests/schema.sql"));
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    golden(&dir, "program", |sql| program(&planning.plan(sql).expect(sql)));
}

#[test]
fn sources_stand_where_the_plan_has_them() {
    let planning = Planning::new(include_str!("../../plan/tests/schema.sql"));
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sources");
    golden(&dir, "program", |sql| program(&planning.plan_with_executor(sql).expect(sql)));
}
