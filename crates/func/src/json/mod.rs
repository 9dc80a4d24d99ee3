//! JSON functions (documentation page `json1`).
//!
//! Text is turned into JSONB first (`parse`); all work is done there (`path`), and the result is turned into text
//! again (`render`) or handed out as it is. Whether a text argument is JSON or a string is told by its subtype.

mod blob;
mod group;
mod parse;
mod path;
mod recent;
mod render;
mod scratch;
mod view;
mod writer;

pub use view::{Json, JsonChildren, JsonElement};

use crate::entry::{Entry, pure, scalar};
use crate::scalar::{limit, too_big};
use blob::{Element, kind, malformed, root};
use iolite_base::{Bytes, Error, Result};
use iolite_ext::{Context, FunctionFlags};
use iolite_value::utf8;
use iolite_value::{Value, num};
use path::{Change, Miss};
use render::SUBTYPE;
use std::rc::Rc;

/// A JSON argument as JSONB.
pub(crate) enum Blob {
    Given(Bytes),
    Made(Rc<parse::Parsed>),
}

impl std::ops::Deref for Blob {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Blob::Given(b) => b,
            Blob::Made(p) => &p.blob,
        }
    }
}

/// The JSON that an argument is; `None` for NULL.
pub(crate) fn argument(v: &Value) -> Result<Option<Blob>> {
    match v {
        Value::Null => return Ok(None),
        Value::Blob(b, _) if root(b).is_some() => return Ok(Some(Blob::Given(b.clone()))),
        _ => {}
    }
    let text = v.text_bytes()?;
    Ok(Some(Blob::Made(recent::parsed(utf8::to_nul(&text))?)))
}

fn whole(blob: &[u8]) -> Result<Element> {
    Element::read(blob, 0, blob.len())
}

/// A result as text with JSON's subtype.
fn text_result(ctx: &Context<'_>, blob: &[u8], e: Element) -> Result<Value> {
    scratch::with(|out| {
        render::text(out, blob, e)?;
        json_text(ctx, out)
    })
}

fn json_text(ctx: &Context<'_>, text: &[u8]) -> Result<Value> {
    if text.len() > limit(ctx) {
        return Err(too_big());
    }
    Ok(Value::Text(Bytes::copy_of(text)?, SUBTYPE))
}

fn blob_result(ctx: &Context<'_>, blob: &[u8]) -> Result<Value> {
    if blob.len() > limit(ctx) { Err(too_big()) } else { Value::blob(blob) }
}

/// A result as text or, for the functions whose names start with `jsonb`, as a blob.
fn result(ctx: &Context<'_>, blob: &[u8], binary: bool) -> Result<Value> {
    if binary { blob_result(ctx, blob) } else { text_result(ctx, blob, whole(blob)?) }
}

fn bad_path(path: &[u8]) -> Error {
    let mut text = b"bad JSON path: ".to_vec();
    crate::printf::quoted(&mut text, path, b'\'', true, false);
    Error::sql(String::from_utf8_lossy(&text))
}

/// A path argument without its `$`; `None` for NULL.
fn path_argument(v: &Value) -> Result<Option<Bytes>> {
    if v.is_null() {
        return Ok(None);
    }
    let mut b = v.text_bytes()?;
    let n = utf8::to_nul(&b).len();
    if n < b.len() {
        b = b.slice(0, n);
    }
    if b.first() != Some(&b'$') {
        return Err(bad_path(&b));
    }
    Ok(Some(b))
}

/// What a path finds; `None`: nothing.
fn lookup(blob: &[u8], path: &Bytes) -> Result<Option<Element>> {
    match path::find(blob, whole(blob)?, &path[1..]) {
        Ok(e) => Ok(Some(e)),
        Err(miss) => missed(miss, path).map(|()| None),
    }
}

/// As [`lookup`], by the right side of an arrow; errors show that as it is.
fn lookup_arrow(blob: &[u8], right: &Value) -> Result<Option<Element>> {
    let Some(path) = arrow_path(right)? else { return Ok(None) };
    match path::find(blob, whole(blob)?, &path[1..]) {
        Ok(e) => Ok(Some(e)),
        Err(Miss::Absent) => Ok(None),
        Err(miss) => missed(miss, utf8::to_nul(&right.text_bytes()?)).map(|()| None),
    }
}

fn missed(miss: Miss, path: &[u8]) -> Result<()> {
    match miss {
        Miss::Absent => Ok(()),
        Miss::BadPath => Err(bad_path(path)),
        Miss::NotAnItem => {
            let mut text = b"not an array element: ".to_vec();
            crate::printf::quoted(&mut text, path, b'\'', true, false);
            Err(Error::sql(String::from_utf8_lossy(&text)))
        }
        Miss::Error(e) => Err(e),
    }
}

/// Appends an SQL value as JSON text.
fn push_text(out: &mut Vec<u8>, v: &Value) -> Result<()> {
    match v {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Int(i) => out.extend_from_slice(num::int_text(*i, &mut [0; 24])),
        Value::Real(r) if r.is_infinite() => {
            out.extend_from_slice(if *r > 0.0 { b"9.0e+999" } else { b"-9.0e+999" });
        }
        Value::Real(r) => out.extend_from_slice(num::write_real(*r, 17, &mut [0; 32])),
        Value::Text(b, SUBTYPE) => {
            iolite_base::alloc::reserve(out, b.len())?;
            out.extend_from_slice(b);
        }
        Value::Text(b, _) => {
            iolite_base::alloc::reserve(out, b.len() + 2)?;
            render::quoted(out, b);
        }
        Value::Blob(b, _) => match root(b) {
            Some(e) => render::text(out, b, e)?,
            None => return Err(Error::sql("JSON cannot hold BLOB values")),
        },
    }
    Ok(())
}

/// Appends an SQL value as an element.
fn push_element(out: &mut Vec<u8>, v: &Value) -> Result<()> {
    match v {
        Value::Null => out.push(kind::NULL),
        Value::Int(i) => blob::push(out, kind::INT, num::int_text(*i, &mut [0; 24])),
        Value::Real(r) if r.is_infinite() => {
            blob::push(out, kind::FLOAT, if *r > 0.0 { b"9e999" } else { b"-9e999" });
        }
        Value::Real(r) => blob::push(out, kind::FLOAT, num::write_real(*r, 17, &mut [0; 32])),
        Value::Text(b, SUBTYPE) => match parse::parse(utf8::to_nul(b)) {
            Ok(p) => out.extend_from_slice(&p.blob),
            Err(_) => return Err(malformed()),
        },
        Value::Text(b, _) => blob::push(out, kind::TEXTRAW, b),
        Value::Blob(b, _) => {
            if root(b).is_none() {
                return Err(Error::sql("JSON cannot hold BLOB values"));
            }
            out.extend_from_slice(b);
        }
    }
    Ok(())
}

/// JSON text that was put together, as the result of a `json` or `jsonb` function.
fn built(ctx: &Context<'_>, text: &[u8], binary: bool) -> Result<Value> {
    if !binary {
        return json_text(ctx, text);
    }
    // What is put together from arguments has the subtype even as a blob.
    match parse::parse(text) {
        Ok(p) => Ok(match blob_result(ctx, &p.blob)? {
            Value::Blob(b, _) => Value::Blob(b, SUBTYPE),
            v => v,
        }),
        Err(_) => Err(malformed()),
    }
}

fn json(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    match argument(&args[0])? {
        Some(b) => result(ctx, &b, false),
        None => Ok(Value::Null),
    }
}

fn jsonb(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    match argument(&args[0])? {
        Some(b) => result(ctx, &b, true),
        None => Ok(Value::Null),
    }
}

fn make_array(ctx: &Context<'_>, args: &[Value], binary: bool) -> Result<Value> {
    scratch::with(|out| {
        out.push(b'[');
        for (i, v) in args.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            push_text(out, v)?;
        }
        out.push(b']');
        built(ctx, out, binary)
    })
}

fn json_array(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    make_array(ctx, args, false)
}

fn jsonb_array(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    make_array(ctx, args, true)
}

fn make_object(ctx: &Context<'_>, args: &[Value], binary: bool) -> Result<Value> {
    if args.len() % 2 == 1 {
        return Err(Error::sql("json_object() requires an even number of arguments"));
    }
    // Labels are complained of before values.
    if args.iter().step_by(2).any(|label| !matches!(label, Value::Text(..))) {
        return Err(Error::sql("json_object() labels must be TEXT"));
    }
    scratch::with(|out| {
        out.push(b'{');
        for (i, pair) in args.chunks_exact(2).enumerate() {
            let Value::Text(label, _) = &pair[0] else { continue };
            if i > 0 {
                out.push(b',');
            }
            render::quoted(out, label);
            out.push(b':');
            push_text(out, &pair[1])?;
        }
        out.push(b'}');
        built(ctx, out, binary)
    })
}

fn json_object(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    make_object(ctx, args, false)
}

fn jsonb_object(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    make_object(ctx, args, true)
}

fn array_length(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let Some(b) = argument(&args[0])? else { return Ok(Value::Null) };
    let mut e = whole(&b)?;
    if let Some(path) = args.get(1) {
        let Some(path) = path_argument(path)? else { return Ok(Value::Null) };
        match lookup(&b, &path)? {
            Some(found) => e = found,
            None => return Ok(Value::Null),
        }
    }
    let mut n = 0;
    if e.kind == kind::ARRAY {
        let mut children = blob::Children::of(&b, e);
        while children.next()?.is_some() {
            n += 1;
        }
    }
    Ok(Value::Int(n))
}

/// What an element is to SQL: a scalar's value, a container as JSON.
fn extracted(ctx: &Context<'_>, blob: &[u8], e: Element, binary: bool) -> Result<Value> {
    match render::sql_value(blob, e)? {
        Some(v) => Ok(v),
        None if binary => blob_result(ctx, e.bytes(blob)),
        None => text_result(ctx, blob, e),
    }
}

fn extract(ctx: &Context<'_>, args: &[Value], binary: bool) -> Result<Value> {
    let Some((first, paths)) = args.split_first().filter(|(_, p)| !p.is_empty()) else {
        return Ok(Value::Null);
    };
    let Some(b) = argument(first)? else { return Ok(Value::Null) };
    if let [path] = paths {
        let Some(path) = path_argument(path)? else { return Ok(Value::Null) };
        return match lookup(&b, &path)? {
            Some(e) => extracted(ctx, &b, e, binary),
            None => Ok(Value::Null),
        };
    }
    let mut out = vec![b'['];
    for (i, path) in paths.iter().enumerate() {
        let Some(path) = path_argument(path)? else { return Ok(Value::Null) };
        if i > 0 {
            out.push(b',');
        }
        match lookup(&b, &path)? {
            Some(e) => render::text(&mut out, &b, e)?,
            None => out.extend_from_slice(b"null"),
        }
    }
    out.push(b']');
    if binary {
        let p = parse::parse(&out).map_err(|_| malformed())?;
        return blob_result(ctx, &p.blob);
    }
    json_text(ctx, &out)
}

fn json_extract(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    extract(ctx, args, false)
}

fn jsonb_extract(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    extract(ctx, args, true)
}

/// The path that the right side of `->` means: a path, a label, or an index.
fn arrow_path(v: &Value) -> Result<Option<Bytes>> {
    if v.is_null() {
        return Ok(None);
    }
    let b = v.text_bytes()?;
    let text = utf8::to_nul(&b);
    if text.is_empty() {
        return Err(bad_path(text));
    }
    if text.first() == Some(&b'$') {
        return Ok(Some(b.slice(0, text.len())));
    }
    let mut path = b"$".to_vec();
    match v {
        Value::Int(i) => {
            path.extend_from_slice(if *i < 0 { b"[#" } else { b"[" });
            path.extend_from_slice(text);
            path.push(b']');
        }
        _ if text.len() > 2 && text[0] == b'[' && text[text.len() - 1] == b']' => {
            path.extend_from_slice(text)
        }
        _ => {
            path.extend_from_slice(b".\"");
            path.extend_from_slice(text);
            path.push(b'"');
        }
    }
    Ok(Some(Bytes::copy_of(&path)?))
}

fn arrow(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let Some(b) = argument(&args[0])? else { return Ok(Value::Null) };
    match lookup_arrow(&b, &args[1])? {
        Some(e) => text_result(ctx, &b, e),
        None => Ok(Value::Null),
    }
}

fn arrow_text(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let Some(b) = argument(&args[0])? else { return Ok(Value::Null) };
    Ok(match lookup_arrow(&b, &args[1])? {
        Some(e) => match extracted(ctx, &b, e, false)? {
            Value::Text(t, _) => Value::Text(t, 0),
            v => v,
        },
        None => Value::Null,
    })
}

/// `json_set` and its kin.
fn edit(ctx: &Context<'_>, args: &[Value], how: Change, name: &str, binary: bool) -> Result<Value> {
    let Some((first, pairs)) = args.split_first() else { return Ok(Value::Null) };
    if pairs.len() % 2 == 1 {
        return Err(Error::sql(format!("json_{name}() needs an odd number of arguments")));
    }
    let Some(b) = argument(first)? else { return Ok(Value::Null) };
    scratch::with_copy(&b, 32 * pairs.len(), |blob| {
        for pair in pairs.chunks_exact(2) {
            let Some(path) = path_argument(&pair[0])? else { continue };
            scratch::with(|value| {
                push_element(value, &pair[1])?;
                match path::change(blob, &path[1..], how, value) {
                    Err(miss) => missed(miss, &path),
                    Ok(_) => Ok(()),
                }
            })?;
        }
        result(ctx, blob, binary)
    })
}

macro_rules! edits {
    ($($plain:ident $binary:ident $how:ident $name:literal;)*) => {$(
        fn $plain(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
            edit(ctx, args, Change::$how, $name, false)
        }
        fn $binary(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
            edit(ctx, args, Change::$how, $name, true)
        }
    )*};
}

edits! {
    json_insert jsonb_insert Insert "insert";
    json_replace jsonb_replace Replace "replace";
    json_set jsonb_set Set "set";
    json_array_insert jsonb_array_insert InsertItem "array_insert";
}

fn remove(ctx: &Context<'_>, args: &[Value], binary: bool) -> Result<Value> {
    let Some((first, paths)) = args.split_first() else { return Ok(Value::Null) };
    let Some(b) = argument(first)? else { return Ok(Value::Null) };
    scratch::with_copy(&b, 0, |blob| {
        for path in paths {
            let Some(path) = path_argument(path)? else { return Ok(Value::Null) };
            if path.len() == 1 {
                return Ok(Value::Null);
            }
            if let Err(miss) = path::change(blob, &path[1..], Change::Remove, b"") {
                missed(miss, &path)?;
            }
        }
        result(ctx, blob, binary)
    })
}

fn json_remove(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    remove(ctx, args, false)
}

fn jsonb_remove(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    remove(ctx, args, true)
}

fn patch(ctx: &Context<'_>, args: &[Value], binary: bool) -> Result<Value> {
    let Some(target) = argument(&args[0])? else { return Ok(Value::Null) };
    let Some(patch) = argument(&args[1])? else { return Ok(Value::Null) };
    scratch::with_copy(&target, patch.len(), |out| {
        path::patch(out, &patch)?;
        result(ctx, out, binary)
    })
}

fn json_patch(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    patch(ctx, args, false)
}

fn jsonb_patch(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    patch(ctx, args, true)
}

fn json_pretty(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let Some(b) = argument(&args[0])? else { return Ok(Value::Null) };
    let indent = match args.get(1) {
        None | Some(Value::Null) => None,
        Some(v) => Some(v.text_bytes()?),
    };
    let mut out = Vec::new();
    render::pretty(&mut out, &b, whole(&b)?, indent.as_deref().map_or(b"    ", utf8::to_nul))?;
    crate::scalar::bounded_text(ctx, &out)
}

fn json_quote(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    scratch::with(|out| {
        push_text(out, &args[0])?;
        json_text(ctx, out)
    })
}

fn json_type(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let Some(b) = argument(&args[0])? else { return Ok(Value::Null) };
    let mut e = whole(&b)?;
    if let Some(path) = args.get(1) {
        let Some(path) = path_argument(path)? else { return Ok(Value::Null) };
        match lookup(&b, &path)? {
            Some(found) => e = found,
            None => return Ok(Value::Null),
        }
    }
    Value::text(render::type_name(e))
}

fn json_valid(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let mut flags = 1;
    if let Some(v) = args.get(1) {
        flags = v.to_int();
        if !(1..=15).contains(&flags) {
            return Err(Error::sql("FLAGS parameter to json_valid() must be between 1 and 15"));
        }
    }
    let is_text = |text: &[u8]| match recent::parsed(utf8::to_nul(text)) {
        Ok(p) => flags & 2 != 0 || flags & 1 != 0 && !p.json5,
        Err(_) => false,
    };
    Ok(Value::bool(match &args[0] {
        Value::Null => return Ok(Value::Null),
        Value::Blob(b, _) if root(b).is_some() => flags & 4 != 0 || flags & 8 != 0 && blob::check(b) == 0,
        v => flags & 3 != 0 && is_text(&v.text_bytes()?),
    }))
}

fn error_position(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let v = &args[0];
    if v.is_null() {
        return Ok(Value::Null);
    }
    if let Value::Blob(b, _) = v
        && root(b).is_some()
    {
        return Ok(Value::Int(blob::check(b) as i64));
    }
    let text = v.text_bytes()?;
    let text = utf8::to_nul(&text);
    Ok(Value::Int(match parse::parse(text) {
        Ok(_) => 0,
        // Counted in characters: those that start before the offset.
        Err(at) => text[..at.min(text.len())].iter().filter(|b| **b & 0xc0 != 0x80).count() as i64 + 1,
    }))
}

const TYPED: FunctionFlags = crate::PURE.and(FunctionFlags::SUBTYPE);

/// The table.
pub(crate) const TABLE: &[Entry] = &[
    scalar(
        "json",
        1,
        TYPED,
        json,
        &[
            "json(' { \"this\" : \"is\", \"a\": [ \"test\" ] } ') => '{\"this\":\"is\",\"a\":[\"test\"]}'",
            "json('{a:.5,b:0x1f,c:+1.,}') => '{\"a\":0.5,\"b\":31,\"c\":1.0}'",
            "json(x'1331') => '1'",
            "json('[1') => error: malformed JSON",
            "json(NULL) => NULL",
        ],
    ),
    pure(
        "jsonb",
        1,
        jsonb,
        &["jsonb('[1,\"a\\n\"]') => X'6B133138615C6E'", "jsonb('{\"a\":null}') => X'3C176100'"],
    ),
    scalar(
        "json_array",
        -1,
        TYPED,
        json_array,
        &[
            "json_array(1, NULL, '3', json('[4,5]'), 6.5) => '[1,null,\"3\",[4,5],6.5]'",
            "json_array() => '[]'",
            "json_array(x'00aa') => error: JSON cannot hold BLOB values",
        ],
    ),
    scalar("jsonb_array", -1, TYPED, jsonb_array, &["jsonb_array(1, 'x') => X'4B13311778'"]),
    scalar(
        "json_object",
        -1,
        TYPED,
        json_object,
        &[
            "json_object('a', 2, 'c', json_array(4)) => '{\"a\":2,\"c\":[4]}'",
            "json_object('a') => error: json_object() requires an even number of arguments",
            "json_object(1, 2) => error: json_object() labels must be TEXT",
        ],
    ),
    scalar("jsonb_object", -1, TYPED, jsonb_object, &["jsonb_object('k', NULL) => X'3C176B00'"]),
    pure(
        "json_array_length",
        1,
        array_length,
        &["json_array_length('[1,2]') => 2", "json_array_length('{}') => 0"],
    ),
    pure("json_array_length", 2, array_length, &["json_array_length('{\"a\":[1]}', '$.b') => NULL"]),
    scalar(
        "json_extract",
        -1,
        TYPED,
        json_extract,
        &[
            "json_extract('{\"a\":{\"b\":[1,2.5,\"x\"]}}', '$.a.b[#-1]') => 'x'",
            "json_extract('{\"a\":[1]}', '$.a') => '[1]'",
            "json_extract('{\"a\":1}', '$.a', '$.b') => '[1,null]'",
            "json_extract('{}', 'a') => error: bad JSON path: 'a'",
            "json_extract('{\"a\":1}') => NULL",
        ],
    ),
    pure("jsonb_extract", -1, jsonb_extract, &["jsonb_extract('[1,[2]]', '$[1]') => X'2B1332'"]),
    scalar(
        "->",
        2,
        TYPED,
        arrow,
        &["'{\"a\":\"x\"}' -> 'a' => '\"x\"'", "'[1,2]' -> 1 => '2'", "'[1]' -> 5 => NULL"],
    ),
    pure("->>", 2, arrow_text, &["'{\"a\":\"x\"}' ->> '$.a' => 'x'", "'[1,2]' ->> -1 => 2"]),
    scalar(
        "json_insert",
        -1,
        TYPED,
        json_insert,
        &["json_insert('{\"a\":1}', '$.a', 2, '$.b', 3) => '{\"a\":1,\"b\":3}'"],
    ),
    scalar("jsonb_insert", -1, TYPED, jsonb_insert, &["jsonb_insert('[]', '$[0]', 1) => X'2B1331'"]),
    scalar(
        "json_replace",
        -1,
        TYPED,
        json_replace,
        &["json_replace('{\"a\":1}', '$.a', 2, '$.b', 3) => '{\"a\":2}'"],
    ),
    scalar("jsonb_replace", -1, TYPED, jsonb_replace, &["jsonb_replace('[0]', '$[0]', 1) => X'2B1331'"]),
    scalar(
        "json_set",
        -1,
        TYPED,
        json_set,
        &[
            "json_set('{}', '$.a.b[0]', json('[1]')) => '{\"a\":{\"b\":[[1]]}}'",
            "json_set('[1]', '$[#]', 'x') => '[1,\"x\"]'",
            "json_set('[1]', '$[2]', 2) => '[1]'",
            "json_set('{}', '$.a') => error: json_set() needs an odd number of arguments",
        ],
    ),
    scalar("jsonb_set", -1, TYPED, jsonb_set, &["jsonb_set('{}', '$.a', 'x') => X'4C1A611A78'"]),
    scalar(
        "json_array_insert",
        -1,
        TYPED,
        json_array_insert,
        &[
            "json_array_insert('[1,2,3]', '$[1]', 'new') => '[1,\"new\",2,3]'",
            "json_array_insert('{\"a\":[]}', '$.a', 9) => error: not an array element: '$.a'",
        ],
    ),
    scalar(
        "jsonb_array_insert",
        -1,
        TYPED,
        jsonb_array_insert,
        &["jsonb_array_insert('[2]', '$[0]', 1) => X'4B13311332'"],
    ),
    scalar(
        "json_remove",
        -1,
        TYPED,
        json_remove,
        &[
            "json_remove('[0,1,2,3,4]', '$[#-1]', '$[0]') => '[1,2,3]'",
            "json_remove('{\"x\":25}', '$') => NULL",
        ],
    ),
    pure("jsonb_remove", -1, jsonb_remove, &["jsonb_remove('[1,2]', '$[0]') => X'2B1332'"]),
    scalar(
        "json_patch",
        2,
        TYPED,
        json_patch,
        &[
            "json_patch('{\"a\":{\"x\":1,\"y\":2},\"b\":3}', '{\"a\":{\"y\":9},\"c\":8}') => '{\"a\":{\"x\":1,\"y\":9},\"b\":3,\"c\":8}'",
            "json_patch('{\"a\":1,\"b\":2}', '{\"a\":null,\"c\":{\"d\":null}}') => '{\"b\":2,\"c\":{}}'",
        ],
    ),
    pure("jsonb_patch", 2, jsonb_patch, &["jsonb_patch('{}', '[1]') => X'2B1331'"]),
    pure("json_pretty", 1, json_pretty, &["json_pretty('[]') => '[]'"]),
    pure("json_pretty", 2, json_pretty, &["json_pretty('[1,{}]', '-') => '[\n-1,\n-{}\n]'"]),
    scalar(
        "json_quote",
        1,
        TYPED,
        json_quote,
        &["json_quote('a\"b') => '\"a\\\"b\"'", "json_quote(json('[1]')) => '[1]'"],
    ),
    pure("json_type", 1, json_type, &["json_type('[1]') => 'array'", "json_type('1e5') => 'real'"]),
    pure(
        "json_type",
        2,
        json_type,
        &["json_type('[null]', '$[0]') => 'null'", "json_type('[1]', '$[9]') => NULL"],
    ),
    pure(
        "json_valid",
        1,
        json_valid,
        &["json_valid('{\"x\":35}') => 1", "json_valid('{x:35}') => 0", "json_valid(NULL) => NULL"],
    ),
    pure(
        "json_valid",
        2,
        json_valid,
        &[
            "json_valid('{x:35}', 6) => 1",
            "json_valid(x'1341', 4) => 1",
            "json_valid(x'1341', 8) => 0",
            "json_valid('1', 0) => error: FLAGS parameter to json_valid() must be between 1 and 15",
        ],
    ),
    pure(
        "json_error_position",
        1,
        error_position,
        &[
            "json_error_position('[1,,2]') => 4",
            "json_error_position('[1]') => 0",
            "json_error_position('[\"ä\",x]') => 6",
        ],
    ),
    group::JSON_GROUP_ARRAY,
    group::JSONB_GROUP_ARRAY,
    group::JSON_GROUP_OBJECT,
    group::JSONB_GROUP_OBJECT,
];
