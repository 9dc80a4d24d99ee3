//! Auxiliary functions: what they see of a row, and the built-in ones.

pub(crate) mod bm25;
mod highlight;
mod snippet;

use iolite_base::{Error, Result};
use iolite_ext::{Token, TokenSink};
use iolite_value::Value;
use std::any::Any;
use std::rc::Rc;

/// Where a phrase stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instance {
    /// The phrase's number.
    pub phrase: usize,
    /// The column.
    pub column: i32,
    /// How many tokens stand before it in the column.
    pub offset: i32,
}

/// A column's text, if it is not NULL, and its locale.
pub type Text = (Option<Vec<u8>>, Option<Vec<u8>>);

/// Takes rows one after the other. `Ok(false)`: no more are wanted.
pub type EachRow<'f> = dyn FnMut(&dyn Row) -> Result<bool> + 'f;

/// A row that a query has found, as auxiliary functions see it.
pub trait Row {
    /// How many columns the table has.
    fn column_count(&self) -> usize;
    /// How many rows it has.
    fn row_count(&self) -> Result<i64>;
    /// How many tokens a column has in all rows; below zero: all columns.
    fn column_total(&self, column: i32) -> Result<i64>;
    /// How many phrases the query has.
    fn phrase_count(&self) -> usize;
    /// How many tokens a phrase has.
    fn phrase_size(&self, phrase: usize) -> usize;
    /// The places of all phrases, in the order in which they stand.
    fn instances(&self) -> Result<Rc<Vec<Instance>>>;
    /// The row's id.
    fn rowid(&self) -> i64;
    /// A column's text.
    fn column_text(&self, column: i32) -> Result<Text>;
    /// How many tokens a column has; below zero: all columns.
    fn column_size(&self, column: i32) -> Result<i64>;
    /// How many rows have a phrase.
    fn phrase_rows(&self, phrase: usize) -> Result<i64>;
    /// Calls `each` for all rows that have a phrase, as if the query were that phrase alone, until it answers `false`.
    fn query_phrase(&self, phrase: usize, each: &mut EachRow<'_>) -> Result<()>;
    /// A token of a phrase, as the query has it.
    fn query_token(&self, phrase: usize, token: usize) -> Option<Vec<u8>>;
    /// The token of the row that stands where a token of a phrase was found: `instance` counts [`Row::instances`].
    fn instance_token(&self, instance: usize, token: usize) -> Result<Option<Vec<u8>>>;
    /// Cuts a text into tokens as the table does.
    fn tokenize(&self, text: &[u8], locale: Option<&[u8]>, sink: &mut TokenSink<'_>) -> Result<()>;
    /// What a function has kept for this query.
    fn kept(&self, function: &str) -> Option<Rc<dyn Any>>;
    /// Keeps something for this query.
    fn keep(&self, function: &str, data: Rc<dyn Any>);
    /// Gives up what a function has kept.
    fn give_up(&self, function: &str) -> Option<Rc<dyn Any>>;
}

/// An auxiliary function.
pub trait Auxiliary {
    /// Computes the result; the arguments are those behind the table.
    fn call(&self, row: &dyn Row, args: &[Value]) -> Result<Value>;
    /// Whether it is the built-in `bm25`: rows may be ranked without calling it.
    fn is_bm25(&self) -> bool {
        false
    }
}

struct Builtin(fn(&dyn Row, &[Value]) -> Result<Value>, &'static str);

impl Auxiliary for Builtin {
    fn call(&self, row: &dyn Row, args: &[Value]) -> Result<Value> {
        (self.0)(row, args)
    }

    fn is_bm25(&self) -> bool {
        self.1 == "bm25"
    }
}

/// The names of the built-in functions.
pub(crate) const NAMES: [&str; 4] = ["bm25", "highlight", "snippet", "fts5_get_locale"];

/// The built-in function of this name, in lower case.
pub(crate) fn builtin(name: &str) -> Option<Rc<dyn Auxiliary>> {
    let name = *NAMES.iter().find(|n| **n == name)?;
    let f: fn(&dyn Row, &[Value]) -> Result<Value> = match name {
        "bm25" => bm25::bm25,
        "highlight" => highlight::highlight,
        "snippet" => snippet::snippet,
        "fts5_get_locale" => get_locale,
        _ => return None,
    };
    Some(Rc::new(Builtin(f, name)))
}

fn wrong_count(name: &str) -> Error {
    Error::sql(format!("wrong number of arguments to function {name}()"))
}

fn get_locale(row: &dyn Row, args: &[Value]) -> Result<Value> {
    let [column] = args else { return Err(wrong_count("fts5_get_locale")) };
    let mut numeric = column.clone();
    iolite_value::Affinity::Numeric.apply(&mut numeric)?;
    let Value::Int(n) = numeric else {
        return Err(Error::sql("non-integer argument passed to function fts5_get_locale()"));
    };
    if n < 0 || n >= row.column_count() as i64 {
        return Err(iolite_base::Code::Range.into());
    }
    match row.column_text(n as i32)?.1 {
        Some(l) if !l.is_empty() => Value::text(l),
        _ => Ok(Value::Null),
    }
}

/// An argument as text; NULL is empty.
fn argument(v: &Value) -> Vec<u8> {
    crate::locale::text(v).into_owned()
}

/// The tokens of a text that stand at places of their own.
fn each_token(
    row: &dyn Row,
    text: &[u8],
    locale: Option<&[u8]>,
    mut f: impl FnMut(&Token<'_>),
) -> Result<()> {
    row.tokenize(text, locale, &mut |t| {
        if !t.colocated {
            f(t);
        }
        Ok(true)
    })
}
