//! The narrow waist: how functions, collating sequences, virtual tables and row sources reach the engine.
//!
//! Built-in functions, the search modules, the columnar engine, C-API extensions and user code all arrive
//! through these traits. User code may call back into the same connection: the engine holds no borrow of its
//! own state across any call made here.
#![forbid(unsafe_code)]

mod authorizer;
mod function;
mod host;
mod preupdate;
mod registry;
mod source;
mod statement;
mod tokenizer;
mod transaction;
mod vtab;

pub use authorizer::{Action, Authorizer, Question};
pub use function::{
    Aggregate, AuxData, Context, Function, FunctionFlags, Implementation, Inline, Scalar, ScalarFn,
};
pub use host::{Changed, Changes, Host, NestedBlob, NestedStatement, Piece, ReadNote, WasRead};
pub use preupdate::{Preupdate, PreupdateListener};
pub use registry::{BuiltinModules, Builtins, Registry};
pub use source::{Opened, RowSource, SourceFactory};
pub use statement::{Instruction, StatementFacts, StatementList};
pub use tokenizer::{Token, TokenPatterns, TokenSink, TokenizeFor, Tokenizer, TokenizerKind};
pub use transaction::{ChangeListener, Participant, RowChange};
pub use vtab::{
    Change, Constraint, ConstraintOp, ConstraintUse, Declared, FilterArgs, IndexData, IndexInfo, Module,
    ModuleKind, OnConflict, OrderTerm, OrderUse, Overload, TableArgs, Trust, VirtualCursor, VirtualTable,
};
