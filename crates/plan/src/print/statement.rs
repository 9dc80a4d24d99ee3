//! The long form of plans, for those who work on the engine: all that was decided, one line each.

use super::{level, source_name};
use crate::bound::*;
use crate::plan::*;
use crate::statement::control::{Control, ControlKind};
use crate::statement::define::Step;
use crate::statement::modify::*;
use crate::statement::*;
use std::fmt::{Display, Write};

/// A bound query.
pub fn bound(q: &Select) -> String {
    let mut p = Printer::default();
    p.deeper(|p| {
        for c in &q.cores {
            for s in &c.sources {
                p.line(format_args!("table {}: {:?} as {}", s.id, s.kind, s.name));
            }
            for f in &c.filter {
                p.line(format_args!("filter {}", f.expr));
            }
            for (e, k) in c.result.iter().zip(&q.columns) {
                p.line(format_args!("result {} = {e}", k.meta.name));
            }
        }
    });
    p.out
}

/// The plan of a statement.
pub fn statement(plan: &StatementPlan) -> String {
    let mut p = Printer::default();
    p.deeper(|p| {
        match &plan.body {
            Body::Query(q) => p.query(q),
            Body::Modify(m) => p.modify(m),
            Body::Define(d) => d.steps.iter().for_each(|s| p.step(s)),
            Body::Control(c) => p.control(c),
            Body::RowCheck(t) => p.line(format_args!("what the rows of {} should be", t.table.name)),
        }
        p.nested(&plan.nested);
        for (k, t) in plan.triggers.iter().enumerate() {
            p.trigger(k, t);
        }
        for (k, s) in plan.sequences.iter().enumerate() {
            p.line(format_args!("sequence {}: of {}", k + 1, s.table));
        }
        if plan.undo {
            p.line("may have to be taken back alone");
        }
    });
    p.out
}

#[derive(Default)]
struct Printer {
    out: String,
    depth: usize,
}

impl Printer {
    fn line(&mut self, text: impl Display) {
        let _ = writeln!(self.out, "{:1$}{text}", "", 2 * self.depth);
    }

    fn deeper(&mut self, f: impl FnOnce(&mut Self)) {
        self.depth += 1;
        f(self);
        self.depth -= 1;
    }

    fn list(&mut self, what: &str, list: &[Expr]) {
        for e in list {
            self.line(format_args!("{what} {e}"));
        }
    }

    /// The plans of nested queries, in the order of their numbers.
    fn nested(&mut self, plans: &NestedPlans) {
        let mut list: Vec<_> = plans.iter().collect();
        list.sort_by_key(|p| p.0);
        for (id, q) in list {
            self.line(format_args!("query {id}"));
            self.deeper(|p| p.query(q));
        }
    }

    fn query(&mut self, q: &SelectPlan) {
        for (k, c) in q.cores.iter().enumerate() {
            if k > 0 {
                self.line(format_args!(
                    "{:?}",
                    q.merge.as_ref().map_or(CompoundOp::UnionAll, |m| m.ops[k - 1])
                ));
            }
            self.block(c);
        }
        if !q.order_by.is_empty() && !q.ordered {
            self.line("sort");
        }
        for (what, e) in [("limit", &q.limit), ("offset", &q.offset)] {
            if let Some(e) = e {
                self.line(format_args!("{what} {e}"));
            }
        }
    }

    fn block(&mut self, c: &CorePlan) {
        if let Some(w) = &c.window {
            self.block(&w.input);
            let calls: usize = w.windows.iter().map(|p| p.calls.len()).sum();
            self.line(format_args!("{} windows with {calls} functions", w.windows.len()));
            return;
        }
        if let Some(run) = c.executor.get() {
            self.run_by(run);
        }
        if !c.values.is_empty() {
            self.line(format_args!("{} rows of values", c.values.len()));
        }
        self.list("once test", &c.constant);
        if c.count_only {
            self.line("count the entries of the tree");
        }
        if c.count_runs {
            self.line("count the entries of a leaf at once");
        }
        for l in &c.levels {
            self.level(l, c.extreme);
        }
        match c.grouping {
            Grouping::None => {}
            Grouping::All => self.line("one group"),
            Grouping::Ordered => self.line("groups next to each other"),
            Grouping::Hash => self.line("groups by hash"),
        }
        if let Some(h) = &c.having {
            self.line(format_args!("having {h}"));
        }
        if c.first_row_only {
            self.line("the first row decides");
        }
        if let Some(p) = c.passes {
            self.line(format_args!("the next of {} fields of the index is sought", p.fields));
        }
        match c.distinct {
            Distinct::No | Distinct::Unique => {}
            Distinct::Adjacent => self.line("equal results next to each other"),
            Distinct::Set => self.line("distinct"),
        }
        if c.delivered > 0 {
            self.line(format_args!("{} terms of the order are delivered", c.delivered));
        }
    }

    fn run_by(&mut self, run: &RunBy) {
        match run {
            RunBy::Declined(why) => self.line(format_args!("run by its loops: {why}")),
            RunBy::WhileSmall(_) => self.line("run by its loops while its tables are small"),
            RunBy::Source(s) => {
                self.line(format_args!("run by source {}, else by its loops", s.number));
                self.deeper(|p| p.list("given", &s.params));
            }
        }
    }

    fn level(&mut self, l: &Level, extreme: bool) {
        if let Some(q) = &l.query {
            let how = if q.coroutine { "co-routine" } else { "stored" };
            self.line(format_args!("{} {how}", source_name(&l.source)));
            self.deeper(|p| {
                p.query(&q.select);
                if let Some(r) = &q.recursive {
                    p.line("recursive step");
                    p.deeper(|p| r.arms.iter().for_each(|a| p.block(a)));
                }
            });
        }
        self.line(level(l, extreme));
        self.deeper(|p| {
            if let Access::Or(branches) = &l.access {
                for b in branches {
                    p.line(super::access(&b.access, &l.source, &source_name(&l.source)));
                }
            }
            match l.bloom {
                Bloom::None => {}
                Bloom::AtSeek => p.line("filter before seeking"),
                Bloom::Early(d) => p.line(format_args!("filter at the head of loop {}", d + 1)),
            }
            p.list("match if", &l.on);
            p.list("then test", &l.filter);
        });
    }

    fn trigger(&mut self, number: usize, t: &TriggerPlan) {
        let or = t.or.map_or(String::new(), |c| format!(", or {c:?}"));
        self.line(format_args!("trigger {number}: {}{or}", t.trigger.name));
        self.deeper(|p| {
            if let Some(w) = &t.when {
                p.line(format_args!("when {w}"));
            }
            for s in &t.steps {
                match s {
                    TriggerStep::Query(q) => p.query(q),
                    TriggerStep::Modify(m) => p.modify(m),
                }
            }
            p.nested(&t.nested);
        });
    }

    fn modify(&mut self, m: &ModifyPlan) {
        let word = match &m.verb {
            Verb::Insert(_) => "insert into",
            Verb::Update(_) => "update",
            Verb::Delete(_) => "delete from",
            Verb::Virtual(v) => match &v.change {
                VirtualChange::Insert { .. } => "insert into virtual",
                VirtualChange::Update { .. } => "update virtual",
                VirtualChange::Delete => "delete from virtual",
            },
        };
        self.line(format_args!("{word} {}", m.target.table.name));
        self.deeper(|p| {
            p.feed(m);
            match &m.verb {
                Verb::Insert(i) => p.insert(m, i),
                Verb::Update(c) => p.change(m, c),
                Verb::Delete(r) => p.removal(r),
                Verb::Virtual(v) => p.told(m, v),
            }
            if !m.replaced.is_plain() {
                p.line("of replaced rows");
                p.deeper(|p| p.removal(&m.replaced));
            }
            p.list("returning", &m.returning);
        });
    }

    fn feed(&mut self, m: &ModifyPlan) {
        match &m.feed {
            Feed::Row(list) => {
                let list: Vec<String> = list.iter().map(Expr::to_string).collect();
                self.line(format_args!("row ({})", list.join(", ")));
            }
            Feed::Defaults => self.line("a row of defaults"),
            Feed::Query(q) => self.query(q),
            Feed::Found { rows, given, .. } => {
                self.block(rows);
                if *given {
                    self.line("new values computed with the keys");
                }
            }
            Feed::Everything => self.line("everything, unseen"),
        }
        match m.pass {
            Pass::One if matches!(m.feed, Feed::Found { .. }) => self.line("one pass"),
            Pass::One => {}
            Pass::Collected(why) => self.line(format_args!("rows first: {why}")),
            Pass::KeysFirst(why) => self.line(format_args!("keys first: {why}")),
        }
    }

    fn actions(&mut self, when: &str, list: &[RowAction]) {
        for a in list {
            match a {
                RowAction::Trigger(k) => self.line(format_args!("{when}: trigger {k}")),
                RowAction::Key { trigger, .. } => {
                    self.line(format_args!("{when}: foreign key's trigger {trigger}"))
                }
                RowAction::Count { role, key, row, adds, .. } => {
                    let (role, row) = (format!("{role:?}").to_lowercase(), format!("{row:?}").to_lowercase());
                    let sign = if *adds { "add" } else { "take off" };
                    self.line(format_args!(
                        "{when}: {sign} violations of the {row} row as {role} of foreign key {key}"
                    ));
                }
            }
        }
    }

    fn removal(&mut self, r: &Removal) {
        self.actions("before", &r.before);
        self.actions("after", &r.after);
    }

    fn insert(&mut self, m: &ModifyPlan, i: &InsertPlan) {
        let key = match i.key {
            NewKey::None => "none",
            NewKey::Made => "made",
            NewKey::MadeAndTested => "made, and tested",
            NewKey::Given => "given",
            NewKey::GivenOrMade => "given, or made",
        };
        self.line(format_args!("rowid {key}"));
        if i.sequence > 0 {
            self.line(format_args!("counting on sequence {}", i.sequence));
        }
        self.generated(m);
        self.actions("before", &i.before);
        self.tests(m, &i.tests);
        for (k, u) in i.upserts.iter().enumerate() {
            match &u.action {
                None => self.line(format_args!("clause {k}: nothing")),
                Some(a) => {
                    self.line(format_args!("clause {k}: update, excluded is table {}", u.excluded));
                    self.deeper(|p| {
                        p.list("if", a.filter.as_slice());
                        p.change(m, &a.change);
                    });
                }
            }
        }
        self.actions("after", &i.after);
    }

    fn generated(&mut self, m: &ModifyPlan) {
        for (c, e) in &m.target.generated {
            self.line(format_args!("compute {} = {e}", m.target.table.columns[*c].name));
        }
    }

    fn change(&mut self, m: &ModifyPlan, c: &Change) {
        let table = &m.target.table;
        for s in &c.sets {
            let name = if s.column == ROWID { "rowid" } else { &table.columns[s.column as usize].name };
            self.line(format_args!("set {name} = {}", s.value));
        }
        self.generated(m);
        let old = match c.old {
            OldRow::Whole => "whole",
            OldRow::AsNeeded => "as needed",
            OldRow::Patched => "patched",
        };
        self.line(format_args!("old row {old}"));
        let touched = m.target.indexes.iter().zip(&c.touched).filter(|(i, t)| **t && !i.is_table);
        for (i, _) in touched {
            self.line(format_args!("touch index {}", i.index.name));
        }
        self.actions("before", &c.before);
        self.tests(m, &c.tests);
        if c.reseeks {
            self.line("seek the old row again");
        }
        self.actions("after", &c.after);
    }

    fn told(&mut self, m: &ModifyPlan, v: &VirtualWrite) {
        if let VirtualChange::Update { sets } = &v.change {
            for s in sets {
                let name =
                    if s.column == ROWID { "rowid" } else { &m.target.table.columns[s.column as usize].name };
                self.line(format_args!("set {name} = {}", s.value));
            }
        }
        let who = if v.heeds { "the table" } else { "the engine" };
        self.line(format_args!("tell the module, else {:?} by {who}", v.conflict));
    }

    fn tests(&mut self, m: &ModifyPlan, tests: &[Test]) {
        let t = &m.target;
        let column = |c: usize| &t.table.columns[c].name;
        for test in tests {
            match test {
                Test::Default { column: c } => {
                    self.line(format_args!("default where {} is NULL", column(*c)))
                }
                Test::Generate => self.line("compute generated columns again"),
                Test::NotNull { column: c, policy } => {
                    self.line(format_args!("test {} NOT NULL else {policy:?}", column(*c)));
                }
                Test::Types => self.line("test types"),
                Test::Check { check, policy } => {
                    self.line(format_args!("test {} else {policy:?}", t.checks[*check].0));
                }
                Test::Rowid { conflict } => self.line(format_args!("test rowid free else {conflict}")),
                Test::Entry { index } => self.line(format_args!("entry of {}", t.indexes[*index].index.name)),
                Test::Unique { index, conflict } => {
                    self.line(format_args!("test {} free else {conflict}", t.indexes[*index].index.name));
                }
                Test::Again => self.line("test keys again"),
                Test::Parent { key } => self.line(format_args!("test foreign key {key}")),
            }
        }
    }

    fn step(&mut self, s: &Step) {
        match s {
            Step::StartFile { db } => self.line(format_args!("start file {db}")),
            Step::CreateTree { db, is_index } => {
                let kind = if *is_index { "index" } else { "table" };
                self.line(format_args!("create {kind} tree in {db}"));
            }
            Step::AddRow { db, row } => {
                let tree = row.tree.map_or(String::new(), |k| format!(" tree {k}"));
                let sql = row.sql.as_ref().map_or(String::new(), |s| format!(" as {s}"));
                self.line(format_args!("add {} {} to schema {db}{tree}{sql}", row.kind, row.name));
            }
            Step::FillIndex { target, .. } => {
                self.line(format_args!("fill index {}", target.indexes[0].index.name));
            }
            Step::ReserveRow { db } => self.line(format_args!("reserve a row of schema {db}")),
            Step::Store { query, tree, .. } => {
                self.line(format_args!("store rows in tree {tree}"));
                self.deeper(|p| p.query(query));
            }
            Step::Empty { rows, .. } => {
                self.line("empty the table, for foreign keys");
                self.modify(rows);
            }
            Step::Run { sql } => self.line(format_args!("run {sql}")),
            Step::SetCookie { db, cookie } => self.line(format_args!("set cookie of {db} to {cookie}")),
            Step::ReadSchema { db, table } => self.line(format_args!("read schema {db} of {table}")),
            Step::MakeVirtual { db, name } => self.line(format_args!("make virtual table {name} in {db}")),
            Step::DestroyVirtual { db, name } => {
                self.line(format_args!("destroy virtual table {name} in {db}"));
            }
            Step::FreeTrees { db, roots } => self.line(format_args!("free trees {roots:?} in {db}")),
            Step::Forget { db, what, name } => self.line(format_args!("forget {what:?} {name} of {db}")),
        }
    }

    fn control(&mut self, c: &Control) {
        self.line(format_args!("the connection: {}", c.kind));
        if let Some((row, _)) = &c.row {
            self.line("given");
            self.deeper(|p| row.cores[0].values.iter().for_each(|r| p.list("value", r)));
        }
    }
}

impl Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Why::ReadsTarget => "the query reads the table",
            Why::Triggers => "triggers fire",
            Why::Join => "a row may have several partners",
            Why::KeyChanges => "the key changes",
            Why::Replace => "REPLACE may delete others",
            Why::NestedQuery => "a nested query may see the change",
            Why::Returning => "RETURNING comes after all changes",
            Why::Access => "the order of the rows changes with them",
            Why::View => "a view has no rows of its own",
        })
    }
}

impl Display for OnConflict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OnConflict::Policy(p) => write!(f, "{p:?}"),
            OnConflict::Upsert(k) => write!(f, "clause {k}"),
        }
    }
}

impl Display for ControlKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use ControlKind as K;
        match self {
            K::Begin(mode) => write!(f, "begin {mode:?}"),
            K::Savepoint(n) => write!(f, "savepoint {n}"),
            K::Release(n) => write!(f, "release {n}"),
            K::RollbackTo(n) => write!(f, "roll back to {n}"),
            K::Pragma(n, _) => write!(f, "pragma {}", n.name.text),
            K::Vacuum(s) => write!(f, "vacuum {}", s.as_deref().unwrap_or("main")),
            K::AlterTable(a) => write!(f, "alter table {}", a.table.name.text),
            K::Analyze(q) => write!(f, "analyze {}", q.as_ref().map_or("all", |q| &q.name.text)),
            K::Commit | K::Rollback | K::Attach | K::Detach | K::Work => write!(f, "{self:?}"),
        }
    }
}
