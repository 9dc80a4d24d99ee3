//! The VFSes of the process by their names: those of the system, and those that programs register.
//!
//! What always holds: the first one of the list is the default. What a VFS does is its own business.

use crate::{MemoryVfs, OtherLocks, UnixVariant, Vfs, default_vfs};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

type List = Vec<Arc<dyn Vfs>>;

/// Those of the system: the default and its variants, and one in memory.
pub fn system_vfses() -> &'static [Arc<dyn Vfs>] {
    static SYSTEM: OnceLock<List> = OnceLock::new();
    SYSTEM.get_or_init(|| {
        let other = |locks| -> Arc<dyn Vfs> { Arc::new(UnixVariant::new(locks)) };
        vec![
            default_vfs(),
            Arc::new(MemoryVfs::with_name("memdb")),
            other(OtherLocks::Process),
            other(OtherLocks::Folder),
            other(OtherLocks::None),
        ]
    })
}

fn list() -> MutexGuard<'static, Option<List>> {
    static LIST: Mutex<Option<List>> = Mutex::new(None);
    let mut list = LIST.lock().unwrap_or_else(PoisonError::into_inner);
    list.get_or_insert_with(|| system_vfses().to_vec());
    list
}

/// The VFS with this name; without one, the default.
pub fn vfs_named(name: Option<&str>) -> Option<Arc<dyn Vfs>> {
    let list = list();
    let list = list.as_ref()?;
    match name {
        None => list.first().cloned(),
        Some(name) => list.iter().find(|v| v.name() == name).cloned(),
    }
}

/// Enters a VFS, in place of one with the same name; as the default, or behind that.
pub fn register_vfs(vfs: Arc<dyn Vfs>, as_default: bool) {
    let mut list = list();
    let Some(list) = list.as_mut() else { return };
    list.retain(|v| v.name() != vfs.name());
    let at = if as_default { 0 } else { list.len().min(1) };
    list.insert(at, vfs);
}

/// Takes a VFS out. If it was the default, the next one is.
pub fn unregister_vfs(name: &str) {
    if let Some(list) = list().as_mut() {
        list.retain(|v| v.name() != name);
    }
}
