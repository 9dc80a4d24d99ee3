//! Commands that change or show the shell's settings.

use super::{COMMANDS, Flow, fail, find, truth, usage};
use crate::print::literal;
use crate::shell::{Eqp, Shell};
use crate::style::{MODES, Mode, Style, parse_mode};
use iolite::engine::{Limit, Value};

fn switch(shell: &mut Shell, args: &[String], set: fn(&mut Shell, bool)) -> Flow {
    match args {
        [_, v] => {
            set(shell, truth(v));
            Flow::Next
        }
        _ => usage(shell, &args[0]),
    }
}

pub(super) fn bail(s: &mut Shell, a: &[String]) -> Flow {
    switch(s, a, |s, on| s.bail = on)
}

pub(super) fn changes(s: &mut Shell, a: &[String]) -> Flow {
    switch(s, a, |s, on| s.changes = on)
}

pub(super) fn echo(s: &mut Shell, a: &[String]) -> Flow {
    switch(s, a, |s, on| s.echo = on)
}

pub(super) fn headers(s: &mut Shell, a: &[String]) -> Flow {
    switch(s, a, |s, on| s.style.headers = Some(on))
}

pub(super) fn timer(s: &mut Shell, a: &[String]) -> Flow {
    switch(s, a, |s, on| s.timer = on)
}

pub(super) fn trace(s: &mut Shell, a: &[String]) -> Flow {
    switch(s, a, |s, on| s.trace = on)
}

pub(super) fn stats(s: &mut Shell, a: &[String]) -> Flow {
    if a.len() > 1 {
        return switch(s, a, |s, on| s.stats = on);
    }
    let used = iolite_base::alloc::used();
    let line = format!("Memory Used: {used} (max {}) bytes", iolite_base::alloc::highwater(false));
    s.say(&line);
    Flow::Next
}

pub(super) fn eqp(s: &mut Shell, a: &[String]) -> Flow {
    match a {
        [_, v] => {
            s.eqp = match v.as_str() {
                "full" => Eqp::Full,
                v if truth(v) => Eqp::On,
                _ => Eqp::Off,
            };
            Flow::Next
        }
        _ => usage(s, "eqp"),
    }
}

pub(super) fn explain(s: &mut Shell, a: &[String]) -> Flow {
    s.explain = a.get(1).is_none_or(|v| v == "auto" || truth(v));
    Flow::Next
}

pub(super) fn exit(_: &mut Shell, a: &[String]) -> Flow {
    Flow::Exit(a.get(1).and_then(|c| c.parse().ok()).unwrap_or(0))
}

pub(super) fn quit(s: &mut Shell, _: &[String]) -> Flow {
    // Out of a script that `.read` reads, to its caller.
    if s.depth > 0 { Flow::Quit } else { Flow::Exit(0) }
}

pub(super) fn mode(s: &mut Shell, a: &[String]) -> Flow {
    let mut style = s.style.clone();
    let request = match parse_mode(&mut style, &a[1..]) {
        Ok(r) => r,
        Err(e) => return fail(s, &format!("Error: {e}")),
    };
    if request.list {
        let names: Vec<&str> = MODES.iter().map(|m| m.name).collect();
        s.say(&format!("available modes: {} batch tty", names.join(" ")));
    }
    if request.changed {
        let old = std::mem::replace(&mut s.style, style);
        if request.once {
            s.style_after.get_or_insert(old);
        }
    }
    if request.verbose {
        let text = describe(&s.style);
        s.say(&text);
    } else if !request.changed && !request.list {
        let text = format!("current output mode: {}", s.style.mode.entry().name);
        s.say(&text);
    }
    Flow::Next
}

fn describe(s: &Style) -> String {
    let on = |b: bool| if b { "on" } else { "off" };
    let widths: Vec<String> = s.widths.iter().map(i32::to_string).collect();
    format!(
        ".mode {} --align {:?} --border {} --charlimit {} --colsep {:?} --linelimit {} --multiinsert {} \
         --null {:?} --rowsep {:?} --sw {} --tablename {:?} --titlelimit {} --titles {} --widths {:?} \
         --wordwrap {} --wrap {}",
        s.mode.entry().name,
        s.align,
        on(s.border),
        s.char_limit,
        s.colsep,
        s.line_limit,
        s.multi_insert,
        s.null_text(),
        s.rowsep,
        s.screen.map_or("off".into(), |n| if n == 0 { "auto".to_string() } else { n.to_string() }),
        s.table,
        s.title_limit,
        on(s.shows_headers()),
        widths.join(","),
        on(s.word_wrap),
        s.wrap
    )
}

pub(super) fn nullvalue(s: &mut Shell, a: &[String]) -> Flow {
    match a {
        [_, v] => {
            s.style.null = Some(v.clone());
            Flow::Next
        }
        _ => usage(s, "nullvalue"),
    }
}

pub(super) fn separator(s: &mut Shell, a: &[String]) -> Flow {
    match a {
        [_, col] => s.style.colsep = super::unescape(col),
        [_, col, row] => {
            s.style.colsep = super::unescape(col);
            s.style.rowsep = super::unescape(row);
        }
        _ => return usage(s, "separator"),
    }
    Flow::Next
}

pub(super) fn width(s: &mut Shell, a: &[String]) -> Flow {
    s.style.widths = a[1..].iter().map(|w| w.parse().unwrap_or(0)).collect();
    Flow::Next
}

pub(super) fn print(s: &mut Shell, a: &[String]) -> Flow {
    s.say(&a[1..].join(" "));
    Flow::Next
}

pub(super) fn prompt(s: &mut Shell, a: &[String]) -> Flow {
    if let Some(p) = a.get(1) {
        s.prompt.0 = p.clone();
    }
    if let Some(p) = a.get(2) {
        s.prompt.1 = p.clone();
    }
    Flow::Next
}

pub(super) fn timeout(s: &mut Shell, a: &[String]) -> Flow {
    let ms = a.get(1).and_then(|v| v.parse().ok()).unwrap_or(0);
    s.timeout = Some(ms);
    if let Some(c) = s.conn_if_open()
        && let Err(e) = c.busy_timeout(ms)
    {
        return fail(s, &format!("Error: {}", e.message()));
    }
    Flow::Next
}

pub(super) fn version(s: &mut Shell, _: &[String]) -> Flow {
    s.say(&format!("iolite {}", iolite::IOLITE_VERSION));
    s.say(&format!("behaves as SQLite {}", iolite::SQLITE_VERSION));
    Flow::Next
}

pub(super) fn show(s: &mut Shell, _: &[String]) -> Flow {
    let on = |b: bool| if b { "on" } else { "off" }.to_string();
    let eqp = match s.eqp {
        Eqp::Off => "off",
        Eqp::On => "on",
        Eqp::Full => "full",
    };
    let st = &s.style;
    let mut mode = st.mode.entry().name.to_string();
    if st.mode.is_tabular() {
        let quote = if st.mode == Mode::Qbox { "--quote relaxed" } else { "--noquote" };
        mode.push_str(&format!(" --wrap {} --wordwrap {} {quote}", st.wrap, on(st.word_wrap)));
    }
    let widths: Vec<String> = st.widths.iter().map(|w| format!("{w} ")).collect();
    let defaults = if s.compat {
        "as sqlite3 (-compat)"
    } else {
        "new files: WAL, synchronous NORMAL; locks are waited for 5 s; cache 64 MB"
    };
    let rows = [
        ("echo", on(s.echo)),
        ("eqp", eqp.to_string()),
        ("explain", if s.explain { "auto".into() } else { "off".into() }),
        ("headers", on(st.shows_headers())),
        ("mode", mode),
        ("nullvalue", format!("{:?}", st.null_text())),
        ("output", s.out_name.clone()),
        ("colseparator", format!("{:?}", st.colsep)),
        ("rowseparator", format!("{:?}", st.rowsep)),
        ("stats", on(s.stats)),
        ("width", widths.concat()),
        ("filename", if s.file.is_empty() { ":memory:".into() } else { s.file.clone() }),
        ("defaults", defaults.to_string()),
    ];
    for (name, value) in rows {
        s.say(&format!("{name:>12}: {value}"));
    }
    Flow::Next
}

const LIMITS: &[(&str, Limit)] = &[
    ("length", Limit::Length),
    ("sql_length", Limit::SqlLength),
    ("column", Limit::Column),
    ("expr_depth", Limit::ExprDepth),
    ("compound_select", Limit::CompoundSelect),
    ("vdbe_op", Limit::VdbeOp),
    ("function_arg", Limit::FunctionArg),
    ("attached", Limit::Attached),
    ("like_pattern_length", Limit::LikePatternLength),
    ("variable_number", Limit::VariableNumber),
    ("trigger_depth", Limit::TriggerDepth),
    ("worker_threads", Limit::WorkerThreads),
];

pub(super) fn limit(s: &mut Shell, a: &[String]) -> Flow {
    let Some(c) = s.ensure_open() else { return Flow::Fail };
    let wanted: Vec<_> = match a.get(1) {
        None => LIMITS.iter().collect(),
        Some(name) => LIMITS.iter().filter(|l| l.0.starts_with(name.to_ascii_lowercase().as_str())).collect(),
    };
    match (wanted.as_slice(), a.get(2)) {
        ([], _) => {
            let text =
                format!("unknown limit: \"{}\"\nenter \".limits\" with no arguments for a list.", a[1]);
            return fail(s, &text);
        }
        ([one], Some(v)) => {
            c.limit(one.1, v.parse().ok());
        }
        (_, Some(_)) => return fail(s, &format!("ambiguous limit: \"{}\"", a[1])),
        _ => {}
    }
    for (name, which) in wanted {
        let value = c.limit(*which, None);
        s.say(&format!("{name:>20} {value}"));
    }
    Flow::Next
}

pub(super) fn parameter(s: &mut Shell, a: &[String]) -> Flow {
    match (a.get(1).map(String::as_str), &a[2.min(a.len())..]) {
        (Some("init"), []) => {}
        (Some("clear"), []) => s.parameters.clear(),
        (Some("list"), []) => {
            let widest = s.parameters.iter().map(|p| p.0.len()).max().unwrap_or(0);
            for (name, v) in s.parameters.clone() {
                s.say(&format!("{name:<widest$} {}", String::from_utf8_lossy(&literal(&v))));
            }
        }
        (Some("set"), [name, value]) => {
            let Some(c) = s.ensure_open() else { return Flow::Fail };
            // The value is an expression; what is none is taken as text.
            let rows = c.query(&format!("SELECT {value}"), &[]);
            let found = rows.ok().and_then(|r| r.into_iter().next()).and_then(|r| r.into_iter().next());
            let v = found.or_else(|| Value::text(value).ok()).unwrap_or_default();
            s.parameters.retain(|p| p.0 != *name);
            s.parameters.push((name.clone(), v));
            s.parameters.sort_by(|a, b| a.0.cmp(&b.0));
        }
        (Some("unset"), [name]) => s.parameters.retain(|p| p.0 != *name),
        _ => return help_on(s, "parameter"),
    }
    Flow::Next
}

pub(super) fn help(s: &mut Shell, a: &[String]) -> Flow {
    let all = a.iter().skip(1).any(|x| x.trim_start_matches('-') == "all");
    let pattern = a.iter().skip(1).find(|x| !x.starts_with('-')).map(|p| p.trim_start_matches('.'));
    let Some(pattern) = pattern else {
        for c in COMMANDS {
            let text = if all { c.help } else { c.help.lines().next().unwrap_or("") };
            s.say(&format!(".{:<24}{text}", format!("{} {}", c.name, c.args)));
        }
        if !s.compat {
            s.say("New databases: WAL and synchronous=NORMAL from their first write on; locks are");
            s.say("waited for 5 seconds; 64 MB of page cache.  Start with -compat for sqlite3's.");
        }
        return Flow::Next;
    };
    if let Some(c) = find(pattern) {
        return help_on(s, c.name);
    }
    let mut any = false;
    for c in COMMANDS.iter().filter(|c| c.help.contains(pattern)) {
        help_on(s, c.name);
        any = true;
    }
    if !any {
        s.say(&format!("Nothing matches '{pattern}'"));
    }
    Flow::Next
}

fn help_on(s: &mut Shell, name: &str) -> Flow {
    if let Some(c) = find(name) {
        s.say(&format!(".{:<24}{}", format!("{} {}", c.name, c.args), c.help));
        if c.name == "mode" {
            s.say("   MODE is one of:");
            for m in MODES {
                s.say(&format!("     {:<12}{}", m.name, m.help));
            }
            s.say("   Options: --align LCR --blob auto|text|sql|hex|size --border on|off --charlimit N");
            s.say("     --colsep S --escape ascii|symbol|off --limits L,C,T --linelimit N --list");
            s.say("     --multiinsert N --null S --once --quote off|sql|relaxed|csv|html|tcl|json --reset");
            s.say("     --rowsep S --sw N|auto|off --tablename T --titlelimit N --titles on|off -v");
            s.say("     --widths LIST --wordwrap on|off --wrap N --ww");
        }
    }
    Flow::Next
}
