//! From a query over one table to operators, and from their outcome to the answer.
//!
//! What always holds: an answer is that of the row engine: groups come in the order of their keys, distinct rows as they are
//! first met, ties as they were. A query of another shape is left to the star path.
//!
//! What it does not know: whether it pays; that was asked before ([`crate::pipeline::cost`]).

use crate::decline::because;
use crate::expr::columns::Kind;
use crate::expr::filter::Pred;
use crate::expr::scope::Scope;
use crate::expr::{Eval, Ex, Row};
use crate::memory::{listed, within};
use crate::op::gather::gather;
use crate::op::group::{Found, Grouping, Term};
use crate::op::made::{Made, column_of, int_column, plain_column};
use crate::op::number::Numbers;
use crate::op::result::Answer;
use crate::op::rows::{Picked, project};
use crate::op::source::{Loaded, Source};
use crate::op::state::States;
use crate::op::top::{Cell, Top};
use crate::query::Bound;
use crate::query::{AggSpec, LevelOrder, Query};
use crate::runtime::Runtime;
use crate::star::build::AWAY;
use crate::star::nested;
use crate::star::run::run_in;
use crate::store::chunk::{Chunk, Field};
use iolite_base::{Code, Result};
use iolite_plan::plan;
use iolite_value::compare::KeyField;
use iolite_value::{Collation, Value};
use std::cell::RefCell;
use std::sync::Arc;

/// Columns that nothing but a result reads are loaded beside the others if they are so few.
const FEW: usize = 6;

/// So many groups become columns, of which a row's values are made when it is taken.
const MANY: usize = 256;

/// The columns that conditions, groups and orders read; of a query with groups all.
pub(crate) fn early(q: &Query) -> Vec<bool> {
    let mut out = vec![false; q.slots.len()];
    let mut note = |e: &Ex| e.slots(&mut |s| out[s] = true);
    q.conds.iter().for_each(|c| note(&c.ex));
    q.order.iter().for_each(|o| note(&o.0));
    if q.grouping != plan::Grouping::None || q.distinct.is_some() || !is_flat(q) {
        return vec![true; q.slots.len()];
    }
    let result = q.slots.len() - out.iter().filter(|w| **w).count();
    if result <= FEW { vec![true; q.slots.len()] } else { out }
}

/// Whether a query is one for these operators, as far as its form says.
fn is_flat(q: &Query) -> bool {
    let plain = q.tables.len() == 1 && !q.tables[0].left && !q.by_keys;
    plain
        && !q.conds.iter().any(|c| c.ex.is_correlated() || c.on.is_some())
        && !(q.distinct.is_some() && q.grouping != plan::Grouping::None)
        && (q.bare.is_empty() || q.in_order && !q.aggs.iter().any(|a| a.is_extreme()))
        && (q.in_order
            || q.grouping != plan::Grouping::None
            || loop_order(q).is_some() && q.distinct.is_none())
}

/// The order of the only loop, where it is one of columns and numbers.
fn loop_order(q: &Query) -> Option<&LevelOrder> {
    match q.loop_order.as_deref() {
        Some([l]) if l.binary && !l.one => Some(l),
        _ => None,
    }
}

/// What rows are sorted by so that they come as the loop delivers them; columns that are not there yet are added.
fn order_of_loop<'a>(q: &'a Query, src: &mut Source<'a>, now: &mut Vec<bool>) -> Vec<(Ex, KeyField)> {
    let Some(l) = loop_order(q).filter(|_| !q.in_order) else { return Vec::new() };
    let mut out = Vec::new();
    for (n, desc) in &l.by {
        let spec = &q.order_slots[*n];
        let known = src.slots.iter().position(|s| s.key() == spec.key());
        let slot = known.unwrap_or_else(|| {
            src.slots.push(spec);
            now.push(true);
            src.slots.len() - 1
        });
        now[slot] = true;
        let fixed = q.conds.iter().any(|c| c.ex.fixes(slot));
        if !fixed {
            out.push((Ex::Slot(slot), KeyField { coll: Collation::Binary, desc: *desc, nulls_large: false }));
        }
    }
    out
}

/// Runs a query; `None`: not here.
pub(crate) fn run(
    q: &Query,
    rt: &dyn Runtime,
    params: &[Value],
    wanted: i64,
    since: u64,
    made: &[Option<Made>],
) -> Result<Option<Answer>> {
    if !is_flat(q) {
        return Ok(None);
    }
    let made = match (&q.tables[0].query, made) {
        (None, _) => None,
        (Some(_), [Some(made)]) => Some(made),
        // Nobody has run it.
        (Some(_), _) => return Ok(None),
    };
    let Some(results) = nested::results_of(q, rt, params, since, run_in)? else { return Ok(None) };
    let eval = Eval::new(rt.host());
    let bound = Bound::new(q, params, &results, &eval)?;
    let mut src = Source::new(q, rt, &eval, since, made)?;
    let mut now = if made.is_some() { vec![true; q.slots.len()] } else { early(q) };
    let mut order = bound.order.clone();
    if q.grouping == plan::Grouping::None {
        order.extend(order_of_loop(q, &mut src, &mut now));
    }
    let backwards = !q.in_order && loop_order(q).is_some_and(|l| l.reverse);
    if backwards && q.grouping == plan::Grouping::None {
        return Ok(None);
    }
    let l = src.load(&now)?;
    if l.rows() >= AWAY as usize {
        return Ok(None);
    }
    let mut preds = Vec::new();
    for c in &bound.conds {
        match &c.ex {
            Ex::Const(v) if v.truth() == Some(true) => {}
            ex => preds.push(Pred::of(ex, &l.cols[0], &l.places.of_table[0], &eval, true)?),
        }
    }
    let preds = Pred::joined(preds);
    let limit = usize::try_from(wanted).ok();
    let x = Pipeline { q, src: &src, l: &l, bound: &bound, order: &order, preds: &preds, limit };
    match (q.grouping, &q.distinct) {
        (plan::Grouping::None, None) => x.rows(&now).map(Some),
        (plan::Grouping::None, Some(colls)) => x.distinct(colls).map(Some),
        _ => x.groups(),
    }
}

struct Pipeline<'a> {
    q: &'a Query,
    src: &'a Source<'a>,
    l: &'a Loaded,
    bound: &'a Bound,
    /// What rows are sorted by.
    order: &'a [(Ex, KeyField)],
    preds: &'a [Pred],
    limit: Option<usize>,
}

/// A group as a row of keys and aggregates.
struct GroupRow<'g, 'a> {
    x: &'g Pipeline<'a>,
    groups: &'g Groups<'a>,
    group: u32,
    s: &'g Scope<'g>,
}

/// The groups, and their aggregates.
struct Groups<'a> {
    found: Found,
    states: RefCell<States<'a>>,
}

impl GroupRow<'_, '_> {
    fn first(&self) -> Option<u32> {
        self.groups.found.first.get(self.group as usize).copied()
    }
}

impl Row for GroupRow<'_, '_> {
    fn slot(&self, _: usize) -> Result<Value> {
        Err(Code::Internal.into())
    }

    fn key(&self, i: usize) -> Result<Value> {
        if let Some(known) = self.groups.found.key(i, self.group) {
            return known.value();
        }
        let first = self.first().ok_or(Code::Internal)?;
        self.x.src.eval.value(&self.x.bound.keys[i], &self.x.l.row(first))
    }

    fn agg(&self, i: usize) -> Result<Value> {
        self.groups.states.borrow_mut().value(i, self.group as usize, self.s)
    }

    fn bare(&self, i: usize) -> Result<Value> {
        match self.first() {
            Some(row) => self.x.l.field(self.x.q.bare[i], row).value(),
            None => Ok(Value::Null),
        }
    }
}

impl<'a> Pipeline<'a> {
    fn rows(&self, loaded: &[bool]) -> Result<Answer> {
        let s = self.src.setting(self.l);
        let mut picked = Picked::new(self.order, self.limit);
        if self.limit != Some(0) {
            self.src.scan(self.l, self.preds, &mut |b| picked.push(b, &s))?;
        }
        let begun = self.src.now();
        let rows = picked.finish()?;
        self.src.note(begun, &|| format!("ORDER: {} rows", rows.len()));
        let late: Vec<bool> = loaded.iter().map(|l| !l).collect();
        project(self.src, self.l, &rows, &self.bound.result, &late)
    }

    fn distinct(&self, colls: &[Collation]) -> Result<Answer> {
        let s = self.src.setting(self.l);
        let numbers = Numbers::new(&self.bound.result, colls, &s)?;
        let states = States::new(&[], &[], false, false, &s)?;
        let mut groups = Grouping::new(Some(numbers), states, self.l.rows())?;
        let enough = self.limit.filter(|_| self.bound.order.is_empty()).unwrap_or(usize::MAX);
        self.src.scan(self.l, self.preds, &mut |b| {
            groups.push(b, &s)?;
            Ok(groups.len() < enough)
        })?;
        let begun = self.src.now();
        let mut rows = std::mem::take(&mut groups.first);
        if !self.bound.order.is_empty() {
            let fields = self.bound.order.iter().map(|o| o.1.clone()).collect();
            let mut top = Top::new(fields, self.limit);
            for row in &rows {
                top.push(*row, &mut |k| self.cell(&self.bound.order[k].0, *row))?;
            }
            rows = top.finish()?;
        }
        rows.truncate(self.limit.unwrap_or(usize::MAX));
        self.src.note(begun, &|| format!("DISTINCT: {} rows", rows.len()));
        project(self.src, self.l, &rows, &self.bound.result, &[])
    }

    /// The value of an expression in a row of the table.
    fn cell(&self, e: &Ex, row: u32) -> Result<Cell<'a>> {
        Ok(match e {
            Ex::Slot(slot) => Cell::There(self.l.field(*slot, row)),
            e => Cell::Made(self.src.eval.value(e, &self.l.row(row))?),
        })
    }

    fn groups(&self) -> Result<Option<Answer>> {
        let (q, bound, src) = (self.q, self.bound, self.src);
        let s = src.setting(self.l);
        let one = q.grouping == plan::Grouping::All;
        // Several threads take it in turn, or arrays of states.
        if (src.rt.threads() > 1 || !one) && self.is_shared(&s) {
            return Ok(None);
        }
        let states = States::new(&q.aggs, &bound.aggs, one, !q.in_order, &s)?;
        let colls: Vec<Collation> = q.key_fields.iter().map(|f| f.coll.clone()).collect();
        let numbers = if one { None } else { Some(Numbers::new(&bound.keys, &colls, &s)?) };
        let mut groups = Grouping::new(numbers, states, self.l.rows())?;
        src.scan(self.l, self.preds, &mut |b| {
            groups.push(b, &s)?;
            Ok(true)
        })?;
        if !q.in_order && groups.states.depends_on_order() {
            return Err(because("an aggregate that depends on the order of an index"));
        }
        let begun = src.now();
        let n = if one { 1 } else { groups.len() };
        if !bound.order.is_empty() || bound.having.is_some() {
            groups.states.check(&s)?;
        }
        let (found, states) = groups.split();
        // Of the two zeros the one counts that the row which stands for the group has.
        if found.have_both_zeros() && (!q.in_order || q.aggs.iter().any(|a| a.is_extreme())) {
            return Err(because("zeros of two signs among keys"));
        }
        let groups = Groups { found, states: RefCell::new(states) };
        let kept = self.having(&groups, n, &s)?;
        let order = self.order(&groups, kept, one, &s)?;
        let width = bound.result.len();
        if !within(order.len() * width * size_of::<Value>()) {
            return Err(because("no room for rows"));
        }
        if !one && order.len() >= MANY {
            let made = self.columns(&groups, &order, &s)?;
            src.note(begun, &|| format!("GROUPS: {n}, of which {} in order, in columns", order.len()));
            return Ok(Some(Answer::of_columns(made)));
        }
        let mut values: Vec<Value> = crate::memory::room(order.len() * width)?;
        for g in &order {
            let row = GroupRow { x: self, groups: &groups, group: *g, s: &s };
            for e in &bound.result {
                values.push(src.eval.value(e, &row)?);
            }
        }
        src.note(begun, &|| format!("GROUPS: {n}, of which {} in order", order.len()));
        Ok(Some(Answer::of(values, width, order.len())))
    }

    /// The result of some groups as columns.
    fn columns(&self, groups: &Groups<'a>, order: &[u32], s: &Scope<'_>) -> Result<Made> {
        let cols = &self.l.cols[0];
        let of_slot = |slot: usize, rows: &[u32]| gather(cols, self.l.places.at[slot].1, rows);
        let first = listed(order.iter().map(|g| groups.found.first[*g as usize]))?;
        let mut out = Vec::new();
        for e in &self.bound.result {
            self.src.rt.check()?;
            if let Ex::Agg(i) = e {
                let states = groups.states.borrow();
                if let Some(list) = states.numbers(*i) {
                    let mut values = listed(order.iter().map(|g| list[*g as usize]))?;
                    out.push((Arc::new(Chunk::of_ints(&mut values, &[])?), Arc::default()));
                    continue;
                }
                if let Some((slot, rows)) = states.rows_of(*i) {
                    let rows = listed(order.iter().map(|g| rows[*g as usize]))?;
                    out.push(of_slot(slot, &rows)?);
                    continue;
                }
            }
            out.push(match e {
                Ex::Key(i) if let Ex::Slot(slot) = self.bound.keys[*i] => of_slot(slot, &first)?,
                Ex::Bare(i) => of_slot(self.q.bare[*i], &first)?,
                Ex::Key(i) if order.iter().all(|g| groups.found.key(*i, *g).is_some()) => {
                    let keys = order.iter().filter_map(|g| groups.found.key(*i, *g));
                    match groups.found.is_int(*i) {
                        true => int_column(keys)?,
                        false => plain_column(keys)?,
                    }
                }
                e => {
                    let mut values: Vec<Value> = crate::memory::room(order.len())?;
                    for g in order {
                        values.push(self.src.eval.value(e, &GroupRow { x: self, groups, group: *g, s })?);
                    }
                    column_of(values.iter().map(Field::of))?
                }
            });
        }
        Ok(Made::new(order.len(), out))
    }

    /// Whether the star path's threads know all of it: codes and integers, in any order.
    fn is_shared(&self, s: &Scope<'_>) -> bool {
        let int = |e: &Ex| matches!(e, Ex::Slot(_)) && crate::expr::vector::bounds(e, s).is_some();
        let code = |e: &Ex| matches!(e, Ex::Slot(i) if s.cols[0].kinds[s.places.at[*i].1] == Kind::Dict);
        let few = Numbers::new(&self.bound.keys, &vec![Collation::Binary; self.bound.keys.len()], s);
        let few = few.is_ok_and(|n| n.bits() < 20 && !n.are_ids());
        let plain = |(spec, (args, filter)): (&AggSpec, &(Vec<Ex>, Option<Ex>))| {
            spec.distinct.is_none() && filter.is_none() && args.iter().all(int)
        };
        few && self.q.bare.is_empty()
            && self.bound.keys.iter().all(|k| int(k) || code(k))
            && self.q.aggs.iter().zip(&self.bound.aggs).all(plain)
            && self.preds.iter().all(Pred::is_pure)
    }

    /// The groups that HAVING lets through.
    fn having(&self, groups: &Groups<'a>, n: usize, s: &Scope<'_>) -> Result<Vec<u32>> {
        let Some(h) = &self.bound.having else { return Ok((0..n as u32).collect()) };
        if let Ex::Compare(c) = h
            && let (Ex::Agg(i), Ex::Const(Value::Int(k)), false) = (&c.lhs, &c.rhs, c.null_eq)
            && let Some(list) = groups.states.borrow().numbers(*i)
        {
            return Ok((0..n as u32).filter(|g| c.op.holds(list[*g as usize].cmp(k))).collect());
        }
        let mut out = Vec::new();
        for group in 0..n as u32 {
            if self.src.eval.holds(h, &GroupRow { x: self, groups, group, s })? {
                out.push(group);
            }
        }
        Ok(out)
    }

    /// Groups in the order in which they are wanted.
    fn order(&self, groups: &Groups<'a>, list: Vec<u32>, one: bool, s: &Scope<'_>) -> Result<Vec<u32>> {
        let (q, bound) = (self.q, self.bound);
        if one {
            let n = self.limit.unwrap_or(usize::MAX);
            return Ok(list.into_iter().take(n).collect());
        }
        // Ties come in the order of the keys.
        let mut fields: Vec<KeyField> = bound.order.iter().map(|o| o.1.clone()).collect();
        let terms = fields.len();
        fields.extend(q.key_order.iter().map(|k| q.key_fields[*k].clone()));
        let states = groups.states.borrow();
        let of_order = bound.order.iter().map(|(e, _)| match e {
            Ex::Key(i) => Some(Term::Key(*i)),
            Ex::Agg(i) => states.numbers(*i).map(Term::Numbers),
            _ => None,
        });
        let of_keys = q.key_order.iter().map(|k| Some(Term::Key(*k)));
        if let Some(list_of) = of_order.chain(of_keys).collect::<Option<Vec<Term<'_>>>>() {
            let by: Vec<_> = list_of.into_iter().zip(&fields).collect();
            if let Some(sorted) = groups.found.sorted(&list, &by, self.limit)? {
                return Ok(sorted);
            }
        }
        drop(states);
        let mut top = Top::new(fields, self.limit);
        let first = match bound.order.first() {
            Some((Ex::Agg(i), _)) => groups.states.borrow().numbers(*i).map(<[i64]>::to_vec),
            _ => None,
        };
        let key = |k: usize, group: u32| match groups.found.key(k, group) {
            Some(known) => Ok(Cell::There(known)),
            None => self.cell(&bound.keys[k], groups.found.first[group as usize]),
        };
        for (i, group) in list.into_iter().enumerate() {
            if i % 65_536 == 0 {
                self.src.rt.check()?;
            }
            top.push(group, &mut |k| match (k.checked_sub(terms), &first) {
                (Some(k), _) => key(q.key_order[k], group),
                (None, Some(list)) if k == 0 => {
                    Ok(Cell::There(crate::store::chunk::Field::Int(list[group as usize])))
                }
                _ => match &bound.order[k].0 {
                    Ex::Key(i) => key(*i, group),
                    e => {
                        let row = GroupRow { x: self, groups, group, s };
                        Ok(Cell::Made(self.src.eval.value(e, &row)?))
                    }
                },
            })?;
        }
        if !within(top.bytes()) {
            return Err(because("no room for rows"));
        }
        top.finish()
    }
}
