//! `CREATE`, `ALTER`, `DROP`.

use super::*;

impl Parser<'_> {
    pub(super) fn create(&mut self) -> Result<Stmt> {
        self.bump();
        let temp = self.eat(T::Temp) || self.eat(T::Temporary);
        match self.tok.kind {
            T::Table => self.create_table(temp),
            T::View => self.create_view(temp),
            T::Trigger => self.create_trigger(temp),
            T::Unique | T::Index if !temp => self.create_index(),
            T::Virtual if !temp => self.create_virtual_table(),
            _ => Err(self.unexpected()),
        }
    }

    fn create_table(&mut self, temp: bool) -> Result<Stmt> {
        self.bump();
        let if_not_exists = self.if_not_exists()?;
        let name = self.qualified()?;
        let body = if self.eat(T::As) {
            CreateTableBody::As(self.subselect()?)
        } else {
            self.expect(T::LParen)?;
            self.table_body()?
        };
        Ok(Stmt::CreateTable(Box::new(CreateTable { temp, if_not_exists, name, body })))
    }

    #[inline(never)]
    fn table_body(&mut self) -> Result<CreateTableBody> {
        let mut columns = Vec::new();
        let mut constraints = Vec::new();
        let starts_constraint =
            |kind| matches!(kind, T::Constraint | T::Primary | T::Unique | T::Check | T::Foreign);
        loop {
            columns.push(self.column_def()?);
            if !self.eat(T::Comma) {
                break;
            }
            if starts_constraint(self.tok.kind) {
                self.table_constraints(&mut constraints)?;
                break;
            }
        }
        self.expect(T::RParen)?;
        let (mut without_rowid, mut strict) = (false, false);
        // A comma may stand before the first option, too.
        if self.eat(T::Comma) && matches!(self.tok.kind, T::Semi | T::Eof) {
            return Err(self.unexpected());
        }
        while !matches!(self.tok.kind, T::Semi | T::Eof) {
            let without = self.eat(T::Without);
            let option = self.name()?;
            match (without, option.text.to_ascii_lowercase().as_str()) {
                (true, "rowid") => without_rowid = true,
                (false, "strict") => strict = true,
                _ if !matches!(self.tok.kind, T::Comma | T::Semi | T::Eof) => return Err(self.unexpected()),
                _ => {
                    let shown = option.span.of(self.text);
                    return Err(Error::sql(format!("unknown table option: {shown}")));
                }
            }
            if !self.eat(T::Comma) {
                break;
            }
            if matches!(self.tok.kind, T::Semi | T::Eof) {
                return Err(self.unexpected());
            }
        }
        Ok(CreateTableBody::Columns { columns, constraints, without_rowid, strict })
    }

    /// A column definition.
    fn column_def(&mut self) -> Result<ColumnDef> {
        let start = self.tok.start;
        let name = self.name()?;
        let ty = self.column_type()?;
        self.constraint_name = None;
        let mut constraints = Vec::new();
        while let Some(c) = self.column_constraint(&name)? {
            constraints.push(c);
        }
        Ok(ColumnDef { name, ty, constraints, span: self.since(start) })
    }

    /// A column's type. `GENERATED ALWAYS` reads like two words of it, and is taken off its end.
    fn column_type(&mut self) -> Result<Option<TypeName>> {
        let Some(mut ty) = self.type_name()? else { return Ok(None) };
        let cut = |text: &str, word: &str| {
            let at = text.len().checked_sub(word.len())?;
            let hit = text.is_char_boundary(at) && text[at..].eq_ignore_ascii_case(word);
            hit.then(|| text[..at].trim_end().len())
        };
        if let Some(n) = cut(&ty.text, "always")
            && let Some(n) = cut(&ty.text[..n], "generated")
        {
            ty.span.end = ty.span.start + n as u32;
            ty.text = ty.text[..n].into();
        }
        Ok((!ty.text.is_empty()).then_some(ty))
    }

    fn on_conflict(&mut self) -> Result<Option<Conflict>> {
        if !self.eat(T::On) {
            return Ok(None);
        }
        self.expect(T::Conflict)?;
        Ok(Some(self.resolution()?))
    }

    #[inline(never)]
    fn column_constraint(&mut self, column: &Name) -> Result<Option<ColumnConstraint>> {
        let start = self.tok.start;
        let mut name = None;
        while self.eat(T::Constraint) {
            name = Some(self.name()?);
            self.constraint_name = name.clone();
        }
        let kind = match self.tok.kind {
            T::Default => self.default_value()?,
            T::Null => {
                self.bump();
                ColumnConstraintKind::Null(self.on_conflict()?)
            }
            T::Not => {
                self.bump();
                if self.tok.kind == T::Deferrable {
                    self.deferrable(true)?
                } else {
                    self.expect(T::Null)?;
                    ColumnConstraintKind::NotNull(self.on_conflict()?)
                }
            }
            T::Deferrable => self.deferrable(false)?,
            T::Primary => {
                self.bump();
                self.expect(T::Key)?;
                let order = match self.tok.kind {
                    T::Asc => Some(SortOrder::Asc),
                    T::Desc => Some(SortOrder::Desc),
                    _ => None,
                };
                if order.is_some() {
                    self.bump();
                }
                let conflict = self.on_conflict()?;
                ColumnConstraintKind::PrimaryKey {
                    order,
                    conflict,
                    autoincrement: self.eat(T::Autoincrement),
                }
            }
            T::Unique => {
                self.bump();
                ColumnConstraintKind::Unique(self.on_conflict()?)
            }
            T::Check => {
                let (e, span) = self.check()?;
                name = name.or_else(|| self.constraint_name.clone());
                ColumnConstraintKind::Check(e, span)
            }
            T::References => {
                self.bump();
                ColumnConstraintKind::References(self.foreign_key_target(true)?)
            }
            T::Collate => {
                self.bump();
                ColumnConstraintKind::Collate(self.ids()?)
            }
            T::Generated => {
                self.bump();
                self.expect(T::Always)?;
                if self.tok.kind != T::As {
                    return Err(self.unexpected());
                }
                self.generated(column)?
            }
            T::As => self.generated(column)?,
            _ => return Ok(None),
        };
        Ok(Some(ColumnConstraint { name, kind, span: self.since(start) }))
    }

    /// `CHECK (e)`: the expression and its text.
    fn check(&mut self) -> Result<(Expr, Span)> {
        self.bump();
        self.in_parentheses()
    }

    /// `(e)`: the expression and its text, without the space around it.
    fn in_parentheses(&mut self) -> Result<(Expr, Span)> {
        self.expect(T::LParen)?;
        let start = self.prev;
        let e = self.expr()?;
        let span = self.up_to_here(start);
        self.expect(T::RParen)?;
        Ok((e, span))
    }

    fn generated(&mut self, column: &Name) -> Result<ColumnConstraintKind> {
        self.bump();
        let (expr, span) = self.in_parentheses()?;
        let mut stored = false;
        if matches!(self.tok.kind, kind if kind.is_ids() && kind != T::Str) && self.tok.kind != T::Generated {
            let word = self.raw(self.tok);
            stored = word.eq_ignore_ascii_case("stored");
            if !stored && !word.eq_ignore_ascii_case("virtual") {
                return Err(Error::sql(format!("error in generated column \"{}\"", column.text)));
            }
            self.bump();
        }
        Ok(ColumnConstraintKind::Generated { expr, stored, span })
    }

    /// `DEFAULT` with a literal, a signed literal, an expression in parentheses, or a bare word for a text.
    fn default_value(&mut self) -> Result<ColumnConstraintKind> {
        self.bump();
        let t = self.tok;
        let span = Span { start: t.start, end: t.end };
        let e = match t.kind {
            T::LParen => self.in_parentheses()?.0,
            T::Plus | T::Minus => {
                self.bump();
                let e = Box::new(self.term()?);
                Expr::Unary(if t.kind == T::Plus { UnaryOp::Plus } else { UnaryOp::Neg }, e)
            }
            T::CurrentDate | T::CurrentTime | T::CurrentTimestamp => self.term()?,
            T::Indexed => self.default_word(span),
            kind if kind.is_ids() && kind != T::Str => self.default_word(span),
            _ => self.term()?,
        };
        Ok(ColumnConstraintKind::Default(e, self.since(t.start)))
    }

    fn default_word(&mut self, span: Span) -> Expr {
        let word = self.take_name();
        let bare = word.quote == Quote::None;
        let literal = match () {
            _ if bare && word.text.eq_ignore_ascii_case("true") => Literal::True,
            _ if bare && word.text.eq_ignore_ascii_case("false") => Literal::False,
            _ => Literal::Text(word.text.as_str().into()),
        };
        Expr::Literal(literal, span)
    }

    /// A literal.
    fn term(&mut self) -> Result<Expr> {
        let t = self.tok;
        let literal = match t.kind {
            T::Null => Literal::Null,
            T::Int => Literal::Integer(plain_number(self.raw(t))),
            T::Float => Literal::Real(plain_number(self.raw(t))),
            T::Str => Literal::Text(unquote(self.raw(t))),
            T::Blob => Literal::Blob(expr::unhex(self.raw(t))),
            T::CurrentDate => Literal::CurrentDate,
            T::CurrentTime => Literal::CurrentTime,
            T::CurrentTimestamp => Literal::CurrentTimestamp,
            _ => return Err(self.unexpected()),
        };
        self.bump();
        Ok(Expr::Literal(literal, Span { start: t.start, end: t.end }))
    }

    /// `DEFERRABLE [INITIALLY ...]`, the `NOT` before it consumed.
    fn deferrable(&mut self, not: bool) -> Result<ColumnConstraintKind> {
        Ok(ColumnConstraintKind::Deferrable(self.deferral()? && !not))
    }

    /// `DEFERRABLE [INITIALLY DEFERRED | INITIALLY IMMEDIATE]`: whether deferred.
    fn deferral(&mut self) -> Result<bool> {
        self.expect(T::Deferrable)?;
        if !self.eat(T::Initially) {
            return Ok(false);
        }
        if self.eat(T::Deferred) {
            return Ok(true);
        }
        self.expect(T::Immediate)?;
        Ok(false)
    }

    /// What follows `REFERENCES`. After a column's, `NOT` may start another constraint.
    fn foreign_key_target(&mut self, column: bool) -> Result<ForeignKeyTarget> {
        let table = self.name()?;
        let mut target = ForeignKeyTarget {
            table,
            columns: self.column_name_list_opt()?,
            on_delete: ForeignKeyAction::NoAction,
            on_update: ForeignKeyAction::NoAction,
            deferred: false,
            matching: None,
        };
        loop {
            if self.eat(T::Match) {
                target.matching = Some(self.name()?);
                continue;
            }
            if !self.eat(T::On) {
                break;
            }
            let event = self.tok.kind;
            if !matches!(event, T::Insert | T::Delete | T::Update) {
                return Err(self.unexpected());
            }
            self.bump();
            let action = self.foreign_key_action()?;
            match event {
                T::Delete => target.on_delete = action,
                T::Update => target.on_update = action,
                _ => {}
            }
        }
        if self.tok.kind == T::Deferrable {
            target.deferred = self.deferral()?;
        } else if self.tok.kind == T::Not && (!column || self.peek() == T::Deferrable) {
            self.bump();
            self.deferral()?;
        }
        Ok(target)
    }

    fn foreign_key_action(&mut self) -> Result<ForeignKeyAction> {
        let t = self.tok.kind;
        match t {
            T::Set | T::No | T::Cascade | T::Restrict => self.bump(),
            _ => return Err(self.unexpected()),
        }
        match t {
            T::Cascade => Ok(ForeignKeyAction::Cascade),
            T::Restrict => Ok(ForeignKeyAction::Restrict),
            T::No => self.expect(T::Action).map(|()| ForeignKeyAction::NoAction),
            _ if self.eat(T::Null) => Ok(ForeignKeyAction::SetNull),
            _ => self.expect(T::Default).map(|()| ForeignKeyAction::SetDefault),
        }
    }

    /// Table constraints. The commas between them may be missing; a `CONSTRAINT name` may stand alone.
    fn table_constraints(&mut self, list: &mut Vec<TableConstraint>) -> Result<()> {
        loop {
            let start = self.tok.start;
            let mut name = None;
            while self.eat(T::Constraint) {
                name = Some(self.name()?);
                self.constraint_name = name.clone();
            }
            let kind = match self.tok.kind {
                T::Primary => {
                    self.bump();
                    self.expect(T::Key)?;
                    self.expect(T::LParen)?;
                    let columns = self.key_terms()?;
                    let autoincrement = self.eat(T::Autoincrement);
                    self.expect(T::RParen)?;
                    Some(TableConstraintKind::PrimaryKey {
                        columns,
                        autoincrement,
                        conflict: self.on_conflict()?,
                    })
                }
                T::Unique => {
                    self.bump();
                    self.expect(T::LParen)?;
                    let columns = self.key_terms()?;
                    self.expect(T::RParen)?;
                    Some(TableConstraintKind::Unique { columns, conflict: self.on_conflict()? })
                }
                T::Check => {
                    let (expr, span) = self.check()?;
                    name = name.or_else(|| self.constraint_name.clone());
                    Some(TableConstraintKind::Check { expr, span, conflict: self.on_conflict()? })
                }
                T::Foreign => {
                    self.bump();
                    self.expect(T::Key)?;
                    if self.tok.kind != T::LParen {
                        return Err(self.unexpected());
                    }
                    let columns = self.column_name_list_opt()?;
                    self.expect(T::References)?;
                    Some(TableConstraintKind::ForeignKey { columns, target: self.foreign_key_target(false)? })
                }
                _ => None,
            };
            if let Some(kind) = kind {
                list.push(TableConstraint { name, kind, span: self.since(start) });
            } else if name.is_none() {
                return Err(self.unexpected());
            }
            match self.tok.kind {
                T::Comma => {
                    self.bump();
                    self.constraint_name = None;
                }
                T::RParen => return Ok(()),
                _ => {}
            }
        }
    }

    fn key_terms(&mut self) -> Result<Vec<SortTerm>> {
        let terms = self.sort_terms()?;
        dml::no_nulls_order(&terms)?;
        Ok(terms)
    }

    fn create_view(&mut self, temp: bool) -> Result<Stmt> {
        self.bump();
        let if_not_exists = self.if_not_exists()?;
        let name = self.qualified()?;
        let columns = self.column_name_list_opt()?;
        self.expect(T::As)?;
        let select = self.subselect()?;
        Ok(Stmt::CreateView(Box::new(CreateView { temp, if_not_exists, name, columns, select })))
    }

    fn create_index(&mut self) -> Result<Stmt> {
        let unique = self.eat(T::Unique);
        self.expect(T::Index)?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.qualified()?;
        self.expect(T::On)?;
        let table = self.name()?;
        self.expect(T::LParen)?;
        let columns = self.sort_terms()?;
        self.expect(T::RParen)?;
        let filter = if self.eat(T::Where) { Some(self.expr()?) } else { None };
        dml::no_nulls_order(&columns)?;
        Ok(Stmt::CreateIndex(Box::new(CreateIndex { unique, if_not_exists, name, table, columns, filter })))
    }

    fn create_virtual_table(&mut self) -> Result<Stmt> {
        self.bump();
        self.expect(T::Table)?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.qualified()?;
        self.expect(T::Using)?;
        let module = self.name()?;
        let mut args = Vec::new();
        if self.eat(T::LParen) {
            self.module_arguments(&mut args)?;
        }
        let table = CreateVirtualTable { if_not_exists, name, module, args };
        Ok(Stmt::CreateVirtualTable(Box::new(table)))
    }

    /// The raw texts between the commas, up to and with the closing parenthesis. Empty ones do not count.
    fn module_arguments(&mut self, args: &mut Vec<Box<str>>) -> Result<()> {
        let mut nested = 0u32;
        let mut start = None;
        loop {
            match self.tok.kind {
                T::Eof | T::Illegal => return Err(self.unexpected()),
                T::Comma | T::RParen if nested == 0 => {
                    if let Some(start) = start.take() {
                        args.push(self.since(start).of(self.text).into());
                    }
                    let done = self.tok.kind == T::RParen;
                    self.bump();
                    if done {
                        return Ok(());
                    }
                    continue;
                }
                T::LParen => nested += 1,
                T::RParen => nested -= 1,
                _ => {}
            }
            start.get_or_insert(self.tok.start);
            self.bump();
        }
    }

    #[inline(never)]
    fn create_trigger(&mut self, temp: bool) -> Result<Stmt> {
        self.bump();
        let if_not_exists = self.if_not_exists()?;
        let name = self.qualified()?;
        let time = match self.tok.kind {
            T::Before => TriggerTime::Before,
            T::After => TriggerTime::After,
            T::Instead => TriggerTime::InsteadOf,
            _ => TriggerTime::Before,
        };
        if matches!(self.tok.kind, T::Before | T::After | T::Instead) {
            self.bump();
        }
        if time == TriggerTime::InsteadOf {
            self.expect(T::Of)?;
        }
        let event = match self.tok.kind {
            T::Delete => TriggerEvent::Delete,
            T::Insert => TriggerEvent::Insert,
            T::Update => TriggerEvent::Update(Vec::new()),
            _ => return Err(self.unexpected()),
        };
        self.bump();
        let event = match event {
            TriggerEvent::Update(mut columns) if self.eat(T::Of) => {
                loop {
                    columns.push(self.name()?);
                    if !self.eat(T::Comma) {
                        break;
                    }
                }
                TriggerEvent::Update(columns)
            }
            event => event,
        };
        self.expect(T::On)?;
        let table = self.qualified()?;
        if self.eat(T::For) {
            self.expect(T::Each)?;
            self.expect(T::Row)?;
        }
        let when = if self.eat(T::When) { Some(self.expr()?) } else { None };
        self.expect(T::Begin)?;
        self.in_trigger = true;
        let mut body = Vec::new();
        loop {
            let start = self.tok.start;
            let stmt = self.trigger_step()?;
            let span = self.since(start);
            self.expect(T::Semi)?;
            body.push((stmt, span));
            if self.eat(T::End) {
                break;
            }
        }
        self.in_trigger = false;
        let trigger = CreateTrigger { temp, if_not_exists, name, time, event, table, when, body };
        Ok(Stmt::CreateTrigger(Box::new(trigger)))
    }

    fn trigger_step(&mut self) -> Result<Stmt> {
        let stmt = match self.tok.kind {
            T::With => Stmt::Select(self.select()?),
            T::Select | T::Values | T::Insert | T::Replace | T::Update | T::Delete => self.command()?,
            _ => return Err(self.unexpected()),
        };
        let indexed = match &stmt {
            Stmt::Update(s) => &s.indexed,
            Stmt::Delete(s) => &s.indexed,
            _ => return Ok(stmt),
        };
        let clause = match indexed {
            Indexed::Any => return Ok(stmt),
            Indexed::By(_) => "INDEXED BY",
            Indexed::Not => "NOT INDEXED",
        };
        Err(Error::sql(format!(
            "the {clause} clause is not allowed on UPDATE or DELETE statements within triggers"
        )))
    }

    pub(super) fn alter(&mut self) -> Result<Stmt> {
        self.bump();
        self.expect(T::Table)?;
        let table = self.qualified()?;
        let action = match self.tok.kind {
            T::Rename => {
                self.bump();
                if self.eat(T::To) {
                    AlterAction::RenameTable(self.name()?)
                } else {
                    self.eat(T::Column);
                    let old = self.name()?;
                    self.expect(T::To)?;
                    AlterAction::RenameColumn(old, self.name()?)
                }
            }
            T::Add => {
                self.bump();
                if matches!(self.tok.kind, T::Constraint | T::Check) {
                    self.add_check()?
                } else {
                    self.eat(T::Column);
                    AlterAction::AddColumn(Box::new(self.column_def()?))
                }
            }
            T::Drop => {
                self.bump();
                if self.eat(T::Constraint) {
                    AlterAction::DropConstraint(self.name()?)
                } else {
                    self.eat(T::Column);
                    AlterAction::DropColumn(self.name()?)
                }
            }
            T::Alter => self.alter_column()?,
            _ => return Err(self.unexpected()),
        };
        Ok(Stmt::AlterTable(Box::new(AlterTable { table, action })))
    }

    fn add_check(&mut self) -> Result<AlterAction> {
        let start = self.tok.start;
        let name = if self.eat(T::Constraint) { Some(self.name()?) } else { None };
        if self.tok.kind != T::Check {
            return Err(self.unexpected());
        }
        let (expr, expr_span) = self.check()?;
        let conflict = self.on_conflict()?;
        Ok(AlterAction::AddCheck { name, expr, expr_span, conflict, span: self.since(start) })
    }

    fn alter_column(&mut self) -> Result<AlterAction> {
        self.bump();
        self.eat(T::Column);
        let column = self.name()?;
        if self.eat(T::Drop) {
            self.expect(T::Not)?;
            self.expect(T::Null)?;
            return Ok(AlterAction::DropNotNull(column));
        }
        self.expect(T::Set)?;
        let start = self.tok.start;
        self.expect(T::Not)?;
        self.expect(T::Null)?;
        let conflict = self.on_conflict()?;
        Ok(AlterAction::SetNotNull { column, conflict, span: self.since(start) })
    }

    pub(super) fn drop_object(&mut self) -> Result<Stmt> {
        self.bump();
        let kind = match self.tok.kind {
            T::Table => ObjectKind::Table,
            T::View => ObjectKind::View,
            T::Index => ObjectKind::Index,
            T::Trigger => ObjectKind::Trigger,
            _ => return Err(self.unexpected()),
        };
        self.bump();
        let if_exists = self.if_exists()?;
        Ok(Stmt::Drop { kind, if_exists, name: self.qualified()? })
    }
}
