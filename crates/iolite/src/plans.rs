//! Programs of a connection by their text, so that preparing the same text again compiles nothing.
//!
//! A program is as good as new while the schema generations are those that it was compiled for: whatever a program
//! depends on (schema, statistics, settings, functions, collating sequences, attached databases) raises one of them. When
//! they have changed, all programs are forgotten, also so that functions taken back by the user do not live on in them.
//!
//! Statements that differ in their literals alone share a program, kept under the text with parameters in their places
//! ([`iolite_sql::lifted`]). Where the literals are not but stored, such a program is made when the second of them comes, and
//! only if the first one's found one row by its key: what cannot share is not compiled twice.
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
    /// By the same places: hashes of texts that a program can be made for, when they come again.
    shareable: Vec<u64>,
}

impl Default for Plans {
    fn default() -> Self {
        Plans { places: Vec::new(), size: DEFAULT, generations: Rc::default(), shareable: Vec::new() }
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

    /// Notes that statements may share a program that is made of this text.
    pub fn note_shareable(&mut self, text: &str) {
        if self.shareable.is_empty() {
            self.shareable = vec![0; self.size];
        }
        let hash = hash_bytes(text.as_bytes());
        if let Some(place) = self.shareable.get_mut(hash as usize % self.size.max(1)) {
            *place = hash;
        }
    }

    /// Whether that was noted. A hash that is another's by chance costs a program that nobody uses.
    pub fn is_shareable(&self, text: &str) -> bool {
        let hash = hash_bytes(text.as_bytes());
        self.shareable.get(hash as usize % self.size.max(1)) == Some(&hash)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.places = Vec::new();
        self.shareable = Vec::new();
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
