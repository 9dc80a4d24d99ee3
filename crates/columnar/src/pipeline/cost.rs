//! Whether a first run in columns would take longer than the same arm in rows.
//!
//! Columns that no query has read yet have to be decoded from every leaf of their tables; loops that seek a few rows by an
//! index need not wait for that. So an arm whose loops are estimated to be faster than decoding is left to rows
//! when its columns are wanted for the first time; wanted again, by whatever query, they are built, and are there from then on. Measured:
//! six million rows on 220,000 leaves are scanned in rows in 0.5 s, and decoded in 0.4 to 0.9 s for one to ten columns; a
//! row sought by an index takes 0.5 to 1 us.
//!
//! What the planner thinks of conditions on columns without an index is a guess, and all its loops within multiply it: where
//! that guess alone keeps an arm from rows, the conditions on the first table are tested on the rows of some of its leaves.
//!
//! Columns that are there still have to be looked at: a join makes a hash table of each table but the first. Loops that seek a few
//! rows of a large one are faster, however often they are wanted.
//!
//! A range of rowids says itself how many rows it can have. A short one is walked in rows even where the columns are there:
//! a condition in columns looks at the whole table.

use crate::expr::columns::Columns;
use crate::expr::{Eval, Ex};
use crate::op::rows::SPARSE;
use crate::pipeline::single::early;
use crate::query::loops::{ENTRY, SEEK};
use crate::query::tables_of;
use crate::query::{AggSpec, Cond, InFrom, NestedKind, Query};
use crate::runtime::Runtime;
use crate::store::chunk::{Chunk, Data, Dict, Field};
use crate::store::decode::{self, ColKey, Wanted};
use crate::store::{FEW_LEAVES, Loaded, Part, Segment, Store, TableState, lock};
use iolite_base::Result;
use iolite_base::hash::FastHasher;
use iolite_btree::{Btree, Cursor, TreeKind};
use iolite_catalog::DEFAULT_ROWS;
use iolite_plan::bound::CmpOp;
use iolite_plan::plan::Grouping;
use iolite_value::{Affinity, Value};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Nanoseconds for a leaf that is scanned in rows.
const LEAF: f64 = 2_400.0;
/// For a leaf that is decoded, and for each column.
const DECODE: (f64, f64) = (1_250.0, 220.0);
/// For a text, and for one that nobody has seen before: it goes into a dictionary, whose places are nowhere near by then.
const DECODE_TEXT: (f64, f64) = (12.0, 250.0);
/// For a row that goes on on overflow pages.
const OVERFLOW: f64 = 600.0;
/// For a byte that is read from such pages and copied.
const BEYOND: f64 = 0.4;
/// For a leaf that is scanned in columns that are there, for each column.
const SCANNED: f64 = 85.0;
/// For a leaf that has to be read: the first time, or where a table does not fit the cache.
const READ: f64 = 1_500.0;
/// For a value of any kind that is added up.
const MIXED: f64 = 90.0;
/// For a row whose key goes to the set of a nested query.
const NESTED: f64 = 25.0;
/// For a row and a column of such a scan.
const EACH: f64 = 1.5;
/// For a row and a column beside an index's range, and for a text that is tested.
const SCANNED_EACH: f64 = 0.5;
const TESTED_TEXT: f64 = 4.0;
/// For a row of which the different ones are wanted in the order of an index.
const ORDERED: f64 = 140.0;
/// For a row of which the columns of an index are brought into the index's order.
const SORTED: f64 = 60.0;
/// For a row that goes to a group in columns.
const GROUPED: f64 = 60.0;
/// For a row of a table that a join makes a hash table of, where its values are new; 20 where they have codes.
const BUILT: f64 = 250.0;
/// How much of it at least.
const CODED: f64 = 0.1;
/// For a value of a row of a query in FROM.
const MADE: f64 = 60.0;
/// For a row that is scanned to be looked up in other tables.
const PROBED: f64 = 15.0;
/// Rows of a leaf at least, where they are not known.
const FEW_ROWS: f64 = 30.0;
/// For a row of a range that is walked in rows.
const WALKED: f64 = 85.0;
/// For a run in columns before it looks at any.
const BEGUN: f64 = 5_000.0;
/// What takes less is not worth rows being looked at beforehand.
const WORTH_LOOKING: f64 = 300_000.0;
/// Leaves whose rows are looked at.
const SAMPLED_LEAVES: usize = 24;
/// Where a column has so many times the different values that are wanted, these are soon found.
const MANY_OF: i64 = 4;
/// What a query in a condition lets through.
const BY_QUERY: f64 = 0.5;
/// Columns are decoded once rows have taken this share of the time that it takes, for queries that wanted each of them.
const PATIENCE: f64 = 0.5;
/// They are decoded for its first run if rows would take so many times as long: what decoding takes is told by leaves, and texts that
/// are all different may double it.
const SURE: f64 = 1.5;

/// What an arm would take.
#[derive(Clone, Copy, Default)]
struct Estimate {
    /// Nanoseconds in rows for scanning the first table, and for all else.
    scan: f64,
    rest: f64,
    /// Rows of the first table that go on to all else.
    first: f64,
    /// No other table has more leaves than the first; nanoseconds of going through the one that has.
    first_is_largest: bool,
    probe: f64,
    /// Nanoseconds of decoding what is not there, and whether it is not there the next time, either.
    decode: f64,
    decodes_again: bool,
    /// Nanoseconds of hash tables for joins, and of looking at columns that are there.
    build: f64,
    look: f64,
}

/// Estimates; whether what is decoded would be kept.
fn estimate(q: &Query, rt: &dyn Runtime, params: &[Value]) -> Result<(Estimate, bool)> {
    let mut e = Estimate { rest: q.loops.rest, first: q.loops.first, ..Estimate::default() };
    let (mut keep, mut largest, mut known) = (true, 0.0, 1.0);
    for (t, spec) in q.tables.iter().enumerate() {
        if let Some(from) = &spec.query {
            for arm in &from.arms {
                let (own, k) = estimate(arm, rt, params)?;
                keep &= k;
                e.decode += own.decode;
                e.build += own.build;
                e.look += own.look;
                let loops = own.scan + own.rest;
                match walk_to_limit(from, arm, rt, params)? {
                    Some((walk, share)) => {
                        e.scan += walk.min(loops);
                        e.look += sorting(arm, rt, share)?;
                        e.decode += decoding_late(arm, rt)?;
                    }
                    None => e.scan += loops,
                }
            }
            continue;
        }
        let (store, bt) = (rt.store(spec.db)?, rt.btree(spec.db)?);
        let state = store.table(&bt, spec.table.root.get())?;
        let leaves = state.leaves() as f64;
        keep &= state.keep;
        if t == 0 || leaves > largest {
            largest = leaves;
            e.first_is_largest = t == 0;
            e.probe = if t == 0 { 0.0 } else { rows_known(&state).max(leaves * FEW_ROWS) * PROBED };
        }
        if t > 0 {
            e.build += rows_known(&state) * BUILT;
        }
        if t == 0 && q.loops.scans {
            e.scan = leaves * LEAF * q.loops.width + reading(&bt, leaves) * q.loops.width;
            if spec.table.rows.get() == DEFAULT_ROWS && e.rest < f64::INFINITY {
                // Without ANALYZE the planner does not know.
                known = leaves * look_at_leaves(&store, &bt, &state, &[])?.0 / DEFAULT_ROWS;
                (e.rest, e.first) = (e.rest * known, e.first * known);
            }
        }
        let keys = early_columns(q, t);
        // Of a join, what is counted for its hash tables is more than that.
        if q.tables.len() == 1 {
            e.look += match q.loops.passes {
                // Even where they are not there yet: what the loop seeks may be less than looking at them ever takes.
                true => spec.table.rows.get() * if q.distinct.is_some() { ORDERED } else { EACH },
                false => rows_known(&state) * EACH,
            };
            e.look += mixed(q, &state) * MIXED;
            if q.distinct.is_some() && !q.in_order {
                e.look += rows_known(&state) * SORTED;
            }
        }
        e.decode += decoding(q, t, &keys, (&store, &bt, &state))?;
        e.decodes_again |= state.decodes_again(&keys);
    }
    for n in &q.nested {
        let (own, k) = estimate(&n.query, rt, params)?;
        keep &= k;
        e.decode += own.decode;
        if !n.keys.is_empty() {
            e.build += rows_of_all(&n.query, rt)? * NESTED;
        }
        let once = match n.kind {
            // The first row will do: a scan finds it halfway, if there is one.
            NestedKind::Exists => 0.5 * own.scan + own.rest.min(SEEK * n.query.tables.len() as f64),
            _ => own.scan + own.rest,
        };
        if n.keys.is_empty() {
            e.scan += once;
        } else {
            e.rest += once * q.loops.rounds * known;
        }
    }
    Ok((e, keep))
}

/// How many values of the only table are added up that lie in columns of values of any kind.
fn mixed(q: &Query, state: &TableState) -> f64 {
    let mut slots = vec![false; q.slots.len()];
    let sums = ["sum", "total", "avg"];
    let adds = |a: &&AggSpec| sums.contains(&&*a.function.name);
    q.aggs.iter().filter(adds).flat_map(|a| &a.args).for_each(|e| e.slots(&mut |s| slots[s] = true));
    let looked_at = q.slots.iter().zip(slots).filter(|(s, any)| *any && s.table == 0);
    let of = |key: ColKey| {
        let rows = |s: &Arc<Segment>| match lock(&s.chunks).get(&key).map(|c| &c.data) {
            Some(Data::Dict { .. } | Data::Plain(_)) => s.rows.get().map_or(0, |r| r.len()) as f64,
            _ => 0.0,
        };
        state.segments.iter().map(rows).sum::<f64>()
    };
    looked_at.map(|(s, _)| of(s.key())).sum()
}

/// The rows of a table in segments that were decoded.
fn rows_known(state: &TableState) -> f64 {
    state.segments.iter().filter_map(|s| s.rows.get()).map(|r| r.len()).sum::<usize>() as f64
}

/// About how many rows the largest table of a query has.
fn rows_of_all(q: &Query, rt: &dyn Runtime) -> Result<f64> {
    let mut most = 0.0f64;
    for spec in q.tables.iter().filter(|t| t.query.is_none()) {
        let state = rt.store(spec.db)?.table(&rt.btree(spec.db)?, spec.table.root.get())?;
        most = most.max(rows_known(&state).max(state.leaves() as f64 * FEW_ROWS));
    }
    Ok(most)
}

/// The columns of a table that are wanted for all of its rows.
fn early_columns(q: &Query, t: usize) -> Vec<ColKey> {
    let soon = q.slots.iter().zip(early(q)).filter(|s| s.1).map(|s| s.0);
    soon.chain(&q.order_slots).filter(|s| s.table == t).map(|s| s.key()).collect()
}

/// Nanoseconds for decoding so many columns of all leaves of a table, whatever their texts are.
fn decoding_at_least(bt: &Btree, state: &TableState, missing: usize) -> f64 {
    if missing == 0 {
        return 0.0;
    }
    state.leaves() as f64 * (DECODE.0 + DECODE.1 * missing as f64) + reading(bt, state.leaves() as f64)
}

/// Nanoseconds for reading those of so many leaves that cannot be in the cache.
fn reading(bt: &Btree, leaves: f64) -> f64 {
    let cached = bt.cache_bytes() as f64 / f64::from(bt.page_size());
    (leaves - cached).max(0.0) * READ
}

/// Nanoseconds for decoding those columns of a table that are not there.
fn decoding(q: &Query, t: usize, keys: &[ColKey], at: (&Store, &Btree, &TableState)) -> Result<f64> {
    let (store, bt, state) = at;
    let missing = state.missing(keys);
    if missing == 0 {
        return Ok(0.0);
    }
    let texts: Vec<ColKey> =
        own_texts(q, t).filter(|k| state.missing(&[*k]) > 0 && keys.contains(k)).collect();
    let (leaves, mut all) = (state.leaves() as f64, decoding_at_least(bt, state, missing));
    if !texts.is_empty() {
        let mut h = FastHasher::default();
        (q.tables[t].table.root.get(), &texts).hash(&mut h);
        let name = h.finish();
        all += match store.share(name, state.stamp) {
            Some(texts) => texts,
            None => {
                let some = state.some_leaves(SAMPLED_LEAVES);
                let beyond = decode::beyond(bt, &some, &texts)?;
                let time = if beyond > 0 {
                    // Rows read no more than they need, often the length alone, and what is decoded is not kept.
                    lock(&state.columns.loose).extend(texts.iter().copied());
                    leaves / some.len() as f64 * beyond as f64 * BEYOND
                } else {
                    let (rows, new) = look_at_leaves(store, bt, state, &texts)?;
                    leaves * rows * (texts.len() as f64 * DECODE_TEXT.0 + new * DECODE_TEXT.1)
                };
                store.note_share(name, state.stamp, time);
                time
            }
        };
    }
    if state.decodes_again(keys) {
        all += rows_known(state) * OVERFLOW;
    }
    Ok(all)
}

/// How many rows a leaf has, and in how many of some columns a row has a text that is new, by some of the leaves. Where as much as
/// a fifth of a sample's values has been met in it before, there are not many different ones.
fn look_at_leaves(store: &Store, bt: &Btree, state: &TableState, texts: &[ColKey]) -> Result<(f64, f64)> {
    let some = state.some_leaves(if texts.is_empty() { 1 } else { SAMPLED_LEAVES });
    let wanted: Vec<Wanted<'_>> =
        texts.iter().map(|key| Wanted { key: *key, default: Field::Null, ints: false }).collect();
    let mut dicts: Vec<Dict> = texts.iter().map(|_| Dict::default()).collect();
    let built = decode::build(bt, store.seed(), &some, &wanted, &mut dicts, 0, &mut Default::default())?;
    let rows = built.rows.len().max(1) as f64;
    let new = |(d, chunk): (&Dict, &Chunk)| {
        let there =
            (0..built.rows.len()).filter(|i| !matches!(chunk.field(*i, d), Field::Null)).count() as f64;
        let new = d.len() as f64 / there.max(1.0);
        new * (1.0 - 5.0 * (1.0 - new)).max(0.0) * there / rows
    };
    Ok((rows / some.len().max(1) as f64, dicts.iter().zip(&built.chunks).map(new).sum()))
}

/// The columns in use of a table that may hold texts, as they are declared.
fn own_texts(q: &Query, t: usize) -> impl Iterator<Item = ColKey> {
    let table = &q.tables[t].table;
    let is_text = move |field: Option<usize>| {
        let column = table.field_of.iter().position(|f| field.is_some() && *f == field);
        column.is_some_and(|c| !table.columns[c].affinity.is_numeric())
    };
    q.slots.iter().filter(move |s| s.table == t && is_text(s.field)).map(|s| s.key())
}

/// Whether a query that depends on nothing takes part.
fn has_query(q: &Query, e: &Ex) -> bool {
    let mut any = match e {
        Ex::InSet(_) => true,
        Ex::Nested(n) => q.nested[n.number].keys.is_empty(),
        _ => false,
    };
    e.children(&mut |e| any |= has_query(q, e));
    any
}

/// How many rows of the first table are likely to satisfy the conditions on it, by the rows of some leaves. `None`:
/// there is nothing to be tested.
fn sample_rows(q: &Query, conds: &[Cond], rt: &dyn Runtime, params: &[Value]) -> Result<Option<f64>> {
    let spec = &q.tables[0];
    if spec.query.is_some() {
        return Ok(None);
    }
    let (store, bt) = (rt.store(spec.db)?, rt.btree(spec.db)?);
    let state = store.table(&bt, spec.table.root.get())?;
    let leaves = state.leaves();
    let (conds, share) = of_first(q, conds, rt, params)?;
    if conds.is_empty() || spec.left || leaves < SAMPLED_LEAVES * 4 {
        return Ok(None);
    }
    let Some(passed) = passing(q, &conds, rt, (&store, &bt, &state))? else { return Ok(None) };
    let each = leaves as f64 / SAMPLED_LEAVES as f64;
    Ok(Some((passed as f64 + 0.5) * share * each))
}

/// The conditions on the first table alone that can be tested now, and what the others are guessed to let through.
fn of_first(q: &Query, conds: &[Cond], rt: &dyn Runtime, params: &[Value]) -> Result<(Vec<Ex>, f64)> {
    let eval = Eval::new(rt.host());
    let (mut out, mut share) = (Vec::new(), 1.0);
    for c in conds.iter().filter(|c| c.on.is_none() && tables_of(q, &c.ex) == 1) {
        if has_query(q, &c.ex) {
            share *= BY_QUERY;
        } else if !c.ex.is_correlated() {
            let mut ex = c.ex.clone();
            ex.bind(params, &[], &eval)?;
            out.push(ex);
        }
    }
    Ok((out, share))
}

/// How many rows of some leaves of the first table satisfy conditions. `None`: one is an error there; whether the statement meets it
/// is for the run to say.
fn passing(
    q: &Query,
    conds: &[Ex],
    rt: &dyn Runtime,
    (store, bt, state): (&Store, &Btree, &TableState),
) -> Result<Option<usize>> {
    let eval = Eval::new(rt.host());
    let some = state.some_leaves(SAMPLED_LEAVES);
    let mut of = vec![None; q.slots.len()];
    let mut wanted: Vec<Wanted<'_>> = Vec::new();
    for e in conds {
        e.slots(&mut |s| {
            if of[s].is_none() {
                of[s] = Some(wanted.len());
                wanted.push(Wanted::new(q.slots[s].key(), &q.slots[s].default));
            }
        });
    }
    let mut dicts: Vec<_> = wanted.iter().map(|_| Default::default()).collect();
    let built = decode::build(bt, store.seed(), &some, &wanted, &mut dicts, 0, &mut Default::default())?;
    let rows = built.rows.len();
    let cols = built.chunks.into_iter().map(Arc::new).collect();
    let dicts = dicts.into_iter().map(Arc::new).collect();
    let cols = Columns::new(Loaded { parts: vec![Part { start: 0, rows, cols, away: false }], dicts, rows });
    let mut passed = 0;
    'rows: for i in 0..rows {
        for e in conds {
            match eval.holds(e, &cols.row(&cols.loaded.parts[0], i, &of)) {
                Ok(true) => {}
                Ok(false) => continue 'rows,
                Err(e) if super::is_of_values(&e) => return Ok(None),
                Err(e) => return Err(e),
            }
        }
        passed += 1;
    }
    Ok(Some(passed))
}

/// Whether a small first table has no row for the loops around a query in FROM: they end before they store its rows.
fn begins_empty(q: &Query, rt: &dyn Runtime, params: &[Value]) -> Result<bool> {
    let [first, others @ ..] = &q.tables[..] else { return Ok(false) };
    if first.query.is_some() || first.left || !others.iter().any(|t| t.query.is_some()) {
        return Ok(false);
    }
    let (store, bt) = (rt.store(first.db)?, rt.btree(first.db)?);
    let state = store.table(&bt, first.table.root.get())?;
    if state.leaves() > SAMPLED_LEAVES {
        return Ok(false);
    }
    let (conds, _) = of_first(q, &q.conds, rt, params)?;
    Ok(passing(q, &conds, rt, (&store, &bt, &state))? == Some(0))
}

/// Whether so few rows of a join's first table satisfy the conditions on it that the loops are done before columns have been decoded and
/// the other tables brought into form.
fn begins_with_few(q: &Query, rt: &dyn Runtime, params: &[Value], name: u64, e: &Estimate) -> Result<bool> {
    // Where another table is the largest, the rows of this one are what is brought into form.
    let build = if e.first_is_largest { e.build * CODED } else { 0.0 };
    let costs = e.decode + build + e.look + e.probe;
    if q.tables.len() < 2 || q.tables[0].query.is_some() || costs < WORTH_LOOKING {
        return Ok(false);
    }
    // What is decoded is there for the next time, and has paid for itself once it was asked for again and again.
    let (store, named) = (rt.store(q.tables[0].db)?, name.rotate_left(17));
    let (is_new, is_rare) = (store.is_new(named), store.may_look(named));
    let share = match e.decodes_again {
        true => 1.0,
        false if is_new => 1.0,
        false if is_rare => 0.25,
        false => 0.0,
    };
    let columns = share * e.decode + build + e.look + e.probe + BEGUN;
    if e.scan >= columns {
        return Ok(false);
    }
    Ok(match first_rows(q, rt, params, name)? {
        None => false,
        Some(0.0) => true,
        Some(rows) => e.scan + e.rest * rows / e.first < columns,
    })
}

/// How many rows of a join's first table are likely to satisfy the conditions on it; of a small one, or where none lies within a range of
/// rowids, exactly.
fn first_rows(q: &Query, rt: &dyn Runtime, params: &[Value], name: u64) -> Result<Option<f64>> {
    let spec = &q.tables[0];
    if spec.left {
        return Ok(None);
    }
    let within = if q.loops.ranges { most_rows(q, rt, params)? } else { None };
    if within == Some(0.0) {
        return Ok(within);
    }
    let (store, bt) = (rt.store(spec.db)?, rt.btree(spec.db)?);
    let state = store.table(&bt, spec.table.root.get())?;
    let named = params.iter().fold(name, |h, v| h.rotate_left(7) ^ Field::of(v).hash());
    if let Some(rows) = store.share(named, state.stamp) {
        return Ok(Some(rows));
    }
    let (conds, share) = of_first(q, &q.conds, rt, params)?;
    if conds.is_empty() {
        return Ok(within);
    }
    let Some(passed) = passing(q, &conds, rt, (&store, &bt, &state))? else { return Ok(None) };
    let rows = match state.leaves() {
        ..=SAMPLED_LEAVES => passed as f64 * share,
        leaves => (passed as f64 + 0.5) * share * leaves as f64 / SAMPLED_LEAVES as f64,
    };
    let rows = within.map_or(rows, |n| rows.min(n));
    store.note_share(named, state.stamp, rows);
    Ok(Some(rows))
}

/// At most how many rows of the first table have a rowid within the bounds that the conditions set. `None`: any number.
fn most_rows(q: &Query, rt: &dyn Runtime, params: &[Value]) -> Result<Option<f64>> {
    let Some((least, most)) = bounds(q, rt, params)? else { return Ok(None) };
    if least.is_none() && most.is_none() {
        return Ok(None);
    }
    // Where a bound is missing the tree ends.
    let spec = &q.tables[0];
    let mut tree = rt.btree(spec.db)?.cursor(spec.table.root.get(), TreeKind::Table, false)?;
    let ends = |n: Option<i64>, found: bool, tree: &Cursor| n.or_else(|| found.then(|| tree.rowid()));
    let found = least.is_none() && tree.first()?;
    let least = ends(least, found, &tree);
    let found = most.is_none() && tree.last()?;
    let most = ends(most, found, &tree);
    Ok(least.zip(most).map(|(a, b)| between(a, b)))
}

/// Whether rows are sought by a set that a range of so few rowids gives that no table is worth being looked at.
fn sought_by_few(q: &Query, rt: &dyn Runtime, params: &[Value]) -> Result<bool> {
    let spec = &q.tables[0];
    if !q.by_keys || spec.query.is_some() {
        return Ok(false);
    }
    let leaves = rt.store(spec.db)?.table(&rt.btree(spec.db)?, spec.table.root.get())?.leaves() as f64;
    let scanned = leaves * SCANNED * q.slots.len().max(1) as f64 + BEGUN;
    for n in q.nested.iter().filter(|n| n.kind == NestedKind::Set) {
        if let Some(rows) = most_rows(&n.query, rt, params)?
            && rows * SEEK < scanned
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How many rowids lie between two, these included.
fn between(least: i64, most: i64) -> f64 {
    (most as f64 - least as f64 + 1.0).max(0.0)
}

/// Whether a range is so short that no table is worth being looked at for it. A table that no query has looked at has no columns, and
/// all its interior pages would be read: a range of an index that covers the query is walked at once, when it is new.
pub(crate) fn walks_few(q: &Query, rt: &dyn Runtime, params: &[Value], name: u64) -> Result<bool> {
    let [spec] = &q.tables[..] else { return Ok(false) };
    if spec.query.is_some() || !(q.loops.walks || q.loops.seeks) {
        return Ok(false);
    }
    let (store, root) = (rt.store(spec.db)?, spec.table.root.get());
    let known = store.was_large(root).is_some();
    if !q.loops.walks {
        let covered = q.loops.each == ENTRY && !q.loops.passes;
        return Ok(!known && covered && store.is_new(name.rotate_left(29)));
    }
    let Some((Some(least), Some(most))) = bounds(q, rt, params)? else { return Ok(false) };
    let walk = SEEK + between(least, most) * WALKED;
    if walk < BEGUN + FEW_LEAVES as f64 * SCANNED {
        return Ok(true);
    }
    if known {
        return Ok(false);
    }
    let mut tree = rt.btree(spec.db)?.cursor(root, TreeKind::Table, false)?;
    Ok(walk < tree.estimate_leaves()? as f64 * DECODE.0)
}

/// The bounds of a range without any.
const NO_ROWIDS: (Option<i64>, Option<i64>) = (Some(1), Some(0));

/// The bounds of a range of rowids that the first loop walks, where they are known. `None`: it walks none.
#[allow(clippy::type_complexity)]
fn bounds(q: &Query, rt: &dyn Runtime, params: &[Value]) -> Result<Option<(Option<i64>, Option<i64>)>> {
    if !q.loops.ranges || q.tables[0].query.is_some() {
        return Ok(None);
    }
    let eval = Eval::new(rt.host());
    let (mut least, mut most) = (None, None);
    for c in q.conds.iter().filter(|c| c.on.is_none()) {
        let Ex::Compare(c) = &c.ex else { continue };
        let lower = match c.op {
            CmpOp::Ge | CmpOp::Gt => true,
            CmpOp::Le | CmpOp::Lt => false,
            _ => continue,
        };
        let Ex::Slot(s) = c.lhs else { continue };
        if q.slots[s].table > 0 || q.slots[s].field.is_some() || c.rhs.is_correlated() {
            continue;
        }
        let mut bound = c.rhs.clone();
        bound.bind(params, &[], &eval)?;
        let Ex::Const(mut v) = bound else { continue };
        Affinity::Numeric.apply(&mut v)?;
        let n = match v {
            Value::Int(n) => n,
            // A row more or less does not matter.
            Value::Real(r) => r as i64,
            // Nothing is compared with NULL, and any text and blob is beyond all numbers.
            Value::Null => return Ok(Some(NO_ROWIDS)),
            Value::Text(..) | Value::Blob(..) if lower => return Ok(Some(NO_ROWIDS)),
            Value::Text(..) | Value::Blob(..) => continue,
        };
        match lower {
            true => least = least.max(Some(n)),
            false => most = Some(most.map_or(n, |m: i64| m.min(n))),
        }
    }
    Ok(Some((least, most)))
}

/// Whether rows that are sought by an index are better sought: unless a large share of the table is.
fn better_sought(q: &Query, rt: &dyn Runtime, params: &[Value], name: u64) -> Result<bool> {
    let spec = &q.tables[0];
    if spec.query.is_some() {
        // Its rows are made in any case.
        return Ok(false);
    }
    let store = rt.store(spec.db)?;
    let state = store.table(&rt.btree(spec.db)?, spec.table.root.get())?;
    if !state.keep {
        return Ok(true);
    }
    let named = params.iter().fold(name, |h, v| h.rotate_left(7) ^ Field::of(v).hash());
    let leaves = state.leaves() as f64;
    let rows = match store.share(named, state.stamp) {
        Some(rows) => rows,
        // A shape that wants few rows is not looked at for each of its parameters' values.
        None if !store.may_look(name) && store.is_new(named) => return Ok(true),
        None => {
            let rows = sample_rows(q, &q.conds[..q.sought], rt, params)?.unwrap_or(0.0);
            store.note_share(named, state.stamp, rows);
            rows
        }
    };
    let keys: Vec<ColKey> = q.slots.iter().chain(&q.order_slots).map(|s| s.key()).collect();
    // Asked again, what is decoded is there for the next time.
    let share = if store.is_new(named) || state.decodes_again(&keys) { 1.0 } else { 0.25 };
    let bt = rt.btree(spec.db)?;
    let read = if leaves > bt.cache_pages() as f64 { rows.min(leaves) * READ } else { 0.0 };
    let all = rows_known(&state);
    let look = all.max(leaves) * looked_at(q);
    if q.tables.len() > 1 {
        let (e, keep) = estimate(q, rt, params)?;
        let loops = q.loops.rest * rows / q.loops.first;
        let columns = share * e.decode + e.build + look;
        return Ok(!keep || loops + read < columns + rows * GROUPED + BEGUN);
    }
    let decode = share * decoding(q, 0, &keys, (&store, &bt, &state))?;
    Ok(SEEK + rows * q.loops.each + read < decode + look + rows * GROUPED + BEGUN)
}

/// Nanoseconds for a row of the first table whose columns are there: each column in use, and conditions on texts.
fn looked_at(q: &Query) -> f64 {
    let texts: Vec<ColKey> = own_texts(q, 0).collect();
    let on_text = |c: &&Cond| {
        let slot = c.ex.only_slot().map(|s| &q.slots[s]);
        slot.is_some_and(|s| s.table == 0 && texts.contains(&s.key()))
    };
    let columns = q.slots.iter().filter(|s| s.table == 0).count() + q.order_slots.len();
    columns as f64 * SCANNED_EACH + q.conds.iter().filter(on_text).count() as f64 * TESTED_TEXT
}

/// Whether all tables of an arm are small.
fn is_small(q: &Query, rt: &dyn Runtime) -> Result<bool> {
    let mut tables = Vec::new();
    q.each_table(&mut |t, _| tables.push((t.db, t.table.root.get())));
    for (db, root) in tables {
        if rt.store(db)?.is_large(&rt.btree(db)?, root)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether an arm gives all rows of a table as they are, in the order of an index by which columns would have to sort them.
fn sorts_all(arm: &Query) -> bool {
    let all = arm.conds.is_empty() && arm.grouping == Grouping::None && arm.distinct.is_none();
    all && arm.order.is_empty() && !arm.in_order && arm.loops.scans && arm.tables[0].query.is_none()
}

/// Nanoseconds of walking in rows until a query in FROM has as many as its LIMIT wants, where an arm gives rows of a table as they
/// come; and the share of the table's rows that pass.
fn walk_to_limit(
    from: &InFrom,
    arm: &Query,
    rt: &dyn Runtime,
    params: &[Value],
) -> Result<Option<(f64, f64)>> {
    let (Some(last), [spec]) = (from.last(params), &arm.tables[..]) else { return Ok(None) };
    let as_they_come = arm.grouping == Grouping::None && arm.distinct.is_none() && arm.order.is_empty();
    let each = match arm.loops.jumps {
        true => SEEK,
        false => WALKED,
    };
    if !as_they_come || !arm.loops.scans && !arm.loops.jumps || spec.query.is_some() {
        return Ok(None);
    }
    let mut share = 1.0;
    if !arm.conds.is_empty() {
        let state = rt.store(spec.db)?.table(&rt.btree(spec.db)?, spec.table.root.get())?;
        let rows = rows_known(&state).max(state.leaves() as f64 * FEW_ROWS);
        let Some(passing) = sample_rows(arm, &arm.conds, rt, params)? else { return Ok(None) };
        share = (passing / rows).clamp(1e-6, 1.0);
    }
    Ok(Some((last * each / share, share)))
}

/// Nanoseconds of sorting this share of the rows of an arm over one table, where they come out in another order than the table's.
fn sorting(arm: &Query, rt: &dyn Runtime, share: f64) -> Result<f64> {
    if arm.in_order {
        return Ok(0.0);
    }
    let spec = &arm.tables[0];
    let state = rt.store(spec.db)?.table(&rt.btree(spec.db)?, spec.table.root.get())?;
    Ok(share * rows_known(&state).max(state.leaves() as f64) * SORTED)
}

/// Nanoseconds for decoding the columns that only the result of an arm over one table reads.
fn decoding_late(arm: &Query, rt: &dyn Runtime) -> Result<f64> {
    let spec = &arm.tables[0];
    let (store, bt) = (rt.store(spec.db)?, rt.btree(spec.db)?);
    let state = store.table(&bt, spec.table.root.get())?;
    let early = early_columns(arm, 0);
    let late: Vec<ColKey> = arm.slots.iter().map(|s| s.key()).filter(|k| !early.contains(k)).collect();
    decoding(arm, 0, &late, (&store, &bt, &state))
}

/// Nanoseconds for decoding the columns that only the result reads of the only table, where so many rows are found that they are not
/// decoded one by one. `sampled`: how many rows satisfy the conditions, if that is known.
fn decoding_of_found(
    q: &Query,
    rt: &dyn Runtime,
    params: &[Value],
    wanted: i64,
    sampled: Option<f64>,
) -> Result<f64> {
    if q.tables.len() > 1 || q.tables[0].query.is_some() || !early(q).contains(&false) {
        return Ok(0.0);
    }
    let spec = &q.tables[0];
    let state = rt.store(spec.db)?.table(&rt.btree(spec.db)?, spec.table.root.get())?;
    let leaves = state.leaves() as f64;
    let most = if wanted < 0 { f64::INFINITY } else { wanted as f64 };
    if most * SPARSE as f64 <= leaves {
        return Ok(0.0);
    }
    let found = match sampled {
        Some(rows) => Some(rows),
        None => sample_rows(q, &q.conds, rt, params)?,
    };
    let found = found.unwrap_or(f64::INFINITY).min(most);
    // On so many leaves do they lie, if they lie anywhere.
    let on = leaves * (1.0 - (-found / leaves).exp());
    if on * SPARSE as f64 <= leaves { Ok(0.0) } else { decoding_late(q, rt) }
}

/// Whether loops that stop at a query's LIMIT are done before columns have been looked at: the first of its arms gives rows of a
/// table as they come.
fn stops_early(from: &InFrom, rt: &dyn Runtime, params: &[Value]) -> Result<bool> {
    let (arm, Some(last)) = (&from.arms[0], from.last(params)) else { return Ok(false) };
    let [spec] = &arm.tables[..] else { return Ok(false) };
    if let Some((walk, share)) = walk_to_limit(from, arm, rt, params)? {
        let bt = rt.btree(spec.db)?;
        let state = rt.store(spec.db)?.table(&bt, spec.table.root.get())?;
        let keys: Vec<ColKey> = arm.slots.iter().map(|s| s.key()).collect();
        // Looking at leaves for their texts may take longer than the walk does.
        if walk < decoding_at_least(&bt, &state, state.missing(&keys)) {
            return Ok(true);
        }
        let (e, _) = estimate(arm, rt, params)?;
        let made = last * arm.slots.len() as f64 * MADE;
        let sought = if arm.in_order { e.look.min(made) } else { e.look + sorting(arm, rt, share)? };
        return Ok(walk < e.decode + decoding_late(arm, rt)? + sought + made + BEGUN);
    }
    Ok(false)
}

/// Whether loops are likely to have found the few different rows that are wanted before columns have been looked at: they need not be
/// joined as a whole, sorted as the loops would bring them, or numbered.
fn finds_few_soon(q: &Query, rt: &dyn Runtime, wanted: i64, name: u64) -> Result<bool> {
    // The rows of a query in FROM are there before the first of them is asked for.
    let made = q.tables[0].query.is_some();
    let whole = q.tables.len() > 1 || !q.in_order || q.conds.is_empty() || made;
    if q.distinct.is_none() || !q.limited || !q.order.is_empty() || !whole {
        return Ok(false);
    }
    let mut db = None;
    q.each_table(&mut |t, _| db = db.or(Some(t.db)));
    let Some(db) = db.filter(|_| q.in_order) else { return Ok(!q.in_order) };
    if rt.store(db)?.is_new(name) {
        return Ok(true);
    }
    for e in &q.result {
        if has_many(q, e, rt, MANY_OF * wanted.max(1))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a result is a column that is known to have so many different values, in one of its arms if it is that of a query.
fn has_many(q: &Query, e: &Ex, rt: &dyn Runtime, most: i64) -> Result<bool> {
    let Ex::Slot(slot) = e else { return Ok(false) };
    let (spec, key) = (&q.tables[q.slots[*slot].table], q.slots[*slot].key());
    if let Some(from) = &spec.query {
        for arm in &from.arms {
            let e = q.slots[*slot].field.and_then(|k| arm.result.get(k));
            if let Some(e) = e
                && has_many(arm, e, rt, most)?
            {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    let state = rt.store(spec.db)?.table(&rt.btree(spec.db)?, spec.table.root.get())?;
    let Some(first) = state.segments.first() else { return Ok(false) };
    let entries = lock(&state.columns.dicts).get(&key).map(|d| d.len() as i64).filter(|n| *n > 0);
    Ok(match (entries, lock(&first.chunks).get(&key)) {
        (Some(n), _) => n >= most,
        (None, Some(c)) => matches!(c.data, Data::Real { .. }) || c.max.saturating_sub(c.min) >= most,
        (None, None) => false,
    })
}

/// Whether the arm, named `name`, of which so many rows are wanted (all, if negative), is to be left to rows this time.
pub(crate) fn better_in_rows(
    q: &Query,
    rt: &dyn Runtime,
    params: &[Value],
    wanted: i64,
    name: u64,
) -> Result<bool> {
    if q.loops.streams && q.limited && q.order.is_empty() || finds_few_soon(q, rt, wanted, name)? {
        return Ok(true);
    }
    if let [table] = &q.tables[..]
        && let Some(from) = &table.query
    {
        if stops_early(from, rt, params)? {
            return Ok(true);
        }
        // What is done with its rows takes no longer than in rows. An arm that reads little is no reason against the others.
        let mut large = false;
        // All that is done with rows that have to be sorted is to add them up.
        let adds = q.grouping == Grouping::All && from.limit.is_none();
        for arm in &from.arms {
            let rows = better_in_rows(arm, rt, params, -1, name)? || adds && sorts_all(arm);
            let little = rows && from.arms.len() > 1 && is_small(arm, rt)?;
            if rows && !little {
                return Ok(true);
            }
            large |= !little;
        }
        return Ok(!large);
    }
    if sought_by_few(q, rt, params)? {
        return Ok(true);
    }
    if q.loops.seeks && !q.loops.passes {
        return better_sought(q, rt, params, name);
    }
    if begins_empty(q, rt, params)? {
        return Ok(true);
    }
    let mut walked = None;
    if q.loops.walks
        && let Some(n) = most_rows(q, rt, params)?
    {
        let spec = &q.tables[0];
        let bt = rt.btree(spec.db)?;
        let state = rt.store(spec.db)?.table(&bt, spec.table.root.get())?;
        let leaves = state.leaves() as f64;
        let scanned = leaves * SCANNED * q.slots.len().max(1) as f64;
        let walk = SEEK + n * WALKED;
        // Looking at leaves for their texts may take longer than the range does.
        if walk < decoding_at_least(&bt, &state, state.missing(&early_columns(q, 0))) + scanned {
            return Ok(true);
        }
        walked = Some((walk, scanned));
    }
    let (mut e, keep) = estimate(q, rt, params)?;
    if q.tables.len() > 1
        && e.rest < f64::INFINITY
        && let Some(n) = most_rows(q, rt, params)?.filter(|n| *n < e.first)
    {
        (e.rest, e.first) = (e.rest * n / e.first, n);
    }
    if walked.is_some_and(|(walk, scanned)| walk < e.decode + scanned) {
        return Ok(true);
    }
    if e.scan + e.rest < e.build + e.look + BEGUN || begins_with_few(q, rt, params, name, &e)? {
        return Ok(true);
    }
    let mut sampled = None;
    let mut limit = e.decode;
    if e.scan < limit && e.scan + e.rest >= limit && e.rest < f64::INFINITY && q.loops.scans {
        sampled = sample_rows(q, &q.conds, rt, params)?;
        if let Some(rows) = sampled {
            e.rest *= rows / e.first;
        }
    }
    if q.loops.scans && e.scan + e.rest >= limit {
        limit += decoding_of_found(q, rt, params, wanted, sampled)?;
    }
    let loops = e.scan + e.rest;
    // Within a write transaction columns are decoded for this once, and those with values on overflow pages always are.
    if !keep || e.decodes_again {
        return Ok(loops < limit);
    }
    if loops >= SURE * limit {
        return Ok(false);
    }
    let mut least = f64::INFINITY;
    charge(q, rt, loops, &mut least)?;
    Ok(least < PATIENCE * limit)
}

/// Charges each column that an arm wants and that is not there with the nanoseconds that rows take instead. `least`: of the
/// columns' accounts before, the least one.
fn charge(q: &Query, rt: &dyn Runtime, loops: f64, least: &mut f64) -> Result<()> {
    for (t, spec) in q.tables.iter().enumerate() {
        if let Some(from) = &spec.query {
            from.arms.iter().try_for_each(|arm| charge(arm, rt, loops, least))?;
            continue;
        }
        let (store, root) = (rt.store(spec.db)?, spec.table.root.get());
        let state = store.table(&rt.btree(spec.db)?, root)?;
        let missing = |mut keys: Vec<ColKey>| {
            keys.sort_unstable();
            keys.dedup();
            keys.retain(|k| state.missing(&[*k]) > 0);
            keys
        };
        let mut keys = missing(early_columns(q, t));
        if keys.is_empty() {
            keys = missing(q.slots.iter().filter(|s| s.table == t).map(|s| s.key()).collect());
        }
        for key in keys {
            *least = least.min(store.charged(root, key, loops));
        }
    }
    q.nested.iter().try_for_each(|n| charge(&n.query, rt, loops, least))
}
