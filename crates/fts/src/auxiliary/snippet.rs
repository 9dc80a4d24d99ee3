//! `snippet`: the part of a row's text that has most of the phrases, with marks around them.
//!
//! Each place of a phrase is tried, with the phrases behind it in the middle, and the beginning of its sentence. A phrase that is
//! there counts 1000, once more 1, a sentence's beginning 100, a text's 120.

use super::highlight::{Marker, spans};
use super::{Instance, Row, argument, each_token, wrong_count};
use iolite_base::{Code, Result};
use iolite_value::Value;

/// The numbers of the tokens that begin sentences.
fn sentences(row: &dyn Row, text: &[u8], locale: Option<&[u8]>) -> Result<Vec<i32>> {
    let mut out = Vec::new();
    let mut position = 0;
    each_token(row, text, locale, |t| {
        let blank = |b: &&u8| matches!(b, b' ' | b'\t' | b'\n' | b'\r');
        let before = text[..t.start.min(text.len())].iter();
        let blanks = before.clone().rev().take_while(blank).count();
        let stop = matches!(before.rev().nth(blanks), Some(b'.' | b':'));
        if position == 0 || stop && blanks > 0 {
            out.push(position);
        }
        position += 1;
    })?;
    Ok(out)
}

/// A part of a text, tried.
struct Tried {
    score: i64,
    /// Where it would begin with the phrases in its middle.
    start: i64,
}

fn attempt(row: &dyn Row, instances: &[Instance], column: i32, size: i64, from: i64, tokens: i64) -> Tried {
    let mut seen = vec![false; row.phrase_count()];
    let (mut score, mut first, mut last) = (0, -1, 0);
    for i in instances.iter().filter(|i| i.column == column) {
        let offset = i64::from(i.offset);
        if offset >= from && offset < from + tokens {
            score += if std::mem::replace(&mut seen[i.phrase], true) { 1 } else { 1000 };
            if first < 0 {
                first = offset;
            }
            last = offset + row.phrase_size(i.phrase) as i64;
        }
    }
    let mut start = first - (tokens - (last - first)) / 2;
    if start + tokens > size {
        start = size - tokens;
    }
    Tried { score, start: start.max(0) }
}

pub(super) fn snippet(row: &dyn Row, args: &[Value]) -> Result<Value> {
    let [column, open, close, ellipsis, tokens] = args else { return Err(wrong_count("snippet")) };
    let column = column.to_int() as i32;
    let tokens = i64::from(tokens.to_int() as i32);
    let instances = row.instances()?;
    let (mut best, mut best_column, mut start, mut size) = (0, column.max(0), 0, 0);
    for c in 0..row.column_count() as i32 {
        if column >= 0 && column != c {
            continue;
        }
        let length = row.column_size(c)?;
        let (text, locale) = row.column_text(c)?;
        let text = text.unwrap_or_default();
        let begins = sentences(row, &text, locale.as_deref())?;
        for i in instances.iter().filter(|i| i.column == c) {
            if i64::from(i.offset) > length {
                // The column has no such token. Where only rows are kept, phrases are also found in texts that are not indexed.
                if column >= 0 || c + 1 == row.column_count() as i32 {
                    return Err(Code::CorruptVtab.into());
                }
                break;
            }
            let t = attempt(row, &instances, c, length, i.offset.into(), tokens);
            if t.score > best {
                (best, best_column, start, size) = (t.score, c, t.start, length);
            }
            if begins.is_empty() || length <= tokens {
                continue;
            }
            // The sentence that the phrase stands in.
            let n = begins[1..].iter().take_while(|b| **b <= i.offset).count();
            let begin = begins[n];
            if begin < i.offset {
                let t = attempt(row, &instances, c, length, begin.into(), tokens);
                let score = t.score + if begin == 0 { 120 } else { 100 };
                if score > best {
                    (best, best_column, start, size) = (score, c, begin.into(), length);
                }
            }
        }
    }
    let (text, locale) = row.column_text(best_column)?;
    if size == 0 {
        size = row.column_size(best_column)?;
    }
    let Some(text) = text else { return Ok(Value::Null) };
    let (open, close, ellipsis) = (argument(open), argument(close), argument(ellipsis));
    let mut covered = spans(row, &instances, best_column);
    // Of no tokens all are shown up to the last phrase.
    let tokens = match covered.last() {
        Some(s) if tokens <= 0 => i64::from(s.1) + 1,
        _ => tokens,
    };
    let (first, last) = (start as i32, (start + tokens - 1) as i32);
    covered.retain(|s| s.0 >= first);
    let mut m = Marker::new(&text, (&open, &close), covered, Some((first, last)));
    if first > 0 {
        m.out.extend_from_slice(&ellipsis);
    }
    each_token(row, &text, locale.as_deref(), |t| m.token(t))?;
    m.close();
    if i64::from(last) >= size - 1 {
        m.rest();
    } else {
        m.out.extend_from_slice(&ellipsis);
    }
    Value::text(m.out)
}
