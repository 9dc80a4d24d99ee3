//! AST back to SQL text.
//!
//! What always holds: the printed text parses to the same AST, apart from spans. Names keep the quotes they
//! were written with; a bare name that could not be read back is put in double quotes. Parentheses are
//! written where precedence asks for them, or, for tests and dumps of the tree's shape, around every operator.

mod ddl;
mod stmt;

use crate::ast::*;
use crate::lexer::is_ident;
use crate::token::{is_reserved, keyword};
use std::borrow::Cow;

/// A statement as SQL.
pub fn stmt(s: &Stmt) -> String {
    print(false, |p| p.stmt(s))
}

/// A statement as SQL with its `EXPLAIN`.
pub fn parsed(s: &Parsed) -> String {
    print(false, |p| p.parsed(s))
}

/// A statement as SQL, every operator in parentheses.
pub fn parsed_explicit(s: &Parsed) -> String {
    print(true, |p| p.parsed(s))
}

/// An expression as SQL.
pub fn expr(e: &Expr) -> String {
    print(false, |p| p.expr(e, LOWEST))
}

/// A query as SQL.
pub fn select(s: &Select) -> String {
    print(false, |p| p.select(s))
}

/// `text` as an identifier: in double quotes where it could not stand bare.
pub fn quote_name(text: &str) -> Cow<'_, str> {
    let bare = plain(text) && !is_reserved(text);
    if bare { Cow::Borrowed(text) } else { Cow::Owned(format!("\"{}\"", text.replace('"', "\"\""))) }
}

/// Whether `text` is one word to the lexer.
fn plain(text: &str) -> bool {
    let b = text.as_bytes();
    !b.is_empty() && !b[0].is_ascii_digit() && b[0] != b'$' && b.iter().all(|&c| is_ident(c))
}

/// `text` as a string literal.
pub fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn print(explicit: bool, f: impl FnOnce(&mut Printer)) -> String {
    let mut p = Printer { out: String::new(), explicit };
    f(&mut p);
    p.out
}

struct Printer {
    out: String,
    explicit: bool,
}

// Strengths of binding, as in the parser.
const LOWEST: u8 = 0;
const NOT: u8 = 3;
const EQ: u8 = 4;
const COLLATE: u8 = 11;
const PREFIX: u8 = 12;
const PRIMARY: u8 = 13;

fn infix(op: BinaryOp) -> (u8, &'static str) {
    match op {
        BinaryOp::Or => (1, "OR"),
        BinaryOp::And => (2, "AND"),
        BinaryOp::Eq => (EQ, "="),
        BinaryOp::Ne => (EQ, "<>"),
        BinaryOp::Is => (EQ, "IS"),
        BinaryOp::IsNot => (EQ, "IS NOT"),
        BinaryOp::Lt => (5, "<"),
        BinaryOp::Le => (5, "<="),
        BinaryOp::Gt => (5, ">"),
        BinaryOp::Ge => (5, ">="),
        BinaryOp::BitAnd => (7, "&"),
        BinaryOp::BitOr => (7, "|"),
        BinaryOp::ShiftLeft => (7, "<<"),
        BinaryOp::ShiftRight => (7, ">>"),
        BinaryOp::Add => (8, "+"),
        BinaryOp::Sub => (8, "-"),
        BinaryOp::Mul => (9, "*"),
        BinaryOp::Div => (9, "/"),
        BinaryOp::Rem => (9, "%"),
        BinaryOp::Concat => (10, "||"),
        BinaryOp::Arrow => (10, "->"),
        BinaryOp::ArrowText => (10, "->>"),
    }
}

fn strength(e: &Expr) -> u8 {
    match e {
        Expr::Unary(UnaryOp::Not, _) => NOT,
        Expr::Unary(..) => PREFIX,
        Expr::Binary(op, ..) => infix(*op).0,
        Expr::IsNull(_) | Expr::NotNull(_) | Expr::Like { .. } | Expr::Between { .. } | Expr::In { .. } => EQ,
        Expr::Collate(..) => COLLATE,
        _ => PRIMARY,
    }
}

impl Printer {
    fn word(&mut self, w: &str) {
        self.out.push_str(w);
    }

    fn name(&mut self, n: &Name) {
        match n.quote {
            // What was read bare in such a place can be read bare again.
            Quote::None if keyword(n.text.as_bytes()).is_nm() && plain(&n.text) => self.word(&n.text),
            Quote::None => self.word(&quote_name(&n.text)),
            Quote::Bracket if n.text.contains(']') => self.word(&quote_name(&n.text)),
            _ => self.word(&n.written()),
        }
    }

    fn qualified(&mut self, q: &QualifiedName) {
        if let Some(s) = &q.schema {
            self.name(s);
            self.out.push('.');
        }
        self.name(&q.name);
    }

    fn list<X>(&mut self, items: impl IntoIterator<Item = X>, mut f: impl FnMut(&mut Printer, X)) {
        for (i, x) in items.into_iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            f(self, x);
        }
    }

    fn names(&mut self, names: &[Name]) {
        self.out.push('(');
        self.list(names, |p, n| p.name(n));
        self.out.push(')');
    }

    fn exprs(&mut self, list: &[Expr]) {
        self.list(list, |p, e| p.expr(e, LOWEST));
    }

    fn literal(&mut self, l: &Literal) {
        match l {
            Literal::Null => self.word("NULL"),
            Literal::Integer(s) | Literal::Real(s) => self.word(s),
            Literal::Text(s) => self.word(&quote_text(s)),
            Literal::Blob(b) => {
                self.word("x'");
                for byte in b {
                    self.word(&format!("{byte:02x}"));
                }
                self.word("'");
            }
            Literal::True => self.word("true"),
            Literal::False => self.word("false"),
            Literal::CurrentDate => self.word("CURRENT_DATE"),
            Literal::CurrentTime => self.word("CURRENT_TIME"),
            Literal::CurrentTimestamp => self.word("CURRENT_TIMESTAMP"),
        }
    }

    /// `e`, in parentheses if it binds weaker than `min`.
    fn expr(&mut self, e: &Expr, min: u8) {
        let own = strength(e);
        let parens = own < min || self.explicit && own < PRIMARY && min > LOWEST;
        if parens {
            self.out.push('(');
        }
        self.bare_expr(e);
        if parens {
            self.out.push(')');
        }
    }

    fn bare_expr(&mut self, e: &Expr) {
        match e {
            Expr::Literal(l, _) => self.literal(l),
            Expr::Variable { name, .. } => self.word(name.as_deref().unwrap_or("?")),
            Expr::Column { schema, table, column } => {
                for n in [schema, table].into_iter().flatten() {
                    self.name(n);
                    self.out.push('.');
                }
                self.name(column);
            }
            Expr::Unary(op, e) => {
                self.word(match op {
                    UnaryOp::Neg => "-",
                    UnaryOp::Plus => "+",
                    UnaryOp::BitNot => "~",
                    UnaryOp::Not => "NOT ",
                });
                // Two minus signs in a row would start a comment.
                if *op == UnaryOp::Neg && matches!(**e, Expr::Unary(UnaryOp::Neg, _)) {
                    self.out.push(' ');
                }
                self.expr(e, if *op == UnaryOp::Not { NOT } else { PREFIX });
            }
            Expr::Binary(op, sides) => {
                let (strength, text) = infix(*op);
                self.expr(&sides.0, strength);
                self.word(" ");
                self.word(text);
                self.word(" ");
                // `IS (NOT x)` and `IS (DISTINCT ...)`: a prefix NOT would be read as part of the operator.
                self.expr(&sides.1, strength + 1);
            }
            Expr::IsNull(e) => {
                self.expr(e, EQ);
                self.word(" ISNULL");
            }
            Expr::NotNull(e) => {
                self.expr(e, EQ);
                self.word(" NOTNULL");
            }
            Expr::Like { op, not, lhs, rhs, escape, .. } => {
                self.expr(lhs, EQ);
                self.word(if *not { " NOT " } else { " " });
                self.word(match op {
                    LikeOp::Like => "LIKE ",
                    LikeOp::Glob => "GLOB ",
                    LikeOp::Regexp => "REGEXP ",
                    LikeOp::Match => "MATCH ",
                });
                self.expr(rhs, EQ + 1);
                if let Some(e) = escape {
                    self.word(" ESCAPE ");
                    self.expr(e, EQ + 1);
                }
            }
            Expr::Between { not, e, lo, hi } => {
                self.expr(e, EQ);
                self.word(if *not { " NOT BETWEEN " } else { " BETWEEN " });
                self.expr(lo, EQ + 1);
                self.word(" AND ");
                self.expr(hi, EQ + 1);
            }
            Expr::In { not, lhs, rhs, .. } => {
                self.expr(lhs, EQ);
                self.word(if *not { " NOT IN " } else { " IN " });
                match &**rhs {
                    InSet::List(list) => {
                        self.word("(");
                        self.exprs(list);
                        self.word(")");
                    }
                    InSet::Select(s) => self.subquery(s),
                    InSet::Table { table, args } => {
                        self.qualified(table);
                        if let Some(args) = args {
                            self.word("(");
                            self.exprs(args);
                            self.word(")");
                        }
                    }
                }
            }
            Expr::Exists(s) => {
                self.word("EXISTS ");
                self.subquery(s);
            }
            Expr::Subquery(s, _) => self.subquery(s),
            Expr::Case { base, arms, otherwise } => {
                self.word("CASE");
                if let Some(b) = base {
                    self.word(" ");
                    self.expr(b, LOWEST);
                }
                for (when, then) in arms {
                    self.word(" WHEN ");
                    self.expr(when, LOWEST);
                    self.word(" THEN ");
                    self.expr(then, LOWEST);
                }
                if let Some(e) = otherwise {
                    self.word(" ELSE ");
                    self.expr(e, LOWEST);
                }
                self.word(" END");
            }
            Expr::Cast(e, ty) => {
                self.word("CAST(");
                self.expr(e, LOWEST);
                self.word(" AS ");
                self.word(&ty.text);
                self.word(")");
            }
            Expr::Collate(e, name) => {
                self.expr(e, COLLATE);
                self.word(" COLLATE ");
                self.name(name);
            }
            Expr::Call(c) => self.call(c),
            Expr::Row(items, _) => {
                self.word("(");
                self.exprs(items);
                self.word(")");
            }
            Expr::Raise(kind, message, _) => {
                self.word(match kind {
                    RaiseKind::Ignore => "RAISE(IGNORE",
                    RaiseKind::Rollback => "RAISE(ROLLBACK",
                    RaiseKind::Abort => "RAISE(ABORT",
                    RaiseKind::Fail => "RAISE(FAIL",
                });
                if let Some(e) = message {
                    self.word(", ");
                    self.expr(e, LOWEST);
                }
                self.word(")");
            }
        }
    }

    fn subquery(&mut self, s: &Select) {
        self.word("(");
        self.select(s);
        self.word(")");
    }

    fn call(&mut self, c: &Call) {
        self.name(&c.name);
        self.word("(");
        if c.star {
            self.word("*");
        }
        if c.distinct {
            self.word("DISTINCT ");
        }
        self.exprs(&c.args);
        if !c.within_group {
            self.order_by(&c.order_by, if c.args.is_empty() { "" } else { " " });
        }
        self.word(")");
        if c.within_group {
            self.word(" WITHIN GROUP (");
            self.order_by(&c.order_by, "");
            self.word(")");
        }
        if let Some(e) = &c.filter {
            self.word(" FILTER (WHERE ");
            self.expr(e, LOWEST);
            self.word(")");
        }
        match &c.over {
            None => {}
            Some(Over::Name(n)) => {
                self.word(" OVER ");
                self.name(n);
            }
            Some(Over::Window(w)) => {
                self.word(" OVER ");
                self.window(w);
            }
        }
    }

    /// `before` and `ORDER BY` with its terms, if there are any.
    fn order_by(&mut self, terms: &[SortTerm], before: &str) {
        if !terms.is_empty() {
            self.word(before);
            self.word("ORDER BY ");
            self.sort_terms(terms);
        }
    }

    fn sort_terms(&mut self, terms: &[SortTerm]) {
        self.list(terms, |p, t| {
            p.expr(&t.expr, LOWEST);
            p.word(match t.order {
                None => "",
                Some(SortOrder::Asc) => " ASC",
                Some(SortOrder::Desc) => " DESC",
            });
            p.word(match t.nulls {
                None => "",
                Some(NullsOrder::First) => " NULLS FIRST",
                Some(NullsOrder::Last) => " NULLS LAST",
            });
        });
    }

    fn window(&mut self, w: &Window) {
        self.word("(");
        let mut gap = "";
        if let Some(n) = &w.base {
            self.name(n);
            gap = " ";
        }
        if !w.partition_by.is_empty() {
            self.word(gap);
            self.word("PARTITION BY ");
            self.exprs(&w.partition_by);
            gap = " ";
        }
        if !w.order_by.is_empty() {
            self.order_by(&w.order_by, gap);
            gap = " ";
        }
        if let Some(f) = &w.frame {
            self.word(gap);
            self.word(match f.unit {
                FrameUnit::Rows => "ROWS BETWEEN ",
                FrameUnit::Range => "RANGE BETWEEN ",
                FrameUnit::Groups => "GROUPS BETWEEN ",
            });
            self.bound(&f.start);
            self.word(" AND ");
            self.bound(&f.end);
            self.word(match f.exclude {
                FrameExclude::Nothing => "",
                FrameExclude::NoOthers => " EXCLUDE NO OTHERS",
                FrameExclude::CurrentRow => " EXCLUDE CURRENT ROW",
                FrameExclude::Group => " EXCLUDE GROUP",
                FrameExclude::Ties => " EXCLUDE TIES",
            });
        }
        self.word(")");
    }

    fn bound(&mut self, b: &FrameBound) {
        match b {
            FrameBound::UnboundedPreceding => self.word("UNBOUNDED PRECEDING"),
            FrameBound::CurrentRow => self.word("CURRENT ROW"),
            FrameBound::UnboundedFollowing => self.word("UNBOUNDED FOLLOWING"),
            FrameBound::Preceding(e) => {
                self.expr(e, LOWEST);
                self.word(" PRECEDING");
            }
            FrameBound::Following(e) => {
                self.expr(e, LOWEST);
                self.word(" FOLLOWING");
            }
        }
    }
}
