//! Names as SQL quotes them, the first token of a module's argument, reals as texts.

use iolite_base::Result;
use iolite_value::Value;

/// A name as SQL quotes it.
pub(crate) fn name(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// A table of a database, both quoted.
pub(crate) fn table(database: &str, table: &str) -> String {
    format!("{}.{}", name(database), name(table))
}

fn closing(quote: u8) -> Option<u8> {
    match quote {
        b'[' => Some(b']'),
        b'\'' | b'"' | b'`' => Some(quote),
        _ => None,
    }
}

/// The first token of an argument: a name with its quotes, or one character.
pub(crate) fn first_token(text: &str) -> &str {
    let b = text.as_bytes();
    let Some(&first) = b.first() else { return "" };
    if let Some(end) = closing(first) {
        let mut at = 1;
        while at < b.len() {
            if b[at] == end {
                if end != b']' && b.get(at + 1) == Some(&end) {
                    at += 1;
                } else {
                    return &text[..=at];
                }
            }
            at += 1;
        }
        return text;
    }
    let is_name = |c: &u8| c.is_ascii_alphanumeric() || matches!(*c, b'_' | b'$') || *c >= 0x80;
    let n = b.iter().take_while(|c| is_name(c)).count();
    if n > 0 { &text[..n] } else { &text[..1] }
}

/// A token without its quotes.
pub(crate) fn plain(token: &str) -> String {
    let Some(end) = token.bytes().next().and_then(closing) else { return token.to_string() };
    let inner = token[1..].strip_suffix(end as char).unwrap_or(&token[1..]);
    if end == b']' {
        return inner.to_string();
    }
    let end = end as char;
    inner.replace(&format!("{end}{end}"), &end.to_string())
}

/// A real as `%g`, or as `%!g` where its being a real shall show.
pub(crate) fn real_text(format: &str, r: f64) -> Result<String> {
    let text = iolite_func::printf::format(format.as_bytes(), &[Value::real(r)], 1000)?;
    Ok(String::from_utf8_lossy(&text.unwrap_or_default()).into_owned())
}
