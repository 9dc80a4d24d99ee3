//! From an arm's plan to a [`Query`]: what the engine needs to know, or the reason why the arm stays in rows.
//!
//! The planner's nested loops are taken apart again: which equality an access stands for is put back among the
//! conditions, since hash tables will take the place of seeks. What is kept of the loops is their order, where rows
//! have to come out in it ([`Query::in_order`]).

mod from;
mod nested;
mod order;
mod window;

use crate::expr::{Cmp, Ex, Frame};
use crate::query::loops::Loops;
use crate::query::{AggSpec, Cond, Query, SlotSpec, TableSpec};
use iolite_base::hash::FastMap;
use iolite_catalog::ColumnSource;
use iolite_ext::{FunctionFlags, Implementation, Inline};
use iolite_plan::bound::*;
use iolite_plan::executor::Block;
use iolite_plan::plan::*;
use iolite_value::compare::KeyField;
use iolite_value::{Affinity, Collation, Value};

type Answer<T> = std::result::Result<T, String>;

fn no<T>(why: &str) -> Answer<T> {
    Err(why.to_string())
}

struct Compiler<'a> {
    block: &'a Block<'a>,
    /// Whether the user has put a function of his own in the place of a built-in one.
    overridden: &'a dyn Fn(&str) -> bool,
    q: Query,
    params: Params,
    /// Keys and aggregates may be referred to: the expression stands behind the grouping.
    grouped: bool,
    /// The query is nested and depends on the one around it.
    inside: bool,
    outsides: Vec<nested::Outside>,
    /// Nobody reads its result.
    exists: bool,
    /// The expression is a condition on rows.
    in_condition: bool,
    /// What the CASEs around compare with their arms, where that is a column.
    bases: Vec<Option<Ex>>,
    /// How deeply it is nested.
    depth: usize,
}

/// The values that the program must pass.
#[derive(Default)]
struct Params {
    exprs: Vec<Expr>,
    /// Which of them a parameter is.
    of: FastMap<u32, usize>,
}

/// Compiles a block; the values that the program must pass come with it. `overridden`: whether the user has put a function
/// of his own in the place of the built-in one of this name.
pub(crate) fn compile(block: &Block<'_>, overridden: &dyn Fn(&str) -> bool) -> Answer<(Query, Vec<Expr>)> {
    let mut x = Compiler::new(block, overridden);
    x.block()?;
    Ok((x.q, x.params.exprs))
}

impl<'a> Compiler<'a> {
    fn new(block: &'a Block<'a>, overridden: &'a dyn Fn(&str) -> bool) -> Compiler<'a> {
        let q = Query {
            tables: Vec::new(),
            slots: Vec::new(),
            conds: Vec::new(),
            in_order: true,
            loop_order: Some(Vec::new()),
            order_slots: Vec::new(),
            grouping: block.core.grouping,
            keys: Vec::new(),
            key_order: Vec::new(),
            key_fields: Vec::new(),
            aggs: Vec::new(),
            bare: Vec::new(),
            having: None,
            result: Vec::new(),
            distinct: None,
            order: Vec::new(),
            limited: block.limited,
            loops: Loops::of(block.core),
            sought: 0,
            by_keys: sought_by_query(&block.core.levels),
            nested: Vec::new(),
            empty: None,
        };
        Compiler {
            block,
            overridden,
            q,
            params: Params::default(),
            grouped: false,
            inside: false,
            outsides: Vec::new(),
            exists: false,
            in_condition: false,
            bases: Vec::new(),
            depth: 0,
        }
    }
}

impl Compiler<'_> {
    fn block(&mut self) -> Answer<()> {
        let c = self.block.core;
        if c.first_row_only {
            return no("the first row decides");
        }
        if let Some(w) = &c.window {
            self.windowed(w)?;
        }
        // EXISTS is no table here, but the condition that it was.
        let is_table = |l: &&Level| l.source.exists.is_none();
        for l in c.levels.iter().filter(is_table) {
            self.table(l)?;
        }
        for e in &c.constant {
            self.condition(e, None)?;
        }
        for (t, l) in c.levels.iter().filter(is_table).enumerate() {
            let order = self.level_order(t, l);
            if let Some(all) = &mut self.q.loop_order {
                match order {
                    Some(o) => all.push(o),
                    None => self.q.loop_order = None,
                }
            }
            let on = l.source.join.left.then_some(t);
            self.access(t, l, on)?;
            // An automatic index is made of all rows: nothing is sought in the table itself.
            if t == 0 && !matches!(l.access, Access::Auto { .. }) {
                self.q.sought = self.q.conds.len();
            }
            for e in &l.on {
                self.condition(e, on)?;
            }
            for e in &l.filter {
                self.condition(e, None)?;
            }
        }
        for s in c.levels.iter().filter_map(|l| l.source.exists.as_ref()) {
            self.condition(&Expr::Exists(s.clone()), None)?;
        }
        for (i, k) in c.group_by.iter().enumerate() {
            let ex = self.expr(k)?;
            self.q.keys.push(ex);
            self.q.key_fields.push(KeyField {
                coll: known(k.collation().map_or(Collation::Binary, |x| x.0))?,
                desc: c.group_desc.get(i).copied().unwrap_or(false),
                nulls_large: false,
            });
        }
        self.q.key_order = (0..c.group_by.len()).collect();
        if c.grouping == Grouping::Ordered {
            self.index_order()?;
        }
        for a in &c.aggs {
            self.aggregate(a)?;
        }
        self.grouped = c.grouping != Grouping::None;
        self.q.having = match &c.having {
            Some(h) => Some(self.expr(h)?),
            None => None,
        };
        if self.exists {
            return Ok(());
        }
        for e in &c.result {
            let ex = self.expr(e)?;
            self.q.result.push(ex);
        }
        if matches!(c.distinct, Distinct::Adjacent | Distinct::Set) {
            let mut colls = Vec::new();
            for e in &c.result {
                colls.push(known(e.collation().map_or(Collation::Binary, |x| x.0))?);
            }
            self.q.distinct = Some(colls);
        }
        for t in self.block.order {
            let ex = self.expr(&t.expr)?;
            let field =
                KeyField { coll: known(t.collation.clone())?, desc: t.desc, nulls_large: t.nulls_large };
            self.q.order.push((ex, field));
        }
        self.forget_order_of_equals();
        Ok(())
    }

    /// The order in which a level delivers its rows, if it is one of columns and numbers.
    fn table(&mut self, l: &Level) -> Answer<()> {
        if l.source.join.right {
            return no("a RIGHT JOIN");
        }
        let (db, table, query) = match (&l.source.kind, &l.query) {
            (SourceKind::Table { db, table }, None) => (*db, table.clone(), None),
            (SourceKind::Subquery(_), Some(q)) => {
                let (table, query) = self.query_in_from(l, q)?;
                (0, table, Some(query))
            }
            _ => return no("a source is no stored table"),
        };
        if !table.has_rowid() {
            return no("a table WITHOUT ROWID");
        }
        let first = self.q.tables.is_empty();
        let natural = match &l.access {
            Access::Scan { reverse } | Access::RowidRange { reverse, .. } => !reverse,
            Access::RowidEq { eq: EqTerm::Eq { .. }, .. } => !first,
            Access::Index(a) if !first => {
                let all = a.eq.len() == a.index.key_len && a.lo.is_none() && a.hi.is_none() && !a.reverse;
                all && a.eq.iter().all(|e| matches!(e, EqTerm::Eq { .. }))
            }
            _ => false,
        };
        self.q.in_order &= natural;
        let (id, left) = (l.source.id, l.source.join.left);
        self.q.tables.push(TableSpec { db, table, query, windows: Vec::new(), id, left });
        Ok(())
    }

    fn condition(&mut self, e: &Expr, on: Option<usize>) -> Answer<()> {
        match e {
            Expr::And(a, b) => {
                self.condition(a, on)?;
                self.condition(b, on)
            }
            _ if self.reads_outside(e) => self.outside_condition(e, on),
            _ => {
                self.in_condition = on.is_none();
                let ex = self.expr(e);
                self.in_condition = false;
                self.q.conds.push(Cond { ex: ex?, on });
                Ok(())
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn compare(
        &mut self,
        t: usize,
        column: i32,
        op: CmpOp,
        null_eq: bool,
        convert: bool,
        collation: &Collation,
        value: &Expr,
        on: Option<usize>,
    ) -> Answer<()> {
        let lhs = self.column(t, column)?;
        let affinity = if !convert {
            Affinity::Blob
        } else if column < 0 {
            Affinity::Integer
        } else {
            self.q.tables[t].table.columns[column as usize].affinity
        };
        if self.reads_outside(value) {
            return self.outside(lhs, op, null_eq, affinity, value, on);
        }
        self.in_condition = on.is_none();
        let rhs = self.expr(value);
        self.in_condition = false;
        let rhs = rhs?;
        let collation = known(collation.clone())?;
        let ex = Ex::Compare(Box::new(Cmp { op, null_eq, affinity, collation, lhs, rhs }));
        self.q.conds.push(Cond { ex, on });
        Ok(())
    }

    fn equals(
        &mut self,
        t: usize,
        column: i32,
        eq: &EqTerm,
        collation: &Collation,
        on: Option<usize>,
    ) -> Answer<()> {
        match eq {
            EqTerm::Eq { value, null_ok, convert } => {
                let convert = *convert || column < 0;
                self.compare(t, column, CmpOp::Eq, *null_ok, convert, collation, value, on)
            }
            EqTerm::IsNull => {
                let lhs = self.column(t, column)?;
                self.q.conds.push(Cond { ex: Ex::IsNull(Box::new(lhs), false), on });
                Ok(())
            }
            EqTerm::Any => Ok(()),
            EqTerm::InList(l) => self.condition(&Expr::InList(l.clone()), on),
            EqTerm::InSelect(i, _) if i.lhs.len() == 1 => self.condition(&Expr::InSelect(i.clone()), on),
            EqTerm::InSelect(..) => no("IN (SELECT ...) of several columns"),
        }
    }

    /// Puts back among the conditions what an access takes care of.
    fn access(&mut self, t: usize, l: &Level, on: Option<usize>) -> Answer<()> {
        match &l.access {
            Access::Scan { .. } => Ok(()),
            Access::IndexScan { index, .. } if index.filter.is_none() => Ok(()),
            Access::RowidEq { eq, .. } => self.equals(t, ROWID, eq, &Collation::Binary, on),
            Access::RowidRange { lo, hi, .. } => {
                for (b, up) in [(lo, true), (hi, false)] {
                    if let Some(b) = b {
                        let op = range_op(up, b.inclusive);
                        self.compare(t, ROWID, op, false, true, &Collation::Binary, &b.value, on)?;
                    }
                }
                Ok(())
            }
            Access::Index(a) if a.index.filter.is_none() => {
                let column = |n: usize| match a.index.columns[n].source {
                    ColumnSource::Column(c) => Ok(c as i32),
                    ColumnSource::Rowid => Ok(ROWID),
                    ColumnSource::Expr(_) => no("an index on an expression"),
                };
                for (n, eq) in a.eq.iter().enumerate() {
                    let coll = a.key.fields.get(n).map_or(Collation::Binary, |f| f.coll.clone());
                    self.equals(t, column(n)?, eq, &coll, on)?;
                }
                let n = a.eq.len();
                if a.not_null {
                    let lhs = self.column(t, column(n)?)?;
                    self.q.conds.push(Cond { ex: Ex::IsNull(Box::new(lhs), true), on });
                }
                for (b, low) in [(&a.lo, true), (&a.hi, false)] {
                    if let Some(b) = b {
                        let f = &a.key.fields[n];
                        let op = range_op(low != f.desc, b.inclusive);
                        self.compare(t, column(n)?, op, false, b.convert, &f.coll, &b.value, on)?;
                    }
                }
                Ok(())
            }
            Access::Auto { eq, key, filter, .. } => {
                for (n, (c, eq)) in eq.iter().enumerate() {
                    let coll = key.fields.get(n).map_or(Collation::Binary, |f| f.coll.clone());
                    self.equals(t, *c, eq, &coll, on)?;
                }
                for f in filter {
                    self.condition(f, on)?;
                }
                Ok(())
            }
            _ => no("an access that columns do not know"),
        }
    }

    fn aggregate(&mut self, a: &Agg) -> Answer<()> {
        if !a.order_by.is_empty() {
            return no("ORDER BY in an aggregate");
        }
        if !matches!(a.function.imp, Implementation::Aggregate(_))
            || a.function.flags.has(FunctionFlags::SUBTYPE)
            || (self.overridden)(&a.function.name)
        {
            return no("an aggregate of the user's");
        }
        let mut args = Vec::new();
        for e in &a.args {
            args.push(self.expr(e)?);
        }
        let distinct = match a.distinct {
            true => Some(known(a.args[0].collation().map_or(Collation::Binary, |c| c.0))?),
            false => None,
        };
        let filter = match &a.filter {
            Some(f) => Some(self.expr(f)?),
            None => None,
        };
        let collation = known(a.collation.clone())?;
        self.q.aggs.push(AggSpec { function: a.function.clone(), args, distinct, filter, collation });
        Ok(())
    }

    fn slot_spec(&self, t: usize, column: i32) -> Answer<SlotSpec> {
        let table = &self.q.tables[t].table;
        if column < 0 && self.q.tables[t].query.is_some() {
            return no("the rowid of a query");
        }
        let rowid = column < 0 || table.rowid_alias == Some(column as usize);
        let (field, real, default) = if rowid {
            (None, false, Value::Null)
        } else {
            let c = column as usize;
            let Some(f) = table.field_of[c] else { return no("a generated column that is not stored") };
            let default = table.absent_value(c).map_or(Value::Null, |v| (**v).clone());
            // What a query gives for such a column is a real already.
            let real = table.columns[c].affinity == Affinity::Real && self.q.tables[t].query.is_none();
            (Some(f), real, default)
        };
        Ok(SlotSpec { table: t, field, real, default })
    }

    fn column(&mut self, t: usize, column: i32) -> Answer<Ex> {
        let spec = self.slot_spec(t, column)?;
        if let Some(i) = self.q.slots.iter().position(|s| s.table == t && s.field == spec.field) {
            return Ok(Ex::Slot(i));
        }
        self.q.slots.push(spec);
        Ok(Ex::Slot(self.q.slots.len() - 1))
    }

    /// A column beside the groups.
    fn bare(&mut self, t: usize, column: i32) -> Answer<Ex> {
        if self.q.aggs.iter().any(|a| (a.distinct.is_some() || a.filter.is_some()) && a.is_extreme()) {
            return no("a column beside the groups and an extreme of some of their values");
        }
        let Ex::Slot(slot) = self.column(t, column)? else { return no("a column beside the groups") };
        let bare = &mut self.q.bare;
        let at = bare.iter().position(|b| *b == slot);
        Ok(Ex::Bare(at.unwrap_or_else(|| {
            bare.push(slot);
            bare.len() - 1
        })))
    }

    fn boxed(&mut self, e: &Expr) -> Answer<Box<Ex>> {
        self.expr(e).map(Box::new)
    }

    fn cmp(&mut self, c: &Compare) -> Answer<Cmp> {
        Ok(Cmp {
            op: c.op,
            null_eq: c.null_eq,
            affinity: c.affinity,
            collation: known(c.collation.clone())?,
            lhs: self.expr(&c.lhs)?,
            rhs: self.expr(&c.rhs)?,
        })
    }

    fn expr(&mut self, e: &Expr) -> Answer<Ex> {
        if self.grouped
            && let Some(i) = self.block.core.group_by.iter().position(|g| g.same(e))
        {
            return Ok(Ex::Key(i));
        }
        Ok(match e {
            Expr::Const(v) => Ex::Const(v.clone()),
            Expr::Param(n) => {
                let Params { exprs, of } = &mut self.params;
                Ex::Param(*of.entry(*n).or_insert_with(|| {
                    exprs.push(e.clone());
                    exprs.len() - 1
                }))
            }
            Expr::Column(c) => {
                let Some(t) = self.q.tables.iter().position(|t| t.id == c.table) else {
                    return no("a column of an enclosing query");
                };
                if self.grouped { self.bare(t, c.column)? } else { self.column(t, c.column)? }
            }
            // No function that gives subtypes is let in.
            Expr::Plus(a) | Expr::Collate(a, _) | Expr::NoSubtype(a) => self.expr(a)?,
            Expr::Neg(a) => Ex::Neg(self.boxed(a)?),
            Expr::BitNot(a) => Ex::BitNot(self.boxed(a)?),
            Expr::Not(a) => Ex::Not(self.boxed(a)?),
            Expr::Binary(op, a, b) => Ex::Binary(*op, self.boxed(a)?, self.boxed(b)?),
            Expr::Compare(c) => Ex::Compare(Box::new(self.cmp(c)?)),
            Expr::RowOrder(fields) => self.expr(&Expr::row_order(fields))?,
            Expr::And(a, b) => Ex::And(self.boxed(a)?, self.boxed(b)?),
            Expr::Or(a, b) => Ex::Or(self.boxed(a)?, self.boxed(b)?),
            Expr::IsNull(a) => Ex::IsNull(self.boxed(a)?, false),
            Expr::NotNull(a) => Ex::IsNull(self.boxed(a)?, true),
            Expr::IsTruth { e, truth, not } => Ex::Truth { e: self.boxed(e)?, truth: *truth, not: *not },
            Expr::Between { lo, hi } => {
                let lo = Box::new(self.cmp(lo)?);
                self.bases.push(None);
                let hi = Box::new(self.cmp(hi)?);
                self.bases.pop();
                Ex::Between(lo, hi)
            }
            Expr::InList(i) => {
                if i.list.is_empty() {
                    return no("an empty IN");
                }
                let lhs = self.boxed(&i.lhs)?;
                let mut list = Vec::new();
                for item in &i.list {
                    list.push(self.expr(item)?);
                }
                let collation = known(i.collation.clone())?;
                Ex::In { not: i.not, lhs, list, affinity: i.affinity, collation }
            }
            Expr::Case { base, arms, otherwise } => {
                let mut base = base.as_deref().map(|b| self.boxed(b)).transpose()?;
                // A column is compared where it stands.
                let column = base.take_if(|b| matches!(**b, Ex::Slot(_)));
                self.bases.push(column.map(|b| *b));
                let mut out = Vec::new();
                for (w, t) in arms {
                    out.push((self.expr(w)?, self.expr(t)?));
                }
                self.bases.pop();
                let otherwise = otherwise.as_deref().map(|o| self.boxed(o)).transpose()?;
                Ex::Case { base, arms: out, otherwise }
            }
            Expr::CaseBase(..) => self.bases.last().cloned().flatten().unwrap_or(Ex::CaseBase),
            Expr::Cast(a, aff) => Ex::Cast(self.boxed(a)?, *aff),
            Expr::Call(c) => self.call(c)?,
            Expr::Agg(id, _) => match self.block.core.aggs.iter().position(|a| a.id == *id) {
                Some(i) if self.grouped => Ex::Agg(i),
                _ => return no("an aggregate of an enclosing query"),
            },
            Expr::Subquery(s, n) => self.scalar(s, *n)?,
            Expr::Exists(s) => self.exists(s)?,
            Expr::InSelect(i) => self.in_select(i)?,
            Expr::Window(..)
            | Expr::Row(_)
            | Expr::Raise(..)
            | Expr::TriggerColumn(..)
            | Expr::IfNotNullRow(..)
            | Expr::Merged(_) => {
                return no("an expression that columns do not know");
            }
        })
    }

    fn call(&mut self, c: &Call) -> Answer<Ex> {
        let f = &c.function;
        let pure = f.flags.has(FunctionFlags::DETERMINISTIC) || f.flags.has(FunctionFlags::SLOW_CHANGE);
        if (self.overridden)(&f.name) {
            return no("a function of the user's, or one that changes");
        }
        let mut args = Vec::new();
        for a in &c.args {
            args.push(self.expr(a)?);
        }
        let collation = known(c.collation.clone())?;
        let compare = |lhs, rhs| Cmp {
            op: CmpOp::Eq,
            null_eq: false,
            affinity: Affinity::Blob,
            collation: collation.clone(),
            lhs,
            rhs,
        };
        let mut rest = args.into_iter();
        Ok(match f.imp {
            Implementation::Inline(Inline::Coalesce) => Ex::Coalesce(rest.collect()),
            Implementation::Inline(Inline::Likelihood | Inline::Likely) => {
                rest.next().ok_or("a function without arguments")?
            }
            Implementation::Inline(Inline::Nullif) => match (rest.next(), rest.next()) {
                (Some(a), Some(b)) => Ex::Nullif(Box::new(compare(a, b))),
                _ => return no("a function without arguments"),
            },
            Implementation::Inline(Inline::Iif) => {
                let (mut arms, mut otherwise) = (Vec::new(), None);
                while let Some(when) = rest.next() {
                    match rest.next() {
                        Some(then) => arms.push((when, then)),
                        None => otherwise = Some(Box::new(when)),
                    }
                }
                Ex::Case { base: None, arms, otherwise }
            }
            Implementation::Scalar(_) if pure && !f.flags.has(FunctionFlags::SUBTYPE) => {
                Ex::Call { function: f.clone(), args: rest.collect(), collation, frame: Frame::default() }
            }
            _ => return no("a function of the user's, or one that changes"),
        })
    }
}

/// Whether the loops begin with rows sought by the values of a nested query.
fn sought_by_query(levels: &[Level]) -> bool {
    let query = |e: &EqTerm| matches!(e, EqTerm::InSelect(..));
    match levels.first().map(|l| &l.access) {
        Some(Access::RowidEq { eq, .. }) => query(eq),
        Some(Access::Index(a)) => a.eq.iter().any(query),
        _ => false,
    }
}

fn range_op(low: bool, inclusive: bool) -> CmpOp {
    match (low, inclusive) {
        (true, true) => CmpOp::Ge,
        (true, false) => CmpOp::Gt,
        (false, true) => CmpOp::Le,
        (false, false) => CmpOp::Lt,
    }
}

fn known(c: Collation) -> Answer<Collation> {
    match c {
        Collation::Binary | Collation::Nocase | Collation::Rtrim => Ok(c),
        _ => no("a collating sequence of the user's, or UTF-16"),
    }
}
