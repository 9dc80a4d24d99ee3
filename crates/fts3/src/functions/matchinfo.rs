//! `matchinfo`: numbers about the query and the row, for ranking.

use crate::cursor::Cursor;
use crate::storage::{Storage, corrupt};
use iolite_base::{Error, Result};
use iolite_value::Value;
use std::rc::Rc;

const DEFAULT: &[u8] = b"pcx";

fn is_known(storage: &Storage, letter: u8) -> bool {
    let config = &storage.config;
    match letter {
        b'p' | b'c' | b's' | b'x' | b'y' | b'b' => true,
        b'n' | b'a' => config.version == 4,
        b'l' => config.sizes,
        _ => false,
    }
}

/// The longest run of phrases that stand in a column as they do in the query. `sizes`: how many tokens they have.
fn longest_run(places: &[Vec<u64>], matchable: &[usize], sizes: &[i64], column: usize) -> u32 {
    // Where each phrase would begin the query: the same for phrases that stand as they do there.
    let mut before = 0;
    let mut starts: Vec<std::iter::Peekable<_>> = Vec::new();
    for (p, size) in matchable.iter().zip(sizes) {
        before += size;
        let of = places[*p].iter().filter(move |p| (**p >> 32) as usize == column);
        let offset = before;
        starts.push(of.map(move |p| (*p & 0xffff_ffff) as i64 - offset).peekable());
    }
    let mut longest = 0;
    loop {
        let (mut least, mut run): (Option<(i64, usize)>, u32) = (None, 0);
        let mut last = None;
        for (i, s) in starts.iter_mut().enumerate() {
            let at = s.peek().copied();
            match at {
                None => run = 0,
                Some(at) => {
                    if least.is_none_or(|l| at < l.0) {
                        least = Some((at, i));
                    }
                    run = if run == 0 || last == Some(at) { run + 1 } else { 1 };
                    longest = longest.max(run);
                }
            }
            last = at;
        }
        let Some((_, i)) = least else { return longest };
        starts[i].next();
    }
}

pub(super) fn matchinfo(cursor: &Cursor, format: Option<&Value>) -> Result<Value> {
    let format = match format {
        Some(v) if !v.is_null() => v.text_bytes()?.to_vec(),
        _ => DEFAULT.to_vec(),
    };
    let format = crate::tokenize::visible(&format);
    let Some(query) = cursor.query.as_ref().filter(|q| !q.is_empty()) else { return Value::blob(b"") };
    let storage = &cursor.storage;
    if let Some(unknown) = format.iter().find(|l| !is_known(storage, **l)) {
        return Err(Error::sql(format!("unrecognized matchinfo request: {}", *unknown as char)));
    }
    let columns = storage.config.columns.len();
    let matchable = query.matchable();
    let docid = cursor.docid();
    let mut out: Vec<u32> = Vec::new();
    let count = |places: &[u64], column: usize| {
        places.iter().filter(|p| (**p >> 32) as usize == column).count() as u32
    };
    for letter in format {
        match letter {
            b'p' => out.push(matchable.len() as u32),
            b'c' => out.push(columns as u32),
            b'n' => out.push(rows(storage)?[0] as u32),
            b'a' => {
                let totals = rows(storage)?;
                let n = u64::from(totals[0] as u32);
                out.extend((0..columns).map(|i| ((u64::from(totals[i + 1] as u32) + n / 2) / n) as u32));
            }
            b'l' => out.extend(storage.sizes(docid)?.into_iter().map(|n| n as u32)),
            b's' => {
                let places = query.places(docid, false);
                let sizes: Vec<i64> =
                    matchable.iter().map(|p| query.phrases[*p].terms.len() as i64).collect();
                out.extend((0..columns).map(|c| longest_run(&places, &matchable, &sizes, c)));
            }
            b'x' => {
                let places = query.places(docid, false);
                let known = cursor.totals.borrow().clone();
                let totals = known.unwrap_or_else(|| Rc::new(query.totals(columns)));
                *cursor.totals.borrow_mut() = Some(totals.clone());
                for p in &matchable {
                    for column in 0..columns {
                        let (all, rows) = totals[*p][column];
                        out.extend([count(&places[*p], column), all, rows]);
                    }
                }
            }
            b'y' => {
                let places = query.places(docid, true);
                for p in &matchable {
                    out.extend((0..columns).map(|c| count(&places[*p], c)));
                }
            }
            _ => {
                let places = query.places(docid, true);
                for p in &matchable {
                    let from = out.len();
                    out.resize(from + columns.div_ceil(32), 0);
                    for place in &places[*p] {
                        let column = (place >> 32) as usize;
                        if column < columns {
                            out[from + column / 32] |= 1 << (column % 32);
                        }
                    }
                }
            }
        }
    }
    Value::blob(&out.iter().flat_map(|n| n.to_ne_bytes()).collect::<Vec<_>>())
}

/// The totals of a table that has rows.
fn rows(storage: &Storage) -> Result<Vec<u64>> {
    storage.totals()?.filter(|t| t[0] as u32 > 0).ok_or_else(corrupt)
}
