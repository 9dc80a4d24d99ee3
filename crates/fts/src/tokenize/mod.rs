//! The tokenizers that every connection has.

mod ascii;
mod porter;
mod trigram;
mod unicode61;

use iolite_base::{Error, Result};
use iolite_ext::TokenizerKind;
pub(crate) use iolite_tokenize::char_count;
use std::rc::Rc;

/// The tokenizer of a table that names none.
pub(crate) const DEFAULT: &str = "unicode61";

/// The built-in kind of this name.
pub(crate) fn builtin(name: &str) -> Option<Rc<dyn TokenizerKind>> {
    Some(match &*name.to_ascii_lowercase() {
        "unicode61" => Rc::new(unicode61::Kind),
        "ascii" => Rc::new(ascii::Kind),
        "porter" => Rc::new(porter::Kind),
        "trigram" => Rc::new(trigram::Kind),
        _ => return None,
    })
}

/// What is answered to arguments that a tokenizer does not take.
fn refused() -> Error {
    Error::sql("error in tokenizer constructor")
}

/// The options of a tokenizer, in pairs.
fn pairs<'a>(args: &'a [&'a str]) -> Result<impl Iterator<Item = (String, &'a str)>> {
    if !args.len().is_multiple_of(2) {
        return Err(refused());
    }
    Ok(args.chunks(2).map(|p| (p[0].to_ascii_lowercase(), p[1])))
}

/// The length in bytes of the first `n` characters of a token, if it has so many.
pub(crate) fn prefix_len(token: &[u8], n: usize) -> Option<usize> {
    let mut at = 0;
    for _ in 0..n {
        let first = *token.get(at)?;
        at += 1;
        if first >= 0xc0 {
            while at < token.len() && token[at] & 0xc0 == 0x80 {
                at += 1;
            }
        }
    }
    Some(at)
}
