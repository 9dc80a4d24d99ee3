//! What a statement is authorized to do, asked over statements as a whole.
//!
//! The engine has no hook where names are resolved, so the callback is asked once a statement is compiled, and before
//! anybody gets it: for its kind, for what it creates, drops or changes, for its functions, and for *every* column of
//! each table and view that it reads, queries in CREATE TABLE AS included. A statement may so be refused for a column that it does not use, but none is allowed that
//! uses a refused one. `SQLITE_IGNORE` refuses too, for a column cannot be made NULL here. What a trigger changes is
//! asked as changes of its tables.

use crate::connection::Connection;
use crate::statement::Statement;
use iolite_base::{Code, Error};
use iolite_bytecode::{Opcode, P4, Program};
use iolite_sql::ast::{
    CreateIndex, CreateTableBody, InsertSource, ObjectKind, Parsed, QualifiedName, Select, Stmt as Ast,
};
use iolite_sql::walk::TableNames;
use iolite_value::Value;

/// Asks the user: the action's code in SQLite's numbers, what it is about, and the database. Answers a code, too:
/// 0 allows, 1 denies, 2 ignores.
pub type Ask<'a> = &'a dyn Fn(i32, Option<&str>, Option<&str>, Option<&str>) -> i32;

const READ: i32 = 20;
const FUNCTION: i32 = 31;
const UPDATE: i32 = 23;

/// Asks for one action. `Err`: refused.
fn ask(a: Ask<'_>, code: i32, one: Option<&str>, two: Option<&str>, db: Option<&str>) -> Result<(), Error> {
    match (a(code, one, two, db), code) {
        (0, _) => Ok(()),
        (1 | 2, READ) => {
            let (table, column) = (one.unwrap_or(""), two.unwrap_or(""));
            Err(Error::new(Code::Auth, format!("access to {table}.{column} is prohibited")))
        }
        (1 | 2, FUNCTION) => {
            Err(Error::new(Code::Auth, format!("not authorized to use function: {}", two.unwrap_or(""))))
        }
        (1 | 2, _) => Err(Error::new(Code::Auth, "not authorized")),
        _ => Err(Error::sql("authorizer malfunction")),
    }
}

/// Asks for all that a compiled statement does.
pub fn authorize(a: Ask<'_>, s: &Statement) -> Result<(), Error> {
    let (c, text) = (&s.connection(), s.sql());
    let Some((parsed, _)) = iolite_sql::parse_next(text, &Default::default())? else { return Ok(()) };
    kind(a, &parsed.stmt)?;
    let writes_too = matches!(parsed.stmt, Ast::Update(_) | Ast::Delete(_));
    let copies = matches!(&parsed.stmt, Ast::CreateTable(t) if matches!(t.body, CreateTableBody::As(_)));
    if writes_too || matches!(parsed.stmt, Ast::Select(_) | Ast::Insert(_)) {
        program(a, c, s.program(), writes_too, false)?;
    } else if copies {
        reading(a, c, s.program())?;
    }
    match &parsed.stmt {
        Ast::CreateIndex(i) => index(a, c, s.program(), i, text),
        Ast::Select(q) => views(a, c, q),
        Ast::CreateTable(t) => match &t.body {
            CreateTableBody::As(q) => views(a, c, q),
            _ => Ok(()),
        },
        Ast::Insert(i) => match &i.source {
            InsertSource::Select(q) => views(a, c, q),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// What a statement reads that writes the schema by itself.
fn reading(a: Ask<'_>, c: &Connection, p: &Program) -> Result<(), Error> {
    let mut seen = Vec::new();
    for i in p.insns.iter() {
        if let P4::Function(f) = &i.p4 {
            ask(a, FUNCTION, None, Some(&f.function.name), None)?;
        }
        let (root, db) = (i.p2, i.p3);
        if matches!(i.op, Opcode::OpenRead | Opcode::ReopenIdx) && root > 1 && !seen.contains(&(root, db)) {
            seen.push((root, db));
            table(a, c, root, db, false)?;
        }
    }
    Ok(())
}

/// The columns that CREATE INDEX names, for the index holds their values: those of the table whose names are words of the
/// text.
fn index(a: Ask<'_>, c: &Connection, p: &Program, i: &CreateIndex, text: &str) -> Result<(), Error> {
    for insn in p.insns.iter() {
        if let P4::Function(f) = &insn.p4 {
            ask(a, FUNCTION, None, Some(&f.function.name), None)?;
        }
    }
    let mut words = Vec::new();
    let mut lexer = iolite_sql::lexer::Lexer::new(text.as_bytes(), 0);
    loop {
        let t = lexer.token();
        if t.end <= t.start || t.end as usize > text.len() {
            break;
        }
        let word = &text[t.start as usize..t.end as usize];
        let bare =
            word.strip_prefix(['"', '`', '[', '\'']).and_then(|w| w.strip_suffix(['"', '`', ']', '\'']));
        words.push(bare.unwrap_or(word).replace("\"\"", "\"").replace("``", "`").to_ascii_lowercase());
    }
    let schema = i.name.schema.as_ref().map(|s| &*s.text);
    for column in columns(c, schema, &i.table.text)? {
        if words.contains(&column.to_ascii_lowercase()) {
            ask(a, READ, Some(&i.table.text), Some(&column), Some(schema.unwrap_or("main")))?;
        }
    }
    Ok(())
}

/// The names of the columns of a table or view.
fn columns(c: &Connection, schema: Option<&str>, name: &str) -> Result<Vec<String>, Error> {
    let schema = schema.map_or(String::new(), |s| format!("{}.", iolite_sql::print::quote_name(s)));
    let rows =
        c.query(&format!("PRAGMA {schema}table_xinfo({})", iolite_sql::print::quote_name(name)), &[])?;
    Ok(rows.iter().map(|r| r[1].to_string_lossy()).collect())
}

/// All columns of the views that a query mentions, and of those behind them.
fn views(a: Ask<'_>, c: &Connection, q: &Select) -> Result<(), Error> {
    let mut waiting: Vec<(Select, Option<String>)> = vec![(q.clone(), None)];
    let mut seen: Vec<(String, String)> = Vec::new();
    while let Some((query, home)) = waiting.pop() {
        let mut names = Vec::new();
        TableNames::new(&mut |n: &QualifiedName| names.push(n.clone())).select(&query);
        for n in names {
            let named = n.schema.as_ref().map(|s| s.text.to_string()).or_else(|| home.clone());
            for db in c.query("PRAGMA database_list", &[])? {
                let db = db[1].to_string_lossy();
                if named.as_ref().is_some_and(|s| !s.eq_ignore_ascii_case(&db)) {
                    continue;
                }
                let find = format!(
                    "SELECT sql, name FROM {}.sqlite_schema WHERE type='view' AND name=?1 COLLATE NOCASE",
                    iolite_sql::print::quote_name(&db)
                );
                let rows = c.query(&find, &[Value::text(&*n.name.text)?])?;
                let Some(row) = rows.first() else { continue };
                let name = row[1].to_string_lossy();
                if seen.contains(&(db.clone(), name.clone())) {
                    continue;
                }
                seen.push((db.clone(), name.clone()));
                for column in columns(c, Some(&db), &name)? {
                    ask(a, READ, Some(&name), Some(&column), Some(&db))?;
                }
                if let Some((Parsed { stmt: Ast::CreateView(v), .. }, _)) =
                    iolite_sql::parse_next(&row[0].to_string_lossy(), &Default::default())?
                {
                    waiting.push((*v.select, Some(db)));
                }
            }
        }
    }
    Ok(())
}

/// The statement's own kind.
fn kind(a: Ask<'_>, s: &Ast) -> Result<(), Error> {
    let db = |n: &QualifiedName| n.schema.as_ref().map_or_else(|| "main".to_string(), |s| s.text.to_string());
    let object =
        |code, n: &QualifiedName, two: Option<&str>| ask(a, code, Some(&n.name.text), two, Some(&db(n)));
    match s {
        Ast::Select(_) => ask(a, 21, None, None, None),
        Ast::Insert(i) => object(18, &i.table, None),
        Ast::Delete(x) => object(9, &x.table, None),
        Ast::Update(u) => {
            let columns = u.sets.iter().flat_map(|s| &s.columns);
            columns.into_iter().try_for_each(|c| object(UPDATE, &u.table, Some(&c.text)))
        }
        Ast::CreateTable(t) => object(if t.temp { 4 } else { 2 }, &t.name, None),
        Ast::CreateIndex(i) => object(1, &i.name, Some(&i.table.text)),
        Ast::CreateView(v) => object(if v.temp { 6 } else { 8 }, &v.name, None),
        Ast::CreateTrigger(t) => object(if t.temp { 5 } else { 7 }, &t.name, Some(&t.table.name.text)),
        Ast::CreateVirtualTable(v) => object(29, &v.name, Some(&v.module.text)),
        Ast::Drop { kind, name, .. } => {
            let code = match kind {
                ObjectKind::Table => 11,
                ObjectKind::View => 17,
                ObjectKind::Index => 10,
                ObjectKind::Trigger => 16,
            };
            object(code, name, None)
        }
        Ast::AlterTable(t) => ask(a, 26, Some(&db(&t.table)), Some(&t.table.name.text), None),
        Ast::Begin(_) => ask(a, 22, Some("BEGIN"), None, None),
        Ast::Commit => ask(a, 22, Some("COMMIT"), None, None),
        Ast::Rollback => ask(a, 22, Some("ROLLBACK"), None, None),
        Ast::Savepoint(n) => ask(a, 32, Some("BEGIN"), Some(&n.text), None),
        Ast::Release(n) => ask(a, 32, Some("RELEASE"), Some(&n.text), None),
        Ast::RollbackTo(n) => ask(a, 32, Some("ROLLBACK"), Some(&n.text), None),
        Ast::Attach { file, .. } => {
            ask(a, 24, Some(iolite_sql::print::expr(file).trim_matches('\'')), None, None)
        }
        Ast::Detach(n) => ask(a, 25, Some(iolite_sql::print::expr(n).trim_matches('\'')), None, None),
        Ast::Pragma { name, value } => {
            let printed = value.as_ref().map(|_| iolite_sql::print::stmt(s));
            let value = printed.as_deref().and_then(|p| p.split_once(['=', '(']));
            let value = value.map(|v| v.1.trim_end_matches(')').trim().trim_matches('\''));
            ask(a, 19, Some(&name.name.text), value, name.schema.as_ref().map(|s| &*s.text))
        }
        Ast::Analyze(n) => ask(a, 28, n.as_ref().map(|n| &*n.name.text), None, None),
        Ast::Reindex(n) => ask(a, 27, n.as_ref().map(|n| &*n.name.text), None, None),
        // As SQLite does: VACUUM works by an attached file.
        Ast::Vacuum { .. } => ask(a, 24, Some(""), None, None),
    }
}

/// Tables and functions of a program and of its triggers.
fn program(a: Ask<'_>, c: &Connection, p: &Program, writes_too: bool, trigger: bool) -> Result<(), Error> {
    let mut seen: Vec<(i32, i32, bool)> = Vec::new();
    for i in p.insns.iter() {
        if let P4::Function(f) = &i.p4 {
            ask(a, FUNCTION, None, Some(&f.function.name), None)?;
        }
        let writes = i.op == Opcode::OpenWrite;
        let opens = writes || matches!(i.op, Opcode::OpenRead | Opcode::ReopenIdx);
        let (root, db) = (i.p2, i.p3);
        if !opens || writes && !writes_too && !trigger || seen.contains(&(root, db, writes)) {
            continue;
        }
        seen.push((root, db, writes));
        table(a, c, root, db, writes && trigger)?;
    }
    p.subprograms.iter().try_for_each(|s| program(a, c, s, true, true))
}

/// All columns of the table that a root page belongs to.
fn table(a: Ask<'_>, c: &Connection, root: i32, db: i32, writes: bool) -> Result<(), Error> {
    let list = c.query("PRAGMA database_list", &[])?;
    let db =
        list.iter().find(|r| r[0].to_int() == db as i64).map_or("temp".into(), |r| r[1].to_string_lossy());
    if root == 1 {
        return ["type", "name", "tbl_name", "rootpage", "sql"]
            .iter()
            .try_for_each(|column| ask(a, READ, Some("sqlite_master"), Some(column), Some(&db)));
    }
    let quoted = iolite_sql::print::quote_name(&db).into_owned();
    let find = format!("SELECT tbl_name FROM {quoted}.sqlite_schema WHERE rootpage=?1");
    let rows = c.query(&find, &[Value::Int(root as i64)])?;
    let Some(name) = rows.first().map(|r| r[0].to_string_lossy()) else { return Ok(()) };
    let info = format!("PRAGMA {quoted}.table_xinfo({})", iolite_sql::print::quote_name(&name));
    for column in c.query(&info, &[])? {
        let column = column[1].to_string_lossy();
        ask(a, READ, Some(&name), Some(&column), Some(&db))?;
        if writes {
            ask(a, UPDATE, Some(&name), Some(&column), Some(&db))?;
        }
    }
    Ok(())
}
