//! A statement's text without what differs from run to run: `sqlite3_normalized_sql`.
//!
//! Literals and parameters become `?`, and what is looked up in a list of values `IN(?,?,?)`, however many there are. Keywords are in
//! capitals, names in small letters and without quotes that they do not need; comments go, and space stays only between words.
//! NULL behind IS is no literal. What it does not know: whether a word in double quotes names something; it counts as a name.

use crate::lexer::{Lexer, is_ident};
use crate::token::T;

/// The first statement of a text, normalized, with a semicolon behind it.
pub fn normalized(text: &str) -> String {
    let text = text.as_bytes();
    let mut lexer = Lexer::new(text, 0);
    let mut out: Vec<u8> = Vec::with_capacity(text.len() + 1);
    let mut before = T::Semi;
    // Where lists behind IN began, and how deep in parentheses.
    let mut lists: Vec<(usize, usize)> = Vec::new();
    let mut depth = 0usize;
    loop {
        let t = lexer.token();
        let token = &text[t.start as usize..t.end as usize];
        match t.kind {
            T::Eof | T::Semi => break,
            T::Null if !matches!(before, T::Is | T::Not) => put(&mut out, b"?"),
            T::Int | T::Float | T::Str | T::Blob | T::Var => put(&mut out, b"?"),
            T::LParen => {
                depth += 1;
                put(&mut out, token);
                if before == T::In {
                    lists.push((out.len(), depth));
                }
            }
            T::RParen => {
                if let Some(&(start, d)) = lists.last()
                    && d == depth
                {
                    lists.pop();
                    if !out[start..].starts_with(b"SELECT") && !out[start..].starts_with(b"WITH") {
                        out.truncate(start);
                        out.extend(b"?,?,?");
                    }
                }
                depth = depth.saturating_sub(1);
                put(&mut out, token);
            }
            T::Id => put_name(&mut out, token),
            _ => put(&mut out, &token.to_ascii_uppercase()),
        }
        before = t.kind;
    }
    out.push(b';');
    String::from_utf8(out).unwrap_or_default()
}

/// A token; a space before it where two words meet.
fn put(out: &mut Vec<u8>, token: &[u8]) {
    if out.last().is_some_and(|b| is_ident(*b)) && token.first().is_some_and(|b| is_ident(*b)) {
        out.push(b' ');
    }
    out.extend(token);
}

fn put_name(out: &mut Vec<u8>, token: &[u8]) {
    let quote = token.first().copied().filter(|b| matches!(b, b'"' | b'`' | b'['));
    let Some(quote) = quote else { return put(out, &token.to_ascii_lowercase()) };
    let end = if quote == b'[' { b']' } else { quote };
    let inner = &token[1..token.len().max(2) - 1];
    let plain = !inner.is_empty()
        && inner.iter().all(|b| is_ident(*b))
        && !inner[0].is_ascii_digit()
        && !std::str::from_utf8(inner).is_ok_and(crate::is_keyword);
    if plain {
        return put(out, &inner.to_ascii_lowercase());
    }
    let mut at = 0;
    out.push(b'"');
    while let Some(&b) = inner.get(at) {
        // A quote stands doubled: once in the name, and again doubled here if it is the one that is written.
        at += 1 + (b == end && quote != b'[') as usize;
        out.extend(std::iter::repeat_n(b.to_ascii_lowercase(), 1 + (b == b'"') as usize));
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::normalized;

    #[test]
    fn what_differs_from_run_to_run_goes() {
        for (text, expected) in [
            ("SELECT 1", "SELECT?;"),
            (
                "select A , 'x'||b from T1 where a=5 and b in (1,2,3)  -- five\n",
                "SELECT a,?||b FROM t1 WHERE a=?AND b IN(?,?,?);",
            ),
            (
                "SELECT * FROM t WHERE a IN (SELECT x FROM u WHERE y IN (1,(2),3+4))",
                "SELECT*FROM t WHERE a IN(SELECT x FROM u WHERE y IN(?,?,?));",
            ),
            (
                "SELECT a FROM t WHERE b IS NOT NULL AND a=NULL",
                "SELECT a FROM t WHERE b IS NOT NULL AND a=?;",
            ),
            ("INSERT INTO t VALUES(-2.5,x'ab',:p)", "INSERT INTO t VALUES(-?,?,?);"),
            (
                "SELECT \"c d\", \"A\", [b], `select`, \"x\"\"y\" FROM t",
                "SELECT\"c d\",a,b,\"select\",\"x\"\"y\"FROM t;",
            ),
            ("SELECT a/*c*/FROM t; SELECT 2", "SELECT a FROM t;"),
            (
                "SELECT a FROM t WHERE a IN () LIMIT 5 OFFSET 2",
                "SELECT a FROM t WHERE a IN(?,?,?)LIMIT?OFFSET?;",
            ),
        ] {
            assert_eq!(normalized(text), expected);
        }
    }
}
