//! `.import`: rows of a delimited file into a table.
//!
//! Fields may be quoted as RFC 4180 says (not with `--ascii`). A missing table is made, its columns named by the first
//! row. All rows go in within one transaction; a row with too few or too many fields is told about and fitted.

use crate::command::Flow;
use crate::shell::Shell;
use crate::style::Mode;
use iolite::{Connection, Error, Step, Value};
use iolite_sql::print::quote_name;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// How many messages about single rows are printed before they are only counted.
const MAX_MESSAGES: usize = 100;

struct Options {
    file: String,
    table: String,
    schema: Option<String>,
    skip: u64,
    verbose: bool,
    quotes: bool,
    column: u8,
    row: u8,
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
    Ok(Options {
        file: file.to_string(),
        table: table.to_string(),
        schema,
        skip,
        verbose,
        quotes,
        column,
        row,
    })
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
    let fields = Fields::new(input, &o);
    let r = load(s, &c, &o, fields, size);
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

type Source = (Box<dyn BufRead>, u64, Option<Child>);

fn source(file: &str) -> std::io::Result<Source> {
    if let Some(command) = file.strip_prefix('|') {
        let mut child = Command::new("sh").arg("-c").arg(command).stdout(Stdio::piped()).spawn()?;
        let out = child.stdout.take().ok_or_else(|| std::io::Error::other("no pipe"))?;
        return Ok((Box::new(BufReader::with_capacity(1 << 16, out)), 0, Some(child)));
    }
    let f = std::fs::File::open(file)?;
    if f.metadata()?.is_dir() {
        return Err(std::io::Error::other("a directory"));
    }
    let size = f.metadata()?.len();
    Ok((Box::new(BufReader::with_capacity(1 << 18, f)), size, None))
}

fn load(s: &mut Shell, c: &Connection, o: &Options, mut f: Fields, size: u64) -> Result<(u64, u64), Error> {
    for _ in 0..o.skip {
        f.record();
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
    let r = rows(s, c, o, &mut f, &name, &bar);
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

/// How many columns a row takes in; the table is made if it is missing.
fn target(s: &mut Shell, c: &Connection, o: &Options, f: &mut Fields, name: &str) -> Result<usize, Error> {
    let schema = o.schema.as_ref().map_or(String::new(), |s| format!("{}.", quote_name(s)));
    let info = format!("PRAGMA {schema}table_info({})", quote_name(&o.table));
    let columns = c.query(&info, &[])?;
    if !columns.is_empty() {
        return Ok(columns.len());
    }
    if !f.record() {
        return Err(Error::sql(format!("{}: empty file", o.file)));
    }
    let names = unique(&f.texts());
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
    f: &mut Fields,
    name: &str,
    bar: &crate::progress::Bar,
) -> Result<(u64, u64), Error> {
    let n = target(s, c, o, f, name)?;
    let whole = whole_numbers(c, o)?;
    let places = vec!["?"; n].join(",");
    let mut insert = c.prepare(&format!("INSERT INTO {name} VALUES({places})"))?;
    let (mut done, mut errors, mut messages) = (0u64, 0u64, 0usize);
    let mut tell = |s: &mut Shell, text: String| {
        messages += 1;
        if messages <= MAX_MESSAGES {
            s.complain(&text);
        }
    };
    loop {
        let line = f.line + 1;
        if !f.record() {
            break;
        }
        let got = f.spans.len();
        if got < n {
            tell(
                s,
                format!(
                    "{}:{line}: expected {n} columns but found {got} - filling the rest with NULL",
                    o.file
                ),
            );
        } else if got > n {
            tell(s, format!("{}:{line}: expected {n} columns but found {got} - extras ignored", o.file));
        }
        for i in 0..n {
            let v = match f.field(i) {
                Some(b) => match integer(b).filter(|_| whole.get(i) == Some(&true)) {
                    Some(i) => Value::Int(i),
                    None => Value::text(b)?,
                },
                None => Value::Null,
            };
            insert.bind(i + 1, v)?;
        }
        let stepped = loop {
            match insert.step() {
                Ok(Step::Row) => {}
                Ok(Step::Done) => break Ok(()),
                Err(e) => break Err(e),
            }
        };
        let stepped = stepped.and(insert.reset());
        if let Err(e) = stepped {
            use iolite::Code;
            // What concerns this row alone does not stop the others.
            if !matches!(e.code().primary(), Code::Constraint | Code::Mismatch | Code::Toobig) {
                return Err(e);
            }
            errors += 1;
            tell(s, format!("{}:{line}: INSERT failed: {}", o.file, e.message()));
        } else {
            done += 1;
        }
        if done % 4096 == 0 {
            bar.set(f.read);
            if s.interrupts.take() {
                return Err(iolite::Code::Interrupt.into());
            }
        }
    }
    if messages > MAX_MESSAGES {
        s.complain(&format!("{}: {} more messages", o.file, messages - MAX_MESSAGES));
    }
    if let Some(e) = &f.failed {
        return Err(Error::sql(format!("cannot read {}: {e}", o.file)));
    }
    Ok((done, errors))
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

/// The value of a text that is an integer of up to 18 digits and nothing else.
#[inline]
fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut n = 0i64;
    for d in digits {
        let d = d.wrapping_sub(b'0');
        if d > 9 {
            return None;
        }
        n = n * 10 + d as i64;
    }
    Some(if negative { -n } else { n })
}

/// Where a field lies.
struct Span {
    /// In `text`: it was quoted, and is put together there; otherwise in `raw`.
    copied: bool,
    from: usize,
    to: usize,
}

/// The records of a file, one at a time, in one buffer.
struct Fields {
    input: Box<dyn BufRead>,
    column: u8,
    row: u8,
    quotes: bool,
    /// The lines of the present record.
    raw: Vec<u8>,
    /// Its fields, where any is quoted, one behind the other.
    text: Vec<u8>,
    spans: Vec<Span>,
    /// Lines before the present record's end.
    line: u64,
    /// Bytes read so far.
    read: u64,
    failed: Option<std::io::Error>,
}

impl Fields {
    fn new(mut input: Box<dyn BufRead>, o: &Options) -> Fields {
        // A byte order mark is no data.
        if input.fill_buf().is_ok_and(|b| b.starts_with(b"\xef\xbb\xbf")) {
            input.consume(3);
        }
        Fields {
            input,
            column: o.column,
            row: o.row,
            quotes: o.quotes,
            raw: Vec::new(),
            text: Vec::new(),
            spans: Vec::new(),
            line: 0,
            read: 0,
            failed: None,
        }
    }

    /// Reads the next record; `false` at the end.
    fn record(&mut self) -> bool {
        self.text.clear();
        self.spans.clear();
        self.raw.clear();
        if !self.more() {
            return false;
        }
        if !self.quotes || !self.raw.contains(&b'"') {
            self.split();
            return true;
        }
        let mut at = 0;
        loop {
            // At the beginning of a field.
            if self.quotes && self.raw.get(at) == Some(&b'"') {
                at += 1;
                loop {
                    if at >= self.raw.len() && !self.more() {
                        break;
                    }
                    match self.raw.get(at) {
                        None => break,
                        Some(b'"') if self.raw.get(at + 1) == Some(&b'"') => {
                            self.text.push(b'"');
                            at += 2;
                        }
                        Some(b'"') => {
                            at += 1;
                            break;
                        }
                        Some(b) => {
                            self.text.push(*b);
                            at += 1;
                        }
                    }
                }
            }
            let rest = &self.raw[at.min(self.raw.len())..];
            let end = rest.iter().position(|b| *b == self.column || *b == self.row).unwrap_or(rest.len());
            let mut field = &rest[..end];
            let last = rest.get(end) != Some(&self.column);
            if last && self.row == b'\n' && field.last() == Some(&b'\r') {
                field = &field[..field.len() - 1];
            }
            self.text.extend_from_slice(field);
            let from = self.spans.last().map_or(0, |s| s.to);
            self.spans.push(Span { copied: true, from, to: self.text.len() });
            if last {
                return true;
            }
            at += end + 1;
        }
    }

    /// Divides a line without quotes.
    fn split(&mut self) {
        let mut line: &[u8] = &self.raw;
        line = line.strip_suffix(&[self.row]).unwrap_or(line);
        if self.row == b'\n' {
            line = line.strip_suffix(b"\r").unwrap_or(line);
        }
        let mut from = 0;
        for (i, b) in line.iter().enumerate() {
            if *b == self.column {
                self.spans.push(Span { copied: false, from, to: i });
                from = i + 1;
            }
        }
        self.spans.push(Span { copied: false, from, to: line.len() });
    }

    /// Reads one more line into `raw`.
    fn more(&mut self) -> bool {
        match self.input.read_until(self.row, &mut self.raw) {
            Ok(0) => false,
            Ok(n) => {
                self.line += 1;
                self.read += n as u64;
                true
            }
            Err(e) => {
                self.failed = Some(e);
                false
            }
        }
    }

    fn field(&self, i: usize) -> Option<&[u8]> {
        let s = self.spans.get(i)?;
        Some(&(if s.copied { &self.text } else { &self.raw })[s.from..s.to])
    }

    fn texts(&self) -> Vec<String> {
        (0..self.spans.len())
            .map(|i| String::from_utf8_lossy(self.field(i).unwrap_or(b"")).into_owned())
            .collect()
    }
}
