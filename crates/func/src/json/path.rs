//! Paths such as `$.a.b[2]`, what they find, and how they change a blob.
//!
//! A path is read step by step along the elements, as SQLite does: what is wrong behind the point where nothing is
//! found is not noticed.

use super::blob::{self, Children, Element, kind, malformed};
use super::render::unescaped;
use iolite_base::{Error, Result};

/// A path's step.
enum Step<'a> {
    /// The path's end.
    End,
    /// `.label`; whether the label has escapes.
    Label(&'a [u8], bool),
    /// `[3]`, or counted from the array's end.
    Index(Place),
}

#[derive(Clone, Copy)]
enum Place {
    Front(u64),
    /// `[#-3]`; 0: behind the last element.
    Back(u64),
}

/// Why a path leads nowhere.
pub(crate) enum Miss {
    /// There is no such element.
    Absent,
    /// The path is no path.
    BadPath,
    /// The path of `json_array_insert` is none to an array's element.
    NotAnItem,
    /// Something else.
    Error(Error),
}

impl From<Error> for Miss {
    fn from(e: Error) -> Miss {
        Miss::Error(e)
    }
}

/// Reads the step at the start of `path`; the rest.
fn step(path: &[u8]) -> std::result::Result<(Step<'_>, &[u8]), Miss> {
    match path.first() {
        None => Ok((Step::End, path)),
        Some(b'.') => {
            let path = &path[1..];
            if path.first() == Some(&b'"') {
                let mut i = 1;
                while i < path.len() && path[i] != b'"' {
                    i += if path[i] == b'\\' && i + 1 < path.len() { 2 } else { 1 };
                }
                if i >= path.len() {
                    return Err(Miss::BadPath);
                }
                let label = &path[1..i];
                return Ok((Step::Label(label, label.contains(&b'\\')), &path[i + 1..]));
            }
            let n = path.iter().position(|b| matches!(b, b'.' | b'[')).unwrap_or(path.len());
            if n == 0 { Err(Miss::BadPath) } else { Ok((Step::Label(&path[..n], false), &path[n..])) }
        }
        Some(b'[') => {
            let number = |from: usize| {
                let digits = path[from..].iter().take_while(|b| b.is_ascii_digit());
                let (mut v, mut n) = (0u64, 0);
                for d in digits {
                    v = v.saturating_mul(10).saturating_add((d - b'0') as u64);
                    n += 1;
                }
                (v, from + n)
            };
            let (place, end) = if path.get(1) == Some(&b'#') {
                if path.get(2) == Some(&b'-') && path.get(3).is_some_and(u8::is_ascii_digit) {
                    let (v, end) = number(3);
                    (Place::Back(v), end)
                } else {
                    (Place::Back(0), 2)
                }
            } else {
                let (v, end) = number(1);
                if end == 1 {
                    return Err(Miss::BadPath);
                }
                (Place::Front(v), end)
            };
            if path.get(end) != Some(&b']') {
                return Err(Miss::BadPath);
            }
            Ok((Step::Index(place), &path[end + 1..]))
        }
        Some(_) => Err(Miss::BadPath),
    }
}

/// Whether two labels are the same. Most that are not differ in length or at their start, which is cheaper to see than by a call.
#[inline(always)]
fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.first() == b.first() && a == b
}

/// Whether a label in a blob is the one in a path.
#[inline]
fn same_label(blob: &[u8], e: Element, label: &[u8], escaped: bool) -> bool {
    let p = e.payload(blob);
    let plain = e.kind == kind::TEXT || e.kind == kind::TEXTRAW;
    if plain && !escaped {
        return same_bytes(p, label);
    }
    let wanted = if escaped { unescaped(kind::TEXT5, label) } else { label.to_vec() };
    unescaped(e.kind, p) == wanted
}

/// Whether two labels of blobs are the same.
#[inline]
fn same_labels(a: &[u8], ea: Element, b: &[u8], eb: Element) -> bool {
    let plain = |e: Element| e.kind == kind::TEXT || e.kind == kind::TEXTRAW;
    if plain(ea) && plain(eb) {
        return same_bytes(ea.payload(a), eb.payload(b));
    }
    unescaped(ea.kind, ea.payload(a)) == unescaped(eb.kind, eb.payload(b))
}

/// What one step finds in an element: the found one with its label; or, where there is none, whether a new one could
/// be appended for it.
enum Hit {
    Found(Element, Option<Element>),
    Append,
    Nothing,
}

/// The value of the first label of this name in an object.
#[inline(always)]
fn labelled(blob: &[u8], e: Element, label: &[u8], escaped: bool) -> Result<Hit> {
    let mut at = e.body;
    while at < e.end {
        let l = Element::try_read(blob, at, e.end).filter(Element::is_text).ok_or_else(malformed)?;
        let v = Element::try_read(blob, l.end, e.end).ok_or_else(malformed)?;
        if same_label(blob, l, label, escaped) {
            return Ok(Hit::Found(v, Some(l)));
        }
        at = v.end;
    }
    Ok(Hit::Append)
}

#[inline(always)]
fn take_step(blob: &[u8], e: Element, step: &Step<'_>) -> Result<Hit> {
    match step {
        Step::Label(label, escaped) => {
            if e.kind != kind::OBJECT {
                return Ok(Hit::Nothing);
            }
            labelled(blob, e, label, *escaped)
        }
        Step::Index(place) => {
            if e.kind != kind::ARRAY {
                return Ok(Hit::Nothing);
            }
            let wanted = match *place {
                Place::Front(n) => n,
                Place::Back(n) => {
                    let mut count = 0u64;
                    let mut children = Children::of(blob, e);
                    while children.next()?.is_some() {
                        count += 1;
                    }
                    match count.checked_sub(n) {
                        Some(k) => k,
                        None => return Ok(Hit::Nothing),
                    }
                }
            };
            let mut place = e.body;
            let mut at = 0;
            while place < e.end {
                let v = Element::try_read(blob, place, e.end).ok_or_else(malformed)?;
                if at == wanted {
                    return Ok(Hit::Found(v, None));
                }
                place = v.end;
                at += 1;
            }
            Ok(if at == wanted { Hit::Append } else { Hit::Nothing })
        }
        Step::End => Ok(Hit::Nothing),
    }
}

/// Reads the step at the start of `path`, which is to be taken from `e`: an index into what is no array leads
/// nowhere, however it goes on.
#[inline(always)]
fn step_from<'a>(e: Element, path: &'a [u8]) -> std::result::Result<(Step<'a>, &'a [u8]), Miss> {
    if path.first() == Some(&b'[') && e.kind != kind::ARRAY {
        return Err(Miss::Absent);
    }
    step(path)
}

/// Follows `path` (without its `$`) from `e`.
pub(crate) fn find(blob: &[u8], e: Element, path: &[u8]) -> std::result::Result<Element, Miss> {
    labelled_end(blob, e, path).map(|(_, e)| e)
}

/// As [`find`]; with the label, if the last step has one.
#[inline(always)]
pub(crate) fn labelled_end(
    blob: &[u8],
    mut e: Element,
    mut path: &[u8],
) -> std::result::Result<(Option<Element>, Element), Miss> {
    let mut label = None;
    loop {
        let (s, rest) = step_from(e, path)?;
        if matches!(s, Step::End) {
            return Ok((label, e));
        }
        match take_step(blob, e, &s)? {
            Hit::Found(v, l) => (label, e) = (l, v),
            _ => return Err(Miss::Absent),
        }
        path = rest;
    }
}

/// How a path changes a blob.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Only what is not there.
    Insert,
    /// Only what is there.
    Replace,
    Set,
    Remove,
    /// A new element before the one that the path finds.
    InsertItem,
}

/// Changes what `path` (without its `$`) leads to; `value` is an element. `false`: nothing was to be changed.
pub(crate) fn change(
    blob: &mut Vec<u8>,
    path: &[u8],
    how: Change,
    value: &[u8],
) -> std::result::Result<bool, Miss> {
    let root = Element::read(blob, 0, blob.len())?;
    // The containers on the way, whose sizes change with their content.
    let mut parents: Vec<Element> = Vec::with_capacity(4);
    let mut e = root;
    let mut label = None;
    let mut item = false;
    let mut path = path;
    let creates = matches!(how, Change::Insert | Change::Set | Change::InsertItem);
    loop {
        let (s, rest) = step_from(e, path)?;
        if matches!(s, Step::End) {
            break;
        }
        match take_step(blob, e, &s)? {
            Hit::Found(v, l) => {
                parents.push(e);
                item = matches!(s, Step::Index(_));
                e = v;
                label = l;
                path = rest;
            }
            Hit::Append if creates => {
                let mut new = Vec::with_capacity(path.len() + value.len() + 16);
                if !build(&mut new, &s, rest, how, value)? {
                    return Ok(false);
                }
                parents.push(e);
                splice(blob, &mut parents, e.end, e.end, &new);
                return Ok(true);
            }
            _ => return Err(Miss::Absent),
        }
    }
    let (from, to, new) = match how {
        Change::Insert => return Ok(false),
        Change::Replace | Change::Set => (e.start, e.end, value),
        Change::Remove => (label.map_or(e.start, |l| l.start), e.end, &b""[..]),
        // The whole JSON is no item, and stays as it is.
        Change::InsertItem if parents.is_empty() => return Ok(false),
        Change::InsertItem if !item => return Err(Miss::NotAnItem),
        Change::InsertItem => (e.start, e.start, value),
    };
    splice(blob, &mut parents, from, to, new);
    Ok(true)
}

/// Appends what a container needs for `step` to be found, with all that the rest of the path asks for inside of it.
/// `false`: the rest asks for what a new container cannot have.
fn build(
    out: &mut Vec<u8>,
    first: &Step<'_>,
    mut path: &[u8],
    how: Change,
    value: &[u8],
) -> std::result::Result<bool, Miss> {
    if how == Change::InsertItem && !matches!(path.last(), Some(b']') | None)
        || how == Change::InsertItem && path.is_empty() && !matches!(first, Step::Index(_))
    {
        return Err(Miss::NotAnItem);
    }
    let push_label = |out: &mut Vec<u8>, s: &Step<'_>| {
        if let Step::Label(label, escaped) = s {
            blob::push(out, if *escaped { kind::TEXT5 } else { kind::TEXTRAW }, label);
        }
    };
    push_label(out, first);
    // None is open for a path whose last step makes the new element.
    let mut open = Vec::new();
    loop {
        let (s, rest) = step(path)?;
        match s {
            Step::End => break,
            Step::Label(..) => {
                open.push(blob::open(out, kind::OBJECT));
                push_label(out, &s);
            }
            Step::Index(Place::Front(0) | Place::Back(0)) => {
                open.push(blob::open(out, kind::ARRAY));
            }
            Step::Index(_) => return Err(Miss::Absent),
        }
        path = rest;
    }
    out.extend_from_slice(value);
    while let Some(start) = open.pop() {
        blob::close(out, start);
    }
    Ok(true)
}

/// Puts `new` in place of `blob[from..to]`, which lies in all of `parents`, and corrects their sizes, innermost first.
/// The parents are afterwards what they have become; answers by how much `from` has moved, since headers before it were changed.
fn splice(blob: &mut Vec<u8>, parents: &mut [Element], from: usize, to: usize, new: &[u8]) -> isize {
    let widened = widen(new, (to - from).saturating_sub(new.len()));
    put(blob, parents, from, to, widened.as_deref().unwrap_or(new))
}

/// As [`splice`], with `new` as it is.
fn put(blob: &mut Vec<u8>, parents: &mut [Element], from: usize, to: usize, new: &[u8]) -> isize {
    blob::replace(blob, from, to, new);
    let mut grown = new.len() as isize - (to - from) as isize;
    let mut moved = 0;
    // As in SQLite headers stay where sizes do, even those that are longer than need be.
    if grown == 0 {
        return 0;
    }
    for i in (0..parents.len()).rev() {
        let p = &mut parents[i];
        let len = ((p.end - p.body) as isize + grown) as usize;
        let (header, n) = blob::header(p.kind, len);
        let longer = n as isize - (p.body - p.start) as isize;
        blob::replace(blob, p.start, p.body, &header[..n]);
        (p.body, p.end) = (p.start + n, p.start + n + len);
        grown += longer;
        moved += longer;
        if longer != 0 {
            for inner in &mut parents[i + 1..] {
                for place in [&mut inner.start, &mut inner.body, &mut inner.end] {
                    *place = place.wrapping_add_signed(longer);
                }
            }
        }
    }
    moved
}

/// The element `new` with a header that is `by` bytes longer, if there is such a header. SQLite fills the room of a
/// larger element so, rather than move what follows; the bytes of a changed blob agree with it.
fn widen(new: &[u8], by: usize) -> Option<Vec<u8>> {
    let first = *new.first()?;
    let (kind, size) = (first & 15, (first >> 4) as usize);
    if by == 0 || kind <= kind::FALSE {
        return None;
    }
    let had = if size < 12 { 0 } else { 1usize << (size - 12) };
    let wanted = had + by;
    if !matches!(wanted, 1 | 2 | 4 | 8) {
        return None;
    }
    let len = new.len() - 1 - had;
    let mut out = vec![(12 + wanted.trailing_zeros() as u8) << 4 | kind];
    out.extend_from_slice(&(len as u64).to_be_bytes()[8 - wanted..]);
    out.extend_from_slice(&new[1 + had..]);
    Some(out)
}

/// `json_patch`: merges `patch` into a blob, after RFC 7396.
pub(crate) fn patch(blob: &mut Vec<u8>, patch: &[u8]) -> Result<()> {
    let mut way = Vec::with_capacity(4);
    way.push(Element::read(blob, 0, blob.len())?);
    merge(blob, &mut way, patch, Element::read(patch, 0, patch.len())?)
}

/// Merges `pe` into the last element of `way`, which leads there from the blob's root through objects.
fn merge(blob: &mut Vec<u8>, way: &mut Vec<Element>, patch: &[u8], pe: Element) -> Result<()> {
    let Some((last, parents)) = way.split_last_mut() else { return Ok(()) };
    let e = *last;
    if pe.kind != kind::OBJECT {
        splice(blob, parents, e.start, e.end, pe.bytes(patch));
        return Ok(());
    }
    if parents.len() > blob::MAX_DEPTH {
        return Err(malformed());
    }
    if e.kind != kind::OBJECT {
        let start = e.start.wrapping_add_signed(put(blob, parents, e.start, e.end, &[kind::OBJECT]));
        *last = Element { kind: kind::OBJECT, start, body: start + 1, end: start + 1 };
    }
    let mut pairs = Children::of(patch, pe);
    while let Some((label, value)) = pairs.pair()? {
        let Some(&e) = way.last() else { break };
        match find_label(blob, e, patch, label)? {
            Some((l, v)) if value.kind == kind::NULL => {
                splice(blob, way, l.start, v.end, b"");
            }
            Some((_, v)) => {
                way.push(v);
                merge(blob, way, patch, value)?;
                way.pop();
            }
            None if value.kind == kind::NULL => {}
            None => {
                let mut new = label.bytes(patch).to_vec();
                let before = new.len();
                if value.kind == kind::OBJECT {
                    new.push(kind::OBJECT);
                } else {
                    new.extend_from_slice(value.bytes(patch));
                }
                let moved = splice(blob, way, e.end, e.end, &new);
                if value.kind == kind::OBJECT {
                    let start = (e.end + before).wrapping_add_signed(moved);
                    way.push(Element { kind: kind::OBJECT, start, body: start + 1, end: start + 1 });
                    merge(blob, way, patch, value)?;
                    way.pop();
                }
            }
        }
    }
    Ok(())
}

/// The label and value in an object of `blob` whose label is that of `patch`.
fn find_label(blob: &[u8], e: Element, patch: &[u8], label: Element) -> Result<Option<(Element, Element)>> {
    let mut at = e.body;
    while at < e.end {
        let l = Element::try_read(blob, at, e.end).filter(Element::is_text).ok_or_else(malformed)?;
        let v = Element::try_read(blob, l.end, e.end).ok_or_else(malformed)?;
        if same_labels(patch, label, blob, l) {
            return Ok(Some((l, v)));
        }
        at = v.end;
    }
    Ok(None)
}
