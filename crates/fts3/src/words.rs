//! Words of the arguments: identifiers, quoted texts, numbers; names and texts quoted for SQL.

/// Whether a byte belongs to identifiers.
fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$') || b >= 0x80
}

/// Whether a byte goes on with a keyword before it.
pub(crate) fn goes_on(b: Option<&u8>) -> bool {
    b.is_some_and(|b| is_word(*b))
}

fn closing(quote: u8) -> Option<char> {
    match quote {
        b'[' => Some(']'),
        b'\'' | b'"' | b'`' => Some(quote as char),
        _ => None,
    }
}

/// The first word, with its quotes, and the rest. What is neither word nor quote is skipped.
pub(crate) fn word(text: &str) -> Option<(&str, &str)> {
    let b = text.as_bytes();
    let mut at = 0;
    while at < b.len() {
        if let Some(end) = closing(b[at]) {
            let mut to = at + 1;
            while to < b.len() {
                if b[to] == end as u8 {
                    if end == ']' || b.get(to + 1) != Some(&(end as u8)) {
                        to += 1;
                        break;
                    }
                    to += 1;
                }
                to += 1;
            }
            let to = to.min(b.len());
            return Some((&text[at..to], &text[to..]));
        }
        if is_word(b[at]) {
            let n = b[at..].iter().take_while(|c| is_word(**c)).count();
            return Some((&text[at..at + n], &text[at + n..]));
        }
        at += 1;
    }
    None
}

/// A text without the quotes that it begins with; what stands behind them is lost.
pub(crate) fn dequote(text: &str) -> String {
    let Some(end) = text.as_bytes().first().and_then(|b| closing(*b)) else { return text.to_string() };
    let mut out = String::new();
    let mut rest = &text[1..];
    loop {
        let Some(at) = rest.find(end) else {
            out.push_str(rest);
            return out;
        };
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if end == ']' || !rest.starts_with(end) {
            return out;
        }
        out.push(end);
        rest = &rest[1..];
    }
}

/// The number at the beginning, and the rest; no digits: 0.
pub(crate) fn number(text: &str) -> (i64, &str) {
    let n = text.bytes().take_while(u8::is_ascii_digit).count();
    let value = text[..n].bytes().fold(0i64, |v, d| (v * 10 + i64::from(d - b'0')).min(0x7fff_ffff));
    (value, &text[n..])
}

/// A text as SQL's literal.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A name as SQL quotes it.
pub(crate) fn name(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
