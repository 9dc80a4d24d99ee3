//! Regions for R*Trees that are written in C (documentation page `rtree`, section 6): `sqlite3_rtree_geometry_callback` and
//! `sqlite3_rtree_query_callback`, over the regions of the crate `rtree`.

use crate::connection::destroy;
use crate::connection::{Db, Destructor, text, with};
use crate::value::CValue;
use crate::{MISUSE, NOMEM, OK};
use iolite::engine::{Code, Value};
use iolite_rtree::geometry::{Geometry, Region, Visit, Within, function};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

/// What a callback sees of the call of its function: `sqlite3_rtree_geometry`, and the first part of
/// `sqlite3_rtree_query_info`.
#[repr(C)]
pub struct CGeometry {
    context: *mut c_void,
    count: c_int,
    params: *mut f64,
    user: *mut c_void,
    delete_user: Option<Destructor>,
}

/// `sqlite3_rtree_query_info`.
#[repr(C)]
pub struct CQuery {
    geometry: CGeometry,
    coordinates: *mut f64,
    queue: *mut c_uint,
    count: c_int,
    level: c_int,
    top_level: c_int,
    rowid: i64,
    parent_score: f64,
    parent_within: c_int,
    within: c_int,
    score: f64,
    values: *mut *mut CValue,
}

type Plain = unsafe extern "C" fn(*mut CGeometry, c_int, *mut f64, *mut c_int) -> c_int;
type Scored = unsafe extern "C" fn(*mut CQuery) -> c_int;

#[derive(Clone, Copy)]
enum Callback {
    Plain(Plain),
    Scored(Scored),
}

/// A program's callback.
struct Kind {
    callback: Callback,
    context: *mut c_void,
    destroy: Option<Destructor>,
}

// SAFETY: it is asked and let go of under the mutex of the one connection that its function belongs to; the program said
// with it that its threads may use that connection.
unsafe impl Send for Kind {}
// SAFETY: as above.
unsafe impl Sync for Kind {}

impl Drop for Kind {
    fn drop(&mut self) {
        // SAFETY: context and destructor were given together, and this is their last holder.
        unsafe { destroy(self.destroy, self.context) };
    }
}

/// One run: what the callbacks of it share, and the arguments that it points at.
struct Run {
    callback: Callback,
    query: CQuery,
    params: Vec<f64>,
    values: Vec<CValue>,
    pointers: Vec<*mut CValue>,
    /// What the callback may write to.
    coordinates: Vec<f64>,
    queue: Vec<c_uint>,
}

impl Geometry for Kind {
    fn is_plain(&self) -> bool {
        matches!(self.callback, Callback::Plain(_))
    }

    fn region(&self, args: &[Value]) -> iolite::Result<Box<dyn Region>> {
        let geometry = CGeometry {
            context: self.context,
            count: args.len() as c_int,
            params: null_mut(),
            user: null_mut(),
            delete_user: None,
        };
        let query = CQuery {
            geometry,
            coordinates: null_mut(),
            queue: null_mut(),
            count: 0,
            level: 0,
            top_level: 0,
            rowid: 0,
            parent_score: 0.0,
            parent_within: 0,
            within: 0,
            score: 0.0,
            values: null_mut(),
        };
        Ok(Box::new(Run {
            callback: self.callback,
            query,
            params: args.iter().map(Value::to_real).collect(),
            values: args.iter().map(|v| CValue::new(v.clone())).collect(),
            pointers: Vec::new(),
            coordinates: Vec::new(),
            queue: Vec::new(),
        }))
    }
}

impl Region for Run {
    fn visit(&mut self, visit: &mut Visit<'_>) -> iolite::Result<()> {
        if self.pointers.len() != self.values.len() {
            self.pointers = self.values.iter_mut().map(|v| v as *mut CValue).collect();
        }
        self.coordinates.clear();
        self.coordinates.extend_from_slice(visit.coordinates);
        let count = self.coordinates.len() as c_int;
        self.query.geometry.params = self.params.as_mut_ptr();
        let code = match self.callback {
            Callback::Plain(f) => {
                let mut inside = 0;
                // SAFETY: the callback was registered for this shape of call; all that is pointed at lives across it.
                let code =
                    unsafe { f(&mut self.query.geometry, count, self.coordinates.as_mut_ptr(), &mut inside) };
                visit.within = if inside == 0 { Within::Not } else { Within::Partly };
                code
            }
            Callback::Scored(f) => {
                self.queue.clear();
                self.queue.extend_from_slice(visit.queue);
                let q = &mut self.query;
                q.coordinates = self.coordinates.as_mut_ptr();
                q.queue = self.queue.as_mut_ptr();
                q.count = count;
                (q.level, q.top_level) = (visit.level as c_int, visit.top_level as c_int);
                if visit.level == 0 {
                    q.rowid = visit.rowid;
                }
                (q.parent_score, q.score) = (visit.parent_score, visit.score);
                (q.parent_within, q.within) = (visit.parent_within as c_int, visit.within as c_int);
                q.values = self.pointers.as_mut_ptr();
                // SAFETY: as above.
                let code = unsafe { f(q) };
                visit.score = q.score;
                visit.within = match q.within {
                    ..=0 => Within::Not,
                    1 => Within::Partly,
                    _ => Within::Fully,
                };
                code
            }
        };
        match code {
            OK => Ok(()),
            n => Err(Code::from_number(n as u32).unwrap_or(Code::Error).into()),
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let g = &self.query.geometry;
        if let Some(f) = g.delete_user {
            // SAFETY: the callback has set both for this call.
            unsafe { f(g.user) };
        }
    }
}

unsafe fn register(db: *mut Db, name: *const c_char, kind: Kind) -> c_int {
    with(db, MISUSE, |d| {
        if name.is_null() {
            return d.fail_code(MISUSE);
        }
        let Some(c) = d.conn() else { return d.fail_code(MISUSE) };
        match function(&text(name), Arc::new(kind)) {
            Ok(f) => {
                c.create_function(f);
                d.ok()
            }
            Err(_) => d.fail_code(NOMEM),
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_rtree_geometry_callback(
    db: *mut Db,
    name: *const c_char,
    f: Option<Plain>,
    context: *mut c_void,
) -> c_int {
    let Some(f) = f else { return MISUSE };
    register(db, name, Kind { callback: Callback::Plain(f), context, destroy: None })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_rtree_query_callback(
    db: *mut Db,
    name: *const c_char,
    f: Option<Scored>,
    context: *mut c_void,
    free: Option<Destructor>,
) -> c_int {
    let Some(f) = f else {
        destroy(free, context);
        return MISUSE;
    };
    register(db, name, Kind { callback: Callback::Scored(f), context, destroy: free })
}
