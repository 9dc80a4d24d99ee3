//! PRAGMA (documentation page `pragma`): one entry per pragma with its name, columns and code.
//!
//! Entries stand with their code: `connection` (settings of a connection beside the flags of the table in `settings`), `file`
//! (what belongs to a database file and its pages), `schema` (lists), `work` (checks, vacuum, checkpoints, memory), `columns`
//! (the columnar engine). A pragma is code that runs when its statement is stepped, and answers all rows at once.

mod columns;
mod connection;
mod file;
mod schema;
mod words;
mod work;

use crate::connection::{Connection, Inner};
use crate::settings::{FLAGS, Flag};
use crate::work::work_program;
use iolite_base::{Error, Result};
use iolite_btree::Btree;
use iolite_bytecode::Program;
use iolite_catalog::Table;
use iolite_sql::ast::{Name, PragmaValue, QualifiedName};
use iolite_value::Value;
use std::rc::Rc;

type Rows = Vec<Vec<Value>>;

/// What a pragma is given.
struct Call<'a> {
    conn: &'a Connection,
    /// The database named before the pragma.
    schema: Option<&'a str>,
    value: Option<&'a str>,
    /// The value is a number as it was written.
    number: bool,
}

/// One pragma.
#[derive(Clone, Copy)]
struct Pragma {
    name: &'static str,
    /// `None`: one of the pragma's name.
    columns: Option<&'static [&'static str]>,
    schemas: Schemas,
    silent: bool,
    writes: Writes,
    work: Work,
    /// What is wrong with a call, as far as that is told when it is compiled.
    test: fn(&Call<'_>) -> Result<()>,
}

#[derive(Clone, Copy)]
enum Work {
    Run(fn(&Call<'_>) -> Result<Rows>),
    Set(&'static Flag),
}

/// What a pragma needs to know of the schemas before it runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Schemas {
    /// Nothing.
    Unread,
    /// What was read of them, at any time.
    Known,
    /// What they say now, until it ends: that of the database named before it, or all.
    Current,
    /// As `Current`, where nothing is named or given that of the main database.
    Main,
    /// As `Current`, where nothing is named that of the table which is its value.
    OfTable,
    /// What they say now; it may change that.
    Changed,
}

impl Schemas {
    fn look(self, inner: &Inner, named: Option<&str>, value: Option<&str>) -> Result<()> {
        let home = || {
            inner.load_schemas()?;
            let catalog = inner.catalog.borrow();
            let found = value.and_then(|v| catalog.table(None, v));
            Ok::<_, Error>(found.map(|(db, _)| catalog.schemas[db].name.to_string()))
        };
        match self {
            Schemas::Unread => Ok(()),
            Schemas::Known => inner.load_schemas(),
            Schemas::Main if value.is_none() => inner.be_current(named.or(Some("main")), true),
            Schemas::OfTable if named.is_none() => inner.be_current(home()?.as_deref(), true),
            Schemas::Current | Schemas::Main | Schemas::OfTable => inner.be_current(named, true),
            Schemas::Changed => inner.be_current(named, false),
        }
    }
}

/// When a pragma may change a database file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writes {
    Never,
    WithValue,
    Always,
}

impl Pragma {
    /// A pragma with one column of its own name.
    const fn new(name: &'static str, run: fn(&Call<'_>) -> Result<Rows>) -> Pragma {
        Pragma::of(name, Work::Run(run))
    }

    const fn of(name: &'static str, work: Work) -> Pragma {
        let test = |_: &Call<'_>| Ok(());
        Pragma {
            name,
            columns: None,
            schemas: Schemas::Unread,
            silent: false,
            writes: Writes::Never,
            work,
            test,
        }
    }

    const fn flag(flag: &'static Flag) -> Pragma {
        Pragma { silent: flag.of_sqlite, ..Pragma::of(flag.pragma, Work::Set(flag)) }
    }

    /// With these columns.
    const fn columns(self, columns: &'static [&'static str]) -> Pragma {
        Pragma { columns: Some(columns), ..self }
    }

    /// Needs to know this of the schemas.
    const fn needs(self, schemas: Schemas) -> Pragma {
        Pragma { schemas, ..self }
    }

    /// Answers nothing when it is given a value.
    const fn silent(self) -> Pragma {
        Pragma { silent: true, ..self }
    }

    /// With a test when it is compiled.
    const fn tested(self, test: fn(&Call<'_>) -> Result<()>) -> Pragma {
        Pragma { test, ..self }
    }

    const fn writes(self, when: Writes) -> Pragma {
        Pragma { writes: when, ..self }
    }
}

/// All pragmas.
fn all() -> impl Iterator<Item = Pragma> {
    let lists = [columns::PRAGMAS, connection::PRAGMAS, file::PRAGMAS, schema::PRAGMAS, work::PRAGMAS];
    FLAGS.iter().map(Pragma::flag).chain(lists.into_iter().flatten().copied())
}

fn find(name: &str) -> Option<Pragma> {
    all().find(|p| p.name.eq_ignore_ascii_case(name))
}

/// Whether a pragma, asked or given a value, may change a database file.
pub(crate) fn changes_files(name: &str, given: bool) -> bool {
    find(name).is_some_and(|p| match p.writes {
        Writes::Never => false,
        Writes::WithValue => given,
        Writes::Always => true,
    })
}

/// Compiles PRAGMA. An unknown one does nothing.
pub(crate) fn compile(
    conn: &Connection,
    name: &QualifiedName,
    value: Option<&PragmaValue>,
) -> Result<Program> {
    if let Some(program) = answered_by_file(conn, name, value)? {
        return Ok(program);
    }
    let p = find(&name.name.text);
    if p.is_some_and(|p| p.schemas != Schemas::Unread) {
        conn.0.load_schemas()?;
    }
    let schema = name.schema.as_ref().map(|s| s.text.to_string());
    if let Some(s) = &schema
        && conn.0.catalog.borrow().database(s).is_none()
    {
        let written = name.schema.as_ref().map(Name::written);
        let at = name.schema.as_ref().map_or(0, |n| n.span.start);
        return Err(Error::sql(format!("unknown database {}", written.unwrap_or_default())).at(at));
    }
    let Some(p) = p else {
        return work_program(conn, &[], Rc::new(|_| Ok(Vec::new())), &[]);
    };
    let number = value.is_some_and(|v| v.number);
    let value = value.map(|v| v.text.to_string());
    (p.test)(&Call { conn, schema: schema.as_deref(), value: value.as_deref(), number })?;
    let silent = value.is_some() && p.silent;
    let own = [p.name];
    let columns = if silent { &[] } else { p.columns.unwrap_or(&own) };
    let work = move |c: &Connection| {
        p.schemas.look(&c.0, schema.as_deref(), value.as_deref())?;
        let call = Call { conn: c, schema: schema.as_deref(), value: value.as_deref(), number };
        let rows = match p.work {
            Work::Run(run) => run(&call)?,
            Work::Set(flag) => connection::flag(&call, (flag.cell)(&c.0.settings))?,
        };
        Ok(if silent { Vec::new() } else { rows })
    };
    work_program(conn, columns, Rc::new(work), &[])
}

/// A VFS of the user's may answer pragmas in place of the engine, also those that the engine does not know: once, while the
/// statement is compiled.
fn answered_by_file(
    conn: &Connection,
    name: &QualifiedName,
    value: Option<&PragmaValue>,
) -> Result<Option<Program>> {
    let db = match &name.schema {
        Some(s) => conn.0.catalog.borrow().database(&s.text),
        None => Some(0),
    };
    let Some(b) = db.and_then(|db| conn.0.btree_if_open(db)) else { return Ok(None) };
    let (name, value) = (name.name.text.as_bytes(), value.map(|v| v.text.as_bytes()));
    let answer = b.with_files(|file, _| file.map_or(Ok(None), |f| f.pragma(name, value)))??;
    let Some(answer) = answer else { return Ok(None) };
    if answer.is_empty() {
        return work_program(conn, &[], Rc::new(|_| Ok(Vec::new())), &[]).map(Some);
    }
    let column = iolite_base::raw_text::encode(&answer).into_owned();
    let rows = vec![vec![Value::text(&answer[..])?]];
    work_program(conn, &[&column], Rc::new(move |_| Ok(rows.clone())), &[]).map(Some)
}

impl Call<'_> {
    fn inner(&self) -> &Inner {
        &self.conn.0
    }

    fn db(&self) -> Result<usize> {
        self.schema.map_or(Ok(0), |s| self.inner().database_number(s))
    }

    fn btree(&self) -> Result<Btree> {
        self.inner().btree_of(self.db()?)
    }

    /// Whether the schema has been read.
    fn has_schema(&self) -> Result<bool> {
        Ok(self.inner().catalog.borrow().schemas[self.db()?].loaded)
    }

    /// The databases that a setting applies to: the named one, or all.
    fn all(&self) -> Result<Vec<Btree>> {
        match self.schema {
            Some(_) => Ok(vec![self.btree()?]),
            None => Ok(self.inner().open_trees()),
        }
    }

    fn table(&self) -> Option<Rc<Table>> {
        let name = self.value?;
        self.inner().catalog.borrow().table(self.schema, name).map(|t| t.1)
    }

    /// Runs `f` in a read transaction.
    fn reading<T>(&self, f: impl FnOnce(&Btree) -> Result<T>) -> Result<T> {
        self.btree()?.reading(f)
    }

    /// As [`Call::reading`]; within BEGIN and COMMIT the database is read on from here.
    fn reading_on<T>(&self, f: impl FnOnce(&Btree) -> Result<T>) -> Result<T> {
        let (b, txn) = (self.btree()?, &self.inner().txn);
        if !txn.is_autocommit() && !txn.is_nested() {
            b.begin_read()?;
        }
        b.reading(f)
    }

    /// Runs `f` in a write transaction, which commits unless one is open. Where that fails it is taken back, with its locks;
    /// statements that read go on reading.
    fn writing(&self, f: impl FnOnce(&Btree) -> Result<()>) -> Result<()> {
        let b = self.btree()?;
        let (inner, txn) = (self.inner(), &self.inner().txn);
        inner.begin_write(&b, false)?;
        let done = f(&b);
        if !txn.is_autocommit() || txn.is_writing() || txn.is_nested() {
            return done;
        }
        match done {
            Ok(()) => txn.commit(inner),
            Err(e) => {
                // What goes wrong while it is undone matters less than why.
                let _ = txn.rollback(inner);
                Err(e)
            }
        }
    }
}

fn one(v: Value) -> Result<Rows> {
    Ok(vec![vec![v]])
}

fn int(i: i64) -> Result<Rows> {
    one(Value::Int(i))
}

fn text(s: &str) -> Result<Value> {
    Value::text(iolite_base::raw_text::decode(s))
}

fn opt_text(s: Option<&str>) -> Result<Value> {
    s.map_or(Ok(Value::Null), text)
}
