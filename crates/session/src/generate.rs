//! Writes what a recorder remembers as a changeset or a patchset, with the help of what the tables hold by now.

use crate::change::{Change, Op, Table};
use crate::output::Output;
use crate::quoted;
use crate::record::{self, UNDEFINED};
use crate::recorder::{Recorder, Row, Watched};
use crate::schema::Shape;
use iolite_base::Result;
use iolite_ext::{Host, NestedStatement};
use std::rc::Rc;

impl Recorder {
    /// Writes a changeset or a patchset. What the recorder remembers stays.
    pub fn changes(&self, host: &dyn Host, patchset: bool, out: &mut Output<'_>) -> Result<()> {
        self.check()?;
        // All tables as they are at one time.
        host.query("SAVEPOINT changeset", &[])?;
        let done = self.write_tables(host, patchset, out);
        let released = host.query("RELEASE changeset", &[]);
        done?;
        released.map(|_| ())
    }

    fn write_tables(&self, host: &dyn Host, patchset: bool, out: &mut Output<'_>) -> Result<()> {
        let tables = self.tables.borrow().clone();
        for t in tables.iter().filter(|t| t.rows.borrow().len() > 0) {
            let shape = self.shape(host, t, true)?;
            let head = Rc::new(Table { name: t.name.clone(), keys: shape.keys.clone(), patchset });
            let mut select = host.prepare(&format!(
                "SELECT {} FROM {}.{} WHERE {}",
                shape.list(),
                quoted(&self.database),
                quoted(&t.name),
                shape.key_condition()
            ))?;
            let mut begun = false;
            let mut at = (0, 0);
            while let Some((row, next)) = copied(t, at) {
                at = next;
                if let Some(c) = change(&mut *select, &shape, &head, row)? {
                    if !begun {
                        head.put(&mut out.bytes);
                        begun = true;
                    }
                    c.put(&mut out.bytes)?;
                    out.written()?;
                }
            }
        }
        Ok(())
    }
}

/// The row that stands at a place, and the next place.
fn copied(t: &Watched, at: (usize, usize)) -> Option<(Row, (usize, usize))> {
    let rows = t.rows.borrow();
    let (r, next) = rows.at(at)?;
    Some((
        Row { op: r.op, indirect: r.indirect, record: r.record.clone(), fields: r.fields, most: r.most },
        next,
    ))
}

/// What has become of a row; `None`: nothing.
fn change(s: &mut dyn NestedStatement, shape: &Shape, table: &Rc<Table>, row: Row) -> Result<Option<Change>> {
    for (i, field) in record::fields(&row.record).enumerate().filter(|(i, _)| shape.is_key(*i)) {
        s.bind(i + 1, record::value(field)?.unwrap_or_default())?;
    }
    let made = if s.step()? {
        let now: Result<Vec<Vec<u8>>> =
            s.row().iter().enumerate().map(|(i, v)| record::encoded(&shape.stored(i, v.clone())?)).collect();
        let now = now?;
        match row.op {
            Op::Insert => Some((Op::Insert, Vec::new(), now.concat())),
            _ => updated(table, &row.record, &now).map(|(old, new)| (Op::Update, old, new)),
        }
    } else if row.op == Op::Insert {
        None
    } else {
        Some((Op::Delete, row.record.into(), Vec::new()))
    };
    s.reset()?;
    let indirect = row.indirect as u8;
    Ok(made.map(|(op, old, new)| Change { table: table.clone(), op, indirect, old, new }))
}

/// The records of an UPDATE from what a row was to what it is; `None` if nothing has changed.
fn updated(table: &Table, was: &[u8], is: &[Vec<u8>]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (mut old, mut new) = (Vec::new(), Vec::new());
    let mut any = false;
    for (i, (a, b)) in record::fields(was).zip(is).enumerate() {
        let (key, changed) = (table.is_key(i), !record::same(a, b));
        any |= changed;
        old.extend_from_slice(if key || (changed && !table.patchset) { a } else { UNDEFINED });
        new.extend_from_slice(if changed { b } else { UNDEFINED });
    }
    any.then_some((old, new))
}
