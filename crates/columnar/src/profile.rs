//! What a run in columns writes down for EXPLAIN ANALYZE. Without somebody who asks, no clock is read.

use crate::store::Loaded;
use std::cell::RefCell;

/// Lines about a run.
#[derive(Default)]
pub struct Profile(RefCell<Vec<String>>);

/// What happened in a scan: rows, and nanoseconds.
#[derive(Default)]
pub(crate) struct Phases {
    pub vectors: u64,
    pub excluded: u64,
    pub rows: u64,
    pub selected: u64,
    pub taken: u64,
    /// Joined rows before the conditions on several tables.
    pub tested: u64,
    pub filter: u64,
    pub join: u64,
    pub take: u64,
}

/// A time, to be read.
pub(crate) fn shown(nanos: u64) -> String {
    format!("{:.3} ms", nanos as f64 / 1e6)
}

impl Profile {
    /// The lines.
    pub fn into_lines(self) -> Vec<String> {
        self.0.into_inner()
    }

    pub(crate) fn line(&self, text: String) {
        self.0.borrow_mut().push(text);
    }

    /// A table's columns were read; of segments decoded, patched, of leaves hashed, of chunks from the sidecar.
    pub(crate) fn loaded(&self, name: &str, l: &Loaded, before: [u64; 4], now: [u64; 4], nanos: u64) {
        let bytes: usize = l.parts.iter().flat_map(|p| &p.cols).map(|c| c.bytes()).sum();
        let mut text = format!(
            "COLUMNS OF {name}: {} rows, {} segments, {} columns, {} bytes",
            l.rows,
            l.parts.len(),
            l.dicts.len(),
            bytes
        );
        let words = ["segments decoded", "segments patched", "pages hashed", "chunks from the sidecar"];
        for ((word, a), b) in words.iter().zip(before).zip(now) {
            if b > a {
                text += &format!(", {} {word}", b - a);
            }
        }
        let away = l.parts.iter().filter(|p| p.away).count();
        if away > 0 {
            text += &format!(", {away} segments brought as the scan comes to them");
        }
        self.line(format!("{text}, {}", shown(nanos)));
    }

    /// The outer table went by.
    pub(crate) fn scanned(&self, name: &str, segments: usize, p: &Phases) {
        self.line(format!(
            "SCAN OF {name}: {} rows, {} vectors, {} of {segments} segments excluded, {} rows selected, {} joined; \
             filter {}, join {}, group or collect {}",
            p.rows,
            p.vectors,
            p.excluded,
            p.selected,
            p.taken,
            shown(p.filter),
            shown(p.join),
            shown(p.take)
        ));
    }
}
