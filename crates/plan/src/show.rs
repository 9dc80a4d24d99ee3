//! Bound expressions as text, for people: columns as `table.column` numbers, constants as literals.

use crate::bound::*;
use std::fmt::{Display, Formatter, Result};

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Expr::Const(v) if v.is_null() => f.write_str("NULL"),
            Expr::Const(v @ iolite_value::Value::Text(..)) => write!(f, "'{}'", v.to_string_lossy()),
            Expr::Const(v) => f.write_str(&v.to_string_lossy()),
            Expr::Param(n) => write!(f, "?{n}"),
            Expr::Column(c) if c.column == ROWID => write!(f, "{}.rowid", c.table),
            Expr::Column(c) => write!(f, "{}.{}", c.table, c.column),
            Expr::RowOrder(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|c| Expr::Compare(Box::new(c.clone())).to_string()).collect();
                write!(f, "(first difference: {})", fields.join(", "))
            }
            Expr::Compare(c) => {
                let op = match (c.op, c.null_eq) {
                    (CmpOp::Eq, true) => "IS",
                    (CmpOp::Ne, true) => "IS NOT",
                    (CmpOp::Eq, _) => "=",
                    (CmpOp::Ne, _) => "<>",
                    (CmpOp::Lt, _) => "<",
                    (CmpOp::Le, _) => "<=",
                    (CmpOp::Gt, _) => ">",
                    (CmpOp::Ge, _) => ">=",
                };
                write!(f, "({} {op} {} as {})", c.lhs, c.rhs, c.affinity.letter())
            }
            Expr::Between { lo, hi } => {
                write!(f, "({} BETWEEN {} AND {} as {})", lo.lhs, lo.rhs, hi.rhs, lo.affinity.letter())
            }
            Expr::And(a, b) => write!(f, "({a} AND {b})"),
            Expr::Or(a, b) => write!(f, "({a} OR {b})"),
            Expr::Not(a) => write!(f, "(NOT {a})"),
            Expr::IsNull(a) => write!(f, "({a} IS NULL)"),
            Expr::NotNull(a) => write!(f, "({a} IS NOT NULL)"),
            Expr::Binary(op, a, b) => {
                let op = match op {
                    BinOp::Add => "+",
                    BinOp::Sub => "-",
                    BinOp::Mul => "*",
                    BinOp::Div => "/",
                    BinOp::Rem => "%",
                    BinOp::Concat => "||",
                    BinOp::BitAnd => "&",
                    BinOp::BitOr => "|",
                    BinOp::ShiftLeft => "<<",
                    BinOp::ShiftRight => ">>",
                };
                write!(f, "({a} {op} {b})")
            }
            Expr::Call(c) => {
                let args: Vec<String> = c.args.iter().map(|a| a.to_string()).collect();
                write!(f, "{}({})", c.function.name, args.join(", "))
            }
            Expr::Agg(id, _) => write!(f, "aggregate {id}"),
            Expr::Subquery(s, n) => write!(f, "(query {}).{n}", s.id),
            Expr::Exists(s) => write!(f, "EXISTS (query {})", s.id),
            Expr::Plus(a) => write!(f, "+{a}"),
            Expr::Neg(a) => write!(f, "-{a}"),
            Expr::Collate(a, c) if c.is_binary() => write!(f, "{a}"),
            Expr::Collate(a, c) => write!(f, "({a} COLLATE {})", c.name()),
            Expr::Cast(a, to) => write!(f, "CAST({a} AS {})", to.letter()),
            // Parameters of a trigger: old rowid, old columns, new rowid, new columns.
            Expr::TriggerColumn(_, slot) => write!(f, "row.{slot}"),
            Expr::NoSubtype(a) | Expr::Merged(a) => write!(f, "{a}"),
            Expr::Raise(kind, Some(m)) => write!(f, "RAISE({kind:?}, {m})"),
            Expr::Raise(kind, None) => write!(f, "RAISE({kind:?})"),
            Expr::InSelect(i) => {
                let word = if i.not { "NOT IN" } else { "IN" };
                let lhs: Vec<String> = i.lhs.iter().map(Expr::to_string).collect();
                write!(f, "({} {word} (query {}))", lhs.join(", "), i.select.id)
            }
            Expr::InList(i) => {
                let word = if i.not { "NOT IN" } else { "IN" };
                let list: Vec<String> = i.list.iter().map(Expr::to_string).collect();
                write!(f, "({} {word} ({}))", i.lhs, list.join(", "))
            }
            other => write!(f, "{other:?}"),
        }
    }
}
