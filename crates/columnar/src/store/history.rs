//! What earlier queries tell about later ones: which were new, declined, or of which share of a table.
//!
//! What always holds: it decides where a query runs, and nothing of its answer. It is forgotten when it grows.

use super::*;

impl Store {
    /// Whether a derived column is wanted often enough of the same state of the inner table: at the second time.
    pub(crate) fn worth_deriving(&self, key: DerivedKey, stamp: u64) -> bool {
        let mut wanted = lock(&self.wanted);
        let w = wanted.entry(key).or_insert((stamp, 0));
        if w.0 != stamp {
            *w = (stamp, 0);
        }
        w.1 += 1;
        w.1 > 1 && fits(budget() / 4)
    }

    /// Whether a query that names itself so has not been here before.
    pub(crate) fn is_new(&self, name: u64) -> bool {
        let mut seen = lock(&self.seen);
        if seen.len() > 10_000 {
            seen.clear();
        }
        seen.insert(name)
    }

    /// Nanoseconds that rows have taken so far for queries that wanted a column of a table and did without, to which those
    /// of this run are added.
    pub(crate) fn charged(&self, root: Pgno, key: ColKey, now: f64) -> f64 {
        let mut charged = lock(&self.charged);
        if charged.len() > 10_000 {
            charged.clear();
        }
        let all = charged.entry((root, key)).or_insert(0.0);
        let before = *all;
        *all += now;
        before
    }

    /// Why a query was declined at this state of its first table, if it was; that counts as once more.
    pub(crate) fn refused(&self, name: u64, stamp: u64) -> bool {
        let why = lock(&self.refused).get(&name).filter(|r| r.0 == stamp).map(|r| r.1.clone());
        if let Some(why) = &why {
            *lock(&self.refusals).entry(why.clone()).or_default() += 1;
        }
        why.is_some()
    }

    /// Whether a query was declined when it last ran.
    pub(crate) fn was_refused(&self, name: u64) -> bool {
        lock(&self.refused).contains_key(&name)
    }

    /// Notes that a query was declined; with a stamp it is not tried again at that state.
    pub(crate) fn note_refusal(&self, name: u64, stamp: Option<u64>, why: &str) {
        *lock(&self.refusals).entry(why.to_string()).or_default() += 1;
        let mut refused = lock(&self.refused);
        if refused.len() > 10_000 {
            refused.clear();
        }
        if let Some(stamp) = stamp {
            refused.insert(name, (stamp, why.to_string()));
        }
    }

    /// How often queries were declined when they ran, by reason.
    pub fn refusals(&self) -> Vec<(String, u64)> {
        lock(&self.refusals).iter().map(|(w, n)| (w.clone(), *n)).collect()
    }

    /// Whether leaves may be looked at for a query of this shape at once: some times.
    pub(crate) fn may_look(&self, name: u64) -> bool {
        const TIMES: u32 = 4;
        let mut looked = lock(&self.looked);
        if looked.len() > 10_000 {
            looked.clear();
        }
        let n = looked.entry(name).or_default();
        *n += 1;
        *n <= TIMES
    }

    /// The share that was noted for a query, if the table is what it was.
    pub(crate) fn share(&self, name: u64, stamp: u64) -> Option<f64> {
        lock(&self.shares).get(&name).filter(|s| s.0 == stamp).map(|s| s.1)
    }

    /// Notes it.
    pub(crate) fn note_share(&self, name: u64, stamp: u64, share: f64) {
        let mut all = lock(&self.shares);
        if all.len() > 10_000 {
            all.clear();
        }
        all.insert(name, (stamp, share));
    }
}
