//! Accesses by one index: its leading fields equal something, in loops over lists or over the values that there are, and a
//! range of the next.

use super::*;

/// Whether the first field of an index has so few values that they might be passed over one by one.
pub(super) fn may_skip(index: &Index) -> bool {
    let stat = index.stat.borrow();
    stat.measured && index.key_len > 1 && stat.rows.get(1).is_some_and(|r| *r >= cost::SKIPPED_ROWS)
}

/// Extends an equality prefix of an index field by field, emitting a candidate at each step.
pub(super) struct IndexBuild<'b, 'a> {
    pub a: &'b Accesses<'a>,
    pub i: usize,
    pub table: &'b Rc<Table>,
    pub info: &'b IndexInfoBound,
    pub terms: &'b [Term],
    pub covering: bool,
    pub entries: f64,
    pub step: f64,
    pub stat: &'b iolite_catalog::IndexStat,
    pub eq: Vec<EqTerm>,
    pub used: Vec<usize>,
    pub needs: Mask,
    /// How many keys are sought.
    pub fan: f64,
    /// How much dearer than others the seeks are.
    pub seeks: f64,
    /// The rows for each key, where the query says how likely its terms are.
    pub likely: Option<f64>,
    /// The term by which NULLs in the next field are passed over.
    pub not_null: Option<usize>,
    pub out: &'b mut Vec<Candidate>,
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
        // A row number is an integer, which no collating sequence looks at.
        let rowid = match c.source {
            ColumnSource::Column(k) => self.table.rowid_alias == Some(k),
            ColumnSource::Rowid => true,
            ColumnSource::Expr(_) => false,
        };
        same && self.a.affinity_ok(self.i, f)
            && (matches!(f.op, Op::IsNull) || rowid || self.info.key.fields[field].coll == f.collation)
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
    pub fn extend(&mut self) -> bool {
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
        rows *= share_of_range(self.terms, bounds);
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
