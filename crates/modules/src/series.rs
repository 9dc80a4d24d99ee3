//! `generate_series(start, stop, step)`: integers. A step below zero counts down. Conditions on `value` cut the series short.

use crate::rows::{arguments, take_arguments};
use iolite_base::{Error, Result};
use iolite_ext::{
    ConstraintOp, Declared, FilterArgs, Host, IndexInfo, Module, ModuleKind, TableArgs, Trust, VirtualCursor,
    VirtualTable,
};
use iolite_value::Value;
use std::rc::Rc;

/// The module.
pub(crate) struct Series;

struct Table;

/// The series stops here where nothing else is said.
const LAST: i64 = 0xffff_ffff;

/// How a plan is made of bits: three for the arguments, then the order, then what is said of `value`.
const DOWN: i32 = 8;
const UP: i32 = 16;
const VALUE: i32 = 5;

/// What may be said of `value`, by the bit that says that it is.
const OPS: [ConstraintOp; 5] =
    [ConstraintOp::Eq, ConstraintOp::Gt, ConstraintOp::Ge, ConstraintOp::Lt, ConstraintOp::Le];

impl Module for Series {
    fn kind(&self) -> ModuleKind {
        ModuleKind::EponymousOnly
    }

    fn connect(&self, _: &Rc<dyn Host>, _: &TableArgs<'_>) -> Result<Declared> {
        let declaration = "CREATE TABLE x(value, start HIDDEN, stop HIDDEN, step HIDDEN)";
        Ok(Declared { trust: Trust::Innocuous, ..Declared::new(declaration, Rc::new(Table)) })
    }
}

impl VirtualTable for Table {
    fn holds_nothing(&self) -> bool {
        true
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<()> {
        let mut plan = take_arguments(info, 1, 3)?;
        if plan & 1 == 0 {
            return Err(Error::sql("first argument to \"generate_series()\" missing or unusable"));
        }
        let mut passed = plan.count_ones() as i32;
        for (k, op) in OPS.iter().enumerate() {
            let at = info.constraints.iter().position(|c| c.column == 0 && c.usable && c.op == *op);
            if let Some(at) = at {
                passed += 1;
                info.usage[at].arg = passed;
                plan |= 1 << (VALUE + k as i32);
            }
        }
        if let [o] = info.order_by[..]
            && o.column == 0
        {
            plan |= if o.desc { DOWN } else { UP };
            info.ordered = true;
        }
        let bounded = plan & 2 != 0;
        info.cost = if bounded { 2.0 - f64::from(plan >> 2 & 1) } else { 2_147_483_647.0 };
        info.rows = if bounded { 1000 } else { 2_147_483_647 };
        if plan & 1 << VALUE != 0 {
            (info.cost, info.rows) = (1.0, 1);
        }
        info.index_num = plan;
        Ok(())
    }

    fn open(&self) -> Result<Box<dyn VirtualCursor>> {
        Ok(Box::new(Cursor::default()))
    }
}

/// A run through a series. Arithmetic is wide: no start, stop and step overflow it.
#[derive(Default)]
struct Cursor {
    args: [i64; 3],
    value: i128,
    step: i128,
    left: i128,
    row: i64,
}

/// The integers that a condition on `value` leaves, as bounds; `None`: none. Values of other types are not looked at here.
fn narrow(op: ConstraintOp, v: &Value, lo: &mut i128, hi: &mut i128) -> Option<()> {
    let (floor, ceil) = match v {
        Value::Null => return None,
        Value::Int(i) => (i128::from(*i), i128::from(*i)),
        Value::Real(r) => (r.floor() as i128, r.ceil() as i128),
        _ => return Some(()),
    };
    match op {
        ConstraintOp::Eq => {
            *lo = (*lo).max(ceil);
            *hi = (*hi).min(floor);
        }
        ConstraintOp::Gt => *lo = (*lo).max(floor.saturating_add(1)),
        ConstraintOp::Ge => *lo = (*lo).max(ceil),
        ConstraintOp::Lt => *hi = (*hi).min(ceil.saturating_sub(1)),
        _ => *hi = (*hi).min(floor),
    }
    Some(())
}

impl Cursor {
    /// Works out the run; `None`: there are no rows.
    fn plan(&mut self, plan: i32, args: &[Value]) -> Option<()> {
        let list = arguments::<3>(plan & 7, args);
        if list.iter().flatten().any(|v| v.is_null()) {
            return None;
        }
        let int = |k: usize, otherwise| list[k].map_or(otherwise, Value::to_int);
        self.args = [
            int(0, 0),
            int(1, LAST),
            match int(2, 1) {
                0 => 1,
                n => n,
            },
        ];
        let [start, stop, step] = self.args.map(i128::from);
        let (mut lo, mut hi) = if step > 0 { (start, stop) } else { (stop, start) };
        let mut rest = args[(plan & 7).count_ones() as usize..].iter();
        for (k, op) in OPS.iter().enumerate().filter(|(k, _)| plan & 1 << (VALUE + *k as i32) != 0) {
            let _ = k;
            narrow(*op, rest.next()?, &mut lo, &mut hi)?;
        }
        // The first and last steps from the start that lie within the bounds.
        let width = step.abs();
        let (first, last) = match step > 0 {
            true => (lo - start, hi - start),
            false => (start - hi, start - lo),
        };
        let (first, last) = ((first + width - 1).div_euclid(width).max(0), last.div_euclid(width));
        if last < first {
            return None;
        }
        let turned = plan & DOWN != 0 && step > 0 || plan & UP != 0 && step < 0;
        self.value = start + step * if turned { last } else { first };
        self.step = if turned { -step } else { step };
        self.left = last - first + 1;
        Some(())
    }
}

impl VirtualCursor for Cursor {
    fn filter(&mut self, index_num: i32, _: &str, args: &FilterArgs<'_>) -> Result<()> {
        *self = Cursor { row: 1, ..Cursor::default() };
        if self.plan(index_num, args).is_none() {
            self.left = 0;
        }
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.value += self.step;
        self.left -= 1;
        self.row += 1;
        Ok(())
    }

    fn eof(&self) -> bool {
        self.left <= 0
    }

    fn column(&self, n: usize) -> Result<Value> {
        Ok(Value::Int(match n {
            0 => self.value as i64,
            n => self.args[n - 1],
        }))
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.row)
    }
}
