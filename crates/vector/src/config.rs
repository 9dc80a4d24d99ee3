//! What the arguments of `vec0` say: the columns of a table and how they are kept.

use crate::kernel::Metric;
use crate::vector::Kind;
use iolite_base::{Error, Result};

pub(crate) const MOST_DIMENSIONS: usize = 8192;
const MOST_VECTORS: usize = 16;
const MOST_PARTITIONS: usize = 4;
const MOST_METADATA: usize = 16;
const MOST_AUXILIARY: usize = 16;
/// The largest number of rows that a chunk has room for.
pub(crate) const MOST_CHUNK: usize = 4096;
/// The largest number that an option of an index can have.
const MOST_OPTION: usize = 1 << 30;
/// The largest breadth of a graph's walk.
pub(crate) const MOST_EF: usize = 4096;
/// Of so many rows an index is made, where the definition does not say it.
const TRAIN: usize = 16_384;

/// Where no `chunk_size` is given and a column has an index, a chunk has room for about so many bytes of vectors: the few that a search
/// measures are read one by one, each by way of its chunk's overflow pages.
const INDEXED_CHUNK: usize = 32 << 10;

/// The options of `index=ivf(...)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ivf {
    /// So many lists are made; 0: one for about 256 rows.
    pub lists: usize,
    /// So many lists are looked at by a search that does not say how many.
    pub probes: usize,
    /// The lists are made when the table has so many rows; 0: only when `rebuild` asks for it.
    pub train: usize,
}

/// The options of `index=hnsw(...)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hnsw {
    /// A node has so many links on each level, and twice as many on the lowest.
    pub m: usize,
    /// The breadth of the walk that looks for the neighbours of a new node.
    pub ef_construction: usize,
    /// The breadth of a search that does not say how broad it is.
    pub ef_search: usize,
    /// Rows are linked when the table has more than so many; 0: only when `rebuild` asks for it.
    pub train: usize,
}

/// An index of a column of vectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Index {
    Ivf(Ivf),
    Hnsw(Hnsw),
}

/// A column of vectors.
#[derive(Clone, Debug)]
pub(crate) struct VectorColumn {
    pub name: String,
    pub kind: Kind,
    pub dimensions: usize,
    pub metric: Metric,
    pub index: Option<Index>,
}

impl VectorColumn {
    /// The bytes of one.
    pub fn bytes(&self) -> usize {
        self.kind.bytes(self.dimensions)
    }

    /// The options of its inverted lists, if it has some.
    pub fn lists(&self) -> Option<Ivf> {
        match self.index {
            Some(Index::Ivf(ivf)) => Some(ivf),
            _ => None,
        }
    }

    /// The options of its graph, if it has one.
    pub fn graph(&self) -> Option<Hnsw> {
        match self.index {
            Some(Index::Hnsw(hnsw)) => Some(hnsw),
            _ => None,
        }
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
    /// Of a table with inverted lists: how many of them a search looks at.
    Probes,
    /// Of a table with a graph: how broad a search is.
    Ef,
    /// Of a table with an index, by the table's name: what is inserted into it is a command.
    Command,
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
    /// The table's name.
    pub table: String,
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
    let mut index = None;
    let mut rest = &t[5..];
    while !rest.is_empty() {
        let [Token::Word(key), Token::Sign(b'='), Token::Word(value), more @ ..] = rest else {
            return broken();
        };
        rest = more;
        let value = value.to_ascii_lowercase();
        if key.eq_ignore_ascii_case("index") {
            index = match &*value {
                "none" => None,
                "ivf" => ivf_options(&mut rest),
                "hnsw" => hnsw_options(&mut rest),
                _ => return broken(),
            };
            if index.is_none() && value != "none" {
                return broken();
            }
            continue;
        }
        if !key.eq_ignore_ascii_case("distance_metric") {
            return broken();
        }
        metric = match (&*value, kind) {
            ("hamming", Kind::Bit) => Metric::Hamming,
            ("l2", Kind::F32 | Kind::I8) => Metric::L2,
            ("l1", Kind::F32 | Kind::I8) => Metric::L1,
            ("cosine", Kind::F32 | Kind::I8) => Metric::Cosine,
            _ => return broken(),
        };
    }
    if index.is_some() && !matches!(metric, Metric::L2 | Metric::Cosine) {
        return fail(format!("an index needs the distance metric l2 or cosine: '{arg}'"));
    }
    Ok(Some(VectorColumn { name: (*name).into(), kind, dimensions, metric, index }))
}

/// The options in parentheses behind the name of an index, which are taken from the front of `rest`, each handed to `set`, which says whether
/// there is such a one; none: they cannot be read.
fn index_options(rest: &mut &[Token<'_>], mut set: impl FnMut(&str, usize) -> bool) -> Option<()> {
    let Some((Token::Sign(b'('), mut inner)) = rest.split_first() else { return Some(()) };
    loop {
        match inner {
            [Token::Sign(b')'), more @ ..] => {
                *rest = more;
                return Some(());
            }
            [Token::Word(key), Token::Sign(b'='), Token::Number(n), more @ ..] => {
                let n: usize = n.parse().ok().filter(|n| *n <= MOST_OPTION)?;
                if !set(&key.to_ascii_lowercase(), n) {
                    return None;
                }
                inner = match more {
                    [Token::Sign(b','), more @ ..] if !matches!(more, [Token::Sign(b')'), ..]) => more,
                    [Token::Sign(b')'), ..] => more,
                    _ => return None,
                };
            }
            _ => return None,
        }
    }
}

fn ivf_options(rest: &mut &[Token<'_>]) -> Option<Index> {
    let mut ivf = Ivf { lists: 0, probes: 48, train: TRAIN };
    index_options(rest, |key, n| {
        match key {
            "lists" => ivf.lists = n,
            "probes" if n > 0 => ivf.probes = n,
            "train" => ivf.train = n,
            _ => return false,
        }
        true
    })?;
    Some(Index::Ivf(ivf))
}

fn hnsw_options(rest: &mut &[Token<'_>]) -> Option<Index> {
    let mut hnsw = Hnsw { m: 16, ef_construction: 64, ef_search: 40, train: TRAIN };
    index_options(rest, |key, n| {
        match key {
            "m" if (2..=64).contains(&n) => hnsw.m = n,
            "ef_construction" if (1..=MOST_EF).contains(&n) => hnsw.ef_construction = n,
            "ef_search" if (1..=MOST_EF).contains(&n) => hnsw.ef_search = n,
            "train" => hnsw.train = n,
            _ => return false,
        }
        true
    })?;
    Some(Index::Hnsw(hnsw))
}

impl Config {
    /// Reads the arguments of the table of this name.
    pub fn parse(args: &[Box<str>], table: &str) -> Result<Config> {
        let mut c = Config {
            key: None,
            text_key: false,
            vectors: Vec::new(),
            partitions: Vec::new(),
            metadata: Vec::new(),
            auxiliary: Vec::new(),
            chunk_size: 0,
            table: table.into(),
            columns: Vec::new(),
        };
        for arg in args.iter().map(|a| a.trim()).filter(|a| !a.is_empty()) {
            c.argument(arg)?;
        }
        if c.vectors.is_empty() {
            return fail("At least one vector column is required");
        }
        c.columns.extend([Column::Distance, Column::K]);
        if c.with_lists().next().is_some() {
            c.columns.push(Column::Probes);
        }
        if c.with_graphs().next().is_some() {
            c.columns.push(Column::Ef);
        }
        if c.is_indexed() {
            c.columns.push(Column::Command);
        }
        if c.chunk_size == 0 {
            let widest = c.vectors.iter().map(VectorColumn::bytes).max().unwrap_or(1);
            let few = (INDEXED_CHUNK / widest / 8 * 8).clamp(8, 1024);
            c.chunk_size = if c.is_indexed() { few } else { 1024 };
        }
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

    /// Whether a column of vectors has an index.
    pub fn is_indexed(&self) -> bool {
        self.vectors.iter().any(|v| v.index.is_some())
    }

    /// The columns of vectors that have inverted lists.
    pub fn with_lists(&self) -> impl Iterator<Item = usize> {
        (0..self.vectors.len()).filter(|k| self.vectors[*k].lists().is_some())
    }

    /// The columns of vectors that have a graph.
    pub fn with_graphs(&self) -> impl Iterator<Item = usize> {
        (0..self.vectors.len()).filter(|k| self.vectors[*k].graph().is_some())
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
            Column::Probes => "probes",
            Column::Ef => "ef",
            Column::Command => &self.table,
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
            Column::Distance | Column::K | Column::Probes | Column::Ef => format!("{} HIDDEN", self.name(*c)),
            Column::Command => format!("\"{}\" HIDDEN", self.name(*c).replace('"', "\"\"")),
            _ => format!("\"{}\"", self.name(*c)),
        };
        let all: Vec<String> = self.columns.iter().map(column).collect();
        let end = if self.key.is_some() { ") WITHOUT ROWID" } else { ")" };
        format!("CREATE TABLE x({}{end}", all.join(","))
    }
}
