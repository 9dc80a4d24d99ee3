//! Names of files as VFSes see them: `sqlite3_uri_*`, `sqlite3_filename_*`, `sqlite3_create_filename`.
//!
//! A name is the middle of a block: four zero bytes, the database's name, keys and values of the URI's parameters, an empty text, the
//! names of journal and log, and more zero bytes; each text has a zero byte behind it.

use crate::connection::{Db, text_option, with};
use crate::memory::{sqlite3_free, sqlite3_malloc64};
use crate::vfs_file::CFile;
use iolite_os::PerProcess;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What stands before a name.
const BEFORE: usize = 4;

fn block<'t>(name: &[u8], parameters: impl Iterator<Item = &'t [u8]>, journal: &[u8], log: &[u8]) -> Vec<u8> {
    let mut out = vec![0; BEFORE];
    let mut put = |t: &[u8]| {
        out.extend_from_slice(t);
        out.push(0);
    };
    put(name);
    parameters.for_each(&mut put);
    for t in [b"", journal, log] {
        put(t);
    }
    out.extend_from_slice(&[0; 4]);
    out
}

/// The names of a database and of the files beside it, as files of a registered VFS are opened by them.
pub(crate) struct NameBlock {
    bytes: Vec<u8>,
    /// Where the names of journal and log begin.
    beside: [usize; 2],
}

impl NameBlock {
    pub fn new(file: &[u8], parameters: &[(Vec<u8>, Vec<u8>)]) -> NameBlock {
        let texts = parameters.iter().flat_map(|(key, value)| [&key[..], &value[..]]);
        let names = [[file, b"-journal"].concat(), [file, b"-wal"].concat()];
        let bytes = block(file, texts, &names[0], &names[1]);
        let log = bytes.len() - 4 - (names[1].len() + 1);
        NameBlock { bytes, beside: [log - (names[0].len() + 1), log] }
    }

    /// The name of the database.
    pub fn database(&self) -> *const c_char {
        self.bytes[BEFORE..].as_ptr().cast()
    }

    /// The name of journal or log, if `file` is one of them.
    pub fn named(&self, file: &[u8]) -> Option<*const c_char> {
        let is =
            |at: &&usize| self.bytes[**at..].strip_prefix(file).is_some_and(|rest| rest.first() == Some(&0));
        self.beside.iter().find(is).map(|at| self.bytes[*at..].as_ptr().cast())
    }
}

/// A database file of a registered VFS, and the name by which it was opened.
struct Opened {
    name: *const c_char,
    file: *mut CFile,
}

// SAFETY: the pointers are only compared and handed out.
unsafe impl Send for Opened {}

fn all_opened() -> MutexGuard<'static, Vec<Opened>> {
    static ALL: Mutex<Vec<Opened>> = Mutex::new(Vec::new());
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers which file a name belongs to.
pub(crate) fn opened(name: *const c_char, file: *mut CFile) {
    all_opened().push(Opened { name, file });
}

/// Forgets a file.
pub(crate) fn closed(file: *mut CFile) {
    all_opened().retain(|o| o.file != file);
}

/// The name by which a file was opened.
pub(crate) fn name_of(file: *mut c_void) -> Option<*const c_char> {
    all_opened().iter().find(|o| o.file.cast() == file).map(|o| o.name)
}

/// The database file to which a name, also that of a journal or log, belongs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_database_file_object(name: *const c_char) -> *mut CFile {
    let name = sqlite3_filename_database(name);
    all_opened().iter().find(|o| o.name == name).map_or(null_mut(), |o| o.file)
}

/// The block of a database's file, which was opened by the name `given`.
pub(crate) fn filename_block(file: &[u8], given: &[u8], uri: bool) -> Vec<u8> {
    let parameters = if uri { iolite::engine::uri_parameters(given) } else { Vec::new() };
    let parameters = parameters.iter().flat_map(|(key, value)| [&key[..], &value[..]]);
    let beside = |end: &[u8]| if file.is_empty() { Vec::new() } else { [file, end].concat() };
    block(file, parameters, &beside(b"-journal"), &beside(b"-wal"))
}

/// The name in a block that stays for the life of the process; each is kept once. Their number is bounded by that of files.
pub(crate) fn kept_filename(file: &[u8]) -> *const c_char {
    static KEPT: PerProcess<Mutex<HashMap<Vec<u8>, Vec<u8>>>> = PerProcess::new();
    let mut kept = KEPT.get().lock().unwrap_or_else(PoisonError::into_inner);
    let b = kept.entry(file.to_vec()).or_insert_with(|| filename_block(file, b"", false));
    b[BEFORE..].as_ptr() as *const c_char
}

/// The text behind a text.
unsafe fn next(p: *const c_char) -> *const c_char {
    p.add(CStr::from_ptr(p).to_bytes().len() + 1)
}

/// The parameters of a file's name, as pairs, and the names of journal and log.
unsafe fn parts(name: *const c_char) -> (Vec<(*const c_char, *const c_char)>, *const c_char) {
    let mut out = Vec::new();
    if name.is_null() {
        return (out, null());
    }
    let mut p = next(name);
    while *p != 0 {
        let value = next(p);
        out.push((p, value));
        p = next(value);
    }
    (out, p.add(1))
}

/// Those of the database to which a name, also that of a journal or log, belongs.
unsafe fn parameters(name: *const c_char) -> Vec<(*const c_char, *const c_char)> {
    parts(sqlite3_filename_database(name)).0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_uri_parameter(name: *const c_char, key: *const c_char) -> *const c_char {
    if key.is_null() {
        return null();
    }
    let key = CStr::from_ptr(key);
    parameters(name).iter().find(|p| CStr::from_ptr(p.0) == key).map_or(null(), |p| p.1)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_uri_key(name: *const c_char, n: c_int) -> *const c_char {
    usize::try_from(n).ok().and_then(|n| parameters(name).get(n).map(|p| p.0)).unwrap_or(null())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_uri_boolean(
    name: *const c_char,
    key: *const c_char,
    default: c_int,
) -> c_int {
    let v = sqlite3_uri_parameter(name, key);
    if v.is_null() {
        return (default != 0) as c_int;
    }
    match CStr::from_ptr(v).to_string_lossy().to_ascii_lowercase().as_str() {
        "on" | "yes" | "true" => 1,
        "off" | "no" | "false" => 0,
        n => n.parse::<i64>().map_or(default != 0, |n| n != 0) as c_int,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_uri_int64(name: *const c_char, key: *const c_char, default: i64) -> i64 {
    let v = sqlite3_uri_parameter(name, key);
    if v.is_null() {
        return default;
    }
    let text = CStr::from_ptr(v).to_string_lossy();
    match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).map_or(default, |n| n as i64),
        None => text.parse().unwrap_or(default),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_filename_database(name: *const c_char) -> *const c_char {
    // Journals and logs are opened under names within the block: it begins behind four zero bytes.
    if name.is_null() {
        return null();
    }
    let mut p = name;
    while (1..=BEFORE).any(|i| *p.sub(i) != 0) {
        p = p.sub(1);
    }
    p
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_filename_journal(name: *const c_char) -> *const c_char {
    parts(sqlite3_filename_database(name)).1
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_filename_wal(name: *const c_char) -> *const c_char {
    let journal = sqlite3_filename_journal(name);
    if journal.is_null() { null() } else { next(journal) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_create_filename(
    database: *const c_char,
    journal: *const c_char,
    log: *const c_char,
    n: c_int,
    texts: *const *const c_char,
) -> *mut c_char {
    let text = |p: *const c_char| if p.is_null() { &b""[..] } else { CStr::from_ptr(p).to_bytes() };
    let count = if texts.is_null() { 0 } else { n.max(0) as usize * 2 };
    let parameters = (0..count).map(|i| text(*texts.add(i)));
    let b = block(text(database), parameters, text(journal), text(log));
    let p = sqlite3_malloc64(b.len() as u64) as *mut u8;
    if p.is_null() {
        return null_mut();
    }
    std::ptr::copy_nonoverlapping(b.as_ptr(), p, b.len());
    p.add(BEFORE) as *mut c_char
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_free_filename(name: *const c_char) {
    if !name.is_null() {
        sqlite3_free(sqlite3_filename_database(name).sub(BEFORE).cast_mut().cast());
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_db_filename(db: *mut Db, name: *const c_char) -> *const c_char {
    let name = text_option(name).unwrap_or_else(|| "main".into());
    with(db, null(), |d| {
        let foreign = d.run(|c| c.btree(&name)).ok().and_then(|b| crate::vfs_file::foreign(&b));
        if let Some(name) = foreign.and_then(|f| name_of(f.cast())) {
            return name;
        }
        if name.eq_ignore_ascii_case("main") {
            // Four zero bytes stand before it.
            return d.filename.borrow().get(4..).map_or(null(), |f| f.as_ptr() as *const c_char);
        }
        let file = d.run(|c| c.file_name(&name));
        file.map_or(null(), |f| kept_filename(&f))
    })
}
