//! What the shell asks of the operating system beside files: Ctrl-C, and the processor time used so far.
//!
//! Ctrl-C sets the running connection's interrupt flag and one of the shell's own; the handlers do nothing else, so
//! they are safe at any moment. Connections register as they are opened. Whoever else wants SIGINT has to be run by [`keeping`].

use signal_hook::SigId;
use signal_hook::consts::SIGINT;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where Ctrl-C leaves its mark.
pub struct Interrupts {
    seen: Arc<AtomicBool>,
    connection: Option<SigId>,
}

impl Interrupts {
    /// Catches Ctrl-C from now on.
    pub fn catch() -> Interrupts {
        let seen = Arc::new(AtomicBool::new(false));
        // A failure leaves the default: Ctrl-C ends the program.
        let _ = signal_hook::flag::register(SIGINT, seen.clone());
        Interrupts { seen, connection: None }
    }

    /// Ctrl-C stops statements of this connection, and no longer those of the one before.
    pub fn watch(&mut self, flag: Arc<AtomicBool>) {
        if let Some(id) = self.connection.take() {
            signal_hook::low_level::unregister(id);
        }
        self.connection = signal_hook::flag::register(SIGINT, flag).ok();
    }

    /// Whether Ctrl-C came since the last call.
    pub fn take(&self) -> bool {
        self.seen.swap(false, Ordering::Relaxed)
    }

    /// Whether Ctrl-C came; the mark stays.
    pub fn pending(&self) -> bool {
        self.seen.load(Ordering::Relaxed)
    }
}

/// Runs what takes Ctrl-C for itself, and gives it back to the handlers here: the line editor, which needs no signal while it
/// reads keys, replaces SIGINT's handler together with that for the window's size.
pub fn keeping<T>(f: impl FnOnce() -> T) -> T {
    // SAFETY: sigaction is plain data, for which zero is a value; the calls fill it, and set what was there before.
    unsafe {
        let mut ours: libc::sigaction = std::mem::zeroed();
        let known = libc::sigaction(SIGINT, std::ptr::null(), &mut ours) == 0;
        let out = f();
        if known {
            libc::sigaction(SIGINT, &ours, std::ptr::null_mut());
        }
        out
    }
}

/// Processor time of this process in seconds: user, system.
pub fn cpu_times() -> (f64, f64) {
    // SAFETY: rusage is plain integers, for which zero is a value; getrusage fills it and keeps no pointer.
    let usage = unsafe {
        let mut u: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut u);
        u
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    (seconds(usage.ru_utime), seconds(usage.ru_stime))
}
