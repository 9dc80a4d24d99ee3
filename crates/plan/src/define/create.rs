//! CREATE TABLE, INDEX, VIEW, TRIGGER.

use super::names::{Tail, columns_as_text, is_reserved, quote_if_needed, stored_text};
use crate::bind::{Binder, Restriction, TargetIndex};
use crate::bound::Select;
use crate::compiler::Compiler;
use crate::plan::{NestedPlans, SelectPlan};
use crate::planner::Planner;
use crate::statement::define::{SchemaRow, Step};
use iolite_base::{Error, Limit, Result};
use iolite_catalog::{ColumnSource, Table, TableKind, index_from_ast, table_from_ast};
use iolite_sql::ast::{self, QualifiedName, Stmt, TriggerTime};
use std::rc::Rc;

impl Compiler<'_> {
    pub(super) fn create_table(
        &mut self,
        b: &mut Binder<'_>,
        c: &ast::CreateTable,
        text: &str,
        nested: &mut NestedPlans,
    ) -> Result<Vec<Step>> {
        let db = self.home(c.temp, &c.name)?;
        let name = &*c.name.name.text;
        if self.taken(db, &c.name.name, c.if_not_exists)? {
            return Ok(self.nothing(db));
        }
        if let ast::CreateTableBody::As(s) = &c.body {
            return self.create_table_as(b, db, name, s, nested);
        }
        let tail = match c.body {
            ast::CreateTableBody::Columns { without_rowid, strict, .. } if without_rowid || strict => {
                Tail::All
            }
            _ => Tail::Nothing,
        };
        let sql = stored_text("CREATE TABLE", b.text, c.name.name.span.start, text, tail);
        // The stored text begins with its own words in place of those before the name.
        let moved = c.name.name.span.start as i64 - "CREATE TABLE ".len() as i64;
        let t = table_of_text(&sql).map_err(|e| e.moved_by(moved))?;
        iolite_catalog::check_column_count(t.columns.len(), name, self.env.limits)?;
        let t = Rc::new(t);
        validate(b, &t).map_err(|e| e.moved_by(moved))?;
        let mut steps = Vec::new();
        self.make_table(db, &t, sql, &mut steps);
        Ok(steps)
    }

    /// A virtual table has a row in the schema table, and no tree: what else it keeps, its module makes.
    pub(super) fn create_virtual_table(
        &mut self,
        b: &Binder<'_>,
        c: &ast::CreateVirtualTable,
        text: &str,
    ) -> Result<Vec<Step>> {
        let db = self.home(false, &c.name)?;
        let name: Rc<str> = (&*c.name.name.text).into();
        if self.taken(db, &c.name.name, c.if_not_exists)? {
            return Ok(self.nothing(db));
        }
        let sql = stored_text("CREATE VIRTUAL TABLE", b.text, c.name.name.span.start, text, Tail::Nothing);
        self.writes(db);
        self.undo = true;
        let row =
            SchemaRow { kind: "table", name: name.clone(), table: name.clone(), tree: None, sql: Some(sql) };
        Ok(vec![
            Step::StartFile { db },
            Step::AddRow { db, row },
            self.new_cookie(db),
            Step::ReadSchema { db, table: name.clone() },
            Step::MakeVirtual { db, name },
        ])
    }

    /// The steps that make a table, whose tree is number 0, and the indexes of its constraints.
    fn make_table(&mut self, db: usize, t: &Rc<Table>, sql: String, steps: &mut Vec<Step>) {
        self.writes(db);
        steps.push(Step::StartFile { db });
        steps.push(Step::CreateTree { db, is_index: !t.has_rowid() });
        let (name, table) = (t.name.clone(), t.name.clone());
        let row = SchemaRow { kind: "table", name, table, tree: Some(0), sql: Some(sql) };
        steps.push(Step::AddRow { db, row });
        // In the order of their numbers.
        let own = t.primary_index();
        let mut trees = 1;
        for i in t.indexes.borrow().iter().rev() {
            if own.as_ref().is_some_and(|p| Rc::ptr_eq(p, i)) {
                continue;
            }
            steps.push(Step::CreateTree { db, is_index: true });
            let (name, table) = (i.name.clone(), t.name.clone());
            let row = SchemaRow { kind: "index", name, table, tree: Some(trees), sql: None };
            steps.push(Step::AddRow { db, row });
            trees += 1;
        }
        if t.autoincrement && self.env.catalog.schemas[db].table("sqlite_sequence").is_none() {
            let schema = self.schema_name(db);
            let sql = format!("CREATE TABLE IF NOT EXISTS {schema}.sqlite_sequence(name,seq)");
            steps.push(Step::Run { sql });
        }
        // Both tables are one change of the schema.
        steps.push(self.new_cookie(db));
        steps.push(Step::ReadSchema { db, table: t.name.clone() });
    }

    fn create_table_as(
        &mut self,
        b: &mut Binder<'_>,
        db: usize,
        name: &str,
        s: &ast::Select,
        nested: &mut NestedPlans,
    ) -> Result<Vec<Step>> {
        let mut bound = Select::with_one_arm();
        b.named_for_good = true;
        b.select_into(s, &mut bound)?;
        let sql = columns_as_text(name, &bound.columns);
        let t = Rc::new(table_of_text(&sql)?);
        let mut query = Box::new(SelectPlan::with_one_arm());
        Planner::after(self.env, b, nested).select_into(&mut bound, &mut query)?;
        let mut steps = Vec::new();
        self.make_table(db, &t, sql, &mut steps);
        // The query runs before the schema changes. One that reads the schema table finds the place that is reserved there.
        let affinities = t.columns.iter().map(|c| c.affinity).collect();
        let at = steps.iter().position(|s| matches!(s, Step::AddRow { .. })).unwrap_or(steps.len());
        steps.splice(at..at, [Step::ReserveRow { db }, Step::Store { query, db, tree: 0, affinities }]);
        self.undo = true;
        Ok(steps)
    }

    pub(super) fn create_index(
        &mut self,
        b: &mut Binder<'_>,
        c: &ast::CreateIndex,
        text: &str,
    ) -> Result<Vec<Step>> {
        let name = &*c.name.name.text;
        let schema = c.name.schema.as_ref().map(|s| &*s.text);
        if let Some(s) = schema
            && self.env.catalog.database(s).is_none()
        {
            return Err(Error::sql(format!("unknown database {s}")).at_place(c.name.place()));
        }
        let found = self.env.catalog.table(schema, &c.table.text);
        let Some((db, t)) = found else {
            if schema.is_some_and(|s| s.eq_ignore_ascii_case("temp"))
                && self.env.catalog.table(None, &c.table.text).is_some()
            {
                let table = c.table.written();
                return Err(Error::sql(format!("cannot create a TEMP index on non-TEMP table \"{table}\"")));
            }
            // Where an index is to be made, its table is looked for; only one in temp may be on a table elsewhere.
            let shown = match schema.unwrap_or("main") {
                s if s.eq_ignore_ascii_case("temp") => c.table.text.to_string(),
                s => format!("{s}.{}", c.table.text),
            };
            return Err(Error::sql(format!("no such table: {shown}")));
        };
        self.home(db == 1, &QualifiedName { schema: None, name: c.name.name.clone() })?;
        match &t.kind {
            TableKind::View { .. } => return Err(Error::sql("views may not be indexed")),
            TableKind::Virtual { .. } => return Err(Error::sql("virtual tables may not be indexed")),
            _ => {}
        }
        if t.root.get() == 1 || is_reserved(&t.name) {
            return Err(Error::sql(format!("table {} may not be indexed", t.name)));
        }
        let own = &self.env.catalog.schemas[db];
        if own.index(name).is_some() {
            if c.if_not_exists {
                return Ok(self.nothing(db));
            }
            return Err(Error::sql(format!("index {} already exists", quote_if_needed(name))));
        }
        if own.table(name).is_some() {
            return Err(Error::sql(format!("there is already a table named {name}")));
        }
        if c.columns.len() > self.env.limits.get(Limit::Column) as usize {
            return Err(Error::sql("too many columns in index"));
        }
        let word = if c.unique { "CREATE UNIQUE INDEX" } else { "CREATE INDEX" };
        let sql = stored_text(word, b.text, c.name.name.span.start, text, Tail::All);
        let mut index = index_from_ast(c, &t, &sql, 0)?;
        index.heed_format(own.format);
        let index = Rc::new(index);
        let mut target = Box::new(b.target(db, &t)?);
        let key = b.index_key(&t, &index)?;
        let mut exprs = Vec::new();
        for (k, col) in index.columns.iter().enumerate() {
            if let ColumnSource::Expr(e) = &col.source {
                exprs.push((k, b.restricted_expr(&t, target.id, e, Restriction::IndexExpr)?));
            }
        }
        let filter = match &index.filter {
            Some(f) => Some(b.restricted_expr(&t, target.id, f, Restriction::PartialIndex)?),
            None => None,
        };
        target.indexes = vec![TargetIndex { index: index.clone(), key, exprs, filter, is_table: false }];
        self.writes(db);
        self.undo = true;
        let table = t.name.clone();
        let row = SchemaRow {
            kind: "index",
            name: index.name.clone(),
            table: table.clone(),
            tree: Some(0),
            sql: Some(sql),
        };
        Ok(vec![
            Step::StartFile { db },
            Step::CreateTree { db, is_index: true },
            Step::AddRow { db, row },
            Step::FillIndex { target, tree: Some(0) },
            self.new_cookie(db),
            Step::ReadSchema { db, table },
        ])
    }

    pub(super) fn create_view(
        &mut self,
        b: &mut Binder<'_>,
        c: &ast::CreateView,
        text: &str,
    ) -> Result<Vec<Step>> {
        let mut ignore = |_: &QualifiedName| {};
        let mut names = iolite_sql::walk::TableNames::new(&mut ignore);
        names.select(&c.select);
        if names.parameters {
            return Err(Error::sql("parameters are not allowed in views"));
        }
        let db = self.home(c.temp, &c.name)?;
        let name = &*c.name.name.text;
        if self.taken(db, &c.name.name, c.if_not_exists)? {
            return Ok(self.nothing(db));
        }
        let span = c.name.name.span;
        let written = &b.text[span.start as usize..span.end as usize];
        self.stay_at_home(db, "view", written, |w| w.select(&c.select)).map_err(|e| e.at(span.start))?;
        let sql = stored_text("CREATE VIEW", b.text, c.name.name.span.start, text, Tail::Comments);
        Ok(self.add_text(db, "view", name, name, sql))
    }

    /// The steps that add an object without a tree.
    fn add_text(&mut self, db: usize, kind: &'static str, name: &str, table: &str, sql: String) -> Vec<Step> {
        self.writes(db);
        let (name, table) = (name.into(), Rc::<str>::from(table));
        let row = SchemaRow { kind, name, table: table.clone(), tree: None, sql: Some(sql) };
        vec![
            Step::StartFile { db },
            Step::AddRow { db, row },
            self.new_cookie(db),
            Step::ReadSchema { db, table },
        ]
    }

    pub(super) fn create_trigger(
        &mut self,
        b: &mut Binder<'_>,
        c: &ast::CreateTrigger,
        text: &str,
    ) -> Result<Vec<Step>> {
        let name = &*c.name.name.text;
        let on = c.table.schema.as_ref().map(|s| &*s.text);
        let table = &*c.table.name.text;
        let db = match &c.name.schema {
            Some(_) if c.temp => return Err(Error::sql("temporary trigger may not have qualified name")),
            Some(_) => self.home(false, &c.name)?,
            None if c.temp => 1,
            // A trigger of a table in temp is there too.
            None => match self.env.catalog.table(on, table) {
                Some((1, _)) => 1,
                _ => 0,
            },
        };
        let own = &self.env.catalog.schemas[db].name;
        if let Some(on) = on.filter(|on| db != 1 && !on.eq_ignore_ascii_case(own)) {
            let span = c.name.name.span;
            return Err(cannot_reference(&b.text[span.start as usize..span.end as usize], on).at(span.start));
        }
        // Those in temp may be on tables elsewhere.
        let wanted = if db == 1 { on } else { Some(&**own) };
        let Some((table_db, t)) = self.env.catalog.table(wanted, table) else {
            let shown = wanted.map_or(table.to_string(), |s| format!("{s}.{table}"));
            return Err(Error::sql(format!("no such table: {shown}")));
        };
        if t.is_virtual() {
            return Err(Error::sql("cannot create triggers on virtual tables"));
        }
        if self.env.is_protected(table_db, &t) {
            return Err(Error::sql("cannot create triggers on shadow tables"));
        }
        self.home(db == 1, &QualifiedName { schema: None, name: c.name.name.clone() })?;
        if self.env.catalog.schemas[db].trigger(name).is_some() {
            if c.if_not_exists {
                return Ok(self.nothing(db));
            }
            let written = c.name.name.written();
            return Err(Error::sql(format!("trigger {written} already exists")).at(c.name.name.span.start));
        }
        if t.root.get() == 1 || is_reserved(&t.name) {
            return Err(Error::sql("cannot create trigger on system table"));
        }
        if let Some(why) = check_time(c, t.is_view()) {
            return Err(Error::sql(why));
        }
        if c.body.iter().any(|(s, _)| returns(s)) {
            return Err(Error::sql("cannot use RETURNING in a trigger"));
        }
        if db != 1 && c.body.iter().any(|(s, _)| names_database(s)) {
            return Err(Error::sql(
                "qualified table names are not allowed on INSERT, UPDATE, and DELETE statements within triggers",
            ));
        }
        self.stay_at_home(db, "trigger", name, |w| w.trigger(c))?;
        let sql = stored_text("CREATE TRIGGER", b.text, c.name.name.span.start, text, Tail::Nothing);
        Ok(self.add_text(db, "trigger", name, table, sql))
    }
}

/// Whether a statement has a RETURNING clause.
fn returns(s: &Stmt) -> bool {
    match s {
        Stmt::Insert(s) => !s.returning.is_empty(),
        Stmt::Update(s) => !s.returning.is_empty(),
        Stmt::Delete(s) => !s.returning.is_empty(),
        _ => false,
    }
}

/// Whether a statement of a trigger says in which database the table is that it changes.
fn names_database(s: &Stmt) -> bool {
    let table = match s {
        Stmt::Insert(s) => &s.table,
        Stmt::Update(s) => &s.table,
        Stmt::Delete(s) => &s.table,
        _ => return false,
    };
    table.schema.is_some()
}

fn cannot_reference(trigger: &str, database: &str) -> Error {
    Error::sql(format!("trigger {trigger} cannot reference objects in database {database}"))
}

/// The table that a definition's text makes; its root is not known.
fn table_of_text(sql: &str) -> Result<Table> {
    let parsed = iolite_sql::parse_stmt(sql)?;
    let Stmt::CreateTable(own) = &parsed.stmt else {
        return Err(Error::sql("not a CREATE TABLE"));
    };
    table_from_ast(own, sql, 2)
}

/// Binds everything a table carries, for the errors.
fn validate(b: &mut Binder<'_>, t: &Rc<Table>) -> Result<()> {
    for c in &t.columns {
        if let Some(n) = &c.collation {
            b.collation(n)?;
        }
    }
    for c in &t.checks {
        b.restricted_expr(t, 0, &c.expr, Restriction::Check)?;
    }
    b.generated(t, 0)?;
    for i in t.indexes.borrow().iter() {
        for n in i.columns.iter().filter_map(|c| c.collation.as_ref()) {
            b.collation(n)?;
        }
        b.index_key(t, i)?;
    }
    Ok(())
}

/// What is wrong with the time at which a trigger of this kind of table fires.
fn check_time(c: &ast::CreateTrigger, is_view: bool) -> Option<String> {
    let name = &c.table.name.text;
    match (is_view, c.time) {
        (true, TriggerTime::Before) => Some(format!("cannot create BEFORE trigger on view: {name}")),
        (true, TriggerTime::After) => Some(format!("cannot create AFTER trigger on view: {name}")),
        (false, TriggerTime::InsteadOf) => Some(format!("cannot create INSTEAD OF trigger on table: {name}")),
        _ => None,
    }
}
