//! `INSERT`, `REPLACE`, `UPDATE`, `DELETE`, with `WITH` before them and `RETURNING` behind.

use super::*;

impl Parser<'_> {
    /// A statement that starts with `WITH`, `INSERT`, `REPLACE`, `UPDATE` or `DELETE`.
    pub(super) fn with_or_change(&mut self) -> Result<Stmt> {
        let start = self.tok.start;
        let with = if self.tok.kind == T::With { Some(self.with()?) } else { None };
        match self.tok.kind {
            T::Select | T::Values => Ok(Stmt::Select(self.select_after_with(with, start)?)),
            T::Insert | T::Replace => self.insert(with),
            T::Update => self.update(with),
            T::Delete => self.delete(with),
            _ => Err(self.unexpected()),
        }
    }

    fn or_conflict(&mut self) -> Result<Option<Conflict>> {
        if self.eat(T::Or) { Ok(Some(self.resolution()?)) } else { Ok(None) }
    }

    /// `ROLLBACK`, `ABORT`, `FAIL`, `IGNORE`, `REPLACE`.
    pub(super) fn resolution(&mut self) -> Result<Conflict> {
        let how = match self.tok.kind {
            T::Rollback => Conflict::Rollback,
            T::Abort => Conflict::Abort,
            T::Fail => Conflict::Fail,
            T::Ignore => Conflict::Ignore,
            T::Replace => Conflict::Replace,
            _ => return Err(self.unexpected()),
        };
        self.bump();
        Ok(how)
    }

    /// `[schema.]table [AS alias]`.
    fn target(&mut self) -> Result<(QualifiedName, Option<Name>)> {
        let table = self.qualified()?;
        let alias = if self.eat(T::As) { Some(self.name()?) } else { None };
        Ok((table, alias))
    }

    #[inline(never)]
    fn insert(&mut self, with: Option<With>) -> Result<Stmt> {
        let or = if self.eat(T::Replace) {
            Some(Conflict::Replace)
        } else {
            self.bump();
            self.or_conflict()?
        };
        self.expect(T::Into)?;
        let (table, alias) = self.target()?;
        let columns = if self.tok.kind == T::LParen { self.name_list()? } else { Vec::new() };
        let mut insert = Insert {
            with,
            or,
            table,
            alias,
            columns,
            source: InsertSource::DefaultValues,
            upserts: Vec::new(),
            returning: Few::new(),
        };
        if self.tok.kind == T::Default && !self.in_trigger {
            self.bump();
            self.expect(T::Values)?;
        } else {
            insert.source = InsertSource::Select(self.subselect()?);
            self.upserts(&mut insert.upserts)?;
        }
        insert.returning = self.returning()?;
        Ok(Stmt::Insert(Box::new(insert)))
    }

    fn upserts(&mut self, list: &mut Vec<Upsert>) -> Result<()> {
        while self.eat(T::On) {
            self.expect(T::Conflict)?;
            let mut upsert = Upsert { target: Vec::new(), target_filter: None, action: None };
            if self.eat(T::LParen) {
                upsert.target = self.sort_terms()?;
                self.expect(T::RParen)?;
                if self.eat(T::Where) {
                    upsert.target_filter = Some(self.expr()?);
                }
                no_nulls_order(&upsert.target)?;
            }
            self.expect(T::Do)?;
            if !self.eat(T::Nothing) {
                self.expect(T::Update)?;
                self.expect(T::Set)?;
                let sets = self.assignments()?;
                let filter = if self.eat(T::Where) { Some(self.expr()?) } else { None };
                upsert.action = Some(UpsertUpdate { sets, filter });
            }
            let last = upsert.target.is_empty();
            list.push(upsert);
            if last {
                break;
            }
        }
        Ok(())
    }

    fn returning(&mut self) -> Result<Few<ResultColumn>> {
        let mut height = 0;
        if self.eat(T::Returning) { self.result_columns(&mut height) } else { Ok(Few::new()) }
    }

    fn assignments(&mut self) -> Result<Vec<Assignment>> {
        let mut sets = Vec::new();
        let mut count = 0;
        loop {
            let columns = match self.tok.kind {
                T::LParen => self.name_list()?,
                _ => vec![self.name()?],
            };
            count += columns.len();
            self.expect(T::Eq)?;
            let value = self.expr()?;
            sets.push(Assignment { columns, value });
            if !self.eat(T::Comma) {
                break;
            }
        }
        if count > self.limits.get(Limit::Column) as usize {
            return Err(Error::sql("too many columns in set list"));
        }
        Ok(sets)
    }

    #[inline(never)]
    fn update(&mut self, with: Option<With>) -> Result<Stmt> {
        self.bump();
        let or = self.or_conflict()?;
        let (table, alias) = self.target()?;
        let indexed = self.indexed()?;
        self.expect(T::Set)?;
        let sets = self.assignments()?;
        let from = if self.eat(T::From) { Some(self.from()?) } else { None };
        let filter = if self.eat(T::Where) { Some(self.expr()?) } else { None };
        let returning = if self.in_trigger { Few::new() } else { self.returning()? };
        let (order_by, limit, offset) = self.bounded("UPDATE")?;
        let update = Update {
            with,
            or,
            table,
            alias,
            indexed,
            sets,
            from,
            filter,
            returning,
            order_by,
            limit,
            offset,
        };
        Ok(Stmt::Update(Box::new(update)))
    }

    #[inline(never)]
    fn delete(&mut self, with: Option<With>) -> Result<Stmt> {
        self.bump();
        self.expect(T::From)?;
        let (table, alias) = self.target()?;
        let indexed = self.indexed()?;
        let filter = if self.eat(T::Where) { Some(self.expr()?) } else { None };
        let returning = if self.in_trigger { Few::new() } else { self.returning()? };
        let (order_by, limit, offset) = self.bounded("DELETE")?;
        let delete = Delete { with, table, alias, indexed, filter, returning, order_by, limit, offset };
        Ok(Stmt::Delete(Box::new(delete)))
    }

    /// `ORDER BY ... LIMIT ...` of `UPDATE` and `DELETE`; not in triggers.
    fn bounded(&mut self, what: &str) -> Result<(Vec<SortTerm>, Option<Expr>, Option<Expr>)> {
        if self.in_trigger {
            return Ok((Vec::new(), None, None));
        }
        let order_by = if self.tok.kind == T::Order { self.order_by()? } else { Vec::new() };
        if self.tok.kind == T::Limit {
            let (limit, offset) = self.limit()?;
            return Ok((order_by, limit, offset));
        }
        if !order_by.is_empty() {
            return Err(Error::sql(format!("ORDER BY without LIMIT on {what}")));
        }
        Ok((order_by, None, None))
    }
}

/// `NULLS FIRST` and `NULLS LAST` are for sorting only.
pub(super) fn no_nulls_order(terms: &[SortTerm]) -> Result<()> {
    match terms.iter().find_map(|t| t.nulls) {
        None => Ok(()),
        Some(NullsOrder::First) => Err(Error::sql("unsupported use of NULLS FIRST")),
        Some(NullsOrder::Last) => Err(Error::sql("unsupported use of NULLS LAST")),
    }
}
