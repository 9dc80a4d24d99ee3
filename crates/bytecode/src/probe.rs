//! Programs that can be profiled.
//!
//! [`probed`] puts a `Probe` before each instruction, so that the interpreter itself knows nothing of profiles and a statement
//! that nobody profiles pays nothing. Instruction `k` comes to stand at `2k + 1` behind its probe, and all jumps lead to probes.
//! Which line of the plan an instruction works for is said by the `Explain` instructions, which the code generator leaves as
//! marks in a program to be profiled.

use crate::{Insn, Opcode, P4, Program, p5};
use std::rc::Rc;

/// What an `Explain` instruction says, in its `p3`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Mark {
    /// A line of the plan: what follows works for it, and a run of this is a run of it.
    Line = 0,
    /// A row of line `p1` begins.
    Row = 1,
    /// What follows works for line `p1` again, or for none if that is 0.
    Resume = 2,
}

impl Mark {
    /// The mark with this number; a line of the plan if there is none.
    fn of(p3: i32) -> Mark {
        [Mark::Row, Mark::Resume].into_iter().find(|&m| m as i32 == p3).unwrap_or(Mark::Line)
    }
}

/// A place that a probe counts: an instruction of the program, or of a trigger's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Site {
    /// The instruction.
    pub op: Opcode,
    /// The line of the plan for which it works.
    pub line: Option<i32>,
    /// Of an `Explain`: what it says, and of which line.
    pub mark: Option<(Mark, i32)>,
}

/// The program with probes, and their places by number. Programs of triggers have them too, and work for no line.
pub fn probed(program: &Program) -> (Program, Vec<Site>) {
    let mut sites = Vec::new();
    let mut out = with_probes(program, &mut sites);
    for sub in &mut out.subprograms {
        *sub = Rc::new(with_probes(sub, &mut sites));
    }
    (out, sites)
}

fn with_probes(program: &Program, sites: &mut Vec<Site>) -> Program {
    let mut out = program.clone();
    let mut line = None;
    let mut insns = Vec::with_capacity(2 * program.insns.len());
    for i in &program.insns {
        let mut i = i.clone();
        let mark = (i.op == Opcode::Explain).then(|| Mark::of(i.p3));
        match mark {
            Some(Mark::Line) => line = Some(i.p1),
            Some(Mark::Resume) => line = (i.p1 > 0).then_some(i.p1),
            _ => {}
        }
        insns.push(Insn { op: Opcode::Probe, p5: 0, p1: sites.len() as i32, p2: 0, p3: 0, p4: P4::None });
        sites.push(Site { op: i.op, line, mark: mark.map(|m| (m, i.p1)) });
        // What runs together otherwise has a probe between now.
        if matches!(i.op, Opcode::Column | Opcode::Next) {
            i.p5 &= !p5::THEN_COLUMN;
        }
        if i.op.jumps() {
            i.p2 *= 2;
        }
        match i.op {
            Opcode::Jump => (i.p1, i.p3) = (2 * i.p1, 2 * i.p3),
            Opcode::InitCoroutine => i.p3 *= 2,
            _ => {}
        }
        insns.push(i);
    }
    out.insns = insns;
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Builder;

    #[test]
    fn jumps_lead_to_the_probe_of_where_they_led() {
        let mut b = Builder::new();
        let end = b.label();
        b.jump(Opcode::Init, 0, end, 0);
        b.emit(Opcode::Explain, 7, 0, Mark::Line as i32);
        b.emit(Opcode::Integer, 1, 5, 0);
        b.emit(Opcode::Explain, 0, 0, Mark::Resume as i32);
        b.place(end);
        b.emit(Opcode::Halt, 0, 0, 0);
        let mut p = Program::default();
        b.finish(100, &mut p).unwrap();
        let (probed, sites) = probed(&p);
        assert_eq!(probed.insns.len(), 10);
        assert!(probed.insns.iter().step_by(2).all(|i| i.op == Opcode::Probe));
        assert_eq!(probed.insns[1].p2, 8);
        assert_eq!((probed.insns[5].p1, probed.insns[5].p2), (1, 5));
        let lines: Vec<_> = sites.iter().map(|s| s.line).collect();
        assert_eq!(lines, [None, Some(7), Some(7), None, None]);
        assert_eq!(sites[1].mark, Some((Mark::Line, 7)));
    }
}
