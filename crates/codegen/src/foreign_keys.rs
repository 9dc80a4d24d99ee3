//! Foreign keys: violations by a row are counted by a query in the midst of the program, and asked for at its end.

use crate::context::{Codegen, Place, Row};
use crate::write::policy_number;
use iolite_base::{Code, Result};
use iolite_bytecode::{Opcode, P4, p5};
use iolite_plan::Conflict;
use iolite_plan::bind::{KeyTest, Keys};

impl Codegen<'_> {
    /// Adds the violations of a foreign key by a row to their counter, or takes them off.
    pub fn count_violations(
        &mut self,
        keys: &Keys,
        test: &KeyTest,
        (row, new): (Row, Row),
        adds: bool,
        without_new: bool,
    ) -> Result<()> {
        let deferred = test.key().deferred as i32;
        let done = self.b.label();
        if !adds {
            self.b.jump(Opcode::FkIfZero, deferred, done, 0);
        }
        let known = self.known.len();
        let count = self.b.reg();
        let e = test.counted(without_new)?;
        self.at_place(keys.own, Place::of_row(row), |g| {
            g.at_place(keys.new, Place::of_row(new), |g| g.expr_to(e, count))
        })?;
        self.known.truncate(known);
        self.b.emit(Opcode::FkCount, deferred, count, if adds { 1 } else { -1 });
        self.b.place(done);
        Ok(())
    }

    /// The statement fails if immediate foreign keys are violated now. `inserted`: the row that does so is the last one inserted all the
    /// same.
    pub fn check_keys(&mut self, inserted: bool) {
        let ok = self.b.label();
        self.b.jump(Opcode::FkIfZero, 2, ok, 0);
        let code = Code::ConstraintForeignkey.number() as i32;
        let policy = policy_number(Conflict::Abort);
        self.b.emit4(Opcode::Halt, code, policy, 0, P4::Name("FOREIGN KEY constraint failed".into()));
        if inserted {
            self.b.p5(p5::WAS_INSERTED);
        }
        self.b.place(ok);
    }
}
