//! The query syntax: phrases, prefixes, columns, `NEAR`, `NOT`, `AND`, `OR`, parentheses ("enhanced query syntax").
//!
//! Operators bind in that order; those of the same kind to the left; two phrases without one are joined by `AND`.

use super::evaluate::{Expr, MAX_DEPTH};
use super::{Phrase, Term};
use crate::config::Config;
use iolite_base::{Code, Error, Result};
use iolite_ext::TokenizeFor;

/// How deep parentheses may be.
const MAX_NESTED: usize = 1000;
/// How many tokens may stand between two phrases that are near where the query does not say.
const NEAR: i64 = 10;

/// Operators, those that bind most first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Operator {
    Near(i64),
    Not,
    And,
    Or,
}

impl Operator {
    fn rank(self) -> u8 {
        match self {
            Operator::Near(_) => 0,
            Operator::Not => 1,
            Operator::And => 2,
            Operator::Or => 3,
        }
    }
}

enum Part {
    Operator(Operator),
    Operand(Expr),
    /// Nothing that counts.
    Blank,
    End,
}

struct Parser<'a> {
    config: &'a Config,
    text: &'a [u8],
    at: usize,
    column: Option<usize>,
    nested: i64,
    phrases: Vec<Phrase>,
    /// In which language the text is.
    language: i64,
}

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// Why a query is refused.
enum Refused {
    Malformed,
    Deep,
    Other(Error),
}

impl From<Error> for Refused {
    fn from(e: Error) -> Refused {
        Refused::Other(e)
    }
}

type Parsed<T> = std::result::Result<T, Refused>;

/// Reads a query; its phrases in the order in which they stand, and how they go together, if there are any. `column`: where they
/// have to stand if they do not say it.
pub(crate) fn parse(
    config: &Config,
    column: Option<usize>,
    language: i64,
    text: &[u8],
) -> Result<(Vec<Phrase>, Option<Expr>)> {
    let text = crate::tokenize::visible(text);
    let mut p = Parser { config, text, at: 0, column, language, nested: 0, phrases: Vec::new() };
    let parsed = p.expression().and_then(|e| match p.nested {
        0 => Ok(e),
        _ => Err(Refused::Malformed),
    });
    match parsed {
        Ok(e) => Ok((p.phrases, e)),
        Err(Refused::Malformed) => {
            let text = String::from_utf8_lossy(text);
            Err(Error::sql(format!("malformed MATCH expression: [{text}]")))
        }
        Err(Refused::Deep) => {
            let text = format!("FTS expression tree is too large (maximum depth {MAX_DEPTH})");
            Err(Error::new(Code::Toobig, text))
        }
        Err(Refused::Other(e)) => Err(e),
    }
}

impl Parser<'_> {
    /// Up to the end, or the closing parenthesis.
    fn expression(&mut self) -> Parsed<Option<Expr>> {
        let mut operands: Vec<Expr> = Vec::new();
        let mut operators: Vec<Operator> = Vec::new();
        let mut wanted = true;
        loop {
            match self.part()? {
                Part::End => break,
                Part::Blank => {}
                Part::Operand(e) => {
                    if !wanted {
                        reduce(&mut operands, &mut operators, Operator::And)?;
                        operators.push(Operator::And);
                    }
                    let near = matches!(operators.last(), Some(Operator::Near(_))) && wanted;
                    if near && !matches!(e, Expr::Phrase(_)) {
                        return Err(Refused::Malformed);
                    }
                    operands.push(e);
                    wanted = false;
                }
                Part::Operator(o) => {
                    let phrase = matches!(operands.last(), Some(Expr::Phrase(_)));
                    if wanted || matches!(o, Operator::Near(_)) && !phrase {
                        return Err(Refused::Malformed);
                    }
                    reduce(&mut operands, &mut operators, o)?;
                    operators.push(o);
                    wanted = true;
                }
            }
        }
        if operands.is_empty() {
            return Ok(None);
        }
        if wanted {
            return Err(Refused::Malformed);
        }
        reduce(&mut operands, &mut operators, Operator::Or)?;
        Ok(operands.pop())
    }

    fn part(&mut self) -> Parsed<Part> {
        while self.text.get(self.at).is_some_and(|b| is_space(*b)) {
            self.at += 1;
        }
        let rest = &self.text[self.at..];
        let Some(&first) = rest.first() else { return Ok(Part::End) };
        if let Some((operator, n)) = keyword(rest) {
            self.at += n;
            return Ok(Part::Operator(operator));
        }
        match first {
            b'(' => {
                self.at += 1;
                self.nested += 1;
                if self.nested > MAX_NESTED as i64 {
                    return Err(Refused::Malformed);
                }
                Ok(self.expression()?.map_or(Part::Blank, Part::Operand))
            }
            b')' => {
                self.at += 1;
                self.nested -= 1;
                Ok(Part::End)
            }
            b'"' => {
                let n = rest[1..].iter().position(|b| *b == b'"').ok_or(Refused::Malformed)?;
                self.at += n + 2;
                let terms = self.terms(&rest[1..n + 1], false)?.0;
                Ok(self.phrase(terms, self.column))
            }
            _ => {
                let column = self.config.columns.iter().position(|c| {
                    let name = c.name.as_bytes();
                    rest.get(name.len()) == Some(&b':') && rest[..name.len()].eq_ignore_ascii_case(name)
                });
                if let Some(c) = column {
                    self.at += self.config.columns[c].name.len() + 1;
                }
                let rest = &self.text[self.at..];
                let n = rest.iter().position(|b| matches!(b, b'(' | b')' | b'"')).unwrap_or(rest.len());
                if n == 0 {
                    // A column's name before what is no token ends the query.
                    return Ok(Part::End);
                }
                let (terms, end) = self.terms(&rest[..n], true)?;
                if terms.is_empty() {
                    self.at += n;
                    return Ok(Part::Blank);
                }
                self.at += end;
                Ok(self.phrase(terms, column.or(self.column)))
            }
        }
    }

    fn phrase(&mut self, terms: Vec<Term>, column: Option<usize>) -> Part {
        self.phrases.push(Phrase { terms, column });
        Part::Operand(Expr::Phrase(self.phrases.len() - 1))
    }

    /// The tokens of a text, or the first one, and where the last one ends with its `*`.
    fn terms(&self, text: &[u8], single: bool) -> Result<(Vec<Term>, usize)> {
        let (mut out, mut end) = (Vec::new(), 0);
        self.config.tokenize(TokenizeFor::Query, self.language, text, &mut |t| {
            let prefix = text.get(t.end) == Some(&b'*');
            let caret = t.start > 0 && text[t.start - 1] == b'^';
            let first = caret && (!single || self.config.version == 4);
            out.push(Term { text: t.text.to_vec(), prefix, first });
            end = t.end + prefix as usize;
            Ok(!single)
        })?;
        Ok((out, end))
    }
}

/// The operator at the beginning and its length.
fn keyword(text: &[u8]) -> Option<(Operator, usize)> {
    const KEYWORDS: [(&[u8], Operator); 4] = [
        (b"OR", Operator::Or),
        (b"AND", Operator::And),
        (b"NOT", Operator::Not),
        (b"NEAR", Operator::Near(NEAR)),
    ];
    let (word, mut operator) = *KEYWORDS.iter().find(|k| text.starts_with(k.0))?;
    let mut n = word.len();
    if let Operator::Near(distance) = &mut operator
        && text.get(n) == Some(&b'/')
        && text.get(n + 1).is_some_and(u8::is_ascii_digit)
    {
        n += 1;
        *distance = 0;
        while let Some(d) = text.get(n).filter(|d| d.is_ascii_digit()) {
            *distance = (*distance * 10 + i64::from(d - b'0')).min(0x7fff_ffff);
            n += 1;
        }
    }
    let ends = text.get(n).is_none_or(|b| is_space(*b) || matches!(b, b'"' | b'(' | b')'));
    ends.then_some((operator, n))
}

/// Applies the operators that bind at least as much as the next one.
fn reduce(operands: &mut Vec<Expr>, operators: &mut Vec<Operator>, next: Operator) -> Parsed<()> {
    while let Some(o) = operators.pop_if(|o| o.rank() <= next.rank()) {
        let (Some(right), Some(left)) = (operands.pop(), operands.pop()) else {
            return Err(Refused::Malformed);
        };
        let both = match o {
            Operator::Near(n) => Expr::near(left, right, n).ok_or(Refused::Malformed)?,
            Operator::Not => Expr::Not(Box::new(left), Box::new(right)),
            Operator::And => Expr::all(left, right),
            Operator::Or => Expr::any(left, right),
        };
        if both.depth() > MAX_DEPTH {
            return Err(Refused::Deep);
        }
        operands.push(both);
    }
    Ok(())
}
