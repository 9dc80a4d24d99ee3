//! The envelope of a run: what was measured, on what, with which settings. JSON outside, plain data inside.
//!
//! Figures are written once, by the run; `compare` and `report` only read them.

use crate::engine::Presence;
use crate::machine::Machine;
use crate::stats::{self, Ratio, Summary};
use iolite_bench::engine::Result;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The version of this file's shape.
pub const FORMAT: u32 = 1;

/// A run of one or several workloads.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Default)]
pub struct Envelope {
    /// [`FORMAT`].
    pub format: u32,
    /// Seconds since 1970.
    pub created: u64,
    /// The command.
    pub command: Vec<String>,
    /// The commit of the sources.
    pub commit: String,
    /// Whether the sources differed from the commit.
    pub dirty: bool,
    /// The build's profile.
    pub profile: String,
    /// The machine.
    pub machine: Machine,
    /// The engines.
    pub engines: Vec<Presence>,
    /// The workloads.
    pub runs: Vec<Run>,
}

/// A workload's run.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Default)]
pub struct Run {
    /// Which workload.
    pub workload: String,
    /// Its version tag: raised when its shape changes.
    pub version: u32,
    /// What it is.
    pub title: String,
    /// Arguments that differ from the defaults, and scales.
    pub scale: Vec<String>,
    /// Settings and durability of each engine.
    pub settings: Vec<Setting>,
    /// What was compared before times counted.
    pub gates: Vec<String>,
    /// The figures.
    pub rows: Vec<Row>,
    /// Texts that belong to the figures: plans, counts of system calls.
    pub texts: Vec<(String, String)>,
    /// Wrong answers and errors.
    pub failures: Vec<String>,
    /// What needs something that does not exist.
    pub missing: Vec<String>,
    /// Load averages when it began and ended.
    pub load: [f64; 2],
    /// Seconds it took.
    pub seconds: f64,
}

/// An engine's settings.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Default)]
pub struct Setting {
    /// For which configuration.
    pub config: String,
    /// Of which engine.
    pub engine: String,
    /// The statements.
    pub text: String,
    /// What is kept after a loss of power.
    pub durability: String,
}

/// One figure of one engine.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Default)]
pub struct Row {
    /// What was measured.
    pub case: String,
    /// In which configuration.
    pub config: String,
    /// By which engine.
    pub engine: String,
    /// The unit.
    pub unit: String,
    /// Whether more is better.
    pub more: bool,
    /// The samples, in the order of turns.
    pub samples: Vec<f64>,
    /// Their summary.
    pub summary: Summary,
    /// Latencies in microseconds: share and value.
    pub percentiles: Vec<(f64, f64)>,
}

impl Run {
    /// Adds a figure where less is better.
    pub fn less(&mut self, case: &str, config: &str, engine: &str, unit: &str, samples: Vec<f64>) {
        self.add(case, config, engine, unit, false, samples);
    }

    /// Adds a figure where more is better.
    pub fn more(&mut self, case: &str, config: &str, engine: &str, unit: &str, samples: Vec<f64>) {
        self.add(case, config, engine, unit, true, samples);
    }

    fn add(&mut self, case: &str, config: &str, engine: &str, unit: &str, more: bool, samples: Vec<f64>) {
        let s = stats::summary(&samples);
        eprintln!("  {case} | {config} | {engine} | {:.4} {unit} ({:.4} to {:.4})", s.median, s.q1, s.q3);
        self.rows.push(Row {
            case: case.into(),
            config: config.into(),
            engine: engine.into(),
            unit: unit.into(),
            more,
            summary: s,
            samples,
            percentiles: Vec::new(),
        });
    }

    /// Notes settings of an engine in a configuration.
    pub fn set(&mut self, config: &str, engine: &str, text: &str, durability: &str) {
        let s = Setting {
            config: config.into(),
            engine: engine.into(),
            text: text.into(),
            durability: durability.into(),
        };
        if !self.settings.contains(&s) {
            self.settings.push(s);
        }
    }

    /// The figure.
    pub fn row(&self, case: &str, config: &str, engine: &str) -> Option<&Row> {
        self.rows.iter().find(|r| r.case == case && r.config == config && r.engine == engine)
    }

    /// How many times as good `engine` is as `other`: above one it is ahead.
    pub fn lead(&self, case: &str, config: &str, engine: &str, other: &str) -> Option<Ratio> {
        let (a, b) = (self.row(case, config, engine)?, self.row(case, config, other)?);
        if a.more { stats::ratio(&a.samples, &b.samples) } else { stats::ratio(&b.samples, &a.samples) }
    }
}

impl Envelope {
    /// The last run of a workload.
    pub fn run(&self, workload: &str) -> Option<&Run> {
        self.runs.iter().rev().find(|r| r.workload == workload)
    }

    /// Reads one.
    pub fn read(path: &Path) -> Result<Envelope> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let e: Envelope = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        if e.format != FORMAT {
            return Err(format!("{}: format {}, not {FORMAT}", path.display(), e.format).into());
        }
        Ok(e)
    }

    /// Writes it.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(|e| e.to_string())?;
        if let Some(d) = path.parent() {
            std::fs::create_dir_all(d)?;
        }
        Ok(std::fs::write(path, text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        let mut run = Run { workload: "row".into(), version: 3, ..Run::default() };
        run.less("point", "WAL", "iolite", "us", vec![1.0, 2.5, 0.1]);
        run.more("tps", "WAL", "stock", "tx/s", vec![1e6]);
        run.rows[0].percentiles = vec![(0.99, 12.25)];
        run.set("WAL", "stock", "PRAGMA x", "each commit");
        run.set("WAL", "stock", "PRAGMA x", "each commit");
        assert_eq!(run.settings.len(), 1);
        let e = Envelope { format: FORMAT, runs: vec![run], ..Envelope::default() };
        let path = std::env::temp_dir().join(format!("iolite-envelope-{}.json", std::process::id()));
        e.write(&path).unwrap();
        let back = Envelope::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(back, e);
    }

    #[test]
    fn leads_point_the_same_way() {
        let mut run = Run::default();
        run.less("a", "", "iolite", "us", vec![1.0]);
        run.less("a", "", "stock", "us", vec![3.0]);
        run.more("b", "", "iolite", "op/s", vec![300.0]);
        run.more("b", "", "stock", "op/s", vec![100.0]);
        assert_eq!(run.lead("a", "", "iolite", "stock").unwrap().value, 3.0);
        assert_eq!(run.lead("b", "", "iolite", "stock").unwrap().value, 3.0);
        assert!(run.lead("c", "", "iolite", "stock").is_none());
    }
}
