//! Words of FTS5's small languages: barewords, quoted strings, names quoted for SQL.

/// Whether a byte belongs to barewords.
pub(crate) fn is_bareword(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == 0x1a || b >= 0x80
}

/// A text without the blanks that it begins with.
pub(crate) fn skip_blanks(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\r'])
}

/// The closing quote for an opening one.
fn closing(quote: u8) -> Option<u8> {
    match quote {
        b'[' => Some(b']'),
        b'\'' | b'"' | b'`' => Some(quote),
        _ => None,
    }
}

/// The quoted text at the beginning, without quotes, and the rest; a missing closing quote is the end. `None`: nothing is quoted.
pub(crate) fn dequote(text: &str) -> Option<(String, &str)> {
    let quote = *text.as_bytes().first()?;
    let end = closing(quote)? as char;
    let mut out = String::new();
    let mut rest = &text[1..];
    loop {
        let Some(at) = rest.find(end) else {
            out.push_str(rest);
            return Some((out, ""));
        };
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if end == ']' || !rest.starts_with(end) {
            return Some((out, rest));
        }
        out.push(end);
        rest = &rest[1..];
    }
}

/// The bareword at the beginning and the rest.
pub(crate) fn bareword(text: &str) -> Option<(&str, &str)> {
    let n = text.bytes().position(|b| !is_bareword(b)).unwrap_or(text.len());
    (n > 0).then(|| text.split_at(n))
}

/// A text as SQL's literal.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A name as SQL quotes it.
pub(crate) fn name(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
