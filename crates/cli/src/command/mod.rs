//! The dot-commands: one table, from which dispatch, help and completion are made.

mod files;
pub mod functions;
mod schema;
mod settings;

use crate::shell::Shell;

/// What follows a command.
pub enum Flow {
    /// The next line.
    Next,
    /// It failed, and said so.
    Fail,
    /// The program ends with this code.
    Exit(i32),
    /// This input ends.
    Quit,
}

/// A command's entry.
pub struct Command {
    /// Its name without the dot.
    pub name: &'static str,
    /// Its arguments as help shows them.
    pub args: &'static str,
    /// One line of help; more lines are shown by `.help NAME`.
    pub help: &'static str,
    /// Its code. The first argument is the name as typed.
    run: fn(&mut Shell, &[String]) -> Flow,
}

macro_rules! commands {
    ($($name:literal $args:literal $help:literal $run:path;)*) => {
        /// All commands, in the order of their names. Where an abbreviation fits several, the first one counts.
        pub const COMMANDS: &[Command] = &[$(Command { name: $name, args: $args, help: $help, run: $run }),*];
    };
}

commands! {
    "backup" "?DB? FILE" "Backup DB (default \"main\") to FILE" files::backup;
    "bail" "on|off" "Stop after hitting an error.  Default OFF" settings::bail;
    "cd" "DIRECTORY" "Change the working directory to DIRECTORY" files::cd;
    "changes" "on|off" "Show number of rows changed by SQL" settings::changes;
    "databases" "" "List names and files of attached databases" schema::databases;
    "dbinfo" "?DB?" "Show status information about the database" schema::dbinfo;
    "dump" "?OBJECTS?" "Render database content as SQL\n   Options:\n     --data-only            Output only INSERT statements\n     --nosys                Omit system tables\n     --preserve-rowids      Include ROWID values in the output\n   OBJECTS is a LIKE pattern for tables" schema::dump;
    "echo" "on|off" "Turn command echo on or off" settings::echo;
    "eqp" "on|off|full" "Enable or disable automatic EXPLAIN QUERY PLAN" settings::eqp;
    "exit" "?CODE?" "Exit this program with return-code CODE" settings::exit;
    "explain" "?on|off|auto?" "Change the EXPLAIN formatting mode.  Default: auto" settings::explain;
    "fullschema" "" "Show schema and the content of sqlite_stat tables" schema::fullschema;
    "headers" "on|off" "Turn display of headers on or off" settings::headers;
    "help" "?-all? ?PATTERN?" "Show help text for PATTERN" settings::help;
    "import" "FILE TABLE" "Import data from FILE into TABLE\n   Options:\n     --ascii               Use \\037 and \\036 as column and row separators\n     --csv                 Use , and \\n as column and row separators\n     --skip N              Skip the first N rows of input\n     --schema S            Target table to be S.TABLE\n     -v                    \"Verbose\" - increase auxiliary output\n   Notes:\n     *  If TABLE does not exist, it is created.  The first row of input\n        determines the column names.\n     *  If neither --csv or --ascii are used, the input mode is derived\n        from the \".mode\" output mode\n     *  If FILE begins with \"|\" then it is a command that generates the\n        input text." crate::import::import;
    "indexes" "?TABLE?" "Show names of indexes" schema::indexes;
    "limit" "?LIMIT? ?VAL?" "Display or change the value of an SQLITE_LIMIT" settings::limit;
    "load" "FILE ?ENTRY?" "Load an extension library (not possible in this program)" files::load;
    "log" "FILE|on|off" "Turn logging on or off.  FILE can be stderr/stdout" files::log;
    "mode" "?MODE? ?OPTIONS?" "Set output mode" settings::mode;
    "nullvalue" "STRING" "Use STRING in place of NULL values" settings::nullvalue;
    "once" "?FILE?" "Output for the next SQL command only to FILE\n   If FILE begins with '|' then open it as a command to be piped into." files::once;
    "open" "?OPTIONS? ?FILE?" "Close existing database and reopen FILE\n   Options:\n     --new           Initialize FILE to an empty database\n     --readonly      Open FILE readonly\n     --ifexists      Only open if FILE already exists" files::open;
    "output" "?FILE?" "Send output to FILE or stdout if FILE is omitted\n   If FILE begins with '|' then open it as a command to be piped into.\n   \"off\" drops all output." files::output;
    "parameter" "CMD ..." "Manage SQL parameter bindings\n   clear                   Erase all bindings\n   init                    Does nothing; kept for sqlite3's sake\n   list                    List the current parameter bindings\n   set PARAMETER VALUE     Given SQL parameter PARAMETER a value of VALUE\n                           PARAMETER should start with one of: $ : @ ?\n   unset PARAMETER         Remove PARAMETER from the binding table" settings::parameter;
    "print" "STRING..." "Print literal STRING" settings::print;
    "prompt" "MAIN CONTINUE" "Replace the standard prompts" settings::prompt;
    "quit" "" "Stop interpreting input stream, exit if primary." settings::quit;
    "read" "FILE" "Read input from FILE or command output\n   If FILE begins with \"|\", it is a command that generates the input." files::read;
    "restore" "?DB? FILE" "Restore content of DB (default \"main\") from FILE" files::restore;
    "save" "?OPTIONS? FILE" "Write database to FILE (an alias for .backup ...)" files::backup;
    "schema" "?PATTERN?" "Show the CREATE statements matching PATTERN\n   Options:\n     --indent            Try to pretty-print the schema\n     --nosys             Omit objects whose names start with \"sqlite_\"" schema::schema;
    "separator" "COL ?ROW?" "Change the column and row separators" settings::separator;
    "shell" "CMD ARGS..." "Run CMD ARGS... in a system shell" files::system;
    "show" "" "Show the current values for various settings" settings::show;
    "stats" "?on|off?" "Show stats or turn stats on or off" settings::stats;
    "system" "CMD ARGS..." "Run CMD ARGS... in a system shell" files::system;
    "tables" "?TABLE?" "List names of tables matching LIKE pattern TABLE" schema::tables;
    "timeout" "MS" "Try opening locked tables for MS milliseconds" settings::timeout;
    "timer" "on|off" "Turn SQL timer on or off" settings::timer;
    "trace" "on|off" "Output each SQL statement as it is run" settings::trace;
    "version" "" "Show the versions" settings::version;
    "width" "NUM1 NUM2 ..." "Set minimum column widths for columnar output" settings::width;
}

/// Runs a line that begins with a dot.
pub fn run(shell: &mut Shell, line: &str) -> Flow {
    let words = split(&line[1..]);
    let Some(name) = words.first().filter(|n| !n.is_empty()) else { return Flow::Next };
    match find(name) {
        Some(c) => (c.run)(shell, &words),
        None => {
            let text =
                format!("Error: unknown command or invalid arguments:  \"{name}\". Enter \".help\" for help");
            shell.complain(&text);
            Flow::Fail
        }
    }
}

/// The command of this name, or the first that begins so.
pub fn find(name: &str) -> Option<&'static Command> {
    let name = match name {
        "indices" => "indexes",
        "e" | "ex" => "exit",
        "t" => "tables",
        "s" => "schema",
        other => other,
    };
    COMMANDS.iter().find(|c| c.name == name).or_else(|| COMMANDS.iter().find(|c| c.name.starts_with(name)))
}

/// Prints what a command takes.
fn usage(shell: &mut Shell, name: &str) -> Flow {
    if let Some(c) = find(name) {
        shell.complain(format!("Usage: .{} {}", c.name, c.args).trim_end());
    }
    Flow::Fail
}

fn fail(shell: &mut Shell, text: &str) -> Flow {
    shell.complain(text);
    Flow::Fail
}

/// Reads on or off.
fn truth(s: &str) -> bool {
    matches!(s.to_ascii_lowercase().as_str(), "on" | "yes" | "true" | "1")
        || s.parse::<i64>().is_ok_and(|n| n != 0)
}

/// Cuts a command line into words; `'...'` and `"..."` hold one word together, the latter with escapes.
pub fn split(line: &str) -> Vec<String> {
    let line = line.trim_end().trim_end_matches(';').trim_end();
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while let Some(c) = rest.chars().next() {
        let (word, tail) = match c {
            '\'' => {
                let end = rest[1..].find('\'').map_or(rest.len(), |i| i + 1);
                (rest[1..end].to_string(), rest.get(end + 1..).unwrap_or(""))
            }
            '"' => {
                let mut end = rest.len();
                let mut skip = false;
                for (i, c) in rest.char_indices().skip(1) {
                    if skip {
                        skip = false;
                    } else if c == '\\' {
                        skip = true;
                    } else if c == '"' {
                        end = i;
                        break;
                    }
                }
                (unescape(&rest[1..end]), rest.get(end + 1..).unwrap_or(""))
            }
            _ => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                (rest[..end].to_string(), &rest[end..])
            }
        };
        words.push(word);
        rest = tail.trim_start();
    }
    words
}

/// Replaces backslash escapes as in C.
pub fn unescape(s: &str) -> String {
    let mut out = String::with_capacity(s.len());
    let mut chars = s.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('a') => out.push('\x07'),
            Some('b') => out.push('\x08'),
            Some('t') => out.push('\t'),
            Some('n') => out.push('\n'),
            Some('v') => out.push('\x0b'),
            Some('f') => out.push('\x0c'),
            Some('r') => out.push('\r'),
            Some(d @ '0'..='7') => {
                let mut n = d as u32 - '0' as u32;
                for _ in 0..2 {
                    match chars.peek().and_then(|c| c.to_digit(8)) {
                        Some(d) => {
                            n = n * 8 + d;
                            chars.next();
                        }
                        None => break,
                    }
                }
                out.push(char::from_u32(n & 0xff).unwrap_or(' '));
            }
            Some(other) => out.push(other),
            None => out.push('\\'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        assert_eq!(split("mode  list ;"), ["mode", "list"]);
        assert_eq!(split(r#"print 'a b' "c\td" e"#), ["print", "a b", "c\td", "e"]);
        assert_eq!(split("print ''"), ["print", ""]);
    }

    #[test]
    fn names_are_sorted_and_found_by_their_beginnings() {
        assert!(COMMANDS.windows(2).all(|w| w[0].name < w[1].name));
        assert_eq!(find("q").unwrap().name, "quit");
        assert_eq!(find("t").unwrap().name, "tables");
        assert!(find("nosuch").is_none());
    }
}
