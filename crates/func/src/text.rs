//! Core scalar functions on text and blobs (documentation page `lang_corefunc`), LIKE and GLOB among them.

use crate::entry::{Entry, of_texts, pure, scalar};
use crate::scalar::{bounded_text, hex_digits, limit, numeric, too_big, wrong_count};
use crate::{like, printf};
use iolite_base::{Encoding, Error, Result, alloc};
use iolite_ext::{Context, FunctionFlags};
use iolite_value::Value;
use iolite_value::utf8;
use std::cell::Cell;

fn char(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let wide = ctx.host.encoding() != Encoding::Utf8;
    let mut out = Vec::new();
    alloc::reserve(&mut out, args.len() * 4)?;
    for v in args {
        let c = numeric(ctx, v)?.to_int();
        // In UTF-16 databases the text is read again, where these are no characters.
        let lost = wide && matches!(c, 0xd800..=0xdfff | 0xfffe | 0xffff);
        utf8::push(&mut out, if (0..=0x10_ffff).contains(&c) && !lost { c as u32 } else { 0xfffd });
    }
    Value::text(&out)
}

/// Joins the texts of the arguments that are not NULL.
fn join(ctx: &Context<'_>, parts: &[Value], separator: &[u8]) -> Result<Value> {
    let mut out = Vec::new();
    let mut first = true;
    let mut room = [0; 32];
    for v in parts.iter().filter(|v| !v.is_null()) {
        let b = v.lent_text(&mut room);
        if out.len() + separator.len() + b.len() > limit(ctx) {
            return Err(too_big());
        }
        alloc::reserve(&mut out, separator.len() + b.len())?;
        if !first {
            out.extend_from_slice(separator);
        }
        out.extend_from_slice(b);
        first = false;
    }
    Value::text(&out)
}

fn concat(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    if args.is_empty() { Err(wrong_count("concat")) } else { join(ctx, args, b"") }
}

fn concat_ws(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    match args {
        [separator, rest @ ..] if !rest.is_empty() => {
            if separator.is_null() {
                return Ok(Value::Null);
            }
            join(ctx, rest, separator.lent_text(&mut [0; 32]))
        }
        _ => Err(wrong_count("concat_ws")),
    }
}

thread_local! {
    /// Where a formatted text is put together, from call to call.
    static FORMATTED: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// So much of it is kept.
const MOST_KEPT: usize = 4096;

fn format(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    match args {
        [format, rest @ ..] if !format.is_null() => {
            let mut room = [0; 32];
            let format = format.lent_text(&mut room);
            let mut text = FORMATTED.take();
            text.clear();
            let written = printf::format_to(&mut text, utf8::to_nul(format), rest, limit(ctx))?;
            let out = if written { Value::text(&text) } else { Ok(Value::Null) };
            if text.capacity() <= MOST_KEPT {
                FORMATTED.set(text);
            }
            out
        }
        _ => Ok(Value::Null),
    }
}

fn hex(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let mut b = args[0].text_bytes()?;
    if matches!(args[0], Value::Text(..)) && ctx.host.encoding() != iolite_base::Encoding::Utf8 {
        // Text is shown as the database holds it.
        b = iolite_base::Bytes::copy_of(&iolite_value::utf16::encode(&b, ctx.host.encoding()))?;
    }
    if b.len() * 2 > limit(ctx) {
        return Err(too_big());
    }
    let mut out = Vec::new();
    alloc::reserve(&mut out, b.len() * 2)?;
    hex_digits(&mut out, &b);
    Value::text(&out)
}

fn unhex(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    if args.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let text = args[0].text_bytes()?;
    let text = utf8::to_nul(&text);
    let pass = match args.get(1) {
        Some(v) => v.text_bytes()?.to_vec(),
        None => Vec::new(),
    };
    let pass = utf8::to_nul(&pass);
    let mut out = Vec::new();
    alloc::reserve(&mut out, text.len() / 2)?;
    let digit = |i: usize| text.get(i).and_then(|&b| (b as char).to_digit(16)).map(|d| d as u8);
    let mut i = 0;
    while i < text.len() {
        if let Some(high) = digit(i) {
            let Some(low) = digit(i + 1) else { return Ok(Value::Null) };
            out.push(high << 4 | low);
            i += 2;
            continue;
        }
        let (c, end) = utf8::decode(text, i);
        if !characters(pass).any(|p| utf8::decode(p, 0).0 == c) {
            return Ok(Value::Null);
        }
        i = end;
    }
    Value::blob(&out)
}

/// The characters of a text, as runs of bytes.
fn characters(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut i = 0;
    std::iter::from_fn(move || {
        let from = i;
        (from < text.len()).then(|| {
            i = utf8::after(text, from);
            &text[from..i]
        })
    })
}

fn instr(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    if args.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let blobs = matches!(args, [Value::Blob(..), Value::Blob(..)]);
    let enc = if blobs { Encoding::Utf8 } else { ctx.host.encoding() };
    let (x, y) = (args[0].text_bytes_in(enc)?, args[1].text_bytes_in(enc)?);
    if y.is_empty() {
        return Ok(Value::Int(1));
    }
    // In text, a match can only start where a character does: a needle may begin with a continuation byte.
    let mut from = 0;
    while let Some(p) = memchr::memmem::find(&x[from..], &y) {
        let at = from + p;
        if blobs {
            return Ok(Value::Int(at as i64 + 1));
        }
        if at == 0 || x[at] & 0xc0 != 0x80 {
            let before = x[..at].iter().skip(1).filter(|&b| b & 0xc0 != 0x80).count();
            return Ok(Value::Int(before as i64 + 1 + (at > 0) as i64));
        }
        from = at + 1;
    }
    Ok(Value::Int(0))
}

fn length(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    Ok(match &args[0] {
        Value::Null => Value::Null,
        Value::Blob(b, _) => Value::Int(b.len() as i64),
        Value::Text(b, _) => Value::Int(utf8::length(b) as i64),
        v => Value::Int(v.lent_text(&mut [0; 32]).len() as i64),
    })
}

fn octet_length(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let wide = ctx.host.encoding() != Encoding::Utf8;
    Ok(match &args[0] {
        Value::Null => Value::Null,
        Value::Blob(b, _) => Value::Int(b.len() as i64),
        v => {
            let mut room = [0; 32];
            let b = v.lent_text(&mut room);
            let n = if wide { iolite_value::utf16::encode(b, ctx.host.encoding()).len() } else { b.len() };
            Value::Int(n as i64)
        }
    })
}

fn change_case(args: &[Value], f: fn(&mut [u8])) -> Result<Value> {
    if args[0].is_null() {
        return Ok(Value::Null);
    }
    let mut buf = iolite_base::Buf::copy_of(args[0].lent_text(&mut [0; 32]))?;
    if let Some(b) = buf.get_mut() {
        f(b);
    }
    Ok(Value::Text(buf.into_bytes(), 0))
}

fn lower(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    change_case(args, <[u8]>::make_ascii_lowercase)
}

fn upper(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    change_case(args, <[u8]>::make_ascii_uppercase)
}

/// Which ends are trimmed: 1 left, 2 right.
fn trim_ends(args: &[Value], ends: u8) -> Result<Value> {
    if args.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let text = args[0].text_bytes()?;
    let set = match args.get(1) {
        Some(v) => v.text_bytes()?.to_vec(),
        None => b" ".to_vec(),
    };
    let set: Vec<&[u8]> = characters(utf8::to_nul(&set)).collect();
    let mut rest = &text[..];
    if ends & 1 != 0 {
        while let Some(c) = set.iter().find(|c| rest.starts_with(c)) {
            rest = &rest[c.len()..];
        }
    }
    let start = text.len() - rest.len();
    if ends & 2 != 0 {
        while let Some(c) = set.iter().find(|c| rest.ends_with(c)) {
            rest = &rest[..rest.len() - c.len()];
        }
    }
    Ok(Value::Text(text.slice(start, rest.len()), 0))
}

fn ltrim(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    trim_ends(args, 1)
}

fn rtrim(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    trim_ends(args, 2)
}

fn trim(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    trim_ends(args, 3)
}

fn replace(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    if args[..2].iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let (text, from) = (args[0].text_bytes()?, args[1].text_bytes()?);
    if from.is_empty() || from[0] == 0 {
        return Ok(Value::Text(text, 0));
    }
    if args[2].is_null() {
        return Ok(Value::Null);
    }
    let to = args[2].text_bytes()?;
    let (mut out, mut done, most) = (Vec::new(), 0, limit(ctx));
    let mut put = |at: usize| {
        if out.len() + at - done + to.len() > most {
            return Err(too_big());
        }
        alloc::reserve(&mut out, at - done + to.len())?;
        out.extend_from_slice(&text[done..at]);
        out.extend_from_slice(&to);
        done = at + from.len();
        Ok(())
    };
    match *from {
        // Many of them may follow each other.
        [byte] => text.iter().enumerate().filter(|b| *b.1 == byte).try_for_each(|b| put(b.0))?,
        _ => memchr::memmem::find_iter(&text, &*from).try_for_each(put)?,
    }
    if done == 0 {
        return Ok(Value::Text(text, 0));
    }
    alloc::reserve(&mut out, text.len() - done)?;
    out.extend_from_slice(&text[done..]);
    bounded_text(ctx, &out)
}

fn substr(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    if args.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let blob = matches!(args[0], Value::Blob(..));
    let all = args[0].text_bytes()?;
    if blob && all.is_empty() {
        return Ok(Value::Null);
    }
    let text = if blob { &all[..] } else { utf8::to_nul(&all) };
    let mut start = numeric(ctx, &args[1])?.to_int();
    let wanted = match args.get(2) {
        Some(n) => numeric(ctx, n)?.to_int(),
        None => limit(ctx) as i64,
    };
    let mut len = wanted.saturating_abs();
    if start < 0 {
        let n = if blob { text.len() } else { utf8::count(text) } as i64;
        start += n;
        if start < 0 {
            // What would lie before the text counts for the length.
            len = (len + start).max(0);
            start = 0;
        }
    } else if start > 0 {
        start -= 1;
    } else if len > 0 {
        len -= 1;
    }
    if wanted < 0 {
        start -= len;
        if start < 0 {
            len += start;
            start = 0;
        }
    }
    part(&args[0], &all, text, blob, start, len)
}

/// `len` characters or bytes from `start`.
fn part(v: &Value, all: &iolite_base::Bytes, text: &[u8], blob: bool, start: i64, len: i64) -> Result<Value> {
    let clip = |n: i64| usize::try_from(n).unwrap_or(usize::MAX);
    let (from, to) = if blob {
        let from = clip(start).min(text.len());
        (from, from.saturating_add(clip(len)).min(text.len()))
    } else {
        utf8::part(text, clip(start), clip(len))
    };
    let bytes = all.slice(from, to - from);
    Ok(if matches!(v, Value::Blob(..)) { Value::Blob(bytes, 0) } else { Value::Text(bytes, 0) })
}

fn unicode(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let mut room = [0; 32];
    let b = args[0].lent_text(&mut room);
    Ok(match b.first() {
        None | Some(0) => Value::Null,
        _ => Value::Int(utf8::decode(b, 0).0 as i64),
    })
}

fn unistr(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    if args[0].is_null() {
        return Ok(Value::Null);
    }
    let text = args[0].text_bytes()?;
    let mut out = Vec::new();
    alloc::reserve(&mut out, text.len())?;
    let mut rest = &text[..];
    while let Some(p) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..p]);
        rest = &rest[p + 1..];
        let (skip, digits) = match rest.first() {
            Some(b'\\') => {
                out.push(b'\\');
                rest = &rest[1..];
                continue;
            }
            Some(b'u') => (1, 4),
            Some(b'U') => (1, 8),
            Some(b'+') => (1, 6),
            _ => (0, 4),
        };
        let number = rest.get(skip..skip + digits).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
        let Some(number) = number else { return Err(Error::sql("invalid Unicode escape")) };
        let c = number.iter().fold(0u32, |v, &d| v << 4 | (d as char).to_digit(16).unwrap_or(0));
        utf8::push(&mut out, c);
        rest = &rest[skip + digits..];
    }
    out.extend_from_slice(rest);
    Value::text(&out)
}

fn soundex(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    // The class of each letter from A on; 0 for vowels and the like, which part equal classes.
    const CLASSES: &[u8; 26] = b"01230120022455012623010202";
    let text = args[0].text_bytes()?;
    let mut letters = utf8::to_nul(&text).iter().skip_while(|b| !b.is_ascii_alphabetic());
    let class = |b: u8| match b & 0x7f {
        b if b.is_ascii_alphabetic() => CLASSES[(b.to_ascii_uppercase() - b'A') as usize],
        _ => b'0',
    };
    let Some(&first) = letters.next() else { return Value::text("?000") };
    let mut code = [first.to_ascii_uppercase(), b'0', b'0', b'0'];
    let mut n = 1;
    let mut last = class(first);
    for &b in letters {
        let c = class(b);
        if c != b'0' && c != last && n < 4 {
            code[n] = c;
            n += 1;
        }
        last = c;
    }
    Value::text(code)
}

/// The table.
pub(crate) const TABLE: &[Entry] = &[
    pure("char", -1, char, &["char(72, 228, 8364) => 'Hä€'", "char() => ''", "hex(char(-1)) => 'EFBFBD'"]),
    of_texts("concat", -3, concat, &["concat(1, NULL, 'b', x'63') => '1bc'", "concat(NULL) => ''"]),
    of_texts(
        "concat_ws",
        -4,
        concat_ws,
        &[
            "concat_ws(',', 1, NULL, 2) => '1,2'",
            "concat_ws(NULL, 1) => NULL",
            "concat_ws(',', '', '') => ','",
        ],
    ),
    of_texts(
        "format",
        -1,
        format,
        &["format('%d-%s', 5, 'x') => '5-x'", "format() => NULL", "format(NULL, 1) => NULL"],
    ),
    of_texts("printf", -1, format, &["printf('%05.1f', 3.14159) => '003.1'"]),
    scalar(
        "match",
        2,
        FunctionFlags(0),
        like::match_function,
        &["match('a', 'b') => error: unable to use function MATCH in the requested context"],
    ),
    pure(
        "glob",
        2,
        like::glob_function,
        &[
            "glob('a*c', 'abbbc') => 1",
            "glob('[^a-c]?', 'dx') => 1",
            "glob('[]]', ']') => 1",
            "glob('A', 'a') => 0",
            "glob('[a', 'a') => 0",
            "glob('*', NULL) => NULL",
        ],
    ),
    pure(
        "like",
        2,
        like::like_function,
        &[
            "like('a%C', 'Abbbc') => 1",
            "like('_', 'ä') => 1",
            "like('Ä', 'ä') => 0",
            "like('%a%b%', 'xxaxxbxx') => 1",
            "like('%%', '') => 1",
            "like('', 'a') => 0",
        ],
    ),
    pure(
        "like",
        3,
        like::like_function,
        &[
            "like('10!%', '10%', '!') => 1",
            "like('10!%', '100', '!') => 0",
            "like('a', 'a', NULL) => NULL",
            "like('a', 'a', 'ab') => error: ESCAPE expression must be a single character",
        ],
    ),
    pure("hex", 1, hex, &["hex('abc') => '616263'", "hex(12) => '3132'", "hex(NULL) => ''"]),
    of_texts("unhex", 1, unhex, &["unhex('0Aff') => X'0AFF'", "unhex('0') => NULL", "unhex('') => X''"]),
    of_texts("unhex", 2, unhex, &["unhex('0a-ff', '-') => X'0AFF'", "unhex('0-a', '-') => NULL"]),
    pure(
        "instr",
        2,
        instr,
        &[
            "instr('häuser', 'us') => 3",
            "instr(x'0102', x'02') => 2",
            "instr('abc', '') => 1",
            "instr('abc', 'x') => 0",
            "instr(NULL, 'x') => NULL",
        ],
    ),
    pure(
        "length",
        1,
        length,
        &["length('hä') => 2", "length(x'0000') => 2", "length(-12.5) => 5", "length(NULL) => NULL"],
    ),
    pure("octet_length", 1, octet_length, &["octet_length('hä') => 3", "octet_length(123) => 3"]),
    of_texts("lower", 1, lower, &["lower('AÄb') => 'aÄb'", "lower(NULL) => NULL"]),
    of_texts("upper", 1, upper, &["upper('aäB') => 'AäB'"]),
    of_texts("ltrim", 1, ltrim, &["ltrim('  a ') => 'a '"]),
    of_texts("ltrim", 2, ltrim, &["ltrim('xyax', 'yx') => 'ax'"]),
    of_texts("rtrim", 1, rtrim, &["rtrim(' a  ') => ' a'"]),
    of_texts("rtrim", 2, rtrim, &["rtrim('aäöä', 'äö') => 'a'"]),
    of_texts("trim", 1, trim, &["trim('  a  ') => 'a'", "trim(5) => '5'"]),
    of_texts("trim", 2, trim, &["trim('..a.b..', '.') => 'a.b'", "trim('a', NULL) => NULL"]),
    of_texts(
        "replace",
        3,
        replace,
        &[
            "replace('aXbX', 'X', '--') => 'a--b--'",
            "replace(12, '', 'x') => '12'",
            "replace(123, 2, '') => '13'",
            "replace('a', 'b', NULL) => NULL",
        ],
    ),
    pure(
        "substr",
        2,
        substr,
        &["substr('abcdef', 3) => 'cdef'", "substr('abc', -2) => 'bc'", "substr('äöü', 2) => 'öü'"],
    ),
    pure(
        "substr",
        3,
        substr,
        &[
            "substr('abcdef', 2, 3) => 'bcd'",
            "substr('abcdef', 0, 3) => 'ab'",
            "substr('abcdef', -2, 1) => 'e'",
            "substr('abcdef', 4, -2) => 'bc'",
            "substr('abcdef', -10, 6) => 'ab'",
            "substr(x'01020304', 2, 2) => X'0203'",
            "substr('abc', 1, NULL) => NULL",
        ],
    ),
    pure("substring", 2, substr, &["substring('abc', 2) => 'bc'"]),
    pure("substring", 3, substr, &["substring('abc', 2, 1) => 'b'"]),
    of_texts("unicode", 1, unicode, &["unicode('€uro') => 8364", "unicode('') => NULL"]),
    of_texts(
        "unistr",
        1,
        unistr,
        &[
            "unistr('\\00e4\\\\\\u00f6\\+0000fc\\U000020ac') => 'ä\\öü€'",
            "unistr('\\x') => error: invalid Unicode escape",
        ],
    ),
    of_texts(
        "soundex",
        1,
        soundex,
        &["soundex('Robert') => 'R163'", "soundex('Pfister') => 'P236'", "soundex('') => '?000'"],
    ),
];
