//! Lists of rows with places, as bytes: for each row how far it is from the last one, then the places by columns, then 0.

use super::corrupt;
use crate::varint;
use iolite_base::Result;
use std::ops::Range;

/// A column and a position, as one number.
#[inline]
pub(crate) fn place(column: usize, position: i64) -> u64 {
    (column as u64) << 32 | position as u32 as u64
}

/// The rows of a list, as they stand in it.
pub(crate) struct Rows<'a> {
    list: &'a [u8],
    at: usize,
    docid: i64,
    started: bool,
    descending: bool,
}

impl<'a> Rows<'a> {
    pub fn new(list: &'a [u8], descending: bool) -> Rows<'a> {
        Rows { list, at: 0, docid: 0, started: false, descending }
    }

    /// The next row and where its places are, without the 0 at their end.
    pub fn next(&mut self) -> Result<Option<(i64, Range<usize>)>> {
        if self.at >= self.list.len() {
            return Ok(None);
        }
        let delta = varint::get(self.list, &mut self.at).ok_or_else(corrupt)? as i64;
        self.docid = match self.started && self.descending {
            true => self.docid.wrapping_sub(delta),
            false => self.docid.wrapping_add(delta),
        };
        self.started = true;
        let start = self.at;
        let mut inside = false;
        // A byte 0 ends the places, if it does not end a number.
        while let Some(b) = self.list.get(self.at) {
            if *b == 0 && !inside {
                self.at += 1;
                return Ok(Some((self.docid, start..self.at - 1)));
            }
            inside = b & 0x80 != 0;
            self.at += 1;
        }
        Err(corrupt())
    }
}

/// Reads places.
pub(crate) fn places(list: &[u8], mut f: impl FnMut(usize, i64)) -> Result<()> {
    let (mut at, mut column, mut position) = (0, 0usize, 0i64);
    while at < list.len() {
        match varint::get(list, &mut at).ok_or_else(corrupt)? {
            0 => return Err(corrupt()),
            1 => {
                let n = varint::get(list, &mut at).ok_or_else(corrupt)?;
                column = usize::try_from(n).ok().filter(|n| *n < 1 << 16).ok_or_else(corrupt)?;
                position = 0;
            }
            n => {
                position = position.wrapping_add(n as i64 - 2);
                if !(0..1 << 31).contains(&position) {
                    return Err(corrupt());
                }
                f(column, position);
            }
        }
    }
    Ok(())
}
