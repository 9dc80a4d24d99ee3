//! The rows of EXPLAIN, EXPLAIN QUERY PLAN and EXPLAIN ANALYZE.
//!
//! EXPLAIN ANALYZE lists the plan with what its run has cost below each line: how often the line was run, the rows it went
//! through, pages read, ticks of the processor's counter and their share; what columns tell of themselves; at the end, under
//! `OPCODES`, the same by instruction, the dearest first, those of triggers included. A line is charged with the instructions
//! that work for it alone, not with those of the lines below it or the loops inside it; what belongs to no line (results of
//! constants, the bodies of triggers, the storing of rows) is in the instructions' list only.

use iolite_base::Result;
use iolite_bytecode::{ColumnMeta, Mark, Opcode, PlanLine, Program, Site};
use iolite_value::Value;
use iolite_vdbe::Cost;
use std::collections::BTreeMap;

/// What EXPLAIN lists instead of the program's rows.
pub(crate) struct Listing {
    pub rows: Vec<Vec<Value>>,
    /// How many of them have been handed out.
    pub next: usize,
    pub names: Vec<ColumnMeta>,
    /// EXPLAIN ANALYZE: the statement is run before the first row is listed. So many rows are the plan's.
    pub analyzes: Option<usize>,
}

/// What a run of EXPLAIN ANALYZE has found.
pub(crate) struct Ran<'a> {
    pub rows: u64,
    pub nanos: u64,
    /// The lines of the plan.
    pub plan: &'a [PlanLine],
    /// What columns tell of themselves, by the number of the source that ran in them.
    pub columns: Vec<(u32, String)>,
    pub sites: &'a [Site],
    pub costs: &'a [Cost],
}

impl Listing {
    /// The rows of `EXPLAIN` (`kind` 1), `EXPLAIN QUERY PLAN` (2) or `EXPLAIN ANALYZE` (3).
    pub fn new(p: &Program, kind: u8) -> Result<Listing> {
        let names = |list: &[&str]| {
            list.iter().map(|n| ColumnMeta { name: (*n).into(), ..Default::default() }).collect()
        };
        if kind == 1 {
            let mut rows = Vec::new();
            for r in iolite_bytecode::explain(p) {
                rows.push(vec![
                    Value::Int(r.addr as i64),
                    Value::text(r.opcode)?,
                    Value::Int(r.p1 as i64),
                    Value::Int(r.p2 as i64),
                    Value::Int(r.p3 as i64),
                    if r.p4.is_empty() { Value::Null } else { Value::text(r.p4)? },
                    Value::Int(r.p5 as i64),
                    Value::Null,
                ]);
            }
            let names = names(&["addr", "opcode", "p1", "p2", "p3", "p4", "p5", "comment"]);
            return Ok(Listing { rows, next: 0, names, analyzes: None });
        }
        let mut rows = Vec::new();
        for l in &p.plan {
            rows.push(line(l.id as i64, l.parent as i64, &l.detail)?);
        }
        let analyzes = (kind == 3).then_some(rows.len());
        Ok(Listing { rows, next: 0, names: names(&["id", "parent", "notused", "detail"]), analyzes })
    }

    /// Puts what a run has found in the place of what a former one had.
    pub fn add(&mut self, ran: &Ran<'_>) -> Result<()> {
        self.rows.truncate(self.analyzes.unwrap_or(0));
        let mut id = self.rows.iter().map(|r| r[0].to_int()).max().unwrap_or(0);
        let lines: Vec<i64> = self.rows.iter().map(|r| r[0].to_int()).collect();
        let total: u64 = ran.instructions().map(|(_, c)| c.ticks).sum();
        for of in lines {
            id += 1;
            let text = ran.line(of as i32, total);
            let at = self.rows.iter().position(|r| r[0].to_int() == of).map_or(self.rows.len(), |i| i + 1);
            self.rows.insert(at, line(id, of, &text)?);
        }
        for (source, text) in &ran.columns {
            id += 1;
            let first = ran.plan.iter().find(|l| l.source == Some(*source));
            let parent = first.map_or(0, |l| l.id as i64);
            // Behind the line that it belongs to, and what else hangs there.
            let belongs = |r: &Vec<Value>| parent != 0 && [&r[0], &r[1]].iter().any(|v| v.to_int() == parent);
            let at = self.rows.iter().rposition(belongs).map_or(self.rows.len(), |i| i + 1);
            self.rows.insert(at, line(id, parent, text)?);
        }
        id += 1;
        let opcodes = id;
        self.rows.push(line(opcodes, 0, "OPCODES")?);
        for text in ran.opcodes(total) {
            id += 1;
            self.rows.push(line(id, opcodes, &text)?);
        }
        let millis = ran.nanos as f64 / 1e6;
        self.rows.push(line(id + 1, 0, &format!("RUN: {} rows, {millis:.3} ms", ran.rows))?);
        Ok(())
    }
}

impl Ran<'_> {
    /// What was run, without the marks that are there for EXPLAIN alone.
    fn instructions(&self) -> impl Iterator<Item = (&Site, &Cost)> {
        self.sites.iter().zip(self.costs).filter(|(s, _)| s.op != Opcode::Explain)
    }

    /// What a line of the plan has cost, of `total` ticks.
    fn line(&self, of: i32, total: u64) -> String {
        let (mut times, mut rows, mut own) = (0, None, Cost::default());
        for (s, c) in self.sites.iter().zip(self.costs) {
            match s.mark {
                Some((Mark::Line, l)) if l == of => times += c.times,
                Some((Mark::Row, l)) if l == of => rows = Some(rows.unwrap_or(0) + c.times),
                _ => {}
            }
        }
        for (_, c) in self.instructions().filter(|(s, _)| s.line == Some(of)) {
            own.ticks += c.ticks;
            own.pages += c.pages;
        }
        let mut text = format!("RAN: {times} times");
        if let Some(rows) = rows {
            text += &format!(", {rows} rows");
        }
        if own.pages > 0 {
            text += &format!(", {} pages read", own.pages);
        }
        text + &spent(own.ticks, total)
    }

    /// A line for each operation that was run, the dearest first.
    fn opcodes(&self, total: u64) -> Vec<String> {
        let mut sums: BTreeMap<&str, Cost> = BTreeMap::new();
        for (s, c) in self.instructions() {
            let sum = sums.entry(s.op.name()).or_default();
            sum.times += c.times;
            sum.ticks += c.ticks;
        }
        let mut sums: Vec<_> = sums.into_iter().filter(|(_, c)| c.times > 0).collect();
        sums.sort_by_key(|(_, c)| std::cmp::Reverse(c.ticks));
        sums.iter().map(|(name, c)| format!("{name}: {} times{}", c.times, spent(c.ticks, total))).collect()
    }
}

fn spent(ticks: u64, total: u64) -> String {
    format!(", {ticks} ticks, {:.1} %", 100.0 * ticks as f64 / total.max(1) as f64)
}

fn line(id: i64, parent: i64, text: &str) -> Result<Vec<Value>> {
    Ok(vec![Value::Int(id), Value::Int(parent), Value::Int(0), Value::text(text)?])
}
