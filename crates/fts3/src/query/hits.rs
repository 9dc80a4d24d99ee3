//! Where a phrase stands: the rows that have it, and its places in each. A place is that of the phrase's last token.

use super::Phrase;
use crate::index::{Index, Rows, Source, place, places};
use iolite_base::Result;
use std::rc::Rc;

/// Rows in ascending order, each with its places in ascending order.
#[derive(Default, Clone)]
pub(crate) struct Hits {
    pub rows: Rc<Vec<i64>>,
    /// Where the places of a row begin; one more at the end.
    starts: Vec<u32>,
    places: Vec<u64>,
}

/// Hits as they are gathered.
#[derive(Default)]
struct Gather {
    rows: Vec<i64>,
    starts: Vec<u32>,
    places: Vec<u64>,
}

impl Gather {
    fn row(&mut self, docid: i64, from: usize) {
        if self.places.len() > from {
            self.rows.push(docid);
            self.starts.push(from as u32);
        }
    }

    fn done(mut self) -> Hits {
        self.starts.push(self.places.len() as u32);
        Hits { rows: Rc::new(self.rows), starts: self.starts, places: self.places }
    }
}

impl Hits {
    /// A row's places; none if it is not there.
    pub fn at(&self, docid: i64) -> &[u64] {
        match self.rows.binary_search(&docid) {
            Ok(i) => self.of(i),
            Err(_) => &[],
        }
    }

    /// The places of the row of this number.
    pub fn of(&self, i: usize) -> &[u64] {
        &self.places[self.starts[i] as usize..self.starts[i + 1] as usize]
    }

    fn reversed(&self) -> Hits {
        let mut g = Gather::default();
        for i in (0..self.rows.len()).rev() {
            let from = g.places.len();
            g.places.extend_from_slice(self.of(i));
            g.row(self.rows[i], from);
        }
        g.done()
    }
}

/// The hits of one token.
fn of_term(index: &Index, language: i64, phrase: &Phrase, number: usize) -> Result<Hits> {
    let term = &phrase.terms[number];
    let config = &index.store.config;
    let own = config.prefixes.iter().skip(1).position(|n| term.prefix && *n == term.text.len());
    let source = match (term.prefix, own) {
        (true, None) => Source::Prefix(term.text.clone()),
        _ => Source::Term(term.text.clone()),
    };
    let mut multi = index.read(language, own.map_or(0, |n| n + 1), source)?;
    let mut lists = Vec::new();
    while multi.next()? {
        let mut g = Gather::default();
        let mut rows = Rows::new(&multi.list, config.descending);
        while let Some((docid, range)) = rows.next()? {
            let from = g.places.len();
            places(&multi.list[range], |column, position| {
                let wanted = phrase.column.is_none_or(|c| c == column) && !(term.first && position != 0);
                if wanted {
                    g.places.push(place(column, position));
                }
            })?;
            g.row(docid, from);
        }
        let hits = g.done();
        lists.push(if config.descending { hits.reversed() } else { hits });
    }
    Ok(match lists.len() {
        0 => Gather::default().done(),
        1 => lists.remove(0),
        _ => union(lists),
    })
}

/// The hits of several tokens together.
fn union(lists: Vec<Hits>) -> Hits {
    let mut all: Vec<(i64, u64)> = Vec::new();
    for l in &lists {
        for (i, docid) in l.rows.iter().enumerate() {
            all.extend(l.of(i).iter().map(|p| (*docid, *p)));
        }
    }
    all.sort_unstable();
    all.dedup();
    let mut g = Gather::default();
    for row in all.chunk_by(|a, b| a.0 == b.0) {
        let from = g.places.len();
        g.places.extend(row.iter().map(|r| r.1));
        g.row(row[0].0, from);
    }
    g.done()
}

/// Those of `next` that stand right behind one of `hits`.
fn behind(hits: &Hits, next: &Hits) -> Hits {
    let mut g = Gather::default();
    let (mut i, mut j) = (0, 0);
    while i < hits.rows.len() && j < next.rows.len() {
        match hits.rows[i].cmp(&next.rows[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => {
                let (before, from) = (hits.of(i), g.places.len());
                let follows = |p: &&u64| **p & 0xffff_ffff > 0 && before.binary_search(&(**p - 1)).is_ok();
                g.places.extend(next.of(j).iter().filter(follows));
                g.row(hits.rows[i], from);
                (i, j) = (i + 1, j + 1);
            }
        }
    }
    g.done()
}

/// The hits of a phrase.
pub(super) fn of_phrase(index: &Index, language: i64, phrase: &Phrase) -> Result<Hits> {
    if phrase.terms.is_empty() {
        return Ok(Gather::default().done());
    }
    let mut hits = of_term(index, language, phrase, 0)?;
    for n in 1..phrase.terms.len() {
        if hits.rows.is_empty() {
            break;
        }
        hits = behind(&hits, &of_term(index, language, phrase, n)?);
    }
    Ok(hits)
}
