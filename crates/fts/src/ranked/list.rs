//! The rows of one phrase with what each adds to a score, in memory.
//!
//! What always holds: rows ascend; values are those that `bm25` computes, to the bit. At first a value is the phrase's frequency in
//! the row, weighted by columns; once the sizes of all its rows are known it is the phrase's part of the score. The bytes are counted
//! for as long as the list is there.

use super::sizes::Sizes;
use crate::auxiliary::bm25;
use crate::config::Detail;
use crate::index::position::{self, Places, column_of};
use crate::query::{Query, Run};
use crate::storage::Storage;
use iolite_base::{Result, alloc};

/// So many rows share one greatest value.
pub(super) const BLOCK: usize = 128;
/// A phrase with more rows is not kept in memory, not even for one query.
const MOST_ROWS: usize = 4 << 20;

/// A list. See the module's head.
#[derive(Default)]
pub(super) struct List {
    pub rows: Vec<i64>,
    pub values: Vec<f64>,
    /// How many rows have the phrase: more than there are here, where it has to be near others.
    pub hits: i64,
    /// Values are parts of scores.
    pub scored: bool,
    /// The greatest value of each block.
    pub tops: Vec<f64>,
    /// The greatest value.
    pub top: f64,
    /// The least value.
    pub least: f64,
    claimed: usize,
}

impl Drop for List {
    fn drop(&mut self) {
        alloc::release(self.claimed);
    }
}

/// How much columns count; none: each alike.
pub(super) type Weights = Option<Vec<f64>>;

/// Stands for a frequency where an entry says that the row has nothing.
const ABSENT: f64 = -1.0;

fn frequency(places: &[u8], weights: &Weights) -> f64 {
    match weights {
        None => position::count(places) as f64,
        Some(w) => {
            let weight = |p| w.get(column_of(p) as usize).copied().unwrap_or(1.0);
            Places::new(places).fold(0.0, |f, p| f + weight(p))
        }
    }
}

impl List {
    /// The rows of a phrase, read from the index; `None`: they are too many.
    pub fn read(storage: &Storage, query: &Query, phrase: usize, weights: &Weights) -> Result<Option<List>> {
        let mut list = List::default();
        let fits = match &query.phrases[phrase].terms[..] {
            [term] if !term.first && term.tokens.len() == 1 => {
                let read = list.read_token(
                    storage,
                    (&term.tokens[0], term.prefix),
                    query.columns_of(phrase),
                    weights,
                )?;
                match read {
                    Some(fits) => fits,
                    None => list.read_rows(storage, query, phrase, weights)?,
                }
            }
            _ => list.read_rows(storage, query, phrase, weights)?,
        };
        list.hits = list.rows.len() as i64;
        list.end()?;
        Ok(fits.then_some(list))
    }

    /// The rows in which phrases are near each other, once for each of these phrases, with the places of it that are; `None`: they are too
    /// many. How many rows have a phrase anywhere is not known here.
    pub fn read_near(
        storage: &Storage,
        query: &Query,
        phrases: &[usize],
        weights: &Weights,
    ) -> Result<Option<Vec<List>>> {
        let mut lists: Vec<List> = phrases.iter().map(|_| List::default()).collect();
        let mut run = Run::new(&storage.index, &query.near_alone(phrases[0]), false)?;
        let (mut places, mut fits) = (Vec::new(), true);
        while fits && !run.eof() {
            for (list, phrase) in lists.iter_mut().zip(phrases) {
                places.clear();
                run.list(*phrase, &mut places)?;
                list.push(run.rowid(), frequency(&places, weights))?;
                fits = list.rows.len() <= MOST_ROWS;
            }
            run.next()?;
        }
        lists.iter_mut().try_for_each(List::end)?;
        Ok(fits.then_some(lists))
    }

    /// All rows are there.
    fn end(&mut self) -> Result<()> {
        self.rows.shrink_to_fit();
        self.values.shrink_to_fit();
        self.count_bytes()
    }

    fn push(&mut self, rowid: i64, value: f64) -> Result<()> {
        if self.rows.len() == self.rows.capacity() {
            alloc::reserve(&mut self.rows, 1)?;
            alloc::reserve(&mut self.values, 1)?;
        }
        self.rows.push(rowid);
        self.values.push(value);
        Ok(())
    }

    /// Reads the rows of a single token segment by segment; `None`: it is no single token in the index. Answers whether they are not too many.
    fn read_token(
        &mut self,
        storage: &Storage,
        (token, prefix): (&[u8], bool),
        columns: Option<&[u32]>,
        weights: &Weights,
    ) -> Result<Option<bool>> {
        let (mut ascending, mut absent) = (true, false);
        let mut chosen = Vec::new();
        let whole = storage.index.each_entry(token, prefix, |rowid, there, places| {
            if self.rows.len() > MOST_ROWS {
                return Ok(());
            }
            let mut value = ABSENT;
            if there {
                let places = match columns {
                    None => places,
                    Some(columns) => {
                        position::in_columns(places, Detail::Full, columns, &mut chosen);
                        &chosen
                    }
                };
                if columns.is_none() || !places.is_empty() {
                    value = frequency(places, weights);
                }
            }
            ascending &= self.rows.last().is_none_or(|last| *last < rowid);
            absent |= value == ABSENT;
            self.push(rowid, value)
        })?;
        if !whole {
            return Ok(None);
        }
        let fits = self.rows.len() <= MOST_ROWS;
        if fits && (!ascending || absent) {
            self.keep_newest()?;
        }
        Ok(Some(fits))
    }

    /// Of entries of one row, the last one counts; rows that it says have nothing go.
    fn keep_newest(&mut self) -> Result<()> {
        let mut order: Vec<u32> = Vec::new();
        alloc::reserve(&mut order, self.rows.len())?;
        order.extend(0..self.rows.len() as u32);
        // Runs that ascend, one for each segment, are merged.
        order.sort_by_key(|i| self.rows[*i as usize]);
        let mut kept = List::default();
        for (n, i) in order.iter().enumerate() {
            let (row, value) = (self.rows[*i as usize], self.values[*i as usize]);
            let newer = order.get(n + 1).is_some_and(|next| self.rows[*next as usize] == row);
            if !newer && value != ABSENT {
                kept.push(row, value)?;
            }
        }
        std::mem::swap(&mut self.rows, &mut kept.rows);
        std::mem::swap(&mut self.values, &mut kept.values);
        Ok(())
    }

    /// Reads the rows of a phrase one after the other.
    fn read_rows(
        &mut self,
        storage: &Storage,
        query: &Query,
        phrase: usize,
        weights: &Weights,
    ) -> Result<bool> {
        let mut run = Run::new(&storage.index, &query.only(phrase), false)?;
        let mut places = Vec::new();
        while !run.eof() {
            places.clear();
            run.list(0, &mut places)?;
            self.push(run.rowid(), frequency(&places, weights))?;
            if self.rows.len() > MOST_ROWS {
                return Ok(false);
            }
            run.next()?;
        }
        Ok(true)
    }

    /// How many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.claimed
    }

    fn count_bytes(&mut self) -> Result<()> {
        let bytes = (self.rows.capacity() + self.values.capacity() + self.tops.capacity()) * 8;
        alloc::claim(bytes)?;
        alloc::release(std::mem::replace(&mut self.claimed, bytes));
        Ok(())
    }

    /// Another one of the same content, which is not scored yet.
    pub fn copy(&self) -> Result<List> {
        let mut l = List::default();
        l.hits = self.hits;
        alloc::reserve(&mut l.rows, self.rows.len())?;
        alloc::reserve(&mut l.values, self.rows.len())?;
        l.rows.extend_from_slice(&self.rows);
        l.values.extend_from_slice(&self.values);
        l.count_bytes()?;
        Ok(l)
    }

    /// Makes parts of scores of frequencies; `size` is asked for the number of tokens of a row. False: a size is not known, or a part is not a
    /// number to compare with; the list is of no use then.
    pub fn score(
        &mut self,
        rows: i64,
        average: f64,
        mut size: impl FnMut(i64) -> Result<Option<u32>>,
    ) -> Result<bool> {
        let rarity = bm25::rarity(rows, self.hits);
        alloc::reserve(&mut self.tops, self.rows.len().div_ceil(BLOCK))?;
        (self.top, self.least) = (0.0, f64::INFINITY);
        for (rows, values) in self.rows.chunks(BLOCK).zip(self.values.chunks_mut(BLOCK)) {
            let mut top = 0.0f64;
            for (row, value) in rows.iter().zip(values) {
                let Some(n) = size(*row)? else { return Ok(false) };
                let part = bm25::part(rarity, *value, f64::from(n), average);
                if !(part >= 0.0 && part.is_finite()) {
                    return Ok(false);
                }
                *value = part;
                top = top.max(part);
                self.least = self.least.min(part);
            }
            self.tops.push(top);
            self.top = self.top.max(top);
        }
        self.scored = true;
        self.count_bytes()?;
        Ok(true)
    }

    /// As [`List::score`], with the sizes of all rows at hand.
    pub fn score_by(&mut self, rows: i64, average: f64, sizes: &Sizes) -> Result<bool> {
        let mut at = 0;
        self.score(rows, average, |row| Ok(sizes.find(row, &mut at)))
    }

    /// The greatest value of the rows with numbers in a range.
    pub fn top_of(&self, from: usize, to: usize) -> f64 {
        match from < to {
            true => self.tops[from / BLOCK..=(to - 1) / BLOCK].iter().fold(0.0, |a, b| a.max(*b)),
            false => 0.0,
        }
    }
}

/// The number of the first row from `at` on that is not before `to`: close ones are found fast.
#[inline]
pub(super) fn seek(rows: &[i64], at: usize, to: i64) -> usize {
    let mut step = 1;
    let (mut low, mut high) = (at, at);
    while high < rows.len() && rows[high] < to {
        low = high + 1;
        high += step;
        step *= 2;
    }
    let high = high.min(rows.len());
    low + rows[low..high].partition_point(|r| *r < to)
}
