//! Candidate accesses: for one source, every way of finding its rows that the terms allow.
//!
//! Here: what an access is, and those of a table as a whole; by an index (`index`), by one that is made for the statement
//! (`automatic`), and what a condition implies about partial indexes (`implied`).

mod automatic;
pub(crate) mod held;
mod implied;
mod index;

use crate::bind::{Env, index_key};
use crate::bound::*;
use crate::bounds;
use crate::cost;
use crate::plan::*;
use crate::terms::{Form, Mask, Op, Term};
use crate::walk;
use iolite_base::{Few, Result};
use iolite_catalog::{ColumnSource, Index, Table};
use iolite_ext::OrderUse;
use iolite_sql::ast;
use iolite_value::{Affinity, Collation, Value};
use std::rc::Rc;

use implied::follows;
pub use implied::implies_not_null;
use index::{IndexBuild, may_skip};

/// One way of finding a source's rows.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The source.
    pub source: usize,
    /// Sources that must come before.
    pub needs: Mask,
    /// The access.
    pub access: Access,
    /// Cost paid once.
    pub setup: f64,
    /// Cost of each run.
    pub cost: f64,
    /// Rows of each run, after all conditions that can be tested then.
    pub rows: f64,
    /// Terms that need not be tested any more.
    pub used: NumberSet,
    /// Terms by which rows are found, and which have to be tested all the same.
    pub drives: NumberSet,
    /// Keys in whose order rows come out, where some order is of use; see [`OrderKey`].
    pub order: Vec<OrderKey>,
    /// The keys of `order` together are unique.
    pub order_unique: bool,
    /// So many of them are already: what comes behind does not matter.
    pub unique_keys: Option<usize>,
    /// The rows come in that order only, never in the opposite one.
    pub one_way: bool,
    /// NULLs in the first key of `order` can come at either end.
    pub splits_nulls: bool,
    /// Columns that are constant during a run.
    pub constant: Few<i32>,
    /// One row at the most.
    pub one_row: bool,
}

/// A column by which rows come out sorted.
#[derive(Clone, Debug)]
pub struct OrderKey {
    /// The column; `None`: an indexed expression.
    pub column: Option<i32>,
    /// The expression, if it is one.
    pub expr: Option<Expr>,
    /// Its collating sequence.
    pub collation: Collation,
    /// Descending.
    pub desc: bool,
    /// Of the rows that come out, none has a NULL there.
    pub never_null: bool,
}

impl OrderKey {
    fn rowid() -> OrderKey {
        OrderKey {
            column: Some(ROWID),
            expr: None,
            collation: Collation::Binary,
            desc: false,
            never_null: true,
        }
    }
}

/// An index with its bound expressions.
pub struct IndexInfoBound {
    index: Rc<Index>,
    key: Rc<iolite_value::KeyInfo>,
    exprs: Vec<Option<Expr>>,
    filter: Vec<Expr>,
}

impl IndexInfoBound {
    /// Whether it can be read: the collating sequences that it is sorted by are there.
    fn is_ordered(&self) -> bool {
        !self.key.fields.iter().any(|f| f.coll.is_missing())
    }
}

/// The order that a query wants its rows in.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The terms.
    pub terms: &'a [OrderTerm],
    /// What for.
    pub purpose: OrderUse,
}

/// Finds the candidates of one source.
pub struct Accesses<'a> {
    /// The world.
    pub env: &'a Env<'a>,
    /// All sources of the arm.
    pub sources: &'a [Source],
    /// All terms of the arm.
    pub terms: &'a [Term],
    /// The plans of queries in FROM, by position.
    pub queries: &'a [Option<Box<FromPlan>>],
    /// The sources that come before each, by position.
    pub before: &'a [Mask],
    /// The rows are to be changed: no scan of a whole index.
    pub changing: bool,
    /// The order that is wanted.
    pub asked: Option<Asked<'a>>,
    /// An order is wanted, whether modules are told of it or not.
    pub ordered: bool,
    /// Somebody looks at the order in which rows come out.
    pub order_counts: bool,
    /// LIMIT and OFFSET, where nothing but conditions stands between them and the rows.
    pub limits: Option<(&'a Expr, Option<&'a Expr>)>,
}

impl Accesses<'_> {
    /// Whether a term may help to find rows of source `i`.
    pub(crate) fn applies(&self, t: &Term, i: usize) -> bool {
        let s = &self.sources[i];
        match t.on {
            // A condition of an outer join's ON constrains the right side only.
            Some(p) if self.sources[p].join.left || self.sources[p].join.right => p == i,
            _ => !s.join.left && !s.join.right && !self.right_join_after(t, i),
        }
    }

    /// Rows must not be dropped before a later RIGHT JOIN has seen them, unless the condition belongs to a join that comes
    /// first.
    fn right_join_after(&self, t: &Term, i: usize) -> bool {
        let from = t.on.map_or(self.sources.len(), |p| p + 1);
        self.sources[..from].iter().skip(i).any(|s| s.join.right)
    }

    /// All candidates for source `i`.
    pub fn of(&self, i: usize) -> Result<Vec<Candidate>> {
        let mut out = Vec::with_capacity(3);
        match &self.sources[i].kind {
            SourceKind::Table { table, .. } => self.table(i, table, self.terms, &mut out)?,
            SourceKind::Subquery(_) => {
                let plan = self.queries[i].as_deref();
                let rows = plan.map_or(cost::QUERY_ROWS, FromPlan::rows_at_all);
                let mut c = self.scan(i, rows, rows * cost::TABLE_ROW);
                (c.order, c.one_way) = (plan.map_or_else(Vec::new, order_of_query), true);
                out.push(c);
                self.auto_index(i, rows, true, &mut out);
            }
            SourceKind::Working(_) => out.push(self.scan(i, 1.0, cost::TABLE_ROW)),
            SourceKind::Virtual { table, vtab, .. } => self.virtual_table(i, (table, vtab), &mut out)?,
        }
        // A module says itself how many rows its plan gives.
        if !matches!(self.sources[i].kind, SourceKind::Virtual { .. }) {
            // What an automatic index finds is a guess already.
            for c in out.iter_mut().filter(|c| !matches!(c.access, Access::Auto { .. })) {
                c.rows = self.reduced(c, i);
            }
        }
        no_dearer_by_more_terms(&mut out);
        if self.sources[i].exists.is_some() {
            // What it depends on comes first, and one row that fits is as good as all.
            let own = 1 << i;
            let about = |t: &&Term| !t.derived && t.mask & own != 0;
            let needs = self.terms.iter().filter(about).fold(0, |m, t| m | t.mask) & !own;
            for c in &mut out {
                c.needs |= needs;
                c.rows = c.rows.min(0.5);
            }
            // Of those that cost the same, the one that is said most of.
            out.sort_by_key(|c| std::cmp::Reverse(c.used.len() + c.drives.len()));
        }
        Ok(out)
    }

    /// The candidates for reading each table on the right side of a RIGHT JOIN once more, for the rows without a match: by what
    /// conditions behind the joins say of it alone.
    pub fn unmatched(&self) -> Result<Vec<(usize, Vec<Candidate>)>> {
        let mut out = Vec::new();
        for (i, s) in self.sources.iter().enumerate() {
            if !s.join.right || s.table().is_none() {
                continue;
            }
            let mut sources = self.sources.to_vec();
            (sources[i].join.left, sources[i].join.right) = (false, false);
            let alone = |t: &Term| t.on.is_none() && t.mask == 1 << i && !t.derived;
            let own = |t: &&Term| alone(t) && !t.expr.any(&mut is_nested);
            let terms: Vec<Term> = self.terms.iter().filter(own).cloned().collect();
            let before = vec![0; sources.len()];
            let a = Accesses { sources: &sources, terms: &terms, before: &before, asked: None, ..*self };
            out.push((i, a.of(i)?));
        }
        Ok(out)
    }

    pub(crate) fn scan(&self, i: usize, rows: f64, cost: f64) -> Candidate {
        Candidate {
            source: i,
            needs: 0,
            access: Access::Scan { reverse: false },
            setup: 0.0,
            cost,
            rows,
            used: NumberSet::default(),
            drives: NumberSet::default(),
            order: Vec::new(),
            order_unique: false,
            unique_keys: None,
            one_way: false,
            splits_nulls: false,
            constant: Few::new(),
            one_row: false,
        }
    }

    /// Conditions that drive no index still leave fewer rows.
    fn reduced(&self, c: &Candidate, i: usize) -> f64 {
        let (mut rows, mut least) = (c.rows, 1.0f64);
        for (n, t) in self.terms.iter().enumerate() {
            if c.used.contains(n)
                || c.drives.contains(n)
                || t.derived && t.narrows.is_none()
                || t.mask & !(c.needs | self.before[i] | 1 << i) != 0
                || t.mask & 1 << i == 0
            {
                continue;
            }
            let on_column = |f: &&Form| f.column.is_some() && matches!(f.op, Op::Eq { .. });
            let eq = t.forms.iter().find(on_column).map(|f| match &f.value {
                Expr::Const(Value::Int(v)) => Some(*v),
                _ => None,
            });
            // Several equalities say no more than the strongest of them.
            rows *= t.truth.unwrap_or(cost::RESIDUAL);
            if t.truth.is_none() {
                least = least.min(cost::residual(eq));
            }
        }
        // The strongest says how many rows of the whole there are at the most, whatever an index says of others.
        let whole = self.sources[i].table().map_or(c.rows, |(_, t)| t.rows.get());
        let rows = rows.min(whole * least);
        rows.max(if c.one_row { 0.01 } else { 1.0f64.min(c.rows) })
    }

    fn table(&self, i: usize, table: &Rc<Table>, terms: &[Term], out: &mut Vec<Candidate>) -> Result<()> {
        let s = &self.sources[i];
        let rows = table.rows.get();
        let forced = match &s.indexed {
            ast::Indexed::By(n) => Some(n.text.clone()),
            _ => None,
        };
        if forced.is_none() && table.has_rowid() {
            self.rowid(i, rows, terms, out);
            if only_one_row(out) {
                return Ok(());
            }
            let mut c = self.scan(i, rows, rows * (cost::TABLE_ROW + cost::SCAN_PENALTY * 0.1));
            self.rowid_order(&mut c);
            out.push(c);
        }
        if s.indexed != ast::Indexed::Not {
            let before = out.len();
            for index in table.indexes.borrow().iter() {
                if forced.as_ref().is_some_and(|n| !index.name.eq_ignore_ascii_case(n)) {
                    continue;
                }
                if index.root.get() == 0 {
                    continue;
                }
                if forced.is_none() && !self.may_help(i, table, index, terms) {
                    continue;
                }
                let info = self.index_info(i, table, index)?;
                if forced.is_none() && !info.is_ordered() {
                    continue;
                }
                self.index(i, table, &info, terms, out);
                if only_one_row(out) {
                    return Ok(());
                }
            }
            if forced.is_some() && out.len() == before {
                return Err(iolite_base::Error::sql("no query solution"));
            }
        } else if let Some(pk) = table.primary_index() {
            let info = self.index_info(i, table, &pk)?;
            self.index(i, table, &info, terms, out);
        }
        if forced.is_none() {
            self.or_access(i, table, rows, out)?;
            if rows > 10.0 && s.indexed != ast::Indexed::Not {
                self.auto_index(i, rows, false, out);
            }
        }
        Ok(())
    }

    /// Whether an index can be of use: a term compares its first field, it has what the query needs of the table, it holds
    /// fewer rows than the table, or an order is wanted.
    fn may_help(&self, i: usize, table: &Table, index: &Index, terms: &[Term]) -> bool {
        let first = match index.columns[0].source {
            ColumnSource::Column(k) => k as i32,
            ColumnSource::Rowid | ColumnSource::Expr(_) => return true,
        };
        let rowid = table.rowid_alias == Some(first as usize);
        let compared =
            |f: &Form| f.source == i && f.column.is_some_and(|c| c == first || c == ROWID && rowid);
        self.ordered
            || index.filter.is_some()
            || may_skip(index)
            || terms.iter().any(|t| t.forms.iter().any(compared))
            || covers(&self.sources[i], table, index)
    }

    /// Binds the expressions of an index.
    fn index_info(&self, i: usize, table: &Rc<Table>, index: &Rc<Index>) -> Result<IndexInfoBound> {
        let key = index_key(self.env, table, index)?;
        let (mut exprs, mut filter) = (Vec::new(), Vec::new());
        let id = self.sources[i].id;
        if index.filter.is_some() || index.has_expr() {
            exprs = held::bind(self.env, table, id, index)?;
        }
        if let Some(f) = &index.filter {
            held::binder(self.env).table_expr(table, id, f)?.conjuncts(&mut filter);
        }
        Ok(IndexInfoBound { index: index.clone(), key, exprs, filter })
    }

    fn rowid(&self, i: usize, rows: f64, terms: &[Term], out: &mut Vec<Candidate>) {
        let mut lo: Option<(usize, &Form)> = None;
        let mut hi: Option<(usize, &Form)> = None;
        for (n, t) in terms.iter().enumerate() {
            for f in t.forms.iter().filter(|f| f.source == i && f.column == Some(ROWID)) {
                if f.affinity == Affinity::Text {
                    continue;
                }
                if !self.applies(t, i) {
                    break;
                }
                let (eq, count) = match &f.op {
                    Op::Eq { .. } => {
                        (EqTerm::Eq { value: f.value.clone(), null_ok: false, convert: true }, 1.0)
                    }
                    Op::InList(l) => (EqTerm::InList(l.clone()), l.list.len() as f64),
                    // The rest of a row remains to be compared.
                    Op::InSelect(s, 0) => (EqTerm::InSelect(s.clone(), 0), 25.0),
                    Op::Range(CmpOp::Gt | CmpOp::Ge) | Op::RowRange(CmpOp::Gt | CmpOp::Ge, _) => {
                        if lo.is_none_or(|l| is_better_end(f, l.1)) {
                            lo = Some((n, f));
                        }
                        continue;
                    }
                    Op::Range(_) | Op::RowRange(..) => {
                        if hi.is_none_or(|h| is_better_end(f, h.1)) {
                            hi = Some((n, f));
                        }
                        continue;
                    }
                    _ => continue,
                };
                let one_row = matches!(eq, EqTerm::Eq { .. });
                let mut c = self.scan(i, count, count * (cost::seek(rows) + cost::TABLE_ROW));
                c.needs = f.needs;
                c.access = Access::RowidEq { eq, reverse: false };
                if !matches!(&f.op, Op::InSelect(s, _) if s.lhs.len() > 1) {
                    c.used.insert(n);
                }
                c.one_row = one_row;
                if one_row {
                    c.constant = Few::one(ROWID);
                } else {
                    self.rowid_order(&mut c);
                }
                out.push(c);
            }
        }
        let needs_of = |end: Option<(usize, &Form)>| end.map_or(0, |e| e.1.needs);
        // Both ends, and each alone where it needs less.
        let pairs = [(lo, hi), (lo, None), (None, hi)];
        for (k, (lo, hi)) in pairs.into_iter().enumerate() {
            let needs = needs_of(lo) | needs_of(hi);
            let seen = pairs[..k].iter().any(|p| needs_of(p.0) | needs_of(p.1) == needs);
            if seen || lo.is_none() && hi.is_none() {
                continue;
            }
            let bound = |x: Option<(usize, &Form)>| {
                x.map(|(_, f)| {
                    Box::new(Bound {
                        value: f.value.clone(),
                        inclusive: !matches!(f.op, Op::Range(CmpOp::Gt | CmpOp::Lt)),
                        convert: true,
                        row: None,
                    })
                })
            };
            let share = share_of_range(terms, lo.map(|l| l.0), hi.map(|h| h.0));
            let mut c = self.scan(i, rows * share, rows * share * cost::TABLE_ROW + cost::seek(rows));
            c.needs = needs;
            c.access = Access::RowidRange { lo: bound(lo), hi: bound(hi), reverse: false };
            // Whole rows remain to be compared.
            for (n, f) in lo.iter().chain(&hi) {
                let whole = matches!(f.op, Op::RowRange(..));
                if whole { c.drives.insert(*n) } else { c.used.insert(*n) }
            }
            self.rowid_order(&mut c);
            out.push(c);
        }
    }

    /// Rows come out by rowid.
    fn rowid_order(&self, c: &mut Candidate) {
        if self.order_counts {
            c.order = vec![OrderKey::rowid()];
        }
        c.order_unique = true;
    }

    /// Whether SQLite would scan an index for the rows to change as one that covers the conditions: it does not count the
    /// primary key behind the columns of a UNIQUE constraint. The order of the changes shows in what OR FAIL leaves.
    fn covers_changes(&self, i: usize, table: &Table, index: &Index) -> bool {
        let id = self.sources[i].id;
        let counted = |c: i32| index.field_of(c as usize).is_some_and(|f| f < index.key_len);
        let beyond =
            |e: &Expr| e.any(&mut |x| matches!(x, Expr::Column(c) if c.table == id && !counted(c.column)));
        table.has_rowid()
            || index.origin != iolite_catalog::IndexOrigin::Unique
            || !self.terms.iter().any(|t| beyond(&t.expr))
    }

    /// The partial index's condition follows from the terms.
    fn implied(&self, i: usize, info: &IndexInfoBound) -> bool {
        info.filter.iter().all(|f| self.say(i, f))
    }

    /// Whether a condition follows from the terms.
    fn say(&self, i: usize, f: &Expr) -> bool {
        let says = |t: &Term| {
            if !self.applies(t, i) {
                return false;
            }
            if t.derived {
                // What LIKE says of the start of a text.
                let start = matches!(&t.expr, Expr::Compare(c) if c.op == CmpOp::Ge);
                return start && matches!(f, Expr::NotNull(e) if implies_not_null(&t.expr, e));
            }
            follows(&t.expr, f)
        };
        // The ends of a BETWEEN may be two terms.
        self.terms.iter().any(says)
            || matches!(f, Expr::Or(a, b) if self.say(i, a) || self.say(i, b))
            || f.ends().is_some_and(|ends| ends.iter().all(|end| self.say(i, end)))
    }

    fn index(
        &self,
        i: usize,
        table: &Rc<Table>,
        info: &IndexInfoBound,
        terms: &[Term],
        out: &mut Vec<Candidate>,
    ) {
        if !info.filter.is_empty() && !self.implied(i, info) {
            return;
        }
        let index = &info.index;
        let covering = covers(&self.sources[i], table, index);
        // What has found no match is looked for in the table. SQLite thinks an index that covers the query as cheap all the same.
        let alone = covering && !self.sources[i].join.right;
        let stat = index.stat.borrow();
        if stat.measured {
            table.stat_used.set(true);
        }
        let table_rows = table.rows.get();
        let entries = stat.rows.first().copied().unwrap_or(table_rows).min(table_rows.max(1.0));
        // One that was empty may be no longer.
        let entries = if entries < 1.0 { cost::FEW_ROWS } else { entries };
        let (step, shorter) = cost::index_step(index, table);
        let is_pk = is_primary(table, index);
        // A scan of the whole index: for its order, or because it is narrower than the table.
        {
            let read = covering && (!self.changing || self.covers_changes(i, table, index));
            let fetch = if read { 0.0 } else { cost::TABLE_ROW };
            let as_wide = table.has_rowid() && !shorter;
            let step = if as_wide { cost::TABLE_ROW * 1.1 } else { step };
            let mut c = self.scan(i, entries, entries * (step + fetch));
            c.access = Access::IndexScan {
                index: index.clone(),
                key: info.key.clone(),
                reverse: false,
                covering: alone,
            };
            (c.order, c.unique_keys) = self.order_keys(info, &[], table);
            (c.order_unique, c.splits_nulls) = (true, true);
            let narrower = covering && (is_pk || !index.has_expr());
            let forced = matches!(self.sources[i].indexed, ast::Indexed::By(_));
            let partial = !info.filter.is_empty();
            // The order in which rows change shows in what OR FAIL and triggers leave.
            let allowed = !self.changing || forced || partial || !table.has_rowid();
            if allowed && (narrower || !stat.unordered || forced || partial) {
                out.push(c);
            }
        }
        let mut build = IndexBuild {
            a: self,
            i,
            table,
            info,
            terms,
            says: Vec::new(),
            covering,
            alone,
            entries,
            step,
            stat: &stat,
            eq: Vec::new(),
            used: NumberSet::default(),
            needs: 0,
            fan: 1.0,
            seeks: 1.0,
            likely: None,
            not_null: None,
            out,
        };
        build.run();
    }

    /// The order of an index in which the first fields equal something, and how many of its keys are unique. The values of IN
    /// are taken in the index's order.
    fn order_keys(
        &self,
        info: &IndexInfoBound,
        eq: &[EqTerm],
        table: &Table,
    ) -> (Vec<OrderKey>, Option<usize>) {
        if !self.order_counts {
            return (Vec::new(), None);
        }
        let index = &info.index;
        let mut out = Vec::with_capacity(index.columns.len());
        // Rows that have a NULL in a unique key may be alike.
        let never_null = |(n, c): (usize, &iolite_catalog::IndexColumn)| {
            matches!(eq.get(n), Some(EqTerm::Eq { null_ok: false, .. }))
                || is_primary(table, index)
                || matches!(c.source, ColumnSource::Column(k) if table.columns[k].not_null.is_some())
        };
        let key = &index.columns[..index.key_len];
        let unique = index.unique.is_some() && key.iter().enumerate().all(never_null);
        let mut unique_keys = None;
        for (n, c) in info.index.columns.iter().enumerate() {
            if matches!(eq.get(n), Some(EqTerm::Eq { .. } | EqTerm::IsNull)) {
                continue;
            }
            let key = info.key.fields.get(n);
            let collation = key.map_or(Collation::Binary, |k| k.coll.clone());
            let desc = key.is_some_and(|k| k.desc);
            let (column, expr) = match &c.source {
                ColumnSource::Column(k) if table.rowid_alias == Some(*k) => (Some(ROWID), None),
                ColumnSource::Column(k) => (Some(*k as i32), None),
                ColumnSource::Rowid => (Some(ROWID), None),
                ColumnSource::Expr(_) => (None, info.exprs.get(n).cloned().flatten()),
            };
            out.push(OrderKey { column, expr, collation, desc, never_null: false });
            if n >= info.key.fields.len() {
                out.pop();
                break;
            }
            if unique && n + 1 == index.key_len {
                unique_keys = Some(out.len());
            }
        }
        (out, unique_keys)
    }

    /// The comparison means the same on the column's stored values.
    fn affinity_ok(&self, i: usize, f: &Form) -> bool {
        let column = match (&self.sources[i].kind, f.column) {
            (SourceKind::Table { table, .. } | SourceKind::Virtual { table, .. }, Some(c)) if c >= 0 => {
                table.columns[c as usize].affinity
            }
            (SourceKind::Subquery(q), Some(c)) if c >= 0 => {
                q.select.columns.get(c as usize).map_or(Affinity::None, |o| o.affinity)
            }
            (_, Some(_)) => Affinity::Integer,
            (_, None) => f.lhs.affinity(),
        };
        compares_alike(f.affinity, column)
    }

    fn or_access(&self, i: usize, table: &Rc<Table>, rows: f64, out: &mut Vec<Candidate>) -> Result<()> {
        for (n, t) in self.terms.iter().enumerate() {
            let Some(arms) = &t.or else { continue };
            if !self.applies(t, i) || t.mask & 1 << i == 0 {
                continue;
            }
            let mut branches = Vec::new();
            let mut needs = 0;
            let (mut total, mut count) = (0.0, 0.0);
            let mut good = true;
            for arm in arms {
                let sub = Accesses { terms: arm, ..*self };
                let mut cands = Vec::new();
                if table.has_rowid() {
                    sub.rowid(i, rows, arm, &mut cands);
                }
                for index in table.indexes.borrow().iter() {
                    if index.filter.is_some() || index.root.get() == 0 {
                        continue;
                    }
                    let info = self.index_info(i, table, index)?;
                    if !info.is_ordered() {
                        continue;
                    }
                    sub.index(i, table, &info, arm, &mut cands);
                }
                cands.retain(|c| !matches!(c.access, Access::IndexScan { .. } | Access::Scan { .. }));
                let best = cands.into_iter().min_by(|a, b| {
                    let key = |c: &Candidate| c.cost + c.needs.count_ones() as f64;
                    key(a).total_cmp(&key(b))
                });
                let Some(best) = best else {
                    good = false;
                    break;
                };
                needs |= best.needs;
                total += best.cost;
                count += best.rows;
                let mut access = best.access;
                let own = table.primary_index();
                if let Access::Index(a) = &mut access
                    && own.is_none_or(|own| !Rc::ptr_eq(&own, &a.index))
                {
                    a.covering = false;
                }
                let tested = |(n, t): &(usize, &Term)| !t.derived && !best.used.contains(*n);
                let filter = arm.iter().enumerate().filter(tested).map(|(_, t)| t.expr.clone()).collect();
                branches.push(OrBranch { access, filter });
            }
            if !good {
                continue;
            }
            // Tables that a branch's conditions read beyond its access must be there too.
            needs |= t.mask & !(1 << i);
            let mut c = self.scan(i, count.min(rows), total * 1.5 + count);
            c.needs = needs;
            c.access = Access::Or(branches);
            c.used = NumberSet::one(n);
            out.push(c);
        }
        Ok(())
    }
}

fn is_nested(e: &Expr) -> bool {
    matches!(e, Expr::Subquery(..) | Expr::Exists(_) | Expr::InSelect(_))
}

/// Whether an index is the table itself.
fn is_primary(table: &Table, index: &Index) -> bool {
    !table.has_rowid() && index.origin == iolite_catalog::IndexOrigin::PrimaryKey
}

/// Whether an index holds all that the query needs of the table.
pub(crate) fn covers(s: &Source, table: &Table, index: &Index) -> bool {
    if is_primary(table, index) {
        return true;
    }
    s.used.iter().all(|c| index.field_of(c).is_some()) && (!s.rowid_used || table.has_rowid())
        || s.held_by(index).is_some_and(|h| h.covers)
}

/// The index whose entries lead to the rows of a level's table, each fetched where a column is asked for that the index does not have.
pub(crate) fn fetches_by(level: &Level) -> Option<&Rc<Index>> {
    let (_, table) = level.source.table()?;
    let index = match &level.access {
        Access::IndexScan { index, covering: false, .. } => index,
        Access::Index(a) if !a.covering => &a.index,
        _ => return None,
    };
    (!is_primary(table, index)).then_some(index)
}

/// Whether what an expression reads of a source is in an index.
pub(crate) fn is_within(e: &Expr, s: &Source, index: &Index) -> bool {
    let held = s.held_by(index);
    !walk::beyond(e, s.id, &|x| match x {
        Expr::Column(c) => c.column == ROWID || index.field_of(c.column as usize).is_some(),
        x => held.is_some_and(|h| h.exprs.iter().any(|(_, of)| of.same(x))),
    })
}

/// Whether a comparison with this affinity finds what an index over a column of that affinity finds.
pub(crate) fn compares_alike(comparison: Affinity, column: Affinity) -> bool {
    match comparison {
        Affinity::None | Affinity::Blob => true,
        Affinity::Text => column == Affinity::Text,
        _ => column.is_numeric(),
    }
}

/// The order in which the rows of a query in FROM come.
fn order_of_query(q: &FromPlan) -> Vec<OrderKey> {
    let key = |column: usize, collation: &Collation, desc: bool| OrderKey {
        column: Some(column as i32),
        expr: None,
        collation: collation.clone(),
        desc,
        never_null: false,
    };
    if q.recursive.is_some() {
        return Vec::new();
    }
    let terms = q.select.order_by.iter();
    let plain =
        terms.map_while(|t| t.column.filter(|_| !t.nulls_large).map(|k| key(k, &t.collation, t.desc)));
    match &q.select.merge {
        Some(m) if q.select.order_by.is_empty() && m.arms == q.select.cores.len() => match &m.root {
            Merge::Both(pair) => pair.by.iter().map(|(k, f)| key(*k, &f.coll, f.desc)).collect(),
            Merge::Arm(_) => Vec::new(),
        },
        _ => plain.collect(),
    }
}

/// An access by an index costs no more, and finds fewer rows, than one that uses fewer of its terms: statistics that see no
/// difference say nothing against it.
fn no_dearer_by_more_terms(out: &mut [Candidate]) {
    /// The terms, whether the table is left alone, and how many fields are passed over.
    fn told(c: &Candidate) -> Option<(NumberSet, bool, usize)> {
        match &c.access {
            Access::IndexScan { covering, .. } => Some((NumberSet::default(), *covering, 0)),
            Access::Index(a) => {
                let skipped = a.eq.iter().filter(|e| matches!(e, EqTerm::Any)).count();
                let mut terms = c.used.clone();
                terms.extend(&c.drives);
                Some((terms, a.covering, skipped))
            }
            _ => None,
        }
    }
    if !out.iter().any(|c| matches!(c.access, Access::Index(_))) {
        return;
    }
    for y in 0..out.len() {
        let Some((terms, covering, skipped)) = told(&out[y]).filter(|t| !t.0.is_empty()) else { continue };
        for x in 0..out.len() {
            let Some((fewer, x_covering, x_skipped)) = told(&out[x]) else { continue };
            let fits = fewer != terms
                && fewer.is_within(&terms)
                && skipped <= x_skipped
                && (covering || !x_covering)
                && (out[x].cost <= out[y].cost || out[x].rows <= out[y].rows);
            if fits {
                let (cost, rows) = (out[x].cost, out[x].rows);
                out[y].cost = out[y].cost.min(cost);
                out[y].rows = out[y].rows.min(rows * cost::RESIDUAL);
            }
        }
    }
}

/// Nothing is better than one row whose key is known from the start: if there is such a candidate, the others go.
fn only_one_row(out: &mut Vec<Candidate>) -> bool {
    let Some(k) = out.iter().position(|c| c.one_row && c.needs == 0) else { return false };
    out.swap(0, k);
    out.truncate(1);
    true
}

/// Whether a range had better end as the first form says than as the second: what needs fewer sources, then the tighter of constants.
fn is_better_end(new: &Form, old: &Form) -> bool {
    let needs = |f: &Form| f.needs.count_ones();
    needs(new) < needs(old) || needs(new) == needs(old) && bounds::is_tighter(new, old)
}

/// How much of the rows lies within a range whose ends these terms say.
fn share_of_range(terms: &[Term], lo: Option<usize>, hi: Option<usize>) -> f64 {
    // A BETWEEN says both.
    let both = lo.is_some() && lo == hi;
    let share = |n: usize| terms[n].truth.filter(|_| !both).unwrap_or(cost::RANGE);
    let closed =
        lo.zip(hi).is_some_and(|(l, h)| both || terms[l].truth.is_none() && terms[h].truth.is_none());
    lo.map_or(1.0, share) * hi.map_or(1.0, share) * if closed { cost::CLOSED_RANGE } else { 1.0 }
}
