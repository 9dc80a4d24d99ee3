//! What the library says about itself, settings of the process, and entries that answer that they can do nothing.

use crate::connection::{Db, with};
use crate::{ERROR, MISUSE, OK};
use iolite_os::PerProcess;
use std::collections::HashMap;
use std::ffi::{CString, c_char, c_int, c_uchar, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// A text that stays for the life of the process; each text is kept once. Names only: their number is bounded by what
/// schemas hold.
pub(crate) fn static_text(t: &str) -> *const c_char {
    static_bytes(&iolite_base::raw_text::decode(t))
}

/// As [`static_text`], for names that need not be UTF-8.
pub(crate) fn static_bytes(t: &[u8]) -> *const c_char {
    static KEPT: PerProcess<Mutex<HashMap<Vec<u8>, CString>>> = PerProcess::new();
    let mut kept = KEPT.get().lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kept.get(t) {
        return known.as_ptr();
    }
    let text: Vec<u8> = t.iter().copied().filter(|b| *b != 0).collect();
    kept.entry(t.to_vec()).or_insert(CString::new(text).unwrap_or_default()).as_ptr()
}

/// Whether `sqlite3_enable_shared_cache` is on.
static SHARED_BY_DEFAULT: AtomicBool = AtomicBool::new(false);

pub(crate) fn shared_by_default() -> bool {
    SHARED_BY_DEFAULT.load(Ordering::Relaxed)
}

/// On, as in the builds of distributions.
static URI_BY_DEFAULT: AtomicBool = AtomicBool::new(true);

pub(crate) fn uri_by_default() -> bool {
    URI_BY_DEFAULT.load(Ordering::Relaxed)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_libversion() -> *const c_char {
    static_text(iolite::SQLITE_VERSION)
}

/// The version as a variable, which some programs read. Its size is that of the text: programs have a copy of that size.
#[repr(transparent)]
pub struct Version([c_uchar; iolite::SQLITE_VERSION.len() + 1]);

#[unsafe(no_mangle)]
pub static sqlite3_version: Version = Version(version());

#[unsafe(no_mangle)]
pub static mut sqlite3_temp_directory: *mut c_char = null_mut();

/// The folder for temporary files that a program has set.
pub(crate) fn temp_directory() -> Option<Vec<u8>> {
    // SAFETY: NULL or a text of the program's, which sets it before it opens databases.
    let folder = unsafe { crate::connection::bytes(sqlite3_temp_directory) };
    (!folder.is_empty()).then(|| folder.to_vec())
}

#[unsafe(no_mangle)]
pub static mut sqlite3_data_directory: *mut c_char = null_mut();

const fn version() -> [c_uchar; iolite::SQLITE_VERSION.len() + 1] {
    let (from, mut to) = (iolite::SQLITE_VERSION.as_bytes(), [0; iolite::SQLITE_VERSION.len() + 1]);
    let mut i = 0;
    while i < from.len() {
        to[i] = from[i];
        i += 1;
    }
    to
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_libversion_number() -> c_int {
    iolite::SQLITE_VERSION_NUMBER as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_sourceid() -> *const c_char {
    static_text(&format!("iolite {}", iolite::IOLITE_VERSION))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn iolite_version() -> *const c_char {
    static_text(iolite::IOLITE_VERSION)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_threadsafe() -> c_int {
    1
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_os_init() -> c_int {
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_os_end() -> c_int {
    OK
}

/// In C this takes a variable number of arguments; the first ones come in the same registers either way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_config(op: c_int, arg: *mut c_void, more: *mut c_void) -> c_int {
    const LOG: c_int = 16;
    const URI: c_int = 17;
    const PCACHE_HDRSZ: c_int = 24;
    const MALLOC: c_int = 4;
    const GETMALLOC: c_int = 5;
    const SCRATCH: c_int = 6;
    const HEAP: c_int = 8;
    const MEMSTATUS: c_int = 9;
    const GETMUTEX: c_int = 11;
    const GETPCACHE: c_int = 15;
    const SQLLOG: c_int = 21;
    const WIN32_HEAPSIZE: c_int = 23;
    const MEMDB_MAXSIZE: c_int = 29;
    const ROWID_IN_VIEW: c_int = 30;
    if crate::memory::INITIALIZED.load(Ordering::Relaxed) && !matches!(op, LOG | PCACHE_HDRSZ) {
        return MISUSE;
    }
    match op {
        LOG => crate::log::set(std::mem::transmute::<*mut c_void, Option<_>>(arg), more),
        MALLOC => return crate::memory::choose(arg as *const _),
        GETMALLOC => return crate::memory::tell(arg as *mut _),
        MEMSTATUS => crate::memory::count_blocks(arg as usize as c_int != 0),
        GETMUTEX => return crate::mutex::tell(arg as *mut _),
        MEMDB_MAXSIZE => iolite::engine::set_image_limit((arg as i64).max(0) as u64),
        ROWID_IN_VIEW => {
            if let Some(allowed) = (arg as *mut c_int).as_mut() {
                *allowed = 0;
            }
        }
        // No longer used, or for builds of another kind: a static buffer for all memory, Windows, a log of statements.
        SCRATCH | HEAP | GETPCACHE | WIN32_HEAPSIZE | SQLLOG => return ERROR,
        PCACHE_HDRSZ if !arg.is_null() => *(arg as *mut c_int) = 0,
        URI => URI_BY_DEFAULT.store(arg as usize as c_int != 0, Ordering::Relaxed),
        // Threading modes, mutexes, page caches, lookaside, mmap and the like: accepted, without effect.
        1..=30 => {}
        _ => return ERROR,
    }
    OK
}

/// As `sqlite3_config`: fixed arguments where C has a variable number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_db_config(
    db: *mut Db,
    op: c_int,
    value: *mut c_void,
    out: *mut c_int,
) -> c_int {
    if op == 1000 {
        let name = crate::connection::text(value as *const c_char);
        return with(db, MISUSE, |d| {
            d.answer(d.run(|c| {
                c.rename_main(&name);
                Ok(())
            }))
        });
    }
    if op == 1001 {
        return if db.is_null() { MISUSE } else { OK };
    }
    let value = value as usize as c_int;
    with(db, MISUSE, |d| {
        if !(1002..=1023).contains(&op) {
            return ERROR;
        }
        let switch = match op {
            1003 => Some(iolite::engine::Switch::Triggers),
            1006 => Some(iolite::engine::Switch::NoCheckpointOnClose),
            1007 => Some(iolite::engine::Switch::StablePlans),
            1009 => Some(iolite::engine::Switch::ResetDatabase),
            1010 => Some(iolite::engine::Switch::Defensive),
            1013 => Some(iolite::engine::Switch::DoubleQuotedStrings),
            1015 => Some(iolite::engine::Switch::Views),
            1004 => Some(iolite::engine::Switch::Fts3Tokenizer),
            1008 => Some(iolite::engine::Switch::TriggerPlans),
            1014 => Some(iolite::engine::Switch::DoubleQuotedDefinitions),
            1016 => Some(iolite::engine::Switch::LegacyFormat),
            1018 => Some(iolite::engine::Switch::ScanStatus),
            1020 => Some(iolite::engine::Switch::AttachCreate),
            1021 => Some(iolite::engine::Switch::AttachWrite),
            1022 => Some(iolite::engine::Switch::Comments),
            1002 => Some(iolite::engine::Switch::ForeignKeys),
            1011 => Some(iolite::engine::Switch::WritableSchema),
            1012 => Some(iolite::engine::Switch::LegacyAlterTable),
            1017 => Some(iolite::engine::Switch::TrustedSchema),
            1019 => Some(iolite::engine::Switch::ReverseUnordered),
            _ => None,
        };
        if op == 1023 {
            let now = d.run(|c| Ok(c.real_digits(value)));
            if let Ok(digits) = now {
                crate::handle::set_digits(d, digits);
                if let Some(out) = out.as_mut() {
                    *out = digits;
                }
            }
            return d.answer(now);
        }
        let now = d.run(|c| {
            if op == 1005 {
                let who = d.loads.get();
                match value {
                    0 => d.loads.set(who & !crate::connection::LOADS_BY_C),
                    1.. => d.loads.set(who | crate::connection::LOADS_BY_C),
                    _ => {}
                }
                return Ok(d.loads.get() & crate::connection::LOADS_BY_C != 0);
            }
            Ok(switch.is_some_and(|s| c.switch(s, (value >= 0).then_some(value != 0))))
        });
        if let (Ok(on), false) = (&now, out.is_null()) {
            *out = *on as c_int;
        }
        d.answer(now)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_compileoption_used(name: *const c_char) -> c_int {
    let name = crate::connection::text(name);
    let name = name.strip_prefix("SQLITE_").unwrap_or(&name);
    // Options are words of capitals, in whatever case they are asked for.
    let name = name.to_ascii_uppercase();
    let is = |o: &&str| o.strip_prefix(&*name).is_some_and(|r| r.is_empty() || r.starts_with('='));
    iolite_func::COMPILE_OPTIONS.iter().any(is) as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_compileoption_get(n: c_int) -> *const c_char {
    usize::try_from(n)
        .ok()
        .and_then(|n| iolite_func::COMPILE_OPTIONS.get(n))
        .map_or(null(), |o| static_text(o))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_keyword_count() -> c_int {
    iolite_sql::keyword_count() as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_keyword_name(i: c_int, name: *mut *const c_char, len: *mut c_int) -> c_int {
    match usize::try_from(i).ok().and_then(iolite_sql::keyword_name) {
        Some(k) => {
            *name = static_text(k);
            *len = k.len() as c_int;
            OK
        }
        None => ERROR,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_keyword_check(word: *const c_char, n: c_int) -> c_int {
    let bytes = std::slice::from_raw_parts(word as *const u8, n.max(0) as usize);
    std::str::from_utf8(bytes).is_ok_and(iolite_sql::is_keyword) as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_status64(op: c_int, now: *mut i64, high: *mut i64, reset: c_int) -> c_int {
    const MEMORY_USED: c_int = 0;
    const MALLOC_SIZE: c_int = 5;
    const MALLOC_COUNT: c_int = 9;
    if !(0..=9).contains(&op) {
        return MISUSE;
    }
    let (a, b) = match op {
        _ if !crate::memory::counted() => (0, 0),
        MEMORY_USED => (iolite_base::alloc::used(), iolite_base::alloc::highwater(reset != 0)),
        MALLOC_SIZE => (0, crate::memory::largest(reset != 0)),
        MALLOC_COUNT => crate::memory::blocks(reset != 0),
        // Page memory of the program, scratch memory and the parser's stack are not used.
        _ => (0, 0),
    };
    for (to, value) in [(now, a), (high, b)] {
        if let Some(to) = to.as_mut() {
            *to = value;
        }
    }
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_status(op: c_int, now: *mut c_int, high: *mut c_int, reset: c_int) -> c_int {
    let (mut a, mut b) = (0, 0);
    let rc = sqlite3_status64(op, &mut a, &mut b, reset);
    if rc != OK {
        return rc;
    }
    if !now.is_null() {
        *now = a as c_int;
    }
    if !high.is_null() {
        *high = b as c_int;
    }
    rc
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_db_status(
    db: *mut Db,
    op: c_int,
    now: *mut c_int,
    high: *mut c_int,
    reset: c_int,
) -> c_int {
    let (mut a, mut b) = (0, 0);
    let rc = sqlite3_db_status64(db, op, &mut a, &mut b, reset);
    if rc != OK {
        return rc;
    }
    for (to, value) in [(now, a), (high, b)] {
        if !to.is_null() {
            *to = value.min(i32::MAX as i64) as c_int;
        }
    }
    rc
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_db_status64(
    db: *mut Db,
    op: c_int,
    now: *mut i64,
    high: *mut i64,
    reset: c_int,
) -> c_int {
    const CACHE_USED: c_int = 1;
    const SCHEMA_USED: c_int = 2;
    const STMT_USED: c_int = 3;
    const CACHE_HIT: c_int = 7;
    const CACHE_MISS: c_int = 8;
    const CACHE_WRITE: c_int = 9;
    const DEFERRED_FKS: c_int = 10;
    const CACHE_USED_SHARED: c_int = 11;
    const CACHE_SPILL: c_int = 12;
    with(db, MISUSE, |d| {
        let Some(c) = d.conn() else { return MISUSE };
        let value = match op {
            CACHE_USED | CACHE_USED_SHARED => c.cache_bytes() as u64,
            SCHEMA_USED => c.schema_bytes() as u64,
            STMT_USED => crate::statement::memory_used(d) as u64,
            CACHE_HIT => c.cache_counter(reset != 0, |s| &mut s.hits),
            CACHE_MISS => c.cache_counter(reset != 0, |s| &mut s.misses),
            CACHE_WRITE => c.cache_counter(reset != 0, |s| &mut s.writes),
            CACHE_SPILL => c.cache_counter(reset != 0, |s| &mut s.spills),
            DEFERRED_FKS => c.has_deferred_violations() as u64,
            // No lookaside memory is used; temporary trees do not tell.
            0 | 4 | 5 | 6 | 13 => 0,
            _ => return ERROR,
        };
        for (to, value) in [(now, value as i64), (high, 0)] {
            if let Some(to) = to.as_mut() {
                *to = value;
            }
        }
        OK
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_randomness(n: c_int, p: *mut c_void) {
    if n <= 0 || p.is_null() {
        return;
    }
    crate::guard((), || {
        let out = std::slice::from_raw_parts_mut(p as *mut u8, n as usize);
        iolite_os::default_vfs().entropy().fill(out);
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_sleep(ms: c_int) -> c_int {
    std::thread::sleep(std::time::Duration::from_millis(ms.max(0) as u64));
    ms
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_enable_shared_cache(on: c_int) -> c_int {
    SHARED_BY_DEFAULT.store(on != 0, Ordering::Relaxed);
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_global_recover() -> c_int {
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_test_control(_op: c_int) -> c_int {
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_unlock_notify(
    db: *mut Db,
    notify: Option<crate::shared_cache::Notify>,
    user: *mut c_void,
) -> c_int {
    with(db, MISUSE, |d| match d.group().zip(d.conn().and_then(|c| c.member())) {
        Some((group, m)) => d.outcome(crate::shared_cache::wait(group, &m, notify, user)),
        // Nobody can have been in its way.
        None => {
            if let Some(f) = notify {
                f([user].as_mut_ptr(), 1);
            }
            d.ok()
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_stmt_scanstatus(
    _: *mut c_void,
    _: c_int,
    _: c_int,
    _: *mut c_void,
) -> c_int {
    ERROR
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_stmt_scanstatus_v2(
    _: *mut c_void,
    _: c_int,
    _: c_int,
    _: c_int,
    _: *mut c_void,
) -> c_int {
    ERROR
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_stmt_scanstatus_reset(_: *mut c_void) {}
