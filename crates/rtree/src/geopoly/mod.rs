//! `geopoly` (documentation page of that name): polygons, found by the rectangles around them, which an R*Tree keeps. The polygon
//! itself is the tree's first auxiliary column.

mod functions;
mod overlap;
mod polygon;

pub(crate) use functions::functions_named;

use crate::constraint::{Comparison, Constraint};
use crate::cursor::{Shared, Walk};
use crate::layout::{Cell, MOST_DIMENSIONS};
use crate::table::{add, make_room, remove};
use iolite_base::{Code, Error, Result};
use iolite_ext::{Change, ConstraintOp, FilterArgs, IndexInfo, Overload, VirtualCursor, VirtualTable};
use iolite_value::Value;
use polygon::{Bounds, Shape};
use std::rc::Rc;

const BY_ROWID: i32 = 1;
const OVERLAPS: i32 = 2;
const WITHIN: i32 = 3;
const ALL: i32 = 4;

/// The first of the numbers that overloaded functions have as constraints.
const FIRST_FUNCTION: u8 = 150;

/// A table of polygons.
pub(crate) struct Geopoly {
    shared: Rc<Shared>,
}

/// The rectangle around a value. Of what makes no attempt at being a polygon it is a point.
fn bounds(v: &Value) -> Option<Bounds> {
    match Shape::of(v) {
        Shape::Polygon(p) => Some(p.bounds()),
        Shape::Nothing => Some([0.0; 4]),
        Shape::Wrong => None,
    }
}

impl Geopoly {
    pub fn new(shared: Rc<Shared>) -> Geopoly {
        Geopoly { shared }
    }
}

impl VirtualTable for Geopoly {
    fn best_index(&self, info: &mut IndexInfo) -> Result<()> {
        let mut by_function = None;
        for (k, c) in info.constraints.iter().enumerate().filter(|c| c.1.usable) {
            if c.column < 0 && c.op == ConstraintOp::Eq {
                (info.usage[k].arg, info.usage[k].omit) = (1, true);
                (info.index_num, info.index_str) = (BY_ROWID, "rowid".into());
                (info.cost, info.rows, info.unique) = (30.0, 1, true);
                return Ok(());
            }
            if let (0, ConstraintOp::Function(n)) = (c.column, c.op) {
                by_function = Some((k, i32::from(n - FIRST_FUNCTION) + OVERLAPS));
            }
        }
        match by_function {
            Some((k, plan)) => {
                info.usage[k].arg = 1;
                (info.index_num, info.index_str) = (plan, "rtree".into());
                (info.cost, info.rows) = (300.0, 10);
            }
            None => {
                (info.index_num, info.index_str) = (ALL, "fullscan".into());
                (info.cost, info.rows) = (3_000_000.0, 100_000);
            }
        }
        Ok(())
    }

    fn open(&self) -> Result<Box<dyn VirtualCursor>> {
        Ok(Box::new(Cursor { walk: Walk::new(&self.shared) }))
    }

    fn writable(&self) -> bool {
        true
    }

    fn update(&self, change: &Change<'_>) -> Result<i64> {
        let shared = &*self.shared;
        shared.check_changeable()?;
        let old = change.old.map(Value::to_int);
        let Some((rowid, values)) = change.new else {
            remove(shared, old.unwrap_or(0))?;
            return Ok(0);
        };
        let new = (!rowid.is_null()).then(|| rowid.to_int());
        let kept = old.is_some() && change.is_unchanged(0);
        let shape = values.first().cloned().unwrap_or_default();
        let mut id = new.or(old);
        if !kept || old != new {
            let Some(found) = bounds(&shape) else {
                return Err(Error::sql("_shape does not contain a valid polygon"));
            };
            if let Some(new) = new.filter(|n| old != Some(*n)) {
                make_room(shared, new, change.conflict, "_shape")?;
            }
            if let Some(old) = old {
                remove(shared, old)?;
            }
            let mut cell = Cell { id: 0, bounds: [0.0; 2 * MOST_DIMENSIONS] };
            for (to, from) in cell.bounds.iter_mut().zip(found) {
                *to = from as f64;
            }
            cell.id = match new {
                Some(n) => n,
                None => shared.store.new_rowid()?,
            };
            add(shared, &cell)?;
            id = Some(cell.id);
        }
        let id = id.ok_or(Code::Internal)?;
        let shape = match (&shape, Shape::of(&shape)) {
            _ if kept => Value::Null,
            (Value::Text(..), Shape::Polygon(p)) => p.blob()?,
            _ => shape,
        };
        let more = values.get(1..).unwrap_or(&[]).iter().cloned();
        shared.store.set_auxiliary(id, std::iter::once(shape).chain(more))?;
        Ok(id)
    }

    fn rename(&self, name: &str) -> Result<()> {
        self.shared.store.rename(name)
    }

    fn destroy(&self) -> Result<()> {
        self.shared.store.destroy()
    }

    fn function(&self, name: &str, args: usize) -> Option<Overload> {
        let number = match (name, args) {
            ("geopoly_overlap", 2) => FIRST_FUNCTION,
            ("geopoly_within", 2) => FIRST_FUNCTION + 1,
            _ => return None,
        };
        let function = functions_named(name).into_iter().next()?;
        Some(Overload { function, constraint: Some(number) })
    }
}

struct Cursor {
    walk: Walk,
}

impl VirtualCursor for Cursor {
    fn filter(&mut self, index_num: i32, _: &str, args: &FilterArgs<'_>) -> Result<()> {
        self.walk.reset();
        let first = args.first();
        if index_num == BY_ROWID {
            return self.walk.seek(first.map_or(0, Value::to_int));
        }
        let mut constraints = Vec::new();
        if index_num == OVERLAPS || index_num == WITHIN {
            let around = first.and_then(bounds).ok_or(Code::Error)?;
            let [left, right, bottom, top] = around.map(f64::from);
            use Comparison::{AtLeast, AtMost};
            let wanted = if index_num == OVERLAPS {
                [(AtMost, right), (AtLeast, left), (AtMost, top), (AtLeast, bottom)]
            } else {
                [(AtLeast, left), (AtMost, right), (AtLeast, bottom), (AtMost, top)]
            };
            constraints
                .extend(wanted.iter().enumerate().map(|(k, (how, v))| Constraint::compared(*how, k, *v)));
        }
        self.walk.start(constraints)
    }

    fn next(&mut self) -> Result<()> {
        self.walk.next()
    }

    fn eof(&self) -> bool {
        self.walk.eof()
    }

    fn column(&self, n: usize) -> Result<Value> {
        self.walk.auxiliary(n)
    }

    fn column_unchanged(&self, n: usize) -> Result<Option<Value>> {
        if n == 0 { Ok(None) } else { self.column(n).map(Some) }
    }

    fn rowid(&self) -> Result<i64> {
        self.walk.rowid()
    }
}
