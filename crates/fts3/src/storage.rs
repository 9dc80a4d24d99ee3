//! Rows of a table: their content, their sizes, the totals, their terms in the index.

use crate::config::{Config, Content};
use crate::index::{Index, Multi, Rows, Source, TOTALS, places};
use crate::store::{Sql, Store};
use crate::{tokenize, varint};
use iolite_base::{Code, Error, Result};
use iolite_ext::{Token, TokenizeFor};
use iolite_value::Value;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

/// Where rows are kept.
pub(crate) struct Storage {
    pub config: Rc<Config>,
    pub store: Rc<Store>,
    pub index: Index,
}

/// What is answered where the table has no row that its index has.
pub(crate) fn corrupt() -> Error {
    Code::CorruptVtab.into()
}

/// For each column how many tokens it has, and the bytes of all.
pub(crate) type Sizes = Vec<u32>;

impl Storage {
    pub fn new(store: &Rc<Store>) -> Storage {
        Storage { config: store.config.clone(), store: store.clone(), index: Index::new(store) }
    }

    /// Sizes of nothing.
    pub fn no_sizes(&self) -> Sizes {
        vec![0; self.config.columns.len() + 1]
    }

    /// Cuts the indexed columns into tokens.
    fn tokens(
        &self,
        values: &[Value],
        language: i64,
        sizes: &mut Sizes,
        mut f: impl FnMut(&Token<'_>, usize, i64) -> Result<()>,
    ) -> Result<()> {
        let n = self.config.columns.len();
        for (i, v) in values.iter().enumerate().take(n) {
            if !self.config.columns[i].indexed {
                continue;
            }
            if v.is_null() {
                // It begins anew, as stock counts.
                sizes[i] = 0;
                continue;
            }
            let text = v.text_bytes()?;
            let mut position = 0i64;
            self.config.tokenize(TokenizeFor::Document, language, tokenize::visible(&text), &mut |t| {
                position += t.skipped as i64;
                f(t, i, position)?;
                position += 1;
                Ok(true)
            })?;
            sizes[i] = sizes[i].wrapping_add(position as u32);
            sizes[n] = sizes[n].wrapping_add(text.len() as u32);
        }
        Ok(())
    }

    /// A row as it is kept, without its docid.
    pub fn content(&self, docid: i64) -> Result<Option<Vec<Value>>> {
        let row = self.store.row(Sql::ReadContent, &[Value::Int(docid)])?;
        Ok(row.map(|mut r| {
            r.remove(0);
            r
        }))
    }

    pub fn language_of(&self, row: &[Value]) -> i64 {
        match self.config.language {
            Some(_) => i64::from(row.get(self.config.columns.len()).map_or(0, Value::to_int) as i32),
            None => 0,
        }
    }

    /// Puts a row into the content. Answers its docid.
    pub fn insert_content(&self, docid: &Value, values: &[Value], language: &Value) -> Result<i64> {
        let mut params = vec![docid.clone()];
        params.extend_from_slice(values);
        if self.config.language.is_some() {
            params.push(Value::Int(i64::from(language.to_int() as i32)));
        }
        self.store.run(Sql::InsertContent, &params)?;
        Ok(self.store.host()?.last_insert_rowid())
    }

    /// Puts a row's terms into the index.
    pub fn insert_terms(&self, docid: i64, values: &[Value], language: i64, sizes: &mut Sizes) -> Result<()> {
        self.index.begin_row(docid, false, language)?;
        let mut own = self.no_sizes();
        self.tokens(values, language, &mut own, |t, column, position| {
            if !t.text.is_empty() {
                self.index.add(t.text, Some((column, position)));
            }
            Ok(())
        })?;
        if self.config.sizes {
            let mut blob = Vec::new();
            own[..self.config.columns.len()].iter().for_each(|n| varint::push(&mut blob, (*n).into()));
            self.store.run(Sql::WriteSize, &[Value::Int(docid), Value::blob(&blob)?])?;
        }
        sizes.iter_mut().zip(own).for_each(|(all, n)| *all = all.wrapping_add(n));
        Ok(())
    }

    /// Takes a row out. Answers whether it was there, and whether it was the last one.
    pub fn delete(&self, docid: i64, sizes: &mut Sizes) -> Result<(bool, bool)> {
        let Some(row) = self.content(docid)? else { return Ok((false, false)) };
        let language = self.language_of(&row);
        self.index.begin_row(docid, true, language)?;
        self.tokens(&row, language, sizes, |t, _, _| {
            if !t.text.is_empty() {
                self.index.add(t.text, None);
            }
            Ok(())
        })?;
        let own = self.config.content == Content::Own;
        if own && self.store.number(Sql::IsLastRow, &[Value::Int(docid)])? == Some(1) {
            self.delete_all(true)?;
            *sizes = self.no_sizes();
            return Ok((true, true));
        }
        if own {
            self.store.run(Sql::DeleteContent, &[Value::Int(docid)])?;
        }
        if self.config.sizes {
            self.store.run(Sql::DeleteSize, &[Value::Int(docid)])?;
        }
        Ok((true, false))
    }

    /// Takes all rows out of the index, and out of the content.
    fn delete_all(&self, content: bool) -> Result<()> {
        self.index.forget();
        let mut tables = vec!["segments", "segdir"];
        if content && self.config.content == Content::Own {
            tables.insert(0, "content");
        }
        if self.config.sizes {
            tables.push("docsize");
        }
        if self.index.has_stat.get() == Some(true) {
            tables.push("stat");
        }
        for t in tables {
            self.store.query(&format!("DELETE FROM {}", self.config.shadow(t)))?;
        }
        Ok(())
    }

    /// The number of rows, for each column how many tokens all rows have, the bytes of all; `None`: nobody has noted it.
    pub fn totals(&self) -> Result<Option<Vec<u64>>> {
        let row = self.store.row(Sql::ReadStat, &[Value::Int(TOTALS)])?;
        let Some(blob) = row.and_then(|r| r.first().and_then(|v| v.bytes().cloned())) else {
            return Ok(None);
        };
        let n = self.config.columns.len() + 2;
        let mut at = 0;
        Ok(Some((0..n).map(|_| varint::get(&blob, &mut at).unwrap_or(0)).collect()))
    }

    /// Notes what became more and what became less.
    pub fn change_totals(&self, more: &Sizes, less: &Sizes, rows: i64) -> Result<()> {
        if self.config.version != 4 {
            return Ok(());
        }
        let n = self.config.columns.len() + 2;
        let old = self.totals()?.unwrap_or_else(|| vec![0; n]);
        let mut blob = Vec::new();
        let count = i64::from(old[0] as u32) + rows;
        varint::push(&mut blob, count.max(0) as u32 as u64);
        for i in 0..n - 1 {
            let sum = (old[i + 1] as u32).wrapping_add(more[i]);
            varint::push(&mut blob, sum.saturating_sub(less[i]).into());
        }
        self.store.run(Sql::WriteStat, &[Value::Int(TOTALS), Value::blob(&blob)?])
    }

    /// How many tokens each column of a row has.
    pub fn sizes(&self, docid: i64) -> Result<Vec<u64>> {
        let row = self.store.row(Sql::ReadSize, &[Value::Int(docid)])?;
        let blob = row.and_then(|r| r.first().and_then(|v| v.bytes().cloned()));
        let blob = blob.ok_or(Code::CorruptVtab)?;
        let mut at = 0;
        let one = |_| varint::get(&blob, &mut at).ok_or_else(|| Error::from(Code::CorruptVtab));
        (0..self.config.columns.len()).map(one).collect()
    }

    /// Goes through all rows of the content.
    fn each_row(&self, mut f: impl FnMut(i64, &[Value]) -> Result<()>) -> Result<()> {
        let mut scan = self.store.prepare(&self.store.rows(""))?;
        while scan.step()? {
            let row = scan.row().to_vec();
            f(row[0].to_int(), &row[1..])?;
        }
        scan.reset()
    }

    /// Builds the index anew from the content.
    pub fn rebuild(&self) -> Result<()> {
        self.delete_all(false)?;
        let (mut sizes, mut rows) = (self.no_sizes(), 0);
        self.each_row(|docid, row| {
            rows += 1;
            self.insert_terms(docid, row, self.language_of(row), &mut sizes)
        })?;
        self.change_totals(&sizes, &self.no_sizes(), rows)
    }

    /// Whether the index says what the content does.
    pub fn check(&self) -> Result<bool> {
        let sum = |language: i64, index: usize, term: &[u8], docid: i64, column: usize, position: i64| {
            let mut h = DefaultHasher::new();
            (language, index, term, docid, column, position).hash(&mut h);
            h.finish()
        };
        let mut found = 0u64;
        let prefixes = &self.config.prefixes;
        for language in self.index.languages()? {
            for index in 0..prefixes.len() {
                let mut multi: Multi = self.index.read(language, index, Source::From(Vec::new()))?;
                while multi.next()? {
                    let mut rows = Rows::new(&multi.list, self.config.descending);
                    while let Some((docid, range)) = rows.next()? {
                        places(&multi.list[range], |column, position| {
                            found ^= sum(language, index, &multi.term, docid, column, position);
                        })?;
                    }
                }
            }
        }
        let mut expected = 0u64;
        self.each_row(|docid, row| {
            let language = self.language_of(row);
            self.tokens(row, language, &mut self.no_sizes(), |t, column, position| {
                if t.text.is_empty() {
                    return Ok(());
                }
                for (index, n) in prefixes.iter().enumerate().filter(|p| *p.1 <= t.text.len()) {
                    let term = if *n == 0 { t.text } else { &t.text[..*n] };
                    expected ^= sum(language, index, term, docid, column, position);
                }
                Ok(())
            })
        })?;
        Ok(found == expected)
    }

    /// Writes what is kept back; for a commit also what is to be merged with it.
    pub fn flush(&self, commit: bool) -> Result<()> {
        let host = self.store.host()?;
        let last = host.last_insert_rowid();
        let done = if commit { self.index.sync() } else { self.index.flush() };
        host.put_back_last_insert_rowid(last);
        done
    }
}
