//! Several segments read as one; merging of a level into the next.

use super::rows::Rows;
use super::segment::{Entry, Segment, Source};
use super::writer::Writer;
use super::{Index, LEVELS, MERGED};
use crate::store::{Sql, Store};
use crate::varint;
use iolite_base::Result;
use iolite_value::Value;
use std::rc::Rc;

/// Which segments are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Which {
    /// What is kept back.
    Pending,
    /// All, and what is kept back.
    All,
}

/// Segments read as one, term by term; the oldest comes first.
pub(crate) struct Multi {
    store: Rc<Store>,
    source: Source,
    pub segments: Vec<Segment>,
    /// Rows without places are left out, and terms without rows.
    drop_empty: bool,
    pub term: Vec<u8>,
    /// The present term's rows.
    pub list: Vec<u8>,
    here: Vec<usize>,
}

impl Multi {
    pub fn new(store: &Rc<Store>, source: Source, segments: Vec<Segment>, drop_empty: bool) -> Multi {
        let store = store.clone();
        Multi { store, source, segments, drop_empty, term: Vec::new(), list: Vec::new(), here: Vec::new() }
    }

    /// To the next term; false: there is none. A list that is left out is not counted.
    pub fn next(&mut self) -> Result<bool> {
        loop {
            for i in std::mem::take(&mut self.here) {
                self.segments[i].next(&self.store)?;
            }
            let live = || self.segments.iter().enumerate().filter(|s| !s.1.ended());
            let Some(least) = live().map(|s| s.1.term()).min() else { return Ok(false) };
            if !self.source.wants(least) {
                return Ok(false);
            }
            self.term = least.to_vec();
            self.here = live().filter(|s| s.1.term() == least).map(|s| s.0).collect();
            self.merge_lists()?;
            if !self.list.is_empty() {
                return Ok(true);
            }
        }
    }

    fn merge_lists(&mut self) -> Result<()> {
        let descending = self.store.config.descending;
        self.list.clear();
        if let [one] = self.here[..]
            && !self.drop_empty
            && !(descending && self.segments[one].is_pending())
        {
            self.list.extend_from_slice(self.segments[one].list());
            return Ok(());
        }
        // Of each list the row it is at; those that are kept back come in another order than descending ones.
        let mut lists = Vec::new();
        for &i in &self.here {
            let s = &self.segments[i];
            let list = s.list();
            let mut rows = Rows::new(list, descending && !s.is_pending());
            let mut all = Vec::new();
            while let Some(row) = rows.next()? {
                all.push(row);
            }
            if descending && s.is_pending() {
                all.reverse();
            }
            lists.push((list, all.into_iter().peekable()));
        }
        let mut last = None;
        loop {
            let heads = lists.iter_mut().filter_map(|l| l.1.peek().map(|r| r.0));
            let Some(docid) = (if descending { heads.max() } else { heads.min() }) else { return Ok(()) };
            let mut newest = None;
            for (list, rows) in &mut lists {
                if let Some((_, r)) = rows.next_if(|r| r.0 == docid) {
                    newest = Some(&list[r]);
                }
            }
            let places = newest.unwrap_or_default();
            if places.is_empty() && self.drop_empty {
                continue;
            }
            let delta = match last {
                None => docid,
                Some(l) if descending => i64::wrapping_sub(l, docid),
                Some(l) => docid.wrapping_sub(l),
            };
            varint::push(&mut self.list, delta as u64);
            self.list.extend_from_slice(places);
            self.list.push(0);
            last = Some(docid);
        }
    }
}

impl Index {
    fn entries(&self, which: Sql, params: &[Value]) -> Result<Vec<Entry>> {
        let mut out = Vec::new();
        self.store.each(which, params, |row| {
            out.push(Entry::of(row)?);
            Ok(())
        })?;
        Ok(out)
    }

    /// The segments of a level.
    pub(super) fn level_entries(&self, level: i64) -> Result<Vec<Entry>> {
        self.entries(Sql::Segments, &[Value::Int(level)])
    }

    /// The segments of one of the indexes, read from where `source` says.
    pub fn segments(
        &self,
        language: i64,
        index: usize,
        which: Which,
        source: &Source,
    ) -> Result<Vec<Segment>> {
        let (first, last) = (self.level(language, index, 0), self.level(language, index, LEVELS - 1));
        let entries = match which {
            Which::Pending => Vec::new(),
            Which::All => self.entries(Sql::SegmentsBetween, &[Value::Int(first), Value::Int(last)])?,
        };
        let mut out = Vec::new();
        for e in entries {
            out.push(Segment::open(&self.store, e, source)?);
        }
        if self.row.get().2 == language {
            let pending = self.pending.borrow();
            let terms = pending.get(index).map(|p| p.sorted(source)).unwrap_or_default();
            if !terms.is_empty() {
                out.push(Segment::pending(terms));
            }
        }
        Ok(out)
    }

    /// Reads the terms that `source` wants; rows that were deleted are left out.
    pub fn read(&self, language: i64, index: usize, source: Source) -> Result<Multi> {
        let segments = self.segments(language, index, Which::All, &source)?;
        Ok(Multi::new(&self.store, source, segments, true))
    }

    /// The deepest level of the index that a level belongs to.
    fn max_level(&self, level: i64) -> Result<i64> {
        let first = level - level.rem_euclid(LEVELS);
        let max = self.store.number(Sql::MaxLevel, &[Value::Int(first), Value::Int(first + LEVELS - 1)])?;
        Ok(max.unwrap_or(0))
    }

    /// The number of a new segment of a level, which is merged if it is full.
    fn new_segment(&self, level: i64) -> Result<i64> {
        let last = self.store.number(Sql::MaxIndex, &[Value::Int(level)])?;
        let idx = last.map_or(0, |n| n.saturating_add(1));
        if idx >= MERGED {
            self.merge_level(level)?;
            return Ok(0);
        }
        Ok(idx)
    }

    /// Writes the terms of these segments into a new one. Answers its size, 0 if there are none.
    fn write_merged(
        &self,
        segments: Vec<Segment>,
        drop_empty: bool,
        (level, idx): (i64, i64),
        delete: bool,
    ) -> Result<i64> {
        let mut multi = Multi::new(&self.store, Source::From(Vec::new()), segments, drop_empty);
        let mut writer = None;
        while multi.next()? {
            if writer.is_none() {
                writer = Some(Writer::new(self)?);
            }
            if let Some(w) = &mut writer {
                w.add(&multi.term, &multi.list)?;
            }
        }
        if delete {
            for e in multi.segments.iter().filter_map(|s| s.entry.as_ref()) {
                self.delete_segment(e)?;
            }
        }
        writer.map_or(Ok(0), |w| w.finish(level, idx))
    }

    /// Deletes a segment.
    pub(super) fn delete_segment(&self, e: &Entry) -> Result<()> {
        if e.start != 0 {
            self.store.run(Sql::DeleteBlocks, &[Value::Int(e.start), Value::Int(e.end)])?;
        }
        self.store.run(Sql::DeleteSegment, &[Value::Int(e.level), Value::Int(e.idx)])
    }

    /// Writes what one of the indexes keeps back into a segment of the first level.
    pub(super) fn merge_pending(&self, language: i64, index: usize) -> Result<()> {
        let segments = self.segments(language, index, Which::Pending, &Source::From(Vec::new()))?;
        if segments.is_empty() {
            return Ok(());
        }
        let level = self.level(language, index, 0);
        let idx = self.new_segment(level)?;
        let size = self.write_merged(segments, false, (level, idx), false)?;
        self.promote(level, size)
    }

    /// Merges a level into one segment of the next.
    fn merge_level(&self, level: i64) -> Result<()> {
        if level.rem_euclid(LEVELS) == LEVELS - 1 {
            return Err(super::corrupt());
        }
        let deepest = self.max_level(level)?;
        let idx = self.new_segment(level + 1)?;
        let mut segments = Vec::new();
        for e in self.level_entries(level)? {
            segments.push(Segment::open(&self.store, e, &Source::From(Vec::new()))?);
        }
        let size = self.write_merged(segments, level + 1 > deepest, (level + 1, idx), true)?;
        if size > 0 && level + 1 < deepest {
            self.promote(level + 1, size)?;
        }
        Ok(())
    }

    /// Merges all levels of an index into one segment of the deepest; true: there was but one.
    pub(super) fn merge_all(&self, language: i64, index: usize) -> Result<bool> {
        let segments = self.segments(language, index, Which::All, &Source::From(Vec::new()))?;
        match &segments[..] {
            [] => return Ok(false),
            [one] if !one.is_pending() => return Ok(true),
            _ => {}
        }
        let deepest = self.max_level(self.level(language, index, 0))?;
        let level =
            if segments.iter().all(Segment::is_pending) { self.level(language, index, 0) } else { deepest };
        self.write_merged(segments, true, (level, 0), true)?;
        Ok(false)
    }

    /// Moves segments of deeper levels up to this one, where one of this size was written, if they are small beside it.
    pub(super) fn promote(&self, level: i64, size: i64) -> Result<()> {
        let last = level - level.rem_euclid(LEVELS) + LEVELS - 1;
        let between = |first: i64| [Value::Int(first), Value::Int(last)];
        let deeper = self.entries(Sql::SegmentsBetween, &between(level + 1))?;
        let limit = size / 2 * 3 + size % 2 * 3 / 2;
        if deeper.is_empty() || deeper.iter().any(|e| e.size <= 0 || e.size > limit) {
            return Ok(());
        }
        for (i, e) in self.entries(Sql::SegmentsBetween, &between(level))?.iter().enumerate() {
            self.store.run(Sql::Promote, &[i as i64, e.level, e.idx].map(Value::Int))?;
        }
        self.store.run(Sql::Promoted, &[Value::Int(level)])
    }
}
