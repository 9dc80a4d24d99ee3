//! The tokenizers `simple`, `porter` and `unicode61`, as FTS3 names and sets them.

mod porter;
mod simple;
mod unicode61;

use crate::words;
use iolite_base::{Code, Error, Result};
use iolite_ext::{Host, ScalarFn, Tokenizer, TokenizerKind};
use std::rc::Rc;
use std::sync::OnceLock;

/// By which tokenizers of programs come in, and those of this crate go out.
#[derive(Clone, Copy)]
pub struct TokenizerDoor {
    /// `fts3_tokenizer(name [, pointer])`.
    pub function: ScalarFn,
    /// What the program gave a connection under a name.
    pub find: fn(&dyn Host, &str) -> Option<Rc<dyn TokenizerKind>>,
}

static DOOR: OnceLock<TokenizerDoor> = OnceLock::new();

/// Opens the door of the process. Whoever comes first: there is one.
pub fn set_tokenizer_door(door: TokenizerDoor) {
    let _ = DOOR.set(door);
}

/// The door, if it is open.
pub(crate) fn door() -> Option<&'static TokenizerDoor> {
    DOOR.get()
}

/// Whether this crate has a tokenizer of this name.
pub fn exists(name: &str) -> bool {
    matches!(name, "simple" | "porter" | "unicode61")
}

/// Makes a tokenizer: the program's, if it gave one of this name.
pub(crate) fn create(host: &dyn Host, name: &str, args: &[String]) -> Result<Rc<dyn Tokenizer>> {
    match door().and_then(|d| (d.find)(host, name)) {
        Some(kind) => {
            let args: Vec<&str> = args.iter().map(|a| a.as_str()).collect();
            kind.create(&args, &|_| None)
        }
        None => builtin(name, args),
    }
}

/// Makes one of this crate's tokenizers.
pub fn builtin(name: &str, args: &[String]) -> Result<Rc<dyn Tokenizer>> {
    let made: Option<Rc<dyn Tokenizer>> = match name {
        "simple" => simple::Simple::new(args).map(|t| Rc::new(t) as _),
        "porter" => Some(Rc::new(porter::Porter)),
        "unicode61" => unicode61::Unicode61::new(args).map(|t| Rc::new(t) as _),
        _ => return Err(Error::sql(format!("unknown tokenizer: {name}"))),
    };
    made.ok_or_else(|| Code::Error.into())
}

/// Makes the tokenizer that a text such as `unicode61 "tokenchars=-"` describes.
pub(crate) fn parse(host: &dyn Host, text: &str) -> Result<Rc<dyn Tokenizer>> {
    let Some((first, mut rest)) = words::word(text) else { return create(host, text, &[]) };
    let mut args = Vec::new();
    while let Some((word, more)) = words::word(rest) {
        args.push(words::dequote(word));
        rest = more;
    }
    let named = |e: Error| if e.has_message() { e } else { Error::sql("unknown tokenizer") };
    create(host, &words::dequote(first), &args).map_err(named)
}

/// A text up to its first zero byte: tokenizers see no more of it.
pub(crate) fn visible(text: &[u8]) -> &[u8] {
    match text.iter().position(|b| *b == 0) {
        Some(n) => &text[..n],
        None => text,
    }
}
