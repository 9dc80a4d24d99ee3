//! Plans without a database: a catalog made of texts, and the plans of statements over it.

use iolite_base::{Encoding, Limits, Result};
use iolite_catalog::{Catalog, Schema};
use iolite_ext::Registry;
use iolite_plan::StatementPlan;
use iolite_plan::bind::Env;
use std::rc::Rc;

/// A catalog and all else that planning needs to know of the world.
pub struct Planning {
    catalog: Catalog,
    registry: Registry,
    limits: Limits,
}

impl Planning {
    /// The world in which the database `main` has what these statements create, one a line. Root pages are numbered
    /// from 2.
    ///
    /// # Panics
    /// Panics if a statement creates nothing.
    pub fn new(schema: &str) -> Planning {
        let mut main = Schema::new("main");
        main.format = 4;
        let mut root = 1;
        let mut next = |wanted: bool| {
            root += u32::from(wanted);
            if wanted { root } else { 0 }
        };
        for sql in schema.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with("--")) {
            let sql = sql.trim_end_matches(';');
            let word = sql.split_whitespace().nth(1).unwrap_or("").to_ascii_lowercase();
            let has_tree = !matches!(word.as_str(), "view" | "trigger");
            main.add_row(&word, "?", next(has_tree), Some(sql)).expect(sql);
        }
        // Then those of constraints.
        let unnamed: Vec<Rc<str>> =
            main.indexes().filter(|i| i.root.get() == 0).map(|i| i.name.clone()).collect();
        for name in unnamed {
            main.add_row("index", &name, next(true), None).expect("an index of a constraint");
        }
        let schemas = vec![Rc::new(main), Rc::new(Schema::new("temp"))];
        Planning {
            catalog: Catalog { schemas },
            registry: iolite_func::registry(),
            limits: Limits::default(),
        }
    }

    /// The plan of a statement.
    pub fn plan(&self, sql: &str) -> Result<StatementPlan> {
        let env = Env {
            catalog: &self.catalog,
            registry: &self.registry,
            limits: &self.limits,
            encoding: Encoding::Utf8,
            quoted_strings: true,
            connector: &iolite_plan::bind::NoModules,
            full_column_names: false,
            short_column_names: true,
            automatic_index: true,
            triggers: true,
            views: true,
            trusted_schema: true,
            recursive_triggers: true,
            foreign_keys: true,
            ignore_checks: false,
            writable_schema: false,
            own: false,
            protects_shadows: false,
            watch: None,
        };
        let parsed = iolite_sql::parse_stmt(sql)?;
        let mut plan = StatementPlan::default();
        iolite_plan::compile(&parsed, sql, &env, &mut plan)?;
        Ok(plan)
    }
}
