//! What CREATE, DROP and REINDEX do: `create` and `remove` decide the steps, `names` knows which names may be taken.

mod create;
mod names;
mod remove;

use crate::bind::Binder;
use crate::compiler::Compiler;
use crate::plan::NestedPlans;
use crate::statement::define::{DefinePlan, Step};
use iolite_base::{Code, Result};
use iolite_sql::ast::Stmt;

impl Compiler<'_> {
    /// Plans a change of the schema; `text` is the statement's own text, a part of the binder's.
    pub fn define(
        &mut self,
        b: &mut Binder<'_>,
        stmt: &Stmt,
        text: &str,
        nested: &mut NestedPlans,
    ) -> Result<DefinePlan> {
        let steps = match stmt {
            Stmt::CreateTable(c) => self.create_table(b, c, text, nested)?,
            Stmt::CreateIndex(c) => self.create_index(b, c, text)?,
            Stmt::CreateView(c) => self.create_view(b, c, text)?,
            Stmt::CreateTrigger(c) => self.create_trigger(b, c, text)?,
            Stmt::Drop { kind, if_exists, name } => {
                let mut steps = self.empty_for_keys(b, *kind, name, nested)?;
                steps.extend(self.drop_object(*kind, *if_exists, name)?);
                steps
            }
            Stmt::CreateVirtualTable(c) => self.create_virtual_table(b, c, text)?,
            Stmt::Reindex(what) => self.reindex(b, what.as_ref())?,
            _ => return Err(Code::Internal.into()),
        };
        Ok(DefinePlan { steps })
    }

    /// The step after which everybody notices that the schema has changed.
    fn new_cookie(&self, db: usize) -> Step {
        Step::SetCookie { db, cookie: self.env.catalog.schemas[db].cookie.wrapping_add(1) }
    }
}
