//! What tests share: scratch folders, images of a crash, stock SQLite's shell, forked children, golden files, plans
//! without a database.
//!
//! A tool that is missing fails the test that needs it: a test that passes without having run says nothing.

mod golden;
mod planning;
pub mod traced;

pub use golden::golden;
pub use planning::Planning;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A folder of its own for a test, removed when dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new, empty folder.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Scratch {
        static N: AtomicU32 = AtomicU32::new(0);
        let name = format!("iolite-test-{}-{}", std::process::id(), N.fetch_add(1, Relaxed));
        let dir = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a scratch folder");
        Scratch(dir)
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.0
    }

    /// The path of a file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The same as text.
    pub fn name(&self, name: &str) -> String {
        self.path(name).to_str().expect("scratch folders have plain names").to_owned()
    }

    /// The names of the files in it, in order.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the scratch folder");
        let mut names: Vec<String> =
            entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// A copy of all files as they are now: what a process that is killed at this moment leaves behind.
    pub fn killed_now(&self) -> Scratch {
        let copy = Scratch::new();
        for name in self.files() {
            // The wal-index is of no worth without the processes that had it.
            if !name.ends_with("-shm") {
                fs::copy(self.path(&name), copy.path(&name)).expect("a copy");
            }
        }
        copy
    }

    /// What stock SQLite's shell answers to `sql` on a database here, errors included.
    pub fn stock(&self, db: &str, sql: &str) -> String {
        let out = Command::new("sqlite3")
            .arg("-batch")
            .arg(self.path(db))
            .arg(sql)
            .stdin(Stdio::null())
            .output()
            .expect("the sqlite3 shell is installed");
        let mut text = String::from_utf8_lossy(&out.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&out.stderr));
        text.trim_end().to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Stops a process, as a debugger or a frozen container does.
pub fn stop_process(pid: u32) {
    // SAFETY: a plain call.
    unsafe { libc::kill(pid as libc::pid_t, libc::SIGSTOP) };
}

/// Lets it go on.
pub fn continue_process(pid: u32) {
    // SAFETY: a plain call.
    unsafe { libc::kill(pid as libc::pid_t, libc::SIGCONT) };
}

/// A process made by `fork`, killed when dropped.
pub struct Child(libc::pid_t);

impl Child {
    /// Runs `work` in a forked child, which ends with status 0 if it answers `true`.
    pub fn fork(work: impl FnOnce() -> bool) -> Child {
        // SAFETY: the child runs on with the memory of this thread; it must not wait for what other threads hold.
        match unsafe { libc::fork() } {
            -1 => panic!("fork failed"),
            0 => {
                let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(false);
                // SAFETY: ends the child without the parent's handlers.
                unsafe { libc::_exit(!done as libc::c_int) }
            }
            pid => Child(pid),
        }
    }

    /// Waits for its end; whether it answered `true`.
    pub fn wait(mut self) -> bool {
        let pid = std::mem::replace(&mut self.0, 0);
        let mut status = 0;
        // SAFETY: our child, and a writable status.
        unsafe { libc::waitpid(pid, &mut status, 0) };
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
    }

    /// Kills it at once, as the system does when memory is short.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let pid = std::mem::replace(&mut self.0, 0);
        if pid != 0 {
            // SAFETY: our child.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
                libc::waitpid(pid, std::ptr::null_mut(), 0);
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end();
    }
}
