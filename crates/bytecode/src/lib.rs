//! What stands between the code generator and the virtual machine: opcodes, programs, their builder, EXPLAIN.
//!
//! One table entry per opcode holds its operands' meaning; names and the manual are derived from it. Opcodes
//! carry SQLite's names where they mean the same (documentation page `opcode`).
#![forbid(unsafe_code)]

mod builder;
mod explain;
mod opcode;
mod origin;
mod probe;
mod program;

pub use builder::{Builder, Label};
pub use explain::explain;
pub use opcode::{Opcode, p5};
pub use probe::{Mark, Site, probed};
pub use program::{
    ColumnMeta, FrameEdge, FrameExclude, FrameUnit, FunctionCall, Given, Insn, P4, PatchField, PlanLine,
    Program, StrictColumn, StrictType, TableLock, VariableName, VirtualPlan, WindowPass,
};
