//! Recursive common table expressions: a queue of rows, each taken out, delivered, and fed to the recursive arms
//! (documentation page `lang_with`, section 3).

use crate::context::{Codegen, Dest, Place, QueueDest};
use crate::select::Limits;
use iolite_base::Result;
use iolite_bytecode::{Opcode, P4};
use iolite_plan::bound::OrderTerm;
use iolite_plan::explain::Role;
use iolite_plan::plan::*;
use iolite_value::{KeyInfo, compare::KeyField};
use std::rc::Rc;

impl Codegen<'_> {
    /// Codes a recursive query.
    pub fn recursive(&mut self, q: &FromPlan, r: &RecursivePlan, dest: &Dest) -> Result<()> {
        let width = q.select.columns.len();
        let end = self.b.label();
        let limits = self.limits(r.limit.as_ref(), r.offset.as_ref(), end)?;
        let queue = self.b.cursor();
        let ordered = !r.order_by.is_empty();
        let keys = if ordered { r.order_by.len() + 1 } else { 0 };
        let key = if ordered {
            let mut fields: Vec<KeyField> = r.order_by.iter().map(OrderTerm::key_field).collect();
            fields.push(KeyField::default());
            let key = Rc::new(KeyInfo { enc: self.encoding, fields, columns: keys + width });
            self.b.emit4(Opcode::QueueOpen, queue, 0, 0, P4::KeyInfo(key.clone()));
            Some(key)
        } else {
            self.b.emit(Opcode::QueueOpen, queue, 0, 0);
            None
        };
        let distinct = if r.distinct {
            let d = self.b.cursor();
            let key = self.set_key(&q.select);
            self.b.emit4(Opcode::SetOpen, d, 0, 0, key);
            Some(d)
        } else {
            None
        };
        let order = r.order_by.iter().enumerate().filter_map(|(i, t)| t.column.map(|c| (i, c))).collect();
        let into = Dest::Queue(Rc::new(QueueDest { cursor: queue, distinct, order, key }));
        let former = self.begin(r, Role::Setup);
        self.query(&q.select, &into)?;
        self.resume(former);

        let (row, current) = (self.b.reg(), self.b.cursor());
        self.b.emit(Opcode::OpenPseudo, current, row, (keys + width) as i32);
        let top = self.b.here();
        self.b.jump(Opcode::QueueTake, queue, end, row);
        self.b.emit(Opcode::NullRow, current, 1, 0);
        let first = match dest {
            Dest::Coroutine { first, .. } | Dest::Registers { first } => *first,
            _ => self.b.regs(width),
        };
        let skip = self.b.label();
        if let Some(off) = limits.offset {
            self.b.jump(Opcode::IfPos, off, skip, 1);
        }
        for c in 0..width as i32 {
            self.b.emit(Opcode::Column, current, keys as i32 + c, first + c);
        }
        self.deliver(dest, first, width, end)?;
        if let Some(l) = limits.limit {
            self.b.jump(Opcode::DecrJumpZero, l, end, 0);
        }
        self.b.place(skip);
        self.places.insert(r.id, Place::Fields { cursor: current, offset: keys as i32 });
        let former = self.begin(r, Role::Step);
        for arm in &r.arms {
            let done = self.b.label();
            self.core(arm, &[], Limits::default(), &into, done)?;
            self.b.place(done);
        }
        self.resume(former);
        self.b.emit(Opcode::Goto, 0, top as i32, 0);
        self.b.place(end);
        Ok(())
    }

    /// Puts a row into the queue.
    pub fn enqueue(&mut self, q: &QueueDest, first: i32, width: usize) -> Result<()> {
        let n = width as i32;
        let skip = self.b.label();
        let record = self.b.temp();
        if let Some(d) = q.distinct {
            self.b.jump(Opcode::SetAdd, d, skip, first);
        }
        match &q.key {
            None => {
                self.b.emit(Opcode::MakeRecord, first, n, record);
                self.b.emit(Opcode::QueueAdd, q.cursor, record, 0);
            }
            Some(key) => {
                let keys = key.fields.len();
                let base = self.b.regs(keys + width);
                for (i, c) in &q.order {
                    self.copy(first + *c as i32, base + *i as i32);
                }
                self.b.emit(Opcode::Sequence, q.cursor, base + keys as i32 - 1, 0);
                for c in 0..n {
                    self.copy(first + c, base + keys as i32 + c);
                }
                self.b.emit(Opcode::MakeRecord, base, keys as i32 + n, record);
                self.b.emit(Opcode::QueueAdd, q.cursor, record, 0);
            }
        }
        self.b.free_temp(record);
        self.b.place(skip);
        Ok(())
    }
}
