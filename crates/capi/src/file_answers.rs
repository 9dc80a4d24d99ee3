//! What files of our VFSes answer to file controls, and what these set.

use crate::{NOTFOUND, OK};
use iolite_os::{File, Note};
use std::ffi::{c_char, c_int, c_void};

pub(crate) const LOCKSTATE: c_int = 1;
const LAST_ERRNO: c_int = 4;
const SIZE_HINT: c_int = 5;
const CHUNK_SIZE: c_int = 6;
pub(crate) const PERSIST_WAL: c_int = 10;
const POWERSAFE_OVERWRITE: c_int = 13;
const VFSNAME: c_int = 12;
const TEMPFILENAME: c_int = 16;
pub(crate) const MMAP_SIZE: c_int = 18;
const HAS_MOVED: c_int = 20;
const EXTERNAL_READER: c_int = 40;

/// What file controls set.
#[derive(Default)]
pub(crate) struct Modes {
    pub(crate) level: c_int,
    pub(crate) persist_wal: bool,
    pub(crate) no_powersafe_overwrite: bool,
    pub(crate) mmap_size: i64,
}

/// What a file of ours answers.
pub(crate) unsafe fn of_file(
    file: &dyn File,
    vfs: &str,
    modes: &mut Modes,
    op: c_int,
    arg: *mut c_void,
) -> c_int {
    let number = arg as *mut c_int;
    /// A switch of which a negative value asks.
    unsafe fn switch(at: *mut c_int, on: &mut bool) -> c_int {
        match *at {
            0 => *on = false,
            1.. => *on = true,
            _ => *at = *on as c_int,
        }
        OK
    }
    match op {
        LOCKSTATE => *number = modes.level,
        LAST_ERRNO => *number = 0,
        CHUNK_SIZE => file.set_chunk((*number).max(0) as u64),
        SIZE_HINT => {
            let bytes = (*(arg as *mut i64)).max(0) as u64;
            return file.notify(Note::SizeHint(bytes)).map_or_else(|e| e.code().number() as c_int, |()| OK);
        }
        PERSIST_WAL => return switch(number, &mut modes.persist_wal),
        POWERSAFE_OVERWRITE => {
            let mut on = !modes.no_powersafe_overwrite;
            switch(number, &mut on);
            modes.no_powersafe_overwrite = !on;
        }
        VFSNAME => *(arg as *mut *mut c_char) = crate::memory::copy_out(vfs.as_bytes()),
        TEMPFILENAME => {
            let mut random = [0; 8];
            iolite_os::default_vfs().entropy().fill(&mut random);
            let folder = crate::info::temp_directory()
                .unwrap_or_else(|| std::env::temp_dir().into_os_string().into_encoded_bytes());
            let name =
                [&folder[..], format!("/etilqs_{:016x}", u64::from_ne_bytes(random)).as_bytes()].concat();
            *(arg as *mut *mut c_char) = crate::memory::copy_out(&name);
        }
        HAS_MOVED => *number = file.has_moved().unwrap_or(false) as c_int,
        MMAP_SIZE => {
            let at = arg as *mut i64;
            let old = modes.mmap_size;
            if *at >= 0 {
                modes.mmap_size = *at;
            }
            *at = old;
        }
        EXTERNAL_READER => *number = 0,
        _ => return NOTFOUND,
    }
    OK
}
