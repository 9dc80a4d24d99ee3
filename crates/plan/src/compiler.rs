//! What is gathered while the parts of a statement are planned.

use crate::bind::{Env, Target};
use crate::plan::VtabHandle;
use crate::statement::{DatabaseUse, Sequence, StatementPlan, TriggerPlan};
use iolite_base::{Code, Result};
use iolite_catalog::{Table, Trigger};
use std::rc::Rc;

/// The trigger that carries out a key's action.
pub(crate) struct KeyTrigger {
    pub child: Rc<Table>,
    pub key: usize,
    pub on_update: bool,
    pub trigger: Rc<Trigger>,
}

/// What is gathered while the parts of a statement are planned.
pub(crate) struct Compiler<'a> {
    pub env: &'a Env<'a>,
    pub triggers: Vec<TriggerPlan>,
    pub sequences: Vec<Sequence>,
    /// Virtual tables that are written to.
    pub virtual_tables: Vec<Rc<VtabHandle>>,
    /// Databases that are used, a bit each.
    pub databases: u64,
    /// Those of them that are written.
    pub written: u64,
    pub undo: bool,
    /// Violations of foreign keys are counted.
    pub counts_keys: bool,
    /// The triggers made for the actions of foreign keys.
    pub key_triggers: Vec<KeyTrigger>,
    /// No triggers fire: the rows of a table go that is dropped.
    pub silent: bool,
}

impl<'a> Compiler<'a> {
    pub fn new(env: &'a Env<'a>) -> Compiler<'a> {
        Compiler {
            env,
            triggers: Vec::new(),
            sequences: Vec::new(),
            virtual_tables: Vec::new(),
            databases: 0,
            written: 0,
            undo: false,
            counts_keys: false,
            key_triggers: Vec::new(),
            silent: false,
        }
    }

    /// Notes that a database is written.
    pub fn writes(&mut self, db: usize) {
        self.databases |= 1 << db;
        self.written |= 1 << db;
    }

    /// The number of a table's sequence, from 1; 0 for a table without AUTOINCREMENT.
    pub fn sequence(&mut self, t: &Target) -> Result<usize> {
        if !t.table.autoincrement {
            return Ok(0);
        }
        let Some(own) = self.env.catalog.schemas[t.db].table("sqlite_sequence") else {
            return Err(Code::CorruptSequence.into());
        };
        let known = self.sequences.iter().position(|s| s.db == t.db && s.table == t.table.name);
        Ok(1 + known.unwrap_or_else(|| {
            self.sequences.push(Sequence { db: t.db, table: t.table.name.clone(), root: own.root.get() });
            self.sequences.len() - 1
        }))
    }

    /// Hands over what was gathered: mostly the use of one database.
    pub fn finish(self, out: &mut StatementPlan) {
        let mut left = self.databases;
        while left != 0 {
            let db = left.trailing_zeros() as usize;
            left &= left - 1;
            // Work may name a database that has been detached.
            let Some(schema) = self.env.catalog.schemas.get(db) else { continue };
            let written = self.written & 1 << db != 0;
            out.databases.push(DatabaseUse { db, written, cookie: schema.cookie });
        }
        if !self.triggers.is_empty() {
            out.triggers = self.triggers;
        }
        if !self.virtual_tables.is_empty() {
            out.virtual_tables = self.virtual_tables;
        }
        if !self.sequences.is_empty() {
            out.sequences = self.sequences;
        }
        out.encoding = self.env.encoding;
        out.undo |= self.undo;
        out.counts_keys = self.counts_keys;
    }
}
