//! The rows of a table: put into the content table and the index, taken out, and what is counted of them.
//!
//! How many rows there are and how many tokens their columns have is counted in memory from the first change of a transaction
//! on, and written when the index is.

use crate::config::{Config, Content};
use crate::index::Index;
use crate::index::position::varint as read_varint;
use crate::locale;
use crate::store::{AVERAGES, Sql, Store};
use iolite_base::{Code, Error, Result, varint};
use iolite_ext::{Changes, ReadNote, TokenizeFor};
use iolite_value::Value;
use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::rc::Rc;

/// What is counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Totals {
    pub rows: i64,
    /// Tokens, by column.
    pub tokens: Vec<i64>,
}

/// The rows of a table. See the module's head.
pub(crate) struct Storage {
    pub config: Rc<Config>,
    pub store: Rc<Store>,
    pub index: Rc<Index>,
    totals: RefCell<Option<Totals>>,
}

/// A column's text and its locale.
pub(crate) type Cell<'v> = (std::borrow::Cow<'v, [u8]>, Option<Vec<u8>>);

impl Storage {
    pub fn new(store: &Rc<Store>) -> Storage {
        Storage {
            config: store.config.clone(),
            store: store.clone(),
            index: Rc::new(Index::new(store)),
            totals: RefCell::new(None),
        }
    }

    /// The totals as they are now.
    pub fn totals(&self) -> Result<Totals> {
        if let Some(t) = &*self.totals.borrow() {
            return Ok(t.clone());
        }
        let record = self.store.block(AVERAGES)?;
        let mut at = 0;
        let mut next = || read_varint(&record, &mut at).unwrap_or(0) as i64;
        let rows = next();
        Ok(Totals { rows, tokens: self.config.columns.iter().map(|_| next()).collect() })
    }

    fn change_totals(&self, f: impl FnOnce(&mut Totals) -> Result<()>) -> Result<()> {
        let mut t = self.totals()?;
        f(&mut t)?;
        *self.totals.borrow_mut() = Some(t);
        Ok(())
    }

    fn save_totals(&self, t: &Totals) -> Result<()> {
        let mut out = Vec::new();
        varint::push(&mut out, t.rows as u64);
        t.tokens.iter().for_each(|n| varint::push(&mut out, *n as u64));
        self.store.write(AVERAGES, &out)
    }

    /// Writes what is kept back.
    pub fn flush(&self) -> Result<()> {
        let host = self.store.host()?;
        let last = host.last_insert_rowid();
        let totals = self.totals.take();
        if let Some(t) = totals {
            self.save_totals(&t)?;
        }
        self.index.flush()?;
        host.put_back_last_insert_rowid(last);
        Ok(())
    }

    /// Writes what is kept back if there is anything: somebody reads all terms.
    pub fn flush_for_reading(&self) -> Result<()> {
        if self.index.has_pending() { self.flush() } else { Ok(()) }
    }

    /// Forgets what is kept back.
    pub fn rollback(&self) {
        self.totals.take();
        self.index.rollback();
    }

    /// A column's text and locale, of a row's values as the user gave them or the content table has them.
    pub fn cell<'v>(&self, values: &'v [Value], column: usize) -> Cell<'v> {
        let v = values.get(column).unwrap_or(&Value::Null);
        if !self.config.locale {
            return (locale::text(v), None);
        }
        if let Some((text, l)) = locale::parts(v) {
            return (text.into(), Some(l.to_vec()));
        }
        let own = values.get(self.config.columns.len() + column).filter(|l| !l.is_null());
        (locale::text(v), own.map(|l| locale::text(l).into_owned()))
    }

    /// Cuts the columns of a row into tokens; `f` is given each, with its column and offset. Answers the columns' sizes.
    fn tokens(&self, values: &[Value], mut f: impl FnMut(&[u8], u32, u32) -> Result<()>) -> Result<Vec<i64>> {
        let mut sizes = vec![0i64; self.config.columns.len()];
        for (i, _) in self.config.columns.iter().enumerate().filter(|(_, c)| c.indexed) {
            let (text, l) = self.cell(values, i);
            let size = &mut sizes[i];
            self.config.tokenize(TokenizeFor::Document, &text, l.as_deref(), &mut |t| {
                if !t.colocated || *size == 0 {
                    *size += 1;
                }
                let token = &t.text[..t.text.len().min(crate::index::LONGEST_TOKEN)];
                f(token, i as u32, *size as u32 - 1)?;
                Ok(true)
            })?;
        }
        Ok(sizes)
    }

    /// Puts a row into the content table, or where none is kept chooses its rowid; answers that.
    pub fn insert_content(&self, rowid: &Value, values: &[Value], replace: bool) -> Result<i64> {
        let kept = matches!(self.config.content, Content::Own | Content::Unindexed);
        if !kept {
            return self.new_rowid(rowid);
        }
        let mut row = vec![rowid.clone()];
        for i in self.store.content_columns() {
            let v = &values[i];
            row.push(match locale::parts(v).filter(|_| self.config.locale) {
                Some((text, _)) => Value::text(text)?,
                None => v.clone(),
            });
        }
        for i in self.store.locale_columns() {
            row.push(match locale::parts(&values[i]) {
                Some((_, l)) => Value::text(l)?,
                None => Value::Null,
            });
        }
        let verb = if replace { Sql::ReplaceContent } else { Sql::InsertContent };
        let made = self.store.insert(verb, &row).map_err(|e| match e.code().primary() {
            // The user has not named that table.
            Code::Constraint => Error::new(e.code(), "constraint failed"),
            _ => e,
        })?;
        Ok(if row[0].is_null() { made } else { row[0].to_int() })
    }

    /// The rowid of a row that is not kept.
    fn new_rowid(&self, rowid: &Value) -> Result<i64> {
        if let Value::Int(n) = rowid {
            return Ok(*n);
        }
        if !self.config.column_size {
            return Err(Code::Mismatch.into());
        }
        // The table of sizes chooses it, with a row that is written again when the sizes are known.
        let columns = if self.config.contentless_delete { 3 } else { 2 };
        self.store.insert(Sql::WriteSize, &vec![Value::Null; columns])
    }

    /// Puts a row into the index.
    pub fn insert_index(&self, rowid: i64, values: &[Value]) -> Result<()> {
        self.index.begin_row(rowid, false)?;
        let sizes = self.tokens(values, |token, column, offset| {
            self.index.add(token, Some((column, offset)));
            Ok(())
        })?;
        self.write_size(rowid, &sizes)?;
        self.change_totals(|t| {
            t.rows = t.rows.wrapping_add(1);
            t.tokens.iter_mut().zip(&sizes).for_each(|(t, n)| *t = t.wrapping_add(*n));
            Ok(())
        })
    }

    fn write_size(&self, rowid: i64, sizes: &[i64]) -> Result<()> {
        if !self.config.column_size {
            return Ok(());
        }
        let mut out = Vec::new();
        sizes.iter().for_each(|n| varint::push(&mut out, *n as u64));
        let mut row = vec![Value::Int(rowid), Value::blob(&out)?];
        if self.config.contentless_delete {
            row.push(Value::Int(self.index.origin()? as i64));
        }
        self.store.run(Sql::WriteSize, &row)
    }

    /// The values of a row as the content table has them; `None`: it has no such row.
    pub fn content(&self, rowid: i64) -> Result<Option<Vec<Value>>> {
        let row = self.store.row(Sql::ReadContent, &[Value::Int(rowid)])?;
        Ok(row.map(|mut r| {
            r.remove(0);
            r
        }))
    }

    /// Takes a row out. `values`: what it was, where nobody keeps it.
    pub fn delete(&self, rowid: i64, values: Option<&[Value]>) -> Result<()> {
        self.totals()?;
        self.change_totals(|_| Ok(()))?;
        self.index.begin_row(rowid, true)?;
        if self.config.contentless_delete {
            let row = self.store.row(Sql::ReadSize, &[Value::Int(rowid)])?;
            let origin = row.and_then(|r| r.get(1).map(Value::to_int)).unwrap_or(0);
            if origin != 0 {
                self.index.mark_deleted(origin as u64, rowid)?;
            }
        } else {
            let read;
            let values = match values {
                Some(v) => Some(v),
                None => {
                    read = self.content(rowid)?;
                    read.as_deref()
                }
            };
            if let Some(values) = values {
                let sizes = self.tokens(values, |token, _, _| {
                    self.index.add(token, None);
                    Ok(())
                })?;
                self.change_totals(|t| {
                    for (t, n) in t.tokens.iter_mut().zip(&sizes) {
                        *t -= n;
                        if *t < 0 {
                            return Err(Code::CorruptVtab.into());
                        }
                    }
                    if t.rows < 1 {
                        return Err(Code::CorruptVtab.into());
                    }
                    t.rows -= 1;
                    Ok(())
                })?;
            }
        }
        if self.config.column_size {
            self.store.run(Sql::DeleteSize, &[Value::Int(rowid)])?;
        }
        if matches!(self.config.content, Content::Own | Content::Unindexed) {
            self.store.run(Sql::DeleteContent, &[Value::Int(rowid)])?;
        }
        Ok(())
    }

    /// Takes all rows out of the index.
    pub fn delete_all(&self) -> Result<()> {
        self.totals.take();
        let mut tables = vec!["data", "idx"];
        if self.config.column_size {
            tables.push("docsize");
        }
        if self.config.content == Content::Unindexed {
            tables.push("content");
        }
        for t in tables {
            self.store.host()?.query(&format!("DELETE FROM {}", self.config.shadow(t)), &[])?;
        }
        self.index.clear()?;
        self.set_version()
    }

    /// Notes the version of the format.
    pub fn set_version(&self) -> Result<()> {
        let version = [Value::text("version")?, Value::Int(crate::config::VERSION)];
        self.store.run(Sql::WriteConfig, &version)?;
        self.store.config.settings.version.set(crate::config::VERSION);
        Ok(())
    }

    /// Builds the index anew from the content.
    pub fn rebuild(&self) -> Result<()> {
        self.delete_all()?;
        self.change_totals(|_| Ok(()))?;
        let mut rows = Vec::new();
        let mut scan = self.store.prepare(&self.all_rows())?;
        while scan.step()? {
            rows.clear();
            rows.extend_from_slice(scan.row());
            let rowid = rows[0].to_int();
            self.insert_index(rowid, &rows[1..])?;
        }
        scan.reset()?;
        self.save_totals(&self.totals()?)
    }

    /// The query for all rows of the content.
    pub fn all_rows(&self) -> String {
        let (columns, from, _) = self.store.content();
        format!("SELECT {columns} FROM {from} T")
    }

    /// The sizes of a row's columns; `None`: they are not known.
    pub fn sizes(&self, rowid: i64) -> Result<Option<Vec<i64>>> {
        let mut out = Vec::new();
        Ok(self.read_sizes(rowid, &mut out)?.then_some(out))
    }

    /// Reads the sizes of a row's columns; false: they are not known.
    pub fn read_sizes(&self, rowid: i64, out: &mut Vec<i64>) -> Result<bool> {
        out.clear();
        let mut whole = false;
        self.store.each(Sql::ReadSize, &[Value::Int(rowid)], |row| {
            whole = row.first().is_some_and(|v| self.decode_sizes(v, out));
            Ok(())
        })?;
        Ok(whole)
    }

    /// Appends the sizes that a row of `%_docsize` says; false: it is damaged.
    fn decode_sizes(&self, v: &Value, out: &mut Vec<i64>) -> bool {
        let blob = locale::text(v);
        let mut at = 0;
        for _ in &self.config.columns {
            match read_varint(&blob, &mut at) {
                Some(n) => out.push(n as i32 as i64),
                None => return false,
            }
        }
        at == blob.len()
    }

    /// Calls `f` with the number of tokens of each of these rows, in the order of rowids; `None`: it is not known.
    pub fn each_size(
        &self,
        rows: RangeInclusive<i64>,
        f: &mut dyn FnMut(i64, Option<i64>) -> Result<()>,
    ) -> Result<()> {
        let mut sizes = Vec::new();
        let bounds = [Value::Int(*rows.start()), Value::Int(*rows.end())];
        self.store.each(Sql::SizesBetween, &bounds, |row| {
            let [id, v] = row else { return Ok(()) };
            sizes.clear();
            let whole = self.decode_sizes(v, &mut sizes);
            f(id.to_int(), whole.then(|| sizes.iter().sum()))
        })
    }

    /// What has changed in the tables that ranks depend on, as [`iolite_ext::Host::changed_since`] says; `None` also where something is kept back
    /// here.
    pub fn changes(&self, note: &mut ReadNote) -> Option<Changes> {
        if self.totals.borrow().is_some() || self.index.has_unwritten() {
            return None;
        }
        self.store.changes(note)
    }

    /// Sets a setting for all connections.
    pub fn configure(&self, key: &str, value: &Value) -> Result<()> {
        if !self.config.set(key, value)? {
            return Err(Error::from(Code::Error));
        }
        self.store.run(Sql::WriteConfig, &[Value::text(key)?, value.clone()])?;
        self.index.raise_cookie()
    }

    /// Whether the index says what the content does. `content`: that is looked at, too.
    pub fn check(&self, content: bool) -> Result<()> {
        let malformed = || Error::from(Code::CorruptVtab);
        let mut found = crate::check::Sum::new(&self.config);
        crate::check::of_index(&self.index, &mut found)?;
        if !content {
            return Ok(());
        }
        let mut expected = crate::check::Sum::new(&self.config);
        let (mut rows, mut tokens) = (0i64, vec![0i64; self.config.columns.len()]);
        let mut scan = self.store.prepare(&self.all_rows())?;
        while scan.step()? {
            let row = scan.row().to_vec();
            let rowid = row[0].to_int();
            let mut document = crate::check::Document::default();
            let sizes = self.tokens(&row[1..], |token, column, offset| {
                document.token(&self.config, &mut expected, rowid, token, column, offset);
                Ok(())
            })?;
            if self.config.column_size && self.sizes(rowid)?.as_ref() != Some(&sizes) {
                return Err(malformed());
            }
            rows += 1;
            tokens.iter_mut().zip(&sizes).for_each(|(t, n)| *t += n);
        }
        drop(scan);
        let totals = self.totals()?;
        let count = |table: &str| -> Result<i64> {
            let sql = format!("SELECT count(*) FROM {}", self.config.shadow(table));
            let answer = self.store.host()?.query(&sql, &[])?;
            Ok(answer.first().and_then(|r| r.first()).map_or(0, Value::to_int))
        };
        let sized = !self.config.column_size || count("docsize")? == rows;
        if found != expected || totals != (Totals { rows, tokens }) || !sized {
            return Err(malformed());
        }
        Ok(())
    }
}
