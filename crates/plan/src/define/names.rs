//! Names of objects that are created: where they belong, whether they are free, what is stored of their text.

use crate::bound::OutColumn;
use crate::compiler::Compiler;
use crate::statement::define::Step;
use iolite_base::{Error, Result};
use iolite_sql::ast::{self, QualifiedName};
use iolite_sql::print::quote_name;
use iolite_sql::walk::TableNames;
use iolite_value::Affinity;

/// Whether a name is one that only the engine gives.
pub(super) fn is_reserved(name: &str) -> bool {
    name.len() >= 7 && name.as_bytes()[..7].eq_ignore_ascii_case(b"sqlite_")
}

impl Compiler<'_> {
    /// The database in which an object is created.
    pub(super) fn home(&self, temp: bool, name: &QualifiedName) -> Result<usize> {
        let db = match &name.schema {
            Some(s) => {
                let db = self
                    .env
                    .catalog
                    .database(&s.text)
                    .ok_or_else(|| Error::sql(format!("unknown database {}", s.text)).at(s.span.start))?;
                if temp && db != 1 {
                    return Err(Error::sql("temporary table name must be unqualified"));
                }
                db
            }
            None => temp as usize,
        };
        let own = &name.name.text;
        let reserved = !self.env.writable_schema && !self.env.own && is_reserved(own);
        if reserved || self.env.is_protected_name(own) {
            return Err(Error::sql(format!("object name reserved for internal use: {own}")));
        }
        Ok(db)
    }

    /// Complains if the name is taken; `Ok(true)` if it is and that is fine.
    pub(super) fn taken(&self, db: usize, name: &ast::Name, if_not_exists: bool) -> Result<bool> {
        let (written, at, name) = (name.written(), name.span.start, &*name.text);
        let schema = &self.env.catalog.schemas[db];
        if let Some(t) = schema.table(name) {
            if if_not_exists {
                return Ok(true);
            }
            let kind = if t.is_view() { "view" } else { "table" };
            return Err(Error::sql(format!("{kind} {written} already exists")).at(at));
        }
        if schema.index(name).is_some() {
            return Err(Error::sql(format!("there is already an index named {name}")));
        }
        Ok(false)
    }

    /// There is nothing to do, as long as the schema is what it is now.
    pub(super) fn nothing(&mut self, db: usize) -> Vec<Step> {
        self.databases |= 1 << db;
        Vec::new()
    }

    /// A view or trigger may name tables of its own database alone, unless it is a temporary one.
    pub(super) fn stay_at_home(
        &self,
        db: usize,
        what: &str,
        name: &str,
        walk: impl FnOnce(&mut TableNames<'_>),
    ) -> Result<()> {
        let mut elsewhere = None;
        let own = &self.env.catalog.schemas[db].name;
        let mut look = |q: &QualifiedName| {
            if let Some(s) = &q.schema
                && !s.text.eq_ignore_ascii_case(own)
            {
                elsewhere.get_or_insert_with(|| s.text.to_string());
            }
        };
        let mut names = TableNames::new(&mut look);
        walk(&mut names);
        let parameters = names.parameters;
        match elsewhere {
            Some(s) if db != 1 => {
                Err(Error::sql(format!("{what} {name} cannot reference objects in database {s}")))
            }
            _ if parameters => Err(Error::sql(format!("{what} cannot use variables"))),
            _ => Ok(()),
        }
    }

    /// A database's name as SQL has it.
    pub(super) fn schema_name(&self, db: usize) -> String {
        quote_name(&self.env.catalog.schemas[db].name).into_owned()
    }
}

/// What a definition's text takes with it of what stands before the semicolon.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    Nothing,
    /// Comments, but no space at the end.
    Comments,
    All,
}

/// A definition's text as the schema keeps it: from the name on, with its database left out.
pub(super) fn stored_text(word: &str, whole: &str, name_start: u32, stmt: &str, tail: Tail) -> String {
    // `stmt` is a part of `whole`; its end is the definition's.
    let end = (stmt.as_ptr() as usize - whole.as_ptr() as usize) + stmt.len();
    let end = if tail == Tail::Nothing { end } else { iolite_sql::semicolon(whole, end) };
    let text = &whole[name_start as usize..end];
    let text = if tail == Tail::Comments { text.trim_ascii_end() } else { text };
    format!("{word} {text}")
}

/// A name as messages show it.
pub(super) fn quote_if_needed(name: &str) -> String {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !name.bytes().next().is_none_or(|b| b.is_ascii_digit());
    if plain { name.into() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// The definition of a table made by CREATE TABLE AS.
pub(super) fn columns_as_text(name: &str, columns: &[OutColumn]) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut parts = Vec::new();
    for c in columns {
        let base = c.stored_name.as_deref().unwrap_or(&c.meta.name).to_string();
        let stem = crate::bind::unnumbered(&base);
        let mut own = base.clone();
        let mut n = 0;
        while names.iter().any(|x| x.eq_ignore_ascii_case(&own)) {
            n += 1;
            own = format!("{stem}:{n}");
        }
        let ty = match c.affinity {
            Affinity::Text => " TEXT",
            Affinity::Numeric | Affinity::Flexnum => " NUM",
            Affinity::Integer => " INT",
            Affinity::Real => " REAL",
            _ => "",
        };
        parts.push(format!("{}{ty}", quote_in_text(&own)));
        names.push(own);
    }
    // One line, if the names alone are short.
    let length = |n: &str| n.len() + n.matches('"').count() + 2;
    let total: usize = names.iter().map(|n| length(n) + 5).sum::<usize>() + length(name);
    if total < 50 {
        format!("CREATE TABLE {}({})", quote_in_text(name), parts.join(","))
    } else {
        format!("CREATE TABLE {}(\n  {}\n)", quote_in_text(name), parts.join(",\n  "))
    }
}

/// A name in a definition that is made: every keyword is quoted, those too that may stand for names.
fn quote_in_text(name: &str) -> String {
    if iolite_sql::is_keyword(name) { format!("\"{name}\"") } else { quote_if_needed(name) }
}
