//! Columns beside the groups: of the row at which a `min` or `max` last changed, or else of a group's first row.

use super::Groups;
use crate::expr::batch::Batch;
use crate::expr::batch::NONE;
use crate::star::build::AWAY;
use crate::star::scope::JoinScope;
use iolite_base::{Code, Result};
use iolite_value::Value;

impl Groups<'_> {
    /// Notes the rows that stand for their groups: those at which an extreme changed, or the first ones.
    pub(super) fn pick(&mut self, follows: bool, b: &Batch<'_>, s: &JoinScope<'_>) {
        let (st, width) = (&mut self.st, self.picks.len());
        for (i, g) in st.at.iter().enumerate() {
            let to = &mut st.picked[*g as usize * width..][..width];
            if if follows { !st.hits[i] } else { to[0] != AWAY } {
                continue;
            }
            for (to, t) in to.iter_mut().zip(&self.picks) {
                *to = match *t == s.places.outer {
                    true => s.cols[*t].loaded.parts[b.part].start as u32 + b.outer[i],
                    false => b.inner[*t].get(i).copied().unwrap_or(NONE),
                };
            }
        }
    }

    /// A column beside the groups.
    pub(super) fn bare_value(&self, group: u32, i: usize, s: &JoinScope<'_>) -> Result<Value> {
        let (t, c) = s.places.at[*self.q.bare.get(i).ok_or(Code::Internal)?];
        let k = self.picks.iter().position(|p| *p == t).ok_or(Code::Internal)?;
        let row = self.st.picked.get(group as usize * self.picks.len() + k).copied().unwrap_or(AWAY);
        if row >= AWAY {
            return Ok(Value::Null);
        }
        let cols = &s.cols[t];
        let (p, at) = cols.locate(row as usize);
        cols.loaded.parts[p].cols[c].field(at, &cols.loaded.dicts[c]).value()
    }
}
