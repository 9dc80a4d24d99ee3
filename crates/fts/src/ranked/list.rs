//! The rows of one phrase with what each adds to a score, in memory.
//!
//! What always holds: rows ascend; values are those that `bm25` computes, to the bit. At first a value is the phrase's frequency in
//! the row, weighted by columns; once the sizes of all its rows are known it is the phrase's part of the score. The bytes are counted
//! for as long as the list is there.

use super::sizes::Sizes;
use crate::auxiliary::bm25;
use crate::index::position::{Places, column_of};
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

impl List {
    /// The rows of a phrase, read from the index; `None`: they are too many.
    pub fn read(storage: &Storage, query: &Query, phrase: usize, weights: &Weights) -> Result<Option<List>> {
        let mut list = List::default();
        let mut run = Run::new(&storage.index, &query.only(phrase), false)?;
        let fits = run.each(|rowid, places| {
            let places = Places::new(places);
            let frequency = match weights {
                None => places.count() as f64,
                Some(w) => places.fold(0.0, |f, p| f + w.get(column_of(p) as usize).copied().unwrap_or(1.0)),
            };
            alloc::reserve(&mut list.rows, 1)?;
            alloc::reserve(&mut list.values, 1)?;
            list.rows.push(rowid);
            list.values.push(frequency);
            Ok(list.rows.len() <= MOST_ROWS)
        })?;
        list.rows.shrink_to_fit();
        list.values.shrink_to_fit();
        list.count_bytes()?;
        Ok(fits.then_some(list))
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
        let rarity = bm25::rarity(rows, self.rows.len() as i64);
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
