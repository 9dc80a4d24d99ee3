//! `format()` (documentation page `printf`): the substitutions of C's printf with SQLite's additions.
//!
//! A substitution is `%[flags][width][.precision][length]type`. An unknown type ends the output. Arguments that
//! are missing are NULL. Text is read up to its first NUL.

use crate::scalar::too_big;
use iolite_base::{Bytes, Result, alloc};
use iolite_value::Value;
use iolite_value::num::{Decimal, Round, put_digits};
use iolite_value::utf8;
use std::ops::Deref;

/// One substitution, as written.
#[derive(Default)]
struct Spec {
    left: bool,
    /// `+` or a space.
    plus: Option<u8>,
    alternate: bool,
    /// `!`
    alternate2: bool,
    zero: bool,
    comma: bool,
    width: usize,
    precision: Option<usize>,
}

struct Output<'a> {
    text: &'a mut Vec<u8>,
    limit: usize,
    /// Something was written, if only an empty text.
    used: bool,
}

impl Output<'_> {
    fn room(&mut self, n: usize) -> Result<()> {
        self.used = true;
        if self.text.len().saturating_add(n) > self.limit {
            return Err(too_big());
        }
        alloc::reserve(self.text, n)
    }

    fn push(&mut self, b: &[u8]) -> Result<()> {
        self.room(b.len())?;
        self.text.extend_from_slice(b);
        Ok(())
    }

    fn fill(&mut self, b: u8, n: usize) -> Result<()> {
        self.room(n)?;
        self.text.resize(self.text.len() + n, b);
        Ok(())
    }

    /// Spaces up to the width around what was appended from `start` on, which is ASCII.
    #[inline]
    fn pad_from(&mut self, spec: &Spec, start: usize) -> Result<()> {
        self.used = true;
        let pad = spec.width.saturating_sub(self.text.len() - start);
        if self.text.len().saturating_add(pad) > self.limit {
            return Err(too_big());
        }
        if pad > 0 {
            self.fill(b' ', pad)?;
            if !spec.left {
                self.text[start..].rotate_right(pad);
            }
        }
        Ok(())
    }

    /// `b` with spaces up to the width. With `!` the width counts characters.
    fn padded(&mut self, spec: &Spec, b: &[u8]) -> Result<()> {
        let mut wide = b.len();
        if spec.alternate2 {
            wide -= b.iter().filter(|&&c| c & 0xc0 == 0x80).count();
        }
        let pad = spec.width.saturating_sub(wide);
        if pad == 0 {
            return self.push(b);
        }
        if !spec.left {
            self.fill(b' ', pad)?;
        }
        self.push(b)?;
        if spec.left { self.fill(b' ', pad) } else { Ok(()) }
    }
}

/// The text of an argument.
enum Text<'a> {
    Lent(&'a [u8]),
    Made(Bytes),
}

impl Deref for Text<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Text::Lent(b) => b,
            Text::Made(b) => b,
        }
    }
}

struct Arguments<'a> {
    values: std::slice::Iter<'a, Value>,
}

impl<'a> Arguments<'a> {
    fn int(&mut self) -> i64 {
        self.values.next().map_or(0, Value::to_int)
    }

    fn real(&mut self) -> f64 {
        self.values.next().map_or(0.0, Value::to_real)
    }

    fn text(&mut self) -> Result<Option<Text<'a>>> {
        Ok(match self.values.next() {
            None | Some(Value::Null) => None,
            Some(Value::Text(b, _) | Value::Blob(b, _)) => Some(Text::Lent(utf8::to_nul(b))),
            // The text of a number has no NUL.
            Some(v) => Some(Text::Made(v.text_bytes()?)),
        })
    }
}

/// Formats `values` as `format` says; longer than `limit` is an error. `None` if nothing at all was to be written,
/// which SQL sees as NULL: the format is empty or starts with an unknown type.
pub fn format(format: &[u8], values: &[Value], limit: usize) -> Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    Ok(format_to(&mut text, format, values, limit)?.then_some(text))
}

/// As [`format`], into an empty text; `false`: nothing at all was to be written.
pub(crate) fn format_to(text: &mut Vec<u8>, format: &[u8], values: &[Value], limit: usize) -> Result<bool> {
    let mut out = Output { text, limit, used: false };
    // Most texts take no second block.
    alloc::reserve(out.text, (format.len() + 24 * values.len()).min(limit))?;
    let mut args = Arguments { values: values.iter() };
    let mut rest = format;
    while let Some(p) = next_percent(rest) {
        if p > 0 {
            out.push(&rest[..p])?;
        }
        rest = &rest[p + 1..];
        if rest.is_empty() {
            out.push(b"%")?;
            break;
        }
        let spec = parse(&mut rest, &mut args);
        let known = match rest.split_first() {
            Some((&kind, behind)) => {
                rest = behind;
                substitute(&mut out, &spec, kind, &mut args)?
            }
            None => false,
        };
        if !known {
            rest = b"";
            break;
        }
    }
    if !rest.is_empty() {
        out.push(rest)?;
    }
    Ok(out.used)
}

/// Where the next substitution begins. (Of a short text, looking at its bytes in turn takes less than calling somebody.)
#[inline]
fn next_percent(text: &[u8]) -> Option<usize> {
    match text.len() {
        0..16 => text.iter().position(|b| *b == b'%'),
        _ => memchr::memchr(b'%', text),
    }
}

/// Reads flags, width, precision and length.
fn parse(rest: &mut &[u8], args: &mut Arguments<'_>) -> Spec {
    let mut spec = Spec::default();
    let next = |rest: &mut &[u8]| {
        let b = rest.first().copied();
        if b.is_some() {
            *rest = &rest[1..];
        }
        b
    };
    while let Some(&b) = rest.first() {
        match b {
            b'-' => spec.left = true,
            b'+' | b' ' => spec.plus = Some(b),
            b'#' => spec.alternate = true,
            b'!' => spec.alternate2 = true,
            b'0' => spec.zero = true,
            b',' => spec.comma = true,
            _ => break,
        }
        next(rest);
    }
    if rest.first() == Some(&b'*') {
        next(rest);
        let w = args.int() as i32;
        spec.left |= w < 0;
        spec.width = w.checked_abs().unwrap_or(0) as usize;
    } else {
        spec.width = digits(rest);
    }
    if rest.first() == Some(&b'.') {
        next(rest);
        if rest.first() == Some(&b'*') {
            next(rest);
            let p = args.int() as i32;
            spec.precision = p.checked_abs().map(|p| p as usize);
        } else {
            spec.precision = Some(digits(rest));
        }
    }
    if rest.first() == Some(&b'l') {
        next(rest);
        if rest.first() == Some(&b'l') {
            next(rest);
        }
    }
    spec
}

fn digits(rest: &mut &[u8]) -> usize {
    let mut n = 0u32;
    while let Some(&b) = rest.first().filter(|b| b.is_ascii_digit()) {
        n = n.wrapping_mul(10).wrapping_add((b - b'0') as u32);
        *rest = &rest[1..];
    }
    (n & 0x7fff_ffff) as usize
}

/// Writes one substitution; `false` for an unknown type.
fn substitute(out: &mut Output<'_>, spec: &Spec, kind: u8, args: &mut Arguments<'_>) -> Result<bool> {
    match kind {
        b'%' => out.padded(spec, b"%")?,
        b'n' => out.used = true,
        b'd' | b'i' | b'r' => {
            let v = args.int();
            let sign = if v < 0 { Some(b'-') } else { spec.plus };
            integer(out, spec, kind, v.unsigned_abs(), sign)?;
        }
        b'u' | b'x' | b'X' | b'o' | b'p' => integer(out, spec, kind, args.int() as u64, None)?,
        b'f' | b'e' | b'E' | b'g' | b'G' => real(out, spec, kind, args.real())?,
        b'c' => character(out, spec, args.text()?)?,
        b's' | b'z' => {
            let text = args.text()?;
            out.padded(spec, cut(spec, text.as_deref().unwrap_or_default()))?;
        }
        b'q' | b'Q' | b'w' => {
            let Some(text) = args.text()? else {
                out.padded(spec, cut(spec, if kind == b'Q' { b"NULL" } else { b"(NULL)" }))?;
                return Ok(true);
            };
            let quote = if kind == b'w' { b'"' } else { b'\'' };
            let mut escaped = Vec::new();
            quoted(&mut escaped, cut(spec, &text), quote, kind == b'Q', spec.alternate);
            out.padded(spec, &escaped)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The part of a text that the precision lets through.
fn cut<'a>(spec: &Spec, text: &'a [u8]) -> &'a [u8] {
    match spec.precision {
        None => text,
        Some(n) if spec.alternate2 => &text[..utf8::nth(text, n)],
        Some(n) => &text[..n.min(text.len())],
    }
}

/// Appends `text` with `quote` doubled, in quotes if `around`. With `escapes`, control characters become `\u00xx` and
/// backslashes are doubled; text in quotes is wrapped in `unistr()` then, or left alone if it has no control
/// characters.
pub(crate) fn quoted(out: &mut Vec<u8>, text: &[u8], quote: u8, around: bool, escapes: bool) {
    let escapes = escapes && (!around || text.iter().any(|b| *b < 0x20));
    if around {
        out.extend_from_slice(if escapes { b"unistr('" } else { b"'" });
    }
    for &b in text {
        if escapes && b < 0x20 {
            const LOW: &[u8; 16] = b"0123456789abcdef";
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&[b'0' + (b >> 4), LOW[(b & 15) as usize]]);
            continue;
        }
        if b == quote || escapes && b == b'\\' {
            out.push(b);
        }
        out.push(b);
    }
    if around {
        out.extend_from_slice(if escapes { b"')" } else { b"'" });
    }
}

fn character(out: &mut Output<'_>, spec: &Spec, text: Option<Text<'_>>) -> Result<()> {
    let text = text.as_deref().unwrap_or_default();
    let one = match text.first() {
        None => &[0u8][..],
        Some(&b) if b >= 0xc0 => &text[..utf8::after(text, 0).min(4)],
        Some(_) => &text[..1],
    };
    let times = spec.precision.unwrap_or(1).max(1);
    let pad = spec.width.saturating_sub(times);
    if !spec.left {
        out.fill(b' ', pad)?;
    }
    match one {
        [b] => out.fill(*b, times)?,
        _ => {
            out.room(one.len().saturating_mul(times))?;
            (0..times).for_each(|_| out.text.extend_from_slice(one));
        }
    }
    if spec.left { out.fill(b' ', pad) } else { Ok(()) }
}

fn integer(out: &mut Output<'_>, spec: &Spec, kind: u8, v: u64, sign: Option<u8>) -> Result<()> {
    let mut room = [0u8; 26];
    let mut at = room.len();
    if kind == b'r' {
        let suffix = match (v % 10, v / 10 % 10) {
            (_, 1) => b"th",
            (1, _) => b"st",
            (2, _) => b"nd",
            (3, _) => b"rd",
            _ => b"th",
        };
        at -= 2;
        room[at..].copy_from_slice(suffix);
    }
    let bits = match kind {
        b'x' | b'X' | b'p' => 4,
        b'o' => 3,
        _ => 0,
    };
    if bits == 0 {
        at = put_digits(v, &mut room, at);
        if !spec.zero && !spec.comma && spec.precision.is_none() {
            if let Some(sign) = sign {
                at -= 1;
                room[at] = sign;
            }
            return out.padded(spec, &room[at..]);
        }
    } else {
        let alphabet = if kind == b'x' { b"0123456789abcdef" } else { b"0123456789ABCDEF" };
        let mut left = v;
        loop {
            at -= 1;
            room[at] = alphabet[(left & ((1 << bits) - 1)) as usize];
            left >>= bits;
            if left == 0 {
                break;
            }
        }
    }
    let digits = &room[at..];
    let mut wanted = spec.precision.unwrap_or(0);
    if spec.zero {
        wanted = wanted.max(spec.width.saturating_sub(sign.is_some() as usize));
    }
    let zeros = wanted.saturating_sub(digits.len());
    if zeros > 0 && wanted > out.limit {
        return Err(too_big());
    }
    let prefix: &[u8] = match kind {
        b'x' | b'p' if spec.alternate && v != 0 => b"0x",
        b'X' if spec.alternate && v != 0 => b"0X",
        b'o' if spec.alternate && v != 0 => b"0",
        _ => b"",
    };
    let n = zeros + digits.len();
    let start = out.text.len();
    let grouped = spec.comma && bits == 0;
    alloc::reserve(out.text, n + if grouped { n / 3 } else { 0 } + 3)?;
    out.text.extend(sign);
    out.text.extend_from_slice(prefix);
    if grouped {
        for i in 0..n {
            if i > 0 && (n - i) % 3 == 0 {
                out.text.push(b',');
            }
            out.text.push(if i < zeros { b'0' } else { digits[i - zeros] });
        }
    } else {
        if zeros > 0 {
            out.text.resize(out.text.len() + zeros, b'0');
        }
        out.text.extend_from_slice(digits);
    }
    out.pad_from(spec, start)
}

/// Appends `n` of the digits from number `from` on, and zeros behind them.
#[inline]
fn put_some(text: &mut Vec<u8>, digits: &[u8], from: usize, n: usize) {
    let there = digits.get(from..).unwrap_or_default();
    let there = &there[..n.min(there.len())];
    text.extend_from_slice(there);
    if there.len() < n {
        text.resize(text.len() + n - there.len(), b'0');
    }
}

/// The most digits of a real behind the point; SQLite's `SQLITE_FP_PRECISION_LIMIT`.
const MOST_PRECISION: usize = 100_000_000;

fn real(out: &mut Output<'_>, spec: &Spec, kind: u8, r: f64) -> Result<()> {
    let mut precision = spec.precision.unwrap_or(6).min(MOST_PRECISION) as i32;
    let lower = kind.to_ascii_lowercase();
    let round = match lower {
        b'f' => Round::Fraction(precision),
        b'g' => {
            precision = precision.max(1);
            Round::Significant(precision)
        }
        _ => Round::Significant(precision + 1),
    };
    let negative = r < 0.0;
    let mut sign = if negative { Some(b'-') } else { spec.plus };
    let nines = [b'9'];
    let decimal;
    let (digits, point) = if r.is_infinite() {
        if !spec.zero {
            let mut text = Vec::new();
            text.extend(sign);
            text.extend_from_slice(b"Inf");
            return out.padded(spec, &text);
        }
        (&nines[..], 1000)
    } else {
        decimal = Decimal::of(r, round, if spec.alternate2 { 26 } else { 16 });
        (decimal.digits(), decimal.point)
    };
    if negative && spec.alternate && spec.plus.is_none() && lower == b'f' && digits == b"0" {
        sign = None;
    }
    let exponent = point - 1;
    let mut scientific = lower == b'e';
    let mut trim = spec.alternate2;
    if lower == b'g' {
        precision -= 1;
        trim = !spec.alternate;
        scientific = exponent < -4 || exponent > precision;
        if !scientific {
            precision -= exponent;
        }
    }
    let before = if scientific { 0 } else { exponent.max(0) as usize };
    let size = before + before / 3 + precision.max(0) as usize + 16;
    if size.max(spec.width) > out.limit {
        return Err(too_big());
    }
    let start = out.text.len();
    let text = &mut *out.text;
    alloc::reserve(text, size)?;
    text.extend(sign);
    let last = if scientific { 0 } else { exponent };
    // Of the digits, so many stand before the point.
    let whole = (last + 1).max(0) as usize;
    if whole == 0 {
        text.push(b'0');
    } else if spec.comma {
        for (i, at) in (0..=last).rev().enumerate() {
            text.push(digits.get(i).copied().unwrap_or(b'0'));
            if at % 3 == 0 && at > 1 {
                text.push(b',');
            }
        }
    } else {
        put_some(text, digits, 0, whole);
    }
    let pointed = precision > 0 || spec.alternate || spec.alternate2;
    if pointed {
        text.push(b'.');
    }
    let zeros = if scientific { 0 } else { (-exponent - 1).max(0) }.min(precision.max(0));
    put_some(text, b"", 0, zeros as usize);
    put_some(text, digits, whole, (precision - zeros).max(0) as usize);
    if trim && pointed {
        while text.last() == Some(&b'0') {
            text.pop();
        }
        if text.last() == Some(&b'.') {
            if spec.alternate2 {
                text.push(b'0');
            } else {
                text.pop();
            }
        }
    }
    if scientific {
        text.push(if kind.is_ascii_uppercase() { b'E' } else { b'e' });
        text.push(if exponent < 0 { b'-' } else { b'+' });
        let e = exponent.unsigned_abs();
        if e >= 100 {
            text.push(b'0' + (e / 100) as u8);
        }
        text.extend_from_slice(&[b'0' + (e / 10 % 10) as u8, b'0' + (e % 10) as u8]);
    }
    let length = text.len() - start;
    if spec.zero && !spec.left && length < spec.width {
        let from = start + sign.is_some() as usize;
        let zeros = spec.width - length;
        alloc::reserve(text, zeros)?;
        text.splice(from..from, std::iter::repeat_n(b'0', zeros));
    }
    out.pad_from(spec, start)
}
