//! The order of the planner's loops, and of the groups that they deliver.

use super::{Answer, Compiler, no};
use crate::expr::Ex;
use crate::query::LevelOrder;
use iolite_catalog::ColumnSource;
use iolite_plan::bound::*;
use iolite_plan::plan::*;
use iolite_value::Affinity;

impl Compiler<'_> {
    pub(super) fn level_order(&mut self, t: usize, l: &Level) -> Option<LevelOrder> {
        let mut by = Vec::new();
        let (mut reverse, mut one, mut binary) = (false, false, true);
        let fixed = |e: &EqTerm| matches!(e, EqTerm::Eq { .. } | EqTerm::IsNull);
        match &l.access {
            // The values of IN come in their order, each once.
            Access::RowidEq { eq, reverse: r } if !fixed(eq) => reverse = *r,
            Access::Scan { reverse: r } | Access::RowidRange { reverse: r, .. } => reverse = *r,
            Access::RowidEq { .. } => one = true,
            Access::Index(a) if a.nulls_apart => return None,
            Access::Index(a) => {
                (reverse, one) = (a.reverse, a.one_row);
                binary = a.key.fields.iter().all(|f| f.coll.is_binary());
                for (n, _) in a.eq.iter().enumerate().filter(|(_, e)| !fixed(e)) {
                    let desc = a.key.fields.get(n)?.desc != reverse;
                    match a.index.columns.get(n)?.source {
                        ColumnSource::Column(c) => by.push((c as i32, desc)),
                        _ => return None,
                    }
                }
                for n in if one { 0..0 } else { a.eq.len()..a.index.key_len } {
                    let desc = a.key.fields.get(n)?.desc != reverse;
                    match a.index.columns.get(n)?.source {
                        ColumnSource::Column(c) => by.push((c as i32, desc)),
                        ColumnSource::Rowid => by.push((ROWID, desc)),
                        ColumnSource::Expr(_) => return None,
                    }
                }
            }
            Access::IndexScan { index, key, reverse: r, .. } => {
                reverse = *r;
                binary = key.fields.iter().all(|f| f.coll.is_binary());
                for n in 0..index.key_len {
                    let desc = key.fields.get(n)?.desc != reverse;
                    match index.columns.get(n)?.source {
                        ColumnSource::Column(c) => by.push((c as i32, desc)),
                        ColumnSource::Rowid => by.push((ROWID, desc)),
                        ColumnSource::Expr(_) => return None,
                    }
                }
            }
            Access::Auto { eq, columns, .. } if eq.iter().all(|e| fixed(&e.1)) => {
                by.extend(columns.iter().skip(eq.len()).map(|c| (*c, false)));
            }
            _ => return None,
        }
        let mut numbered: Vec<(usize, bool)> = Vec::new();
        for (c, desc) in by {
            let slot = self.order_slot(t, c)?;
            // An index may name a column twice: the second time it decides nothing.
            if numbered.iter().all(|n| n.0 != slot) {
                numbered.push((slot, desc));
            }
        }
        Some(LevelOrder { by: numbered, reverse, one, binary })
    }

    fn order_slot(&mut self, t: usize, column: i32) -> Option<usize> {
        let spec = self.slot_spec(t, column).ok()?;
        let slots = &mut self.q.order_slots;
        if let Some(i) = slots.iter().position(|s| s.table == t && s.field == spec.field) {
            return Some(i);
        }
        slots.push(spec);
        Some(slots.len() - 1)
    }

    /// Rows that all look alike have no order: no column is wanted for it.
    pub(super) fn forget_order_of_equals(&mut self) {
        let q = &mut self.q;
        let [spec] = &q.tables[..] else { return };
        // Equal values of other affinities, 1 beside 1.0 and the zeros of both signs, may look different.
        let one_looks = |slot: usize| {
            // A rowid is an integer.
            let Some(field) = q.slots[slot].field else { return true };
            let column = spec.table.field_of.iter().position(|f| *f == Some(field));
            let affinity = column.map(|c| spec.table.columns[c].affinity);
            matches!(affinity, Some(Affinity::Integer | Affinity::Numeric | Affinity::Text))
        };
        let fixed = |e: &Ex| match e {
            Ex::Const(_) | Ex::Param(_) => true,
            Ex::Slot(s) => q.conds.iter().any(|c| c.ex.fixes(*s)) && one_looks(*s),
            _ => false,
        };
        if q.grouping == Grouping::None && spec.query.is_none() && q.result.iter().all(fixed) {
            q.in_order = true;
            q.loop_order = None;
            q.order_slots.clear();
        }
    }

    /// Groups that come out as an index delivers them, or in the order of the table.
    pub(super) fn index_order(&mut self) -> Answer<()> {
        let c = self.block.core;
        let l = &c.levels[0];
        if l.source.exists.is_some() {
            return no("groups behind EXISTS");
        }
        // One group for each row of the first table.
        let single = self.q.loop_order.as_ref().is_some_and(|o| o[1..].iter().all(|l| l.one));
        // What else the row says is the same in the whole group, and so is what the one row of each next table says.
        let tables = c.levels.iter().filter(|l| l.source.exists.is_none()).skip(1);
        let orders = self.q.loop_order.iter().flat_map(|o| o.iter().skip(1));
        let same: Vec<TableId> = std::iter::once(l.source.id)
            .chain(tables.zip(orders).take_while(|(_, o)| o.one).map(|(l, _)| l.source.id))
            .collect();
        let own = |e: &Expr| {
            let mut own = true;
            e.tables(&mut |t| own &= same.contains(&t));
            own && !e.changes_by_call()
        };
        if let (Access::Scan { reverse } | Access::RowidRange { reverse, .. }, [Expr::Column(k), more @ ..]) =
            (&l.access, &c.group_by[..])
            && k.table == l.source.id
            && (k.column < 0 || self.q.tables[0].table.rowid_alias == Some(k.column as usize))
            && (single || more.iter().all(own))
        {
            self.q.key_fields[0].desc = *reverse;
            return Ok(());
        }
        let (index, key, reverse) = match &l.access {
            Access::IndexScan { index, key, reverse, .. } => (index, key, *reverse),
            Access::Index(a) if a.eq.is_empty() => (&a.index, &a.key, a.reverse),
            _ => return no("groups come in an order of their own"),
        };
        let mut order = Vec::new();
        let mut fields = 0;
        for (f, column) in key.fields.iter().zip(&index.columns) {
            let found = c.group_by.iter().position(|g| match (g.without_collate(), &column.source) {
                (Expr::Column(k), ColumnSource::Column(n)) => k.table == l.source.id && k.column == *n as i32,
                _ => false,
            });
            let Some(k) = found.filter(|k| !order.contains(k)) else { break };
            if self.q.key_fields[k].coll != f.coll {
                return no("an index with another collating sequence");
            }
            self.q.key_fields[k].desc = f.desc != reverse;
            order.push(k);
            fields += 1;
        }
        if order.len() != c.group_by.len() {
            return no("groups come in an order of their own");
        }
        self.q.key_order = order;
        // Within a group the rows come by number, if nothing else stands in the index.
        let alone = fields == index.key_len && !reverse && c.levels.len() == 1;
        self.q.in_order = alone;
        Ok(())
    }
}
