//! Virtual tables in FROM, and table-valued functions: a virtual table whose hidden columns must equal the arguments.

use super::from::push_filter;
use super::*;
use iolite_catalog::TableKind;
use iolite_ext::{Trust, VirtualTable};
use iolite_sql::parse_stmt;

/// A virtual table with its columns.
pub struct Connected {
    /// Columns as declared.
    pub table: Rc<Table>,
    /// Code.
    pub vtab: Rc<dyn VirtualTable>,
    /// Where it may be named.
    pub trust: Trust,
}

/// Who connects virtual tables and keeps them.
pub trait Connector {
    /// The code of a table of the catalog.
    fn connect(&self, db: usize, table: &Rc<Table>) -> Result<Rc<Connected>>;
    /// The table of a module's own name, if there is such a module.
    fn eponymous(&self, name: &str) -> Result<Option<Rc<Connected>>>;
}

/// A world without virtual tables.
pub struct NoModules;

impl Connector for NoModules {
    fn connect(&self, _: usize, table: &Rc<Table>) -> Result<Rc<Connected>> {
        Err(Error::sql(format!("no such module: {}", table.name)))
    }

    fn eponymous(&self, _: &str) -> Result<Option<Rc<Connected>>> {
        Ok(None)
    }
}

impl Binder<'_> {
    /// A virtual table as a source: what its columns are, and what must hold of the hidden ones.
    #[allow(clippy::type_complexity)]
    pub(super) fn virtual_source(
        &mut self,
        db: usize,
        c: &Connected,
        args: &[ast::Expr],
        name: &ast::Name,
    ) -> Result<(SourceKind, Rc<str>, Option<usize>, Columns)> {
        let table = c.table.clone();
        let too_risky =
            if self.env.trusted_schema { c.trust > Trust::Normal } else { c.trust > Trust::Innocuous };
        if self.stored && too_risky {
            return Err(Error::sql(format!("unsafe use of virtual table \"{}\"", table.name)));
        }
        let hidden = table.columns.iter().filter(|c| c.hidden).count();
        if args.len() > hidden {
            let text = format!("too many arguments on {}() - max {hidden}", table.name);
            return Err(Error::sql(text).at(name.span.start));
        }
        let shown = table.name.clone();
        let columns = Columns::Table(table.clone());
        Ok((SourceKind::Virtual { db, table, vtab: c.vtab.clone() }, shown, Some(db), columns))
    }

    /// What a table-valued function is called with: conditions on the hidden columns of the source that was added last.
    pub(super) fn arguments(&mut self, args: Vec<Expr>, out: &mut Core) -> Result<()> {
        let Some(source) = out.sources.last() else { return Ok(()) };
        let SourceKind::Virtual { table, .. } = &source.kind else { return Ok(()) };
        let (id, columns) = (source.id, Columns::Table(table.clone()));
        let hidden: Vec<usize> = (0..table.columns.len()).filter(|&c| table.columns[c].hidden).collect();
        for (arg, c) in args.into_iter().zip(hidden) {
            let column = self.column_of(id, &columns, c)?;
            let equal = self.make_compare(CmpOp::Eq, false, column, arg);
            push_filter(&mut out.filter, Expr::Compare(Box::new(equal)), Some(id));
        }
        Ok(())
    }
}

/// A virtual table's columns from its declaration.
pub fn declared_table(decl: &str, module: &str, name: &str) -> Result<Rc<Table>> {
    let parsed = parse_stmt(decl)?;
    let ast::Stmt::CreateTable(mut c) = parsed.stmt else {
        return Err(Error::sql(format!("bad declaration of virtual table {name}")));
    };
    c.name.name.text = name.into();
    let mut t = iolite_catalog::table_from_ast(&c, decl, 0)?;
    t.kind = TableKind::Virtual { module: module.into(), args: Vec::new() };
    t.indexes.take();
    t.rowid_alias = None;
    for col in &mut t.columns {
        // The word HIDDEN in the type hides the column, and is no part of the type.
        let words: Vec<&str> = col.decltype.split(' ').collect();
        if words.iter().any(|w| w.eq_ignore_ascii_case("hidden")) {
            col.hidden = true;
            let rest: Vec<&str> = words.into_iter().filter(|w| !w.eq_ignore_ascii_case("hidden")).collect();
            col.decltype = rest.join(" ").into();
            col.affinity = match &*col.decltype {
                "" => iolite_value::Affinity::Blob,
                t => iolite_value::Affinity::of_type(t),
            };
        }
    }
    Ok(Rc::new(t))
}
