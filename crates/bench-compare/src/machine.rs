//! What a run says about the machine: processor, memory, kernel, file system, and two measures of how fast they are now.

use iolite_bench::cases;
use iolite_bench::engine::Result;
use serde::{Deserialize, Serialize};
use std::io::{Seek, Write};
use std::time::Instant;

/// The machine.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Default)]
pub struct Machine {
    /// The processor.
    pub cpu: String,
    /// How many of them.
    pub cores: usize,
    /// Memory in bytes.
    pub memory: u64,
    /// The kernel.
    pub kernel: String,
    /// The file system on which databases lie.
    pub file_system: String,
    /// Bytes a second that one core reads, out of an array of 512 MB.
    pub memory_bandwidth: f64,
    /// Median seconds of a 4 KB append with fdatasync.
    pub fdatasync: f64,
    /// Processes that were running when the run began, averaged over a minute.
    pub load: f64,
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn field(text: &str, name: &str) -> String {
    let line = text.lines().find(|l| l.starts_with(name)).unwrap_or("");
    line.split_once(':').map_or("", |x| x.1).trim().to_string()
}

/// The load average over a minute.
pub fn load() -> f64 {
    read("/proc/loadavg").split(' ').next().and_then(|s| s.parse().ok()).unwrap_or(0.0)
}

/// Seconds of processor time of this thread, as the scheduler counts them.
pub fn thread_cpu() -> f64 {
    let ns: f64 =
        read("/proc/thread-self/schedstat").split(' ').next().and_then(|s| s.parse().ok()).unwrap_or(0.0);
    ns / 1e9
}

/// Bytes of memory that only this process holds.
pub fn resident() -> f64 {
    let text = read("/proc/self/smaps_rollup");
    let of = |name| field(&text, name).trim_end_matches(" kB").trim().parse().unwrap_or(0.0);
    (of("Private_Dirty") + of("Private_Clean")) * 1024.0
}

/// The most memory that this process has had at once, in bytes.
pub fn greatest() -> f64 {
    let text = read("/proc/self/status");
    let kb: f64 = field(&text, "VmHWM").trim_end_matches(" kB").trim().parse().unwrap_or(0.0);
    kb * 1024.0
}

fn file_system() -> String {
    let dir = std::fs::canonicalize(cases::directory()).unwrap_or_default();
    let mounts = read("/proc/mounts");
    let of = |l: &str| {
        let mut p = l.split(' ').skip(1);
        Some((p.next()?.to_string(), p.next()?.to_string()))
    };
    let best =
        mounts.lines().filter_map(of).filter(|(at, _)| dir.starts_with(at)).max_by_key(|(at, _)| at.len());
    best.map_or_else(|| "unknown".into(), |(at, kind)| format!("{kind} at {at}"))
}

fn bandwidth() -> f64 {
    let words = vec![1u64; 64 << 20];
    let mut best = f64::MAX;
    for _ in 0..5 {
        let t = Instant::now();
        let sum = words.chunks_exact(8).fold([0u64; 8], |mut s, c| {
            s.iter_mut().zip(c).for_each(|(s, c)| *s = s.wrapping_add(*c));
            s
        });
        std::hint::black_box(sum);
        best = best.min(t.elapsed().as_secs_f64());
    }
    (words.len() * 8) as f64 / best
}

/// Seconds of one append of `bytes` with fdatasync, of each of `n`. With `again`, the file has its length already, as that
/// of a log that has begun anew: the file system has nothing of its own to write then.
pub fn appends(n: usize, bytes: usize, again: bool) -> Result<Vec<f64>> {
    let path = cases::directory().join(format!("append-{}", std::process::id()));
    let mut f = std::fs::File::create(&path)?;
    let block = vec![7u8; bytes];
    if again {
        f.write_all(&vec![1u8; bytes * n])?;
        f.sync_all()?;
        f.rewind()?;
    }
    let mut out = Vec::new();
    for _ in 0..n {
        let t = Instant::now();
        f.write_all(&block)?;
        f.sync_data()?;
        out.push(t.elapsed().as_secs_f64());
    }
    std::fs::remove_file(&path)?;
    Ok(out)
}

/// Looks and measures.
pub fn look() -> Result<Machine> {
    std::fs::create_dir_all(cases::directory())?;
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    Ok(Machine {
        load: load(),
        cpu: field(&read("/proc/cpuinfo"), "model name"),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory: memory.trim_end_matches(" kB").trim().parse::<u64>().unwrap_or(0) * 1024,
        kernel: read("/proc/sys/kernel/osrelease").trim().into(),
        file_system: file_system(),
        memory_bandwidth: bandwidth(),
        fdatasync: crate::stats::summary(&appends(300, 4096, false)?).median,
    })
}
