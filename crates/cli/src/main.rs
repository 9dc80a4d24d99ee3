//! `iolite [OPTIONS] [FILE] [SQL...]`: the shell.
//!
//! The model is sqlite3's command line program: its options, dot-commands, output modes, error texts and exit codes.
//! The parts: `options` reads the command line, `shell` holds the state and runs statements, `input` cuts text into
//! statements and dot-commands, `command` is the table of dot-commands, `style` and `print` make results visible.
//! What the engine does with a statement, the shell does not know.
#![deny(unsafe_code)]

mod command;
mod delimited;
mod dump;
mod editor;
mod import;
mod input;
mod options;
mod output;
mod plan;
mod print;
mod progress;
mod report;
mod shell;
#[allow(unsafe_code)]
mod signal;
mod style;
mod tables;
mod tabular;

use std::process::ExitCode;

#[global_allocator]
static POOL: iolite_base::pool::Pool = iolite_base::pool::Pool;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
    let code = options::run(&args);
    ExitCode::from((code & 0xff) as u8)
}
