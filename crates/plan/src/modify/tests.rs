//! What is asked of a new row, in this order: NOT NULL, CHECK, the rowid, STRICT types (before CHECK, if there is
//! one), unique indexes, those whose policy is REPLACE last, so that nothing has been deleted when another
//! constraint says no. What ON CONFLICT clauses name comes before other keys.

use crate::bind::{Target, TargetIndex, Upsert, UpsertTarget};
use crate::bound::{Expr, ROWID};
use crate::statement::modify::{OnConflict, Test};
use iolite_sql::ast::Conflict;

/// A row about to be written.
pub(crate) struct NewRow<'a> {
    pub target: &'a Target,
    /// The statement's `OR` policy.
    pub or: Option<Conflict>,
    /// Of an UPDATE: which columns and indexes change.
    pub update: Option<(&'a [bool], &'a [bool])>,
    /// The rowid (or primary key) may differ from that of the old row.
    pub key_changes: bool,
    /// The rowid was made: it is unique.
    pub fresh: bool,
    /// Rows that REPLACE deletes fire triggers.
    pub replace_fires: bool,
    /// CHECK constraints are not looked at.
    pub ignore_checks: bool,
    /// `ON CONFLICT` clauses.
    pub upserts: &'a [Upsert],
}

impl NewRow<'_> {
    /// The tests.
    pub fn tests(&self) -> Vec<Test> {
        let t = self.target;
        let mut out = Vec::with_capacity(t.indexes.len() + 4);
        self.not_null(&mut out);
        let checks = if self.ignore_checks {
            Vec::new()
        } else {
            due_checks(t, self.update.map(|u| u.0), self.key_changes)
        };
        let types = checks.is_empty() && t.table.strict;
        if !checks.is_empty() && t.table.strict {
            out.push(Test::Types);
        }
        let policy = refusal(self.or.unwrap_or(Conflict::Abort));
        out.extend(checks.into_iter().map(|check| Test::Check { check, policy }));
        self.keys(types, &mut out);
        out
    }

    fn is_changed(&self, column: usize) -> bool {
        self.update.is_none_or(|(c, _)| c[column])
    }

    /// First the columns that are given, defaults taking the place of NULLs under REPLACE; then, since that may change
    /// them, generated columns, and defaults that are NULL themselves.
    fn not_null(&self, out: &mut Vec<Test>) {
        let t = self.target;
        let mut second = Vec::new();
        let mut replaced = false;
        for (column, c) in t.table.columns.iter().enumerate() {
            let Some(own) = c.not_null else { continue };
            if t.table.rowid_alias == Some(column) || !self.is_changed(column) && c.generated.is_none() {
                continue;
            }
            let policy = self.or.unwrap_or(own);
            let test = Test::NotNull { column, policy: refusal(policy) };
            if c.generated.is_some() {
                second.push(test);
            } else if policy == Conflict::Replace && t.default_of(column).is_some() {
                out.push(Test::Default { column });
                replaced = true;
                second.push(test);
            } else {
                out.push(test);
            }
        }
        if replaced && !t.generated.is_empty() {
            out.push(Test::Generate);
        }
        out.append(&mut second);
    }

    fn policy(&self, i: &TargetIndex) -> Option<Conflict> {
        i.index.unique.map(|own| self.or.unwrap_or(own))
    }

    /// The rowid, then, if they have not been checked (`types`), the types of a STRICT table, then the indexes.
    fn keys(&self, types: bool, out: &mut Vec<Test>) {
        let t = self.target;
        let named = constraints(self.upserts);
        let upsert = !self.upserts.is_empty();
        // The rowid, unless its policy is REPLACE, which that of a clause for all constraints overrides: then it comes
        // after the indexes that are not.
        let rowid_policy = self.or.or(t.table.key_conflict).unwrap_or(Conflict::Abort);
        let rowid = Test::Rowid { conflict: self.conflict(None, rowid_policy) };
        let check_rowid = t.table.has_rowid() && !self.fresh && self.key_changes;
        let others_refuse =
            t.indexes.iter().any(|i| self.policy(i).is_some_and(|p| p != Conflict::Replace)) || upsert;
        let for_all = upsert && named.is_empty();
        let rowid_last = rowid_policy == Conflict::Replace && others_refuse && !for_all;
        let indexes_named = named.iter().any(Option::is_some);
        if types && indexes_named {
            out.push(Test::Types);
        }
        for n in &named {
            match n {
                Some(k) => out.push(self.index(*k)),
                None if check_rowid => out.push(rowid),
                None => {}
            }
        }
        let check_rowid = check_rowid && !named.contains(&None);
        if check_rowid && !rowid_last {
            out.push(rowid);
        }
        if types && !indexes_named {
            out.push(Test::Types);
        }
        let replaces = |i: &TargetIndex| self.policy(i) == Some(Conflict::Replace);
        for last in [false, true] {
            for (k, i) in t.indexes.iter().enumerate().filter(|(_, i)| replaces(i) == last) {
                let untouched = self.update.is_some_and(|(_, touched)| !touched[k]);
                debug_assert!(!(untouched && i.is_table));
                if !untouched && !named.contains(&Some(k)) {
                    out.push(self.index(k));
                }
            }
        }
        if check_rowid && rowid_last {
            out.push(rowid);
        }
        if (rowid_policy == Conflict::Replace || t.indexes.iter().any(replaces)) && self.replace_fires {
            out.push(Test::Again);
        }
    }

    fn index(&self, index: usize) -> Test {
        let i = &self.target.indexes[index];
        match self.policy(i) {
            Some(p) if !i.is_table || self.update.is_none() || self.key_changes => {
                Test::Unique { index, conflict: self.conflict(Some(index), p) }
            }
            _ => Test::Entry { index },
        }
    }

    /// What happens about a conflict on the rowid (`None`) or an index.
    fn conflict(&self, which: Option<usize>, policy: Conflict) -> OnConflict {
        let about = self.upserts.iter().position(|u| match (u.target, which) {
            (UpsertTarget::Any, _) => true,
            (UpsertTarget::Rowid, None) => true,
            (UpsertTarget::Index(k), Some(j)) => k == j,
            _ => false,
        });
        about.map_or(OnConflict::Policy(policy), OnConflict::Upsert)
    }
}

/// What a constraint about a row's own values does: it cannot replace anything.
fn refusal(policy: Conflict) -> Conflict {
    if policy == Conflict::Replace { Conflict::Abort } else { policy }
}

/// The constraints that the clauses name, in their order: a rowid (`None`) or an index.
pub(crate) fn constraints(list: &[Upsert]) -> Vec<Option<usize>> {
    let mut named: Vec<Option<usize>> = Vec::new();
    for u in list {
        let constraint = match &u.target {
            UpsertTarget::Any => continue,
            UpsertTarget::Rowid => None,
            UpsertTarget::Index(k) => Some(*k),
        };
        if !named.contains(&constraint) {
            named.push(constraint);
        }
    }
    named
}

/// The CHECK constraints that a row may violate: one that reads no changed column holds as it held.
pub(crate) fn due_checks(t: &Target, changed: Option<&[bool]>, key_changes: bool) -> Vec<usize> {
    let reads_changed = |e: &Expr, changed: &[bool]| {
        e.any(&mut |x| match x {
            Expr::Column(c) => {
                c.column == ROWID && key_changes || c.column >= 0 && changed[c.column as usize]
            }
            _ => false,
        })
    };
    let due = |k: &usize| match changed {
        Some(changed) if t.generated.is_empty() => reads_changed(&t.checks[*k].0, changed),
        _ => true,
    };
    (0..t.checks.len()).filter(due).collect()
}
