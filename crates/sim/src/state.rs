//! What a database contains, as text: the measure by which states are compared.

use crate::image::Files;
use crate::rng::digest;
use crate::searches;
use iolite::engine::{Connection, OpenFlags, Value};
use iolite_os::{MemoryVfs, Vfs};
use std::path::Path;
use std::sync::Arc;

/// The main database of every script.
pub const MAIN: &str = "main.db";
/// The second one, of scripts that attach one.
pub const AUX: &str = "aux.db";
/// All that may be attached: name and file.
pub const OTHERS: [(&str, &str); 2] = [("aux", AUX), ("third", "third.db")];

/// Appends a value as contents show it.
pub(crate) fn cell(v: &Value, out: &mut String) {
    use std::fmt::Write;
    let _ = match v {
        Value::Null => write!(out, "|null"),
        Value::Int(n) => write!(out, "|{n}"),
        Value::Real(r) => write!(out, "|{r:?}"),
        Value::Text(b, _) if b.len() <= 24 => write!(out, "|{}", String::from_utf8_lossy(b)),
        Value::Blob(b, _) | Value::Text(b, _) => write!(out, "|{}:{:x}", b.len(), digest(0, b)),
    };
}

/// Asks a database; both engines can be asked.
type Ask<'a> = &'a dyn Fn(&str) -> Result<Vec<Vec<Value>>, String>;

/// Tables, rows and settings of all databases of a connection but the temporary one. A database without
/// content counts as none.
fn dump_by(ask: Ask<'_>) -> Result<String, String> {
    let mut out = String::new();
    let attached = ask("PRAGMA database_list")?;
    for db in ["main", "aux", "third"] {
        if !attached.iter().any(|r| matches!(&r[1], Value::Text(b, _) if &**b == db.as_bytes())) {
            continue;
        }
        let mut lines = Vec::new();
        let mut add = |sql: &str, before: &str| -> Result<(), String> {
            for row in ask(sql)? {
                let mut line = before.to_string();
                row.iter().for_each(|v| cell(v, &mut line));
                lines.push(line);
            }
            Ok(())
        };
        add(&format!("SELECT type, name, tbl_name, sql FROM {db}.sqlite_master"), "")?;
        // What a virtual table says is in its shadow tables, and stock SQLite does not know all modules.
        let names = ask(&format!(
            "SELECT name FROM {db}.sqlite_master WHERE type='table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        ))?;
        for n in names {
            let Value::Text(n, _) = &n[0] else { continue };
            let n = String::from_utf8_lossy(n).into_owned();
            add(&format!("SELECT * FROM {db}.\"{n}\""), &n)?;
        }
        if lines.is_empty() {
            continue;
        }
        let version = ask(&format!("PRAGMA {db}.user_version"))?;
        lines.push(format!("user_version {:?}", version[0][0].to_int()));
        lines.sort();
        out.push_str("database ");
        out.push_str(db);
        out.push('\n');
        for l in lines {
            out.push_str(&l);
            out.push('\n');
        }
    }
    Ok(out)
}

/// What a connection's databases contain.
pub fn dump(c: &Connection) -> Result<String, String> {
    dump_by(&|sql| c.query(sql, &[]).map_err(|e| format!("{e:?}")))
}

/// Opens what lies in these files: recovers it, checks its integrity, answers its content.
pub fn recover(files: &Files) -> Result<String, String> {
    let vfs = MemoryVfs::new();
    for (path, data) in files {
        vfs.put(path, data.clone());
    }
    recover_on(Arc::new(vfs), &|f| files.get(Path::new(f)).is_some_and(|f| !f.is_empty()))
}

/// As [`recover`], for files that lie there already; `there` says which have content.
pub fn recover_on(vfs: Arc<dyn Vfs>, there: &dyn Fn(&str) -> bool) -> Result<String, String> {
    let c = Connection::open_on(vfs, MAIN, OpenFlags::default()).map_err(|e| format!("open: {e:?}"))?;
    let content = checked(&c, there)?;
    c.close().map_err(|e| format!("close: {e:?}"))?;
    Ok(content)
}

fn checked(c: &Connection, there: &dyn Fn(&str) -> bool) -> Result<String, String> {
    for (name, file) in OTHERS.iter().filter(|o| there(o.1)) {
        c.execute_batch(&format!("ATTACH '{file}' AS {name}")).map_err(|e| format!("attach: {e:?}"))?;
    }
    let content = dump(c).map_err(|e| format!("reading: {e}"))?;
    let check = c.query("PRAGMA integrity_check", &[]).map_err(|e| format!("integrity_check: {e:?}"))?;
    let mut text = String::new();
    check.iter().for_each(|r| cell(&r[0], &mut text));
    if text != "|ok" {
        return Err(format!("integrity_check: {text}"));
    }
    searches::check_content(c, &content)?;
    Ok(content)
}

/// As [`recover`], by stock SQLite, in a folder of the real file system.
pub fn stock_recover(files: &Files, name: u64) -> Result<String, String> {
    let folder = std::env::temp_dir().join(format!("iolite-sim-{}-{name:016x}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let done = stock_in(files, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    done
}

fn stock_in(files: &Files, folder: &Path) -> Result<String, String> {
    let stock = |e: iolite_stock::Error| format!("stock: {} {}", e.code, e.message);
    for (path, data) in files {
        let real = folder.join(path);
        std::fs::write(&real, data).map_err(|e| e.to_string())?;
    }
    let main = folder.join(MAIN);
    let c = iolite_stock::Connection::open(&main.to_string_lossy()).map_err(stock)?;
    for (name, file) in OTHERS {
        if files.get(Path::new(file)).is_some_and(|f| !f.is_empty()) {
            let path = folder.join(file);
            c.execute_batch(&format!("ATTACH '{}' AS {name}", path.display())).map_err(stock)?;
        }
    }
    let own = |v| match v {
        iolite_stock::Value::Null => Value::Null,
        iolite_stock::Value::Int(n) => Value::Int(n),
        iolite_stock::Value::Real(r) => Value::Real(r),
        iolite_stock::Value::Text(b) => Value::text(b).expect("small"),
        iolite_stock::Value::Blob(b) => Value::blob(&b).expect("small"),
    };
    let ask = |sql: &str| {
        let rows = c.query(sql).map_err(stock)?;
        Ok(rows.into_iter().map(|r| r.into_iter().map(own).collect()).collect())
    };
    let content = dump_by(&ask)?;
    let check = ask("PRAGMA integrity_check")?;
    match &check[0][0] {
        Value::Text(b, _) if &**b == b"ok" => Ok(content),
        other => Err(format!("stock: integrity_check: {other:?}")),
    }
}
