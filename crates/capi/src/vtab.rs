//! Modules written in C: their tables and cursors as `iolite_ext` has them.
//!
//! What always holds: a table is disconnected or destroyed once, a cursor closed once, the pointer of a module released once,
//! behind all its tables. A text that a method leaves in `zErrMsg` becomes the error's and is freed. What is decided about
//! tables is decided below; `vtab_index` has what `xBestIndex` is asked with, `vtab_calls` the entry points.

use crate::connection::destroy;
use crate::connection::{Db, Destructor};
use crate::function::{CContext, Call, overloaded};
use crate::text::c_text;
use crate::value::CValue;
use crate::vtab_making::Making;
use iolite::engine::{
    Change, Code, Declared, Error, FilterArgs, Host, IndexInfo, Module, ModuleKind, OnConflict, Overload,
    Participant, Result, TableArgs, Value, VirtualCursor, VirtualTable,
};
use iolite_base::raw_text;
use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::rc::{Rc, Weak};

type Constructor = unsafe extern "C" fn(
    *mut Db,
    *mut c_void,
    c_int,
    *const *const c_char,
    *mut *mut CTable,
    *mut *mut c_char,
) -> c_int;
type OfTable = unsafe extern "C" fn(*mut CTable) -> c_int;
type OfCursor = unsafe extern "C" fn(*mut CCursor) -> c_int;
type Mark = unsafe extern "C" fn(*mut CTable, c_int) -> c_int;

/// `sqlite3_module`. Members behind `rename` are there from version 2, 3 and 4 on.
#[repr(C)]
pub struct CModule {
    pub version: c_int,
    pub create: Option<Constructor>,
    pub connect: Option<Constructor>,
    pub best_index: Option<unsafe extern "C" fn(*mut CTable, *mut crate::vtab_index::CIndexInfo) -> c_int>,
    pub disconnect: Option<OfTable>,
    pub destroy: Option<OfTable>,
    pub open: Option<unsafe extern "C" fn(*mut CTable, *mut *mut CCursor) -> c_int>,
    pub close: Option<OfCursor>,
    pub filter:
        Option<unsafe extern "C" fn(*mut CCursor, c_int, *const c_char, c_int, *mut *mut CValue) -> c_int>,
    pub next: Option<OfCursor>,
    pub eof: Option<OfCursor>,
    pub column: Option<unsafe extern "C" fn(*mut CCursor, *mut CContext, c_int) -> c_int>,
    pub rowid: Option<unsafe extern "C" fn(*mut CCursor, *mut i64) -> c_int>,
    pub update: Option<unsafe extern "C" fn(*mut CTable, c_int, *mut *mut CValue, *mut i64) -> c_int>,
    pub begin: Option<OfTable>,
    pub sync: Option<OfTable>,
    pub commit: Option<OfTable>,
    pub rollback: Option<OfTable>,
    pub find_function: Option<
        unsafe extern "C" fn(*mut CTable, c_int, *const c_char, *mut Option<Call>, *mut *mut c_void) -> c_int,
    >,
    pub rename: Option<unsafe extern "C" fn(*mut CTable, *const c_char) -> c_int>,
    pub savepoint: Option<Mark>,
    pub release: Option<Mark>,
    pub rollback_to: Option<Mark>,
    pub shadow_name: Option<unsafe extern "C" fn(*const c_char) -> c_int>,
    pub integrity: Option<
        unsafe extern "C" fn(*mut CTable, *const c_char, *const c_char, c_int, *mut *mut c_char) -> c_int,
    >,
}

/// `sqlite3_vtab`: what a module's own structure begins with.
#[repr(C)]
pub struct CTable {
    module: *const CModule,
    references: c_int,
    message: *mut c_char,
}

/// `sqlite3_vtab_cursor`.
#[repr(C)]
pub struct CCursor {
    table: *mut CTable,
}

/// A registered module.
pub(crate) struct Registered {
    pub db: *mut Db,
    pub name: CString,
    pub methods: *const CModule,
    pub user: *mut c_void,
    pub destroy: Option<Destructor>,
}

impl Registered {
    fn methods(&self) -> &CModule {
        // SAFETY: the structure outlives the connection, as the C interface demands.
        unsafe { &*self.methods }
    }

    fn db(&self) -> &Db {
        // SAFETY: the connection's slot is never freed, and a module lives as long as its connection at the most.
        unsafe { &*self.db }
    }

    /// A method that older modules do not have.
    fn since<T>(&self, version: c_int, method: impl FnOnce(&CModule) -> Option<T>) -> Option<T> {
        if self.methods().version >= version { method(self.methods()) } else { None }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // SAFETY: pointer and destructor were given together, and this is their last holder.
        unsafe { destroy(self.destroy, self.user) };
    }
}

/// A module as the engine knows it.
pub(crate) struct ModuleInC(pub Rc<Registered>);

impl Module for ModuleInC {
    fn kind(&self) -> ModuleKind {
        let m = self.0.methods();
        match (m.create, m.connect) {
            (None, _) => ModuleKind::EponymousOnly,
            (Some(a), Some(b)) if a as usize == b as usize => ModuleKind::Eponymous,
            _ => ModuleKind::Created,
        }
    }

    fn create(&self, _: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<Declared> {
        self.make(self.0.methods().create, args)
    }

    fn connect(&self, _: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<Declared> {
        self.make(self.0.methods().connect, args)
    }

    fn is_shadow(&self, suffix: &str) -> bool {
        let name = c_text(suffix);
        // SAFETY: a C string for the time of the call.
        self.0.since(3, |m| m.shadow_name).is_some_and(|f| unsafe { f(name.as_ptr()) } != 0)
    }
}

fn code_of(rc: c_int) -> Code {
    let known = Code::from_number(rc as u32).or_else(|| Code::from_number(rc as u32 & 0xff));
    known.unwrap_or(Code::Error)
}

/// Takes a text that C has allocated.
unsafe fn take_text(p: *mut c_char) -> Option<String> {
    if p.is_null() {
        return None;
    }
    let text = raw_text::encode(CStr::from_ptr(p).to_bytes()).into_owned();
    crate::memory::sqlite3_free(p as *mut c_void);
    Some(text)
}

impl ModuleInC {
    fn make(&self, f: Option<Constructor>, args: &TableArgs<'_>) -> Result<Declared> {
        let m = &self.0;
        let Some(f) = f else { return Err(Code::Error.into()) };
        let eponymous = args.args.is_empty() && args.table.eq_ignore_ascii_case(args.module);
        let name = if eponymous { m.name.clone() } else { c_text(args.table) };
        let module = if eponymous { m.name.clone() } else { c_text(args.module) };
        let mut texts = vec![module, c_text(args.database), name];
        texts.extend(args.args.iter().map(|a| c_text(a)));
        let argv: Vec<*const c_char> = texts.iter().map(|t| t.as_ptr()).collect();
        let (mut table, mut message) = (null_mut(), null_mut());
        let writable = m.methods().update.is_some();
        m.db().making.borrow_mut().push(Making { writable, ..Making::default() });
        // SAFETY: the method was registered for this shape of call; the texts live across it.
        let rc = unsafe { f(m.db, m.user, argv.len() as c_int, argv.as_ptr(), &mut table, &mut message) };
        let made = m.db().making.borrow_mut().pop().unwrap_or_default();
        // SAFETY: the method has left a text of `sqlite3_malloc` there, or nothing.
        let message = unsafe { take_text(message) };
        if rc != 0 {
            return Err(message.map_or_else(|| code_of(rc).into(), |t| Error::new(code_of(rc), t)));
        }
        // SAFETY: a table that the method has answered.
        let Some(start) = (unsafe { table.as_mut() }) else { return Err(Code::Error.into()) };
        // As in SQLite all of it is set anew: a method need not have cleared its memory.
        (start.module, start.references, start.message) = (m.methods, 0, null_mut());
        let table = Rc::new_cyclic(|me| TableInC {
            me: me.clone(),
            module: m.clone(),
            table: Cell::new(table),
            cursors: Cell::new(0),
            key: made.key,
            texts,
        });
        let Some(declaration) = made.declaration else {
            return Err(Error::sql(format!("vtable constructor did not declare schema: {}", args.table)));
        };
        Ok(Declared {
            declaration,
            table,
            trust: made.trust,
            heeds_conflicts: made.heeds_conflicts,
            uses_all_schemas: made.all_schemas,
        })
    }
}

/// A table of a module in C.
struct TableInC {
    me: Weak<TableInC>,
    module: Rc<Registered>,
    /// NULL: destroyed.
    table: Cell<*mut CTable>,
    /// How many cursors are open.
    cursors: Cell<u32>,
    /// The column that names the rows, if there are no rowids.
    key: Option<usize>,
    /// What it was made with: the module's name, the database's, its own, the arguments. Modules keep pointers to these.
    texts: Vec<CString>,
}

impl Drop for TableInC {
    fn drop(&mut self) {
        let table = self.table.get();
        if let Some(f) = self.module.methods().disconnect.filter(|_| !table.is_null()) {
            // SAFETY: the table is there, and nobody has it any more.
            unsafe { f(table) };
        }
    }
}

impl TableInC {
    fn table(&self) -> Result<*mut CTable> {
        match self.table.get() {
            p if p.is_null() => Err(Code::Locked.into()),
            p => Ok(p),
        }
    }

    /// What a method has answered.
    fn outcome(&self, rc: c_int) -> Result<()> {
        // SAFETY: the table is there while its methods are called; what it has left is a text of `sqlite3_malloc`.
        let message = unsafe {
            self.table.get().as_mut().and_then(|t| take_text(std::mem::replace(&mut t.message, null_mut())))
        };
        match (rc, message) {
            (0, _) => Ok(()),
            (rc, Some(text)) => Err(Error::new(code_of(rc), text)),
            (rc, None) => Err(code_of(rc).into()),
        }
    }

    fn call(&self, method: Option<OfTable>) -> Result<()> {
        match method {
            // SAFETY: the method was registered for this shape of call.
            Some(f) => self.outcome(unsafe { f(self.table()?) }),
            None => Ok(()),
        }
    }

    /// A method about a savepoint: what it leaves as text is not heard.
    fn mark(&self, method: impl FnOnce(&CModule) -> Option<Mark>, n: i32) -> Result<()> {
        let Some(f) = self.module.since(2, method) else { return Ok(()) };
        // SAFETY: as in `call`.
        let rc = unsafe { f(self.table()?, n) };
        if rc == 0 { Ok(()) } else { Err(code_of(rc).into()) }
    }
}

impl VirtualTable for TableInC {
    fn best_index(&self, info: &mut IndexInfo) -> Result<()> {
        let Some(f) = self.module.methods().best_index else { return Err(Code::Error.into()) };
        let table = self.table()?;
        // SAFETY: as in `call`; the question lives across it.
        let rc = crate::vtab_index::ask(info, |asked| unsafe { f(table, asked) });
        match self.outcome(rc) {
            Err(e) if rc != Code::Constraint.number() as c_int => Err(match e.code() {
                Code::Nomem => e,
                _ => Error::sql(e.message()),
            }),
            other => other,
        }
    }

    fn open(&self) -> Result<Box<dyn VirtualCursor>> {
        let me = self.me.upgrade().ok_or(Code::Internal)?;
        let Some(f) = self.module.methods().open else { return Err(Code::Error.into()) };
        let (table, mut cursor) = (self.table()?, null_mut());
        // SAFETY: as in `call`.
        self.outcome(unsafe { f(table, &mut cursor) })?;
        // SAFETY: the method has answered a cursor.
        unsafe { cursor.as_mut() }.ok_or(Code::Error)?.table = table;
        self.cursors.set(self.cursors.get() + 1);
        Ok(Box::new(CursorInC { table: me, cursor, values: Vec::new() }))
    }

    fn takes_pointers(&self) -> bool {
        true
    }

    fn writable(&self) -> bool {
        self.module.methods().update.is_some()
    }

    fn update(&self, change: &Change<'_>) -> Result<i64> {
        let Some(f) = self.module.methods().update else { return Err(Code::Readonly.into()) };
        let db = self.module.db();
        let mut values = vec![db.lent(change.old.unwrap_or(&Value::Null))?];
        if let Some((key, columns)) = change.new {
            for v in std::iter::once(key).chain(columns) {
                values.push(db.lent(v)?);
            }
            (0..columns.len()).for_each(|k| values[k + 2].unchanged = change.is_unchanged(k));
            values[1].unchanged = self.key.is_some_and(|k| change.is_unchanged(k));
        }
        let former = db.on_conflict.replace(match change.conflict {
            OnConflict::Rollback => 1,
            OnConflict::Ignore => 2,
            OnConflict::Fail => 3,
            OnConflict::Abort => 4,
            OnConflict::Replace => 5,
        });
        let mut rowid = 0;
        let table = self.table()?;
        // SAFETY: as in `call`; the values live across it.
        let rc =
            with_pointers(&mut values, |n, list| db.calling(|| unsafe { f(table, n, list, &mut rowid) }));
        db.on_conflict.set(former);
        self.outcome(rc).map(|()| rowid)
    }

    fn participant(self: Rc<Self>) -> Option<Rc<dyn Participant>> {
        Some(self)
    }

    fn is_busy(&self) -> bool {
        self.cursors.get() > 0
    }

    fn rename(&self, name: &str) -> Result<()> {
        let name = c_text(name);
        match self.module.methods().rename {
            // SAFETY: as in `call`.
            Some(f) => self.outcome(unsafe { f(self.table()?, name.as_ptr()) }),
            None => Ok(()),
        }
    }

    fn destroy(&self) -> Result<()> {
        let m = self.module.methods();
        let Some(f) = m.destroy.or(m.disconnect) else { return Ok(()) };
        // SAFETY: as in `call`. When it has answered that all went well, the table is gone.
        let rc = unsafe { f(self.table()?) };
        if rc != 0 {
            return Err(code_of(rc).into());
        }
        self.table.set(null_mut());
        Ok(())
    }

    fn function(&self, name: &str, args: usize) -> Option<Overload> {
        let f = self.module.methods().find_function?;
        let (mut code, mut user) = (None, null_mut());
        let text = c_text(name);
        // SAFETY: as in `call`.
        let rc = unsafe { f(self.table().ok()?, args as c_int, text.as_ptr(), &mut code, &mut user) };
        if rc == 0 {
            return None;
        }
        let function = overloaded(self.module.db, name, args, code, user);
        Some(Overload { function, constraint: u8::try_from(rc).ok().filter(|n| *n >= 150) })
    }

    fn integrity(&self, quick: bool) -> Result<Option<String>> {
        let Some(f) = self.module.since(4, |m| m.integrity) else { return Ok(None) };
        let mut message = null_mut();
        let (schema, name) = (self.texts[1].as_ptr(), self.texts[2].as_ptr());
        // SAFETY: as in `call`.
        let rc = unsafe { f(self.table()?, schema, name, quick as c_int, &mut message) };
        // SAFETY: a text of `sqlite3_malloc`, or nothing.
        let message = unsafe { take_text(message) };
        self.outcome(rc).map(|()| message)
    }
}

impl Participant for TableInC {
    fn joins_by_writing(&self) -> bool {
        self.module.methods().begin.is_some()
    }

    fn begin(&self) -> Result<()> {
        self.call(self.module.methods().begin)
    }

    fn sync(&self) -> Result<()> {
        self.call(self.module.methods().sync)
    }

    fn commit(&self) {
        let _ = self.call(self.module.methods().commit);
    }

    fn rollback(&self) {
        let _ = self.call(self.module.methods().rollback);
    }

    fn savepoint(&self, n: i32) -> Result<()> {
        self.mark(|m| m.savepoint, n)
    }

    fn release(&self, n: i32) -> Result<()> {
        self.mark(|m| m.release, n)
    }

    fn rollback_to(&self, n: i32) -> Result<()> {
        self.mark(|m| m.rollback_to, n)
    }
}

/// Hands values to C as it wants them.
fn with_pointers(values: &mut [CValue], f: impl FnOnce(c_int, *mut *mut CValue) -> c_int) -> c_int {
    let n = values.len() as c_int;
    // There is an array also where there are no values: callers in other languages look at it.
    let mut pointers: Vec<*mut CValue> =
        values.iter_mut().map(|v| v as *mut CValue).chain([null_mut()]).collect();
    f(n, pointers.as_mut_ptr())
}

/// A cursor of a table in C.
struct CursorInC {
    table: Rc<TableInC>,
    cursor: *mut CCursor,
    /// The values of the scan, which modules read until it ends: in SQLite they stay in their registers.
    values: Vec<CValue>,
}

impl Drop for CursorInC {
    fn drop(&mut self) {
        let t = &self.table;
        if let Some(f) = t.module.methods().close {
            // SAFETY: the cursor is there, and nobody has it any more.
            unsafe { f(self.cursor) };
        }
        t.cursors.set(t.cursors.get().saturating_sub(1));
    }
}

impl CursorInC {
    fn read(&self, n: usize, unchanged: bool) -> Result<Option<Value>> {
        let Some(f) = self.table.module.methods().column else { return Err(Code::Error.into()) };
        let mut context = CContext::of_column(self.table.module.db, unchanged);
        // SAFETY: the method was registered for this shape of call; the context lives across it.
        let rc = self.table.module.db().calling(|| unsafe { f(self.cursor, &mut context, n as c_int) });
        let answered = self.table.outcome(rc);
        match (context.answer(), answered) {
            (Some(Err(e)), _) | (_, Err(e)) => Err(e),
            (Some(Ok(v)), Ok(())) => Ok(Some(v)),
            (None, Ok(())) => Ok(None),
        }
    }
}

impl VirtualCursor for CursorInC {
    fn filter(&mut self, index_num: i32, _: &str, args: &FilterArgs<'_>) -> Result<()> {
        let Some(f) = self.table.module.methods().filter else { return Err(Code::Error.into()) };
        let db = self.table.module.db();
        let mut values = args.iter().map(|v| db.lent(v)).collect::<Result<Vec<CValue>>>()?;
        for (k, v) in values.iter_mut().enumerate() {
            let Some(list) = args.list(k) else { continue };
            v.list = Some((list.iter().map(|v| db.lent(v).map(Box::new)).collect::<Result<_>>()?, 0));
        }
        let (cursor, text) = (self.cursor, crate::vtab_index::index_str(args));
        let rc = with_pointers(&mut values, |n, list| {
            // SAFETY: as in `read`; the values live across it.
            db.calling(|| unsafe { f(cursor, index_num, text, n, list) })
        });
        self.values = values;
        self.table.outcome(rc)
    }

    fn next(&mut self) -> Result<()> {
        let Some(f) = self.table.module.methods().next else { return Err(Code::Error.into()) };
        // SAFETY: as in `read`.
        self.table.outcome(self.table.module.db().calling(|| unsafe { f(self.cursor) }))
    }

    fn eof(&self) -> bool {
        // SAFETY: as in `read`.
        self.table.module.methods().eof.is_none_or(|f| unsafe { f(self.cursor) } != 0)
    }

    fn column(&self, n: usize) -> Result<Value> {
        self.read(n, false).map(Option::unwrap_or_default)
    }

    fn column_unchanged(&self, n: usize) -> Result<Option<Value>> {
        self.read(n, true)
    }

    fn rowid(&self) -> Result<i64> {
        let Some(f) = self.table.module.methods().rowid else { return Err(Code::Error.into()) };
        let mut id = 0;
        // SAFETY: as in `read`.
        self.table.outcome(unsafe { f(self.cursor, &mut id) }).map(|()| id)
    }
}
