//! Which triggers a change fires, and what they do: each is bound and planned once for a statement and an `OR` policy,
//! at its first mention. A trigger that is met again while it is being planned is referred to by its number, so that
//! recursion needs no second plan.

use crate::bind::{Binder, Target, TriggerScope};
use crate::bound::Select;
use crate::compiler::Compiler;
use crate::plan::{NestedPlans, SelectPlan};
use crate::planner::Planner;
use crate::statement::modify::RowAction;
use crate::statement::{TriggerPlan, TriggerStep};
use iolite_base::{Error, Result};
use iolite_catalog::Trigger;
use iolite_sql::ast::{Conflict, Stmt, TriggerEvent, TriggerTime};
use std::rc::Rc;

/// What happens to a row.
pub(crate) enum Event {
    Insert,
    Delete,
    /// With the columns that are assigned.
    Update(Vec<bool>),
}

impl Event {
    fn fits(&self, t: &Trigger, target: &Target) -> bool {
        match (self, &t.event) {
            (Event::Insert, TriggerEvent::Insert) | (Event::Delete, TriggerEvent::Delete) => true,
            (Event::Update(assigned), TriggerEvent::Update(of)) => {
                of.is_empty() || of.iter().any(|n| target.table.column(&n.text).is_some_and(|c| assigned[c]))
            }
            _ => false,
        }
    }
}

/// The triggers that an event fires, with their databases.
pub(crate) struct Fired(Vec<(usize, Rc<Trigger>)>);

impl Fired {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one fires at that time.
    pub fn at(&self, time: TriggerTime) -> bool {
        self.0.iter().any(|(_, t)| t.time == time)
    }
}

impl Compiler<'_> {
    /// The triggers that an event fires.
    pub fn fired(&self, t: &Target, e: &Event) -> Fired {
        let mut all = match self.silent {
            true => Vec::new(),
            false => self.env.catalog.triggers_of(t.db, &t.table),
        };
        all.retain(|(db, tr)| (self.env.triggers || *db == 1) && e.fits(tr, t));
        Fired(all)
    }

    /// What the triggers of one time do.
    pub fn actions(
        &mut self,
        t: &Target,
        fired: &Fired,
        time: TriggerTime,
        or: Option<Conflict>,
    ) -> Result<Vec<RowAction>> {
        let mut out = Vec::new();
        for (db, trigger) in fired.0.iter().filter(|(_, tr)| tr.time == time) {
            out.push(RowAction::Trigger(self.trigger(t, *db, trigger, or)?));
        }
        Ok(out)
    }

    /// The number of a trigger's plan.
    pub fn trigger(
        &mut self,
        t: &Target,
        db: usize,
        trigger: &Rc<Trigger>,
        or: Option<Conflict>,
    ) -> Result<usize> {
        let known = self.triggers.iter().position(|p| Rc::ptr_eq(&p.trigger, trigger) && p.or == or);
        if let Some(k) = known {
            return Ok(k);
        }
        let number = self.triggers.len();
        self.triggers.push(TriggerPlan {
            trigger: trigger.clone(),
            or,
            when: None,
            steps: Vec::new(),
            nested: NestedPlans::default(),
        });
        // One binder for all statements: their numbers go on.
        let mut b = Binder::new(self.env, &trigger.sql);
        let (old, new) = match trigger.event {
            TriggerEvent::Insert => (false, true),
            TriggerEvent::Delete => (true, false),
            TriggerEvent::Update(_) => (true, true),
        };
        b.trigger = Some(TriggerScope { table: t.table.clone(), old, new, db, table_db: t.db });
        // What a foreign key does has no name.
        if !self.key_triggers.iter().any(|k| Rc::ptr_eq(&k.trigger, trigger)) {
            b.ask_for(&trigger.name);
        }
        let mut nested = NestedPlans::default();
        if let Some(w) = &trigger.ast.when {
            let e = b.expr(w).map_err(Error::without_offset)?;
            let mut p = Planner::after(self.env, &b, &mut nested);
            p.nested(&e)?;
            self.triggers[number].when = Some(e);
        }
        let silent = std::mem::take(&mut self.silent);
        for (stmt, _) in &trigger.ast.body {
            let step = self.trigger_step(&mut b, stmt, or, &mut nested).map_err(Error::without_offset)?;
            self.triggers[number].steps.push(step);
        }
        self.silent = silent;
        self.databases |= b.databases;
        self.triggers[number].nested = nested;
        Ok(number)
    }

    fn trigger_step(
        &mut self,
        b: &mut Binder<'_>,
        stmt: &Stmt,
        or: Option<Conflict>,
        nested: &mut NestedPlans,
    ) -> Result<TriggerStep> {
        let plan = match stmt {
            Stmt::Select(s) => {
                let mut bound = Select::with_one_arm();
                b.select_into(s, &mut bound)?;
                let mut plan = SelectPlan::with_one_arm();
                Planner::after(self.env, b, nested).select_into(&mut bound, &mut plan)?;
                return Ok(TriggerStep::Query(Box::new(plan)));
            }
            Stmt::Insert(s) => {
                let mut bound = b.insert(s)?;
                bound.or = or.or(bound.or);
                bound.returning.clear();
                self.insert(bound, Planner::after(self.env, b, nested))?
            }
            Stmt::Update(s) => {
                let mut bound = b.update(s)?;
                bound.or = or.or(bound.or);
                bound.returning.clear();
                self.update(bound, Planner::after(self.env, b, nested))?
            }
            Stmt::Delete(s) => {
                let mut bound = b.delete(s)?;
                bound.returning.clear();
                self.delete(bound, Planner::after(self.env, b, nested))?
            }
            _ => return Err(Error::sql("this statement in a trigger is not supported yet")),
        };
        Ok(TriggerStep::Modify(Box::new(plan)))
    }
}
