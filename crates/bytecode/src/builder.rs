//! Makes programs: emits instructions, hands out registers and cursors, resolves labels.

use crate::{Insn, Opcode, P4, Program};
use iolite_base::{Bytes, Code, Few, Result};

/// An address not known yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Label(i32);

/// The addresses of labels, -1 where a label has no place yet: the first few lie here, since most programs have no more.
#[derive(Default)]
struct Labels {
    first: [i32; Labels::FEW],
    count: usize,
    more: Vec<i32>,
}

impl Labels {
    const FEW: usize = 20;

    /// Adds one; answers how many there are.
    fn push(&mut self, address: i32) -> usize {
        match self.first.get_mut(self.count) {
            Some(place) => *place = address,
            None => self.more.push(address),
        }
        self.count += 1;
        self.count
    }

    fn get(&self, k: usize) -> Option<i32> {
        match self.first.get(k) {
            Some(address) => (k < self.count).then_some(*address),
            None => self.more.get(k - Labels::FEW).copied(),
        }
    }

    fn at(&mut self, k: usize) -> &mut i32 {
        match self.first.get_mut(k) {
            Some(address) => address,
            None => &mut self.more[k - Labels::FEW],
        }
    }
}

/// A program being made.
///
/// Labels stand in `p2` as negative numbers until [`Builder::finish`]. Registers are counted from 1; temporary
/// ones go back to a pool with [`Builder::free_temp`].
pub struct Builder {
    insns: Vec<Insn>,
    labels: Labels,
    registers: i32,
    cursors: i32,
    sites: usize,
    temps: Few<i32>,
}

impl Builder {
    /// An empty program; with room for that of a simple statement, which is most of them.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Builder {
        Builder {
            insns: Vec::with_capacity(24),
            labels: Labels::default(),
            registers: 0,
            cursors: 0,
            sites: 0,
            temps: Few::new(),
        }
    }

    /// Appends an instruction and returns its address.
    pub fn emit(&mut self, op: Opcode, p1: i32, p2: i32, p3: i32) -> usize {
        self.insns.push(Insn { op, p5: 0, p1, p2, p3, p4: P4::None });
        self.insns.len() - 1
    }

    /// As [`Builder::emit`], with a fourth operand.
    pub fn emit4(&mut self, op: Opcode, p1: i32, p2: i32, p3: i32, p4: P4) -> usize {
        self.insns.push(Insn { op, p5: 0, p1, p2, p3, p4 });
        self.insns.len() - 1
    }

    /// As [`Builder::emit`], jumping to a label.
    pub fn jump(&mut self, op: Opcode, p1: i32, to: Label, p3: i32) -> usize {
        self.emit(op, p1, to.0, p3)
    }

    /// As [`Builder::emit4`], jumping to a label.
    pub fn jump4(&mut self, op: Opcode, p1: i32, to: Label, p3: i32, p4: P4) -> usize {
        self.emit4(op, p1, to.0, p3, p4)
    }

    /// Sets the last instruction's flags.
    pub fn p5(&mut self, p5: u16) {
        if let Some(i) = self.insns.last_mut() {
            i.p5 = p5;
        }
    }

    /// The instruction at an address.
    pub fn at(&mut self, addr: usize) -> &mut Insn {
        &mut self.insns[addr]
    }

    /// The address of the next instruction.
    pub fn here(&self) -> usize {
        self.insns.len()
    }

    /// A label to be placed later.
    pub fn label(&mut self) -> Label {
        Label(-(self.labels.push(-1) as i32))
    }

    /// Places a label here.
    pub fn place(&mut self, l: Label) {
        let here = self.insns.len() as i32;
        *self.labels.at((-l.0 - 1) as usize) = here;
    }

    /// Makes the instruction at `addr` jump here.
    pub fn jump_here(&mut self, addr: usize) {
        self.insns[addr].p2 = self.insns.len() as i32;
    }

    /// A label's number, for operands other than `p2` (`Jump`).
    pub fn raw(&self, l: Label) -> i32 {
        l.0
    }

    /// A register.
    pub fn reg(&mut self) -> i32 {
        self.regs(1)
    }

    /// The first of `n` consecutive registers.
    pub fn regs(&mut self, n: usize) -> i32 {
        let first = self.registers + 1;
        self.registers += n as i32;
        first
    }

    /// How many registers were handed out.
    pub fn register_count(&self) -> i32 {
        self.registers
    }

    /// A register that will be given back.
    pub fn temp(&mut self) -> i32 {
        match self.temps.pop() {
            Some(r) => r,
            None => self.reg(),
        }
    }

    /// Gives a temporary register back.
    pub fn free_temp(&mut self, r: i32) {
        debug_assert!(!self.temps.contains(&r));
        self.temps.push(r);
    }

    /// Forgets the pool: what was free so far is not handed out again (code that runs as a co-routine must not
    /// share registers with its caller).
    pub fn drop_temps(&mut self) -> Few<i32> {
        std::mem::take(&mut self.temps)
    }

    /// A cursor number.
    pub fn cursor(&mut self) -> i32 {
        self.cursors += 1;
        self.cursors - 1
    }

    /// A function call site.
    pub fn site(&mut self) -> usize {
        self.sites += 1;
        self.sites - 1
    }

    /// Emits a load of an integer.
    pub fn load_int(&mut self, v: i64, into: i32) {
        match i32::try_from(v) {
            Ok(small) => self.emit(Opcode::Integer, small, into, 0),
            Err(_) => self.emit4(Opcode::Int64, 0, into, 0, P4::Int(v)),
        };
    }

    /// Emits a load of text.
    pub fn load_text(&mut self, s: &str, into: i32) -> Result<()> {
        let b = Bytes::copy_of(&iolite_base::raw_text::decode(s))?;
        self.emit4(Opcode::String8, 0, into, 0, P4::Bytes(b));
        Ok(())
    }

    /// Resolves labels, marks the instructions that are followed by a `Column` of their own cursor, and makes the
    /// program. `limit` is the largest allowed number of instructions. The builder is empty afterwards.
    pub fn finish(&mut self, limit: usize, program: &mut Program) -> Result<()> {
        if self.insns.len() > limit {
            return Err(Code::Nomem.into());
        }
        let labels = &self.labels;
        let resolve = |p: &mut i32| {
            if *p < 0
                && let Some(at) = labels.get((-*p - 1) as usize)
            {
                debug_assert!(at >= 0, "label {} was never placed", *p);
                *p = at;
            }
        };
        crate::origin::trace(&mut self.insns);
        let mut onces = 0;
        for at in 0..self.insns.len() {
            let i = &mut self.insns[at];
            if JUMPS[i.op as usize] {
                resolve(&mut i.p2);
                if i.op == Opcode::Jump {
                    resolve(&mut i.p1);
                    resolve(&mut i.p3);
                } else if i.op == Opcode::Once {
                    i.p1 = onces;
                    onces += 1;
                }
            }
            let next = match i.op {
                Opcode::Column => at + 1,
                Opcode::Next => i.p2 as usize,
                _ => continue,
            };
            let cursor = i.p1;
            if self.insns.get(next).is_some_and(|n| n.op == Opcode::Column && n.p1 == cursor) {
                self.insns[at].p5 |= crate::p5::THEN_COLUMN;
            }
        }
        program.insns = std::mem::take(&mut self.insns);
        program.registers = self.registers as usize + 1;
        program.cursors = self.cursors as usize;
        program.sites = self.sites;
        program.onces = onces as usize;
        Ok(())
    }
}

/// [`Opcode::jumps`] by number.
static JUMPS: [bool; Opcode::ALL.len()] = {
    let mut t = [false; Opcode::ALL.len()];
    let mut k = 0;
    while k < t.len() {
        t[Opcode::ALL[k] as usize] = Opcode::ALL[k].jumps();
        k += 1;
    }
    t
};
