//! A table's columns as blocks of rows: loading, filtering, and fetching rows by their positions. The table is a stored one, or
//! the rows of a query in FROM.
//!
//! What always holds: blocks come in the order of the table. A column is loaded for all segments or for none; single rows are
//! decoded from their leaves where few are wanted.
//!
//! What it does not know: what is done with the rows.

use crate::expr::batch::Batch;
use crate::expr::columns::Columns;
use crate::expr::filter::Pred;
use crate::expr::scope::Places;
use crate::expr::scope::Scope;
use crate::expr::{Eval, Row};
use crate::kernel::{BATCH, BLOCK, FIRST_BLOCK, Selection};
use crate::op::made::Made;
use crate::profile::shown;
use crate::query::name_of;
use crate::query::{Query, SlotSpec};
use crate::runtime::Runtime;
use crate::store::chunk::Field;
use crate::store::decode::{self, ColKey, Spare, Wanted};
use crate::store::{LoadRequest, Store, TableState};
use iolite_base::{Code, Pgno, Result};
use iolite_btree::Btree;
use iolite_value::Value;
use std::sync::Arc;

/// A table. See the module's head.
pub(crate) struct Source<'a> {
    pub q: &'a Query,
    pub rt: &'a dyn Runtime,
    pub eval: &'a Eval<'a>,
    base: Base<'a>,
    /// The columns in use; behind the query's own those that make the order of its loop.
    pub slots: Vec<&'a SlotSpec>,
    /// When the query began.
    since: u64,
}

/// Where its columns come from.
enum Base<'a> {
    Stored {
        store: Arc<Store>,
        bt: Btree,
        state: Arc<TableState>,
    },
    /// A query in FROM has made them.
    Made(&'a Made),
}

/// Some of its columns.
pub(crate) struct Loaded {
    pub cols: [Columns; 1],
    pub places: Places,
}

/// The column of a slot that was not loaded.
const ABSENT: usize = usize::MAX;

impl Loaded {
    /// Row `row` of the table.
    pub fn row(&self, row: u32) -> crate::expr::columns::TableRow<'_> {
        let cols = &self.cols[0];
        let (p, i) = cols.locate(row as usize);
        cols.row(&cols.loaded.parts[p], i, &self.places.of_table[0])
    }

    /// A column's value in a row.
    pub fn field(&self, slot: usize, row: u32) -> Field<'_> {
        let cols = &self.cols[0];
        let (p, i) = cols.locate(row as usize);
        let c = self.places.at[slot].1;
        cols.loaded.parts[p].cols[c].field(i, &cols.loaded.dicts[c])
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.cols[0].loaded.rows
    }
}

/// Values of a row that was fetched by itself.
pub(crate) struct Fetched<'f>(pub &'f [Option<Value>]);

impl Row for Fetched<'_> {
    fn slot(&self, s: usize) -> Result<Value> {
        self.0.get(s).cloned().flatten().ok_or_else(|| Code::Internal.into())
    }
}

impl<'a> Source<'a> {
    /// The only table of a query; `made`: what the query in FROM has made that it is.
    pub fn new(
        q: &'a Query,
        rt: &'a dyn Runtime,
        eval: &'a Eval<'a>,
        since: u64,
        made: Option<&'a Made>,
    ) -> Result<Source<'a>> {
        let t = q.tables.first().ok_or(Code::Internal)?;
        let base = match made {
            Some(made) => Base::Made(made),
            None => {
                let (bt, store) = (rt.btree(t.db)?, rt.store(t.db)?);
                let state = store.table(&bt, t.table.root.get())?;
                Base::Stored { store, bt, state }
            }
        };
        Ok(Source { q, rt, eval, base, slots: q.slots.iter().collect(), since })
    }

    /// How many leaves the table has.
    pub fn leaves(&self) -> usize {
        match &self.base {
            Base::Stored { state, .. } => state.leaves(),
            Base::Made(made) => made.leaves(),
        }
    }

    fn wanted(&self, slots: &[bool]) -> Vec<(ColKey, &'a Value)> {
        let all = self.slots.iter().zip(slots).filter(|(_, w)| **w);
        all.map(|(s, _)| (s.key(), &s.default)).collect()
    }

    /// Loads columns.
    pub fn load(&self, slots: &[bool]) -> Result<Loaded> {
        let wanted = self.wanted(slots);
        let loaded = match &self.base {
            Base::Made(made) => made.loaded(&wanted)?,
            Base::Stored { store, bt, state } => {
                let start = self.now();
                let before = store.counters.of_loading();
                let check = &|| self.rt.check();
                let request = LoadRequest {
                    since: self.since,
                    threads: self.rt.threads(),
                    force: self.rt.force(),
                    check,
                };
                let threads = store.decode_together(bt, state, &wanted, &request)?;
                if let (Some(p), 2..) = (self.rt.profile(), threads) {
                    p.line(format!("DECODED WITH {threads} THREADS"));
                }
                let loaded = store.load(bt, state, &wanted, self.since, false, check)?;
                if let Some(p) = self.rt.profile() {
                    let now = store.counters.of_loading();
                    p.loaded(&self.q.tables[0].table.name, &loaded, before, now, self.now() - start);
                }
                loaded
            }
        };
        let mut of: Vec<Option<usize>> = Vec::new();
        let mut n = 0;
        for w in slots {
            of.push(w.then_some(n));
            n += *w as usize;
        }
        let at = of.iter().map(|c| (0, c.unwrap_or(ABSENT))).collect();
        let places = Places { at, of_table: vec![of], outer: 0 };
        Ok(Loaded { cols: [Columns::new(loaded)], places })
    }

    /// The time, if somebody asks what takes it.
    pub fn now(&self) -> u64 {
        self.rt.profile().map_or(0, |_| self.rt.nanos())
    }

    /// Writes down what an operator did since a moment.
    pub fn note(&self, since: u64, what: &dyn Fn() -> String) {
        if let Some(p) = self.rt.profile() {
            p.line(format!("{}, {}", what(), shown(self.now() - since)));
        }
    }

    /// What expressions over these columns need to know.
    pub fn setting<'s>(&'s self, l: &'s Loaded) -> Scope<'s> {
        Scope {
            cols: &l.cols,
            places: &l.places,
            eval: self.eval,
            in_order: true,
            most_rows: Some(l.rows() as u64),
            left: &[false],
            rt: Some(self.rt),
        }
    }

    /// Calls `take` with blocks of the rows that meet the conditions, until it answers `false`.
    pub fn scan<'l>(
        &self,
        l: &'l Loaded,
        preds: &[Pred],
        take: &mut dyn FnMut(&Batch<'l>) -> Result<bool>,
    ) -> Result<()> {
        let cols = &l.cols[0];
        let of = &l.places.of_table[0];
        let mut batch = Batch {
            cols: &l.cols,
            places: &l.places,
            part: 0,
            outer: Vec::new(),
            whole: false,
            inner: vec![Vec::new()],
        };
        let mut sel = Selection::new();
        // Of each condition rows tested and passed, so that the best one comes first.
        let mut order: Vec<(usize, f64, f64)> = (0..preds.len()).map(|i| (i, 3.0, 1.0)).collect();
        let (mut seen, mut passed) = (0usize, 0usize);
        let begun = self.now();
        let mut most = FIRST_BLOCK;
        'parts: for (k, part) in cols.loaded.parts.iter().enumerate() {
            self.rt.check()?;
            if preds.iter().any(|p| p.excludes(part)) {
                continue;
            }
            let rank = |o: &(usize, f64, f64)| preds[o.0].cost() / (1.0001 - o.2 / o.1);
            let block = if preds.is_empty() { BATCH } else { BLOCK };
            let mut from = 0;
            while from < part.rows {
                let span = from..(from + block.min(most)).min(part.rows);
                most = (2 * most).min(BLOCK);
                crate::sort::few(&mut order, |a, b| rank(a) > rank(b));
                from = span.end;
                seen += span.len();
                sel.fill(span.len());
                for o in &mut order {
                    if sel.len() == 0 {
                        break;
                    }
                    o.1 += sel.len() as f64;
                    preds[o.0].select(cols, k, span.clone(), of, self.eval, &mut sel)?;
                    o.2 += sel.len() as f64;
                }
                passed += sel.len();
                let whole = sel.len() == span.len();
                let n = sel.len();
                for first in (0..n).step_by(BATCH) {
                    let last = (first + BATCH).min(n);
                    batch.part = k;
                    batch.whole = whole;
                    batch.outer.clear();
                    if whole {
                        batch.outer.extend((span.start + first) as u32..(span.start + last) as u32);
                    } else {
                        let rows = &sel.rows()[first..last];
                        batch.outer.extend(rows.iter().map(|i| span.start as u32 + *i as u32));
                    }
                    if !take(&batch)? {
                        break 'parts;
                    }
                }
            }
        }
        let name = &self.q.tables[0].table.name;
        if let Some(p) = self.rt.profile() {
            for (i, tested, passed) in &order {
                let what = name_of(self.q, 0, &preds[*i], &l.places);
                p.line(format!("FILTER {what}: {:.0} rows tested, {:.0} passed", tested - 3.0, passed - 1.0));
            }
        }
        self.note(begun, &|| format!("SCAN OF {name}: {seen} rows, {passed} rows selected"));
        Ok(())
    }

    /// On how many leaves these rows lie; `None`: that is not known.
    pub fn leaves_of(&self, l: &Loaded, rows: &[u32]) -> Option<usize> {
        let mut seen: Vec<(usize, usize)> = Vec::new();
        for r in rows {
            seen.push(self.leaf_of(l, *r)?);
        }
        seen.sort_unstable();
        seen.dedup();
        Some(seen.len())
    }

    /// The segment and the leaf of a row.
    fn leaf_of(&self, l: &Loaded, row: u32) -> Option<(usize, usize)> {
        let Base::Stored { state, .. } = &self.base else { return None };
        let (p, i) = l.cols[0].locate(row as usize);
        let first = &state.segments.get(p)?.rows.get()?.first;
        Some((p, first.partition_point(|f| *f as usize <= i) - 1))
    }

    /// Decodes columns of single rows from their leaves; `f` is called with each row's place in the list and its values.
    pub fn fetch(
        &self,
        l: &Loaded,
        rows: &[u32],
        slots: &[bool],
        f: &mut dyn FnMut(usize, Fetched<'_>) -> Result<()>,
    ) -> Result<()> {
        let Base::Stored { store, bt, state } = &self.base else { return Err(Code::Internal.into()) };
        let begun = self.now();
        let wanted = self.wanted(slots);
        let wanted: Vec<Wanted<'_>> = wanted.iter().map(|(k, d)| Wanted::new(*k, d)).collect();
        let mut at: Vec<(usize, usize, u32, usize)> = Vec::new();
        for (n, r) in rows.iter().enumerate() {
            let (p, leaf) = self.leaf_of(l, *r).ok_or(Code::Internal)?;
            at.push((p, leaf, *r, n));
        }
        at.sort_unstable();
        let mut values: Vec<Option<Value>> = vec![None; slots.len()];
        let mut leaves = 0;
        let mut spare = Spare::default();
        for run in at.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            if leaves % 64 == 0 {
                self.rt.check()?;
            }
            leaves += 1;
            let (p, leaf, ..) = run[0];
            let segment = &state.segments[p];
            let first = segment.rows.get().ok_or(Code::Internal)?.first[leaf] as usize;
            let page: Pgno = segment.leaves[leaf];
            let mut dicts: Vec<_> = wanted.iter().map(|_| Default::default()).collect();
            let built = decode::build(bt, store.seed(), &[page], &wanted, &mut dicts, 16, &mut spare)?;
            for (_, _, row, n) in run {
                let i = l.cols[0].locate(*row as usize).1 - first;
                let mut c = 0;
                for (v, w) in values.iter_mut().zip(slots) {
                    if *w {
                        *v = Some(built.chunks[c].field(i, &dicts[c]).value()?);
                        c += 1;
                    }
                }
                f(*n, Fetched(&values))?;
            }
        }
        self.note(begun, &|| {
            format!("FETCH OF {}: {} rows from {leaves} leaves", self.q.tables[0].table.name, rows.len())
        });
        Ok(())
    }
}
