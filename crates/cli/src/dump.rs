//! `.dump`: the database as SQL.
//!
//! The output is a script that rebuilds the content: tables with their rows first, then indexes, views and triggers,
//! in the order of their making. All is read in one transaction.

use crate::output;
use crate::shell::Shell;
use iolite::engine::{Connection, Error, Step, Value};
use iolite_sql::print::{quote_name, quote_text};
use std::io::Write;

/// What to dump.
#[derive(Default)]
pub struct Options {
    /// No schema.
    pub data_only: bool,
    /// No `sqlite_` tables.
    pub nosys: bool,
    /// Rowids too.
    pub rowids: bool,
    /// Only tables like one of these.
    pub patterns: Vec<String>,
}

/// Writes the dump to the shell's output.
pub fn dump(s: &mut Shell, c: &Connection, o: &Options) -> Result<(), Error> {
    if !o.data_only {
        s.say("PRAGMA foreign_keys=OFF;");
        s.say("BEGIN TRANSACTION;");
    }
    let own = c.is_autocommit();
    if own {
        c.execute_batch("SAVEPOINT dump")?;
    }
    let r = content(s, c, o);
    if own {
        c.execute_batch("RELEASE dump")?;
    }
    if !o.data_only {
        s.say(if r.is_ok() { "COMMIT;" } else { "ROLLBACK; -- due to errors" });
    }
    r
}

fn content(s: &mut Shell, c: &Connection, o: &Options) -> Result<(), Error> {
    let mut wanted = if o.patterns.is_empty() {
        "1".to_string()
    } else {
        let like = |p: &String| format!("tbl_name LIKE {} ESCAPE '\\'", quote_text(p));
        format!("({})", o.patterns.iter().map(like).collect::<Vec<_>>().join(" OR "))
    };
    if o.nosys {
        wanted.push_str(" AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'");
    }
    let base = format!("SELECT name, type, sql FROM sqlite_schema WHERE {wanted} AND sql NOT NULL");
    let tables = format!("{base} AND type='table' ORDER BY tbl_name='sqlite_sequence', rowid");
    for row in c.query(&tables, &[])? {
        let (name, sql) = (row[0].to_string_lossy(), row[2].to_string_lossy());
        table(s, c, o, &name, &sql)?;
    }
    if !o.data_only {
        for row in c.query(&format!("{base} AND type IN ('index','trigger','view') ORDER BY rowid"), &[])? {
            s.say(&format!("{};", row[2].to_string_lossy()));
        }
    }
    Ok(())
}

fn table(s: &mut Shell, c: &Connection, o: &Options, name: &str, sql: &str) -> Result<(), Error> {
    let statistics = name.starts_with("sqlite_stat");
    if name == "sqlite_sequence" {
        if !o.data_only {
            s.say("DELETE FROM sqlite_sequence;");
        }
    } else if statistics {
        if !o.data_only && name == "sqlite_stat1" {
            s.say("ANALYZE sqlite_schema;");
        }
    } else if name.starts_with("sqlite_") {
        return Ok(());
    } else if !o.data_only {
        let guarded = sql.get(..13).is_some_and(|p| p.eq_ignore_ascii_case("CREATE TABLE "))
            && matches!(sql.as_bytes().get(13), Some(b'\'' | b'"'));
        match guarded {
            // Tables of other modules quote their names so.
            true => s.say(&format!("CREATE TABLE IF NOT EXISTS {};", &sql[13..])),
            false => s.say(&format!("{sql};")),
        }
    }
    let info = c.query(&format!("PRAGMA table_xinfo({})", quote_name(name)), &[])?;
    // Generated columns (kinds 2 and 3) are computed anew, hidden ones (1) are not stored.
    let columns: Vec<String> = info
        .iter()
        .filter(|r| r.get(6).is_none_or(|h| h.to_int() == 0))
        .map(|r| quote_name(&r[1].to_string_lossy()).into_owned())
        .collect();
    let generated = columns.len() < info.len();
    let rowid = if o.rowids { rowid_name(c, name, &info) } else { None };
    let mut selected = columns.clone();
    if let Some(r) = rowid {
        selected.insert(0, r.to_string());
    }
    let list = if generated || rowid.is_some() { format!("({})", selected.join(",")) } else { String::new() };
    let head = format!("INSERT INTO {}{list} VALUES(", quote_name(name));
    let mut q = c.prepare(&format!("SELECT {} FROM {}", selected.join(","), quote_name(name)))?;
    while q.step()? == Step::Row {
        let mut line = head.clone().into_bytes();
        for (i, v) in q.row().iter().enumerate() {
            if i > 0 {
                line.push(b',');
            }
            line.extend_from_slice(&literal(v)?);
        }
        line.extend_from_slice(b");\n");
        if let Err(e) = s.out.write_all(&line) {
            output::failed(&e);
        }
        if s.interrupts.pending() {
            s.interrupts.take();
            return Err(iolite::Code::Interrupt.into());
        }
    }
    Ok(())
}

/// A literal that older versions read too: line ends and control characters stand for themselves.
fn literal(v: &Value) -> Result<Vec<u8>, Error> {
    match v {
        Value::Real(r) if r.is_infinite() => {
            Ok(if *r > 0.0 { b"1e999".to_vec() } else { b"-1e999".to_vec() })
        }
        _ => iolite_func::quote(v),
    }
}

/// A name for the rowid that no column has, if the table has a rowid that is no column anyway.
fn rowid_name(c: &Connection, table: &str, info: &[Vec<Value>]) -> Option<&'static str> {
    let taken = |n: &&str| info.iter().any(|r| r[1].to_string_lossy().eq_ignore_ascii_case(n));
    let name = ["rowid", "_rowid_", "oid"].into_iter().find(|n| !taken(n))?;
    c.prepare(&format!("SELECT {name} FROM {}", quote_name(table))).ok()?;
    Some(name)
}
