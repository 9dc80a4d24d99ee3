//! The columnar engine: whole arms of queries over vectors, from column segments derived from row pages.
//!
//! The row store is the truth; what is kept here is a function of its pages, and its validity is proved before each use
//! ([`Store`]). [`pays`] says of a block's plan whether it is one for columns; [`Compiled::new`] compiles it, or declines with a
//! reason; [`Compiled::run`] runs it, or says that it cannot (a value of an unforeseen kind, an error that SQL gives): then it is run by a
//! program. Answers are those of programs: order of rows and groups, overflow, errors.
//!
//! What it does not know: SQL text, programs, how a snapshot comes about.
#![deny(unsafe_code)]

mod decline;
mod expr;
mod kernel;
mod memory;
mod op;
mod pipeline;
mod profile;
mod query;
mod runtime;
mod sort;
mod star;
mod store;

pub use memory::{budget, set_budget, set_work_size, work_size};
pub use op::result::Answer;
pub use pipeline::pays;
pub use profile::Profile;
pub use runtime::Runtime;
pub use store::chunk::set_dictionary_entries;
pub use store::persist::Closing;
pub use store::{Counters, Store, set_segment_leaves};

use iolite_base::Result;
use iolite_plan::bound::Expr;
use iolite_plan::executor::Block;
use iolite_value::Value;

/// A block of a query that the engine can run.
pub struct Compiled {
    query: query::Query,
    /// Its name among the queries of its file.
    name: u64,
    params: Vec<Expr>,
}

impl Compiled {
    /// Compiles a block, or says why not. `overridden`: whether the user has put a function of his own in the place of the
    /// built-in one of this name.
    pub fn new(
        block: &Block<'_>,
        overridden: &dyn Fn(&str) -> bool,
    ) -> std::result::Result<Compiled, String> {
        let (query, params) = pipeline::compile::compile(block, overridden)?;
        Ok(Compiled { name: query.fingerprint(), query, params })
    }

    /// What has to be passed when it is run.
    pub fn params(&self) -> &[Expr] {
        &self.params
    }

    /// The tables that are read: database and root; those of nested queries behind the others, with their names.
    pub fn tables(&self) -> Vec<(usize, iolite_base::Pgno, Option<String>)> {
        let mut out = Vec::new();
        self.query.each_table(&mut |t, nested| {
            out.push((t.db, t.table.root.get(), nested.then(|| t.table.name.to_string())));
        });
        out
    }

    /// Whether all it looks at is a range of so few rows that rows are better whatever the table is.
    pub fn walks_few(&self, rt: &dyn Runtime, params: &[Value]) -> bool {
        pipeline::cost::walks_few(&self.query, rt, params, self.name).unwrap_or(false)
    }

    /// Runs the block with parameters; at most `wanted` rows are needed unless it is negative. `None`: not here. An error is one
    /// of the engine, or says that the run was ended or memory is short.
    pub fn run(&self, rt: &dyn Runtime, params: &[Value], wanted: i64) -> Result<Option<Answer>> {
        let Some(&(db, root, _)) = self.tables().first() else { return Ok(None) };
        let store = rt.store(db)?;
        let stamp = store.table(&rt.btree(db)?, root)?.stamp;
        if !rt.force() && store.refused(self.name, stamp) {
            return Ok(None);
        }
        let begun = Store::now();
        if !rt.force() && pipeline::cost::better_in_rows(&self.query, rt, params, wanted, self.name)? {
            return Ok(None);
        }
        let (rows, of_values) = self.tried(rt, params, wanted, begun)?;
        match rows {
            Ok(rows) => Ok(Some(rows)),
            Err(why) => {
                store.note_refusal(self.name, (!of_values).then_some(stamp), &why);
                Ok(None)
            }
        }
    }

    /// The rows, or why there are none, and whether that lies in values.
    #[allow(clippy::type_complexity)]
    fn tried(
        &self,
        rt: &dyn Runtime,
        params: &[Value],
        wanted: i64,
        begun: u64,
    ) -> Result<(std::result::Result<Answer, String>, bool)> {
        let mut refusal = pipeline::Refusal::default();
        let rows = pipeline::run(&self.query, rt, params, wanted, begun, &mut refusal)?;
        let why = || refusal.why.unwrap_or_else(|| "a form that columns do not know".into());
        Ok((rows.ok_or_else(why), refusal.of_values))
    }

    /// Whether it was left to rows when it last ran, although it was tried.
    pub fn was_refused(&self, store: &Store) -> bool {
        store.was_refused(self.name)
    }
}
