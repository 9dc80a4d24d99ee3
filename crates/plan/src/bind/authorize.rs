//! Asking the authorizer for what a statement reads, calls and changes, where its names are looked up.
//!
//! Columns and functions are asked for as they are met; nested queries, and tables of which no column is read, behind
//! the outermost query that they stand in, for that is when SQLite comes to them. What the engine compiles for itself, and what stands in
//! a table's definition, is not asked for.

use super::*;
use iolite_ext::{Action, Question};

/// What is asked for when the outermost query has been bound.
pub(super) enum Later {
    /// A nested query, with the view or trigger that it stands in.
    Query(Option<Rc<str>>),
    /// A recursive one.
    Recursive(Option<Rc<str>>),
    /// A table without a column that is read; with its database where that was written, or stands in a view or trigger, and with
    /// the trigger, or a view that does not become part of the query around it.
    Table(Rc<str>, Option<usize>, Option<Rc<str>>),
}

/// What the binder remembers for it.
#[derive(Default)]
pub(super) struct Asked {
    /// The innermost view or trigger.
    pub(super) inner: Option<Rc<str>>,
    /// Nobody is asked for the moment.
    pub(super) silent: bool,
    /// Only columns are asked for: a query of the engine's own reads them.
    reads_only: bool,
    /// How many queries with all their arms are being bound.
    levels: u32,
    /// How many queries are being bound, and changes of rows.
    depth: u32,
    later: Vec<Later>,
    /// For each query that is being bound: how much was put off before its result list.
    marks: Vec<usize>,
    /// The statement is a query.
    alone: bool,
    /// It was ignored.
    left_out: bool,
    /// A query was ignored: the whole answers nothing.
    nothing: bool,
    /// Occurrences of which a column was read.
    read: Vec<TableId>,
    /// Occurrences whose names were written with a database.
    full: Vec<TableId>,
    /// Occurrences of views, and their names.
    views: Vec<(TableId, Rc<str>)>,
}

/// The name by which SQLite asks for a table.
fn asked_name(name: &str) -> &str {
    match name {
        "sqlite_schema" => "sqlite_master",
        "sqlite_temp_schema" => "sqlite_temp_master",
        n => n,
    }
}

impl Binder<'_> {
    /// Whether somebody is to be asked.
    #[inline]
    pub(super) fn asks(&self) -> bool {
        self.env.authorizer.is_some()
            && self.restriction == Restriction::None
            && self.log.is_none()
            && !self.asked.silent
    }

    /// From now on nobody is asked: what is bound stands in a table's definition.
    pub fn ask_nobody(&mut self) {
        self.asked.silent = true;
    }

    /// What is bound is a statement that is a query.
    pub fn is_query(&mut self) {
        self.asked.alone = true;
    }

    /// Whether the authorizer wants the query that is the statement left out, so that binding it ended at once.
    pub fn leaves_out(&self) -> bool {
        self.asked.left_out
    }

    /// Names the trigger whose body is being bound.
    pub fn ask_for(&mut self, trigger: &Rc<str>) {
        self.asked.inner = Some(trigger.clone());
    }

    fn database_name(&self, db: usize) -> Rc<str> {
        self.env.catalog.schemas.get(db).map_or_else(|| "main".into(), |s| s.name.clone())
    }

    /// Asks; `false`: to be left out.
    pub(super) fn ask(
        &self,
        action: Action,
        one: Option<&str>,
        two: Option<&str>,
        db: Option<usize>,
    ) -> Result<bool> {
        let inner = self.asked.inner.clone();
        self.ask_within(action, one, two, db, inner.as_deref())
    }

    fn ask_within(
        &self,
        action: Action,
        one: Option<&str>,
        two: Option<&str>,
        db: Option<usize>,
        inner: Option<&str>,
    ) -> Result<bool> {
        let Some(a) = self.env.authorizer else { return Ok(true) };
        if self.asked.reads_only && action != Action::Read {
            return Ok(true);
        }
        let database = db.map(|d| self.database_name(d));
        let answer = a.ask(Question { action, one, two, database: database.as_deref(), inner });
        match (answer, action) {
            (0, _) => Ok(true),
            (2, _) => Ok(false),
            (1, Action::Read) if two != Some("") => {
                let (table, column) = (one.unwrap_or(""), two.unwrap_or(""));
                let database = match (database, db) {
                    (Some(name), Some(d)) if d != 0 || self.env.catalog.schemas.len() > 2 => {
                        format!("{name}.")
                    }
                    _ => String::new(),
                };
                let message = format!("access to {database}{table}.{column} is prohibited");
                Err(Error::new(Code::Auth, message).at_place(None))
            }
            // Also where the answer is none.
            (_, Action::Function) => {
                Err(Error::sql(format!("not authorized to use function: {}", two.unwrap_or(""))))
            }
            (1, _) => Err(Error::new(Code::Auth, "not authorized")),
            _ => Err(Error::sql("authorizer malfunction").nowhere()),
        }
    }

    /// Asks for a function that is called at a place of the text.
    pub(super) fn ask_function(&self, f: &iolite_ext::Function, at: u32) -> Result<bool> {
        if !self.asks() {
            return Ok(true);
        }
        self.ask(Action::Function, None, Some(&f.name), None).map_err(|e| e.at(at))
    }

    /// Asks for a column of a table; `column`: its number, or that of the rowid.
    pub(super) fn ask_column(&self, db: usize, table: &Table, column: i32) -> Result<bool> {
        let at = if column == ROWID { table.rowid_alias } else { usize::try_from(column).ok() };
        let name = at.and_then(|i| table.columns.get(i)).map_or("ROWID", |c| &*c.name);
        self.ask(Action::Read, Some(asked_name(&table.name)), Some(name), Some(db))
    }

    /// Asks for a column that was found in a scope; the answer is NULL where it is to be left out.
    pub(super) fn authorized(&mut self, depth: usize, e: Expr) -> Result<Expr> {
        if !self.asks() {
            return Ok(e);
        }
        let Expr::Column(c) = &e else { return Ok(e) };
        let Some(s) = self.scopes[depth].sources.iter().find(|s| s.id == c.table) else { return Ok(e) };
        let returned = self.returned.as_ref().filter(|r| r.id == s.id).map(|r| r.db);
        let Some(db) = s.db.or(returned) else { return Ok(e) };
        let (id, column) = (s.id, c.column);
        let granted = match s.columns.clone() {
            Columns::Table(t) => self.ask_column(db, &t, column)?,
            Columns::Query(q) => {
                let view = self.asked.views.iter().find(|v| v.0 == id).map(|v| v.1.clone());
                let (Some(view), Some(c)) = (view, usize::try_from(column).ok().and_then(|i| q.get(i)))
                else {
                    return Ok(e);
                };
                self.ask(Action::Read, Some(&view), Some(&c.name), Some(db))?
            }
        };
        if column != ROWID && !self.asked.read.contains(&id) {
            self.asked.read.push(id);
        }
        Ok(if granted { e } else { Expr::Const(iolite_value::Value::Null) })
    }

    /// Remembers that an occurrence is a view's.
    pub(super) fn note_view(&mut self, name: &Rc<str>) {
        if self.asks()
            && let Some(s) = self.scopes.last().and_then(|s| s.sources.last())
        {
            self.asked.views.push((s.id, name.clone()));
        }
    }

    /// A query begins.
    pub(super) fn ask_query(&mut self) -> Result<()> {
        if !self.asks() {
            return Ok(());
        }
        if self.asked.reads_only {
            // It is nobody's query.
        } else if self.asked.depth > 0 {
            let inner = self.asked.inner.clone();
            self.asked.later.push(Later::Query(inner));
        } else if !self.ask(Action::Select, None, None, None)? {
            if self.asked.alone {
                self.asked.left_out = true;
                return Err(Code::Auth.into());
            }
            // Of a query that answers nothing no more is asked.
            self.asked.nothing = true;
            self.asked.silent = true;
            return Ok(());
        }
        self.asked.depth += 1;
        self.asked.marks.push(self.asked.later.len());
        Ok(())
    }

    /// The FROM clause of the innermost query has been bound.
    pub(super) fn tables_asked(&mut self) {
        let n = self.asked.later.len();
        if let Some(m) = self.asked.marks.last_mut() {
            *m = n;
        }
    }

    /// What was put off since there were `from` of them.
    pub(super) fn put_off(&mut self, from: usize) -> Vec<Later> {
        self.asked.later.split_off(from)
    }

    /// How much was put off.
    pub(super) fn put_off_so_far(&self) -> usize {
        self.asked.later.len()
    }

    /// The arms of a compound have been bound, from the last to the first; this was put off by them.
    pub(super) fn arms_asked(&mut self, arms: Vec<Vec<Later>>) -> Result<()> {
        self.asked.later.extend(arms.into_iter().rev().flatten());
        self.end_query()
    }

    /// A change of rows begins: its queries are nested.
    pub(super) fn begin_change(&mut self) {
        self.asked.depth += 1;
        self.asked.marks.push(0);
    }

    /// It has been bound.
    pub(super) fn end_change(&mut self) -> Result<()> {
        self.end_query()
    }

    fn end_query(&mut self) -> Result<()> {
        self.asked.marks.pop();
        self.asked.depth -= 1;
        if self.asked.depth == 0 { self.ask_later() } else { Ok(()) }
    }

    /// Remembers that an occurrence was named with its database.
    pub(super) fn note_full(&mut self) {
        if self.asks()
            && let Some(s) = self.scopes.last().and_then(|s| s.sources.last())
        {
            self.asked.full.push(s.id);
        }
    }

    /// A recursive query is met: it is a query as well.
    pub(super) fn ask_recursive(&mut self) {
        if self.asks() {
            let inner = self.asked.inner.clone();
            self.asked.later.extend([Later::Query(inner.clone()), Later::Recursive(inner)]);
        }
    }

    /// The innermost query has been bound, its scope is still there.
    pub(super) fn query_asked(&mut self) -> Result<()> {
        if !self.asks() {
            return Ok(());
        }
        let scope = self.scopes.last().expect("a query is being bound");
        let mut unread = Vec::new();
        let own = self.asked.reads_only;
        let apart = self.trigger.is_some() || scope.has_agg || scope.groups;
        let inner = self.asked.inner.as_ref().filter(|_| apart);
        for s in scope.sources.iter().filter(|s| !own && !self.asked.read.contains(&s.id)) {
            if let (Columns::Table(t), Some(db)) = (&s.columns, s.db) {
                let full = self.asked.inner.is_some() || self.asked.full.contains(&s.id);
                unread.push(Later::Table(Rc::from(asked_name(&t.name)), full.then_some(db), inner.cloned()));
            }
        }
        let at = self.asked.marks.last().copied().unwrap_or(0);
        self.asked.later.splice(at..at, unread);
        self.end_query()
    }

    /// Binds what the engine asks itself, of which only the columns are asked for.
    pub(super) fn asking_for_reads<T>(&mut self, bind: impl FnOnce(&mut Self) -> T) -> T {
        let former = std::mem::replace(&mut self.asked.reads_only, true);
        let out = bind(self);
        self.asked.reads_only = former;
        out
    }

    /// Binds something for which nobody is asked.
    pub(super) fn asking_nobody<T>(&mut self, bind: impl FnOnce(&mut Self) -> T) -> T {
        let former = std::mem::replace(&mut self.asked.silent, true);
        let out = bind(self);
        self.asked.silent = former;
        out
    }

    /// Asks for what was put off.
    pub(super) fn ask_later(&mut self) -> Result<()> {
        for l in std::mem::take(&mut self.asked.later) {
            let granted = match l {
                Later::Query(inner) => self.ask_within(Action::Select, None, None, None, inner.as_deref())?,
                Later::Recursive(inner) => {
                    self.ask_within(Action::Recursive, None, None, None, inner.as_deref())?
                }
                Later::Table(name, db, inner) => {
                    self.ask_within(Action::Read, Some(&name), Some(""), db, inner.as_deref())?;
                    true
                }
            };
            self.asked.nothing |= !granted;
        }
        Ok(())
    }

    /// A query with all its arms begins.
    pub(super) fn enter_query(&mut self) {
        self.asked.levels += 1;
    }

    /// It has been bound: whether it is the outermost one, and to answer nothing.
    pub(super) fn answers_nothing(&mut self) -> bool {
        self.asked.levels -= 1;
        let nothing =
            self.asked.levels == 0 && self.asked.depth == 0 && std::mem::take(&mut self.asked.nothing);
        if nothing {
            self.asked.silent = false;
        }
        nothing
    }
}
