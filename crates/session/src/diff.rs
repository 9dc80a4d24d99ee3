//! What makes one table into another, as if it had been recorded (documentation page `sqlite3session_diff`).

use crate::quoted;
use crate::recorder::Recorder;
use crate::schema::Shape;
use iolite_base::{Code, Error, Result};
use iolite_ext::{Host, Preupdate, RowChange};
use iolite_value::Value;
use std::rc::Rc;

impl Recorder {
    /// Records what makes the table of database `from` into the one of this name in the recorder's database.
    pub fn diff(&self, host: &dyn Host, from: &str, name: &str) -> Result<()> {
        self.check()?;
        let table = self.watch(name);
        let shape = self.shape(host, &table, false)?;
        if shape.columns.is_empty() {
            return Ok(());
        }
        let known = |r: &Vec<Value>| r[1].text_carried().eq_ignore_ascii_case(from);
        let there = host.query("PRAGMA database_list", &[])?.iter().any(known);
        let other = if there { Shape::of(host, from, name, shape.rowid)? } else { Shape::default() };
        let same_names = |(a, b): (&String, &String)| a.eq_ignore_ascii_case(b);
        let alike = other.columns.len() == shape.columns.len()
            && other.columns.iter().zip(&shape.columns).all(same_names)
            && other.keys == shape.keys;
        if !alike {
            return Err(Error::new(Code::Schema, "table schemas do not match"));
        }
        if !shape.has_key() {
            return Ok(());
        }
        let to = format!("{}.{}", quoted(&self.database), quoted(name));
        let from = format!("{}.{}", quoted(from), quoted(name));
        let pick = |alias: &str| -> String {
            let column = |n| format!("{alias}.{}", shape.column(n));
            (0..shape.columns.len()).map(column).collect::<Vec<_>>().join(", ")
        };
        let equal = |n: usize| format!("a.{0} = b.{0}", shape.column(n));
        let keys: Vec<String> = (0..shape.columns.len()).filter(|n| shape.is_key(*n)).map(equal).collect();
        let keys = keys.join(" AND ");
        let others: Vec<String> = (0..shape.columns.len())
            .filter(|n| !shape.is_key(*n))
            .map(|n| format!("a.{0} IS NOT b.{0}", shape.column(n)))
            .collect();
        for (change, has, lacks) in [(RowChange::Insert, &to, &from), (RowChange::Delete, &from, &to)] {
            let sql = format!(
                "SELECT {} FROM {has} AS a WHERE NOT EXISTS (SELECT 1 FROM {lacks} AS b WHERE {keys})",
                pick("a")
            );
            self.tell(host, &shape, name, change, &sql)?;
        }
        if !others.is_empty() {
            let sql = format!(
                "SELECT {}, {} FROM {to} AS a CROSS JOIN {from} AS b WHERE {keys} AND ({})",
                pick("a"),
                pick("b"),
                others.join(" OR ")
            );
            self.tell(host, &shape, name, RowChange::Update, &sql)?;
        }
        Ok(())
    }

    /// Records the rows that a query finds: those that will be, then those that were.
    fn tell(&self, host: &dyn Host, shape: &Shape, name: &str, change: RowChange, sql: &str) -> Result<()> {
        let Some(table) = self.find(name) else { return Ok(()) };
        let n = shape.columns.len();
        let mut s = host.prepare(sql)?;
        while s.step()? {
            let (first, second) = s.row().split_at(n);
            let (new, old) = match change {
                RowChange::Insert => (Some(first), None),
                RowChange::Delete => (None, Some(first)),
                RowChange::Update => (Some(first), Some(second)),
            };
            let rowid = |r: Option<&[Value]>| r.filter(|_| shape.rowid).map_or(0, |r| r[0].to_int());
            let spread = |r: Option<&[Value]>| {
                r.map(|r| {
                    let mut row = vec![None; shape.total];
                    for i in shape.rowid as usize..n {
                        row[shape.places[i]] = Some(r[i].clone());
                    }
                    row
                })
            };
            let p = Preupdate {
                change,
                database: Rc::from(self.database.as_str()),
                table: Rc::from(name),
                columns: shape.total,
                old_rowid: rowid(old),
                new_rowid: rowid(new),
                depth: 0,
                old: spread(old),
                new: spread(new),
                blob_column: None,
            };
            self.record(host, &table, &p)?;
        }
        s.reset()
    }
}
