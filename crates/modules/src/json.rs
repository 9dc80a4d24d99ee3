//! `json_each` and `json_tree`, and their `jsonb` forms: the elements of a JSON value as rows. They differ in whether they go
//! into containers, and in whether `value` shows containers as text or as JSONB.

use crate::rows::{arguments, take_arguments};
use iolite_base::{Bytes, Result};
use iolite_ext::{
    Declared, FilterArgs, Host, IndexInfo, Module, ModuleKind, TableArgs, Trust, VirtualCursor, VirtualTable,
};
use iolite_func::json::{Json, JsonChildren, JsonElement};
use iolite_value::Value;
use std::cell::RefCell;
use std::rc::Rc;

/// The module.
#[derive(Clone, Copy)]
pub(crate) struct JsonTable {
    pub deep: bool,
    pub binary: bool,
}

/// Where the hidden columns begin.
const JSON: usize = 8;

impl Module for JsonTable {
    fn kind(&self) -> ModuleKind {
        ModuleKind::EponymousOnly
    }

    fn connect(&self, _: &Rc<dyn Host>, _: &TableArgs<'_>) -> Result<Declared> {
        let declaration =
            "CREATE TABLE x(key, value, type, atom, id, parent, fullkey, path, json HIDDEN, root HIDDEN)";
        Ok(Declared { trust: Trust::Innocuous, ..Declared::new(declaration, Rc::new(*self)) })
    }
}

impl VirtualTable for JsonTable {
    fn holds_nothing(&self) -> bool {
        true
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<()> {
        info.index_num = take_arguments(info, JSON, 2)?;
        // Without a value there are no rows.
        (info.cost, info.rows) = if info.index_num & 1 != 0 { (1.0, 25) } else { (1e6, 1) };
        Ok(())
    }

    fn open(&self) -> Result<Box<dyn VirtualCursor>> {
        Ok(Box::new(Cursor {
            table: *self,
            json: None,
            given: [Value::Null, Value::Null],
            open: Vec::new(),
            now: None,
            row: 0,
            types: RefCell::default(),
        }))
    }
}

/// A container whose elements are being gone through.
struct Container {
    rest: JsonChildren,
    /// How many were taken.
    taken: i64,
    id: i64,
    full_key: Bytes,
}

/// The present row.
struct Row {
    element: JsonElement,
    place: Place,
    parent: Option<i64>,
}

/// Where a row's element is. Keys and paths are made when they are asked for.
enum Place {
    /// Below the container of this path, under a label or at an index.
    Below(Bytes, Option<JsonElement>, i64),
    /// At the end of this path, whose own steps begin at this byte, with its label, if it has one.
    Root(Bytes, usize, Option<JsonElement>),
}

struct Cursor {
    table: JsonTable,
    json: Option<Json>,
    /// The hidden columns.
    given: [Value; 2],
    open: Vec<Container>,
    now: Option<Row>,
    row: i64,
    /// Names of types that were told already.
    types: RefCell<Vec<(&'static str, Value)>>,
}

/// Appends a label to a path.
fn push_label(path: &mut Vec<u8>, label: &[u8]) {
    let plain =
        label.first().is_some_and(u8::is_ascii_alphabetic) && label.iter().all(u8::is_ascii_alphanumeric);
    path.push(b'.');
    match plain {
        true => path.extend_from_slice(label),
        false => {
            path.push(b'"');
            path.extend_from_slice(label);
            path.push(b'"');
        }
    }
}

/// Where the steps of a root's path begin that are told as its key. As in SQLite that is the last step for the first element of a
/// container, and all of them for any other.
fn own_step(json: &Json, path: &[u8], id: usize) -> Result<usize> {
    for n in (1..path.len()).rev().filter(|n| matches!(path[*n], b'[' | b'.')) {
        // A mark within quotes ends no path.
        let Ok(Some((_, container))) = json.find(&Value::text(&path[..n])?) else { continue };
        if !json.is_container(container) {
            continue;
        }
        let mut children = json.children(container);
        if let Some((label, first)) = json.next_child(&mut children)?
            && json.id(label.unwrap_or(first)) == id
        {
            return Ok(n);
        }
    }
    Ok(path.len().min(1))
}

/// The key that the steps at the end of a path name.
fn key_of(steps: &[u8]) -> Result<Value> {
    match steps {
        [] => Ok(Value::Null),
        // Places that are counted from the end are not told.
        [b'[', rest @ ..] => {
            let digits = rest.iter().take_while(|b| b.is_ascii_digit());
            let number = digits.fold(0i64, |n, b| n.wrapping_mul(10).wrapping_add(i64::from(b - b'0')));
            Ok(Value::Int(number))
        }
        [_, b'"', label @ .., _] => Value::text(label),
        [_, label @ ..] => Value::text(label),
    }
}

impl Place {
    fn key(&self, json: &Json) -> Result<Value> {
        match self {
            Place::Below(_, Some(label), _) => Value::text(json.label(*label)),
            Place::Below(_, None, index) => Ok(Value::Int(*index)),
            Place::Root(path, at, _) => key_of(&path[*at..]),
        }
    }

    /// Where the element begins with its label, in the JSONB form: a number of its own for each.
    fn id(&self, json: &Json, element: JsonElement) -> i64 {
        match self {
            Place::Below(_, Some(label), _) | Place::Root(_, _, Some(label)) => json.id(*label) as i64,
            _ => json.id(element) as i64,
        }
    }

    fn path(&self) -> &[u8] {
        match self {
            Place::Below(path, ..) => path,
            Place::Root(path, at, _) => &path[..*at],
        }
    }

    fn full_key(&self, json: &Json) -> Result<Bytes> {
        match self {
            Place::Below(path, label, index) => {
                let mut out = path.to_vec();
                match label {
                    Some(l) => push_label(&mut out, json.written(*l)),
                    None => out.extend_from_slice(format!("[{index}]").as_bytes()),
                }
                Bytes::copy_of(&out)
            }
            Place::Root(path, ..) => Ok(path.clone()),
        }
    }
}

impl Cursor {
    /// Goes into a container; its elements come next.
    fn enter(&mut self, e: JsonElement, id: i64, full_key: Bytes) {
        let Some(json) = &self.json else { return };
        let rest = json.children(e);
        self.open.push(Container { rest, taken: 0, id, full_key });
    }

    /// Takes the next element of the innermost container that has one.
    fn step(&mut self) -> Result<()> {
        self.now = None;
        let Some(json) = &self.json else { return Ok(()) };
        while let Some(c) = self.open.last_mut() {
            let Some((label, element)) = json.next_child(&mut c.rest)? else {
                self.open.pop();
                continue;
            };
            let place = Place::Below(c.full_key.clone(), label, c.taken);
            c.taken += 1;
            self.now = Some(Row { element, place, parent: self.table.deep.then_some(c.id) });
            break;
        }
        Ok(())
    }

    /// The name of a type, as a value that is made once.
    fn type_value(&self, name: &'static str) -> Result<Value> {
        let mut types = self.types.borrow_mut();
        if let Some((_, v)) = types.iter().find(|t| t.0 == name) {
            return Ok(v.clone());
        }
        let v = Value::text(name)?;
        types.push((name, v.clone()));
        Ok(v)
    }
}

impl VirtualCursor for Cursor {
    fn filter(&mut self, index_num: i32, _: &str, args: &FilterArgs<'_>) -> Result<()> {
        let [json, root] = arguments::<2>(index_num, args);
        self.open.clear();
        (self.now, self.json, self.row) = (None, None, 0);
        let whole = match root {
            Some(root) => root.clone(),
            None => Value::text("$")?,
        };
        self.given = [json.cloned().unwrap_or(Value::Null), whole];
        let Some(parsed) = Json::of(&self.given[0])? else { return Ok(()) };
        let element = match root {
            Some(path) => parsed.find(path)?,
            None => Some((None, parsed.root()?)),
        };
        let Some((label, element)) = element else { return Ok(()) };
        let full_key = self.given[1].text_bytes()?;
        let (container, id) = (parsed.is_container(element), parsed.id(element) as i64);
        if container && !self.table.deep {
            self.json = Some(parsed);
            self.enter(element, id, full_key);
            return self.step();
        }
        // As in SQLite the only row of a value that is no container is nobody's element.
        let at = match self.table.deep {
            true => own_step(&parsed, &full_key, parsed.id(label.unwrap_or(element)))?,
            false => full_key.len(),
        };
        self.json = Some(parsed);
        self.now = Some(Row { element, place: Place::Root(full_key, at, label), parent: None });
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.row += 1;
        if let (true, Some(row), Some(json)) = (self.table.deep, &self.now, &self.json)
            && json.is_container(row.element)
        {
            let (element, full_key) = (row.element, row.place.full_key(json)?);
            let id = row.place.id(json, element);
            self.enter(element, id, full_key);
        }
        self.step()
    }

    fn eof(&self) -> bool {
        self.now.is_none()
    }

    fn column(&self, n: usize) -> Result<Value> {
        let (Some(row), Some(json)) = (&self.now, &self.json) else { return Ok(Value::Null) };
        Ok(match n {
            0 => row.place.key(json)?,
            1 => json.value(row.element, self.table.binary)?,
            2 => self.type_value(json.type_name(row.element))?,
            3 => json.atom(row.element)?,
            4 => Value::Int(row.place.id(json, row.element)),
            5 => row.parent.map_or(Value::Null, Value::Int),
            6 => Value::Text(row.place.full_key(json)?, 0),
            7 => Value::text(row.place.path())?,
            n => self.given[n - JSON].clone(),
        })
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.row)
    }
}
