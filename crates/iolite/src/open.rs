//! Opening: flags and URI file names (documentation page `uri`).

use iolite_base::{Code, Error, Result};
use iolite_btree::{Btree, Caches, Member, OpenOptions};
use iolite_os::Vfs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How to open a database.
///
/// ```
/// # use iolite::{Code, Connection, OpenFlags};
/// let flags = OpenFlags { memory: true, ..OpenFlags::default() };
/// let db = Connection::open_with_flags("name", flags)?;
/// assert_eq!(db.path(), None);
/// # Ok::<(), iolite::Error>(())
/// ```
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
    /// A database in memory that is named by a URI is shared by all connections of the process that name it so. Databases
    /// in files are shared in any case, as files are. In the C library, connections that say so share one cache, too, and lock
    /// tables among each other (documentation page `sharedcache`).
    pub shared_cache: bool,
}

impl Default for OpenFlags {
    fn default() -> OpenFlags {
        OpenFlags { read_only: false, create: true, uri: true, memory: false, shared_cache: false }
    }
}

/// A file name taken apart.
pub(crate) struct Target {
    pub path: PathBuf,
    pub options: OpenOptions,
    /// The name of a database in memory that the process shares.
    pub shared: Option<Vec<u8>>,
}

impl Target {
    /// Opens it; a connection that shares caches takes the one that others have open.
    pub fn open(&self, vfs: &Arc<dyn Vfs>, sharing: Option<&Sharing>) -> Result<Btree> {
        let open = || match &self.shared {
            Some(name) => crate::memory::open_named(vfs, name, &self.options),
            None => Btree::open(vfs.clone(), &self.path, &self.options),
        };
        match (sharing, self.cache_name(vfs)?) {
            (Some(s), Some(name)) => s.caches.open(&name, &s.member, open),
            _ => open(),
        }
    }

    /// What names its cache among those that are shared, if it may be shared.
    pub fn cache_name(&self, vfs: &Arc<dyn Vfs>) -> Result<Option<Vec<u8>>> {
        if !self.options.shared_cache {
            return Ok(None);
        }
        match &self.shared {
            Some(name) => Ok(name.starts_with(b"cache:").then(|| name.clone())),
            None if self.options.memory || self.path.as_os_str().is_empty() => Ok(None),
            None => Ok(Some([b"file:", &*bytes_of(&vfs.full_path(&self.path)?)].concat())),
        }
    }
}

/// Caches that a connection shares with others, and its part in them.
pub(crate) struct Sharing {
    pub caches: Caches,
    pub member: Member,
}

/// A file name as the system has it: bytes, which need not be UTF-8.
#[cfg(unix)]
pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// A file name, which is text here.
#[cfg(not(unix))]
pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(&*String::from_utf8_lossy(bytes))
}

/// The bytes of a file name.
pub(crate) fn bytes_of(path: &Path) -> Vec<u8> {
    path.as_os_str().as_encoded_bytes().to_vec()
}

/// The full name of a database's file; empty where no file is behind it.
pub(crate) fn file_of(b: &Btree) -> Vec<u8> {
    if b.is_memory() || b.is_transient() { Vec::new() } else { bytes_of(&b.file_name()) }
}

/// Reads a file name, which may be a URI.
pub(crate) fn target(name: &[u8], flags: OpenFlags) -> Result<Target> {
    let mut options = OpenOptions {
        read_only: flags.read_only,
        create: flags.create,
        memory: flags.memory,
        shared_cache: flags.shared_cache,
        ..OpenOptions::default()
    };
    let Some(rest) = name.strip_prefix(b"file:").filter(|_| flags.uri) else {
        if name == b":memory:" {
            options.memory = true;
        }
        return Ok(Target { path: path_of(name), options, shared: None });
    };
    let rest = match rest.strip_prefix(b"//") {
        None => rest,
        Some(r) => {
            let (authority, path) = r.split_at(r.iter().position(|b| *b == b'/').unwrap_or(r.len()));
            if !authority.is_empty() && authority != b"localhost" {
                let authority = String::from_utf8_lossy(authority);
                return Err(Error::sql(format!("invalid uri authority: {authority}")));
            }
            path
        }
    };
    let (rest, _) = cut(rest, b'#');
    let (path, query) = cut(rest, b'?');
    let path = unescape(path);
    let mut memdb = false;
    for part in query.split(|b| *b == b'&').filter(|p| !p.is_empty()) {
        let (key, value) = cut(part, b'=');
        let (key, bytes) = (unescape(key), unescape(value));
        let value = String::from_utf8_lossy(&bytes);
        let on = matches!(&*value, "1" | "yes" | "true" | "on");
        match &*key {
            b"mode" => match &*value {
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
            b"cache" => match &*value {
                "shared" => options.shared_cache = true,
                "private" => options.shared_cache = false,
                _ => return Err(Error::sql(format!("no such cache mode: {value}"))),
            },
            b"immutable" => options.immutable = on,
            b"nolock" => options.nolock = on,
            b"reserve" => options.reserved = value.parse().unwrap_or(0),
            b"vfs" => match &*value {
                "unix" | "unix-excl" | "" => {}
                "memdb" => memdb = true,
                _ => return Err(Error::sql(format!("no such vfs: {value}"))),
            },
            _ => {}
        }
    }
    if path == b":memory:" {
        options.memory = true;
    }
    // Who names a database in memory for others shares it; one without a name is its connection's own.
    let shared = match (memdb, options.memory) {
        (true, _) if path.starts_with(b"/") => Some([b"memdb:", &*path].concat()),
        (false, true) if options.shared_cache && !path.is_empty() => Some([b"cache:", &*path].concat()),
        _ => None,
    };
    options.memory |= memdb;
    Ok(Target { path: path_of(&path), options, shared })
}

/// What stands before and behind the first `at`.
fn cut(text: &[u8], at: u8) -> (&[u8], &[u8]) {
    match text.iter().position(|b| *b == at) {
        Some(i) => (&text[..i], &text[i + 1..]),
        None => (text, b""),
    }
}

fn unescape(b: &[u8]) -> Vec<u8> {
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
    out
}
