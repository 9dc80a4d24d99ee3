//! Binding calls of functions: plain ones, LIKE and its kin, aggregates with their FILTER, DISTINCT and ORDER BY.
//!
//! Which function a call means is settled by its name and its number of arguments; window functions go on in [`super::window`].

use super::names::is_inline;
use super::*;
use iolite_ext::{FunctionFlags, Implementation};
use iolite_value::{Affinity, Value};

impl Binder<'_> {
    /// The function that a virtual table has in the place of another, called with one of its columns, and which occurrence of
    /// it that is.
    fn overload(
        &self,
        function: &iolite_ext::Function,
        args: &[Expr],
        of: usize,
    ) -> Option<(Rc<iolite_ext::Function>, TableId)> {
        let Some(Expr::Column(c)) = args.get(of) else { return None };
        let (_, table) = self.virtual_tables.iter().find(|t| t.0 == c.table)?;
        let over = table.function(&function.name.to_ascii_lowercase(), args.len())?;
        Some((over.function, c.table))
    }

    /// A call of a scalar function whose arguments are bound. `of`: the argument that a virtual table may overload it for.
    pub(crate) fn make_call(
        &mut self,
        function: Rc<iolite_ext::Function>,
        args: Vec<Expr>,
        of: usize,
    ) -> Result<Expr> {
        let f = function.flags;
        if self.restriction != Restriction::None
            && !f.has(FunctionFlags::DETERMINISTIC)
            && !matches!(self.restriction, Restriction::Check | Restriction::Default)
            && !is_inline(&function)
        {
            return Err(Error::sql(if f.has(FunctionFlags::SLOW_CHANGE) {
                format!("non-deterministic use of {}() in {}", function.name, self.restriction.place())
            } else {
                format!("non-deterministic functions prohibited in {}", self.restriction.place())
            }));
        }
        let collation = args.iter().find_map(|a| a.collation()).map_or(self.binary(), |c| c.0);
        let pure = self.restriction.pure();
        let over = if self.virtual_tables.is_empty() { None } else { self.overload(&function, &args, of) };
        let (function, overloaded) = match over {
            Some((function, table)) => (function, Some(table)),
            None => (function, None),
        };
        Ok(Expr::Call(Box::new(Call { function, args, collation, pure, overloaded })))
    }

    pub(super) fn called(&mut self, e: &ast::Expr) -> Result<Expr> {
        match e {
            ast::Expr::Call(c) => self.call(c),
            _ => self.like(e),
        }
    }

    fn like(&mut self, e: &ast::Expr) -> Result<Expr> {
        let ast::Expr::Like { op, not, lhs, rhs, escape, at } = e else { return Err(Code::Internal.into()) };
        let name = match op {
            ast::LikeOp::Like => "like",
            ast::LikeOp::Glob => "glob",
            // Complaints name these as they are written.
            ast::LikeOp::Regexp => operator_word(self.text, *at, "regexp"),
            ast::LikeOp::Match => operator_word(self.text, *at, "match"),
        };
        let span = ast::Span { start: *at, end: *at + name.len() as u32 };
        let name = ast::Name { text: name.into(), quote: ast::Quote::None, span };
        let function = self.function(&name, 2 + usize::from(escape.is_some()));
        if let Ok(f) = &function
            && !self.ask_function(f, *at)?
        {
            return Ok(Expr::Const(Value::Null));
        }
        if let Err(e) = &function {
            self.complaint = Some(e.clone());
        }
        let mut args = vec![self.expr(rhs)?, self.expr(lhs)?];
        if let Some(e) = escape {
            args.push(self.expr(e)?);
        }
        let Ok(function) = function else { return Ok(Expr::Const(Value::Null)) };
        let call = self.make_call(function, args, 1).map_err(|e| e.at(*at))?;
        Ok(if *not { Expr::Not(Box::new(call)) } else { call })
    }

    fn call(&mut self, c: &ast::Call) -> Result<Expr> {
        let function = match self.function(&c.name, c.args.len()) {
            Ok(f) => f,
            Err(e) => return self.complain(e, &c.args),
        };
        if !self.ask_function(&function, c.name.span.start)? {
            return Ok(Expr::Const(Value::Null));
        }
        let name = &c.name.text;
        if let Some(over) = &c.over {
            return self.window_call(c, over, function);
        }
        if function.flags.has(FunctionFlags::WINDOW_ONLY) {
            let e = Error::sql(format!("misuse of window function {name}()")).at(c.span.start);
            return self.complain(e, &c.args);
        }
        if matches!(function.imp, Implementation::Aggregate(_)) {
            return self.aggregate(c, function);
        }
        if c.filter.is_some() {
            return Err(
                Error::sql(format!("FILTER may not be used with non-aggregate {name}()")).at(c.span.start)
            );
        }
        if !c.order_by.is_empty() {
            return Err(
                Error::sql(format!("ORDER BY may not be used with non-aggregate {name}()")).at(c.span.start)
            );
        }
        let args: Result<Vec<Expr>> = c.args.iter().map(|a| self.expr(a)).collect();
        let args = args?;
        if let Implementation::Inline(iolite_ext::Inline::Likelihood) = function.imp {
            let ok = matches!(&args[1], Expr::Const(Value::Real(r)) if (0.0..=1.0).contains(r));
            if !ok {
                self.complaint = Some(
                    Error::sql("second argument to likelihood() must be a constant between 0.0 and 1.0")
                        .at(c.span.start),
                );
                return Ok(Expr::Const(Value::Null));
            }
        }
        self.make_call(function, args, 0).map_err(|e| e.at(c.name.span.start))
    }

    fn aggregate(&mut self, c: &ast::Call, function: Rc<iolite_ext::Function>) -> Result<Expr> {
        let name = &c.name.text;
        let misuse = || Error::sql(format!("misuse of aggregate function {}()", name));
        if self.restriction == Restriction::Default {
            return Err(Error::sql(format!("unknown function: {name}()")));
        }
        if self.restriction != Restriction::None || self.scopes.is_empty() {
            return self.complain(misuse().at(c.span.start), &c.args);
        }
        if c.star && !(function.args == 0 && function.flags.has(FunctionFlags::COUNT)) {
            return Err(
                Error::sql(format!("wrong number of arguments to function {name}()")).at(c.span.start)
            );
        }
        // Arguments are rows' business; which query the aggregate belongs to, they decide.
        let here = self.scopes.len() - 1;
        let s = &self.scopes[here];
        if s.phase == Phase::Aggregate || s.phase == Phase::Rows && !s.has_agg && !s.groups {
            return self.complain(misuse().at(c.span.start), &c.args);
        }
        let saved: Vec<Phase> = self.scopes.iter().map(|s| s.phase).collect();
        let phase_here = self.scopes[here].phase;
        for s in &mut self.scopes {
            if s.phase == Phase::Groups {
                s.phase = Phase::Aggregate;
            }
        }
        // Behind what is wrong with the arguments, the rest is looked at all the same.
        let args: Result<Vec<Expr>> = c.args.iter().map(|a| self.expr(a)).collect();
        let args = args.or_else(|e| self.noted(e));
        let order_by = self.plain_order(&c.order_by).or_else(|e| self.noted(e));
        let filter = c.filter.as_ref().map(|f| self.expr(f)).transpose().or_else(|e| self.noted(e));
        for (s, p) in self.scopes.iter_mut().zip(saved) {
            s.phase = p;
        }
        let (mut args, filter, mut order_by) = (args?, filter?, order_by?);
        if self.complaint.is_some() {
            return Ok(Expr::Const(Value::Null));
        }
        if c.within_group && order_by.len() == 1 {
            args.insert(0, order_by.remove(0).expr);
        }
        // To these any order is as good as another.
        if [FunctionFlags::COUNT, FunctionFlags::MIN, FunctionFlags::MAX]
            .iter()
            .any(|f| function.flags.has(*f))
        {
            order_by.clear();
        }
        let mut tables = Vec::new();
        for e in args.iter().chain(&filter).chain(order_by.iter().map(|o| &o.expr)) {
            e.tables(&mut |t| tables.push(t));
        }
        // The row that was to be inserted is one of values, and so is that which RETURNING shows.
        let returned = self.returned.as_ref().map(|r| r.id);
        tables.retain(|t| self.excluded != Some(*t) && returned != Some(*t));
        let mut owner = here;
        if !tables.is_empty() {
            while owner > 0 && !self.scopes[owner].sources.iter().any(|s| tables.contains(&s.id)) {
                owner -= 1;
            }
        }
        if owner == here && !matches!(phase_here, Phase::Groups) || self.scopes[owner].phase != Phase::Groups
        {
            return Err(match phase_here {
                Phase::GroupBy if owner == here => {
                    Error::sql("aggregate functions are not allowed in the GROUP BY clause").nowhere()
                }
                Phase::Rows if owner == here && (self.scopes[here].has_agg || self.scopes[here].groups) => {
                    Error::sql(format!("misuse of aggregate: {}()", name))
                }
                _ if owner == here || self.scopes[owner].phase == Phase::Aggregate => {
                    Error::sql(format!("misuse of aggregate function {}()", name))
                }
                _ => Error::sql(format!("misuse of aggregate: {}()", name)),
            }
            .at(c.span.start));
        }
        if c.distinct && args.len() != 1 {
            return Err(Error::sql("DISTINCT aggregates must have exactly one argument").nowhere());
        }
        let collation = args.iter().find_map(|a| a.collation()).map_or(self.binary(), |c| c.0);
        let affinity = Affinity::None;
        self.note_groups(owner);
        let scope = &mut self.scopes[owner];
        scope.has_agg = true;
        let twin = scope.aggs.iter().find(|a| {
            Rc::ptr_eq(&a.function, &function)
                && a.distinct == c.distinct
                && a.order_by.is_empty()
                && order_by.is_empty()
                && a.args.len() == args.len()
                && a.args.iter().zip(&args).all(|(x, y)| x.same(y))
                && a.collation == collation
                && match (&a.filter, &filter) {
                    (None, None) => true,
                    (Some(x), Some(y)) => x.same(y),
                    _ => false,
                }
        });
        if let Some(t) = twin {
            return Ok(Expr::Agg(t.id, affinity).of_arguments(&args));
        }
        let id = self.new_agg();
        let result = Expr::Agg(id, affinity).of_arguments(&args);
        let agg = Agg { id, function, args, distinct: c.distinct, filter, order_by, collation };
        self.scopes[owner].aggs.push(agg);
        Ok(result)
    }
}

/// The word of an operator as the text has it.
fn operator_word<'t>(text: &'t str, at: u32, word: &'static str) -> &'t str {
    let found = text.get(at as usize..at as usize + word.len());
    found.filter(|f| f.eq_ignore_ascii_case(word)).unwrap_or(word)
}
