//! Whether a first run in columns would take longer than the same arm in rows.
//!
//! Columns that no query has read yet have to be decoded from every leaf of their tables; loops that seek a few rows by an
//! index need not wait for that. So an arm whose loops are estimated to be clearly faster than decoding is left to rows
//! when it is wanted for the first time; wanted again, its columns are built, and are there from then on. Measured:
//! six million rows on 220,000 leaves are scanned in rows in 0.5 s, and decoded in 0.4 to 0.9 s for one to ten columns; a
//! row sought by an index takes 0.5 to 1 us.

use crate::ask::Query;
use crate::decode::ColKey;
use crate::run::Runtime;
use iolite_base::Result;
use iolite_plan::plan::{Access, CorePlan};

/// Nanoseconds for a leaf that is scanned in rows.
const LEAF: f64 = 2_200.0;
/// For a row that is sought.
const SEEK: f64 = 800.0;
/// For a row of the result, and for each of its aggregates.
const ROW: f64 = 60.0;
/// For a leaf that is decoded, and for each column.
const DECODE: (f64, f64) = (1_500.0, 300.0);
/// Rows must be so many times faster.
const CLEARLY: f64 = 1.5;

/// What the loops of an arm are estimated to take.
#[derive(Clone, Copy, Default)]
pub(crate) struct Loops {
    /// They begin with all rows of their first table.
    pub scans: bool,
    /// All else, in nanoseconds.
    pub rest: f64,
    /// How often the innermost one goes round.
    pub rounds: f64,
}

impl Loops {
    /// Those of a plan.
    pub fn of(c: &CorePlan) -> Loops {
        let (mut rest, mut rounds, mut scans) = (0.0, 1.0f64, false);
        for (i, l) in c.levels.iter().enumerate() {
            let all = matches!(l.access, Access::Scan { .. } | Access::IndexScan { .. });
            match (i, all) {
                (0, true) => scans = true,
                // Again and again through a whole table: never the faster way.
                (_, true) => rest += f64::INFINITY,
                _ => rest += rounds * l.rows.max(1.0) * SEEK,
            }
            rounds *= l.rows.max(0.01);
        }
        rest += rounds * ROW * (1 + c.aggs.len()) as f64;
        Loops { scans, rest, rounds }
    }
}

/// Nanoseconds in rows, nanoseconds of decoding what is not there, and whether that would be kept.
fn estimate(q: &Query, rt: &dyn Runtime) -> Result<(f64, f64, bool)> {
    let mut rows = q.loops.rest;
    let (mut decode, mut keep) = (0.0, true);
    for (t, spec) in q.tables.iter().enumerate() {
        let state = rt.store(spec.db)?.table(&rt.btree(spec.db)?, spec.table.root.get())?;
        let leaves = state.leaves() as f64;
        keep &= state.keep;
        if t == 0 && q.loops.scans {
            rows += leaves * LEAF;
        }
        let own = q.slots.iter().chain(&q.order_slots).filter(|s| s.table == t);
        let keys: Vec<ColKey> = own.map(|s| s.key()).collect();
        let missing = state.missing(&keys);
        if missing > 0 {
            decode += leaves * (DECODE.0 + DECODE.1 * missing as f64);
        }
    }
    for n in &q.nested {
        let (r, d, k) = estimate(&n.query, rt)?;
        keep &= k;
        rows += if n.keys.is_empty() { r } else { r * q.loops.rounds };
        decode += d;
    }
    Ok((rows, decode, keep))
}

/// A name for a query among those of its file.
fn name(q: &Query) -> u64 {
    let mut bytes = Vec::new();
    q.each_table(&mut |t, nested| {
        bytes.extend_from_slice(&t.table.root.get().to_le_bytes());
        bytes.push(nested as u8);
    });
    bytes.extend(q.slots.iter().flat_map(|s| s.field.map_or(u32::MAX, |f| f as u32).to_le_bytes()));
    iolite_base::hash::hash_bytes(&bytes)
}

/// Whether the arm is to be left to rows this time.
pub(crate) fn better_in_rows(q: &Query, rt: &dyn Runtime) -> Result<bool> {
    let (rows, decode, keep) = estimate(q, rt)?;
    // Within a write transaction columns are decoded for this once.
    if rows * CLEARLY >= decode || !keep {
        return Ok(rows * CLEARLY < decode);
    }
    let Some(first) = q.tables.first() else { return Ok(false) };
    Ok(rt.store(first.db)?.is_new(name(q)))
}
