//! Rows in the order of the planner's loops, whatever table is scanned.
//!
//! Where the order of rows is part of the answer (result rows, sums of reals, `group_concat`), the scan only finds out
//! which rows meet: for each combination it keeps the row of every table whose row is not determined by those of
//! the levels around it. The order of the loops is a number made of these rows' places: level by level the columns by
//! which an index delivers rows (integers, or the ranks of a dictionary's entries), then the row itself. Sorted by it, the
//! combinations are given to groups or to the result as if the loops had delivered them.
//!
//! The number has 128 bits at most; what needs more is not for this way. Combinations that take too much room are sorted
//! in runs, written to a temporary file, and merged. Where there are more than [`MOST`], and the first table of
//! the loops might be scanned instead, that is tried before.

use super::scope::JoinScope;
use crate::expr::batch::NONE;
use crate::expr::batch::{Batch, NO_OUTER};
use crate::expr::columns::{Columns, Kind};
use crate::expr::filter::Pred;
use crate::expr::scope::Places;
use crate::expr::scope::Scope;
use crate::kernel::BATCH;
use crate::memory::room;
use crate::memory::{within, work_size};
use crate::op::spill::{Merge, Spill, take_u32};
use crate::profile::shown;
use crate::query::{LevelOrder, SlotSpec, tables_of};
use crate::star::build::InnerTable;
use crate::star::scope::Run;
use crate::star::split::JoinPlan;
use crate::store::chunk::{Chunk, Data, Dict};
use crate::store::decode::ColKey;
use crate::store::{TableState, lock};
use iolite_base::{Result, alloc};
use iolite_value::Value;
use iolite_value::compare::KeyField;
use iolite_value::order::{compare_refs, in_order};
use std::cmp::Ordering;
use std::ops::{BitOr, Range, Shl};
use std::sync::Arc;

/// The most combinations that are collected while there is another way: 8 bytes each for the order, and 4 for each table.
const MOST: usize = 1 << 23;

/// What it takes to sort one of them.
const SORTED: usize = 24;

/// Bytes of the number in a record.
const KEY: usize = 16;

/// What takes sorted rows, in batches without a scanned table.
pub(crate) type Take<'t> = &'t mut dyn FnMut(&Batch<'_>, &JoinScope<'_>) -> Result<bool>;

/// The most entries of a dictionary that are sorted for it.
const MOST_RANKED: usize = 1 << 16;

/// A part of the number by which combinations are sorted.
struct Digit {
    table: usize,
    of: Of,
    bits: u32,
    down: bool,
}

/// What a part of the number is.
enum Of {
    /// The row.
    Row,
    /// An integer column's value less the least; whether it may be NULL.
    Int { column: usize, least: i64, null: u64 },
    /// The rank of an entry of a column's dictionary, by its code.
    Entry { column: usize, ranks: Vec<u32> },
}

impl Of {
    /// Of a row.
    fn of_row(&self, row: u32, columns: &Option<Columns>) -> u64 {
        let at = |column: usize| {
            let cols = columns.as_ref()?;
            let (p, i) = cols.locate(row as usize);
            Some((&*cols.loaded.parts[p].cols[column], i))
        };
        match self {
            Of::Row => row as u64,
            Of::Int { column, least, null } => {
                at(*column).and_then(|(c, i)| c.int(i)).map_or(0, |v| (v - least) as u64 + null)
            }
            Of::Entry { column, ranks } => match at(*column) {
                Some((Chunk { data: Data::Dict { codes }, .. }, i)) => ranks[codes.get(i) as usize] as u64,
                _ => 0,
            },
        }
    }
}

/// The ranks of a dictionary's entries, by their codes. Entries that compare equal have one rank.
fn ranks(dict: &Dict) -> Result<Vec<u32>> {
    let field = KeyField::default();
    let value = |code: u32| dict.get(code).as_ref();
    let sorted = in_order(dict.len(), std::slice::from_ref(&field), &|code, _| value(code))?;
    let mut out: Vec<u32> = room(dict.len())?;
    out.resize(dict.len(), 0);
    let mut rank = 0;
    for (n, code) in sorted.iter().enumerate() {
        let before = n.checked_sub(1).map(|b| sorted[b]);
        rank += u32::from(before.is_some_and(|b| compare_refs(value(b), value(*code), &field).is_ne()));
        out[*code as usize] = rank;
    }
    Ok(out)
}

fn bits_for(most: u64) -> u32 {
    64 - most.leading_zeros()
}

/// The tables whose rows make the order of the loops.
pub(crate) fn tables_in_order(levels: &[LevelOrder]) -> u64 {
    levels.iter().enumerate().filter(|(_, l)| !l.one).fold(0, |m, (t, _)| m | 1 << t)
}

/// Whether the order is that of the tables' rows, one loop within the other.
pub(crate) fn is_natural(levels: &[LevelOrder]) -> bool {
    levels.iter().all(|l| l.one || l.by.is_empty() && !l.reverse)
}

/// Whether a table's columns, taken together, ascend with its rows; equal ones may follow each other.
fn ascends(cols: &Columns) -> bool {
    if cols.kinds.iter().any(|k| *k != Kind::Int) {
        return false;
    }
    let mut last: Vec<Option<i64>> = vec![None; cols.kinds.len()];
    for p in &cols.loaded.parts {
        for i in 0..p.rows {
            let mut order = Ordering::Equal;
            for (l, c) in last.iter_mut().zip(&p.cols) {
                let v = c.int(i);
                order = order.then(v.cmp(l));
                *l = v;
            }
            if order.is_lt() {
                return false;
            }
        }
    }
    true
}

impl Run<'_> {
    /// The order of the loops; `None`: it is not known. Where the columns by which an index delivers rows ascend with the
    /// rows, it is that of the rows.
    pub(crate) fn levels(&self, states: &[Arc<TableState>]) -> Result<Option<Vec<LevelOrder>>> {
        let Some(levels) = &self.q.loop_order else { return Ok(None) };
        let mut out = levels.clone();
        for (t, l) in out.iter_mut().enumerate().filter(|(_, l)| !l.one && !l.by.is_empty()) {
            let wanted: Vec<(ColKey, &Value)> = l.by.iter().map(|b| self.order_key(b.0)).collect();
            let names: Vec<ColKey> = wanted.iter().map(|w| w.0).collect();
            let known = lock(&states[t].ascending).iter().find(|k| k.0 == names).map(|k| k.1);
            let ascending = match known {
                Some(k) => k,
                None => {
                    let cols = Columns::new(self.load(t, &states[t], &wanted, false)?);
                    let ascending = ascends(&cols);
                    lock(&states[t].ascending).push((names, ascending));
                    ascending
                }
            };
            if ascending && l.by.iter().all(|b| b.1 == l.reverse) {
                l.by.clear();
            }
        }
        Ok(Some(out))
    }

    /// Marks the levels whose row follows from those of the levels around them: the equality that leads there has one
    /// match at the most.
    pub(crate) fn settle_levels(
        &self,
        levels: &mut [LevelOrder],
        d: &JoinPlan,
        inners: &[Option<Arc<InnerTable>>],
    ) {
        for j in &d.joins {
            let around = j.others.iter().fold(0, |m, e| m | tables_of(self.q, e));
            let unique = inners[j.table].as_ref().is_some_and(|i| i.unique() && i.is_whole());
            if unique && around >> j.table == 0 {
                levels[j.table].one = true;
            }
        }
    }

    fn order_key(&self, slot: usize) -> (ColKey, &Value) {
        let spec: &SlotSpec = &self.q.order_slots[slot];
        (spec.key(), &spec.default)
    }

    /// Scans, sorts the combinations found, and passes them on. `false`: nothing was passed on, it cannot be done so.
    pub(crate) fn scan_sorted(
        &self,
        d: &mut JoinPlan,
        preds: &[Vec<Pred>],
        s: &JoinScope<'_>,
        states: &[Arc<TableState>],
        sort: bool,
        take: Take<'_>,
    ) -> Result<bool> {
        let n = self.q.tables.len();
        if d.state.is_some() {
            // Rows are read again by their numbers.
            return Ok(false);
        }
        if sort && d.levels.is_none() {
            d.levels = self.levels(states)?;
        }
        let mut levels = match &d.levels {
            Some(l) if sort => l.clone(),
            None if sort => return Ok(false),
            _ => Vec::new(),
        };
        if sort {
            self.settle_levels(&mut levels, d, s.inners);
        }
        let mask = tables_in_order(&levels);
        d.keep |= mask;
        d.collects = true;
        if !(0..n).all(|t| mask & 1 << t == 0 || t == self.outer || s.inners[t].is_some()) {
            return Ok(false);
        }
        let Some((digits, columns)) = self.digits(&levels, s, states)? else { return Ok(false) };
        let read = self.needed(d) | 1 << self.outer;
        // A table that was derived lies beside the outer one.
        let there = |t: &usize| *t == self.outer || s.inners[*t].is_some();
        let kept: Vec<usize> = (0..n).filter(|t| read & 1 << t != 0).filter(there).collect();
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); n];
        let mut many = false;
        let places = Places { at: s.places.at.clone(), of_table: s.places.of_table.clone(), outer: NO_OUTER };
        let in_order = sort || s.in_order;
        let mut setting = JoinScope {
            scope: Scope { places: &places, in_order, most_rows: None, ..s.scope },
            inners: s.inners,
        };
        let mut file: Option<(Spill, Vec<Range<u64>>)> = None;
        let mut written = 0;
        let mut unknown = false;
        let another = self.outer != 0 && !self.q.tables[0].left;
        // Sorts what was found, and writes it; `false`: a nested query cannot be asked.
        let mut write =
            |rows: &mut Vec<Vec<u32>>, file: &mut Option<(Spill, Vec<Range<u64>>)>| -> Result<bool> {
                self.rt.check()?;
                if !self.test_correlated(d, &setting, rows)? {
                    return Ok(false);
                }
                let (spill, runs) = match file {
                    Some(f) => f,
                    none => none.insert((Spill::new(s.rt)?, Vec::new())),
                };
                let found = rows[self.outer].len();
                let list = match sort {
                    true => sorted_by::<u128>(&digits, &columns, rows, found)?,
                    false => (0..found as u32).map(|i| (0, i)).collect(),
                };
                let mut record = Vec::new();
                for (key, i) in list {
                    record.clear();
                    record.extend_from_slice(&key.to_be_bytes());
                    for &t in &kept {
                        record.extend_from_slice(&rows[t][i as usize].to_le_bytes());
                    }
                    spill.add(&record)?;
                }
                runs.push(spill.end_run()?);
                written += found;
                rows.iter_mut().for_each(Vec::clear);
                Ok(true)
            };
        self.scan(d, preds, s, &mut |b, _| {
            let have = rows[self.outer].len();
            if have > 0 && !within((have + b.outer.len()) * (4 * kept.len() + SORTED)) {
                unknown = !write(&mut rows, &mut file)?;
            }
            for &t in &kept {
                alloc::reserve(&mut rows[t], b.outer.len())?;
                if t == self.outer {
                    let start = s.cols[t].loaded.parts[b.part].start as u32;
                    rows[t].extend(b.outer.iter().map(|r| start + r));
                } else {
                    rows[t].extend_from_slice(&b.inner[t]);
                }
            }
            many = another && rows[self.outer].len() > MOST;
            Ok(!many && !unknown)
        })?;
        if many || unknown {
            return Ok(false);
        }
        let start = self.now();
        if file.is_some() {
            if !write(&mut rows, &mut file)? {
                return Ok(false);
            }
            let Some((spill, runs)) = file else { return Ok(false) };
            setting.scope.most_rows = Some(written as u64);
            if let Some(p) = self.rt.profile() {
                p.line(format!(
                    "ORDER OF THE LOOPS: {written} rows in {} runs by a temporary file",
                    runs.len()
                ));
            }
            self.take_merged(Merge::new(spill, &runs, work_size())?, &kept, &setting, take)?;
            return Ok(true);
        }
        if !self.test_correlated(d, &setting, &mut rows)? {
            return Ok(false);
        }
        let found = rows[self.outer].len();
        let at = match sort {
            true => sorted(&digits, &columns, &rows, found)?,
            false => (0..found as u32).collect(),
        };
        if let (Some(p), true) = (self.rt.profile(), sort) {
            p.line(format!("ORDER OF THE LOOPS: {found} rows sorted in {}", shown(self.now() - start)));
        }
        setting.scope.most_rows = Some(found as u64);
        let mut batch = empty_batch(&setting, n);
        for (k, block) in at.chunks(BATCH).enumerate() {
            if k % 16 == 0 {
                self.rt.check()?;
            }
            batch.outer.clear();
            batch.outer.extend(0..block.len() as u32);
            for &t in &kept {
                batch.inner[t].clear();
                batch.inner[t].extend(block.iter().map(|i| rows[t][*i as usize]));
            }
            if !take(&batch, &setting)? {
                break;
            }
        }
        Ok(true)
    }

    /// Passes on what was written, in order.
    fn take_merged(
        &self,
        mut merge: Merge<Vec<u8>>,
        kept: &[usize],
        s: &JoinScope<'_>,
        take: Take<'_>,
    ) -> Result<()> {
        let mut batch = empty_batch(s, self.q.tables.len());
        let order = |a: &Vec<u8>, b: &Vec<u8>| a.get(..KEY).cmp(&b.get(..KEY));
        let mut record = Vec::new();
        loop {
            let more = merge.next(&mut record, &order)?;
            if more {
                let mut rest = record.get(KEY..).unwrap_or_default();
                for &t in kept {
                    batch.inner[t].push(take_u32(&mut rest)?);
                }
                batch.outer.push(batch.outer.len() as u32);
            }
            if batch.outer.len() == BATCH || !more && !batch.outer.is_empty() {
                self.rt.check()?;
                if !take(&batch, s)? {
                    return Ok(());
                }
                batch.outer.clear();
                batch.inner.iter_mut().for_each(Vec::clear);
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// Calls `f` with batches of all combinations, in the order in which they were found.
    pub(crate) fn each_batch(
        &self,
        s: &JoinScope<'_>,
        rows: &[Vec<u32>],
        f: &mut dyn FnMut(&Batch<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut batch = empty_batch(s, rows.len());
        let n = rows[self.outer].len();
        let mut from = 0;
        while from < n {
            let span = from..(from + BATCH).min(n);
            batch.outer.clear();
            batch.outer.extend(0..span.len() as u32);
            for (own, all) in batch.inner.iter_mut().zip(rows).filter(|(_, r)| !r.is_empty()) {
                own.clear();
                own.extend_from_slice(&all[span.clone()]);
            }
            f(&batch)?;
            from = span.end;
        }
        Ok(())
    }

    /// What the order of the loops is made of; columns that nothing else reads come with it.
    #[allow(clippy::type_complexity)]
    fn digits(
        &self,
        levels: &[LevelOrder],
        s: &JoinScope<'_>,
        states: &[Arc<TableState>],
    ) -> Result<Option<(Vec<Digit>, Vec<Option<Columns>>)>> {
        let mut columns: Vec<Option<Columns>> = Vec::new();
        let mut place = vec![0; self.q.order_slots.len()];
        for (t, l) in levels.iter().enumerate() {
            let mut wanted: Vec<(ColKey, &Value)> = Vec::new();
            for (slot, _) in l.by.iter().filter(|_| !l.one) {
                place[*slot] = wanted.len();
                wanted.push(self.order_key(*slot));
            }
            columns.push(match wanted.is_empty() {
                true => None,
                false => Some(Columns::new(self.load(t, &states[t], &wanted, false)?)),
            });
        }
        let (mut digits, mut bits) = (Vec::new(), 0);
        for (table, l) in levels.iter().enumerate().filter(|(_, l)| !l.one) {
            for (slot, down) in &l.by {
                let (Some(c), at) = (&columns[table], place[*slot]) else { return Ok(None) };
                if c.kinds[at] == Kind::Dict {
                    let dict = &c.loaded.dicts[at];
                    if !l.binary || dict.len() > MOST_RANKED {
                        return Ok(None);
                    }
                    let ranks = ranks(dict)?;
                    let width = bits_for(ranks.iter().max().copied().unwrap_or(0) as u64);
                    digits.push(Digit { table, of: Of::Entry { column: at, ranks }, bits: width, down: *down });
                    bits += width;
                    continue;
                }
                let (lo, hi) = c.bounds[at];
                let Some(span) = hi.checked_sub(lo).filter(|_| c.kinds[at] == Kind::Int) else {
                    return Ok(None);
                };
                let null = c.nullable[at] as u64;
                let width = bits_for(span.max(0) as u64 + null);
                if width > 62 {
                    return Ok(None);
                }
                digits.push(Digit {
                    table,
                    of: Of::Int { column: at, least: lo, null },
                    bits: width,
                    down: *down,
                });
                bits += width;
            }
            let width = bits_for((s.cols[table].loaded.rows as u64).saturating_sub(1));
            digits.push(Digit { table, of: Of::Row, bits: width, down: l.reverse });
            bits += width;
        }
        Ok((bits <= 128).then_some((digits, columns)))
    }
}

fn empty_batch<'a>(s: &JoinScope<'a>, tables: usize) -> Batch<'a> {
    Batch {
        cols: s.cols,
        places: s.places,
        part: 0,
        outer: Vec::new(),
        whole: false,
        inner: vec![Vec::new(); tables],
    }
}

/// The places of combinations in order.
fn sorted(digits: &[Digit], columns: &[Option<Columns>], rows: &[Vec<u32>], n: usize) -> Result<Vec<u32>> {
    let mut out: Vec<u32> = room(n)?;
    match digits.iter().map(|d| d.bits).sum::<u32>() {
        0..=64 => out.extend(sorted_by::<u64>(digits, columns, rows, n)?.iter().map(|l| l.1)),
        _ => out.extend(sorted_by::<u128>(digits, columns, rows, n)?.iter().map(|l| l.1)),
    }
    Ok(out)
}

/// The same with the numbers, of a width that holds all digits.
fn sorted_by<T: Copy + Ord + From<u64> + Shl<u32, Output = T> + BitOr<Output = T>>(
    digits: &[Digit],
    columns: &[Option<Columns>],
    rows: &[Vec<u32>],
    n: usize,
) -> Result<Vec<(T, u32)>> {
    let mut list: Vec<(T, u32)> = room(n)?;
    list.extend((0..n as u32).map(|i| (T::from(0), i)));
    for (k, d) in digits.iter().enumerate() {
        let most = (1u64 << d.bits) - 1;
        for ((key, _), row) in list.iter_mut().zip(&rows[d.table]) {
            // A row of NULLs is the only one for what is around it.
            let v = if *row == NONE { 0 } else { d.of.of_row(*row, &columns[d.table]) };
            let v = T::from(if d.down { most - v.min(most) } else { v });
            // Nothing is there yet to be shifted, perhaps by all its bits.
            *key = if k == 0 { v } else { *key << d.bits | v };
        }
    }
    if !list.is_sorted() {
        list.sort_unstable();
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations_are_sorted_digit_by_digit() {
        let digit = |table, bits, down| Digit { table, of: Of::Row, bits, down };
        let rows = vec![vec![1, 0, 1, 0], vec![0, 2, 3, 1]];
        let at = |d: &[Digit]| sorted(d, &[None, None], &rows, 4).unwrap();
        assert_eq!(at(&[digit(0, 1, false), digit(1, 2, false)]), [3, 1, 0, 2]);
        assert_eq!(at(&[digit(0, 1, false), digit(1, 2, true)]), [1, 3, 2, 0]);
        assert_eq!(at(&[digit(0, 1, true), digit(1, 2, false)]), [0, 2, 3, 1]);
        let wide = vec![digit(0, 62, false), digit(1, 40, true)];
        assert_eq!(at(&wide), [1, 3, 2, 0]);
    }
}
