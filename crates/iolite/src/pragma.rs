//! PRAGMA (documentation page `pragma`): one entry per pragma with its name, columns and code.

use crate::connection::{Connection, Flags, Inner};
use crate::control::work_program;
use iolite_base::{Encoding, Error, Result, alloc};
use iolite_btree::{
    AutoVacuum, Btree, CheckpointMode, JournalMode, LockingMode, SecureDelete, SyncMode, TxnState,
};
use iolite_bytecode::Program;
use iolite_catalog::{ColumnSource, Table, TableKind};
use iolite_sql::ast::{ForeignKeyAction, PragmaValue, QualifiedName};
use iolite_value::Value;
use std::cell::Cell;
use std::rc::Rc;

type Rows = Vec<Vec<Value>>;

/// What a pragma is given.
pub(crate) struct Call<'a> {
    conn: &'a Connection,
    /// The database named before the pragma.
    schema: Option<&'a str>,
    value: Option<&'a str>,
}

/// One pragma.
pub(crate) struct Pragma {
    /// Its name.
    pub name: &'static str,
    /// Its columns; a single empty name: the pragma's own.
    pub columns: &'static [&'static str],
    /// Works on the schema, which must be read before.
    pub schema: bool,
    code: fn(&Call<'_>) -> Result<Rows>,
}

const OWN: &[&str] = &[""];

macro_rules! flag {
    ($name:literal, $field:ident) => {
        Pragma { name: $name, columns: OWN, schema: false, code: |c| flag(c, |f| &f.$field) }
    };
}

/// All pragmas, by name.
pub(crate) static PRAGMAS: &[Pragma] = &[
    Pragma { name: "analytics", columns: OWN, schema: false, code: analytics },
    Pragma {
        name: "analysis_limit",
        columns: OWN,
        schema: false,
        code: |c| {
            // A negative one asks what it is.
            let asks = c.value.is_some_and(|v| parse_number(v) < 0);
            number(&Call { value: c.value.filter(|_| !asks), ..*c }, |f| &f.analysis_limit)
        },
    },
    Pragma { name: "application_id", columns: OWN, schema: false, code: |c| meta(c, 8) },
    Pragma { name: "auto_vacuum", columns: OWN, schema: false, code: auto_vacuum },
    flag!("automatic_index", automatic_index),
    Pragma { name: "busy_timeout", columns: &["timeout"], schema: false, code: busy_timeout },
    Pragma { name: "cache_size", columns: OWN, schema: false, code: cache_size },
    Pragma { name: "cache_spill", columns: OWN, schema: false, code: cache_spill },
    Pragma { name: "case_sensitive_like", columns: &[], schema: false, code: case_sensitive_like },
    flag!("cell_size_check", cell_size_check),
    flag!("checkpoint_fullfsync", checkpoint_fullfsync),
    Pragma { name: "checkpoint_thread", columns: OWN, schema: false, code: checkpoint_thread },
    Pragma { name: "collation_list", columns: &["seq", "name"], schema: false, code: collation_list },
    Pragma { name: "column_cache", columns: OWN, schema: false, code: column_cache },
    Pragma { name: "column_cache_size", columns: OWN, schema: false, code: column_cache_size },
    Pragma {
        name: "column_cache_stats",
        columns: &["name", "value"],
        schema: false,
        code: column_cache_stats,
    },
    Pragma { name: "column_cache_trust", columns: OWN, schema: false, code: column_cache_trust },
    flag!("column_derivation", column_derivation),
    Pragma { name: "column_work_size", columns: OWN, schema: false, code: column_work_size },
    Pragma { name: "compile_options", columns: OWN, schema: false, code: compile_options },
    flag!("count_changes", count_changes),
    Pragma { name: "data_version", columns: OWN, schema: false, code: data_version },
    Pragma { name: "database_list", columns: &["seq", "name", "file"], schema: false, code: database_list },
    Pragma { name: "default_cache_size", columns: &["cache_size"], schema: false, code: default_cache_size },
    Pragma {
        name: "defer_foreign_keys",
        columns: OWN,
        schema: false,
        code: |c| flag_in(c, c.inner().txn.defer_foreign_keys()),
    },
    flag!("empty_result_callbacks", empty_result_callbacks),
    Pragma { name: "encoding", columns: OWN, schema: true, code: encoding },
    Pragma {
        name: "foreign_key_check",
        columns: &["table", "rowid", "parent", "fkid"],
        schema: true,
        code: |c| crate::foreign_keys::check(c.conn, c.schema, c.value),
    },
    Pragma {
        name: "foreign_key_list",
        columns: &["id", "seq", "table", "from", "to", "on_update", "on_delete", "match"],
        schema: true,
        code: foreign_key_list,
    },
    flag!("foreign_keys", foreign_keys),
    Pragma { name: "freelist_count", columns: OWN, schema: false, code: freelist_count },
    flag!("full_column_names", full_column_names),
    flag!("fullfsync", fullfsync),
    Pragma {
        name: "function_list",
        columns: &["name", "builtin", "type", "enc", "narg", "flags"],
        schema: false,
        code: function_list,
    },
    Pragma { name: "hard_heap_limit", columns: OWN, schema: false, code: hard_heap_limit },
    flag!("ignore_check_constraints", ignore_checks),
    Pragma { name: "incremental_vacuum", columns: &[], schema: false, code: incremental_vacuum },
    Pragma {
        name: "index_info",
        columns: &["seqno", "cid", "name"],
        schema: true,
        code: |c| index_info(c, false),
    },
    Pragma {
        name: "index_list",
        columns: &["seq", "name", "unique", "origin", "partial"],
        schema: true,
        code: index_list,
    },
    Pragma {
        name: "index_xinfo",
        columns: &["seqno", "cid", "name", "desc", "coll", "key"],
        schema: true,
        code: |c| index_info(c, true),
    },
    Pragma { name: "integrity_check", columns: OWN, schema: true, code: |c| integrity_check(c, false) },
    Pragma { name: "journal_mode", columns: OWN, schema: false, code: journal_mode },
    Pragma { name: "journal_size_limit", columns: OWN, schema: false, code: journal_size_limit },
    flag!("legacy_alter_table", legacy_alter_table),
    Pragma { name: "large_value_direct", columns: OWN, schema: false, code: large_value_direct },
    Pragma { name: "lock_lease_ms", columns: OWN, schema: false, code: lock_lease_ms },
    Pragma { name: "locking_mode", columns: OWN, schema: false, code: locking_mode },
    flag!("lookahead_filters", lookahead_filters),
    Pragma { name: "max_page_count", columns: OWN, schema: false, code: max_page_count },
    Pragma { name: "mmap_size", columns: OWN, schema: false, code: mmap_size },
    Pragma { name: "module_list", columns: &["name"], schema: false, code: module_list },
    Pragma { name: "optimize", columns: OWN, schema: true, code: optimize },
    Pragma { name: "page_count", columns: OWN, schema: false, code: page_count },
    Pragma { name: "page_size", columns: OWN, schema: false, code: page_size },
    Pragma { name: "plan_cache", columns: OWN, schema: false, code: plan_cache },
    Pragma { name: "pragma_list", columns: &["name"], schema: false, code: pragma_list },
    flag!("query_only", query_only),
    Pragma { name: "quick_check", columns: OWN, schema: true, code: |c| integrity_check(c, true) },
    flag!("read_uncommitted", read_uncommitted),
    flag!("recursive_triggers", recursive_triggers),
    flag!("reverse_unordered_selects", reverse_unordered),
    Pragma { name: "schema_version", columns: OWN, schema: false, code: |c| meta(c, 1) },
    Pragma { name: "secure_delete", columns: OWN, schema: false, code: secure_delete },
    flag!("short_column_names", short_column_names),
    Pragma { name: "shrink_memory", columns: &[], schema: false, code: shrink_memory },
    Pragma { name: "sort_memory", columns: OWN, schema: false, code: |c| number(c, |f| &f.sort_memory) },
    Pragma { name: "soft_heap_limit", columns: OWN, schema: false, code: soft_heap_limit },
    Pragma { name: "synchronous", columns: OWN, schema: false, code: synchronous },
    Pragma {
        name: "table_info",
        columns: &["cid", "name", "type", "notnull", "dflt_value", "pk"],
        schema: true,
        code: |c| table_info(c, false),
    },
    Pragma {
        name: "table_list",
        columns: &["schema", "name", "type", "ncol", "wr", "strict"],
        schema: true,
        code: table_list,
    },
    Pragma {
        name: "table_xinfo",
        columns: &["cid", "name", "type", "notnull", "dflt_value", "pk", "hidden"],
        schema: true,
        code: |c| table_info(c, true),
    },
    Pragma { name: "temp_store", columns: OWN, schema: false, code: temp_store },
    Pragma { name: "threads", columns: OWN, schema: false, code: |c| number(c, |f| &f.threads) },
    flag!("trusted_schema", trusted_schema),
    Pragma { name: "user_version", columns: OWN, schema: false, code: |c| meta(c, 6) },
    Pragma { name: "wal_autocheckpoint", columns: OWN, schema: false, code: wal_autocheckpoint },
    Pragma {
        name: "wal_checkpoint",
        columns: &["busy", "log", "checkpointed"],
        schema: false,
        code: wal_checkpoint,
    },
    flag!("writable_schema", writable_schema),
];

/// The pragma with this name.
pub(crate) fn find(name: &str) -> Option<&'static Pragma> {
    PRAGMAS.iter().find(|p| p.name.eq_ignore_ascii_case(name))
}

/// Whether a pragma, asked or given a value, may change a database file.
pub(crate) fn changes_files(name: &str, given: bool) -> bool {
    let is = |names: &[&str]| names.iter().any(|n| n.eq_ignore_ascii_case(name));
    is(&["incremental_vacuum", "journal_mode", "wal_checkpoint"])
        || given && is(&["application_id", "default_cache_size", "schema_version", "user_version"])
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
    let Some(p) = find(&name.name.text) else {
        return work_program(conn, &[], Rc::new(|_| Ok(Vec::new())), &[]);
    };
    if p.schema {
        conn.0.load_schemas()?;
    }
    let schema = name.schema.as_ref().map(|s| s.text.to_string());
    if let Some(s) = &schema
        && conn.0.catalog.borrow().database(s).is_none()
    {
        return Err(Error::sql(format!("unknown database {s}")));
    }
    let value = value.map(|v| v.text.to_string());
    let columns: Vec<&str> = if p.columns == OWN { vec![p.name] } else { p.columns.to_vec() };
    let silent = value.is_some() && SETTERS_ARE_SILENT.contains(&p.name);
    let reads = p.schema && p.name != "optimize";
    let work = move |c: &Connection| {
        if p.schema {
            c.0.be_current(schema.as_deref(), reads)?;
        }
        let call = Call { conn: c, schema: schema.as_deref(), value: value.as_deref() };
        let rows = (p.code)(&call)?;
        Ok(if silent { Vec::new() } else { rows })
    };
    let columns = if silent { Vec::new() } else { columns };
    work_program(conn, &columns, Rc::new(work), &[])
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

/// Pragmas that answer nothing when they are given a value.
const SETTERS_ARE_SILENT: &[&str] = &[
    "application_id",
    "auto_vacuum",
    "automatic_index",
    "cache_size",
    "cache_spill",
    "cell_size_check",
    "checkpoint_fullfsync",
    "count_changes",
    "default_cache_size",
    "defer_foreign_keys",
    "empty_result_callbacks",
    "encoding",
    "foreign_keys",
    "full_column_names",
    "fullfsync",
    "ignore_check_constraints",
    "legacy_alter_table",
    "page_size",
    "query_only",
    "read_uncommitted",
    "recursive_triggers",
    "reverse_unordered_selects",
    "schema_version",
    "short_column_names",
    "synchronous",
    "temp_store",
    "trusted_schema",
    "user_version",
    "writable_schema",
];

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

/// Truth as pragmas write it.
fn truth(s: &str) -> bool {
    match s.to_ascii_lowercase().as_str() {
        "on" | "yes" | "true" => true,
        "off" | "no" | "false" => false,
        n => n.parse::<i64>().is_ok_and(|v| v != 0),
    }
}

/// A number of 32 bits as these settings read it: decimal or hexadecimal digits at the start; 0 if they are too many.
fn int32(s: &str) -> i32 {
    let (negative, digits) = match s.as_bytes().first() {
        Some(b'-') => (true, &s[1..]),
        Some(b'+') => (false, &s[1..]),
        _ => (false, s),
    };
    let start = |s: &str, f: fn(&u8) -> bool| s.bytes().take_while(|b| f(b)).count();
    if let Some(hex) = digits.strip_prefix("0x").or(digits.strip_prefix("0X")).filter(|_| !negative) {
        let n = start(hex, u8::is_ascii_hexdigit);
        return i32::from_str_radix(&hex[..n], 16).unwrap_or(0);
    }
    let n = start(digits, u8::is_ascii_digit);
    let v = digits[..n].parse::<i64>().unwrap_or(0);
    i32::try_from(if negative { -v } else { v }).unwrap_or(0)
}

fn parse_number(s: &str) -> i64 {
    iolite_value::num::text_to_int(s.as_bytes())
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

    /// The databases that a setting applies to: the named one, or all.
    fn all(&self) -> Result<Vec<Btree>> {
        match self.schema {
            Some(_) => Ok(vec![self.btree()?]),
            None => Ok(self.inner().databases.borrow().iter().filter_map(|d| d.btree.clone()).collect()),
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

fn flag(c: &Call<'_>, get: fn(&Flags) -> &Cell<bool>) -> Result<Rows> {
    flag_in(c, get(&c.inner().flags))
}

fn flag_in(c: &Call<'_>, cell: &Cell<bool>) -> Result<Rows> {
    if let Some(v) = c.value {
        let on = truth(v);
        let flags = &c.inner().flags;
        if std::ptr::eq(cell, &flags.writable_schema) && flags.defensive.get() {
            return Ok(Vec::new());
        }
        if std::ptr::eq(cell, &c.inner().flags.foreign_keys) && !c.inner().txn.is_autocommit() {
            return Ok(Vec::new());
        }
        if cell.replace(on) != on {
            c.inner().expire_statements();
        }
        if !on && std::ptr::eq(cell, c.inner().txn.defer_foreign_keys()) {
            c.inner().txn.forget_deferred_by_pragma();
        }
        if std::ptr::eq(cell, &flags.writable_schema) && v.eq_ignore_ascii_case("reset") {
            // What was written into the schema tables is read.
            (0..c.inner().databases.borrow().len()).for_each(|db| c.inner().forget_schema(db));
        }
    }
    int(cell.get() as i64)
}

fn number(c: &Call<'_>, get: fn(&Flags) -> &Cell<i64>) -> Result<Rows> {
    let cell = get(&c.inner().flags);
    if let Some(v) = c.value {
        cell.set(parse_number(v).max(0));
    }
    int(cell.get())
}

/// Remembered, for files only; pages are read and not mapped.
fn mmap_size(c: &Call<'_>) -> Result<Rows> {
    const MOST: i64 = 0x7fff_0000;
    let b = c.btree()?;
    if b.is_memory() || b.is_transient() {
        return Ok(Vec::new());
    }
    if let Some(v) = c.value {
        b.set_mmap_size(parse_number(v).min(MOST));
    }
    int(b.mmap_size())
}

/// How many programs are kept for texts that are prepared again.
fn plan_cache(c: &Call<'_>) -> Result<Rows> {
    let mut plans = c.inner().plans.borrow_mut();
    if let Some(v) = c.value {
        plans.resize(parse_number(v).max(0) as usize);
    }
    int(plans.size() as i64)
}

/// Which queries run in columns: `off`, `auto`, `force`.
fn analytics(c: &Call<'_>) -> Result<Rows> {
    use crate::columns::Analytics;
    let cell = &c.inner().flags.analytics;
    if let Some(v) = c.value {
        let mode = match v.to_ascii_lowercase().as_str() {
            "force" => Analytics::Force,
            "auto" => Analytics::Auto,
            other if truth(other) => Analytics::Auto,
            _ => Analytics::Off,
        };
        if cell.replace(mode) != mode {
            c.inner().expire_statements();
        }
    }
    one(text(cell.get().name())?)
}

/// Whether columns are kept in a file beside the database: `memory`, `persist`.
fn column_cache(c: &Call<'_>) -> Result<Rows> {
    let persist = c.value.map(|v| v.eq_ignore_ascii_case("persist"));
    one(text(crate::columns::column_cache(c.inner(), c.db()?, persist)?)?)
}

/// What the columns of the process may take together, in KiB.
fn column_cache_size(c: &Call<'_>) -> Result<Rows> {
    int(crate::columns::column_cache_size(c.value.map(parse_number)))
}

/// What the maps, the groups or the rows of a query in columns may take each, in KiB.
fn column_work_size(c: &Call<'_>) -> Result<Rows> {
    int(crate::columns::column_work_size(c.value.map(parse_number)))
}

/// What that file is believed by: `stat`, `hash`.
fn column_cache_trust(c: &Call<'_>) -> Result<Rows> {
    let hash = c.value.map(|v| v.eq_ignore_ascii_case("hash"));
    one(text(crate::columns::column_cache_trust(c.inner(), c.db()?, hash)?)?)
}

/// What has happened among the columns of a database.
fn column_cache_stats(c: &Call<'_>) -> Result<Rows> {
    let db = c.db()?;
    let mut out = Vec::new();
    for (name, n) in c.conn.column_counters(db).named() {
        out.push(vec![text(name)?, Value::Int(n as i64)]);
    }
    for (why, n) in c.conn.column_refusals(db) {
        out.push(vec![text(&format!("left to rows: {why}"))?, Value::Int(n as i64)]);
    }
    if let Some(note) = c.conn.column_note(db) {
        out.push(vec![text("note")?, text(&note)?]);
    }
    Ok(out)
}

fn meta(c: &Call<'_>, i: usize) -> Result<Rows> {
    if let Some(v) = c.value {
        if i == 1 && c.inner().flags.defensive.get() {
            return Ok(Vec::new());
        }
        let v = int32(v) as u32;
        c.writing(|b| b.set_meta(i, v))?;
        if i == 1 {
            c.inner().forget_schema(c.db()?);
        }
    }
    let v = c.reading(|b| b.meta(i))?;
    int(v as i32 as i64)
}

fn auto_vacuum(c: &Call<'_>) -> Result<Rows> {
    let b = c.btree()?;
    if let Some(v) = c.value {
        let mode = match v.to_ascii_lowercase().as_str() {
            "none" | "0" => AutoVacuum::None,
            "full" | "1" => AutoVacuum::Full,
            "incremental" | "2" => AutoVacuum::Incremental,
            _ => AutoVacuum::None,
        };
        let before = c.reading(|b| Ok(b.auto_vacuum()))?;
        let both = before != AutoVacuum::None && mode != AutoVacuum::None;
        if both && before != mode && b.page_count() > 0 {
            // The header first: it may be refused.
            c.writing(|b| b.set_meta(7, (mode == AutoVacuum::Incremental) as u32))?;
        }
        b.set_auto_vacuum(mode)?;
        c.inner().vacuum_auto_vacuum.set(Some(mode));
    }
    let mode = c.reading(|b| Ok(b.auto_vacuum()))?;
    int(match mode {
        AutoVacuum::None => 0,
        AutoVacuum::Full => 1,
        AutoVacuum::Incremental => 2,
    })
}

fn busy_timeout(c: &Call<'_>) -> Result<Rows> {
    if let Some(v) = c.value {
        c.conn.busy_timeout(parse_number(v).clamp(0, i32::MAX as i64) as u32)?;
    }
    int(c.inner().busy_timeout.get() as i64)
}

fn cache_size(c: &Call<'_>) -> Result<Rows> {
    let b = c.btree()?;
    if let Some(v) = c.value {
        let db = c.schema.map_or(Ok(0), |s| c.inner().database_number(s))?;
        c.inner().databases.borrow()[db].cache_sized.set(true);
        b.set_cache_size(parse_number(v).clamp(i32::MIN as i64 + 1, i32::MAX as i64) as i32)?;
    }
    int(b.cache_size() as i64)
}

/// The cache size that the file's header names, in pages; it is the connection's too.
fn default_cache_size(c: &Call<'_>) -> Result<Rows> {
    if let Some(v) = c.value {
        let pages = parse_number(v).clamp(i32::MIN as i64 + 1, i32::MAX as i64).abs() as i32;
        c.writing(|b| b.set_meta(3, pages as u32))?;
        c.btree()?.set_cache_size(pages)?;
    }
    match c.reading(|b| b.meta(3))? as i32 {
        0 => int(-2000),
        pages => int((pages as i64).abs()),
    }
}

/// The limit can only be set, and lowered, here: it is the whole process's.
fn hard_heap_limit(c: &Call<'_>) -> Result<Rows> {
    let now = alloc::hard_limit(-1);
    if let Some(n) = c.value.map(parse_number)
        && n > 0
        && (now == 0 || n < now)
    {
        alloc::hard_limit(n);
    }
    int(alloc::hard_limit(-1))
}

fn soft_heap_limit(c: &Call<'_>) -> Result<Rows> {
    if let Some(n) = c.value.map(parse_number) {
        alloc::soft_limit(n);
    }
    int(alloc::soft_limit(-1))
}

fn cache_spill(c: &Call<'_>) -> Result<Rows> {
    let b = c.btree()?;
    if let Some(v) = c.value {
        let on = truth(v) || parse_number(v) > 0;
        b.set_cache_spill(on)?;
        c.inner().flags.cache_spill.set(if on { parse_number(v).max(1) } else { 0 });
        return Ok(Vec::new());
    }
    // What is kept beside each page counts, too, where the size is one of bytes.
    const BESIDE: i64 = 136;
    let pages = match b.cache_size() as i64 {
        n if n < 0 => -n * 1024 / (c.reading(|b| Ok(b.page_size() as i64))? + BESIDE),
        n => n,
    };
    int(match c.inner().flags.cache_spill.get() {
        0 => 0,
        spill => pages.max(spill),
    })
}

fn case_sensitive_like(c: &Call<'_>) -> Result<Rows> {
    if let Some(v) = c.value {
        let on = truth(v);
        c.inner().flags.case_sensitive_like.set(on);
        iolite_func::set_case_sensitive_like(Rc::make_mut(&mut c.inner().registry.borrow_mut()), on);
        c.inner().expire_statements();
    }
    Ok(Vec::new())
}

fn collation_list(c: &Call<'_>) -> Result<Rows> {
    let names = c.inner().registry.borrow().collation_names();
    names.iter().enumerate().map(|(i, n)| Ok(vec![Value::Int(i as i64), text(n)?])).collect()
}

fn compile_options(_: &Call<'_>) -> Result<Rows> {
    iolite_func::COMPILE_OPTIONS.iter().map(|o| Ok(vec![text(o)?])).collect()
}

fn data_version(c: &Call<'_>) -> Result<Rows> {
    let v = c.reading(|b| Ok(b.data_version()))?;
    int(v as i64)
}

fn database_list(c: &Call<'_>) -> Result<Rows> {
    let dbs = c.inner().databases.borrow();
    let mut out = Vec::new();
    for (i, d) in dbs.iter().enumerate() {
        if d.btree.is_some() {
            out.push(vec![Value::Int(i as i64), text(&d.name)?, Value::text(&d.file)?]);
        }
    }
    Ok(out)
}

fn encoding(c: &Call<'_>) -> Result<Rows> {
    if let Some(v) = c.value {
        // Only a database without content can still choose, while no temporary table has texts either.
        let fresh = c.reading(|b| Ok(b.page_count() == 0 || b.meta(5)? == 0))?
            && c.inner().btree_if_open(1).is_none_or(|b| b.page_count() == 0);
        let enc = match v.to_ascii_lowercase().replace('-', "").as_str() {
            "utf8" => Encoding::Utf8,
            "utf16le" => Encoding::Utf16le,
            "utf16be" => Encoding::Utf16be,
            "utf16" if cfg!(target_endian = "little") => Encoding::Utf16le,
            "utf16" => Encoding::Utf16be,
            _ if !fresh => return Ok(Vec::new()),
            _ => return Err(Error::sql(format!("unsupported encoding: {v}"))),
        };
        if fresh {
            for b in c.inner().databases.borrow().iter().filter_map(|d| d.btree.as_ref()) {
                b.set_encoding(enc);
            }
            c.inner().edit_schema(0, |s| s.encoding = enc);
            c.inner().edit_schema(1, |s| s.encoding = enc);
        }
        return Ok(Vec::new());
    }
    one(text(c.inner().encoding().name())?)
}

fn action_name(a: ForeignKeyAction) -> &'static str {
    match a {
        ForeignKeyAction::NoAction => "NO ACTION",
        ForeignKeyAction::Restrict => "RESTRICT",
        ForeignKeyAction::SetNull => "SET NULL",
        ForeignKeyAction::SetDefault => "SET DEFAULT",
        ForeignKeyAction::Cascade => "CASCADE",
    }
}

fn foreign_key_list(c: &Call<'_>) -> Result<Rows> {
    let Some(t) = c.table() else { return Ok(Vec::new()) };
    let mut out = Vec::new();
    for (id, f) in t.foreign_keys.iter().rev().enumerate() {
        for (seq, col) in f.columns.iter().enumerate() {
            out.push(vec![
                Value::Int(id as i64),
                Value::Int(seq as i64),
                text(&f.parent)?,
                text(&t.columns[*col].name)?,
                opt_text(f.parent_columns.get(seq).map(|p| &**p))?,
                text(action_name(f.on_update))?,
                text(action_name(f.on_delete))?,
                // MATCH is read, and then means nothing.
                text("NONE")?,
            ]);
        }
    }
    Ok(out)
}

fn freelist_count(c: &Call<'_>) -> Result<Rows> {
    let n = c.reading(|b| b.freelist_count())?;
    int(n as i64)
}

fn function_list(c: &Call<'_>) -> Result<Rows> {
    let registry = c.inner().registry.borrow();
    let mut list = registry.functions();
    list.sort_by(|a, b| (&a.name, a.args).cmp(&(&b.name, b.args)));
    list.iter()
        .map(|f| {
            let kind = match (f.is_aggregate(), f.flags.has(iolite_ext::FunctionFlags::WINDOW)) {
                (true, true) => "w",
                (true, false) => "a",
                _ => "s",
            };
            let narg = if f.args < 0 { -1 } else { f.args as i64 };
            let mut flags = 0i64;
            if f.flags.has(iolite_ext::FunctionFlags::DETERMINISTIC) {
                flags |= 0x800;
            }
            if f.flags.has(iolite_ext::FunctionFlags::INNOCUOUS) {
                flags |= 0x20_0000;
            }
            Ok(vec![
                text(&f.name)?,
                Value::Int(1),
                text(kind)?,
                text("utf8")?,
                Value::Int(narg),
                Value::Int(flags),
            ])
        })
        .collect()
}

fn incremental_vacuum(c: &Call<'_>) -> Result<Rows> {
    let mut left = c.value.map_or(0, parse_number);
    if left <= 0 {
        left = i64::MAX;
    }
    // A row without columns for each page, so that who steps through them vacuums step by step.
    let mut rows = Vec::new();
    c.writing(|b| {
        while left > 0 && b.incremental_vacuum()? {
            left -= 1;
            rows.push(Vec::new());
        }
        Ok(())
    })?;
    Ok(rows)
}

fn index_info(c: &Call<'_>, extended: bool) -> Result<Rows> {
    let Some(name) = c.value else { return Ok(Vec::new()) };
    let catalog = c.inner().catalog.borrow();
    let found = catalog.index(c.schema, name);
    let (db, index) = match found {
        Some(x) => x,
        None => match catalog.table(c.schema, name).and_then(|(db, t)| t.primary_index().map(|i| (db, i))) {
            Some(x) => x,
            None => return Ok(Vec::new()),
        },
    };
    let Some(t) = catalog.schemas[db].table(&index.table) else { return Ok(Vec::new()) };
    let n = if extended { index.columns.len() } else { index.key_len };
    let mut out = Vec::new();
    for (i, col) in index.columns[..n].iter().enumerate() {
        let (cid, name) = match &col.source {
            ColumnSource::Column(k) => (*k as i64, text(&t.columns[*k].name)?),
            ColumnSource::Rowid => (-1, Value::Null),
            ColumnSource::Expr(_) => (-2, Value::Null),
        };
        let mut row = vec![Value::Int(i as i64), Value::Int(cid), name];
        if extended {
            row.push(Value::Int(col.desc as i64));
            row.push(text(col.collation.as_deref().unwrap_or("BINARY"))?);
            row.push(Value::Int((i < index.key_len) as i64));
        }
        out.push(row);
    }
    Ok(out)
}

fn index_list(c: &Call<'_>) -> Result<Rows> {
    let Some(t) = c.table() else { return Ok(Vec::new()) };
    let mut out = Vec::new();
    for (i, x) in t.indexes.borrow().iter().enumerate() {
        let origin = match x.origin {
            iolite_catalog::IndexOrigin::Create => "c",
            iolite_catalog::IndexOrigin::Unique => "u",
            iolite_catalog::IndexOrigin::PrimaryKey => "pk",
        };
        out.push(vec![
            Value::Int(i as i64),
            text(&x.name)?,
            Value::Int(x.unique.is_some() as i64),
            text(origin)?,
            Value::Int(x.filter.is_some() as i64),
        ]);
    }
    Ok(out)
}

fn integrity_check(c: &Call<'_>, quick: bool) -> Result<Rows> {
    crate::check::run(c.conn, c.schema, c.value, quick)
}

fn journal_mode(c: &Call<'_>) -> Result<Rows> {
    let mode = c.value.and_then(JournalMode::from_name);
    // Without a journal, a statement that fails spoils the file.
    let mode = mode.filter(|m| *m != JournalMode::Off || !c.inner().flags.defensive.get());
    let targets = if mode.is_some() { c.all()? } else { vec![c.btree()?] };
    let mut last = None;
    let txn = &c.inner().txn;
    let within = !txn.is_autocommit() || txn.others_read();
    for (i, b) in targets.iter().enumerate() {
        let now = match mode {
            // What has been changed goes on as it began.
            Some(_) if within && b.txn_state() == TxnState::Write => b.journal_mode(),
            Some(m) if within && !b.is_transient() => {
                let was = b.reading(|b| Ok(b.journal_mode()))?;
                if was != m && (was == JournalMode::Wal || m == JournalMode::Wal) {
                    let way = if m == JournalMode::Wal { "into" } else { "out of" };
                    let what = format!("cannot change {way} wal mode from within a transaction");
                    return Err(Error::sql(what));
                }
                b.set_journal_mode(m)?
            }
            Some(m) => b.set_journal_mode(m)?,
            None => b.reading(|b| Ok(b.journal_mode()))?,
        };
        if i == 0 {
            last = Some(now);
        }
    }
    one(text(last.map_or("delete", |m| m.name()))?)
}

fn journal_size_limit(c: &Call<'_>) -> Result<Rows> {
    let b = c.btree()?;
    if let Some(v) = c.value {
        b.set_journal_size_limit(parse_number(v).max(-1))?;
    }
    int(b.journal_size_limit())
}

fn locking_mode(c: &Call<'_>) -> Result<Rows> {
    let mode = match c.value.map(str::to_ascii_lowercase).as_deref() {
        Some("exclusive") => Some(LockingMode::Exclusive),
        Some("normal") => Some(LockingMode::Normal),
        _ => None,
    };
    if let Some(m) = mode {
        if c.schema.is_none() {
            c.inner().flags.locking_mode.set(Some(m));
        }
        for b in c.all()? {
            b.set_locking_mode(m)?;
        }
    }
    // Without a name it is what databases get that are attached later.
    let default = c.inner().flags.locking_mode.get().unwrap_or(LockingMode::Normal);
    let shown = if c.schema.is_none() { default } else { c.btree()?.locking_mode() };
    let name = match shown {
        LockingMode::Exclusive => "exclusive",
        LockingMode::Normal => "normal",
    };
    one(text(name)?)
}

fn max_page_count(c: &Call<'_>) -> Result<Rows> {
    let v = c.value.map_or(0, parse_number).clamp(0, u32::MAX as i64 - 1) as u32;
    let n = c.reading(|b| if v > 0 { b.set_max_page_count(v) } else { Ok(b.max_page_count()) })?;
    int(n as i64)
}

fn module_list(c: &Call<'_>) -> Result<Rows> {
    c.inner().registry.borrow().module_names().iter().map(|n| Ok(vec![text(n)?])).collect()
}

fn optimize(c: &Call<'_>) -> Result<Rows> {
    let mask = c.value.map_or(0xfffe, parse_number);
    if mask & 2 == 0 {
        return Ok(Vec::new());
    }
    // Tables whose indexes have no statistics yet are worth analysing once they hold something.
    let names: Vec<(Rc<str>, Rc<str>)> = {
        let catalog = c.inner().catalog.borrow();
        catalog
            .schemas
            .iter()
            .flat_map(|s| {
                s.tables()
                    .filter(|t| !t.indexes.borrow().is_empty() && !t.has_stat.get() && !t.is_view())
                    .map(|t| (s.name.clone(), t.name.clone()))
                    .collect::<Vec<_>>()
            })
            .collect()
    };
    for (schema, table) in names {
        let q = iolite_sql::print::quote_name;
        c.conn.execute_batch(&format!("ANALYZE {}.{}", q(&schema), q(&table)))?;
    }
    Ok(Vec::new())
}

fn page_count(c: &Call<'_>) -> Result<Rows> {
    let n = c.reading(|b| Ok(b.page_count()))?;
    int(n as i64)
}

fn page_size(c: &Call<'_>) -> Result<Rows> {
    let b = c.btree()?;
    if let Some(v) = c.value {
        let n = parse_number(v);
        if let Ok(n) = u32::try_from(n)
            && n.is_power_of_two()
            && (512..=65536).contains(&n)
        {
            // A file that is there has its size, which only VACUUM changes; one that is in use is there.
            if c.reading(|b| Ok(b.page_count())).is_ok() {
                b.set_page_size(n, None)?;
            }
            c.inner().vacuum_page_size.set(n);
        }
        return Ok(Vec::new());
    }
    let n = c.reading(|b| Ok(b.page_size()))?;
    int(n as i64)
}

fn pragma_list(_: &Call<'_>) -> Result<Rows> {
    PRAGMAS.iter().map(|p| Ok(vec![text(p.name)?])).collect()
}

fn secure_delete(c: &Call<'_>) -> Result<Rows> {
    if let Some(v) = c.value {
        let mode = if v.eq_ignore_ascii_case("fast") {
            SecureDelete::Fast
        } else if truth(v) {
            SecureDelete::On
        } else {
            SecureDelete::Off
        };
        for b in c.all()? {
            b.set_secure_delete(mode);
        }
    }
    int(match c.btree()?.secure_delete() {
        SecureDelete::Off => 0,
        SecureDelete::On => 1,
        SecureDelete::Fast => 2,
    })
}

fn shrink_memory(c: &Call<'_>) -> Result<Rows> {
    for b in c.all()? {
        b.release_memory()?;
    }
    Ok(Vec::new())
}

fn synchronous(c: &Call<'_>) -> Result<Rows> {
    let b = c.btree()?;
    if let Some(v) = c.value {
        if !c.inner().txn.is_autocommit() {
            return Err(Error::sql("Safety level may not be changed inside a transaction"));
        }
        let mode = match v.to_ascii_lowercase().as_str() {
            "off" | "0" | "no" | "false" => SyncMode::Off,
            "normal" | "1" | "on" | "yes" | "true" => SyncMode::Normal,
            "extra" | "3" => SyncMode::Extra,
            _ => SyncMode::Full,
        };
        b.set_synchronous(mode)?;
    }
    int(match b.synchronous() {
        SyncMode::Off => 0,
        SyncMode::Normal => 1,
        SyncMode::Full => 2,
        SyncMode::Extra => 3,
    })
}

fn table_info(c: &Call<'_>, extended: bool) -> Result<Rows> {
    let Some(name) = c.value else { return Ok(Vec::new()) };
    let columns = crate::describe::columns(c.conn, c.schema, name)?;
    let mut out = Vec::new();
    let mut cid = 0;
    for col in columns {
        if col.hidden != 0 && !extended {
            continue;
        }
        let mut row = vec![
            Value::Int(cid),
            text(&col.name)?,
            text(&col.decltype)?,
            Value::Int(col.not_null as i64),
            opt_text(col.default.as_deref())?,
            Value::Int(col.pk as i64),
        ];
        if extended {
            row.push(Value::Int(col.hidden as i64));
        }
        out.push(row);
        cid += 1;
    }
    Ok(out)
}

fn table_list(c: &Call<'_>) -> Result<Rows> {
    let schemas = c.inner().catalog.borrow().schemas.clone();
    let mut out = Vec::new();
    for s in &schemas {
        if c.schema.is_some_and(|n| !n.eq_ignore_ascii_case(&s.name)) {
            continue;
        }
        let mut tables: Vec<Rc<Table>> = s.all_tables().cloned().collect();
        tables.sort_by(|a, b| b.name.cmp(&a.name));
        for t in tables {
            let shown = match (t.root.get(), &*t.name) {
                (1, "sqlite_master") => "sqlite_schema".to_string(),
                (1, _) => "sqlite_temp_schema".to_string(),
                _ => t.name.to_string(),
            };
            if c.value.is_some_and(|n| !n.eq_ignore_ascii_case(&shown)) {
                continue;
            }
            let kind = if t.is_view() {
                "view"
            } else if t.is_virtual() {
                "virtual"
            } else if iolite_plan::bind::shadow_of(s, &c.inner().registry.borrow(), &t.name).is_some() {
                "shadow"
            } else {
                "table"
            };
            let ncol = if t.is_view() || t.is_virtual() {
                match crate::describe::columns(c.conn, Some(&s.name), &t.name) {
                    Ok(v) => v.len(),
                    // A view that names its columns has them, unless what it reads is missing.
                    Err(e) => match &t.kind {
                        TableKind::View { names, .. } if !e.message().starts_with("no such") => names.len(),
                        _ => 0,
                    },
                }
            } else {
                t.columns.len()
            };
            out.push(vec![
                text(&s.name)?,
                text(&shown)?,
                text(kind)?,
                Value::Int(ncol as i64),
                Value::Int((!t.has_rowid() && !t.is_view() && !t.is_virtual()) as i64),
                Value::Int(t.strict as i64),
            ]);
        }
    }
    Ok(out)
}

fn temp_store(c: &Call<'_>) -> Result<Rows> {
    if let Some(v) = c.value {
        let n = match v.to_ascii_lowercase().as_str() {
            "file" | "1" => 1,
            "memory" | "2" => 2,
            _ => 0,
        };
        c.inner().flags.temp_store.set(n);
    }
    int(c.inner().flags.temp_store.get())
}

/// For how long a read lock in WAL mode is kept unused, in milliseconds; 0: not at all. SQLite has no such thing.
fn lock_lease_ms(c: &Call<'_>) -> Result<Rows> {
    let b = c.btree()?;
    if let Some(v) = c.value {
        let n = parse_number(v).clamp(0, 60_000) as u32;
        c.inner().lock_lease.set(n);
        for b in c.all()? {
            b.set_lock_lease(n)?;
        }
    }
    int(b.lock_lease() as i64)
}

/// Whether checkpoints after a commit may be left to a thread. SQLite has no such thing.
fn checkpoint_thread(c: &Call<'_>) -> Result<Rows> {
    let b = c.btree()?;
    if let Some(v) = c.value {
        let on = truth(v);
        c.inner().checkpoint_thread.set(on);
        for b in c.all()? {
            b.set_checkpoint_thread(on)?;
        }
    }
    int(b.checkpoint_thread() as i64)
}

/// Whether large values may go to the file at once, in WAL mode. SQLite has no such thing.
fn large_value_direct(c: &Call<'_>) -> Result<Rows> {
    let b = c.btree()?;
    if let Some(v) = c.value {
        let on = truth(v);
        c.inner().large_value_direct.set(on);
        for b in c.all()? {
            b.set_large_value_direct(on)?;
        }
    }
    int(b.large_value_direct() as i64)
}

fn wal_autocheckpoint(c: &Call<'_>) -> Result<Rows> {
    let b = c.btree()?;
    if let Some(v) = c.value {
        let n = parse_number(v).clamp(0, u32::MAX as i64) as u32;
        for b in c.all()? {
            b.set_wal_autocheckpoint(n);
        }
    }
    int(b.wal_autocheckpoint() as i64)
}

fn wal_checkpoint(c: &Call<'_>) -> Result<Rows> {
    let mode = match c.value.map(str::to_ascii_lowercase).as_deref() {
        Some("full") => CheckpointMode::Full,
        Some("restart") => CheckpointMode::Restart,
        Some("truncate") => CheckpointMode::Truncate,
        Some("noop") => CheckpointMode::Noop,
        _ => CheckpointMode::Passive,
    };
    let (mut busy, mut log, mut done) = (0, -1, -1);
    let list = if c.schema.is_some() { vec![c.btree()?] } else { c.all()? };
    for (i, b) in list.iter().enumerate() {
        if b.txn_state() == TxnState::Write {
            return Err(iolite_base::Code::Locked.into());
        }
        let r = b.checkpoint(mode)?;
        if r.busy {
            busy = 1;
        }
        if i == 0 {
            (log, done) = (r.log as i64, r.checkpointed as i64);
        }
    }
    Ok(vec![vec![Value::Int(busy), Value::Int(log), Value::Int(done)]])
}
