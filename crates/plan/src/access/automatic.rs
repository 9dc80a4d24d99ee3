//! Automatic indexes: over what terms say of a source, made when its loop is first entered, for the statement alone.

use super::{Accesses, Candidate};
use crate::bound::*;
use crate::cost;
use crate::plan::*;
use crate::terms::{Form, Mask, Op};
use iolite_base::Few;
use iolite_catalog::ColumnSource;
use iolite_value::Affinity;
use std::rc::Rc;

/// Where a value has more rows, an automatic index over it is not thought to pay.
const MANY_ROWS: f64 = 4.0;

/// A key, or an index that is there and has an equality to use, is better than any index that would have to be built. What a
/// constant finds is thought to be few rows, for which nothing speaks: some other table would be put before it, only for it to be
/// sought.
fn spares_index(c: &Candidate, needs: Mask) -> bool {
    let sought = match &c.access {
        Access::Index(a) => {
            let passed_over = a.eq.iter().any(|e| matches!(e, EqTerm::Any));
            !passed_over && a.eq.iter().any(|e| matches!(e, EqTerm::Eq { .. }))
        }
        access => matches!(access, Access::RowidEq { .. }),
    };
    sought && (needs == 0 || c.needs & !needs == 0)
}

impl Accesses<'_> {
    /// Adds those of a source. `stored`: it is a query whose rows are stored in any case.
    pub(super) fn auto_index(&self, i: usize, rows: f64, stored: bool, out: &mut Vec<Candidate>) {
        if self.sources[i].join.right || !self.env.automatic_index {
            return;
        }
        // An index over what is known from the start alone spares nothing where the loop runs once.
        let outside = |f: &Form| f.source == i && !f.value.is_constant();
        if self.sources.len() == 1 && !self.terms.iter().any(|t| t.forms.iter().any(outside)) {
            return;
        }
        // Comparisons with the column on the right are looked at last, the last of them first.
        let (mut equal, mut turned) = (Vec::new(), Vec::new());
        for (n, t) in self.terms.iter().enumerate().filter(|(_, t)| !t.derived || t.narrows.is_some()) {
            for f in t.forms.iter().filter(|f| f.source == i) {
                let (Some(column), Op::Eq { null_ok }) = (f.column, &f.op) else { continue };
                if !self.applies(t, i) {
                    break;
                }
                // `IS 5` is `= 5`.
                let null_ok = *null_ok && !matches!(&f.value, Expr::Const(v) if !v.is_null());
                if column == ROWID || !self.affinity_ok(i, f) || self.finds_many(i, column) {
                    continue;
                }
                let left = matches!(&t.expr, Expr::Compare(c) if c.lhs.without_collate().same(&f.lhs));
                let says = (n, column, null_ok, f);
                if left { equal.push(says) } else { turned.push(says) }
            }
        }
        equal.extend(turned.into_iter().rev());
        if equal.is_empty() {
            return;
        }
        // With all of them first, then with those that need the same sources.
        let all = equal.iter().fold(0, |m, (.., f)| m | f.needs);
        let mut masks = Few::one(all);
        for (.., f) in &equal {
            if !masks.contains(&f.needs) {
                masks.push(f.needs);
            }
        }
        for needs in masks.iter().copied() {
            if out.iter().any(|c| spares_index(c, needs)) {
                continue;
            }
            let of = equal.iter().filter(|(.., f)| f.needs & !needs == 0);
            self.auto_index_of(i, (rows, stored), needs, of.copied(), out);
        }
    }

    /// Whether a column is the first of an index, or known by one to have many rows for each value: another index over it is not
    /// thought to be better.
    fn finds_many(&self, i: usize, column: i32) -> bool {
        let Some((_, table)) = self.sources[i].table() else { return false };
        table.indexes.borrow().iter().any(|index| {
            let is_it = |c: &iolite_catalog::IndexColumn| matches!(c.source, ColumnSource::Column(k) if k as i32 == column);
            let at = index.columns[..index.key_len].iter().position(is_it);
            at.is_some_and(|at| {
                let stat = index.stat.borrow();
                at == 0 || stat.measured && stat.rows.get(at + 1).is_some_and(|r| *r > MANY_ROWS)
            })
        })
    }

    /// The automatic index over what these forms say, with the sources that all of them need.
    fn auto_index_of<'f>(
        &self,
        i: usize,
        (rows, stored): (f64, bool),
        needs: Mask,
        forms: impl Iterator<Item = (usize, i32, bool, &'f Form)>,
        out: &mut Vec<Candidate>,
    ) {
        let mut eq: Vec<(i32, EqTerm)> = Vec::new();
        let mut used = NumberSet::default();
        let mut fields: Vec<iolite_value::compare::KeyField> = Vec::new();
        for (n, column, null_ok, f) in forms {
            if eq.iter().any(|(c, _)| *c == column) {
                continue;
            }
            let convert = f.affinity > Affinity::Blob;
            eq.push((column, EqTerm::Eq { value: f.value.clone(), null_ok, convert }));
            fields.push(iolite_value::compare::KeyField { coll: f.collation.clone(), ..Default::default() });
            used.insert(n);
        }
        if eq.is_empty() {
            return;
        }
        let mut columns: Vec<i32> = eq.iter().map(|e| e.0).collect();
        // Entries that are equal otherwise come in the order of the table's rows: the key stands for a rowid that is not there.
        let mut held = self.sources[i].used.clone();
        if let Some((_, table)) = self.sources[i].table().filter(|(_, t)| !t.has_rowid()) {
            table.columns.iter().enumerate().filter(|(_, c)| c.pk > 0).for_each(|(k, _)| held.insert(k));
        }
        for c in held.iter() {
            if !columns.contains(&(c as i32)) {
                columns.push(c as i32);
            }
        }
        let n = columns.len() + 1;
        while fields.len() < n {
            fields.push(Default::default());
        }
        // The index outlives a row of an outer query: what it leaves out must not depend on one.
        let own = self.sources[i].id;
        let filter: Vec<Expr> = self
            .terms
            .iter()
            .filter(|t| self.applies(t, i) && (!t.derived || t.narrows.is_some()))
            .filter(|t| t.mask & !(1 << i) == 0 && t.expr.belongs_to(own))
            .map(|t| t.expr.clone())
            .collect();
        let key = iolite_value::KeyInfo { enc: self.env.encoding, fields, columns: n };
        let mut c = self.scan(i, cost::AUTO_INDEX_ROWS.min(rows), cost::seek(rows) + cost::AUTO_INDEX_ROWS);
        c.setup = cost::auto_index_setup(rows, stored);
        c.needs = needs;
        c.used = used;
        c.access = Access::Auto { eq, key: Rc::new(key), columns, filter };
        out.push(c);
    }
}
