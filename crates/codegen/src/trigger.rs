//! Triggers: each becomes a sub-program, called with the rows OLD and NEW in registers.

use crate::context::{Codegen, Dest};
use crate::settings::Settings;
use crate::write::policy_number;
use iolite_base::{Code, Result};
use iolite_bytecode::{Opcode, P4, Program};
use iolite_plan::StatementPlan;
use iolite_plan::bound::Expr;
use iolite_plan::statement::{TriggerPlan, TriggerStep};
use iolite_plan::{Conflict, RaiseKind};

/// The program of a trigger.
pub(crate) fn program(plan: &StatementPlan, t: &TriggerPlan, settings: &Settings) -> Result<Program> {
    let mut g = Codegen::new(plan, settings);
    (g.nested, g.in_trigger) = (&t.nested, true);
    let end = g.b.label();
    g.b.emit4(Opcode::Trace, 0, 0, 0, P4::Name(format!("-- TRIGGER {}", t.trigger.name).as_str().into()));
    if let Some(e) = &t.when {
        g.jump_unless(e, end, true)?;
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

impl Codegen<'_> {
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
