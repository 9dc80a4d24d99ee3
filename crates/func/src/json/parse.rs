//! JSON text, JSON5 included, to JSONB. Iterative: containers still open are in a list.

use super::blob::{MAX_DEPTH, kind};
use super::writer::Writer;

/// Parsed text.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub blob: Vec<u8>,
    /// The text used JSON5's liberties.
    pub json5: bool,
}

/// What is wrong with a text.
enum Wrong {
    /// The text at this offset.
    At(usize),
    /// A colon or a label was due at this offset.
    Other(usize),
}

impl From<usize> for Wrong {
    fn from(i: usize) -> Wrong {
        Wrong::At(i)
    }
}

/// Parses a text; an error is the offset of what is wrong.
pub(crate) fn parse(text: &[u8]) -> Result<Parsed, usize> {
    let mut blob = Vec::new();
    let mut p = Parser { z: text, out: Writer::new(&mut blob, text.len() + 8), json5: false, last_end: 0 };
    let mut at = 0;
    loop {
        match p.value(at) {
            Ok(end) if at == 0 => {
                let end = p.skip(end);
                if end < text.len() {
                    return Err(p.last_end);
                }
                let json5 = p.json5;
                p.out.end();
                return Ok(Parsed { blob, json5 });
            }
            Ok(_) => return Err(at),
            Err(Wrong::At(i)) => return Err(i),
            // What stands there instead is read as a value, and may be wrong further on: that offset is told.
            Err(Wrong::Other(i)) if i == at => return Err(i),
            Err(Wrong::Other(i)) => at = i,
        }
    }
}

impl Parser<'_> {
    /// Parses one value from `i` on; answers where it ends.
    fn value(&mut self, mut i: usize) -> Result<usize, Wrong> {
        let p = self;
        let begin = i;
        // The containers that are open, and whether the innermost is an object and nothing of it was read yet.
        let mut open: Vec<usize> = Vec::with_capacity(8);
        let (mut object, mut first) = (false, false);
        'next: loop {
            'item: {
                if object {
                    // A label, or the object's end.
                    i = p.skip(i);
                    if p.at(i) == b'}' {
                        i = p.early_end(i, first);
                        object = p.end(&mut open);
                        break 'item;
                    }
                    i = p.label(i)?;
                    i = p.skip(i);
                    if p.at(i) != b':' {
                        return Err(Wrong::Other(i));
                    }
                    i += 1;
                }
                let due = i;
                i = p.skip(i);
                let c = p.at(i);
                match c {
                    b'[' | b'{' => {
                        if open.len() >= MAX_DEPTH {
                            return Err(Wrong::At(i));
                        }
                        object = c == b'{';
                        open.push(p.out.open(if object { kind::OBJECT } else { kind::ARRAY }));
                        first = true;
                        i += 1;
                        continue 'next;
                    }
                    b']' if !object && !open.is_empty() => {
                        i = p.early_end(i, first);
                        object = p.end(&mut open);
                    }
                    0 | b',' | b':' | b']' | b'}' => {
                        let nothing_read = begin == 0 && open.is_empty();
                        return Err(Wrong::At(match (nothing_read, c) {
                            (true, 0) => 0,
                            (true, _) => i,
                            (false, _) => due,
                        }));
                    }
                    _ => i = p.scalar(i, c)?,
                }
            }
            // A comma, or the ends of containers.
            loop {
                if open.is_empty() {
                    return Ok(i);
                }
                let due = i;
                i = p.skip(i);
                match p.at(i) {
                    b',' => break,
                    b'}' if object => {}
                    b']' if !object => {}
                    _ => return Err(Wrong::At(p.plain(due))),
                }
                i += 1;
                object = p.end(&mut open);
            }
            i += 1;
            first = false;
        }
    }
}

struct Parser<'a> {
    z: &'a [u8],
    out: Writer<'a>,
    json5: bool,
    /// Where the last container ended that did so right behind its start or a comma. That offset is told where text
    /// follows the whole value: an oddity of SQLite's.
    last_end: usize,
}

impl Parser<'_> {
    #[inline]
    fn at(&self, i: usize) -> u8 {
        self.z.get(i).copied().unwrap_or(0)
    }

    /// Closes the innermost container; answers whether the one around it is an object.
    #[inline(always)]
    fn end(&mut self, open: &mut Vec<usize>) -> bool {
        if let Some(start) = open.pop() {
            self.out.close(start);
        }
        open.last().is_some_and(|&o| self.out.kind_at(o) == kind::OBJECT)
    }

    /// A container ends at `i` where an element was due: right behind its start, if `first`, or behind a comma. Answers what follows.
    fn early_end(&mut self, i: usize, first: bool) -> usize {
        self.json5 |= !first;
        self.last_end = i;
        i + 1
    }

    /// Past the white space of JSON.
    #[inline]
    fn plain(&self, mut i: usize) -> usize {
        while matches!(self.at(i), b' ' | b'\t' | b'\n' | b'\r') {
            i += 1;
        }
        i
    }

    /// Past white space; JSON5 knows more kinds of it, and comments.
    #[inline(always)]
    fn skip(&mut self, i: usize) -> usize {
        // Mostly there is none.
        match self.at(i) {
            b'!'..=b'.' | b'0'..=0x7f => i,
            _ => self.skip_some(i),
        }
    }

    #[inline(never)]
    fn skip_some(&mut self, i: usize) -> usize {
        let mut i = self.plain(i);
        if matches!(self.at(i), b'/' | 0x0b | 0x0c | 0xc2 | 0xe1 | 0xe2 | 0xe3 | 0xef) {
            let n = space5(&self.z[i..]);
            self.json5 |= n > 0;
            i += n;
        }
        i
    }

    /// A value that is no container and begins with `c`; answers where it ends.
    #[inline(always)]
    fn scalar(&mut self, i: usize, c: u8) -> Result<usize, usize> {
        match c {
            b'"' => self.plain_string(i),
            b'1'..=b'9' => self.plain_integer(i),
            b'\'' => self.string(i, i + 1),
            b'-' | b'+' | b'0' | b'.' => self.number(i),
            _ => self.word(i),
        }
    }

    /// Digits, if that is all of the number.
    #[inline(always)]
    fn plain_integer(&mut self, i: usize) -> Result<usize, usize> {
        let mut j = i + 1;
        while self.at(j).is_ascii_digit() {
            j += 1;
        }
        if matches!(self.at(j), b'.' | b'e' | b'E') {
            return self.number(i);
        }
        self.out.element(kind::INT, self.z, i, j);
        Ok(j)
    }

    /// A string between double quotes, if it has no escape.
    #[inline(always)]
    fn plain_string(&mut self, i: usize) -> Result<usize, usize> {
        let j = i + 1 + plain_bytes(&self.z[i + 1..]);
        if self.at(j) != b'"' {
            return self.string(i, j);
        }
        self.out.element(kind::TEXT, self.z, i + 1, j);
        Ok(j + 1)
    }

    /// `true`, `false`, `null`, and JSON5's numbers that are words.
    fn word(&mut self, i: usize) -> Result<usize, usize> {
        const WORDS: [(&[u8], u8); 3] =
            [(b"true", kind::TRUE), (b"false", kind::FALSE), (b"null", kind::NULL)];
        for (word, k) in WORDS {
            if self.z[i..].starts_with(word) && !self.at(i + word.len()).is_ascii_alphanumeric() {
                self.out.byte(k);
                return Ok(i + word.len());
            }
        }
        let is = |word: &[u8]| {
            self.z.get(i..i + word.len()).is_some_and(|w| w.eq_ignore_ascii_case(word))
                && !self.at(i + word.len()).is_ascii_alphanumeric()
        };
        let found: Option<(usize, &[u8])> =
            [&b"infinity"[..], b"inf"].into_iter().find(|w| is(w)).map(|w| (w.len(), w));
        if let Some((n, _)) = found {
            self.out.element(kind::FLOAT, b"9e999", 0, 5);
            self.json5 = true;
            return Ok(i + n);
        }
        if let Some(w) = [&b"nan"[..], b"qnan", b"snan"].into_iter().find(|w| is(w)) {
            self.out.byte(kind::NULL);
            self.json5 = true;
            return Ok(i + w.len());
        }
        Err(i)
    }

    #[inline(never)]
    fn number(&mut self, i: usize) -> Result<usize, usize> {
        let first = self.at(i);
        let sign = matches!(first, b'-' | b'+') as usize;
        self.json5 |= first == b'+' || first == b'.';
        let start = i + sign;
        let c = self.at(start);
        let mut five = false;
        let mut real = false;
        if c == b'0' {
            if self.at(start + 1) | 0x20 == b'x' && self.at(start + 2).is_ascii_hexdigit() {
                let mut j = start + 3;
                while self.at(j).is_ascii_hexdigit() {
                    j += 1;
                }
                self.json5 = true;
                self.push_number(i, j, kind::INT5);
                return Ok(j);
            }
            if self.at(start + 1).is_ascii_digit() {
                return Err(i + 1);
            }
        } else if !c.is_ascii_digit() {
            if sign == 1 {
                let rest = &self.z[start..];
                let is = |w: &[u8]| rest.get(..w.len()).is_some_and(|r| r.eq_ignore_ascii_case(w));
                if is(b"inf") {
                    let n = if is(b"infinity") { 8 } else { 3 };
                    let value: &[u8] = if first == b'-' { b"-9e999" } else { b"9e999" };
                    self.out.element(kind::FLOAT, value, 0, value.len());
                    self.json5 = true;
                    return Ok(start + n);
                }
            }
            if c != b'.' || !self.at(start + 1).is_ascii_digit() {
                return Err(if sign == 1 && c == b'.' { start + 1 } else { i });
            }
            self.json5 = true;
            five = true;
        }
        let mut exponent = false;
        let mut j = start;
        loop {
            let c = self.at(j);
            match c {
                b'0'..=b'9' => {}
                b'.' => {
                    if real {
                        return Err(j);
                    }
                    real = true;
                }
                b'e' | b'E' => {
                    if self.at(j - 1) == b'.' && j - 1 > start {
                        five = true;
                    } else if !self.at(j - 1).is_ascii_digit() {
                        return Err(j);
                    }
                    if exponent {
                        return Err(j);
                    }
                    real = true;
                    exponent = true;
                    if matches!(self.at(j + 1), b'+' | b'-') {
                        j += 1;
                    }
                    if !self.at(j + 1).is_ascii_digit() {
                        return Err(j);
                    }
                }
                _ => break,
            }
            j += 1;
        }
        if self.at(j - 1) == b'.' {
            if j - 1 == start {
                return Err(j);
            }
            five = true;
        }
        self.json5 |= five;
        let k = match (real, five) {
            (false, _) => kind::INT,
            (true, false) => kind::FLOAT,
            (true, true) => kind::FLOAT5,
        };
        self.push_number(i, j, k);
        Ok(j)
    }

    fn push_number(&mut self, from: usize, to: usize, k: u8) {
        let z = self.z;
        let from = from + (self.at(from) == b'+') as usize;
        self.out.element(k, z, from, to);
    }

    fn hex(&self, from: usize, n: usize) -> bool {
        self.z.get(from..from + n).is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit))
    }

    /// A string that begins at `i` and has been read up to `j`, where nothing was out of the ordinary.
    #[inline(never)]
    fn string(&mut self, i: usize, mut j: usize) -> Result<usize, usize> {
        let quote = self.at(i);
        self.json5 |= quote == b'\'';
        let mut k = kind::TEXT;
        loop {
            j += plain_bytes(self.z.get(j..).unwrap_or(&[]));
            let c = self.at(j);
            match c {
                _ if c == quote => break,
                b'\\' => {
                    j += 1;
                    match self.at(j) {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => k = k.max(kind::TEXTJ),
                        b'u' if self.hex(j + 1, 4) => k = k.max(kind::TEXTJ),
                        b'\'' | b'v' | b'\n' => k = kind::TEXT5,
                        b'0' if !self.at(j + 1).is_ascii_digit() => k = kind::TEXT5,
                        b'x' if self.hex(j + 1, 2) => k = kind::TEXT5,
                        0xe2 if self.at(j + 1) == 0x80 && matches!(self.at(j + 2), 0xa8 | 0xa9) => {
                            k = kind::TEXT5
                        }
                        b'\r' => {
                            k = kind::TEXT5;
                            j += (self.at(j + 1) == b'\n') as usize;
                        }
                        _ => return Err(j),
                    }
                    self.json5 |= k == kind::TEXT5;
                }
                0 if j >= self.z.len() => return Err(j),
                0..0x20 => {
                    k = kind::TEXT5;
                    self.json5 = true;
                }
                b'"' => k = kind::TEXT5,
                _ => {}
            }
            j += 1;
        }
        let z = self.z;
        self.out.element(k, z, i + 1, j);
        Ok(j + 1)
    }

    /// An object's label: a string, or in JSON5 an identifier.
    #[inline(always)]
    fn label(&mut self, i: usize) -> Result<usize, Wrong> {
        match self.at(i) {
            b'"' => Ok(self.plain_string(i)?),
            b'\'' => Ok(self.string(i, i + 1)?),
            _ => self.identifier(i),
        }
    }

    #[inline(never)]
    fn identifier(&mut self, i: usize) -> Result<usize, Wrong> {
        // `true` and the like are values, even here.
        if self.word(i).is_ok() {
            return Err(Wrong::At(i));
        }
        let mut k = kind::TEXT;
        let mut j = i;
        loop {
            let c = self.at(j);
            if c == b'\\' && self.at(j + 1) == b'u' && self.hex(j + 2, 4) {
                k = kind::TEXTJ;
                j += 6;
                continue;
            }
            let inside = c.is_ascii_alphabetic() || matches!(c, b'_' | b'$') || j > i && c.is_ascii_digit();
            if !inside && (c < 0x80 || space5(&self.z[j..]) > 0) {
                break;
            }
            j += 1;
        }
        if j == i {
            return Err(if i < self.z.len() { Wrong::Other(i) } else { Wrong::At(i) });
        }
        let z = self.z;
        self.out.element(k, z, i, j);
        self.json5 = true;
        Ok(j)
    }
}

/// Whether a byte between quotes stands for itself whatever the quotes: neither a quote, a backslash nor a control character.
const PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let mut b = 0;
    while b < 0x20 {
        plain[b] = false;
        b += 1;
    }
    (plain[b'"' as usize], plain[b'\'' as usize], plain[b'\\' as usize]) = (false, false, false);
    plain
};

/// How many bytes stand before the first quote, backslash or control character.
#[inline(always)]
pub(super) fn plain_bytes(z: &[u8]) -> usize {
    /// Names and the like are short; longer texts are read by whole words.
    const SHORT: usize = 12;
    let Some((short, rest)) = z.split_at_checked(SHORT) else { return few_plain_bytes(z) };
    match few_plain_bytes(short) {
        SHORT => SHORT + many_plain_bytes(rest),
        n => n,
    }
}

#[inline(always)]
fn few_plain_bytes(z: &[u8]) -> usize {
    z.iter().position(|b| !PLAIN[*b as usize]).unwrap_or(z.len())
}

#[inline(never)]
fn many_plain_bytes(z: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let mut n = 0;
    let (words, rest) = z.as_chunks::<8>();
    for word in words {
        let x = u64::from_le_bytes(*word);
        // The high bit of each byte that is zero, or less than a blank (bytes from 128 on are neither).
        let zero = |x: u64| x.wrapping_sub(ONES) & !x & HIGH;
        let same = |b: u8| zero(x ^ (ONES * b as u64));
        let special = same(b'"') | same(b'\'') | same(b'\\') | (x.wrapping_sub(ONES * 0x20) & !x & HIGH);
        if special != 0 {
            // A borrow reaches upwards only, so that the lowest one is right.
            return n + special.trailing_zeros() as usize / 8;
        }
        n += 8;
    }
    n + few_plain_bytes(rest)
}

/// The length of the white space and comments, as JSON5 has them, at the start of `z`.
fn space5(z: &[u8]) -> usize {
    let mut n = 0;
    loop {
        let rest = &z[n..];
        n += match rest {
            [b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c, ..] => 1,
            [b'/', b'*', inside @ ..] => match memchr::memmem::find(inside, b"*/") {
                Some(p) => p + 4,
                None => return n,
            },
            [b'/', b'/', inside @ ..] => {
                let mut end = 2;
                while end < rest.len() {
                    match &inside[end - 2..] {
                        [b'\n' | b'\r', ..] | [0xe2, 0x80, 0xa8 | 0xa9, ..] => break,
                        _ => end += 1,
                    }
                }
                end + (end < rest.len() && rest[end] < 0x80) as usize
            }
            [0xc2, 0xa0, ..] => 2,
            [0xe1, 0x9a, 0x80, ..] => 3,
            [0xe2, 0x80, 0x80..=0x8a | 0xa8 | 0xa9 | 0xaf, ..] => 3,
            [0xe2, 0x81, 0x9f, ..] => 3,
            [0xe3, 0x80, 0x80, ..] => 3,
            [0xef, 0xbb, 0xbf, ..] => 3,
            _ => return n,
        };
    }
}
