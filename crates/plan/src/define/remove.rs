//! DROP and REINDEX.

use crate::bind::Binder;
use crate::compiler::Compiler;
use crate::plan::NestedPlans;
use crate::planner::Planner;
use crate::statement::define::{Object, Step};
use iolite_base::{Code, Error, Result, same_name};
use iolite_catalog::{Index, Table};
use iolite_sql::ast::{ObjectKind, QualifiedName, Stmt};
use iolite_sql::print::{quote_name, quote_text};
use std::rc::Rc;

impl Compiler<'_> {
    /// The rows of a table that is dropped are deleted one by one where foreign keys care: where others refer to it, or
    /// violations of its own keys that are deferred may go with it. Its own triggers do not fire for these rows; what the actions of keys change, those of any table do.
    pub(super) fn empty_for_keys(
        &mut self,
        b: &mut Binder<'_>,
        kind: ObjectKind,
        q: &QualifiedName,
        nested: &mut NestedPlans,
    ) -> Result<Vec<Step>> {
        let schema = q.schema.as_ref().map(|s| &*s.text);
        if !self.env.foreign_keys || kind != ObjectKind::Table {
            return Ok(Vec::new());
        }
        let Some((db, t)) = self.env.catalog.table(schema, &q.name.text) else { return Ok(Vec::new()) };
        let refers = |c: &Rc<Table>| c.foreign_keys.iter().any(|f| same_name(&f.parent, &t.name));
        let referred = self.env.catalog.schemas[db].tables().any(refers);
        let deferred = t.foreign_keys.iter().any(|f| f.deferred || self.env.defers_keys);
        if t.is_view() || !referred && !deferred {
            return Ok(Vec::new());
        }
        let text = format!("DELETE FROM {}.{}", self.schema_name(db), quote_name(&t.name));
        let Stmt::Delete(s) = iolite_sql::parse_stmt(&text)?.stmt else { return Err(Code::Internal.into()) };
        let mut bound = b.delete(&s)?;
        // The text is ours, not the user's.
        bound.rows.sources.iter_mut().for_each(|s| s.shown = None);
        // What is amiss with keys of a table that goes is no reason to keep it.
        bound.target.keys.keep_sound();
        let former = std::mem::replace(&mut self.silent, true);
        let plan = self.delete(bound, Planner::after(self.env, b, nested));
        self.silent = former;
        Ok(vec![Step::Empty { rows: Box::new(plan?), referred }])
    }

    pub(super) fn drop_object(
        &mut self,
        kind: ObjectKind,
        if_exists: bool,
        q: &QualifiedName,
    ) -> Result<Vec<Step>> {
        let schema = q.schema.as_ref().map(|s| &*s.text);
        let name = &*q.name.text;
        let missing = |what: &str| {
            let shown = schema.map_or(name.to_string(), |s| format!("{s}.{name}"));
            Error::sql(format!("no such {what}: {shown}"))
        };
        match kind {
            ObjectKind::Table | ObjectKind::View => {
                let word = if kind == ObjectKind::View { "view" } else { "table" };
                let Some((db, t)) = self.env.catalog.table(schema, name) else {
                    return if if_exists { Ok(self.nothing_to_drop(schema)) } else { Err(missing(word)) };
                };
                let own = t.name.to_ascii_lowercase();
                let system = own.starts_with("sqlite_")
                    && !own.starts_with("sqlite_stat")
                    && !own.starts_with("sqlite_parameters")
                    && !self.env.own;
                if system || self.env.is_protected(db, &t) {
                    return Err(Error::sql(format!("table {} may not be dropped", t.name)));
                }
                if kind == ObjectKind::View && !t.is_view() {
                    return Err(Error::sql(format!("use DROP TABLE to delete table {name}")));
                }
                if kind == ObjectKind::Table && t.is_view() {
                    return Err(Error::sql(format!("use DROP VIEW to delete view {name}")));
                }
                Ok(self.drop_table(db, &t))
            }
            ObjectKind::Index => {
                let Some((db, i)) = self.env.catalog.index(schema, name) else {
                    return if if_exists { Ok(self.nothing_to_drop(schema)) } else { Err(missing("index")) };
                };
                if i.sql.is_none() {
                    return Err(Error::sql(
                        "index associated with UNIQUE or PRIMARY KEY constraint cannot be dropped",
                    ));
                }
                self.writes(db);
                self.undo = true;
                let mut steps = vec![self.delete_row(db, "index", &i.name)];
                self.forget_stat(db, "idx", &i.name, &mut steps);
                steps.push(self.new_cookie(db));
                steps.push(free_trees(db, vec![i.root.get()]));
                steps.push(Step::Forget { db, what: Object::Index, name: i.name.clone() });
                Ok(steps)
            }
            ObjectKind::Trigger => {
                let Some((db, t)) = self.env.catalog.trigger(schema, name) else {
                    return if if_exists {
                        Ok(self.nothing_to_drop(schema))
                    } else {
                        Err(missing("trigger"))
                    };
                };
                self.writes(db);
                Ok(vec![
                    self.delete_row(db, "trigger", &t.name),
                    self.new_cookie(db),
                    Step::Forget { db, what: Object::Trigger, name: t.name.clone() },
                ])
            }
        }
    }

    /// There is nothing to drop, as long as the schemas are what they are now.
    fn nothing_to_drop(&mut self, schema: Option<&str>) -> Vec<Step> {
        let named = schema.and_then(|s| self.env.catalog.database(s));
        for db in 0..self.env.catalog.schemas.len() {
            if schema.is_none() || named == Some(db) {
                self.databases |= 1 << db;
            }
        }
        Vec::new()
    }

    /// The step that deletes an object's row from the schema table.
    fn delete_row(&self, db: usize, kind: &str, name: &str) -> Step {
        let (schema, name) = (self.schema_name(db), quote_text(name));
        Step::Run { sql: format!("DELETE FROM {schema}.sqlite_master WHERE name={name} AND type='{kind}'") }
    }

    /// The steps that delete an object's statistics.
    fn forget_stat(&self, db: usize, column: &str, name: &str, steps: &mut Vec<Step>) {
        let schema = self.schema_name(db);
        for n in 1..=4 {
            let t = format!("sqlite_stat{n}");
            if self.env.catalog.schemas[db].table(&t).is_some() {
                let sql = format!("DELETE FROM {schema}.{t} WHERE {column}={}", quote_text(name));
                steps.push(Step::Run { sql });
            }
        }
    }

    fn drop_table(&mut self, db: usize, t: &Rc<Table>) -> Vec<Step> {
        self.writes(db);
        self.undo = true;
        let mut steps = Vec::new();
        for (d, tr) in self.env.catalog.triggers_of(db, t) {
            self.writes(d);
            steps.push(self.delete_row(d, "trigger", &tr.name));
            if d != db {
                steps.push(self.new_cookie(d));
            }
            steps.push(Step::Forget { db: d, what: Object::Trigger, name: tr.name.clone() });
        }
        let schema = self.schema_name(db);
        let name = quote_text(&t.name);
        if t.autoincrement {
            steps.push(Step::Run { sql: format!("DELETE FROM {schema}.sqlite_sequence WHERE name={name}") });
        }
        self.forget_stat(db, "tbl", &t.name, &mut steps);
        let sql = format!("DELETE FROM {schema}.sqlite_master WHERE tbl_name={name} AND type!='trigger'");
        steps.push(Step::Run { sql });
        if t.is_virtual() {
            steps.push(Step::DestroyVirtual { db, name: t.name.clone() });
        }
        let mut roots: Vec<u32> = t.indexes.borrow().iter().map(|i| i.root.get()).collect();
        roots.push(t.root.get());
        steps.push(self.new_cookie(db));
        steps.push(free_trees(db, roots));
        steps.push(Step::Forget { db, what: Object::Table, name: t.name.clone() });
        steps
    }

    pub(super) fn reindex(&mut self, b: &mut Binder<'_>, what: Option<&QualifiedName>) -> Result<Vec<Step>> {
        let mut list = self.indexes_named(what)?;
        list.sort_by(|a, b| (a.0, &a.1.name).cmp(&(b.0, &b.1.name)));
        let mut steps = Vec::new();
        for (db, i) in list {
            let Some(t) = self.env.catalog.schemas[db].table(&i.table).cloned() else { continue };
            let mut target = Box::new(b.target(db, &t)?);
            target.indexes.retain(|x| Rc::ptr_eq(&x.index, &i) && !x.is_table);
            if target.indexes.is_empty() {
                continue;
            }
            self.writes(db);
            self.undo = true;
            steps.push(Step::FillIndex { target, tree: None });
        }
        Ok(steps)
    }

    /// The indexes that REINDEX names: by a collating sequence, a table, or their own name; all of them.
    fn indexes_named(&self, what: Option<&QualifiedName>) -> Result<Vec<(usize, Rc<Index>)>> {
        let all = |keep: &dyn Fn(&Index) -> bool| {
            let schemas = self.env.catalog.schemas.iter().enumerate();
            let of = schemas.flat_map(|(db, s)| s.indexes().map(move |i| (db, i.clone())));
            of.filter(|(_, i)| keep(i)).collect()
        };
        let Some(q) = what else { return Ok(all(&|_| true)) };
        let schema = q.schema.as_ref().map(|s| &*s.text);
        let name = &*q.name.text;
        if let Some(s) = schema
            && self.env.catalog.database(s).is_none()
        {
            return Err(Error::sql(format!("unknown database {s}")).at_place(q.place()));
        }
        let is_collation = schema.is_none() && self.env.registry.collation(name, self.env.encoding).is_some();
        if is_collation {
            return Ok(all(&|i| {
                let mut names = i.columns.iter().map(|c| c.collation.as_deref().unwrap_or("BINARY"));
                names.any(|n| n.eq_ignore_ascii_case(name))
            }));
        }
        if schema.is_none() && name.eq_ignore_ascii_case("expressions") {
            return Ok(all(&|i| i.has_expr()));
        }
        if let Some((db, t)) = self.env.catalog.table(schema, name) {
            return Ok(t.indexes.borrow().iter().map(|i| (db, i.clone())).collect());
        }
        match self.env.catalog.index(schema, name) {
            Some((db, i)) => Ok(vec![(db, i)]),
            None => Err(Error::sql("unable to identify the object to be reindexed")),
        }
    }
}

/// The step that frees trees.
fn free_trees(db: usize, mut roots: Vec<u32>) -> Step {
    roots.retain(|r| *r > 1);
    roots.sort_unstable_by(|a, b| b.cmp(a));
    roots.dedup();
    Step::FreeTrees { db, roots }
}
