//! Plans without a database: a catalog made of texts, and the plans of statements over it; an executor that runs nothing.

use iolite_base::{Encoding, Limits, Result};
use iolite_catalog::{Catalog, Schema, SchemaRow};
use iolite_ext::{Registry, SourceFactory};
use iolite_plan::StatementPlan;
use iolite_plan::bind::Env;
use iolite_plan::bound::Expr;
use iolite_plan::executor::{Block, Estimate, Executor, Offer, choose};
use iolite_plan::plan::{Access, SourceRun};
use std::ops::ControlFlow;
use std::rc::Rc;

/// A row of the schema table of which nobody asks for more.
fn row<'v>(kind: &'v str, name: &'v str, root: u32, sql: Option<&'v str>) -> SchemaRow<'v> {
    SchemaRow {
        kind: Some(kind.into()),
        name: Some(name.into()),
        table: None,
        root: Some(root.to_string().into()),
        sql: sql.map(Into::into),
    }
}

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
            main.add_row(&row(&word, "?", next(has_tree), Some(sql)), 0, true).expect(sql);
        }
        // Then those of constraints.
        let unnamed: Vec<Rc<str>> =
            main.indexes().filter(|i| i.root.get() == 0).map(|i| i.name.clone()).collect();
        for name in unnamed {
            main.add_row(&row("index", &name, next(true), None), 0, true).expect("an index of a constraint");
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
            defers_keys: false,
            key_actions: true,
            ignore_checks: false,
            writable_schema: false,
            lookahead_filters: true,
            explained: false,
            own: false,
            missing_collations: false,
            authorizer: None,
            virtual_tables: true,
            protects_shadows: false,
            has_stack: || true,
            watch: None,
        };
        let parsed = iolite_sql::parse_stmt(sql)?;
        let mut plan = StatementPlan::default();
        iolite_plan::compile(&parsed, sql, &env, &mut plan)?;
        Ok(plan)
    }

    /// The same, where an executor is asked that takes blocks which begin with a scan: not those that tables named `wide`
    /// take part in, which it calls small, and not those that sort, which it declines.
    pub fn plan_with_executor(&self, sql: &str) -> Result<StatementPlan> {
        let plan = self.plan(sql)?;
        choose(&plan, &Scans)?;
        Ok(plan)
    }
}

struct Scans;

/// A source that never opens.
fn closed() -> SourceFactory {
    SourceFactory(Rc::new(|_, _| Ok(None)))
}

impl Executor for Scans {
    fn estimate(&self, block: &Block<'_>) -> Result<Estimate> {
        if block.core.levels.iter().any(|l| l.source.table().is_none()) {
            return Ok(Estimate::Loops);
        }
        Ok(match block.core.levels.first() {
            Some(l) if !matches!(l.access, Access::Scan { .. }) => Estimate::Loops,
            Some(l) if &*l.source.name == "wide" => Estimate::Small(closed()),
            // Window functions around a block of their own.
            None if block.core.window.is_some() => Estimate::Loops,
            _ => Estimate::Pays,
        })
    }

    fn compile(&self, block: &Block<'_>) -> Result<Offer> {
        if !block.order.is_empty() {
            return Ok(Offer::Declined(Some("it sorts".into())));
        }
        let mut params = Vec::new();
        for e in block.core.levels.iter().flat_map(|l| &l.filter) {
            let _ = e.walk(&mut |x| {
                if let Expr::Param(_) = x {
                    params.push(x.clone());
                }
                ControlFlow::Continue(())
            });
        }
        let lines = vec![format!("SCAN {} ELSEWHERE", block.core.levels[0].source.name)];
        Ok(Offer::Run(SourceRun { source: closed(), params, lines, number: block.number, few: None }))
    }
}
