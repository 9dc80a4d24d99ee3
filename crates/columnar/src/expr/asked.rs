//! A condition on the entries of a dictionary, put to an entry when the first row has it.
//!
//! What always holds: no entry is asked twice, and none that no row has, unless the whole set is wanted.

use crate::expr::Eval;
use crate::expr::test::Test;
use crate::kernel::Bits;
use crate::store::chunk::{Dict, Field};
use iolite_base::Result;

/// Dictionaries of no more entries are asked at once: the set is there before the first row.
pub(crate) const ASKED_AT_ONCE: usize = 4096;

/// What is known so far.
pub(crate) struct Asked {
    test: Test,
    known: Bits,
    passed: Bits,
    /// All are known.
    whole: bool,
}

impl Asked {
    /// Nothing is known of `entries` entries.
    pub fn new(test: Test, entries: usize) -> Result<Asked> {
        Ok(Asked { test, known: Bits::new(entries)?, passed: Bits::new(entries)?, whole: false })
    }

    /// Whether the entry with this number, which is `f`, passes.
    #[inline]
    pub fn holds(&mut self, code: usize, f: Field<'_>, eval: &Eval<'_>) -> Result<bool> {
        if !self.known.set(code) && self.test.holds(f, eval)? {
            self.passed.set(code);
        }
        Ok(self.passed.has(code))
    }

    /// All entries of the dictionary that pass.
    pub fn all(&mut self, dict: &Dict, eval: &Eval<'_>) -> Result<&Bits> {
        if !self.whole {
            for code in 0..dict.len() {
                self.holds(code, dict.get(code as u32), eval)?;
            }
            self.whole = true;
        }
        Ok(&self.passed)
    }

    /// Whether what is asked is one comparison.
    pub fn is_comparison(&self) -> bool {
        self.test.is_comparison()
    }
}
