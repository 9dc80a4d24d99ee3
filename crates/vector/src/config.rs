//! What the arguments of `vec0` say: the columns of a table and how they are kept.

use crate::kernel::Metric;
use crate::vector::Kind;
use iolite_base::{Error, Result};

const MOST_DIMENSIONS: usize = 8192;
const MOST_VECTORS: usize = 16;
const MOST_PARTITIONS: usize = 4;
const MOST_METADATA: usize = 16;
const MOST_AUXILIARY: usize = 16;
/// The largest number of rows that a chunk has room for.
pub(crate) const MOST_CHUNK: usize = 4096;

/// A column of vectors.
#[derive(Clone, Debug)]
pub(crate) struct VectorColumn {
    pub name: String,
    pub kind: Kind,
    pub dimensions: usize,
    pub metric: Metric,
}

impl VectorColumn {
    /// The bytes of one.
    pub fn bytes(&self) -> usize {
        self.kind.bytes(self.dimensions)
    }
}

/// The types of the other columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Type {
    Boolean,
    Integer,
    Float,
    Text,
    Blob,
}

impl Type {
    /// As errors name it.
    pub fn name(self) -> &'static str {
        match self {
            Type::Boolean => "BOOLEAN",
            Type::Integer => "INTEGER",
            Type::Float => "FLOAT",
            Type::Text => "TEXT",
            Type::Blob => "BLOB",
        }
    }

    /// The bytes of a chunk of so many rows of it.
    pub fn chunk_bytes(self, rows: usize) -> usize {
        match self {
            Type::Boolean => rows / 8,
            Type::Text => 16 * rows,
            _ => 8 * rows,
        }
    }
}

/// A column that is no vector.
#[derive(Clone, Debug)]
pub(crate) struct Plain {
    pub name: String,
    pub ty: Type,
}

/// What a column of the table is, with its place among those of its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Column {
    Key,
    Vector(usize),
    Partition(usize),
    Metadata(usize),
    Auxiliary(usize),
    Distance,
    K,
}

/// A table's columns and options.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The primary key, if it was named.
    pub key: Option<String>,
    pub text_key: bool,
    pub vectors: Vec<VectorColumn>,
    pub partitions: Vec<Plain>,
    pub metadata: Vec<Plain>,
    pub auxiliary: Vec<Plain>,
    pub chunk_size: usize,
    /// The columns in the table's order, the hidden ones last.
    pub columns: Vec<Column>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token<'a> {
    Word(&'a str),
    Number(&'a str),
    Sign(u8),
}

/// The tokens of an argument; `None`: there is something in it that is none.
fn tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let b = text.as_bytes();
    let (mut at, mut out) = (0, Vec::new());
    let run = |from: usize, f: fn(&u8) -> bool| from + b[from..].iter().take_while(|c| f(c)).count();
    while at < b.len() {
        let end = match b[at] {
            c if c.is_ascii_whitespace() => at + 1,
            c if c.is_ascii_alphabetic() => {
                let end = run(at, |c| c.is_ascii_alphanumeric() || *c == b'_');
                out.push(Token::Word(&text[at..end]));
                end
            }
            c if c.is_ascii_digit() => {
                let end = run(at, u8::is_ascii_digit);
                out.push(Token::Number(&text[at..end]));
                end
            }
            c @ (b'[' | b']' | b'=' | b'+' | b'(' | b')' | b',') => {
                out.push(Token::Sign(c));
                at + 1
            }
            _ => return None,
        };
        at = end;
    }
    Some(out)
}

fn is(token: Option<&Token<'_>>, word: &str) -> bool {
    matches!(token, Some(Token::Word(w)) if w.eq_ignore_ascii_case(word))
}

fn plain_type(token: Option<&Token<'_>>) -> Option<Type> {
    let Some(Token::Word(w)) = token else { return None };
    Some(match &*w.to_ascii_lowercase() {
        "boolean" | "bool" => Type::Boolean,
        "integer" | "int" => Type::Integer,
        "float" | "double" => Type::Float,
        "text" => Type::Text,
        "blob" => Type::Blob,
        _ => return None,
    })
}

fn fail<T>(what: impl std::fmt::Display) -> Result<T> {
    Err(Error::sql(format!("vec0 constructor error: {what}")))
}

/// A column of vectors; `None`: the argument is something else.
fn vector_column(arg: &str, t: &[Token<'_>]) -> Result<Option<VectorColumn>> {
    let (Some(Token::Word(name)), Some(Token::Word(ty)), Some(Token::Sign(b'['))) =
        (t.first(), t.get(1), t.get(2))
    else {
        return Ok(None);
    };
    let kind = match &*ty.to_ascii_lowercase() {
        "float" | "f32" => Kind::F32,
        "int8" | "i8" => Kind::I8,
        "bit" => Kind::Bit,
        _ => return Ok(None),
    };
    let broken = || fail(format!("could not parse vector column '{arg}'"));
    let (Some(Token::Number(n)), Some(Token::Sign(b']'))) = (t.get(3), t.get(4)) else { return broken() };
    let Ok(dimensions @ 1..=0x7fff_ffff) = n.parse::<usize>() else { return broken() };
    if dimensions > MOST_DIMENSIONS {
        return fail(format!(
            "Dimension on vector column too large, provided {dimensions}, maximum {MOST_DIMENSIONS}"
        ));
    }
    if kind == Kind::Bit && !dimensions.is_multiple_of(8) {
        return broken();
    }
    let mut metric = if kind == Kind::Bit { Metric::Hamming } else { Metric::L2 };
    for option in t[5..].chunks(3) {
        let [Token::Word(key), Token::Sign(b'='), Token::Word(value)] = option else { return broken() };
        if !key.eq_ignore_ascii_case("distance_metric") {
            return broken();
        }
        metric = match (&*value.to_ascii_lowercase(), kind) {
            ("hamming", Kind::Bit) => Metric::Hamming,
            ("l2", Kind::F32 | Kind::I8) => Metric::L2,
            ("l1", Kind::F32 | Kind::I8) => Metric::L1,
            ("cosine", Kind::F32 | Kind::I8) => Metric::Cosine,
            _ => return broken(),
        };
    }
    Ok(Some(VectorColumn { name: (*name).into(), kind, dimensions, metric }))
}

impl Config {
    /// Reads the arguments.
    pub fn parse(args: &[Box<str>]) -> Result<Config> {
        let mut c = Config {
            key: None,
            text_key: false,
            vectors: Vec::new(),
            partitions: Vec::new(),
            metadata: Vec::new(),
            auxiliary: Vec::new(),
            chunk_size: 1024,
            columns: Vec::new(),
        };
        for arg in args.iter().map(|a| a.trim()).filter(|a| !a.is_empty()) {
            c.argument(arg)?;
        }
        if c.vectors.is_empty() {
            return fail("At least one vector column is required");
        }
        c.columns.extend([Column::Distance, Column::K]);
        if c.key.is_none() {
            c.columns.insert(0, Column::Key);
        }
        let names: Vec<&str> = c.columns.iter().map(|k| c.name(*k)).collect();
        for (k, name) in names.iter().enumerate() {
            if names[..k].iter().any(|n| n.eq_ignore_ascii_case(name)) {
                return fail(format!("could not declare virtual table, 'duplicate column name: {name}'"));
            }
        }
        Ok(c)
    }

    fn argument(&mut self, arg: &str) -> Result<()> {
        let unread = || fail(format!("Could not parse '{arg}'"));
        let Some(t) = tokens(arg) else { return unread() };
        if let Some(v) = vector_column(arg, &t)? {
            self.vectors.push(v);
            if self.vectors.len() > MOST_VECTORS {
                return fail(format!("Too many provided vector columns, maximum {MOST_VECTORS}"));
            }
            self.columns.push(Column::Vector(self.vectors.len() - 1));
            return Ok(());
        }
        if let [Token::Sign(b'+'), Token::Word(name), rest @ ..] = &t[..] {
            let Some(ty) = plain_type(rest.first()).filter(|t| *t != Type::Boolean) else { return unread() };
            self.auxiliary.push(Plain { name: (*name).into(), ty });
            if self.auxiliary.len() > MOST_AUXILIARY {
                return fail(format!("More than {MOST_AUXILIARY} auxiliary columns were provided"));
            }
            self.columns.push(Column::Auxiliary(self.auxiliary.len() - 1));
            return Ok(());
        }
        let [Token::Word(name), rest @ ..] = &t[..] else { return unread() };
        let ty = plain_type(rest.first());
        if is(rest.get(2), "key") && matches!(ty, Some(Type::Integer | Type::Text)) {
            let ty = ty.unwrap_or(Type::Integer);
            if is(rest.get(1), "primary") {
                if self.key.is_some() {
                    return fail(
                        "More than one primary key definition was provided, vec0 only suports a single primary key column",
                    );
                }
                (self.key, self.text_key) = (Some((*name).into()), ty == Type::Text);
                self.columns.push(Column::Key);
                return Ok(());
            }
            if is(rest.get(1), "partition") {
                self.partitions.push(Plain { name: (*name).into(), ty });
                if self.partitions.len() > MOST_PARTITIONS {
                    return fail(format!("More than {MOST_PARTITIONS} partition key columns were provided"));
                }
                self.columns.push(Column::Partition(self.partitions.len() - 1));
                return Ok(());
            }
        }
        if let Some(ty) = ty.filter(|t| *t != Type::Blob) {
            self.metadata.push(Plain { name: (*name).into(), ty });
            if self.metadata.len() > MOST_METADATA {
                return fail(format!("More than {MOST_METADATA} metadata columns were provided"));
            }
            self.columns.push(Column::Metadata(self.metadata.len() - 1));
            return Ok(());
        }
        match rest {
            [] => unread(),
            [Token::Sign(b'='), value] if name.eq_ignore_ascii_case("chunk_size") => {
                self.set_chunk_size(value)
            }
            [_] | [Token::Sign(b'='), _] => fail(format!("Unknown table option: {name}")),
            _ => fail(format!("could not parse table option '{arg}'")),
        }
    }

    fn set_chunk_size(&mut self, value: &Token<'_>) -> Result<()> {
        let n = match value {
            Token::Number(n) => n.parse().unwrap_or(0),
            _ => 0,
        };
        if n == 0 {
            return fail("chunk_size must be a non-zero positive integer");
        }
        if !usize::is_multiple_of(n, 8) {
            return fail("chunk_size must be divisible by 8");
        }
        if n > MOST_CHUNK {
            return fail("chunk_size too large");
        }
        self.chunk_size = n;
        Ok(())
    }

    /// A column's name.
    pub fn name(&self, c: Column) -> &str {
        match c {
            Column::Key => self.key.as_deref().unwrap_or("rowid"),
            Column::Vector(k) => &self.vectors[k].name,
            Column::Partition(k) => &self.partitions[k].name,
            Column::Metadata(k) => &self.metadata[k].name,
            Column::Auxiliary(k) => &self.auxiliary[k].name,
            Column::Distance => "distance",
            Column::K => "k",
        }
    }

    /// What a column of the table is; -1 stands for the rowid.
    pub fn column(&self, n: i32) -> Option<Column> {
        match usize::try_from(n) {
            Ok(n) => self.columns.get(n).copied(),
            Err(_) => Some(Column::Key),
        }
    }

    /// What the engine is told that the table is.
    pub fn declaration(&self) -> String {
        let column = |c: &Column| match c {
            Column::Key if self.key.is_some() => format!("\"{}\" PRIMARY KEY", self.name(*c)),
            Column::Distance | Column::K => format!("{} HIDDEN", self.name(*c)),
            _ => format!("\"{}\"", self.name(*c)),
        };
        let all: Vec<String> = self.columns.iter().map(column).collect();
        let end = if self.key.is_some() { ") WITHOUT ROWID" } else { ")" };
        format!("CREATE TABLE x({}{end}", all.join(","))
    }
}
