//! JSONB to text, plain and indented, and elements to SQL values.

use super::blob::{Element, MAX_DEPTH, kind, malformed};
use super::parse::plain_bytes;
use super::writer::Writer;
use iolite_base::{Result, alloc};
use iolite_value::utf8;
use iolite_value::{Value, num};

/// The subtype of JSON text.
pub(crate) const SUBTYPE: u8 = b'J';

/// Appends an element as JSON text.
pub(crate) fn text(out: &mut Vec<u8>, blob: &[u8], e: Element) -> Result<()> {
    write(out, blob, e, None)
}

/// Appends an element as indented JSON text.
pub(crate) fn pretty(out: &mut Vec<u8>, blob: &[u8], e: Element, indent: &[u8]) -> Result<()> {
    write(out, blob, e, Some(indent))
}

/// A container that is being written: where it ends, and whether it is an object.
#[derive(Clone, Copy)]
struct Open {
    end: usize,
    object: bool,
}

fn write(out: &mut Vec<u8>, blob: &[u8], e: Element, indent: Option<&[u8]>) -> Result<()> {
    let size = e.end - e.start;
    alloc::reserve(out, size.saturating_mul(2).saturating_add(32))?;
    // Small elements take up to twice as much as text.
    let mut w = Writer::new(out, if size < 256 { 2 * size } else { size + size / 4 });
    let done = match indent {
        None => elements::<false>(&mut w, blob, e, b""),
        Some(indent) => elements::<true>(&mut w, blob, e, indent),
    };
    w.end();
    done
}

/// Writes an element and all that is in it. Containers lie one within the other, so that one place goes through them all.
fn elements<const PRETTY: bool>(out: &mut Writer<'_>, blob: &[u8], e: Element, indent: &[u8]) -> Result<()> {
    let line = |out: &mut Writer<'_>, depth: usize| {
        if PRETTY {
            out.byte(b'\n');
            for _ in 0..depth {
                out.bytes(indent);
            }
        }
    };
    // The containers around the innermost one, which is at hand.
    let mut around: Vec<Open> = Vec::new();
    let mut inner = Open { end: e.end, object: false };
    let mut now = e;
    loop {
        let mut at = now.end;
        let mut first = false;
        if now.kind < kind::ARRAY {
            scalar(out, now, blob)?;
        } else if now.body == now.end {
            out.bytes(if now.kind == kind::ARRAY { b"[]" } else { b"{}" });
        } else {
            if around.len() > MAX_DEPTH {
                return Err(malformed());
            }
            let object = now.kind == kind::OBJECT;
            out.byte(if object { b'{' } else { b'[' });
            around.push(inner);
            inner = Open { end: now.end, object };
            at = now.body;
            first = true;
        }
        while at >= inner.end
            && let Some(outer) = around.pop()
        {
            line(out, around.len());
            out.byte(if inner.object { b'}' } else { b']' });
            inner = outer;
        }
        if around.is_empty() {
            return Ok(());
        }
        if !first {
            out.byte(b',');
        }
        line(out, around.len());
        now = Element::try_read(blob, at, inner.end).ok_or_else(malformed)?;
        if inner.object {
            if !now.is_text() {
                return Err(malformed());
            }
            scalar(out, now, blob)?;
            out.byte(b':');
            if PRETTY {
                out.byte(b' ');
            }
            now = Element::try_read(blob, now.end, inner.end).ok_or_else(malformed)?;
        }
    }
}

#[inline(always)]
fn scalar(out: &mut Writer<'_>, e: Element, blob: &[u8]) -> Result<()> {
    match e.kind {
        kind::TEXT | kind::TEXTJ => out.quoted(blob, e.body, e.end),
        kind::TEXTRAW if plain_bytes(e.payload(blob)) == e.end - e.body => out.quoted(blob, e.body, e.end),
        kind::INT | kind::FLOAT if e.body < e.end => out.part(blob, e.body, e.end),
        kind::NULL => out.bytes(b"null"),
        kind::TRUE => out.bytes(b"true"),
        kind::FALSE => out.bytes(b"false"),
        _ => {
            let mut done = Ok(());
            out.with(|out| done = other_scalar(out, e.kind, e.payload(blob)));
            return done;
        }
    }
    Ok(())
}

fn other_scalar(out: &mut Vec<u8>, k: u8, p: &[u8]) -> Result<()> {
    match k {
        kind::INT5 => match hexadecimal(p)? {
            (negative, Some(v)) => {
                if negative {
                    out.push(b'-');
                }
                out.extend_from_slice(v.to_string().as_bytes());
            }
            (_, None) => out.extend_from_slice(b"9.0e999"),
        },
        kind::FLOAT5 => {
            let (sign, digits) = match p {
                [] => return Err(malformed()),
                [b'-', rest @ ..] => (&b"-"[..], rest),
                _ => (&b""[..], p),
            };
            out.extend_from_slice(sign);
            if digits.first() == Some(&b'.') {
                out.push(b'0');
            }
            for (i, &b) in digits.iter().enumerate() {
                out.push(b);
                if b == b'.' && !digits.get(i + 1).is_some_and(u8::is_ascii_digit) {
                    out.push(b'0');
                }
            }
        }
        kind::TEXT5 => {
            out.push(b'"');
            canonical_escapes(out, p);
            out.push(b'"');
        }
        kind::TEXTRAW => quoted(out, p),
        _ => return Err(malformed()),
    }
    Ok(())
}

/// Whether digits that follow are hexadecimal.
fn is_hexadecimal(p: &[u8]) -> bool {
    p.eq_ignore_ascii_case(b"0x")
}

/// A `0x` number: its sign, and its value unless it takes more than 64 bits.
fn hexadecimal(p: &[u8]) -> Result<(bool, Option<u64>)> {
    let (negative, digits) = match p {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, p),
    };
    if p.is_empty() {
        return Err(malformed());
    }
    let digits = digits.get(2..).unwrap_or_default();
    let mut v = Some(0u64);
    for &d in digits {
        let d = (d as char).to_digit(16).ok_or_else(malformed)? as u64;
        v = v.filter(|v| v >> 60 == 0).map(|v| v << 4 | d);
    }
    Ok((negative, v))
}

/// Appends SQL text as a JSON string.
pub(crate) fn quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text;
    loop {
        let n = plain_bytes(rest);
        out.extend_from_slice(&rest[..n]);
        match rest.get(n) {
            None => break,
            Some(&b @ (b'"' | b'\\')) => out.extend_from_slice(&[b'\\', b]),
            // A quote of the other kind, which is not written otherwise here.
            Some(&b @ 0x20..) => out.push(b),
            Some(&b) => control(out, b),
        }
        rest = &rest[n + 1..];
    }
    out.push(b'"');
}

fn control(out: &mut Vec<u8>, b: u8) {
    let short = match b {
        0x08 => b'b',
        0x09 => b't',
        0x0a => b'n',
        0x0c => b'f',
        0x0d => b'r',
        _ => return unicode_escape(out, b),
    };
    out.extend_from_slice(&[b'\\', short]);
}

fn unicode_escape(out: &mut Vec<u8>, b: u8) {
    const LOW: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(&[b'\\', b'u', b'0', b'0', LOW[(b >> 4) as usize], LOW[(b & 15) as usize]]);
}

/// Appends a JSON5 text with the escapes of JSON.
fn canonical_escapes(out: &mut Vec<u8>, p: &[u8]) {
    let mut i = 0;
    while i < p.len() {
        let b = p[i];
        i += 1;
        match b {
            b'"' => out.extend_from_slice(b"\\\""),
            0..0x20 => control(out, b),
            b'\\' => {
                let Some(&c) = p.get(i) else { break };
                i += 1;
                match c {
                    b'\'' => out.push(b'\''),
                    b'v' => out.extend_from_slice(b"\\u000b"),
                    b'0' => out.extend_from_slice(b"\\u0000"),
                    b'x' => {
                        out.extend_from_slice(b"\\u00");
                        out.extend_from_slice(p.get(i..i + 2).unwrap_or_default());
                        i += 2;
                    }
                    b'\r' => i += (p.get(i) == Some(&b'\n')) as usize,
                    b'\n' => {}
                    0xe2 => i += 2,
                    _ => out.extend_from_slice(&[b'\\', c]),
                }
            }
            _ => out.push(b),
        }
    }
}

/// The characters that a text stands for.
pub(crate) fn unescaped(k: u8, p: &[u8]) -> Vec<u8> {
    if k == kind::TEXT || k == kind::TEXTRAW {
        return p.to_vec();
    }
    let mut out = Vec::with_capacity(p.len());
    let mut i = 0;
    while i < p.len() {
        if p[i] != b'\\' {
            out.push(p[i]);
            i += 1;
            continue;
        }
        let (c, n) = escape(&p[i..]);
        if let Some(c) = c {
            utf8::push(&mut out, c);
        }
        i += n;
    }
    out
}

/// The escape at the start of `z`: the character it stands for, none for an escaped line end or what is no escape, and its length.
fn escape(z: &[u8]) -> (Option<u32>, usize) {
    // What is no digit counts as well.
    let digit = |b: u8| (b as u32 + 9 * (b as u32 >> 6 & 1)) & 15;
    let hex =
        |from: usize, n: usize| z.get(from..from + n).map(|d| d.iter().fold(0, |v, &b| v << 4 | digit(b)));
    let short = |c: u8| (Some(c as u32), 2);
    match z.get(1) {
        Some(b'b') => short(0x08),
        Some(b'f') => short(0x0c),
        Some(b'n') => short(0x0a),
        Some(b'r') => short(0x0d),
        Some(b't') => short(0x09),
        Some(b'v') => short(0x0b),
        Some(b'0') => short(0),
        Some(c @ (b'"' | b'\'' | b'\\' | b'/')) => short(*c),
        Some(b'u') => match hex(2, 4) {
            Some(high @ 0xd800..=0xdbff) if z.get(6..8) == Some(b"\\u") => match hex(8, 4) {
                Some(low @ 0xdc00..=0xdfff) => (Some(((high & 0x3ff) << 10) + (low & 0x3ff) + 0x1_0000), 12),
                _ => (Some(high), 6),
            },
            Some(c) => (Some(c), 6),
            None => (None, z.len()),
        },
        Some(b'x') => match hex(2, 2) {
            Some(c) => (Some(c), 4),
            None => (None, z.len()),
        },
        Some(b'\n') => (None, 2),
        Some(b'\r') => (None, if z.get(2) == Some(&b'\n') { 3 } else { 2 }),
        Some(0xe2) => (None, 4.min(z.len())),
        _ => (None, z.len().min(2)),
    }
}

/// The SQL value of an element that is no container; `None` for a container.
pub(crate) fn sql_value(blob: &[u8], e: Element) -> Result<Option<Value>> {
    let p = e.payload(blob);
    Ok(Some(match e.kind {
        kind::NULL => Value::Null,
        kind::TRUE => Value::Int(1),
        kind::FALSE => Value::Int(0),
        kind::INT | kind::INT5 if p.strip_prefix(b"-").unwrap_or(p).get(..2).is_some_and(is_hexadecimal) => {
            match hexadecimal(p)? {
                (false, Some(v)) if v <= i64::MAX as u64 => Value::Int(v as i64),
                (true, Some(v)) if v <= i64::MAX as u64 + 1 => Value::Int((v as i64).wrapping_neg()),
                (negative, Some(v)) => Value::Real(if negative { -(v as f64) } else { v as f64 }),
                (_, None) => Value::Real(f64::INFINITY),
            }
        }
        kind::INT | kind::INT5 | kind::FLOAT | kind::FLOAT5 => {
            let integer = e.kind <= kind::INT5;
            let unsigned = p.strip_prefix(b"-").or(p.strip_prefix(b"+")).unwrap_or(p);
            // What begins as an integer is to be one.
            let more =
                unsigned.first().is_some_and(u8::is_ascii_digit) && !unsigned.iter().all(u8::is_ascii_digit);
            let n = num::prefix(p);
            if !n.any || !n.whole || integer && more {
                return Err(malformed());
            }
            match n.number {
                num::Number::Int(i) if integer => Value::Int(i),
                n => Value::real(n.to_real()),
            }
        }
        kind::TEXT | kind::TEXTRAW => Value::text(p)?,
        kind::TEXTJ | kind::TEXT5 => Value::text(unescaped(e.kind, p))?,
        _ => return Ok(None),
    }))
}

/// The name that `json_type` gives.
pub(crate) fn type_name(e: Element) -> &'static str {
    match e.kind {
        kind::NULL => "null",
        kind::TRUE => "true",
        kind::FALSE => "false",
        kind::INT | kind::INT5 => "integer",
        kind::FLOAT | kind::FLOAT5 => "real",
        kind::ARRAY => "array",
        kind::OBJECT => "object",
        _ => "text",
    }
}
