//! The chunks of a segment that a query wants and nobody has decoded yet.
//!
//! Where the same leaves were decoded at an earlier state, only those that changed are decoded, and their values are put into
//! copies of the earlier chunks; where rows came or went, or a value has no code, the segment is decoded as a whole.

use super::*;
use crate::store::chunk::{Field, Shape};
use std::collections::hash_map::Entry;

impl Store {
    /// Builds the missing chunks of a segment.
    pub(super) fn fill(
        &self,
        bt: &Btree,
        t: &TableState,
        s: &Segment,
        wanted: &[(ColKey, &Value)],
        own: &mut [Dict],
        spare: &mut Spare,
    ) -> Result<Vec<Arc<Chunk>>> {
        let mut have: Vec<Option<Arc<Chunk>>> = {
            let chunks = lock(&s.chunks);
            wanted.iter().map(|(k, _)| chunks.get(k).cloned()).collect()
        };
        let mut missing: Vec<usize> = (0..wanted.len()).filter(|i| have[*i].is_none()).collect();
        if t.keep {
            let mut all = lock(&t.columns.dicts);
            for i in &missing {
                let key = &wanted[*i].0;
                t.columns.recall(&mut all, key, &self.counters);
                have[*i] = self.recall(s, &t.columns, &all, key);
                if let Some((f, _)) = lock(&s.former).clone().filter(|_| have[*i].is_none())
                    && !lock(&f.chunks).contains_key(key)
                {
                    // What is patched is needed, too.
                    self.recall(&f, &t.columns, &all, key);
                }
            }
            missing.retain(|i| have[*i].is_none());
        }
        if missing.is_empty() && s.rows.get().is_some() {
            return have.into_iter().map(|c| c.ok_or_else(|| Code::Internal.into())).collect();
        }
        if t.keep {
            // The dictionaries are everybody's: one segment is built at a time.
            let mut all = lock(&t.columns.dicts);
            let mut keys: Vec<Wanted<'_>> =
                missing.iter().map(|i| Wanted::new(wanted[*i].0, wanted[*i].1)).collect();
            let shapes = lock(&s.shapes);
            keys.iter_mut().for_each(|w| {
                w.ints = shapes.get(&w.key).is_some_and(|(c, _)| matches!(c.shape(), Shape::Int { .. }))
            });
            drop(shapes);
            let mut dicts: Vec<Dict> = keys
                .iter()
                .map(|w| all.remove(&w.key).map_or_else(Dict::default, Arc::unwrap_or_clone))
                .collect();
            let built = self.patch(bt, s, &keys, &mut dicts).and_then(|p| match p {
                Some((rows, chunks)) => {
                    let pure = vec![true; chunks.len()];
                    Ok((rows, chunks, pure))
                }
                None => {
                    self.counters.decoded.fetch_add(1, Relaxed);
                    let room = s.rows.get().map_or(0, Rows::len);
                    let b = decode::build(bt, self.seed(), &s.leaves, &keys, &mut dicts, room, spare)?;
                    Ok((b.rows, b.chunks.into_iter().map(Arc::new).collect(), b.pure))
                }
            });
            for (w, d) in keys.iter().zip(dicts) {
                all.insert(w.key, Arc::new(d));
            }
            let (rows, made, pure) = built?;
            let made: Vec<(ColKey, Arc<Chunk>, bool)> =
                keys.iter().zip(made).zip(pure).map(|((w, c), pure)| (w.key, c, pure)).collect();
            if made.iter().any(|m| !m.2) {
                lock(&t.columns.loose).extend(made.iter().filter(|m| !m.2).map(|m| m.0));
            }
            self.keep_built(all, s, rows, &made)?;
            for (i, (_, c, _)) in missing.iter().zip(made) {
                have[*i] = Some(c);
            }
        } else {
            let keys: Vec<Wanted<'_>> = wanted.iter().map(|(k, d)| Wanted::new(*k, d)).collect();
            self.counters.decoded.fetch_add(1, Relaxed);
            let built = decode::build(bt, self.seed(), &s.leaves, &keys, own, 0, spare)?;
            let _ = s.rows.set(built.rows);
            have = built.chunks.into_iter().map(|c| Some(Arc::new(c))).collect();
        }
        have.into_iter().map(|c| c.ok_or_else(|| Code::Internal.into())).collect()
    }

    /// Keeps what was built of a segment, while the dictionaries are held; each chunk with whether all its values lie on the
    /// leaves. What has no room leaves its shape.
    pub(super) fn keep_built(
        &self,
        dicts: MutexGuard<'_, HashMap<ColKey, Arc<Dict>>>,
        s: &Segment,
        rows: Rows,
        made: &[(ColKey, Arc<Chunk>, bool)],
    ) -> Result<()> {
        if let Err(rows) = s.rows.set(rows)
            && s.rows.get().is_none_or(|r| r.first != rows.first)
        {
            // What is held of this segment was not made of these pages.
            drop(dicts);
            self.persist.distrust("rows");
            lock(&self.tables).clear();
            return Err(Code::Internal.into());
        }
        let mut chunks = lock(&s.chunks);
        for (key, c, pure) in made {
            let bytes = c.bytes();
            if *pure {
                self.persist.built(bytes);
            }
            if *pure && !fits(bytes) {
                lock(&s.shapes).insert(*key, (Arc::new(c.away()?), bytes));
            } else if *pure && let Entry::Vacant(place) = chunks.entry(*key) {
                place.insert(c.clone());
                USED.fetch_add(bytes, Relaxed);
            }
        }
        let mut former = lock(&s.former);
        if let Some((f, stale)) = &*former {
            carry_derived(f, s, stale, &chunks);
        }
        let spent = former.as_ref().is_some_and(|(f, _)| {
            let (held, stored) = (lock(&f.chunks), lock(&f.stored));
            held.keys().chain(stored.keys()).all(|k| chunks.contains_key(k))
        });
        if spent {
            *former = None;
        }
        Ok(())
    }

    /// Copies the chunks of the same leaves at an earlier state, and puts the values of the changed leaves in. `None`:
    /// rows came or went, or a value does not fit.
    fn patch(
        &self,
        bt: &Btree,
        s: &Segment,
        keys: &[Wanted<'_>],
        dicts: &mut [Dict],
    ) -> Result<Option<(Rows, Vec<Arc<Chunk>>)>> {
        let Some((former, stale)) = lock(&s.former).clone() else { return Ok(None) };
        let Some(rows) = former.rows.get() else { return Ok(None) };
        let olds: Option<Vec<Arc<Chunk>>> = {
            let chunks = lock(&former.chunks);
            keys.iter().map(|w| chunks.get(&w.key).cloned()).collect()
        };
        let Some(olds) = olds else { return Ok(None) };
        let leaves: Vec<Pgno> = stale.iter().map(|i| s.leaves[*i]).collect();
        let fresh = decode::build(bt, self.seed(), &leaves, keys, dicts, 0, &mut Spare::default())?;
        let count = |r: &Rows, i: usize| r.first[i + 1] - r.first[i];
        if fresh.pure.iter().any(|p| !p)
            || stale.iter().enumerate().any(|(k, i)| count(&fresh.rows, k) != count(rows, *i))
        {
            return Ok(None);
        }
        let mut chunks = Vec::with_capacity(keys.len());
        for ((old, new), dict) in olds.iter().zip(&fresh.chunks).zip(dicts.iter_mut()) {
            let places = stale.iter().enumerate().map(|(k, i)| {
                (rows.first[*i] as usize, fresh.rows.first[k] as usize, count(rows, *i) as usize)
            });
            // Mostly one column changed, and the others are the same chunks.
            if unchanged(old, new, places.clone()) {
                chunks.push(old.clone());
                continue;
            }
            match patched(old, new, places, dict)? {
                Some(c) => chunks.push(Arc::new(c)),
                None => return Ok(None),
            }
        }
        let mut rows = rows.clone();
        for (k, i) in stale.iter().enumerate() {
            rows.hashes[*i] = fresh.rows.hashes[k];
        }
        self.counters.patched.fetch_add(1, Relaxed);
        Ok(Some((rows, chunks)))
    }
}

/// Derived columns hold in a later state of a segment, too, if in the changed leaves the outer key stayed what it was.
fn carry_derived(f: &Segment, s: &Segment, stale: &[usize], chunks: &FastMap<ColKey, Arc<Chunk>>) {
    let (Some(old), Some(new)) = (f.rows.get(), s.rows.get()) else { return };
    if old.first != new.first {
        return;
    }
    let before = lock(&f.chunks);
    let mut derived = lock(&s.derived);
    for (key, (stamp, c)) in lock(&f.derived).iter() {
        let (Some(a), Some(b)) = (before.get(&key.outer), chunks.get(&key.outer)) else { continue };
        let mut rows = stale.iter().flat_map(|i| new.first[*i] as usize..new.first[i + 1] as usize);
        if !derived.contains_key(key) && rows.all(|r| a.int(r) == b.int(r)) {
            USED.fetch_add(c.bytes(), Relaxed);
            derived.insert(*key, (*stamp, c.clone()));
        }
    }
}

/// Whether runs of rows (at, from, count) are the same in `new` as they were in `old`.
fn unchanged(old: &Chunk, new: &Chunk, mut places: impl Iterator<Item = (usize, usize, usize)>) -> bool {
    match (&old.data, &new.data) {
        (Data::Dict { codes: a }, Data::Dict { codes: b }) => {
            places.all(|(at, from, n)| (0..n).all(|i| a.get(at + i) == b.get(from + i)))
        }
        (Data::Real { .. }, Data::Real { .. }) => {
            places.all(|(at, from, n)| (0..n).all(|i| old.real_bits(at + i) == new.real_bits(from + i)))
        }
        _ if old.is_int() && new.is_int() => {
            places.all(|(at, from, n)| (0..n).all(|i| old.int(at + i) == new.int(from + i)))
        }
        _ => false,
    }
}

/// A copy of `old` in which runs of rows (at, from, count) are those of `new`.
fn patched(
    old: &Chunk,
    new: &Chunk,
    places: impl Iterator<Item = (usize, usize, usize)>,
    dict: &mut Dict,
) -> Result<Option<Chunk>> {
    match &old.data {
        Data::Sequence { base } => {
            for (at, from, n) in places {
                if (0..n).any(|i| new.int(from + i) != Some(base + (at + i) as i64)) {
                    return Ok(None);
                }
            }
            Ok(Some(Chunk::of_sequence(*base, old.len)?))
        }
        Data::Int { base, nulls, codes } if new.is_int() => {
            let mut values: Vec<(usize, u32)> = Vec::new();
            let (mut min, mut max) = (old.min, old.max);
            for (at, from, n) in places {
                for i in 0..n {
                    let code = match new.int(from + i) {
                        None if *nulls => 0,
                        None => return Ok(None),
                        Some(v) => {
                            let first = base + *nulls as i64;
                            if v < first || v.checked_sub(*base).is_none_or(|c| c >= u32::MAX as i64) {
                                return Ok(None);
                            }
                            min = min.min(v);
                            max = max.max(v);
                            (v - base) as u32
                        }
                    };
                    values.push((at + i, code));
                }
            }
            let Some(codes) = with_values(codes, &values)? else { return Ok(None) };
            Chunk::of_int_codes(*base, *nulls, codes, old.len, min, max).map(Some)
        }
        Data::Real { values, nulls: None } => {
            let mut values = values.clone();
            for (at, from, n) in places {
                for i in 0..n {
                    let Some(bits) = new.real_bits(from + i) else { return Ok(None) };
                    values[at + i] = f64::from_bits(bits);
                }
            }
            Chunk::of_reals(values, &[]).map(Some)
        }
        Data::Dict { codes } => {
            let mut values: Vec<(usize, u32)> = Vec::new();
            for (at, from, n) in places {
                for i in 0..n {
                    let code = match &new.data {
                        Data::Dict { codes } => codes.get(from + i),
                        Data::Plain(_) => return Ok(None),
                        _ => {
                            let f = new.int(from + i).map_or(Field::Null, Field::Int);
                            match (new.is_int(), dict.code(f)?) {
                                (true, Some(c)) => c,
                                _ => return Ok(None),
                            }
                        }
                    };
                    values.push((at + i, code));
                }
            }
            let Some(codes) = with_values(codes, &values)? else { return Ok(None) };
            Chunk::of_dict_codes(codes, old.len).map(Some)
        }
        _ => Ok(None),
    }
}

/// A copy with some values replaced; `None`: one does not fit.
fn with_values(codes: &Codes, values: &[(usize, u32)]) -> Result<Option<Codes>> {
    let max = values.iter().map(|v| v.1).max().unwrap_or(0);
    Ok(Some(match codes {
        Codes::U4(c) if max <= 0xf => {
            let mut c = c.clone();
            for (i, v) in values {
                let shift = i % 2 * 4;
                c[i / 2] = c[i / 2] & !(15 << shift) | (*v as u8) << shift;
            }
            Codes::U4(c)
        }
        Codes::U8(c) if max <= 0xff => {
            let mut c = c.clone();
            values.iter().for_each(|(i, v)| c[*i] = *v as u8);
            Codes::U8(c)
        }
        Codes::U16(c) if max <= 0xffff => {
            let mut c = c.clone();
            values.iter().for_each(|(i, v)| c[*i] = *v as u16);
            Codes::U16(c)
        }
        Codes::U24(c) if max <= 0xff_ffff => {
            let mut c = c.clone();
            values.iter().for_each(|(i, v)| c[*i] = three(*v));
            Codes::U24(c)
        }
        Codes::U32(c) => {
            let mut c = c.clone();
            values.iter().for_each(|(i, v)| c[*i] = *v);
            Codes::U32(c)
        }
        _ => return Ok(None),
    }))
}
