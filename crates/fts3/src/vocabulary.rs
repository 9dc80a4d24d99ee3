//! `fts4aux`: the terms of an FTS3 table, with the numbers of rows and places, in all columns and in each.

use crate::config::{Column, Config, Content};
use crate::index::{Index, Multi, Rows, Source, places};
use crate::store::Store;
use crate::{tokenize, words};
use iolite_base::{Error, Result};
use iolite_ext::{
    ConstraintOp, Declared, FilterArgs, Host, IndexInfo, Module, TableArgs, VirtualCursor, VirtualTable,
};
use iolite_value::Value;
use std::collections::VecDeque;
use std::rc::Rc;

pub(crate) struct Vocabulary;

struct Table {
    index: Rc<Index>,
}

const EQUAL: i32 = 1;
const FROM: i32 = 2;
const UP_TO: i32 = 4;
const LANGUAGE: i32 = 8;

impl Module for Vocabulary {
    fn connect(&self, host: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<Declared> {
        let (database, table) = match args.args {
            [table] => (args.database.to_string(), words::dequote(table)),
            [database, table] if args.database.eq_ignore_ascii_case("temp") => {
                (words::dequote(database), words::dequote(table))
            }
            _ => return Err(Error::sql("invalid arguments to fts4aux constructor")),
        };
        let config = Config {
            database,
            table,
            version: 3,
            columns: vec![Column { name: String::new(), indexed: true }],
            tokenizer: tokenize::builtin("simple", &[])?,
            prefixes: vec![0],
            content: Content::Own,
            compress: None,
            uncompress: None,
            language: None,
            descending: false,
            sizes: false,
        };
        let store = Rc::new(Store::new(Rc::new(config), host));
        let table = Rc::new(Table { index: Rc::new(Index::new(&store)) });
        let columns = "CREATE TABLE x(term, col, documents, occurrences, languageid HIDDEN)";
        Ok(Declared::new(columns, table))
    }
}

impl VirtualTable for Table {
    fn best_index(&self, info: &mut IndexInfo) -> Result<()> {
        if let [order] = info.order_by[..] {
            info.ordered = order.column == 0 && !order.desc;
        }
        let (mut equal, mut from, mut up_to, mut language) = (None, None, None, None);
        for (i, c) in info.constraints.iter().enumerate().filter(|c| c.1.usable) {
            match (c.column, c.op) {
                (0, ConstraintOp::Eq) => equal = Some(i),
                (0, ConstraintOp::Lt | ConstraintOp::Le) => up_to = Some(i),
                (0, ConstraintOp::Gt | ConstraintOp::Ge) => from = Some(i),
                (4, ConstraintOp::Eq) => language = Some(i),
                _ => {}
            }
        }
        let mut passed = 0;
        let mut pass = |info: &mut IndexInfo, which: Option<usize>, bit: i32| {
            if let Some(i) = which {
                passed += 1;
                info.index_num |= bit;
                info.usage[i].arg = passed;
            }
        };
        if equal.is_some() {
            pass(info, equal, EQUAL);
            info.cost = 5.0;
        } else {
            pass(info, from, FROM);
            pass(info, up_to, UP_TO);
            info.cost = 20000.0;
            for _ in from.iter().chain(&up_to) {
                info.cost /= 2.0;
            }
        }
        pass(info, language, LANGUAGE);
        Ok(())
    }

    fn open(&self) -> Result<Box<dyn VirtualCursor>> {
        let index = self.index.clone();
        Ok(Box::new(Cursor { index, scan: None, up_to: None, rows: VecDeque::new(), row: 0, language: 0 }))
    }
}

struct Cursor {
    index: Rc<Index>,
    scan: Option<Multi>,
    up_to: Option<Vec<u8>>,
    /// Rows of the present term; the first is the present one.
    rows: VecDeque<[Value; 4]>,
    row: i64,
    language: i64,
}

impl Cursor {
    /// Gathers the rows of the next term.
    fn fill(&mut self) -> Result<()> {
        while self.rows.is_empty() {
            let Some(scan) = &mut self.scan else { return Ok(()) };
            if !scan.next()? || self.up_to.as_ref().is_some_and(|u| scan.term > *u) {
                self.scan = None;
                return Ok(());
            }
            // The first is for all columns.
            let mut counts = vec![(0i64, 0i64)];
            let mut rows = Rows::new(&scan.list, false);
            while let Some((_, range)) = rows.next()? {
                counts[0].0 += 1;
                let mut last = None;
                places(&scan.list[range], |column, _| {
                    if counts.len() < column + 2 {
                        counts.resize(column + 2, (0, 0));
                    }
                    counts[0].1 += 1;
                    counts[column + 1].1 += 1;
                    counts[column + 1].0 += (last != Some(column)) as i64;
                    last = Some(column);
                })?;
            }
            let term = Value::text(&scan.term)?;
            for (i, (documents, occurrences)) in counts.into_iter().enumerate().filter(|c| c.1.0 > 0) {
                let column = if i == 0 { Value::text("*")? } else { Value::Int(i as i64 - 1) };
                let numbers = [documents, occurrences].map(Value::Int);
                let [documents, occurrences] = numbers;
                self.rows.push_back([term.clone(), column, documents, occurrences]);
            }
        }
        Ok(())
    }
}

impl VirtualCursor for Cursor {
    fn filter(&mut self, number: i32, _: &str, args: &FilterArgs<'_>) -> Result<()> {
        let mut args = args.iter();
        let mut take = |bit: i32| if number & bit != 0 { args.next() } else { None };
        let (equal, from, up_to, language) = (take(EQUAL), take(FROM), take(UP_TO), take(LANGUAGE));
        let text = |v: Option<&Value>| -> Result<Option<Vec<u8>>> {
            Ok(match v {
                Some(v) if !v.is_null() => Some(v.text_bytes()?.to_vec()),
                _ => None,
            })
        };
        let source = match text(equal)? {
            Some(t) => Source::Term(t),
            None => Source::From(text(from)?.unwrap_or_default()),
        };
        self.up_to = text(up_to)?;
        self.language = language.map_or(0, |v| i64::from((v.to_int() as i32).max(0)));
        self.rows.clear();
        self.row = 1;
        self.scan = Some(self.index.read(self.language, 0, source)?);
        self.fill()
    }

    fn next(&mut self) -> Result<()> {
        self.rows.pop_front();
        self.row += 1;
        self.fill()
    }

    fn eof(&self) -> bool {
        self.rows.is_empty()
    }

    fn column(&self, n: usize) -> Result<Value> {
        if n == 4 {
            return Ok(Value::Int(self.language));
        }
        Ok(self.rows.front().and_then(|r| r.get(n)).cloned().unwrap_or_default())
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.row)
    }
}
