//! Plans of statements that the connection carries out: transactions, ATTACH, PRAGMA, VACUUM, ALTER TABLE, ANALYZE.
//!
//! What they are to do is all that is planned; the values of expressions that they contain are a row of a query.

use crate::plan::SelectPlan;
use iolite_sql::ast::{AlterTable, BeginMode, PragmaValue, QualifiedName};

/// The plan of a statement that the connection carries out.
pub struct Control {
    /// What is to be done.
    pub kind: ControlKind,
    /// The values of its expressions, and how many there are.
    pub row: Option<(Box<SelectPlan>, usize)>,
}

/// What is to be done.
#[derive(Debug)]
pub enum ControlKind {
    /// `BEGIN`.
    Begin(BeginMode),
    /// `COMMIT`.
    Commit,
    /// `ROLLBACK`.
    Rollback,
    /// `SAVEPOINT`.
    Savepoint(Box<str>),
    /// `RELEASE`.
    Release(Box<str>),
    /// `ROLLBACK TO`.
    RollbackTo(Box<str>),
    /// `PRAGMA`.
    Pragma(QualifiedName, Option<PragmaValue>),
    /// `ATTACH`: the row is the file and the name.
    Attach,
    /// `DETACH`: the row is the name.
    Detach,
    /// `VACUUM` of a database; the row is the file that it goes into, if any.
    Vacuum(Option<Box<str>>),
    /// `ALTER TABLE`.
    AlterTable(Box<AlterTable>),
    /// `ANALYZE`.
    Analyze(Option<QualifiedName>),
    /// Whatever the connection has to do on the way.
    Work,
}

impl Control {
    /// Work without a statement of its own.
    pub(crate) fn work() -> Control {
        Control { kind: ControlKind::Work, row: None }
    }
}
