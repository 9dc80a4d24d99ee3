//! Queries: `WITH`, compounds, `FROM`, and the lists that other statements share with them.

use super::*;
use iolite_base::Rows;
use std::rc::Rc;

/// How much of the parser's stack one level of subquery takes: five entries in SQLite's, of which the climb to it
/// counts two where the subquery is an expression.
const SELECT_COST: u32 = 3;

/// As much for a table in parentheses: with its subquery six, as in SQLite's.
const TABLE_COST: u32 = 3;

impl Parser<'_> {
    /// A whole query, `WITH` included. `height` becomes the height of its expressions.
    pub(super) fn select(&mut self) -> Result<Box<Select>> {
        let start = self.tok.start;
        let with = if self.tok.kind == T::With { Some(self.with()?) } else { None };
        self.select_after_with(with, start)
    }

    /// A query inside parentheses or after `AS`.
    pub(super) fn subselect(&mut self) -> Result<Box<Select>> {
        if !matches!(self.tok.kind, T::Select | T::Values | T::With) {
            return Err(self.unexpected());
        }
        self.select()
    }

    #[inline(never)]
    pub(super) fn select_after_with(&mut self, with: Option<With>, start: u32) -> Result<Box<Select>> {
        self.enter(SELECT_COST)?;
        let mut height = 0;
        let first = self.core(&mut height)?;
        let mut select = Box::new(Select {
            with,
            first,
            compounds: Vec::new(),
            order_by: Vec::new(),
            limit: None,
            offset: None,
            span: Span::default(),
            number: 0,
        });
        let mut misplaced = None;
        loop {
            let values = match select.compounds.last() {
                Some((_, core)) => matches!(core, SelectCore::Values(_)),
                None => matches!(select.first, SelectCore::Values(_)),
            };
            if !values {
                self.tail(&mut select, &mut height)?;
            }
            self.selects += u32::from(!values);
            let op = match self.tok.kind {
                T::Union => CompoundOp::Union,
                T::Intersect => CompoundOp::Intersect,
                T::Except => CompoundOp::Except,
                _ => break,
            };
            self.bump();
            let all = op == CompoundOp::Union && self.eat(T::All);
            let op = if all { CompoundOp::UnionAll } else { op };
            let clause = match (&select.order_by[..], &select.limit) {
                ([], None) => None,
                ([], Some(_)) => Some("LIMIT"),
                _ => Some("ORDER BY"),
            };
            if let Some(clause) = clause {
                misplaced = misplaced.or(Some((clause, op)));
                select.order_by.clear();
                select.limit = None;
            }
            let core = self.core(&mut height)?;
            select.compounds.push((op, core));
        }
        if let Some((clause, op)) = misplaced {
            let op = compound_name(op);
            return Err(Error::sql(format!("{clause} clause should come after {op} not before")));
        }
        let most = self.limits.get(Limit::CompoundSelect);
        let values = |c: &(_, SelectCore)| matches!(c.1, SelectCore::Values(_));
        // Behind VALUES nobody counts.
        if most > 0 && select.compounds.len() >= most as usize && !select.compounds.last().is_some_and(values)
        {
            return Err(Error::sql("too many terms in compound SELECT"));
        }
        select.span = self.since(start);
        select.number = self.selects;
        self.height = height;
        self.leave(SELECT_COST);
        Ok(select)
    }

    /// `ORDER BY`, `LIMIT`.
    #[inline]
    fn tail(&mut self, select: &mut Select, height: &mut u32) -> Result<()> {
        if self.tok.kind == T::Order {
            select.order_by = self.order_by()?;
            *height = (*height).max(self.height);
        }
        if self.tok.kind == T::Limit {
            (select.limit, select.offset) = self.limit()?;
            *height = (*height).max(self.height);
        }
        Ok(())
    }

    /// `LIMIT n`, `LIMIT n OFFSET m`, `LIMIT m, n`: limit and offset.
    pub(super) fn limit(&mut self) -> Result<(Option<Expr>, Option<Expr>)> {
        self.bump();
        let first = self.expr()?;
        let height = self.height;
        let answer = if self.eat(T::Offset) {
            (Some(first), Some(self.expr()?))
        } else if self.eat(T::Comma) {
            let limit = self.expr()?;
            (Some(limit), Some(first))
        } else {
            (Some(first), None)
        };
        self.height = self.height.max(height);
        Ok(answer)
    }

    /// `ORDER BY` and its terms; `height` becomes the highest.
    pub(super) fn order_by(&mut self) -> Result<Vec<SortTerm>> {
        self.expect(T::Order)?;
        self.expect(T::By)?;
        self.sort_terms()
    }

    /// Terms with directions; `height` becomes the highest.
    pub(super) fn sort_terms(&mut self) -> Result<Vec<SortTerm>> {
        let mut terms = Vec::new();
        let mut height = 0;
        loop {
            let expr = self.expr()?;
            height = height.max(self.height);
            let order = match self.tok.kind {
                T::Asc => Some(SortOrder::Asc),
                T::Desc => Some(SortOrder::Desc),
                _ => None,
            };
            if order.is_some() {
                self.bump();
            }
            let mut nulls = None;
            if self.eat(T::Nulls) {
                nulls = Some(match self.tok.kind {
                    T::First => NullsOrder::First,
                    T::Last => NullsOrder::Last,
                    _ => return Err(self.unexpected()),
                });
                self.bump();
            }
            terms.push(SortTerm { expr, order, nulls });
            if !self.eat(T::Comma) {
                break;
            }
        }
        self.height = height;
        Ok(terms)
    }

    fn core(&mut self, height: &mut u32) -> Result<SelectCore> {
        match self.tok.kind {
            T::Select => self.query(height),
            T::Values => self.values(height),
            _ => Err(self.unexpected()),
        }
    }

    #[inline(never)]
    fn values(&mut self, height: &mut u32) -> Result<SelectCore> {
        self.bump();
        let (mut fields, mut width) = (Vec::with_capacity(8), 0);
        let mut ragged = false;
        loop {
            self.expect(T::LParen)?;
            let before = fields.len();
            self.exprs_into(&mut fields)?;
            *height = (*height).max(self.height);
            self.expect(T::RParen)?;
            // The first row is a query, and so are all together.
            self.selects += u32::from(before <= width);
            match before {
                0 => width = fields.len(),
                _ => ragged |= fields.len() - before != width,
            }
            if !self.eat(T::Comma) {
                break;
            }
        }
        if ragged {
            self.late_error = Some(Error::sql("all VALUES must have the same number of terms"));
        }
        Ok(SelectCore::Values(Rows::new(width, fields)))
    }

    #[inline(never)]
    fn query(&mut self, height: &mut u32) -> Result<SelectCore> {
        self.bump();
        let mut distinct = false;
        match self.tok.kind {
            T::Distinct => {
                distinct = true;
                self.bump();
            }
            T::All => self.bump(),
            _ => {}
        }
        let mut query = Box::<Query>::default();
        query.distinct = distinct;
        query.columns = self.result_columns(height)?;
        if self.eat(T::From) {
            query.from = Some(self.from()?);
        }
        if self.eat(T::Where) {
            query.filter = Some(self.expr()?);
            *height = (*height).max(self.height);
        }
        if self.eat(T::Group) {
            self.expect(T::By)?;
            query.group_by = self.expr_list()?;
            *height = (*height).max(self.height);
        }
        if self.eat(T::Having) {
            query.having = Some(self.expr()?);
            *height = (*height).max(self.height);
        }
        if self.tok.kind == T::Window {
            query.windows = self.window_clause()?;
        }
        Ok(SelectCore::Query(query))
    }

    /// A result list; also that of `RETURNING`.
    pub(super) fn result_columns(&mut self, height: &mut u32) -> Result<Few<ResultColumn>> {
        let mut columns = Few::new();
        loop {
            columns.push(self.result_column(height)?);
            if !self.eat(T::Comma) {
                return Ok(columns);
            }
        }
    }

    fn result_column(&mut self, height: &mut u32) -> Result<ResultColumn> {
        let t = self.tok;
        if t.kind == T::Star {
            self.bump();
            return Ok(ResultColumn::Star(Span { start: t.start, end: t.end }));
        }
        if self.starts_reference(t.kind) && self.dot_may_follow() && self.peek2() == (T::Dot, T::Star) {
            let table = self.take_name();
            self.bump();
            self.bump();
            return Ok(ResultColumn::TableStar(table));
        }
        let expr = self.expr()?;
        *height = (*height).max(self.height);
        let span = self.up_to_here(t.start);
        let alias = self.alias()?;
        Ok(ResultColumn::Expr { expr, alias, span })
    }

    /// Whether the token can name the table of `table.*`: not the words that start an operand themselves.
    #[inline]
    fn starts_reference(&self, kind: T) -> bool {
        kind.is_nm()
            && !matches!(kind, T::Raise | T::Cast | T::CurrentDate | T::CurrentTime | T::CurrentTimestamp)
    }

    /// `AS name`, or a bare name or string.
    fn alias(&mut self) -> Result<Option<Name>> {
        if self.eat(T::As) {
            return Ok(Some(self.name()?));
        }
        if self.tok.kind.is_ids() { Ok(Some(self.take_name())) } else { Ok(None) }
    }

    /// What follows `FROM`.
    pub(super) fn from(&mut self) -> Result<From> {
        let mut from = From { first: self.table()?, joins: Vec::new(), number: 0 };
        match self.tok.kind {
            T::On => {
                self.bump();
                self.expr()?;
                // `INSERT .. SELECT .. FROM t ON CONFLICT (a) DO ..` gets this far.
                if self.tok.kind == T::Do {
                    return Err(self.unexpected());
                }
                return Err(Error::sql("a JOIN clause is required before ON"));
            }
            T::Using => {
                self.bump();
                self.name_list()?;
                return Err(Error::sql("a JOIN clause is required before USING"));
            }
            _ => {}
        }
        while let Some((op, natural)) = self.join_operator()? {
            let table = self.table()?;
            let constraint = if self.eat(T::On) {
                JoinConstraint::On(self.expr()?)
            } else if self.eat(T::Using) {
                JoinConstraint::Using(self.name_list()?)
            } else {
                JoinConstraint::None
            };
            from.joins.push(Join { op, natural, table, constraint });
        }
        Ok(from)
    }

    fn join_operator(&mut self) -> Result<Option<(JoinOp, bool)>> {
        match self.tok.kind {
            T::Comma => {
                self.bump();
                Ok(Some((JoinOp::Comma, false)))
            }
            T::Join => {
                self.bump();
                Ok(Some((JoinOp::Inner, false)))
            }
            T::Cross | T::Full | T::Inner | T::Left | T::Natural | T::Outer | T::Right => {
                self.join_words().map(Some)
            }
            _ => Ok(None),
        }
    }

    /// `NATURAL LEFT OUTER JOIN` and the like: up to three words in any order before `JOIN`.
    fn join_words(&mut self) -> Result<(JoinOp, bool)> {
        let mut words = [self.tok; 3];
        let mut n = 0;
        while self.tok.kind != T::Join {
            if n == 3 || n > 0 && !self.tok.kind.is_nm() {
                return Err(self.unexpected());
            }
            words[n] = self.tok;
            n += 1;
            self.bump();
        }
        let words = &words[..n];
        self.bump();
        let has = |kind: T| words.iter().any(|w| w.kind == kind);
        let (left, right) = (has(T::Left) || has(T::Full), has(T::Right) || has(T::Full));
        let (inner, outer) = (has(T::Inner) || has(T::Cross), left || right || has(T::Outer));
        let known = |kind: T| {
            matches!(kind, T::Cross | T::Full | T::Inner | T::Left | T::Natural | T::Outer | T::Right)
        };
        if words.iter().any(|w| !known(w.kind)) || inner && outer || outer && !left && !right {
            if self.tok.kind != T::LParen && !self.tok.kind.is_nm() {
                return Err(self.unexpected());
            }
            let shown: Vec<&str> = words.iter().map(|&w| self.raw(w)).collect();
            let text = format!("unknown join type: {}", shown.join(" "));
            return Err(Error::sql(text).at(words[0].start));
        }
        let op = match (left, right) {
            (true, true) => JoinOp::Full,
            (true, false) => JoinOp::Left,
            (false, true) => JoinOp::Right,
            _ if has(T::Cross) => JoinOp::Cross,
            _ => JoinOp::Inner,
        };
        Ok((op, has(T::Natural)))
    }

    fn table(&mut self) -> Result<Table> {
        if self.tok.kind == T::LParen {
            return self.parenthesised_table();
        }
        let name = self.qualified()?;
        if self.eat(T::LParen) {
            let args = self.expr_list_opt()?;
            self.expect(T::RParen)?;
            return Ok(Table { kind: TableKind::Function { name, args }, alias: self.alias()? });
        }
        let alias = self.alias()?;
        let indexed = self.indexed()?;
        Ok(Table { kind: TableKind::Named { name, indexed }, alias })
    }

    #[inline(never)]
    fn parenthesised_table(&mut self) -> Result<Table> {
        self.enter(TABLE_COST)?;
        self.bump();
        let kind = if matches!(self.tok.kind, T::Select | T::Values | T::With) {
            TableKind::Subquery(self.select()?)
        } else {
            TableKind::Join(Box::new(self.from()?))
        };
        self.expect(T::RParen)?;
        self.leave(TABLE_COST);
        let alias = self.alias()?;
        Ok(match kind {
            // Parentheses around one table mean nothing.
            TableKind::Join(from) if from.joins.is_empty() => {
                let inner = from.first;
                Table { kind: inner.kind, alias: alias.or(inner.alias) }
            }
            TableKind::Join(mut from) => {
                self.selects += 1;
                from.number = self.selects;
                Table { kind: TableKind::Join(from), alias }
            }
            kind => Table { kind, alias },
        })
    }

    pub(super) fn indexed(&mut self) -> Result<Indexed> {
        if self.eat(T::Indexed) {
            self.expect(T::By)?;
            return Ok(Indexed::By(self.name()?));
        }
        if self.tok.kind == T::Not {
            self.bump();
            self.expect(T::Indexed)?;
            return Ok(Indexed::Not);
        }
        Ok(Indexed::Any)
    }

    /// `WITH` and its tables.
    #[inline(never)]
    pub(super) fn with(&mut self) -> Result<With> {
        self.enter(4)?;
        self.bump();
        let recursive = self.eat(T::Recursive);
        let mut tables: Vec<Rc<Cte>> = Vec::new();
        loop {
            let name = self.name()?;
            let columns = self.column_name_list_opt()?;
            self.expect(T::As)?;
            let mut materialized = None;
            if self.eat(T::Materialized) {
                materialized = Some(true);
            } else if self.eat(T::Not) {
                self.expect(T::Materialized)?;
                materialized = Some(false);
            }
            self.expect(T::LParen)?;
            let select = *self.subselect()?;
            self.expect(T::RParen)?;
            if tables.iter().any(|t| t.name.text.eq_ignore_ascii_case(&name.text)) {
                return Err(Error::sql(format!("duplicate WITH table name: {}", name.text)));
            }
            tables.push(Rc::new(Cte { name, columns, materialized, select }));
            if !self.eat(T::Comma) {
                self.leave(4);
                return Ok(With { recursive, tables });
            }
        }
    }
}

/// A compound operator as SQLite's messages spell it.
fn compound_name(op: CompoundOp) -> &'static str {
    match op {
        CompoundOp::Union => "UNION",
        CompoundOp::UnionAll => "UNION ALL",
        CompoundOp::Intersect => "INTERSECT",
        CompoundOp::Except => "EXCEPT",
    }
}
