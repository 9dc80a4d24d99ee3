//! What has been run: statement kinds, functions, opcodes.

use iolite_bytecode::{Opcode, Program};
use std::collections::BTreeMap;

/// Counts.
#[derive(Clone, Default)]
pub struct Coverage {
    /// Statements by kind: all, errors, queries, empty results.
    pub kinds: BTreeMap<&'static str, [usize; 4]>,
    /// Calls by function.
    pub functions: BTreeMap<&'static str, usize>,
    /// Programs that hold an opcode.
    pub opcodes: BTreeMap<&'static str, usize>,
}

impl Coverage {
    /// Notes a compiled program.
    pub fn program(&mut self, _kind: &'static str, p: &Program) {
        let mut seen = [false; 256];
        let mut all = vec![p];
        all.extend(p.subprograms.iter().map(|s| &**s));
        for p in all {
            for i in &p.insns {
                let at = i.op as usize;
                if !seen[at] {
                    seen[at] = true;
                    *self.opcodes.entry(i.op.name()).or_default() += 1;
                }
            }
        }
    }

    /// Notes a statement's outcome.
    pub fn outcome(&mut self, kind: &'static str, failed: bool, query: bool, empty: bool) {
        let k = self.kinds.entry(kind).or_default();
        k[0] += 1;
        k[1] += failed as usize;
        k[2] += (query && !failed) as usize;
        k[3] += (query && !failed && empty) as usize;
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Coverage) {
        for (k, v) in &other.kinds {
            let mine = self.kinds.entry(k).or_default();
            for i in 0..4 {
                mine[i] += v[i];
            }
        }
        for (k, v) in &other.functions {
            *self.functions.entry(k).or_default() += v;
        }
        for (k, v) in &other.opcodes {
            *self.opcodes.entry(k).or_default() += v;
        }
    }

    /// The tables, least first within each.
    pub fn print(&self, functions: &[&'static str]) {
        let mut sum = [0; 4];
        println!("\nkind                       count   errors    empty");
        for (k, v) in &self.kinds {
            println!("{k:24} {:7} {:7.1}% {:7.1}%", v[0], percent(v[1], v[0]), percent(v[3], v[2]));
            for i in 0..4 {
                sum[i] += v[i];
            }
        }
        println!(
            "{:24} {:7} {:7.1}% {:7.1}%",
            "all",
            sum[0],
            percent(sum[1], sum[0]),
            percent(sum[3], sum[2])
        );
        let count = |f: &&'static str| (self.functions.get(f).copied().unwrap_or(0), *f);
        list("functions", functions.iter().map(count).collect());
        let count = |o: &Opcode| (self.opcodes.get(o.name()).copied().unwrap_or(0), o.name());
        list("opcodes", Opcode::ALL.iter().map(count).collect());
    }
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

fn list(title: &str, mut rows: Vec<(usize, &'static str)>) {
    rows.sort();
    let below = rows.iter().filter(|r| r.0 < 100).count();
    println!("\n{title}: {} in all, {below} below 100", rows.len());
    for chunk in rows.chunks(6) {
        println!("{}", chunk.iter().map(|(n, f)| format!("{f} {n}")).collect::<Vec<_>>().join(", "));
    }
}
