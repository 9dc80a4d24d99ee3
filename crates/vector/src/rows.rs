//! Rows of a column in memory, of whose vectors something was made, and how that follows the table.
//!
//! ```text
//! not made -- searched some times --> made -- chunks changed --> their rows are looked at again -- too many --> not made
//! ```
//!
//! What always holds: what is kept belongs to one committed state of the chunks and of the column's vectors, and to the connection. Where chunks
//! have changed, rows that are others are [gone](Rows::is_gone) from then on, and what they are now is added behind all. Chunks that the present
//! transaction has changed are [open](Rows::each_open): their rows are gone for one search, which looks at what there is instead. Where
//! nobody can tell what has changed, there is nothing. What is made of a vector is not known here.

use crate::store::{Chunk, Place, Reader, Store};
use iolite_base::hash::FastMap;
use iolite_base::{Result, alloc};
use iolite_ext::{Changed, Changes, Piece, ReadNote};
use iolite_value::Value;
use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::rc::Rc;

/// Something is made by the search of a state with this number: a copy costs as much as about so many searches without it.
const SEARCHES: u32 = 7;
/// Rows that are there no more are in this chunk.
const GONE: i64 = i64::MIN;
/// Where chunks with more than so many rows have changed, and with more than a quarter of all, everything is made anew.
const MOST_CHANGED: usize = 8192;
/// Where the present transaction has changed chunks with more than so many rows, and with more than an eighth of all, the table is scanned.
const MOST_OPEN: usize = 2048;
/// Of so many vectors it is remembered where they lie.
const MOST_PIECES: usize = 1 << 20;

/// What is made of the rows of a column.
pub(crate) trait OfRows: Sized {
    /// Makes it; none: it would be too large.
    fn make(store: &Store, column: usize) -> Result<Option<Self>>;
    fn rows(&self) -> &Rows;
    fn rows_mut(&mut self) -> &mut Rows;
    /// Makes room for so many more rows, each of so many bytes; false: everything is to be made anew.
    fn has_room(&mut self, more: usize, bytes: usize) -> bool;
    /// Whether a row is what would be made of this vector.
    fn is(&mut self, row: usize, vector: &[u8]) -> Result<bool>;
    /// Adds what is made of a vector; its row was added before.
    fn push(&mut self, vector: &[u8]) -> Result<()>;
}

/// What a table has in memory, by column.
pub(crate) struct Kept<T> {
    columns: Vec<(usize, State<T>)>,
}

struct State<T> {
    note: ReadNote,
    /// How often the column was searched since nothing is known of it.
    searches: u32,
    /// None: not made yet. None inside: it would be too large.
    made: Option<Option<T>>,
}

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept { columns: Vec::new() }
    }
}

impl<T: OfRows> Kept<T> {
    fn state(&mut self, column: usize) -> &mut State<T> {
        let at = match self.columns.iter().position(|q| q.0 == column) {
            Some(at) => at,
            None => {
                self.columns.push((column, State { note: None, searches: 0, made: None }));
                self.columns.len() - 1
            }
        };
        &mut self.columns[at].1
    }

    /// Forgets what there is of a column.
    pub fn forget(&mut self, column: usize) {
        self.columns.retain(|c| c.0 != column);
    }

    /// What is kept of a column, as it is in the present state but for [open](Rows::each_open) chunks; none: there is nothing (yet).
    pub fn present(&mut self, store: &Store, column: usize) -> Result<Option<&mut T>> {
        self.after(store, column, SEARCHES)
    }

    /// The same without open chunks; it is made if it can be kept.
    pub fn now(&mut self, store: &Store, column: usize) -> Result<Option<&mut T>> {
        Ok(self.after(store, column, 1)?.filter(|m| m.rows().open.is_empty()))
    }

    fn after(&mut self, store: &Store, column: usize, searches: u32) -> Result<Option<&mut T>> {
        let state = self.state(column);
        if let Some(Some(m)) = &mut state.made {
            m.rows_mut().open.clear();
        }
        match store.vector_changes(column, &mut state.note) {
            Some(Changes::Nothing) => {}
            Some(changes) => {
                // Whatever goes wrong on the way, what is half done is not used.
                let made = state.made.take();
                let was_made = made.is_some();
                state.made = follow(made, store, column, &changes)?;
                let all = [0, 1].map(|t| changes.of(t)).contains(&Changed::All);
                if state.made.is_none() && (was_made || all) {
                    state.searches = 0;
                }
            }
            None => {
                let Some(Some(m)) = &mut state.made else { return Ok(None) };
                let open = store.vector_changes_within(column, &state.note);
                return Ok(open.is_some_and(|c| m.rows_mut().open(&c)).then_some(m));
            }
        }
        state.searches = state.searches.saturating_add(1);
        if state.searches < searches {
            return Ok(None);
        }
        if state.made.is_none() {
            state.made = Some(T::make(store, column)?);
        }
        Ok(state.made.as_mut().and_then(Option::as_mut))
    }
}

/// Brings something to the present state; none: it is to be made anew.
fn follow<T: OfRows>(
    made: Option<Option<T>>,
    store: &Store,
    column: usize,
    changes: &Changes,
) -> Result<Option<Option<T>>> {
    let (Some(chunks), Some(vectors)) = (ranges(changes, 0), ranges(changes, 1)) else { return Ok(None) };
    match made {
        Some(Some(mut m)) => Ok(follow_rows(&mut m, store, column, &chunks, &vectors)?.then_some(Some(m))),
        made => Ok(made),
    }
}

type Ranges = [RangeInclusive<i64>];

/// The rows of a table that have changed; none: perhaps all.
fn ranges(changes: &Changes, table: usize) -> Option<Vec<RangeInclusive<i64>>> {
    match changes.of(table) {
        Changed::Nothing => Some(Vec::new()),
        Changed::Rows(rows) => Some(rows),
        Changed::All => None,
    }
}

fn is_in(ranges: &Ranges, id: i64) -> bool {
    ranges.iter().any(|r| r.contains(&id))
}

/// Rows, by numbers that stay.
#[derive(Default)]
pub(crate) struct Rows {
    list: Vec<(i64, Place)>,
    gone: usize,
    /// The numbers of those that are not gone by chunk, once they were asked for.
    by_chunk: FastMap<i64, Vec<u32>>,
    /// Chunks that the present transaction has changed.
    open: Vec<RangeInclusive<i64>>,
    /// Where vectors lie that were read.
    pieces: RefCell<FastMap<u32, Rc<[Piece]>>>,
}

impl Rows {
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// How many are gone.
    pub fn gone(&self) -> usize {
        self.gone
    }

    pub fn reserve(&mut self, more: usize) -> Result<()> {
        alloc::reserve(&mut self.list, more)
    }

    /// Adds a row, for which room was [reserved](Rows::reserve).
    pub fn push(&mut self, rowid: i64, place: Place) {
        self.list.push((rowid, place));
    }

    /// Adds a row that is gone, for which room was reserved.
    pub fn push_gone(&mut self) {
        self.list.push((0, Place { chunk: GONE, at: 0 }));
        self.gone += 1;
    }

    /// Makes a row that is gone another one.
    pub fn set(&mut self, row: usize, rowid: i64, place: Place) {
        self.list[row] = (rowid, place);
        self.gone -= 1;
    }

    /// The rowid and the place of a row.
    #[inline]
    pub fn of(&self, row: usize) -> (i64, Place) {
        self.list[row]
    }

    /// Whether a row is there no more, or is another one by now, or is in an open chunk.
    #[inline]
    pub fn is_gone(&self, row: usize) -> bool {
        if self.gone == 0 && self.open.is_empty() {
            return false;
        }
        let chunk = self.list[row].1.chunk;
        chunk == GONE || is_in(&self.open, chunk)
    }

    /// Whether there are open chunks.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Makes chunks open; false: they are too many.
    fn open(&mut self, changes: &Changes) -> bool {
        let (Some(chunks), Some(vectors)) = (ranges(changes, 0), ranges(changes, 1)) else { return false };
        self.order();
        self.open = chunks;
        self.open.extend(vectors);
        let open = &self.open;
        let rows: usize = self.by_chunk.iter().filter(|c| is_in(open, *c.0)).map(|c| c.1.len()).sum();
        rows <= (self.list.len() / 8).max(MOST_OPEN)
    }

    /// Hands the rows of open chunks to `f`: rowid, place, vector.
    pub fn each_open(
        &self,
        store: &Store,
        column: usize,
        mut f: impl FnMut(i64, Place, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let bytes = store.config.vectors[column].bytes();
        let mut chunks = Vec::new();
        for range in &self.open {
            let bounds = [Value::Int(*range.start()), Value::Int(*range.end())];
            store.chunks("chunk_id BETWEEN ?1 AND ?2", &bounds, |chunk| {
                alloc::reserve(&mut chunks, 1)?;
                chunks.push(chunk);
                Ok(())
            })?;
        }
        chunks.sort_unstable_by_key(|c| c.id);
        chunks.dedup_by_key(|c| c.id);
        for chunk in &chunks {
            let vectors = store.vectors(column, chunk)?;
            for at in (0..chunk.size).filter(|at| chunk.is_taken(*at)) {
                let place = Place { chunk: chunk.id, at };
                f(chunk.rowid(at), place, &vectors[bytes * at..][..bytes])?;
            }
        }
        Ok(())
    }

    fn forget(&mut self, row: usize) {
        self.list[row].1.chunk = GONE;
        self.gone += 1;
        self.pieces.borrow_mut().remove(&(row as u32));
    }

    /// Reads the vector of a row; where it lies is remembered.
    pub fn read(&self, reader: &mut Reader<'_>, row: usize, bytes: usize, out: &mut Vec<u8>) -> Result<()> {
        out.resize(bytes, 0);
        let known = self.pieces.borrow().get(&(row as u32)).cloned();
        match known {
            Some(pieces) => reader.read_pieces(&pieces, out),
            None => {
                reader.read(self.list[row].1, out)?;
                let pieces = reader.pieces(self.list[row].1)?;
                let mut known = self.pieces.borrow_mut();
                if known.len() < MOST_PIECES {
                    known.insert(row as u32, pieces.into());
                }
                Ok(())
            }
        }
    }

    /// Orders rows by chunk, if that was not done yet.
    fn order(&mut self) {
        if self.by_chunk.is_empty() {
            for (i, row) in self.list.iter().enumerate().filter(|r| r.1.1.chunk != GONE) {
                self.by_chunk.entry(row.1.chunk).or_default().push(i as u32);
            }
        }
    }
}

/// Brings it to the present state, from which it differs in these chunks, and in the vectors of those; false: it is to be made anew.
fn follow_rows<T: OfRows>(
    made: &mut T,
    store: &Store,
    column: usize,
    chunks: &Ranges,
    vectors: &Ranges,
) -> Result<bool> {
    let rows = made.rows_mut();
    rows.order();
    let changed = |id: i64| is_in(chunks, id) || is_in(vectors, id);
    let mut before: Vec<i64> = rows.by_chunk.keys().copied().filter(|id| changed(*id)).collect();
    let concerned: usize = before.iter().map(|id| rows.by_chunk[id].len()).sum();
    let most = (rows.len() / 4).max(MOST_CHANGED);
    if concerned > most {
        return Ok(false);
    }
    let mut now = Vec::new();
    for range in chunks.iter().chain(vectors) {
        let bounds = [Value::Int(*range.start()), Value::Int(*range.end())];
        store.chunks("chunk_id BETWEEN ?1 AND ?2", &bounds, |chunk| {
            if now.len() * chunk.size <= 2 * most {
                now.push(chunk);
            }
            Ok(())
        })?;
    }
    now.sort_unstable_by_key(|c| c.id);
    now.dedup_by_key(|c| c.id);
    if now.iter().map(|c| c.size).sum::<usize>() > 2 * most {
        return Ok(false);
    }
    before.retain(|id| now.binary_search_by_key(id, |c| c.id).is_err());
    for id in before {
        for row in rows.by_chunk.remove(&id).unwrap_or_default() {
            rows.forget(row as usize);
        }
    }
    for chunk in &now {
        if !follow_chunk(made, store, column, chunk, is_in(vectors, chunk.id))? {
            return Ok(false);
        }
    }
    let rows = made.rows();
    Ok(rows.gone <= (rows.len() / 4).max(MOST_CHANGED))
}

/// `vectors`: they may be others, and not only the rows.
fn follow_chunk<T: OfRows>(
    made: &mut T,
    store: &Store,
    column: usize,
    chunk: &Chunk,
    vectors: bool,
) -> Result<bool> {
    let bytes = store.config.vectors[column].bytes();
    let mut known: FastMap<usize, u32> = FastMap::default();
    let rows = made.rows_mut();
    for row in rows.by_chunk.remove(&chunk.id).unwrap_or_default() {
        let (rowid, place) = rows.list[row as usize];
        if place.at < chunk.size && chunk.is_taken(place.at) && chunk.rowid(place.at) == rowid {
            known.insert(place.at, row);
            rows.pieces.borrow_mut().remove(&row);
        } else {
            rows.forget(row as usize);
        }
    }
    let taken: Vec<usize> = (0..chunk.size).filter(|at| chunk.is_taken(*at)).collect();
    let mut present = Vec::with_capacity(taken.len());
    if vectors || taken.len() > known.len() {
        if !made.has_room(taken.len(), bytes) {
            return Ok(false);
        }
        let values = store.vectors(column, chunk)?;
        for at in taken {
            let vector = &values[bytes * at..][..bytes];
            if let Some(row) = known.get(&at) {
                if !vectors || made.is(*row as usize, vector)? {
                    present.push(*row);
                    continue;
                }
                made.rows_mut().forget(*row as usize);
            }
            present.push(made.rows().len() as u32);
            made.rows_mut().push(chunk.rowid(at), Place { chunk: chunk.id, at });
            made.push(vector)?;
        }
    } else {
        present.extend(known.values());
    }
    made.rows_mut().by_chunk.insert(chunk.id, present);
    Ok(true)
}
