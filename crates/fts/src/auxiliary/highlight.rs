//! `highlight`: a column's text with marks around the phrases.

use super::{Instance, Row, argument, each_token, wrong_count};
use iolite_base::{Code, Result};
use iolite_ext::Token;
use iolite_value::Value;

/// Tokens from one to another, both included, that phrases cover.
pub(super) type Span = (i32, i32);

/// What phrases cover in a column; those that overlap are one.
pub(super) fn spans(row: &dyn Row, instances: &[Instance], column: i32) -> Vec<Span> {
    let mut out: Vec<Span> = Vec::new();
    for i in instances.iter().filter(|i| i.column == column) {
        let end = i.offset - 1 + row.phrase_size(i.phrase) as i32;
        match out.last_mut() {
            Some(last) if i.offset <= last.1 => last.1 = last.1.max(end),
            _ => out.push((i.offset, end)),
        }
    }
    out
}

/// Copies a text, putting marks in.
pub(super) struct Marker<'t> {
    text: &'t [u8],
    open: &'t [u8],
    close: &'t [u8],
    spans: std::iter::Peekable<std::vec::IntoIter<Span>>,
    /// The tokens that are copied; none: all.
    window: Option<Span>,
    pub out: Vec<u8>,
    /// How much of the text is copied or left out.
    pub at: usize,
    is_open: bool,
    position: i32,
}

impl<'t> Marker<'t> {
    pub fn new(text: &'t [u8], marks: (&'t [u8], &'t [u8]), spans: Vec<Span>, window: Option<Span>) -> Self {
        Marker {
            text,
            open: marks.0,
            close: marks.1,
            spans: spans.into_iter().peekable(),
            window,
            out: Vec::new(),
            at: 0,
            is_open: false,
            position: 0,
        }
    }

    fn copy_to(&mut self, end: usize) {
        if let Some(part) = self.text.get(self.at..end) {
            self.out.extend_from_slice(part);
        }
        self.at = end;
    }

    fn mark(&mut self, open: bool) {
        self.out.extend_from_slice(if open { self.open } else { self.close });
        self.is_open = open;
    }

    /// Takes the next token.
    pub fn token(&mut self, t: &Token<'_>) {
        let here = self.position;
        self.position += 1;
        if let Some((first, last)) = self.window {
            if here < first || here > last {
                return;
            }
            if first > 0 && here == first {
                self.at = t.start;
            }
        }
        let start = self.spans.peek().map(|s| s.0);
        if self.is_open && start.is_none_or(|s| here <= s) && t.start > self.at {
            self.mark(false);
        }
        if start == Some(here) && !self.is_open {
            self.copy_to(t.start);
            self.mark(true);
        }
        if self.spans.peek().is_some_and(|s| s.1 == here) {
            if !self.is_open {
                // It began before the window.
                self.mark(true);
            }
            self.copy_to(t.end);
            self.spans.next();
        }
        if self.window.is_some_and(|w| w.1 == here) {
            if self.is_open {
                if self.spans.peek().is_some_and(|s| here >= s.0) {
                    self.copy_to(t.end);
                }
                self.mark(false);
            }
            self.copy_to(t.end);
        }
    }

    /// Closes what is open.
    pub fn close(&mut self) {
        if self.is_open {
            self.mark(false);
        }
    }

    /// Copies what is left.
    pub fn rest(&mut self) {
        self.copy_to(self.text.len());
    }
}

pub(super) fn highlight(row: &dyn Row, args: &[Value]) -> Result<Value> {
    let [column, open, close] = args else { return Err(wrong_count("highlight")) };
    let column = column.to_int() as i32;
    let (text, locale) = match row.column_text(column) {
        Err(e) if e.code() == Code::Range => return Value::text(""),
        r => r?,
    };
    let Some(text) = text else { return Ok(Value::Null) };
    let spans = spans(row, &row.instances()?, column);
    let (open, close) = (argument(open), argument(close));
    let mut m = Marker::new(&text, (&open, &close), spans, None);
    each_token(row, &text, locale.as_deref(), |t| m.token(t))?;
    m.close();
    m.rest();
    Value::text(m.out)
}
