//! What the fuzz targets have in common: connections with bounds, and what must hold behind every input.
//!
//! An input must not end the process, work without end, take memory without bound, keep memory when all is closed, or be
//! answered by `SQLITE_INTERNAL`. What a target knows beyond that it asserts itself. libFuzzer ends an input that takes
//! longer than its `-timeout`; the work of statements is bounded here, so that only what is outside of their loops can reach that.

use iolite::engine::{Code, Connection, Error, ImageOptions, Limit, OpenFlags, Step, Switch, Value, Vfs};
use iolite_sim::disk::Disk;
use iolite_sim::image::Files;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// How often a connection's statements may ask whether to go on: each time stands for a thousand instructions.
const TURNS: u32 = 3000;

/// Rows of one statement that are read.
const ROWS: usize = 2000;

/// Bytes that are allocated now.
static LIVE: AtomicIsize = AtomicIsize::new(0);

struct Counted;

// SAFETY: All is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as isize, Relaxed);
        // SAFETY: As the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as isize, Relaxed);
        // SAFETY: As the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Relaxed);
        // SAFETY: As the caller promises.
        unsafe { System.dealloc(p, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// Runs an input. Where memory is left behind, runs it again and again: caches are full at some time, a leak goes on.
pub fn without_leak(input: impl Fn()) {
    let left = || {
        let before = LIVE.load(Relaxed);
        input();
        LIVE.load(Relaxed) - before
    };
    let mut least = left();
    for _ in 0..8 {
        if least <= 0 {
            return;
        }
        least = least.min(left());
    }
    assert!(least <= 0, "an input leaves {least} bytes behind each time");
}

/// A database in files that are in memory alone: `a.db` and what belongs to it.
pub fn on_disk(files: &[(&str, &[u8])]) -> Connection {
    let files: Files = files.iter().map(|(name, b)| (PathBuf::from(name), b.to_vec())).collect();
    let disk: Arc<dyn Vfs> = Arc::new(Disk::holding(1, &files));
    let c = Connection::open_on(disk, "a.db", OpenFlags { uri: false, ..OpenFlags::default() });
    bounded(c.expect("a database opens without being read"))
}

/// A database in memory as `setup` made it, which runs once: a target has one.
pub fn in_memory(setup: &str) -> Connection {
    static IMAGE: OnceLock<Vec<u8>> = OnceLock::new();
    let open = || Connection::open_in_memory().expect("a database in memory");
    let image = IMAGE.get_or_init(|| {
        let c = open();
        c.execute_batch(setup).expect("what the target sets up");
        c.serialize("main").expect("its image")
    });
    let c = open();
    c.deserialize("main", image.clone(), ImageOptions { read_only: false, limit: Some(64 << 20) })
        .expect("the image is one");
    bounded(c)
}

/// Bounds on what statements may do, and no way out of the database: shadow tables and the schema's text are written by nobody.
fn bounded(c: Connection) -> Connection {
    c.switch(Switch::Defensive, Some(true));
    c.limit(Limit::Length, Some(1 << 20));
    c.limit(Limit::VdbeOp, Some(50_000));
    c.limit(Limit::LikePatternLength, Some(200));
    let turns = Rc::new(Cell::new(0u32));
    let stop = move || {
        turns.set(turns.get() + 1);
        turns.get() > TURNS
    };
    c.progress_handler_every(1000, Some(Rc::new(stop)));
    c
}

/// Runs the statements of a text and reads their rows. A statement that fails is passed over, if one can see where it ends.
pub fn run(c: &Connection, sql: &str) {
    let mut rest = sql;
    while let Ok(Some((mut s, tail))) = c.prepare_next(rest).map_err(judged) {
        for _ in 0..ROWS {
            match s.step() {
                Ok(Step::Row) => s.row().iter().for_each(|v| drop(v.text_bytes())),
                Ok(Step::Done) => break,
                Err(e) => {
                    judged(e);
                    break;
                }
            }
        }
        let _ = s.reset();
        rest = tail;
    }
}

/// One statement with parameters; its rows. `None`: it failed.
pub fn rows(c: &Connection, sql: &str, params: &[Value]) -> Option<Vec<Vec<Value>>> {
    c.query(sql, params).map_err(judged).ok()
}

/// No input may bring the engine to a place that it holds to be out of reach.
pub fn judged(e: Error) {
    assert!(e.code().primary() != Code::Internal, "internal: {}", e.message());
}

/// What `integrity_check` says, `ok` if nothing is wrong. `None`: it could not be asked.
pub fn integrity(c: &Connection) -> Option<String> {
    c.progress_handler_every(1000, None);
    let found = c.query("PRAGMA integrity_check(3)", &[]).ok()?;
    Some(found.iter().map(|r| text(&r[0])).collect::<Vec<_>>().join("; "))
}

/// A value's text.
pub fn text(v: &Value) -> String {
    String::from_utf8_lossy(v.lent_text(&mut [0; 32])).into_owned()
}

/// The parts of an input, which are separated by `between`.
pub fn parts<'a>(input: &'a [u8], between: &[u8]) -> Vec<&'a [u8]> {
    let mut out = Vec::new();
    let mut rest = input;
    while let Some(at) = rest.windows(between.len()).position(|w| w == between) {
        out.push(&rest[..at]);
        rest = &rest[at + between.len()..];
    }
    out.push(rest);
    out
}
