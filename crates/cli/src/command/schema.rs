//! Commands that show what is in the database.

use super::{Flow, fail};
use crate::print::literal;
use crate::shell::Shell;
use iolite::engine::{Connection, Error, Value};
use iolite_sql::print::{quote_name, quote_text};

/// Attached databases: name and file.
fn attached(c: &Connection) -> Result<Vec<(String, String)>, Error> {
    let rows = c.query("PRAGMA database_list", &[])?;
    Ok(rows.iter().map(|r| (r[1].to_string_lossy(), r[2].to_string_lossy())).collect())
}

/// A query over the schema tables of all databases, as `SELECT ... UNION ALL ...`.
fn over_all(c: &Connection, select: impl Fn(&str, &str) -> String) -> Result<String, Error> {
    let parts: Vec<String> = attached(c)?
        .iter()
        .map(|(name, _)| select(name, &format!("{}.sqlite_schema", quote_name(name))))
        .collect();
    Ok(parts.join(" UNION ALL "))
}

fn done(s: &mut Shell, r: Result<(), Error>) -> Flow {
    match r {
        Ok(()) => Flow::Next,
        Err(e) => fail(s, &format!("Error: {}", e.message())),
    }
}

/// Names in columns as wide as the widest, down before across, 80 places wide.
fn columns(s: &mut Shell, names: &[String]) {
    let widest = names.iter().map(|n| crate::tabular::width(n)).max().unwrap_or(0);
    let across = (80 / (widest + 2)).max(1);
    let down = names.len().div_ceil(across);
    for y in 0..down {
        let mut line = String::new();
        let mut i = y;
        while let Some(n) = names.get(i) {
            if i > y {
                line.push_str("  ");
            }
            line.push_str(&format!("{n:<widest$}"));
            i += down;
        }
        s.say(&line);
    }
}

fn names(c: &Connection, kinds: &str, column: &str, pattern: Option<&String>) -> Result<Vec<String>, Error> {
    let q = over_all(c, |name, table| {
        let prefix = match name {
            "main" | "temp" => "''".to_string(),
            other => quote_text(&format!("{other}.")),
        };
        let wanted = match pattern {
            Some(p) => format!("{column} LIKE {}", quote_text(p)),
            None => "1".into(),
        };
        let hidden = if kinds.contains("table") { " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'" } else { "" };
        format!("SELECT {prefix}||name AS n FROM {table} WHERE type IN ({kinds}){hidden} AND {wanted}")
    })?;
    let rows = c.query(&format!("{q} ORDER BY 1"), &[])?;
    Ok(rows.iter().map(|r| r[0].to_string_lossy()).collect())
}

pub(super) fn tables(s: &mut Shell, a: &[String]) -> Flow {
    let Some(c) = s.ensure_open() else { return Flow::Fail };
    let r = names(&c, "'table','view'", "name", a.get(1)).map(|n| columns(s, &n));
    done(s, r)
}

pub(super) fn indexes(s: &mut Shell, a: &[String]) -> Flow {
    let Some(c) = s.ensure_open() else { return Flow::Fail };
    let r = names(&c, "'index'", "tbl_name", a.get(1)).map(|n| columns(s, &n));
    done(s, r)
}

pub(super) fn databases(s: &mut Shell, _: &[String]) -> Flow {
    let Some(c) = s.ensure_open() else { return Flow::Fail };
    let r = attached(&c).map(|list| {
        for (name, file) in list {
            let shown = if file.is_empty() { "\"\"".to_string() } else { file };
            let mode = match c.btree(&name).is_ok_and(|b| b.is_read_only()) {
                true => "r/o",
                false => "r/w",
            };
            let state = match c.txn_state(Some(&name)) {
                Some(iolite::engine::TxnState::Read) => " read-txn",
                Some(iolite::engine::TxnState::Write) => " write-txn",
                _ => "",
            };
            s.say(&format!("{name}: {shown} {mode}{state}"));
        }
    });
    done(s, r)
}

pub(super) fn dbinfo(s: &mut Shell, a: &[String]) -> Flow {
    let Some(c) = s.ensure_open() else { return Flow::Fail };
    let db = a.get(1).map_or("main", String::as_str);
    let r = (|| {
        for p in [
            "page_size",
            "page_count",
            "freelist_count",
            "journal_mode",
            "encoding",
            "auto_vacuum",
            "schema_version",
            "user_version",
            "application_id",
            "data_version",
        ] {
            let rows = c.query(&format!("PRAGMA {}.{p}", quote_name(db)), &[])?;
            let v = rows.first().and_then(|r| r.first()).map_or(String::new(), Value::to_string_lossy);
            s.say(&format!("{:<20} {v}", format!("{}:", p.replace('_', " "))));
        }
        for (label, kind) in
            [("tables", "table"), ("indexes", "index"), ("triggers", "trigger"), ("views", "view")]
        {
            let q = format!("SELECT count(*) FROM {}.sqlite_schema WHERE type='{kind}'", quote_name(db));
            let rows = c.query(&q, &[])?;
            s.say(&format!("{:<20} {}", format!("number of {label}:"), rows[0][0].to_int()));
        }
        Ok(())
    })();
    done(s, r)
}

pub(super) fn schema(s: &mut Shell, a: &[String]) -> Flow {
    let Some(c) = s.ensure_open() else { return Flow::Fail };
    let (mut pattern, mut indent, mut nosys) = (None, false, false);
    for arg in &a[1..] {
        match arg.as_str() {
            "--indent" | "-indent" => indent = true,
            "--nosys" | "-nosys" => nosys = true,
            o if o.starts_with('-') => return fail(s, &format!("Unknown option: \"{o}\"")),
            p => pattern = Some(p.to_string()),
        }
    }
    let r = show_schema(s, &c, pattern.as_deref(), indent, nosys);
    done(s, r)
}

fn show_schema(
    s: &mut Shell,
    c: &Connection,
    pattern: Option<&str>,
    indent: bool,
    nosys: bool,
) -> Result<(), Error> {
    let lower = pattern.map(str::to_ascii_lowercase);
    if let Some(p @ ("sqlite_master" | "sqlite_schema" | "sqlite_temp_master" | "sqlite_temp_schema")) =
        lower.as_deref()
    {
        s.say(&format!(
            "CREATE TABLE {p} (\n  type text,\n  name text,\n  tbl_name text,\n  rootpage integer,\n  sql text\n);"
        ));
        return Ok(());
    }
    let q = over_all(c, |name, table| {
        let mut wanted = String::from("sql NOT NULL");
        if let Some(p) = &lower {
            let (subject, p) = match p.split_once('.') {
                Some((_, _)) => (format!("lower({}||'.'||tbl_name)", quote_text(name)), p.clone()),
                None => ("lower(tbl_name)".to_string(), p.clone()),
            };
            let glob = if p.contains(['*', '?', '[']) { "GLOB" } else { "LIKE" };
            wanted.push_str(&format!(" AND {subject} {glob} {}", quote_text(&p)));
        }
        if nosys {
            wanted.push_str(" AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'");
        }
        let db = quote_text(name);
        format!("SELECT sql, type, name, {db} AS db, rowid AS r FROM {table} WHERE {wanted}")
    })?;
    for row in c.query(&format!("SELECT * FROM ({q}) ORDER BY db='temp', db<>'main', r"), &[])? {
        let mut sql = row[0].to_string_lossy();
        let db = row[3].to_string_lossy();
        if db != "main" && db != "temp" {
            sql = with_schema(&sql, &db);
        }
        if row[1].to_string_lossy() == "view" {
            let info =
                format!("PRAGMA {}.table_info({})", quote_name(&db), quote_name(&row[2].to_string_lossy()));
            if let Ok(cols) = c.query(&info, &[]) {
                let cols: Vec<String> =
                    cols.iter().map(|r| quote_name(&r[1].to_string_lossy()).into()).collect();
                sql.push_str(&format!(
                    "\n/* {}({}) */",
                    quote_name(&row[2].to_string_lossy()),
                    cols.join(",")
                ));
            }
        }
        let sql = if indent { pretty(&sql) } else { sql };
        s.say(&format!("{sql};"));
    }
    Ok(())
}

/// `CREATE TABLE x` to `CREATE TABLE db.x`.
fn with_schema(sql: &str, db: &str) -> String {
    for kind in ["CREATE TABLE ", "CREATE VIEW ", "CREATE TRIGGER ", "CREATE INDEX ", "CREATE UNIQUE INDEX "]
    {
        if let Some(rest) = sql.strip_prefix(kind) {
            return format!("{kind}{}.{rest}", quote_name(db));
        }
    }
    sql.to_string()
}

/// The columns of a CREATE TABLE on lines of their own.
fn pretty(sql: &str) -> String {
    if !sql.get(..12).is_some_and(|p| p.eq_ignore_ascii_case("CREATE TABLE")) {
        return sql.to_string();
    }
    let mut out = String::new();
    let (mut depth, mut quote) = (0i32, None);
    let mut spaces = false;
    for c in sql.chars() {
        if let Some(q) = quote {
            out.push(c);
            if c == q {
                quote = None;
            }
            continue;
        }
        match c {
            '\'' | '"' | '`' => quote = Some(c),
            '[' => quote = Some(']'),
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if c.is_whitespace() {
            spaces = true;
            continue;
        }
        if std::mem::take(&mut spaces) && !out.ends_with(['\n', '(', ' ']) && c != ')' && c != ',' {
            out.push(' ');
        }
        if c == ')' && depth == 0 {
            out.push('\n');
        }
        out.push(c);
        if depth == 1 && (c == '(' || c == ',') {
            out.push_str("\n  ");
        }
    }
    out
}

pub(super) fn fullschema(s: &mut Shell, _: &[String]) -> Flow {
    let Some(c) = s.ensure_open() else { return Flow::Fail };
    let r = (|| {
        show_schema(s, &c, None, false, true)?;
        let stats = "SELECT name FROM sqlite_schema WHERE name LIKE 'sqlite\\_stat_' ESCAPE '\\' ORDER BY 1";
        let stats = c.query(stats, &[])?;
        if stats.is_empty() {
            s.say("/* No STAT tables available */");
            return Ok(());
        }
        s.say("ANALYZE sqlite_schema;");
        for t in stats {
            let t = t[0].to_string_lossy();
            for row in c.query(&format!("SELECT * FROM {t}"), &[])? {
                let values: Vec<String> =
                    row.iter().map(|v| String::from_utf8_lossy(&literal(v)).into_owned()).collect();
                s.say(&format!("INSERT INTO {t} VALUES({});", values.join(",")));
            }
        }
        s.say("ANALYZE sqlite_schema;");
        Ok(())
    })();
    done(s, r)
}

pub(super) fn dump(s: &mut Shell, a: &[String]) -> Flow {
    let Some(c) = s.ensure_open() else { return Flow::Fail };
    let mut options = crate::dump::Options::default();
    for arg in &a[1..] {
        match arg.trim_start_matches('-') {
            "data-only" if arg.starts_with('-') => options.data_only = true,
            "nosys" if arg.starts_with('-') => options.nosys = true,
            "preserve-rowids" if arg.starts_with('-') => options.rowids = true,
            "newlines" if arg.starts_with('-') => {}
            _ if arg.starts_with('-') => return fail(s, &format!("Unknown option \"{arg}\" on \".dump\"")),
            _ => options.patterns.push(arg.clone()),
        }
    }
    let r = crate::dump::dump(s, &c, &options);
    done(s, r)
}
