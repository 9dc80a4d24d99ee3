//! Which thread gets the process's signals.

use std::mem::MaybeUninit;
use std::ptr;

/// Runs `start` with all signals blocked: a thread that it starts inherits that, and never gets one.
pub fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    /// Puts the mask back, also when `start` panics.
    struct Restore(libc::sigset_t);
    impl Drop for Restore {
        fn drop(&mut self) {
            // SAFETY: the mask is the one that was in force.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, ptr::null_mut()) };
        }
    }
    let (mut all, mut old) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: `sigfillset` sets the whole of `all`; `old` is read only where the call has filled it.
    let restore = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        let done = libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), old.as_mut_ptr());
        (done == 0).then(|| Restore(old.assume_init()))
    };
    let out = start();
    drop(restore);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(signal: i32) -> bool {
        let mut mask = MaybeUninit::uninit();
        // SAFETY: the call fills the mask, which asks only about a signal that exists.
        unsafe {
            assert_eq!(libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), mask.as_mut_ptr()), 0);
            libc::sigismember(mask.as_ptr(), signal) == 1
        }
    }

    #[test]
    fn a_thread_that_is_started_gets_no_signals_and_the_starter_keeps_its_own() {
        let before = blocks(libc::SIGTERM);
        let inside = without_signals(|| std::thread::spawn(|| blocks(libc::SIGTERM))).join().unwrap();
        assert!(inside);
        assert_eq!(blocks(libc::SIGTERM), before);
        assert!(!before);
    }
}
