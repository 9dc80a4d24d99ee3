//! The plans of small statements over one schema: `plans/NAME.sql`, and `NAME.plan` beside it.

use iolite_testkit::{Planning, golden};
use std::path::Path;

#[test]
fn statements_are_planned_as_before() {
    let planning = Planning::new(include_str!("schema.sql"));
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans");
    golden(&dir, "plan", |sql| match planning.plan(sql) {
        Ok(plan) => iolite_plan::print::statement(&plan),
        Err(e) => format!("  error: {}\n", e.message()),
    });
}
