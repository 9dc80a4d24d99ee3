//! What a table is made of: its columns and options from `CREATE VIRTUAL TABLE`, and the settings that `%_config` keeps.
//!
//! The first never change while a table is connected. Settings are read again when the cookie in the structure record is
//! another than when they were read.

use crate::words::{self, bareword, dequote, skip_blanks};
use iolite_base::{Code, Error, Result};
use iolite_ext::{TokenPatterns, TokenizeFor, Tokenizer, TokenizerKind};
use iolite_value::Value;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Where a table's rows are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    /// In `%_content`.
    Own,
    /// Nowhere.
    None,
    /// Nowhere but for columns that are not indexed, which are in `%_content`.
    Unindexed,
    /// In a table of the user.
    External,
}

/// What the index says of the places of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Detail {
    /// Row, column and offset.
    Full,
    /// Row and column.
    Column,
    /// The row.
    None,
}

/// A column.
pub(crate) struct Column {
    pub name: String,
    pub indexed: bool,
}

/// A call of a ranking function, as it stands in `rank MATCH` or in the configuration.
#[derive(Clone, Debug)]
pub(crate) struct RankCall {
    pub function: String,
    /// The arguments as SQL.
    pub args: String,
}

/// The settings of `%_config`.
pub(crate) struct Settings {
    pub page_size: Cell<usize>,
    pub automerge: Cell<usize>,
    pub usermerge: Cell<usize>,
    pub crisismerge: Cell<usize>,
    pub deletemerge: Cell<usize>,
    pub hash_size: Cell<usize>,
    pub secure_delete: Cell<bool>,
    pub insttoken: Cell<bool>,
    pub version: Cell<i64>,
    pub rank: RefCell<Option<RankCall>>,
    /// What the structure record's cookie was when they were read.
    pub cookie: Cell<u32>,
}

/// The version that is written.
pub(crate) const VERSION: i64 = 4;
/// The version of an index that `secure-delete` has changed.
pub(crate) const VERSION_SECURE: i64 = 5;
/// The most segments that an index has.
pub(crate) const MAX_SEGMENTS: usize = 2000;
const MAX_PREFIXES: usize = 31;

/// A table as it was declared.
pub(crate) struct Config {
    pub database: String,
    pub table: String,
    pub columns: Vec<Column>,
    /// The lengths of prefixes that have an index.
    pub prefixes: Vec<usize>,
    pub content: Content,
    /// The table that an external content comes from, and its rowid's name.
    pub external: String,
    pub external_rowid: String,
    pub detail: Detail,
    pub column_size: bool,
    pub contentless_delete: bool,
    pub tokendata: bool,
    pub locale: bool,
    pub tokenizer: Rc<dyn Tokenizer>,
    pub patterns: TokenPatterns,
    pub settings: Settings,
}

/// Finds the kinds of tokenizers.
pub(crate) type FindKind<'f> = &'f dyn Fn(&str) -> Option<Rc<dyn TokenizerKind>>;

/// What is being gathered from the arguments.
#[derive(Default)]
struct Options {
    columns: Vec<Column>,
    prefixes: Vec<usize>,
    tokenize: Option<Vec<String>>,
    content: Option<String>,
    content_rowid: Option<String>,
    contentless_delete: bool,
    contentless_unindexed: bool,
    column_size: Option<bool>,
    detail: Option<Detail>,
    tokendata: bool,
    locale: bool,
}

fn switch(name: &str, value: &str) -> Result<bool> {
    match value {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(Error::sql(format!("malformed {name}=... directive"))),
    }
}

fn once<T>(slot: &mut Option<T>, name: &str, value: T) -> Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::sql(format!("multiple {name}=... directives"))),
    }
}

/// A word or quoted text, whether it is quoted, and the rest.
fn word(text: &str) -> Option<(String, bool, &str)> {
    let text = skip_blanks(text);
    if let Some((s, rest)) = dequote(text) {
        return Some((s, true, rest));
    }
    bareword(text).map(|(w, rest)| (w.to_string(), false, rest))
}

/// `name`, `name option` or `name = value`: the first word, the second, whether there is `=`.
fn argument(text: &str) -> Option<(String, String, bool)> {
    let (first, quoted, rest) = word(text)?;
    let rest = skip_blanks(rest);
    let (rest, option) = match rest.strip_prefix('=') {
        Some(_) if quoted => return None,
        Some(rest) => (skip_blanks(rest), true),
        None => (rest, false),
    };
    if rest.is_empty() {
        return Some((first, String::new(), option));
    }
    let (second, _, rest) = word(rest)?;
    rest.is_empty().then_some((first, second, option))
}

impl Options {
    fn column(&mut self, name: String, option: &str) -> Result<()> {
        if name.eq_ignore_ascii_case("rank") || name.eq_ignore_ascii_case("rowid") {
            return Err(Error::sql(format!("reserved fts5 column name: {name}")));
        }
        let indexed = match option {
            "" => true,
            o if o.eq_ignore_ascii_case("unindexed") => false,
            o => return Err(Error::sql(format!("unrecognized column option: {o}"))),
        };
        self.columns.push(Column { name, indexed });
        Ok(())
    }

    /// An option may be cut short to any beginning of its name.
    fn option(&mut self, name: &str, value: String) -> Result<()> {
        let n = name.to_ascii_lowercase();
        let is = |full: &str| full.starts_with(&n);
        if is("prefix") {
            return self.add_prefixes(&value);
        }
        if is("tokenize") {
            return once(&mut self.tokenize, "tokenize", tokenizer_words(&value)?);
        }
        if is("content") {
            return once(&mut self.content, "content", value);
        }
        if is("contentless_delete") {
            self.contentless_delete = switch("contentless_delete", &value)?;
        } else if is("contentless_unindexed") {
            self.contentless_unindexed = switch("contentless_delete", &value)?;
        } else if is("content_rowid") {
            return once(&mut self.content_rowid, "content_rowid", value);
        } else if is("columnsize") {
            self.column_size = Some(switch("columnsize", &value)?);
        } else if is("locale") {
            self.locale = switch("locale", &value)?;
        } else if is("detail") {
            let v = value.to_ascii_lowercase();
            let known = [("none", Detail::None), ("full", Detail::Full), ("columns", Detail::Column)];
            let found = known.iter().find(|(full, _)| !v.is_empty() && full.starts_with(&v));
            let found = found.ok_or_else(|| Error::sql("malformed detail=... directive"))?;
            self.detail = Some(found.1);
        } else if is("tokendata") {
            self.tokendata = switch("tokendata", &value)?;
        } else {
            return Err(Error::sql(format!("unrecognized option: \"{name}\"")));
        }
        Ok(())
    }

    fn add_prefixes(&mut self, list: &str) -> Result<()> {
        let mut rest = list;
        let mut first = true;
        loop {
            rest = rest.trim_start_matches(' ');
            if let Some(after) = rest.strip_prefix(',').filter(|_| !first) {
                rest = after.trim_start_matches(' ');
            } else if rest.is_empty() {
                return Ok(());
            }
            let digits = rest.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len());
            if digits == 0 {
                return Err(Error::sql("malformed prefix=... directive"));
            }
            if self.prefixes.len() == MAX_PREFIXES {
                return Err(Error::sql(format!("too many prefix indexes (max {MAX_PREFIXES})")));
            }
            match rest[..digits].parse::<usize>() {
                Ok(n @ 1..1000) => self.prefixes.push(n),
                _ => return Err(Error::sql("prefix length out of range (max 999)")),
            }
            rest = &rest[digits..];
            first = false;
        }
    }
}

/// The words of a tokenizer's specification.
fn tokenizer_words(text: &str) -> Result<Vec<String>> {
    let wrong = || Error::sql("parse error in tokenize directive");
    let mut words = Vec::new();
    let mut rest = skip_blanks(text);
    while !rest.is_empty() {
        let (word, after) = match rest.starts_with('\'') {
            true => {
                let closed = rest.len() > 1 && rest.matches('\'').count().is_multiple_of(2);
                dequote(rest).filter(|_| closed || !rest[1..].is_empty()).ok_or_else(wrong)?
            }
            false => bareword(rest).map(|(w, r)| (w.to_string(), r)).ok_or_else(wrong)?,
        };
        words.push(word);
        rest = skip_blanks(after);
    }
    Ok(words)
}

impl Config {
    /// Reads the arguments of `CREATE VIRTUAL TABLE`. An error without a message of its own means that the table cannot be made.
    pub fn parse(database: &str, table: &str, args: &[Box<str>], find: FindKind<'_>) -> Result<Config> {
        if table.eq_ignore_ascii_case("rank") {
            return Err(Error::sql(format!("reserved fts5 table name: {table}")));
        }
        let mut o = Options::default();
        for arg in args.iter().filter(|a| !skip_blanks(a).is_empty()) {
            let (first, second, option) =
                argument(arg).ok_or_else(|| Error::sql(format!("parse error in \"{arg}\"")))?;
            match option {
                true => o.option(&first, second)?,
                false => o.column(first, &second)?,
            }
        }
        let contentless = o.content.as_deref() == Some("");
        if o.contentless_delete && !contentless {
            return Err(Error::sql("contentless_delete=1 requires a contentless table"));
        }
        if o.contentless_delete && o.column_size == Some(false) {
            return Err(Error::sql("contentless_delete=1 is incompatible with columnsize=0"));
        }
        if o.contentless_unindexed && !contentless {
            return Err(Error::sql("contentless_unindexed=1 requires a contentless table"));
        }
        let words = o.tokenize.unwrap_or_default();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (name, rest) = words.split_first().map_or((crate::tokenize::DEFAULT, &[][..]), |(n, r)| (*n, r));
        let kind = find(name).ok_or_else(|| Error::sql(format!("no such tokenizer: {name}")))?;
        let tokenizer = kind.create(rest, find)?;
        let keeps_some = o.contentless_unindexed && o.columns.iter().any(|c| !c.indexed);
        let external = o.content.unwrap_or_default();
        Ok(Config {
            database: database.to_string(),
            table: table.to_string(),
            content: match (contentless, external.is_empty()) {
                (true, _) if keeps_some => Content::Unindexed,
                (true, _) => Content::None,
                (_, true) => Content::Own,
                (_, false) => Content::External,
            },
            columns: o.columns,
            prefixes: o.prefixes,
            external,
            external_rowid: o.content_rowid.unwrap_or_else(|| "rowid".into()),
            detail: o.detail.unwrap_or(Detail::Full),
            column_size: o.column_size.unwrap_or(true),
            contentless_delete: o.contentless_delete,
            tokendata: o.tokendata,
            locale: o.locale,
            patterns: tokenizer.patterns(),
            tokenizer,
            settings: Settings {
                page_size: Cell::new(4050),
                automerge: Cell::new(4),
                usermerge: Cell::new(4),
                crisismerge: Cell::new(16),
                deletemerge: Cell::new(10),
                hash_size: Cell::new(1024 * 1024),
                secure_delete: Cell::new(false),
                insttoken: Cell::new(false),
                version: Cell::new(VERSION),
                rank: RefCell::new(None),
                cookie: Cell::new(0),
            },
        })
    }

    /// The declaration that the engine is given.
    pub fn declaration(&self) -> String {
        let mut columns: Vec<String> = self.columns.iter().map(|c| words::name(&c.name)).collect();
        columns.push(format!("{} HIDDEN", words::name(&self.table)));
        columns.push("rank HIDDEN".into());
        format!("CREATE TABLE x({})", columns.join(", "))
    }

    /// Whether no column's values are kept that are indexed.
    pub fn is_contentless(&self) -> bool {
        matches!(self.content, Content::None | Content::Unindexed)
    }

    /// The name of a table of this one's own, quoted.
    pub fn shadow(&self, suffix: &str) -> String {
        format!("{}.{}", words::name(&self.database), words::name(&format!("{}_{suffix}", self.table)))
    }

    /// Cuts a text into tokens.
    pub fn tokenize(
        &self,
        reason: TokenizeFor,
        text: &[u8],
        locale: Option<&[u8]>,
        sink: &mut iolite_ext::TokenSink<'_>,
    ) -> Result<()> {
        self.tokenizer.tokenize(reason, text, locale, sink)
    }

    /// Sets a setting; `Ok(false)`: it is none, or the value is not one for it.
    pub fn set(&self, key: &str, value: &Value) -> Result<bool> {
        let s = &self.settings;
        let mut numeric = value.clone();
        iolite_value::Affinity::Numeric.apply(&mut numeric)?;
        let number = match numeric {
            Value::Int(n) => Some(n),
            _ => None,
        };
        let n = number.unwrap_or(-1);
        let sized = |cell: &Cell<usize>, ok: bool, n: i64| {
            if ok {
                cell.set(n as usize);
            }
            ok
        };
        Ok(match &*key.to_ascii_lowercase() {
            "pgsz" => sized(&s.page_size, (32..=64 * 1024).contains(&n), n),
            "hashsize" => sized(&s.hash_size, n > 0 && n <= i64::from(i32::MAX), n),
            "automerge" => sized(&s.automerge, (0..=64).contains(&n), if n == 1 { 4 } else { n }),
            "usermerge" => sized(&s.usermerge, (2..=16).contains(&n), n),
            "crisismerge" => {
                let n = n as i32;
                sized(
                    &s.crisismerge,
                    n >= 0,
                    if n <= 1 { 16 } else { i64::from(n).min(MAX_SEGMENTS as i64 - 1) },
                )
            }
            "deletemerge" => {
                let n = number.map_or(-1, |n| i64::from(n as i32));
                sized(
                    &s.deletemerge,
                    true,
                    match n {
                        ..0 => 10,
                        101.. => 0,
                        _ => n,
                    },
                )
            }
            "rank" => match RankCall::parse(&value.text_carried()) {
                Some(call) => {
                    *s.rank.borrow_mut() = Some(call);
                    true
                }
                None => false,
            },
            "secure-delete" | "insttoken" if n < 0 => false,
            "secure-delete" => {
                s.secure_delete.set(n != 0);
                true
            }
            "insttoken" => {
                s.insttoken.set(n != 0);
                true
            }
            _ => false,
        })
    }

    /// Takes the rows of `%_config`.
    pub fn load(&self, rows: &[Vec<Value>], cookie: u32) -> Result<()> {
        let s = &self.settings;
        s.page_size.set(4050);
        s.automerge.set(4);
        s.usermerge.set(4);
        s.crisismerge.set(16);
        s.deletemerge.set(10);
        s.hash_size.set(1024 * 1024);
        s.secure_delete.set(false);
        s.insttoken.set(false);
        *s.rank.borrow_mut() = None;
        let mut version = 0;
        for row in rows {
            let [key, value] = &row[..] else { continue };
            let key = key.text_carried();
            if key.eq_ignore_ascii_case("version") {
                version = value.to_int();
            } else {
                // What is not understood is left alone.
                self.set(&key, value)?;
            }
        }
        if version != VERSION && version != VERSION_SECURE {
            return Err(Error::new(
                Code::Error,
                format!(
                    "invalid fts5 file format (found {version}, expected {VERSION} or {VERSION_SECURE}) - run 'rebuild'"
                ),
            ));
        }
        s.version.set(version);
        s.cookie.set(cookie);
        Ok(())
    }
}

impl RankCall {
    /// `name(arguments)`, the arguments being literals.
    pub fn parse(text: &str) -> Option<RankCall> {
        let (name, rest) = bareword(skip_blanks(text))?;
        let rest = skip_blanks(rest).strip_prefix('(')?;
        let args = skip_blanks(rest);
        let mut rest = args;
        let mut count = 0;
        if let Some(after) = rest.strip_prefix(')') {
            return skip_blanks(after)
                .is_empty()
                .then(|| RankCall { function: name.into(), args: String::new() });
        }
        loop {
            rest = skip_blanks(after_literal(skip_blanks(rest))?);
            count += 1;
            if let Some(after) = rest.strip_prefix(')') {
                let used = args.len() - rest.len();
                let _ = (after, count);
                return Some(RankCall { function: name.into(), args: args[..used].to_string() });
            }
            rest = rest.strip_prefix(',')?;
        }
    }
}

/// What follows a literal of SQL.
fn after_literal(text: &str) -> Option<&str> {
    let b = text.as_bytes();
    match b.first()? {
        b'n' | b'N' => text.get(..4).filter(|w| w.eq_ignore_ascii_case("null")).map(|_| &text[4..]),
        b'x' | b'X' if b.get(1) == Some(&b'\'') => {
            let n = b[2..].iter().position(|c| !c.is_ascii_hexdigit())?;
            (n % 2 == 0 && b[2 + n] == b'\'').then(|| &text[3 + n..])
        }
        b'\'' => {
            let mut at = 1;
            loop {
                match b.get(at)? {
                    b'\'' if b.get(at + 1) == Some(&b'\'') => at += 2,
                    b'\'' => return text.get(at + 1..),
                    _ => at += 1,
                }
            }
        }
        _ => {
            let sign = matches!(b[0], b'+' | b'-') as usize;
            let digits = |from: usize| b[from..].iter().take_while(|c| c.is_ascii_digit()).count();
            let whole = digits(sign);
            let mut at = sign + whole;
            if b.get(at) == Some(&b'.') && b.get(at + 1).is_some_and(u8::is_ascii_digit) {
                at += 1 + digits(at + 1);
            }
            (at > sign).then(|| &text[at..])
        }
    }
}
