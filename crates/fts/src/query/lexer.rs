//! The tokens of a query.

use crate::words::is_bareword;
use iolite_base::{Error, Result};

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Open,
    Close,
    OpenColumns,
    CloseColumns,
    Colon,
    Comma,
    Plus,
    Star,
    Minus,
    Caret,
    And,
    Or,
    Not,
    String,
    End,
}

/// A token with its text, quotes included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lexeme<'q> {
    pub kind: Kind,
    pub text: &'q [u8],
}

impl Lexeme<'_> {
    /// What is answered where this token cannot stand.
    pub fn misplaced(&self) -> Error {
        Error::sql(format!("fts5: syntax error near \"{}\"", String::from_utf8_lossy(self.text)))
    }

    /// The text without quotes.
    pub fn plain(&self) -> Vec<u8> {
        match self.text {
            [b'"', inner @ .., b'"'] => {
                let mut out = Vec::with_capacity(inner.len());
                let mut bytes = inner.iter();
                while let Some(b) = bytes.next() {
                    out.push(*b);
                    if *b == b'"' {
                        bytes.next();
                    }
                }
                out
            }
            plain => plain.to_vec(),
        }
    }
}

/// The next token of a text that ends at a zero byte, and the rest.
pub(super) fn next(text: &[u8]) -> Result<(Lexeme<'_>, &[u8])> {
    let blank = |b: &&u8| matches!(b, b' ' | b'\n' | b'\r' | b'\t');
    let text = &text[text.iter().take_while(blank).count()..];
    let (kind, n) = match text.first() {
        None | Some(0) => (Kind::End, 0),
        Some(b'(') => (Kind::Open, 1),
        Some(b')') => (Kind::Close, 1),
        Some(b'{') => (Kind::OpenColumns, 1),
        Some(b'}') => (Kind::CloseColumns, 1),
        Some(b':') => (Kind::Colon, 1),
        Some(b',') => (Kind::Comma, 1),
        Some(b'+') => (Kind::Plus, 1),
        Some(b'*') => (Kind::Star, 1),
        Some(b'-') => (Kind::Minus, 1),
        Some(b'^') => (Kind::Caret, 1),
        Some(b'"') => {
            let mut at = 1;
            loop {
                match text.get(at) {
                    None | Some(0) => return Err(Error::sql("unterminated string")),
                    Some(b'"') if text.get(at + 1) == Some(&b'"') => at += 2,
                    Some(b'"') => break (Kind::String, at + 1),
                    _ => at += 1,
                }
            }
        }
        Some(b) if is_bareword(*b) => {
            let n = text.iter().take_while(|b| is_bareword(**b)).count();
            let kind = match &text[..n] {
                b"AND" => Kind::And,
                b"OR" => Kind::Or,
                b"NOT" => Kind::Not,
                _ => Kind::String,
            };
            (kind, n)
        }
        Some(_) => return Err(Lexeme { kind: Kind::End, text: &text[..1] }.misplaced()),
    };
    Ok((Lexeme { kind, text: &text[..n] }, &text[n..]))
}
