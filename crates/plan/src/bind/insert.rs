//! Binding INSERT and REPLACE, with ON CONFLICT.

use super::names::is_rowid;
use super::target::Event;
use super::*;
use iolite_catalog::{ColumnSource, TableKind};
use iolite_ext::Action;

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

impl Binder<'_> {
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
                    // The first mention of a column counts, but of the rowid the last.
                    match t.rowid_alias == Some(i) {
                        true => columns[i] = Some(k),
                        false => _ = columns[i].get_or_insert(k),
                    }
                }
                None if is_rowid(&n.text) && t.has_rowid() => match t.rowid_alias {
                    Some(i) => columns[i] = Some(k),
                    None => rowid = Some(k),
                },
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
                    Rows::Row(std::mem::take(&mut select.cores[0].values).into_fields())
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
                // An alias is not known there.
                self.target_scope(&target, None);
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
}

/// A table's name as messages repeat it: with the database if that was written.
fn as_written(q: &ast::QualifiedName) -> String {
    match &q.schema {
        Some(s) => format!("{}.{}", s.text, q.name.text),
        None => q.name.text.to_string(),
    }
}

/// The only row of a query that is a VALUES clause and nothing else.
fn only_row(q: &ast::Select) -> Option<&[ast::Expr]> {
    let plain = q.with.is_none() && q.compounds.is_empty() && q.order_by.is_empty() && q.limit.is_none();
    match &q.first {
        ast::SelectCore::Values(rows) if plain && rows.len() == 1 => rows.get(0),
        _ => None,
    }
}
