//! Candidate accesses: for one source, every way of finding its rows that the terms allow.

use crate::bind::{Binder, Env, index_key};
use crate::bound::*;
use crate::cost;
use crate::plan::*;
use crate::terms::{Form, Mask, Op, Term};
use iolite_base::Result;
use iolite_catalog::{ColumnSource, Index, Table};
use iolite_ext::OrderUse;
use iolite_sql::ast;
use iolite_value::{Affinity, Collation, Value};
use std::rc::Rc;

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
    pub used: Vec<usize>,
    /// Terms by which rows are found, and which have to be tested all the same.
    pub drives: Vec<usize>,
    /// Keys in whose order rows come out; see [`OrderKey`].
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
    pub constant: Vec<i32>,
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
    pub queries: &'a [Option<FromPlan>],
    /// The rows are to be changed: no scan of a whole index.
    pub changing: bool,
    /// The order that is wanted.
    pub asked: Option<Asked<'a>>,
    /// An order is wanted, whether modules are told of it or not.
    pub ordered: bool,
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
        let mut out = Vec::new();
        match &self.sources[i].kind {
            SourceKind::Table { table, .. } => self.table(i, table, self.terms, &mut out)?,
            SourceKind::Subquery(_) => {
                let plan = self.queries[i].as_ref();
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
            for c in &mut out {
                c.rows = self.reduced(c, i);
            }
        }
        if self.sources[i].exists.is_some() {
            // What it depends on comes first, and one row that fits is as good as all.
            let own = 1 << i;
            let about = |t: &&Term| !t.derived && t.mask & own != 0;
            let needs = self.terms.iter().filter(about).fold(0, |m, t| m | t.mask) & !own;
            for c in &mut out {
                c.needs |= needs;
                c.rows = c.rows.min(0.5);
            }
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
            used: Vec::new(),
            drives: Vec::new(),
            order: Vec::new(),
            order_unique: false,
            unique_keys: None,
            one_way: false,
            splits_nulls: false,
            constant: Vec::new(),
            one_row: false,
        }
    }

    /// Conditions that drive no index still leave fewer rows.
    fn reduced(&self, c: &Candidate, i: usize) -> f64 {
        let (mut rows, mut least) = (c.rows, 1.0f64);
        for (n, t) in self.terms.iter().enumerate() {
            if c.used.contains(&n)
                || c.drives.contains(&n)
                || t.derived && !t.narrows
                || t.mask & !(c.needs | 1 << i) != 0
                || t.mask & 1 << i == 0
            {
                continue;
            }
            let eq = t.forms.iter().find(|f| matches!(f.op, Op::Eq { .. })).map(|f| match &f.value {
                Expr::Const(Value::Int(v)) => Some(*v),
                _ => None,
            });
            // Several equalities say no more than the strongest of them.
            rows *= t.truth.unwrap_or(cost::RESIDUAL);
            if t.truth.is_none() {
                least = least.min(cost::residual(eq));
            }
        }
        let rows = rows.min(c.rows * least);
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
            c.order = vec![OrderKey::rowid()];
            c.order_unique = true;
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
            let has_seek = out.iter().any(|c| c.one_row);
            if !has_seek && rows > 10.0 && s.indexed != ast::Indexed::Not {
                self.auto_index(i, rows, false, out);
                without_needless(out);
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
        let mut exprs = vec![None; index.columns.len()];
        let mut filter = Vec::new();
        if index.filter.is_some() || index.has_expr() {
            let mut b = Binder::new(self.env, "");
            b.ask_nobody();
            let id = self.sources[i].id;
            for (n, c) in index.columns.iter().enumerate() {
                if let ColumnSource::Expr(e) = &c.source {
                    exprs[n] = Some(b.table_expr(table, id, e)?.without_collate().clone());
                }
            }
            if let Some(f) = &index.filter {
                b.table_expr(table, id, f)?.conjuncts(&mut filter);
            }
        }
        Ok(IndexInfoBound { index: index.clone(), key, exprs, filter })
    }

    fn rowid(&self, i: usize, rows: f64, terms: &[Term], out: &mut Vec<Candidate>) {
        let mut lo: Option<(usize, &Form)> = None;
        let mut hi: Option<(usize, &Form)> = None;
        for (n, t) in terms.iter().enumerate().filter(|(_, t)| self.applies(t, i)) {
            for f in t.forms.iter().filter(|f| f.source == i && f.column == Some(ROWID)) {
                if f.affinity == Affinity::Text {
                    continue;
                }
                let (eq, count) = match &f.op {
                    Op::Eq { .. } => {
                        (EqTerm::Eq { value: f.value.clone(), null_ok: false, convert: true }, 1.0)
                    }
                    Op::InList(l) => (EqTerm::InList(l.clone()), l.list.len() as f64),
                    // The rest of a row remains to be compared.
                    Op::InSelect(s, 0) => (EqTerm::InSelect(s.clone(), 0), 25.0),
                    Op::Range(CmpOp::Gt | CmpOp::Ge) | Op::RowRange(CmpOp::Gt | CmpOp::Ge, _) => {
                        if lo.is_none_or(|l| f.needs.count_ones() < l.1.needs.count_ones()) {
                            lo = Some((n, f));
                        }
                        continue;
                    }
                    Op::Range(_) | Op::RowRange(..) => {
                        if hi.is_none_or(|l| f.needs.count_ones() < l.1.needs.count_ones()) {
                            hi = Some((n, f));
                        }
                        continue;
                    }
                    _ => continue,
                };
                let one_row = matches!(eq, EqTerm::Eq { .. });
                let mut c = self.scan(i, count, count * (cost::seek(rows) * 0.5 + 1.0));
                c.needs = f.needs;
                c.access = Access::RowidEq { eq, reverse: false };
                c.used =
                    if matches!(&f.op, Op::InSelect(s, _) if s.lhs.len() > 1) { Vec::new() } else { vec![n] };
                c.one_row = one_row;
                if one_row {
                    c.constant = vec![ROWID];
                } else {
                    c.order = vec![OrderKey::rowid()];
                    c.order_unique = true;
                }
                out.push(c);
            }
        }
        let pairs = vec![(lo, hi), (lo, None), (None, hi)];
        let mut seen: Vec<Mask> = Vec::new();
        for (lo, hi) in pairs {
            if lo.is_none() && hi.is_none() {
                continue;
            }
            let needs = lo.map_or(0, |l| l.1.needs) | hi.map_or(0, |h| h.1.needs);
            if seen.contains(&needs) {
                continue;
            }
            seen.push(needs);
            let bound = |x: Option<(usize, &Form)>| {
                x.map(|(_, f)| Bound {
                    value: f.value.clone(),
                    inclusive: !matches!(f.op, Op::Range(CmpOp::Gt | CmpOp::Lt)),
                    convert: true,
                    row: None,
                })
            };
            let share =
                if lo.is_some() { cost::RANGE } else { 1.0 } * if hi.is_some() { cost::RANGE } else { 1.0 };
            let mut c = self.scan(i, rows * share, rows * share * cost::TABLE_ROW + cost::seek(rows));
            c.needs = needs;
            c.access = Access::RowidRange { lo: bound(lo), hi: bound(hi), reverse: false };
            // Whole rows remain to be compared.
            for (n, f) in lo.iter().chain(&hi) {
                let whole = matches!(f.op, Op::RowRange(..));
                if whole { c.drives.push(*n) } else { c.used.push(*n) }
            }
            c.order = vec![OrderKey::rowid()];
            c.order_unique = true;
            out.push(c);
        }
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
        info.filter.iter().all(|f| {
            self.terms.iter().any(|t| {
                if !self.applies(t, i) {
                    return false;
                }
                if t.derived {
                    // What LIKE says of the start of a text.
                    let start = matches!(&t.expr, Expr::Compare(c) if c.op == CmpOp::Ge);
                    return start && matches!(f, Expr::NotNull(e) if implies_not_null(&t.expr, e));
                }
                follows(&t.expr, f)
            })
        })
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
        // What has found no match is looked for in the table.
        let covering = covers(&self.sources[i], table, index) && !self.sources[i].join.right;
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
            let mut c = self.scan(i, entries, entries * (step + fetch) + 1.0);
            c.access =
                Access::IndexScan { index: index.clone(), key: info.key.clone(), reverse: false, covering };
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
            covering,
            entries,
            step,
            stat: &stat,
            eq: Vec::new(),
            used: Vec::new(),
            needs: 0,
            fan: 1.0,
            seeks: 1.0,
            likely: None,
            not_null: None,
            out,
        };
        build.extend();
    }

    /// The order of an index in which the first fields equal something, and how many of its keys are unique. The values of IN
    /// are taken in the index's order.
    fn order_keys(
        &self,
        info: &IndexInfoBound,
        eq: &[EqTerm],
        table: &Table,
    ) -> (Vec<OrderKey>, Option<usize>) {
        let mut out = Vec::new();
        let index = &info.index;
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
                ColumnSource::Expr(_) => (None, info.exprs[n].clone()),
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

    fn auto_index(&self, i: usize, rows: f64, stored: bool, out: &mut Vec<Candidate>) {
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
        for (n, t) in
            self.terms.iter().enumerate().filter(|(_, t)| self.applies(t, i) && (!t.derived || t.narrows))
        {
            for f in t.forms.iter().filter(|f| f.source == i) {
                let (Some(column), Op::Eq { null_ok: false }) = (f.column, &f.op) else { continue };
                if column == ROWID || !self.affinity_ok(i, f) {
                    continue;
                }
                let left = matches!(&t.expr, Expr::Compare(c) if c.lhs.without_collate().same(&f.lhs));
                if left { equal.push((n, column, f)) } else { turned.push((n, column, f)) }
            }
        }
        equal.extend(turned.into_iter().rev());
        // With all of them first, then with those that need the same sources.
        let all = equal.iter().fold(0, |m, (_, _, f)| m | f.needs);
        let mut masks = vec![all];
        for (_, _, f) in &equal {
            if !masks.contains(&f.needs) {
                masks.push(f.needs);
            }
        }
        for needs in masks {
            let of = equal.iter().filter(|(_, _, f)| f.needs & !needs == 0);
            self.auto_index_of(i, (rows, stored), needs, of.copied(), out);
        }
    }

    /// The automatic index over what these forms say, with the sources that all of them need.
    fn auto_index_of<'f>(
        &self,
        i: usize,
        (rows, stored): (f64, bool),
        needs: Mask,
        forms: impl Iterator<Item = (usize, i32, &'f Form)>,
        out: &mut Vec<Candidate>,
    ) {
        let mut eq: Vec<(i32, EqTerm)> = Vec::new();
        let mut used = Vec::new();
        let mut fields: Vec<iolite_value::compare::KeyField> = Vec::new();
        for (n, column, f) in forms {
            if eq.iter().any(|(c, _)| *c == column) {
                continue;
            }
            let convert = f.affinity > Affinity::Blob;
            eq.push((column, EqTerm::Eq { value: f.value.clone(), null_ok: false, convert }));
            fields.push(iolite_value::compare::KeyField { coll: f.collation.clone(), ..Default::default() });
            used.push(n);
        }
        if eq.is_empty() {
            return;
        }
        let mut columns: Vec<i32> = eq.iter().map(|e| e.0).collect();
        for c in self.sources[i].used.iter() {
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
        let alone = |e: &Expr| {
            let mut alone = !crate::expr::has_subquery(e);
            e.tables(&mut |t| alone &= t == own);
            alone
        };
        let filter: Vec<Expr> = self
            .terms
            .iter()
            .filter(|t| self.applies(t, i) && (!t.derived || t.narrows))
            .filter(|t| t.mask & !(1 << i) == 0 && alone(&t.expr))
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
                let filter = arm.iter().filter(|t| !t.derived).map(|t| t.expr.clone()).collect();
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
            c.used = vec![n];
            out.push(c);
        }
        Ok(())
    }
}

/// Whether the first field of an index has so few values that they might be passed over one by one.
fn may_skip(index: &Index) -> bool {
    let stat = index.stat.borrow();
    stat.measured && index.key_len > 1 && stat.rows.get(1).is_some_and(|r| *r >= cost::SKIPPED_ROWS)
}

/// Whether an index is the table itself.
fn is_primary(table: &Table, index: &Index) -> bool {
    !table.has_rowid() && index.origin == iolite_catalog::IndexOrigin::PrimaryKey
}

/// Whether an index holds every column that the query needs of the table.
pub(crate) fn covers(s: &Source, table: &Table, index: &Index) -> bool {
    if is_primary(table, index) {
        return true;
    }
    s.used.iter().all(|c| index.field_of(c).is_some()) && (!s.rowid_used || table.has_rowid())
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

/// An index that is there and has an equality to use is better than any that would have to be built.
fn without_needless(out: &mut Vec<Candidate>) {
    let sought = |c: &Candidate| matches!(&c.access, Access::Index(a) if a.eq.iter().any(|e| matches!(e, EqTerm::Eq { .. })));
    let there: Vec<Mask> = out.iter().filter(|c| sought(c)).map(|c| c.needs).collect();
    out.retain(|c| {
        !matches!(c.access, Access::Auto { .. }) || !there.iter().any(|needs| needs & !c.needs == 0)
    });
}

/// Nothing is better than one row whose key is known from the start: if there is such a candidate, the others go.
fn only_one_row(out: &mut Vec<Candidate>) -> bool {
    let Some(k) = out.iter().position(|c| c.one_row && c.needs == 0) else { return false };
    out.swap(0, k);
    out.truncate(1);
    true
}

/// Extends an equality prefix of an index field by field, emitting a candidate at each step.
struct IndexBuild<'b, 'a> {
    a: &'b Accesses<'a>,
    i: usize,
    table: &'b Rc<Table>,
    info: &'b IndexInfoBound,
    terms: &'b [Term],
    covering: bool,
    entries: f64,
    step: f64,
    stat: &'b iolite_catalog::IndexStat,
    eq: Vec<EqTerm>,
    used: Vec<usize>,
    needs: Mask,
    /// How many keys are sought.
    fan: f64,
    /// How much dearer than others the seeks are.
    seeks: f64,
    /// The rows for each key, where the query says how likely its terms are.
    likely: Option<f64>,
    /// The term by which NULLs in the next field are passed over.
    not_null: Option<usize>,
    out: &'b mut Vec<Candidate>,
}

impl IndexBuild<'_, '_> {
    fn matches(&self, f: &Form, field: usize) -> bool {
        if f.source != self.i {
            return false;
        }
        let Some(c) = self.info.index.columns.get(field) else { return false };
        let same = match (&c.source, f.column) {
            (ColumnSource::Column(k), Some(col)) => {
                col == *k as i32 || col == ROWID && self.table.rowid_alias == Some(*k)
            }
            (ColumnSource::Rowid, Some(col)) => col == ROWID,
            (ColumnSource::Expr(_), _) => self.info.exprs[field].as_ref().is_some_and(|e| e.same(&f.lhs)),
            _ => false,
        };
        same && self.a.affinity_ok(self.i, f)
            && (matches!(f.op, Op::IsNull)
                || matches!(c.source, ColumnSource::Rowid)
                || self.info.key.fields[field].coll == f.collation)
    }

    /// Whether the fields so far are a whole unique key.
    fn one_row(&self) -> bool {
        let index = &self.info.index;
        let equal = |e: &EqTerm| matches!(e, EqTerm::Eq { null_ok: false, .. });
        index.unique.is_some() && self.eq.len() >= index.key_len && self.eq.iter().all(equal)
    }

    /// Whether it is better to seek each of `values` values of IN than to step through the entries of the prefix: where
    /// nothing is known of the index, always, since a prefix that is thought to have ten entries may have a million.
    fn worth_seeking(&self, field: usize, values: f64) -> bool {
        let entries = self.stat.rows.get(field).copied().unwrap_or(1.0);
        !self.stat.measured || 2.0 * entries * values.max(2.0).log2() >= values * cost::seek(self.entries)
    }

    /// How many of the next fields of the index are the first ones of a row that is IN what a query gives.
    fn row_fields(&self, t: &Term, field: usize, limit: usize) -> usize {
        let fields = &self.info.key.fields;
        let is_next = |k: &usize| {
            let is_it =
                |f: &Form| matches!(f.op, Op::InSelect(_, n) if n == *k) && self.matches(f, field + k);
            fields[field + k].desc == fields[field].desc && t.forms.iter().any(is_it)
        };
        (0..limit - field).take_while(is_next).count()
    }

    /// Answers whether an access was found that beats the prefix as it is: one that needs no other tables and finds fewer
    /// rows in the same order.
    fn extend(&mut self) -> bool {
        let field = self.eq.len();
        let limit = self.info.key.fields.len().min(if self.table.has_rowid() {
            self.info.index.columns.len()
        } else {
            self.info.key.fields.len()
        });
        // The key of a unique index finds one row: what stands behind the key would only be tested.
        if field >= limit || self.one_row() {
            return false;
        }
        self.skip(field);
        let mut better = self.range(field);
        let mut seen: Vec<Mask> = Vec::new();
        for n in 0..self.terms.len() {
            let t = &self.terms[n];
            if !self.a.applies(t, self.i) || self.used.contains(&n) {
                continue;
            }
            for f in &t.forms {
                if !self.matches(f, field) {
                    continue;
                }
                let (mut more, mut whole) = (Vec::new(), true);
                let (term, fan) = match &f.op {
                    Op::Eq { null_ok } => (
                        EqTerm::Eq {
                            value: f.value.clone(),
                            null_ok: *null_ok,
                            convert: f.affinity > Affinity::Blob,
                        },
                        1.0,
                    ),
                    Op::IsNull => (EqTerm::IsNull, 1.0),
                    Op::InList(l) => (EqTerm::InList(l.clone()), l.list.len() as f64),
                    Op::InSelect(s, k) => {
                        if *k > 0 {
                            continue;
                        }
                        let held = self.row_fields(t, field, limit);
                        whole = held == s.lhs.len();
                        more.extend((1..held).map(|k| EqTerm::InSelect(s.clone(), k)));
                        (EqTerm::InSelect(s.clone(), 0), 25.0)
                    }
                    Op::Range(_) | Op::RowRange(..) | Op::NotNull => continue,
                };
                match term {
                    EqTerm::Eq { .. } if seen.contains(&f.needs) => continue,
                    EqTerm::Eq { .. } => seen.push(f.needs),
                    EqTerm::InList(_) | EqTerm::InSelect(..) if !self.worth_seeking(field, fan) => continue,
                    _ => {}
                }
                let saved = (self.needs, self.fan, self.likely);
                let before = self.likely.unwrap_or_else(|| self.rows_of(field));
                match t.truth {
                    Some(p) => self.likely = Some(before * p),
                    None if self.likely.is_some() => self.likely = Some(before.min(self.rows_of(field + 1))),
                    None => {}
                }
                self.eq.push(term);
                self.eq.append(&mut more);
                let used = self.used.len();
                if whole {
                    self.used.push(n);
                }
                self.needs |= f.needs;
                self.fan *= fan;
                if !self.extend() {
                    self.emit(None, None, &[]);
                }
                better |= !matches!(self.eq.last(), Some(EqTerm::IsNull)) && self.needs == saved.0;
                self.eq.truncate(field);
                self.used.truncate(used);
                (self.needs, self.fan, self.likely) = saved;
            }
        }
        better
    }

    /// The entries for each value of the first fields.
    fn rows_of(&self, fields: usize) -> f64 {
        self.stat.rows.get(fields).copied().unwrap_or(1.0).min(self.entries)
    }

    /// Whether another field has been compared.
    fn compares(&self) -> bool {
        !self.eq.iter().all(|e| matches!(e, EqTerm::Any))
    }

    /// Passes over the next field, one of the first, value by value, where few values are known to have many entries each.
    fn skip(&mut self, field: usize) {
        let rows = |n: usize| self.stat.rows.get(n).copied().unwrap_or(1.0);
        let pays = self.stat.measured && !self.stat.no_skip_scan && rows(field + 1) >= cost::SKIPPED_ROWS;
        if self.compares() || field + 1 >= self.info.index.key_len || !pays {
            return;
        }
        let saved = (self.fan, self.seeks);
        let values = rows(field) / rows(field + 1);
        self.fan *= values;
        self.seeks *= cost::SKIP;
        self.eq.push(EqTerm::Any);
        self.extend();
        self.eq.pop();
        (self.fan, self.seeks) = saved;
    }

    /// As [`IndexBuild::extend`], for ranges of the next field.
    fn range(&mut self, field: usize) -> bool {
        if self.stat.unordered {
            return false;
        }
        let mut better = false;
        let desc = self.info.key.fields[field].desc;
        // With the term.
        let mut lo: Option<(usize, Bound, Mask)> = None;
        let mut hi: Option<(usize, Bound, Mask)> = None;
        let mut not_null = None;
        for (n, t) in self.terms.iter().enumerate() {
            if !self.a.applies(t, self.i) || self.used.contains(&n) {
                continue;
            }
            for f in &t.forms {
                let (op, row) = match &f.op {
                    Op::NotNull if self.matches(f, field) => {
                        not_null = Some(n);
                        continue;
                    }
                    Op::Range(op) => (op, None),
                    Op::RowRange(op, more) => (op, Some(more)),
                    _ => continue,
                };
                if !self.matches(f, field) {
                    continue;
                }
                let fits = |(k, f): &(usize, &Form)| {
                    let at = field + 1 + k;
                    self.info.key.fields.get(at).is_some_and(|x| x.desc == desc) && self.matches(f, at)
                };
                let behind = row.map_or(&[][..], Vec::as_slice).iter().enumerate().take_while(fits);
                let value = |(_, f): (usize, &Form)| (f.value.clone(), f.affinity > Affinity::Blob);
                let b = Bound {
                    value: f.value.clone(),
                    inclusive: row.is_some() || matches!(op, CmpOp::Ge | CmpOp::Le),
                    convert: f.affinity > Affinity::Blob,
                    row: row.map(|_| Box::new(RowEnd { fields: behind.map(value).collect() })),
                };
                let lower = matches!(op, CmpOp::Gt | CmpOp::Ge) != desc;
                let slot = if lower { &mut lo } else { &mut hi };
                if slot.as_ref().is_none_or(|s| f.needs.count_ones() < s.2.count_ones()) {
                    *slot = Some((n, b, f.needs));
                }
            }
        }
        if let (Some(n), None, None) = (not_null, &lo, &hi) {
            self.not_null = Some(n);
            self.emit(None, None, &[]);
            self.not_null = None;
            better = true;
        }
        let mut seen = Vec::new();
        for (l, h) in [(lo.clone(), hi.clone()), (lo, None), (None, hi)] {
            if l.is_none() && h.is_none() {
                continue;
            }
            let needs = l.as_ref().map_or(0, |x| x.2) | h.as_ref().map_or(0, |x| x.2);
            if seen.contains(&needs) {
                continue;
            }
            seen.push(needs);
            let terms: Vec<usize> = l.iter().chain(&h).map(|x| x.0).collect();
            let saved = self.needs;
            self.needs |= needs;
            better |= self.needs == saved;
            self.emit(l.map(|x| x.1), h.map(|x| x.1), &terms);
            self.needs = saved;
        }
        better
    }

    fn emit(&mut self, lo: Option<Bound>, hi: Option<Bound>, bounds: &[usize]) {
        let index = &self.info.index;
        let n = self.eq.len();
        let one_row = self.one_row();
        let mut rows = self.rows_of(n);
        if n > index.key_len {
            rows = 1.0;
        }
        if let Some(likely) = self.likely {
            rows = likely.min(self.entries);
        }
        rows *= self.fan;
        if lo.is_some() {
            rows *= cost::RANGE;
        }
        if hi.is_some() {
            rows *= cost::RANGE;
        }
        if self.not_null.is_some() {
            rows *= cost::RESIDUAL;
        }
        rows = rows.min(self.entries).max(if one_row { 1.0 } else { 0.5 });
        let is_pk = is_primary(self.table, index);
        let fetch = if self.covering || is_pk { 0.0 } else { cost::TABLE_ROW };
        let seek = cost::seek(self.entries) * 0.6 * self.fan * self.seeks;
        let mut used = self.used.clone();
        let whole = |n: &usize| self.terms[*n].forms.iter().any(|f| matches!(f.op, Op::RowRange(..)));
        let (drives, settled): (Vec<usize>, Vec<usize>) = bounds.iter().partition(|n| whole(n));
        used.extend(settled.into_iter().chain(self.not_null));
        // Whatever the index compares with a conversion, it compares exactly.
        let mut c = self.a.scan(self.i, rows, seek + rows * (self.step + fetch));
        c.needs = self.needs;
        (c.used, c.drives) = (used, drives);
        c.one_row = one_row;
        (c.order, c.unique_keys) = self.a.order_keys(self.info, &self.eq, self.table);
        let single = |e: &EqTerm| matches!(e, EqTerm::Eq { .. } | EqTerm::IsNull);
        let ends = lo.is_some() || hi.is_some() || self.not_null.is_some();
        c.splits_nulls = !ends && !one_row && self.eq.iter().all(single);
        if ends {
            let at = self.eq.iter().filter(|e| !single(e)).count();
            if let Some(key) = c.order.get_mut(at) {
                key.never_null = true;
            }
        }
        c.order_unique = index.unique.is_none() || self.table.has_rowid() || c.unique_keys.is_some();
        for (e, column) in self.eq.iter().zip(&index.columns) {
            match &column.source {
                _ if matches!(e, EqTerm::InList(_) | EqTerm::InSelect(..) | EqTerm::Any) => {}
                ColumnSource::Column(k) => c.constant.push(*k as i32),
                ColumnSource::Rowid => c.constant.push(ROWID),
                ColumnSource::Expr(_) => {}
            }
        }
        c.access = Access::Index(Box::new(IndexAccess {
            index: index.clone(),
            key: self.info.key.clone(),
            eq: self.eq.clone(),
            lo,
            hi,
            not_null: self.not_null.is_some(),
            nulls_apart: false,
            reverse: false,
            covering: self.covering,
            one_row,
        }));
        self.out.push(c);
    }
}

/// Whether `f` is true wherever `t` is.
fn follows(t: &Expr, f: &Expr) -> bool {
    if t.same(f) {
        return true;
    }
    match (t, f) {
        (_, Expr::NotNull(e)) => implies_not_null(t, e),
        // What was written as an OR of comparisons.
        (Expr::InList(l), Expr::Or(..)) if !l.not && !l.list.is_empty() => l.list.iter().all(|item| {
            let (affinity, collation) = (l.affinity, l.collation.clone());
            let (op, null_eq, lhs, rhs) = (CmpOp::Eq, false, l.lhs.clone(), item.clone());
            let c = crate::bound::Compare { op, null_eq, affinity, collation, lhs, rhs };
            follows(&Expr::Compare(Box::new(c)), f)
        }),
        (_, Expr::Or(a, b)) => follows(t, a) || follows(t, b),
        // A constant on the left stands on the right as well.
        (Expr::Compare(c), Expr::Compare(_)) if c.lhs.is_constant() && !c.rhs.is_constant() => {
            let op = match c.op {
                CmpOp::Lt => CmpOp::Gt,
                CmpOp::Le => CmpOp::Ge,
                CmpOp::Gt => CmpOp::Lt,
                CmpOp::Ge => CmpOp::Le,
                same => same,
            };
            let turned =
                crate::bound::Compare { op, lhs: c.rhs.clone(), rhs: c.lhs.clone(), ..(**c).clone() };
            Expr::Compare(Box::new(turned)).same(f)
        }
        _ => false,
    }
}

/// Whether a value other than NULL means that `e` is not NULL.
fn passes_null(x: &Expr, e: &Expr) -> bool {
    if x.same(e) {
        return true;
    }
    match x {
        Expr::Collate(a, _) | Expr::Plus(a) | Expr::Neg(a) | Expr::BitNot(a) => passes_null(a, e),
        Expr::Binary(_, a, b) => passes_null(a, e) || passes_null(b, e),
        _ => false,
    }
}

/// Whether `t` being true means that `e` is not NULL.
pub fn implies_not_null(t: &Expr, e: &Expr) -> bool {
    match t {
        Expr::NotNull(x) => x.same(e),
        Expr::Compare(c) if !c.null_eq => passes_null(&c.lhs, e) || passes_null(&c.rhs, e),
        Expr::RowOrder(fields) => {
            fields[0].lhs.without_collate().same(e) || fields[0].rhs.without_collate().same(e)
        }
        Expr::Between { lo, .. } => lo.lhs.same(e),
        Expr::InList(i) if !i.not => i.lhs.same(e),
        Expr::InSelect(i) if !i.not => i.lhs.iter().any(|l| l.same(e)),
        _ => false,
    }
}
