//! `offsets`: where the tokens of the query's phrases stand, in bytes.

use crate::config::Content;
use crate::cursor::Cursor;
use crate::storage::corrupt;
use crate::tokenize;
use iolite_base::Result;
use iolite_ext::TokenizeFor;
use iolite_value::Value;

/// A token of the query in one column: its number, its positions.
struct Stream {
    number: usize,
    positions: std::iter::Peekable<std::vec::IntoIter<i64>>,
}

pub(super) fn offsets(cursor: &Cursor) -> Result<Value> {
    let Some(query) = cursor.query.as_ref().filter(|q| !q.is_empty()) else { return Value::text("") };
    let config = &cursor.storage.config;
    let places = query.places(cursor.docid(), false);
    let content = cursor.content()?;
    let language = content.as_ref().map_or(0, |row| cursor.storage.language_of(row));
    let mut out = String::new();
    for column in 0..config.columns.len() {
        let mut streams = Vec::new();
        let mut number = 0;
        for p in query.matchable() {
            let size = query.phrases[p].terms.len() as i64;
            let ends: Vec<i64> = places[p]
                .iter()
                .filter(|p| (**p >> 32) as usize == column)
                .map(|p| (*p & 0xffff_ffff) as i64)
                .collect();
            for i in 0..size {
                let at: Vec<i64> = ends.iter().map(|e| e - (size - 1 - i)).collect();
                streams.push(Stream { number, positions: at.into_iter().peekable() });
                number += 1;
            }
        }
        let value = content.as_ref().and_then(|r| r.get(column).cloned()).unwrap_or_default();
        if value.is_null() {
            continue;
        }
        let text = value.text_bytes()?;
        let mut tokens = Vec::new();
        let visible = tokenize::visible(&text);
        config.tokenize(TokenizeFor::Auxiliary, language, visible, &mut |t| {
            tokens.extend(std::iter::repeat_n((t.start, t.start), t.skipped));
            tokens.push((t.start, t.end));
            Ok(true)
        })?;
        loop {
            let mut least: Option<(i64, usize)> = None;
            for (i, s) in streams.iter_mut().enumerate() {
                if let Some(at) = s.positions.peek()
                    && least.is_none_or(|l| *at < l.0)
                {
                    least = Some((*at, i));
                }
            }
            let Some((at, i)) = least else { break };
            streams[i].positions.next();
            match usize::try_from(at).ok().and_then(|at| tokens.get(at)) {
                Some((start, end)) => {
                    out += &format!("{column} {} {start} {} ", streams[i].number, end - start);
                }
                None if config.content == Content::Own => return Err(corrupt()),
                None => break,
            }
        }
    }
    if out.is_empty() {
        // The row's text is not there, as in a table that keeps it elsewhere.
        return Ok(Value::Null);
    }
    Value::text(out.trim_end())
}
