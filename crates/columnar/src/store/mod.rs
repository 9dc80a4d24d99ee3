//! The column cache: segments of tables, and the proof that they still say what the pages say.
//!
//! A [`TableState`] is one table at one state of the database, named by a [`Mark`]. It lists the table's leaves in key
//! order, cut into segments; a segment's chunks are filled as queries ask for columns. To bring a table to another
//! state, the pages that differ between the two are asked of the pager (a write-ahead log knows them); where that
//! cannot be told, every leaf is hashed again. Interior pages count as pages of the table: leaves are found from the
//! root down, never trusted by themselves.
//!
//! What always holds: a chunk in a segment is a pure function of the images of the segment's leaves at the state's
//! mark; a segment is never changed once another state may share it, only filled; nothing is kept of a state that has
//! no mark (a log that is being read privately, a table that the present write transaction has changed).
//!
//! A store belongs to all connections of the process to one file. It goes with the last of them, so that a file that
//! was deleted and made anew is never mistaken for the old one.

pub(crate) mod chunk;
pub(crate) mod decode;
mod decode_threads;
mod fill;
mod history;
mod make_room;
pub(crate) mod persist;
mod sidecar;
mod table;
mod usage;

pub(crate) use decode_threads::LoadRequest;
pub(crate) use table::{Columns, Loaded, Part, Segment, TableState};
pub(crate) use usage::NOW;

use crate::decline::DECLINED;
use crate::kernel::three;
use crate::memory::{USED, budget, fits, loose};
use crate::store::chunk::{Chunk, Codes, Data, Dict};
use crate::store::decode::{ColKey, Rows, Spare, Wanted};
use crate::store::persist::Persist;
use crate::store::sidecar::{Extent, SideFile};
use iolite_base::hash::{FastMap, FastSet};
use iolite_base::{Code, Error, Pgno, Result, alloc, be};
use iolite_btree::pages::{TABLE_INTERIOR, TABLE_LEAF};
use iolite_btree::{Btree, Mark};
use iolite_os::PerProcess;
use iolite_value::Value;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use usage::Use;

/// Leaves in a segment: some 60,000 rows of a fact table, which are decoded in three milliseconds. Measured with 512 and
/// 2,048: warm scans take 8 % more, 8 % less; where rows came or went, a segment is decoded as a whole.
static SEGMENT_LEAVES: AtomicUsize = AtomicUsize::new(1024);

/// Sets how many leaves a segment has from now on, in all stores of the process: tests want small ones.
pub fn set_segment_leaves(n: usize) {
    SEGMENT_LEAVES.store(n.clamp(1, 4096), Relaxed);
}

/// Tables of fewer leaves are left to programs.
pub(crate) const FEW_LEAVES: usize = 64;

/// To look through so many changed pages of a transaction takes half as long as to scan a leaf in rows.
const CHANGED_A_LEAF: usize = 150;

/// Deeper trees are taken for damaged.
const MAX_DEPTH: usize = 20;

/// Counters for tests and statistics.
#[derive(Default, Debug)]
pub struct Counters {
    /// Segments whose pages were decoded.
    pub decoded: AtomicU64,
    /// Segments brought up to date leaf by leaf.
    pub patched: AtomicU64,
    /// Leaves that were hashed to find out whether they changed.
    pub hashed: AtomicU64,
    /// Segments for which a column of an inner table was derived.
    pub derived: AtomicU64,
    /// Tables taken from the sidecar.
    pub adopted: AtomicU64,
    /// Chunks read from the sidecar.
    pub loaded: AtomicU64,
    /// Blocks of the sidecar that were not what they ought to be.
    pub rejected: AtomicU64,
    /// Sidecars written.
    pub published: AtomicU64,
    /// Columns all or some segments of which made room for others.
    pub evicted: AtomicU64,
}

impl Counters {
    /// Segments decoded, segments patched, leaves hashed, chunks from the sidecar.
    pub(crate) fn of_loading(&self) -> [u64; 4] {
        [&self.decoded, &self.patched, &self.hashed, &self.loaded].map(|c| c.load(Relaxed))
    }
}

pub(crate) fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A column of an inner table as seen from the rows of an outer one: the outer table's key column, the inner table's
/// key column, and the column itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct DerivedKey {
    pub outer: ColKey,
    pub root: Pgno,
    pub key: ColKey,
    pub column: ColKey,
}

/// Columns of one file. See the module's head.
pub struct Store {
    pub(crate) tables: Mutex<FastMap<Pgno, Arc<TableState>>>,
    /// How often derived columns were wanted of which state of the inner table.
    wanted: Mutex<HashMap<DerivedKey, (u64, u32)>>,
    /// Queries that were left to rows once.
    seen: Mutex<FastSet<u64>>,
    /// What rows have taken so far for queries that wanted a column, by the table's root.
    charged: Mutex<FastMap<(Pgno, ColKey), f64>>,
    /// Queries that were declined when they ran, at which state of their first table, and why.
    refused: Mutex<FastMap<u64, (u64, String)>>,
    /// How often, by reason.
    refusals: Mutex<BTreeMap<String, u64>>,
    /// How often leaves were looked at for queries of one shape.
    looked: Mutex<FastMap<u64, u32>>,
    /// The share of a table's rows that a query with its parameters was found to want.
    shares: Mutex<FastMap<u64, (u64, f64)>>,
    /// The key of all hashes.
    seed: OnceLock<u64>,
    pub(crate) persist: Persist,
    /// What happened here.
    pub counters: Counters,
}

/// The stores of open files, by device and inode.
type ByFile = HashMap<(u64, u64), Weak<Store>>;

pub(crate) fn next_stamp() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Relaxed) + 1
}

fn corrupt() -> Error {
    Code::Corrupt.into()
}

impl Store {
    fn new(persist: Persist) -> Store {
        Store {
            tables: Mutex::default(),
            wanted: Mutex::default(),
            seen: Mutex::default(),
            charged: Mutex::default(),
            refused: Mutex::default(),
            refusals: Mutex::default(),
            shares: Mutex::default(),
            looked: Mutex::default(),
            seed: OnceLock::new(),
            persist,
            counters: Counters::default(),
        }
    }

    /// The key of all hashes: that of the sidecar, if there is one.
    pub(crate) fn seed(&self) -> u64 {
        let random = || std::collections::hash_map::RandomState::new().build_hasher().finish();
        *self.seed.get_or_init(|| self.persist.look().unwrap_or_else(random))
    }

    /// The store of a database: that of its file, which other connections may have already.
    pub fn of(bt: &Btree) -> Arc<Store> {
        static ALL: PerProcess<Mutex<ByFile>> = PerProcess::new();
        let Some(id) = bt.identity() else { return Arc::new(Store::new(Persist::default())) };
        let mut all = lock(ALL.get());
        if let Some(s) = all.get(&id).and_then(Weak::upgrade) {
            return s;
        }
        all.retain(|_, w| w.strong_count() > 0);
        let s = Arc::new(Store::new(Persist::new(bt.place())));
        all.insert(id, Arc::downgrade(&s));
        s
    }

    /// Lets all segments go.
    pub fn clear(&self) {
        lock(&self.tables).clear();
    }

    /// Whether a table is large enough for columns to pay. To be asked within a read transaction. In one that writes, what was
    /// known before it is near enough, and a table is not worth more than the proof that it has not changed.
    pub fn is_large(&self, bt: &Btree, root: Pgno) -> Result<bool> {
        if bt.mark().is_none()
            && let Some(leaves) = lock(&self.tables).get(&root).map(|t| t.leaves())
        {
            return Ok(leaves >= FEW_LEAVES && bt.changed_pages() / CHANGED_A_LEAF <= leaves);
        }
        Ok(self.table(bt, root)?.leaves() >= FEW_LEAVES)
    }

    /// Whether a table was when it was last looked at, if it was.
    pub fn was_large(&self, root: Pgno) -> Option<bool> {
        lock(&self.tables).get(&root).map(|t| t.leaves() >= FEW_LEAVES)
    }

    /// A table as the present transaction sees it.
    pub(crate) fn table(&self, bt: &Btree, root: Pgno) -> Result<Arc<TableState>> {
        let mark = bt.mark();
        let page_size = bt.page_size();
        self.seed();
        let cached = match mark {
            Some(_) => lock(&self.tables).get(&root).filter(|t| t.page_size == page_size).cloned(),
            None => None,
        };
        if mark.is_none()
            && let Some(state) = self.table_before(bt, root)?
        {
            return Ok(state);
        }
        let state = match (&mark, cached) {
            (Some(m), Some(c)) if c.mark.as_ref() == Some(m) => return Ok(c),
            (Some(_), Some(c)) => {
                let then = c.mark.as_ref().ok_or(Code::Internal)?;
                let changed = bt.changed_since(then)?;
                self.follow(bt, root, mark, &c, changed)?
            }
            _ => {
                if mark.is_some()
                    && let Some(state) = self.adopt(bt, root, mark)?
                {
                    let state = Arc::new(state);
                    lock(&self.tables).insert(root, state.clone());
                    return Ok(state);
                }
                let (interior, leaves) = walk(bt, root)?;
                let per_segment = SEGMENT_LEAVES.load(Relaxed);
                let segments = leaves.chunks(per_segment).map(Segment::new).collect();
                TableState {
                    mark,
                    page_size,
                    interior,
                    segments,
                    columns: Arc::default(),
                    keep: mark.is_some(),
                    stamp: next_stamp(),
                    ascending: Mutex::default(),
                }
            }
        };
        let state = Arc::new(state);
        if let Some(m) = mark {
            self.keep_table(root, &state, &m);
        }
        Ok(state)
    }

    /// A table within a write transaction that has not changed it: as it was when the transaction began. No page of it
    /// is among those that were changed since, and so all of them are what they were; what is found from the root down
    /// is what was there.
    fn table_before(&self, bt: &Btree, root: Pgno) -> Result<Option<Arc<TableState>>> {
        let page_size = bt.page_size();
        let cached = lock(&self.tables).get(&root).filter(|t| t.page_size == page_size).cloned();
        let Some(old) = cached else { return Ok(None) };
        let Some((mark, changed)) = bt.began_from() else { return Ok(None) };
        let own: FastSet<Pgno> = changed.into_iter().collect();
        let clean = |t: &TableState| {
            let leaves = t.segments.iter().flat_map(|s| &s.leaves);
            own.is_empty() || leaves.chain(&t.interior).chain([&root]).all(|p| !own.contains(p))
        };
        let then = old.mark.as_ref().ok_or(Code::Internal)?;
        if *then == mark {
            return Ok(Some(old).filter(|t| clean(t)));
        }
        let changed = bt.changed_since(then)?;
        if changed.is_none() || own.contains(&root) {
            return Ok(None);
        }
        let state = Arc::new(self.follow(bt, root, Some(mark), &old, changed)?);
        if !clean(&state) {
            return Ok(None);
        }
        self.keep_table(root, &state, &mark);
        Ok(Some(state))
    }

    /// Keeps a table's state. Readers of older snapshots do not take from the others what they have.
    fn keep_table(&self, root: Pgno, state: &Arc<TableState>, mark: &Mark) {
        let mut tables = lock(&self.tables);
        let older = tables.get(&root).is_some_and(|t| match (&t.mark, mark) {
            (Some(Mark::Log(have)), Mark::Log(now)) => have.salt == now.salt && have.last > now.last,
            _ => false,
        });
        if !older {
            tables.insert(root, state.clone());
        }
    }

    /// A table from the sidecar, brought to the present state.
    fn adopt(&self, bt: &Btree, root: Pgno, mark: Option<Mark>) -> Result<Option<TableState>> {
        let Some((old, changed)) = self.stored_table(bt, root)? else { return Ok(None) };
        match self.follow(bt, root, mark, &old, changed) {
            Ok(state) => Ok(Some(state)),
            Err(e) if matches!(e.code().primary(), Code::Interrupt | Code::Nomem) => Err(e),
            // Pages are asked again, without what the sidecar says.
            Err(e) => {
                self.persist.distrust(&e.to_string());
                Ok(None)
            }
        }
    }

    /// Brings a table from one state to another; `changed`: the pages that differ, if that is known.
    fn follow(
        &self,
        bt: &Btree,
        root: Pgno,
        mark: Option<Mark>,
        old: &TableState,
        changed: Option<Vec<Pgno>>,
    ) -> Result<TableState> {
        let changed: Option<FastSet<Pgno>> = changed.map(|p| p.into_iter().collect());
        let same_shape = changed
            .as_ref()
            .is_some_and(|c| !c.contains(&root) && old.interior.iter().all(|p| !c.contains(p)));
        let (interior, leaves) = if same_shape {
            (old.interior.clone(), old.segments.iter().flat_map(|s| s.leaves.iter().copied()).collect())
        } else {
            walk(bt, root)?
        };
        let by_first: FastMap<Pgno, &Arc<Segment>> =
            old.segments.iter().filter_map(|s| s.leaves.first().map(|l| (*l, s))).collect();
        let mut segments = Vec::new();
        let per_segment = SEGMENT_LEAVES.load(Relaxed);
        let mut i = 0;
        let mut loose = 0;
        while i < leaves.len() {
            let kept = by_first.get(&leaves[i]).filter(|s| leaves[i..].starts_with(&s.leaves));
            let Some(s) = kept else {
                i += 1;
                continue;
            };
            segments.extend(leaves[loose..i].chunks(per_segment).map(Segment::new));
            segments.push(self.segment_now(bt, s, changed.as_ref())?);
            i += s.leaves.len();
            loose = i;
        }
        segments.extend(leaves[loose..].chunks(per_segment).map(Segment::new));
        let same = segments.len() == old.segments.len()
            && segments.iter().zip(&old.segments).all(|(a, b)| Arc::ptr_eq(a, b));
        Ok(TableState {
            stamp: if same { old.stamp } else { next_stamp() },
            ascending: Mutex::new(if same { lock(&old.ascending).clone() } else { Vec::new() }),
            mark,
            page_size: old.page_size,
            interior,
            segments,
            columns: old.columns.clone(),
            keep: true,
        })
    }

    /// A segment whose leaves are the same pages still.
    fn segment_now(
        &self,
        bt: &Btree,
        s: &Arc<Segment>,
        changed: Option<&FastSet<Pgno>>,
    ) -> Result<Arc<Segment>> {
        if s.rows.get().is_none() {
            // Nothing was built of it; what it would patch has to be looked at again.
            let former = lock(&s.former).take();
            return match (former, changed) {
                (Some((f, mut stale)), Some(c)) => {
                    stale.extend((0..s.leaves.len()).filter(|i| c.contains(&s.leaves[*i])));
                    crate::sort::few(&mut stale, |a, b| a > b);
                    stale.dedup();
                    Ok(Segment::after(&f, stale))
                }
                (Some((f, _)), None) if f.rows.get().is_some() => self.segment_now(bt, &f, None),
                _ => Ok(Segment::new(&s.leaves)),
            };
        }
        let stale = match changed {
            Some(c) => (0..s.leaves.len()).filter(|i| c.contains(&s.leaves[*i])).collect(),
            None => self.stale_by_hash(bt, s)?,
        };
        if stale.is_empty() {
            return Ok(s.clone());
        }
        lock(&s.former).take();
        Ok(Segment::after(s, stale))
    }

    /// Which leaves of a segment are not what they were.
    fn stale_by_hash(&self, bt: &Btree, s: &Segment) -> Result<Vec<usize>> {
        let mut stale = Vec::new();
        let rows = s.rows.get().ok_or(Code::Internal)?;
        self.counters.hashed.fetch_add(s.leaves.len() as u64, Relaxed);
        let seed = self.seed();
        decode::each_leaf(bt, &s.leaves, &mut |i, _, page| {
            if decode::hash_page(seed, page) != rows.hashes[i] {
                stale.push(i);
            }
            Ok(())
        })?;
        Ok(stale)
    }

    /// Takes a chunk of a segment from the sidecar, if it is there.
    fn recall(
        &self,
        s: &Segment,
        columns: &Columns,
        all: &HashMap<ColKey, Arc<Dict>>,
        key: &ColKey,
    ) -> Option<Arc<Chunk>> {
        let (side, e) = lock(&s.stored).get(key).cloned()?;
        if lock(&columns.bad).contains(key) {
            return None;
        }
        let rows = s.rows.get()?.len();
        let entries = all.get(key).map_or(0, |d| d.len());
        let Some(c) = side.read(&e).and_then(|b| Chunk::read(&b, rows, entries)) else {
            self.counters.rejected.fetch_add(1, Relaxed);
            lock(&s.stored).remove(key);
            return None;
        };
        self.counters.loaded.fetch_add(1, Relaxed);
        let c = Arc::new(c);
        let bytes = c.bytes();
        if fits(bytes) && lock(&s.chunks).insert(*key, c.clone()).is_none() {
            USED.fetch_add(bytes, Relaxed);
        }
        Some(c)
    }

    /// Reads columns of a table; what was used since a moment stays. Where they have no room and `stream` allows it, some
    /// segments' columns stay away. `check` is asked now and then whether to stop.
    pub(crate) fn load(
        &self,
        bt: &Btree,
        t: &TableState,
        wanted: &[(ColKey, &Value)],
        since: u64,
        stream: bool,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Loaded> {
        let mut parts = Vec::with_capacity(t.segments.len());
        let mut start = 0;
        let stream = stream && t.keep;
        self.note_use(t, wanted.iter().map(|w| w.0), since);
        self.make_room(since, budget());
        // What a segment is likely to take.
        let mut need = budget() / 8;
        let (mut held, mut spare) = (0, Spare::default());
        let mut own: Vec<Dict> = wanted.iter().map(|_| Dict::default()).collect();
        for s in &t.segments {
            let mut away = false;
            let cols = match s.chunks_of(wanted) {
                Some(c) => c,
                None => {
                    check()?;
                    self.make_room(since, budget().saturating_sub(need));
                    let shapes = if stream { s.shapes_of(wanted) } else { None };
                    match shapes.filter(|(_, bytes)| held + bytes > loose() || !fits(*bytes)) {
                        Some((cols, _)) => {
                            away = true;
                            cols
                        }
                        None => {
                            let mut cols = self.fill(bt, t, s, wanted, &mut own, &mut spare)?;
                            need = cols.iter().map(|c| c.bytes()).sum::<usize>() / 4 * 5;
                            // What is not kept is held until the query ends; too much of it goes again, or is not for
                            // columns.
                            let kept = lock(&s.chunks);
                            let loose_ones = |i: &usize| !kept.contains_key(&wanted[*i].0);
                            let all: Vec<usize> = (0..wanted.len()).filter(loose_ones).collect();
                            drop(kept);
                            held += all.iter().map(|i| cols[*i].bytes()).sum::<usize>();
                            if held > loose() {
                                if !stream {
                                    return Err(DECLINED.into());
                                }
                                away = true;
                                for i in all {
                                    held -= cols[i].bytes();
                                    cols[i] = Arc::new(cols[i].away()?);
                                }
                            }
                            cols
                        }
                    }
                }
            };
            let rows = s.rows.get().map_or(0, Rows::len);
            parts.push(Part { start, rows, cols, away });
            start += rows;
        }
        let dicts = if t.keep {
            let all = lock(&t.columns.dicts);
            wanted.iter().map(|(k, _)| all.get(k).cloned().unwrap_or_default()).collect()
        } else {
            own.into_iter().map(Arc::new).collect()
        };
        Ok(Loaded { parts, dicts, rows: start })
    }

    /// Brings a segment's columns, some of which stayed away when `loaded` was made. Declined, if they would not be what
    /// was known of them then: another query may have built them as entries of a dictionary that has grown since.
    pub(crate) fn fetch(
        &self,
        bt: &Btree,
        t: &TableState,
        segment: usize,
        wanted: &[(ColKey, &Value)],
        loaded: &Loaded,
    ) -> Result<Vec<Arc<Chunk>>> {
        let s = t.segments.get(segment).ok_or(Code::Internal)?;
        let cols = match s.chunks_of(wanted) {
            Some(c) => c,
            None => self.fill(bt, t, s, wanted, &mut [], &mut Spare::default())?,
        };
        let known = &loaded.parts[segment].cols;
        let mut all = cols.iter().zip(known).zip(&loaded.dicts);
        if all.all(|((c, k), d)| c.shape() == k.shape() && c.is_of(d)) {
            Ok(cols)
        } else {
            Err(DECLINED.into())
        }
    }

    /// Keeps a derived column of a segment.
    pub(crate) fn keep_derived(&self, s: &Segment, key: DerivedKey, stamp: u64, c: &Arc<Chunk>) {
        self.counters.derived.fetch_add(1, Relaxed);
        USED.fetch_add(c.bytes(), Relaxed);
        if let Some((_, old)) = lock(&s.derived).insert(key, (stamp, c.clone())) {
            USED.fetch_sub(old.bytes(), Relaxed);
        }
    }

    /// The number of NULL in a column's dictionary, and the dictionary with it; `None` if the column has NULLs of its
    /// own.
    pub(crate) fn null_code(&self, t: &TableState, key: &ColKey) -> Result<Option<(u32, Arc<Dict>)>> {
        let mut all = lock(&t.columns.dicts);
        let Some(d) = all.get_mut(key) else { return Ok(None) };
        if let Some(code) = d.added_null() {
            return Ok(Some((code, d.clone())));
        }
        let code = Arc::make_mut(d).add_null()?;
        Ok(code.map(|c| (c, d.clone())))
    }
}

/// The interior pages and the leaves of a table's tree, in key order.
fn walk(bt: &Btree, root: Pgno) -> Result<(Vec<Pgno>, Vec<Pgno>)> {
    let (mut interior, mut leaves) = (Vec::new(), Vec::new());
    let most = bt.page_count() as usize;
    if most == 0 {
        // Its schema has no rows, and no page that says so.
        return Ok((interior, leaves));
    }
    let usable = bt.layout().usable as usize;
    // Pages still to visit, with their depth; the next one last.
    let mut open = vec![(root, 0)];
    // Above leaves, all children are leaves: they need not be read to know.
    let mut leaf_depth = None;
    while let Some((pgno, depth)) = open.pop() {
        if leaf_depth == Some(depth) {
            leaves.push(pgno);
            continue;
        }
        if depth > MAX_DEPTH || leaves.len() + interior.len() > most {
            return Err(corrupt());
        }
        let page = bt.raw_page(pgno)?;
        let hdr = if pgno == 1 { 100 } else { 0 };
        match page[hdr] {
            TABLE_LEAF => {
                leaf_depth = Some(depth);
                leaves.push(pgno);
            }
            TABLE_INTERIOR => {
                interior.push(pgno);
                let n = be::get_u16(&page, hdr + 3) as usize;
                if hdr + 12 + 2 * n > usable {
                    return Err(corrupt());
                }
                let last = be::get_u32(&page, hdr + 8);
                let cells = &page[hdr + 12..hdr + 12 + 2 * n];
                let child = |cell: &[u8]| {
                    let at = be::get_u16(cell, 0) as usize;
                    page.get(at..at + 4).map(|c| be::get_u32(c, 0)).ok_or_else(corrupt)
                };
                if leaf_depth == Some(depth + 1) {
                    alloc::reserve(&mut leaves, n + 1)?;
                    for cell in cells.chunks_exact(2) {
                        leaves.push(child(cell)?);
                    }
                    leaves.push(last);
                    continue;
                }
                open.push((last, depth + 1));
                for cell in cells.chunks_exact(2).rev() {
                    open.push((child(cell)?, depth + 1));
                }
            }
            _ => return Err(corrupt()),
        }
    }
    if leaves.len() > most {
        return Err(corrupt());
    }
    Ok((interior, leaves))
}
