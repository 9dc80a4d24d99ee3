//! `snippet`: up to four fragments of a row that show the query's phrases.
//!
//! Of the fragments that begin at a column's first token or end with a phrase's, those are taken that show most phrases that no
//! other fragment shows: each counts a thousand, each further occurrence one. If not all phrases fit into one fragment, there
//! are more and shorter ones.

use crate::cursor::Cursor;
use crate::tokenize;
use iolite_base::{Code, Error, Result};
use iolite_ext::TokenizeFor;
use iolite_value::Value;

/// The most fragments.
const FRAGMENTS: i64 = 4;
/// The longest, in tokens: one bit each.
const LONGEST: i64 = 64;

#[derive(Clone, Copy, Default)]
struct Fragment {
    column: usize,
    /// Its first token.
    start: i64,
    /// The phrases that it shows, as bits.
    shown: u64,
    /// The tokens that belong to phrases, as bits.
    marked: u64,
}

/// A phrase in a column.
struct Phrase {
    size: i64,
    ends: Vec<i64>,
}

fn bit(n: i64) -> u64 {
    1u64.checked_shl(n as u32).unwrap_or(0)
}

/// What a fragment shows and how much it counts; `shown`: phrases that other fragments show.
fn look(phrases: &[Phrase], column: usize, start: i64, size: i64, shown: u64) -> (Fragment, i64) {
    let mut f = Fragment { column, start, ..Fragment::default() };
    let mut score = 0;
    for (i, p) in phrases.iter().enumerate() {
        let phrase = bit(i as i64 % 64);
        for end in p.ends.iter().filter(|e| (start..start + size).contains(*e)) {
            score += if (f.shown | shown) & phrase != 0 { 1 } else { 1000 };
            f.shown |= phrase;
            (0..p.size.min(64)).for_each(|j| f.marked |= bit(end - start) >> j);
        }
    }
    (f, score)
}

/// The best fragment of a column.
fn best(phrases: &[Phrase], column: usize, size: i64, shown: u64) -> (Fragment, i64) {
    let mut best = look(phrases, column, 0, size, shown);
    if size <= 0 {
        return best;
    }
    let mut ends: Vec<i64> = phrases.iter().flat_map(|p| &p.ends).copied().filter(|e| *e >= size).collect();
    ends.sort_unstable();
    ends.dedup();
    for end in ends {
        let other = look(phrases, column, end - size + 1, size, shown);
        if other.1 > best.1 {
            best = other;
        }
    }
    best
}

/// A column's text and its tokens.
struct Text {
    bytes: Vec<u8>,
    tokens: Vec<(usize, usize)>,
}

struct Shape<'a> {
    open: &'a [u8],
    close: &'a [u8],
    between: &'a [u8],
}

/// Appends a fragment. Where that can be, its phrases stand in its middle.
fn write(out: &mut Vec<u8>, text: &Text, f: Fragment, size: i64, shape: &Shape<'_>, (n, last): (i64, bool)) {
    let (mut start, mut marked) = (f.start, f.marked);
    let tokens = &text.tokens;
    if start as usize >= tokens.len() {
        out.extend_from_slice(&text.bytes);
        return;
    }
    if marked != 0 {
        let left = i64::from(marked.trailing_zeros());
        let right = size - 1 - (63 - i64::from(marked.leading_zeros()));
        let wanted = (left - right) / 2;
        if wanted > 0 {
            let behind = (tokens.len() as i64 - start - size).min(wanted);
            if behind > 0 {
                start += behind;
                marked = marked.checked_shr(behind as u32).unwrap_or(0);
            }
        }
    }
    let first = tokens[f.start as usize].0;
    if start > 0 || n > 0 {
        out.extend_from_slice(shape.between);
    } else {
        out.extend_from_slice(&text.bytes[..first]);
    }
    let mut written = 0;
    for at in start.. {
        let Some(&(from, to)) = tokens.get(at as usize) else {
            out.extend_from_slice(&text.bytes[written..]);
            return;
        };
        if at >= start + size {
            if last {
                out.extend_from_slice(shape.between);
            }
            return;
        }
        if at > start {
            out.extend_from_slice(&text.bytes[written..from]);
        }
        let mark = marked & bit(at - start) != 0;
        if mark {
            out.extend_from_slice(shape.open);
        }
        out.extend_from_slice(&text.bytes[from..to]);
        if mark {
            out.extend_from_slice(shape.close);
        }
        written = to;
    }
}

pub(super) fn snippet(cursor: &Cursor, args: &[Value]) -> Result<Value> {
    if args.len() > 5 {
        return Err(Error::sql("wrong number of arguments to function snippet()"));
    }
    let text = |i: usize, otherwise: &str| match args.get(i) {
        None => Ok(otherwise.as_bytes().to_vec()),
        Some(Value::Null) => Err(Error::from(Code::Nomem)),
        Some(v) => Ok(v.text_bytes()?.to_vec()),
    };
    let number = |i: usize, otherwise: i64| args.get(i).map_or(otherwise, |v| i64::from(v.to_int() as i32));
    let (open, close, between) = (text(0, "<b>")?, text(1, "</b>")?, text(2, "<b>...</b>")?);
    let (only, wanted) = (number(3, -1), number(4, 15));
    let Some(query) = cursor.query.as_ref().filter(|q| !q.is_empty()) else { return Value::text("") };
    if wanted == 0 {
        return Value::text("");
    }
    let wanted = wanted.clamp(-LONGEST, LONGEST);
    let content = cursor.content()?;
    let config = &cursor.storage.config;
    let columns = config.columns.len();
    let language = content.as_ref().map_or(0, |row| cursor.storage.language_of(row));
    let places = query.places(cursor.docid(), false);
    let phrases: Vec<Vec<Phrase>> = (0..columns)
        .map(|column| {
            let of = |p: usize| Phrase {
                size: query.phrases[p].terms.len() as i64,
                ends: places[p]
                    .iter()
                    .filter(|p| (**p >> 32) as usize == column)
                    .map(|p| (*p & 0xffff_ffff) as i64)
                    .collect(),
            };
            query.matchable().into_iter().map(of).collect()
        })
        .collect();
    let read: Vec<usize> = (0..columns).filter(|c| only < 0 || *c as i64 == only).collect();
    let mut chosen = Vec::new();
    let mut size = 0;
    for count in 1..=FRAGMENTS {
        size = if wanted >= 0 { (wanted + count - 1) / count } else { -wanted };
        let (mut shown, mut seen) = (0, 0);
        chosen.clear();
        for _ in 0..count {
            let mut fragment = (Fragment::default(), -1);
            for &column in &read {
                let all = phrases[column].iter().enumerate().filter(|p| !p.1.ends.is_empty());
                seen |= all.fold(0, |bits, (i, _)| bits | bit(i as i64 % 64));
                let found = best(&phrases[column], column, size, shown);
                if found.1 > fragment.1 {
                    fragment = found;
                }
            }
            shown |= fragment.0.shown;
            chosen.push(fragment.0);
        }
        if seen == shown {
            break;
        }
    }
    let shape = Shape { open: &open, close: &close, between: &between };
    let mut out = Vec::new();
    let last = chosen.len() - 1;
    for (n, f) in chosen.into_iter().enumerate() {
        let value = content.as_ref().and_then(|r| r.get(f.column).cloned()).unwrap_or_default();
        if value.is_null() {
            continue;
        }
        let bytes = tokenize::visible(&value.text_bytes()?).to_vec();
        let mut tokens = Vec::new();
        config.tokenize(TokenizeFor::Auxiliary, language, &bytes, &mut |t| {
            tokens.extend(std::iter::repeat_n((t.start, t.start), t.skipped));
            tokens.push((t.start, t.end));
            Ok(true)
        })?;
        write(&mut out, &Text { bytes, tokens }, f, size, &shape, (n as i64, n == last));
    }
    if out.is_empty() {
        // The row's text is not there, as in a table that keeps it elsewhere.
        return Ok(Value::Null);
    }
    Value::text(&out)
}
