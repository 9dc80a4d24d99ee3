//! Expressions: precedence climbing, with leading parentheses kept in a list instead of the call stack, so
//! that every recursion adds to the expression's height and is bounded by `SQLITE_LIMIT_EXPR_DEPTH`.

use super::*;

/// Binding strengths, weakest first.
pub(super) mod prec {
    pub const LOWEST: u8 = 0;
    pub const OR: u8 = 1;
    pub const AND: u8 = 2;
    pub const NOT: u8 = 3;
    pub const EQ: u8 = 4;
    pub const COMPARE: u8 = 5;
    pub const BITS: u8 = 7;
    pub const ADD: u8 = 8;
    pub const MUL: u8 = 9;
    pub const CONCAT: u8 = 10;
    pub const COLLATE: u8 = 11;
    pub const PREFIX: u8 = 12;
}

/// Strength and meaning of a plain infix operator; strength 0 for every other token.
#[inline(always)]
fn infix(kind: T) -> (u8, BinaryOp) {
    match kind {
        T::Or => (prec::OR, BinaryOp::Or),
        T::And => (prec::AND, BinaryOp::And),
        T::Eq => (prec::EQ, BinaryOp::Eq),
        T::Ne => (prec::EQ, BinaryOp::Ne),
        T::Lt => (prec::COMPARE, BinaryOp::Lt),
        T::Le => (prec::COMPARE, BinaryOp::Le),
        T::Gt => (prec::COMPARE, BinaryOp::Gt),
        T::Ge => (prec::COMPARE, BinaryOp::Ge),
        T::Amp => (prec::BITS, BinaryOp::BitAnd),
        T::Pipe => (prec::BITS, BinaryOp::BitOr),
        T::Shl => (prec::BITS, BinaryOp::ShiftLeft),
        T::Shr => (prec::BITS, BinaryOp::ShiftRight),
        T::Plus => (prec::ADD, BinaryOp::Add),
        T::Minus => (prec::ADD, BinaryOp::Sub),
        T::Star => (prec::MUL, BinaryOp::Mul),
        T::Slash => (prec::MUL, BinaryOp::Div),
        T::Percent => (prec::MUL, BinaryOp::Rem),
        T::Concat => (prec::CONCAT, BinaryOp::Concat),
        T::Arrow => (prec::CONCAT, BinaryOp::Arrow),
        T::Arrow2 => (prec::CONCAT, BinaryOp::ArrowText),
        _ => (0, BinaryOp::Or),
    }
}

/// Stack entries per recursion. With 2, the default limit of 2,500 stops every shape of expression before
/// it needs 1.5 MB of stack in a debug build, and a chain of calls at the length where SQLite stops, 831.
const CLIMB_COST: u32 = 2;

impl Parser<'_> {
    /// A whole expression.
    #[inline]
    pub(super) fn expr(&mut self) -> Result<Expr> {
        self.climb(prec::LOWEST)
    }

    /// Sets the height of the node just made over children of height `below`.
    #[inline]
    fn grow(&mut self, below: u32) -> Result<()> {
        self.height = below + 1;
        if self.height > self.height_limit { Err(self.too_deep()) } else { Ok(()) }
    }

    #[cold]
    fn too_deep(&self) -> Error {
        Error::sql(format!("Expression tree is too large (maximum depth {})", self.height_limit))
    }

    /// An expression whose operators all bind at least as strongly as `min`.
    fn climb(&mut self, min: u8) -> Result<Expr> {
        self.enter(CLIMB_COST)?;
        let e = if self.tok.kind == T::LParen && !self.select_follows() {
            self.parenthesised(min)?
        } else {
            let lhs = self.primary()?;
            self.operators(lhs, min)?
        };
        self.leave(CLIMB_COST);
        Ok(e)
    }

    fn select_follows(&self) -> bool {
        matches!(self.peek(), T::Select | T::Values | T::With)
    }

    /// An expression that starts with one or more parentheses.
    #[inline(never)]
    fn parenthesised(&mut self, min: u8) -> Result<Expr> {
        let mut open = Vec::new();
        while self.tok.kind == T::LParen && !self.select_follows() {
            self.enter(1)?;
            open.push(self.tok.start);
            self.bump();
        }
        let mut lhs = self.primary()?;
        while let Some(start) = open.pop() {
            lhs = self.operators(lhs, prec::LOWEST)?;
            if self.tok.kind == T::Comma {
                lhs = self.row(lhs, start)?;
            } else {
                self.expect(T::RParen)?;
            }
            self.leave(1);
        }
        self.operators(lhs, min)
    }

    #[inline(never)]
    fn row(&mut self, first: Expr, start: u32) -> Result<Expr> {
        self.enter(1)?;
        let mut height = self.height;
        let mut items = vec![first];
        while self.eat(T::Comma) {
            items.push(self.expr()?);
            height = height.max(self.height);
        }
        self.expect(T::RParen)?;
        self.leave(1);
        // The row itself does not count.
        self.height = height;
        Ok(Expr::Row(items, self.since(start)))
    }

    /// Applies the operators that follow `lhs` and bind at least as strongly as `min`. The height of `lhs` is
    /// `self.height`.
    #[inline(never)]
    fn operators(&mut self, mut lhs: Expr, min: u8) -> Result<Expr> {
        loop {
            let kind = self.tok.kind;
            let (strength, op) = infix(kind);
            if strength != 0 {
                if strength < min {
                    return Ok(lhs);
                }
                let height = self.height;
                self.bump();
                let rhs = self.climb(strength + 1)?;
                self.grow(height.max(self.height))?;
                lhs = Expr::Binary(op, Box::new((lhs, rhs)));
                continue;
            }
            match kind {
                T::Is
                | T::Isnull
                | T::Notnull
                | T::Not
                | T::Like
                | T::Glob
                | T::Regexp
                | T::Match
                | T::Between
                | T::In
                    if min <= prec::EQ =>
                {
                    lhs = self.comparison(lhs)?;
                }
                T::Collate if min <= prec::COLLATE => {
                    self.bump();
                    let name = self.ids()?;
                    self.grow(self.height)?;
                    lhs = Expr::Collate(Box::new(lhs), name);
                }
                _ => return Ok(lhs),
            }
        }
    }

    /// The operators of `=`'s strength that are words.
    #[inline(never)]
    fn comparison(&mut self, lhs: Expr) -> Result<Expr> {
        self.enter(1)?;
        let height = self.height;
        let not = self.tok.kind == T::Not;
        if not {
            if self.peek() == T::Null {
                self.bump();
                self.bump();
                self.leave(1);
                self.grow(height)?;
                return Ok(Expr::NotNull(Box::new(lhs)));
            }
            self.bump();
        }
        let at = self.tok.start;
        let e = match self.tok.kind {
            T::Is if !not => {
                self.bump();
                let mut op = BinaryOp::Is;
                if self.eat(T::Not) {
                    op = BinaryOp::IsNot;
                }
                if self.eat(T::Distinct) {
                    self.expect(T::From)?;
                    op = if op == BinaryOp::Is { BinaryOp::IsNot } else { BinaryOp::Is };
                }
                let rhs = self.climb(prec::EQ + 1)?;
                self.grow(height.max(self.height))?;
                Ok(Expr::Binary(op, Box::new((lhs, rhs))))
            }
            T::Isnull if !not => {
                self.bump();
                self.grow(height)?;
                Ok(Expr::IsNull(Box::new(lhs)))
            }
            T::Notnull if !not => {
                self.bump();
                self.grow(height)?;
                Ok(Expr::NotNull(Box::new(lhs)))
            }
            T::Like => self.like(LikeOp::Like, not, lhs, at),
            T::Glob => self.like(LikeOp::Glob, not, lhs, at),
            T::Regexp => self.like(LikeOp::Regexp, not, lhs, at),
            T::Match => self.like(LikeOp::Match, not, lhs, at),
            T::Between => self.between(not, lhs),
            T::In => self.in_set(not, lhs, at),
            _ => Err(self.unexpected()),
        };
        self.leave(1);
        e
    }

    #[inline(never)]
    fn like(&mut self, op: LikeOp, not: bool, lhs: Expr, at: u32) -> Result<Expr> {
        let mut height = self.height;
        self.bump();
        let rhs = Box::new(self.climb(prec::EQ + 1)?);
        height = height.max(self.height);
        let mut escape = None;
        if self.eat(T::Escape) {
            escape = Some(Box::new(self.climb(prec::EQ + 1)?));
            height = height.max(self.height);
        }
        self.grow(height + not as u32)?;
        Ok(Expr::Like { op, not, lhs: Box::new(lhs), rhs, escape, at })
    }

    #[inline(never)]
    fn between(&mut self, not: bool, lhs: Expr) -> Result<Expr> {
        let mut height = self.height;
        self.bump();
        let mut lo = self.climb(prec::NOT)?;
        height = height.max(self.height);
        if self.tok.kind == T::Or {
            // The grammar reads on, taking AND for the operator, and misses its own AND at the end.
            lo = self.operators(lo, prec::LOWEST)?;
            drop(lo);
            return Err(self.unexpected());
        }
        self.expect(T::And)?;
        let hi = self.climb(prec::EQ + 1)?;
        height = height.max(self.height);
        self.grow(height + not as u32)?;
        Ok(Expr::Between { not, e: Box::new(lhs), lo: Box::new(lo), hi: Box::new(hi) })
    }

    #[inline(never)]
    fn in_set(&mut self, not: bool, lhs: Expr, at: u32) -> Result<Expr> {
        let mut height = self.height;
        self.bump();
        let rhs = if self.tok.kind == T::LParen {
            if self.select_follows() {
                self.bump();
                let select = self.subselect()?;
                height = height.max(self.height);
                self.expect(T::RParen)?;
                InSet::Select(select)
            } else {
                self.bump();
                let list = self.expr_list_opt()?;
                height = height.max(self.height);
                self.expect(T::RParen)?;
                InSet::List(list)
            }
        } else {
            let table = self.qualified()?;
            let mut args = None;
            if self.eat(T::LParen) {
                // Without arguments it may be any table.
                args = Some(self.expr_list_opt()?).filter(|list| !list.is_empty());
                height = height.max(self.height);
                self.expect(T::RParen)?;
            }
            InSet::Table { table, args }
        };
        self.grow(height + not as u32)?;
        Ok(Expr::In { not, lhs: Box::new(lhs), rhs: Box::new(rhs), at })
    }

    /// Expressions separated by commas, up to a closing parenthesis, which stays; `height` becomes the highest.
    pub(super) fn expr_list_opt(&mut self) -> Result<Vec<Expr>> {
        self.height = 0;
        if self.tok.kind == T::RParen { Ok(Vec::new()) } else { self.expr_list() }
    }

    /// One or more expressions separated by commas; `height` becomes the highest.
    pub(super) fn expr_list(&mut self) -> Result<Vec<Expr>> {
        let mut list = Vec::with_capacity(8);
        self.exprs_into(&mut list)?;
        Ok(list)
    }

    /// The same, behind others.
    pub(super) fn exprs_into(&mut self, list: &mut Vec<Expr>) -> Result<()> {
        let mut height = 0;
        loop {
            let e = self.expr()?;
            height = height.max(self.height);
            list.push(e);
            if !self.eat(T::Comma) {
                break;
            }
        }
        self.height = height;
        Ok(())
    }

    /// Operands and prefix operators.
    #[inline(never)]
    fn primary(&mut self) -> Result<Expr> {
        let t = self.tok;
        let span = Span { start: t.start, end: t.end };
        self.height = 1;
        let literal = match t.kind {
            T::Id => return self.word(),
            T::Int => Literal::Integer(plain_number(self.raw(t))),
            T::Float => Literal::Real(plain_number(self.raw(t))),
            T::Str => {
                if self.dot_follows() {
                    return self.word();
                }
                Literal::Text(unquote(self.raw(t)))
            }
            T::Blob => Literal::Blob(unhex(self.raw(t))),
            T::Null => Literal::Null,
            T::CurrentDate => Literal::CurrentDate,
            T::CurrentTime => Literal::CurrentTime,
            T::CurrentTimestamp => Literal::CurrentTimestamp,
            T::Var => return self.variable(),
            T::Minus => return self.prefix(UnaryOp::Neg, prec::PREFIX),
            T::Plus => return self.prefix(UnaryOp::Plus, prec::PREFIX),
            T::Tilde => return self.prefix(UnaryOp::BitNot, prec::PREFIX),
            T::Not => return self.prefix(UnaryOp::Not, prec::NOT),
            T::LParen => return self.subquery(),
            T::Exists => return self.exists(),
            T::Case => return self.case(),
            T::Cast => return self.cast(),
            T::Raise => return self.raise(),
            kind if kind.is_idj() => return self.word(),
            _ => return Err(self.unexpected()),
        };
        self.bump();
        Ok(Expr::Literal(literal, span))
    }

    #[inline]
    fn dot_follows(&self) -> bool {
        self.dot_may_follow() && self.peek() == T::Dot
    }

    #[inline(never)]
    fn prefix(&mut self, op: UnaryOp, strength: u8) -> Result<Expr> {
        self.bump();
        // Runs of operators are kept in a list: `- - - 1` must not recurse.
        let mut more = Vec::new();
        loop {
            let next = match self.tok.kind {
                T::Not => UnaryOp::Not,
                T::Minus => UnaryOp::Neg,
                T::Plus => UnaryOp::Plus,
                T::Tilde => UnaryOp::BitNot,
                _ => break,
            };
            if (next == UnaryOp::Not) != (op == UnaryOp::Not) {
                break;
            }
            more.push(next);
            self.bump();
        }
        let mut e = self.climb(strength)?;
        for op in more.into_iter().rev().chain([op]) {
            self.grow(self.height)?;
            e = Expr::Unary(op, Box::new(e));
        }
        Ok(e)
    }

    #[inline(never)]
    fn subquery(&mut self) -> Result<Expr> {
        let start = self.tok.start;
        self.bump();
        let select = self.subselect()?;
        self.expect(T::RParen)?;
        self.grow(self.height)?;
        Ok(Expr::Subquery(select, self.since(start)))
    }

    #[inline(never)]
    fn exists(&mut self) -> Result<Expr> {
        self.bump();
        self.expect(T::LParen)?;
        let select = self.subselect()?;
        self.expect(T::RParen)?;
        self.grow(self.height)?;
        Ok(Expr::Exists(select))
    }

    #[inline(never)]
    fn case(&mut self) -> Result<Expr> {
        self.enter(1)?;
        self.bump();
        let mut height = 0;
        let mut base = None;
        if self.tok.kind != T::When {
            base = Some(Box::new(self.expr()?));
            height = self.height;
        }
        let mut arms = Vec::new();
        if self.tok.kind != T::When {
            return Err(self.unexpected());
        }
        while self.eat(T::When) {
            let when = self.expr()?;
            height = height.max(self.height);
            self.expect(T::Then)?;
            let then = self.expr()?;
            height = height.max(self.height);
            arms.push((when, then));
        }
        let mut otherwise = None;
        if self.eat(T::Else) {
            otherwise = Some(Box::new(self.expr()?));
            height = height.max(self.height);
        }
        self.expect(T::End)?;
        self.leave(1);
        self.grow(height)?;
        Ok(Expr::Case { base, arms, otherwise })
    }

    #[inline(never)]
    fn cast(&mut self) -> Result<Expr> {
        self.enter(1)?;
        self.bump();
        self.expect(T::LParen)?;
        let e = self.expr()?;
        let height = self.height;
        self.expect(T::As)?;
        let at = self.tok.start;
        let ty = self.type_name()?.unwrap_or(TypeName { text: "".into(), span: Span { start: at, end: at } });
        self.expect(T::RParen)?;
        self.leave(1);
        self.grow(height)?;
        Ok(Expr::Cast(Box::new(e), ty))
    }

    /// A type: words and strings, then one or two signed numbers in parentheses. `None` if there is no word.
    /// The text is the source's, as SQLite keeps it.
    pub(super) fn type_name(&mut self) -> Result<Option<TypeName>> {
        let start = self.tok.start;
        if !self.tok.kind.is_ids() {
            return Ok(None);
        }
        while self.tok.kind.is_ids() {
            self.bump();
        }
        if self.eat(T::LParen) {
            self.signed_number()?;
            if self.eat(T::Comma) {
                self.signed_number()?;
            }
            self.expect(T::RParen)?;
        }
        let span = self.since(start);
        Ok(Some(TypeName { text: span.of(self.text).into(), span }))
    }

    fn signed_number(&mut self) -> Result<()> {
        if matches!(self.tok.kind, T::Plus | T::Minus) {
            self.bump();
        }
        self.simple_number()?;
        self.bump();
        Ok(())
    }

    #[inline(never)]
    fn raise(&mut self) -> Result<Expr> {
        let start = self.tok.start;
        self.bump();
        self.expect(T::LParen)?;
        let kind = match self.tok.kind {
            T::Ignore => RaiseKind::Ignore,
            T::Rollback => RaiseKind::Rollback,
            T::Abort => RaiseKind::Abort,
            T::Fail => RaiseKind::Fail,
            _ => return Err(self.unexpected()),
        };
        self.bump();
        let mut message = None;
        let mut height = 0;
        if kind != RaiseKind::Ignore {
            self.expect(T::Comma)?;
            message = Some(Box::new(self.expr()?));
            height = self.height;
        }
        self.expect(T::RParen)?;
        self.grow(height)?;
        Ok(Expr::Raise(kind, message, self.since(start)))
    }

    /// A column reference or a function call.
    fn word(&mut self) -> Result<Expr> {
        let callable = self.tok.kind != T::Str;
        let first = self.take_name();
        match self.tok.kind {
            T::LParen if callable => self.call(first),
            T::Dot => self.dotted(first),
            _ => Ok(Expr::Column { schema: None, table: None, column: first }),
        }
    }

    #[inline(never)]
    fn dotted(&mut self, first: Name) -> Result<Expr> {
        self.bump();
        let second = self.name()?;
        if !self.eat(T::Dot) {
            return Ok(Expr::Column { schema: None, table: Some(Box::new(first)), column: second });
        }
        let column = self.name()?;
        Ok(Expr::Column { schema: Some(Box::new(first)), table: Some(Box::new(second)), column })
    }

    #[inline(never)]
    fn call(&mut self, name: Name) -> Result<Expr> {
        self.enter(1)?;
        let start = name.span.start;
        self.bump();
        let mut call = Call {
            name,
            distinct: false,
            star: false,
            args: Vec::new(),
            order_by: Vec::new(),
            within_group: false,
            filter: None,
            over: None,
            span: Span::default(),
        };
        let mut height = 0;
        if self.eat(T::Star) {
            call.star = true;
        } else {
            match self.tok.kind {
                T::Distinct => {
                    call.distinct = true;
                    self.bump();
                }
                T::All => self.bump(),
                _ => {}
            }
            if self.tok.kind != T::Order {
                call.args = self.expr_list_opt()?;
            }
            height = self.height_of(&call.args);
            if self.tok.kind == T::Order {
                call.order_by = self.order_by()?;
                height = height.max(self.height);
            }
        }
        self.expect(T::RParen)?;
        if call.args.len() > self.limits.get(Limit::FunctionArg) as usize {
            let shown = call.name.span.of(self.text);
            return Err(Error::sql(format!("too many arguments on function {shown}")).at(start));
        }
        if self.within_group_follows() {
            self.bump();
            self.bump();
            self.bump();
            call.order_by = self.order_by()?;
            call.within_group = true;
            self.expect(T::RParen)?;
        }
        call.span = self.since(start);
        if self.tok.kind == T::Filter {
            self.bump();
            self.expect(T::LParen)?;
            self.expect(T::Where)?;
            call.filter = Some(self.expr()?);
            self.expect(T::RParen)?;
        }
        if self.tok.kind == T::Over {
            self.bump();
            call.over = Some(self.over()?);
        }
        self.leave(1);
        self.grow(height)?;
        Ok(Expr::Call(Box::new(call)))
    }

    /// After an argument list, `height` already is the highest; an empty list is flat.
    fn height_of(&self, args: &[Expr]) -> u32 {
        if args.is_empty() { 0 } else { self.height }
    }

    fn within_group_follows(&self) -> bool {
        self.tok.kind == T::Id
            && self.raw(self.tok).eq_ignore_ascii_case("within")
            && self.peek2() == (T::Group, T::LParen)
    }

    #[inline(never)]
    fn variable(&mut self) -> Result<Expr> {
        let t = self.tok;
        let raw = self.raw(t);
        let b = raw.as_bytes();
        let bare = b.len() == 1;
        let number = if b[0] == b'?' && !bare {
            match b[1..].iter().try_fold(0u32, |n, d| n.checked_mul(10)?.checked_add((d - b'0') as u32)) {
                Some(n) if n >= 1 && n <= self.variable_limit => n,
                _ => {
                    let limit = self.variable_limit;
                    let text = format!("variable number must be between ?1 and ?{limit}");
                    return Err(Error::sql(text).at(t.start));
                }
            }
        } else if b[0] == b'#' && b[1].is_ascii_digit() {
            return Err(self.unexpected());
        } else {
            let known =
                if bare { None } else { self.variables.iter().position(|v| v.as_deref() == Some(raw)) };
            known.unwrap_or(self.variables.len()) as u32 + 1
        };
        if number > self.variable_limit {
            return Err(Error::sql("too many SQL variables").at(t.start));
        }
        while self.variables.len() < number as usize {
            self.variables.push(None);
        }
        let name: Option<SmallStr> = if bare { None } else { Some(raw.into()) };
        if let Some(name) = &name {
            self.variables[number as usize - 1].get_or_insert_with(|| name.clone());
        }
        self.bump();
        Ok(Expr::Variable { number, name, span: Span { start: t.start, end: t.end } })
    }
}

/// The bytes of `x'...'`; the lexer checked the digits.
pub(crate) fn unhex(raw: &str) -> Box<[u8]> {
    let digits = &raw.as_bytes()[2..raw.len() - 1];
    let value = |b: u8| (b as char).to_digit(16).unwrap_or(0) as u8;
    digits.chunks_exact(2).map(|d| value(d[0]) << 4 | value(d[1])).collect()
}
