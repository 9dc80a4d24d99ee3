//! What is gathered while the parts of a statement are planned.

use crate::bind::{Env, Target};
use crate::modify::KeyTrigger;
use crate::statement::{DatabaseUse, Sequence, StatementPlan, TriggerPlan};
use iolite_base::{Code, Result};

/// What is gathered while the parts of a statement are planned.
pub(crate) struct Compiler<'a> {
    pub env: &'a Env<'a>,
    pub triggers: Vec<TriggerPlan>,
    pub sequences: Vec<Sequence>,
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

    /// Hands over what was gathered.
    pub fn finish(self, out: &mut StatementPlan) {
        let all = &self.env.catalog.schemas;
        for db in (0..all.len()).filter(|db| self.databases & 1 << db != 0) {
            let written = self.written & 1 << db != 0;
            out.databases.push(DatabaseUse { db, written, cookie: all[db].cookie });
        }
        out.triggers = self.triggers;
        out.sequences = self.sequences;
        out.encoding = self.env.encoding;
        out.undo |= self.undo;
        out.counts_keys = self.counts_keys;
    }
}
