//! Triggers: each becomes a sub-program, called with the rows OLD and NEW in registers.
//!
//! A condition that only looks at these rows is computed by the caller: most rows fail it, and a call costs as much as a dozen comparisons.

use crate::context::{Codegen, Dest, Place};
use crate::settings::Settings;
use crate::write::policy_number;
use iolite_base::{Code, Result};
use iolite_bytecode::{Label, Opcode, P4, Program};
use iolite_ext::FunctionFlags;
use iolite_plan::StatementPlan;
use iolite_plan::bound::{ColumnRef, Expr, TableId};
use iolite_plan::statement::{TriggerPlan, TriggerStep};
use iolite_plan::{Conflict, RaiseKind};

/// The program of a trigger.
pub(crate) fn program(plan: &StatementPlan, t: &TriggerPlan, settings: &Settings) -> Result<Program> {
    let mut g = Codegen::new(plan, settings);
    (g.nested, g.in_trigger) = (&t.nested, true);
    let end = g.b.label();
    if !is_asked_before(t) {
        g.b.emit4(Opcode::Trace, 0, 0, 0, title(t));
        if let Some(e) = &t.when {
            g.jump_unless(e, end, true)?;
        }
    }
    for (i, step) in t.steps.iter().enumerate() {
        // A comment ends with its line.
        let text =
            t.trigger.ast.body.get(i).and_then(|(_, s)| t.trigger.sql.get(s.start as usize..s.end as usize));
        let text = format!("-- {}", text.unwrap_or_default().trim().replace(['\n', '\r', '\t', '\x0c'], " "));
        g.b.emit4(Opcode::Trace, 0, 0, 0, P4::Name(text.as_str().into()));
        match step {
            // Rows go nowhere, but expressions with effects (RAISE) are computed.
            TriggerStep::Query(q) => g.query(q, &Dest::Discard)?,
            TriggerStep::Modify(m) => {
                g.modify(m)?;
                g.b.emit(Opcode::ResetCount, 0, 0, 0);
            }
        }
    }
    g.b.place(end);
    let mut p = Program::default();
    g.finish(usize::MAX, &mut p)?;
    p.trigger = Some(t.trigger.name.clone());
    Ok(p)
}

/// What those are told that trace statements when a trigger begins.
fn title(t: &TriggerPlan) -> P4 {
    P4::Name(format!("-- TRIGGER {}", t.trigger.name).as_str().into())
}

/// Whether the caller computes the condition: it looks at the two rows alone. Functions like `last_insert_rowid()` have one value for
/// a run of the trigger, and another for a run of the statement.
fn is_asked_before(t: &TriggerPlan) -> bool {
    t.when.as_ref().is_some_and(|e| {
        !e.any(&mut |e| match e {
            Expr::Call(c) => !c.function.flags.has(FunctionFlags::DETERMINISTIC),
            Expr::Subquery(..) | Expr::Exists(_) | Expr::InSelect(_) | Expr::Raise(..) => true,
            _ => false,
        })
    })
}

/// The table whose columns stand for the parameters of a trigger, in the caller; no table has this number.
const PARAMETERS: TableId = 0;

impl Codegen<'_> {
    /// Calls a trigger, or what a foreign key does, with the parameters in the registers from `params` on. `ignore`: where RAISE(IGNORE)
    /// goes. `within`: also while it runs.
    pub fn fire(&mut self, number: usize, params: i32, ignore: Label, within: bool) -> Result<()> {
        let t = &self.triggers[number];
        let over = self.b.label();
        let asked = is_asked_before(t);
        if let Some(when) = t.when.as_ref().filter(|_| asked) {
            let at = self.b.jump(Opcode::Fire, 0, over, number as i32);
            self.b.at(at).p4 = title(t);
            self.b.p5(!within as u16);
            let mut when = when.clone();
            of_caller(&mut when);
            let place = Place::Registers { rowid: 0, first: params };
            self.at_place(PARAMETERS, place, |g| g.jump_unless(&when, over, true))?;
        }
        self.b.jump(Opcode::Program, params, ignore, number as i32);
        self.b.p5((!within && !asked) as u16);
        self.b.place(over);
        Ok(())
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

/// Makes parameters of the trigger columns of [`PARAMETERS`].
fn of_caller(e: &mut Expr) {
    match e {
        Expr::TriggerColumn(c, slot) => {
            *e = Expr::Column(ColumnRef { table: PARAMETERS, column: *slot as i32, ..c.clone() });
        }
        _ => e.children_mut(&mut of_caller),
    }
}
