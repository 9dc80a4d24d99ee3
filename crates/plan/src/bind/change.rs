//! Binding UPDATE and DELETE, and RETURNING.

use super::bounded::Clauses;
use super::expr::{fields, width};
use super::names::is_rowid;
use super::target::Event;
use super::*;
use iolite_ext::Action;
use iolite_value::Value;

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
    /// The new values hold aggregates or window functions over these rows: the number of the query that computes them.
    pub summary: Option<TableId>,
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

impl Binder<'_> {
    pub(super) fn sets(&mut self, list: &[ast::Assignment], db: usize, t: &Rc<Table>) -> Result<Vec<Set>> {
        let mut out: Vec<Set> = Vec::new();
        let named: usize = list.iter().map(|a| a.columns.len()).sum();
        if named > self.env.limits.get(Limit::Column) as usize {
            return Err(Error::sql("too many columns in set list"));
        }
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
            for (name, value) in a
                .columns
                .iter()
                .zip(fields(value).into_iter().chain(std::iter::repeat_with(|| Expr::Const(Value::Null))))
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
            }
            // Beside FROM the new values are results of a query, and may summarize its rows.
            if s.from.is_some() {
                self.top().phase = Phase::Groups;
            }
            let sets = self.sets(&s.sets, target.db, &target.table)?;
            let scope = self.top();
            scope.phase = Phase::Rows;
            core.aggregate = scope.has_agg;
            core.aggs = std::mem::take(&mut scope.aggs);
            core.windows = std::mem::take(&mut scope.windows);
            let clauses = Clauses {
                table: &s.table,
                alias: s.alias.as_ref(),
                indexed: &s.indexed,
                from: s.from.as_ref(),
                filter: s.filter.as_ref(),
                order_by: &s.order_by,
                limit: s.limit.as_ref(),
                offset: s.offset.as_ref(),
            };
            self.bounded(&clauses, &target, &mut core)?;
            if let Some(f) = &s.from {
                let tables = std::iter::once(&f.first).chain(f.joins.iter().map(|j| &j.table));
                let again = |(x, t): &(&Source, &ast::Table)| {
                    let alias = match (&t.alias, &s.alias) {
                        (Some(a), Some(b)) => a.text.eq_ignore_ascii_case(&b.text),
                        (a, b) => a.is_none() && b.is_none(),
                    };
                    alias && x.table().is_some_and(|(_, t)| Rc::ptr_eq(t, &target.table))
                };
                let mut listed = core.sources[1..].iter().zip(tables);
                if let Some((x, _)) = listed.find(again) {
                    let name = &x.name;
                    return Err(Error::sql(format!(
                        "target object/alias may not appear in FROM clause: {name}"
                    )));
                }
            }
            Ok((core, sets))
        })();
        self.scopes.pop();
        let (rows, sets) = bound?;
        let summary = (rows.aggregate || !rows.windows.is_empty()).then(|| self.new_table());
        if asks {
            if s.from.is_some() {
                self.ask(Action::Select, None, None, None)?;
            }
            self.end_change()?;
        }
        let (returning, out) = self.returning_of("UPDATE", &s.returning, &target)?;
        target.calls_out = self.calls_out.get();
        Ok(Update { target, sets, rows, summary, or: s.or, returning, out })
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
            held: Vec::new(),
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
            let clauses = Clauses {
                table: &s.table,
                alias: s.alias.as_ref(),
                indexed: &s.indexed,
                from: None,
                filter: s.filter.as_ref(),
                order_by: &s.order_by,
                limit: s.limit.as_ref(),
                offset: s.offset.as_ref(),
            };
            self.bounded(&clauses, &target, &mut core)?;
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
