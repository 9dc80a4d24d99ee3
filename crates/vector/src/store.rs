//! The shadow tables of one `vec0` table, as sqlite-vec makes them, and what is read from and written to them.
//!
//! ```text
//! _rowids         row -> its chunk and place; its key, if that is a text
//! _chunks         chunk -> partition, which places are taken, by which rows
//! _vector_chunks  chunk -> the vectors of a column, one after another      likewise _metadatachunks
//! _metadatatext   row -> a text of more than 12 bytes                      _auxiliary: row -> further columns
//! _ivf_lists, _ivf_codes, _ivf_places: the lists of a column (`ivf`), only where it has them      _hnsw_links: its graph (`hnsw`)
//! ```
//!
//! Parts of a chunk are read and written where they lie. Statements are kept; one is taken out while it runs. What is read is not
//! trusted: sizes and places that cannot be are `SQLITE_CORRUPT_VTAB`.

use crate::config::{Config, MOST_CHUNK, Type};
use crate::functions::VERSION;
use iolite_base::{Bytes, Code, Error, Result};
use iolite_ext::{Changes, Host, NestedBlob, NestedStatement, Piece, ReadNote, WasRead};
use iolite_value::Value;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};

/// The columns of the table of a graph's links.
pub(crate) const LINKS: &str = "(id INTEGER PRIMARY KEY,data BLOB NOT NULL)";

/// A table's shadow tables.
pub(crate) struct Store {
    pub database: String,
    pub table: String,
    pub config: Config,
    host: Weak<dyn Host>,
    kept: RefCell<HashMap<String, Box<dyn NestedStatement>>>,
}

/// Where a row is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub chunk: i64,
    pub at: usize,
}

/// A chunk: which of its places are taken, and by which rows.
pub(crate) struct Chunk {
    pub id: i64,
    pub size: usize,
    validity: Bytes,
    rowids: Bytes,
}

impl Chunk {
    pub fn is_taken(&self, at: usize) -> bool {
        self.validity[at / 8] >> (at % 8) & 1 != 0
    }

    pub fn rowid(&self, at: usize) -> i64 {
        let mut b = [0; 8];
        b.copy_from_slice(&self.rowids[8 * at..8 * at + 8]);
        i64::from_le_bytes(b)
    }
}

pub(crate) fn corrupt() -> Error {
    Code::CorruptVtab.into()
}

/// A name as SQL quotes it.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Whether this is how the name of a shadow table ends.
pub(crate) fn is_shadow(suffix: &str) -> bool {
    let s = suffix.to_ascii_lowercase();
    let numbered =
        |p: &str| s.strip_prefix(p).is_some_and(|n| n.len() == 2 && n.bytes().all(|b| b.is_ascii_digit()));
    matches!(&*s, "info" | "chunks" | "rowids" | "auxiliary")
        || numbered("vector_chunks")
        || numbered("metadatachunks")
        || numbered("metadatatext")
        || numbered("ivf_lists")
        || numbered("ivf_codes")
        || numbered("ivf_places")
        || numbered("hnsw_links")
}

fn bytes_of(v: Option<&Value>) -> Result<Bytes> {
    match v {
        Some(Value::Blob(b, _)) => Ok(b.clone()),
        _ => Err(corrupt()),
    }
}

impl Store {
    pub fn new(host: &Rc<dyn Host>, (database, table): (&str, &str), config: Config) -> Store {
        let (database, table) = (database.to_string(), table.to_string());
        Store { database, table, config, host: Rc::downgrade(host), kept: RefCell::default() }
    }

    fn host(&self) -> Result<Rc<dyn Host>> {
        self.host.upgrade().ok_or_else(|| Code::Misuse.into())
    }

    /// What has changed in shadow tables, of which values up to so many bytes were read: see [`Host::changed_since`].
    pub fn changes(&self, tables: &[(&str, usize)], note: &mut ReadNote) -> Option<Changes> {
        let read: Vec<WasRead> =
            tables.iter().map(|(t, longest)| WasRead { table: self.plain(t), longest: *longest }).collect();
        self.host().ok()?.changed_since(&self.database, &read, note)
    }

    /// What has changed in the chunks and in a column's vectors.
    pub fn vector_changes(&self, column: usize, note: &mut ReadNote) -> Option<Changes> {
        self.host().ok()?.changed_since(&self.database, &self.vectors_read(column), note)
    }

    /// The same, with what the present transaction has changed; the note stays: see [`Host::changed_within`].
    pub fn vector_changes_within(&self, column: usize, note: &ReadNote) -> Option<Changes> {
        self.host().ok()?.changed_within(&self.database, &self.vectors_read(column), note)
    }

    fn vectors_read(&self, column: usize) -> [WasRead; 2] {
        let bytes = self.config.vectors[column].bytes();
        [
            WasRead { table: self.plain("chunks"), longest: 8 * MOST_CHUNK },
            WasRead { table: self.plain(&format!("vector_chunks{column:02}")), longest: bytes * MOST_CHUNK },
        ]
    }

    pub fn shadow(&self, suffix: &str) -> String {
        format!("{}.{}", quoted(&self.database), quoted(&format!("{}_{suffix}", self.table)))
    }

    fn plain(&self, suffix: &str) -> String {
        format!("{}_{suffix}", self.table)
    }

    /// The names of all of them behind the table's.
    fn suffixes(&self) -> Vec<String> {
        let c = &self.config;
        let mut all: Vec<String> = ["info", "chunks", "rowids"].map(String::from).to_vec();
        all.extend((0..c.vectors.len()).map(|k| format!("vector_chunks{k:02}")));
        for (k, m) in c.metadata.iter().enumerate() {
            all.push(format!("metadatachunks{k:02}"));
            if m.ty == Type::Text {
                all.push(format!("metadatatext{k:02}"));
            }
        }
        if !c.auxiliary.is_empty() {
            all.push("auxiliary".into());
        }
        for k in c.with_lists() {
            all.extend(["lists", "codes", "places"].map(|what| format!("ivf_{what}{k:02}")));
        }
        all.extend(c.with_graphs().map(|k| format!("hnsw_links{k:02}")));
        all
    }

    /// Makes the tables.
    pub fn create(&self) -> Result<()> {
        let host = self.host()?;
        let partitions: String =
            (0..self.config.partitions.len()).map(|k| format!("partition{k:02},")).collect();
        for suffix in self.suffixes() {
            let columns = match &*suffix {
                "info" => " (key text primary key, value any)".to_string(),
                "chunks" if partitions.is_empty() => "(chunk_id INTEGER PRIMARY KEY AUTOINCREMENT,size INTEGER NOT NULL,validity BLOB NOT NULL,rowids BLOB NOT NULL)".to_string(),
                "chunks" => format!("(chunk_id INTEGER PRIMARY KEY AUTOINCREMENT,size INTEGER NOT NULL,sequence_id integer,{partitions}validity BLOB NOT NULL, rowids BLOB NOT NULL)"),
                "rowids" => {
                    let id = if self.config.text_key { "id TEXT UNIQUE NOT NULL" } else { "id" };
                    format!("(rowid INTEGER PRIMARY KEY AUTOINCREMENT,{id},chunk_id INTEGER,chunk_offset INTEGER)")
                }
                "auxiliary" => {
                    let values: Vec<String> =
                        (0..self.config.auxiliary.len()).map(|k| format!("value{k:02}")).collect();
                    format!("( rowid integer PRIMARY KEY , {})", values.join(", "))
                }
                s if s.starts_with("ivf_lists") => "(list INTEGER PRIMARY KEY,data BLOB NOT NULL)".to_string(),
                s if s.starts_with("ivf_codes") => "(id INTEGER PRIMARY KEY,data BLOB NOT NULL)".to_string(),
                s if s.starts_with("ivf_places") => {
                    "(chunk_id INTEGER PRIMARY KEY,lists BLOB NOT NULL)".to_string()
                }
                s if s.starts_with("hnsw_links") => LINKS.to_string(),
                s if s.starts_with("vector") => "(rowid PRIMARY KEY,vectors BLOB NOT NULL)".to_string(),
                s if s.starts_with("metadatatext") => "(rowid PRIMARY KEY, data TEXT)".to_string(),
                _ => "(rowid PRIMARY KEY, data BLOB NOT NULL)".to_string(),
            };
            host.query(&format!("CREATE TABLE {}{columns}", self.shadow(&suffix)), &[])?;
        }
        let mut numbers = VERSION[1..].split('.').map(|n| n.parse::<i64>().unwrap_or(0));
        let info = format!("INSERT INTO {} VALUES(?1,?2)", self.shadow("info"));
        host.query(&info, &[Value::text("CREATE_VERSION")?, Value::text(VERSION)?])?;
        for part in ["MAJOR", "MINOR", "PATCH"] {
            let key = Value::text(format!("CREATE_VERSION_{part}"))?;
            host.query(&info, &[key, Value::Int(numbers.next().unwrap_or(0))])?;
        }
        Ok(())
    }

    pub fn rename(&self, to: &str) -> Result<()> {
        self.kept.take();
        let host = self.host()?;
        for suffix in self.suffixes() {
            let to = quoted(&format!("{to}_{suffix}"));
            host.query(&format!("ALTER TABLE {} RENAME TO {to}", self.shadow(&suffix)), &[])?;
        }
        Ok(())
    }

    pub fn destroy(&self) -> Result<()> {
        self.kept.take();
        let host = self.host()?;
        for suffix in self.suffixes() {
            host.query(&format!("DROP TABLE IF EXISTS {}", self.shadow(&suffix)), &[])?;
        }
        Ok(())
    }

    /// Runs a statement; hands each row to `f`, which says whether to go on.
    pub fn rows(
        &self,
        sql: String,
        params: &[Value],
        mut f: impl FnMut(&[Value]) -> Result<bool>,
    ) -> Result<()> {
        let kept = self.kept.borrow_mut().remove(&sql);
        let mut s = match kept {
            Some(s) => s,
            None => self.host()?.prepare(&sql)?,
        };
        for (i, v) in params.iter().enumerate() {
            s.bind(i + 1, v.clone())?;
        }
        let mut run = || {
            while s.step()? {
                if !f(s.row())? {
                    break;
                }
            }
            Ok(())
        };
        let done: Result<()> = run();
        let reset = s.reset();
        // Nothing that it was given is held on to.
        for i in 0..params.len() {
            s.bind(i + 1, Value::Null)?;
        }
        done.and(reset)?;
        self.kept.borrow_mut().insert(sql, s);
        Ok(())
    }

    pub fn row<T>(
        &self,
        sql: String,
        params: &[Value],
        f: impl Fn(&[Value]) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut found = None;
        self.rows(sql, params, |row| {
            found = Some(f(row)?);
            Ok(false)
        })?;
        Ok(found)
    }

    pub fn run(&self, sql: String, params: &[Value]) -> Result<()> {
        self.rows(sql, params, |_| Ok(true))
    }

    /// All rows, by rowid.
    pub fn rowids(&self) -> Result<Vec<i64>> {
        let mut all = Vec::new();
        self.rows(format!("SELECT rowid FROM {} ORDER BY rowid", self.shadow("rowids")), &[], |row| {
            all.try_reserve(1).map_err(|_| Error::from(Code::Nomem))?;
            all.push(row.first().map_or(0, Value::to_int));
            Ok(true)
        })?;
        Ok(all)
    }

    /// Where a row is, if there is such a row.
    pub fn place(&self, rowid: i64) -> Result<Option<Place>> {
        let sql = format!("SELECT chunk_id,chunk_offset FROM {} WHERE rowid=?1", self.shadow("rowids"));
        self.row(sql, &[Value::Int(rowid)], |row| match row {
            [Value::Int(chunk), Value::Int(at)] => match usize::try_from(*at) {
                Ok(at) if at < MOST_CHUNK => Ok(Place { chunk: *chunk, at }),
                _ => Err(corrupt()),
            },
            _ => Err(corrupt()),
        })
    }

    /// The row of a key that is a text.
    pub fn row_of_key(&self, key: &Value) -> Result<Option<i64>> {
        let sql = format!("SELECT rowid FROM {} WHERE id=?1", self.shadow("rowids"));
        self.row(sql, std::slice::from_ref(key), |row| Ok(row.first().map_or(0, Value::to_int)))
    }

    /// The key of a row.
    pub fn key_of_row(&self, rowid: i64) -> Result<Value> {
        let sql = format!("SELECT id FROM {} WHERE rowid=?1", self.shadow("rowids"));
        let found =
            self.row(sql, &[Value::Int(rowid)], |row| Ok(row.first().cloned().unwrap_or_default()))?;
        Ok(found.unwrap_or_default())
    }

    /// Writes down a new row; without a rowid one is found. Answers the rowid.
    pub fn add_row(&self, rowid: Option<i64>, key: Value, place: Place) -> Result<i64> {
        let sql = format!(
            "INSERT INTO {}(rowid,id,chunk_id,chunk_offset)VALUES(?1,?2,?3,?4)",
            self.shadow("rowids")
        );
        let rowid = rowid.map_or(Value::Null, Value::Int);
        self.run(sql, &[rowid, key, Value::Int(place.chunk), Value::Int(place.at as i64)])?;
        Ok(self.host()?.last_insert_rowid())
    }

    /// Hands the chunks to `f`, those that match `condition` on the partition columns.
    pub fn chunks(
        &self,
        condition: &str,
        params: &[Value],
        mut f: impl FnMut(Chunk) -> Result<()>,
    ) -> Result<()> {
        let sql = format!(
            "SELECT chunk_id,size,validity,rowids FROM {} WHERE {condition} ORDER BY chunk_id",
            self.shadow("chunks")
        );
        self.rows(sql, params, |row| f(chunk_of(row)?).map(|()| true))
    }

    pub fn chunk(&self, id: i64) -> Result<Chunk> {
        let sql =
            format!("SELECT chunk_id,size,validity,rowids FROM {} WHERE chunk_id=?1", self.shadow("chunks"));
        self.row(sql, &[Value::Int(id)], chunk_of)?.ok_or_else(corrupt)
    }

    /// A chunk, if it matches `condition` on the partition columns; `None` also if there is none.
    pub fn chunk_if(&self, id: i64, condition: &str, params: &[Value]) -> Result<Option<Chunk>> {
        let sql = format!(
            "SELECT chunk_id,size,validity,rowids FROM {} WHERE chunk_id=?{} AND {condition}",
            self.shadow("chunks"),
            params.len() + 1
        );
        let params: Vec<Value> = params.iter().cloned().chain([Value::Int(id)]).collect();
        self.row(sql, &params, chunk_of)
    }

    /// An error, if the statement that is running shall stop.
    pub fn check_interrupt(&self) -> Result<()> {
        self.host()?.check_interrupt()
    }

    /// How many threads work may use that takes long.
    pub fn threads(&self) -> usize {
        self.host().map_or(1, |h| h.threads())
    }

    pub fn last_insert_rowid(&self) -> i64 {
        self.host().map_or(0, |h| h.last_insert_rowid())
    }

    /// How large pages are.
    pub fn page_size(&self) -> Result<usize> {
        let rows = self.host()?.query(&format!("PRAGMA {}.page_size", quoted(&self.database)), &[])?;
        Ok(rows.first().and_then(|r| r.first()).map_or(4096, Value::to_int).clamp(512, 65536) as usize)
    }

    /// A partition column of a chunk.
    pub fn partition(&self, chunk: i64, k: usize) -> Result<Value> {
        let sql = format!("SELECT partition{k:02} FROM {} WHERE chunk_id=?1", self.shadow("chunks"));
        let found =
            self.row(sql, &[Value::Int(chunk)], |row| Ok(row.first().cloned().unwrap_or_default()))?;
        found.ok_or_else(corrupt)
    }

    /// A free place in the last chunk of a partition, or in a new one.
    pub fn free_place(&self, partition: &[Value]) -> Result<Place> {
        let same: String =
            (0..partition.len()).map(|k| format!(" AND partition{k:02} IS ?{}", k + 1)).collect();
        let sql = format!(
            "SELECT chunk_id,size,validity,rowids FROM {} WHERE 1{same} ORDER BY chunk_id DESC LIMIT 1",
            self.shadow("chunks")
        );
        if let Some(last) = self.row(sql, partition, chunk_of)?
            && let Some(at) = (0..last.size).find(|k| !last.is_taken(*k))
        {
            return Ok(Place { chunk: last.id, at });
        }
        self.new_chunk(partition).map(|chunk| Place { chunk, at: 0 })
    }

    fn new_chunk(&self, partition: &[Value]) -> Result<i64> {
        let size = self.config.chunk_size;
        let names: String = (0..partition.len()).map(|k| format!("partition{k:02},")).collect();
        let values: String = (0..partition.len()).map(|k| format!("?{},", k + 1)).collect();
        self.run(
            format!(
                "INSERT INTO {}(size,{names}validity,rowids)VALUES({size},{values}zeroblob({}),zeroblob({}))",
                self.shadow("chunks"),
                size / 8,
                8 * size
            ),
            partition,
        )?;
        let id = self.host()?.last_insert_rowid();
        let add = |suffix: String, column: &str, bytes: usize| {
            let table = self.shadow(&suffix);
            let sql = format!("INSERT INTO {table}(_rowid_,rowid,{column})VALUES(?1,?1,zeroblob({bytes}))");
            self.run(sql, &[Value::Int(id)])
        };
        for (k, v) in self.config.vectors.iter().enumerate() {
            add(format!("vector_chunks{k:02}"), "vectors", v.bytes() * size)?;
        }
        for (k, m) in self.config.metadata.iter().enumerate() {
            add(format!("metadatachunks{k:02}"), "data", m.ty.chunk_bytes(size))?;
        }
        Ok(id)
    }

    /// A place is taken by a row, or free again. The last one of a chunk takes the chunk with it: false then.
    pub fn set_taken(&self, place: Place, rowid: Option<i64>) -> Result<bool> {
        let chunk = self.chunk(place.chunk)?;
        if place.at >= chunk.size || chunk.is_taken(place.at) == rowid.is_some() {
            return Err(corrupt());
        }
        let bit = 1 << (place.at % 8);
        let byte = chunk.validity[place.at / 8] ^ bit;
        let others = chunk.validity.iter().enumerate().any(|(k, b)| k != place.at / 8 && *b != 0);
        if rowid.is_none() && byte == 0 && !others {
            let id = [Value::Int(place.chunk)];
            drop(chunk);
            self.run(format!("DELETE FROM {} WHERE chunk_id=?1", self.shadow("chunks")), &id)?;
            for suffix in self.suffixes() {
                if suffix.starts_with("vector_chunks") || suffix.starts_with("metadatachunks") {
                    self.run(format!("DELETE FROM {} WHERE _rowid_=?1", self.shadow(&suffix)), &id)?;
                }
            }
            return Ok(false);
        }
        drop(chunk);
        self.write("chunks", "validity", place.chunk, place.at / 8, &[byte])?;
        self.write("chunks", "rowids", place.chunk, 8 * place.at, &rowid.unwrap_or(0).to_le_bytes())?;
        Ok(true)
    }

    pub fn write(&self, suffix: &str, column: &str, rowid: i64, at: usize, bytes: &[u8]) -> Result<()> {
        let value = (&*self.database, &*self.plain(suffix), column);
        self.host()?.write_blob(value, rowid, at, bytes).map_err(damaged)
    }

    fn read(&self, suffix: &str, column: &str, rowid: i64, at: usize, bytes: usize) -> Result<Vec<u8>> {
        let mut out = iolite_base::alloc::zeroed(bytes)?;
        let value = (&*self.database, &*self.plain(suffix), column);
        self.host()?.read_blob(value, rowid, at, &mut out).map_err(damaged)?;
        Ok(out)
    }

    fn whole(&self, suffix: &str, column: &str, rowid: i64, bytes: usize) -> Result<Bytes> {
        let sql = format!("SELECT {column} FROM {} WHERE _rowid_=?1", self.shadow(suffix));
        let found = self.row(sql, &[Value::Int(rowid)], |row| bytes_of(row.first()))?;
        found.filter(|b| b.len() == bytes).ok_or_else(corrupt)
    }

    /// All vectors of a chunk.
    pub fn vectors(&self, k: usize, chunk: &Chunk) -> Result<Bytes> {
        let bytes = self.config.vectors[k].bytes() * chunk.size;
        self.whole(&format!("vector_chunks{k:02}"), "vectors", chunk.id, bytes)
    }

    /// One vector.
    pub fn vector(&self, k: usize, place: Place) -> Result<Vec<u8>> {
        let n = self.config.vectors[k].bytes();
        self.read(&format!("vector_chunks{k:02}"), "vectors", place.chunk, place.at * n, n)
    }

    /// For vectors of many places.
    pub fn reader(&self, k: usize) -> Reader<'_> {
        let table = self.plain(&format!("vector_chunks{k:02}"));
        Reader { store: self, table, bytes: self.config.vectors[k].bytes(), blob: None }
    }

    pub fn set_vector(&self, k: usize, place: Place, bytes: &[u8]) -> Result<()> {
        let at = place.at * bytes.len();
        self.write(&format!("vector_chunks{k:02}"), "vectors", place.chunk, at, bytes)
    }

    /// All values of a metadata column of a chunk.
    pub fn metadata_chunk(&self, k: usize, chunk: &Chunk) -> Result<Bytes> {
        let bytes = self.config.metadata[k].ty.chunk_bytes(chunk.size);
        self.whole(&format!("metadatachunks{k:02}"), "data", chunk.id, bytes)
    }

    /// The long text of a row.
    pub fn long_text(&self, k: usize, rowid: i64) -> Result<Bytes> {
        let sql = format!("SELECT data FROM {} WHERE rowid=?1", self.shadow(&format!("metadatatext{k:02}")));
        let found = self.row(sql, &[Value::Int(rowid)], |row| match row.first() {
            Some(Value::Text(b, _) | Value::Blob(b, _)) => Ok(b.clone()),
            _ => Err(corrupt()),
        })?;
        found.ok_or_else(corrupt)
    }

    /// One value of a metadata column.
    pub fn metadata(&self, k: usize, place: Place, rowid: i64) -> Result<Value> {
        let ty = self.config.metadata[k].ty;
        let suffix = format!("metadatachunks{k:02}");
        let (at, n) = match ty {
            Type::Boolean => (place.at / 8, 1),
            Type::Text => (16 * place.at, 16),
            _ => (8 * place.at, 8),
        };
        let b = self.read(&suffix, "data", place.chunk, at, n)?;
        Ok(match ty {
            Type::Boolean => Value::Int(i64::from(b[0] >> (place.at % 8) & 1)),
            Type::Text => Value::Text(self.text(k, &b, rowid)?, 0),
            Type::Float => Value::real(f64::from_le_bytes(eight(&b))),
            _ => Value::Int(i64::from_le_bytes(eight(&b))),
        })
    }

    /// The text that 16 bytes of a chunk stand for.
    pub fn text(&self, k: usize, view: &[u8], rowid: i64) -> Result<Bytes> {
        match i32::from_le_bytes([view[0], view[1], view[2], view[3]]) {
            n @ 0..=12 => Bytes::copy_of(&view[4..4 + n as usize]),
            n => self
                .long_text(k, rowid)
                .and_then(|b| if b.len() as i64 == i64::from(n) { Ok(b) } else { Err(corrupt()) }),
        }
    }

    /// Writes a value of a metadata column, which is of its type; NULL: there is none any more. `new`: there was none before.
    pub fn set_metadata(&self, k: usize, place: Place, rowid: i64, v: &Value, new: bool) -> Result<()> {
        let ty = self.config.metadata[k].ty;
        let suffix = format!("metadatachunks{k:02}");
        match ty {
            Type::Boolean => {
                let byte = self.read(&suffix, "data", place.chunk, place.at / 8, 1)?[0];
                let bit = 1 << (place.at % 8);
                let byte = if v.to_int() != 0 { byte | bit } else { byte & !bit };
                self.write(&suffix, "data", place.chunk, place.at / 8, &[byte])
            }
            Type::Text => {
                let text = if v.is_null() { Bytes::copy_of(&[])? } else { v.text_bytes()? };
                let (mut view, n) = ([0u8; 16], text.len().min(12));
                let length = i32::try_from(text.len()).map_err(|_| Error::from(Code::Toobig))?;
                view[..4].copy_from_slice(&length.to_le_bytes());
                view[4..4 + n].copy_from_slice(&text[..n]);
                self.write(&suffix, "data", place.chunk, 16 * place.at, &view)?;
                let table = self.shadow(&format!("metadatatext{k:02}"));
                if !new {
                    self.run(format!("DELETE FROM {table} WHERE rowid=?1"), &[Value::Int(rowid)])?;
                }
                if text.len() > 12 {
                    let values = [Value::Int(rowid), Value::Text(text, 0)];
                    self.run(format!("INSERT INTO {table}(rowid,data)VALUES(?1,?2)"), &values)?;
                }
                Ok(())
            }
            Type::Float => self.write(&suffix, "data", place.chunk, 8 * place.at, &v.to_real().to_le_bytes()),
            _ => self.write(&suffix, "data", place.chunk, 8 * place.at, &v.to_int().to_le_bytes()),
        }
    }

    /// Forgets the long text of a row.
    pub fn forget_text(&self, k: usize, rowid: i64) -> Result<()> {
        let table = self.shadow(&format!("metadatatext{k:02}"));
        self.run(format!("DELETE FROM {table} WHERE rowid=?1"), &[Value::Int(rowid)])
    }

    pub fn auxiliary(&self, k: usize, rowid: i64) -> Result<Value> {
        let sql = format!("SELECT value{k:02} FROM {} WHERE rowid=?1", self.shadow("auxiliary"));
        let found =
            self.row(sql, &[Value::Int(rowid)], |row| Ok(row.first().cloned().unwrap_or_default()))?;
        Ok(found.unwrap_or_default())
    }

    pub fn add_auxiliary(&self, rowid: i64, values: Vec<Value>) -> Result<()> {
        let places: String = (0..values.len()).map(|k| format!(",?{}", k + 2)).collect();
        let sql = format!("INSERT INTO {} VALUES(?1{places})", self.shadow("auxiliary"));
        let params: Vec<Value> = std::iter::once(Value::Int(rowid)).chain(values).collect();
        self.run(sql, &params)
    }

    pub fn set_auxiliary(&self, k: usize, rowid: i64, v: &Value) -> Result<()> {
        let sql = format!("UPDATE {} SET value{k:02}=?2 WHERE rowid=?1", self.shadow("auxiliary"));
        self.run(sql, &[Value::Int(rowid), v.clone()])
    }

    /// Takes the row out of the tables that are by row.
    pub fn delete_row(&self, rowid: i64) -> Result<()> {
        let id = [Value::Int(rowid)];
        self.run(format!("DELETE FROM {} WHERE rowid=?1", self.shadow("rowids")), &id)?;
        if !self.config.auxiliary.is_empty() {
            self.run(format!("DELETE FROM {} WHERE rowid=?1", self.shadow("auxiliary")), &id)?;
        }
        Ok(())
    }
}

/// Reads vectors one by one; to be dropped before the tables are changed.
pub(crate) struct Reader<'a> {
    store: &'a Store,
    table: String,
    bytes: usize,
    blob: Option<Box<dyn NestedBlob>>,
}

impl Reader<'_> {
    fn blob(&mut self, chunk: i64) -> Result<&mut Box<dyn NestedBlob>> {
        match &mut self.blob {
            Some(blob) => blob.go_to(chunk)?,
            None => {
                let value = (&*self.store.database, &*self.table, "vectors");
                self.blob = Some(self.store.host()?.open_blob(value, chunk)?);
            }
        }
        self.blob.as_mut().ok_or_else(corrupt)
    }

    /// Reads the vector at a place.
    pub fn read(&mut self, place: Place, out: &mut [u8]) -> Result<()> {
        let offset = place.at * self.bytes;
        self.blob(place.chunk).and_then(|b| b.read(offset, out)).map_err(damaged)
    }

    /// Where the vector at a place lies, for as long as neither its row nor the pages of its value change.
    pub fn pieces(&mut self, place: Place) -> Result<Vec<Piece>> {
        let (offset, bytes) = (place.at * self.bytes, self.bytes);
        self.blob(place.chunk).and_then(|b| b.pieces(offset, bytes)).map_err(damaged)
    }

    /// Reads a vector where it lies.
    pub fn read_pieces(&self, pieces: &[Piece], out: &mut [u8]) -> Result<()> {
        self.store.host()?.read_pieces(&self.store.database, pieces, out).map_err(damaged)
    }
}

pub(crate) fn eight(b: &[u8]) -> [u8; 8] {
    let mut out = [0; 8];
    out.copy_from_slice(&b[..8]);
    out
}

/// A value that is not there or too short is damage.
fn damaged(e: Error) -> Error {
    if e.code() == Code::Error { corrupt() } else { e }
}

fn chunk_of(row: &[Value]) -> Result<Chunk> {
    let [Value::Int(id), Value::Int(size), validity, rowids] = row else { return Err(corrupt()) };
    let size = usize::try_from(*size)
        .ok()
        .filter(|s| *s <= MOST_CHUNK && *s > 0 && s.is_multiple_of(8))
        .ok_or_else(corrupt)?;
    let (validity, rowids) = (bytes_of(Some(validity))?, bytes_of(Some(rowids))?);
    if validity.len() != size / 8 || rowids.len() != 8 * size {
        return Err(corrupt());
    }
    Ok(Chunk { id: *id, size, validity, rowids })
}
