//! Where results go: standard output, a file, or a command's input.
//!
//! What always holds: a failed write is remembered and told once; a reader that went away (`| head`) is no error but
//! ends the program quietly.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

/// A place for results.
pub enum Output {
    /// Standard output.
    Stdout(BufWriter<io::Stdout>),
    /// A file.
    File(BufWriter<File>),
    /// The input of a command.
    Pipe(BufWriter<ChildStdin>, Child),
    /// Nowhere.
    Off,
}

impl Output {
    /// Standard output.
    pub fn stdout() -> Output {
        Output::Stdout(BufWriter::with_capacity(1 << 16, io::stdout()))
    }

    /// Opens what a user wrote behind `.output`: a file, `|command`, `off`, `stdout`.
    pub fn open(name: &str) -> io::Result<Output> {
        if let Some(command) = name.strip_prefix('|') {
            let mut child = Command::new("sh").arg("-c").arg(command).stdin(Stdio::piped()).spawn()?;
            let input = child.stdin.take().ok_or_else(|| io::Error::other("no pipe"))?;
            return Ok(Output::Pipe(BufWriter::new(input), child));
        }
        match name {
            "" | "stdout" => Ok(Output::stdout()),
            "off" => Ok(Output::Off),
            _ => Ok(Output::File(BufWriter::with_capacity(1 << 16, File::create(name)?))),
        }
    }

    /// Ends the output: what is buffered is written, a command is waited for.
    pub fn close(self) -> io::Result<()> {
        match self {
            Output::Pipe(mut w, mut child) => {
                let done = w.flush();
                drop(w);
                child.wait()?;
                done
            }
            Output::File(mut w) => w.flush(),
            Output::Stdout(mut w) => w.flush(),
            Output::Off => Ok(()),
        }
    }
}

impl Write for Output {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Output::Stdout(w) => w.write(buf),
            Output::File(w) => w.write(buf),
            Output::Pipe(w, _) => w.write(buf),
            Output::Off => Ok(buf.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Stdout(w) => w.flush(),
            Output::File(w) => w.flush(),
            Output::Pipe(w, _) => w.flush(),
            Output::Off => Ok(()),
        }
    }
}

/// Takes note of a failed write to the results: the program cannot do what it is for, so it ends.
pub fn failed(e: &io::Error) -> ! {
    if e.kind() == io::ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    eprintln!("Error: cannot write the output: {e}");
    std::process::exit(1);
}
