//! Merges segments of a level into one of the next.
//!
//! After a flush as much is merged as was written (`automerge`), or all of a level that has become too full (`crisismerge`). A
//! merge may stop between two terms: its inputs are cut off before the term that comes next, and it goes on later.

use super::Index;
use super::leaf::{leaf_id, tombstone_id};
use super::multi::Multi;
use super::segment::SegmentCursor;
use super::structure::{Level, Segment, Structure};
use super::writer::SegmentWriter;
use crate::config::Detail;
use crate::store::Sql;
use iolite_base::{Code, Result};
use iolite_value::Value;

/// Leaves that are written for each unit of work.
const WORK_UNIT: i64 = 64;
/// Leaves that `optimize` writes at a time.
const OPTIMIZE_UNIT: i64 = 1000;

impl Index {
    /// Takes a segment out of the file.
    fn remove_segment(&self, g: &Segment) -> Result<()> {
        self.store.delete(leaf_id(g.id, 0), leaf_id(g.id + 1, 0) - 1)?;
        if g.tombstone_pages > 0 {
            self.store.delete(tombstone_id(g.id, 0), tombstone_id(g.id, g.tombstone_pages - 1))?;
        }
        self.store.run(Sql::DeletePages, &[Value::Int(g.id.into())])
    }

    /// Merges a level into the next until it is done, or until `budget` leaves are written.
    fn merge_level(&self, s: &mut Structure, n: usize, budget: Option<&mut i64>) -> Result<()> {
        let inputs;
        let mut writer;
        if s.levels[n].merging > 0 {
            inputs = s.levels[n].merging;
            let out = s.levels.get(n + 1).and_then(|l| l.segments.last());
            let out = out.ok_or_else(|| self.store.corrupt())?;
            writer = SegmentWriter::new(&self.store, out.id, out.last + 1);
        } else {
            let id = s.free_id().ok_or(Code::Full)?;
            if n + 1 == s.levels.len() {
                s.levels.push(Level::default());
            }
            inputs = s.levels[n].segments.len();
            let mut out = Segment { id, first: 1, ..Segment::default() };
            if s.origin > 0 {
                let of = &s.levels[n].segments;
                out.origin = (of[0].origin.0, of[inputs - 1].origin.1);
            }
            s.levels[n + 1].segments.push(out);
            s.levels[n].merging = inputs;
            writer = SegmentWriter::new(&self.store, id, 1);
        }
        // With nothing older, rows that are only taken out need not be kept.
        let oldest = s.levels[n + 1].segments.len() == 1 && s.levels.len() == n + 2;
        let limit = budget.as_ref().map(|b| **b);
        let mut cursors = Vec::new();
        for g in s.levels[n].segments[..inputs].iter().rev() {
            cursors.push(SegmentCursor::scan(&self.store, g)?);
        }
        let mut multi = Multi::scan(cursors, false)?;
        let mut term: Vec<u8> = Vec::new();
        let mut begun = false;
        while let Some(c) = multi.current() {
            if c.term != term {
                if limit.is_some_and(|most| writer.written > most) {
                    break;
                }
                term.clear();
                term.extend_from_slice(&c.term);
                begun = false;
            }
            if c.size == 0 && (oldest || !c.deleted) {
                multi.next()?;
                continue;
            }
            if !begun {
                writer.term(&term)?;
                begun = true;
            }
            writer.row(c.rowid)?;
            if self.config.detail == Detail::None {
                if c.deleted {
                    writer.number(0);
                    if c.size > 0 {
                        writer.number(0);
                    }
                }
            } else {
                writer.number((c.size * 2 + c.deleted as usize) as u64);
                writer.places(&c.places()?)?;
            }
            multi.next()?;
        }
        let last = writer.finish()?;
        let out = s.levels[n + 1].segments.last_mut().ok_or(Code::Internal)?;
        out.last = last;
        if multi.current().is_none() {
            let gone: Vec<Segment> = s.levels[n].segments.drain(..inputs).collect();
            let out = s.levels[n + 1].segments.last_mut().ok_or(Code::Internal)?;
            for g in &gone {
                out.entries = out.entries.wrapping_add(g.entries.wrapping_sub(g.tombstones));
                self.remove_segment(g)?;
            }
            if out.last == 0 {
                s.levels[n + 1].segments.pop();
            }
            s.levels[n].merging = 0;
        } else {
            self.cut_inputs(&multi, &mut s.levels[n].segments[..inputs])?;
            s.levels[n].merging = inputs;
        }
        if let Some(b) = budget {
            *b -= writer.written;
        }
        Ok(())
    }

    /// Cuts the terms off that a merge has written.
    fn cut_inputs(&self, multi: &Multi, inputs: &mut [Segment]) -> Result<()> {
        for (c, g) in multi.cursors().iter().zip(inputs.iter_mut().rev()) {
            match c.cut()? {
                None => (g.first, g.last) = (0, 0),
                Some((page, leaf)) => {
                    let id = leaf_id(g.id, page);
                    self.store.delete(leaf_id(g.id, 1), id)?;
                    self.store.write(id, &leaf)?;
                    g.first = page;
                }
            }
        }
        Ok(())
    }

    /// The level that has the largest share of rows marked as deleted, if that is large enough; the newest of equals.
    fn level_to_clean(&self, s: &Structure) -> Option<usize> {
        let least = self.config.settings.deletemerge.get() as i128;
        if !self.config.contentless_delete || least == 0 {
            return None;
        }
        let (mut found, mut best) = (None, least - 1);
        for (n, level) in s.levels.iter().enumerate() {
            let sum =
                |f: fn(&Segment) -> u64| level.segments.iter().fold(0, |n, g| n + i128::from(f(g) as i64));
            let (entries, marked) = (sum(|g| g.entries), sum(|g| g.tombstones));
            if entries > 0 && marked * 100 / entries > best {
                best = marked * 100 / entries;
                found = Some(n);
            }
            if level.merging > 0 {
                break;
            }
        }
        found
    }

    /// Merges levels that have at least `least` segments, as long as there are leaves to be written; answers whether anything
    /// was done.
    fn merge_some(&self, s: &mut Structure, mut budget: i64, mut least: usize) -> Result<bool> {
        let mut did = false;
        while budget > 0 {
            let (mut best, mut most) = (0, 0);
            for (n, level) in s.levels.iter().enumerate() {
                if level.merging > 0 {
                    if level.merging > most {
                        (best, most) = (n, least);
                    }
                    break;
                }
                if level.segments.len() > most {
                    (best, most) = (n, level.segments.len());
                }
            }
            if most < least {
                match self.level_to_clean(s) {
                    Some(n) => best = n,
                    None => break,
                }
            }
            did = true;
            self.merge_level(s, best, Some(&mut budget))?;
            if s.levels[best].merging == 0 {
                s.promote(best + 1);
            }
            least = least.max(2);
        }
        Ok(did)
    }

    /// Merges as much as the leaves written call for.
    pub(super) fn automerge(&self, s: &mut Structure, leaves: i64) -> Result<()> {
        let least = self.config.settings.automerge.get();
        if least == 0 {
            return Ok(());
        }
        let unit = WORK_UNIT as u64;
        let after = s.writes + leaves as u64;
        let work = (after / unit - s.writes / unit) as i64;
        s.writes = after;
        self.merge_some(s, WORK_UNIT * work * s.levels.len() as i64, least)?;
        Ok(())
    }

    /// Merges levels that are too full.
    pub(super) fn crisismerge(&self, s: &mut Structure) -> Result<()> {
        let most = self.config.settings.crisismerge.get();
        let mut n = 0;
        while s.levels.get(n).is_some_and(|l| l.segments.len() >= most) {
            self.merge_level(s, n, None)?;
            s.promote(n + 1);
            n += 1;
        }
        Ok(())
    }

    /// The command `merge`: writes about so many leaves; below zero, towards one segment.
    pub fn merge(&self, leaves: i64) -> Result<()> {
        self.flush()?;
        let mut s = (*self.structure()?).clone();
        let mut least = self.config.settings.usermerge.get();
        let mut budget = leaves;
        if leaves < 0 {
            let Some(one) = s.for_optimize() else { return Ok(()) };
            s = one;
            least = 1;
            budget = leaves.saturating_neg();
        }
        if !s.levels.is_empty() && self.merge_some(&mut s, budget, least)? {
            self.save(&s)?;
            // The number of the next flush is found anew from the segments that are left.
            self.forget();
        }
        Ok(())
    }

    /// The command `optimize`: merges all into one segment.
    pub fn optimize(&self) -> Result<()> {
        self.flush()?;
        let Some(mut s) = self.structure()?.for_optimize() else { return Ok(()) };
        let Some(n) = s.levels.iter().position(|l| !l.segments.is_empty()) else { return Ok(()) };
        while !s.levels[n].segments.is_empty() {
            let mut budget = OPTIMIZE_UNIT;
            self.merge_level(&mut s, n, Some(&mut budget))?;
        }
        self.save(&s)?;
        self.forget();
        Ok(())
    }
}
