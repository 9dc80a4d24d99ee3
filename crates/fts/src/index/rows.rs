//! The rows of a term or of many, one after the other, with the places.

use super::multi::Multi;
use super::position::{self, Writer};
use crate::config::Detail;
use iolite_base::Result;
use std::borrow::Cow;

/// Rows in memory.
struct List {
    /// Rows and where their places stand.
    rows: Vec<(i64, usize, usize)>,
    places: Vec<u8>,
    at: usize,
    backwards: bool,
}

enum Source {
    Index(Multi),
    List(List),
}

/// Rows in order.
pub(crate) struct Rows {
    source: Source,
    columns: Option<Vec<u32>>,
    detail: Detail,
    /// The places of the present row that lie in the chosen columns.
    chosen: Vec<u8>,
    /// The present row.
    pub rowid: i64,
    /// There is none any more.
    pub eof: bool,
}

impl Rows {
    /// Rows from the index.
    pub fn of(multi: Multi, columns: Option<Vec<u32>>, detail: Detail) -> Result<Rows> {
        let source = Source::Index(multi);
        let columns = columns.filter(|_| detail != Detail::None);
        let mut r = Rows { source, columns, detail, chosen: Vec::new(), rowid: 0, eof: false };
        r.settle()?;
        Ok(r)
    }

    /// Notes the present row, going on to one that has places in the chosen columns.
    #[inline]
    fn settle(&mut self) -> Result<()> {
        let m = match &mut self.source {
            Source::Index(m) => m,
            Source::List(l) => {
                match l.rows.get(l.at) {
                    Some(r) => self.rowid = r.0,
                    None => self.eof = true,
                }
                return Ok(());
            }
        };
        loop {
            let Some(c) = m.current() else {
                self.eof = true;
                return Ok(());
            };
            self.rowid = c.rowid;
            let Some(columns) = &self.columns else { return Ok(()) };
            position::in_columns(&c.places()?, self.detail, columns, &mut self.chosen);
            if !self.chosen.is_empty() {
                return Ok(());
            }
            m.next()?;
        }
    }

    /// The list of places of the present row.
    pub fn places(&self) -> Result<Cow<'_, [u8]>> {
        match &self.source {
            _ if self.columns.is_some() => Ok(Cow::Borrowed(&self.chosen)),
            Source::Index(m) => m.current().map_or(Ok(Cow::Borrowed(&[][..])), |c| c.places()),
            Source::List(l) => {
                let (_, from, to) = l.rows[l.at];
                Ok(Cow::Borrowed(&l.places[from..to]))
            }
        }
    }

    /// Moves on.
    pub fn next(&mut self) -> Result<()> {
        match &mut self.source {
            Source::Index(m) => m.next()?,
            Source::List(l) => l.at += 1,
        }
        self.settle()
    }

    /// Moves on to a row or to the first behind it.
    pub fn advance(&mut self, rowid: i64) -> Result<()> {
        match &mut self.source {
            Source::Index(m) => m.advance(rowid)?,
            Source::List(l) => {
                let backwards = l.backwards;
                let behind = |r: &(i64, usize, usize)| if backwards { r.0 > rowid } else { r.0 < rowid };
                l.at += l.rows[l.at.min(l.rows.len())..].partition_point(behind);
            }
        }
        self.settle()
    }
}

/// Gathers the rows of many terms.
#[derive(Default)]
pub(super) struct Gathered {
    rows: Vec<(i64, usize, usize)>,
    places: Vec<u8>,
    chosen: Vec<u8>,
}

impl Gathered {
    /// Adds a row of a term.
    pub fn add(&mut self, rowid: i64, places: &[u8], columns: Option<&[u32]>, detail: Detail) {
        let start = self.places.len();
        match columns.filter(|_| detail != Detail::None) {
            Some(columns) => {
                position::in_columns(places, detail, columns, &mut self.chosen);
                if self.chosen.is_empty() {
                    return;
                }
                self.places.extend_from_slice(&self.chosen);
            }
            None => self.places.extend_from_slice(places),
        }
        self.rows.push((rowid, start, self.places.len()));
    }

    /// All rows, those of several terms once.
    pub fn finish(mut self, detail: Detail, backwards: bool) -> Rows {
        self.rows.sort_by_key(|r| r.0);
        let mut merged: Vec<(i64, usize, usize)> = Vec::with_capacity(self.rows.len());
        let mut w = Writer::default();
        for &(rowid, from, to) in &self.rows {
            match merged.last_mut() {
                Some(last) if last.0 == rowid => {
                    if detail == Detail::None {
                        continue;
                    }
                    position::union(&self.places[last.1..last.2], &self.places[from..to], &mut w);
                    let start = self.places.len();
                    self.places.extend_from_slice(&w.out);
                    (last.1, last.2) = (start, self.places.len());
                }
                _ => merged.push((rowid, from, to)),
            }
        }
        if backwards {
            merged.reverse();
        }
        let source = Source::List(List { rows: merged, places: self.places, at: 0, backwards });
        let mut r = Rows { source, columns: None, detail, chosen: Vec::new(), rowid: 0, eof: false };
        // A list in memory cannot fail.
        let _ = r.settle();
        r
    }
}
