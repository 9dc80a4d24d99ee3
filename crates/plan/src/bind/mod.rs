//! Binding: an AST and a catalog become a bound query.
//!
//! Names are looked up innermost scope first. A [`Scope`] is one query's FROM clause with what its clauses may
//! refer to; the stack of scopes is the chain of enclosing queries. What binding does not know: how a query will
//! be run.

mod authorize;
mod bounded;
mod call;
mod change;
mod expr;
mod foreign_keys;
mod from;
mod insert;
mod names;
mod select;
mod target;
mod values;
mod virtual_table;
mod window;

pub use change::{Delete, Set, Update};
pub use expr::{Restriction, literal_value};
pub use foreign_keys::{KeyRole, KeyTest, Keys, mismatch, parent_key};
pub use from::unnumbered;
pub use insert::{Insert, Rows, Upsert, UpsertTarget};
pub use target::{Target, TargetIndex, view_type};
pub use virtual_table::{Connected, Connector, NoModules, check_declaration, declared_table, shadow_of};

use crate::bound::*;
use iolite_base::{Code, Encoding, Error, Few, Limit, Limits, Result, same_name};
use iolite_catalog::{Catalog, Table};
use iolite_ext::{Registry, VirtualTable};
use iolite_sql::ast;
use iolite_value::{Collation, KeyInfo};
use std::cell::Cell;
use std::rc::Rc;

const SPARE_DEPTH: u32 = 100;

/// What is nested less deeply needs no look at the stack.
const SHALLOW: u32 = 20;

/// What binding needs to know of the world.
pub struct Env<'a> {
    /// The connection's databases.
    pub catalog: &'a Catalog,
    /// Its functions, collating sequences, modules.
    pub registry: &'a Registry,
    /// Its limits.
    pub limits: &'a Limits,
    /// The main database's encoding.
    pub encoding: Encoding,
    /// Double-quoted words that name nothing are strings, in DML.
    pub quoted_strings: bool,
    /// Connects virtual tables, and keeps them.
    pub connector: &'a dyn Connector,
    /// `PRAGMA case_sensitive_like`... and others that change what expressions mean are functions' business;
    /// this one changes names: `PRAGMA full_column_names` and `short_column_names`.
    pub full_column_names: bool,
    /// As above; on by default.
    pub short_column_names: bool,
    /// `PRAGMA trusted_schema`: what stands in the schema may call functions that are not known to be harmless.
    pub trusted_schema: bool,
    /// Triggers fire; those of the temp database do in any case.
    pub triggers: bool,
    /// Views may be read; those of the temp database may in any case.
    pub views: bool,
    /// `PRAGMA automatic_index`: a join may make an index for the time of a query.
    pub automatic_index: bool,
    /// `PRAGMA recursive_triggers`.
    pub recursive_triggers: bool,
    /// `PRAGMA foreign_keys`.
    pub foreign_keys: bool,
    /// `PRAGMA defer_foreign_keys`, where that matters to what is compiled.
    pub defers_keys: bool,
    /// Whether foreign keys have actions; otherwise all are as if `NO ACTION`.
    pub key_actions: bool,
    /// `PRAGMA ignore_check_constraints`.
    pub ignore_checks: bool,
    /// `PRAGMA writable_schema`.
    pub writable_schema: bool,
    /// `PRAGMA lookahead_filters`: joins ask Bloom filters first.
    pub lookahead_filters: bool,
    /// Somebody asks for the plan: names are kept as they were written.
    pub explained: bool,
    /// The statement is one of the engine's own.
    pub own: bool,
    /// Virtual tables may be named.
    pub virtual_tables: bool,
    /// A collating sequence that is missing may be named where nothing is compared by it; who compiles looks whether the program does.
    pub missing_collations: bool,
    /// Is asked for what the statement does; nobody for the engine's own.
    pub authorizer: Option<&'a dyn iolite_ext::Authorizer>,
    /// Tables in which modules keep what belongs to theirs may not be changed.
    pub protects_shadows: bool,
    /// Whether the thread has stack enough for another nested query.
    pub has_stack: fn() -> bool,
    /// Is shown what a query becomes when it is bound, if somebody wants to see it.
    pub watch: Option<&'a dyn Fn(&Select)>,
}

impl Env<'_> {
    /// Whether a table is one that only its module may change now.
    pub fn is_protected(&self, db: usize, table: &Table) -> bool {
        let schema = self.catalog.schemas.get(db).filter(|_| self.protects_shadows && !self.own);
        schema.is_some_and(|s| shadow_of(s, self.registry, &table.name).is_some())
    }

    /// Whether a name is one that only a module may give now.
    pub fn is_protected_name(&self, name: &str) -> bool {
        if self.own || !name.contains('_') {
            return false;
        }
        // Modules are asked whether or not it matters now, as in SQLite.
        let mut schemas = self.catalog.schemas.iter();
        schemas.any(|s| shadow_of(s, self.registry, name).is_some()) && self.protects_shadows
    }

    /// Shows a bound query to whoever wants to see it.
    pub(crate) fn show_bound(&self, s: &Select) {
        if let Some(watch) = self.watch {
            watch(s);
        }
    }
}

/// The table whose rows a RETURNING list is about.
struct Returned {
    id: TableId,
    name: Rc<str>,
    db: usize,
}

/// The state of binding one statement.
pub struct Binder<'a> {
    /// The world.
    pub env: &'a Env<'a>,
    /// The statement's text, for the names of result columns.
    pub text: &'a str,
    scopes: Few<Scope>,
    /// While a RETURNING list is bound: the table that is changed.
    returned: Option<Returned>,
    frames: Vec<Nesting>,
    ctes: Vec<CteDef>,
    next_table: TableId,
    next_agg: AggId,
    next_sub: SubId,
    next_cte: u32,
    /// How many queries the statement has so far, as SQLite counts them.
    pub selects: u32,
    depth: u32,
    /// Databases referred to.
    pub databases: u64,
    /// Where the expression stands, if not every form is allowed there.
    pub restriction: Restriction,
    /// What is bound stands in the schema of a database, which somebody else may have written, and not in the statement.
    stored: bool,
    /// What is bound is carried by a table that is there already: a function that nobody has registered is a matter of who calls it.
    pub(crate) carried: bool,
    /// The result becomes a table, whose columns no PRAGMA names otherwise.
    pub named_for_good: bool,
    /// The trigger whose body is being bound.
    pub trigger: Option<TriggerScope>,
    views: Vec<(usize, Rc<str>)>,
    /// How often each view was referred to, by all others together.
    view_uses: Vec<(usize, Rc<str>, u32)>,
    /// The number of `excluded` in the upsert that is being bound.
    excluded: Option<TableId>,
    /// The occurrences of virtual tables: they may overload functions.
    virtual_tables: Vec<(TableId, Rc<dyn VirtualTable>)>,
    asked: authorize::Asked,
    /// A function of the program was named.
    calls_out: Cell<bool>,
    /// Where names of tables and columns stand in `text`, if somebody wants to know: for renaming.
    pub log: Option<Vec<NameUse>>,
    /// With `log`: where names in double quotes stand that name nothing, and so are texts.
    pub quoted: Vec<ast::Span>,
    /// How many expressions stand around what is bound, within the same query.
    within: u32,
    /// What is wrong with a call in the present expression. What goes wrong behind it there is told instead, as SQLite does.
    complaint: Option<Error>,
    /// The statement was refused since the stack is not enough: nothing more is looked for.
    too_deep: bool,
    /// A query stands around what is bound.
    in_query: bool,
    /// A nested query was what went wrong.
    query_failed: bool,
}

/// A name in a text and what it refers to.
#[derive(Clone)]
pub struct NameUse {
    /// Where it stands.
    pub span: ast::Span,
    /// How it was written.
    pub quote: ast::Quote,
    /// The table.
    pub table: Rc<Table>,
    /// The column; `None`: the table itself is named.
    pub column: Option<usize>,
}

/// `OLD` and `NEW` of a trigger.
pub struct TriggerScope {
    /// The table.
    pub table: Rc<Table>,
    /// `OLD` exists.
    pub old: bool,
    /// `NEW` exists.
    pub new: bool,
    /// Database of the trigger: unqualified names are looked up there first.
    pub db: usize,
    /// Database of the table.
    pub table_db: usize,
}

/// One query's names.
#[derive(Default)]
pub(crate) struct Scope {
    sources: Few<ScopeSource>,
    /// Columns merged by USING or NATURAL, and what stands for them.
    merged: Vec<(Rc<str>, Expr)>,
    aliases: Vec<(Rc<str>, Expr)>,
    /// Arguments of the table-valued functions among the sources that name what only the result list may know.
    late_arguments: Vec<(usize, Vec<ast::Expr>)>,
    aggs: Vec<Agg>,
    windows: Vec<WindowDef>,
    /// The WINDOW clause.
    named_windows: Vec<(Rc<str>, ast::Window)>,
    /// What stands in a window function's call is being bound.
    in_window: bool,
    phase: Phase,
    has_agg: bool,
    /// There is a GROUP BY.
    groups: bool,
}

/// What part of a query is being bound: whether aggregates may stand there.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Phase {
    /// FROM and WHERE: no aggregates.
    #[default]
    Rows,
    /// Inside an aggregate's arguments.
    Aggregate,
    /// GROUP BY: no aggregates, aliases allowed.
    GroupBy,
    /// Result, HAVING, ORDER BY.
    Groups,
}

pub(crate) struct ScopeSource {
    id: TableId,
    db: Option<usize>,
    name: Rc<str>,
    columns: Columns,
    /// Columns that a USING or NATURAL of this table merged away.
    hidden: Vec<usize>,
}

/// The columns of a table occurrence.
#[derive(Clone)]
pub(crate) enum Columns {
    Table(Rc<Table>),
    Query(Rc<[QueryColumn]>),
}

/// A column of a query in FROM.
#[derive(Clone)]
pub(crate) struct QueryColumn {
    /// Its name as the query's, which no other column of the query has.
    name: Rc<str>,
    /// What it is inside of the parentheses of a join.
    inside: Option<Inside>,
    out: OutColumn,
    /// Merged away by USING inside the parentheses, or a rowid: found only by its qualified name.
    shadowed: bool,
}

/// A column of a join in parentheses, as it is called there.
#[derive(Clone)]
pub(crate) struct Inside {
    /// The table; of what USING merges, none.
    table: Option<Rc<str>>,
    column: Rc<str>,
    rowid: bool,
    /// A hidden column of its table, which no star lists.
    hidden: bool,
}

impl Inside {
    /// Whether it is a column of this table, rowids aside.
    fn belongs_to(&self, table: &str) -> bool {
        !self.rowid && self.table.as_ref().is_some_and(|t| t.eq_ignore_ascii_case(table))
    }
}

impl QueryColumn {
    /// The name that it is found by without a table's.
    fn bare_name(&self) -> &str {
        self.inside.as_ref().map_or(&self.name, |i| &i.column)
    }
}

struct Nesting {
    /// Number of scopes outside of this nested query.
    outside: usize,
    outer: Vec<TableId>,
}

/// The working table of a recursive query, while one of its recursive arms is bound.
#[derive(Clone)]
struct Working {
    id: TableId,
    columns: Rc<[QueryColumn]>,
    /// The arm's FROM clause has named it: nothing else may.
    met: bool,
}

#[derive(Clone)]
struct CteDef {
    ast: Rc<ast::Cte>,
    /// Number of definitions that it can see.
    visible: usize,
    id: u32,
    /// While the recursive part of this one is bound: its working table.
    working: Option<Working>,
    /// While it is bound: a reference to itself is circular unless `working`.
    busy: bool,
    uses: Rc<std::cell::Cell<u32>>,
}

impl<'a> Binder<'a> {
    /// A binder for one statement.
    pub fn new(env: &'a Env<'a>, text: &'a str) -> Binder<'a> {
        Binder {
            env,
            text,
            scopes: Few::new(),
            frames: Vec::new(),
            returned: None,
            ctes: Vec::new(),
            next_table: 0,
            next_agg: 0,
            next_sub: 0,
            next_cte: 0,
            selects: 0,
            depth: 0,
            databases: 0,
            restriction: Restriction::None,
            stored: false,
            carried: false,
            named_for_good: false,
            trigger: None,
            views: Vec::new(),
            view_uses: Vec::new(),
            excluded: None,
            virtual_tables: Vec::new(),
            asked: authorize::Asked::default(),
            calls_out: Cell::new(false),
            log: None,
            quoted: Vec::new(),
            within: 0,
            complaint: None,
            too_deep: false,
            in_query: false,
            query_failed: false,
        }
    }

    /// Notes that a name refers to a table or to one of its columns.
    pub(crate) fn note_name(&mut self, n: &ast::Name, table: &Rc<Table>, column: Option<usize>) {
        if let Some(log) = &mut self.log {
            log.push(NameUse { span: n.span, quote: n.quote, table: table.clone(), column });
        }
    }

    /// The numbers that the statement has used.
    pub(crate) fn numbers(&self) -> Numbers {
        Numbers { table: self.next_table, agg: self.next_agg, sub: self.next_sub, selects: self.selects }
    }

    /// A fresh table number.
    pub fn new_table(&mut self) -> TableId {
        self.next_table += 1;
        self.next_table
    }

    /// A fresh aggregate number.
    pub fn new_agg(&mut self) -> AggId {
        self.next_agg += 1;
        self.next_agg
    }

    fn new_sub(&mut self) -> SubId {
        self.next_sub += 1;
        self.next_sub
    }

    /// The number by which a query is shown: what the parser gave it; those of a view come behind all others.
    fn number(&mut self, written: u32) -> u32 {
        if written > 0 && self.views.is_empty() {
            return written;
        }
        self.selects += 1;
        self.selects
    }

    /// As [`Binder::collation`], where it is not clear yet whether anything is compared by it.
    pub(crate) fn named_collation(&self, name: &str) -> Result<Collation> {
        let found = self.collation(name);
        if self.env.missing_collations { found.or_else(|_| Ok(Collation::missing(name))) } else { found }
    }

    /// The collating sequence with this name.
    pub fn collation(&self, name: &str) -> Result<Collation> {
        self.env.registry.collation(name, self.env.encoding).ok_or_else(|| missing_collation(name))
    }

    /// BINARY, as this database's encoding has it.
    pub fn binary(&self) -> Collation {
        if self.env.encoding == Encoding::Utf8 {
            Collation::Binary
        } else {
            Collation::Binary16(self.env.encoding)
        }
    }

    /// The collating sequence of a table's column.
    pub fn column_collation(&self, t: &Table, column: usize) -> Result<Collation> {
        match &t.columns[column].collation {
            Some(name) => self.named_collation(name),
            None => Ok(self.binary()),
        }
    }

    /// The key description of an index.
    pub fn index_key(&self, t: &Table, index: &iolite_catalog::Index) -> Result<Rc<KeyInfo>> {
        index_key(self.env, t, index)
    }

    /// Whether an expression bound so far holds a query.
    pub fn has_subqueries(&self) -> bool {
        self.next_sub > 0
    }

    /// Runs `f` with the scopes, CTEs and text of the surroundings put aside: for views and triggers.
    pub(crate) fn isolated<T>(
        &mut self,
        text: &str,
        f: impl for<'t> FnOnce(&mut Binder<'t>) -> Result<T>,
    ) -> Result<T>
    where
        'a: 'a,
    {
        let mut inner = Binder {
            env: self.env,
            text,
            scopes: Few::new(),
            frames: Vec::new(),
            returned: None,
            ctes: Vec::new(),
            next_table: self.next_table,
            next_agg: self.next_agg,
            next_sub: self.next_sub,
            next_cte: self.next_cte,
            selects: self.selects,
            depth: self.depth,
            databases: self.databases,
            restriction: Restriction::None,
            stored: false,
            carried: false,
            named_for_good: false,
            trigger: None,
            views: std::mem::take(&mut self.views),
            view_uses: std::mem::take(&mut self.view_uses),
            excluded: None,
            virtual_tables: Vec::new(),
            asked: std::mem::take(&mut self.asked),
            calls_out: self.calls_out.clone(),
            log: None,
            quoted: Vec::new(),
            within: 0,
            complaint: None,
            too_deep: false,
            in_query: false,
            query_failed: false,
        };
        let out = f(&mut inner);
        self.asked = std::mem::take(&mut inner.asked);
        self.calls_out = inner.calls_out;
        self.next_table = inner.next_table;
        self.next_agg = inner.next_agg;
        self.next_sub = inner.next_sub;
        self.next_cte = inner.next_cte;
        self.selects = inner.selects;
        self.databases = inner.databases;
        self.views = std::mem::take(&mut inner.views);
        self.view_uses = std::mem::take(&mut inner.view_uses);
        out.map_err(Error::without_offset)
    }

    /// Counts nesting of queries and expressions, so that the stack is enough. The parser holds expressions to the limit; around
    /// one that reaches it may stand some queries and calls.
    pub(crate) fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        let max = self.env.limits.get(Limit::ExprDepth);
        if max > 0 && self.depth > max as u32 + SPARE_DEPTH {
            return Err(Error::sql(format!("Expression tree is too large (maximum depth {max})")));
        }
        if self.depth > SHALLOW && !(self.env.has_stack)() {
            self.too_deep = true;
            return Err(Error::sql("queries are nested too deeply"));
        }
        Ok(())
    }

    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }
}

/// The complaint about a name in double quotes that is no column's.
pub fn missing_quoted(name: &str) -> Error {
    Error::sql(format!("no such column: \"{name}\" - should this be a string literal in single-quotes?"))
}

/// The complaint about a collating sequence that nobody has registered.
pub fn missing_collation(name: &str) -> Error {
    Error::new(Code::ErrorMissingCollseq, format!("no such collation sequence: {name}"))
}

/// The key description of an index.
pub fn index_key(env: &Env<'_>, t: &Table, index: &iolite_catalog::Index) -> Result<Rc<KeyInfo>> {
    if let Some(key) = index.key.get().filter(|k| k.enc == env.encoding) {
        return Ok(key.clone());
    }
    let key = Rc::new(make_index_key(env, t, index)?);
    if index.columns.iter().all(|c| c.collation.is_none()) {
        // Another encoding makes another catalog, but for the temporary tables that are there.
        let _ = index.key.set(key.clone());
    }
    Ok(key)
}

fn make_index_key(env: &Env<'_>, t: &Table, index: &iolite_catalog::Index) -> Result<KeyInfo> {
    use iolite_value::compare::KeyField;
    let binary =
        if env.encoding == Encoding::Utf8 { Collation::Binary } else { Collation::Binary16(env.encoding) };
    let is_table = t.primary_index().is_some_and(|p| std::ptr::eq(&*p, index));
    let mut fields = Vec::with_capacity(index.columns.len());
    let n = if is_table { index.key_len } else { index.columns.len() };
    for c in &index.columns[..n] {
        let coll = match &c.collation {
            None => binary.clone(),
            Some(name) => match env.registry.collation(name, env.encoding) {
                Some(c) => c,
                None if env.missing_collations => Collation::missing(name),
                None => return Err(missing_collation(name)),
            },
        };
        fields.push(KeyField { coll, desc: c.desc, nulls_large: false });
    }
    Ok(KeyInfo { enc: env.encoding, fields, columns: index.columns.len() })
}
