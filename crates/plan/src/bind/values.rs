//! Binding VALUES clauses.
//!
//! The rows of one lie flat in its core, without loops. One row that calls an aggregate or a window function is a query instead, and so is
//! each of several where one calls a window function; an aggregate in one of several is refused.

use super::select::compound_affinity;
use super::*;
use iolite_base::Rows;
use iolite_value::Affinity;

/// The names of the first columns of VALUES.
const VALUE_NAMES: [&str; 12] = [
    "column1", "column2", "column3", "column4", "column5", "column6", "column7", "column8", "column9",
    "column10", "column11", "column12",
];

impl Binder<'_> {
    /// The only row of a VALUES clause that stands for itself; and whether the authorizer wants it to answer nothing.
    pub(crate) fn only_row(&mut self, row: &[ast::Expr]) -> Result<(Vec<Expr>, bool)> {
        self.enter()?;
        self.enter_query();
        self.scopes.push(Scope::default());
        let bound = self.row(row);
        self.scopes.pop();
        let nothing = self.answers_nothing();
        self.leave();
        Ok((bound?, nothing))
    }

    fn row(&mut self, row: &[ast::Expr]) -> Result<Vec<Expr>> {
        let mut bound = Vec::with_capacity(row.len());
        for e in row {
            bound.push(self.expr(e)?);
        }
        Ok(bound)
    }

    /// A VALUES clause of one row that calls an aggregate or a window function is a query of one row.
    pub(super) fn row_that_summarizes(&self, c: &ast::SelectCore) -> Option<ast::SelectCore> {
        let ast::SelectCore::Values(rows) = c else { return None };
        let row = rows.get(0).filter(|r| rows.len() == 1 && self.summarizes(r))?;
        Some(ast::SelectCore::Query(Box::new(row_query(row))))
    }

    /// Whether a row of VALUES calls an aggregate or a window function.
    fn summarizes(&self, row: &[ast::Expr]) -> bool {
        let test = |c: Option<&ast::Call>| {
            c.is_some_and(|c| {
                let f = self.env.registry.function(&c.name.text, c.args.len());
                c.over.is_some()
                    || f.is_some_and(|f| matches!(f.imp, iolite_ext::Implementation::Aggregate(_)))
            })
        };
        row.iter().any(|e| super::expr::any_call(e, &test))
    }

    /// Binds the rows of a VALUES clause.
    pub(super) fn values(
        &mut self,
        rows: &Rows<ast::Expr>,
        core: &mut Core,
        columns: &mut Few<OutColumn>,
    ) -> Result<()> {
        let n = rows.width();
        // Of several rows none is a query, and it is the last faulty one that is told of.
        self.top().has_agg = rows.len() > 1;
        let fields = match self.row(rows.fields()) {
            Err(e) if self.log.is_none() => {
                let told = (1..rows.len()).rev().find_map(|i| self.row(rows.get(i)?).err());
                return Err(told.unwrap_or(e));
            }
            done => done?,
        };
        let values = Rows::new(n, fields);
        if n > self.env.limits.get(Limit::Column) as usize {
            return Err(Error::sql("too many columns in result set"));
        }
        let first = values.get(0).unwrap_or_default();
        *columns = Few::with_capacity(n);
        for (i, e) in first.iter().enumerate() {
            let name = match VALUE_NAMES.get(i) {
                Some(name) => (*name).into(),
                None => format!("column{}", i + 1).into(),
            };
            let mut c = self.out_column(e, name);
            if values.len() > 1 {
                c.affinity = self.values_affinity(&values, i);
            }
            columns.push(c);
        }
        core.result = first.to_vec().into();
        core.values = values;
        Ok(())
    }

    /// The affinity of a column of several rows: in views and triggers the rows are arms of a compound; elsewhere a second
    /// row of constants makes it a compound, too, and any other takes the affinity away.
    fn values_affinity(&self, rows: &Rows<Expr>, column: usize) -> Affinity {
        if !self.views.is_empty() || self.trigger.is_some() {
            return compound_affinity(rows.iter().filter_map(|r| Some((r.get(column)?, false))));
        }
        match (rows.len(), rows.get(0), rows.get(1)) {
            (2, Some(first), Some(second))
                if second.iter().all(|e| e.affinity() == Affinity::None && e.is_constant()) =>
            {
                compound_affinity([&first[column], &second[column]].into_iter().map(|e| (e, false)))
            }
            _ => Affinity::None,
        }
    }
}

/// A query of VALUES clauses with several rows and calls of window functions among them: each row of such a clause is an arm of its own,
/// and behind an operator the arms are a query in parentheses.
pub(super) fn rows_apart(s: &ast::Select) -> Option<ast::Select> {
    let windowed = |c: Option<&ast::Call>| c.is_some_and(|c| c.over.is_some());
    let splits = |c: &ast::SelectCore| match c {
        ast::SelectCore::Values(rows) if rows.len() > 1 => {
            rows.fields().iter().any(|e| super::expr::any_call(e, &windowed))
        }
        _ => false,
    };
    let cores = || std::iter::once(&s.first).chain(s.compounds.iter().map(|c| &c.1));
    if !cores().any(splits) {
        return None;
    }
    let apart = |rows: &Rows<ast::Expr>| {
        let mut arms = rows.iter().map(|r| ast::SelectCore::Query(Box::new(row_query(r))));
        let first = arms.next()?;
        Some((first, arms.map(|a| (ast::CompoundOp::UnionAll, a)).collect::<Vec<_>>()))
    };
    let (first, mut arms) = match &s.first {
        core @ ast::SelectCore::Values(rows) if splits(core) => apart(rows)?,
        core => (core.clone(), Vec::new()),
    };
    for (op, core) in &s.compounds {
        let core = match core {
            ast::SelectCore::Values(rows) if splits(core) => {
                let (first, compounds) = apart(rows)?;
                let (with, order_by, limit, offset) = (None, Vec::new(), None, None);
                all_of(ast::Select { with, first, compounds, order_by, limit, offset, ..s.clone() })
            }
            core => core.clone(),
        };
        arms.push((*op, core));
    }
    Some(ast::Select { with: None, first, compounds: arms, ..s.clone() })
}

/// `SELECT * FROM (s)`.
fn all_of(s: ast::Select) -> ast::SelectCore {
    let first = ast::Table { kind: ast::TableKind::Subquery(Box::new(s)), alias: None };
    ast::SelectCore::Query(Box::new(ast::Query {
        columns: std::iter::once(ast::ResultColumn::Star(ast::Span::default())).collect(),
        from: Some(ast::From { first, joins: Vec::new(), number: 0 }),
        ..ast::Query::default()
    }))
}

/// A row of VALUES as a query.
fn row_query(row: &[ast::Expr]) -> ast::Query {
    let column = |(i, e): (usize, &ast::Expr)| {
        let span = ast::Span::default();
        let name = ast::Name { text: format!("column{}", i + 1).into(), quote: ast::Quote::None, span };
        ast::ResultColumn::Expr { expr: e.clone(), alias: Some(name), span }
    };
    ast::Query { columns: row.iter().enumerate().map(column).collect(), ..ast::Query::default() }
}
