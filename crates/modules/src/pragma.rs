//! A PRAGMA that only reads, as a table: `pragma_table_info('t')` has the rows of `PRAGMA table_info('t')`, its argument and
//! the schema as hidden columns.

use crate::rows::{Listed, arguments, take_arguments};
use iolite_base::{Code, Result};
use iolite_ext::{
    Declared, Host, IndexInfo, Module, ModuleKind, TableArgs, Trust, VirtualCursor, VirtualTable,
};
use iolite_value::Value;
use std::rc::{Rc, Weak};

/// The module of one PRAGMA.
#[derive(Clone)]
pub struct PragmaTable {
    /// Its name.
    pub name: &'static str,
    /// The columns of its answer.
    pub columns: Vec<&'static str>,
    /// It takes an argument.
    pub argument: bool,
    /// It can be asked of one database.
    pub schema: bool,
}

struct Table {
    pragma: PragmaTable,
    host: Weak<dyn Host>,
}

impl Module for PragmaTable {
    fn kind(&self) -> ModuleKind {
        ModuleKind::EponymousOnly
    }

    fn connect(&self, host: &Rc<dyn Host>, _: &TableArgs<'_>) -> Result<Declared> {
        let mut columns: Vec<String> = self.columns.iter().map(|c| format!("\"{c}\"")).collect();
        columns.extend(self.argument.then(|| "arg HIDDEN".into()));
        columns.extend(self.schema.then(|| "schema HIDDEN".into()));
        let table = Rc::new(Table { pragma: self.clone(), host: Rc::downgrade(host) });
        let declaration = format!("CREATE TABLE x({})", columns.join(", "));
        Ok(Declared { trust: Trust::Innocuous, ..Declared::new(declaration, table) })
    }
}

impl VirtualTable for Table {
    fn best_index(&self, info: &mut IndexInfo) -> Result<()> {
        let p = &self.pragma;
        let hidden = p.argument as usize + p.schema as usize;
        info.index_num = take_arguments(info, p.columns.len(), hidden)?;
        (info.cost, info.rows) =
            if info.index_num & 1 != 0 || hidden == 0 { (20.0, 20) } else { (1e6, 1000) };
        Ok(())
    }

    fn open(&self) -> Result<Box<dyn VirtualCursor>> {
        let (p, host) = (self.pragma.clone(), self.host.clone());
        Ok(Box::new(Listed::new(move |given, args| {
            let host = host.upgrade().ok_or(Code::Misuse)?;
            let [first, second] = arguments::<2>(given, args);
            let (argument, schema) = if p.argument { (first, second) } else { (None, first) };
            let quoted = |v: &Value| v.text_carried().replace('"', "\"\"");
            let mut sql = String::from("PRAGMA ");
            if let Some(s) = schema.filter(|s| !s.is_null()) {
                sql += &format!("\"{}\".", quoted(s));
            }
            sql += p.name;
            if let Some(a) = argument {
                // NULL is no argument at all.
                if !a.is_null() {
                    sql += &format!("(\"{}\")", quoted(a));
                }
            }
            let mut rows = host.query(&sql, &[])?;
            for r in &mut rows {
                r.resize(p.columns.len(), Value::Null);
                r.extend(p.argument.then(|| argument.cloned().unwrap_or(Value::Null)));
                r.extend(p.schema.then(|| schema.cloned().unwrap_or(Value::Null)));
            }
            Ok(rows)
        })))
    }
}
