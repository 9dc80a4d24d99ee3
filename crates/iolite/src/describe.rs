//! What a table's or view's columns are, for `PRAGMA table_info` and the API.

use crate::binding::with_env;
use crate::connection::Connection;
use iolite_base::Result;
use iolite_catalog::Table;
use iolite_plan::bind::{Binder, Connector, view_type};
use iolite_plan::bound::SourceKind;

/// A column as described.
pub(crate) struct Description {
    pub name: String,
    pub decltype: String,
    pub not_null: bool,
    pub default: Option<String>,
    pub pk: usize,
    /// 0 no, 1 hidden column of a virtual table, 2 virtual generated, 3 stored generated.
    pub hidden: u8,
}

/// The columns of a table or view, or of a module that is a table by itself; none if there is no such thing.
pub(crate) fn columns(conn: &Connection, schema: Option<&str>, name: &str) -> Result<Vec<Description>> {
    let found = conn.0.catalog.borrow().table(schema, name);
    let Some((db, t)) = found else {
        return Ok(conn.eponymous(name)?.map_or_else(Vec::new, |c| of_table(&c.table)));
    };
    if t.is_view() {
        let q = iolite_sql::print::quote_name;
        let schema_name = conn.0.catalog.borrow().schemas[db].name.clone();
        let text = format!("SELECT * FROM {}.{}", q(&schema_name), q(&t.name));
        let parsed = iolite_sql::parse_stmt(&text)?;
        let iolite_sql::ast::Stmt::Select(s) = &parsed.stmt else { return Ok(Vec::new()) };
        return with_env(conn, |env| {
            let bound = Binder::new(env, &text).select(s)?;
            // A compound's first arm says what types its columns have.
            let (own, misfit) = match &bound.cores[0].sources[0].kind {
                SourceKind::Subquery(q) => (q.select.columns.clone(), q.misfit.is_some()),
                _ => (iolite_base::Few::new(), false),
            };
            Ok(bound
                .columns
                .into_iter()
                .zip(own)
                .map(|(c, first)| Description {
                    decltype: match misfit {
                        // Names that are not as many as the columns have no types.
                        true => String::new(),
                        false => view_type(first.meta.decltype.as_ref(), c.affinity).to_string(),
                    },
                    name: c.meta.name.to_string(),
                    not_null: false,
                    default: None,
                    pk: 0,
                    hidden: 0,
                })
                .collect())
        });
    }
    let t = if t.is_virtual() { conn.connect(db, &t)?.table.clone() } else { t };
    Ok(of_table(&t))
}

fn of_table(t: &Table) -> Vec<Description> {
    t.columns
        .iter()
        .map(|c| Description {
            name: c.name.to_string(),
            decltype: c.decltype.to_string(),
            not_null: c.not_null.is_some(),
            default: c.default.as_ref().map(|d| d.text.to_string()),
            pk: c.pk,
            hidden: match &c.generated {
                Some(g) if g.stored => 3,
                Some(_) => 2,
                None => c.hidden as u8,
            },
        })
        .collect()
}
