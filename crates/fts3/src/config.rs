//! What a table is made of: the arguments of `CREATE VIRTUAL TABLE ... USING fts3(...)` or `fts4(...)`.

use crate::{tokenize, words};
use iolite_base::{Error, Result};
use iolite_ext::{Host, TokenSink, TokenizeFor, Tokenizer};
use std::rc::Rc;

/// Where the rows' texts are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    /// In `%_content`.
    Own,
    /// In a table of the user; an empty name: nowhere.
    External(String),
}

/// A column.
pub(crate) struct Column {
    pub name: String,
    /// Its tokens are indexed.
    pub indexed: bool,
}

/// A table's settings.
pub(crate) struct Config {
    pub database: String,
    pub table: String,
    /// 3 or 4.
    pub version: u8,
    pub columns: Vec<Column>,
    pub tokenizer: Rc<dyn Tokenizer>,
    /// How long the terms of each index are, in bytes; 0: as they are. The first index has those.
    pub prefixes: Vec<usize>,
    pub content: Content,
    pub compress: Option<String>,
    pub uncompress: Option<String>,
    /// The column that has the language.
    pub language: Option<String>,
    /// Lists of rows begin with the last one.
    pub descending: bool,
    /// The sizes of rows are kept.
    pub sizes: bool,
}

/// What is said of a constructor's argument `key=value`.
fn option(arg: &str) -> Option<(&str, String)> {
    let (key, value) = arg.split_once('=')?;
    Some((key, words::dequote(value)))
}

/// The text behind `tokenize=`, or behind `tokenize` and a blank.
fn tokenizer(arg: &str) -> Option<&str> {
    let head = arg.get(..8)?;
    let b = arg.as_bytes();
    let is = b.len() > 8 && head.eq_ignore_ascii_case("tokenize") && !words::goes_on(b.get(8));
    is.then(|| arg.get(9..).unwrap_or_default())
}

fn prefixes(list: &str) -> Result<Vec<usize>> {
    let mut out = vec![0];
    if list.is_empty() {
        return Ok(out);
    }
    let mut rest = list;
    for _ in list.split(',') {
        if !rest.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(Error::sql(format!("error parsing prefix parameter: {list}")));
        }
        let (n, more) = words::number(rest);
        if n > 0 {
            out.push(n as usize);
        }
        rest = more.get(1..).unwrap_or_default();
    }
    Ok(out)
}

impl Config {
    /// Cuts a text into tokens as its language wants it; the tokenizer gets that as a number in digits, where rows have one.
    pub fn tokenize(
        &self,
        reason: TokenizeFor,
        language: i64,
        text: &[u8],
        sink: &mut TokenSink<'_>,
    ) -> Result<()> {
        let language = self.language.as_ref().map(|_| language.to_string());
        self.tokenizer.tokenize(reason, text, language.as_deref().map(str::as_bytes), sink)
    }

    /// Reads the arguments. `columns_of` answers the names of the columns of a table.
    pub fn parse(
        version: u8,
        (database, table): (&str, &str),
        args: &[Box<str>],
        columns_of: &dyn Fn(&str) -> Result<Vec<String>>,
        host: &dyn Host,
    ) -> Result<Config> {
        let mut names = Vec::new();
        let mut made = None;
        let mut sizes = version == 4;
        let (mut prefix, mut compress, mut uncompress, mut content, mut language) =
            (None, None, None, None, None);
        let mut descending = false;
        let mut unindexed = Vec::new();
        for arg in args {
            if made.is_none()
                && let Some(text) = tokenizer(arg)
            {
                made = Some(tokenize::parse(host, text)?);
                continue;
            }
            let Some((key, value)) = option(arg).filter(|_| version == 4) else {
                names.push(words::word(arg).map_or_else(String::new, |(w, _)| words::dequote(w)));
                continue;
            };
            match &*key.to_ascii_lowercase() {
                "matchinfo" if value.eq_ignore_ascii_case("fts3") => sizes = false,
                "matchinfo" => return Err(Error::sql(format!("unrecognized matchinfo: {value}"))),
                "prefix" => prefix = Some(value),
                "compress" => compress = Some(value),
                "uncompress" => uncompress = Some(value),
                "order" if value.eq_ignore_ascii_case("asc") => descending = false,
                "order" if value.eq_ignore_ascii_case("desc") => descending = true,
                "order" => return Err(Error::sql(format!("unrecognized order: {value}"))),
                "content" => content = Some(value),
                "languageid" => language = Some(value),
                "notindexed" => unindexed.push(value),
                _ => return Err(Error::sql(format!("unrecognized parameter: {arg}"))),
            }
        }
        if let Some(table) = &content {
            (compress, uncompress) = (None, None);
            if names.is_empty() {
                names = columns_of(table)?;
                if let Some(l) = &language {
                    names.retain(|n| !n.eq_ignore_ascii_case(l));
                }
            }
        }
        if names.is_empty() {
            names.push("content".into());
        }
        let tokenizer = match made {
            Some(t) => t,
            None => tokenize::create(host, "simple", &[])?,
        };
        let prefixes = prefixes(prefix.as_deref().unwrap_or_default())?;
        let mut columns: Vec<Column> = names.into_iter().map(|name| Column { name, indexed: true }).collect();
        for name in unindexed.iter() {
            let mut found = false;
            for c in columns.iter_mut().filter(|c| c.name.eq_ignore_ascii_case(name)) {
                c.indexed = false;
                found = true;
            }
            if !found {
                return Err(Error::sql(format!("no such column: {name}")));
            }
        }
        if compress.is_some() != uncompress.is_some() {
            let missing = if compress.is_none() { "compress" } else { "uncompress" };
            return Err(Error::sql(format!("missing {missing} parameter in fts4 constructor")));
        }
        Ok(Config {
            database: database.into(),
            table: table.into(),
            version,
            columns,
            tokenizer,
            prefixes,
            content: content.map_or(Content::Own, Content::External),
            compress,
            uncompress,
            language,
            descending,
            sizes,
        })
    }

    /// Whether its columns have names that go together.
    pub fn is_declarable(&self) -> bool {
        let own = [&*self.table, "docid", self.language.as_deref().unwrap_or("__langid")];
        let names: Vec<&str> = self.columns.iter().map(|c| &*c.name).chain(own).collect();
        !names.iter().enumerate().any(|(i, n)| names[..i].iter().any(|m| m.eq_ignore_ascii_case(n)))
    }

    /// The columns as the engine declares them.
    pub fn declaration(&self) -> String {
        let columns: String = self.columns.iter().map(|c| words::literal(&c.name) + ", ").collect();
        let language = words::literal(self.language.as_deref().unwrap_or("__langid"));
        format!(
            "CREATE TABLE x({columns}{} HIDDEN, docid HIDDEN, {language} HIDDEN)",
            words::literal(&self.table)
        )
    }

    /// The shadow table of this suffix, quoted.
    pub fn shadow(&self, suffix: &str) -> String {
        format!("{}.{}", words::name(&self.database), words::name(&format!("{}_{suffix}", self.table)))
    }
}
