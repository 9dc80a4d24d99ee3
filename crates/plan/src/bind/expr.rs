//! Binding expressions.

use super::from::push_filter;
use super::*;
use crate::expr::{comparison_affinity, comparison_collation, list_affinity};
use iolite_sql::ast::{BinaryOp, Literal, UnaryOp};
use iolite_sql::walk::TableNames;
use iolite_value::{Affinity, Value};

/// Places where not every expression may stand, with the words of the error messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Restriction {
    None,
    Check,
    IndexExpr,
    PartialIndex,
    Generated,
    Default,
}

impl Restriction {
    pub(super) fn place(self) -> &'static str {
        match self {
            Restriction::None => "",
            Restriction::Check => "CHECK constraints",
            Restriction::IndexExpr => "index expressions",
            Restriction::PartialIndex => "partial index WHERE clauses",
            Restriction::Generated => "generated columns",
            Restriction::Default => "DEFAULT values",
        }
    }

    /// Where calls must give the same result for ever.
    pub(crate) fn pure(self) -> Option<&'static str> {
        match self {
            Restriction::None | Restriction::Default => None,
            Restriction::Check => Some("a CHECK constraint"),
            Restriction::IndexExpr | Restriction::PartialIndex => Some("an index"),
            Restriction::Generated => Some("a generated column"),
        }
    }
}

/// Whether one side of an AND is a zero: what stands beside it and calls no function is not even looked at.
fn false_beside(a: &ast::Expr, b: &ast::Expr) -> bool {
    (written_false(a) || written_false(b)) && !calls(a) && !calls(b)
}

/// Whether it is `IS NULL` or `IS NOT NULL`, as it may be written.
fn is_null_test(e: &ast::Expr) -> bool {
    matches!(e, ast::Expr::Binary(BinaryOp::Is | BinaryOp::IsNot, sides) if matches!(sides.1, ast::Expr::Literal(Literal::Null, _)))
}

/// Whether it is a name alone, which might be a truth value.
fn is_word(e: &ast::Expr) -> bool {
    match e {
        ast::Expr::Collate(inner, _) => is_word(inner),
        e => matches!(e, ast::Expr::Column { schema: None, table: None, .. }),
    }
}

impl Binder<'_> {
    fn prohibit(&self, what: &str) -> Result<()> {
        match self.restriction {
            Restriction::None => Ok(()),
            r => Err(Error::sql(format!("{what} prohibited in {}", r.place()))),
        }
    }

    /// Binds an expression that must be a single value.
    pub fn expr(&mut self, e: &ast::Expr) -> Result<Expr> {
        let b = self.any_expr(e)?;
        let n = width(&b);
        if n != 1 {
            return Err(row_misused(&b, n, 1));
        }
        Ok(b)
    }

    /// Binds an expression that may be a row.
    pub(crate) fn any_expr(&mut self, e: &ast::Expr) -> Result<Expr> {
        if self.complaint.is_some() && !self.is_looked_at(e) {
            // Behind a call that was wrong only names are looked up, and not those below operators.
            return Err(self.complaint.take().unwrap_or(Code::Error.into()));
        }
        self.enter()?;
        self.within += 1;
        let out = self.expr_inner(e);
        self.within -= 1;
        self.leave();
        self.complained(out)
    }

    /// Whether an expression is looked at behind a call that was wrong.
    fn is_looked_at(&self, e: &ast::Expr) -> bool {
        use ast::Expr as A;
        match e {
            A::Column { .. } | A::Call(_) | A::Like { .. } | A::IsNull(_) | A::NotNull(_) => true,
            // Only where SQLite has looked for their tables before.
            A::Exists(_) | A::Subquery(..) => self.in_query,
            A::In { rhs, .. } => self.in_query && !matches!(**rhs, ast::InSet::List(_)),
            e => is_null_test(e),
        }
    }

    /// Behind a whole expression: a call in it that was wrong is told of, where nothing went wrong after it.
    fn complained<T>(&mut self, out: Result<T>) -> Result<T> {
        match self.complaint.is_some() && self.within == 0 {
            true => {
                let call = self.complaint.take();
                out.and(call.map_or(Err(Code::Error.into()), Err))
            }
            false => out,
        }
    }

    /// Notes what is wrong with a part of a call, for which something else stands then.
    pub(crate) fn noted<T: Default>(&mut self, e: Error) -> Result<T> {
        if !matches!(e.code().primary(), Code::Error | Code::Auth) {
            return Err(e);
        }
        self.complaint = Some(e);
        Ok(T::default())
    }

    /// Notes what is wrong with a call, whose arguments are looked at all the same.
    pub(crate) fn complain(&mut self, e: Error, args: &[ast::Expr]) -> Result<Expr> {
        self.complaint = Some(e);
        for a in args {
            self.expr(a)?;
        }
        Ok(Expr::Const(Value::Null))
    }

    /// Binds a condition, whose conjuncts go to `out` one by one; `on`: the table whose ON clause it is.
    pub(crate) fn conditions(
        &mut self,
        e: &ast::Expr,
        on: Option<TableId>,
        out: &mut Few<Filter>,
    ) -> Result<()> {
        let ast::Expr::Binary(BinaryOp::And, sides) = e else {
            let bound = self.expr(e)?;
            push_filter(out, bound, on);
            return Ok(());
        };
        if let Some(e) = self.complaint.take() {
            return Err(e);
        }
        self.enter()?;
        self.within += 1;
        let (a, b) = &**sides;
        let done = if false_beside(a, b) {
            out.push(Filter { expr: Expr::int(0), on });
            Ok(())
        } else {
            self.conditions(a, on, out).and_then(|()| self.conditions(b, on, out))
        };
        self.within -= 1;
        self.leave();
        self.complained(done)
    }

    fn boxed(&mut self, e: &ast::Expr) -> Result<Box<Expr>> {
        Ok(Box::new(self.expr(e)?))
    }

    fn expr_inner(&mut self, e: &ast::Expr) -> Result<Expr> {
        use ast::Expr as A;
        Ok(match e {
            A::Literal(l, span) => self.literal(l, false).map_err(|e| e.at(span.start))?,
            A::Variable { number, span, .. } => {
                self.prohibit("parameters").map_err(|e| e.at(span.start))?;
                Expr::Param(*number)
            }
            A::Column { schema, table, column } => {
                if self.restriction == Restriction::Default {
                    // `DEFAULT word` stands for the word.
                    if table.is_none() {
                        return self.default_word(&column.text);
                    }
                }
                if table.is_some()
                    && matches!(self.restriction, Restriction::IndexExpr | Restriction::Generated)
                {
                    // What cannot be found is told first.
                    self.bind_column(schema.as_deref(), table.as_deref(), column)?;
                    self.prohibit("the \".\" operator").map_err(|err| err.at_place(e.place()))?;
                }
                self.bind_column(schema.as_deref(), table.as_deref(), column)?
            }
            A::Unary(op, a) => self.unary(*op, a)?,
            A::Binary(op, sides) => self.infix(*op, &sides.0, &sides.1)?,
            A::IsNull(a) => Expr::IsNull(self.boxed(a)?),
            A::NotNull(a) => Expr::NotNull(self.boxed(a)?),
            A::Between { not, e, lo, hi } => {
                let place = e.place();
                let e = self.any_expr(e)?;
                let (lo, hi) = (self.any_expr(lo)?, self.any_expr(hi)?);
                let b = if width(&e) > 1 {
                    Expr::And(
                        Box::new(
                            self.compare(CmpOp::Ge, false, e.clone(), lo).map_err(|e| e.at_place(place))?,
                        ),
                        Box::new(self.compare(CmpOp::Le, false, e, hi).map_err(|e| e.at_place(place))?),
                    )
                } else {
                    if width(&lo) != 1 || width(&hi) != 1 {
                        return Err(Error::sql("row value misused").at_place(place));
                    }
                    // What holds a BETWEEN is not copied: a chain of them would double with each.
                    let hi = match e.any(&mut |x| matches!(x, Expr::Between { .. })) {
                        true => self.compare_evaluated(CmpOp::Le, &e, hi),
                        false => self.make_compare(CmpOp::Le, false, e.clone(), hi),
                    };
                    let lo = Box::new(self.make_compare(CmpOp::Ge, false, e, lo));
                    Expr::Between { lo, hi: Box::new(hi) }
                };
                if *not { Expr::Not(Box::new(b)) } else { b }
            }
            A::In { not, lhs, rhs, .. } => self.in_expr(*not, lhs, rhs).map_err(Error::nowhere)?,
            A::Exists(s) => {
                self.prohibit("subqueries")?;
                Expr::Exists(self.subquery(s)?)
            }
            A::Subquery(s, _) => {
                self.prohibit("subqueries")?;
                let sub = self.subquery(s)?;
                match sub.select.columns.len() {
                    1 => Expr::Subquery(sub, 0),
                    n => Expr::Row((0..n).map(|i| Expr::Subquery(sub.clone(), i)).collect()),
                }
            }
            A::Case { base, arms, otherwise } => self.case(base.as_deref(), arms, otherwise.as_deref())?,
            A::Cast(a, ty) => Expr::Cast(self.boxed(a)?, cast_affinity(&ty.text)),
            A::Collate(a, name) => {
                let coll = self.named_collation(&name.text).map_err(Error::nowhere)?;
                let inner = self.any_expr(a)?;
                if width(&inner) != 1 {
                    return Err(Error::sql("row value misused"));
                }
                Expr::Collate(Box::new(inner), coll)
            }
            A::Call(_) | A::Like { .. } => match self.called(e) {
                // What is wrong with a call or in it keeps nobody from looking at what stands beside it.
                Err(e) => self.noted(e).map(|()| Expr::Const(Value::Null))?,
                Ok(called) => called,
            },
            A::Row(list, _) => {
                let items: Result<Vec<Expr>> = list.iter().map(|e| self.expr(e)).collect();
                Expr::Row(items?)
            }
            A::Raise(kind, message, _) => {
                if self.trigger.is_none() {
                    return Err(Error::sql("RAISE() may only be used within a trigger-program").nowhere());
                }
                let message = match message {
                    Some(m) => Some(self.boxed(m)?),
                    None => None,
                };
                Expr::Raise(*kind, message)
            }
        })
    }

    fn default_word(&self, word: &str) -> Result<Expr> {
        Ok(if word.eq_ignore_ascii_case("true") {
            Expr::int(1)
        } else if word.eq_ignore_ascii_case("false") {
            Expr::int(0)
        } else {
            Expr::Const(Value::text(iolite_base::raw_text::decode(word))?)
        })
    }

    fn literal(&mut self, l: &Literal, negative: bool) -> Result<Expr> {
        match l {
            Literal::CurrentDate => self.current("current_date"),
            Literal::CurrentTime => self.current("current_time"),
            Literal::CurrentTimestamp => self.current("current_timestamp"),
            constant => {
                let value = literal_value(constant, negative)?;
                let most = self.env.limits.get(Limit::Length) as usize;
                match &value {
                    Value::Text(b, _) | Value::Blob(b, _) if b.len() > most => Err(Code::Toobig.into()),
                    _ => Ok(Expr::Const(value)),
                }
            }
        }
    }

    fn current(&mut self, name: &str) -> Result<Expr> {
        if !matches!(self.restriction, Restriction::None | Restriction::Default | Restriction::Check) {
            let place = self.restriction.place();
            return Err(Error::sql(format!("non-deterministic functions prohibited in {place}")));
        }
        let name = ast::Name { text: name.into(), quote: ast::Quote::None, span: ast::Span::default() };
        let f = self.function(&name, 0)?;
        // Where it may stand it may also be called.
        let restriction = std::mem::replace(&mut self.restriction, Restriction::None);
        let call = self.make_call(f, Vec::new(), 0);
        self.restriction = restriction;
        call
    }

    fn unary(&mut self, op: UnaryOp, a: &ast::Expr) -> Result<Expr> {
        if op == UnaryOp::Neg
            && let ast::Expr::Literal(l @ (Literal::Integer(_) | Literal::Real(_)), span) = a
        {
            return self.literal(l, true).map_err(|e| e.at(span.start));
        }
        let a = self.boxed(a)?;
        Ok(match op {
            UnaryOp::Neg => Expr::Neg(a),
            UnaryOp::Plus => Expr::Plus(a),
            UnaryOp::BitNot => Expr::BitNot(a),
            UnaryOp::Not => Expr::Not(a),
        })
    }

    /// What AND or OR gives where a side that is a number without a sign, TRUE or FALSE decides it: the other is not computed.
    fn decided(&self, op: BinaryOp, a: (&ast::Expr, &Expr), b: (&ast::Expr, &Expr)) -> Option<bool> {
        if self.restriction == Restriction::IndexExpr {
            // Queries are compared with it as it was written.
            return None;
        }
        let side = |(written, bound): (&ast::Expr, &Expr)| match (written, bound) {
            (
                ast::Expr::Literal(..)
                | ast::Expr::Column { .. }
                | ast::Expr::Binary(BinaryOp::And | BinaryOp::Or, _),
                Expr::Const(Value::Int(n)),
            ) if i32::try_from(*n).is_ok() => Some(*n != 0),
            _ => None,
        };
        let all = op == BinaryOp::And;
        match (side(a), side(b)) {
            (Some(x), _) if x != all => Some(x),
            (_, Some(y)) if y != all => Some(y),
            (Some(_), Some(_)) => Some(all),
            _ => None,
        }
    }

    fn infix(&mut self, op: BinaryOp, a: &ast::Expr, b: &ast::Expr) -> Result<Expr> {
        let cmp = |op| (op, false);
        let (op, null_eq) = match op {
            BinaryOp::And if false_beside(a, b) => return Ok(Expr::int(0)),
            BinaryOp::And | BinaryOp::Or => {
                let (x, y) = (self.boxed(a)?, self.boxed(b)?);
                return Ok(match self.decided(op, (a, &x), (b, &y)) {
                    Some(truth) => Expr::int(truth as i64),
                    None if op == BinaryOp::And => Expr::And(x, y),
                    None => Expr::Or(x, y),
                });
            }
            BinaryOp::Eq => cmp(CmpOp::Eq),
            BinaryOp::Ne => cmp(CmpOp::Ne),
            BinaryOp::Lt => cmp(CmpOp::Lt),
            BinaryOp::Le => cmp(CmpOp::Le),
            BinaryOp::Gt => cmp(CmpOp::Gt),
            BinaryOp::Ge => cmp(CmpOp::Ge),
            BinaryOp::Is | BinaryOp::IsNot => {
                let not = op == BinaryOp::IsNot;
                if let Some(truth) = self.truth_word(b) {
                    return Ok(Expr::IsTruth { e: self.boxed(a)?, truth, not });
                }
                if matches!(b, ast::Expr::Literal(Literal::Null, _)) {
                    let a = self.any_expr(a)?;
                    if width(&a) == 1 {
                        let a = Box::new(a);
                        return Ok(if not { Expr::NotNull(a) } else { Expr::IsNull(a) });
                    }
                    return Err(row_misused(&a, width(&a), 1));
                }
                (if not { CmpOp::Ne } else { CmpOp::Eq }, true)
            }
            BinaryOp::Arrow | BinaryOp::ArrowText => {
                let name = if op == BinaryOp::Arrow { "->" } else { "->>" };
                let name =
                    ast::Name { text: name.into(), quote: ast::Quote::None, span: ast::Span::default() };
                let f = self.function(&name, 2)?;
                if !self.ask_function(&f, 0)? {
                    return Ok(Expr::Const(Value::Null));
                }
                let args = vec![self.expr(a)?, self.expr(b)?];
                return self.make_call(f, args, 0);
            }
            arith => {
                let op = match arith {
                    BinaryOp::BitAnd => BinOp::BitAnd,
                    BinaryOp::BitOr => BinOp::BitOr,
                    BinaryOp::ShiftLeft => BinOp::ShiftLeft,
                    BinaryOp::ShiftRight => BinOp::ShiftRight,
                    BinaryOp::Add => BinOp::Add,
                    BinaryOp::Sub => BinOp::Sub,
                    BinaryOp::Mul => BinOp::Mul,
                    BinaryOp::Div => BinOp::Div,
                    BinaryOp::Rem => BinOp::Rem,
                    _ => BinOp::Concat,
                };
                return Ok(Expr::Binary(op, self.boxed(a)?, self.boxed(b)?));
            }
        };
        // Behind IS, a name might be a truth value, and is looked at first.
        let word = if null_eq && is_word(b) { Some(self.any_expr(b)?) } else { None };
        let place = a.place();
        let a = self.any_expr(a)?;
        let b = word.map_or_else(|| self.any_expr(b), Ok)?;
        self.compare(op, null_eq, a, b).map_err(|e| e.at_place(place))
    }

    fn truth_word(&self, e: &ast::Expr) -> Option<bool> {
        match e {
            ast::Expr::Literal(Literal::True, _) => Some(true),
            ast::Expr::Literal(Literal::False, _) => Some(false),
            ast::Expr::Collate(inner, _) => self.truth_word(inner),
            ast::Expr::Column { schema: None, table: None, column } if column.quote == ast::Quote::None => {
                if column.text.eq_ignore_ascii_case("true") {
                    Some(true)
                } else if column.text.eq_ignore_ascii_case("false") {
                    Some(false)
                } else {
                    None
                }
            }
            _ => None,
        }
    }

    /// A comparison of values or of rows.
    pub(crate) fn compare(&mut self, op: CmpOp, null_eq: bool, a: Expr, b: Expr) -> Result<Expr> {
        let (n, m) = (width(&a), width(&b));
        if n != m {
            return Err(Error::sql("row value misused"));
        }
        if n == 1 {
            return Ok(Expr::Compare(Box::new(self.make_compare(op, null_eq, a, b))));
        }
        let (a, b) = (fields(a), fields(b));
        let pairs: Vec<(Expr, Expr)> = a.into_iter().zip(b).collect();
        Ok(match op {
            CmpOp::Eq | CmpOp::Ne => {
                let mut all: Option<Expr> = None;
                for (x, y) in pairs {
                    let c = Expr::Compare(Box::new(self.make_compare(CmpOp::Eq, null_eq, x, y)));
                    all = Some(match all {
                        None => c,
                        Some(p) => Expr::And(Box::new(p), Box::new(c)),
                    });
                }
                let all = all.expect("rows have two fields at least");
                if op == CmpOp::Ne { Expr::Not(Box::new(all)) } else { all }
            }
            _ => {
                let strict = match op {
                    CmpOp::Le => CmpOp::Lt,
                    CmpOp::Ge => CmpOp::Gt,
                    other => other,
                };
                let last = pairs.len() - 1;
                let field = |(k, (x, y))| self.make_compare(if k == last { op } else { strict }, false, x, y);
                Expr::RowOrder(pairs.into_iter().enumerate().map(field).collect())
            }
        })
    }

    /// A comparison with the value of `lhs`, which has been evaluated before.
    fn compare_evaluated(&self, op: CmpOp, lhs: &Expr, rhs: Expr) -> Compare {
        let coll = lhs.collation();
        let stand_in = Expr::CaseBase(lhs.affinity(), coll.clone().map_or(self.binary(), |c| c.0));
        let bare = coll.is_none();
        let stand_in = match coll {
            Some((c, true)) => Expr::Collate(Box::new(stand_in), c),
            _ => stand_in,
        };
        let mut c = self.make_compare(op, false, stand_in, rhs);
        if bare && let Some((own, _)) = c.rhs.collation() {
            c.collation = own;
        }
        c
    }

    /// A comparison of two single values.
    pub fn make_compare(&self, op: CmpOp, null_eq: bool, lhs: Expr, rhs: Expr) -> Compare {
        let affinity = comparison_affinity(&lhs, &rhs);
        let collation = comparison_collation(&lhs, &rhs, &self.binary());
        Compare { op, null_eq, affinity, collation, lhs, rhs }
    }

    fn in_expr(&mut self, not: bool, lhs: &ast::Expr, rhs: &ast::InSet) -> Result<Expr> {
        // Nothing is in an empty list, whatever it is: it is only looked at for what makes a query aggregate. ALTER TABLE does not
        // rename what stands there.
        if matches!(rhs, ast::InSet::List(list) if list.is_empty()) {
            if self.log.is_none() {
                let _ = self.any_expr(lhs);
            }
            return Ok(Expr::int(not as i64));
        }
        // The query is looked at before what is sought in it.
        let no_queries = |b: &Self| b.prohibit("subqueries").map_err(|e| e.at_place(lhs.place()));
        let select = match rhs {
            // Parentheses more than it needs do not make a query a value.
            ast::InSet::List(list) if let [ast::Expr::Subquery(s, _)] = &list[..] => {
                no_queries(self)?;
                self.subquery(s)?
            }
            ast::InSet::List(list) => {
                let lhs = self.any_expr(lhs)?;
                let n = width(&lhs);
                if n > 1 {
                    return self.row_in_list(not, lhs, list);
                }
                let mut items = Vec::with_capacity(list.len());
                for e in list {
                    items.push(self.expr(e)?);
                }
                let affinity = list_affinity(&lhs);
                // A list of one constant is a comparison.
                let explicit = |e: &Expr| e.collation().filter(|c| c.1);
                let alone = match &items[..] {
                    [one] if explicit(&lhs).is_none() && one.is_constant() => explicit(one),
                    _ => None,
                };
                let collation = alone.or(lhs.collation()).map_or(self.binary(), |c| c.0);
                return Ok(Expr::InList(Box::new(InList { not, lhs, list: items, affinity, collation })));
            }
            ast::InSet::Select(s) => {
                no_queries(self)?;
                self.subquery(s)?
            }
            ast::InSet::Table { table, args } => {
                no_queries(self)?;
                let s = self.table_as_select(table, args.as_deref());
                self.subquery(&s)?
            }
        };
        let lhs = self.any_expr(lhs)?;
        let (n, m) = (width(&lhs), select.select.columns.len());
        if n != m {
            return Err(if n == 1 {
                Error::sql(format!("sub-select returns {m} columns - expected 1")).nowhere()
            } else {
                Error::sql(format!("sub-select returns {m} columns - expected {n}")).nowhere()
            });
        }
        let lhs = fields(lhs);
        let mut collations = Vec::new();
        let last = select.select.cores.last().map_or(&[][..], |c| &c.result);
        for (k, (e, c)) in lhs.iter().zip(&select.select.columns).enumerate() {
            // COLLATE decides, first the left side's; then the left side, then the column selected.
            collations.push(match (e.collation(), last.get(k).and_then(Expr::collation)) {
                (Some((_, false)) | None, Some((coll, true))) | (Some((coll, _)), _) => coll,
                (None, _) => c.collation.clone(),
            });
        }
        let mut set = InSelect { not, lhs, select, affinities: Vec::new(), collations };
        set.meet();
        Ok(Expr::InSelect(Box::new(set)))
    }

    fn row_in_list(&mut self, not: bool, lhs: Expr, list: &[ast::Expr]) -> Result<Expr> {
        let mut any: Option<Expr> = None;
        for e in list {
            let item = self.any_expr(e)?;
            if width(&item) != width(&lhs) {
                return Err(Error::sql(format!(
                    "IN(...) element has {} term{} - expected {}",
                    width(&item),
                    if width(&item) == 1 { "" } else { "s" },
                    width(&lhs)
                )));
            }
            let c = self.compare(CmpOp::Eq, false, lhs.clone(), item)?;
            any = Some(match any {
                None => c,
                Some(p) => Expr::Or(Box::new(p), Box::new(c)),
            });
        }
        Ok(match any {
            None => Expr::int(not as i64),
            Some(e) if not => Expr::Not(Box::new(e)),
            Some(e) => e,
        })
    }

    fn table_as_select(&self, table: &ast::QualifiedName, args: Option<&[ast::Expr]>) -> ast::Select {
        let kind = match args {
            None => ast::TableKind::Named { name: table.clone(), indexed: ast::Indexed::Any },
            Some(a) => ast::TableKind::Function { name: table.clone(), args: a.to_vec() },
        };
        let span = table.name.span;
        let query = ast::Query {
            distinct: false,
            columns: Few::one(ast::ResultColumn::Star(span)),
            from: Some(ast::From { first: ast::Table { kind, alias: None }, joins: Vec::new(), number: 0 }),
            filter: None,
            group_by: Vec::new(),
            having: None,
            windows: Vec::new(),
        };
        ast::Select {
            with: None,
            first: ast::SelectCore::Query(Box::new(query)),
            compounds: Vec::new(),
            order_by: Vec::new(),
            limit: None,
            offset: None,
            span,
            number: 0,
        }
    }

    /// Binds a nested query in an expression.
    pub(crate) fn subquery(&mut self, s: &ast::Select) -> Result<Rc<Subquery>> {
        let (id, number) = (self.new_sub(), self.number(s.number));
        let found = self.nested(|b| b.select(s));
        self.query_failed |= found.is_err();
        let (select, mut outer) = found?;
        if let Some(Returned { id: target, name, .. }) = &self.returned
            && !outer.contains(target)
        {
            // What it finds in the table that is changed is another thing with each row.
            let mut reads = false;
            TableNames::new(&mut |t| reads |= t.name.text.eq_ignore_ascii_case(name)).select(s);
            if reads {
                outer.push(*target);
            }
        }
        Ok(Rc::new(Subquery { id, number, select, outer }))
    }

    /// Runs `f` as a nested query; answers which outer tables it refers to.
    pub(crate) fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<(T, Vec<TableId>)> {
        self.enter()?;
        self.frames.push(Nesting { outside: self.scopes.len(), outer: Vec::new() });
        let out = f(self);
        let frame = self.frames.pop().expect("pushed above");
        self.leave();
        Ok((out?, frame.outer))
    }

    fn case(
        &mut self,
        base: Option<&ast::Expr>,
        arms: &[(ast::Expr, ast::Expr)],
        otherwise: Option<&ast::Expr>,
    ) -> Result<Expr> {
        let base = base.map(|b| self.any_expr(b)).transpose()?;
        // A row is compared as a whole, field by field.
        let (base, row) = match base {
            Some(b) if width(&b) > 1 => (None, Some(b)),
            b => (b.map(Box::new), None),
        };
        let mut out = Vec::with_capacity(arms.len());
        for (when, then) in arms {
            if let Some(row) = &row {
                let w = self.any_expr(when)?;
                out.push((self.compare(CmpOp::Eq, false, row.clone(), w)?, self.expr(then)?));
                continue;
            }
            let mut w = self.expr(when)?;
            if let Some(b) = &base {
                let c = self.compare_evaluated(CmpOp::Eq, b, w);
                w = Expr::Compare(Box::new(c));
            }
            out.push((w, self.expr(then)?));
        }
        let otherwise = match otherwise {
            Some(e) => Some(self.boxed(e)?),
            None => None,
        };
        Ok(Expr::Case { base, arms: out, otherwise })
    }

    /// Sort terms that are plain expressions, not names of result columns.
    pub(crate) fn plain_order(&mut self, terms: &[ast::SortTerm]) -> Result<Vec<OrderTerm>> {
        let mut out = Vec::new();
        for t in terms {
            let expr = self.expr(&t.expr)?;
            out.push(self.order_term(expr, None, t));
        }
        Ok(out)
    }

    pub(crate) fn order_term(&self, expr: Expr, column: Option<usize>, t: &ast::SortTerm) -> OrderTerm {
        let desc = t.order == Some(ast::SortOrder::Desc);
        let nulls_large = match t.nulls {
            None => false,
            Some(ast::NullsOrder::First) => desc,
            Some(ast::NullsOrder::Last) => !desc,
        };
        let collation = expr.collation().map_or(self.binary(), |c| c.0);
        OrderTerm { expr, column, desc, nulls_large, collation }
    }
}

/// The affinity of a cast: that of the type name, NUMERIC where a column would have none... and BLOB for BLOB.
fn cast_affinity(ty: &str) -> Affinity {
    match ast::unquoted_type(ty) {
        ty if ty.is_empty() => Affinity::Numeric,
        ty => Affinity::of_type(&ty),
    }
}

/// The value of a literal, with a minus sign before it or not; NULL for the words that stand for the present time.
pub fn literal_value(l: &Literal, negative: bool) -> Result<Value> {
    Ok(match l {
        Literal::Integer(text) => integer_literal(text, negative)?,
        Literal::Real(text) => {
            let r: f64 = text.parse().unwrap_or(0.0);
            Value::real(if negative { -r } else { r })
        }
        Literal::Text(s) => Value::text(iolite_base::raw_text::decode(s))?,
        Literal::Blob(b) => Value::blob(b)?,
        Literal::True => Value::Int(1),
        Literal::False => Value::Int(0),
        Literal::Null | Literal::CurrentDate | Literal::CurrentTime | Literal::CurrentTimestamp => {
            Value::Null
        }
    })
}

fn integer_literal(text: &str, negative: bool) -> Result<Value> {
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let digits = hex.trim_start_matches('0');
        if digits.len() > 16 {
            return Err(Error::sql(format!(
                "hex literal too big: {}{text}",
                if negative { "-" } else { "" }
            )));
        }
        let v = u64::from_str_radix(if digits.is_empty() { "0" } else { digits }, 16).unwrap_or(0) as i64;
        if negative {
            if v == i64::MIN {
                return Err(Error::sql(format!("hex literal too big: -{text}")));
            }
            return Ok(Value::Int(-v));
        }
        return Ok(Value::Int(v));
    }
    let signed = match text.parse::<i64>() {
        Ok(i) if negative => Ok(-i),
        Err(_) if negative => format!("-{text}").parse(),
        other => other,
    };
    Ok(match signed {
        Ok(i) => Value::Int(i),
        Err(_) => {
            let r: f64 = text.parse().unwrap_or(0.0);
            Value::real(if negative { -r } else { r })
        }
    })
}

/// How many values an expression stands for.
pub(crate) fn width(e: &Expr) -> usize {
    match e {
        Expr::Row(list) => list.len(),
        Expr::Collate(e, _) => width(e),
        _ => 1,
    }
}

/// The values of a row.
pub(crate) fn fields(e: Expr) -> Vec<Expr> {
    match e {
        Expr::Row(list) => list,
        Expr::Collate(inner, c) if width(&inner) > 1 => {
            fields(*inner).into_iter().map(|e| Expr::Collate(Box::new(e), c.clone())).collect()
        }
        other => vec![other],
    }
}

fn row_misused(e: &Expr, n: usize, want: usize) -> Error {
    match e {
        Expr::Row(list) if matches!(list.first(), Some(Expr::Subquery(..))) => {
            Error::sql(format!("sub-select returns {n} columns - expected {want}"))
        }
        _ => Error::sql("row value misused"),
    }
}

/// An integer zero, an empty list's IN, or an AND with one of these.
fn written_false(e: &ast::Expr) -> bool {
    match e {
        ast::Expr::Literal(Literal::Integer(t), _) => {
            let digits = t.strip_prefix("0x").or_else(|| t.strip_prefix("0X")).unwrap_or(t);
            digits.bytes().all(|b| b == b'0')
        }
        ast::Expr::In { not: false, rhs, .. } => matches!(&**rhs, ast::InSet::List(l) if l.is_empty()),
        ast::Expr::Binary(BinaryOp::And, sides) => {
            let (a, b) = &**sides;
            (written_false(a) || written_false(b)) && !calls(a) && !calls(b)
        }
        _ => false,
    }
}

/// Whether an expression calls a function, nested queries aside.
fn calls(e: &ast::Expr) -> bool {
    any_call(e, &|_| true)
}

/// Whether a test holds for a call in an expression, nested queries aside; an operator that is a function is none of a name.
pub(super) fn any_call(e: &ast::Expr, test: &dyn Fn(Option<&ast::Call>) -> bool) -> bool {
    use ast::Expr as E;
    let any = |e: &ast::Expr| any_call(e, test);
    match e {
        E::Call(c) => test(Some(c)) || c.args.iter().any(any),
        E::Like { .. } | E::Binary(BinaryOp::Arrow | BinaryOp::ArrowText, ..) if test(None) => true,
        E::Literal(..)
        | E::Variable { .. }
        | E::Column { .. }
        | E::Exists(_)
        | E::Subquery(..)
        | E::Like { .. } => false,
        E::Unary(_, a) | E::IsNull(a) | E::NotNull(a) | E::Cast(a, _) | E::Collate(a, _) => any(a),
        E::Binary(_, sides) => any(&sides.0) || any(&sides.1),
        E::Between { e, lo, hi, .. } => any(e) || any(lo) || any(hi),
        E::In { lhs, rhs, .. } => any(lhs) || matches!(&**rhs, ast::InSet::List(l) if l.iter().any(any)),
        E::Case { base, arms, otherwise } => {
            base.iter().chain(otherwise).any(|e| any(e)) || arms.iter().any(|(a, b)| any(a) || any(b))
        }
        E::Row(list, _) => list.iter().any(any),
        E::Raise(_, e, _) => e.iter().any(|e| any(e)),
    }
}
