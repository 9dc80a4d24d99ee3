//! Whether an index agrees with its table, for `PRAGMA integrity_check`.

use super::format::{packed, unpacked};
use super::lists::Tables;
use crate::store::Store;
use iolite_base::{Code, Result};
use std::collections::HashMap;

/// What is wrong with the index of a column, if something is.
pub(crate) fn check(store: &Store, column: usize) -> Result<Option<String>> {
    match look(Tables { store, column }) {
        Err(e) if e.code() == Code::CorruptVtab => Ok(Some("its tables cannot be read".into())),
        other => other,
    }
}

fn look(t: Tables<'_>) -> Result<Option<String>> {
    let (h, _) = t.directory()?;
    if h.lists == 0 {
        return Ok((!h.tail.is_empty()).then(|| "there is a tail without lists".into()));
    }
    let mut entries: HashMap<u64, (u32, Option<i64>)> = h.tail.iter().map(|p| (*p, (0, None))).collect();
    let mut count = entries.len();
    for list in 1..=h.lists {
        t.list(&h, list, |row| {
            for k in 0..row.len() {
                entries.insert(row.place(k), (list, Some(row.rowid(k))));
            }
            count += row.len();
            Ok(())
        })?;
    }
    if count != entries.len() {
        return Ok(Some("a row is in it twice".into()));
    }
    let mut wrong = None;
    t.store.chunks("1", &[], |chunk| {
        let lists = t.lists_of(chunk.id)?.unwrap_or_default();
        for at in (0..chunk.size).filter(|at| chunk.is_taken(*at)) {
            let place = crate::store::Place { chunk: chunk.id, at };
            let (rowid, list) = (chunk.rowid(at), lists.get(at).copied().unwrap_or(0));
            let fits = match entries.remove(&packed(place)?) {
                Some((there, id)) => there == list && id.is_none_or(|id| id == rowid),
                None => false,
            };
            if !fits {
                wrong = Some(format!("row {rowid} is not where it should be"));
            }
        }
        Ok(())
    })?;
    if let (None, Some(p)) = (&wrong, entries.keys().next()) {
        wrong = Some(format!("place {} of chunk {} has no row", unpacked(*p).at, unpacked(*p).chunk));
    }
    Ok(wrong)
}
