//! What is known about statements: what they are made of, and what they have counted.

use iolite_base::Result;
use iolite_value::Value;
use std::rc::Rc;

/// One instruction of a program, as EXPLAIN shows it.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Instruction {
    pub addr: usize,
    pub opcode: &'static str,
    pub p1: i32,
    pub p2: i32,
    pub p3: i32,
    pub p4: String,
    pub p5: u16,
    /// The trigger whose program it belongs to; none: the statement's own.
    pub subprogram: Option<Rc<str>>,
}

/// A prepared statement of the program that uses the connection (documentation page `stmt`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatementFacts {
    /// Its text.
    pub sql: Vec<u8>,
    /// Result columns.
    pub columns: usize,
    /// It leaves all files as they are.
    pub readonly: bool,
    /// It is running.
    pub busy: bool,
    /// Steps through whole tables.
    pub full_scan_steps: u64,
    /// Sorts.
    pub sorts: u64,
    /// Rows put into automatic indexes.
    pub auto_index_rows: u64,
    /// Instructions carried out.
    pub instructions: u64,
    /// How often it was compiled anew.
    pub recompiled: u64,
    /// How often it was run.
    pub runs: u64,
    /// Bytes that it takes, about.
    pub memory: usize,
}

/// Who knows the statements that a program has prepared on a connection: the C library.
pub trait StatementList {
    /// All of them, the newest first.
    fn facts(&self) -> Vec<StatementFacts>;
    /// The instructions of the statement that a pointer value names; `None`: it names none.
    fn instructions(&self, pointer: &Value) -> Result<Option<Vec<Instruction>>>;
}
