//! Virtual tables in FROM, and table-valued functions: a virtual table whose hidden columns must equal the arguments.

use super::from::push_filter;
use super::*;
use iolite_catalog::{Schema, TableKind};
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
    /// It carries out the `OR` policy of a statement: [`iolite_ext::Declared::heeds_conflicts`].
    pub heeds_conflicts: bool,
    /// It may read any database.
    pub uses_all_schemas: bool,
}

/// Who connects virtual tables and keeps them.
pub trait Connector {
    /// The code of a table of the catalog.
    fn connect(&self, db: usize, table: &Rc<Table>) -> Result<Rc<Connected>>;
    /// The table of a module's own name, if there is such a module.
    fn eponymous(&self, name: &str) -> Result<Option<Rc<Connected>>>;
    /// Told of what is allowed and may be a mistake (documentation page `errlog`).
    fn warn(&self, _code: Code, _text: &dyn Fn() -> String) {}
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
    ) -> Result<(SourceKind, Rc<str>, Option<usize>, Columns)> {
        let table = c.table.clone();
        if c.uses_all_schemas {
            self.databases |= (1 << self.env.catalog.schemas.len()) - 1;
        }
        let too_risky =
            if self.env.trusted_schema { c.trust > Trust::Normal } else { c.trust > Trust::Innocuous };
        if self.stored && too_risky {
            return Err(Error::sql(format!("unsafe use of virtual table \"{}\"", table.name)));
        }
        let hidden = table.columns.iter().filter(|c| c.hidden).count();
        if args.len() > hidden {
            let text = format!("too many arguments on {}() - max {hidden}", table.name);
            return Err(Error::sql(text).nowhere());
        }
        let shown = table.name.clone();
        let columns = Columns::Table(table.clone());
        Ok((SourceKind::Virtual { db, table, vtab: c.vtab.clone() }, shown, Some(db), columns))
    }

    /// A virtual table that is written to.
    pub(super) fn virtual_target(&mut self, db: usize, c: Rc<Connected>) -> Result<Target> {
        if !c.vtab.writable() {
            return Err(super::target::not_modifiable(&c.table.name));
        }
        let allowed = if self.env.trusted_schema { Trust::Normal } else { Trust::Innocuous };
        if self.trigger.is_some() && c.trust > allowed {
            return Err(Error::sql(format!("unsafe use of virtual table \"{}\"", c.table.name)));
        }
        self.databases |= 1 << db;
        let id = self.new_table();
        self.virtual_tables.push((id, c.vtab.clone()));
        let table = c.table.clone();
        Ok(Target { virtual_table: Some(c), ..Target::without_trees(db, table, id) })
    }

    /// Binds what table-valued functions are called with and FROM alone could not: as WHERE would.
    pub(super) fn late_arguments(&mut self, out: &mut Core) -> Result<()> {
        let late = std::mem::take(&mut self.scope().late_arguments);
        for (at, args) in late {
            self.scope().phase = super::Phase::Rows;
            let given = args.iter().map(|a| self.expr(a)).collect::<Result<Vec<_>>>()?;
            self.arguments(given, at, out)?;
        }
        Ok(())
    }

    /// What a table-valued function is called with: conditions on the hidden columns of source number `at`.
    pub(super) fn arguments(&mut self, args: Vec<Expr>, at: usize, out: &mut Core) -> Result<()> {
        let Some(source) = out.sources.get(at) else { return Ok(()) };
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

/// The virtual table of a schema to which a table or index of this name belongs as a shadow: its module keeps something in
/// `TABLE_name`.
pub fn shadow_of<'s>(schema: &'s Schema, registry: &Registry, name: &str) -> Option<&'s Rc<Table>> {
    schema.tables().find(|t| {
        let TableKind::Virtual { module, .. } = &t.kind else { return false };
        let (own, suffix) = match name.split_at_checked(t.name.len()) {
            Some((own, rest)) => (own, rest.strip_prefix('_')),
            None => return false,
        };
        let is_shadow = |s: &str| registry.module(module).is_some_and(|m| m.is_shadow(s));
        same_name(own, &t.name) && suffix.is_some_and(is_shadow)
    })
}

/// Checks a text that declares the columns of a virtual table. Answers the column that names its rows, if it has no rowids.
pub fn check_declaration(sql: &str, writable: bool) -> Result<Option<usize>> {
    let t = declared_table(sql, "", "", writable)?;
    Ok(if t.has_rowid() { None } else { t.columns.iter().position(|c| c.pk == 1) })
}

/// A virtual table's columns from its declaration. What else it declares means nothing, but WITHOUT ROWID: then the primary
/// key names its rows, which is one column if the table can be written to.
pub fn declared_table(decl: &str, module: &str, name: &str, writable: bool) -> Result<Rc<Table>> {
    let parsed = parse_stmt(decl).map_err(Error::without_offset)?;
    let ast::Stmt::CreateTable(c) = parsed.stmt else { return Err(Error::sql("syntax error")) };
    let mut t = iolite_catalog::table_from_ast(&c, decl, 0).map_err(Error::without_offset)?;
    if t.columns.iter().any(|c| c.generated.is_some()) {
        return Err(Error::sql("virtual tables cannot use computed columns"));
    }
    let rowid = t.has_rowid();
    if !rowid && writable && t.columns.iter().filter(|c| c.pk > 0).count() != 1 {
        return Err(Code::Error.into());
    }
    t.name = name.into();
    t.kind = TableKind::Virtual { module: module.into(), args: Vec::new(), rowid };
    t.indexes.take();
    t.checks.clear();
    t.foreign_keys.clear();
    (t.rowid_alias, t.autoincrement, t.strict, t.key_conflict) = (None, false, false, None);
    for col in &mut t.columns {
        col.default = None;
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
