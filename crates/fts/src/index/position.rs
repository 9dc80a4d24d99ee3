//! Places of a token in a row, as bytes and as numbers.
//!
//! A place is a number: the column above, the offset in the low 32 bits. In the index, offsets are differences plus two; a one
//! begins another column. Where only columns are kept, a list has their numbers in the place of offsets.

use crate::config::Detail;
use iolite_base::varint;

/// Column and offset as one number.
#[inline]
pub(crate) fn place(column: u32, offset: u32) -> i64 {
    i64::from(column) << 32 | i64::from(offset)
}

/// The column of a place.
#[inline]
pub(crate) fn column_of(place: i64) -> i32 {
    (place >> 32) as i32
}

/// The offset of a place.
#[inline]
pub(crate) fn offset_of(place: i64) -> i32 {
    place as i32
}

/// A varint, most of which have one byte.
#[inline]
pub(crate) fn varint(b: &[u8], at: &mut usize) -> Option<u64> {
    let first = *b.get(*at)?;
    if first < 0x80 {
        *at += 1;
        return Some(first.into());
    }
    let (n, len) = varint::get(&b[*at..])?;
    *at += len;
    Some(n)
}

/// Reads places one after the other. What is damaged ends the list.
#[derive(Clone, Debug)]
pub(crate) struct Places<'a> {
    list: &'a [u8],
    at: usize,
    last: i64,
}

impl<'a> Places<'a> {
    pub fn new(list: &'a [u8]) -> Places<'a> {
        Places { list, at: 0, last: 0 }
    }
}

impl Iterator for Places<'_> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        let mut n = varint(self.list, &mut self.at)?;
        if n < 2 {
            if n == 0 {
                self.at = self.list.len();
                return None;
            }
            let column = varint(self.list, &mut self.at)?;
            self.last = place((column as u32) & 0x7fff_ffff, 0);
            n = varint(self.list, &mut self.at)?;
            if n < 2 {
                self.at = self.list.len();
                return None;
            }
        }
        let high = self.last & !0x7fff_ffff;
        self.last = high | (self.last.wrapping_add(n as i64 - 2) & 0x7fff_ffff);
        Some(self.last)
    }
}

/// How many places a list has.
#[inline]
pub(crate) fn count(list: &[u8]) -> usize {
    // Mostly there is one column: each number's last byte has no high bit. Zero ends a list, a one begins another column.
    let (mut ends, mut odd) = (0, false);
    for b in list {
        ends += (*b < 0x80) as usize;
        odd |= *b < 2;
    }
    if odd || list.last().is_some_and(|b| *b >= 0x80) { Places::new(list).count() } else { ends }
}

/// Reads a list of columns.
pub(crate) struct Columns<'a> {
    list: &'a [u8],
    at: usize,
    last: i64,
}

impl<'a> Columns<'a> {
    pub fn new(list: &'a [u8]) -> Columns<'a> {
        Columns { list, at: 0, last: 0 }
    }
}

impl Iterator for Columns<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let n = varint(self.list, &mut self.at)?;
        self.last = self.last.wrapping_add((n as i64).wrapping_sub(2));
        u32::try_from(self.last).ok().or_else(|| {
            self.at = self.list.len();
            None
        })
    }
}

/// Writes places in ascending order.
#[derive(Default)]
pub(crate) struct Writer {
    pub out: Vec<u8>,
    last: i64,
}

impl Writer {
    pub fn clear(&mut self) {
        self.out.clear();
        self.last = 0;
    }

    #[inline]
    pub fn push(&mut self, place: i64) {
        if column_of(place) != column_of(self.last) {
            self.out.push(1);
            push(&mut self.out, column_of(place) as u64);
            self.last = place & !0xffff_ffff;
        }
        push(&mut self.out, (place - self.last) as u64 + 2);
        self.last = place;
    }
}

/// Appends a varint.
#[inline]
pub(crate) fn push(out: &mut Vec<u8>, n: u64) {
    if n < 0x80 {
        out.push(n as u8);
    } else {
        varint::push(out, n);
    }
}

/// Both lists as one, in the order of places, each place once. Lists of columns count as offsets in column 0.
pub(crate) fn union(a: &[u8], b: &[u8], out: &mut Writer) {
    out.clear();
    let (mut a, mut b) = (Places::new(a).peekable(), Places::new(b).peekable());
    loop {
        let next = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) => *x.min(y),
            (Some(x), None) => *x,
            (None, Some(y)) => *y,
            (None, None) => return,
        };
        while a.peek() == Some(&next) {
            a.next();
        }
        while b.peek() == Some(&next) {
            b.next();
        }
        out.push(next);
    }
}

/// The part of a list that lies in the chosen columns, `columns` being ascending.
pub(crate) fn in_columns(list: &[u8], detail: Detail, columns: &[u32], out: &mut Vec<u8>) {
    out.clear();
    match detail {
        Detail::None => out.extend_from_slice(list),
        Detail::Column => {
            let mut last = 0;
            for c in Columns::new(list).filter(|c| columns.binary_search(c).is_ok()) {
                push(out, u64::from(c - last) + 2);
                last = c;
            }
        }
        Detail::Full => {
            let (mut at, mut column) = (0, 0u32);
            let mut from = 0;
            // Each column's part is copied as it is: offsets begin anew in it.
            loop {
                let start = at;
                let mut next = None;
                while let Some(n) = varint(list, &mut at) {
                    if n == 1 {
                        next = Some(at - 1);
                        break;
                    }
                }
                let end = next.unwrap_or(list.len());
                if columns.binary_search(&column).is_ok() && start < end {
                    out.extend_from_slice(&list[from..end]);
                }
                let Some(marker) = next else { return };
                from = marker;
                let Some(c) = varint(list, &mut at) else { return };
                column = c as u32;
            }
        }
    }
}
