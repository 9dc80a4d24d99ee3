//! `format()` (documentation page `printf`): the substitutions of C's printf with SQLite's additions.
//!
//! A substitution is `%[flags][width][.precision][length]type`. An unknown type ends the output. Arguments that
//! are missing are NULL. Text is read up to its first NUL.

use crate::scalar::too_big;
use iolite_base::{Bytes, Result, alloc};
use iolite_value::Value;
use iolite_value::num::{Decimal, Round};
use iolite_value::utf8;

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

struct Output {
    text: Vec<u8>,
    limit: usize,
    /// Something was written, if only an empty text.
    used: bool,
    /// Memory in which a number is put together; taken out meanwhile.
    scratch: Vec<u8>,
}

impl Output {
    fn room(&mut self, n: usize) -> Result<()> {
        self.used = true;
        if self.text.len().saturating_add(n) > self.limit {
            return Err(too_big());
        }
        alloc::reserve(&mut self.text, n)
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

    fn take_scratch(&mut self) -> Vec<u8> {
        let mut s = std::mem::take(&mut self.scratch);
        s.clear();
        s
    }

    /// `b` with spaces up to the width. With `!` the width counts characters.
    fn padded(&mut self, spec: &Spec, b: &[u8]) -> Result<()> {
        let mut wide = b.len();
        if spec.alternate2 {
            wide -= b.iter().filter(|&&c| c & 0xc0 == 0x80).count();
        }
        let pad = spec.width.saturating_sub(wide);
        if !spec.left {
            self.fill(b' ', pad)?;
        }
        self.push(b)?;
        if spec.left { self.fill(b' ', pad) } else { Ok(()) }
    }
}

struct Arguments<'a> {
    values: std::slice::Iter<'a, Value>,
}

impl Arguments<'_> {
    fn int(&mut self) -> i64 {
        self.values.next().map_or(0, Value::to_int)
    }

    fn real(&mut self) -> f64 {
        self.values.next().map_or(0.0, Value::to_real)
    }

    fn text(&mut self) -> Result<Option<Bytes>> {
        match self.values.next() {
            None | Some(Value::Null) => Ok(None),
            Some(v) => {
                let b = v.text_bytes()?;
                Ok(Some(b.slice(0, utf8::to_nul(&b).len())))
            }
        }
    }
}

/// Formats `values` as `format` says; longer than `limit` is an error. `None` if nothing at all was to be written,
/// which SQL sees as NULL: the format is empty or starts with an unknown type.
pub fn format(format: &[u8], values: &[Value], limit: usize) -> Result<Option<Vec<u8>>> {
    let mut out = Output { text: Vec::new(), limit, used: false, scratch: Vec::new() };
    // Most texts take no second block.
    alloc::reserve(&mut out.text, (format.len() + 24 * values.len()).min(limit))?;
    let mut args = Arguments { values: values.iter() };
    let mut rest = format;
    while let Some(p) = memchr::memchr(b'%', rest) {
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
    Ok(out.used.then_some(out.text))
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
fn substitute(out: &mut Output, spec: &Spec, kind: u8, args: &mut Arguments<'_>) -> Result<bool> {
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

fn character(out: &mut Output, spec: &Spec, text: Option<Bytes>) -> Result<()> {
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

fn integer(out: &mut Output, spec: &Spec, kind: u8, v: u64, sign: Option<u8>) -> Result<()> {
    let mut digits = out.take_scratch();
    let base = match kind {
        b'x' | b'X' | b'p' => 16,
        b'o' => 8,
        _ => 10,
    };
    let alphabet = if kind == b'x' { b"0123456789abcdef" } else { b"0123456789ABCDEF" };
    // Digits from the last to the first.
    if kind == b'r' {
        let suffix = match (v % 10, v / 10 % 10) {
            (_, 1) => "ht",
            (1, _) => "ts",
            (2, _) => "dn",
            (3, _) => "dr",
            _ => "ht",
        };
        digits.extend_from_slice(suffix.as_bytes());
    }
    let mut left = v;
    loop {
        digits.push(alphabet[(left % base) as usize]);
        left /= base;
        if left == 0 {
            break;
        }
    }
    let mut wanted = spec.precision.unwrap_or(0);
    if spec.zero {
        wanted = wanted.max(spec.width.saturating_sub(sign.is_some() as usize));
    }
    if wanted > digits.len() {
        if wanted > out.limit {
            return Err(too_big());
        }
        alloc::reserve(&mut digits, wanted)?;
        digits.resize(wanted, b'0');
    }
    if spec.comma && base == 10 {
        let mut grouped = Vec::new();
        alloc::reserve(&mut grouped, digits.len() / 3 * 4 + 4)?;
        for (i, d) in digits.iter().enumerate() {
            if i > 0 && i % 3 == 0 {
                grouped.push(b',');
            }
            grouped.push(*d);
        }
        digits = grouped;
    }
    if spec.alternate && v != 0 {
        match kind {
            b'x' | b'p' => digits.extend_from_slice(b"x0"),
            b'X' => digits.extend_from_slice(b"X0"),
            b'o' => digits.push(b'0'),
            _ => {}
        }
    }
    digits.extend(sign);
    digits.reverse();
    out.padded(spec, &digits)?;
    out.scratch = digits;
    Ok(())
}

/// The most digits of a real behind the point; SQLite's `SQLITE_FP_PRECISION_LIMIT`.
const MOST_PRECISION: usize = 100_000_000;

fn real(out: &mut Output, spec: &Spec, kind: u8, r: f64) -> Result<()> {
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
    let mut text = out.take_scratch();
    let before = if scientific { 0 } else { exponent.max(0) as usize };
    let size = before + before / 3 + precision.max(0) as usize + 16;
    if size.max(spec.width) > out.limit {
        return Err(too_big());
    }
    alloc::reserve(&mut text, size)?;
    text.extend(sign);
    let mut shown = digits.iter().copied().chain(std::iter::repeat(b'0'));
    let mut at = if scientific { 0 } else { exponent };
    if at < 0 {
        text.push(b'0');
    }
    while at >= 0 {
        text.extend(shown.next());
        if spec.comma && at % 3 == 0 && at > 1 {
            text.push(b',');
        }
        at -= 1;
    }
    let pointed = precision > 0 || spec.alternate || spec.alternate2;
    if pointed {
        text.push(b'.');
    }
    let zeros = if scientific { 0 } else { (-exponent - 1).max(0) }.min(precision.max(0));
    text.resize(text.len() + zeros as usize, b'0');
    text.extend(shown.take((precision - zeros).max(0) as usize));
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
    if spec.zero && !spec.left && text.len() < spec.width {
        let from = sign.is_some() as usize;
        let zeros = spec.width - text.len();
        alloc::reserve(&mut text, zeros)?;
        text.splice(from..from, std::iter::repeat_n(b'0', zeros));
    }
    out.padded(spec, &text)?;
    out.scratch = text;
    Ok(())
}
