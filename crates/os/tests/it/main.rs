//! Each VFS against what the traits promise, and what only the unix one can get wrong.

use iolite_base::Code;
use iolite_os::*;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

fn scratch() -> PathBuf {
    static N: AtomicU32 = AtomicU32::new(0);
    let dir =
        std::env::temp_dir().join(format!("iolite-os-{}-{}", std::process::id(), N.fetch_add(1, Relaxed)));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn busy<T>(r: iolite_base::Result<T>) -> bool {
    matches!(r, Err(e) if e.code() == Code::Busy)
}

fn each(test: impl Fn(&dyn Vfs, &Path)) {
    let dir = scratch();
    test(&UnixVfs::new(), &dir.join("a.db"));
    test(&UnixVfs::with_process_locks(), &dir.join("b.db"));
    test(&MemoryVfs::new(), Path::new("a.db"));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn bytes_come_back_and_the_end_is_zero() {
    each(|vfs, path| {
        let f = vfs.open(Some(path), OpenFlags::read_write(FileKind::MainDb)).unwrap();
        f.write(b"hello", 10).unwrap();
        assert_eq!(f.size().unwrap(), 15);
        let mut b = [9; 8];
        assert!(!f.read(&mut b, 10).unwrap());
        assert_eq!(&b, b"hello\0\0\0");
        assert!(f.read(&mut b, 2).unwrap());
        f.truncate(12).unwrap();
        assert!(!f.read(&mut b, 10).unwrap());
        assert_eq!(&b, b"he\0\0\0\0\0\0");
        f.sync(SyncKind::Full).unwrap();
        assert!(vfs.access(path, Access::Exists).unwrap());
        f.truncate(0).unwrap();
        assert!(!vfs.access(path, Access::Exists).unwrap(), "an empty file counts as none");
        vfs.delete(path, true).unwrap();
        assert_eq!(vfs.delete(path, false).unwrap_err().code(), Code::IoerrDeleteNoent);
        let flags = OpenFlags::read_only(FileKind::MainDb);
        assert_eq!(vfs.open(Some(path), flags).err().unwrap().code(), Code::Cantopen);
    });
}

#[test]
fn locks_of_two_handles_conflict() {
    each(|vfs, path| {
        let open = || vfs.open(Some(path), OpenFlags::read_write(FileKind::MainDb)).unwrap();
        let (a, b, c) = (open(), open(), open());
        for f in [&a, &b] {
            f.lock(LockLevel::Shared).unwrap();
        }
        assert!(!a.check_reserved().unwrap());
        a.lock(LockLevel::Reserved).unwrap();
        assert!(b.check_reserved().unwrap());
        assert!(busy(b.lock(LockLevel::Reserved)));
        c.lock(LockLevel::Shared).unwrap();
        c.unlock(LockLevel::None).unwrap();
        // On the way to EXCLUSIVE, readers that are in stay, new ones do not come.
        assert!(busy(a.lock(LockLevel::Exclusive)));
        assert!(busy(c.lock(LockLevel::Shared)));
        b.unlock(LockLevel::None).unwrap();
        a.lock(LockLevel::Exclusive).unwrap();
        assert!(busy(b.lock(LockLevel::Shared)));
        a.unlock(LockLevel::Shared).unwrap();
        b.lock(LockLevel::Shared).unwrap();
        // Closing a handle gives up its own locks and nobody else's.
        drop(b);
        assert!(busy({
            c.lock(LockLevel::Shared).unwrap();
            c.lock(LockLevel::Exclusive)
        }));
        drop(a);
        c.lock(LockLevel::Exclusive).unwrap();
    });
}

#[test]
fn shared_memory_is_shared_and_its_locks_conflict() {
    each(|vfs, path| {
        let open = || vfs.open(Some(path), OpenFlags::read_write(FileKind::MainDb)).unwrap();
        let (a, b) = (open(), open());
        assert!(a.shm_map(0, 32768, false).unwrap().is_none());
        a.shm_lock(0, 1, ShmLock::Exclusive).unwrap();
        let ra = a.shm_map(1, 32768, true).unwrap().unwrap();
        let rb = b.shm_map(1, 32768, false).unwrap().unwrap();
        a.shm_lock(0, 1, ShmLock::UnlockExclusive).unwrap();
        ra.words()[3].store(77, Relaxed);
        assert_eq!(rb.words()[3].load(Relaxed), 77);
        a.shm_lock(3, 1, ShmLock::Shared).unwrap();
        b.shm_lock(3, 1, ShmLock::Shared).unwrap();
        assert!(busy(a.shm_lock(3, 1, ShmLock::Exclusive)));
        b.shm_lock(3, 1, ShmLock::UnlockShared).unwrap();
        a.shm_lock(0, 2, ShmLock::Exclusive).unwrap();
        assert!(busy(b.shm_lock(1, 3, ShmLock::Exclusive)));
        assert!(busy(b.shm_lock(1, 1, ShmLock::Shared)));
        a.shm_lock(0, 2, ShmLock::UnlockExclusive).unwrap();
        b.shm_lock(1, 1, ShmLock::Shared).unwrap();
        // Whoever comes when nobody was left finds it empty.
        a.shm_unmap(false).unwrap();
        b.shm_unmap(false).unwrap();
        drop((ra, rb));
        assert!(a.shm_map(0, 32768, false).unwrap().is_none());
        a.shm_lock(0, 1, ShmLock::Exclusive).unwrap();
        let again = a.shm_map(0, 32768, true).unwrap().unwrap();
        assert!(again.words().iter().all(|w| w.load(Relaxed) == 0));
        a.shm_unmap(true).unwrap();
    });
}

#[test]
fn a_forked_child_does_not_give_up_its_parents_locks() {
    let dir = scratch();
    let vfs = UnixVfs::new();
    let open = || vfs.open(Some(&dir.join("a.db")), OpenFlags::read_write(FileKind::MainDb)).unwrap();
    let (a, b) = (open(), open());
    a.lock(LockLevel::Shared).unwrap();
    a.lock(LockLevel::Reserved).unwrap();
    // SAFETY: the child only calls what is safe after a fork (no locks of the allocator are needed for what
    // it does: `unlock` and `_exit`).
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let _ = a.unlock(LockLevel::None);
        let refused = a.lock(LockLevel::Exclusive).is_err();
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(if refused { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: waits for our own child.
    unsafe { libc::waitpid(pid, &mut status, 0) };
    assert_eq!(status, 0);
    b.lock(LockLevel::Shared).unwrap();
    assert!(busy(b.lock(LockLevel::Reserved)), "the parent still holds it");
    drop((a, b));
    std::fs::remove_dir_all(dir).unwrap();
}

/// What a cache of 200 MB held goes back to the system, wherever other memory lies meanwhile.
#[test]
#[cfg(target_os = "linux")]
fn memory_of_pages_goes_back() {
    let vfs = UnixVfs::new();
    drop(vfs.open(None, OpenFlags::read_write(FileKind::Temp)).unwrap());
    let resident = || {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    };
    // From now on an allocator may keep blocks of this size.
    drop(std::hint::black_box(vec![1u8; 30 << 20]));
    let before = resident();
    let mut between: Vec<Vec<u8>> = Vec::new();
    for _ in 0..3 {
        let pages: Vec<_> = (0..50_000)
            .map(|i| {
                if i % 500 == 499 {
                    between.push(vec![1; 60_000]);
                }
                // There is none for the moment in which another test forks.
                let page = std::iter::repeat_with(|| iolite_base::slab::take(4096)).find_map(|p| p).unwrap();
                // SAFETY: a page of this size, nobody else's.
                unsafe { page.as_ptr().write_bytes(1, 4096) };
                page
            })
            .collect();
        assert!(resident() > before + (150 << 20));
        // SAFETY: from `take`, of this size, and not used any more.
        pages.into_iter().for_each(|page| unsafe { iolite_base::slab::give(page, 4096) });
    }
    assert!(resident() < before + (50 << 20), "{} of {}", resident() >> 20, before >> 20);
}

#[test]
fn temporary_files_have_no_name() {
    let vfs = UnixVfs::new();
    let f = vfs.open(None, OpenFlags::read_write(FileKind::Temp)).unwrap();
    f.write(&[1; 100], 0).unwrap();
    assert_eq!(f.size().unwrap(), 100);
    use std::os::unix::fs::MetadataExt;
    let inode = f.identity().unwrap().inode;
    for dir in ["/var/tmp", "/tmp"] {
        for e in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            assert!(e.metadata().map_or(0, |m| m.ino()) != inode);
        }
    }
}

#[test]
fn names_are_made_absolute_and_links_resolved() {
    let dir = scratch().canonicalize().unwrap();
    let vfs = UnixVfs::new();
    std::fs::write(dir.join("real"), b"x").unwrap();
    std::os::unix::fs::symlink(dir.join("real"), dir.join("link")).unwrap();
    assert_eq!(vfs.full_path(&dir.join("link")).unwrap(), dir.join("real"));
    assert_eq!(vfs.full_path(&dir.join("new")).unwrap(), dir.join("new"));
    assert!(vfs.full_path(Path::new("relative")).unwrap().is_absolute());
    let f = vfs.open(Some(&dir.join("real")), OpenFlags::read_write(FileKind::MainDb)).unwrap();
    assert!(!f.has_moved().unwrap());
    std::fs::rename(dir.join("real"), dir.join("elsewhere")).unwrap();
    assert!(f.has_moved().unwrap());
    let err = vfs.open(Some(&dir), OpenFlags::read_write(FileKind::MainDb)).err().unwrap();
    assert_eq!(err.code(), Code::Cantopen);
    std::fs::remove_dir_all(dir).unwrap();
}

/// A waiting writer finds the moment without readers, however eager those are who come meanwhile.
#[test]
fn readers_that_try_again_at_once_are_not_in_a_writers_way() {
    use std::sync::atomic::AtomicBool;
    let dir = scratch();
    let path = dir.join("a.db");
    let open = || UnixVfs::new().open(Some(&path), OpenFlags::read_write(FileKind::MainDb)).unwrap();
    let (writer, reader) = (open(), open());
    let (turned_away, over) = (AtomicU32::new(0), AtomicBool::new(false));
    let mut stood_in_the_way = 0;
    std::thread::scope(|s| {
        s.spawn(|| {
            let eager = open();
            while !over.load(Relaxed) {
                match eager.lock(LockLevel::Shared) {
                    Ok(()) => eager.unlock(LockLevel::None).unwrap(),
                    Err(_) => drop(turned_away.fetch_add(1, Relaxed)),
                }
            }
        });
        for _ in 0..200 {
            reader.lock(LockLevel::Shared).unwrap();
            writer.lock(LockLevel::Shared).unwrap();
            writer.lock(LockLevel::Reserved).unwrap();
            // One reader is there; the other one has been told by now that somebody waits.
            let before = turned_away.load(Relaxed);
            while turned_away.load(Relaxed) < before + 2 {
                stood_in_the_way += !busy(writer.lock(LockLevel::Exclusive)) as u32;
            }
            reader.unlock(LockLevel::None).unwrap();
            stood_in_the_way += writer.lock(LockLevel::Exclusive).is_err() as u32;
            writer.unlock(LockLevel::None).unwrap();
        }
        over.store(true, Relaxed);
    });
    assert_eq!(stood_in_the_way, 0);
    std::fs::remove_dir_all(dir).unwrap();
}
