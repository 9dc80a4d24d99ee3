//! `sqlite_dbpage` (documentation page `dbpage`): the pages of a database's file, to be read.

use crate::rows::{arguments, take_arguments};
use iolite_base::{Code, Result};
use iolite_ext::{
    ConstraintOp, Declared, FilterArgs, Host, IndexInfo, Module, ModuleKind, TableArgs, Trust, VirtualCursor,
    VirtualTable,
};
use iolite_value::Value;
use std::rc::{Rc, Weak};

/// The number of the hidden column.
const SCHEMA: usize = 2;
/// The bit of a plan's number that says that a page is given.
const NUMBERED: i32 = 2;

/// The module.
pub(crate) struct DbPage;

impl Module for DbPage {
    fn kind(&self) -> ModuleKind {
        ModuleKind::Eponymous
    }

    fn connect(&self, host: &Rc<dyn Host>, _: &TableArgs<'_>) -> Result<Declared> {
        let table = Rc::new(Table { host: Rc::downgrade(host) });
        let declaration = "CREATE TABLE x(pgno INTEGER PRIMARY KEY, data BLOB, schema HIDDEN)";
        Ok(Declared { trust: Trust::DirectOnly, ..Declared::new(declaration, table) })
    }
}

struct Table {
    host: Weak<dyn Host>,
}

impl VirtualTable for Table {
    fn holds_nothing(&self) -> bool {
        true
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<()> {
        info.index_num = take_arguments(info, SCHEMA, 1)?;
        let numbered = |c: &iolite_ext::Constraint| c.column <= 0 && c.op == ConstraintOp::Eq && c.usable;
        (info.cost, info.rows) = (1e6, 1_000_000);
        if let Some(k) = info.constraints.iter().position(numbered) {
            info.usage[k].arg = 1 + info.index_num;
            info.usage[k].omit = true;
            info.index_num |= NUMBERED;
            (info.cost, info.rows, info.unique) = (1.0, 1, true);
        }
        info.ordered = matches!(info.order_by[..], [o] if o.column <= 0 && !o.desc);
        Ok(())
    }

    fn open(&self) -> Result<Box<dyn VirtualCursor>> {
        Ok(Box::new(Pages { host: self.host.clone(), schema: Value::Null, at: 1, last: 0, page: None }))
    }
}

struct Pages {
    host: Weak<dyn Host>,
    schema: Value,
    at: u32,
    /// The last one that is wanted: the file may grow meanwhile.
    last: u32,
    page: Option<Vec<u8>>,
}

impl Pages {
    fn name(&self) -> String {
        if self.schema.is_null() { "main".into() } else { self.schema.text_carried().to_string() }
    }

    fn read(&mut self) -> Result<()> {
        if self.at > self.last {
            self.page = None;
            return Ok(());
        }
        let host = self.host.upgrade().ok_or(Code::Misuse)?;
        // A database that is none has no pages.
        self.page = host.page(&self.name(), self.at).unwrap_or(None);
        Ok(())
    }
}

impl VirtualCursor for Pages {
    fn filter(&mut self, given: i32, _: &str, args: &FilterArgs<'_>) -> Result<()> {
        let [schema] = arguments::<1>(given & 1, args);
        self.schema = schema.cloned().unwrap_or_default();
        self.at = 1;
        if let Some(n) = args.last().filter(|_| given & NUMBERED != 0) {
            self.at = u32::try_from(n.to_int()).unwrap_or(0);
            self.last = self.at;
            return self.read();
        }
        let host = self.host.upgrade().ok_or(Code::Misuse)?;
        self.last = host.page_count(&self.name()).unwrap_or(0);
        self.read()
    }

    fn next(&mut self) -> Result<()> {
        self.at = self.at.saturating_add(1);
        self.read()
    }

    fn eof(&self) -> bool {
        self.page.is_none()
    }

    fn column(&self, n: usize) -> Result<Value> {
        match (n, &self.page) {
            (0, _) => Ok(Value::Int(self.at as i64)),
            (1, Some(p)) => Value::blob(p),
            (2, _) if !self.schema.is_null() => Ok(self.schema.clone()),
            (2, _) => Value::text("main"),
            _ => Ok(Value::Null),
        }
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.at as i64)
    }
}
