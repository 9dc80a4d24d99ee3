//! Triggers: each becomes a sub-program, called with the rows OLD and NEW in registers.
//!
//! Parameters: old rowid, old columns, new rowid, new columns. A trigger that is met again while it is being compiled
//! is referred to by its number, so recursion needs no second copy.

use crate::context::{Codegen, Dest};
use crate::write::{Row, policy_number};
use iolite_base::{Code, Result};
use iolite_bytecode::{Label, Opcode, P4, Program};
use iolite_catalog::Trigger;
use iolite_plan::Planner;
use iolite_plan::bind::{Binder, Target, TriggerScope};
use iolite_plan::bound::Expr;
use iolite_sql::ast::{self, Conflict, RaiseKind, Stmt, TriggerEvent, TriggerTime};
use std::rc::Rc;

/// What happens to a row.
pub(crate) enum Event {
    Insert,
    Delete,
    /// With the columns that change.
    Update(Vec<bool>),
}

/// Compiled triggers of a statement.
#[derive(Default)]
pub(crate) struct TriggerCache {
    list: Vec<Compiled>,
}

/// One trigger under one `OR` policy; without a program while it is being compiled.
struct Compiled {
    trigger: Rc<Trigger>,
    or: Option<Conflict>,
    program: Option<Rc<Program>>,
}

impl TriggerCache {
    /// The finished programs, by number.
    pub fn programs(&self) -> Vec<Rc<Program>> {
        self.list.iter().filter_map(|c| c.program.clone()).collect()
    }
}

/// The trigger that is being compiled.
pub(crate) struct TriggerContext {
    /// The statement's `OR` policy, which overrules those of the statements in the body.
    pub or: Option<Conflict>,
}

impl Event {
    fn fits(&self, t: &Trigger, target: &Target) -> bool {
        match (self, &t.event) {
            (Event::Insert, TriggerEvent::Insert) | (Event::Delete, TriggerEvent::Delete) => true,
            (Event::Update(changed), TriggerEvent::Update(of)) => {
                of.is_empty() || of.iter().any(|n| target.table.column(&n.text).is_some_and(|c| changed[c]))
            }
            _ => false,
        }
    }
}

impl Codegen<'_> {
    fn triggers(&self, t: &Target, e: &Event) -> Vec<(usize, Rc<Trigger>)> {
        let all = self.env.catalog.triggers_of(t.db, &t.table);
        all.into_iter().filter(|(_, tr)| e.fits(tr, t)).collect()
    }

    /// Whether any trigger fires for the event.
    pub fn has_triggers(&self, t: &Target, e: &Event) -> bool {
        !self.triggers(t, e).is_empty()
    }

    /// Whether any trigger fires at that time.
    pub fn has_triggers_at(&self, t: &Target, e: &Event, time: TriggerTime) -> bool {
        self.triggers(t, e).iter().any(|(_, tr)| tr.time == time)
    }

    /// Whether the table has triggers at all.
    pub fn has_any_trigger(&self, t: &Target) -> bool {
        !self.env.catalog.triggers_of(t.db, &t.table).is_empty()
    }

    /// Runs the triggers of one time. `ignore`: where RAISE(IGNORE) goes.
    #[allow(clippy::too_many_arguments)]
    pub fn fire(
        &mut self,
        t: &Target,
        e: &Event,
        time: TriggerTime,
        old: Option<Row>,
        new: Option<Row>,
        ignore: Label,
        or: Option<Conflict>,
    ) -> Result<()> {
        let list: Vec<_> = self.triggers(t, e).into_iter().filter(|(_, tr)| tr.time == time).collect();
        if list.is_empty() {
            return Ok(());
        }
        self.needs_statement = true;
        let n = t.table.columns.len();
        let params = self.b.regs(2 * (n + 1));
        for (k, row) in [old, new].into_iter().enumerate() {
            let base = params + (k * (n + 1)) as i32;
            if let Some(r) = row {
                self.copy(r.rowid, base);
                for c in 0..n as i32 {
                    self.copy(r.first + c, base + 1 + c);
                }
            }
        }
        for (db, tr) in list {
            let number = self.trigger_program(t, db, &tr, or)?;
            self.b.jump(Opcode::Program, params, ignore, number as i32);
            if !self.settings.recursive_triggers {
                self.b.p5(1);
            }
        }
        Ok(())
    }

    /// The number of a trigger's program, compiling it at the first mention.
    fn trigger_program(
        &mut self,
        t: &Target,
        db: usize,
        tr: &Rc<Trigger>,
        or: Option<Conflict>,
    ) -> Result<usize> {
        let cache = self.trigger_programs.get_or_insert_default().clone();
        let known = cache.borrow().list.iter().position(|c| Rc::ptr_eq(&c.trigger, tr) && c.or == or);
        if let Some(k) = known {
            return Ok(k);
        }
        let number = {
            let mut c = cache.borrow_mut();
            c.list.push(Compiled { trigger: tr.clone(), or, program: None });
            c.list.len() - 1
        };
        let mut g = self.child();
        g.trigger = Some(TriggerContext { or });
        g.trigger_body(t, db, tr)?;
        self.databases |= g.databases;
        self.written |= g.written;
        let mut p = Program::default();
        g.finish(usize::MAX, &mut p)?;
        p.trigger = Some(tr.name.clone());
        cache.borrow_mut().list[number].program = Some(Rc::new(p));
        Ok(number)
    }

    fn trigger_body(&mut self, t: &Target, db: usize, tr: &Trigger) -> Result<()> {
        let scope = |old, new| TriggerScope { table: t.table.clone(), old, new, db };
        let (old, new) = match tr.event {
            TriggerEvent::Insert => (false, true),
            TriggerEvent::Delete => (true, false),
            TriggerEvent::Update(_) => (true, true),
        };
        let end = self.b.label();
        if let Some(w) = &tr.ast.when {
            let mut b = Binder::new(self.env, &tr.sql);
            b.trigger = Some(scope(old, new));
            let e = b.expr(w).map_err(iolite_base::Error::without_offset)?;
            self.plan_exprs(std::iter::once(&e))?;
            self.jump_unless(&e, end, true)?;
        }
        for (stmt, _) in &tr.ast.body {
            let mut b = Binder::new(self.env, &tr.sql);
            b.trigger = Some(scope(old, new));
            self.trigger_statement(&mut b, stmt).map_err(iolite_base::Error::without_offset)?;
            if !matches!(stmt, Stmt::Select(_)) {
                self.b.emit(Opcode::ResetCount, 0, 0, 0);
            }
        }
        self.b.place(end);
        Ok(())
    }

    fn trigger_statement(&mut self, b: &mut Binder<'_>, stmt: &Stmt) -> Result<()> {
        let or = self.trigger.as_ref().and_then(|t| t.or);
        match stmt {
            Stmt::Select(s) => {
                let bound = b.select(s)?;
                self.touch_databases(b.databases);
                let mut p = Planner::new(self.env);
                let plan = p.select(bound)?;
                self.take_plans(p);
                // Rows go nowhere, but expressions with effects (RAISE) are computed.
                self.query(&plan, &Dest::Discard)
            }
            Stmt::Insert(s) => {
                let mut bound = b.insert(s)?;
                self.touch_databases(b.databases);
                bound.or = or.or(bound.or);
                bound.returning.clear();
                self.insert(&bound)
            }
            Stmt::Update(s) => {
                let mut bound = b.update(s)?;
                self.touch_databases(b.databases);
                bound.or = or.or(bound.or);
                bound.returning.clear();
                self.update(&bound)
            }
            Stmt::Delete(s) => {
                let mut bound = b.delete(s)?;
                self.touch_databases(b.databases);
                bound.returning.clear();
                self.delete(&bound)
            }
            _ => self.unsupported("this statement in a trigger"),
        }
    }

    /// `RAISE(...)`.
    pub fn raise(&mut self, kind: RaiseKind, message: Option<&Expr>) -> Result<()> {
        let code = Code::ConstraintTrigger.number() as i32;
        match kind {
            RaiseKind::Ignore => {
                self.b.emit(Opcode::Halt, 0, policy_number(Conflict::Ignore), 0);
            }
            other => {
                let policy = match other {
                    RaiseKind::Rollback => Conflict::Rollback,
                    RaiseKind::Fail => Conflict::Fail,
                    _ => Conflict::Abort,
                };
                let text = match message {
                    Some(Expr::Const(iolite_value::Value::Text(b, _))) => {
                        self.b.emit4(
                            Opcode::Halt,
                            code,
                            policy_number(policy),
                            0,
                            P4::Name(iolite_base::raw_text::encode(b).as_ref().into()),
                        );
                        return Ok(());
                    }
                    Some(e) => self.expr(e)?.reg,
                    None => 0,
                };
                self.b.emit(Opcode::Halt, code, policy_number(policy), text);
            }
        }
        Ok(())
    }
}

/// The time at which a trigger of this kind of table may fire.
pub(crate) fn check_time(c: &ast::CreateTrigger, is_view: bool) -> Option<String> {
    let name = &c.table.name.text;
    match (is_view, c.time) {
        (true, TriggerTime::Before) => Some(format!("cannot create BEFORE trigger on view: {name}")),
        (true, TriggerTime::After) => Some(format!("cannot create AFTER trigger on view: {name}")),
        (false, TriggerTime::InsteadOf) => Some(format!("cannot create INSTEAD OF trigger on table: {name}")),
        _ => None,
    }
}
