//! Phrases and phrases near each other, looked for in the rows of their tokens.

use super::parser::{Near, Phrase};
use crate::index::position::{self, Places, offset_of};
use crate::index::{Index, Rows};
use iolite_base::{Code, Result};
use std::borrow::Cow;

/// The rows of a token, and of its synonyms.
struct Token {
    rows: Vec<Rows>,
    /// It has to be the first of its column.
    first: bool,
}

impl Token {
    #[inline]
    fn rowid(&self, backwards: bool) -> Option<i64> {
        if let [r] = &self.rows[..] {
            return (!r.eof).then_some(r.rowid);
        }
        let rowids = self.rows.iter().filter(|r| !r.eof).map(|r| r.rowid);
        if backwards { rowids.max() } else { rowids.min() }
    }

    fn next(&mut self, now: i64) -> Result<()> {
        if let [r] = &mut self.rows[..] {
            return if r.eof { Ok(()) } else { r.next() };
        }
        for r in self.rows.iter_mut().filter(|r| !r.eof && r.rowid == now) {
            r.next()?;
        }
        Ok(())
    }

    #[inline]
    fn advance(&mut self, rowid: i64) -> Result<()> {
        if let [r] = &mut self.rows[..] {
            return if r.eof || r.rowid == rowid { Ok(()) } else { r.advance(rowid) };
        }
        for r in self.rows.iter_mut().filter(|r| !r.eof) {
            r.advance(rowid)?;
        }
        Ok(())
    }

    /// The places in a row.
    #[inline]
    fn places(&self, rowid: i64) -> Result<Cow<'_, [u8]>> {
        if let [r] = &self.rows[..]
            && !r.eof
            && r.rowid == rowid
        {
            return r.places();
        }
        self.places_of_all(rowid)
    }

    fn places_of_all(&self, rowid: i64) -> Result<Cow<'_, [u8]>> {
        let mut here = self.rows.iter().filter(|r| !r.eof && r.rowid == rowid);
        let Some(first) = here.next() else { return Ok(Cow::Borrowed(&[])) };
        let mut all = first.places()?;
        for r in here {
            let mut w = position::Writer::default();
            position::union(&all, &r.places()?, &mut w);
            all = Cow::Owned(w.out);
        }
        Ok(all)
    }
}

/// A phrase's tokens, and where it is in the present row.
struct Found {
    number: usize,
    tokens: Vec<Token>,
    places: Vec<i64>,
    /// The places before those that are not near the others were taken out.
    all: Vec<i64>,
    /// How far these were looked at.
    at: usize,
}

/// Phrases that have to be near each other; mostly there is one.
pub(super) struct NearRows {
    phrases: Vec<Found>,
    distance: i64,
    backwards: bool,
    /// One phrase of one token: all its rows match.
    plain: bool,
    pub rowid: i64,
    pub eof: bool,
}

/// Those of ascending places behind which one of the others is. Most rows with two tokens have none.
#[inline]
fn followed(mut places: impl Iterator<Item = i64>, mut others: Places<'_>, out: &mut Vec<i64>) {
    let (mut a, mut b) = (places.next(), others.next());
    while let (Some(x), Some(y)) = (a, b) {
        let wanted = x + 1;
        if wanted == y {
            out.push(x);
        }
        if wanted <= y {
            a = places.next();
        }
        if wanted >= y {
            b = others.next();
        }
    }
}

impl NearRows {
    pub fn new(index: &Index, near: &Near, phrases: &[Phrase], backwards: bool) -> Result<NearRows> {
        let mut list = Vec::new();
        for &number in &near.phrases {
            let mut tokens = Vec::new();
            for t in &phrases[number].terms {
                let columns = near.columns.as_deref();
                let rows: Result<Vec<Rows>> =
                    t.tokens.iter().map(|k| index.rows(k, t.prefix, backwards, columns)).collect();
                tokens.push(Token { rows: rows?, first: t.first });
            }
            list.push(Found { number, tokens, places: Vec::new(), all: Vec::new(), at: 0 });
        }
        let one = list.len() == 1 && list[0].tokens.len() == 1;
        let plain = one && !list[0].tokens[0].first;
        let distance = near.distance;
        let mut n = NearRows { phrases: list, distance, backwards, plain, rowid: 0, eof: false };
        n.settle()?;
        Ok(n)
    }

    fn end(&mut self) -> Result<()> {
        self.eof = true;
        Ok(())
    }

    /// Goes to the first row, from where the tokens are, that all have and that matches.
    fn settle(&mut self) -> Result<()> {
        let backwards = self.backwards;
        loop {
            let Some(mut rowid) = self.phrases[0].tokens[0].rowid(backwards) else { return self.end() };
            // Whoever has no such row names the next that may be one.
            'agree: loop {
                for p in &mut self.phrases {
                    for t in &mut p.tokens {
                        t.advance(rowid)?;
                        match t.rowid(backwards) {
                            Some(r) if r == rowid => {}
                            Some(r) => {
                                rowid = r;
                                continue 'agree;
                            }
                            None => return self.end(),
                        }
                    }
                }
                break;
            }
            self.rowid = rowid;
            if self.plain || self.matches()? {
                return Ok(());
            }
            self.phrases[0].tokens[0].next(rowid)?;
        }
    }

    pub fn next(&mut self) -> Result<()> {
        let rowid = self.rowid;
        let first = &mut self.phrases[0].tokens[0];
        if self.plain && first.rows.len() == 1 {
            let r = &mut first.rows[0];
            r.next()?;
            (self.rowid, self.eof) = (r.rowid, r.eof);
            return Ok(());
        }
        first.next(rowid)?;
        self.settle()
    }

    pub fn advance(&mut self, rowid: i64) -> Result<()> {
        self.phrases[0].tokens[0].advance(rowid)?;
        self.settle()
    }

    /// Whether the present row, which has all tokens, has the phrases.
    fn matches(&mut self) -> Result<bool> {
        for p in &mut self.phrases {
            let mut found = std::mem::take(&mut p.places);
            found.clear();
            let (first, others) = p.tokens.split_first().ok_or(Code::Internal)?;
            let list = first.places(self.rowid)?;
            let begins = Places::new(&list).filter(|p| !first.first || offset_of(*p) == 0);
            match others.first() {
                None if !first.first => found.extend(Places::new(&list)),
                None => found.extend(begins),
                Some(second) => followed(begins, Places::new(&second.places(self.rowid)?), &mut found),
            }
            for (k, t) in p.tokens.iter().enumerate().skip(2) {
                if found.is_empty() {
                    break;
                }
                let list = t.places(self.rowid)?;
                let mut here = Places::new(&list).peekable();
                found.retain(|p| {
                    let wanted = p + k as i64;
                    while here.peek().is_some_and(|h| *h < wanted) {
                        here.next();
                    }
                    here.peek() == Some(&wanted)
                });
            }
            p.places = found;
            if p.places.is_empty() {
                return Ok(false);
            }
        }
        if self.phrases.len() > 1 {
            self.trim_to_near();
        }
        Ok(self.phrases.iter().all(|p| !p.places.is_empty()))
    }

    /// Keeps the places of each phrase that have all others near them.
    fn trim_to_near(&mut self) {
        let distance = self.distance;
        for p in &mut self.phrases {
            std::mem::swap(&mut p.places, &mut p.all);
            p.places.clear();
            p.at = 0;
        }
        let mut last = self.phrases[0].all[0];
        loop {
            // Each phrase goes on until all are at most so far before the one that is last.
            loop {
                let mut near = true;
                for p in &mut self.phrases {
                    let least = last - p.tokens.len() as i64 - distance;
                    let here = p.all[p.at];
                    if here >= least && here <= last {
                        continue;
                    }
                    near = false;
                    while p.all[p.at] < least {
                        p.at += 1;
                        if p.at == p.all.len() {
                            return;
                        }
                    }
                    last = last.max(p.all[p.at]);
                }
                if near {
                    break;
                }
            }
            for p in &mut self.phrases {
                let here = p.all[p.at];
                if p.places.last() != Some(&here) {
                    p.places.push(here);
                }
            }
            // The one whose next place comes first goes on.
            let next = |p: &Found| p.all.get(p.at + 1).copied().unwrap_or(i64::MAX);
            let Some(first) = self.phrases.iter_mut().min_by_key(|p| next(p)) else { return };
            first.at += 1;
            let Some(place) = first.all.get(first.at) else { return };
            last = last.max(*place);
        }
    }

    /// Whether it has the phrase of this number.
    pub fn has(&self, phrase: usize) -> bool {
        self.phrases.iter().any(|p| p.number == phrase)
    }

    /// Appends the list of the places of a phrase in the present row.
    pub fn list(&self, phrase: usize, out: &mut Vec<u8>) -> Result<()> {
        let Some(p) = self.phrases.iter().find(|p| p.number == phrase) else { return Ok(()) };
        if self.plain {
            out.extend_from_slice(&p.tokens[0].places(self.rowid)?);
            return Ok(());
        }
        let mut w = position::Writer::default();
        p.places.iter().for_each(|p| w.push(*p));
        out.extend_from_slice(&w.out);
        Ok(())
    }
}
