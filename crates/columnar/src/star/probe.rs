//! The inner tables of a run: built, and looked up for the rows that a scan selects.

use super::scope::JoinScope;
use crate::decline::DECLINED;
use crate::expr::batch::NONE;
use crate::expr::batch::{Batch, BatchRow, Ints, few_code};
use crate::expr::columns::{Columns, Kind};
use crate::expr::condition::Truth;
use crate::expr::filter::Pred;
use crate::expr::scope::{OneField, Places, few_values};
use crate::expr::{Eval, Ex};
use crate::profile::shown;
use crate::query::tables_of;
use crate::sort;
use crate::star::build::{AWAY, InnerTable, MOST_SHARES, Share};
use crate::star::scope::Run;
use crate::star::split::{Join, JoinPlan};
use crate::store::chunk::{Data, Field};
use iolite_base::Result;
use iolite_value::Affinity;
use std::cell::Cell;
use std::sync::Arc;

/// The inner tables of a run.
pub(crate) type InnerTables = Vec<Option<Arc<InnerTable>>>;

impl Run<'_> {
    /// Whether an inner table without rows leaves none of any other.
    pub(crate) fn joins_none(&self, inners: &InnerTables) -> bool {
        let none = |(t, i): (usize, &Option<Arc<InnerTable>>)| {
            !self.q.tables[t].left && i.as_ref().is_some_and(|i| i.is_whole() && i.passed.is_empty())
        };
        inners.iter().enumerate().any(none)
    }

    /// Brings the conditions on a table into form and puts them before those that are in that form, the cheap ones first. This may ask each
    /// value of a dictionary: it is not done for tables of which no row counts.
    pub(crate) fn form(
        &self,
        t: usize,
        d: &JoinPlan,
        cols: &[Columns],
        places: &Places,
        preds: &mut [Vec<Pred>],
    ) -> Result<()> {
        let never = |e: &Ex| matches!(e, Ex::Const(v) if v.truth() != Some(true));
        if d.local[t].iter().any(never) {
            preds[t] = vec![Pred::Never];
            return Ok(());
        }
        let alone = self.rt.threads() < 2;
        let of = |e| Pred::of(e, &cols[t], &places.of_table[t], self.eval, alone);
        let mut list = Pred::joined(d.local[t].iter().map(of).collect::<Result<_>>()?);
        sort::few(&mut list, |a, b| a.cost() > b.cost());
        list.append(&mut preds[t]);
        preds[t] = list;
        Ok(())
    }

    /// Builds the inner tables, small ones first; the keys of those that are filtered thin out what leads to them.
    pub(crate) fn build_inners(
        &self,
        d: &JoinPlan,
        cols: &[Columns],
        places: &Places,
        preds: &mut [Vec<Pred>],
    ) -> Result<Option<InnerTables>> {
        let q = self.q;
        let mut inners: InnerTables = Vec::new();
        inners.resize_with(q.tables.len(), || None);
        let mut left: Vec<&Join> = d.joins.iter().collect();
        let mut shares = 1u32;
        while !left.is_empty() {
            // What hangs on a table is built before it.
            let hangs = |t: usize| {
                left.iter().any(|j| j.table != t && j.others.iter().any(|e| tables_of(q, e) & 1 << t != 0))
            };
            let ready = (0..left.len()).filter(|i| !hangs(left[*i].table));
            let Some(i) = ready.min_by_key(|i| cols[left[*i].table].loaded.rows) else { return Ok(None) };
            self.rt.check()?;
            let j = left.remove(i);
            let t = j.table;
            let start = self.now();
            match self.joins_none(&inners) {
                true => preds[t] = vec![Pred::Never],
                false => self.form(t, d, cols, places, preds)?,
            }
            let Some(built) = self.build_inner(j, cols, places, &preds[t], None)? else { return Ok(None) };
            if let Some(p) = self.rt.profile() {
                let name = &q.tables[t].table.name;
                let (rows, kept) = (cols[t].loaded.rows, built.passed.len());
                let share = match built.share.of {
                    1 => String::new(),
                    of => format!(", the first of {of} shares"),
                };
                p.line(format!(
                    "BUILD {name}: {rows} rows, {kept} kept{share}, {}",
                    shown(self.now() - start)
                ));
            }
            let filtered = built.passed.len() * 10 < cols[t].loaded.rows * 9;
            if let (Some(bits), Some(base), Some(x), true) =
                (&built.bits, built.base(), j.other(), filtered && !q.tables[t].left)
            {
                let mut thin = |s: usize| {
                    let (u, col) = places.at[s];
                    if u != self.outer && !q.tables[u].left && cols[u].kinds[col] == Kind::Int {
                        preds[u].push(Pred::IntSet { col, base, set: bits.clone() });
                    }
                };
                thin(x);
                // Others that equal the same.
                for o in &left {
                    for (s, e) in o.slots.iter().zip(&o.others) {
                        if matches!(e, Ex::Slot(y) if *y == x) && o.affinity != Affinity::Text {
                            thin(*s);
                        }
                    }
                }
            }
            shares = shares.saturating_mul(built.share.of);
            if shares > MOST_SHARES {
                return Ok(None);
            }
            inners[t] = Some(Arc::new(built));
        }
        Ok(Some(inners))
    }

    /// Builds one of them, or a share of it.
    pub(crate) fn build_inner(
        &self,
        j: &Join,
        cols: &[Columns],
        places: &Places,
        preds: &[Pred],
        share: Option<Share>,
    ) -> Result<Option<InnerTable>> {
        let t = j.table;
        let keys: Vec<usize> = j.slots.iter().map(|s| places.at[*s].1).collect();
        let ascending = self.q.slots[j.slots[0]].field.is_none();
        let of = &places.of_table[t];
        InnerTable::build(&cols[t], &keys, ascending, j.affinity, j.binary, preds, of, self.eval, share)
    }

    /// Puts joins that find one row at most before those that multiply rows, where what they look for is known by then.
    pub(crate) fn unique_first(&self, d: &mut JoinPlan, inners: &InnerTables) {
        let mut left = std::mem::take(&mut d.joins);
        let mut known = 0u64;
        while !left.is_empty() {
            // A table that stands in for another is known with it.
            let own = left.iter().fold(0, |m, j| m | 1 << j.table);
            let ready = |j: &Join| {
                j.others.iter().all(|e| tables_of(self.q, e) & own & !known & !(1 << j.table) == 0)
            };
            let unique = |j: &Join| inners[j.table].as_ref().is_none_or(|i| i.unique());
            let next = left.iter().position(|j| ready(j) && unique(j));
            let k = next.or_else(|| left.iter().position(ready)).unwrap_or(0);
            let j = left.remove(k);
            known |= 1 << j.table;
            d.joins.push(j);
        }
    }

    /// The next shares of the maps that have no room as a whole; `false`: all combinations have been here.
    pub(crate) fn next_share(
        &self,
        d: &JoinPlan,
        preds: &[Vec<Pred>],
        s: &JoinScope<'_>,
        inners: &mut InnerTables,
    ) -> Result<bool> {
        for j in &d.joins {
            let Some(share) = inners[j.table].as_ref().map(|i| i.share) else { continue };
            if share == Share::ALL {
                continue;
            }
            self.rt.check()?;
            let nr = (share.nr + 1) % share.of;
            let next = Share { nr, of: share.of };
            inners[j.table] = None;
            let built = self.build_inner(j, s.cols, s.places, &preds[j.table], Some(next))?;
            inners[j.table] = Some(Arc::new(built.ok_or(DECLINED)?));
            if nr > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Looks the inner rows up, and passes on what is joined, in pieces of [`MOST_JOINED`] rows or little more, until `then`
    /// answers `false`.
    pub(crate) fn join(
        &self,
        d: &JoinPlan,
        s: &JoinScope<'_>,
        plain: &[Option<usize>],
        needed: u64,
        b: &mut Batch<'_>,
        then: &mut dyn FnMut(&mut Batch<'_>) -> Result<bool>,
    ) -> Result<bool> {
        for v in &mut b.inner {
            v.clear();
        }
        self.join_from(0, Vec::new(), (d, s, plain, needed), b, then)
    }

    /// The same from join `first` on; rows of the tables `done` have been looked up.
    fn join_from(
        &self,
        first: usize,
        mut done: Vec<usize>,
        of: (&JoinPlan, &JoinScope<'_>, &[Option<usize>], u64),
        b: &mut Batch<'_>,
        then: &mut dyn FnMut(&mut Batch<'_>) -> Result<bool>,
    ) -> Result<bool> {
        let (d, s, plain, needed) = of;
        for (k, j) in d.joins.iter().enumerate().skip(first) {
            let Some(inner) = &s.inners[j.table] else { continue };
            let left = self.q.tables[j.table].left;
            let filtered = plain[k].is_some() && inner.bits.is_some() && !left;
            if inner.unique() && inner.is_whole() && needed & 1 << j.table == 0 && (filtered || left) {
                continue;
            }
            // The room of the batch before.
            let mut found = std::mem::take(&mut b.inner[j.table]);
            iolite_base::alloc::reserve(&mut found, b.outer.len())?;
            let nothing = inner.no_row();
            match plain[k] {
                Some(col) => {
                    let chunk = &s.cols[self.outer].loaded.parts[b.part].cols[col];
                    match (&chunk.data, inner.base()) {
                        (Data::Int { base, nulls: false, codes }, Some(_)) => {
                            inner.find_codes(*base, codes, &b.outer, filtered, &mut found);
                        }
                        _ => found.extend(
                            b.outer
                                .iter()
                                .map(|r| chunk.int(*r as usize).map_or(nothing, |v| inner.find_int(v))),
                        ),
                    }
                }
                None if self.are_ints(j, s) => {
                    let mut all: Vec<Ints> = Vec::new();
                    for e in &j.others {
                        let mut ints = Ints::default();
                        Ints::of(e, b, &mut ints)?;
                        all.push(ints);
                    }
                    let null = |i: usize| all.iter().any(|v| v.nulls.get(i).copied().unwrap_or(false));
                    match &all[..] {
                        [one] => found.extend(one.values.iter().enumerate().map(|(i, v)| match null(i) {
                            true => nothing,
                            false => inner.find_int(*v),
                        })),
                        _ => found.extend((0..b.outer.len()).map(|i| match null(i) {
                            true => nothing,
                            false => inner.find_ints(all.iter().map(|v| v.values[i])),
                        })),
                    }
                }
                None => match d.few.get(k).and_then(Option::as_ref) {
                    Some(few) => few.find(&j.others[0], inner, b, self.eval, &mut found)?,
                    None => {
                        for i in 0..b.outer.len() {
                            let v = self.eval.value(&j.others[0], &BatchRow { batch: b, i })?;
                            found.push(inner.find(&v)?);
                        }
                    }
                },
            }
            b.whole = false;
            if !inner.is_whole() && found.contains(&AWAY) {
                // Another share of the table has these rows.
                let flags: Vec<u32> = found.iter().map(|f| if *f == AWAY { NONE } else { 0 }).collect();
                keep(&mut b.outer, &flags);
                for t in &done {
                    keep(&mut b.inner[*t], &flags);
                }
                found.retain(|f| *f != AWAY);
            }
            if inner.unique() {
                if !left && !filtered && found.contains(&NONE) {
                    keep(&mut b.outer, &found);
                    for t in &done {
                        keep(&mut b.inner[*t], &found);
                    }
                    found.retain(|f| *f != NONE);
                }
                b.inner[j.table] = found;
                done.push(j.table);
                continue;
            }
            let mut pairs = Pairs::of(inner, left, &found);
            pairs.go_on()?;
            if pairs.ended() {
                *b = pairs.batch(j.table, &done, b);
                done.push(j.table);
                continue;
            }
            // Many rows for each: the other joins see them piece by piece.
            let known: Vec<usize> = done.iter().copied().chain([j.table]).collect();
            loop {
                let mut piece = pairs.batch(j.table, &done, b);
                if !self.join_from(k + 1, known.clone(), of, &mut piece, then)? {
                    return Ok(false);
                }
                if pairs.ended() {
                    return Ok(true);
                }
                self.rt.check()?;
                pairs.go_on()?;
            }
        }
        then(b)
    }

    /// What is known of a join's keys, if they are computed from a column of few values.
    pub(crate) fn few_keys(&self, j: &Join, s: &JoinScope<'_>) -> Option<FewKeys> {
        let [key] = &j.others[..] else { return None };
        let inner = s.inners[j.table].as_ref()?;
        if !inner.is_whole() || self.are_ints(j, s) {
            return None;
        }
        let (slot, n) = few_values(key, s)?;
        let (table, col) = s.places.at[slot];
        Some(FewKeys { table, col, rows: (0..n).map(|_| Cell::new(UNKNOWN)).collect() })
    }

    /// Whether a join's key is looked up by integers.
    fn are_ints(&self, j: &Join, s: &JoinScope<'_>) -> bool {
        let int = |e: &Ex| match e {
            Ex::Slot(k) => s.cols[s.places.at[*k].0].kinds[s.places.at[*k].1] == Kind::Int,
            _ => false,
        };
        let own = |k: &usize| s.cols[j.table].kinds[s.places.at[*k].1] == Kind::Int;
        j.others.iter().all(int) && j.slots.iter().all(own) && j.affinity != Affinity::Text
    }
}

/// Joined rows beyond which a batch is passed on in pieces.
const MOST_JOINED: usize = 1 << 16;

/// Each row of a batch once for each match in a table.
struct Pairs<'p> {
    inner: &'p InnerTable,
    left: bool,
    /// The first match of each row.
    heads: &'p [u32],
    /// The row whose matches come next, and the next of them if some have been here.
    next: usize,
    rest: u32,
    /// Of the piece, each row's place in the batch, and its match.
    from: Vec<u32>,
    rows: Vec<u32>,
}

impl<'p> Pairs<'p> {
    fn of(inner: &'p InnerTable, left: bool, heads: &'p [u32]) -> Pairs<'p> {
        Pairs { inner, left, heads, next: 0, rest: NONE, from: Vec::new(), rows: Vec::new() }
    }

    fn ended(&self) -> bool {
        self.next == self.heads.len()
    }

    /// Finds the next piece.
    fn go_on(&mut self) -> Result<()> {
        self.from.clear();
        self.rows.clear();
        while self.next < self.heads.len() {
            let i = self.next as u32;
            let mut row = if self.rest == NONE { self.heads[self.next] } else { self.rest };
            if row == NONE && self.left {
                self.add(i, NONE)?;
            }
            while row != NONE {
                if self.rows.len() >= MOST_JOINED {
                    self.rest = row;
                    return Ok(());
                }
                self.add(i, row)?;
                row = self.inner.following(row);
            }
            self.rest = NONE;
            self.next += 1;
        }
        Ok(())
    }

    fn add(&mut self, from: u32, row: u32) -> Result<()> {
        iolite_base::alloc::reserve(&mut self.from, 1)?;
        iolite_base::alloc::reserve(&mut self.rows, 1)?;
        self.from.push(from);
        self.rows.push(row);
        Ok(())
    }

    /// The piece, of the table and those that were looked up before.
    fn batch<'b>(&mut self, table: usize, done: &[usize], b: &Batch<'b>) -> Batch<'b> {
        let again = |v: &Vec<u32>| self.from.iter().map(|i| v[*i as usize]).collect::<Vec<u32>>();
        let mut inner = vec![Vec::new(); b.inner.len()];
        for t in done {
            inner[*t] = again(&b.inner[*t]);
        }
        let outer = again(&b.outer);
        inner[table] = std::mem::take(&mut self.rows);
        Batch { cols: b.cols, places: b.places, part: b.part, outer, whole: false, inner }
    }
}

/// Not looked up yet.
const UNKNOWN: u32 = AWAY - 1;

/// The first inner row for each value of a column, looked up when it is first met.
pub(crate) struct FewKeys {
    table: usize,
    col: usize,
    /// By the value's code; the last is NULL's.
    rows: Vec<Cell<u32>>,
}

impl FewKeys {
    /// The first inner rows for a batch; `key` is computed from the column.
    fn find(
        &self,
        key: &Ex,
        inner: &InnerTable,
        b: &Batch<'_>,
        eval: &Eval<'_>,
        found: &mut Vec<u32>,
    ) -> Result<()> {
        let cols = &b.cols[self.table];
        let (least, null) = (cols.bounds[self.col].0, self.rows.len() - 1);
        let look = |code: usize| -> Result<u32> {
            let v = match cols.kinds[self.col] {
                _ if code == null => Field::Null,
                Kind::Dict => cols.loaded.dicts[self.col].get(code as u32),
                _ => Field::Int(least + code as i64),
            };
            let row = inner.find(&eval.value(key, &OneField(v))?)?;
            self.rows[code].set(row);
            Ok(row)
        };
        let mut failed = None;
        b.each(self.table, self.col, |place| {
            let code = place.map_or(null, |(chunk, i)| few_code(chunk, i, least, null));
            found.push(match self.rows[code].get() {
                UNKNOWN => look(code).unwrap_or_else(|e| {
                    failed.get_or_insert(e);
                    NONE
                }),
                row => row,
            });
        });
        failed.map_or(Ok(()), Err)
    }
}

/// Keeps the entries whose flag is not [`NONE`].
fn keep(v: &mut Vec<u32>, flags: &[u32]) {
    let mut flag = flags.iter();
    v.retain(|_| flag.next().is_some_and(|f| *f != NONE));
}

/// Drops the rows that fail the other conditions.
pub(crate) fn test_rest(rest: &[Truth], s: &JoinScope<'_>, b: &mut Batch<'_>) -> Result<()> {
    for t in rest {
        if b.outer.is_empty() {
            break;
        }
        let flags: Vec<u32> = t.test(b, s)?.into_iter().map(|t| if t { 0 } else { NONE }).collect();
        b.whole &= !flags.contains(&NONE);
        keep(&mut b.outer, &flags);
        for v in &mut b.inner {
            if !v.is_empty() {
                keep(v, &flags);
            }
        }
    }
    Ok(())
}
