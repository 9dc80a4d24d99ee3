//! `carray` (documentation page of that name): the elements of an array of the program as rows.
//!
//! The array comes by a pointer that is bound to a parameter: with its length and type, or as `sqlite3_carray_bind` has it.
//! The memory behind it is read while rows are fetched; that it is there is the program's promise.

use crate::pointer::pointer_of;
use iolite::engine::{
    ConstraintOp, Declared, Error, FilterArgs, Host, IndexInfo, Module, ModuleKind, Result, TableArgs, Trust,
    Value, VirtualCursor, VirtualTable,
};
use std::any::Any;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::rc::Rc;

/// Under what name the pointer of `sqlite3_carray_bind` is bound, and that of `carray(pointer, count)`.
pub(crate) const BOUND: &CStr = c"carray-bind";
const PLAIN: &str = "carray";
/// Types by their numbers; behind them, the structure `iovec`.
const NAMES: [&str; 5] = ["int32", "int64", "double", "char*", "struct iovec"];

/// What a bound array is.
pub(crate) struct Bound {
    pub data: *const c_void,
    pub count: c_int,
    pub kind: c_uint,
    /// What keeps the array there, or lets it go.
    pub keeper: Box<dyn Any>,
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

    fn takes_pointers(&self) -> bool {
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
