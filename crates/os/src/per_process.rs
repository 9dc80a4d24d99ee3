//! Values of which each process has its own.
//!
//! What a parent's other threads were changing when the process forked stays half changed in the child, and a lock that one
//! of them held stays locked for ever. So registries of the whole process (who has which file open, housekeeping
//! threads) are not inherited: the child begins with new ones.
//!
//! What always holds: a value lives for ever once made; a process sees one value only. The parent's is kept in the child, since
//! inherited handles still point to it.

use std::ptr;
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire},
};

struct Entry<T> {
    forks: u32,
    value: T,
}

/// A static of which each process has its own, made by [`Default`] when it is first asked for.
pub struct PerProcess<T: 'static> {
    entry: AtomicPtr<Entry<T>>,
}

impl<T: Default + Send + Sync> PerProcess<T> {
    /// Nothing yet.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> PerProcess<T> {
        PerProcess { entry: AtomicPtr::new(ptr::null_mut()) }
    }

    fn entry(&self) -> Option<&'static Entry<T>> {
        // SAFETY: null, or an entry that `get` has leaked.
        unsafe { self.entry.load(Acquire).as_ref() }
    }

    /// The value of this process, if it was asked for before.
    #[inline]
    pub fn existing(&self) -> Option<&'static T> {
        self.entry().filter(|e| e.forks == crate::unix::forks()).map(|e| &e.value)
    }

    /// The value of this process.
    pub fn get(&self) -> &'static T {
        if let Some(value) = self.existing() {
            return value;
        }
        crate::unix::watch_forks();
        loop {
            // Judged and replaced is the same entry: what another thread puts there in between makes the exchange fail.
            let old = self.entry.load(Acquire);
            // SAFETY: as in `entry`.
            if let Some(old) = unsafe { old.as_ref() }.filter(|e| e.forks == crate::unix::forks()) {
                return &old.value;
            }
            let new = Box::into_raw(Box::new(Entry { forks: crate::unix::forks(), value: T::default() }));
            if self.entry.compare_exchange(old, new, AcqRel, Acquire).is_err() {
                // SAFETY: it was shown to nobody: another thread was faster.
                drop(unsafe { Box::from_raw(new) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Barrier, Mutex};

    /// Drawn often: a thread that finds nothing must not replace what another has put there meanwhile.
    #[test]
    fn all_threads_of_a_process_see_one_value() {
        for _ in 0..500 {
            let list: &'static PerProcess<Mutex<Vec<u32>>> = Box::leak(Box::new(PerProcess::new()));
            assert!(list.existing().is_none());
            let start = Barrier::new(8);
            std::thread::scope(|s| {
                for i in 0..8 {
                    let start = &start;
                    s.spawn(move || {
                        start.wait();
                        list.get().lock().unwrap().push(i);
                    });
                }
            });
            assert_eq!(list.get().lock().unwrap().len(), 8);
            assert!(list.existing().is_some());
        }
    }
}
