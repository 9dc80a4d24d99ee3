//! A search by the graph.
//!
//! A walk finds the rows whose codes are nearest, and those that wait to be linked are looked at one by one. From the nearest on they are
//! measured as they are stored, but for those whose estimate says that they are too far away. A search that finds too few, as filters leave
//! few or rows were deleted, is made again and broader; one that would be very broad is a scan.
//!
//! What always holds: a row is answered only if it is one of the table's, and with the distance of its vector as it is stored.

use super::graph::{Asked, Near, Scratch};
use super::memory::{Graphs, Index};
use crate::ask::{Ask, Nearest, Row};
use crate::config::{Hnsw, MOST_EF};
use crate::dot::{total, widest};
use crate::found::Found;
use crate::ivf::code::{MARGIN, prepared};
use crate::kernel::LANES;
use crate::quantized::Codes;
use crate::store::Store;
use iolite_base::Result;
use std::cell::RefCell;

/// A walk that would be broader than this and than this part of all nodes is a scan instead.
const MOST_BREADTH: usize = 2 * MOST_EF;
const PART: usize = 4;
/// By how much a search is broader where a filter leaves few rows, at the most.
const MOST_WIDER: usize = 16;

/// The nearest rows, nearest first; none: the table is to be scanned.
pub(crate) fn nearest(
    store: &Store,
    graphs: &RefCell<Graphs>,
    options: Hnsw,
    ask: Ask<'_>,
) -> Result<Option<Vec<Found>>> {
    let mut numbers = ask.query.numbers().to_vec();
    if !prepared(store.config.vectors[ask.column].metric, &mut numbers) {
        return Ok(None);
    }
    let mut runs = Vec::new();
    let (scale, _, length) = widest(Codes { numbers: &numbers, codes: &mut runs });
    let shift = 8 * total(&runs);
    let asked = Asked { runs, scale, square: length * length, shift };
    // Taken out while it is used: reading the table may run a search within this one.
    let mut taken = graphs.take();
    let found = taken.of(store, ask.column).and_then(|found| match found {
        Some((index, scratch)) => {
            if !index.rows.is_open() {
                index.link_some(options, scratch)?;
            }
            search(store, index, &asked, options, ask, scratch)
        }
        None => Ok(None),
    });
    graphs.replace(taken);
    found
}

fn search(
    store: &Store,
    index: &Index,
    asked: &Asked,
    options: Hnsw,
    mut ask: Ask<'_>,
    s: &mut Scratch,
) -> Result<Option<Vec<Found>>> {
    let graph = &index.graph;
    if !index.is_of_use() {
        return Ok(None);
    }
    let (all, live) = (graph.len(), index.live());
    let wanted = ask.effort.unwrap_or(options.ef_search).clamp(1, MOST_EF).max(ask.k);
    // Rows that are gone take places, too.
    let wanted = wanted * all.min(2 * live) / live.max(1);
    let mut breadth = wanted;
    loop {
        s.begin(breadth.max(1), ask.k);
        graph.nearest(asked, s);
        graph.nearest_waiting(asked, s);
        let Some((nearest, passed, looked)) = measure(store, index, &mut ask, &s.found)? else {
            return Ok(None);
        };
        let enough = nearest.beyond || nearest.len() >= ask.k.min(live);
        let wider = match (&ask.filter, looked.div_ceil(passed.max(1))) {
            (Some(_), times) => wanted * times.min(MOST_WIDER),
            _ => wanted,
        };
        if enough && breadth >= wider {
            return Ok(Some(nearest.into_sorted()));
        }
        breadth = wider.max(2 * breadth);
        if breadth > MOST_BREADTH.max(wanted) || breadth > all / PART {
            return Ok(None);
        }
    }
}

/// Measures rows; answers how many passed the filter, and how many it was asked about. None: the table is to be scanned.
fn measure(
    store: &Store,
    index: &Index,
    ask: &mut Ask<'_>,
    found: &[Near],
) -> Result<Option<(Nearest, usize, usize)>> {
    let c = &store.config.vectors[ask.column];
    let (mut nearest, mut read) = (Nearest::default(), Vec::new());
    let (mut passed, mut looked) = (0, 0);
    let mut reader = store.reader(ask.column);
    // Those of which the graph says nothing: all are measured.
    let mut scan = false;
    let mut look = |nearest: &mut Nearest, ask: &mut Ask<'_>, rowid, place, vector: &[u8]| -> Result<()> {
        let left = ask.filter.as_mut().map_or(Ok(Some(true)), |filter| filter(place, index.live()))?;
        scan |= left.is_none();
        if left == Some(true) {
            nearest.measure(ask, place, rowid, vector);
        }
        Ok(())
    };
    index
        .rows
        .each_open(store, ask.column, |rowid, place, vector| look(&mut nearest, ask, rowid, place, vector))?;
    let mut vector = Vec::new();
    for node in index.odd().map(|n| n as usize).filter(|n| !index.rows.is_gone(*n)) {
        index.rows.read(&mut reader, node, c.bytes(), &mut vector)?;
        let (rowid, place) = index.rows.of(node);
        look(&mut nearest, ask, rowid, place, &vector)?;
    }
    if scan {
        return Ok(None);
    }
    let mut next = found.iter().copied().filter(|near| !index.rows.is_gone(near.node as usize));
    loop {
        let worst = nearest.worst(c.metric, ask.k);
        let mut group: [Option<Row>; LANES] = Default::default();
        let mut n = 0;
        while n < LANES
            && let Some(near) = next.next()
        {
            // A step of the codes has a deviation of its size by the root of 12.
            let (scale, _) = index.graph.beside(near.node);
            let margin = MARGIN * 2.0 * near.distance.max(0.0).sqrt() * scale / 12f32.sqrt();
            if near.distance - margin > worst {
                continue;
            }
            let (rowid, place) = index.rows.of(near.node as usize);
            if let Some(filter) = &mut ask.filter {
                looked += 1;
                match filter(place, index.live())? {
                    None => return Ok(None),
                    Some(false) => continue,
                    Some(true) => passed += 1,
                }
            }
            let mut vector: Vec<u8> = read.pop().unwrap_or_default();
            index.rows.read(&mut reader, near.node as usize, c.bytes(), &mut vector)?;
            group[n] = Some(Row { place, rowid, vector });
            n += 1;
        }
        if n == 0 {
            return Ok(Some((nearest, passed, looked)));
        }
        nearest.measure_group(ask, &group);
        read.extend(group.into_iter().flatten().map(|row| row.vector));
    }
}
