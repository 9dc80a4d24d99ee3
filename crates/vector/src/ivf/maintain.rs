//! How an index follows its table.
//!
//! ```text
//! insert -> tail (one page) -- full --> each row to the list of its nearest centroid -- more than the limit --> two lists
//! delete -> out of the tail or of its list, which the map of places names
//! rebuild: new centroids from a sample, all lists anew
//! ```
//!
//! All of it is changes of tables within the statement that changes the row: it is undone with it.

use super::code::{encode, prepared};
use super::format::{Entry, Header, ODD, Row, TAIL, packed, unpacked};
use super::lists::Tables;
use super::train::{Blocks, SAMPLE, draw, halves, train};
use crate::config::Ivf;
use crate::kernel::numbers;
use crate::store::{Place, Store, corrupt};
use iolite_base::{Error, Result, alloc};

/// Rows of a list, where nothing else is wanted.
const ROWS: usize = 256;
/// From so many of a chunk's vectors on it is read whole.
const MANY: usize = 6;
/// The largest number that a command sets.
const MOST_PROBES: u32 = 1 << 20;

fn options(t: Tables<'_>) -> Ivf {
    t.store.config.vectors[t.column].lists().unwrap_or(Ivf { lists: 0, probes: 1, train: 0 })
}

fn all(store: &Store) -> impl Iterator<Item = Tables<'_>> {
    store.config.with_lists().map(move |column| Tables { store, column })
}

/// Makes the indexes of a new table.
pub(crate) fn create(store: &Store) -> Result<()> {
    for t in all(store) {
        t.add_header(&Header::new(t.dimensions(), store.page_size()?))?;
    }
    Ok(())
}

/// What is inserted into the column of the table's name.
pub(crate) fn command(store: &Store, text: &[u8]) -> Result<()> {
    let text = &*String::from_utf8_lossy(text);
    let probes = text.strip_prefix("probes=").map(str::parse::<u32>);
    for t in all(store) {
        match (text, &probes) {
            ("rebuild", _) => rebuild(t)?,
            (_, Some(Ok(n))) if *n <= MOST_PROBES => {
                let mut h = t.header()?;
                h.probes = *n;
                t.set_header(&h)?;
            }
            _ => return Err(Error::sql(format!("unknown command for a vec0 table: {text}"))),
        }
    }
    Ok(())
}

/// A vector as the index sees it, from its bytes; false: it belongs to the odd list.
fn seen(t: Tables<'_>, bytes: &[u8]) -> (Vec<f32>, bool) {
    let c = &t.store.config.vectors[t.column];
    let mut x = numbers(c.kind, bytes);
    let usual = prepared(c.metric, &mut x);
    (x, usual)
}

/// A row was added, or has another vector.
pub(crate) fn added(store: &Store, column: usize, place: Place) -> Result<()> {
    let t = Tables { store, column };
    let mut h = t.header()?;
    if h.lists == 0 {
        let wanted = options(t).train;
        // Counted where a chunk begins.
        if wanted > 0 && place.at == 0 && t.rows()? > wanted {
            return rebuild(t);
        }
        return Ok(());
    }
    h.tail.push(packed(place)?);
    if h.tail.len() < TAIL {
        return t.set_header(&h);
    }
    flush(t, h)
}

/// A row is about to be removed, or to get another vector.
pub(crate) fn removed(store: &Store, column: usize, place: Place) -> Result<()> {
    let t = Tables { store, column };
    let mut h = t.header()?;
    if h.lists == 0 {
        return Ok(());
    }
    let p = packed(place)?;
    let mut lists = t.lists_of(place.chunk)?.unwrap_or_default();
    match lists.get(place.at).copied().unwrap_or(0) {
        0 => {
            let at = h.tail.iter().position(|x| *x == p).ok_or_else(corrupt)?;
            h.tail.swap_remove(at);
            t.set_header(&h)
        }
        list if list <= h.lists => {
            t.take(&h, list, p)?;
            lists[place.at] = 0;
            t.set_lists_of(place.chunk, &lists)
        }
        _ => Err(corrupt()),
    }
}

/// A chunk is gone.
pub(crate) fn forget_chunk(store: &Store, chunk: i64) -> Result<()> {
    all(store).try_for_each(|t| t.forget_chunk(chunk))
}

/// Hands the rows at places, sorted, to `f`: place, rowid, vector.
fn read_places(
    t: Tables<'_>,
    places: &[Place],
    mut f: impl FnMut(Place, i64, &[u8]) -> Result<()>,
) -> Result<()> {
    let bytes = t.store.config.vectors[t.column].bytes();
    for same in places.chunk_by(|a, b| a.chunk == b.chunk) {
        let chunk = t.store.chunk(same[0].chunk)?;
        let whole = if same.len() >= MANY { Some(t.store.vectors(t.column, &chunk)?) } else { None };
        for place in same {
            if place.at >= chunk.size || !chunk.is_taken(place.at) {
                return Err(corrupt());
            }
            match &whole {
                Some(w) => f(*place, chunk.rowid(place.at), &w[bytes * place.at..][..bytes])?,
                None => f(*place, chunk.rowid(place.at), &t.store.vector(t.column, *place)?)?,
            }
        }
    }
    Ok(())
}

/// An entry for a vector in a list.
fn entry(x: &[f32], usual: bool, centroid: &[f32], place: Place, rowid: i64) -> Result<Entry> {
    let mut e = Entry { place: packed(place)?, rowid, ..Entry::default() };
    if usual {
        encode(x, centroid, &mut e);
    } else {
        let nothing = vec![0.0; x.len()];
        encode(&nothing, &nothing, &mut e);
    }
    Ok(e)
}

/// The rows of the tail go into lists.
fn flush(t: Tables<'_>, mut h: Header) -> Result<()> {
    let n = t.dimensions();
    let (_, centroids) = t.directory()?;
    let usable = Blocks::new(centroids.get(n..).ok_or_else(corrupt)?, n)?;
    let mut places: Vec<Place> = h.tail.drain(..).map(unpacked).collect();
    places.sort_unstable_by_key(|p| (p.chunk, p.at));
    let (mut noted, mut entries) = (Vec::new(), Vec::new());
    read_places(t, &places, |place, rowid, bytes| {
        let (x, usual) = seen(t, bytes);
        let mut list = ODD;
        if usual && usable.len > 0 {
            list = usable.nearest(&x).0 as u32 + 2;
        }
        entries.push((list, entry(&x, usual, &centroids[(list - 1) as usize * n..][..n], place, rowid)?));
        noted.push((place, list));
        Ok(())
    })?;
    t.note(&noted)?;
    entries.sort_by_key(|e| e.0);
    let mut long = Vec::new();
    for same in entries.chunk_by(|a, b| a.0 == b.0) {
        let list = same[0].0;
        let own: Vec<Entry> = same.iter().map(|e| e.1.clone()).collect();
        if t.append(&h, list, &own)? > h.limit as usize && list != ODD {
            long.push(list);
        }
    }
    for list in long {
        split(t, &mut h, list)?;
    }
    t.set_header(&h)
}

/// A list becomes two.
fn split(t: Tables<'_>, h: &mut Header, list: u32) -> Result<()> {
    let n = t.dimensions();
    let mut places = Vec::new();
    t.list(h, list, |row| {
        places.extend((0..row.len()).map(|k| unpacked(row.place(k))));
        Ok(())
    })?;
    places.sort_unstable_by_key(|p| (p.chunk, p.at));
    let (mut points, mut rows) = (Vec::new(), Vec::new());
    read_places(t, &places, |place, rowid, bytes| {
        let (x, usual) = seen(t, bytes);
        if !usual {
            return Err(corrupt());
        }
        alloc::reserve(&mut points, n)?;
        points.extend_from_slice(&x);
        rows.push((place, rowid));
        Ok(())
    })?;
    let centroids = halves(&points, n)?;
    let blocks = Blocks::new(&centroids, n)?;
    let mut parts = [Vec::new(), Vec::new()];
    for ((place, rowid), x) in rows.iter().zip(points.chunks_exact(n)) {
        let (half, _) = blocks.nearest(x);
        let half = half.min(1);
        parts[half].push(entry(x, true, &centroids[half * n..][..n], *place, *rowid)?);
    }
    if parts.iter().any(Vec::is_empty) {
        // All are alike, and nothing divides them: it is tried again when there are twice as many.
        h.limit = h.limit.max(2 * places.len() as u32);
        return Ok(());
    }
    let new = h.lists + 1;
    h.lists = new;
    for (half, list) in [list, new].into_iter().enumerate() {
        t.set_centroid(list, &centroids[half * n..][..n])?;
        t.replace(h, list, parts[half].iter())?;
    }
    let moved: Vec<(Place, u32)> = parts[1].iter().map(|e| (unpacked(e.place), new)).collect();
    t.note(&moved)
}

/// Makes all lists anew.
fn rebuild(t: Tables<'_>) -> Result<()> {
    let (n, store) = (t.dimensions(), t.store);
    let mut rows = 0usize;
    store.chunks("1", &[], |chunk| {
        rows += (0..chunk.size).filter(|at| chunk.is_taken(*at)).count();
        Ok(())
    })?;
    let wanted = match options(t).lists {
        0 => rows.div_ceil(ROWS),
        lists => lists,
    };
    let wanted = wanted.clamp(1, rows.max(1));
    // A sample: rows are drawn, since every so many-th may be of a kind.
    let step = (rows / (wanted * SAMPLE)).max(1);
    let (mut sample, mut seed) = (Vec::new(), 7);
    alloc::reserve(&mut sample, (rows / step) * n)?;
    let bytes = store.config.vectors[t.column].bytes();
    store.chunks("1", &[], |chunk| {
        let vectors = store.vectors(t.column, &chunk)?;
        for at in (0..chunk.size).filter(|at| chunk.is_taken(*at)) {
            if draw(&mut seed, step) == 0 {
                let (x, usual) = seen(t, &vectors[bytes * at..][..bytes]);
                if usual {
                    alloc::reserve(&mut sample, n)?;
                    sample.extend_from_slice(&x);
                }
            }
        }
        Ok(())
    })?;
    let groups = train(&sample, n, wanted, &|| store.check_interrupt())?;
    drop(sample);
    t.wipe()?;
    let mut h = Header::new(n, store.page_size()?);
    h.probes = t.header()?.probes;
    h.lists = (groups.centroids.len() / n + 1) as u32;
    h.limit = (4 * rows / wanted).max(2 * ROWS) as u32;
    t.wipe()?;
    let nothing = vec![0.0; n];
    let centroid = |k: usize| match k {
        0 => &nothing[..],
        k => &groups.centroids[(k - 1) * n..][..n],
    };
    let mut lists: Vec<Vec<Row>> = Vec::new();
    alloc::reserve(&mut lists, h.lists as usize)?;
    for k in 0..h.lists {
        lists.push(vec![Row::new(h.layout(), k + 1, 0)?]);
    }
    let (mut near, mut chunks) = (Vec::new(), Vec::new());
    store.chunks("1", &[], |chunk| {
        let vectors = store.vectors(t.column, &chunk)?;
        let mut own = vec![0u32; chunk.size];
        for at in (0..chunk.size).filter(|at| chunk.is_taken(*at)) {
            let (x, usual) = seen(t, &vectors[bytes * at..][..bytes]);
            let k = if usual { groups.nearest(&x, &mut near) + 1 } else { 0 };
            let place = Place { chunk: chunk.id, at };
            let e = entry(&x, usual, centroid(k), place, chunk.rowid(at))?;
            let list = &mut lists[k];
            if list.last().is_none_or(Row::is_full) {
                alloc::reserve(list, 1)?;
                list.push(Row::new(h.layout(), k as u32 + 1, list.len())?);
            }
            if let Some(row) = list.last_mut() {
                row.push(&e);
            }
            own[at] = k as u32 + 1;
        }
        alloc::reserve(&mut chunks, 1)?;
        chunks.push((chunk.id, own));
        Ok(())
    })?;
    for (chunk, own) in &chunks {
        t.set_lists_of(*chunk, own)?;
    }
    for (k, mut rows) in lists.into_iter().enumerate() {
        t.set_centroid(k as u32 + 1, centroid(k))?;
        t.add_rows(&mut rows)?;
    }
    t.add_header(&h)
}
