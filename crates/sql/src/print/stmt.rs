//! Printing of queries and statements.

use super::*;

impl Printer {
    pub(super) fn parsed(&mut self, s: &Parsed) {
        self.word(match s.explain {
            ExplainMode::None => "",
            ExplainMode::Program => "EXPLAIN ",
            ExplainMode::QueryPlan => "EXPLAIN QUERY PLAN ",
            ExplainMode::Analyze => "EXPLAIN ANALYZE ",
        });
        self.stmt(&s.stmt);
    }

    pub(super) fn stmt(&mut self, s: &Stmt) {
        match s {
            Stmt::Select(s) => self.select(s),
            Stmt::Insert(s) => self.insert(s),
            Stmt::Update(s) => self.update(s),
            Stmt::Delete(s) => self.delete(s),
            Stmt::CreateTable(s) => self.create_table(s),
            Stmt::CreateIndex(s) => self.create_index(s),
            Stmt::CreateView(s) => self.create_view(s),
            Stmt::CreateTrigger(s) => self.create_trigger(s),
            Stmt::CreateVirtualTable(s) => self.create_virtual_table(s),
            Stmt::AlterTable(s) => self.alter(s),
            Stmt::Drop { kind, if_exists, name } => {
                self.word(match kind {
                    ObjectKind::Table => "DROP TABLE ",
                    ObjectKind::View => "DROP VIEW ",
                    ObjectKind::Index => "DROP INDEX ",
                    ObjectKind::Trigger => "DROP TRIGGER ",
                });
                self.word(if *if_exists { "IF EXISTS " } else { "" });
                self.qualified(name);
            }
            Stmt::Begin(mode) => self.word(match mode {
                BeginMode::Deferred => "BEGIN",
                BeginMode::Immediate => "BEGIN IMMEDIATE",
                BeginMode::Exclusive => "BEGIN EXCLUSIVE",
                BeginMode::Concurrent => "BEGIN CONCURRENT",
            }),
            Stmt::Commit => self.word("COMMIT"),
            Stmt::Rollback => self.word("ROLLBACK"),
            Stmt::Savepoint(n) => self.named("SAVEPOINT ", n),
            Stmt::Release(n) => self.named("RELEASE SAVEPOINT ", n),
            Stmt::RollbackTo(n) => self.named("ROLLBACK TO SAVEPOINT ", n),
            Stmt::Attach { file, name, key } => {
                self.word("ATTACH DATABASE ");
                self.expr(file, LOWEST);
                self.word(" AS ");
                self.expr(name, LOWEST);
                self.boxed_clause(" KEY ", key);
            }
            Stmt::Detach(e) => {
                self.word("DETACH DATABASE ");
                self.expr(e, LOWEST);
            }
            Stmt::Pragma { name, value } => {
                self.word("PRAGMA ");
                self.qualified(name);
                if let Some(v) = value {
                    self.word(if v.call { "(" } else { " = " });
                    let number = v.text.bytes().any(|b| b.is_ascii_digit())
                        && v.text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
                        && v.text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
                    if number || matches!(&*v.text.to_ascii_lowercase(), "on" | "delete" | "default") {
                        self.word(&v.text);
                    } else {
                        self.word(&quote_name(&v.text));
                    }
                    self.word(if v.call { ")" } else { "" });
                }
            }
            Stmt::Analyze(name) => self.maybe_named("ANALYZE", name),
            Stmt::Reindex(name) => self.maybe_named("REINDEX", name),
            Stmt::Vacuum { schema, into } => {
                self.word("VACUUM");
                if let Some(n) = schema {
                    self.named(" ", n);
                }
                self.boxed_clause(" INTO ", into);
            }
        }
    }

    fn named(&mut self, before: &str, n: &Name) {
        self.word(before);
        self.name(n);
    }

    fn maybe_named(&mut self, word: &str, n: &Option<QualifiedName>) {
        self.word(word);
        if let Some(n) = n {
            self.word(" ");
            self.qualified(n);
        }
    }

    fn boxed_clause(&mut self, before: &str, e: &Option<Box<Expr>>) {
        if let Some(e) = e {
            self.word(before);
            self.expr(e, LOWEST);
        }
    }

    /// `before` and the expression, if there is one.
    pub(super) fn clause(&mut self, before: &str, e: &Option<Expr>) {
        if let Some(e) = e {
            self.word(before);
            self.expr(e, LOWEST);
        }
    }

    fn with(&mut self, with: &Option<With>) {
        let Some(w) = with else { return };
        self.word(if w.recursive { "WITH RECURSIVE " } else { "WITH " });
        self.list(&w.tables, |p, t| {
            p.name(&t.name);
            if !t.columns.is_empty() {
                p.names(&t.columns);
            }
            p.word(match t.materialized {
                None => " AS (",
                Some(true) => " AS MATERIALIZED (",
                Some(false) => " AS NOT MATERIALIZED (",
            });
            p.select(&t.select);
            p.word(")");
        });
        self.word(" ");
    }

    pub(super) fn select(&mut self, s: &Select) {
        self.with(&s.with);
        self.core(&s.first);
        for (op, core) in &s.compounds {
            self.word(match op {
                CompoundOp::Union => " UNION ",
                CompoundOp::UnionAll => " UNION ALL ",
                CompoundOp::Intersect => " INTERSECT ",
                CompoundOp::Except => " EXCEPT ",
            });
            self.core(core);
        }
        self.order_by(&s.order_by, " ");
        self.limit(&s.limit, &s.offset);
    }

    fn limit(&mut self, limit: &Option<Expr>, offset: &Option<Expr>) {
        self.clause(" LIMIT ", limit);
        self.clause(" OFFSET ", offset);
    }

    fn core(&mut self, core: &SelectCore) {
        let q = match core {
            SelectCore::Query(q) => q,
            SelectCore::Values(rows) => {
                self.word("VALUES ");
                return self.list(rows.iter(), |p, row| {
                    p.word("(");
                    p.exprs(row);
                    p.word(")");
                });
            }
        };
        self.word(if q.distinct { "SELECT DISTINCT " } else { "SELECT " });
        self.result_columns(&q.columns);
        if let Some(from) = &q.from {
            self.word(" FROM ");
            self.from(from);
        }
        self.clause(" WHERE ", &q.filter);
        if !q.group_by.is_empty() {
            self.word(" GROUP BY ");
            self.exprs(&q.group_by);
        }
        self.clause(" HAVING ", &q.having);
        if !q.windows.is_empty() {
            self.word(" WINDOW ");
            self.list(&q.windows, |p, (name, w)| {
                p.name(name);
                p.word(" AS ");
                p.window(w);
            });
        }
    }

    fn result_columns(&mut self, columns: &[ResultColumn]) {
        self.list(columns, |p, c| match c {
            ResultColumn::Star(_) => p.word("*"),
            ResultColumn::TableStar(t) => {
                p.name(t);
                p.word(".*");
            }
            ResultColumn::Expr { expr, alias, .. } => {
                p.expr(expr, LOWEST);
                p.alias(alias);
            }
        });
    }

    fn alias(&mut self, alias: &Option<Name>) {
        if let Some(n) = alias {
            self.named(" AS ", n);
        }
    }

    fn from(&mut self, from: &From) {
        self.table(&from.first);
        for j in &from.joins {
            self.word(match (j.op, j.natural) {
                (JoinOp::Comma, _) => ", ",
                (JoinOp::Inner, false) => " JOIN ",
                (JoinOp::Cross, false) => " CROSS JOIN ",
                (JoinOp::Left, false) => " LEFT JOIN ",
                (JoinOp::Right, false) => " RIGHT JOIN ",
                (JoinOp::Full, false) => " FULL JOIN ",
                (JoinOp::Inner, true) => " NATURAL JOIN ",
                (JoinOp::Cross, true) => " NATURAL CROSS JOIN ",
                (JoinOp::Left, true) => " NATURAL LEFT JOIN ",
                (JoinOp::Right, true) => " NATURAL RIGHT JOIN ",
                (JoinOp::Full, true) => " NATURAL FULL JOIN ",
            });
            self.table(&j.table);
            match &j.constraint {
                JoinConstraint::None => {}
                JoinConstraint::On(e) => {
                    self.word(" ON ");
                    self.expr(e, LOWEST);
                }
                JoinConstraint::Using(names) => {
                    self.word(" USING ");
                    self.names(names);
                }
            }
        }
    }

    fn table(&mut self, t: &Table) {
        match &t.kind {
            TableKind::Named { name, indexed } => {
                self.qualified(name);
                self.alias(&t.alias);
                return self.indexed(indexed);
            }
            TableKind::Function { name, args } => {
                self.qualified(name);
                self.word("(");
                self.exprs(args);
                self.word(")");
            }
            TableKind::Subquery(s) => self.subquery(s),
            TableKind::Join(from) => {
                self.word("(");
                self.from(from);
                self.word(")");
            }
        }
        self.alias(&t.alias);
    }

    fn indexed(&mut self, indexed: &Indexed) {
        match indexed {
            Indexed::Any => {}
            Indexed::By(n) => self.named(" INDEXED BY ", n),
            Indexed::Not => self.word(" NOT INDEXED"),
        }
    }

    pub(super) fn resolution(&mut self, c: Conflict) {
        self.word(match c {
            Conflict::Rollback => "ROLLBACK",
            Conflict::Abort => "ABORT",
            Conflict::Fail => "FAIL",
            Conflict::Ignore => "IGNORE",
            Conflict::Replace => "REPLACE",
        });
    }

    fn or_conflict(&mut self, c: Option<Conflict>) {
        if let Some(c) = c {
            self.word("OR ");
            self.resolution(c);
            self.word(" ");
        }
    }

    fn returning(&mut self, columns: &[ResultColumn]) {
        if !columns.is_empty() {
            self.word(" RETURNING ");
            self.result_columns(columns);
        }
    }

    fn insert(&mut self, s: &Insert) {
        self.with(&s.with);
        self.word("INSERT ");
        self.or_conflict(s.or);
        self.word("INTO ");
        self.qualified(&s.table);
        self.alias(&s.alias);
        if !s.columns.is_empty() {
            self.names(&s.columns);
        }
        match &s.source {
            InsertSource::DefaultValues => self.word(" DEFAULT VALUES"),
            InsertSource::Select(q) => {
                self.word(" ");
                self.select(q);
            }
        }
        for u in &s.upserts {
            self.upsert(u);
        }
        self.returning(&s.returning);
    }

    fn upsert(&mut self, u: &Upsert) {
        self.word(" ON CONFLICT");
        if !u.target.is_empty() {
            self.word(" (");
            self.sort_terms(&u.target);
            self.word(")");
            self.clause(" WHERE ", &u.target_filter);
        }
        match &u.action {
            None => self.word(" DO NOTHING"),
            Some(a) => {
                self.word(" DO UPDATE SET ");
                self.assignments(&a.sets);
                self.clause(" WHERE ", &a.filter);
            }
        }
    }

    fn assignments(&mut self, sets: &[Assignment]) {
        self.list(sets, |p, a| {
            match &a.columns[..] {
                [one] => p.name(one),
                many => p.names(many),
            }
            p.word(" = ");
            p.expr(&a.value, LOWEST);
        });
    }

    fn update(&mut self, s: &Update) {
        self.with(&s.with);
        self.word("UPDATE ");
        self.or_conflict(s.or);
        self.qualified(&s.table);
        self.alias(&s.alias);
        self.indexed(&s.indexed);
        self.word(" SET ");
        self.assignments(&s.sets);
        if let Some(from) = &s.from {
            self.word(" FROM ");
            self.from(from);
        }
        self.clause(" WHERE ", &s.filter);
        self.returning(&s.returning);
        self.order_by(&s.order_by, " ");
        self.limit(&s.limit, &s.offset);
    }

    fn delete(&mut self, s: &Delete) {
        self.with(&s.with);
        self.word("DELETE FROM ");
        self.qualified(&s.table);
        self.alias(&s.alias);
        self.indexed(&s.indexed);
        self.clause(" WHERE ", &s.filter);
        self.returning(&s.returning);
        self.order_by(&s.order_by, " ");
        self.limit(&s.limit, &s.offset);
    }
}
