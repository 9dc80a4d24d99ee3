//! Binding INSERT, UPDATE, DELETE, and the expressions that tables carry.

use super::expr::{fields, width};
use super::names::is_rowid;
use super::*;
use iolite_catalog::{ColumnSource, Index, TableKind};
use iolite_ext::Action;
use iolite_value::Value;

pub use super::from::unnumbered;

/// What a statement does to its table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    Insert,
    Update,
    Delete,
}

/// A table's name as messages repeat it: with the database if that was written.
fn as_written(q: &ast::QualifiedName) -> String {
    match &q.schema {
        Some(s) => format!("{}.{}", s.text, q.name.text),
        None => q.name.text.to_string(),
    }
}

/// A table that is written to, with its expressions bound to table number `id`.
#[derive(Clone)]
pub struct Target {
    /// Database number.
    pub db: usize,
    /// The table or view.
    pub table: Rc<Table>,
    /// The number by which expressions refer to its row.
    pub id: TableId,
    /// Its indexes, in the catalog's order.
    pub indexes: Vec<TargetIndex>,
    /// `CHECK` constraints with what the error message says.
    pub checks: Vec<(Expr, Box<str>)>,
    /// Generated columns, in an order in which each can be computed.
    pub generated: Vec<(usize, Expr)>,
    /// The columns that have defaults, in order, with these. What is wrong with one, only those hear who need it.
    pub defaults: Vec<(usize, Result<Expr>)>,
    /// What reading its rows takes.
    pub binding: Option<Rc<TableBinding>>,
    /// What foreign keys ask of its rows.
    pub keys: Keys,
    /// It is a virtual table.
    pub virtual_table: Option<Rc<Connected>>,
    /// The statement calls functions of the program, which may change the table themselves: a row is sought and read again
    /// once its new values are there.
    pub calls_out: bool,
}

impl Target {
    /// Whether its rows are in trees of a database: it is no view and no virtual table.
    pub fn is_stored(&self) -> bool {
        !self.table.is_view() && self.virtual_table.is_none()
    }

    /// The default of a column that has one.
    pub fn default_of(&self, column: usize) -> Option<&Result<Expr>> {
        self.defaults.binary_search_by_key(&column, |d| d.0).ok().map(|k| &self.defaults[k].1)
    }
}

/// An index of a [`Target`].
#[derive(Clone)]
pub struct TargetIndex {
    /// The index.
    pub index: Rc<Index>,
    /// Its key description.
    pub key: Rc<KeyInfo>,
    /// The fields that are expressions, with these bound.
    pub exprs: Vec<(usize, Expr)>,
    /// Bound condition of a partial index.
    pub filter: Option<Expr>,
    /// The index is the table itself (WITHOUT ROWID).
    pub is_table: bool,
}

impl TargetIndex {
    /// The expression that a field is.
    pub fn expr(&self, field: usize) -> Option<&Expr> {
        self.exprs.iter().find(|e| e.0 == field).map(|e| &e.1)
    }
}

/// Where inserted rows come from.
#[derive(Clone, Debug)]
pub enum Rows {
    /// One row of expressions.
    Row(Vec<Expr>),
    /// A query.
    Select(Box<Select>),
    /// One row of defaults.
    Defaults,
}

/// A bound INSERT.
#[derive(Clone)]
pub struct Insert {
    /// The table.
    pub target: Target,
    /// For each column, its place in the source row.
    pub columns: Vec<Option<usize>>,
    /// The rowid's place in the source row.
    pub rowid: Option<usize>,
    /// The rows.
    pub rows: Rows,
    /// `OR ...`.
    pub or: Option<ast::Conflict>,
    /// `ON CONFLICT` clauses.
    pub upserts: Vec<Upsert>,
    /// `RETURNING`.
    pub returning: Vec<Expr>,
    /// What RETURNING yields.
    pub out: Vec<OutColumn>,
}

/// Which constraint an upsert clause is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UpsertTarget {
    /// Any.
    Any,
    /// The rowid.
    Rowid,
    /// An index, by its place in [`Target::indexes`].
    Index(usize),
}

/// A bound `ON CONFLICT` clause.
#[derive(Clone)]
pub struct Upsert {
    /// Which constraint.
    pub target: UpsertTarget,
    /// `DO UPDATE`: assignments and condition.
    pub action: Option<(Vec<Set>, Option<Expr>)>,
    /// The number by which expressions refer to the row that was to be inserted.
    pub excluded: TableId,
}

/// One assignment.
#[derive(Clone, Debug)]
pub struct Set {
    /// The column; [`ROWID`] for the rowid.
    pub column: i32,
    /// The new value.
    pub value: Expr,
}

/// A bound UPDATE.
#[derive(Clone)]
pub struct Update {
    /// The table.
    pub target: Target,
    /// The assignments; the last one to a column counts.
    pub sets: Vec<Set>,
    /// The rows: the table (first source) joined with FROM, filtered.
    pub rows: Core,
    /// `OR ...`.
    pub or: Option<ast::Conflict>,
    /// `RETURNING`.
    pub returning: Vec<Expr>,
    /// What RETURNING yields.
    pub out: Vec<OutColumn>,
}

/// A bound DELETE.
#[derive(Clone)]
pub struct Delete {
    /// The table.
    pub target: Target,
    /// The rows: the table, filtered.
    pub rows: Core,
    /// `RETURNING`.
    pub returning: Vec<Expr>,
    /// What RETURNING yields.
    pub out: Vec<OutColumn>,
}

/// The complaint about a change of a virtual table that can only be read.
pub(super) fn not_modifiable(name: &str) -> Error {
    Error::sql(format!("table {name} may not be modified"))
}

impl Binder<'_> {
    /// Binds an expression that a table carries (index, CHECK, generated column) to its row under number `id`.
    pub fn table_expr(&mut self, table: &Rc<Table>, id: TableId, e: &ast::Expr) -> Result<Expr> {
        let scopes = std::mem::take(&mut self.scopes);
        // The nested query in which the table stands does not depend on it.
        let frames = std::mem::take(&mut self.frames);
        let source = ScopeSource {
            id,
            db: None,
            name: table.name.clone(),
            columns: Columns::Table(table.clone()),
            hidden: Vec::new(),
        };
        self.scopes.push(Scope { sources: Few::one(source), ..Scope::default() });
        let temporary =
            |s: &iolite_catalog::Schema| s.table(&table.name).is_some_and(|t| Rc::ptr_eq(t, table));
        let stored = !self.env.catalog.schemas.get(1).is_some_and(|s| temporary(s));
        let stored = std::mem::replace(&mut self.stored, stored);
        let out = self.expr(e);
        self.stored = stored;
        (self.scopes, self.frames) = (scopes, frames);
        // What a table carries stands in another text.
        out.map_err(|e| if self.carried { e.without_offset() } else { e })
    }

    /// As [`Binder::table_expr`], where only some forms are allowed.
    pub fn restricted_expr(
        &mut self,
        table: &Rc<Table>,
        id: TableId,
        e: &ast::Expr,
        place: Restriction,
    ) -> Result<Expr> {
        let saved = std::mem::replace(&mut self.restriction, place);
        let out = self.table_expr(table, id, e);
        self.restriction = saved;
        out
    }

    /// A table with its expressions, ready to be written to.
    pub fn target(&mut self, db: usize, table: &Rc<Table>) -> Result<Target> {
        let id = self.new_table();
        self.databases |= 1 << db;
        // What a table carries stands in another text.
        let saved = (std::mem::take(&mut self.trigger), self.restriction, self.log.take());
        let carried = std::mem::replace(&mut self.carried, true);
        let out = self.asking_nobody(|b| b.target_inner(db, table, id));
        self.carried = carried;
        (self.trigger, self.restriction, self.log) = saved;
        out
    }

    fn target_inner(&mut self, db: usize, table: &Rc<Table>, id: TableId) -> Result<Target> {
        let mut indexes = Vec::with_capacity(table.indexes.borrow().len());
        let pk = table.primary_index();
        for index in table.each_index() {
            let key = self.index_key(table, &index)?;
            let mut exprs = Vec::new();
            for (n, c) in index.columns.iter().enumerate() {
                if let ColumnSource::Expr(e) = &c.source {
                    exprs.push((n, of_index(self.table_expr(table, id, e)?)));
                }
            }
            let filter = match &index.filter {
                Some(f) => Some(of_index(self.table_expr(table, id, f)?)),
                None => None,
            };
            let is_table = pk.as_ref().is_some_and(|p| Rc::ptr_eq(p, &index));
            indexes.push(TargetIndex { index, key, exprs, filter, is_table });
        }
        let mut checks = Vec::new();
        for c in &table.checks {
            checks.push((self.restricted_expr(table, id, &c.expr, Restriction::Check)?, c.label.clone()));
        }
        let generated = self.generated(table, id)?;
        let mut defaults = Vec::new();
        for (k, c) in table.columns.iter().enumerate() {
            if let Some(d) = &c.default {
                defaults.push((k, self.restricted_expr(table, id, &d.expr, Restriction::Default)));
            }
        }
        let binding = self.table_binding(table, id)?;
        Ok(Target {
            db,
            table: table.clone(),
            id,
            indexes,
            checks,
            generated,
            defaults,
            binding,
            keys: Keys::default(),
            virtual_table: None,
            calls_out: false,
        })
    }

    /// What reading the rows of a stored table under number `id` takes: mostly nothing.
    #[inline]
    pub(crate) fn table_binding(
        &mut self,
        table: &Rc<Table>,
        id: TableId,
    ) -> Result<Option<Rc<TableBinding>>> {
        let all_stored = table.storage.len() == table.columns.len();
        if table.absent_values().is_some() && table.has_rowid() && all_stored {
            return Ok(None);
        }
        self.bind_table(table, id, all_stored)
    }

    fn bind_table(
        &mut self,
        table: &Rc<Table>,
        id: TableId,
        all_stored: bool,
    ) -> Result<Option<Rc<TableBinding>>> {
        if table.absent_values().is_none() {
            self.settle_absent(table)?;
        }
        if table.has_rowid() && all_stored {
            return Ok(None);
        }
        let key = match table.primary_index() {
            Some(pk) => Some(self.index_key(table, &pk)?),
            None => None,
        };
        let mut computed = Vec::new();
        if !all_stored {
            // What a table carries stands in another text.
            let saved = (std::mem::take(&mut self.trigger), self.restriction, self.log.take());
            let carried = std::mem::replace(&mut self.carried, true);
            for (i, c) in table.columns.iter().enumerate().filter(|(_, c)| !c.is_stored()) {
                if let Some(g) = &c.generated {
                    computed.push((i, self.restricted_expr(table, id, &g.expr, Restriction::Generated)));
                }
            }
            self.carried = carried;
            (self.trigger, self.restriction, self.log) = saved;
            refuse_loops(table, &mut computed);
        }
        Ok(Some(Rc::new(TableBinding { key, computed })))
    }

    /// Works out what records that end before a column stand for: rows older than an ALTER TABLE ADD COLUMN. Only
    /// constants were defaults of rows that were there before; others need not even be known.
    #[cold]
    fn settle_absent(&mut self, table: &Rc<Table>) -> Result<()> {
        let mut values = Vec::new();
        for (i, c) in table.columns.iter().enumerate() {
            let Some(d) = &c.default else { continue };
            let bound = Binder::new(self.env, "").restricted_expr(table, 0, &d.expr, Restriction::Default);
            let Some(mut v) = bound.ok().and_then(|e| constant_value(&e)) else { continue };
            c.affinity.apply(&mut v)?;
            if !v.is_null() {
                values.resize(i + 1, None);
                values[i] = Some(Rc::new(v));
            }
        }
        table.set_absent_values(values);
        Ok(())
    }

    /// The generated columns of a table, those that others read first.
    pub fn generated(&mut self, table: &Rc<Table>, id: TableId) -> Result<Vec<(usize, Expr)>> {
        if !table.has_generated() {
            return Ok(Vec::new());
        }
        let mut left: Vec<(usize, Expr)> = Vec::new();
        for (i, c) in table.columns.iter().enumerate() {
            if let Some(g) = &c.generated {
                let e = self.restricted_expr(table, id, &g.expr, Restriction::Generated)?;
                let e = Expr::Collate(Box::new(e), self.column_collation(table, i)?);
                left.push((i, e));
            }
        }
        let out = take_ordered(&mut left);
        if left.is_empty() {
            return Ok(out);
        }
        // Each column is looked at; the last complaint is the one that is told.
        let mut found = left[0].0;
        left.iter().for_each(|(i, _)| loop_of(*i, &left, &mut Vec::new(), &mut found));
        Err(on_loop(table, found))
    }

    /// Finds the table of a statement that writes; none: it is the table of a module's own name.
    fn written_table(&mut self, q: &ast::QualifiedName) -> Option<(usize, Rc<Table>)> {
        let schema = q.schema.as_ref().map(|s| &*s.text);
        let (db, table) = self.find_table(schema, &q.name.text)?;
        self.databases |= 1 << db;
        self.note_name(&q.name, &table, None);
        Some((db, table))
    }

    fn target_scope(&mut self, t: &Target, alias: Option<&ast::Name>) {
        let name: Rc<str> = alias.map_or_else(|| t.table.name.clone(), |a| (&*a.text).into());
        let columns = Columns::Table(t.table.clone());
        self.scopes.push(Scope {
            sources: Few::one(ScopeSource { id: t.id, db: Some(t.db), name, columns, hidden: Vec::new() }),
            ..Scope::default()
        });
    }

    /// What rows of a trigger on the table or view look like: for a view, a stand-in table with its columns.
    pub fn trigger_rows(&mut self, db: usize, table: &Rc<Table>) -> Result<Rc<Table>> {
        let TableKind::View { names, select } = &table.kind else { return Ok(table.clone()) };
        let (query, columns) = self.asking_nobody(|b| b.view(db, table, names, select))?;
        Ok(Rc::new(view_stand_in(table, &query, &columns)))
    }

    /// The table or view to write to, as it was found; a view becomes a target whose rows a query gives. Answers the view's query.
    fn open_target(
        &mut self,
        q: &ast::QualifiedName,
        found: Option<(usize, Rc<Table>)>,
        event: Event,
        sets: &[ast::Assignment],
    ) -> Result<(Target, Option<FromQuery>)> {
        let Some((db, table)) = found else {
            return match self.env.connector.eponymous(&q.name.text)? {
                Some(c) => Ok((self.virtual_target(0, c)?, None)),
                None => Err(self.no_such_table(q)),
            };
        };
        match &table.kind {
            TableKind::View { names, select } => {
                let fits = |e: &ast::TriggerEvent| match e {
                    ast::TriggerEvent::Insert => event == Event::Insert,
                    ast::TriggerEvent::Delete => event == Event::Delete,
                    ast::TriggerEvent::Update(of) => {
                        let set = |n: &ast::Name| {
                            let mut names = sets.iter().flat_map(|a| &a.columns);
                            names.any(|c| c.text.eq_ignore_ascii_case(&n.text))
                        };
                        event == Event::Update && (of.is_empty() || of.iter().any(set))
                    }
                };
                let mut triggers = self.env.catalog.triggers_of(db, &table).into_iter();
                // ALTER TABLE does not mind.
                if self.log.is_none() && !triggers.any(|(_, t)| fits(&t.event)) {
                    // What is wrong in the view itself is said first.
                    self.asking_nobody(|b| b.view(db, &table, names, select))?;
                    return Err(Error::sql(format!("cannot modify {} because it is a view", table.name)));
                }
                let (query, columns) = match event {
                    // Its rows are not read.
                    Event::Insert => self.asking_nobody(|b| b.view(db, &table, names, select))?,
                    _ => self.view(db, &table, names, select)?,
                };
                // A stand-in table with the view's columns, so that names and triggers find them.
                let stand_in = view_stand_in(&table, &query, &columns);
                let id = self.new_table();
                let target = Target {
                    db,
                    table: Rc::new(stand_in),
                    id,
                    indexes: Vec::new(),
                    checks: Vec::new(),
                    generated: Vec::new(),
                    defaults: Vec::new(),
                    binding: None,
                    keys: Keys::default(),
                    virtual_table: None,
                    calls_out: false,
                };
                Ok((target, Some(query)))
            }
            TableKind::Virtual { .. } => {
                let c = self.env.connector.connect(db, &table)?;
                Ok((self.virtual_target(db, c)?, None))
            }
            _ => {
                let mut t = self.target(db, &table)?;
                let sets_one_of = |columns: &[usize]| {
                    sets.iter().flat_map(|a| &a.columns).any(|n| {
                        let column =
                            table.column(&n.text).or(table.rowid_alias.filter(|_| is_rowid(&n.text)));
                        column.is_some_and(|c| columns.contains(&c))
                    })
                };
                self.foreign_keys(&mut t, &|role, columns| match event {
                    Event::Insert => role == KeyRole::Child,
                    Event::Update => sets_one_of(columns),
                    Event::Delete => true,
                });
                Ok((t, None))
            }
        }
    }

    /// Binds INSERT and REPLACE.
    pub fn insert(&mut self, s: &ast::Insert) -> Result<Insert> {
        let pushed = self.push_with(s.with.as_ref())?;
        let out = self.insert_inner(s);
        self.pop_with(pushed);
        out
    }

    /// A query without rows, as wide as these.
    fn no_rows(&mut self, rows: Rows) -> Rows {
        let mut q = match rows {
            Rows::Select(q) => *q,
            Rows::Row(r) => {
                let mut q = Select::with_one_arm();
                q.columns = r.iter().map(|e| self.out_column(e, "".into())).collect();
                q.cores[0].result = r.into();
                q
            }
            Rows::Defaults => return Rows::Defaults,
        };
        q.limit = Some(Expr::int(0));
        Rows::Select(Box::new(q))
    }

    fn insert_inner(&mut self, s: &ast::Insert) -> Result<Insert> {
        let found = self.written_table(&s.table);
        let mut left_out = match &found {
            Some((db, t)) if self.asks() => !self.ask(Action::Insert, Some(&t.name), None, Some(*db))?,
            _ => false,
        };
        let mut target = self.open_target(&s.table, found, Event::Insert, &[])?.0;
        let t = target.table.clone();
        // The names come first: what is wrong with them is told before what is wrong with the rows.
        let mut columns = vec![None; t.columns.len()];
        let mut rowid = None;
        for (k, n) in s.columns.iter().enumerate() {
            match t.column(&n.text) {
                Some(i) => {
                    if t.columns[i].generated.is_some() && self.log.is_none() {
                        return Err(Error::sql(format!(
                            "cannot INSERT into generated column \"{}\"",
                            n.text
                        )));
                    }
                    self.note_name(n, &t, Some(i));
                    // The first mention of a column counts.
                    columns[i].get_or_insert(k);
                }
                None if is_rowid(&n.text) && t.has_rowid() => rowid = Some(k),
                // ALTER TABLE does not mind.
                None if self.log.is_some() => {}
                None => {
                    return Err(Error::sql(format!(
                        "table {} has no column named {}",
                        as_written(&s.table),
                        n.text
                    )));
                }
            }
        }
        let mut rows = match &s.source {
            ast::InsertSource::DefaultValues => Rows::Defaults,
            ast::InsertSource::Select(q) if let Some(row) = only_row(q) => {
                let ((row, nothing), _) = self.nested(|b| b.only_row(row))?;
                left_out |= nothing;
                Rows::Row(row)
            }
            ast::InsertSource::Select(q) => {
                let (mut select, _) = self.nested(|b| b.select(q))?;
                let single = matches!(&select.cores[..], [c] if c.values.len() == 1);
                if single && select.limit.is_none() && select.order_by.is_empty() {
                    Rows::Row(std::mem::take(&mut select.cores[0].values[0]))
                } else {
                    Rows::Select(Box::new(select))
                }
            }
        };
        if left_out {
            rows = self.no_rows(rows);
        }
        let supplied = match &rows {
            Rows::Row(r) => r.len(),
            Rows::Select(q) => q.columns.len(),
            Rows::Defaults => 0,
        };
        if s.columns.is_empty() {
            if !matches!(rows, Rows::Defaults) {
                let open: Vec<usize> = (0..t.columns.len())
                    .filter(|&i| t.columns[i].generated.is_none() && !t.columns[i].hidden)
                    .collect();
                // ALTER TABLE does not mind: the table may have got columns since the trigger was made.
                if open.len() != supplied && self.log.is_none() {
                    return Err(Error::sql(format!(
                        "table {} has {} columns but {supplied} values were supplied",
                        as_written(&s.table),
                        open.len()
                    )));
                }
                for (k, i) in open.into_iter().enumerate() {
                    columns[i] = Some(k);
                }
            }
        } else {
            if matches!(rows, Rows::Defaults) && !s.columns.is_empty() {
                return Err(Error::sql(format!("0 values for {} columns", s.columns.len())).at(s
                    .table
                    .name
                    .span
                    .start));
            }
            if matches!(rows, Rows::Defaults) {
                columns = vec![None; t.columns.len()];
                rowid = None;
            } else if s.columns.len() != supplied && self.log.is_none() {
                return Err(Error::sql(format!("{supplied} values for {} columns", s.columns.len())));
            }
        }
        if let Some(a) = t.rowid_alias {
            rowid = columns[a].or(rowid);
        }
        if target.virtual_table.is_some() && !s.upserts.is_empty() {
            return Err(Error::sql(format!("UPSERT not implemented for virtual table \"{}\"", t.name)));
        }
        if matches!(t.kind, TableKind::View { .. }) && !s.upserts.is_empty() {
            return Err(Error::sql("cannot UPSERT a view"));
        }
        let mut upserts = Vec::new();
        // What can conflict and no clause answers yet: stock never looks at what a clause without any would do.
        let mut open: Vec<UpsertTarget> = Vec::new();
        if !s.upserts.is_empty() {
            let unique = |k: &usize| target.indexes[*k].index.unique.is_some();
            open.extend((0..target.indexes.len()).filter(unique).map(UpsertTarget::Index));
            open.extend((rowid.is_some() && t.has_rowid()).then_some(UpsertTarget::Rowid));
        }
        for (k, u) in s.upserts.iter().enumerate() {
            let place = (s.upserts.len() > 1).then_some(k + 1);
            upserts.push(self.upsert(u, &target, place, s.alias.as_ref(), &mut open)?);
        }
        let (returning, out) = match s.returning.is_empty() {
            true => Default::default(),
            false => {
                self.target_scope(&target, s.alias.as_ref());
                let returning = self.returning_list(&s.returning, &target);
                self.scopes.pop();
                returning?
            }
        };
        target.calls_out = self.calls_out.get();
        Ok(Insert { target, columns, rowid, rows, or: s.or, upserts, returning, out })
    }

    fn upsert(
        &mut self,
        u: &ast::Upsert,
        target: &Target,
        place: Option<usize>,
        alias: Option<&ast::Name>,
        open: &mut Vec<UpsertTarget>,
    ) -> Result<Upsert> {
        let t = &target.table;
        let constraint =
            if u.target.is_empty() { UpsertTarget::Any } else { self.upsert_target(u, target, place)? };
        let before = open.len();
        open.retain(|o| constraint != UpsertTarget::Any && *o != constraint);
        let reached = open.len() < before || self.log.is_some();
        let excluded = self.new_table();
        self.excluded = Some(excluded);
        let action = match &u.action {
            None => None,
            Some(_) if !reached => None,
            Some(a) => {
                self.target_scope(target, alias);
                let columns = Columns::Table(t.clone());
                let source = ScopeSource {
                    id: excluded,
                    db: None,
                    name: "excluded".into(),
                    columns,
                    hidden: (0..t.columns.len()).collect(),
                };
                self.scopes.last_mut().expect("just pushed").sources.push(source);
                let bound = (|| -> Result<_> {
                    let sets = self.sets(&a.sets, target.db, t)?;
                    let filter = a.filter.as_ref().map(|f| self.expr(f)).transpose()?;
                    Ok((sets, filter))
                })();
                self.scopes.pop();
                Some(bound?)
            }
        };
        Ok(Upsert { target: constraint, action, excluded })
    }

    /// `place`: which clause it is, where there are several.
    fn upsert_target(
        &mut self,
        u: &ast::Upsert,
        target: &Target,
        place: Option<usize>,
    ) -> Result<UpsertTarget> {
        let t = &target.table;
        let mut terms = Vec::new();
        for term in &u.target {
            let e = self.table_expr(t, target.id, &term.expr)?;
            if let (Expr::Column(c), true) = (e.without_collate(), self.asks()) {
                self.ask_column(target.db, t, c.column)?;
            }
            terms.push(e);
        }
        let filter = match &u.target_filter {
            Some(f) => Some(self.table_expr(t, target.id, f)?),
            None => None,
        };
        if terms.len() == 1 && matches!(&terms[0], Expr::Column(c) if c.column == ROWID) && t.has_rowid() {
            return Ok(UpsertTarget::Rowid);
        }
        for (k, i) in target.indexes.iter().enumerate() {
            if i.index.unique.is_none() || i.index.key_len != terms.len() {
                continue;
            }
            let every = (0..i.index.key_len).all(|n| {
                let coll = &i.key.fields[n].coll;
                terms.iter().any(|e| {
                    let named = match e {
                        Expr::Collate(_, c) => c == coll,
                        _ => true,
                    };
                    named
                        && match (&i.index.columns[n].source, e.without_collate()) {
                            // The rowid's own name in an index is no match, as in SQLite.
                            (ColumnSource::Column(c), Expr::Column(col)) => col.column == *c as i32,
                            (ColumnSource::Expr(_), e) => {
                                i.expr(n).is_some_and(|x| x.without_collate().same(e))
                            }
                            _ => false,
                        }
                })
            });
            let fits = match (&i.filter, &filter) {
                (None, _) => true,
                (Some(a), Some(b)) => a.same(b),
                (Some(_), None) => false,
            };
            if every && fits {
                return Ok(UpsertTarget::Index(k));
            }
        }
        if self.log.is_some() {
            // ALTER TABLE does not mind.
            return Ok(UpsertTarget::Any);
        }
        let which = place.map_or_else(String::new, |n| super::select::nth(n) + " ");
        let wrong = "ON CONFLICT clause does not match any PRIMARY KEY or UNIQUE constraint";
        Err(Error::sql(which + wrong))
    }

    fn sets(&mut self, list: &[ast::Assignment], db: usize, t: &Rc<Table>) -> Result<Vec<Set>> {
        let mut out: Vec<Set> = Vec::new();
        for a in list {
            let value = self.any_expr(&a.value)?;
            let n = width(&value);
            // ALTER TABLE does not mind.
            if n != a.columns.len() && self.log.is_none() {
                if a.columns.len() == 1 {
                    return Err(Error::sql("row value misused"));
                }
                return Err(Error::sql(format!("{} columns assigned {n} values", a.columns.len())));
            }
            for (name, value) in
                a.columns.iter().zip(fields(value).into_iter().chain(std::iter::repeat_with(null)))
            {
                let column = match t.column(&name.text) {
                    Some(i) => {
                        if t.columns[i].generated.is_some() && self.log.is_none() {
                            return Err(Error::sql(format!(
                                "cannot UPDATE generated column \"{}\"",
                                name.text
                            )));
                        }
                        self.note_name(name, t, Some(i));
                        if t.rowid_alias == Some(i) { ROWID } else { i as i32 }
                    }
                    None if is_rowid(&name.text) && t.has_rowid() => ROWID,
                    // ALTER TABLE does not mind.
                    None if self.log.is_some() => continue,
                    None => {
                        return Err(Error::sql(format!("no such column: {}", name.text)));
                    }
                };
                if self.asks() {
                    let name = t.column(&name.text).map_or("ROWID", |i| &*t.columns[i].name);
                    if !self.ask(Action::Update, Some(&t.name), Some(name), Some(db))? {
                        continue;
                    }
                }
                out.retain(|s| s.column != column);
                out.push(Set { column, value });
            }
        }
        Ok(out)
    }

    /// Binds UPDATE.
    pub fn update(&mut self, s: &ast::Update) -> Result<Update> {
        let pushed = self.push_with(s.with.as_ref())?;
        let out = self.update_inner(s);
        self.pop_with(pushed);
        out
    }

    fn update_inner(&mut self, s: &ast::Update) -> Result<Update> {
        if !s.order_by.is_empty() || s.limit.is_some() {
            return Err(Error::sql("near \"LIMIT\": syntax error"));
        }
        let found = self.written_table(&s.table);
        let (mut target, view) = self.open_target(&s.table, found, Event::Update, &s.sets)?;
        known_index(&target.table, &s.indexed)?;
        let asks = self.asks();
        if asks {
            self.begin_change();
        }
        self.target_scope(&target, s.alias.as_ref());
        let bound = (|| -> Result<_> {
            let mut core = self.target_rows(&target, view, (&s.table, s.alias.as_ref()), &s.indexed);
            if let Some(f) = &s.from {
                if f.joins.iter().any(|j| matches!(j.op, ast::JoinOp::Right | ast::JoinOp::Full)) {
                    // What has no partner in there has none, whatever row is to be changed.
                    let kind = ast::TableKind::Join(Box::new(f.clone()));
                    let first = ast::Table { kind, alias: None };
                    let number = f.number;
                    self.from(&ast::From { first, joins: Vec::new(), number }, &mut core)?;
                    self.late_arguments(&mut core)?;
                } else {
                    self.from(f, &mut core)?;
                    self.late_arguments(&mut core)?;
                }
                let again = |x: &&Source| {
                    x.table().is_some_and(|(_, t)| Rc::ptr_eq(t, &target.table))
                        && x.name.eq_ignore_ascii_case(&core.sources[0].name)
                };
                if let Some(x) = core.sources[1..].iter().find(again) {
                    let name = &x.name;
                    return Err(Error::sql(format!(
                        "target object/alias may not appear in FROM clause: {name}"
                    )));
                }
            }
            let sets = self.sets(&s.sets, target.db, &target.table)?;
            if let Some(w) = &s.filter {
                self.conditions(w, None, &mut core.filter)?;
            }
            Ok((core, sets))
        })();
        self.scopes.pop();
        let (rows, sets) = bound?;
        if asks {
            if s.from.is_some() {
                self.ask(Action::Select, None, None, None)?;
            }
            self.end_change()?;
        }
        let (returning, out) = self.returning_of("UPDATE", &s.returning, &target)?;
        target.calls_out = self.calls_out.get();
        Ok(Update { target, sets, rows, or: s.or, returning, out })
    }

    /// The rows of the table or view that UPDATE or DELETE changes, before any condition.
    fn target_rows(
        &self,
        t: &Target,
        view: Option<FromQuery>,
        (table, alias): (&ast::QualifiedName, Option<&ast::Name>),
        indexed: &ast::Indexed,
    ) -> Core {
        let alias: Option<Rc<str>> = alias.map(|a| (&*a.text).into());
        let mut shown = alias.clone();
        if self.env.explained && alias.is_none() {
            shown = self.written(table, &t.table.name, view.is_none());
        }
        let own = Source {
            id: t.id,
            kind: match (view, &t.virtual_table) {
                (Some(q), _) => SourceKind::Subquery(Box::new(q)),
                (None, Some(c)) => {
                    SourceKind::Virtual { db: t.db, table: t.table.clone(), vtab: c.vtab.clone() }
                }
                (None, None) => SourceKind::Table { db: t.db, table: t.table.clone() },
            },
            name: alias.unwrap_or_else(|| t.table.name.clone()),
            shown,
            join: JoinKind::default(),
            indexed: indexed.clone(),
            exists: None,
            used: NumberSet::default(),
            rowid_used: t.table.has_rowid(),
            binding: t.binding.clone(),
        };
        Core { sources: Few::one(own), ..Core::default() }
    }

    fn returning_of(
        &mut self,
        verb: &str,
        list: &[ast::ResultColumn],
        target: &Target,
    ) -> Result<(Vec<Expr>, Vec<OutColumn>)> {
        if list.is_empty() {
            return Ok(Default::default());
        }
        if target.virtual_table.is_some() {
            return Err(Error::sql(format!("{verb} RETURNING is not available on virtual tables")));
        }
        // An alias is not known there.
        self.target_scope(target, None);
        let out = self.returning_list(list, target);
        self.scopes.pop();
        out
    }

    /// Binds DELETE.
    pub fn delete(&mut self, s: &ast::Delete) -> Result<Delete> {
        let pushed = self.push_with(s.with.as_ref())?;
        let out = self.delete_inner(s);
        self.pop_with(pushed);
        out
    }

    fn delete_inner(&mut self, s: &ast::Delete) -> Result<Delete> {
        if !s.order_by.is_empty() || s.limit.is_some() {
            return Err(Error::sql("near \"LIMIT\": syntax error"));
        }
        let found = self.written_table(&s.table);
        let (target, view) = self.open_target(&s.table, found, Event::Delete, &[])?;
        known_index(&target.table, &s.indexed)?;
        if self.asks() {
            // One that is to be left out is done all the same, row by row.
            self.ask(Action::Delete, Some(&target.table.name), None, Some(target.db))?;
            self.begin_change();
        }
        self.target_scope(&target, s.alias.as_ref());
        let bound = (|| -> Result<_> {
            let mut core = self.target_rows(&target, view, (&s.table, s.alias.as_ref()), &s.indexed);
            if let Some(w) = &s.filter {
                self.conditions(w, None, &mut core.filter)?;
            }
            Ok(core)
        })();
        self.scopes.pop();
        let rows: Core = bound?;
        if self.asks() {
            self.end_change()?;
        }
        let (returning, out) = self.returning_of("DELETE", &s.returning, &target)?;
        Ok(Delete { target, rows, returning, out })
    }
}

/// A table with a view's columns.
fn view_stand_in(view: &Table, query: &FromQuery, columns: &Columns) -> Table {
    let sql: Option<&str> = view.sql.as_deref();
    let list: Vec<(Rc<str>, iolite_value::Affinity)> =
        query.select.columns.iter().enumerate().map(|(i, c)| (columns.name(i), c.affinity)).collect();
    iolite_catalog::stand_in(&view.name, sql, &list, view)
}

/// A constant NULL.
pub fn null() -> Expr {
    Expr::Const(Value::Null)
}

/// The value of a default that needs no code: literals and signed numbers.
pub(crate) fn constant_value(e: &Expr) -> Option<Value> {
    match e {
        Expr::Const(v) => Some(v.clone()),
        Expr::Neg(a) => constant_value(a).map(|v| iolite_value::arith::negate(&v)),
        Expr::Plus(a) | Expr::Collate(a, _) => constant_value(a),
        Expr::Cast(a, aff) => aff.cast(&constant_value(a)?).ok(),
        _ => None,
    }
}

/// An expression of an index: it must give the same result for ever.
fn of_index(mut e: Expr) -> Expr {
    fn mark(e: &mut Expr) {
        if let Expr::Call(c) = e {
            c.pure = Restriction::IndexExpr.pure();
        }
        e.children_mut(&mut |x| mark(x));
    }
    mark(&mut e);
    e
}

/// INDEXED BY names an index of the table.
fn known_index(table: &Table, indexed: &ast::Indexed) -> Result<()> {
    match indexed {
        ast::Indexed::By(i)
            if !table.indexes.borrow().iter().any(|x| x.name.eq_ignore_ascii_case(&i.text)) =>
        {
            Err(Error::sql(format!("no such index: {}", i.text)).at(i.span.start))
        }
        _ => Ok(()),
    }
}

/// Takes generated columns out of a list, those that others read first, until only such are left as read themselves in the end, or
/// others that do.
fn take_ordered(left: &mut Vec<(usize, Expr)>) -> Vec<(usize, Expr)> {
    let mut out = Vec::new();
    loop {
        let waiting: Vec<i32> = left.iter().map(|l| l.0 as i32).collect();
        let ready = left
            .iter()
            .position(|(_, e)| !e.any(&mut |x| matches!(x, Expr::Column(c) if waiting.contains(&c.column))));
        match ready {
            Some(k) => out.push(left.remove(k)),
            None => return out,
        }
    }
}

/// Puts an error in the place of columns that are computed from themselves: a file may hold such a definition.
fn refuse_loops(table: &Table, computed: &mut [(usize, Result<Expr>)]) {
    let mut left: Vec<(usize, Expr)> =
        computed.iter().filter_map(|(i, e)| e.as_ref().ok().map(|e| (*i, e.clone()))).collect();
    take_ordered(&mut left);
    for (i, e) in computed.iter_mut().filter(|(i, _)| left.iter().any(|l| l.0 == *i)) {
        let mut found = *i;
        loop_of(*i, &left, &mut Vec::new(), &mut found);
        *e = Err(on_loop(table, found));
    }
}

fn on_loop(table: &Table, column: usize) -> Error {
    Error::sql(format!("generated column loop on \"{}\"", table.columns[column].name))
}

/// Follows what a generated column reads; notes a column that is met while it is followed.
fn loop_of(i: usize, columns: &[(usize, Expr)], busy: &mut Vec<usize>, found: &mut usize) {
    if busy.contains(&i) {
        *found = i;
        return;
    }
    let Some((_, e)) = columns.iter().find(|c| c.0 == i) else { return };
    let mut read = Vec::new();
    e.any(&mut |x| {
        if let Expr::Column(c) = x {
            read.push(c.column);
        }
        false
    });
    busy.push(i);
    for r in read {
        if let Ok(r) = usize::try_from(r) {
            loop_of(r, columns, busy, found);
        }
    }
    busy.pop();
}

/// The only row of a query that is a VALUES clause and nothing else.
fn only_row(q: &ast::Select) -> Option<&[ast::Expr]> {
    let plain = q.with.is_none() && q.compounds.is_empty() && q.order_by.is_empty() && q.limit.is_none();
    match &q.first {
        ast::SelectCore::Values(rows) if plain && rows.len() == 1 => Some(&rows[0]),
        _ => None,
    }
}
