//! Edits of a definition's text: places, and what comes in their stead.

use iolite_sql::ast::Span;
use iolite_sql::lexer::Lexer;
use iolite_sql::token::T;

/// A replacement in a text.
pub(super) type Edit = (Span, String);

pub(super) fn apply(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|e| e.0.start);
    edits.dedup_by_key(|e| e.0.start);
    let mut out = String::with_capacity(text.len() + 16);
    let mut at = 0;
    for (span, new) in edits {
        // Those that are cut out one behind the other share what lies between them.
        out.push_str(&text[at..(span.start as usize).max(at)]);
        out.push_str(&new);
        at = at.max(span.end as usize);
    }
    out.push_str(&text[at..]);
    out
}

/// Where the token begins that follows: what is added stands before it, behind space and comments.
pub(super) fn next_token(text: &str, end: u32) -> u32 {
    Lexer::new(text.as_bytes(), end as usize).token().start
}

/// Takes a span of a definition out, with the space and the comments around it; of two commas that meet, the first goes, too.
pub(super) fn cut(text: &str, span: Span) -> Edit {
    let next = Lexer::new(text.as_bytes(), span.end as usize).token();
    let mut tokens = Lexer::new(text.as_bytes(), 0);
    let mut before = tokens.token();
    loop {
        let t = tokens.token();
        if t.start >= span.start {
            break;
        }
        before = t;
    }
    let ends = matches!(next.kind, T::Comma | T::RParen);
    let start = if ends && before.kind == T::Comma { before.start } else { before.end };
    let space = if ends || start < before.end { "" } else { " " };
    (Span { start, end: next.start.max(span.end) }, space.into())
}

/// A name as it is meant.
pub(super) fn unquoted(raw: &str) -> String {
    let (open, close) = match raw.as_bytes().first() {
        Some(b'[') => ('[', ']'),
        Some(q @ (b'"' | b'\'' | b'`')) => (*q as char, *q as char),
        _ => return raw.into(),
    };
    let inner = raw.strip_prefix(open).and_then(|r| r.strip_suffix(close)).unwrap_or(raw);
    if open == '[' { inner.into() } else { inner.replace(&format!("{close}{close}"), &close.to_string()) }
}

/// How many bytes of blanks and comments a text begins with.
pub(super) fn blanks(text: &str) -> usize {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\n', '\t', '\r', '\x0c']);
        let ends = if rest.starts_with("--") { "\n" } else { "*/" };
        if !rest.starts_with("--") && !rest.starts_with("/*") {
            return text.len() - rest.len();
        }
        rest = rest[2..].split_once(ends).map_or("", |r| r.1);
    }
}
