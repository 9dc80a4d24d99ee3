//! Columns that outlive the process: when the sidecar is looked for, what is taken from it, when it is written.
//!
//! Nothing of this happens unless a sidecar is there; `PRAGMA column_cache = persist` makes one. It is looked for once,
//! when the first table is wanted. A table that no query of the process has touched yet is taken from it with its
//! leaves, their hashes and the places of its chunks; what changed since is found out as between any two states, and
//! chunks are read when a query wants them. A chunk that does not agree with its hash is built from pages.
//!
//! It is written when the last connection of the process closes, if there is something new, and beside long-lived
//! connections by a thread of its own, when what was built amounts to half of what is stored. What is written was
//! collected before: references to chunks, no pages; a commit never waits for it. Tables of the present file that this
//! process did not touch are carried over. An error on the way (a full disk, a directory that cannot be written) ends
//! persistence for this process, leaves a note, and is no query's error.
//!
//! The state that is written is the one that the last connection read, under a mark. When a log is folded into the file
//! at its close, the pager tells the state's name in the file alone ([`Closing`]): the edge from the log's last frame
//! to the file. What changes between the two moments is seen: the log's last state is compared.
//!
//! Lock order: `worker`, then `tables`, then a table's dictionaries, then a segment's own maps; `state` is held alone.

use crate::store::chunk::{Chunk, Dict};
use crate::store::decode::ColKey;
use crate::store::sidecar::{self, Extent, Found, SideFile, StoredSegment, StoredTable, Writer, side_path};
use crate::store::{Columns, Segment, Store, TableState, lock, next_stamp};
use iolite_base::{Code, Pgno, Result};
use iolite_btree::{Base, Btree, LogMark, Mark};
use iolite_os::Vfs;
use iolite_os::background::without_signals;
use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// New chunks of fewer bytes are not worth a file while the connection lives.
const FEW_BYTES: usize = 4 << 20;

/// What a store knows of its sidecar.
#[derive(Default)]
pub(crate) struct Persist {
    place: Option<(Arc<dyn Vfs>, PathBuf)>,
    state: Mutex<State>,
    /// Bytes of chunks that were built and are in no file.
    unsaved: AtomicUsize,
    /// Bytes of chunks in the file.
    saved: AtomicUsize,
    /// The file names a state that had to be verified: writing it anew saves the next process that.
    outdated: AtomicBool,
    /// `PRAGMA column_cache_trust = hash`: what the operating system says of a file is not believed.
    pub hash_only: AtomicBool,
    worker: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct State {
    looked: bool,
    on: bool,
    side: Option<Arc<SideFile>>,
    note: Option<String>,
}

/// A block of a file, or what would be written there.
enum Source<T> {
    Memory(Arc<T>),
    File(Arc<SideFile>, Extent),
}

/// What is to be written.
struct Snapshot {
    key: u64,
    tables: Vec<TableImage>,
    unsaved: usize,
}

struct TableImage {
    root: Pgno,
    state: Arc<TableState>,
    mark: Mark,
    base: Option<Base>,
    dicts: Vec<(ColKey, Source<Dict>)>,
    segments: Vec<SegmentImage>,
}

struct SegmentImage {
    segment: Arc<Segment>,
    stale: Vec<u32>,
    chunks: Vec<(ColKey, Source<Chunk>)>,
}

/// The log's last state, and the file that holds it alone.
type Told = (LogMark, Option<Base>);

/// A store that is written after its last connection has closed.
pub struct Closing {
    store: Arc<Store>,
    snapshot: Snapshot,
    mark: Mark,
    /// What the pager said of the file that holds all.
    told: Rc<Cell<Option<Told>>>,
}

impl Persist {
    /// For a database at that place.
    pub fn new(place: Option<(Arc<dyn Vfs>, PathBuf)>) -> Persist {
        Persist { place: place.map(|(v, p)| (v, side_path(&p))), ..Persist::default() }
    }

    /// Looks for a sidecar, once; answers the key of its hashes.
    pub fn look(&self) -> Option<u64> {
        let (vfs, path) = self.place.as_ref()?;
        let mut st = lock(&self.state);
        if !st.looked {
            st.looked = true;
            match sidecar::open(&**vfs, path) {
                Found::Nothing => {}
                Found::Empty => st.on = true,
                Found::Foreign => st.note = Some(format!("{} is no sidecar", path.display())),
                Found::Side(s) => {
                    st.on = true;
                    self.saved.store(s.size() as usize, Relaxed);
                    st.side = Some(Arc::new(s));
                }
            }
        }
        st.side.as_ref().map(|s| s.key)
    }

    fn side(&self) -> Option<Arc<SideFile>> {
        lock(&self.state).side.clone()
    }

    /// Counts a chunk that was built.
    pub fn built(&self, bytes: usize) {
        self.unsaved.fetch_add(bytes, Relaxed);
    }

    fn is_on(&self) -> bool {
        lock(&self.state).on
    }

    fn fail(&self, why: String) {
        let mut st = lock(&self.state);
        st.on = false;
        st.note.get_or_insert(why);
    }

    /// The file said something that pages contradict: it is not looked at again.
    pub fn distrust(&self, how: &str) {
        let mut st = lock(&self.state);
        st.side = None;
        st.note.get_or_insert_with(|| format!("the sidecar contradicts the database: {how}"));
    }
}

impl Store {
    /// Whether columns are kept in a sidecar.
    pub fn is_persistent(&self) -> bool {
        self.seed();
        self.persist.is_on()
    }

    /// Why persistence ended, if it did.
    pub fn note(&self) -> Option<String> {
        lock(&self.persist.state).note.clone()
    }

    /// Whether files are believed only after their pages were hashed.
    pub fn is_hash_only(&self) -> bool {
        self.persist.hash_only.load(Relaxed)
    }

    /// Sets it.
    pub fn set_hash_only(&self, on: bool) {
        self.persist.hash_only.store(on, Relaxed);
    }

    /// Waits until nothing is being written.
    pub fn settle(&self) {
        self.join_worker();
    }

    /// Begins to keep columns in a sidecar, or ends it and removes the file.
    pub fn set_persistent(self: &Arc<Store>, bt: &Btree, on: bool) {
        self.seed();
        let Some((vfs, path)) = &self.persist.place else { return };
        if on {
            {
                let mut st = lock(&self.persist.state);
                st.note = None;
                if matches!(sidecar::open(&**vfs, path), Found::Foreign) {
                    st.note = Some(format!("{} is no sidecar", path.display()));
                    st.on = false;
                    return;
                }
                st.on = true;
            }
            if !self.is_secret(bt) {
                let snapshot = self.snapshot(bt, false);
                self.write(snapshot);
            }
        } else {
            self.join_worker();
            let mut st = lock(&self.persist.state);
            (st.on, st.side) = (false, None);
            st.note = None;
            drop(st);
            self.remove_file();
        }
    }

    fn remove_file(&self) {
        let Some((vfs, path)) = &self.persist.place else { return };
        if matches!(sidecar::open(&**vfs, path), Found::Empty | Found::Side(_)) {
            let _ = vfs.delete(path, false);
        }
    }

    /// Whether deleted rows must not survive anywhere: then there is no sidecar.
    fn is_secret(&self, bt: &Btree) -> bool {
        let secret = bt.secure_delete() == iolite_btree::SecureDelete::On;
        if secret && self.persist.is_on() {
            self.persist.fail("secure_delete is on".into());
            lock(&self.persist.state).side = None;
            self.remove_file();
        }
        secret
    }

    fn join_worker(&self) {
        let worker = lock(&self.persist.worker).take();
        if let Some(w) = worker {
            let _ = w.join();
        }
    }

    /// A table as the sidecar has it, and what changed since then.
    #[allow(clippy::type_complexity)]
    pub(crate) fn stored_table(
        &self,
        bt: &Btree,
        root: Pgno,
    ) -> Result<Option<(TableState, Option<Vec<Pgno>>)>> {
        let Some((vfs, _)) = &self.persist.place else { return Ok(None) };
        let Some(side) = self.persist.side() else { return Ok(None) };
        let Some(t) = side.table(root, &**vfs).filter(|t| t.page_size == bt.page_size()) else {
            return Ok(None);
        };
        let base = t.base.filter(|_| !self.persist.hash_only.load(Relaxed));
        let changed = match base {
            Some(b) => bt.changed_since_base(&t.mark, &b)?,
            None => None,
        };
        if changed.is_none() {
            self.persist.outdated.store(true, Relaxed);
        }
        self.counters.adopted.fetch_add(1, Relaxed);
        let columns = Columns::stored(t.dicts.into_iter().map(|(k, e)| (k, (side.clone(), e))).collect());
        let segments = t.segments.into_iter().map(|s| {
            let stored = s.chunks.into_iter().map(|(k, e)| (k, (side.clone(), e))).collect();
            let whole = Segment::stored(s.leaves, s.first, s.hashes, stored);
            if s.stale.is_empty() {
                whole
            } else {
                Segment::after(&whole, s.stale.iter().map(|i| *i as usize).collect())
            }
        });
        let state = TableState {
            mark: Some(t.mark),
            page_size: t.page_size,
            interior: t.interior,
            segments: segments.collect(),
            columns: Arc::new(columns),
            keep: true,
            stamp: next_stamp(),
            ascending: Mutex::default(),
        };
        Ok(Some((state, changed)))
    }

    /// Collects what is to be written, within a read transaction. With `wait`, some milliseconds may pass until the
    /// file's state has a name.
    fn snapshot(&self, bt: &Btree, wait: bool) -> Snapshot {
        let now = bt.mark();
        let base = bt.base(wait).unwrap_or(None);
        let tables: Vec<(Pgno, Arc<TableState>)> =
            lock(&self.tables).iter().map(|(r, t)| (*r, t.clone())).collect();
        let unsaved = self.persist.unsaved.load(Relaxed);
        let images = tables.into_iter().filter_map(|(root, state)| {
            let mark = state.mark.filter(|m| !matches!(m, Mark::Private(..)))?;
            let base = base.filter(|_| Some(mark) == now);
            let (dicts, segments) = state.images();
            Some(TableImage { root, mark, base, dicts, segments, state })
        });
        Snapshot { key: self.seed(), tables: images.collect(), unsaved }
    }

    /// After a run in columns, within its transaction: writes the sidecar beside it, if there is much that is new.
    pub fn after_run(self: &Arc<Store>, bt: &Btree) {
        let p = &self.persist;
        let unsaved = p.unsaved.load(Relaxed);
        if unsaved < FEW_BYTES.max(p.saved.load(Relaxed) / 2) || !p.is_on() || bt.mark().is_none() {
            return;
        }
        let mut worker = lock(&p.worker);
        if worker.as_ref().is_some_and(|w| !w.is_finished()) || self.is_secret(bt) {
            return;
        }
        let snapshot = self.snapshot(bt, false);
        let store = self.clone();
        // Where no thread can be had, closing writes it.
        let named = std::thread::Builder::new().name("iolite-columns".into());
        *worker = without_signals(|| named.spawn(move || store.write(snapshot))).ok();
    }

    /// Before the last connection of the process closes: what has to be written then.
    pub fn closing(self: &Arc<Store>, bt: &Btree) -> Option<Closing> {
        self.join_worker();
        let p = &self.persist;
        let news = p.unsaved.load(Relaxed) > 0 || p.outdated.load(Relaxed);
        if !news || !p.is_on() || self.is_secret(bt) || bt.begin_read().is_err() {
            return None;
        }
        // Where the log knows what changed, tables come along to the present state.
        let roots: Vec<(Pgno, Option<Mark>)> = lock(&self.tables).iter().map(|(r, t)| (*r, t.mark)).collect();
        for (root, mark) in roots {
            let known = mark.is_some_and(|m| matches!(bt.changed_since(&m), Ok(Some(_))));
            if known && self.table(bt, root).is_err() {
                lock(&self.tables).remove(&root);
            }
        }
        let mark = bt.mark();
        let snapshot = self.snapshot(bt, true);
        bt.end_read();
        let told = Rc::new(Cell::new(None));
        let note = told.clone();
        bt.note_closing(Box::new(move |last, base| note.set(Some((last, base))))).ok()?;
        Some(Closing { store: self.clone(), snapshot, mark: mark?, told })
    }

    /// Writes a sidecar; what goes wrong ends persistence.
    fn write(&self, snapshot: Snapshot) {
        if let Err(e) = self.try_write(&snapshot) {
            self.persist.fail(format!("the sidecar cannot be written: {e}"));
        }
    }

    fn try_write(&self, snapshot: &Snapshot) -> Result<()> {
        let Some((vfs, path)) = &self.persist.place else { return Ok(()) };
        let Some(mut w) = Writer::begin(&**vfs, path, snapshot.key)? else { return Ok(()) };
        let present = sidecar::open(&**vfs, path);
        let images = match write_all(&mut w, snapshot, &present, &**vfs) {
            Ok(images) => images,
            Err(e) => {
                w.abandon();
                return Err(e);
            }
        };
        if matches!(present, Found::Foreign) {
            w.abandon();
            return Err(Code::Cantopen.into());
        }
        let side = w.finish()?;
        // What was written is found there from now on.
        for (t, (dicts, segments)) in snapshot.tables.iter().zip(images) {
            t.state.columns.now_in(&side, dicts);
            for (s, chunks) in t.segments.iter().zip(segments) {
                let mut stored = lock(&s.segment.stored);
                stored.extend(chunks.into_iter().map(|(k, e)| (k, (side.clone(), e))));
            }
        }
        let p = &self.persist;
        p.saved.store(side.size() as usize, Relaxed);
        p.unsaved.fetch_sub(snapshot.unsaved, Relaxed);
        p.outdated.store(false, Relaxed);
        self.counters.published.fetch_add(1, Relaxed);
        lock(&p.state).side = Some(side);
        Ok(())
    }
}

impl Closing {
    /// Writes the sidecar, after the database was closed.
    pub fn finish(mut self) {
        if let Some((last, base)) = self.told.take() {
            for t in &mut self.snapshot.tables {
                // Between the last look and the end of the log, others may have written.
                let as_last = match self.mark {
                    Mark::Log(m) => m == last,
                    // There was no log, and there is none now.
                    Mark::File(_) => last.salt == [0; 8] && last.last == 0,
                    _ => false,
                };
                let same = t.mark == self.mark && as_last;
                t.base = base.filter(|_| same);
            }
        }
        self.store.write(self.snapshot);
    }
}

type Blocks = Vec<(ColKey, Extent)>;

/// A source's block in the new file; `None`: the old one is not what it was.
fn copy<T>(w: &mut Writer<'_>, s: &Source<T>, image: impl Fn(&T, &mut Vec<u8>)) -> Result<Option<Extent>> {
    let bytes = match s {
        Source::Memory(x) => {
            let mut b = Vec::new();
            image(x, &mut b);
            b
        }
        Source::File(side, e) => match side.read(e) {
            Some(b) => b,
            None => return Ok(None),
        },
    };
    w.block(&bytes).map(Some)
}

/// Writes all blocks; answers where those of each table came to lie.
#[allow(clippy::type_complexity)]
fn write_all(
    w: &mut Writer<'_>,
    snapshot: &Snapshot,
    present: &Found,
    vfs: &dyn Vfs,
) -> Result<Vec<(Blocks, Vec<Blocks>)>> {
    let mut out = Vec::new();
    for t in &snapshot.tables {
        let mut dicts = Vec::new();
        let mut lost = Vec::new();
        for (k, d) in &t.dicts {
            match copy(w, d, Dict::write)? {
                Some(e) => dicts.push((*k, e)),
                None => lost.push(*k),
            }
        }
        let mut segments = Vec::new();
        let mut places = Vec::new();
        for s in &t.segments {
            let mut chunks = Vec::new();
            for (k, c) in s.chunks.iter().filter(|c| !lost.contains(&c.0)) {
                if let Some(e) = copy(w, c, Chunk::write)? {
                    chunks.push((*k, e));
                }
            }
            places.push(chunks.clone());
            let (first, hashes) =
                s.segment.rows.get().map_or_else(Default::default, |r| (r.first.clone(), r.hashes.clone()));
            let leaves = s.segment.leaves.clone();
            segments.push(StoredSegment { leaves, first, hashes, stale: s.stale.clone(), chunks });
        }
        let stored = StoredTable {
            page_size: t.state.page_size,
            mark: t.mark,
            base: t.base,
            interior: t.state.interior.clone(),
            dicts: dicts.clone(),
            segments,
        };
        w.table(t.root, &stored)?;
        out.push((dicts, places));
    }
    if let Found::Side(side) = present
        && side.key == snapshot.key
    {
        for (root, _) in &side.tables {
            if snapshot.tables.iter().all(|t| t.root != *root)
                && let Some(t) = side.table(*root, vfs)
            {
                carry(w, side, *root, t)?;
            }
        }
    }
    Ok(out)
}

/// Carries a table over from another file.
fn carry(w: &mut Writer<'_>, side: &SideFile, root: Pgno, mut t: StoredTable) -> Result<()> {
    let mut moved = |list: &mut Blocks| -> Result<bool> {
        let before = list.len();
        let mut out = Vec::new();
        for (k, e) in list.drain(..) {
            if let Some(b) = side.read(&e) {
                out.push((k, w.block(&b)?));
            }
        }
        *list = out;
        Ok(list.len() == before)
    };
    if !moved(&mut t.dicts)? {
        return Ok(());
    }
    for s in &mut t.segments {
        moved(&mut s.chunks)?;
    }
    w.table(root, &t)
}

impl TableState {
    /// What there is of the table to be written.
    #[allow(clippy::type_complexity)]
    fn images(&self) -> (Vec<(ColKey, Source<Dict>)>, Vec<SegmentImage>) {
        // While this is held no chunk gets a code that the dictionary of now does not have.
        let all = lock(&self.columns.dicts);
        let bad = lock(&self.columns.bad);
        let mut segments = Vec::new();
        for s in &self.segments {
            let former =
                lock(&s.former).clone().filter(|(f, _)| s.rows.get().is_none() && f.rows.get().is_some());
            let (segment, stale) = match former {
                Some((f, stale)) => (f, stale.iter().map(|i| *i as u32).collect()),
                None => (s.clone(), Vec::new()),
            };
            let held = lock(&segment.chunks);
            let mut chunks: Vec<(ColKey, Source<Chunk>)> = Vec::new();
            if segment.rows.get().is_some() {
                chunks.extend(held.iter().map(|(k, c)| (*k, Source::Memory(c.clone()))));
                let others = lock(&segment.stored);
                let others = others.iter().filter(|(k, _)| !held.contains_key(k) && !bad.contains(k));
                chunks.extend(others.map(|(k, (side, e))| (*k, Source::File(side.clone(), *e))));
            }
            drop(held);
            segments.push(SegmentImage { segment, stale, chunks });
        }
        let mut dicts: Vec<(ColKey, Source<Dict>)> =
            all.iter().filter(|d| d.1.len() > 0).map(|(k, d)| (*k, Source::Memory(d.clone()))).collect();
        let others = lock(&self.columns.stored);
        let others = others.iter().filter(|(k, _)| !all.contains_key(k) && !bad.contains(k));
        dicts.extend(others.map(|(k, (side, e))| (*k, Source::File(side.clone(), *e))));
        (dicts, segments)
    }
}
