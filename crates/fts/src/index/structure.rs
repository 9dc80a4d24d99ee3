//! The structure record: which segments an index has, by levels, oldest first.
//!
//! What always holds: identifiers of segments are not used twice; a level that is being merged has at most as many inputs as
//! segments. Version 2 is written where rows of contentless tables may be deleted.

use crate::config::MAX_SEGMENTS;
use iolite_base::varint;

/// A segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Segment {
    pub id: u32,
    pub first: u32,
    pub last: u32,
    /// With tombstones: the flushes that its rows are from.
    pub origin: (u64, u64),
    pub tombstone_pages: u32,
    pub tombstones: u64,
    pub entries: u64,
}

impl Segment {
    pub fn pages(&self) -> u32 {
        (self.last + 1).saturating_sub(self.first)
    }
}

/// Segments of like size.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Level {
    /// How many of the oldest segments are being merged into the next level.
    pub merging: usize,
    pub segments: Vec<Segment>,
}

/// The record.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Structure {
    pub levels: Vec<Level>,
    /// How many leaves were written so far.
    pub writes: u64,
    /// The number of the next flush, with tombstones; 0 without.
    pub origin: u64,
}

const VERSION_2: [u8; 4] = [0xff, 0, 0, 1];
/// More levels and pages than that are damage.
const MAX_LEVELS: u64 = 64;
const MAX_PAGE: u64 = (1 << 31) - 1;

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn number(&mut self) -> Option<u64> {
        let (n, len) = varint::get(self.0)?;
        self.0 = &self.0[len..];
        Some(n)
    }

    fn within(&mut self, most: u64) -> Option<u64> {
        self.number().filter(|n| *n <= most)
    }
}

impl Structure {
    /// Reads a record: the settings' cookie and what it says; `None`: it is damaged.
    pub fn decode(record: &[u8]) -> Option<(u32, Structure)> {
        let cookie = u32::from_be_bytes(record.get(..4)?.try_into().ok()?);
        let second = record[4..].starts_with(&VERSION_2);
        let mut input = Input(&record[if second { 8 } else { 4 }..]);
        let level_count = input.within(MAX_LEVELS)?;
        let segment_count = input.within(MAX_SEGMENTS as u64)?;
        let mut s = Structure { writes: input.number()?, ..Structure::default() };
        let mut left = segment_count;
        for _ in 0..level_count {
            let merging = input.within(segment_count)? as usize;
            let count = input.within(left)?;
            if merging as u64 > count {
                return None;
            }
            left -= count;
            let mut level = Level { merging, segments: Vec::new() };
            for _ in 0..count {
                let mut g = Segment {
                    id: input.within(MAX_SEGMENTS as u64)? as u32,
                    first: input.within(MAX_PAGE)? as u32,
                    last: input.within(MAX_PAGE)? as u32,
                    ..Segment::default()
                };
                if second {
                    g.origin = (input.number()?, input.number()?);
                    g.tombstone_pages = input.within(MAX_PAGE)? as u32;
                    g.tombstones = input.number()?;
                    g.entries = input.number()?;
                    s.origin = s.origin.max(g.origin.1);
                }
                if g.last < g.first {
                    return None;
                }
                level.segments.push(g);
            }
            if merging > 0 && s.levels.len() as u64 + 1 == level_count {
                return None;
            }
            if s.levels.last().is_some_and(|l| l.merging > 0) && count == 0 {
                return None;
            }
            s.levels.push(level);
        }
        if left != 0 {
            return None;
        }
        if second {
            s.origin += 1;
        }
        Some((cookie, s))
    }

    /// The record.
    pub fn encode(&self, cookie: u32) -> Vec<u8> {
        let mut out = cookie.to_be_bytes().to_vec();
        let second = self.origin > 0;
        if second {
            out.extend(VERSION_2);
        }
        for n in [self.levels.len() as u64, self.segments().count() as u64, self.writes] {
            varint::push(&mut out, n);
        }
        for level in &self.levels {
            varint::push(&mut out, level.merging as u64);
            varint::push(&mut out, level.segments.len() as u64);
            for g in &level.segments {
                for n in [g.id, g.first, g.last] {
                    varint::push(&mut out, n.into());
                }
                if second {
                    let tombstone_pages = g.tombstone_pages.into();
                    for n in [g.origin.0, g.origin.1, tombstone_pages, g.tombstones, g.entries] {
                        varint::push(&mut out, n);
                    }
                }
            }
        }
        out
    }

    /// All segments, level by level, oldest first in each.
    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.levels.iter().flat_map(|l| &l.segments)
    }

    /// All segments, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &Segment> {
        self.levels.iter().flat_map(|l| l.segments.iter().rev())
    }

    /// The least identifier that no segment has.
    pub fn free_id(&self) -> Option<u32> {
        let mut used = vec![false; MAX_SEGMENTS + 2];
        for g in self.segments() {
            used[g.id as usize] = true;
        }
        (1..=MAX_SEGMENTS as u32).find(|n| !used[*n as usize])
    }

    /// Segments that are no larger than those of a newer level move there: after a merge into level `n`.
    pub fn promote(&mut self, n: usize) {
        let Some(newest) = self.levels[n].segments.last() else { return };
        let size = newest.pages();
        let newer = self.levels[..n].iter().rposition(|l| !l.segments.is_empty());
        let target = newer.and_then(|k| {
            let most = self.levels[k].segments.iter().map(Segment::pages).max().unwrap_or(0);
            (most >= size).then_some((k, most))
        });
        let (to, size) = target.unwrap_or((n, size));
        if self.levels[to].merging > 0 {
            return;
        }
        for k in to + 1..self.levels.len() {
            if self.levels[k].merging > 0 {
                return;
            }
            while let Some(g) = self.levels[k].segments.last().copied() {
                if g.pages() > size {
                    return;
                }
                self.levels[k].segments.pop();
                self.levels[to].segments.insert(0, g);
            }
        }
    }

    /// All segments in one new level, to be merged into one; `None`: there is nothing to merge.
    pub fn for_optimize(&self) -> Option<Structure> {
        let total = self.segments().count();
        if total == 0 {
            return None;
        }
        // They are together already, or all but the one that they are being merged into.
        for level in &self.levels {
            let n = level.segments.len();
            if n > 0 && (n == total || n + 1 == total && level.merging == n) {
                if n == 1 && total == 1 && level.segments[0].tombstone_pages == 0 {
                    return None;
                }
                return Some(self.clone());
            }
        }
        let mut all = Level::default();
        for level in self.levels.iter().rev() {
            all.segments.extend(&level.segments);
        }
        let depth = (self.levels.len() + 1).min(MAX_LEVELS as usize);
        let mut levels = vec![Level::default(); depth];
        levels[depth - 1] = all;
        Some(Structure { levels, ..*self })
    }
}
