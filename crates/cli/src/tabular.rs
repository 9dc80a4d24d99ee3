//! Rows in columns of equal width: the modes box, column, markdown, psql, qbox and table.
//!
//! A cell is cut into lines (at line ends and where it is wider than its column may be); a column is as wide as its
//! widest line, unless the user or the screen says less.

use crate::print::Cell;
use crate::style::{Mode, Style};
use std::io::{self, Write};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How many places a text takes on the screen.
pub fn width(s: &str) -> usize {
    s.width()
}

/// One cell's lines, and how they are aligned.
struct Lines {
    lines: Vec<String>,
    align: Align,
}

#[derive(Clone, Copy, PartialEq)]
enum Align {
    Left,
    Centre,
    Right,
}

/// Prints a whole result.
pub fn print(s: &Style, columns: &[String], rows: &[Vec<Cell>], out: &mut impl Write) -> io::Result<()> {
    let n = columns.len();
    let titles: Vec<String> = columns.iter().map(|c| title(s, c)).collect();
    let texts: Vec<Vec<String>> = rows.iter().map(|r| r.iter().map(|c| expand(&c.text)).collect()).collect();
    let limits = limits(s, &titles, &texts, n);
    // Boxes align numbers to the right; the older modes leave them where text begins.
    let numbers_right = matches!(s.mode, Mode::Box | Mode::Qbox | Mode::Psql);
    let column_align = |i: usize| match s.align.as_bytes().get(i) {
        Some(b'R') => Some(Align::Right),
        Some(b'C') => Some(Align::Centre),
        Some(_) => Some(Align::Left),
        None if s.widths.get(i).is_some_and(|w| *w < 0) => Some(Align::Right),
        None => None,
    };
    let mut body: Vec<Vec<Lines>> = Vec::with_capacity(rows.len());
    for (row, text) in rows.iter().zip(&texts) {
        let mut line = Vec::with_capacity(n);
        for i in 0..n {
            let (cell, text) = (&row[i], &text[i]);
            let default = if numbers_right && cell.numeric { Align::Right } else { Align::Left };
            let align = column_align(i).unwrap_or(default);
            line.push(Lines { lines: cut(text, limits[i], s), align });
        }
        body.push(line);
    }
    let heads: Vec<Lines> = titles
        .iter()
        .enumerate()
        .map(|(i, t)| {
            let default = if s.mode == Mode::Column { Align::Left } else { Align::Centre };
            let align = if s.mode == Mode::Column { column_align(i).unwrap_or(default) } else { default };
            Lines { lines: cut(t, limits[i], s), align }
        })
        .collect();
    let mut widths = vec![0; n];
    for i in 0..n {
        let widest = |l: &Lines| l.lines.iter().map(|x| width(x)).max().unwrap_or(0);
        let head = if s.shows_headers() { widest(&heads[i]) } else { 0 };
        widths[i] = body.iter().map(|r| widest(&r[i])).max().unwrap_or(0).max(head);
        if let Some(w) = s.widths.get(i).filter(|w| **w != 0) {
            widths[i] = w.unsigned_abs() as usize;
        }
    }
    draw(s, &heads, &body, &widths, out)
}

fn draw(
    s: &Style,
    heads: &[Lines],
    body: &[Vec<Lines>],
    widths: &[usize],
    out: &mut impl Write,
) -> io::Result<()> {
    let several = body.iter().any(|r| r.iter().any(|c| c.lines.len() > 1));
    let frame = Frame::of(s);
    if let Some(top) = &frame.top {
        rule(out, top, widths)?;
    }
    if s.shows_headers() {
        cells(out, &frame, heads, widths)?;
        if let Some(under) = &frame.under {
            rule(out, under, widths)?;
        }
    }
    for (i, row) in body.iter().enumerate() {
        if i > 0 && several {
            match &frame.between {
                Some(r) => rule(out, r, widths)?,
                None if s.mode == Mode::Column => out.write_all(b"\n")?,
                None => {}
            }
        }
        cells(out, &frame, row, widths)?;
    }
    if let Some(bottom) = &frame.bottom {
        rule(out, bottom, widths)?;
    }
    Ok(())
}

/// The strokes of a rule: left, line, crossing, right; how many strokes more than the column is wide.
struct Rule(&'static str, &'static str, &'static str, &'static str, usize);

/// A mode's strokes.
struct Frame {
    top: Option<Rule>,
    under: Option<Rule>,
    between: Option<Rule>,
    bottom: Option<Rule>,
    left: &'static str,
    mid: &'static str,
    right: &'static str,
    trim: bool,
}

impl Frame {
    fn of(s: &Style) -> Frame {
        let b = s.border;
        match s.mode {
            Mode::Box | Mode::Qbox => Frame {
                top: b.then_some(Rule("╭", "─", "┬", "╮", 2)),
                under: Some(if b {
                    Rule("╞", "═", "╪", "╡", 2)
                } else {
                    Rule("", "═", "╪", "", 2)
                }),
                between: Some(if b {
                    Rule("├", "─", "┼", "┤", 2)
                } else {
                    Rule("", "─", "┼", "", 2)
                }),
                bottom: b.then_some(Rule("╰", "─", "┴", "╯", 2)),
                left: if b { "│ " } else { " " },
                mid: " │ ",
                right: if b { " │" } else { "" },
                trim: !b,
            },
            Mode::Table | Mode::Psql => {
                let r = || Rule("+", "-", "+", "+", 2);
                let inner = || if b { r() } else { Rule("", "-", "+", "", 2) };
                Frame {
                    top: b.then(r),
                    under: Some(inner()),
                    between: Some(inner()),
                    bottom: b.then(r),
                    left: if b { "| " } else { " " },
                    mid: " | ",
                    right: if b { " |" } else { "" },
                    trim: !b,
                }
            }
            Mode::Markdown => Frame {
                top: None,
                under: Some(Rule("|", "-", "|", "|", 2)),
                between: None,
                bottom: None,
                left: "| ",
                mid: " | ",
                right: " |",
                trim: false,
            },
            _ => Frame {
                top: None,
                under: Some(Rule("", "-", "  ", "", 0)),
                between: None,
                bottom: None,
                left: "",
                mid: "  ",
                right: "",
                trim: false,
            },
        }
    }
}

fn rule(out: &mut impl Write, r: &Rule, widths: &[usize]) -> io::Result<()> {
    let parts: Vec<String> = widths.iter().map(|w| r.1.repeat(w + r.4)).collect();
    writeln!(out, "{}{}{}", r.0, parts.join(r.2), r.3)
}

fn cells(out: &mut impl Write, f: &Frame, row: &[Lines], widths: &[usize]) -> io::Result<()> {
    let height = row.iter().map(|c| c.lines.len()).max().unwrap_or(1);
    for y in 0..height {
        let mut line = String::from(f.left);
        for (i, (cell, w)) in row.iter().zip(widths).enumerate() {
            if i > 0 {
                line.push_str(f.mid);
            }
            let text = cell.lines.get(y).map_or("", String::as_str);
            let gap = w.saturating_sub(width(text));
            let before = match cell.align {
                Align::Left => 0,
                Align::Centre => gap / 2,
                Align::Right => gap,
            };
            line.extend(std::iter::repeat_n(' ', before));
            line.push_str(text);
            line.extend(std::iter::repeat_n(' ', gap - before));
        }
        line.push_str(f.right);
        let line = if f.trim { line.trim_end() } else { &line };
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn title(s: &Style, name: &str) -> String {
    let clean: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match clean.char_indices().nth(s.title_limit) {
        Some((at, _)) if s.title_limit > 0 => format!("{}...", &clean[..at]),
        _ => clean,
    }
}

/// Text with tabs as spaces and without carriage returns.
fn expand(text: &[u8]) -> String {
    let t = String::from_utf8_lossy(text);
    if !t.contains(['\t', '\r']) {
        return t.into_owned();
    }
    let mut out = String::with_capacity(t.len() + 8);
    let mut at = 0;
    for c in t.chars() {
        match c {
            '\t' => {
                let n = 8 - at % 8;
                out.extend(std::iter::repeat_n(' ', n));
                at += n;
            }
            '\r' => {}
            '\n' => {
                out.push(c);
                at = 0;
            }
            _ => {
                out.push(c);
                at += c.width().unwrap_or(0);
            }
        }
    }
    out
}

/// How wide each column may be; 0: as wide as it likes.
fn limits(s: &Style, titles: &[String], texts: &[Vec<String>], n: usize) -> Vec<usize> {
    let fixed = |i: usize| s.widths.get(i).map_or(0, |w| w.unsigned_abs() as usize);
    let mut limits: Vec<usize> = (0..n).map(|i| if fixed(i) > 0 { fixed(i) } else { s.wrap }).collect();
    let Some(screen) = s.screen else { return limits };
    let screen = if screen == 0 { console::Term::stdout().size().1 as usize } else { screen };
    let mut natural = vec![0; n];
    for i in 0..n {
        let widest = |t: &String| t.lines().map(width).max().unwrap_or(0);
        let w = texts.iter().map(|r| widest(&r[i])).max().unwrap_or(0).max(width(&titles[i]));
        natural[i] = if limits[i] > 0 { w.min(limits[i]) } else { w };
    }
    let frame = if s.mode == Mode::Column { 2 * n } else { 3 * n + 1 };
    let room = screen.saturating_sub(frame).max(n);
    if natural.iter().sum::<usize>() <= room {
        return limits;
    }
    // The widest columns give way first: the largest bound under which all fit.
    let mut bound = 3;
    while natural.iter().map(|w| *w.min(&(bound + 1))).sum::<usize>() <= room {
        bound += 1;
    }
    for i in 0..n {
        if natural[i] > bound && fixed(i) == 0 {
            limits[i] = bound;
        }
    }
    limits
}

/// Cuts a text into lines of at most `limit` places.
fn cut(text: &str, limit: usize, s: &Style) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for line in text.split('\n') {
        if limit == 0 || width(line) <= limit {
            out.push(line.to_string());
            continue;
        }
        let mut rest = line;
        while !rest.is_empty() {
            let (mut at, mut w) = (rest.len(), 0);
            for (i, c) in rest.char_indices() {
                w += c.width().unwrap_or(0);
                if w > limit && i > 0 {
                    at = i;
                    break;
                }
            }
            let breaks = |i: usize| i > limit / 2 && rest.is_char_boundary(i);
            if s.word_wrap && at < rest.len() {
                match rest[..at].rfind([' ', '-', ',', '.', ';']).map(|i| i + 1) {
                    Some(i) if breaks(i) => at = i,
                    _ => {}
                }
            }
            let (head, tail) = rest.split_at(at);
            out.push(if s.word_wrap { head.trim_end().to_string() } else { head.to_string() });
            rest = if s.word_wrap { tail.trim_start() } else { tail };
        }
    }
    if out.len() > 1 && out.last().is_some_and(String::is_empty) {
        out.pop();
    }
    if s.line_limit > 0 && out.len() > s.line_limit {
        out.truncate(s.line_limit);
        out.push("...".into());
    }
    out
}
