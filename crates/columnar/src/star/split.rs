//! How the conditions of a query are divided: those on one table, equalities that lead from table to table, those that
//! ask nested queries, and the rest.
//!
//! The planner's loops say nothing here: from the table that is scanned, each further one is reached by an equality of one
//! of its columns with something known, or by several of integers. What a disjunction says of one table alone is tested
//! on that table too.

use crate::expr::columns::{Columns, Kind};
use crate::expr::condition::Truth;
use crate::expr::scope::Places;
use crate::expr::{Cmp, Ex};
use crate::query::{Cond, LevelOrder, Query, tables_of};
use crate::star::build::InnerTable;
use crate::star::probe::FewKeys;
use crate::star::scope::Run;
use crate::store::TableState;
use iolite_plan::bound::CmpOp;
use iolite_value::Affinity;
use std::sync::Arc;

/// An inner table's key and what it equals.
pub(crate) struct Join {
    pub table: usize,
    /// Its columns: one, or several of integers.
    pub slots: Vec<usize>,
    /// What they equal.
    pub others: Vec<Ex>,
    pub affinity: Affinity,
    pub binary: bool,
    /// The condition that it came from.
    pub cond: Ex,
}

impl Join {
    /// The only column that the only column of the key equals.
    pub fn other(&self) -> Option<usize> {
        match self.others[..] {
            [Ex::Slot(s)] => Some(s),
            _ => None,
        }
    }
}

/// How the conditions are divided.
#[derive(Default)]
pub(crate) struct JoinPlan {
    pub local: Vec<Vec<Ex>>,
    pub joins: Vec<Join>,
    pub rest: Vec<Ex>,
    /// These in the form in which they are tested.
    pub tests: Vec<Truth>,
    /// Of joins whose key has few values, what was found for each.
    pub few: Vec<Option<FewKeys>>,
    /// Those that ask nested queries.
    pub correlated: Vec<Ex>,
    /// Tables whose rows must be known though nobody reads them.
    pub keep: u64,
    /// Rows that were selected are noted, and nothing is computed from them yet.
    pub collects: bool,
    /// The scanned table, where its columns are brought by and by.
    pub state: Option<Arc<TableState>>,
    /// The order of the loops, where it matters.
    pub levels: Option<Vec<LevelOrder>>,
    /// Joined rows beyond which it is given up, and those beyond which it is before they are tested.
    pub most_joined: Option<u64>,
    pub most_tested: Option<u64>,
    /// The scan is thought to end soon: somebody wants few rows, in whatever order.
    pub ends_soon: bool,
}

/// What a condition on several tables says of table `t` alone.
fn implied(q: &Query, e: &Ex, t: usize) -> Option<Ex> {
    if tables_of(q, e) == 1 << t {
        return Some(e.clone());
    }
    match e {
        Ex::And(a, b) => match (implied(q, a, t), implied(q, b, t)) {
            (Some(a), Some(b)) => Some(Ex::And(Box::new(a), Box::new(b))),
            (a, b) => a.or(b),
        },
        Ex::Or(a, b) => Some(Ex::Or(Box::new(implied(q, a, t)?), Box::new(implied(q, b, t)?))),
        _ => None,
    }
}

/// How many different keys a join's table has at the most; 0 if that is not known, or nothing is found by them.
fn different(j: &Join, cols: &[Columns], places: &Places) -> u64 {
    let of = |slot: &usize| {
        let (t, col) = places.at[*slot];
        let (min, max) = cols[t].bounds[col];
        match cols[t].kinds[col] {
            Kind::Int if j.affinity != Affinity::Text => max.abs_diff(min).saturating_add(1),
            Kind::Dict if j.binary && !j.affinity.is_numeric() => cols[t].loaded.dicts[col].len() as u64,
            _ => 0,
        }
    };
    j.slots.iter().map(of).fold(1, u64::saturating_mul).min(cols[j.table].loaded.rows as u64)
}

impl Run<'_> {
    /// Divides the conditions: those on one table, equalities that lead from table to table, all others.
    pub(crate) fn split(&self) -> Option<JoinPlan> {
        let q = self.q;
        let n = q.tables.len();
        let mut d = JoinPlan { local: vec![Vec::new(); n], ..JoinPlan::default() };
        let mut open: Vec<&Cond> = Vec::new();
        for c in &self.bound.conds {
            if c.ex.is_correlated() {
                if c.on.is_some() {
                    return None;
                }
                d.correlated.push(c.ex.clone());
                continue;
            }
            let mask = tables_of(q, &c.ex);
            if c.on.is_none() && mask.count_ones() > 1 && matches!(c.ex, Ex::Or(..)) {
                for t in (0..n).filter(|t| mask & 1 << t != 0 && !q.tables[*t].left) {
                    d.local[t].extend(implied(q, &c.ex, t));
                }
            }
            match c.on {
                Some(t) if mask & !(1 << t) == 0 => d.local[t].push(c.ex.clone()),
                Some(_) => open.push(c),
                None if mask == 0 => d.local[self.outer].push(c.ex.clone()),
                // A comparison of several columns is tested for many rows at once, behind the others.
                None if mask == 1 << self.outer
                    && matches!(c.ex, Ex::Compare(_))
                    && c.ex.only_slot().is_none() =>
                {
                    d.rest.push(c.ex.clone());
                }
                None if mask.is_power_of_two() && !q.tables[mask.trailing_zeros() as usize].left => {
                    d.local[mask.trailing_zeros() as usize].push(c.ex.clone());
                }
                None => open.push(c),
            }
        }
        let mut placed = 1u64 << self.outer;
        let mut used = vec![false; open.len()];
        while placed.count_ones() < n as u32 {
            let mut found = None;
            'search: for t in (0..n).filter(|t| placed & 1 << t == 0) {
                for (i, c) in open.iter().enumerate() {
                    let fits = if q.tables[t].left { c.on == Some(t) } else { c.on.is_none() };
                    if !used[i]
                        && fits
                        && let Some(j) = self.join_of(&c.ex, t, placed)
                    {
                        found = Some((i, j));
                        break 'search;
                    }
                }
            }
            let (i, j) = found?;
            used[i] = true;
            placed |= 1 << j.table;
            d.joins.push(j);
        }
        for (c, used) in open.iter().zip(used) {
            if !used {
                if c.on.is_some() {
                    return None;
                }
                d.rest.push(c.ex.clone());
            }
        }
        Some(d)
    }

    /// The condition as a way from the tables in `placed` to table `t`.
    fn join_of(&self, e: &Ex, t: usize, placed: u64) -> Option<Join> {
        let Ex::Compare(c) = e else { return None };
        let Cmp { op: CmpOp::Eq, null_eq: false, affinity, collation, lhs, rhs } = &**c else { return None };
        for (own, other) in [(lhs, rhs), (rhs, lhs)] {
            if let Ex::Slot(s) = own
                && self.q.slots[*s].table == t
                && tables_of(self.q, other) & !placed == 0
            {
                return Some(Join {
                    table: t,
                    slots: vec![*s],
                    others: vec![other.clone()],
                    affinity: *affinity,
                    binary: collation.is_binary(),
                    cond: e.clone(),
                });
            }
        }
        None
    }

    /// The tables whose columns are there before the first join: the outer one, and those of which it has derived codes.
    fn before_joins(&self, d: &JoinPlan) -> u64 {
        let all = (1u64 << self.q.tables.len()) - 1;
        d.joins.iter().fold(all, |known, j| known & !(1 << j.table))
    }

    /// Where several equalities lead to a table, the one with the most different values becomes its key; a rowid has them all.
    pub(crate) fn choose_keys(&self, d: &mut JoinPlan, cols: &[Columns], places: &Places) {
        let mut placed = self.before_joins(d);
        for j in &mut d.joins {
            let (t, known) = (j.table, placed);
            placed |= 1 << t;
            if self.q.tables[t].left || j.slots.iter().any(|s| self.q.slots[*s].field.is_none()) {
                continue;
            }
            let others = d.rest.iter().enumerate();
            let ways = others
                .filter_map(|(i, e)| self.join_of(e, t, known).map(|n| (different(&n, cols, places), i, n)));
            let best = ways.max_by_key(|w| w.0).filter(|w| w.0 > different(j, cols, places));
            if let Some((_, i, better)) = best {
                d.rest[i] = std::mem::replace(j, better).cond;
            }
        }
    }

    /// Pairs of rows that are found by one equality of several, where the others are tested pair by pair: about so many, if values
    /// are spread evenly. `None`: nothing is left over that a key of several columns would have.
    pub(crate) fn pairs_by_part(&self, d: &JoinPlan, cols: &[Columns], places: &Places) -> Option<u64> {
        let whole = (1u64 << self.q.tables.len()) - 1;
        let tested =
            |j: &&Join| d.rest.iter().any(|e| self.join_of(e, j.table, whole & !(1 << j.table)).is_some());
        let outer = cols[self.outer].loaded.rows as u64;
        let pairs = |j: &Join| {
            outer.saturating_mul(cols[j.table].loaded.rows as u64) / different(j, cols, places).max(1)
        };
        d.joins.iter().filter(tested).map(pairs).max()
    }

    /// Equalities of integers that lead to the same table make one key.
    pub(crate) fn combine(&self, d: &mut JoinPlan, cols: &[Columns], places: &Places) {
        let mut placed = self.before_joins(d);
        let int = |s: usize| cols[places.at[s].0].kinds[places.at[s].1] == Kind::Int;
        for j in &mut d.joins {
            let t = j.table;
            let known = placed;
            placed |= 1 << t;
            let rowid = j.slots.iter().any(|s| self.q.slots[*s].field.is_none());
            let fits = |s: usize, j: &Join| {
                int(s) && j.other().is_some_and(int) && j.affinity != Affinity::Text && !self.q.tables[t].left
            };
            if rowid || !fits(j.slots[0], j) {
                continue;
            }
            let more = d.rest.iter().position(|e| {
                let Some(n) = self.join_of(e, t, known) else { return false };
                let mut keys: Vec<usize> = j.slots.iter().map(|s| places.at[*s].1).collect();
                keys.push(places.at[n.slots[0]].1);
                fits(n.slots[0], &n) && n.slots[0] != j.slots[0] && InnerTable::can_combine(&cols[t], &keys)
            });
            if let Some(n) = more.and_then(|i| self.join_of(&d.rest[i], t, known).map(|n| (i, n))) {
                d.rest.remove(n.0);
                j.slots.extend(n.1.slots);
                j.others.extend(n.1.others);
            }
        }
    }
}
