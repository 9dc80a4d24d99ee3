//! Rows to text, in every mode but the tabular ones, which need all rows first and stand in `tabular`.
//!
//! Text is bytes here as everywhere: what is no UTF-8 passes through.

use crate::style::{BlobStyle, Escape, Mode, Quoting, Style};
use iolite::engine::Value;
use std::io::{self, Write};

/// The printer of one statement's rows.
pub struct Printer {
    style: Style,
    columns: Vec<String>,
    rows: u64,
    /// Tabular modes: all rows; `line`: nothing.
    kept: Vec<Vec<Cell>>,
    /// `insert`: bytes in the present statement.
    bytes: usize,
    /// `line`: the width of the widest column name.
    widest: usize,
}

/// A value as a tabular mode shows it.
pub struct Cell {
    /// Its text, before it is cut into lines.
    pub text: Vec<u8>,
    /// Whether it is a number.
    pub numeric: bool,
}

impl Printer {
    /// A printer for rows with these columns.
    pub fn new(style: &Style, columns: Vec<String>) -> Printer {
        let widest = columns.iter().map(|c| crate::tabular::width(c)).max().unwrap_or(0);
        Printer { style: style.clone(), columns, rows: 0, kept: Vec::new(), bytes: 0, widest }
    }

    /// Prints or keeps one row.
    pub fn row(&mut self, out: &mut impl Write, row: &[Value]) -> io::Result<()> {
        self.rows += 1;
        let first = self.rows == 1;
        let s = &self.style;
        match s.mode {
            Mode::Off | Mode::Count => Ok(()),
            m if m.is_tabular() => {
                let cell = |v: &Value| Cell {
                    text: limited(s, shown(s, v)),
                    numeric: matches!(v, Value::Int(_) | Value::Real(_)),
                };
                self.kept.push(row.iter().map(cell).collect());
                Ok(())
            }
            Mode::Line => {
                if !first {
                    out.write_all(s.rowsep.as_bytes())?;
                }
                for (name, v) in self.columns.iter().zip(row) {
                    let pad = self.widest.saturating_sub(crate::tabular::width(name));
                    write!(out, "{:pad$}{name}{}", "", s.colsep)?;
                    out.write_all(&limited(s, shown(s, v)))?;
                    out.write_all(s.rowsep.as_bytes())?;
                }
                Ok(())
            }
            Mode::Html => {
                if first && s.shows_headers() {
                    let names: Vec<Vec<u8>> = self.columns.iter().map(|c| html(c.as_bytes())).collect();
                    html_row(out, "TH", &names)?;
                }
                let cells: Vec<Vec<u8>> = row.iter().map(|v| shown(s, v)).collect();
                html_row(out, "TD", &cells)
            }
            Mode::Json => {
                out.write_all(if first { b"[" } else { b",\n" })?;
                json_object(out, &self.columns, row)
            }
            Mode::Jobject => {
                json_object(out, &self.columns, row)?;
                out.write_all(b"\n")
            }
            Mode::Insert => self.insert(out, row),
            _ => {
                if first && s.shows_headers() {
                    for (i, c) in self.columns.iter().enumerate() {
                        if i > 0 {
                            out.write_all(s.colsep.as_bytes())?;
                        }
                        out.write_all(&quoted(s, &Value::text(c).unwrap_or_default()))?;
                    }
                    out.write_all(s.rowsep.as_bytes())?;
                }
                for (i, v) in row.iter().enumerate() {
                    if i > 0 {
                        out.write_all(s.colsep.as_bytes())?;
                    }
                    // The usual case without a copy.
                    match v {
                        Value::Text(b, _) if s.quoting == Quoting::Off && plain(b) && s.char_limit == 0 => {
                            out.write_all(b)?
                        }
                        Value::Int(n) if s.quoting != Quoting::Tcl => write!(out, "{n}")?,
                        _ => out.write_all(&limited(s, shown(s, v)))?,
                    }
                }
                out.write_all(s.rowsep.as_bytes())
            }
        }
    }

    /// Prints what comes behind the last row.
    pub fn end(self, out: &mut impl Write) -> io::Result<()> {
        match self.style.mode {
            Mode::Count => writeln!(out, "{}", self.rows),
            Mode::Json if self.rows > 0 => out.write_all(b"]\n"),
            Mode::Insert if self.bytes > 0 => out.write_all(b";\n"),
            m if m.is_tabular() && self.rows > 0 => {
                crate::tabular::print(&self.style, &self.columns, &self.kept, out)
            }
            _ => Ok(()),
        }
    }

    fn insert(&mut self, out: &mut impl Write, row: &[Value]) -> io::Result<()> {
        let s = &self.style;
        let mut text = Vec::new();
        for (i, v) in row.iter().enumerate() {
            if i > 0 {
                text.push(b',');
            }
            text.extend_from_slice(&literal(v));
        }
        if self.bytes > 0 && self.bytes + text.len() > s.multi_insert {
            out.write_all(b";\n")?;
            self.bytes = 0;
        }
        if self.bytes == 0 {
            let mut head = format!("INSERT INTO {}", iolite_sql::print::quote_name(&s.table));
            if s.headers == Some(true) {
                let names: Vec<_> = self.columns.iter().map(|c| iolite_sql::print::quote_name(c)).collect();
                head.push_str(&format!("({})", names.join(",")));
            }
            head.push_str(" VALUES(");
            out.write_all(head.as_bytes())?;
            self.bytes = head.len();
        } else {
            out.write_all(b",\n  (")?;
        }
        out.write_all(&text)?;
        out.write_all(b")")?;
        self.bytes += text.len() + 5;
        Ok(())
    }
}

fn html_row(out: &mut impl Write, tag: &str, cells: &[Vec<u8>]) -> io::Result<()> {
    out.write_all(b"<TR>")?;
    for c in cells {
        write!(out, "<{tag}>")?;
        out.write_all(c)?;
        writeln!(out, "</{tag}>")?;
    }
    out.write_all(b"</TR>\n")
}

/// A value as an SQL literal.
pub fn literal(v: &Value) -> Vec<u8> {
    match v {
        Value::Real(r) if r.is_infinite() => {
            if *r > 0.0 {
                b"1e999".to_vec()
            } else {
                b"-1e999".to_vec()
            }
        }
        _ => iolite_func::quote_escaped(v).unwrap_or_default(),
    }
}

/// A value under the style's quoting, NULL and blob rules.
fn shown(s: &Style, v: &Value) -> Vec<u8> {
    if v.is_null() {
        if s.mode == Mode::Tcl {
            return tcl(s.null_text().as_bytes());
        }
        return s.null_text().as_bytes().to_vec();
    }
    quoted(s, v)
}

fn quoted(s: &Style, v: &Value) -> Vec<u8> {
    let raw = |v: &Value| to_nul(v.lent_text(&mut [0; 32])).to_vec();
    if let Value::Blob(b, _) = v {
        let hex = || b.iter().map(|x| format!("{x:02x}")).collect::<String>();
        match s.blob {
            BlobStyle::Sql => return format!("x'{}'", hex()).into_bytes(),
            BlobStyle::Hex => return hex().into_bytes(),
            BlobStyle::Size => return format!("({}-byte blob)", b.len()).into_bytes(),
            BlobStyle::Auto if matches!(s.quoting, Quoting::Sql | Quoting::Relaxed) => {
                return format!("x'{}'", hex()).into_bytes();
            }
            BlobStyle::Auto if s.quoting == Quoting::Json => return json_string(b, true),
            _ => {}
        }
    }
    match s.quoting {
        Quoting::Off => match v {
            Value::Int(_) | Value::Real(_) => raw(v),
            _ => escaped(s.escape, &raw(v)),
        },
        Quoting::Sql => literal(v),
        Quoting::Relaxed => match v {
            Value::Text(b, _) if relaxed(b) => escaped(s.escape, b),
            Value::Real(_) => raw(v),
            _ => literal(v),
        },
        Quoting::Csv => csv(&raw(v), &s.colsep),
        Quoting::Html => html(&raw(v)),
        Quoting::Tcl => match v {
            Value::Int(_) | Value::Real(_) if s.mode == Mode::C => raw(v),
            _ => tcl(&raw(v)),
        },
        Quoting::Json => json_value(v),
    }
}

fn to_nul(b: &[u8]) -> &[u8] {
    b.iter().position(|c| *c == 0).map_or(b, |n| &b[..n])
}

fn plain(b: &[u8]) -> bool {
    b.iter().all(|c| *c >= b' ' || matches!(c, b'\n' | b'\t')) && !b.contains(&0x7f)
}

/// Whether text reads the same without quotes: it cannot be taken for a number, a blob or NULL, and shows where it
/// begins and ends.
fn relaxed(b: &[u8]) -> bool {
    let Some(first) = b.first() else { return false };
    let letters = first.is_ascii_alphabetic() || *first >= 0x80 || *first == b'_';
    let null = b.eq_ignore_ascii_case(b"null");
    let blob = matches!(first, b'x' | b'X') && b.get(1) == Some(&b'\'');
    let edges = first.is_ascii_whitespace() || b.last().is_some_and(u8::is_ascii_whitespace);
    letters && !null && !blob && !edges && !b.contains(&0)
}

/// Control characters made visible. Tabs and line ends stay.
fn escaped(how: Escape, b: &[u8]) -> Vec<u8> {
    if how == Escape::Off || plain(b) {
        return b.to_vec();
    }
    let mut out = Vec::with_capacity(b.len() + 8);
    for (i, c) in b.iter().enumerate() {
        let line_end = *c == b'\r' && b.get(i + 1) == Some(&b'\n');
        if *c >= b' ' && *c != 0x7f || matches!(c, b'\n' | b'\t') || line_end {
            out.push(*c);
        } else if how == Escape::Ascii {
            out.extend_from_slice(&[b'^', c ^ 0x40]);
        } else {
            let picture = char::from_u32(if *c == 0x7f { 0x2421 } else { 0x2400 + *c as u32 });
            out.extend_from_slice(picture.unwrap_or(' ').encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    out
}

fn limited(s: &Style, text: Vec<u8>) -> Vec<u8> {
    if s.char_limit == 0 || text.len() <= s.char_limit {
        return text;
    }
    let t = String::from_utf8_lossy(&text);
    match t.char_indices().nth(s.char_limit) {
        Some((at, _)) => format!("{}...", &t[..at]).into_bytes(),
        None => text,
    }
}

fn csv(b: &[u8], sep: &str) -> Vec<u8> {
    let special = |c: &u8| *c <= b' ' || matches!(*c, b'"' | b'\'') || *c >= 0x7f;
    let sep = sep.as_bytes();
    let has_sep = !sep.is_empty() && b.windows(sep.len()).any(|w| w == sep);
    // Between tabs only what would break the line apart is quoted.
    let quote = if sep == b"\t" { has_sep || b.contains(&b'"') } else { has_sep || b.iter().any(special) };
    if !quote && !b.is_empty() {
        return b.to_vec();
    }
    let mut out = vec![b'"'];
    for c in b {
        if *c == b'"' {
            out.push(b'"');
        }
        out.push(*c);
    }
    out.push(b'"');
    out
}

fn html(b: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(b.len());
    for c in b {
        match c {
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            _ => out.push(*c),
        }
    }
    out
}

fn tcl(b: &[u8]) -> Vec<u8> {
    let mut out = vec![b'"'];
    for c in b {
        match c {
            b'\\' | b'"' => out.extend_from_slice(&[b'\\', *c]),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            c if *c < b' ' || *c == 0x7f => out.extend_from_slice(format!("\\{c:03o}").as_bytes()),
            _ => out.push(*c),
        }
    }
    out.push(b'"');
    out
}

fn json_value(v: &Value) -> Vec<u8> {
    match v {
        Value::Null => b"null".to_vec(),
        Value::Real(r) if r.is_infinite() => {
            if *r > 0.0 {
                b"1e999".to_vec()
            } else {
                b"-1e999".to_vec()
            }
        }
        Value::Int(_) | Value::Real(_) => v.lent_text(&mut [0; 32]).to_vec(),
        Value::Text(b, _) => json_string(b, false),
        Value::Blob(b, _) => json_string(b, true),
    }
}

/// A JSON string; of a blob each byte that is not ASCII becomes an escape of its own.
fn json_string(b: &[u8], blob: bool) -> Vec<u8> {
    let mut out = vec![b'"'];
    for c in b {
        match c {
            b'\\' | b'"' => out.extend_from_slice(&[b'\\', *c]),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            c if *c < b' ' || blob && *c >= 0x7f => out.extend_from_slice(format!("\\u{c:04x}").as_bytes()),
            _ => out.push(*c),
        }
    }
    out.push(b'"');
    out
}

fn json_object(out: &mut impl Write, columns: &[String], row: &[Value]) -> io::Result<()> {
    out.write_all(b"{")?;
    for (i, (c, v)) in columns.iter().zip(row).enumerate() {
        if i > 0 {
            out.write_all(b",")?;
        }
        out.write_all(&json_string(c.as_bytes(), false))?;
        out.write_all(b":")?;
        out.write_all(&json_value(v))?;
    }
    out.write_all(b"}")
}
