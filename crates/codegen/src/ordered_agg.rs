//! `f(x ORDER BY k)`: an aggregate that collects its rows, sorts them at the end, and feeds the real one.

use iolite_base::Result;
use iolite_ext::{Aggregate, Context, Function, Implementation};
use iolite_value::{KeyInfo, Value, compare};
use std::cmp::Ordering;
use std::rc::Rc;

type Make = Rc<dyn Fn() -> Box<dyn Aggregate>>;

/// The function that takes `key.fields.len()` sort keys before the real arguments.
pub(crate) fn wrap(f: &Function, make: Make, key: Rc<KeyInfo>) -> Function {
    let imp = Implementation::Aggregate(Rc::new(move || {
        Box::new(Ordered { inner: make(), key: key.clone(), rows: Vec::new() }) as Box<dyn Aggregate>
    }));
    Function { name: f.name.clone(), args: -1, flags: f.flags, imp }
}

struct Ordered {
    inner: Box<dyn Aggregate>,
    key: Rc<KeyInfo>,
    rows: Vec<Vec<Value>>,
}

impl Aggregate for Ordered {
    fn step(&mut self, _: &mut Context<'_>, args: &[Value]) -> Result<()> {
        iolite_base::alloc::reserve(&mut self.rows, 1)?;
        self.rows.push(args.to_vec());
        Ok(())
    }

    fn value(&mut self, ctx: &mut Context<'_>) -> Result<Value> {
        let fields = &self.key.fields;
        self.rows.sort_by(|a, b| {
            for ((x, y), f) in a.iter().zip(b).zip(fields) {
                let o = compare::compare(x, y, &f.coll);
                if o.is_ne() {
                    return f.direct(o, x.is_null() || y.is_null());
                }
            }
            Ordering::Equal
        });
        for row in std::mem::take(&mut self.rows) {
            self.inner.step(ctx, &row[fields.len()..])?;
        }
        self.inner.finish(ctx)
    }
}
