//! The sidecar: a file `<database>-col` that holds columns between processes. Its bytes, how they are written, and what
//! is believed of them.
//!
//! ```text
//! header 96 | block | block | ... | directory          header -> directory -> table -> dictionary, chunk
//! ```
//!
//! A sidecar is written as a whole under another name, `<database>-col.new`, synced, and then given its name: nobody ever
//! sees a part of it, and a crash at any point leaves the old file, or the new one, and perhaps a `.new` that the next
//! writer empties. Who writes holds an exclusive lock on the `.new` file (the byte-range lock of a database, which no
//! sidecar is); whoever finds it taken leaves the writing to the other. Readers lock nothing: a file that lost its name
//! stays theirs. No byte is written to a file that has its name.
//!
//! Each block is named by place, length and keyed 128-bit hash in the block that points to it, the header carries its
//! own; a block that does not agree is not there. So a file that is truncated, overwritten or swapped while open costs
//! work and no answer. A file whose first bytes are another program's, or a later version's, is not read; only an empty
//! one, or one that begins as a sidecar of some version does, is ever replaced or removed.
//!
//! What the pages of a table were when its block was written is told by a mark and a base (`pager::view`), good for one
//! run of the operating system; where these do not lead to the state that is read, each leaf is hashed and compared.
//! Integers are little-endian: pages, rows within a segment, fields 32 bits; places and lengths 64.

use crate::store::chunk::image::{Put, Reader};
use crate::store::decode::{ColKey, hash_page};
use iolite_base::{Code, Pgno, Result, alloc};
use iolite_btree::{Base, FileId, FileStamp, LogMark, Mark};
use iolite_os::{File, FileKind, LockLevel, OpenFlags, SyncKind, Vfs};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The first bytes of every version, then the version.
const MAGIC: &[u8; 14] = b"iolite columns";
const VERSION: u16 = 1;
/// Magic, version, key, directory (place, length, hash), and the hash of all that.
const HEADER: usize = 96;
const HEADER_HASHED: usize = 80;

/// An open sidecar.
pub(crate) struct SideFile {
    file: Mutex<Box<dyn File>>,
    size: u64,
    /// Of all hashes in it, those of pages included.
    pub key: u64,
    /// The system's run in which it was written.
    boot: Option<[u8; 16]>,
    /// The blocks of the tables, by root.
    pub tables: Vec<(Pgno, Extent)>,
}

/// A block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    at: u64,
    len: u64,
    hash: [u64; 2],
}

impl Extent {
    fn put(&self, out: &mut Vec<u8>) {
        out.u64(self.at);
        out.u64(self.len);
        out.u64(self.hash[0]);
        out.u64(self.hash[1]);
    }

    fn read(r: &mut Reader<'_>) -> Option<Extent> {
        Some(Extent { at: r.u64()?, len: r.u64()?, hash: [r.u64()?, r.u64()?] })
    }
}

/// A table as a sidecar has it.
pub(crate) struct StoredTable {
    pub page_size: u32,
    pub mark: Mark,
    /// `None`: nothing is known of the file by which it could be recognized.
    pub base: Option<Base>,
    pub interior: Vec<Pgno>,
    pub dicts: Vec<(ColKey, Extent)>,
    pub segments: Vec<StoredSegment>,
}

/// A segment as a sidecar has it.
pub(crate) struct StoredSegment {
    pub leaves: Vec<Pgno>,
    /// Where the rows of each leaf begin, and their number; empty: nothing is known of the rows.
    pub first: Vec<u32>,
    pub hashes: Vec<[u64; 2]>,
    /// Leaves that have changed since.
    pub stale: Vec<u32>,
    pub chunks: Vec<(ColKey, Extent)>,
}

/// The name of a database's sidecar.
pub(crate) fn side_path(db: &Path) -> PathBuf {
    let mut name = db.as_os_str().to_owned();
    name.push("-col");
    PathBuf::from(name)
}

/// What lies under a sidecar's name.
pub(crate) enum Found {
    Nothing,
    /// Something that may be replaced, and holds nothing of use.
    Empty,
    /// Something else: not to be touched.
    Foreign,
    Side(SideFile),
}

/// Looks for a sidecar.
pub(crate) fn open(vfs: &dyn Vfs, path: &Path) -> Found {
    let file = match vfs.open(Some(path), OpenFlags::read_only(FileKind::Derived)) {
        Ok(f) => f,
        Err(e) if e.code() == Code::Perm => return Found::Foreign,
        Err(_) => return Found::Nothing,
    };
    let (Ok(size), mut header) = (file.size(), [0u8; HEADER]) else { return Found::Foreign };
    if size == 0 {
        return Found::Empty;
    }
    match file.read(&mut header, 0) {
        Ok(_) if header.starts_with(MAGIC) => {}
        _ => return Found::Foreign,
    }
    SideFile::of(file, size, &header).map_or(Found::Empty, Found::Side)
}

impl SideFile {
    fn of(file: Box<dyn File>, size: u64, header: &[u8; HEADER]) -> Option<SideFile> {
        let mut r = Reader(&header[MAGIC.len()..]);
        let version = u16::from_le_bytes(r.bytes(2)?.try_into().ok()?);
        let key = r.u64()?;
        let directory = Extent::read(&mut r)?;
        // Reserved.
        r.bytes(HEADER_HASHED - MAGIC.len() - 2 - 8 - 32)?;
        let hash = [r.u64()?, r.u64()?];
        if version != VERSION || hash != hash_page(key, &header[..HEADER_HASHED]) {
            return None;
        }
        let mut side = SideFile { file: Mutex::new(file), size, key, boot: None, tables: Vec::new() };
        let bytes = side.read(&directory)?;
        let mut r = Reader(&bytes);
        let boot: [u8; 16] = r.bytes(16)?.try_into().ok()?;
        side.boot = (boot != [0; 16]).then_some(boot);
        for _ in 0..r.count(36)? {
            side.tables.push((r.u32()?, Extent::read(&mut r)?));
        }
        r.0.is_empty().then_some(side)
    }

    /// How long it is.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// A block's bytes, if they are those that were written.
    pub fn read(&self, e: &Extent) -> Option<Vec<u8>> {
        if e.at.checked_add(e.len)? > self.size {
            return None;
        }
        let mut bytes = alloc::zeroed(usize::try_from(e.len).ok()?).ok()?;
        let whole = self.file.lock().unwrap_or_else(PoisonError::into_inner).read(&mut bytes, e.at);
        (whole.ok()? && hash_page(self.key, &bytes) == e.hash).then_some(bytes)
    }

    /// What is stored of a table. The base is left out where it cannot hold.
    pub fn table(&self, root: Pgno, vfs: &dyn Vfs) -> Option<StoredTable> {
        let (_, e) = self.tables.iter().find(|t| t.0 == root)?;
        let mut t = StoredTable::read(&self.read(e)?)?;
        if self.boot.is_none() || vfs.boot() != self.boot {
            t.base = None;
        }
        Some(t)
    }
}

fn put_key(k: &ColKey, out: &mut Vec<u8>) {
    out.u32(k.field.map_or(u32::MAX, |f| f as u32));
    out.u8(k.real as u8);
    out.u64(k.default);
}

fn read_key(r: &mut Reader<'_>) -> Option<ColKey> {
    let field = match r.u32()? {
        u32::MAX => None,
        f => Some(f as usize),
    };
    let real = match r.u8()? {
        0 => false,
        1 => true,
        _ => return None,
    };
    Some(ColKey { field, real, default: r.u64()? })
}

fn put_pages(pages: &[Pgno], out: &mut Vec<u8>) {
    out.u32(pages.len() as u32);
    pages.iter().for_each(|p| out.u32(*p));
}

fn put_blocks(list: &[(ColKey, Extent)], out: &mut Vec<u8>) {
    out.u32(list.len() as u32);
    for (k, e) in list {
        put_key(k, out);
        e.put(out);
    }
}

fn read_blocks(r: &mut Reader<'_>) -> Option<Vec<(ColKey, Extent)>> {
    (0..r.count(45)?).map(|_| Some((read_key(r)?, Extent::read(r)?))).collect()
}

fn put_mark(m: &Mark, out: &mut Vec<u8>) {
    match m {
        Mark::Log(l) => {
            out.u8(1);
            out.extend_from_slice(&l.salt);
            [l.change, l.last, l.sum[0], l.sum[1]].into_iter().for_each(|v| out.u32(v));
        }
        Mark::Journal(b) => {
            out.u8(2);
            out.extend_from_slice(b);
        }
        Mark::File(b) => {
            out.u8(3);
            put_base(Some(b), out);
        }
        // Nobody else sees such a database.
        Mark::Private(..) => out.u8(0),
    }
}

fn read_mark(r: &mut Reader<'_>) -> Option<Mark> {
    Some(match r.u8()? {
        1 => Mark::Log(LogMark {
            salt: r.bytes(8)?.try_into().ok()?,
            change: r.u32()?,
            last: r.u32()?,
            sum: [r.u32()?, r.u32()?],
        }),
        2 => Mark::Journal(r.bytes(16)?.try_into().ok()?),
        3 => Mark::File(read_base(r)??),
        _ => return None,
    })
}

fn put_base(b: Option<&Base>, out: &mut Vec<u8>) {
    out.u8(b.is_some() as u8);
    if let Some(b) = b {
        let s = &b.stamp;
        [s.id.device, s.id.inode, s.size].into_iter().for_each(|v| out.u64(v));
        [s.modified, s.changed].into_iter().for_each(|v| out.u64(v as u64));
        out.extend_from_slice(&b.header);
        out.u8(b.whole as u8);
    }
}

fn read_base(r: &mut Reader<'_>) -> Option<Option<Base>> {
    if r.u8()? == 0 {
        return Some(None);
    }
    let id = FileId { device: r.u64()?, inode: r.u64()? };
    let stamp = FileStamp { id, size: r.u64()?, modified: r.u64()? as i64, changed: r.u64()? as i64 };
    let header = r.bytes(16)?.try_into().ok()?;
    Some(Some(Base { stamp, header, whole: r.u8()? == 1 }))
}

impl StoredTable {
    /// The table as bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.u32(self.page_size);
        put_mark(&self.mark, out);
        put_base(self.base.as_ref(), out);
        put_pages(&self.interior, out);
        put_blocks(&self.dicts, out);
        out.u32(self.segments.len() as u32);
        for s in &self.segments {
            put_pages(&s.leaves, out);
            out.u8(!s.first.is_empty() as u8);
            s.first.iter().for_each(|f| out.u32(*f));
            s.hashes.iter().flatten().for_each(|h| out.u64(*h));
            put_pages(&s.stale, out);
            put_blocks(&s.chunks, out);
        }
    }

    fn read(bytes: &[u8]) -> Option<StoredTable> {
        let mut r = Reader(bytes);
        let page_size = r.u32()?;
        let mark = read_mark(&mut r)?;
        let base = read_base(&mut r)?;
        let n = r.count(4)?;
        let interior = r.u32s(n)?;
        let dicts = read_blocks(&mut r)?;
        let mut segments = Vec::new();
        for _ in 0..r.count(13)? {
            let n = r.count(4)?;
            let leaves = r.u32s(n)?;
            let (mut first, mut hashes) = (Vec::new(), Vec::new());
            if r.u8()? == 1 {
                first = r.u32s(n + 1)?;
                let (pairs, _) = r.bytes(n.checked_mul(16)?)?.as_chunks::<16>();
                let half = |b: &[u8]| Some(u64::from_le_bytes(b.try_into().ok()?));
                hashes =
                    pairs.iter().map(|b| Some([half(&b[..8])?, half(&b[8..])?])).collect::<Option<_>>()?;
                // A page of 64 KB has fewer cells.
                let sound = first.first() == Some(&0)
                    && first.windows(2).all(|w| w[0] <= w[1] && w[1] - w[0] < 1 << 16);
                if !sound {
                    return None;
                }
            }
            let k = r.count(4)?;
            let stale = r.u32s(k)?;
            if n == 0 || !stale.is_sorted_by(|a, b| a < b) || stale.last().is_some_and(|l| *l as usize >= n) {
                return None;
            }
            let chunks = read_blocks(&mut r)?;
            segments.push(StoredSegment { leaves, first, hashes, stale, chunks });
        }
        r.0.is_empty().then_some(StoredTable { page_size, mark, base, interior, dicts, segments })
    }
}

/// A sidecar on its way.
pub(crate) struct Writer<'v> {
    vfs: &'v dyn Vfs,
    file: Box<dyn File>,
    new: PathBuf,
    path: PathBuf,
    key: u64,
    at: u64,
    buf: Vec<u8>,
    tables: Vec<(Pgno, Extent)>,
}

/// Bytes that are written at once.
const BUFFER: usize = 1 << 20;

impl<'v> Writer<'v> {
    /// Begins. `None`: somebody else is writing.
    pub fn begin(vfs: &'v dyn Vfs, path: &Path, key: u64) -> Result<Option<Writer<'v>>> {
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        let new = PathBuf::from(new);
        for _ in 0..10 {
            let file = vfs.open(Some(&new), OpenFlags::read_write(FileKind::Derived))?;
            match file.lock(LockLevel::Shared).and_then(|()| file.lock(LockLevel::Exclusive)) {
                Ok(()) => {}
                Err(e) if e.code().primary() == Code::Busy => return Ok(None),
                Err(e) => return Err(e),
            }
            // The one before may have finished while this one opened what is a sidecar now.
            if file.has_moved()? {
                continue;
            }
            file.truncate(0)?;
            let buf = Vec::new();
            let path = path.to_owned();
            return Ok(Some(Writer {
                vfs,
                file,
                new,
                path,
                key,
                at: HEADER as u64,
                buf,
                tables: Vec::new(),
            }));
        }
        Ok(None)
    }

    /// Adds a block.
    pub fn block(&mut self, bytes: &[u8]) -> Result<Extent> {
        let at = self.at + self.buf.len() as u64;
        alloc::reserve(&mut self.buf, bytes.len())?;
        self.buf.extend_from_slice(bytes);
        if self.buf.len() >= BUFFER {
            self.flush()?;
        }
        Ok(Extent { at, len: bytes.len() as u64, hash: hash_page(self.key, bytes) })
    }

    /// Adds a table.
    pub fn table(&mut self, root: Pgno, t: &StoredTable) -> Result<()> {
        let mut bytes = Vec::new();
        t.write(&mut bytes);
        let e = self.block(&bytes)?;
        self.tables.push((root, e));
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write(&self.buf, self.at)?;
        self.at += self.buf.len() as u64;
        self.buf.clear();
        Ok(())
    }

    /// Ends, and gives the file its name. Where that fails (a full disk), nothing is left.
    pub fn finish(mut self) -> Result<Arc<SideFile>> {
        let done = self.end();
        if done.is_err() {
            self.abandon();
        }
        done
    }

    fn end(&mut self) -> Result<Arc<SideFile>> {
        let boot = self.vfs.boot();
        let mut bytes = boot.unwrap_or([0; 16]).to_vec();
        bytes.u32(self.tables.len() as u32);
        for (root, e) in &self.tables {
            bytes.u32(*root);
            e.put(&mut bytes);
        }
        let directory = self.block(&bytes)?;
        self.flush()?;
        let mut header = MAGIC.to_vec();
        header.extend_from_slice(&VERSION.to_le_bytes());
        header.u64(self.key);
        directory.put(&mut header);
        header.resize(HEADER_HASHED, 0);
        let hash = hash_page(self.key, &header);
        header.u64(hash[0]);
        header.u64(hash[1]);
        self.file.write(&header, 0)?;
        self.file.sync(SyncKind::Data)?;
        let file = self.vfs.open(Some(&self.new), OpenFlags::read_only(FileKind::Derived))?;
        self.vfs.rename(&self.new, &self.path)?;
        let (size, key, tables) = (self.at, self.key, std::mem::take(&mut self.tables));
        Ok(Arc::new(SideFile { file: Mutex::new(file), size, key, boot, tables }))
    }

    /// Gives up: nothing is left.
    pub fn abandon(self) {
        let _ = self.file.truncate(0);
        let _ = self.vfs.delete(&self.new, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_comes_back_or_is_not_there() {
        let key = ColKey { field: Some(3), real: true, default: 7 };
        let e = Extent { at: 96, len: 5, hash: [1, 2] };
        let stamp = FileStamp { id: FileId { device: 1, inode: 2 }, size: 3, modified: -4, changed: 5 };
        let t = StoredTable {
            page_size: 4096,
            mark: Mark::Log(LogMark { salt: [9; 8], change: 1, last: 2, sum: [3, 4] }),
            base: Some(Base { stamp, header: [5; 16], whole: true }),
            interior: vec![2, 9],
            dicts: vec![(key, e)],
            segments: vec![StoredSegment {
                leaves: vec![3, 4],
                first: vec![0, 10, 12],
                hashes: vec![[1, 2], [3, 4]],
                stale: vec![1],
                chunks: vec![(key, e), (ColKey { field: None, real: false, default: 0 }, e)],
            }],
        };
        let mut b = Vec::new();
        t.write(&mut b);
        let mut again = Vec::new();
        StoredTable::read(&b).unwrap().write(&mut again);
        assert_eq!(b, again);
        for n in 0..b.len() {
            assert!(StoredTable::read(&b[..n]).is_none());
        }
        let mut x = 5u64;
        for _ in 0..20_000 {
            let mut c = b.clone();
            for _ in 0..3 {
                x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let at = (x >> 33) as usize % c.len();
                c[at] = (x >> 20) as u8;
            }
            // Whatever it says, it is in form.
            if let Some(t) = StoredTable::read(&c) {
                for s in t.segments {
                    assert!(s.first.is_empty() || s.first.len() == s.leaves.len() + 1);
                }
            }
        }
    }
}
