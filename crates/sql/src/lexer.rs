//! Text to tokens, one at a time, without allocating.
//!
//! What always holds: tokens lie inside the text, in order, on character boundaries (every byte from 0x80 up
//! belongs to an identifier, a quoted text, a comment or a byte order mark). A NUL byte ends the text. Space
//! and comments are skipped. A word is a keyword here even where the grammar will take it for a name; only
//! `WINDOW`, `OVER` and `FILTER` are decided by their neighbours, as the grammar cannot.

use crate::token::{T, find, pack_first, pack_last, pack_word};

/// A token: its kind and its place.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// The kind.
    pub kind: T,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// Classes of bytes.
mod class {
    pub const ILLEGAL: u8 = 0;
    pub const SPACE: u8 = 1;
    pub const WORD: u8 = 2;
    pub const DIGIT: u8 = 3;
    pub const HIGH: u8 = 4;
    pub const OTHER: u8 = 5;
    pub const X: u8 = 6;
}

static CLASS: [u8; 256] = {
    let mut c = [class::ILLEGAL; 256];
    let mut i = 0;
    while i < 256 {
        let b = i as u8;
        c[i] = match b {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0c => class::SPACE,
            b'x' | b'X' => class::X,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => class::WORD,
            b'0'..=b'9' => class::DIGIT,
            0x80.. => class::HIGH,
            b'-' | b'(' | b')' | b';' | b'+' | b'*' | b'/' | b'%' | b'=' | b'<' | b'>' | b'!' | b'|' => {
                class::OTHER
            }
            b',' | b'&' | b'~' | b'\'' | b'"' | b'`' | b'[' | b'.' | b'?' | b'$' | b'@' | b':' | b'#' => {
                class::OTHER
            }
            _ => class::ILLEGAL,
        };
        i += 1;
    }
    c
};

static IDENT: [bool; 256] = {
    let mut c = [false; 256];
    let mut i = 0;
    while i < 256 {
        c[i] = matches!(i as u8, b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'0'..=b'9' | b'$' | 0x80..);
        i += 1;
    }
    c
};

/// Whether the byte may stand inside an identifier.
#[inline(always)]
pub fn is_ident(b: u8) -> bool {
    IDENT[b as usize]
}

/// Whether the byte is white space to SQL.
#[inline(always)]
pub fn is_space(b: u8) -> bool {
    CLASS[b as usize] == class::SPACE
}

/// A place in a text, from which tokens are read.
#[derive(Clone, Copy)]
pub struct Lexer<'a> {
    text: &'a [u8],
    pos: usize,
    /// Kind of the token read last: `OVER` and `FILTER` are keywords only after `)`.
    last: T,
}

/// Where the semicolon behind a statement stands that ends at `from`, or the end of the text.
pub fn semicolon(text: &str, from: usize) -> usize {
    let t = Lexer::new(text.as_bytes(), from).token();
    if t.kind == T::Semi { t.start as usize } else { text.len() }
}

/// The first comment of a text.
pub fn first_comment(text: &str) -> Option<crate::ast::Span> {
    let bytes = text.as_bytes();
    let (mut lexer, mut from) = (Lexer::new(bytes, 0), 0);
    loop {
        let t = lexer.token();
        // Between two tokens there are only space, byte order marks and comments.
        let gap = &bytes[from..t.start as usize];
        if let Some(at) = gap.iter().position(|b| matches!(b, b'-' | b'/')) {
            let start = from + at;
            let rest = &bytes[start..];
            let end = match rest[0] {
                b'-' => memchr::memchr(b'\n', rest).unwrap_or(rest.len()),
                _ => lexer.after_comment(start + 2) - start,
            };
            return Some(crate::ast::Span { start: start as u32, end: (start + end) as u32 });
        }
        if t.kind == T::Eof {
            return None;
        }
        from = t.end as usize;
    }
}

impl<'a> Lexer<'a> {
    /// Starts at byte `pos`.
    pub fn new(text: &'a [u8], pos: usize) -> Lexer<'a> {
        Lexer { text, pos, last: T::Semi }
    }

    #[inline(always)]
    fn at(&self, i: usize) -> u8 {
        match self.text.get(i) {
            Some(&b) => b,
            None => 0,
        }
    }

    /// The next token; at the end of the text [`T::Eof`], as often as asked.
    #[inline]
    pub fn token(&mut self) -> Token {
        let mut t = self.raw();
        if matches!(t.kind, T::Window | T::Over | T::Filter) && !self.stays_keyword(t.kind) {
            t.kind = T::Id;
        }
        self.last = t.kind;
        t
    }

    /// `WINDOW name AS` starts a window clause; `OVER` after `)` and before `(` or a name, and `FILTER`
    /// between `)` and `(`, belong to a call. Elsewhere the three are names.
    #[cold]
    fn stays_keyword(&self, kind: T) -> bool {
        let mut ahead = *self;
        let next = ahead.raw().kind;
        let name = next.is_nm() && next != T::Indexed || matches!(next, T::Window | T::Over);
        match kind {
            T::Window => name && ahead.raw().kind == T::As,
            T::Over => self.last == T::RParen && (next == T::LParen || name),
            _ => self.last == T::RParen && next == T::LParen,
        }
    }

    fn raw(&mut self) -> Token {
        loop {
            while let Some(b' ') = self.text.get(self.pos) {
                self.pos += 1;
            }
            let start = self.pos;
            let b = self.at(start);
            let kind = match CLASS[b as usize] {
                class::SPACE => {
                    self.pos += 1;
                    continue;
                }
                class::HIGH if self.text[start..].starts_with(&[0xef, 0xbb, 0xbf]) => {
                    self.pos += 3;
                    continue;
                }
                class::X if self.at(start + 1) == b'\'' => self.blob(start),
                class::WORD | class::HIGH | class::X => self.word(start),
                class::DIGIT => self.number(start),
                class::OTHER => {
                    let (kind, len) = match b {
                        b'(' => (T::LParen, 1),
                        b')' => (T::RParen, 1),
                        b',' => (T::Comma, 1),
                        b';' => (T::Semi, 1),
                        b'*' => (T::Star, 1),
                        b'+' => (T::Plus, 1),
                        b'%' => (T::Percent, 1),
                        b'&' => (T::Amp, 1),
                        b'~' => (T::Tilde, 1),
                        b'=' => (T::Eq, if self.at(start + 1) == b'=' { 2 } else { 1 }),
                        b'-' => match self.at(start + 1) {
                            b'-' => {
                                let rest = &self.text[start..];
                                let end = memchr::memchr2(b'\n', 0, rest).unwrap_or(rest.len());
                                self.pos = start + end;
                                continue;
                            }
                            b'>' if self.at(start + 2) == b'>' => (T::Arrow2, 3),
                            b'>' => (T::Arrow, 2),
                            _ => (T::Minus, 1),
                        },
                        b'/' => {
                            if self.at(start + 1) == b'*' && self.at(start + 2) != 0 {
                                self.pos = self.after_comment(start + 2);
                                continue;
                            }
                            (T::Slash, 1)
                        }
                        b'<' => match self.at(start + 1) {
                            b'=' => (T::Le, 2),
                            b'>' => (T::Ne, 2),
                            b'<' => (T::Shl, 2),
                            _ => (T::Lt, 1),
                        },
                        b'>' => match self.at(start + 1) {
                            b'=' => (T::Ge, 2),
                            b'>' => (T::Shr, 2),
                            _ => (T::Gt, 1),
                        },
                        b'!' if self.at(start + 1) == b'=' => (T::Ne, 2),
                        b'|' if self.at(start + 1) == b'|' => (T::Concat, 2),
                        b'|' => (T::Pipe, 1),
                        b'.' if !self.at(start + 1).is_ascii_digit() => (T::Dot, 1),
                        b'.' => (self.number(start), 0),
                        b'\'' | b'"' | b'`' => (self.quoted(start, b), 0),
                        b'[' => (self.bracketed(start), 0),
                        b'?' => {
                            self.pos = start + 1;
                            self.skip_digits();
                            (T::Var, 0)
                        }
                        b'$' | b'@' | b':' | b'#' => (self.variable(start), 0),
                        _ => (T::Illegal, 1),
                    };
                    self.pos += len;
                    kind
                }
                _ if b == 0 => {
                    self.pos = start.min(self.text.len());
                    T::Eof
                }
                _ => {
                    self.pos += 1;
                    T::Illegal
                }
            };
            return Token { kind, start: start as u32, end: self.pos as u32 };
        }
    }

    #[inline(always)]
    fn word(&mut self, start: usize) -> T {
        let rest = &self.text[start..];
        let n = rest.iter().position(|&b| !IDENT[b as usize]).unwrap_or(rest.len());
        self.pos = start + n;
        if n == 1 {
            return T::Id;
        }
        let word = &rest[..n];
        // Eight bytes at once, whatever stands beside the word.
        let packed = match (self.text[..self.pos].last_chunk(), rest.first_chunk()) {
            (Some(last), _) => pack_last(*last, n),
            (_, Some(first)) => pack_first(*first, n),
            _ => pack_word(word),
        };
        find(word, packed)
    }

    /// Past the comment whose content starts at `from`; an open comment ends with the text.
    fn after_comment(&self, from: usize) -> usize {
        let rest = &self.text[from..];
        let mut i = 0;
        while let Some(p) = memchr::memchr2(b'*', 0, &rest[i..]) {
            if rest[i + p] == 0 {
                return from + i + p;
            }
            if rest.get(i + p + 1) == Some(&b'/') {
                return from + i + p + 2;
            }
            i += p + 1;
        }
        self.text.len()
    }

    fn skip_digits(&mut self) {
        while self.at(self.pos).is_ascii_digit() {
            self.pos += 1;
        }
    }

    /// Decimal and `0x` numbers. `_` may stand between two digits; any other `_`, and any letter that follows
    /// the number directly, makes the whole an illegal token.
    fn number(&mut self, start: usize) -> T {
        let mut i = start;
        let mut good = true;
        let mut kind = T::Int;
        if self.at(i) == b'0' && self.at(i + 1) | 0x20 == b'x' && self.at(i + 2).is_ascii_hexdigit() {
            i += 2;
            while self.at(i).is_ascii_hexdigit() || self.at(i) == b'_' {
                good &= self.at(i) != b'_' || self.at(i - 1) != b'_' && self.at(i + 1).is_ascii_hexdigit();
                i += 1;
            }
        } else {
            i = self.digits(i, &mut good);
            if self.at(i) == b'.' {
                kind = T::Float;
                i = self.digits(i + 1, &mut good);
            }
            let sign = matches!(self.at(i + 1), b'+' | b'-') as usize;
            if self.at(i) | 0x20 == b'e' && self.at(i + 1 + sign).is_ascii_digit() {
                kind = T::Float;
                i = self.digits(i + 1 + sign, &mut good);
            }
        }
        while is_ident(self.at(i)) {
            good = false;
            i += 1;
        }
        self.pos = i;
        if good { kind } else { T::Illegal }
    }

    fn digits(&self, mut i: usize, good: &mut bool) -> usize {
        while self.at(i).is_ascii_digit() || self.at(i) == b'_' {
            *good &= self.at(i) != b'_'
                || i > 0 && self.at(i - 1).is_ascii_digit() && self.at(i + 1).is_ascii_digit();
            i += 1;
        }
        i
    }

    fn quoted(&mut self, start: usize, quote: u8) -> T {
        let mut i = start + 1;
        loop {
            let Some(p) = memchr::memchr2(quote, 0, &self.text[i..]) else {
                self.pos = self.text.len();
                return T::Illegal;
            };
            i += p;
            if self.text[i] == 0 {
                self.pos = i;
                return T::Illegal;
            }
            if self.at(i + 1) != quote {
                self.pos = i + 1;
                return if quote == b'\'' { T::Str } else { T::Id };
            }
            i += 2;
        }
    }

    fn bracketed(&mut self, start: usize) -> T {
        let rest = &self.text[start..];
        match memchr::memchr2(b']', 0, rest) {
            Some(p) if rest[p] == b']' => {
                self.pos = start + p + 1;
                T::Id
            }
            other => {
                self.pos = start + other.unwrap_or(rest.len());
                T::Illegal
            }
        }
    }

    fn blob(&mut self, start: usize) -> T {
        let mut i = start + 2;
        while self.at(i).is_ascii_hexdigit() {
            i += 1;
        }
        if self.at(i) == b'\'' && (i - start).is_multiple_of(2) {
            self.pos = i + 1;
            return T::Blob;
        }
        while self.at(i) != b'\'' && self.at(i) != 0 {
            i += 1;
        }
        self.pos = if self.at(i) == 0 { i } else { i + 1 };
        T::Illegal
    }

    /// `$name`, `@name`, `:name`, `#name`, each with `::` inside and a suffix in parentheses.
    fn variable(&mut self, start: usize) -> T {
        let mut i = start + 1;
        let mut any = false;
        loop {
            let b = self.at(i);
            if is_ident(b) {
                any = true;
                i += 1;
            } else if b == b'(' && any {
                i += 1;
                while !matches!(self.at(i), 0 | b')') && !is_space(self.at(i)) {
                    i += 1;
                }
                let closed = self.at(i) == b')';
                self.pos = if closed { i + 1 } else { i };
                return if closed { T::Var } else { T::Illegal };
            } else if b == b':' && self.at(i + 1) == b':' {
                i += 2;
            } else {
                break;
            }
        }
        self.pos = i;
        if any { T::Var } else { T::Illegal }
    }
}
