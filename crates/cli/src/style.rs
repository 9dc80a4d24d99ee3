//! How results look: the output mode and its settings.
//!
//! What always holds: everything about a mode (name, separators, quoting, one line of help) stands in its entry of
//! [`MODES`]. What the user set by `.headers`, `.nullvalue` survives a change of mode; separators do not.

/// An output mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Mode {
    Ascii,
    Box,
    C,
    Column,
    Count,
    Csv,
    Html,
    Insert,
    Jatom,
    Jobject,
    Json,
    Line,
    List,
    Markdown,
    Off,
    Psql,
    Qbox,
    Quote,
    Table,
    Tabs,
    Tcl,
}

/// How text values are quoted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Quoting {
    Off,
    Sql,
    Relaxed,
    Csv,
    Html,
    Tcl,
    Json,
}

/// What becomes of control characters in text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Escape {
    /// `^X`.
    Ascii,
    /// Unicode's control pictures.
    Symbol,
    /// They are left alone.
    Off,
}

/// How blobs are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum BlobStyle {
    Auto,
    Text,
    Sql,
    Hex,
    Size,
}

/// A mode's entry.
pub struct ModeEntry {
    /// The mode.
    pub mode: Mode,
    /// Its name.
    pub name: &'static str,
    /// Between columns.
    pub colsep: &'static str,
    /// Behind rows.
    pub rowsep: &'static str,
    /// How values are quoted.
    pub quoting: Quoting,
    /// NULL, unless the user says otherwise.
    pub null: &'static str,
    /// Whether column names are shown unless the user says otherwise.
    pub headers: bool,
    /// One line of help.
    pub help: &'static str,
}

macro_rules! modes {
    ($($mode:ident $name:literal $colsep:literal $rowsep:literal $quoting:ident $null:literal $headers:literal
        $help:literal;)*) => {
        /// All modes, in the order of their names.
        pub const MODES: &[ModeEntry] = &[$(ModeEntry {
            mode: Mode::$mode, name: $name, colsep: $colsep, rowsep: $rowsep, quoting: Quoting::$quoting,
            null: $null, headers: $headers, help: $help,
        }),*];
    };
}

modes! {
    Ascii "ascii" "\x1f" "\x1e" Off "" false "Columns/rows delimited by 0x1F and 0x1E";
    Box "box" "" "\n" Off "" true "Tables using unicode box-drawing characters";
    C "c" "," "\n" Tcl "NULL" false "Comma separated values with strings as in C";
    Column "column" "  " "\n" Off "" true "Output in columns.  (See .width)";
    Count "count" "" "\n" Off "" false "The number of rows only";
    Csv "csv" "," "\r\n" Csv "" false "Comma-separated values";
    Html "html" "" "\n" Html "" false "HTML <table> code";
    Insert "insert" "," "\n" Sql "NULL" false "SQL insert statements for TABLE";
    Jatom "jatom" "," "\n" Json "null" false "Comma separated JSON values";
    Jobject "jobject" "," "\n" Json "null" false "One JSON object per line";
    Json "json" "," "\n" Json "null" false "Results in a JSON array";
    Line "line" ": " "\n" Off "" true "One value per line";
    List "list" "|" "\n" Off "" false "Values delimited by \"|\"";
    Markdown "markdown" "|" "\n" Off "" true "Markdown table format";
    Off "off" "" "\n" Off "" false "No query output shown";
    Psql "psql" "|" "\n" Off "" true "Like table without an outer border";
    Qbox "qbox" "" "\n" Relaxed "NULL" true "box with values quoted where that tells something";
    Quote "quote" "," "\n" Sql "NULL" false "Escape answers as for SQL";
    Table "table" "|" "\n" Off "" true "ASCII-art table";
    Tabs "tabs" "\t" "\n" Csv "" false "Tab-separated values";
    Tcl "tcl" " " "\n" Tcl "" false "TCL list elements";
}

impl Mode {
    /// The mode's entry.
    pub fn entry(self) -> &'static ModeEntry {
        MODES.iter().find(|m| m.mode == self).unwrap_or(&MODES[0])
    }

    /// Whether rows are laid out in columns of equal width.
    pub fn is_tabular(self) -> bool {
        matches!(self, Mode::Box | Mode::Column | Mode::Markdown | Mode::Psql | Mode::Qbox | Mode::Table)
    }

    /// The mode with this name, or the first that begins so.
    pub fn named(name: &str) -> Option<Mode> {
        let name = match name {
            "lines" => "line",
            "columns" => "column",
            other => other,
        };
        let exact = MODES.iter().find(|m| m.name == name);
        // The modes that sqlite3 had before 3.52 come first among those that begin alike.
        let begins = |m: &&ModeEntry| !name.is_empty() && m.name.starts_with(name);
        let old = |m: &&ModeEntry| {
            !matches!(m.mode, Mode::C | Mode::Count | Mode::Jatom | Mode::Jobject | Mode::Off)
        };
        let found = exact.or_else(|| MODES.iter().filter(old).find(begins));
        found.or_else(|| MODES.iter().find(begins)).map(|m| m.mode)
    }
}

/// A mode and all that goes with it.
#[derive(Clone, Debug)]
pub struct Style {
    /// The mode.
    pub mode: Mode,
    /// Column names: shown or not, if the user said so.
    pub headers: Option<bool>,
    /// NULL, if the user said so.
    pub null: Option<String>,
    /// Between columns.
    pub colsep: String,
    /// Behind rows.
    pub rowsep: String,
    /// How text is quoted.
    pub quoting: Quoting,
    /// Control characters.
    pub escape: Escape,
    /// Blobs.
    pub blob: BlobStyle,
    /// Column widths; negative ones align to the right.
    pub widths: Vec<i32>,
    /// `L`, `C` or `R` for each column.
    pub align: String,
    /// No column is wider than this; 0: no bound.
    pub wrap: usize,
    /// Wrap between words.
    pub word_wrap: bool,
    /// The outer border of tables.
    pub border: bool,
    /// `insert`: the table's name.
    pub table: String,
    /// `insert`: rows are put into one statement up to this many bytes.
    pub multi_insert: usize,
    /// Longest value in characters; 0: no bound.
    pub char_limit: usize,
    /// Most lines of a value; 0: no bound.
    pub line_limit: usize,
    /// Longest column title; 0: no bound.
    pub title_limit: usize,
    /// Tables are squeezed into this many columns; `None`: no bound; `Some(0)`: the terminal's width.
    pub screen: Option<usize>,
}

impl Style {
    /// The plain style of scripts.
    pub fn batch() -> Style {
        let mut s = Style {
            mode: Mode::List,
            headers: None,
            null: None,
            colsep: String::new(),
            rowsep: String::new(),
            quoting: Quoting::Off,
            escape: Escape::Ascii,
            blob: BlobStyle::Auto,
            widths: Vec::new(),
            align: String::new(),
            wrap: 0,
            word_wrap: false,
            border: true,
            table: "table".into(),
            multi_insert: 3000,
            char_limit: 0,
            line_limit: 0,
            title_limit: 0,
            screen: None,
        };
        s.set_mode(Mode::List);
        s
    }

    /// The style for a person at a terminal.
    pub fn terminal() -> Style {
        let mut s = Style::batch();
        s.set_mode(Mode::Qbox);
        (s.line_limit, s.char_limit, s.title_limit) = (5, 300, 20);
        s.screen = Some(0);
        s
    }

    /// Changes the mode, and what goes with it.
    pub fn set_mode(&mut self, mode: Mode) {
        let e = mode.entry();
        self.mode = mode;
        self.colsep = e.colsep.into();
        self.rowsep = e.rowsep.into();
        self.quoting = e.quoting;
        self.border = mode != Mode::Psql;
    }

    /// Whether column names are shown.
    pub fn shows_headers(&self) -> bool {
        self.headers.unwrap_or(self.mode.entry().headers)
    }

    /// What NULL looks like.
    pub fn null_text(&self) -> &str {
        match &self.null {
            Some(n) => n,
            None if self.quoting == Quoting::Sql || self.quoting == Quoting::Relaxed => "NULL",
            None => self.mode.entry().null,
        }
    }
}

/// Reads the arguments of `.mode`. `Err` is a message for the user.
pub fn parse_mode(style: &mut Style, args: &[String]) -> Result<ModeRequest, String> {
    let mut request = ModeRequest::default();
    let mut i = 0;
    let mut named = false;
    while let Some(a) = args.get(i) {
        i += 1;
        let Some(option) = a.strip_prefix("--").or_else(|| a.strip_prefix('-')).filter(|o| !o.is_empty())
        else {
            match a.as_str() {
                "tty" => *style = Style::terminal(),
                "batch" => *style = Style::batch(),
                _ if named && style.mode == Mode::Insert => style.table = a.clone(),
                _ if named => return Err(format!("extra argument: \"{a}\"")),
                name => match Mode::named(name) {
                    Some(m) => style.set_mode(m),
                    None => {
                        let all: Vec<&str> = MODES.iter().map(|m| m.name).collect();
                        return Err(format!("mode should be one of: {}", all.join(" ")));
                    }
                },
            }
            named = true;
            continue;
        };
        let mut value = |what: &str| -> Result<String, String> {
            let v = args.get(i).cloned().ok_or_else(|| format!("missing argument of --{what}"));
            i += 1;
            v
        };
        let number = |s: &str| match s {
            "off" => Ok(0),
            _ => s.parse::<usize>().map_err(|_| format!("not a number: \"{s}\"")),
        };
        match option {
            "list" => request.list = true,
            "v" | "verbose" => request.verbose = true,
            "once" => request.once = true,
            "ww" => style.word_wrap = true,
            "noquote" => style.quoting = Quoting::Off,
            "reset" => {
                let mode = style.mode;
                *style = Style::batch();
                style.set_mode(mode);
            }
            "quote" => {
                let q = args.get(i).map(String::as_str).and_then(|v| match v {
                    "off" => Some(Quoting::Off),
                    "on" | "sql" => Some(Quoting::Sql),
                    "relaxed" => Some(Quoting::Relaxed),
                    "csv" => Some(Quoting::Csv),
                    "html" => Some(Quoting::Html),
                    "tcl" => Some(Quoting::Tcl),
                    "json" => Some(Quoting::Json),
                    _ => None,
                });
                i += q.is_some() as usize;
                style.quoting = q.unwrap_or(Quoting::Sql);
            }
            "align" => style.align = value(option)?.to_ascii_uppercase(),
            "blob" | "blob-quote" => {
                style.blob = match value(option)?.as_str() {
                    "auto" => BlobStyle::Auto,
                    "text" => BlobStyle::Text,
                    "sql" => BlobStyle::Sql,
                    "hex" => BlobStyle::Hex,
                    "size" => BlobStyle::Size,
                    other => return Err(format!("unknown blob style: \"{other}\"")),
                }
            }
            "border" => style.border = value(option)? != "off",
            "charlimit" => style.char_limit = number(&value(option)?)?,
            "linelimit" => style.line_limit = number(&value(option)?)?,
            "titlelimit" => style.title_limit = number(&value(option)?)?,
            "limits" => {
                let v = value(option)?;
                match v.as_str() {
                    "off" => (style.line_limit, style.char_limit, style.title_limit) = (0, 0, 0),
                    "on" => (style.line_limit, style.char_limit, style.title_limit) = (5, 300, 20),
                    list => {
                        let mut n = list.split(',');
                        style.line_limit = number(n.next().unwrap_or("0"))?;
                        style.char_limit = number(n.next().unwrap_or("0"))?;
                        if let Some(t) = n.next() {
                            style.title_limit = number(t)?;
                        }
                    }
                }
            }
            "colsep" => style.colsep = value(option)?,
            "rowsep" => style.rowsep = value(option)?,
            "escape" => style.escape = escape(&value(option)?)?,
            "multiinsert" => style.multi_insert = number(&value(option)?)?,
            "null" | "nullvalue" => style.null = Some(value(option)?),
            "screenwidth" | "sw" => {
                style.screen = match value(option)?.as_str() {
                    "auto" => Some(0),
                    "off" | "0" => None,
                    n => Some(number(n)?),
                }
            }
            "tablename" => style.table = value(option)?,
            "title" | "titles" => style.headers = Some(value(option)? != "off"),
            "width" | "widths" => {
                let list = value(option)?;
                let parts = list.split([',', ' ']).filter(|p| !p.is_empty());
                style.widths = parts.map(|p| p.parse().unwrap_or(0)).collect();
                if style.widths.iter().all(|w| *w == 0) {
                    style.widths.clear();
                }
            }
            "wordwrap" => style.word_wrap = value(option)? != "off",
            "wrap" => style.wrap = number(&value(option)?)?,
            _ => return Err(format!("unknown option \"{a}\"")),
        }
    }
    request.changed = named || i > 0 && !request.list && !request.verbose;
    Ok(request)
}

/// The name of a way to treat control characters.
pub fn escape(name: &str) -> Result<Escape, String> {
    match name {
        "ascii" | "on" => Ok(Escape::Ascii),
        "symbol" => Ok(Escape::Symbol),
        "off" => Ok(Escape::Off),
        _ => Err(format!("unknown control character escape mode \"{name}\" - choices: ascii symbol off")),
    }
}

/// What `.mode` asked for beside settings.
#[derive(Default)]
pub struct ModeRequest {
    /// Show all modes.
    pub list: bool,
    /// Show all settings.
    pub verbose: bool,
    /// For the next statement only.
    pub once: bool,
    /// Something was set.
    pub changed: bool,
}
