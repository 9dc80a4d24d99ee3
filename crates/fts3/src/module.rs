//! The modules `fts3`, `fts4`, `fts4aux` and `fts3tokenize`.

use crate::config::Config;
use crate::table::Table;
use crate::words;
use iolite_base::{Code, Result};
use iolite_ext::{BuiltinModules, Declared, Host, Module, TableArgs, Trust};
use std::rc::Rc;

struct Fts3 {
    version: u8,
}

impl Fts3 {
    fn table(&self, host: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<(Rc<Table>, String)> {
        let columns_of = |table: &str| {
            let from = format!("{}.{}", words::name(args.database), words::name(table));
            Ok(host.prepare(&format!("SELECT * FROM {from}"))?.columns())
        };
        let config =
            Config::parse(self.version, (args.database, args.table), args.args, &columns_of, &**host)?;
        if !config.is_declarable() {
            return Err(Code::Error.into());
        }
        let declaration = config.declaration();
        Ok((Table::new(config, host), declaration))
    }
}

fn declared(table: Rc<Table>, declaration: String) -> Declared {
    Declared { trust: Trust::Innocuous, ..Declared::new(declaration, table) }
}

impl Module for Fts3 {
    fn create(&self, host: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<Declared> {
        let (table, declaration) = self.table(host, args)?;
        table.create()?;
        Ok(declared(table, declaration))
    }

    fn connect(&self, host: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<Declared> {
        let (table, declaration) = self.table(host, args)?;
        Ok(declared(table, declaration))
    }

    fn is_shadow(&self, suffix: &str) -> bool {
        ["content", "docsize", "segdir", "segments", "stat"].iter().any(|s| suffix.eq_ignore_ascii_case(s))
    }
}

/// The modules of this crate, made when they are asked for.
pub const BUILTIN: BuiltinModules = BuiltinModules { named, names };

fn names() -> Vec<String> {
    ["fts3", "fts3tokenize", "fts4", "fts4aux"].map(String::from).to_vec()
}

fn named(name: &str) -> Option<Rc<dyn Module>> {
    Some(match name {
        "fts3" => Rc::new(Fts3 { version: 3 }),
        "fts4" => Rc::new(Fts3 { version: 4 }),
        "fts4aux" => Rc::new(crate::vocabulary::Vocabulary),
        "fts3tokenize" => Rc::new(crate::tokens::Tokens),
        _ => return None,
    })
}
