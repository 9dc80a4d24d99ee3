//! Groups for which there is no room: their rows wait in a file, parted by hash, and further groups take them in when the
//! first ones are done. All rows of a group are taken in by the same ones, in the order in which they came.

use super::{Groups, LEAST_GROUPS, Source};
use crate::decline::DECLINED;
use crate::expr::batch::NONE;
use crate::expr::batch::{Batch, BatchRow};
use crate::kernel::BATCH;
use crate::memory::work_size;
use crate::op::spill::{Partitions, push_image, take_u32};
use crate::star::scope::JoinScope;
use iolite_base::Result;
use iolite_value::Collation;

impl Groups<'_> {
    /// Takes in the rows that have a group, and lets the others wait: all rows of a group do the one or the other.
    #[cold]
    pub(super) fn add_some(&mut self, b: &Batch<'_>, s: &JoinScope<'_>) -> Result<()> {
        if s.cols.iter().any(|c| c.loaded.streams()) {
            // Rows are read again by their numbers.
            return Err(DECLINED.into());
        }
        let (mut record, mut image) = (Vec::new(), Vec::new());
        let waiting = match &mut self.waiting {
            Some(w) => w,
            none => none.insert(Partitions::new(s.rt, self.level)?),
        };
        let at = std::mem::take(&mut self.st.at);
        let outer = s.places.outer;
        for i in (0..at.len()).filter(|i| at[*i] == NONE) {
            let hash = if self.st.lost.get(i).copied().unwrap_or(false) {
                image.clear();
                for k in &self.keys {
                    let v = s.eval.value(k, &BatchRow { batch: b, i })?;
                    push_image(&mut image, &v, &Collation::Binary)?;
                }
                iolite_base::hash::hash_bytes(&image)
            } else {
                self.st.numbers[i]
            };
            record.clear();
            for (t, rows) in b.inner.iter().enumerate() {
                let row = if t == outer {
                    s.cols[t].loaded.parts[b.part].start as u32 + b.outer[i]
                } else {
                    rows.get(i).copied().unwrap_or(NONE)
                };
                if t == outer || !rows.is_empty() {
                    if !self.noted.contains(&t) {
                        self.noted.push(t);
                    }
                    record.extend_from_slice(&row.to_le_bytes());
                }
            }
            waiting.add(hash, &record)?;
        }
        let places: Vec<usize> = (0..at.len()).filter(|i| at[*i] != NONE).collect();
        let some = b.only(&places);
        self.st.at = places.iter().map(|i| at[*i]).collect();
        if some.outer.is_empty() { Ok(()) } else { self.accumulate_all(&some, s) }
    }

    /// The tables whose rows are noted where they wait.
    pub fn noted(&self) -> &[usize] {
        &self.noted
    }

    /// The rows that wait, to be taken in by further groups.
    pub fn take_waiting(&mut self) -> Result<Option<Partitions>> {
        let mut w = self.waiting.take();
        if let Some(w) = &mut w {
            w.finish()?;
        }
        Ok(w)
    }

    /// Takes in a partition of rows that waited; `tables`: those whose rows were noted. No table is scanned.
    pub fn add_waiting(
        &mut self,
        rows: &Partitions,
        p: usize,
        tables: &[usize],
        s: &JoinScope<'_>,
    ) -> Result<()> {
        self.level = rows.level + 1;
        let mut b = Batch {
            cols: s.cols,
            places: s.places,
            part: 0,
            outer: Vec::new(),
            whole: false,
            inner: vec![Vec::new(); s.cols.len()],
        };
        rows.each(p, &mut |mut record| {
            for t in tables {
                b.inner[*t].push(take_u32(&mut record)?);
            }
            b.outer.push(b.outer.len() as u32);
            if b.outer.len() == BATCH {
                self.add(&b, s)?;
                b.outer.clear();
                b.inner.iter_mut().for_each(Vec::clear);
            }
            Ok(())
        })?;
        if b.outer.is_empty() { Ok(()) } else { self.add(&b, s) }
    }

    /// How many groups there are at most; some may have no rows.
    pub fn count(&self) -> usize {
        self.st.rows.len()
    }

    /// Whether a group has rows.
    pub fn is_there(&self, g: usize) -> bool {
        self.st.rows[g] > 0
    }

    /// Whether values of keys that are not known yet shall stay so.
    pub(super) fn is_full(&self) -> bool {
        let held = |s: &Source| match s {
            Source::Any { dict, reals, .. } => dict.held() + reals.held(),
            _ => 0,
        };
        let numbers = &self.st.index.numbers;
        numbers.len() >= self.st.most
            || numbers.len() >= LEAST_GROUPS && self.sources.iter().map(held).sum::<usize>() > work_size()
    }
}
