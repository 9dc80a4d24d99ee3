//! The tokenizers `simple`, `porter` and `unicode61`, as FTS3 names and sets them.

mod porter;
mod simple;
mod unicode61;

use crate::words;
use iolite_base::{Code, Error, Result};
use iolite_ext::Tokenizer;
use std::rc::Rc;

/// Whether there is a tokenizer of this name.
pub(crate) fn exists(name: &str) -> bool {
    matches!(name, "simple" | "porter" | "unicode61")
}

/// Makes a tokenizer.
pub(crate) fn create(name: &str, args: &[String]) -> Result<Rc<dyn Tokenizer>> {
    let made: Option<Rc<dyn Tokenizer>> = match name {
        "simple" => simple::Simple::new(args).map(|t| Rc::new(t) as _),
        "porter" => Some(Rc::new(porter::Porter)),
        "unicode61" => unicode61::Unicode61::new(args).map(|t| Rc::new(t) as _),
        _ => return Err(Error::sql(format!("unknown tokenizer: {name}"))),
    };
    made.ok_or_else(|| Code::Error.into())
}

/// Makes the tokenizer that a text such as `unicode61 "tokenchars=-"` describes.
pub(crate) fn parse(text: &str) -> Result<Rc<dyn Tokenizer>> {
    let Some((first, mut rest)) = words::word(text) else { return create(text, &[]) };
    let mut args = Vec::new();
    while let Some((word, more)) = words::word(rest) {
        args.push(words::dequote(word));
        rest = more;
    }
    let named = |e: Error| if e.has_message() { e } else { Error::sql("unknown tokenizer") };
    create(&words::dequote(first), &args).map_err(named)
}

/// A text up to its first zero byte: tokenizers see no more of it.
pub(crate) fn visible(text: &[u8]) -> &[u8] {
    match text.iter().position(|b| *b == 0) {
        Some(n) => &text[..n],
        None => text,
    }
}
