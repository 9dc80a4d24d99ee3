//! A PRAGMA that only reads, as a table: `pragma_table_info('t')` has the rows of `PRAGMA table_info('t')`, its argument and
//! the schema as hidden columns.

use crate::rows::{Listed, take_arguments};
use iolite_base::{Code, Error, Result};
use iolite_ext::{
    Declared, Host, IndexInfo, Module, ModuleKind, TableArgs, Trust, VirtualCursor, VirtualTable,
};
use iolite_value::Value;
use std::rc::{Rc, Weak};

/// The pragmas that are tables: they only read. Whether they take an argument, and a database.
const PRAGMAS: &[(&str, bool, bool)] = &[
    ("analysis_limit", false, false),
    ("application_id", false, false),
    ("auto_vacuum", false, true),
    ("automatic_index", false, false),
    ("busy_timeout", false, false),
    ("cache_size", false, true),
    ("cache_spill", false, true),
    ("cell_size_check", false, false),
    ("checkpoint_fullfsync", false, false),
    ("collation_list", false, false),
    ("compile_options", false, false),
    ("count_changes", false, false),
    ("data_version", false, false),
    ("database_list", false, false),
    ("default_cache_size", false, true),
    ("defer_foreign_keys", false, false),
    ("empty_result_callbacks", false, false),
    ("encoding", false, false),
    ("foreign_key_check", true, true),
    ("foreign_key_list", true, true),
    ("foreign_keys", false, false),
    ("freelist_count", false, false),
    ("full_column_names", false, false),
    ("fullfsync", false, false),
    ("function_list", false, false),
    ("hard_heap_limit", false, false),
    ("ignore_check_constraints", false, false),
    ("index_info", true, true),
    ("index_list", true, true),
    ("index_xinfo", true, true),
    ("integrity_check", true, true),
    ("journal_mode", false, true),
    ("journal_size_limit", false, true),
    ("legacy_alter_table", false, false),
    ("locking_mode", false, true),
    ("max_page_count", false, true),
    ("module_list", false, false),
    ("optimize", true, false),
    ("page_count", false, true),
    ("page_size", false, true),
    ("pragma_list", false, false),
    ("query_only", false, false),
    ("quick_check", true, true),
    ("read_uncommitted", false, false),
    ("recursive_triggers", false, false),
    ("reverse_unordered_selects", false, false),
    ("schema_version", false, false),
    ("secure_delete", false, false),
    ("short_column_names", false, false),
    ("soft_heap_limit", false, false),
    ("synchronous", false, true),
    ("table_info", true, true),
    ("table_list", true, false),
    ("table_xinfo", true, true),
    ("temp_store", false, false),
    ("threads", false, false),
    ("trusted_schema", false, false),
    ("user_version", false, false),
    ("writable_schema", false, false),
];

/// Names of tables begin so.
pub(crate) const PREFIX: &str = "pragma_";

/// The names of the pragmas that are tables.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PRAGMAS.iter().map(|p| p.0)
}

/// The table of a pragma.
pub(crate) fn named(name: &str) -> Option<PragmaTable> {
    let &(name, argument, schema) = PRAGMAS.iter().find(|p| p.0 == name)?;
    Some(PragmaTable { name, argument, schema })
}

/// The module of one PRAGMA.
#[derive(Clone, Copy)]
pub(crate) struct PragmaTable {
    name: &'static str,
    /// It takes an argument.
    argument: bool,
    /// It can be asked of one database.
    schema: bool,
}

struct Table {
    pragma: PragmaTable,
    /// The number of columns of the pragma's answer.
    width: usize,
    host: Weak<dyn Host>,
}

impl Module for PragmaTable {
    fn kind(&self) -> ModuleKind {
        ModuleKind::EponymousOnly
    }

    fn connect(&self, host: &Rc<dyn Host>, _: &TableArgs<'_>) -> Result<Declared> {
        let answer = host.columns_of(&format!("PRAGMA {}", self.name))?;
        if answer.is_empty() {
            return Err(Error::sql(format!("no such table: {PREFIX}{}", self.name)));
        }
        let mut columns: Vec<String> = answer.iter().map(|c| format!("\"{c}\"")).collect();
        columns.extend(self.argument.then(|| "arg HIDDEN".into()));
        columns.extend(self.schema.then(|| "schema HIDDEN".into()));
        let table = Rc::new(Table { pragma: *self, width: answer.len(), host: Rc::downgrade(host) });
        let declaration = format!("CREATE TABLE x({})", columns.join(", "));
        Ok(Declared { trust: Trust::Innocuous, ..Declared::new(declaration, table) })
    }
}

impl VirtualTable for Table {
    fn holds_nothing(&self) -> bool {
        true
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<()> {
        let p = &self.pragma;
        let hidden = p.argument as usize + p.schema as usize;
        // How many values there are says which: without the first argument, none is taken.
        let given = take_arguments(info, self.width, hidden)?;
        if given & 1 == 0 {
            info.usage.iter_mut().for_each(|u| *u = Default::default());
        }
        (info.cost, info.rows) = if given & 1 != 0 || hidden == 0 { (20.0, 20) } else { (1e6, 1000) };
        Ok(())
    }

    fn open(&self) -> Result<Box<dyn VirtualCursor>> {
        let (p, width, host) = (self.pragma, self.width, self.host.clone());
        Ok(Box::new(Listed::new(move |_, args| {
            let host = host.upgrade().ok_or(Code::Misuse)?;
            let (first, second) = (args.first(), args.get(1));
            let (argument, schema) = if p.argument { (first, second) } else { (None, first) };
            let quoted = |v: &Value| v.text_carried().replace('\'', "''");
            let mut sql = String::from("PRAGMA ");
            if let Some(s) = schema.filter(|s| !s.is_null()) {
                sql += &format!("'{}'.", quoted(s));
            }
            sql += p.name;
            if let Some(a) = argument {
                // NULL is no argument at all.
                if !a.is_null() {
                    sql += &format!("('{}')", quoted(a));
                }
            }
            let mut rows = host.query(&sql, &[])?;
            for r in &mut rows {
                r.resize(width, Value::Null);
                r.extend(p.argument.then(|| argument.cloned().unwrap_or(Value::Null)));
                r.extend(p.schema.then(|| schema.cloned().unwrap_or(Value::Null)));
            }
            Ok(rows)
        })))
    }
}
