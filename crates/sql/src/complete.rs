//! Whether a text ends a statement, as an interactive shell must know (`sqlite3_complete`), and where the first one ends.
//!
//! A semicolon ends a statement, except inside `CREATE TRIGGER`, where only `; END ;` does. Nothing is
//! parsed: states and the tokens that move between them are drawn below.
//!
//! ```text
//! start --EXPLAIN--> explain --CREATE--> create --TEMP--> create --TRIGGER--> trigger
//! start --CREATE--> create        trigger --;--> semi --END--> end --;--> start
//! start, explain, create --anything else--> normal --;--> start
//! ```

use crate::lexer::Lexer;
use crate::token::T;

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Nothing but space so far.
    Empty,
    /// A statement has just ended.
    Start,
    Normal,
    Explain,
    Create,
    Trigger,
    Semi,
    End,
}

impl State {
    /// Where a token leads.
    fn after(self, token: T) -> State {
        let begins = matches!(self, State::Empty | State::Start);
        match (self, token) {
            (State::Trigger | State::Semi, T::Semi) => State::Semi,
            (_, T::Semi) => State::Start,
            (_, T::Explain) if begins => State::Explain,
            (State::Explain, T::Query | T::Plan) => State::Explain,
            (_, T::Create) if begins || self == State::Explain => State::Create,
            (State::Create, T::Temp | T::Temporary) => State::Create,
            (State::Create, T::Trigger) => State::Trigger,
            (State::Semi, T::End) => State::End,
            (State::Trigger | State::Semi | State::End, _) => State::Trigger,
            _ => State::Normal,
        }
    }
}

/// Whether `text` ends with a whole statement: a semicolon, then only space and comments.
pub fn complete(text: &str) -> bool {
    let mut lexer = Lexer::new(text.as_bytes(), 0);
    let mut state = State::Empty;
    let mut prev = 0;
    loop {
        let t = lexer.token();
        let raw = &text[t.start as usize..t.end as usize];
        state = match t.kind {
            T::Eof => return state == State::Start && !open_comment(&text[prev..t.start as usize]),
            // A quote that is still open, or a bracket.
            T::Illegal if t.end as usize == text.len() && raw.starts_with(['\'', '"', '`', '[']) => {
                return false;
            }
            // What stands in parentheses behind a parameter's name is no part of it here.
            T::Var | T::Illegal if raw.contains('(') => {
                let open = raw.find('(').unwrap_or(0);
                lexer = Lexer::new(text.as_bytes(), t.start as usize + open + 1);
                prev = t.start as usize + open + 1;
                state = state.after(T::LParen);
                continue;
            }
            token => state.after(token),
        };
        prev = t.end as usize;
    }
}

/// Where the first statement of a text ends, behind its semicolon. `None`: not in this text. Nothing behind it is looked at: who
/// prepares a script statement by statement goes through it once.
pub fn first_end(text: &[u8]) -> Option<usize> {
    plain_end(text).unwrap_or_else(|| first_end_by_tokens(text))
}

/// The same by bytes alone, for by far the most statements. `None`: only tokens tell.
fn plain_end(text: &[u8]) -> Option<Option<usize>> {
    let begin = text.iter().position(|b| !b.is_ascii_whitespace())?;
    // Triggers hold semicolons; what begins otherwise than with a word is space of some kind.
    if !text[begin].is_ascii_alphabetic() || matches!(text[begin] | 0x20, b'c' | b'e') {
        return None;
    }
    let mut at = begin;
    while let Some(n) = text[at..].iter().position(|b| OTHERS[*b as usize]) {
        at += n;
        let rest = &text[at + 1..];
        let passed = match text[at] {
            b';' => return Some(Some(at + 1)),
            // A doubled quote ends a text and begins another.
            quote @ (b'\'' | b'"' | b'`') => memchr::memchr(quote, rest).map(|n| n + 1),
            b'[' => memchr::memchr(b']', rest).map(|n| n + 1),
            b'-' if rest.first() == Some(&b'-') => memchr::memchr(b'\n', rest).map(|n| n + 1),
            b'/' if rest.first() == Some(&b'*') => memchr::memmem::find(&rest[1..], b"*/").map(|n| n + 3),
            b'-' | b'/' => Some(0),
            // Names of parameters may hold anything in parentheses; a NUL is the end.
            _ => return None,
        };
        match passed {
            Some(n) => at += 1 + n,
            // What is open here is open to the end.
            None => break,
        }
    }
    Some(None)
}

/// The bytes that do not simply stand in a statement.
const OTHERS: [bool; 256] = {
    let mut others = [false; 256];
    let list = b";'\"`[-/$@#:\0";
    let mut i = 0;
    while i < list.len() {
        others[list[i] as usize] = true;
        i += 1;
    }
    others
};

fn first_end_by_tokens(text: &[u8]) -> Option<usize> {
    let mut lexer = Lexer::new(text, 0);
    let mut state = State::Empty;
    loop {
        let t = lexer.token();
        let next = match t.kind {
            T::Eof => return None,
            token => state.after(token),
        };
        if next == State::Start && !matches!(state, State::Empty | State::Start) {
            return Some(t.end as usize);
        }
        state = next;
    }
}

/// Whether the space and comments in `gap` end inside a comment.
fn open_comment(gap: &str) -> bool {
    let mut rest = gap;
    while let Some(p) = rest.find(['-', '/']) {
        rest = &rest[p..];
        rest = match rest.strip_prefix("/*") {
            Some(inside) => match inside.find("*/") {
                Some(p) => &inside[p + 2..],
                None => return true,
            },
            None => &rest[rest.find('\n').unwrap_or(rest.len())..],
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::first_end;

    #[test]
    fn a_statement_ends_behind_its_semicolon() {
        let first = |text: &str| first_end(text.as_bytes()).map(|n| text[..n].to_string());
        let is = |text: &str, want: &str| assert_eq!(first(text).as_deref(), Some(want));
        is("SELECT 1; SELECT 2;", "SELECT 1;");
        is(
            " ; ;; SELECT ';' /* ; */ -- ;\n, \";\", [;], `;` ; x",
            " ; ;; SELECT ';' /* ; */ -- ;\n, \";\", [;], `;` ;",
        );
        let trigger =
            "CREATE TEMP TRIGGER t AFTER INSERT ON x BEGIN SELECT 1; SELECT CASE 1 WHEN 1 THEN 2 END; END;";
        is(&format!("{trigger} SELECT 1;"), trigger);
        is(&format!("EXPLAIN {trigger} SELECT 1;"), &format!("EXPLAIN {trigger}"));
        is(
            "insert into t values('it''s; ', \"a;\", 1 - 2 / 3, x'00') -- ;\n, /* ;' */ [;]; ;",
            "insert into t values('it''s; ', \"a;\", 1 - 2 / 3, x'00') -- ;\n, /* ;' */ [;];",
        );
        is("SELECT $a(;), ?1, :b, @c::d(;); SELECT", "SELECT $a(;), ?1, :b, @c::d(;);");
        is("SELECT 1 /*/ ; */;", "SELECT 1 /*/ ; */;");
        assert_eq!(first("SELECT 1 -- ;"), None);
        assert_eq!(first("SELECT 1 /* ;"), None);
        assert_eq!(first("SELECT 1"), None);
        assert_eq!(first("SELECT 'open ; "), None);
        assert_eq!(first(" ; -- nothing;"), None);
    }
}
