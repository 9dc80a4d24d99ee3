//! `sqlite3_index_info`: the question and answer of `xBestIndex`, with what the functions around it are asked.
//!
//! The structure that C sees begins a larger one, which has what `sqlite3_vtab_collation` and the like answer from. It lives
//! for the time of the call.

use crate::text::c_text;
use crate::value::CValue;
use crate::{ERROR, MISUSE, NOTFOUND, OK};
use iolite::engine::{ConstraintUse, FilterArgs, IndexData, IndexInfo, OrderUse};
use iolite_base::raw_text;
use std::any::Any;
use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::ptr::null_mut;
use std::rc::Rc;

#[repr(C)]
struct CConstraint {
    column: c_int,
    op: c_uchar,
    usable: c_uchar,
    term: c_int,
}

#[repr(C)]
struct COrder {
    column: c_int,
    desc: c_uchar,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct CUsage {
    arg: c_int,
    omit: c_uchar,
}

/// `sqlite3_index_info`.
#[repr(C)]
pub struct CIndexInfo {
    constraint_count: c_int,
    constraints: *mut CConstraint,
    order_count: c_int,
    order: *mut COrder,
    usage: *mut CUsage,
    index_num: c_int,
    index_str: *mut c_char,
    free_index_str: c_int,
    ordered: c_int,
    cost: f64,
    rows: i64,
    flags: c_int,
    columns_used: u64,
}

/// What surrounds it.
#[repr(C)]
struct Asked {
    info: CIndexInfo,
    /// Of each constraint its collating sequence's name, its value, whether it is an IN, whether its values come at once.
    collations: Vec<CString>,
    values: Vec<Option<Box<CValue>>>,
    ins: Vec<bool>,
    lists: Vec<bool>,
    purpose: OrderUse,
}

/// `SQLITE_INDEX_SCAN_UNIQUE`.
const UNIQUE: c_int = 1;

/// Puts the question to `f`; takes its answer down.
pub(crate) fn ask(q: &mut IndexInfo, f: impl FnOnce(*mut CIndexInfo) -> c_int) -> c_int {
    let mut constraints: Vec<CConstraint> = q
        .constraints
        .iter()
        .enumerate()
        .map(|(k, c)| CConstraint {
            column: c.column,
            op: c.op.code(),
            usable: c.usable as c_uchar,
            term: k as c_int,
        })
        .collect();
    let mut order: Vec<COrder> =
        q.order_by.iter().map(|o| COrder { column: o.column, desc: o.desc as c_uchar }).collect();
    let mut usage = vec![CUsage { arg: 0, omit: 0 }; constraints.len()];
    // There are arrays also where there is nothing in them: callers in other languages look at them.
    constraints.reserve(1);
    order.reserve(1);
    usage.reserve(1);
    let mut asked = Asked {
        info: CIndexInfo {
            constraint_count: constraints.len() as c_int,
            constraints: constraints.as_mut_ptr(),
            order_count: order.len() as c_int,
            order: order.as_mut_ptr(),
            usage: usage.as_mut_ptr(),
            index_num: 0,
            index_str: null_mut(),
            free_index_str: 0,
            ordered: 0,
            cost: q.cost,
            rows: q.rows,
            flags: 0,
            columns_used: q.columns_used,
        },
        collations: q.constraints.iter().map(|c| c_text(c.collation.name())).collect(),
        values: q
            .constraints
            .iter()
            .map(|c| c.value.as_ref().map(|v| Box::new(CValue::new(v.clone()))))
            .collect(),
        ins: q.constraints.iter().map(|c| c.is_in).collect(),
        lists: vec![false; constraints.len()],
        purpose: q.order_use,
    };
    let rc = f(&mut asked as *mut Asked as *mut CIndexInfo);
    let info = &asked.info;
    q.usage = usage
        .iter()
        .zip(&asked.lists)
        .map(|(u, list)| ConstraintUse { arg: u.arg, omit: u.omit != 0, list: *list })
        .collect();
    q.index_num = info.index_num;
    q.index_data = (!info.index_str.is_null()).then(|| {
        Rc::new(IndexStr { at: info.index_str, free: info.free_index_str != 0 }) as Rc<dyn IndexData>
    });
    (q.ordered, q.cost, q.rows) = (info.ordered != 0, info.cost, info.rows);
    q.unique = info.flags & UNIQUE != 0;
    rc
}

/// `idxStr`: what the module has left with a plan. It need not be a text: modules keep structures there, and get the very
/// pointer back.
#[derive(Debug)]
struct IndexStr {
    at: *mut c_char,
    /// It is memory of `sqlite3_malloc` that goes with the plan.
    free: bool,
}

impl IndexData for IndexStr {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn shown(&self) -> String {
        // SAFETY: whoever asks for a module's plan in words relies on its being a C string, as in SQLite.
        raw_text::encode(unsafe { CStr::from_ptr(self.at) }.to_bytes()).into_owned()
    }
}

impl Drop for IndexStr {
    fn drop(&mut self) {
        if self.free {
            // SAFETY: the module said that it is memory of `sqlite3_malloc`, and nobody frees it but the plan.
            unsafe { crate::memory::sqlite3_free(self.at as *mut c_void) };
        }
    }
}

/// The pointer that the plan has kept for `xFilter`; NULL for none.
pub(crate) fn index_str(args: &FilterArgs<'_>) -> *const c_char {
    args.data().and_then(|d| d.as_any().downcast_ref::<IndexStr>()).map_or(std::ptr::null(), |s| s.at)
}

unsafe fn asked<'a>(info: *mut CIndexInfo) -> Option<&'a mut Asked> {
    (info as *mut Asked).as_mut()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_vtab_collation(info: *mut CIndexInfo, n: c_int) -> *const c_char {
    let name = asked(info).and_then(|a| a.collations.get(usize::try_from(n).ok()?));
    name.map_or(std::ptr::null(), |c| c.as_ptr())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_vtab_distinct(info: *mut CIndexInfo) -> c_int {
    asked(info).map_or(0, |a| match a.purpose {
        _ if a.info.order_count == 0 => 0,
        OrderUse::Sorted => 0,
        OrderUse::Grouped => 1,
        OrderUse::Distinct => 2,
        OrderUse::DistinctSorted => 3,
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_vtab_in(info: *mut CIndexInfo, n: c_int, at_once: c_int) -> c_int {
    let Some(a) = asked(info) else { return 0 };
    let Some(k) = usize::try_from(n).ok().filter(|k| a.ins.get(*k) == Some(&true)) else { return 0 };
    if at_once >= 0 {
        a.lists[k] = at_once > 0;
    }
    1
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_vtab_rhs_value(
    info: *mut CIndexInfo,
    n: c_int,
    out: *mut *mut CValue,
) -> c_int {
    if out.is_null() {
        return MISUSE;
    }
    *out = null_mut();
    let Some(a) = asked(info) else { return MISUSE };
    match usize::try_from(n).ok().and_then(|k| a.values.get_mut(k)) {
        None => MISUSE,
        Some(None) => NOTFOUND,
        Some(Some(v)) => {
            *out = &mut **v;
            OK
        }
    }
}

/// The next value of a list that stands for the values of an IN.
unsafe fn next_of(v: *mut CValue, out: *mut *mut CValue, first: bool) -> c_int {
    if out.is_null() {
        return MISUSE;
    }
    *out = null_mut();
    let Some((list, at)) = v.as_mut().and_then(|v| v.list.as_mut()) else { return ERROR };
    if first {
        *at = 0;
    }
    let Some(value) = list.get_mut(*at) else { return crate::DONE };
    *at += 1;
    *out = &mut **value;
    OK
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_vtab_in_first(v: *mut CValue, out: *mut *mut CValue) -> c_int {
    next_of(v, out, true)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_vtab_in_next(v: *mut CValue, out: *mut *mut CValue) -> c_int {
    next_of(v, out, false)
}
