//! The plans of small statements over one schema: `plans/NAME.sql`, and `NAME.plan` beside it; in `executors`, as they are
//! when somebody else runs blocks, with the lines of EXPLAIN QUERY PLAN.

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

#[test]
fn executors_are_chosen_as_before() {
    let planning = Planning::new(include_str!("schema.sql"));
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/executors");
    golden(&dir, "plan", |sql| {
        let plan = planning.plan_with_executor(sql).expect(sql);
        let mut out = iolite_plan::print::statement(&plan);
        for l in iolite_plan::explain::explain(&plan, false).list {
            let source = l.source.map_or(String::new(), |n| format!(" [source {n}]"));
            out += &format!("  {} below {}: {}{source}\n", l.id, l.parent, l.detail);
        }
        out
    });
}
