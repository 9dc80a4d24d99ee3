//! Values of the process that are read without a lock and replaced whole.
//!
//! A child that is forked while another thread holds a lock never gets it. So what is read often and changed now and then
//! (which VFSes there are, who is told of errors) stands in values that do not change.
//!
//! What always holds: a value lives for ever once it was published, since somebody may still read it.

use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire},
};

/// A static of which there is one value at a time, none at first.
pub struct Published<T: 'static>(AtomicPtr<Entry<T>>);

struct Entry<T: 'static> {
    value: T,
    /// Nobody asks for it; tools that look for lost memory find it so.
    _former: Option<&'static Entry<T>>,
}

impl<T: Send + Sync> Published<T> {
    /// Nothing yet.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Published<T> {
        Published(AtomicPtr::new(null_mut()))
    }

    fn entry(&self) -> Option<&'static Entry<T>> {
        // SAFETY: null, or an entry that `replace` has leaked.
        unsafe { self.0.load(Acquire).as_ref() }
    }

    /// The value of now.
    pub fn get(&self) -> Option<&'static T> {
        self.entry().map(|e| &e.value)
    }

    /// Publishes what `next` makes of the value of now, which may be asked again where another thread was faster; `None`: that
    /// one stays.
    pub fn replace(&self, next: impl Fn(Option<&T>) -> Option<T>) {
        loop {
            let former = self.entry();
            let Some(value) = next(former.map(|e| &e.value)) else { return };
            let new = Box::into_raw(Box::new(Entry { value, _former: former }));
            let former = former.map_or(null_mut(), |e| std::ptr::from_ref(e).cast_mut());
            if self.0.compare_exchange(former, new, AcqRel, Acquire).is_ok() {
                return;
            }
            // SAFETY: it was shown to nobody.
            drop(unsafe { Box::from_raw(new) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_change_is_lost() {
        static ALL: Published<Vec<u32>> = Published::new();
        assert!(ALL.get().is_none());
        std::thread::scope(|s| {
            for i in 0..4 {
                s.spawn(move || {
                    for n in 0..100 {
                        ALL.replace(|all| {
                            Some(all.into_iter().flatten().copied().chain([i * 100 + n]).collect())
                        });
                    }
                });
            }
        });
        let mut all = ALL.get().unwrap().clone();
        all.sort_unstable();
        assert_eq!(all, (0..400).collect::<Vec<_>>());
        ALL.replace(|_| None);
        assert_eq!(ALL.get().unwrap().len(), 400);
    }
}
