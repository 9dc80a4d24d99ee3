//! Core scalar functions on values of any class (documentation page `lang_corefunc`); those on text are in `text`.

use crate::entry::{Code, Entry, pure, scalar};
use crate::inline;
use iolite_base::{Buf, Code as ResultCode, Encoding, Error, Limit, Result};
use iolite_ext::{Context, FunctionFlags, Inline};
use iolite_value::num::{self, Decimal, Round};
use iolite_value::utf8;
use iolite_value::{Value, compare};
use std::borrow::Cow;
use std::cmp::Ordering;

/// The longest text or blob.
pub(crate) fn limit(ctx: &Context<'_>) -> usize {
    ctx.host.limit(Limit::Length) as usize
}

/// The error for what would be longer than that.
pub(crate) fn too_big() -> Error {
    ResultCode::Toobig.into()
}

/// The error for a call with too few arguments of a function that takes any number.
pub(crate) fn wrong_count(name: &str) -> Error {
    Error::sql(format!("wrong number of arguments to function {name}()"))
}

/// A value as it is read as a number: of a blob the text counts that it spells in the database's encoding.
pub(crate) fn numeric<'v>(ctx: &Context<'_>, v: &'v Value) -> Result<Cow<'v, Value>> {
    Ok(match (v, ctx.host.encoding()) {
        (Value::Blob(..), e) if e != Encoding::Utf8 => Cow::Owned(v.blob_in_utf8(e)?),
        _ => Cow::Borrowed(v),
    })
}

fn abs(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    Ok(match &*numeric(ctx, &args[0])? {
        Value::Null => Value::Null,
        Value::Int(i) => Value::Int(i.checked_abs().ok_or_else(|| Error::sql("integer overflow"))?),
        v => {
            let r = v.to_real();
            Value::real(if r < 0.0 { -r } else { r })
        }
    })
}

fn changes(ctx: &mut Context<'_>, _: &[Value]) -> Result<Value> {
    Ok(Value::Int(ctx.host.changes()))
}

fn total_changes(ctx: &mut Context<'_>, _: &[Value]) -> Result<Value> {
    Ok(Value::Int(ctx.host.total_changes()))
}

/// Loading is allowed by another function of this name, which a connection gets then.
fn load_extension(_: &mut Context<'_>, _: &[Value]) -> Result<Value> {
    Err(Error::sql("not authorized"))
}

fn last_insert_rowid(ctx: &mut Context<'_>, _: &[Value]) -> Result<Value> {
    Ok(Value::Int(ctx.host.last_insert_rowid()))
}

fn type_of(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    Value::text(args[0].class().name())
}

fn subtype(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    Ok(Value::Int(args[0].subtype() as i64))
}

/// The first argument that no other one is on the `wrong` side of; the later of equal ones for `min`.
fn best(name: &str, ctx: &Context<'_>, args: &[Value], better: fn(Ordering) -> bool) -> Result<Value> {
    let (first, rest) = args.split_first().ok_or_else(|| wrong_count(name))?;
    let mut best = first;
    if best.is_null() {
        return Ok(Value::Null);
    }
    for v in rest {
        if v.is_null() {
            return Ok(Value::Null);
        }
        if better(compare::compare(best, v, ctx.collation)) {
            best = v;
        }
    }
    Ok(best.clone())
}

fn min(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    best("min", ctx, args, Ordering::is_ge)
}

fn max(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    best("max", ctx, args, Ordering::is_lt)
}

fn random(ctx: &mut Context<'_>, _: &[Value]) -> Result<Value> {
    let mut b = [0; 8];
    ctx.host.random(&mut b);
    let r = i64::from_le_bytes(b);
    // The smallest integer has no absolute value, so it never comes.
    Ok(Value::Int(if r == i64::MIN { i64::MAX } else { r }))
}

fn randomblob(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let n = numeric(ctx, &args[0])?.to_int().max(1) as u64;
    if n > limit(ctx) as u64 {
        return Err(too_big());
    }
    let mut b = iolite_base::alloc::zeroed(n as usize)?;
    ctx.host.random(&mut b);
    Value::blob(&b)
}

fn zeroblob(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let n = numeric(ctx, &args[0])?.to_int().max(0) as u64;
    if n > limit(ctx) as u64 {
        return Err(too_big());
    }
    Ok(Value::Blob(Buf::zeroed(n as usize)?.into_bytes(), 0))
}

/// `r` rounded to `n` digits behind the point.
fn rounded(r: f64, n: i64) -> f64 {
    // Beyond 2^52 there is nothing behind the point.
    if r.abs() >= 4_503_599_627_370_496.0 {
        return r;
    }
    if n == 0 {
        return (r + if r < 0.0 { -0.5 } else { 0.5 }) as i64 as f64;
    }
    let d = Decimal::of(r, Round::Fraction(n as i32), 26);
    let mut text = String::from(if r < 0.0 { "-0." } else { "0." });
    text.push_str(std::str::from_utf8(d.digits()).unwrap_or("0"));
    text.push_str(&format!("e{}", d.point));
    num::prefix(text.as_bytes()).number.to_real()
}

fn round(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let mut n = 0;
    if let Some(v) = args.get(1) {
        if v.is_null() {
            return Ok(Value::Null);
        }
        n = numeric(ctx, v)?.to_int().clamp(0, 30);
    }
    Ok(match &args[0] {
        Value::Null => Value::Null,
        v => Value::real(rounded(numeric(ctx, v)?.to_real(), n)),
    })
}

/// A value as an SQL literal.
pub fn quote(v: &Value) -> Result<Vec<u8>> {
    literal(v, false)
}

/// A value as an SQL literal in which control characters are escaped (`unistr_quote`).
pub fn quote_escaped(v: &Value) -> Result<Vec<u8>> {
    literal(v, true)
}

fn literal(v: &Value, escaped: bool) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    match v {
        Value::Null => out.extend_from_slice(b"NULL"),
        Value::Int(i) => out.extend_from_slice(num::int_text(*i, &mut [0; 24])),
        Value::Real(r) if r.is_infinite() => {
            out.extend_from_slice(if *r > 0.0 { b"9.0e+999" } else { b"-9.0e+999" });
        }
        Value::Real(r) => out.extend_from_slice(num::write_real(*r, 17, &mut [0; 32])),
        Value::Text(b, _) => {
            let text = utf8::to_nul(b);
            iolite_base::alloc::reserve(&mut out, text.len() + 2)?;
            crate::printf::quoted(&mut out, text, b'\'', true, escaped);
        }
        Value::Blob(b, _) => {
            iolite_base::alloc::reserve(&mut out, b.len() * 2 + 3)?;
            out.extend_from_slice(b"X'");
            hex_digits(&mut out, b);
            out.push(b'\'');
        }
    }
    Ok(out)
}

pub(crate) fn hex_digits(out: &mut Vec<u8>, bytes: &[u8]) {
    // Both digits of all bytes by arithmetic, of which the compiler makes vectors.
    let digit = |d: u8| b'0' + d + if d > 9 { 7 } else { 0 };
    let begin = out.len();
    out.resize(begin + 2 * bytes.len(), 0);
    for (pair, b) in out[begin..].as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *pair = [digit(b >> 4), digit(b & 15)];
    }
}

fn quote_function(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    bounded_text(ctx, &quote(&args[0])?)
}

fn unistr_quote(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    bounded_text(ctx, &quote_escaped(&args[0])?)
}

/// Text, unless it is too long.
pub(crate) fn bounded_text(ctx: &Context<'_>, text: &[u8]) -> Result<Value> {
    if text.len() > limit(ctx) { Err(too_big()) } else { Value::text(text) }
}

fn sqlite_version(_: &mut Context<'_>, _: &[Value]) -> Result<Value> {
    Value::text(iolite_base::SQLITE_VERSION)
}

fn iolite_version(_: &mut Context<'_>, _: &[Value]) -> Result<Value> {
    Value::text(iolite_base::IOLITE_VERSION)
}

fn sqlite_source_id(_: &mut Context<'_>, _: &[Value]) -> Result<Value> {
    Value::text(concat!("iolite ", env!("CARGO_PKG_VERSION")))
}

/// The options of SQLite whose behaviour is built in: what `PRAGMA compile_options`, `sqlite_compileoption_get()` and the C
/// library list. A feature enters this list when it is there.
pub const COMPILE_OPTIONS: &[&str] = &[
    "COMPILER=rustc",
    "ENABLE_BYTECODE_VTAB",
    "ENABLE_COLUMN_METADATA",
    "ENABLE_DBPAGE_VTAB",
    "ENABLE_DBSTAT_VTAB",
    "ENABLE_FTS3",
    "ENABLE_FTS3_PARENTHESIS",
    "ENABLE_FTS4",
    "ENABLE_FTS5",
    "ENABLE_GEOPOLY",
    "ENABLE_MATH_FUNCTIONS",
    "ENABLE_NORMALIZE",
    "ENABLE_OFFSET_SQL_FUNC",
    "ENABLE_PERCENTILE",
    "ENABLE_PREUPDATE_HOOK",
    "ENABLE_RTREE",
    "ENABLE_SESSION",
    "ENABLE_SETLK_TIMEOUT",
    "ENABLE_SNAPSHOT",
    "ENABLE_STMTVTAB",
    "ENABLE_UNLOCK_NOTIFY",
    "ENABLE_UPDATE_DELETE_LIMIT",
    "LIKE_DOESNT_MATCH_BLOBS",
    "SOUNDEX",
    "THREADSAFE=1",
    "USE_URI",
];

fn compileoption_get(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    match usize::try_from(args[0].to_int()).ok().and_then(|n| COMPILE_OPTIONS.get(n)) {
        Some(o) => Value::text(o),
        None => Ok(Value::Null),
    }
}

fn compileoption_used(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    if args[0].is_null() {
        return Ok(Value::Null);
    }
    let name = args[0].text_bytes()?;
    let name = name.get(..7).filter(|p| p.eq_ignore_ascii_case(b"SQLITE_")).map_or(&name[..], |_| &name[7..]);
    let used = COMPILE_OPTIONS.iter().any(|o| {
        let o = o.as_bytes();
        o.len() >= name.len()
            && o[..name.len()].eq_ignore_ascii_case(name)
            && (o.len() == name.len() || o[name.len()] == b'=')
    });
    Ok(Value::bool(used))
}

/// `sqlite_log(code, message)`: there is no log to write to from here; the call is accepted.
fn sqlite_log(_: &mut Context<'_>, _: &[Value]) -> Result<Value> {
    Ok(Value::Null)
}

const IMPURE: FunctionFlags = FunctionFlags::INNOCUOUS;
const SLOW: FunctionFlags = FunctionFlags::INNOCUOUS.and(FunctionFlags::SLOW_CHANGE);
const COLLATED: FunctionFlags = crate::PURE.and(FunctionFlags::NEEDS_COLLATION);

/// The table.
pub(crate) const TABLE: &[Entry] = &[
    pure(
        "abs",
        1,
        abs,
        &[
            "abs(-5) => 5",
            "abs(-5.5) => 5.5",
            "abs('-7x') => 7.0",
            "abs('x') => 0.0",
            "abs(NULL) => NULL",
            "abs(-9223372036854775808) => error: integer overflow",
        ],
    ),
    scalar("changes", 0, SLOW, changes, &[]),
    scalar("total_changes", 0, SLOW, total_changes, &[]),
    scalar("last_insert_rowid", 0, SLOW, last_insert_rowid, &[]),
    scalar("load_extension", 1, FunctionFlags::DIRECT_ONLY, load_extension, &[]),
    scalar("load_extension", 2, FunctionFlags::DIRECT_ONLY, load_extension, &[]),
    inline("coalesce", -4, Inline::Coalesce, &[]),
    inline("ifnull", 2, Inline::Coalesce, &[]),
    inline("iif", -4, Inline::Iif, &[]),
    inline("if", -4, Inline::Iif, &[]),
    Entry { name: "nullif", args: 2, flags: COLLATED, code: Code::Inline(Inline::Nullif), examples: &[] },
    inline("likelihood", 2, Inline::Likelihood, &[]),
    inline("likely", 1, Inline::Likely, &[]),
    inline("unlikely", 1, Inline::Likely, &[]),
    inline("sqlite_offset", 1, Inline::SqliteOffset, &[]),
    pure(
        "typeof",
        1,
        type_of,
        &[
            "typeof(NULL) => 'null'",
            "typeof(1) => 'integer'",
            "typeof(1.0) => 'real'",
            "typeof('1') => 'text'",
            "typeof(x'31') => 'blob'",
        ],
    ),
    scalar("subtype", 1, crate::PURE.and(FunctionFlags::SUBTYPE), subtype, &["subtype(json('1')) => 74"]),
    scalar(
        "min",
        -3,
        COLLATED,
        min,
        &["min(3, 1, 2) => 1", "min(1, NULL) => NULL", "min('b', 2, x'00') => 2"],
    ),
    scalar(
        "max",
        -3,
        COLLATED,
        max,
        &["max(3, 1, 2) => 3", "max(1, NULL) => NULL", "max('b', 2, x'00') => X'00'"],
    ),
    scalar("random", 0, IMPURE, random, &[]),
    scalar(
        "randomblob",
        1,
        IMPURE,
        randomblob,
        &["length(randomblob(5)) => 5", "length(randomblob(-5)) => 1"],
    ),
    pure(
        "zeroblob",
        1,
        zeroblob,
        &[
            "zeroblob(3) => X'000000'",
            "zeroblob(-1) => X''",
            "zeroblob(2000000000) => error: string or blob too big",
        ],
    ),
    pure("round", 1, round, &["round(2.5) => 3.0", "round(-2.5) => -3.0", "round(1e300) => 1.0e+300"]),
    pure(
        "round",
        2,
        round,
        &[
            "round(2.675, 2) => 2.67",
            "round(1234.5678, -2) => 1235.0",
            "round(0.285, 2) => 0.28",
            "round(1, NULL) => NULL",
            "round('x', 1) => 0.0",
        ],
    ),
    pure(
        "quote",
        1,
        quote_function,
        &[
            "quote('it''s') => '''it''''s'''",
            "quote(x'0aff') => 'X''0AFF'''",
            "quote(NULL) => 'NULL'",
            "quote(1e20) => '1.0e+20'",
            "quote(-9e999) => '-9.0e+999'",
        ],
    ),
    pure(
        "unistr_quote",
        1,
        unistr_quote,
        &["unistr_quote('a') => '''a'''", "unistr_quote(char(10) || '\\') => 'unistr(''\\u000a\\\\'')'"],
    ),
    scalar("sqlite_version", 0, SLOW, sqlite_version, &["sqlite_version() => '3.53.4'"]),
    scalar("iolite_version", 0, SLOW, iolite_version, &[]),
    scalar("sqlite_source_id", 0, SLOW, sqlite_source_id, &[]),
    scalar("sqlite_compileoption_get", 1, SLOW, compileoption_get, &["sqlite_compileoption_get(-1) => NULL"]),
    scalar(
        "sqlite_compileoption_used",
        1,
        SLOW,
        compileoption_used,
        &["sqlite_compileoption_used('SQLITE_THREADSAFE') => 1", "sqlite_compileoption_used('NO_SUCH') => 0"],
    ),
    pure("sqlite_log", 2, sqlite_log, &[]),
];
