//! A table at one state of the database: its leaves in segments, and their chunks.
//!
//! What always holds: a segment is never changed once another state may share it, only filled; a chunk that it holds, and no
//! other memory of columns, is counted against the budget.
//!
//! What it does not know: pages, and how one state becomes another.

use super::*;

/// What the segments of a table share over all its states.
#[derive(Default)]
pub(crate) struct Columns {
    pub dicts: Mutex<HashMap<ColKey, Arc<Dict>>>,
    /// Where dictionaries lie that were not read yet. One is read before anything is built of its column.
    pub stored: Mutex<HashMap<ColKey, Place>>,
    /// When and how often each column was used.
    pub used: Mutex<FastMap<ColKey, Use>>,
    /// Columns whose stored dictionary is lost, and all stored codes with it.
    pub bad: Mutex<FastSet<ColKey>>,
    /// Columns that were met with values on overflow pages: they are decoded for each run.
    pub loose: Mutex<FastSet<ColKey>>,
}

/// A block of a sidecar.
pub(crate) type Place = (Arc<SideFile>, Extent);

impl Columns {
    /// Columns whose dictionaries lie in a sidecar.
    pub fn stored(dicts: HashMap<ColKey, Place>) -> Columns {
        Columns { stored: Mutex::new(dicts), ..Columns::default() }
    }

    /// The dictionaries lie there now.
    pub fn now_in(&self, side: &Arc<SideFile>, dicts: Vec<(ColKey, Extent)>) {
        let all = lock(&self.dicts);
        let mut stored = lock(&self.stored);
        for (k, e) in dicts.into_iter().filter(|d| !all.contains_key(&d.0)) {
            stored.insert(k, (side.clone(), e));
        }
    }

    /// Reads the dictionary of a column, if it lies in a sidecar.
    pub(super) fn recall(&self, all: &mut HashMap<ColKey, Arc<Dict>>, key: &ColKey, counters: &Counters) {
        if all.contains_key(key) {
            return;
        }
        let Some((side, e)) = lock(&self.stored).remove(key) else { return };
        match side.read(&e).and_then(|b| Dict::read(&b)) {
            Some(d) => {
                all.insert(*key, Arc::new(d));
            }
            None => {
                counters.rejected.fetch_add(1, Relaxed);
                lock(&self.bad).insert(*key);
            }
        }
    }
}

/// A table at one state of the database.
pub(crate) struct TableState {
    pub mark: Option<Mark>,
    pub page_size: u32,
    pub interior: Vec<Pgno>,
    pub segments: Vec<Arc<Segment>>,
    pub columns: Arc<Columns>,
    /// Chunks may be kept.
    pub keep: bool,
    /// Equal stamps are equal contents.
    pub stamp: u64,
    /// Columns of which it is known whether, taken together, they ascend with the rows.
    pub ascending: Mutex<Vec<(Vec<ColKey>, bool)>>,
}

/// A run of leaves.
pub(crate) struct Segment {
    pub leaves: Vec<Pgno>,
    pub rows: OnceLock<Rows>,
    pub chunks: Mutex<FastMap<ColKey, Arc<Chunk>>>,
    /// Where chunks lie in a sidecar.
    pub stored: Mutex<FastMap<ColKey, Place>>,
    /// What is known of chunks for which there was no room, and the bytes that they would take.
    pub(super) shapes: Mutex<FastMap<ColKey, (Arc<Chunk>, usize)>>,
    /// Columns of inner tables, with the stamp of the inner table's state.
    pub(super) derived: Mutex<HashMap<DerivedKey, (u64, Arc<Chunk>)>>,
    /// The same leaves at an earlier state, and which of them have changed since. Of a chain of states only the last
    /// link is kept.
    pub former: Mutex<Option<(Arc<Segment>, Vec<usize>)>>,
}

impl Drop for Segment {
    fn drop(&mut self) {
        let chunks = self.chunks.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut bytes: usize = chunks.values().map(|c| c.bytes()).sum();
        let derived = self.derived.get_mut().unwrap_or_else(PoisonError::into_inner);
        bytes += derived.values().map(|c| c.1.bytes()).sum::<usize>();
        USED.fetch_sub(bytes, Relaxed);
    }
}

/// The columns that a query reads of one table.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub parts: Vec<Part>,
    pub dicts: Vec<Arc<Dict>>,
    pub rows: usize,
}

/// The same of one segment.
#[derive(Clone)]
pub(crate) struct Part {
    /// Rows before.
    pub start: usize,
    pub rows: usize,
    pub cols: Vec<Arc<Chunk>>,
    /// Some of these are not here: [`Store::fetch`] brings them.
    pub away: bool,
}

impl Loaded {
    /// Whether some columns are brought segment by segment.
    pub fn streams(&self) -> bool {
        self.parts.iter().any(|p| p.away)
    }
}

impl TableState {
    /// Whether all segments hold these columns: they are functions of the leaves alone then.
    pub fn holds(&self, keys: &[ColKey]) -> bool {
        self.segments.iter().all(|s| {
            let chunks = lock(&s.chunks);
            keys.iter().all(|k| chunks.contains_key(k))
        })
    }

    /// How many of these columns are not there and have to be decoded.
    pub fn missing(&self, keys: &[ColKey]) -> usize {
        // Columns are built for all segments.
        let Some(s) = self.segments.first() else { return 0 };
        let (chunks, stored, former) = (lock(&s.chunks), lock(&s.stored), lock(&s.former));
        let patched = |k: &ColKey| former.as_ref().is_some_and(|(f, _)| lock(&f.chunks).contains_key(k));
        keys.iter().filter(|k| !chunks.contains_key(k) && !stored.contains_key(k) && !patched(k)).count()
    }

    /// Whether some of these columns are decoded for each run.
    pub fn decodes_again(&self, keys: &[ColKey]) -> bool {
        let loose = lock(&self.columns.loose);
        !loose.is_empty() && keys.iter().any(|k| loose.contains(k))
    }

    /// That of a table that is not stored.
    pub fn none() -> Arc<TableState> {
        Arc::new(TableState {
            mark: None,
            page_size: 0,
            interior: Vec::new(),
            segments: Vec::new(),
            columns: Arc::default(),
            keep: false,
            stamp: 0,
            ascending: Mutex::default(),
        })
    }

    /// Leaves.
    pub fn leaves(&self) -> usize {
        self.segments.iter().map(|s| s.leaves.len()).sum()
    }

    /// So many of the leaves, evenly spread, or all.
    pub fn some_leaves(&self, n: usize) -> Vec<Pgno> {
        let all: Vec<Pgno> = self.segments.iter().flat_map(|s| s.leaves.iter().copied()).collect();
        let n = n.min(all.len());
        (0..n).map(|i| all[(2 * i + 1) * all.len() / (2 * n)]).collect()
    }
}

impl Segment {
    pub(super) fn new(leaves: &[Pgno]) -> Arc<Segment> {
        Arc::new(Segment {
            leaves: leaves.to_vec(),
            rows: OnceLock::new(),
            chunks: Mutex::default(),
            stored: Mutex::default(),
            shapes: Mutex::default(),
            derived: Mutex::default(),
            former: Mutex::default(),
        })
    }

    /// A segment of a sidecar. Without `first` nothing is known but its leaves.
    pub fn stored(
        leaves: Vec<Pgno>,
        first: Vec<u32>,
        hashes: Vec<[u64; 2]>,
        stored: FastMap<ColKey, Place>,
    ) -> Arc<Segment> {
        let rows = OnceLock::new();
        if !first.is_empty() {
            let _ = rows.set(Rows { first, hashes });
        }
        Arc::new(Segment {
            leaves,
            rows,
            chunks: Mutex::default(),
            stored: Mutex::new(stored),
            shapes: Mutex::default(),
            derived: Mutex::default(),
            former: Mutex::default(),
        })
    }

    pub fn after(former: &Arc<Segment>, stale: Vec<usize>) -> Arc<Segment> {
        Arc::new(Segment {
            leaves: former.leaves.clone(),
            rows: OnceLock::new(),
            chunks: Mutex::default(),
            stored: Mutex::default(),
            shapes: Mutex::default(),
            derived: Mutex::default(),
            former: Mutex::new(Some((former.clone(), stale))),
        })
    }

    /// A derived column, if it is there for this state of the inner table.
    pub fn derived(&self, key: &DerivedKey, stamp: u64) -> Option<Arc<Chunk>> {
        lock(&self.derived).get(key).filter(|d| d.0 == stamp).map(|d| d.1.clone())
    }

    /// All wanted chunks, some of them without their values, and how much those would take; `None`: not all of them are
    /// known.
    #[allow(clippy::type_complexity)]
    pub(super) fn shapes_of(&self, wanted: &[(ColKey, &Value)]) -> Option<(Vec<Arc<Chunk>>, usize)> {
        self.rows.get()?;
        let (chunks, shapes) = (lock(&self.chunks), lock(&self.shapes));
        let mut bytes = 0;
        let of = |(k, _): &(ColKey, &Value)| match (chunks.get(k), shapes.get(k)) {
            (Some(c), _) => Some(c.clone()),
            (None, Some((c, n))) => {
                bytes += n;
                Some(c.clone())
            }
            _ => None,
        };
        let cols: Option<Vec<Arc<Chunk>>> = wanted.iter().map(of).collect();
        cols.map(|c| (c, bytes))
    }

    /// What a column takes, with what was derived by it.
    pub(crate) fn held(&self, key: &ColKey) -> usize {
        let own = lock(&self.chunks).get(key).map_or(0, |c| c.bytes());
        let derived = lock(&self.derived);
        own + derived.iter().filter(|(k, _)| k.outer == *key).map(|(_, d)| d.1.bytes()).sum::<usize>()
    }

    /// Lets a column go, and what was derived by it.
    pub(crate) fn forget(&self, key: &ColKey) {
        let mut bytes = lock(&self.chunks).remove(key).map_or(0, |c| c.bytes());
        lock(&self.derived).retain(|k, (_, c)| {
            let stays = k.outer != *key;
            bytes += if stays { 0 } else { c.bytes() };
            stays
        });
        USED.fetch_sub(bytes, Relaxed);
    }

    /// All wanted chunks, if they are there.
    pub(super) fn chunks_of(&self, wanted: &[(ColKey, &Value)]) -> Option<Vec<Arc<Chunk>>> {
        self.rows.get()?;
        let chunks = lock(&self.chunks);
        wanted.iter().map(|(k, _)| chunks.get(k).cloned()).collect()
    }
}
