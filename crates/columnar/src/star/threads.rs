//! Several threads at one scan.
//!
//! Threads begin with a scan that is large enough and end with it: a query of less costs what it cost before, and a
//! process that asks none of these has no threads of the engine's. The unit of work is a segment; whoever is free takes
//! the next one. Each thread collects groups of its own, which are put together at the end: only aggregates whose
//! outcome does not depend on the order of rows are computed so (counts, sums of integers that cannot overflow, least and
//! greatest integers), so answers are the same to the bit whatever the number of threads. The calling thread takes part,
//! and asks between segments whether the query is to stop; the others stop when it does.
//!
//! What threads share is looked at only: columns, codes, maps, and the outer shapes of expressions over integers. Nothing
//! of the connection is: see the one `unsafe` below.
#![allow(unsafe_code)]

use super::scope::JoinScope;
use crate::decline::DECLINED;
use crate::expr::filter::Pred;
use crate::star::group::{Groups, State};
use crate::star::scan::Findings;
use crate::star::scope::Run;
use crate::star::split::JoinPlan;
use iolite_base::{Code, Result};
use iolite_os::background::without_signals;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Fewer rows are not worth a thread, which takes some twenty microseconds to begin.
const FEW_ROWS: usize = 1 << 19;

/// Everything that the threads of a scan look at.
struct SharedScan<'a> {
    run: &'a Run<'a>,
    d: &'a JoinPlan,
    preds: &'a [Vec<Pred>],
    s: &'a JoinScope<'a>,
    groups: &'a Groups<'a>,
}

/// Lent to the threads of one scan.
struct Lent<T>(T);

// SAFETY: what is lent is a `SharedScan`. Its parts are not `Sync` for two reasons only: expressions and functions are held
// by `Rc`, and evaluating an expression calls functions and uses cells of the connection's. `scan_in_threads` lends only
// where `Run::is_pure` and `Groups::is_pure` hold: then `Run::scan_parts`, unwatched, and `Groups::add_to` read
// codes, integers and the shapes of expressions through shared references; they neither evaluate an expression, nor
// touch a cell, nor copy or drop an `Rc`. All threads end before the loan does.
unsafe impl<T> Sync for Lent<T> {}

/// A state on its way to a thread and back.
struct Moved<T>(T);

// SAFETY: a `State` that `Groups::another_state` made holds numbers, and expressions behind `Rc`s that are shared with
// other states. The thread that is given it reads through them; they are copied before and dropped after, by the thread
// that began the scan, when all others have ended.
unsafe impl<T> Send for Moved<T> {}

impl<T> Moved<T> {
    /// All of it, so that a thread never takes a part out.
    fn inner(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Lent<T> {
    fn inner(&self) -> &T {
        &self.0
    }
}

impl Run<'_> {
    /// Collects groups with several threads; `false`: nothing was done, one has to do.
    pub(crate) fn scan_in_threads(
        &self,
        d: &JoinPlan,
        preds: &[Vec<Pred>],
        s: &JoinScope<'_>,
        groups: &mut Groups<'_>,
    ) -> Result<bool> {
        let loaded = &s.cols[self.outer].loaded;
        let parts = loaded.parts.len();
        let threads = self.rt.threads().min(parts);
        let few = loaded.rows < FEW_ROWS && !self.rt.force();
        // States that are large beside the rows cost more to put together than they save.
        let large = groups.dense_groups() > loaded.rows / 8 && !self.rt.force();
        let whole = s.inners.iter().flatten().all(|i| i.is_whole());
        let whole = whole && d.state.is_none();
        if threads < 2 || few || large || !whole || !groups.is_pure() || !self.is_pure(d, preds, s) {
            return Ok(false);
        }
        let mut states = Vec::new();
        for _ in 0..threads {
            states.push(Moved(groups.another_state(threads)?));
        }
        let (taken, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let take_next = || {
            let k = taken.fetch_add(1, Relaxed);
            (k < parts && !stop.load(Relaxed)).then_some(k)
        };
        let lent = Lent(SharedScan { run: self, d, preds, s, groups });
        let work =
            |st: &mut Moved<State>, watched: bool, check: &dyn Fn() -> Result<()>| -> Result<Findings> {
                let g = lent.inner();
                let st = st.inner();
                let mut next = || {
                    check()?;
                    Ok(take_next())
                };
                let done = g.run.scan_parts(g.d, g.preds, g.s, watched, &mut next, &mut |b, s| {
                    g.groups.add_to(st, b, s)?;
                    Ok(true)
                });
                if done.is_err() {
                    stop.store(true, Relaxed);
                }
                done
            };
        let (own, others) = states.split_first_mut().ok_or(Code::Internal)?;
        let work = &work;
        let found: Result<Findings> = std::thread::scope(|scope| {
            let mut running = Vec::new();
            for st in others {
                let code = move || work(st, false, &|| Ok(())).map_err(|e| e.code());
                // Where no thread can be had, the others do its work.
                let named = std::thread::Builder::new().name("iolite-scan".into());
                running.extend(without_signals(|| named.spawn_scoped(scope, code)).ok());
            }
            let mine = work(own, true, &|| self.rt.check());
            let theirs: Vec<_> =
                running.into_iter().map(|r| r.join().unwrap_or(Err(Code::Internal))).collect();
            let mut all = mine?;
            for f in theirs {
                all.add(&f?);
            }
            Ok(all)
        });
        let found = match found {
            // There are more groups than there is room for.
            Err(e) if e.code() == DECLINED => return Ok(false),
            other => other?,
        };
        if let Some(p) = self.rt.profile() {
            p.line(format!("SCAN WITH {threads} THREADS"));
        }
        self.report(d, preds, s, &found);
        for st in states {
            groups.merge(st.0)?;
        }
        Ok(true)
    }
}
