//! Looking up column names.

use super::*;
use iolite_ext::{FunctionFlags, Implementation};
use iolite_sql::ast::{Name, Quote};
use iolite_value::{Affinity, Value};

/// The names that the rowid answers to.
pub(crate) fn is_rowid(name: &str) -> bool {
    ["rowid", "oid", "_rowid_"].iter().any(|n| n.eq_ignore_ascii_case(name))
}

enum Found {
    No,
    One(Expr),
    Ambiguous,
}

impl Columns {
    pub(crate) fn len(&self) -> usize {
        match self {
            Columns::Table(t) => t.columns.len(),
            Columns::Query(q) => q.len(),
        }
    }

    pub(crate) fn name(&self, i: usize) -> Rc<str> {
        match self {
            Columns::Table(t) => t.columns[i].name.clone(),
            Columns::Query(q) => q[i].name.clone(),
        }
    }

    /// The name by which a column is found where no table's stands before it.
    pub(super) fn bare_name(&self, i: usize) -> Rc<str> {
        match self {
            Columns::Query(q) if q[i].inside.is_some() => q[i].bare_name().into(),
            _ => self.name(i),
        }
    }

    /// Not listed by `*`.
    pub(crate) fn is_hidden(&self, i: usize) -> bool {
        match self {
            Columns::Table(t) => t.columns[i].hidden,
            Columns::Query(q) => q[i].shadowed,
        }
    }

    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        match self {
            Columns::Table(t) => t.column(name),
            Columns::Query(q) => q.iter().position(|c| !c.shadowed && same_name(c.bare_name(), name)),
        }
    }

    /// As [`Columns::find`], where the name of the table or query stands before the column's.
    fn find_qualified(&self, name: &str) -> Option<usize> {
        match self {
            Columns::Query(q) if q.iter().any(|c| c.inside.is_some()) => {
                q.iter().position(|c| same_name(&c.name, name))
            }
            _ => self.find(name),
        }
    }
}

impl ScopeSource {
    /// Whether USING or NATURAL of this table merges a column of that name away.
    fn merges(&self, name: &str) -> bool {
        self.hidden.iter().any(|h| same_name(&self.columns.bare_name(*h), name))
    }
}

impl Binder<'_> {
    /// The expression for column `i` of a source.
    pub(crate) fn column_of(&self, id: TableId, columns: &Columns, i: usize) -> Result<Expr> {
        let (affinity, collation) = match columns {
            Columns::Table(t) => (t.columns[i].affinity, self.column_collation(t, i)?),
            Columns::Query(q) => (q[i].out.affinity, q[i].out.collation.clone()),
        };
        // The values of the row that was to be inserted have been converted already.
        let affinity = if self.excluded == Some(id) { Affinity::None } else { affinity };
        let column = match columns {
            Columns::Table(t) if t.rowid_alias == Some(i) => ROWID,
            _ => i as i32,
        };
        Ok(Expr::Column(ColumnRef { table: id, column, affinity, collation }))
    }

    pub(super) fn rowid_of(&self, id: TableId) -> Expr {
        Expr::Column(ColumnRef {
            table: id,
            column: ROWID,
            affinity: Affinity::Integer,
            collation: self.binary(),
        })
    }

    /// Binds `[[schema.]table.]column`.
    pub(crate) fn bind_column(
        &mut self,
        schema: Option<&Name>,
        table: Option<&Name>,
        column: &Name,
    ) -> Result<Expr> {
        let at = schema.or(table).unwrap_or(column).span.start;
        if let Some(s) = schema
            && self.env.catalog.database(&s.text).is_none()
            && !self.scopes.iter().any(|sc| sc.sources.iter().any(|x| x.name.eq_ignore_ascii_case(&s.text)))
        {
            return Err(self.no_such_column(schema, table, column).at(at));
        }
        for depth in (0..self.scopes.len()).rev() {
            match self.find_in_scope(depth, schema, table, column)? {
                Found::One(e) => {
                    if self.log.is_some() {
                        self.log_column(depth, table, column, &e);
                    }
                    let e = if self.asks() { self.authorized(depth, e)? } else { e };
                    if !self.frames.is_empty() {
                        self.note_outer(depth, &e);
                    }
                    return Ok(e);
                }
                Found::Ambiguous => {
                    let name = display(schema, table, column);
                    return Err(Error::sql(format!("ambiguous column name: {name}")).at(at));
                }
                Found::No => {}
            }
            if table.is_none()
                && let Some(e) = self.find_alias(depth, column)?
            {
                return Ok(e);
            }
        }
        if schema.is_none()
            && let Some(e) = self.trigger_column(table, column)?
        {
            return Ok(e);
        }
        if table.is_none() && schema.is_none() {
            if column.quote == Quote::Double && self.env.quoted_strings {
                let text =
                    || format!("double-quoted string literal: \"{}\"", column.text.replace('"', "\"\""));
                self.env.connector.warn(Code::Warning, &text);
                if self.log.is_some() {
                    self.quoted.push(column.span);
                }
                return Ok(Expr::Const(Value::text(iolite_base::raw_text::decode(&column.text))?));
            }
            if column.quote == Quote::None
                && (column.text.eq_ignore_ascii_case("true") || column.text.eq_ignore_ascii_case("false"))
            {
                return Ok(Expr::int(column.text.eq_ignore_ascii_case("true") as i64));
            }
        }
        Err(self.no_such_column(schema, table, column).at(at))
    }

    fn log_column(&mut self, depth: usize, table: Option<&Name>, column: &Name, e: &Expr) {
        let Expr::Column(c) = e else { return };
        let found = self.scopes[depth].sources.iter().find(|s| s.id == c.table);
        let Some(ScopeSource { columns: Columns::Table(t), name, .. }) = found else { return };
        let (t, name) = (t.clone(), name.clone());
        if let Some(i) = t.column(&column.text) {
            self.note_name(column, &t, Some(i));
        }
        if let Some(q) = table
            && name.eq_ignore_ascii_case(&t.name)
        {
            self.note_name(q, &t, None);
        }
    }

    fn no_such_column(&self, schema: Option<&Name>, table: Option<&Name>, column: &Name) -> Error {
        let name = display(schema, table, column);
        if table.is_none() && column.quote == Quote::Double {
            return missing_quoted(&name);
        }
        Error::sql(format!("no such column: {name}"))
    }

    /// Remembers that nested queries between here and scope `depth` depend on the table.
    fn note_outer(&mut self, depth: usize, e: &Expr) {
        for frame in self.frames.iter_mut().filter(|f| f.outside > depth) {
            e.tables(&mut |t| {
                if !frame.outer.contains(&t) {
                    frame.outer.push(t);
                }
            });
        }
    }

    fn find_in_scope(
        &self,
        depth: usize,
        schema: Option<&Name>,
        table: Option<&Name>,
        column: &Name,
    ) -> Result<Found> {
        let scope = &self.scopes[depth];
        if table.is_none()
            && let Some((_, e)) = scope.merged.iter().find(|(n, _)| same_name(n, &column.text))
        {
            // One that USING does not name is another column.
            let shown =
                |s: &&ScopeSource| s.columns.find(&column.text).is_some_and(|i| !s.hidden.contains(&i));
            return Ok(match scope.sources.iter().filter(shown).nth(1) {
                Some(_) => Found::Ambiguous,
                None => Found::One(e.clone()),
            });
        }
        let mut found = None;
        for s in &scope.sources {
            if let Some(t) = table {
                if let Columns::Query(q) = &s.columns
                    && !same_name(&s.name, &t.text)
                {
                    // A parenthesised join: its tables' names reach through.
                    let inner = q.iter().position(|c| {
                        c.inside.as_ref().is_some_and(|i| {
                            i.belongs_to(&t.text) && i.column.eq_ignore_ascii_case(&column.text)
                        })
                    });
                    if let Some(i) = inner {
                        if found.is_none() {
                            found = Some(self.column_of(s.id, &s.columns, i)?);
                        } else if !s.merges(&column.text) {
                            return Ok(Found::Ambiguous);
                        }
                    }
                    continue;
                }
                if !same_name(&s.name, &t.text) && !other_name(s, &t.text) {
                    continue;
                }
                if let Some(sch) = schema
                    // A table's own expressions do not say in which database it is.
                    && (s.db.is_some() || self.returned.is_some() || matches!(s.columns, Columns::Query(_)))
                    && s.db != self.env.catalog.database(&sch.text)
                {
                    continue;
                }
            }
            let here = match table {
                Some(_) => s.columns.find_qualified(&column.text),
                None => s.columns.find(&column.text),
            };
            if let Some(i) = here {
                if table.is_none() && s.hidden.contains(&i) {
                    continue;
                }
                if found.is_some() {
                    if s.merges(&column.text) {
                        // Tables of one name: what USING merges is one column.
                        let merged = scope.merged.iter().find(|(n, _)| same_name(n, &column.text));
                        found = merged.map(|(_, e)| e.clone()).or(found);
                        continue;
                    }
                    return Ok(Found::Ambiguous);
                }
                found = Some(self.column_of(s.id, &s.columns, i)?);
                if let Columns::Query(q) = &s.columns
                    && table.is_none()
                    && q[i].inside.is_some()
                    && q[i + 1..]
                        .iter()
                        .any(|c| !c.shadowed && c.bare_name().eq_ignore_ascii_case(&column.text))
                {
                    return Ok(Found::Ambiguous);
                }
            }
        }
        if let Some(e) = found {
            return Ok(Found::One(e));
        }
        let none = matches!(self.restriction, Restriction::Generated | Restriction::IndexExpr);
        if is_rowid(&column.text) && column.quote != Quote::Single && !none {
            let mut rowids = self.rowids(scope, table);
            let (first, more) = (rowids.next(), rowids.next());
            return Ok(match (first, more) {
                (Some(_), Some(_)) => Found::Ambiguous,
                (Some(e), None) => Found::One(e),
                (None, _) => Found::No,
            });
        }
        Ok(Found::No)
    }

    /// The rowids of a scope's tables, those inside of parentheses included; only of `table` where one is named.
    fn rowids<'s>(&'s self, scope: &'s Scope, table: Option<&'s Name>) -> impl Iterator<Item = Expr> + 's {
        scope.sources.iter().flat_map(move |s| {
            let named = match table {
                Some(t) => s.name.eq_ignore_ascii_case(&t.text),
                None => self.excluded != Some(s.id),
            };
            let (own, list): (_, &[QueryColumn]) = match &s.columns {
                Columns::Table(t) => ((named && t.has_rowid()).then(|| self.rowid_of(s.id)), &[]),
                Columns::Query(q) => (None, q),
            };
            let inside = list.iter().enumerate().filter(move |(_, c)| {
                c.inside.as_ref().is_some_and(|i| {
                    let of = || i.table.as_deref().unwrap_or_default();
                    i.rowid && table.is_none_or(|t| of().eq_ignore_ascii_case(&t.text))
                })
            });
            let inside = inside.map(|(i, c)| {
                Expr::Column(ColumnRef {
                    table: s.id,
                    column: i as i32,
                    affinity: c.out.affinity,
                    collation: c.out.collation.clone(),
                })
            });
            own.into_iter().chain(inside)
        })
    }

    /// A complaint if `database.table.column` means more than column `i` of source `s` of the innermost scope.
    pub(super) fn is_the_only(&self, s: usize, i: usize) -> Result<()> {
        let sources = &self.scopes.last().expect("a query is being bound").sources;
        let own = &sources[s];
        if own.name.is_empty() || own.hidden.contains(&i) || self.log.is_some() {
            return Ok(());
        }
        let column = own.columns.name(i);
        let has = |x: &ScopeSource| match &x.columns {
            _ if x.merges(&column) => false,
            _ if same_name(&x.name, &own.name) => x.db == own.db && x.columns.find(&column).is_some(),
            Columns::Query(q) => q
                .iter()
                .filter_map(|c| c.inside.as_ref())
                .any(|c| c.belongs_to(&own.name) && same_name(&c.column, &column)),
            Columns::Table(_) => false,
        };
        if !sources.iter().enumerate().any(|(k, x)| k != s && has(x)) {
            return Ok(());
        }
        let db = own.db.map_or("*", |d| &*self.env.catalog.schemas[d].name);
        Err(Error::sql(format!("ambiguous column name: {db}.{}.{column}", own.name)))
    }

    fn find_alias(&mut self, depth: usize, column: &Name) -> Result<Option<Expr>> {
        let scope = &self.scopes[depth];
        let Some((_, e)) = scope.aliases.iter().find(|(n, _)| n.eq_ignore_ascii_case(&column.text)) else {
            return Ok(None);
        };
        let e = e.clone();
        if matches!(scope.phase, Phase::Rows | Phase::Aggregate | Phase::GroupBy)
            && e.any(&mut |x| matches!(x, Expr::Agg(..)))
        {
            if scope.phase == Phase::GroupBy {
                return Err(Error::sql("aggregate functions are not allowed in the GROUP BY clause"));
            }
            if let Some(a) = scope.aggs.last().filter(|_| scope.phase == Phase::Rows) {
                return Err(Error::sql(format!("misuse of aggregate: {}()", a.function.name)));
            }
            return Err(
                Error::sql(format!("misuse of aliased aggregate {}", column.text)).at(column.span.start)
            );
        }
        if (scope.in_window || scope.phase != Phase::Groups) && e.any(&mut |x| matches!(x, Expr::Window(..)))
        {
            let text = format!("misuse of aliased window function {}", column.text);
            return Err(Error::sql(text).nowhere());
        }
        self.note_outer(depth, &e);
        if e.any(&mut |x| matches!(x, Expr::Agg(..))) {
            self.note_groups(depth);
        }
        Ok(Some(e))
    }

    /// Nested queries between here and the query at `depth` refer to its groups.
    pub(crate) fn note_groups(&mut self, depth: usize) {
        for frame in self.frames.iter_mut().filter(|f| f.outside > depth) {
            for s in &self.scopes[depth].sources {
                if !frame.outer.contains(&s.id) {
                    frame.outer.push(s.id);
                }
            }
        }
    }

    fn trigger_column(&mut self, table: Option<&Name>, column: &Name) -> Result<Option<Expr>> {
        let (Some(t), Some(name)) = (&self.trigger, table) else {
            return Ok(None);
        };
        let is = |w: &str| name.text.eq_ignore_ascii_case(w);
        // Parameters: old rowid, old columns, new rowid, new columns.
        let width = t.table.columns.len() + 1;
        let first = if is("new") && t.new {
            width
        } else if is("old") && t.old {
            0
        } else {
            return Ok(None);
        };
        let owner = t.table.clone();
        let (slot, affinity, collation, number) = match t.table.column(&column.text) {
            Some(i) if t.table.rowid_alias == Some(i) => (0, Affinity::Integer, self.binary(), ROWID),
            Some(i) => (i + 1, t.table.columns[i].affinity, self.column_collation(&t.table, i)?, i as i32),
            None if is_rowid(&column.text) && t.table.has_rowid() => {
                (0, Affinity::Integer, self.binary(), ROWID)
            }
            None => return Ok(None),
        };
        if let Some(i) = owner.column(&column.text) {
            self.note_name(column, &owner, Some(i));
        }
        let table_db = self.trigger.as_ref().map_or(0, |t| t.table_db);
        if self.asks() && !self.ask_column(table_db, &owner, number)? {
            return Ok(Some(Expr::Const(Value::Null)));
        }
        let c = ColumnRef { table: 0, column: number, affinity, collation };
        Ok(Some(Expr::TriggerColumn(c, first + slot)))
    }

    /// The function to call, or SQLite's complaint.
    pub(crate) fn function(&self, name: &Name, args: usize) -> Result<Rc<iolite_ext::Function>> {
        if let Some(f) = self.env.registry.function(&name.text, args) {
            if matches!(f.imp, Implementation::User(_)) {
                self.calls_out.set(true);
            }
            return if self.trusts(&f) { Ok(f) } else { Err(untrusted_use(&name.text)) };
        }
        if self.log.is_some() && !self.env.registry.has_function(&name.text) {
            // ALTER TABLE only looks where names stand.
            return Ok(Rc::new(iolite_ext::Function {
                name: (&*name.text).into(),
                args: -1,
                flags: iolite_ext::FunctionFlags::DETERMINISTIC,
                imp: Implementation::Inline(iolite_ext::Inline::Likely),
            }));
        }
        if self.restriction == Restriction::Default && !self.env.registry.has_function(&name.text) {
            return Err(iolite_ext::Function::unknown_error(&name.text));
        }
        if self.carried && !self.env.registry.has_function(&name.text) {
            return Ok(Rc::new(iolite_ext::Function::unknown(&name.text)));
        }
        Err(if self.env.registry.has_function(&name.text) {
            Error::sql(format!("wrong number of arguments to function {}()", name.text)).at(name.span.start)
        } else {
            Error::sql(format!("no such function: {}", name.text)).at(name.span.start)
        })
    }
}

impl Binder<'_> {
    /// Whether the place that is being bound may call a function: what stands in a schema may not call all of them.
    fn trusts(&self, f: &iolite_ext::Function) -> bool {
        let stored = self.stored || self.trigger.as_ref().is_some_and(|t| t.db != 1);
        // ALTER TABLE only looks where names stand.
        !stored
            || self.log.is_some()
            || !f.flags.has(FunctionFlags::DIRECT_ONLY)
                && (self.env.trusted_schema || f.flags.has(FunctionFlags::INNOCUOUS))
    }
}

#[cold]
fn untrusted_use(name: &str) -> Error {
    Error::sql(format!("unsafe use of {name}()"))
}

/// Whether the function has no code of its own to call.
pub(crate) fn is_inline(f: &iolite_ext::Function) -> bool {
    matches!(f.imp, Implementation::Inline(_))
}

fn display(schema: Option<&Name>, table: Option<&Name>, column: &Name) -> String {
    let mut s = String::new();
    for n in schema.into_iter().chain(table) {
        s.push_str(&n.text);
        s.push('.');
    }
    s.push_str(&column.text);
    s
}

/// Whether a source is the table of the schema, without an alias, and this another of that table's names.
fn other_name(s: &ScopeSource, name: &str) -> bool {
    const NAMES: [&str; 4] = ["sqlite_master", "sqlite_schema", "sqlite_temp_master", "sqlite_temp_schema"];
    let is_one = |name: &str| NAMES.iter().any(|n| n.eq_ignore_ascii_case(name));
    matches!(&s.columns, Columns::Table(t) if t.root.get() == 1) && is_one(&s.name) && is_one(name)
}
