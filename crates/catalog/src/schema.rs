//! One database's schema, and a connection's list of databases.

use crate::build;
use crate::names::NameMap;
use crate::stat::{DEFAULT_ROWS, IndexStat};
use crate::table::{Index, Table, Trigger};
use iolite_base::hash::FastMap;
use iolite_base::{Code, Encoding, Error, Pgno, Result};
use std::borrow::Cow;
use std::rc::Rc;

/// The schema of one database.
#[derive(Clone, Default)]
pub struct Schema {
    /// The name under which it is attached: `main`, `temp`, ...
    pub name: Rc<str>,
    /// The schema cookie it was read at.
    pub cookie: u32,
    /// Whether it was read at all.
    pub loaded: bool,
    /// The file's text encoding.
    pub encoding: Encoding,
    /// The file's schema format number.
    pub format: u32,
    tables: NameMap<Rc<Table>>,
    indexes: FastMap<Box<str>, Rc<Index>>,
    /// In the order in which they were made: that is the order in which those of temp fire.
    triggers: Vec<Rc<Trigger>>,
    /// The same by their names.
    trigger_names: FastMap<Box<str>, Rc<Trigger>>,
}

fn key(name: &str) -> Box<str> {
    name.to_ascii_lowercase().into()
}

fn find<'a, T>(map: &'a FastMap<Box<str>, Rc<T>>, name: &str) -> Option<&'a Rc<T>> {
    let mut low = [0u8; 48];
    if let Some(buf) = low.get_mut(..name.len()) {
        buf.copy_from_slice(name.as_bytes());
        buf.make_ascii_lowercase();
        return map.get(std::str::from_utf8(buf).ok()?);
    }
    map.get(&*key(name))
}

/// Whether a name is one that only the engine gives.
fn is_reserved(name: &str) -> bool {
    name.as_bytes().first_chunk::<7>().is_some_and(|b| b.eq_ignore_ascii_case(b"sqlite_"))
}

impl Schema {
    /// An empty schema: only the schema table itself.
    pub fn new(name: &str) -> Schema {
        let mut s = Schema { name: name.into(), format: 4, ..Schema::default() };
        let own = build::schema_table(name.eq_ignore_ascii_case("temp"));
        s.tables.insert(&own.name.clone(), Rc::new(own));
        s
    }

    /// Forgets all objects but the schema table.
    pub fn clear(&mut self) {
        let own = self.all_tables().find(|t| t.root.get() == 1).cloned();
        self.tables = NameMap::default();
        if let Some(t) = own {
            self.tables.insert(&t.name.clone(), t);
        }
        self.indexes.clear();
        self.triggers.clear();
        self.trigger_names.clear();
    }

    /// The table or view with this name; the schema table answers to all of its names.
    pub fn table(&self, name: &str) -> Option<&Rc<Table>> {
        if self.tables.len() == 1 && !is_reserved(name) {
            // There is the schema table alone, as nearly always among those of temp.
            return None;
        }
        self.tables.get(name).or_else(|| self.schema_table_alias(name))
    }

    fn schema_table_alias(&self, name: &str) -> Option<&Rc<Table>> {
        if name.len() < 13 || !is_reserved(name) {
            return None;
        }
        let temp = self.name.eq_ignore_ascii_case("temp");
        let own = if temp { "sqlite_temp_master" } else { "sqlite_master" };
        let is = |n: &str| name.eq_ignore_ascii_case(n);
        if is("sqlite_schema")
            || is("sqlite_master")
            || temp && (is("sqlite_temp_schema") || is("sqlite_temp_master"))
        {
            return self.tables.get(own);
        }
        None
    }

    /// The index with this name.
    pub fn index(&self, name: &str) -> Option<&Rc<Index>> {
        find(&self.indexes, name)
    }

    /// The trigger with this name.
    pub fn trigger(&self, name: &str) -> Option<&Rc<Trigger>> {
        find(&self.trigger_names, name)
    }

    /// All tables and views but the schema table, in the order in which SQLite goes through them.
    pub fn tables(&self) -> impl Iterator<Item = &Rc<Table>> {
        self.tables.values().filter(|t| t.root.get() != 1)
    }

    /// All tables, the schema table too.
    pub fn all_tables(&self) -> impl Iterator<Item = &Rc<Table>> {
        self.tables.values()
    }

    /// All indexes.
    pub fn indexes(&self) -> impl Iterator<Item = &Rc<Index>> {
        self.indexes.values()
    }

    /// All triggers, the oldest first.
    pub fn triggers(&self) -> impl Iterator<Item = &Rc<Trigger>> {
        self.triggers.iter()
    }

    /// Takes in one row of the schema table of a database that has so many pages (0: nobody knows). `SQLITE_CORRUPT`, "malformed
    /// database schema", if it makes no sense; unless `trusting`, also if it says something else about its object than the text.
    pub fn add_row(&mut self, row: &SchemaRow<'_>, pages: Pgno, trusting: bool) -> Result<()> {
        let malformed = |why: &str| {
            let more = if why.is_empty() { String::new() } else { format!(" - {why}") };
            let name = row.name.as_deref().unwrap_or("?");
            Error::new(Code::Corrupt, format!("malformed database schema ({name}){more}"))
        };
        let Some(root) = &row.root else { return Err(malformed("")) };
        let root = page_number(root).filter(|r| pages == 0 || *r <= pages);
        match (row.sql.as_deref().unwrap_or_default(), &row.name) {
            (sql, _) if sql.get(..2).is_some_and(|c| c.eq_ignore_ascii_case("cr")) => {
                let Some(root) = root else { return Err(malformed("invalid rootpage")) };
                let made = build::from_sql(self, row, root, sql, trusting);
                made.map_err(|e| if e.code() == Code::Nomem { e } else { malformed(e.message()) })
            }
            ("", Some(name)) => {
                // An index of a constraint: made with its table, only its root page is told here.
                let Some(index) = self.index(name).cloned() else { return Err(malformed("orphan index")) };
                let Some(root) = root.filter(|r| *r >= 2) else { return Err(malformed("invalid rootpage")) };
                index.root.set(root);
                if self.shares_root(&index) { Err(malformed("invalid rootpage")) } else { Ok(()) }
            }
            _ => Err(malformed("")),
        }
    }

    /// Whether another index of the same table begins at the same page.
    pub(crate) fn shares_root(&self, index: &Rc<Index>) -> bool {
        let other = |i: &Rc<Index>| i.root.get() == index.root.get() && !Rc::ptr_eq(i, index);
        self.table(&index.table).is_some_and(|t| t.each_index().any(|i| other(&i)))
    }

    /// Adds a table with its constraints' indexes.
    pub fn add_table(&mut self, t: Table) -> Rc<Table> {
        let t = Rc::new(t);
        for i in t.indexes.borrow().iter() {
            self.indexes.insert(key(&i.name), i.clone());
        }
        self.tables.insert(&t.name, t.clone());
        t
    }

    /// Adds an index to its table.
    pub fn add_index(&mut self, i: Index) -> Result<Rc<Index>> {
        let table = self.table(&i.table).cloned();
        let table = table.ok_or_else(|| Error::sql(format!("no such table: {}", i.table)))?;
        let i = Rc::new(i);
        add_in_order(&mut table.indexes.borrow_mut(), i.clone());
        self.indexes.insert(key(&i.name), i.clone());
        Ok(i)
    }

    /// Adds a trigger. `table` is the table it is on, which may belong to another database.
    pub fn add_trigger(&mut self, t: Trigger) {
        let t = Rc::new(t);
        if t.table_schema.as_ref().is_none_or(|s| s.eq_ignore_ascii_case(&self.name))
            && let Some(table) = self.table(&t.table)
        {
            table.triggers.borrow_mut().insert(0, t.clone());
        }
        self.trigger_names.insert(key(&t.name), t.clone());
        self.triggers.push(t);
    }

    /// Removes a table with its indexes and triggers.
    pub fn remove_table(&mut self, name: &str) {
        if let Some(t) = self.tables.remove(name) {
            for i in t.indexes.borrow().iter() {
                self.indexes.remove(&*key(&i.name));
            }
            let own = t.triggers.borrow();
            if own.is_empty() {
                return;
            }
            for tr in own.iter() {
                self.trigger_names.remove(&*key(&tr.name));
            }
            self.triggers.retain(|tr| !own.iter().any(|o| Rc::ptr_eq(o, tr)));
        }
    }

    /// Removes an index.
    pub fn remove_index(&mut self, name: &str) {
        if let Some(i) = self.indexes.remove(&*key(name))
            && let Some(t) = self.table(&i.table)
        {
            t.indexes.borrow_mut().retain(|other| !Rc::ptr_eq(other, &i));
        }
    }

    /// Removes a trigger.
    pub fn remove_trigger(&mut self, name: &str) {
        let Some(tr) = self.trigger_names.remove(&*key(name)) else { return };
        self.triggers.retain(|other| !Rc::ptr_eq(other, &tr));
        if let Some(t) = self.table(&tr.table) {
            t.triggers.borrow_mut().retain(|other| !Rc::ptr_eq(other, &tr));
        }
    }

    /// A root page has moved (auto-vacuum).
    pub fn move_root(&mut self, from: Pgno, to: Pgno) {
        for t in self.tables.values() {
            if t.root.get() == from {
                t.root.set(to);
            }
        }
        for i in self.indexes.values() {
            if i.root.get() == from {
                i.root.set(to);
            }
        }
    }

    /// Forgets all statistics.
    pub fn clear_stats(&mut self) {
        for t in self.tables.values() {
            t.rows.set(DEFAULT_ROWS);
            t.has_stat.set(false);
            for i in t.indexes.borrow().iter() {
                *i.stat.borrow_mut() =
                    IndexStat::assumed(i.key_len, i.unique.is_some(), i.filter.is_some(), DEFAULT_ROWS);
            }
        }
    }

    /// Takes in one row of `sqlite_stat1`. Rows that make no sense are ignored.
    pub fn add_stat(&mut self, table: &str, index: Option<&str>, stat: &str) {
        let Some(t) = self.table(table).cloned() else { return };
        match index.and_then(|i| t.indexes.borrow().iter().find(|x| x.name.eq_ignore_ascii_case(i)).cloned())
        {
            Some(i) => {
                if let Some(s) = IndexStat::parse(stat, i.key_len) {
                    if i.filter.is_none() {
                        t.rows.set(s.rows[0].max(1.0));
                        t.has_stat.set(true);
                    }
                    *i.stat.borrow_mut() = s;
                }
            }
            None => {
                if let Some(s) = IndexStat::parse(stat, 0) {
                    t.rows.set(s.rows[0].max(1.0));
                    t.has_stat.set(true);
                    if index.is_none_or(|i| i.eq_ignore_ascii_case(table))
                        && let Some(pk) = t.primary_index()
                        && let Some(s) = IndexStat::parse(stat, pk.key_len)
                    {
                        *pk.stat.borrow_mut() = s;
                    }
                }
            }
        }
    }
}

/// A row of the schema table, as text; none: NULL.
pub struct SchemaRow<'v> {
    /// `table`, `index`, `view` or `trigger`.
    pub kind: Option<Cow<'v, str>>,
    /// The object's name.
    pub name: Option<Cow<'v, str>>,
    /// The table it belongs to.
    pub table: Option<Cow<'v, str>>,
    /// The root page.
    pub root: Option<Cow<'v, str>>,
    /// The text that makes it.
    pub sql: Option<Cow<'v, str>>,
}

impl SchemaRow<'_> {
    /// The row for itself.
    pub fn into_owned(self) -> SchemaRow<'static> {
        let own = |field: Option<Cow<'_, str>>| field.map(|text| Cow::Owned(text.into_owned()));
        SchemaRow {
            kind: own(self.kind),
            name: own(self.name),
            table: own(self.table),
            root: own(self.root),
            sql: own(self.sql),
        }
    }
}

/// A page number as the schema table has to have it: digits, and nothing else.
fn page_number(text: &str) -> Option<Pgno> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// A connection's databases: 0 is `main`, 1 is `temp`, attached ones follow.
#[derive(Clone, Default)]
pub struct Catalog {
    /// The schemas by database number; a detached one leaves no hole.
    pub schemas: Vec<Rc<Schema>>,
}

impl Catalog {
    /// The database with this name.
    pub fn database(&self, name: &str) -> Option<usize> {
        if name.eq_ignore_ascii_case("main") {
            return Some(0);
        }
        // The last attached of equal names cannot exist; names are unique.
        self.schemas.iter().position(|s| s.name.eq_ignore_ascii_case(name))
    }

    /// Database numbers in the order in which unqualified names are looked up.
    pub fn search_order(&self) -> impl Iterator<Item = usize> + '_ {
        let n = self.schemas.len();
        [1usize, 0].into_iter().chain(2..n).filter(move |&i| i < n)
    }

    /// The table with this name, and its database.
    pub fn table(&self, schema: Option<&str>, name: &str) -> Option<(usize, Rc<Table>)> {
        match schema {
            Some(s) => {
                let db = self.database(s)?;
                self.schemas[db].table(name).map(|t| (db, t.clone()))
            }
            None => {
                if name.len() == 13
                    && (name.eq_ignore_ascii_case("sqlite_schema")
                        || name.eq_ignore_ascii_case("sqlite_master"))
                {
                    return self.schemas[0].table(name).map(|t| (0, t.clone()));
                }
                for db in self.search_order() {
                    if let Some(t) = self.schemas[db].table(name) {
                        return Some((db, t.clone()));
                    }
                }
                None
            }
        }
    }

    /// The index with this name, and its database.
    pub fn index(&self, schema: Option<&str>, name: &str) -> Option<(usize, Rc<Index>)> {
        self.lookup(schema, |s| s.index(name).cloned())
    }

    /// The trigger with this name, and its database.
    pub fn trigger(&self, schema: Option<&str>, name: &str) -> Option<(usize, Rc<Trigger>)> {
        self.lookup(schema, |s| s.trigger(name).cloned())
    }

    fn lookup<T>(&self, schema: Option<&str>, f: impl Fn(&Schema) -> Option<T>) -> Option<(usize, T)> {
        match schema {
            Some(s) => {
                let db = self.database(s)?;
                f(&self.schemas[db]).map(|t| (db, t))
            }
            None => self.search_order().find_map(|db| f(&self.schemas[db]).map(|t| (db, t))),
        }
    }

    /// The triggers on a table: those of temp first, then its own.
    pub fn triggers_of(&self, db: usize, table: &Table) -> Vec<(usize, Rc<Trigger>)> {
        let mut out = Vec::new();
        if db != 1
            && let Some(temp) = self.schemas.get(1)
        {
            for t in temp.triggers() {
                let here = match &t.table_schema {
                    Some(s) => self.database(s) == Some(db),
                    None => self.table(None, &t.table).is_some_and(|(d, _)| d == db),
                };
                if here && t.table.eq_ignore_ascii_case(&table.name) {
                    out.push((1, t.clone()));
                }
            }
        }
        out.extend(table.triggers.borrow().iter().map(|t| (db, t.clone())));
        out
    }
}

/// Adds an index to a table's list: the newest first, but those whose conflict policy is REPLACE behind all others, so
/// that nothing has been deleted when another constraint says no.
pub(crate) fn add_in_order(list: &mut Vec<Rc<Index>>, i: Rc<Index>) {
    list.insert(0, i);
    replacing_last(list, |i| &**i);
}

/// Moves the first index whose policy is REPLACE behind those that follow and have another.
pub(crate) fn replacing_last<T>(list: &mut [T], index: impl Fn(&T) -> &Index) {
    let replaces = |i: &T| index(i).unique == Some(iolite_sql::ast::Conflict::Replace);
    let Some(first) = list.iter().position(replaces) else { return };
    let behind = list[first + 1..].iter().take_while(|i| !replaces(i)).count();
    list[first..=first + behind].rotate_left(1);
}
