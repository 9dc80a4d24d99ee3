//! Finding the place of a key among the entries of one index node.
//!
//! A comparison with an entry is the caller's ([`EntryOrder`]), and the search goes by halves. If the key begins with an
//! integer or two, or with a text that is compared by its bytes, most entries are told apart here: 17 comparisons of 100
//! instructions each were a fifth of an insert. Where all entries of a node begin with the same bytes, what follows those is compared.
//! Keys that begin with integers are also sought where they should be if they were spread evenly, which for
//! most is the right place or one beside it, and looks at three cells where halving looks at nine.
//!
//! What always holds: equal leading integers, and whatever is no integer, are left to the caller; a page that lies about its
//! entries leads to a wrong place at worst.

use crate::btree::Shared;
use crate::cursor::EntryOrder;
use crate::node::*;
use iolite_base::Result;
use iolite_base::be::{beginning, shared};
use std::cmp::Ordering;

/// Nodes of so many cells are searched by halves from the beginning.
const FEW: usize = 8;

/// What is known of a key while the search goes down the tree: the nearest first integers on both sides.
#[derive(Default)]
pub struct Span {
    least: Option<i64>,
    most: Option<i64>,
}

/// One node while it is searched.
struct Entries<'a> {
    bt: &'a Shared,
    layout: &'a Layout,
    node: &'a Node,
    page: &'a [u8],
    pointers: &'a [[u8; 2]],
    /// Bytes of a cell before its payload's length.
    child: usize,
    /// A payload of so many bytes is whole on the node, and its length one byte.
    short: usize,
}

/// The first cell that is not less than the key, and whether it is equal.
#[inline]
pub fn search<F>(
    bt: &Shared,
    layout: &Layout,
    node: &Node,
    whole: &mut Vec<u8>,
    cmp: &mut F,
    span: &mut Span,
) -> Result<(u32, bool)>
where
    F: EntryOrder,
{
    let Some(entries) = Entries::of(bt, layout, node) else { return Err(corrupt()) };
    match cmp.first_int() {
        Some(key) => entries.by_integer(key, whole, cmp, span),
        None => match cmp.first_text(0) {
            Some(key) => entries.by_text(key, whole, cmp),
            None => entries.by_halves(0, entries.pointers.len(), |i| entries.compare(i, whole, cmp)),
        },
    }
}

/// Whether the key lies between a node's first entry and its last, these included; what was learned of them is noted in `span`.
#[inline]
pub fn is_within<F>(
    bt: &Shared,
    layout: &Layout,
    node: &Node,
    whole: &mut Vec<u8>,
    cmp: &mut F,
    span: &mut Span,
) -> Result<bool>
where
    F: EntryOrder,
{
    let Some(entries) = Entries::of(bt, layout, node) else { return Err(corrupt()) };
    let Some(last) = entries.pointers.len().checked_sub(1) else { return Ok(false) };
    let key = cmp.first_int();
    if entries.compare_ends(0, key, whole, cmp, &mut span.least)? == Ordering::Greater {
        return Ok(false);
    }
    Ok(entries.compare_ends(last, key, whole, cmp, &mut span.most)? != Ordering::Less)
}

impl<'a> Entries<'a> {
    #[inline(always)]
    fn of(bt: &'a Shared, layout: &'a Layout, node: &'a Node) -> Option<Entries<'a>> {
        let page: &[u8] = &node.page;
        let ptrs = node.ptrs as usize;
        let (pointers, _) = page.get(ptrs..ptrs + 2 * node.ncell as usize)?.as_chunks::<2>();
        let child = if node.leaf { 0 } else { 4 };
        let short = layout.max_index.min(0x7f) as usize;
        Some(Entries { bt, layout, node, page, pointers, child, short })
    }
}

impl Entries<'_> {
    /// The first entry or the last against the key, which begins with the integer `key` if that is one; the entry's is noted.
    #[inline]
    fn compare_ends<F: EntryOrder>(
        &self,
        i: usize,
        key: Option<i64>,
        whole: &mut Vec<u8>,
        cmp: &mut F,
        noted: &mut Option<i64>,
    ) -> Result<Ordering> {
        if let Some(key) = key {
            if let Some((v, _)) = self.entry(i).and_then(|b| self.first(b)) {
                *noted = Some(v);
                if v != key {
                    return Ok(v.cmp(&key));
                }
            }
        } else if let Some(key) = cmp.first_text(0)
            && let Some(v) = self.text(i)
            && v != key
        {
            return Ok(v.cmp(&key));
        }
        self.compare(i, whole, cmp)
    }

    #[inline(always)]
    fn cell(&self, i: usize) -> usize {
        u16::from_be_bytes(self.pointers[i]) as usize
    }

    /// Entry `i` against the key, by the caller.
    #[inline(always)]
    fn compare<F: EntryOrder>(&self, i: usize, whole: &mut Vec<u8>, cmp: &mut F) -> Result<Ordering> {
        let at = self.cell(i);
        let entry = match self.page.get(at + self.child..) {
            Some([len, rest @ ..]) if *len as usize <= self.short => rest.get(..*len as usize),
            _ => None,
        };
        match entry {
            Some(entry) => cmp.order(entry),
            None => compare_any(self.bt, self.layout, self.node, at, whole, cmp),
        }
    }

    #[inline(always)]
    fn by_halves(
        &self,
        mut low: usize,
        mut high: usize,
        mut compare: impl FnMut(usize) -> Result<Ordering>,
    ) -> Result<(u32, bool)> {
        while low < high {
            // Of two in the middle the first, as SQLite does: it tells in trees that are out of order.
            let mid = (low + high - 1) / 2;
            match compare(mid)? {
                Ordering::Less => low = mid + 1,
                Ordering::Greater => high = mid,
                Ordering::Equal => return Ok((mid as u32, true)),
            }
        }
        Ok((low as u32, false))
    }

    /// The page from entry `i` on, which begins with its length.
    #[inline(always)]
    fn entry(&self, i: usize) -> Option<&[u8]> {
        self.page.get(self.cell(i) + self.child..)
    }

    /// The integer that an entry begins with, and where the field behind it lies. `None`: it begins otherwise, or is long.
    #[inline(always)]
    fn first(&self, b: &[u8]) -> Option<(i64, usize)> {
        match *b {
            [len, head, t, ..] if head <= 7 && len as usize <= self.short => {
                self.integer(b, t, 1 + head as usize)
            }
            _ => None,
        }
    }

    /// The type of the first field of entry `i`, the eight bytes from it on, and how many of the entry's own there are. `None`: the entry
    /// is long, or has many fields, or lies at the page's end.
    #[inline(always)]
    fn near(&self, i: usize) -> Option<(u8, u64, usize)> {
        let at = self.cell(i) + self.child;
        let b: &[u8; 16] = self.page.get(at..at + 16)?.try_into().ok()?;
        let (len, head) = (b[0] as usize, b[1] as usize);
        if head > 7 || len > self.short {
            return None;
        }
        let word = b[1 + head..9 + head].try_into().ok()?;
        Some((b[2], u64::from_be_bytes(word), len.checked_sub(head)?))
    }

    /// The integer that entry `i` begins with, and how many bytes it takes. `None`: as [`Entries::near`] says, or it begins otherwise.
    #[inline(always)]
    fn near_integer(&self, i: usize) -> Option<(i64, usize)> {
        let (t, word, have) = self.near(i)?;
        let bytes = (0x0864_3210u64 >> (4 * (t & 15))) as usize & 15;
        match t {
            1..=6 if bytes <= have => Some((word as i64 >> (64 - 8 * bytes), bytes)),
            8 | 9 => Some((t as i64 - 8, 0)),
            _ => None,
        }
    }

    /// The integer of the second field of entry `i`, whose first one takes so many bytes.
    #[inline(always)]
    fn behind(&self, i: usize, bytes: usize) -> Option<i64> {
        let b = self.entry(i)?;
        self.second(b, 1 + *b.get(1)? as usize + bytes)
    }

    /// The integer of the second field of entry `i`, if the first one is `key`.
    #[inline]
    fn second_under(&self, key: i64, i: usize) -> Option<i64> {
        let (_, bytes) = self.near_integer(i).filter(|(v, _)| *v == key)?;
        self.behind(i, bytes)
    }

    /// The beginning of the text that entry `i` begins with. `None`: as [`Entries::near`] says, or it begins otherwise.
    #[inline(always)]
    fn text(&self, i: usize) -> Option<u64> {
        let (t, word, have) = self.near(i)?;
        // A text's type is odd, from 13 on, and that of a longer one takes another byte: with the bit that says odd at the top, one
        // comparison will do.
        let bytes = t.wrapping_sub(13).rotate_right(1) as usize;
        if bytes > (0x7f - 13) / 2 || bytes > have {
            return None;
        }
        Some(match bytes {
            8.. => word,
            0 => 0,
            n => word & u64::MAX << (64 - 8 * n),
        })
    }

    /// The text that entry `i` begins with, which lies on the page.
    #[inline(never)]
    fn whole_text(&self, i: usize) -> Option<&[u8]> {
        let b = self.entry(i)?;
        let (len, at) = match *b {
            [len @ 0..0x80, ..] => (len as usize, 1),
            [high, low @ 0..0x80, ..] => ((high as usize & 0x7f) << 7 | low as usize, 2),
            _ => return None,
        };
        let payload = b.get(at..at + len).filter(|_| len <= self.layout.max_index as usize)?;
        let t = match *payload {
            [_, t @ 0..0x80, ..] => t as usize,
            [_, high, low @ 0..0x80, ..] => (high as usize & 0x7f) << 7 | low as usize,
            _ => return None,
        };
        let head = payload[0] as usize;
        if t < 13 || t & 1 == 0 || head >= 0x80 {
            return None;
        }
        payload.get(head..head + (t - 13) / 2)
    }

    /// The beginning of what follows the first `from` bytes of the text that entry `i` begins with. `None`: it begins otherwise, or is
    /// shorter, or is long or at the page's end.
    #[inline(always)]
    fn text_from(&self, i: usize, from: usize) -> Option<u64> {
        let at = self.cell(i) + self.child;
        let b: &[u8; 4] = self.page.get(at..at + 4)?.try_into().ok()?;
        let (len, head, t) = (b[0] as usize, b[1] as usize, b[2]);
        let bytes = t.wrapping_sub(13).rotate_right(1) as usize;
        if len > self.short || bytes > (0x7f - 13) / 2 || head + bytes > len {
            return None;
        }
        let start = at + 1 + head + from;
        let word: &[u8; 8] = self.page.get(start..start + 8)?.try_into().ok()?;
        let word = u64::from_be_bytes(*word);
        match bytes.checked_sub(from)? {
            8.. => Some(word),
            0 => Some(0),
            n => Some(word & u64::MAX << (64 - 8 * n)),
        }
    }

    /// The search for a key that begins with a text, whose beginning is `key`. Where all entries of the node begin with the same bytes,
    /// as addresses and names with a number behind do, what follows these bytes is compared.
    #[inline]
    fn by_text<F: EntryOrder>(&self, key: u64, whole: &mut Vec<u8>, cmp: &mut F) -> Result<(u32, bool)> {
        let n = self.pointers.len();
        if n > FEW
            && let (Some(first), Some(last)) = (self.whole_text(0), self.whole_text(n - 1))
        {
            let shared = shared(first, last);
            if shared >= 8 {
                match cmp.text_against(&first[..shared]) {
                    Ordering::Less => return Ok((0, false)),
                    Ordering::Greater => return Ok((n as u32, false)),
                    Ordering::Equal => {}
                }
                if let Some(key) = cmp.first_text(shared) {
                    return self.by_halves(0, n, |i| {
                        let long = || self.whole_text(i).and_then(|t| t.get(shared..)).map(beginning);
                        match self.text_from(i, shared).or_else(long) {
                            Some(v) if v != key => Ok(v.cmp(&key)),
                            _ => self.compare(i, whole, cmp),
                        }
                    });
                }
            }
        }
        self.by_halves(0, n, |i| match self.text(i) {
            Some(v) if v != key => Ok(v.cmp(&key)),
            _ => self.compare(i, whole, cmp),
        })
    }

    /// The integer of an entry's second field, which lies at `at`.
    #[inline(always)]
    fn second(&self, b: &[u8], at: usize) -> Option<i64> {
        match *b {
            [_, head, _, t, ..] if head >= 3 => self.integer(b, t, at).map(|(v, _)| v),
            _ => None,
        }
    }

    /// The integer of serial type `t` at `at` of an entry, and where it ends. `None`: it is none, or not wholly in the entry.
    #[inline(always)]
    fn integer(&self, b: &[u8], t: u8, at: usize) -> Option<(i64, usize)> {
        // Bytes of an integer by serial type: 1, 2, 3, 4, 6, 8; 8 and 9 stand for 0 and 1, 0 and 7 for something else.
        let bytes = (0x0864_3210u64 >> (4 * (t & 15))) as usize & 15;
        let end = at + bytes;
        if t > 9 || end > 1 + b[0] as usize {
            return None;
        }
        if bytes == 0 {
            return if t >= 8 { Some((t as i64 - 8, end)) } else { None };
        }
        let word = match b.get(at..)?.first_chunk() {
            Some(c) => u64::from_be_bytes(*c),
            None => u64::from_be_bytes(last_bytes(self.page, self.page.len() - b.len() + at)?),
        };
        Some((word as i64 >> (64 - 8 * bytes), end))
    }

    #[inline]
    fn by_integer<F: EntryOrder>(
        &self,
        key: i64,
        whole: &mut Vec<u8>,
        cmp: &mut F,
        span: &mut Span,
    ) -> Result<(u32, bool)> {
        let n = self.pointers.len();
        let second = cmp.second_int();
        let mut guess = None;
        if n > FEW
            && let Some((least, most)) = self.ends(span)
        {
            if least == most
                && let Some(second) = second.filter(|_| key == least)
                && let Some(ends) = self.second_under(key, 0).zip(self.second_under(key, n - 1))
            {
                return from_guess(n, guess_between(second, ends, n), |i| match self.second_under(key, i) {
                    Some(v) if v != second => Ok(v.cmp(&second)),
                    _ => self.compare(i, whole, cmp),
                });
            }
            guess = guess_between(key, (least, most), n);
        }
        from_guess(n, guess, |i| {
            let known = match self.near_integer(i) {
                Some((v, _)) if v != key => Some((v, v.cmp(&key))),
                Some((v, bytes)) => second
                    .and_then(|second| Some(self.behind(i, bytes)?.cmp(&second)).filter(|o| o.is_ne()))
                    .map(|o| (v, o)),
                None => self.first_of(i).filter(|v| *v != key).map(|v| (v, v.cmp(&key))),
            };
            let Some((v, order)) = known else { return self.compare(i, whole, cmp) };
            *(if order.is_lt() { &mut span.least } else { &mut span.most }) = Some(v);
            Ok(order)
        })
    }

    /// The integer that any entry begins with.
    #[inline]
    fn first_of(&self, i: usize) -> Option<i64> {
        self.first(self.entry(i)?).map(|(v, _)| v)
    }

    /// The integers that the first entry and the last begin with, or what lies nearest outside.
    #[inline]
    fn ends(&self, span: &Span) -> Option<(i64, i64)> {
        let least = span.least.or_else(|| self.first_of(0))?;
        let most = span.most.or_else(|| self.first_of(self.pointers.len() - 1))?;
        Some((least, most))
    }
}

/// The search among `n` entries: from the guess a few steps of growing width in its direction, then by halves between the last two. One
/// loop, so that the comparison stands in it once.
#[inline(always)]
fn from_guess(
    n: usize,
    guess: Option<usize>,
    mut compare: impl FnMut(usize) -> Result<Ordering>,
) -> Result<(u32, bool)> {
    let (mut low, mut high) = (0, n);
    let (mut width, mut up, mut guessed) = (0, false, guess.is_some());
    let mut at = guess.unwrap_or(high.saturating_sub(1) / 2);
    while low < high {
        let less = match compare(at)? {
            Ordering::Less => {
                low = at + 1;
                true
            }
            Ordering::Greater => {
                high = at;
                false
            }
            Ordering::Equal => return Ok((at as u32, true)),
        };
        if std::mem::take(&mut guessed) {
            (width, up) = (1, less);
        } else if width > 0 {
            width = if less == up && width < 8 { 2 * width } else { 0 };
        }
        if high - low < width {
            width = 0;
        }
        at = match width {
            0 => (low + high).saturating_sub(1) / 2,
            _ if up => low + width - 1,
            _ => high - width,
        };
    }
    Ok((low as u32, false))
}

/// Where among `n` entries a key should be if the integers are spread evenly. `None`: not between the first and the last.
#[inline]
fn guess_between(key: i64, (least, most): (i64, i64), n: usize) -> Option<usize> {
    if key < least || key > most {
        return None;
    }
    let (mut from, mut width) = (key.wrapping_sub(least) as u64, most.wrapping_sub(least) as u64);
    if width >> 47 != 0 {
        // So that the product fits.
        (from, width) = (from >> 17, width >> 17);
    }
    Some(((from * n as u64) / (width + 1)) as usize).filter(|g| *g < n)
}

/// Compares any cell with the key, collecting it first if it overflows.
#[inline(never)]
pub fn compare_any<F>(
    bt: &Shared,
    layout: &Layout,
    n: &Node,
    at: usize,
    whole: &mut Vec<u8>,
    cmp: &mut F,
) -> Result<Ordering>
where
    F: EntryOrder,
{
    let cell = Cell::read(&n.page, at, TreeKind::Index, n.leaf, layout)?;
    if !cell.overflows() {
        return cmp.order(&n.page[cell.at as usize..(cell.at + cell.local) as usize]);
    }
    bt.whole_payload(&n.page, &cell, whole)?;
    cmp.order(whole)
}
