//! Several threads at the decoding of a table's segments, before the columns are gathered.
//!
//! **Who reads.** Only the thread that asked, through its own transaction: it copies the leaves of a segment into a lot.
//! The others see nothing but lots, the wanted columns' keys, and dictionaries of their own, empty for each segment; so no
//! snapshot, log, page cache or connection is shared, and there is no lock but the queue's.
//!
//! **What comes out.** The thread that asked takes the lots back in the order of the segments, under the lock of the
//! dictionaries, and puts the column's numbers in the place of the lot's own ([`Chunk::renumbered`]). Entries are
//! added in the order in which rows meet them, as by one thread, so a chunk is the same function of the pages and of the entries
//! that were there before.
//!
//! **What goes wrong.** A lot on which a thread meets anything out of the ordinary (a value on overflow pages, damage, no
//! memory, a panic) comes back undone, and all that follows is left to [`Store::load`], which decodes one segment at a
//! time and finds the error where it is, if it is one. The same where a chunk has no room in the cache, or another connection
//! was first. Whether to stop is asked before each lot; then the others end with the lots they have, some milliseconds each.
//!
//! **What it takes.** Twice as many lots as threads at most, and 64 MB or a quarter of the cache's budget of them. Their
//! room is used again.

use super::*;
use crate::store::decode::{Built, Lot};
use iolite_os::background::without_signals;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, mpsc};

/// Fewer leaves are not worth a thread.
const FEW: usize = 512;

/// The most bytes that wait or are worked on.
const LOTS: usize = 64 << 20;

/// How a query wants columns to be read.
pub(crate) struct LoadRequest<'a> {
    /// What was used since stays.
    pub since: u64,
    /// How many threads may work, this one among them.
    pub threads: usize,
    /// However few leaves there are.
    pub force: bool,
    /// Whether to stop: an error then.
    pub check: &'a dyn Fn() -> Result<()>,
}

/// A segment to be decoded.
struct Job<'t> {
    segment: &'t Arc<Segment>,
    /// Which of the wanted columns it lacks.
    missing: Vec<usize>,
}

/// All that is to be done, and how.
struct Task<'a> {
    bt: &'a Btree,
    table: &'a TableState,
    wanted: &'a [(ColKey, &'a Value)],
    jobs: &'a [Job<'a>],
    request: &'a LoadRequest<'a>,
    /// The most lots that wait or are worked on.
    most: usize,
}

/// What a lot came to: chunks, and the dictionaries that they are coded by. `None`: nothing.
struct Done {
    job: usize,
    lot: Lot,
    made: Option<(Built, Vec<Dict>)>,
}

/// Lots that wait for a thread, until no further one comes.
#[derive(Default)]
struct Queue {
    lots: Mutex<(VecDeque<(usize, Lot)>, bool)>,
    changed: Condvar,
}

impl Queue {
    fn put(&self, job: usize, lot: Lot) {
        lock(&self.lots).0.push_back((job, lot));
        self.changed.notify_one();
    }

    /// The next lot, if one waits.
    fn take(&self) -> Option<(usize, Lot)> {
        lock(&self.lots).0.pop_front()
    }

    /// The next lot, for which is waited; `None`: there will be none.
    fn wait(&self) -> Option<(usize, Lot)> {
        let mut lots = lock(&self.lots);
        loop {
            if lots.1 {
                return None;
            }
            if let Some(l) = lots.0.pop_front() {
                return Some(l);
            }
            lots = self.changed.wait(lots).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// No further lot comes, and those that wait are not wanted.
    fn close(&self) {
        lock(&self.lots).1 = true;
        self.changed.notify_all();
    }
}

/// Closes a queue whatever happens, so that nobody waits for ever.
struct Closing<'q>(&'q Queue);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Store {
    /// Decodes the segments of a table that lack wanted columns, with several threads. What is left undone is for
    /// [`Store::load`]. Answers how many threads took part.
    pub(crate) fn decode_together(
        &self,
        bt: &Btree,
        t: &TableState,
        wanted: &[(ColKey, &Value)],
        request: &LoadRequest<'_>,
    ) -> Result<usize> {
        if request.threads < 2 || !t.keep {
            return Ok(1);
        }
        let jobs: Vec<Job<'_>> = t.segments.iter().filter_map(|s| s.job(wanted)).collect();
        let leaves: usize = jobs.iter().map(|j| j.segment.leaves.len()).sum();
        let most = jobs.iter().map(|j| j.segment.leaves.len()).max().unwrap_or(0) * t.page_size as usize;
        let threads = request.threads.min(jobs.len()).min(LOTS.min(loose()) / 2 / most.max(1));
        if threads < 2 || leaves < FEW && !request.force {
            return Ok(1);
        }
        self.note_use(t, wanted.iter().map(|w| w.0), request.since);
        {
            let mut all = lock(&t.columns.dicts);
            wanted.iter().for_each(|w| t.columns.recall(&mut all, &w.0, &self.counters));
        }
        let (seed, layout) = (self.seed(), bt.layout());
        let columns: Vec<Wanted<'_>> = wanted.iter().map(|(k, d)| Wanted::new(*k, d)).collect();
        // What a thread looks at: none of it is the connection's.
        let missing: Vec<&[usize]> = jobs.iter().map(|j| &j.missing[..]).collect();
        let work = |job: usize, lot: Lot, spare: &mut Spare| {
            let keys: Vec<Wanted<'_>> = missing[job].iter().map(|i| columns[*i]).collect();
            let mut own: Vec<Dict> = keys.iter().map(|_| Dict::default()).collect();
            let built = catch_unwind(AssertUnwindSafe(|| {
                decode::build_lot(&lot, layout, seed, &keys, &mut own, spare).ok()
            }));
            let made = built.ok().flatten().filter(|b| b.pure.iter().all(|p| *p));
            Done { job, lot, made: made.map(|b| (b, own)) }
        };
        let queue = Queue::default();
        let (give, done) = mpsc::channel();
        std::thread::scope(|scope| {
            let mut others = 0;
            for _ in 1..threads {
                let (give, queue, work) = (give.clone(), &queue, &work);
                let code = move || {
                    let mut spare = Spare::default();
                    while let Some((job, lot)) = queue.wait() {
                        if give.send(work(job, lot, &mut spare)).is_err() {
                            break;
                        }
                    }
                };
                // Where no thread can be had, the others do its work.
                let named = std::thread::Builder::new().name("iolite-decode".into());
                others += without_signals(|| named.spawn_scoped(scope, code)).is_ok() as usize;
            }
            drop(give);
            let mut spare = Spare::default();
            let mut own = |job, lot| work(job, lot, &mut spare);
            let closing = Closing(&queue);
            let task = Task { bt, table: t, wanted, jobs: &jobs, request, most: 2 * threads };
            let led = self.lead(&task, closing.0, &done, &mut own);
            led.map(|()| others + 1)
        })
    }

    /// Reads lots, works on some, and keeps what they come to in the order of the segments.
    fn lead(
        &self,
        task: &Task<'_>,
        queue: &Queue,
        done: &mpsc::Receiver<Done>,
        own: &mut dyn FnMut(usize, Lot) -> Done,
    ) -> Result<()> {
        let jobs = task.jobs;
        let mut early: BTreeMap<usize, Done> = BTreeMap::new();
        let mut emptied: Vec<Lot> = Vec::new();
        let (mut read, mut kept) = (0, 0);
        while kept < jobs.len() {
            while read < jobs.len() && read - kept < task.most {
                (task.request.check)()?;
                let mut lot = emptied.pop().unwrap_or_default();
                lot.fill(task.bt, &jobs[read].segment.leaves)?;
                queue.put(read, lot);
                read += 1;
            }
            // Those that others have done first, so that they have lots to go on with.
            let next = match done.try_recv() {
                Ok(d) => d,
                Err(_) => match queue.take() {
                    Some((job, lot)) => own(job, lot),
                    None => match done.recv() {
                        Ok(d) => d,
                        Err(_) => return Ok(()),
                    },
                },
            };
            early.insert(next.job, next);
            while let Some(d) = early.remove(&kept) {
                let job = &jobs[kept];
                let Some((built, dicts)) = d.made else { return Ok(()) };
                if !self.keep_lot(task, job, built, &dicts)? {
                    return Ok(());
                }
                emptied.push(d.lot);
                kept += 1;
            }
        }
        Ok(())
    }

    /// Keeps what a lot came to; `false`: it has no room, and so will the next ones have none.
    fn keep_lot(&self, task: &Task<'_>, job: &Job<'_>, built: Built, dicts: &[Dict]) -> Result<bool> {
        let about: usize = built.chunks.iter().map(Chunk::bytes).sum();
        self.make_room(task.request.since, budget().saturating_sub(about));
        let mut all = lock(&task.table.columns.dicts);
        let mut made = Vec::with_capacity(job.missing.len());
        for ((i, c), own) in job.missing.iter().zip(built.chunks).zip(dicts) {
            let key = task.wanted[*i].0;
            let dict = all.entry(key).or_default();
            made.push((key, Arc::new(c.renumbered(own, dict, key.real)?), true));
        }
        self.counters.decoded.fetch_add(1, Relaxed);
        let bytes: usize = made.iter().map(|m| m.1.bytes()).sum();
        let room = fits(bytes);
        self.keep_built(all, job.segment, built.rows, &made)?;
        Ok(room)
    }
}

impl Segment {
    /// What of the wanted columns has to be decoded from all of the leaves; `None`: nothing, or some may be had otherwise.
    fn job<'t>(self: &'t Arc<Segment>, wanted: &[(ColKey, &Value)]) -> Option<Job<'t>> {
        let (chunks, stored, former) = (lock(&self.chunks), lock(&self.stored), lock(&self.former));
        let missing: Vec<usize> = (0..wanted.len()).filter(|i| !chunks.contains_key(&wanted[*i].0)).collect();
        let otherwise = former.is_some() || missing.iter().any(|i| stored.contains_key(&wanted[*i].0));
        let shapes = lock(&self.shapes);
        // What had no room before is left to those who bring it as the scan comes to it.
        let away = missing.iter().any(|i| shapes.contains_key(&wanted[*i].0));
        (!missing.is_empty() && !otherwise && !away).then_some(Job { segment: self, missing })
    }
}
