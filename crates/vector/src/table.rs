//! A `vec0` table: its rows, how they are changed, and its cursors.
//!
//! What always holds: a row is checked whole before anything is changed.

use crate::config::{Column, Index, Type};
use crate::found::Found;
use crate::hnsw;
use crate::ivf;
use crate::plan;
use crate::search::{self, Memory};
use crate::store::{Place, Store, corrupt};
use crate::vector::{Vector, made};
use iolite_base::{Code, Error, Result};
use iolite_ext::{Change, FilterArgs, IndexInfo, OnConflict, VirtualCursor, VirtualTable};
use iolite_value::{Affinity, Value};
use std::rc::Rc;

/// A table.
pub(crate) struct Table {
    pub store: Rc<Store>,
    /// What searches keep in memory.
    pub memory: Rc<Memory>,
}

fn fail<T>(what: String) -> Result<T> {
    Err(Error::sql(what))
}

fn class(v: &Value) -> &'static str {
    match v {
        Value::Null => "NULL",
        Value::Int(_) => "INTEGER",
        Value::Real(_) => "FLOAT",
        Value::Text(..) => "TEXT",
        Value::Blob(..) => "BLOB",
    }
}

fn fits(ty: Type, v: &Value) -> bool {
    match ty {
        Type::Boolean => matches!(v, Value::Int(0 | 1)),
        Type::Integer => matches!(v, Value::Int(_)),
        Type::Float => matches!(v, Value::Real(_)),
        Type::Text => matches!(v, Value::Text(..)),
        Type::Blob => matches!(v, Value::Blob(..)),
    }
}

/// A new row, checked.
#[derive(Default)]
struct Row {
    key: Value,
    vectors: Vec<Option<Vector>>,
    partition: Vec<Value>,
    metadata: Vec<Option<Value>>,
    auxiliary: Vec<Option<Value>>,
}

impl Table {
    fn check_vector(&self, k: usize, v: &Value, new: bool) -> Result<Vector> {
        let c = &self.store.config.vectors[k];
        let (name, what) = (&c.name, if new { "Inserted" } else { "Updated" });
        let vector = Vector::of(v).map_err(|e| {
            let told = format!("{what} vector for the \"{name}\" column is invalid: {}", e.message());
            if e.code() == Code::Nomem { e } else { Error::sql(told) }
        })?;
        if vector.kind != c.kind {
            return fail(format!(
                "{what} vector for the \"{name}\" column is expected to be of type {}, but a {} vector was provided.",
                c.kind.name(),
                vector.kind.name()
            ));
        }
        if vector.len() != c.dimensions {
            let what = if new { "inserted vector" } else { "new updated vector" };
            return fail(format!(
                "Dimension mismatch for {what} for the \"{name}\" column. Expected {} dimensions but received {}.",
                c.dimensions,
                vector.len()
            ));
        }
        Ok(vector)
    }

    fn check_metadata(&self, k: usize, v: &Value) -> Result<()> {
        let m = &self.store.config.metadata[k];
        if fits(m.ty, v) {
            return Ok(());
        }
        let (name, ty) = (&m.name, m.ty.name());
        if m.ty == Type::Boolean {
            return fail(format!("Expected 0 or 1 for BOOLEAN metadata column {name}"));
        }
        fail(format!(
            "Expected {} for {ty} metadata column {name}, received {}",
            ty.to_ascii_lowercase(),
            class(v)
        ))
    }

    fn check_auxiliary(&self, k: usize, v: &Value) -> Result<()> {
        let a = &self.store.config.auxiliary[k];
        if v.is_null() || fits(a.ty, v) {
            return Ok(());
        }
        let (name, ty, given) = (&a.name, a.ty.name(), class(v));
        Err(Error::new(
            Code::Constraint,
            format!(
                "Auxiliary column type mismatch: The auxiliary column {name} has type {ty}, but {given} was provided."
            ),
        ))
    }

    /// What is inserted into the column of the table's name, if something is.
    fn command<'v>(&self, values: &'v [Value]) -> Option<&'v Value> {
        let at = self.store.config.columns.iter().position(|c| *c == Column::Command)?;
        values.get(at).filter(|v| !v.is_null())
    }

    /// Does what a command says, with all indexes that it means something to.
    fn obey(&self, command: &[u8]) -> Result<()> {
        let (store, config) = (&self.store, &self.store.config);
        let (lists, graphs) = (config.with_lists().next().is_some(), config.with_graphs().next().is_some());
        if lists && !(graphs && command == b"optimize") {
            ivf::command(store, command)?;
        }
        if graphs && !(lists && command.starts_with(b"probes=")) {
            hnsw::command(store, &self.memory.graphs, command)?;
        }
        Ok(())
    }

    /// Looks at the values of a row. What an update leaves as it is, is `None`.
    fn row(&self, change: &Change<'_>, values: &[Value]) -> Result<Row> {
        let new = change.old.is_none();
        let config = &self.store.config;
        let mut row = Row::default();
        for (n, column) in config.columns.iter().enumerate() {
            let v = values.get(n).unwrap_or(&Value::Null);
            let kept = change.is_unchanged(n);
            match column {
                Column::Key => row.key = v.clone(),
                Column::Vector(_) if kept || (!new && v.is_null()) => row.vectors.push(None),
                Column::Vector(k) => row.vectors.push(Some(self.check_vector(*k, v, new)?)),
                Column::Partition(_) if !new && !kept => {
                    return fail("UPDATE on partition key columns are not supported yet. ".into());
                }
                Column::Partition(k) => {
                    let p = &config.partitions[*k];
                    if new && !v.is_null() && !fits(p.ty, v) {
                        return fail(format!(
                            "Parition key type mismatch: The partition key column {} has type {}, but {} was provided.",
                            p.name,
                            p.ty.name(),
                            class(v)
                        ));
                    }
                    row.partition.push(v.clone());
                }
                Column::Metadata(_) if kept => row.metadata.push(None),
                Column::Metadata(k) => {
                    self.check_metadata(*k, v)?;
                    row.metadata.push(Some(v.clone()));
                }
                Column::Auxiliary(_) if kept => row.auxiliary.push(None),
                Column::Auxiliary(k) => {
                    self.check_auxiliary(*k, v)?;
                    row.auxiliary.push(Some(v.clone()));
                }
                Column::Distance | Column::K | Column::Probes | Column::Ef | Column::Command => {
                    if new && !v.is_null() {
                        let name = config.name(*column);
                        return fail(format!("A value was provided for the hidden \"{name}\" column."));
                    }
                }
            }
        }
        Ok(row)
    }

    /// The row that a key names.
    fn find(&self, key: &Value) -> Result<Option<(i64, Place)>> {
        let rowid = match key {
            _ if self.store.config.text_key => self.store.row_of_key(key)?,
            v => Some(v.to_int()),
        };
        let Some(rowid) = rowid else { return Ok(None) };
        Ok(self.store.place(rowid)?.map(|p| (rowid, p)))
    }

    fn insert(&self, change: &Change<'_>, row: Row) -> Result<i64> {
        let (store, config) = (&self.store, &self.store.config);
        let (table, key) = (&store.table, &row.key);
        let rowid = match key {
            Value::Text(..) if config.text_key => None,
            _ if config.text_key => {
                return fail(format!(
                    "The {table} virtual table was declared with a TEXT primary key, but a non-TEXT value was provided in an INSERT."
                ));
            }
            Value::Null => None,
            Value::Int(n) => Some(*n),
            _ => return fail(format!("Only integers are allows for primary key values on {table}")),
        };
        if !key.is_null()
            && let Some((there, place)) = self.find(key)?
        {
            if change.conflict != OnConflict::Replace {
                let message = format!("UNIQUE constraint failed on {table} primary key");
                return Err(Error::new(Code::Constraint, message));
            }
            self.remove(there, place)?;
        }
        let place = store.free_place(&row.partition)?;
        let key = if config.text_key { key.clone() } else { Value::Null };
        let rowid = store.add_row(rowid, key, place)?;
        store.set_taken(place, Some(rowid))?;
        self.write(rowid, place, &row, true)?;
        if !config.auxiliary.is_empty() {
            let values = row.auxiliary.into_iter().map(Option::unwrap_or_default).collect();
            store.add_auxiliary(rowid, values)?;
        }
        config.with_lists().try_for_each(|k| ivf::added(store, k, place))?;
        Ok(rowid)
    }

    fn write(&self, rowid: i64, place: Place, row: &Row, new: bool) -> Result<()> {
        for (k, v) in row.vectors.iter().enumerate() {
            if let Some(v) = v {
                self.store.set_vector(k, place, &v.bytes)?;
            }
        }
        for (k, v) in row.metadata.iter().enumerate() {
            if let Some(v) = v {
                self.store.set_metadata(k, place, rowid, v, new)?;
            }
        }
        Ok(())
    }

    fn remove(&self, rowid: i64, place: Place) -> Result<()> {
        let (store, config) = (&self.store, &self.store.config);
        config.with_lists().try_for_each(|k| ivf::removed(store, k, place))?;
        if store.set_taken(place, None)? {
            for (k, v) in config.vectors.iter().enumerate() {
                store.set_vector(k, place, &iolite_base::alloc::zeroed(v.bytes())?)?;
            }
            for k in 0..config.metadata.len() {
                store.set_metadata(k, place, rowid, &Value::Null, false)?;
            }
        } else {
            ivf::forget_chunk(store, place.chunk)?;
            for (k, m) in config.metadata.iter().enumerate() {
                if m.ty == Type::Text {
                    store.forget_text(k, rowid)?;
                }
            }
        }
        store.delete_row(rowid)
    }
}

impl VirtualTable for Table {
    fn best_index(&self, info: &mut IndexInfo) -> Result<()> {
        plan::choose(&self.store.config, info)
    }

    fn open(&self) -> Result<Box<dyn VirtualCursor>> {
        Ok(Box::new(Cursor {
            store: self.store.clone(),
            memory: self.memory.clone(),
            rows: Vec::new(),
            at: 0,
        }))
    }

    fn writable(&self) -> bool {
        true
    }

    fn update(&self, change: &Change<'_>) -> Result<i64> {
        let Some((_, values)) = change.new else {
            if let Some((rowid, place)) = self.find(change.old.unwrap_or(&Value::Null))? {
                self.remove(rowid, place)?;
            }
            return Ok(0);
        };
        if change.old.is_none()
            && let Some(command) = self.command(values)
        {
            self.obey(&command.text_bytes()?)?;
            return Ok(self.store.last_insert_rowid());
        }
        let row = self.row(change, values)?;
        let Some(old) = change.old else { return self.insert(change, row) };
        let same = match (old, &row.key) {
            (Value::Text(a, _), Value::Text(b, _)) => a[..] == b[..],
            (a, b) => a.to_int() == b.to_int() && a.class() == b.class(),
        };
        if !same {
            return fail("UPDATEs on vec0 primary key values are not allowed.".into());
        }
        let Some((rowid, place)) = self.find(old)? else { return Ok(0) };
        let moved: Vec<usize> = self
            .store
            .config
            .with_lists()
            .filter(|k| row.vectors.get(*k).is_some_and(Option::is_some))
            .collect();
        moved.iter().try_for_each(|k| ivf::removed(&self.store, *k, place))?;
        self.write(rowid, place, &row, false)?;
        moved.iter().try_for_each(|k| ivf::added(&self.store, *k, place))?;
        for (k, v) in row.auxiliary.iter().enumerate() {
            if let Some(v) = v {
                self.store.set_auxiliary(k, rowid, v)?;
            }
        }
        Ok(rowid)
    }

    fn rename(&self, name: &str) -> Result<()> {
        self.store.rename(name)
    }

    fn destroy(&self) -> Result<()> {
        self.store.destroy()
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }

    fn integrity(&self, quick: bool) -> Result<Option<String>> {
        let store = &self.store;
        let all = 0..store.config.vectors.len();
        for k in all.filter(|_| !quick) {
            let wrong = match store.config.vectors[k].index {
                Some(Index::Ivf(_)) => ivf::check(store, k)?,
                Some(Index::Hnsw(_)) => hnsw::check(store, k)?,
                None => None,
            };
            if let Some(wrong) = wrong {
                let (table, column) = (&store.table, &store.config.vectors[k].name);
                return Ok(Some(format!("in the index of {table}.{column}: {wrong}")));
            }
        }
        Ok(None)
    }
}

/// A row of a cursor: its id, and its distance and place, if these are known.
type Known = (i64, Option<Found>);

struct Cursor {
    store: Rc<Store>,
    memory: Rc<Memory>,
    rows: Vec<Known>,
    at: usize,
}

impl Cursor {
    fn present(&self) -> Result<&Known> {
        self.rows.get(self.at).ok_or_else(|| Code::Abort.into())
    }

    /// The row that a key in a query names, if it can name one.
    fn wanted(&self, key: &Value) -> Result<Option<i64>> {
        let mut key = key.clone();
        match &key {
            Value::Text(..) if self.store.config.text_key => return self.store.row_of_key(&key),
            _ if self.store.config.text_key => return Ok(None),
            Value::Text(..) => Affinity::Numeric.apply(&mut key)?,
            _ => {}
        }
        Ok(match key {
            Value::Int(n) => Some(n),
            Value::Real(r) => iolite_value::num::real_as_int(r),
            _ => None,
        })
    }

    fn place(&self) -> Result<Place> {
        match self.present()? {
            (_, Some(found)) => Ok(found.place),
            (rowid, None) => self.store.place(*rowid)?.ok_or_else(corrupt),
        }
    }
}

impl VirtualCursor for Cursor {
    fn filter(&mut self, _: i32, plan: &str, args: &FilterArgs<'_>) -> Result<()> {
        (self.rows, self.at) = (Vec::new(), 0);
        match plan.chars().next() {
            Some(plan::NEAREST) => {
                let found = search::nearest(&self.store, &self.memory, plan, args)?;
                self.rows = found.into_iter().map(|f| (f.rowid, Some(f))).collect();
            }
            Some(plan::ONE) => {
                let key = args.first().ok_or_else(|| Error::from(Code::Internal))?;
                let rowid = self.wanted(key)?;
                if let Some(rowid) = rowid
                    && self.store.place(rowid)?.is_some()
                {
                    self.rows.push((rowid, None));
                }
            }
            _ => self.rows = self.store.rowids()?.into_iter().map(|r| (r, None)).collect(),
        }
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }

    fn eof(&self) -> bool {
        self.at >= self.rows.len()
    }

    fn column(&self, n: usize) -> Result<Value> {
        let (rowid, found) = *self.present()?;
        let store = &self.store;
        match store.config.columns.get(n) {
            Some(Column::Key) if store.config.text_key => store.key_of_row(rowid),
            Some(Column::Key) => Ok(Value::Int(rowid)),
            Some(Column::Vector(k)) => made(store.config.vectors[*k].kind, &store.vector(*k, self.place()?)?),
            Some(Column::Partition(k)) => store.partition(self.place()?.chunk, *k),
            Some(Column::Metadata(k)) => store.metadata(*k, self.place()?, rowid),
            Some(Column::Auxiliary(k)) => store.auxiliary(*k, rowid),
            Some(Column::Distance) => Ok(found.map_or(Value::Null, |f| Value::real(f.distance))),
            Some(Column::K | Column::Probes | Column::Ef | Column::Command) | None => Ok(Value::Null),
        }
    }

    fn column_unchanged(&self, n: usize) -> Result<Option<Value>> {
        match self.store.config.columns.get(n) {
            Some(Column::Key) => self.column(n).map(Some),
            _ => Ok(None),
        }
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.present()?.0)
    }
}
