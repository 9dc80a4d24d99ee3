//! CREATE, DROP, REINDEX.
//!
//! A definition's text is stored as written, from the object's name on. The catalog learns of a change by reading the
//! schema table again (`ParseSchema`), so that what it knows is what the file says.

use crate::context::{Codegen, Dest, Place};
use iolite_base::{Code, Error, Few, Limit, Result};
use iolite_bytecode::{ColumnMeta, Opcode, P4, p5};
use iolite_catalog::{Index, Table, TableKind, index_from_ast, table_from_ast};
use iolite_plan::Planner;
use iolite_plan::bind::{Binder, Restriction, Target};
use iolite_plan::bound::OutColumn;
use iolite_sql::ast::{self, ObjectKind, QualifiedName};
use iolite_sql::print::{quote_name, quote_text};
use iolite_value::Affinity;
use std::rc::Rc;

type Columns = Result<Few<ColumnMeta>>;

impl Codegen<'_> {
    /// The database in which an object is created.
    fn home(&self, temp: bool, name: &QualifiedName, what: &str) -> Result<usize> {
        let db = match &name.schema {
            Some(s) => {
                let db = self
                    .env
                    .catalog
                    .database(&s.text)
                    .ok_or_else(|| Error::sql(format!("unknown database {}", s.text)).at(s.span.start))?;
                if temp && db != 1 {
                    return Err(Error::sql(format!("temporary {what} name must be unqualified")));
                }
                db
            }
            None => temp as usize,
        };
        let own = &name.name.text;
        if !self.settings.writable_schema
            && !self.settings.nested
            && own.len() >= 7
            && own.as_bytes()[..7].eq_ignore_ascii_case(b"sqlite_")
        {
            return Err(Error::sql(format!("object name reserved for internal use: {own}")));
        }
        Ok(db)
    }

    /// Complains if the name is taken; `Ok(true)` if it is and that is fine.
    fn taken(&self, db: usize, name: &str, if_not_exists: bool) -> Result<bool> {
        let schema = &self.env.catalog.schemas[db];
        if let Some(t) = schema.table(name) {
            if if_not_exists {
                return Ok(true);
            }
            let kind = if t.is_view() { "view" } else { "table" };
            return Err(Error::sql(format!("{kind} {} already exists", quote_if_needed(name))));
        }
        if schema.index(name).is_some() {
            return Err(Error::sql(format!("there is already an index named {name}")));
        }
        Ok(false)
    }

    fn nothing(&mut self, db: usize) -> Columns {
        self.read_database(db);
        Ok(Few::new())
    }

    /// There is nothing to drop, as long as the schemas are what they are now.
    fn nothing_to_drop(&mut self, schema: Option<&str>) -> Columns {
        let named = schema.and_then(|s| self.env.catalog.database(s));
        for db in 0..self.env.catalog.schemas.len() {
            if schema.is_none() || named == Some(db) {
                self.read_database(db);
            }
        }
        Ok(Few::new())
    }

    /// First change of a new file: its format and encoding.
    fn start_file(&mut self, db: usize) {
        self.write_database(db);
        let r = self.b.temp();
        self.b.emit(Opcode::ReadCookie, db as i32, r, 2);
        let at = self.b.emit(Opcode::If, r, 0, 0);
        self.b.emit(Opcode::SetCookie, db as i32, 2, 4);
        self.b.emit(Opcode::SetCookie, db as i32, 5, self.env.encoding as i32);
        self.b.jump_here(at);
        self.b.free_temp(r);
    }

    /// The schema has changed: every connection must notice.
    fn bump_cookie(&mut self, db: usize) {
        let cookie = self.env.catalog.schemas[db].cookie.wrapping_add(1);
        self.b.emit(Opcode::SetCookie, db as i32, 1, cookie as i32);
    }

    /// Adds a row to the schema table. `root`: a register, or 0 for no tree.
    fn schema_row(
        &mut self,
        cursor: i32,
        kind: &str,
        name: &str,
        table: &str,
        root: i32,
        sql: Option<&str>,
    ) -> Result<()> {
        let first = self.b.regs(7);
        self.b.emit(Opcode::NewRowid, cursor, first, 0);
        self.b.load_text(kind, first + 1)?;
        self.b.load_text(name, first + 2)?;
        self.b.load_text(table, first + 3)?;
        if root == 0 {
            self.b.emit(Opcode::Integer, 0, first + 4, 0);
        } else {
            self.copy(root, first + 4);
        }
        match sql {
            Some(s) => self.b.load_text(s, first + 5)?,
            None => {
                self.b.emit(Opcode::Null, 0, first + 5, 0);
            }
        }
        self.b.emit(Opcode::MakeRecord, first + 1, 5, first + 6);
        self.b.emit(Opcode::Insert, cursor, first + 6, first);
        self.b.p5(p5::APPEND);
        Ok(())
    }

    fn open_schema_table(&mut self, db: usize) -> i32 {
        let c = self.b.cursor();
        self.b.emit4(Opcode::OpenWrite, c, 1, db as i32, P4::Int(5));
        c
    }

    fn parse_schema(&mut self, db: usize, table: &str) {
        self.b.emit4(Opcode::ParseSchema, db as i32, 0, 0, P4::Name(table.into()));
    }

    /// CREATE TABLE.
    pub fn create_table(&mut self, b: &mut Binder<'_>, c: &ast::CreateTable, text: &str) -> Columns {
        let db = self.home(c.temp, &c.name, "table")?;
        let name = &*c.name.name.text;
        if self.taken(db, name, c.if_not_exists)? {
            return self.nothing(db);
        }
        if let ast::CreateTableBody::As(s) = &c.body {
            return self.create_table_as(b, db, name, s);
        }
        let sql = stored_text("CREATE TABLE", b.text, c.name.name.span.start, text);
        let parsed = iolite_sql::parse_stmt(&sql)?;
        let ast::Stmt::CreateTable(own) = &parsed.stmt else {
            return Err(Error::sql("not a CREATE TABLE"));
        };
        let t = table_from_ast(own, &sql, 2).map_err(Error::without_offset)?;
        iolite_catalog::check_column_count(t.columns.len(), name, self.env.limits)?;
        let t = Rc::new(t);
        self.validate(b, &t)?;
        self.make_table(db, &t, &sql)?;
        Ok(Few::new())
    }

    /// Binds everything a table carries, for the errors.
    fn validate(&mut self, b: &mut Binder<'_>, t: &Rc<Table>) -> Result<()> {
        for c in &t.columns {
            if let Some(n) = &c.collation {
                b.collation(n)?;
            }
            if let Some(d) = &c.default {
                b.restricted_expr(t, 0, &d.expr, Restriction::Default)?;
            }
        }
        for c in &t.checks {
            b.restricted_expr(t, 0, &c.expr, Restriction::Check)?;
        }
        b.generated(t, 0)?;
        for i in t.indexes.borrow().iter() {
            b.index_key(t, i)?;
        }
        Ok(())
    }

    fn make_table(&mut self, db: usize, t: &Rc<Table>, sql: &str) -> Result<i32> {
        self.start_file(db);
        let root = self.b.reg();
        let without_rowid = !t.has_rowid();
        self.b.emit(Opcode::CreateBtree, db as i32, root, 1 + without_rowid as i32);
        let cursor = self.open_schema_table(db);
        self.schema_row(cursor, "table", &t.name, &t.name, root, Some(sql))?;
        // Indexes of constraints, in the order of their numbers.
        let indexes: Vec<Rc<Index>> = t.indexes.borrow().iter().rev().cloned().collect();
        let own = t.primary_index();
        for i in indexes {
            if own.as_ref().is_some_and(|p| Rc::ptr_eq(p, &i)) {
                continue;
            }
            let r = self.b.reg();
            self.b.emit(Opcode::CreateBtree, db as i32, r, 2);
            self.schema_row(cursor, "index", &i.name, &t.name, r, None)?;
        }
        self.b.emit(Opcode::Close, cursor, 0, 0);
        if t.autoincrement && self.env.catalog.schemas[db].table("sqlite_sequence").is_none() {
            let schema = quote_name(&self.env.catalog.schemas[db].name).into_owned();
            let text = format!("CREATE TABLE IF NOT EXISTS {schema}.sqlite_sequence(name,seq)");
            self.b.emit4(Opcode::SqlExec, 0, 0, 0, P4::Name(text.into()));
        }
        // Both tables are one change of the schema.
        self.bump_cookie(db);
        self.parse_schema(db, &t.name);
        Ok(root)
    }

    fn create_table_as(&mut self, b: &mut Binder<'_>, db: usize, name: &str, s: &ast::Select) -> Columns {
        let bound = b.select(s)?;
        self.touch_databases(b.databases);
        let sql = columns_as_text(name, &bound.columns);
        let parsed = iolite_sql::parse_stmt(&sql)?;
        let ast::Stmt::CreateTable(own) = &parsed.stmt else {
            return Err(Error::sql("not a CREATE TABLE"));
        };
        let t = Rc::new(table_from_ast(own, &sql, 2)?);
        let mut p = Planner::new(self.env);
        let plan = p.select(bound)?;
        self.take_plans(p);
        // The query runs first, so that it sees the schema as it was.
        let temp = self.b.cursor();
        let n = t.columns.len();
        self.b.emit(Opcode::OpenEphemeral, temp, n as i32, 0);
        self.query(&plan, &Dest::Table { cursor: temp })?;
        let root = self.make_table(db, &t, &sql)?;
        let cursor = self.b.cursor();
        self.b.emit4(Opcode::OpenWrite, cursor, root, db as i32, P4::Int(n as i64));
        self.b.p5(p5::ROOT_IN_REGISTER);
        let first = self.b.regs(n + 2);
        let over = self.b.label();
        self.b.jump(Opcode::Rewind, temp, over, 0);
        let top = self.b.here();
        for k in 0..n as i32 {
            self.b.emit(Opcode::Column, temp, k, first + k);
        }
        let affinities: Vec<Affinity> = t.columns.iter().map(|c| c.affinity).collect();
        let (record, rowid) = (first + n as i32, first + n as i32 + 1);
        self.b.emit4(Opcode::MakeRecord, first, n as i32, record, P4::Affinities(affinities.into()));
        self.b.emit(Opcode::NewRowid, cursor, rowid, 0);
        self.b.emit(Opcode::Insert, cursor, record, rowid);
        self.b.p5(p5::APPEND);
        self.b.emit(Opcode::Next, temp, top as i32, 0);
        self.b.place(over);
        self.needs_statement = true;
        Ok(Few::new())
    }

    /// CREATE INDEX.
    pub fn create_index(&mut self, b: &mut Binder<'_>, c: &ast::CreateIndex, text: &str) -> Columns {
        let name = &*c.name.name.text;
        let schema = c.name.schema.as_ref().map(|s| &*s.text);
        if let Some(s) = schema
            && self.env.catalog.database(s).is_none()
        {
            return Err(Error::sql(format!("unknown database {s}")));
        }
        let found = self.env.catalog.table(schema, &c.table.text);
        let Some((db, t)) = found else {
            // Where an index is to be made, its table is looked for; only one in temp may be on a table elsewhere.
            let shown = match schema.unwrap_or("main") {
                s if s.eq_ignore_ascii_case("temp") => c.table.text.to_string(),
                s => format!("{s}.{}", c.table.text),
            };
            return Err(Error::sql(format!("no such table: {shown}")));
        };
        self.home(db == 1, &QualifiedName { schema: None, name: c.name.name.clone() }, "index")?;
        match &t.kind {
            TableKind::View { .. } => return Err(Error::sql("views may not be indexed")),
            TableKind::Virtual { .. } => return Err(Error::sql("virtual tables may not be indexed")),
            _ => {}
        }
        if t.root.get() == 1 || t.name.len() >= 7 && t.name.as_bytes()[..7].eq_ignore_ascii_case(b"sqlite_") {
            return Err(Error::sql(format!("table {} may not be indexed", t.name)));
        }
        let own = &self.env.catalog.schemas[db];
        if own.index(name).is_some() {
            if c.if_not_exists {
                return self.nothing(db);
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
        let sql = stored_text(word, b.text, c.name.name.span.start, text);
        let mut index = index_from_ast(c, &t, &sql, 0)?;
        index.heed_format(own.format);
        let index = Rc::new(index);
        let mut target = b.target(db, &t)?;
        let key = b.index_key(&t, &index)?;
        let mut exprs = vec![None; index.columns.len()];
        for (k, col) in index.columns.iter().enumerate() {
            if let iolite_catalog::ColumnSource::Expr(e) = &col.source {
                exprs[k] = Some(b.restricted_expr(&t, target.id, e, Restriction::IndexExpr)?);
            }
        }
        let filter = match &index.filter {
            Some(f) => Some(b.restricted_expr(&t, target.id, f, Restriction::PartialIndex)?),
            None => None,
        };
        target.indexes = vec![iolite_plan::bind::TargetIndex {
            index: index.clone(),
            key,
            exprs,
            filter,
            is_table: false,
        }];
        self.start_file(db);
        let root = self.b.reg();
        self.b.emit(Opcode::CreateBtree, db as i32, root, 2);
        let cursor = self.open_schema_table(db);
        self.schema_row(cursor, "index", name, &t.name, root, Some(&sql))?;
        self.b.emit(Opcode::Close, cursor, 0, 0);
        self.fill_index(&target, Some(root))?;
        self.bump_cookie(db);
        self.parse_schema(db, &t.name);
        self.needs_statement = true;
        Ok(Few::new())
    }

    /// Fills the only index of `t` from the table; `root`: register with its root page, if not the catalog's.
    fn fill_index(&mut self, t: &Target, root: Option<i32>) -> Result<()> {
        let i = &t.indexes[0];
        let table = self.b.cursor();
        self.open_cursor(table, t.db, &t.table, Opcode::OpenRead)?;
        let own = self.b.cursor();
        let at = root.unwrap_or(i.index.root.get() as i32);
        self.b.emit4(Opcode::OpenWrite, own, at, t.db as i32, P4::KeyInfo(i.key.clone()));
        if root.is_some() {
            self.b.p5(p5::ROOT_IN_REGISTER);
        }
        let sorter = self.b.cursor();
        let n = i.index.columns.len();
        self.b.emit4(Opcode::SorterOpen, sorter, n as i32, 0, P4::KeyInfo(i.key.clone()));
        let place = Place::Table { cursor: table, table: t.table.clone(), index: None, index_only: false };
        let done = self.b.label();
        self.b.jump(Opcode::Rewind, table, done, 0);
        let top = self.b.here();
        let next = self.b.label();
        if let Some(f) = i.filter.clone() {
            self.plan_exprs(std::iter::once(&f))?;
            self.at_place(t.id, place.clone(), |g| g.jump_unless(&f, next, true))?;
        }
        let (first, n) = self.index_entry(t, i, place)?;
        let record = self.b.reg();
        let affinities = self.index_affinities(t, i);
        self.b.emit4(Opcode::MakeRecord, first, n as i32, record, affinities);
        self.b.emit(Opcode::SorterInsert, sorter, record, 0);
        self.b.place(next);
        self.b.emit(Opcode::Next, table, top as i32, 0);
        self.b.place(done);
        let over = self.b.label();
        self.b.jump(Opcode::SorterSort, sorter, over, 0);
        let unique = if i.index.unique.is_some() { i.index.key_len as i64 } else { 0 };
        self.b.jump4(Opcode::SorterFill, sorter, over, own, P4::Int(unique));
        if unique > 0 {
            let message = unique_words(t, i);
            let code = Code::ConstraintUnique.number() as i32;
            self.b.emit4(Opcode::Halt, code, 2, 0, P4::Name(message.into()));
            self.b.p5(p5::UNIQUE);
        }
        self.b.place(over);
        self.b.emit(Opcode::Close, table, 0, 0);
        self.b.emit(Opcode::Close, own, 0, 0);
        self.b.emit(Opcode::Close, sorter, 0, 0);
        Ok(())
    }

    /// CREATE VIEW.
    pub fn create_view(&mut self, b: &mut Binder<'_>, c: &ast::CreateView, text: &str) -> Columns {
        let db = self.home(c.temp, &c.name, "view")?;
        let name = &*c.name.name.text;
        if self.taken(db, name, c.if_not_exists)? {
            return self.nothing(db);
        }
        self.stay_at_home(db, "view", name, |w| w.select(&c.select))?;
        let sql = stored_text("CREATE VIEW", b.text, c.name.name.span.start, text);
        self.start_file(db);
        let cursor = self.open_schema_table(db);
        self.schema_row(cursor, "view", name, name, 0, Some(&sql))?;
        self.b.emit(Opcode::Close, cursor, 0, 0);
        self.bump_cookie(db);
        self.parse_schema(db, name);
        Ok(Few::new())
    }

    /// A view or trigger may name tables of its own database alone, unless it is a temporary one.
    fn stay_at_home(
        &self,
        db: usize,
        what: &str,
        name: &str,
        walk: impl FnOnce(&mut iolite_sql::walk::TableNames<'_>),
    ) -> Result<()> {
        let mut elsewhere = None;
        let own = &self.env.catalog.schemas[db].name;
        walk(&mut iolite_sql::walk::TableNames::new(&mut |q| {
            if let Some(s) = &q.schema
                && !s.text.eq_ignore_ascii_case(own)
            {
                elsewhere.get_or_insert_with(|| s.text.to_string());
            }
        }));
        match elsewhere {
            Some(s) if db != 1 => {
                Err(Error::sql(format!("{what} {name} cannot reference objects in database {s}")))
            }
            _ => Ok(()),
        }
    }

    /// CREATE TRIGGER.
    pub fn create_trigger(&mut self, b: &mut Binder<'_>, c: &ast::CreateTrigger, text: &str) -> Columns {
        let name = &*c.name.name.text;
        let on = c.table.schema.as_ref().map(|s| &*s.text);
        let wanted = c.name.schema.as_ref().map(|s| &*s.text).or(if c.temp { on } else { None });
        let found = self.env.catalog.table(if c.temp { on } else { wanted }, &c.table.name.text);
        let Some((table_db, t)) = found else {
            let shown = match wanted {
                Some(s) => format!("{s}.{}", c.table.name.text),
                None => c.table.name.text.to_string(),
            };
            return Err(Error::sql(format!("no such table: {shown}")));
        };
        let db = match &c.name.schema {
            Some(_) => self.home(c.temp, &c.name, "trigger")?,
            None if c.temp => 1,
            None => table_db,
        };
        if t.is_virtual() {
            return Err(Error::sql("cannot create triggers on virtual tables"));
        }
        if self.env.catalog.schemas[db].trigger(name).is_some() {
            if c.if_not_exists {
                return self.nothing(db);
            }
            return Err(Error::sql(format!("trigger {} already exists", quote_if_needed(name))));
        }
        if t.root.get() == 1 || t.name.len() >= 7 && t.name.as_bytes()[..7].eq_ignore_ascii_case(b"sqlite_") {
            return Err(Error::sql("cannot create trigger on system table"));
        }
        if let Some(why) = crate::trigger::check_time(c, t.is_view()) {
            return Err(Error::sql(why));
        }
        self.stay_at_home(db, "trigger", name, |w| w.trigger(c))?;
        let sql = stored_text("CREATE TRIGGER", b.text, c.name.name.span.start, text);
        self.start_file(db);
        let cursor = self.open_schema_table(db);
        self.schema_row(cursor, "trigger", name, &t.name, 0, Some(&sql))?;
        self.b.emit(Opcode::Close, cursor, 0, 0);
        self.bump_cookie(db);
        self.parse_schema(db, &t.name);
        Ok(Few::new())
    }

    /// DROP.
    pub fn drop_object(&mut self, kind: ObjectKind, if_exists: bool, q: &QualifiedName) -> Columns {
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
                    return if if_exists { self.nothing_to_drop(schema) } else { Err(missing(word)) };
                };
                let own = t.name.to_ascii_lowercase();
                if own.starts_with("sqlite_")
                    && !own.starts_with("sqlite_stat")
                    && !self.settings.writable_schema
                    && !self.settings.nested
                {
                    return Err(Error::sql(format!("table {} may not be dropped", t.name)));
                }
                if kind == ObjectKind::View && !t.is_view() {
                    return Err(Error::sql(format!("use DROP TABLE to delete table {name}")));
                }
                if kind == ObjectKind::Table && t.is_view() {
                    return Err(Error::sql(format!("use DROP VIEW to delete view {name}")));
                }
                self.drop_table(db, &t)
            }
            ObjectKind::Index => {
                let Some((db, i)) = self.env.catalog.index(schema, name) else {
                    return if if_exists { self.nothing_to_drop(schema) } else { Err(missing("index")) };
                };
                if i.sql.is_none() {
                    return Err(Error::sql(
                        "index associated with UNIQUE or PRIMARY KEY constraint cannot be dropped",
                    ));
                }
                self.write_database(db);
                let schema = self.schema_name(db);
                self.exec(format!(
                    "DELETE FROM {schema}.sqlite_master WHERE name={} AND type='index'",
                    quote_text(&i.name)
                ));
                self.forget_stat(db, "idx", &i.name);
                self.bump_cookie(db);
                self.destroy(db, vec![i.root.get()]);
                self.b.emit4(Opcode::DropIndex, db as i32, 0, 0, P4::Name(i.name.clone()));
                self.needs_statement = true;
                Ok(Few::new())
            }
            ObjectKind::Trigger => {
                let Some((db, t)) = self.env.catalog.trigger(schema, name) else {
                    return if if_exists { self.nothing_to_drop(schema) } else { Err(missing("trigger")) };
                };
                self.write_database(db);
                let schema = self.schema_name(db);
                self.exec(format!(
                    "DELETE FROM {schema}.sqlite_master WHERE name={} AND type='trigger'",
                    quote_text(&t.name)
                ));
                self.bump_cookie(db);
                self.b.emit4(Opcode::DropTrigger, db as i32, 0, 0, P4::Name(t.name.clone()));
                Ok(Few::new())
            }
        }
    }

    fn schema_name(&self, db: usize) -> String {
        quote_name(&self.env.catalog.schemas[db].name).into_owned()
    }

    fn exec(&mut self, sql: String) {
        self.b.emit4(Opcode::SqlExec, 0, 0, 0, P4::Name(sql.into()));
    }

    fn forget_stat(&mut self, db: usize, column: &str, name: &str) {
        let schema = self.schema_name(db);
        for n in 1..=4 {
            let t = format!("sqlite_stat{n}");
            if self.env.catalog.schemas[db].table(&t).is_some() {
                self.exec(format!("DELETE FROM {schema}.{t} WHERE {column}={}", quote_text(name)));
            }
        }
    }

    fn drop_table(&mut self, db: usize, t: &Rc<Table>) -> Columns {
        self.write_database(db);
        self.needs_statement = true;
        for (d, tr) in self.env.catalog.triggers_of(db, t) {
            self.write_database(d);
            let schema = self.schema_name(d);
            self.exec(format!(
                "DELETE FROM {schema}.sqlite_master WHERE name={} AND type='trigger'",
                quote_text(&tr.name)
            ));
            if d != db {
                self.bump_cookie(d);
            }
            self.b.emit4(Opcode::DropTrigger, d as i32, 0, 0, P4::Name(tr.name.clone()));
        }
        let schema = self.schema_name(db);
        let name = quote_text(&t.name);
        if t.autoincrement {
            self.exec(format!("DELETE FROM {schema}.sqlite_sequence WHERE name={name}"));
        }
        self.forget_stat(db, "tbl", &t.name);
        self.exec(format!("DELETE FROM {schema}.sqlite_master WHERE tbl_name={name} AND type!='trigger'"));
        let mut roots: Vec<u32> = t.indexes.borrow().iter().map(|i| i.root.get()).collect();
        roots.push(t.root.get());
        self.bump_cookie(db);
        self.destroy(db, roots);
        self.b.emit4(Opcode::DropTable, db as i32, 0, 0, P4::Name(t.name.clone()));
        Ok(Few::new())
    }

    /// Frees trees, the highest root first: freeing one may move the highest root of all into its place.
    fn destroy(&mut self, db: usize, mut roots: Vec<u32>) {
        roots.sort_unstable();
        roots.dedup();
        for root in roots.into_iter().rev().filter(|r| *r > 1) {
            let moved = self.b.reg();
            self.b.emit(Opcode::Destroy, root as i32, moved, db as i32);
            let skip = self.b.emit(Opcode::IfNot, moved, 0, 0);
            self.b.emit(Opcode::MoveRoot, db as i32, moved, root as i32);
            self.b.jump_here(skip);
        }
    }

    /// REINDEX.
    pub fn reindex(&mut self, b: &mut Binder<'_>, what: Option<&QualifiedName>) -> Columns {
        let mut list: Vec<(usize, Rc<Index>)> = Vec::new();
        let all = |list: &mut Vec<(usize, Rc<Index>)>, keep: &dyn Fn(&Index) -> bool| {
            for (db, s) in self.env.catalog.schemas.iter().enumerate() {
                list.extend(s.indexes().filter(|i| keep(i)).map(|i| (db, i.clone())));
            }
        };
        match what {
            None => all(&mut list, &|_| true),
            Some(q) => {
                let schema = q.schema.as_ref().map(|s| &*s.text);
                let name = &*q.name.text;
                let is_collation =
                    schema.is_none() && self.env.registry.collation(name, self.env.encoding).is_some();
                if is_collation {
                    all(&mut list, &|i| {
                        i.columns
                            .iter()
                            .any(|c| c.collation.as_deref().unwrap_or("BINARY").eq_ignore_ascii_case(name))
                    });
                } else if schema.is_none() && name.eq_ignore_ascii_case("expressions") {
                    all(&mut list, &|i| i.has_expr());
                } else if let Some((db, t)) = self.env.catalog.table(schema, name) {
                    list.extend(t.indexes.borrow().iter().map(|i| (db, i.clone())));
                } else if let Some((db, i)) = self.env.catalog.index(schema, name) {
                    list.push((db, i));
                } else {
                    return Err(Error::sql("unable to identify the object to be reindexed"));
                }
            }
        }
        list.sort_by(|a, b| (a.0, &a.1.name).cmp(&(b.0, &b.1.name)));
        for (db, i) in list {
            let Some(t) = self.env.catalog.schemas[db].table(&i.table).cloned() else { continue };
            let mut target = b.target(db, &t)?;
            target.indexes.retain(|x| Rc::ptr_eq(&x.index, &i) && !x.is_table);
            if target.indexes.is_empty() {
                continue;
            }
            self.write_database(db);
            self.needs_statement = true;
            self.b.emit(Opcode::Clear, i.root.get() as i32, db as i32, 0);
            self.fill_index(&target, None)?;
        }
        Ok(Few::new())
    }
}

/// A definition's text as the schema keeps it: from the name on, with its database left out.
fn stored_text(word: &str, whole: &str, name_start: u32, stmt: &str) -> String {
    // `stmt` is a part of `whole`; its end is the definition's.
    let end = (stmt.as_ptr() as usize - whole.as_ptr() as usize) + stmt.len();
    format!("{word} {}", &whole[name_start as usize..end])
}

fn quote_if_needed(name: &str) -> String {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !name.bytes().next().is_none_or(|b| b.is_ascii_digit());
    if plain { name.into() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

fn unique_words(t: &Target, i: &iolite_plan::bind::TargetIndex) -> String {
    if i.index.has_expr() {
        return format!("index '{}'", i.index.name);
    }
    let names: Vec<String> = i.index.columns[..i.index.key_len]
        .iter()
        .filter_map(|c| match c.source {
            iolite_catalog::ColumnSource::Column(k) => {
                Some(format!("{}.{}", t.table.name, t.table.columns[k].name))
            }
            _ => None,
        })
        .collect();
    names.join(", ")
}

/// The definition of a table made by CREATE TABLE AS.
fn columns_as_text(name: &str, columns: &[OutColumn]) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut parts = Vec::new();
    for c in columns {
        let base = c.stored_name.as_deref().unwrap_or(&c.meta.name).to_string();
        let stem = iolite_plan::bind::unnumbered(&base);
        let mut own = base.clone();
        let mut n = 0;
        while names.iter().any(|x| x.eq_ignore_ascii_case(&own)) {
            n += 1;
            own = format!("{stem}:{n}");
        }
        let ty = match c.affinity {
            Affinity::Text => " TEXT",
            Affinity::Numeric | Affinity::Flexnum => " NUM",
            Affinity::Integer => " INT",
            Affinity::Real => " REAL",
            _ => "",
        };
        // Every keyword is quoted, those too that may stand for names.
        let quoted =
            if iolite_sql::is_keyword(&own) { format!("\"{own}\"").into() } else { quote_name(&own) };
        parts.push(format!("{quoted}{ty}"));
        names.push(own);
    }
    // One line, if the names alone are short.
    let length = |n: &str| n.len() + n.matches('"').count() + 2;
    let total: usize = names.iter().map(|n| length(n) + 5).sum::<usize>() + length(name);
    if total < 50 {
        format!("CREATE TABLE {}({})", quote_name(name), parts.join(","))
    } else {
        format!("CREATE TABLE {}(\n  {}\n)", quote_name(name), parts.join(",\n  "))
    }
}
