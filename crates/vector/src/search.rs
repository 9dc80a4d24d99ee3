//! The nearest rows: by the index of the column, by the copy in memory, or by a scan of all chunks that the filters leave.
//!
//! What always holds: without an index the answer is exact; it is sorted by distance, and rows of one distance by rowid; a distance that is
//! no number comes last. A scan's memory is bounded by `k` and a chunk. Rows that are named are looked at alone.

use crate::ask::Ask;
use crate::config::Index;
use crate::filter::Condition;
use crate::found::{Found, keep};
use crate::hnsw::{self, Graphs};
use crate::ivf::{self, Kept};
use crate::kernel::{LANES, Query};
use crate::plan;
use crate::quantized::{self, Copies};
use crate::store::{Chunk, Place, Store, corrupt};
use crate::vector::Vector;
use iolite_base::{Code, Error, Result};
use iolite_ext::FilterArgs;
use iolite_value::Value;
use std::cell::RefCell;
use std::collections::{BinaryHeap, HashMap};

/// So many rows can be asked for.
const MOST: i64 = 4096;
/// Of more rows that are named, all chunks are looked at.
const FEW: usize = 4096;
/// A filter that looks at more than this part of all chunks costs as much as a scan.
const PART: usize = 4;

/// What searches of a table keep in memory.
#[derive(Default)]
pub(crate) struct Memory {
    pub copies: RefCell<Copies>,
    pub lists: RefCell<Kept>,
    pub graphs: RefCell<Graphs>,
}

/// What is looked for.
struct Wanted {
    column: usize,
    vector: Vector,
    k: usize,
    /// The condition on partition columns and its values.
    partition: (String, Vec<Value>),
    conditions: Vec<Condition>,
    distances: Vec<(u8, f64)>,
    /// The rows that may be found, sorted; none: all.
    rows: Option<Vec<i64>>,
    /// How much of an index is looked at, if the query says it.
    effort: Option<usize>,
}

/// The vector that a query asks for.
fn query_vector(store: &Store, column: usize, v: &Value) -> Result<Vector> {
    let c = store.config.vectors.get(column).ok_or_else(|| Error::from(Code::Internal))?;
    let name = &c.name;
    let vector = Vector::of(v).map_err(|e| {
        Error::new(e.code(), format!("Query vector on the \"{name}\" column is invalid: {}", e.message()))
    })?;
    if vector.kind != c.kind {
        return Err(Error::sql(format!(
            "Query vector for the \"{name}\" column is expected to be of type {}, but a {} vector was provided.",
            c.kind.name(),
            vector.kind.name()
        )));
    }
    if vector.len() != c.dimensions {
        return Err(Error::sql(format!(
            "Dimension mismatch for query vector for the \"{name}\" column. Expected {} dimensions but received {}.",
            c.dimensions,
            vector.len()
        )));
    }
    Ok(vector)
}

fn count(v: &Value) -> Result<usize> {
    match v.to_int() {
        n if n < 0 => Err(Error::sql("k value in knn queries must be greater than or equal to 0.")),
        n if n > MOST => {
            Err(Error::sql(format!("k value in knn query too large, provided {n} and the limit is {MOST}")))
        }
        n => Ok(n as usize),
    }
}

impl Wanted {
    fn new(store: &Store, plan: &str, args: &FilterArgs<'_>) -> Result<Wanted> {
        let mut w: Option<Wanted> = None;
        for (n, block) in plan.as_bytes()[1..].chunks_exact(4).enumerate() {
            let v = args.get(n).ok_or_else(|| Error::from(Code::Internal))?;
            let one = std::slice::from_ref(v);
            let values = args.list(n).unwrap_or(one);
            let place = block[1].wrapping_sub(b'A') as usize;
            let Some(w) = &mut w else {
                let (column, vector) = (place, query_vector(store, place, v)?);
                let partition = ("1".into(), Vec::new());
                let (conditions, distances) = (Vec::new(), Vec::new());
                w = Some(Wanted {
                    column,
                    vector,
                    k: 0,
                    partition,
                    conditions,
                    distances,
                    rows: None,
                    effort: None,
                });
                continue;
            };
            match block[0] {
                plan::COUNT => w.k = count(v)?,
                plan::PROBES | plan::EF => {
                    // The one that is the column's index's.
                    if (block[0] == plan::EF) == store.config.vectors[w.column].graph().is_some() {
                        w.effort = Some(usize::try_from(v.to_int()).unwrap_or(0));
                    }
                }
                plan::KEYS => w.only(store, values)?,
                plan::PARTITION => {
                    w.partition.1.push(v.clone());
                    let (op, p) = (plan::operator(block[2]), w.partition.1.len());
                    w.partition.0 += &format!(" AND partition{place:02}{op}?{p}");
                }
                plan::METADATA | plan::METADATA_LIST => {
                    w.conditions.push(Condition::new(store, place, block[2], values)?);
                }
                _ => w.distances.push((block[2], if v.is_null() { f64::NAN } else { v.to_real() })),
            }
        }
        w.ok_or_else(|| Code::Internal.into())
    }

    /// Whether every row may be found.
    fn is_plain(&self) -> bool {
        !self.filters() && self.distances.is_empty() && self.rows.is_none()
    }

    /// Whether there are conditions on other columns.
    fn filters(&self) -> bool {
        !self.partition.1.is_empty() || !self.conditions.is_empty()
    }

    /// Whether a distance is within the bounds.
    fn holds(&self, distance: f64) -> bool {
        let holds =
            |(op, bound): &(u8, f64)| distance.partial_cmp(bound).is_some_and(|o| plan::holds(*op, o));
        self.distances.iter().all(holds)
    }

    /// No distance below this is within them.
    fn least(&self) -> f64 {
        let lower = self.distances.iter().filter(|(op, _)| plan::holds(*op, std::cmp::Ordering::Greater));
        lower.map(|(_, bound)| *bound).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Which places of a chunk are left.
    fn left(&self, store: &Store, chunk: &Chunk, left: &mut Vec<bool>) -> Result<()> {
        left.clear();
        left.extend((0..chunk.size).map(|at| chunk.is_taken(at)));
        if let Some(rows) = &self.rows {
            for (at, left) in left.iter_mut().enumerate() {
                *left = *left && rows.binary_search(&chunk.rowid(at)).is_ok();
            }
        }
        for c in &self.conditions {
            if left.contains(&true) {
                c.narrow(store, chunk, left)?;
            }
        }
        Ok(())
    }

    fn only(&mut self, store: &Store, keys: &[Value]) -> Result<()> {
        let mut rows = Vec::new();
        for key in keys {
            rows.extend(match key {
                Value::Text(..) if store.config.text_key => store.row_of_key(key)?,
                Value::Int(n) if !store.config.text_key => Some(*n),
                _ => None,
            });
        }
        rows.sort_unstable();
        rows.dedup();
        if let Some(before) = &self.rows {
            rows.retain(|r| before.binary_search(r).is_ok());
        }
        self.rows = Some(rows);
        Ok(())
    }
}

/// The nearest rows, nearest first.
pub(crate) fn nearest(
    store: &Store,
    memory: &Memory,
    plan: &str,
    args: &FilterArgs<'_>,
) -> Result<Vec<Found>> {
    let w = Wanted::new(store, plan, args)?;
    if w.k == 0 {
        return Ok(Vec::new());
    }
    let column = &store.config.vectors[w.column];
    let query = Query::new(column.kind, column.metric, &w.vector.bytes);
    let found = (|| {
        if column.index.is_some()
            && w.rows.is_none()
            && w.effort != Some(0)
            && let Some(found) = indexed(store, memory, &w, &query)?
        {
            return Ok(found);
        }
        if w.is_plain() {
            // Taken out while it is used: reading the table may run a search within this one.
            let mut taken = memory.copies.take();
            let found = quantized::nearest(&mut taken, store, w.column, &query, w.k);
            memory.copies.replace(taken);
            if let Some(found) = found? {
                return Ok(found);
            }
        }
        scan(store, &w, &query)
    })();
    found.map_err(|e: Error| if e.code() == Code::CorruptVtab { corrupt() } else { e })
}

/// By the index of the column; none: it has nothing to say.
fn indexed(store: &Store, memory: &Memory, w: &Wanted, query: &Query<'_>) -> Result<Option<Vec<Found>>> {
    let mut known: HashMap<i64, Vec<bool>> = HashMap::new();
    let mut filter = |place: Place, rows: usize| -> Result<Option<bool>> {
        if let Some(left) = known.get(&place.chunk) {
            return Ok(Some(left.get(place.at).copied().unwrap_or(false)));
        }
        if known.len() > rows / store.config.chunk_size / PART + 64 {
            return Ok(None);
        }
        let mut left = Vec::new();
        if let Some(chunk) = store.chunk_if(place.chunk, &w.partition.0, &w.partition.1)? {
            w.left(store, &chunk, &mut left)?;
        }
        let answer = left.get(place.at).copied().unwrap_or(false);
        known.insert(place.chunk, left);
        Ok(Some(answer))
    };
    let ask = Ask {
        column: w.column,
        query,
        k: w.k,
        effort: w.effort,
        filter: if w.filters() { Some(&mut filter) } else { None },
        holds: &|d| w.holds(d),
        least: w.least(),
    };
    match store.config.vectors[w.column].index {
        Some(Index::Hnsw(options)) => hnsw::nearest(store, &memory.graphs, options, ask),
        _ => ivf::nearest(store, &memory.lists, ask),
    }
}

/// By a look at all vectors that the filters leave.
fn scan(store: &Store, w: &Wanted, query: &Query<'_>) -> Result<Vec<Found>> {
    let bytes = store.config.vectors[w.column].bytes();
    let mut heap: BinaryHeap<Found> = BinaryHeap::new();
    let mut left: Vec<bool> = Vec::new();
    let mut places: Vec<usize> = Vec::new();
    let mut look = |chunk: Chunk| {
        w.left(store, &chunk, &mut left)?;
        places.clear();
        places.extend((0..chunk.size).filter(|at| left[*at]));
        if places.is_empty() {
            return Ok(());
        }
        let vectors = store.vectors(w.column, &chunk)?;
        for group in places.chunks(LANES) {
            let of = |k: usize| &vectors[bytes * group[k.min(group.len() - 1)]..][..bytes];
            let distances = query.distances(std::array::from_fn(of));
            for (at, distance) in group.iter().zip(distances) {
                if w.holds(distance) {
                    let place = Place { chunk: chunk.id, at: *at };
                    keep(&mut heap, w.k, Found { distance, rowid: chunk.rowid(*at), place });
                }
            }
        }
        Ok(())
    };
    match &w.rows {
        Some(rows) if rows.len() <= FEW => {
            let mut chunks = Vec::new();
            for row in rows {
                chunks.extend(store.place(*row)?.map(|p| p.chunk));
            }
            chunks.sort_unstable();
            chunks.dedup();
            for id in chunks {
                if let Some(chunk) = store.chunk_if(id, &w.partition.0, &w.partition.1)? {
                    look(chunk)?;
                }
            }
        }
        _ => store.chunks(&w.partition.0, &w.partition.1, look)?,
    }
    Ok(heap.into_sorted_vec())
}
