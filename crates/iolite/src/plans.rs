//! Programs of a connection by their text, so that preparing the same text again compiles nothing.
//!
//! A program is as good as new while the schema generations are those that it was compiled for: whatever a program
//! depends on (schema, statistics, settings, functions, collating sequences, attached databases) raises one of them. When
//! they have changed, all programs are forgotten, also so that functions taken back by the user do not live on in them.
//!
//! Statements that differ in their literals alone share a program, kept under the text with parameters in their places
//! ([`iolite_sql::lifted`]). Where the literals are not but stored, it is decided when the second of them comes, by compiling both
//! forms: they share if one row is found by its key, or if both find their rows in the same way and no other values could have found a
//! better one.
//!
//! The table is small and has one place for each hash: a text that is prepared often comes back to its place. Kept are
//! queries, changes of data and the statements of transactions, which do nothing while they are compiled.

use iolite_base::hash::hash_bytes;
use iolite_bytecode::Program;
use iolite_sql::ast::{ExplainMode, Parsed, Stmt};
use std::rc::Rc;

/// How many programs are kept unless `PRAGMA plan_cache` says otherwise.
pub(crate) const DEFAULT: usize = 128;
/// The most that can be asked for.
pub(crate) const MOST: usize = 1 << 16;
/// Longer texts are not kept.
const LONGEST: usize = 4096;

struct Plan {
    text: Box<str>,
    /// Where the statement ends in the text.
    used: usize,
    program: Rc<Program>,
}

/// The programs of a connection.
pub(crate) struct Plans {
    places: Vec<Option<Plan>>,
    /// How many places there may be: they are made with the first program.
    size: usize,
    generations: Rc<Vec<u64>>,
    /// By the same places: hashes of texts with parameters in the places of literals, and what is known of them.
    sharing: Vec<(u64, Sharing)>,
}

/// What is known of statements that differ in their literals alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sharing {
    /// One of them was there.
    Seen,
    /// They share a program.
    Shared,
    /// They do not: their literals decide how rows are found.
    Refused,
}

impl Default for Plans {
    fn default() -> Self {
        Plans { places: Vec::new(), size: DEFAULT, generations: Rc::default(), sharing: Vec::new() }
    }
}

impl Plans {
    /// The program of a text and where its statement ends.
    pub fn find(&self, text: &str, generations: &Rc<Vec<u64>>) -> Option<(Rc<Program>, usize)> {
        if self.places.is_empty() || *self.generations != **generations {
            return None;
        }
        let plan = self.places[hash_bytes(text.as_bytes()) as usize % self.places.len()].as_ref()?;
        (*plan.text == *text).then(|| (plan.program.clone(), plan.used))
    }

    /// Keeps a program that was compiled at these generations.
    pub fn keep(&mut self, text: &str, used: usize, program: &Rc<Program>, generations: &Rc<Vec<u64>>) {
        if self.size == 0 || text.len() > LONGEST {
            return;
        }
        if *self.generations != **generations {
            self.clear();
            self.generations = generations.clone();
        }
        if self.places.is_empty() {
            self.places.resize_with(self.size, || None);
        }
        let at = hash_bytes(text.as_bytes()) as usize % self.size;
        self.places[at] = Some(Plan { text: text.into(), used, program: program.clone() });
    }

    /// Notes what is known of statements that have this text with parameters in the places of their literals.
    pub fn note_sharing(&mut self, text: &str, what: Sharing) {
        if self.sharing.is_empty() {
            self.sharing = vec![(0, Sharing::Refused); self.size];
        }
        let hash = hash_bytes(text.as_bytes());
        if let Some(place) = self.sharing.get_mut(hash as usize % self.size.max(1)) {
            *place = (hash, what);
        }
    }

    /// What was noted. Where a hash is another's by chance a program is shared that finds its rows more slowly.
    pub fn sharing(&self, text: &str) -> Option<Sharing> {
        let hash = hash_bytes(text.as_bytes());
        self.sharing.get(hash as usize % self.size.max(1)).filter(|p| p.0 == hash).map(|p| p.1)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.places = Vec::new();
        self.sharing = Vec::new();
    }

    /// How many programs are kept at most.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Sets it; 0: none.
    pub fn resize(&mut self, n: usize) {
        self.clear();
        self.size = n.min(MOST);
    }
}

/// Whether the program of a statement may be used again by whoever prepares its text.
pub(crate) fn lasting(parsed: &Parsed) -> bool {
    parsed.explain == ExplainMode::None
        && matches!(
            parsed.stmt,
            Stmt::Select(_)
                | Stmt::Insert(_)
                | Stmt::Update(_)
                | Stmt::Delete(_)
                | Stmt::Begin(_)
                | Stmt::Commit
                | Stmt::Rollback
                | Stmt::Savepoint(_)
                | Stmt::Release(_)
                | Stmt::RollbackTo(_)
        )
}
