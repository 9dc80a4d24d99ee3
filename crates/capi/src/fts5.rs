//! `fts5_api` (documentation page `fts5`, section 7): tokenizers and auxiliary functions written in C for a connection's `fts5`
//! tables, and our tokenizers for C.
//!
//! A program gets the structure by `SELECT fts5(?1)` with a pointer of the type `fts5_api_ptr` bound. What always holds: a
//! destructor is called once, when the connection is closed.

use crate::connection::destroy;
use crate::connection::{Db, Destructor, text};
use crate::foreign::error_of;
use crate::fts5_context::{CFunction, Function, TakeToken, slice, tokens_to_c};
use crate::function::Head;
use crate::pointer::pointer_of;
use crate::{ERROR, MISUSE, NOMEM, OK, guard};
use iolite::engine::{Code, Context, Result, Value};
use iolite_ext::{Token, TokenSink, TokenizeFor, Tokenizer, TokenizerKind};
use iolite_fts::Fts5;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::rc::Rc;

type Create = unsafe extern "C" fn(*mut c_void, *mut *const c_char, c_int, *mut *mut c_void) -> c_int;
type Delete = unsafe extern "C" fn(*mut c_void);
type Tokenize =
    unsafe extern "C" fn(*mut c_void, *mut c_void, c_int, *const c_char, c_int, Option<TakeToken>) -> c_int;
type TokenizeLocal = unsafe extern "C" fn(
    *mut c_void,
    *mut c_void,
    c_int,
    *const c_char,
    c_int,
    *const c_char,
    c_int,
    Option<TakeToken>,
) -> c_int;

/// `fts5_tokenizer`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CTokenizer {
    create: Option<Create>,
    delete: Option<Delete>,
    tokenize: Option<Tokenize>,
}

/// `fts5_tokenizer_v2`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CTokenizerV2 {
    version: c_int,
    create: Option<Create>,
    delete: Option<Delete>,
    tokenize: Option<TokenizeLocal>,
}

type CreateTokenizer =
    unsafe extern "C" fn(*mut Api, *const c_char, *mut c_void, *mut CTokenizer, Option<Destructor>) -> c_int;
type FindTokenizer =
    unsafe extern "C" fn(*mut Api, *const c_char, *mut *mut c_void, *mut CTokenizer) -> c_int;
type CreateFunction =
    unsafe extern "C" fn(*mut Api, *const c_char, *mut c_void, Option<Function>, Option<Destructor>) -> c_int;
type CreateTokenizerV2 = unsafe extern "C" fn(
    *mut Api,
    *const c_char,
    *mut c_void,
    *mut CTokenizerV2,
    Option<Destructor>,
) -> c_int;
type FindTokenizerV2 =
    unsafe extern "C" fn(*mut Api, *const c_char, *mut *mut c_void, *mut *mut CTokenizerV2) -> c_int;

/// `fts5_api` of version 3, and behind it what C does not see.
#[repr(C)]
pub struct Api {
    version: c_int,
    create_tokenizer: CreateTokenizer,
    find_tokenizer: FindTokenizer,
    create_function: CreateFunction,
    create_tokenizer_v2: CreateTokenizerV2,
    find_tokenizer_v2: FindTokenizerV2,
    db: *mut Db,
    /// Tokenizers that were asked for or added, by name in lower case.
    known: Vec<(String, Rc<Known>)>,
}

/// A tokenizer as C knows it, in both forms.
struct Known {
    user: *mut c_void,
    plain: CTokenizer,
    local: CTokenizerV2,
    /// Lets `user` go.
    let_go: LetGo,
}

enum LetGo {
    Program(Option<Destructor>),
    /// `user` is a boxed kind of ours.
    Own,
}

impl Drop for Known {
    fn drop(&mut self) {
        match self.let_go {
            // SAFETY: pointer and destructor were given together, and this is the last holder of both.
            LetGo::Program(f) => unsafe { destroy(f, self.user) },
            // SAFETY: boxed by `ours`.
            LetGo::Own => drop(unsafe { Box::from_raw(self.user.cast::<Rc<dyn TokenizerKind>>()) }),
        }
    }
}

/// `fts5(pointer)`.
pub(crate) fn api(ctx: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let out = pointer_of(&args[0], b"fts5_api_ptr") as *mut *mut Api;
    let db = ctx.host.opener() as *mut Db;
    // SAFETY: the program bound a pointer of this type; the opener of a connection of this library is its handle, which is
    // open while the connection runs a function.
    unsafe {
        if let (Some(out), Some(d)) = (out.as_mut(), db.as_ref()) {
            let mut api = d.fts5.borrow_mut();
            let api = api.get_or_insert_with(|| Box::new(Api::new(db)));
            if let Some(api) = api.downcast_mut::<Api>() {
                *out = api;
            }
        }
    }
    Ok(Value::Null)
}

impl Drop for Api {
    fn drop(&mut self) {
        // What was added last goes first.
        while self.known.pop().is_some() {}
    }
}

impl Api {
    fn new(db: *mut Db) -> Api {
        Api {
            version: 3,
            create_tokenizer,
            find_tokenizer,
            create_function,
            create_tokenizer_v2,
            find_tokenizer_v2,
            db,
            known: Vec::new(),
        }
    }

    /// Runs `f` on the connection's module.
    unsafe fn module(&self, f: impl FnOnce(&Fts5) -> c_int) -> c_int {
        guard(crate::INTERNAL, || {
            let module = self.db.as_ref().and_then(|d| d.conn()).and_then(|c| c.module("fts5"));
            match module.as_ref().and_then(|m| m.as_any()).and_then(|m| m.downcast_ref::<Fts5>()) {
                Some(m) => f(m),
                None => ERROR,
            }
        })
    }

    unsafe fn add(&mut self, name: *const c_char, known: Known) -> c_int {
        let (name, known) = (text(name).to_ascii_lowercase(), Rc::new(known));
        // One that is replaced stays until the connection is closed: tables may use it.
        self.known.iter_mut().filter(|k| k.0 == name).for_each(|k| k.0.clear());
        self.known.push((name.clone(), known.clone()));
        self.module(|m| {
            m.add_tokenizer(&name, Rc::new(CKind(known)));
            OK
        })
    }

    /// A tokenizer as C may call it. One of ours gets its C side when it is first asked for.
    unsafe fn find(&mut self, name: *const c_char) -> Option<Rc<Known>> {
        let name = if name.is_null() { "unicode61".into() } else { text(name).to_ascii_lowercase() };
        if let Some(k) = self.known.iter().find(|k| k.0 == name) {
            return Some(k.1.clone());
        }
        let mut kind = None;
        self.module(|m| {
            kind = m.tokenizer(&name);
            OK
        });
        let known = Rc::new(ours(kind?));
        self.known.push((name, known.clone()));
        Some(known)
    }
}

unsafe extern "C" fn create_tokenizer(
    api: *mut Api,
    name: *const c_char,
    user: *mut c_void,
    tokenizer: *mut CTokenizer,
    let_go: Option<Destructor>,
) -> c_int {
    let (Some(api), Some(t)) = (api.as_mut(), tokenizer.as_ref()) else { return MISUSE };
    let local = CTokenizerV2 { version: 2, create: t.create, delete: t.delete, tokenize: None };
    api.add(name, Known { user, plain: *t, local, let_go: LetGo::Program(let_go) })
}

unsafe extern "C" fn create_tokenizer_v2(
    api: *mut Api,
    name: *const c_char,
    user: *mut c_void,
    tokenizer: *mut CTokenizerV2,
    let_go: Option<Destructor>,
) -> c_int {
    let (Some(api), Some(t)) = (api.as_mut(), tokenizer.as_ref()) else { return MISUSE };
    if t.version > 2 {
        return ERROR;
    }
    let plain = CTokenizer { create: t.create, delete: t.delete, tokenize: None };
    api.add(name, Known { user, plain, local: *t, let_go: LetGo::Program(let_go) })
}

unsafe extern "C" fn find_tokenizer(
    api: *mut Api,
    name: *const c_char,
    user: *mut *mut c_void,
    out: *mut CTokenizer,
) -> c_int {
    let (Some(api), Some(out), Some(user)) = (api.as_mut(), out.as_mut(), user.as_mut()) else {
        return MISUSE;
    };
    (*user, *out) = (null_mut(), CTokenizer { create: None, delete: None, tokenize: None });
    let Some(k) = api.find(name) else { return ERROR };
    if k.plain.tokenize.is_some() {
        (*user, *out) = (k.user, k.plain);
        return OK;
    }
    // It has the second form alone: C calls it through ours.
    let wrapped = Rc::new(ours(Rc::new(CKind(k))));
    (*user, *out) = (wrapped.user, wrapped.plain);
    api.known.push((String::new(), wrapped));
    OK
}

unsafe extern "C" fn find_tokenizer_v2(
    api: *mut Api,
    name: *const c_char,
    user: *mut *mut c_void,
    out: *mut *mut CTokenizerV2,
) -> c_int {
    let (Some(api), Some(out), Some(user)) = (api.as_mut(), out.as_mut(), user.as_mut()) else {
        return MISUSE;
    };
    (*user, *out) = (null_mut(), null_mut());
    let Some(mut k) = api.find(name) else { return ERROR };
    if k.local.tokenize.is_none() {
        k = Rc::new(ours(Rc::new(CKind(k))));
        api.known.push((String::new(), k.clone()));
    }
    (*user, *out) = (k.user, &raw const k.local as *mut CTokenizerV2);
    OK
}

unsafe extern "C" fn create_function(
    api: *mut Api,
    name: *const c_char,
    user: *mut c_void,
    function: Option<Function>,
    let_go: Option<Destructor>,
) -> c_int {
    let (Some(api), Some(call)) = (api.as_mut(), function) else { return MISUSE };
    let name = text(name);
    let Some(d) = api.db.as_ref() else { return MISUSE };
    let function = Rc::new(CFunction {
        db: api.db,
        head: Head::new(user),
        call,
        let_go,
        name: name.to_ascii_lowercase(),
    });
    // Without a table it is known by name alone.
    let added = d.run(|c| {
        if !c.has_function(&name, -1) {
            let elsewhere = iolite_fts::functions_named("bm25");
            if let Some(f) = elsewhere.first() {
                c.create_function(crate::function::placeholder(&name, f.args, |name| {
                    iolite::engine::Error::sql(format!(
                        "unable to use function {name} in the requested context"
                    ))
                }));
            }
        }
        Ok(())
    });
    match added {
        Ok(()) => api.module(|m| {
            m.add_function(&name, function);
            OK
        }),
        Err(_) => NOMEM,
    }
}

/// A kind of tokenizers that is written in C.
struct CKind(Rc<Known>);

struct CInstance {
    kind: Rc<Known>,
    raw: *mut c_void,
}

impl TokenizerKind for CKind {
    fn create(
        &self,
        args: &[&str],
        _: &dyn Fn(&str) -> Option<Rc<dyn TokenizerKind>>,
    ) -> Result<Rc<dyn Tokenizer>> {
        let create = self.0.local.create.ok_or(Code::Error)?;
        let texts: Vec<CString> = args.iter().map(|a| CString::new(*a).unwrap_or_default()).collect();
        let mut list: Vec<*const c_char> = texts.iter().map(|t| t.as_ptr()).chain([null()]).collect();
        let mut raw = null_mut();
        // SAFETY: the program said that this function makes tokenizers of such a list.
        match unsafe { create(self.0.user, list.as_mut_ptr(), args.len() as c_int, &mut raw) } {
            OK => Ok(Rc::new(CInstance { kind: self.0.clone(), raw })),
            rc => Err(iolite::engine::Error::new(error_of(rc).code(), "error in tokenizer constructor")),
        }
    }
}

/// Where the tokens of a tokenizer in C go, and how that went.
struct Taken<'t, 's> {
    sink: &'t mut TokenSink<'s>,
    failed: Option<iolite::engine::Error>,
    len: usize,
}

unsafe extern "C" fn take(
    cx: *mut c_void,
    flags: c_int,
    token: *const c_char,
    n: c_int,
    start: c_int,
    end: c_int,
) -> c_int {
    const COLOCATED: c_int = 1;
    let taken = &mut *(cx as *mut Taken<'_, '_>);
    guard(crate::INTERNAL, || {
        let text: &[u8] = match n {
            1.. if !token.is_null() => std::slice::from_raw_parts(token.cast(), n as usize),
            _ => b"",
        };
        let within = |n: c_int| (n.max(0) as usize).min(taken.len);
        let token = Token {
            text,
            start: within(start),
            end: within(end),
            colocated: flags & COLOCATED != 0,
            skipped: 0,
        };
        match (taken.sink)(&token) {
            Ok(true) => OK,
            Ok(false) => crate::DONE,
            Err(e) => {
                let rc = e.code().number() as c_int;
                taken.failed = Some(e);
                rc
            }
        }
    })
}

impl Tokenizer for CInstance {
    fn tokenize(
        &self,
        reason: TokenizeFor,
        text: &[u8],
        locale: Option<&[u8]>,
        sink: &mut TokenSink<'_>,
    ) -> Result<()> {
        let mut taken = Taken { sink, failed: None, len: text.len() };
        let cx = (&raw mut taken).cast();
        let (p, n) = (text.as_ptr().cast(), text.len() as c_int);
        let l = locale.unwrap_or_default();
        // SAFETY: the tokenizer is one of this program's, made by the function beside; text and context live across the call.
        let rc = unsafe {
            match (self.kind.local.tokenize, self.kind.plain.tokenize) {
                (Some(f), _) => {
                    let at = if locale.is_some() { l.as_ptr().cast() } else { null() };
                    f(self.raw, cx, reason as c_int, p, n, at, l.len() as c_int, Some(take))
                }
                (None, Some(f)) => f(self.raw, cx, reason as c_int, p, n, Some(take)),
                (None, None) => return Err(Code::Error.into()),
            }
        };
        match (taken.failed, rc) {
            (Some(e), _) => Err(e),
            (None, OK | crate::DONE) => Ok(()),
            (None, rc) => Err(error_of(rc)),
        }
    }
}

impl Drop for CInstance {
    fn drop(&mut self) {
        if let Some(f) = self.kind.local.delete {
            // SAFETY: made by the function beside, and nobody's any more.
            unsafe { f(self.raw) };
        }
    }
}

/// A tokenizer of ours as C calls it: `user` is its kind.
fn ours(kind: Rc<dyn TokenizerKind>) -> Known {
    unsafe extern "C" fn create(
        user: *mut c_void,
        args: *mut *const c_char,
        n: c_int,
        out: *mut *mut c_void,
    ) -> c_int {
        let kind = &*(user as *const Rc<dyn TokenizerKind>);
        guard(crate::INTERNAL, || {
            let args: Vec<String> = (0..n.max(0) as usize).map(|i| text(*args.add(i))).collect();
            let args: Vec<&str> = args.iter().map(|a| a.as_str()).collect();
            // Kinds that wrap others find those of the library.
            let module = Fts5::default();
            match kind.create(&args, &|name| module.tokenizer(name)) {
                Ok(t) => {
                    *out = Box::into_raw(Box::new(t)).cast();
                    OK
                }
                Err(e) => e.code().number() as c_int,
            }
        })
    }
    unsafe extern "C" fn delete(tokenizer: *mut c_void) {
        if !tokenizer.is_null() {
            guard((), || drop(Box::from_raw(tokenizer.cast::<Rc<dyn Tokenizer>>())));
        }
    }
    unsafe extern "C" fn tokenize(
        tokenizer: *mut c_void,
        cx: *mut c_void,
        flags: c_int,
        p: *const c_char,
        n: c_int,
        f: Option<TakeToken>,
    ) -> c_int {
        tokenize_local(tokenizer, cx, flags, p, n, null(), 0, f)
    }
    unsafe extern "C" fn tokenize_local(
        tokenizer: *mut c_void,
        cx: *mut c_void,
        flags: c_int,
        p: *const c_char,
        n: c_int,
        locale: *const c_char,
        locale_len: c_int,
        f: Option<TakeToken>,
    ) -> c_int {
        let (Some(t), Some(f)) = ((tokenizer as *const Rc<dyn Tokenizer>).as_ref(), f) else { return MISUSE };
        let reason = match flags {
            1 => TokenizeFor::Query,
            3 => TokenizeFor::PrefixQuery,
            8 => TokenizeFor::Auxiliary,
            _ => TokenizeFor::Document,
        };
        let locale = (!locale.is_null()).then(|| slice(locale, locale_len));
        guard(crate::INTERNAL, || tokens_to_c(f, cx, |sink| t.tokenize(reason, slice(p, n), locale, sink)))
    }
    let user = Box::into_raw(Box::new(kind)).cast();
    let plain = CTokenizer { create: Some(create), delete: Some(delete), tokenize: Some(tokenize) };
    let local = CTokenizerV2 {
        version: 2,
        create: Some(create),
        delete: Some(delete),
        tokenize: Some(tokenize_local),
    };
    Known { user, plain, local, let_go: LetGo::Own }
}
