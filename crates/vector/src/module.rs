//! The modules of this crate.

use crate::config::Config;
use crate::each::Each;
use crate::hybrid::Hybrid;
use crate::ivf;
use crate::store::{self, Store};
use crate::table::Table;
use iolite_base::Result;
use iolite_ext::{BuiltinModules, Declared, Host, Module, TableArgs};
use std::rc::Rc;

/// The modules, made when they are asked for.
pub const BUILTIN: BuiltinModules = BuiltinModules { named, names };

fn names() -> Vec<String> {
    ["hybrid", "vec0", "vec_each"].map(String::from).to_vec()
}

fn named(name: &str) -> Option<Rc<dyn Module>> {
    Some(match name {
        "hybrid" => Rc::new(Hybrid),
        "vec0" => Rc::new(Vec0),
        "vec_each" => Rc::new(Each),
        _ => return None,
    })
}

/// The module `vec0`.
struct Vec0;

fn declared(host: &Rc<dyn Host>, args: &TableArgs<'_>, make: bool) -> Result<Declared> {
    let config = Config::parse(args.args, args.table)?;
    let declaration = config.declaration();
    let store = Rc::new(Store::new(host, (args.database, args.table), config));
    if make {
        store.create()?;
        ivf::create(&store)?;
    }
    let table = Table { store, memory: Rc::default() };
    Ok(Declared::new(declaration, Rc::new(table)))
}

impl Module for Vec0 {
    fn create(&self, host: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<Declared> {
        declared(host, args, true)
    }

    fn connect(&self, host: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<Declared> {
        declared(host, args, false)
    }

    fn is_shadow(&self, suffix: &str) -> bool {
        store::is_shadow(suffix)
    }
}
