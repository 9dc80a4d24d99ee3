//! `Fts5ExtensionApi`: what auxiliary functions written in C see of a row (documentation page `fts5`, section 7.3).
//!
//! A `Fts5Context*` lives for one call. What always holds: texts that it has handed out stay until then.

use crate::connection::destroy;
use crate::connection::{Db, Destructor};
use crate::function::{CContext, Head};
use crate::value::CValue;
use crate::{OK, guard};
use iolite::engine::{Code, Result, Value};
use iolite_ext::TokenSink;
use iolite_fts::{Auxiliary, Row};
use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::rc::Rc;

/// Takes a token: the tokenizer's context, flags, the token and where it stands.
pub type TakeToken = unsafe extern "C" fn(*mut c_void, c_int, *const c_char, c_int, c_int, c_int) -> c_int;

const RANGE: c_int = 25;

/// An auxiliary function in C.
pub type Function = unsafe extern "C" fn(*const Extension, *mut CRow, *mut CContext, c_int, *mut *mut CValue);
type EachRow = unsafe extern "C" fn(*const Extension, *mut CRow, *mut c_void) -> c_int;

/// The C side of an auxiliary function.
pub(crate) struct CFunction {
    pub db: *mut Db,
    pub head: Head,
    pub call: Function,
    pub let_go: Option<Destructor>,
    pub name: String,
}

impl Drop for CFunction {
    fn drop(&mut self) {
        // SAFETY: pointer and destructor were given together, and this is the last holder of both.
        unsafe { destroy(self.let_go, self.head.user) };
    }
}

impl Auxiliary for CFunction {
    fn call(&self, row: &dyn Row, args: &[Value]) -> Result<Value> {
        let mut cx = CContext::of_auxiliary(self.db, &self.head);
        let mut values: Vec<CValue> = args.iter().map(|v| CValue::new(v.clone())).collect();
        // There is an array also where there are no arguments: callers in other languages look at it.
        let mut pointers: Vec<*mut CValue> =
            values.iter_mut().map(|v| v as *mut CValue).chain([null_mut()]).collect();
        let mut seen = CRow::new(row, self);
        // SAFETY: the program said that the function is one of this kind; all it is given lives across the call.
        unsafe { (self.call)(&EXTENSION, &mut seen, &mut cx, args.len() as c_int, pointers.as_mut_ptr()) };
        cx.answer().unwrap_or(Ok(Value::Null))
    }
}

/// What a `Fts5Context*` points at.
pub struct CRow {
    row: *const dyn Row,
    function: *const CFunction,
    /// Texts that C has been shown.
    texts: RefCell<Vec<Rc<Vec<u8>>>>,
}

impl CRow {
    fn new(row: &dyn Row, function: &CFunction) -> CRow {
        // SAFETY: used only while the call lasts, in which both are borrowed.
        let row = unsafe { std::mem::transmute::<*const (dyn Row + '_), *const (dyn Row + 'static)>(row) };
        CRow { row, function, texts: RefCell::default() }
    }

    fn row(&self) -> &dyn Row {
        // SAFETY: see `new`.
        unsafe { &*self.row }
    }

    fn name(&self) -> &str {
        // SAFETY: see `new`.
        unsafe { &(*self.function).name }
    }

    /// Shows a text to C.
    unsafe fn show(&self, text: Option<Vec<u8>>, p: *mut *const c_char, n: *mut c_int) {
        *n = text.as_ref().map_or(0, |t| t.len() as c_int);
        *p = match text {
            None => null(),
            Some(mut t) => {
                t.push(0);
                let t = Rc::new(t);
                self.texts.borrow_mut().push(t.clone());
                t.as_ptr().cast()
            }
        };
    }
}

/// What a function has kept for the query.
struct Kept(*mut c_void, Option<Destructor>, std::cell::Cell<bool>);

impl Drop for Kept {
    fn drop(&mut self) {
        if !self.2.get() {
            // SAFETY: pointer and destructor were given together.
            unsafe { destroy(self.1, self.0) };
        }
    }
}

/// `Fts5PhraseIter`: opaque to C. Here: the number of the next instance, and of the phrase.
#[repr(C)]
pub struct PhraseIter {
    next: *const u8,
    phrase: *const u8,
}

/// Runs `f` on the row; answers its error's code.
unsafe fn on(cx: *mut CRow, f: impl FnOnce(&CRow) -> Result<c_int>) -> c_int {
    let Some(cx) = cx.as_ref() else { return crate::MISUSE };
    guard(crate::INTERNAL, || f(cx).unwrap_or_else(|e| e.code().number() as c_int))
}

unsafe extern "C" fn user_data(cx: *mut CRow) -> *mut c_void {
    cx.as_ref().map_or(null_mut(), |c| (*c.function).head.user)
}

unsafe extern "C" fn column_count(cx: *mut CRow) -> c_int {
    on(cx, |c| Ok(c.row().column_count() as c_int))
}

unsafe extern "C" fn row_count(cx: *mut CRow, out: *mut i64) -> c_int {
    on(cx, |c| {
        *out = c.row().row_count()?;
        Ok(OK)
    })
}

unsafe extern "C" fn column_total_size(cx: *mut CRow, column: c_int, out: *mut i64) -> c_int {
    on(cx, |c| {
        *out = 0;
        *out = c.row().column_total(column)?;
        Ok(OK)
    })
}

unsafe extern "C" fn tokenize(
    cx: *mut CRow,
    p: *const c_char,
    n: c_int,
    to: *mut c_void,
    f: Option<TakeToken>,
) -> c_int {
    tokenize_v2(cx, p, n, null(), 0, to, f)
}

unsafe extern "C" fn tokenize_v2(
    cx: *mut CRow,
    p: *const c_char,
    n: c_int,
    locale: *const c_char,
    locale_len: c_int,
    to: *mut c_void,
    f: Option<TakeToken>,
) -> c_int {
    on(cx, |c| {
        let f = f.ok_or(Code::Misuse)?;
        let locale = (!locale.is_null()).then(|| slice(locale, locale_len));
        Ok(tokens_to_c(f, to, |sink| c.row().tokenize(slice(p, n), locale, sink)))
    })
}

unsafe extern "C" fn phrase_count(cx: *mut CRow) -> c_int {
    on(cx, |c| Ok(c.row().phrase_count() as c_int))
}

unsafe extern "C" fn phrase_size(cx: *mut CRow, phrase: c_int) -> c_int {
    on(cx, |c| Ok(usize::try_from(phrase).map_or(0, |p| c.row().phrase_size(p) as c_int)))
}

unsafe extern "C" fn inst_count(cx: *mut CRow, out: *mut c_int) -> c_int {
    on(cx, |c| {
        *out = c.row().instances()?.len() as c_int;
        Ok(OK)
    })
}

unsafe extern "C" fn inst(
    cx: *mut CRow,
    at: c_int,
    phrase: *mut c_int,
    column: *mut c_int,
    offset: *mut c_int,
) -> c_int {
    on(cx, |c| {
        let all = c.row().instances()?;
        let Some(i) = usize::try_from(at).ok().and_then(|at| all.get(at)) else { return Ok(RANGE) };
        (*phrase, *column, *offset) = (i.phrase as c_int, i.column, i.offset);
        Ok(OK)
    })
}

unsafe extern "C" fn rowid(cx: *mut CRow) -> i64 {
    cx.as_ref().map_or(0, |c| c.row().rowid())
}

unsafe extern "C" fn column_text(
    cx: *mut CRow,
    column: c_int,
    p: *mut *const c_char,
    n: *mut c_int,
) -> c_int {
    on(cx, |c| {
        (*p, *n) = (null(), 0);
        c.show(c.row().column_text(column)?.0, p, n);
        Ok(OK)
    })
}

unsafe extern "C" fn column_locale(
    cx: *mut CRow,
    column: c_int,
    p: *mut *const c_char,
    n: *mut c_int,
) -> c_int {
    on(cx, |c| {
        (*p, *n) = (null(), 0);
        c.show(c.row().column_text(column)?.1, p, n);
        Ok(OK)
    })
}

unsafe extern "C" fn column_size(cx: *mut CRow, column: c_int, out: *mut c_int) -> c_int {
    on(cx, |c| {
        *out = 0;
        *out = c.row().column_size(column)? as c_int;
        Ok(OK)
    })
}

unsafe extern "C" fn query_phrase(
    cx: *mut CRow,
    phrase: c_int,
    user: *mut c_void,
    f: Option<EachRow>,
) -> c_int {
    on(cx, |c| {
        let f = f.ok_or(Code::Misuse)?;
        let phrase = usize::try_from(phrase).ok().filter(|p| *p < c.row().phrase_count());
        let Some(phrase) = phrase else { return Ok(RANGE) };
        let mut said = OK;
        c.row().query_phrase(phrase, &mut |row| {
            let mut seen = CRow::new(row, &*c.function);
            said = f(&EXTENSION, &mut seen, user);
            Ok(said == OK)
        })?;
        Ok(if said == crate::DONE { OK } else { said })
    })
}

unsafe extern "C" fn set_auxdata(cx: *mut CRow, p: *mut c_void, let_go: Option<Destructor>) -> c_int {
    on(cx, |c| {
        c.row().keep(c.name(), Rc::new(Kept(p, let_go, Default::default())));
        Ok(OK)
    })
}

unsafe extern "C" fn get_auxdata(cx: *mut CRow, clear: c_int) -> *mut c_void {
    let Some(c) = cx.as_ref() else { return null_mut() };
    guard(null_mut(), || {
        let kept = if clear != 0 { c.row().give_up(c.name()) } else { c.row().kept(c.name()) };
        match kept.as_ref().and_then(|k| k.downcast_ref::<Kept>()) {
            Some(k) => {
                k.2.set(clear != 0);
                k.0
            }
            None => null_mut(),
        }
    })
}

/// Goes to the next place of a phrase; with `columns`, in the next column that has one.
unsafe fn advance(c: &CRow, it: &mut PhraseIter, columns: bool, column: *mut c_int) -> Result<c_int> {
    let (from, phrase) = (it.next as usize, it.phrase as usize);
    let all = c.row().instances()?;
    let last = *column;
    let found = all.iter().enumerate().skip(from);
    let mut found = found.filter(|(_, i)| i.phrase == phrase && (!columns || from == 0 || i.column != last));
    match found.next() {
        Some((at, i)) => {
            it.next = (at + 1) as *const u8;
            *column = i.column;
            Ok(i.offset)
        }
        None => {
            it.next = all.len() as *const u8;
            *column = -1;
            Ok(-1)
        }
    }
}

unsafe extern "C" fn phrase_first(
    cx: *mut CRow,
    phrase: c_int,
    it: *mut PhraseIter,
    column: *mut c_int,
    offset: *mut c_int,
) -> c_int {
    *it = PhraseIter { next: null(), phrase: phrase.max(0) as usize as *const u8 };
    on(cx, |c| {
        if !usize::try_from(phrase).is_ok_and(|p| p < c.row().phrase_count()) {
            return Ok(RANGE);
        }
        *offset = advance(c, &mut *it, false, column)?;
        Ok(OK)
    })
}

unsafe extern "C" fn phrase_next(cx: *mut CRow, it: *mut PhraseIter, column: *mut c_int, offset: *mut c_int) {
    on(cx, |c| {
        *offset = advance(c, &mut *it, false, column)?;
        Ok(OK)
    });
}

unsafe extern "C" fn phrase_first_column(
    cx: *mut CRow,
    phrase: c_int,
    it: *mut PhraseIter,
    column: *mut c_int,
) -> c_int {
    *it = PhraseIter { next: null(), phrase: phrase.max(0) as usize as *const u8 };
    on(cx, |c| {
        if !usize::try_from(phrase).is_ok_and(|p| p < c.row().phrase_count()) {
            return Ok(RANGE);
        }
        *column = -1;
        advance(c, &mut *it, true, column)?;
        Ok(OK)
    })
}

unsafe extern "C" fn phrase_next_column(cx: *mut CRow, it: *mut PhraseIter, column: *mut c_int) {
    on(cx, |c| {
        advance(c, &mut *it, true, column)?;
        Ok(OK)
    });
}

unsafe extern "C" fn query_token(
    cx: *mut CRow,
    phrase: c_int,
    token: c_int,
    p: *mut *const c_char,
    n: *mut c_int,
) -> c_int {
    on(cx, |c| {
        (*p, *n) = (null(), 0);
        let place = usize::try_from(phrase).ok().zip(usize::try_from(token).ok());
        match place.and_then(|(phrase, token)| c.row().query_token(phrase, token)) {
            Some(t) => c.show(Some(t), p, n),
            None => return Ok(RANGE),
        }
        Ok(OK)
    })
}

unsafe extern "C" fn inst_token(
    cx: *mut CRow,
    at: c_int,
    token: c_int,
    p: *mut *const c_char,
    n: *mut c_int,
) -> c_int {
    on(cx, |c| {
        (*p, *n) = (null(), 0);
        let (Ok(at), Ok(token)) = (usize::try_from(at), usize::try_from(token)) else { return Ok(RANGE) };
        let phrase = c.row().instances()?.get(at).map(|i| i.phrase);
        if phrase.is_none_or(|p| token >= c.row().phrase_size(p)) {
            return Ok(RANGE);
        }
        c.show(c.row().instance_token(at, token)?, p, n);
        Ok(OK)
    })
}

/// `Fts5ExtensionApi` of version 4.
#[repr(C)]
pub struct Extension {
    version: c_int,
    user_data: unsafe extern "C" fn(*mut CRow) -> *mut c_void,
    column_count: unsafe extern "C" fn(*mut CRow) -> c_int,
    row_count: unsafe extern "C" fn(*mut CRow, *mut i64) -> c_int,
    column_total_size: unsafe extern "C" fn(*mut CRow, c_int, *mut i64) -> c_int,
    tokenize: unsafe extern "C" fn(*mut CRow, *const c_char, c_int, *mut c_void, Option<TakeToken>) -> c_int,
    phrase_count: unsafe extern "C" fn(*mut CRow) -> c_int,
    phrase_size: unsafe extern "C" fn(*mut CRow, c_int) -> c_int,
    inst_count: unsafe extern "C" fn(*mut CRow, *mut c_int) -> c_int,
    inst: unsafe extern "C" fn(*mut CRow, c_int, *mut c_int, *mut c_int, *mut c_int) -> c_int,
    rowid: unsafe extern "C" fn(*mut CRow) -> i64,
    column_text: unsafe extern "C" fn(*mut CRow, c_int, *mut *const c_char, *mut c_int) -> c_int,
    column_size: unsafe extern "C" fn(*mut CRow, c_int, *mut c_int) -> c_int,
    query_phrase: unsafe extern "C" fn(*mut CRow, c_int, *mut c_void, Option<EachRow>) -> c_int,
    set_auxdata: unsafe extern "C" fn(*mut CRow, *mut c_void, Option<Destructor>) -> c_int,
    get_auxdata: unsafe extern "C" fn(*mut CRow, c_int) -> *mut c_void,
    phrase_first: unsafe extern "C" fn(*mut CRow, c_int, *mut PhraseIter, *mut c_int, *mut c_int) -> c_int,
    phrase_next: unsafe extern "C" fn(*mut CRow, *mut PhraseIter, *mut c_int, *mut c_int),
    phrase_first_column: unsafe extern "C" fn(*mut CRow, c_int, *mut PhraseIter, *mut c_int) -> c_int,
    phrase_next_column: unsafe extern "C" fn(*mut CRow, *mut PhraseIter, *mut c_int),
    query_token: unsafe extern "C" fn(*mut CRow, c_int, c_int, *mut *const c_char, *mut c_int) -> c_int,
    inst_token: unsafe extern "C" fn(*mut CRow, c_int, c_int, *mut *const c_char, *mut c_int) -> c_int,
    column_locale: unsafe extern "C" fn(*mut CRow, c_int, *mut *const c_char, *mut c_int) -> c_int,
    tokenize_v2: unsafe extern "C" fn(
        *mut CRow,
        *const c_char,
        c_int,
        *const c_char,
        c_int,
        *mut c_void,
        Option<TakeToken>,
    ) -> c_int,
}

static EXTENSION: Extension = Extension {
    version: 4,
    user_data,
    column_count,
    row_count,
    column_total_size,
    tokenize,
    phrase_count,
    phrase_size,
    inst_count,
    inst,
    rowid,
    column_text,
    column_size,
    query_phrase,
    set_auxdata,
    get_auxdata,
    phrase_first,
    phrase_next,
    phrase_first_column,
    phrase_next_column,
    query_token,
    inst_token,
    column_locale,
    tokenize_v2,
};

/// Bytes that C hands over.
pub(crate) unsafe fn slice<'a>(p: *const c_char, n: c_int) -> &'a [u8] {
    if p.is_null() || n <= 0 { b"" } else { std::slice::from_raw_parts(p.cast(), n as usize) }
}

/// Hands tokens to a function in C, whose answer other than 0 ends that and is answered.
pub(crate) unsafe fn tokens_to_c(
    f: TakeToken,
    cx: *mut c_void,
    run: impl FnOnce(&mut TokenSink<'_>) -> Result<()>,
) -> c_int {
    let mut said = OK;
    let done = run(&mut |t| {
        // SAFETY: the function takes such tokens; the text lives across the call.
        said = unsafe {
            let (p, n) = (t.text.as_ptr().cast(), t.text.len() as c_int);
            f(cx, t.colocated as c_int, p, n, t.start as c_int, t.end as c_int)
        };
        Ok(said == OK)
    });
    match (said, done) {
        (OK, Err(e)) => e.code().number() as c_int,
        (crate::DONE, _) => OK,
        (said, _) => said,
    }
}
