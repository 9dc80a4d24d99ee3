//! `carray` (documentation page of that name): the elements of an array of the program as rows.
//!
//! The array comes by a pointer that is bound to a parameter: with its length and type, or as `sqlite3_carray_bind` has it.
//! The memory behind it is read while rows are fetched; that it is there is the program's promise.

use crate::connection::Destructor;
use crate::statement::{Stmt, destroy, is_transient, sqlite3_bind_pointer};
use crate::value::pointer_of;
use crate::{ERROR, NOMEM};
use iolite::engine::{
    ConstraintOp, Declared, Error, FilterArgs, Host, IndexInfo, Module, ModuleKind, Result, TableArgs, Trust,
    Value, VirtualCursor, VirtualTable,
};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::rc::Rc;

/// Under what name the pointer of `sqlite3_carray_bind` is bound, and that of `carray(pointer, count)`.
const BOUND: &CStr = c"carray-bind";
const PLAIN: &str = "carray";
/// Types by their numbers; behind them, the structure `iovec`.
const NAMES: [&str; 5] = ["int32", "int64", "double", "char*", "struct iovec"];

/// What a bound array is.
struct Bound {
    data: *mut c_void,
    count: c_int,
    kind: c_uint,
    destroy: Option<Destructor>,
    /// What the destructor is given.
    release: *mut c_void,
    /// A copy of the array that is ours, and of the texts or blobs that it points at.
    _copy: Vec<u64>,
    _contents: Vec<Vec<u8>>,
}

impl Drop for Bound {
    fn drop(&mut self) {
        // SAFETY: pointer and destructor were given together, and this is their last holder.
        unsafe { destroy(self.destroy, self.release) };
    }
}

/// The module.
pub(crate) struct CArray;

impl Module for CArray {
    fn kind(&self) -> ModuleKind {
        ModuleKind::EponymousOnly
    }

    fn connect(&self, _: &Rc<dyn Host>, _: &TableArgs<'_>) -> Result<Declared> {
        let declaration = "CREATE TABLE x(value, pointer HIDDEN, count HIDDEN, ctype TEXT HIDDEN)";
        Ok(Declared { trust: Trust::Normal, ..Declared::new(declaration, Rc::new(Table)) })
    }
}

struct Table;

impl VirtualTable for Table {
    fn holds_nothing(&self) -> bool {
        true
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<()> {
        let mut given = 0;
        for column in 1..4 {
            let is =
                |c: &iolite::engine::Constraint| c.column == column && c.op == ConstraintOp::Eq && c.usable;
            let Some(k) = info.constraints.iter().position(is).filter(|_| given == column - 1) else { break };
            given = column;
            (info.usage[k].arg, info.usage[k].omit) = (given, true);
        }
        info.index_num = given;
        (info.cost, info.rows) = if given > 0 { (1.0, 100) } else { (2_147_483_647.0, 2_147_483_647) };
        Ok(())
    }

    fn open(&self) -> Result<Box<dyn VirtualCursor>> {
        Ok(Box::new(Elements { data: std::ptr::null(), count: 0, kind: 0, at: 0 }))
    }
}

struct Elements {
    data: *const c_void,
    count: usize,
    kind: usize,
    at: usize,
}

impl VirtualCursor for Elements {
    fn filter(&mut self, given: i32, _: &str, args: &FilterArgs<'_>) -> Result<()> {
        (self.data, self.count, self.at) = (std::ptr::null(), 0, 0);
        if given == 1 {
            let bound = pointer_of(&args[0], BOUND.to_bytes()) as *const Bound;
            // SAFETY: a pointer of this name comes from `sqlite3_carray_bind` alone, which keeps it with the statement.
            if let Some(b) = unsafe { bound.as_ref() } {
                (self.data, self.count, self.kind) = (b.data, b.count.max(0) as usize, b.kind as usize & 7);
            }
        } else if given > 1 {
            self.data = pointer_of(&args[0], PLAIN.as_bytes());
            self.count = args[1].to_int().clamp(0, i32::MAX as i64) as usize;
            let name = args.get(2).map_or("int32".into(), |v| v.text_carried().to_string());
            let kind = NAMES.iter().position(|n| n.eq_ignore_ascii_case(&name));
            self.kind = kind.ok_or_else(|| Error::sql(format!("unknown datatype: '{name}'")))?;
        }
        if self.data.is_null() {
            self.count = 0;
        }
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }

    fn eof(&self) -> bool {
        self.at >= self.count
    }

    fn column(&self, n: usize) -> Result<Value> {
        // SAFETY: the program has promised that the array has so many elements of this type.
        unsafe {
            match (n, self.kind) {
                (0, 0) => Ok(Value::Int((self.data as *const i32).add(self.at).read_unaligned() as i64)),
                (0, 1) => Ok(Value::Int((self.data as *const i64).add(self.at).read_unaligned())),
                (0, 2) => Ok(Value::real((self.data as *const f64).add(self.at).read_unaligned())),
                (0, 3) => match (self.data as *const *const c_char).add(self.at).read_unaligned() {
                    p if p.is_null() => Ok(Value::Null),
                    p => Value::text(CStr::from_ptr(p).to_bytes()),
                },
                (0, _) => {
                    let v = (self.data as *const libc::iovec).add(self.at).read_unaligned();
                    match v.iov_base.is_null() {
                        true => Ok(Value::Null),
                        false => Value::blob(std::slice::from_raw_parts(v.iov_base as *const u8, v.iov_len)),
                    }
                }
                (2, _) => Ok(Value::Int(self.count as i64)),
                (3, k) => Value::text(NAMES[k.min(4)]),
                _ => Ok(Value::Null),
            }
        }
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.at as i64 + 1)
    }
}

/// Copies an array, and what it points at.
unsafe fn copy_of(data: *const c_void, count: usize, kind: c_uint) -> (Vec<u64>, Vec<Vec<u8>>) {
    let width = match kind {
        0 => 4,
        4 => size_of::<libc::iovec>(),
        _ => 8,
    };
    let mut copy = vec![0u64; (count * width).div_ceil(8)];
    std::ptr::copy_nonoverlapping(data as *const u8, copy.as_mut_ptr() as *mut u8, count * width);
    let mut contents: Vec<Vec<u8>> = Vec::new();
    for k in 0..count {
        if kind == 3 {
            let p = (copy.as_mut_ptr() as *mut *const c_char).add(k);
            if !(*p).is_null() {
                contents.push(CStr::from_ptr(*p).to_bytes_with_nul().to_vec());
                *p = contents.last().map_or(std::ptr::null(), |c| c.as_ptr() as *const c_char);
            }
        } else if kind == 4 {
            let v = (copy.as_mut_ptr() as *mut libc::iovec).add(k);
            if !(*v).iov_base.is_null() {
                contents.push(std::slice::from_raw_parts((*v).iov_base as *const u8, (*v).iov_len).to_vec());
                (*v).iov_base = contents.last().map_or(std::ptr::null_mut(), |c| c.as_ptr() as *mut c_void);
            }
        }
    }
    (copy, contents)
}

unsafe extern "C" fn release(p: *mut c_void) {
    if !p.is_null() {
        crate::guard((), || drop(Box::from_raw(p as *mut Bound)));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_carray_bind_v2(
    s: *mut Stmt,
    i: c_int,
    data: *mut c_void,
    count: c_int,
    kind: c_uint,
    f: Option<Destructor>,
    user: *mut c_void,
) -> c_int {
    if kind > 4 {
        destroy(f, user);
        return ERROR;
    }
    let made = crate::guard(None, || {
        let mut bound = Bound {
            data,
            count,
            kind,
            destroy: f.filter(|_| !is_transient(f)),
            release: user,
            _copy: Vec::new(),
            _contents: Vec::new(),
        };
        if is_transient(f) && !data.is_null() {
            (bound._copy, bound._contents) = copy_of(data, count.max(0) as usize, kind);
            bound.data = bound._copy.as_mut_ptr() as *mut c_void;
        }
        Some(Box::new(bound))
    });
    match made {
        Some(b) => sqlite3_bind_pointer(s, i, Box::into_raw(b) as *mut c_void, BOUND.as_ptr(), Some(release)),
        None => NOMEM,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_carray_bind(
    s: *mut Stmt,
    i: c_int,
    data: *mut c_void,
    count: c_int,
    kind: c_uint,
    f: Option<Destructor>,
) -> c_int {
    sqlite3_carray_bind_v2(s, i, data, count, kind, f, data)
}
