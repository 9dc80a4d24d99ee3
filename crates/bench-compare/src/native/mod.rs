//! The C libraries of other engines, opened at run time: the one place of this crate with `unsafe` code.
//!
//! Each file declares the calls it needs and wraps them so that handles are freed once and in order. A library that is
//! absent is an error with the names that were tried.

pub mod berkeley;
pub mod duckdb;
pub mod lmdb;
pub mod sqlite;
pub mod turso;

use iolite_bench::engine::{Error, Result};
use libloading::Library;

/// Makes the allocator join what is free and give it back to the system.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> i32;
        }
        // SAFETY: glibc's own function; it touches free memory alone and may be called at any time.
        unsafe { malloc_trim(0) };
    }
}

/// Opens the first of these libraries that is there. It stays open until the process ends, so that no pointer into it dangles.
fn open(names: &[String]) -> Result<&'static Library> {
    let mut tried = Vec::new();
    for n in names {
        // SAFETY: the libraries named here are plain C libraries whose initialisers need nothing from the caller.
        match unsafe { Library::new(n) } {
            Ok(l) => return Ok(Box::leak(Box::new(l))),
            Err(e) => tried.push(format!("{n} ({e})")),
        }
    }
    Err(Error::from(format!("absent: tried {}", tried.join(", "))))
}

/// Looks a function up.
///
/// # Safety
/// `T` is the type of a pointer to the C function of that name.
unsafe fn symbol<T: Copy>(l: &'static Library, name: &str) -> Result<T> {
    // SAFETY: the caller's promise.
    let s = unsafe { l.get::<T>(name.as_bytes()) };
    s.map(|s| *s).map_err(|e| format!("{name}: {e}").into())
}
