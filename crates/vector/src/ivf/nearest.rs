//! A search by the index.
//!
//! The lists with the nearest centroids are looked at, and the tail. An entry's code gives an estimate of its distance and a margin; from
//! the nearest on, vectors are measured as they are stored, until no estimate less its margin is below the k-th distance. With a filter
//! more lists are looked at the fewer rows it leaves; where it leaves very few, the table is scanned instead.

use super::code::{Between, Estimates, prepared};
use super::format::{ODD, unpacked};
use super::lists::Tables;
use super::memory::{Index, Kept};
use crate::ask::{Ask, Nearest, Row, square};
use crate::dot::{Run, nibble_products, total, widest};
use crate::found::Found;
use crate::kernel::LANES;
use crate::quantized;
use crate::store::{Store, corrupt};
use iolite_base::Result;
use std::cell::RefCell;
use std::collections::BinaryHeap;

/// The query as codes see it.
struct Codes {
    numbers: Vec<f32>,
    runs: Vec<Run<i8>>,
    scale: f32,
    /// The square of its length.
    square: f32,
    /// What products with the 4-bit codes are too large by.
    shift: i32,
}

/// An entry whose distance may be one of the nearest.
#[derive(Clone, Copy)]
struct Candidate {
    low: f32,
    list: u32,
    at: u32,
}

/// By how much more lists are looked at where a filter leaves few rows, at the most.
const MOST_WIDER: f64 = 16.0;

/// The nearest rows, nearest first; none: the table is to be scanned.
pub(crate) fn nearest(store: &Store, kept: &RefCell<Kept>, ask: Ask<'_>) -> Result<Option<Vec<Found>>> {
    let t = Tables { store, column: ask.column };
    let metric = store.config.vectors[ask.column].metric;
    let mut numbers = ask.query.numbers().to_vec();
    if !prepared(metric, &mut numbers) {
        return Ok(None);
    }
    // Taken out while it is used: reading the tables may run a search within this one.
    let mut own = kept.take();
    let (notes, mut index) = own.take(t)?;
    let answer = if index.header.lists <= ODD {
        Ok(None)
    } else {
        let mut runs = Vec::new();
        let (scale, _, length) = widest(quantized::Codes { numbers: &numbers, codes: &mut runs });
        let (square, shift) = (length * length, 8 * total(&runs));
        search(t, &mut index, &Codes { numbers, runs, scale, square, shift }, ask)
    };
    if answer.is_ok() {
        own.put(t, (notes, index));
    }
    kept.replace(own);
    answer
}

fn search(t: Tables<'_>, index: &mut Index, q: &Codes, mut ask: Ask<'_>) -> Result<Option<Vec<Found>>> {
    let total = index.header.lists as usize - 1;
    let declared = t.store.config.vectors[t.column].lists().map_or(1, |i| i.probes);
    let probes = match (ask.effort, index.header.probes as usize) {
        (Some(n), _) => n,
        (None, 0) => declared,
        (None, n) => n,
    };
    let probes = probes.clamp(1, total);
    let rows = total * (index.header.limit as usize / 4).max(1);
    let (metric, mut nearest) = (t.metric(), Nearest::default());
    let (mut looked, mut passed) = (0usize, 0usize);
    let bytes = t.store.config.vectors[t.column].bytes();
    let (mut reader, mut read) = (t.store.reader(t.column), Vec::new());
    if !tail(t, index, &mut ask, &mut nearest)? {
        return Ok(None);
    }
    // The odd list is the first of all.
    let (mut from, mut until) = (0, probes + 1);
    loop {
        let lists = index.nearest_lists((&q.runs, q.scale, q.square), until - 1);
        let candidates = candidates(t, index, q, &ask, lists.get(from..).unwrap_or_default(), &nearest)?;
        let mut next = candidates.iter().copied().peekable();
        loop {
            let worst = nearest.worst(metric, ask.k);
            let mut group: [Option<Row>; LANES] = Default::default();
            let mut found = 0;
            while found < LANES
                && let Some(c) = next.next_if(|c| c.low <= worst)
            {
                let list = index.list(t, c.list)?;
                let at = c.at as usize;
                let (place, rowid) = (unpacked(list.places[at]), list.rowids[at]);
                if let Some(filter) = &mut ask.filter {
                    looked += 1;
                    match filter(place, rows)? {
                        None => return Ok(None),
                        Some(false) => continue,
                        Some(true) => passed += 1,
                    }
                }
                let mut vector: Vec<u8> = read.pop().unwrap_or_default();
                vector.resize(bytes, 0);
                if list.pieces[at].is_empty() {
                    let chunk = t.store.chunk(place.chunk)?;
                    if place.at >= chunk.size || !chunk.is_taken(place.at) || chunk.rowid(place.at) != rowid {
                        return Err(corrupt());
                    }
                    reader.read(place, &mut vector)?;
                    index.found(c.list, c.at, reader.pieces(place)?);
                } else {
                    reader.read_pieces(&list.pieces[at], &mut vector)?;
                }
                group[found] = Some(Row { place, rowid, vector });
                found += 1;
            }
            if found == 0 {
                break;
            }
            nearest.measure_group(&ask, &group);
            read.extend(group.into_iter().flatten().map(|row| row.vector));
        }
        let wanted = match (&ask.filter, passed) {
            (None, _) => probes as f64,
            (Some(_), 0) => probes as f64 * MOST_WIDER,
            (Some(_), n) => probes as f64 * (looked as f64 / n as f64).sqrt().min(MOST_WIDER),
        };
        let wanted = (wanted as usize).min(total).max(if nearest.len() < ask.k { 4 * until } else { 0 });
        if until > total || until > wanted {
            return Ok(Some(nearest.into_sorted()));
        }
        (from, until) = (lists.len(), (wanted + 1).min(total + 1));
    }
}

/// Measures the rows that are in no list; false: the table is to be scanned.
fn tail(t: Tables<'_>, index: &mut Index, ask: &mut Ask<'_>, nearest: &mut Nearest) -> Result<bool> {
    let rows = usize::MAX;
    for waiting in index.tail(t)? {
        if let Some(filter) = &mut ask.filter {
            match filter(waiting.place, rows)? {
                None => return Ok(false),
                Some(false) => continue,
                Some(true) => {}
            }
        }
        nearest.measure(ask, waiting.place, waiting.rowid, &waiting.vector);
    }
    Ok(true)
}

/// The entries of lists that may be among the nearest, by their least distance.
fn candidates(
    t: Tables<'_>,
    index: &mut Index,
    q: &Codes,
    ask: &Ask<'_>,
    lists: &[u32],
    nearest: &Nearest,
) -> Result<Vec<Candidate>> {
    let n = t.dimensions();
    let plain = ask.filter.is_none();
    let mut worst = nearest.worst(t.metric(), ask.k);
    let beyond = square(t.metric(), ask.least);
    let (mut out, mut sums, mut low, mut high) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    // The `k` smallest greatest distances.
    let mut greatest: BinaryHeap<u32> = BinaryHeap::new();
    for (i, list) in lists.iter().enumerate() {
        if let Some(next) = lists.get(i + 1) {
            index.will_want(*next);
        }
        let c = &index.centroids[(*list as usize - 1) * n..][..n];
        let centre = widest(Between(&q.numbers, c));
        let entries = index.list(t, *list)?;
        let len = entries.places.len();
        if *list == ODD {
            out.extend((0..len as u32).map(|at| Candidate { low: f32::NEG_INFINITY, list: ODD, at }));
            continue;
        }
        nibble_products(&entries.codes, &q.runs, &mut sums);
        low.resize(len.max(low.len()), 0.0);
        high.resize(low.len(), 0.0);
        widest(Estimates {
            products: &sums,
            scales: &entries.scales,
            constants: &entries.constants,
            query: (q.scale, q.shift, centre),
            low: &mut low,
            high: &mut high,
        });
        for (at, (least, most)) in low.iter().zip(&high).take(len).enumerate() {
            if *least > worst || *most < beyond {
                continue;
            }
            out.push(Candidate { low: *least, list: *list, at: at as u32 });
            if plain && *least >= beyond {
                // Bits of numbers that are not negative have their order.
                let most = most.max(0.0).to_bits();
                if greatest.len() < ask.k {
                    greatest.push(most);
                } else if greatest.peek().is_some_and(|top| most < *top) {
                    greatest.pop();
                    greatest.push(most);
                }
                if greatest.len() == ask.k {
                    worst = greatest.peek().map_or(worst, |top| worst.min(f32::from_bits(*top)));
                }
            }
        }
    }
    out.retain(|c| c.low <= worst);
    out.sort_unstable_by(|a, b| a.low.total_cmp(&b.low));
    Ok(out)
}
