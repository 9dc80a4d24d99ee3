//! `json_each` and `json_tree`, and their `jsonb` forms: the elements of a JSON value as rows. They differ in whether they go
//! into containers, and in whether `value` shows containers as text or as JSONB.

use crate::rows::{arguments, take_arguments};
use iolite_base::Result;
use iolite_ext::{
    Declared, FilterArgs, Host, IndexInfo, Module, ModuleKind, TableArgs, Trust, VirtualCursor, VirtualTable,
};
use iolite_func::json::{Json, JsonElement};
use iolite_value::Value;
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
        }))
    }
}

/// A container whose elements are being gone through.
struct Container {
    rest: std::vec::IntoIter<(Option<Vec<u8>>, JsonElement)>,
    array: bool,
    /// How many were taken.
    taken: i64,
    id: i64,
    full_key: Vec<u8>,
}

/// The present row.
struct Row {
    element: JsonElement,
    key: Value,
    parent: Option<i64>,
    full_key: Vec<u8>,
    path: Vec<u8>,
}

struct Cursor {
    table: JsonTable,
    json: Option<Json>,
    /// The hidden columns.
    given: [Value; 2],
    open: Vec<Container>,
    now: Option<Row>,
    row: i64,
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

/// Where the last step of a path begins.
fn last_step(path: &[u8]) -> usize {
    let mut n = path.len();
    while n > 1 {
        n -= 1;
        if path[n] == b'[' || path[n] == b'.' {
            // A mark within quotes is none.
            let quotes = path[..n].iter().filter(|b| **b == b'"').count();
            if quotes % 2 == 0 {
                return n;
            }
        }
    }
    path.len()
}

/// The key that the last step of a path names.
fn key_of(step: &[u8]) -> Result<Value> {
    match step {
        [] => Ok(Value::Null),
        [b'[', digits @ .., b']'] => {
            let n = std::str::from_utf8(digits).ok().and_then(|d| d.parse().ok());
            n.map_or(Ok(Value::Null), |n| Ok(Value::Int(n)))
        }
        [_, b'"', label @ .., b'"'] => Value::text(label),
        [_, label @ ..] => Value::text(label),
    }
}

impl Cursor {
    /// Goes into a container; its elements come next.
    fn enter(&mut self, e: JsonElement, full_key: Vec<u8>) -> Result<()> {
        let Some(json) = &self.json else { return Ok(()) };
        let (array, id) = (json.type_name(e) == "array", json.id(e) as i64);
        let rest = json.children(e)?.into_iter();
        self.open.push(Container { rest, array, taken: 0, id, full_key });
        Ok(())
    }

    /// Takes the next element of the innermost container that has one.
    fn step(&mut self) -> Result<()> {
        self.now = None;
        while let Some(c) = self.open.last_mut() {
            let Some((label, element)) = c.rest.next() else {
                self.open.pop();
                continue;
            };
            let mut full_key = c.full_key.clone();
            let key = match &label {
                Some(l) => {
                    push_label(&mut full_key, l);
                    Value::text(l)?
                }
                None => {
                    full_key.extend_from_slice(format!("[{}]", c.taken).as_bytes());
                    Value::Int(c.taken)
                }
            };
            debug_assert_eq!(c.array, label.is_none());
            c.taken += 1;
            let parent = self.table.deep.then_some(c.id);
            self.now = Some(Row { element, key, parent, full_key, path: c.full_key.clone() });
            break;
        }
        Ok(())
    }
}

impl VirtualCursor for Cursor {
    fn filter(&mut self, index_num: i32, _: &str, args: &FilterArgs<'_>) -> Result<()> {
        let [json, root] = arguments::<2>(index_num, args);
        self.open.clear();
        (self.now, self.json, self.row) = (None, None, 0);
        self.given = [json.cloned().unwrap_or(Value::Null), root.cloned().unwrap_or(Value::text("$")?)];
        let Some(parsed) = Json::of(&self.given[0])? else { return Ok(()) };
        let element = match root {
            Some(path) => parsed.find(path)?,
            None => Some(parsed.root()?),
        };
        let Some(element) = element else { return Ok(()) };
        let full_key = self.given[1].text_bytes()?.to_vec();
        let container = parsed.is_container(element);
        self.json = Some(parsed);
        if container && !self.table.deep {
            self.enter(element, full_key)?;
            return self.step();
        }
        let at = last_step(&full_key);
        let (key, path) = (key_of(&full_key[at..])?, full_key[..at].to_vec());
        self.now = Some(Row { element, key, parent: None, full_key, path });
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.row += 1;
        if let (true, Some(row)) = (self.table.deep, &self.now)
            && self.json.as_ref().is_some_and(|j| j.is_container(row.element))
        {
            let (element, full_key) = (row.element, row.full_key.clone());
            self.enter(element, full_key)?;
        }
        self.step()
    }

    fn eof(&self) -> bool {
        self.now.is_none()
    }

    fn column(&self, n: usize) -> Result<Value> {
        let (Some(row), Some(json)) = (&self.now, &self.json) else { return Ok(Value::Null) };
        Ok(match n {
            0 => row.key.clone(),
            1 => json.value(row.element, self.table.binary)?,
            2 => Value::text(json.type_name(row.element))?,
            3 => json.atom(row.element)?,
            4 => Value::Int(json.id(row.element) as i64),
            5 => row.parent.map_or(Value::Null, Value::Int),
            6 => Value::text(&row.full_key)?,
            7 => Value::text(&row.path)?,
            n => self.given[n - JSON].clone(),
        })
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.row)
    }
}
