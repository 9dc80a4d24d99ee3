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
            buffer: VecDeque::new(),
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
    /// Rows that are known; the first is the present one.
    buffer: VecDeque<Vec<Value>>,
    row: i64,
}

fn counted(n: i64) -> Value {
    if n > 0 { Value::Int(n) } else { Value::Null }
}

impl Cursor {
    /// Gathers the rows of the next term, or of the term's next row.
    fn fill(&mut self) -> Result<()> {
        let config = self.storage.config.clone();
        let names = &config.columns;
        while self.buffer.is_empty() {
            let Some(scan) = &mut self.scan else { return Ok(()) };
            let Some(key) = scan.current().map(|c| c.term.clone()) else { return Ok(()) };
            let beyond = self.up_to.as_ref().is_some_and(|u| key[1..] > u[..]);
            if key.first() != Some(&MAIN) || beyond {
                self.scan = None;
                return Ok(());
            }
            let term = Value::text(&key[1..])?;
            let mut rows = vec![0i64; names.len().max(1)];
            let mut places = vec![0i64; names.len().max(1)];
            while let Some(c) = scan.current().filter(|c| c.term == key) {
                let list = c.places()?;
                if self.kind == Kind::Instance {
                    let rowid = Value::Int(c.rowid);
                    let name = |n: i32| match usize::try_from(n).ok().and_then(|n| names.get(n)) {
                        Some(c) => Value::text(&c.name),
                        None => Err(Code::CorruptVtab.into()),
                    };
                    let row = |col: Value, at: Value| vec![term.clone(), rowid.clone(), col, at];
                    match config.detail {
                        Detail::Full => {
                            for p in Places::new(&list) {
                                let at = Value::Int(offset_of(p).into());
                                self.buffer.push_back(row(name(column_of(p))?, at));
                            }
                        }
                        Detail::Column => {
                            for n in Columns::new(&list) {
                                self.buffer.push_back(row(name(n as i32)?, Value::Null));
                            }
                        }
                        Detail::None => self.buffer.push_back(row(Value::Null, Value::Null)),
                    }
                    drop(list);
                    scan.next()?;
                    break;
                }
                let by_column = self.kind == Kind::Column;
                match config.detail {
                    Detail::Full => {
                        let mut last = -1;
                        for p in Places::new(&list) {
                            let column = if by_column { column_of(p) } else { 0 };
                            let at = column as usize;
                            if at >= rows.len() {
                                return Err(Code::CorruptVtab.into());
                            }
                            places[at] += 1;
                            if column != last {
                                rows[at] += 1;
                                last = column;
                            }
                        }
                    }
                    Detail::Column if by_column => {
                        for n in Columns::new(&list) {
                            *rows.get_mut(n as usize).ok_or(Code::CorruptVtab)? += 1;
                        }
                    }
                    _ => rows[0] += 1,
                }
                drop(list);
                scan.next()?;
            }
            match self.kind {
                Kind::Row => self.buffer.push_back(vec![term, counted(rows[0]), counted(places[0])]),
                Kind::Column => {
                    for (i, n) in rows.iter().enumerate().filter(|(_, n)| **n > 0) {
                        let name = match config.detail {
                            Detail::None => Value::Null,
                            _ => Value::text(&names[i].name)?,
                        };
                        self.buffer.push_back(vec![term.clone(), name, counted(*n), counted(places[i])]);
                    }
                }
                Kind::Instance => {}
            }
        }
        Ok(())
    }
}

impl VirtualCursor for Cursor {
    fn filter(&mut self, index_num: i32, _: &str, args: &FilterArgs<'_>) -> Result<()> {
        self.storage.flush_for_reading()?;
        self.buffer.clear();
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
        Ok(self.buffer.front().and_then(|r| r.get(n)).cloned().unwrap_or_default())
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.row)
    }
}
