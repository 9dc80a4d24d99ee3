//! Two envelopes beside each other. Runs of different workload versions are refused, different machines warned about.

use crate::Options;
use crate::envelope::Envelope;
use iolite_bench::engine::Result;
use std::path::Path;

/// Prints the table.
pub fn run(o: &Options) -> Result<()> {
    let [a, b] = &o.words[..] else { return Err("two envelopes are wanted".into()) };
    print!("{}", table(&Envelope::read(Path::new(a))?, &Envelope::read(Path::new(b))?)?);
    Ok(())
}

fn table(a: &Envelope, b: &Envelope) -> Result<String> {
    let mut out = String::new();
    let place = |e: &Envelope| (e.machine.cpu.clone(), e.machine.cores, e.machine.file_system.clone());
    if place(a) != place(b) {
        out.push_str("warning: the machines differ\n");
    }
    for e in [a, b] {
        if e.dirty {
            out.push_str(&format!("warning: {} had changes that are not committed\n", e.commit));
        }
    }
    out.push_str("| workload | case | configuration | engine | A | B | unit | B better by |\n");
    out.push_str("|---|---|---|---|---:|---:|---|---:|\n");
    for r in &a.runs {
        let Some(s) = b.run(&r.workload) else { continue };
        if r.version != s.version {
            let (id, v, w) = (&r.workload, r.version, s.version);
            return Err(format!("{id}: versions {v} and {w} measure different things").into());
        }
        for x in &r.rows {
            let Some(y) = s.row(&x.case, &x.config, &x.engine) else { continue };
            let (p, q) = (x.summary.median, y.summary.median);
            let better = if x.more { q / p } else { p / q };
            out.push_str(&format!(
                "| {} | {} | {} | {} | {p:.3} | {q:.3} | {} | {better:.2} |\n",
                r.workload, x.case, x.config, x.engine, x.unit
            ));
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::Run;

    fn one(version: u32, us: f64) -> Envelope {
        let mut run = Run { workload: "w".into(), version, ..Run::default() };
        run.less("c", "", "iolite", "us", vec![us]);
        Envelope { runs: vec![run], ..Envelope::default() }
    }

    #[test]
    fn versions_must_agree() {
        assert!(table(&one(1, 2.0), &one(1, 1.0)).unwrap().contains("| 2.00 |"));
        assert!(table(&one(1, 2.0), &one(2, 1.0)).is_err());
    }
}
