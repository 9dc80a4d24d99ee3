//! Which pages the commits of this process have changed in a file without a log: what differs between two states is known as long as nobody else
//! commits in between.
//!
//! What always holds: each commit begins at the state that the one before led to; a commit that is not noted breaks the chain, and then nothing
//! is known of states before it. States are named by bytes 24 to 39 of the file.

use iolite_base::Pgno;
use std::collections::VecDeque;

/// So many page numbers are kept at the most.
const MOST_PAGES: usize = 1 << 16;
/// So many commits.
const MOST: usize = 4096;

type Version = [u8; 16];

/// See the module's head.
#[derive(Default)]
pub struct Commits {
    /// The state that the last commit led to.
    last: Version,
    /// The state that each began at, and the pages that it changed.
    all: VecDeque<(Version, Box<[Pgno]>)>,
    pages: usize,
}

impl Commits {
    /// Notes a commit.
    pub fn note(&mut self, from: Version, to: Version, pages: &[Pgno]) {
        if from != self.last || from == to || pages.len() > MOST_PAGES {
            self.all.clear();
            self.pages = 0;
        }
        if from == to || pages.len() > MOST_PAGES {
            self.last = Version::default();
            return;
        }
        self.all.push_back((from, pages.into()));
        self.pages += pages.len();
        self.last = to;
        while self.pages > MOST_PAGES || self.all.len() > MOST {
            let gone = self.all.pop_front();
            self.pages -= gone.map_or(0, |g| g.1.len());
        }
    }

    /// The pages that differ between two states; `None`: that is not known.
    pub fn between(&self, then: Version, now: Version) -> Option<Vec<Pgno>> {
        // The newest first: a state comes back only where a counter went round.
        let to = if now == self.last { self.all.len() } else { self.all.iter().rposition(|c| c.0 == now)? };
        let from = self.all.iter().take(to).rposition(|c| c.0 == then)?;
        Some(self.all.range(from..to).flat_map(|c| c.1.iter().copied()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_of_others_breaks_the_chain() {
        let state = |n: u8| [n; 16];
        let mut c = Commits::default();
        c.note(state(1), state(2), &[7]);
        c.note(state(2), state(3), &[8, 9]);
        assert_eq!(c.between(state(1), state(3)), Some(vec![7, 8, 9]));
        assert_eq!(c.between(state(1), state(2)), Some(vec![7]));
        assert_eq!(c.between(state(3), state(1)), None);
        c.note(state(4), state(5), &[7]);
        assert_eq!(c.between(state(1), state(3)), None);
        assert_eq!(c.between(state(4), state(5)), Some(vec![7]));
        assert_eq!(c.between(state(3), state(5)), None);
        c.note(state(5), state(5), &[7]);
        assert_eq!(c.between(state(4), state(5)), None);
    }
}
