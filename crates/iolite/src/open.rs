//! Opening: flags and URI file names (documentation page `uri`).

use iolite_base::{Code, Error, Result};
use iolite_btree::OpenOptions;

/// How to open a database.
#[derive(Clone, Copy, Debug)]
pub struct OpenFlags {
    /// Fail on writes.
    pub read_only: bool,
    /// Create the file if it is missing.
    pub create: bool,
    /// `file:` names are URIs.
    pub uri: bool,
    /// Keep everything in memory.
    pub memory: bool,
}

impl Default for OpenFlags {
    fn default() -> OpenFlags {
        OpenFlags { read_only: false, create: true, uri: true, memory: false }
    }
}

/// A file name taken apart.
pub(crate) struct Target {
    pub path: String,
    pub options: OpenOptions,
}

/// Reads a file name, which may be a URI.
pub(crate) fn target(name: &str, flags: OpenFlags) -> Result<Target> {
    let mut options = OpenOptions {
        read_only: flags.read_only,
        create: flags.create,
        memory: flags.memory,
        ..OpenOptions::default()
    };
    let Some(rest) = name.strip_prefix("file:").filter(|_| flags.uri) else {
        if name == ":memory:" {
            options.memory = true;
        }
        return Ok(Target { path: name.to_string(), options });
    };
    let rest = match rest.strip_prefix("//") {
        None => rest,
        Some(r) => {
            let (authority, path) = r.find('/').map_or((r, ""), |i| r.split_at(i));
            if !authority.is_empty() && authority != "localhost" {
                return Err(Error::sql(format!("invalid uri authority: {authority}")));
            }
            path
        }
    };
    let rest = rest.split('#').next().unwrap_or("");
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let path = unescape(path);
    for part in query.split('&').filter(|p| !p.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let (key, value) = (unescape(key), unescape(value));
        let on = matches!(value.as_str(), "1" | "yes" | "true" | "on");
        match key.as_str() {
            "mode" => match value.as_str() {
                "ro" => options.read_only = true,
                "rw" | "rwc" => {
                    if flags.read_only {
                        return Err(Error::new(Code::Perm, format!("access mode not allowed: {value}")));
                    }
                    options.create = value == "rwc";
                }
                "memory" => options.memory = true,
                _ => return Err(Error::sql(format!("no such access mode: {value}"))),
            },
            "cache" => match value.as_str() {
                "shared" => options.shared_cache = true,
                "private" => options.shared_cache = false,
                _ => return Err(Error::sql(format!("no such cache mode: {value}"))),
            },
            "immutable" => options.immutable = on,
            "nolock" => options.nolock = on,
            "reserve" => options.reserved = value.parse().unwrap_or(0),
            "vfs" if !matches!(value.as_str(), "unix" | "unix-excl" | "") => {
                return Err(Error::sql(format!("no such vfs: {value}")));
            }
            _ => {}
        }
    }
    if path == ":memory:" {
        options.memory = true;
    }
    Ok(Target { path, options })
}

fn unescape(s: &str) -> String {
    let b = s.as_bytes();
    let mut out = Vec::with_capacity(b.len());
    let mut i = 0;
    while i < b.len() {
        let hex = |c: u8| (c as char).to_digit(16).map(|d| d as u8);
        if b[i] == b'%'
            && let (Some(x), Some(y)) =
                (b.get(i + 1).copied().and_then(hex), b.get(i + 2).copied().and_then(hex))
        {
            let c = x << 4 | y;
            if c == 0 {
                break;
            }
            out.push(c);
            i += 3;
        } else {
            out.push(b[i]);
            i += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
