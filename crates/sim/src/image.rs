//! What may remain on the disk after a power loss.
//!
//! The model is the one that SQLite is built on (documentation pages `atomiccommit`, section 2, and `psow`):
//!
//! - A sync of a file carries its content and size to the disk; nothing is promised before. Unsynced writes
//!   reach the disk in any order or not at all, sector by sector (512 bytes), of each sector any state that
//!   it went through.
//! - A sector in the course of being written may be torn: a run of bytes at one end of the write is new, the
//!   rest old. Bytes outside of the write stay as they are (powersafe overwrite, the default of SQLite's unix
//!   VFS).
//! - Sizes of one file change in the order in which they were set. A file may have grown before its new
//!   content arrived: then zeros, noise, or the content of a file of that name deleted before stands there
//!   (but not of a rollback journal: its segments prove themselves, so that neither SQLite nor we can tell an
//!   old one from a new one). Content written behind a cut that did not reach the disk did not either.
//! - Creations and deletions of names reach the disk in any order, those of one name in theirs, until a sync
//!   of the directory; a sync of a file says nothing of its name.
//!
//! An image is a choice of one version for each *chain*: a sector, a size, a name. What was synced has one
//! version only. [`Model::images`] makes all images where there are few, and seeded samples beyond.

use crate::disk::Event;
use crate::rng::{Rng, digest};
use iolite_os::FileKind;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

/// Files by name: what a disk holds.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

const SECTOR: u64 = 512;
/// Up to so many unsynced changes, all images are made.
const EXHAUSTIVE: usize = 10;

#[derive(Clone)]
enum Change {
    Size(u64),
    Bytes { at: u64, data: Arc<[u8]>, from: usize, to: usize },
}

#[derive(Clone, Default)]
struct Content {
    kind: Option<FileKind>,
    durable: Vec<u8>,
    pending: Vec<Change>,
    /// The size as programs see it.
    size: u64,
    /// What its blocks may have held before.
    stale: Arc<Vec<u8>>,
}

/// One thing that can be at several of its versions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Chain {
    /// All changes of a file, in order.
    File(u32),
    Size(u32),
    Sector(u32, u64),
    Name(u32),
}

/// The disk after some events.
#[derive(Clone, Default)]
pub struct Model {
    files: BTreeMap<u32, Content>,
    names: BTreeMap<PathBuf, u32>,
    pending_names: Vec<(PathBuf, Option<u32>)>,
    /// Rollback journals reach the disk in order: what `synchronous=NORMAL` rests on (documentation of the
    /// pragma: "a very small chance that a power failure at just the wrong time could corrupt the database").
    pub ordered_journals: bool,
    last_deleted: HashMap<PathBuf, Arc<Vec<u8>>>,
}

/// How to compose an image.
struct Choice<'a> {
    version: &'a HashMap<Chain, usize>,
    /// The write that was cut short: file, number of the change, how much, and from which end.
    torn: Option<(u32, usize, u64, bool)>,
    fill: u8,
    noise: u64,
}

impl Model {
    /// An empty disk.
    pub fn new() -> Model {
        Model::default()
    }

    /// Takes an event in.
    pub fn apply(&mut self, e: &Event) {
        match e {
            Event::Create { path, file, kind } => {
                let stale = self.last_deleted.get(path).cloned().unwrap_or_default();
                self.files.insert(*file, Content { kind: Some(*kind), stale, ..Content::default() });
                self.pending_names.push((path.clone(), Some(*file)));
            }
            Event::Delete { path } => {
                if let Some(f) = self.current_names().get(path) {
                    let content = self.current_content(&self.files[f]);
                    self.last_deleted.insert(path.clone(), Arc::new(content));
                }
                self.pending_names.push((path.clone(), None));
            }
            Event::Write { file, offset, data } => {
                let f = self.files.get_mut(file).expect("written files were created");
                let end = offset + data.len() as u64;
                if end > f.size {
                    f.pending.push(Change::Size(end));
                    f.size = end;
                }
                let mut at = *offset;
                while at < end {
                    let next = ((at / SECTOR + 1) * SECTOR).min(end);
                    let (from, to) = ((at - offset) as usize, (next - offset) as usize);
                    f.pending.push(Change::Bytes { at, data: data.clone(), from, to });
                    at = next;
                }
            }
            Event::Truncate { file, size } => {
                let f = self.files.get_mut(file).expect("cut files were created");
                f.pending.push(Change::Size(*size));
                f.size = *size;
            }
            Event::Sync { file } => {
                let f = self.files.get(file).expect("synced files were created");
                let now = self.current_content(f);
                let f = self.files.get_mut(file).expect("just read");
                f.durable = now;
                f.pending.clear();
            }
            Event::SyncDir => {
                self.names = self.current_names();
                self.pending_names.clear();
            }
            Event::Begin(_) | Event::Ack(_) => {}
        }
    }

    fn current_names(&self) -> BTreeMap<PathBuf, u32> {
        let mut names = self.names.clone();
        for (path, file) in &self.pending_names {
            match file {
                Some(f) => names.insert(path.clone(), *f),
                None => names.remove(path),
            };
        }
        names
    }

    fn current_content(&self, f: &Content) -> Vec<u8> {
        let mut out = f.durable.clone();
        for c in &f.pending {
            match c {
                Change::Size(n) => out.resize(*n as usize, 0),
                Change::Bytes { at, data, from, to } => {
                    out[*at as usize..*at as usize + to - from].copy_from_slice(&data[*from..*to]);
                }
            }
        }
        out
    }

    /// The disk as programs see it: what a crash of the process alone leaves.
    pub fn current(&self) -> Files {
        let names = self.current_names();
        names.iter().map(|(p, f)| (p.clone(), self.current_content(&self.files[f]))).collect()
    }

    fn chain_of(&self, number: u32, f: &Content, c: &Change) -> Chain {
        if self.ordered_journals && f.kind == Some(FileKind::Journal) {
            return Chain::File(number);
        }
        match c {
            Change::Size(_) => Chain::Size(number),
            Change::Bytes { at, .. } => Chain::Sector(number, at / SECTOR),
        }
    }

    /// The chains with more than one version, and how many further ones each has.
    fn chains(&self) -> Vec<(Chain, usize)> {
        let mut count: BTreeMap<Chain, usize> = BTreeMap::new();
        for (n, f) in &self.files {
            for c in &f.pending {
                *count.entry(self.chain_of(*n, f, c)).or_default() += 1;
            }
        }
        for (path, _) in &self.pending_names {
            *count.entry(Chain::Name(self.name_number(path))).or_default() += 1;
        }
        count.into_iter().collect()
    }

    fn name_number(&self, path: &PathBuf) -> u32 {
        self.pending_names.iter().position(|(p, _)| p == path).unwrap_or(0) as u32
    }

    fn compose(&self, choice: &Choice) -> Files {
        let version = |c: Chain| choice.version.get(&c).copied().unwrap_or(0);
        let mut names = self.names.clone();
        let mut seen: HashMap<u32, usize> = HashMap::new();
        for (path, file) in &self.pending_names {
            let n = self.name_number(path);
            let at = seen.entry(n).or_default();
            *at += 1;
            if *at > version(Chain::Name(n)) {
                continue;
            }
            match file {
                Some(f) => names.insert(path.clone(), *f),
                None => names.remove(path),
            };
        }
        names.iter().map(|(p, f)| (p.clone(), self.compose_file(*f, choice))).collect()
    }

    fn compose_file(&self, number: u32, choice: &Choice) -> Vec<u8> {
        let f = &self.files[&number];
        let mut out = f.durable.clone();
        let mut seen: HashMap<Chain, usize> = HashMap::new();
        // Where a cut did not happen, nothing written behind it did.
        let mut cut = u64::MAX;
        let mut noise = Rng::new(choice.noise ^ number as u64);
        for (i, c) in f.pending.iter().enumerate() {
            let chain = self.chain_of(number, f, c);
            let at = seen.entry(chain).or_default();
            *at += 1;
            let version = choice.version.get(&chain).copied().unwrap_or(0);
            let chosen = *at <= version;
            // In a file that is written in order, only the write after the last whole one can be cut short.
            let next = *at == version + 1 || !matches!(chain, Chain::File(_));
            let torn = choice.torn.filter(|t| t.0 == number && t.1 == i && next);
            match c {
                Change::Size(n) if chosen => {
                    let old = out.len();
                    out.resize(*n as usize, 0);
                    for (k, b) in out.iter_mut().enumerate().skip(old) {
                        *b = match choice.fill {
                            0 => 0,
                            1 => noise.next() as u8,
                            _ if f.kind == Some(FileKind::Journal) => 0,
                            _ => f.stale.get(k).copied().unwrap_or(0),
                        };
                    }
                }
                Change::Size(n) => cut = cut.min(*n),
                Change::Bytes { at, data, from, to } if chosen || torn.is_some() => {
                    let mut piece = &data[*from..*to];
                    let mut at = *at;
                    if let Some((_, _, much, from_end)) = torn.filter(|_| !chosen) {
                        let much = (much as usize).min(piece.len());
                        if from_end {
                            at += (piece.len() - much) as u64;
                            piece = &piece[piece.len() - much..];
                        } else {
                            piece = &piece[..much];
                        }
                    }
                    let end = (out.len() as u64).min(cut);
                    if at < end {
                        let n = piece.len().min((end - at) as usize);
                        out[at as usize..at as usize + n].copy_from_slice(&piece[..n]);
                    }
                }
                Change::Bytes { .. } => {}
            }
        }
        out
    }

    /// Calls `f` with images that a power loss at this moment may leave: all of them if there are few
    /// unsynced changes, `samples` seeded ones beyond. `f` is told whether every pending change of a name is
    /// in the image, and answers whether to go on.
    pub fn images(&self, seed: u64, samples: usize, f: &mut dyn FnMut(Files, bool) -> bool) -> Option<()> {
        let chains = self.chains();
        let mut rng = Rng::new(seed);
        let units: usize = chains.iter().map(|c| c.1).sum();
        let mut emit = |version: &HashMap<Chain, usize>, torn, rng: &mut Rng| {
            let fill = rng.below(3) as u8;
            let choice = Choice { version, torn, fill, noise: rng.next() };
            let names_kept = chains
                .iter()
                .all(|(c, n)| !matches!(c, Chain::Name(_)) || version.get(c).copied().unwrap_or(0) == *n);
            f(self.compose(&choice), names_kept).then_some(())
        };
        if units <= EXHAUSTIVE {
            let mut version: HashMap<Chain, usize> = chains.iter().map(|c| (c.0, 0)).collect();
            loop {
                emit(&version, None, &mut rng)?;
                if units > 0 && rng.percent(25) {
                    let torn = self.tear(&mut rng);
                    emit(&version, torn, &mut rng)?;
                }
                // The next choice, as a number whose digits have different bases.
                let mut i = 0;
                loop {
                    let Some((c, n)) = chains.get(i) else { return Some(()) };
                    let v = version.get_mut(c).expect("all chains are in it");
                    if *v < *n {
                        *v += 1;
                        break;
                    }
                    *v = 0;
                    i += 1;
                }
            }
        }
        for sample in 0..samples {
            let mut version: HashMap<Chain, usize> = HashMap::new();
            let numbers: Vec<u32> = self.files.keys().copied().collect();
            let odd = numbers[rng.below(numbers.len() as u64) as usize];
            let one = rng.below(chains.len() as u64) as usize;
            let rate = [5, 20, 50, 80, 95][rng.below(5) as usize];
            for (i, (c, n)) in chains.iter().enumerate() {
                let of = match c {
                    Chain::File(f) | Chain::Size(f) | Chain::Sector(f, _) => Some(*f),
                    Chain::Name(_) => None,
                };
                let v = match sample % 8 {
                    // One file whole and the others not, and the other way round.
                    0 => {
                        if of == Some(odd) {
                            *n
                        } else {
                            0
                        }
                    }
                    1 => {
                        if of == Some(odd) {
                            0
                        } else {
                            *n
                        }
                    }
                    // All but one.
                    2 => {
                        if i == one {
                            0
                        } else {
                            *n
                        }
                    }
                    3 => {
                        if i == one || matches!(c, Chain::Size(_) | Chain::Name(_)) {
                            *n
                        } else {
                            0
                        }
                    }
                    // All sizes and names, some content.
                    4 if !matches!(c, Chain::Sector(..)) => *n,
                    _ => {
                        if rng.percent(rate) {
                            *n
                        } else {
                            rng.below(*n as u64 + 1) as usize
                        }
                    }
                };
                version.insert(*c, v);
            }
            let torn = if rng.percent(40) { self.tear(&mut rng) } else { None };
            emit(&version, torn, &mut rng)?;
        }
        Some(())
    }

    /// A write to cut short: one of the unsynced ones.
    fn tear(&self, rng: &mut Rng) -> Option<(u32, usize, u64, bool)> {
        let writes: Vec<(u32, usize)> = self
            .files
            .iter()
            .flat_map(|(n, f)| f.pending.iter().enumerate().map(|(i, c)| (*n, i, c)))
            .filter(|(_, _, c)| matches!(c, Change::Bytes { .. }))
            .map(|(n, i, _)| (n, i))
            .collect();
        if writes.is_empty() {
            return None;
        }
        let (n, i) = writes[rng.below(writes.len() as u64) as usize];
        Some((n, i, 1 + rng.below(SECTOR - 1), rng.percent(50)))
    }
}

/// Tells images apart.
pub fn digest_of(files: &Files) -> u64 {
    let mut h = 7;
    for (p, data) in files {
        h = digest(h, p.as_os_str().as_encoded_bytes());
        h = digest(h, data);
    }
    h
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn all(m: &Model) -> HashSet<u64> {
        let mut seen = HashSet::new();
        m.images(1, 64, &mut |files, _| {
            seen.insert(digest_of(&files));
            true
        });
        seen
    }

    fn write(m: &mut Model, offset: u64, byte: u8, n: usize) {
        m.apply(&Event::Write { file: 0, offset, data: vec![byte; n].into() });
    }

    fn model() -> Model {
        let mut m = Model::new();
        m.apply(&Event::Create { path: "a".into(), file: 0, kind: FileKind::MainDb });
        write(&mut m, 0, 1, 1024);
        m.apply(&Event::Sync { file: 0 });
        m.apply(&Event::SyncDir);
        m
    }

    #[test]
    fn what_was_synced_has_one_image() {
        assert_eq!(all(&model()).len(), 1);
    }

    #[test]
    fn unsynced_sectors_come_in_all_subsets() {
        let mut m = model();
        write(&mut m, 0, 2, 1024);
        let mut plain = HashSet::new();
        for _ in 0..2 {
            m.images(3, 64, &mut |files, _| {
                let f = &files[&PathBuf::from("a")];
                plain.insert((f[0], f[511], f[512], f[1023]));
                true
            });
        }
        for want in [(1, 1, 1, 1), (2, 2, 1, 1), (1, 1, 2, 2), (2, 2, 2, 2)] {
            assert!(plain.contains(&want), "{want:?}");
        }
    }

    #[test]
    fn a_name_that_was_not_synced_may_be_missing() {
        let mut m = model();
        m.apply(&Event::Delete { path: "a".into() });
        let mut sizes = HashSet::new();
        m.images(1, 64, &mut |files, _| {
            sizes.insert(files.len());
            true
        });
        assert_eq!(sizes.len(), 2);
        m.apply(&Event::SyncDir);
        assert_eq!(all(&m).len(), 1);
    }

    #[test]
    fn nothing_is_written_behind_a_cut_that_did_not_happen() {
        let mut m = model();
        m.apply(&Event::Truncate { file: 0, size: 0 });
        write(&mut m, 0, 9, 512);
        m.images(1, 64, &mut |files, _| {
            let f = &files[&PathBuf::from("a")];
            assert!(f.len() != 1024 || f.iter().all(|&b| b == 1));
            true
        });
    }
}
