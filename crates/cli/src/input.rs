//! Input cut into statements and dot-commands.
//!
//! A statement is as many lines as it takes to be complete; a line that begins with a dot where no statement has begun
//! is a command; `#` there begins a comment. `/` or `go` alone on a line ends a statement.

use crate::command::{self, Flow};
use crate::shell::{Origin, Shell};
use std::io::BufRead;

/// How the end of the input was reached.
pub enum End {
    /// There is no more.
    Input,
    /// `.exit` with this code.
    Exit(i32),
    /// An error, and the user wants to stop at errors.
    Bail,
}

/// A source of lines.
pub trait Lines {
    /// The next line without its end. `continued`: inside a statement.
    fn next(&mut self, shell: &mut Shell, continued: bool) -> Line;
    /// A whole statement or command has been read.
    fn complete(&mut self, _text: &str) {}
}

/// What a source answered.
pub enum Line {
    /// A line.
    Text(String),
    /// Ctrl-C at the prompt: what was typed so far is dropped.
    Interrupted,
    /// The end.
    End,
}

/// Lines of a file, a pipe, or a text.
pub struct Script<R>(pub R);

impl<R: BufRead> Lines for Script<R> {
    fn next(&mut self, shell: &mut Shell, _: bool) -> Line {
        let mut bytes = Vec::new();
        match self.0.read_until(b'\n', &mut bytes) {
            Ok(0) => Line::End,
            Ok(_) => {
                if bytes.last() == Some(&b'\n') {
                    bytes.pop();
                }
                if bytes.last() == Some(&b'\r') {
                    bytes.pop();
                }
                Line::Text(
                    String::from_utf8(bytes)
                        .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()),
                )
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => Line::Interrupted,
            Err(e) => {
                shell.errors += 1;
                shell.complain(&format!("Error: cannot read the input: {e}"));
                Line::End
            }
        }
    }
}

/// Runs all of a source.
pub fn process(shell: &mut Shell, lines: &mut dyn Lines, interactive: bool) -> End {
    let mut pending = String::new();
    let (mut number, mut first) = (0, 1);
    loop {
        let line = match lines.next(shell, !pending.is_empty()) {
            Line::Text(l) => l,
            Line::Interrupted => {
                pending.clear();
                if interactive {
                    continue;
                }
                return End::Bail;
            }
            Line::End => break,
        };
        number += 1;
        if shell.interrupts.take() {
            if !interactive {
                return End::Bail;
            }
            pending.clear();
        }
        if pending.is_empty() {
            if line.trim().is_empty() || line.starts_with('#') {
                if shell.echo {
                    shell.say(&line);
                }
                continue;
            }
            first = number;
            if line.starts_with('.') {
                if shell.echo {
                    shell.say(&line);
                }
                lines.complete(&line);
                let flow = command::run(shell, &line);
                if let Err(e) = std::io::Write::flush(&mut shell.out) {
                    crate::output::failed(&e);
                }
                match flow {
                    Flow::Next => {}
                    Flow::Exit(code) => return End::Exit(code),
                    Flow::Quit => return End::Input,
                    Flow::Fail => {
                        shell.errors += 1;
                        if shell.bail && !interactive {
                            return End::Bail;
                        }
                    }
                }
                continue;
            }
        }
        let word = line.trim_end();
        let ends = !pending.is_empty() && (word == "/" || word.eq_ignore_ascii_case("go"));
        if ends && iolite_sql::complete(&format!("{pending};")) {
            pending.push(';');
        } else {
            if !pending.is_empty() {
                pending.push('\n');
            }
            pending.push_str(&line);
            // Whether the statement is complete can only change by a semicolon, and asking costs its whole length.
            if !line.contains(';') || !iolite_sql::complete(&pending) {
                continue;
            }
        }
        let text = std::mem::take(&mut pending);
        lines.complete(&text);
        if !run_text(shell, &text, first, interactive) && shell.bail && !interactive {
            return End::Bail;
        }
    }
    if !pending.trim().is_empty() && !run_text(shell, &pending, first, interactive) && shell.bail {
        return End::Bail;
    }
    End::Input
}

fn run_text(shell: &mut Shell, text: &str, line: usize, interactive: bool) -> bool {
    if shell.echo {
        shell.say(text);
    }
    let at = if interactive { Origin::Prompt } else { Origin::Line(line) };
    shell.run_sql(text, at).is_ok()
}
