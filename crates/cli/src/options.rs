//! The command line: `iolite [OPTIONS] [FILE] [SQL...]`.
//!
//! Options may have one or two dashes and are read from left to right. What an option is called, what it takes and
//! what it does stand together in [`OPTIONS`]; the usage text is made from that.

use crate::input::{self, End, Script};
use crate::shell::{Origin, Shell};
use crate::style::{self, Mode, Style};
use std::io::{BufReader, IsTerminal};

/// What an option asks for.
#[derive(Clone, Copy, PartialEq)]
enum Do {
    Mode(Mode),
    Header(bool),
    Separator,
    Newline,
    Nullvalue,
    Escape,
    Cmd,
    Init,
    Batch,
    Interactive,
    Bail,
    Echo,
    Readonly,
    IfExists,
    Compat,
    Stats,
    Version,
    Help,
    /// Accepted for scripts' sake; the number of arguments.
    Ignored(u8),
}

const OPTIONS: &[(&str, &str, Do, &str)] = &[
    ("ascii", "", Do::Mode(Mode::Ascii), "set output mode to 'ascii'"),
    ("bail", "", Do::Bail, "stop after hitting an error"),
    ("batch", "", Do::Batch, "force batch I/O, with sqlite3's defaults"),
    ("box", "", Do::Mode(Mode::Box), "set output mode to 'box'"),
    ("cmd", "COMMAND", Do::Cmd, "run \"COMMAND\" before reading stdin"),
    ("column", "", Do::Mode(Mode::Column), "set output mode to 'column'"),
    ("compat", "", Do::Compat, "sqlite3's defaults: rollback journal, no waiting for locks, small cache"),
    ("csv", "", Do::Mode(Mode::Csv), "set output mode to 'csv'"),
    ("echo", "", Do::Echo, "print inputs before execution"),
    ("escape", "T", Do::Escape, "control characters; T is one of: symbol, ascii, off"),
    ("header", "", Do::Header(true), "turn headers on"),
    ("noheader", "", Do::Header(false), "turn headers off"),
    ("help", "", Do::Help, "show this message"),
    ("html", "", Do::Mode(Mode::Html), "set output mode to HTML"),
    ("ifexists", "", Do::IfExists, "only open if database already exists"),
    ("init", "FILENAME", Do::Init, "read/process named file"),
    ("interactive", "", Do::Interactive, "force interactive I/O"),
    ("json", "", Do::Mode(Mode::Json), "set output mode to 'json'"),
    ("line", "", Do::Mode(Mode::Line), "set output mode to 'line'"),
    ("list", "", Do::Mode(Mode::List), "set output mode to 'list'"),
    ("markdown", "", Do::Mode(Mode::Markdown), "set output mode to 'markdown'"),
    ("newline", "SEP", Do::Newline, "set output row separator. Default: '\\n'"),
    ("nullvalue", "TEXT", Do::Nullvalue, "set text string for NULL values. Default ''"),
    ("psql", "", Do::Mode(Mode::Psql), "set output mode to 'psql'"),
    ("quote", "", Do::Mode(Mode::Quote), "set output mode to 'quote'"),
    ("readonly", "", Do::Readonly, "open the database read-only"),
    ("separator", "SEP", Do::Separator, "set output column separator. Default: '|'"),
    ("stats", "", Do::Stats, "print memory stats after each statement"),
    ("table", "", Do::Mode(Mode::Table), "set output mode to 'table'"),
    ("tabs", "", Do::Mode(Mode::Tabs), "set output mode to 'tabs'"),
    ("version", "", Do::Version, "show the versions"),
    ("lookaside", "SIZE N", Do::Ignored(2), "accepted, without effect"),
    ("mmap", "N", Do::Ignored(1), "accepted, without effect"),
    ("pagecache", "SIZE N", Do::Ignored(2), "accepted, without effect"),
    ("heap", "SIZE", Do::Ignored(1), "accepted, without effect"),
];

/// Runs the shell; answers its exit code.
pub fn run(args: &[String]) -> i32 {
    let mut shell = Shell::new("");
    let mut rest: Vec<&str> = Vec::new();
    let mut settings: Vec<(Do, String)> = Vec::new();
    let (mut init, mut interactive, mut only_names) = (None, None, false);
    let mut i = 1;
    while let Some(arg) = args.get(i) {
        i += 1;
        if only_names || !arg.starts_with('-') || arg == "-" {
            rest.push(arg);
            continue;
        }
        if arg == "--" {
            only_names = true;
            continue;
        }
        let name = arg.strip_prefix("--").unwrap_or(&arg[1..]);
        let Some((_, wants, what, _)) = OPTIONS.iter().find(|o| o.0 == name) else {
            eprintln!("iolite: Error: unknown option: {arg}\nUse -help for a list of options.");
            return 1;
        };
        let mut value = String::new();
        for _ in wants.split_whitespace() {
            let Some(v) = args.get(i) else {
                eprintln!("iolite: Error: missing argument to {arg}");
                return 1;
            };
            value = v.clone();
            i += 1;
        }
        match what {
            Do::Init => init = Some(value),
            Do::Batch => {
                interactive = Some(false);
                shell.compat = true;
            }
            Do::Interactive => interactive = Some(true),
            Do::Readonly => shell.read_only = true,
            Do::IfExists => shell.must_exist = true,
            Do::Compat => shell.compat = true,
            Do::Version => {
                println!("{} (SQLite {})", iolite::IOLITE_VERSION, iolite::SQLITE_VERSION);
                return 0;
            }
            Do::Help => {
                usage();
                return 0;
            }
            other => settings.push((*other, value)),
        }
    }
    let file = rest.first().copied().unwrap_or("");
    shell.file = file.into();
    let terminal = std::io::stdin().is_terminal();
    shell.interactive = interactive.unwrap_or(rest.len() <= 1 && terminal);
    if shell.interactive && std::io::stdout().is_terminal() {
        shell.style = Style::terminal();
    }
    if let Some(code) = read_init(&mut shell, init.as_deref()) {
        return finish(&mut shell, code);
    }
    for (what, value) in settings {
        if let Some(code) = set(&mut shell, what, &value) {
            return finish(&mut shell, code);
        }
    }
    for sql in rest.iter().skip(1) {
        if let Some(code) = run_argument(&mut shell, sql) {
            return finish(&mut shell, code);
        }
    }
    if rest.len() > 1 {
        let code = if shell.errors > 0 { 1 } else { 0 };
        return finish(&mut shell, code);
    }
    if shell.ensure_open().is_none() {
        return 1;
    }
    let end = if shell.interactive {
        crate::editor::interact(&mut shell, terminal)
    } else {
        let mut lines = Script(BufReader::new(std::io::stdin()));
        input::process(&mut shell, &mut lines, false)
    };
    let code = match end {
        End::Exit(code) => code,
        End::Bail => 1,
        End::Input => (shell.errors > 0 && !shell.interactive) as i32,
    };
    finish(&mut shell, code)
}

fn finish(shell: &mut Shell, code: i32) -> i32 {
    let before = shell.errors;
    shell.set_output("stdout");
    shell.close();
    if shell.errors > before && code == 0 { 1 } else { code }
}

fn set(shell: &mut Shell, what: Do, value: &str) -> Option<i32> {
    match what {
        Do::Mode(m) => shell.style.set_mode(m),
        Do::Header(on) => shell.style.headers = Some(on),
        Do::Separator => shell.style.colsep = crate::command::unescape(value),
        Do::Newline => shell.style.rowsep = crate::command::unescape(value),
        Do::Nullvalue => shell.style.null = Some(value.into()),
        Do::Escape => match style::escape(value) {
            Ok(e) => shell.style.escape = e,
            Err(e) => {
                eprintln!("iolite: Error: {e}");
                return Some(1);
            }
        },
        Do::Bail => shell.bail = true,
        Do::Echo => shell.echo = true,
        Do::Stats => shell.stats = true,
        Do::Cmd => {
            let failed = run_argument(shell, value);
            return failed.filter(|_| shell.bail).or(failed.filter(|c| *c < 0).map(|_| 0));
        }
        _ => {}
    }
    None
}

/// Runs an argument: a command, or statements. `Some`: the program ends with this code.
fn run_argument(shell: &mut Shell, text: &str) -> Option<i32> {
    use crate::command::Flow;
    if text.starts_with('.') {
        return match crate::command::run(shell, text) {
            Flow::Next => None,
            Flow::Fail => Some(1),
            Flow::Exit(code) => Some(code),
            Flow::Quit => Some(0),
        };
    }
    shell.run_sql(text, Origin::Argument).err()
}

/// Reads the file of `-init`, or `~/.ioliterc`, or the one below XDG's folder for configuration.
fn read_init(shell: &mut Shell, given: Option<&str>) -> Option<i32> {
    let path = match given {
        Some(p) => p.into(),
        None => {
            let home = std::env::var_os("HOME").map(std::path::PathBuf::from)?;
            let config = std::env::var_os("XDG_CONFIG_HOME").map_or(home.join(".config"), Into::into);
            [config.join("iolite/ioliterc"), home.join(".ioliterc")].into_iter().find(|p| p.is_file())?
        }
    };
    match std::fs::File::open(&path) {
        Ok(f) => {
            if shell.interactive {
                eprintln!("-- Loading resources from {}", path.display());
            }
            match input::process(shell, &mut Script(BufReader::new(f)), false) {
                End::Exit(code) => Some(code),
                End::Bail => Some(1),
                End::Input => None,
            }
        }
        Err(_) if given.is_some() => {
            eprintln!("cannot open: \"{}\"", path.display());
            shell.bail.then_some(1)
        }
        Err(_) => None,
    }
}

fn usage() {
    println!("Usage: iolite [OPTIONS] [FILENAME [SQL...]]");
    println!("FILENAME is the name of an SQLite database. A new database is created");
    println!("if the file does not previously exist. Defaults to :memory:.");
    println!("OPTIONS include:");
    println!("   --                   treat no subsequent arguments as options");
    for (name, value, _, help) in OPTIONS {
        let left = if value.is_empty() { format!("-{name}") } else { format!("-{name} {value}") };
        println!("   {left:<20} {help}");
    }
    println!("New databases are put into WAL mode with synchronous=NORMAL at their first write,");
    println!("locks are waited for 5 seconds, the page cache holds 64 MB; -compat or -batch:");
    println!("as sqlite3. Existing databases keep their journal mode.");
}
