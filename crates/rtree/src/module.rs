//! The modules: how a table's arguments are read, and what it is declared as.

use crate::cursor::Shared;
use crate::geopoly;
use crate::layout::{CoordKind, LEAST_NODE, Layout, MOST_DIMENSIONS};
use crate::plan;
use crate::store::{SUFFIXES, Store};
use crate::table::RTree;
use crate::words;
use iolite_base::{Code, Error, Result};
use iolite_ext::{BuiltinModules, Declared, Host, Module, TableArgs, Trust, VirtualTable};
use std::cell::Cell;
use std::rc::Rc;

/// So many auxiliary columns a table has at most, and an R*Tree columns in all.
const MOST_AUXILIARY: usize = 100;

/// The modules of this crate, made when they are asked for.
pub const BUILTIN: BuiltinModules = BuiltinModules { named, names };

fn names() -> Vec<String> {
    vec!["rtree".into(), "rtree_i32".into(), "geopoly".into()]
}

fn named(name: &str) -> Option<Rc<dyn Module>> {
    Some(match name {
        "rtree" => Rc::new(Kind::RTree(CoordKind::Real)),
        "rtree_i32" => Rc::new(Kind::RTree(CoordKind::Int)),
        "geopoly" => Rc::new(Kind::Geopoly),
        _ => return None,
    })
}

/// What a module makes.
enum Kind {
    RTree(CoordKind),
    Geopoly,
}

/// What the arguments of an R*Tree say.
struct Columns {
    declaration: String,
    names: Vec<String>,
    coordinates: usize,
    auxiliary: usize,
}

fn columns(kind: CoordKind, args: &[Box<str>]) -> Result<Columns> {
    let fail = |what: &str| Err(Error::sql(what));
    let (few, many) = ("Too few columns for an rtree table", "Too many columns for an rtree table");
    if args.len() < 3 {
        return fail(few);
    }
    if args.len() > MOST_AUXILIARY {
        return fail(many);
    }
    let token = |text: &str| words::first_token(text).to_string();
    let first = token(&args[0]);
    let mut declaration = format!("CREATE TABLE x({first} INT");
    let mut names = vec![words::plain(&first)];
    let (mut coordinates, mut auxiliary) = (0, 0);
    let affinity = if kind == CoordKind::Real { "REAL" } else { "INT" };
    for a in &args[1..] {
        let name = match a.strip_prefix('+') {
            Some(rest) => {
                auxiliary += 1;
                // The name follows at once: what else there is stands for it, and is none.
                let blank = rest.starts_with(|c: char| c.is_ascii_whitespace()) || rest.starts_with("/*");
                let name = if blank { String::new() } else { token(rest) };
                declaration += &format!(",{name}");
                name
            }
            None if auxiliary > 0 => return fail("Auxiliary rtree columns must be last"),
            None => {
                coordinates += 1;
                let name = token(a);
                declaration += &format!(",{name} {affinity}");
                name
            }
        };
        names.push(words::plain(&name));
    }
    declaration += ");";
    match coordinates {
        0 | 1 => fail(few),
        n if n > 2 * MOST_DIMENSIONS => fail(many),
        n if n % 2 == 1 => fail("Wrong number of columns for an rtree table"),
        _ => check_names(&names).map(|()| Columns { declaration, names, coordinates, auxiliary }),
    }
}

/// Refuses two columns of one name, before anything is made.
fn check_names(names: &[String]) -> Result<()> {
    for (k, name) in names.iter().enumerate() {
        if names[..k].iter().any(|n| n.eq_ignore_ascii_case(name)) {
            return Err(Error::sql(format!("duplicate column name: {name}")));
        }
    }
    Ok(())
}

/// Makes the tables of a new tree, or finds what the nodes of one look like.
fn shared(store: Store, dimensions: usize, kind: CoordKind, make: bool) -> Result<Rc<Shared>> {
    let node_size = if make {
        let size = Layout::node_size_for(dimensions, store.page_size()?);
        store.create(size)?;
        size
    } else {
        let size = store.root_size()?;
        if size < LEAST_NODE {
            let message = format!("undersize RTree blobs in \"{}_node\"", store.table);
            return Err(Error::new(Code::CorruptVtab, message));
        }
        size as usize
    };
    let layout = Layout { dimensions, kind, node_size };
    Ok(Rc::new(Shared { store, layout, standing: Cell::new(0) }))
}

fn declared(declaration: String, table: Rc<dyn VirtualTable>) -> Declared {
    Declared { trust: Trust::Innocuous, ..Declared::new(declaration, table) }
}

impl Kind {
    fn table(&self, host: &Rc<dyn Host>, args: &TableArgs<'_>, make: bool) -> Result<Declared> {
        let named = (args.database, args.table);
        match self {
            Kind::RTree(kind) => {
                let c = columns(*kind, args.args)?;
                let store = Store::new(host, named, c.auxiliary, 0);
                let rows = plan::estimate(store.analyzed_rows());
                let shared = shared(store, c.coordinates / 2, *kind, make)?;
                Ok(declared(c.declaration, Rc::new(RTree { shared, columns: c.names, rows })))
            }
            Kind::Geopoly => {
                let more: Vec<&str> = args.args.iter().map(|a| &**a).filter(|a| !a.is_empty()).collect();
                if more.len() > MOST_AUXILIARY {
                    return Err(Error::sql("Too many columns for a geopoly table"));
                }
                let names = std::iter::once("_shape").chain(more.iter().map(|a| words::first_token(a)));
                check_names(&names.map(words::plain).collect::<Vec<_>>())?;
                let columns: String = more.iter().map(|a| format!(",{a}")).collect();
                let store = Store::new(host, named, 1 + more.len(), 1);
                let shared = shared(store, 2, CoordKind::Real, make)?;
                let table = Rc::new(geopoly::Geopoly::new(shared));
                Ok(declared(format!("CREATE TABLE x(_shape{columns});"), table))
            }
        }
    }
}

impl Module for Kind {
    fn create(&self, host: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<Declared> {
        self.table(host, args, true)
    }

    fn connect(&self, host: &Rc<dyn Host>, args: &TableArgs<'_>) -> Result<Declared> {
        self.table(host, args, false)
    }

    fn is_shadow(&self, suffix: &str) -> bool {
        SUFFIXES.iter().any(|s| suffix.eq_ignore_ascii_case(s))
    }
}
