//! UTF-16, and the string functions of the C interface.

use crate::connection::WIDE;
use iolite_base::raw_text;
use iolite_func::like::Kind;
use iolite_value::utf16;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// UTF-8 of a UTF-16 text of `n` bytes, or up to its NUL if negative.
pub(crate) unsafe fn from_utf16(p: *const c_void, n: i64) -> Vec<u8> {
    if p.is_null() {
        return Vec::new();
    }
    let p = p as *const u8;
    let mut len = 0;
    while n < 0 || len + 1 < n as usize {
        if *p.add(len) == 0 && *p.add(len + 1) == 0 && n < 0 {
            break;
        }
        len += 2;
    }
    let (bytes, order) = utf16::without_mark(std::slice::from_raw_parts(p, len), WIDE);
    utf16::decode(bytes, order).map(|b| b.to_vec()).unwrap_or_default()
}

/// UTF-8 of a UTF-16 text of `n` bytes, or up to its NUL if that comes first or `n` is negative.
pub(crate) unsafe fn from_utf16_within(p: *const c_void, n: i64) -> Vec<u8> {
    let units = p as *const [u8; 2];
    let end = (0..n.max(0) as usize / 2).find(|&i| *units.add(i) == [0; 2]);
    from_utf16(p, end.map_or(n, |i| 2 * i as i64))
}

/// UTF-16 with a NUL behind it.
pub(crate) fn to_utf16(b: &[u8]) -> Vec<u8> {
    let mut out = utf16::encode(b, WIDE);
    out.extend_from_slice(&[0, 0]);
    out
}

/// As [`to_utf16`], of a text in a database in UTF-8: what is no character there is U+FFFD.
pub(crate) fn characters_to_utf16(b: &[u8]) -> Vec<u8> {
    let mut out = utf16::encode_characters(b, WIDE);
    out.extend_from_slice(&[0, 0]);
    out
}

fn ordering(a: &[u8], b: &[u8]) -> c_int {
    let lower = |s: &[u8]| s.to_ascii_lowercase();
    match lower(a).cmp(&lower(b)) {
        std::cmp::Ordering::Less => -1,
        std::cmp::Ordering::Equal => 0,
        std::cmp::Ordering::Greater => 1,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_stricmp(a: *const c_char, b: *const c_char) -> c_int {
    match (a.is_null(), b.is_null()) {
        (true, true) => 0,
        (true, false) => -1,
        (false, true) => 1,
        _ => ordering(CStr::from_ptr(a).to_bytes(), CStr::from_ptr(b).to_bytes()),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_strnicmp(a: *const c_char, b: *const c_char, n: c_int) -> c_int {
    match (a.is_null(), b.is_null()) {
        (true, true) => 0,
        (true, false) => -1,
        (false, true) => 1,
        _ => {
            // Texts may lack a NUL behind their first `n` bytes.
            let n = n.max(0) as usize;
            let part = |p: *const c_char| std::slice::from_raw_parts(p as *const u8, libc::strnlen(p, n));
            ordering(part(a), part(b))
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_strglob(pattern: *const c_char, s: *const c_char) -> c_int {
    if pattern.is_null() || s.is_null() {
        return (pattern.cast::<u8>() != s.cast::<u8>()) as c_int;
    }
    let found = iolite_func::like::matches(
        Kind::Glob,
        CStr::from_ptr(pattern).to_bytes(),
        CStr::from_ptr(s).to_bytes(),
        None,
    );
    !found as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_strlike(pattern: *const c_char, s: *const c_char, escape: u32) -> c_int {
    if pattern.is_null() || s.is_null() {
        return (pattern.cast::<u8>() != s.cast::<u8>()) as c_int;
    }
    // A `%` stays what it is.
    let escape = (escape != 0 && escape != '%' as u32).then_some(escape);
    let found = iolite_func::like::matches(
        Kind::Like,
        CStr::from_ptr(pattern).to_bytes(),
        CStr::from_ptr(s).to_bytes(),
        escape,
    );
    !found as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_complete(sql: *const c_char) -> c_int {
    crate::guard(0, || iolite_sql::complete(&crate::connection::text(sql)) as c_int)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_complete16(sql: *const c_void) -> c_int {
    crate::guard(0, || iolite_sql::complete(&String::from_utf8_lossy(&from_utf16(sql, -1))) as c_int)
}

/// A text for C; what follows a NUL is lost.
pub(crate) fn c_text(text: &str) -> CString {
    let mut bytes = raw_text::decode(text).into_owned();
    bytes.truncate(bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len()));
    CString::new(bytes).unwrap_or_default()
}

/// The number of an encoding in the C interface.
pub(crate) fn number_of(e: iolite::engine::Encoding) -> u8 {
    use iolite::engine::Encoding as E;
    match e {
        E::Utf8 => 1,
        E::Utf16le => 2,
        E::Utf16be => 3,
    }
}
