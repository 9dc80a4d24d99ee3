//! The tables of an index: reading and writing headers, centroids, lists and the map of places.
//!
//! What always holds: what is read was looked over; a list that lacks a row is `SQLITE_CORRUPT_VTAB`.

use super::format::{Entry, Header, Row, centroid_row, key, read_centroid};
use crate::config::MOST_CHUNK;
use crate::kernel::Metric;
use crate::store::{Place, Store, corrupt};
use iolite_base::{Bytes, Code, Result, alloc};
use iolite_ext::{Changes, ReadNote};
use iolite_value::Value;

/// The header, and rows of codes where many fit on a page, are not longer than that.
const MOST_BESIDE: usize = 4050;

/// The index of one column.
#[derive(Clone, Copy)]
pub(crate) struct Tables<'a> {
    pub store: &'a Store,
    pub column: usize,
}

fn blob(bytes: &[u8]) -> Result<Value> {
    Ok(Value::Blob(Bytes::copy_of(bytes)?, 0))
}

fn blob_of(v: Option<&Value>) -> Result<&Bytes> {
    match v {
        Some(Value::Blob(b, _)) => Ok(b),
        _ => Err(corrupt()),
    }
}

impl Tables<'_> {
    pub fn dimensions(&self) -> usize {
        self.store.config.vectors[self.column].dimensions
    }

    pub fn metric(&self) -> Metric {
        self.store.config.vectors[self.column].metric
    }

    fn suffix(&self, what: &str) -> String {
        format!("ivf_{what}{:02}", self.column)
    }

    fn name(&self, what: &str) -> String {
        self.store.shadow(&self.suffix(what))
    }

    pub fn header(&self) -> Result<Header> {
        let sql = format!("SELECT data FROM {} WHERE list=0", self.name("lists"));
        let found = self.store.row(sql, &[], |row| Header::read(blob_of(row.first())?, self.dimensions()))?;
        found.ok_or_else(corrupt)
    }

    /// What has changed in centroids and codes, and in where vectors are: chunks and vectors, or, where those are many, the whole database.
    pub fn changes(&self, many: bool, notes: &mut [ReadNote; 2]) -> Option<[Changes; 2]> {
        let (lists, codes) = (self.suffix("lists"), self.suffix("codes"));
        // Some of these go beyond a leaf where a vector has many dimensions.
        let longest = MOST_BESIDE.max(self.dimensions() * 4 + 8);
        let index = self.store.changes(&[(&lists, longest), (&codes, longest)], &mut notes[0])?;
        let vectors = match many {
            true => self.store.changes(&[], &mut notes[1])?,
            false => self.store.vector_changes(self.column, &mut notes[1])?,
        };
        Some([index, vectors])
    }

    /// The centroid of a list.
    pub fn centroid(&self, list: i64) -> Result<Vec<f32>> {
        let sql = format!("SELECT data FROM {} WHERE list=?1", self.name("lists"));
        let found = self.store.row(sql, &[Value::Int(list)], |row| {
            let mut numbers = Vec::new();
            read_centroid(blob_of(row.first())?, self.dimensions(), &mut numbers)?;
            Ok(numbers)
        })?;
        found.ok_or_else(corrupt)
    }

    /// Writes the header where it lies.
    pub fn set_header(&self, h: &Header) -> Result<()> {
        self.store.write(&self.suffix("lists"), "data", 0, 0, &h.write())
    }

    pub fn add_header(&self, h: &Header) -> Result<()> {
        self.put("lists", 0, &h.write())
    }

    fn put(&self, what: &str, id: i64, bytes: &[u8]) -> Result<()> {
        let sql = format!("INSERT OR REPLACE INTO {} VALUES(?1,?2)", self.name(what));
        self.store.run(sql, &[Value::Int(id), blob(bytes)?])
    }

    /// Header and centroids. That of list 1 is nothing but zeros.
    pub fn directory(&self) -> Result<(Header, Vec<f32>)> {
        let sql = format!("SELECT list,data FROM {} ORDER BY list", self.name("lists"));
        let (mut header, mut centroids, mut next) = (None, Vec::new(), 1i64);
        self.store.rows(sql, &[], |row| {
            let (id, data) = (row.first().map_or(-1, Value::to_int), blob_of(row.get(1))?);
            match &header {
                None if id == 0 => header = Some(Header::read(data, self.dimensions())?),
                Some(_) if id == next => {
                    alloc::reserve(&mut centroids, self.dimensions())?;
                    read_centroid(data, self.dimensions(), &mut centroids)?;
                    next += 1;
                }
                _ => return Err(corrupt()),
            }
            Ok(true)
        })?;
        let header = header.ok_or_else(corrupt)?;
        if i64::from(header.lists) != next - 1 {
            return Err(corrupt());
        }
        Ok((header, centroids))
    }

    pub fn set_centroid(&self, list: u32, numbers: &[f32]) -> Result<()> {
        self.put("lists", i64::from(list), &centroid_row(numbers))
    }

    /// Hands the rows of a list to `f`, in order.
    pub fn list(&self, h: &Header, list: u32, mut f: impl FnMut(Row) -> Result<()>) -> Result<()> {
        let sql = format!("SELECT id,data FROM {} WHERE id>=?1 AND id<?2 ORDER BY id", self.name("codes"));
        let range = [Value::Int(key(list, 0)), Value::Int(key(list + 1, 0))];
        let (layout, mut next, mut ended) = (h.layout(), 0, false);
        self.store.rows(sql, &range, |row| {
            let id = row.first().map_or(-1, Value::to_int);
            let row = Row::read(layout, id, blob_of(row.get(1))?)?;
            if ended || id != key(list, next) || (row.goes_on() && !row.is_full()) {
                return Err(corrupt());
            }
            (next, ended) = (next + 1, !row.goes_on());
            f(row)?;
            Ok(true)
        })?;
        if ended { Ok(()) } else { Err(corrupt()) }
    }

    /// The last row of a list.
    fn last(&self, h: &Header, list: u32) -> Result<Row> {
        let sql = format!(
            "SELECT id,data FROM {} WHERE id>=?1 AND id<?2 ORDER BY id DESC LIMIT 1",
            self.name("codes")
        );
        let range = [Value::Int(key(list, 0)), Value::Int(key(list + 1, 0))];
        let layout = h.layout();
        let found = self.store.row(sql, &range, |row| {
            Row::read(layout, row.first().map_or(-1, Value::to_int), blob_of(row.get(1))?)
        })?;
        found.filter(|r| !r.goes_on()).ok_or_else(corrupt)
    }

    fn overwrite(&self, row: &mut Row) -> Result<()> {
        let id = row.key();
        self.store.write(&self.suffix("codes"), "data", id, 0, row.finished())
    }

    /// Adds entries to a list; answers how many it has then.
    pub fn append(&self, h: &Header, list: u32, entries: &[Entry]) -> Result<usize> {
        let mut row = self.last(h, list)?;
        let mut is_new = false;
        for e in entries {
            if row.is_full() {
                row.set_goes_on(true);
                self.finish(&mut row, is_new)?;
                (row, is_new) = (Row::new(h.layout(), list, row.sequence() + 1)?, true);
            }
            row.push(e);
        }
        self.finish(&mut row, is_new)?;
        Ok(row.sequence() * row.layout.capacity + row.len())
    }

    fn finish(&self, row: &mut Row, is_new: bool) -> Result<()> {
        let id = row.key();
        if is_new { self.put("codes", id, row.finished()) } else { self.overwrite(row) }
    }

    /// Makes the rows of a list anew.
    pub fn replace<'e>(&self, h: &Header, list: u32, entries: impl Iterator<Item = &'e Entry>) -> Result<()> {
        self.clear(list)?;
        let mut row = Row::new(h.layout(), list, 0)?;
        for e in entries {
            if row.is_full() {
                row.set_goes_on(true);
                self.finish(&mut row, true)?;
                row = Row::new(h.layout(), list, row.sequence() + 1)?;
            }
            row.push(e);
        }
        self.finish(&mut row, true)
    }

    /// Writes the rows of a list that has none.
    pub fn add_rows(&self, rows: &mut [Row]) -> Result<()> {
        let n = rows.len();
        for (k, row) in rows.iter_mut().enumerate() {
            row.set_goes_on(k + 1 < n);
            self.finish(row, true)?;
        }
        Ok(())
    }

    fn clear(&self, list: u32) -> Result<()> {
        let sql = format!("DELETE FROM {} WHERE id>=?1 AND id<?2", self.name("codes"));
        self.store.run(sql, &[Value::Int(key(list, 0)), Value::Int(key(list + 1, 0))])
    }

    /// Takes the entry of a place out of a list: the last one gets its place.
    pub fn take(&self, h: &Header, list: u32, place: u64) -> Result<()> {
        let mut rows: Vec<Row> = Vec::new();
        self.list(h, list, |row| {
            rows.push(row);
            Ok(())
        })?;
        let at = rows
            .iter()
            .enumerate()
            .find_map(|(r, row)| (0..row.len()).find(|k| row.place(*k) == place).map(|k| (r, k)));
        let (r, k) = at.ok_or_else(corrupt)?;
        let last = rows.len() - 1;
        // Only the last row of a list may be empty, and only if it is the first.
        let moved = rows[last].pop().ok_or_else(corrupt)?;
        if (r, k) != (last, rows[last].len()) {
            rows[r].set(k, &moved);
            if r != last {
                self.overwrite(&mut rows[r])?;
            }
        }
        if rows[last].len() > 0 || last == 0 {
            return self.overwrite(&mut rows[last]);
        }
        let sql = format!("DELETE FROM {} WHERE id=?1", self.name("codes"));
        self.store.run(sql, &[Value::Int(rows[last].key())])?;
        rows[last - 1].set_goes_on(false);
        self.overwrite(&mut rows[last - 1])
    }

    /// Forgets everything but the header.
    pub fn wipe(&self) -> Result<()> {
        self.store.run(format!("DELETE FROM {}", self.name("codes")), &[])?;
        self.store.run(format!("DELETE FROM {}", self.name("places")), &[])?;
        self.store.run(format!("DELETE FROM {} WHERE list<>0", self.name("lists")), &[])
    }

    /// Which list has each place of a chunk; none: the chunk is not known.
    pub fn lists_of(&self, chunk: i64) -> Result<Option<Vec<u32>>> {
        let sql = format!("SELECT lists FROM {} WHERE chunk_id=?1", self.name("places"));
        self.store.row(sql, &[Value::Int(chunk)], |row| {
            let b = blob_of(row.first())?;
            if b.len() % 4 != 0 || b.len() > 4 * MOST_CHUNK {
                return Err(corrupt());
            }
            Ok(b.as_chunks::<4>().0.iter().map(|n| u32::from_le_bytes(*n)).collect())
        })
    }

    /// Sets them.
    pub fn set_lists_of(&self, chunk: i64, lists: &[u32]) -> Result<()> {
        let bytes: Vec<u8> = lists.iter().flat_map(|n| n.to_le_bytes()).collect();
        self.put("places", chunk, &bytes)
    }

    /// Notes the lists of places, sorted by place.
    pub fn note(&self, places: &[(Place, u32)]) -> Result<()> {
        for same in places.chunk_by(|a, b| a.0.chunk == b.0.chunk) {
            let chunk = same[0].0.chunk;
            let mut lists = self.lists_of(chunk)?.unwrap_or_default();
            lists.resize(self.store.config.chunk_size.max(lists.len()), 0);
            for (place, list) in same {
                *lists.get_mut(place.at).ok_or(Code::CorruptVtab)? = *list;
            }
            self.set_lists_of(chunk, &lists)?;
        }
        Ok(())
    }

    /// Forgets a chunk.
    pub fn forget_chunk(&self, chunk: i64) -> Result<()> {
        self.store.run(format!("DELETE FROM {} WHERE chunk_id=?1", self.name("places")), &[Value::Int(chunk)])
    }

    /// How many rows the table has.
    pub fn rows(&self) -> Result<usize> {
        let sql = format!("SELECT count(*) FROM {}", self.store.shadow("rowids"));
        let rows = self.store.row(sql, &[], |row| Ok(row.first().map_or(0, Value::to_int)))?;
        Ok(usize::try_from(rows.unwrap_or(0)).unwrap_or(0))
    }
}
