//! `ORDER BY ... LIMIT ...` of UPDATE and DELETE (page `lang_delete`, "Optional LIMIT and ORDER BY clauses").
//!
//! Such a statement changes the rows whose keys a query finds: `key IN (SELECT key FROM table WHERE ... ORDER BY ... LIMIT ...)`.
//! The key is the rowid, or the columns of the primary key of a table without rowids. A view has no key: its rows themselves come
//! from the bounded query. What holds: the query is done before the first change.

use super::names::is_rowid;
use super::target::Target;
use super::*;
use ast::{Expr as A, Quote, Span};
use iolite_catalog::ColumnSource;

/// The clauses of an UPDATE or DELETE that decide which rows it changes.
pub(super) struct Clauses<'s> {
    pub(super) table: &'s ast::QualifiedName,
    pub(super) alias: Option<&'s ast::Name>,
    pub(super) indexed: &'s ast::Indexed,
    pub(super) from: Option<&'s ast::From>,
    pub(super) filter: Option<&'s A>,
    pub(super) order_by: &'s [ast::SortTerm],
    pub(super) limit: Option<&'s A>,
    pub(super) offset: Option<&'s A>,
}

impl Clauses<'_> {
    /// The condition that holds for the rows within the bounds, and for no other.
    pub(super) fn within(&self, target: &Target) -> Result<A> {
        let mut key = self.key(&target.table)?;
        let at = self.span();
        let columns = key.iter().map(|k| ast::ResultColumn::Expr { expr: k.clone(), alias: None, span: at });
        let columns = columns.collect();
        // A row of the table counts once, with however many rows of FROM it is joined.
        let group_by = if self.from.is_some() { key.clone() } else { Vec::new() };
        let rhs = Box::new(ast::InSet::Select(Box::new(self.query(columns, group_by))));
        let lhs = Box::new(if key.len() == 1 { key.remove(0) } else { A::Row(key, at) });
        Ok(A::In { not: false, lhs, rhs, at: at.start })
    }

    /// The rows of a view that are within the bounds.
    pub(super) fn of_view(&self) -> Result<ast::Select> {
        if self.from.is_some() {
            return Err(Error::sql("LIMIT is not available on UPDATE of a view with FROM"));
        }
        Ok(self.query(Few::one(ast::ResultColumn::Star(self.span())), Vec::new()))
    }

    fn span(&self) -> Span {
        self.table.name.span
    }

    /// What tells the table's rows apart, by names that hold inside the query and outside.
    fn key(&self, table: &Table) -> Result<Vec<A>> {
        // Beside other tables a column's name alone may mean several.
        let qualifier = self.from.map(|_| Box::new(self.alias.unwrap_or(&self.table.name).clone()));
        let named = |text: &str| A::Column {
            schema: None,
            table: qualifier.clone(),
            column: ast::Name { text: text.into(), quote: Quote::Bracket, span: self.span() },
        };
        if let Some(pk) = table.primary_index().filter(|_| !table.has_rowid()) {
            let columns = pk.columns[..pk.key_len].iter().filter_map(|c| match c.source {
                ColumnSource::Column(c) => Some(named(&table.columns[c].name)),
                _ => None,
            });
            return Ok(columns.collect());
        }
        if let Some(alias) = table.rowid_alias {
            return Ok(vec![named(&table.columns[alias].name)]);
        }
        let hidden = |name: &str| table.column(name).is_some();
        match ["rowid", "oid", "_rowid_"].into_iter().find(|n| is_rowid(n) && !hidden(n)) {
            Some(name) => Ok(vec![named(name)]),
            None => Err(Error::sql(format!("no name is left for the rowid of {}", table.name))),
        }
    }

    fn query(&self, columns: Few<ast::ResultColumn>, group_by: Vec<A>) -> ast::Select {
        let kind = ast::TableKind::Named { name: self.table.clone(), indexed: self.indexed.clone() };
        let joins = self.from.iter().map(|&f| ast::Join {
            op: ast::JoinOp::Comma,
            natural: false,
            table: ast::Table { kind: ast::TableKind::Join(Box::new(f.clone())), alias: None },
            constraint: ast::JoinConstraint::None,
        });
        let query = ast::Query {
            columns,
            from: Some(ast::From {
                first: ast::Table { kind, alias: self.alias.cloned() },
                joins: joins.collect(),
                number: 0,
            }),
            filter: self.filter.cloned(),
            group_by,
            ..ast::Query::default()
        };
        ast::Select {
            with: None,
            first: ast::SelectCore::Query(Box::new(query)),
            compounds: Vec::new(),
            order_by: self.order_by.to_vec(),
            limit: self.limit.cloned(),
            offset: self.offset.cloned(),
            span: self.span(),
            number: 0,
        }
    }
}

impl Binder<'_> {
    /// Binds what UPDATE or DELETE asks of its rows, and of a view the rows that it gives.
    pub(super) fn bounded(&mut self, c: &Clauses, target: &Target, core: &mut Core) -> Result<()> {
        // A row of the table that is within the bounds still has partners in FROM that do not fit.
        if let Some(f) = c.filter.filter(|_| c.limit.is_none() || c.from.is_some()) {
            self.conditions(f, None, &mut core.filter)?;
        }
        if c.limit.is_none() {
            return Ok(());
        }
        if target.table.is_view() {
            let select = self.nested(|b| b.select(&c.of_view()?))?.0;
            core.sources[0].kind = SourceKind::Subquery(Box::new(FromQuery::plain(select)));
            return Ok(());
        }
        // INDEXED BY is about finding the keys.
        core.sources[0].indexed = ast::Indexed::Any;
        self.conditions(&c.within(target)?, None, &mut core.filter)
    }
}
