//! Characters: read from bytes that need not be UTF-8, written, folded, put into categories.
//!
//! What always holds: reading moves on by at least one byte; what is no character is U+FFFD.

use crate::unicode_tables as tables;
use std::sync::OnceLock;

const REPLACEMENT: u32 = 0xfffd;

/// The first character and its length in bytes.
#[inline]
pub fn read(text: &[u8]) -> Option<(u32, usize)> {
    let first = *text.first()?;
    if first < 0xc0 {
        // A continuation byte alone stands for itself.
        return Some((first.into(), 1));
    }
    let mut c: u32 = match first {
        0..=0xdf => first & 0x1f,
        0xe0..=0xef => first & 0x0f,
        0xf0..=0xf7 => first & 0x07,
        0xf8..=0xfb => first & 0x03,
        0xfc..=0xfd => first & 0x01,
        0xfe.. => 0,
    }
    .into();
    let mut n = 1;
    while let Some(b) = text.get(n).filter(|b| **b & 0xc0 == 0x80) {
        c = (c << 6).wrapping_add((b & 0x3f).into());
        n += 1;
    }
    if c < 0x80 || c & 0xffff_f800 == 0xd800 || c & 0xffff_fffe == 0xfffe {
        c = REPLACEMENT;
    }
    Some((c, n))
}

/// Appends a character.
#[inline]
pub fn push(out: &mut Vec<u8>, c: u32) {
    let low = |shift: u32| 0x80 | (c >> shift & 0x3f) as u8;
    match c {
        0..=0x7f => out.push(c as u8),
        0x80..=0x7ff => out.extend([0xc0 | (c >> 6) as u8, low(0)]),
        0x800..=0xffff => out.extend([0xe0 | (c >> 12) as u8, low(6), low(0)]),
        _ => out.extend([0xf0 | (c >> 18 & 7) as u8, low(12), low(6), low(0)]),
    }
}

/// The number of a character's general category.
pub(crate) fn category(c: u32) -> u8 {
    if c >= 1 << 20 {
        return tables::UNASSIGNED;
    }
    let runs = &tables::CATEGORIES;
    let at = runs.partition_point(|r| r >> 5 <= c) - 1;
    match (runs[at] & 31) as u8 {
        tables::ALTERNATING => {
            let lower = (c - (runs[at] >> 5)) % 2 == 1;
            // The numbers of `Lu` and `Ll`.
            if lower { 5 } else { 9 }
        }
        n => n,
    }
}

/// Whether it is a combining mark that belongs to the letter before it.
pub fn is_mark(c: u32) -> bool {
    (768..=817).contains(&c) && tables::MARKS.binary_search(&c).is_ok()
}

/// What becomes of letters that have diacritics.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Diacritics {
    /// They stay.
    Kept,
    /// They are removed from letters that have one.
    Single,
    /// They are removed.
    Removed,
}

/// Letters with diacritics and what they are without, for letters that have one, and for all.
fn plain_letters() -> &'static [Vec<(u32, u8)>; 2] {
    static LETTERS: OnceLock<[Vec<(u32, u8)>; 2]> = OnceLock::new();
    LETTERS.get_or_init(|| {
        let list = |t: &[(char, &str)]| {
            t.iter().flat_map(|(to, from)| from.chars().map(|c| (c as u32, *to as u8))).collect::<Vec<_>>()
        };
        let (mut one, mut all) = (list(&tables::SINGLE), list(&tables::SINGLE));
        all.extend(list(&tables::DOUBLE));
        one.sort_unstable();
        all.sort_unstable();
        [one, all]
    })
}

/// The folded character; `None`: it is dropped.
pub fn fold(c: u32, diacritics: Diacritics) -> Option<u32> {
    if c < 0x80 {
        return Some(if (65..=90).contains(&c) { c + 32 } else { c });
    }
    let folds = &tables::FOLDS;
    let at = folds.partition_point(|r| r.0 <= c);
    let mut c = c;
    if let Some(&(first, last, step, add)) = at.checked_sub(1).map(|i| &folds[i])
        && c <= last
        && (c - first).is_multiple_of(step)
    {
        c = c.wrapping_add_signed(add);
    }
    if diacritics == Diacritics::Kept {
        return Some(c);
    }
    if is_mark(c) {
        return None;
    }
    let table = &plain_letters()[(diacritics == Diacritics::Removed) as usize];
    match table.binary_search_by_key(&c, |p| p.0) {
        Ok(i) => Some(table[i].1.into()),
        Err(_) => Some(c),
    }
}

/// How many characters a text has.
pub fn char_count(mut text: &[u8]) -> usize {
    let mut n = 0;
    while let Some((_, len)) = read(text) {
        n += 1;
        text = &text[len..];
    }
    n
}
