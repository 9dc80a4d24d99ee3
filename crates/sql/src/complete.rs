//! Whether a text ends a statement, as an interactive shell must know (`sqlite3_complete`).
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

/// Whether `text` ends with a whole statement: a semicolon, then only space and comments.
pub fn complete(text: &str) -> bool {
    let mut lexer = Lexer::new(text.as_bytes(), 0);
    let mut state = State::Empty;
    let mut prev = 0;
    loop {
        let t = lexer.token();
        let raw = &text[t.start as usize..t.end as usize];
        let begins = matches!(state, State::Empty | State::Start);
        state = match (state, t.kind) {
            (_, T::Eof) => return state == State::Start && !open_comment(&text[prev..t.start as usize]),
            // A quote that is still open, or a bracket.
            (_, T::Illegal) if t.end as usize == text.len() && raw.starts_with(['\'', '"', '`', '[']) => {
                return false;
            }
            (State::Trigger, T::Semi) => State::Semi,
            (State::Semi, T::Semi) => State::Semi,
            (_, T::Semi) => State::Start,
            (_, T::Explain) if begins => State::Explain,
            (State::Explain, T::Query | T::Plan) => State::Explain,
            (_, T::Create) if begins || state == State::Explain => State::Create,
            (State::Create, T::Temp | T::Temporary) => State::Create,
            (State::Create, T::Trigger) => State::Trigger,
            (State::Semi, T::End) => State::End,
            (State::Trigger | State::Semi | State::End, _) => State::Trigger,
            _ => State::Normal,
        };
        prev = t.end as usize;
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
