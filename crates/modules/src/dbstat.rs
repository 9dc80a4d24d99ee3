//! `dbstat` (documentation page of that name): a row for each page of each tree of a database, or for each tree.
//!
//! It reads pages as they are, tree by tree in the order of the schema, each page before what hangs on it. A page that makes
//! no sense counts as one without cells. It knows the file format, and nothing of the storage layer.

use crate::rows::{arguments, take_arguments};
use iolite_base::{Code, Error, Result, varint};
use iolite_ext::{
    ConstraintOp, Declared, FilterArgs, Host, IndexInfo, Module, ModuleKind, TableArgs, VirtualCursor,
    VirtualTable,
};
use iolite_value::Value;
use std::rc::{Rc, Weak};

const DECLARATION: &str = "CREATE TABLE x(name TEXT, path TEXT, pageno INTEGER, pagetype TEXT, ncell INTEGER, \
     payload INTEGER, unused INTEGER, mx_payload INTEGER, pgoffset INTEGER, pgsize INTEGER, schema TEXT HIDDEN, \
     aggregate BOOLEAN HIDDEN)";
/// The number of the first hidden column.
const SCHEMA: usize = 10;
/// The bit of a plan's number that says that a name is given, behind those of the hidden columns.
const NAMED: i32 = 4;

/// The module.
pub(crate) struct DbStat;

impl Module for DbStat {
    fn kind(&self) -> ModuleKind {
        ModuleKind::Eponymous
    }

    fn connect(&self, host: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<Declared> {
        let schema = match args.args.first() {
            Some(s) => {
                let name = s.trim_matches(['"', '\'', '`', '[', ']']).to_string();
                let list = host.query("PRAGMA database_list", &[])?;
                let mut names = list.iter().map(|row| row[1].to_string_lossy());
                if !name.eq_ignore_ascii_case("temp") && !names.any(|n| n.eq_ignore_ascii_case(&name)) {
                    return Err(Error::sql(format!("no such database: {s}")));
                }
                name
            }
            None => "main".into(),
        };
        let table = Rc::new(Table { schema, host: Rc::downgrade(host) });
        Ok(Declared { trust: iolite_ext::Trust::DirectOnly, ..Declared::new(DECLARATION, table) })
    }
}

struct Table {
    schema: String,
    host: Weak<dyn Host>,
}

impl VirtualTable for Table {
    fn holds_nothing(&self) -> bool {
        true
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<()> {
        info.index_num = take_arguments(info, SCHEMA, 2)?;
        let named = |c: &iolite_ext::Constraint| c.column == 0 && c.op == ConstraintOp::Eq && c.usable;
        (info.cost, info.rows) = (1e6, 1_000_000);
        if let Some(k) = info.constraints.iter().position(named) {
            info.usage[k].arg = 1 + info.index_num.count_ones() as i32;
            info.index_num |= NAMED;
            (info.cost, info.rows) = (1e4, 10_000);
        }
        Ok(())
    }

    fn open(&self) -> Result<Box<dyn VirtualCursor>> {
        Ok(Box::new(Pages {
            default: self.schema.clone(),
            host: self.host.clone(),
            schema: String::new(),
            whole: false,
            usable: 0,
            size: 0,
            trees: Vec::new(),
            way: Vec::new(),
            row: None,
        }))
    }
}

/// One tree.
struct Tree {
    name: Value,
    root: u32,
}

/// A page on the way from the root to the present one, with what hangs on it and is still to come.
struct Page {
    path: String,
    cells: Vec<Cell>,
    right: Option<u32>,
    /// The cell whose overflow pages and child come next.
    at: usize,
}

struct Cell {
    child: Option<u32>,
    /// How many bytes of its payload are still to come on overflow pages, and the next of these.
    beyond: u64,
    overflow: u32,
    /// How many of its overflow pages were shown.
    shown: usize,
}

/// What is told of a page, or of a tree.
#[derive(Default)]
struct Row {
    path: Option<String>,
    /// Its number, or how many there are.
    number: i64,
    kind: Option<&'static str>,
    cells: i64,
    payload: i64,
    unused: i64,
    largest: i64,
    size: i64,
}

struct Pages {
    default: String,
    host: Weak<dyn Host>,
    schema: String,
    /// Trees as wholes.
    whole: bool,
    /// How many bytes of a page hold content.
    usable: usize,
    size: usize,
    /// The trees to come, the next one last.
    trees: Vec<Tree>,
    way: Vec<Page>,
    /// The present row.
    row: Option<(Value, Row)>,
}

fn two(b: &[u8], at: usize) -> usize {
    b.get(at..at + 2).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]) as usize)
}

fn four(b: &[u8], at: usize) -> u32 {
    b.get(at..at + 4).map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
}

impl Pages {
    fn read(&self, number: u32) -> Result<Vec<u8>> {
        let host = self.host.upgrade().ok_or(Code::Misuse)?;
        Ok(host.page(&self.schema, number)?.unwrap_or_default())
    }

    /// Decodes a page of a tree.
    fn page(&self, number: u32, path: String) -> Result<(Page, Row)> {
        let b = self.read(number)?;
        let mut page = Page { path: path.clone(), cells: Vec::new(), right: None, at: 0 };
        let (size, number) = (self.size as i64, number as i64);
        let mut row = Row { path: Some(path), number, kind: Some("corrupted"), size, ..Row::default() };
        if self.decode(&b, if number == 1 { 100 } else { 0 }, &mut page, &mut row).is_none() {
            page.cells.clear();
            (page.right, row) =
                (None, Row { path: row.path, number, kind: Some("corrupted"), size, ..Row::default() });
        }
        Ok((page, row))
    }

    fn decode(&self, b: &[u8], start: usize, page: &mut Page, row: &mut Row) -> Option<()> {
        let (inner, of_table) = match b.get(start)? {
            2 => (true, false),
            5 => (true, true),
            10 => (false, false),
            13 => (false, true),
            _ => return None,
        };
        row.kind = Some(if inner { "internal" } else { "leaf" });
        let head = if inner { 12 } else { 8 };
        let count = two(b, start + 3);
        let content = match two(b, start + 5) {
            0 => 65536,
            n => n,
        };
        let mut unused = content.checked_sub(start + head + 2 * count)? + *b.get(start + 7)? as usize;
        let mut free = two(b, start + 1);
        while free != 0 {
            let next = two(b, free);
            unused += two(b, free + 2);
            if next != 0 && next < free + 4 {
                return None;
            }
            free = next;
        }
        row.unused = unused as i64;
        row.cells = count as i64;
        page.right = if inner { Some(four(b, start + 8)) } else { None };
        for k in 0..count {
            let mut at = two(b, start + head + 2 * k);
            if at < start + head || at >= b.len() {
                return None;
            }
            let child = inner.then(|| four(b, at));
            at += if inner { 4 } else { 0 };
            let mut cell = Cell { child, beyond: 0, overflow: 0, shown: 0 };
            if !(inner && of_table) {
                let (payload, n) = varint::get(b.get(at..)?)?;
                at += n;
                if of_table {
                    at += varint::get(b.get(at..)?)?.1;
                }
                let local = self.local(payload, of_table);
                row.payload += local as i64;
                row.largest = row.largest.max(payload as i64);
                cell.beyond = payload - local;
                if cell.beyond > 0 {
                    cell.overflow = four(b, at + local as usize);
                }
            }
            page.cells.push(cell);
        }
        Some(())
    }

    /// How much of a payload stands on the page of its cell.
    fn local(&self, payload: u64, of_table: bool) -> u64 {
        let usable = self.usable as u64;
        let least = (usable - 12) * 32 / 255 - 23;
        let most = if of_table { usable - 35 } else { (usable - 12) * 64 / 255 - 23 };
        if payload <= most {
            return payload;
        }
        match least + (payload - least) % (usable - 4) {
            n if n > most => least,
            n => n,
        }
    }

    /// The next page of the present tree.
    fn step(&mut self) -> Result<Option<Row>> {
        while let Some(page) = self.way.last_mut() {
            let at = page.at;
            if let Some(cell) = page.cells.get_mut(at)
                && cell.beyond > 0
                && cell.overflow > 0
            {
                let (number, held) = (cell.overflow, cell.beyond.min(self.usable as u64 - 4));
                let path = format!("{}{at:03x}+{:06x}", page.path, cell.shown);
                (cell.beyond, cell.shown) = (cell.beyond - held, cell.shown + 1);
                let next = four(&self.read(number)?, 0);
                if let Some(cell) = self.way.last_mut().and_then(|p| p.cells.get_mut(at)) {
                    cell.overflow = next;
                }
                return Ok(Some(Row {
                    path: Some(path),
                    number: number as i64,
                    kind: Some("overflow"),
                    payload: held as i64,
                    unused: self.usable as i64 - 4 - held as i64,
                    size: self.size as i64,
                    ..Row::default()
                }));
            }
            let child = if at < page.cells.len() { page.cells[at].child } else { page.right };
            if at > page.cells.len() || child.is_none() && page.right.is_some() {
                self.way.pop();
                continue;
            }
            page.at += 1;
            let Some(child) = child else {
                if at >= page.cells.len() {
                    self.way.pop();
                }
                continue;
            };
            let path = format!("{}{at:03x}/", page.path);
            // Deeper than any sound tree: pages that refer to each other.
            if self.way.len() > 40 {
                return Err(Code::CorruptVtab.into());
            }
            let (page, row) = self.page(child, path)?;
            self.way.push(page);
            return Ok(Some(row));
        }
        Ok(None)
    }

    /// The next tree's root.
    fn begin(&mut self) -> Result<Option<(Value, Row)>> {
        let Some(tree) = self.trees.pop() else { return Ok(None) };
        let (page, row) = self.page(tree.root, "/".into())?;
        self.way.push(page);
        Ok(Some((tree.name, row)))
    }
}

impl VirtualCursor for Pages {
    fn filter(&mut self, given: i32, _: &str, args: &FilterArgs<'_>) -> Result<()> {
        let [schema, whole] = arguments::<2>(given & 3, args);
        self.schema = schema.map_or_else(|| self.default.clone(), |s| s.text_carried().to_string());
        self.whole = whole.is_some_and(|v| v.to_int() != 0);
        let name = if given & NAMED != 0 { args.last().cloned() } else { None };
        let host = self.host.upgrade().ok_or(Code::Misuse)?;
        (self.trees, self.way, self.row) = (Vec::new(), Vec::new(), None);
        // A database that is none has no trees.
        let first = host.page(&self.schema, 1).unwrap_or(None).unwrap_or_default();
        if first.is_empty() {
            return Ok(());
        }
        self.size = first.len();
        self.usable = first.len() - first.get(20).copied().unwrap_or(0) as usize;
        let sql = format!(
            "SELECT name, rootpage FROM (SELECT 'sqlite_schema' AS name, 1 AS rootpage UNION ALL \
             SELECT name, rootpage FROM \"{}\".sqlite_master WHERE rootpage > 0) WHERE ?1 IS NULL OR name = ?1",
            self.schema.replace('"', "\"\"")
        );
        let rows = host.query(&sql, &[name.unwrap_or_default()])?;
        let tree = |r: Vec<Value>| Tree { root: r[1].to_int() as u32, name: r[0].clone() };
        self.trees = rows.into_iter().map(tree).collect();
        self.trees.reverse();
        self.next()
    }

    fn next(&mut self) -> Result<()> {
        if !self.whole {
            if let Some(row) = self.step()? {
                let name = self.row.take().map(|r| r.0);
                self.row = Some((name.unwrap_or_default(), row));
            } else {
                self.row = self.begin()?;
            }
            return Ok(());
        }
        let Some((name, mut all)) = self.begin()? else {
            self.row = None;
            return Ok(());
        };
        (all.path, all.kind, all.number) = (None, None, 1);
        while let Some(row) = self.step()? {
            all.number += 1;
            all.cells += row.cells;
            all.payload += row.payload;
            all.unused += row.unused;
            all.largest = all.largest.max(row.largest);
            all.size += row.size;
        }
        self.row = Some((name, all));
        Ok(())
    }

    fn eof(&self) -> bool {
        self.row.is_none()
    }

    fn column(&self, n: usize) -> Result<Value> {
        let Some((name, row)) = &self.row else { return Ok(Value::Null) };
        Ok(match n {
            0 => name.clone(),
            1 => row.path.as_ref().map_or(Ok(Value::Null), Value::text)?,
            2 => Value::Int(row.number),
            3 => row.kind.map_or(Ok(Value::Null), Value::text)?,
            4 => Value::Int(row.cells),
            5 => Value::Int(row.payload),
            6 => Value::Int(row.unused),
            7 => Value::Int(row.largest),
            8 if self.whole => Value::Null,
            8 => Value::Int((row.number - 1) * self.size as i64),
            9 => Value::Int(row.size),
            10 => Value::text(&self.schema)?,
            _ => Value::Int(self.whole as i64),
        })
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.row.as_ref().map_or(0, |r| r.1.number))
    }
}
