//! An FTS3 table: made, connected, written to, its part in transactions.

use crate::config::{Config, Content};
use crate::cursor::Cursor;
use crate::storage::Storage;
use crate::store::Store;
use crate::{functions, plan, words};
use iolite_base::{Code, Result};
use iolite_ext::{Change, Host, IndexInfo, OnConflict, Overload, Participant, VirtualCursor, VirtualTable};
use iolite_value::Value;
use std::cell::Cell;
use std::rc::Rc;

/// A table. See the module's head.
pub(crate) struct Table {
    config: Rc<Config>,
    pub storage: Rc<Storage>,
    /// The innermost savepoint that it knows of, from 1.
    savepoint: Cell<i32>,
}

impl Table {
    pub fn new(config: Config, host: &Rc<dyn Host>) -> Rc<Table> {
        let config = Rc::new(config);
        let store = Rc::new(Store::new(config.clone(), host));
        let storage = Rc::new(Storage::new(&store));
        Rc::new(Table { config, storage, savepoint: Cell::new(0) })
    }

    /// Makes the tables that belong to it.
    pub fn create(&self) -> Result<()> {
        let c = &self.config;
        let mut tables = Vec::new();
        if c.content == Content::Own {
            let mut columns = "docid INTEGER PRIMARY KEY".to_string();
            for (i, column) in c.columns.iter().enumerate() {
                columns += &format!(", {}", words::literal(&format!("c{i}{}", column.name)));
            }
            if c.language.is_some() {
                columns += ", langid";
            }
            tables.push(("content", columns));
        }
        tables.push(("segments", "blockid INTEGER PRIMARY KEY, block BLOB".into()));
        let dir = "level INTEGER,idx INTEGER,start_block INTEGER,leaves_end_block INTEGER,\
                   end_block INTEGER,root BLOB,PRIMARY KEY(level, idx)";
        tables.push(("segdir", dir.into()));
        if c.sizes {
            tables.push(("docsize", "docid INTEGER PRIMARY KEY, size BLOB".into()));
        }
        if c.version == 4 {
            tables.push(("stat", "id INTEGER PRIMARY KEY, value BLOB".into()));
        }
        for (suffix, columns) in tables {
            let name = words::literal(&format!("{}_{suffix}", c.table));
            self.storage
                .store
                .query(&format!("CREATE TABLE {}.{name}({columns})", words::name(&c.database)))?;
        }
        Ok(())
    }

    /// A command, given as `INSERT INTO t(t) VALUES(...)`.
    fn command(&self, command: &str) -> Result<()> {
        let is = |name: &str| command.eq_ignore_ascii_case(name);
        let behind = |name: &str| {
            command.get(..name.len()).filter(|c| c.eq_ignore_ascii_case(name)).map(|_| &command[name.len()..])
        };
        let index = &self.storage.index;
        if is("optimize") {
            return index.optimize().map(|_| ());
        }
        if is("rebuild") {
            return self.storage.rebuild();
        }
        if is("integrity-check") {
            return if self.storage.check()? { Ok(()) } else { Err(Code::CorruptVtab.into()) };
        }
        if let Some(rest) = behind("merge=") {
            let (work, rest) = words::number(rest);
            let (mut least, mut rest) = (8, rest);
            if let Some(more) = rest.strip_prefix(',').filter(|m| !m.is_empty()) {
                (least, rest) = words::number(more);
            }
            if !rest.is_empty() || least < 2 {
                return Err(Code::Error.into());
            }
            index.need_stat()?;
            return index.merge_some(work, least);
        }
        if let Some(rest) = behind("automerge=") {
            return index.set_automerge(words::number(rest).0);
        }
        if is("flush") {
            return self.storage.flush(false);
        }
        Err(Code::Error.into())
    }

    /// The docid that a change gives: that of the column `docid`, or else that of the row.
    fn docid<'a>(&self, rowid: &'a Value, values: &'a [Value]) -> &'a Value {
        values.get(self.config.columns.len() + 1).filter(|v| !v.is_null()).unwrap_or(rowid)
    }

    /// Puts a row into the content, or says its docid where somebody else keeps it.
    fn insert_content(&self, old: Option<&Value>, rowid: &Value, values: &[Value]) -> Result<i64> {
        let n = self.config.columns.len();
        let docid = self.docid(rowid, values);
        if self.config.content != Content::Own {
            return match docid {
                Value::Int(n) => Ok(*n),
                _ => Err(Code::Constraint.into()),
            };
        }
        let given = values.get(n + 1).is_some_and(|v| !v.is_null());
        if given && old.is_none() && !rowid.is_null() {
            return Err(Code::Error.into());
        }
        let language = values.get(n + 2).cloned().unwrap_or_default();
        self.storage.insert_content(docid, &values[..n], &language)
    }

    /// Carries out a change; answers the docid of the new row.
    fn change(&self, change: &Change<'_>) -> Result<i64> {
        let s = &self.storage;
        let n = self.config.columns.len();
        let (mut more, mut less) = (s.no_sizes(), s.no_sizes());
        let (mut rows, mut docid) = (0, None);
        let delete = |id: i64, less: &mut Vec<u32>, rows: &mut i64| -> Result<()> {
            match s.delete(id, less)? {
                (true, true) => *rows = 0,
                (true, false) => *rows -= 1,
                _ => {}
            }
            Ok(())
        };
        if let Some((rowid, values)) = change.new {
            if values.get(n + 2).is_some_and(|v| (v.to_int() as i32) < 0) {
                return Err(Code::Constraint.into());
            }
            let new = self.docid(rowid, values);
            let moved = change.old.is_none_or(|o| o.to_int() != new.to_int());
            if self.config.content == Content::Own && !new.is_null() && moved {
                if change.conflict == OnConflict::Replace {
                    delete(new.to_int(), &mut less, &mut rows)?;
                } else {
                    docid = Some(self.insert_content(change.old, rowid, values)?);
                }
            }
        }
        if let Some(old) = change.old {
            delete(old.to_int(), &mut less, &mut rows)?;
        }
        let mut id = 0;
        if let Some((rowid, values)) = change.new {
            id = match docid {
                Some(id) => id,
                None => self.insert_content(change.old, rowid, values)?,
            };
            let language = i64::from(values.get(n + 2).map_or(0, Value::to_int) as i32);
            s.insert_terms(id, &values[..n], language, &mut more)?;
            rows += 1;
        }
        s.change_totals(&more, &less, rows)?;
        Ok(id)
    }

    fn shadow_tables(&self) -> Vec<&'static str> {
        let mut tables = Vec::new();
        if self.config.content == Content::Own {
            tables.push("content");
        }
        if self.config.sizes {
            tables.push("docsize");
        }
        if self.storage.index.has_stat.get() == Some(true) {
            tables.push("stat");
        }
        tables.extend(["segments", "segdir"]);
        tables
    }
}

impl VirtualTable for Table {
    fn best_index(&self, info: &mut IndexInfo) -> Result<()> {
        plan::choose(&self.config, info);
        Ok(())
    }

    fn open(&self) -> Result<Box<dyn VirtualCursor>> {
        Ok(Box::new(Cursor::new(&self.storage)))
    }

    fn writable(&self) -> bool {
        true
    }

    fn update(&self, change: &Change<'_>) -> Result<i64> {
        if let (None, Some((_, values))) = (change.old, change.new)
            && let Some(command) = values.get(self.config.columns.len()).filter(|v| !v.is_null())
        {
            self.command(&command.text_carried())?;
            return Ok(0);
        }
        self.change(change)
    }

    fn participant(self: Rc<Self>) -> Option<Rc<dyn Participant>> {
        Some(self)
    }

    fn rename(&self, name: &str) -> Result<()> {
        self.storage.index.begin()?;
        self.storage.flush(false)?;
        for t in self.shadow_tables() {
            let to = words::literal(&format!("{name}_{t}"));
            self.storage.store.query(&format!("ALTER TABLE {} RENAME TO {to}", self.config.shadow(t)))?;
        }
        Ok(())
    }

    fn destroy(&self) -> Result<()> {
        self.storage.index.forget();
        self.storage.store.forget_statements();
        let mut tables = vec!["segments", "segdir", "docsize", "stat"];
        if self.config.content == Content::Own {
            tables.push("content");
        }
        for t in tables {
            self.storage.store.query(&format!("DROP TABLE IF EXISTS {}", self.config.shadow(t)))?;
        }
        Ok(())
    }

    fn function(&self, name: &str, _: usize) -> Option<Overload> {
        functions::overload(name)
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }

    fn integrity(&self, _: bool) -> Result<Option<String>> {
        let c = &self.config;
        let of = format!("FTS{} table {}.{}", c.version, c.database, c.table);
        Ok(match self.storage.check() {
            Ok(true) => None,
            Err(e) if e.code().primary() != Code::Corrupt => {
                Some(format!("unable to validate the inverted index for {of}: {}", e.message()))
            }
            _ => Some(format!("malformed inverted index for {of}")),
        })
    }
}

impl Participant for Table {
    fn begin(&self) -> Result<()> {
        self.savepoint.set(0);
        self.storage.index.begin()
    }

    fn sync(&self) -> Result<()> {
        self.savepoint.set(0);
        self.storage.flush(true)
    }

    fn commit(&self) {
        self.savepoint.set(0);
    }

    fn rollback(&self) {
        self.savepoint.set(0);
        self.storage.index.forget();
    }

    fn savepoint(&self, n: i32) -> Result<()> {
        if self.storage.store.is_running() {
            return Ok(());
        }
        if self.storage.index.has_pending() {
            self.storage.flush(false)?;
        }
        self.savepoint.set(n + 1);
        Ok(())
    }

    fn release(&self, n: i32) -> Result<()> {
        if !self.storage.store.is_running() {
            self.savepoint.set(n);
        }
        Ok(())
    }

    fn rollback_to(&self, n: i32) -> Result<()> {
        if !self.storage.store.is_running() && n < self.savepoint.get() {
            self.storage.index.forget();
        }
        Ok(())
    }
}
