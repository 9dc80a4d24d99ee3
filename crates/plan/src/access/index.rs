//! Accesses by one index: its leading fields equal something, in loops over lists or over the values that there are, and a
//! range of the next.

use super::*;

/// Whether the first field of an index has so few values that they might be passed over one by one.
pub(super) fn may_skip(index: &Index) -> bool {
    let stat = index.stat.borrow();
    stat.measured && index.key_len > 1 && stat.rows.get(1).is_some_and(|r| *r >= cost::SKIPPED_ROWS)
}

/// How many values a query gives that IN asks, as long as nothing is known of it.
const IN_SELECT: f64 = 25.0;

/// What a term says of a field of an index.
#[derive(Clone, Copy)]
pub(super) struct Says<'b> {
    field: usize,
    /// The term, by number.
    term: usize,
    form: &'b Form,
}

/// Extends an equality prefix of an index field by field, emitting a candidate at each step.
pub(super) struct IndexBuild<'b, 'a> {
    pub a: &'b Accesses<'a>,
    pub i: usize,
    pub table: &'b Rc<Table>,
    pub info: &'b IndexInfoBound,
    pub terms: &'b [Term],
    /// What the terms say of its fields, in the terms' order.
    pub says: Vec<Says<'b>>,
    pub covering: bool,
    /// It covers the query, and the table is left alone.
    pub alone: bool,
    pub entries: f64,
    pub step: f64,
    pub stat: &'b iolite_catalog::IndexStat,
    pub eq: Vec<EqTerm>,
    pub used: NumberSet,
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
    /// Finds what the terms say of the fields, then all accesses.
    pub fn run(&mut self) {
        let terms = self.terms;
        for (term, t) in terms.iter().enumerate() {
            let mut own = t.forms.iter().filter(|f| f.source == self.i).peekable();
            if own.peek().is_none() || !self.a.applies(t, self.i) {
                continue;
            }
            for form in own {
                for field in 0..self.info.key.fields.len() {
                    if self.matches(form, field) {
                        self.says.push(Says { field, term, form });
                    }
                }
            }
        }
        self.extend();
    }

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
            (ColumnSource::Expr(_), _) => {
                self.info.exprs.get(field).and_then(Option::as_ref).is_some_and(|e| e.same(&f.lhs))
            }
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
        let is_next = |k: &usize| {
            let is_it =
                |f: &Form| matches!(f.op, Op::InSelect(_, n) if n == *k) && self.matches(f, field + k);
            t.forms.iter().any(is_it)
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
        let mut seen: Few<Mask> = Few::new();
        for k in 0..self.says.len() {
            let Says { field: of, term: n, form: f } = self.says[k];
            if of != field || self.used.contains(n) {
                continue;
            }
            let t = &self.terms[n];
            let (mut more, mut whole) = (Vec::new(), true);
            let (term, fan) = match &f.op {
                Op::Eq { .. } if seen.contains(&f.needs) => continue,
                Op::Eq { null_ok } => {
                    seen.push(f.needs);
                    let (value, convert) = (f.value.clone(), f.affinity > Affinity::Blob);
                    (EqTerm::Eq { value, null_ok: *null_ok, convert }, 1.0)
                }
                Op::IsNull => (EqTerm::IsNull, 1.0),
                Op::InList(l) if self.worth_seeking(field, l.list.len() as f64) => {
                    (EqTerm::InList(l.clone()), l.list.len() as f64)
                }
                Op::InSelect(s, 0) if self.worth_seeking(field, IN_SELECT) => {
                    let held = self.row_fields(t, field, limit);
                    whole = held == s.lhs.len();
                    more.extend((1..held).map(|k| EqTerm::InSelect(s.clone(), k)));
                    (EqTerm::InSelect(s.clone(), 0), IN_SELECT)
                }
                _ => continue,
            };
            let saved = (self.needs, self.fan, self.likely);
            let before = self.likely.unwrap_or_else(|| self.rows_of(field));
            match t.truth {
                Some(p) => self.likely = Some(before * p),
                None if self.likely.is_some() => self.likely = Some(before.min(self.rows_of(field + 1))),
                None => {}
            }
            self.eq.push(term);
            self.eq.append(&mut more);
            let used = self.used.clone();
            if whole {
                self.used.insert(n);
            }
            self.needs |= f.needs;
            self.fan *= fan;
            if !self.extend() {
                self.emit(None, None);
            }
            // Several keys are several seeks, which may be dearer than the prefix's entries.
            better |= !matches!(self.eq.last(), Some(EqTerm::IsNull)) && self.needs == saved.0 && fan <= 1.0;
            self.eq.truncate(field);
            self.used = used;
            (self.needs, self.fan, self.likely) = saved;
        }
        better
    }

    /// Whether rows of a query that IN asks are compared with fields of several directions: they come in that of the first.
    fn turned_by_rows(&self) -> bool {
        let fields = &self.info.key.fields;
        let mut first = 0;
        self.eq.iter().enumerate().any(|(n, e)| match e {
            EqTerm::InSelect(_, 0) => {
                first = n;
                false
            }
            EqTerm::InSelect(..) => fields[n].desc != fields[first].desc,
            _ => false,
        })
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
        let mut lo: Option<(usize, Bound, &Form)> = None;
        let mut hi: Option<(usize, Bound, &Form)> = None;
        let mut not_null = None;
        for s in self.says.iter().filter(|s| s.field == field && !self.used.contains(s.term)) {
            let f = s.form;
            let (op, row) = match &f.op {
                Op::NotNull => {
                    not_null = Some(s.term);
                    continue;
                }
                Op::Range(op) => (op, None),
                Op::RowRange(op, more) => (op, Some(more)),
                _ => continue,
            };
            let lower = matches!(op, CmpOp::Gt | CmpOp::Ge) != desc;
            let slot = if lower { &mut lo } else { &mut hi };
            if slot.as_ref().is_some_and(|s| !is_better_end(f, s.2)) {
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
            *slot = Some((s.term, b, f));
        }
        if lo.is_none() && hi.is_none() && not_null.is_none() {
            return false;
        }
        if let (Some(n), None, None) = (not_null, &lo, &hi) {
            self.not_null = Some(n);
            self.emit(None, None);
            self.not_null = None;
            better = true;
        }
        // Both ends, and each alone where it needs less.
        let end_needs = |end: &Option<(usize, Bound, &Form)>| end.as_ref().map_or(0, |x| x.2.needs);
        let (lo_needs, hi_needs) = (end_needs(&lo), end_needs(&hi));
        let both = lo_needs | hi_needs;
        let lo_alone = lo.clone().filter(|_| lo_needs != both);
        let hi_alone = hi.clone().filter(|_| hi_needs != both);
        for (l, h) in [(lo, hi), (lo_alone, None), (None, hi_alone)] {
            if l.is_none() && h.is_none() {
                continue;
            }
            let saved = self.needs;
            self.needs |= end_needs(&l) | end_needs(&h);
            better |= self.needs == saved;
            self.emit(l.map(|x| (x.0, x.1)), h.map(|x| (x.0, x.1)));
            self.needs = saved;
        }
        better
    }

    /// Adds the access as it is now, with the ends of a range and the terms that say them.
    fn emit(&mut self, lo: Option<(usize, Bound)>, hi: Option<(usize, Bound)>) {
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
        let (lo_term, hi_term) = (lo.as_ref().map(|x| x.0), hi.as_ref().map(|x| x.0));
        rows *= share_of_range(self.terms, lo_term, hi_term);
        if self.not_null.is_some() {
            rows *= cost::RESIDUAL;
        }
        rows = rows.min(self.entries).max(if one_row { 1.0 } else { 0.5 });
        let is_pk = is_primary(self.table, index);
        let fetch = if self.covering || is_pk { 0.0 } else { cost::TABLE_ROW };
        let seek = cost::seek(self.entries) * self.fan * self.seeks;
        // Whatever the index compares with a conversion, it compares exactly.
        let mut c = self.a.scan(self.i, rows, seek + rows * (self.step + fetch));
        c.needs = self.needs;
        c.used = self.used.clone();
        self.not_null.iter().for_each(|n| c.used.insert(*n));
        for n in lo_term.into_iter().chain(hi_term) {
            // Whole rows remain to be compared.
            let whole = self.terms[n].forms.iter().any(|f| matches!(f.op, Op::RowRange(..)));
            if whole { c.drives.insert(n) } else { c.used.insert(n) }
        }
        c.one_row = one_row;
        (c.order, c.unique_keys) = self.a.order_keys(self.info, &self.eq, self.table);
        let turned = self.turned_by_rows();
        if turned {
            (c.order, c.unique_keys) = (Vec::new(), None);
        }
        let single = |e: &EqTerm| matches!(e, EqTerm::Eq { .. } | EqTerm::IsNull);
        let ends = lo.is_some() || hi.is_some() || self.not_null.is_some();
        c.splits_nulls = !ends && !one_row && self.eq.iter().all(single);
        if ends {
            let at = self.eq.iter().filter(|e| !single(e)).count();
            if let Some(key) = c.order.get_mut(at) {
                key.never_null = true;
            }
        }
        let tells_apart = index.unique.is_none() || self.table.has_rowid() || c.unique_keys.is_some();
        c.order_unique = !turned && tells_apart;
        c.constant = Few::with_capacity(self.eq.len());
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
            lo: lo.map(|x| x.1),
            hi: hi.map(|x| x.1),
            not_null: self.not_null.is_some(),
            nulls_apart: false,
            reverse: false,
            covering: self.alone,
            one_row,
        }));
        self.out.push(c);
    }
}
