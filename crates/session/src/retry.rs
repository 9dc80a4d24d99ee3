//! Changes of a table that have violated constraints, once the others were made.
//!
//! They are tried in their order, again and again as long as one of them succeeds. UPDATEs that are in each other's way, as
//! where two rows exchange unique values, are made with one row out of the table, which is put back behind the others. What
//! is left then, the program decides.

use crate::apply::{Apply, Waiting, flags};
use crate::change::Op;
use crate::target::Place;
use iolite_base::{Code, Result};

/// How many rows are taken out, one after the other, before a circle is given up.
const MOST_CIRCLES: usize = 100;

impl Apply<'_> {
    /// Tries changes that wait until none does.
    pub fn retry(&mut self, p: &mut Place) -> Result<()> {
        while !self.waiting.is_empty() {
            let before = self.waiting.len();
            self.pass(p)?;
            if self.waiting.len() >= before && !self.break_circle(p)? {
                self.defers = false;
                self.pass(p)?;
            }
        }
        self.defers = true;
        Ok(())
    }

    /// Tries each change that waits once.
    fn pass(&mut self, p: &mut Place) -> Result<()> {
        for w in std::mem::take(&mut self.waiting) {
            self.change(p, &w.change, w.replaces)?;
        }
        Ok(())
    }

    /// Makes UPDATEs that are in each other's way. Answers whether that was possible.
    fn break_circle(&mut self, p: &mut Place) -> Result<bool> {
        if self.flags & flags::NOUPDATELOOP != 0 || !self.defers {
            return Ok(false);
        }
        let updates: Vec<usize> = (0..self.waiting.len())
            .filter(|i| self.waiting[*i].change.op == Op::Update)
            .take(MOST_CIRCLES)
            .collect();
        if updates.len() < 2 {
            return Ok(false);
        }
        for at in updates {
            let all: Vec<Waiting> = self.waiting.iter().map(Waiting::again).collect();
            self.host.query("SAVEPOINT update_op", &[])?;
            let actions = self.host.without_key_actions(true);
            let broken = self.without(p, at);
            self.host.without_key_actions(actions);
            let broken = broken?;
            if !broken {
                self.host.query("ROLLBACK TO update_op", &[])?;
                self.waiting = all;
            }
            self.host.query("RELEASE update_op", &[])?;
            if broken {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Tries the others while the row of one change is out of the table, and puts it back changed.
    fn without(&mut self, p: &mut Place, at: usize) -> Result<bool> {
        let own = self.waiting.remove(at).change;
        let Some(row) = p.target.take_out(self.host, &own)? else { return Ok(false) };
        let first = self.waiting.len();
        loop {
            let before = self.waiting.len();
            self.pass(p)?;
            if self.waiting.len() >= before {
                break;
            }
        }
        if self.waiting.len() >= first {
            return Ok(false);
        }
        let row = p.target.changed(row, &own)?;
        match p.target.put_back(self.host, &row) {
            Ok(()) => Ok(true),
            Err(e) if e.code().primary() == Code::Constraint => Ok(false),
            Err(e) => Err(e),
        }
    }
}

impl Waiting {
    fn again(&self) -> Waiting {
        Waiting { change: self.change.clone(), replaces: self.replaces.clone() }
    }
}
