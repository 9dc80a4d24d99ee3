//! A copy of an arm in the statement that has the arm already: its tables, aggregates and nested queries get numbers of
//! their own.
//!
//! What always holds: afterwards no number that the copy defines is one that the original defines; what refers to queries
//! around stays as it is.

use crate::bound::*;
use iolite_base::hash::FastMap;
use std::rc::Rc;

/// Gives all that `core` defines new numbers.
pub fn renumber(core: &mut Core, numbers: &mut Numbers) {
    let mut r = Renumbering::new(numbers);
    r.define(core);
    r.core(core);
}

/// Gives the queries nested in an expression new numbers.
pub fn renumber_queries(e: &mut Expr, numbers: &mut Numbers) {
    Renumbering::new(numbers).expr(e);
}

struct Renumbering<'n> {
    numbers: &'n mut Numbers,
    tables: FastMap<TableId, TableId>,
    aggs: FastMap<AggId, AggId>,
    /// Nested queries that are copied already: one that gives several values stands in several places.
    queries: FastMap<SubId, Rc<Subquery>>,
}

impl Renumbering<'_> {
    fn new(numbers: &mut Numbers) -> Renumbering<'_> {
        Renumbering {
            numbers,
            tables: FastMap::default(),
            aggs: FastMap::default(),
            queries: FastMap::default(),
        }
    }

    fn define(&mut self, c: &Core) {
        for s in c.sources.iter() {
            self.define_table(s.id);
            if let SourceKind::Subquery(q) = &s.kind {
                q.select.cores.iter().for_each(|c| self.define(c));
                if let Some(r) = &q.recursive {
                    self.define_table(r.id);
                    r.arms.iter().for_each(|c| self.define(c));
                }
            }
        }
        let calls = c.windows.iter().flat_map(|w| w.calls.iter().map(|x| x.id));
        for id in c.aggs.iter().map(|a| a.id).chain(calls) {
            self.numbers.agg += 1;
            self.aggs.insert(id, self.numbers.agg);
        }
    }

    fn define_table(&mut self, id: TableId) {
        self.numbers.table += 1;
        self.tables.insert(id, self.numbers.table);
    }

    fn table(&self, id: &mut TableId) {
        if let Some(new) = self.tables.get(id) {
            *id = *new;
        }
    }

    fn agg(&self, id: &mut AggId) {
        if let Some(new) = self.aggs.get(id) {
            *id = *new;
        }
    }

    fn select(&mut self, s: &mut Select) {
        s.cores.iter_mut().for_each(|c| self.core(c));
        let rest = s.order_by.iter_mut().map(|o| &mut o.expr).chain(&mut s.limit).chain(&mut s.offset);
        rest.for_each(|e| self.expr(e));
    }

    fn core(&mut self, c: &mut Core) {
        for s in c.sources.iter_mut() {
            self.source(s);
        }
        for f in c.filter.iter_mut() {
            self.expr(&mut f.expr);
            if let Some(on) = &mut f.on {
                self.table(on);
            }
        }
        for a in &mut c.aggs {
            self.agg(&mut a.id);
            let parts = a.args.iter_mut().chain(&mut a.filter);
            parts.chain(a.order_by.iter_mut().map(|o| &mut o.expr)).for_each(|e| self.expr(e));
        }
        for w in &mut c.windows {
            w.calls.iter_mut().for_each(|x| self.agg(&mut x.id));
            w.exprs_mut().for_each(|e| self.expr(e));
        }
        let plain = c.group_by.iter_mut().chain(&mut c.having).chain(c.result.iter_mut());
        plain.chain(c.values.fields_mut()).for_each(|e| self.expr(e));
    }

    fn source(&mut self, s: &mut Source) {
        self.table(&mut s.id);
        if let Some(b) = &s.binding
            && !b.computed.is_empty()
        {
            let mut computed = Vec::with_capacity(b.computed.len());
            for (k, e) in &b.computed {
                let mut e = e.clone();
                if let Ok(e) = &mut e {
                    self.expr(e);
                }
                computed.push((*k, e));
            }
            s.binding = Some(Rc::new(TableBinding { key: b.key.clone(), computed }));
        }
        match &mut s.kind {
            SourceKind::Subquery(q) => {
                self.select(&mut q.select);
                if let Some(r) = &mut q.recursive {
                    self.table(&mut r.id);
                    r.arms.iter_mut().for_each(|c| self.core(c));
                    let rest = r.order_by.iter_mut().map(|o| &mut o.expr);
                    rest.chain(&mut r.limit).chain(&mut r.offset).for_each(|e| self.expr(e));
                }
                q.outer.iter_mut().for_each(|t| self.table(t));
            }
            SourceKind::Working(id) => self.table(id),
            SourceKind::Table { .. } | SourceKind::Virtual { .. } => {}
        }
    }

    fn expr(&mut self, e: &mut Expr) {
        match e {
            Expr::Column(c) => self.table(&mut c.table),
            Expr::Agg(id, _) | Expr::Window(id, _) => self.agg(id),
            Expr::Subquery(s, _) | Expr::Exists(s) => self.query(s),
            Expr::InSelect(i) => {
                self.query(&mut i.select);
                i.lhs.iter_mut().for_each(|l| self.expr(l));
            }
            _ => {
                match e {
                    Expr::IfNotNullRow(t, _) => self.table(t),
                    Expr::Call(c) => {
                        if let Some(t) = &mut c.overloaded {
                            self.table(t);
                        }
                    }
                    _ => {}
                }
                e.children_mut(&mut |x| self.expr(x));
            }
        }
    }

    fn query(&mut self, s: &mut Rc<Subquery>) {
        if let Some(copy) = self.queries.get(&s.id) {
            *s = copy.clone();
            return;
        }
        self.numbers.sub += 1;
        let id = self.numbers.sub;
        let mut select = s.select.clone();
        select.cores.iter().for_each(|c| self.define(c));
        self.select(&mut select);
        let mut outer = s.outer.clone();
        outer.iter_mut().for_each(|t| self.table(t));
        let copy = Rc::new(Subquery { id, number: s.number, select, outer });
        self.queries.insert(s.id, copy.clone());
        *s = copy;
    }
}
