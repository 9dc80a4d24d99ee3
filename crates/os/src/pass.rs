//! Methods of files and file systems that lie over others: what they do not change is passed on.
//!
//! A file system that counts calls, lets them fail or records them changes a few methods of [`File`](crate::File) and
//! [`Vfs`](crate::Vfs); the others go to the field `inner`. What has a default in the trait and is not named keeps it.

/// Methods that call the same method of `self.inner`, by name: `pass_to_inner!(size sector_size);` within an `impl`.
#[macro_export]
macro_rules! pass_to_inner {
    () => {};
    (read $($more:ident)*) => {
        fn read(&self, buf: &mut [u8], offset: u64) -> iolite_base::Result<bool> {
            self.inner.read(buf, offset)
        }
        $crate::pass_to_inner!($($more)*);
    };
    (write $($more:ident)*) => {
        fn write(&self, buf: &[u8], offset: u64) -> iolite_base::Result<()> {
            self.inner.write(buf, offset)
        }
        $crate::pass_to_inner!($($more)*);
    };
    (truncate $($more:ident)*) => {
        fn truncate(&self, size: u64) -> iolite_base::Result<()> {
            self.inner.truncate(size)
        }
        $crate::pass_to_inner!($($more)*);
    };
    (sync $($more:ident)*) => {
        fn sync(&self, kind: $crate::SyncKind) -> iolite_base::Result<()> {
            self.inner.sync(kind)
        }
        $crate::pass_to_inner!($($more)*);
    };
    (size $($more:ident)*) => {
        fn size(&self) -> iolite_base::Result<u64> {
            self.inner.size()
        }
        $crate::pass_to_inner!($($more)*);
    };
    (lock $($more:ident)*) => {
        fn lock(&self, level: $crate::LockLevel) -> iolite_base::Result<()> {
            self.inner.lock(level)
        }
        $crate::pass_to_inner!($($more)*);
    };
    (unlock $($more:ident)*) => {
        fn unlock(&self, level: $crate::LockLevel) -> iolite_base::Result<()> {
            self.inner.unlock(level)
        }
        $crate::pass_to_inner!($($more)*);
    };
    (check_reserved $($more:ident)*) => {
        fn check_reserved(&self) -> iolite_base::Result<bool> {
            self.inner.check_reserved()
        }
        $crate::pass_to_inner!($($more)*);
    };
    (has_moved $($more:ident)*) => {
        fn has_moved(&self) -> iolite_base::Result<bool> {
            self.inner.has_moved()
        }
        $crate::pass_to_inner!($($more)*);
    };
    (shm_map $($more:ident)*) => {
        fn shm_map(&self, index: usize, size: usize, extend: bool) -> iolite_base::Result<Option<$crate::ShmRegion>> {
            self.inner.shm_map(index, size, extend)
        }
        $crate::pass_to_inner!($($more)*);
    };
    (shm_lock $($more:ident)*) => {
        fn shm_lock(&self, first: u8, n: u8, how: $crate::ShmLock) -> iolite_base::Result<()> {
            self.inner.shm_lock(first, n, how)
        }
        $crate::pass_to_inner!($($more)*);
    };
    (shm_unmap $($more:ident)*) => {
        fn shm_unmap(&self, delete: bool) -> iolite_base::Result<()> {
            self.inner.shm_unmap(delete)
        }
        $crate::pass_to_inner!($($more)*);
    };
    (delete $($more:ident)*) => {
        fn delete(&self, path: &std::path::Path, sync_dir: bool) -> iolite_base::Result<()> {
            self.inner.delete(path, sync_dir)
        }
        $crate::pass_to_inner!($($more)*);
    };
    (access $($more:ident)*) => {
        fn access(&self, path: &std::path::Path, what: $crate::Access) -> iolite_base::Result<bool> {
            self.inner.access(path, what)
        }
        $crate::pass_to_inner!($($more)*);
    };
    (full_path $($more:ident)*) => {
        fn full_path(&self, path: &std::path::Path) -> iolite_base::Result<std::path::PathBuf> {
            self.inner.full_path(path)
        }
        $crate::pass_to_inner!($($more)*);
    };
    (sector_size $($more:ident)*) => {
        fn sector_size(&self) -> u32 {
            self.inner.sector_size()
        }
        $crate::pass_to_inner!($($more)*);
    };
    (characteristics $($more:ident)*) => {
        fn characteristics(&self) -> $crate::Characteristics {
            self.inner.characteristics()
        }
        $crate::pass_to_inner!($($more)*);
    };
    (is_read_only $($more:ident)*) => {
        fn is_read_only(&self) -> bool {
            self.inner.is_read_only()
        }
        $crate::pass_to_inner!($($more)*);
    };
    (identity $($more:ident)*) => {
        fn identity(&self) -> Option<$crate::FileId> {
            self.inner.identity()
        }
        $crate::pass_to_inner!($($more)*);
    };
    (shm_barrier $($more:ident)*) => {
        fn shm_barrier(&self) -> () {
            self.inner.shm_barrier()
        }
        $crate::pass_to_inner!($($more)*);
    };
    (shm_release $($more:ident)*) => {
        fn shm_release(&self) -> Option<std::sync::Arc<dyn $crate::ShmRelease>> {
            self.inner.shm_release()
        }
        $crate::pass_to_inner!($($more)*);
    };
    (shm_read_only $($more:ident)*) => {
        fn shm_read_only(&self) -> bool {
            self.inner.shm_read_only()
        }
        $crate::pass_to_inner!($($more)*);
    };
    (has_shm $($more:ident)*) => {
        fn has_shm(&self) -> bool {
            self.inner.has_shm()
        }
        $crate::pass_to_inner!($($more)*);
    };
    (clock $($more:ident)*) => {
        fn clock(&self) -> &dyn $crate::Clock {
            self.inner.clock()
        }
        $crate::pass_to_inner!($($more)*);
    };
    (entropy $($more:ident)*) => {
        fn entropy(&self) -> &dyn $crate::Entropy {
            self.inner.entropy()
        }
        $crate::pass_to_inner!($($more)*);
    };
}
