//! Printing of `CREATE` and `ALTER`.

use super::*;

impl Printer {
    fn create(&mut self, temp: bool, what: &str, if_not_exists: bool, name: &QualifiedName) {
        self.word(if temp { "CREATE TEMP " } else { "CREATE " });
        self.word(what);
        self.word(if if_not_exists { " IF NOT EXISTS " } else { " " });
        self.qualified(name);
    }

    pub(super) fn create_table(&mut self, s: &CreateTable) {
        self.create(s.temp, "TABLE", s.if_not_exists, &s.name);
        match &s.body {
            CreateTableBody::As(q) => {
                self.word(" AS ");
                self.select(q);
            }
            CreateTableBody::Columns { columns, constraints, without_rowid, strict } => {
                self.word("(");
                self.list(columns, |p, c| p.column_def(c));
                for c in constraints {
                    self.word(", ");
                    self.table_constraint(c);
                }
                self.word(")");
                self.word(match (without_rowid, strict) {
                    (false, false) => "",
                    (true, false) => " WITHOUT ROWID",
                    (false, true) => " STRICT",
                    (true, true) => " WITHOUT ROWID, STRICT",
                });
            }
        }
    }

    fn on_conflict(&mut self, c: &Option<Conflict>) {
        if let Some(c) = c {
            self.word(" ON CONFLICT ");
            self.resolution(*c);
        }
    }

    fn constraint_name(&mut self, name: &Option<Name>) {
        if let Some(n) = name {
            self.word("CONSTRAINT ");
            self.name(n);
            self.word(" ");
        }
    }

    fn in_parentheses(&mut self, before: &str, e: &Expr) {
        self.word(before);
        self.word("(");
        self.expr(e, LOWEST);
        self.word(")");
    }

    fn column_def(&mut self, c: &ColumnDef) {
        self.name(&c.name);
        if let Some(ty) = &c.ty {
            self.word(" ");
            self.word(&ty.text);
        }
        for c in &c.constraints {
            self.word(" ");
            self.column_constraint(c);
        }
    }

    fn column_constraint(&mut self, c: &ColumnConstraint) {
        self.constraint_name(&c.name);
        match &c.kind {
            ColumnConstraintKind::PrimaryKey { order, conflict, autoincrement } => {
                self.word("PRIMARY KEY");
                self.word(match order {
                    None => "",
                    Some(SortOrder::Asc) => " ASC",
                    Some(SortOrder::Desc) => " DESC",
                });
                self.on_conflict(conflict);
                self.word(if *autoincrement { " AUTOINCREMENT" } else { "" });
            }
            ColumnConstraintKind::Null(c) => {
                self.word("NULL");
                self.on_conflict(c);
            }
            ColumnConstraintKind::NotNull(c) => {
                self.word("NOT NULL");
                self.on_conflict(c);
            }
            ColumnConstraintKind::Unique(c) => {
                self.word("UNIQUE");
                self.on_conflict(c);
            }
            ColumnConstraintKind::Check(e, _) => self.in_parentheses("CHECK ", e),
            ColumnConstraintKind::Default(e, _) => {
                let bare = match e {
                    Expr::Literal(..) => true,
                    Expr::Unary(UnaryOp::Neg | UnaryOp::Plus, e) => matches!(**e, Expr::Literal(..)),
                    _ => false,
                };
                self.word("DEFAULT ");
                if bare {
                    self.bare_expr(e);
                } else {
                    self.in_parentheses("", e);
                }
            }
            ColumnConstraintKind::Collate(n) => {
                self.word("COLLATE ");
                self.name(n);
            }
            ColumnConstraintKind::References(t) => self.foreign_key_target(t),
            ColumnConstraintKind::Deferrable(deferred) => {
                self.word(if *deferred { "DEFERRABLE INITIALLY DEFERRED" } else { "NOT DEFERRABLE" });
            }
            ColumnConstraintKind::Generated { expr, stored, .. } => {
                self.in_parentheses("AS ", expr);
                self.word(if *stored { " STORED" } else { " VIRTUAL" });
            }
        }
    }

    fn table_constraint(&mut self, c: &TableConstraint) {
        self.constraint_name(&c.name);
        match &c.kind {
            TableConstraintKind::PrimaryKey { columns, autoincrement, conflict } => {
                self.word("PRIMARY KEY (");
                self.sort_terms(columns);
                self.word(if *autoincrement { " AUTOINCREMENT)" } else { ")" });
                self.on_conflict(conflict);
            }
            TableConstraintKind::Unique { columns, conflict } => {
                self.word("UNIQUE (");
                self.sort_terms(columns);
                self.word(")");
                self.on_conflict(conflict);
            }
            TableConstraintKind::Check { expr, conflict, .. } => {
                self.in_parentheses("CHECK ", expr);
                self.on_conflict(conflict);
            }
            TableConstraintKind::ForeignKey { columns, target } => {
                self.word("FOREIGN KEY ");
                self.names(columns);
                self.word(" ");
                self.foreign_key_target(target);
            }
        }
    }

    fn foreign_key_target(&mut self, t: &ForeignKeyTarget) {
        self.word("REFERENCES ");
        self.name(&t.table);
        if !t.columns.is_empty() {
            self.names(&t.columns);
        }
        for (event, action) in [(" ON DELETE", t.on_delete), (" ON UPDATE", t.on_update)] {
            let text = match action {
                ForeignKeyAction::NoAction => continue,
                ForeignKeyAction::Restrict => " RESTRICT",
                ForeignKeyAction::SetNull => " SET NULL",
                ForeignKeyAction::SetDefault => " SET DEFAULT",
                ForeignKeyAction::Cascade => " CASCADE",
            };
            self.word(event);
            self.word(text);
        }
        if let Some(n) = &t.matching {
            self.word(" MATCH ");
            self.name(n);
        }
        self.word(if t.deferred { " DEFERRABLE INITIALLY DEFERRED" } else { "" });
    }

    pub(super) fn create_index(&mut self, s: &CreateIndex) {
        let what = if s.unique { "UNIQUE INDEX" } else { "INDEX" };
        self.create(false, what, s.if_not_exists, &s.name);
        self.word(" ON ");
        self.name(&s.table);
        self.word("(");
        self.sort_terms(&s.columns);
        self.word(")");
        self.clause(" WHERE ", &s.filter);
    }

    pub(super) fn create_view(&mut self, s: &CreateView) {
        self.create(s.temp, "VIEW", s.if_not_exists, &s.name);
        if !s.columns.is_empty() {
            self.names(&s.columns);
        }
        self.word(" AS ");
        self.select(&s.select);
    }

    pub(super) fn create_trigger(&mut self, s: &CreateTrigger) {
        self.create(s.temp, "TRIGGER", s.if_not_exists, &s.name);
        self.word(match s.time {
            TriggerTime::Before => " BEFORE ",
            TriggerTime::After => " AFTER ",
            TriggerTime::InsteadOf => " INSTEAD OF ",
        });
        match &s.event {
            TriggerEvent::Delete => self.word("DELETE"),
            TriggerEvent::Insert => self.word("INSERT"),
            TriggerEvent::Update(columns) => {
                self.word("UPDATE");
                if !columns.is_empty() {
                    self.word(" OF ");
                    self.list(columns, |p, n| p.name(n));
                }
            }
        }
        self.word(" ON ");
        self.qualified(&s.table);
        self.clause(" WHEN ", &s.when);
        self.word(" BEGIN ");
        for (step, _) in &s.body {
            self.stmt(step);
            self.word("; ");
        }
        self.word("END");
    }

    pub(super) fn create_virtual_table(&mut self, s: &CreateVirtualTable) {
        self.create(false, "VIRTUAL TABLE", s.if_not_exists, &s.name);
        self.word(" USING ");
        self.name(&s.module);
        if !s.args.is_empty() {
            self.word("(");
            self.list(&s.args, |p, a| p.word(a));
            self.word(")");
        }
    }

    pub(super) fn alter(&mut self, s: &AlterTable) {
        self.word("ALTER TABLE ");
        self.qualified(&s.table);
        match &s.action {
            AlterAction::RenameTable(n) => {
                self.word(" RENAME TO ");
                self.name(n);
            }
            AlterAction::RenameColumn(old, new) => {
                self.word(" RENAME COLUMN ");
                self.name(old);
                self.word(" TO ");
                self.name(new);
            }
            AlterAction::AddColumn(c) => {
                self.word(" ADD COLUMN ");
                self.column_def(c);
            }
            AlterAction::DropColumn(n) => {
                self.word(" DROP COLUMN ");
                self.name(n);
            }
            AlterAction::DropConstraint(n) => {
                self.word(" DROP CONSTRAINT ");
                self.name(n);
            }
            AlterAction::DropNotNull(n) => {
                self.word(" ALTER COLUMN ");
                self.name(n);
                self.word(" DROP NOT NULL");
            }
            AlterAction::SetNotNull { column, conflict, .. } => {
                self.word(" ALTER COLUMN ");
                self.name(column);
                self.word(" SET NOT NULL");
                self.on_conflict(conflict);
            }
            AlterAction::AddCheck { name, expr, conflict, .. } => {
                self.word(" ADD ");
                self.constraint_name(name);
                self.in_parentheses("CHECK ", expr);
                self.on_conflict(conflict);
            }
        }
    }
}
