//! The programs of small statements, over the schema with which plans are tested: `programs/NAME.sql`, and
//! `NAME.program` beside it.

use iolite_bytecode::Program;
use iolite_testkit::{Planning, golden};
use std::fmt::Write;
use std::path::Path;

fn list(p: &Program, out: &mut String) {
    for r in iolite_bytecode::explain(p) {
        let line = format!("  {:>3} {:<12} {:>3} {:>3} {:>3}  {}", r.addr, r.opcode, r.p1, r.p2, r.p3, r.p4);
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

#[test]
fn plans_become_the_programs_that_they_became_before() {
    let planning = Planning::new(include_str!("../../plan/tests/schema.sql"));
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    golden(&dir, "program", |sql| {
        let plan = planning.plan(sql).expect(sql);
        let mut p = Program::default();
        iolite_codegen::emit(&plan, &iolite_codegen::Settings::default(), None, &mut p).expect(sql);
        let mut out = String::new();
        list(&p, &mut out);
        out
    });
}
