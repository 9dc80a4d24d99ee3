//! `.import`: rows of a delimited file into a table.
//!
//! A missing table is made, its columns named by the first row. All rows go in within one transaction; a row with too
//! few or too many fields is told about and fitted. A thread reads and divides the file ([`crate::delimited`]) while this
//! one inserts: a third of the work.

use crate::command::Flow;
use crate::delimited::{Field, Format, Input, Reader};
use crate::shell::Shell;
use crate::style::Mode;
use iolite::engine::{Code, Connection, Error, Statement, Step, Value};
use iolite_sql::print::quote_name;
use std::process::{Child, Command, Stdio};

/// How many messages about single rows are printed before they are only counted.
const MAX_MESSAGES: usize = 100;

struct Options {
    file: String,
    table: String,
    schema: Option<String>,
    skip: u64,
    verbose: bool,
    format: Format,
}

fn options(s: &Shell, a: &[String]) -> Result<Options, String> {
    let ascii_mode = s.style.mode == Mode::Ascii;
    let single = |text: &str, what: &str| match text.as_bytes() {
        [b] => Ok(*b),
        b"\r\n" if what == "row" => Ok(b'\n'),
        [] => Err(format!("Error: non-null {what} separator required for import")),
        _ => Err(format!("Error: multi-character {what} separators not allowed for import")),
    };
    let mut names: Vec<&String> = Vec::new();
    let (mut csv, mut ascii, mut schema, mut skip, mut verbose) = (false, false, None, 0, false);
    let mut i = 1;
    while let Some(arg) = a.get(i) {
        i += 1;
        let option = arg.strip_prefix("--").or_else(|| arg.strip_prefix('-'));
        match option {
            None => names.push(arg),
            Some("v") => verbose = true,
            Some("csv") => csv = true,
            Some("ascii") => ascii = true,
            Some("skip") => {
                let n = a.get(i).and_then(|n| n.parse().ok());
                skip = n.ok_or("Error: --skip wants a number")?;
                i += 1;
            }
            Some("schema") => {
                schema = Some(a.get(i).cloned().ok_or("Error: --schema wants a name")?);
                i += 1;
            }
            Some(_) => return Err(format!("Error: unknown option: \"{arg}\".  Usage: .import FILE TABLE")),
        }
    }
    let [file, table] = names.as_slice() else {
        return Err("Error: missing FILE or TABLE argument.  Usage: .import FILE TABLE".into());
    };
    let (column, row) = match (ascii || ascii_mode && !csv, csv) {
        (true, _) => (0x1f, 0x1e),
        (_, true) => (b',', b'\n'),
        // Modes that separate nothing are no description of a file.
        _ if s.style.mode.is_tabular() || s.style.colsep.is_empty() => (b'|', b'\n'),
        _ => (single(&s.style.colsep, "column")?, single(&s.style.rowsep, "row")?),
    };
    let quotes = !(ascii || ascii_mode && !csv);
    let format = Format { column, row, quotes };
    Ok(Options { file: file.to_string(), table: table.to_string(), schema, skip, verbose, format })
}

/// Runs the command.
pub fn import(s: &mut Shell, a: &[String]) -> Flow {
    let o = match options(s, a) {
        Ok(o) => o,
        Err(e) => {
            s.complain(&e);
            return Flow::Fail;
        }
    };
    let Some(c) = s.ensure_open() else { return Flow::Fail };
    let (input, size, child) = match source(&o.file) {
        Ok(i) => i,
        Err(_) => {
            s.complain(&format!("Error: cannot open \"{}\"", o.file));
            return Flow::Fail;
        }
    };
    s.tune_now(&c);
    let r = load(s, &c, &o, Reader::new(input, o.format), size);
    if let Some(mut child) = child {
        let _ = child.wait();
    }
    match r {
        Ok(counts) => {
            if o.verbose {
                let text = format!("Added {} rows with {} errors", counts.0, counts.1);
                s.say(&text);
            }
            Flow::Next
        }
        Err(e) => {
            s.complain(&format!("Error: {}", e.message()));
            Flow::Fail
        }
    }
}

type Source = (Input, u64, Option<Child>);

fn source(file: &str) -> std::io::Result<Source> {
    if let Some(command) = file.strip_prefix('|') {
        let mut child = Command::new("sh").arg("-c").arg(command).stdout(Stdio::piped()).spawn()?;
        let out = child.stdout.take().ok_or_else(|| std::io::Error::other("no pipe"))?;
        return Ok((Box::new(out), 0, Some(child)));
    }
    let f = std::fs::File::open(file)?;
    if f.metadata()?.is_dir() {
        return Err(std::io::Error::other("a directory"));
    }
    let size = f.metadata()?.len();
    Ok((Box::new(f), size, None))
}

fn load(s: &mut Shell, c: &Connection, o: &Options, mut f: Reader, size: u64) -> Result<(u64, u64), Error> {
    for _ in 0..o.skip {
        f.next().map_err(|e| unreadable(o, e))?;
    }
    let name = match &o.schema {
        Some(schema) => format!("{}.{}", quote_name(schema), quote_name(&o.table)),
        None => quote_name(&o.table).into_owned(),
    };
    let own = c.is_autocommit();
    if own {
        c.execute_batch("BEGIN")?;
    }
    let bar = crate::progress::Bar::new(&o.table, size, true);
    let r = rows(s, c, o, f, &name, &bar);
    drop(bar);
    match &r {
        Ok(_) if own => c.execute_batch("COMMIT")?,
        Err(_) if own => {
            let _ = c.execute_batch("ROLLBACK");
        }
        _ => {}
    }
    r
}

fn unreadable(o: &Options, e: std::io::Error) -> Error {
    Error::sql(format!("cannot read {}: {e}", o.file))
}

/// How many columns a row takes in; the table is made if it is missing.
fn target(s: &mut Shell, c: &Connection, o: &Options, f: &mut Reader, name: &str) -> Result<usize, Error> {
    let schema = o.schema.as_ref().map_or(String::new(), |s| format!("{}.", quote_name(s)));
    let info = format!("PRAGMA {schema}table_info({})", quote_name(&o.table));
    let columns = c.query(&info, &[])?;
    if !columns.is_empty() {
        return Ok(columns.len());
    }
    if !f.next().map_err(|e| unreadable(o, e))? {
        return Err(Error::sql(format!("{}: empty file", o.file)));
    }
    let first: Vec<String> = f.fields().map(|b| String::from_utf8_lossy(b).into_owned()).collect();
    let names = unique(&first);
    let list: Vec<String> = names.iter().map(|n| format!("{} ANY", quote_column(n))).collect();
    let create = format!("CREATE TABLE {name}({})", list.join(", "));
    if o.verbose {
        s.say(&create);
    }
    c.execute_batch(&create).map_err(|e| Error::sql(format!("{create} failed:\n{}", e.message())))?;
    Ok(names.len())
}

fn quote_column(n: &str) -> String {
    format!("\"{}\"", n.replace('"', "\"\""))
}

/// Column names from the first row: empty ones get a number, equal ones a suffix.
fn unique(names: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::with_capacity(names.len());
    for (i, n) in names.iter().enumerate() {
        let base = if n.is_empty() { format!("c{}", i + 1) } else { n.clone() };
        let mut name = base.clone();
        let mut k = 1;
        let taken = |out: &[String], n: &str| out.iter().any(|o| o.eq_ignore_ascii_case(n));
        while taken(&out, &name) {
            name = format!("{base}_{k:02}");
            k += 1;
        }
        out.push(name);
    }
    out
}

fn rows(
    s: &mut Shell,
    c: &Connection,
    o: &Options,
    mut f: Reader,
    name: &str,
    bar: &crate::progress::Bar,
) -> Result<(u64, u64), Error> {
    let n = target(s, c, o, &mut f, name)?;
    let whole = whole_numbers(c, o)?;
    let places = vec!["?"; n].join(",");
    let mut insert = c.prepare(&format!("INSERT INTO {name} VALUES({places})"))?;
    let (mut done, mut errors, mut messages) = (0u64, 0u64, 0usize);
    let mut tell = |s: &mut Shell, line: u64, text: &str| {
        messages += 1;
        if messages <= MAX_MESSAGES {
            s.complain(&format!("{}:{line}: {text}", o.file));
        }
    };
    for batch in f.batches(n, whole) {
        let batch = batch.map_err(|e| unreadable(o, e))?;
        let mut fields = batch.fields();
        for record in &batch.records {
            let (line, got) = (record.line, record.fields);
            if got < n {
                let text = format!("expected {n} columns but found {got} - filling the rest with NULL");
                tell(s, line, &text);
            } else if got > n {
                tell(s, line, &format!("expected {n} columns but found {got} - extras ignored"));
            }
            let (there, absent) = insert.bindings_mut()?.split_at_mut(got.min(n));
            for (v, field) in there.iter_mut().zip(&mut fields) {
                match field {
                    Field::Whole(i) => *v = Value::Int(i),
                    Field::Text(b) => v.set_text(b)?,
                }
            }
            absent.fill(Value::Null);
            match put(&mut insert) {
                Ok(()) => done += 1,
                // What concerns this row alone does not stop the others.
                Err(e) if matches!(e.code().primary(), Code::Constraint | Code::Mismatch | Code::Toobig) => {
                    errors += 1;
                    tell(s, line, &format!("INSERT failed: {}", e.message()));
                }
                Err(e) => return Err(e),
            }
        }
        bar.set(batch.read);
        if s.interrupts.take() {
            return Err(Code::Interrupt.into());
        }
    }
    if messages > MAX_MESSAGES {
        s.complain(&format!("{}: {} more messages", o.file, messages - MAX_MESSAGES));
    }
    Ok((done, errors))
}

/// Runs the statement once.
fn put(insert: &mut Statement) -> Result<(), Error> {
    while insert.step()? == Step::Row {}
    insert.reset()
}

/// The columns in which a text that is a whole number becomes one: it can be handed over as one then, which spares making
/// and freeing a text. Only an ordinary table's; those of a STRICT one of type ANY, and a view's, keep the text.
fn whole_numbers(c: &Connection, o: &Options) -> Result<Vec<bool>, Error> {
    let of = |pragma: &str| {
        let schema = o.schema.as_ref().map_or(String::new(), |s| format!("{}.", quote_name(s)));
        c.query(&format!("PRAGMA {schema}{pragma}({})", quote_name(&o.table)), &[])
    };
    let plain = of("table_list")?.iter().all(|r| r[2].to_string_lossy() == "table" && r[5].to_int() == 0);
    if !plain {
        return Ok(Vec::new());
    }
    let numeric = |declared: &str| {
        let t = declared.to_ascii_uppercase();
        let has = |words: &[&str]| words.iter().any(|w| t.contains(w));
        has(&["INT"]) || !(t.is_empty() || has(&["CHAR", "CLOB", "TEXT", "BLOB", "REAL", "FLOA", "DOUB"]))
    };
    Ok(of("table_info")?.iter().map(|r| numeric(&r[2].to_string_lossy())).collect())
}
