//! What the catalog holds: tables, columns, indexes, triggers.

use crate::stat::IndexStat;
use iolite_base::{Pgno, same_name};
use iolite_sql::ast;
use iolite_value::{Affinity, KeyInfo, Value};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

/// A table, view or virtual table.
///
/// Columns are numbered as declared. What is stored of a row, and where, is said by [`Table::storage`].
pub struct Table {
    /// Its name as written.
    pub name: Rc<str>,
    /// Root page; 0 for views and virtual tables.
    pub root: Cell<Pgno>,
    /// Columns in the order of declaration.
    pub columns: Vec<Column>,
    /// What kind of thing it is.
    pub kind: TableKind,
    /// The column that is an alias of the rowid.
    pub rowid_alias: Option<usize>,
    /// `AUTOINCREMENT`.
    pub autoincrement: bool,
    /// `STRICT`.
    pub strict: bool,
    /// Conflict policy of the rowid alias's PRIMARY KEY.
    pub key_conflict: Option<ast::Conflict>,
    /// `CHECK` constraints, column constraints first.
    pub checks: Vec<Check>,
    /// `REFERENCES` and `FOREIGN KEY` in order of declaration.
    pub foreign_keys: Vec<ForeignKey>,
    /// Indexes, the newest first, as SQLite keeps them.
    pub indexes: RefCell<Vec<Rc<Index>>>,
    /// Triggers on it (of its own database), the newest first.
    pub triggers: RefCell<Vec<Rc<Trigger>>>,
    /// The text of its CREATE statement; none for the schema table and eponymous virtual tables.
    pub sql: Option<Rc<str>>,
    /// Estimated rows.
    pub rows: Cell<f64>,
    /// Whether `rows` was measured.
    pub has_stat: Cell<bool>,
    /// A plan was made with what `sqlite_stat1` says of an index.
    pub stat_used: Cell<bool>,
    /// Column numbers in the order in which a record stores them.
    pub storage: Vec<usize>,
    /// Reverse of `storage`: the record field of each column, if it is stored.
    pub field_of: Vec<Option<usize>>,
    /// What records that end before a column stand for, once it was worked out; see [`Table::absent_value`].
    pub(crate) absent: OnceCell<Vec<Option<Rc<Value>>>>,
    pub(crate) affinities: OnceCell<Rc<[Affinity]>>,
}

/// What kind of table.
pub enum TableKind {
    /// An ordinary rowid table.
    Rowid,
    /// WITHOUT ROWID: the primary key's index is the table.
    WithoutRowid,
    /// A view: column names if given, and the query's text parsed.
    View {
        /// Column names, if given.
        names: Vec<ast::Name>,
        /// The query.
        select: Rc<ast::Select>,
    },
    /// A virtual table.
    Virtual {
        /// The module's name.
        module: Box<str>,
        /// Arguments of the module.
        args: Vec<Box<str>>,
        /// Its rows have rowids, as far as is known: its declaration says so.
        rowid: bool,
    },
}

/// A column.
pub struct Column {
    /// Name as written.
    pub name: Rc<str>,
    /// The declared type; empty if none.
    pub decltype: Rc<str>,
    /// Its affinity.
    pub affinity: Affinity,
    /// The collating sequence's name, if declared.
    pub collation: Option<Rc<str>>,
    /// `NOT NULL` with its conflict policy; `Some(Abort)` by default.
    pub not_null: Option<ast::Conflict>,
    /// The default.
    pub default: Option<DefaultValue>,
    /// Place in the PRIMARY KEY, from 1; 0 if it is no part.
    pub pk: usize,
    /// Hidden column of a virtual table.
    pub hidden: bool,
    /// Generated column.
    pub generated: Option<Generated>,
    /// Part of a `UNIQUE` constraint of its own or the sole primary key: for `PRAGMA table_info` no use; kept for
    /// the planner.
    pub unique: bool,
    pub(crate) label: OnceCell<Rc<str>>,
}

/// A `DEFAULT`.
pub struct DefaultValue {
    /// The expression.
    pub expr: Rc<ast::Expr>,
    /// As written, for `PRAGMA table_info`.
    pub text: Box<str>,
}

/// A generated column's expression.
pub struct Generated {
    /// The expression.
    pub expr: Rc<ast::Expr>,
    /// Stored (else virtual: computed when read).
    pub stored: bool,
}

/// A `CHECK` constraint.
pub struct Check {
    /// The expression.
    pub expr: Rc<ast::Expr>,
    /// The constraint's name, or the expression's text: what the error message says.
    pub label: Box<str>,
}

/// A foreign key.
pub struct ForeignKey {
    /// Columns of this table.
    pub columns: Vec<usize>,
    /// The parent table.
    pub parent: Box<str>,
    /// Parent columns; empty: its primary key.
    pub parent_columns: Vec<Box<str>>,
    /// `ON DELETE`.
    pub on_delete: ast::ForeignKeyAction,
    /// `ON UPDATE`.
    pub on_update: ast::ForeignKeyAction,
    /// `DEFERRABLE INITIALLY DEFERRED`.
    pub deferred: bool,
}

/// Where an index field comes from.
#[derive(Clone)]
pub enum ColumnSource {
    /// A column of the table.
    Column(usize),
    /// The rowid.
    Rowid,
    /// An expression.
    Expr(Rc<ast::Expr>),
}

/// A field of an index.
#[derive(Clone)]
pub struct IndexColumn {
    /// What it holds.
    pub source: ColumnSource,
    /// The collating sequence's name; none: BINARY.
    pub collation: Option<Rc<str>>,
    /// Descending.
    pub desc: bool,
}

/// Why an index exists, with the letter that `PRAGMA index_list` shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexOrigin {
    /// `c`: CREATE INDEX.
    Create,
    /// `u`: UNIQUE.
    Unique,
    /// `pk`: PRIMARY KEY.
    PrimaryKey,
}

/// An index. For a WITHOUT ROWID table the primary key's index is the table itself and holds all columns.
pub struct Index {
    /// Name.
    pub name: Rc<str>,
    /// The table's name.
    pub table: Rc<str>,
    /// Root page.
    pub root: Cell<Pgno>,
    /// All fields of an entry: `key_len` declared ones, then the rowid, or the primary key columns not yet there.
    pub columns: Vec<IndexColumn>,
    /// How many fields were declared.
    pub key_len: usize,
    /// UNIQUE, with its conflict policy.
    pub unique: Option<ast::Conflict>,
    /// `WHERE` of a partial index.
    pub filter: Option<Rc<ast::Expr>>,
    /// Why it exists.
    pub origin: IndexOrigin,
    /// Text of its CREATE INDEX; none for constraints' indexes.
    pub sql: Option<Rc<str>>,
    /// What is known of its selectivity.
    pub stat: RefCell<IndexStat>,
    /// What one step in it costs, and whether its entries are thought to be shorter than rows, once the planner has asked.
    pub step: OnceCell<(f64, bool)>,
    /// How its entries are compared, once somebody has asked, where no collating sequence is named: what a name means may change.
    pub key: OnceCell<Rc<KeyInfo>>,
    pub(crate) label: OnceCell<Rc<str>>,
    pub(crate) affinities: OnceCell<Rc<[Affinity]>>,
}

/// A trigger.
pub struct Trigger {
    /// Name.
    pub name: Rc<str>,
    /// The table it is on.
    pub table: Rc<str>,
    /// The database the table is in, where it is not the trigger's own (temp triggers).
    pub table_schema: Option<Box<str>>,
    /// BEFORE, AFTER, INSTEAD OF.
    pub time: ast::TriggerTime,
    /// What fires it.
    pub event: ast::TriggerEvent,
    /// The parsed statement.
    pub ast: Rc<ast::CreateTrigger>,
    /// Its text.
    pub sql: Rc<str>,
}

impl Table {
    /// The column with this name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| same_name(&c.name, name))
    }

    /// The indexes, one after the other. Nothing is borrowed meanwhile: between two of them a program that is asked may
    /// change the schema.
    pub fn each_index(&self) -> impl Iterator<Item = Rc<Index>> {
        let mut next = 0..;
        std::iter::from_fn(move || next.next().and_then(|k| self.indexes.borrow().get(k).cloned()))
    }

    /// `table.column`, as messages name a column.
    pub fn column_label(&self, column: usize) -> &Rc<str> {
        let c = &self.columns[column];
        c.label.get_or_init(|| [&self.name, ".", &c.name].concat().into())
    }

    /// The affinities of a record's fields.
    pub fn affinities(&self) -> &Rc<[Affinity]> {
        self.affinities.get_or_init(|| self.storage.iter().map(|c| self.columns[*c].affinity).collect())
    }

    /// Whether rows have rowids.
    pub fn has_rowid(&self) -> bool {
        matches!(self.kind, TableKind::Rowid | TableKind::Virtual { rowid: true, .. })
    }

    /// Whether this is a view.
    pub fn is_view(&self) -> bool {
        matches!(self.kind, TableKind::View { .. })
    }

    /// Whether this is a virtual table.
    pub fn is_virtual(&self) -> bool {
        matches!(self.kind, TableKind::Virtual { .. })
    }

    /// The primary key's index of a WITHOUT ROWID table.
    pub fn primary_index(&self) -> Option<Rc<Index>> {
        if !matches!(self.kind, TableKind::WithoutRowid) {
            return None;
        }
        self.indexes.borrow().iter().find(|i| i.origin == IndexOrigin::PrimaryKey).cloned()
    }

    /// What a record that ends before the column stands for, if that is not NULL: the column was added when the row was
    /// there already. [`Table::set_absent_values`] comes first.
    pub fn absent_value(&self, column: usize) -> Option<&Rc<Value>> {
        self.absent_values()?.get(column)?.as_ref()
    }

    /// These values by column, as far as there are any; none: nobody has worked them out yet.
    pub fn absent_values(&self) -> Option<&[Option<Rc<Value>>]> {
        self.absent.get().map(|v| &v[..])
    }

    /// Keeps these values.
    pub fn set_absent_values(&self, values: Vec<Option<Rc<Value>>>) {
        let _ = self.absent.set(values);
    }

    /// Whether any column is generated.
    pub fn has_generated(&self) -> bool {
        self.columns.iter().any(|c| c.generated.is_some())
    }
}

impl Column {
    /// Whether the value is in the record.
    pub fn is_stored(&self) -> bool {
        self.generated.as_ref().is_none_or(|g| g.stored)
    }
}

impl Index {
    /// Before schema format 4, DESC was written and did not count: the trees of such files are in ascending order.
    pub fn heed_format(&mut self, format: u32) {
        if format < 4 {
            self.columns.iter_mut().for_each(|c| c.desc = false);
        }
    }

    /// The field of an entry that holds a column of the table, uncollated reads only.
    pub fn field_of(&self, column: usize) -> Option<usize> {
        self.columns.iter().position(|c| matches!(c.source, ColumnSource::Column(n) if n == column))
    }

    /// What messages say that a unique index is about: its columns, or its name where it has others.
    pub fn label(&self, table: &Table) -> &Rc<str> {
        self.label.get_or_init(|| {
            if self.has_expr() {
                return format!("index '{}'", self.name).into();
            }
            let column = |c: &IndexColumn| match c.source {
                ColumnSource::Column(k) => Some(&**table.column_label(k)),
                ColumnSource::Rowid | ColumnSource::Expr(_) => None,
            };
            self.columns[..self.key_len].iter().filter_map(column).collect::<Vec<_>>().join(", ").into()
        })
    }

    /// The affinities of an entry's fields, where none is an expression, whose affinity is known when it is bound.
    pub fn affinities(&self, table: &Table) -> Option<&Rc<[Affinity]>> {
        if self.affinities.get().is_none() && self.has_expr() {
            return None;
        }
        let of = |c: &IndexColumn| match c.source {
            ColumnSource::Column(k) => table.columns[k].affinity,
            ColumnSource::Rowid | ColumnSource::Expr(_) => Affinity::Integer,
        };
        Some(self.affinities.get_or_init(|| self.columns.iter().map(of).collect()))
    }

    /// Whether its entries are computed from rows: it is of some of them, or has a field that no record of theirs has.
    pub fn computes(&self, table: &Table) -> bool {
        let computed = |c: &IndexColumn| match c.source {
            ColumnSource::Expr(_) => true,
            ColumnSource::Column(k) => !table.columns[k].is_stored(),
            ColumnSource::Rowid => false,
        };
        self.filter.is_some() || self.columns.iter().any(computed)
    }

    /// Whether a field is an expression.
    pub fn has_expr(&self) -> bool {
        self.columns.iter().any(|c| matches!(c.source, ColumnSource::Expr(_)))
    }
}

/// The type of a STRICT column, if the declared type is one that STRICT allows.
pub fn strict_type(decltype: &str) -> Option<&'static str> {
    ["ANY", "INT", "INTEGER", "REAL", "TEXT", "BLOB"].into_iter().find(|t| t.eq_ignore_ascii_case(decltype))
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Index({})", self.name)
    }
}
