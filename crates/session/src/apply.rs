//! Changes a database by a changeset (documentation page `sqlite3changeset_apply`).
//!
//! Each change is tried; where it does not fit, the program decides. A change that violates a constraint waits until the
//! others of its table were made (`retry`), for these may be what it needs. What was decided is written down for rebasing.

use crate::change::{Change, Op};
use crate::input::Input;
use crate::reader::Reader;
use crate::record;
use crate::target::{Place, Taken, Target};
use iolite_base::{Code, Error, Result};
use iolite_ext::Host;
use iolite_value::Value;
use std::rc::Rc;

/// What `apply` may be told, in SQLite's numbers.
#[allow(missing_docs)]
pub mod flags {
    pub const NOSAVEPOINT: u32 = 1;
    pub const INVERT: u32 = 2;
    pub const IGNORENOOP: u32 = 4;
    pub const FKNOACTION: u32 = 8;
    pub const NOUPDATELOOP: u32 = 16;
}

/// Why a change does not fit. The numbers are SQLite's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Conflict {
    /// The row holds something else than before the change was made.
    Data = 1,
    /// There is no such row.
    NotFound = 2,
    /// There is a row with this key.
    Conflict = 3,
    /// A constraint is violated.
    Constraint = 4,
    /// When all was applied, foreign keys are violated.
    ForeignKey = 5,
}

/// What to do about a conflict. The numbers are SQLite's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Decision {
    Omit = 0,
    Replace = 1,
    Abort = 2,
}

/// Who decides. It may use the connection.
pub trait Applying {
    /// Whether changes of a table are applied.
    fn wants_table(&self, _name: &str) -> bool {
        true
    }
    /// Whether a change is applied.
    fn wants_change(&self, _change: &Rc<Change>) -> bool {
        true
    }
    /// A change does not fit; `row` is the row that it meets, if it meets one. `None` is no answer, and a misuse.
    fn conflict(&self, kind: Conflict, change: &Rc<Change>, row: Option<&[Value]>) -> Option<Decision>;
    /// So many foreign keys are violated.
    fn violated(&self, keys: i64) -> Option<Decision>;
    /// Changes of a table are passed over.
    fn passed_over(&self, _why: &str) {}
}

/// A changeset that is being applied.
pub(crate) struct Apply<'a> {
    pub host: &'a dyn Host,
    pub who: &'a dyn Applying,
    pub flags: u32,
    /// Changes that violate a constraint wait.
    pub defers: bool,
    pub waiting: Vec<Waiting>,
    /// What was decided, and whether the table is named already.
    decided: Vec<u8>,
    named: bool,
}

/// A change that waits, and the row that it was to replace.
pub(crate) struct Waiting {
    pub change: Rc<Change>,
    pub replaces: Option<Taken>,
}

/// Applies a changeset to the main database; answers what was decided about conflicts, for a `Rebaser`.
pub fn apply(host: &dyn Host, input: Input<'_>, who: &dyn Applying, flags: u32) -> Result<Vec<u8>> {
    let mut reader = Reader::new(input, flags & flags::INVERT != 0);
    reader.skips_empty = true;
    let whole = flags & flags::NOSAVEPOINT == 0;
    if whole {
        host.query("SAVEPOINT changeset_apply", &[])?;
    }
    let before = host.deferred_violations();
    let was = host.without_key_actions(flags & flags::FKNOACTION != 0);
    let mut a =
        Apply { host, who, flags, defers: true, waiting: Vec::new(), decided: Vec::new(), named: false };
    let done = host.query("PRAGMA defer_foreign_keys = 1", &[]).and_then(|_| a.all(&mut reader));
    host.without_key_actions(was);
    let on = host.query("PRAGMA defer_foreign_keys = 0", &[]);
    let done = done.and(on.map(|_| ()));
    if done.is_ok() {
        host.set_deferred_violations(before);
    }
    if whole {
        let ended = match &done {
            Ok(()) => host.query("RELEASE changeset_apply", &[]),
            Err(_) => host
                .query("ROLLBACK TO changeset_apply", &[])
                .and_then(|_| host.query("RELEASE changeset_apply", &[])),
        };
        done?;
        ended?;
    } else {
        done?;
    }
    Ok(a.decided)
}

/// How a change came out.
enum Outcome {
    Done,
    /// The row is to be changed whatever it holds.
    Force,
    /// The row that is in the way is to go.
    Clear,
}

impl Apply<'_> {
    fn all(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        // The table that is being changed, if changes of it are wanted and possible.
        let mut name: Option<String> = None;
        let mut place: Option<Place> = None;
        while let Some(c) = reader.next()? {
            if !name.as_ref().is_some_and(|n| n.eq_ignore_ascii_case(&c.table.name)) {
                if let Some(p) = &mut place {
                    self.retry(p)?;
                }
                name = Some(c.table.name.clone());
                place = self.place(&c)?;
                (self.named, self.defers) = (false, true);
            }
            let Some(p) = &mut place else { continue };
            if p.table.columns() == c.table.columns() && self.who.wants_change(&c) {
                self.change(p, &c, None)?;
            }
        }
        if let Some(p) = &mut place {
            self.retry(p)?;
        }
        let violated = self.host.deferred_violations();
        if violated > 0 && self.who.violated(violated) != Some(Decision::Omit) {
            return Err(Code::Constraint.into());
        }
        Ok(())
    }

    fn place(&self, c: &Change) -> Result<Option<Place>> {
        if !self.who.wants_table(&c.table.name) {
            return Ok(None);
        }
        match Target::find(self.host, &c.table)? {
            Ok(target) => Ok(Some(Place { table: c.table.clone(), target })),
            Err(why) => {
                self.who.passed_over(&why);
                Ok(None)
            }
        }
    }

    /// Makes a change, with all that is decided on the way. `replaces` was taken out for it before.
    pub fn change(&mut self, p: &mut Place, c: &Rc<Change>, replaces: Option<Taken>) -> Result<()> {
        match self.attempt(p, c, true, false, replaces)? {
            Outcome::Done => Ok(()),
            Outcome::Force => self.attempt(p, c, false, true, None).map(|_| ()),
            Outcome::Clear => {
                self.host.query("SAVEPOINT replace_op", &[])?;
                let taken = p.target.take_out(self.host, c)?;
                self.attempt(p, c, false, true, taken)?;
                self.host.query("RELEASE replace_op", &[]).map(|_| ())
            }
        }
    }

    /// Tries a change. `asks`: rows in its way may be changed or replaced. `replaces` was taken out of its way.
    fn attempt(
        &mut self,
        p: &mut Place,
        c: &Rc<Change>,
        asks: bool,
        force: bool,
        replaces: Option<Taken>,
    ) -> Result<Outcome> {
        let kind = match p.target.run(self.host, c, force) {
            Ok(true) => return Ok(Outcome::Done),
            Ok(false) if c.op == Op::Insert => return Ok(Outcome::Done),
            Ok(false) => Conflict::Data,
            Err(e) if e.code().primary() == Code::Constraint => Conflict::Conflict,
            Err(e) => return Err(e),
        };
        // A key can be in the way of an INSERT alone; otherwise it is another constraint.
        let looks = asks && (kind == Conflict::Data || c.op == Op::Insert);
        let decision = match if looks { p.target.seek(self.host, c)? } else { None } {
            Some(row) => {
                let done = self.flags & flags::IGNORENOOP != 0 && p.target.is_done(self.host, c)?;
                if done { Some(Decision::Omit) } else { self.who.conflict(kind, c, Some(&row)) }
            }
            None if kind == Conflict::Conflict && self.defers => {
                self.waiting.push(Waiting { change: c.clone(), replaces });
                return Ok(Outcome::Done);
            }
            None if kind == Conflict::Data && c.op == Op::Delete && self.flags & flags::IGNORENOOP != 0 => {
                Some(Decision::Omit)
            }
            None => {
                let kind = if kind == Conflict::Data { Conflict::NotFound } else { Conflict::Constraint };
                let d = self.who.conflict(kind, c, None).filter(|d| *d != Decision::Replace);
                if let (Some(Decision::Omit), Some(row)) = (d, &replaces) {
                    // What it was to replace stays, if there is room for it still.
                    match p.target.put_back(self.host, row) {
                        Err(e) if e.code().primary() != Code::Constraint => return Err(e),
                        _ => {}
                    }
                }
                d
            }
        };
        match decision {
            None => Err(Code::Misuse.into()),
            Some(Decision::Abort) => Err(Error::from(Code::Abort)),
            Some(d) => {
                self.decided(c, d == Decision::Replace)?;
                Ok(match (d, c.op) {
                    (Decision::Replace, Op::Insert) => Outcome::Clear,
                    (Decision::Replace, _) => Outcome::Force,
                    _ => Outcome::Done,
                })
            }
        }
    }

    /// Writes down what was decided: the values that were to be, or of a row that was to go, those that were.
    fn decided(&mut self, c: &Change, replace: bool) -> Result<()> {
        if c.table.patchset {
            return Ok(());
        }
        if !self.named {
            c.table.put(&mut self.decided);
            self.named = true;
        }
        let op = if c.op == Op::Delete { Op::Delete } else { Op::Insert };
        self.decided.extend_from_slice(&[op as u8, replace as u8]);
        for i in 0..c.table.columns() {
            let old = c.op == Op::Delete || (c.op == Op::Update && c.table.is_key(i));
            let field = if old { c.old_field(i) } else { record::field(&c.new, i) };
            iolite_base::alloc::reserve(&mut self.decided, field.len())?;
            self.decided.extend_from_slice(field);
        }
        Ok(())
    }
}
