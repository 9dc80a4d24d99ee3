//! LIKE and GLOB.
//!
//! One matcher for both: a pattern is read from left to right; where it fails after a `%` or `*`, the match starts
//! again one character further behind the last such wildcard. That is enough (an earlier wildcard cannot do better
//! than the last one), needs no recursion, and takes at most pattern length times text length steps.

use iolite_base::{Error, Limit, Result};
use iolite_ext::Context;
use iolite_value::Value;
use iolite_value::utf8;

/// How patterns are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `%`, `_`, an escape character; ASCII letters match in both cases.
    Like,
    /// As `Like`, but case counts.
    LikeCase,
    /// `*`, `?`, `[...]`.
    Glob,
}

/// Whether `text` matches `pattern`.
pub fn matches(kind: Kind, pattern: &[u8], text: &[u8], escape: Option<u32>) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to go on after a mismatch: the pattern behind the last wildcard, and the text it has tried.
    let mut again: Option<(usize, usize)> = None;
    loop {
        let (same, differ) = plain(kind, &pattern[p..], &text[t..], escape);
        p += same;
        t += same;
        let step = if differ {
            Step::Fail
        } else if p < pattern.len() {
            one(kind, pattern, p, text, t, escape)
        } else {
            Step::end(t == text.len())
        };
        match step {
            Step::Done => return true,
            Step::Any(next) => {
                let Some((next, from)) = wildcards(kind, pattern, next, text, t, escape) else {
                    return false;
                };
                if next == pattern.len() {
                    return true;
                }
                let Some(from) = seek(kind, pattern, next, text, from, escape) else { return false };
                p = next;
                t = from;
                again = Some((p, t));
            }
            Step::Next(next, end) => {
                p = next;
                t = end;
            }
            Step::Fail => match again {
                Some((behind, from)) if from < text.len() => {
                    let from = utf8::after(text, from);
                    let Some(from) = seek(kind, pattern, behind, text, from, escape) else { return false };
                    p = behind;
                    t = from;
                    again = Some((behind, from));
                }
                _ => return false,
            },
        }
    }
}

/// How many characters of pattern and text are ASCII, mean themselves and match, from their starts on; and whether the next ones
/// are such as well, and differ.
#[inline]
fn plain(kind: Kind, pattern: &[u8], text: &[u8], escape: Option<u32>) -> (usize, bool) {
    let (any, one, set) = if kind == Kind::Glob { (b'*', b'?', b'[') } else { (b'%', b'_', b'_') };
    let mut n = 0;
    for (c, d) in pattern.iter().zip(text) {
        if *c >= 0x80 || *c == any || *c == one || *c == set || escape == Some(u32::from(*c)) {
            break;
        }
        if c != d && !(kind == Kind::Like && c.eq_ignore_ascii_case(d)) {
            return (n, true);
        }
        n += 1;
    }
    (n, false)
}

/// Passes over the wildcards that follow one for any text: `%_` is `_%`, so that what is sought next is no wildcard. `None`: the text
/// is too short for them.
fn wildcards(
    kind: Kind,
    pattern: &[u8],
    mut p: usize,
    text: &[u8],
    mut t: usize,
    escape: Option<u32>,
) -> Option<(usize, usize)> {
    let (any, one) = if kind == Kind::Glob { (b'*', b'?') } else { (b'%', b'_') };
    while let Some(&c) = pattern.get(p)
        && escape != Some(u32::from(c))
        && (c == any || c == one)
    {
        if c == one {
            if t == text.len() {
                return None;
            }
            t = utf8::after(text, t);
        }
        p += 1;
    }
    Some((p, t))
}

/// The first place from `t` on where the element of the pattern at `p`, which stands behind a wildcard and is none itself, can match.
/// Where that element is an ASCII character, all places in between are skipped at memchr's speed.
#[inline]
fn seek(kind: Kind, pattern: &[u8], p: usize, text: &[u8], t: usize, escape: Option<u32>) -> Option<usize> {
    let (mut c, next) = utf8::decode(pattern, p);
    if escape == Some(c) {
        if next == pattern.len() {
            return None;
        }
        c = utf8::decode(pattern, next).0;
    } else if kind == Kind::Glob && c == '[' as u32 {
        return first(text, t, |d| set(pattern, next, d).is_some());
    }
    if c >= 0x80 {
        return first(text, t, |d| d == c);
    }
    let c = c as u8;
    let rest = &text[t..];
    let found = match kind {
        Kind::Like if c.is_ascii_alphabetic() => memchr::memchr2(c | 0x20, c & !0x20, rest),
        _ => memchr::memchr(c, rest),
    };
    found.map(|n| t + n)
}

/// Where the first character from `t` on is of which something holds.
#[inline(always)]
fn first(text: &[u8], mut t: usize, holds: impl Fn(u32) -> bool) -> Option<usize> {
    while t < text.len() {
        let (d, end) = utf8::decode(text, t);
        if holds(d) {
            return Some(t);
        }
        t = end;
    }
    None
}

enum Step {
    /// Pattern and text are at their ends.
    Done,
    /// A wildcard for any text; the pattern goes on here.
    Any(usize),
    /// One character matched; pattern and text go on here.
    Next(usize, usize),
    Fail,
}

impl Step {
    fn end(at_end: bool) -> Step {
        if at_end { Step::Done } else { Step::Fail }
    }
}

/// Matches one element of the pattern at `p` with the text at `t`.
#[inline]
fn one(kind: Kind, pattern: &[u8], p: usize, text: &[u8], t: usize, escape: Option<u32>) -> Step {
    let (c, next) = utf8::decode(pattern, p);
    let glob = kind == Kind::Glob;
    let mut literal = (c, next);
    if escape == Some(c) {
        if next == pattern.len() {
            return Step::Fail;
        }
        literal = utf8::decode(pattern, next);
    } else if c == if glob { '*' } else { '%' } as u32 {
        return Step::Any(next);
    } else if t == text.len() {
        return Step::Fail;
    } else if c == if glob { '?' } else { '_' } as u32 {
        return Step::Next(next, utf8::after(text, t));
    } else if glob && c == '[' as u32 {
        let (d, end) = utf8::decode(text, t);
        return match set(pattern, next, d) {
            Some(next) => Step::Next(next, end),
            None => Step::Fail,
        };
    }
    if t == text.len() {
        return Step::Fail;
    }
    let (d, end) = utf8::decode(text, t);
    let (c, next) = literal;
    let same = c == d || kind == Kind::Like && c < 0x80 && d < 0x80 && fold(c) == fold(d);
    if same { Step::Next(next, end) } else { Step::Fail }
}

#[inline]
fn fold(c: u32) -> u8 {
    (c as u8).to_ascii_lowercase()
}

/// Whether `c` is in the set whose inside starts at `p`; if so, where the pattern goes on behind its `]`.
fn set(pattern: &[u8], mut p: usize, c: u32) -> Option<usize> {
    let next = |p: &mut usize| {
        let (c, end) = if *p < pattern.len() { utf8::decode(pattern, *p) } else { (0, *p) };
        *p = end;
        c
    };
    let mut found = false;
    let mut invert = false;
    let mut prior = 0;
    let mut d = next(&mut p);
    if d == '^' as u32 {
        invert = true;
        d = next(&mut p);
    }
    if d == ']' as u32 {
        found = c == d;
        d = next(&mut p);
    }
    while d != 0 && d != ']' as u32 {
        let after = pattern.get(p).copied().unwrap_or(0);
        if d == '-' as u32 && after != b']' && after != 0 && prior > 0 {
            let high = next(&mut p);
            found |= c >= prior && c <= high;
            prior = 0;
        } else {
            found |= c == d;
            prior = d;
        }
        d = next(&mut p);
    }
    (d != 0 && found != invert).then_some(p)
}

/// `like(pattern, text[, escape])`.
pub fn like_function(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    call(Kind::Like, ctx, args)
}

/// `like()` under `PRAGMA case_sensitive_like`.
pub fn like_case_sensitive(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    call(Kind::LikeCase, ctx, args)
}

/// `glob(pattern, text)`.
pub fn glob_function(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    call(Kind::Glob, ctx, args)
}

/// `match(pattern, text)`: known, so that virtual tables can overload it.
pub fn match_function(_: &mut Context<'_>, _: &[Value]) -> Result<Value> {
    Err(Error::sql("unable to use function MATCH in the requested context"))
}

fn call(kind: Kind, ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    if let [Value::Text(pattern, _), Value::Text(text, _)] = args {
        limited(ctx, pattern)?;
        return Ok(Value::bool(matches(kind, utf8::to_nul(pattern), utf8::to_nul(text), None)));
    }
    // As with SQLITE_LIKE_DOESNT_MATCH_BLOBS, which distributions set (documentation page `compile`).
    if args[..2].iter().any(|v| matches!(v, Value::Blob(..))) {
        return Ok(Value::Int(0));
    }
    let mut rooms = [[0; 32]; 3];
    let [of_pattern, of_text, of_escape] = &mut rooms;
    let pattern = args[0].lent_text(of_pattern);
    limited(ctx, pattern)?;
    let mut escape = None;
    if let Some(e) = args.get(2) {
        if e.is_null() {
            return Ok(Value::Null);
        }
        let e = utf8::to_nul(e.lent_text(of_escape));
        if e.is_empty() || utf8::after(e, 0) != e.len() {
            return Err(Error::sql("ESCAPE expression must be a single character"));
        }
        escape = Some(utf8::decode(e, 0).0);
    }
    if args[0].is_null() || args[1].is_null() {
        return Ok(Value::Null);
    }
    let text = args[1].lent_text(of_text);
    Ok(Value::bool(matches(kind, utf8::to_nul(pattern), utf8::to_nul(text), escape)))
}

/// Refuses a pattern that is longer than allowed.
fn limited(ctx: &Context<'_>, pattern: &[u8]) -> Result<()> {
    match pattern.len() > ctx.host.limit(Limit::LikePatternLength) as usize {
        true => Err(Error::sql("LIKE or GLOB pattern too complex")),
        false => Ok(()),
    }
}
