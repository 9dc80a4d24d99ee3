//! What comes out of groups: their order, their keys and aggregates.
//!
//! Keys are told from a group's number, part by part; only where equal keys must be told apart by their looks are values
//! compared.

use super::*;
use iolite_value::order::{ValueRef, compare_refs};

/// Where no more than one of so many groups are wanted, the others are dropped before they are sorted.
const FEW_OF: usize = 4;

impl<'q> Groups<'q> {
    /// The groups in the order of their keys, of which no more than `most` are wanted: those behind may be missing. `None`: two
    /// keys compare equal though they differ, so that their groups are one group to everybody else.
    pub fn order(&mut self, most: Option<usize>, s: &JoinScope<'_>) -> Result<Option<Vec<u32>>> {
        if self.q.keys.is_empty() {
            if self.st.rows.is_empty() {
                self.st.grow(1)?;
            }
            return Ok(Some(vec![0]));
        }
        let mut groups: Vec<u32> = crate::memory::room(self.st.rows.len())?;
        groups.extend((0..self.st.rows.len() as u32).filter(|g| self.st.rows[*g as usize] > 0));
        if let ([Source::Int { .. }], [f], true) = (&self.sources[..], &self.q.key_fields[..], self.dense) {
            // Numbers ascend as the keys do.
            if f.desc {
                groups.reverse();
            }
            return Ok(Some(groups));
        }
        if let Some(most) = most {
            self.keep_first(&mut groups, most, s);
        }
        // Key by key the groups fall into classes, until each is one of its own.
        let mut class: Vec<u32> = crate::memory::room(groups.len())?;
        class.resize(groups.len(), 0);
        let mut classes = groups.len().min(1);
        let mut at: Vec<(u32, u64, u32)> = crate::memory::room(groups.len())?;
        at.extend((0..groups.len() as u32).map(|i| (0, 0, i)));
        for &k in &self.q.key_order {
            if classes == groups.len() {
                break;
            }
            let Some(ranks) = self.ranks(&groups, k, s)? else { return Ok(None) };
            for a in &mut at {
                (a.0, a.1) = (class[a.2 as usize], ranks[a.2 as usize]);
            }
            at.sort_unstable();
            classes = 0;
            let mut last = None;
            for a in &at {
                if last != Some((a.0, a.1)) {
                    classes += 1;
                    last = Some((a.0, a.1));
                }
                class[a.2 as usize] = classes as u32 - 1;
            }
        }
        if classes < groups.len() {
            return Ok(None);
        }
        Ok(Some(at.into_iter().map(|a| groups[a.2 as usize]).collect()))
    }

    /// Drops groups that by the first of their keys come behind so many others, where that key lies somewhere as a value.
    fn keep_first(&self, groups: &mut Vec<u32>, most: usize, s: &JoinScope<'_>) {
        let [k, ..] = self.q.key_order[..] else { return };
        let Some(first) = groups.first().filter(|_| most > 0 && most < groups.len() / FEW_OF) else { return };
        if self.key_field(*first, k, s).is_none() {
            return;
        }
        let field = |g: u32| self.key_field(g, k, s).map_or(ValueRef::Null, Field::as_ref);
        let compare = |a: u32, b: u32| compare_refs(field(a), field(b), &self.q.key_fields[k]);
        let last = *groups.select_nth_unstable_by(most - 1, |a, b| compare(*a, *b)).1;
        // Keys that compare equal to the last one stay, too.
        groups.retain(|g| compare(*g, last).is_le());
    }

    /// Numbers that ascend as the groups' keys `k` are to come. `None`: two that compare equal differ.
    fn ranks(&self, groups: &[u32], k: usize, s: &JoinScope<'_>) -> Result<Option<Vec<u64>>> {
        let f = &self.q.key_fields[k];
        let mut ranks: Vec<u64> = crate::memory::room(groups.len())?;
        if let Source::Int { .. } = &self.sources[self.key_at[k].0]
            && !f.nulls_large
        {
            // Numbers ascend as the values do, that of NULL before all.
            ranks.extend(groups.iter().map(|g| self.part_of(*g, k)));
            if f.desc {
                ranks.iter_mut().for_each(|r| *r = !*r);
            }
            return Ok(Some(ranks));
        }
        let mut numbers: Vec<(u64, u32)> = crate::memory::room(groups.len())?;
        numbers.extend(groups.iter().enumerate().map(|(i, g)| (self.part_of(*g, k), i as u32)));
        sort::by_number(&mut numbers);
        // Of each number one group; then in the order of their values.
        let mut list: Vec<(Value, u32)> = Vec::new();
        for (i, (number, at)) in numbers.iter().enumerate() {
            if i == 0 || numbers[i - 1].0 != *number {
                alloc::reserve(&mut list, 1)?;
                list.push((self.key_value(groups[*at as usize], k, s)?, i as u32));
            }
        }
        let at = in_order(list.len(), std::slice::from_ref(f), &|i, _| (&list[i as usize].0).into())?;
        let list: Vec<(Value, u32)> =
            at.iter().map(|i| (std::mem::take(&mut list[*i as usize].0), list[*i as usize].1)).collect();
        ranks.resize(groups.len(), 0);
        let mut rank = 0;
        for i in 0..list.len() {
            if i > 0 && compare::compare(&list[i - 1].0, &list[i].0, &f.coll).is_ne() {
                rank += 1;
            } else if i > 0 && !identical(&list[i - 1].0, &list[i].0) {
                return Ok(None);
            }
            let first = list[i].1 as usize;
            for n in &numbers[first..] {
                if n.0 != numbers[first].0 {
                    break;
                }
                ranks[n.1 as usize] = rank;
            }
        }
        Ok(Some(ranks))
    }

    /// The group's number within one source.
    fn source_number(&self, group: u32, source: usize) -> u64 {
        let mut number = if self.dense { group as u64 } else { self.st.index.numbers[group as usize] };
        if self.sources.len() == 1 {
            return number;
        }
        for i in (0..self.sources.len()).rev() {
            let n = number % self.radix[i];
            if i == source {
                return n;
            }
            number /= self.radix[i];
        }
        0
    }

    pub(super) fn source_of(&self, k: usize) -> (usize, usize) {
        for (i, s) in self.sources.iter().enumerate() {
            match s {
                Source::InnerTable { keys, .. } | Source::Row { keys, .. } => {
                    if let Some(at) = keys.iter().position(|x| *x == k) {
                        return (i, at);
                    }
                }
                Source::Int { key, .. }
                | Source::Dict { key, .. }
                | Source::Mapped { key, .. }
                | Source::Any { key, .. } => {
                    if *key == k {
                        return (i, 0);
                    }
                }
            }
        }
        (0, 0)
    }

    /// What stands for a key of a group: the same number is the same value.
    fn part_of(&self, group: u32, k: usize) -> u64 {
        self.source_number(group, self.key_at[k].0)
    }

    fn key_value(&self, group: u32, k: usize, s: &JoinScope<'_>) -> Result<Value> {
        let (source, at) = self.key_at[k];
        let n = self.source_number(group, source);
        match &self.sources[source] {
            Source::InnerTable { values, .. } => Ok(values[n as usize][at].clone()),
            Source::Row { table, .. } => {
                let cols = &s.cols[*table];
                if n as usize == cols.loaded.rows {
                    return s.eval.value(&self.keys[k], &NullRow);
                }
                let (p, i) = cols.locate(n as usize);
                s.eval.value(&self.keys[k], &cols.row(&cols.loaded.parts[p], i, &s.places.of_table[*table]))
            }
            _ => self.key_field(group, k, s).ok_or(Code::Internal)?.value(),
        }
    }

    /// A key of a group where it lies; `None`: it has to be computed.
    fn key_field<'f>(&'f self, group: u32, k: usize, s: &'f JoinScope<'_>) -> Option<Field<'f>> {
        let source = self.key_at[k].0;
        let n = self.source_number(group, source);
        Some(match &self.sources[source] {
            Source::Int { min, nullable, .. } => match n as i64 - *nullable as i64 {
                n if n >= 0 => Field::Int(min + n),
                _ => Field::Null,
            },
            Source::Dict { table, col, .. } => {
                let dict = &s.cols[*table].loaded.dicts[*col];
                if n as usize == dict.len() { Field::Null } else { dict.get(n as u32) }
            }
            Source::Mapped { dict, .. } | Source::Any { dict, .. } => dict.get(n as u32),
            Source::InnerTable { .. } | Source::Row { .. } => return None,
        })
    }

    /// Puts the groups' results, row by row, into `out`, if these are keys and aggregates as they are. `false`: they are
    /// to be computed one by one, and `out` is as it was.
    pub fn results(
        &self,
        result: &[Ex],
        order: &[u32],
        s: &JoinScope<'_>,
        out: &mut Vec<Value>,
    ) -> Result<bool> {
        let plain = |e: &Ex| match e {
            Ex::Key(_) => true,
            Ex::Agg(k) => !matches!(self.st.accs[*k], Acc::Any { .. }),
            _ => false,
        };
        if !result.iter().all(plain) || result.is_empty() {
            return Ok(false);
        }
        let width = result.len();
        if order.is_empty() {
            return Ok(true);
        }
        alloc::reserve(out, order.len() * width)?;
        out.resize(order.len() * width, Value::Null);
        for (j, e) in result.iter().enumerate() {
            let mut to = out[j..].iter_mut().step_by(width);
            let mut take = |v: Value| {
                if let Some(to) = to.next() {
                    *to = v;
                }
            };
            match e {
                Ex::Agg(k) => {
                    self.values_of(*k, order, &mut take)?;
                }
                Ex::Key(k) => match &self.sources[self.key_at[*k].0] {
                    Source::Int { min, nullable: false, .. } => {
                        order.iter().for_each(|g| take(Value::Int(min + self.part_of(*g, *k) as i64)));
                    }
                    _ => {
                        for g in order {
                            take(self.key_value(*g, *k, s)?);
                        }
                    }
                },
                _ => return Err(Code::Internal.into()),
            }
        }
        Ok(true)
    }

    /// A group as a row of keys and aggregates.
    pub fn row<'g>(&'g mut self, group: u32, s: &'g JoinScope<'g>) -> Result<GroupRow<'g>> {
        // What functions compute themselves is asked of them once.
        let mut values = Vec::new();
        if self.st.accs.iter().any(|a| matches!(a, Acc::Any { .. })) {
            for k in 0..self.st.accs.len() {
                let v = self.finished(k, group as usize, s)?;
                values.push(v);
            }
        }
        Ok(GroupRow { groups: self, group, values, s })
    }
}

/// A group.
pub(crate) struct GroupRow<'g> {
    groups: &'g Groups<'g>,
    group: u32,
    values: Vec<Value>,
    s: &'g JoinScope<'g>,
}

impl Row for GroupRow<'_> {
    fn slot(&self, _: usize) -> Result<Value> {
        Err(Code::Internal.into())
    }

    fn key(&self, i: usize) -> Result<Value> {
        self.groups.key_value(self.group, i, self.s)
    }

    fn bare(&self, i: usize) -> Result<Value> {
        self.groups.bare_value(self.group, i, self.s)
    }

    fn agg(&self, i: usize) -> Result<Value> {
        match self.values.get(i) {
            Some(v) => Ok(v.clone()),
            None => self.groups.value(i, self.group as usize),
        }
    }
}
