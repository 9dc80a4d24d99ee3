//! A table that changes are applied to: the statements that find and change its rows.
//!
//! Statements say all that is asked of a row in SQL, so that the table's own affinities and collating sequences decide what is equal.

use crate::change::{Change, Op, Table};
use crate::record;
use crate::schema::{ROWID, Shape};
use crate::{corrupt, quoted};
use iolite_base::{Code, Result};
use iolite_ext::{Host, NestedStatement};
use iolite_value::Value;
use std::rc::Rc;

/// A row that was taken out of the table, with its rowid where it has one of its own.
pub(crate) type Taken = Vec<Value>;

pub(crate) struct Target {
    pub shape: Shape,
    /// How many columns the changes have.
    columns: usize,
    name: String,
    /// The statements by what is done: UPDATEs by the columns that have values, before and behind.
    statements: Vec<(Key, Box<dyn NestedStatement>)>,
}

type Key = (Op, Vec<bool>);

impl Target {
    /// The table of the main database that takes the changes of `table`; otherwise, why there is none.
    pub fn find(host: &dyn Host, table: &Table) -> Result<Result<Target, String>> {
        let shape = Shape::of(host, "main", &table.name, true)?;
        let (have, want, name) = (shape.columns.len(), table.columns(), &table.name);
        if have == 0 {
            return Ok(Err(format!("no such table: {name}")));
        }
        if have < want {
            return Ok(Err(format!("table {name} has {have} columns, expected {want} or more")));
        }
        if !shape.takes(&table.keys) || !shape.has_key() {
            return Ok(Err(format!("primary key mismatch for table {name}")));
        }
        let name = format!("main.{}", quoted(name));
        Ok(Ok(Target { shape, columns: want, name, statements: Vec::new() }))
    }

    /// Columns that do not belong to the key.
    fn others(&self) -> impl Iterator<Item = usize> {
        (0..self.columns).filter(|n| !self.shape.is_key(*n))
    }

    fn text(&self, key: &Key) -> String {
        let (n, condition) = (self.columns, self.shape.key_condition());
        let tests = |which: &mut dyn Iterator<Item = usize>| -> String {
            let term = |i| format!(" AND {} IS ?{}", self.shape.column(i), i + 1);
            which.map(term).collect()
        };
        match key.0 {
            Op::Insert => {
                let columns: Vec<String> = (0..n).map(|i| self.shape.column(i)).collect();
                let values: Vec<String> = (0..n)
                    .map(|i| match self.shape.stat1 && i == 1 {
                        true => "CASE WHEN ?2=X'' THEN NULL ELSE ?2 END".into(),
                        false => format!("?{}", i + 1),
                    })
                    .collect();
                format!("INSERT INTO {}({}) VALUES({})", self.name, columns.join(", "), values.join(", "))
            }
            Op::Delete => {
                let tests = tests(&mut self.others());
                format!("DELETE FROM {} WHERE {condition} AND (?{} OR (1{tests}))", self.name, n + 1)
            }
            Op::Update => {
                let (was, is) = key.1.split_at(n);
                let set: Vec<String> = (0..n)
                    .filter(|i| is[*i] && !self.shape.is_key(*i))
                    .map(|i| format!("{} = ?{}", self.shape.column(i), n + 1 + i))
                    .collect();
                let tests = tests(&mut self.others().filter(|i| was[*i]));
                let force = 2 * n + 1;
                format!(
                    "UPDATE {} SET {} WHERE {condition} AND (?{force} OR (1{tests}))",
                    self.name,
                    set.join(", ")
                )
            }
        }
    }

    fn statement(&mut self, host: &dyn Host, key: Key) -> Result<&mut Box<dyn NestedStatement>> {
        let at = match self.statements.iter().position(|s| s.0 == key) {
            Some(at) => at,
            None => {
                if self.statements.len() > 40 {
                    self.statements.clear();
                }
                let s = host.prepare(&self.text(&key))?;
                self.statements.push((key, s));
                self.statements.len() - 1
            }
        };
        Ok(&mut self.statements[at].1)
    }

    /// Makes a change; `force`: whatever the row holds beside its key. Answers whether there was such a row.
    pub fn run(&mut self, host: &dyn Host, c: &Change, force: bool) -> Result<bool> {
        let n = self.columns;
        if c.op == Op::Insert && self.shape.stat1 && self.seek(host, c)?.is_some() {
            // It has no key of its own.
            return Err(Code::Constraint.into());
        }
        let defined = |i: usize, new: bool| {
            record::is_defined(if new { record::field(&c.new, i) } else { c.old_field(i) })
        };
        // Records of whole rows have all fields, and others at least the key.
        let whole = c.op == Op::Insert || (c.op == Op::Delete && !c.table.patchset);
        if (0..n).any(|i| (whole || self.shape.is_key(i)) && !record::is_defined(record::field(c.keyed(), i)))
        {
            return Err(corrupt());
        }
        let key = match c.op {
            Op::Update => (0..2 * n).map(|i| defined(i % n, i >= n)).collect(),
            _ => Vec::new(),
        };
        if c.op == Op::Update && !(0..n).any(|i| defined(i, true) && !self.shape.is_key(i)) {
            // Nothing is to be changed but how the key is written, which a changeset cannot say.
            return Ok(self.seek(host, c)?.is_some());
        }
        let keys: Vec<bool> = (0..n).map(|i| self.shape.is_key(i)).collect();
        let s = self.statement(host, (c.op, key))?;
        for (i, is_key) in keys.into_iter().enumerate() {
            match c.op {
                Op::Insert => s.bind(i + 1, c.new_value(i)?.unwrap_or_default())?,
                Op::Delete => s.bind(i + 1, c.old_value(i)?.unwrap_or_default())?,
                Op::Update => {
                    if is_key || defined(i, false) {
                        s.bind(i + 1, c.old_value(i)?.unwrap_or_default())?;
                    }
                    if let Some(v) = c.new_value(i)? {
                        s.bind(n + 1 + i, v)?;
                    }
                }
            }
        }
        match c.op {
            Op::Delete => s.bind(n + 1, Value::bool(force || c.table.patchset))?,
            Op::Update => s.bind(2 * n + 1, Value::bool(force))?,
            Op::Insert => {}
        }
        run_out(s)?;
        Ok(host.changes() > 0)
    }

    /// Finds the row with the key of a change; answers its columns as changesets have them.
    pub fn seek(&mut self, host: &dyn Host, c: &Change) -> Result<Option<Vec<Value>>> {
        let sql =
            format!("SELECT {} FROM {} WHERE {}", self.shape.list(), self.name, self.shape.key_condition());
        let Some(mut row) = self.first_row(host, &sql, c)? else { return Ok(None) };
        for (i, v) in row.iter_mut().enumerate() {
            *v = self.shape.stored(i, std::mem::take(v))?;
        }
        Ok(Some(row))
    }

    /// Runs a query for the row with the key of a change.
    fn first_row(&self, host: &dyn Host, sql: &str, c: &Change) -> Result<Option<Vec<Value>>> {
        let mut s = host.prepare(sql)?;
        for (i, f) in record::fields(c.keyed()).enumerate().filter(|(i, _)| self.shape.is_key(*i)) {
            s.bind(i + 1, record::value(f)?.unwrap_or_default())?;
        }
        let row = if s.step()? { Some(s.row().to_vec()) } else { None };
        s.reset()?;
        Ok(row)
    }

    /// Whether a change would leave the row with its key as it is.
    pub fn is_done(&self, host: &dyn Host, c: &Change) -> Result<bool> {
        if c.op == Op::Delete {
            return Ok(false);
        }
        let n = self.columns;
        let mut sql = format!("SELECT 1 FROM {} WHERE {}", self.name, self.shape.key_condition());
        let mut values = vec![Value::Null; 2 * n];
        for i in 0..n {
            if self.shape.is_key(i) {
                values[i] = record::value(record::field(c.keyed(), i))?.unwrap_or_default();
            } else if let Some(v) = c.new_value(i)? {
                sql += &format!(" AND {} IS ?{}", self.shape.column(i), n + 1 + i);
                values[n + i] = v;
            }
        }
        let mut s = host.prepare(&sql)?;
        for (i, v) in values.into_iter().enumerate().filter(|(_, v)| !v.is_null()) {
            s.bind(i + 1, v)?;
        }
        let found = s.step()?;
        s.reset()?;
        Ok(found)
    }

    /// Takes the row with the key of a change out of the table.
    pub fn take_out(&mut self, host: &dyn Host, c: &Change) -> Result<Option<Taken>> {
        let columns = self.taken_columns(host)?;
        let condition = self.shape.key_condition();
        let taken =
            self.first_row(host, &format!("SELECT {columns} FROM {} WHERE {condition}", self.name), c)?;
        self.first_row(host, &format!("DELETE FROM {} WHERE {condition}", self.name), c)?;
        Ok(taken)
    }

    /// Puts a row back that was taken out.
    pub fn put_back(&self, host: &dyn Host, row: &Taken) -> Result<()> {
        let marks = vec!["?"; row.len()].join(", ");
        let sql = format!("INSERT INTO {}({}) VALUES({marks})", self.name, self.taken_columns(host)?);
        host.query(&sql, row).map(|_| ())
    }

    /// A row that was taken out, changed as an UPDATE says.
    pub fn changed(&self, mut row: Taken, c: &Change) -> Result<Taken> {
        for (i, v) in row.iter_mut().enumerate().take(self.columns) {
            if let Some(new) = c.new_value(i)? {
                *v = new;
            }
        }
        Ok(row)
    }

    /// The columns of a row that is taken out: behind its own, the rowid where it is not the key.
    fn taken_columns(&self, host: &dyn Host) -> Result<String> {
        let mut list = self.shape.list();
        let has_rowid = || -> bool {
            let own = self.shape.columns.iter().any(|c| c.eq_ignore_ascii_case(ROWID));
            !own && host.prepare(&format!("SELECT {ROWID} FROM {}", self.name)).is_ok()
        };
        if !self.shape.rowid && has_rowid() {
            list += ", ";
            list += ROWID;
        }
        Ok(list)
    }
}

fn run_out(s: &mut Box<dyn NestedStatement>) -> Result<()> {
    let ran = (|| {
        while s.step()? {}
        Ok(())
    })();
    // A statement that failed says so again.
    let reset = s.reset();
    ran.and(reset)
}

/// Where changes of one table are applied, and whose they are.
pub(crate) struct Place {
    pub table: Rc<Table>,
    pub target: Target,
}
