//! From a parsed CREATE statement to what the catalog holds.
//!
//! The same functions serve a CREATE that is being executed, whose mistakes become its error messages, and the
//! schema's text being read again.

use crate::schema::{Schema, SchemaRow, replacing_last};
use crate::stat::{DEFAULT_ROWS, IndexStat};
use crate::table::*;
use iolite_base::hash::FastSet;
use iolite_base::{Error, Limit, Limits, Pgno, Result};
use iolite_sql::ast::{self, ColumnConstraintKind, Expr, Name, SortOrder, TableConstraintKind};
use iolite_sql::parse_next;
use iolite_value::Affinity;
use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

/// Adds the object that a schema row's text describes. An error without words: the text is none of a schema, or (unless `trusting`) of
/// another object.
pub(crate) fn from_sql(
    schema: &mut Schema,
    row: &SchemaRow<'_>,
    root: Pgno,
    sql: &str,
    trusting: bool,
) -> Result<()> {
    let wordless = || Error::sql("");
    // What follows the first statement does not count.
    let (parsed, _) = parse_next(sql, &Limits::default())?.ok_or_else(wordless)?;
    let meant = |kind: &str, name: &ast::QualifiedName, table: &str| {
        let is =
            |said: &Option<Cow<'_, str>>, n: &str| said.as_ref().is_some_and(|s| s.eq_ignore_ascii_case(n));
        if name.schema.is_some() {
            Err(Error::sql("corrupt database"))
        } else if trusting || is(&row.kind, kind) && is(&row.name, &name.name.text) && is(&row.table, table) {
            Ok(())
        } else {
            Err(wordless())
        }
    };
    let free = |schema: &Schema, name: &str| match schema.table(name) {
        Some(t) if t.is_view() => Err(Error::sql(format!("view {name} already exists"))),
        Some(_) => Err(Error::sql(format!("table {name} already exists"))),
        None if schema.index(name).is_some() => {
            Err(Error::sql(format!("there is already an index named {name}")))
        }
        None => Ok(()),
    };
    match parsed.stmt {
        ast::Stmt::CreateTable(c) => {
            let name = &c.name.name.text;
            meant("table", &c.name, name)?;
            // Page 1 is the schema table's own.
            if root == 1 && !trusting || matches!(c.body, ast::CreateTableBody::As(_)) {
                return Err(wordless());
            }
            free(schema, name)?;
            let t = table_from_ast(&c, sql, root)?;
            for i in t.indexes.borrow_mut().iter_mut() {
                if let Some(i) = Rc::get_mut(i) {
                    i.heed_format(schema.format);
                }
            }
            schema.add_table(t);
        }
        ast::Stmt::CreateView(v) => {
            meant("view", &v.name, &v.name.name.text)?;
            if root != 0 {
                return Err(wordless());
            }
            free(schema, &v.name.name.text)?;
            let t = view_from_ast(&v, sql);
            schema.add_table(t);
        }
        ast::Stmt::CreateVirtualTable(v) => {
            meant("table", &v.name, &v.name.name.text)?;
            if root != 0 {
                return Err(wordless());
            }
            free(schema, &v.name.name.text)?;
            schema.add_table(virtual_from_ast(&v, sql));
        }
        ast::Stmt::CreateIndex(c) => {
            let name = &c.name.name.text;
            let Some(table) = schema.table(&c.table.text).cloned() else {
                return Err(Error::sql(format!("no such table: {}.{}", schema.name, c.table.text)));
            };
            meant("index", &c.name, &table.name)?;
            if schema.index(name).is_some() {
                return Err(Error::sql(format!("index {name} already exists")));
            }
            let mut i = index_from_ast(&c, &table, sql, root)?;
            i.heed_format(schema.format);
            let i = schema.add_index(i)?;
            if schema.shares_root(&i) {
                schema.remove_index(&i.name);
                return Err(Error::sql("invalid rootpage"));
            }
        }
        ast::Stmt::CreateTrigger(t) => {
            let temp = schema.name.eq_ignore_ascii_case("temp");
            let table = schema.table(&t.table.name.text).map(|t| t.name.clone());
            if table.is_none() && !temp {
                return Err(Error::sql(format!("no such table: {}.{}", schema.name, t.table.name.text)));
            }
            // A temporary one may be on a table of another database.
            meant("trigger", &t.name, table.as_deref().or(row.table.as_deref()).unwrap_or_default())?;
            if schema.trigger(&t.name.name.text).is_some() {
                return Err(Error::sql(format!("trigger {} already exists", t.name.name.text)));
            }
            let mut tr = trigger_from_ast(*t, sql);
            if !temp {
                // Its table is in its own database, under whatever name that was attached when it was made.
                tr.table_schema = None;
            }
            schema.add_trigger(tr);
        }
        _ => return Err(wordless()),
    }
    Ok(())
}

/// A declared type as SQLite shows it: one of the standard types in capitals, and of one that begins with a quote what stands
/// in these quotes. Whether it is a standard one, the quotes around the whole left away.
fn shown_type(written: &str) -> (Cow<'_, str>, bool) {
    let quoted = [('"', '"'), ('\'', '\''), ('`', '`'), ('[', ']')].into_iter().find_map(|(open, close)| {
        let inner = written.strip_prefix(open)?.strip_suffix(close)?;
        (!inner.contains([open, close])).then_some(inner)
    });
    match strict_type(quoted.unwrap_or(written)) {
        Some(name) => (name.into(), true),
        None => (ast::unquoted_type(written), false),
    }
}

fn blank_column(name: &str, decltype: &str) -> Column {
    Column {
        name: name.into(),
        decltype: decltype.into(),
        affinity: Affinity::of_type(decltype),
        collation: None,
        not_null: None,
        default: None,
        pk: 0,
        hidden: false,
        generated: None,
        unique: false,
        label: OnceCell::new(),
    }
}

fn blank_table(name: &str, root: Pgno, columns: Vec<Column>, kind: TableKind, sql: Option<&str>) -> Table {
    let n = columns.len();
    Table {
        name: name.into(),
        root: Cell::new(root),
        columns,
        kind,
        rowid_alias: None,
        autoincrement: false,
        strict: false,
        key_conflict: None,
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        indexes: RefCell::new(Vec::new()),
        triggers: RefCell::new(Vec::new()),
        sql: sql.map(Into::into),
        rows: Cell::new(DEFAULT_ROWS),
        has_stat: Cell::new(false),
        stat_used: Cell::new(false),
        storage: (0..n).collect(),
        field_of: (0..n).map(Some).collect(),
        absent: OnceCell::new(),
        affinities: OnceCell::new(),
    }
}

impl Table {
    /// A table that is not stored: the rows of a query, with the names and affinities of its columns.
    pub fn of_query(name: &str, columns: impl Iterator<Item = (Rc<str>, Affinity)>) -> Table {
        let column = |(name, affinity): (Rc<str>, Affinity)| Column { affinity, ..blank_column(&name, "") };
        blank_table(name, 0, columns.map(column).collect(), TableKind::Rowid, None)
    }
}

/// The schema table itself.
pub(crate) fn schema_table(temp: bool) -> Table {
    let columns =
        [("type", "TEXT"), ("name", "TEXT"), ("tbl_name", "TEXT"), ("rootpage", "INT"), ("sql", "TEXT")];
    let columns = columns.iter().map(|(n, t)| blank_column(n, t)).collect();
    let name = if temp { "sqlite_temp_master" } else { "sqlite_master" };
    blank_table(name, 1, columns, TableKind::Rowid, None)
}

/// A view.
pub fn view_from_ast(v: &ast::CreateView, sql: &str) -> Table {
    let kind = TableKind::View { names: v.columns.clone(), select: Rc::new((*v.select).clone()) };
    blank_table(&v.name.name.text, 0, Vec::new(), kind, Some(sql))
}

fn virtual_from_ast(v: &ast::CreateVirtualTable, sql: &str) -> Table {
    let kind =
        TableKind::Virtual { module: v.module.text.as_str().into(), args: v.args.clone(), rowid: true };
    blank_table(&v.name.name.text, 0, Vec::new(), kind, Some(sql))
}

/// A trigger.
pub fn trigger_from_ast(t: ast::CreateTrigger, sql: &str) -> Trigger {
    Trigger {
        name: (&*t.name.name.text).into(),
        table: (&*t.table.name.text).into(),
        table_schema: t.table.schema.as_ref().map(|s| s.text.as_str().into()),
        time: t.time,
        event: t.event.clone(),
        sql: sql.into(),
        ast: Rc::new(t),
    }
}

/// A table, with the indexes of its constraints (root pages unknown as yet).
pub fn table_from_ast(c: &ast::CreateTable, sql: &str, root: Pgno) -> Result<Table> {
    let ast::CreateTableBody::Columns { columns, constraints, without_rowid, strict } = &c.body else {
        return Err(Error::sql("CREATE TABLE AS has no column definitions"));
    };
    let mut b = TableBuilder {
        table: blank_table(&c.name.name.text, root, Vec::new(), TableKind::Rowid, Some(sql)),
        primary: None,
        uniques: Vec::new(),
        autoincrement: None,
        lookalikes: Vec::new(),
        sql,
        names: FastSet::default(),
    };
    b.table.strict = *strict;
    for def in columns {
        b.column(def)?;
    }
    for con in constraints {
        b.constraint(con)?;
    }
    b.finish(*without_rowid)
}

struct KeyConstraint {
    columns: Vec<ast::SortTerm>,
    /// `ON CONFLICT`, if written.
    conflict: Option<ast::Conflict>,
    primary: bool,
    /// The column that carried the constraint, when it was a column constraint.
    own_column: Option<usize>,
    column_desc: bool,
}

struct TableBuilder<'a> {
    table: Table,
    primary: Option<usize>,
    uniques: Vec<KeyConstraint>,
    autoincrement: Option<bool>,
    /// Columns whose type reads like a standard one, but is none: more stands behind its quotes.
    lookalikes: Vec<usize>,
    sql: &'a str,
    /// The columns' names in small letters, where there are more than a few.
    names: FastSet<String>,
}

/// So many names are compared one by one.
const FEW_NAMES: usize = 24;

impl TableBuilder<'_> {
    /// Whether a column before has this name.
    fn is_taken(&mut self, name: &str) -> bool {
        let before = &self.table.columns;
        if before.len() < FEW_NAMES {
            return self.table.column(name).is_some();
        }
        if self.names.is_empty() {
            self.names.extend(before.iter().map(|c| c.name.to_ascii_lowercase()));
        }
        !self.names.insert(name.to_ascii_lowercase())
    }

    fn column(&mut self, def: &ast::ColumnDef) -> Result<()> {
        let name = &def.name.text;
        if self.is_taken(name) {
            return Err(Error::sql(format!("duplicate column name: {name}")).nowhere());
        }
        let written: &str = def.ty.as_ref().map_or("", |t| &t.text);
        let (decltype, standard) = shown_type(written.trim());
        let mut col = blank_column(name, &decltype);
        if self.table.strict && decltype.eq_ignore_ascii_case("ANY") {
            col.affinity = Affinity::Blob;
        }
        if def.ty.is_some() && decltype.is_empty() {
            // A type of no letters is a type.
            col.affinity = Affinity::Numeric;
        }
        self.table.columns.push(col);
        let at = self.table.columns.len() - 1;
        if !standard && strict_type(&decltype).is_some() {
            self.lookalikes.push(at);
        }
        let mut last_fk: Option<usize> = None;
        for con in &def.constraints {
            self.column_constraint(at, con, &mut last_fk)?;
        }
        Ok(())
    }

    fn column_constraint(
        &mut self,
        at: usize,
        con: &ast::ColumnConstraint,
        last_fk: &mut Option<usize>,
    ) -> Result<()> {
        let own_term = || {
            let name = Name {
                text: (&*self.table.columns[at].name).into(),
                quote: Default::default(),
                span: con.span,
            };
            ast::SortTerm {
                expr: Expr::Column { schema: None, table: None, column: name },
                order: None,
                nulls: None,
            }
        };
        match &con.kind {
            ColumnConstraintKind::PrimaryKey { order, conflict, autoincrement } => {
                let key = KeyConstraint {
                    columns: vec![own_term()],
                    conflict: *conflict,
                    primary: true,
                    own_column: Some(at),
                    column_desc: *order == Some(SortOrder::Desc),
                };
                self.key(key, *autoincrement)?;
            }
            ColumnConstraintKind::Unique(conflict) => {
                let key = KeyConstraint {
                    columns: vec![own_term()],
                    conflict: *conflict,
                    primary: false,
                    own_column: Some(at),
                    column_desc: false,
                };
                self.table.columns[at].unique = true;
                self.key(key, false)?;
            }
            ColumnConstraintKind::Null(_) => {}
            ColumnConstraintKind::NotNull(conflict) => {
                self.table.columns[at].not_null = Some(conflict.unwrap_or(ast::Conflict::Abort));
            }
            ColumnConstraintKind::Check(expr, span) => self.check(con.name.as_ref(), expr, *span),
            ColumnConstraintKind::Default(expr, span) => {
                if self.table.columns[at].generated.is_some() {
                    return Err(Error::sql("cannot use DEFAULT on a generated column"));
                }
                if !constant_default(expr) {
                    let name = &self.table.columns[at].name;
                    return Err(Error::sql(format!("default value of column [{name}] is not constant")));
                }
                let text = span.of(self.sql);
                self.table.columns[at].default =
                    Some(DefaultValue { expr: Rc::new(expr.clone()), text: default_text(text).into() });
            }
            ColumnConstraintKind::Collate(name) => {
                self.table.columns[at].collation = Some((&*name.text).into())
            }
            ColumnConstraintKind::References(target) => {
                *last_fk = Some(self.table.foreign_keys.len());
                self.foreign_key(vec![at], target, true)?;
            }
            ColumnConstraintKind::Deferrable(deferred) => {
                if let Some(fk) = *last_fk {
                    self.table.foreign_keys[fk].deferred = *deferred;
                }
            }
            ColumnConstraintKind::Generated { expr, stored, .. } => {
                if self.table.columns[at].default.is_some() || self.table.columns[at].generated.is_some() {
                    return Err(Error::sql(format!(
                        "error in generated column \"{}\"",
                        self.table.columns[at].name
                    )));
                }
                self.table.columns[at].generated =
                    Some(Generated { expr: Rc::new(expr.clone()), stored: *stored });
            }
        }
        Ok(())
    }

    fn check(&mut self, name: Option<&Name>, expr: &Expr, span: ast::Span) {
        let label = match name {
            Some(n) => n.text.clone(),
            None => first_name(span.of(self.sql).trim()).into(),
        };
        self.table.checks.push(Check { expr: Rc::new(expr.clone()), label: label.as_str().into() });
    }

    fn constraint(&mut self, con: &ast::TableConstraint) -> Result<()> {
        match &con.kind {
            TableConstraintKind::PrimaryKey { columns, autoincrement, conflict } => {
                for term in columns {
                    if let Ok((ColumnSource::Column(c), _)) = resolve_term(term, &self.table)
                        && self.table.columns[c].generated.is_some()
                    {
                        return Err(generated_key());
                    }
                }
                let key = KeyConstraint {
                    columns: columns.clone(),
                    conflict: *conflict,
                    primary: true,
                    own_column: None,
                    column_desc: false,
                };
                self.key(key, *autoincrement)
            }
            TableConstraintKind::Unique { columns, conflict } => self.key(
                KeyConstraint {
                    columns: columns.clone(),
                    conflict: *conflict,
                    primary: false,
                    own_column: None,
                    column_desc: false,
                },
                false,
            ),
            TableConstraintKind::Check { expr, span, .. } => {
                self.check(con.name.as_ref(), expr, *span);
                Ok(())
            }
            TableConstraintKind::ForeignKey { columns, target } => {
                let mut cols = Vec::new();
                for n in columns {
                    let Some(i) = self.table.column(&n.text) else {
                        return Err(Error::sql(format!(
                            "unknown column \"{}\" in foreign key definition",
                            n.text
                        )));
                    };
                    cols.push(i);
                }
                self.foreign_key(cols, target, false)
            }
        }
    }

    fn foreign_key(
        &mut self,
        columns: Vec<usize>,
        target: &ast::ForeignKeyTarget,
        of_column: bool,
    ) -> Result<()> {
        if !target.columns.is_empty() && target.columns.len() != columns.len() {
            if of_column {
                return Err(Error::sql(format!(
                    "foreign key on {} should reference only one column of table {}",
                    self.table.columns[columns[0]].name, target.table.text
                )));
            }
            return Err(Error::sql(
                "number of columns in foreign key does not match the number of columns in the referenced table",
            ));
        }
        self.table.foreign_keys.push(ForeignKey {
            columns,
            parent: target.table.text.as_str().into(),
            parent_columns: target.columns.iter().map(|n| n.text.as_str().into()).collect(),
            on_delete: target.on_delete,
            on_update: target.on_update,
            deferred: target.deferred,
        });
        Ok(())
    }

    fn key(&mut self, key: KeyConstraint, autoincrement: bool) -> Result<()> {
        if key.primary {
            if self.primary.is_some() {
                return Err(Error::sql(format!(
                    "table \"{}\" has more than one primary key",
                    self.table.name
                )));
            }
            self.primary = Some(self.uniques.len());
            self.autoincrement = Some(autoincrement);
        }
        // Found when the key is read, before what stands behind it; keys with COLLATE are compared at the end.
        let contradicts = |other: &KeyConstraint| {
            matches!((other.conflict, key.conflict), (Some(a), Some(b)) if a != b)
                && self.plain_columns(other).is_some_and(|c| Some(c) == self.plain_columns(&key))
        };
        if self.uniques.iter().any(contradicts) {
            return Err(Error::sql("conflicting ON CONFLICT clauses specified"));
        }
        self.uniques.push(key);
        Ok(())
    }

    /// A key's columns, if it is made of nothing but their names and will be an index.
    fn plain_columns(&self, k: &KeyConstraint) -> Option<Vec<usize>> {
        let columns: Option<Vec<usize>> = k
            .columns
            .iter()
            .map(|t| match &t.expr {
                ast::Expr::Column { schema: None, table: None, column } => self.table.column(&column.text),
                _ => None,
            })
            .collect();
        let columns = columns?;
        let rowid = k.primary
            && columns.len() == 1
            && self.table.columns[columns[0]].decltype.eq_ignore_ascii_case("integer")
            && !self.lookalikes.contains(&columns[0]);
        (!rowid).then_some(columns)
    }

    fn finish(mut self, without_rowid: bool) -> Result<Table> {
        let t = &mut self.table;
        if t.strict {
            for (at, c) in t.columns.iter().enumerate() {
                if strict_type(&c.decltype).is_none() || self.lookalikes.contains(&at) {
                    return Err(Error::sql(if c.decltype.is_empty() {
                        format!("missing datatype for {}.{}", t.name, c.name)
                    } else {
                        format!("unknown datatype for {}.{}: \"{}\"", t.name, c.name, c.decltype)
                    }));
                }
            }
        }
        // The primary key: an alias of the rowid, or an index.
        if let Some(p) = self.primary {
            let key = &self.uniques[p];
            let mut columns = Vec::new();
            for (i, term) in key.columns.iter().enumerate() {
                let (source, _) = resolve_term(term, t)?;
                let ColumnSource::Column(c) = source else {
                    return Err(Error::sql("expressions prohibited in PRIMARY KEY and UNIQUE constraints"));
                };
                if t.columns[c].pk == 0 {
                    t.columns[c].pk = i + 1;
                }
                if t.columns[c].generated.is_some() {
                    return Err(generated_key());
                }
                columns.push(c);
            }
            let desc = key.column_desc;
            if columns.len() == 1
                && !desc
                && !without_rowid
                && t.columns[columns[0]].decltype.eq_ignore_ascii_case("INTEGER")
                && !self.lookalikes.contains(&columns[0])
            {
                t.rowid_alias = Some(columns[0]);
                t.key_conflict = Some(key.conflict.unwrap_or(ast::Conflict::Abort));
                t.autoincrement = self.autoincrement == Some(true);
            } else if self.autoincrement == Some(true) {
                return Err(Error::sql(if without_rowid {
                    "AUTOINCREMENT not allowed on WITHOUT ROWID tables"
                } else {
                    "AUTOINCREMENT is only allowed on an INTEGER PRIMARY KEY"
                }));
            }
            if without_rowid || (t.strict && t.rowid_alias.is_none()) {
                for &c in &columns {
                    t.columns[c].not_null.get_or_insert(ast::Conflict::Abort);
                }
            }
        } else if without_rowid {
            return Err(Error::sql(format!("PRIMARY KEY missing on table {}", t.name)));
        }
        if t.columns.iter().all(|c| c.generated.is_some()) {
            return Err(Error::sql("must have at least one non-generated column"));
        }
        if without_rowid {
            t.kind = TableKind::WithoutRowid;
        }
        self.make_indexes(without_rowid)?;
        set_storage(&mut self.table);
        Ok(self.table)
    }

    fn make_indexes(&mut self, without_rowid: bool) -> Result<()> {
        let t = &self.table;
        // With what was written of a policy.
        let mut made: Vec<(Index, Option<ast::Conflict>)> = Vec::new();
        // The primary key's index of a WITHOUT ROWID table comes first in naming as declared, but every other
        // index needs its columns, so they are resolved before.
        let mut pk_columns: Vec<IndexColumn> = Vec::new();
        if without_rowid && let Some(p) = self.primary {
            for term in &self.uniques[p].columns {
                let c = index_column(term, t)?;
                if !has_column(&pk_columns, &c, t) {
                    pk_columns.push(c);
                }
            }
            if self.uniques[p].column_desc {
                pk_columns[0].desc = true;
            }
        }
        let mut number = 0;
        // INTEGER PRIMARY KEY of a WITHOUT ROWID table becomes an index after all others, and forgets a COLLATE.
        let alone = |p: usize| {
            let k = &self.uniques[p];
            without_rowid
                && k.columns.len() == 1
                && !k.column_desc
                && pk_columns.first().is_some_and(|c| match c.source {
                    ColumnSource::Column(c) => {
                        t.columns[c].decltype.eq_ignore_ascii_case("INTEGER") && !self.lookalikes.contains(&c)
                    }
                    _ => false,
                })
        };
        let mut order: Vec<usize> = (0..self.uniques.len()).collect();
        if let Some(p) = self.primary.filter(|p| alone(*p)) {
            order.retain(|i| *i != p);
            order.push(p);
            if let ColumnSource::Column(c) = pk_columns[0].source {
                pk_columns[0].collation = t.columns[c].collation.clone();
            }
        }
        for i in order {
            let key = &self.uniques[i];
            if key.primary && t.rowid_alias.is_some() {
                continue;
            }
            let is_table = without_rowid && Some(i) == self.primary;
            let mut columns: Vec<IndexColumn> = Vec::new();
            if is_table {
                columns = pk_columns.clone();
            } else {
                for term in &key.columns {
                    let mut c = index_column(term, t)?;
                    if matches!(c.source, ColumnSource::Expr(_)) {
                        return Err(Error::sql(
                            "expressions prohibited in PRIMARY KEY and UNIQUE constraints",
                        ));
                    }
                    if key.own_column.is_some() {
                        c.desc = key.column_desc;
                    }
                    columns.push(c);
                }
            }
            // The same columns with the same collations need one index only.
            let same = |(m, _): &&mut (Index, Option<ast::Conflict>)| {
                m.key_len == columns.len()
                    && m.columns.iter().zip(&columns).all(|(a, b)| same_column(a, b, t))
            };
            if let Some((other, written)) = made.iter_mut().find(|m| same(m)) {
                if key.primary {
                    other.origin = IndexOrigin::PrimaryKey;
                }
                match (*written, key.conflict) {
                    (Some(a), Some(b)) if a != b => {
                        return Err(Error::sql("conflicting ON CONFLICT clauses specified"));
                    }
                    (None, Some(policy)) => {
                        *written = key.conflict;
                        other.unique = Some(policy);
                    }
                    _ => {}
                }
                if is_table {
                    other.root.set(t.root.get());
                }
                replacing_last(&mut made, |m| &m.0);
                continue;
            }
            number += 1;
            let name = format!("sqlite_autoindex_{}_{number}", t.name);
            let key_len = columns.len();
            let index = Index {
                name: name.into(),
                table: t.name.clone(),
                root: Cell::new(if is_table { t.root.get() } else { 0 }),
                columns,
                key_len,
                unique: Some(key.conflict.unwrap_or(ast::Conflict::Abort)),
                filter: None,
                origin: if key.primary { IndexOrigin::PrimaryKey } else { IndexOrigin::Unique },
                sql: None,
                stat: RefCell::new(IndexStat::assumed(key_len, true, false, DEFAULT_ROWS)),
                step: Default::default(),
                key: OnceCell::new(),
                label: OnceCell::new(),
                affinities: OnceCell::new(),
            };
            made.insert(0, (index, key.conflict));
            replacing_last(&mut made, |m| &m.0);
        }
        for (m, _) in &mut made {
            let is_table = without_rowid && m.origin == IndexOrigin::PrimaryKey;
            complete_columns(m, t, without_rowid, is_table, &pk_columns);
        }
        let mut list = self.table.indexes.borrow_mut();
        list.extend(made.into_iter().map(|(m, _)| Rc::new(m)));
        Ok(())
    }
}

/// Appends what identifies the row: the rowid, or the primary key's columns; for the table itself, all columns.
fn complete_columns(m: &mut Index, t: &Table, without_rowid: bool, is_table: bool, pk: &[IndexColumn]) {
    if !without_rowid {
        m.columns.push(IndexColumn { source: ColumnSource::Rowid, collation: None, desc: false });
    } else if is_table {
        for (i, c) in t.columns.iter().enumerate() {
            let here = m.columns.iter().any(|x| matches!(x.source, ColumnSource::Column(n) if n == i));
            if !here && c.is_stored() {
                m.columns.push(IndexColumn { source: ColumnSource::Column(i), collation: None, desc: false });
            }
        }
    } else {
        for p in pk {
            if !has_column(&m.columns, p, t) {
                // Of a constraint: ascending even where the primary key itself descends, as all files have it.
                m.columns.push(IndexColumn { desc: p.desc && m.sql.is_some(), ..p.clone() });
            }
        }
    }
}

fn has_column(list: &[IndexColumn], c: &IndexColumn, t: &Table) -> bool {
    list.iter().any(|x| same_column(x, c, t))
}

fn same_column(a: &IndexColumn, b: &IndexColumn, t: &Table) -> bool {
    match (&a.source, &b.source) {
        (ColumnSource::Column(x), ColumnSource::Column(y)) => {
            x == y && collation_of(a, t).eq_ignore_ascii_case(&collation_of(b, t))
        }
        _ => false,
    }
}

fn collation_of(c: &IndexColumn, t: &Table) -> Rc<str> {
    match (&c.collation, &c.source) {
        (Some(n), _) => n.clone(),
        (None, ColumnSource::Column(i)) => t.columns[*i].collation.clone().unwrap_or_else(|| "BINARY".into()),
        _ => "BINARY".into(),
    }
}

/// Where each stored column stands in a record.
fn set_storage(t: &mut Table) {
    t.storage = match t.primary_index() {
        Some(pk) => pk
            .columns
            .iter()
            .filter_map(|c| match c.source {
                ColumnSource::Column(i) => Some(i),
                _ => None,
            })
            .collect(),
        None => (0..t.columns.len()).filter(|&i| t.columns[i].is_stored()).collect(),
    };
    t.field_of = vec![None; t.columns.len()];
    for (field, &c) in t.storage.iter().enumerate() {
        t.field_of[c].get_or_insert(field);
    }
}

/// An index made by CREATE INDEX.
pub fn index_from_ast(c: &ast::CreateIndex, t: &Table, sql: &str, root: Pgno) -> Result<Index> {
    let mut columns = Vec::new();
    for term in &c.columns {
        columns.push(index_column(term, t)?);
    }
    let key_len = columns.len();
    let unique = c.unique.then_some(ast::Conflict::Abort);
    let mut i = Index {
        name: (&*c.name.name.text).into(),
        table: t.name.clone(),
        root: Cell::new(root),
        columns,
        key_len,
        unique,
        filter: c.filter.clone().map(Rc::new),
        origin: IndexOrigin::Create,
        sql: Some(sql.into()),
        stat: RefCell::new(IndexStat::assumed(key_len, c.unique, c.filter.is_some(), DEFAULT_ROWS)),
        step: Default::default(),
        key: OnceCell::new(),
        label: OnceCell::new(),
        affinities: OnceCell::new(),
    };
    let pk: Vec<IndexColumn> = t.primary_index().map_or(Vec::new(), |p| p.columns[..p.key_len].to_vec());
    complete_columns(&mut i, t, !t.has_rowid(), false, &pk);
    Ok(i)
}

fn index_column(term: &ast::SortTerm, t: &Table) -> Result<IndexColumn> {
    if let Some(n) = term.nulls {
        let word = if n == ast::NullsOrder::First { "FIRST" } else { "LAST" };
        return Err(Error::sql(format!("unsupported use of NULLS {word}")));
    }
    let (source, collation) = resolve_term(term, t)?;
    let collation = collation.or_else(|| match source {
        ColumnSource::Column(i) => t.columns[i].collation.clone(),
        _ => None,
    });
    Ok(IndexColumn { source, collation, desc: term.order == Some(SortOrder::Desc) })
}

fn resolve_term(term: &ast::SortTerm, t: &Table) -> Result<(ColumnSource, Option<Rc<str>>)> {
    let mut e = &term.expr;
    let mut collation = None;
    let mut depth = 0;
    while let Expr::Collate(inner, name) = e {
        collation.get_or_insert_with(|| Rc::from(&*name.text));
        e = inner;
        depth += 1;
    }
    let source = match e {
        // A string names a column, unless it is buried.
        Expr::Literal(ast::Literal::Text(_), _) if depth > 1 => ColumnSource::Expr(Rc::new(e.clone())),
        Expr::Column { table: None, column, .. } => match t.column(&column.text) {
            Some(i) => ColumnSource::Column(i),
            // In double quotes, what is no column is a text.
            None if column.quote == ast::Quote::Double => ColumnSource::Expr(Rc::new(Expr::Literal(
                ast::Literal::Text(column.text.as_str().into()),
                column.span,
            ))),
            None => {
                return Err(Error::sql(format!("no such column: {}", column.text)).at(column.span.start));
            }
        },
        Expr::Literal(ast::Literal::Text(s), span) => match t.column(s) {
            Some(i) => ColumnSource::Column(i),
            None => return Err(Error::sql(format!("no such column: {s}")).at(span.start)),
        },
        other => ColumnSource::Expr(Rc::new(other.clone())),
    };
    Ok((source, collation))
}

fn generated_key() -> Error {
    Error::sql("generated columns cannot be part of the PRIMARY KEY")
}

/// A default must not depend on a row: literals, signed numbers, and parenthesised expressions without columns.
pub fn constant_default(e: &Expr) -> bool {
    match e {
        Expr::Column { .. }
        | Expr::Variable { .. }
        | Expr::Subquery(..)
        | Expr::Exists(_)
        | Expr::Raise(..) => false,
        Expr::Literal(..) => true,
        Expr::Unary(_, a) | Expr::IsNull(a) | Expr::NotNull(a) | Expr::Cast(a, _) | Expr::Collate(a, _) => {
            constant_default(a)
        }
        Expr::Binary(_, sides) => constant_default(&sides.0) && constant_default(&sides.1),
        Expr::Like { lhs, rhs, escape, .. } => {
            constant_default(lhs) && constant_default(rhs) && escape.as_deref().is_none_or(constant_default)
        }
        Expr::Between { e, lo, hi, .. } => [e, lo, hi].into_iter().all(|x| constant_default(x)),
        Expr::In { lhs, rhs, .. } => {
            constant_default(lhs) && matches!(&**rhs, ast::InSet::List(l) if l.iter().all(constant_default))
        }
        Expr::Case { base, arms, otherwise } => {
            base.as_deref().is_none_or(constant_default)
                && arms.iter().all(|(a, b)| constant_default(a) && constant_default(b))
                && otherwise.as_deref().is_none_or(constant_default)
        }
        Expr::Call(c) => c.over.is_none() && c.args.iter().all(constant_default),
        Expr::Row(list, _) => list.iter().all(constant_default),
    }
}

fn default_text(text: &str) -> &str {
    let t = text.trim();
    match t.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
        Some(inner) => inner.trim(),
        None => t,
    }
}

/// By what a condition without a name is called: its text, or the quoted name that the text begins with.
fn first_name(text: &str) -> String {
    let close = match text.as_bytes().first() {
        Some(b'[') => ']',
        Some(q @ (b'"' | b'\'' | b'`')) => char::from(*q),
        _ => return text.to_string(),
    };
    let mut name = String::new();
    let mut rest = text[1..].chars().peekable();
    while let Some(c) = rest.next() {
        if c == close && (close == ']' || rest.next_if_eq(&close).is_none()) {
            break;
        }
        name.push(c);
    }
    name
}

/// "too many columns" where a table has more than the limit.
pub fn check_column_count(n: usize, name: &str, limits: &Limits) -> Result<()> {
    if n > limits.get(Limit::Column) as usize {
        return Err(Error::sql(format!("too many columns on {name}")));
    }
    Ok(())
}

/// A table that stands for a view while rows go through its INSTEAD OF triggers.
pub fn stand_in(
    name: &str,
    sql: Option<&str>,
    columns: &[(Rc<str>, Affinity, Rc<str>)],
    view: &Table,
) -> Table {
    let columns = columns
        .iter()
        .map(|(n, a, decltype)| {
            let mut c = blank_column(n, decltype);
            c.affinity = *a;
            c
        })
        .collect();
    let kind = match &view.kind {
        TableKind::View { names, select } => TableKind::View { names: names.clone(), select: select.clone() },
        _ => TableKind::Rowid,
    };
    let t = blank_table(name, 0, columns, kind, sql);
    *t.triggers.borrow_mut() = view.triggers.borrow().clone();
    t
}
