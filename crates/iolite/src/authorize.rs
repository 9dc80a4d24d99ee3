//! What a statement is authorized to do, as far as it is no matter of names in queries: definitions, transactions, settings.
//! The rest is asked where names are looked up (`plan::bind::authorize`).
//!
//! Asked before the statement is compiled, but for what stock asks behind it: that it writes the schema's row. What stock asks
//! for because it changes the schema by statements of its own (ALTER TABLE, VACUUM, tables of modules) is not asked.

use iolite_base::{Code, Error, Result};
use iolite_catalog::{Catalog, ColumnSource, Table, TableKind};
use iolite_ext::{Action, Authorizer, Question};
use iolite_sql::ast::{self, Expr, Name, ObjectKind, QualifiedName, Stmt as Ast};
use std::rc::Rc;

const TEMP: usize = 1;

/// Who asks, for whom.
struct Asking<'a> {
    authorizer: &'a dyn Authorizer,
    catalog: Rc<Catalog>,
}

impl Asking<'_> {
    fn ask(
        &self,
        action: Action,
        one: Option<&str>,
        two: Option<&str>,
        database: Option<&str>,
    ) -> Result<bool> {
        match self.authorizer.ask(Question { action, one, two, database, inner: None }) {
            0 => Ok(true),
            2 => Ok(false),
            1 if action == Action::Read => {
                let (table, column) = (one.unwrap_or(""), two.unwrap_or(""));
                // As where names are looked up: the database is told where there are others.
                let others = self.catalog.schemas.len() > 2;
                let database = database.filter(|d| others || *d != &*self.name(0));
                let dot = if database.is_some() { "." } else { "" };
                let database = database.unwrap_or_default();
                Err(Error::new(
                    Code::Auth,
                    format!("access to {database}{dot}{table}.{column} is prohibited"),
                ))
            }
            1 => Err(Error::new(Code::Auth, "not authorized")),
            _ => Err(Error::sql("authorizer malfunction")),
        }
    }

    fn name(&self, db: usize) -> Rc<str> {
        self.catalog.schemas.get(db).map_or_else(|| "main".into(), |s| s.name.clone())
    }

    /// The database that a new object goes to.
    fn home(&self, schema: Option<&Name>, temp: bool) -> usize {
        if temp { TEMP } else { schema.and_then(|s| self.catalog.database(&s.text)).unwrap_or(0) }
    }

    fn table(&self, n: &QualifiedName) -> Option<(usize, Rc<Table>)> {
        self.catalog.table(n.schema.as_ref().map(|s| &*s.text), &n.name.text)
    }

    /// Asks for a change of the list of what there is.
    fn schema(&self, action: Action, db: usize) -> Result<bool> {
        self.ask(action, Some(schema_table(db)), None, Some(&self.name(db)))
    }

    /// Asks for a new table or view: it counts as a temporary one where TEMP is written, not where the database is named.
    fn create(&self, n: &QualifiedName, temp: bool, [plain, temporary]: [Action; 2]) -> Result<bool> {
        let name = self.name(self.home(n.schema.as_ref(), temp));
        let (list, action) = if temp { (schema_table(TEMP), temporary) } else { (schema_table(0), plain) };
        Ok(self.ask(Action::Insert, Some(list), None, Some(&name))?
            && self.ask(action, Some(&n.name.text), None, Some(&name))?)
    }

    /// What belongs to a table that is made: the indexes of its keys, its conditions and computed columns.
    fn parts(&self, db: usize, t: &Table) -> Result<()> {
        let name = self.name(db);
        let create = if db == TEMP { Action::CreateTempIndex } else { Action::CreateIndex };
        let column = |c: usize| self.ask(Action::Read, Some(&t.name), Some(&t.columns[c].name), Some(&name));
        for i in t.indexes.borrow().iter().rev() {
            self.schema(Action::Insert, db)?;
            self.ask(create, Some(&i.name), Some(&t.name), Some(&name))?;
            for c in &i.columns[..i.key_len] {
                if let ColumnSource::Column(c) = c.source {
                    column(c)?;
                }
            }
            self.schema(Action::Insert, db)?;
        }
        for c in &t.checks {
            self.expression(&c.expr, t, &name)?;
        }
        for c in &t.columns {
            if let Some(g) = &c.generated {
                self.expression(&g.expr, t, &name)?;
            }
        }
        Ok(())
    }

    /// The row of a new table or view is written.
    fn row(&self, db: usize) -> Result<bool> {
        let (table, name) = (schema_table(db), self.name(db));
        for column in ["type", "name", "tbl_name", "rootpage", "sql"] {
            self.ask(Action::Update, Some(table), Some(column), Some(&name))?;
        }
        self.ask(Action::Read, Some(table), Some("ROWID"), Some(&name))
    }

    /// A table of the engine's own is made, unless it is there.
    fn own_table(&self, db: usize, table: &str) -> Result<bool> {
        if self.catalog.schemas[db].table(table).is_some() {
            return Ok(true);
        }
        self.schema(Action::Insert, db)?;
        let action = if db == TEMP { Action::CreateTempTable } else { Action::CreateTable };
        self.ask(action, Some(table), None, Some(&self.name(db)))?;
        self.row(db)
    }

    /// Rows of a table are deleted, which these columns tell.
    fn delete(&self, db: usize, table: &str, columns: &[&str]) -> Result<bool> {
        let name = self.name(db);
        self.ask(Action::Delete, Some(table), None, Some(&name))?;
        for c in columns {
            self.ask(Action::Read, Some(table), Some(c), Some(&name))?;
        }
        Ok(true)
    }

    fn moved(&self, db: usize) -> Result<bool> {
        let (table, name) = (schema_table(db), self.name(db));
        self.ask(Action::Update, Some(table), Some("rootpage"), Some(&name))?;
        self.ask(Action::Read, Some(table), Some("rootpage"), Some(&name))
    }

    /// Asks for the functions and columns whose names stand in an expression over a table.
    fn expression(&self, e: &Expr, table: &Table, database: &str) -> Result<()> {
        let text = iolite_sql::print::expr(e);
        let mut lexer = iolite_sql::lexer::Lexer::new(text.as_bytes(), 0);
        loop {
            let t = lexer.token();
            if t.end <= t.start || t.end as usize > text.len() {
                return Ok(());
            }
            let word = &text[t.start as usize..t.end as usize];
            let bare =
                word.strip_prefix(['"', '`', '[', '\'']).and_then(|w| w.strip_suffix(['"', '`', ']', '\'']));
            let bare = bare.unwrap_or(word).replace("\"\"", "\"").replace("``", "`");
            if let Some(c) = table.column(&bare) {
                self.ask(Action::Read, Some(&table.name), Some(&table.columns[c].name), Some(database))?;
            } else if text[t.end as usize..].starts_with('(') && bare.starts_with(|c: char| c.is_alphabetic())
            {
                self.function(&bare)?;
            }
        }
    }

    fn function(&self, name: &str) -> Result<bool> {
        match self.authorizer.ask(Question {
            action: Action::Function,
            one: None,
            two: Some(name),
            database: None,
            inner: None,
        }) {
            0 | 2 => Ok(true),
            1 => Err(Error::sql(format!("not authorized to use function: {name}"))),
            _ => Err(Error::sql("authorizer malfunction")),
        }
    }

    fn create_index(&self, i: &ast::CreateIndex) -> Result<bool> {
        let named = QualifiedName { schema: i.name.schema.clone(), name: i.table.clone() };
        let Some((db, table)) = self.table(&named) else { return Ok(true) };
        let (name, action) =
            (self.name(db), if db == TEMP { Action::CreateTempIndex } else { Action::CreateIndex });
        let own = Some(&*i.name.name.text);
        // Nobody is asked for an index that is there, nor for one that cannot be.
        let schema = &self.catalog.schemas[db];
        let taken = schema.index(&i.name.name.text).is_some() || schema.table(&i.name.name.text).is_some();
        if taken || !is_stored(&table) {
            return Ok(true);
        }
        if !self.schema(Action::Insert, db)? || !self.ask(action, own, Some(&table.name), Some(&name))? {
            return Ok(false);
        }
        // The index holds what these name.
        for e in i.filter.iter().chain(i.columns.iter().map(|t| &t.expr)) {
            self.expression(e, &table, &name)?;
        }
        Ok(self.schema(Action::Insert, db)? && self.ask(Action::Reindex, own, None, Some(&name))?)
    }

    fn drop(&self, kind: &ObjectKind, n: &QualifiedName) -> Result<bool> {
        let schema = n.schema.as_ref().map(|s| &*s.text);
        let dbs = (0..self.catalog.schemas.len())
            .filter(|db| schema.is_none_or(|s| self.catalog.database(s) == Some(*db)));
        // Temporary ones are found first.
        let mut dbs: Vec<usize> = dbs.collect();
        dbs.sort_by_key(|db| *db != TEMP);
        let own = &*n.name.text;
        match kind {
            ObjectKind::Table | ObjectKind::View => {
                let Some((db, table)) = self.table(n) else { return Ok(true) };
                let (name, temp) = (self.name(db), db == TEMP);
                let module = match &table.kind {
                    TableKind::Virtual { module, .. } => Some(module.to_string()),
                    _ => None,
                };
                let action = match (&table.kind, temp) {
                    (TableKind::Virtual { .. }, _) => Action::DropVtable,
                    (TableKind::View { .. }, true) => Action::DropTempView,
                    (TableKind::View { .. }, false) => Action::DropView,
                    (_, true) => Action::DropTempTable,
                    (_, false) => Action::DropTable,
                };
                if !self.schema(Action::Delete, db)?
                    || !self.ask(action, Some(&table.name), module.as_deref(), Some(&name))?
                    || !self.ask(Action::Delete, Some(&table.name), None, Some(&name))?
                {
                    return Ok(false);
                }
                let has = |t: &str| self.catalog.schemas[db].table(t).is_some();
                if has("sqlite_stat1") && !table.is_view() {
                    self.delete(db, "sqlite_stat1", &["tbl"])?;
                }
                if table.autoincrement && has("sqlite_sequence") {
                    self.delete(db, "sqlite_sequence", &["name"])?;
                }
                self.delete(db, schema_table(db), &["tbl_name", "type"])?;
                if !table.is_view() && module.is_none() {
                    let trees = 1 + table.indexes.borrow().len() - table.primary_index().is_some() as usize;
                    for _ in 0..trees {
                        self.moved(db)?;
                    }
                }
                Ok(true)
            }
            ObjectKind::Index => {
                let found = dbs.iter().find_map(|db| Some((*db, self.catalog.schemas[*db].index(own)?)));
                let Some((db, index)) = found else { return Ok(true) };
                let (table, name) = (index.table.clone(), self.name(db));
                let action = if db == TEMP { Action::DropTempIndex } else { Action::DropIndex };
                if !self.schema(Action::Delete, db)?
                    || !self.ask(action, Some(own), Some(&table), Some(&name))?
                {
                    return Ok(false);
                }
                self.delete(db, schema_table(db), &["name", "type"])?;
                if self.catalog.schemas[db].table("sqlite_stat1").is_some() {
                    self.delete(db, "sqlite_stat1", &["idx"])?;
                }
                self.moved(db)
            }
            ObjectKind::Trigger => {
                let found = dbs.iter().find_map(|db| Some((*db, self.catalog.schemas[*db].trigger(own)?)));
                let Some((db, trigger)) = found else { return Ok(true) };
                let (table, name) = (trigger.ast.table.name.text.to_string(), self.name(db));
                let action = if db == TEMP { Action::DropTempTrigger } else { Action::DropTrigger };
                if !self.ask(action, Some(own), Some(&table), Some(&name))?
                    || !self.schema(Action::Delete, db)?
                {
                    return Ok(false);
                }
                self.delete(db, schema_table(db), &["name", "type"])
            }
        }
    }

    /// REINDEX and ANALYZE: which indexes or tables of which database a name means, all without one.
    fn reindex(&self, what: Option<&QualifiedName>) -> Result<bool> {
        for (db, s) in self.catalog.schemas.iter().enumerate() {
            for t in s.tables() {
                for i in t.each_index() {
                    let named = what.is_none_or(|w| {
                        let schema =
                            w.schema.as_ref().is_none_or(|x| self.catalog.database(&x.text) == Some(db));
                        let is = |n: &str| w.name.text.eq_ignore_ascii_case(n);
                        let collates = |c: &Option<Rc<str>>| c.as_ref().is_some_and(|c| is(c));
                        schema
                            && (is(&i.name)
                                || is(&t.name)
                                || i.columns.iter().any(|c| collates(&c.collation)))
                    });
                    if named && !self.ask(Action::Reindex, Some(&i.name), None, Some(&self.name(db)))? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    fn analyze(&self, what: Option<&QualifiedName>) -> Result<bool> {
        for (db, s) in self.catalog.schemas.iter().enumerate().filter(|(db, _)| *db != TEMP) {
            let mut first = true;
            for t in s.tables().filter(|t| is_stored(t) && !t.name.starts_with("sqlite_")) {
                let named = what.is_none_or(|w| {
                    let schema = w.schema.as_ref().is_none_or(|x| self.catalog.database(&x.text) == Some(db));
                    let is = |n: &str| w.name.text.eq_ignore_ascii_case(n);
                    let whole = w.schema.is_none() && is(&s.name);
                    whole || schema && (is(&t.name) || t.indexes.borrow().iter().any(|i| is(&i.name)))
                });
                if named && std::mem::take(&mut first) {
                    let one = what.is_some_and(|w| !w.name.text.eq_ignore_ascii_case(&s.name));
                    match s.table("sqlite_stat1") {
                        Some(_) if one => self.delete(db, "sqlite_stat1", &["tbl"])?,
                        _ => self.own_table(db, "sqlite_stat1")?,
                    };
                }
                if named && !self.ask(Action::Analyze, Some(&t.name), None, Some(&self.name(db)))? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn before(&self, s: &Ast) -> Result<bool> {
        let simple = |action, one: Option<&str>, two: Option<&str>| self.ask(action, one, two, None);
        match s {
            Ast::CreateTable(t) => {
                self.create(&t.name, t.temp, [Action::CreateTable, Action::CreateTempTable])
            }
            Ast::CreateView(v) => self.create(&v.name, v.temp, [Action::CreateView, Action::CreateTempView]),
            Ast::CreateIndex(i) => self.create_index(i),
            Ast::CreateTrigger(t) => {
                let Some((on, table)) = self.table(&t.table) else { return Ok(true) };
                let db = match &t.name.schema {
                    _ if t.temp => TEMP,
                    Some(s) => self.catalog.database(&s.text).unwrap_or(0),
                    None => on,
                };
                let action = if db == TEMP { Action::CreateTempTrigger } else { Action::CreateTrigger };
                Ok(self.ask(action, Some(&t.name.name.text), Some(&table.name), Some(&self.name(db)))?
                    && self.schema(Action::Insert, on)?
                    && self.schema(Action::Insert, db)?)
            }
            Ast::CreateVirtualTable(v) => {
                let db = self.home(v.name.schema.as_ref(), false);
                Ok(self.schema(Action::Insert, db)?
                    && self.ask(
                        Action::CreateVtable,
                        Some(&v.name.name.text),
                        Some(&v.module.text),
                        Some(&self.name(db)),
                    )?)
            }
            Ast::Drop { kind, name, .. } => self.drop(kind, name),
            Ast::AlterTable(t) => {
                let Some((db, table)) = self.table(&t.table) else { return Ok(true) };
                let column = match &t.action {
                    ast::AlterAction::DropColumn(c) | ast::AlterAction::DropNotNull(c) => Some(&*c.text),
                    ast::AlterAction::SetNotNull { column, .. } => Some(&*column.text),
                    _ => None,
                };
                let name = self.name(db);
                self.ask(Action::AlterTable, Some(&name), Some(&table.name), column)
            }
            Ast::Begin(_) => simple(Action::Transaction, Some("BEGIN"), None),
            Ast::Commit => simple(Action::Transaction, Some("COMMIT"), None),
            Ast::Rollback => simple(Action::Transaction, Some("ROLLBACK"), None),
            Ast::Savepoint(n) => simple(Action::Savepoint, Some("BEGIN"), Some(&n.text)),
            Ast::Release(n) => simple(Action::Savepoint, Some("RELEASE"), Some(&n.text)),
            Ast::RollbackTo(n) => simple(Action::Savepoint, Some("ROLLBACK"), Some(&n.text)),
            Ast::Attach { file, .. } => simple(Action::Attach, literal(file).as_deref(), None),
            Ast::Detach(n) => simple(Action::Detach, literal(n).as_deref(), None),
            Ast::Pragma { name, value } => {
                let schema = name.schema.as_ref().map(|s| &*s.text);
                if schema.is_some_and(|s| self.catalog.database(s).is_none()) {
                    return Ok(true);
                }
                self.ask(Action::Pragma, Some(&name.name.text), value.as_ref().map(|v| &*v.text), schema)
            }
            Ast::Analyze(n) => self.analyze(n.as_ref()),
            Ast::Reindex(n) => self.reindex(n.as_ref()),
            // Stock copies by statements; what they do is allowed or not by these.
            Ast::Vacuum { into, .. } => {
                let file = into.as_ref().map_or(Some(String::new()), |e| literal(e));
                simple(Action::Attach, file.as_deref(), None)
            }
            Ast::Select(_) | Ast::Insert(_) | Ast::Update(_) | Ast::Delete(_) => Ok(true),
        }
    }

    fn after(&self, s: &Ast, text: &str) -> Result<()> {
        match s {
            Ast::CreateTable(t) if !t.if_not_exists || self.table(&t.name).is_none() => {
                let db = self.home(t.name.schema.as_ref(), t.temp);
                if let ast::CreateTableBody::Columns { .. } = t.body {
                    let made = iolite_catalog::table_from_ast(t, text, 0)?;
                    self.parts(db, &made)?;
                    self.row(db)?;
                    if made.autoincrement {
                        self.own_table(db, "sqlite_sequence")?;
                    }
                } else {
                    self.row(db)?;
                }
            }
            Ast::CreateView(v) => {
                self.row(self.home(v.name.schema.as_ref(), v.temp))?;
            }
            Ast::CreateVirtualTable(v) => {
                self.row(self.home(v.name.schema.as_ref(), false))?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Whether a table has rows of its own in the file.
fn is_stored(t: &Table) -> bool {
    matches!(t.kind, TableKind::Rowid | TableKind::WithoutRowid)
}

/// The table that lists what a database holds, by the name that is asked for.
fn schema_table(db: usize) -> &'static str {
    if db == TEMP { "sqlite_temp_master" } else { "sqlite_master" }
}

/// The text of a word or literal; none for what must be computed.
fn literal(e: &Expr) -> Option<String> {
    match e {
        Expr::Literal(..) | Expr::Column { .. } => {
            Some(iolite_sql::print::expr(e).trim_matches(['\'', '"']).to_string())
        }
        _ => None,
    }
}

/// Asks for a statement before it is compiled; `false`: it is to do nothing.
pub(crate) fn before(catalog: Rc<Catalog>, a: &dyn Authorizer, s: &Ast) -> Result<bool> {
    Asking { authorizer: a, catalog }.before(s)
}

/// Asks for what comes when it has been compiled; `text`: what it was parsed from.
pub(crate) fn after(catalog: Rc<Catalog>, a: &dyn Authorizer, s: &Ast, text: &str) -> Result<()> {
    Asking { authorizer: a, catalog }.after(s, text)
}
