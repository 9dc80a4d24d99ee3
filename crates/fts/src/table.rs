//! An FTS5 table: made, connected, written to, its part in transactions.

use crate::auxiliary::Auxiliary;
use crate::config::{Config, Content};
use crate::cursor::{Cursor, FindFunction};
use crate::ranked::Kept;
use crate::storage::Storage;
use crate::store::Store;
use crate::{locale, plan, words};
use iolite_base::{Code, Error, Result};
use iolite_ext::{
    Change, Context, Function, FunctionFlags, Host, Implementation, IndexInfo, OnConflict, Overload,
    Participant, Scalar, VirtualCursor, VirtualTable,
};
use iolite_value::Value;
use std::cell::Cell;
use std::rc::Rc;

/// A table. See the module's head.
pub(crate) struct Table {
    config: Rc<Config>,
    pub storage: Rc<Storage>,
    functions: FindFunction,
    cursors: Rc<Cell<i64>>,
    ranked: Rc<Kept>,
    /// The innermost savepoint that it knows of, from 1.
    savepoint: Cell<i32>,
}

/// An auxiliary function as the engine calls it.
struct Call(Rc<dyn Auxiliary>);

impl Scalar for Call {
    fn call(&self, ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
        let cursor = ctx.cursor.and_then(|c| c.as_any()).and_then(|c| c.downcast_ref::<Cursor>());
        let number = args.first().map_or(0, Value::to_int);
        let cursor = cursor.ok_or_else(|| Error::sql(format!("no such cursor: {number}")))?;
        cursor.call(&*self.0, args.get(1..).unwrap_or_default())
    }
}

impl Table {
    pub fn new(
        config: Config,
        host: &Rc<dyn Host>,
        functions: FindFunction,
        cursors: Rc<Cell<i64>>,
    ) -> Rc<Table> {
        let config = Rc::new(config);
        let store = Rc::new(Store::new(config.clone(), host));
        let storage = Rc::new(Storage::new(&store));
        Rc::new(Table { config, storage, functions, cursors, ranked: Rc::default(), savepoint: Cell::new(0) })
    }

    /// Makes the tables that belong to it.
    pub fn create(&self) -> Result<()> {
        let c = &self.config;
        let mut tables = vec![
            ("data", "id INTEGER PRIMARY KEY, block BLOB".to_string(), ""),
            ("idx", "segid, term, pgno, PRIMARY KEY(segid, term)".to_string(), " WITHOUT ROWID"),
        ];
        if matches!(c.content, Content::Own | Content::Unindexed) {
            let mut columns = "id INTEGER PRIMARY KEY".to_string();
            self.storage.store.content_columns().for_each(|i| columns += &format!(", c{i}"));
            self.storage.store.locale_columns().for_each(|i| columns += &format!(", l{i}"));
            tables.push(("content", columns, ""));
        }
        if c.column_size {
            let origin = if c.contentless_delete { ", origin INTEGER" } else { "" };
            tables.push(("docsize", format!("id INTEGER PRIMARY KEY, sz BLOB{origin}"), ""));
        }
        tables.push(("config", "k PRIMARY KEY, v".to_string(), " WITHOUT ROWID"));
        let host = self.storage.store.host()?;
        for (suffix, columns, options) in tables {
            let name = words::literal(&format!("{}_{suffix}", c.table));
            let database = words::name(&c.database);
            let sql = format!("CREATE TABLE {database}.{name}({columns}){options}");
            host.query(&sql, &[]).map_err(|e| {
                let table = &c.table;
                let text = format!("fts5: error creating shadow table {table}_{suffix}: {}", e.message());
                Error::new(e.code(), text)
            })?;
        }
        self.storage.index.clear()?;
        self.storage.set_version()
    }

    /// Whether its columns have names that go together.
    pub fn is_declarable(&self) -> bool {
        let c = &self.config;
        let same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
        let names = || c.columns.iter().map(|c| &*c.name);
        let twice = names().enumerate().any(|(i, n)| names().take(i).any(|m| same(m, n)));
        !c.columns.is_empty() && !twice && !names().any(|n| same(n, &c.table))
    }

    /// Reads the settings.
    pub fn connect(&self) -> Result<()> {
        self.storage.index.load_settings(0)
    }

    fn refused(&self, what: &str) -> Error {
        Error::sql(format!("cannot {what} contentless fts5 table: {}", self.config.table))
    }

    /// A command, given as `INSERT INTO t(t, rank) VALUES(...)`.
    fn command(&self, command: &str, rowid: &Value, values: &[Value], argument: &Value) -> Result<()> {
        let c = &self.config;
        let is = |name: &str| command.eq_ignore_ascii_case(name);
        if is("delete") && c.content != Content::Own {
            if c.contentless_delete {
                return Err(Error::sql("'delete' may not be used with a contentless_delete=1 table"));
            }
            let rowid = bound_rowid(rowid);
            return match rowid {
                Some(n) => self.storage.delete(n, Some(values)),
                None => Ok(()),
            };
        }
        if is("delete-all") {
            if c.content == Content::Own {
                return Err(Error::sql(
                    "'delete-all' may only be used with a contentless or external content fts5 table",
                ));
            }
            return self.storage.delete_all();
        }
        if is("rebuild") {
            if c.is_contentless() {
                return Err(Error::sql("'rebuild' may not be used with a contentless fts5 table"));
            }
            return self.storage.rebuild();
        }
        if is("optimize") {
            return self.storage.index.optimize();
        }
        if is("merge") {
            return self.storage.index.merge(i64::from(argument.to_int() as i32));
        }
        if is("integrity-check") {
            let deep = argument.to_int() != 0;
            let content = c.content == Content::Own || c.content == Content::External && deep;
            return self.storage.check(content);
        }
        self.storage.flush()?;
        if is("flush") {
            return Ok(());
        }
        self.storage.configure(command, argument)
    }

    /// Values with a locale need a table that keeps them.
    fn check_locales(&self, values: &[Value]) -> Result<()> {
        if !self.config.locale && values.iter().any(|v| locale::parts(v).is_some()) {
            return Err(Error::new(Code::Mismatch, "fts5_locale() requires locale=1"));
        }
        Ok(())
    }

    fn insert(&self, rowid: &Value, values: &[Value], replace: bool) -> Result<i64> {
        let rowid = self.storage.insert_content(rowid, values, replace)?;
        self.storage.insert_index(rowid, values)?;
        Ok(rowid)
    }

    fn change(&self, old: i64, new: &Value, change: &Change<'_>, values: &[Value]) -> Result<i64> {
        let c = &self.config;
        if c.is_contentless() {
            let mut indexed = (0..c.columns.len()).filter(|i| c.columns[*i].indexed);
            if matches!(new, Value::Int(n) if *n == old) && indexed.clone().all(|i| change.is_unchanged(i)) {
                // Of what the index has nothing is changed.
                return match c.content {
                    Content::Unindexed => self.storage.insert_content(new, values, true),
                    _ => Ok(old),
                };
            }
            if !c.contentless_delete {
                return Err(self.refused("UPDATE"));
            }
            if indexed.any(|i| change.is_unchanged(i)) {
                return Err(Error::sql(format!(
                    "cannot UPDATE a subset of columns on fts5 contentless-delete table: {}",
                    c.table
                )));
            }
        }
        let Value::Int(n) = *new else { return Err(Code::Mismatch.into()) };
        if n == old {
            self.storage.delete(old, None)?;
            return self.insert(new, values, false);
        }
        if change.conflict == OnConflict::Replace {
            self.storage.delete(old, None)?;
            self.storage.delete(n, None)?;
            return self.insert(new, values, false);
        }
        // A row that is in the way is found before anything is taken out.
        let rowid = self.storage.insert_content(new, values, false)?;
        self.storage.delete(old, None)?;
        self.storage.insert_index(rowid, values)?;
        Ok(rowid)
    }
}

fn bound_rowid(v: &Value) -> Option<i64> {
    match v {
        Value::Int(n) => Some(*n),
        _ => None,
    }
}

impl VirtualTable for Table {
    fn best_index(&self, info: &mut IndexInfo) -> Result<()> {
        plan::choose(&self.config, info)
    }

    fn open(&self) -> Result<Box<dyn VirtualCursor>> {
        let number = self.cursors.get() + 1;
        self.cursors.set(number);
        Ok(Box::new(Cursor::new(&self.storage, &self.ranked, self.functions.clone(), number)))
    }

    fn writable(&self) -> bool {
        true
    }

    fn update(&self, change: &Change<'_>) -> Result<i64> {
        let c = &self.config;
        let n = c.columns.len();
        match (change.old, change.new) {
            (old, None) => {
                if c.is_contentless() && !c.contentless_delete {
                    return Err(self.refused("DELETE from"));
                }
                self.storage.delete(old.map_or(0, Value::to_int), None)?;
                Ok(0)
            }
            (None, Some((rowid, values))) => {
                if let Some(command) = values.get(n).filter(|v| !v.is_null()) {
                    let argument = values.get(n + 1).cloned().unwrap_or_default();
                    self.command(&command.text_carried(), rowid, &values[..n], &argument)?;
                    return Ok(0);
                }
                let values = &values[..n];
                self.check_locales(values)?;
                let mut given = rowid.clone();
                iolite_value::Affinity::Integer.apply(&mut given)?;
                match given {
                    Value::Int(id) => {
                        let heeds = c.content == Content::Own || c.contentless_delete;
                        if heeds && change.conflict == OnConflict::Replace {
                            self.storage.delete(id, None)?;
                        }
                    }
                    Value::Null => {}
                    _ => return Err(Code::Mismatch.into()),
                }
                self.insert(&given, values, false)
            }
            (Some(old), Some((rowid, values))) => {
                let (old, values) = (old.to_int(), &values[..n]);
                self.check_locales(values)?;
                let mut new = rowid.clone();
                iolite_value::Affinity::Integer.apply(&mut new)?;
                if c.content == Content::External && (0..n).any(|i| change.is_unchanged(i)) {
                    let mut all = values.to_vec();
                    match self.storage.content(old)? {
                        Some(row) => {
                            let kept = all.iter_mut().zip(row).enumerate();
                            kept.filter(|(i, _)| change.is_unchanged(*i)).for_each(|(_, (v, was))| *v = was);
                        }
                        None if matches!(new, Value::Int(n) if n == old) => {
                            return Err(Code::CorruptVtab.into());
                        }
                        None => {}
                    }
                    return self.change(old, &new, change, &all);
                }
                self.change(old, &new, change, values)
            }
        }
    }

    fn participant(self: Rc<Self>) -> Option<Rc<dyn Participant>> {
        Some(self)
    }

    fn rename(&self, name: &str) -> Result<()> {
        let c = &self.config;
        self.storage.flush()?;
        let mut tables = vec!["data", "idx", "config"];
        if c.column_size {
            tables.push("docsize");
        }
        if matches!(c.content, Content::Own | Content::Unindexed) {
            tables.push("content");
        }
        for t in tables {
            let to = words::name(&format!("{name}_{t}"));
            self.storage.store.host()?.query(&format!("ALTER TABLE {} RENAME TO {to}", c.shadow(t)), &[])?;
        }
        Ok(())
    }

    fn destroy(&self) -> Result<()> {
        self.storage.rollback();
        self.storage.store.forget_statements();
        let c = &self.config;
        let mut tables = vec!["data", "idx", "config"];
        if c.column_size {
            tables.push("docsize");
        }
        if matches!(c.content, Content::Own | Content::Unindexed) {
            tables.push("content");
        }
        for t in tables {
            self.storage.store.host()?.query(&format!("DROP TABLE IF EXISTS {}", c.shadow(t)), &[])?;
        }
        Ok(())
    }

    fn function(&self, name: &str, _: usize) -> Option<Overload> {
        let f = (self.functions)(name)?;
        let function = Function {
            name: name.into(),
            args: -1,
            flags: FunctionFlags::default(),
            imp: Implementation::User(Rc::new(Call(f))),
        };
        Some(Overload { function: Rc::new(function), constraint: None })
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }

    fn integrity(&self, _: bool) -> Result<Option<String>> {
        let content = self.config.content == Content::Own;
        let (table, database) = (&self.config.table, &self.config.database);
        match self.storage.check(content) {
            Ok(()) => Ok(None),
            Err(e) if e.code().primary() == Code::Corrupt => {
                Ok(Some(format!("malformed inverted index for FTS5 table {database}.{table}")))
            }
            Err(e) => Ok(Some(format!(
                "unable to validate the inverted index for FTS5 table {database}.{table}: {}",
                e.message()
            ))),
        }
    }
}

impl Participant for Table {
    fn begin(&self) -> Result<()> {
        self.savepoint.set(0);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.savepoint.set(0);
        self.storage.flush()
    }

    fn commit(&self) {
        self.savepoint.set(0);
    }

    fn rollback(&self) {
        self.savepoint.set(0);
        self.storage.rollback();
    }

    fn savepoint(&self, n: i32) -> Result<()> {
        if self.storage.store.is_running() {
            return Ok(());
        }
        self.storage.flush()?;
        self.savepoint.set(n + 1);
        Ok(())
    }

    fn release(&self, n: i32) -> Result<()> {
        if !self.storage.store.is_running() && n + 1 < self.savepoint.get() {
            self.storage.flush()?;
            self.savepoint.set(n);
        }
        Ok(())
    }

    fn rollback_to(&self, _: i32) -> Result<()> {
        if self.storage.store.is_running() {
            return Ok(());
        }
        self.storage.rollback();
        Ok(())
    }
}
