//! The engine as this project's own tools see it: the C library, the shell, tests and benchmarks.
//!
//! A [`Connection`] here is a counted handle. Statements hold one of their own, values may lie in pages that they pin, and
//! functions are counted without locks: all of it stays on one thread, or moves to another as a whole. The Rust API in
//! `api` is made of it, in types that see to that; programs use those. Nothing here is promised to stay.

pub use crate::blob::Blob;
pub use crate::builtin::MODULES as BUILTIN_MODULES;
pub use crate::column_store::ColumnCounters;
pub use crate::connection::{Connection, Tracer, VacuumPages};
pub use crate::image::{Backup, ImageOptions};
pub use crate::memory::set_image_limit;
pub use crate::metadata::ColumnMetadata;
pub use crate::open::{OpenFlags, uri_parameters};
pub use crate::preupdate::PreupdateHook;
pub use crate::settings::Switch;
pub use crate::stages::stages;
pub use crate::statement::{Statement, StatementCounter, Step};
pub use iolite_base::{
    Code, Encoding, Error, IOLITE_VERSION, Limit, Result, SQLITE_VERSION, SQLITE_VERSION_NUMBER,
};
pub use iolite_btree::{
    Btree, BusyHandler, Caches, CheckpointMode, CheckpointResult, JournalMode, Member, SnapshotName, TxnState,
};
pub use iolite_bytecode::ColumnMeta;
#[cfg(feature = "columnar")]
pub use iolite_columnar::set_dictionary_entries as set_column_dictionary_entries;
#[cfg(feature = "columnar")]
pub use iolite_columnar::set_segment_leaves as set_column_segment_leaves;
pub use iolite_ext::{
    Aggregate, Change, ChangeListener, Constraint, ConstraintOp, ConstraintUse, Context, Declared,
    FilterArgs, Function, FunctionFlags, Host, Implementation, IndexData, IndexInfo, Instruction, Module,
    ModuleKind, NestedStatement, OnConflict, OrderTerm, OrderUse, Overload, Participant, Preupdate,
    PreupdateListener, RowChange, RowSource, Scalar, StatementFacts, StatementList, TableArgs, Trust,
    VirtualCursor, VirtualTable,
};
pub use iolite_os::Vfs;
pub use iolite_plan::bind::check_declaration;
pub use iolite_value::{Collate, Value};
