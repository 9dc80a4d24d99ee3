//! One self-contained page out of envelopes: targets first, then each workload with charts and tables, then what is missing.
//!
//! No script, no style, no picture from elsewhere; no figure that is not in an envelope.

use crate::Options;
use crate::envelope::{Envelope, Row, Run};
use crate::html::{Bar, bars, colour, escape, figure, table};
use crate::targets;
use iolite_bench::engine::Result;

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;color:#222}\
table{border-collapse:collapse;margin:1em 0;font-size:13px}td,th{padding:3px 9px;border-bottom:1px solid #ddd;text-align:left;\
vertical-align:top}td.n{text-align:right;font-variant-numeric:tabular-nums}svg text{font:11px sans-serif}svg .t{font-weight:bold;\
font-size:13px}svg .v{fill:#555}h2{margin-top:2.2em;border-top:2px solid #3157c8;padding-top:.4em}pre{background:#f5f5f5;padding:8px;\
font-size:12px;overflow:auto}.met{color:#1b7a2f}.missed{color:#b3261e}.missing{color:#8a6d00}details{margin:.6em 0}\
.bad{background:#fdecea;padding:4px 8px}";

/// Writes the page.
pub fn run(o: &Options) -> Result<()> {
    let e = crate::read_all(&o.words)?;
    let out = o.text("out").unwrap_or("bench/report.html");
    std::fs::write(out, page(&e))?;
    println!("wrote {out}");
    Ok(())
}

fn page(e: &Envelope) -> String {
    let mut s = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>iolite: benchmarks</title><style>{STYLE}</style>\
         <h1>iolite: benchmarks</h1>"
    );
    s.push_str(&about(e));
    s.push_str("<h2>Targets</h2>");
    s.push_str(&target_table(e));
    for r in &e.runs {
        s.push_str(&workload(r));
    }
    s.push_str("<h2>Missing</h2><ul>");
    for r in &e.runs {
        for m in &r.missing {
            s.push_str(&format!("<li>{}: {}</li>", escape(&r.title), escape(m)));
        }
    }
    for p in e.engines.iter().filter_map(|p| p.absent.as_ref().map(|a| (&p.name, a))) {
        s.push_str(&format!("<li>engine {}: {}</li>", escape(p.0), escape(p.1)));
    }
    for w in crate::workload::ALL.iter().filter(|w| e.run(w.id).is_none()) {
        s.push_str(&format!("<li>{}: not run</li>", escape(w.title)));
    }
    s + "</ul></html>\n"
}

fn about(e: &Envelope) -> String {
    let m = &e.machine;
    let gb = |b: f64| format!("{:.1} GB", b / 1e9);
    let mut rows = vec![vec!["".into(), "".into()]];
    let mut line = |a: &str, b: String| rows.push(vec![a.into(), b]);
    line("machine", format!("{}, {} cores, {}, Linux {}", m.cpu, m.cores, gb(m.memory as f64), m.kernel));
    line("files on", m.file_system.clone());
    line("memory, one core", format!("{}/s", gb(m.memory_bandwidth)));
    line("append of 4 KB and fdatasync", format!("{} us", figure(m.fdatasync * 1e6)));
    line("commit", format!("{}{}", e.commit, if e.dirty { ", with changes" } else { "" }));
    for p in e.engines.iter().filter(|p| p.version.is_some()) {
        line(&p.name, p.version.clone().unwrap_or_default());
    }
    for c in &e.command {
        line("command", c.clone());
    }
    let legend: Vec<String> = ["iolite", "iolite rows", "stock", "duckdb", "berkeley", "lmdb", "file"]
        .map(|n| format!("<span style='color:{}'>&#9632;</span> {n}", colour(n)))
        .to_vec();
    format!(
        "<p>Bars are medians, thin lines run from the first to the third quartile. Engines took turns in one run, with equal \
         settings where they have the same ones; answers were compared before times counted. Load averages are given for \
         each workload, since the machine is not ours alone.</p>{}<p>{}</p>",
        table(&rows),
        legend.join(" &nbsp; ")
    )
}

fn target_table(e: &Envelope) -> String {
    let mut s = String::from(
        "<table><tr><th>target<th>wanted<th>reached<th>quartiles<th>verdict<th>tried, and what stands in the way</tr>",
    );
    for o in targets::outcomes(e) {
        s.push_str(&format!(
            "<tr><td>{}<td>{}<td class=n>{}<td class=n>{}<td class={v}>{v}<td>{}</tr>",
            escape(&o.what),
            escape(&o.want),
            escape(&o.reached),
            escape(&o.spread),
            escape(o.behind()),
            v = o.verdict
        ));
    }
    s + "</table>"
}

/// Configurations in the order in which they came, each with its rows.
fn by<'r>(rows: impl Iterator<Item = &'r Row>, key: impl Fn(&Row) -> String) -> Vec<(String, Vec<&'r Row>)> {
    let mut out: Vec<(String, Vec<&Row>)> = Vec::new();
    for r in rows {
        let k = key(r);
        match out.iter_mut().find(|x| x.0 == k) {
            Some(x) => x.1.push(r),
            None => out.push((k, vec![r])),
        }
    }
    out
}

fn workload(r: &Run) -> String {
    let mut s = format!(
        "<h2 id='{0}'>{1}</h2><p>Version {2} of <code>{0}</code>",
        r.workload,
        escape(&r.title),
        r.version
    );
    if !r.scale.is_empty() {
        s.push_str(&format!("; {}", escape(&r.scale.join(", "))));
    }
    s.push_str(&format!("; {:.0} s; load {:.1} to {:.1}.</p>", r.seconds, r.load[0], r.load[1]));
    for f in &r.failures {
        s.push_str(&format!("<p class=bad>{}</p>", escape(f)));
    }
    for (unit, rows) in by(r.rows.iter(), |x| x.unit.clone()) {
        for (config, rows) in by(rows.into_iter(), |x| x.config.clone()) {
            let groups = by(rows.into_iter(), |x| x.case.clone());
            let groups: Vec<_> = groups
                .into_iter()
                .map(|(case, rows)| {
                    let bar = |x: &&Row| Bar {
                        label: x.engine.clone(),
                        series: x.engine.clone(),
                        value: x.summary.median,
                        spread: (x.summary.q1, x.summary.q3),
                    };
                    (case, rows.iter().map(bar).collect())
                })
                .collect();
            let more = r.rows.iter().any(|x| x.unit == unit && x.more);
            let sense = if more { "more is better" } else { "less is better" };
            let title = if config.is_empty() { sense.to_string() } else { format!("{config}; {sense}") };
            s.push_str(&bars(&title, &unit, &groups));
        }
    }
    s.push_str(&format!("<details><summary>Figures</summary>{}</details>", table(&figures(r))));
    let mut settings = vec![
        ["configuration", "engine", "settings", "kept after a loss of power"].map(String::from).to_vec(),
    ];
    settings.extend(
        r.settings
            .iter()
            .map(|x| vec![x.config.clone(), x.engine.clone(), x.text.clone(), x.durability.clone()]),
    );
    s.push_str(&format!("<details><summary>Settings</summary>{}</details>", table(&settings)));
    let gates: Vec<String> = r.gates.iter().map(|g| format!("<li>{}</li>", escape(g))).collect();
    s.push_str(&format!(
        "<details><summary>What was compared first</summary><ul>{}</ul></details>",
        gates.concat()
    ));
    for (title, text) in &r.texts {
        s.push_str(&format!(
            "<details><summary>{}</summary><pre>{}</pre></details>",
            escape(title),
            escape(text)
        ));
    }
    s
}

fn figures(r: &Run) -> Vec<Vec<String>> {
    let heads = [
        "case",
        "configuration",
        "engine",
        "median",
        "least",
        "q1",
        "q3",
        "n",
        "unit",
        "lead over stock",
        "percentiles, us",
    ];
    let mut out = vec![heads.map(String::from).to_vec()];
    for x in &r.rows {
        let s = &x.summary;
        let lead = r.lead(&x.case, &x.config, &x.engine, "stock").filter(|_| x.engine != "stock");
        let p: Vec<String> =
            x.percentiles.iter().map(|(p, v)| format!("p{} {}", p * 100.0, figure(*v))).collect();
        out.push(vec![
            x.case.clone(),
            x.config.clone(),
            x.engine.clone(),
            figure(s.median),
            figure(s.min),
            figure(s.q1),
            figure(s.q3),
            s.n.to_string(),
            x.unit.clone(),
            lead.map_or(String::new(), |l| figure(l.value)),
            p.join(", "),
        ]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_stands_alone_and_names_what_is_missing() {
        let mut run = Run { workload: "row".into(), title: "Rows <here>".into(), ..Run::default() };
        run.less("point", "", "iolite", "us", vec![1.0]);
        run.failures.push("an answer is wrong".into());
        run.missing.push("a feature".into());
        let p = page(&Envelope { runs: vec![run], ..Envelope::default() });
        for want in ["Rows &lt;here&gt;", "an answer is wrong", "a feature", "<svg", "TPC-H: not run"] {
            assert!(p.contains(want), "{want}");
        }
        assert!(!p.contains("<script") && !p.contains("http"));
    }
}
