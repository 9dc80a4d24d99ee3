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
    /// Refuse a name on whose way a symbolic link is.
    pub nofollow: bool,
}

impl Default for OpenFlags {
    fn default() -> OpenFlags {
        OpenFlags {
            read_only: false,
            create: true,
            uri: true,
            memory: false,
            shared_cache: false,
            nofollow: false,
        }
    }
}

/// A file name taken apart.
pub(crate) struct Target {
    pub path: PathBuf,
    pub options: OpenOptions,
    /// The name of a database in memory that the process shares.
    pub shared: Option<Vec<u8>>,
    /// Where it lies.
    pub vfs: Arc<dyn Vfs>,
    /// Where databases lie that are attached to it, unless they say otherwise.
    pub others: Arc<dyn Vfs>,
}

impl Target {
    /// Opens it; a connection that shares caches takes the one that others have open.
    pub fn open(&self, sharing: Option<&Sharing>) -> Result<Btree> {
        let open = || match &self.shared {
            Some(name) => crate::memory::open_named(&self.vfs, name, &self.options),
            // Nothing will ever be in it.
            None if self.options.read_only && (self.options.memory || self.path.as_os_str().is_empty()) => {
                let options = OpenOptions { read_only: true, ..OpenOptions::default() };
                Ok(crate::memory::open_image(&self.vfs, Vec::new(), 0, &options, false)?.0)
            }
            None => Btree::open(self.vfs.clone(), &self.path, &self.options),
        };
        match (sharing, self.cache_name()?) {
            (Some(s), Some(name)) => s.caches.open(&name, &s.member, open),
            _ => open(),
        }
    }

    /// What names its cache among those that are shared, if it may be shared.
    pub fn cache_name(&self) -> Result<Option<Vec<u8>>> {
        if !self.options.shared_cache {
            return Ok(None);
        }
        match &self.shared {
            Some(name) => Ok(name.starts_with(b"cache:").then(|| name.clone())),
            None if self.options.memory || self.path.as_os_str().is_empty() => Ok(None),
            None => {
                let path = bytes_of(&self.vfs.full_path(&self.path)?);
                Ok(Some([b"file:", self.vfs.name().as_bytes(), b":", &*path].concat()))
            }
        }
    }
}

/// Caches that a connection shares with others, and its part in them.
pub(crate) struct Sharing {
    pub caches: Caches,
    pub member: Member,
}

/// The name of the VFS whose databases are in memory (module `memory`).
const MEMDB: &str = "memdb";

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

/// Reads a file name, which may be a URI. Unless that says otherwise, the file lies in `vfs`.
pub(crate) fn target(name: &[u8], flags: OpenFlags, vfs: &Arc<dyn Vfs>) -> Result<Target> {
    let mut options = OpenOptions {
        read_only: flags.read_only,
        create: flags.create,
        memory: flags.memory,
        shared_cache: flags.shared_cache,
        nofollow: flags.nofollow,
        ..OpenOptions::default()
    };
    let Some(rest) = name.strip_prefix(b"file:").filter(|_| flags.uri) else {
        if name == b":memory:" {
            options.memory = true;
        }
        return Ok(placed(name, options, vfs.clone(), None));
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
    let mut vfs = vfs.clone();
    let mut parameters = Vec::new();
    for (key, bytes) in parameters_of(query) {
        let value = String::from_utf8_lossy(&bytes);
        let on = matches!(&*value, "1" | "yes" | "true" | "on");
        match &key[..] {
            b"mode" => {
                // A connection that reads opens nothing for writing, one that creates nothing does not begin to; one
                // in memory may turn to a file.
                let allowed = match &*value {
                    "rw" => options.memory || !options.read_only,
                    "rwc" => options.memory || !options.read_only && options.create,
                    "ro" | "memory" => true,
                    _ => return Err(Error::sql(format!("no such access mode: {value}"))),
                };
                if !allowed {
                    return Err(Error::new(Code::Perm, format!("access mode not allowed: {value}")));
                }
                // Nobody has written to what is in memory before: it is for writing, whatever the flags say.
                options.read_only = value == "ro";
                options.create = value == "rwc";
                options.memory = value == "memory";
            }
            b"cache" => match &*value {
                "shared" => options.shared_cache = true,
                "private" => options.shared_cache = false,
                _ => return Err(Error::sql(format!("no such cache mode: {value}"))),
            },
            b"immutable" => options.immutable = on,
            b"nolock" => options.nolock = on,
            b"reserve" => options.reserved = value.parse().unwrap_or(0),
            b"vfs" => {
                vfs = iolite_os::vfs_named(Some(&value))
                    .ok_or_else(|| Error::sql(format!("no such vfs: {value}")))?;
            }
            _ => {}
        }
        parameters.push((key, bytes));
    }
    if path == b":memory:" {
        options.memory = true;
    }
    Ok(placed(&path, options, vfs, Some(&parameters)))
}

/// A database with this name in a VFS; `uri`: the parameters of the URI that names it.
fn placed(
    path: &[u8],
    mut options: OpenOptions,
    mut vfs: Arc<dyn Vfs>,
    uri: Option<&[(Vec<u8>, Vec<u8>)]>,
) -> Target {
    let (others, memdb) = (vfs.clone(), vfs.name() == MEMDB);
    if memdb {
        vfs = iolite_os::default_vfs();
    }
    // Who names a database in memory for others shares it; one without a name is its connection's own.
    let uri_name = options.memory && options.shared_cache && uri.is_some() && !path.is_empty();
    let shared = match (memdb, uri_name) {
        (true, _) if path.starts_with(b"/") => Some([b"memdb:", path].concat()),
        (false, true) => Some([b"cache:", path].concat()),
        _ => None,
    };
    options.memory |= memdb;
    if let Some(own) = vfs.for_database(uri.unwrap_or_default()).filter(|_| !options.memory) {
        vfs = own;
    }
    Target { path: path_of(path), options, shared, vfs, others }
}

/// The parameters of a URI's query, in order.
fn parameters_of(query: &[u8]) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    query.split(|b| *b == b'&').filter(|p| !p.is_empty()).map(|part| {
        let (key, value) = cut(part, b'=');
        (unescape(key), unescape(value))
    })
}

/// The parameters of a name that is a URI; none of other names.
pub fn uri_parameters(name: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let rest = name.strip_prefix(b"file:").unwrap_or_default();
    parameters_of(cut(cut(rest, b'#').0, b'?').1).collect()
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
