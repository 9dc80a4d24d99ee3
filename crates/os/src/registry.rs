//! The VFSes of the process by their names: those of the system, and those that programs register.
//!
//! What always holds: the first one of the list is the default. What a VFS does is its own business.

use crate::Published;
use crate::{MemoryVfs, OtherLocks, UnixVariant, Vfs, default_vfs};
use std::sync::{Arc, OnceLock};

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

/// Those of now; `None`: those of the system.
static LIST: Published<List> = Published::new();

/// Replaces the list.
fn change(f: impl Fn(&mut List)) {
    LIST.replace(|list| {
        let mut list = list.map_or(system_vfses(), |l| l).to_vec();
        f(&mut list);
        Some(list)
    });
}

/// The VFS with this name; without one, the default.
pub fn vfs_named(name: Option<&str>) -> Option<Arc<dyn Vfs>> {
    let list = LIST.get().map_or(system_vfses(), |l| l);
    match name {
        None => list.first().cloned(),
        Some(name) => list.iter().find(|v| v.name() == name).cloned(),
    }
}

/// Enters a VFS, in place of one with the same name; as the default, or behind that.
pub fn register_vfs(vfs: Arc<dyn Vfs>, as_default: bool) {
    change(|list| {
        list.retain(|v| v.name() != vfs.name());
        let at = if as_default { 0 } else { list.len().min(1) };
        list.insert(at, vfs.clone());
    });
}

/// Takes a VFS out. If it was the default, the next one is.
pub fn unregister_vfs(name: &str) {
    change(|list| list.retain(|v| v.name() != name));
}
