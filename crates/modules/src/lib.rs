//! The small virtual tables that every connection has, each by the traits of `ext` alone: what they can do, a user's own
//! module can.
#![forbid(unsafe_code)]

mod dbpage;
mod dbstat;
mod json;
mod pragma;
mod rows;
mod series;
mod statements;

use iolite_ext::{BuiltinModules, Module};
use std::rc::Rc;

/// All of them, made when they are asked for.
pub const BUILTIN: BuiltinModules = BuiltinModules { named, names };

const NAMES: &[&str] = &[
    "bytecode",
    "dbstat",
    "generate_series",
    "json_each",
    "json_tree",
    "jsonb_each",
    "jsonb_tree",
    "sqlite_dbpage",
    "sqlite_stmt",
    "tables_used",
];

fn names() -> Vec<String> {
    let pragmas = pragma::names().map(|n| format!("{}{n}", pragma::PREFIX));
    NAMES.iter().map(|n| n.to_string()).chain(pragmas).collect()
}

fn named(name: &str) -> Option<Rc<dyn Module>> {
    if let Some(p) = name.strip_prefix(pragma::PREFIX) {
        return pragma::named(p).map(|m| -> Rc<dyn Module> { Rc::new(m) });
    }
    Some(match name {
        "bytecode" => Rc::new(statements::Statements::Instructions),
        "tables_used" => Rc::new(statements::Statements::Trees),
        "sqlite_stmt" => Rc::new(statements::Statements::Prepared),
        "generate_series" => Rc::new(series::Series),
        "dbstat" => Rc::new(dbstat::DbStat),
        "sqlite_dbpage" => Rc::new(dbpage::DbPage),
        "json_each" => Rc::new(json::JsonTable { deep: false, binary: false }),
        "json_tree" => Rc::new(json::JsonTable { deep: true, binary: false }),
        "jsonb_each" => Rc::new(json::JsonTable { deep: false, binary: true }),
        "jsonb_tree" => Rc::new(json::JsonTable { deep: true, binary: true }),
        _ => return None,
    })
}
