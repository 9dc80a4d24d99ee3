//! The lines of a change of rows: where rows come from, then the nested queries of what happens to each.

use super::{Role, Teller};
use crate::bind::KeyRole;
use crate::bound::Expr;
use crate::expr::has_subquery;
use crate::plan::{Access, CorePlan, EqTerm, Level};
use crate::print;
use crate::statement::modify::*;
use std::rc::Rc;

impl<'p> Teller<'p> {
    pub(super) fn modify(&mut self, m: &'p ModifyPlan) {
        let mut given_before = false;
        match &m.feed {
            Feed::Row(list) => self.exprs(list),
            Feed::Query(q) => self.query(q),
            Feed::Found { rows, given, .. } => {
                given_before = *given;
                self.updates = in_place(m, rows);
                self.block(rows, &[], [&None, &None]);
                self.updates = false;
            }
            Feed::Defaults | Feed::Everything => {}
        }
        match &m.verb {
            Verb::Insert(i) => {
                self.actions(m, &i.before);
                self.tests(m, &i.tests);
                for a in i.upserts.iter().filter_map(|u| u.action.as_ref()) {
                    self.exprs(&a.filter);
                    self.change(m, &a.change, false);
                }
                self.actions(m, &i.after);
            }
            Verb::Update(c) => self.change(m, c, given_before),
            Verb::Delete(r) => self.removal(m, r),
            Verb::Virtual(v) => {
                if let (VirtualChange::Update { sets }, false) = (&v.change, given_before) {
                    self.exprs(sets.iter().map(|s| &s.value));
                }
            }
        }
        self.exprs(&m.returning);
    }

    fn change(&mut self, m: &'p ModifyPlan, c: &'p Change, given: bool) {
        if !given {
            self.exprs(c.sets.iter().map(|s| &s.value));
        }
        self.actions(m, &c.before);
        self.tests(m, &c.tests);
        self.actions(m, &c.after);
    }

    fn removal(&mut self, m: &'p ModifyPlan, r: &Removal) {
        self.actions(m, &r.before);
        self.actions(m, &r.after);
    }

    /// What REPLACE deletes is a removal of its own for each constraint.
    fn tests(&mut self, m: &'p ModifyPlan, tests: &[Test]) {
        for t in tests {
            if let Test::Rowid { conflict } | Test::Unique { conflict, .. } = t
                && *conflict == OnConflict::Policy(crate::Conflict::Replace)
            {
                self.removal(m, &m.replaced);
            }
        }
    }

    /// The children that a foreign key looks for. A row that is inserted alone may mend what is violated only where that is
    /// allowed for a while.
    fn actions(&mut self, m: &'p ModifyPlan, list: &[RowAction]) {
        for a in list {
            let RowAction::Count { role: KeyRole::Parent, key, without_new, .. } = *a else { continue };
            let test = m.target.keys.test(KeyRole::Parent, key);
            let Ok(e) = test.counted(without_new) else { continue };
            if !self.counts_keys && !test.key().deferred {
                continue;
            }
            let mut loops: Vec<&'p Level> = Vec::new();
            let nested = self.nested;
            e.any(&mut |x| {
                if let Expr::Subquery(s, _) | Expr::Exists(s) = x
                    && let Some(q) = nested.get(s.id)
                {
                    loops.extend(q.cores.iter().flat_map(|c| c.levels.iter()));
                }
                false
            });
            for l in loops {
                let name =
                    l.source.table().map_or_else(|| l.source.name.clone(), |(_, t)| Rc::from(&*t.name));
                self.line_of(l, Role::Loop, print::access(&l.access, &l.source, &name));
            }
        }
    }
}

/// Whether SQLite changes rows as it finds them, which then are read where the table has them: nothing else happens on the
/// way, and no condition has a query.
fn in_place(m: &ModifyPlan, rows: &CorePlan) -> bool {
    let plain = m.target.table.has_rowid()
        && match &m.verb {
            Verb::Update(c) => c.before.is_empty() && c.after.is_empty() && !c.key_changes,
            Verb::Delete(r) => r.is_plain(),
            _ => false,
        };
    let [level] = &rows.levels[..] else { return false };
    let asks = match &level.access {
        Access::Index(a) => a.eq.iter().any(|e| matches!(e, EqTerm::InSelect(..))),
        _ => false,
    };
    let conditions = rows.constant.iter().chain(&level.filter);
    plain && m.returning.is_empty() && !asks && !conditions.into_iter().any(has_subquery)
}
