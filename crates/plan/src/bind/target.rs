//! Tables that are written to: what INSERT, UPDATE and DELETE share, with the expressions that tables carry.
//!
//! An expression of an index, a CHECK, a generated column or a default stands in another text than the statement: it is bound
//! to its table alone, without the statement's scopes, and errors in it have no offset.

use super::names::is_rowid;
use super::*;
use iolite_catalog::{ColumnSource, Index, TableKind};
use iolite_value::Affinity;

/// What a statement does to its table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    Insert,
    Update,
    Delete,
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
    /// A table that has no trees of its own: a view's stand-in, or a virtual table.
    pub(super) fn without_trees(db: usize, table: Rc<Table>, id: TableId) -> Target {
        Target {
            db,
            table,
            id,
            indexes: Vec::new(),
            checks: Vec::new(),
            generated: Vec::new(),
            defaults: Vec::new(),
            binding: None,
            keys: Keys::default(),
            virtual_table: None,
            calls_out: false,
        }
    }

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
        // What is wrong with the statement is not told of here, where it may be kept with the column.
        let complaint = self.complaint.take();
        let out = self.expr(e);
        self.complaint = complaint.or(self.complaint.take());
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
            let Some(mut v) = bound.ok().and_then(|e| e.constant_value()) else { continue };
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
    pub(super) fn written_table(&mut self, q: &ast::QualifiedName) -> Option<(usize, Rc<Table>)> {
        let schema = q.schema.as_ref().map(|s| &*s.text);
        let (db, table) = self.find_table(schema, &q.name.text)?;
        self.databases |= 1 << db;
        self.note_name(&q.name, &table, None);
        Some((db, table))
    }

    pub(super) fn target_scope(&mut self, t: &Target, alias: Option<&ast::Name>) {
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
    pub(super) fn open_target(
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
                    _ => {
                        self.check_reads(db, &table)?;
                        self.view(db, &table, names, select)?
                    }
                };
                // A stand-in table with the view's columns, so that names and triggers find them.
                let stand_in = view_stand_in(&table, &query, &columns);
                let id = self.new_table();
                Ok((Target::without_trees(db, Rc::new(stand_in), id), Some(query)))
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
}

/// The type that a view's column has, by the one that its expression declares and by its affinity.
pub fn view_type(declared: Option<&Rc<str>>, a: Affinity) -> Rc<str> {
    if let Some(d) = declared.filter(|d| Affinity::of_type(d) == a) {
        return d.clone();
    }
    match a {
        Affinity::None => "",
        Affinity::Blob => "BLOB",
        Affinity::Text => "TEXT",
        Affinity::Numeric | Affinity::Flexnum => "NUM",
        Affinity::Integer => "INT",
        Affinity::Real => "REAL",
    }
    .into()
}

/// A table with a view's columns.
fn view_stand_in(view: &Table, query: &FromQuery, columns: &Columns) -> Table {
    let sql: Option<&str> = view.sql.as_deref();
    let columns = query.select.columns.iter().enumerate().map(|(i, c)| {
        let decltype = match query.misfit.is_some() {
            true => "".into(),
            false => view_type(c.meta.decltype.as_ref(), c.affinity),
        };
        (columns.name(i), c.affinity, decltype)
    });
    let list: Vec<_> = columns.collect();
    let mut table = iolite_catalog::stand_in(&view.name, sql, &list, view);
    for (column, c) in table.columns.iter_mut().zip(&query.select.columns) {
        column.collation = (!c.collation.is_binary()).then(|| c.collation.name().into());
    }
    table
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
