//! `fts3_tokenizer()` (documentation page `fts3`, "Custom (Application Defined) Tokenizers"): tokenizers written in C for a connection's
//! tables of FTS3 and FTS4, and our tokenizers for C, by the structures that the page names.
//!
//! A pointer comes in or goes out only as a bound parameter, or where `SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER` says so. What always holds: a
//! structure is the program's, and stays where it is as long as the connection knows it.

use crate::connection::Db;
use crate::foreign::error_of;
use crate::{DONE, ERROR, INTERNAL, NOMEM, OK, guard};
use iolite::engine::{Code, Context, Error, Result, Switch, Value};
use iolite_ext::{Host, Token, TokenSink, TokenizeFor, Tokenizer, TokenizerKind};
use iolite_fts3::TokenizerDoor;
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::{null, null_mut};
use std::rc::Rc;

/// `sqlite3_tokenizer`: the beginning of what a module makes.
#[repr(C)]
struct CTokenizer {
    module: *const CModule,
}

/// `sqlite3_tokenizer_cursor`, likewise.
#[repr(C)]
struct CCursor {
    tokenizer: *mut CTokenizer,
}

type Next = unsafe extern "C" fn(
    *mut CCursor,
    *mut *const c_char,
    *mut c_int,
    *mut c_int,
    *mut c_int,
    *mut c_int,
) -> c_int;

/// `sqlite3_tokenizer_module`.
#[repr(C)]
struct CModule {
    version: c_int,
    create: unsafe extern "C" fn(c_int, *const *const c_char, *mut *mut CTokenizer) -> c_int,
    destroy: unsafe extern "C" fn(*mut CTokenizer) -> c_int,
    open: unsafe extern "C" fn(*mut CTokenizer, *const c_char, c_int, *mut *mut CCursor) -> c_int,
    close: unsafe extern "C" fn(*mut CCursor) -> c_int,
    next: Next,
    /// From version 1 on.
    language: Option<unsafe extern "C" fn(*mut CCursor, c_int) -> c_int>,
}

pub(crate) const DOOR: TokenizerDoor = TokenizerDoor { function, find };

/// The handle of the connection that runs.
///
/// # Safety
/// The opener of a connection of this library is its handle, which is open while the connection runs.
unsafe fn handle<'a>(host: &dyn Host) -> Option<&'a Db> {
    (host.opener() as *mut Db).as_ref()
}

fn find(host: &dyn Host, name: &str) -> Option<Rc<dyn TokenizerKind>> {
    let name = iolite_base::raw_text::decode(name);
    // SAFETY: as there.
    let given = unsafe { handle(host) }?.fts3.borrow();
    let (_, module) = given.iter().find(|(n, _)| **n == *name)?;
    Some(Rc::new(CKind(*module as *const CModule)))
}

/// `fts3_tokenizer(name [, pointer])`.
fn function(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    // SAFETY: as there.
    let Some(d) = (unsafe { handle(ctx.host) }) else { return Err(Code::Misuse.into()) };
    let enabled = d.conn().is_some_and(|c| c.switch(Switch::Fts3Tokenizer, None));
    let trusted = |i: usize| enabled || ctx.aux.bound_args & 1 << i != 0;
    let name = if args[0].is_null() { None } else { Some(args[0].to_text()?.text_bytes()?.to_vec()) };
    let module = match args {
        [_, _] if !trusted(1) => return Err(Error::sql("fts3tokenize disabled")),
        [_, pointer] => {
            let module = match pointer {
                Value::Blob(b, _) => {
                    <[u8; size_of::<usize>()]>::try_from(&b[..]).ok().map(usize::from_ne_bytes)
                }
                _ => None,
            };
            let (Some(name), Some(module)) = (name, module) else {
                return Err(Error::sql("argument type mismatch"));
            };
            let mut given = d.fts3.borrow_mut();
            given.retain(|(n, _)| *n != name);
            // Nothing is registered by a NULL.
            if module != 0 {
                given.push((name, module));
            }
            module
        }
        _ => {
            let name = name.unwrap_or_default();
            let given = d.fts3.borrow().iter().find(|(n, _)| *n == name).map(|g| g.1);
            match given.or_else(|| ours(&name).map(|m| m as usize)) {
                Some(m) => m,
                None => {
                    return Err(Error::sql(format!("unknown tokenizer: {}", String::from_utf8_lossy(&name))));
                }
            }
        }
    };
    if trusted(0) { Value::blob(&module.to_ne_bytes()) } else { Ok(Value::Null) }
}

/// A module of the program's.
struct CKind(*const CModule);

/// A tokenizer that it made.
struct CInstance {
    module: *const CModule,
    raw: *mut CTokenizer,
}

impl TokenizerKind for CKind {
    fn create(
        &self,
        args: &[&str],
        _: &dyn Fn(&str) -> Option<Rc<dyn TokenizerKind>>,
    ) -> Result<Rc<dyn Tokenizer>> {
        let args: Vec<CString> = args
            .iter()
            .map(|a| CString::new(iolite_base::raw_text::decode(a).into_owned()).unwrap_or_default())
            .collect();
        let pointers: Vec<*const c_char> = args.iter().map(|a| a.as_ptr()).collect();
        let mut raw = null_mut();
        // SAFETY: the program said that its module is one, and keeps it; the arguments live across the call.
        unsafe {
            match ((*self.0).create)(pointers.len() as c_int, pointers.as_ptr(), &mut raw) {
                OK if !raw.is_null() => {
                    (*raw).module = self.0;
                    Ok(Rc::new(CInstance { module: self.0, raw }))
                }
                OK => Err(Code::Error.into()),
                rc => Err(error_of(rc)),
            }
        }
    }
}

impl Tokenizer for CInstance {
    fn tokenize(
        &self,
        _: TokenizeFor,
        text: &[u8],
        locale: Option<&[u8]>,
        sink: &mut TokenSink<'_>,
    ) -> Result<()> {
        // Modules may look for the NUL behind a text.
        let own = CString::new(text.split(|b| *b == 0).next().unwrap_or_default()).unwrap_or_default();
        // SAFETY: tokenizer and cursor are the module's; the text lives until the cursor is closed, a token until the next one.
        unsafe {
            let (module, mut cursor) = (&*self.module, null_mut::<CCursor>());
            let rc = (module.open)(self.raw, own.as_ptr(), own.as_bytes().len() as c_int, &mut cursor);
            if rc != OK || cursor.is_null() {
                return Err(error_of(rc));
            }
            (*cursor).tokenizer = self.raw;
            let mut done = match module.language.filter(|_| module.version >= 1) {
                Some(f) => match f(cursor, language(locale)) {
                    OK => Ok(()),
                    rc => Err(error_of(rc)),
                },
                None => Ok(()),
            };
            let mut places = 0;
            while done.is_ok() {
                let (mut token, mut n, mut start, mut end, mut place) = (null(), 0, 0, 0, 0);
                match (module.next)(cursor, &mut token, &mut n, &mut start, &mut end, &mut place) {
                    OK => {}
                    DONE => break,
                    rc => {
                        done = Err(error_of(rc));
                        break;
                    }
                }
                let token = if token.is_null() || n <= 0 {
                    &[][..]
                } else {
                    std::slice::from_raw_parts(token.cast::<u8>(), n as usize)
                };
                let within = |n: c_int| (n.max(0) as usize).min(text.len());
                let (start, end) = (within(start), within(end.max(start)));
                let skipped = (place.max(0) as usize).saturating_sub(places);
                places += skipped + 1;
                match sink(&Token { text: token, start, end, colocated: false, skipped }) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(e) => done = Err(e),
                }
            }
            (module.close)(cursor);
            done
        }
    }
}

impl Drop for CInstance {
    fn drop(&mut self) {
        // SAFETY: made by this module, and nobody's any more.
        unsafe { ((*self.module).destroy)(self.raw) };
    }
}

/// The number of a language, as a table tells a tokenizer of it.
fn language(locale: Option<&[u8]>) -> c_int {
    locale.and_then(|l| std::str::from_utf8(l).ok()).and_then(|l| l.parse().ok()).unwrap_or(0)
}

/// A tokenizer of ours as C sees it.
#[repr(C)]
struct Ours {
    base: CTokenizer,
    tokenizer: Rc<dyn Tokenizer>,
}

/// The tokens of one text: where each begins and ends, and its place.
#[repr(C)]
struct OurTokens {
    base: CCursor,
    tokens: Vec<(Vec<u8>, usize, usize, usize)>,
    at: usize,
}

/// Our tokenizer of a name as C may call it.
fn ours(name: &[u8]) -> Option<*const CModule> {
    let found: &'static CModule = match name {
        b"simple" => &SIMPLE,
        b"porter" => &PORTER,
        b"unicode61" => &UNICODE61,
        _ => return None,
    };
    Some(found)
}

macro_rules! modules {
    ($($module:ident $create:ident $name:literal;)*) => {
        $(unsafe extern "C" fn $create(n: c_int, args: *const *const c_char, out: *mut *mut CTokenizer) -> c_int {
            make($name, n, args, out)
        }
        static $module: CModule =
            CModule { version: 0, create: $create, destroy, open, close, next, language: None };)*
    };
}

modules! {
    SIMPLE create_simple "simple";
    PORTER create_porter "porter";
    UNICODE61 create_unicode61 "unicode61";
}

unsafe fn make(name: &str, n: c_int, args: *const *const c_char, out: *mut *mut CTokenizer) -> c_int {
    guard(INTERNAL, || {
        let args: Vec<String> =
            (0..n.max(0) as usize).map(|i| crate::connection::text(*args.add(i))).collect();
        match iolite_fts3::tokenizer(name, &args) {
            Ok(tokenizer) => {
                let made = Box::new(Ours { base: CTokenizer { module: null() }, tokenizer });
                *out = Box::into_raw(made).cast();
                OK
            }
            Err(e) => e.number() as c_int,
        }
    })
}

unsafe extern "C" fn destroy(t: *mut CTokenizer) -> c_int {
    if !t.is_null() {
        guard((), || drop(Box::from_raw(t.cast::<Ours>())));
    }
    OK
}

unsafe extern "C" fn open(
    t: *mut CTokenizer,
    text: *const c_char,
    n: c_int,
    out: *mut *mut CCursor,
) -> c_int {
    let Some(t) = t.cast::<Ours>().as_ref() else { return ERROR };
    guard(NOMEM, || {
        let text = match n {
            _ if text.is_null() => &[][..],
            ..0 => CStr::from_ptr(text).to_bytes(),
            n => std::slice::from_raw_parts(text.cast::<u8>(), n as usize),
        };
        let mut tokens = Vec::new();
        let mut place = 0;
        let found = t.tokenizer.tokenize(TokenizeFor::Document, text, None, &mut |t| {
            place += t.skipped + 1;
            tokens.push((t.text.to_vec(), t.start, t.end, place - 1));
            Ok(true)
        });
        if let Err(e) = found {
            return e.number() as c_int;
        }
        let made = Box::new(OurTokens { base: CCursor { tokenizer: null_mut() }, tokens, at: 0 });
        *out = Box::into_raw(made).cast();
        OK
    })
}

unsafe extern "C" fn close(c: *mut CCursor) -> c_int {
    if !c.is_null() {
        guard((), || drop(Box::from_raw(c.cast::<OurTokens>())));
    }
    OK
}

unsafe extern "C" fn next(
    c: *mut CCursor,
    token: *mut *const c_char,
    len: *mut c_int,
    start: *mut c_int,
    end: *mut c_int,
    place: *mut c_int,
) -> c_int {
    let Some(c) = c.cast::<OurTokens>().as_mut() else { return ERROR };
    let Some((text, from, to, at)) = c.tokens.get(c.at) else { return DONE };
    c.at += 1;
    *token = text.as_ptr().cast();
    (*len, *start, *end, *place) = (text.len() as c_int, *from as c_int, *to as c_int, *at as c_int);
    OK
}
