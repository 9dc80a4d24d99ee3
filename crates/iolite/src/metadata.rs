//! What is known of one column of a table (`sqlite3_table_column_metadata`).

use crate::connection::Connection;
use iolite_base::{Error, Result, same_name};
use std::rc::Rc;

/// A declared type: the usual ones are said in capitals.
fn declared(t: &Rc<str>) -> Option<Rc<str>> {
    const USUAL: [&str; 6] = ["ANY", "BLOB", "INT", "INTEGER", "REAL", "TEXT"];
    match USUAL.iter().find(|u| u.eq_ignore_ascii_case(t)) {
        Some(u) => Some((*u).into()),
        None => (!t.is_empty()).then(|| t.clone()),
    }
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct ColumnMetadata {
    /// The declared type, if there is one.
    pub decltype: Option<Rc<str>>,
    /// The name of its collating sequence.
    pub collation: Rc<str>,
    /// `NOT NULL`.
    pub not_null: bool,
    /// Part of the primary key.
    pub primary_key: bool,
    /// The rowid, and `AUTOINCREMENT`.
    pub autoincrement: bool,
}

impl Connection {
    /// A column of a table; without a name, what a rowid is, if there is such a table. Views have no columns here.
    pub fn column_metadata(
        &self,
        database: Option<&str>,
        table: &str,
        column: Option<&str>,
    ) -> Result<ColumnMetadata> {
        let inner = &self.0;
        inner.load_schemas()?;
        let found = || inner.catalog.borrow().table(database, table);
        let mut known = found();
        if known.is_none() && inner.look_again() {
            // Somebody else may have made it.
            inner.load_schemas()?;
            known = found();
        }
        let missing = || Error::sql(format!("no such table column: {table}.{}", column.unwrap_or_default()));
        let Some((db, mut t)) = known.filter(|(_, t)| !t.is_view()) else { return Err(missing()) };
        if t.is_virtual() {
            // Its module declares the columns.
            t = inner.connect_virtual(db, &t)?.table.clone();
        }
        let at = match column {
            None => None,
            Some(c) => match t.columns.iter().position(|x| same_name(&x.name, c)) {
                None if t.has_rowid() && ["rowid", "oid", "_rowid_"].iter().any(|n| same_name(n, c)) => {
                    t.rowid_alias
                }
                None => return Err(missing()),
                at => at,
            },
        };
        let Some(at) = at else {
            return Ok(ColumnMetadata {
                decltype: Some("INTEGER".into()),
                collation: "BINARY".into(),
                not_null: false,
                primary_key: true,
                autoincrement: false,
            });
        };
        let c = &t.columns[at];
        Ok(ColumnMetadata {
            // Of a hidden column the word that says so is left out, and what is left may be nothing.
            decltype: match t.is_virtual() && c.hidden && c.decltype.is_empty() {
                true => Some(c.decltype.clone()),
                false => declared(&c.decltype),
            },
            collation: c.collation.clone().unwrap_or_else(|| "BINARY".into()),
            not_null: c.not_null.is_some(),
            primary_key: c.pk > 0,
            autoincrement: t.autoincrement && t.rowid_alias == Some(at),
        })
    }
}
