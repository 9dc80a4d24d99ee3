//! A cursor over a table: a full-text query by rowid or by rank, all rows, or one.
//!
//! What a query reads of the index may change under it: then it is run anew from the row behind the present one. Columns, sizes
//! and places of phrases are read when they are asked for, once a row.

use crate::auxiliary::{Auxiliary, EachRow, Instance, Row, Text};
use crate::config::{Config, Content, Detail, RankCall};
use crate::index::position::{Places, column_of, offset_of, place};
use crate::locale;
use crate::plan::{self, Argument, BY_RANK, DESCENDING};
use crate::query::{Query, Run};
use crate::ranked::{Asked, Kept, Ranked, Request};
use crate::storage::Storage;
use iolite_base::{Code, Error, Result, alloc};
use iolite_ext::{FilterArgs, NestedStatement, TokenSink, TokenizeFor, VirtualCursor};
use iolite_value::{Collation, Value, compare};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Finds auxiliary functions by name.
pub(crate) type FindFunction = Rc<dyn Fn(&str) -> Option<Rc<dyn Auxiliary>>>;

/// A query's rows by rank.
struct Sorted {
    ranked: Ranked,
    at: usize,
    places: RefCell<Placed>,
}

/// Where phrases are in rows that follow each other in the order of their ranks, from `first` on.
#[derive(Default)]
struct Placed {
    first: usize,
    /// For each of these rows, where in `bytes` its lists are: for each phrase the length and the list.
    rows: Vec<std::ops::Range<usize>>,
    bytes: Vec<u8>,
}

/// Of so many rows phrases are looked for first; then of all others.
const PLACED: usize = 64;

/// What the cursor goes through.
#[derive(Default)]
enum Plan {
    #[default]
    Nothing,
    Query(Run),
    Ranked(Sorted),
    Scan(Box<dyn NestedStatement>),
    Row,
    /// `MATCH '*...'`: what the query asked for.
    Special(Value),
}

/// What was read of the present row.
#[derive(Default)]
struct Seen {
    values: Option<Rc<Vec<Value>>>,
    /// The sizes of columns, if they were read.
    sizes: Vec<i64>,
    sized: bool,
    instances: Option<Rc<Vec<Instance>>>,
}

/// A cursor. See the module's head.
pub(crate) struct Cursor {
    storage: Rc<Storage>,
    ranked: Rc<Kept>,
    functions: FindFunction,
    number: i64,
    plan: Plan,
    query: Rc<Query>,
    rank: Option<(Rc<dyn Auxiliary>, Vec<Value>)>,
    rank_call: Option<RankCall>,
    rowid: i64,
    eof: bool,
    backwards: bool,
    bounds: (i64, i64),
    generation: u64,
    seen: RefCell<Seen>,
    spare: RefCell<Rc<Vec<Instance>>>,
    kept: RefCell<Vec<(String, Rc<dyn Any>)>>,
    totals: RefCell<Option<Rc<crate::storage::Totals>>>,
    asked: Asked,
    busy: Cell<bool>,
}

impl Cursor {
    pub fn new(storage: &Rc<Storage>, ranked: &Rc<Kept>, functions: FindFunction, number: i64) -> Cursor {
        Cursor {
            storage: storage.clone(),
            ranked: ranked.clone(),
            functions,
            number,
            plan: Plan::Nothing,
            query: Rc::default(),
            rank: None,
            rank_call: None,
            rowid: 0,
            eof: true,
            backwards: false,
            bounds: (i64::MIN, i64::MAX),
            generation: 0,
            seen: RefCell::default(),
            spare: RefCell::default(),
            kept: RefCell::default(),
            totals: RefCell::default(),
            asked: Asked::default(),
            busy: Cell::new(false),
        }
    }

    fn config(&self) -> &Config {
        &self.storage.config
    }

    /// Forgets what was read of a row.
    fn moved(&self) {
        let mut seen = self.seen.borrow_mut();
        seen.values = None;
        if let Some(i) = seen.instances.take() {
            // Its memory takes the next row's.
            self.spare.replace(i);
        }
        seen.sized = false;
    }

    /// Goes to the first row of a query within the bounds.
    fn begin_query(&mut self) -> Result<()> {
        let mut run = Run::new(&self.storage.index, &self.query, self.backwards)?;
        self.generation = self.storage.index.generation();
        self.asked = Asked::default();
        let (low, high) = self.bounds;
        let (first, unbounded) = if self.backwards { (high, i64::MAX) } else { (low, i64::MIN) };
        if first != unbounded {
            run.advance(first)?;
        }
        self.plan = Plan::Query(run);
        self.stand();
        Ok(())
    }

    /// Notes the row that the query is on.
    fn stand(&mut self) {
        if let Plan::Query(run) = &self.plan {
            self.eof = run.eof();
            self.rowid = run.rowid();
            let beyond = if self.backwards { self.rowid < self.bounds.0 } else { self.rowid > self.bounds.1 };
            self.eof |= beyond;
        }
    }

    /// Finds the rows of the query in the order of their ranks. `limit`: so many are wanted, if that is known.
    fn sort(&mut self, descending: bool, limit: Option<usize>) -> Result<()> {
        self.backwards = false;
        let Some((function, args)) = self.rank.clone() else { return Err(Code::Internal.into()) };
        let request = Request {
            query: &self.query,
            function: &*function,
            args: &args,
            bounds: self.bounds,
            worst: descending,
            limit,
        };
        let ranked = match self.ranked.find(&self.storage, &request)? {
            Some(ranked) => ranked,
            None => self.rank_each(descending, limit)?,
        };
        self.plan = Plan::Ranked(Sorted { ranked, at: 0, places: RefCell::default() });
        self.stand_ranked();
        Ok(())
    }

    /// Runs the whole query and sorts its rows by rank.
    fn rank_each(&mut self, descending: bool, limit: Option<usize>) -> Result<Ranked> {
        self.begin_query()?;
        let mut rows = Vec::new();
        // Rows that are as good as each other stay in the order of their ids.
        let order = |a: &(Value, i64), b: &(Value, i64)| {
            let order = compare::compare(&a.0, &b.0, &Collation::Binary);
            if descending { order.reverse() } else { order }.then(a.1.cmp(&b.1))
        };
        // The half that cannot be among the best goes whenever there are twice as many.
        let most = limit.map_or(usize::MAX, |n| n.saturating_mul(2).max(PLACED));
        while !self.eof {
            alloc::reserve(&mut rows, 1)?;
            rows.push((self.rank_of_row()?, self.rowid));
            if let Some(limit) = limit.filter(|_| rows.len() >= most) {
                rows.select_nth_unstable_by(limit, order);
                rows.truncate(limit);
            }
            self.step_query()?;
        }
        rows.sort_unstable_by(order);
        Ok(Ranked::whole(rows))
    }

    fn stand_ranked(&mut self) {
        if let Plan::Ranked(s) = &mut self.plan {
            if s.at >= s.ranked.rows.len() {
                s.ranked.extend();
            }
            let row = s.ranked.rows.get(s.at);
            self.eof = row.is_none();
            self.rowid = row.map_or(0, |r| r.1);
        }
    }

    fn rank_of_row(&self) -> Result<Value> {
        match &self.rank {
            Some((f, args)) => f.call(self, args),
            None => Ok(Value::Null),
        }
    }

    /// Finds where the phrases are in the present row of those that come by rank, and in rows behind it.
    fn place(&self, s: &Sorted) -> Result<()> {
        let known = s.places.borrow();
        if (known.first..known.first + known.rows.len()).contains(&s.at) {
            return Ok(());
        }
        let begun = !known.rows.is_empty();
        drop(known);
        let rows = &s.ranked.rows[s.at..];
        let rows = if begun { rows } else { &rows[..rows.len().min(PLACED)] };
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_unstable_by_key(|i| rows[*i].1);
        let mut placed = Placed { first: s.at, rows: vec![0..0; rows.len()], bytes: Vec::new() };
        let mut run = Run::new(&self.storage.index, &self.query, false)?;
        for i in order {
            run.advance(rows[i].1)?;
            let start = placed.bytes.len();
            if !run.eof() && run.rowid() == rows[i].1 {
                for p in 0..self.query.phrases.len() {
                    let at = placed.bytes.len();
                    placed.bytes.extend([0; 4]);
                    run.list(p, &mut placed.bytes)?;
                    let n = (placed.bytes.len() - at - 4) as u32;
                    placed.bytes[at..at + 4].copy_from_slice(&n.to_ne_bytes());
                }
            }
            placed.rows[i] = start..placed.bytes.len();
        }
        s.places.replace(placed);
        Ok(())
    }

    fn step_query(&mut self) -> Result<()> {
        self.moved();
        if self.generation != self.storage.index.generation() {
            // The index has changed: from the next row on anew.
            let next = if self.backwards { self.rowid.checked_sub(1) } else { self.rowid.checked_add(1) };
            let Some(next) = next else {
                self.eof = true;
                return Ok(());
            };
            if self.backwards {
                self.bounds.1 = self.bounds.1.min(next);
            } else {
                self.bounds.0 = self.bounds.0.max(next);
            }
            return self.begin_query();
        }
        if let Plan::Query(run) = &mut self.plan {
            run.next()?;
        }
        self.stand();
        Ok(())
    }

    /// The next row of the content.
    fn step_scan(&mut self) -> Result<()> {
        self.moved();
        let Plan::Scan(s) = &mut self.plan else { return Ok(()) };
        self.eof = !s.step()?;
        if self.eof {
            return s.reset();
        }
        let mut row = s.row().to_vec();
        self.rowid = row.remove(0).to_int();
        self.seen.borrow_mut().values = Some(Rc::new(row));
        Ok(())
    }

    /// The values of the row as the content table has them.
    fn values(&self) -> Result<Rc<Vec<Value>>> {
        if let Some(v) = &self.seen.borrow().values {
            return Ok(v.clone());
        }
        let found = self.storage.content(self.rowid)?;
        let values = Rc::new(found.ok_or_else(|| self.missing())?);
        self.seen.borrow_mut().values = Some(values.clone());
        Ok(values)
    }

    /// What is answered where the index has a row that the content has not.
    fn missing(&self) -> Error {
        let c = self.config();
        match c.content {
            Content::External => {
                let from =
                    format!("'{}'.'{}'", c.database.replace('\'', "''"), c.external.replace('\'', "''"));
                Error::new(
                    Code::CorruptVtab,
                    format!("fts5: missing row {} from content table {from}", self.rowid),
                )
            }
            _ => {
                let from = format!("'{}'.'{}_content'", c.database, c.table);
                Error::new(
                    Code::CorruptVtab,
                    format!("fts5: missing row {} from content table {from}", self.rowid),
                )
            }
        }
    }

    /// Finds the ranking function and its arguments.
    fn find_rank(&mut self, call: Option<RankCall>) -> Result<()> {
        let call = match call {
            Some(c) => c,
            None => {
                let own = self.config().settings.rank.borrow().clone();
                own.unwrap_or_else(|| RankCall { function: "bm25".into(), args: String::new() })
            }
        };
        let found = (self.functions)(&call.function.to_ascii_lowercase());
        let f = found.ok_or_else(|| Error::sql(format!("no such function: {}", call.function)))?;
        let args = match call.args.is_empty() {
            true => Vec::new(),
            false => {
                let rows = self.storage.store.host()?.query(&format!("SELECT {}", call.args), &[])?;
                rows.into_iter().next().unwrap_or_default()
            }
        };
        self.rank = Some((f, args));
        Ok(())
    }

    /// Calls an auxiliary function.
    pub fn call(&self, f: &dyn Auxiliary, args: &[Value]) -> Result<Value> {
        if matches!(self.plan, Plan::Nothing | Plan::Special(_)) {
            return Err(Error::sql(format!("no such cursor: {}", self.number)));
        }
        f.call(self, args)
    }

    fn special(&mut self, query: &[u8]) -> Result<()> {
        let text = String::from_utf8_lossy(query);
        let text = text.trim_start_matches(' ');
        let word = text.split(' ').next().unwrap_or_default();
        let value = match word.to_ascii_lowercase().as_str() {
            "reads" => self.storage.store.reads.get(),
            "id" => self.number,
            "ranked" => self.ranked.answered(),
            "kept" => self.ranked.bytes(),
            _ => return Err(Error::sql(format!("unknown special query: {word}"))),
        };
        self.plan = Plan::Special(Value::Int(value));
        self.eof = false;
        Ok(())
    }

    /// The text of a query and its locale.
    fn query_text(&self, v: &Value) -> Result<(Vec<u8>, Option<Vec<u8>>)> {
        if let Some((text, l)) = locale::parts(v) {
            return Ok((text.to_vec(), Some(l.to_vec())));
        }
        Ok((locale::text(v).into_owned(), None))
    }

    /// Finds the phrases in the text of the row: where the index does not say where they are.
    fn places_in_text(&self) -> Result<Vec<Vec<i64>>> {
        let phrases = &self.query.phrases;
        let mut found = vec![Vec::new(); phrases.len()];
        if self.config().is_contentless() {
            return Ok(found);
        }
        let standing: Vec<bool> = match &self.plan {
            Plan::Query(run) => (0..phrases.len()).map(|p| run.stands(p)).collect(),
            _ => vec![true; phrases.len()],
        };
        let columns: Vec<_> = (0..phrases.len()).map(|p| self.query.columns_of(p)).collect();
        for column in 0..self.config().columns.len() {
            let values = self.values()?;
            let (text, l) = self.storage.cell(&values, column);
            let mut offset = -1i64;
            self.config().tokenize(TokenizeFor::Auxiliary, &text, l.as_deref(), &mut |t| {
                if !t.colocated || offset < 0 {
                    offset += 1;
                }
                for (n, p) in phrases.iter().enumerate() {
                    if !standing[n] || columns[n].is_some_and(|c| !c.contains(&(column as u32))) {
                        continue;
                    }
                    let is = |term: &crate::query::Term| {
                        let same = |k: &Vec<u8>| k == t.text || term.prefix && t.text.starts_with(k);
                        term.tokens.iter().any(same)
                    };
                    if p.terms.first().is_some_and(is) {
                        found[n].push(place(column as u32, offset as u32));
                    }
                }
                Ok(true)
            })?;
        }
        let has: Vec<bool> = found.iter().map(|f| !f.is_empty()).collect();
        for (n, list) in found.iter_mut().enumerate() {
            if !self.query.counts(n, &has) {
                list.clear();
            }
        }
        Ok(found)
    }

    /// Calls `f` with each place of a phrase.
    fn each_place(&self, mut f: impl FnMut(usize, i64)) -> Result<()> {
        if self.config().detail != Detail::Full {
            for (n, list) in self.places_in_text()?.iter().enumerate() {
                list.iter().for_each(|p| f(n, *p));
            }
            return Ok(());
        }
        let mut list = Vec::new();
        match &self.plan {
            Plan::Query(run) => {
                for n in 0..self.query.phrases.len() {
                    list.clear();
                    run.list(n, &mut list)?;
                    Places::new(&list).for_each(|p| f(n, p));
                }
            }
            Plan::Ranked(s) if !self.eof => {
                self.place(s)?;
                let places = s.places.borrow();
                let mut rest = &places.bytes[places.rows[s.at - places.first].clone()];
                let mut n = 0;
                while let Some((len, after)) = rest.split_first_chunk() {
                    let (list, next) = after.split_at(u32::from_ne_bytes(*len) as usize);
                    Places::new(list).for_each(|p| f(n, p));
                    (rest, n) = (next, n + 1);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads the sizes of the row's columns.
    fn read_sizes(&self) -> Result<()> {
        if self.seen.borrow().sized {
            return Ok(());
        }
        let c = self.config();
        let mut sizes = std::mem::take(&mut self.seen.borrow_mut().sizes);
        if c.column_size {
            if !self.storage.read_sizes(self.rowid, &mut sizes)? {
                return Err(Error::from(Code::CorruptVtab));
            }
        } else if c.is_contentless() {
            sizes = c.columns.iter().map(|col| if col.indexed { -1 } else { 0 }).collect();
        } else {
            let values = self.values()?;
            sizes = vec![0; c.columns.len()];
            for (i, size) in sizes.iter_mut().enumerate() {
                if c.columns[i].indexed {
                    let (text, l) = self.storage.cell(&values, i);
                    c.tokenize(TokenizeFor::Auxiliary, &text, l.as_deref(), &mut |t| {
                        *size += !t.colocated as i64;
                        Ok(true)
                    })?;
                }
            }
        }
        let mut seen = self.seen.borrow_mut();
        (seen.sizes, seen.sized) = (sizes, true);
        Ok(())
    }

    fn totals(&self) -> Result<Rc<crate::storage::Totals>> {
        if let Some(t) = &*self.totals.borrow() {
            return Ok(t.clone());
        }
        let t = Rc::new(self.storage.totals()?);
        *self.totals.borrow_mut() = Some(t.clone());
        Ok(t)
    }

    /// Begins a scan of the content.
    fn begin_scan(&mut self) -> Result<()> {
        let c = self.config();
        if c.content == Content::None || c.content == Content::Unindexed && !c.column_size {
            let shadow = c.column_size;
            if !shadow {
                return Err(plan::only_full_text(&c.table));
            }
        }
        let (columns, from, id) = self.storage.store.content();
        let order = if self.backwards { "DESC" } else { "ASC" };
        let sql = if c.content == Content::None {
            let nulls = ", NULL".repeat(c.columns.len());
            let from = c.shadow("docsize");
            format!("SELECT T.id{nulls} FROM {from} T WHERE T.id >= ? AND T.id <= ? ORDER BY T.id {order}")
        } else {
            format!(
                "SELECT {columns} FROM {from} T WHERE T.{id} >= ? AND T.{id} <= ? ORDER BY T.{id} {order}"
            )
        };
        let mut s = self.storage.store.prepare(&sql)?;
        s.bind(1, Value::Int(self.bounds.0))?;
        s.bind(2, Value::Int(self.bounds.1))?;
        self.plan = Plan::Scan(s);
        self.step_scan()
    }

    /// One row by its id.
    fn begin_row(&mut self, rowid: i64) -> Result<()> {
        self.rowid = rowid;
        self.plan = Plan::Row;
        if self.config().content == Content::None {
            if !self.config().column_size {
                return Err(plan::only_full_text(&self.config().table));
            }
            self.eof = self.storage.store.row(crate::store::Sql::ReadSize, &[Value::Int(rowid)])?.is_none();
            return Ok(());
        }
        let row = self.storage.content(rowid)?;
        self.eof = row.is_none();
        self.seen.borrow_mut().values = row.map(Rc::new);
        Ok(())
    }
}

/// An integer bound of a condition on the rowid.
fn bound(v: &Value, otherwise: i64) -> i64 {
    let mut n = v.clone();
    match iolite_value::Affinity::Numeric.apply(&mut n) {
        Ok(()) => match n {
            Value::Int(n) => n,
            _ => otherwise,
        },
        Err(_) => otherwise,
    }
}

impl VirtualCursor for Cursor {
    fn filter(&mut self, index_num: i32, index_str: &str, args: &FilterArgs<'_>) -> Result<()> {
        self.moved();
        self.kept.take();
        self.totals.take();
        self.asked = Asked::default();
        self.plan = Plan::Nothing;
        self.eof = true;
        self.rank = None;
        self.bounds = (i64::MIN, i64::MAX);
        self.backwards = index_num & DESCENDING != 0;
        let config = self.storage.config.clone();
        // Settings may have been changed by others.
        self.storage.index.structure()?;
        let mut query: Option<Query> = None;
        let mut rank = None;
        let mut equal = None;
        let named = plan::arguments(index_str);
        let limit = plan::limit(&named, args);
        for (a, v) in named.into_iter().zip(args.iter()) {
            let part = match a {
                Argument::Match(column) => {
                    let (text, l) = self.query_text(v)?;
                    let column = Some(column).filter(|c| (*c as usize) < config.columns.len());
                    if text.first() == Some(&b'*') {
                        return self.special(&text[1..]);
                    }
                    Query::parse(&config, &text, l.as_deref(), column)?
                }
                Argument::Like(column) | Argument::Glob(column) => {
                    let glob = matches!(a, Argument::Glob(_));
                    let text = locale::text(v);
                    match plan::pattern_query(&text, glob) {
                        Some(q) => Query::pattern(&config, &q, column)?,
                        None => continue,
                    }
                }
                Argument::Rank => {
                    let text = v.text_carried();
                    if !v.is_null() {
                        let call = RankCall::parse(&text);
                        let wrong = || Error::sql(format!("parse error in rank function: {text}"));
                        rank = Some(call.ok_or_else(wrong)?);
                    }
                    continue;
                }
                Argument::Equal => {
                    equal = Some(v.clone());
                    continue;
                }
                Argument::AtMost => {
                    self.bounds.1 = bound(v, i64::MAX);
                    continue;
                }
                Argument::AtLeast => {
                    self.bounds.0 = bound(v, i64::MIN);
                    continue;
                }
            };
            query = Some(match query {
                Some(q) => q.and(part),
                None => part,
            });
        }
        self.rank_call = rank;
        if let Some(v) = &equal {
            let mut v = v.clone();
            iolite_value::Affinity::Numeric.apply(&mut v)?;
            match v {
                Value::Int(n) => self.bounds = (n, n),
                _ if query.is_some() => {}
                _ => return Ok(()),
            }
        }
        if let Some(q) = query {
            self.query = Rc::new(q);
            if index_num & BY_RANK != 0 {
                let call = self.rank_call.take();
                self.find_rank(call)?;
                return self.sort(index_num & DESCENDING != 0, limit);
            }
            return self.begin_query();
        }
        self.query = Rc::default();
        match equal {
            Some(_) => self.begin_row(self.bounds.0),
            None => self.begin_scan(),
        }
    }

    fn next(&mut self) -> Result<()> {
        match &mut self.plan {
            Plan::Query(_) => self.step_query(),
            Plan::Ranked(s) => {
                s.at += 1;
                self.moved();
                self.stand_ranked();
                Ok(())
            }
            Plan::Scan(_) => self.step_scan(),
            _ => {
                self.eof = true;
                Ok(())
            }
        }
    }

    fn eof(&self) -> bool {
        self.eof
    }

    fn column(&self, n: usize) -> Result<Value> {
        let columns = self.config().columns.len();
        if let Plan::Special(v) = &self.plan {
            return Ok(if n == columns { v.clone() } else { Value::Null });
        }
        if n == columns {
            return Ok(Value::Int(self.number));
        }
        if n == columns + 1 {
            return match &self.plan {
                Plan::Ranked(s) => Ok(s.ranked.rows.get(s.at).map_or(Value::Null, |r| r.0.clone())),
                Plan::Query(_) => {
                    if self.rank.is_none() && !self.busy.replace(true) {
                        // Found when it is first asked for.
                        let found = self.rank_by_name();
                        self.busy.set(false);
                        return found;
                    }
                    self.rank_of_row()
                }
                _ => Ok(Value::Null),
            };
        }
        let c = self.config();
        if c.content == Content::None || c.content == Content::Unindexed && c.columns[n].indexed {
            return Ok(Value::Null);
        }
        let values = self.values()?;
        let v = values.get(n).cloned().unwrap_or_default();
        match locale::parts(&v).filter(|_| c.locale) {
            Some((text, _)) => Value::text(text),
            None => Ok(v),
        }
    }

    fn column_unchanged(&self, n: usize) -> Result<Option<Value>> {
        let c = self.config();
        let kept = c.content == Content::Unindexed && c.columns.get(n).is_some_and(|c| !c.indexed);
        // What lies elsewhere is read when the row is taken out, where it may be missing.
        let elsewhere = c.content == Content::External;
        if (c.is_contentless() && !kept || elsewhere) && n < c.columns.len() {
            return Ok(None);
        }
        // What names the cursor and the rank are no values of the row.
        if n >= c.columns.len() {
            return Ok(Some(Value::Null));
        }
        if c.locale && c.content == Content::Own {
            let values = self.values()?;
            if let (text, Some(l)) = self.storage.cell(&values, n) {
                let host = self.storage.store.host()?;
                let mut blob = locale::header(&*host).to_vec();
                blob.extend_from_slice(&l);
                blob.push(0);
                blob.extend_from_slice(&text);
                return Ok(Some(Value::blob(&blob)?));
            }
        }
        self.column(n).map(Some)
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.rowid)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl Cursor {
    /// The rank of a row where rows do not come by rank.
    fn rank_by_name(&self) -> Result<Value> {
        let call = match &self.rank_call {
            Some(c) => c.clone(),
            None => {
                let own = self.config().settings.rank.borrow().clone();
                own.unwrap_or_else(|| RankCall { function: "bm25".into(), args: String::new() })
            }
        };
        let found = (self.functions)(&call.function.to_ascii_lowercase());
        let f = found.ok_or_else(|| Error::sql(format!("no such function: {}", call.function)))?;
        let args = match call.args.is_empty() {
            true => Vec::new(),
            false => {
                let rows = self.storage.store.host()?.query(&format!("SELECT {}", call.args), &[])?;
                rows.into_iter().next().unwrap_or_default()
            }
        };
        f.call(self, &args)
    }
}

impl Row for Cursor {
    fn column_count(&self) -> usize {
        self.config().columns.len()
    }

    fn row_count(&self) -> Result<i64> {
        Ok(self.totals()?.rows)
    }

    fn column_total(&self, column: i32) -> Result<i64> {
        let t = self.totals()?;
        match usize::try_from(column) {
            Err(_) => Ok(t.tokens.iter().sum()),
            Ok(n) => t.tokens.get(n).copied().ok_or_else(|| Code::Range.into()),
        }
    }

    fn phrase_count(&self) -> usize {
        self.query.phrases.len()
    }

    fn phrase_size(&self, phrase: usize) -> usize {
        self.query.phrases.get(phrase).map_or(0, |p| p.terms.len())
    }

    fn instances(&self) -> Result<Rc<Vec<Instance>>> {
        if let Some(i) = &self.seen.borrow().instances {
            return Ok(i.clone());
        }
        let mut spare = self.spare.take();
        if Rc::get_mut(&mut spare).is_none() {
            spare = Rc::default();
        }
        let mut instances = spare;
        if let Some(all) = Rc::get_mut(&mut instances) {
            all.clear();
            self.each_place(|phrase, p| {
                all.push(Instance { phrase, column: column_of(p), offset: offset_of(p) });
            })?;
            if self.query.phrases.len() > 1 {
                all.sort_unstable_by_key(|i| (i.column, i.offset, i.phrase));
            }
        }
        self.seen.borrow_mut().instances = Some(instances.clone());
        Ok(instances)
    }

    fn rowid(&self) -> i64 {
        self.rowid
    }

    fn column_text(&self, column: i32) -> Result<Text> {
        let n = usize::try_from(column).ok().filter(|n| *n < self.config().columns.len());
        let n = n.ok_or_else(|| Error::from(Code::Range))?;
        let c = self.config();
        if c.content == Content::None || c.content == Content::Unindexed && c.columns[n].indexed {
            return Ok((None, None));
        }
        // A function is told that the row is missing, and no more.
        let values = self.values().map_err(|e| Error::from(e.code()))?;
        let (text, l) = self.storage.cell(&values, n);
        let null = values.get(n).is_none_or(Value::is_null);
        Ok(((!null).then(|| text.into_owned()), l))
    }

    fn column_size(&self, column: i32) -> Result<i64> {
        let unchanged = self.generation == self.storage.index.generation();
        if column < 0
            && self.config().column_size
            && unchanged
            && !self.seen.borrow().sized
            && let Some(n) = self.asked.find(&self.ranked, &self.storage, self.rowid)
        {
            return Ok(n);
        }
        self.read_sizes()?;
        let sizes = &self.seen.borrow().sizes;
        match usize::try_from(column) {
            Err(_) => Ok(sizes.iter().sum()),
            Ok(n) => sizes.get(n).copied().ok_or_else(|| Code::Range.into()),
        }
    }

    fn phrase_rows(&self, phrase: usize) -> Result<i64> {
        if let Plan::Ranked(s) = &self.plan
            && let Some(n) = s.ranked.phrase_rows(phrase)
        {
            return Ok(n);
        }
        if let Some(n) = self.ranked.hits(&self.storage, &self.query, phrase)? {
            return Ok(n);
        }
        let only = self.query.only(phrase);
        let mut run = Run::new(&self.storage.index, &only, false)?;
        let mut n = 0;
        while !run.eof() {
            n += 1;
            run.next()?;
        }
        Ok(n)
    }

    fn query_phrase(&self, phrase: usize, each: &mut EachRow<'_>) -> Result<()> {
        let mut cursor = Cursor::new(&self.storage, &self.ranked, self.functions.clone(), self.number);
        cursor.query = Rc::new(self.query.only(phrase));
        cursor.begin_query()?;
        while !cursor.eof && each(&cursor)? {
            cursor.step_query()?;
        }
        Ok(())
    }

    fn query_token(&self, phrase: usize, token: usize) -> Option<Vec<u8>> {
        self.query.phrases.get(phrase)?.terms.get(token)?.tokens.first().cloned()
    }

    fn instance_token(&self, instance: usize, token: usize) -> Result<Option<Vec<u8>>> {
        let found = self.instances()?.get(instance).copied();
        let Instance { phrase, column, offset } = found.ok_or_else(|| Error::from(Code::Range))?;
        let Some(term) = self.query.phrases.get(phrase).and_then(|p| p.terms.get(token)) else {
            return Ok(None);
        };
        if let ([word], false) = (&term.tokens[..], term.prefix) {
            return Ok(Some(word.clone()));
        }
        let (text, locale) = self.column_text(column)?;
        let Some(text) = text else { return Ok(term.tokens.first().cloned()) };
        let wanted = offset as i64 + token as i64;
        let (mut at, mut word) = (-1i64, None);
        self.config().tokenize(TokenizeFor::Auxiliary, &text, locale.as_deref(), &mut |t| {
            if !t.colocated || at < 0 {
                at += 1;
            }
            let is = |k: &Vec<u8>| k == t.text || term.prefix && t.text.starts_with(k);
            if at == wanted && term.tokens.iter().any(is) {
                word = Some(t.text.to_vec());
            }
            Ok(word.is_none() && at <= wanted)
        })?;
        Ok(word)
    }

    fn tokenize(&self, text: &[u8], locale: Option<&[u8]>, sink: &mut TokenSink<'_>) -> Result<()> {
        self.config().tokenize(TokenizeFor::Auxiliary, text, locale, sink)
    }

    fn kept(&self, function: &str) -> Option<Rc<dyn Any>> {
        self.kept.borrow().iter().find(|k| k.0 == function).map(|k| k.1.clone())
    }

    fn keep(&self, function: &str, data: Rc<dyn Any>) {
        let mut kept = self.kept.borrow_mut();
        kept.retain(|k| k.0 != function);
        kept.push((function.to_string(), data));
    }

    fn give_up(&self, function: &str) -> Option<Rc<dyn Any>> {
        let mut kept = self.kept.borrow_mut();
        let at = kept.iter().position(|k| k.0 == function)?;
        Some(kept.swap_remove(at).1)
    }
}
