//! One segment: read from its tree of blocks, or from what is kept back.

use super::corrupt;
use super::node::Walk;
use crate::store::Store;
use iolite_base::{Bytes, Result};
use iolite_value::Value;

/// Which terms are wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// All from this one on.
    From(Vec<u8>),
    /// Those that begin so.
    Prefix(Vec<u8>),
    /// One.
    Term(Vec<u8>),
}

impl Source {
    pub fn start(&self) -> &[u8] {
        match self {
            Source::From(t) | Source::Prefix(t) | Source::Term(t) => t,
        }
    }

    /// Whether a term is wanted.
    pub fn wants(&self, term: &[u8]) -> bool {
        match self {
            Source::From(t) => term >= &t[..],
            Source::Prefix(t) => term.starts_with(t),
            Source::Term(t) => term == &t[..],
        }
    }
}

/// No number in `%_segdir` is larger, nor that of a block.
pub(crate) const LARGEST: i64 = 1 << 60;

/// A row of `%_segdir`.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub level: i64,
    pub idx: i64,
    pub start: i64,
    pub leaves_end: i64,
    pub end: i64,
    /// How many bytes its leaves have, if that is known: below zero while it is being written.
    pub size: i64,
    pub root: Bytes,
}

impl Entry {
    pub fn of(row: &[Value]) -> Result<Entry> {
        let n = |i: usize| row.get(i).map_or(0, Value::to_int);
        if (0..4).any(|i| !(-1..LARGEST).contains(&n(i))) {
            return Err(corrupt());
        }
        let root = row.get(5).and_then(|v| v.bytes().cloned()).ok_or_else(corrupt)?;
        let (end, size) = match row.get(4) {
            Some(v @ Value::Text(..)) => {
                let text = v.to_string_lossy();
                let mut parts = text.split(' ').map(|p| p.parse::<i64>().unwrap_or(0));
                (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
            }
            _ => (n(4), 0),
        };
        if !(-LARGEST..LARGEST).contains(&size) || !(-1..LARGEST).contains(&end) {
            return Err(corrupt());
        }
        Ok(Entry { level: n(0), idx: n(1), start: n(2), leaves_end: n(3), end, size, root })
    }
}

enum Part {
    /// Terms in leaves: the present one, and the number of the next.
    Leaves { leaf: Bytes, walk: Walk, next: i64 },
    /// Terms that are kept back.
    Pending(std::vec::IntoIter<(Vec<u8>, Vec<u8>)>, Vec<u8>, Vec<u8>),
}

/// A segment as it is read, at a term.
pub(crate) struct Segment {
    pub entry: Option<Entry>,
    part: Part,
    ended: bool,
}

impl Segment {
    /// At the first term from the source's start on.
    pub fn open(store: &Store, entry: Entry, source: &Source) -> Result<Segment> {
        let mut leaf = entry.root.clone();
        let mut next = 1 + entry.leaves_end;
        if entry.start != 0 || leaf.first().is_some_and(|h| *h != 0) {
            let mut height = *leaf.first().ok_or_else(corrupt)?;
            let mut block = entry.start;
            while height > 0 {
                let mut walk = Walk::new(&leaf)?;
                while walk.next(&leaf)? && walk.term[..] <= *source.start() {}
                block = walk.child;
                leaf = store.block(block)?;
                let below = *leaf.first().ok_or_else(corrupt)?;
                if below >= height {
                    return Err(corrupt());
                }
                height = below;
            }
            next = block.saturating_add(1);
        }
        let walk = Walk::new(&leaf)?;
        let mut s = Segment { entry: Some(entry), part: Part::Leaves { leaf, walk, next }, ended: false };
        s.next(store)?;
        while !s.ended && s.term() < source.start() {
            s.next(store)?;
        }
        Ok(s)
    }

    /// What is kept back.
    pub fn pending(terms: Vec<(Vec<u8>, Vec<u8>)>) -> Segment {
        let mut s = Segment {
            entry: None,
            part: Part::Pending(terms.into_iter(), Vec::new(), Vec::new()),
            ended: false,
        };
        s.next_pending();
        s
    }

    pub fn is_pending(&self) -> bool {
        self.entry.is_none()
    }

    pub fn ended(&self) -> bool {
        self.ended
    }

    pub fn term(&self) -> &[u8] {
        match &self.part {
            Part::Leaves { walk, .. } => &walk.term,
            Part::Pending(_, term, _) => term,
        }
    }

    pub fn list(&self) -> &[u8] {
        match &self.part {
            Part::Leaves { leaf, walk, .. } => &leaf[walk.list.clone()],
            Part::Pending(_, _, list) => list,
        }
    }

    fn next_pending(&mut self) {
        if let Part::Pending(terms, term, list) = &mut self.part {
            match terms.next() {
                Some((t, l)) => (*term, *list) = (t, l),
                None => self.ended = true,
            }
        }
    }

    /// To the next term.
    pub fn next(&mut self, store: &Store) -> Result<()> {
        let last = self.entry.as_ref().map_or(0, |e| e.leaves_end);
        let Part::Leaves { leaf, walk, next } = &mut self.part else {
            self.next_pending();
            return Ok(());
        };
        loop {
            if walk.next(leaf)? {
                return Ok(());
            }
            if *next > last {
                self.ended = true;
                return Ok(());
            }
            *leaf = store.block(*next)?;
            if leaf.first() != Some(&0) {
                return Err(corrupt());
            }
            *walk = Walk::new(leaf)?;
            *next += 1;
        }
    }
}
