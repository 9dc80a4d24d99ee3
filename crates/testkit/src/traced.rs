//! A process that is held at one of its calls: before it writes, cuts, syncs, removes or locks for the n-th time.
//!
//! It is the tracer's business (ptrace), so all of it happens on one thread. Only the process's main thread is held; others
//! of it run on. Where there is no ptrace that tells of calls, nothing is ever held.

/// What became of a process that was let run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// It stands before its n-th call, until [`let_go`] or a kill.
    Before,
    /// It has answered (written to its standard output) and waits for its next order; nothing holds it.
    Finished,
    /// It has ended.
    Ended,
    /// It did neither for a long time; nothing holds it.
    Silent,
}

#[cfg(target_os = "linux")]
mod linux {
    use super::Held;
    use libc::{c_long, c_void, pid_t};
    use std::time::{Duration, Instant};

    /// How long a process may take from one call to its next.
    const LONGEST: Duration = Duration::from_secs(20);
    /// Calls that change files, or that others notice.
    const COUNTED: &[c_long] = &[
        libc::SYS_write,
        libc::SYS_pwrite64,
        libc::SYS_pwritev,
        libc::SYS_ftruncate,
        libc::SYS_fallocate,
        libc::SYS_fsync,
        libc::SYS_fdatasync,
        libc::SYS_unlinkat,
        libc::SYS_fcntl,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_unlink,
    ];

    fn ask(request: libc::c_uint, pid: u32, data: c_long) -> bool {
        // SAFETY: these requests take numbers, and the system refuses them for a process that is not ours to trace.
        unsafe { libc::ptrace(request, pid as pid_t, std::ptr::null_mut::<c_void>(), data) == 0 }
    }

    /// Waits for its next stop: the signal and event of it, or the end.
    fn wait(pid: u32) -> Result<libc::c_int, Held> {
        let begun = Instant::now();
        for turn in 0u64.. {
            let mut status = 0;
            // SAFETY: our child, and a writable status.
            match unsafe { libc::waitpid(pid as pid_t, &mut status, libc::WNOHANG | libc::__WALL) } {
                0 if turn % 64 == 63 && begun.elapsed() > LONGEST => return Err(Held::Silent),
                0 if turn > 200 => std::thread::sleep(Duration::from_micros(100)),
                0 => std::thread::yield_now(),
                _ if libc::WIFSTOPPED(status) => return Ok(status),
                _ => break,
            }
        }
        Err(Held::Ended)
    }

    /// Lets a child that waits for orders on its standard input carry out the one that `order` sends, and holds it before
    /// its n-th counted call (from 0).
    pub fn hold_before(pid: u32, n: usize, order: impl FnOnce()) -> Held {
        if !ask(libc::PTRACE_SEIZE, pid, libc::PTRACE_O_TRACESYSGOOD as c_long)
            || !ask(libc::PTRACE_INTERRUPT, pid, 0)
            || wait(pid).is_err()
        {
            order();
            return Held::Silent;
        }
        order();
        let (mut counted, mut answered, mut signal) = (0, false, 0);
        loop {
            if !ask(libc::PTRACE_SYSCALL, pid, signal) {
                return Held::Ended;
            }
            signal = 0;
            let status = match wait(pid) {
                Ok(s) => s,
                Err(held) => return held,
            };
            if libc::WSTOPSIG(status) != libc::SIGTRAP | 0x80 {
                // A signal of its own, which it gets, or the echo of the interruption.
                if status >> 16 == 0 {
                    signal = libc::WSTOPSIG(status) as c_long;
                }
                continue;
            }
            let Some((call, first)) = entered(pid) else { continue };
            if call == libc::SYS_read && first == 0 && answered {
                let_go(pid);
                return Held::Finished;
            }
            if call == libc::SYS_write && first == 1 {
                answered = true;
            } else if COUNTED.contains(&call) && !answered {
                if counted == n {
                    return Held::Before;
                }
                counted += 1;
            }
        }
    }

    /// The call that it is about to make, and its first argument. `None`: it comes back from one.
    fn entered(pid: u32) -> Option<(c_long, u64)> {
        // SAFETY: a structure of plain numbers.
        let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
        let size = std::mem::size_of_val(&info);
        // SAFETY: the child stands at a call; the structure is writable for the length that is said.
        let n = unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, pid as pid_t, size, &raw mut info) };
        if n <= 0 || info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
            return None;
        }
        // SAFETY: the operation says which member is set.
        let entry = unsafe { info.u.entry };
        Some((entry.nr as c_long, entry.args[0]))
    }

    /// Lets a process that is held run on.
    pub fn let_go(pid: u32) {
        ask(libc::PTRACE_DETACH, pid, 0);
    }
}

#[cfg(target_os = "linux")]
pub use linux::{hold_before, let_go};

/// Carries the order out: nothing can be held here.
#[cfg(not(target_os = "linux"))]
pub fn hold_before(_pid: u32, _n: usize, order: impl FnOnce()) -> Held {
    order();
    Held::Silent
}

/// Nothing is held here.
#[cfg(not(target_os = "linux"))]
pub fn let_go(_pid: u32) {}
