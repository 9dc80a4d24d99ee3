//! Binding FROM clauses: tables, views, common table expressions, joins.

use super::expr::width;
use super::select::column_affinity;
use super::*;
use iolite_catalog::TableKind;
use iolite_sql::ast::{JoinConstraint, JoinOp, Name};
use iolite_value::Affinity;
use std::cell::Cell;

/// The number of the database of temporary tables.
const TEMP: usize = 1;
/// How often a statement may refer to a view.
const MOST_USES: u32 = 65535;

impl Binder<'_> {
    /// Binds a FROM clause into the innermost scope; its tables and conditions go to `out`.
    pub(crate) fn from(&mut self, f: &ast::From, out: &mut Core) -> Result<()> {
        let clauses = self.tables_of(f, out)?;
        self.on_clauses(clauses, out)
    }

    /// The tables of a FROM clause; answers the expressions of its ON clauses, with the tables that they belong to.
    pub(crate) fn tables_of<'f>(
        &mut self,
        f: &'f ast::From,
        out: &mut Core,
    ) -> Result<Vec<(TableId, &'f ast::Expr)>> {
        let mut clauses: Vec<(TableId, &ast::Expr)> = Vec::new();
        self.join_into(f, false, out, &mut clauses)?;
        if out.sources.len() > 64 {
            return Err(Error::sql("at most 64 tables in a join"));
        }
        Ok(clauses)
    }

    /// Binds ON clauses, behind the tables of their FROM clause.
    pub(crate) fn on_clauses(&mut self, clauses: Vec<(TableId, &ast::Expr)>, out: &mut Core) -> Result<()> {
        self.query_failed = false;
        let done = self.bind_on_clauses(clauses, out);
        // SQLite tells no place there, but for what stands in a query of its own.
        done.map_err(|e| if self.query_failed { e } else { e.without_offset().nowhere() })
    }

    fn bind_on_clauses(&mut self, clauses: Vec<(TableId, &ast::Expr)>, out: &mut Core) -> Result<()> {
        let outer = out.sources.iter().any(|s| s.join.left || s.join.right);
        for (id, e) in clauses {
            if !outer {
                self.conditions(e, Some(id), &mut out.filter)?;
                continue;
            }
            let bound = self.expr(e)?;
            // Of an inner join, what names tables to its right belongs to WHERE.
            let beyond = reaches_beyond(&bound, id, &out.sources)?;
            push_filter(&mut out.filter, bound, Some(id).filter(|_| !beyond));
        }
        Ok(())
    }

    /// `strict`: a RIGHT or FULL JOIN follows in what this is the first part of.
    fn join_into<'f>(
        &mut self,
        f: &'f ast::From,
        strict: bool,
        out: &mut Core,
        clauses: &mut Vec<(TableId, &'f ast::Expr)>,
    ) -> Result<()> {
        // USING looks for its columns in this join, not in one around its parentheses.
        let first = self.scope().sources.len();
        // Without RIGHT or FULL JOIN, USING means the leftmost table that has the column; with one, there may be no other.
        let strict = strict || goes_right(f);
        self.joined_table(&f.first, JoinKind::default(), Some(strict), out, clauses)?;
        for j in &f.joins {
            let kind = JoinKind {
                left: matches!(j.op, JoinOp::Left | JoinOp::Full),
                right: matches!(j.op, JoinOp::Right | JoinOp::Full),
                cross: j.op == JoinOp::Cross,
            };
            let before = self.scope().sources.len();
            self.joined_table(&j.table, kind, None, out, clauses)?;
            let id = self.scope().sources.last().expect("just added").id;
            if j.natural && !matches!(j.constraint, JoinConstraint::None) {
                return Err(Error::sql("a NATURAL join may not have an ON or USING clause"));
            }
            match &j.constraint {
                JoinConstraint::On(e) => clauses.push((id, e)),
                JoinConstraint::Using(names) => {
                    for n in names {
                        self.using(n, first..before, kind, strict, out)?;
                    }
                }
                JoinConstraint::None if j.natural => {
                    let right = self.scope().sources.last().expect("just added").columns.clone();
                    for i in 0..right.len() {
                        let name = right.name(i);
                        let left = &self.scope().sources[first..before];
                        let shared = !right.is_hidden(i)
                            && left
                                .iter()
                                .any(|s| s.columns.find(&name).is_some_and(|c| !s.columns.is_hidden(c)));
                        if shared {
                            let n = Name {
                                text: (&*name).into(),
                                quote: ast::Quote::Bracket,
                                span: Default::default(),
                            };
                            self.using(&n, first..before, kind, strict, out)?;
                        }
                    }
                }
                JoinConstraint::None => {}
            }
        }
        Ok(())
    }

    pub(super) fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("a query is being bound")
    }

    fn using(
        &mut self,
        n: &Name,
        left: std::ops::Range<usize>,
        kind: JoinKind,
        strict: bool,
        out: &mut Core,
    ) -> Result<()> {
        let before = left.end;
        let missing =
            || Error::sql(format!("cannot join using column {} - column not present in both tables", n.text));
        let depth = self.scopes.len() - 1;
        let scope = &self.scopes[depth];
        let right = &scope.sources[before];
        let (rid, rcols) = (right.id, right.columns.clone());
        let ri = rcols.find(&n.text).ok_or_else(missing)?;
        let right_expr = self.column_of(rid, &rcols, ri)?;
        // Joins in parentheses that merge columns are queries of their own.
        let merged = scope.merged.iter().find(|(m, _)| left.start == 0 && m.eq_ignore_ascii_case(&n.text));
        let merged = merged.map(|(_, e)| e.clone());
        let left_expr = match merged {
            Some(e) => e,
            None => {
                let mut found = None;
                for s in &scope.sources[left] {
                    if let Some(i) = s.columns.find(&n.text)
                        && !s.hidden.contains(&i)
                    {
                        if found.is_some() {
                            return Err(Error::sql(format!("ambiguous reference to {} in USING()", n.text)));
                        }
                        found = Some(self.column_of(s.id, &s.columns, i)?);
                        if !strict {
                            break;
                        }
                    }
                }
                found.ok_or_else(missing)?
            }
        };
        let c = self.make_compare(CmpOp::Eq, false, left_expr.clone(), right_expr.clone());
        // A NATURAL join names nothing.
        if self.log.is_some() && n.span != Default::default() {
            let tables: Vec<Rc<Table>> = self.scopes[depth].sources[..=before]
                .iter()
                .filter_map(|s| match &s.columns {
                    Columns::Table(t) => Some(t.clone()),
                    Columns::Query(_) => None,
                })
                .collect();
            for t in tables {
                if let Some(i) = t.column(&n.text) {
                    self.note_name(n, &t, Some(i));
                }
            }
        }
        out.filter.push(Filter { expr: Expr::Compare(Box::new(c)), on: Some(rid) });
        if kind.right {
            // Of a RIGHT JOIN every row has the right side.
            let shown = if kind.left {
                Expr::Merged(Box::new(Expr::Case {
                    base: None,
                    arms: vec![(Expr::NotNull(Box::new(left_expr.clone())), left_expr)],
                    otherwise: Some(Box::new(right_expr)),
                }))
            } else {
                right_expr
            };
            let scope = self.scope();
            scope.merged.retain(|(m, _)| !m.eq_ignore_ascii_case(&n.text));
            scope.merged.push(((&*n.text).into(), shown));
        }
        self.scope().sources[before].hidden.push(ri);
        Ok(())
    }

    fn joined_table<'f>(
        &mut self,
        t: &'f ast::Table,
        join: JoinKind,
        first: Option<bool>,
        out: &mut Core,
        clauses: &mut Vec<(TableId, &'f ast::Expr)>,
    ) -> Result<()> {
        let alias: Option<Rc<str>> = t.alias.as_ref().map(|a| Rc::from(&*a.text));
        match &t.kind {
            ast::TableKind::Join(inner) => {
                // The target of an UPDATE stands before what is joined to it.
                let dissolves = first.is_some() && (out.sources.is_empty() || !goes_right(inner));
                if alias.is_none() && (inner.joins.is_empty() || dissolves) {
                    let at = out.sources.len();
                    self.join_into(inner, first == Some(true), out, clauses)?;
                    if let Some(s) = out.sources.get_mut(at) {
                        s.join = join;
                    }
                    return Ok(());
                }
                let (query, columns) = self.join_as_query(inner)?;
                let name = alias.clone().unwrap_or_else(|| "".into());
                self.add_source(
                    SourceKind::Subquery(Box::new(query)),
                    name,
                    alias,
                    None,
                    columns,
                    join,
                    out,
                )?;
            }
            ast::TableKind::Subquery(s) => {
                let label = Label::Query(self.number(s.number));
                let (select, outer) = self.beside(|b| b.select(s))?;
                let columns = query_columns(&select, &[], false, self.binary());
                let q = FromQuery { outer, label, ..FromQuery::plain(select) };
                let name = alias.clone().unwrap_or_else(|| "".into());
                self.add_source(SourceKind::Subquery(Box::new(q)), name, alias, None, columns, join, out)?;
            }
            ast::TableKind::Named { name, indexed } => {
                let (mut kind, shown, db, columns) = self.named(name, None)?;
                let mut words = alias.clone();
                if self.env.explained {
                    match (&mut kind, &alias) {
                        (SourceKind::Subquery(q), Some(_)) => {
                            q.label = Label::Name((&*name.name.text).into())
                        }
                        (kind, None) => {
                            let stored =
                                matches!(kind, SourceKind::Table { .. } | SourceKind::Virtual { .. });
                            words = self.written(name, &shown, stored);
                        }
                        _ => {}
                    }
                }
                let view = (db.is_some() && matches!(columns, Columns::Query(_))).then(|| shown.clone());
                let label = alias.unwrap_or(shown);
                self.add_source(kind, label, words, db, columns, join, out)?;
                if let Some(v) = view {
                    self.note_view(&v);
                }
                if name.schema.is_some() {
                    self.note_full();
                }
                let last = out.sources.last_mut().expect("just added");
                last.indexed = indexed.clone();
                if let ast::Indexed::By(i) = indexed {
                    let known = last.table().is_some_and(|(_, table)| {
                        table.indexes.borrow().iter().any(|x| x.name.eq_ignore_ascii_case(&i.text))
                    });
                    if !known {
                        return Err(Error::sql(format!("no such index: {}", i.text)).nowhere());
                    }
                }
            }
            ast::TableKind::Function { name, args } => {
                let (kind, shown, db, columns) = self.named(name, Some(args))?;
                let label = alias.clone().unwrap_or(shown);
                let given = args.iter().map(|a| self.expr(a)).collect::<Result<Vec<_>>>();
                self.add_source(kind, label, alias, db, columns, join, out)?;
                let at = out.sources.len() - 1;
                match given {
                    Ok(given) => self.arguments(given, at, out)?,
                    // It may be a name that the result list gives.
                    Err(e) if e.message().starts_with("no such column") => {
                        self.scope().late_arguments.push((at, args.to_vec()));
                    }
                    Err(e) => return Err(e),
                }
            }
        }
        Ok(())
    }

    /// The database that names without a database belong to: that of the view or trigger whose text is being bound,
    /// unless it is a temporary one, which may name what it likes.
    pub(super) fn home(&self) -> Option<usize> {
        let db = match &self.trigger {
            Some(t) => t.db,
            None => self.views.last()?.0,
        };
        (db != TEMP).then_some(db)
    }

    /// Binds the query of a view of this database, as a text of its own.
    pub fn view_query(&mut self, db: usize, name: &str, select: &ast::Select) -> Result<()> {
        self.views.push((db, name.into()));
        let bound = self.select(select);
        self.views.pop();
        bound.map(drop)
    }

    /// The name of a table as it was written, where that is another than its own; `stored`: with its database.
    #[cold]
    pub(crate) fn written(&self, q: &ast::QualifiedName, own: &str, stored: bool) -> Option<Rc<str>> {
        let name = &*q.name.text;
        match &q.schema {
            Some(db) if stored && self.views.is_empty() => Some(format!("{}.{name}", db.text).into()),
            _ => (*name != *own).then(|| name.into()),
        }
    }

    /// The table with this name.
    pub(crate) fn find_table(&self, schema: Option<&str>, name: &str) -> Option<(usize, Rc<Table>)> {
        match (schema, self.home()) {
            (None, Some(db)) => self.env.catalog.schemas[db].table(name).map(|t| (db, t.clone())),
            _ => self.env.catalog.table(schema, name),
        }
    }

    /// The complaint about an unknown table.
    pub(crate) fn no_such_table(&self, q: &ast::QualifiedName) -> Error {
        let name = match (&q.schema, self.home()) {
            (Some(s), _) => format!("{}.{}", s.text, q.name.text),
            (None, Some(db)) => format!("{}.{}", self.env.catalog.schemas[db].name, q.name.text),
            (None, None) => q.name.text.to_string(),
        };
        Error::sql(format!("no such table: {name}")).nowhere()
    }

    #[allow(clippy::too_many_arguments)]
    #[inline]
    fn add_source(
        &mut self,
        kind: SourceKind,
        name: Rc<str>,
        shown: Option<Rc<str>>,
        db: Option<usize>,
        columns: Columns,
        join: JoinKind,
        out: &mut Core,
    ) -> Result<()> {
        let id = self.new_table();
        let binding = match &kind {
            SourceKind::Table { table, .. } => self.table_binding(table, id)?,
            SourceKind::Virtual { vtab, .. } => {
                self.virtual_tables.push((id, vtab.clone()));
                None
            }
            _ => None,
        };
        out.sources.push(Source {
            id,
            kind,
            name: name.clone(),
            shown,
            join,
            indexed: ast::Indexed::Any,
            exists: None,
            used: NumberSet::default(),
            rowid_used: false,
            held: Vec::new(),
            binding,
        });
        let name = if self.env.full_column_names { shown_name(out, name) } else { name };
        self.scope().sources.push(ScopeSource { id, db, name, columns, hidden: Vec::new() });
        Ok(())
    }

    /// Binds a query in FROM: it sees the queries around the one that it is a table of, not the tables beside it.
    fn beside<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<(T, Vec<TableId>)> {
        let own = self.scopes.pop().expect("a query is being bound");
        let out = self.nested(f);
        self.scopes.push(own);
        out
    }

    /// A parenthesised join that cannot be dissolved: a query that selects everything.
    fn join_as_query(&mut self, inner: &ast::From) -> Result<(FromQuery, Columns)> {
        let label = Label::Join(self.number(inner.number));
        let (built, outer) = self.beside(|b| {
            b.scopes.push(Scope::default());
            let out = (|| -> Result<_> {
                let mut core = Core::default();
                b.from(inner, &mut core)?;
                let columns = b.columns_inside(&mut core)?;
                Ok((core, columns))
            })();
            b.scopes.pop();
            out
        })?;
        let (core, columns) = built;
        let select = Select {
            cores: Few::one(core),
            columns: columns.iter().map(|c: &QueryColumn| c.out.clone()).collect(),
            ..Select::default()
        };
        let q = FromQuery { outer, label, ..FromQuery::plain(select) };
        Ok((q, Columns::Query(columns.into())))
    }

    /// The columns of a join in parentheses, whose tables are the scope: before those of a table stands what USING merges of
    /// the next, behind them its rowid. Their values go to `core`.
    fn columns_inside(&mut self, core: &mut Core) -> Result<Vec<QueryColumn>> {
        let mut columns: Vec<QueryColumn> = Vec::new();
        let mut add = |b: &Self, e: Expr, inside: Inside, shadowed: bool| {
            let base = if inside.rowid { "_ROWID_".into() } else { inside.column.clone() };
            let name = unlike(base, &columns);
            let out = b.out_column(&e, name.clone());
            columns.push(QueryColumn { name, inside: Some(inside), out, shadowed });
            core.result.push(e);
        };
        let merged_names = |s: Option<&ScopeSource>| -> Vec<Rc<str>> {
            s.map_or_else(Vec::new, |s| s.hidden.iter().map(|h| s.columns.bare_name(*h)).collect())
        };
        let mut seen = Vec::new();
        for s in 0..self.scope().sources.len() {
            let merged = merged_names(self.scope().sources.get(s + 1));
            for text in &merged {
                let bare =
                    Name { text: (&**text).into(), quote: ast::Quote::Bracket, span: Default::default() };
                // Nobody wrote the name.
                let log = self.log.take();
                let e = self.bind_column(None, None, &bare).map_err(|e| e.without_offset().nowhere());
                self.log = log;
                let again = seen.iter().any(|x: &Rc<str>| x.eq_ignore_ascii_case(text));
                seen.push(text.clone());
                add(
                    self,
                    e?,
                    Inside { table: None, column: text.clone(), rowid: false, hidden: false },
                    again,
                );
            }
            let x = &self.scope().sources[s];
            let (id, cols, hidden, table) = (x.id, x.columns.clone(), x.hidden.clone(), x.name.clone());
            for i in 0..cols.len() {
                let mut inside = Inside {
                    table: Some(table.clone()),
                    column: cols.bare_name(i),
                    rowid: false,
                    hidden: matches!(cols, Columns::Table(_)) && cols.is_hidden(i),
                };
                let mut shadowed = cols.is_hidden(i)
                    || hidden.contains(&i)
                    || merged.iter().any(|m| m.eq_ignore_ascii_case(&inside.column));
                if let Columns::Query(q) = &cols
                    && let Some(deeper) = &q[i].inside
                {
                    if deeper.rowid {
                        continue;
                    }
                    inside = deeper.clone();
                    shadowed |= q[i].shadowed;
                }
                self.is_the_only(s, i).map_err(Error::nowhere)?;
                add(self, self.column_of(id, &cols, i)?, inside, shadowed);
            }
            if matches!(&cols, Columns::Table(t) if t.has_rowid()) {
                add(
                    self,
                    self.rowid_of(id),
                    Inside { table: Some(table), column: "rowid".into(), rowid: true, hidden: true },
                    true,
                );
            }
        }
        Ok(columns)
    }

    /// A name in FROM: a common table expression, a table, a view, a table-valued function.
    #[allow(clippy::type_complexity)]
    fn named(
        &mut self,
        q: &ast::QualifiedName,
        args: Option<&[ast::Expr]>,
    ) -> Result<(SourceKind, Rc<str>, Option<usize>, Columns)> {
        let name = &q.name.text;
        if q.schema.is_none()
            && args.is_none()
            && let Some(at) = self.ctes.iter().rposition(|c| c.ast.name.text.eq_ignore_ascii_case(name))
        {
            let (kind, columns) = self.cte(at)?;
            return Ok((kind, (&**name).into(), None, columns));
        }
        let schema = q.schema.as_ref().map(|s| &*s.text);
        if let Some(s) = schema
            && self.env.catalog.database(s).is_none()
        {
            return Err(Error::sql(format!("no such table: {s}.{name}")).nowhere());
        }
        let Some((db, table)) = self.find_table(schema, name) else {
            if self.env.virtual_tables
                && let Some(c) = self.env.connector.eponymous(name)?
            {
                // Such a table counts as one of the main database.
                self.databases |= 1;
                return self.virtual_source(0, &c, args.unwrap_or(&[]));
            }
            return Err(self.no_such_table(q));
        };
        self.databases |= 1 << db;
        self.note_name(&q.name, &table, None);
        match &table.kind {
            TableKind::Rowid | TableKind::WithoutRowid => {
                if args.is_some() {
                    return Err(Error::sql(format!("'{name}' is not a function")).nowhere());
                }
                let shown = table.name.clone();
                let columns = Columns::Table(table.clone());
                Ok((SourceKind::Table { db, table }, shown, Some(db), columns))
            }
            TableKind::View { names, select } => {
                if args.is_some() {
                    return Err(Error::sql(format!("'{name}' is not a function")).nowhere());
                }
                self.check_reads(db, &table)?;
                let (query, columns) = self.view(db, &table, names, select)?;
                Ok((SourceKind::Subquery(Box::new(query)), table.name.clone(), Some(db), columns))
            }
            TableKind::Virtual { .. } if !self.env.virtual_tables => Err(self.no_such_table(q)),
            TableKind::Virtual { .. } => {
                let c = self.env.connector.connect(db, &table)?;
                self.virtual_source(db, &c, args.unwrap_or(&[]))
            }
        }
    }

    /// Views that refer to each other twice double with each step: there is an end to that.
    fn count_use(&mut self, db: usize, view: &Table) -> Result<()> {
        let known = self.view_uses.iter_mut().find(|(d, n, _)| *d == db && *n == view.name);
        let uses = match known {
            Some((_, _, uses)) => uses,
            None => {
                self.view_uses.push((db, view.name.clone(), 0));
                &mut self.view_uses.last_mut().expect("just added").2
            }
        };
        *uses += 1;
        if *uses >= MOST_USES {
            let most = MOST_USES;
            return Err(Error::sql(format!("too many references to \"{}\": max {most}", view.name)));
        }
        Ok(())
    }

    /// Settings may forbid that rows of a view are read.
    pub(super) fn check_reads(&self, db: usize, view: &Table) -> Result<()> {
        match self.env.views || db == TEMP {
            true => Ok(()),
            false => Err(Error::sql(format!("access to view \"{}\" prohibited", view.name))),
        }
    }

    /// The query that a view stands for.
    pub(crate) fn view(
        &mut self,
        db: usize,
        view: &Rc<Table>,
        names: &[Name],
        select: &ast::Select,
    ) -> Result<(FromQuery, Columns)> {
        if self.views.iter().any(|(d, n)| *d == db && n.eq_ignore_ascii_case(&view.name)) {
            return Err(Error::sql(format!("view {} is circularly defined", view.name)));
        }
        self.count_use(db, view)?;
        self.enter()?;
        let text = view.sql.clone().unwrap_or_else(|| "".into());
        self.views.push((db, view.name.clone()));
        let outer = self.asked.inner.replace(view.name.clone());
        let bound = self.isolated(&text, |b| {
            b.stored = db != TEMP;
            b.number(select.number);
            b.select(select)
        });
        self.views.pop();
        self.asked.inner = outer;
        self.leave();
        let mut select = bound?;
        let mut misfit = None;
        if !names.is_empty() && names.len() != select.columns.len() {
            let (want, got) = (names.len(), select.columns.len());
            misfit = Some(format!("expected {want} columns for '{}' but got {got}", view.name).into());
            let like = select.columns[got - 1].clone();
            select.columns.several().resize(want, like);
        }
        let names: Vec<Rc<str>> = names.iter().map(|n| Rc::from(&*n.text)).collect();
        let columns = query_columns(&select, &names, true, self.binary());
        Ok((FromQuery { misfit, ..FromQuery::plain(select) }, columns))
    }

    /// Makes the definitions of a WITH clause visible; answers how many to take back.
    pub(crate) fn push_with(&mut self, with: Option<&ast::With>) -> Result<usize> {
        let Some(w) = with else { return Ok(0) };
        let base = self.ctes.len();
        for (i, c) in w.tables.iter().enumerate() {
            if w.tables[..i].iter().any(|o| o.name.text.eq_ignore_ascii_case(&c.name.text)) {
                return Err(
                    Error::sql(format!("duplicate WITH table name: {}", c.name.text)).at(c.name.span.start)
                );
            }
        }
        let all = base + w.tables.len();
        for c in &w.tables {
            self.next_cte += 1;
            self.ctes.push(CteDef {
                ast: c.clone(),
                visible: all,
                id: self.next_cte,
                working: None,
                busy: false,
                uses: Rc::new(Cell::new(0)),
            });
        }
        Ok(w.tables.len())
    }

    /// Takes back what [`Binder::push_with`] added.
    pub(crate) fn pop_with(&mut self, n: usize) {
        let keep = self.ctes.len() - n;
        self.ctes.truncate(keep);
    }

    /// One use of a common table expression.
    fn cte(&mut self, at: usize) -> Result<(SourceKind, Columns)> {
        let def = self.ctes[at].clone();
        let name = &def.ast.name.text;
        if let Some(w) = &mut self.ctes[at].working {
            if std::mem::replace(&mut w.met, true) {
                return Err(Error::sql(format!("multiple recursive references: {name}")));
            }
            return Ok((SourceKind::Working(w.id), Columns::Query(w.columns.clone())));
        }
        if def.busy {
            return Err(Error::sql(format!("circular reference: {name}")));
        }
        def.uses.set(def.uses.get() + 1);
        // What follows the definitions it can see is hidden while it is bound.
        let hidden = self.ctes.split_off(def.visible.max(at + 1).min(self.ctes.len()));
        self.ctes[at].busy = true;
        let scopes = self.scopes.len();
        let outer = self.asked.inner.replace((&*def.ast.name.text).into());
        let bound = self.beside(|b| b.cte_query(at, &def));
        self.asked.inner = outer;
        debug_assert_eq!(scopes, self.scopes.len());
        self.ctes[at].busy = false;
        self.ctes.extend(hidden);
        let ((mut query, columns), outer) = bound?;
        query.outer = outer;
        query.cte = Some(def.id);
        query.uses = Some(def.uses);
        query.materialize = def.ast.materialized;
        Ok((SourceKind::Subquery(Box::new(query)), columns))
    }

    fn cte_query(&mut self, at: usize, def: &CteDef) -> Result<(FromQuery, Columns)> {
        let s = &def.ast.select;
        let name = &def.ast.name.text;
        let names: Vec<Rc<str>> = def.ast.columns.iter().map(|n| Rc::from(&*n.text)).collect();
        let refers = |c: &ast::SelectCore| match c {
            ast::SelectCore::Query(q) => q.from.as_ref().is_some_and(|f| times_named(f, name) > 0),
            ast::SelectCore::Values(_) => false,
        };
        let check_width = |n: usize| {
            if !names.is_empty() && n != names.len() {
                return Err(Error::sql(format!("table {name} has {n} values for {} columns", names.len())));
            }
            Ok(())
        };
        let own_with_shadows =
            s.with.as_ref().is_some_and(|w| w.tables.iter().any(|t| t.name.text.eq_ignore_ascii_case(name)));
        let first_recursive = if own_with_shadows {
            None
        } else {
            s.compounds.iter().position(|(op, c)| {
                matches!(op, ast::CompoundOp::Union | ast::CompoundOp::UnionAll) && refers(c)
            })
        };
        let Some(k) = first_recursive else {
            let select = self.select(s)?;
            check_width(select.columns.len())?;
            let columns = query_columns(&select, &names, false, self.binary());
            let q = FromQuery::plain(select);
            return Ok((q, columns));
        };
        self.ask_recursive();
        let pushed = self.push_with(s.with.as_ref())?;
        let initial = ast::Select {
            with: None,
            first: s.first.clone(),
            compounds: s.compounds[..k].to_vec(),
            order_by: Vec::new(),
            limit: None,
            offset: None,
            span: s.span,
            number: s.number,
        };
        let result = (|| -> Result<_> {
            let mut select = self.select(&initial)?;
            check_width(select.columns.len())?;
            let id = self.new_table();
            let uses: Vec<u32> = self.ctes.iter().map(|c| c.uses.get()).collect();
            let (mut arms, last) = self.recursive_arms(at, s, k, id, &select, &names)?;
            // A column's affinity depends on all arms, and the recursive ones are bound by it: where they change it, anew.
            let of_all = |i| column_affinity(select.cores.iter().chain(&arms), i);
            let affinities: Vec<Affinity> = (0..select.columns.len()).map(of_all).collect();
            for (c, last) in select.columns.iter_mut().zip(&last) {
                c.last = Some(Box::new(last.meta.clone()));
            }
            if select.columns.iter().zip(&affinities).any(|(c, a)| c.affinity != *a) {
                for (c, a) in select.columns.iter_mut().zip(&affinities) {
                    c.affinity = *a;
                }
                for (c, n) in self.ctes.iter().zip(&uses) {
                    c.uses.set(*n);
                }
                arms = self.recursive_arms(at, s, k, id, &select, &names)?.0;
            }
            let columns = query_columns(&select, &names, false, self.binary());
            let distinct = s.compounds[k..].iter().any(|(op, _)| *op == ast::CompoundOp::Union);
            let order_by = self.compound_order(&s.order_by, &select, &[])?;
            let (limit, offset) = self.limits(s)?;
            let rec = Recursive { id, arms, distinct, order_by, limit, offset };
            let q = FromQuery { recursive: Some(Box::new(rec)), ..FromQuery::plain(select) };
            Ok((q, columns))
        })();
        self.pop_with(pushed);
        result
    }

    /// The arms of a recursive query, from the `k`-th compound operator on, and the columns of the last: `select` is its
    /// initial part.
    fn recursive_arms(
        &mut self,
        at: usize,
        s: &ast::Select,
        k: usize,
        id: TableId,
        select: &Select,
        names: &[Rc<str>],
    ) -> Result<(Vec<Core>, Few<OutColumn>)> {
        let def = self.ctes[at].ast.clone();
        let name = &def.name.text;
        let columns = query_columns(select, names, false, self.binary());
        let Columns::Query(list) = &columns else { unreachable!("query_columns makes a query") };
        let mut arms = Vec::new();
        let mut last = Few::default();
        let bound: Result<()> = (|| {
            let own = &s.compounds[k..];
            if own.iter().any(|(op, _)| Some(op) != own.last().map(|(op, _)| op)) {
                // Arms before another operator belong to the first part, which must not name the table.
                return Err(Error::sql(format!("circular reference: {name}")));
            }
            for (op, c) in own {
                if let ast::SelectCore::Query(q) = c
                    && q.from.as_ref().map_or(0, |f| times_named(f, name)) > 1
                {
                    return Err(Error::sql(format!("multiple references to recursive table: {name}")));
                }
                self.ctes[at].working = Some(Working { id, columns: list.clone(), met: false });
                let (core, outs) = self.core(c)?;
                if core.aggregate {
                    return Err(Error::sql("recursive aggregate queries not supported"));
                }
                if !core.windows.is_empty() {
                    return Err(Error::sql("cannot use window functions in recursive queries"));
                }
                if outs.len() != select.columns.len() {
                    return Err(width_mismatch(*op, c));
                }
                let refs =
                    core.sources.iter().filter(|s| matches!(s.kind, SourceKind::Working(w) if w == id));
                if refs.count() == 0 {
                    return Err(Error::sql(format!("circular reference: {name}")));
                }
                arms.push(core);
                last = outs;
            }
            Ok(())
        })();
        self.ctes[at].working = None;
        bound.map(|()| (arms, last))
    }
}

/// Whether there is a RIGHT or FULL JOIN in a join, or in one in parentheses that it begins with.
fn goes_right(f: &ast::From) -> bool {
    let begins_with = match &f.first {
        ast::Table { kind: ast::TableKind::Join(inner), alias: None } => goes_right(inner),
        _ => false,
    };
    begins_with || f.joins.iter().any(|j| matches!(j.op, JoinOp::Right | JoinOp::Full))
}

/// How often a FROM clause names `name` directly, parenthesised joins included.
fn times_named(f: &ast::From, name: &str) -> usize {
    let times = |t: &ast::Table| match &t.kind {
        ast::TableKind::Named { name: q, .. } => {
            (q.schema.is_none() && q.name.text.eq_ignore_ascii_case(name)) as usize
        }
        ast::TableKind::Join(inner) => times_named(inner, name),
        _ => 0,
    };
    times(&f.first) + f.joins.iter().map(|j| times(&j.table)).sum::<usize>()
}

/// The words for arms of different width; `right` is the one behind the operator.
pub(crate) fn width_mismatch(op: ast::CompoundOp, right: &ast::SelectCore) -> Error {
    if matches!(right, ast::SelectCore::Values(rows) if rows.len() == 1) {
        return Error::sql("all VALUES must have the same number of terms");
    }
    let word = match op {
        ast::CompoundOp::Union => "UNION",
        ast::CompoundOp::UnionAll => "UNION ALL",
        ast::CompoundOp::Intersect => "INTERSECT",
        ast::CompoundOp::Except => "EXCEPT",
    };
    Error::sql(format!(
        "SELECTs to the left and right of {word} do not have the same number of result columns"
    ))
}

/// Whether the ON of this table names tables to its right. It may where it is an inner join's and there is no RIGHT or FULL JOIN.
fn reaches_beyond(e: &Expr, id: TableId, sources: &[Source]) -> Result<bool> {
    let place = |id| sources.iter().position(|s| s.id == id);
    let at = place(id).unwrap_or(0);
    let mut beyond = false;
    e.tables(&mut |t| beyond |= place(t).is_some_and(|p| p > at));
    let own = sources.get(at).is_some_and(|s| s.join.left);
    if beyond && (own || sources.iter().any(|s| s.join.right)) {
        return Err(Error::sql("ON clause references tables to its right"));
    }
    Ok(beyond)
}

/// Adds a condition's conjuncts.
pub(crate) fn push_filter(out: &mut Few<Filter>, e: Expr, on: Option<TableId>) {
    debug_assert_eq!(width(&e), 1);
    match e {
        Expr::And(..) => {
            let mut list = Vec::new();
            e.conjuncts(&mut list);
            out.extend(list.into_iter().map(|expr| Filter { expr, on }));
        }
        expr => out.push(Filter { expr, on }),
    }
}

/// The columns of a query as a table: given names, or its own made unique. `stored`: it is a view's.
pub(crate) fn query_columns(s: &Select, names: &[Rc<str>], stored: bool, binary: Collation) -> Columns {
    let mut out: Vec<QueryColumn> = Vec::with_capacity(s.columns.len());
    for (i, c) in s.columns.iter().enumerate() {
        let own = if stored { &c.stored_name } else { &c.inner_name };
        let given = names.get(i).or(own.as_ref()).cloned();
        let name = unlike(given.unwrap_or_else(|| (&*c.meta.name).into()), &out);
        let mut column = c.clone();
        if s.cores.len() > 1 {
            // Among a compound's own rows the first collation of any arm counts, from outside that of the first arm alone.
            let first = s.cores[0].result.get(i).and_then(Expr::collation);
            column.collation = first.map_or_else(|| binary.clone(), |c| c.0);
        }
        out.push(QueryColumn { name, inside: None, out: column, shadowed: false });
    }
    Columns::Query(out.into())
}

/// A name for one more column: with a number if one of these has it already.
fn unlike(base: Rc<str>, columns: &[QueryColumn]) -> Rc<str> {
    let mut name = base.clone();
    let mut n = 0;
    while columns.iter().any(|o| o.name.eq_ignore_ascii_case(&name)) {
        n += 1;
        name = format!("{}:{n}", unnumbered(&base)).into();
    }
    name
}

/// A column's name without the number that told it from its like.
pub fn unnumbered(name: &str) -> &str {
    match name.rsplit_once(':') {
        Some((stem, n)) if !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()) => stem,
        _ => name,
    }
}

/// The name of the last source; of a query without one, that by which it is shown.
fn shown_name(out: &Core, name: Rc<str>) -> Rc<str> {
    match out.sources.last().map(|s| &s.kind) {
        Some(SourceKind::Subquery(q)) if name.is_empty() => q.label.to_string().into(),
        _ => name,
    }
}
