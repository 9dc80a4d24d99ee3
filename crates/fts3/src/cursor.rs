//! A cursor: all rows, one by its docid, or those that a query finds.

use crate::config::Content;
use crate::plan;
use crate::query::{Query, Totals};
use crate::storage::{Storage, corrupt};
use iolite_base::Result;
use iolite_ext::{FilterArgs, NestedStatement, VirtualCursor};
use iolite_value::Value;
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

enum Scan {
    Ended,
    /// Rows of the content; the present one is kept beside.
    Rows(Box<dyn NestedStatement>),
    /// Rows that the query finds: those that are left.
    Found(Range<usize>),
}

/// A cursor. See the module's head.
pub(crate) struct Cursor {
    pub storage: Rc<Storage>,
    scan: Scan,
    descending: bool,
    docid: i64,
    pub query: Option<Query>,
    language: i64,
    /// The present row's content, once it is read; `None` within: there is none.
    row: RefCell<Option<Option<Rc<Vec<Value>>>>>,
    /// What is counted once for a query.
    pub totals: RefCell<Option<Rc<Totals>>>,
}

impl Cursor {
    pub fn new(storage: &Rc<Storage>) -> Cursor {
        Cursor {
            storage: storage.clone(),
            scan: Scan::Ended,
            descending: false,
            docid: 0,
            query: None,
            language: 0,
            row: RefCell::default(),
            totals: RefCell::default(),
        }
    }

    /// The present row's docid.
    pub fn docid(&self) -> i64 {
        self.docid
    }

    /// The present row's content; `None`: it is kept elsewhere, and not there.
    pub fn content(&self) -> Result<Option<Rc<Vec<Value>>>> {
        if let Some(row) = &*self.row.borrow() {
            return Ok(row.clone());
        }
        let row = self.storage.content(self.docid)?.map(Rc::new);
        if row.is_none() && self.storage.config.content == Content::Own {
            return Err(corrupt());
        }
        *self.row.borrow_mut() = Some(row.clone());
        Ok(row)
    }

    fn advance(&mut self) -> Result<()> {
        self.row.take();
        match &mut self.scan {
            Scan::Ended => {}
            Scan::Rows(s) => {
                if s.step().map_err(|e| iolite_base::Error::from(e.code()))? {
                    let row = s.row();
                    self.docid = row[0].to_int();
                    self.row = RefCell::new(Some(Some(Rc::new(row[1..].to_vec()))));
                } else {
                    s.reset()?;
                    self.scan = Scan::Ended;
                }
            }
            Scan::Found(left) => {
                let next = if self.descending { left.next_back() } else { left.next() };
                match next.and_then(|i| self.query.as_ref().and_then(|q| q.rows.get(i))) {
                    Some(docid) => self.docid = *docid,
                    None => self.scan = Scan::Ended,
                }
            }
        }
        Ok(())
    }
}

/// A bound of docids; what is no integer bounds nothing.
fn bound(v: Option<&Value>, otherwise: i64) -> i64 {
    match v {
        Some(Value::Int(n)) => *n,
        _ => otherwise,
    }
}

impl VirtualCursor for Cursor {
    fn filter(&mut self, number: i32, order: &str, args: &FilterArgs<'_>) -> Result<()> {
        let config = self.storage.config.clone();
        let mut args = args.iter();
        let chosen = number & plan::PLAN;
        let main = if chosen == plan::SCAN { None } else { args.next() };
        let mut take = |bit: i32| if number & bit != 0 { args.next() } else { None };
        let (language, from, up_to) = (take(plan::LANGUAGE), take(plan::FROM), take(plan::UP_TO));
        let (from, up_to) = (bound(from, i64::MIN), bound(up_to, i64::MAX));
        self.descending = if order.is_empty() { config.descending } else { order == "DESC" };
        self.language = language.map_or(0, |v| i64::from(v.to_int() as i32));
        self.scan = Scan::Ended;
        self.query = None;
        self.totals.take();
        self.row.take();
        match chosen {
            plan::SCAN | plan::BY_DOCID => {
                let condition = match main {
                    Some(_) => "WHERE rowid = ?".into(),
                    None => {
                        let direction = if self.descending { "DESC" } else { "ASC" };
                        let bounds = if (from, up_to) == (i64::MIN, i64::MAX) {
                            String::new()
                        } else {
                            format!("WHERE rowid BETWEEN {from} AND {up_to} ")
                        };
                        format!("{bounds}ORDER BY rowid {direction}")
                    }
                };
                let store = &self.storage.store;
                let mut s = store.prepare(&store.rows(&condition))?;
                if let Some(v) = main {
                    s.bind(1, v.clone())?;
                }
                self.scan = Scan::Rows(s);
            }
            _ => {
                let column = (chosen - plan::MATCH) as usize;
                let column = (column < config.columns.len()).then_some(column);
                let text = match main {
                    Some(v) if !v.is_null() => v.text_bytes()?.to_vec(),
                    _ => Vec::new(),
                };
                let query = Query::new(&self.storage.index, column, self.language, &text)?;
                let first = query.rows.partition_point(|d| *d < from);
                let last = query.rows.partition_point(|d| *d <= up_to).max(first);
                self.scan = Scan::Found(first..last);
                self.query = Some(query);
            }
        }
        self.advance()
    }

    fn next(&mut self) -> Result<()> {
        self.advance()
    }

    fn eof(&self) -> bool {
        matches!(self.scan, Scan::Ended)
    }

    fn column(&self, n: usize) -> Result<Value> {
        let config = &self.storage.config;
        let columns = config.columns.len();
        if n == columns {
            return Ok(Value::Null);
        }
        if n == columns + 1 {
            return Ok(Value::Int(self.docid));
        }
        if n == columns + 2 {
            if self.query.is_some() {
                return Ok(Value::Int(self.language));
            }
            if config.language.is_none() {
                return Ok(Value::Int(0));
            }
        }
        let at = n.min(columns);
        let row = self.content()?;
        Ok(row.and_then(|r| r.get(at).cloned()).unwrap_or_default())
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.docid)
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }
}
