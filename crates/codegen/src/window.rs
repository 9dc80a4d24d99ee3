//! Window functions: the input's rows go into a list, and the result is made of the list's rows and the functions' values,
//! which stand in registers as a table's columns do. A subroutine passes on the rows that have their values: when the
//! input has ended and, where it comes in the windows' order, whenever enough rows were added.

use crate::context::{Codegen, Dest, Place};
use crate::select::Limits;
use iolite_base::Result;
use iolite_bytecode as code;
use iolite_bytecode::{FunctionCall, Label, Opcode, P4};
use iolite_plan::bound::*;
use iolite_plan::explain::{Part, Role};
use iolite_plan::plan::*;
use iolite_plan::{FrameExclude, FrameUnit};
use iolite_value::compare::KeyField;
use std::rc::Rc;

impl Codegen<'_> {
    /// Codes an arm with window functions.
    pub fn windowed(
        &mut self,
        c: &CorePlan,
        w: &WindowPlan,
        order: &[OrderTerm],
        limits: Limits,
        dest: &Dest,
        end: Label,
    ) -> Result<()> {
        let mut sink = self.open_sink(&c.result, order.into(), c.distinct, limits, dest, end)?;
        let cursor = self.b.cursor();
        let passes: Vec<code::WindowPass> = w.windows.iter().map(|p| self.window_pass(p)).collect();
        let passes: Rc<[code::WindowPass]> = passes.into();
        let former = self.begin(c, Role::Windows);
        let windows = self.present_line();
        let delivered = w.delivered().map_or(0, |terms| terms as i32 + 1);
        self.b.emit4(Opcode::WindowOpen, cursor, delivered, 0, P4::Windows(passes.clone()));
        for (p, pass) in w.windows.iter().zip(&*passes) {
            self.frame_offset(&p.frame.start, pass.start)?;
            self.frame_offset(&p.frame.end, pass.end)?;
        }
        self.b.emit(Opcode::WindowOffsets, cursor, 0, 0);
        if let Some(last) = w.windows.first() {
            self.begin(last, Role::Window);
        }
        let line = self.present_line();
        self.resume(former);
        let (filled, over, rows, back) = (self.b.label(), self.b.label(), self.b.label(), self.b.reg());
        let step = (delivered > 0).then_some((back, rows));
        self.core(&w.input, &[], Limits::default(), &Dest::Window { cursor, step }, filled)?;
        self.b.place(filled);
        self.resume(windows);
        self.b.jump(Opcode::WindowRun, cursor, over, 1);
        self.b.jump(Opcode::Gosub, back, rows, 0);
        self.b.jump(Opcode::Goto, 0, over, 0);
        self.b.place(rows);
        let calls: usize = w.windows.iter().map(|p| p.calls.len()).sum();
        let first = self.b.regs(w.input.result.len() + calls);
        self.places.insert(w.table, Place::Registers { rowid: 0, first });
        let (out, next) = (self.b.label(), self.b.label());
        self.resume(line);
        let top = self.b.here();
        self.b.jump(Opcode::WindowNext, cursor, out, first);
        self.row_begins();
        self.sink_row(&mut sink, next)?;
        self.b.place(next);
        self.b.emit(Opcode::Goto, 0, top as i32, 0);
        self.b.place(out);
        self.b.emit(Opcode::Return, back, 0, 0);
        self.b.place(over);
        self.close_sink(sink, Part::new(c, Role::Order))
    }

    /// A window; its frame's offsets have registers, and are not computed yet.
    fn window_pass(&mut self, p: &WindowPass) -> code::WindowPass {
        let field =
            |t: &OrderTerm| KeyField { coll: t.collation.clone(), desc: t.desc, nulls_large: t.nulls_large };
        let (start, end) = (self.frame_edge(&p.frame.start), self.frame_edge(&p.frame.end));
        let mut calls = Vec::with_capacity(p.calls.len());
        for c in &p.calls {
            let call = FunctionCall {
                function: c.call.function.clone(),
                args: c.args.len(),
                collation: c.call.collation.clone(),
                site: self.b.site(),
                pure: None,
                passes: false,
                bound: 0,
                origins: Vec::new(),
                cursor: None,
            };
            calls.push((Rc::new(call), c.args.clone(), c.filter));
        }
        code::WindowPass {
            partition: p.partition.clone(),
            order: p.order.iter().map(|(k, t)| (*k, field(t))).collect(),
            unit: match p.frame.unit {
                FrameUnit::Rows => code::FrameUnit::Rows,
                FrameUnit::Range => code::FrameUnit::Range,
                FrameUnit::Groups => code::FrameUnit::Groups,
            },
            start,
            end,
            exclude: match p.frame.exclude {
                FrameExclude::Nothing => code::FrameExclude::Nothing,
                FrameExclude::NoOthers => code::FrameExclude::NoOthers,
                FrameExclude::CurrentRow => code::FrameExclude::CurrentRow,
                FrameExclude::Group => code::FrameExclude::Group,
                FrameExclude::Ties => code::FrameExclude::Ties,
            },
            calls,
        }
    }

    fn frame_edge(&mut self, b: &FrameBound) -> code::FrameEdge {
        match b {
            FrameBound::UnboundedPreceding => code::FrameEdge::UnboundedPreceding,
            FrameBound::CurrentRow => code::FrameEdge::CurrentRow,
            FrameBound::UnboundedFollowing => code::FrameEdge::UnboundedFollowing,
            FrameBound::Preceding(_) => code::FrameEdge::Preceding(self.b.reg()),
            FrameBound::Following(_) => code::FrameEdge::Following(self.b.reg()),
        }
    }

    /// Computes a frame's offset into its register.
    fn frame_offset(&mut self, b: &FrameBound, edge: code::FrameEdge) -> Result<()> {
        match (b, edge) {
            (
                FrameBound::Preceding(e) | FrameBound::Following(e),
                code::FrameEdge::Preceding(reg) | code::FrameEdge::Following(reg),
            ) => self.expr_to(e, reg),
            _ => Ok(()),
        }
    }
}
