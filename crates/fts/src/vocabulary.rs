//! `fts5vocab`: the terms of an index as a table, one row for each term (`row`), term and column (`col`), or place (`instance`).

use crate::config::Detail;
use crate::index::position::{Columns, Places, column_of, offset_of};
use crate::index::{MAIN, Multi};
use crate::storage::Storage;
use crate::table::Table;
use crate::words;
use iolite_base::{Code, Error, Result};
use iolite_ext::{
    ConstraintOp, Declared, FilterArgs, Host, IndexInfo, Module, TableArgs, Trust, VirtualCursor,
    VirtualTable,
};
use iolite_value::Value;
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

/// The module.
pub(crate) struct Vocabulary;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Row,
    Column,
    Instance,
}

struct Vocab {
    host: Weak<dyn Host>,
    database: String,
    table: String,
    kind: Kind,
}

/// What a plan's number says: which conditions on the term are passed, in this order.
const EQUAL: i32 = 1;
const FROM: i32 = 2;
const UP_TO: i32 = 4;

fn unquoted(arg: &str) -> String {
    words::dequote(arg).map_or_else(|| arg.to_string(), |d| d.0)
}

impl Module for Vocabulary {
    fn connect(&self, host: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<Declared> {
        let (database, rest) = match args.args {
            [_, _] => (args.database.to_string(), args.args),
            [d, rest @ ..] if rest.len() == 2 && args.database.eq_ignore_ascii_case("temp") => {
                (unquoted(d), rest)
            }
            _ => return Err(Error::sql("wrong number of vtable arguments")),
        };
        let (table, kind) = (unquoted(&rest[0]), unquoted(&rest[1]));
        let (kind, columns) = match &*kind.to_ascii_lowercase() {
            "row" => (Kind::Row, "term, doc, cnt"),
            "col" => (Kind::Column, "term, col, doc, cnt"),
            "instance" => (Kind::Instance, "term, doc, col, offset"),
            _ => return Err(Error::sql(format!("fts5vocab: unknown table type: {}", words::literal(&kind)))),
        };
        let vocab = Vocab { host: Rc::downgrade(host), database, table, kind };
        let declaration = format!("CREATE TABLE vocab({columns})");
        Ok(Declared { trust: Trust::Innocuous, ..Declared::new(declaration, Rc::new(vocab)) })
    }
}

impl VirtualTable for Vocab {
    fn best_index(&self, info: &mut IndexInfo) -> Result<()> {
        let find = |ops: &[ConstraintOp]| {
            info.constraints.iter().position(|c| c.usable && c.column == 0 && ops.contains(&c.op))
        };
        let equal = find(&[ConstraintOp::Eq]);
        let from = find(&[ConstraintOp::Ge, ConstraintOp::Gt]).filter(|_| equal.is_none());
        let up_to = find(&[ConstraintOp::Le, ConstraintOp::Lt]).filter(|_| equal.is_none());
        info.cost = if equal.is_some() { 100.0 } else { 1_000_000.0 };
        for (bit, at) in [(EQUAL, equal), (FROM, from), (UP_TO, up_to)] {
            if let Some(i) = at {
                info.index_num |= bit;
                info.usage[i].arg = info.index_num.count_ones() as i32;
                if bit != EQUAL {
                    info.cost /= 2.0;
                }
            }
        }
        info.ordered = matches!(info.order_by[..], [o] if o.column == 0 && !o.desc);
        Ok(())
    }

    fn open(&self) -> Result<Box<dyn VirtualCursor>> {
        let host = self.host.upgrade().ok_or(Code::Misuse)?;
        let found = host.virtual_table(&self.database, &self.table)?;
        let storage = found
            .as_ref()
            .and_then(|t| t.as_any())
            .and_then(|t| t.downcast_ref::<Table>())
            .map(|t| t.storage.clone());
        let missing = || Error::sql(format!("no such fts5 table: {}.{}", self.database, self.table));
        let storage = storage.ok_or_else(missing)?;
        Ok(Box::new(Cursor {
            storage,
            kind: self.kind,
            scan: None,
            up_to: None,
            key: Vec::new(),
            term: Value::Null,
            buffer: VecDeque::new(),
            counts: Vec::new(),
            row: 0,
        }))
    }
}

struct Cursor {
    storage: Rc<Storage>,
    kind: Kind,
    scan: Option<Multi>,
    /// Terms up to this one.
    up_to: Option<Vec<u8>>,
    /// The term of the rows that are known, as the index has it and as a value.
    key: Vec<u8>,
    term: Value,
    /// Rows that are known; the first is the present one.
    buffer: VecDeque<Row>,
    /// Rows and places of the term in each column, while they are counted.
    counts: Vec<(i64, i64)>,
    row: i64,
}

/// What a row says of its term.
struct Row {
    /// The number of the column, where one is named.
    column: Option<usize>,
    /// How many rows have it; of an instance, which row.
    doc: i64,
    /// At how many places; of an instance, at which. -1: nobody knows.
    at: i64,
}

fn counted(n: i64) -> Value {
    if n > 0 { Value::Int(n) } else { Value::Null }
}

impl Cursor {
    /// Gathers the rows of the next term, or of the term's next row.
    fn fill(&mut self) -> Result<()> {
        while self.buffer.is_empty() {
            let Some(scan) = &self.scan else { return Ok(()) };
            let Some(c) = scan.current() else { return Ok(()) };
            if self.key != c.term {
                let beyond = self.up_to.as_ref().is_some_and(|u| c.term[1..] > u[..]);
                if c.term.first() != Some(&MAIN) || beyond {
                    self.scan = None;
                    return Ok(());
                }
                self.key.clone_from(&c.term);
                self.term = Value::text(&self.key[1..])?;
            }
            match self.kind {
                Kind::Instance => self.instances()?,
                Kind::Row | Kind::Column => self.count()?,
            }
        }
        Ok(())
    }

    /// The places of the term in the next row.
    fn instances(&mut self) -> Result<()> {
        let Some(scan) = &mut self.scan else { return Ok(()) };
        let Some(c) = scan.current() else { return Ok(()) };
        let config = &self.storage.config;
        let doc = c.rowid;
        let mut add = |column: i32, at: i64| {
            let column = usize::try_from(column).ok().filter(|n| *n < config.columns.len());
            let column = Some(column.ok_or(Code::CorruptVtab)?);
            self.buffer.push_back(Row { column, doc, at });
            Ok::<_, Error>(())
        };
        let list = c.places()?;
        match config.detail {
            Detail::Full => {
                Places::new(&list).try_for_each(|p| add(column_of(p), offset_of(p).into()))?;
            }
            Detail::Column => Columns::new(&list).try_for_each(|n| add(n as i32, -1))?,
            Detail::None => self.buffer.push_back(Row { column: None, doc, at: -1 }),
        }
        drop(list);
        scan.next()
    }

    /// Counts the rows and places of the term.
    fn count(&mut self) -> Result<()> {
        let Some(scan) = &mut self.scan else { return Ok(()) };
        let config = &self.storage.config;
        let by_column = self.kind == Kind::Column;
        self.counts.clear();
        self.counts.resize(config.columns.len().max(1), (0, 0));
        while let Some(c) = scan.current().filter(|c| c.term == self.key) {
            let list = c.places()?;
            match config.detail {
                Detail::Full => {
                    let mut last = -1;
                    for p in Places::new(&list) {
                        let column = if by_column { column_of(p) } else { 0 };
                        let (rows, places) = self.counts.get_mut(column as usize).ok_or(Code::CorruptVtab)?;
                        *places += 1;
                        if column != last {
                            *rows += 1;
                            last = column;
                        }
                    }
                }
                Detail::Column if by_column => {
                    for n in Columns::new(&list) {
                        self.counts.get_mut(n as usize).ok_or(Code::CorruptVtab)?.0 += 1;
                    }
                }
                _ => self.counts[0].0 += 1,
            }
            drop(list);
            scan.next()?;
        }
        let named = by_column && config.detail != Detail::None;
        for (i, &(doc, at)) in self.counts.iter().enumerate() {
            if doc > 0 || !by_column && i == 0 {
                self.buffer.push_back(Row { column: named.then_some(i), doc, at });
            }
        }
        Ok(())
    }

    /// The name of a row's column.
    fn column_name(&self, row: &Row) -> Result<Value> {
        row.column.map_or(Ok(Value::Null), |n| Value::text(&self.storage.config.columns[n].name))
    }
}

impl VirtualCursor for Cursor {
    fn filter(&mut self, index_num: i32, _: &str, args: &FilterArgs<'_>) -> Result<()> {
        self.storage.flush_for_reading()?;
        self.buffer.clear();
        self.key.clear();
        self.row = 0;
        let mut args = args.iter().map(|v| crate::locale::text(v).into_owned());
        let mut take = |bit: i32| if index_num & bit != 0 { args.next() } else { None };
        let (equal, from, up_to) = (take(EQUAL), take(FROM), take(UP_TO));
        self.up_to = equal.clone().or(up_to);
        let mut key = vec![MAIN];
        key.extend(equal.or(from).unwrap_or_default());
        self.scan = Some(self.storage.index.scan(&key)?);
        self.fill()
    }

    fn next(&mut self) -> Result<()> {
        self.buffer.pop_front();
        self.row += 1;
        self.fill()
    }

    fn eof(&self) -> bool {
        self.buffer.is_empty()
    }

    fn column(&self, n: usize) -> Result<Value> {
        let Some(row) = self.buffer.front() else { return Ok(Value::Null) };
        match (self.kind, n) {
            (_, 0) => Ok(self.term.clone()),
            (Kind::Column, 1) | (Kind::Instance, 2) => self.column_name(row),
            (Kind::Instance, 1) => Ok(Value::Int(row.doc)),
            (Kind::Instance, _) => Ok(if row.at < 0 { Value::Null } else { Value::Int(row.at) }),
            (Kind::Row, 1) | (Kind::Column, 2) => Ok(counted(row.doc)),
            _ => Ok(counted(row.at)),
        }
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.row)
    }
}
