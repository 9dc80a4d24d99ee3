//! `CREATE VIRTUAL TABLE temp.t USING csv(filename='f.csv', header)`: the records of a file, or of a text, as rows
//! (documentation page `csv`).
//!
//! Nothing is kept but the arguments: each scan reads the file anew, record by record. All values are texts; fields that a record has
//! not are NULL, and those behind the last column are passed over. A row's number is that of its record.

use crate::delimited::{Format, Input, Reader};
use iolite::engine::{
    Declared, Error, FilterArgs, Host, IndexInfo, Module, Result, TableArgs, Value, VirtualCursor,
    VirtualTable,
};
use std::rc::Rc;

/// The module.
pub struct Csv;

const FORMAT: Format = Format { column: b',', row: b'\n', quotes: true };

/// Where the records are.
#[derive(Clone)]
enum Source {
    File(String),
    Text(String),
}

impl Source {
    fn open(&self) -> Result<Reader> {
        let input: Input = match self {
            Source::File(name) => match std::fs::File::open(name) {
                Ok(f) => Box::new(f),
                Err(e) => return Err(Error::sql(format!("cannot open '{name}' for reading: {e}"))),
            },
            Source::Text(text) => Box::new(std::io::Cursor::new(text.clone().into_bytes())),
        };
        Ok(Reader::new(input, FORMAT))
    }
}

/// The arguments of a table.
#[derive(Default)]
struct Settings {
    file: Option<String>,
    data: Option<String>,
    schema: Option<String>,
    header: Option<bool>,
    columns: Option<usize>,
}

impl Settings {
    fn of(args: &[Box<str>]) -> Result<Settings> {
        let mut s = Settings::default();
        for arg in args {
            let (key, value) = match arg.split_once('=') {
                Some((k, v)) => (k.trim(), Some(unquoted(v.trim()))),
                None => (arg.trim(), None),
            };
            let twice = || Error::sql(format!("more than one '{key}' parameter"));
            let text = |to: &mut Option<String>| match (to.is_some(), &value) {
                (true, _) => Err(twice()),
                (_, None) => Err(unknown(arg)),
                (_, Some(v)) => {
                    *to = Some(v.clone());
                    Ok(())
                }
            };
            match key.to_ascii_lowercase().as_str() {
                "filename" => text(&mut s.file)?,
                "data" => text(&mut s.data)?,
                "schema" => text(&mut s.schema)?,
                "header" if s.header.is_some() => return Err(twice()),
                "header" => s.header = Some(value.as_deref().is_none_or(is_yes)),
                "columns" if s.columns.is_some() => return Err(twice()),
                "columns" => match value.as_deref().map(str::parse) {
                    Some(Ok(n)) if n > 0 => s.columns = Some(n),
                    _ => return Err(Error::sql("columns= wants a positive number")),
                },
                _ => return Err(unknown(arg)),
            }
        }
        Ok(s)
    }
}

fn unknown(arg: &str) -> Error {
    Error::sql(format!("bad parameter: '{}'", arg.trim()))
}

fn is_yes(v: &str) -> bool {
    matches!(v.to_ascii_lowercase().as_str(), "yes" | "on" | "true" | "1")
}

/// A value without the quotes around it; doubled quotes inside stand for one.
fn unquoted(v: &str) -> String {
    match v.chars().next() {
        Some(q @ ('\'' | '"')) if v.len() > 1 && v.ends_with(q) => {
            v[1..v.len() - 1].replace(&format!("{q}{q}"), &q.to_string())
        }
        _ => v.to_string(),
    }
}

impl Module for Csv {
    fn connect(&self, _: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<Declared> {
        let s = Settings::of(args.args)?;
        let source = match (s.file, s.data) {
            (Some(f), None) => Source::File(f),
            (None, Some(d)) => Source::Text(d),
            _ => return Err(Error::sql("must specify either filename= or data= but not both")),
        };
        let header = s.header.unwrap_or(false);
        let mut names: Vec<String> = Vec::new();
        if s.columns.is_none() || header {
            let mut r = source.open()?;
            if r.next().map_err(unreadable)? {
                names = r.fields().map(|f| String::from_utf8_lossy(f).into_owned()).collect();
            }
        }
        let width = s.columns.unwrap_or(names.len()).max(1);
        if !header {
            names.clear();
        }
        let declaration = s.schema.unwrap_or_else(|| {
            let column = |k: usize| {
                let name = names.get(k).cloned().unwrap_or_else(|| format!("c{k}"));
                format!("\"{}\" TEXT", name.replace('"', "\"\""))
            };
            format!("CREATE TABLE x({})", (0..width).map(column).collect::<Vec<_>>().join(", "))
        });
        Ok(Declared::new(declaration, Rc::new(Table { source, header, width })))
    }
}

fn unreadable(e: std::io::Error) -> Error {
    Error::sql(format!("cannot read: {e}"))
}

struct Table {
    source: Source,
    header: bool,
    width: usize,
}

impl VirtualTable for Table {
    fn best_index(&self, info: &mut IndexInfo) -> Result<()> {
        info.cost = 1e6;
        Ok(())
    }

    fn open(&self) -> Result<Box<dyn VirtualCursor>> {
        let (source, header, width) = (self.source.clone(), self.header, self.width);
        Ok(Box::new(Records { source, header, width, reader: None, number: 0 }))
    }
}

struct Records {
    source: Source,
    header: bool,
    width: usize,
    /// None: at the end.
    reader: Option<Reader>,
    number: i64,
}

impl VirtualCursor for Records {
    fn filter(&mut self, _: i32, _: &str, _: &FilterArgs<'_>) -> Result<()> {
        let mut reader = self.source.open()?;
        if self.header {
            reader.next().map_err(unreadable)?;
        }
        (self.reader, self.number) = (Some(reader), 0);
        self.next()
    }

    fn next(&mut self) -> Result<()> {
        if let Some(r) = &mut self.reader {
            self.number += 1;
            if !r.next().map_err(unreadable)? {
                self.reader = None;
            }
        }
        Ok(())
    }

    fn eof(&self) -> bool {
        self.reader.is_none()
    }

    fn column(&self, n: usize) -> Result<Value> {
        let field = self.reader.as_ref().filter(|_| n < self.width).and_then(|r| r.fields().nth(n));
        field.map_or(Ok(Value::Null), Value::text)
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.number)
    }
}
