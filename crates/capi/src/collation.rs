//! Collating sequences written in C.

use crate::connection::destroy;
use crate::connection::{Db, Destructor, text, with};
use crate::{MISUSE, OK};
use iolite::engine::Collate;
use std::cell::Cell;
use std::cmp::Ordering;
use std::ffi::{c_char, c_int, c_void};
use std::rc::Rc;

type Compare = unsafe extern "C" fn(*mut c_void, c_int, *const c_void, c_int, *const c_void) -> c_int;

struct CCollation {
    user: *mut c_void,
    /// None: it was taken back.
    compare: Option<Compare>,
    destroy: Cell<Option<Destructor>>,
    wide: Option<iolite::Encoding>,
}

impl Collate for CCollation {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let call = |a: &[u8], b: &[u8]| {
            let Some(compare) = self.compare else { return a.cmp(b) };
            // SAFETY: the callback was registered for this shape of call; both texts live across it.
            let n = unsafe {
                compare(
                    self.user,
                    a.len() as c_int,
                    a.as_ptr() as *const c_void,
                    b.len() as c_int,
                    b.as_ptr() as *const c_void,
                )
            };
            n.cmp(&0)
        };
        match self.wide {
            None => call(a, b),
            Some(e) => call(&iolite_value::utf16::encode(a, e), &iolite_value::utf16::encode(b, e)),
        }
    }
}

/// A collating sequence of the program's by its name in small letters and the number of its encoding.
pub(crate) struct Registered {
    key: (String, u8),
    code: Rc<CCollation>,
}

impl CCollation {
    /// Releases the program's data, once: nobody compares by it any more.
    fn release(&self) {
        // SAFETY: pointer and destructor were given together, and this is the only place that runs it.
        unsafe { destroy(self.destroy.take(), self.user) };
    }
}

impl Drop for CCollation {
    fn drop(&mut self) {
        self.release();
    }
}

/// Whether there is a built-in one of this name and encoding: BINARY is there for each, the others are for UTF-8.
fn is_built_in(key: &(String, u8)) -> bool {
    match &*key.0 {
        "binary" => true,
        "nocase" | "rtrim" => key.1 == 1,
        _ => false,
    }
}

unsafe fn create(
    db: *mut Db,
    name: String,
    encoding: c_int,
    user: *mut c_void,
    compare: Option<Compare>,
    destroy: Option<Destructor>,
) -> c_int {
    with(db, MISUSE, |d| {
        let wide = match encoding {
            1 => None,
            2 => Some(iolite::Encoding::Utf16le),
            3 => Some(iolite::Encoding::Utf16be),
            4 | 8 => Some(crate::connection::WIDE),
            _ => return MISUSE,
        };
        let Some(c) = d.conn() else { return MISUSE };
        let number = wide.map_or(1, crate::text::number_of);
        let key = (name.to_ascii_lowercase(), number);
        let known = d.hooks.collations.borrow().iter().position(|k| k.key == key);
        let live = match known {
            Some(at) => d.hooks.collations.borrow()[at].code.compare.is_some(),
            None => is_built_in(&key),
        };
        if live && (crate::statement::any_busy(d) || d.blobs.get() > 0) {
            return d.fail_text(
                crate::BUSY,
                "unable to delete/modify collation sequence due to active statements",
            );
        }
        let code = Rc::new(CCollation { user, compare, destroy: Cell::new(destroy), wide });
        let former = {
            let mut list = d.hooks.collations.borrow_mut();
            match known {
                Some(at) => Some(std::mem::replace(&mut list[at], Registered { key: key.clone(), code })),
                None => {
                    list.push(Registered { key: key.clone(), code });
                    None
                }
            }
        };
        if let Some(f) = &former {
            f.code.release();
        }
        let wanted = crate::text::number_of(c.encoding());
        let (nearest, hides) = {
            let list = d.hooks.collations.borrow();
            let given = |e: u8| list.iter().any(|k| k.key.0 == key.0 && k.key.1 == e);
            let built_in = |e: u8| is_built_in(&(key.0.clone(), e));
            let own = list.iter().filter(|k| k.key.0 == key.0 && k.code.compare.is_some());
            let own = own.filter(|_| !built_in(wanted) || given(wanted));
            let nearest = own.max_by_key(|k| (k.key.1 == wanted, k.key.1 > 1 && wanted > 1));
            // What was given for UTF-8 and is none has taken the place of the built-in one, which was the only one.
            let hides = nearest.is_none() && built_in(1) && !built_in(2) && given(1);
            (nearest.map(|k| k.code.clone()), hides)
        };
        match hides {
            true => c.hide_collation(&name),
            false => c.create_collation(&name, nearest.map(|n| n as Rc<dyn Collate>)),
        }
        d.ok()
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_create_collation(
    db: *mut Db,
    name: *const c_char,
    encoding: c_int,
    user: *mut c_void,
    compare: Option<Compare>,
) -> c_int {
    create(db, text(name), encoding, user, compare, None)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_create_collation_v2(
    db: *mut Db,
    name: *const c_char,
    encoding: c_int,
    user: *mut c_void,
    compare: Option<Compare>,
    destroy: Option<Destructor>,
) -> c_int {
    create(db, text(name), encoding, user, compare, destroy)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_create_collation16(
    db: *mut Db,
    name: *const c_void,
    encoding: c_int,
    user: *mut c_void,
    compare: Option<Compare>,
) -> c_int {
    let name = String::from_utf8_lossy(&crate::text::from_utf16(name, -1)).into_owned();
    create(db, name, encoding, user, compare, None)
}

/// Who is asked for a collating sequence that is missing.
#[derive(Clone, Copy)]
pub(crate) enum Needed {
    /// With its name in UTF-8.
    Narrow(unsafe extern "C" fn(*mut c_void, *mut Db, c_int, *const c_char), *mut c_void),
    /// With its name in UTF-16.
    Wide(unsafe extern "C" fn(*mut c_void, *mut Db, c_int, *const c_void), *mut c_void),
}

/// Collating sequences that were asked for while one statement was prepared.
#[derive(Default)]
pub(crate) struct Asked {
    /// The complaints that named them.
    complaints: Vec<String>,
    /// It has been tried without what is missing.
    without: bool,
}

/// How a statement is tried again.
pub(crate) enum Again {
    /// Somebody was asked for what was missing.
    Asked,
    /// It is missing still: the statement may do if it compares nothing by it.
    Without,
}

impl Asked {
    /// Asks for the collating sequence that an error names; none: trying again does not help.
    pub(crate) unsafe fn ask(&mut self, d: &Db, db: *mut Db, e: &iolite::Error) -> Option<Again> {
        if self.without {
            return None;
        }
        if !self.complaints.iter().any(|m| m == e.message()) {
            self.complaints.push(e.message().into());
            return ask(d, db, e).then_some(Again::Asked);
        }
        self.without = true;
        Some(Again::Without)
    }
}

impl Again {
    /// Tries.
    pub(crate) fn then<T>(&self, c: &iolite::engine::Connection, f: impl FnOnce() -> T) -> T {
        c.ask_for_collations(matches!(self, Again::Asked));
        let out = f();
        c.ask_for_collations(true);
        out
    }
}

/// Asks for the collating sequence that an error names; whether somebody was asked.
unsafe fn ask(d: &Db, db: *mut Db, e: &iolite::Error) -> bool {
    let (Some(needed), Some(name)) =
        (d.hooks.needed.get(), e.message().split_once("no such collation sequence: ").map(|m| m.1))
    else {
        return false;
    };
    // What would suit the database best.
    let encoding = d.conn().map_or(1, |c| crate::text::number_of(c.encoding()) as c_int);
    match needed {
        Needed::Narrow(f, user) => {
            let name = std::ffi::CString::new(iolite_base::raw_text::decode(name)).unwrap_or_default();
            f(user, db, encoding, name.as_ptr());
        }
        Needed::Wide(f, user) => {
            let name = crate::text::to_utf16(name.as_bytes());
            f(user, db, encoding, name.as_ptr() as *const c_void);
        }
    }
    true
}

fn set_needed(d: &Db, needed: Option<Needed>) {
    d.hooks.needed.set(needed);
    if let Some(c) = d.conn() {
        c.ask_for_collations(needed.is_some());
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_collation_needed(
    db: *mut Db,
    user: *mut c_void,
    f: Option<unsafe extern "C" fn(*mut c_void, *mut Db, c_int, *const c_char)>,
) -> c_int {
    with(db, MISUSE, |d| {
        set_needed(d, f.map(|f| Needed::Narrow(f, user)));
        OK
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_collation_needed16(
    db: *mut Db,
    user: *mut c_void,
    f: Option<unsafe extern "C" fn(*mut c_void, *mut Db, c_int, *const c_void)>,
) -> c_int {
    with(db, MISUSE, |d| {
        set_needed(d, f.map(|f| Needed::Wide(f, user)));
        OK
    })
}
