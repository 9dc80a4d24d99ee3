//! Several changesets as one (documentation page `changegroup`).

use crate::build::Draft;
use crate::change::{Change, Op, Table};
use crate::merge::merge;
use crate::output::Output;
use crate::reader::Reader;
use crate::record::UNDEFINED;
use crate::rows::{self, Rows};
use crate::schema::Shape;
use iolite_base::{Code, Error, Result};
use iolite_ext::Host;
use iolite_value::Value;
use std::rc::Rc;

/// The changes of one table.
pub(crate) struct Entry {
    pub table: Rc<Table>,
    pub rows: Rows<Change>,
    /// The table in the database that changes must fit: what columns that a change lacks are filled with.
    defaults: Option<Shape>,
}

/// Changes that have been put together.
#[derive(Default)]
pub struct Group {
    pub(crate) tables: Vec<Entry>,
    /// Whether changes are those of patchsets; `None`: it is not known yet.
    patchset: Option<bool>,
    /// The database whose tables changes must fit.
    schema: Option<String>,
    draft: Option<Draft>,
}

impl Group {
    /// A group without changes.
    pub fn new() -> Group {
        Group::default()
    }

    /// All changes must fit the tables of database `db` from now on, and are given the columns that they lack. Only for a group
    /// without tables.
    pub fn schema(&mut self, db: &str) -> Result<()> {
        if self.schema.is_some() || !self.tables.is_empty() {
            return Err(Code::Misuse.into());
        }
        self.schema = Some(db.into());
        Ok(())
    }

    /// Asks for a patchset, or for a changeset, if there are no changes yet; answers what it is.
    pub fn configure(&mut self, patchset: Option<bool>) -> bool {
        if let Some(p) = patchset.filter(|_| self.tables.is_empty()) {
            self.patchset = Some(p);
        }
        self.is_patchset()
    }

    pub(crate) fn is_patchset(&self) -> bool {
        self.patchset.unwrap_or(false)
    }

    /// Adds all changes of a changeset. `host` knows the database of [`Group::schema`].
    pub fn add(&mut self, reader: &mut Reader<'_>, host: Option<&dyn Host>) -> Result<()> {
        while let Some(c) = reader.next()? {
            self.add_change(&c, host)?;
        }
        Ok(())
    }

    /// Adds one change.
    pub fn add_change(&mut self, c: &Change, host: Option<&dyn Host>) -> Result<()> {
        if self.tables.is_empty() {
            self.patchset = Some(c.table.patchset);
        } else if self.is_patchset() != c.table.patchset {
            return Err(Code::Error.into());
        }
        let at = match self.find(&c.table.name) {
            Some(at) => at,
            None => self.begin(&c.table, host)?,
        };
        let entry = &mut self.tables[at];
        let mut c = fitting(entry, c, host)?;
        c.table = entry.table.clone();
        entry.put(c);
        Ok(())
    }

    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.tables.iter().position(|t| t.table.name.eq_ignore_ascii_case(name))
    }

    /// A new table, as the database has it where one was named.
    fn begin(&mut self, table: &Rc<Table>, host: Option<&dyn Host>) -> Result<usize> {
        match &self.schema {
            None => {
                self.tables.push(Entry::around(table.clone(), Rows::default()));
                Ok(self.tables.len() - 1)
            }
            Some(_) => self.look_up(&table.name, host)?.ok_or_else(|| Code::Schema.into()),
        }
    }

    /// The table of this name in the database, as a new one here.
    pub(crate) fn look_up(&mut self, name: &str, host: Option<&dyn Host>) -> Result<Option<usize>> {
        let (Some(db), Some(host)) = (&self.schema, host) else { return Ok(None) };
        let shape = Shape::of(host, db, name, true)?;
        if shape.columns.is_empty() {
            return Ok(None);
        }
        let table = Table { name: name.into(), keys: shape.keys.clone(), patchset: self.is_patchset() };
        self.tables.push(Entry { table: Rc::new(table), rows: Rows::default(), defaults: Some(shape) });
        Ok(Some(self.tables.len() - 1))
    }

    /// Begins a change of a row of `table`, which is made up value by value.
    pub fn begin_change(
        &mut self,
        op: u8,
        table: &str,
        indirect: bool,
        host: Option<&dyn Host>,
    ) -> Result<()> {
        if self.draft.is_some() {
            return Err(Code::Misuse.into());
        }
        let op = Op::from_number(op).ok_or(Code::Error)?;
        let found = match self.find(table) {
            Some(at) => Some(at),
            None => self.look_up(table, host)?,
        };
        let at = found.ok_or_else(|| Error::sql(format!("no such table: {table}")))?;
        self.draft = Some(Draft::new(at, op, indirect, self.tables[at].table.columns()));
        Ok(())
    }

    /// Gives column `n` a value, before or behind the change.
    pub fn change_value(&mut self, new: bool, n: i64, v: &Value) -> Result<()> {
        self.draft.as_mut().ok_or(Code::Misuse)?.set(new, n, v)
    }

    /// Ends the change: adds it, or forgets it with `discard` and if something is wrong with it.
    pub fn finish_change(&mut self, discard: bool) -> Result<()> {
        let Some(d) = self.draft.take().filter(|_| !discard) else { return Ok(()) };
        let patchset = self.is_patchset();
        let entry = &mut self.tables[d.at];
        let change = d.finish(entry.table.clone(), patchset)?;
        entry.put(change);
        Ok(())
    }

    /// Writes what all changes come to.
    pub fn output(&self, out: &mut Output<'_>) -> Result<()> {
        for t in self.tables.iter().filter(|t| t.rows.len() > 0) {
            Table { patchset: self.is_patchset(), ..(*t.table).clone() }.put(&mut out.bytes);
            for c in t.rows.iter() {
                c.put(&mut out.bytes)?;
                out.written()?;
            }
        }
        Ok(())
    }
}

/// The change with as many columns as the table here has.
fn fitting(entry: &Entry, c: &Change, host: Option<&dyn Host>) -> Result<Change> {
    let (have, want) = (c.table.columns(), entry.table.columns());
    match (&entry.defaults, host) {
        (Some(shape), Some(host)) if shape.takes(&c.table.keys) => {
            let mut c = c.clone();
            let more = want - have;
            if shape.keys[have..].iter().any(|k| *k != 0) {
                return Err(Code::Schema.into());
            }
            if more > 0 {
                match c.op {
                    Op::Update => {
                        c.old.extend(UNDEFINED.repeat(more));
                        c.new.extend(UNDEFINED.repeat(more));
                    }
                    Op::Insert => c.new.extend(shape.defaults_from(host, have)?),
                    Op::Delete if c.table.patchset => c.old.extend(UNDEFINED.repeat(more)),
                    Op::Delete => c.old.extend(shape.defaults_from(host, have)?),
                }
            }
            Ok(c)
        }
        (None, _) if c.table.keys == entry.table.keys => Ok(c.clone()),
        _ => Err(Code::Schema.into()),
    }
}

impl Entry {
    /// Rows of a table.
    pub fn around(table: Rc<Table>, rows: Rows<Change>) -> Entry {
        Entry { table, rows, defaults: None }
    }

    /// Whether there is a change of the row of `c`.
    pub fn has(&self, c: &Change) -> bool {
        let keys = &self.table.keys;
        let same = |r: &Change| rows::key(keys, r.keyed()).eq(rows::key(keys, c.keyed()));
        self.rows.get(Entry::hash_of(&self.table, c), same).is_some()
    }

    /// The hash of the row of a change.
    pub fn hash_of(table: &Table, c: &Change) -> u32 {
        rows::hash(rows::key(&table.keys, c.keyed()))
    }

    /// Puts a change in, or what it comes to with the one that is there.
    pub fn put(&mut self, c: Change) {
        self.put_merged(c, merge);
    }

    /// As [`Entry::put`], where `merge` says what two changes come to.
    pub fn put_merged(&mut self, c: Change, merge: impl Fn(Change, &Change) -> Option<Change>) {
        let table = self.table.clone();
        self.rows.grow(|c| Entry::hash_of(&table, c));
        let hash = Entry::hash_of(&table, &c);
        let same = |r: &Change| rows::key(&table.keys, r.keyed()).eq(rows::key(&table.keys, c.keyed()));
        let c = match self.rows.take(hash, same) {
            Some(first) => merge(first, &c),
            None => Some(c),
        };
        if let Some(c) = c {
            self.rows.put(hash, c);
        }
    }
}
