//! The interactive side: editing, history, completion, colours.
//!
//! A statement is typed line by line with a continuation prompt; it enters the history as one entry, so that it comes
//! back whole and can be edited over its lines.

use crate::command::COMMANDS;
use crate::input::{self, End, Line, Lines, Script};
use crate::shell::Shell;
use iolite::engine::Connection;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Context, Editor, Helper, Hinter, Validator};
use std::borrow::Cow;
use std::io::BufReader;
use std::path::PathBuf;

/// Talks with a person until they leave.
pub fn interact(shell: &mut Shell, terminal: bool) -> End {
    println!("iolite {} (SQLite {})", iolite::IOLITE_VERSION, iolite::SQLITE_VERSION);
    println!("Enter \".help\" for usage hints.");
    if shell.file.is_empty() || shell.file == ":memory:" {
        println!("Connected to a transient in-memory database.");
        println!("Use \".open FILENAME\" to reopen on a persistent database.");
    }
    if !terminal {
        return input::process(shell, &mut Script(BufReader::new(std::io::stdin())), true);
    }
    let config = Config::builder().completion_type(CompletionType::List).auto_add_history(false).build();
    let mut editor = match crate::signal::keeping(|| Editor::with_config(config)) {
        Ok(e) => e,
        Err(e) => {
            shell.complain(&format!("no line editing: {e}"));
            return input::process(shell, &mut Script(BufReader::new(std::io::stdin())), true);
        }
    };
    let colours = shell.decorates();
    editor.set_helper(Some(Assistant { conn: None, files: FilenameCompleter::new(), colours }));
    let history = history_file();
    if let Some(h) = &history {
        // The first session has no history.
        let _ = editor.load_history(h);
    }
    let mut lines = Prompt { editor, history };
    let end = input::process(shell, &mut lines, true);
    if let End::Input = end {
        println!();
    }
    end
}

/// `IOLITE_HISTORY`, an old `~/.iolite_history`, or the one below XDG's folder for state.
fn history_file() -> Option<PathBuf> {
    if let Some(f) = std::env::var_os("IOLITE_HISTORY") {
        return Some(f.into());
    }
    let home = PathBuf::from(std::env::var_os("HOME")?);
    let plain = home.join(".iolite_history");
    match std::env::var_os("XDG_STATE_HOME") {
        Some(state) if !plain.exists() => {
            let dir = PathBuf::from(state).join("iolite");
            std::fs::create_dir_all(&dir).ok()?;
            Some(dir.join("history"))
        }
        _ => Some(plain),
    }
}

struct Prompt {
    editor: Editor<Assistant, FileHistory>,
    history: Option<PathBuf>,
}

impl Lines for Prompt {
    fn next(&mut self, shell: &mut Shell, continued: bool) -> Line {
        if let Some(h) = self.editor.helper_mut() {
            h.conn = shell.conn_if_open().cloned();
        }
        let prompt = if continued { &shell.prompt.1 } else { &shell.prompt.0 };
        let answer = self.editor.readline(prompt);
        // The helper must not keep a database open that the shell closes.
        if let Some(h) = self.editor.helper_mut() {
            h.conn = None;
        }
        match answer {
            Ok(l) => Line::Text(l),
            Err(ReadlineError::Interrupted) => Line::Interrupted,
            Err(ReadlineError::Eof) => Line::End,
            Err(e) => {
                shell.complain(&format!("Error: {e}"));
                Line::End
            }
        }
    }

    fn complete(&mut self, text: &str) {
        // Statements taken from the history come as several lines at once.
        let _ = self.editor.add_history_entry(text.trim_end());
        if let Some(h) = &self.history {
            // A history that cannot be written is no reason to disturb.
            let _ = self.editor.append_history(h);
        }
    }
}

#[derive(Helper, Hinter, Validator)]
struct Assistant {
    conn: Option<Connection>,
    files: FilenameCompleter,
    colours: bool,
}

/// Commands whose arguments are files.
const WITH_FILES: &[&str] =
    &["backup", "cd", "import", "load", "log", "once", "open", "output", "read", "restore", "save"];

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, ctx: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = &line[..pos];
        let pair = |s: &str| Pair { display: s.to_string(), replacement: s.to_string() };
        if let Some(command) = before.strip_prefix('.') {
            if !command.contains(' ') {
                let found = COMMANDS.iter().filter(|c| c.name.starts_with(command));
                return Ok((1, found.map(|c| pair(c.name)).collect()));
            }
            let name = command.split(' ').next().unwrap_or("");
            if crate::command::find(name).is_some_and(|c| WITH_FILES.contains(&c.name)) {
                return self.files.complete(line, pos, ctx);
            }
            if crate::command::find(name).is_some_and(|c| c.name == "mode") {
                let start = before.rfind(' ').map_or(0, |i| i + 1);
                let found = crate::style::MODES.iter().filter(|m| m.name.starts_with(&before[start..]));
                return Ok((start, found.map(|m| pair(m.name)).collect()));
            }
        }
        let start = before
            .char_indices()
            .rev()
            .take_while(|(_, c)| c.is_alphanumeric() || *c == '_')
            .last()
            .map_or(pos, |(i, _)| i);
        let word = &before[start..];
        if word.is_empty() {
            return Ok((pos, Vec::new()));
        }
        let begins = |n: &str| n.get(..word.len()).is_some_and(|p| p.eq_ignore_ascii_case(word));
        let mut out: Vec<String> = self.names().into_iter().filter(|n| begins(n)).collect();
        let upper = word.chars().next().is_some_and(char::is_uppercase);
        for i in 0..iolite_sql::keyword_count() {
            if let Some(k) = iolite_sql::keyword_name(i).filter(|k| begins(k)) {
                // Keywords come in the case in which they were begun.
                out.push(if upper { k.to_string() } else { k.to_ascii_lowercase() });
            }
        }
        out.sort();
        out.dedup();
        Ok((start, out.iter().map(|s| pair(s)).collect()))
    }
}

impl Assistant {
    /// Names of tables, views and columns of all databases.
    fn names(&self) -> Vec<String> {
        let Some(c) = &self.conn else { return Vec::new() };
        let mut out = Vec::new();
        let Ok(list) = c.query("PRAGMA database_list", &[]) else { return out };
        for db in list {
            let db = iolite_sql::print::quote_name(&db[1].to_string_lossy()).into_owned();
            let q = format!("SELECT name FROM {db}.sqlite_schema WHERE type IN ('table','view')");
            for row in c.query(&q, &[]).unwrap_or_default() {
                let table = row[0].to_string_lossy();
                let info = format!("PRAGMA {db}.table_info({})", iolite_sql::print::quote_name(&table));
                for column in c.query(&info, &[]).unwrap_or_default() {
                    out.push(column[1].to_string_lossy());
                }
                out.push(table);
            }
        }
        out
    }
}

impl Highlighter for Assistant {
    fn highlight<'l>(&self, line: &'l str, _pos: usize) -> Cow<'l, str> {
        if !self.colours || line.len() > 10_000 {
            return Cow::Borrowed(line);
        }
        Cow::Owned(coloured(line))
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _default: bool) -> Cow<'b, str> {
        if self.colours { Cow::Owned(format!("\x1b[1m{prompt}\x1b[0m")) } else { Cow::Borrowed(prompt) }
    }

    fn highlight_char(&self, _line: &str, _pos: usize, _kind: CmdKind) -> bool {
        self.colours
    }
}

/// The line with keywords, strings, numbers and comments in colours.
fn coloured(line: &str) -> String {
    let mut out = String::with_capacity(line.len() * 2);
    let paint = |out: &mut String, colour: &str, text: &str| {
        out.push_str("\x1b[");
        out.push_str(colour);
        out.push('m');
        out.push_str(text);
        out.push_str("\x1b[0m");
    };
    if line.starts_with('.') {
        let end = line.find(' ').unwrap_or(line.len());
        paint(&mut out, "35", &line[..end]);
        out.push_str(&line[end..]);
        return out;
    }
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let upto = |f: &dyn Fn(char) -> bool| rest.find(|c| !f(c)).unwrap_or(rest.len());
        let end = if c.is_alphabetic() || c == '_' {
            let end = upto(&|c| c.is_alphanumeric() || c == '_');
            if iolite_sql::is_keyword(&rest[..end]) {
                paint(&mut out, "1;34", &rest[..end]);
            } else {
                out.push_str(&rest[..end]);
            }
            end
        } else if c.is_ascii_digit() {
            let end = upto(&|c| c.is_alphanumeric() || c == '.');
            paint(&mut out, "36", &rest[..end]);
            end
        } else if c == '\'' || c == '"' {
            let end = rest[1..].find(c).map_or(rest.len(), |i| i + 2);
            paint(&mut out, if c == '\'' { "32" } else { "33" }, &rest[..end]);
            end
        } else if rest.starts_with("--") {
            let end = rest.find('\n').unwrap_or(rest.len());
            paint(&mut out, "90", &rest[..end]);
            end
        } else if rest.starts_with("/*") {
            let end = rest.find("*/").map_or(rest.len(), |i| i + 2);
            paint(&mut out, "90", &rest[..end]);
            end
        } else {
            out.push(c);
            c.len_utf8()
        };
        rest = &rest[end..];
    }
    out
}
