//! Statements that differ in their literals alone: `SELECT a FROM t WHERE id = 5` is `SELECT a FROM t WHERE id = ?` with a value.
//!
//! A program for the second can serve all texts of the first kind: programs that write numbers and texts into their SQL
//! would else have each statement compiled. Only plain forms are told apart: an INSERT or REPLACE of one row of literals,
//! and an UPDATE, DELETE or SELECT of one FROM clause with a WHERE, of whose text the literals behind SET and WHERE are
//! lifted up to the next clause. What always holds: everything but those literals stays as it is, so that names, and results' names, are
//! what they were. Whether the program may serve (a literal can decide how rows are found) is not known here.

use crate::ast::Literal;
use crate::lexer::Lexer;
use crate::parser::{plain_number, unhex, unquote};
use crate::token::T;

/// A statement whose literals were lifted out.
pub struct Lifted {
    /// The text with a parameter in the place of each literal.
    pub text: String,
    /// The literals, and whether a minus sign that was lifted with it stands before.
    pub literals: Vec<(Literal, bool)>,
    /// How many bytes of the given text the statement takes, with its semicolon.
    pub used: usize,
    /// The literals are stored and nothing else: they decide nothing about the program.
    pub stored: bool,
}

/// Lifts the literals out of the first statement of `text`, if it has one of the forms.
pub fn lifted(text: &str) -> Option<Lifted> {
    let mut lexer = Lexer::new(text.as_bytes(), 0);
    match lexer.token().kind {
        T::Insert | T::Replace => row(text, lexer),
        T::Update => conditions(text, lexer, T::Set),
        T::Delete | T::Select => conditions(text, lexer, T::Where),
        _ => None,
    }
}

/// An INSERT of one row of literals.
fn row(text: &str, mut lexer: Lexer<'_>) -> Option<Lifted> {
    // Names, the conflict clause and the list of columns: nothing that computes.
    loop {
        match lexer.token().kind {
            T::Values => break,
            T::LParen | T::RParen | T::Comma | T::Dot | T::Into | T::Or | T::As | T::Str => {}
            T::Select | T::With | T::Default | T::Semi | T::Eof => return None,
            kind if kind.is_nm() => {}
            _ => return None,
        }
    }
    let open = lexer.token();
    if open.kind != T::LParen {
        return None;
    }
    let mut out =
        Lifted { text: text[..open.end as usize].into(), literals: Vec::new(), used: 0, stored: true };
    loop {
        let mut t = lexer.token();
        let negative = t.kind == T::Minus;
        if negative {
            t = lexer.token();
        }
        let raw = &text[t.start as usize..t.end as usize];
        let literal = match t.kind {
            T::Int => Literal::Integer(plain_number(raw)),
            T::Float => Literal::Real(plain_number(raw)),
            T::Str if !negative => Literal::Text(unquote(raw)),
            T::Blob if !negative => Literal::Blob(unhex(raw)),
            T::Null if !negative => Literal::Null,
            _ => return None,
        };
        out.literals.push((literal, negative));
        match lexer.token().kind {
            T::Comma => out.text.push_str("?,"),
            T::RParen => break,
            _ => return None,
        }
    }
    out.text.push_str("?)");
    let end = lexer.token();
    out.used = end.end as usize;
    matches!(end.kind, T::Semi | T::Eof).then_some(out)
}

/// A statement over one FROM clause: the literals from the first `from` to the end of its conditions are lifted.
fn conditions(text: &str, mut lexer: Lexer<'_>, from: T) -> Option<Lifted> {
    let mut out = Lifted { text: String::new(), literals: Vec::new(), used: 0, stored: false };
    let (mut copied, mut seen, mut filtered, mut over) = (0, false, false, false);
    // A pattern decides by its beginning how rows are found.
    let mut pattern = false;
    loop {
        let t = lexer.token();
        let (start, end) = (t.start as usize, t.end as usize);
        let literal = match t.kind {
            T::Semi | T::Eof => {
                out.used = end;
                out.text.push_str(&text[copied..start]);
                return (filtered && !out.literals.is_empty()).then_some(out);
            }
            // More than one query.
            T::Select | T::With | T::Union | T::Except | T::Intersect | T::Var | T::Illegal => return None,
            // Numbers behind these are places and counts.
            T::Order | T::Group | T::Having | T::Limit | T::Returning | T::Window => {
                (seen, over) = (false, true);
                continue;
            }
            T::Like | T::Glob | T::Match | T::Regexp => {
                pattern = true;
                continue;
            }
            T::Int | T::Float | T::Str | T::Blob if pattern => {
                pattern = false;
                continue;
            }
            T::Int if seen => Literal::Integer(plain_number(&text[start..end])),
            T::Float if seen => Literal::Real(plain_number(&text[start..end])),
            T::Str if seen => Literal::Text(unquote(&text[start..end])),
            T::Blob if seen => Literal::Blob(unhex(&text[start..end])),
            kind => {
                seen |= kind == from && !over;
                filtered |= kind == T::Where;
                continue;
            }
        };
        // With its sign it may be an integer that it is not without, or none.
        let hex = text.as_bytes().get(start + 1).is_some_and(|b| b | 0x20 == b'x');
        if matches!(&literal, Literal::Integer(digits) if digits.len() > 18 || hex) {
            return None;
        }
        out.literals.push((literal, false));
        out.text.push_str(&text[copied..start]);
        out.text.push('?');
        copied = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart(text: &str) -> String {
        let shown = |l: &Lifted| {
            let list = l.literals.iter().map(|(l, minus)| format!("{}{l:?}", if *minus { "-" } else { "" }));
            list.collect::<Vec<_>>().join(" ")
        };
        lifted(text).map_or("no".into(), |l| format!("{} | {} | {}", l.text, l.used, shown(&l)))
    }

    #[test]
    fn rows_of_literals_are_lifted() {
        assert_eq!(
            apart("INSERT INTO t VALUES(1, -2.5, 'it''s', x'0aff', NULL); SELECT 1"),
            "INSERT INTO t VALUES(?,?,?,?,?) | 54 | Integer(\"1\") -Real(\"2.5\") Text(\"it's\") Blob([10, 255]) Null"
        );
        assert_eq!(
            apart("replace into \"a b\".t(x, y) values (1,2)"),
            "replace into \"a b\".t(x, y) values (?,?) | 39 | Integer(\"1\") Integer(\"2\")"
        );
        assert!(apart("INSERT OR IGNORE INTO main.t AS u (a) VALUES (1)").ends_with(" | Integer(\"1\")"));
        assert!(apart("INSERT OR REPLACE INTO t VALUES (1)").ends_with(" | Integer(\"1\")"));
    }

    #[test]
    fn conditions_are_lifted() {
        assert_eq!(
            apart("SELECT a, 5 FROM t WHERE id = 7 AND b <> 'x';"),
            "SELECT a, 5 FROM t WHERE id = ? AND b <> ? | 45 | Integer(\"7\") Text(\"x\")"
        );
        assert_eq!(
            apart("UPDATE t SET a = a + 1, b = -2.5 WHERE id = x'01'"),
            "UPDATE t SET a = a + ?, b = -? WHERE id = ? | 49 | Integer(\"1\") Real(\"2.5\") Blob([1])"
        );
        assert_eq!(apart("DELETE FROM t WHERE id=1"), "DELETE FROM t WHERE id=? | 24 | Integer(\"1\")");
        assert_eq!(
            apart(
                "SELECT a FROM t JOIN u ON u.x = 5 WHERE t.id = 1 GROUP BY 1 HAVING a > 2 ORDER BY 1 LIMIT 3"
            ),
            "SELECT a FROM t JOIN u ON u.x = 5 WHERE t.id = ? GROUP BY 1 HAVING a > 2 ORDER BY 1 LIMIT 3 | 91 | Integer(\"1\")"
        );
        assert_eq!(
            apart("SELECT a FROM t WHERE b LIKE 'x%' AND c = 'y' AND d GLOB '*'"),
            "SELECT a FROM t WHERE b LIKE 'x%' AND c = ? AND d GLOB '*' | 60 | Text(\"y\")"
        );
        assert_eq!(
            apart("UPDATE t SET a = 7 WHERE id = 1 RETURNING 5"),
            "UPDATE t SET a = ? WHERE id = ? RETURNING 5 | 43 | Integer(\"7\") Integer(\"1\")"
        );
    }

    #[test]
    fn other_statements_are_left_alone() {
        for text in [
            "INSERT INTO t VALUES (1 + 1)",
            "INSERT INTO t VALUES (1), (2)",
            "INSERT INTO t VALUES (?1, 2)",
            "INSERT INTO t VALUES (\"a\")",
            "INSERT INTO t VALUES (true)",
            "INSERT INTO t VALUES (current_time)",
            "INSERT INTO t VALUES (1) RETURNING a",
            "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING",
            "INSERT INTO t SELECT 1",
            "INSERT INTO t DEFAULT VALUES",
            "INSERT INTO t VALUES (1",
            "INSERT INTO t VALUES ()",
            "INSERT INTO t VALUES (- - 1)",
            "INSERT INTO t VALUES ('a' 'b')",
            "WITH c AS (SELECT 1) INSERT INTO t VALUES (1)",
            "EXPLAIN INSERT INTO t VALUES (1)",
            "SELECT 1",
            "SELECT a FROM t WHERE id = ?",
            "SELECT a FROM t WHERE id = 1 AND b = :b",
            "SELECT a FROM t WHERE id = (SELECT 1)",
            "SELECT a FROM t WHERE id = 1 UNION SELECT 2",
            "SELECT a FROM t WHERE id = NULL",
            "SELECT a FROM t WHERE id = -9223372036854775808",
            "UPDATE t SET a = -0x8000000000000000 WHERE id = 1",
            "UPDATE t SET a = 1",
            "DELETE FROM t",
            "",
        ] {
            assert_eq!(apart(text), "no", "{text}");
        }
    }
}
