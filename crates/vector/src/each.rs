//! `vec_each(vector)`: a row for each dimension of a vector.

use crate::arguments;
use crate::vector::{Kind, Vector};
use iolite_base::{Code, Result};
use iolite_ext::{
    Declared, FilterArgs, Host, IndexInfo, Module, ModuleKind, TableArgs, Trust, VirtualCursor, VirtualTable,
};
use iolite_value::Value;
use std::rc::Rc;

/// The module.
pub(crate) struct Each;

impl Module for Each {
    fn kind(&self) -> ModuleKind {
        ModuleKind::EponymousOnly
    }

    fn connect(&self, _: &Rc<dyn Host>, _: &TableArgs<'_>) -> Result<Declared> {
        let declared = Declared::new("CREATE TABLE x(value, vector HIDDEN)", Rc::new(Table));
        Ok(Declared { trust: Trust::Innocuous, ..declared })
    }
}

struct Table;

impl VirtualTable for Table {
    fn holds_nothing(&self) -> bool {
        true
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<()> {
        arguments::take(info, 1, 1, 1)?;
        (info.cost, info.rows) = (100_000.0, 100_000);
        Ok(())
    }

    fn open(&self) -> Result<Box<dyn VirtualCursor>> {
        Ok(Box::new(Cursor { vector: None, at: 0 }))
    }
}

struct Cursor {
    vector: Option<Vector>,
    at: usize,
}

impl VirtualCursor for Cursor {
    fn filter(&mut self, _: i32, _: &str, args: &FilterArgs<'_>) -> Result<()> {
        self.vector = None;
        let given = args.first().ok_or(Code::Internal)?;
        self.vector = Some(
            Vector::of(given).map_err(|e| if e.code() == Code::Nomem { e } else { Code::Error.into() })?,
        );
        self.at = 0;
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }

    fn eof(&self) -> bool {
        self.vector.as_ref().is_none_or(|v| self.at >= v.len())
    }

    fn column(&self, n: usize) -> Result<Value> {
        let Some(v) = self.vector.as_ref().filter(|v| n == 0 && self.at < v.len()) else {
            return Ok(Value::Null);
        };
        Ok(match v.kind {
            Kind::F32 => v.numbers().nth(self.at).map_or(Value::Null, |x| Value::real(f64::from(x))),
            Kind::I8 => Value::Int(i64::from(v.bytes[self.at] as i8)),
            // The highest bit of a byte comes first here.
            Kind::Bit => Value::Int(i64::from(v.bytes[self.at / 8] >> (7 - self.at % 8) & 1)),
        })
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.at as i64)
    }
}
