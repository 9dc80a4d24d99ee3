//! JSONB: JSON as one blob, element by element (SQLite's format, all versions since 3.45).
//!
//! An element is a header and a payload. The header's first byte has the kind in its low four bits and the payload's
//! size in the high ones; sizes from 12 up stand in 1, 2, 4 or 8 further bytes, and the high bits say in how many. A
//! payload of an array is its elements one after another; of an object, labels and values in turn.
//! Nothing read from a blob is trusted: an element that would reach beyond its container is malformed.

use iolite_base::{Error, Result};

/// Kinds of elements.
pub(crate) mod kind {
    pub const NULL: u8 = 0;
    pub const TRUE: u8 = 1;
    pub const FALSE: u8 = 2;
    /// Decimal integer.
    pub const INT: u8 = 3;
    /// Integer of JSON5: hexadecimal.
    pub const INT5: u8 = 4;
    /// Number with point or exponent.
    pub const FLOAT: u8 = 5;
    /// As FLOAT, with JSON5's liberties.
    pub const FLOAT5: u8 = 6;
    /// Text without escapes, and in need of none.
    pub const TEXT: u8 = 7;
    /// Text with escapes of JSON.
    pub const TEXTJ: u8 = 8;
    /// Text with escapes of JSON5.
    pub const TEXT5: u8 = 9;
    /// Text as SQL has it.
    pub const TEXTRAW: u8 = 10;
    pub const ARRAY: u8 = 11;
    pub const OBJECT: u8 = 12;
}

/// Containers may be nested this deep.
pub(crate) const MAX_DEPTH: usize = 1000;

/// The error for what is no JSON.
#[cold]
pub(crate) fn malformed() -> Error {
    Error::sql("malformed JSON")
}

/// Where an element lies in its blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    pub kind: u8,
    /// The header's first byte.
    pub start: usize,
    /// The payload's first byte.
    pub body: usize,
    /// One past the payload.
    pub end: usize,
}

impl Element {
    /// The element at `at`, which must end at or before `end`.
    #[inline]
    pub fn read(blob: &[u8], at: usize, end: usize) -> Result<Element> {
        Element::try_read(blob, at, end).ok_or_else(malformed)
    }

    /// As [`Element::read`]; `None` is what is malformed.
    #[inline(always)]
    pub fn try_read(blob: &[u8], at: usize, end: usize) -> Option<Element> {
        let blob = blob.get(..end)?;
        let first = *blob.get(at)?;
        let (kind, size) = (first & 15, (first >> 4) as usize);
        if kind > kind::OBJECT {
            return None;
        }
        let (body, len) = match size {
            0..12 => (at + 1, size),
            12 => (at + 2, *blob.get(at + 1)? as usize),
            _ => long_size(blob, at, size)?,
        };
        let stop = body.checked_add(len)?;
        (stop <= end).then_some(Element { kind, start: at, body, end: stop })
    }

    /// The payload.
    #[inline]
    pub fn payload<'a>(&self, blob: &'a [u8]) -> &'a [u8] {
        &blob[self.body..self.end]
    }

    /// Whether this is one of the four kinds of text.
    #[inline]
    pub fn is_text(&self) -> bool {
        (kind::TEXT..=kind::TEXTRAW).contains(&self.kind)
    }

    /// Header and payload.
    pub fn bytes<'a>(&self, blob: &'a [u8]) -> &'a [u8] {
        &blob[self.start..self.end]
    }
}

/// Where the payload begins, and its size, where that stands in more than one byte.
#[cold]
fn long_size(blob: &[u8], at: usize, size: usize) -> Option<(usize, usize)> {
    let n = 1usize << (size - 12);
    let bytes = blob.get(at + 1..at + 1 + n)?;
    let len = bytes.iter().fold(0u64, |v, b| v << 8 | *b as u64);
    Some((at + 1 + n, usize::try_from(len).ok()?))
}

/// Appends a header.
#[inline]
pub(crate) fn push_header(out: &mut Vec<u8>, kind: u8, len: usize) {
    let (header, n) = header(kind, len);
    out.extend_from_slice(&header[..n]);
}

/// A header, and in how many bytes it stands.
#[inline]
pub(crate) fn header(kind: u8, len: usize) -> ([u8; 9], usize) {
    let (n, bytes) = size_bytes(len);
    let mut out = [0; 9];
    if n == 0 {
        out[0] = (len as u8) << 4 | kind;
    } else {
        out[0] = (12 + n.trailing_zeros() as u8) << 4 | kind;
        out[1..1 + n].copy_from_slice(&bytes[8 - n..]);
    }
    (out, 1 + n)
}

/// Puts `new` in the place of `blob[from..to]`.
pub(crate) fn replace(blob: &mut Vec<u8>, from: usize, to: usize, new: &[u8]) {
    let (len, end) = (blob.len(), from + new.len());
    if end > to {
        blob.resize(len + (end - to), 0);
    }
    if end != to {
        blob.copy_within(to..len, end);
        blob.truncate(len + end - to);
    }
    blob[from..end].copy_from_slice(new);
}

/// In how many bytes a size stands behind the header's first byte, and the size, big-endian.
fn size_bytes(len: usize) -> (usize, [u8; 8]) {
    let n = match len {
        0..=11 => 0,
        12..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    };
    (n, (len as u64).to_be_bytes())
}

/// Appends a whole element.
#[inline]
pub(crate) fn push(out: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    if payload.len() < 12 {
        out.reserve(12);
        out.push((payload.len() as u8) << 4 | kind);
    } else {
        push_header(out, kind, payload.len());
    }
    out.extend_from_slice(payload);
}

/// Starts a container: one byte for its header. Answers where.
pub(crate) fn open(out: &mut Vec<u8>, kind: u8) -> usize {
    out.push(kind);
    out.len() - 1
}

/// Ends the container that [`open`] started: the header grows to what the size needs.
pub(crate) fn close(out: &mut Vec<u8>, start: usize) {
    let (header, n) = header(out[start] & 15, out.len() - start - 1);
    replace(out, start, start + 1, &header[..n]);
}

/// The children of a container (for an object, labels and values in turn).
pub(crate) struct Children<'a> {
    blob: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Children<'a> {
    /// Of `e`, which is a container.
    pub fn of(blob: &'a [u8], e: Element) -> Children<'a> {
        Children { blob, at: e.body, end: e.end }
    }

    /// The next child.
    #[inline]
    pub fn next(&mut self) -> Result<Option<Element>> {
        if self.at >= self.end {
            return Ok(None);
        }
        let e = Element::read(self.blob, self.at, self.end)?;
        self.at = e.end;
        Ok(Some(e))
    }

    /// The next label and value of an object.
    #[inline]
    pub fn pair(&mut self) -> Result<Option<(Element, Element)>> {
        let Some(label) = self.next()? else { return Ok(None) };
        if !label.is_text() {
            return Err(malformed());
        }
        let value = self.next()?.ok_or_else(malformed)?;
        Ok(Some((label, value)))
    }
}

/// The outermost element, if the blob looks like JSONB: a known kind that fills the blob.
pub(crate) fn root(blob: &[u8]) -> Option<Element> {
    let e = Element::read(blob, 0, blob.len()).ok()?;
    let constant = e.kind <= kind::FALSE;
    // A first byte that is a digit or a bracket may as well begin JSON text: then all of it must be right.
    let text = matches!(blob[0], b'3'..=b'9' | b'[' | b'{');
    let good = e.end == blob.len() && (!constant || e.body == e.end) && (!text || check(blob) == 0);
    good.then_some(e)
}

/// Checks all of a blob: 0 if it is good JSONB, else one more than the offset of what is wrong.
pub(crate) fn check(blob: &[u8]) -> usize {
    // Containers still open: where they end, whether a label is due next, and whether they are objects.
    let mut open: Vec<(usize, bool, bool)> = Vec::new();
    let mut at = 0;
    let mut end = blob.len();
    loop {
        while let Some(&(stop, label, _)) = open.last() {
            if at < stop {
                break;
            }
            if !label && open.last().is_some_and(|o| o.2) {
                return at + 1;
            }
            open.pop();
        }
        if open.is_empty() && at > 0 {
            return 0;
        }
        if let Some(o) = open.last() {
            end = o.0;
        }
        let Ok(e) = Element::read(blob, at, end) else { return at + 1 };
        if open.is_empty() && e.end != blob.len() {
            return at + 1;
        }
        if let Some((_, label, object)) = open.last_mut()
            && *object
        {
            if *label && !e.is_text() {
                return at + 1;
            }
            *label = !*label;
        }
        if let Err(offset) = payload_is_good(blob, e) {
            return offset + 1;
        }
        at = e.end;
        if e.kind >= kind::ARRAY {
            if open.len() >= MAX_DEPTH {
                return e.start + 1;
            }
            open.push((e.end, true, e.kind == kind::OBJECT));
            at = e.body;
        }
    }
}

/// Whether the payload of an element that is no container fits its kind; else the offset of what does not.
fn payload_is_good(blob: &[u8], e: Element) -> std::result::Result<(), usize> {
    let p = e.payload(blob);
    let wrong = |i: usize| Err(e.body + i);
    match e.kind {
        kind::NULL | kind::TRUE | kind::FALSE => {
            // Nothing follows, and the header does not say so at length.
            if e.end == e.start + 1 { Ok(()) } else { Err(e.start) }
        }
        kind::INT => {
            let digits = p.strip_prefix(b"-").unwrap_or(p);
            let skipped = p.len() - digits.len();
            match digits.iter().position(|b| !b.is_ascii_digit()) {
                _ if digits.is_empty() => Err(e.start),
                Some(i) => wrong(skipped + i),
                None => Ok(()),
            }
        }
        kind::INT5 => {
            let digits = p.strip_prefix(b"-").unwrap_or(p);
            let skipped = p.len() - digits.len();
            if digits.len() < 3 || !digits[..2].eq_ignore_ascii_case(b"0x") {
                return Err(e.start);
            }
            match digits[2..].iter().position(|b| !b.is_ascii_hexdigit()) {
                Some(i) => wrong(skipped + 2 + i),
                None => Ok(()),
            }
        }
        kind::FLOAT | kind::FLOAT5 if p.len() < 2 => Err(e.start),
        kind::FLOAT | kind::FLOAT5 => match number_is_good(p, e.kind == kind::FLOAT5) {
            Ok(true) => Ok(()),
            Ok(false) => Err(e.start),
            Err(i) => wrong(i),
        },
        kind::TEXT => match p.iter().position(|&b| b < 0x20 || b == b'"' || b == b'\\') {
            Some(i) => wrong(i),
            None => Ok(()),
        },
        kind::TEXTJ | kind::TEXT5 => text_is_good(p, e.kind == kind::TEXT5).or_else(wrong),
        _ => Ok(()),
    }
}

/// Whether a number has a point or an exponent; an error is the offset of what is wrong.
fn number_is_good(p: &[u8], five: bool) -> std::result::Result<bool, usize> {
    let start = p.starts_with(b"-") as usize;
    if p.len() <= start {
        return Ok(false);
    }
    let mut seen_point = false;
    let mut seen_exponent = false;
    let mut i = start;
    if p[i] == b'0' && p.get(i + 1).is_some_and(|b| b.is_ascii_digit()) {
        return Err(i + 1);
    }
    while i < p.len() {
        let before_digit = i > start && p[i - 1].is_ascii_digit();
        let after_digit = p.get(i + 1).is_some_and(u8::is_ascii_digit);
        match p[i] {
            b'0'..=b'9' => {}
            b'.' if !seen_point && !seen_exponent => {
                if !(before_digit && after_digit || five && (before_digit || after_digit)) {
                    return Err(i);
                }
                seen_point = true;
            }
            b'e' | b'E' if !seen_exponent && (before_digit || five && i > start && p[i - 1] == b'.') => {
                seen_exponent = true;
                if matches!(p.get(i + 1), Some(b'+' | b'-')) {
                    i += 1;
                }
                if !p.get(i + 1).is_some_and(u8::is_ascii_digit) {
                    return Err(i);
                }
            }
            _ => return Err(i),
        }
        i += 1;
    }
    Ok(seen_point || seen_exponent)
}

fn text_is_good(p: &[u8], five: bool) -> std::result::Result<(), usize> {
    let hex =
        |from: usize, n: usize| p.get(from..from + n).is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit));
    let mut i = 0;
    while i < p.len() {
        match p[i] {
            b'"' if !five => return Err(i),
            0..0x20 if !five => return Err(i),
            b'\\' => {
                let skip = match p.get(i + 1) {
                    None => return Err(i),
                    // A zero byte ends the list of them, and so is one of them, too.
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' | 0) => 2,
                    Some(b'u') if hex(i + 2, 4) => 6,
                    // Whatever they are: they are taken as digits.
                    Some(b'x') if five && p.len() >= i + 4 => 4,
                    Some(b'0') if five && p.get(i + 2).is_some_and(u8::is_ascii_digit) => return Err(i),
                    Some(b'\'' | b'v' | b'0' | b'\n' | b'\r') if five => 2,
                    Some(0xe2)
                        if five
                            && p.get(i + 2) == Some(&0x80)
                            && matches!(p.get(i + 3), Some(0xa8 | 0xa9)) =>
                    {
                        4
                    }
                    _ => return Err(i),
                };
                i += skip;
            }
            _ => i += 1,
        }
    }
    Ok(())
}
