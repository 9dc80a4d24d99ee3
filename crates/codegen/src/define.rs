//! CREATE, DROP, REINDEX: the steps of a plan, one after the other.

use crate::context::{Codegen, Dest, Place};
use iolite_base::{Code, Result};
use iolite_bytecode::{Opcode, P4, p5};
use iolite_plan::bind::Target;
use iolite_plan::statement::define::{DefinePlan, Object, SchemaRow, Step};

/// What the steps so far have left.
#[derive(Default)]
struct Made {
    /// Registers of the roots of new trees.
    trees: Vec<i32>,
    /// The cursor on the schema table, while rows are being added.
    schema: Option<i32>,
    /// The register of the row number that is reserved there.
    reserved: Option<i32>,
}

impl Codegen<'_> {
    /// Codes a change of the schema.
    pub fn define(&mut self, d: &DefinePlan) -> Result<()> {
        let mut made = Made::default();
        for step in &d.steps {
            if !matches!(step, Step::AddRow { .. } | Step::ReserveRow { .. } | Step::CreateTree { .. })
                && let Some(cursor) = made.schema.take()
            {
                self.b.emit(Opcode::Close, cursor, 0, 0);
            }
            self.step(step, &mut made)?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step, made: &mut Made) -> Result<()> {
        match step {
            Step::StartFile { db } => self.start_file(*db),
            Step::CreateTree { db, is_index } => {
                let root = self.b.reg();
                self.b.emit(Opcode::CreateBtree, *db as i32, root, 1 + *is_index as i32);
                made.trees.push(root);
            }
            Step::ReserveRow { db } => {
                let cursor = self.schema_cursor(*db, made);
                let first = self.b.regs(7);
                self.b.emit(Opcode::NewRowid, cursor, first, 0);
                self.b.emit(Opcode::Null, 0, first + 1, first + 5);
                self.b.emit(Opcode::MakeRecord, first + 1, 5, first + 6);
                self.b.emit(Opcode::Insert, cursor, first + 6, first);
                self.b.p5(p5::APPEND);
                made.reserved = Some(first);
            }
            Step::AddRow { db, row } => {
                let cursor = self.schema_cursor(*db, made);
                self.schema_row(cursor, row, &made.trees, made.reserved.take())?;
            }
            Step::FillIndex { target, tree } => {
                let root = tree.map(|k| made.trees[k]);
                if root.is_none() {
                    let root = target.indexes[0].index.root.get() as i32;
                    self.b.emit(Opcode::Clear, root, target.db as i32, 0);
                }
                self.fill_index(target, root)?;
            }
            Step::Store { query, db, tree, affinities } => {
                let cursor = self.b.cursor();
                let n = P4::Int(affinities.len() as i64);
                self.b.emit4(Opcode::OpenWrite, cursor, made.trees[*tree], *db as i32, n);
                self.b.p5(p5::ROOT_IN_REGISTER);
                self.query(query, &Dest::Table { cursor, affinities: Some(affinities.clone()) })?;
                self.b.emit(Opcode::Close, cursor, 0, 0);
            }
            Step::Empty { rows, referred } => {
                let over = self.b.label();
                if !referred {
                    self.b.jump(Opcode::FkIfZero, 1, over, 0);
                }
                self.modify(rows)?;
                self.b.place(over);
            }
            Step::Run { sql } => {
                self.b.emit4(Opcode::SqlExec, 0, 0, 0, P4::Name(sql.as_str().into()));
            }
            Step::SetCookie { db, cookie } => {
                self.b.emit(Opcode::SetCookie, *db as i32, 1, *cookie as i32);
            }
            Step::ReadSchema { db, table } => {
                self.b.emit4(Opcode::ParseSchema, *db as i32, 0, 0, P4::Name(table.clone()));
            }
            Step::MakeVirtual { db, name } => {
                self.b.emit4(Opcode::VCreate, *db as i32, 0, 0, P4::Name(name.clone()));
            }
            Step::DestroyVirtual { db, name } => {
                self.b.emit4(Opcode::VDestroy, *db as i32, 0, 0, P4::Name(name.clone()));
            }
            Step::FreeTrees { db, roots } => self.free_trees(*db, roots),
            Step::Forget { db, what, name } => {
                let op = match what {
                    Object::Table => Opcode::DropTable,
                    Object::Index => Opcode::DropIndex,
                    Object::Trigger => Opcode::DropTrigger,
                };
                self.b.emit4(op, *db as i32, 0, 0, P4::Name(name.clone()));
            }
        }
        Ok(())
    }

    fn start_file(&mut self, db: usize) {
        let r = self.b.temp();
        self.b.emit(Opcode::ReadCookie, db as i32, r, 2);
        let at = self.b.emit(Opcode::If, r, 0, 0);
        self.b.emit(Opcode::SetCookie, db as i32, 2, 4);
        self.b.emit(Opcode::SetCookie, db as i32, 5, self.encoding as i32);
        self.b.jump_here(at);
        self.b.free_temp(r);
    }

    /// The cursor on the schema table; it stays open while rows are added.
    fn schema_cursor(&mut self, db: usize, made: &mut Made) -> i32 {
        *made.schema.get_or_insert_with(|| {
            let c = self.b.cursor();
            self.b.emit4(Opcode::OpenWrite, c, 1, db as i32, P4::Int(5));
            c
        })
    }

    /// Adds a row to the schema table, or fills the one whose number is in the register `reserved`. `trees`: registers of the
    /// roots of new trees.
    fn schema_row(
        &mut self,
        cursor: i32,
        row: &SchemaRow,
        trees: &[i32],
        reserved: Option<i32>,
    ) -> Result<()> {
        let first = self.b.regs(7);
        match reserved {
            Some(r) => self.copy(r, first),
            None => {
                self.b.emit(Opcode::NewRowid, cursor, first, 0);
            }
        }
        self.b.load_text(row.kind, first + 1)?;
        self.b.load_text(&row.name, first + 2)?;
        self.b.load_text(&row.table, first + 3)?;
        match row.tree {
            Some(k) => self.copy(trees[k], first + 4),
            None => {
                self.b.emit(Opcode::Integer, 0, first + 4, 0);
            }
        }
        match &row.sql {
            Some(s) => self.b.load_text(s, first + 5)?,
            None => {
                self.b.emit(Opcode::Null, 0, first + 5, 0);
            }
        }
        self.b.emit(Opcode::MakeRecord, first + 1, 5, first + 6);
        self.b.emit(Opcode::Insert, cursor, first + 6, first);
        self.b.p5(if reserved.is_some() { 0 } else { p5::APPEND });
        Ok(())
    }

    /// Fills the only index of `t` from the table; `root`: register with its root page, if not the catalog's.
    fn fill_index(&mut self, t: &Target, root: Option<i32>) -> Result<()> {
        let i = &t.indexes[0];
        let table = self.b.cursor();
        self.open_cursor(table, t.db, &t.table, t.binding.as_deref(), Opcode::OpenRead)?;
        let own = self.b.cursor();
        let at = root.unwrap_or(i.index.root.get() as i32);
        self.b.emit4(Opcode::OpenWrite, own, at, t.db as i32, P4::KeyInfo(i.key.clone()));
        if root.is_some() {
            self.b.p5(p5::ROOT_IN_REGISTER);
        }
        let sorter = self.b.cursor();
        let n = i.index.columns.len();
        self.b.emit4(Opcode::SorterOpen, sorter, n as i32, 0, P4::KeyInfo(i.key.clone()));
        let place = Place::of_target(table, t);
        let done = self.b.label();
        self.b.jump(Opcode::Rewind, table, done, 0);
        let top = self.b.here();
        let next = self.b.label();
        if let Some(f) = &i.filter {
            self.at_place(t.id, place.clone(), |g| g.jump_unless(f, next, true))?;
        }
        let (first, n) = self.index_entry(t, i, place)?;
        let record = self.b.reg();
        let affinities = self.index_affinities(t, i);
        self.b.emit4(Opcode::MakeRecord, first, n as i32, record, affinities);
        self.b.emit(Opcode::SorterInsert, sorter, record, 0);
        self.b.place(next);
        self.b.emit(Opcode::Next, table, top as i32, 0);
        self.b.place(done);
        let over = self.b.label();
        self.b.jump(Opcode::SorterSort, sorter, over, 0);
        let unique = if i.index.unique.is_some() { i.index.key_len as i64 } else { 0 };
        self.b.jump4(Opcode::SorterFill, sorter, over, own, P4::Int(unique));
        if unique > 0 {
            let message = i.index.label(&t.table).clone();
            let code = Code::ConstraintUnique.number() as i32;
            self.b.emit4(Opcode::Halt, code, 2, 0, P4::Name(message));
            self.b.p5(p5::UNIQUE);
        }
        self.b.place(over);
        self.b.emit(Opcode::Close, table, 0, 0);
        self.b.emit(Opcode::Close, own, 0, 0);
        self.b.emit(Opcode::Close, sorter, 0, 0);
        Ok(())
    }

    /// Frees trees; where that moves another, the schema learns of it.
    fn free_trees(&mut self, db: usize, roots: &[u32]) {
        for root in roots {
            let moved = self.b.reg();
            self.b.emit(Opcode::Destroy, *root as i32, moved, db as i32);
            let skip = self.b.emit(Opcode::IfNot, moved, 0, 0);
            self.b.emit(Opcode::MoveRoot, db as i32, moved, *root as i32);
            self.b.jump_here(skip);
        }
    }
}
