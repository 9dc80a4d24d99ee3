//! Functions written in C: scalars, aggregates, window functions; their contexts and results.

use crate::connection::destroy;
use crate::connection::{Db, Destructor, text, with};
use crate::value::CValue;
use crate::value::{from_encoding, given, zeroblob};
use crate::{MISUSE, OK};
use iolite::engine::{
    Aggregate, Code, Context, Error, Function, FunctionFlags, Implementation, Scalar, Value,
};
use iolite_ext::AuxData;
use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::rc::Rc;

pub type Call = unsafe extern "C" fn(*mut CContext, c_int, *mut *mut CValue);
type Final = unsafe extern "C" fn(*mut CContext);

/// What a `sqlite3_context*` points at.
///
/// Bindings that link a copy of SQLite into an extension call its `sqlite3_user_data`, which reads the second word here, and
/// of what that points at the second word: both stand where that copy looks for them.
#[repr(C)]
pub struct CContext {
    pub(crate) db: *mut Db,
    head: *const Head,
    /// The result, or what is said of a failure.
    result: RefCell<Value>,
    /// The code of a failure; what is given as result afterwards does not undo it, but a code that is none does.
    failure: Cell<c_int>,
    /// Memory was short, which nothing undoes.
    short: Cell<bool>,
    /// A result was given.
    answered: Cell<bool>,
    /// It is for a column of a virtual table that an UPDATE leaves as it is.
    unchanged: bool,
    /// Where the aggregate keeps its memory.
    memory: *mut Memory,
    aux: *mut AuxData,
}

/// How a function begins, for whoever looks into it.
#[repr(C)]
pub(crate) struct Head {
    kind: usize,
    /// The program's data.
    pub(crate) user: *mut c_void,
}

impl Head {
    pub(crate) const fn new(user: *mut c_void) -> Head {
        Head { kind: 0, user }
    }
}

impl CContext {
    /// The program's data of the function; NULL for what is no function.
    fn user(&self) -> *mut c_void {
        // SAFETY: the function outlives the contexts of its calls.
        unsafe { self.head.as_ref() }.map_or(null_mut(), |h| h.user)
    }

    /// A context for a column of a virtual table.
    pub(crate) fn of_column(db: *mut Db, unchanged: bool) -> CContext {
        CContext {
            db,
            head: null(),
            result: RefCell::new(Value::Null),
            failure: Cell::new(OK),
            short: Cell::new(false),
            answered: Cell::new(false),
            unchanged,
            memory: null_mut(),
            aux: null_mut(),
        }
    }

    /// A context for a function that belongs to a table's module.
    pub(crate) fn of_auxiliary(db: *mut Db, head: &Head) -> CContext {
        CContext { head, ..CContext::of_column(db, false) }
    }

    /// Whether the column need not be known.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.unchanged
    }

    /// The result; none was given.
    pub(crate) fn answer(self) -> Option<Result<Value, Error>> {
        self.answered.get().then(|| self.outcome())
    }

    /// The result, NULL if none was given, or the failure.
    fn outcome(self) -> Result<Value, Error> {
        let v = self.result.into_inner();
        if self.short.get() {
            return Err(Code::Nomem.into());
        }
        match self.failure.get() {
            OK => Ok(v),
            code => {
                let mut room = [0; 32];
                let text = v.lent_text(&mut room).split(|b| *b == 0).next().unwrap_or_default();
                Err(Error::numbered(code as u32, Some(String::from_utf8_lossy(text).into_owned())))
            }
        }
    }

    fn fail(&self, code: c_int, message: &str) {
        self.answered.set(true);
        self.failure.set(code);
        let text = Value::text(message.as_bytes()).unwrap_or_default();
        let old = self.result.replace(text);
        crate::guard((), || drop(old));
    }
}

/// A scalar function that a virtual table has found for a name.
pub(crate) fn overloaded(
    db: *mut Db,
    name: &str,
    args: usize,
    call: Option<Call>,
    user: *mut c_void,
) -> Rc<Function> {
    let mut code = Callbacks::new(db, user, None);
    code.call = call;
    let imp = Implementation::User(Rc::new(CScalar(Rc::new(code))));
    Rc::new(Function { name: name.into(), args: args as i16, flags: FunctionFlags::default(), imp })
}

/// A function that is there so that its name is known, for virtual tables to overload; called otherwise, it fails.
pub(crate) fn placeholder(name: &str, args: i16, refusal: fn(&str) -> Error) -> Function {
    struct Refuses(Box<str>, fn(&str) -> Error);
    impl Scalar for Refuses {
        fn call(&self, _: &mut Context<'_>, _: &[Value]) -> iolite::Result<Value> {
            Err((self.1)(&self.0))
        }
    }
    let imp = Implementation::User(Rc::new(Refuses(name.into(), refusal)));
    Function { name: name.into(), args, flags: FunctionFlags::default(), imp }
}

/// An aggregate's memory, allocated when first asked for.
struct Memory(*mut c_void);

/// The C side of a function.
struct Callbacks {
    db: *mut Db,
    head: Head,
    call: Option<Call>,
    step: Option<Call>,
    finish: Option<Final>,
    value: Option<Final>,
    inverse: Option<Call>,
    destroy: Cell<Option<Destructor>>,
}

impl Drop for Callbacks {
    fn drop(&mut self) {
        self.release();
    }
}

impl Callbacks {
    /// A function that does nothing yet.
    fn new(db: *mut Db, user: *mut c_void, destroy: Option<Destructor>) -> Callbacks {
        Callbacks {
            db,
            head: Head::new(user),
            call: None,
            step: None,
            finish: None,
            value: None,
            inverse: None,
            destroy: Cell::new(destroy),
        }
    }

    /// Releases the program's data, once: nobody calls the function any more.
    fn release(&self) {
        // SAFETY: the pointer and its destructor were given together, and this is the only place that runs it.
        unsafe { destroy(self.destroy.take(), self.head.user) };
    }

    fn context(&self, memory: *mut Memory, aux: *mut AuxData) -> CContext {
        CContext {
            db: self.db,
            head: &self.head,
            result: RefCell::new(Value::Null),
            failure: Cell::new(OK),
            short: Cell::new(false),
            answered: Cell::new(false),
            unchanged: false,
            memory,
            aux,
        }
    }

    /// Calls C with arguments.
    /// `bound`: which of them are parameters, as a bit set.
    fn invoke(&self, f: Call, args: &[Value], bound: u32, cx: &mut CContext) -> iolite::Result<()> {
        // SAFETY: the connection outlives its functions.
        let db = unsafe { &*self.db };
        let mut values = args.iter().map(|v| db.lent(v)).collect::<iolite::Result<Vec<CValue>>>()?;
        for (_, v) in values.iter_mut().take(31).enumerate().filter(|(i, _)| bound & 1 << i != 0) {
            v.bound = true;
        }
        // There is an array also where there are no arguments: callers in other languages look at it.
        let mut pointers: Vec<*mut CValue> =
            values.iter_mut().map(|v| v as *mut CValue).chain([null_mut()]).collect();
        // SAFETY: the function was registered for this shape of call; context and arguments live across it.
        db.calling(|| unsafe { f(cx, args.len() as c_int, pointers.as_mut_ptr()) });
        Ok(())
    }
}

struct CScalar(Rc<Callbacks>);

impl Scalar for CScalar {
    fn call(&self, ctx: &mut Context<'_>, args: &[Value]) -> iolite::Result<Value> {
        let Some(f) = self.0.call else { return Err(Code::Misuse.into()) };
        let bound = ctx.aux.bound_args;
        let mut cx = self.0.context(null_mut(), ctx.aux);
        self.0.invoke(f, args, bound, &mut cx)?;
        cx.outcome()
    }
}

struct CAggregate {
    code: Rc<Callbacks>,
    memory: Memory,
    finished: bool,
}

impl CAggregate {
    fn run(&mut self, f: Call, args: &[Value]) -> iolite::Result<()> {
        let mut cx = self.code.context(&mut self.memory, null_mut());
        self.code.invoke(f, args, 0, &mut cx)?;
        cx.outcome().map(|_| ())
    }

    fn ask(&mut self, f: Final) -> iolite::Result<Value> {
        let mut cx = self.code.context(&mut self.memory, null_mut());
        // SAFETY: as in `invoke`.
        unsafe { (*self.code.db).calling(|| f(&mut cx)) };
        cx.outcome()
    }
}

impl Aggregate for CAggregate {
    fn step(&mut self, _: &mut Context<'_>, args: &[Value]) -> iolite::Result<()> {
        match self.code.step {
            Some(f) => self.run(f, args),
            None => Err(Code::Misuse.into()),
        }
    }

    fn inverse(&mut self, _: &mut Context<'_>, args: &[Value]) -> iolite::Result<()> {
        match self.code.inverse {
            Some(f) => self.run(f, args),
            None => Err(Code::Misuse.into()),
        }
    }

    fn value(&mut self, ctx: &mut Context<'_>) -> iolite::Result<Value> {
        match self.code.value {
            Some(f) => self.ask(f),
            None => self.finish(ctx),
        }
    }

    fn finish(&mut self, _: &mut Context<'_>) -> iolite::Result<Value> {
        self.finished = true;
        match self.code.finish {
            Some(f) => self.ask(f),
            None => Err(Code::Misuse.into()),
        }
    }
}

impl Drop for CAggregate {
    fn drop(&mut self) {
        // A group that was begun is ended, so that C can release what hangs on it.
        if !self.finished
            && !self.memory.0.is_null()
            && let Some(f) = self.code.finish
        {
            let _ = self.ask(f);
        }
        // SAFETY: allocated by calloc, or NULL.
        unsafe { libc::free(self.memory.0) };
    }
}

/// What `create_function` is given.
struct Given {
    db: *mut Db,
    name: String,
    args: c_int,
    flags: c_int,
    code: Callbacks,
}

/// The encoding that a function asks for: 1 for UTF-8, which also stands for any, 2 and 3 for UTF-16.
fn encoding_of(flags: c_int) -> u8 {
    match flags & 7 {
        2 => 2,
        3 => 3,
        4 => crate::text::number_of(crate::connection::WIDE),
        _ => 1,
    }
}

/// A function of the program's by its name in small letters, number of arguments and encoding.
pub(crate) struct Registered {
    key: (String, i16, u8),
    code: Rc<Callbacks>,
    /// None: it was taken back.
    function: Option<Function>,
}

/// Of the functions with a name and number of arguments the one whose encoding is nearest to the database's.
fn best(list: &[Registered], name: &str, args: i16, wanted: u8) -> Option<Function> {
    let fit = |f: &&Registered| match f.key.2 {
        e if e == wanted => 2,
        e if e > 1 && wanted > 1 => 1,
        _ => 0,
    };
    list.iter().filter(|f| f.key.0 == name && f.key.1 == args).max_by_key(fit)?.function.clone()
}

unsafe fn create(g: Given) -> c_int {
    let Given { db, name, args, flags, code } = g;
    with(db, MISUSE, |d| {
        let scalar = code.call.is_some();
        let aggregate = code.step.is_some() && code.finish.is_some();
        let half = code.step.is_some() != code.finish.is_some();
        let window = aggregate && code.value.is_some();
        let wrong = half || scalar && code.step.is_some() || code.value.is_some() != code.inverse.is_some();
        if wrong || name.is_empty() || name.len() > 255 || !(-1..=1000).contains(&args) {
            return MISUSE;
        }
        let Some(c) = d.conn() else { return MISUSE };
        let encoding = encoding_of(flags);
        let key = (name.to_ascii_lowercase(), args as i16, encoding);
        let known = d.hooks.functions.borrow().iter().position(|f| f.key == key);
        // Those that are built in are for UTF-8.
        let own = |f: &Registered| f.key.0 == key.0 && f.key.1 == key.1;
        let built_in = !d.hooks.functions.borrow().iter().any(own) && c.has_function(&name, args as i16);
        let replaces = known.is_some() || encoding == 1 && built_in;
        if replaces && (crate::statement::any_busy(d) || d.blobs.get() > 0) {
            return d
                .fail_text(crate::BUSY, "unable to delete/modify user-function due to active statements");
        }
        if !replaces && !scalar && !aggregate {
            return OK;
        }
        let mut set = FunctionFlags::default();
        for (bit, flag) in [
            (0x800, FunctionFlags::DETERMINISTIC),
            (0x80000, FunctionFlags::DIRECT_ONLY),
            (0x100000, FunctionFlags::SUBTYPE),
            (0x1000000, FunctionFlags::SUBTYPE),
            (0x200000, FunctionFlags::INNOCUOUS),
        ] {
            if flags & bit != 0 {
                set = set.and(flag);
            }
        }
        if window {
            set = set.and(FunctionFlags::WINDOW);
        }
        if aggregate {
            set = set.and(FunctionFlags::POINTERS);
        }
        let code = Rc::new(code);
        let imp = if scalar {
            Some(Implementation::User(Rc::new(CScalar(code.clone()))))
        } else if aggregate {
            let code = code.clone();
            Some(Implementation::Aggregate(Rc::new(move || {
                Box::new(CAggregate { code: code.clone(), memory: Memory(null_mut()), finished: false })
            })))
        } else {
            None
        };
        let made = imp.map(|imp| Function { name: name.as_str().into(), args: args as i16, flags: set, imp });
        let own = Registered { key: key.clone(), code, function: made };
        let former = {
            let mut list = d.hooks.functions.borrow_mut();
            match known {
                Some(at) => Some(std::mem::replace(&mut list[at], own)),
                None => {
                    list.push(own);
                    None
                }
            }
        };
        if let Some(f) = &former {
            f.code.release();
        }
        let wanted = crate::text::number_of(c.encoding());
        match best(&d.hooks.functions.borrow(), &key.0, key.1, wanted) {
            Some(f) => c.create_function(f),
            None => c.remove_function(&name, args as i16),
        }
        OK
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_create_function(
    db: *mut Db,
    name: *const c_char,
    args: c_int,
    flags: c_int,
    user: *mut c_void,
    call: Option<Call>,
    step: Option<Call>,
    finish: Option<Final>,
) -> c_int {
    sqlite3_create_function_v2(db, name, args, flags, user, call, step, finish, None)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_create_function_v2(
    db: *mut Db,
    name: *const c_char,
    args: c_int,
    flags: c_int,
    user: *mut c_void,
    call: Option<Call>,
    step: Option<Call>,
    finish: Option<Final>,
    destroy: Option<Destructor>,
) -> c_int {
    let mut code = Callbacks::new(db, user, destroy);
    (code.call, code.step, code.finish) = (call, step, finish);
    create(Given { db, name: text(name), args, flags, code })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_create_function16(
    db: *mut Db,
    name: *const c_void,
    args: c_int,
    flags: c_int,
    user: *mut c_void,
    call: Option<Call>,
    step: Option<Call>,
    finish: Option<Final>,
) -> c_int {
    let name = String::from_utf8_lossy(&crate::text::from_utf16(name, -1)).into_owned();
    let mut code = Callbacks::new(db, user, None);
    (code.call, code.step, code.finish) = (call, step, finish);
    create(Given { db, name, args, flags, code })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_create_window_function(
    db: *mut Db,
    name: *const c_char,
    args: c_int,
    flags: c_int,
    user: *mut c_void,
    step: Option<Call>,
    finish: Option<Final>,
    value: Option<Final>,
    inverse: Option<Call>,
    destroy: Option<Destructor>,
) -> c_int {
    let mut code = Callbacks::new(db, user, destroy);
    (code.step, code.finish, code.value, code.inverse) = (step, finish, value, inverse);
    create(Given { db, name: text(name), args, flags, code })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_aggregate_context(cx: *mut CContext, n: c_int) -> *mut c_void {
    let Some(m) = cx.as_ref().and_then(|c| c.memory.as_mut()) else { return null_mut() };
    if m.0.is_null() && n > 0 {
        m.0 = libc::calloc(1, n as usize);
    }
    m.0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_aggregate_count(_: *mut CContext) -> c_int {
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_user_data(cx: *mut CContext) -> *mut c_void {
    cx.as_ref().map_or(null_mut(), CContext::user)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_context_db_handle(cx: *mut CContext) -> *mut Db {
    cx.as_ref().map_or(null_mut(), |c| c.db)
}

/// A pointer kept for a constant argument.
struct Kept(*mut c_void, Option<Destructor>);

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: pointer and destructor were given together, and nobody else holds them.
        unsafe { destroy(self.1, self.0) };
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_get_auxdata(cx: *mut CContext, n: c_int) -> *mut c_void {
    let aux = cx.as_ref().and_then(|c| c.aux.as_ref());
    aux.and_then(|a| a.get::<Kept>(n)).map_or(null_mut(), |k| k.0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_set_auxdata(
    cx: *mut CContext,
    n: c_int,
    p: *mut c_void,
    f: Option<Destructor>,
) {
    match cx.as_ref().and_then(|c| c.aux.as_mut()) {
        Some(a) => a.set(n, Rc::new(Kept(p, f))),
        None => destroy(f, p),
    }
}

unsafe fn result(cx: *mut CContext, make: impl FnOnce() -> iolite::Result<Value>) {
    let Some(c) = cx.as_ref() else { return };
    match crate::guard(Err(Code::Internal.into()), make) {
        Ok(v) => {
            c.answered.set(true);
            let old = c.result.replace(v);
            crate::guard((), || drop(old));
        }
        Err(e) => fail(c, &e),
    }
}

fn fail(c: &CContext, e: &Error) {
    c.short.set(c.short.get() || e.code() == Code::Nomem);
    c.fail(e.code().number() as c_int, e.message());
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_result_null(cx: *mut CContext) {
    result(cx, || Ok(Value::Null));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_result_int(cx: *mut CContext, v: c_int) {
    result(cx, || Ok(Value::Int(v as i64)));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_result_int64(cx: *mut CContext, v: i64) {
    result(cx, || Ok(Value::Int(v)));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_result_double(cx: *mut CContext, v: f64) {
    result(cx, || Ok(Value::real(v)));
}

unsafe fn result_bytes(
    cx: *mut CContext,
    p: *const c_void,
    n: i64,
    f: Option<Destructor>,
    make: impl FnOnce() -> iolite::Result<Value>,
) {
    result(cx, || {
        if p.is_null() {
            Ok(Value::Null)
        } else if n > i32::MAX as i64 {
            Err(Code::Toobig.into())
        } else {
            make()
        }
    });
    if !p.is_null() {
        destroy(f, p);
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_result_text(
    cx: *mut CContext,
    p: *const c_char,
    n: c_int,
    f: Option<Destructor>,
) {
    let p = p as *const c_void;
    result_bytes(cx, p, n as i64, f, || Value::text(given(p, n as i64)));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_result_text64(
    cx: *mut CContext,
    p: *const c_char,
    n: u64,
    f: Option<Destructor>,
    encoding: c_uchar,
) {
    let (p, n) = (p as *const c_void, i64::try_from(n).unwrap_or(i64::MAX));
    result_bytes(cx, p, n, f, || from_encoding(p, n, encoding));
}

macro_rules! wide_results {
    ($($name:ident $encoding:literal;)*) => {
        $(#[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(cx: *mut CContext, p: *const c_void, n: c_int, f: Option<Destructor>) {
            result_bytes(cx, p, n as i64, f, || {
                let n = if n >= 0 { n as i64 } else { wide_length(p) };
                from_encoding(p, n, $encoding)
            });
        })*
    };
}

wide_results! {
    sqlite3_result_text16 4;
    sqlite3_result_text16le 2;
    sqlite3_result_text16be 3;
}

unsafe fn wide_length(p: *const c_void) -> i64 {
    let p = p as *const u8;
    let mut n = 0;
    while *p.add(n) != 0 || *p.add(n + 1) != 0 {
        n += 2;
    }
    n as i64
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_result_blob(
    cx: *mut CContext,
    p: *const c_void,
    n: c_int,
    f: Option<Destructor>,
) {
    result_bytes(cx, p, n as i64, f, || Value::blob(given(p, n.max(0) as i64)));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_result_blob64(
    cx: *mut CContext,
    p: *const c_void,
    n: u64,
    f: Option<Destructor>,
) {
    let n = i64::try_from(n).unwrap_or(i64::MAX);
    result_bytes(cx, p, n, f, || Value::blob(given(p, n)));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_result_value(cx: *mut CContext, v: *const CValue) {
    // A copy: the value may be another connection's.
    result(cx, || v.as_ref().map_or(Ok(Value::Null), |v| v.copy()));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_result_zeroblob(cx: *mut CContext, n: c_int) {
    result(cx, || zeroblob(n.max(0) as u64));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_result_zeroblob64(cx: *mut CContext, n: u64) -> c_int {
    let mut rc = crate::INTERNAL;
    result(cx, || {
        let v = zeroblob(n);
        rc = v.as_ref().map_or_else(|e| e.code().number() as c_int, |_| OK);
        v
    });
    rc
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_result_pointer(
    cx: *mut CContext,
    p: *mut c_void,
    name: *const c_char,
    f: Option<Destructor>,
) {
    result(cx, || crate::pointer::of_pointer(p, crate::connection::bytes(name)));
    // Values do not know their end: it is released when no statement runs any more.
    if let Some(c) = cx.as_ref()
        && let (Some(d), Some(f)) = (c.db.as_ref(), f)
    {
        d.result_pointers.borrow_mut().push((p, f));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_result_subtype(cx: *mut CContext, subtype: c_uint) {
    if let Some(c) = cx.as_ref()
        && let Value::Text(_, s) | Value::Blob(_, s) = &mut *c.result.borrow_mut()
    {
        *s = subtype as u8;
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_result_error(cx: *mut CContext, p: *const c_char, n: c_int) {
    result(cx, || Err(Error::sql(String::from_utf8_lossy(given(p as *const c_void, n as i64)))));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_result_error16(cx: *mut CContext, p: *const c_void, n: c_int) {
    result(cx, || Err(Error::sql(String::from_utf8_lossy(&crate::text::from_utf16(p, n as i64)))));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_result_error_code(cx: *mut CContext, code: c_int) {
    let Some(c) = cx.as_ref() else { return };
    if c.result.borrow().is_null() {
        // Nothing was said yet.
        c.fail(code, crate::connection::code_text(code));
    }
    c.answered.set(true);
    c.failure.set(code.max(OK));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_result_error_nomem(cx: *mut CContext) {
    result(cx, || Err(Code::Nomem.into()));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_result_error_toobig(cx: *mut CContext) {
    result(cx, || Err(Code::Toobig.into()));
}
