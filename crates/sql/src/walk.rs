//! Walks over syntax trees: every table name that a query or a trigger's statement mentions, nested queries included, and
//! whether there are parameters.
//!
//! Knows nothing of scopes: a name that a WITH clause defines is reported like any other.

use crate::ast::*;
use iolite_base::SmallStr;

/// Calls `f` with each table name.
pub struct TableNames<'f> {
    f: &'f mut dyn FnMut(&QualifiedName),
    /// A parameter was met.
    pub parameters: bool,
    /// How many names were reported.
    pub count: usize,
    /// The names that WITH clauses defined, and which of the reported ones stand in their queries.
    pub defined: Vec<(SmallStr, std::ops::Range<usize>)>,
}

impl<'f> TableNames<'f> {
    /// A walk that reports to `f`.
    pub fn new(f: &'f mut dyn FnMut(&QualifiedName)) -> TableNames<'f> {
        TableNames { f, parameters: false, count: 0, defined: Vec::new() }
    }

    fn note(&mut self, name: &QualifiedName) {
        self.count += 1;
        (self.f)(name);
    }

    /// A query.
    pub fn select(&mut self, s: &Select) {
        // The last arm first, as names are looked up, and with it the WITH clause.
        let mut with = s.with.as_ref();
        for c in s.compounds.iter().rev().map(|(_, c)| c).chain([&s.first]) {
            self.core(c, with.take());
        }
        self.terms(&s.order_by);
        self.exprs(s.limit.iter().chain(&s.offset));
    }

    /// A trigger: its condition and its statements.
    pub fn trigger(&mut self, t: &CreateTrigger) {
        self.exprs(&t.when);
        for (s, _) in &t.body {
            match s {
                Stmt::Select(s) => self.select(s),
                Stmt::Insert(i) => {
                    self.with(i.with.as_ref());
                    self.note(&i.table);
                    if let InsertSource::Select(s) = &i.source {
                        self.select(s);
                    }
                    for u in i.upserts.iter().filter_map(|u| u.action.as_ref()) {
                        self.exprs(u.sets.iter().map(|s| &s.value).chain(&u.filter));
                    }
                }
                Stmt::Update(u) => {
                    self.with(u.with.as_ref());
                    self.note(&u.table);
                    self.exprs(u.sets.iter().map(|s| &s.value).chain(&u.filter));
                    u.from.iter().for_each(|f| self.from(f));
                }
                Stmt::Delete(d) => {
                    self.with(d.with.as_ref());
                    self.note(&d.table);
                    self.exprs(&d.filter);
                }
                _ => {}
            }
        }
    }

    fn with(&mut self, w: Option<&With>) {
        for c in w.iter().flat_map(|w| &w.tables) {
            let from = self.count;
            self.select(&c.select);
            self.defined.push((c.name.text.clone(), from..self.count));
        }
    }

    /// An arm: the tables that its FROM clause names, then what is nested in it.
    fn core(&mut self, c: &SelectCore, with: Option<&With>) {
        match c {
            SelectCore::Values(rows) => {
                self.with(with);
                self.exprs(rows.fields().iter());
            }
            SelectCore::Query(q) => {
                q.from.iter().for_each(|f| self.named(f));
                self.with(with);
                for c in &q.columns {
                    if let ResultColumn::Expr { expr, .. } = c {
                        self.expr(expr);
                    }
                }
                self.exprs(q.filter.iter().chain(&q.group_by).chain(&q.having));
                q.from.iter().for_each(|f| self.nested(f));
            }
        }
    }

    fn from(&mut self, f: &From) {
        self.named(f);
        self.nested(f);
    }

    /// Tables by name, and conditions of joins.
    fn named(&mut self, f: &From) {
        let name = |w: &mut Self, t: &Table| match &t.kind {
            TableKind::Named { name, .. } | TableKind::Function { name, .. } => w.note(name),
            TableKind::Subquery(_) | TableKind::Join(_) => {}
        };
        name(self, &f.first);
        for j in &f.joins {
            name(self, &j.table);
            if let JoinConstraint::On(e) = &j.constraint {
                self.expr(e);
            }
        }
    }

    /// Queries and joins in parentheses, arguments of table functions.
    fn nested(&mut self, f: &From) {
        for t in [&f.first].into_iter().chain(f.joins.iter().map(|j| &j.table)) {
            match &t.kind {
                TableKind::Named { .. } => {}
                TableKind::Function { args, .. } => self.exprs(args),
                TableKind::Subquery(s) => self.select(s),
                TableKind::Join(f) => self.from(f),
            }
        }
    }

    fn terms(&mut self, terms: &[SortTerm]) {
        self.exprs(terms.iter().map(|t| &t.expr));
    }

    fn exprs<'e>(&mut self, list: impl IntoIterator<Item = &'e Expr>) {
        for e in list {
            self.expr(e);
        }
    }

    fn expr(&mut self, e: &Expr) {
        match e {
            Expr::Literal(..) | Expr::Column { .. } => {}
            Expr::Variable { .. } => self.parameters = true,
            Expr::Unary(_, a)
            | Expr::IsNull(a)
            | Expr::NotNull(a)
            | Expr::Cast(a, _)
            | Expr::Collate(a, _) => self.expr(a),
            Expr::Binary(_, sides) => {
                self.expr(&sides.0);
                self.expr(&sides.1);
            }
            Expr::Like { lhs, rhs, escape, .. } => {
                self.expr(lhs);
                self.expr(rhs);
                self.exprs(escape.as_deref());
            }
            Expr::Between { e, lo, hi, .. } => self.exprs([&**e, lo, hi]),
            Expr::In { lhs, rhs, .. } => {
                self.expr(lhs);
                match &**rhs {
                    InSet::List(list) => self.exprs(list),
                    InSet::Select(s) => self.select(s),
                    InSet::Table { table: name, args } => {
                        self.note(name);
                        self.exprs(args.iter().flatten());
                    }
                }
            }
            Expr::Exists(s) | Expr::Subquery(s, _) => self.select(s),
            Expr::Case { base, arms, otherwise } => {
                self.exprs(base.as_deref());
                self.exprs(arms.iter().flat_map(|(a, b)| [a, b]));
                self.exprs(otherwise.as_deref());
            }
            Expr::Call(c) => {
                self.exprs(&c.args);
                self.terms(&c.order_by);
                self.exprs(&c.filter);
            }
            Expr::Row(list, _) => self.exprs(list),
            Expr::Raise(_, e, _) => self.exprs(e.as_deref()),
        }
    }
}
