//! Remembers which rows of a database change, and what they were (documentation page `sqlite3session_create`).
//!
//! Each row is remembered once, by its key: what was done first, and what it held before. What became of it is asked of
//! the table when a changeset is written, so nothing has to be taken back when a transaction is. A row without a whole key is not
//! remembered. An UPDATE that changes the key is the end of one row and the beginning of another.
//!
//! No cell is borrowed while the program's filter or the engine run.

use crate::change::Op;
use crate::record;
use crate::rows::{self, Rows};
use crate::schema::Shape;
use iolite_base::{Code, Error, Result};
use iolite_ext::{Host, Preupdate, PreupdateListener, RowChange};
use iolite_value::Value;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Says of a table by its name whether its changes are wanted.
pub type Filter = Rc<dyn Fn(&str) -> bool>;

/// Which rows of a database have changed.
pub struct Recorder {
    pub(crate) database: String,
    enabled: Cell<bool>,
    indirect: Cell<bool>,
    /// Tables that are not yet watched are, if the filter wants them.
    all: Cell<bool>,
    filter: RefCell<Option<Filter>>,
    pub(crate) tables: RefCell<Vec<Rc<Watched>>>,
    failed: RefCell<Option<Error>>,
    measures: Cell<bool>,
    rowids: Cell<bool>,
    pub(crate) size: Cell<i64>,
}

/// A table that is watched.
pub(crate) struct Watched {
    pub name: String,
    /// What it consists of, as far as it was looked at.
    pub shape: RefCell<Option<Rc<Shape>>>,
    pub rows: RefCell<Rows<Row>>,
}

/// A row that has changed.
pub(crate) struct Row {
    /// What happened to it first.
    pub op: Op,
    pub indirect: bool,
    /// The key, and what else it held unless it was new.
    pub record: Box<[u8]>,
    /// How many columns the record has.
    pub fields: usize,
    /// The most bytes that its change may take.
    pub most: i64,
}

impl Watched {
    /// The shape, if the table was looked at.
    pub fn known(&self) -> Option<Rc<Shape>> {
        self.shape.borrow().clone()
    }
}

impl Recorder {
    /// Nothing is watched yet.
    pub fn new(database: &str) -> Recorder {
        Recorder {
            database: database.into(),
            enabled: Cell::new(true),
            indirect: Cell::new(false),
            all: Cell::new(false),
            filter: RefCell::new(None),
            tables: RefCell::default(),
            failed: RefCell::new(None),
            measures: Cell::new(false),
            rowids: Cell::new(false),
            size: Cell::new(0),
        }
    }

    /// Watches a table, or all tables.
    pub fn attach(&self, table: Option<&str>) {
        match table {
            None => self.all.set(true),
            Some(name) => {
                self.watch(name);
            }
        }
    }

    pub(crate) fn find(&self, name: &str) -> Option<Rc<Watched>> {
        self.tables.borrow().iter().find(|t| t.name.eq_ignore_ascii_case(name)).cloned()
    }

    pub(crate) fn watch(&self, name: &str) -> Rc<Watched> {
        self.find(name).unwrap_or_else(|| {
            let t =
                Rc::new(Watched { name: name.into(), shape: RefCell::default(), rows: RefCell::default() });
            self.tables.borrow_mut().push(t.clone());
            t
        })
    }

    /// Tables that are written to are watched if `filter` says so; without one, all are.
    pub fn filter_tables(&self, filter: Option<Filter>) {
        self.all.set(true);
        *self.filter.borrow_mut() = filter;
    }

    /// Turns recording on or off; answers whether it is on.
    pub fn enable(&self, on: Option<bool>) -> bool {
        on.inspect(|on| self.enabled.set(*on));
        self.enabled.get()
    }

    /// Changes are indirect from now on, or direct; answers which.
    pub fn indirect(&self, on: Option<bool>) -> bool {
        on.inspect(|on| self.indirect.set(*on));
        self.indirect.get()
    }

    /// Whether tables without a primary key are recorded by rowid; cannot be changed once a table is watched.
    pub fn rowids(&self, on: Option<bool>) -> Result<bool> {
        self.option(&self.rowids, on)
    }

    /// Whether the size of the changeset is reckoned; cannot be changed once a table is watched.
    pub fn measures(&self, on: Option<bool>) -> Result<bool> {
        self.option(&self.measures, on)
    }

    fn option(&self, cell: &Cell<bool>, on: Option<bool>) -> Result<bool> {
        match on {
            Some(_) if !self.tables.borrow().is_empty() => Err(Code::Misuse.into()),
            Some(on) => {
                cell.set(on);
                Ok(on)
            }
            None => Ok(cell.get()),
        }
    }

    /// Whether no row was recorded.
    pub fn is_empty(&self) -> bool {
        self.tables.borrow().iter().all(|t| t.rows.borrow().len() == 0)
    }

    /// The most bytes that a changeset may take, if that is reckoned.
    pub fn changeset_size(&self) -> i64 {
        self.size.get()
    }

    /// How much memory is taken by what was recorded.
    pub fn memory_used(&self) -> i64 {
        let table = |t: &Rc<Watched>| {
            let rows = t.rows.borrow();
            let records: usize = rows.iter().map(|r| r.record.len()).sum();
            size_of::<Watched>() + t.name.len() + records + rows.len() * size_of::<Row>()
        };
        let tables: usize = self.tables.borrow().iter().map(table).sum();
        tables as i64
    }

    /// What went wrong when a change was recorded.
    pub(crate) fn check(&self) -> Result<()> {
        self.failed.borrow().clone().map_or(Ok(()), Err)
    }

    /// The table's shape, looked at if that was not done, or if the table has more columns by now. Rows are filled up with the
    /// defaults of columns that they lack.
    pub(crate) fn shape(&self, host: &dyn Host, t: &Watched, anew: bool) -> Result<Rc<Shape>> {
        let known = t.known().filter(|s| !s.columns.is_empty());
        if let Some(s) = known.clone().filter(|_| !anew) {
            return Ok(s);
        }
        let now = Rc::new(Shape::of(host, &self.database, &t.name, self.rowids.get())?);
        match known {
            None if self.measures.get() && !now.columns.is_empty() => {
                let name = iolite_base::raw_text::decode(&t.name).len();
                let n = now.columns.len();
                let head = 1 + iolite_base::varint::len(n as u64) + n + name + 1;
                self.size.set(self.size.get() + head as i64);
            }
            Some(was) => {
                let more = now.columns.len() - now.columns.len().min(was.columns.len());
                if !now.takes(&was.keys) || now.keys[was.keys.len()..].iter().any(|k| *k != 0) {
                    return Err(Code::Schema.into());
                }
                if more > 0 {
                    self.fill_up(host, t, &now)?;
                }
            }
            None => {}
        }
        *t.shape.borrow_mut() = Some(now.clone());
        Ok(now)
    }

    fn fill_up(&self, host: &dyn Host, t: &Watched, shape: &Shape) -> Result<()> {
        let mut rows = std::mem::take(&mut *t.rows.borrow_mut());
        let mut outcome = Ok(());
        for r in rows.iter_mut().filter(|r| r.fields < shape.columns.len()) {
            outcome = shape.defaults_from(host, r.fields).map(|more| {
                r.record = [&*r.record, &more].concat().into();
                r.fields = shape.columns.len();
            });
            if outcome.is_err() {
                break;
            }
        }
        *t.rows.borrow_mut() = rows;
        outcome
    }

    /// Records a change of a row of a table that is watched.
    pub(crate) fn record(&self, host: &dyn Host, t: &Watched, p: &Preupdate) -> Result<()> {
        let mut shape = self.shape(host, t, false)?;
        if !shape.has_key() {
            return Ok(());
        }
        if shape.total < p.columns {
            shape = self.shape(host, t, true)?;
        }
        if shape.total != p.columns {
            return Err(Code::Schema.into());
        }
        let first = match p.change {
            RowChange::Insert => Op::Insert,
            RowChange::Update => Op::Update,
            RowChange::Delete => Op::Delete,
        };
        self.touch(t, &shape, p, first)?;
        if first == Op::Update { self.touch(t, &shape, p, Op::Insert) } else { Ok(()) }
    }

    /// Remembers the row that is, or with `Op::Insert` the row that will be.
    fn touch(&self, t: &Watched, shape: &Shape, p: &Preupdate, op: Op) -> Result<()> {
        let insert = op == Op::Insert;
        let Some(row) = (if insert { &p.new } else { &p.old }) else { return Ok(()) };
        let rowid = if insert { p.new_rowid } else { p.old_rowid };
        let field = |i: usize| shape.field(row, rowid, i);
        let mut key = Vec::new();
        for i in (0..shape.columns.len()).filter(|i| shape.is_key(*i)) {
            let v = field(i)?;
            if v.is_null() {
                return Ok(());
            }
            record::put(&mut key, &v)?;
        }
        let by_class = rows::hash(record::fields(&key));
        let hash = if shape.rowid { rows::hash_of_rowid(rowid) } else { by_class };
        let direct = p.depth == 0 && !self.indirect.get();
        let mut rows = t.rows.borrow_mut();
        rows.grow(|r| rows::hash(rows::key(&shape.keys, &r.record)));
        let same = |r: &Row| rows::key(&shape.keys, &r.record).eq(record::fields(&key));
        // Rows by rowid stand where their class puts them once there are many.
        let at = if shape.rowid && rows.get(hash, same).is_some() { hash } else { by_class };
        if let Some(r) = rows.find(at, same) {
            r.indirect &= !direct;
            if self.measures.get() {
                self.measure(shape, p, op, r)?;
            }
            return Ok(());
        }
        let mut bytes = Vec::new();
        for i in 0..shape.columns.len() {
            if insert && !shape.is_key(i) {
                bytes.extend_from_slice(record::UNDEFINED);
            } else {
                record::put(&mut bytes, &field(i)?)?;
            }
        }
        let mut row =
            Row { op, indirect: !direct, record: bytes.into(), fields: shape.columns.len(), most: 0 };
        if self.measures.get() {
            self.measure(shape, p, op, &mut row)?;
        }
        rows.put(hash, row);
        Ok(())
    }

    /// Reckons how many bytes the change of a row may take, now that it is about to be changed again.
    fn measure(&self, shape: &Shape, p: &Preupdate, op: Op, r: &mut Row) -> Result<()> {
        let whole = |row: &Option<Vec<Option<Value>>>| -> Result<i64> {
            let Some(row) = row else { return Ok(0) };
            let len = |i| Ok(record::encoded(&shape.field(row, p.new_rowid, i)?)?.len() as i64);
            (0..shape.columns.len()).map(len).sum()
        };
        let most = 2 + match (r.op, op) {
            (Op::Insert, Op::Delete) => 0,
            (Op::Insert, _) => whole(&p.new)?,
            (_, Op::Delete) if p.blob_column.is_some() => 2 * r.record.len() as i64,
            (_, Op::Delete) => r.record.len() as i64,
            _ => match &p.new {
                None => return Ok(()),
                Some(new) => {
                    let mut n = 0;
                    for (i, was) in record::fields(&r.record).enumerate() {
                        let is = record::encoded(&shape.field(new, p.new_rowid, i)?)?;
                        let (key, same) = (shape.is_key(i), record::same(was, &is));
                        if key && !same {
                            // Another row from now on: this one goes.
                            n = r.record.len() as i64;
                            break;
                        }
                        n += match (key, same) {
                            (true, _) => 1 + was.len() as i64,
                            (_, true) => 2,
                            _ => (was.len() + is.len()) as i64,
                        };
                    }
                    n
                }
            },
        };
        if most > r.most {
            self.size.set(self.size.get() + most - r.most);
            r.most = most;
        }
        Ok(())
    }
}

impl Shape {
    /// The value of column `n` of a row of the table.
    fn field(&self, row: &[Option<Value>], rowid: i64, n: usize) -> Result<Value> {
        if self.rowid && n == 0 {
            return Ok(Value::Int(rowid));
        }
        self.stored(n, row.get(self.places[n]).cloned().flatten().unwrap_or_default())
    }
}

impl PreupdateListener for Recorder {
    fn before_change(&self, host: &dyn Host, p: &Preupdate) {
        if !self.enabled.get() || self.check().is_err() || !p.database.eq_ignore_ascii_case(&self.database) {
            return;
        }
        let watched = self.find(&p.table).or_else(|| {
            let filter = self.filter.borrow().clone();
            let wanted = self.all.get() && filter.is_none_or(|f| f(&p.table));
            wanted.then(|| self.watch(&p.table))
        });
        if let Some(t) = watched
            && let Err(e) = self.record(host, &t, p)
        {
            *self.failed.borrow_mut() = Some(e);
        }
    }
}
